/* FORMAT.md 7.7, 10.6: rANS of a lane. */
#include "ref.h"

static void take_word(uint32_t *state, struct ref_bytes *b)
{
    if (*state < 65536) *state = *state * 65536 + (uint32_t)ref_number(b, 2);
}

unsigned ref_lane_symbol(uint32_t *state, const struct ref_frequencies *table, struct ref_bytes *b)
{
    uint32_t v = *state % 4096, start = 0;
    unsigned s = 0;
    while (v >= start + table->frequency[s]) start += table->frequency[s++];
    *state = table->frequency[s] * (*state >> 12) + v - start;
    take_word(state, b);
    return s;
}

uint32_t ref_lane_raw(uint32_t *state, unsigned n, struct ref_bytes *b)
{
    if (n == 0) return 0;
    uint32_t raw = *state % ((uint32_t)1 << n);
    *state >>= n;
    take_word(state, b);
    return raw;
}
