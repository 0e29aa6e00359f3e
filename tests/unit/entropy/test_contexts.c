/* entropy/contexts.h: activities and groups. FORMAT.md 7.3. */
#include "tests/unit/support.h"

#include "entropy/contexts.h"

TEST(activities)
{
    struct rng r = {29};
    for (int n = 0; n < 20000; n++) {
        int32_t m[6];
        for (int i = 0; i < 6; i++) {
            const int32_t e = (n % 2 ? 1 : -1) * (int32_t)rng_width(&r, 16);
            m[i] = tsr_context_magnitude(e);
            assert_int_equal(m[i], abs(e) > 4095 ? 4095 : abs(e));
        }
        assert_int_equal(tsr_activity(m[0], m[1], m[2], m[3], m[4], m[5]),
                         2 * m[0] + 2 * m[1] + m[2] + m[3] + m[4] + m[5]);
        /* the first row: W for N, NW and NE, WW for NN */
        assert_int_equal(tsr_activity_first_row(m[0], m[4]), tsr_activity(m[0], m[0], m[0], m[0], m[4], m[4]));
    }
}

TEST(bins)
{
    int before = 0;
    for (int32_t a = 0; a <= 8 * TSR_MAGNITUDE_LIMIT; a++) {
        const int bin = tsr_activity_bin(a);
        assert_int_equal(bin, tsr_token((uint32_t)a).symbol);
        assert_true(bin == before || bin == before + 1);
        before = bin;
    }
    assert_int_equal(before, TSR_ACTIVITY_BINS - 1);
    for (uint32_t range = 1; range <= 65536; range++) {
        const int bits = plain_width(range - 1), shift = tsr_intensity_shift(range);
        assert_int_equal(shift, bits > 12 ? bits - 12 : 0);
        assert_true((range - 1) >> shift < TSR_INTENSITY_BINS);
    }
}

TEST(groups)
{
    struct rng r = {30};
    uint32_t counts[200];
    uint16_t cuts[16];
    uint8_t group_of[200];
    for (int n = 0; n < 5000; n++) {
        const int bins = rng_between(&r, 1, 200), groups = rng_between(&r, 1, TSR_ACTIVITY_GROUPS);
        const uint32_t density = rng_below(&r, 5);
        uint64_t total = 0;
        for (int i = 0; i < bins; i++) {
            counts[i] = rng_below(&r, 4) < density ? rng_width(&r, n % 2 ? 32 : 6) : 0;
            total += counts[i];
        }
        const int count = tsr_cut_quantiles(counts, bins, groups, cuts);
        uint64_t before = 0; /* the middle of a bin's samples decides its group; a cut is where the group changes */
        int expected = 0, last = -1;
        for (int bin = 0; bin < bins; bin++) {
            if (counts[bin] == 0) continue;
            const int group = (int)((2 * before + counts[bin]) * (unsigned)groups / (2 * total));
            if (last >= 0 && group != last) assert_int_equal(cuts[expected++], bin);
            last = group;
            before += counts[bin];
        }
        assert_int_equal(count, expected);
        assert_in_range(count, 0, groups - 1);
        for (int i = 0; i < count; i++) {
            assert_in_range(cuts[i], i ? cuts[i - 1] + 1 : 1, bins - 1);
            assert_true(counts[cuts[i]] > 0);
        }
        tsr_group_bins(cuts, count, bins, group_of);
        uint64_t in_group[TSR_ACTIVITY_GROUPS] = {0}, largest[TSR_ACTIVITY_GROUPS] = {0};
        for (int bin = 0; bin < bins; bin++) {
            int group = 0; /* FORMAT.md 7.3: the number of cuts that are not above it */
            for (int i = 0; i < count; i++) group += cuts[i] <= bin;
            assert_int_equal(group_of[bin], group);
            in_group[group] += counts[bin];
            if (counts[bin] > largest[group]) largest[group] = counts[bin];
        }
        /* a group has its share of the samples, give or take half of the bins at its ends */
        for (int g = 0; g <= count; g++)
            assert_true((in_group[g] - largest[g]) * (unsigned)groups <= total + (unsigned)groups);
    }
    for (int i = 0; i < 160; i++) counts[i] = 7; /* equal bins give equal groups */
    assert_int_equal(tsr_cut_quantiles(counts, 160, 16, cuts), 15);
    for (int i = 0; i < 15; i++) assert_int_equal(cuts[i], 10 * (i + 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(activities), cmocka_unit_test(bins), cmocka_unit_test(groups)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
