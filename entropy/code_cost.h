/* What symbols cost, in integers: the base of every choice that training makes. FORMAT.md needs none of it; but
 * equal bytes from every engine need that all of them use exactly this. */
#ifndef TSR_ENTROPY_CODE_COST_H
#define TSR_ENTROPY_CODE_COST_H

#include "transform/hd.h"

/* Costs are in bits x 4096. */
enum { TSR_COST_SHIFT = 12, TSR_COST_BIT = 1 << TSR_COST_SHIFT };

/* 4096 log2(1 + i/128), rounded. */
TSR_TABLE(uint16_t, tsr_log2_mantissa, 129, 0, 46, 92, 137, 182, 226, 271, 315, 358, 402, 445, 487, 530, 572, 613, 655,
          696, 737, 778, 818, 858, 898, 937, 977, 1016, 1054, 1093, 1131, 1169, 1207, 1244, 1282, 1319, 1355, 1392,
          1428, 1465, 1500, 1536, 1572, 1607, 1642, 1677, 1712, 1746, 1780, 1814, 1848, 1882, 1915, 1949, 1982, 2015,
          2047, 2080, 2112, 2145, 2177, 2208, 2240, 2272, 2303, 2334, 2365, 2396, 2427, 2457, 2488, 2518, 2548, 2578,
          2608, 2637, 2667, 2696, 2725, 2754, 2783, 2812, 2841, 2869, 2897, 2926, 2954, 2982, 3009, 3037, 3065, 3092,
          3119, 3146, 3174, 3200, 3227, 3254, 3280, 3307, 3333, 3359, 3386, 3412, 3437, 3463, 3489, 3514, 3540, 3565,
          3590, 3615, 3640, 3665, 3690, 3715, 3739, 3764, 3788, 3812, 3836, 3861, 3885, 3908, 3932, 3956, 3979, 4003,
          4026, 4050, 4073, 4096);

/* 4096 log2(value), value >= 1, interpolated linearly between 128 points an octave: within 1 of the true value. */
TSR_HD uint32_t tsr_log2_cost(uint32_t value)
{
    int exponent = tsr_floor_log2(value);
    uint32_t fraction = (uint32_t)(((uint64_t)value << (31 - exponent)) & 0x7fffffffu); /* 31 bits */
    uint32_t index = fraction >> 24, rest = (fraction >> 8) & 0xffffu;
    uint32_t low = TSR_AT(tsr_log2_mantissa)[index], high = TSR_AT(tsr_log2_mantissa)[index + 1];
    return ((uint32_t)exponent << TSR_COST_SHIFT) + low + (((high - low) * rest + 0x8000u) >> 16);
}

/* Bits x 4096 that a residual of this size is expected to cost, before anything is known of its
 * distribution: log2(1 + 2|r|). Compares representations (packed or not, colour transforms). */
TSR_HD uint32_t tsr_magnitude_cost(uint32_t magnitude)
{
    return tsr_log2_cost(1u + 2u * magnitude);
}

#endif
