/* Residuals of path P to tables and payloads; see the header. */
#include "encode_residuals_cpu.h"

#include <string.h>

#include "train_plane_cpu.h"

/* The predictors of a tile; NULL for the median edge predictor alone. */
static const struct tsr_tile_predictors *predictors_of(struct tsr_plane_work *work, uint32_t tile,
                                                       struct tsr_tile_predictors *predictors)
{
    const struct tsr_encode_space *s = work->space;
    if (!work->plane->predictor.set) return NULL;
    predictors->model = &work->plane->predictor;
    predictors->ops = s->training->ops;
    predictors->label = s->labels + tile * s->tile_blocks;
    predictors->tile = tsr_training_tile_at(work, tile);
    return predictors;
}

static void predict_pass(struct tsr_plane_work *work, uint32_t part, uint32_t tile)
{
    struct tsr_encode_space *s = work->space;
    struct tsr_tile_predictors room;
    uint8_t *const scratch = s->scratch + part * s->scratch_bytes;
    tsr_predict_tile(s->planes[work->number], tsr_tile_at(work->image, work->frame, tile), work->plane->range,
                     predictors_of(work, tile, &room), work->contexts.cuts_period,
                     tsr_symbol_row(work->frame->tile_width, scratch), &s->counts[part].bins, scratch);
}

static void count_pass(struct tsr_plane_work *work, uint32_t part, uint32_t tile)
{
    struct tsr_encode_space *s = work->space;
    struct tsr_tile_predictors room;
    uint8_t *const scratch = s->scratch + part * s->scratch_bytes;
    const bool is_coded_from_samples = work->contexts.period > 0;
    tsr_count_tile(s->planes[work->number], tsr_tile_at(work->image, work->frame, tile), work->plane->range,
                   predictors_of(work, tile, &room), work->contexts.period, &work->map,
                   is_coded_from_samples ? tsr_symbol_row(work->frame->tile_width, scratch) : s->symbols,
                   &s->counts[part].symbols, scratch);
}

/* Tables' codes, from their counts. */
static void train_codes(struct tsr_plane_work *work, const struct tsr_symbol_counts *symbols)
{
    struct tsr_encode_space *s = work->space;
    struct tsr_residual_model *model = &work->plane->residual;
    if (work->plane->coder == TSR_CODER_RANS) {
        for (int t = 0; t < TSR_FIRST_RESIDUAL_TABLE; t++)
            model->mantissa[t] = (uint8_t)tsr_rans_weights(symbols->special[t], TSR_RUN_ALPHABET, model->weights[t]);
        for (int t = 0; t < model->tables; t++)
            model->mantissa[TSR_FIRST_RESIDUAL_TABLE + t] = (uint8_t)tsr_rans_weights(
                symbols->cell[t], TSR_RESIDUAL_SYMBOLS, model->weights[TSR_FIRST_RESIDUAL_TABLE + t]);
        for (int t = 0; t < TSR_FIRST_RESIDUAL_TABLE + model->tables; t++)
            tsr_rans_symbols(model->weights[t], TSR_RUN_ALPHABET, s->rans_codes[t]);
        return;
    }
    for (int t = 0; t < TSR_FIRST_RESIDUAL_TABLE; t++)
        tsr_huffman_lengths(symbols->special[t], TSR_RUN_ALPHABET, model->lengths[t], s->huffman);
    for (int t = 0; t < model->tables; t++)
        tsr_huffman_lengths(symbols->cell[t], TSR_RESIDUAL_SYMBOLS, model->lengths[TSR_FIRST_RESIDUAL_TABLE + t],
                            s->huffman);
    model->refill_bits = (uint8_t)tsr_model_refill_bits(model);
    tsr_build_codes(s->codes, model);
    tsr_build_value_codes(s->value_codes, (const tsr_code_table *)s->codes, model);
}

/* What the symbols of all tables cost, with the tables' descriptions. */
static uint64_t cost_of(const struct tsr_symbol_counts *symbols, int tables)
{
    uint64_t cost = 0;
    for (int t = 0; t < TSR_FIRST_RESIDUAL_TABLE + tables; t++) {
        const bool special = t < TSR_FIRST_RESIDUAL_TABLE;
        const uint32_t *const count = special ? symbols->special[t] : symbols->cell[t - TSR_FIRST_RESIDUAL_TABLE];
        struct tsr_trial_sums sums = {0};
        for (int s = 0; s < (special ? TSR_RUN_ALPHABET : TSR_RESIDUAL_SYMBOLS); s++)
            tsr_add_trial_count(&sums, s, count[s], s > 0 ? count[s - 1] : 1);
        cost += tsr_trial_cost(&sums);
    }
    return cost;
}

/* The cuts of the groups, from some of the rows. */
static void find_cuts(struct tsr_plane_work *work)
{
    struct tsr_residual_model *model = &work->plane->residual;
    const struct tsr_context_plan plan = work->contexts;
    tsr_run_counts(work, predict_pass, sizeof(struct tsr_bin_counts));
    struct tsr_bin_counts *bins = &work->space->counts[0].bins;
    bins->activity[1]++, bins->intensity[0]++; /* the sampled rows may have no activity */
    model->activity_cuts =
        (uint8_t)tsr_cut_quantiles(bins->activity, TSR_ACTIVITY_BINS, plan.activity_groups, model->activity_cut);
    model->intensity_cuts =
        (uint8_t)tsr_cut_quantiles(bins->intensity, TSR_INTENSITY_BINS, plan.intensity_groups, model->intensity_cut);
}

/* Symbols and, with the cuts known, the tables of their contexts. */
static void find_tables(struct tsr_plane_work *work)
{
    struct tsr_encode_space *s = work->space;
    struct tsr_residual_model *model = &work->plane->residual;
    tsr_map_contexts(&work->map, model);
    tsr_run_counts(work, count_pass,
                   offsetof(struct tsr_symbol_counts, cell) +
                       (size_t)tsr_model_cells(model) * sizeof s->counts[0].symbols.cell[0]);
    struct tsr_symbol_counts *symbols = &s->counts[0].symbols;
    if (work->contexts.period > 0) symbols->cell[0][0]++; /* one table at least */
    model->tables = (uint8_t)tsr_merge_contexts(&symbols->cell[0][0], tsr_model_cells(model), TSR_RESIDUAL_SYMBOLS,
                                                model->table_of, s->merge);
}

/* The cuts of a model. */
struct cuts {
    uint8_t activity_cuts, intensity_cuts;
    uint16_t activity_cut[TSR_ACTIVITY_GROUPS - 1], intensity_cut[TSR_INTENSITY_GROUPS - 1];
};

static struct cuts keep_cuts(const struct tsr_residual_model *model)
{
    struct cuts cuts = {.activity_cuts = model->activity_cuts, .intensity_cuts = model->intensity_cuts};
    memcpy(cuts.activity_cut, model->activity_cut, sizeof cuts.activity_cut);
    memcpy(cuts.intensity_cut, model->intensity_cut, sizeof cuts.intensity_cut);
    return cuts;
}

static void take_cuts(struct tsr_residual_model *model, const struct cuts *cuts)
{
    model->activity_cuts = cuts->activity_cuts;
    model->intensity_cuts = cuts->intensity_cuts;
    memcpy(model->activity_cut, cuts->activity_cut, sizeof model->activity_cut);
    memcpy(model->intensity_cut, cuts->intensity_cut, sizeof model->intensity_cut);
}

/* Finds the cuts, of anchored residuals if those take fewer bits in some of the rows. */
static void choose_anchors(struct tsr_plane_work *work)
{
    struct cuts cuts[2];
    uint64_t cost[2];
    const struct tsr_context_plan plan = work->contexts;
    work->contexts.period = tsr_trial_period((uint64_t)work->image->columns * work->image->rows);
    for (int anchored = 0; anchored < 2; anchored++) {
        work->plane->predictor.anchored = anchored != 0;
        find_cuts(work);
        cuts[anchored] = keep_cuts(&work->plane->residual);
        find_tables(work);
        cost[anchored] = cost_of(&work->space->counts[0].symbols, work->plane->residual.tables);
    }
    work->contexts = plan;
    work->plane->predictor.anchored = tsr_trial_takes_anchors(cost[0], cost[1]);
    take_cuts(&work->plane->residual, &cuts[work->plane->predictor.anchored]);
}

void tsr_train_residuals(struct tsr_plane_work *work)
{
    struct tsr_residual_model *model = &work->plane->residual;
    const struct tsr_effort_plan effort = tsr_effort_plan(work->effort);
    work->contexts = tsr_context_plan(effort, work->plane->coder, (uint64_t)work->image->columns * work->image->rows);
    memset(model, 0, sizeof *model);
    model->lanes = (uint8_t)tsr_lanes_for_tile(work->frame->tile_width, work->frame->tile_height);
    if (work->plane->predictor.set && work->number < work->image->components && tsr_tries_anchors(effort, work->image))
        choose_anchors(work);
    else
        find_cuts(work);
    find_tables(work);
    struct tsr_symbol_counts *symbols = &work->space->counts[0].symbols;
    if (work->contexts.period > 0) tsr_count_unseen(model, work->plane->range, work->frame->tile_width, symbols);
    train_codes(work, symbols);
}

uint64_t tsr_estimate_residuals(struct tsr_plane_work *work)
{
    const struct tsr_effort_plan effort = tsr_effort_plan(work->effort);
    const uint64_t samples = (uint64_t)work->image->columns * work->image->rows;
    const int32_t period = tsr_trial_period(samples), rows = work->frame->tile_height;
    uint64_t counted = 0;
    for (int32_t y = 0; y < rows; y++) counted += tsr_row_is_sampled(y, period);
    work->contexts = tsr_context_plan(effort, work->plane->coder, samples);
    work->contexts.period = period;
    memset(&work->plane->residual, 0, sizeof work->plane->residual);
    find_cuts(work);
    find_tables(work);
    const uint64_t cost = cost_of(&work->space->counts[0].symbols, work->plane->residual.tables);
    return (cost >> (TSR_COST_SHIFT + 3)) * (uint64_t)rows / counted;
}

size_t tsr_code_residuals(struct tsr_plane_work *work, uint32_t part, uint32_t number, uint8_t *payload,
                          size_t capacity)
{
    struct tsr_encode_space *s = work->space;
    const struct tsr_plane_model *plane = work->plane;
    const struct tsr_tile tile = tsr_tile_at(work->image, work->frame, number);
    size_t labels = 0;
    if (plane->predictor.set) {
        labels = tsr_code_labels(&plane->predictor, s->labels + number * s->tile_blocks, tile, payload, capacity);
        if (labels == SIZE_MAX) return 0;
    }
    void *scratch = s->scratch + part * s->scratch_bytes;
    const size_t words =
        work->contexts.period > 0
            ? tsr_code_tile_once(s->planes[work->number], tile, plane->range, &plane->residual, s->value_codes,
                                 (const tsr_code_table *)s->codes, payload, capacity, scratch)
        : plane->coder == TSR_CODER_RANS
            ? tsr_rans_code_tile(s->symbols, tile, &plane->residual, (const tsr_rans_table *)s->rans_codes,
                                 payload + labels, capacity - labels, scratch)
            : tsr_code_tile(s->symbols, tile, &plane->residual, s->value_codes, (const tsr_code_table *)s->codes,
                            payload + labels, capacity - labels, scratch);
    return words ? labels + words : 0;
}
