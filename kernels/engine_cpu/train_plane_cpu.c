/* Training a plane's predictors, round by round; see the header. */
#include "train_plane_cpu.h"

#include <string.h>

#include "kernels/planes/planes_cpu.h"

/* A tile of a plane, padded before or by the pass that asks. */
static struct tsr_padded_tile padded_tile(const struct tsr_plane_work *work, int plane, uint32_t number)
{
    const struct tsr_tile tile = tsr_tile_at(work->image, work->frame, number);
    const struct tsr_encode_space *const s = work->space;
    int16_t *const padded = plane >= TSR_BASE_PLANE ? s->base.padded[plane - TSR_BASE_PLANE] : s->padded[plane];
    return tsr_padded_tile(padded + number * s->tile_padded, tile.width, tile.height);
}

struct tsr_training_tile tsr_training_tile_at(const struct tsr_plane_work *work, uint32_t number)
{
    struct tsr_training_tile tile = {.own = padded_tile(work, work->number, number), .number = number};
    for (int r = 0; r < work->plane->predictor.shape.references; r++)
        tile.earlier[r] = padded_tile(work, work->reference[r], number);
    return tile;
}

/* The first pass that reads padded tiles pads them: they are in the cache then. */
static void pad_tile(struct tsr_plane_work *work, uint32_t number)
{
    struct tsr_encode_space *s = work->space;
    const struct tsr_tile tile = tsr_tile_at(work->image, work->frame, number);
    tsr_pad_tile(s->planes[work->number] + tile.first, tile.stride, tile.width, tile.height,
                 s->padded[work->number] + number * s->tile_padded);
}

static void median_costs_pass(struct tsr_plane_work *work, uint32_t part, uint32_t number)
{
    if (!work->is_padded) pad_tile(work, number);
    const struct tsr_training_tile tile = tsr_training_tile_at(work, number);
    tsr_median_costs(work->space->training, &tile, &work->space->counts[part].sums);
}

static void sum_pass(struct tsr_plane_work *work, uint32_t part, uint32_t number)
{
    const struct tsr_training_tile tile = tsr_training_tile_at(work, number);
    tsr_sum_tile(work->space->training, &tile, work->round, &work->space->counts[part].sums,
                 (struct tsr_training_scratch *)(work->space->scratch + part * work->space->scratch_bytes));
}

static void label_pass(struct tsr_plane_work *work, uint32_t part, uint32_t number)
{
    const struct tsr_training_tile tile = tsr_training_tile_at(work, number);
    tsr_label_tile(work->space->training, &tile, work->round, &work->space->counts[part].sums);
}

static void count_labels_pass(struct tsr_plane_work *work, uint32_t part, uint32_t number)
{
    struct tsr_encode_space *s = work->space;
    tsr_count_labels(&work->plane->predictor, s->labels + number * s->tile_blocks,
                     tsr_tile_at(work->image, work->frame, number), s->counts[part].labels);
}

/* Sums of a part that passes add to: those of labels and bins, or products of the classes in use. */
struct sums_in_use {
    uint64_t *first;
    size_t count;
};

static struct sums_in_use sums_in_use(struct tsr_training_sums *sums, const struct tsr_training *t, int c)
{
    const int n = tsr_features(t->model->shape);
    if (c < 0)
        return (struct sums_in_use){(uint64_t *)sums, offsetof(struct tsr_training_sums, products) / sizeof(uint64_t)};
    return (struct sums_in_use){sums->products[c], (size_t)((n + 1) * (n + 2) / 2)};
}

/* Runs a pass that sums up, and adds up the sums of all parts. classes: whose products it sums up; 0: it sums up all
 * but products. */
static const struct tsr_training_sums *run_sums(struct tsr_plane_work *work, tsr_tile_pass *pass, int classes)
{
    struct tsr_encode_space *s = work->space;
    for (uint32_t part = 0; part < work->parts; part++)
        for (int c = -1; c < classes; c++) {
            const struct sums_in_use sums = sums_in_use(&s->counts[part].sums, s->training, c);
            memset(sums.first, 0, sums.count * sizeof *sums.first);
        }
    tsr_run_pass(work, pass);
    for (uint32_t part = 1; part < work->parts; part++)
        for (int c = -1; c < classes; c++) {
            const struct sums_in_use to = sums_in_use(&s->counts[0].sums, s->training, c),
                                     more = sums_in_use(&s->counts[part].sums, s->training, c);
            for (size_t i = 0; i < to.count; i++) to.first[i] += more.first[i];
        }
    return &s->counts[0].sums;
}

/* Labels' codes, from their counts. */
static void train_label_codes(struct tsr_plane_work *work)
{
    struct tsr_encode_space *s = work->space;
    struct tsr_predictor_model *model = &work->plane->predictor;
    tsr_run_counts(work, count_labels_pass, sizeof s->counts[0].labels);
    const int symbols = model->classes + 1;
    uint32_t *counts = s->counts[0].labels;
    model->label_tables = (uint8_t)tsr_merge_contexts(counts, symbols + 1, symbols, model->label_table_of, s->merge);
    for (int t = 0; t < model->label_tables; t++)
        tsr_huffman_lengths(counts + t * symbols, symbols, model->label_lengths[t], s->huffman);
}

/* Fits and labels under a plan; the sums are those of the last labels. */
static const struct tsr_training_sums *train_classes(struct tsr_plane_work *work, struct tsr_training_plan plan)
{
    struct tsr_encode_space *s = work->space;
    struct tsr_predictor_model *model = &work->plane->predictor;
    struct tsr_training *t = s->training;
    const struct tsr_training_sums *sums = NULL;
    memset(model, 0, sizeof *model);
    memset(t, 0, sizeof *t);
    t->plan = plan;
    t->model = model;
    t->ops = tsr_linear_ops(tsr_isa());
    t->range = work->plane->range;
    t->tile_blocks = (uint32_t)s->tile_blocks;
    t->label = s->labels;
    t->median_cost = s->median_costs;
    memset(s->labels, 0, work->tiles * s->tile_blocks); /* smaller tiles leave places at their ends */
    model->set = plan.set;
    model->shape.neighbours = TSR_AT(tsr_neighbours)[plan.set];
    model->shape.references = (uint8_t)tsr_min(work->references, TSR_REFERENCES_LIMIT);
    tsr_take_first_labels(t, run_sums(work, median_costs_pass, 0));
    work->is_padded = true;
    for (work->round = 0; work->round < plan.rounds; work->round++) {
        tsr_fit_classes(t, run_sums(work, sum_pass, plan.classes), s->solver);
        sums = run_sums(work, label_pass, 0);
        tsr_take_means(t, sums);
    }
    return sums;
}

void tsr_train_predictors(struct tsr_plane_work *work)
{
    struct tsr_encode_space *s = work->space;
    struct tsr_predictor_model *model = &work->plane->predictor;
    struct tsr_training_plan plans[TSR_TRAINING_PLANS];
    memset(model, 0, sizeof *model);
    const int count = tsr_training_plans(tsr_frame_plan(work->effort, work->image),
                                         (uint64_t)work->image->columns * work->image->rows, plans);
    if (count == 0) return;
    const struct tsr_training_sums *sums = NULL;
    int best = 0, last = 0;
    uint64_t least = UINT64_MAX;
    for (; last < count; last++) {
        sums = train_classes(work, plans[last]);
        const uint64_t cost = count > 1 ? tsr_training_cost(s->training, sums) : 0;
        if (cost < least) best = last;
        if (cost < least) least = cost;
    }
    if (best != last - 1) sums = train_classes(work, plans[best]);
    uint8_t renumbered[TSR_LABELS_LIMIT];
    tsr_drop_classes(s->training, sums, renumbered);
    if (model->classes == 0) {
        memset(model, 0, sizeof *model);
        return;
    }
    for (size_t i = 0; i < work->tiles * s->tile_blocks; i++) s->labels[i] = renumbered[s->labels[i]];
    train_label_codes(work);
}
