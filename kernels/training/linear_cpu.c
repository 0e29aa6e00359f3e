/* Linear predictors on the CPU; see the header. */
#include "linear_cpu.h"

enum { BIAS = TSR_SAMPLE_BIAS, COLUMNS = 16 };

size_t tsr_padded_samples(int32_t width, int32_t height)
{
    return (((size_t)width + 2 * TSR_GUARD + COLUMNS) * (size_t)height + 31) / 32 * 32;
}

struct tsr_padded_tile tsr_padded_tile(const int16_t *room, int32_t width, int32_t height)
{
    return (struct tsr_padded_tile){room + TSR_GUARD, (ptrdiff_t)width + 2 * TSR_GUARD + COLUMNS, width, height};
}

void tsr_pad_tile(const uint16_t *samples, size_t stride, int32_t width, int32_t height, int16_t *room)
{
    const struct tsr_padded_tile tile = tsr_padded_tile(room, width, height);
    for (int32_t y = 0; y < height; y++) {
        int16_t *row = room + TSR_GUARD + y * tile.pitch;
        const uint16_t *from = samples + (size_t)y * stride;
        for (int32_t c = 0; c < width; c++) row[c] = (int16_t)(from[c] ^ BIAS);
        tsr_guard_left(row, y > 0 ? row[-tile.pitch] : row[0]);
        tsr_guard_right(row + width, TSR_GUARD + COLUMNS);
    }
}

void tsr_tap_row(struct tsr_predictor_shape shape, const struct tsr_padded_tile *tile,
                 const struct tsr_padded_tile *earlier, int32_t y, const int16_t *tap[TSR_TAPS_LIMIT])
{
    for (int k = 0; k < shape.neighbours; k++) tap[k] = tsr_tap_at(tile, tsr_neighbour_place(k), y);
    for (int r = 0, k = shape.neighbours; r < shape.references; r++)
        for (int i = 0; i < TSR_REFERENCE_TAPS; i++, k++)
            tap[k] = tsr_tap_at(&earlier[r], tsr_reference_place(r, i), y);
}

static int32_t weight_pair(const int16_t *weight, int taps, int pair)
{
    const uint16_t second = 2 * pair + 1 < taps ? (uint16_t)weight[2 * pair + 1] : 0;
    return (int32_t)((uint32_t)second << 16 | (uint16_t)weight[2 * pair]);
}

void tsr_pair_weights(const int16_t *weight, int taps, struct tsr_weight_pairs *pairs)
{
    for (int p = 0; p < (taps + 1) / 2; p++) pairs->pair[p] = weight_pair(weight, taps, p);
}

/* ---- Plain C ---------------------------------------------------------------------------------------------- */

static void predict_plain(const int16_t *const *tap, int taps, const int16_t *weight, int32_t column, int16_t highest,
                          int16_t prediction[COLUMNS])
{
    int32_t sum[COLUMNS] = {0};
    for (int k = 0; k < taps; k++)
        for (int c = 0; c < COLUMNS; c++) sum[c] += (int32_t)weight[k] * tap[k][column + c];
    for (int c = 0; c < COLUMNS; c++)
        prediction[c] = (int16_t)(tsr_linear_prediction(sum[c], highest + BIAS + 1) - BIAS);
}

static void costs_plain(const int16_t *const *tap, int taps, const struct tsr_weight_pairs *classes, int count,
                        int32_t column, int32_t columns, int16_t highest, const int16_t *samples, uint32_t (*sums)[8])
{
    for (int i = 0; i < count; i++) {
        int16_t weight[TSR_TAPS_LIMIT + 1], prediction[COLUMNS];
        for (int p = 0; p < (taps + 1) / 2; p++) {
            weight[2 * p] = (int16_t)(uint16_t)((uint32_t)classes[i].pair[p] & 0xffffu);
            weight[2 * p + 1] = (int16_t)(classes[i].pair[p] >> 16);
        }
        predict_plain(tap, taps, weight, column, highest, prediction);
        for (int32_t c = 0; c < columns; c++)
            sums[i][c % 8] += (uint32_t)tsr_min(tsr_abs(samples[column + c] - prediction[c]), BIAS - 1);
    }
}

static void differences_plain(const int16_t *const *first, const int16_t *const *second, int count, int32_t column,
                              int shift, const int16_t weight[COLUMNS], int16_t (*difference)[256],
                              int16_t (*weighted)[256], int at)
{
    for (int f = 0; f < count; f++)
        for (int c = 0; c < COLUMNS; c++) {
            const int32_t d = tsr_difference(first[f][column + c] - second[f][column + c], shift);
            difference[f][at + c] = (int16_t)d;
            weighted[f][at + c] = (int16_t)(d * weight[c]);
        }
}

static void products_plain(const int16_t (*weighted)[256], const int16_t (*difference)[256], int n, int32_t *sums)
{
    for (int i = 0; i < n; i++)
        for (int j = 0; j <= i; j++) {
            int32_t sum = 0;
            for (int s = 0; s < 256; s++) sum += (int32_t)weighted[i][s] * difference[j][s];
            *sums++ = sum;
        }
}

static const struct tsr_linear_ops plain = {predict_plain, costs_plain, differences_plain, products_plain};

/* ---- AVX2 ------------------------------------------------------------------------------------------------- */

#if TSR_HAS_VECTOR_FORMS
#include <immintrin.h>

enum { PAIRS_LIMIT = (TSR_TAPS_LIMIT + 1) / 2 };

/* 16 samples of two taps, interleaved within the halves of a vector: pack restores the order. */
struct tap_pair {
    __m256i low, high;
};

TSR_AVX2 static inline struct tap_pair load_pair(const int16_t *const *tap, int taps, int pair, int32_t column)
{
    const __m256i first = _mm256_loadu_si256((const __m256i *)(tap[2 * pair] + column));
    const __m256i second = 2 * pair + 1 < taps ? _mm256_loadu_si256((const __m256i *)(tap[2 * pair + 1] + column))
                                               : _mm256_setzero_si256();
    return (struct tap_pair){_mm256_unpacklo_epi16(first, second), _mm256_unpackhi_epi16(first, second)};
}

TSR_AVX2 static inline __m256i finish_prediction(__m256i low, __m256i high, __m256i highest)
{
    const __m256i packed =
        _mm256_packs_epi32(_mm256_srai_epi32(low, TSR_WEIGHT_SHIFT), _mm256_srai_epi32(high, TSR_WEIGHT_SHIFT));
    return _mm256_min_epi16(packed, highest);
}

TSR_AVX2 static void predict_avx2(const int16_t *const *tap, int taps, const int16_t *weight, int32_t column,
                                  int16_t highest, int16_t prediction[COLUMNS])
{
    __m256i low = _mm256_set1_epi32(TSR_WEIGHT_HALF), high = low;
    for (int p = 0; p < (taps + 1) / 2; p++) {
        const struct tap_pair pair = load_pair(tap, taps, p, column);
        const __m256i w = _mm256_set1_epi32(weight_pair(weight, taps, p));
        low = _mm256_add_epi32(low, _mm256_madd_epi16(pair.low, w));
        high = _mm256_add_epi32(high, _mm256_madd_epi16(pair.high, w));
    }
    _mm256_storeu_si256((__m256i *)prediction, finish_prediction(low, high, _mm256_set1_epi16(highest)));
}

TSR_AVX2 static void costs_avx2(const int16_t *const *tap, int taps, const struct tsr_weight_pairs *classes, int count,
                                int32_t column, int32_t columns, int16_t highest, const int16_t *samples,
                                uint32_t (*sums)[8])
{
    static const int16_t masks[2 * COLUMNS] = {-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1};
    const __m256i mask = _mm256_loadu_si256((const __m256i *)(masks + COLUMNS - columns));
    const __m256i x = _mm256_loadu_si256((const __m256i *)(samples + column));
    const __m256i most = _mm256_set1_epi16(highest), ones = _mm256_set1_epi16(1), zero = _mm256_setzero_si256();
    const int pairs = (taps + 1) / 2;
    struct tap_pair pair[PAIRS_LIMIT];
    for (int p = 0; p < pairs; p++) pair[p] = load_pair(tap, taps, p, column);
    for (int i = 0; i < count; i++) {
        __m256i low = _mm256_set1_epi32(TSR_WEIGHT_HALF), high = low;
        for (int p = 0; p < pairs; p++) {
            const __m256i w = _mm256_set1_epi32(classes[i].pair[p]);
            low = _mm256_add_epi32(low, _mm256_madd_epi16(pair[p].low, w));
            high = _mm256_add_epi32(high, _mm256_madd_epi16(pair[p].high, w));
        }
        const __m256i error = _mm256_subs_epi16(x, finish_prediction(low, high, most));
        const __m256i magnitude = _mm256_and_si256(_mm256_max_epi16(error, _mm256_subs_epi16(zero, error)), mask);
        __m256i *sum = (__m256i *)sums[i];
        _mm256_storeu_si256(sum, _mm256_add_epi32(_mm256_loadu_si256(sum), _mm256_madd_epi16(magnitude, ones)));
    }
}

/* Saturating to 16 bits first changes nothing: the shift is at most 3, and the limit 1023. */
TSR_AVX2 static void differences_avx2(const int16_t *const *first, const int16_t *const *second, int count,
                                      int32_t column, int shift, const int16_t weight[COLUMNS],
                                      int16_t (*difference)[256], int16_t (*weighted)[256], int at)
{
    const __m256i w = _mm256_loadu_si256((const __m256i *)weight), most = _mm256_set1_epi16(TSR_DIFFERENCE_LIMIT),
                  least = _mm256_set1_epi16(-TSR_DIFFERENCE_LIMIT);
    const __m128i count_of_bits = _mm_cvtsi32_si128(shift);
    for (int f = 0; f < count; f++) {
        const __m256i a = _mm256_loadu_si256((const __m256i *)(first[f] + column)),
                      b = _mm256_loadu_si256((const __m256i *)(second[f] + column));
        __m256i d = _mm256_sra_epi16(_mm256_subs_epi16(a, b), count_of_bits);
        d = _mm256_max_epi16(least, _mm256_min_epi16(most, d));
        _mm256_storeu_si256((__m256i *)(difference[f] + at), d);
        _mm256_storeu_si256((__m256i *)(weighted[f] + at), _mm256_mullo_epi16(d, w));
    }
}

TSR_AVX2 static void products_avx2(const int16_t (*weighted)[256], const int16_t (*difference)[256], int n,
                                   int32_t *sums)
{
    for (int i = 0; i < n; i++)
        for (int j = 0; j <= i; j++) {
            __m256i sum = _mm256_setzero_si256();
            for (int s = 0; s < 256; s += COLUMNS)
                sum =
                    _mm256_add_epi32(sum, _mm256_madd_epi16(_mm256_loadu_si256((const __m256i *)(weighted[i] + s)),
                                                            _mm256_loadu_si256((const __m256i *)(difference[j] + s))));
            __m128i four = _mm_add_epi32(_mm256_castsi256_si128(sum), _mm256_extracti128_si256(sum, 1));
            four = _mm_add_epi32(four, _mm_shuffle_epi32(four, 0x4e));
            four = _mm_add_epi32(four, _mm_shuffle_epi32(four, 0xb1));
            *sums++ = _mm_cvtsi128_si32(four);
        }
}

static const struct tsr_linear_ops avx2 = {predict_avx2, costs_avx2, differences_avx2, products_avx2};
#endif

const struct tsr_linear_ops *tsr_linear_ops(enum tsr_isa isa)
{
#if TSR_HAS_VECTOR_FORMS
    if (isa >= TSR_ISA_AVX2) return &avx2;
#endif
    (void)isa;
    return &plain;
}
