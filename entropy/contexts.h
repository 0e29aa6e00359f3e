/* Contexts of path P: activity around a sample x its predicted value, cut at quantiles, merged by cost into code
 * tables. FORMAT.md section 7.3. The merging also serves the coefficient tables of path T.
 *
 * Static contexts need no state that adapts, so every sample's context is known from its neighbours alone: an
 * encoder codes all samples at once. */
#ifndef TSR_ENTROPY_CONTEXTS_H
#define TSR_ENTROPY_CONTEXTS_H

#include "code_cost.h"
#include "token.h"

enum {
    TSR_MAGNITUDE_LIMIT = 4095,       /* residual magnitudes saturate here: eight of them fit 16 bits */
    TSR_ACTIVITY_BINS = 60,           /* tokens of 0 .. 8 x 4095 */
    TSR_ACTIVITY_GROUPS = 10,         /* most groups, each of equally many samples */
    TSR_INTENSITY_BINS = 4096,        /* the predicted value's top 12 bits within the plane's range; 8 cost 0.7 % */
    TSR_INTENSITY_GROUPS = 25,        /* 8 cost 0.2 %, 16 gained 0.1 % */
    TSR_SAMPLED_ROWS = 2,             /* effort 1 looks at these rows of a period */
    TSR_SAMPLED_INTENSITY_GROUPS = 8, /* the groups that it then has */
    TSR_CELL_LIMIT = TSR_ACTIVITY_GROUPS * TSR_INTENSITY_GROUPS,
    TSR_TABLE_LIMIT = 24, /* code tables of a plane; 12 cost 0.2 %, 32 gained 0.02 % */
    TSR_MERGE_WINDOW = 8  /* cells merge with one of the next 8; no limit gained 0.01 % */
};

/* |residual| as the contexts see it. */
TSR_HD int32_t tsr_context_magnitude(int32_t residual)
{
    return tsr_min(tsr_abs(residual), TSR_MAGNITUDE_LIMIT);
}

/* What the magnitudes N, NW, NE, NN give to the activity; also of some magnitudes in a word each. */
TSR_HD uint32_t tsr_activity_above(uint32_t n, uint32_t nw, uint32_t ne, uint32_t nn)
{
    return 2 * n + nw + ne + nn;
}

/* The weights of the magnitudes W and WW. In a tile's first row there is nothing above: W stands for N, NW, NE, too,
 * and WW for NN. */
struct tsr_left_activity {
    int32_t w, ww;
};

TSR_HD struct tsr_left_activity tsr_left_activity(bool first_row)
{
    struct tsr_left_activity weight;
    weight.w = first_row ? 6 : 2;
    weight.ww = first_row ? 2 : 1;
    return weight;
}

/* Activity from the magnitudes W, N, NW, NE, WW, NN: 0 .. 8 x 4095. Weights by least squares per image gain 0.2 to
 * 0.4 %; other fixed weights tried, 3 3 1 2 1 1 and 1 1 1 1 0 0, are within 0.15 %. */
TSR_HD int32_t tsr_activity(int32_t w, int32_t n, int32_t nw, int32_t ne, int32_t ww, int32_t nn)
{
    const struct tsr_left_activity weight = tsr_left_activity(false);
    return weight.w * w + weight.ww * ww +
           (int32_t)tsr_activity_above((uint32_t)n, (uint32_t)nw, (uint32_t)ne, (uint32_t)nn);
}

TSR_HD int32_t tsr_activity_first_row(int32_t w, int32_t ww)
{
    const struct tsr_left_activity weight = tsr_left_activity(true);
    return weight.w * w + weight.ww * ww;
}

TSR_HD int tsr_activity_bin(int32_t activity)
{
    return tsr_token_symbol((uint32_t)activity);
}

/* Predictions 0 .. range-1 are shifted right by this to become intensity bins. */
TSR_HD int tsr_intensity_shift(uint32_t range)
{
    return tsr_max(0, tsr_bit_width(range - 1) - 12);
}

/* The group of a bin that has count of all total samples, when lower bins have before of them: the group in which the
 * middle of the bin's samples falls. */
TSR_HD int tsr_quantile_group(uint64_t before, uint32_t count, uint64_t total, int groups)
{
    return (int)((2 * before + count) * (uint64_t)groups / (2 * total));
}

/* Does training look at row y of a tile? period: 0, or that of effort 1. */
TSR_HD bool tsr_row_is_sampled(int32_t y, int32_t period)
{
    return period == 0 || y % period < TSR_SAMPLED_ROWS;
}

/* Cuts bins into at most groups runs of about equal counts. cuts[i] is the first bin of group i + 1; returns
 * the number of cuts, at most groups - 1. A bin belongs where the middle of its samples falls. */
TSR_HD int tsr_cut_quantiles(const uint32_t *counts, int bins, int groups, uint16_t *cuts)
{
    uint64_t total = 0, before = 0;
    int cut_count = 0, group = 0;
    bool first = true;
    for (int bin = 0; bin < bins; bin++) total += counts[bin];
    for (int bin = 0; bin < bins; bin++) {
        if (counts[bin] == 0) continue;
        const int here = tsr_quantile_group(before, counts[bin], total, groups);
        if (!first && here != group) cuts[cut_count++] = (uint16_t)bin;
        group = here;
        first = false;
        before += counts[bin];
    }
    return cut_count;
}

/* The cell of a group of activity and one of intensity. */
TSR_HD int tsr_cell_of(int activity_group, int intensity_group, int intensity_groups)
{
    return activity_group * intensity_groups + intensity_group;
}

/* A bin's group. */
TSR_HD uint8_t tsr_group_of(const uint16_t *cuts, int cut_count, int bin)
{
    int group = 0;
    while (group < cut_count && bin >= cuts[group]) group++;
    return (uint8_t)group;
}

/* group_of[bin] from cuts. */
TSR_HD void tsr_group_bins(const uint16_t *cuts, int cut_count, int bins, uint8_t *group_of)
{
    int group = 0;
    for (int bin = 0; bin < bins; bin++) {
        while (group < cut_count && bin >= cuts[group]) group++;
        group_of[bin] = (uint8_t)group;
    }
}

/* Merging. Cells stand in a line, activity-major; each pair of cells at most TSR_MERGE_WINDOW places apart
 * may become one table. The pair that saves most goes first, until none saves and at most
 * TSR_TABLE_LIMIT tables are left. */
enum {
    TSR_COUNT_COSTS = 1024,
    TSR_EMPTY_CELL = 255,   /* has no table */
    TSR_MERGE_SYMBOLS = 384 /* most symbols of a cell */
};
static_assert((int)TSR_CELL_LIMIT <= (int)TSR_EMPTY_CELL, "numbers of cells, and one more");
struct tsr_merge_work {
    uint64_t cost[TSR_CELL_LIMIT];
    int64_t gain[TSR_CELL_LIMIT][TSR_MERGE_WINDOW];         /* cost of the union - costs of the two */
    int64_t best[TSR_CELL_LIMIT];                           /* the least of them */
    int16_t partner[TSR_CELL_LIMIT];                        /* with which cell */
    int16_t next[TSR_CELL_LIMIT], previous[TSR_CELL_LIMIT]; /* living cells, -1 at the ends */
    uint64_t total[TSR_CELL_LIMIT];                         /* of each cell's counts */
    uint64_t occur[TSR_CELL_LIMIT][TSR_MERGE_SYMBOLS / 64]; /* a bit for each symbol of a cell */
    int16_t end[TSR_CELL_LIMIT];                            /* of each cell: symbols from here on do not occur */
    uint32_t count_cost[TSR_COUNT_COSTS];
};

/* A count times its logarithm. The symbols of a table cost this of their total, less this of each of them. */
TSR_HD uint64_t tsr_count_cost(uint32_t count)
{
    return (uint64_t)count * tsr_log2_cost(count);
}

TSR_HD uint64_t tsr_symbols_cost(uint64_t of_total, uint64_t of_symbols)
{
    return of_total > of_symbols ? of_total - of_symbols : 0;
}

/* What merging asks for over and over: count x its logarithm, of small counts. */
TSR_HD void tsr_fill_count_costs(struct tsr_merge_work *work)
{
    work->count_cost[0] = 0;
    for (uint32_t c = 1; c < TSR_COUNT_COSTS; c++) work->count_cost[c] = (uint32_t)tsr_count_cost(c);
}

/* The estimated size of a table's description, in bits: by its used symbols and the gaps between them. */
enum { TSR_DESCRIBED_TABLE = 8, TSR_DESCRIBED_SYMBOL = 2, TSR_DESCRIBED_GAP = 6 };

TSR_HD uint32_t tsr_description_cost(uint32_t used, uint32_t gaps)
{
    return (TSR_DESCRIBED_TABLE + TSR_DESCRIBED_SYMBOL * used + TSR_DESCRIBED_GAP * gaps) * TSR_COST_BIT;
}

/* The cost of a count in work->count_cost, or computed. */
TSR_HD uint64_t tsr_known_count_cost(const struct tsr_merge_work *work, uint32_t count)
{
    return count < TSR_COUNT_COSTS ? work->count_cost[count] : tsr_count_cost(count);
}

/* Bits x 4096 of the table that two cells make together (or one, with b null): its symbols, of which those from
 * symbols on do not occur, and its description. 0 if both are empty. */
TSR_HD uint64_t tsr_table_cost(const struct tsr_merge_work *work, const uint32_t *a, const uint32_t *b, int symbols)
{
    uint64_t total = 0, inside = 0;
    uint32_t used = 0, gaps = 0, gap = 0;
    for (int s = 0; s < symbols; s++) {
        const uint32_t c = a[s] + (b ? b[s] : 0u);
        total += c;
        inside += tsr_known_count_cost(work, c);
        used += c != 0;
        gaps += gap & (c != 0);
        gap = c == 0;
    }
    if (total == 0) return 0;
    assert(total <= UINT32_MAX);
    return tsr_symbols_cost(tsr_count_cost((uint32_t)total), inside) + tsr_description_cost(used, gaps);
}

/* Is another pair of tables merged, where the best pair saves something, or does not? */
TSR_HD bool tsr_merges_on(int tables, bool saves)
{
    return tables > 1 && (saves || tables > TSR_TABLE_LIMIT);
}

/* Takes down which of a cell's symbols occur, and how often in all. */
TSR_HD void tsr_know_cell(const uint32_t *counts, int symbols, struct tsr_merge_work *work, int cell)
{
    assert(symbols <= TSR_MERGE_SYMBOLS);
    work->total[cell] = 0;
    work->end[cell] = 0;
    for (int w = 0; w < TSR_MERGE_SYMBOLS / 64; w++) work->occur[cell][w] = 0;
    for (int first = 0; first < symbols; first += 8) { /* most cells have few symbols, beside each other */
        const uint32_t *of_cell = counts + cell * symbols;
        const int end = tsr_min(first + 8, symbols);
        uint32_t any = 0;
        for (int s = first; s < end; s++) any |= of_cell[s];
        for (int s = first; s < end && any != 0; s++) {
            if (of_cell[s] == 0) continue;
            work->total[cell] += of_cell[s];
            work->occur[cell][s / 64] |= (uint64_t)1 << s % 64;
            work->end[cell] = (int16_t)(s + 1);
        }
    }
}

TSR_HD uint32_t tsr_count_ones(uint64_t v)
{
    v -= v >> 1 & 0x5555555555555555u;
    v = (v & 0x3333333333333333u) + (v >> 2 & 0x3333333333333333u);
    v = (v + (v >> 4)) & 0x0f0f0f0f0f0f0f0fu;
    return (uint32_t)(v * 0x0101010101010101u >> 56);
}

/* tsr_table_cost of two cells that are known. */
TSR_HD uint64_t tsr_pair_cost(const uint32_t *counts, int symbols, const struct tsr_merge_work *work, int a, int b)
{
    const uint32_t *of_a = counts + a * symbols, *of_b = counts + b * symbols;
    const int end = tsr_max(work->end[a], work->end[b]);
    const uint64_t total = work->total[a] + work->total[b];
    uint64_t inside = 0, before = 1; /* no gap is before the first symbol */
    uint32_t used = 0, gaps = 0;
    for (int s = 0; s < end; s++) inside += tsr_known_count_cost(work, of_a[s] + of_b[s]);
    for (int w = 0; 64 * w < end; w++) {
        const uint64_t occur = work->occur[a][w] | work->occur[b][w];
        used += tsr_count_ones(occur);
        gaps += tsr_count_ones(occur & ~(occur << 1 | before));
        before = occur >> 63;
    }
    assert(total <= UINT32_MAX);
    return tsr_symbols_cost(tsr_count_cost((uint32_t)total), inside) + tsr_description_cost(used, gaps);
}

TSR_HD int64_t tsr_merge_gain(const uint32_t *counts, int symbols, const struct tsr_merge_work *work, int a, int b)
{
    return (int64_t)(tsr_pair_cost(counts, symbols, work, a, b) - work->cost[a] - work->cost[b]);
}

/* A cell's best partner, the first of equals. */
TSR_HD void tsr_find_partner(struct tsr_merge_work *work, int cell)
{
    int64_t best = INT64_MAX;
    int j = work->next[cell];
    for (int k = 0; k < TSR_MERGE_WINDOW && j >= 0; k++, j = work->next[j]) {
        if (work->gain[cell][k] >= best) continue;
        best = work->gain[cell][k];
        work->partner[cell] = (int16_t)j;
    }
    work->best[cell] = best;
}

/* Cells in a line; a cell is out of it if it is empty. Returns how many are in it, and the first (-1: none). */
TSR_HD int tsr_line_up_cells(const uint32_t *counts, int cells, int symbols, uint8_t *table_of,
                             struct tsr_merge_work *work, int *head)
{
    int alive = 0, tail = -1;
    *head = -1;
    for (int i = 0; i < cells; i++) {
        tsr_know_cell(counts, symbols, work, i);
        work->cost[i] = tsr_table_cost(work, counts + i * symbols, NULL, work->end[i]);
        table_of[i] = (uint8_t)i;
        if (work->cost[i] == 0) { /* empty: a used table costs its description at least */
            table_of[i] = TSR_EMPTY_CELL;
            continue;
        }
        work->previous[i] = (int16_t)tail;
        work->next[i] = -1;
        if (tail >= 0)
            work->next[tail] = (int16_t)i;
        else
            *head = i;
        tail = i;
        alive++;
    }
    return alive;
}

/* Cell b becomes part of a, and leaves the line. */
TSR_HD void tsr_merge_pair(uint32_t *counts, int cells, int symbols, uint8_t *table_of, struct tsr_merge_work *work,
                           int a, int b)
{
    for (int s = 0; s < work->end[b]; s++) {
        counts[a * symbols + s] += counts[b * symbols + s];
        counts[b * symbols + s] = 0;
    }
    tsr_know_cell(counts, symbols, work, a);
    work->cost[a] = tsr_table_cost(work, counts + a * symbols, NULL, work->end[a]);
    for (int i = 0; i < cells; i++)
        if (table_of[i] == b) table_of[i] = (uint8_t)a;
    if (work->previous[b] >= 0) work->next[work->previous[b]] = work->next[b];
    if (work->next[b] >= 0) work->previous[work->next[b]] = work->previous[b];
}

/* After that the gains of the pairs with a are new, and windows that reached b reach one further. */
TSR_HD void tsr_update_gains(const uint32_t *counts, int symbols, struct tsr_merge_work *work, int a, int b)
{
    int from = a;
    for (int back = 0; back < TSR_MERGE_WINDOW && work->previous[from] >= 0; back++) from = work->previous[from];
    for (int i = from; i >= 0 && i <= b; i = work->next[i]) {
        int j = work->next[i];
        bool passed = false; /* the window has passed b's old place */
        for (int k = 0; k < TSR_MERGE_WINDOW && j >= 0; k++, j = work->next[j]) {
            if (!passed && j > b && i < b) {
                passed = true; /* gains after it shift one place forward */
                for (int m = k; m + 1 < TSR_MERGE_WINDOW; m++) work->gain[i][m] = work->gain[i][m + 1];
            }
            if (i == a || j == a || (passed && k == TSR_MERGE_WINDOW - 1))
                work->gain[i][k] = tsr_merge_gain(counts, symbols, work, i, j);
        }
        tsr_find_partner(work, i);
    }
}

/* Numbers the tables by their first cells; cells without samples get the table before them (the first table, for those
 * in front). Returns the number of tables. */
TSR_HD int tsr_number_tables(uint32_t *counts, int cells, int symbols, uint8_t *table_of,
                             const struct tsr_merge_work *work, int head)
{
    int tables = 0;
    for (int i = head; i >= 0; i = work->next[i]) {
        for (int c = 0; c < cells; c++)
            if (table_of[c] == i && c >= i) table_of[c] = (uint8_t)tables;
        for (int s = 0; s < symbols; s++) counts[tables * symbols + s] = counts[i * symbols + s];
        tables++;
    }
    uint8_t before = 0;
    for (int c = 0; c < cells; c++) {
        if (table_of[c] == TSR_EMPTY_CELL) table_of[c] = before;
        before = table_of[c];
    }
    return tables;
}

/* counts[cells][symbols] is used up; table_of[cells] names the table, 0 .. result-1, in the order of their first
 * cells. Cells without samples get the table before them (the first table, for those in front). Returns the
 * number of tables, 0 if nothing was counted. counts[0..result-1] are then the tables' counts. work has count costs. */
TSR_HD int tsr_merge_cells(uint32_t *counts, int cells, int symbols, uint8_t *table_of, struct tsr_merge_work *work)
{
    int head;
    int alive = tsr_line_up_cells(counts, cells, symbols, table_of, work, &head);
    for (int i = head; i >= 0; i = work->next[i]) {
        int j = work->next[i];
        for (int k = 0; k < TSR_MERGE_WINDOW && j >= 0; k++, j = work->next[j])
            work->gain[i][k] = tsr_merge_gain(counts, symbols, work, i, j);
        tsr_find_partner(work, i);
    }
    while (alive > 1) {
        int64_t best = INT64_MAX;
        int a = -1;
        for (int i = head; i >= 0; i = work->next[i]) {
            if (work->best[i] >= best) continue;
            best = work->best[i];
            a = i;
        }
        if (!tsr_merges_on(alive, best < 0)) break;
        const int b = work->partner[a];
        tsr_merge_pair(counts, cells, symbols, table_of, work, a, b);
        alive--;
        tsr_update_gains(counts, symbols, work, a, b);
    }
    return tsr_number_tables(counts, cells, symbols, table_of, work, head);
}

/* The same, of cells that are the only ones to be merged. */
TSR_HD int tsr_merge_contexts(uint32_t *counts, int cells, int symbols, uint8_t *table_of, struct tsr_merge_work *work)
{
    tsr_fill_count_costs(work);
    return tsr_merge_cells(counts, cells, symbols, table_of, work);
}

#endif
