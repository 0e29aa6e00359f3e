/* A reversible integer 4x4 transform by lifting: path T without loss. FORMAT.md section 8.3.
 *
 * The 4-point transform is a DCT in lifting steps: two Haar pairs, one more for the even half, and a rotation by
 * pi/8 of the odd half, approximated by two shears with tan(pi/8) ~ 53/128 and sin(pi/8) cos(pi/8) ~ 45/128. Every
 * step adds to one value a function of another, so the inverse subtracts it again, exactly.
 *
 * Bounds. The low band is a mean and does not grow. From values in an interval of width D, differences are at most
 * D in magnitude and after the shears at most 1.51 D; the second direction starts from an interval of at most 3.02 D
 * and ends below 4.6 D. So 16-bit samples give coefficients below 2^19 (302,000). */
#ifndef TSR_TRANSFORM_BLOCK_REVERSIBLE4X4_H
#define TSR_TRANSFORM_BLOCK_REVERSIBLE4X4_H

#include "transform/hd.h"

/* A decoder refuses coefficients from here on: no samples give them, and what is below cannot overflow the inverse
 * (see there). */
enum { TSR_REVERSIBLE_LIMIT = 1 << 20 };

/* Four values a step apart, in place, to frequencies 0..3. */
TSR_HD void tsr_reversible_forward_1d(int32_t *v, int step)
{
    int32_t d0 = v[0] - v[3 * step], s0 = v[3 * step] + tsr_asr(d0, 1);
    int32_t d1 = v[step] - v[2 * step], s1 = v[2 * step] + tsr_asr(d1, 1);
    int32_t even = s0 - s1, mean = s1 + tsr_asr(even, 1);
    d1 -= tsr_asr(53 * d0 + 64, 7);
    d0 += tsr_asr(45 * d1 + 64, 7);
    v[0] = mean;
    v[step] = d0;
    v[2 * step] = even;
    v[3 * step] = d1;
}

/* Inputs below L in magnitude: |d0| < 1.36 L, |d1| < 1.57 L, |s0| < 2.5 L, results below 4.1 L. With L = 2^20 the
 * second direction starts below 2^22.1, its products stay below 53 * 1.36 * 2^22.1 < 2^29, its results below 2^24.2. */
TSR_HD void tsr_reversible_inverse_1d(int32_t *v, int step)
{
    int32_t mean = v[0], d0 = v[step], even = v[2 * step], d1 = v[3 * step];
    d0 -= tsr_asr(45 * d1 + 64, 7);
    d1 += tsr_asr(53 * d0 + 64, 7);
    int32_t s1 = mean - tsr_asr(even, 1), s0 = even + s1;
    int32_t b = s1 - tsr_asr(d1, 1), a = s0 - tsr_asr(d0, 1);
    v[0] = d0 + a;
    v[step] = d1 + b;
    v[2 * step] = b;
    v[3 * step] = a;
}

TSR_HD void tsr_reversible_forward(int32_t block[16])
{
    for (int i = 0; i < 4; i++) tsr_reversible_forward_1d(block + 4 * i, 1);
    for (int j = 0; j < 4; j++) tsr_reversible_forward_1d(block + j, 4);
}

TSR_HD void tsr_reversible_inverse(int32_t block[16])
{
    for (int j = 0; j < 4; j++) tsr_reversible_inverse_1d(block + j, 4);
    for (int i = 0; i < 4; i++) tsr_reversible_inverse_1d(block + 4 * i, 1);
}

#endif
