/* Encoding a frame on the CPU: raster to planes, planes to symbols, symbols to the tiles' payloads. */
#include <string.h>

#include "colours_cpu.h"
#include "cpu_engine.h"
#include "lapped_cpu.h"
#include "levels.h"
#include "levels_cpu.h"
#include "planes_cpu.h"
#include "predictive_cpu.h"
#include "range_cpu.h"
#include "transform_cpu.h"
#include "transform_plan.h"
#include "../entropy/rate_distortion.h"

union part_counts {
    struct tsr_level_counts levels;
    struct tsr_symbol_counts symbols;
    struct tsr_block_counts blocks;
    uint32_t labels[TSR_LABEL_CELLS * TSR_LABELS_LIMIT];
    struct tsr_training_sums sums;
    union tsr_entry_counts entries;
};

/* The work space of a frame. */
struct encode_space {
    struct tsr_frame_model *model;
    uint16_t *planes[TSR_PLANES_LIMIT];
    uint16_t *offsets[TSR_PLANES_LIMIT]; /* of packed histograms */
    struct tsr_symbol_planes symbols;    /* of the plane at work, path P with Huffman */
    int32_t *levels;                     /* of the plane at work, all else; shares its room with symbols */
    uint32_t *entries;                   /* likewise: what levels are coded as, tile_levels words a tile */
    uint8_t *payloads;                   /* by plane and tile, tile_payload bytes each */
    uint8_t *model_bytes;
    struct tsr_coded_tile *tiles;
    uint8_t *tile_sizes;
    union part_counts *counts; /* by part */
    uint8_t *scratch;          /* by part, scratch_bytes each */
    size_t tile_levels, tile_payload, scratch_bytes;
    struct tsr_range_work *range;
    struct tsr_colour_work *colours; /* with three components or more, as are the lists */
    uint16_t *lists[3];
    struct tsr_merge_work *merge;
    struct tsr_huffman_work *huffman;
    uint8_t *lapped; /* by tile, of the plane at work */
    tsr_code_table *codes;
    tsr_rans_table *rans_codes;
    struct tsr_value_codes *value_codes;
    int16_t *padded[TSR_PLANES_LIMIT]; /* path P: by tile, tile_padded samples each */
    uint8_t *labels;                   /* of the plane at work, tile_blocks a tile */
    uint32_t *median_costs;            /* likewise */
    size_t tile_padded, tile_blocks;
    struct tsr_training *training;
    struct tsr_solver *solver;
    union { /* path T */
        struct tsr_coefficient_codes *coefficient_codes;
        tsr_pair_codes *pair_codes;
        tsr_level_codes *level_codes;
    };
};

/* Lays the space out for one of the two cuts; returns its size. Sums stay far below 2^63 for every checked image. */
static size_t lay_out(struct encode_space *s, const struct tsr_pool *pool, const struct tsr_image *image,
                      const struct tsr_frame_model *cut, void *base)
{
    const size_t count = (size_t)image->columns * image->rows, tiles = tsr_tile_count(image, cut);
    const size_t parts = tsr_parts_of(pool, (uint32_t)tiles);
    const int planes = tsr_image_planes(image);
    size_t used = 0;
    s->tile_levels = tsr_tile_levels(cut->tile_width, cut->tile_height);
    s->tile_payload = tsr_raw_tile_bytes(65536, cut->tile_width, cut->tile_height);
    s->scratch_bytes = tsr_predict_scratch_bytes(cut->tile_width);
    const size_t lanes = tsr_code_scratch_bytes(cut->tile_width, cut->tile_height,
                                                tsr_lanes_for_tile(cut->tile_width, cut->tile_height));
    if (lanes > s->scratch_bytes) s->scratch_bytes = lanes;
    if (sizeof(struct tsr_training_scratch) > s->scratch_bytes) s->scratch_bytes = sizeof(struct tsr_training_scratch);
    const size_t units = tsr_lapped_scratch_bytes(cut->tile_width);
    const size_t entries = tsr_levels_scratch_bytes(TSR_LARGE_SLICE_BLOCKS);
    if (units > s->scratch_bytes) s->scratch_bytes = units;
    if (entries > s->scratch_bytes) s->scratch_bytes = entries;
    s->scratch_bytes = (s->scratch_bytes + 63) / 64 * 64;
    s->tile_padded = tsr_padded_samples(cut->tile_width, cut->tile_height);
    s->tile_blocks = (size_t)tsr_blocks_across(cut->tile_width) * (size_t)tsr_blocks_across(cut->tile_height);
    s->model = tsr_take(base, &used, sizeof *s->model);
    for (int p = 0; p < planes; p++) {
        s->planes[p] = tsr_take(base, &used, count * sizeof(uint16_t));
        s->offsets[p] = tsr_take(base, &used, 65536 * sizeof(uint16_t));
        s->padded[p] = tsr_take(base, &used, tiles * s->tile_padded * sizeof(int16_t));
    }
    s->labels = tsr_take(base, &used, tiles * s->tile_blocks);
    s->median_costs = tsr_take(base, &used, tiles * s->tile_blocks * sizeof(uint32_t));
    s->training = tsr_take(base, &used, sizeof *s->training);
    s->solver = tsr_take(base, &used, sizeof *s->solver);
    const size_t symbols_at = used;
    s->symbols.value = tsr_take(base, &used, count * sizeof(uint16_t));
    s->symbols.symbol = tsr_take(base, &used, count);
    s->symbols.context = tsr_take(base, &used, count);
    s->symbols.intensity = tsr_take(base, &used, count * sizeof(uint16_t));
    size_t levels_end = symbols_at;
    s->levels = tsr_take(base, &levels_end, tiles * s->tile_levels * sizeof(int32_t));
    s->entries = tsr_take(base, &levels_end, tiles * s->tile_levels * sizeof(uint32_t));
    if (levels_end > used) used = levels_end;
    s->payloads = tsr_take(base, &used, (size_t)planes * tiles * s->tile_payload);
    s->model_bytes = tsr_take(base, &used, TSR_FRAME_MODEL_LIMIT);
    s->tiles = tsr_take(base, &used, tiles * sizeof *s->tiles);
    s->tile_sizes = tsr_take(base, &used, tiles * TSR_TILE_SIZES_BYTES);
    s->counts = tsr_take(base, &used, parts * sizeof *s->counts);
    s->scratch = tsr_take(base, &used, parts * s->scratch_bytes);
    s->range = tsr_take(base, &used, sizeof *s->range);
    if (image->components >= 3) {
        s->colours = tsr_take(base, &used, sizeof *s->colours);
        for (int c = 0; c < 3; c++) s->lists[c] = tsr_take(base, &used, 65536 * sizeof(uint16_t));
    }
    s->merge = tsr_take(base, &used, sizeof *s->merge);
    s->huffman = tsr_take(base, &used, sizeof *s->huffman);
    s->codes = tsr_take(base, &used, TSR_MODEL_TABLES * sizeof *s->codes);
    s->rans_codes = tsr_take(base, &used, TSR_MODEL_TABLES * sizeof *s->rans_codes);
    s->value_codes = tsr_take(base, &used, sizeof *s->value_codes);
    s->lapped = tsr_take(base, &used, tiles);
    size_t codes_bytes = sizeof *s->coefficient_codes;
    if (TSR_PAIR_TABLES * sizeof *s->pair_codes > codes_bytes) codes_bytes = TSR_PAIR_TABLES * sizeof *s->pair_codes;
    if (TSR_LEVEL_TABLES * sizeof *s->level_codes > codes_bytes)
        codes_bytes = TSR_LEVEL_TABLES * sizeof *s->level_codes;
    s->coefficient_codes = tsr_take(base, &used, codes_bytes);
    return used;
}

size_t tsr_cpu_encode_space(const struct tsr_pool *pool, const struct tsr_image *image)
{
    struct encode_space space;
    struct tsr_frame_model cut;
    size_t most = 0;
    for (int coder = 0; coder < 2; coder++) {
        const int32_t align = tsr_tile_alignment(TSR_PATH_PREDICT, coder ? TSR_CODER_CAVLC : TSR_CODER_HUFFMAN);
        tsr_cut_tiles(image, align, &cut.tile_width, &cut.tile_height);
        const size_t size = lay_out(&space, pool, image, &cut, NULL);
        if (size > most) most = size;
    }
    return most;
}

/* ---- One plane ------------------------------------------------------------------------------------------- */

/* A plane at work, as the passes over its tiles see it. */
struct plane_work {
    struct tsr_pool *pool;
    const struct tsr_image *image;
    struct encode_space *space;
    const struct tsr_frame_model *frame;
    struct tsr_plane_model *plane;
    int number; /* of the plane */
    int level;
    int references, reference[TSR_PLANES_LIMIT]; /* earlier planes that predictors may refer to */
    int round;
    struct tsr_context_plan contexts; /* path P with Huffman or rANS */
    uint32_t tiles, parts;
    struct tsr_block_coding blocks;
    struct tsr_level_coding levels;
    int32_t lambda;  /* of lossy planes with lapping; 0: levels are rounded */
    bool cavlc_bits; /* they are chosen by the bits of CAVLC */
    bool fine;       /* with loss: see TSR_FINE_QP */
    struct tsr_context_map map;
    void (*pass)(struct plane_work *work, uint32_t part, uint32_t tile);
};

static void run_part(void *context, unsigned part)
{
    struct plane_work *work = context;
    const uint32_t first = (uint32_t)((uint64_t)part * work->tiles / work->parts);
    const uint32_t end = (uint32_t)((uint64_t)(part + 1) * work->tiles / work->parts);
    for (uint32_t tile = first; tile < end; tile++) work->pass(work, part, tile);
}

/* Calls pass for all tiles, those of one part one after the other. */
static void run_pass(struct plane_work *work, void (*pass)(struct plane_work *work, uint32_t part, uint32_t tile))
{
    work->pass = pass;
    tsr_pool_run(work->pool, run_part, work, work->parts);
}

/* Runs a pass that counts: the first bytes of each part's counts from 0 on, then added up, words of 32 bits, in part
 * 0's. */
static void run_counts(struct plane_work *work, void (*pass)(struct plane_work *work, uint32_t part, uint32_t tile),
                       size_t bytes)
{
    struct encode_space *s = work->space;
    uint32_t *sum = (uint32_t *)&s->counts[0];
    for (uint32_t part = 0; part < work->parts; part++) memset(&s->counts[part], 0, bytes);
    run_pass(work, pass);
    for (uint32_t part = 1; part < work->parts; part++) {
        const uint32_t *counts = (const uint32_t *)&s->counts[part];
        for (size_t i = 0; i < bytes / sizeof *counts; i++) sum[i] += counts[i];
    }
}

/* ---- Predictors */

/* A tile of a plane, padded before. */
static struct tsr_padded_tile padded_tile(const struct plane_work *work, int plane, uint32_t number)
{
    const struct tsr_tile tile = tsr_tile_at(work->image, work->frame, number);
    return tsr_padded_tile(work->space->padded[plane] + number * work->space->tile_padded, tile.width, tile.height);
}

static struct tsr_training_tile training_tile(const struct plane_work *work, uint32_t number)
{
    struct tsr_training_tile tile = {.own = padded_tile(work, work->number, number), .number = number};
    for (int r = 0; r < work->plane->predictor.shape.references; r++)
        tile.earlier[r] = padded_tile(work, work->reference[r], number);
    return tile;
}

static void pad_pass(struct plane_work *work, uint32_t part, uint32_t number)
{
    struct encode_space *s = work->space;
    const struct tsr_tile tile = tsr_tile_at(work->image, work->frame, number);
    (void)part;
    tsr_pad_tile(s->planes[work->number] + tile.first, tile.stride, tile.width, tile.height,
                 s->padded[work->number] + number * s->tile_padded);
}

static void median_costs_pass(struct plane_work *work, uint32_t part, uint32_t number)
{
    const struct tsr_training_tile tile = training_tile(work, number);
    tsr_median_costs(work->space->training, &tile, &work->space->counts[part].sums);
}

static void sum_pass(struct plane_work *work, uint32_t part, uint32_t number)
{
    const struct tsr_training_tile tile = training_tile(work, number);
    tsr_sum_tile(work->space->training, &tile, work->round, &work->space->counts[part].sums,
                 (struct tsr_training_scratch *)(work->space->scratch + part * work->space->scratch_bytes));
}

static void label_pass(struct plane_work *work, uint32_t part, uint32_t number)
{
    const struct tsr_training_tile tile = training_tile(work, number);
    const bool last = work->round + 1 == work->space->training->plan.rounds;
    tsr_label_tile(work->space->training, &tile, last, &work->space->counts[part].sums);
}

static void count_labels_pass(struct plane_work *work, uint32_t part, uint32_t number)
{
    struct encode_space *s = work->space;
    tsr_count_labels(&work->plane->predictor, s->labels + number * s->tile_blocks,
                     tsr_tile_at(work->image, work->frame, number), s->counts[part].labels);
}

/* Runs a pass that sums up, and adds up the sums of all parts: those of the classes in use. */
static const struct tsr_training_sums *run_sums(struct plane_work *work,
                                                void (*pass)(struct plane_work *work, uint32_t part, uint32_t tile))
{
    struct encode_space *s = work->space;
    struct tsr_training_sums *sums = &s->counts[0].sums;
    const size_t bytes =
        offsetof(struct tsr_training_sums, products) + s->training->plan.classes * sizeof sums->products[0];
    for (uint32_t part = 0; part < work->parts; part++) memset(&s->counts[part], 0, bytes);
    run_pass(work, pass);
    for (uint32_t part = 1; part < work->parts; part++) {
        const uint64_t *more = (const uint64_t *)&s->counts[part].sums;
        for (size_t i = 0; i < bytes / sizeof *more; i++) ((uint64_t *)sums)[i] += more[i];
    }
    return sums;
}

/* Labels' codes, from their counts. */
static void train_label_codes(struct plane_work *work)
{
    struct encode_space *s = work->space;
    struct tsr_predictor_model *model = &work->plane->predictor;
    run_counts(work, count_labels_pass, sizeof s->counts[0].labels);
    const int symbols = model->classes + 1;
    uint32_t *counts = s->counts[0].labels;
    model->label_tables = (uint8_t)tsr_merge_contexts(counts, symbols + 1, symbols, model->label_table_of, s->merge);
    for (int t = 0; t < model->label_tables; t++)
        tsr_huffman_lengths(counts + t * symbols, symbols, model->label_lengths[t], s->huffman);
}

/* Fits and labels under a plan; the sums are those of the last labels. */
static const struct tsr_training_sums *train_classes(struct plane_work *work, struct tsr_training_plan plan)
{
    struct encode_space *s = work->space;
    struct tsr_predictor_model *model = &work->plane->predictor;
    struct tsr_training *t = s->training;
    const struct tsr_training_sums *sums = NULL;
    memset(model, 0, sizeof *model);
    memset(t, 0, sizeof *t);
    t->plan = plan;
    t->model = model;
    t->ops = tsr_linear_ops(false);
    t->range = work->plane->range;
    t->tile_blocks = (uint32_t)s->tile_blocks;
    t->label = s->labels;
    t->median_cost = s->median_costs;
    memset(s->labels, 0, work->tiles * s->tile_blocks); /* smaller tiles leave places at their ends */
    model->set = plan.set;
    model->shape.neighbours = TSR_AT(tsr_neighbours)[plan.set];
    model->shape.references = (uint8_t)tsr_min(work->references, TSR_REFERENCES_LIMIT);
    tsr_take_first_labels(t, run_sums(work, median_costs_pass));
    for (work->round = 0; work->round < plan.rounds; work->round++) {
        tsr_fit_classes(t, run_sums(work, sum_pass), s->solver);
        sums = run_sums(work, label_pass);
        tsr_take_means(t, sums);
    }
    return sums;
}

/* Linear predictors, as the level has it, or none where no block prefers one. Of several plans the one whose residuals
 * and weights seem to cost least. */
static void train_predictors(struct plane_work *work)
{
    struct encode_space *s = work->space;
    struct tsr_predictor_model *model = &work->plane->predictor;
    struct tsr_training_plan plans[TSR_TRAINING_PLANS];
    memset(model, 0, sizeof *model);
    if (work->plane->coder == TSR_CODER_CAVLC) return;
    const int count =
        tsr_training_plans(tsr_level_plan(work->level), (uint64_t)work->image->columns * work->image->rows, plans);
    if (count == 0) return;
    run_pass(work, pad_pass);
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

static void predict_pass(struct plane_work *work, uint32_t part, uint32_t tile)
{
    struct encode_space *s = work->space;
    struct tsr_tile_predictors predictors = {&work->plane->predictor, NULL, NULL, {.number = tile}};
    if (predictors.model->set) {
        predictors.ops = s->training->ops;
        predictors.label = s->labels + tile * s->tile_blocks;
        predictors.tile = training_tile(work, tile);
    }
    tsr_predict_tile(s->planes[work->number], tsr_tile_at(work->image, work->frame, tile), work->plane->range,
                     predictors.model->set ? &predictors : NULL, work->contexts.period, work->contexts.cuts_period,
                     s->symbols, &s->counts[part].levels, s->scratch + part * s->scratch_bytes);
}

static void count_pass(struct plane_work *work, uint32_t part, uint32_t tile)
{
    struct encode_space *s = work->space;
    tsr_count_tile(s->symbols, tsr_tile_at(work->image, work->frame, tile), &work->map, work->contexts.period,
                   &s->counts[part].symbols);
}

static void blocks_pass(struct plane_work *work, uint32_t part, uint32_t tile)
{
    struct encode_space *s = work->space;
    (void)part;
    tsr_blocks_forward(s->planes[work->number], tsr_tile_at(work->image, work->frame, tile), work->blocks,
                       s->levels + tile * s->tile_levels);
}

/* With loss and lapping: lapped or not, what seems to cost less. */
static void lapped_pass(struct plane_work *work, uint32_t part, uint32_t tile_number)
{
    struct encode_space *s = work->space;
    const struct tsr_tile tile = tsr_tile_at(work->image, work->frame, tile_number);
    const uint16_t *samples = s->planes[work->number];
    int32_t *levels = s->levels + tile_number * s->tile_levels;
    void *scratch = s->scratch + part * s->scratch_bytes;
    const struct tsr_block_steps steps = {work->plane->qp_index, (int32_t)work->plane->coarser_by,
                                          work->plane->coarser_from};
    bool lapped = !work->fine;
    if (lapped) {
        tsr_lapped_forward(samples, tile, steps, true, levels, scratch);
        lapped = tsr_rough_tile_cost(levels, tile) <= tsr_rough_plain_cost(samples, tile, steps);
    }
    if (!lapped) tsr_lapped_forward(samples, tile, steps, false, levels, scratch);
    s->lapped[tile_number] = lapped;
    tsr_choose_levels(levels, tile, lapped, work->lambda, work->cavlc_bits, scratch);
}

static void count_entries_pass(struct plane_work *work, uint32_t part, uint32_t tile)
{
    struct encode_space *s = work->space;
    tsr_count_entries(s->levels + tile * s->tile_levels, tsr_tile_at(work->image, work->frame, tile), work->levels,
                      &s->counts[part].entries, s->entries + tile * s->tile_levels, s->tile_levels,
                      s->scratch + part * s->scratch_bytes);
}

static void count_blocks_pass(struct plane_work *work, uint32_t part, uint32_t tile)
{
    struct encode_space *s = work->space;
    tsr_count_blocks(s->levels + tile * s->tile_levels, tsr_tile_at(work->image, work->frame, tile),
                     work->blocks.slice_side, &s->counts[part].blocks);
}

/* Samples as they are, in as many bits as their range needs. */
static size_t put_raw_tile(const uint16_t *samples, struct tsr_tile tile, uint32_t range, uint8_t *payload, size_t size)
{
    const int bits = tsr_bit_width(range - 1);
    struct tsr_bit_writer writer = tsr_bit_writer(payload, size);
    for (int32_t y = 0; y < tile.height; y++)
        for (int32_t x = 0; x < tile.width; x++)
            tsr_put_bits(&writer, samples[tile.first + (size_t)y * tile.stride + (size_t)x], bits);
    const size_t written = tsr_flush_bits(&writer);
    assert(written == size && !writer.overflow);
    return written;
}

/* Labels, then words; 0 if that takes more than capacity bytes. */
static size_t code_predicted_tile(struct plane_work *work, uint32_t part, uint32_t number, uint8_t *payload,
                                  size_t capacity)
{
    struct encode_space *s = work->space;
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
            : tsr_code_tile(s->symbols, tile, &plane->residual, (const tsr_code_table *)s->codes, payload + labels,
                            capacity - labels, scratch);
    return words ? labels + words : 0;
}

static void code_pass(struct plane_work *work, uint32_t part, uint32_t number)
{
    struct encode_space *s = work->space;
    const struct tsr_plane_model *plane = work->plane;
    const struct tsr_tile tile = tsr_tile_at(work->image, work->frame, number);
    const size_t raw_bytes = tsr_raw_tile_bytes(plane->range, tile.width, tile.height);
    uint8_t *payload = s->payloads + ((size_t)work->number * work->tiles + number) * s->tile_payload;
    const int32_t *levels = s->levels + number * s->tile_levels;
    void *scratch = s->scratch + part * s->scratch_bytes;
    const size_t flag = plane->lapping; /* FORMAT.md 8.7: a byte in front says whether the tile is lapped */
    size_t size;
    if (raw_bytes <= flag + 1)
        size = 0;
    else if (plane->path == TSR_PATH_PREDICT && plane->coder != TSR_CODER_CAVLC)
        size = code_predicted_tile(work, part, number, payload, raw_bytes - 1);
    else if (plane->coder == TSR_CODER_RANS || plane->pairs) {
        struct tsr_level_tables tables = {0};
        tables.level = &plane->level;
        tables.level_codes = (const tsr_level_codes *)s->level_codes;
        tables.pair = &plane->pair;
        tables.pair_codes = (const tsr_pair_codes *)s->pair_codes;
        size = tsr_code_levels(levels, tile, work->levels, &tables, s->entries + number * s->tile_levels,
                               payload + flag, raw_bytes - 1 - flag, scratch);
    } else if (plane->coder == TSR_CODER_HUFFMAN)
        size = tsr_code_slices(levels, tile, plane->slice_side, s->coefficient_codes, &plane->coefficient,
                               payload + flag, raw_bytes - 1 - flag);
    else
        size = tsr_code_slices(levels, tile, plane->slice_side, NULL, NULL, payload + flag, raw_bytes - 1 - flag);
    if (size != 0 && flag) {
        payload[0] = s->lapped[number];
        size += flag;
    }
    if (size == 0) size = put_raw_tile(s->planes[work->number], tile, plane->range, payload, raw_bytes);
    s->tiles[number].segment[1 + work->number].bytes = payload;
    s->tiles[number].segment[1 + work->number].size = size;
}

/* Tables' codes, from their counts. */
static void train_codes(struct plane_work *work, const struct tsr_symbol_counts *symbols)
{
    struct encode_space *s = work->space;
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
}

/* Path P with Huffman or rANS: symbols, contexts, tables. */
static void train_residual_model(struct plane_work *work)
{
    struct encode_space *s = work->space;
    struct tsr_residual_model *model = &work->plane->residual;
    const struct tsr_context_plan plan = work->contexts;
    memset(model, 0, sizeof *model);
    model->lanes = (uint8_t)tsr_lanes_for_tile(work->frame->tile_width, work->frame->tile_height);

    run_counts(work, predict_pass, sizeof(struct tsr_level_counts));
    struct tsr_level_counts *levels = &s->counts[0].levels;
    levels->activity[1]++, levels->intensity[0]++; /* the sampled rows may have no activity */
    model->activity_cuts =
        (uint8_t)tsr_cut_quantiles(levels->activity, TSR_ACTIVITY_LEVELS, plan.activity_groups, model->activity_cut);
    model->intensity_cuts = (uint8_t)tsr_cut_quantiles(levels->intensity, TSR_INTENSITY_LEVELS, plan.intensity_groups,
                                                       model->intensity_cut);
    tsr_map_contexts(&work->map, model);

    run_counts(work, count_pass,
               offsetof(struct tsr_symbol_counts, cell) +
                   (size_t)tsr_model_cells(model) * sizeof s->counts[0].symbols.cell[0]);
    struct tsr_symbol_counts *symbols = &s->counts[0].symbols;
    if (work->contexts.period > 0) symbols->cell[0][0]++; /* one table at least */
    model->tables = (uint8_t)tsr_merge_contexts(&symbols->cell[0][0], tsr_model_cells(model), TSR_RESIDUAL_SYMBOLS,
                                                model->table_of, s->merge);
    if (work->contexts.period > 0) tsr_count_unseen(model, work->plane->range, work->frame->tile_width, symbols);
    train_codes(work, symbols);
    if (work->contexts.period > 0) tsr_build_value_codes(s->value_codes, (const tsr_code_table *)s->codes, model);
}

/* Run-level Huffman: tables. */
static void train_coefficient_model(struct plane_work *work)
{
    struct encode_space *s = work->space;
    struct tsr_coefficient_model *model = &work->plane->coefficient;
    memset(model, 0, sizeof *model);
    run_counts(work, count_blocks_pass, sizeof(struct tsr_block_counts));
    struct tsr_block_counts *counts = &s->counts[0].blocks;
    model->dc_tables =
        (uint8_t)tsr_merge_contexts(&counts->dc[0][0], TSR_DC_CELLS, TSR_DC_SYMBOLS, model->dc_table_of, s->merge);
    model->ac_tables =
        (uint8_t)tsr_merge_contexts(&counts->ac[0][0], TSR_AC_CELLS, TSR_AC_SYMBOLS, model->ac_table_of, s->merge);
    for (int t = 0; t < model->dc_tables; t++) {
        tsr_huffman_lengths(counts->dc[t], TSR_DC_SYMBOLS, model->dc_lengths[t], s->huffman);
        tsr_huffman_codewords(model->dc_lengths[t], TSR_DC_SYMBOLS, s->coefficient_codes->dc[t]);
    }
    for (int t = 0; t < model->ac_tables; t++) {
        tsr_huffman_lengths(counts->ac[t], TSR_AC_SYMBOLS, model->ac_lengths[t], s->huffman);
        tsr_huffman_codewords(model->ac_lengths[t], TSR_AC_SYMBOLS, s->coefficient_codes->ac[t]);
    }
}

/* Magnitudes that contexts see are shifted so that most of them stay below TSR_MAGNITUDE_CAP: by a sample of blocks. */
static int magnitude_shift_of(const struct plane_work *work)
{
    const struct encode_space *s = work->space;
    uint64_t sum = 0, count = 0;
    for (uint32_t t = 0; t < work->tiles; t++) {
        const struct tsr_tile tile = tsr_tile_at(work->image, work->frame, t);
        const int32_t *levels = s->levels + t * s->tile_levels;
        for (size_t i = 0; i < tsr_tile_levels(tile.width, tile.height); i += TSR_MAGNITUDE_STEP * TSR_BLOCK_SAMPLES)
            for (int p = 1; p < TSR_BLOCK_SAMPLES; p++, count++) sum += (uint32_t)tsr_abs(levels[i + (size_t)p]);
    }
    return tsr_magnitude_shift(sum, count);
}

/* rANS, and Huffman of pairs: tables. */
static void train_entries(struct plane_work *work)
{
    struct encode_space *s = work->space;
    struct tsr_plane_model *plane = work->plane;
    work->levels.magnitude_shift = magnitude_shift_of(work);
    run_counts(work, count_entries_pass, sizeof(union tsr_entry_counts));
    union tsr_entry_counts *counts = &s->counts[0].entries;
    if (plane->pairs) {
        struct tsr_pair_model *model = &plane->pair;
        memset(model, 0, sizeof *model);
        model->magnitude_shift = (uint8_t)work->levels.magnitude_shift;
        for (int g = 0; g < TSR_PAIR_GROUPS; g++) {
            const int first = g * TSR_ENERGY_LEVELS;
            model->tables[g] = (uint8_t)tsr_merge_contexts(counts->pair[first], TSR_ENERGY_LEVELS, TSR_PAIR_SYMBOLS,
                                                           model->table_of + first, s->merge);
            for (int t = first; t < first + model->tables[g]; t++) {
                tsr_huffman_lengths(counts->pair[t], TSR_PAIR_SYMBOLS, model->lengths[t], s->huffman);
                tsr_huffman_codewords(model->lengths[t], TSR_PAIR_SYMBOLS, s->pair_codes[t]);
            }
        }
        return;
    }
    struct tsr_level_model *model = &plane->level;
    memset(model, 0, sizeof *model);
    model->magnitude_shift = (uint8_t)work->levels.magnitude_shift;
    for (int g = 0; g < TSR_LEVEL_GROUPS; g++) {
        const int first = g * TSR_ENERGY_LEVELS;
        model->tables[g] = (uint8_t)tsr_merge_contexts(counts->level[first], TSR_ENERGY_LEVELS, TSR_LEVEL_SYMBOLS,
                                                       model->table_of + first, s->merge);
        for (int t = first; t < first + model->tables[g]; t++) {
            model->mantissa[t] = (uint8_t)tsr_rans_weights(counts->level[t], TSR_LEVEL_SYMBOLS, model->weight[t]);
            tsr_rans_symbols(model->weight[t], TSR_LEVEL_SYMBOLS, s->level_codes[t]);
        }
    }
}

static void encode_plane(struct plane_work *work)
{
    struct tsr_plane_model *plane = work->plane;
    if (plane->path == TSR_PATH_PREDICT)
        work->contexts = tsr_context_plan(tsr_level_plan(work->level), plane->coder,
                                          (uint64_t)work->image->columns * work->image->rows);
    if (plane->path == TSR_PATH_PREDICT) train_predictors(work);
    if (plane->path == TSR_PATH_PREDICT && plane->coder != TSR_CODER_CAVLC) {
        train_residual_model(work);
    } else {
        work->blocks.kind = plane->path == TSR_PATH_PREDICT ? TSR_BLOCKS_RESIDUAL
                            : plane->lossy                  ? TSR_BLOCKS_QUANTISED
                                                            : TSR_BLOCKS_REVERSIBLE;
        work->blocks.qp_index = plane->qp_index;
        work->blocks.coarser_by = (int32_t)plane->coarser_by;
        work->blocks.coarser_from = plane->coarser_from;
        work->blocks.range = plane->range;
        work->blocks.slice_side = plane->slice_side;
        work->levels.slice_side = plane->slice_side;
        work->levels.pairs = plane->pairs;
        run_pass(work, plane->lapping ? lapped_pass : blocks_pass);
        if (plane->coder == TSR_CODER_RANS || plane->pairs)
            train_entries(work);
        else if (plane->coder == TSR_CODER_HUFFMAN)
            train_coefficient_model(work);
    }
    run_pass(work, code_pass);
}

/* ---- The frame ------------------------------------------------------------------------------------------- */

void tsr_put_tile_sizes(struct tsr_coded_tile *tile, int planes, uint8_t *sizes)
{
    struct tsr_segment *segment = tile->segment;
    size_t used = 0;
    int last = planes;
    while (last > 0 && segment[last].size == 0) last--;
    for (int p = 1; p < last; p++) {
        if (segment[p].size == 0) continue; /* not coded: a coded plane has at least a byte */
        size_t value = segment[p].size;
        for (; value >= 128; value >>= 7) sizes[used++] = (uint8_t)(value | 128);
        sizes[used++] = (uint8_t)value;
    }
    segment[0].bytes = sizes;
    segment[0].size = used;
    tile->segments = last + 1;
}

void tsr_cpu_encode_frame(struct tsr_pool *pool, const struct tsr_image *image, const struct tsr_coding *coding,
                          struct tsr_encode_job *job, void *workspace)
{
    struct encode_space space;
    struct tsr_frame_model cut;
    const size_t count = (size_t)image->columns * image->rows;
    tsr_cut_tiles(image, tsr_tile_alignment(coding->path, coding->coder), &cut.tile_width, &cut.tile_height);
    lay_out(&space, pool, image, &cut, workspace);
    struct tsr_frame_model *model = space.model;
    memset(model, 0, sizeof *model);
    model->tile_width = cut.tile_width;
    model->tile_height = cut.tile_height;
    const uint32_t tiles = tsr_tile_count(image, model);
    memset(space.tiles, 0, tiles * sizeof *space.tiles);

    tsr_split_raster(image, job->raster, space.planes, model);
    const bool transforms = coding->lossy && coding->path == TSR_PATH_TRANSFORM;
    model->max_error = coding->lossy && !transforms ? coding->max_error : 0;
    int bits = tsr_first_plane_bits(image, model->max_error);
    for (int p = 0; p < image->components && model->max_error > 0; p++)
        tsr_quantise_samples(space.planes[p], count, tsr_frame_near_lossless(image, model->max_error));
    if (image->components >= 3) {
        for (int c = 0; c < 3; c++) model->colours.list[c] = space.lists[c];
        if (coding->path == TSR_PATH_PREDICT)
            tsr_pack_colours(space.planes, image->columns, image->rows, bits, &model->colours, space.colours);
        bits = tsr_packed_colour_bits(&model->colours, bits);
        model->colour = tsr_choose_colour(space.planes, image->columns, image->rows, bits, transforms);
        tsr_apply_colour(space.planes, count, model->colour, bits);
    }
    for (int p = 0; p < model->planes; p++) {
        struct tsr_plane_model *plane = &model->plane[p];
        if (!plane->present) continue;
        plane->offset = space.offsets[p];
        plane->path = coding->path;
        plane->coder = coding->coder;
        const struct tsr_transform_plan plan = tsr_transform_plan(image, coding, model->colour, p);
        tsr_take_plan(plane, &plan);
        tsr_choose_range(space.planes[p], image->columns, image->rows, !plane->lossy, plane, space.range);
        if (plane->span == 1) continue;
        struct plane_work work = {0};
        work.pool = pool;
        work.image = image;
        work.space = &space;
        work.frame = model;
        work.plane = plane;
        work.number = p;
        work.level = coding->level;
        work.references = tsr_reference_planes(image, model, p, work.reference);
        work.tiles = tiles;
        work.parts = tsr_parts_of(pool, tiles);
        work.fine = plan.fine;
        work.lambda = plan.chooses ? TSR_RATE_LAMBDA : 0;
        work.cavlc_bits = plan.cavlc_bits;
        encode_plane(&work);
    }
    for (uint32_t t = 0; t < tiles; t++)
        tsr_put_tile_sizes(&space.tiles[t], model->planes, space.tile_sizes + t * TSR_TILE_SIZES_BYTES);

    struct tsr_bit_writer writer = tsr_bit_writer(space.model_bytes, TSR_FRAME_MODEL_LIMIT);
    tsr_put_frame_model(&writer, image, model);
    job->coded.model.bytes = space.model_bytes;
    job->coded.model.size = tsr_flush_bits(&writer);
    assert(!writer.overflow);
    job->coded.tiles = tiles;
    job->coded.tile = space.tiles;
}
