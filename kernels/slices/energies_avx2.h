/* Classes of energy for AVX2, all places of a block at once. */
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
