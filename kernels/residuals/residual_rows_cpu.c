/* The residuals of a tile, row by row; see the header. */
#include "residual_forms_cpu.h"

#include <string.h>

#include "transform/predict/anchor.h"
#include "transform/predict/median_edge.h"
#include "transform/predict/residual.h"

/* The rows below hold 16-bit numbers, and samples less 2^15: so one vector instruction takes as many samples as it can,
 * and signed comparisons order them. Every sample is known, so the columns are independent. Guard columns stand on both
 * sides: 2 are used on the left and 1 on the right. After those stand MARGIN columns more: whole blocks are predicted,
 * and what comes after takes up to 64 columns at once. */
enum { BIAS = TSR_SAMPLE_BIAS, GUARD = 8, MARGIN = 64, ROWS = 9 };

static size_t pitch_of(int32_t width)
{
    return (size_t)width + 2 * GUARD + MARGIN;
}

size_t tsr_residual_rows_bytes(int32_t tile_width)
{
    return (ROWS * pitch_of(tile_width) * sizeof(int16_t) + 63) / 64 * 64; /* what follows is aligned */
}

struct tsr_residual_rows tsr_residual_rows(const uint16_t *samples, struct tsr_tile tile, uint32_t range,
                                           const struct tsr_tile_predictors *predictors, void *scratch)
{
    struct tsr_residual_rows r = {.samples = samples, .tile = tile, .range = range, .predictors = predictors};
    int16_t *row[ROWS];
    memset(scratch, 0, tsr_residual_rows_bytes(tile.width));
    for (size_t i = 0; i < ROWS; i++) row[i] = (int16_t *)scratch + GUARD + i * pitch_of(tile.width);
    for (int i = 0; i < 2; i++) r.sample[i] = row[i];
    for (int i = 0; i < 3; i++) r.magnitude[i] = row[2 + i];
    r.prediction = row[5];
    r.activity = row[6];
    r.folded = (uint16_t *)row[7];
    r.intensity = (uint16_t *)row[8];
    for (int32_t c = -GUARD; c < tile.width + GUARD; c++) r.sample[1][c] = -BIAS; /* above the first row */
    return r;
}

void tsr_skip_to_row(struct tsr_residual_rows *r, int32_t y)
{
    const uint16_t *up = r->samples + r->tile.first + (size_t)(y - 1) * r->tile.stride;
    int16_t *row = r->sample[(y - 1) & 1];
    for (int32_t c = 0; c < r->tile.width; c++) row[c] = (int16_t)(up[c] ^ BIAS);
    row[-1] = y > 1 ? (int16_t)(up[-(ptrdiff_t)r->tile.stride] ^ BIAS) : (int16_t)-BIAS;
    r->y = y;
}

/* tsr_median_edge in 16 bits. With NW between W and N, W + N - NW lies between them, too, and is the median: it may
 * wrap on its way. */
static void predict(const uint16_t *restrict samples, const int16_t *restrict up, int32_t width, int16_t *restrict row,
                    int16_t *restrict prediction)
{
    for (int32_t c = 0; c < width; c++) row[c] = (int16_t)(samples[c] ^ BIAS);
    for (int32_t c = 0; c < width; c++) {
        const int16_t w = row[c - 1], n = up[c], nw = up[c - 1];
        const int16_t low = w < n ? w : n, high = w < n ? n : w;
        const int16_t raised = nw < low ? low : nw, between = raised > high ? high : raised;
        prediction[c] = (int16_t)((uint16_t)w + (uint16_t)n - (uint16_t)between);
    }
}

/* tsr_residual. Ranges up to 2^15 need no more than 16 bits, and a range of 2^16 is that of 16-bit arithmetic itself.
 */
static void residual_row(const int16_t *restrict row, const int16_t *restrict prediction, int32_t width, int32_t range,
                         int16_t *restrict residual)
{
    if (range > BIAS && range < 2 * BIAS) {
        for (int32_t c = 0; c < width; c++) residual[c] = (int16_t)tsr_residual(row[c], prediction[c], range);
        return;
    }
    const int16_t lowest = (int16_t) - (range / 2), highest = (int16_t)((range - 1) / 2);
    const uint16_t modulus = (uint16_t)range;
    for (int32_t c = 0; c < width; c++) {
        const int16_t r = (int16_t)((uint16_t)row[c] - (uint16_t)prediction[c]);
        const uint16_t up = r < lowest ? modulus : 0, down = r > highest ? modulus : 0;
        residual[c] = (int16_t)((uint16_t)r + up - down);
    }
}

/* tsr_residual, tsr_context_magnitude, tsr_fold and the intensity bin. */
static void describe(const int16_t *restrict row, const int16_t *restrict prediction, int32_t width, int32_t range,
                     int16_t *restrict magnitude, uint16_t *restrict folded, uint16_t *restrict intensity)
{
    const int shift = tsr_intensity_shift((uint32_t)range);
    residual_row(row, prediction, width, range, magnitude);
    for (int32_t c = 0; c < width; c++) {
        const int16_t r = magnitude[c], most = TSR_MAGNITUDE_LIMIT;
        const int16_t capped = r < -most ? (int16_t)-most : r > most ? most : r;
        magnitude[c] = capped < 0 ? (int16_t)-capped : capped;
        folded[c] = (uint16_t)(((uint32_t)(uint16_t)r << 1) ^ (r < 0 ? 0xffffu : 0u));
        intensity[c] = (uint16_t)((uint16_t)(prediction[c] ^ BIAS) >> shift);
    }
}

/* FORMAT.md 7.10. All steps are those of samples as of samples less 2^15. */
static void anchor(const int16_t *restrict row, const int16_t *restrict up, const int16_t *restrict prediction,
                   const int16_t *restrict fraction, int32_t width, int32_t range, int16_t *restrict magnitude,
                   uint16_t *restrict folded, uint16_t *restrict bin)
{
    for (int32_t c = 0; c < width; c++) {
        const int32_t w = row[c - 1], n = up[c], ne = up[c + 1];
        const struct tsr_anchor a = tsr_choose_anchor(prediction[c], fraction[c], w, n, up[c - 1], ne);
        magnitude[c] = (int16_t)tsr_context_magnitude(row[c] - prediction[c]);
        folded[c] = (uint16_t)tsr_fold(tsr_anchored_residual(a, row[c], range));
        bin[c] = (uint16_t)tsr_anchor_bin(a.step, w, n, ne);
    }
}

static void activity(const int16_t *restrict row, const int16_t *restrict up, const int16_t *restrict up2,
                     int32_t width, bool first, int16_t *restrict out)
{
    static_assert(8 * TSR_MAGNITUDE_LIMIT <= INT16_MAX, "an activity has 16 bits");
    if (first)
        for (int32_t c = 0; c < width; c++) out[c] = (int16_t)tsr_activity_first_row(row[c - 1], row[c - 2]);
    else
        for (int32_t c = 0; c < width; c++)
            out[c] = (int16_t)tsr_activity(row[c - 1], up[c], up[c - 1], up[c + 1], row[c - 2], up2[c]);
}

const struct tsr_residual_forms *tsr_residual_forms(enum tsr_isa isa)
{
    static const struct tsr_residual_forms plain = {predict, describe, anchor, activity};
#if TSR_HAS_VECTOR_FORMS
    if (isa >= TSR_ISA_AVX2) return &tsr_residual_forms_avx2;
#endif
    (void)isa;
    return &plain;
}

/* Predictions of the row's blocks that name a linear predictor. fraction: NULL, or room for theirs. */
static void predict_blocks(const struct tsr_tile_predictors *p, int32_t y, int32_t width, uint32_t range,
                           int16_t *prediction, int16_t *fraction)
{
    const int16_t *tap[TSR_TAPS_LIMIT];
    const struct tsr_predictor_shape shape = p->model->shape;
    const uint8_t *label = p->label + (ptrdiff_t)(y / TSR_PREDICTOR_BLOCK) * tsr_blocks_across(width);
    const int16_t highest = (int16_t)((int32_t)range - 1 - BIAS);
    tsr_tap_row(shape, &p->tile.own, p->tile.earlier, y, tap);
    for (int32_t c = 0; c < width; c += TSR_PREDICTOR_BLOCK, label++) {
        if (*label >= p->model->classes) continue;
        const int16_t *const weight = p->model->weight[*label];
        if (fraction)
            p->ops->predict_finely(tap, tsr_taps(shape), weight, c, highest, prediction + c, fraction + c);
        else
            p->ops->predict(tap, tsr_taps(shape), weight, c, highest, prediction + c);
    }
}

/* ---- A row ------------------------------------------------------------------------------------------------- */

void tsr_next_row(struct tsr_residual_rows *r)
{
    const int32_t y = r->y, w = r->tile.width, range = (int32_t)r->range;
    const struct tsr_residual_forms *forms = tsr_residual_forms(tsr_isa());
    int16_t *row = r->sample[y & 1], *up = r->sample[~y & 1];
    int16_t *mag = r->magnitude[y % 3], *mag_up = r->magnitude[(y + 2) % 3];
    const int16_t *mag_up2 = y > 1 ? r->magnitude[(y + 1) % 3] : mag_up; /* in row 1, N stands for NN */
    row[-1] = up[0];
    forms->predict(r->samples + r->tile.first + (size_t)y * r->tile.stride, up, w, row, r->prediction);
    const bool anchored = r->predictors && r->predictors->model->anchored;
    int16_t *const fraction = anchored ? r->activity : NULL; /* until the activities are known */
    if (anchored) memset(fraction, 0, (size_t)w * sizeof *fraction);
    if (r->predictors && y > 0) predict_blocks(r->predictors, y, w, r->range, r->prediction, fraction);
    if (anchored) {
        up[w] = up[w - 1];
        if (y == 1) up[-1] = up[0];
        forms->anchor(row, up, r->prediction, fraction, w, range, mag, r->folded, r->intensity);
    } else {
        forms->describe(row, r->prediction, w, range, mag, r->folded, r->intensity);
    }
    mag[-1] = mag[-2] = mag_up[0];
    mag[w] = mag[w - 1];
    forms->activity(mag, mag_up, mag_up2, w, y == 0, r->activity);
    r->y++;
}
