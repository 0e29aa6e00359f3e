/* Path P on the CPU. FORMAT.md section 7; see the header. */
#include "predictive_cpu.h"

#include <string.h>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "../transform/median_edge.h"
#include "../transform/residual.h"

/* Into both of its callers, which are compiled for different machines. */
#define TSR_INLINE static inline __attribute__((always_inline))

enum { BIAS = 1 << 15 };

static void spread_levels(struct tsr_activity_levels *levels, const uint8_t of_level[TSR_ACTIVITY_LEVELS])
{
    static_assert(8 * TSR_MAGNITUDE_LIMIT >> 6 < 512, "the largest activity has an entry");
    for (int i = 0; i < 512; i++) {
        levels->low[i] = of_level[tsr_activity_level(i)];
        levels->high[i] = of_level[tsr_min(tsr_activity_level(i << 6), TSR_ACTIVITY_LEVELS - 1)];
    }
}

TSR_INLINE int of_activity(const struct tsr_activity_levels *levels, int32_t activity)
{
    return activity < 512 ? levels->low[activity] : levels->high[activity >> 6];
}

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
    return (tick_count(tile_width, tile_height, lanes) + most_words(tile_width, tile_height)) *
               sizeof(uint32_t) +
           most_words(tile_width, tile_height) * sizeof(uint16_t) + (size_t)tile_width * sizeof(uint16_t);
}

size_t tsr_once_scratch_bytes(int32_t tile_width, int32_t tile_height)
{
    const size_t rows = tsr_residual_rows_bytes(tile_width), lists = tsr_code_scratch_bytes(tile_width, tile_height);
    return ((size_t)tile_width * (size_t)tile_height + 1) * 2 * sizeof(uint16_t) + (rows > lists ? rows : lists);
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

enum { SAMPLED_ROWS = 4, SAMPLED_PERIOD = 16 };

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

void tsr_take_sampled_counts(struct tsr_residual_model *model, const struct tsr_sampled_counts *counts, uint32_t range,
                             int32_t width, struct tsr_symbol_counts *symbols)
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
            codes->code[t][v] = (((uint32_t)code.bits << code.raw_bits) | token.raw) << 5 |
                                (uint32_t)(code.length + code.raw_bits);
        }
    uint8_t table[TSR_ACTIVITY_LEVELS], group[TSR_ACTIVITY_LEVELS];
    tsr_group_levels(model->activity_cut, model->activity_cuts, TSR_ACTIVITY_LEVELS, group);
    for (int l = 0; l < TSR_ACTIVITY_LEVELS; l++)
        table[l] = (uint8_t)tsr_table_of_context(model, TSR_FIRST_CELL_CONTEXT + group[l]);
    spread_levels(&codes->tables, table);
}

/* Codes a row from its residuals and activities; otherwise as code_row. */
static bool code_residuals(const uint16_t *restrict folded, const int16_t *restrict activity, int32_t width,
                           int refill_bits, const struct tsr_value_codes *codes, const tsr_code_table *of_symbol,
                           uint32_t tick, struct tsr_lane_writer *writer, struct word_list *list)
{
    struct tsr_lane_writer lane = *writer;
    uint32_t taken = list->taken, filled = list->filled;
    bool after_run = false;
    if (taken + (uint32_t)width * (uint32_t)refill_bits / TSR_LANE_WORD_BITS + 2 > list->limit + list->room) return false;
    for (int32_t c = 0; c < width; c++) {
        uint32_t value = folded[c], bits;
        int length, table = of_activity(&codes->tables, activity[c]);
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
    put:
        list->tick[taken] = list->tick[taken + 1] = tick + (uint32_t)c;
        taken += (uint32_t)tsr_lane_request(&lane, refill_bits);
        tsr_lane_put(&lane, bits, length);
        filled += (uint32_t)tsr_lane_get_words(&lane, list->word + filled);
        c = next;
    }
    *writer = lane;
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
    uint32_t *place = (uint32_t *)(void *)(activity + (count + 1) / 2 * 2);
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

/* ---- Decode --------------------------------------------------------------------------------------------- */

/* An entry of a decoding table: bits 0..3 the codeword's length, 4..8 raw bits behind it, then flags, and from bit 16 on
 * the value that the raw bits are added to. */
enum { ENTRY_RAW = 4, ENTRY_RUN = 1 << 9, ENTRY_LONGER = 1 << 10, ENTRY_NONE = 1 << 11, ENTRY_VALUE = 16 };

static uint32_t entry_of(int symbol, int length)
{
    if (symbol == TSR_NO_CODE) return ENTRY_NONE;
    const bool run = symbol >= TSR_RUN_SYMBOL;
    const uint32_t first = run ? tsr_run_length(symbol, 0) : tsr_token_value(symbol, 0);
    return first << ENTRY_VALUE | (run ? (uint32_t)ENTRY_RUN : 0u) | (uint32_t)tsr_symbol_raw_bits(symbol) << ENTRY_RAW |
           (uint32_t)length;
}

void tsr_plane_decoder_init(struct tsr_plane_decoder *decoder, const struct tsr_predictor_model *predictor,
                            const struct tsr_residual_model *model, bool rans)
{
    struct tsr_context_map map;
    decoder->model = model;
    decoder->rans = rans;
    decoder->predictor = predictor;
    tsr_map_contexts(&map, model);
    memcpy(decoder->intensity_group, map.intensity_group, sizeof map.intensity_group);
    for (int level = 0; level < TSR_ACTIVITY_LEVELS; level++)
        for (int g = 0; g < TSR_INTENSITY_GROUPS; g++)
            decoder->table[level][g] = (uint8_t)tsr_table_of_context(model, map.context[level][g]);
    uint8_t identity[TSR_ACTIVITY_LEVELS];
    for (int level = 0; level < TSR_ACTIVITY_LEVELS; level++) identity[level] = (uint8_t)level;
    spread_levels(&decoder->levels, identity);
    for (int symbol = 0; symbol < TSR_RUN_ALPHABET; symbol++) {
        const uint32_t entry = entry_of(symbol, 0);
        decoder->values[symbol].first = (uint16_t)(entry >> ENTRY_VALUE);
        decoder->values[symbol].raw_bits = (uint8_t)(entry >> ENTRY_RAW & 31u);
    }
    /* Without residual tables the first of them is empty, and a payload that asks for it is corrupt. */
    for (int t = 0; t < TSR_FIRST_RESIDUAL_TABLE + tsr_max(1, model->tables); t++) {
        decoder->used[t] = tsr_table_is_used(model, t, rans);
        if (rans) {
            tsr_rans_decoder_init(&decoder->rans_codes[t], model->weights[t], TSR_RUN_ALPHABET);
            continue;
        }
        tsr_huffman_decoder_init(&decoder->codes[t], model->lengths[t], TSR_RUN_ALPHABET);
        for (int i = 0; i < 1 << TSR_DIRECT_BITS; i++) {
            const uint32_t entry = decoder->codes[t].direct[i];
            decoder->entry[t][i] =
                entry == TSR_LONGER_CODEWORD ? ENTRY_LONGER : entry_of((int)(entry >> 4), (int)(entry & 15u));
        }
    }
    for (int t = 0; t < predictor->label_tables && predictor->set; t++)
        tsr_huffman_decoder_init(&decoder->labels[t], predictor->label_lengths[t], predictor->classes + 1);
}

/* What the samples of a step share. */
struct word_stream {
    const uint8_t *words;
    uint32_t count, next;
};

enum { PAIRS_LIMIT = (TSR_TAPS_LIMIT + 1) / 2 };

/* Weights of one class in the order in which the decoder takes them. */
struct class_weights {
    int16_t near[4];              /* W, WW, WWW */
    int32_t pair[PAIRS_LIMIT];    /* of the others, two in a number, the first in the low half */
};

/* A lane and the row that it works on. Samples are less 2^15. */
struct decoding_lane {
    struct tsr_lane_reader reader; /* Huffman */
    uint32_t state;                /* rANS */
    int16_t *row;       /* at the column of the step's first sample */
    uint16_t *mag;      /* likewise */
    const struct class_weights *weights; /* NULL: the median edge predictor */
    int32_t sum[TSR_LANE_STEP];       /* what all other taps give */
    int16_t activity[TSR_LANE_STEP]; /* what the row above and the one above that give */
    int32_t column;
    int32_t run; /* samples left in a run */
    int32_t y;
    bool after_run; /* the last sample was the end of a run */
};

/* A tile at work: samples and magnitudes with guard columns, as tsr_padded_tile has them. */
struct decoding {
    const struct tsr_plane_decoder *d;
    int16_t *samples;
    uint16_t *magnitudes;
    ptrdiff_t pitch;
    struct tsr_padded_tile own;
    const struct tsr_padded_tile *earlier;
    int32_t width, height, range;
    int shift, refill_bits;
    const uint8_t *label;
    struct word_stream stream;
    int pairs, own_pairs;               /* of taps besides W, WW, WWW; those of neighbours alone come first */
    uint8_t tap[2 * PAIRS_LIMIT];       /* their numbers */
    ptrdiff_t offset[2 * PAIRS_LIMIT]; /* from the sample in the tile, where all rows above exist; earlier planes': from
                                          the sample in theirs */
    struct class_weights weights[TSR_CLASS_LIMIT];
};

static size_t decode_labels_room(int32_t width, int32_t height)
{
    return ((size_t)tsr_blocks_across(width) * (size_t)tsr_blocks_across(height) + 63) / 64 * 64;
}

size_t tsr_decode_scratch_bytes(int32_t width, int32_t height)
{
    return 2 * tsr_padded_samples(width, height) * sizeof(int16_t) + decode_labels_room(width, height) +
           sizeof(struct decoding);
}

/* Labels in front of the words; returns their bytes, SIZE_MAX where they are none. */
static size_t get_labels(const struct tsr_plane_decoder *d, const uint8_t *payload, size_t size, int32_t width,
                         int32_t height, uint8_t *label)
{
    const int32_t across = tsr_blocks_across(width), down = tsr_blocks_across(height);
    struct tsr_bit_reader reader = tsr_bit_reader(payload, size);
    for (int32_t y = 0; y < down; y++)
        for (int32_t x = 0, left = -1; x < across; x++) {
            const struct tsr_huffman_decoder *code = &d->labels[d->predictor->label_table_of[tsr_label_cell(left)]];
            const uint32_t entry = tsr_huffman_decode(code, tsr_peek_bits(&reader, TSR_CODE_LIMIT));
            tsr_skip_bits(&reader, (int)(entry & 15u));
            left = (int32_t)(entry >> 4);
            *label++ = (uint8_t)left;
        }
    const size_t used = (tsr_bits_read(&reader) + 15) / 16 * 2;
    if (reader.overrun || used > size) return SIZE_MAX;
    while (tsr_bits_read(&reader) < 8 * used)
        if (tsr_get_bits(&reader, 1) != 0) return SIZE_MAX;
    return used;
}

/* Taps and weights in the decoder's order. */
static void sort_taps(struct decoding *t)
{
    const struct tsr_predictor_model *model = t->d->predictor;
    const int taps = tsr_taps(model->shape);
    int count = 0;
    memset(t->weights, 0, model->classes * sizeof t->weights[0]);
    for (int k = 0; k < taps; k++) {
        const bool own = k < model->shape.neighbours;
        const int right = own ? TSR_AT(tsr_tap_right)[k] : 0;
        if (own && TSR_AT(tsr_tap_up)[k] == 0 && right >= -3) {
            for (int c = 0; c < model->classes; c++) t->weights[c].near[-right - 1] = model->weight[c][k];
            continue;
        }
        t->tap[count] = (uint8_t)k;
        t->offset[count] = own ? right - TSR_AT(tsr_tap_up)[k] * t->pitch
                               : TSR_AT(tsr_reference_right)[(k - model->shape.neighbours) % TSR_REFERENCE_TAPS] -
                                     TSR_AT(tsr_reference_up)[(k - model->shape.neighbours) % TSR_REFERENCE_TAPS] * t->pitch;
        for (int c = 0; c < model->classes; c++)
            t->weights[c].pair[count / 2] |=
                (int32_t)((uint32_t)(uint16_t)model->weight[c][k] << (count % 2 ? 16 : 0));
        count++;
        if (own) t->own_pairs = count / 2;
    }
    if (count % 2 != 0) { /* the last tap again, with weight 0 */
        t->tap[count] = t->tap[count - 1];
        t->offset[count] = t->offset[count - 1];
        count++;
    }
    t->pairs = count / 2;
}

/* Where tap number i of the decoder's order lies for the lane's first column, near the tile's first and last rows. */
static const int16_t *clamped_tap(const struct decoding *t, const struct decoding_lane *lane, int i)
{
    const int number = t->tap[i], neighbours = t->d->predictor->shape.neighbours;
    if (number < neighbours)
        return t->own.first + tsr_max(0, lane->y - TSR_AT(tsr_tap_up)[number]) * t->pitch + lane->column +
               TSR_AT(tsr_tap_right)[number];
    const int k = (number - neighbours) % TSR_REFERENCE_TAPS;
    return t->earlier[(number - neighbours) / TSR_REFERENCE_TAPS].first +
           tsr_max(0, tsr_min(t->height - 1, lane->y - TSR_AT(tsr_reference_up)[k])) * t->pitch + lane->column +
           TSR_AT(tsr_reference_right)[k];
}

#if defined(__SSE2__)
typedef __m128i four_sums;

TSR_INLINE void add_pair(four_sums *sum, const int16_t *first, const int16_t *second, int32_t weights)
{
    const __m128i samples = _mm_unpacklo_epi16(_mm_loadl_epi64((const __m128i *)first), _mm_loadl_epi64((const __m128i *)second));
    *sum = _mm_add_epi32(*sum, _mm_madd_epi16(samples, _mm_set1_epi32(weights)));
}
#else
typedef struct {
    int32_t of[TSR_LANE_STEP];
} four_sums;

TSR_INLINE void add_pair(four_sums *sum, const int16_t *first, const int16_t *second, int32_t weights)
{
    for (int j = 0; j < TSR_LANE_STEP; j++)
        sum->of[j] += (int16_t)(weights & 0xffff) * first[j] + (int16_t)(weights >> 16) * second[j];
}
#endif

/* Before the lane's next four columns: all that does not wait for them. */
TSR_INLINE void prepare_step(const struct decoding *t, struct decoding_lane *lane)
{
    const uint16_t *up = lane->mag - t->pitch, *up2 = lane->y > 1 ? up - t->pitch : up;
    for (int j = 0; j < TSR_LANE_STEP; j++)
        lane->activity[j] = (int16_t)(2 * up[j] + up[j - 1] + up[j + 1] + up2[j]);
    if (!t->label) return;
    if (lane->column % TSR_PREDICTOR_BLOCK == 0) {
        const int label = t->label[(lane->y / TSR_PREDICTOR_BLOCK) * tsr_blocks_across(t->width) +
                                   lane->column / TSR_PREDICTOR_BLOCK];
        lane->weights = label < t->d->predictor->classes ? &t->weights[label] : NULL;
    }
    if (!lane->weights) return;
    four_sums sum;
    memset(&sum, 0, sizeof sum);
    const struct class_weights *w = lane->weights;
    if (lane->y >= 4 && lane->y + 1 < t->height) {
        int p = 0;
        for (; p < t->own_pairs; p++)
            add_pair(&sum, lane->row + t->offset[2 * p], lane->row + t->offset[2 * p + 1], w->pair[p]);
        for (; p < t->pairs; p++) {
            const int16_t *from[2];
            for (int i = 0; i < 2; i++) {
                const int number = t->tap[2 * p + i] - t->d->predictor->shape.neighbours;
                from[i] = (number < 0 ? lane->row
                                      : t->earlier[number / TSR_REFERENCE_TAPS].first + (lane->row - t->own.first)) +
                          t->offset[2 * p + i];
            }
            add_pair(&sum, from[0], from[1], w->pair[p]);
        }
    } else {
        for (int p = 0; p < t->pairs; p++)
            add_pair(&sum, clamped_tap(t, lane, 2 * p), clamped_tap(t, lane, 2 * p + 1), w->pair[p]);
    }
    memcpy(lane->sum, &sum, sizeof lane->sum);
}

/* The next word where the state wants one; behind the last, zeros: the caller compares the number of words taken. */
TSR_INLINE uint32_t refill_state(uint32_t state, struct word_stream *stream)
{
    const uint32_t wants = tsr_rans_wants_word(state), word = tsr_lane_word(stream->words, stream->count, stream->next);
    stream->next += wants;
    return wants ? tsr_rans_with_word(state, word) : state;
}

/* Decodes sample number j of the step: the whole definition of path P's decoder. first: in the tile's first row. False on
 * a symbol that cannot stand here. */
TSR_INLINE bool decode_sample(const struct decoding *t,
                                                                const struct tsr_plane_decoder *d,
                                                                struct decoding_lane *lane, struct word_stream *stream,
                                                                int j, bool first, bool rans)
{
    int16_t *row = lane->row + j;
    uint16_t *mag = lane->mag + j;
    const int32_t range = t->range;
    int32_t prediction;
    if (first)
        prediction = row[-1] + BIAS;
    else if (lane->weights)
        prediction = tsr_linear_prediction(lane->sum[j] + lane->weights->near[0] * row[-1] +
                                               lane->weights->near[1] * row[-2] + lane->weights->near[2] * row[-3],
                                           range);
    else
        prediction = tsr_median_edge(row[-1], row[-t->pitch], row[-t->pitch - 1]) + BIAS;
    if (lane->run > 0) {
        *row = (int16_t)(prediction - BIAS);
        *mag = 0;
        lane->after_run = --lane->run == 0;
        return true;
    }
    const int32_t activity =
        first ? tsr_activity_first_row(mag[-1], mag[-2]) : lane->activity[j] + 2 * mag[-1] + mag[-2];
    const int level = of_activity(&d->levels, activity);
    const int table = level == 0 ? lane->after_run : d->table[level][d->intensity_group[prediction >> t->shift]];
    lane->after_run = false;
    uint32_t value;
    bool run;
    if (rans) {
        uint32_t state = lane->state;
        const int symbol = tsr_rans_get(&state, &d->rans_codes[table]);
        state = refill_state(state, stream);
        run = symbol >= TSR_RUN_SYMBOL;
        value = d->values[symbol].first + tsr_rans_get_raw(&state, d->values[symbol].raw_bits);
        lane->state = refill_state(state, stream);
        if (!d->used[table]) return false;
    } else {
        struct tsr_lane_reader reader = lane->reader;
        tsr_lane_refill(&reader, t->refill_bits, stream->words, stream->count, &stream->next);
        const uint32_t next = tsr_lane_peek(&reader, TSR_CODE_LIMIT);
        uint32_t entry = d->entry[table][next >> (TSR_CODE_LIMIT - TSR_DIRECT_BITS)];
        if (entry & (ENTRY_LONGER | ENTRY_NONE)) {
            if (entry & ENTRY_NONE) return false;
            const uint32_t longer = tsr_huffman_decode(&d->codes[table], next);
            entry = entry_of((int)(longer >> 4), (int)(longer & 15u));
        }
        tsr_lane_skip(&reader, (int)(entry & 15u));
        value = (entry >> ENTRY_VALUE) + tsr_lane_take(&reader, (int)(entry >> ENTRY_RAW & 31u));
        lane->reader = reader;
        run = (entry & ENTRY_RUN) != 0;
    }
    if (run) {
        if (table != TSR_RUN_TABLE) return false;
        lane->run = (int32_t)value - 1;
        lane->after_run = lane->run == 0;
        *row = (int16_t)(prediction - BIAS);
        *mag = 0;
        return true;
    }
    const int32_t residual = tsr_unfold(value);
    const int32_t sample = tsr_residual_inverse(residual, prediction, range);
    *row = (int16_t)(sample - BIAS);
    *mag = (uint16_t)tsr_context_magnitude(residual);
    return (uint32_t)sample < (uint32_t)range;
}

/* Four ticks of all lanes that are within their rows. */
TSR_INLINE bool decode_step(struct decoding *t, struct decoding_lane *const *active,
                                                              int count, bool rans)
{
    struct word_stream stream = t->stream;
    const struct tsr_plane_decoder *d = t->d;
    for (int i = 0; i < count; i++)
        if (active[i]->y > 0) prepare_step(t, active[i]);
    for (int j = 0; j < TSR_LANE_STEP; j++)
        for (int i = 0; i < count; i++) {
            if (active[i]->column + j >= t->width) continue;
            if (active[i]->y == 0 ? !decode_sample(t, d, active[i], &stream, j, true, rans)
                                  : !decode_sample(t, d, active[i], &stream, j, false, rans))
                return false;
        }
    t->stream = stream;
    return true;
}

static bool decode_step_plain(struct decoding *t, struct decoding_lane *const *active, int count)
{
    return t->d->rans ? decode_step(t, active, count, true) : decode_step(t, active, count, false);
}

#if defined(__x86_64__)
__attribute__((target("avx2,bmi,bmi2"))) static bool decode_step_avx2(struct decoding *t,
                                                                      struct decoding_lane *const *active, int count)
{
    return t->d->rans ? decode_step(t, active, count, true) : decode_step(t, active, count, false);
}
#endif

/* A lane enters its row: the guards on its left. */
static void begin_row(const struct decoding *t, struct decoding_lane *lane)
{
    lane->row = t->samples + lane->y * t->pitch;
    lane->mag = t->magnitudes + lane->y * t->pitch;
    const int16_t left = lane->y > 0 ? lane->row[-t->pitch] : (int16_t)-BIAS;
    for (int k = 1; k <= TSR_GUARD; k++) lane->row[-k] = left;
    lane->mag[-1] = lane->mag[-2] = lane->y > 0 ? lane->mag[-t->pitch] : 0;
    lane->run = 0;
    lane->after_run = false;
}

/* And leaves it: those on its right. */
static void end_row(const struct decoding *t, const struct decoding_lane *lane)
{
    int16_t *row = t->samples + lane->y * t->pitch;
    uint16_t *mag = t->magnitudes + lane->y * t->pitch;
    for (int k = 0; k < TSR_GUARD; k++) row[t->width + k] = row[t->width - 1];
    mag[t->width] = mag[t->width - 1];
}

bool tsr_decode_tile(const struct tsr_plane_decoder *decoder, const struct tsr_padded_tile *earlier,
                     const uint8_t *payload, size_t size, uint16_t *samples, struct tsr_tile tile, uint32_t range,
                     void *scratch)
{
    struct decoding_lane lane[TSR_LANE_LIMIT];
    const struct tsr_residual_model *model = decoder->model;
    const int lanes = tsr_min(model->lanes, tile.height);
    const int32_t period = tsr_lane_period(tile.width, model->lanes);
    bool (*step)(struct decoding *, struct decoding_lane *const *, int) = decode_step_plain;
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2")) step = decode_step_avx2;
#endif
    struct decoding *t = scratch;
    int16_t *room = (int16_t *)(t + 1);
    uint8_t *label = (uint8_t *)(room + 2 * tsr_padded_samples(tile.width, tile.height));
    t->d = decoder;
    t->own = tsr_padded_tile(room, tile.width, tile.height);
    t->pitch = t->own.pitch;
    t->samples = room + TSR_GUARD;
    t->magnitudes = (uint16_t *)room + tsr_padded_samples(tile.width, tile.height) + TSR_GUARD;
    t->earlier = earlier;
    t->width = tile.width;
    t->height = tile.height;
    t->range = (int32_t)range;
    t->shift = tsr_intensity_shift(range);
    t->refill_bits = model->refill_bits;
    t->label = NULL;
    if (decoder->predictor->set) {
        const size_t labels = get_labels(decoder, payload, size, tile.width, tile.height, label);
        if (labels == SIZE_MAX) return false;
        payload += labels;
        size -= labels;
        t->label = label;
        sort_taps(t);
    }
    memset(lane, 0, sizeof lane);
    if (decoder->rans) {
        if (size < 4 * (size_t)lanes) return false;
        for (int l = 0; l < lanes; l++)
            for (int i = 3; i >= 0; i--) lane[l].state = lane[l].state << 8 | payload[4 * l + i];
        for (int l = 0; l < lanes; l++)
            if (tsr_rans_wants_word(lane[l].state)) return false;
        payload += 4 * lanes;
        size -= 4 * (size_t)lanes;
    }
    if (size % 2 != 0 || size / 2 > UINT32_MAX) return false;
    t->stream = (struct word_stream){payload, (uint32_t)(size / 2), 0};
    for (int l = 0; l < lanes; l++) {
        lane[l].column = -TSR_LANE_DELAY * l;
        lane[l].y = l;
    }
    for (int working = lanes; working > 0;) {
        struct decoding_lane *active[TSR_LANE_LIMIT];
        int count = 0;
        for (int l = 0; l < lanes; l++) {
            struct decoding_lane *me = &lane[l];
            if (me->y >= tile.height || me->column < 0 || me->column >= tile.width) continue;
            if (me->column == 0) begin_row(t, me);
            active[count++] = me;
        }
        if (!step(t, active, count)) return false;
        for (int l = 0; l < lanes; l++) {
            struct decoding_lane *me = &lane[l];
            if (me->y >= tile.height) continue;
            const bool was_active = me->column >= 0 && me->column < tile.width;
            me->column += TSR_LANE_STEP;
            if (was_active) {
                if (me->y == 0 && me->column == TSR_LANE_STEP) /* for the rows below */
                    for (int k = 1; k <= TSR_GUARD; k++) me->row[-k] = me->row[0];
                me->row += TSR_LANE_STEP;
                me->mag += TSR_LANE_STEP;
                if (me->column >= tile.width) {
                    if (me->run != 0) return false;
                    end_row(t, me);
                    memcpy(samples + tile.first + (size_t)me->y * tile.stride, t->samples + me->y * t->pitch,
                           (size_t)tile.width * sizeof *samples);
                }
            }
            if (me->column == period) {
                me->column = 0;
                me->y += model->lanes;
                working -= me->y >= tile.height;
            }
        }
    }
    for (int32_t y = 0; y < tile.height; y++)
        for (int32_t c = 0; c < tile.width; c++) samples[tile.first + (size_t)y * tile.stride + (size_t)c] ^= BIAS;
    if (t->stream.next != t->stream.count) return false;
    for (int l = 0; l < lanes; l++)
        if (decoder->rans ? lane[l].state != TSR_RANS_LOW : lane[l].reader.bits != 0 || lane[l].reader.count > 47)
            return false;
    return true;
}
