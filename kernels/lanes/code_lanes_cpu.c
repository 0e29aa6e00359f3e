/* Coding a tile's lanes; see code_lanes.h. */
#include "code_lanes.h"

#include <string.h>

#include "code_ticks.h"
#include "entropy/runs.h"

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

/* ---- Rows ------------------------------------------------------------------------------------------------ */

/* Columns that find_cells takes at once: what it counts of them stays near. */
enum { CELL_COLUMNS = 256, CELL_CUTS = 4 };

/* Adds pitch for each of CELL_CUTS cuts that are not above a column's value. A loop that compilers make vectors of. */
static void add_groups(const int16_t *restrict value, int32_t columns, const int16_t *cut, int16_t pitch,
                       int16_t *restrict number)
{
    const int16_t a = cut[0], b = cut[1], c = cut[2], d = cut[3];
    static_assert(CELL_CUTS == 4, "the cuts of a call");
    for (int32_t i = 0; i < columns; i++) {
        const int16_t v = value[i];
        const int16_t two = (int16_t)((v >= a ? pitch : 0) + (v >= b ? pitch : 0));
        const int16_t two_more = (int16_t)((v >= c ? pitch : 0) + (v >= d ? pitch : 0));
        number[i] = (int16_t)(number[i] + two + two_more);
    }
}

/* The same for all of some cuts. INT16_MAX is above all values. */
static void add_all_groups(const int16_t *value, int32_t columns, const int16_t *cuts, int count, int16_t pitch,
                           int16_t *number)
{
    for (int first = 0; first < count; first += CELL_CUTS) {
        int16_t some[CELL_CUTS];
        for (int i = 0; i < CELL_CUTS; i++) some[i] = first + i < count ? cuts[first + i] : INT16_MAX;
        add_groups(value, columns, some, pitch, number);
    }
}

/* Sets the bits of at most CELL_COLUMNS columns that are special; most are not. */
static void find_special(const int16_t *restrict activity, const uint16_t *restrict folded, int32_t columns,
                         uint32_t *special)
{
    uint8_t is_special[CELL_COLUMNS];
    memset(special, 0, ((size_t)columns + 31) / 32 * sizeof *special);
    memset(is_special, 0, sizeof is_special);
    for (int32_t c = 0; c < columns; c++) is_special[c] = (activity[c] == 0) | (folded[c] >= TSR_CODED_VALUES);
    for (int32_t c = 0; c < columns; c += 8) {
        uint64_t any;
        memcpy(&any, is_special + c, sizeof any);
        for (int k = 0; k < 8 && any; k++) special[c / 32] |= (uint32_t)is_special[c + k] << (c + k) % 32;
    }
}

static void find_cells(const struct tsr_residual_rows *rows, const struct cell_cuts *cuts, uint8_t *context,
                       uint32_t *special)
{
    static_assert(TSR_INTENSITY_BINS <= INT16_MAX, "intensities are compared as signed numbers");
    for (int32_t c = 0; c < rows->tile.width; c += CELL_COLUMNS) {
        const int32_t columns = tsr_min(CELL_COLUMNS, rows->tile.width - c);
        int16_t number[CELL_COLUMNS];
        memset(number, 0, sizeof number);
        add_all_groups(rows->activity + c, columns, cuts->activity, cuts->activities, cuts->pitch, number);
        add_all_groups((const int16_t *)rows->intensity + c, columns, cuts->intensity, cuts->intensities, 1, number);
        for (int32_t k = 0; k < columns; k++) context[c + k] = (uint8_t)(TSR_FIRST_CELL_CONTEXT + number[k]);
        find_special(rows->activity + c, rows->folded + c, columns, special + c / 32);
    }
}

static void look_up(const struct tsr_value_codes *codes, const uint8_t *context, const uint16_t *folded, int32_t width,
                    uint32_t *code)
{
    for (int32_t c = 0; c < width; c++) {
        const uint32_t value = folded[c] < TSR_CODED_VALUES ? folded[c] : TSR_CODED_VALUES - 1;
        code[c] = codes->code[codes->table_of[context[c]]][value];
    }
}

/* Notes the ticks in which the words of some columns are taken, and how many. tick: of column 0. Returns the bits after
 * them. */
static uint32_t note_columns(const uint32_t *code, int32_t first, int32_t end, int refill_bits, uint32_t tick,
                             uint32_t bits, struct lane_string *lane)
{
    uint32_t words = lane->words, *at = lane->tick;
    uint8_t *taken = lane->taken + tick;
    for (int32_t c = first; c < end; c++) {
        const uint32_t wanted = tsr_lane_words(bits, refill_bits);
        at[words] = at[words + 1] = tick + (uint32_t)c;
        taken[c] = (uint8_t)(taken[c] + wanted - words);
        words = wanted;
        bits += code[c] & ROW_LENGTH_MASK;
    }
    lane->words = words;
    return bits;
}

#if defined(__SSE2__)

/* The lengths of sixteen codes. */
static __m128i lengths_of(const uint32_t *code)
{
    __m128i four[4];
    for (int i = 0; i < 4; i++)
        four[i] = _mm_and_si128(_mm_loadu_si128((const __m128i *)(const void *)(code + 4 * i)),
                                _mm_set1_epi32(ROW_LENGTH_MASK));
    return _mm_packus_epi16(_mm_packs_epi32(four[0], four[1]), _mm_packs_epi32(four[2], four[3]));
}

static uint32_t last_byte(__m128i v)
{
    return (uint32_t)_mm_extract_epi16(v, 7) >> 8;
}

/* Notes the ticks of eight columns, of which those of mask take a word. tick: of the first. */
static void note_eight(uint32_t mask, uint32_t tick, struct lane_string *lane)
{
    const __m128i zero = _mm_setzero_si128(), column = _mm_unpacklo_epi8(places_of(mask), zero),
                  ticks = _mm_set1_epi32((int)tick);
    uint32_t *const at = lane->tick + lane->words;
    _mm_storeu_si128((__m128i *)(void *)at, _mm_add_epi32(ticks, _mm_unpacklo_epi16(column, zero)));
    _mm_storeu_si128((__m128i *)(void *)(at + 4), _mm_add_epi32(ticks, _mm_unpackhi_epi16(column, zero)));
}

/* The same as note_columns for sixteen columns, if none takes two words and the codes are not too long. *bits: before
 * them, and after them. */
static bool note_sixteen(const uint32_t *code, int refill_bits, uint32_t tick, uint32_t *bits, struct lane_string *lane)
{
    enum { MOST = UINT8_MAX - TSR_LANE_WORD_BITS };
    const __m128i length = lengths_of(code), sums = sums_before(length);
    const __m128i more = words_taken(sums, *bits, lane->words, refill_bits);
    if (last_byte(sums) > MOST || _mm_movemask_epi8(_mm_cmpgt_epi8(more, _mm_set1_epi8(1)))) return false;
    __m128i *const taken = (__m128i *)(void *)(lane->taken + tick);
    const uint32_t mask = (uint32_t)_mm_movemask_epi8(_mm_cmpgt_epi8(more, _mm_setzero_si128()));
    _mm_storeu_si128(taken, _mm_add_epi8(_mm_loadu_si128(taken), more));
    const __m128i words = _mm_sad_epu8(more, _mm_setzero_si128()); /* of eight columns each */
    note_eight(mask & 0xff, tick, lane);
    lane->words += (uint32_t)_mm_extract_epi16(words, 0);
    note_eight(mask >> 8, tick + 8, lane);
    lane->words += (uint32_t)_mm_extract_epi16(words, 4);
    *bits += last_byte(sums) + last_byte(length);
    return true;
}

#endif

/* Notes the ticks in which the words of a row are taken, and how many. */
static void note_ticks(const uint32_t *code, int32_t width, int refill_bits, uint32_t tick, struct lane_string *lane)
{
    uint32_t bits = lane->bits;
    int32_t c = 0;
#if defined(__SSE2__)
    for (; c + ROW_STEP <= width; c += ROW_STEP)
        if (!note_sixteen(code + c, refill_bits, tick + (uint32_t)c, &bits, lane))
            bits = note_columns(code, c, c + ROW_STEP, refill_bits, tick, bits, lane);
#endif
    (void)note_columns(code, c, width, refill_bits, tick, bits, lane);
}

/* Two codes, the first one on top, and their length. */
struct code_pair {
    uint64_t bits;
    uint32_t length;
};

TSR_HD_INLINE struct code_pair join_codes(uint32_t first, uint32_t second)
{
    const uint32_t length = second & ROW_LENGTH_MASK;
    const uint64_t bits = (uint64_t)(first >> ROW_LENGTH_BITS) << length | second >> ROW_LENGTH_BITS;
    return (struct code_pair){bits, (first & ROW_LENGTH_MASK) + length};
}

/* Appends the codes alone: by fours, where these fit, else by twos. */
static void append_bits(const uint32_t *code, int32_t width, struct lane_string *lane)
{
    static_assert((int)(2 * ROW_CODE_LIMIT) <= (int)STRING_BITS, "two codes are a string");
    struct lane_string own = *lane;
    int32_t c = 0;
    for (; c + 4 <= width; c += 4) {
        const struct code_pair a = join_codes(code[c], code[c + 1]), b = join_codes(code[c + 2], code[c + 3]);
        const uint32_t length = a.length + b.length;
        if (length <= STRING_BITS) {
            append_string(&own, (a.bits << b.length | b.bits) << 1 << (63 - length), length);
            continue;
        }
        append_string(&own, a.bits << 1 << (63 - a.length), a.length);
        append_string(&own, b.bits << 1 << (63 - b.length), b.length);
    }
    for (; c < width; c++) {
        const struct code_pair one = join_codes(0, code[c]);
        append_string(&own, one.bits << 1 << (63 - one.length), one.length);
    }
    *lane = own;
}

static void append(uint32_t *code, int32_t width, int refill_bits, uint32_t tick, struct lane_string *lane)
{
    struct lane_string own = *lane;
    note_ticks(code, width, refill_bits, tick, &own);
    append_bits(code, width, &own);
    *lane = own;
}

const struct row_coder *tsr_row_coder(enum tsr_isa isa)
{
    static const struct row_coder plain = {find_cells, look_up, append};
#if TSR_HAS_VECTOR_FORMS
    if (isa == TSR_ISA_AVX512) return &tsr_row_coder_avx512;
    if (isa == TSR_ISA_AVX2) return &tsr_row_coder_avx2;
#endif
    (void)isa;
    return &plain;
}

/* The code of a token and its raw bits. */
TSR_HD_INLINE void put_code(uint32_t *code, int32_t c, struct tsr_symbol_code symbol, uint32_t value)
{
    const uint32_t bits = (uint32_t)symbol.bits << symbol.raw_bits | (value & ((1u << symbol.raw_bits) - 1u));
    code[c] = bits << ROW_LENGTH_BITS | (uint32_t)(symbol.length + symbol.raw_bits);
}

/* Puts the code of a run of the columns first .. end - 1 at its last column; the others have no bits. */
static void put_run(uint32_t *code, int32_t first, int32_t end, struct tsr_symbol_code symbol)
{
    memset(code + first, 0, (size_t)(end - 1 - first) * sizeof *code);
    put_code(code, end - 1, symbol, (uint32_t)(end - first));
}

/* ---- Tiles ----------------------------------------------------------------------------------------------- */

/* Room for the ticks of a tile. */
static size_t tick_count(int32_t width, int32_t height, int lanes)
{
    const size_t rows = (size_t)(height + lanes - 1) / (size_t)lanes;
    return (size_t)tsr_lane_period(width, lanes) * rows + (size_t)(TSR_LANE_DELAY * lanes);
}

static size_t lane_samples(int32_t width, int32_t height, int lanes)
{
    return (size_t)((height + lanes - 1) / lanes) * (size_t)width;
}

/* A symbol takes two words at most. */
static size_t lane_words(int32_t width, int32_t height, int lanes)
{
    return 2 * lane_samples(width, height, lanes) + 2 * ROW_STEP;
}

/* A tile while it is coded. */
struct tile_coder {
    const struct row_coder *rows;
    struct lane_string lane[TSR_LANE_LIMIT];
    int lanes, refill_bits;
    int32_t width, height, period;
    uint8_t *taken;  /* by tick: words that all lanes take; ROW_STEP more places */
    uint32_t *place; /* by tick: number of its first word */
    size_t ticks;
    uint32_t *code; /* by column, as are these: */
    uint8_t *context, *symbol;
    uint16_t *value;
    uint32_t *special; /* bit c % 32 of number c / 32 is column c */
    uint16_t *column;  /* rANS: the columns of a row that have symbols */
};

/* Lays the arrays of t out from base on; base NULL: only counts. Returns the bytes that they take. */
static size_t lay_out(struct tile_coder *t, int32_t width, int32_t height, int lanes, void *base)
{
    const size_t words = lane_words(width, height, lanes), columns = ((size_t)width + 2 * ROW_MARGIN - 1) / 64 * 64;
    uint8_t *at = base;
    size_t used = 0;
    t->ticks = tick_count(width, height, lanes);
    for (int l = 0; l < lanes; l++) {
        t->lane[l] = (struct lane_string){0};
        t->lane[l].bytes = base ? at + used : NULL;
        used += (words / 4 + 2) * sizeof(uint64_t);
    }
    for (int l = 0; l < lanes; l++) {
        t->lane[l].tick = base ? (uint32_t *)(void *)(at + used) : NULL;
        used += words * sizeof(uint32_t);
    }
    t->place = base ? (uint32_t *)(void *)(at + used) : NULL;
    used += t->ticks * sizeof(uint32_t);
    t->code = base ? (uint32_t *)(void *)(at + used) : NULL;
    used += columns * sizeof(uint32_t);
    t->context = base ? at + used : NULL;
    used += columns;
    t->symbol = base ? at + used : NULL;
    used += columns;
    t->value = base ? (uint16_t *)(void *)(at + used) : NULL;
    used += columns * sizeof(uint16_t);
    t->special = base ? (uint32_t *)(void *)(at + used) : NULL;
    used += columns / 32 * sizeof(uint32_t);
    t->column = base ? (uint16_t *)(void *)(at + used) : NULL;
    used += columns * sizeof(uint16_t);
    t->taken = base ? at + used : NULL;
    for (int l = 0; l < lanes; l++) t->lane[l].taken = t->taken;
    return used + t->ticks + ROW_STEP;
}

size_t tsr_code_scratch_bytes(int32_t tile_width, int32_t tile_height, int lanes)
{
    struct tile_coder t;
    return tsr_residual_rows_bytes(tile_width) + lay_out(&t, tile_width, tile_height, lanes, NULL);
}

static void begin_tile(struct tile_coder *t, struct tsr_tile tile, const struct tsr_residual_model *model,
                       void *scratch)
{
    t->rows = tsr_row_coder(tsr_isa());
    t->lanes = model->lanes;
    t->refill_bits = model->refill_bits;
    t->width = tile.width;
    t->height = tile.height;
    t->period = tsr_lane_period(tile.width, model->lanes);
    (void)lay_out(t, tile.width, tile.height, model->lanes, scratch);
    memset(t->taken, 0, t->ticks);
}

/* Appends row y. Returns false if the lanes then have more than limit words in all. */
static bool append_row(struct tile_coder *t, int32_t y, size_t limit)
{
    const int l = y % t->lanes;
    size_t words = 0;
    t->rows->append(t->code, t->width, t->refill_bits,
                    (uint32_t)(TSR_LANE_DELAY * l) + (uint32_t)t->period * (uint32_t)(y / t->lanes), &t->lane[l]);
    for (int i = 0; i < t->lanes; i++) words += t->lane[i].words;
    return words <= limit;
}

/* The words that a lane adds to the stream, and the ticks in which the decoder takes them. */
struct lane_list {
    const uint8_t *bytes; /* of the words, the most significant one first */
    const uint32_t *tick;
    uint32_t words;
};

/* Writes the words in the order of their ticks and, within a tick, of their lanes. Returns the bytes. */
static size_t place_words(const struct lane_list *list, int lanes, const struct tile_coder *t, uint8_t *payload)
{
    uint32_t next = 0, *place = t->place;
    for (size_t i = 0; i < t->ticks; i++) {
        place[i] = next;
        next += 2 * t->taken[i];
    }
    for (int l = 0; l < lanes; l++) {
        const uint8_t *bytes = list[l].bytes;
        const uint32_t *tick = list[l].tick;
        for (uint32_t i = 0; i < list[l].words; i++) {
            uint8_t *out = payload + place[tick[i]];
            place[tick[i]] += 2;
            out[0] = bytes[2 * i + 1];
            out[1] = bytes[2 * i];
        }
    }
    return next;
}

/* Writes the payload once all rows have been appended. Returns its bytes. */
static size_t end_tile(struct tile_coder *t, uint8_t *payload)
{
    struct lane_list list[TSR_LANE_LIMIT];
    for (int l = 0; l < t->lanes; l++) {
        struct lane_string *lane = &t->lane[l];
        uint8_t *end = lane->bytes + lane->bits / 8;
        append_string(lane, 0, 0);
        memset(end + sizeof lane->front, 0, sizeof lane->front);
        list[l] = (struct lane_list){lane->bytes, lane->tick, lane->words};
    }
    return place_words(list, t->lanes, t, payload);
}

/* ---- From symbols ------------------------------------------------------------------------------------------ */

/* Finds the columns of runs and large residuals by their symbols; most columns have others. */
static void find_large(const uint8_t *symbol, int32_t width, uint32_t *special)
{
    static_assert(TSR_RUN_ALPHABET <= 128, "bits 5 and 6 say that a symbol is 32 or more");
    memset(special, 0, ((size_t)width + 31) / 32 * sizeof *special);
    for (int32_t c = 0; c < width; c += 8) {
        uint64_t eight;
        memcpy(&eight, symbol + c, sizeof eight);
        if ((eight & 0x6060606060606060u) == 0) continue;
        for (int k = 0; k < 8; k++) special[c / 32] |= (uint32_t)((symbol[c + k] & 0x60u) != 0) << (c + k) % 32;
    }
}

/* The codes of a row; at: its place in the planes. */
static void code_symbols(const struct tile_coder *t, struct tsr_symbol_planes planes, size_t at,
                         const struct tsr_value_codes *codes, const tsr_code_table *of_symbol)
{
    const size_t width = (size_t)t->width;
    memcpy(t->context, planes.context + at, width);
    memcpy(t->symbol, planes.symbol + at, width);
    memcpy(t->value, planes.value + at, width * sizeof *t->value);
    memset(t->context + width, 0, ROW_MARGIN); /* contexts that the model has */
    memset(t->symbol + width, 0, 8);
    find_large(t->symbol, t->width, t->special);
    t->rows->look_up(codes, t->context, t->value, t->width, t->code);
    for (int32_t c = tsr_next_bit(t->special, 0, t->width); c < t->width;
         c = tsr_next_bit(t->special, c + 1, t->width)) {
        const struct tsr_symbol_code code = of_symbol[codes->table_of[t->context[c]]][t->symbol[c]];
        if (t->symbol[c] >= TSR_RUN_SYMBOL) {
            put_run(t->code, c, c + t->value[c], code);
            c += t->value[c] - 1;
        } else
            put_code(t->code, c, code, t->value[c]);
    }
}

size_t tsr_code_tile(struct tsr_symbol_planes planes, struct tsr_tile tile, const struct tsr_residual_model *model,
                     const struct tsr_value_codes *codes, const tsr_code_table *of_symbol, uint8_t *payload,
                     size_t capacity, void *scratch)
{
    struct tile_coder t;
    static_assert(TSR_CODED_VALUES == 256, "smaller values have the symbols below 32");
    begin_tile(&t, tile, model, scratch);
    for (int32_t y = 0; y < tile.height; y++) {
        code_symbols(&t, planes, tile.first + (size_t)y * tile.stride, codes, of_symbol);
        if (!append_row(&t, y, capacity / 2)) return 0;
    }
    return end_tile(&t, payload);
}

/* ---- Without symbols --------------------------------------------------------------------------------------- */

void tsr_build_value_codes(struct tsr_value_codes *codes, const tsr_code_table *of_symbol,
                           const struct tsr_residual_model *model)
{
    for (int t = 0; t < TSR_FIRST_RESIDUAL_TABLE + model->tables; t++)
        for (uint32_t v = 0; v < TSR_CODED_VALUES;) { /* all values of a symbol */
            const struct tsr_symbol_code code = of_symbol[t][tsr_token_symbol(v)];
            const uint32_t bits = (uint32_t)code.bits << code.raw_bits,
                           length = (uint32_t)(code.length + code.raw_bits);
            for (uint32_t raw = 0; raw < 1u << code.raw_bits; raw++)
                codes->code[t][v + raw] = (bits | raw) << ROW_LENGTH_BITS | length;
            v += 1u << code.raw_bits;
        }
    memset(codes->table_of, 0, sizeof codes->table_of);
    codes->contexts = TSR_FIRST_CELL_CONTEXT + tsr_model_cells(model);
    for (int i = 0; i < codes->contexts; i++) codes->table_of[i] = (uint8_t)tsr_table_of_context(model, i);
}

/* Puts the codes of the special columns: runs, interruptions and large residuals. */
static void put_special_codes(const struct tsr_residual_rows *rows, const struct tile_coder *t,
                              const struct tsr_value_codes *codes, const tsr_code_table *of_symbol)
{
    const int32_t width = t->width;
    const uint16_t *folded = rows->folded;
    for (int32_t c = tsr_next_bit(t->special, 0, width); c < width; c = tsr_next_bit(t->special, c + 1, width)) {
        int table = codes->table_of[t->context[c]];
        if (rows->activity[c] == 0) {
            table = tsr_quiet_table(false);
            if (tsr_run_starts(folded[c] == 0, true)) {
                const int32_t end = tsr_long_run_end(folded, c, width);
                put_run(t->code, c, end,
                        of_symbol[TSR_RUN_TABLE][tsr_row_run_token((uint32_t)(end - c), end == width).symbol]);
                if (end >= width) return;
                c = end;
                table = rows->activity[c] == 0 ? tsr_quiet_table(true) : codes->table_of[t->context[c]];
            }
        }
        put_code(t->code, c, of_symbol[table][tsr_token_symbol(folded[c])], folded[c]);
    }
}

size_t tsr_code_tile_once(const uint16_t *samples, struct tsr_tile tile, uint32_t range,
                          const struct tsr_residual_model *model, const struct tsr_value_codes *codes,
                          const tsr_code_table *of_symbol, uint8_t *payload, size_t capacity, void *scratch)
{
    struct tile_coder t;
    struct cell_cuts cuts = {.activities = model->activity_cuts, .intensities = model->intensity_cuts};
    struct tsr_residual_rows rows = tsr_residual_rows(samples, tile, range, NULL, scratch);
    begin_tile(&t, tile, model, (uint8_t *)scratch + tsr_residual_rows_bytes(tile.width));
    cuts.pitch = (int16_t)(model->intensity_cuts + 1);
    for (int i = 0; i < model->activity_cuts; i++)
        cuts.activity[i] = (int16_t)tsr_token_value(model->activity_cut[i], 0);
    for (int i = 0; i < model->intensity_cuts; i++) cuts.intensity[i] = (int16_t)model->intensity_cut[i];
    for (int32_t y = 0; y < tile.height; y++) {
        tsr_next_row(&rows);
        t.rows->find_cells(&rows, &cuts, t.context, t.special);
        t.rows->look_up(codes, t.context, rows.folded, tile.width, t.code);
        put_special_codes(&rows, &t, codes, of_symbol);
        if (!append_row(&t, y, capacity / 2)) return 0;
    }
    return end_tile(&t, payload);
}

/* ---- rANS -------------------------------------------------------------------------------------------------- */

/* The words that a lane has given, and their ticks. The decoder's last word comes first: they are written from the end
 * of their rooms. */
struct rans_lane {
    uint8_t *bytes; /* of the words given so far, as in struct lane_list */
    uint32_t *tick;
};

/* Puts a word before the others if it leaves the state. Whether it does cannot be foreseen: no branch. */
TSR_HD_INLINE void put_word(struct rans_lane *lane, uint16_t word, bool leaves)
{
    lane->bytes[-2] = (uint8_t)(word >> 8);
    lane->bytes[-1] = (uint8_t)word;
    lane->bytes -= leaves ? 2 : 0;
    lane->tick -= leaves;
}

/* Codes the symbols of a row, the last one first. column: room for the columns that have symbols. */
static void put_rans_row(struct tsr_symbol_planes planes, size_t at, int32_t width,
                         const struct tsr_rans_symbol *const codes[TSR_CONTEXT_LIMIT], uint32_t tick, uint32_t *state,
                         uint16_t *column, struct rans_lane *lane)
{
    struct rans_lane own = *lane;
    int32_t count = 0;
    for (int32_t c = 0; c < width; c++) {
        column[count++] = (uint16_t)c;
        if (planes.symbol[at + (size_t)c] >= TSR_RUN_SYMBOL) c += planes.value[at + (size_t)c] - 1;
    }
    uint32_t x = *state;
    while (count-- > 0) {
        const size_t i = at + column[count];
        const int symbol = planes.symbol[i], raw_bits = tsr_symbol_raw_bits(symbol);
        uint16_t word;
        own.tick[-1] = own.tick[-2] = tick + column[count];
        if (raw_bits) {
            const bool leaves = tsr_rans_put_raw(&x, planes.value[i], raw_bits, &word);
            put_word(&own, word, leaves);
        }
        const bool leaves = tsr_rans_put(&x, &codes[planes.context[i]][symbol], &word);
        put_word(&own, word, leaves);
    }
    *state = x;
    *lane = own;
}

size_t tsr_rans_code_tile(struct tsr_symbol_planes planes, struct tsr_tile tile, const struct tsr_residual_model *model,
                          const tsr_rans_table codes[TSR_MODEL_TABLES], uint8_t *payload, size_t capacity,
                          void *scratch)
{
    const int lanes = tsr_min(model->lanes, tile.height);
    const size_t states = 4 * (size_t)lanes, room = lane_words(tile.width, tile.height, model->lanes);
    const struct tsr_rans_symbol *code_of[TSR_CONTEXT_LIMIT];
    struct tile_coder t;
    struct lane_list list[TSR_LANE_LIMIT];
    size_t words = 0;
    for (int i = 0; i < TSR_FIRST_CELL_CONTEXT + tsr_model_cells(model); i++)
        code_of[i] = codes[tsr_table_of_context(model, i)];
    if (capacity < states) return 0;
    begin_tile(&t, tile, model, scratch);
    for (int l = 0; l < lanes; l++) {
        uint32_t *const end = t.lane[l].tick + room;
        struct rans_lane lane = {t.lane[l].bytes + 2 * room, end};
        uint32_t state = TSR_RANS_LOW;
        for (int32_t k = (tile.height - 1 - l) / model->lanes; k >= 0; k--) {
            const size_t at = tile.first + (size_t)(l + k * model->lanes) * tile.stride;
            put_rans_row(planes, at, tile.width, code_of, (uint32_t)(TSR_LANE_DELAY * l + t.period * k), &state,
                         t.column, &lane);
        }
        for (int i = 0; i < 4; i++) payload[4 * l + i] = (uint8_t)(state >> 8 * i);
        list[l] = (struct lane_list){lane.bytes, lane.tick, (uint32_t)(end - lane.tick)};
        words += list[l].words;
        if (words > (capacity - states) / 2) return 0;
    }
    for (int l = 0; l < lanes; l++)
        for (uint32_t i = 0; i < list[l].words; i++) t.taken[list[l].tick[i]]++;
    return states + place_words(list, lanes, &t, payload + states);
}
