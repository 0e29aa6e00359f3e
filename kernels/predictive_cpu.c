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

enum { PREDICT_ROWS = 10 };

size_t tsr_predict_scratch_bytes(int32_t tile_width)
{
    return PREDICT_ROWS * pitch_of(tile_width) * sizeof(int16_t);
}

/* The rows below hold 16-bit numbers, and samples less 2^15: so one vector instruction takes as many samples as it can,
 * and signed comparisons order them. Every sample is known, so the columns are independent. */
enum { BIAS = 1 << 15 };

/* tsr_median_edge in 16 bits: the third case lies between the others, so W + N - NW may wrap on its way. */
static void predict_row(const int16_t *restrict row, const int16_t *restrict up, int32_t width,
                        int16_t *restrict prediction)
{
    for (int32_t c = 0; c < width; c++) {
        const int16_t w = row[c - 1], n = up[c], nw = up[c - 1];
        const int16_t low = w < n ? w : n, high = w < n ? n : w;
        const int16_t gradient = (int16_t)((uint16_t)w + (uint16_t)n - (uint16_t)nw);
        prediction[c] = nw >= high ? low : nw <= low ? high : gradient;
    }
}

/* tsr_residual. Ranges up to 2^15 need no more than 16 bits, and a range of 2^16 is that of 16-bit arithmetic itself.
 */
static void residual_row(const int16_t *restrict row, const int16_t *restrict prediction, int32_t width, int32_t range,
                         int16_t *restrict residual)
{
    if (range > BIAS && range < 2 * BIAS) {
        for (int32_t c = 0; c < width; c++) residual[c] = (int16_t)tsr_residual(row[c], prediction[c], range);
        return;
    }
    const int16_t lowest = (int16_t) - (range / 2), highest = (int16_t)((range - 1) / 2);
    const uint16_t modulus = (uint16_t)range;
    for (int32_t c = 0; c < width; c++) {
        const int16_t r = (int16_t)((uint16_t)row[c] - (uint16_t)prediction[c]);
        const uint16_t up = r < lowest ? modulus : 0, down = r > highest ? modulus : 0;
        residual[c] = (int16_t)((uint16_t)r + up - down);
    }
}

/* tsr_context_magnitude, tsr_fold and the intensity level. */
static void describe_row(const int16_t *restrict residual, const int16_t *restrict prediction, int32_t width, int shift,
                         int16_t *restrict magnitude, uint16_t *restrict folded, uint16_t *restrict intensity)
{
    for (int32_t c = 0; c < width; c++) {
        const int16_t r = residual[c], most = TSR_MAGNITUDE_LIMIT;
        const int16_t capped = r < -most ? (int16_t)-most : r > most ? most : r;
        magnitude[c] = capped < 0 ? (int16_t)-capped : capped;
        folded[c] = (uint16_t)(((uint32_t)(uint16_t)r << 1) ^ (r < 0 ? 0xffffu : 0u));
        intensity[c] = (uint16_t)((uint16_t)(prediction[c] ^ BIAS) >> shift);
    }
}

static void activity_row(const int16_t *restrict row, const int16_t *restrict up, const int16_t *restrict up2,
                         int32_t width, bool first, int16_t *restrict activity)
{
    static_assert(8 * TSR_MAGNITUDE_LIMIT <= INT16_MAX, "an activity has 16 bits");
    if (first)
        for (int32_t c = 0; c < width; c++) activity[c] = (int16_t)tsr_activity_first_row(row[c - 1], row[c - 2]);
    else
        for (int32_t c = 0; c < width; c++)
            activity[c] = (int16_t)tsr_activity(row[c - 1], up[c], up[c - 1], up[c + 1], row[c - 2], up2[c]);
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

void tsr_predict_tile(const uint16_t *samples, struct tsr_tile tile, uint32_t range, struct tsr_symbol_planes out,
                      struct tsr_level_counts *counts, void *scratch)
{
    const int32_t w = tile.width;
    const size_t pitch = pitch_of(w);
    const int shift = tsr_intensity_shift(range);
    int16_t *rows[PREDICT_ROWS];
    memset(scratch, 0, tsr_predict_scratch_bytes(w));
    for (size_t i = 0; i < PREDICT_ROWS; i++) rows[i] = (int16_t *)scratch + GUARD + i * pitch;
    int16_t *const *sample = rows, *const *magnitude = rows + 2;
    int16_t *prediction = rows[5], *residual = rows[6], *activity = rows[7];
    uint16_t *folded = (uint16_t *)rows[8];
    for (int32_t c = -GUARD; c < w + GUARD; c++) sample[1][c] = -BIAS; /* above the first row */

    for (int32_t y = 0; y < tile.height; y++) {
        const size_t at = tile.first + (size_t)y * tile.stride;
        int16_t *row = sample[y & 1], *up = sample[~y & 1];
        int16_t *mag = magnitude[y % 3], *mag_up = magnitude[(y + 2) % 3];
        const int16_t *mag_up2 = y > 1 ? magnitude[(y + 1) % 3] : mag_up; /* in row 1, N stands for NN */
        for (int32_t c = 0; c < w; c++) row[c] = (int16_t)(samples[at + (size_t)c] ^ BIAS);
        row[-1] = up[0];
        predict_row(row, up, w, prediction);
        residual_row(row, prediction, w, (int32_t)range, residual);
        describe_row(residual, prediction, w, shift, mag, folded, out.intensity + at);
        mag[-1] = mag[-2] = mag_up[0];
        mag[w] = mag[w - 1];
        activity_row(mag, mag_up, mag_up2, w, y == 0, activity);
        symbol_row(folded, activity, out.intensity + at, w, out.value + at, out.symbol + at, out.context + at, counts);
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
    uint32_t filled, taken, limit;
};

/* Ticks of a tile. */
static size_t tick_count(int32_t width, int32_t height, int lanes, int delay)
{
    const size_t rows = (size_t)(height + lanes - 1) / (size_t)lanes;
    return (size_t)tsr_lane_period(width, lanes, delay) * rows + (size_t)(delay * lanes);
}

static size_t most_words(int32_t width, int32_t height)
{
    return tsr_raw_tile_bytes(65536, width, height) / 2 + 2; /* a request may take two words at once */
}

size_t tsr_code_scratch_bytes(int32_t tile_width, int32_t tile_height)
{
    const int lanes = tsr_lanes_for_tile(tile_width, tile_height);
    return (tick_count(tile_width, tile_height, lanes, TSR_LANE_DELAY) + most_words(tile_width, tile_height)) *
               sizeof(uint32_t) +
           most_words(tile_width, tile_height) * sizeof(uint16_t);
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
    const int32_t period = tsr_lane_period(tile.width, lanes, model->lane_delay);
    const size_t ticks = tick_count(tile.width, tile.height, lanes, model->lane_delay);
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
        uint32_t tick = (uint32_t)(model->lane_delay * l);
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

/* ---- Decode --------------------------------------------------------------------------------------------- */

void tsr_plane_decoder_init(struct tsr_plane_decoder *decoder, const struct tsr_residual_model *model)
{
    struct tsr_context_map map;
    decoder->model = model;
    tsr_map_contexts(&map, model);
    memcpy(decoder->intensity_group, map.intensity_group, sizeof map.intensity_group);
    for (int level = 0; level < TSR_ACTIVITY_LEVELS; level++)
        for (int g = 0; g < TSR_INTENSITY_GROUPS; g++)
            decoder->table[level][g] = (uint8_t)tsr_table_of_context(model, map.context[level][g]);
    for (int i = 0; i < 512; i++) {
        decoder->activity_low[i] = (uint8_t)tsr_activity_level(i);
        decoder->activity_high[i] = (uint8_t)tsr_activity_level(i << 6);
    }
    for (int s = 0; s < TSR_RUN_ALPHABET; s++) {
        decoder->values[s].first = (uint16_t)(s < TSR_RUN_SYMBOL ? tsr_token_value(s, 0) : tsr_run_length(s, 0));
        decoder->values[s].raw_bits = (uint8_t)tsr_symbol_raw_bits(s);
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

size_t tsr_decode_scratch_bytes(int32_t tile_width, int lanes)
{
    return 2 * (size_t)(lanes + 2) * pitch_of(tile_width) * sizeof(uint16_t);
}

/* A piece and how far it is read. */
struct word_stream {
    const uint8_t *words;
    uint32_t count, next;
};

/* Decodes one sample: the whole definition of path P's decoder. False on a symbol that cannot stand here. */
static inline bool decode_sample(struct decoding_lane *lane, int32_t c, const struct tsr_plane_decoder *d,
                                 int32_t range, int shift, int refill_bits, struct word_stream *stream)
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
    const int table = level == 0 ? lane->after_run : d->table[level][d->intensity_group[prediction >> shift]];
    lane->after_run = false;
    tsr_lane_refill(&lane->reader, refill_bits, stream->words, stream->count, &stream->next);
    const uint32_t entry = tsr_huffman_decode(&d->tables[table], tsr_lane_peek(&lane->reader, TSR_CODE_LIMIT));
    const int symbol = (int)(entry >> 4);
    if (symbol >= TSR_RUN_SYMBOL && (table != TSR_RUN_TABLE || symbol == TSR_NO_CODE)) return false;
    tsr_lane_skip(&lane->reader, (int)(entry & 15u));
    const uint32_t value = d->values[symbol].first + tsr_lane_take(&lane->reader, d->values[symbol].raw_bits);
    if (symbol >= TSR_RUN_SYMBOL) {
        lane->run = (int32_t)value - 1;
        lane->after_run = lane->run == 0;
        lane->row[c] = (uint16_t)prediction;
        lane->mag[c] = 0;
        return true;
    }
    const int32_t residual = tsr_unfold(value);
    const int32_t sample = tsr_residual_inverse(residual, prediction, range);
    lane->row[c] = (uint16_t)sample;
    lane->mag[c] = (uint16_t)tsr_context_magnitude(residual);
    return (uint32_t)sample < (uint32_t)range;
}

/* Row buffers of a tile: as many as rows are at work, and the two above. */
struct row_ring {
    uint16_t *samples, *magnitudes;
    size_t pitch;
    int32_t rows;
};

/* A lane enters its row. */
static void begin_row(struct decoding_lane *lane, const struct row_ring *ring)
{
    const size_t here = (size_t)(lane->y % ring->rows) * ring->pitch,
                 above = (size_t)((lane->y + ring->rows - 1) % ring->rows) * ring->pitch,
                 above2 = (size_t)((lane->y + ring->rows - 2) % ring->rows) * ring->pitch;
    lane->row = ring->samples + here;
    lane->up = ring->samples + above;
    lane->mag = ring->magnitudes + here;
    lane->mag_up = ring->magnitudes + above;
    lane->mag_up2 = lane->y > 1 ? ring->magnitudes + above2 : lane->mag_up;
    lane->row[-1] = lane->up[0];
    lane->mag[-1] = lane->mag[-2] = lane->mag_up[0];
    lane->run = 0;
    lane->after_run = false;
}

/* Ticks that pass before a lane next enters a row, leaves one, or changes rows. */
static int32_t ticks_to_event(const struct decoding_lane *lane, int32_t width, int32_t period)
{
    return (lane->column < 0 ? 0 : lane->column < width ? width : period) - lane->column;
}

bool tsr_decode_tile(const struct tsr_plane_decoder *decoder, const uint8_t *payload, size_t size, uint16_t *samples,
                     struct tsr_tile tile, uint32_t range, void *scratch)
{
    struct decoding_lane lane[TSR_LANE_LIMIT];
    const struct tsr_residual_model *model = decoder->model;
    const int lanes = tsr_min(model->lanes, tile.height);
    const int32_t w = tile.width, period = tsr_lane_period(w, model->lanes, model->lane_delay);
    const int shift = tsr_intensity_shift(range), refill_bits = model->refill_bits;
    struct row_ring ring = {(uint16_t *)scratch + GUARD, NULL, pitch_of(w), model->lanes + 2};
    struct word_stream stream = {payload, (uint32_t)(size / 2), 0};
    ring.magnitudes = ring.samples + (size_t)ring.rows * ring.pitch;
    if (size % 2 != 0 || size / 2 > UINT32_MAX) return false;
    memset(scratch, 0, tsr_decode_scratch_bytes(w, model->lanes));
    memset(lane, 0, sizeof lane);
    for (int l = 0; l < lanes; l++) {
        lane[l].column = -model->lane_delay * l;
        lane[l].y = l;
    }
    begin_row(&lane[0], &ring);
    for (int working = lanes; working > 0;) {
        /* Between two events all lanes do the same in every tick. */
        int active[TSR_LANE_LIMIT], count = 0;
        int32_t ticks = INT32_MAX;
        for (int l = 0; l < lanes; l++) {
            if (lane[l].y >= tile.height) continue;
            ticks = tsr_min(ticks, ticks_to_event(&lane[l], w, period));
            if (lane[l].column >= 0 && lane[l].column < w) active[count++] = l;
        }
        for (int32_t t = 0; t < ticks; t++)
            for (int i = 0; i < count; i++) {
                struct decoding_lane *me = &lane[active[i]];
                if (!decode_sample(me, me->column + t, decoder, (int32_t)range, shift, refill_bits, &stream))
                    return false;
            }
        for (int l = 0; l < lanes; l++) {
            struct decoding_lane *me = &lane[l];
            if (me->y >= tile.height) continue;
            const bool was_active = me->column >= 0 && me->column < w;
            me->column += ticks;
            if (was_active && me->column == w) {
                if (me->run != 0) return false;
                me->mag[w] = me->mag[w - 1];
                memcpy(samples + tile.first + (size_t)me->y * tile.stride, me->row, (size_t)w * sizeof *samples);
            }
            if (me->column == period) {
                me->column = 0;
                me->y += model->lanes;
                working -= me->y >= tile.height;
            }
            if (me->column == 0 && me->y < tile.height) begin_row(me, &ring);
        }
    }
    if (stream.next != size / 2) return false;
    for (int l = 0; l < lanes; l++)
        if (lane[l].reader.bits != 0 || lane[l].reader.count > 47) return false;
    return true;
}
