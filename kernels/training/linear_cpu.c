/* Linear predictors on the CPU in plain C, and the choice of their form; see the header. */
#include "linear_cpu.h"

#include <string.h>

#include "entropy/predictor_training.h"
#include "transform/predict/anchor.h"
#include "transform/predict/median_edge.h"

enum { BIAS = TSR_SAMPLE_BIAS, COLUMNS = 16, FIT_WEIGHTS = 64, TAP_ROWS = 4 /* the most that a tap lies above */ };

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

void tsr_tap_rows(struct tsr_predictor_shape shape, const struct tsr_padded_tile *tile,
                  const struct tsr_padded_tile *earlier, int32_t y, int32_t end, struct tsr_tap_rows *rows)
{
    const bool ends_tile = shape.references > 0 && end == tile->height && y + 1 < end; /* its last row has no S */
    tsr_tap_row(shape, tile, earlier, y, rows->tap);
    rows->taps = tsr_taps(shape);
    rows->samples = tile->first + y * tile->pitch;
    rows->pitch = tile->pitch;
    rows->rows = y < TAP_ROWS ? 1 : end - y - ends_tile;
}

static void sum_taps(const int16_t *const *tap, int taps, const int16_t *weight, int32_t column, int32_t sum[COLUMNS])
{
    memset(sum, 0, COLUMNS * sizeof *sum);
    for (int k = 0; k < taps; k++)
        for (int c = 0; c < COLUMNS; c++) sum[c] += (int32_t)weight[k] * tap[k][column + c];
}

static void predict(const int16_t *const *tap, int taps, const int16_t *weight, int32_t column, int16_t highest,
                    int16_t prediction[COLUMNS])
{
    int32_t sum[COLUMNS];
    sum_taps(tap, taps, weight, column, sum);
    for (int c = 0; c < COLUMNS; c++)
        prediction[c] = (int16_t)(tsr_linear_prediction(sum[c], highest + BIAS + 1) - BIAS);
}

static void predict_finely(const int16_t *const *tap, int taps, const int16_t *weight, int32_t column, int16_t highest,
                           int16_t prediction[COLUMNS], int16_t fraction[COLUMNS])
{
    const int32_t range = highest + BIAS + 1;
    int32_t sum[COLUMNS];
    sum_taps(tap, taps, weight, column, sum);
    for (int c = 0; c < COLUMNS; c++) {
        prediction[c] = (int16_t)(tsr_linear_prediction(sum[c], range) - BIAS);
        fraction[c] = (int16_t)tsr_prediction_fraction(sum[c] + TSR_WEIGHT_HALF, range);
    }
}

static void costs(const struct tsr_tap_rows *rows, uint32_t which, const int16_t *const *weight, int count,
                  uint32_t *cost)
{
    for (int32_t r = 0; r < rows->rows; r++) {
        if ((which >> r & 1) == 0) continue;
        const int32_t at = rows->column + (int32_t)(r * rows->pitch);
        for (int i = 0; i < count; i++) {
            int16_t prediction[COLUMNS];
            predict(rows->tap, rows->taps, weight[i], at, rows->highest, prediction);
            for (int32_t c = 0; c < rows->columns; c++)
                cost[i] += (uint32_t)tsr_min(tsr_abs(rows->samples[at + c] - prediction[c]), TSR_COST_MOST);
        }
    }
}

static void predict_edges(const struct tsr_tap_rows *rows, int32_t at, int16_t prediction[COLUMNS])
{
    const int16_t *row = rows->samples + at, *up = row - rows->pitch;
    for (int c = 0; c < COLUMNS; c++) prediction[c] = (int16_t)tsr_median_edge(row[c - 1], up[c], up[c - 1]);
}

static void median_costs(const struct tsr_tap_rows *rows, uint32_t *cost, int32_t *zeros)
{
    for (int32_t r = 0; r < rows->rows; r++) {
        const int32_t at = rows->column + (int32_t)(r * rows->pitch);
        int16_t prediction[COLUMNS];
        predict_edges(rows, at, prediction);
        for (int32_t c = 0; c < rows->columns; c++) {
            const int32_t magnitude = tsr_abs(rows->samples[at + c] - prediction[c]);
            *cost += (uint32_t)tsr_min(magnitude, TSR_COST_MOST);
            *zeros += magnitude == 0;
        }
    }
}

static uint32_t magnitudes(const struct tsr_tap_rows *rows, int32_t r, const int16_t *weight,
                           uint16_t magnitude[COLUMNS])
{
    const int32_t at = rows->column + (int32_t)(r * rows->pitch);
    int16_t prediction[COLUMNS];
    uint32_t differ = 0;
    if (weight)
        predict(rows->tap, rows->taps, weight, at, rows->highest, prediction);
    else
        predict_edges(rows, at, prediction);
    for (int c = 0; c < COLUMNS; c++) {
        magnitude[c] = (uint16_t)tsr_abs(rows->samples[at + c] - prediction[c]);
        if (c < rows->columns) differ |= (uint32_t)(magnitude[c] != 0) << 2 * c;
    }
    return differ;
}

static void fit_weights(const struct tsr_tap_rows *rows, const int16_t *weight, int32_t mean, int16_t (*fit)[COLUMNS])
{
    int16_t of_magnitude[FIT_WEIGHTS]; /* divisions take their time */
    for (int m = 0; m < FIT_WEIGHTS; m++) of_magnitude[m] = (int16_t)tsr_fit_weight(m, mean);
    for (int32_t r = 0; r < rows->rows; r++) {
        uint16_t magnitude[COLUMNS];
        (void)magnitudes(rows, r, weight, magnitude);
        memset(fit[r], 0, sizeof fit[r]);
        for (int32_t c = 0; c < rows->columns; c++)
            fit[r][c] =
                magnitude[c] < FIT_WEIGHTS ? of_magnitude[magnitude[c]] : (int16_t)tsr_fit_weight(magnitude[c], mean);
    }
}

static void differences(const struct tsr_tap_rows *rows, const int16_t *const *first, const int16_t *const *second,
                        int count, int shift, const int16_t (*fit)[COLUMNS], int16_t (*difference)[256],
                        int16_t (*weighted)[256], int at)
{
    for (int f = 0; f < count; f++)
        for (int32_t r = 0; r < rows->rows; r++) {
            const ptrdiff_t from = rows->column + r * rows->pitch;
            for (int c = 0; c < COLUMNS; c++) {
                const int32_t d = tsr_difference(first[f][from + c] - second[f][from + c], shift);
                difference[f][at + r * COLUMNS + c] = (int16_t)d;
                weighted[f][at + r * COLUMNS + c] = (int16_t)(d * fit[r][c]);
            }
        }
}

static void products(const int16_t (*weighted)[256], const int16_t (*difference)[256], int n, int samples,
                     int32_t *sums)
{
    for (int i = 0; i < n; i++)
        for (int j = 0; j <= i; j++) {
            int32_t sum = 0;
            for (int s = 0; s < samples; s++) sum += (int32_t)weighted[i][s] * difference[j][s];
            *sums++ = sum;
        }
}

const struct tsr_linear_ops tsr_linear_plain = {predict,    predict_finely, costs,       median_costs,
                                                magnitudes, fit_weights,    differences, products};

const struct tsr_linear_ops *tsr_linear_ops(enum tsr_isa isa)
{
#if TSR_HAS_VECTOR_FORMS
    if (isa >= TSR_ISA_AVX512) return &tsr_linear_avx512;
    if (isa >= TSR_ISA_AVX2) return &tsr_linear_avx2;
#endif
    (void)isa;
#if defined(__SSE2__)
    return &tsr_linear_sse2;
#else
    return &tsr_linear_plain;
#endif
}
