/* FORMAT.md 4.4, 4.5: records of fragments and residues, and what the kinds of streams share. */
#include "ref_streams.h"

#include "ref_dct.h"
#include "ref_deflate.h"

#include <string.h>

void ref_put(struct ref_stream *s, const void *data, size_t size)
{
    if (size == 0) return;
    if (size > s->room - s->size) {
        uint8_t *old = s->data;
        s->room = 2 * s->room + size + 1024;
        s->data = ref_alloc(s->room, 1);
        if (s->size > 0) memcpy(s->data, old, s->size);
    }
    memcpy(s->data + s->size, data, size);
    s->size += size;
}

void ref_put_byte(struct ref_stream *s, unsigned byte)
{
    const uint8_t b = (uint8_t)byte;
    ref_put(s, &b, 1);
}

bool ref_put_residue(struct ref_stream *s, uint64_t size)
{
    const uint8_t *data = ref_take(&s->residue, size);
    if (!data) return ref_fail("a residue is too short");
    ref_put(s, data, (size_t)size);
    return true;
}

uint32_t ref_sample(const struct ref_stream *s, unsigned component, uint32_t x, uint32_t y)
{
    const struct ref_header *h = s->header;
    size_t pixel = (size_t)y * h->columns + x, bytes = h->allocated / 8;
    size_t at = h->planar ? component * ((size_t)h->columns * h->rows) + pixel : pixel * h->components + component;
    uint32_t v = 0;
    for (size_t i = 0; i < bytes; i++) v |= (uint32_t)s->raster[at * bytes + i] << (8 * i);
    return v;
}

/* ---- Deviations ---- */

bool ref_first_deviation(struct ref_stream *s, struct ref_deviations *d)
{
    d->left = ref_varint(&s->residue);
    return !s->residue.bad || ref_fail("a residue is too short");
}

bool ref_deviates(struct ref_deviations *d)
{
    return d->left > 0 && --d->left == 0;
}

/* ---- Headers of JPEG and JPEG-LS ---- */

enum { SOI = 0xd8 };

bool ref_read_segment(const uint8_t *data, size_t size, size_t *at, struct ref_segment *segment)
{
    size_t i = *at;
    while (i < size && data[i] == 0xff) i++;
    if (i == *at || i == size) return ref_fail("a stream's header has no marker");
    *segment = (struct ref_segment){.marker = data[i++]};
    if (segment->marker == SOI && i - *at != 2) return ref_fail("fill bytes stand before SOI");
    if (segment->marker != SOI) {
        if (size - i < 2) return ref_fail("a stream's header is too short");
        size_t length = (size_t)data[i] << 8 | data[i + 1];
        if (length < 2 || length > size - i) return ref_fail("a segment of a stream's header is too short");
        segment->data = data + i + 2;
        segment->size = length - 2;
        i += length;
    }
    *at = i;
    return true;
}

bool ref_read_coded_frame(const struct ref_stream *s, const struct ref_segment *segment, struct ref_coded_frame *frame)
{
    const struct ref_header *h = s->header;
    const uint8_t *data = segment->data;
    if (frame->seen) return ref_fail("a stream has two frame headers");
    if (segment->size < 6 || segment->size != 6 + 3 * (size_t)data[5]) return ref_fail("a frame header is corrupt");
    frame->seen = true;
    frame->precision = data[0];
    frame->components = data[5];
    if (frame->precision < 2 || frame->precision > 16 || frame->precision > h->allocated)
        return ref_fail("a stream's precision is wrong");
    if (((uint32_t)data[1] << 8 | data[2]) != h->rows || ((uint32_t)data[3] << 8 | data[4]) != h->columns ||
        frame->components != h->components)
        return ref_fail("a stream is of another image");
    for (unsigned i = 0; i < frame->components; i++) {
        frame->id[i] = data[6 + 3 * i];
        frame->sampling[i] = data[7 + 3 * i];
        for (unsigned j = 0; j < i; j++)
            if (frame->id[j] == frame->id[i]) return ref_fail("two components of a stream are the same");
    }
    return true;
}

bool ref_read_scan(const struct ref_segment *segment, struct ref_coded_frame *frame, unsigned *count,
                   unsigned component[4], uint8_t second[4], const uint8_t **rest)
{
    const uint8_t *data = segment->data;
    if (!frame->seen) return ref_fail("a scan stands before the frame header");
    *count = segment->size > 0 ? data[0] : 0;
    if (*count < 1 || *count > frame->components || segment->size != 4 + 2 * (size_t)*count)
        return ref_fail("a scan's header is corrupt");
    for (unsigned i = 0; i < *count; i++) {
        unsigned c = 0;
        while (c < frame->components && frame->id[c] != data[1 + 2 * i]) c++;
        if (c == frame->components || frame->coded[c]) return ref_fail("a scan has a wrong component");
        frame->coded[c] = true;
        component[i] = c;
        second[i] = data[2 + 2 * i];
    }
    *rest = data + 1 + 2 * (size_t)*count;
    return true;
}

bool ref_all_coded(const struct ref_coded_frame *frame)
{
    for (unsigned c = 0; c < frame->components; c++)
        if (!frame->coded[c]) return false;
    return true;
}

/* ---- 4.4: records ---- */

/* A record's sizes; sizes: those of the fragments but the last one, in memory of ref_alloc(). */
static bool read_record(struct ref_bytes *b, uint64_t *fragments, uint64_t **sizes, struct ref_bytes *residue)
{
    *fragments = ref_varint(b);
    if (b->bad || *fragments < 1 || *fragments - 1 > ref_left(b)) return ref_fail("a record of a frame is corrupt");
    *sizes = ref_alloc((size_t)*fragments, sizeof **sizes);
    for (uint64_t i = 0; i + 1 < *fragments; i++) (*sizes)[i] = ref_varint(b);
    uint64_t size = ref_varint(b);
    *residue = (struct ref_bytes){.data = ref_take(b, size), .size = (size_t)size};
    return !b->bad || ref_fail("the record of a frame is too short");
}

/* DEFLATE.md 6 */
static bool deflated_frame(struct ref_stream *s)
{
    struct ref_bytes *b = &s->residue;
    struct ref_deflate_out out = {.bits = 0};
    uint64_t code = ref_varint(b);
    const uint8_t *tail = code > 0 ? ref_take(b, code - 1) : NULL;
    if (b->bad) return ref_fail("the residue of a deflated frame is corrupt");
    if (!ref_deflate(s->raster, ref_raster_size(s->header), b->data + b->at, ref_left(b), &out)) return false;
    b->at = b->size;
    ref_put(s, out.bytes, (size_t)(out.bits / 8));
    if (code > 0)
        ref_put(s, tail, (size_t)code - 1);
    else if (s->size % 2)
        ref_put_byte(s, 0);
    return true;
}

/* UNCOMPRESSED.md */
static bool samples(struct ref_stream *s)
{
    const struct ref_header *h = s->header;
    unsigned used = (unsigned)((uint64_t)h->columns * h->rows * h->components * h->allocated % 8);
    ref_put(s, s->raster, ref_raster_size(h));
    if (ref_left(&s->residue) == 0) {
        if (s->size % 2) ref_put_byte(s, 0);
        return true;
    }
    unsigned spare = (unsigned)ref_number(&s->residue, 1);
    if (spare >> (used > 0 ? 8 - used : 0) > 0) return ref_fail("the spare bits of a frame are too many");
    if (used > 0) s->data[s->size - 1] |= (uint8_t)(spare << used);
    return ref_put_residue(s, ref_left(&s->residue));
}

bool ref_make_stream(struct ref_stream *s, unsigned kind)
{
    static bool (*const make[])(struct ref_stream *) = {ref_rle,        ref_jpeg, ref_jpeg_ls,
                                                        deflated_frame, ref_j2k,  samples};
    bool good = make[kind](s);
    if (good && (s->residue.bad || ref_left(&s->residue) > 0))
        return ref_fail("a residue does not end with its stream");
    return good;
}

bool ref_check_encapsulated(const struct ref_header *h)
{
    if (h->parameter_count != 1) return ref_fail("the parameters of the encapsulation are corrupt");
    unsigned kind = h->parameters[0];
    if (kind > 6) return ref_fail("stream kind %u is unknown", kind);
    if (h->big_endian || h->swapped ||
        ((h->allocated == 1 || h->allocated == 32) && (kind == 1 || kind == 2 || kind == 4)) ||
        (h->allocated == 1 && kind == 6))
        return ref_fail("the layout is not one of encapsulated frames");
    return true;
}

/* Writes the items of a stream. */
static bool put_items(const struct ref_stream *s, uint64_t fragments, const uint64_t *sizes, ref_sink *put, void *to)
{
    size_t at = 0;
    for (uint64_t i = 0; i < fragments; i++) {
        uint64_t size = i + 1 < fragments ? sizes[i] : s->size - at;
        if (size > s->size - at || size > UINT32_MAX)
            return ref_fail("the fragments have more bytes than their stream");
        uint8_t item[8] = {0xfe, 0xff, 0x00, 0xe0};
        for (unsigned k = 0; k < 4; k++) item[4 + k] = (uint8_t)(size >> (8 * k));
        if (!put(to, item, sizeof item) || !put(to, s->data + at, (size_t)size)) return false;
        at += (size_t)size;
    }
    return true;
}

bool ref_encapsulate(const struct ref_header *h, const uint8_t *raster, struct ref_bytes *records, ref_sink *put,
                     void *to)
{
    uint64_t fragments, *sizes = NULL;
    struct ref_stream s = {.header = h, .raster = raster};
    return read_record(records, &fragments, &sizes, &s.residue) && ref_make_stream(&s, h->parameters[0]) &&
           put_items(&s, fragments, sizes, put, to);
}

/* ---- ENCAPSULATED.md 2: units ---- */

/* The stream of the unit kind 1. most: bytes that it may have. */
static bool decompress_unit(struct ref_bytes *b, uint64_t most, struct ref_stream *s)
{
    uint64_t size = ref_varint(b);
    if (b->bad || size < 1 || size > most) return ref_fail("the stream of a unit is too long");
    s->data = ref_alloc((size_t)size, 1);
    s->size = (size_t)size;
    return ref_unzstd(s->data, s->size, b->data + b->at, ref_left(b), NULL, 0);
}

/* The stream of the unit kinds 2 and 3. */
static bool unpack_unit(const struct ref_header *h, struct ref_bytes *b, bool has_fault, uint64_t most,
                        struct ref_stream *s)
{
    uint64_t size = has_fault ? ref_varint(b) : ref_left(b);
    struct ref_bytes packed = {.data = ref_take(b, size), .size = (size_t)size};
    if (b->bad) return ref_fail("a unit with a fault is corrupt");
    if (!ref_are_units(h)) return ref_fail("there is packed JPEG in a file of other streams");
    if (!ref_unpack_unit(h, packed, most, s)) return false;
    ref_put(s, b->data + b->at, ref_left(b));
    return true;
}

/* The stream of the unit kind 4. */
static bool put_headed_unit(const struct ref_header *h, struct ref_bytes *b, struct ref_stream *s)
{
    struct ref_bytes tokens = {.data = h->shared_head, .size = h->shared_head_size};
    const uint8_t *head = NULL;
    uint64_t rest = ref_varint(b), size = tokens.size > 0 ? ref_varint(&tokens) : 0;
    struct ref_bytes none = {.size = 0};
    if (b->bad || tokens.bad || size > 1024 || rest > size) return ref_fail("a unit with the shared head is corrupt");
    if (size > 0 && (!ref_dct_make_head(&tokens, none, (size_t)size, &head) || ref_left(&tokens) > 0))
        return ref_fail("the shared head is corrupt");
    ref_put(s, head, (size_t)(size - rest));
    ref_put(s, b->data + b->at, ref_left(b));
    return true;
}

bool ref_put_unit(const struct ref_header *h, const uint8_t *unit, size_t size, struct ref_bytes *records,
                  ref_sink *put, void *to)
{
    uint64_t fragments, *sizes = NULL;
    struct ref_bytes b = {.data = unit, .size = size};
    struct ref_stream s = {.header = h};
    const uint64_t samples = (uint64_t)h->columns * h->rows * h->components,
                   most = ref_raster_size(h) + 2 * samples + 65536;
    unsigned kind = (unsigned)ref_number(&b, 1);
    if (!read_record(records, &fragments, &sizes, &s.residue)) return false;
    if (b.bad || s.residue.size > 0) return ref_fail("a unit is corrupt, or has a residue");
    if (kind == 0) {
        ref_put(&s, b.data + b.at, ref_left(&b));
    } else if (kind == 1) {
        if (!decompress_unit(&b, most, &s)) return false;
    } else if (kind == 2 || kind == 3) {
        if (!unpack_unit(h, &b, kind == 3, most, &s)) return false;
    } else if (kind == 4) {
        if (!put_headed_unit(h, &b, &s)) return false;
    } else {
        return ref_fail("unit kind %u is unknown", kind);
    }
    return put_items(&s, fragments, sizes, put, to);
}
