/* RLE.md: streams of RLE. */
#include "ref_streams.h"

#include <string.h>

/* The head of a residue. */
struct rule {
    bool last_pairs, crosses, no_rest, literal_alone, takes_one, pads_stream, special;
    unsigned first_run, inner_run, unit;
    size_t longest_literal, longest_run;
};

/* A segment's plane, and how far it is coded. */
struct plane {
    const uint8_t *data;
    size_t size, row;
    bool after_longest; /* the packet before is a run of the longest length */
};

static bool read_rule(struct ref_bytes *b, struct rule *r)
{
    unsigned flags = (unsigned)ref_number(b, 1), runs = (unsigned)ref_number(b, 1);
    r->unit = (unsigned)ref_number(b, 1);
    r->longest_literal = (size_t)ref_number(b, 1);
    r->longest_run = (size_t)ref_number(b, 1);
    r->first_run = runs & 15;
    r->inner_run = runs >> 4;
    r->last_pairs = flags & 1;
    r->crosses = flags & 2;
    r->no_rest = flags & 4;
    r->literal_alone = flags & 8;
    r->takes_one = flags & 16;
    r->pads_stream = flags & 32;
    r->special = flags & 64;
    bool good = !b->bad && flags < 128 && r->first_run >= 2 && r->first_run <= 5 && r->inner_run >= 2 &&
                r->inner_run <= 5 && r->unit >= 1 && r->unit <= 128 && r->longest_literal >= r->unit &&
                r->longest_literal <= 128 && r->longest_run >= (r->unit > 2 ? r->unit : 2) && r->longest_run <= 128;
    return good || ref_fail("a rule of RLE is corrupt");
}

/* ---- RLE.md 3 The rule ---- */

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

static size_t run_at(const struct plane *p, size_t q, size_t end)
{
    size_t r = 1;
    while (q + r < end && p->data[q + r] == p->data[q]) r++;
    return r;
}

static size_t plan_literal(const struct rule *r, const struct plane *p, size_t at, size_t run, size_t end)
{
    size_t longest = least(end, at + r->longest_literal), seen = r->literal_alone ? longest : end;
    for (size_t q = at + run; q < longest;) {
        size_t next = run_at(p, q, seen);
        if (next >= r->inner_run || (r->last_pairs && next >= 2 && q + next == seen))
            return (r->takes_one ? least(q + 1, longest) : q) - at;
        q += next;
    }
    return longest - at;
}

static size_t plan_units(const struct rule *r, const struct plane *p, size_t at, size_t end)
{
    size_t length = r->unit;
    while (length + r->unit <= r->longest_literal && at + length < end) {
        size_t q = at + length;
        if (run_at(p, q, least(end, q + r->unit)) == r->unit) break;
        length += r->unit;
    }
    return least(length, end - at);
}

/* The first byte of the packet at this place. */
static unsigned plan(const struct rule *r, const struct plane *p, size_t at)
{
    size_t end = r->crosses ? p->size : least(p->size, (at / p->row + 1) * p->row);
    size_t run = run_at(p, at, least(end, at + 128)), most = least(run, r->longest_run);
    if (r->unit > 1) {
        if (run >= r->unit) return (unsigned)(257 - (most - most % r->unit));
        return (unsigned)(plan_units(r, p, at, end) - 1);
    }
    bool is_first = r->crosses ? at == 0 : at % p->row == 0;
    bool is_rest = !r->no_rest && p->after_longest && !is_first && p->data[at] == p->data[at - 1];
    if (run >= r->first_run || (run == 2 && is_rest) || (run == 2 && r->last_pairs && at + 2 == end))
        return (unsigned)(257 - most);
    if (is_rest) return 0;
    return (unsigned)(plan_literal(r, p, at, run, end) - 1);
}

/* ---- RLE.md 1 Planes and segments ---- */

static bool put_packet(struct ref_stream *s, const struct plane *p, size_t at, size_t covered, unsigned first,
                       size_t *length)
{
    *length = first < 128 ? first + 1 : first > 128 ? 257 - first : 0;
    if (*length > covered - at) return ref_fail("a packet of RLE goes beyond its plane");
    ref_put_byte(s, first);
    if (first < 128) {
        ref_put(s, p->data + at, *length);
    } else if (first > 128) {
        if (run_at(p, at, at + *length) != *length) return ref_fail("a run of RLE has different bytes");
        ref_put_byte(s, p->data[at]);
    }
    return true;
}

static bool put_packets(struct ref_stream *s, const struct rule *r, struct plane *p, size_t covered)
{
    struct ref_deviations deviations;
    if (!ref_first_deviation(s, &deviations)) return false;
    for (size_t at = 0; at < covered;) {
        unsigned first = plan(r, p, at);
        if (ref_deviates(&deviations)) {
            first = (unsigned)ref_number(&s->residue, 1);
            if (!ref_first_deviation(s, &deviations)) return false;
        }
        size_t length;
        if (!put_packet(s, p, at, covered, first, &length)) return false;
        p->after_longest = first > 128 && length == r->longest_run;
        at += length;
    }
    return deviations.left == 0 || ref_fail("deviations go on after the packets");
}

static bool put_segment(struct ref_stream *s, const struct rule *r, struct plane *p, bool is_last)
{
    unsigned flags = (unsigned)ref_number(&s->residue, 1);
    if (s->residue.bad || flags > 3) return ref_fail("a segment's flags are corrupt");
    uint64_t covered = flags & 2 ? ref_varint(&s->residue) : p->size;
    if (s->residue.bad || covered > p->size) return ref_fail("a segment covers too much");
    size_t start = s->size;
    if (!put_packets(s, r, p, (size_t)covered)) return false;
    if (flags & 1) {
        uint64_t size = ref_varint(&s->residue);
        return ref_put_residue(s, size);
    }
    if (r->pads_stream ? is_last && s->size % 2 == 1 : (s->size - start) % 2 == 1) ref_put_byte(s, 0);
    return true;
}

/* The plane of a segment, in memory of ref_alloc(). */
static struct plane make_plane(const struct ref_stream *s, unsigned segment)
{
    const struct ref_header *h = s->header;
    if (h->allocated == 1) { /* the plane is the raster */
        size_t packed = ref_raster_size(h);
        uint8_t *copy = ref_alloc(packed, 1);
        memcpy(copy, s->raster, packed);
        return (struct plane){.data = copy, .size = packed, .row = h->columns};
    }
    unsigned bytes = h->allocated / 8, c = segment / bytes, shift = 8 * (bytes - 1 - segment % bytes);
    size_t size = (size_t)h->rows * h->columns;
    uint8_t *data = ref_alloc(size, 1);
    for (uint32_t y = 0; y < h->rows; y++)
        for (uint32_t x = 0; x < h->columns; x++)
            data[(size_t)y * h->columns + x] = (uint8_t)(ref_sample(s, c, x, y) >> shift);
    return (struct plane){.data = data, .size = size, .row = h->columns};
}

static void patch(struct ref_stream *s, size_t at, uint64_t v)
{
    for (unsigned i = 0; i < 4; i++) s->data[at + i] = (uint8_t)(v >> (8 * i));
}

bool ref_rle(struct ref_stream *s)
{
    unsigned segments = s->header->allocated == 1 ? 1 : s->header->components * (s->header->allocated / 8);
    struct rule r;
    uint8_t head[64] = {(uint8_t)segments};
    if (segments > 15) return ref_fail("there are too many segments of RLE");
    if (!read_rule(&s->residue, &r)) return false;
    size_t unused = 60 - 4 * (size_t)segments;
    const uint8_t *offsets = r.special ? ref_take(&s->residue, unused) : NULL;
    if (offsets) memcpy(head + 4 + 4 * (size_t)segments, offsets, unused);
    ref_put(s, head, sizeof head);
    if (r.special) {
        uint64_t gap = ref_varint(&s->residue);
        if (!ref_put_residue(s, gap)) return false;
    }
    for (unsigned i = 0; i < segments; i++) {
        struct plane p = make_plane(s, i);
        patch(s, 4 + 4 * (size_t)i, s->size);
        if (!put_segment(s, &r, &p, i + 1 == segments)) return false;
    }
    return true;
}
