/* Path P on the CPU. FORMAT.md section 7; see the header. */
#include "predictive_cpu.h"

#include <string.h>

#include "../transform/median_edge.h"
#include "../transform/residual.h"

/* Guard columns on both sides of a row buffer: 2 are used on the left and 1 on the right (FORMAT.md 7.1). */
enum { GUARD = 8 };

static size_t pitch_of(int32_t width)
{
    return (size_t)width + 2 * GUARD;
}

/* ---- Predict -------------------------------------------------------------------------------------------- */

enum { PREDICT_ROWS = 7 };

size_t tsr_predict_rows_bytes(int32_t tile_width)
{
    return PREDICT_ROWS * pitch_of(tile_width) * sizeof(int32_t);
}

/* Residuals, magnitudes and intensities of one row. Every sample is known, so the columns are independent. */
static void predict_row(const int32_t *restrict row, const int32_t *restrict up, int32_t width, int32_t range,
                        int shift, int32_t *restrict residual, int32_t *restrict magnitude,
                        uint16_t *restrict intensity)
{
    for (int32_t c = 0; c < width; c++) {
        int32_t prediction = tsr_median_edge(row[c - 1], up[c], up[c - 1]);
        residual[c] = tsr_residual(row[c], prediction, range);
        magnitude[c] = tsr_context_magnitude(residual[c]);
        intensity[c] = (uint16_t)(prediction >> shift);
    }
}

static void activity_row(const int32_t *restrict row, const int32_t *restrict up, const int32_t *restrict up2,
                         int32_t width, bool first, int32_t *restrict activity)
{
    if (first)
        for (int32_t c = 0; c < width; c++) activity[c] = tsr_activity_first_row(row[c - 1], row[c - 2]);
    else
        for (int32_t c = 0; c < width; c++)
            activity[c] = tsr_activity(row[c - 1], up[c], up[c - 1], up[c + 1], row[c - 2], up2[c]);
}

/* Runs, tokens and levels of one row: the sequential part. */
static void symbol_row(const int32_t *residual, const int32_t *activity, const uint16_t *intensity, int32_t width,
                       uint16_t *value, uint8_t *symbol, uint8_t *level, struct tsr_level_counts *counts)
{
    bool after_run = false;
    for (int32_t c = 0; c < width; c++) {
        const bool silent = activity[c] == 0;
        if (silent && !after_run && residual[c] == 0) {
            int32_t end = c + 1;
            while (end < width && residual[end] == 0) end++;
            value[c] = (uint16_t)(end - c);
            symbol[c] = (uint8_t)tsr_run_token((uint32_t)(end - c)).symbol;
            level[c] = 0;
            memset(symbol + c + 1, TSR_NO_SYMBOL, (size_t)(end - c - 1));
            c = end - 1;
            after_run = true;
            continue;
        }
        const uint32_t folded = tsr_fold(residual[c]);
        value[c] = (uint16_t)folded;
        symbol[c] = (uint8_t)tsr_token(folded).symbol;
        if (silent) {
            level[c] = after_run ? TSR_INTERRUPTION_LEVEL : 0;
        } else {
            level[c] = (uint8_t)tsr_activity_level(activity[c]);
            counts->activity[level[c]]++;
            counts->intensity[intensity[c]]++;
        }
        after_run = false;
    }
}

void tsr_predict_tile(const uint16_t *samples, struct tsr_tile tile, uint32_t range, struct tsr_symbol_planes out,
                      struct tsr_level_counts *counts, void *rows)
{
    const int32_t w = tile.width;
    const size_t pitch = pitch_of(w);
    const int shift = tsr_intensity_shift(range);
    int32_t *sample[2], *magnitude[3];
    int32_t *first_row = (int32_t *)rows + GUARD;
    for (int i = 0; i < 2; i++) sample[i] = first_row + (size_t)i * pitch;
    for (int i = 0; i < 3; i++) magnitude[i] = first_row + (size_t)(2 + i) * pitch;
    int32_t *residual = first_row + 5 * pitch, *activity = first_row + 6 * pitch;
    memset(rows, 0, tsr_predict_rows_bytes(w));

    for (int32_t y = 0; y < tile.height; y++) {
        const size_t at = tile.first + (size_t)y * tile.stride;
        int32_t *row = sample[y & 1], *up = sample[~y & 1];
        int32_t *mag = magnitude[y % 3], *mag_up = magnitude[(y + 2) % 3];
        const int32_t *mag_up2 = y > 1 ? magnitude[(y + 1) % 3] : mag_up; /* in row 1, N stands for NN */
        for (int32_t c = 0; c < w; c++) row[c] = samples[at + (size_t)c];
        row[-1] = up[0];
        predict_row(row, up, w, (int32_t)range, shift, residual, mag, out.intensity + at);
        mag[-1] = mag[-2] = mag_up[0];
        mag[w] = mag[w - 1];
        activity_row(mag, mag_up, mag_up2, w, y == 0, activity);
        symbol_row(residual, activity, out.intensity + at, w, out.value + at, out.symbol + at, out.level + at, counts);
    }
}

/* ---- Count ---------------------------------------------------------------------------------------------- */

void tsr_map_cells(struct tsr_context_map *map, const struct tsr_residual_model *model)
{
    uint8_t activity_group[TSR_ACTIVITY_LEVELS];
    tsr_group_levels(model->activity_cut, model->activity_cuts, TSR_ACTIVITY_LEVELS, activity_group);
    tsr_group_levels(model->intensity_cut, model->intensity_cuts, TSR_INTENSITY_LEVELS, map->intensity_group);
    memset(map->cell, 0, sizeof map->cell);
    for (int level = 1; level < TSR_ACTIVITY_LEVELS; level++)
        for (int g = 0; g <= model->intensity_cuts; g++)
            map->cell[level][g] = (uint8_t)(activity_group[level] * (model->intensity_cuts + 1) + g);
}

void tsr_map_tables(struct tsr_context_map *map, const struct tsr_residual_model *model)
{
    for (int g = 0; g < TSR_INTENSITY_GROUPS; g++) {
        map->table[0][g] = TSR_RUN_TABLE;
        map->table[TSR_INTERRUPTION_LEVEL][g] = TSR_INTERRUPTION_TABLE;
        for (int level = 1; level < TSR_ACTIVITY_LEVELS; level++)
            map->table[level][g] =
                (uint8_t)(TSR_FIRST_RESIDUAL_TABLE + (model->tables ? model->table_of[map->cell[level][g]] : 0));
    }
}

void tsr_count_tile(struct tsr_symbol_planes in, struct tsr_tile tile, const struct tsr_context_map *map,
                    struct tsr_symbol_counts *counts)
{
    for (int32_t y = 0; y < tile.height; y++) {
        const size_t row = tile.first + (size_t)y * tile.stride;
        for (size_t at = row; at < row + (size_t)tile.width; at++) {
            const uint8_t symbol = in.symbol[at], level = in.level[at];
            if (symbol == TSR_NO_SYMBOL) continue;
            if (level == 0)
                counts->special[TSR_RUN_TABLE][symbol]++;
            else if (level == TSR_INTERRUPTION_LEVEL)
                counts->special[TSR_INTERRUPTION_TABLE][symbol]++;
            else
                counts->cell[map->cell[level][map->intensity_group[in.intensity[at]]]][symbol]++;
        }
    }
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

size_t tsr_code_tile(struct tsr_symbol_planes in, struct tsr_tile tile, const struct tsr_residual_model *model,
                     const struct tsr_context_map *map, const tsr_code_table codes[TSR_MODEL_TABLES], uint8_t *payload,
                     size_t capacity)
{
    struct tsr_lane_writer lane[TSR_LANE_LIMIT];
    const int lanes = model->lanes;
    const int32_t period = tsr_lane_period(tile.width, lanes, model->lane_delay);
    const uint32_t word_limit = (uint32_t)(capacity / 2);
    int32_t column[TSR_LANE_LIMIT], y[TSR_LANE_LIMIT];
    uint32_t next = 0;
    memset(lane, 0, sizeof lane);
    for (int l = 0; l < lanes; l++) {
        column[l] = -model->lane_delay * l;
        y[l] = l;
    }
    for (bool busy = true; busy;) {
        busy = false;
        for (int l = 0; l < lanes; l++) {
            const int32_t c = column[l]++;
            if (y[l] >= tile.height) continue;
            busy = true;
            if (column[l] == period) {
                column[l] = 0;
                y[l] += lanes;
                if (c >= tile.width) continue;
            }
            if (c < 0 || c >= tile.width) continue;
            const int32_t row = column[l] == 0 ? y[l] - lanes : y[l];
            const size_t at = tile.first + (size_t)row * tile.stride + (size_t)c;
            if (in.symbol[at] == TSR_NO_SYMBOL) continue;
            const struct tsr_symbol_code code =
                codes[map->table[in.level[at]][map->intensity_group[in.intensity[at]]]][in.symbol[at]];
            tsr_lane_reserve(&lane[l], model->refill_bits, &next);
            if (next > word_limit) return 0;
            const uint32_t raw = in.value[at] & ((1u << code.raw_bits) - 1u);
            tsr_lane_put(&lane[l], (uint32_t)code.bits << code.raw_bits | raw, code.length + code.raw_bits, payload);
        }
    }
    for (int l = 0; l < lanes; l++) tsr_lane_finish(&lane[l], payload);
    return 2 * (size_t)next;
}

/* ---- Decode --------------------------------------------------------------------------------------------- */

void tsr_plane_decoder_init(struct tsr_plane_decoder *decoder, const struct tsr_residual_model *model)
{
    uint8_t group[TSR_ACTIVITY_LEVELS];
    decoder->model = model;
    tsr_map_cells(&decoder->map, model);
    tsr_map_tables(&decoder->map, model);
    tsr_group_levels(model->activity_cut, model->activity_cuts, TSR_ACTIVITY_LEVELS, group);
    for (int i = 0; i < 512; i++) {
        decoder->activity_low[i] = (uint8_t)tsr_activity_level(i);
        decoder->activity_high[i] = (uint8_t)tsr_activity_level(i << 6);
    }
    /* Without residual tables the first of them is empty, and a payload that asks for it is corrupt. */
    for (int t = 0; t < TSR_FIRST_RESIDUAL_TABLE + tsr_max(1, model->tables); t++)
        tsr_huffman_decoder_init(&decoder->tables[t], model->lengths[t], TSR_RUN_ALPHABET);
}

/* A lane and the rows that it works on. */
struct decoding_lane {
    struct tsr_lane_reader reader;
    uint16_t *row, *mag;
    const uint16_t *up, *mag_up, *mag_up2;
    int32_t column, y;
    int32_t run;    /* samples left in a run */
    bool after_run; /* the last sample was the end of a run */
};

size_t tsr_decode_rows_bytes(int32_t tile_width, int lanes)
{
    return 2 * (size_t)(lanes + 2) * pitch_of(tile_width) * sizeof(uint16_t);
}

/* Decodes one sample: the whole definition of path P's decoder. False on a symbol that cannot stand here. */
static inline bool decode_sample(struct decoding_lane *lane, int32_t c, const struct tsr_plane_decoder *d,
                                 int32_t range, int shift, int refill_bits, const uint8_t *words, uint32_t word_count,
                                 uint32_t *next)
{
    const int32_t prediction = tsr_median_edge(lane->row[c - 1], lane->up[c], lane->up[c - 1]);
    if (lane->run > 0) {
        lane->row[c] = (uint16_t)prediction;
        lane->mag[c] = 0;
        lane->after_run = --lane->run == 0;
        return true;
    }
    const int32_t activity = lane->y == 0 ? tsr_activity_first_row(lane->mag[c - 1], lane->mag[c - 2])
                                          : tsr_activity(lane->mag[c - 1], lane->mag_up[c], lane->mag_up[c - 1],
                                                         lane->mag_up[c + 1], lane->mag[c - 2], lane->mag_up2[c]);
    const int level = activity < 512 ? d->activity_low[activity] : d->activity_high[activity >> 6];
    const int table = level == 0 ? lane->after_run : d->map.table[level][d->map.intensity_group[prediction >> shift]];
    lane->after_run = false;
    tsr_lane_refill(&lane->reader, refill_bits, words, word_count, next);
    const uint32_t entry = tsr_huffman_decode(&d->tables[table], tsr_lane_peek(&lane->reader, TSR_CODE_LIMIT));
    const int symbol = (int)(entry >> 4);
    if (symbol >= TSR_RUN_SYMBOL && (table != TSR_RUN_TABLE || symbol == TSR_NO_CODE)) return false;
    lane->reader.count -= (int32_t)(entry & 15u);
    const uint32_t raw = tsr_lane_take(&lane->reader, tsr_symbol_raw_bits(symbol));
    if (symbol >= TSR_RUN_SYMBOL) {
        lane->run = (int32_t)tsr_run_length(symbol, raw) - 1;
        lane->after_run = lane->run == 0;
        lane->row[c] = (uint16_t)prediction;
        lane->mag[c] = 0;
        return true;
    }
    const int32_t residual = tsr_unfold(tsr_token_value(symbol, raw));
    const int32_t sample = tsr_residual_inverse(residual, prediction, range);
    lane->row[c] = (uint16_t)sample;
    lane->mag[c] = (uint16_t)tsr_context_magnitude(residual);
    return (uint32_t)sample < (uint32_t)range;
}

bool tsr_decode_tile(const struct tsr_plane_decoder *decoder, const uint8_t *payload, size_t size, uint16_t *samples,
                     struct tsr_tile tile, uint32_t range, void *rows)
{
    struct decoding_lane lane[TSR_LANE_LIMIT];
    const struct tsr_residual_model *model = decoder->model;
    const int lanes = model->lanes, slots = lanes + 2;
    const int32_t w = tile.width, period = tsr_lane_period(w, lanes, model->lane_delay);
    const size_t pitch = pitch_of(w);
    const int shift = tsr_intensity_shift(range);
    uint16_t *sample_rows = (uint16_t *)rows + GUARD, *mag_rows = sample_rows + (size_t)slots * pitch;
    uint32_t next = 0;
    if (size % 2 != 0 || size / 2 > UINT32_MAX) return false;
    memset(rows, 0, tsr_decode_rows_bytes(w, lanes));
    memset(lane, 0, sizeof lane);
    for (int l = 0; l < lanes; l++) {
        lane[l].column = -model->lane_delay * l;
        lane[l].y = l;
    }
    for (bool busy = true; busy;) {
        busy = false;
        for (int l = 0; l < lanes; l++) {
            struct decoding_lane *const me = &lane[l];
            const int32_t c = me->column;
            if (me->y >= tile.height) continue;
            busy = true;
            if (c == 0) {
                const size_t slot = (size_t)(me->y % slots), above = (size_t)((me->y + slots - 1) % slots),
                             above2 = (size_t)((me->y + slots - 2) % slots);
                me->row = sample_rows + slot * pitch;
                me->up = sample_rows + above * pitch;
                me->mag = mag_rows + slot * pitch;
                me->mag_up = mag_rows + above * pitch;
                me->mag_up2 = me->y > 1 ? mag_rows + above2 * pitch : me->mag_up;
                me->row[-1] = me->up[0];
                me->mag[-1] = me->mag[-2] = me->mag_up[0];
                me->run = 0;
                me->after_run = false;
            }
            if (c >= 0 && c < w) {
                if (!decode_sample(me, c, decoder, (int32_t)range, shift, model->refill_bits, payload,
                                   (uint32_t)(size / 2), &next))
                    return false;
                if (c == w - 1) {
                    if (me->run != 0) return false;
                    me->mag[w] = me->mag[w - 1];
                    memcpy(samples + tile.first + (size_t)me->y * tile.stride, me->row, (size_t)w * sizeof *samples);
                }
            }
            if (++me->column == period) {
                me->column = 0;
                me->y += lanes;
            }
        }
    }
    if (next != size / 2) return false;
    for (int l = 0; l < lanes; l++)
        if (tsr_lane_peek(&lane[l].reader, tsr_min(lane[l].reader.count, 32)) != 0 || lane[l].reader.count > 47)
            return false;
    return true;
}
