/* Path P on the CPU. FORMAT.md section 7; see the header. */
#include "residuals_cpu.h"

#include <string.h>

#include "entropy/runs.h"
#include "symbol_rows_cpu.h"

/* ---- Predict -------------------------------------------------------------------------------------------- */

/* A bit a column, of whole steps of TSR_SYMBOL_MARGIN columns. */
static size_t quiet_bytes(int32_t tile_width)
{
    return ((size_t)tile_width + 2 * TSR_SYMBOL_MARGIN) / 32 * sizeof(uint32_t);
}

/* Where the row of tsr_symbol_row begins: an even place. */
static size_t row_offset(int32_t tile_width)
{
    static_assert(TSR_SMALL_VALUES % 2 == 0, "values of 16 bits follow");
    return tsr_residual_rows_bytes(tile_width) + quiet_bytes(tile_width) + TSR_SMALL_VALUES;
}

size_t tsr_predict_scratch_bytes(int32_t tile_width)
{
    return row_offset(tile_width) + (size_t)tile_width * (sizeof(uint16_t) + 2);
}

struct tsr_symbol_planes tsr_symbol_row(int32_t tile_width, void *scratch)
{
    uint8_t *const row = (uint8_t *)scratch + row_offset(tile_width);
    uint8_t *const symbol = row + (size_t)tile_width * sizeof(uint16_t);
    return (struct tsr_symbol_planes){
        .value = (uint16_t *)(void *)row, .symbol = symbol, .context = symbol + tile_width, .is_row = true};
}

/* Puts the runs of a row in place of their first samples' symbols, marks the others, and finds the interruptions. */
static void find_runs(const struct tsr_residual_rows *rows, const uint32_t *quiet, uint16_t *value, uint8_t *symbol,
                      uint8_t *bin)
{
    const int32_t width = rows->tile.width;
    const uint16_t *folded = rows->folded;
    for (int32_t c = tsr_next_bit(quiet, 0, width); c < width; c = tsr_next_bit(quiet, c + 1, width)) {
        if (!tsr_run_starts(folded[c] == 0, true)) continue;
        const int32_t end = tsr_long_run_end(folded, c, width);
        value[c] = (uint16_t)(end - c);
        symbol[c] = (uint8_t)tsr_row_run_token((uint32_t)(end - c), end == width).symbol;
        memset(bin + c + 1, TSR_INSIDE_BIN, (size_t)(end - c - 1));
        if (end < width && tsr_interruptions(rows->activity[end] == 0, true, false)) bin[end] = TSR_INTERRUPTION_BIN;
        c = end; /* its residual is not 0: no run begins there */
    }
}

static void count_bins(const uint8_t *bin, const uint16_t *intensity, int32_t width, struct tsr_bin_counts *counts)
{
    for (int32_t c = 0; c < width; c++) {
        if (bin[c] == 0 || bin[c] >= TSR_ACTIVITY_BINS) continue;
        counts->activity[bin[c]]++;
        counts->intensity[intensity[c]]++;
    }
}

/* A tile's rows on their way to symbols. */
struct symbol_pass {
    struct tsr_residual_rows rows;
    const struct tsr_symbol_rows *forms;
    uint32_t *quiet;
    uint8_t *small;
    int32_t y, period; /* the next row; see tsr_predict_tile */
};

static struct symbol_pass begin_pass(const uint16_t *samples, struct tsr_tile tile, uint32_t range,
                                     const struct tsr_tile_predictors *predictors, int32_t period, void *scratch)
{
    struct symbol_pass pass = {.forms = tsr_symbol_rows(tsr_isa()), .period = period};
    pass.rows = tsr_residual_rows(samples, tile, range, predictors, scratch);
    pass.quiet = (uint32_t *)(void *)((uint8_t *)scratch + tsr_residual_rows_bytes(tile.width));
    pass.small = (uint8_t *)pass.quiet + quiet_bytes(tile.width);
    for (uint32_t v = 0; v < TSR_SMALL_VALUES && pass.forms->wants_small; v++)
        pass.small[v] = (uint8_t)tsr_token_symbol(v);
    return pass;
}

/* Puts the values, symbols and bins of the next row that is sampled, and its place in the planes. Returns false if
 * there is none. */
static bool next_symbols(struct symbol_pass *pass, struct tsr_symbol_planes out, size_t *at)
{
    struct tsr_residual_rows *rows = &pass->rows;
    const struct tsr_tile tile = rows->tile;
    for (;; pass->y++) {
        if (pass->period && pass->y % pass->period == TSR_SAMPLED_ROWS) {
            pass->y += pass->period - TSR_SAMPLED_ROWS - 2; /* two rows before those that count */
            if (pass->y < tile.height) tsr_skip_to_row(rows, pass->y);
        }
        if (pass->y >= tile.height) return false;
        tsr_next_row(rows);
        if (tsr_row_is_sampled(pass->y, pass->period)) break;
    }
    *at = out.is_row ? 0 : tile.first + (size_t)pass->y * tile.stride;
    pass->y++;
    memcpy(out.value + *at, rows->folded, (size_t)tile.width * sizeof *out.value);
    pass->forms->find_symbols(pass->small, rows->folded, rows->activity, tile.width, out.symbol + *at,
                              out.context + *at, pass->quiet);
    find_runs(rows, pass->quiet, out.value + *at, out.symbol + *at, out.context + *at);
    return true;
}

void tsr_predict_tile(const uint16_t *samples, struct tsr_tile tile, uint32_t range,
                      const struct tsr_tile_predictors *predictors, int32_t period, struct tsr_symbol_planes out,
                      struct tsr_bin_counts *counts, void *scratch)
{
    struct symbol_pass pass = begin_pass(samples, tile, range, predictors, period, scratch);
    size_t at;
    while (next_symbols(&pass, out, &at)) {
        if (out.intensity) memcpy(out.intensity + at, pass.rows.intensity, (size_t)tile.width * sizeof *out.intensity);
        count_bins(out.context + at, pass.rows.intensity, tile.width, counts);
    }
}

/* ---- Count ---------------------------------------------------------------------------------------------- */

void tsr_map_contexts(struct tsr_context_map *map, const struct tsr_residual_model *model)
{
    uint8_t activity_group[TSR_ACTIVITY_BINS];
    tsr_group_bins(model->activity_cut, model->activity_cuts, TSR_ACTIVITY_BINS, activity_group);
    tsr_group_bins(model->intensity_cut, model->intensity_cuts, TSR_INTENSITY_BINS, map->intensity_group);
    for (int g = 0; g < TSR_INTENSITY_GROUPS; g++) {
        map->context[0][g] = TSR_RUN_CONTEXT;
        map->context[TSR_INTERRUPTION_BIN][g] = TSR_INTERRUPTION_CONTEXT;
        map->context[TSR_INSIDE_BIN][g] = TSR_RUN_CONTEXT; /* one that is known; nothing is coded with it */
        for (int bin = 1; bin < TSR_ACTIVITY_BINS; bin++)
            map->context[bin][g] =
                (uint8_t)(TSR_FIRST_CELL_CONTEXT + tsr_cell_of(activity_group[bin], tsr_min(g, model->intensity_cuts),
                                                               model->intensity_cuts + 1));
    }
    for (int bin = 0; bin < TSR_CONTEXT_BINS; bin++) map->first[bin] = map->context[bin][0];
}

int tsr_table_of_context(const struct tsr_residual_model *model, int context)
{
    if (context < TSR_FIRST_CELL_CONTEXT) return context;
    return TSR_FIRST_RESIDUAL_TABLE + (model->tables ? model->table_of[context - TSR_FIRST_CELL_CONTEXT] : 0);
}

void tsr_count_tile(const uint16_t *samples, struct tsr_tile tile, uint32_t range,
                    const struct tsr_tile_predictors *predictors, int32_t period, const struct tsr_context_map *map,
                    struct tsr_symbol_planes out, struct tsr_symbol_counts *counts, void *scratch)
{
    struct symbol_pass pass = begin_pass(samples, tile, range, predictors, period, scratch);
    uint32_t *count = (uint32_t *)counts;
    size_t at;
    while (next_symbols(&pass, out, &at))
        for (int32_t c = 0; c < tile.width; c += TSR_COUNT_COLUMNS) {
            const int32_t columns = tsr_min(TSR_COUNT_COLUMNS, tile.width - c);
            uint16_t place[TSR_COUNT_COLUMNS];
            pass.forms->find_contexts(map, out.symbol + at + c, pass.rows.intensity + c, columns, out.context + at + c,
                                      place);
            for (int32_t i = 0; i < columns; i++) count[place[i]]++;
        }
    count[TSR_UNCOUNTED_PLACE] = 0;
}

void tsr_count_unseen(const struct tsr_residual_model *model, uint32_t range, int32_t width,
                      struct tsr_symbol_counts *counts)
{
    for (int s = 0; s < TSR_RUN_ALPHABET; s++) {
        counts->special[TSR_RUN_TABLE][s] += tsr_symbol_may_come(TSR_RUN_TABLE, s, range, width);
        counts->special[TSR_INTERRUPTION_TABLE][s] += tsr_symbol_may_come(TSR_INTERRUPTION_TABLE, s, range, width);
    }
    for (int i = 0; i < model->tables; i++)
        for (int s = 0; s < TSR_RESIDUAL_SYMBOLS; s++)
            counts->cell[i][s] += tsr_symbol_may_come(TSR_FIRST_RESIDUAL_TABLE, s, range, width);
}

/* ---- Labels ------------------------------------------------------------------------------------------------ */

void tsr_count_labels(const struct tsr_predictor_model *model, const uint8_t *label, struct tsr_tile tile,
                      uint32_t *counts)
{
    const int32_t across = tsr_blocks_across(tile.width), down = tsr_blocks_across(tile.height);
    for (int32_t y = 0; y < down; y++)
        for (int32_t x = 0, left = -1; x < across; x++, label++) {
            counts[tsr_label_cell(left) * (model->classes + 1) + *label]++;
            left = *label;
        }
}

size_t tsr_code_labels(const struct tsr_predictor_model *model, const uint8_t *label, struct tsr_tile tile,
                       uint8_t *payload, size_t capacity)
{
    struct tsr_codeword words[TSR_LABEL_TABLES_LIMIT][TSR_LABELS_LIMIT];
    const int32_t across = tsr_blocks_across(tile.width), down = tsr_blocks_across(tile.height);
    for (int t = 0; t < model->label_tables; t++)
        tsr_huffman_codewords(model->label_lengths[t], model->classes + 1, words[t]);
    struct tsr_bit_writer writer = tsr_bit_writer(payload, capacity);
    tsr_put_labels(&writer, model, (const struct tsr_codeword(*)[TSR_LABELS_LIMIT])words, label, across, down);
    return tsr_end_labels(&writer);
}
