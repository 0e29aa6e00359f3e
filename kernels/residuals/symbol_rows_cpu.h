/* Symbols, contexts and their counts, a row at a time: what the plain form and the form for AVX2 share. Private to
 * residuals_cpu.c and symbol_rows_*.c. FORMAT.md sections 7.3 and 7.4. */
#ifndef TSR_KERNELS_RESIDUALS_SYMBOL_ROWS_CPU_H
#define TSR_KERNELS_RESIDUALS_SYMBOL_ROWS_CPU_H

#include "residuals_cpu.h"

enum {
    TSR_SYMBOL_MARGIN = 64,  /* columns after a row of folded residuals and activities that the forms may read */
    TSR_COUNT_COLUMNS = 256, /* columns that contexts are found for at once */
    TSR_SMALL_VALUES = 256
};

/* Where struct tsr_symbol_counts counts a context's symbol 0, as a number of words from its beginning; and where it
 * counts samples within runs, which have no symbol: an interruption is never a run to the row's end. */
TSR_HD int tsr_count_place(int context)
{
    return tsr_min(context * TSR_RUN_ALPHABET, TSR_FIRST_RESIDUAL_TABLE * TSR_RUN_ALPHABET +
                                                   (context - TSR_FIRST_CELL_CONTEXT) * TSR_RESIDUAL_SYMBOLS);
}
enum { TSR_UNCOUNTED_PLACE = TSR_INTERRUPTION_CONTEXT * TSR_RUN_ALPHABET + TSR_RUN_TO_END };
static_assert(offsetof(struct tsr_symbol_counts, cell) ==
                  TSR_FIRST_RESIDUAL_TABLE * TSR_RUN_ALPHABET * sizeof(uint32_t),
              "cells follow the special tables");
static_assert(TSR_FIRST_RESIDUAL_TABLE * TSR_RUN_ALPHABET + TSR_CELL_LIMIT * TSR_RESIDUAL_SYMBOLS <= UINT16_MAX + 1,
              "a place has 16 bits");

struct tsr_symbol_rows {
    bool wants_small; /* find_symbols looks up the tokens of values below TSR_SMALL_VALUES in small */
    /* Finds the tokens of the folded residuals, the bins of the activities, and the quiet columns, a bit each. */
    void (*find_symbols)(const uint8_t *small, const uint16_t *folded, const int16_t *activity, int32_t width,
                         uint8_t *symbol, uint8_t *bin, uint32_t *quiet);
    /* Turns bins to contexts, of at most TSR_COUNT_COLUMNS columns, and finds the place that counts each symbol. */
    void (*find_contexts)(const struct tsr_context_map *map, const uint8_t *symbol, const uint16_t *intensity,
                          int32_t columns, uint8_t *context, uint16_t *place);
};

const struct tsr_symbol_rows *tsr_symbol_rows(enum tsr_isa isa);
extern const struct tsr_symbol_rows tsr_symbol_rows_avx2; /* where the compiler has it */

#endif
