/* The vector forms of the linear predictors: one text for SSE2, AVX2 and AVX-512. linear_cpu.h says what each routine
 * does, and test_linear_cpu holds every form equal to the definition.
 *
 * The file that includes this one defines LINEAR_FORM and LINEAR_INLINE, the attributes of its functions; LANES, the
 * samples of a vector (8 or 16); CLASSES, of which the costs are summed up at once in registers; and, if it has a
 * better one, ADD_PRODUCTS(sum, a, b): the sum and the products of pairs.
 *
 * Two taps times two weights are one product of pairs (pmaddwd). */
#include <immintrin.h>
#include <string.h>

#include "entropy/predictor_training.h"
#include "linear_cpu.h"
#include "transform/predict/anchor.h"

#if LANES == 16
typedef __m256i vector;
#define OP(name) _mm256_##name
#define BITS(name) _mm256_##name##_si256
#else
typedef __m128i vector;
#define OP(name) _mm_##name
#define BITS(name) _mm_##name##_si128
#endif
#ifndef ADD_PRODUCTS
#define ADD_PRODUCTS(sum, a, b) OP(add_epi32)(sum, OP(madd_epi16)(a, b))
#endif

/* Computes value here, before what follows: else gcc loads all operands of a group first, and runs out of registers. */
#define HERE(value) __asm__ volatile("" : "+x"(value))

enum { COLUMNS = 16, PAIRS_LIMIT = (TSR_TAPS_LIMIT + 1) / 2 };

LINEAR_INLINE vector load(const int16_t *from)
{
    return BITS(loadu)((const vector *)from);
}

LINEAR_INLINE void store(int16_t *to, vector value)
{
    BITS(storeu)((vector *)to, value);
}

/* The weights of taps 2 pair and 2 pair + 1, in all lanes. If taps is odd, the last pair's second weight is any number:
 * its samples are 0. */
LINEAR_INLINE vector weight_pair(const int16_t *weight, int pair)
{
    int32_t both;
    memcpy(&both, weight + 2 * pair, sizeof both);
    return OP(set1_epi32)(both);
}

/* Samples of two taps, interleaved within the halves of a vector: pack restores the order. */
struct tap_pair {
    vector low, high;
};

LINEAR_INLINE struct tap_pair load_pair(const int16_t *const *tap, int taps, int pair, ptrdiff_t at)
{
    const vector first = load(tap[2 * pair] + at);
    const vector second = 2 * pair + 1 < taps ? load(tap[2 * pair + 1] + at) : BITS(setzero)();
    return (struct tap_pair){OP(unpacklo_epi16)(first, second), OP(unpackhi_epi16)(first, second)};
}

LINEAR_INLINE vector finish_prediction(vector low, vector high, vector highest)
{
    const vector packed =
        OP(packs_epi32)(OP(srai_epi32)(low, TSR_WEIGHT_SHIFT), OP(srai_epi32)(high, TSR_WEIGHT_SHIFT));
    return OP(min_epi16)(packed, highest);
}

/* The sums of the weighted taps, from one half on. */
LINEAR_INLINE struct tap_pair sum_taps(const int16_t *const *tap, int taps, const int16_t *weight, ptrdiff_t at)
{
    vector low = OP(set1_epi32)(TSR_WEIGHT_HALF), high = low;
    for (int p = 0; p < (taps + 1) / 2; p++) {
        const struct tap_pair pair = load_pair(tap, taps, p, at);
        const vector w = weight_pair(weight, p);
        low = ADD_PRODUCTS(low, pair.low, w);
        high = ADD_PRODUCTS(high, pair.high, w);
    }
    return (struct tap_pair){low, high};
}

LINEAR_INLINE vector predict_taps(const int16_t *const *tap, int taps, const int16_t *weight, ptrdiff_t at,
                                  vector highest)
{
    const struct tap_pair sum = sum_taps(tap, taps, weight, at);
    return finish_prediction(sum.low, sum.high, highest);
}

/* tsr_prediction_fraction of sums of 32 bits. */
LINEAR_INLINE vector fractions_of(vector sum, vector highest)
{
    const vector whole = OP(srai_epi32)(sum, TSR_WEIGHT_SHIFT);
    const vector outside = BITS(or)(OP(srai_epi32)(OP(add_epi32)(whole, OP(set1_epi32)(TSR_SAMPLE_BIAS)), 31),
                                    OP(srai_epi32)(OP(sub_epi32)(highest, whole), 31));
    const vector part = BITS(and)(OP(srai_epi32)(sum, TSR_WEIGHT_SHIFT - TSR_ANCHOR_SHIFT),
                                  OP(set1_epi32)((1 << TSR_ANCHOR_SHIFT) - 1));
    return BITS(andnot)(outside, OP(sub_epi32)(part, OP(set1_epi32)(1 << (TSR_ANCHOR_SHIFT - 1))));
}

/* The sets of neighbours without earlier planes have loops of known length. */
LINEAR_INLINE vector predict_samples(const int16_t *const *tap, int taps, const int16_t *weight, ptrdiff_t at,
                                     vector highest)
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

LINEAR_FORM static void predict(const int16_t *const *tap, int taps, const int16_t *weight, int32_t column,
                                int16_t highest, int16_t prediction[COLUMNS])
{
    for (int c = 0; c < COLUMNS; c += LANES)
        store(prediction + c, predict_samples(tap, taps, weight, column + c, OP(set1_epi16)(highest)));
}

LINEAR_FORM static void predict_finely(const int16_t *const *tap, int taps, const int16_t *weight, int32_t column,
                                       int16_t highest, int16_t prediction[COLUMNS], int16_t fraction[COLUMNS])
{
    const vector most = OP(set1_epi32)(highest);
    for (int c = 0; c < COLUMNS; c += LANES) {
        const struct tap_pair sum = taps == 18   ? sum_taps(tap, 18, weight, column + c)
                                    : taps == 28 ? sum_taps(tap, 28, weight, column + c)
                                                 : sum_taps(tap, taps, weight, column + c);
        store(prediction + c, finish_prediction(sum.low, sum.high, OP(set1_epi16)(highest)));
        store(fraction + c, OP(packs_epi32)(fractions_of(sum.low, most), fractions_of(sum.high, most)));
    }
}

/* tsr_median_edge: W + N less NW, which is first brought between them. Sums may wrap on their way. */
LINEAR_INLINE vector predict_edges(const int16_t *row, ptrdiff_t pitch)
{
    const vector w = load(row - 1), n = load(row - pitch), nw = load(row - pitch - 1);
    const vector between = OP(max_epi16)(OP(min_epi16)(w, n), OP(min_epi16)(OP(max_epi16)(w, n), nw));
    return OP(sub_epi16)(OP(add_epi16)(w, n), between);
}

/* -1 in the lanes from column c on that lie before columns. */
LINEAR_INLINE vector mask_of(int32_t columns, int c)
{
    static const int16_t masks[2 * COLUMNS] = {-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1};
    return load(masks + COLUMNS - columns + c);
}

/* |a - b|, at most 2^15 - 1. */
LINEAR_INLINE vector saturated_magnitude(vector a, vector b)
{
    return OP(max_epi16)(OP(subs_epi16)(a, b), OP(subs_epi16)(b, a));
}

/* The sums of four vectors' numbers. */
LINEAR_INLINE __m128i sum_four(vector a, vector b, vector c, vector d)
{
    const vector ab = OP(add_epi32)(OP(unpacklo_epi32)(a, b), OP(unpackhi_epi32)(a, b)),
                 cd = OP(add_epi32)(OP(unpacklo_epi32)(c, d), OP(unpackhi_epi32)(c, d)),
                 all = OP(add_epi32)(OP(unpacklo_epi64)(ab, cd), OP(unpackhi_epi64)(ab, cd));
#if LANES == 16
    return _mm_add_epi32(_mm256_castsi256_si128(all), _mm256_extracti128_si256(all, 1));
#else
    return all;
#endif
}

/* ---- Costs ------------------------------------------------------------------------------------------------ */

/* LANES columns of a row. */
struct cost_row {
    struct tap_pair pair[PAIRS_LIMIT];
    vector samples, highest, mask;
};

struct class_sums {
    vector low[CLASSES], high[CLASSES];
};

LINEAR_INLINE void add_pair(struct class_sums *sum, struct tap_pair pair, const int16_t *const *weight, int p)
{
    for (int i = 0; i < CLASSES; i++) {
        const vector w = weight_pair(weight[i], p);
        sum->low[i] = ADD_PRODUCTS(sum->low[i], pair.low, w);
        sum->high[i] = ADD_PRODUCTS(sum->high[i], pair.high, w);
        HERE(sum->low[i]);
        HERE(sum->high[i]);
    }
}

/* Adds a row's magnitudes of some classes to their sums. */
LINEAR_INLINE void add_costs(const struct cost_row *row, int pairs, const int16_t *const *weight, vector *sum)
{
    struct class_sums of;
    int p = 0;
    for (int i = 0; i < CLASSES; i++) of.low[i] = of.high[i] = OP(set1_epi32)(TSR_WEIGHT_HALF);
    for (; p + 2 < pairs; p += 3)
        for (int k = 0; k < 3; k++) add_pair(&of, row->pair[p + k], weight, p + k);
    for (; p < pairs; p++) add_pair(&of, row->pair[p], weight, p);
    for (int i = 0; i < CLASSES; i++) {
        const vector prediction = finish_prediction(of.low[i], of.high[i], row->highest);
        const vector magnitude = BITS(and)(saturated_magnitude(row->samples, prediction), row->mask);
        sum[i] = ADD_PRODUCTS(sum[i], magnitude, OP(set1_epi16)(1));
    }
}

LINEAR_FORM static void costs(const struct tsr_tap_rows *rows, uint32_t which, const int16_t *const *weight, int count,
                              uint32_t *cost)
{
    enum { MOST = (TSR_CLASS_LIMIT + CLASSES - 1) / CLASSES * CLASSES };
    static_assert(CLASSES % 4 == 0, "sums are added up by four");
    const int pairs = (rows->taps + 1) / 2;
    const int16_t *of_class[MOST];
    vector sum[MOST];
    struct cost_row row;
    row.highest = OP(set1_epi16)(rows->highest);
    for (int i = 0; i < count || i % CLASSES != 0; i++) {
        of_class[i] = weight[tsr_min(i, count - 1)];
        sum[i] = BITS(setzero)();
    }
    for (int32_t r = 0; r < rows->rows; r++) {
        if ((which >> r & 1) == 0) continue;
        for (int c = 0; c < COLUMNS; c += LANES) {
            const ptrdiff_t at = rows->column + r * rows->pitch + c;
            for (int p = 0; p < pairs; p++) row.pair[p] = load_pair(rows->tap, rows->taps, p, at);
            row.samples = load(rows->samples + at);
            row.mask = mask_of(rows->columns, c);
            for (int i = 0; i < count; i += CLASSES) add_costs(&row, pairs, of_class + i, sum + i);
        }
    }
    for (int i = 0; i < count; i += 4) {
        uint32_t four[4];
        _mm_storeu_si128((__m128i *)four, sum_four(sum[i], sum[i + 1], sum[i + 2], sum[i + 3]));
        for (int k = i; k < count && k < i + 4; k++) cost[k] += four[k - i];
    }
}

LINEAR_FORM static void median_costs(const struct tsr_tap_rows *rows, uint32_t *cost, int32_t *zeros)
{
    const vector ones = OP(set1_epi16)(1), none = BITS(setzero)();
    vector sum = none, equal = none;
    uint32_t four[4];
    for (int c = 0; c < COLUMNS; c += LANES) {
        const vector mask = mask_of(rows->columns, c);
        for (int32_t r = 0; r < rows->rows; r++) {
            const int16_t *row = rows->samples + rows->column + r * rows->pitch + c;
            const vector x = load(row), prediction = predict_edges(row, rows->pitch);
            sum = ADD_PRODUCTS(sum, BITS(and)(saturated_magnitude(x, prediction), mask), ones);
            equal = OP(sub_epi16)(equal, BITS(and)(OP(cmpeq_epi16)(x, prediction), mask));
        }
    }
    _mm_storeu_si128((__m128i *)four, sum_four(sum, OP(madd_epi16)(equal, ones), none, none));
    *cost += four[0];
    *zeros += (int32_t)four[1];
}

/* |sample - prediction| of LANES columns of a row, from at on. */
LINEAR_INLINE vector magnitude_at(const struct tsr_tap_rows *rows, ptrdiff_t at, const int16_t *weight)
{
    const vector x = load(rows->samples + at);
    const vector prediction = weight ? predict_samples(rows->tap, rows->taps, weight, at, OP(set1_epi16)(rows->highest))
                                     : predict_edges(rows->samples + at, rows->pitch);
    return OP(sub_epi16)(OP(max_epi16)(x, prediction), OP(min_epi16)(x, prediction));
}

LINEAR_FORM static uint32_t magnitudes(const struct tsr_tap_rows *rows, int32_t r, const int16_t *weight,
                                       uint16_t magnitude[COLUMNS])
{
    uint32_t equal = 0;
    for (int c = 0; c < COLUMNS; c += LANES) {
        const vector m = magnitude_at(rows, rows->column + r * rows->pitch + c, weight);
        store((int16_t *)magnitude + c, m);
        equal |= (uint32_t)OP(movemask_epi8)(OP(cmpeq_epi16)(m, BITS(setzero)())) << 2 * c;
    }
    return ~equal & 0x55555555u & (UINT32_MAX >> (32 - 2 * rows->columns));
}

/* ---- Sums of products ------------------------------------------------------------------------------------- */

LINEAR_FORM static void fit_weights(const struct tsr_tap_rows *rows, const int16_t *weight, int32_t mean,
                                    int16_t (*fit)[COLUMNS])
{
    const vector none = BITS(setzero)();
    vector limit[TSR_FIT_WEIGHT_LIMIT];
    int limits = 0;
    for (; limits < TSR_FIT_WEIGHT_LIMIT && tsr_fit_magnitude(limits + 1, mean) >= 0; limits++)
        limit[limits] = OP(set1_epi16)((int16_t)(uint16_t)tsr_min(UINT16_MAX, tsr_fit_magnitude(limits + 1, mean)));
    for (int32_t r = 0; r < rows->rows; r++)
        for (int c = 0; c < COLUMNS; c += LANES) {
            const ptrdiff_t at = rows->column + r * rows->pitch + c;
            const vector magnitude = magnitude_at(rows, at, weight);
            vector sum = none;
            for (int i = 0; i < limits; i++)
                sum = OP(sub_epi16)(sum, OP(cmpeq_epi16)(OP(subs_epu16)(magnitude, limit[i]), none));
            store(fit[r] + c, BITS(and)(sum, mask_of(rows->columns, c)));
        }
}

/* Saturating to 16 bits first changes nothing: the shift is at most 3, and the limit 1023. */
LINEAR_FORM static void differences(const struct tsr_tap_rows *rows, const int16_t *const *first,
                                    const int16_t *const *second, int count, int shift, const int16_t (*fit)[COLUMNS],
                                    int16_t (*difference)[256], int16_t (*weighted)[256], int at)
{
    const vector most = OP(set1_epi16)(TSR_DIFFERENCE_LIMIT), least = OP(set1_epi16)(-TSR_DIFFERENCE_LIMIT);
    const __m128i count_of_bits = _mm_cvtsi32_si128(shift);
    for (int f = 0; f < count; f++) {
        const int16_t *a = first[f] + rows->column, *b = second[f] + rows->column;
        int16_t *to = difference[f] + at, *times_fit = weighted[f] + at;
        for (int32_t r = 0; r < rows->rows; r++, a += rows->pitch, b += rows->pitch)
            for (int c = 0; c < COLUMNS; c += LANES) {
                vector d = OP(sra_epi16)(OP(subs_epi16)(load(a + c), load(b + c)), count_of_bits);
                d = OP(max_epi16)(least, OP(min_epi16)(most, d));
                store(to + r * COLUMNS + c, d);
                store(times_fit + r * COLUMNS + c, OP(mullo_epi16)(d, load(fit[r] + c)));
            }
    }
}

/* The sums of row i that begin at column j, at most four, up to the diagonal. */
LINEAR_INLINE void put_sums(int32_t *sums, int i, int j, const vector sum[4])
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

/* 2 x 4 sums at once in registers. They are too few for the latency of vpdpwssd. */
LINEAR_FORM static void products(const int16_t (*weighted)[256], const int16_t (*difference)[256], int n, int samples,
                                 int32_t *sums)
{
    for (int i = 0; i < n; i += 2) {
        const int next = tsr_min(i + 1, n - 1);
        for (int j = 0; j <= next; j += 4) {
            const int16_t *of[4];
            vector sum[2][4];
            for (int k = 0; k < 4; k++) {
                of[k] = difference[tsr_min(j + k, n - 1)];
                sum[0][k] = sum[1][k] = BITS(setzero)();
            }
            for (int s = 0; s < samples; s += LANES) {
                const vector a = load(weighted[i] + s), b = load(weighted[next] + s);
                for (int k = 0; k < 4; k++) {
                    vector d = load(of[k] + s);
                    HERE(d);
                    sum[0][k] = OP(add_epi32)(sum[0][k], OP(madd_epi16)(a, d));
                    sum[1][k] = OP(add_epi32)(sum[1][k], OP(madd_epi16)(b, d));
                }
            }
            if (j <= i) put_sums(sums, i, j, sum[0]);
            if (next > i) put_sums(sums, next, j, sum[1]);
        }
    }
}

#define LINEAR_OPS                                                                                   \
    {                                                                                                \
        predict, predict_finely, costs, median_costs, magnitudes, fit_weights, differences, products \
    }
