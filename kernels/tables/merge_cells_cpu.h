/* Merging by a CPU: cells of counts to code tables, as entropy/contexts.h describes it. */
#ifndef TSR_KERNELS_TABLES_MERGE_CELLS_CPU_H
#define TSR_KERNELS_TABLES_MERGE_CELLS_CPU_H

#include "entropy/contexts.h"
#include "kernels/machine/isa_cpu.h"

enum { TSR_KNOWN_COSTS = 1024 }; /* a power of two */
static_assert((int)TSR_CELL_LIMIT <= INT16_MAX && (int)TSR_MERGE_WINDOW <= INT8_MAX,
              "numbers of cells and of the next ones");

struct tsr_merge_work;

/* Sum of tsr_count_cost(a[s] + b[s]) of all s below end. Each sum of two counts is below 2^32. */
typedef uint64_t tsr_cost_counts(const struct tsr_merge_work *work, const uint32_t *a, const uint32_t *b, int end);

struct tsr_merge_work {
    tsr_cost_counts *cost_counts;
    uint32_t known_cost[TSR_KNOWN_COSTS]; /* of small counts; not for AVX-512 */
    /* By cell. */
    uint64_t cost[TSR_CELL_LIMIT];
    uint64_t total[TSR_CELL_LIMIT];                         /* of its counts */
    uint64_t occur[TSR_CELL_LIMIT][TSR_MERGE_SYMBOLS / 64]; /* a bit for each symbol that does */
    int64_t gain[TSR_CELL_LIMIT][TSR_MERGE_WINDOW]; /* cost of the union with each of the next - costs of the two */
    int16_t end[TSR_CELL_LIMIT];                    /* symbols from here on do not occur */
    int16_t into[TSR_CELL_LIMIT];                   /* the cell that it has become part of, or itself */
    /* By place in the line of living cells. */
    int64_t best[TSR_CELL_LIMIT]; /* the least gain, the first of equals */
    int16_t line[TSR_CELL_LIMIT];
    int8_t partner[TSR_CELL_LIMIT]; /* with which of the next */
    int living;
};

/* To be called first, with the instruction set that the costs are computed by. */
void tsr_begin_merging(struct tsr_merge_work *work, enum tsr_isa isa);

/* counts[cells][symbols] is used up; table_of[cells] names the table, 0 .. result-1, in the order of their first cells.
 * Cells without samples get the table before them (the first table, for those in front). Returns the number of tables,
 * 0 if nothing was counted. counts[0..result-1] are then the tables' counts. */
int tsr_merge_cells(uint32_t *counts, int cells, int symbols, uint8_t *table_of, struct tsr_merge_work *work);

/* The same, of cells that are the only ones to be merged; begins it. */
int tsr_merge_contexts(uint32_t *counts, int cells, int symbols, uint8_t *table_of, struct tsr_merge_work *work);

/* The forms; those for vectors are there where TSR_HAS_VECTOR_FORMS is 1. */
tsr_cost_counts tsr_cost_counts_plain, tsr_cost_counts_avx2, tsr_cost_counts_avx512;

#endif
