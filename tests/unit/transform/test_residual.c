/* transform/predict/residual.h: a residual determines its sample, for every range. */
#include "tests/unit/support.h"

#include "transform/predict/residual.h"

static int32_t check(int32_t sample, int32_t prediction, int32_t range)
{
    const int32_t e = tsr_residual(sample, prediction, range);
    expect(e >= -(range / 2) && e <= (range - 1) / 2, "sample %d, prediction %d, range %d: %d", sample, prediction,
           range, e);
    expect((sample - prediction - e) % range == 0, "sample %d, prediction %d, range %d: %d", sample, prediction, range,
           e);
    expect(tsr_residual_inverse(e, prediction, range) == sample, "sample %d, prediction %d, range %d: %d", sample,
           prediction, range, e);
    return e;
}

/* All samples under one prediction: their residuals are all different, so they fill the interval. */
static void check_bijection(int32_t prediction, int32_t range)
{
    static uint8_t seen[65536];
    memset(seen, 0, (size_t)range);
    for (int32_t sample = 0; sample < range; sample++) {
        uint8_t *place = &seen[check(sample, prediction, range) + range / 2];
        expect(*place == 0, "prediction %d, range %d", prediction, range);
        *place = 1;
    }
}

TEST(small_ranges)
{
    for (int32_t range = 1; range <= 100; range++)
        for (int32_t prediction = 0; prediction < range; prediction++) check_bijection(prediction, range);
}

TEST(large_ranges)
{
    static const int32_t ranges[] = {255, 256, 257, 4095, 4096, 65535, 65536};
    for (size_t i = 0; i < COUNT_OF(ranges); i++) {
        const int32_t range = ranges[i];
        const int32_t predictions[] = {0, 1, range / 2 - 1, range / 2, range / 2 + 1, range - 2, range - 1};
        for (size_t j = 0; j < COUNT_OF(predictions); j++) check_bijection(predictions[j], range);
    }
}

TEST(every_range)
{
    struct rng r = {4};
    for (int32_t range = 2; range <= 65536; range++) {
        const int32_t places[] = {0, range / 2 - 1, range / 2, range - 1, (int32_t)rng_below(&r, (uint32_t)range)};
        for (size_t i = 0; i < COUNT_OF(places); i++)
            for (size_t j = 0; j < COUNT_OF(places); j++) check(places[i], places[j], range);
    }
}

TEST(folding)
{
    for (int32_t e = -70000; e <= 70000; e++) {
        const uint32_t folded = tsr_fold(e);
        assert_int_equal(folded, e >= 0 ? 2 * e : -2 * e - 1);
        assert_int_equal(tsr_unfold(folded), e);
    }
    static const int32_t far[] = {(1 << 23) - 2049, -(1 << 23) + 2049, INT32_MAX, -INT32_MAX, INT32_MIN};
    for (size_t i = 0; i < COUNT_OF(far); i++) assert_int_equal(tsr_unfold(tsr_fold(far[i])), far[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(small_ranges), cmocka_unit_test(large_ranges),
                                       cmocka_unit_test(every_range), cmocka_unit_test(folding)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
