/* Textures: how rough the samples of a square are, by which an encoder chooses its class of steps (FORMAT.md 8.8). What
 * is rough hides errors. FORMAT.md needs none of it; but equal bytes from every engine need that all of them use
 * exactly this.
 *
 * A square has up to four parts of 8 x 8 samples, and the mean of their textures: SSIM sees about as much at once, and
 * an edge in one part does not make the others rough (tests/bench/decisions/035). */
#ifndef TSR_ENTROPY_TEXTURES_H
#define TSR_ENTROPY_TEXTURES_H

#include "code_cost.h"
#include "transform/block/step_classes.h"

enum {
    TSR_TEXTURE_SIDE = 8,    /* of a square's parts, in samples */
    TSR_TEXTURE_BITS = 10,   /* of samples as textures take them */
    TSR_TEXTURE_GROUND = 464 /* 29 squared steps of 8 bits, in 1/16: half of what SSIM adds to variances */
};

/* How many bits samples 0 .. range-1 are raised by (lowered, if negative). Planes of less than 8 bits count as those
 * of 8. */
TSR_HD int tsr_texture_shift(uint32_t range)
{
    return TSR_TEXTURE_BITS - tsr_max(8, tsr_bit_width(range - 1));
}

TSR_HD_INLINE uint32_t tsr_texture_sample(uint32_t sample, int shift)
{
    return shift < 0 ? sample >> -shift : sample << shift;
}

/* Of the 64 samples of a part, by their sum and that of their squares: log2 of their variance and the ground, in
 * 1/4096. Squares stay below 2^26, 64 times them and the sum's square below 2^32. */
TSR_HD uint32_t tsr_texture(uint32_t sum, uint32_t squares)
{
    return tsr_log2_cost(((64 * squares - sum * sum) >> 12) + TSR_TEXTURE_GROUND);
}

/* Of a square, by the plane's mean texture: a class more for each doubling of the variance. */
TSR_HD int tsr_class_of_texture(uint32_t texture, uint32_t mean)
{
    const int32_t above = (int32_t)texture - (int32_t)mean + TSR_PLAIN_CLASS * TSR_COST_BIT + TSR_COST_BIT / 2;
    return tsr_max(0, tsr_min(TSR_STEP_CLASSES - 1, tsr_asr(above, TSR_COST_SHIFT)));
}

#endif
