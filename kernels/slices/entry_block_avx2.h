/* A block that becomes entries, for AVX2. Part of rans_entries_avx2.h and pair_entries_avx2.h. */
#ifndef TSR_KERNELS_SLICES_ENTRY_BLOCK_AVX2_H
#define TSR_KERNELS_SLICES_ENTRY_BLOCK_AVX2_H

#include "energies_avx2.h"

/* A block at work, 16 bits a place. */
struct entry_block {
    __m256i value, seen; /* coefficients, saturated; magnitudes as neighbours see them */
    __m128i bytes;       /* coefficients, saturated */
    uint32_t at;         /* places that are not 0 */
};

/* tsr_see_magnitudes for a shift of up to 6, by which saturated magnitudes reach the cap. */
static inline struct entry_block load_entry_block(const int32_t *coefficients, int shift, struct tsr_magnitudes *seen)
{
    struct entry_block b;
    b.value = _mm256_permute4x64_epi64(_mm256_packs_epi32(_mm256_loadu_si256((const __m256i *)coefficients),
                                                          _mm256_loadu_si256((const __m256i *)(coefficients + 8))),
                                       0xd8);
    b.bytes = _mm_packs_epi16(_mm256_castsi256_si128(b.value), _mm256_extracti128_si256(b.value, 1));
    b.at = (uint32_t)_mm_movemask_epi8(_mm_cmpeq_epi8(b.bytes, _mm_setzero_si128())) ^ 0xffffu;
    if (shift <= 6)
        b.seen = _mm256_min_epu16(_mm256_srl_epi16(_mm256_abs_epi16(b.value), _mm_cvtsi32_si128(shift)),
                                  _mm256_set1_epi16(TSR_MAGNITUDE_CAP));
    else {
        tsr_see_magnitudes(coefficients, shift, seen);
        b.seen = _mm256_loadu_si256((const __m256i *)seen);
    }
    _mm256_storeu_si256((__m256i *)seen, b.seen);
    return b;
}

static inline bool is_zero_block(const int32_t *block)
{
    const __m256i any =
        _mm256_or_si256(_mm256_loadu_si256((const __m256i *)block), _mm256_loadu_si256((const __m256i *)(block + 8)));
    return _mm256_testz_si256(any, any);
}

#endif
