/* Path P on the CPU. FORMAT.md section 7; see the header. */
#include "predictive_cpu.h"

#include <string.h>

#include "../transform/median_edge.h"
#include "../transform/residual.h"

/* ---- Predict -------------------------------------------------------------------------------------------- */

size_t tsr_predict_scratch_bytes(int32_t tile_width)
{
    return tsr_residual_rows_bytes(tile_width);
}

/* Runs, tokens and levels of one row: the sequential part. */
static void symbol_row(const uint16_t *restrict folded, const int16_t *restrict activity,
                       const uint16_t *restrict intensity, int32_t width, uint16_t *restrict value,
                       uint8_t *restrict symbol, uint8_t *restrict context, struct tsr_level_counts *restrict counts)
{
    bool after_run = false;
    for (int32_t c = 0; c < width; c++) {
        value[c] = folded[c];
        symbol[c] = (uint8_t)tsr_token_symbol(folded[c]);
        if (activity[c] != 0) {
            const int level = tsr_activity_level(activity[c]);
            context[c] = (uint8_t)level;
            counts->activity[level]++;
            counts->intensity[intensity[c]]++;
            after_run = false;
        } else if (after_run || folded[c] != 0) {
            context[c] = after_run ? TSR_INTERRUPTION_LEVEL : 0;
            after_run = false;
        } else {
            int32_t end = c + 1;
            while (end < width && folded[end] == 0) end++;
            value[c] = (uint16_t)(end - c);
            symbol[c] = (uint8_t)tsr_run_token((uint32_t)(end - c)).symbol;
            context[c] = 0;
            c = end - 1;
            after_run = true;
        }
    }
}

void tsr_predict_tile(const uint16_t *samples, struct tsr_tile tile, uint32_t range,
                      const struct tsr_tile_predictors *predictors, struct tsr_symbol_planes out,
                      struct tsr_level_counts *counts, void *scratch)
{
    struct tsr_residual_rows rows = tsr_residual_rows(samples, tile, range, predictors, scratch);
    for (int32_t y = 0; y < tile.height; y++) {
        const size_t at = tile.first + (size_t)y * tile.stride;
        tsr_next_row(&rows);
        memcpy(out.intensity + at, rows.intensity, (size_t)tile.width * sizeof *out.intensity);
        symbol_row(rows.folded, rows.activity, rows.intensity, tile.width, out.value + at, out.symbol + at,
                   out.context + at, counts);
    }
}

/* ---- Count ---------------------------------------------------------------------------------------------- */

void tsr_map_contexts(struct tsr_context_map *map, const struct tsr_residual_model *model)
{
    uint8_t activity_group[TSR_ACTIVITY_LEVELS];
    tsr_group_levels(model->activity_cut, model->activity_cuts, TSR_ACTIVITY_LEVELS, activity_group);
    tsr_group_levels(model->intensity_cut, model->intensity_cuts, TSR_INTENSITY_LEVELS, map->intensity_group);
    for (int g = 0; g < TSR_INTENSITY_GROUPS; g++) {
        map->context[0][g] = TSR_RUN_CONTEXT;
        map->context[TSR_INTERRUPTION_LEVEL][g] = TSR_INTERRUPTION_CONTEXT;
        for (int level = 1; level < TSR_ACTIVITY_LEVELS; level++)
            map->context[level][g] =
                (uint8_t)(TSR_FIRST_CELL_CONTEXT + activity_group[level] * (model->intensity_cuts + 1) +
                          tsr_min(g, model->intensity_cuts));
    }
}

int tsr_table_of_context(const struct tsr_residual_model *model, int context)
{
    if (context < TSR_FIRST_CELL_CONTEXT) return context;
    return TSR_FIRST_RESIDUAL_TABLE + (model->tables ? model->table_of[context - TSR_FIRST_CELL_CONTEXT] : 0);
}

void tsr_count_tile(struct tsr_symbol_planes planes, struct tsr_tile tile, const struct tsr_context_map *map,
                    struct tsr_symbol_counts *counts)
{
    for (int32_t y = 0; y < tile.height; y++) {
        const size_t row = tile.first + (size_t)y * tile.stride;
        for (int32_t c = 0; c < tile.width; c++) {
            const size_t at = row + (size_t)c;
            const uint8_t symbol = planes.symbol[at];
            const uint8_t context = map->context[planes.context[at]][map->intensity_group[planes.intensity[at]]];
            planes.context[at] = context;
            if (context >= TSR_FIRST_CELL_CONTEXT) {
                counts->cell[context - TSR_FIRST_CELL_CONTEXT][symbol]++;
            } else {
                counts->special[context][symbol]++;
                if (symbol >= TSR_RUN_SYMBOL) c += planes.value[at] - 1;
            }
        }
    }
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
    for (int32_t y = 0; y < down; y++)
        for (int32_t x = 0, left = -1; x < across; x++, label++) {
            const struct tsr_codeword word = words[model->label_table_of[tsr_label_cell(left)]][*label];
            tsr_put_bits(&writer, word.bits, word.length);
            left = *label;
        }
    size_t size = tsr_flush_bits(&writer);
    if (writer.overflow || size + 1 > capacity) return SIZE_MAX;
    if (size % 2 != 0) payload[size++] = 0;
    return size;
}

/* ---- Code ----------------------------------------------------------------------------------------------- */

void tsr_build_codes(tsr_code_table codes[TSR_MODEL_TABLES], const struct tsr_residual_model *model)
{
    struct tsr_codeword words[TSR_RUN_ALPHABET];
    for (int t = 0; t < TSR_FIRST_RESIDUAL_TABLE + model->tables; t++) {
        tsr_huffman_codewords(model->lengths[t], TSR_RUN_ALPHABET, words);
        for (int s = 0; s < TSR_RUN_ALPHABET; s++) {
            codes[t][s].bits = words[s].bits;
            codes[t][s].length = words[s].length;
            codes[t][s].raw_bits = (uint8_t)tsr_symbol_raw_bits(s);
        }
    }
}

/* Words of all lanes, lane by lane, and the ticks in which they are taken. */
struct word_list {
    uint16_t *word;
    uint32_t *tick;
    uint32_t filled, taken, limit, room; /* room: for words beyond the limit */
};

/* Ticks of a tile. */
static size_t tick_count(int32_t width, int32_t height, int lanes)
{
    const size_t rows = (size_t)(height + lanes - 1) / (size_t)lanes;
    return (size_t)tsr_lane_period(width, lanes) * rows + (size_t)(TSR_LANE_DELAY * lanes);
}

static size_t most_words(int32_t width, int32_t height)
{
    return tsr_raw_tile_bytes(65536, width, height) / 2 + 2; /* a request may take two words at once */
}

size_t tsr_code_scratch_bytes(int32_t tile_width, int32_t tile_height)
{
    const int lanes = tsr_lanes_for_tile(tile_width, tile_height);
    return (tick_count(tile_width, tile_height, lanes) + most_words(tile_width, tile_height)) * sizeof(uint32_t) +
           most_words(tile_width, tile_height) * sizeof(uint16_t) + (size_t)tile_width * sizeof(uint16_t);
}

size_t tsr_once_scratch_bytes(int32_t tile_width, int32_t tile_height)
{
    const size_t rows = tsr_residual_rows_bytes(tile_width), lists = tsr_code_scratch_bytes(tile_width, tile_height);
    return (size_t)tile_width * (size_t)tile_height * 2 * sizeof(uint16_t) + (rows > lists ? rows : lists);
}

/* Codes one row from its first tick on. False if the tile takes more words than its limit. */
static bool code_row(struct tsr_symbol_planes planes, size_t at, int32_t width, int refill_bits,
                     const struct tsr_symbol_code *const codes[TSR_CONTEXT_LIMIT], uint32_t tick,
                     struct tsr_lane_writer *writer, struct word_list *list)
{
    struct tsr_lane_writer lane = *writer;
    uint32_t taken = list->taken, filled = list->filled;
    for (int32_t c = 0; c < width; c++) {
        const uint32_t value = planes.value[at + (size_t)c];
        const int symbol = planes.symbol[at + (size_t)c];
        const struct tsr_symbol_code code = codes[planes.context[at + (size_t)c]][symbol];
        if (taken > list->limit) return false;
        list->tick[taken] = list->tick[taken + 1] = tick + (uint32_t)c;
        taken += (uint32_t)tsr_lane_request(&lane, refill_bits);
        tsr_lane_put(&lane, (uint32_t)code.bits << code.raw_bits | (value & ((1u << code.raw_bits) - 1u)),
                     code.length + code.raw_bits);
        filled += (uint32_t)tsr_lane_get_words(&lane, list->word + filled);
        if (symbol >= TSR_RUN_SYMBOL) c += (int32_t)value - 1;
    }
    *writer = lane;
    list->taken = taken;
    list->filled = filled;
    return true;
}

/* Writes the words in the order of their ticks and, within a tick, of their lanes, in which they are listed. */
static void place_words(const struct word_list *list, uint32_t *place, size_t ticks, uint8_t *payload)
{
    uint32_t next = 0;
    memset(place, 0, ticks * sizeof *place);
    for (uint32_t i = 0; i < list->taken; i++) place[list->tick[i]]++;
    for (size_t t = 0; t < ticks; t++) {
        const uint32_t words = place[t];
        place[t] = next;
        next += words;
    }
    for (uint32_t i = 0; i < list->taken; i++) {
        uint8_t *out = payload + 2 * (size_t)place[list->tick[i]]++;
        out[0] = (uint8_t)list->word[i];
        out[1] = (uint8_t)(list->word[i] >> 8);
    }
}

size_t tsr_code_tile(struct tsr_symbol_planes planes, struct tsr_tile tile, const struct tsr_residual_model *model,
                     const tsr_code_table codes[TSR_MODEL_TABLES], uint8_t *payload, size_t capacity, void *scratch)
{
    const int lanes = model->lanes;
    const int32_t period = tsr_lane_period(tile.width, lanes);
    const size_t ticks = tick_count(tile.width, tile.height, lanes);
    const struct tsr_symbol_code *code_of[TSR_CONTEXT_LIMIT];
    for (int i = 0; i < TSR_FIRST_CELL_CONTEXT + tsr_model_cells(model); i++)
        code_of[i] = codes[tsr_table_of_context(model, i)];
    uint32_t *place = scratch;
    struct word_list list;
    list.tick = place + ticks;
    list.word = (uint16_t *)(list.tick + most_words(tile.width, tile.height));
    list.filled = list.taken = 0;
    list.limit = (uint32_t)(capacity / 2);
    for (int l = 0; l < lanes; l++) {
        struct tsr_lane_writer lane = {0, 0, 0};
        uint32_t tick = (uint32_t)(TSR_LANE_DELAY * l);
        for (int32_t y = l; y < tile.height; y += lanes, tick += (uint32_t)period) {
            const size_t at = tile.first + (size_t)y * tile.stride;
            if (!code_row(planes, at, tile.width, model->refill_bits, code_of, tick, &lane, &list)) return 0;
        }
        while (list.filled < list.taken) list.word[list.filled++] = tsr_lane_last_word(&lane);
    }
    if (list.taken > list.limit) return 0;
    place_words(&list, place, ticks, payload);
    return 2 * (size_t)list.taken;
}

/* ---- Code without counting all ------------------------------------------------------------------------------ */

enum { SAMPLED_ROWS = 4, SAMPLED_PERIOD = 32 };

void tsr_sample_tile(const uint16_t *samples, struct tsr_tile tile, uint32_t range, bool all,
                     struct tsr_sampled_counts *counts, void *scratch)
{
    struct tsr_residual_rows rows = tsr_residual_rows(samples, tile, range, NULL, scratch);
    for (int32_t y = 0; y < tile.height; y++) {
        const int32_t phase = y % SAMPLED_PERIOD;
        if (!all && phase == SAMPLED_ROWS) {
            y += SAMPLED_PERIOD - SAMPLED_ROWS - 2; /* two rows before those that count */
            if (y >= tile.height) return;
            tsr_skip_to_row(&rows, y);
        }
        tsr_next_row(&rows);
        if (!all && y % SAMPLED_PERIOD >= SAMPLED_ROWS) continue;
        bool after_run = false;
        for (int32_t c = 0; c < tile.width; c++) {
            const uint32_t folded = rows.folded[c];
            if (rows.activity[c] != 0) {
                counts->level[tsr_activity_level(rows.activity[c])][tsr_token_symbol(folded)]++;
                after_run = false;
            } else if (after_run || folded != 0) {
                counts->special[after_run ? TSR_INTERRUPTION_TABLE : TSR_RUN_TABLE][tsr_token_symbol(folded)]++;
                after_run = false;
            } else {
                int32_t end = c + 1;
                while (end < tile.width && rows.folded[end] == 0) end++;
                counts->special[TSR_RUN_TABLE][tsr_run_token((uint32_t)(end - c)).symbol]++;
                c = end - 1;
                after_run = true;
            }
        }
    }
}

void tsr_take_sampled_counts(struct tsr_residual_model *model, const struct tsr_sampled_counts *counts, bool all,
                             uint32_t range, int32_t width, struct tsr_symbol_counts *symbols)
{
    uint32_t of_level[TSR_ACTIVITY_LEVELS] = {0};
    uint8_t group[TSR_ACTIVITY_LEVELS];
    for (int l = 1; l < TSR_ACTIVITY_LEVELS; l++)
        for (int s = 0; s < TSR_RESIDUAL_SYMBOLS; s++) of_level[l] += counts->level[l][s];
    of_level[1]++; /* one at least */
    model->activity_cuts =
        (uint8_t)tsr_cut_quantiles(of_level, TSR_ACTIVITY_LEVELS, TSR_ACTIVITY_GROUPS, model->activity_cut);
    model->intensity_cuts = 0;
    tsr_group_levels(model->activity_cut, model->activity_cuts, TSR_ACTIVITY_LEVELS, group);
    memset(symbols, 0, sizeof *symbols);
    memcpy(symbols->special, counts->special, sizeof counts->special);
    for (int l = 1; l < TSR_ACTIVITY_LEVELS; l++)
        for (int s = 0; s < TSR_RESIDUAL_SYMBOLS; s++) symbols->cell[group[l]][s] += counts->level[l][s];
    if (all) return;
    /* What was not seen may come. */
    const int tokens = tsr_token_symbol(range - 1) + 1, runs = tsr_run_token((uint32_t)width).symbol + 1;
    for (int s = 0; s < tokens; s++) {
        symbols->special[TSR_RUN_TABLE][s]++;
        symbols->special[TSR_INTERRUPTION_TABLE][s]++;
        for (int g = 0; g <= model->activity_cuts; g++) symbols->cell[g][s]++;
    }
    for (int s = TSR_RUN_SYMBOL; s < runs; s++) symbols->special[TSR_RUN_TABLE][s]++;
}

void tsr_build_value_codes(struct tsr_value_codes *codes, const tsr_code_table *of_symbol,
                           const struct tsr_residual_model *model)
{
    for (int t = 0; t < TSR_FIRST_RESIDUAL_TABLE + model->tables; t++)
        for (uint32_t v = 0; v < TSR_CODED_VALUES; v++) {
            const struct tsr_token token = tsr_token(v);
            const struct tsr_symbol_code code = of_symbol[t][token.symbol];
            codes->code[t][v] =
                (((uint32_t)code.bits << code.raw_bits) | token.raw) << 5 | (uint32_t)(code.length + code.raw_bits);
        }
    uint8_t table[TSR_ACTIVITY_LEVELS], group[TSR_ACTIVITY_LEVELS];
    tsr_group_levels(model->activity_cut, model->activity_cuts, TSR_ACTIVITY_LEVELS, group);
    for (int l = 0; l < TSR_ACTIVITY_LEVELS; l++)
        table[l] = (uint8_t)tsr_table_of_context(model, TSR_FIRST_CELL_CONTEXT + group[l]);
    tsr_spread_levels(&codes->tables, table);
}

/* Codes a row from its residuals and activities; otherwise as code_row. */
static bool code_residuals(const uint16_t *restrict folded, const int16_t *restrict activity, int32_t width,
                           int refill_bits, const struct tsr_value_codes *codes, const tsr_code_table *of_symbol,
                           uint32_t tick, struct tsr_lane_writer *writer, struct word_list *list)
{
    uint64_t string = writer->bits;
    int32_t held = writer->held, ahead = writer->ahead;
    uint32_t taken = list->taken, filled = list->filled;
    bool after_run = false;
    if (taken + (uint32_t)width * (uint32_t)refill_bits / TSR_LANE_WORD_BITS + 2 > list->limit + list->room)
        return false;
    for (int32_t c = 0; c < width; c++) {
        uint32_t value = folded[c], bits;
        int length, table = tsr_of_activity(&codes->tables, activity[c]);
        int32_t next = c;
        if (activity[c] == 0) {
            table = after_run ? TSR_INTERRUPTION_TABLE : TSR_RUN_TABLE;
            if (!after_run && value == 0) {
                while (next + 1 < width && folded[next + 1] == 0) next++;
                const struct tsr_token run = tsr_run_token((uint32_t)(next - c + 1));
                const struct tsr_symbol_code code = of_symbol[TSR_RUN_TABLE][run.symbol];
                bits = (uint32_t)code.bits << code.raw_bits | run.raw;
                length = code.length + code.raw_bits;
                after_run = true;
                goto put;
            }
        }
        after_run = false;
        if (value < TSR_CODED_VALUES) {
            const uint32_t code = codes->code[table][value];
            bits = code >> 5;
            length = (int)(code & 31u);
        } else {
            const struct tsr_token token = tsr_token(value);
            const struct tsr_symbol_code code = of_symbol[table][token.symbol];
            bits = (uint32_t)code.bits << code.raw_bits | token.raw;
            length = code.length + code.raw_bits;
        }
    put: /* tsr_lane_request, _put and _get_words; two words at once are rare */
        list->tick[taken] = tick + (uint32_t)c;
        const int requests = ahead < refill_bits;
        taken += (uint32_t)requests;
        ahead += requests * TSR_LANE_WORD_BITS;
        if (ahead < refill_bits) {
            list->tick[taken++] = tick + (uint32_t)c;
            ahead += TSR_LANE_WORD_BITS;
        }
        string = string << length | bits;
        held += length;
        ahead -= length;
        if (held >= 2 * TSR_LANE_WORD_BITS) {
            held -= TSR_LANE_WORD_BITS;
            list->word[filled++] = (uint16_t)(string >> held);
        }
        list->word[filled] = (uint16_t)(string >> ((held - TSR_LANE_WORD_BITS) & 63));
        filled += held >= TSR_LANE_WORD_BITS;
        held &= TSR_LANE_WORD_BITS - 1;
        c = next;
    }
    *writer = (struct tsr_lane_writer){string, held, ahead};
    list->taken = taken;
    list->filled = filled;
    return true;
}

size_t tsr_code_tile_once(const uint16_t *samples, struct tsr_tile tile, uint32_t range,
                          const struct tsr_residual_model *model, const struct tsr_value_codes *codes,
                          const tsr_code_table *of_symbol, uint8_t *payload, size_t capacity, void *scratch)
{
    const int lanes = model->lanes;
    const int32_t period = tsr_lane_period(tile.width, lanes), w = tile.width;
    const size_t ticks = tick_count(w, tile.height, lanes), count = (size_t)w * (size_t)tile.height;
    uint16_t *folded = scratch;
    int16_t *activity = (int16_t *)(folded + count);
    uint32_t *place = (uint32_t *)(void *)(activity + count);
    struct word_list list;
    list.tick = place + ticks;
    list.word = (uint16_t *)(list.tick + most_words(w, tile.height));
    list.filled = list.taken = 0;
    list.limit = (uint32_t)(capacity / 2);
    list.room = (uint32_t)(most_words(w, tile.height) - 2) - list.limit;
    /* The rows' own scratch is where the words will be. */
    struct tsr_residual_rows rows = tsr_residual_rows(samples, tile, range, NULL, place);
    for (int32_t y = 0; y < tile.height; y++) {
        tsr_next_row(&rows);
        memcpy(folded + (size_t)y * (size_t)w, rows.folded, (size_t)w * sizeof *folded);
        memcpy(activity + (size_t)y * (size_t)w, rows.activity, (size_t)w * sizeof *activity);
    }
    for (int l = 0; l < lanes; l++) {
        struct tsr_lane_writer lane = {0, 0, 0};
        uint32_t tick = (uint32_t)(TSR_LANE_DELAY * l);
        for (int32_t y = l; y < tile.height; y += lanes, tick += (uint32_t)period)
            if (!code_residuals(folded + (size_t)y * (size_t)w, activity + (size_t)y * (size_t)w, w, model->refill_bits,
                                codes, of_symbol, tick, &lane, &list))
                return 0;
        while (list.filled < list.taken) list.word[list.filled++] = tsr_lane_last_word(&lane);
    }
    if (list.taken > list.limit) return 0;
    place_words(&list, place, ticks, payload);
    return 2 * (size_t)list.taken;
}

/* ---- Code with rANS ---------------------------------------------------------------------------------------- */

/* Puts a row's symbols, last first; words are listed in the order in which they leave. False if they are too many. */
static bool rans_code_row(struct tsr_symbol_planes planes, size_t at, int32_t width,
                          const struct tsr_rans_symbol *const codes[TSR_CONTEXT_LIMIT], uint32_t tick, uint32_t *state,
                          uint16_t *column, struct word_list *list)
{
    int32_t count = 0;
    for (int32_t c = 0; c < width; c++) {
        column[count++] = (uint16_t)c;
        if (planes.symbol[at + (size_t)c] >= TSR_RUN_SYMBOL) c += planes.value[at + (size_t)c] - 1;
    }
    uint32_t x = *state, taken = list->taken;
    while (count-- > 0) {
        const size_t i = at + column[count];
        const int symbol = planes.symbol[i], raw_bits = tsr_symbol_raw_bits(symbol);
        if (taken > list->limit) return false;
        list->tick[taken] = list->tick[taken + 1] = tick + column[count];
        if (raw_bits) taken += tsr_rans_put_raw(&x, planes.value[i], raw_bits, &list->word[taken]);
        taken += tsr_rans_put(&x, &codes[planes.context[i]][symbol], &list->word[taken]);
    }
    *state = x;
    list->taken = taken;
    return true;
}

/* The words from number first on, in the order in which a decoder takes them. */
static void reverse_words(struct word_list *list, uint32_t first)
{
    for (uint32_t i = first, j = list->taken; i + 1 < j; i++) {
        j--;
        const uint16_t word = list->word[i];
        const uint32_t tick = list->tick[i];
        list->word[i] = list->word[j];
        list->tick[i] = list->tick[j];
        list->word[j] = word;
        list->tick[j] = tick;
    }
}

size_t tsr_rans_code_tile(struct tsr_symbol_planes planes, struct tsr_tile tile, const struct tsr_residual_model *model,
                          const tsr_rans_table codes[TSR_MODEL_TABLES], uint8_t *payload, size_t capacity,
                          void *scratch)
{
    const int lanes = tsr_min(model->lanes, tile.height);
    const int32_t period = tsr_lane_period(tile.width, model->lanes);
    const size_t ticks = tick_count(tile.width, tile.height, model->lanes), states = 4 * (size_t)lanes;
    const struct tsr_rans_symbol *code_of[TSR_CONTEXT_LIMIT];
    for (int i = 0; i < TSR_FIRST_CELL_CONTEXT + tsr_model_cells(model); i++)
        code_of[i] = codes[tsr_table_of_context(model, i)];
    if (capacity < states) return 0;
    uint32_t *place = scratch;
    struct word_list list;
    list.tick = place + ticks;
    list.word = (uint16_t *)(list.tick + most_words(tile.width, tile.height));
    uint16_t *column = list.word + most_words(tile.width, tile.height);
    list.filled = list.taken = 0;
    list.limit = (uint32_t)((capacity - states) / 2);
    for (int l = 0; l < lanes; l++) {
        const int32_t last = (tile.height - 1 - l) / model->lanes;
        const uint32_t first = list.taken;
        uint32_t state = TSR_RANS_LOW;
        for (int32_t k = last; k >= 0; k--) {
            const size_t at = tile.first + (size_t)(l + k * model->lanes) * tile.stride;
            if (!rans_code_row(planes, at, tile.width, code_of, (uint32_t)(TSR_LANE_DELAY * l + period * k), &state,
                               column, &list))
                return 0;
        }
        reverse_words(&list, first);
        for (int i = 0; i < 4; i++) payload[4 * l + i] = (uint8_t)(state >> 8 * i);
    }
    if (list.taken > list.limit) return 0;
    place_words(&list, place, ticks, payload + states);
    return states + 2 * (size_t)list.taken;
}
