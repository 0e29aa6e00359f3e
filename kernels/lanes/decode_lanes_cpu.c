/* Decoding a tile's lanes, sample by sample; see decode_lanes.h. */
#include "decode_lanes.h"

void tsr_spread_bins(struct tsr_activity_bins *bins, const uint8_t of_bin[TSR_ACTIVITY_BINS])
{
    static_assert(8 * TSR_MAGNITUDE_LIMIT >> 6 < 512, "the largest activity has an entry");
    for (int i = 0; i < 512; i++) {
        bins->low[i] = of_bin[tsr_activity_bin(i)];
        bins->high[i] = of_bin[tsr_min(tsr_activity_bin(i << 6), TSR_ACTIVITY_BINS - 1)];
    }
}

/* The entry of a symbol, without the length of its codeword. */
static uint32_t entry_of(int symbol)
{
    const bool run = symbol >= TSR_RUN_SYMBOL;
    const uint32_t first = run ? tsr_run_length(symbol, 0) : tsr_token_value(symbol, 0);
    const uint32_t raw_bits = (uint32_t)tsr_symbol_raw_bits(symbol);
    return first << ENTRY_VALUE | (run ? (uint32_t)ENTRY_RUN : 0u) | raw_bits << ENTRY_RAW | raw_bits;
}

/* The entry of a symbol in a table. A run in another table than that of runs is invalid. */
static uint32_t entry_in_table(const struct tsr_plane_decoder *decoder, int table, uint32_t symbol)
{
    const bool valid = table == TSR_RUN_TABLE || symbol < TSR_RUN_SYMBOL;
    return decoder->of_symbol[symbol] | (valid ? 0u : (uint32_t)ENTRY_NONE);
}

/* Fills in the symbols of a rANS table with their entries. */
static void fill_rans_entries(struct tsr_plane_decoder *decoder, int table)
{
    const struct tsr_rans_decoder *code = &decoder->rans_codes[table];
    const uint32_t none = decoder->unused >> table & 1u ? (uint32_t)ENTRY_NONE : 0u;
    for (uint32_t symbol = 0; symbol < TSR_RUN_ALPHABET; symbol++)
        decoder->rans_entry[table][symbol] =
            (struct tsr_rans_entry){code->place[symbol], entry_in_table(decoder, table, symbol) | none};
}

/* The entry of a symbol's codeword. */
static uint32_t entry_of_codeword(const struct tsr_plane_decoder *decoder, int table, uint32_t symbol,
                                  struct tsr_codeword codeword)
{
    const uint32_t entry = entry_in_table(decoder, table, symbol);
    return entry + codeword.length - ((uint32_t)codeword.bits << (entry >> ENTRY_RAW & ENTRY_RAW_LIMIT) << ENTRY_VALUE);
}

static void fill(uint32_t *entries, uint32_t count, uint32_t entry)
{
    for (uint32_t i = 0; i < count; i++) entries[i] = entry;
}

/* Fills in the entries of a Huffman table, one codeword after the other: each stands at all places that begin with it.
 * next: the first free place for entries of longer codewords. Returns the first place that is free then. */
static uint32_t fill_entries(struct tsr_plane_decoder *decoder, int table, uint32_t next)
{
    struct tsr_codeword codeword[TSR_RUN_ALPHABET];
    const uint8_t *const lengths = decoder->model->lengths[table];
    uint32_t *const direct = decoder->entry + ((size_t)table << TSR_DIRECT_BITS);
    uint32_t first_longer = 0; /* the direct places before this one are those of short codewords */
    if (decoder->unused >> table & 1u) {
        fill(direct, 1u << TSR_DIRECT_BITS, ENTRY_NONE);
        return next;
    }
    tsr_huffman_codewords(lengths, TSR_RUN_ALPHABET, codeword);
    for (uint32_t symbol = 0; symbol < TSR_RUN_ALPHABET; symbol++) {
        const uint32_t length = codeword[symbol].length;
        if (lengths[symbol] == 0 || length > TSR_DIRECT_BITS) continue;
        const uint32_t places = 1u << (TSR_DIRECT_BITS - length);
        fill(direct + codeword[symbol].bits * places, places,
             entry_of_codeword(decoder, table, symbol, codeword[symbol]));
        first_longer += places;
    }
    for (uint32_t symbol = 0; symbol < TSR_RUN_ALPHABET; symbol++) {
        const uint32_t length = codeword[symbol].length;
        if (length <= TSR_DIRECT_BITS) continue;
        const uint32_t places = 1u << (TSR_CODE_LIMIT - length), read = codeword[symbol].bits * places,
                       rest = next + read - first_longer * TSR_REST_ENTRIES;
        assert(rest + places <= TSR_DECODER_ENTRIES);
        direct[read / TSR_REST_ENTRIES] = (rest - read % TSR_REST_ENTRIES) << ENTRY_VALUE | ENTRY_LONGER;
        fill(decoder->entry + rest, places, entry_of_codeword(decoder, table, symbol, codeword[symbol]));
    }
    return next + ((1u << TSR_DIRECT_BITS) - first_longer) * TSR_REST_ENTRIES;
}

/* Fills in the cells by activity, for AVX2: those of the first intensity group. */
static void spread_cells(struct tsr_plane_decoder *decoder, const struct tsr_context_map *map)
{
    for (int place = 1; place < TSR_ACTIVITY_PLACES; place++) {
        const int activity = place < 512 ? place : (place - TSR_ACTIVITY_PLACES_FROM) << 6;
        const int bin = tsr_min(tsr_activity_bin(activity), TSR_ACTIVITY_BINS - 1);
        decoder->cell_of_place[place] = (uint8_t)(map->context[bin][0] - TSR_FIRST_CELL_CONTEXT);
    }
    decoder->cell_of_place[0] = decoder->cell_of_place[TSR_ACTIVITY_PLACES] = TSR_QUIET_CELL;
    decoder->cell_of_place[TSR_ACTIVITY_PLACES + 1] = TSR_QUIET_CELL + 1;
    decoder->of_cell[TSR_QUIET_CELL] = (uint8_t)tsr_quiet_table(false);
    decoder->of_cell[TSR_QUIET_CELL + 1] = (uint8_t)tsr_quiet_table(true);
}

/* Fills in the tables that the AVX-512 form looks up in registers. */
static void spread_look_ups(struct tsr_plane_decoder *decoder, const struct tsr_context_map *map)
{
    const struct tsr_residual_model *model = decoder->model;
    struct tsr_intensity_steps *steps = &decoder->intensity_steps;
    for (int i = 0; i < TSR_INTENSITY_GROUPS - 1; i++) {
        const int below = i < model->intensity_cuts ? model->intensity_cut[i] - 1 : TSR_INTENSITY_BINS;
        for (int k = 0; k < 16 && i % 6 == 5 && i < 18; k++) steps->coarse[i / 6][k] = (int16_t)below;
        steps->fine[i % 6][i / 6] = steps->fine[i % 6][8 + i / 6] = (int16_t)below;
    }
    memset(decoder->raw_bits, 0, sizeof decoder->raw_bits);
    memset(decoder->mantissa, 0, sizeof decoder->mantissa);
    for (int symbol = 0; symbol < TSR_RUN_ALPHABET; symbol++) {
        const uint32_t entry = decoder->of_symbol[symbol];
        decoder->raw_bits[symbol] = (uint8_t)(entry & ENTRY_BITS);
        decoder->mantissa[symbol] = (uint8_t)(entry >> ENTRY_VALUE >> (entry & ENTRY_BITS));
    }
    memset(decoder->of_cell, 0, sizeof decoder->of_cell);
    for (int cell = 0; cell < TSR_CELL_LIMIT; cell++)
        decoder->of_cell[cell] = (uint8_t)tsr_table_of_context(model, TSR_FIRST_CELL_CONTEXT + cell);
    for (int exponent = 0; exponent < 16; exponent++)
        for (int m = 0; m < 8; m++) {
            const int activity = exponent < 3 ? (8 + m) >> (3 - exponent) : (8 + m) << (exponent - 3);
            const int bin = tsr_min(tsr_activity_bin(activity), TSR_ACTIVITY_BINS - 1);
            const int cell = map->context[bin][0] - TSR_FIRST_CELL_CONTEXT;
            decoder->of_activity[((31 - exponent) * 8 + m) % 128] =
                model->intensity_cuts ? (uint8_t)cell : decoder->table_of_bin[bin];
        }
}

void tsr_plane_decoder_init(struct tsr_plane_decoder *decoder, const struct tsr_predictor_model *predictor,
                            const struct tsr_residual_model *model, bool rans)
{
    struct tsr_context_map map;
    decoder->model = model;
    decoder->rans = rans;
    decoder->isa = tsr_isa();
    decoder->vector_lanes = TSR_VECTOR_LANES;
    decoder->predictor = predictor;
    tsr_map_contexts(&map, model);
    memcpy(decoder->intensity_group, map.intensity_group, sizeof map.intensity_group);
    for (int bin = 0; bin < TSR_ACTIVITY_BINS; bin++)
        for (int g = 0; g < TSR_INTENSITY_GROUPS; g++)
            decoder->table[bin][g] = (uint8_t)tsr_table_of_context(model, map.context[bin][g]);
    memset(decoder->table_of_bin, 0, sizeof decoder->table_of_bin);
    for (int bin = 0; bin < TSR_ACTIVITY_BINS; bin++) decoder->table_of_bin[bin] = decoder->table[bin][0];
    uint8_t identity[TSR_ACTIVITY_BINS];
    for (int bin = 0; bin < TSR_ACTIVITY_BINS; bin++) identity[bin] = (uint8_t)bin;
    tsr_spread_bins(&decoder->bins, identity);
    for (int symbol = 0; symbol < TSR_RUN_ALPHABET; symbol++) decoder->of_symbol[symbol] = entry_of(symbol);
    spread_look_ups(decoder, &map);
    spread_cells(decoder, &map);
    /* Without residual tables, table TSR_FIRST_RESIDUAL_TABLE is there but unused. */
    uint32_t next = TSR_DIRECT_ENTRIES;
    decoder->unused = 0;
    for (int t = 0; t < TSR_FIRST_RESIDUAL_TABLE + tsr_max(1, model->tables); t++) {
        decoder->unused |= (uint32_t)!tsr_table_is_used(model, t, rans) << t;
        if (rans) {
            tsr_rans_decoder_init(&decoder->rans_codes[t], model->weights[t], TSR_RUN_ALPHABET);
            fill_rans_entries(decoder, t);
        } else {
            next = fill_entries(decoder, t, next);
        }
    }
    for (int t = 0; predictor->set && t < predictor->label_tables; t++)
        tsr_huffman_decoder_init(&decoder->labels[t], predictor->label_lengths[t], predictor->classes + 1);
}

static size_t decode_labels_room(int32_t width, int32_t height)
{
    return ((size_t)tsr_blocks_across(width) * (size_t)tsr_blocks_across(height) + 63) / 64 * 64;
}

size_t tsr_decode_scratch_bytes(int32_t width, int32_t height)
{
    return 2 * tsr_padded_samples(width, height) * sizeof(int16_t) + decode_labels_room(width, height) +
           sizeof(struct decoding);
}

/* Reads the labels of the blocks, which precede the words. Returns the bytes that they take, SIZE_MAX if they are
 * invalid. */
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

/* Ends a pair that has one tap: it repeats the tap, with weight 0. */
static int end_pair(struct decoding *t, int count)
{
    if (count % 2 == 0) return count;
    t->tap[count] = t->tap[count - 1];
    t->offset[count] = t->offset[count - 1];
    return count + 1;
}

/* Puts taps and weights into the decoder's order: W, WW, WWW apart, all others in pairs, those of earlier planes last.
 */
static void sort_taps(struct decoding *t)
{
    const struct tsr_predictor_model *model = t->d->predictor;
    int count = 0;
    memset(t->weights, 0, model->classes * sizeof t->weights[0]);
    for (int k = 0; k < tsr_taps(model->shape); k++) {
        const struct tsr_tap_place place = tsr_tap_place(model->shape.neighbours, k);
        if (place.plane == 0 && place.up == 0 && place.right >= -3) {
            for (int c = 0; c < model->classes; c++) t->weights[c].near[-place.right - 1] = model->weight[c][k];
            continue;
        }
        if (k == model->shape.neighbours) {
            count = end_pair(t, count);
            t->own_pairs = count / 2;
        }
        t->tap[count] = (uint8_t)k;
        t->offset[count] = place.right - place.up * t->pitch;
        if (place.plane > 0) t->offset[count] += t->earlier[place.plane - 1].first - t->own.first;
        for (int c = 0; c < model->classes; c++)
            t->weights[c].pair[count / 2] |= (int32_t)((uint32_t)(uint16_t)model->weight[c][k] << (count % 2 ? 16 : 0));
        count++;
    }
    t->pairs = end_pair(t, count) / 2;
}

/* Appends the next word to the state if it wants one. After the last word it gets zeros: tsr_decode_tile compares the
 * number of words taken. */
TSR_HD_INLINE uint32_t refill_state(uint32_t state, struct word_stream *stream)
{
    const uint32_t wants = tsr_rans_wants_word(state), word = tsr_lane_word(stream->words, stream->count, stream->next);
    stream->next += wants;
    return wants ? tsr_rans_with_word(state, word) : state;
}

/* Takes a symbol of a table and its raw bits: its value, and whether it is a run. False if the table has no symbols, or
 * no runs. */
TSR_HD_INLINE bool take_rans(const struct tsr_plane_decoder *d, struct decoding_lane *lane, struct word_stream *stream,
                             int table, uint32_t *value, bool *run)
{
    uint32_t state = lane->state;
    const int symbol = tsr_rans_get(&state, &d->rans_codes[table]);
    state = refill_state(state, stream);
    const uint32_t entry = d->rans_entry[table][symbol].entry;
    *run = (entry & ENTRY_RUN) != 0;
    *value = (entry >> ENTRY_VALUE) + tsr_rans_get_raw(&state, (int)(entry >> ENTRY_RAW & ENTRY_RAW_LIMIT));
    lane->state = refill_state(state, stream);
    return !(entry & ENTRY_NONE);
}

/* tsr_lane_refill where the stream has two words at least. */
TSR_HD_INLINE void refill_surely(struct tsr_lane_reader *reader, int refill_bits, struct word_stream *stream)
{
    const uint8_t *const words = stream->words + 2 * (size_t)stream->next;
    const uint32_t needed = tsr_lane_wants_word(reader->count, refill_bits),
                   word = ((uint32_t)words[0] | (uint32_t)words[1] << 8) & (0u - needed);
    reader->bits |= (uint64_t)word << ((48 - reader->count) & 63);
    reader->count += (int32_t)needed * TSR_LANE_WORD_BITS;
    stream->next += needed;
    if (__builtin_expect(tsr_lane_wants_word(reader->count, refill_bits), 0)) {
        reader->bits |= (uint64_t)((uint32_t)words[2] | (uint32_t)words[3] << 8) << (48 - reader->count);
        reader->count += TSR_LANE_WORD_BITS;
        stream->next++;
    }
}

/* The same with Huffman. has_words: the stream has two words at least. */
TSR_HD_INLINE bool take_huffman(const struct decoding *t, const struct tsr_plane_decoder *d, struct decoding_lane *lane,
                                struct word_stream *stream, int table, uint32_t *value, bool *run, const bool has_words)
{
    struct tsr_lane_reader reader = lane->reader;
    if (has_words)
        refill_surely(&reader, t->refill_bits, stream);
    else
        tsr_lane_refill(&reader, t->refill_bits, stream->words, stream->count, &stream->next);
    uint32_t entry = d->entry[((uint32_t)table << TSR_DIRECT_BITS) + tsr_lane_peek(&reader, TSR_DIRECT_BITS)];
    *run = false;
    if (entry & (ENTRY_LONGER | ENTRY_NONE | ENTRY_RUN)) { /* one test instead of three */
        if (entry & ENTRY_LONGER)
            entry = d->entry[(entry >> ENTRY_VALUE) + tsr_lane_peek(&reader, TSR_CODE_LIMIT) % TSR_REST_ENTRIES];
        if (entry & ENTRY_NONE) return false;
        *run = (entry & ENTRY_RUN) != 0;
    }
    *value = ((entry >> ENTRY_VALUE) + tsr_lane_take(&reader, (int)(entry & ENTRY_BITS))) & UINT16_MAX;
    lane->reader = reader;
    return true;
}

/* What decode_sample knows of a step when it is compiled. */
struct step_kind {
    bool first;     /* the lane is in the tile's first row */
    bool rans;      /* else Huffman */
    bool linear;    /* linear predictors may be used */
    bool anchored;  /* residuals are */
    bool has_words; /* the stream has two words at least for each sample of the step */
};

/* Collects what sample number j of the step needs from the rows above. */
TSR_HD_INLINE struct tsr_lane_above look_above(const struct decoding *t, const struct decoding_lane *lane, int j,
                                               const struct step_kind kind)
{
    struct tsr_lane_above above;
    memset(&above, 0, sizeof above);
    above.first_row = kind.first;
    above.weight = tsr_left_activity(kind.first);
    above.n = above.nw = above.ne = -BIAS;
    if (kind.first) return above;
    above.activity = lane->activity[j];
    above.linear = kind.linear && lane->weights != NULL;
    if (above.linear) {
        above.sum = lane->sum[j];
        above.of_w = lane->weights->near[0];
        above.of_ww = lane->weights->near[1];
        above.of_www = lane->weights->near[2];
    }
    if (!above.linear || kind.anchored) {
        const int16_t *up = lane->row + j - t->pitch;
        above.n = up[0];
        above.nw = up[-1];
        above.ne = up[1];
    }
    return above;
}

/* The table of a sample with an intensity bin. */
TSR_HD_INLINE int table_of(const struct tsr_plane_decoder *d, int32_t activity, int32_t bin, uint32_t after_run)
{
    if (activity == 0) return tsr_quiet_table(after_run);
    const int cell = d->cell_of_place[tsr_activity_place(activity)];
    return d->of_cell[cell + d->intensity_group[bin]];
}

/* Decodes sample number j of the step; see lane_sample.h. False if a symbol or the sample is invalid. */
TSR_HD_INLINE bool decode_sample(const struct decoding *t, const struct tsr_plane_decoder *d,
                                 struct decoding_lane *lane, struct word_stream *stream, int j,
                                 const struct step_kind kind)
{
    int16_t *row = lane->row + j;
    uint16_t *mag = lane->mag + j;
    struct tsr_lane_left left = {row[-1], row[-2], row[-3], mag[-1], mag[-2], lane->run};
    const struct tsr_lane_above above = look_above(t, lane, j, kind);
    const int32_t prediction = tsr_lane_prediction(&left, &above, t->range);
    struct tsr_anchor anchor = {prediction, 0, 0};
    int32_t residual = 0;
    if (kind.anchored) anchor = tsr_lane_anchor(&left, &above, prediction, t->range);
    if (left.run.left == 0) {
        const int32_t bin = kind.anchored ? tsr_lane_anchor_bin(&left, &above, anchor) : prediction >> t->shift;
        const int table = table_of(d, tsr_lane_activity(&left, &above), bin, left.run.after);
        uint32_t value;
        bool run;
        if (!(kind.rans ? take_rans(d, lane, stream, table, &value, &run)
                        : take_huffman(t, d, lane, stream, table, &value, &run, kind.has_words)))
            return false;
        if (run)
            left.run.left = (int32_t)value;
        else
            residual = tsr_unfold(value);
    }
    const int32_t sample = tsr_anchored_sample(anchor, residual, t->range);
    tsr_lane_step(&left, sample, kind.anchored ? sample - prediction : residual);
    *row = (int16_t)left.w;
    *mag = (uint16_t)left.magnitude_w;
    lane->run = left.run;
    return (uint32_t)sample < (uint32_t)t->range;
}

/* Sample number j of the first lane's step in the tile's first row. The number of the next word is a copy of the
 * caller's, which so stays in a register. */
static bool decode_first_sample(struct decoding *t, struct decoding_lane *lane, int j, uint32_t *next)
{
    struct word_stream stream = {t->stream.words, t->stream.count, *next};
    const struct step_kind huffman = {.first = true}, rans = {.first = true, .rans = true};
    const struct step_kind anchored = {.first = true, .anchored = true},
                           anchored_rans = {.first = true, .rans = true, .anchored = true};
    const bool good = t->d->predictor->anchored ? (t->d->rans ? decode_sample(t, t->d, lane, &stream, j, anchored_rans)
                                                              : decode_sample(t, t->d, lane, &stream, j, anchored))
                                                : (t->d->rans ? decode_sample(t, t->d, lane, &stream, j, rans)
                                                              : decode_sample(t, t->d, lane, &stream, j, huffman));
    *next = stream.next;
    return good;
}

/* Four ticks of the active lanes, those within their rows. False if a symbol or a sample is invalid. */
TSR_HD_INLINE bool decode_any_ticks(struct decoding *t, struct decoding_lane *const *active, int count, const bool rans,
                                    const bool anchored)
{
    const struct step_kind kind = {.rans = rans, .linear = true, .anchored = anchored};
    const int from = active[0]->y == 0; /* the first lane is active[0] where it is in the first row */
    for (int j = 0; j < TSR_LANE_STEP; j++) {
        if (from && active[0]->column + j < t->width && !decode_first_sample(t, active[0], j, &t->stream.next))
            return false;
        for (int i = from; i < count; i++)
            if (active[i]->column + j < t->width && !decode_sample(t, t->d, active[i], &t->stream, j, kind))
                return false;
    }
    return true;
}

TSR_HD_INLINE bool decode_tick(struct decoding *t, struct decoding_lane *const *active, int count,
                               struct word_stream *stream, const int j, const struct step_kind kind)
{
    const struct tsr_plane_decoder *const d = t->d;
    int i = 0;
    if (active[0]->y == 0) {
        uint32_t next = stream->next;
        if (!decode_first_sample(t, active[0], j, &next)) return false;
        stream->next = next;
        i = 1;
    }
    for (; i < count; i++)
        if (!decode_sample(t, d, active[i], stream, j, kind)) return false;
    return true;
}

/* The same if no lane ends its row within the step, and words are left. */
TSR_HD_INLINE bool decode_whole_ticks(struct decoding *t, struct decoding_lane *const *active, int count,
                                      const struct step_kind kind)
{
    struct word_stream stream = t->stream;
    const bool good =
        decode_tick(t, active, count, &stream, 0, kind) && decode_tick(t, active, count, &stream, 1, kind) &&
        decode_tick(t, active, count, &stream, 2, kind) && decode_tick(t, active, count, &stream, 3, kind);
    t->stream = stream;
    return good;
}

static bool decode_ticks_median(struct decoding *t, struct decoding_lane *const *active, int count)
{
    return decode_whole_ticks(t, active, count, (struct step_kind){.has_words = true});
}

static bool decode_ticks_linear(struct decoding *t, struct decoding_lane *const *active, int count)
{
    return decode_whole_ticks(t, active, count, (struct step_kind){.linear = true, .has_words = true});
}

static bool decode_ticks_rans(struct decoding *t, struct decoding_lane *const *active, int count)
{
    return decode_whole_ticks(t, active, count, (struct step_kind){.rans = true, .linear = true, .has_words = true});
}

static bool decode_any_ticks_huffman(struct decoding *t, struct decoding_lane *const *active, int count)
{
    return decode_any_ticks(t, active, count, false, false);
}

static bool decode_any_ticks_rans(struct decoding *t, struct decoding_lane *const *active, int count)
{
    return decode_any_ticks(t, active, count, true, false);
}

static bool decode_any_ticks_anchored(struct decoding *t, struct decoding_lane *const *active, int count)
{
    return t->d->rans ? decode_any_ticks(t, active, count, true, true)
                      : decode_any_ticks(t, active, count, false, true);
}

/* Decodes a step of four ticks of the active lanes. */
static bool decode_step(struct decoding *t, struct decoding_lane *const *active, int count)
{
    const bool rans = t->d->rans;
    const uint32_t words = 2u * TSR_LANE_STEP * (uint32_t)count; /* more are not taken */
    bool whole = t->stream.count >= words && t->stream.next <= t->stream.count - words;
    for (int i = 0; i < count; i++) {
        if (active[i]->y > 0) prepare_step(t, active[i]);
        whole &= active[i]->column + TSR_LANE_STEP <= t->width;
    }
    if (t->d->predictor->anchored) return decode_any_ticks_anchored(t, active, count);
    if (!whole) return (rans ? decode_any_ticks_rans : decode_any_ticks_huffman)(t, active, count);
    return (rans ? decode_ticks_rans : t->label ? decode_ticks_linear : decode_ticks_median)(t, active, count);
}

/* A lane that is at the end of its period goes on to its next row. Returns whether there is none. */
static bool end_period(const struct decoding *t, struct decoding_lane *lane, int32_t period)
{
    if (lane->column != period) return false;
    lane->column = 0;
    lane->y += t->d->model->lanes;
    return lane->y >= t->height;
}

/* A lane whose step is decoded goes on to its next one. */
TSR_HD_INLINE bool end_step(const struct decoding *t, struct decoding_lane *lane, int32_t period)
{
    lane->column += TSR_LANE_STEP;
    lane->row += TSR_LANE_STEP;
    lane->mag += TSR_LANE_STEP;
    if (lane->column < t->width) return false;
    end_row(t, lane);
    return end_period(t, lane, period);
}

/* Decodes all rows of a tile, a step of four ticks at a time. False if a symbol or a sample is invalid. */
static bool decode_rows(struct decoding *t, struct decoding_lane *lane, int lanes)
{
    const int32_t period = tsr_lane_period(t->width, t->d->model->lanes);
    for (int l = 0; l < lanes; l++) {
        lane[l].column = -TSR_LANE_DELAY * l;
        lane[l].y = l;
    }
    for (int working = lanes; working > 0;) {
        struct decoding_lane *active[TSR_LANE_LIMIT];
        int count = 0;
        for (struct decoding_lane *me = lane; me < lane + lanes; me++) {
            if (me->y >= t->height) continue;
            if (me->column < 0 || me->column >= t->width) { /* it waits */
                me->column += TSR_LANE_STEP;
                working -= end_period(t, me, period);
                continue;
            }
            if (me->column == 0) begin_row(t, me);
            active[count++] = me;
        }
        if (count == 0) continue;
        if (!decode_step(t, active, count)) return false;
        if (active[0]->y == 0 && active[0]->column == 0) spread_first_sample(t);
        for (int i = 0; i < count; i++) working -= end_step(t, active[i], period);
    }
    return true;
}

/* What decodes the rows of a tile that has enough lanes. On x86-64 that of TSR_ISA_PLAIN is SSE2's. AVX-512 wins with
 * 16 lanes of Huffman codes alone. */
static bool (*rows_decoder(enum tsr_isa isa, bool suits_avx512))(struct decoding *t, struct decoding_lane *lane,
                                                                 int lanes)
{
    if (isa == TSR_ISA_AVX512 && suits_avx512) return tsr_decode_rows_avx512;
    if (isa >= TSR_ISA_AVX2) return tsr_decode_rows_avx2;
#if defined(__SSE2__)
    return tsr_decode_rows_sse2;
#else
    return decode_rows;
#endif
}

bool tsr_decode_tile(const struct tsr_plane_decoder *decoder, const struct tsr_padded_tile *earlier,
                     const uint8_t *payload, size_t size, uint16_t *samples, struct tsr_tile tile, uint32_t range,
                     void *scratch)
{
    struct decoding_lane lane[TSR_LANE_LIMIT];
    const struct tsr_residual_model *model = decoder->model;
    const int lanes = tsr_min(model->lanes, tile.height);
    struct decoding *t = scratch;
    int16_t *room = (int16_t *)(t + 1);
    uint8_t *label = (uint8_t *)(room + 2 * tsr_padded_samples(tile.width, tile.height));
    t->d = decoder;
    t->out = samples + tile.first;
    t->out_stride = tile.stride;
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
    if (!(lanes < decoder->vector_lanes ? decode_rows
                                        : rows_decoder(decoder->isa, lanes >= 16 && !decoder->rans))(t, lane, lanes))
        return false;
    if (t->stream.next != t->stream.count) return false;
    for (int l = 0; l < lanes; l++)
        if (decoder->rans ? lane[l].state != TSR_RANS_LOW : lane[l].reader.bits != 0 || lane[l].reader.count > 47)
            return false;
    return true;
}
