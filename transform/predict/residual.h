/* Residuals: the difference of a sample and its prediction, modulo the plane's range. FORMAT.md section 7.2.
 *
 * Samples and predictions lie in 0 .. range-1, so a difference modulo range still names the sample. It is
 * taken from -range/2 .. (range-1)/2 (rounded towards zero) and folded to 0, -1, 1, -2, 2, ... */
#ifndef TSR_TRANSFORM_PREDICT_RESIDUAL_H
#define TSR_TRANSFORM_PREDICT_RESIDUAL_H

#include "transform/hd.h"

/* sample - prediction modulo range (1..65536), in -(range/2) .. (range-1)/2. */
TSR_HD int32_t tsr_residual(int32_t sample, int32_t prediction, int32_t range)
{
    int32_t r = sample - prediction;
    r += r < -(range >> 1) ? range : 0;
    r -= r > ((range - 1) >> 1) ? range : 0;
    return r;
}

/* The sample again: in 0 .. range-1 for every residual in the interval above. */
TSR_HD int32_t tsr_residual_inverse(int32_t residual, int32_t prediction, int32_t range)
{
    int32_t s = prediction + residual;
    s += s < 0 ? range : 0;
    s -= s >= range ? range : 0;
    return s;
}

/* 0, -1, 1, -2, 2, ... to 0, 1, 2, 3, 4, ... */
TSR_HD uint32_t tsr_fold(int32_t value)
{
    return ((uint32_t)value << 1) ^ (uint32_t)tsr_asr(value, 31);
}

TSR_HD int32_t tsr_unfold(uint32_t folded)
{
    return (int32_t)(folded >> 1) ^ -(int32_t)(folded & 1u);
}

#endif
