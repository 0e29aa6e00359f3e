/* JPEG.md 2: writes a JPEG stream from its head and its coefficients. */
#include "ref_dct.h"

#include <stdlib.h>
#include <string.h>

enum { LONGEST_RUN = 32767, MOST_PENDING = 937 };

struct writer {
    struct ref_stream *out;
    struct ref_dct_choices *choices;
    unsigned byte, bits; /* of the byte that is not yet full */
    bool bad;            /* a symbol has no code, or a number too many bits */
    uint64_t block;      /* the number of the block that is written */
    bool has_break;
    uint64_t next_break;
    /* The run of blocks that end with EOB. */
    unsigned run;
    uint8_t *pending; /* its correction bits */
    size_t pending_count;
};

/* ---- Bits and codes ---- */

static void put_bit(struct writer *w, unsigned bit)
{
    w->byte = w->byte << 1 | bit;
    if (++w->bits < 8) return;
    ref_put_byte(w->out, w->byte);
    if (w->byte == 0xff) ref_put_byte(w->out, 0);
    w->byte = w->bits = 0;
}

static void put_bits(struct writer *w, uint32_t value, unsigned n)
{
    while (n-- > 0) put_bit(w, value >> n & 1);
}

static void put_padding(struct writer *w)
{
    struct ref_dct_choices *choices = w->choices;
    /* ref_u() gives 0 after the last bit. */
    while (w->bits > 0) put_bit(w, choices->padding == 2 ? ref_u(&choices->padding_bits, 1) : choices->padding);
}

static void put_code(struct writer *w, const struct ref_dct_code *code, unsigned symbol)
{
    if (symbol > 255 || code->length[symbol] == 0)
        w->bad = true;
    else
        put_bits(w, code->word[symbol], code->length[symbol]);
}

/* T.81 F.1.2.1.1: the extra bits of a number that has n bits. */
static void put_extra(struct writer *w, int32_t value, unsigned n)
{
    put_bits(w, (uint32_t)(value < 0 ? value - 1 : value), n);
}

static void put_difference(struct writer *w, const struct ref_dct_code *code, int32_t difference)
{
    unsigned n = ref_bit_count((uint64_t)labs(difference));
    if (n > 15) w->bad = true;
    put_code(w, code, n);
    put_extra(w, difference, n);
}

/* A coefficient that is not 0, after zeros of a number below 16. */
static void put_coefficient(struct writer *w, const struct ref_dct_code *code, unsigned zeros, int32_t value)
{
    unsigned n = ref_bit_count((uint64_t)labs(value));
    if (n > 15) w->bad = true;
    put_code(w, code, zeros << 4 | n);
    put_extra(w, value, n);
}

/* ---- Runs of EOB ---- */

static void end_run(struct writer *w, const struct ref_dct_code *code)
{
    if (w->run == 0) return;
    unsigned n = ref_log2(w->run);
    put_code(w, code, n << 4);
    put_bits(w, w->run - (1u << n), n);
    for (size_t i = 0; i < w->pending_count; i++) put_bit(w, w->pending[i]);
    w->run = 0;
    w->pending_count = 0;
}

static void next_break(struct writer *w)
{
    struct ref_bytes *b = &w->choices->breaks;
    w->next_break += ref_varint(b);
    w->has_break = !b->bad;
}

/* bits: the correction bits of the block after its last code. */
static void join_run(struct writer *w, const struct ref_dct_code *code, const uint8_t *bits, size_t count)
{
    w->run++;
    if (count > 0) memcpy(w->pending + w->pending_count, bits, count);
    w->pending_count += count;
    while (w->has_break && w->next_break < w->block) next_break(w);
    bool ends = w->run == LONGEST_RUN || w->pending_count > MOST_PENDING;
    if (w->has_break && w->next_break == w->block) ends = !ends;
    if (w->run == LONGEST_RUN) ends = true;
    if (ends) end_run(w, code);
}

/* ---- Blocks ---- */

/* What a scan has of a coefficient. */
static int32_t point(int32_t x, unsigned low)
{
    return x < 0 ? -(-x >> low) : x >> low;
}

static void put_sequential(struct writer *w, const struct ref_dct_code *ac, const int16_t *x)
{
    unsigned zeros = 0;
    for (unsigned k = 1; k < 64; k++) {
        if (x[k] == 0) {
            zeros++;
            continue;
        }
        for (; zeros > 15; zeros -= 16) put_code(w, ac, 0xf0);
        put_coefficient(w, ac, zeros, x[k]);
        zeros = 0;
    }
    if (zeros > 0) put_code(w, ac, 0);
}

static void put_first_ac(struct writer *w, const struct ref_dct_scan *scan, const int16_t *x)
{
    const struct ref_dct_code *ac = &scan->ac[0];
    unsigned zeros = 0;
    for (unsigned k = scan->first; k <= scan->last; k++) {
        int32_t value = point(x[k], scan->low);
        if (value == 0) {
            zeros++;
            continue;
        }
        end_run(w, ac);
        for (; zeros > 15; zeros -= 16) put_code(w, ac, 0xf0);
        put_coefficient(w, ac, zeros, value);
        zeros = 0;
    }
    if (zeros > 0) join_run(w, ac, NULL, 0);
}

static void put_corrections(struct writer *w, const uint8_t *bits, size_t *count)
{
    for (size_t i = 0; i < *count; i++) put_bit(w, bits[i]);
    *count = 0;
}

static void put_later_ac(struct writer *w, const struct ref_dct_scan *scan, const int16_t *x)
{
    const struct ref_dct_code *ac = &scan->ac[0];
    uint8_t bits[64];
    size_t count = 0;
    unsigned zeros = 0, behind_new = scan->first; /* the place after the last new coefficient */
    for (unsigned k = scan->first; k <= scan->last; k++)
        if (abs(point(x[k], scan->low)) == 1) behind_new = k + 1;
    for (unsigned k = scan->first; k <= scan->last; k++) {
        int32_t value = point(x[k], scan->low);
        if (abs(value) > 1) {
            bits[count++] = (uint8_t)(abs(value) & 1);
        } else if (value != 0) {
            end_run(w, ac);
            put_code(w, ac, zeros << 4 | 1);
            put_bit(w, value > 0);
            put_corrections(w, bits, &count);
            zeros = 0;
        } else if (++zeros == 16 && k < behind_new) {
            end_run(w, ac);
            put_code(w, ac, 0xf0);
            put_corrections(w, bits, &count);
            zeros = 0;
        }
    }
    if (behind_new <= scan->last) join_run(w, ac, bits, count);
}

/* i: the component's place in the scan. before: its DC before. */
static void put_block(struct writer *w, const struct ref_dct *dct, const struct ref_dct_scan *scan, unsigned i,
                      const int16_t *x, int32_t *before)
{
    w->block++;
    if (scan->first > 0) {
        if (scan->high == 0)
            put_first_ac(w, scan, x);
        else
            put_later_ac(w, scan, x);
        return;
    }
    if (scan->high > 0) {
        put_bit(w, (uint16_t)x[0] >> scan->low & 1);
        return;
    }
    int32_t dc = x[0] < 0 ? ~(~x[0] >> scan->low) : x[0] >> scan->low; /* T.81 G.1.2.1: an arithmetic shift */
    put_difference(w, &scan->dc[i], dc - *before);
    *before = dc;
    if (!dct->progressive) put_sequential(w, &scan->ac[i], x);
}

/* ---- Scans ---- */

static void put_mcu(struct writer *w, const struct ref_dct *dct, const struct ref_dct_scan *scan, uint32_t mcu,
                    int32_t before[4])
{
    if (scan->count == 1) {
        const struct ref_dct_component *c = &dct->component[scan->component[0]];
        size_t at = (size_t)(mcu / c->own_columns) * c->columns + mcu % c->own_columns;
        put_block(w, dct, scan, 0, c->blocks[at].x, &before[0]);
        return;
    }
    for (unsigned i = 0; i < scan->count; i++) {
        const struct ref_dct_component *c = &dct->component[scan->component[i]];
        size_t first = (size_t)(mcu / dct->columns) * c->v * c->columns + (size_t)(mcu % dct->columns) * c->h;
        for (unsigned y = 0; y < c->v; y++)
            for (unsigned x = 0; x < c->h; x++)
                put_block(w, dct, scan, i, c->blocks[first + (size_t)y * c->columns + x].x, &before[i]);
    }
}

/* is_cut: the last scan of a cut stream. */
static bool put_scan(struct writer *w, const struct ref_dct *dct, const struct ref_dct_scan *scan, bool is_cut)
{
    const struct ref_dct_component *c = &dct->component[scan->component[0]];
    uint32_t mcus = scan->count == 1 ? c->own_columns * c->own_rows : dct->columns * dct->rows;
    int32_t before[4] = {0};
    unsigned restarts = 0;
    if (is_cut && w->choices->whole >= mcus) return ref_fail("a cut scan has all of its MCUs");
    if (is_cut) mcus = (uint32_t)w->choices->whole;
    for (uint32_t mcu = 0; mcu < mcus && !w->bad; mcu++) {
        if (mcu > 0 && scan->interval > 0 && mcu % scan->interval == 0) {
            end_run(w, &scan->ac[0]);
            put_padding(w);
            ref_put_byte(w->out, 0xff);
            ref_put_byte(w->out, 0xd0 + restarts++ % 8);
            memset(before, 0, sizeof before);
        }
        put_mcu(w, dct, scan, mcu, before);
    }
    end_run(w, &scan->ac[0]);
    if (!is_cut) put_padding(w);
    return !w->bad || ref_fail("a JPEG stream cannot be coded by its own tables");
}

bool ref_dct_put_stream(const struct ref_dct *dct, struct ref_dct_choices *choices, struct ref_stream *out)
{
    struct writer w = {.out = out, .choices = choices};
    w.pending = ref_alloc(64, LONGEST_RUN);
    next_break(&w);
    size_t at = 0;
    for (const struct ref_dct_scan *scan = dct->scans; scan; scan = scan->next) {
        ref_put(out, dct->head + at, scan->at - at);
        at = scan->at;
        if (!put_scan(&w, dct, scan, choices->is_cut && !scan->next)) return false;
    }
    if (choices->is_cut && at < dct->head_size) return ref_fail("the head of a cut stream goes on after its last scan");
    ref_put(out, dct->head + at, dct->head_size - at);
    return true;
}
