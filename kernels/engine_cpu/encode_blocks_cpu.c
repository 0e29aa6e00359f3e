/* Coefficients of path T to tables and payloads; see the header. */
#include "encode_blocks_cpu.h"

#include <string.h>

#include "kernels/blocks/intra_choice.h"
#include "kernels/blocks/intra_cpu.h"
#include "kernels/blocks/lapped_cpu.h"
#include "kernels/transform_plan.h"
#include "transform/block/dc_plane.h"
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

static struct tsr_tile dcs_of_tile(const struct tsr_plane_work *work, uint32_t number)
{
    const struct tsr_tile tile = tsr_tile_at(work->image, work->frame, number);
    return tsr_tile_of_dcs(tile.width, tile.height);
}

static void dc_costs_pass(struct tsr_plane_work *work, uint32_t part, uint32_t number)
{
    struct tsr_encode_space *s = work->space;
    const struct tsr_dc_costs costs =
        tsr_tile_dc_costs(s->planes[work->number], tsr_tile_at(work->image, work->frame, number),
                          number / tsr_tiling_across(tsr_frame_tiling(work->image, work->frame)), work->choice_q,
                          tsr_dc_fraction(work->plane->range), s->scratch + part * s->scratch_bytes);
    s->counts[part].dcs.apart += costs.apart;
    s->counts[part].dcs.plane += costs.plane;
    s->counts[part].dcs.blocks += costs.blocks;
}

/* Whether the DCs are a plane of their own, and its step. */
static void choose_dc_plane(struct tsr_plane_work *work)
{
    struct tsr_encode_space *s = work->space;
    struct tsr_dc_costs sum = {0, 0, 0};
    uint64_t blocks = 0;
    for (uint32_t part = 0; part < work->parts; part++) s->counts[part].dcs = sum;
    tsr_run_pass(work, dc_costs_pass);
    for (uint32_t part = 0; part < work->parts; part++) {
        sum.apart += s->counts[part].dcs.apart;
        sum.plane += s->counts[part].dcs.plane;
        sum.blocks += s->counts[part].dcs.blocks;
    }
    for (uint32_t t = 0; t < work->tiles; t++) {
        const struct tsr_tile dcs = dcs_of_tile(work, t);
        blocks += (uint64_t)dcs.width * (uint64_t)dcs.height;
    }
    work->plane->dc_plane = tsr_is_dc_plane_cheaper(sum, blocks);
    if (work->plane->dc_plane)
        work->plane->dc_qp_index = tsr_dc_q(work->plane->qp_index, tsr_dc_fraction(work->plane->range));
}

/* A tile to coefficients, lapped or not, what seems to cost less; with steps.dcs also its DC plane, by dc_q. */
static void make_lapped(struct tsr_plane_work *work, uint32_t part, uint32_t number, struct tsr_block_steps steps,
                        int32_t dc_q)
{
    struct tsr_encode_space *s = work->space;
    const struct tsr_tile tile = tsr_tile_at(work->image, work->frame, number);
    const uint16_t *samples = s->planes[work->number];
    int32_t *coefficients = s->coefficients + number * s->tile_coefficients;
    void *scratch = s->scratch + part * s->scratch_bytes;
    bool lapped = !work->fine;
    if (lapped) {
        tsr_lapped_forward(samples, tile, steps, true, coefficients, scratch);
        lapped = tsr_rough_tile_cost(coefficients, tile) <= tsr_rough_plain_cost(samples, tile, steps);
    }
    if (!lapped) tsr_lapped_forward(samples, tile, steps, false, coefficients, scratch);
    s->lapped[number] = lapped;
    tsr_choose_coefficients(coefficients, tile, lapped, work->lambda, work->cavlc_bits, scratch);
    if (!steps.dcs) return;
    coefficients = s->dc_coefficients + number * s->tile_dc_coefficients;
    tsr_forward_dcs(steps.dcs, dcs_of_tile(work, number), dc_q, coefficients, scratch);
    tsr_choose_coefficients(coefficients, dcs_of_tile(work, number), false, work->lambda, false, scratch);
}

/* What a tile costs as make_lapped left it, in 1/16 bit, with its errors. All of its blocks have one q. */
static uint64_t cost_of_lapped(struct tsr_plane_work *work, uint32_t part, uint32_t number,
                               struct tsr_block_steps steps, int32_t dc_q)
{
    struct tsr_encode_space *s = work->space;
    const struct tsr_tile tile = tsr_tile_at(work->image, work->frame, number), dcs = dcs_of_tile(work, number);
    const struct tsr_block_grid grid = tsr_block_grid(tile.width, tile.height, 1);
    void *scratch = s->scratch + part * s->scratch_bytes;
    int32_t *other = s->other_coefficients + part * s->tile_coefficients;
    uint16_t *restored = s->restored + part * s->tile_coefficients;
    uint64_t cost = tsr_intra_rate_of_tile(s->coefficients + number * s->tile_coefficients, tile, scratch);
    if (steps.dcs) {
        const int32_t *of_dcs = s->dc_coefficients + number * s->tile_dc_coefficients;
        cost += tsr_intra_rate_of_tile(of_dcs, dcs, scratch);
        memcpy(other, of_dcs, tsr_tile_coefficients(dcs.width, dcs.height) * sizeof *other);
        if (!tsr_inverse_dcs(other, dcs, dc_q, steps.dcs, scratch)) return UINT64_MAX / 2;
    }
    const struct tsr_tile own = {0, tile.width, tile.height, 4 * (size_t)grid.columns};
    memcpy(other, s->coefficients + number * s->tile_coefficients,
           tsr_tile_coefficients(tile.width, tile.height) * sizeof *other);
    if (!tsr_lapped_inverse(other, own, steps, s->lapped[number] != 0, work->plane->range, restored, scratch))
        return UINT64_MAX / 2;
    return cost + tsr_intra_errors_of_tile(s->planes[work->number], tile, steps, work->lambda, restored);
}

/* A tile is predicted where that costs less, by more than what the tables of two ways cost. Both are compared with the
 * q that choices are made by, and without a higher one of later blocks: codings that are compared decide alike. */
static void choose_way(struct tsr_plane_work *work, uint32_t part, uint32_t number, struct tsr_block_steps steps)
{
    struct tsr_encode_space *s = work->space;
    const struct tsr_plane_model *plane = work->plane;
    const struct tsr_tile tile = tsr_tile_at(work->image, work->frame, number);
    const uint16_t *samples = s->planes[work->number];
    int32_t *coefficients = s->coefficients + number * s->tile_coefficients,
            *other = s->other_coefficients + part * s->tile_coefficients;
    uint8_t *map = s->intra_maps + number * s->tile_blocks_four;
    void *scratch = s->scratch + part * s->scratch_bytes;
    struct tsr_block_steps by = steps;
    by.q = work->choice_q;
    by.coarser_by = 0;
    const bool same = by.q == steps.q && steps.coarser_by == 0;
    const int32_t dc_q = same ? plane->dc_qp_index : tsr_dc_q(by.q, steps.dc_fraction);
    make_lapped(work, part, number, by, dc_q);
    const uint64_t lapped = cost_of_lapped(work, part, number, by, dc_q);
    const uint64_t predicted = tsr_intra_forward(samples, tile, by, plane->range, work->lambda, other, map, scratch);
    if (lapped <= predicted + (predicted >> TSR_INTRA_MARGIN_SHIFT) + TSR_INTRA_MARGIN) {
        if (!same) make_lapped(work, part, number, steps, plane->dc_qp_index);
        return;
    }
    s->lapped[number] = TSR_TILE_INTRA;
    if (same)
        memcpy(coefficients, other, tsr_tile_coefficients(tile.width, tile.height) * sizeof *other);
    else
        (void)tsr_intra_forward(samples, tile, steps, plane->range, work->lambda, coefficients, map, scratch);
}

/* With loss and lapping. */
static void lapped_pass(struct tsr_plane_work *work, uint32_t part, uint32_t number)
{
    struct tsr_encode_space *s = work->space;
    const struct tsr_plane_model *plane = work->plane;
    const struct tsr_block_steps steps = {plane->qp_index,
                                          (int32_t)plane->coarser_by,
                                          plane->coarser_from,
                                          plane->classes ? classes_of_tile(s, number) : NULL,
                                          plane->dc_plane ? s->dcs + part * s->tile_dcs : NULL,
                                          tsr_dc_fraction(plane->range)};
    if (plane->intra)
        choose_way(work, part, number, steps);
    else
        make_lapped(work, part, number, steps, plane->dc_qp_index);
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

static void count_dc_entries_pass(struct tsr_plane_work *work, uint32_t part, uint32_t tile)
{
    struct tsr_encode_space *s = work->space;
    if (s->lapped[tile] == TSR_TILE_INTRA) return;
    tsr_count_entries(s->dc_coefficients + tile * s->tile_dc_coefficients, dcs_of_tile(work, tile), work->dcs,
                      &s->counts[part].entries, s->dc_entries + tile * s->tile_dc_coefficients, s->tile_dc_coefficients,
                      s->scratch + part * s->scratch_bytes);
}

/* Magnitudes that contexts see are shifted so that most of them stay below TSR_MAGNITUDE_CAP: by a sample of blocks.
 * dcs: of the DC plane. */
static int magnitude_shift_of(const struct tsr_plane_work *work, bool dcs)
{
    const struct tsr_encode_space *s = work->space;
    uint64_t sum = 0, count = 0;
    for (uint32_t t = 0; t < work->tiles; t++) {
        if (dcs && s->lapped[t] == TSR_TILE_INTRA) continue;
        const struct tsr_tile tile = dcs ? dcs_of_tile(work, t) : tsr_tile_at(work->image, work->frame, t);
        const int32_t *coefficients =
            dcs ? s->dc_coefficients + t * s->tile_dc_coefficients : s->coefficients + t * s->tile_coefficients;
        for (size_t i = 0; i < tsr_tile_coefficients(tile.width, tile.height);
             i += TSR_MAGNITUDE_STEP * TSR_BLOCK_SAMPLES)
            for (int p = 1; p < TSR_BLOCK_SAMPLES; p++, count++) sum += (uint32_t)tsr_abs(coefficients[i + (size_t)p]);
    }
    return count > 0 ? tsr_magnitude_shift(sum, count) : 0;
}

static void train_pairs(struct tsr_plane_work *work, int shift, struct tsr_pair_model *model, tsr_pair_codes *codes)
{
    struct tsr_encode_space *s = work->space;
    union tsr_entry_counts *counts = &s->counts[0].entries;
    memset(model, 0, sizeof *model);
    model->magnitude_shift = (uint8_t)shift;
    for (int g = 0; g < TSR_PAIR_GROUPS; g++) {
        const int first = g * TSR_ENERGY_CLASSES;
        model->tables[g] = (uint8_t)tsr_merge_cells(counts->pair[first], TSR_ENERGY_CLASSES, TSR_PAIR_SYMBOLS,
                                                    model->table_of + first, s->merge);
        for (int t = first; t < first + model->tables[g]; t++) {
            tsr_huffman_lengths(counts->pair[t], TSR_PAIR_SYMBOLS, model->lengths[t], s->huffman);
            tsr_huffman_codewords(model->lengths[t], TSR_PAIR_SYMBOLS, codes[t]);
        }
    }
}

static void train_rans(struct tsr_plane_work *work, int shift, struct tsr_coefficient_model *model,
                       tsr_coefficient_codes *codes)
{
    struct tsr_encode_space *s = work->space;
    union tsr_entry_counts *counts = &s->counts[0].entries;
    memset(model, 0, sizeof *model);
    model->magnitude_shift = (uint8_t)shift;
    for (int g = 0; g < TSR_COEFFICIENT_GROUPS; g++) {
        const int first = g * TSR_ENERGY_CLASSES;
        model->tables[g] = (uint8_t)tsr_merge_cells(counts->coefficient[first], TSR_ENERGY_CLASSES,
                                                    TSR_COEFFICIENT_SYMBOLS, model->table_of + first, s->merge);
        for (int t = first; t < first + model->tables[g]; t++) {
            model->mantissa[t] =
                (uint8_t)tsr_rans_weights(counts->coefficient[t], TSR_COEFFICIENT_SYMBOLS, model->weight[t]);
            tsr_rans_symbols(model->weight[t], TSR_COEFFICIENT_SYMBOLS, codes[t]);
        }
    }
}

/* rANS, and Huffman of pairs: tables. dcs: of the DC plane. */
static void train_entries(struct tsr_plane_work *work, bool dcs)
{
    struct tsr_encode_space *s = work->space;
    struct tsr_plane_model *plane = work->plane;
    const int shift = magnitude_shift_of(work, dcs);
    (dcs ? &work->dcs : &work->coefficients)->magnitude_shift = shift;
    tsr_run_counts(work, dcs ? count_dc_entries_pass : count_entries_pass, sizeof(union tsr_entry_counts));
    tsr_begin_merging(s->merge, tsr_isa());
    if (plane->pairs)
        train_pairs(work, shift, dcs ? &plane->dcs.pair : &plane->pair, dcs ? s->dc_codes.pair_codes : s->pair_codes);
    else
        train_rans(work, shift, dcs ? &plane->dcs.coefficient : &plane->coefficient,
                   dcs ? s->dc_codes.coefficient_codes : s->coefficient_codes);
}

/* What no tile has the plane does not have. */
static void settle_ways(struct tsr_plane_work *work)
{
    bool any = false, all = true;
    for (uint32_t t = 0; t < work->tiles; t++) {
        any |= work->space->lapped[t] == TSR_TILE_INTRA;
        all &= work->space->lapped[t] == TSR_TILE_INTRA;
    }
    work->plane->intra = any;
    work->plane->dc_plane &= !all;
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
    work->dcs = work->coefficients;
    if (plane->dc_plane) choose_dc_plane(work);
    if (plane->classes) choose_classes(work);
    tsr_run_pass(work, plane->lapping ? lapped_pass : blocks_pass);
    if (plane->intra) settle_ways(work);
    if (plane->coder == TSR_CODER_RANS || plane->pairs)
        train_entries(work, false);
    else if (plane->coder == TSR_CODER_HUFFMAN)
        train_run_level_model(work);
    if (plane->dc_plane) train_entries(work, true);
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

/* Whether a block of the square at x, y has a coefficient that is not 0, from this place on. */
static bool is_square_in_use(const int32_t *coefficients, struct tsr_block_grid grid, int32_t x, int32_t y, int first)
{
    const int32_t row_end = tsr_min(grid.rows, TSR_CLASS_BLOCKS * (y + 1)),
                  column_end = tsr_min(grid.columns, TSR_CLASS_BLOCKS * (x + 1));
    uint32_t any = 0;
    for (int32_t row = TSR_CLASS_BLOCKS * y; row < row_end; row++)
        for (int32_t column = TSR_CLASS_BLOCKS * x; column < column_end; column++) {
            const int32_t *block =
                coefficients + ((size_t)row * (size_t)grid.columns + (size_t)column) * TSR_BLOCK_SAMPLES;
            for (int p = first; p < TSR_BLOCK_SAMPLES; p++) any |= (uint32_t)block[p];
        }
    return any != 0;
}

/* A square without coefficients that its class is for gets the class that costs least. */
static void settle_classes(const int32_t *coefficients, struct tsr_tile tile, int first, uint8_t *classes)
{
    const int32_t columns = tsr_squares_along(tile.width), rows = tsr_squares_along(tile.height);
    const struct tsr_block_grid grid = tsr_block_grid(tile.width, tile.height, 1);
    for (int32_t y = 0; y < rows; y++) {
        uint8_t *row = classes + (size_t)y * (size_t)columns;
        for (int32_t x = 0; x < columns; x++)
            if (!is_square_in_use(coefficients, grid, x, y, first))
                row[x] = (uint8_t)tsr_class_context(row, y > 0 ? row - columns : NULL, x).predicted;
    }
}

/* Moves size bytes up, and puts their number in front. Returns all bytes, 0 if they would exceed capacity. */
static size_t put_size_in_front(uint8_t *bytes, size_t size, size_t capacity)
{
    uint8_t varint[10];
    const size_t head = tsr_put_varint(varint, size);
    if (head + size > capacity) return 0;
    memmove(bytes + head, bytes, size);
    memcpy(bytes, varint, head);
    return head + size;
}

/* The tile's DC plane. Returns its bytes, 0 if they would exceed capacity. */
static size_t put_dcs(const struct tsr_plane_work *work, uint32_t part, uint32_t number, uint8_t *payload,
                      size_t capacity)
{
    const struct tsr_encode_space *s = work->space;
    const struct tsr_plane_model *plane = work->plane;
    struct tsr_coefficient_tables tables = {0};
    tables.coefficient = &plane->dcs.coefficient;
    tables.coefficient_codes = (const tsr_coefficient_codes *)s->dc_codes.coefficient_codes;
    tables.pair = &plane->dcs.pair;
    tables.pair_codes = (const tsr_pair_codes *)s->dc_codes.pair_codes;
    const size_t size = tsr_code_coefficients(
        s->dc_coefficients + number * s->tile_dc_coefficients, dcs_of_tile(work, number), work->dcs, &tables,
        s->dc_entries + number * s->tile_dc_coefficients, payload, capacity, s->scratch + part * s->scratch_bytes);
    return size == 0 ? 0 : put_size_in_front(payload, size, capacity);
}

/* What stands before the lengths of slices: whether the tile is lapped (FORMAT.md 8.7), its classes (8.8) and its DC
 * plane (8.9). Returns its bytes, 0 if they would exceed capacity. */
static size_t put_head(const struct tsr_plane_work *work, uint32_t part, uint32_t number, uint8_t *payload,
                       size_t capacity)
{
    const struct tsr_encode_space *s = work->space;
    const struct tsr_tile tile = tsr_tile_at(work->image, work->frame, number);
    if (capacity == 0) return 0;
    const bool is_intra = s->lapped[number] == TSR_TILE_INTRA;
    payload[0] = s->lapped[number];
    size_t head = 1;
    if (work->plane->classes) {
        settle_classes(s->coefficients + number * s->tile_coefficients, tile, is_intra ? 0 : 1,
                       classes_of_tile(s, number));
        head = tsr_put_class_string(classes_of_tile(s, number), tsr_squares_along(tile.width),
                                    tsr_squares_along(tile.height), payload, 1, capacity);
    }
    if (is_intra && head > 0) {
        const struct tsr_block_grid grid = tsr_block_grid(tile.width, tile.height, 1);
        const struct tsr_intra_map map = {s->intra_maps + number * s->tile_blocks_four, grid.columns, grid.rows};
        return tsr_put_intra_string(&map, payload, head, capacity);
    }
    if (!work->plane->dc_plane || head == 0) return head;
    const size_t dcs = head < capacity ? put_dcs(work, part, number, payload + head, capacity - head) : 0;
    return dcs == 0 ? 0 : head + dcs;
}

size_t tsr_code_tile_coefficients(struct tsr_plane_work *work, uint32_t part, uint32_t number, uint8_t *payload,
                                  size_t capacity)
{
    size_t head = 0;
    if (work->plane->lapping && (head = put_head(work, part, number, payload, capacity)) == 0) return 0;
    if (capacity <= head) return 0;
    const size_t size = code_slices(work, part, number, payload + head, capacity - head);
    return size == 0 ? 0 : head + size;
}
