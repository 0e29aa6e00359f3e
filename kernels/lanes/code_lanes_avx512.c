/* Coding rows for AVX-512: sixteen columns at once; see code_lanes.h. */
#include "code_lanes.h"

#if TSR_HAS_VECTOR_FORMS
#include <immintrin.h>

TSR_AVX512 static void find_cells(const struct tsr_residual_rows *rows, const struct cell_cuts *cuts, uint8_t *context,
                                  uint32_t *special)
{
    const __m512i pitch = _mm512_set1_epi16(cuts->pitch), one = _mm512_set1_epi16(1);
    const __m512i large = _mm512_set1_epi16(TSR_CODED_VALUES);
    for (int32_t c = 0; c < rows->tile.width; c += 32) {
        const __m512i activity = _mm512_loadu_si512(rows->activity + c);
        const __m512i intensity = _mm512_loadu_si512(rows->intensity + c);
        const __mmask32 is_special = _mm512_testn_epi16_mask(activity, activity) |
                                     _mm512_cmpge_epu16_mask(_mm512_loadu_si512(rows->folded + c), large);
        __m512i number = _mm512_set1_epi16(TSR_FIRST_CELL_CONTEXT);
        for (int i = 0; i < cuts->activities; i++)
            number = _mm512_mask_add_epi16(
                number, _mm512_cmpge_epi16_mask(activity, _mm512_set1_epi16(cuts->activity[i])), number, pitch);
        for (int i = 0; i < cuts->intensities; i++)
            number = _mm512_mask_add_epi16(
                number, _mm512_cmpge_epu16_mask(intensity, _mm512_set1_epi16(cuts->intensity[i])), number, one);
        _mm256_storeu_si256((__m256i *)(void *)(context + c), _mm512_cvtepi16_epi8(number));
        special[c / 32] = is_special;
    }
}

TSR_AVX512 static void look_up(const struct tsr_value_codes *codes, const uint8_t *context, const uint16_t *folded,
                               int32_t width, uint32_t *code)
{
    const uint8_t *of = codes->table_of;
    const __m512i tables[4] = {_mm512_loadu_si512(of), _mm512_loadu_si512(of + 64), _mm512_loadu_si512(of + 128),
                               _mm512_loadu_si512(of + 192)};
    const __m512i most = _mm512_set1_epi32(TSR_CODED_VALUES - 1);
    for (int32_t c = 0; c < width; c += 64) {
        uint8_t table[64];
        const __m512i contexts = _mm512_loadu_si512(context + c);
        const __m512i low = _mm512_permutex2var_epi8(tables[0], contexts, tables[1]);
        const __m512i high = _mm512_permutex2var_epi8(tables[2], contexts, tables[3]);
        _mm512_storeu_si512(table, _mm512_mask_mov_epi8(low, _mm512_movepi8_mask(contexts), high));
        for (int32_t i = 0; i < 64; i += ROW_STEP) {
            const __m512i value = _mm512_min_epu32(
                _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)(const void *)(folded + c + i))), most);
            const __m512i number = _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)(const void *)(table + i)));
            const __m512i place = _mm512_add_epi32(_mm512_slli_epi32(number, 8), value);
            _mm512_storeu_si512(code + c + i, _mm512_i32gather_epi32(place, codes->code, 4));
        }
    }
}

/* For each byte, the sum of the bytes up to it, modulo 256. */
TSR_AVX512_INLINE __m128i running_sums(__m128i v)
{
    v = _mm_add_epi8(v, _mm_slli_si128(v, 1));
    v = _mm_add_epi8(v, _mm_slli_si128(v, 2));
    v = _mm_add_epi8(v, _mm_slli_si128(v, 4));
    return _mm_add_epi8(v, _mm_slli_si128(v, 8));
}

/* Appends sixteen columns at once if every four codes have at most STRING_BITS bits and no column takes two words; else
 * one by one. */
TSR_AVX512 static void append(uint32_t *code, int32_t width, int refill_bits, uint32_t tick, struct lane_string *lane)
{
    const __m512i low = _mm512_set1_epi64(0xffffffff);
    const __m512i even = _mm512_setr_epi64(0, 2, 4, 6, 0, 2, 4, 6), odd = _mm512_setr_epi64(1, 3, 5, 7, 1, 3, 5, 7);
    const __m128i column = _mm_setr_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    for (int32_t c = 0; c < width; c += ROW_STEP) {
        const int32_t columns = tsr_min(ROW_STEP, width - c);
        const __mmask16 valid = (__mmask16)((1u << columns) - 1u);
        const __m512i word = _mm512_maskz_loadu_epi32(valid, code + c);
        const __m128i length = _mm512_cvtepi32_epi8(_mm512_and_si512(word, _mm512_set1_epi32(ROW_LENGTH_MASK)));

        /* The words that are taken at each column, before its code. */
        const uint32_t before = lane->bits + (uint32_t)refill_bits + TSR_LANE_WORD_BITS - 1;
        const __m128i bits_before =
            _mm_add_epi8(_mm_sub_epi8(running_sums(length), length), _mm_set1_epi8((char)(before % 16)));
        const __m128i wanted = _mm_and_si128(_mm_srli_epi16(bits_before, 4), _mm_set1_epi8(15));
        const __m128i more = _mm_maskz_mov_epi8(valid, _mm_insert_epi8(_mm_sub_epi8(wanted, _mm_slli_si128(wanted, 1)),
                                                                       (int)(before / 16 - lane->words), 0));
        const __m128i two_length = _mm_maddubs_epi16(length, _mm_set1_epi8(1));
        const __m128i four_length = _mm_madd_epi16(two_length, _mm_set1_epi16(1));
        if (__builtin_expect(_mm_cmpgt_epi8_mask(more, _mm_set1_epi8(1)) ||
                                 _mm_cmpgt_epi32_mask(four_length, _mm_set1_epi32(STRING_BITS)),
                             0)) {
            append_columns(code, c, columns, refill_bits, tick, lane);
            continue;
        }
        const __mmask16 taken = _mm_test_epi8_mask(more, more);
        uint8_t *in_ticks = lane->taken + tick + c;
        _mm_storeu_si128((__m128i *)(void *)in_ticks,
                         _mm_add_epi8(_mm_loadu_si128((const __m128i *)(const void *)in_ticks), more));
        _mm512_storeu_si512(lane->tick + lane->words,
                            _mm512_add_epi32(_mm512_set1_epi32((int)tick + c),
                                             _mm512_cvtepu8_epi32(_mm_maskz_compress_epi8(taken, column))));
        lane->words += (uint32_t)__builtin_popcount(taken);

        /* Joins codes by twos, and these by twos. */
        const __m512i bits_of = _mm512_srli_epi32(word, ROW_LENGTH_BITS);
        const __m512i second_length = _mm512_cvtepu16_epi64(_mm_srli_epi16(length, 8));
        const __m512i two = _mm512_or_si512(_mm512_sllv_epi64(_mm512_and_si512(bits_of, low), second_length),
                                            _mm512_srli_epi64(bits_of, 32));
        const __m256i next_length = _mm256_cvtepu32_epi64(_mm_srli_epi32(two_length, 16));
        const __m256i four =
            _mm256_or_si256(_mm256_sllv_epi64(_mm512_castsi512_si256(_mm512_permutexvar_epi64(even, two)), next_length),
                            _mm512_castsi512_si256(_mm512_permutexvar_epi64(odd, two)));
        const __m256i spare = _mm256_sub_epi64(_mm256_set1_epi64x(64), _mm256_cvtepu32_epi64(four_length));
        uint64_t bits[4];
        uint32_t lengths[4];
        _mm256_storeu_si256((__m256i *)(void *)bits, _mm256_sllv_epi64(four, spare));
        _mm_storeu_si128((__m128i *)(void *)lengths, four_length);
        for (int i = 0; i < 4; i++) append_string(lane, bits[i], lengths[i]);
    }
}

const struct row_coder tsr_row_coder_avx512 = {find_cells, look_up, append};

#endif
