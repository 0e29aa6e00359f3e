/* transform/block/reversible4x4.h: exact both ways, and the bound that decoders rely on. FORMAT.md 8.3. */
#include "tests/unit/support.h"

#include "transform/block/reversible4x4.h"

/* FORMAT.md 8.3, with floor divisions instead of shifts. */
static void forward_1d_plainly(const int64_t x[4], int64_t v[4])
{
    const int64_t d0 = x[0] - x[3], s0 = x[3] + floor_shift(d0, 1), d1 = x[1] - x[2], s1 = x[2] + floor_shift(d1, 1);
    v[2] = s0 - s1;
    v[0] = s1 + floor_shift(v[2], 1);
    v[3] = d1 - floor_shift(53 * d0 + 64, 7);
    v[1] = d0 + floor_shift(45 * v[3] + 64, 7);
}

static void forward_plainly(const int32_t in[16], int64_t out[16])
{
    int64_t rows[16];
    for (int i = 0; i < 4; i++) {
        const int64_t x[4] = {in[4 * i], in[4 * i + 1], in[4 * i + 2], in[4 * i + 3]};
        forward_1d_plainly(x, rows + 4 * i);
    }
    for (int j = 0; j < 4; j++) {
        const int64_t x[4] = {rows[j], rows[4 + j], rows[8 + j], rows[12 + j]};
        int64_t v[4];
        forward_1d_plainly(x, v);
        for (int i = 0; i < 4; i++) out[4 * i + j] = v[i];
    }
}

/* Checks a block both ways; returns its largest coefficient. */
static int32_t check(const int32_t samples[16])
{
    int32_t block[16], most = 0;
    int64_t plain[16];
    memcpy(block, samples, sizeof block);
    tsr_reversible_forward(block);
    forward_plainly(samples, plain);
    for (int i = 0; i < 16; i++) {
        assert_int_equal(block[i], plain[i]);
        most = tsr_max(most, tsr_abs(block[i]));
    }
    tsr_reversible_inverse(block);
    assert_memory_equal(block, samples, sizeof block);
    return most;
}

TEST(one_dimension_exhaustively)
{
    for (int32_t n = 0; n < 1 << 20; n++) {
        int32_t v[4] = {n & 31, n >> 5 & 31, n >> 10 & 31, n >> 15};
        const int32_t in[4] = {v[0], v[1], v[2], v[3]};
        tsr_reversible_forward_1d(v, 1);
        tsr_reversible_inverse_1d(v, 1);
        if (memcmp(v, in, sizeof v) != 0) fail_case(__FILE__, __LINE__, "exact", "vector %d", n);
    }
}

TEST(random_blocks)
{
    struct rng r = {12};
    for (int n = 0; n < 50000; n++) {
        int32_t block[16];
        for (int i = 0; i < 16; i++) block[i] = (int32_t)rng_below(&r, n % 2 ? 65536 : 16);
        check(block);
    }
}

/* The transform is linear except for its roundings, so the largest coefficients come from the corners of the cube of
 * all blocks. All 65536 corners are tried. Roundings add less than 64 (16 floors of at most 1, amplified below 4). */
TEST(bound_of_coefficients)
{
    int32_t most = 0;
    for (uint32_t corner = 0; corner < 65536; corner++) {
        int32_t block[16];
        for (int i = 0; i < 16; i++) block[i] = corner >> i & 1u ? 65535 : 0;
        most = tsr_max(most, check(block));
    }
    print_message("largest coefficient of 16-bit samples: %d\n", most);
    assert_true(most + 64 <= 302000); /* as the header says */
    assert_true(most + 64 < TSR_REVERSIBLE_LIMIT);
}

/* Climbs from random blocks to larger coefficients, step by step. None exceeds the corners' by more than the
 * roundings. */
TEST(climbing_does_not_pass_the_bound)
{
    struct rng r = {13};
    for (int place = 0; place < 16; place++) {
        int32_t best[16], value = 0;
        for (int i = 0; i < 16; i++) best[i] = (int32_t)rng_below(&r, 65536);
        for (int n = 0; n < 4000; n++) {
            int32_t block[16], changed[16];
            memcpy(changed, best, sizeof changed);
            int32_t *sample = &changed[rng_below(&r, 16)];
            *sample = n % 2 ? (int32_t)rng_below(&r, 2) * 65535
                            : tsr_max(0, tsr_min(65535, *sample + rng_between(&r, -3, 3)));
            memcpy(block, changed, sizeof block);
            tsr_reversible_forward(block);
            if (tsr_abs(block[place]) < value) continue;
            value = tsr_abs(block[place]);
            memcpy(best, changed, sizeof best);
        }
        expect(value < 302000, "coefficient %d reaches %d", place, value);
    }
}

/* The largest coefficients that a decoder may get. Under UBSan this shows that the inverse cannot overflow. */
TEST(extreme_coefficients)
{
    int32_t most = 0;
    for (uint32_t corner = 0; corner < 65536; corner++) {
        int32_t block[16];
        for (int i = 0; i < 16; i++) block[i] = corner >> i & 1u ? TSR_REVERSIBLE_LIMIT - 1 : 1 - TSR_REVERSIBLE_LIMIT;
        tsr_reversible_inverse(block);
        for (int i = 0; i < 16; i++) most = tsr_max(most, tsr_abs(block[i]));
    }
    assert_true(most < 19271960); /* 2^24.2 */
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(one_dimension_exhaustively), cmocka_unit_test(random_blocks),
                                       cmocka_unit_test(bound_of_coefficients),
                                       cmocka_unit_test(climbing_does_not_pass_the_bound),
                                       cmocka_unit_test(extreme_coefficients)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
