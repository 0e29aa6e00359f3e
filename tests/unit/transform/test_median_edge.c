/* transform/predict/median_edge.h: the median of W, N and W + N - NW. */
#include "tests/unit/support.h"

#include "transform/predict/median_edge.h"

static int32_t median_of_three(int32_t a, int32_t b, int32_t c)
{
    const int32_t least = a < b ? (a < c ? a : c) : (b < c ? b : c);
    const int32_t most = a > b ? (a > c ? a : c) : (b > c ? b : c);
    return (int32_t)((int64_t)a + b + c - least - most);
}

static void check(int32_t w, int32_t n, int32_t nw)
{
    assert_int_equal(tsr_median_edge(w, n, nw), median_of_three(w, n, w + n - nw));
}

TEST(small_values)
{
    for (int32_t w = -12; w < 12; w++)
        for (int32_t n = -12; n < 12; n++)
            for (int32_t nw = -12; nw < 12; nw++) check(w, n, nw);
}

TEST(samples_and_coefficients)
{
    static const int32_t extremes[] = {0, 1, 255, 4095, 65534, 65535, (1 << 23) - 2049, -(1 << 23) + 2049};
    struct rng r = {3};
    for (size_t i = 0; i < COUNT_OF(extremes); i++)
        for (size_t j = 0; j < COUNT_OF(extremes); j++)
            for (size_t k = 0; k < COUNT_OF(extremes); k++) check(extremes[i], extremes[j], extremes[k]);
    for (int i = 0; i < 100000; i++)
        check((int32_t)rng_below(&r, 65536), (int32_t)rng_below(&r, 65536), (int32_t)rng_below(&r, 65536));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(small_values), cmocka_unit_test(samples_and_coefficients)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
