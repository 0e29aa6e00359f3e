/* Coding rows for AVX-512: sixteen columns at once; see code_lanes.h. */
#include "code_lanes.h"

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>

#define AVX512 __attribute__((target("avx512f,avx512bw,avx512vl,avx512vbmi,bmi,bmi2,popcnt")))
#define AVX512_INLINE \
    static inline __attribute__((always_inline, target("avx512f,avx512bw,avx512vl,avx512vbmi,bmi,bmi2,popcnt")))

AVX512 static void find_cells(const struct tsr_residual_rows *rows, const struct cell_cuts *cuts, uint8_t *cell,
                              uint32_t *special)
{
    const __m512i pitch = _mm512_set1_epi16(cuts->pitch), one = _mm512_set1_epi16(1);
    const __m512i large = _mm512_set1_epi16(TSR_CODED_VALUES);
    for (int32_t c = 0; c < rows->tile.width; c += 32) {
        const __m512i activity = _mm512_loadu_si512(rows->activity + c);
        const __m512i intensity = _mm512_loadu_si512(rows->intensity + c);
        const __mmask32 is_special = _mm512_testn_epi16_mask(activity, activity) |
                                     _mm512_cmpge_epu16_mask(_mm512_loadu_si512(rows->folded + c), large);
        __m512i number = _mm512_setzero_si512();
        for (int i = 0; i < cuts->activities; i++)
            number = _mm512_mask_add_epi16(
                number, _mm512_cmpge_epi16_mask(activity, _mm512_set1_epi16(cuts->activity[i])), number, pitch);
        for (int i = 0; i < cuts->intensities; i++)
            number = _mm512_mask_add_epi16(
                number, _mm512_cmpge_epu16_mask(intensity, _mm512_set1_epi16((int16_t)cuts->intensity[i])), number,
                one);
        _mm256_storeu_si256((__m256i *)(void *)(cell + c), _mm512_cvtepi16_epi8(number));
        special[c / 32] = is_special;
    }
}

AVX512 static void look_up(const struct tsr_value_codes *codes, const uint8_t *cell, const uint16_t *folded,
                           int32_t width, struct row_codes out)
{
    const __m512i tables = _mm512_loadu_si512(codes->table_of_cell);
    const __m512i more_tables = _mm512_loadu_si512(codes->table_of_cell + 64);
    const __m512i most = _mm512_set1_epi32(TSR_CODED_VALUES - 1), low = _mm512_set1_epi32(31);
    for (int32_t c = 0; c < width; c += 64) {
        uint8_t table[64];
        _mm512_storeu_si512(table, _mm512_permutex2var_epi8(tables, _mm512_loadu_si512(cell + c), more_tables));
        for (int32_t i = 0; i < 64; i += ROW_STEP) {
            const __m512i value = _mm512_min_epu32(
                _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)(const void *)(folded + c + i))), most);
            const __m512i number = _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)(const void *)(table + i)));
            const __m512i place = _mm512_add_epi32(_mm512_slli_epi32(number, 8), value);
            const __m512i code = _mm512_i32gather_epi32(place, codes->code, 4);
            _mm512_storeu_si512(out.bits + c + i, _mm512_srli_epi32(code, 5));
            _mm_storeu_si128((__m128i *)(void *)(out.length + c + i),
                             _mm512_cvtepi32_epi8(_mm512_and_si512(code, low)));
        }
    }
}

/* Sums of the numbers up to each. */
AVX512_INLINE __m512i running_sums(__m512i v)
{
    const __m512i zero = _mm512_setzero_si512();
    v = _mm512_add_epi32(v, _mm512_alignr_epi32(v, zero, 15));
    v = _mm512_add_epi32(v, _mm512_alignr_epi32(v, zero, 14));
    v = _mm512_add_epi32(v, _mm512_alignr_epi32(v, zero, 12));
    return _mm512_add_epi32(v, _mm512_alignr_epi32(v, zero, 8));
}

/* Appends strings of length[i] (0..64) bits, which stand on top of bits[i]. */
AVX512_INLINE void append_strings(const uint64_t *bits, const uint64_t *length, int count, uint64_t *group,
                                  uint64_t *front, uint64_t *total)
{
    for (int i = 0; i < count; i++) {
        const uint64_t held = *total % 64, left = bits[i], joined = *front | left >> held;
        group[*total / 64] = joined;
        *front = held + length[i] >= 64 ? left << 1 << (63 - held) : joined;
        *total += length[i];
    }
}

/* Notes the ticks in which words are taken: before column i, wanted[i] in all. Two at once are rare. */
AVX512_INLINE void note_ticks(__m512i wanted, __m512i before, __mmask16 valid, uint32_t tick, struct lane_string *lane,
                              uint32_t *words)
{
    const __m512i more = _mm512_sub_epi32(wanted, before);
    const __mmask16 taken = _mm512_mask_test_epi32_mask(valid, more, more);
    uint32_t *in_ticks = lane->taken + tick;
    _mm512_storeu_si512(in_ticks,
                        _mm512_mask_add_epi32(_mm512_loadu_si512(in_ticks), valid, _mm512_loadu_si512(in_ticks), more));
    if (__builtin_expect(_mm512_mask_cmpgt_epi32_mask(valid, more, _mm512_set1_epi32(1)) != 0, 0)) {
        uint32_t count[ROW_STEP];
        _mm512_storeu_si512(count, more);
        for (int i = 0; i < ROW_STEP; i++)
            for (uint32_t k = 0; k < (valid >> i & 1 ? count[i] : 0); k++) lane->tick[(*words)++] = tick + (uint32_t)i;
        return;
    }
    const __m512i column = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    const __m512i ticks = _mm512_add_epi32(_mm512_set1_epi32((int)tick), column);
    _mm512_storeu_si512(lane->tick + *words, _mm512_maskz_compress_epi32(taken, ticks));
    *words += (uint32_t)__builtin_popcount(taken);
}

AVX512 static void append(struct row_codes codes, int32_t width, int refill_bits, uint32_t tick,
                          struct lane_string *lane)
{
    const __m512i low = _mm512_set1_epi64(0xffffffff), all = _mm512_set1_epi64(64);
    uint64_t front = lane->front, total = lane->bits;
    uint32_t words = lane->words;
    __m512i taken = _mm512_set1_epi32((int)words);
    for (int32_t c = 0; c < width; c += ROW_STEP) {
        const __mmask16 valid = width - c >= ROW_STEP ? 0xffffu : (__mmask16)((1u << (width - c)) - 1u);
        const __m512i length =
            _mm512_maskz_cvtepu8_epi32(valid, _mm_loadu_si128((const __m128i *)(const void *)(codes.length + c)));
        const __m512i code = _mm512_maskz_loadu_epi32(valid, codes.bits + c);
        const __m512i behind = _mm512_add_epi32(running_sums(length), _mm512_set1_epi32((int)total));
        const __m512i wanted = _mm512_srli_epi32(
            _mm512_add_epi32(_mm512_sub_epi32(behind, length), _mm512_set1_epi32(refill_bits + TSR_LANE_WORD_BITS - 1)),
            4);
        note_ticks(wanted, _mm512_alignr_epi32(wanted, taken, 15), valid, tick + (uint32_t)c, lane, &words);
        taken = wanted;

        /* Codes two by two, and these four by four where they fit 64 bits. */
        const __m512i second_length = _mm512_srli_epi64(length, 32);
        const __m512i two =
            _mm512_or_si512(_mm512_sllv_epi64(_mm512_and_si512(code, low), second_length), _mm512_srli_epi64(code, 32));
        const __m512i two_length = _mm512_add_epi64(_mm512_and_si512(length, low), second_length);
        const __m512i next_length = _mm512_unpackhi_epi64(two_length, two_length);
        const __m512i four_length = _mm512_add_epi64(two_length, next_length);
        uint64_t bits[8], lengths[8];
        if (__builtin_expect(_mm512_mask_cmpgt_epi64_mask(0x55, four_length, all) == 0, 1)) {
            const __m512i four = _mm512_or_si512(_mm512_sllv_epi64(two, next_length), _mm512_unpackhi_epi64(two, two));
            _mm256_storeu_si256((__m256i *)(void *)bits,
                                _mm512_castsi512_si256(_mm512_maskz_compress_epi64(
                                    0x55, _mm512_sllv_epi64(four, _mm512_sub_epi64(all, four_length)))));
            _mm256_storeu_si256((__m256i *)(void *)lengths,
                                _mm512_castsi512_si256(_mm512_maskz_compress_epi64(0x55, four_length)));
            append_strings(bits, lengths, 4, lane->group, &front, &total);
        } else {
            _mm512_storeu_si512(bits, _mm512_sllv_epi64(two, _mm512_sub_epi64(all, two_length)));
            _mm512_storeu_si512(lengths, two_length);
            append_strings(bits, lengths, 8, lane->group, &front, &total);
        }
    }
    lane->front = front;
    lane->bits = (uint32_t)total;
    lane->words = words;
}

const struct row_coder *tsr_row_coder_avx512(void)
{
    static const struct row_coder coder = {find_cells, look_up, append};
    return __builtin_cpu_supports("avx512vbmi") && __builtin_cpu_supports("avx512bw") &&
                   __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("bmi2")
               ? &coder
               : NULL;
}

#else

const struct row_coder *tsr_row_coder_avx512(void)
{
    return NULL;
}

#endif
