/* kernels/tables/merge_cells_cpu.h: the merging of cells into tables, against the description in entropy/contexts.h,
 * and each form of the costs against tsr_count_cost. */
#include "tests/unit/support.h"

#include "kernels/tables/merge_cells_cpu.h"

/* The cost of the table that two cells make together, or one with b NULL; 0 if nothing was counted. */
static uint64_t table_cost(const uint32_t *a, const uint32_t *b, int symbols)
{
    uint64_t total = 0, inside = 0;
    uint32_t used = 0, gaps = 0, gap = 0;
    for (int s = 0; s < symbols; s++) {
        const uint32_t count = a[s] + (b ? b[s] : 0u);
        total += count;
        inside += count ? tsr_count_cost(count) : 0;
        used += count != 0;
        gaps += gap & (count != 0);
        gap = count == 0;
    }
    if (total == 0) return 0;
    return tsr_symbols_cost(tsr_count_cost((uint32_t)total), inside) + tsr_description_cost(used, gaps);
}

TEST(costs_of_tables)
{
    static const uint32_t none[8], one[8] = {0, 0, 0, 1000}, even[8] = {64, 64, 64, 64},
                                   gaps[8] = {64, 0, 64, 0, 0, 64, 64};
    static const uint32_t left[8] = {64, 64}, right[8] = {0, 0, 64, 64};
    assert_int_equal(table_cost(none, NULL, 8), 0);
    assert_int_equal(table_cost(one, NULL, 8), (8 + 2 + 6) * TSR_COST_BIT);
    assert_int_equal(table_cost(even, NULL, 8), (256 * 2 + 8 + 2 * 4) * TSR_COST_BIT);
    assert_int_equal(table_cost(gaps, NULL, 8), (256 * 2 + 8 + 2 * 4 + 6 * 2) * TSR_COST_BIT);
    assert_int_equal(table_cost(left, right, 8), table_cost(even, NULL, 8));
}

/* Counts of all widths, at all ends of rows: what is behind the end does not count. */
TEST(forms_of_costs)
{
    enum { ROOM = TSR_MERGE_SYMBOLS + 32 };
    static struct tsr_merge_work work;
    static uint32_t rows[2][ROOM];
    struct rng r = {33};
    const enum tsr_isa best = tsr_best_isa();
    for (int n = 0; n < 4000; n++) {
        const int end = n < TSR_MERGE_SYMBOLS ? n : rng_between(&r, 0, 70), width = rng_between(&r, 1, 32);
        uint64_t expected = 0;
        for (int s = 0; s < ROOM; s++) {
            uint32_t sum = rng_below(&r, 4) ? rng_width(&r, width) : (uint32_t)((uint64_t)1 << rng_below(&r, 33)) - 1;
            if (rng_below(&r, 8) == 0) sum = (uint32_t)1 << rng_below(&r, 32);
            if (rng_below(&r, 8) == 0) sum = 0;
            rows[0][s] = rng_below(&r, 2) ? sum : sum / 3;
            rows[1][s] = sum - rows[0][s];
            if (s < end && sum > 0) expected += tsr_count_cost(sum);
        }
        for (int isa = TSR_ISA_PLAIN; isa <= (int)best; isa++) {
            tsr_begin_merging(&work, (enum tsr_isa)isa);
            const uint64_t found = work.cost_counts(&work, rows[0], rows[1], end);
            expect(found == expected, "form %d, %d counts below 2^%d", isa, end, width);
        }
    }
}

enum { SYMBOLS = 12 };

/* The greedy merging that contexts.h describes, with every gain computed anew. */
static int merge_plainly(uint32_t counts[][SYMBOLS], int cells, uint8_t *table_of)
{
    int living[TSR_CELL_LIMIT], alive = 0, owner[TSR_CELL_LIMIT];
    for (int c = 0; c < cells; c++) {
        owner[c] = c;
        if (table_cost(counts[c], NULL, SYMBOLS) > 0)
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
                    (int64_t)(table_cost(a, b, SYMBOLS) - table_cost(a, NULL, SYMBOLS) - table_cost(b, NULL, SYMBOLS));
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
    for (int n = 0; n < 180; n++) {
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
        tsr_begin_merging(&work, (enum tsr_isa)(n % ((int)tsr_best_isa() + 1)));
        const int tables = tsr_merge_cells(&counts[0][0], cells, SYMBOLS, table_of, &work);
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
    const struct CMUnitTest tests[] = {cmocka_unit_test(costs_of_tables), cmocka_unit_test(forms_of_costs),
                                       cmocka_unit_test(merging), cmocka_unit_test(nothing_to_merge)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
