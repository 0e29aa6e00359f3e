/* tsr_coefficient_entries for AVX2: all places of a block at once, unless a magnitude other than the DC's has raw bits.
 * test_coefficients_cpu holds it equal. Part of coefficients_form.h.
 * Gain: with rans_put_avx2.h 1.55 times all of the stage (tests/bench/decisions/032). */
#include "entry_block_avx2.h"
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

/* Signs of the coefficients that are not 0, the highest place's in the highest bit. */
static inline uint32_t signs_of(const struct entry_block *b)
{
    const uint32_t negative = (uint32_t)_mm_movemask_epi8(b->bytes);
    uint32_t signs = 0;
    for (int i = 12; i >= 0; i -= 4) {
        const uint32_t four = b->at >> i & 15u;
        signs = signs << __builtin_popcount(four) | chosen_bits[four * 16 + (negative >> i & 15u)];
    }
    return signs;
}

/* A DC whose token has raw bits. Returns the number of entries. */
static __attribute__((noinline)) int long_dc_entries(uint32_t value, uint32_t cell, uint32_t *out)
{
    const struct tsr_token token = tsr_token(value);
    int count = 0;
    out[count++] = cell << 8 | token.symbol;
    if (token.raw_bits > 16) out[count++] = raw_row_entry(token.raw >> 16, token.raw_bits - 16);
    out[count++] = raw_row_entry(token.raw & 0xffffu, tsr_min(token.raw_bits, 16));
    return count;
}

/* A block of its DC alone. */
static inline int dc_alone_entries(int32_t dc, uint32_t energy, uint32_t *out)
{
    const uint32_t less = (uint32_t)tsr_abs(dc) - 1;
    const uint32_t cell = (uint32_t)tsr_coefficient_cell(TSR_COEFFICIENT_DC_ALONE, tsr_energy_class(energy));
    int count = 1;
    out[0] = cell << 8 | less;
    if (less >= 16) count = long_dc_entries(less, cell, out);
    out[count] = raw_row_entry(dc < 0, 1);
    return count + 1;
}

/* Of a block that is not zero. energy: from the neighbours. out: entries beyond those in use are written, too. */
static inline int coefficient_entries(const int32_t coefficients[TSR_BLOCK_SAMPLES], const struct entry_block *b,
                                      const struct tsr_magnitudes *seen, __m256i energy, uint32_t *out)
{
    const int places = tsr_bit_width(b->at);
    out[0] = (uint32_t)tsr_coefficient_cell(TSR_COEFFICIENT_PLACES, tsr_vector_class(energy)) << 8 | (uint32_t)places;
    if (places == 1)
        return 1 + dc_alone_entries(coefficients[0],
                                    (uint32_t)_mm_cvtsi128_si32(_mm256_castsi256_si128(energy)) & 0xffffu, out + 1);
    const __m256i place = _mm256_setr_epi16(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    const __m256i highest = _mm256_cmpeq_epi16(place, _mm256_set1_epi16((short)(places - 1)));
    const __m256i less = _mm256_add_epi16(_mm256_abs_epi16(b->value), highest);
    const __m256i large = _mm256_cmpeq_epi16(_mm256_max_epu16(less, _mm256_set1_epi16(16)), less);
    const uint32_t large_at = (uint32_t)_mm256_movemask_epi8(large);
    if (large_at >> 2 != 0) {
        uint16_t of_places[TSR_BLOCK_SAMPLES];
        _mm256_storeu_si256((__m256i *)of_places, energy);
        return long_entries(coefficients, seen, of_places, out);
    }
    energy = tsr_add_small_energies(energy, b->seen);
    const __m256i others = _mm256_insert_epi16(_mm256_set1_epi16(TSR_COEFFICIENT_OTHERS * TSR_ENERGY_CLASSES),
                                               TSR_COEFFICIENT_DC * TSR_ENERGY_CLASSES, 0);
    const __m256i last = _mm256_set1_epi16(TSR_COEFFICIENT_HIGHEST * TSR_ENERGY_CLASSES);
    const __m256i cell = _mm256_add_epi16(_mm256_blendv_epi8(others, last, highest), tsr_energy_classes(energy));
    const __m256i entry = _mm256_or_si256(_mm256_slli_epi16(cell, 8), less);
    /* Backwards, the highest coded place first: bytes of both halves by their numbers, 0 elsewhere. */
    const __m256i turn = _mm256_loadu_si256((const __m256i *)(turned_bytes + 2 * (TSR_BLOCK_SAMPLES - places)));
    const __m256i low_bytes = _mm256_adds_epu8(turn, _mm256_set1_epi8(0x70));
    const __m256i high_bytes = _mm256_sub_epi8(turn, _mm256_set1_epi8(16));
    const __m256i turned = _mm256_or_si256(_mm256_shuffle_epi8(_mm256_permute4x64_epi64(entry, 0x44), low_bytes),
                                           _mm256_shuffle_epi8(_mm256_permute4x64_epi64(entry, 0xee), high_bytes));
    _mm256_storeu_si256((__m256i *)(out + 1), _mm256_cvtepu16_epi32(_mm256_castsi256_si128(turned)));
    _mm256_storeu_si256((__m256i *)(out + 9), _mm256_cvtepu16_epi32(_mm256_extracti128_si256(turned, 1)));
    int count = 1 + places;
    if (large_at != 0) {
        const uint32_t dc = (uint32_t)tsr_abs(coefficients[0]);
        count = places + long_dc_entries(dc, (uint32_t)_mm256_extract_epi16(cell, 0) & 0xffffu, out + places);
    }
    out[count] = raw_row_entry(signs_of(b), __builtin_popcount(b->at));
    return count + 1;
}

/* slice_entries for rANS. */
static size_t rans_slice_entries(const int32_t *coefficients, struct tsr_block_grid grid, struct tsr_slice slice,
                                 int shift, uint32_t *out)
{
    struct slice_rows rows;
    size_t count = 0;
    begin_slice(&rows, slice.columns);
    for (int32_t r = 0; r < slice.rows; r++, rows.now = !rows.now) {
        const int32_t *block = block_at(coefficients, grid, slice.column, slice.row + r);
        struct tsr_magnitudes *here = &rows.held[rows.now][1];
        const struct tsr_magnitudes *above = &rows.held[!rows.now][1];
        for (int32_t c = 0; c < slice.columns; c++, block += TSR_BLOCK_SAMPLES, here++, above++) {
            const __m256i energy = tsr_vector_energies(here - 1, above);
            if (is_zero_block(block)) { /* most such blocks are among others */
                const int energy_class = _mm256_testz_si256(energy, energy) ? 0 : tsr_vector_class(energy);
                _mm256_storeu_si256((__m256i *)here, _mm256_setzero_si256());
                out[count++] = (uint32_t)tsr_coefficient_cell(TSR_COEFFICIENT_PLACES, energy_class) << 8;
                continue;
            }
            const struct entry_block b = load_entry_block(block, shift, here);
            count += (size_t)coefficient_entries(block, &b, here, energy, out + count);
        }
    }
    return count;
}
