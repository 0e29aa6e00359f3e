/* tsr_pair_entries for AVX2: all pairs of a block at once, in seven tenths of the instructions. Pairs with raw low bits
 * or large digits, and those with place 0, go by tsr_pair_at. test_coefficients_cpu holds it equal. Part of
 * coefficients_avx2.c. */
#ifndef TSR_KERNELS_SLICES_PAIR_ENTRIES_AVX2_H
#define TSR_KERNELS_SLICES_PAIR_ENTRIES_AVX2_H

#include "energies_avx2.h"
#include "entropy/coefficient_pairs.h"

/* What the magnitude at a place says of the place below it. */
static const uint16_t weight_below[TSR_BLOCK_SAMPLES] = {0, 3, 0, 11, 2, 0, 14, 3, 3, 2, 9, 5, 4, 11, 7, 14};

/* Values of the place below each place. */
static inline __m256i one_place_up(__m256i v)
{
    return _mm256_alignr_epi8(v, _mm256_permute2x128_si256(v, v, 0x08), 14);
}

/* entry[p]: that of the pair of places p and p - 1. Returns a bit for each place whose entry is not this one: two bits
 * a place, both alike. energy: with what the block's magnitudes say. */
static inline uint32_t simple_pairs(const int32_t *coefficients, __m256i seen, __m256i energy, int places,
                                    int magnitude_shift, uint32_t entry[TSR_BLOCK_SAMPLES])
{
    const __m256i zero = _mm256_setzero_si256(), one = _mm256_set1_epi16(1);
    const __m256i value =
        _mm256_permute4x64_epi64(_mm256_packs_epi32(_mm256_loadu_si256((const __m256i *)coefficients),
                                                    _mm256_loadu_si256((const __m256i *)(coefficients + 8))),
                                 0xd8);
    const __m256i below = _mm256_loadu_si256((const __m256i *)weight_below);
    const __m256i second_energy = _mm256_sub_epi16(one_place_up(energy), _mm256_mullo_epi16(seen, below));
    const __m256i expected = _mm256_add_epi16(_mm256_and_si256(energy, second_energy),
                                              _mm256_srli_epi16(_mm256_xor_si256(energy, second_energy), 1));
    const __m256i place = _mm256_setr_epi16(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    const __m256i highest = _mm256_cmpeq_epi16(place, _mm256_set1_epi16((short)(places - 1)));
    const __m256i magnitude = _mm256_abs_epi16(value); /* at most 32767, since packs saturates and abs keeps -32768 */
    const __m256i first = _mm256_add_epi16(magnitude, highest), second = one_place_up(magnitude);
    const __m256i signs_of = _mm256_add_epi16(_mm256_cmpeq_epi16(value, zero), one); /* 1: not 0 */
    const __m256i second_signs = one_place_up(signs_of), negative = _mm256_srli_epi16(value, 15);
    const __m256i second_negative = one_place_up(negative);
    const __m256i signs = _mm256_or_si256(
        second_negative, _mm256_add_epi16(negative, _mm256_and_si256(negative, _mm256_sub_epi16(zero, second_signs))));
    const __m256i raw = _mm256_or_si256(_mm256_add_epi16(signs_of, second_signs), _mm256_slli_epi16(signs, 2));
    const __m256i group = _mm256_blendv_epi8(_mm256_set1_epi16(TSR_PAIR_OTHERS * TSR_ENERGY_CLASSES),
                                             _mm256_set1_epi16(TSR_PAIR_HIGHEST * TSR_ENERGY_CLASSES), highest);
    const __m256i cell = _mm256_add_epi16(group, tsr_energy_classes(expected));
    const __m256i symbol = _mm256_add_epi16(_mm256_mullo_epi16(first, _mm256_set1_epi16(TSR_PAIR_DIGITS)), second);
    const __m256i low = _mm256_or_si256(_mm256_slli_epi16(cell, 8), symbol);
    const __m256i a = _mm256_unpacklo_epi16(low, raw), b = _mm256_unpackhi_epi16(low, raw);
    _mm256_storeu_si256((__m256i *)entry, _mm256_permute2x128_si256(a, b, 0x20));
    _mm256_storeu_si256((__m256i *)(entry + 8), _mm256_permute2x128_si256(a, b, 0x31));
    /* No low bits: energies of 4 << 5 and more have them, with a shift those of 2 << 5 and more; unsigned. */
    const __m256i least = _mm256_set1_epi16(magnitude_shift == 0 ? 128 : magnitude_shift == 1 ? 64 : 0);
    const __m256i digits = _mm256_max_epu16(first, second);
    const __m256i other = _mm256_or_si256(_mm256_cmpeq_epi16(_mm256_max_epu16(expected, least), expected),
                                          _mm256_cmpgt_epi16(digits, _mm256_set1_epi16(TSR_PAIR_DIGITS - 2)));
    const __m256i large = _mm256_cmpgt_epi16(zero, digits); /* 32768 */
    return (uint32_t)_mm256_movemask_epi8(_mm256_or_si256(other, large));
}

static inline int pair_entries(const int32_t coefficients[TSR_BLOCK_SAMPLES], const struct tsr_magnitudes *seen,
                               uint16_t energy[TSR_BLOCK_SAMPLES], int cell, int magnitude_shift, uint32_t *out)
{
    const int places = tsr_coded_places(coefficients);
    int count = 0, p = places - 1;
    out[count++] = (uint32_t)cell << 8 | (uint32_t)places;
    if (places == 0) return count;
    if (p > 0) tsr_add_energies(seen, energy);
    if (p > 1) {
        uint32_t entry[TSR_BLOCK_SAMPLES];
        const uint32_t other =
            simple_pairs(coefficients, _mm256_loadu_si256((const __m256i *)seen),
                         _mm256_loadu_si256((const __m256i *)energy), places, magnitude_shift, entry);
        /* Bits of the places at which pairs begin: every other one from the last one down to 2. */
        const uint32_t pairs = (places & 1 ? 0x11111110u : 0x44444440u) & ((1u << 2 * p << 1) - 1u);
        if ((other & pairs) == 0) { /* how many there are cannot be foreseen: seven are written, and so many count */
            for (int i = 0; i < 7; i++) out[count + i] = entry[(p - 2 * i) & 15];
            count += p >> 1;
            p &= 1;
        }
        for (; p > 1; p -= 2) {
            if (other >> (2 * p) & 1u)
                count = tsr_pair_at(coefficients, seen, energy, p, places, magnitude_shift, out, count);
            else
                out[count++] = entry[p];
        }
    }
    if (p == 1) return tsr_pair_at(coefficients, seen, energy, 1, places, magnitude_shift, out, count);
    return tsr_lone_entries(coefficients[0], energy[0], places, out, count);
}

#endif
