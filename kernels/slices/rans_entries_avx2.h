/* tsr_coefficient_entries for AVX2: all places of a block at once, unless a magnitude other than the DC's has raw bits:
 * encoding takes 0.93 of the time of the form that had no raw DC and no bytes for energies. test_coefficients_cpu holds
 * it equal. Part of coefficients_form.h. */
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

/* Of the magnitudes at places k and k + 1, k even, on the energies of places 0 .. 15, by turns: rows k of
 * tsr_weight_inside. */
static const uint8_t paired_weights[TSR_BLOCK_SAMPLES * TSR_BLOCK_SAMPLES] = {
    0, 3, 0,  0,  0, 0,  0, 0,  0,  0,  0,  0, 0, 0, 0,  0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,  0, 0,  0, 0,  0, 0,
    6, 1, 0,  0,  0, 11, 0, 0,  0,  0,  0,  0, 0, 0, 0,  0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,  0, 0,  0, 0,  0, 0,
    6, 1, 5,  11, 7, 0,  2, 0,  0,  0,  0,  0, 0, 0, 0,  0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,  0, 0,  0, 0,  0, 0,
    0, 6, 11, 3,  0, 4,  0, 0,  0,  10, 14, 5, 0, 3, 0,  0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,  0, 0,  0, 0,  0, 0,
    4, 0, 4,  0,  4, 11, 5, 17, 9,  0,  1,  0, 1, 0, 3,  0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0,  0, 0,  0, 0,  0, 0,
    5, 3, 2,  2,  4, 2,  6, 3,  7,  5,  1,  3, 0, 1, 2,  7, 9, 8, 9, 3, 0, 5, 0, 0, 0, 0,  0, 0,  0, 0,  0, 0,
    7, 5, 4,  3,  3, 1,  0, 2,  10, 5,  5,  3, 6, 5, 11, 7, 3, 8, 1, 2, 2, 5, 4, 9, 0, 11, 0, 0,  0, 0,  0, 0,
    2, 3, 1,  1,  2, 0,  2, 2,  5,  5,  2,  2, 1, 3, 5,  5, 8, 6, 7, 3, 9, 9, 9, 8, 6, 10, 7, 10, 0, 14, 0, 0};

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

/* tsr_add_energies where no magnitude but the DC's, which adds nothing, is above 127. */
static inline __m256i add_small_energies(__m256i energy, __m256i seen)
{
    const __m256i all = _mm256_permute4x64_epi64(_mm256_packus_epi16(seen, seen), 0x88); /* bytes, twice */
    const __m256i two = _mm256_set1_epi16(0x0202);
    __m256i pair = _mm256_set1_epi16(0x0100);
    for (int k = 0; k < 8; k++, pair = _mm256_add_epi8(pair, two)) {
        const __m256i weights = _mm256_loadu_si256((const __m256i *)(paired_weights + 32 * k));
        energy = _mm256_add_epi16(energy, _mm256_maddubs_epi16(weights, _mm256_shuffle_epi8(all, pair)));
    }
    return energy;
}

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

/* energy: from the neighbours. out: entries beyond those in use are written, too. */
static inline int coefficient_entries(const int32_t coefficients[TSR_BLOCK_SAMPLES], const struct entry_block *b,
                                      const struct tsr_magnitudes *seen, __m256i energy, uint32_t *out)
{
    const int places = tsr_bit_width(b->at);
    out[0] = (uint32_t)tsr_coefficient_cell(TSR_COEFFICIENT_PLACES, tsr_vector_class(energy)) << 8 | (uint32_t)places;
    if (places == 0) return 1;
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
    energy = add_small_energies(energy, b->seen);
    const __m256i others = _mm256_insert_epi16(_mm256_set1_epi16(TSR_COEFFICIENT_OTHERS * TSR_ENERGY_CLASSES),
                                               TSR_COEFFICIENT_DC * TSR_ENERGY_CLASSES, 0);
    const __m256i last = _mm256_insert_epi16(_mm256_set1_epi16(TSR_COEFFICIENT_HIGHEST * TSR_ENERGY_CLASSES),
                                             TSR_COEFFICIENT_DC_ALONE * TSR_ENERGY_CLASSES, 0);
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
        const uint32_t dc = (uint32_t)tsr_abs(coefficients[0]) - (places == 1);
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
            uint16_t energy[TSR_BLOCK_SAMPLES];
            tsr_energies_around(here - 1, above, above - 1, above + 1, energy);
            const struct entry_block b = load_entry_block(block, shift, here);
            count +=
                (size_t)coefficient_entries(block, &b, here, _mm256_loadu_si256((const __m256i *)energy), out + count);
        }
    }
    return count;
}
