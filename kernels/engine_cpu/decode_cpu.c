/* Decoding a frame on the CPU: the tiles' payloads to symbols, symbols to planes, planes to the raster. The memory
 * that a thread touches is kept small, so that it stays in the processor's cache from one slice to the next: a thread
 * has one scratch for all of its tiles, and planes are decoded into the raster if it has their form. */
#include <stdatomic.h>
#include <string.h>

#include "bands_cpu.h"
#include "base_cpu.h"
#include "engine_cpu.h"
#include "in_order_cpu.h"
#include "scratches_cpu.h"
#include "kernels/blocks/intra_cpu.h"
#include "kernels/blocks/lapped_cpu.h"
#include "transform/block/dc_plane.h"
#include "kernels/slices/coefficients_cpu.h"
#include "entropy/step_classes.h"
#include "kernels/drawn/drawn_cpu.h"
#include "kernels/planes/planes_cpu.h"
#include "kernels/residuals/residuals_cpu.h"
#include "kernels/blocks/blocks_cpu.h"

/* What decoding a plane's tiles needs of its model. */
union coefficient_tables {
    struct tsr_pair_decoder pair;
    struct tsr_coefficient_decoder coefficient;
};
union plane_tables {
    struct tsr_plane_decoder residual;
    struct tsr_run_level_decoder run_level;
    union coefficient_tables level[2]; /* the latter: of the DC plane */
};

/* The work space of a batch, as one of its frames sees it. */
struct decode_space {
    struct tsr_frame_model *model;
    uint16_t *planes[TSR_PLANES_LIMIT];
    uint16_t *offsets[TSR_PLANES_LIMIT]; /* of packed histograms */
    uint16_t *lists[3];                  /* of packed colours */
    union plane_tables *tables;          /* by plane */
    struct tsr_cavlc_reader *cavlc;
    struct tsr_base_planes base;    /* if predictors may refer to one */
    atomic_uint *left;              /* by row of tiles */
    struct tsr_scratches scratches; /* all frames share them: row buffers, or the coefficients of a tile */
};

/* The most threads that work on so many tiles at once. */
static unsigned tile_threads(const struct tsr_pool *pool, uint64_t tiles)
{
    const unsigned threads = (unsigned)tsr_pool_threads(pool);
    return tiles < threads ? (unsigned)tiles : threads;
}

enum { CACHE_LINE = 64 };

/* Where scratch begins: the lanes' vectors are aligned. Of a large image it begins at a large page, and what lies
 * before it is in small ones. */
static size_t scratch_alignment(const struct tsr_image *image)
{
    enum { LARGE_IMAGE = 1 << 21 }; /* samples */
    return (uint64_t)image->columns * image->rows >= LARGE_IMAGE ? TSR_LARGE_PAGE : CACHE_LINE;
}

/* The bytes of the means of a tile's blocks. */
static size_t dcs_room(int32_t width, int32_t height)
{
    return tsr_tile_coefficients(width, height) / TSR_BLOCK_SAMPLES * sizeof(int32_t);
}

/* The bytes that restoring a predicted tile takes. */
static size_t restored_room(int32_t width, int32_t height)
{
    const size_t bytes = tsr_intra_restored_bytes(width, height), lapped = tsr_lapped_scratch_bytes(width);
    return bytes > lapped ? bytes - lapped : 0; /* it has the room of the rows that lapping needs */
}

/* The bytes of scratch that a thread needs for a tile: row buffers, or the tile's coefficients. */
static size_t scratch_of(int32_t width, int32_t height)
{
    const size_t padded_bytes = tsr_padded_samples(width, height) * sizeof(int16_t);
    const size_t lanes_bytes = tsr_decode_scratch_bytes(width, height) + TSR_REFERENCES_LIMIT * padded_bytes,
                 drawn_bytes = tsr_drawn_scratch_bytes(width, height);
    const size_t rows_bytes = lanes_bytes > drawn_bytes ? lanes_bytes : drawn_bytes;
    const size_t coefficients_bytes =
        tsr_tile_coefficients(width, height) * sizeof(int32_t) + tsr_lapped_scratch_bytes(width) +
        (size_t)tsr_squares_along(width) * (size_t)tsr_squares_along(height) + TSR_CLASSES_MORE +
        dcs_room(width, height) + tsr_intra_map_bytes(width, height) + restored_room(width, height);
    return ((rows_bytes > coefficients_bytes ? rows_bytes : coefficients_bytes) + CACHE_LINE - 1) / CACHE_LINE *
           CACHE_LINE;
}

/* Whether a frame's planes are decoded to where they stand in its raster. */
static bool decodes_in_raster(const struct tsr_image *image, const uint8_t *raster)
{
    return tsr_has_planes_in_raster(image) && (uintptr_t)raster % _Alignof(uint16_t) == 0;
}

/* Lays out what a frame has of its own before the scratches. Returns its size. */
static size_t lay_out_tables(struct decode_space *s, const struct tsr_image *image, void *base)
{
    const int planes = tsr_image_planes(image);
    size_t used = 0;
    s->model = tsr_take(base, &used, sizeof *s->model);
    for (int p = 0; p < planes; p++) s->offsets[p] = tsr_take(base, &used, 65536 * sizeof(uint16_t));
    for (int c = 0; c < 3 && image->components >= 3; c++) s->lists[c] = tsr_take(base, &used, 65536 * sizeof(uint16_t));
    s->tables = tsr_take(base, &used, (size_t)planes * sizeof *s->tables);
    s->cavlc = tsr_take(base, &used, sizeof *s->cavlc);
    s->left = tsr_take(base, &used, image->rows * sizeof *s->left); /* tiles may have a row of samples */
    return used;
}

/* The same behind the scratches. in_raster: planes of components need no room. */
static size_t lay_out_planes(struct decode_space *s, const struct tsr_image *image, bool in_raster, void *base)
{
    const size_t count = (size_t)image->columns * image->rows;
    size_t used = 0;
    for (int p = 0; p < tsr_image_planes(image); p++)
        s->planes[p] = in_raster && p < image->components ? NULL : tsr_take(base, &used, count * sizeof(uint16_t));
    return used;
}

/* What the work space of a batch depends on, besides the image. */
struct batch_shape {
    size_t scratch_bytes;
    unsigned scratches;
    uint32_t frames;
    bool in_raster;
};

/* Lays the space of a frame of the batch out. Returns the size of the whole space; 0: it is too large. */
static size_t lay_out(struct decode_space *s, const struct tsr_image *image, const struct batch_shape *shape,
                      uint32_t frame, uint8_t *base)
{
    const size_t tables = lay_out_tables(s, image, NULL), planes = lay_out_planes(s, image, shape->in_raster, NULL);
    if (shape->frames > SIZE_MAX / 4 / (tables + planes + 1)) return 0;
    if (shape->scratches > SIZE_MAX / 4 / (shape->scratch_bytes + 1)) return 0;
    size_t used = shape->frames * tables;
    s->scratches = tsr_lay_out_scratches(shape->scratches, shape->scratch_bytes, scratch_alignment(image), base, &used);
    if (base) {
        lay_out_tables(s, image, base + frame * tables);
        lay_out_planes(s, image, shape->in_raster, base + used + frame * planes);
    }
    return used + shape->frames * planes;
}

/* The longest side that a number of tiles can have which stand in a row; all but the last are as long. And the side
 * that they have as encoders cut them: in equal parts, but for a multiple of samples. */
static int32_t longest_part(uint32_t side, uint32_t parts, bool are_equal)
{
    enum { MULTIPLE = TSR_SLICE_BLOCKS * TSR_BLOCK_SIDE };
    const uint32_t longest = parts > 1 ? (side - 1) / (parts - 1) : side, even = (side - 1) / parts + 1,
                   equal = (even + MULTIPLE - 1) / MULTIPLE * MULTIPLE;
    return (int32_t)(are_equal && equal < longest ? equal : longest);
}

/* The most that a frame of so many tiles takes. Tiles stand in columns and rows, of which there are some pairs of
 * numbers; that whose tiles need most scratch counts. */
static size_t decode_bound(const struct tsr_pool *pool, const struct tsr_image *image, uint32_t tiles, uint32_t frames,
                           bool are_equal)
{
    struct decode_space space;
    struct batch_shape shape = {.frames = frames, .in_raster = tsr_has_planes_in_raster(image)};
    for (uint32_t across = 1; across <= image->columns && across <= tiles; across++) {
        if (tiles % across != 0 || tiles / across > image->rows) continue;
        const int32_t width = longest_part(image->columns, across, are_equal),
                      height = longest_part(image->rows, tiles / across, are_equal);
        const uint64_t samples = (uint64_t)width * (uint64_t)height;
        if (samples > TSR_TILE_SAMPLES_LIMIT) continue; /* no model has such tiles */
        const size_t bytes = scratch_of(width, height);
        if (bytes > shape.scratch_bytes) shape.scratch_bytes = bytes;
    }
    shape.scratches = tile_threads(pool, (uint64_t)tiles * frames);
    return lay_out(&space, image, &shape, 0, NULL);
}

size_t tsr_cpu_decode_bound(const struct tsr_pool *pool, const struct tsr_image *image, uint32_t tiles, uint32_t frames)
{
    const size_t one = decode_bound(pool, image, tiles, 1, false),
                 usual = decode_bound(pool, image, tiles, frames, true);
    return usual > one || usual == 0 ? usual : one;
}

/* ---- Windows: some tiles of a frame as an image */

/* Returns the image that the model describes: the whole frame. */
static struct tsr_image frame_image(const struct tsr_image *image, const struct tsr_decode_job *job)
{
    struct tsr_image frame = *image;
    if (!job->window) return frame;
    frame.columns = job->window->columns;
    frame.rows = job->window->rows;
    frame.swapped = false; /* that a window may have other sides for */
    return frame;
}

/* Tiles are no larger than the image; all but the last ones of a frame are whole. */
static void fit_tiles(const struct tsr_image *image, int32_t *width, int32_t *height)
{
    *width = tsr_min(*width, (int32_t)image->columns);
    *height = tsr_min(*height, (int32_t)image->rows);
}

/* Finds the first sample of the window whose number in the frame is from or more. Returns its number in the window; the
 * number of samples of the window if there is none. */
static uint32_t number_in_window(uint32_t from, const struct tsr_image *image, const struct tsr_window *window)
{
    const uint32_t row = from / window->columns, column = from % window->columns;
    if (row < window->row) return 0;
    if (row - window->row >= image->rows) return image->columns * image->rows;
    const uint32_t x = column > window->column ? column - window->column : 0;
    return (row - window->row) * image->columns + (x < image->columns ? x : image->columns);
}

/* Reads the sides of tiles from the first bits of a frame's model. False if they are not valid. */
static bool peek_tiles(const struct tsr_image *image, const struct tsr_decode_job *job, struct tsr_tiling *cut)
{
    const struct tsr_image frame = frame_image(image, job);
    struct tsr_bit_reader reader = tsr_bit_reader(job->model.bytes, job->model.size);
    if (!tsr_get_tiling(&reader, &frame, cut)) return false;
    cut->columns = (int32_t)image->columns;
    cut->rows = (int32_t)image->rows;
    fit_tiles(image, &cut->tile_width, &cut->tile_height);
    return true;
}

/* False if no frame of the batch has valid sides of tiles. */
static bool shape_of(const struct tsr_pool *pool, const struct tsr_image *image, const struct tsr_decode_job *jobs,
                     uint32_t frames, struct batch_shape *shape)
{
    uint64_t tiles = 0;
    *shape = (struct batch_shape){.frames = frames, .in_raster = true};
    for (uint32_t i = 0; i < frames; i++) {
        struct tsr_tiling cut;
        if (!peek_tiles(image, &jobs[i], &cut)) continue;
        const size_t bytes = scratch_of(cut.tile_width, cut.tile_height);
        if (bytes > shape->scratch_bytes) shape->scratch_bytes = bytes;
        tiles += tsr_tiling_count(cut);
        shape->in_raster &= decodes_in_raster(image, jobs[i].raster);
    }
    shape->scratches = tile_threads(pool, tiles);
    return tiles > 0;
}

size_t tsr_cpu_decode_space(const struct tsr_pool *pool, const struct tsr_image *image,
                            const struct tsr_decode_job *jobs, uint32_t frames)
{
    struct decode_space space;
    struct batch_shape shape;
    return shape_of(pool, image, jobs, frames, &shape) ? lay_out(&space, image, &shape, 0, NULL) : 0;
}

size_t tsr_cpu_decode_small(const struct tsr_pool *pool, const struct tsr_image *image,
                            const struct tsr_decode_job *job, void *workspace)
{
    struct decode_space space;
    struct batch_shape shape;
    if (scratch_alignment(image) < TSR_LARGE_PAGE || !shape_of(pool, image, job, 1, &shape)) return 0;
    lay_out(&space, image, &shape, 0, workspace);
    return (size_t)(space.scratches.first - (uint8_t *)workspace);
}

/* ---- Tiles ----------------------------------------------------------------------------------------------- */

struct frame_work {
    const struct tsr_image *image;
    struct decode_space *space;
    struct tsr_decode_job *job;
    uint32_t tiles, across, rows;      /* across: tiles in a row of them */
    atomic_uint next_tile, bad_tile;   /* bad_tile: the first tile that is corrupt; tiles: none so far */
    struct tsr_in_order rows_in_order; /* for job->take */
};

static bool get_raw_tile(const uint8_t *payload, size_t size, uint32_t range, uint16_t *samples, struct tsr_tile tile)
{
    const int bits = tsr_bit_width(range - 1);
    struct tsr_bit_reader reader = tsr_bit_reader(payload, size);
    for (int32_t y = 0; y < tile.height; y++) {
        for (int32_t x = 0; x < tile.width; x++) {
            const uint32_t sample = tsr_get_bits(&reader, bits);
            if (sample >= range) return false;
            samples[tile.first + (size_t)y * tile.stride + (size_t)x] = (uint16_t)sample;
        }
    }
    return tsr_bits_ended(&reader);
}

/* The planes that predictors refer to have been decoded before. They are copied to where guards surround them. */
static bool decode_predicted_tile(struct frame_work *work, int number, struct tsr_tile tile, const uint8_t *payload,
                                  size_t size, int16_t *scratch)
{
    struct decode_space *s = work->space;
    const struct tsr_plane_model *plane = &s->model->plane[number];
    struct tsr_padded_tile earlier[TSR_REFERENCES_LIMIT];
    int reference[TSR_PLANES_LIMIT];
    (void)tsr_reference_planes(work->image, s->model, number, reference);
    for (int r = 0; r < plane->predictor.shape.references && plane->predictor.set; r++) {
        const uint16_t *const from = reference[r] < TSR_PLANES_LIMIT ? s->planes[reference[r]] : s->base.plane[number];
        if (reference[r] == TSR_BASE_MEANS)
            tsr_pad_means(&earlier[0], scratch);
        else
            tsr_pad_tile(from + tile.first, tile.stride, tile.width, tile.height, scratch);
        earlier[r] = tsr_padded_tile(scratch, tile.width, tile.height);
        scratch += tsr_padded_samples(tile.width, tile.height);
    }
    return tsr_decode_tile(&s->tables[number].residual, earlier, payload, size, s->planes[number], tile, plane->range,
                           scratch);
}

/* What decoding a tile's coefficients needs besides room for them. */
struct tile_scratch {
    int32_t *coefficients, *dcs;
    uint8_t *classes, *map;
    void *lapped;
};

static struct tile_scratch tile_scratch(struct tsr_tile tile, void *scratch)
{
    struct tile_scratch s;
    s.coefficients = scratch;
    s.dcs = s.coefficients + tsr_tile_coefficients(tile.width, tile.height);
    s.lapped = (uint8_t *)s.dcs + dcs_room(tile.width, tile.height);
    s.classes = (uint8_t *)s.lapped + tsr_lapped_scratch_bytes(tile.width) + restored_room(tile.width, tile.height);
    s.map =
        s.classes + (size_t)tsr_squares_along(tile.width) * (size_t)tsr_squares_along(tile.height) + TSR_CLASSES_MORE;
    return s;
}

/* By rANS or pairs. level 1: of the DC plane. */
static bool decode_coefficients(const struct tsr_plane_model *plane, const union plane_tables *of, int level,
                                struct tsr_tile tile, const uint8_t *payload, size_t size, int32_t *coefficients)
{
    struct tsr_coefficient_tables tables = {0};
    tables.coefficient = level ? &plane->dcs.coefficient : &plane->coefficient;
    tables.coefficient_decoder = &of->level[level].coefficient;
    tables.pair = level ? &plane->dcs.pair : &plane->pair;
    tables.pair_decoder = &of->level[level].pair;
    const struct tsr_coefficient_coding coding = {
        plane->slice_side, plane->pairs ? tables.pair->magnitude_shift : tables.coefficient->magnitude_shift,
        plane->pairs};
    return tsr_decode_coefficients(payload, size, tile, coding, &tables, coefficients);
}

/* The tile's DC plane, from payload[*at] on, to means (FORMAT.md 8.9). */
static bool decode_dcs(const struct tsr_plane_model *plane, const union plane_tables *of, struct tsr_tile tile,
                       const uint8_t *payload, size_t size, size_t *at, const struct tile_scratch *s)
{
    const struct tsr_tile dcs = tsr_tile_of_dcs(tile.width, tile.height);
    uint64_t bytes;
    if (!tsr_read_varint(payload, size, at, TSR_PIECE_SIZE_LIMIT, &bytes) || bytes > size - *at) return false;
    if (!decode_coefficients(plane, of, 1, dcs, payload + *at, (size_t)bytes, s->coefficients)) return false;
    *at += (size_t)bytes;
    return tsr_inverse_dcs(s->coefficients, dcs, plane->dc_qp_index, s->dcs, s->lapped);
}

static bool decode_plane_tile(struct frame_work *work, int number, struct tsr_tile tile, const uint8_t *payload,
                              size_t size, void *scratch)
{
    struct decode_space *s = work->space;
    const struct tsr_plane_model *plane = &s->model->plane[number];
    const union plane_tables *tables = &s->tables[number];
    uint16_t *samples = s->planes[number];
    const size_t raw = tsr_raw_tile_bytes(plane->range, tile.width, tile.height);
    if (size == raw) return get_raw_tile(payload, size, plane->range, samples, tile);
    if (plane->drawn) return tsr_decode_drawn_tile(payload, size, plane->range, samples, tile, scratch);
    if (tsr_is_of_lanes(plane)) return decode_predicted_tile(work, number, tile, payload, size, scratch);
    const struct tile_scratch of = tile_scratch(tile, scratch);
    const struct tsr_block_grid grid = tsr_block_grid(tile.width, tile.height, 1);
    const struct tsr_intra_map map = {of.map, grid.columns, grid.rows};
    bool lapped = false, intra = false;
    if (plane->lapping) {
        size_t at = 1;
        if (payload[0] > (plane->intra ? TSR_TILE_INTRA : 1)) return false;
        lapped = payload[0] == 1;
        intra = payload[0] == TSR_TILE_INTRA;
        if (plane->classes && !tsr_get_class_string(payload, size, &at, of.classes, tsr_squares_along(tile.width),
                                                    tsr_squares_along(tile.height)))
            return false;
        if (intra && !tsr_get_intra_string(payload, size, &at, &map)) return false;
        if (plane->dc_plane && !intra && !decode_dcs(plane, tables, tile, payload, size, &at, &of)) return false;
        payload += at;
        size -= at;
    }
    if (plane->coder == TSR_CODER_RANS || plane->pairs) {
        if (!decode_coefficients(plane, tables, 0, tile, payload, size, of.coefficients)) return false;
    } else {
        const bool huffman = plane->coder == TSR_CODER_HUFFMAN;
        if (!tsr_decode_slices(payload, size, tile, plane->slice_side, huffman ? &tables->run_level : NULL,
                               huffman ? &plane->run_level : NULL, s->cavlc, of.coefficients))
            return false;
    }
    if (plane->lapping) {
        const struct tsr_block_steps steps = {plane->qp_index,
                                              (int32_t)plane->coarser_by,
                                              plane->coarser_from,
                                              plane->classes ? of.classes : NULL,
                                              plane->dc_plane ? of.dcs : NULL,
                                              tsr_dc_fraction(plane->range)};
        if (intra) tsr_intra_inverse(of.coefficients, tile, steps, plane->range, of.map, samples, of.lapped);
        if (intra) return true;
        return tsr_lapped_inverse(of.coefficients, tile, steps, lapped, plane->range, samples, of.lapped);
    }
    const struct tsr_block_coding blocks = {plane->path == TSR_PATH_PREDICT ? TSR_BLOCKS_RESIDUAL
                                            : plane->lossy                  ? TSR_BLOCKS_QUANTISED
                                                                            : TSR_BLOCKS_REVERSIBLE,
                                            plane->qp_index,
                                            (int32_t)plane->coarser_by,
                                            plane->coarser_from,
                                            plane->range,
                                            plane->slice_side};
    return tsr_blocks_inverse(of.coefficients, blocks, samples, tile);
}

static bool decode_tile(struct frame_work *work, uint32_t number, void *scratch)
{
    const struct tsr_frame_model *model = work->space->model;
    const struct tsr_tile tile = tsr_tile_at(work->image, model, number);
    const struct tsr_segment payload = work->job->tile[number];
    struct tsr_piece_place piece[TSR_PLANES_LIMIT];
    if (!tsr_cut_pieces(model, tile.width, tile.height, payload.bytes, payload.size, piece)) return false;
    for (int p = 0; p < model->planes; p++)
        if (tsr_is_coded(&model->plane[p]) &&
            !decode_plane_tile(work, p, tile, payload.bytes + piece[p].offset, piece[p].size, scratch))
            return false;
    return true;
}

/* ---- Rows of tiles: as soon as all tiles of one are decoded, it becomes a part of the raster, while its samples are
 * in the cache. */

/* In space->left: a row's tiles that are not yet decoded, and LATER; 0 when the row is in the raster. */
enum { LATER = 1 };

/* The first row of samples of a row of tiles; of the row after the last one, the number of rows. */
static uint32_t first_row(const struct frame_work *work, uint32_t row)
{
    return row < work->rows ? row * (uint32_t)work->space->model->tile_height : work->image->rows;
}

static void give_row(void *context, uint32_t row)
{
    const struct frame_work *const work = context;
    const size_t from = tsr_bytes_of_rows(work->image, first_row(work, row)),
                 end = tsr_bytes_of_rows(work->image, first_row(work, row + 1));
    work->job->take(work->job->taker, work->job->raster + from, end - from);
}

static void note_decoded(struct frame_work *work, uint32_t tile)
{
    const uint32_t row = tile / work->across;
    if (!tsr_has_bands(work->image) || atomic_fetch_sub(&work->space->left[row], 1) != LATER + 1) return;
    tsr_finish_rows(work->image, work->space->model, work->space->planes, work->job->raster, first_row(work, row),
                    first_row(work, row + 1));
    atomic_store(&work->space->left[row], 0);
    if (work->job->take) tsr_give_in_order(&work->rows_in_order, give_row, work);
}

/* Threads take tiles in their order, so that all tiles before a corrupt one are decoded. */
static void decode_tiles(void *context, unsigned number)
{
    struct frame_work *work = context;
    void *const scratch = tsr_take_scratch(&work->space->scratches, number);
    for (uint32_t tile; (tile = atomic_fetch_add(&work->next_tile, 1)) < atomic_load(&work->bad_tile);) {
        if (decode_tile(work, tile, scratch)) {
            note_decoded(work, tile);
            continue;
        }
        unsigned bad = atomic_load(&work->bad_tile);
        while (tile < bad && !atomic_compare_exchange_weak(&work->bad_tile, &bad, tile)) continue;
    }
    tsr_give_scratch(&work->space->scratches, scratch);
}

/* ---- The frame ------------------------------------------------------------------------------------------- */

/* Reads the model and builds its tables; false if the model is not valid. */
static bool prepare_model(const struct tsr_image *image, struct tsr_decode_job *job, struct decode_space *s)
{
    struct tsr_bit_reader reader = tsr_bit_reader(job->model.bytes, job->model.size);
    const struct tsr_image frame = frame_image(image, job);
    bool any_cavlc = false;
    for (int p = 0; p < tsr_image_planes(image); p++) s->model->plane[p].offset = s->offsets[p];
    for (int c = 0; c < 3; c++) s->model->colours.list[c] = s->lists[c];
    if (!tsr_get_model_on_base(&reader, &frame, job->base.room != NULL, s->model)) return false;
    if (s->model->has_base && !job->base.raster) return false;
    fit_tiles(image, &s->model->tile_width, &s->model->tile_height);
    for (int p = 0; p < s->model->planes; p++) {
        struct tsr_plane_model *plane = &s->model->plane[p];
        if (!tsr_is_coded(plane)) continue;
        if (job->window) plane->coarser_from = number_in_window(plane->coarser_from, image, job->window);
        if (plane->drawn) continue;
        if (plane->coder == TSR_CODER_CAVLC)
            any_cavlc = true;
        else if (plane->path == TSR_PATH_PREDICT)
            tsr_plane_decoder_init(&s->tables[p].residual, &plane->predictor, &plane->residual,
                                   plane->coder == TSR_CODER_RANS);
        else if (plane->coder == TSR_CODER_RANS)
            tsr_coefficient_decoder_init(&s->tables[p].level[0].coefficient, &plane->coefficient);
        else if (plane->pairs)
            tsr_pair_decoder_init(&s->tables[p].level[0].pair, &plane->pair);
        else
            tsr_run_level_decoder_init(&s->tables[p].run_level, &plane->run_level);
    }
    for (int p = 0; p < s->model->planes; p++) {
        const struct tsr_plane_model *plane = &s->model->plane[p];
        if (!tsr_is_coded(plane) || !plane->dc_plane) continue;
        if (plane->pairs)
            tsr_pair_decoder_init(&s->tables[p].level[1].pair, &plane->dcs.pair);
        else
            tsr_coefficient_decoder_init(&s->tables[p].level[1].coefficient, &plane->dcs.coefficient);
    }
    if (any_cavlc) tsr_cavlc_reader_init(s->cavlc);
    return true;
}

/* The base's planes as indices, as far as predictors refer to them. */
static void take_base(const struct tsr_image *image, const struct tsr_decode_job *job, struct decode_space *s)
{
    if (!tsr_refers_to_base(s->model)) return;
    s->base = tsr_base_planes(image, job->base.room);
    tsr_split_base(image, &job->base, s->model, &s->base);
    for (int p = 0; p < image->components; p++)
        if (tsr_is_coded(&s->model->plane[p])) tsr_base_to_indices(image, &s->model->plane[p], s->base.plane[p]);
}

/* Jobs of one call, as the pool sees them. */
struct batch {
    struct tsr_pool *pool;
    const struct tsr_image *image;
    struct tsr_decode_job *jobs;
    struct batch_shape shape;
    uint8_t *workspace;
};

static void decode_frame(void *context, unsigned number)
{
    const struct batch *const b = context;
    const struct tsr_image *const image = b->image;
    struct tsr_decode_job *const job = &b->jobs[number];
    struct decode_space space;
    struct tsr_tiling cut;
    if (!peek_tiles(image, job, &cut)) return;
    lay_out(&space, image, &b->shape, number, b->workspace);
    if (!prepare_model(image, job, &space)) return;
    struct tsr_frame_model *model = space.model;

    struct frame_work work;
    work.image = image;
    work.space = &space;
    work.job = job;
    work.tiles = tsr_tile_count(image, model);
    if (work.tiles != job->tiles) return;
    atomic_init(&work.next_tile, 0);
    atomic_init(&work.bad_tile, work.tiles);
    work.across = tsr_parts((int32_t)image->columns, model->tile_width);
    work.rows = work.tiles / work.across;
    tsr_in_order_init(&work.rows_in_order, space.left, work.rows, work.across + LATER);
    take_base(image, job, &space);
    for (int c = 0; c < image->components; c++) {
        uint16_t *const plane = tsr_plane_in_raster(image, c, job->raster);
        if (plane) space.planes[c] = plane;
    }
    tsr_pool_run(b->pool, decode_tiles, &work, tile_threads(b->pool, work.tiles));
    if (work.bad_tile < work.tiles) {
        job->bad_tile = work.bad_tile;
        return;
    }

    if (!tsr_has_bands(image)) tsr_finish_rows(image, model, space.planes, job->raster, 0, image->rows);
    job->status = TSR_OK;
}

void tsr_cpu_decode_frames(struct tsr_pool *pool, const struct tsr_image *image, struct tsr_decode_job *jobs,
                           uint32_t frames, void *workspace)
{
    struct batch batch = {.pool = pool, .image = image, .jobs = jobs, .workspace = workspace};
    struct decode_space space;
    for (uint32_t i = 0; i < frames; i++) {
        jobs[i].status = TSR_ERROR_CORRUPT;
        jobs[i].bad_tile = TSR_BAD_MODEL;
    }
    if (!shape_of(pool, image, jobs, frames, &batch.shape)) return;
    lay_out(&space, image, &batch.shape, 0, workspace);
    tsr_begin_scratches(&space.scratches);
    tsr_pool_run(pool, decode_frame, &batch, frames);
}
