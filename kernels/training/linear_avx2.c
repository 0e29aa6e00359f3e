/* Linear predictors with AVX2; linear_cpu.h says what each routine does, and test_linear_cpu holds it equal to plain C.
 *
 * Two taps times two weights are one product of pairs (vpmaddwd). Costs keep the sums of four classes in registers, and
 * products those of 2 x 4 features, so that a load serves several multiplications. */
#include "linear_cpu.h"

#include <string.h>

#include "entropy/predictor_training.h"

#if TSR_HAS_VECTOR_FORMS
#include <immintrin.h>

enum { COLUMNS = 16, PAIRS_LIMIT = (TSR_TAPS_LIMIT + 1) / 2, CLASSES = 4 /* at once */ };

TSR_AVX2_INLINE __m256i load(const void *from)
{
    return _mm256_loadu_si256((const __m256i *)from);
}

TSR_AVX2_INLINE void store(void *to, __m256i value)
{
    _mm256_storeu_si256((__m256i *)to, value);
}

/* The weights of taps 2 pair and 2 pair + 1, in all lanes. If taps is odd, the last pair's second weight is any number:
 * its samples are 0. */
TSR_AVX2_INLINE __m256i weight_pair(const int16_t *weight, int pair)
{
    int32_t both;
    memcpy(&both, weight + 2 * pair, sizeof both);
    return _mm256_set1_epi32(both);
}

/* Computes value here, before what follows: else gcc loads all operands of a group first, and runs out of registers. */
#define HERE(value) __asm__ volatile("" : "+x"(value))

/* 16 samples of two taps, interleaved within the halves of a vector: pack restores the order. */
struct tap_pair {
    __m256i low, high;
};

TSR_AVX2_INLINE struct tap_pair load_pair(const int16_t *const *tap, int taps, int pair, ptrdiff_t at)
{
    const __m256i first = load(tap[2 * pair] + at);
    const __m256i second = 2 * pair + 1 < taps ? load(tap[2 * pair + 1] + at) : _mm256_setzero_si256();
    return (struct tap_pair){_mm256_unpacklo_epi16(first, second), _mm256_unpackhi_epi16(first, second)};
}

TSR_AVX2_INLINE __m256i finish_prediction(__m256i low, __m256i high, __m256i highest)
{
    const __m256i packed =
        _mm256_packs_epi32(_mm256_srai_epi32(low, TSR_WEIGHT_SHIFT), _mm256_srai_epi32(high, TSR_WEIGHT_SHIFT));
    return _mm256_min_epi16(packed, highest);
}

TSR_AVX2_INLINE __m256i predict_taps(const int16_t *const *tap, int taps, const int16_t *weight, ptrdiff_t at,
                                     __m256i highest)
{
    __m256i low = _mm256_set1_epi32(TSR_WEIGHT_HALF), high = low;
    for (int p = 0; p < (taps + 1) / 2; p++) {
        const struct tap_pair pair = load_pair(tap, taps, p, at);
        const __m256i w = weight_pair(weight, p);
        low = _mm256_add_epi32(low, _mm256_madd_epi16(pair.low, w));
        high = _mm256_add_epi32(high, _mm256_madd_epi16(pair.high, w));
    }
    return finish_prediction(low, high, highest);
}

/* The sets of neighbours without earlier planes have loops of known length. */
TSR_AVX2_INLINE __m256i predict_samples(const int16_t *const *tap, int taps, const int16_t *weight, ptrdiff_t at,
                                        __m256i highest)
{
    switch (taps) {
    case 10:
        return predict_taps(tap, 10, weight, at, highest);
    case 18:
        return predict_taps(tap, 18, weight, at, highest);
    case 30:
        return predict_taps(tap, 30, weight, at, highest);
    default:
        return predict_taps(tap, taps, weight, at, highest);
    }
}

TSR_AVX2 static void predict(const int16_t *const *tap, int taps, const int16_t *weight, int32_t column,
                             int16_t highest, int16_t prediction[COLUMNS])
{
    store(prediction, predict_samples(tap, taps, weight, column, _mm256_set1_epi16(highest)));
}

/* tsr_median_edge: W + N less NW, which is first brought between them. Sums may wrap on their way. */
TSR_AVX2_INLINE __m256i predict_edges(const int16_t *row, ptrdiff_t pitch)
{
    const __m256i w = load(row - 1), n = load(row - pitch), nw = load(row - pitch - 1);
    const __m256i between = _mm256_max_epi16(_mm256_min_epi16(w, n), _mm256_min_epi16(_mm256_max_epi16(w, n), nw));
    return _mm256_sub_epi16(_mm256_add_epi16(w, n), between);
}

/* -1 in the lanes of the first columns. */
TSR_AVX2_INLINE __m256i mask_of(int32_t columns)
{
    static const int16_t masks[2 * COLUMNS] = {-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1};
    return load(masks + COLUMNS - columns);
}

/* The sums of four vectors' eight numbers. */
TSR_AVX2_INLINE __m128i sum_four(__m256i a, __m256i b, __m256i c, __m256i d)
{
    const __m256i halves = _mm256_hadd_epi32(_mm256_hadd_epi32(a, b), _mm256_hadd_epi32(c, d));
    return _mm_add_epi32(_mm256_castsi256_si128(halves), _mm256_extracti128_si256(halves, 1));
}

/* ---- Costs ------------------------------------------------------------------------------------------------ */

struct cost_row {
    struct tap_pair pair[PAIRS_LIMIT];
    __m256i samples, highest, mask;
};

struct four_sums {
    __m256i low[CLASSES], high[CLASSES];
};

TSR_AVX2_INLINE void add_products(struct four_sums *sum, struct tap_pair pair, const int16_t *const *weight, int p)
{
    for (int i = 0; i < CLASSES; i++) {
        const __m256i w = weight_pair(weight[i], p);
        sum->low[i] = _mm256_add_epi32(sum->low[i], _mm256_madd_epi16(pair.low, w));
        sum->high[i] = _mm256_add_epi32(sum->high[i], _mm256_madd_epi16(pair.high, w));
        HERE(sum->low[i]);
        HERE(sum->high[i]);
    }
}

/* Adds a row's magnitudes of four classes to their sums, saturated to 2^15 - 1. */
TSR_AVX2_INLINE void add_four_costs(const struct cost_row *row, int pairs, const int16_t *const *weight, __m256i *sum)
{
    struct four_sums of;
    int p = 0;
    for (int i = 0; i < CLASSES; i++) of.low[i] = of.high[i] = _mm256_set1_epi32(TSR_WEIGHT_HALF);
    for (; p + 2 < pairs; p += 3)
        for (int k = 0; k < 3; k++) add_products(&of, row->pair[p + k], weight, p + k);
    for (; p < pairs; p++) add_products(&of, row->pair[p], weight, p);
    for (int i = 0; i < CLASSES; i++) {
        const __m256i error = _mm256_subs_epi16(row->samples, finish_prediction(of.low[i], of.high[i], row->highest));
        const __m256i magnitude = _mm256_max_epi16(error, _mm256_subs_epi16(_mm256_setzero_si256(), error));
        sum[i] = _mm256_add_epi32(sum[i], _mm256_madd_epi16(_mm256_and_si256(magnitude, row->mask), //
                                                            _mm256_set1_epi16(1)));
    }
}

TSR_AVX2 static void costs(const struct tsr_tap_rows *rows, uint32_t which, const int16_t *const *weight, int count,
                           uint32_t *cost)
{
    enum { MOST = (TSR_CLASS_LIMIT + CLASSES - 1) / CLASSES * CLASSES };
    const int pairs = (rows->taps + 1) / 2;
    const int16_t *of_class[MOST];
    __m256i sum[MOST];
    struct cost_row row = {.highest = _mm256_set1_epi16(rows->highest), .mask = mask_of(rows->columns)};
    for (int i = 0; i < count || i % CLASSES != 0; i++) {
        of_class[i] = weight[tsr_min(i, count - 1)];
        sum[i] = _mm256_setzero_si256();
    }
    for (int32_t r = 0; r < rows->rows; r++) {
        if ((which >> r & 1) == 0) continue;
        const ptrdiff_t at = rows->column + r * rows->pitch;
        for (int p = 0; p < pairs; p++) row.pair[p] = load_pair(rows->tap, rows->taps, p, at);
        row.samples = load(rows->samples + at);
        for (int i = 0; i < count; i += CLASSES) add_four_costs(&row, pairs, of_class + i, sum + i);
    }
    for (int i = 0; i < count; i += CLASSES) {
        uint32_t four[CLASSES];
        _mm_storeu_si128((__m128i *)four, sum_four(sum[i], sum[i + 1], sum[i + 2], sum[i + 3]));
        for (int k = i; k < count && k < i + CLASSES; k++) cost[k] += four[k - i];
    }
}

TSR_AVX2 static void median_costs(const struct tsr_tap_rows *rows, uint32_t *cost, int32_t *zeros)
{
    const __m256i mask = mask_of(rows->columns), ones = _mm256_set1_epi16(1);
    __m256i sum = _mm256_setzero_si256(), equal = sum;
    for (int32_t r = 0; r < rows->rows; r++) {
        const int16_t *row = rows->samples + rows->column + r * rows->pitch;
        const __m256i x = load(row), prediction = predict_edges(row, rows->pitch);
        const __m256i magnitude = _mm256_subs_epi16(_mm256_max_epi16(x, prediction), _mm256_min_epi16(x, prediction));
        sum = _mm256_add_epi32(sum, _mm256_madd_epi16(_mm256_and_si256(magnitude, mask), ones));
        equal = _mm256_sub_epi16(equal, _mm256_and_si256(_mm256_cmpeq_epi16(x, prediction), mask));
    }
    const __m256i none = _mm256_setzero_si256();
    const __m128i both = sum_four(sum, _mm256_madd_epi16(equal, ones), none, none);
    *cost += (uint32_t)_mm_cvtsi128_si32(both);
    *zeros += _mm_extract_epi32(both, 1);
}

/* ---- Sums of products ------------------------------------------------------------------------------------- */

/* The largest magnitude of which tsr_fit_weight is at least weight; -1: there is none. */
static int32_t largest_of_weight(int weight, int32_t mean)
{
    return tsr_min(UINT16_MAX, (5 * (2 * mean + 3) / (2 * weight) - 1) / 2 - 1);
}

TSR_AVX2 static void fit_weights(const struct tsr_tap_rows *rows, const int16_t *weight, int32_t mean,
                                 int16_t (*fit)[COLUMNS])
{
    const __m256i highest = _mm256_set1_epi16(rows->highest), mask = mask_of(rows->columns);
    __m256i limit[TSR_FIT_WEIGHT_LIMIT];
    int limits = 0;
    for (; limits < TSR_FIT_WEIGHT_LIMIT && largest_of_weight(limits + 1, mean) >= 0; limits++)
        limit[limits] = _mm256_set1_epi16((int16_t)(uint16_t)largest_of_weight(limits + 1, mean));
    for (int32_t r = 0; r < rows->rows; r++) {
        const ptrdiff_t at = rows->column + r * rows->pitch;
        const __m256i x = load(rows->samples + at);
        const __m256i prediction = weight ? predict_samples(rows->tap, rows->taps, weight, at, highest)
                                          : predict_edges(rows->samples + at, rows->pitch);
        const __m256i magnitude = _mm256_sub_epi16(_mm256_max_epi16(x, prediction), _mm256_min_epi16(x, prediction));
        __m256i sum = _mm256_setzero_si256();
        for (int i = 0; i < limits; i++)
            sum = _mm256_sub_epi16(sum, _mm256_cmpeq_epi16(_mm256_min_epu16(magnitude, limit[i]), magnitude));
        store(fit[r], _mm256_and_si256(sum, mask));
    }
}

/* Saturating to 16 bits first changes nothing: the shift is at most 3, and the limit 1023. */
TSR_AVX2 static void differences(const struct tsr_tap_rows *rows, const int16_t *const *first,
                                 const int16_t *const *second, int count, int shift, const int16_t (*fit)[COLUMNS],
                                 int16_t (*difference)[256], int16_t (*weighted)[256], int at)
{
    const __m256i most = _mm256_set1_epi16(TSR_DIFFERENCE_LIMIT), least = _mm256_set1_epi16(-TSR_DIFFERENCE_LIMIT);
    const __m128i count_of_bits = _mm_cvtsi32_si128(shift);
    for (int f = 0; f < count; f++) {
        const int16_t *a = first[f] + rows->column, *b = second[f] + rows->column;
        int16_t *to = difference[f] + at, *times_fit = weighted[f] + at;
        for (int32_t r = 0; r < rows->rows; r++, a += rows->pitch, b += rows->pitch) {
            __m256i d = _mm256_sra_epi16(_mm256_subs_epi16(load(a), load(b)), count_of_bits);
            d = _mm256_max_epi16(least, _mm256_min_epi16(most, d));
            store(to + r * COLUMNS, d);
            store(times_fit + r * COLUMNS, _mm256_mullo_epi16(d, load(fit[r])));
        }
    }
}

/* The sums of row i that begin at column j, at most four, up to the diagonal. */
TSR_AVX2_INLINE void put_sums(int32_t *sums, int i, int j, const __m256i sum[4])
{
    int32_t four[4];
    const __m128i all = sum_four(sum[0], sum[1], sum[2], sum[3]);
    int32_t *to = sums + i * (i + 1) / 2 + j;
    if (j + 3 <= i) {
        _mm_storeu_si128((__m128i *)to, all);
        return;
    }
    _mm_storeu_si128((__m128i *)four, all);
    for (int k = 0; j + k <= i; k++) to[k] = four[k];
}

TSR_AVX2 static void products(const int16_t (*weighted)[256], const int16_t (*difference)[256], int n, int samples,
                              int32_t *sums)
{
    for (int i = 0; i < n; i += 2) {
        const int next = tsr_min(i + 1, n - 1);
        for (int j = 0; j <= next; j += 4) {
            const int16_t *of[4];
            __m256i sum[2][4];
            for (int k = 0; k < 4; k++) {
                of[k] = difference[tsr_min(j + k, n - 1)];
                sum[0][k] = sum[1][k] = _mm256_setzero_si256();
            }
            for (int s = 0; s < samples; s += COLUMNS) {
                const __m256i a = load(weighted[i] + s), b = load(weighted[next] + s);
                for (int k = 0; k < 4; k++) {
                    __m256i d = load(of[k] + s);
                    HERE(d);
                    sum[0][k] = _mm256_add_epi32(sum[0][k], _mm256_madd_epi16(a, d));
                    sum[1][k] = _mm256_add_epi32(sum[1][k], _mm256_madd_epi16(b, d));
                }
            }
            if (j <= i) put_sums(sums, i, j, sum[0]);
            if (next > i) put_sums(sums, next, j, sum[1]);
        }
    }
}

const struct tsr_linear_ops tsr_linear_avx2 = {predict, costs, median_costs, fit_weights, differences, products};
#endif
