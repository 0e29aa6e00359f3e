/* FORMAT.md 7: predictors, contexts, lanes. */
#include "ref.h"

#include <stdlib.h>
#include <string.h>

/* ---- 7.5 Residual model ---- */

static bool read_cuts(struct ref_bits *b, uint32_t *cut, unsigned *count, unsigned most, uint32_t largest)
{
    uint32_t n = ref_ue(b);
    if (b->bad || n > most) return ref_fail("there are too many cuts");
    uint64_t last = 0;
    for (uint32_t i = 0; i < n; i++) {
        last += (uint64_t)ref_ue(b) + 1;
        if (b->bad || last > largest) return ref_fail("a cut is out of range");
        cut[i] = (uint32_t)last;
    }
    *count = n;
    return true;
}

/* 7.4: the number of raw bits after a symbol. */
static unsigned raw_bits(unsigned symbol)
{
    return symbol < 64 ? ref_token_bits(symbol) : symbol < 67 || symbol == 95 ? 0 : (symbol - 67) / 2 + 1;
}

static bool read_table(struct ref_bits *b, const struct ref_residual_model *model, struct ref_table *table,
                       unsigned symbols)
{
    if (model->rans) return ref_read_frequencies(b, &table->frequencies, symbols);
    const struct ref_code *code = &table->code;
    if (!ref_read_code(b, &table->code, symbols)) return false;
    for (unsigned n = 1, i = 0; n <= REF_MAX_LENGTH; n++)
        for (unsigned end = i + code->count[n]; i < end; i++)
            if ((code->used > 1 ? n : 0) + raw_bits(code->symbol[i]) > model->refill)
                return ref_fail("a symbol has more bits than are refilled");
    return true;
}

bool ref_read_residual_model(struct ref_bits *b, struct ref_residual_model *model, bool rans)
{
    model->rans = rans;
    model->lanes = ref_u(b, 5) + 1;
    if (!rans) model->refill = ref_u(b, 6);
    if (b->bad || model->refill > 32) return ref_fail("the lanes are corrupt");
    if (!read_table(b, model, &model->run, 96)) return false;
    model->has_interruption = ref_u(b, 1);
    if (model->has_interruption && !read_table(b, model, &model->interruption, 64)) return false;
    if (!ref_u(b, 1)) return true;
    if (!read_cuts(b, model->activity_cut, &model->activity_cuts, 9, 59)) return false;
    if (!read_cuts(b, model->intensity_cut, &model->intensity_cuts, 24, 4095)) return false;
    unsigned cells = (model->activity_cuts + 1) * (model->intensity_cuts + 1);
    if (!ref_read_cells(b, model->cell_table, cells, REF_MAX_TABLES, &model->tables)) return false;
    for (unsigned i = 0; i < model->tables; i++)
        if (!read_table(b, model, &model->residual[i], 64)) return false;
    return true;
}

/* ---- 7.9 Predictor model and labels ---- */

static bool read_weights(struct ref_bits *b, const struct ref_predictor_model *model, int32_t *weight)
{
    unsigned k = ref_u(b, 4), taps = model->neighbours + 5 * model->references;
    int64_t magnitudes = 0;
    for (unsigned first = 0; first < taps; first += first == 0 ? model->neighbours : 5) {
        unsigned count = first == 0 ? model->neighbours : 5;
        int64_t rest = first == 0 ? 1024 : 0;
        for (unsigned i = 1; i < count; i++) {
            uint64_t high = ref_ue(b), folded = (high << k) + ref_u(b, k);
            if (b->bad || folded > 16383) return ref_fail("a weight is out of range");
            weight[first + i] = ref_unfold((uint32_t)folded);
            rest -= weight[first + i];
        }
        if (rest < -32767 || rest > 32767) return ref_fail("a weight is out of range");
        weight[first] = (int32_t)rest;
    }
    for (unsigned i = 0; i < taps; i++) magnitudes += weight[i] < 0 ? -weight[i] : weight[i];
    return magnitudes <= 65535 || ref_fail("the weights of a predictor are too large");
}

bool ref_read_predictor_model(struct ref_bits *b, struct ref_predictor_model *model, unsigned earlier)
{
    static const unsigned neighbours[] = {0, 10, 18, 30};
    model->neighbours = neighbours[ref_u(b, 2)];
    if (model->neighbours == 0) return !b->bad || ref_fail("a frame model is too short");
    model->references = ref_u(b, 2);
    model->anchored = model->references == 3;
    if (model->anchored) model->references = ref_u(b, 2);
    if (model->references > 2 || model->references > earlier) return ref_fail("a predictor refers to no plane");
    uint64_t classes = (uint64_t)ref_ue(b) + 1;
    if (b->bad || classes > 24) return ref_fail("there are too many predictors");
    model->classes = (unsigned)classes;
    for (unsigned i = 0; i < model->classes; i++)
        if (!read_weights(b, model, model->weight[i])) return false;
    unsigned tables;
    if (!ref_read_cells(b, model->cell_table, model->classes + 2, REF_MAX_TABLES, &tables)) return false;
    for (unsigned i = 0; i < tables; i++)
        if (!ref_read_code(b, &model->label[i], model->classes + 1)) return false;
    return true;
}

/* Reads the labels of a tile's blocks from the start of a piece. */
static bool read_labels(const struct ref_predictor_model *model, size_t across, size_t down, struct ref_bytes *piece,
                        uint8_t *label)
{
    struct ref_bits b = ref_string(piece->data, piece->size);
    for (size_t i = 0; i < across * down; i++) {
        unsigned cell = i % across == 0 ? 0 : 1u + label[i - 1];
        label[i] = (uint8_t)ref_symbol(&b, &model->label[model->cell_table[cell]]);
        if (b.bad) return ref_fail("a piece is too short");
    }
    while (b.at % 16 != 0)
        if (ref_u(&b, 1) || b.bad) return ref_fail("labels do not end in zeros");
    piece->at = (size_t)(b.at / 8);
    return true;
}

/* ---- 7.1 Prediction ---- */

struct tile {
    const struct ref_plane_model *plane;
    int32_t width, height;
    uint16_t *x; /* indices */
    uint16_t *m; /* magnitudes, 7.3 */
    uint8_t *label;
};

/* x: the indices of the tile, or of an earlier plane. */
static int32_t index_at(const struct tile *t, const uint16_t *x, int32_t r, int32_t c)
{
    if (c < 0) return r > 0 ? index_at(t, x, r - 1, 0) : x[0];
    if (c >= t->width) c = t->width - 1;
    return x[(size_t)r * (size_t)t->width + (size_t)c];
}

static int32_t median(int32_t a, int32_t b, int32_t c)
{
    int32_t low = a < b ? a : b, high = a < b ? b : a;
    return c < low ? low : c > high ? high : c;
}

/* The table of 7.1 by number: {rows up, columns to the right}. */
static const int8_t neighbour[30][2] = {{0, -1}, {1, 0},  {1, -1}, {1, 1}, {0, -2}, {2, 0},  {2, 1},  {1, -2},
                                        {2, -1}, {1, 2},  {0, -3}, {3, 0}, {2, 2},  {2, -2}, {1, 3},  {1, -3},
                                        {3, 1},  {3, -1}, {0, -4}, {4, 0}, {0, -5}, {2, 3},  {2, -3}, {3, 2},
                                        {3, -2}, {1, 4},  {1, -4}, {4, 1}, {4, -1}, {0, -6}};

static int64_t linear_sum(const struct tile *t, const int32_t *weight, int32_t r, int32_t c)
{
    const struct ref_predictor_model *model = t->plane->predictor;
    int64_t sum = 0;
    for (unsigned k = 0; k < model->neighbours; k++) {
        int32_t up = neighbour[k][0], right = neighbour[k][1];
        sum += (int64_t)*weight++ * index_at(t, t->x, r > up ? r - up : 0, c + right);
    }
    for (unsigned i = 0; i < model->references; i++) {
        const uint16_t *y = t->plane->earlier[i]->x;
        int32_t below = r + 1 < t->height ? r + 1 : t->height - 1;
        sum += (int64_t)*weight++ * index_at(t, y, r, c - 1);
        sum += (int64_t)*weight++ * index_at(t, y, r, c);
        sum += (int64_t)*weight++ * index_at(t, y, r - 1, c);
        sum += (int64_t)*weight++ * index_at(t, y, r, c + 1);
        sum += (int64_t)*weight++ * index_at(t, y, below, c);
    }
    return sum;
}

/* fraction: 7.10 */
static int32_t predict(const struct tile *t, int32_t r, int32_t c, int32_t *fraction)
{
    const struct ref_predictor_model *model = t->plane->predictor;
    *fraction = 0;
    if (r == 0) return c == 0 ? 0 : index_at(t, t->x, 0, c - 1);
    unsigned label = model->classes; /* without classes, too, this is the median edge predictor */
    if (model->neighbours > 0) label = t->label[(size_t)(r / 16) * (((size_t)t->width + 15) / 16) + (size_t)(c / 16)];
    if (label < model->classes) {
        int64_t sum = linear_sum(t, model->weight[label], r, c) + 512, top = (int64_t)t->plane->range - 1;
        int64_t p = sum >> 10;
        if (p < 0) return 0;
        if (p > top) return (int32_t)top;
        *fraction = (int32_t)((sum >> 4) & 63) - 32;
        return (int32_t)p;
    }
    int32_t w = index_at(t, t->x, r, c - 1), n = index_at(t, t->x, r - 1, c), nw = index_at(t, t->x, r - 1, c - 1);
    return median(w, n, w + n - nw);
}

/* What a sample's residual is the difference to: its prediction, or its anchor (7.10). */
struct base {
    int32_t value, intensity;
    bool turned; /* x = value - e */
};

static struct base find_anchor(const struct tile *t, int32_t r, int32_t c, int32_t p, int32_t f)
{
    int32_t w = r > 0 || c > 0 ? index_at(t, t->x, r, c - 1) : 0, n = 0, nw = 0, ne = 0, best = 0, d = 0;
    if (r > 0) {
        n = index_at(t, t->x, r - 1, c);
        nw = index_at(t, t->x, r - 1, c - 1);
        ne = index_at(t, t->x, r - 1, c + 1);
    }
    const int32_t near[] = {w, n, nw, ne, median(w, n, w + n - nw)};
    struct base base;
    for (int i = 0; i < 5; i++) {
        int32_t apart = p - near[i];
        int32_t distance = 64 * (apart < -2 ? -2 : apart > 2 ? 2 : apart) + f, magnitude = abs(distance);
        if (i > 0 && magnitude >= best) continue;
        best = magnitude;
        d = distance;
        base.value = near[i];
    }
    if (best >= 96) {
        base.value = p;
        d = f;
    }
    base.turned = d < 0;
    base.intensity = 4 * ((best >= 5) + (best >= 16) + (best >= 32) + (best >= 64) + (best >= 96));
    base.intensity += (w == n) + 2 * (n == ne);
    return base;
}

static struct base find_base(const struct tile *t, int32_t r, int32_t c, int32_t p, int32_t fraction)
{
    if (t->plane->predictor->anchored) return find_anchor(t, r, c, p, fraction);
    unsigned bits = ref_bit_count(t->plane->range - 1);
    return (struct base){.value = p, .intensity = p >> (bits > 12 ? bits - 12 : 0)};
}

/* 7.2 and 7.10: sets the sample from its base and residual. */
static bool set_sample(struct tile *t, int32_t r, int32_t c, int32_t prediction, struct base base, int32_t e)
{
    int32_t range = (int32_t)t->plane->range;
    int32_t x = base.turned ? base.value - e : base.value + e;
    if (x < 0)
        x += range;
    else if (x >= range)
        x -= range;
    if (x < 0 || x >= range) return ref_fail("a sample is out of range");
    int32_t m = abs(t->plane->predictor->anchored ? x - prediction : e);
    size_t place = (size_t)r * (size_t)t->width + (size_t)c;
    t->x[place] = (uint16_t)x;
    t->m[place] = (uint16_t)(m < 4095 ? m : 4095);
    return true;
}

/* ---- 7.3 Contexts ---- */

static uint32_t magnitude_at(const struct tile *t, int32_t r, int32_t c)
{
    if (c < 0) return r > 0 ? magnitude_at(t, r - 1, 0) : 0;
    if (c >= t->width) c = t->width - 1;
    return t->m[(size_t)r * (size_t)t->width + (size_t)c];
}

static uint32_t activity(const struct tile *t, int32_t r, int32_t c)
{
    if (r == 0) return 6 * magnitude_at(t, r, c - 1) + 2 * magnitude_at(t, r, c - 2);
    return 2 * magnitude_at(t, r, c - 1) + 2 * magnitude_at(t, r - 1, c) + magnitude_at(t, r - 1, c - 1) +
           magnitude_at(t, r - 1, c + 1) + magnitude_at(t, r, c - 2) + magnitude_at(t, r == 1 ? 0 : r - 2, c);
}

static unsigned group(uint32_t level, const uint32_t *cut, unsigned cuts)
{
    unsigned n = 0;
    for (unsigned i = 0; i < cuts; i++)
        if (cut[i] <= level) n++;
    return n;
}

static const struct ref_table *cell_table(const struct tile *t, uint32_t a, int32_t intensity)
{
    const struct ref_residual_model *model = t->plane->residual;
    if (model->tables == 0) return NULL;
    unsigned cell = group(ref_token(a), model->activity_cut, model->activity_cuts) * (model->intensity_cuts + 1) +
                    group((uint32_t)intensity, model->intensity_cut, model->intensity_cuts);
    return &model->residual[model->cell_table[cell]];
}

/* ---- 7.7 Lanes ---- */

struct lane {
    uint8_t *memory; /* Huffman: the memory of its string of bits */
    struct ref_bits bits;
    uint32_t state; /* rANS */
    int32_t run;    /* samples of a run still to come */
    bool interrupts;
};

static bool refill(struct lane *lane, unsigned least, struct ref_bytes *piece)
{
    while (lane->bits.size - lane->bits.at < least) {
        uint64_t word = ref_number(piece, 2);
        if (piece->bad) return ref_fail("a piece is too short");
        lane->memory[lane->bits.size / 8] = (uint8_t)(word >> 8);
        lane->memory[lane->bits.size / 8 + 1] = (uint8_t)word;
        lane->bits.size += 16;
    }
    return true;
}

/* Reads a symbol and its raw bits. */
static bool read_symbol(const struct ref_residual_model *model, const struct ref_table *table, struct lane *lane,
                        struct ref_bytes *piece, unsigned *symbol, uint32_t *raw)
{
    if (model->rans) {
        *symbol = ref_lane_symbol(&lane->state, &table->frequencies, piece);
        *raw = ref_lane_raw(&lane->state, raw_bits(*symbol), piece);
        return !piece->bad || ref_fail("a piece is too short");
    }
    if (!refill(lane, model->refill, piece)) return false;
    *symbol = ref_symbol(&lane->bits, &table->code);
    *raw = ref_u(&lane->bits, raw_bits(*symbol));
    return !lane->bits.bad || ref_fail("a symbol is corrupt");
}

/* 7.4: reads the residual of a sample that is not within a run. */
static bool read_residual(struct tile *t, struct lane *lane, struct ref_bytes *piece, int32_t c, uint32_t a,
                          int32_t intensity, int32_t *e)
{
    const struct ref_residual_model *model = t->plane->residual;
    const struct ref_table *table;
    if (a == 0 && !lane->interrupts)
        table = &model->run;
    else if (a == 0)
        table = model->has_interruption ? &model->interruption : NULL;
    else
        table = cell_table(t, a, intensity);
    if (!table) return ref_fail("a table is missing");
    lane->interrupts = false;

    unsigned symbol;
    uint32_t raw;
    if (!read_symbol(model, table, lane, piece, &symbol, &raw)) return false;
    if (symbol < 64) {
        *e = ref_unfold(ref_token_value(symbol, raw));
        return true;
    }
    uint32_t n = symbol - 63;
    if (symbol == 95) {
        n = 65535;
    } else if (symbol >= 67) {
        unsigned k = (symbol - 67) / 2 + 2;
        n = (uint32_t)1 << k | (uint32_t)((symbol - 67) % 2) << (k - 1) | raw;
    }
    if (n > (uint32_t)(t->width - c)) n = (uint32_t)(t->width - c); /* a run ends with its row */
    lane->run = (int32_t)n - 1;
    lane->interrupts = true; /* the sample after the run */
    return true;
}

static bool begin_lanes(const struct tile *t, struct lane *lanes, struct ref_bytes *piece)
{
    const struct ref_residual_model *model = t->plane->residual;
    for (unsigned l = 0; l < model->lanes; l++) {
        lanes[l].memory = ref_alloc(model->rans ? 0 : piece->size + 2, 1);
        lanes[l].bits = ref_string(lanes[l].memory, 0);
        if (!model->rans || l >= (unsigned)t->height) continue;
        lanes[l].state = (uint32_t)ref_number(piece, 4);
        if (piece->bad || lanes[l].state < 65536) return ref_fail("the first states of lanes are corrupt");
    }
    return true;
}

static bool end_lanes(const struct tile *t, struct lane *lanes, const struct ref_bytes *piece)
{
    const struct ref_residual_model *model = t->plane->residual;
    if (ref_left(piece) != 0) return ref_fail("a piece is too long");
    for (unsigned l = 0; l < model->lanes; l++) {
        if (model->rans && l < (unsigned)t->height && lanes[l].state != 65536)
            return ref_fail("a lane's last state is corrupt");
        while (lanes[l].bits.at < lanes[l].bits.size)
            if (ref_u(&lanes[l].bits, 1)) return ref_fail("a lane does not end in zeros");
    }
    return true;
}

static bool read_lanes(struct tile *t, const uint8_t *data, size_t size)
{
    const struct ref_residual_model *model = t->plane->residual;
    struct ref_bytes piece = {.data = data, .size = size};
    struct lane *lanes = ref_alloc(model->lanes, sizeof *lanes);
    if (t->plane->predictor->neighbours > 0) {
        size_t across = ((size_t)t->width + 15) / 16, down = ((size_t)t->height + 15) / 16;
        t->label = ref_alloc(across * down, 1);
        if (!read_labels(t->plane->predictor, across, down, &piece, t->label)) return false;
    }
    if (!begin_lanes(t, lanes, &piece)) return false;
    int64_t count = model->lanes, whole = ((int64_t)t->width + 3) / 4 * 4;
    int64_t period = whole > 8 * count ? whole : 8 * count;
    int64_t ticks = 8 * count + period * ((t->height + count - 1) / count);
    for (int64_t tick = 0; tick < ticks; tick++)
        for (int64_t l = 0; l < count; l++) {
            int64_t since = tick - 8 * l;
            if (since < 0) continue;
            int64_t column = since % period, row = l + since / period * count;
            if (column >= t->width || row >= t->height) continue;
            int32_t c = (int32_t)column, r = (int32_t)row;
            struct lane *lane = &lanes[l];
            if (c == 0) {
                lane->run = 0;
                lane->interrupts = false;
            }
            int32_t fraction, prediction = predict(t, r, c, &fraction), e = 0;
            struct base base = find_base(t, r, c, prediction, fraction);
            if (lane->run > 0)
                lane->run--;
            else if (!read_residual(t, lane, &piece, c, activity(t, r, c), base.intensity, &e))
                return false;
            if (!set_sample(t, r, c, prediction, base, e)) return false;
        }
    return end_lanes(t, lanes, &piece);
}

/* ---- 7.8 Path P with CAVLC ---- */

static bool read_blocks(struct tile *t, const uint8_t *piece, size_t size)
{
    int32_t(*levels)[16];
    if (!ref_read_slices(t->plane, (uint32_t)t->width, (uint32_t)t->height, piece, size, &levels)) return false;
    size_t across = ((size_t)t->width + 3) / 4;
    unsigned coded_at[16]; /* the place in the order of coding, by raster place */
    for (unsigned i = 0; i < 16; i++) coded_at[ref_zigzag[i]] = i;
    for (int32_t r = 0; r < t->height; r++)
        for (int32_t c = 0; c < t->width; c++) {
            size_t block = (size_t)(r / 4) * across + (size_t)(c / 4);
            int32_t e = levels[block][coded_at[r % 4 * 4 + c % 4]], fraction;
            int32_t prediction = predict(t, r, c, &fraction);
            if (!set_sample(t, r, c, prediction, (struct base){.value = prediction}, e)) return false;
        }
    return true;
}

bool ref_predictive_tile(const struct ref_plane_model *plane, uint32_t width, uint32_t height, const uint8_t *piece,
                         size_t size, uint16_t *x)
{
    struct tile t = {.plane = plane, .width = (int32_t)width, .height = (int32_t)height, .x = x};
    t.m = ref_alloc((size_t)width * height, sizeof *t.m);
    return plane->coder == 1 ? read_blocks(&t, piece, size) : read_lanes(&t, piece, size);
}
