/* Encoding a frame on the CPU: raster to planes, planes to symbols, symbols to the tiles' payloads. */
#include <stddef.h>
#include <string.h>

#include "encode_cpu.h"
#include "encode_blocks_cpu.h"
#include "train_plane_cpu.h"
#include "encode_drawn_cpu.h"
#include "encode_residuals_cpu.h"
#include "kernels/blocks/intra_cpu.h"
#include "kernels/drawn/drawn_cpu.h"
#include "kernels/planes/planes_cpu.h"
#include "kernels/blocks/lapped_cpu.h"
#include "bands_cpu.h"
#include "kernels/transform_plan.h"
#include "entropy/rate_distortion.h"

/* ---- Work space ------------------------------------------------------------------------------------------ */

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* The most scratch that a part needs at any time, for tiles of this size; intra: they may be predicted. Drawn tiles
 * have theirs elsewhere. */
static size_t scratch_bytes(int32_t width, int32_t height, bool intra)
{
    size_t most = tsr_predict_scratch_bytes(width);
    most = larger(most, tsr_code_scratch_bytes(width, height, tsr_lanes_for_tile(width, height)));
    most = larger(most, sizeof(struct tsr_training_scratch));
    most = larger(most, tsr_lapped_scratch_bytes(width));
    most = larger(most, tsr_choose_scratch_bytes(width));
    most = larger(most, tsr_dc_choice_scratch_bytes(width));
    if (intra) most = larger(most, tsr_intra_scratch_bytes(width, height));
    most = larger(most, tsr_coefficients_scratch_bytes(TSR_LARGE_SLICE_BLOCKS));
    return (most + 63) / 64 * 64;
}

/* Whether predictors of a later plane may refer to plane p: see tsr_reference_planes. */
static bool is_referred_to(const struct tsr_image *image, int p)
{
    return p < image->components - 1;
}

/* Which parts of the space a coding uses. */
struct parts_in_use {
    bool symbols, coefficients, entries, classes, dcs, intra, drawn;
    bool training; /* predictors: samples of padded tiles, which those of later planes may refer to */
};

static struct parts_in_use parts_in_use(const struct tsr_image *image, const struct tsr_coding *coding)
{
    const bool by_lanes = coding->path == TSR_PATH_PREDICT && coding->coder != TSR_CODER_CAVLC;
    const struct tsr_effort_plan effort = tsr_effort_plan(coding->effort);
    const uint64_t samples = (uint64_t)image->columns * image->rows;
    return (struct parts_in_use){
        .symbols = by_lanes && tsr_context_plan(effort, coding->coder, samples).period == 0,
        .coefficients = !by_lanes,
        .entries = !by_lanes && coding->coder != TSR_CODER_CAVLC,
        .classes = coding->path == TSR_PATH_TRANSFORM && coding->lossy && coding->tune == TSR_TUNE_SSIM,
        .dcs = tsr_may_have_dc_planes(coding),
        .intra = tsr_may_have_intra(coding),
        .drawn = tsr_tries_drawn(coding),
        .training = by_lanes && effort.neighbours_set > 0,
    };
}

/* Rooms of the planes' samples and payloads. A plane beyond those of components, of bits outside of samples or of lower
 * halves, is coded after them all: it has its padded samples where a component had its samples. */
static void lay_out_planes(struct tsr_encode_space *s, const struct tsr_image *image, struct parts_in_use use,
                           size_t tiles, void *base, size_t *used)
{
    const size_t samples = (size_t)image->columns * image->rows * sizeof(uint16_t), padded = tiles * s->tile_payload;
    const int planes = tsr_image_planes(image);
    for (int p = 0; p < planes; p++) {
        const bool is_room = p < image->components && planes > image->components;
        s->planes[p] = tsr_take(base, used, is_room ? larger(samples, padded) : samples);
        s->offsets[p] = tsr_take(base, used, 65536 * sizeof(uint16_t));
    }
    for (int p = 0; p < planes; p++) {
        s->padded[p] =
            p < image->components ? tsr_take(base, used, padded) : (int16_t *)s->planes[p - image->components];
        /* where no plane refers to them, padded samples are not needed any more */
        s->payloads[p] =
            use.training && is_referred_to(image, p) ? tsr_take(base, used, padded) : (uint8_t *)s->padded[p];
    }
}

/* Rooms of what a plane is coded as. */
static void lay_out_symbols(struct tsr_encode_space *s, const struct tsr_image *image, struct parts_in_use use,
                            size_t tiles, void *base, size_t *used)
{
    const size_t count = (size_t)image->columns * image->rows, coefficients = tiles * s->tile_coefficients;
    s->symbols = (struct tsr_symbol_planes){0};
    if (use.symbols) {
        s->symbols.value = tsr_take(base, used, count * sizeof(uint16_t));
        s->symbols.symbol = tsr_take(base, used, count);
        s->symbols.context = tsr_take(base, used, count);
    }
    s->coefficients = use.coefficients ? tsr_take(base, used, coefficients * sizeof(int32_t)) : NULL;
    s->entries = use.entries ? tsr_take(base, used, coefficients * sizeof(uint32_t)) : NULL;
}

/* Rooms of the DC planes of tiles, and of predicted tiles. */
static void lay_out_dcs(struct tsr_encode_space *s, struct parts_in_use use, size_t tiles, size_t parts, void *base,
                        size_t *used)
{
    s->dcs = use.dcs ? tsr_take(base, used, parts * s->tile_dcs * sizeof *s->dcs) : NULL;
    s->dc_coefficients =
        use.dcs ? tsr_take(base, used, tiles * s->tile_dc_coefficients * sizeof *s->dc_coefficients) : NULL;
    s->dc_entries = use.dcs ? tsr_take(base, used, tiles * s->tile_dc_coefficients * sizeof *s->dc_entries) : NULL;
    s->tile_blocks_four = s->tile_coefficients / TSR_BLOCK_SAMPLES;
    s->other_coefficients =
        use.intra ? tsr_take(base, used, parts * s->tile_coefficients * sizeof *s->other_coefficients) : NULL;
    s->restored = use.intra ? tsr_take(base, used, parts * s->tile_coefficients * sizeof *s->restored) : NULL;
    s->intra_maps = use.intra ? tsr_take(base, used, tiles * s->tile_blocks_four) : NULL;
}

/* Lays the space out for a coding, of which cut has the sides of tiles; returns its size. Sums stay far below 2^63 for
 * every checked image. */
static size_t lay_out(struct tsr_encode_space *s, const struct tsr_pool *pool, const struct tsr_image *image,
                      const struct tsr_coding *coding, const struct tsr_tiling *cut, void *base)
{
    const size_t tiles = tsr_tiling_count(*cut), parts = tsr_parts_of(pool, (uint32_t)tiles);
    const struct parts_in_use use = parts_in_use(image, coding);
    size_t used = 0;
    s->tile_coefficients = tsr_tile_coefficients(cut->tile_width, cut->tile_height);
    const struct tsr_tile dcs = tsr_tile_of_dcs(cut->tile_width, cut->tile_height);
    s->tile_dcs = (size_t)dcs.width * (size_t)dcs.height;
    s->tile_dc_coefficients = tsr_tile_coefficients(dcs.width, dcs.height);
    s->scratch_bytes = scratch_bytes(cut->tile_width, cut->tile_height, use.intra);
    s->tile_padded = tsr_padded_samples(cut->tile_width, cut->tile_height);
    s->tile_payload = s->tile_padded * sizeof(int16_t);
    assert(s->tile_payload >= tsr_raw_tile_bytes(65536, cut->tile_width, cut->tile_height));
    s->tile_blocks = (size_t)tsr_blocks_across(cut->tile_width) * (size_t)tsr_blocks_across(cut->tile_height);
    s->model = tsr_take(base, &used, sizeof *s->model);
    lay_out_planes(s, image, use, tiles, base, &used); /* the first one stands where tsr_cpu_raster_offset says */
    s->labels = tsr_take(base, &used, tiles * s->tile_blocks);
    s->median_costs = tsr_take(base, &used, tiles * s->tile_blocks * sizeof(uint32_t));
    s->training = tsr_take(base, &used, sizeof *s->training);
    s->solver = tsr_take(base, &used, sizeof *s->solver);
    lay_out_symbols(s, image, use, tiles, base, &used);
    s->tiles = tsr_take(base, &used, tiles * sizeof *s->tiles);
    s->tile_sizes = tsr_take(base, &used, tiles * TSR_TILE_SIZES_BYTES);
    s->drawn_sizes = use.drawn ? tsr_take(base, &used, tiles * TSR_PLANES_LIMIT * sizeof *s->drawn_sizes) : NULL;
    s->drawn_room = use.drawn ? (size_t)image->columns * image->rows : 0;
    s->drawn_pieces = use.drawn ? tsr_take(base, &used, s->drawn_room) : NULL;
    s->left = tsr_take(base, &used, tiles * sizeof *s->left);
    s->next = tsr_take(base, &used, parts * sizeof *s->next);
    s->model_bytes = tsr_take(base, &used, TSR_FRAME_MODEL_LIMIT); /* in a page that has been touched before */
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
    s->tile_squares = (size_t)tsr_squares_along(cut->tile_width) * (size_t)tsr_squares_along(cut->tile_height);
    s->textures = use.classes ? tsr_take(base, &used, tiles * s->tile_squares * sizeof *s->textures) : NULL;
    s->classes = use.classes ? tsr_take(base, &used, tiles * (s->tile_squares + TSR_CLASSES_MORE)) : NULL;
    const size_t codes_bytes =
        larger(TSR_PAIR_TABLES * sizeof *s->pair_codes, TSR_COEFFICIENT_TABLES * sizeof *s->coefficient_codes);
    lay_out_dcs(s, use, tiles, parts, base, &used);
    s->dc_codes.pair_codes = use.dcs ? tsr_take(base, &used, codes_bytes) : NULL;
    s->run_level_codes = tsr_take(base, &used, larger(codes_bytes, sizeof *s->run_level_codes));
    return used;
}

static struct tsr_tiling cut_tiles(const struct tsr_image *image, const struct tsr_coding *coding)
{
    return tsr_cut_tiles(image, tsr_tile_alignment(coding->path, coding->coder));
}

static size_t frame_space(const struct tsr_pool *pool, const struct tsr_image *image, const struct tsr_coding *coding)
{
    struct tsr_encode_space space;
    const struct tsr_tiling cut = cut_tiles(image, coding);
    return lay_out(&space, pool, image, coding, &cut, NULL);
}

/* Scratches of drawn tiles: so many as threads may code them at once. */
static struct tsr_scratches lay_out_drawn(const struct tsr_pool *pool, const struct tsr_image *image,
                                          const struct tsr_coding *coding, uint32_t frames, void *base, size_t *used)
{
    if (!tsr_tries_drawn(coding)) return (struct tsr_scratches){0};
    const struct tsr_tiling cut = cut_tiles(image, coding), drawn = tsr_cut_image(image, 1, true);
    const uint64_t parts = (uint64_t)frames * tsr_parts_of(pool, tsr_tiling_count(cut)),
                   threads = (uint64_t)tsr_pool_threads(pool);
    const size_t bytes = (tsr_drawn_scratch_bytes(drawn.tile_width, drawn.tile_height) + 63) / 64 * 64;
    return tsr_lay_out_scratches((unsigned)(parts < threads ? parts : threads), bytes, 64, base, used);
}

size_t tsr_cpu_encode_space(const struct tsr_pool *pool, const struct tsr_image *image, const struct tsr_coding *coding,
                            uint32_t frames)
{
    const size_t space = frame_space(pool, image, coding);
    if (frames == 0 || space > SIZE_MAX / 2 / frames) return 0;
    size_t used = space * frames;
    lay_out_drawn(pool, image, coding, frames, NULL, &used);
    return used;
}

struct tsr_encode_call tsr_cpu_encode_call(struct tsr_pool *pool, const struct tsr_image *image,
                                           const struct tsr_coding *coding, uint32_t frames, void *workspace)
{
    struct tsr_encode_call call = {pool, image, coding, workspace, frame_space(pool, image, coding), {0}};
    size_t used = call.space * frames;
    call.drawn = lay_out_drawn(pool, image, coding, frames, workspace, &used);
    tsr_begin_scratches(&call.drawn);
    return call;
}

size_t tsr_cpu_raster_offset(const struct tsr_image *image, const struct tsr_coding *coding)
{
    size_t used = 0;
    if (coding->lossy || image->components != 1 || !tsr_has_planes_in_raster(image)) return SIZE_MAX;
    tsr_take(NULL, &used, sizeof(struct tsr_frame_model));
    return used;
}

static void add_span(struct tsr_spans *spans, void *start, size_t bytes)
{
    spans->span[spans->count++] = (struct tsr_span){start, bytes};
}

void tsr_cpu_encode_spans(const struct tsr_pool *pool, const struct tsr_image *image, const struct tsr_coding *coding,
                          void *workspace, struct tsr_spans *spans)
{
    struct tsr_encode_space s;
    const struct tsr_tiling cut = cut_tiles(image, coding);
    const size_t samples = (size_t)image->columns * image->rows;
    const struct parts_in_use use = parts_in_use(image, coding);
    lay_out(&s, pool, image, coding, &cut, workspace);
    const uint32_t tiles = tsr_tiling_count(cut);
    spans->count = 0;
    for (int p = 0; p < image->components; p++) {
        add_span(spans, s.padded[p], tiles * s.tile_payload);
        if (p == 0 && use.symbols) add_span(spans, s.symbols.value, samples * (sizeof *s.symbols.value + 2));
        if (p == 0 && use.coefficients)
            add_span(spans, s.coefficients, tiles * s.tile_coefficients * sizeof *s.coefficients);
        if (p == 0 && use.entries) add_span(spans, s.entries, tiles * s.tile_coefficients * sizeof *s.entries);
        if (s.payloads[p] != (uint8_t *)s.padded[p]) add_span(spans, s.payloads[p], tiles * s.tile_payload);
    }
}

/* ---- One plane ------------------------------------------------------------------------------------------- */

void tsr_put_tile_sizes(struct tsr_coded_tile *tile, int planes, uint8_t *sizes)
{
    struct tsr_segment *segment = tile->segment;
    size_t used = 0;
    int last = planes;
    while (last > 0 && segment[last].size == 0) last--;
    for (int p = 1; p < last; p++) {
        if (segment[p].size == 0) continue; /* not coded: a coded plane has at least a byte */
        used += tsr_put_varint(sizes + used, segment[p].size);
    }
    segment[0].bytes = sizes;
    segment[0].size = used;
    tile->segments = last + 1;
}

/* Writes the model, of which all is settled, and what a coded frame needs besides its tiles. */
static void put_model(const struct tsr_image *image, struct tsr_encode_space *space, struct tsr_encode_job *job)
{
    struct tsr_bit_writer writer = tsr_bit_writer(space->model_bytes, TSR_FRAME_MODEL_LIMIT);
    tsr_put_frame_model(&writer, image, space->model);
    job->coded.model.bytes = space->model_bytes;
    job->coded.model.size = tsr_flush_bits(&writer);
    assert(!writer.overflow);
    job->coded.tiles = tsr_tile_count(image, space->model);
    job->coded.tile = space->tiles;
    job->coded.is_drawn = false;
}

static void give_tile(void *context, uint32_t tile)
{
    const struct tsr_plane_work *const work = context;
    work->taken_job->take(work->taken_job->taker, &work->taken_job->coded, tile);
}

/* A tile of the last plane is coded, and so the tile as a whole. */
static void note_coded(struct tsr_plane_work *work, uint32_t number)
{
    const struct tsr_encode_space *s = work->space;
    tsr_put_tile_sizes(&s->tiles[number], work->frame->planes, s->tile_sizes + number * TSR_TILE_SIZES_BYTES);
    atomic_store(&s->left[number], 0);
    tsr_give_in_order(&work->in_order, give_tile, work);
}

void tsr_put_raw_tile(const uint16_t *samples, struct tsr_tile tile, uint32_t range, uint8_t *payload, size_t size)
{
    const int bits = tsr_bit_width(range - 1);
    struct tsr_bit_writer writer = tsr_bit_writer(payload, size);
    for (int32_t y = 0; y < tile.height; y++)
        for (int32_t x = 0; x < tile.width; x++)
            tsr_put_bits(&writer, samples[tile.first + (size_t)y * tile.stride + (size_t)x], bits);
    const size_t written = tsr_flush_bits(&writer);
    assert(written == size && !writer.overflow);
    (void)written;
}

static void code_pass(struct tsr_plane_work *work, uint32_t part, uint32_t number)
{
    const struct tsr_encode_space *s = work->space;
    const struct tsr_plane_model *plane = work->plane;
    const struct tsr_tile tile = tsr_tile_at(work->image, work->frame, number);
    const size_t raw_bytes = tsr_raw_tile_bytes(plane->range, tile.width, tile.height);
    uint8_t *payload = s->payloads[work->number] + number * s->tile_payload;
    struct tsr_segment *segment = &s->tiles[number].segment[1 + work->number];
    size_t size = 0; /* 0: the tile is stored raw, which is not longer */
    if (raw_bytes > 1)
        size = tsr_is_of_lanes(plane) ? tsr_code_residuals(work, part, number, payload, raw_bytes - 1)
                                      : tsr_code_tile_coefficients(work, part, number, payload, raw_bytes - 1);
    if (size == 0) tsr_put_raw_tile(s->planes[work->number], tile, plane->range, payload, raw_bytes);
    segment->bytes = payload;
    segment->size = size > 0 ? size : raw_bytes;
    if (work->taken_job) note_coded(work, number);
}

static void encode_plane(struct tsr_plane_work *work)
{
    if (tsr_is_of_lanes(work->plane)) {
        tsr_train_predictors(work);
        tsr_train_residuals(work);
    } else {
        tsr_make_coefficients(work);
    }
    if (work->taken_job) put_model(work->image, work->space, work->taken_job);
    (work->taken_job ? tsr_run_pass_in_order : tsr_run_pass)(work, code_pass);
}

/* ---- The frame ------------------------------------------------------------------------------------------- */

/* The tables of path T, which are most of a model, are cleared where they are made: to clear all of the 580 KB took 20
 * us a frame (Intel Xeon, model 207). */
static void clear_model(const struct tsr_image *image, struct tsr_frame_model *model)
{
    memset(model, 0, offsetof(struct tsr_frame_model, plane));
    for (int p = 0; p < tsr_image_planes(image); p++)
        memset(&model->plane[p], 0, offsetof(struct tsr_plane_model, run_level));
}

/* The raster to planes of values, with the choice of their colours. */
static void make_planes(struct tsr_pool *pool, const struct tsr_image *image, const struct tsr_coding *coding,
                        const uint8_t *raster, struct tsr_encode_space *space)
{
    struct tsr_frame_model *model = space->model;
    const size_t count = (size_t)image->columns * image->rows;
    tsr_split_frame(pool, image, raster, space->planes, model, space->padded[0]);
    model->max_error = tsr_bounded_error(coding);
    int bits = tsr_first_plane_bits(image, model->max_error);
    for (int p = 0; p < image->components && model->max_error > 0; p++)
        tsr_quantise_samples(space->planes[p], count, tsr_frame_near_lossless(image, model->max_error));
    if (image->components < 3) return;
    for (int c = 0; c < 3; c++) model->colours.list[c] = space->lists[c];
    if (coding->path == TSR_PATH_PREDICT)
        tsr_pack_colours(space->planes, image->columns, image->rows, bits, &model->colours, space->colours);
    bits = tsr_packed_colour_bits(&model->colours, bits);
    model->colour = tsr_choose_colour(space->planes, image->columns, image->rows, bits, coding);
    tsr_transform_colours(pool, image, space->planes, model, bits);
}

/* Plane p, which is present: its coding and its range. */
static void begin_plane(struct tsr_pool *pool, const struct tsr_image *image, const struct tsr_coding *coding,
                        struct tsr_encode_space *space, int p, bool tries_drawn)
{
    struct tsr_plane_model *plane = &space->model->plane[p];
    plane->offset = space->offsets[p];
    plane->path = coding->path;
    plane->coder = tsr_plane_coder(coding, image, p);
    const struct tsr_transform_plan plan = tsr_transform_plan(image, coding, space->model->colour, p);
    tsr_take_plan(plane, &plan);
    const enum tsr_packing packing = plane->lossy  ? TSR_PACK_NOTHING
                                     : tries_drawn ? TSR_PACK_GAPS
                                                   : TSR_PACK_IF_IT_PAYS;
    tsr_choose_plane_range(pool, image, space->planes, p, packing, plane, space->range);
}

/* The tiles of the base that predictors of plane p refer to. */
static void pad_base(const struct tsr_image *image, struct tsr_encode_space *s, int p)
{
    const uint32_t tiles = tsr_tile_count(image, s->model);
    uint16_t *const plane = s->base.plane[p];
    tsr_base_to_indices(image, &s->model->plane[p], plane);
    for (uint32_t t = 0; t < tiles; t++) {
        const struct tsr_tile tile = tsr_tile_at(image, s->model, t);
        int16_t *const room = s->base.padded[0] + t * s->tile_padded;
        const struct tsr_padded_tile padded = tsr_padded_tile(room, tile.width, tile.height);
        tsr_pad_tile(plane + tile.first, tile.stride, tile.width, tile.height, room);
        tsr_pad_means(&padded, s->base.padded[1] + t * s->tile_padded);
    }
}

/* Plane p, which has begun and is coded, to its tiles' payloads; or, where estimate is not NULL, to what
 * tsr_estimate_residuals says of it. */
static void make_payloads(struct tsr_pool *pool, const struct tsr_image *image, const struct tsr_coding *coding,
                          struct tsr_encode_space *space, int p, struct tsr_encode_job *taken_job, uint64_t *estimate)
{
    struct tsr_frame_model *model = space->model;
    const struct tsr_transform_plan plan = tsr_transform_plan(image, coding, model->colour, p);
    struct tsr_plane_work work = {0};
    work.pool = pool;
    work.image = image;
    work.space = space;
    work.frame = model;
    work.plane = &model->plane[p];
    work.number = p;
    work.effort = coding->effort;
    work.references = tsr_reference_planes(image, model, p, work.reference);
    work.tiles = tsr_tile_count(image, model);
    work.parts = tsr_parts_of(pool, work.tiles);
    work.fine = plan.fine;
    work.choice_q = plan.choice_q;
    work.lambda = tsr_plan_lambda(&plan);
    work.cavlc_bits = plan.cavlc_bits;
    work.taken_job = taken_job;
    if (taken_job) tsr_in_order_init(&work.in_order, space->left, work.tiles, 1);
    if (!estimate && p < image->components && tsr_refers_to_base(model) && tsr_is_of_lanes(work.plane))
        pad_base(image, space, p);
    if (estimate)
        *estimate += tsr_estimate_residuals(&work);
    else
        encode_plane(&work);
}

static void set_drawn(struct tsr_frame_model *model, bool drawn, struct tsr_tiling cut)
{
    model->tile_width = cut.tile_width;
    model->tile_height = cut.tile_height;
    for (int p = 0; p < model->planes; p++) model->plane[p].drawn = drawn && tsr_is_coded(&model->plane[p]);
}

/* Whether lower efforts cannot come below the drawn planes of a frame either, of which path P takes so much more: by
 * its tables, or altogether. base: what both have to say of the frame. Of 60 drawings they take at least 0.79 of what
 * this one takes without base. Not of frames that may share their model with others. */
static bool is_far_below(const struct tsr_image *image, uint64_t tiles, uint64_t base, uint64_t path_p, uint64_t model)
{
    return image->frames == 1 && (tiles * 5 <= (path_p - base) * 3 || tiles + base + (model - base) * 2 <= path_p);
}

/* A frame that is coded becomes one of drawn planes where that takes fewer bytes. tiles: those of their tiles, which
 * were kept; or they had their room where path P has had its own since. */
static void choose_drawn(struct tsr_pool *pool, const struct tsr_image *image, struct tsr_encode_space *space,
                         struct tsr_encode_job *job, uint64_t tiles, bool is_drawing)
{
    const uint64_t model_bytes = job->coded.model.size, most = model_bytes + tsr_tiles_bytes(&job->coded);
    struct tsr_frame_model *const model = space->model;
    const struct tsr_tiling before = tsr_frame_tiling(image, model);
    if (tiles >= most) return;
    set_drawn(model, true, tsr_cut_image(image, 1, true));
    put_model(image, space, job);
    const uint64_t base = job->coded.model.size;
    if (base + tiles < most) {
        bool ignored;
        if (tiles > space->drawn_room) tsr_code_drawn_planes(pool, image, space, &ignored);
        tsr_take_drawn_planes(image, space, tiles <= space->drawn_room);
        job->coded.is_drawn = is_drawing && is_far_below(image, tiles, base, most, model_bytes);
        return;
    }
    set_drawn(model, false, before);
    put_model(image, space, job);
}

/* Codes the planes of a frame, which have begun, as drawn ones. Returns the bytes of their tiles. *is_drawing: the
 * frame looks like a drawing, and no piece is by blend; of others the estimate says nothing, which linear predictions
 * may halve many times. *taken: they are at most half of what path P would take by an estimate, and so the frame. Not
 * where that is little, of which tables would be a large part, and which frames may share. */
static uint64_t try_drawn(struct tsr_pool *pool, const struct tsr_image *image, const struct tsr_coding *coding,
                          struct tsr_encode_space *space, struct tsr_encode_job *job, bool *is_drawing, bool *taken)
{
    enum { LEAST_ESTIMATE = 1024 };
    uint64_t estimate = 0;
    for (int p = 0; p < image->components; p++)
        if (tsr_is_coded(&space->model->plane[p])) make_payloads(pool, image, coding, space, p, NULL, &estimate);
    bool blended;
    const uint64_t tiles = tsr_code_drawn_planes(pool, image, space, &blended);
    *is_drawing = *is_drawing && !blended;
    *taken = *is_drawing && estimate >= LEAST_ESTIMATE && tiles <= estimate / 2;
    if (*taken) {
        set_drawn(space->model, true, tsr_cut_image(image, 1, true));
        tsr_take_drawn_planes(image, space, false);
        put_model(image, space, job);
        job->coded.is_drawn = true;
    } else if (tiles <= space->drawn_room) {
        tsr_keep_drawn_planes(image, space);
    }
    return tiles;
}

/* refers: whether predictors may refer to the job's base, if there is one. */
static void encode_frame(const struct tsr_encode_call *call, bool refers, struct tsr_encode_job *job, uint32_t frame)
{
    struct tsr_pool *const pool = call->pool;
    const struct tsr_image *const image = call->image;
    const struct tsr_coding *const coding = call->coding;
    struct tsr_encode_space space;
    const struct tsr_tiling cut = cut_tiles(image, coding);
    lay_out(&space, pool, image, coding, &cut, call->workspace + frame * call->space);
    space.drawn_scratches = &call->drawn;
    struct tsr_frame_model *model = space.model;
    clear_model(image, model);
    model->tile_width = cut.tile_width;
    model->tile_height = cut.tile_height;
    const uint32_t tiles = tsr_tile_count(image, model);
    memset(space.tiles, 0, tiles * sizeof *space.tiles);
    model->may_have_base = job->base.room != NULL;
    model->has_base = model->may_have_base && refers;
    space.base = tsr_base_planes(image, job->base.room);
    const bool tries = tsr_tries_drawn(coding);
    bool is_drawing = tries && tsr_looks_drawn(image, job->raster);
    const bool may_be_drawn = is_drawing || (tries && tsr_is_small_alone(image, coding->effort));
    make_planes(pool, image, coding, job->raster, &space);
    if (model->has_base) tsr_split_base(image, &job->base, model, &space.base);
    int last = model->planes - 1;
    while (last > 0 && !model->plane[last].present) last--;
    const bool tries_drawn = may_be_drawn && last < image->components;
    uint64_t drawn = UINT64_MAX;
    bool taken = false;
    for (int p = 0; p <= last && tries_drawn; p++) begin_plane(pool, image, coding, &space, p, true);
    if (tries_drawn) drawn = try_drawn(pool, image, coding, &space, job, &is_drawing, &taken);
    if (taken) return;
    for (int p = 0; p <= last; p++) {
        if (model->plane[p].present && !tries_drawn) begin_plane(pool, image, coding, &space, p, false);
        if (!tsr_is_coded(&model->plane[p])) continue;
        make_payloads(pool, image, coding, &space, p, job->take && p == last && !tries_drawn ? job : NULL, NULL);
    }
    for (uint32_t t = 0; t < tiles; t++)
        tsr_put_tile_sizes(&space.tiles[t], model->planes, space.tile_sizes + t * TSR_TILE_SIZES_BYTES);
    put_model(image, &space, job);
    if (tries_drawn) choose_drawn(pool, image, &space, job, drawn, is_drawing);
}

/* With a base a frame is coded by references to it where that takes less. */
void tsr_cpu_encode_frame(const struct tsr_encode_call *call, struct tsr_encode_job *job, uint32_t frame)
{
    assert(!job->base.room || !job->take);
    job->saved = 0;
    if (job->base.raster && job->only_refers) {
        encode_frame(call, true, job, frame);
        return;
    }
    encode_frame(call, false, job, frame);
    if (!job->base.raster) return;
    const uint64_t alone = tsr_coded_bytes(&job->coded);
    encode_frame(call, true, job, frame);
    const uint64_t referring = tsr_coded_bytes(&job->coded);
    if (alone <= referring)
        encode_frame(call, false, job, frame);
    else
        job->saved = alone - referring;
}
