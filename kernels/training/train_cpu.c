/* Training a plane's predictors on the CPU; see the header. */
#include "train_cpu.h"

#include <string.h>

#include "entropy/code_cost.h"
#include "transform/predict/median_edge.h"

enum { SIDE = TSR_PREDICTOR_BLOCK, BIAS = TSR_SAMPLE_BIAS, FIT_WEIGHTS = 64 };

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

static uint32_t median_cost(const struct tsr_training *t, uint32_t tile, int32_t number)
{
    return tsr_median_block_cost(t->median_cost[tile * t->tile_blocks + (uint32_t)number]);
}

static bool is_flat(const struct tsr_training *t, uint32_t tile, int32_t number)
{
    return tsr_median_block_is_flat(t->median_cost[tile * t->tile_blocks + (uint32_t)number]);
}

void tsr_median_costs(const struct tsr_training *t, const struct tsr_training_tile *tile,
                      struct tsr_training_sums *sums)
{
    const int32_t across = tsr_blocks_across(tile->own.width), blocks = blocks_of(&tile->own);
    for (int32_t i = 0; i < blocks; i++) {
        const struct tsr_block_span b = block_at(&tile->own, across, i);
        const int32_t samples = b.columns * (b.end - b.row);
        uint32_t cost = 0;
        int32_t zeros = 0;
        for (int32_t y = b.row; y < b.end; y++) {
            const int16_t *row = tile->own.first + y * tile->own.pitch, *up = row - tile->own.pitch;
            for (int32_t c = b.column; c < b.column + b.columns; c++) {
                const int32_t magnitude = tsr_abs(row[c] - tsr_median_edge(row[c - 1], up[c], up[c - 1]));
                cost += (uint32_t)tsr_min(magnitude, TSR_COST_MOST);
                zeros += magnitude == 0;
            }
        }
        t->median_cost[tile->number * t->tile_blocks + (uint32_t)i] = tsr_median_block(cost, zeros, samples);
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

void tsr_sum_tile(const struct tsr_training *t, const struct tsr_training_tile *tile, int round,
                  struct tsr_training_sums *sums, struct tsr_training_scratch *scratch)
{
    const struct tsr_predictor_shape shape = t->model->shape;
    const int taps = tsr_taps(shape), n = tsr_features(shape), shift = tsr_difference_shift(t->range);
    const int32_t across = tsr_blocks_across(tile->own.width), blocks = blocks_of(&tile->own);
    const int16_t highest = (int16_t)((int32_t)t->range - 1 - BIAS);
    int feature_tap[TSR_FEATURES_LIMIT + 1], feature_base[TSR_FEATURES_LIMIT + 1];
    for (int f = 0; f < n; f++)
        feature_tap[f] = tsr_feature_tap(shape, f), feature_base[f] = tsr_feature_base(shape, f);
    for (int32_t i = 0; i < blocks; i++) {
        if (!takes_part(t, tile->number, across, i)) continue;
        const struct tsr_block_span b = block_at(&tile->own, across, i);
        uint8_t *label = &t->label[tile->number * t->tile_blocks + (uint32_t)i];
        if (b.end == b.row || is_flat(t, tile->number, i)) continue;
        const uint32_t median = median_cost(t, tile->number, i);
        if (round == 0) *label = t->first_label[tsr_block_cost_bin(median, b.columns * (b.end - b.row))];
        /* In the first round the residuals are the median edge predictor's, and the block's own mean stands for its
         * class's. */
        const int32_t mean = round == 0 ? (int32_t)(median / (uint32_t)(b.columns * (b.end - b.row))) : t->mean[*label];
        int16_t fit_weight[FIT_WEIGHTS]; /* divisions take their time */
        for (int m = 0; m < FIT_WEIGHTS; m++) fit_weight[m] = (int16_t)tsr_fit_weight(m, mean);
        if (b.end - b.row < SIDE) {
            memset(scratch->weighted, 0, (size_t)(n + 1) * sizeof scratch->weighted[0]);
            memset(scratch->difference, 0, (size_t)(n + 1) * sizeof scratch->difference[0]);
        }
        int at = 0;
        for (int32_t y = b.row; y < b.end; y++, at += SIDE) {
            const int16_t *tap[TSR_TAPS_LIMIT];
            int16_t prediction[SIDE], weight[SIDE] = {0};
            tsr_tap_row(shape, &tile->own, tile->earlier, y, tap);
            const int16_t *row = tile->own.first + y * tile->own.pitch, *up = row - tile->own.pitch;
            if (round > 0)
                t->ops->predict(tap, taps, t->model->weight[*label], b.column, highest, prediction);
            else
                for (int32_t c = 0; c < b.columns; c++)
                    prediction[c] =
                        (int16_t)tsr_median_edge(row[b.column + c - 1], up[b.column + c], up[b.column + c - 1]);
            for (int32_t c = 0; c < b.columns; c++) {
                const int32_t magnitude = tsr_abs(row[b.column + c] - prediction[c]);
                weight[c] = magnitude < FIT_WEIGHTS ? fit_weight[magnitude] : (int16_t)tsr_fit_weight(magnitude, mean);
            }
            const int16_t *first[TSR_FEATURES_LIMIT + 1], *second[TSR_FEATURES_LIMIT + 1];
            for (int f = 0; f < n; f++) first[f] = tap[feature_tap[f]], second[f] = tap[feature_base[f]];
            first[n] = row;
            second[n] = row - 1;
            t->ops->differences(first, second, n + 1, b.column, shift, weight, scratch->difference, scratch->weighted,
                                at);
        }
        t->ops->products((const int16_t(*)[256])scratch->weighted, (const int16_t(*)[256])scratch->difference, n + 1,
                         scratch->products);
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

/* The label of a flat block: of the least sum of logarithms. */
static int label_of_flat(const struct tsr_training *t, const struct tsr_training_tile *tile, struct tsr_block_span b)
{
    const struct tsr_predictor_shape shape = t->model->shape;
    const int taps = tsr_taps(shape), classes = t->plan.classes;
    const int16_t highest = (int16_t)((int32_t)t->range - 1 - BIAS);
    uint64_t cost[TSR_LABELS_LIMIT] = {0};
    for (int32_t y = b.row; y < b.end; y++) {
        const int16_t *tap[TSR_TAPS_LIMIT];
        const int16_t *row = tile->own.first + y * tile->own.pitch, *up = row - tile->own.pitch;
        tsr_tap_row(shape, &tile->own, tile->earlier, y, tap);
        for (int l = 0; l <= classes; l++) {
            int16_t prediction[SIDE];
            if (l < classes)
                t->ops->predict(tap, taps, t->model->weight[l], b.column, highest, prediction);
            else
                for (int32_t c = b.column; c < b.column + b.columns; c++)
                    prediction[c - b.column] = (int16_t)tsr_median_edge(row[c - 1], up[c], up[c - 1]);
            for (int32_t c = 0; c < b.columns; c++)
                cost[l] += tsr_magnitude_cost((uint32_t)tsr_abs(row[b.column + c] - prediction[c]));
        }
    }
    int best = 0;
    for (int l = 1; l <= classes; l++)
        if (cost[l] < cost[best]) best = l;
    return best;
}

/* Adds what the classes leave of a block's rows: of those that make the shortlist, or of the others. */
static void add_costs(const struct tsr_training *t, const struct tsr_training_tile *tile, struct tsr_block_span b,
                      const struct tsr_weight_pairs *pairs, int classes, bool of_shortlist, uint32_t *cost)
{
    const struct tsr_predictor_shape shape = t->model->shape;
    const int16_t highest = (int16_t)((int32_t)t->range - 1 - BIAS);
    uint32_t sums[TSR_CLASS_LIMIT][8] = {{0}};
    for (int32_t y = b.row; y < b.end; y++) {
        if (tsr_is_shortlist_row(b, y) != of_shortlist) continue;
        const int16_t *tap[TSR_TAPS_LIMIT];
        tsr_tap_row(shape, &tile->own, tile->earlier, y, tap);
        t->ops->costs(tap, tsr_taps(shape), pairs, classes, b.column, b.columns, highest,
                      tile->own.first + y * tile->own.pitch, sums);
    }
    for (int c = 0; c < classes; c++)
        for (int i = 0; i < 8; i++) cost[c] += sums[c][i];
}

/* The class that leaves least of a block, the first of equals, of those on the shortlist; what it leaves. */
static int least_class(const struct tsr_training *t, const struct tsr_training_tile *tile, struct tsr_block_span b,
                       const struct tsr_weight_pairs *pairs, uint32_t *least)
{
    uint32_t cost[TSR_CLASS_LIMIT] = {0};
    add_costs(t, tile, b, pairs, t->plan.classes, true, cost);
    struct tsr_weight_pairs listed[2 * TSR_SHORTLIST];
    uint32_t listed_cost[2 * TSR_SHORTLIST];
    int class_of[2 * TSR_SHORTLIST];
    const int count = tsr_shortlist(t->plan.classes);
    for (int i = 0; i < count; i++) {
        int c = 0;
        for (int k = 1; k < t->plan.classes; k++)
            if (cost[k] < cost[c]) c = k;
        class_of[i] = c;
        listed[i] = pairs[c];
        listed_cost[i] = cost[c];
        cost[c] = UINT32_MAX;
    }
    add_costs(t, tile, b, listed, count, false, listed_cost);
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
    struct tsr_weight_pairs pairs[TSR_CLASS_LIMIT];
    for (int c = 0; c < classes; c++) tsr_pair_weights(t->model->weight[c], tsr_taps(t->model->shape), &pairs[c]);
    for (int32_t i = 0; i < blocks; i++) {
        if (!last && !takes_part(t, tile->number, across, i)) continue;
        const struct tsr_block_span b = block_at(&tile->own, across, i);
        const uint32_t median = median_cost(t, tile->number, i);
        uint32_t least = median;
        int best = classes;
        if (last && is_flat(t, tile->number, i)) {
            best = label_of_flat(t, tile, b);
            uint32_t cost = 0;
            if (best < classes) {
                add_costs(t, tile, b, &pairs[best], 1, true, &cost);
                add_costs(t, tile, b, &pairs[best], 1, false, &cost);
                least = cost;
            }
        } else {
            uint32_t cost;
            const int c = least_class(t, tile, b, pairs, &cost);
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
