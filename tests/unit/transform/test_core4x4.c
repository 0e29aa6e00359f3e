/* transform/block/core4x4.h against the matrix of H.264. FORMAT.md 8.2. */
#include "tests/unit/support.h"

#include "transform/block/core4x4.h"

static const int64_t matrix[4][4] = {{1, 1, 1, 1}, {2, 1, -1, -2}, {1, -1, -1, 1}, {1, -2, 2, -1}};

/* C X C'. */
static void forward_plainly(const int32_t block[16], int64_t out[16])
{
    int64_t half[16];
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++) {
            half[4 * i + j] = 0;
            for (int k = 0; k < 4; k++) half[4 * i + j] += matrix[i][k] * block[4 * k + j];
        }
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++) {
            out[4 * i + j] = 0;
            for (int k = 0; k < 4; k++) out[4 * i + j] += half[4 * i + k] * matrix[j][k];
        }
}

/* (C' Z C + 2^15) >> 16, saturated. */
static void inverse_plainly(const int64_t scaled[16], int64_t out[16])
{
    int64_t half[16];
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++) {
            half[4 * i + j] = 0;
            for (int k = 0; k < 4; k++) half[4 * i + j] += matrix[k][i] * scaled[4 * k + j];
        }
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++) {
            int64_t sum = 1 << 15;
            for (int k = 0; k < 4; k++) sum += half[4 * i + k] * matrix[k][j];
            out[4 * i + j] = clamp_to(floor_shift(sum, 16), INT32_MIN, INT32_MAX);
        }
}

/* Checks a block both ways; returns its largest coefficient. */
static int64_t check(const int32_t samples[16])
{
    int32_t block[16], back[16];
    int64_t plain[16], scaled[16], most = 0;
    memcpy(block, samples, sizeof block);
    tsr_core_forward(block);
    forward_plainly(samples, plain);
    for (int i = 0; i < 16; i++) {
        assert_int_equal(block[i], plain[i]);
        if (llabs(plain[i]) > most) most = llabs(plain[i]);
        /* over the squared norms of its rows, with 16 fraction bits, to nearest */
        const int64_t norms = (i / 4 % 2 ? 10 : 4) * (i % 2 ? 10 : 4);
        scaled[i] = (2 * plain[i] * 65536 + (plain[i] < 0 ? -norms : norms)) / (2 * norms);
    }
    tsr_core_inverse(scaled, back);
    for (int i = 0; i < 16; i++) expect(back[i] == samples[i], "sample %d: %d to %d", i, samples[i], back[i]);
    return most;
}

TEST(rows_are_orthogonal)
{
    static const int64_t norms[4] = {4, 10, 4, 10};
    static const int64_t class_norms[3] = {4 * 4, 4 * 10, 10 * 10}; /* squares of 4, sqrt(40), 10 */
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++) {
            int64_t product = 0;
            for (int k = 0; k < 4; k++) product += matrix[i][k] * matrix[j][k];
            assert_int_equal(product, i == j ? norms[i] : 0);
            assert_int_equal(class_norms[tsr_norm_class(i, j)], norms[i] * norms[j]);
        }
}

TEST(random_blocks)
{
    struct rng r = {7};
    for (int n = 0; n < 20000; n++) {
        int32_t block[16];
        const uint32_t limit = n % 2 ? 65536 : 256;
        for (int i = 0; i < 16; i++) block[i] = (int32_t)rng_below(&r, limit);
        check(block);
    }
}

/* All blocks of samples 0 and 65535. A coefficient is at most 36 times a sample. To reach 36, samples would have to be
 * negative, too: basis functions have 2 and 1 of each sign, so unsigned samples reach 18. */
TEST(extreme_blocks)
{
    int64_t most = 0;
    for (uint32_t pattern = 0; pattern < 65536; pattern++) {
        int32_t block[16];
        for (int i = 0; i < 16; i++) block[i] = pattern >> i & 1u ? 65535 : 0;
        const int64_t here = check(block);
        if (here > most) most = here;
    }
    assert_int_equal(most, 18 * 65535);
}

TEST(one_dimension)
{
    for (int32_t n = 0; n < 16 * 16 * 16 * 16; n++) {
        int32_t v[4] = {n % 16 - 8, n / 16 % 16 - 8, n / 256 % 16 - 8, n / 4096 - 8};
        const int32_t in[4] = {v[0], v[1], v[2], v[3]};
        tsr_core_forward_1d(v, 1);
        for (int i = 0; i < 4; i++) {
            int64_t sum = 0;
            for (int k = 0; k < 4; k++) sum += matrix[i][k] * in[k];
            assert_int_equal(v[i], sum);
        }
    }
}

/* Input that a decoder may get: coefficients of any size below the limit, at the finest and the coarsest step. Under
 * UBSan this shows that nothing overflows. */
TEST(extreme_coefficients)
{
    static const int32_t steps[] = {0, 47, 48, 767, TSR_QP_INDEX_LIMIT};
    struct rng r = {8};
    for (size_t s = 0; s < COUNT_OF(steps); s++) {
        for (int n = 0; n < 4000; n++) {
            int64_t scaled[16], plain[16];
            int32_t block[16];
            const uint32_t pattern = n < 4 ? (n % 2 ? 0xffffu : 0u) : (uint32_t)rng_next(&r);
            for (int i = 0; i < 16; i++) {
                const int32_t coefficient = n % 3 == 2 ? (int32_t)rng_width(&r, 22) : TSR_COEFFICIENT_LIMIT - 1;
                scaled[i] = tsr_dequantise(pattern >> i & 1u ? -coefficient : coefficient, steps[s],
                                           tsr_norm_class(i / 4, i % 4));
                assert_true(llabs(scaled[i]) < (int64_t)1 << 54);
            }
            inverse_plainly(scaled, plain);
            tsr_core_inverse(scaled, block);
            for (int i = 0; i < 16; i++) assert_int_equal(block[i], plain[i]);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(rows_are_orthogonal), cmocka_unit_test(random_blocks),
                                       cmocka_unit_test(extreme_blocks), cmocka_unit_test(one_dimension),
                                       cmocka_unit_test(extreme_coefficients)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
