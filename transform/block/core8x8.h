/* The integer 8x8 transform of H.264's High profile, and its quantiser. INTRA.md section 4.
 *
 *         8   8   8   8   8   8   8   8
 *        12  10   6   3  -3  -6 -10 -12
 *         8   4  -4  -8  -8  -4   4   8
 *     C = 10  -3 -12  -6   6  12   3 -10     forward Y = C X C', inverse X = C' Z C with Z = Y over the squared norms
 * of 8  -8  -8   8   8  -8  -8   8     C's rows. 6 -12   3  10 -10  -3  12  -6 4  -8   8  -4  -4   8  -8   4 3  -6  10
 * -12  12 -10   6  -3
 *
 * Blocks are 64 values, row by row. Norms are sqrt(512), sqrt(578), sqrt(320), sqrt(578), and so on: products of two
 * fall into six classes. */
#ifndef TSR_TRANSFORM_BLOCK_CORE8X8_H
#define TSR_TRANSFORM_BLOCK_CORE8X8_H

#include "step_classes.h"

enum {
    TSR_EIGHT_SAMPLES = 64,
    TSR_EIGHT_BITS = 13,       /* fraction bits of what the inverse takes; of which it drops */
    TSR_EIGHT_DROP = 6,        /* these between both directions. */
    TSR_EIGHT_LIMIT = 1 << 24, /* Its magnitudes: sums stay below 59 * 2^24 < 2^30, then 59 * 59 * 2^18 < 2^30 */
    TSR_EIGHT_STEP_BITS = 19   /* tsr_eight_step is below 2^this */
};

/* Raster place of the coefficient at each place of the scan (H.264 8.5.7, frame scan). */
TSR_TABLE(uint8_t, tsr_eight_scan, TSR_EIGHT_SAMPLES, 0, 1, 8, 16, 9, 2, 3, 10, 17, 24, 32, 25, 18, 11, 4, 5, 12, 19,
          26, 33, 40, 48, 41, 34, 27, 20, 13, 6, 7, 14, 21, 28, 35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37,
          44, 51, 58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63);

/* 2^24 over the product of the norms of two rows, by their classes: 0 of rows 0 and 4, 1 of odd ones, 2 of rows 2, 6.
 */
TSR_TABLE(int32_t, tsr_eight_norms, 9, 32768, 30840, 41449, 30840, 29026, 39010, 41449, 39010, 52429);

TSR_HD_INLINE int tsr_eight_class(int row)
{
    return row & 1 ? 1 : row & 2;
}

/* Of the coefficient at a raster place. */
TSR_HD_INLINE int32_t tsr_eight_norm(int raster)
{
    return TSR_AT(tsr_eight_norms)[3 * tsr_eight_class(raster / 8) + tsr_eight_class(raster % 8)];
}

/* Predicted blocks are quantised by q + 16: tiles have about the error that they have lapped. */
enum { TSR_INTRA_QP = 16 };

TSR_HD_INLINE int32_t tsr_intra_q(int32_t q)
{
    return tsr_min(q + TSR_INTRA_QP, TSR_QP_INDEX_LIMIT);
}

/* Eight values a step apart, in place: grows by at most 64. */
TSR_HD_INLINE void tsr_eight_forward_1d(int32_t *v, int step)
{
    const int32_t s0 = v[0] + v[7 * step], s1 = v[step] + v[6 * step], s2 = v[2 * step] + v[5 * step],
                  s3 = v[3 * step] + v[4 * step];
    const int32_t d0 = v[0] - v[7 * step], d1 = v[step] - v[6 * step], d2 = v[2 * step] - v[5 * step],
                  d3 = v[3 * step] - v[4 * step];
    v[0] = 8 * (s0 + s1 + s2 + s3);
    v[step] = 12 * d0 + 10 * d1 + 6 * d2 + 3 * d3;
    v[2 * step] = 8 * (s0 - s3) + 4 * (s1 - s2);
    v[3 * step] = 10 * d0 - 3 * d1 - 12 * d2 - 6 * d3;
    v[4 * step] = 8 * (s0 - s1 - s2 + s3);
    v[5 * step] = 6 * d0 - 12 * d1 + 3 * d2 + 10 * d3;
    v[6 * step] = 4 * (s0 - s3) - 8 * (s1 - s2);
    v[7 * step] = 3 * d0 - 6 * d1 + 10 * d2 - 12 * d3;
}

/* Differences of samples, within +-2^16, to coefficients within 2^28. */
TSR_HD_INLINE void tsr_eight_forward(int32_t block[TSR_EIGHT_SAMPLES])
{
    for (int j = 0; j < 8; j++) tsr_eight_forward_1d(block + j, 8);
    for (int i = 0; i < 8; i++) tsr_eight_forward_1d(block + 8 * i, 1);
}

/* Grows by at most 59. */
TSR_HD_INLINE void tsr_eight_inverse_1d(int32_t *v, int step)
{
    const int32_t e0 = 8 * (v[0] + v[4 * step]), e1 = 8 * (v[0] - v[4 * step]), e2 = 4 * v[2 * step] - 8 * v[6 * step],
                  e3 = 8 * v[2 * step] + 4 * v[6 * step];
    const int32_t b0 = e0 + e3, b1 = e1 + e2, b2 = e1 - e2, b3 = e0 - e3;
    const int32_t z1 = v[step], z3 = v[3 * step], z5 = v[5 * step], z7 = v[7 * step];
    const int32_t o0 = 12 * z1 + 10 * z3 + 6 * z5 + 3 * z7, o1 = 10 * z1 - 3 * z3 - 12 * z5 - 6 * z7,
                  o2 = 6 * z1 - 12 * z3 + 3 * z5 + 10 * z7, o3 = 3 * z1 - 6 * z3 + 10 * z5 - 12 * z7;
    v[0] = b0 + o0;
    v[step] = b1 + o1;
    v[2 * step] = b2 + o2;
    v[3 * step] = b3 + o3;
    v[4 * step] = b3 - o3;
    v[5 * step] = b2 - o2;
    v[6 * step] = b1 - o1;
    v[7 * step] = b0 - o0;
}

/* Scaled coefficients to differences of samples with TSR_FINE_BITS fraction bits. */
TSR_HD_INLINE void tsr_eight_inverse(int32_t block[TSR_EIGHT_SAMPLES])
{
    for (int j = 0; j < 8; j++) tsr_eight_inverse_1d(block + j, 8);
    for (int i = 0; i < TSR_EIGHT_SAMPLES; i++)
        block[i] = tsr_asr(block[i] + (1 << (TSR_EIGHT_DROP - 1)), TSR_EIGHT_DROP);
    for (int i = 0; i < 8; i++) tsr_eight_inverse_1d(block + 8 * i, 1);
}

/* A step, without the octave of q, over a squared norm. */
TSR_HD_INLINE int32_t tsr_eight_step(int32_t q, int step_class, int32_t norm)
{
    const int64_t step = tsr_class_scaled(TSR_AT(tsr_quantiser_inverse)[3 * (q % TSR_QP_OCTAVE)], step_class);
    return (int32_t)((step * norm + 2048) >> 12);
}

/* Coefficient (within TSR_COEFFICIENT_LIMIT) to what the inverse takes: below 2^58 on the way. */
TSR_HD_INLINE int32_t tsr_eight_scale(int32_t coefficient, int32_t step, int32_t q)
{
    const int64_t product = (int64_t)coefficient * step * ((int64_t)1 << (q / TSR_QP_OCTAVE));
    const int64_t scaled = tsr_asr64(product + (1 << 12), 13);
    return (int32_t)(scaled < -TSR_EIGHT_LIMIT  ? -TSR_EIGHT_LIMIT
                     : scaled > TSR_EIGHT_LIMIT ? TSR_EIGHT_LIMIT
                                                : scaled);
}

/* Encoder: 2^26 over norms and step, without the octave of q: below 2^20. */
TSR_HD_INLINE int32_t tsr_eight_factor(int32_t q, int step_class, int32_t norm)
{
    const int64_t factor =
        tsr_class_scaled(TSR_AT(tsr_quantiser_forward)[3 * (q % TSR_QP_OCTAVE)], TSR_STEP_CLASSES - 1 - step_class);
    return (int32_t)((factor * norm + (1 << 15)) >> 16);
}

/* Encoder: a value of the transform to units: below 2^28 * 2^20 on the way, 2^30 in the end. */
TSR_HD_INLINE int32_t tsr_eight_units(int32_t value, int32_t q, int32_t factor)
{
    const int shift = TSR_FORWARD_SHIFT + 6 - TSR_UNIT_BITS + q / TSR_QP_OCTAVE;
    return (int32_t)tsr_asr64((int64_t)value * factor + ((int64_t)1 << (shift - 1)), shift);
}

#endif
