/* Differences between frames with AVX-512, which has lanes as bits and adds squares in one instruction. Gain: 1.4
 * times AVX2 or more (tests/bench/decisions/032). */
#include "difference_cpu.h"

#if TSR_HAS_VECTOR_FORMS
#include <immintrin.h>

#define DIFFERENCE_FORM TSR_AVX512
#define DIFFERENCE_INLINE TSR_AVX512_INLINE
enum { LANES = 32, BITS_OF_LANE = 1 };
typedef __m512i vector;
typedef __mmask32 lanes;

DIFFERENCE_INLINE unsigned lane_bits(lanes some)
{
    return (unsigned)__builtin_popcount(some);
}

DIFFERENCE_INLINE vector repeated(uint16_t number)
{
    return _mm512_set1_epi16((short)number);
}

DIFFERENCE_INLINE vector loaded(const uint8_t *words)
{
    return _mm512_loadu_si512((const void *)words);
}

DIFFERENCE_INLINE vector widened(const uint8_t *words)
{
    return _mm512_cvtepu8_epi16(_mm256_loadu_si256((const void *)words));
}

DIFFERENCE_INLINE vector swapped(vector words)
{
    return _mm512_or_si512(_mm512_slli_epi16(words, 8), _mm512_srli_epi16(words, 8));
}

DIFFERENCE_INLINE vector shifted_right(vector v, __m128i bits)
{
    return _mm512_srl_epi16(v, bits);
}

DIFFERENCE_INLINE vector both(vector a, vector b)
{
    return _mm512_and_si512(a, b);
}

DIFFERENCE_INLINE vector exclusive_or(vector a, vector b)
{
    return _mm512_xor_si512(a, b);
}

DIFFERENCE_INLINE vector distance(vector a, vector b)
{
    return _mm512_or_si512(_mm512_subs_epu16(a, b), _mm512_subs_epu16(b, a));
}

DIFFERENCE_INLINE vector larger(vector a, vector b)
{
    return _mm512_max_epu16(a, b);
}

DIFFERENCE_INLINE lanes no_lanes(void)
{
    return 0;
}

DIFFERENCE_INLINE lanes all_lanes(void)
{
    return UINT32_MAX;
}

DIFFERENCE_INLINE lanes either(lanes a, lanes b)
{
    return a | b;
}

DIFFERENCE_INLINE lanes all_but(lanes without, lanes some)
{
    return some & ~without;
}

DIFFERENCE_INLINE lanes lanes_in(vector v, uint16_t low, uint16_t span)
{
    return _mm512_cmple_epu16_mask(_mm512_sub_epi16(v, repeated(low)), repeated(span));
}

DIFFERENCE_INLINE vector only(vector v, lanes some)
{
    return _mm512_maskz_mov_epi16(some, v);
}

/* The sums of two squares each in lanes of 32 bits. */
DIFFERENCE_INLINE vector added_squares(vector sums, vector v)
{
    return _mm512_dpwssd_epi32(sums, v, v);
}

DIFFERENCE_INLINE uint32_t most_of(vector v)
{
    const __m256i half = _mm256_max_epu16(_mm512_castsi512_si256(v), _mm512_extracti64x4_epi64(v, 1));
    const __m128i quarter = _mm_max_epu16(_mm256_castsi256_si128(half), _mm256_extracti128_si256(half, 1));
    return 65535u - (uint32_t)_mm_extract_epi16(_mm_minpos_epu16(_mm_xor_si128(quarter, _mm_set1_epi16(-1))), 0);
}

DIFFERENCE_INLINE uint64_t sum_of(vector sums)
{
    return (uint64_t)_mm512_reduce_add_epi64(
        _mm512_add_epi64(_mm512_and_si512(sums, _mm512_set1_epi64(UINT32_MAX)), _mm512_srli_epi64(sums, 32)));
}

#include "difference_vectors.h"

const struct tsr_difference_form tsr_difference_avx512 = {LANES, add_any_block};
#endif
