/* Training a plane's predictors on the CPU; see the header. */
#include "train_cpu.h"

#include <string.h>

#include "entropy/code_cost.h"
#include "transform/predict/median_edge.h"

enum { SIDE = TSR_PREDICTOR_BLOCK, BIAS = TSR_SAMPLE_BIAS };

/* Weights must pay: a plane has a class for this many blocks at most. */
static int least_blocks(int set)
{
    return set == 3 ? 24 : 8;
}

static struct tsr_training_plan plan_of(struct tsr_effort_plan effort, uint64_t samples, int set)
{
    const uint64_t most = samples / (SIDE * SIDE) / (uint64_t)least_blocks(set);
    struct tsr_training_plan plan = {(uint8_t)set, effort.classes, effort.rounds, effort.coarse_rounds, 1};
    if (most < plan.classes) plan.classes = (uint8_t)(most > 0 ? most : 1);
    plan.block_stride = (uint32_t)((samples + effort.training_samples - 1) / effort.training_samples);
    if (samples >= 1u << 16 && plan.block_stride < effort.training_stride) plan.block_stride = effort.training_stride;
    return plan;
}

int tsr_training_plans(struct tsr_effort_plan effort, uint64_t samples,
                       struct tsr_training_plan plans[TSR_TRAINING_PLANS])
{
    int count = 0;
    for (int set = effort.neighbours_set; set > 0; set--) {
        plans[count++] = plan_of(effort, samples, set);
        if (samples >= (set == 3 ? 1u << 18 : 1u << 15)) break; /* large planes pay for their weights */
    }
    return count;
}

uint64_t tsr_training_cost(const struct tsr_training *t, const struct tsr_training_sums *sums)
{
    return tsr_cost_of_training(sums->cost, sums->samples, t->plan.classes, tsr_features(t->model->shape));
}

static struct tsr_block_span block_at(const struct tsr_padded_tile *tile, int32_t across, int32_t number)
{
    return tsr_block_span(tile->width, tile->height, number % across, number / across);
}

static int32_t blocks_of(const struct tsr_padded_tile *tile)
{
    return tsr_blocks_across(tile->width) * tsr_blocks_across(tile->height);
}

static bool takes_part(uint32_t stride, uint32_t tile, int32_t across, int32_t number)
{
    return tsr_block_takes_part(stride, tile, number % across, number / across);
}

/* Above what tsr_median_block says. */
static const uint32_t even_flag = 1u << 31;

static uint32_t median_block(const struct tsr_training *t, uint32_t tile, int32_t number)
{
    return t->median_cost[tile * t->tile_blocks + (uint32_t)number];
}

static uint32_t median_cost(const struct tsr_training *t, uint32_t tile, int32_t number)
{
    return tsr_median_block_cost(median_block(t, tile, number));
}

static bool is_flat(const struct tsr_training *t, uint32_t tile, int32_t number)
{
    return tsr_median_block_is_flat(median_block(t, tile, number) & ~even_flag);
}

static bool is_even(const struct tsr_training *t, uint32_t tile, int32_t number)
{
    return (median_block(t, tile, number) & even_flag) != 0;
}

/* Are all samples equal that predictors see in a block, those of each plane? Then every class predicts each sample as
 * it is, since weights add up to 1024 in the plane and to 0 in earlier ones, and all differences are 0. */
static bool is_even_tile(const struct tsr_padded_tile *tile, struct tsr_block_span b)
{
    enum { SEEN = SIDE + 2 * TSR_GUARD, ROWS_ABOVE = 4 };
    const int32_t above = tsr_max(0, b.row - ROWS_ABOVE), below = tsr_min(b.end, tile->height - 1);
    const int16_t *first = tile->first + above * tile->pitch + b.column - TSR_GUARD;
    for (int c = 1; c < SEEN; c++)
        if (first[c] != first[0]) return false;
    for (int32_t y = 1; y <= below - above; y++)
        if (memcmp(first + y * tile->pitch, first, SEEN * sizeof *first) != 0) return false;
    return true;
}

static bool is_even_block(const struct tsr_training *t, const struct tsr_training_tile *tile, struct tsr_block_span b)
{
    bool is_even = is_even_tile(&tile->own, b);
    for (int r = 0; r < t->model->shape.references; r++) is_even = is_even && is_even_tile(&tile->earlier[r], b);
    return is_even;
}

/* A block, and those of its rows that were asked for last. */
struct block {
    const struct tsr_training *t;
    const struct tsr_training_tile *tile;
    struct tsr_block_span span;
    struct tsr_tap_rows rows;
    int32_t y; /* row of the tile that these begin with; -1: none yet */
};

static void set_block(struct block *b, const struct tsr_training *t, const struct tsr_training_tile *tile,
                      struct tsr_block_span span)
{
    b->t = t;
    b->tile = tile;
    b->span = span;
    b->rows.column = span.column;
    b->rows.columns = span.columns;
    b->rows.highest = (int16_t)((int32_t)t->range - 1 - BIAS);
    b->y = -1;
}

/* The rows from row y of the tile on. Most blocks have them all in one piece. */
static const struct tsr_tap_rows *rows_from(struct block *b, int32_t y)
{
    if (b->y != y) tsr_tap_rows(b->t->model->shape, &b->tile->own, b->tile->earlier, y, b->span.end, &b->rows);
    b->y = y;
    return &b->rows;
}

void tsr_median_costs(const struct tsr_training *t, const struct tsr_training_tile *tile,
                      struct tsr_training_sums *sums)
{
    const int32_t across = tsr_blocks_across(tile->own.width), blocks = blocks_of(&tile->own);
    for (int32_t i = 0; i < blocks; i++) {
        const struct tsr_block_span b = block_at(&tile->own, across, i);
        const int32_t samples = b.columns * (b.end - b.row);
        const struct tsr_tap_rows rows = {.samples = tile->own.first + b.row * tile->own.pitch,
                                          .pitch = tile->own.pitch,
                                          .column = b.column,
                                          .columns = b.columns,
                                          .rows = b.end - b.row};
        uint32_t cost = 0;
        int32_t zeros = 0;
        t->ops->median_costs(&rows, &cost, &zeros);
        t->median_cost[tile->number * t->tile_blocks + (uint32_t)i] =
            tsr_median_block(cost, zeros, samples) | (cost == 0 && is_even_block(t, tile, b) ? even_flag : 0u);
        if (takes_part(t->plan.block_stride, tile->number, across, i) && b.end > b.row)
            sums->bins[tsr_block_cost_bin(cost, samples)]++;
    }
}

void tsr_take_first_labels(struct tsr_training *t, const struct tsr_training_sums *sums)
{
    uint64_t total = 0, before = 0;
    for (int l = 0; l < TSR_COST_BINS; l++) total += sums->bins[l];
    for (int l = 0; l < TSR_COST_BINS; l++) {
        t->first_label[l] = tsr_first_label(before, sums->bins[l], total, t->plan.classes);
        before += sums->bins[l];
    }
    for (int c = 0; c < t->plan.classes; c++) t->mean[c] = 0;
    for (uint32_t m = 0; m < TSR_SMALL_MAGNITUDES; m++) t->magnitude_cost[m] = (uint16_t)tsr_magnitude_cost(m);
}

/* The differences of a block's rows and what they weigh in the fit: 16 samples a row. Returns their number. */
static int take_differences(struct block *b, const int16_t *weight, int32_t mean, struct tsr_training_scratch *scratch)
{
    const struct tsr_predictor_shape shape = b->t->model->shape;
    const int n = tsr_features(shape), shift = tsr_difference_shift(b->t->range);
    int at = 0;
    for (int32_t y = b->span.row; y < b->span.end; y += b->rows.rows, at += SIDE * b->rows.rows) {
        const struct tsr_tap_rows *rows = rows_from(b, y);
        const int16_t *first[TSR_FEATURES_LIMIT + 1], *second[TSR_FEATURES_LIMIT + 1];
        int16_t fit[SIDE][SIDE];
        for (int f = 0; f < n; f++) {
            first[f] = rows->tap[tsr_feature_tap(shape, f)];
            second[f] = rows->tap[tsr_feature_base(shape, f)];
        }
        first[n] = rows->samples;
        second[n] = rows->samples - 1;
        b->t->ops->fit_weights(rows, weight, mean, fit);
        b->t->ops->differences(rows, first, second, n + 1, shift, (const int16_t(*)[SIDE])fit, scratch->difference,
                               scratch->weighted, at);
    }
    return at;
}

void tsr_sum_tile(const struct tsr_training *t, const struct tsr_training_tile *tile, int round,
                  struct tsr_training_sums *sums, struct tsr_training_scratch *scratch)
{
    const int n = tsr_features(t->model->shape);
    const uint32_t stride = tsr_round_stride(t->plan, round);
    const int32_t across = tsr_blocks_across(tile->own.width), blocks = blocks_of(&tile->own);
    for (int32_t i = 0; i < blocks; i++) {
        if (!takes_part(stride, tile->number, across, i)) continue;
        const struct tsr_block_span b = block_at(&tile->own, across, i);
        uint8_t *label = &t->label[tile->number * t->tile_blocks + (uint32_t)i];
        if (b.end == b.row || is_flat(t, tile->number, i)) continue;
        const uint32_t median = median_cost(t, tile->number, i);
        if (round == 0) *label = t->first_label[tsr_block_cost_bin(median, b.columns * (b.end - b.row))];
        /* In the first round the residuals are the median edge predictor's, and the block's own mean stands for its
         * class's. */
        if (is_even(t, tile->number, i)) continue;
        const int32_t mean = round == 0 ? (int32_t)(median / (uint32_t)(b.columns * (b.end - b.row))) : t->mean[*label];
        const int16_t *weight = round == 0 ? NULL : t->model->weight[*label];
        struct block block;
        set_block(&block, t, tile, b);
        const int samples = take_differences(&block, weight, mean, scratch);
        t->ops->products((const int16_t(*)[256])scratch->weighted, (const int16_t(*)[256])scratch->difference, n + 1,
                         samples, scratch->products);
        for (int s = 0; s < (n + 1) * (n + 2) / 2; s++)
            sums->products[*label][s] += (uint64_t)(int64_t)scratch->products[s];
    }
}

void tsr_fit_classes(struct tsr_training *t, const struct tsr_training_sums *sums, struct tsr_solver *solver)
{
    const int n = tsr_features(t->model->shape);
    for (int c = 0; c < t->plan.classes; c++) {
        int16_t of_feature[TSR_FEATURES_LIMIT];
        tsr_solve_predictor((const int64_t *)sums->products[c], n, of_feature, solver);
        tsr_take_weights(t->model->shape, of_feature, t->model->weight[c]);
    }
}

/* What a class leaves of a flat block, or the median edge predictor if weight is NULL, as a sum of logarithms; any
 * number above most, if it is more than that. */
static uint64_t flat_cost(struct block *b, const int16_t *weight, uint64_t most)
{
    uint64_t cost = 0;
    for (int32_t y = b->span.row; y < b->span.end && cost <= most; y += b->rows.rows) {
        const struct tsr_tap_rows *rows = rows_from(b, y);
        for (int32_t r = 0; r < rows->rows && cost <= most; r++) {
            uint16_t magnitude[SIDE];
            uint32_t left = b->t->ops->magnitudes(rows, r, weight, magnitude);
            while (left != 0) {
                const int bit = tsr_floor_log2(left);
                const uint16_t m = magnitude[bit / 2];
                left ^= 1u << bit;
                cost += m < TSR_SMALL_MAGNITUDES ? b->t->magnitude_cost[m] : tsr_magnitude_cost(m);
            }
        }
    }
    return cost;
}

/* The label of a flat block: of the least sum of logarithms, the first of equals. */
static int label_of_flat(struct block *b)
{
    int best = b->t->plan.classes;
    uint64_t least = flat_cost(b, NULL, UINT64_MAX);
    for (int l = b->t->plan.classes - 1; l >= 0; l--) {
        const uint64_t cost = flat_cost(b, b->t->model->weight[l], least);
        if (cost > least) continue;
        best = l;
        least = cost;
    }
    return best;
}

/* A block's rows that make the shortlist: bit r for row r of the block. */
static uint32_t shortlist_rows(struct tsr_block_span b)
{
    uint32_t rows = 0;
    for (int32_t y = b.row; y < b.end; y++) rows |= (uint32_t)tsr_is_shortlist_row(b, y) << (y - b.row);
    return rows;
}

/* Adds what the classes leave of some of a block's rows: bit r of which for row r of the block. */
static void add_costs(struct block *b, uint32_t which, const int16_t *const *weight, int classes, uint32_t *cost)
{
    for (int32_t y = b->span.row; y < b->span.end; y += b->rows.rows)
        b->t->ops->costs(rows_from(b, y), which >> (y - b->span.row), weight, classes, cost);
}

/* The class that leaves least of a block, the first of equals, of those on the shortlist; what it leaves. */
static int least_class(struct block *b, const int16_t *const *weight, uint32_t *least)
{
    const uint32_t rows = shortlist_rows(b->span);
    const int classes = b->t->plan.classes, count = tsr_shortlist(classes);
    uint32_t cost[TSR_CLASS_LIMIT] = {0};
    add_costs(b, rows, weight, classes, cost);
    const int16_t *listed[2 * TSR_SHORTLIST];
    uint32_t listed_cost[2 * TSR_SHORTLIST];
    int class_of[2 * TSR_SHORTLIST];
    for (int i = 0; i < count; i++) {
        int c = 0;
        for (int k = 1; k < classes; k++)
            if (cost[k] < cost[c]) c = k;
        class_of[i] = c;
        listed[i] = weight[c];
        listed_cost[i] = cost[c];
        cost[c] = UINT32_MAX;
    }
    add_costs(b, ~rows, listed, count, listed_cost);
    int best = 0;
    for (int i = 1; i < count; i++)
        if (listed_cost[i] < listed_cost[best] || (listed_cost[i] == listed_cost[best] && class_of[i] < class_of[best]))
            best = i;
    *least = listed_cost[best];
    return class_of[best];
}

void tsr_label_tile(const struct tsr_training *t, const struct tsr_training_tile *tile, int round,
                    struct tsr_training_sums *sums)
{
    const bool last = round + 1 == t->plan.rounds;
    const uint32_t stride = tsr_round_stride(t->plan, round + 1);
    const int classes = t->plan.classes;
    const int32_t across = tsr_blocks_across(tile->own.width), blocks = blocks_of(&tile->own);
    const int16_t *weight[TSR_CLASS_LIMIT];
    for (int c = 0; c < classes; c++) weight[c] = t->model->weight[c];
    for (int32_t i = 0; i < blocks; i++) {
        if (!last && !takes_part(stride, tile->number, across, i)) continue;
        const struct tsr_block_span b = block_at(&tile->own, across, i);
        const uint32_t median = median_cost(t, tile->number, i);
        uint32_t least = median;
        int best = classes;
        struct block block;
        set_block(&block, t, tile, b);
        if (is_even(t, tile->number, i)) {
            best = 0;
        } else if (last && is_flat(t, tile->number, i)) {
            best = label_of_flat(&block);
            if (best < classes) {
                least = 0;
                add_costs(&block, UINT32_MAX, &weight[best], 1, &least);
            }
        } else {
            uint32_t cost;
            const int c = least_class(&block, weight, &cost);
            if (!last || cost <= median) {
                best = c;
                least = cost;
            }
        }
        t->label[tile->number * t->tile_blocks + (uint32_t)i] = (uint8_t)best;
        sums->cost[best] += least;
        sums->samples[best] += (uint32_t)(b.columns * (b.end - b.row));
    }
}

void tsr_take_means(struct tsr_training *t, const struct tsr_training_sums *sums)
{
    for (int c = 0; c < t->plan.classes; c++) t->mean[c] = tsr_class_mean(sums->cost[c], sums->samples[c]);
}

void tsr_drop_classes(struct tsr_training *t, const struct tsr_training_sums *sums,
                      uint8_t renumbered[TSR_LABELS_LIMIT])
{
    tsr_drop_empty_classes(t->model, sums->samples, t->plan.classes, renumbered);
}
