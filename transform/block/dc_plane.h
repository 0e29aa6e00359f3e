/* A tile's DCs as a plane of their own, which path T codes once more: the means of its blocks. FORMAT.md section 8.9.
 *
 * A mean has TSR_LAP_BITS fraction bits, or two more where samples have at most 14 bits: then a mean times 4 is what an
 * orthonormal transform would give, and one step is as fine on both levels. */
#ifndef TSR_TRANSFORM_BLOCK_DC_PLANE_H
#define TSR_TRANSFORM_BLOCK_DC_PLANE_H

#include "quantiser.h"
#include "transform/tiling.h"

enum {
    TSR_DC_FINE_RANGE = 1 << 14, /* of samples whose means have more fraction bits */
    TSR_DC_LIMIT = 1 << 23,      /* decoder: means are clamped to +- this */
    TSR_DC_QP = 36               /* encoder: q of a DC plane above that of the plane */
};

TSR_HD int tsr_dc_fraction(uint32_t range)
{
    return range <= TSR_DC_FINE_RANGE ? TSR_LAP_BITS + 2 : TSR_LAP_BITS;
}

/* Encoder: the q of a DC plane. A step of means that have less fraction is finer by two octaves. */
TSR_HD int32_t tsr_dc_q(int32_t q, int fraction)
{
    const int32_t dc_q = q + TSR_DC_QP - (fraction > TSR_LAP_BITS ? 0 : 2 * TSR_QP_OCTAVE);
    return tsr_max(0, tsr_min(TSR_QP_INDEX_LIMIT, dc_q));
}

/* The means of the blocks of a tile with these sides, as a tile. */
TSR_HD struct tsr_tile tsr_tile_of_dcs(int32_t width, int32_t height)
{
    struct tsr_tile tile;
    tile.first = 0;
    tile.width = (width + TSR_BLOCK_SIDE - 1) / TSR_BLOCK_SIDE;
    tile.height = (height + TSR_BLOCK_SIDE - 1) / TSR_BLOCK_SIDE;
    tile.stride = (size_t)tile.width;
    return tile;
}

/* The core transform's DC, which is 16 means with TSR_LAP_BITS fraction bits, to a mean. Samples are below 2^20 with
 * their fraction, and lapping adds at most 0.274 of the range on either side in each direction (the negative weights of
 * tsr_lap_forward in a block's mean): means lie within -0.70 and 1.70 of 2^20. So what the core transform makes of them
 * is below 36 * 1.2 * 2^20, or 16 * 1.7 * 2^20 of a DC: within 2^26, and units are below 2^29. */
TSR_HD int32_t tsr_dc_mean(int32_t core, int fraction)
{
    const int shift = TSR_LAP_BITS + 4 - fraction;
    return tsr_asr(core + (1 << (shift - 1)), shift);
}

/* What the inverse transform gives to a mean. */
TSR_HD int32_t tsr_dc_settle(int32_t value)
{
    return value < -TSR_DC_LIMIT ? -TSR_DC_LIMIT : value > TSR_DC_LIMIT ? TSR_DC_LIMIT : value;
}

/* A mean to what the inverse transform takes in place of the DC: at most TSR_FINE_DC_LIMIT. */
TSR_HD int32_t tsr_dc_scaled(int32_t mean, int fraction)
{
    return mean * (1 << (TSR_FINE_BITS - fraction));
}

#endif
