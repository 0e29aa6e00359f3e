/* tsr_cavlc_get for AVX2: coefficients and runs of zeros by tables, several runs by one look-up, and all of a block put
 * to their places at once. test_blocks_cpu holds it equal. Part of blocks_avx2.c.
 * Gain: 1.13 times all of decoding's blocks on grey photographs, 1.02 times on other frames
 * (tests/bench/decisions/032). */
#ifndef TSR_KERNELS_SLICES_CAVLC_READ_AVX2_H
#define TSR_KERNELS_SLICES_CAVLC_READ_AVX2_H

#include <immintrin.h>

#include "cavlc_tables_avx2.h"
#include "entropy/cavlc.h"

enum { CAVLC_FRONT = 2, CAVLC_ROOM = CAVLC_FRONT + TSR_BLOCK_SAMPLES + 16 };

/* tsr_cavlc_get_token without a branch on the context: length << 8 | total << 2 | ones, 0 where it is not valid. */
static inline uint32_t cavlc_token(const struct tsr_bit_reader *r, const struct tsr_cavlc_reader *tables, int context)
{
    const uint32_t next = (uint32_t)(r->window >> 32);
    const int leading = 31 - tsr_floor_log2(next | 1u << 16); /* no token has 15 zeros */
    const bool fixed = context >= 8;
    const uint16_t *of_length = tables->token[tsr_coeff_token_table(context) % 3][leading];
    const uint16_t *from = fixed ? cavlc_fixed_tokens : of_length;
    const int shift = fixed ? 26 : 28 - leading;
    return from[next >> shift & (fixed ? 63u : 7u)];
}

/* One coefficient whose code is longer than 8 bits. Its magnitude, 0 where the bits are invalid. */
static __attribute__((noinline)) uint32_t cavlc_long_level(struct tsr_bit_reader *r, uint32_t *row, int32_t *level)
{
    int suffix_length = (int)(*row < 7 ? *row : *row - 7);
    const uint32_t magnitude = tsr_cavlc_get_coefficient(r, &suffix_length, *row < 7 ? 0u : 2u, level);
    *row = (uint32_t)suffix_length;
    return magnitude;
}

/* Where the coefficients are: reads total_zeros and run_before of total (1 .. 15) coefficients; a bit for each place, 0
 * where the bits are invalid. */
static inline uint32_t cavlc_places(struct tsr_bit_reader *r, const struct tsr_cavlc_reader *tables, int total)
{
    uint32_t entry = tables->zeros[total - 1][r->window >> 55];
    int zeros = (int)(entry & 15u), left = total - 1; /* runs */
    if (entry == 0 || zeros > TSR_BLOCK_SAMPLES - total) return 0;
    tsr_drop_bits(r, (int)(entry >> 4));
    uint32_t places = 1;
    for (; zeros > 6 && left > 0; left--) {
        const uint32_t bits = (uint32_t)(r->window >> 53); /* 11 */
        int run = 7 - (int)(bits >> 8), length = 3;
        if (run == 7) {
            if (bits == 0) return 0;
            run = 14 - tsr_floor_log2(bits);
            length = run - 3;
            if (run > zeros) return 0;
        }
        tsr_drop_bits(r, length);
        zeros -= run;
        places = places << (run + 1) | 1u;
    }
    while (zeros > 0 && left > 0) {
        entry = cavlc_runs[((left < 3 ? left : 3) - 1) * 6 * 64 + (zeros - 1) * 64 + (int)(r->window >> 58)];
        tsr_drop_bits(r, (int)(entry & 15u));
        left -= (int)(entry >> 4 & 15u);
        zeros = (int)(entry >> 8 & 15u);
        places = places << (entry >> 12 & 15u) | entry >> 16;
    }
    return (((places + 1) << left) - 1) << zeros; /* one of both is 0 */
}

/* Coefficients beside each other, from the first place on, to eight of these places. */
static inline __m256i cavlc_spread_eight(const int32_t *from, uint32_t places)
{
    const __m256i number = _mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)(cavlc_spread + places)));
    const __m256i all = _mm256_permutevar8x32_epi32(_mm256_loadu_si256((const __m256i *)from), number);
    return _mm256_andnot_si256(_mm256_srai_epi32(number, 31), all);
}

static inline int cavlc_get_block(struct tsr_bit_reader *r, const struct tsr_cavlc_reader *tables, int32_t *block,
                                  int context)
{
    tsr_fill_window(r);
    const uint32_t token = cavlc_token(r, tables, context);
    const int total = (int)(token >> 2) & 31, ones = (int)token & 3;
    if (token == 0) return -1;
    if (total == 0) {
        tsr_drop_bits(r, (int)(token >> 8));
        _mm256_storeu_si256((__m256i *)block, _mm256_setzero_si256());
        _mm256_storeu_si256((__m256i *)(block + 8), _mm256_setzero_si256());
        return tsr_dropped_too_much(r) ? -1 : 0;
    }
    int32_t room[CAVLC_ROOM], *const level = room + CAVLC_FRONT, *last = level + total - 1;
    const uint32_t signs = (uint32_t)(r->window << (token >> 8) >> 32);
    for (int i = 0; i < 3; i++)
        last[-i] = 1 - 2 * (int32_t)(signs >> (31 - i) & 1u); /* what is not one is written over */
    tsr_drop_bits(r, (int)(token >> 8) + ones);
    uint32_t row = (total > 10 && ones < 3 ? 1u : 0u) + (ones < 3 ? 7u : 0u);
    for (last -= ones; last >= level; last--) {
        if (r->window_bits < 8) tsr_fill_window(r);
        const uint32_t entry = cavlc_levels[row * 256 + (uint32_t)(r->window >> 56)];
        if (entry == 0) {
            if (cavlc_long_level(r, &row, last) - 1u >= TSR_COEFFICIENT_LIMIT - 1u) return -1;
            continue;
        }
        *last = (int16_t)entry >> 8;
        row = entry >> 4 & 15u;
        tsr_drop_bits(r, (int)(entry & 15u));
    }
    uint32_t places = 0xffff;
    if (total < TSR_BLOCK_SAMPLES) {
        tsr_fill_window(r); /* for all zeros: at most 9 bits, and 3 for each coefficient but for one of 11 */
        places = cavlc_places(r, tables, total);
        if (places == 0) return -1;
    }
    _mm256_storeu_si256((__m256i *)block, cavlc_spread_eight(level, places & 255u));
    _mm256_storeu_si256((__m256i *)(block + 8),
                        cavlc_spread_eight(level + __builtin_popcount(places & 255u), places >> 8));
    return tsr_dropped_too_much(r) ? -1 : total;
}

#endif
