/* FORMAT.md 7: prediction, contexts, lanes. */
#include "ref.h"

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

bool ref_read_residual_model(struct ref_bits *b, struct ref_residual_model *model)
{
    model->lanes = ref_u(b, 5) + 1;
    model->delay = ref_u(b, 4);
    model->refill = ref_u(b, 6);
    if (b->bad || model->delay < 2 || model->refill > 32) return ref_fail("the lanes are corrupt");
    if (!ref_read_code(b, &model->run, 95)) return false;
    model->has_interruption = ref_u(b, 1);
    if (model->has_interruption && !ref_read_code(b, &model->interruption, 64)) return false;
    if (!ref_u(b, 1)) return true;
    if (!read_cuts(b, model->activity_cut, &model->activity_cuts, 15, 59)) return false;
    if (!read_cuts(b, model->intensity_cut, &model->intensity_cuts, 11, 4095)) return false;
    unsigned cells = (model->activity_cuts + 1) * (model->intensity_cuts + 1);
    if (!ref_read_cells(b, model->cell_table, cells, REF_MAX_TABLES, &model->tables)) return false;
    for (unsigned i = 0; i < model->tables; i++)
        if (!ref_read_code(b, &model->residual[i], 64)) return false;
    return true;
}

/* ---- 7.1 Prediction ---- */

struct tile {
    const struct ref_plane_model *plane;
    int32_t width, height;
    uint16_t *x; /* indices */
    uint16_t *m; /* magnitudes, 7.3 */
};

static int32_t index_at(const struct tile *t, int32_t r, int32_t c)
{
    if (r < 0) return 0;
    if (c < 0) return index_at(t, r - 1, 0);
    return t->x[(size_t)r * (size_t)t->width + (size_t)c];
}

static int32_t median(int32_t a, int32_t b, int32_t c)
{
    int32_t low = a < b ? a : b, high = a < b ? b : a;
    return c < low ? low : c > high ? high : c;
}

static int32_t predict(const struct tile *t, int32_t r, int32_t c)
{
    int32_t w = index_at(t, r, c - 1), n = index_at(t, r - 1, c), nw = index_at(t, r - 1, c - 1);
    return median(w, n, w + n - nw);
}

/* 7.2: the sample, from its prediction and residual. */
static bool set_sample(struct tile *t, int32_t r, int32_t c, int32_t prediction, int32_t e)
{
    int32_t range = (int32_t)t->plane->range;
    if (e < -(range >> 1) || e > (range - 1) >> 1) return ref_fail("a residual is out of range");
    int32_t x = prediction + e;
    if (x < 0)
        x += range;
    else if (x >= range)
        x -= range;
    int32_t m = e < 0 ? -e : e;
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

static const struct ref_code *cell_code(const struct tile *t, uint32_t a, int32_t prediction)
{
    const struct ref_residual_model *model = t->plane->residual;
    if (model->tables == 0) return NULL;
    unsigned bits = ref_bit_count(t->plane->range - 1);
    uint32_t intensity = (uint32_t)prediction >> (bits > 12 ? bits - 12 : 0);
    unsigned cell = group(ref_token(a), model->activity_cut, model->activity_cuts) * (model->intensity_cuts + 1) +
                    group(intensity, model->intensity_cut, model->intensity_cuts);
    return &model->residual[model->cell_table[cell]];
}

/* ---- 7.7 Lanes ---- */

struct lane {
    uint8_t *memory; /* of its string of bits */
    struct ref_bits bits;
    int32_t run; /* samples of a run still to come */
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

/* 7.4: the symbol of a sample, and what follows it. */
static bool read_residual(struct tile *t, struct lane *lane, int32_t c, uint32_t a, int32_t prediction, int32_t *e)
{
    const struct ref_residual_model *model = t->plane->residual;
    const struct ref_code *code;
    bool may_run = a == 0 && !lane->interrupts;
    if (may_run)
        code = &model->run;
    else if (a == 0)
        code = model->has_interruption ? &model->interruption : NULL;
    else
        code = cell_code(t, a, prediction);
    if (!code) return ref_fail("a table is missing");
    lane->interrupts = false;

    uint64_t before = lane->bits.at;
    unsigned symbol = ref_symbol(&lane->bits, code);
    *e = 0;
    if (symbol < 64) {
        *e = ref_unfold(ref_token_value(&lane->bits, symbol));
    } else {
        uint32_t n = symbol - 63;
        if (symbol >= 67) {
            unsigned k = (symbol - 67) / 2 + 2;
            n = (uint32_t)1 << k | (uint32_t)((symbol - 67) % 2) << (k - 1);
            n |= ref_u(&lane->bits, k - 1);
        }
        if (n > (uint32_t)(t->width - c)) return ref_fail("a run is longer than its row");
        lane->run = (int32_t)n - 1;
        lane->interrupts = true; /* behind the run */
    }
    if (lane->bits.bad || lane->bits.at - before > model->refill) return ref_fail("a symbol has too many bits");
    return true;
}

static bool read_lanes(struct tile *t, const uint8_t *data, size_t size)
{
    const struct ref_residual_model *model = t->plane->residual;
    struct ref_bytes piece = {.data = data, .size = size};
    struct lane *lanes = ref_alloc(model->lanes, sizeof *lanes);
    for (unsigned l = 0; l < model->lanes; l++) {
        lanes[l].memory = ref_alloc(size + 2, 1);
        lanes[l].bits = ref_string(lanes[l].memory, 0);
    }
    int64_t count = model->lanes, delay = model->delay;
    int64_t period = t->width > count * delay ? t->width : count * delay;
    int64_t ticks = delay * count + period * ((t->height + count - 1) / count);
    for (int64_t tick = 0; tick < ticks; tick++)
        for (int64_t l = 0; l < count; l++) {
            int64_t since = tick - delay * l;
            if (since < 0) continue;
            int64_t column = since % period, row = l + since / period * count;
            if (column >= t->width || row >= t->height) continue;
            int32_t c = (int32_t)column, r = (int32_t)row;
            struct lane *lane = &lanes[l];
            if (c == 0) {
                lane->run = 0;
                lane->interrupts = false;
            }
            int32_t prediction = predict(t, r, c), e = 0;
            if (lane->run > 0) {
                lane->run--;
            } else {
                if (!refill(lane, model->refill, &piece)) return false;
                if (!read_residual(t, lane, c, activity(t, r, c), prediction, &e)) return false;
            }
            if (!set_sample(t, r, c, prediction, e)) return false;
        }
    if (ref_left(&piece) != 0) return ref_fail("a piece is too long");
    for (unsigned l = 0; l < model->lanes; l++)
        while (lanes[l].bits.at < lanes[l].bits.size)
            if (ref_u(&lanes[l].bits, 1)) return ref_fail("a lane does not end in zeros");
    return true;
}

/* ---- 7.8 Path P with CAVLC ---- */

static bool read_blocks(struct tile *t, const uint8_t *piece, size_t size)
{
    int32_t(*levels)[16];
    if (!ref_read_slices(t->plane, (uint32_t)t->width, (uint32_t)t->height, piece, size, &levels)) return false;
    size_t across = ((size_t)t->width + 3) / 4;
    unsigned coded_at[16]; /* where a raster place stands in the order of coding */
    for (unsigned i = 0; i < 16; i++) coded_at[ref_zigzag[i]] = i;
    for (int32_t r = 0; r < t->height; r++)
        for (int32_t c = 0; c < t->width; c++) {
            size_t block = (size_t)(r / 4) * across + (size_t)(c / 4);
            int32_t e = levels[block][coded_at[r % 4 * 4 + c % 4]];
            if (!set_sample(t, r, c, predict(t, r, c), e)) return false;
        }
    return true;
}

bool ref_predictive_tile(const struct ref_plane_model *plane, uint32_t width, uint32_t height, const uint8_t *piece,
                         size_t size, uint16_t *x)
{
    struct tile t = {.plane = plane, .width = (int32_t)width, .height = (int32_t)height, .x = x};
    t.m = ref_alloc((size_t)width * height, sizeof *t.m);
    return plane->coder == 0 ? read_lanes(&t, piece, size) : read_blocks(&t, piece, size);
}
