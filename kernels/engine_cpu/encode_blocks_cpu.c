/* Coefficients of path T to tables and payloads; see the header. */
#include "encode_blocks_cpu.h"

#include <string.h>

#include "kernels/blocks/lapped_cpu.h"
#include "kernels/transform_plan.h"
#include "entropy/step_classes.h"
#include "entropy/textures.h"

/* ---- Coefficients ---------------------------------------------------------------------------------------------- */

static void blocks_pass(struct tsr_plane_work *work, uint32_t part, uint32_t tile)
{
    struct tsr_encode_space *s = work->space;
    (void)part;
    tsr_blocks_forward(s->planes[work->number], tsr_tile_at(work->image, work->frame, tile), work->blocks,
                       s->coefficients + tile * s->tile_coefficients);
}

/* Where the classes of a tile's squares stand. */
static uint8_t *classes_of_tile(const struct tsr_encode_space *s, uint32_t tile)
{
    return s->classes + tile * (s->tile_squares + TSR_CLASSES_MORE);
}

static size_t squares_of(struct tsr_tile tile)
{
    return (size_t)tsr_squares_along(tile.width) * (size_t)tsr_squares_along(tile.height);
}

static void textures_pass(struct tsr_plane_work *work, uint32_t part, uint32_t number)
{
    struct tsr_encode_space *s = work->space;
    const struct tsr_tile tile = tsr_tile_at(work->image, work->frame, number);
    uint32_t *textures = s->textures + number * s->tile_squares;
    tsr_tile_textures(s->planes[work->number], tile, work->plane->range, textures);
    for (size_t i = 0; i < squares_of(tile); i++) s->counts[part].texture += textures[i];
}

/* The classes of all squares, by the mean texture. */
static void choose_classes(struct tsr_plane_work *work)
{
    struct tsr_encode_space *s = work->space;
    uint64_t sum = 0, count = 0;
    for (uint32_t part = 0; part < work->parts; part++) s->counts[part].texture = 0;
    tsr_run_pass(work, textures_pass);
    for (uint32_t part = 0; part < work->parts; part++) sum += s->counts[part].texture;
    for (uint32_t t = 0; t < work->tiles; t++) count += squares_of(tsr_tile_at(work->image, work->frame, t));
    for (uint32_t t = 0; t < work->tiles; t++) {
        const size_t squares = squares_of(tsr_tile_at(work->image, work->frame, t));
        uint8_t *classes = classes_of_tile(s, t);
        for (size_t i = 0; i < squares; i++)
            classes[i] = (uint8_t)tsr_class_of_texture(s->textures[t * s->tile_squares + i], (uint32_t)(sum / count));
        memset(classes + squares, 0, TSR_CLASSES_MORE);
    }
}

/* With loss and lapping: lapped or not, what seems to cost less. */
static void lapped_pass(struct tsr_plane_work *work, uint32_t part, uint32_t tile_number)
{
    struct tsr_encode_space *s = work->space;
    const struct tsr_tile tile = tsr_tile_at(work->image, work->frame, tile_number);
    const uint16_t *samples = s->planes[work->number];
    int32_t *coefficients = s->coefficients + tile_number * s->tile_coefficients;
    void *scratch = s->scratch + part * s->scratch_bytes;
    const struct tsr_block_steps steps = {work->plane->qp_index, (int32_t)work->plane->coarser_by,
                                          work->plane->coarser_from,
                                          work->plane->classes ? classes_of_tile(s, tile_number) : NULL};
    bool lapped = !work->fine;
    if (lapped) {
        tsr_lapped_forward(samples, tile, steps, true, coefficients, scratch);
        lapped = tsr_rough_tile_cost(coefficients, tile) <= tsr_rough_plain_cost(samples, tile, steps);
    }
    if (!lapped) tsr_lapped_forward(samples, tile, steps, false, coefficients, scratch);
    s->lapped[tile_number] = lapped;
    tsr_choose_coefficients(coefficients, tile, lapped, work->lambda, work->cavlc_bits, scratch);
}

/* ---- Tables ---------------------------------------------------------------------------------------------- */

static void count_blocks_pass(struct tsr_plane_work *work, uint32_t part, uint32_t tile)
{
    struct tsr_encode_space *s = work->space;
    tsr_count_blocks(s->coefficients + tile * s->tile_coefficients, tsr_tile_at(work->image, work->frame, tile),
                     work->blocks.slice_side, &s->counts[part].blocks);
}

/* Run-level Huffman: tables. */
static void train_run_level_model(struct tsr_plane_work *work)
{
    struct tsr_encode_space *s = work->space;
    struct tsr_run_level_model *model = &work->plane->run_level;
    memset(model, 0, sizeof *model);
    tsr_run_counts(work, count_blocks_pass, sizeof(struct tsr_block_counts));
    struct tsr_block_counts *counts = &s->counts[0].blocks;
    model->dc_tables =
        (uint8_t)tsr_merge_contexts(&counts->dc[0][0], TSR_DC_CELLS, TSR_DC_SYMBOLS, model->dc_table_of, s->merge);
    model->ac_tables =
        (uint8_t)tsr_merge_contexts(&counts->ac[0][0], TSR_AC_CELLS, TSR_AC_SYMBOLS, model->ac_table_of, s->merge);
    for (int t = 0; t < model->dc_tables; t++) {
        tsr_huffman_lengths(counts->dc[t], TSR_DC_SYMBOLS, model->dc_lengths[t], s->huffman);
        tsr_huffman_codewords(model->dc_lengths[t], TSR_DC_SYMBOLS, s->run_level_codes->dc[t]);
    }
    for (int t = 0; t < model->ac_tables; t++) {
        tsr_huffman_lengths(counts->ac[t], TSR_AC_SYMBOLS, model->ac_lengths[t], s->huffman);
        tsr_huffman_codewords(model->ac_lengths[t], TSR_AC_SYMBOLS, s->run_level_codes->ac[t]);
    }
}

static void count_entries_pass(struct tsr_plane_work *work, uint32_t part, uint32_t tile)
{
    struct tsr_encode_space *s = work->space;
    tsr_count_entries(s->coefficients + tile * s->tile_coefficients, tsr_tile_at(work->image, work->frame, tile),
                      work->coefficients, &s->counts[part].entries, s->entries + tile * s->tile_coefficients,
                      s->tile_coefficients, s->scratch + part * s->scratch_bytes);
}

/* Magnitudes that contexts see are shifted so that most of them stay below TSR_MAGNITUDE_CAP: by a sample of blocks. */
static int magnitude_shift_of(const struct tsr_plane_work *work)
{
    const struct tsr_encode_space *s = work->space;
    uint64_t sum = 0, count = 0;
    for (uint32_t t = 0; t < work->tiles; t++) {
        const struct tsr_tile tile = tsr_tile_at(work->image, work->frame, t);
        const int32_t *coefficients = s->coefficients + t * s->tile_coefficients;
        for (size_t i = 0; i < tsr_tile_coefficients(tile.width, tile.height);
             i += TSR_MAGNITUDE_STEP * TSR_BLOCK_SAMPLES)
            for (int p = 1; p < TSR_BLOCK_SAMPLES; p++, count++) sum += (uint32_t)tsr_abs(coefficients[i + (size_t)p]);
    }
    return tsr_magnitude_shift(sum, count);
}

/* rANS, and Huffman of pairs: tables. */
static void train_entries(struct tsr_plane_work *work)
{
    struct tsr_encode_space *s = work->space;
    struct tsr_plane_model *plane = work->plane;
    work->coefficients.magnitude_shift = magnitude_shift_of(work);
    tsr_run_counts(work, count_entries_pass, sizeof(union tsr_entry_counts));
    union tsr_entry_counts *counts = &s->counts[0].entries;
    tsr_begin_merging(s->merge, tsr_isa());
    if (plane->pairs) {
        struct tsr_pair_model *model = &plane->pair;
        memset(model, 0, sizeof *model);
        model->magnitude_shift = (uint8_t)work->coefficients.magnitude_shift;
        for (int g = 0; g < TSR_PAIR_GROUPS; g++) {
            const int first = g * TSR_ENERGY_CLASSES;
            model->tables[g] = (uint8_t)tsr_merge_cells(counts->pair[first], TSR_ENERGY_CLASSES, TSR_PAIR_SYMBOLS,
                                                        model->table_of + first, s->merge);
            for (int t = first; t < first + model->tables[g]; t++) {
                tsr_huffman_lengths(counts->pair[t], TSR_PAIR_SYMBOLS, model->lengths[t], s->huffman);
                tsr_huffman_codewords(model->lengths[t], TSR_PAIR_SYMBOLS, s->pair_codes[t]);
            }
        }
        return;
    }
    struct tsr_coefficient_model *model = &plane->coefficient;
    memset(model, 0, sizeof *model);
    model->magnitude_shift = (uint8_t)work->coefficients.magnitude_shift;
    for (int g = 0; g < TSR_COEFFICIENT_GROUPS; g++) {
        const int first = g * TSR_ENERGY_CLASSES;
        model->tables[g] = (uint8_t)tsr_merge_cells(counts->coefficient[first], TSR_ENERGY_CLASSES,
                                                    TSR_COEFFICIENT_SYMBOLS, model->table_of + first, s->merge);
        for (int t = first; t < first + model->tables[g]; t++) {
            model->mantissa[t] =
                (uint8_t)tsr_rans_weights(counts->coefficient[t], TSR_COEFFICIENT_SYMBOLS, model->weight[t]);
            tsr_rans_symbols(model->weight[t], TSR_COEFFICIENT_SYMBOLS, s->coefficient_codes[t]);
        }
    }
}

void tsr_make_coefficients(struct tsr_plane_work *work)
{
    const struct tsr_plane_model *plane = work->plane;
    work->blocks.kind = plane->path == TSR_PATH_PREDICT ? TSR_BLOCKS_RESIDUAL
                        : plane->lossy                  ? TSR_BLOCKS_QUANTISED
                                                        : TSR_BLOCKS_REVERSIBLE;
    work->blocks.qp_index = plane->qp_index;
    work->blocks.coarser_by = (int32_t)plane->coarser_by;
    work->blocks.coarser_from = plane->coarser_from;
    work->blocks.range = plane->range;
    work->blocks.slice_side = plane->slice_side;
    work->coefficients.slice_side = plane->slice_side;
    work->coefficients.pairs = plane->pairs;
    if (plane->classes) choose_classes(work);
    tsr_run_pass(work, plane->lapping ? lapped_pass : blocks_pass);
    if (plane->coder == TSR_CODER_RANS || plane->pairs)
        train_entries(work);
    else if (plane->coder == TSR_CODER_HUFFMAN)
        train_run_level_model(work);
}

/* ---- Payloads -------------------------------------------------------------------------------------------- */

/* Slices by the plane's coder. */
static size_t code_slices(const struct tsr_plane_work *work, uint32_t part, uint32_t number, uint8_t *payload,
                          size_t capacity)
{
    const struct tsr_encode_space *s = work->space;
    const struct tsr_plane_model *plane = work->plane;
    const struct tsr_tile tile = tsr_tile_at(work->image, work->frame, number);
    const int32_t *coefficients = s->coefficients + number * s->tile_coefficients;
    if (plane->coder == TSR_CODER_RANS || plane->pairs) {
        struct tsr_coefficient_tables tables = {0};
        tables.coefficient = &plane->coefficient;
        tables.coefficient_codes = (const tsr_coefficient_codes *)s->coefficient_codes;
        tables.pair = &plane->pair;
        tables.pair_codes = (const tsr_pair_codes *)s->pair_codes;
        return tsr_code_coefficients(coefficients, tile, work->coefficients, &tables,
                                     s->entries + number * s->tile_coefficients, payload, capacity,
                                     s->scratch + part * s->scratch_bytes);
    }
    const bool huffman = plane->coder == TSR_CODER_HUFFMAN;
    return tsr_code_slices(coefficients, tile, plane->slice_side, huffman ? s->run_level_codes : NULL,
                           huffman ? &plane->run_level : NULL, payload, capacity);
}

/* Whether a block of the square at x, y has an AC coefficient that is not 0. */
static bool is_square_in_use(const int32_t *coefficients, struct tsr_block_grid grid, int32_t x, int32_t y)
{
    const int32_t row_end = tsr_min(grid.rows, TSR_CLASS_BLOCKS * (y + 1)),
                  column_end = tsr_min(grid.columns, TSR_CLASS_BLOCKS * (x + 1));
    uint32_t any = 0;
    for (int32_t row = TSR_CLASS_BLOCKS * y; row < row_end; row++)
        for (int32_t column = TSR_CLASS_BLOCKS * x; column < column_end; column++) {
            const int32_t *block =
                coefficients + ((size_t)row * (size_t)grid.columns + (size_t)column) * TSR_BLOCK_SAMPLES;
            for (int p = 1; p < TSR_BLOCK_SAMPLES; p++) any |= (uint32_t)block[p];
        }
    return any != 0;
}

/* A square without AC coefficients gets the class that costs least. */
static void settle_classes(const int32_t *coefficients, struct tsr_tile tile, uint8_t *classes)
{
    const int32_t columns = tsr_squares_along(tile.width), rows = tsr_squares_along(tile.height);
    const struct tsr_block_grid grid = tsr_block_grid(tile.width, tile.height, 1);
    for (int32_t y = 0; y < rows; y++) {
        uint8_t *row = classes + (size_t)y * (size_t)columns;
        for (int32_t x = 0; x < columns; x++)
            if (!is_square_in_use(coefficients, grid, x, y))
                row[x] = (uint8_t)tsr_class_context(row, y > 0 ? row - columns : NULL, x).predicted;
    }
}

/* What stands before the lengths of slices: whether the tile is lapped (FORMAT.md 8.7), and its classes (8.8). Returns
 * its bytes, 0 if they would exceed capacity. */
static size_t put_head(const struct tsr_plane_work *work, uint32_t number, uint8_t *payload, size_t capacity)
{
    const struct tsr_encode_space *s = work->space;
    const struct tsr_tile tile = tsr_tile_at(work->image, work->frame, number);
    if (capacity == 0) return 0;
    payload[0] = s->lapped[number];
    if (!work->plane->classes) return 1;
    settle_classes(s->coefficients + number * s->tile_coefficients, tile, classes_of_tile(s, number));
    return tsr_put_class_string(classes_of_tile(s, number), tsr_squares_along(tile.width),
                                tsr_squares_along(tile.height), payload, 1, capacity);
}

size_t tsr_code_tile_coefficients(struct tsr_plane_work *work, uint32_t part, uint32_t number, uint8_t *payload,
                                  size_t capacity)
{
    size_t head = 0;
    if (work->plane->lapping && (head = put_head(work, number, payload, capacity)) == 0) return 0;
    if (capacity <= head) return 0;
    const size_t size = code_slices(work, part, number, payload + head, capacity - head);
    return size == 0 ? 0 : head + size;
}
