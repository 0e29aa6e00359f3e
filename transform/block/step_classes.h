/* Classes of the quantiser's steps, one for each square of 16 x 16 samples of a tile: the AC coefficients of its blocks
 * have the plane's step times a fixed ratio. FORMAT.md section 8.8. */
#ifndef TSR_TRANSFORM_BLOCK_STEP_CLASSES_H
#define TSR_TRANSFORM_BLOCK_STEP_CLASSES_H

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

/* Squares across or down a side of a tile. */
TSR_HD int32_t tsr_squares_along(int32_t side)
{
    return (side + TSR_CLASS_SIDE - 1) / TSR_CLASS_SIDE;
}

#endif
