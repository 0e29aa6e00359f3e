/* tsr_coefficient_entries for AVX2: all places of a block at once, in three quarters of the instructions, unless a
 * magnitude has raw bits. test_coefficients_cpu holds it equal. Part of coefficients_avx2.c. */
#ifndef TSR_KERNELS_SLICES_RANS_ENTRIES_AVX2_H
#define TSR_KERNELS_SLICES_RANS_ENTRIES_AVX2_H

#include "energies_avx2.h"
#include "entropy/coefficient_rans.h"

/* Entries for rans_put_avx2.h: in the low half row << 8 | symbol, the row a cell or RAW_ROW, where the symbol is the
 * number of raw bits; these in the high half. */
enum { RAW_ROW = TSR_COEFFICIENT_CELLS };
static_assert((int)RAW_ROW < 256, "a row takes 8 bits");

static inline uint32_t raw_row_entry(uint32_t value, int bits)
{
    return value << 16 | (uint32_t)RAW_ROW << 8 | (uint32_t)bits;
}

/* tsr_coefficient_entries, as these. */
static __attribute__((noinline)) int long_entries(const int32_t coefficients[TSR_BLOCK_SAMPLES],
                                                  const struct tsr_magnitudes *seen, uint16_t energy[TSR_BLOCK_SAMPLES],
                                                  uint32_t *out)
{
    const int count = tsr_coefficient_entries(coefficients, seen, energy, out);
    for (int i = 0; i < count; i++)
        if (out[i] & TSR_RAW_ENTRY) out[i] = raw_row_entry(out[i] & 0xffffu, (int)(out[i] >> 16 & 31u));
    return count;
}

/* Of the four bits of a value, those that stand where four other bits are set, beside each other: [places * 16 +
 * value]. */
static const uint8_t chosen_bits[256] = {
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0,  1,  0,  1,  0,  0, 1, 1, 0,
    0, 1, 1, 0, 0, 1, 1, 0, 0, 1, 1, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 0,  0,  0,  1,  1,  1, 1, 0, 0,
    0, 0, 1, 1, 1, 1, 0, 1, 0, 1, 2, 3, 2, 3, 0, 1, 0, 1, 2, 3, 2, 3, 0, 0, 1, 1, 2, 2, 3,  3,  0,  0,  1,  1, 2, 2, 3,
    3, 0, 1, 2, 3, 4, 5, 6, 7, 0, 1, 2, 3, 4, 5, 6, 7, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1,  1,  1,  1,  1,  0, 1, 0, 1,
    0, 1, 0, 1, 2, 3, 2, 3, 2, 3, 2, 3, 0, 0, 1, 1, 0, 0, 1, 1, 2, 2, 3, 3, 2, 2, 3, 3, 0,  1,  2,  3,  0,  1, 2, 3, 4,
    5, 6, 7, 4, 5, 6, 7, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 0, 1, 0, 1, 2, 3,  2,  3,  4,  5,  4, 5, 6, 7,
    6, 7, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};

/* Numbers of bytes of 16-bit places from the last one down; 0xff: none. */
static const uint8_t turned_bytes[4 * TSR_BLOCK_SAMPLES] = {
    30,   31,   28,   29,   26,   27,   24,   25,   22,   23,   20,   21,   18,   19,   16,   17,
    14,   15,   12,   13,   10,   11,   8,    9,    6,    7,    4,    5,    2,    3,    0,    1,
    0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
    0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff};

static inline int coefficient_entries(const int32_t coefficients[TSR_BLOCK_SAMPLES], const struct tsr_magnitudes *seen,
                                      uint16_t energy[TSR_BLOCK_SAMPLES], uint32_t *out)
{
    const __m256i value =
        _mm256_permute4x64_epi64(_mm256_packs_epi32(_mm256_loadu_si256((const __m256i *)coefficients),
                                                    _mm256_loadu_si256((const __m256i *)(coefficients + 8))),
                                 0xd8);
    const __m256i bytes = _mm256_permute4x64_epi64(_mm256_packs_epi16(value, value), 0xd8);
    const __m128i packed = _mm256_castsi256_si128(bytes);
    const uint32_t at = (uint32_t)_mm_movemask_epi8(_mm_cmpeq_epi8(packed, _mm_setzero_si128())) ^ 0xffffu;
    const int places = tsr_bit_width(at);
    if (places == 0) {
        out[0] = (uint32_t)tsr_coefficient_cell(TSR_COEFFICIENT_PLACES, tsr_block_energy_class(energy)) << 8;
        return 1;
    }
    const __m256i place = _mm256_setr_epi16(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    const __m256i highest = _mm256_cmpeq_epi16(place, _mm256_set1_epi16((short)(places - 1)));
    const __m256i less = _mm256_add_epi16(_mm256_abs_epi16(value), highest);
    const __m256i large = _mm256_cmpeq_epi16(_mm256_max_epu16(less, _mm256_set1_epi16(16)), less);
    if (!_mm256_testz_si256(large, large)) return long_entries(coefficients, seen, energy, out);
    out[0] =
        (uint32_t)tsr_coefficient_cell(TSR_COEFFICIENT_PLACES, tsr_block_energy_class(energy)) << 8 | (uint32_t)places;
    tsr_add_energies(seen, energy);
    const __m256i others = _mm256_insert_epi16(_mm256_set1_epi16(TSR_COEFFICIENT_OTHERS * TSR_ENERGY_CLASSES),
                                               TSR_COEFFICIENT_DC * TSR_ENERGY_CLASSES, 0);
    const __m256i last = _mm256_insert_epi16(_mm256_set1_epi16(TSR_COEFFICIENT_HIGHEST * TSR_ENERGY_CLASSES),
                                             TSR_COEFFICIENT_DC_ALONE * TSR_ENERGY_CLASSES, 0);
    const __m256i cell = _mm256_add_epi16(_mm256_blendv_epi8(others, last, highest),
                                          tsr_energy_classes(_mm256_loadu_si256((const __m256i *)energy)));
    const __m256i entry = _mm256_or_si256(_mm256_slli_epi16(cell, 8), less);
    /* Backwards, the highest coded place first: bytes of both halves by their numbers, 0 elsewhere. All are written. */
    const __m256i turn = _mm256_loadu_si256((const __m256i *)(turned_bytes + 2 * (TSR_BLOCK_SAMPLES - places)));
    const __m256i low_bytes = _mm256_adds_epu8(turn, _mm256_set1_epi8(0x70));
    const __m256i high_bytes = _mm256_sub_epi8(turn, _mm256_set1_epi8(16));
    const __m256i low_half = _mm256_permute4x64_epi64(entry, 0x44), high_half = _mm256_permute4x64_epi64(entry, 0xee);
    const __m256i turned =
        _mm256_or_si256(_mm256_shuffle_epi8(low_half, low_bytes), _mm256_shuffle_epi8(high_half, high_bytes));
    _mm256_storeu_si256((__m256i *)(out + 1), _mm256_cvtepu16_epi32(_mm256_castsi256_si128(turned)));
    _mm256_storeu_si256((__m256i *)(out + 9), _mm256_cvtepu16_epi32(_mm256_extracti128_si256(turned, 1)));
    const uint32_t negative = (uint32_t)_mm_movemask_epi8(packed);
    uint32_t signs = 0;
    for (int i = 12; i >= 0; i -= 4) {
        const uint32_t four = at >> i & 15u;
        signs = signs << __builtin_popcount(four) | chosen_bits[four * 16 + (negative >> i & 15u)];
    }
    out[1 + places] = raw_row_entry(signs, __builtin_popcount(at));
    return places + 2;
}

#endif
