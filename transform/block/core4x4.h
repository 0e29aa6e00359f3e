/* The integer 4x4 core transform of H.264 (8.5.12; Malvar et al. 2003). FORMAT.md section 8.2.
 *
 *         1  1  1  1
 *     C = 2  1 -1 -2     forward Y = C X C', inverse X = C' Z C with Z = Y over the squared norms of C's rows.
 *         1 -1 -1  1
 *         1 -2  2 -1
 *
 * Blocks are 16 values, row by row. The inverse keeps TSR_INVERSE_SHIFT fraction bits to its end and has no
 * halves to round on the way, unlike H.264's, so that eighths of a QP are exact at 16 bits as well. */
#ifndef TSR_TRANSFORM_BLOCK_CORE4X4_H
#define TSR_TRANSFORM_BLOCK_CORE4X4_H

#include "quantiser.h"

/* Four values a step apart, in place: grows by at most 6 (rows 2 and 4 of C). */
TSR_HD void tsr_core_forward_1d(int32_t *v, int step)
{
    const int32_t a = v[0] + v[3 * step], b = v[step] + v[2 * step];
    const int32_t c = v[step] - v[2 * step], d = v[0] - v[3 * step];
    v[0] = a + b;
    v[step] = 2 * d + c;
    v[2 * step] = a - b;
    v[3 * step] = d - 2 * c;
}

/* Samples 0 .. 65535 to coefficients: below 36 * 2^16 < 2^22 in magnitude. */
TSR_HD void tsr_core_forward(int32_t block[16])
{
    for (int i = 0; i < 4; i++) tsr_core_forward_1d(block + 4 * i, 1);
    for (int j = 0; j < 4; j++) tsr_core_forward_1d(block + j, 4);
}

/* Grows by at most 6. */
TSR_HD void tsr_core_inverse_1d(int64_t *v, int step)
{
    const int64_t a = v[0] + v[2 * step], b = v[0] - v[2 * step];
    const int64_t c = v[step] - 2 * v[3 * step], d = 2 * v[step] + v[3 * step];
    v[0] = a + d;
    v[step] = b + c;
    v[2 * step] = b - c;
    v[3 * step] = a - d;
}

/* Likewise in 32 bits, of four values beside each other, for coefficients scaled by tsr_dequantise_fine. */
TSR_HD void tsr_core_inverse_32_1d(int32_t *v)
{
    const int32_t a = v[0] + v[2], b = v[0] - v[2], c = v[1] - 2 * v[3], d = 2 * v[1] + v[3];
    v[0] = a + d;
    v[1] = b + c;
    v[2] = b - c;
    v[3] = a - d;
}

/* Dequantised coefficients (below 2^54) to samples: sums below 36 * 2^54 < 2^60. The results are whole samples, not yet
 * clamped to their range, saturated to 32 bits. */
TSR_HD void tsr_core_inverse(int64_t scaled[16], int32_t block[16])
{
    for (int j = 0; j < 4; j++) tsr_core_inverse_1d(scaled + j, 4);
    for (int i = 0; i < 4; i++) tsr_core_inverse_1d(scaled + 4 * i, 1);
    for (int i = 0; i < 16; i++) {
        int64_t sample = tsr_asr64(scaled[i] + ((int64_t)1 << (TSR_INVERSE_SHIFT - 1)), TSR_INVERSE_SHIFT);
        block[i] = (int32_t)(sample < INT32_MIN ? INT32_MIN : sample > INT32_MAX ? INT32_MAX : sample);
    }
}

#endif
