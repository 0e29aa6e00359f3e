/* transform/predict/anchor.h: anchors, their bins, and residuals that give the sample back. FORMAT.md 7.10. */
#include "tests/unit/support.h"

#include "transform/predict/anchor.h"

/* Anchors by a search over all candidates, in 64ths. */
TEST(anchors_are_the_nearest)
{
    struct rng r = {120};
    int far = 0, turned = 0, by_step[TSR_ANCHOR_STEPS + 1] = {0};
    for (int n = 0; n < 200000; n++) {
        const uint32_t spread = n % 3 == 0 ? 65536 : n % 3 == 1 ? 8 : 3;
        int32_t near[5];
        for (int k = 0; k < 4; k++) near[k] = (int32_t)rng_below(&r, spread);
        const int32_t w = near[0], north = near[1], low = w < north ? w : north, high = w < north ? north : w;
        near[4] = (int32_t)clamp_to(w + north - near[2], low, high);
        const int32_t p = (int32_t)rng_below(&r, spread), f = rng_below(&r, 2) ? rng_between(&r, -32, 31) : 0;
        int32_t value = 0, distance = 0, least = INT32_MAX;
        for (int k = 0; k < 5; k++) {
            const int32_t d = 64 * (int32_t)clamp_to(p - near[k], -2, 2) + f;
            if (abs(d) >= least) continue;
            least = abs(d);
            value = near[k];
            distance = d;
        }
        const struct tsr_anchor a = tsr_choose_anchor(p, f, w, north, near[2], near[3]);
        const int step = (least >= 5) + (least >= 16) + (least >= 32) + (least >= 64) + (least >= 96);
        assert_int_equal(a.step, step);
        assert_int_equal(a.value, least >= 96 ? p : value);
        assert_int_equal(a.distance, least >= 96 ? f : distance);
        assert_int_equal(tsr_anchor_bin(a.step, w, north, near[3]), 4 * step + (w == north) + 2 * (north == near[3]));
        far += least >= 96;
        turned += a.distance < 0;
        by_step[step]++;
    }
    assert_true(far > 1000 && turned > 1000);
    for (int s = 0; s <= TSR_ANCHOR_STEPS; s++) assert_true(by_step[s] > 1000);
}

/* The fraction and the whole prediction make the sum again, in 64ths; at the ends of the range there is none. */
TEST(fractions_complete_predictions)
{
    struct rng r = {121};
    for (int n = 0; n < 200000; n++) {
        const int32_t range = rng_between(&r, 1, 65536), sum = rng_between(&r, -(1 << 26), 1 << 26);
        const int32_t whole = (int32_t)floor_shift(sum, 10) + 32768, f = tsr_prediction_fraction(sum, range);
        assert_in_range(f + 32, 0, 63);
        if (whole < 0 || whole >= range)
            assert_int_equal(f, 0);
        else
            assert_int_equal(64 * (whole - 32768) + f + 32, floor_shift(sum, 4));
    }
}

/* Residuals are within their limits, whatever the side, and give the sample back. */
TEST(residuals_give_samples_back)
{
    static const int32_t ranges[] = {2, 3, 255, 256, 511, 65535, 65536};
    struct rng r = {122};
    for (int n = 0; n < 200000; n++) {
        const int32_t range = ranges[rng_below(&r, COUNT_OF(ranges))];
        const int32_t sample = (int32_t)rng_below(&r, (uint32_t)range);
        const struct tsr_anchor a = {(int32_t)rng_below(&r, (uint32_t)range), rng_between(&r, -159, 159), 0};
        const int32_t e = tsr_anchored_residual(a, sample, range);
        assert_true(e >= -(range / 2) && e <= (range - 1) / 2);
        assert_int_equal(tsr_anchored_sample(a, e, range), sample);
        int32_t plain = a.distance < 0 ? a.value - e : a.value + e;
        if (plain < 0) plain += range;
        if (plain >= range) plain -= range;
        assert_int_equal(plain, sample);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(anchors_are_the_nearest),
                                       cmocka_unit_test(fractions_complete_predictions),
                                       cmocka_unit_test(residuals_give_samples_back)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
