/* Merging by a CPU; see the header. A merge changes the gains of pairs that it is part of, and the windows that its
 * second cell leaves reach one cell further: some 24 costs of pairs, which take most of the time. */
#include "merge_cells_cpu.h"

#include <string.h>

/* ---- Costs -------------------------------------------------------------------------------------------------- */

uint64_t tsr_cost_counts_plain(const struct tsr_merge_work *work, const uint32_t *a, const uint32_t *b, int end)
{
    uint64_t sum = 0;
    for (int s = 0; s < end; s++) {
        const uint32_t count = a[s] + b[s];
        sum += count < TSR_KNOWN_COSTS ? work->known_cost[count] : tsr_count_cost(count);
    }
    return sum;
}

void tsr_begin_merging(struct tsr_merge_work *work, enum tsr_isa isa)
{
    work->cost_counts = tsr_cost_counts_plain;
#if TSR_HAS_VECTOR_FORMS
    if (isa >= TSR_ISA_AVX2) work->cost_counts = tsr_cost_counts_avx2;
    if (isa >= TSR_ISA_AVX512) work->cost_counts = tsr_cost_counts_avx512;
#endif
    if (isa >= TSR_ISA_AVX512) return; /* its form knows none */
    work->known_cost[0] = 0;
    for (uint32_t c = 1; c < TSR_KNOWN_COSTS; c++) work->known_cost[c] = (uint32_t)tsr_count_cost(c);
}

static uint32_t count_ones(uint64_t v)
{
    v -= v >> 1 & 0x5555555555555555u;
    v = (v & 0x3333333333333333u) + (v >> 2 & 0x3333333333333333u);
    v = (v + (v >> 4)) & 0x0f0f0f0f0f0f0f0fu;
    return (uint32_t)(v * 0x0101010101010101u >> 56);
}

/* Of the table that two rows of counts make together, by its total and by the symbols below end that occur. */
static uint64_t table_cost(const struct tsr_merge_work *work, const uint32_t *a, const uint32_t *b,
                           const uint64_t *occur_a, const uint64_t *occur_b, uint64_t total, int end)
{
    uint64_t before = 1; /* no gap is before the first symbol */
    uint32_t used = 0, gaps = 0;
    for (int w = 0; 64 * w < end; w++) {
        const uint64_t occur = occur_a[w] | occur_b[w];
        used += count_ones(occur);
        gaps += count_ones(occur & ~(occur << 1 | before));
        before = occur >> 63;
    }
    assert(total <= UINT32_MAX);
    const uint64_t inside = work->cost_counts(work, a, b, end);
    return tsr_symbols_cost(tsr_count_cost((uint32_t)total), inside) + tsr_description_cost(used, gaps);
}

/* Cost of the union of two cells - costs of the two. */
static int64_t gain_of(const uint32_t *counts, int symbols, const struct tsr_merge_work *work, int a, int b)
{
    const uint64_t together =
        table_cost(work, counts + a * symbols, counts + b * symbols, work->occur[a], work->occur[b],
                   work->total[a] + work->total[b], tsr_max(work->end[a], work->end[b]));
    return (int64_t)(together - work->cost[a] - work->cost[b]);
}

/* ---- Cells -------------------------------------------------------------------------------------------------- */

/* Takes down which of a cell's symbols occur, how often in all, and what they cost alone. */
static void know_cell(const uint32_t *counts, int symbols, struct tsr_merge_work *work, int cell)
{
    static const uint32_t none[TSR_MERGE_SYMBOLS];
    static const uint64_t no_symbol[TSR_MERGE_SYMBOLS / 64];
    const uint32_t *const of_cell = counts + cell * symbols;
    assert(symbols <= TSR_MERGE_SYMBOLS);
    work->total[cell] = 0;
    work->end[cell] = 0;
    work->into[cell] = (int16_t)cell;
    memset(work->occur[cell], 0, sizeof work->occur[cell]);
    for (int first = 0; first < symbols; first += 8) { /* most cells have few symbols, beside each other */
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
    if (work->total[cell] > 0)
        work->cost[cell] =
            table_cost(work, of_cell, none, work->occur[cell], no_symbol, work->total[cell], work->end[cell]);
}

/* The best partner of the cell at a place. */
static void find_partner(struct tsr_merge_work *work, int place)
{
    const int64_t *const gain = work->gain[work->line[place]];
    const int next = tsr_min(TSR_MERGE_WINDOW, work->living - 1 - place);
    int64_t best = INT64_MAX;
    int partner = 0;
    for (int k = 0; k < next; k++) {
        partner = gain[k] < best ? k : partner;
        best = gain[k] < best ? gain[k] : best;
    }
    work->partner[place] = (int8_t)partner;
    work->best[place] = best;
}

/* All gains of the cell at a place, with those behind it. */
static void find_gains(const uint32_t *counts, int symbols, struct tsr_merge_work *work, int place)
{
    const int cell = work->line[place], next = tsr_min(TSR_MERGE_WINDOW, work->living - 1 - place);
    for (int k = 0; k < next; k++)
        work->gain[cell][k] = gain_of(counts, symbols, work, cell, work->line[place + 1 + k]);
}

/* The place whose cell saves most with its partner, the first of equals. */
static int best_place(const struct tsr_merge_work *work)
{
    int place = 0;
    for (int p = 1; p < work->living; p++)
        if (work->best[p] < work->best[place]) place = p;
    return place;
}

/* The cell at place other becomes part of that at place, and leaves the line. */
static void merge_pair(uint32_t *counts, int symbols, struct tsr_merge_work *work, int place, int other)
{
    const int a = work->line[place], b = work->line[other];
    for (int s = 0; s < work->end[b]; s++) counts[a * symbols + s] += counts[b * symbols + s];
    for (int w = 0; w < TSR_MERGE_SYMBOLS / 64; w++) work->occur[a][w] |= work->occur[b][w];
    work->cost[a] += work->cost[b] + (uint64_t)work->best[place];
    work->total[a] += work->total[b];
    work->end[a] = (int16_t)tsr_max(work->end[a], work->end[b]);
    work->into[b] = (int16_t)a;
    const size_t behind = (size_t)(--work->living - other);
    memmove(work->line + other, work->line + other + 1, behind * sizeof *work->line);
    memmove(work->best + other, work->best + other + 1, behind * sizeof *work->best);
    memmove(work->partner + other, work->partner + other + 1, behind * sizeof *work->partner);
}

/* After that: the gains of the pairs with the cell at place are new, and windows that reached place other, where a cell
 * has left, reach one cell further. */
static void update_gains(const uint32_t *counts, int symbols, struct tsr_merge_work *work, int place, int other)
{
    const int cell = work->line[place], last = TSR_MERGE_WINDOW - 1;
    for (int p = tsr_max(0, place - TSR_MERGE_WINDOW); p < other; p++) {
        const int first = work->line[p];
        int64_t *const gain = work->gain[first];
        const int left = other - p - 1; /* where the window had the cell that has left */
        for (int k = left; k < last; k++) gain[k] = gain[k + 1];
        if (p == place) {
            find_gains(counts, symbols, work, p);
        } else {
            if (left <= last && p + 1 + last < work->living)
                gain[last] = gain_of(counts, symbols, work, first, work->line[p + 1 + last]);
            if (p < place) gain[place - p - 1] = gain_of(counts, symbols, work, first, cell);
        }
        find_partner(work, p);
    }
}

/* Numbers the tables by their first cells. */
static void number_tables(uint32_t *counts, int cells, int symbols, uint8_t *table_of, struct tsr_merge_work *work)
{
    uint8_t before = 0;
    for (int t = 0; t < work->living; t++)
        memmove(counts + t * symbols, counts + work->line[t] * symbols, (size_t)symbols * sizeof *counts);
    for (int c = 0, tables = 0; c < cells; c++) { /* a cell becomes part of one before it */
        if (work->total[c] == 0)
            table_of[c] = before;
        else
            table_of[c] = work->into[c] == c ? (uint8_t)tables++ : table_of[work->into[c]];
        before = table_of[c];
    }
}

int tsr_merge_cells(uint32_t *counts, int cells, int symbols, uint8_t *table_of, struct tsr_merge_work *work)
{
    work->living = 0;
    for (int c = 0; c < cells; c++) {
        know_cell(counts, symbols, work, c);
        if (work->total[c] > 0) work->line[work->living++] = (int16_t)c;
    }
    for (int p = 0; p < work->living; p++) {
        find_gains(counts, symbols, work, p);
        find_partner(work, p);
    }
    while (work->living > 1) {
        const int place = best_place(work), other = place + 1 + work->partner[place];
        if (!tsr_merges_on(work->living, work->best[place] < 0)) break;
        merge_pair(counts, symbols, work, place, other);
        update_gains(counts, symbols, work, place, other);
    }
    number_tables(counts, cells, symbols, table_of, work);
    return work->living;
}

int tsr_merge_contexts(uint32_t *counts, int cells, int symbols, uint8_t *table_of, struct tsr_merge_work *work)
{
    tsr_begin_merging(work, tsr_isa());
    return tsr_merge_cells(counts, cells, symbols, table_of, work);
}
