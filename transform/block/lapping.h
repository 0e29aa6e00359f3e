/* The lapping filter across the borders of blocks: a time-domain lapped transform (Tran, Liang and Tu 2003). FORMAT.md
 * section 8.7.
 *
 * Two samples on each side of a border, a b | c d: their sums stay, a 2x2 matrix acts on the differences c - b and d -
 * a. The decoder's matrix is normative, (46 -26; 8 44) / 64: what maximises the coding gain at a correlation of 0.95
 * (8.65 dB; without lapping 7.55; the DCT of 8 samples 8.83), and nearly so from 0.85 to 0.99. The encoder's is its
 * inverse. Samples have TSR_LAP_BITS fraction bits on both ways. */
#ifndef TSR_TRANSFORM_BLOCK_LAPPING_H
#define TSR_TRANSFORM_BLOCK_LAPPING_H

#include "transform/hd.h"

enum {
    TSR_LAP_BITS = 4,
    TSR_LAP_LIMIT = 1 << 24, /* what enters the decoder's filter is clamped to +- this */
    TSR_LAP_QP = 32          /* lapped blocks are quantised by q + 32: their noise comes out smaller by so much */
};

/* Samples (0 .. 2^20 with their fraction) across one border. Differences grow to at most twice; products stay below
 * 2^31, in the second direction too: 2^21 * (382 + 134). */
TSR_HD void tsr_lap_forward(int32_t *a, int32_t *b, int32_t *c, int32_t *d)
{
    const int32_t inner = *c - *b, outer = *d - *a;
    const int32_t u = tsr_asr(134 * inner + 382 * outer + 512, 10), v = tsr_asr(163 * outer - 117 * inner + 512, 10);
    *b -= u;
    *c += u;
    *a -= v;
    *d += v;
}

/* From values within +-2^24 differences are at most 2^25, products below 22 * 2^25 < 2^30, results within 2^24.8, those
 * of the second direction within 2^25.6, products below 2^31. */
TSR_HD void tsr_lap_inverse(int32_t *a, int32_t *b, int32_t *c, int32_t *d)
{
    const int32_t inner = *c - *b, outer = *d - *a;
    const int32_t u = tsr_asr(-9 * inner - 13 * outer + 32, 6), v = tsr_asr(4 * inner - 10 * outer + 32, 6);
    *b -= u;
    *c += u;
    *a -= v;
    *d += v;
}

/* What the inverse transform gives (7 fraction bits) to what the filter takes. */
TSR_HD int32_t tsr_lap_settle(int32_t value)
{
    const int32_t settled = tsr_asr(value + 4, 3);
    return settled < -TSR_LAP_LIMIT ? -TSR_LAP_LIMIT : settled > TSR_LAP_LIMIT ? TSR_LAP_LIMIT : settled;
}

/* What the filter gives to a sample 0 .. top. */
TSR_HD int32_t tsr_lap_sample(int32_t value, int32_t top)
{
    const int32_t sample = tsr_asr(value + (1 << (TSR_LAP_BITS - 1)), TSR_LAP_BITS);
    return sample < 0 ? 0 : sample > top ? top : sample;
}

#endif
