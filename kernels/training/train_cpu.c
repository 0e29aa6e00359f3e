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
    struct tsr_training_plan plan = {(uint8_t)set, effort.classes, effort.rounds, 1};
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

static bool takes_part(const struct tsr_training *t, uint32_t tile, int32_t across, int32_t number)
{
    return tsr_block_takes_part(t->plan.block_stride, tile, number % across, number / across);
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

static struct tsr_tap_rows rows_of(const struct tsr_training *t, struct tsr_block_span b)
{
    struct tsr_tap_rows rows;
    rows.column = b.column;
    rows.columns = b.columns;
    rows.highest = (int16_t)((int32_t)t->range - 1 - BIAS);
    return rows;
}

void tsr_median_costs(const struct tsr_training *t, const struct tsr_training_tile *tile,
                      struct tsr_training_sums *sums)
{
    const int32_t across = tsr_blocks_across(tile->own.width), blocks = blocks_of(&tile->own);
    for (int32_t i = 0; i < blocks; i++) {
        const struct tsr_block_span b = block_at(&tile->own, across, i);
        const int32_t samples = b.columns * (b.end - b.row);
        struct tsr_tap_rows rows = rows_of(t, b);
        uint32_t cost = 0;
        int32_t zeros = 0;
        rows.samples = tile->own.first + b.row * tile->own.pitch;
        rows.pitch = tile->own.pitch;
        rows.rows = b.end - b.row;
        t->ops->median_costs(&rows, &cost, &zeros);
        t->median_cost[tile->number * t->tile_blocks + (uint32_t)i] =
            tsr_median_block(cost, zeros, samples) | (cost == 0 && is_even_block(t, tile, b) ? even_flag : 0u);
        if (takes_part(t, tile->number, across, i) && b.end > b.row) sums->bins[tsr_block_cost_bin(cost, samples)]++;
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
}

/* The differences of a block's rows and what they weigh in the fit: 16 samples a row. Returns their number. */
static int take_differences(const struct tsr_training *t, const struct tsr_training_tile *tile, struct tsr_block_span b,
                            const int16_t *weight, int32_t mean, struct tsr_training_scratch *scratch)
{
    const struct tsr_predictor_shape shape = t->model->shape;
    const int n = tsr_features(shape), shift = tsr_difference_shift(t->range);
    struct tsr_tap_rows rows = rows_of(t, b);
    int at = 0;
    for (int32_t y = b.row; y < b.end; y += rows.rows, at += SIDE * rows.rows) {
        const int16_t *first[TSR_FEATURES_LIMIT + 1], *second[TSR_FEATURES_LIMIT + 1];
        int16_t fit[SIDE][SIDE];
        tsr_tap_rows(shape, &tile->own, tile->earlier, y, b.end, &rows);
        for (int f = 0; f < n; f++) {
            first[f] = rows.tap[tsr_feature_tap(shape, f)];
            second[f] = rows.tap[tsr_feature_base(shape, f)];
        }
        first[n] = rows.samples;
        second[n] = rows.samples - 1;
        t->ops->fit_weights(&rows, weight, mean, fit);
        t->ops->differences(&rows, first, second, n + 1, shift, (const int16_t(*)[SIDE])fit, scratch->difference,
                            scratch->weighted, at);
    }
    return at;
}

void tsr_sum_tile(const struct tsr_training *t, const struct tsr_training_tile *tile, int round,
                  struct tsr_training_sums *sums, struct tsr_training_scratch *scratch)
{
    const int n = tsr_features(t->model->shape);
    const int32_t across = tsr_blocks_across(tile->own.width), blocks = blocks_of(&tile->own);
    for (int32_t i = 0; i < blocks; i++) {
        if (!takes_part(t, tile->number, across, i)) continue;
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
        const int samples = take_differences(t, tile, b, weight, mean, scratch);
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

/* What a class leaves of a flat block, as a sum of logarithms; or any number above most. With no weights, the median
 * edge predictor. */
static uint64_t flat_cost(const struct tsr_training *t, const struct tsr_training_tile *tile, struct tsr_block_span b,
                          const int16_t *weight, uint64_t most)
{
    struct tsr_tap_rows rows = rows_of(t, b);
    uint64_t cost = 0;
    for (int32_t y = b.row; y < b.end && cost <= most; y += rows.rows) {
        tsr_tap_rows(t->model->shape, &tile->own, tile->earlier, y, b.end, &rows);
        for (int32_t r = 0; r < rows.rows && cost <= most; r++) {
            const int32_t at = b.column + (int32_t)(r * rows.pitch);
            const int16_t *row = rows.samples + at, *up = row - rows.pitch;
            int16_t prediction[SIDE];
            if (weight) t->ops->predict(rows.tap, rows.taps, weight, at, rows.highest, prediction);
            for (int32_t c = 0; c < b.columns; c++) {
                const int32_t p = weight ? prediction[c] : tsr_median_edge(row[c - 1], up[c], up[c - 1]);
                if (row[c] != p) cost += tsr_magnitude_cost((uint32_t)tsr_abs(row[c] - p));
            }
        }
    }
    return cost;
}

/* The label of a flat block: of the least sum of logarithms, the first of equals. */
static int label_of_flat(const struct tsr_training *t, const struct tsr_training_tile *tile, struct tsr_block_span b)
{
    int best = t->plan.classes;
    uint64_t least = flat_cost(t, tile, b, NULL, UINT64_MAX);
    for (int l = t->plan.classes - 1; l >= 0; l--) {
        const uint64_t cost = flat_cost(t, tile, b, t->model->weight[l], least);
        if (cost <= least) best = l;
        if (cost <= least) least = cost;
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
static void add_costs(const struct tsr_training *t, const struct tsr_training_tile *tile, struct tsr_block_span b,
                      uint32_t which, const int16_t *const *weight, int classes, uint32_t *cost)
{
    struct tsr_tap_rows rows = rows_of(t, b);
    for (int32_t y = b.row; y < b.end; y += rows.rows) {
        tsr_tap_rows(t->model->shape, &tile->own, tile->earlier, y, b.end, &rows);
        t->ops->costs(&rows, which >> (y - b.row), weight, classes, cost);
    }
}

/* The class that leaves least of a block, the first of equals, of those on the shortlist; what it leaves. */
static int least_class(const struct tsr_training *t, const struct tsr_training_tile *tile, struct tsr_block_span b,
                       const int16_t *const *weight, uint32_t *least)
{
    const uint32_t rows = shortlist_rows(b);
    uint32_t cost[TSR_CLASS_LIMIT] = {0};
    add_costs(t, tile, b, rows, weight, t->plan.classes, cost);
    const int16_t *listed[2 * TSR_SHORTLIST];
    uint32_t listed_cost[2 * TSR_SHORTLIST];
    int class_of[2 * TSR_SHORTLIST];
    const int count = tsr_shortlist(t->plan.classes);
    for (int i = 0; i < count; i++) {
        int c = 0;
        for (int k = 1; k < t->plan.classes; k++)
            if (cost[k] < cost[c]) c = k;
        class_of[i] = c;
        listed[i] = weight[c];
        listed_cost[i] = cost[c];
        cost[c] = UINT32_MAX;
    }
    add_costs(t, tile, b, ~rows, listed, count, listed_cost);
    int best = 0;
    for (int i = 1; i < count; i++)
        if (listed_cost[i] < listed_cost[best] || (listed_cost[i] == listed_cost[best] && class_of[i] < class_of[best]))
            best = i;
    *least = listed_cost[best];
    return class_of[best];
}

void tsr_label_tile(const struct tsr_training *t, const struct tsr_training_tile *tile, bool last,
                    struct tsr_training_sums *sums)
{
    const int classes = t->plan.classes;
    const int32_t across = tsr_blocks_across(tile->own.width), blocks = blocks_of(&tile->own);
    const int16_t *weight[TSR_CLASS_LIMIT];
    for (int c = 0; c < classes; c++) weight[c] = t->model->weight[c];
    for (int32_t i = 0; i < blocks; i++) {
        if (!last && !takes_part(t, tile->number, across, i)) continue;
        const struct tsr_block_span b = block_at(&tile->own, across, i);
        const uint32_t median = median_cost(t, tile->number, i);
        uint32_t least = median;
        int best = classes;
        if (is_even(t, tile->number, i)) {
            best = 0;
        } else if (last && is_flat(t, tile->number, i)) {
            best = label_of_flat(t, tile, b);
            if (best < classes) {
                least = 0;
                add_costs(t, tile, b, UINT32_MAX, &weight[best], 1, &least);
            }
        } else {
            uint32_t cost;
            const int c = least_class(t, tile, b, weight, &cost);
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
