/* Energies: what the magnitudes around a coefficient say of its own. Contexts of path T's modelled blocks.
 * FORMAT.md 8.6.
 *
 * The energy of a place of the scan is a weighted sum of magnitudes: of the left and the upper block and the two upper
 * corners, all at the same place, and of the block's own higher places, which are coded before. Weights are a least
 * squares fit of the magnitude itself, in 1/32, over 8 images at 4 QPs; from QP 10 to 36 they hardly change. With all
 * places of the neighbours as features: 0.5 % fewer bits; sums over whole neighbours: 0.3 %. */
#ifndef TSR_ENTROPY_ENERGIES_H
#define TSR_ENTROPY_ENERGIES_H

#include <string.h>

#include "transform/block/blocks.h"

#if defined(__SSE2__) && !defined(__CUDACC__)
#include <emmintrin.h>
#endif

enum {
    TSR_MAGNITUDE_CAP = 511, /* no energy exceeds 511 * 71 < 2^16: 71 is the largest sum of a place's weights */
    TSR_ENERGY_CLASSES = 32
};

/* What coders make of a slice before they write it: entries, cell << 8 | symbol or these, at most 16 raw bits. */
enum { TSR_RAW_ENTRY = 1 << 30 };

TSR_HD uint32_t tsr_raw_entry(uint32_t value, int bits)
{
    return (uint32_t)TSR_RAW_ENTRY | (uint32_t)bits << 16 | value;
}

TSR_TABLE(uint16_t, tsr_weight_left, TSR_BLOCK_SAMPLES, 7, 2, 7, 7, 3, 3, 4, 3, 3, 12, 7, 4, 5, 5, 7, 10);
TSR_TABLE(uint16_t, tsr_weight_above, TSR_BLOCK_SAMPLES, 6, 9, 2, 4, 3, 10, 14, 4, 3, 5, 4, 4, 6, 6, 7, 9);
TSR_TABLE(uint16_t, tsr_weight_corner, TSR_BLOCK_SAMPLES, 3, 1, 1, 1, 1, 1, 2, 2, 1, 2, 3, 2, 4, 4, 5, 8);

/* Of the magnitude at place k on the energies of places 0 .. 15: row k. */
TSR_TABLE(uint16_t, tsr_weight_inside, TSR_BLOCK_SAMPLES *TSR_BLOCK_SAMPLES, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
          0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 6, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0,
          11, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 6, 5, 7, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 11, 0, 0, 0, 0,
          0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 11, 0, 0, 0, 14, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 6, 3, 4, 0, 10, 5, 3, 0, 0, 0,
          0, 0, 0, 0, 0, 0, 4, 4, 4, 5, 9, 1, 1, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 11, 17, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0,
          0, 0, 5, 2, 4, 6, 7, 1, 0, 2, 9, 9, 0, 0, 0, 0, 0, 0, 3, 2, 2, 3, 5, 3, 1, 7, 8, 3, 5, 0, 0, 0, 0, 0, 7, 4, 3,
          0, 10, 5, 6, 11, 3, 1, 2, 4, 0, 0, 0, 0, 5, 3, 1, 2, 5, 3, 5, 7, 8, 2, 5, 9, 11, 0, 0, 0, 2, 1, 2, 2, 5, 2, 1,
          5, 8, 7, 9, 9, 6, 7, 0, 0, 3, 1, 0, 2, 5, 2, 3, 5, 6, 3, 9, 8, 10, 10, 14, 0);

/* A block's magnitudes as its neighbours see them. */
struct tsr_magnitudes {
    uint16_t at[TSR_BLOCK_SAMPLES];
};

/* Magnitude of a coefficient: shifted by the plane's magnitude shift, and capped. */
TSR_HD_INLINE uint32_t tsr_seen_magnitude(uint32_t magnitude, int shift)
{
    const uint32_t shifted = magnitude >> shift;
    return shifted < TSR_MAGNITUDE_CAP ? shifted : TSR_MAGNITUDE_CAP;
}

TSR_HD_INLINE void tsr_see_magnitudes(const int32_t coefficients[TSR_BLOCK_SAMPLES], int shift,
                                      struct tsr_magnitudes *out)
{
    for (int p = 0; p < TSR_BLOCK_SAMPLES; p++)
        out->at[p] = (uint16_t)tsr_seen_magnitude((uint32_t)tsr_abs(coefficients[p]), shift);
}

/* All places at once where the compiler has vectors; gcc makes 16 scalar additions of the loops. */
#if defined(__GNUC__) && !defined(__CUDACC__)
typedef uint16_t tsr_place_vector __attribute__((vector_size(2 * TSR_BLOCK_SAMPLES)));
typedef uint32_t tsr_pair_vector __attribute__((vector_size(2 * TSR_BLOCK_SAMPLES)));
#define TSR_PLACE_VECTORS 1
#else
#define TSR_PLACE_VECTORS 0
#endif

/* Energies from the neighbours alone; blocks outside the slice count as zeros. */
TSR_HD_INLINE void tsr_energies_around(const struct tsr_magnitudes *left, const struct tsr_magnitudes *above,
                                       const struct tsr_magnitudes *corner_left,
                                       const struct tsr_magnitudes *corner_right, uint16_t energy[TSR_BLOCK_SAMPLES])
{
#if TSR_PLACE_VECTORS
    tsr_place_vector w, n, nw, ne, by_left, by_above, by_corner;
    memcpy(&w, left, sizeof w);
    memcpy(&n, above, sizeof n);
    memcpy(&nw, corner_left, sizeof nw);
    memcpy(&ne, corner_right, sizeof ne);
    memcpy(&by_left, TSR_AT(tsr_weight_left), sizeof by_left);
    memcpy(&by_above, TSR_AT(tsr_weight_above), sizeof by_above);
    memcpy(&by_corner, TSR_AT(tsr_weight_corner), sizeof by_corner);
    w = w * by_left + n * by_above + (nw + ne) * by_corner;
    memcpy(energy, &w, sizeof w);
#else
    for (int p = 0; p < TSR_BLOCK_SAMPLES; p++)
        energy[p] = (uint16_t)(left->at[p] * TSR_AT(tsr_weight_left)[p] + above->at[p] * TSR_AT(tsr_weight_above)[p] +
                               (corner_left->at[p] + corner_right->at[p]) * TSR_AT(tsr_weight_corner)[p]);
#endif
}

/* Adds what the magnitude at this place says of those below it. */
TSR_HD_INLINE void tsr_add_energy(uint16_t energy[TSR_BLOCK_SAMPLES], int place, uint32_t magnitude)
{
    const uint16_t *weight = TSR_AT(tsr_weight_inside) + TSR_BLOCK_SAMPLES * place;
    const uint16_t by = (uint16_t)magnitude;
#if TSR_PLACE_VECTORS
    tsr_place_vector sum, weights;
    memcpy(&sum, energy, sizeof sum);
    memcpy(&weights, weight, sizeof weights);
    sum += weights * by;
    memcpy(energy, &sum, sizeof sum);
#else
    for (int p = 0; p < TSR_BLOCK_SAMPLES; p++) energy[p] = (uint16_t)(energy[p] + by * weight[p]);
#endif
}

/* Adds what all of the block's magnitudes say of those below them: what a decoder finds step by step. */
TSR_HD_INLINE void tsr_add_energies(const struct tsr_magnitudes *seen, uint16_t energy[TSR_BLOCK_SAMPLES])
{
#if TSR_PLACE_VECTORS
    tsr_place_vector sum, weights;
    memcpy(&sum, energy, sizeof sum);
    for (int k = 1; k < TSR_BLOCK_SAMPLES; k++) {
        memcpy(&weights, TSR_AT(tsr_weight_inside) + TSR_BLOCK_SAMPLES * k, sizeof weights);
        sum += weights * seen->at[k];
    }
    memcpy(energy, &sum, sizeof sum);
#else
    for (int k = 1; k < TSR_BLOCK_SAMPLES; k++) tsr_add_energy(energy, k, seen->at[k]);
#endif
}

/* Magnitudes that a decoder finds one by one: in a register, since a block that is written place by place and then read
 * as a whole waits for its last write. */
#if TSR_PLACE_VECTORS
typedef tsr_place_vector tsr_seen_places;
static const uint16_t tsr_one_place[2 * TSR_BLOCK_SAMPLES] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xffff};
#else
typedef struct tsr_magnitudes tsr_seen_places;
#endif

TSR_HD_INLINE void tsr_see_none(tsr_seen_places *seen)
{
    memset(seen, 0, sizeof *seen);
}

TSR_HD_INLINE void tsr_see_place(tsr_seen_places *seen, int place, uint32_t magnitude)
{
#if TSR_PLACE_VECTORS
    tsr_place_vector lane;
    memcpy(&lane, tsr_one_place + (TSR_BLOCK_SAMPLES - 1 - place), sizeof lane);
    *seen |= lane & (uint16_t)magnitude;
#else
    seen->at[place] = (uint16_t)magnitude;
#endif
}

/* Classes of energy: two an octave; 0 and 1 are classes of their own, found by a bit after the last one. */
TSR_HD_INLINE int tsr_energy_class(uint32_t energy)
{
    const uint32_t bits = energy << 1 | 1u;
    const int exponent = tsr_floor_log2(bits);
    return tsr_max(0, 2 * exponent - 4 + (int)(bits << (31 - exponent) >> 30));
}

/* Coefficient of the whole block, from the neighbours alone. */
TSR_HD_INLINE int tsr_block_energy_class(const uint16_t energy[TSR_BLOCK_SAMPLES])
{
    uint32_t sum = 0;
#if TSR_PLACE_VECTORS
    tsr_pair_vector pairs;
    uint32_t part[TSR_BLOCK_SAMPLES / 2];
    memcpy(&pairs, energy, sizeof pairs);
    pairs = (pairs & 0xffffu) + (pairs >> 16);
    memcpy(part, &pairs, sizeof part);
    for (int p = 0; p < TSR_BLOCK_SAMPLES / 2; p++) sum += part[p];
#else
    for (int p = 0; p < TSR_BLOCK_SAMPLES; p++) sum += energy[p];
#endif
    sum >>= 2;
    return tsr_energy_class(sum < 65535 ? sum : 65535);
}

/* Which of 16 coefficients are not 0: bit p is place p's. */
TSR_HD_INLINE uint32_t tsr_places_not_zero(const int32_t coefficients[TSR_BLOCK_SAMPLES])
{
#if defined(__SSE2__) && !defined(__CUDACC__)
    __m128i v[4];
    for (int i = 0; i < 4; i++) v[i] = _mm_loadu_si128((const __m128i *)coefficients + i);
    const __m128i all = _mm_packs_epi16(_mm_packs_epi32(v[0], v[1]), _mm_packs_epi32(v[2], v[3]));
    return (uint32_t)_mm_movemask_epi8(_mm_cmpeq_epi8(all, _mm_setzero_si128())) ^ 0xffffu;
#else
    uint32_t places = 0;
    for (int p = 0; p < TSR_BLOCK_SAMPLES; p++) places |= (uint32_t)(coefficients[p] != 0) << p;
    return places;
#endif
}

/* Places up to the last coefficient that is not 0: 0 .. 16. */
TSR_HD_INLINE int tsr_coded_places(const int32_t coefficients[TSR_BLOCK_SAMPLES])
{
    return tsr_bit_width(tsr_places_not_zero(coefficients));
}

#endif
