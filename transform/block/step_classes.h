/* Classes of the quantiser's steps, one for each square of 16 x 16 samples of a tile: the AC coefficients of its blocks
 * have the plane's step times a fixed ratio. FORMAT.md section 8.8.
 *
 * A square's class follows from its texture, relative to the plane's mean: what is rough hides errors. */
#ifndef TSR_TRANSFORM_BLOCK_STEP_CLASSES_H
#define TSR_TRANSFORM_BLOCK_STEP_CLASSES_H

#include "entropy/code_cost.h"
#include "quantiser.h"

enum {
    TSR_CLASS_SIDE = 16,                                /* of a square, in samples */
    TSR_CLASS_BLOCKS = TSR_CLASS_SIDE / TSR_BLOCK_SIDE, /* the same in blocks */
    TSR_STEP_CLASSES = 7,
    TSR_PLAIN_CLASS = 3, /* the class of the plane's step */
    TSR_RATIO_BITS = 8,
    TSR_CLASS_STEP_BITS = 16 /* tsr_class_step is below 2^this */
};

/* 2^((class - 3) / 3), in 1/256. */
TSR_TABLE(int32_t, tsr_class_ratio, TSR_STEP_CLASSES, 128, 161, 203, 256, 323, 406, 512);

/* A number of tsr_quantiser_step or tsr_quantiser_factor for AC coefficients of a class. */
TSR_HD_INLINE int32_t tsr_class_scaled(int32_t number, int ratio_class)
{
    return (number * TSR_AT(tsr_class_ratio)[ratio_class] + (1 << (TSR_RATIO_BITS - 1))) >> TSR_RATIO_BITS;
}

TSR_HD_INLINE int32_t tsr_class_step(int32_t q, int norm_class, int step_class)
{
    return tsr_class_scaled(tsr_quantiser_step(q, norm_class), step_class);
}

TSR_HD_INLINE int32_t tsr_class_factor(int32_t q, int norm_class, int step_class)
{
    return tsr_class_scaled(tsr_quantiser_factor(q, norm_class), TSR_STEP_CLASSES - 1 - step_class);
}

TSR_HD int32_t tsr_class_units(int32_t value, int32_t q, int norm_class, int step_class)
{
    return tsr_units_by_factor(value, q, tsr_class_factor(q, norm_class, step_class));
}

/* ---- Encoder ------------------------------------------------------------------------------------------------ */

enum {
    TSR_TEXTURE_SIDE = 8,    /* of a square's parts, in samples */
    TSR_TEXTURE_BITS = 10,   /* of samples as textures take them */
    TSR_TEXTURE_GROUND = 464 /* 29 squared steps of 8 bits, in 1/16: half of what SSIM adds to variances */
};

/* How much samples 0 .. range-1 are raised (lowered, if below 0) for textures: planes of less than 8 bits as those
 * of 8.
 */
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

/* Squares across or down a side of a tile. */
TSR_HD int32_t tsr_squares_along(int32_t side)
{
    return (side + TSR_CLASS_SIDE - 1) / TSR_CLASS_SIDE;
}

#endif
