/* Symbols and contexts of rows; see the header. */
#include "symbol_rows_cpu.h"

#include <string.h>

static void find_symbols(const uint16_t *restrict folded, const int16_t *restrict activity, int32_t width,
                         uint8_t *restrict symbol, uint8_t *restrict bin, uint32_t *restrict quiet)
{
    memset(quiet, 0, ((size_t)width + 31) / 32 * sizeof *quiet);
    for (int32_t c = 0; c < width; c++) {
        symbol[c] = (uint8_t)tsr_token_symbol(folded[c]);
        bin[c] = (uint8_t)tsr_activity_bin(activity[c]);
        quiet[c / 32] |= (uint32_t)(activity[c] == 0) << c % 32;
    }
}

static void find_contexts(const struct tsr_context_map *map, const uint8_t *restrict symbol,
                          const uint16_t *restrict intensity, int32_t columns, uint8_t *restrict context,
                          uint16_t *restrict place)
{
    for (int32_t c = 0; c < columns; c++) {
        const uint8_t bin = context[c];
        context[c] = map->context[bin][map->intensity_group[intensity[c]]];
        place[c] = (uint16_t)(bin == TSR_INSIDE_BIN ? TSR_UNCOUNTED_PLACE : tsr_count_place(context[c]) + symbol[c]);
    }
}

const struct tsr_symbol_rows *tsr_symbol_rows(enum tsr_isa isa)
{
    static const struct tsr_symbol_rows plain = {find_symbols, find_contexts};
#if TSR_HAS_VECTOR_FORMS
    if (isa >= TSR_ISA_AVX2) return &tsr_symbol_rows_avx2;
#endif
    (void)isa;
    return &plain;
}
