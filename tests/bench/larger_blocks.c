/* A prototype of path T with larger blocks, prediction and smoothing, for larger_blocks.py and decision 041. It says
 * what a variant would take: transforms in floating point, ideal lengths of adaptive codes in contexts like those of
 * FORMAT.md 8.6, no stream. Each variant has the same coder, the same choice by rate and distortion, and weights of
 * energies by least squares on other frames. */
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { CLASSES = 24, UNARY = 14, MOST = 64, FEATURES = MOST + 3, KINDS = 6, MODES = 15 };
/* Kinds of blocks: 4x4 with and without its DC, 8x8 with all, without its DC, without its low 2x2; 4x4 of the DC plane.
 */
enum { FOUR, FOUR_AC, EIGHT, EIGHT_AC, EIGHT_HIGH, FOUR_OF_DC };
static const int places_of[KINDS] = {16, 15, 64, 63, 60, 16};

struct params {
    double qp, lambda, lambda_lapped, dc_step; /* lambdas in squared steps a bit */
    int lap, dc_plane, size, predict, classes,
        train;    /* size: 4; 8; 48 by squares of 8, 416 by squares of 16, 480 as 48, roughly */
    int lap_half; /* samples on each side of a border of squares of 8 */
    double lap_forward[16], lap_inverse[16]; /* of differences, lap_half x lap_half */
    double weight4[16], weight8[64];         /* of errors in the samples */
};

struct bit {
    float one;
    int seen;
};

struct models {
    struct bit places4[CLASSES][32], places8[CLASSES][16], within8[16][16], magnitude[2][4][CLASSES][UNARY], escape[24];
};

struct coder {
    struct models models[2]; /* of the plane, of its DCs */
    struct bit choice[3], mode[2][3][32], classes[3][14];
    double bits;
};

static float weights[KINDS][MOST][FEATURES]; /* of E[p]: W, N, NW + NE, then the places above p */
static double products[KINDS][MOST][FEATURES][FEATURES], targets[KINDS][MOST][FEATURES];
static float cost_of[4097];
static int scan4[16], scan8[64], scans[KINDS][64];
static float cores[2][2][8][8]; /* of 4, of 8; forward, inverse */

static void zigzag(int side, int *scan)
{
    int at = 0;
    for (int s = 0; s < 2 * side - 1; s++)
        for (int k = 0; k <= s; k++) {
            const int i = s % 2 ? k : s - k, j = s - i;
            if (i < side && j < side) scan[at++] = i * side + j;
        }
}

static void prepare(void)
{
    static const int c4[4][4] = {{1, 1, 1, 1}, {2, 1, -1, -2}, {1, -1, -1, 1}, {1, -2, 2, -1}};
    static const int c8[8][8] = {{8, 8, 8, 8, 8, 8, 8, 8},     {12, 10, 6, 3, -3, -6, -10, -12},
                                 {8, 4, -4, -8, -8, -4, 4, 8}, {10, -3, -12, -6, 6, 12, 3, -10},
                                 {8, -8, -8, 8, 8, -8, -8, 8}, {6, -12, 3, 10, -10, -3, 12, -6},
                                 {4, -8, 8, -4, -4, 8, -8, 4}, {3, -6, 10, -12, 12, -10, 6, -3}};
    if (cost_of[1] > 0) return;
    for (int i = 0; i <= 4096; i++) cost_of[i] = (float)-log2(fmax(i, 0.5) / 4096);
    for (int i = 0; i < 4; i++) {
        double norm = 0;
        for (int j = 0; j < 4; j++) norm += c4[i][j] * c4[i][j];
        for (int j = 0; j < 4; j++) cores[0][0][i][j] = cores[0][1][j][i] = (float)(c4[i][j] / sqrt(norm));
    }
    for (int i = 0; i < 8; i++) {
        double norm = 0;
        for (int j = 0; j < 8; j++) norm += c8[i][j] * c8[i][j];
        for (int j = 0; j < 8; j++) cores[1][0][i][j] = cores[1][1][j][i] = (float)(c8[i][j] / sqrt(norm));
    }
    zigzag(4, scan4);
    zigzag(8, scan8);
    for (int kind = 0; kind < KINDS; kind++) {
        const int eight = kind >= EIGHT && kind <= EIGHT_HIGH, *scan = eight ? scan8 : scan4;
        for (int i = 0, n = 0; i < (eight ? 64 : 16); i++) {
            const int r = scan[i], low = r % 8 < 2 && r < 16;
            if ((kind == FOUR_AC || kind == EIGHT_AC) && r == 0) continue;
            if (kind == EIGHT_HIGH && low) continue;
            scans[kind][n++] = r;
        }
    }
}

/* ---- Adaptive codes ---------------------------------------------------------------------------------------- */

static float cost(const struct bit *b, int value)
{
    const float p = value ? b->one : 1 - b->one;
    return cost_of[(int)(p * 4096 + 0.5f)];
}

static float put(struct bit *b, int value, int commit)
{
    const float c = cost(b, value);
    if (commit) {
        b->one += ((float)value - b->one) / ((float)b->seen + 1.6f);
        b->one = fminf(fmaxf(b->one, 1.0f / 2048), 2047.0f / 2048);
        if (b->seen < 400) b->seen++;
    }
    return c;
}

static float put_tree(struct bit *nodes, int bits, int value, int commit)
{
    float sum = 0;
    for (int at = 1, i = bits - 1; i >= 0; i--) {
        const int bit = value >> i & 1;
        sum += put(nodes + at, bit, commit);
        at = 2 * at + bit;
    }
    return sum;
}

static float put_unary(struct models *m, struct bit *bins, int value, int commit)
{
    float sum = 0;
    for (int i = 0; i < UNARY; i++) {
        sum += put(bins + i, value > i, commit);
        if (value <= i) return sum;
    }
    int rest = value - UNARY + 1, log = 0;
    while (rest >> (log + 1)) log++;
    for (int i = 0; i < log; i++) sum += put(m->escape + i, 1, commit);
    return sum + put(m->escape + log, 0, commit) + (float)log;
}

static void fresh(struct bit *b, size_t bytes)
{
    for (size_t i = 0; i < bytes / sizeof *b; i++) b[i] = (struct bit){0.5f, 0};
}

/* ---- Blocks ------------------------------------------------------------------------------------------------ */

static int class_of(float energy)
{
    const int c = (int)(2 * log2f(1 + 16 * energy));
    return c < CLASSES ? c : CLASSES - 1;
}

static float seen(int level)
{
    return (float)(abs(level) < 255 ? abs(level) : 255);
}

static const int bucket_from[15] = {0, 1, 2, 3, 4, 5, 7, 9, 13, 17, 25, 33, 41, 49, 65};

static float put_places(struct models *m, int eight, int block_class, int places, int commit)
{
    if (!eight) return put_tree(m->places4[block_class], 5, places, commit);
    int b = 0;
    while (bucket_from[b + 1] <= places) b++;
    const int room = bucket_from[b + 1] - bucket_from[b], bits = room > 8 ? 4 : room > 4 ? 3 : room > 2 ? 2 : room > 1;
    return put_tree(m->places8[block_class], 4, b, commit) +
           put_tree(m->within8[b], bits, places - bucket_from[b], commit);
}

/* Of the magnitude at a place; dc: whether place 0 is a DC that is coded beside. */
static float put_magnitude(struct models *m, int eight, int p, int last, int dc, int energy_class, int magnitude,
                           int commit)
{
    const int group = p == last ? (dc && p == 0 ? 3 : 1) : dc && p == 0 ? 2 : 0;
    return put_unary(m, m->magnitude[eight][group][energy_class], magnitude - (p == last), commit) + (magnitude > 0);
}

struct block {
    struct models *models;
    int kind, n, eight, dc, block_class, lapped;
    float base[MOST], near[MOST][3]; /* energies by neighbours */
};

static void energies(const struct block *b, const int *level, float energy[MOST])
{
    memcpy(energy, b->base, sizeof b->base);
    for (int k = 1; k < b->n; k++)
        if (level[k])
            for (int p = 0; p < k; p++) energy[p] += seen(level[k]) * weights[b->kind][p][3 + k];
}

static void learn(const struct block *b, const int *level, const float *energy, int last)
{
    for (int p = 0; p <= last; p++) {
        float f[FEATURES];
        int at[FEATURES], count = 0;
        for (int i = 0; i < 3; i++)
            if (b->near[p][i] > 0) f[count] = b->near[p][i], at[count++] = i;
        for (int k = p + 1; k <= last; k++)
            if (level[k]) f[count] = seen(level[k]), at[count++] = 3 + k;
        const double w = 1 / ((energy[p] + 0.2) * (energy[p] + 0.2));
        for (int i = 0; i < count; i++) {
            targets[b->kind][p][at[i]] += w * f[i] * seen(level[p]);
            for (int j = 0; j < count; j++) products[b->kind][p][at[i]][at[j]] += w * f[i] * f[j];
        }
    }
}

static float code(const struct block *b, const int *level, int commit, int train)
{
    float energy[MOST], sum;
    int last = b->n - 1;
    while (last >= 0 && !level[last]) last--;
    sum = put_places(b->models, b->eight, b->block_class, last + 1, commit);
    energies(b, level, energy);
    for (int p = last; p >= 0; p--)
        sum += put_magnitude(b->models, b->eight, p, last, b->dc, class_of(energy[p]), abs(level[p]), commit);
    if (train && commit) learn(b, level, energy, last);
    return sum;
}

/* The choice of entropy/rate_distortion.h: the nearest, one less or 0 at each place, and the best last place, by what
 * they cost in contexts of plain rounding, then in those of the first choice. */
static void choose(const struct block *b, const float *units, const double *weight, double lambda, int *level)
{
    const int first = b->dc;
    int end_of = b->n;
    for (int p = 0; p < b->n; p++) level[p] = (int)(fabsf(units[p]) + 0.5f);
    while (end_of > first && !level[end_of - 1]) end_of--;
    for (int turn = 0; turn < 2; turn++) {
        float energy[MOST];
        int below_level[MOST], last_level[MOST], last = first - 1;
        energies(b, level, energy);
        const int none = first && level[0] ? 1 : 0;
        double below = 0, least = lambda * put_places(b->models, b->eight, b->block_class, none, 0);
        for (int p = first; p < end_of; p++) {
            const double u = fabsf(units[p]), zero = u * u * weight[p];
            const int nearest = (int)(u + 0.5), down = nearest > 2 ? nearest - 1 : 0;
            const int c_of = class_of(energy[p]);
            double here = 1e30, end = 1e30;
            for (int m = nearest; m >= down; m--) {
                const double e = (u - m) * (u - m) * weight[p] - zero;
                const double c = e + lambda * put_magnitude(b->models, b->eight, p, MOST, b->dc, c_of, m, 0);
                if (c < here) here = c, below_level[p] = m;
                if (m == 0) break;
                const double d = e + lambda * put_magnitude(b->models, b->eight, p, p, b->dc, c_of, m, 0);
                if (d < end) end = d, last_level[p] = m;
            }
            const double total =
                nearest ? below + end + lambda * put_places(b->models, b->eight, b->block_class, p + 1, 0) : 1e30;
            if (total < least) least = total, last = p;
            below += here;
        }
        for (int p = first; p < end_of; p++) level[p] = p < last ? below_level[p] : p == last ? last_level[p] : 0;
    }
    for (int p = 0; p < b->n; p++)
        if (units[p] < 0) level[p] = -level[p];
}

/* ---- Planes ------------------------------------------------------------------------------------------------ */

struct plane {
    const struct params *params;
    struct coder *coder;
    int columns, rows, level; /* level 1: the DCs of another plane */
    double step, lambda;      /* lambda in squared samples a bit */
    double dc_weight;         /* what an error of it weighs in the samples */
    float *value, *out, *cells, *dc, *dc_out;
    const uint8_t *class_of_square;
    uint8_t *is_eight;
    const uint8_t *lapped;  /* of squares of 16, or null: as the parameters say */
    double *cost_of_square; /* of squares of 16, or null */
};

static const double class_ratio[7] = {0.5, 0.62890625, 0.79296875, 1, 1.26171875, 1.5859375, 2};

static double step_at(const struct plane *t, int y, int x)
{
    return t->class_of_square ? t->step * class_ratio[t->class_of_square[y / 16 * (t->columns / 16) + x / 16]]
                              : t->step;
}

static int is_lapped(const struct plane *t, int square_y, int square_x)
{
    if (t->lapped) return t->lapped[square_y * (t->columns / 16) + square_x];
    return t->params->lap && !t->params->predict;
}

static const float no_cell[16];

static const float *cell(const struct plane *t, int y, int x, int from_y, int from_x)
{
    const int columns = t->columns / 4;
    (void)from_x;
    if (y < 0 || x < 0 || x >= columns || y > from_y) return no_cell;
    return t->cells + 16 * ((size_t)y * columns + x);
}

/* Energies by neighbours of a block at cell y, x. right: whether what is right above is coded. */
static void look(const struct plane *t, struct block *b, int kind, int y, int x, int right)
{
    b->models = &t->coder->models[t->level];
    b->kind = kind;
    b->n = places_of[kind];
    b->eight = kind >= EIGHT && kind <= EIGHT_HIGH;
    b->dc = (kind == FOUR || kind == EIGHT || kind == FOUR_OF_DC) && !t->params->predict;
    b->lapped = is_lapped(t, y / 4, x / 4);
    const int side = b->eight ? 2 : 1;
    const float *w = cell(t, y, x - 1, y, x), *w2 = b->eight ? cell(t, y + 1, x - 1, y + 1, x) : w;
    const float *n = cell(t, y - 1, x, y, x), *n2 = b->eight ? cell(t, y - 1, x + 1, y, x) : n;
    const float *nw = cell(t, y - 1, x - 1, y, x), *ne = right ? cell(t, y - 1, x + side, y, x) : n2;
    float sum = 0;
    for (int p = 0; p < b->n; p++) {
        const int r = scans[kind][p], at = b->eight ? (r / 8 >> 1) * 4 + (r % 8 >> 1) : r;
        const float f[3] = {(w[at] + w2[at]) / 2, (n[at] + n2[at]) / 2, nw[at] + ne[at]};
        b->base[p] = 0;
        for (int i = 0; i < 3; i++) b->near[p][i] = f[i], b->base[p] += f[i] * weights[kind][p][i];
        sum += b->base[p];
    }
    b->block_class = class_of(sum / 4);
}

static void remember(struct plane *t, const struct block *b, const int *level, int y, int x)
{
    const int columns = t->columns / 4;
    float seen_at[16] = {0};
    for (int p = 0; p < b->n; p++) {
        const int r = scans[b->kind][p];
        if (b->eight)
            seen_at[(r / 8 >> 1) * 4 + (r % 8 >> 1)] += seen(level[p]) / 4;
        else
            seen_at[r] = seen(level[p]);
    }
    for (int i = 0; i < (b->eight ? 4 : 1); i++)
        memcpy(t->cells + 16 * ((size_t)(y + i / 2) * columns + x + i % 2), seen_at, sizeof seen_at);
}

static inline void transform_by(float core[8][8], int side, const float *in, int pitch, float *out)
{
    float half[64];
    for (int i = 0; i < side; i++)
        for (int j = 0; j < side; j++) {
            float sum = 0;
            for (int k = 0; k < side; k++) sum += core[i][k] * in[k * pitch + j];
            half[i * side + j] = sum;
        }
    for (int i = 0; i < side; i++)
        for (int j = 0; j < side; j++) {
            float sum = 0;
            for (int k = 0; k < side; k++) sum += core[j][k] * half[i * side + k];
            out[i * side + j] = sum;
        }
}

static void transform(int side, const float *in, int pitch, float *out, int inverse)
{
    if (side == 4)
        transform_by(cores[0][inverse], 4, in, pitch, out);
    else
        transform_by(cores[1][inverse], 8, in, pitch, out);
}

/* Filters count borders, from the first one on, of lines of samples. */
static void lap(float *v, int first, int period, int length, int lines, int step, int pitch, int half, const double *m)
{
    for (int line = 0; line < lines; line++)
        for (int at = first; at + half <= length; at += period) {
            double d[4];
            float *c = v + (size_t)line * pitch + (ptrdiff_t)at * step;
            for (int k = 0; k < half; k++) d[k] = c[k * step] - c[-(k + 1) * step];
            for (int i = 0; i < half; i++) {
                double e = -d[i];
                for (int k = 0; k < half; k++) e += m[i * half + k] * d[k];
                c[i * step] += (float)(e / 2);
                c[-(i + 1) * step] -= (float)(e / 2);
            }
        }
}

/* The same across borders of 4 x 4 blocks, both sides of which are lapped. */
static void lap_some(const struct plane *t, float *v, int down, const double *m)
{
    for (int y = down ? 4 : 0; y < t->rows; y++)
        for (int x = down ? 0 : 4; x < t->columns; x++)
            if ((down ? y : x) % 4 == 0 && is_lapped(t, y / 16, x / 16) &&
                is_lapped(t, (y - down) / 16, (x - 1 + down) / 16))
                lap(v + (size_t)y * t->columns + x, 0, 8, 2, 1, down ? t->columns : 1, 0, 2, m);
}

static void lap_both(float *v, int columns, int rows, int period, int half, const double *m)
{
    lap(v, period, period, columns, rows, 1, columns, half, m);
    lap(v, period, period, rows, columns, columns, 1, half, m);
}

static const double four_inverse[4] = {46 / 64., -26 / 64., 8 / 64., 44 / 64.};
static const double four_forward[4] = {44 * 64 / 2232., 26 * 64 / 2232., -8 * 64 / 2232., 46 * 64 / 2232.};

static double median_edge(double w, double n, double nw)
{
    const double low = fmin(w, n), high = fmax(w, n);
    return nw >= high ? low : nw <= low ? high : w + n - nw;
}

/* Quantises and codes a block of values; out gets what a decoder has. Returns its cost. */
static double quantise(struct plane *t, struct block *b, const float *values, int y, int x, double step, double dc_step,
                       int predicted, int commit, float *out)
{
    const struct params *params = t->params;
    float units[MOST];
    double weight[MOST], distortion = 0;
    int level[MOST];
    for (int p = 0; p < b->n; p++) {
        const int r = scans[b->kind][p];
        units[p] = (float)(values[r] / (b->dc && p == 0 ? dc_step : step));
        weight[p] = (b->lapped ? b->eight ? params->weight8[r] : params->weight4[r] : 1) * t->dc_weight;
    }
    if (b->dc) units[0] -= (float)predicted;
    /* What a bit is worth where squares are lapped or not. */
    const double lambda = t->lapped && !b->lapped ? params->lambda * exp2((params->qp - 4) / 3) : t->lambda;
    choose(b, units, weight, lambda / (step * step), level);
    const double bits = code(b, level, commit, params->train);
    remember(t, b, level, y, x);
    for (int p = 0; p < b->n; p++) {
        const int r = scans[b->kind][p];
        const double own = b->dc && p == 0 ? dc_step : step;
        distortion += (units[p] - level[p]) * (units[p] - level[p]) * weight[p] * own * own;
        out[r] = (float)((level[p] + (b->dc && p == 0 ? predicted : 0)) * own);
    }
    if (commit) t->coder->bits += bits;
    return distortion + t->lambda * bits;
}

static int predicted_dc(const float *dc, int y, int x, int columns, double step)
{
    const float *at = dc + (size_t)y * columns + x;
    if (y == 0) return x == 0 ? 0 : (int)lround(at[-1] / step);
    if (x == 0) return (int)lround(at[-columns] / step);
    return (int)lround(median_edge(at[-1] / step, at[-columns] / step, at[-columns - 1] / step));
}

/* A block of 4 x 4 at cell y, x: of values if they are given, else of the plane. */
static double code_four(struct plane *t, const float *values, int y, int x, int right, int commit, float out[16])
{
    const int columns = t->columns / 4;
    struct block b;
    look(t, &b, t->level ? FOUR_OF_DC : t->params->dc_plane ? FOUR_AC : FOUR, y, x, right);
    const double step = step_at(t, 4 * y, 4 * x) * (t->lapped && !b.lapped ? 0.62996 : 1);
    const double c = quantise(t, &b, values, y, x, step, t->step,
                              b.dc ? predicted_dc(t->dc, y, x, columns, t->step) : 0, commit, out);
    t->dc[y * columns + x] = b.dc ? out[0] : values[0];
    return c;
}

static void put_plain(struct plane *t, int y, int x, int side, const float *values)
{
    for (int i = 0; i < side; i++)
        memcpy(t->out + (size_t)(y + i) * t->columns + x, values + i * side, sizeof(float) * side);
}

/* Codes a square of 8 x 8 samples as one block or as four; t->out gets coefficients, in the blocks' places. */
static double code_square(struct plane *t, int y, int x, int eight, int commit)
{
    const float *in = t->value + (size_t)y * t->columns + x;
    const int columns = t->columns / 4;
    float values[64], out[64] = {0};
    double sum = 0;
    t->is_eight[y / 8 * (t->columns / 8) + x / 8] = (uint8_t)eight;
    if (eight) {
        struct block b;
        transform(8, in, t->columns, values, 0);
        look(t, &b, t->params->dc_plane == 2 ? EIGHT_AC : t->params->dc_plane ? EIGHT_HIGH : EIGHT, y / 4, x / 4, 1);
        float *dc = t->dc + (size_t)(y / 4) * columns + x / 4;
        if (t->params->dc_plane == 1)
            for (int i = 0; i < 4; i++) {
                const float down = i / 2 ? -1 : 1, across = i % 2 ? -1 : 1;
                dc[i / 2 * columns + i % 2] =
                    (values[0] + across * values[1] + down * values[8] + across * down * values[9]) / 2;
            }
        const int predicted = b.dc ? predicted_dc(t->dc_out, y / 8, x / 8, t->columns / 8, t->step) : 0;
        sum = quantise(t, &b, values, y / 4, x / 4, step_at(t, y, x), t->step, predicted, commit, out);
        if (t->params->dc_plane != 1) t->dc_out[y / 8 * (t->columns / 8) + x / 8] = b.dc ? out[0] : values[0];
        put_plain(t, y, x, 8, out);
        return sum;
    }
    float local[64];
    for (int i = 0; i < 8; i++) memcpy(local + 8 * i, in + (size_t)i * t->columns, 8 * sizeof *local);
    if (t->params->lap) lap_both(local, 8, 8, 4, 2, four_forward);
    for (int i = 0; i < 4; i++) {
        transform(4, local + i / 2 * 32 + i % 2 * 4, 8, values, 0);
        sum += code_four(t, values, y / 4 + i / 2, x / 4 + i % 2, i < 3, commit, out);
        put_plain(t, y + i / 2 * 4, x + i % 2 * 4, 4, out);
    }
    return sum;
}

/* ---- Lapped planes ----------------------------------------------------------------------------------------- */

/* What a square of 8 x 8 seems to cost, as a choice without coding has it: sums of logarithms of AC coefficients. */
static double rough_cost(const struct plane *t, int y, int x, int eight)
{
    float local[64], values[64];
    double sum = 0;
    for (int i = 0; i < 8; i++) memcpy(local + 8 * i, t->value + (size_t)(y + i) * t->columns + x, 8 * sizeof *local);
    if (!eight && t->params->lap) lap_both(local, 8, 8, 4, 2, four_forward);
    for (int i = 0; i < (eight ? 1 : 4); i++) {
        transform(eight ? 8 : 4, local + i / 2 * 32 + i % 2 * 4, 8, values, 0);
        for (int k = 0; k < (eight ? 64 : 16); k++)
            if (eight ? k > 15 || k % 8 > 1 : k > 0) sum += log2(1 + pow(values[k] / step_at(t, y, x), 2));
    }
    return sum;
}

/* Both ways of a square of side samples, then the better one. */
static void choose_squares(struct plane *t, int side)
{
    const int columns = t->columns / 8, size = t->params->size;
    for (int y = 0; y < t->rows; y += side)
        for (int x = 0; x < t->columns; x += side) {
            const uint8_t *at = t->is_eight + y / 8 * columns + x / 8;
            const int context = (x > 0 && at[-1]) + (y > 0 && at[-columns]);
            int eight = size == 8;
            if (size > 8) {
                double sum[2];
                for (int way = 0; way < 2; way++) {
                    sum[way] =
                        size == 480 ? rough_cost(t, y, x, way) : t->lambda * cost(&t->coder->choice[context], way);
                    for (int i = 0; i < side && size != 480; i += 8)
                        for (int j = 0; j < side; j += 8) sum[way] += code_square(t, y + i, x + j, way, 0);
                }
                eight = sum[1] < sum[0];
                t->coder->bits += put(&t->coder->choice[context], eight, 1);
            }
            for (int i = 0; i < side; i += 8)
                for (int j = 0; j < side; j += 8) code_square(t, y + i, x + j, eight, 1);
        }
}

static void restore_square(struct plane *t, int y, int x, int eight)
{
    float local[64], block[64];
    for (int i = 0; i < 8; i++) memcpy(local + 8 * i, t->out + (size_t)(y + i) * t->columns + x, 8 * sizeof *local);
    if (eight) {
        transform(8, local, 8, block, 1);
    } else {
        for (int i = 0; i < 4; i++) {
            float four[16];
            transform(4, local + i / 2 * 32 + i % 2 * 4, 8, four, 1);
            for (int j = 0; j < 4; j++) memcpy(block + (i / 2 * 4 + j) * 8 + i % 2 * 4, four + 4 * j, 4 * sizeof *four);
        }
        if (t->params->lap) lap_both(block, 8, 8, 4, 2, four_inverse);
    }
    put_plain(t, y, x, 8, block);
}

/* The DC plane's values take their places among the coefficients. */
static void put_dcs(struct plane *t, const float *dc, int columns)
{
    for (int y = 0; y < t->rows; y += 8)
        for (int x = 0; x < t->columns; x += 8) {
            const int eight = t->is_eight[y / 8 * (t->columns / 8) + x / 8];
            float *at = t->out + (size_t)y * t->columns + x;
            if (t->params->dc_plane == 2) {
                at[0] = dc[y / 8 * columns + x / 8];
                continue;
            }
            const float *d = dc + y / 4 * columns + x / 4, a = d[0], b = d[1], c = d[columns], e = d[columns + 1];
            const int far = eight ? 1 : 4;
            at[0] = eight ? (a + b + c + e) / 2 : a;
            at[far] = eight ? (a - b + c - e) / 2 : b;
            at[far * t->columns] = eight ? (a + b - c - e) / 2 : c;
            at[far * t->columns + far] = eight ? (a - b - c + e) / 2 : e;
        }
}

static void fours(struct plane *t)
{
    const struct params *p = t->params;
    if (t->lapped) {
        lap_some(t, t->value, 0, four_forward);
        lap_some(t, t->value, 1, four_forward);
    } else if (p->lap)
        lap_both(t->value, t->columns, t->rows, 4, 2, four_forward);
    for (int y = 0; y < t->rows; y += 4)
        for (int x = 0; x < t->columns; x += 4) {
            float values[16], out[16] = {0};
            transform(4, t->value + (size_t)y * t->columns + x, t->columns, values, 0);
            const double c = code_four(t, values, y / 4, x / 4, 1, 1, out);
            if (t->cost_of_square) t->cost_of_square[y / 16 * (t->columns / 16) + x / 16] += c;
            put_plain(t, y, x, 4, out);
        }
}

static void restore_fours(struct plane *t)
{
    for (int y = 0; y < t->rows; y += 4)
        for (int x = 0; x < t->columns; x += 4) {
            float block[16];
            transform(4, t->out + (size_t)y * t->columns + x, t->columns, block, 1);
            put_plain(t, y, x, 4, block);
        }
    if (t->lapped) {
        lap_some(t, t->out, 1, four_inverse);
        lap_some(t, t->out, 0, four_inverse);
    } else if (t->params->lap)
        lap_both(t->out, t->columns, t->rows, 4, 2, four_inverse);
}

static void code_plane(struct plane *t);

static void code_dcs(struct plane *t)
{
    const struct params *p = t->params;
    const int by = p->dc_plane == 2 ? 8 : 4, columns = t->columns / by, rows = t->rows / by;
    const size_t n = (size_t)columns * rows;
    float *memory = calloc(n * 20, sizeof *memory);
    struct plane dcs = {p,
                        t->coder,
                        columns,
                        rows,
                        1,
                        t->step * p->dc_step,
                        t->lambda,
                        p->lap ? by == 8 ? p->weight8[0] : p->weight4[0] : 1,
                        memory,
                        memory + n,
                        memory + 2 * n,
                        memory + 18 * n,
                        memory + 19 * n,
                        NULL,
                        NULL,
                        NULL,
                        NULL};
    memcpy(dcs.value, by == 8 ? t->dc_out : t->dc, n * sizeof *memory);
    fours(&dcs);
    restore_fours(&dcs);
    put_dcs(t, dcs.out, columns);
    free(memory);
}

static void code_plane(struct plane *t)
{
    const struct params *p = t->params;
    if (p->size == 4) {
        fours(t);
    } else {
        if (p->lap) lap_both(t->value, t->columns, t->rows, 8, p->lap_half, p->lap_forward);
        choose_squares(t, p->size == 416 ? 16 : 8);
    }
    if (p->dc_plane) code_dcs(t);
    if (p->size == 4) {
        restore_fours(t);
        return;
    }
    for (int y = 0; y < t->rows; y += 8)
        for (int x = 0; x < t->columns; x += 8) restore_square(t, y, x, t->is_eight[y / 8 * (t->columns / 8) + x / 8]);
    if (p->lap) lap_both(t->out, t->columns, t->rows, 8, p->lap_half, p->lap_inverse);
}

/* ---- Prediction from what is restored ---------------------------------------------------------------------- */

struct edges {
    float above[2 * 8 + 1], left[2 * 8 + 1]; /* from the corner on */
};

static void find_edges(const struct plane *t, int y, int x, int side, int right, struct edges *e)
{
    const float *at = t->out + (size_t)y * t->columns + x;
    const int pitch = t->columns;
    for (int i = 1; i <= 2 * side; i++) {
        const int across = i <= side || (right && x + i <= t->columns) ? i : side;
        e->above[i] = y > 0 ? at[across - 1 - pitch] : x > 0 ? at[-1] : 0;
        e->left[i] = x > 0 ? at[((i <= side ? i : side) - 1) * pitch - 1] : y > 0 ? at[-pitch] : 0;
        if (across < i && i > side && y > 0) e->above[i] = e->above[i - 1];
    }
    e->above[0] = e->left[0] = x > 0 && y > 0 ? at[-1 - pitch] : x > 0 ? e->left[1] : e->above[1];
}

static void predict(const struct edges *e, int side, int mode, float *out)
{
    static const int angle[MODES] = {0, 0, 0, 0, 0, -26, -13, 13, 26, 32, -26, -13, 13, 26, -32};
    const float *a = e->above, *l = e->left;
    float mean = 0;
    for (int i = 1; i <= side; i++) mean += (a[i] + l[i]) / (float)(2 * side);
    const int across = mode >= 10 && mode < 14;
    const float *main = across ? l : a, *other = across ? a : l;
    for (int i = 0; i < side; i++)
        for (int j = 0; j < side; j++) {
            float v = mean;
            if (mode == 1) v = a[j + 1];
            if (mode == 2) v = l[i + 1];
            if (mode == 3) v = fminf(fmaxf(a[j + 1] + l[i + 1] - a[0], -128), 127);
            if (mode == 4)
                v = ((side - 1 - j) * l[i + 1] + (j + 1) * a[side + 1] + (side - 1 - i) * a[j + 1] +
                     (i + 1) * l[side + 1]) /
                    (2 * side);
            if (mode > 4) {
                const int r = across ? j : i, c = across ? i : j, w = angle[mode];
                float f[2];
                const int at = (r + 1) * w, whole = at >> 5, part = at & 31;
                for (int k = 0; k < 2; k++) {
                    const int from = c + whole + 1 + k;
                    const int beside = from < 0 ? (-from * 32 + (-w) / 2) / (-w) : 0;
                    f[k] = from >= 0 ? main[from < 2 * side ? from : 2 * side]
                                     : other[beside < 2 * side ? beside : 2 * side];
                }
                v = (f[0] * (float)(32 - part) + f[1] * (float)part) / 32;
            }
            out[i * side + j] = v;
        }
}

static float put_mode(struct coder *c, int eight, int left, int up, int mode, int commit)
{
    struct bit(*m)[32] = c->mode[eight];
    float sum = put(&m[1][left == up], mode == left, commit);
    if (mode == left) return sum;
    if (up != left) {
        sum += put(&m[1][2], mode == up, commit);
        if (mode == up) return sum;
    }
    return sum + put_tree(m[2], 4, mode, commit);
}

/* A block by one mode: its cost; t->out gets what is restored. */
static double by_mode(struct plane *t, uint8_t *modes, int y, int x, int side, int right, int mode, int commit)
{
    const int columns = t->columns / 4;
    struct edges e;
    struct block b;
    float guess[64], rest[64], values[64], out[64] = {0};
    find_edges(t, y, x, side, right, &e);
    predict(&e, side, mode, guess);
    for (int i = 0; i < side * side; i++)
        rest[i] = t->value[(size_t)(y + i / side) * t->columns + x + i % side] - guess[i];
    transform(side, rest, side, values, 0);
    look(t, &b, side == 8 ? EIGHT : FOUR, y / 4, x / 4, right);
    double sum = quantise(t, &b, values, y / 4, x / 4, step_at(t, y, x), t->step, 0, commit, out);
    uint8_t *at = modes + y / 4 * columns + x / 4;
    const float bits = put_mode(t->coder, side == 8, x > 0 ? at[-1] : 0, y > 0 ? at[-columns] : 0, mode, commit);
    if (commit) t->coder->bits += bits;
    for (int i = 0; i < side / 4; i++) memset(at + i * columns, mode, (size_t)side / 4);
    transform(side, out, side, rest, 1);
    for (int i = 0; i < side * side; i++) rest[i] = fminf(fmaxf(roundf(rest[i] + guess[i]), -128), 127);
    put_plain(t, y, x, side, rest);
    return sum + t->lambda * bits;
}

/* The four modes with the least sum of magnitudes are tried. */
static int best_mode(struct plane *t, uint8_t *modes, int y, int x, int side, int right)
{
    double rough[MODES], least = 1e30;
    const int count = t->params->predict == 1 ? 5 : MODES;
    int best = 0;
    struct edges e;
    find_edges(t, y, x, side, right, &e);
    for (int mode = 0; mode < count; mode++) {
        float guess[64], values[64];
        predict(&e, side, mode, guess);
        for (int i = 0; i < side * side; i++)
            guess[i] = t->value[(size_t)(y + i / side) * t->columns + x + i % side] - guess[i];
        transform(side, guess, side, values, 0);
        rough[mode] = 0;
        for (int i = 0; i < side * side; i++) rough[mode] += fabsf(values[i]);
    }
    for (int turn = 0; turn < 4; turn++) {
        int mode = 0;
        for (int i = 1; i < count; i++)
            if (rough[i] < rough[mode]) mode = i;
        rough[mode] = 1e30;
        const double c = by_mode(t, modes, y, x, side, right, mode, 0);
        if (c < least) least = c, best = mode;
    }
    return best;
}

static void predict_plane(struct plane *t)
{
    const int columns = t->columns / 8, size = t->params->size;
    uint8_t *modes = calloc((size_t)t->columns * t->rows / 16, 1);
    for (int y = 0; y < t->rows; y += 8)
        for (int x = 0; x < t->columns; x += 8) {
            uint8_t *at = t->is_eight + y / 8 * columns + x / 8;
            const int context = (x > 0 && at[-1]) + (y > 0 && at[-columns]);
            int mode[5] = {0}, eight = size == 8;
            double sum[2] = {0, 0};
            if (size != 8)
                for (int i = 0; i < 4; i++) {
                    const int v = y + i / 2 * 4, u = x + i % 2 * 4;
                    mode[i] = best_mode(t, modes, v, u, 4, i < 3);
                    sum[0] += by_mode(t, modes, v, u, 4, i < 3, mode[i], 0);
                }
            if (size != 4) {
                mode[4] = best_mode(t, modes, y, x, 8, 1);
                sum[1] = by_mode(t, modes, y, x, 8, 1, mode[4], 0);
            }
            if (size > 8) {
                for (int way = 0; way < 2; way++) sum[way] += t->lambda * cost(&t->coder->choice[context], way);
                eight = sum[1] < sum[0];
                t->coder->bits += put(&t->coder->choice[context], eight, 1);
            }
            *at = (uint8_t)eight;
            if (eight)
                by_mode(t, modes, y, x, 8, 1, mode[4], 1);
            else
                for (int i = 0; i < 4; i++) by_mode(t, modes, y + i / 2 * 4, x + i % 2 * 4, 4, i < 3, mode[i], 1);
        }
    free(modes);
}

/* ---- Smoothing: H.264 8.7, of intra blocks ------------------------------------------------------------------ */

static void smooth_line(float *v, int step, double qp, int strong)
{
    const double alpha = 0.8 * (exp2(qp / 6) - 1), beta = 0.5 * qp - 7;
    const float p0 = v[-step], p1 = v[-2 * step], p2 = v[-3 * step], q0 = v[0], q1 = v[step], q2 = v[2 * step];
    if (qp < 16 || fabsf(p0 - q0) >= alpha || fabsf(p1 - p0) >= beta || fabsf(q1 - q0) >= beta) return;
    const int ap = fabsf(p2 - p0) < beta, aq = fabsf(q2 - q0) < beta;
    if (strong) {
        const int close = fabsf(p0 - q0) < alpha / 4 + 2;
        const float p3 = v[-4 * step], q3 = v[3 * step];
        v[-step] = close && ap ? (p2 + 2 * p1 + 2 * p0 + 2 * q0 + q1) / 8 : (2 * p1 + p0 + q1) / 4;
        v[0] = close && aq ? (p1 + 2 * p0 + 2 * q0 + 2 * q1 + q2) / 8 : (2 * q1 + q0 + p1) / 4;
        if (close && ap) v[-2 * step] = (p2 + p1 + p0 + q0) / 4, v[-3 * step] = (2 * p3 + 3 * p2 + p1 + p0 + q0) / 8;
        if (close && aq) v[step] = (p0 + q0 + q1 + q2) / 4, v[2 * step] = (2 * q3 + 3 * q2 + q1 + q0 + p0) / 8;
        return;
    }
    const float most = (float)(alpha / 9), own = most + (float)ap + (float)aq;
    const float d = fminf(fmaxf((4 * (q0 - p0) + p1 - q1) / 8, -own), own);
    v[-step] += d;
    v[0] -= d;
    if (ap) v[-2 * step] += fminf(fmaxf((p2 + (p0 + q0) / 2 - 2 * p1) / 2, -most), most);
    if (aq) v[step] += fminf(fmaxf((q2 + (p0 + q0) / 2 - 2 * q1) / 2, -most), most);
}

static void smooth_borders(struct plane *t)
{
    const int columns = t->columns, rows = t->rows;
    for (int down = 0; down < 2; down++)
        for (int y = 0; y < rows; y++)
            for (int x = 0; x < columns; x++) {
                const int at = down ? y : x;
                const double qp = t->params->qp + 6 * log2(step_at(t, y, x) / t->step);
                if (at == 0 || at % 4 || (at % 8 == 4 && t->is_eight[y / 8 * (columns / 8) + x / 8])) continue;
                smooth_line(t->out + (size_t)y * columns + x, down ? columns : 1, qp, at % 16 == 0);
            }
}

/* ---- A frame ------------------------------------------------------------------------------------------------ */

/* FORMAT.md 8.8. */
static void put_classes(struct coder *c, const uint8_t *classes, int columns, int rows)
{
    for (int y = 0; y < rows; y++)
        for (int x = 0; x < columns; x++) {
            const uint8_t *at = classes + y * columns + x;
            const int up = y ? at[-columns] : x ? at[-1] : 3, left = x ? at[-1] : up;
            const int p = (left + up) >> 1, far = abs(left - up), above = *at > p;
            struct bit *m = c->classes[far > 2 ? 2 : far];
            c->bits += put(m, *at != p, 1);
            if (*at == p) continue;
            if (p > 0 && p < 6) c->bits += put(m + 1, above, 1);
            for (int n = 1; n < (above ? 6 - p : p); n++) {
                c->bits += put(m + 2 * n + above, abs(*at - p) > n, 1);
                if (abs(*at - p) == n) break;
            }
        }
}

void set_weights(int kind, const float *w)
{
    memcpy(weights[kind], w, sizeof weights[kind]);
}

void get_products(int kind, double *p, double *q)
{
    memcpy(p, products[kind], sizeof products[kind]);
    memcpy(q, targets[kind], sizeof targets[kind]);
    memset(products[kind], 0, sizeof products[kind]);
    memset(targets[kind], 0, sizeof targets[kind]);
}

/* A band of a frame, whose tiles are lapped or not: its cost. */
static double code_band(const struct params *p, struct coder *coder, const uint8_t *samples, int columns, int rows,
                        const uint8_t *classes, uint8_t *restored, uint8_t *eights, const uint8_t *lapped,
                        double *cost_of_square)
{
    const size_t n = (size_t)columns * rows;
    float *memory = calloc(4 * n, sizeof *memory);
    const double before = coder->bits;
    double distortion = 0;
    /* A lapped block's noise comes out smaller by so much: q + 32 of FORMAT.md 8.7. */
    const double step = exp2((p->qp - 4 + (p->lap && !p->predict ? 4 : 0)) / 6);
    struct plane t = {p,
                      coder,
                      columns,
                      rows,
                      0,
                      step,
                      (p->lap ? p->lambda_lapped : p->lambda) * step * step,
                      1,
                      memory,
                      memory + n,
                      memory + 2 * n,
                      memory + 3 * n,
                      memory + 3 * n + n / 16,
                      classes,
                      eights,
                      lapped,
                      cost_of_square};
    if (cost_of_square) t.lambda = 1.4 * p->lambda * exp2((p->qp - 4) / 3);
    for (int i = 0; lapped && i < columns * rows / 256; i++) {
        const int context =
            (i % (columns / 16) ? lapped[i - 1] : 1) + (i >= columns / 16 ? lapped[i - columns / 16] : 1);
        coder->bits += put(&coder->choice[context], lapped[i], 1);
    }
    for (size_t i = 0; i < n; i++) t.value[i] = (float)samples[i] - 128;
    memset(eights, 0, n / 64);
    if (classes) put_classes(coder, classes, columns / 16, rows / 16);
    if (p->predict)
        predict_plane(&t);
    else
        code_plane(&t);
    for (size_t i = 0; i < n; i++) {
        restored[i] = (uint8_t)lround(fminf(fmaxf(t.out[i] + 128, 0), 255));
        distortion += (restored[i] - samples[i]) * (restored[i] - samples[i]);
    }
    free(memory);
    const double plain = exp2((p->qp - 4) / 3);
    return distortion + 1.4 * p->lambda * plain * (coder->bits - before);
}

/* samples: columns and rows are multiples of 32. classes: of squares, or null. Returns bits; restored: samples; eights:
 * of squares. With lap 2 a band of about 65,536 samples, which is a tile, is lapped or not, whichever costs less. */
double code_frame(const struct params *p, const uint8_t *samples, int columns, int rows, const uint8_t *classes,
                  uint8_t *restored, uint8_t *eights)
{
    static struct coder coder, start;
    prepare();
    fresh(coder.models[0].places4[0], sizeof coder.models);
    fresh(coder.choice, sizeof coder.choice + sizeof coder.mode + sizeof coder.classes);
    coder.bits = 0;
    struct params lapped = *p, plain = *p;
    lapped.lap = 1;
    plain.lap = 0;
    const int width = columns > 1024 ? 1024 : columns, parts = (rows * width + 65535 - width * 16) / 65536;
    const int height = parts > 1 ? (rows / parts + 31) / 32 * 32 : rows;
    for (int y = 0; y < rows; y += height) {
        const int here = height < rows - y ? height : rows - y;
        const size_t at = (size_t)y * columns;
        const uint8_t *own = classes ? classes + at / 256 : NULL;
        if (p->lap < 2) {
            code_band(p, &coder, samples + at, columns, here, own, restored + at, eights + at / 64, NULL, NULL);
            continue;
        }
        if (p->lap == 3) {
            const int squares = columns / 16 * (here / 16);
            double *costs = calloc(2 * (size_t)squares, sizeof *costs);
            uint8_t *flags = malloc((size_t)squares);
            start = coder;
            for (int way = 0; way < 2; way++) {
                code_band(way ? &lapped : &plain, &coder, samples + at, columns, here, own, restored + at,
                          eights + at / 64, NULL, costs + way * squares);
                coder = start;
            }
            for (int i = 0; i < squares; i++) flags[i] = costs[squares + i] <= costs[i];
            code_band(&lapped, &coder, samples + at, columns, here, own, restored + at, eights + at / 64, flags, NULL);
            free(costs);
            free(flags);
            continue;
        }
        start = coder;
        const double cost_plain =
            code_band(&plain, &coder, samples + at, columns, here, own, restored + at, eights + at / 64, NULL, NULL);
        coder = start;
        const double cost_lapped =
            code_band(&lapped, &coder, samples + at, columns, here, own, restored + at, eights + at / 64, NULL, NULL);
        if (cost_lapped <= cost_plain) continue;
        coder = start;
        code_band(&plain, &coder, samples + at, columns, here, own, restored + at, eights + at / 64, NULL, NULL);
    }
    return coder.bits;
}

/* What smoothing makes of a frame that is not lapped; eights and classes as above. */
void smooth_frame(double qp, uint8_t *samples, int columns, int rows, const uint8_t *classes, uint8_t *eights)
{
    const size_t n = (size_t)columns * rows;
    const struct params p = {.qp = qp};
    struct plane t = {
        .params = &p, .columns = columns, .rows = rows, .step = 1, .class_of_square = classes, .is_eight = eights};
    t.out = calloc(n, sizeof *t.out);
    for (size_t i = 0; i < n; i++) t.out[i] = (float)samples[i] - 128;
    smooth_borders(&t);
    for (size_t i = 0; i < n; i++) samples[i] = (uint8_t)lround(fminf(fmaxf(t.out[i] + 128, 0), 255));
    free(t.out);
}
