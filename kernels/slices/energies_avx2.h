/* Classes of energy for AVX2, all places of a block at once. Part of entry_block_avx2.h, choose_avx2.h and the readers.
 */
#ifndef TSR_KERNELS_SLICES_ENERGIES_AVX2_H
#define TSR_KERNELS_SLICES_ENERGIES_AVX2_H

#include <immintrin.h>

#include "entropy/energies.h"

/* tsr_energy_class of 16 energies, which is twice the place of the highest bit and the bit after it; 1 of 1, 0 of 0. By
 * bytes, and these by their halves. */
static inline __m256i tsr_energy_classes(__m256i energy)
{
    const __m256i of_low = _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 1, 2, 3, 4, 4, 5, 5, 6, 6, 6, 6, 7, 7, 7, 7));
    const __m256i of_high =
        _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 8, 10, 11, 12, 12, 13, 13, 14, 14, 14, 14, 15, 15, 15, 15));
    const __m256i half = _mm256_set1_epi8(15), one = _mm256_set1_epi8(1);
    const __m256i low = _mm256_and_si256(energy, half), high = _mm256_and_si256(_mm256_srli_epi16(energy, 4), half);
    const __m256i next =
        _mm256_and_si256(_mm256_and_si256(_mm256_srli_epi16(low, 3), one), _mm256_cmpeq_epi8(high, one));
    const __m256i by_byte =
        _mm256_blendv_epi8(_mm256_add_epi8(_mm256_shuffle_epi8(of_high, high), next), _mm256_shuffle_epi8(of_low, low),
                           _mm256_cmpeq_epi8(high, _mm256_setzero_si256()));
    const __m256i upper = _mm256_srli_epi16(energy, 8);
    const __m256i above = _mm256_blendv_epi8(_mm256_srli_epi16(by_byte, 8),
                                             _mm256_and_si256(_mm256_srli_epi16(energy, 7), _mm256_set1_epi16(1)),
                                             _mm256_cmpeq_epi16(upper, _mm256_set1_epi16(1)));
    return _mm256_blendv_epi8(_mm256_add_epi16(above, _mm256_set1_epi16(16)),
                              _mm256_and_si256(by_byte, _mm256_set1_epi16(255)),
                              _mm256_cmpeq_epi16(upper, _mm256_setzero_si256()));
}

/* What magnitudes at places p - 1 and p say of places 0 .. 15, by turns; row p. Rows of
 * tsr_weight_inside. */
static const uint8_t tsr_weights_of_pair[TSR_BLOCK_SAMPLES * 2 * TSR_BLOCK_SAMPLES] = {
    0, 0, 0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0, 0, 0,  0,  0, 0, 0, 0, 0, 0, 0, 0, 0,  0,  0, 0,  0, 0,  0, 0,
    0, 3, 0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0, 0, 0,  0,  0, 0, 0, 0, 0, 0, 0, 0, 0,  0,  0, 0,  0, 0,  0, 0,
    3, 6, 0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0, 0, 0,  0,  0, 0, 0, 0, 0, 0, 0, 0, 0,  0,  0, 0,  0, 0,  0, 0,
    6, 1, 0,  0,  0,  11, 0,  0,  0,  0,  0,  0,  0, 0, 0,  0,  0, 0, 0, 0, 0, 0, 0, 0, 0,  0,  0, 0,  0, 0,  0, 0,
    1, 6, 0,  5,  11, 7,  0,  2,  0,  0,  0,  0,  0, 0, 0,  0,  0, 0, 0, 0, 0, 0, 0, 0, 0,  0,  0, 0,  0, 0,  0, 0,
    6, 1, 5,  11, 7,  0,  2,  0,  0,  0,  0,  0,  0, 0, 0,  0,  0, 0, 0, 0, 0, 0, 0, 0, 0,  0,  0, 0,  0, 0,  0, 0,
    1, 0, 11, 11, 0,  0,  0,  0,  0,  0,  0,  14, 0, 0, 0,  0,  0, 0, 0, 0, 0, 0, 0, 0, 0,  0,  0, 0,  0, 0,  0, 0,
    0, 6, 11, 3,  0,  4,  0,  0,  0,  10, 14, 5,  0, 3, 0,  0,  0, 0, 0, 0, 0, 0, 0, 0, 0,  0,  0, 0,  0, 0,  0, 0,
    6, 4, 3,  4,  4,  4,  0,  5,  10, 9,  5,  1,  3, 1, 0,  3,  0, 0, 0, 0, 0, 0, 0, 0, 0,  0,  0, 0,  0, 0,  0, 0,
    4, 0, 4,  0,  4,  11, 5,  17, 9,  0,  1,  0,  1, 0, 3,  0,  0, 2, 0, 0, 0, 0, 0, 0, 0,  0,  0, 0,  0, 0,  0, 0,
    0, 5, 0,  2,  11, 4,  17, 6,  0,  7,  0,  1,  0, 0, 0,  2,  2, 9, 0, 9, 0, 0, 0, 0, 0,  0,  0, 0,  0, 0,  0, 0,
    5, 3, 2,  2,  4,  2,  6,  3,  7,  5,  1,  3,  0, 1, 2,  7,  9, 8, 9, 3, 0, 5, 0, 0, 0,  0,  0, 0,  0, 0,  0, 0,
    3, 7, 2,  4,  2,  3,  3,  0,  5,  10, 3,  5,  1, 6, 7,  11, 8, 3, 3, 1, 5, 2, 0, 4, 0,  0,  0, 0,  0, 0,  0, 0,
    7, 5, 4,  3,  3,  1,  0,  2,  10, 5,  5,  3,  6, 5, 11, 7,  3, 8, 1, 2, 2, 5, 4, 9, 0,  11, 0, 0,  0, 0,  0, 0,
    5, 2, 3,  1,  1,  2,  2,  2,  5,  5,  3,  2,  5, 1, 7,  5,  8, 8, 2, 7, 5, 9, 9, 9, 11, 6,  0, 7,  0, 0,  0, 0,
    2, 3, 1,  1,  2,  0,  2,  2,  5,  5,  2,  2,  1, 3, 5,  5,  8, 6, 7, 3, 9, 9, 9, 8, 6,  10, 7, 10, 0, 14, 0, 0};

/* tsr_energies_around */
static inline __m256i tsr_vector_energies(const struct tsr_magnitudes *left, const struct tsr_magnitudes *above)
{
    const __m256i w = _mm256_loadu_si256((const __m256i *)left), n = _mm256_loadu_si256((const __m256i *)above);
    const __m256i corners = _mm256_add_epi16(_mm256_loadu_si256((const __m256i *)(above - 1)),
                                             _mm256_loadu_si256((const __m256i *)(above + 1)));
    const __m256i by_left = _mm256_loadu_si256((const __m256i *)tsr_weight_left_host);
    const __m256i by_above = _mm256_loadu_si256((const __m256i *)tsr_weight_above_host);
    const __m256i by_corner = _mm256_loadu_si256((const __m256i *)tsr_weight_corner_host);
    return _mm256_add_epi16(_mm256_add_epi16(_mm256_mullo_epi16(w, by_left), _mm256_mullo_epi16(n, by_above)),
                            _mm256_mullo_epi16(corners, by_corner));
}

/* tsr_add_energies where no magnitude but the DC's, which adds nothing, is above 127. */
static inline __m256i tsr_add_small_energies(__m256i energy, __m256i seen)
{
    const __m256i all = _mm256_permute4x64_epi64(_mm256_packus_epi16(seen, seen), 0x88); /* bytes, twice */
    for (int k = 0; k < 8; k++) {
        const __m256i weights =
            _mm256_loadu_si256((const __m256i *)(tsr_weights_of_pair + 2 * TSR_BLOCK_SAMPLES * (2 * k + 1)));
        const __m256i pair = _mm256_set1_epi16((short)(0x0100 + 0x0202 * k));
        energy = _mm256_add_epi16(energy, _mm256_maddubs_epi16(weights, _mm256_shuffle_epi8(all, pair)));
    }
    return energy;
}

/* tsr_add_energies */
static inline __m256i tsr_add_vector_energies(__m256i energy, __m256i seen)
{
    const __m256i large = _mm256_insert_epi16(_mm256_set1_epi16(~127), 0, 0);
    if (_mm256_testz_si256(seen, large)) return tsr_add_small_energies(energy, seen);
    struct tsr_magnitudes magnitudes;
    uint16_t of_places[TSR_BLOCK_SAMPLES];
    _mm256_storeu_si256((__m256i *)&magnitudes, seen);
    _mm256_storeu_si256((__m256i *)of_places, energy);
    tsr_add_energies(&magnitudes, of_places);
    return _mm256_loadu_si256((const __m256i *)of_places);
}

/* What tsr_block_energy_class takes the class of, of energies from the neighbours: they are below 2^15, and the result
 * is below its limit of 65535. */
static inline uint32_t tsr_vector_energy(__m256i energy)
{
    const __m256i pairs = _mm256_madd_epi16(energy, _mm256_set1_epi16(1));
    __m128i sum = _mm_add_epi32(_mm256_castsi256_si128(pairs), _mm256_extracti128_si256(pairs, 1));
    sum = _mm_add_epi32(sum, _mm_unpackhi_epi64(sum, sum));
    sum = _mm_add_epi32(sum, _mm_shuffle_epi32(sum, 1));
    return (uint32_t)_mm_cvtsi128_si32(sum) >> 2;
}

/* tsr_block_energy_class */
static inline int tsr_vector_class(__m256i energy)
{
    return tsr_energy_class(tsr_vector_energy(energy));
}

#endif
