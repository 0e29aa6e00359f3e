/* The transform for AVX2: eight blocks beside each other in registers, instead of the lines that blocks_form.h and
 * lapped_form.h transform step by step. test_blocks_cpu and test_lapped_cpu hold it equal. Part of
 * blocks_avx2.c and lapped_avx2.c.
 * Gain: 1.25 times all of decoding's blocks (tests/bench/decisions/032). */
#ifndef TSR_KERNELS_BLOCKS_EIGHT_AVX2_H
#define TSR_KERNELS_BLOCKS_EIGHT_AVX2_H

#include <immintrin.h>

#include "transform/block/core4x4.h"

enum { EIGHT_BLOCKS = 8, EIGHT_LIMIT = 1 << 14 /* their coefficients are below this */ };

/* Eight vectors of two times eight 16-bit values: each half is transposed. */
static inline void transpose_halves(__m256i v[8])
{
    __m256i a[8], b[8];
    for (int i = 0; i < 4; i++) {
        a[2 * i] = _mm256_unpacklo_epi16(v[2 * i], v[2 * i + 1]);
        a[2 * i + 1] = _mm256_unpackhi_epi16(v[2 * i], v[2 * i + 1]);
    }
    for (int i = 0; i < 8; i += 4)
        for (int j = 0; j < 2; j++) {
            b[i + 2 * j] = _mm256_unpacklo_epi32(a[i + j], a[i + j + 2]);
            b[i + 2 * j + 1] = _mm256_unpackhi_epi32(a[i + j], a[i + j + 2]);
        }
    for (int i = 0; i < 4; i++) {
        v[2 * i] = _mm256_unpacklo_epi64(b[i], b[i + 4]);
        v[2 * i + 1] = _mm256_unpackhi_epi64(b[i], b[i + 4]);
    }
}

/* The coefficients of eight blocks with 16 bits each: place p < 4 in the low half of v[p], p + 4 in its high half, p +
 * 8 in the low half of v[p + 4], p + 12 in its high half. dc, ac: at least the largest magnitudes. False where they are
 * EIGHT_LIMIT or more. */
static inline bool load_eight(const int32_t *coefficients, __m256i v[8], uint32_t *dc, uint32_t *ac)
{
    for (int k = 0; k < EIGHT_BLOCKS; k++) {
        const __m256i *block = (const __m256i *)(coefficients + TSR_BLOCK_SAMPLES * k);
        v[k] = _mm256_packs_epi32(_mm256_loadu_si256(block), _mm256_loadu_si256(block + 1));
    }
    transpose_halves(v);
    const __m256i first = _mm256_abs_epi16(v[0]);
    __m256i any = _mm256_abs_epi16(v[1]);
    for (int i = 2; i < 8; i++) any = _mm256_or_si256(any, _mm256_abs_epi16(v[i]));
    const __m128i others = _mm_or_si128(_mm_or_si128(_mm256_castsi256_si128(any), _mm256_extracti128_si256(any, 1)),
                                        _mm256_extracti128_si256(first, 1));
    /* The smallest of what the magnitudes lack is what the largest one lacks. */
    const __m128i ones = _mm_set1_epi8(-1);
    *ac = 0xffffu - ((uint32_t)_mm_cvtsi128_si32(_mm_minpos_epu16(_mm_xor_si128(others, ones))) & 0xffffu);
    *dc = 0xffffu -
          ((uint32_t)_mm_cvtsi128_si32(_mm_minpos_epu16(_mm_xor_si128(_mm256_castsi256_si128(first), ones))) & 0xffffu);
    return (*ac | *dc) < EIGHT_LIMIT;
}

/* These times their steps, below 2^15, in raster order. step: by class of norm. */
static inline void scale_eight(const __m256i v[8], const int32_t step[3], __m256i line[TSR_BLOCK_SAMPLES])
{
    for (int i = 0; i < 8; i++) {
        const int p = i < 4 ? i : i + 4, low = tsr_zigzag(p), high = tsr_zigzag(p + 4);
        line[low] = _mm256_madd_epi16(_mm256_cvtepi16_epi32(_mm256_castsi256_si128(v[i])),
                                      _mm256_set1_epi32(step[tsr_norm_class(low / 4, low % 4)]));
        line[high] = _mm256_madd_epi16(_mm256_cvtepi16_epi32(_mm256_extracti128_si256(v[i], 1)),
                                       _mm256_set1_epi32(step[tsr_norm_class(high / 4, high % 4)]));
    }
}

/* tsr_core_inverse_32_1d of lines a step apart. */
static inline void inverse_eight(__m256i *v, int step)
{
    const __m256i v1 = v[step], v3 = v[3 * step];
    const __m256i a = _mm256_add_epi32(v[0], v[2 * step]), b = _mm256_sub_epi32(v[0], v[2 * step]);
    const __m256i c = _mm256_sub_epi32(v1, _mm256_add_epi32(v3, v3));
    const __m256i d = _mm256_add_epi32(_mm256_add_epi32(v1, v1), v3);
    v[0] = _mm256_add_epi32(a, d);
    v[step] = _mm256_add_epi32(b, c);
    v[2 * step] = _mm256_sub_epi32(b, c);
    v[3 * step] = _mm256_sub_epi32(a, d);
}

/* Rows of eight to columns, both ways. */
static inline void transpose_eight(__m256i v[8])
{
    __m256i t[8];
    for (int i = 0; i < 8; i += 4) {
        const __m256i a = _mm256_unpacklo_epi32(v[i], v[i + 1]), b = _mm256_unpackhi_epi32(v[i], v[i + 1]);
        const __m256i c = _mm256_unpacklo_epi32(v[i + 2], v[i + 3]), d = _mm256_unpackhi_epi32(v[i + 2], v[i + 3]);
        t[i] = _mm256_unpacklo_epi64(a, c);
        t[i + 1] = _mm256_unpackhi_epi64(a, c);
        t[i + 2] = _mm256_unpacklo_epi64(b, d);
        t[i + 3] = _mm256_unpackhi_epi64(b, d);
    }
    for (int i = 0; i < 4; i++) {
        v[i] = _mm256_permute2x128_si256(t[i], t[i + 4], 0x20);
        v[i + 4] = _mm256_permute2x128_si256(t[i], t[i + 4], 0x31);
    }
}

/* tsr_core_forward_1d of lines a step apart. */
static inline void forward_eight(__m256i *v, int step)
{
    const __m256i a = _mm256_add_epi32(v[0], v[3 * step]), b = _mm256_add_epi32(v[step], v[2 * step]);
    const __m256i c = _mm256_sub_epi32(v[step], v[2 * step]), d = _mm256_sub_epi32(v[0], v[3 * step]);
    v[0] = _mm256_add_epi32(a, b);
    v[step] = _mm256_add_epi32(_mm256_add_epi32(d, d), c);
    v[2 * step] = _mm256_sub_epi32(a, b);
    v[3 * step] = _mm256_sub_epi32(d, _mm256_add_epi32(c, c));
}

/* Four values of each of eight blocks, clamped to 0 .. top, to a line of 32 samples. */
static inline void store_eight(const __m256i v[4], __m256i top, uint16_t *samples)
{
    const __m256i pairs =
        _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 1, 8, 9, 2, 3, 10, 11, 4, 5, 12, 13, 6, 7, 14, 15));
    const __m256i a = _mm256_shuffle_epi8(_mm256_min_epu16(_mm256_packus_epi32(v[0], v[1]), top), pairs);
    const __m256i b = _mm256_shuffle_epi8(_mm256_min_epu16(_mm256_packus_epi32(v[2], v[3]), top), pairs);
    const __m256i low = _mm256_unpacklo_epi32(a, b), high = _mm256_unpackhi_epi32(a, b);
    _mm256_storeu_si256((__m256i *)samples, _mm256_permute2x128_si256(low, high, 0x20));
    _mm256_storeu_si256((__m256i *)(samples + 16), _mm256_permute2x128_si256(low, high, 0x31));
}

/* A value, and zeros. */
static inline __m256i first_value(const int32_t *value)
{
    return _mm256_zextsi128_si256(_mm_cvtsi32_si128(*value));
}

static inline void store_block(int32_t *block, __m256i low, __m256i high)
{
    _mm256_storeu_si256((__m256i *)block, low);
    _mm256_storeu_si256((__m256i *)(block + 8), high);
}

#endif
