/* Samples quantised before all else, so that none comes back with an error above a bound. FORMAT.md section 6.5.
 *
 * The step is 2 N + 1 for errors up to N, and the number zero is kept as it is: samples become the nearest multiples of
 * the step, counted from the least one that is needed. */
#ifndef TSR_TRANSFORM_PLANES_NEAR_LOSSLESS_H
#define TSR_TRANSFORM_PLANES_NEAR_LOSSLESS_H

#include "transform/hd.h"

struct tsr_near_lossless {
    uint32_t max_error;  /* 0: samples are not quantised */
    uint32_t zero;       /* the sample that stands for the number 0: signed ones are biased */
    uint32_t below, top; /* multiples below zero, and the largest sample */
};

TSR_HD struct tsr_near_lossless tsr_near_lossless(uint32_t max_error, int bits_stored, bool is_signed)
{
    struct tsr_near_lossless near;
    near.max_error = max_error;
    near.zero = is_signed ? 1u << (bits_stored - 1) : 0u;
    near.below = (near.zero + max_error) / (2 * max_error + 1);
    near.top = (1u << bits_stored) - 1u;
    return near;
}

/* Sample, 0 .. top, to its multiple's number, and back. */
TSR_HD uint32_t tsr_near_lossless_index(uint32_t sample, struct tsr_near_lossless near)
{
    const uint32_t step = 2 * near.max_error + 1;
    return (sample + near.max_error + near.below * step - near.zero) / step;
}

TSR_HD uint32_t tsr_near_lossless_sample(uint32_t index, struct tsr_near_lossless near)
{
    const int32_t sample =
        (int32_t)(near.zero + index * (2 * near.max_error + 1)) - (int32_t)(near.below * (2 * near.max_error + 1));
    return (uint32_t)tsr_max(0, tsr_min((int32_t)near.top, sample));
}

/* Bits of the numbers. */
TSR_HD int tsr_near_lossless_bits(struct tsr_near_lossless near)
{
    const int bits = tsr_bit_width(tsr_near_lossless_index(near.top, near));
    return bits > 0 ? bits : 1;
}

#endif
