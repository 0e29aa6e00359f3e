/* Symbols and contexts of rows; see the header. */
#include "symbol_rows_cpu.h"

#include <string.h>

/* Sets the bits of columns whose bin is 0; most have another. */
static void find_quiet(const uint8_t *bin, int32_t width, uint32_t *quiet)
{
    static_assert(TSR_ACTIVITY_BINS <= 128, "the highest bit of a bin is 0");
    memset(quiet, 0, ((size_t)width + 31) / 32 * sizeof *quiet);
    for (int32_t c = 0; c < width; c += 8) {
        const int32_t columns = tsr_min(8, width - c);
        uint64_t eight = UINT64_MAX;
        memcpy(&eight, bin + c, (size_t)columns);
        if (columns == 8 && ((eight - 0x0101010101010101u) & 0x8080808080808080u) == 0) continue;
        for (int32_t k = c; k < c + columns; k++) quiet[k / 32] |= (uint32_t)(bin[k] == 0) << k % 32;
    }
}

/* Tokens of most values are looked up: worked out they took three times as long. */
TSR_HD_INLINE uint8_t token_of(const uint8_t *small, uint32_t value)
{
    return value < TSR_SMALL_VALUES ? small[value] : (uint8_t)tsr_token_symbol(value);
}

static void find_symbols(const uint8_t *restrict small, const uint16_t *restrict folded,
                         const int16_t *restrict activity, int32_t width, uint8_t *restrict symbol,
                         uint8_t *restrict bin, uint32_t *restrict quiet)
{
    for (int32_t c = 0; c < width; c++) {
        symbol[c] = token_of(small, folded[c]);
        bin[c] = token_of(small, (uint32_t)activity[c]); /* tsr_activity_bin */
    }
    find_quiet(bin, width, quiet); /* an activity of 0 has the bin 0 */
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
    static const struct tsr_symbol_rows plain = {true, find_symbols, find_contexts};
#if TSR_HAS_VECTOR_FORMS
    if (isa >= TSR_ISA_AVX2) return &tsr_symbol_rows_avx2;
#endif
    (void)isa;
    return &plain;
}
