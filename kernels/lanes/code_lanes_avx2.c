/* Coding rows for AVX2: sixteen columns at once; see code_lanes.h. test_code_lanes holds it
 * equal. Gain: 1.7 times the plain form (tests/bench/decisions/032). */
#include "code_lanes.h"

#if TSR_HAS_VECTOR_FORMS
#include <immintrin.h>

#include "code_ticks.h"

TSR_AVX2_INLINE __m256i load(const void *at)
{
    return _mm256_loadu_si256((const __m256i *)at);
}

TSR_AVX2_INLINE void store(void *at, __m256i v)
{
    _mm256_storeu_si256((__m256i *)at, v);
}

/* Sixteen words and sixteen more, of which the high bytes are 0 or all words are masks, as bytes. */
TSR_AVX2_INLINE __m256i join_words(__m256i a, __m256i b, bool masks)
{
    return _mm256_permute4x64_epi64(masks ? _mm256_packs_epi16(a, b) : _mm256_packus_epi16(a, b), 0xd8);
}

/* ---- Cells ------------------------------------------------------------------------------------------------- */

enum { WIDE = 4 }; /* vectors of 16 columns that are taken at once */

/* Adds the numbers of cuts that are not above the values. */
TSR_AVX2_INLINE void add_groups(const void *values, const int16_t *cut, int count, __m256i number[WIDE])
{
    __m256i v[WIDE];
    for (int k = 0; k < WIDE; k++) v[k] = load((const uint16_t *)values + 16 * k);
    for (int i = 0; i < count; i++) {
        const __m256i below = _mm256_set1_epi16((int16_t)(cut[i] - 1));
        for (int k = 0; k < WIDE; k++) number[k] = _mm256_sub_epi16(number[k], _mm256_cmpgt_epi16(v[k], below));
    }
}

TSR_AVX2 static void find_cells(const struct tsr_residual_rows *rows, const struct cell_cuts *cuts, uint8_t *context,
                                uint32_t *special)
{
    const __m256i zero = _mm256_setzero_si256(), first = _mm256_set1_epi16(TSR_FIRST_CELL_CONTEXT);
    static_assert(TSR_CODED_VALUES == 256, "a residual is large if its high byte is not 0");
    static_assert(16 * WIDE <= ROW_MARGIN, "the last columns may lie after the row");
    for (int32_t c = 0; c < rows->tile.width; c += 16 * WIDE) {
        __m256i number[WIDE] = {zero, zero, zero, zero}, is_special[WIDE];
        add_groups(rows->activity + c, cuts->activity, cuts->activities, number);
        for (int k = 0; k < WIDE; k++)
            number[k] = _mm256_add_epi16(_mm256_mullo_epi16(number[k], _mm256_set1_epi16(cuts->pitch)), first);
        add_groups(rows->intensity + c, cuts->intensity, cuts->intensities, number);
        for (int k = 0; k < WIDE; k++)
            is_special[k] =
                _mm256_or_si256(_mm256_cmpeq_epi16(load(rows->activity + c + 16 * k), zero),
                                _mm256_cmpgt_epi16(_mm256_srli_epi16(load(rows->folded + c + 16 * k), 8), zero));
        for (int k = 0; k < WIDE; k += 2) {
            store(context + c + 16 * k, join_words(number[k], number[k + 1], false));
            special[c / 32 + k / 2] =
                (uint32_t)_mm256_movemask_epi8(join_words(is_special[k], is_special[k + 1], true));
        }
    }
}

/* ---- Codes ------------------------------------------------------------------------------------------------- */

enum { SHUFFLED = 96 }; /* contexts whose tables shuffles find: a shuffle gives 0 for a number below 0 */

/* The tables of contexts below SHUFFLED. steps: for every sixteen of them, what their tables differ from those sixteen
 * places before. */
TSR_AVX2_INLINE __m256i tables_of(__m256i context, const __m256i steps[SHUFFLED / 16], int used)
{
    __m256i table = _mm256_shuffle_epi8(steps[0], context);
    for (int i = 1; i < used; i++)
        table = _mm256_xor_si256(
            table, _mm256_shuffle_epi8(steps[i], _mm256_sub_epi8(context, _mm256_set1_epi8((char)(16 * i)))));
    return table;
}

/* Looks up codes of contexts below SHUFFLED. used: sixteens of them. */
TSR_AVX2_INLINE void look_up_few(const struct tsr_value_codes *codes, const uint8_t *context, const uint16_t *folded,
                                 int32_t width, int used, uint32_t *code)
{
    const __m256i most = _mm256_set1_epi16(TSR_CODED_VALUES - 1);
    const uint32_t *first = &codes->code[0][0];
    __m256i steps[SHUFFLED / 16];
    __m128i before = _mm_setzero_si128();
    for (int i = 0; i < used; i++) {
        const __m128i part = _mm_loadu_si128((const __m128i *)(const void *)(codes->table_of + 16 * i));
        steps[i] = _mm256_broadcastsi128_si256(_mm_xor_si128(part, before));
        before = part;
    }
    for (int32_t c = 0; c < width; c += 32) {
        uint16_t place[32];
        const __m256i table = tables_of(load(context + c), steps, used);
        const __m256i low = _mm256_min_epu16(load(folded + c), most);
        const __m256i high = _mm256_min_epu16(load(folded + c + 16), most);
        store(place, _mm256_or_si256(low, _mm256_slli_epi16(_mm256_cvtepu8_epi16(_mm256_castsi256_si128(table)), 8)));
        store(place + 16,
              _mm256_or_si256(high, _mm256_slli_epi16(_mm256_cvtepu8_epi16(_mm256_extracti128_si256(table, 1)), 8)));
        for (int i = 0; i < 32; i++) code[c + i] = first[place[i]];
    }
}

TSR_AVX2 static void look_up(const struct tsr_value_codes *codes, const uint8_t *context, const uint16_t *folded,
                             int32_t width, uint32_t *code)
{
    const __m256i most = _mm256_set1_epi16(TSR_CODED_VALUES - 1);
    if (codes->contexts <= 64) {
        look_up_few(codes, context, folded, width, 4, code);
        return;
    }
    if (codes->contexts <= 96) {
        look_up_few(codes, context, folded, width, 6, code);
        return;
    }
    for (int32_t c = 0; c < width; c += 16) {
        uint16_t value[16];
        store(value, _mm256_min_epu16(load(folded + c), most));
        for (int i = 0; i < 16; i++) code[c + i] = codes->code[codes->table_of[context[c + i]]][value[i]];
    }
}

/* ---- Strings ----------------------------------------------------------------------------------------------- */

/* Notes the ticks of eight columns, of which those of mask take a word. tick: of the first, in all words. */
TSR_AVX2_INLINE void note_ticks(uint32_t mask, __m256i tick, struct lane_string *lane)
{
    const __m256i column = _mm256_cvtepu8_epi32(places_of(mask));
    store(lane->tick + lane->words, _mm256_add_epi32(tick, column));
    lane->words += (uint32_t)__builtin_popcount(mask);
}

/* Joins sixteen codes by twos, and these by twos: fours 0, 2, 1, 3, as the highest bits, and their lengths. Returns
 * a mask that is not 0 if a four has more than STRING_BITS bits. */
TSR_AVX2_INLINE int join_codes(const __m256i code[2], const __m256i length[2], uint64_t four[4], uint64_t lengths[4])
{
    const __m256i low = _mm256_set1_epi64x(0xffffffff);
    __m256i two[2], two_length[2];
    for (int i = 0; i < 2; i++) {
        const __m256i bits = _mm256_srli_epi32(code[i], ROW_LENGTH_BITS), next = _mm256_srli_epi64(length[i], 32);
        two[i] = _mm256_or_si256(_mm256_sllv_epi64(_mm256_and_si256(bits, low), next), _mm256_srli_epi64(bits, 32));
        two_length[i] = _mm256_and_si256(_mm256_add_epi32(length[i], next), low);
    }
    const __m256i next = _mm256_unpackhi_epi64(two_length[0], two_length[1]);
    const __m256i all = _mm256_add_epi64(_mm256_unpacklo_epi64(two_length[0], two_length[1]), next);
    const __m256i joined = _mm256_or_si256(_mm256_sllv_epi64(_mm256_unpacklo_epi64(two[0], two[1]), next),
                                           _mm256_unpackhi_epi64(two[0], two[1]));
    store(four, _mm256_sllv_epi64(joined, _mm256_sub_epi64(_mm256_set1_epi64x(64), all)));
    store(lengths, all);
    return _mm256_movemask_epi8(_mm256_cmpgt_epi32(all, _mm256_set1_epi32(STRING_BITS)));
}

/* Appends up to sixteen columns, those after them with codes of no bits, at once if every four codes have at most
 * STRING_BITS bits and no column takes two words; else one by one. ticks: of column c, in all words. */
TSR_AVX2_INLINE void append_some(const uint32_t *code, int32_t c, int32_t columns, int refill_bits, uint32_t tick,
                                 __m256i ticks, struct lane_string *lane)
{
    const __m256i low = _mm256_set1_epi32(ROW_LENGTH_MASK), word[2] = {load(code + c), load(code + c + 8)};
    const __m256i length[2] = {_mm256_and_si256(word[0], low), _mm256_and_si256(word[1], low)};
    const __m256i packed = _mm256_packs_epi32(length[0], length[1]);
    const __m256i in_order =
        _mm256_permutevar8x32_epi32(_mm256_packus_epi16(packed, packed), _mm256_setr_epi32(0, 4, 1, 5, 0, 4, 1, 5));
    uint64_t four[4], four_length[4];
    const int too_long = join_codes(word, length, four, four_length);
    const __m128i column = _mm_setr_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    __m128i more = words_taken(sums_before(_mm256_castsi256_si128(in_order)), lane->bits, lane->words, refill_bits);
    if (columns < ROW_STEP) more = _mm_and_si128(more, _mm_cmpgt_epi8(_mm_set1_epi8((char)columns), column));
    if (__builtin_expect(too_long | _mm_movemask_epi8(_mm_cmpgt_epi8(more, _mm_set1_epi8(1))), 0)) {
        struct lane_string copy = *lane; /* so that the lane itself stays in registers */
        append_columns(code, c, columns, refill_bits, tick, &copy);
        *lane = copy;
        return;
    }
    __m128i *in_ticks = (__m128i *)(void *)(lane->taken + tick + c);
    const uint32_t taken = (uint32_t)_mm_movemask_epi8(_mm_cmpgt_epi8(more, _mm_setzero_si128()));
    _mm_storeu_si128(in_ticks, _mm_add_epi8(_mm_loadu_si128(in_ticks), more));
    note_ticks(taken & 0xff, ticks, lane);
    note_ticks(taken >> 8, _mm256_add_epi32(ticks, _mm256_set1_epi32(8)), lane);
    append_string(lane, four[0], (uint32_t)four_length[0]);
    append_string(lane, four[2], (uint32_t)four_length[2]);
    append_string(lane, four[1], (uint32_t)four_length[1]);
    append_string(lane, four[3], (uint32_t)four_length[3]);
}

TSR_AVX2 void tsr_append_row_avx2(uint32_t *code, int32_t width, int refill_bits, uint32_t tick,
                                  struct lane_string *lane)
{
    struct lane_string own = *lane;
    __m256i ticks = _mm256_set1_epi32((int)tick);
    int32_t c = 0;
    for (; c + ROW_STEP <= width; c += ROW_STEP) {
        append_some(code, c, ROW_STEP, refill_bits, tick, ticks, &own);
        ticks = _mm256_add_epi32(ticks, _mm256_set1_epi32(ROW_STEP));
    }
    if (c < width) {
        memset(code + width, 0, ROW_STEP * sizeof *code);
        append_some(code, c, width - c, refill_bits, tick, ticks, &own);
    }
    *lane = own;
}

const struct row_coder tsr_row_coder_avx2 = {find_cells, look_up, tsr_append_row_avx2};

#endif
