/* The quantiser of the 4x4 core transform: QP in eighths, dead zone, 64-bit. FORMAT.md section 8.2.
 *
 * The step is 2^((q/8 - 4)/6), in units of an orthonormal value, where q = 8 (QP + 6 (B - 8)) counts
 * eighths from the finest step of B-bit samples, 0..792: QP means the same share of full range at any depth
 * (H.264's convention, its QP' and its doubling every 6). q splits into an octave, q / 48, and a place in
 * it, q % 48, which selects a row of the tables. The transform's rows have norms 2, sqrt(10), 2, sqrt(10), so
 * values fall into three classes by the product of two norms: 4, sqrt(40), 10. */
#ifndef TSR_TRANSFORM_BLOCK_QUANTISER_H
#define TSR_TRANSFORM_BLOCK_QUANTISER_H

#include "blocks.h"
#include "lapping.h"

enum {
    TSR_QP_OCTAVE = 48,
    TSR_QP_INDEX_LIMIT = 8 * (51 + 6 * 8), /* the highest q: QP 51 at 16 bits */
    TSR_FORWARD_SHIFT = 20,
    TSR_INVERSE_SHIFT = 16
};

/* 2^20 / (norms * step), by place in the octave and class. */
TSR_TABLE(int32_t, tsr_quantiser_forward, 3 * TSR_QP_OCTAVE, 416128, 263182, 166451, 410162, 259409, 164065, 404281,
          255690, 161713, 398485, 252024, 159394, 392772, 248411, 157109, 387141, 244850, 154856, 381591, 241339,
          152636, 376120, 237879, 150448, 370728, 234469, 148291, 365413, 231107, 146165, 360174, 227794, 144069,
          355010, 224528, 142004, 349920, 221309, 139968, 344904, 218136, 137961, 339959, 215009, 135983, 335085,
          211926, 134034, 330281, 208888, 132112, 325546, 205893, 130218, 320878, 202941, 128351, 316278, 200032,
          126511, 311744, 197164, 124697, 307274, 194337, 122910, 302869, 191551, 121148, 298527, 188805, 119411,
          294247, 186098, 117699, 290028, 183430, 116011, 285870, 180800, 114348, 281772, 178208, 112709, 277732,
          175653, 111093, 273750, 173135, 109500, 269825, 170653, 107930, 265957, 168206, 106383, 262144, 165794,
          104858, 258386, 163417, 103354, 254681, 161075, 101873, 251030, 158765, 100412, 247431, 156489, 98972, 243884,
          154246, 97553, 240387, 152034, 96155, 236941, 149854, 94776, 233544, 147706, 93418, 230195, 145588, 92078,
          226895, 143501, 90758, 223642, 141444, 89457, 220436, 139416, 88174, 217276, 137417, 86910, 214161, 135447,
          85664, 211090, 133505, 84436);

/* 2^16 * step / norms. */
TSR_TABLE(int32_t, tsr_quantiser_inverse, 3 * TSR_QP_OCTAVE, 10321, 6528, 4129, 10471, 6623, 4189, 10624, 6719, 4249,
          10778, 6817, 4311, 10935, 6916, 4374, 11094, 7017, 4438, 11255, 7119, 4502, 11419, 7222, 4568, 11585, 7327,
          4634, 11754, 7434, 4701, 11925, 7542, 4770, 12098, 7652, 4839, 12274, 7763, 4910, 12453, 7876, 4981, 12634,
          7990, 5054, 12818, 8107, 5127, 13004, 8224, 5202, 13193, 8344, 5277, 13385, 8465, 5354, 13580, 8589, 5432,
          13777, 8713, 5511, 13978, 8840, 5591, 14181, 8969, 5672, 14387, 9099, 5755, 14596, 9232, 5839, 14809, 9366,
          5924, 15024, 9502, 6010, 15243, 9640, 6097, 15464, 9781, 6186, 15689, 9923, 6276, 15918, 10067, 6367, 16149,
          10214, 6460, 16384, 10362, 6554, 16622, 10513, 6649, 16864, 10666, 6746, 17109, 10821, 6844, 17358, 10978,
          6943, 17611, 11138, 7044, 17867, 11300, 7147, 18127, 11464, 7251, 18390, 11631, 7356, 18658, 11800, 7463,
          18929, 11972, 7572, 19205, 12146, 7682, 19484, 12323, 7794, 19767, 12502, 7907, 20055, 12684, 8022, 20347,
          12868, 8139);

/* Class of the value in row i, column j of a block: how many of the two rows of the transform are odd. */
TSR_HD int tsr_norm_class(int i, int j)
{
    return (i & 1) + (j & 1);
}

/* Dead zones, as the share of a step that is added before rounding down, in 1/65536. The DC is predicted, not
 * zero most of the time, so it is rounded to nearest. */
enum { TSR_ROUND_DC = 32768, TSR_ROUND_AC = 21845 };

/* Value of the core transform (below 2^22: 36 times a 16-bit sample) to coefficient. The product stays below
 * 2^22 * 2^19 = 2^41; the coefficient below 2^21 (q = 0, class 0), so far inside TSR_COEFFICIENT_LIMIT. */
TSR_HD int32_t tsr_quantise(int32_t value, int32_t q, int norm_class, int32_t rounding)
{
    const int shift = TSR_FORWARD_SHIFT + q / TSR_QP_OCTAVE;
    const int64_t factor = TSR_AT(tsr_quantiser_forward)[3 * (q % TSR_QP_OCTAVE) + norm_class];
    const int64_t magnitude = (int64_t)tsr_abs(value) * factor + ((int64_t)rounding << (shift - 16));
    const int32_t coefficient = (int32_t)((uint64_t)magnitude >> shift);
    return value < 0 ? -coefficient : coefficient;
}

/* Coefficient (within TSR_COEFFICIENT_LIMIT) to what the inverse transform takes, with TSR_INVERSE_SHIFT fraction bits:
 * below 2^23 * 2^15 * 2^16 = 2^54. */
TSR_HD int64_t tsr_dequantise(int32_t coefficient, int32_t q, int norm_class)
{
    const int64_t factor = TSR_AT(tsr_quantiser_inverse)[3 * (q % TSR_QP_OCTAVE) + norm_class];
    return (int64_t)coefficient * factor * ((int64_t)1 << (q / TSR_QP_OCTAVE));
}

/* Encoder: what is added to q for plane 0, 1, 2 of a colour transform, so that an error of each plane comes out as
 * large in R, G and B together: 24 log2 of the plane's squared weight in them (3, 3/4 and so on), negative. Transforms
 * by their numbers, FORMAT.md 6.3. */
TSR_TABLE(int8_t, tsr_colour_qp_offset, 4 * 3, 0, 0, 0, -38, 0, 0, -38, 13, 13, -38, 24, 10);

TSR_HD int32_t tsr_colour_qp(int colour, int plane)
{
    return TSR_AT(tsr_colour_qp_offset)[3 * colour + plane];
}

/* Encoder: what is added besides for plane 0, 1, 2 of YCoCg where SSIM decides. Errors of Co and Cg are seen less than
 * those of Y (tests/bench/decisions/040). */
TSR_TABLE(int8_t, tsr_seen_qp_offset, 3, 0, 32, 48);

/* ---- With fractions: FORMAT.md 8.7 ------------------------------------------------------------------------- */

/* Samples have TSR_LAP_BITS fraction bits, values of the core transform are below 2^21 * 36 in magnitude; the
 * inverse transform takes TSR_FINE_BITS fraction bits, in 32. */
enum {
    TSR_FINE_BITS = 7,
    TSR_FINE_DROP = TSR_INVERSE_SHIFT - TSR_FINE_BITS,
    TSR_FINE_LIMIT = 1 << 24,    /* magnitudes of scaled coefficients are clamped to this, */
    TSR_FINE_DC_LIMIT = 1 << 26, /* of the DC to this: sums of the inverse stay below 60 * 2^24 + 2^26 < 2^31 */
    TSR_STEP_BITS = 15,          /* tsr_quantiser_step is below 2^this */
    TSR_UNIT_BITS = 8            /* encoder: values in 1/256 of a step */
};

TSR_HD int32_t tsr_quantiser_step(int32_t q, int norm_class)
{
    return TSR_AT(tsr_quantiser_inverse)[3 * (q % TSR_QP_OCTAVE) + norm_class];
}

TSR_HD int32_t tsr_quantiser_factor(int32_t q, int norm_class)
{
    return TSR_AT(tsr_quantiser_forward)[3 * (q % TSR_QP_OCTAVE) + norm_class];
}

TSR_HD int tsr_quantiser_units_shift(int32_t q)
{
    return TSR_FORWARD_SHIFT + TSR_LAP_BITS - TSR_UNIT_BITS + q / TSR_QP_OCTAVE;
}

/* Value of samples with their fraction to units: below 2^27 * 2^19 = 2^46 on the way, 2^21 * 2^8 = 2^29 in the end,
 * with the factors of classes (step_classes.h) 2^47 and 2^30. */
TSR_HD int32_t tsr_units_by_factor(int32_t value, int32_t q, int32_t factor)
{
    const int shift = tsr_quantiser_units_shift(q);
    return (int32_t)tsr_asr64((int64_t)value * factor + ((int64_t)1 << (shift - 1)), shift);
}

TSR_HD int32_t tsr_quantiser_units(int32_t value, int32_t q, int norm_class)
{
    return tsr_units_by_factor(value, q, tsr_quantiser_factor(q, norm_class));
}

/* Magnitude of units as a coefficient, with a dead zone: a share of the step as tsr_quantise takes it. */
TSR_HD int32_t tsr_round_units(int32_t units, int32_t rounding)
{
    return (tsr_abs(units) + rounding / (65536 >> TSR_UNIT_BITS)) >> TSR_UNIT_BITS;
}

/* Coefficient (within TSR_COEFFICIENT_LIMIT) at a raster place to what the inverse takes. step: that of
 * tsr_quantiser_step, or of a class. */
TSR_HD int32_t tsr_scale_fine(int32_t coefficient, int32_t step, int32_t q, int raster)
{
    const int64_t product = (int64_t)coefficient * step * ((int64_t)1 << (q / TSR_QP_OCTAVE));
    const int64_t scaled = tsr_asr64(product + ((int64_t)1 << (TSR_FINE_DROP - 1)), TSR_FINE_DROP);
    const int32_t limit = raster == 0 ? TSR_FINE_DC_LIMIT : TSR_FINE_LIMIT;
    return (int32_t)(scaled < -limit ? -limit : scaled > limit ? limit : scaled);
}

TSR_HD int32_t tsr_dequantise_fine(int32_t coefficient, int32_t q, int raster)
{
    return tsr_scale_fine(coefficient, tsr_quantiser_step(q, tsr_norm_class(raster / 4, raster % 4)), q, raster);
}

#endif
