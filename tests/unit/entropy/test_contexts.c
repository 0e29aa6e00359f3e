/* entropy/contexts.h: activities, groups, and the merging of cells into tables. FORMAT.md 7.3. */
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

static struct tsr_merge_work costs;

TEST(costs_of_tables)
{
    tsr_fill_count_costs(&costs);
    static const uint32_t none[8], one[8] = {0, 0, 0, 1000}, even[8] = {64, 64, 64, 64},
                                   gaps[8] = {64, 0, 64, 0, 0, 64, 64};
    static const uint32_t left[8] = {64, 64}, right[8] = {0, 0, 64, 64};
    assert_int_equal(tsr_table_cost(&costs, none, NULL, 8), 0);
    assert_int_equal(tsr_table_cost(&costs, none, none, 8), 0);
    assert_int_equal(tsr_table_cost(&costs, one, NULL, 8), (8 + 2 + 6) * TSR_COST_BIT);
    assert_int_equal(tsr_table_cost(&costs, even, NULL, 8), (256 * 2 + 8 + 2 * 4) * TSR_COST_BIT);
    assert_int_equal(tsr_table_cost(&costs, gaps, NULL, 8), (256 * 2 + 8 + 2 * 4 + 6 * 2) * TSR_COST_BIT);
    assert_int_equal(tsr_table_cost(&costs, left, right, 8), tsr_table_cost(&costs, even, NULL, 8));
}

/* What is known of two cells gives the same as a look at all of their symbols. */
TEST(costs_of_pairs)
{
    static uint32_t counts[2][TSR_MERGE_SYMBOLS];
    struct rng r = {32};
    tsr_fill_count_costs(&costs);
    for (int n = 0; n < 2000; n++) {
        const int symbols = rng_between(&r, 1, TSR_MERGE_SYMBOLS);
        const uint32_t sparse = 1 + rng_below(&r, 8);
        memset(counts, 0, sizeof counts);
        for (int c = 0; c < 2; c++) {
            uint32_t *cell = &counts[0][0] + c * symbols;
            for (int s = 0; s < symbols; s++) cell[s] = rng_below(&r, sparse) ? 0 : rng_below(&r, 3000);
            tsr_know_cell(&counts[0][0], symbols, &costs, c);
        }
        if (costs.total[0] == 0 && costs.total[1] == 0) continue; /* such cells are not merged */
        assert_int_equal(tsr_pair_cost(&counts[0][0], symbols, &costs, 0, 1),
                         tsr_table_cost(&costs, &counts[0][0], &counts[0][0] + symbols, symbols));
    }
}

enum { SYMBOLS = 12 };

/* The greedy merging that contexts.h describes, with every gain computed anew. */
static int merge_plainly(uint32_t counts[][SYMBOLS], int cells, uint8_t *table_of)
{
    int living[TSR_CELL_LIMIT], alive = 0, owner[TSR_CELL_LIMIT];
    tsr_fill_count_costs(&costs);
    for (int c = 0; c < cells; c++) {
        owner[c] = c;
        if (tsr_table_cost(&costs, counts[c], NULL, SYMBOLS) > 0)
            living[alive++] = c;
        else
            owner[c] = -1;
    }
    while (alive > 1) {
        int64_t best = INT64_MAX;
        int at = 0, with = 0;
        for (int i = 0; i < alive; i++)
            for (int j = i + 1; j < alive && j <= i + TSR_MERGE_WINDOW; j++) {
                const uint32_t *a = counts[living[i]], *b = counts[living[j]];
                const int64_t gain =
                    (int64_t)(tsr_table_cost(&costs, a, b, SYMBOLS) - tsr_table_cost(&costs, a, NULL, SYMBOLS) -
                              tsr_table_cost(&costs, b, NULL, SYMBOLS));
                if (gain < best) {
                    best = gain;
                    at = i;
                    with = j;
                }
            }
        if (best >= 0 && alive <= TSR_TABLE_LIMIT) break;
        const int a = living[at], b = living[with];
        for (int s = 0; s < SYMBOLS; s++) counts[a][s] += counts[b][s];
        for (int c = 0; c < cells; c++)
            if (owner[c] == b) owner[c] = a;
        for (int i = with; i + 1 < alive; i++) living[i] = living[i + 1];
        alive--;
    }
    uint8_t before = 0;
    for (int c = 0; c < cells; c++) {
        for (int t = 0; t < alive; t++)
            if (owner[c] == living[t]) before = (uint8_t)t;
        table_of[c] = before;
    }
    return alive;
}

TEST(merging)
{
    static struct tsr_merge_work work;
    static uint32_t counts[TSR_CELL_LIMIT][SYMBOLS], plain[TSR_CELL_LIMIT][SYMBOLS], cell[TSR_CELL_LIMIT][SYMBOLS];
    uint8_t table_of[TSR_CELL_LIMIT], plain_table_of[TSR_CELL_LIMIT];
    struct rng r = {31};
    int most = 0, least = TSR_CELL_LIMIT;
    for (int n = 0; n < 60; n++) {
        const int cells = n % 10 == 0 ? TSR_CELL_LIMIT : rng_between(&r, 1, n % 10 == 1 ? 4 : 100);
        const uint32_t empty = rng_below(&r, 4);
        const int width = rng_between(&r, 2, 14);
        memset(counts, 0, sizeof counts);
        for (int c = 0; c < cells; c++) {
            const uint32_t centre = rng_below(&r, SYMBOLS);
            if (rng_below(&r, 5) < empty) continue;
            for (uint32_t s = 0; s < SYMBOLS; s++)
                if (n % 3 || s == centre || rng_below(&r, 3) == 0)
                    counts[c][s] = rng_width(&r, width) >> (s > centre ? s - centre : centre - s) / 2;
        }
        memcpy(plain, counts, sizeof counts);
        memcpy(cell, counts, sizeof counts);
        const int tables = tsr_merge_contexts(&counts[0][0], cells, SYMBOLS, table_of, &work);
        assert_int_equal(tables, merge_plainly(plain, cells, plain_table_of));
        if (tables == 0) continue;
        assert_memory_equal(table_of, plain_table_of, (size_t)cells);
        assert_in_range(tables, 1, TSR_TABLE_LIMIT);
        uint32_t sums[TSR_TABLE_LIMIT][SYMBOLS] = {{0}};
        int known = 0; /* tables are numbered in the order of their first cells */
        for (int c = 0; c < cells; c++) {
            assert_in_range(table_of[c], 0, known);
            if (table_of[c] == known) known++;
            for (int s = 0; s < SYMBOLS; s++) sums[table_of[c]][s] += cell[c][s];
        }
        assert_int_equal(known, tables);
        assert_memory_equal(sums, counts, (size_t)tables * sizeof sums[0]);
        most = tsr_max(most, tables);
        least = tsr_min(least, tables);
    }
    assert_int_equal(most, TSR_TABLE_LIMIT); /* the cases include the limit and a single table */
    assert_int_equal(least, 1);
}

TEST(nothing_to_merge)
{
    static struct tsr_merge_work work;
    uint32_t counts[3][SYMBOLS] = {{0}};
    uint8_t table_of[3];
    assert_int_equal(tsr_merge_contexts(&counts[0][0], 3, SYMBOLS, table_of, &work), 0);
    for (int c = 0; c < 3; c++) assert_int_equal(table_of[c], 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(activities),      cmocka_unit_test(bins),
                                       cmocka_unit_test(groups),          cmocka_unit_test(costs_of_tables),
                                       cmocka_unit_test(costs_of_pairs),  cmocka_unit_test(merging),
                                       cmocka_unit_test(nothing_to_merge)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
