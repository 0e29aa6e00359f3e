/* JPEG_LOSSLESS.md: streams of lossless JPEG. */
#include "ref_streams.h"

#include <string.h>

enum { SOF3 = 0xc3, DHT = 0xc4, SOI = 0xd8, SOS = 0xda, DRI = 0xdd };

struct table { /* of Huffman codes; by category */
    bool good;
    uint32_t code[17];
    unsigned length[17]; /* 0: no code */
};

struct jpeg {
    struct ref_coded_frame frame;
    bool begun; /* SOI was seen */
    uint32_t restart;
    struct table table[4];
    /* The scan. */
    unsigned count, component[4], used[4], selection, shift;
    bool whole, zeros;
    /* The string of bits: those of a byte that is not yet full. */
    unsigned bits, bit_count;
};

/* ---- JPEG_LOSSLESS.md 1 Headers ---- */

static void read_codes(struct table *table, const uint8_t *counts, const uint8_t *symbols)
{
    uint32_t code = 0;
    memset(table, 0, sizeof *table);
    for (unsigned length = 1; length <= 16; length++, code <<= 1) {
        for (unsigned i = 0; i < counts[length - 1]; i++, symbols++, code++) {
            if (code >> length != 0) return;
            if (*symbols > 16 || table->length[*symbols] > 0) continue;
            table->code[*symbols] = code;
            table->length[*symbols] = length;
        }
    }
    table->good = true;
}

static bool read_tables(struct jpeg *j, const struct ref_segment *segment)
{
    struct ref_bytes b = {.data = segment->data, .size = segment->size};
    while (ref_left(&b) > 0) {
        unsigned name = (unsigned)ref_number(&b, 1), symbols = 0;
        const uint8_t *counts = ref_take(&b, 16);
        for (unsigned i = 0; counts && i < 16; i++) symbols += counts[i];
        const uint8_t *symbol = ref_take(&b, symbols);
        if (!counts || !symbol || symbols > 256 || name >> 4 > 1 || (name & 15) > 3)
            return ref_fail("a Huffman table is corrupt");
        if (name >> 4 == 0) read_codes(&j->table[name & 15], counts, symbol);
    }
    return true;
}

static bool read_frame(const struct ref_stream *s, struct jpeg *j, const struct ref_segment *segment)
{
    struct ref_coded_frame *f = &j->frame;
    if (!ref_read_coded_frame(s, segment, f)) return false;
    for (unsigned i = 1; i < f->components; i++)
        if (f->sampling[i] != f->sampling[0]) return ref_fail("components have different sampling factors");
    return true;
}

static bool read_scan(const struct ref_stream *s, struct jpeg *j, const struct ref_segment *segment)
{
    uint8_t second[4];
    const uint8_t *rest;
    if (!ref_read_scan(segment, &j->frame, &j->count, j->component, second, &rest)) return false;
    if (j->count > 1 && j->frame.sampling[0] != 0x11) return ref_fail("a scan mixes components of several samples");
    j->selection = rest[0];
    j->shift = rest[2] & 15;
    if (j->selection < 1 || j->selection > 7 || j->shift >= j->frame.precision)
        return ref_fail("a scan's parameters are wrong");
    for (unsigned i = 0; i < j->count; i++) {
        j->used[i] = second[i] >> 4;
        if (j->used[i] > 3 || !j->table[j->used[i]].good) return ref_fail("a scan has a wrong table");
    }
    return j->restart % s->header->columns == 0 || ref_fail("a restart interval is not rows");
}

static bool read_restart(struct jpeg *j, const struct ref_segment *segment)
{
    if (segment->size != 2) return ref_fail("a restart interval is corrupt");
    j->restart = (uint32_t)segment->data[0] << 8 | segment->data[1];
    return true;
}

static bool read_header(const struct ref_stream *s, struct jpeg *j, const struct ref_segment *segment)
{
    unsigned m = segment->marker;
    if (!j->begun && m != SOI) return ref_fail("a stream does not begin with SOI");
    if (m == DHT) return read_tables(j, segment);
    if (m == SOF3) return read_frame(s, j, segment);
    if (m == SOS) return read_scan(s, j, segment);
    if (m == DRI) return read_restart(j, segment);
    if (m == SOI) {
        if (j->begun) return ref_fail("a stream has a second SOI");
        j->begun = true;
        return true;
    }
    bool refused = m <= 0xd9 || m == 0xdc || m == 0xde || m == 0xdf;
    return !refused || ref_fail("a stream has a marker ff %02x", m);
}

static bool put_headers(struct ref_stream *s, struct jpeg *j)
{
    const uint8_t *data = s->residue.data + s->residue.at;
    size_t at = 0;
    struct ref_segment segment;
    do
        if (!ref_read_segment(data, ref_left(&s->residue), &at, &segment) || !read_header(s, j, &segment)) return false;
    while (segment.marker != SOS);
    return ref_put_residue(s, at);
}

/* ---- JPEG_LOSSLESS.md 2, JPEG_LOSSLESS.md 3 Samples and their bytes ---- */

static void put_coded_byte(struct ref_stream *s, unsigned byte)
{
    ref_put_byte(s, byte);
    if (byte == 0xff) ref_put_byte(s, 0);
}

static void put_bits(struct ref_stream *s, struct jpeg *j, uint32_t v, unsigned n)
{
    while (n-- > 0) {
        j->bits = j->bits << 1 | (v >> n & 1);
        if (++j->bit_count < 8) continue;
        put_coded_byte(s, j->bits);
        j->bits = j->bit_count = 0;
    }
}

static bool put_difference(struct ref_stream *s, struct jpeg *j, unsigned used, int64_t d)
{
    if (!j->whole) {
        d &= 0xffff;
        if (d > 32768) d -= 65536;
    }
    unsigned category = ref_bit_count((uint64_t)(d < 0 ? -d : d));
    if (category > 16) return ref_fail("a difference is too large");
    const struct table *table = &j->table[used];
    if (table->length[category] == 0) return ref_fail("a Huffman table lacks category %u", category);
    put_bits(s, j, table->code[category], table->length[category]);
    if (category == 16 && !j->whole) return true;
    uint32_t extra = (uint32_t)((uint64_t)(d < 0 ? d - 1 : d) & ((1u << category) - 1));
    put_bits(s, j, extra, category);
    return true;
}

static int64_t predict(unsigned selection, int64_t a, int64_t b, int64_t c)
{
    switch (selection) {
    case 1:
        return a;
    case 2:
        return b;
    case 3:
        return c;
    case 4:
        return a + b - c;
    case 5:
        return a + ((b - c) >> 1);
    case 6:
        return b + ((a - c) >> 1);
    default:
        return (a + b) >> 1;
    }
}

/* first: the first row of the interval. */
static bool put_sample(struct ref_stream *s, struct jpeg *j, unsigned i, uint32_t x, uint32_t y, uint32_t first)
{
    unsigned c = j->component[i], range = j->frame.precision - j->shift;
    uint32_t sample = ref_sample(s, c, x, y);
    if (sample >> j->shift >> range != 0) return ref_fail("a sample is above the stream's precision");
    int64_t prediction, left = x > 0 ? ref_sample(s, c, x - 1, y) >> j->shift : 0;
    if (y == first) {
        prediction = x > 0 ? left : (int64_t)1 << (range - 1);
    } else {
        int64_t above = ref_sample(s, c, x, y - 1) >> j->shift;
        int64_t corner = x > 0 ? ref_sample(s, c, x - 1, y - 1) >> j->shift : 0;
        prediction = x > 0 ? predict(j->selection, left, above, corner) : above;
    }
    return put_difference(s, j, j->used[i], (int64_t)(sample >> j->shift) - prediction);
}

/* JPEG_LOSSLESS.md 3, JPEG_LOSSLESS.md 4: the end of an interval. */
static bool end_interval(struct ref_stream *s, struct jpeg *j, struct ref_deviations *deviations)
{
    unsigned padding = j->zeros ? 0 : 0xff;
    bool deviates = ref_deviates(deviations);
    if (deviates) padding = (unsigned)ref_number(&s->residue, 1);
    if (j->bit_count > 0) put_bits(s, j, padding, 8 - j->bit_count);
    if (!deviates) return true;
    uint64_t size = ref_varint(&s->residue);
    return ref_put_residue(s, size) && ref_first_deviation(s, deviations);
}

static bool put_scan(struct ref_stream *s, struct jpeg *j)
{
    const struct ref_header *h = s->header;
    unsigned flags = (unsigned)ref_number(&s->residue, 1);
    struct ref_deviations deviations;
    if (flags > 3) return ref_fail("a scan's flags are corrupt");
    j->whole = flags & 1;
    j->zeros = flags & 2;
    if (!ref_first_deviation(s, &deviations)) return false;
    uint32_t interval = j->restart > 0 ? j->restart / h->columns : h->rows;
    for (uint32_t first = 0, n = 0; first < h->rows; first += interval, n++) {
        if (first > 0) {
            ref_put_byte(s, 0xff);
            ref_put_byte(s, 0xd0 + (n - 1) % 8);
        }
        for (uint32_t y = first; y < h->rows && y - first < interval; y++)
            for (uint32_t x = 0; x < h->columns; x++)
                for (unsigned i = 0; i < j->count; i++)
                    if (!put_sample(s, j, i, x, y, first)) return false;
        if (!end_interval(s, j, &deviations)) return false;
    }
    return deviations.left == 0 || ref_fail("deviations go on after the last interval");
}

bool ref_jpeg(struct ref_stream *s)
{
    struct jpeg j = {.restart = 0};
    do
        if (!put_headers(s, &j) || !put_scan(s, &j)) return false;
    while (!ref_all_coded(&j.frame));
    unsigned tail = (unsigned)ref_number(&s->residue, 1);
    if (s->residue.bad || tail > 1) return ref_fail("a stream's tail is corrupt");
    if (tail == 1) return ref_put_residue(s, ref_left(&s->residue));
    ref_put_byte(s, 0xff);
    ref_put_byte(s, 0xd9);
    if (s->size % 2 == 1) ref_put_byte(s, 0);
    return true;
}
