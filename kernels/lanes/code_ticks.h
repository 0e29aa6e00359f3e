/* In which columns of a row the decoder takes the words of a lane's string, sixteen columns at once. With SSE2, which
 * every x86-64 has: the plain form and the one for AVX2 share it. Private to code_lanes_*.c. */
#ifndef TSR_KERNELS_LANES_CODE_TICKS_H
#define TSR_KERNELS_LANES_CODE_TICKS_H

#include "code_lanes.h"

#if defined(__SSE2__)
#include <emmintrin.h>

/* By number of 8 bits: the places of its ones, a byte each, the lowest first. */
#define ONES(m) \
    (((m)&1) + ((m) >> 1 & 1) + ((m) >> 2 & 1) + ((m) >> 3 & 1) + ((m) >> 4 & 1) + ((m) >> 5 & 1) + ((m) >> 6 & 1))
#define PLACE(m, bit) ((uint64_t)((m) >> (bit)&1) * (bit) << 8 * ONES((m) & ((1 << (bit)) - 1)))
#define PLACES(m) (PLACE(m, 1) | PLACE(m, 2) | PLACE(m, 3) | PLACE(m, 4) | PLACE(m, 5) | PLACE(m, 6) | PLACE(m, 7))
#define PLACES_4(m) PLACES(m), PLACES((m) + 1), PLACES((m) + 2), PLACES((m) + 3)
#define PLACES_16(m) PLACES_4(m), PLACES_4((m) + 4), PLACES_4((m) + 8), PLACES_4((m) + 12)
#define PLACES_64(m) PLACES_16(m), PLACES_16((m) + 16), PLACES_16((m) + 32), PLACES_16((m) + 48)
static const uint64_t places_of_ones[256] = {PLACES_64(0), PLACES_64(64), PLACES_64(128), PLACES_64(192)};

/* The places of the ones of a number of 8 bits, in the low half. */
TSR_HD_INLINE __m128i places_of(uint32_t mask)
{
    return _mm_loadl_epi64((const __m128i *)(const void *)&places_of_ones[mask]);
}

/* For each byte, the sum of the bytes before it, at most 255. */
TSR_HD_INLINE __m128i sums_before(__m128i v)
{
    v = _mm_slli_si128(v, 1);
    v = _mm_adds_epu8(v, _mm_slli_si128(v, 1));
    v = _mm_adds_epu8(v, _mm_slli_si128(v, 2));
    v = _mm_adds_epu8(v, _mm_slli_si128(v, 4));
    return _mm_adds_epu8(v, _mm_slli_si128(v, 8));
}

/* The words that are taken at each column, before its code, if the sums of lengths are below 240. sums: of the codes'
 * lengths before each; bits, words: before the first. */
TSR_HD_INLINE __m128i words_taken(__m128i sums, uint32_t bits, uint32_t words, int refill_bits)
{
    const uint32_t before = bits + (uint32_t)refill_bits + TSR_LANE_WORD_BITS - 1;
    static_assert(TSR_LANE_WORD_BITS == 16, "a word's bits are shifted out");
    const __m128i bits_before = _mm_add_epi8(sums, _mm_set1_epi8((char)(before % 16)));
    const __m128i wanted = _mm_and_si128(_mm_srli_epi16(bits_before, 4), _mm_set1_epi8(15));
    return _mm_or_si128(_mm_sub_epi8(wanted, _mm_slli_si128(wanted, 1)), /* 0 at the first column */
                        _mm_cvtsi32_si128((int)(before / 16 - words)));
}

#endif
#endif
