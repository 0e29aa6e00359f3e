/* transform/predict/predictor.h: taps and features, weights, the fixed-point solution. FORMAT.md 7.1. */
#include "tests/unit/support.h"

#include "transform/predict/predictor.h"

static const struct tsr_predictor_shape shapes[] = {{10, 0},
                                                    {10, 1},
                                                    {10, 2},
                                                    {18, 0},
                                                    {18, 1},
                                                    {18, 2},
                                                    {TSR_NEIGHBOURS_LIMIT, 0},
                                                    {TSR_NEIGHBOURS_LIMIT, 1},
                                                    {TSR_NEIGHBOURS_LIMIT, 2}};

TEST(taps_and_features)
{
    assert_int_equal(tsr_neighbours_host[0], 0);
    for (size_t i = 0; i < COUNT_OF(shapes); i++) {
        const struct tsr_predictor_shape shape = shapes[i];
        assert_int_equal(shape.neighbours, tsr_neighbours_host[1 + i / 3]);
        assert_int_equal(tsr_taps(shape), shape.neighbours + 5 * shape.references);
        assert_int_equal(tsr_features(shape), tsr_taps(shape) - 1 - shape.references);
        assert_true(tsr_taps(shape) <= TSR_TAPS_LIMIT && tsr_features(shape) <= TSR_FEATURES_LIMIT);
        /* features are all taps except the bases, in order; a feature's base is the last base before it */
        int base = 0;
        for (int tap = 0, f = 0; tap < tsr_taps(shape); tap++) {
            const bool is_base = tap == 0 || (tap >= shape.neighbours && (tap - shape.neighbours) % 5 == 0);
            if (is_base) base = tap;
            if (is_base) continue;
            assert_int_equal(tsr_feature_tap(shape, f), tap);
            assert_int_equal(tsr_feature_base(shape, f), base);
            f++;
        }
    }
    assert_int_equal(tsr_taps((struct tsr_predictor_shape){TSR_NEIGHBOURS_LIMIT, 2}), TSR_TAPS_LIMIT);
}

/* Neighbours are causal, all different and within the guards. They are decoded in time in a wavefront in which each row
 * is eight columns ahead of the next one and which takes four columns at a time. */
TEST(places_of_neighbours)
{
    assert_int_equal(tsr_tap_up_host[0], 0);
    assert_int_equal(tsr_tap_right_host[0], -1);
    for (int k = 0; k < TSR_NEIGHBOURS_LIMIT; k++) {
        const int up = tsr_tap_up_host[k], right = tsr_tap_right_host[k];
        assert_true(up > 0 || (up == 0 && right < 0));
        assert_true(right >= -TSR_GUARD && right <= TSR_GUARD);
        assert_true(right + 3 < 8 * up || up == 0);
        for (int j = 0; j < k; j++) assert_true(tsr_tap_up_host[j] != up || tsr_tap_right_host[j] != right);
    }
    /* tap 1 of a reference is the sample at the same place; the other taps are its direct neighbours */
    for (int k = 0; k < TSR_REFERENCE_TAPS; k++)
        assert_true(abs(tsr_reference_up_host[k]) + abs(tsr_reference_right_host[k]) == (k != 1));
}

/* The weights of each base's taps sum to 1024 or 0. Refused if a weight or the sum of magnitudes is too large. */
TEST(complete_weights)
{
    struct rng r = {90};
    int refused = 0, taken = 0;
    for (int n = 0; n < 100000; n++) {
        const struct tsr_predictor_shape shape = shapes[rng_below(&r, COUNT_OF(shapes))];
        int16_t of_feature[TSR_FEATURES_LIMIT], weight[TSR_TAPS_LIMIT];
        const int32_t most = n % 3 == 0 ? 8192 : (int32_t)rng_width(&r, 13);
        for (int f = 0; f < tsr_features(shape); f++)
            of_feature[f] = (int16_t)(n % 5 == 0 ? (rng_below(&r, 2) ? 1 : -1) * most : rng_between(&r, -most, most));
        int64_t base[3] = {1024, 0, 0}, magnitudes = 0;
        for (int f = 0; f < tsr_features(shape); f++) {
            base[f < shape.neighbours - 1 ? 0 : 1 + (f - shape.neighbours + 1) / 4] -= of_feature[f];
            magnitudes += abs(of_feature[f]);
        }
        bool fits = true;
        for (int b = 0; b <= shape.references; b++) {
            magnitudes += llabs(base[b]);
            fits = fits && llabs(base[b]) <= 32767;
        }
        fits = fits && magnitudes <= 65535;
        expect(tsr_complete_weights(shape, of_feature, weight) == fits, "case %d", n);
        refused += !fits;
        taken += fits;
        if (!fits) continue;
        int64_t sum = 0, extreme = 0;
        for (int k = 0; k < shape.neighbours; k++) sum += weight[k];
        assert_int_equal(sum, 1024);
        for (int i = 0; i < shape.references; i++) {
            sum = 0;
            for (int k = 0; k < 5; k++) sum += weight[shape.neighbours + 5 * i + k];
            assert_int_equal(sum, 0);
        }
        for (int f = 0; f < tsr_features(shape); f++)
            assert_int_equal(weight[tsr_feature_tap(shape, f)], of_feature[f]);
        for (int k = 0; k < tsr_taps(shape); k++) extreme += (int64_t)abs(weight[k]) * 32768;
        assert_true(extreme + 512 <= INT32_MAX);
    }
    assert_true(refused > 1000 && taken > 1000);
}

TEST(predictions)
{
    struct rng r = {91};
    static const int32_t ranges[] = {2, 3, 255, 4096, 65535, 65536};
    for (int n = 0; n < 100000; n++) {
        const int32_t range = ranges[rng_below(&r, COUNT_OF(ranges))];
        const int32_t sum = n == 0   ? INT32_MAX - 512
                            : n == 1 ? -INT32_MAX
                                     : (int32_t)((int64_t)(rng_next(&r) >> 32) - ((int64_t)1 << 31)) / 2;
        const int64_t value = floor_shift((int64_t)sum + 512, 10) + 32768;
        assert_int_equal(tsr_linear_prediction(sum, range), clamp_to(value, 0, range - 1));
    }
}

TEST(differences_and_fit_weights)
{
    for (uint32_t range = 2; range <= 65536; range += range < 70 ? 1 : range - 1) {
        const int shift = tsr_difference_shift(range), width = plain_width(range - 1);
        assert_int_equal(shift, width > 13 ? width - 13 : 0);
        for (int32_t d = -65535; d <= 65535; d += 1 + (d & 15))
            assert_int_equal(tsr_difference(d, shift), clamp_to(floor_shift(d, shift), -1023, 1023));
    }
    for (int32_t mean = 0; mean <= 32767; mean = 2 * mean + 1) {
        int before = TSR_FIT_WEIGHT_LIMIT;
        for (int32_t magnitude = 0; magnitude <= 65535; magnitude++) {
            const int weight = tsr_fit_weight(magnitude, mean);
            assert_in_range(weight, 0, before);
            before = weight;
        }
        for (int weight = 1; weight <= TSR_FIT_WEIGHT_LIMIT; weight++) {
            const int32_t largest = tsr_fit_magnitude(weight, mean);
            assert_true(largest == -1 || tsr_fit_weight(largest, mean) >= weight);
            assert_true(tsr_fit_weight(largest + 1, mean) < weight);
        }
        assert_true(tsr_fit_weight(mean, mean) > 0); /* places of mean magnitude take part */
    }
}

/* ---- The solution --------------------------------------------------------------------------------------------- */

static struct tsr_solver solver;

/* Sums over samples. Their target is the combination of the features, in 1024ths, plus noise of at most +-noise. */
static void sum_samples(struct rng *r, int n, const double *combination, int noise, int samples, int scale,
                        int64_t *sums)
{
    int32_t d[TSR_FEATURES_LIMIT + 1];
    for (int i = 0; i < TSR_SUMS_LIMIT; i++) sums[i] = 0;
    for (int s = 0; s < samples; s++) {
        double target = 0;
        const int32_t shared = rng_between(r, -scale, scale);
        for (int f = 0; f < n; f++) {
            d[f] = (int32_t)clamp_to(shared / 2 + rng_between(r, -scale, scale), -1023, 1023);
            target += combination[f] * d[f] / 1024;
        }
        d[n] = (int32_t)clamp_to((int32_t)(target + (target < 0 ? -0.5 : 0.5)) + rng_between(r, -noise, noise), -1023,
                                 1023);
        for (int i = 0; i <= n; i++)
            for (int j = 0; j <= i; j++) sums[i * (i + 1) / 2 + j] += (int64_t)7 * d[i] * d[j];
    }
}

/* The solver finds the weights from which the samples were made. */
TEST(known_systems)
{
    struct rng r = {92};
    int64_t sums[TSR_SUMS_LIMIT];
    for (int n = 0; n < 100; n++) {
        const int features = tsr_features(shapes[n % (int)COUNT_OF(shapes)]);
        double combination[TSR_FEATURES_LIMIT];
        int16_t of_feature[TSR_FEATURES_LIMIT];
        for (int f = 0; f < features; f++) combination[f] = rng_between(&r, -200, 200);
        const int scale = n % 2 ? 20 : 200;
        sum_samples(&r, features, combination, 0, 20000, scale, sums);
        tsr_solve_predictor(sums, features, of_feature, &solver);
        for (int f = 0; f < features; f++)
            expect(abs(of_feature[f] - (int)combination[f]) <= (scale == 20 ? 4 : 2), "feature %d of %d: %d, not %d", f,
                   features, of_feature[f], (int)combination[f]);
    }
}

/* One feature: the quotient of two sums, whatever their sizes. */
TEST(one_feature)
{
    struct rng r = {93};
    for (int n = 0; n < 20000; n++) {
        const int32_t scales[2] = {1 << rng_below(&r, 10), 1 << rng_below(&r, 10)};
        const int64_t copies = (int64_t)1 << rng_below(&r, 28);
        int64_t sums[3] = {0};
        for (int s = 0; s < 300; s++) {
            const int32_t feature = rng_between(&r, -scales[0], scales[0]);
            const int32_t target = rng_between(&r, -scales[1], scales[1]) + (n % 2 ? feature / 2 : 0);
            sums[0] += copies * feature * feature;
            sums[1] += copies * feature * target;
            sums[2] += copies * target * target;
        }
        int16_t w;
        tsr_solve_predictor(sums, 1, &w, &solver);
        const double wanted = 1024 * (double)sums[1] / (double)sums[0];
        const double bounded = wanted < -8191 ? -8191 : wanted > 8191 ? 8191 : wanted;
        const double allowed = 1.5 + 0.001 * (bounded < 0 ? -bounded : bounded);
        expect(bounded - w < allowed && w - bounded < allowed, "%d, not %f", w, wanted);
    }
}

/* Sums that are all 0; features that are all the same; features that are always 0. */
TEST(singular_systems)
{
    struct rng r = {94};
    int64_t sums[TSR_SUMS_LIMIT] = {0};
    int16_t of_feature[TSR_FEATURES_LIMIT];
    for (size_t i = 0; i < COUNT_OF(shapes); i++) {
        const int n = tsr_features(shapes[i]);
        memset(sums, 0, sizeof sums);
        memset(of_feature, 0xa5, sizeof of_feature);
        tsr_solve_predictor(sums, n, of_feature, &solver);
        for (int f = 0; f < n; f++) assert_int_equal(of_feature[f], 0);

        /* all features the same, the target half of them: together they weigh 512 */
        for (int a = 0; a <= n; a++)
            for (int b = 0; b <= a; b++) sums[a * (a + 1) / 2 + b] = 4000000 / (a == n ? 2 : 1) / (b == n ? 2 : 1);
        tsr_solve_predictor(sums, n, of_feature, &solver);
        int together = 0;
        for (int f = 0; f < n; f++) together += of_feature[f];
        expect(abs(together - 512) <= 4 + n / 2, "%d of %d features", together, n);

        /* every other feature is always 0, and gets weight 0 */
        double combination[TSR_FEATURES_LIMIT] = {0};
        for (int f = 0; f < n; f += 2) combination[f] = rng_between(&r, -150, 150);
        sum_samples(&r, n, combination, 1, 5000, 100, sums);
        for (int a = 0; a <= n; a++)
            for (int b = 0; b <= a; b++)
                if ((a < n && a % 2) || (b < n && b % 2)) sums[a * (a + 1) / 2 + b] = 0;
        tsr_solve_predictor(sums, n, of_feature, &solver);
        for (int f = 1; f < n; f += 2) assert_int_equal(of_feature[f], 0);
    }
}

/* Sums of any kind, up to the largest that a plane of 2^27 samples gives, give weights within bounds. The sanitizer
 * checks that nothing overflows. The same sums give the same weights. */
TEST(extreme_sums)
{
    struct rng r = {95};
    int64_t sums[TSR_SUMS_LIMIT];
    int32_t d[TSR_FEATURES_LIMIT + 1];
    for (int n = 0; n < 2000; n++) {
        const struct tsr_predictor_shape shape = shapes[rng_below(&r, COUNT_OF(shapes))];
        const int features = tsr_features(shape), samples = rng_between(&r, 1, 40), kind = n % 5;
        const int64_t copies = rng_below(&r, 2) ? 1 : (int64_t)7 << (int)rng_below(&r, 25);
        memset(sums, 0, sizeof sums);
        for (int s = 0; s < samples; s++) {
            for (int f = 0; f <= features; f++)
                d[f] = kind == 0   ? rng_between(&r, -1023, 1023)
                       : kind == 1 ? (rng_below(&r, 2) ? 1023 : -1023)
                       : kind == 2 ? 1023
                       : kind == 3 ? (rng_below(&r, 50) ? 0 : rng_between(&r, -1023, 1023))
                                   : rng_between(&r, -1, 1) * (f % 2 ? 1023 : 1);
            for (int i = 0; i <= features; i++)
                for (int j = 0; j <= i; j++) sums[i * (i + 1) / 2 + j] += copies * d[i] * d[j];
        }
        int16_t of_feature[TSR_FEATURES_LIMIT], again[TSR_FEATURES_LIMIT];
        tsr_solve_predictor(sums, features, of_feature, &solver);
        for (int f = 0; f < features; f++) assert_in_range(of_feature[f] + TSR_WEIGHT_LIMIT, 0, 2 * TSR_WEIGHT_LIMIT);
        memset(&solver, 0xa5, sizeof solver);
        tsr_solve_predictor(sums, features, again, &solver);
        assert_memory_equal(of_feature, again, (size_t)features * sizeof again[0]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(taps_and_features),
                                       cmocka_unit_test(places_of_neighbours),
                                       cmocka_unit_test(complete_weights),
                                       cmocka_unit_test(predictions),
                                       cmocka_unit_test(differences_and_fit_weights),
                                       cmocka_unit_test(known_systems),
                                       cmocka_unit_test(one_feature),
                                       cmocka_unit_test(singular_systems),
                                       cmocka_unit_test(extreme_sums)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
