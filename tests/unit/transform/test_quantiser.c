/* transform/block/quantiser.h: its tables, all steps, and the error that a step allows. FORMAT.md 8.2. */
#include "tests/unit/support.h"

#include <math.h>

#include "transform/block/core4x4.h"

enum { MOST_COEFFICIENT = 36 * 65535 };

static const double norms[3] = {4, 6.324555320336758664, 10}; /* of pairs of rows: 2 2, 2 sqrt(10), sqrt(10) sqrt(10) */

static double step_of(int32_t q)
{
    return pow(2, (q / 8.0 - 4) / 6);
}

TEST(tables)
{
    for (int m = 0; m < TSR_QP_OCTAVE; m++)
        for (int k = 0; k < 3; k++) {
            assert_int_equal(tsr_quantiser_forward_host[3 * m + k], lround(1048576 / (step_of(m) * norms[k])));
            assert_int_equal(tsr_quantiser_inverse_host[3 * m + k], lround(65536 * step_of(m) / norms[k]));
        }
}

/* FORMAT.md 8.2, with multiplications and divisions instead of shifts. */
static int64_t quantise_plainly(int64_t value, int32_t q, int norm_class, int64_t rounding)
{
    const int64_t factor = tsr_quantiser_forward_host[3 * (q % 48) + norm_class], divisor = (int64_t)1 << (20 + q / 48);
    const int64_t magnitude = (llabs(value) * factor + rounding * (divisor / 65536)) / divisor;
    return value < 0 ? -magnitude : magnitude;
}

static void check(int32_t value, int32_t q, int norm_class, int32_t rounding)
{
    const int32_t coefficient = tsr_quantise(value, q, norm_class, rounding);
    expect(coefficient == quantise_plainly(value, q, norm_class, rounding), "%d, q %d", value, q);
    expect(coefficient == -tsr_quantise(-value, q, norm_class, rounding), "%d, q %d", value, q);
    expect(tsr_abs(coefficient) < 1 << 21, "%d, q %d: coefficient %d", value, q, coefficient);

    /* Both in the scale of an orthonormal transform. Tables round their factors by half a unit at most. */
    const double n = norms[norm_class], step = step_of(q);
    const double back = (double)tsr_dequantise(coefficient, q, norm_class) * n / 65536, true_value = value / n;
    const double factors = 0.5 / tsr_quantiser_forward_host[3 * (q % 48) + norm_class] +
                           0.5 / tsr_quantiser_inverse_host[3 * (q % 48) + norm_class];
    const double allowed = (65536 - rounding) / 65536.0 * step + fabs(true_value) * factors * 1.01 + step * 1e-4;
    expect(fabs(back - true_value) <= allowed, "%d, q %d, class %d: %f back, %f, allowed %f", value, q, norm_class,
           back, true_value, allowed);
}

TEST(all_steps)
{
    static const int32_t roundings[] = {TSR_ROUND_DC, TSR_ROUND_AC};
    struct rng r = {9};
    for (int32_t q = 0; q <= TSR_QP_INDEX_LIMIT; q++)
        for (int k = 0; k < 3; k++)
            for (size_t i = 0; i < COUNT_OF(roundings); i++) {
                check(0, q, k, roundings[i]);
                check(MOST_COEFFICIENT, q, k, roundings[i]);
                for (int n = 0; n < 60; n++)
                    check((int32_t)rng_below(&r, (1u << rng_below(&r, 22)) + 1u), q, k, roundings[i]);
            }
}

TEST(quantised_values_rise)
{
    for (int32_t q = 0; q <= TSR_QP_INDEX_LIMIT; q += 11)
        for (int k = 0; k < 3; k++) {
            int32_t before = tsr_quantise(-3000, q, k, TSR_ROUND_AC);
            for (int32_t c = -2999; c <= 3000; c++) {
                const int32_t coefficient = tsr_quantise(c, q, k, TSR_ROUND_AC);
                assert_true(coefficient >= before && coefficient <= before + 1);
                before = coefficient;
            }
        }
}

/* Dequantised coefficients lie a step apart, and the step doubles every 48 indices. */
TEST(dequantised_coefficients)
{
    struct rng r = {10};
    for (int32_t q = 0; q <= TSR_QP_INDEX_LIMIT; q++)
        for (int k = 0; k < 3; k++) {
            const int64_t one = tsr_dequantise(1, q, k);
            if (q >= 48) assert_int_equal(one, 2 * tsr_dequantise(1, q - 48, k));
            if (q > 0) assert_true(one > tsr_dequantise(1, q - 1, k));
            for (int n = 0; n < 10; n++) {
                const int32_t coefficient = (int32_t)rng_below(&r, TSR_COEFFICIENT_LIMIT);
                assert_int_equal(tsr_dequantise(coefficient, q, k), one * coefficient);
                assert_int_equal(tsr_dequantise(-coefficient, q, k), -one * coefficient);
            }
        }
}

/* Whole blocks: the error of a sample is at most the sum of its 16 coefficients' errors, (1 - 1/3) times
 * (1/2 + 2/sqrt(10) + 1/2 + 1/sqrt(10))^2 = 2.54 steps, plus 1/2 for rounding the sample, plus the tables' share. */
TEST(blocks_through_the_quantiser)
{
    struct rng r = {11};
    for (int32_t q = 0; q <= TSR_QP_INDEX_LIMIT; q += 3) {
        for (int n = 0; n < 100; n++) {
            int32_t samples[16], block[16];
            int64_t scaled[16];
            for (int i = 0; i < 16; i++)
                samples[i] = n % 4 == 0   ? (rng_below(&r, 2) ? 65535 : 0)
                             : n % 4 == 1 ? (int32_t)rng_below(&r, 65536)
                                          : 30000 + (int32_t)rng_below(&r, 200);
            memcpy(block, samples, sizeof block);
            tsr_core_forward(block);
            for (int i = 0; i < 16; i++) {
                const int k = tsr_norm_class(i / 4, i % 4);
                scaled[i] = tsr_dequantise(tsr_quantise(block[i], q, k, i ? TSR_ROUND_AC : TSR_ROUND_DC), q, k);
            }
            tsr_core_inverse(scaled, block);
            for (int i = 0; i < 16; i++)
                expect(abs(block[i] - samples[i]) <= 2.54 * step_of(q) + 0.5 + 5, "q %d: %d to %d", q, samples[i],
                       block[i]);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tables), cmocka_unit_test(all_steps), cmocka_unit_test(quantised_values_rise),
        cmocka_unit_test(dequantised_coefficients), cmocka_unit_test(blocks_through_the_quantiser)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
