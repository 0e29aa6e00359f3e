/* Differences between frames with AVX2. Gain: 8 times plain C or more, with windows and a kept range 19 times
 * (tests/bench/decisions/032). */
#include "difference_cpu.h"

#if TSR_HAS_VECTOR_FORMS
#include <immintrin.h>

#define DIFFERENCE_FORM TSR_AVX2
#define DIFFERENCE_INLINE TSR_AVX2_INLINE
enum { LANES = 16, BITS_OF_LANE = 2 };
typedef __m256i vector, lanes; /* a lane that counts has all bits */

DIFFERENCE_INLINE unsigned lane_bits(lanes some)
{
    return (unsigned)__builtin_popcount((unsigned)_mm256_movemask_epi8(some));
}

DIFFERENCE_INLINE vector repeated(uint16_t number)
{
    return _mm256_set1_epi16((short)number);
}

DIFFERENCE_INLINE vector loaded(const uint8_t *words)
{
    return _mm256_loadu_si256((const void *)words);
}

DIFFERENCE_INLINE vector widened(const uint8_t *words)
{
    return _mm256_cvtepu8_epi16(_mm_loadu_si128((const void *)words));
}

DIFFERENCE_INLINE vector swapped(vector words)
{
    return _mm256_or_si256(_mm256_slli_epi16(words, 8), _mm256_srli_epi16(words, 8));
}

DIFFERENCE_INLINE vector shifted_right(vector v, __m128i bits)
{
    return _mm256_srl_epi16(v, bits);
}

DIFFERENCE_INLINE vector both(vector a, vector b)
{
    return _mm256_and_si256(a, b);
}

DIFFERENCE_INLINE vector exclusive_or(vector a, vector b)
{
    return _mm256_xor_si256(a, b);
}

DIFFERENCE_INLINE vector distance(vector a, vector b)
{
    return _mm256_or_si256(_mm256_subs_epu16(a, b), _mm256_subs_epu16(b, a));
}

DIFFERENCE_INLINE vector larger(vector a, vector b)
{
    return _mm256_max_epu16(a, b);
}

DIFFERENCE_INLINE lanes no_lanes(void)
{
    return _mm256_setzero_si256();
}

DIFFERENCE_INLINE lanes all_lanes(void)
{
    return _mm256_set1_epi16(-1);
}

DIFFERENCE_INLINE lanes either(lanes a, lanes b)
{
    return _mm256_or_si256(a, b);
}

DIFFERENCE_INLINE lanes all_but(lanes without, lanes some)
{
    return _mm256_andnot_si256(without, some);
}

DIFFERENCE_INLINE lanes lanes_in(vector v, uint16_t low, uint16_t span)
{
    const vector above = _mm256_sub_epi16(v, repeated(low));
    return _mm256_cmpeq_epi16(_mm256_min_epu16(above, repeated(span)), above);
}

DIFFERENCE_INLINE vector only(vector v, lanes some)
{
    return _mm256_and_si256(v, some);
}

/* The sums of two squares each in lanes of 32 bits. */
DIFFERENCE_INLINE vector added_squares(vector sums, vector v)
{
    return _mm256_add_epi32(sums, _mm256_madd_epi16(v, v));
}

DIFFERENCE_INLINE uint32_t most_of(vector v)
{
    const __m128i half = _mm_max_epu16(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
    return 65535u - (uint32_t)_mm_extract_epi16(_mm_minpos_epu16(_mm_xor_si128(half, _mm_set1_epi16(-1))), 0);
}

DIFFERENCE_INLINE uint64_t sum_of(vector sums)
{
    const __m256i pairs =
        _mm256_add_epi64(_mm256_and_si256(sums, _mm256_set1_epi64x(UINT32_MAX)), _mm256_srli_epi64(sums, 32));
    const __m128i half = _mm_add_epi64(_mm256_castsi256_si128(pairs), _mm256_extracti128_si256(pairs, 1));
    return (uint64_t)_mm_cvtsi128_si64(half) + (uint64_t)_mm_extract_epi64(half, 1);
}

#include "difference_vectors.h"

const struct tsr_difference_form tsr_difference_avx2 = {LANES, add_any_block};
#endif
