/* entropy/code_cost.h against the logarithm. */
#include "tests/unit/support.h"

#include <math.h>

#include "entropy/code_cost.h"

static void check(uint32_t value)
{
    const double difference = tsr_log2_cost(value) - 4096 * log2(value);
    expect(fabs(difference) <= 1, "%u: off by %f", value, difference);
}

TEST(near_the_logarithm)
{
    struct rng r = {24};
    for (uint32_t v = 1; v < 200000; v++) check(v);
    for (int n = 0; n < 300000; n++) check(1u + rng_width(&r, 31));
    check(UINT32_MAX);
    for (int k = 0; k < 32; k++) assert_int_equal(tsr_log2_cost(1u << k), k * TSR_COST_BIT);
}

TEST(monotone)
{
    for (int octave = 0; octave < 32; octave++) {
        const uint32_t first = 1u << octave, step = octave > 16 ? (1u << (octave - 16)) - 1u : 1;
        uint32_t before = 0;
        for (uint64_t v = first; v <= 2 * (uint64_t)first && v <= UINT32_MAX; v += step) {
            const uint32_t cost = tsr_log2_cost((uint32_t)v);
            expect(cost >= before, "%u", (uint32_t)v);
            before = cost;
        }
    }
    for (int i = 1; i < 129; i++) assert_true(tsr_log2_mantissa_host[i] > tsr_log2_mantissa_host[i - 1]);
}

TEST(magnitudes)
{
    for (uint32_t m = 0; m <= 65536; m++) {
        assert_int_equal(tsr_magnitude_cost(m), tsr_log2_cost(1 + 2 * m));
        if (m > 0) assert_true(tsr_magnitude_cost(m) >= tsr_magnitude_cost(m - 1));
    }
    assert_int_equal(tsr_magnitude_cost(0), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(near_the_logarithm), cmocka_unit_test(monotone),
                                       cmocka_unit_test(magnitudes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
