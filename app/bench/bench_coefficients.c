/* Makes coefficients of pictures, in the mix of a GOP. The first frame of a film, stills, and one macroblock in ten of
 * the other frames are predicted within the frame; the rest are predicted from the frame before.
 *
 *   Intra16x16   smooth macroblocks: the mean of the samples around the macroblock; DCs are coded elsewhere
 *   Intra4x4     other macroblocks: the mean of the samples around each block (H.264's DC prediction)
 *   inter        the frame before, moved as drawn pictures move; for one macroblock in three by a sample too much, as
 *                if a search had found nothing better
 *
 * Predictions come from the original, since nothing is reconstructed here: at high QP, residuals are a little smaller
 * than an encoder's. Then follow the core transform and the quantiser of the product (transform/), with dead zones of
 * 1/3 and 1/6 as in H.264's reference encoder, and magnitudes up to the largest that the papers' 16-bit coefficients
 * can code. */
#include <stdlib.h>
#include <string.h>

#include "transform/block/core4x4.h"
#include "bench_coefficients.h"

enum { MB_SIDE = 16, SLICES = 4, SMOOTH = 3 * MB_SIDE * MB_SIDE, ROUND_INTER = 65536 / 6 };

struct making {
    const struct bench_pictures *pictures;
    struct bench_coefficients *coefficients;
    int qp;
};

/* A sample of a frame; outside the frame, the nearest sample. */
static int sample(const struct bench_pictures *p, uint32_t frame, int x, int y)
{
    x = x < 0 ? 0 : x >= (int)p->columns ? (int)p->columns - 1 : x;
    y = y < 0 ? 0 : y >= (int)p->rows ? (int)p->rows - 1 : y;
    return p->luma[((size_t)frame * p->rows + (size_t)y) * p->columns + (size_t)x];
}

/* The mean of the samples above and to the left of a square; 128 for the first square of a picture. */
static int mean_around(const struct bench_pictures *p, uint32_t frame, int x, int y, int side)
{
    int sum = 0, count = 0;
    for (int i = 0; i < side && y > 0; i++, count++) sum += sample(p, frame, x + i, y - 1);
    for (int i = 0; i < side && x > 0; i++, count++) sum += sample(p, frame, x - 1, y + i);
    return count ? (sum + count / 2) / count : 128;
}

static bool is_smooth(const struct bench_pictures *p, uint32_t frame, int x, int y)
{
    int sum = 0, deviation = 0;
    for (int i = 0; i < MB_SIDE * MB_SIDE; i++) sum += sample(p, frame, x + i % MB_SIDE, y + i / MB_SIDE);
    for (int i = 0; i < MB_SIDE * MB_SIDE; i++)
        deviation += abs(sample(p, frame, x + i % MB_SIDE, y + i / MB_SIDE) - sum / (MB_SIDE * MB_SIDE));
    return deviation < SMOOTH;
}

/* How a macroblock is predicted. */
struct prediction {
    uint32_t frame;
    int left, top, miss; /* miss: samples that the search is wrong by */
    bool intra, smooth;
    int mean; /* smooth: of the samples around the macroblock */
};

static struct prediction predict(const struct making *m, size_t mb)
{
    const struct bench_pictures *p = m->pictures;
    const struct bench_coefficients *c = m->coefficients;
    const uint64_t chance = bench_random(6, mb);
    struct prediction prediction = {.frame = (uint32_t)(mb / c->mb_columns / c->mb_rows),
                                    .left = (int)(mb % c->mb_columns) * MB_SIDE,
                                    .top = (int)(mb / c->mb_columns % c->mb_rows) * MB_SIDE,
                                    .miss = chance / 16 % 3 == 0};
    prediction.intra = prediction.frame == 0 || !p->moves || chance % 10 == 0;
    prediction.smooth = prediction.intra && is_smooth(p, prediction.frame, prediction.left, prediction.top);
    if (prediction.smooth) prediction.mean = mean_around(p, prediction.frame, prediction.left, prediction.top, MB_SIDE);
    return prediction;
}

/* What remains of block b of a macroblock's samples. */
static void residual_of(const struct making *m, const struct prediction *prediction, int b, int32_t block[16])
{
    const struct bench_pictures *p = m->pictures;
    const uint32_t frame = prediction->frame;
    const int x = prediction->left + b % 4 * 4, y = prediction->top + b / 4 * 4;
    const int around = prediction->smooth ? prediction->mean : prediction->intra ? mean_around(p, frame, x, y, 4) : 0;
    for (int i = 0; i < 16; i++) {
        const int u = x + i % 4, v = y + i / 4;
        block[i] = sample(p, frame, u, v) -
                   (prediction->intra ? around : sample(p, frame - 1, u + 2 + prediction->miss, v + 1));
    }
}

static int16_t quantise(const struct making *m, const struct prediction *prediction, int32_t value, int place)
{
    const int rounding = prediction->intra ? TSR_ROUND_AC : ROUND_INTER;
    const int32_t coefficient =
        tsr_quantise(value, m->qp * TSR_QP_UNIT, tsr_norm_class(place / 4, place % 4), rounding);
    return (int16_t)tsr_max(-TSR_CAVLC_PAPER_LIMIT, tsr_min(TSR_CAVLC_PAPER_LIMIT, coefficient));
}

static void code_macroblock(const struct making *m, size_t mb)
{
    const struct prediction prediction = predict(m, mb);
    const uint32_t mb_row = (uint32_t)(mb / m->coefficients->mb_columns % m->coefficients->mb_rows);
    m->coefficients->mb_flags[mb] = prediction.smooth ? TSR_MB_INTRA16X16 : 0;
    m->coefficients->mb_slices[mb] = (uint16_t)(mb_row * SLICES / m->coefficients->mb_rows);
    for (int b = 0; b < TSR_MB_BLOCKS; b++) {
        int16_t *coefficients = m->coefficients->values + (mb * TSR_MB_BLOCKS + (size_t)b) * 16;
        int32_t block[16];
        residual_of(m, &prediction, b, block);
        tsr_core_forward(block);
        for (int i = 0; i < 16; i++) coefficients[i] = quantise(m, &prediction, block[i], i);
        if (prediction.smooth) coefficients[0] = 0;
    }
}

static void code_row(void *context, unsigned index)
{
    const struct making *m = context;
    for (uint32_t column = 0; column < m->coefficients->mb_columns; column++)
        code_macroblock(m, (size_t)index * m->coefficients->mb_columns + column);
}

struct bench_coefficients bench_make_coefficients(struct bench *bench, const struct bench_pictures *pictures, int qp)
{
    struct bench_coefficients coefficients = {.frames = pictures->frames};
    coefficients.mb_columns = (pictures->columns + MB_SIDE - 1) / MB_SIDE;
    coefficients.mb_rows = (pictures->rows + MB_SIDE - 1) / MB_SIDE;
    const size_t macroblocks = (size_t)coefficients.mb_columns * coefficients.mb_rows * coefficients.frames;
    coefficients.blocks = (uint32_t)(macroblocks * TSR_MB_BLOCKS);
    coefficients.values = bench_take(ON_HOST, (size_t)coefficients.blocks * 16 * sizeof *coefficients.values + 16);
    coefficients.mb_flags = bench_take(ON_HOST, macroblocks);
    coefficients.mb_slices = bench_take(ON_HOST, macroblocks * sizeof *coefficients.mb_slices);
    struct making making = {pictures, &coefficients, qp};
    tsr_pool_run(bench->pool, code_row, &making, coefficients.mb_rows * coefficients.frames);
    return coefficients;
}

void bench_free_coefficients(struct bench_coefficients *coefficients)
{
    bench_give(ON_HOST, coefficients->values);
    bench_give(ON_HOST, coefficients->mb_flags);
    bench_give(ON_HOST, coefficients->mb_slices);
}

/* ---- Distortion ------------------------------------------------------------------------------------------------- */

struct distorting {
    struct making making;
    const int16_t *marked;
    struct bench_distortion *row;
};

static void to_samples(const struct distorting *d, const int16_t *coefficients, int32_t samples[16])
{
    int64_t scaled[16];
    for (int i = 0; i < 16; i++)
        scaled[i] = tsr_dequantise(coefficients[i], d->making.qp * TSR_QP_UNIT, tsr_norm_class(i / 4, i % 4));
    tsr_core_inverse(scaled, samples);
}

static double squared(const int32_t *a, const int32_t *b)
{
    double sum = 0;
    for (int i = 0; i < 16; i++) sum += (double)(a[i] - b[i]) * (a[i] - b[i]);
    return sum;
}

static void distort_block(const struct distorting *d, const struct prediction *prediction, size_t block,
                          struct bench_distortion *sum)
{
    int16_t values[16], marked_values[16];
    int32_t residual[16], transformed[16], plain[16], marked[16];
    residual_of(&d->making, prediction, (int)(block % TSR_MB_BLOCKS), residual);
    memcpy(values, d->making.coefficients->values + block * 16, sizeof values);
    memcpy(marked_values, d->marked + block * 16, sizeof marked_values);
    if (prediction->smooth) { /* the DC, which is coded elsewhere */
        memcpy(transformed, residual, sizeof transformed);
        tsr_core_forward(transformed);
        values[0] = marked_values[0] = quantise(&d->making, prediction, transformed[0], 0);
    }
    to_samples(d, values, plain);
    to_samples(d, marked_values, marked);
    sum->plain += squared(plain, residual);
    sum->marked += squared(marked, residual);
    sum->between += squared(marked, plain);
}

static void distort_row(void *context, unsigned index)
{
    const struct distorting *d = context;
    const size_t columns = d->making.coefficients->mb_columns;
    for (size_t mb = index * columns; mb < (index + 1) * columns; mb++) {
        const struct prediction prediction = predict(&d->making, mb);
        for (size_t b = 0; b < TSR_MB_BLOCKS; b++)
            distort_block(d, &prediction, mb * TSR_MB_BLOCKS + b, &d->row[index]);
    }
}

struct bench_distortion bench_find_distortion(struct bench *bench, const struct bench_pictures *pictures, int qp,
                                              struct bench_coefficients *coefficients, const int16_t *marked)
{
    struct bench_distortion sum = {0, 0, 0};
    const unsigned rows = coefficients->mb_rows * coefficients->frames;
    const double samples = 16.0 * coefficients->blocks;
    struct distorting d = {{pictures, coefficients, qp}, marked, bench_take(ON_HOST, rows * sizeof *d.row)};
    memset(d.row, 0, rows * sizeof *d.row);
    tsr_pool_run(bench->pool, distort_row, &d, rows);
    for (unsigned i = 0; i < rows; i++) {
        sum.plain += d.row[i].plain / samples;
        sum.marked += d.row[i].marked / samples;
        sum.between += d.row[i].between / samples;
    }
    bench_give(ON_HOST, d.row);
    return sum;
}

/* ---- Statistics ------------------------------------------------------------------------------------------------- */

/* Number of a block's coefficients that are not zero. */
static int total_of(const struct bench_coefficients *coefficients, size_t block)
{
    const int16_t *c = coefficients->values + block * 16;
    int total = 0;
    for (int i = coefficients->mb_flags[block / TSR_MB_BLOCKS] & TSR_MB_INTRA16X16 ? 1 : 0; i < 16; i++)
        total += c[i] != 0;
    return total;
}

/* The total of the left or the upper block; -1 if the slice has no such block. */
static int neighbour_total(const struct bench_coefficients *coefficients, const uint8_t *totals, size_t block,
                           bool upper)
{
    const size_t mb = block / TSR_MB_BLOCKS, b = block % TSR_MB_BLOCKS;
    const size_t step = upper ? coefficients->mb_columns : 1, inside = upper ? 4 : 1;
    if (upper ? b >= 4 : b % 4 > 0) return totals[block - inside];
    const size_t place = mb % ((size_t)coefficients->mb_columns * coefficients->mb_rows);
    if (upper ? place < coefficients->mb_columns : place % coefficients->mb_columns == 0) return -1;
    if (coefficients->mb_slices[mb - step] != coefficients->mb_slices[mb]) return -1;
    return totals[(mb - step) * TSR_MB_BLOCKS + b + 3 * inside];
}

static void add_block(const struct bench_coefficients *coefficients, size_t block,
                      struct bench_coefficient_statistics *sum)
{
    const bool without_dc = coefficients->mb_flags[block / TSR_MB_BLOCKS] & TSR_MB_INTRA16X16;
    int seen = 0, zeros = 0, ones = 0;
    bool trailing = true;
    for (int place = 15; place >= (without_dc ? 1 : 0); place--) { /* from the highest frequency down */
        const int coefficient = coefficients->values[block * 16 + (size_t)tsr_zigzag(place)];
        if (coefficient == 0) {
            zeros += seen > 0;
            continue;
        }
        trailing = trailing && abs(coefficient) == 1 && ones < 3;
        ones += trailing;
        seen++;
        if (abs(coefficient) > sum->largest) sum->largest = abs(coefficient);
    }
    sum->total += seen;
    sum->ones += ones;
    sum->zeros += zeros;
    sum->empty += seen == 0;
}

struct counting {
    const struct bench_coefficients *coefficients;
    uint8_t *totals; /* by block */
    struct bench_coefficient_statistics *frame;
};

/* Computes the sums of a frame. No block has a neighbour in another frame. */
static void count_frame(void *context, unsigned index)
{
    const struct counting *c = context;
    const struct bench_coefficients *coefficients = c->coefficients;
    const size_t blocks = coefficients->blocks / coefficients->frames, first = index * blocks;
    struct bench_coefficient_statistics s = {.largest = 0};
    for (size_t b = first; b < first + blocks; b++) c->totals[b] = (uint8_t)total_of(coefficients, b);
    for (size_t b = first; b < first + blocks; b++) {
        const int left = neighbour_total(coefficients, c->totals, b, false),
                  up = neighbour_total(coefficients, c->totals, b, true);
        s.tables[tsr_coeff_token_table(tsr_cavlc_context(left, up))]++;
        add_block(coefficients, b, &s);
    }
    for (size_t mb = first / TSR_MB_BLOCKS; mb < (first + blocks) / TSR_MB_BLOCKS; mb++)
        s.intra16x16 += (coefficients->mb_flags[mb] & TSR_MB_INTRA16X16) != 0;
    c->frame[index] = s;
}

struct bench_coefficient_statistics bench_count_coefficients(struct bench *bench,
                                                             const struct bench_coefficients *coefficients)
{
    struct bench_coefficient_statistics s = {.largest = 0};
    struct counting c = {coefficients, bench_take(ON_HOST, coefficients->blocks),
                         bench_take(ON_HOST, coefficients->frames * sizeof *c.frame)};
    const double blocks = coefficients->blocks;
    tsr_pool_run(bench->pool, count_frame, &c, coefficients->frames);
    for (uint32_t f = 0; f < coefficients->frames; f++) {
        for (int t = 0; t < 4; t++) s.tables[t] += c.frame[f].tables[t] / blocks;
        s.total += c.frame[f].total / blocks;
        s.ones += c.frame[f].ones / blocks;
        s.zeros += c.frame[f].zeros / blocks;
        s.empty += c.frame[f].empty / blocks;
        s.intra16x16 += c.frame[f].intra16x16 / (blocks / TSR_MB_BLOCKS);
        if (c.frame[f].largest > s.largest) s.largest = c.frame[f].largest;
    }
    bench_give(ON_HOST, c.totals);
    bench_give(ON_HOST, c.frame);
    return s;
}
