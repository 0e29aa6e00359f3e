/* Coding rows for AVX-512: 32 and 64 columns at once; see code_lanes.h. Strings took longer than with
 * AVX2, which appends them. Gain: at -1 1.16 times AVX2, at -5 1.01 (tests/bench/decisions/032). */
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

const struct row_coder tsr_row_coder_avx512 = {find_cells, look_up, tsr_append_row_avx2};

#endif
