/* transform/block/core8x8.h against the matrix of H.264. INTRA.md 4. */
#include <math.h>

#include "tests/unit/support.h"

#include "transform/block/core8x8.h"

static const int64_t matrix[8][8] = {{8, 8, 8, 8, 8, 8, 8, 8},     {12, 10, 6, 3, -3, -6, -10, -12},
                                     {8, 4, -4, -8, -8, -4, 4, 8}, {10, -3, -12, -6, 6, 12, 3, -10},
                                     {8, -8, -8, 8, 8, -8, -8, 8}, {6, -12, 3, 10, -10, -3, 12, -6},
                                     {4, -8, 8, -4, -4, 8, -8, 4}, {3, -6, 10, -12, 12, -10, 6, -3}};
static const int64_t squared_norms[8] = {512, 578, 320, 578, 512, 578, 320, 578};

/* A times B, of which either may be transposed; the matrix stands for a null. */
static int64_t entry(const int64_t *block, int i, int j)
{
    return block ? block[8 * i + j] : matrix[i][j];
}

static void multiply(const int64_t *a, bool turn_a, const int64_t *b, bool turn_b, int64_t out[64])
{
    for (int i = 0; i < 8; i++)
        for (int j = 0; j < 8; j++) {
            out[8 * i + j] = 0;
            for (int k = 0; k < 8; k++)
                out[8 * i + j] +=
                    (turn_a ? entry(a, k, i) : entry(a, i, k)) * (turn_b ? entry(b, j, k) : entry(b, k, j));
        }
}

TEST(rows_are_orthogonal)
{
    int64_t products[64];
    multiply(NULL, false, NULL, true, products);
    for (int i = 0; i < 64; i++) {
        assert_int_equal(products[i], i % 9 ? 0 : squared_norms[i / 8]);
        const double norms = (double)(squared_norms[i / 8] * squared_norms[i % 8]);
        assert_int_equal(tsr_eight_norm(i), lround(exp2(24) / sqrt(norms)));
    }
}

/* Each place once; sums of row and column rise, and those of each sum lie on a diagonal. */
TEST(the_scan_is_a_zigzag)
{
    bool seen[64] = {false};
    for (int k = 0; k < 64; k++) {
        const int at = tsr_eight_scan_host[k], before = k > 0 ? tsr_eight_scan_host[k - 1] : 0;
        assert_false(seen[at]);
        seen[at] = true;
        const int sum = at / 8 + at % 8, sum_before = before / 8 + before % 8;
        assert_true(k == 0 || sum == sum_before || sum == sum_before + 1);
        if (k > 0 && sum == sum_before) assert_int_equal(at / 8 - before / 8, sum % 2 ? 1 : -1);
    }
}

TEST(both_ways)
{
    struct rng r = {401};
    for (int n = 0; n < 4000; n++) {
        int32_t block[64];
        int64_t plain[64], half[64], out[64];
        const int32_t limit = n % 3 == 0 ? 65535 : n % 3 == 1 ? 255 : 3;
        for (int i = 0; i < 64; i++)
            plain[i] = block[i] = n % 7 ? rng_between(&r, -limit, limit) : rng_below(&r, 2) ? limit : -limit;
        tsr_eight_forward(block);
        multiply(NULL, false, plain, false, half);
        multiply(half, false, NULL, true, out);
        for (int i = 0; i < 64; i++) assert_int_equal(block[i], out[i]);
    }
    for (int n = 0; n < 4000; n++) {
        int32_t block[64];
        int64_t plain[64], half[64], out[64];
        const int32_t limit = n % 2 ? TSR_EIGHT_LIMIT : 1 << rng_below(&r, 24);
        for (int i = 0; i < 64; i++)
            plain[i] = block[i] = n % 5 ? rng_between(&r, -limit, limit) : rng_below(&r, 2) ? limit : -limit;
        tsr_eight_inverse(block);
        multiply(NULL, true, plain, false, half);
        for (int i = 0; i < 64; i++) half[i] = floor_shift(half[i] + 32, 6);
        multiply(half, false, NULL, false, out);
        for (int i = 0; i < 64; i++) assert_int_equal(block[i], out[i]);
    }
}

/* Units and scaled coefficients: what is not rounded away comes back. */
TEST(steps)
{
    struct rng r = {402};
    for (int32_t q = 0; q <= TSR_QP_INDEX_LIMIT; q++)
        for (int c = 0; c < TSR_STEP_CLASSES; c++) {
            const int at = (int)rng_below(&r, 64), of = at / 8, to = at % 8;
            const double step = tsr_class_ratio_host[c] / 256.0 * exp2((q / 8.0 - 4) / 6);
            const double norm = sqrt((double)(squared_norms[of] * squared_norms[to]));
            const double value = rng_between(&r, -(1 << 28), 1 << 28);
            const double units = value / norm / step * 256;
            const int32_t got = tsr_eight_units((int32_t)value, q, tsr_eight_factor(q, c, tsr_eight_norm(at)));
            expect(fabs(got - units) <= 1 + fabs(units) / 100, "q %d, class %d: %d, %f", q, c, got, units);
            const int32_t coefficient = rng_between(&r, -200, 200);
            const double scaled = coefficient * step / norm * (1 << TSR_EIGHT_BITS);
            if (fabs(scaled) > TSR_EIGHT_LIMIT) continue;
            const int32_t back = tsr_eight_scale(coefficient, tsr_eight_step(q, c, tsr_eight_norm(at)), q);
            expect(fabs(back - scaled) <= 1 + fabs(scaled) / 100, "q %d, class %d: %d, %f", q, c, back, scaled);
        }
    const int32_t step = tsr_eight_step(TSR_QP_INDEX_LIMIT, TSR_STEP_CLASSES - 1, tsr_eight_norm(18));
    assert_true(step < 1 << TSR_EIGHT_STEP_BITS);
    assert_int_equal(tsr_eight_scale(TSR_COEFFICIENT_LIMIT - 1, step, TSR_QP_INDEX_LIMIT), TSR_EIGHT_LIMIT);
    assert_int_equal(tsr_eight_scale(1 - TSR_COEFFICIENT_LIMIT, step, TSR_QP_INDEX_LIMIT), -TSR_EIGHT_LIMIT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_orthogonal),
        cmocka_unit_test(the_scan_is_a_zigzag),
        cmocka_unit_test(both_ways),
        cmocka_unit_test(steps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
