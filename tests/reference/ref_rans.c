/* FORMAT.md 10.6: rANS. */
#include "ref.h"

static bool read_weights(struct ref_bits *b, uint32_t *weight, unsigned symbols)
{
    unsigned mantissa = ref_u(b, 3);
    uint32_t highest = ref_ue(b);
    if (b->bad || highest >= symbols) return ref_fail("a table of rANS has too many symbols");
    unsigned p = 4;
    for (uint32_t s = 0; s <= highest;) {
        unsigned zeros = 0;
        while (zeros < 4 && !b->bad && ref_u(b, 1) == 0) zeros++;
        if (zeros == 1)
            p++;
        else if (zeros == 2)
            p--;
        else if (zeros == 3) {
            uint64_t n = (uint64_t)ref_ue(b) + 1;
            if (b->bad || n > highest - s) return ref_fail("the weights of a table are corrupt");
            s += (uint32_t)n;
            continue;
        } else if (zeros == 4) {
            p = ref_u(b, 4);
        }
        if (b->bad || p < 1 || p > 13) return ref_fail("the weights of a table are corrupt");
        unsigned bits = p - 1 < mantissa ? p - 1 : mantissa;
        weight[s++] = (((uint32_t)1 << bits) + ref_u(b, bits)) << (p - 1 - bits);
    }
    return !b->bad || ref_fail("a frame model is too short");
}

bool ref_read_frequencies(struct ref_bits *b, struct ref_frequencies *table, unsigned symbols)
{
    uint32_t g[REF_RANS_SYMBOLS] = {0}, *f = table->of;
    if (!read_weights(b, g, symbols)) return false;
    uint64_t total = 0;
    int64_t sum = 0;
    for (unsigned s = 0; s < symbols; s++) total += g[s];
    for (unsigned s = 0; s < symbols; s++) {
        f[s] = g[s] == 0 ? 0 : (uint32_t)((4096 * (uint64_t)g[s] + total / 2) / total);
        if (g[s] > 0 && f[s] == 0) f[s] = 1;
        sum += f[s];
    }
    for (; sum < 4096; sum++) {
        unsigned best = symbols;
        for (unsigned s = 0; s < symbols; s++)
            if (g[s] > 0 &&
                (best == symbols || g[s] * (2 * (uint64_t)f[best] + 1) > g[best] * (2 * (uint64_t)f[s] + 1)))
                best = s;
        f[best]++;
    }
    for (; sum > 4096; sum--) {
        unsigned best = symbols;
        for (unsigned s = 0; s < symbols; s++)
            if (f[s] > 1 &&
                (best == symbols || g[s] * (2 * (uint64_t)f[best] - 1) < g[best] * (2 * (uint64_t)f[s] - 1)))
                best = s;
        f[best]--;
    }
    return true;
}

static void take_word(uint32_t *state, struct ref_bytes *b)
{
    if (*state < 65536) *state = *state * 65536 + (uint32_t)ref_number(b, 2);
}

unsigned ref_rans_symbol(uint32_t *state, const struct ref_frequencies *table, struct ref_bytes *b)
{
    uint32_t v = *state % 4096, start = 0;
    unsigned s = 0;
    while (v >= start + table->of[s]) start += table->of[s++];
    *state = table->of[s] * (*state >> 12) + v - start;
    take_word(state, b);
    return s;
}

uint32_t ref_rans_raw(uint32_t *state, unsigned n, struct ref_bytes *b)
{
    if (n == 0) return 0;
    uint32_t raw = *state % ((uint32_t)1 << n);
    *state >>= n;
    take_word(state, b);
    return raw;
}
