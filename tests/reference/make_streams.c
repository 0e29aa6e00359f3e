/* tsr_streams FOLDER COUNT SEED: writes COUNT encapsulated DICOM files, FOLDER/N.KIND.dcm. KIND is rle, jpeg or
 * jpeg_ls. The streams are what the reference decoder makes of random samples and random residues (RLE.md,
 * JPEG_LOSSLESS.md, JPEG_LS.md), so they are of all rules and parameters that the page has, and of deviations. The
 * samples are N.KIND.raw: another reader must find the same. N.KIND.records is what blob 2 may be: another writer must
 * make the same streams.
 */
#include "ref_streams.h"

#include <stdlib.h>
#include <string.h>

static uint64_t state;

static uint32_t below(uint32_t limit)
{
    uint64_t z = state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (uint32_t)((z ^ (z >> 31)) >> 32) % limit;
}

/* ---- Bytes: a stream is used as a buffer that grows ---- */

static void put_number(struct ref_stream *b, uint32_t v, unsigned bytes) /* least significant byte first */
{
    for (unsigned i = 0; i < bytes; i++) ref_put_byte(b, v >> (8 * i) & 255);
}

static void put_big(struct ref_stream *b, uint32_t v, unsigned bytes)
{
    while (bytes-- > 0) ref_put_byte(b, v >> (8 * bytes) & 255);
}

static void put_varint(struct ref_stream *b, size_t v)
{
    for (; v > 127; v >>= 7) ref_put_byte(b, (unsigned)(v & 127) | 128);
    ref_put_byte(b, (unsigned)v);
}

/* ---- Images and their samples ---- */

struct image {
    struct ref_header header;
    unsigned kind, precision, shift; /* shift: this many low bits of samples are 0 */
    uint32_t max;
};

static struct image choose_image(void)
{
    struct image m = {.kind = below(3)};
    struct ref_header *h = &m.header;
    h->columns = 1 + below(below(4) ? 120 : 400);
    h->rows = 1 + below(60);
    h->frames = 1 + below(3);
    h->components = below(2) ? 3 : 1;
    h->allocated = m.kind == 0 && below(5) == 0 ? 32 : 8u << below(2);
    m.precision = m.kind == 0 || below(2) ? h->allocated : 2 + below(h->allocated - 1);
    h->stored = m.precision;
    m.shift = m.kind == 1 && below(4) == 0 ? below(m.precision) : 0;
    m.max = (uint32_t)(((uint64_t)1 << m.precision) - 1);
    if (m.kind == 2 && m.precision > 4 && below(4) == 0) m.max -= below(m.max / 2);
    return m;
}

/* Flat parts, slopes and noise. */
static uint8_t *paint(const struct image *m)
{
    size_t count = (size_t)m->header.columns * m->header.rows * m->header.components, bytes = m->header.allocated / 8;
    uint8_t *raster = ref_alloc(count, bytes);
    uint32_t v[4] = {0}, left = 0, style = 0;
    for (size_t i = 0; i < count; i++) {
        uint32_t *now = &v[i % m->header.components];
        if (left-- == 0) {
            style = below(8);
            left = below(below(3) ? 12 : 300);
            if (style == 3 && below(8) == 0) left = 6000; /* contexts of JPEG-LS come to their limits */
        }
        if (style == 2) *now = (*now + below(5)) & m->max;
        if (style == 3) *now = below(2) ? m->max : below(UINT32_MAX) & m->max;
        if (style == 4 && below(3) == 0) *now ^= 1;
        if (*now > m->max) *now = m->max;
        for (size_t k = 0; k < bytes; k++) raster[i * bytes + k] = (uint8_t)(*now >> m->shift << m->shift >> (8 * k));
    }
    return raster;
}

/* ---- Residues of RLE ---- */

static void put_rle_residue(struct ref_stream *r, const struct image *m, bool deviates)
{
    unsigned segments = m->header.components * (m->header.allocated / 8), unit = below(3) ? 1 : 1 + below(5);
    bool special = below(6) == 0;
    ref_put_byte(r, below(64) | (special ? 64 : 0));
    ref_put_byte(r, 2 + below(4) + 16 * (2 + below(4)));
    ref_put_byte(r, unit);
    ref_put_byte(r, below(2) ? 128 : unit + below(129 - unit));
    ref_put_byte(r, below(2) ? 128 : unit + 1 + below(128 - unit));
    if (special) {
        unsigned gap = below(4);
        for (unsigned i = segments; i < 15; i++) put_number(r, below(1000), 4);
        put_varint(r, gap);
        for (unsigned i = 0; i < gap; i++) ref_put_byte(r, below(256));
    }
    for (unsigned i = 0; i < segments; i++) {
        bool has_tail = below(8) == 0;
        ref_put_byte(r, has_tail);
        for (unsigned n = deviates ? below(4) : 0; n > 0; n--) { /* short literals, or packets of nothing */
            put_varint(r, 1 + below(6));
            ref_put_byte(r, below(4) ? below(3) : 128);
        }
        ref_put_byte(r, 0);
        if (has_tail) put_number(r, 0x01000002, 3);
    }
}

/* ---- Headers of JPEG and JPEG-LS ---- */

static void put_marker(struct ref_stream *r, unsigned marker, unsigned size)
{
    for (unsigned n = marker == 0xd8 || below(8) ? 1 : 3; n > 0; n--) ref_put_byte(r, 0xff);
    ref_put_byte(r, marker);
    if (marker != 0xd8) put_big(r, size + 2, 2);
}

static void put_comment(struct ref_stream *r)
{
    if (below(3) > 0) return;
    put_marker(r, below(2) ? 0xfe : 0xe0 + below(8), 3);
    put_big(r, 0xffda01, 3);
}

static void put_frame(struct ref_stream *r, const struct image *m, unsigned marker)
{
    const struct ref_header *h = &m->header;
    put_marker(r, marker, 6 + 3 * h->components);
    put_big(r, m->precision, 1);
    put_big(r, h->rows, 2);
    put_big(r, h->columns, 2);
    put_big(r, h->components, 1);
    for (unsigned c = 0; c < h->components; c++) put_big(r, (c * 7 + 1) << 16 | 0x1100, 3);
}

static void put_scan_header(struct ref_stream *r, unsigned first, unsigned count, bool tables, uint32_t rest)
{
    put_marker(r, 0xda, 4 + 2 * count);
    put_big(r, count, 1);
    for (unsigned c = first; c < first + count; c++) put_big(r, (c * 7 + 1) << 8 | (tables ? c << 4 : 0), 2);
    put_big(r, rest, 3);
}

/* ---- Residues of lossless JPEG ---- */

/* A table with all categories, in random order. */
static void put_table(struct ref_stream *r, unsigned name)
{
    static const uint8_t counts[2][16] = {{0, 0, 6, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1}, {0, 1, 1, 4, 6, 3, 0, 2}};
    uint8_t symbols[17];
    put_marker(r, 0xc4, 1 + 16 + 17);
    put_big(r, name, 1);
    ref_put(r, counts[below(2)], 16);
    for (unsigned i = 0; i < 17; i++) {
        unsigned at = below(i + 1);
        symbols[i] = symbols[at];
        symbols[at] = (uint8_t)i;
    }
    ref_put(r, symbols, 17);
}

/* Scan flags and deviations: paddings, and bytes that are not markers. */
static void put_scan_residue(struct ref_stream *r, uint32_t intervals, bool deviates)
{
    ref_put_byte(r, below(4));
    for (uint32_t at = 0; deviates && below(3) > 0;) {
        uint32_t distance = 1 + below(3);
        if (at + distance > intervals) break;
        at += distance;
        put_varint(r, distance);
        ref_put_byte(r, below(256));
        unsigned size = below(3);
        put_varint(r, size);
        put_big(r, below(2) ? 0x1234 : 0xff00, size);
    }
    ref_put_byte(r, 0);
}

static void put_jpeg_residue(struct ref_stream *r, const struct image *m, bool deviates)
{
    const struct ref_header *h = &m->header;
    uint32_t rows = 0, together = below(2) ? h->components : 1;
    put_marker(r, 0xd8, 0);
    put_comment(r);
    for (unsigned c = 0; c < h->components; c++) put_table(r, c);
    put_frame(r, m, 0xc3);
    for (unsigned c = 0; c < h->components; c += together) {
        if (below(2)) {
            rows = below(5);
            put_marker(r, 0xdd, 2);
            put_big(r, rows * h->columns, 2);
        }
        put_comment(r);
        put_scan_header(r, c, together, true, (1 + below(7)) << 16 | m->shift);
        put_scan_residue(r, rows > 0 ? (h->rows + rows - 1) / rows : 1, deviates);
    }
    ref_put_byte(r, deviates);
    if (deviates) put_big(r, 0xffd91122, 2 + below(3));
}

/* ---- Residues of JPEG-LS ---- */

static void put_preset(struct ref_stream *r, const struct image *m)
{
    uint32_t whole = ((uint32_t)1 << m->precision) - 1, t = 1 + below(m->max < 200 ? m->max : 200);
    if (m->max == whole && below(2)) return;
    put_marker(r, 0xf8, 11);
    put_big(r, 1, 1);
    put_big(r, m->max == whole && below(2) ? 0 : m->max, 2);
    bool chosen = below(2);
    for (unsigned i = 0; i < 3; i++, t += below(m->max - t + 1)) put_big(r, chosen ? t : 0, 2);
    put_big(r, below(2) ? 0 : 3 + below(100), 2);
}

static void put_jpeg_ls_residue(struct ref_stream *r, const struct image *m, bool deviates)
{
    const struct ref_header *h = &m->header;
    uint32_t rows = below(2) ? 0 : 1 + below(6), mode = below(3), together = mode > 0 ? h->components : 1;
    bool may_transform =
        h->components == 3 && (m->precision == 8 || m->precision == 16) && m->max == ((uint32_t)1 << m->precision) - 1;
    struct ref_stream headers = {.size = 0};
    put_marker(&headers, 0xd8, 0);
    put_comment(&headers);
    if (may_transform && below(3) > 0) {
        put_marker(&headers, 0xe8, 5);
        ref_put(&headers, "mrfx", 4);
        ref_put_byte(&headers, below(4));
    }
    put_frame(&headers, m, 0xf7);
    put_preset(&headers, m);
    if (rows > 0) {
        unsigned bytes = 2 + below(3);
        put_marker(&headers, 0xdd, bytes);
        put_big(&headers, rows, bytes);
    }
    for (unsigned c = 0; c < h->components; c += together) {
        put_comment(&headers);
        put_scan_header(&headers, c, together, false, mode << 8);
        put_varint(r, headers.size);
        ref_put(r, headers.data, headers.size);
        headers.size = 0;
        for (uint32_t y = 0; y<h->rows; y += rows> 0 ? rows : h->rows) ref_put_byte(r, 0);
    }
    /* Bytes before EOI are the end of the last interval. */
    unsigned before = below(3), after = below(3);
    put_varint(r, deviates ? 2 + 2 + before + after : below(2));
    if (!deviates) return;
    put_big(r, 0x1122, before);
    put_big(r, 0xffd9, 2);
    put_big(r, 0x3344, after);
}

/* ---- Files ---- */

static void put_element(struct ref_stream *b, uint32_t tag, const char *vr, const char *value)
{
    put_number(b, tag >> 16, 2);
    put_number(b, tag & 0xffff, 2);
    ref_put(b, vr, 2);
    size_t size = strlen(value);
    put_number(b, (uint32_t)(size + size % 2), 2);
    ref_put(b, value, size);
    if (size % 2) ref_put_byte(b, strcmp(vr, "UI") == 0 ? 0 : ' ');
}

static void put_short(struct ref_stream *b, uint32_t tag, unsigned v)
{
    put_number(b, tag >> 16, 2);
    put_number(b, tag & 0xffff, 2);
    ref_put(b, "US", 2);
    put_number(b, 2, 2);
    put_number(b, v, 2);
}

static void put_data_set(struct ref_stream *b, const struct image *m)
{
    static const char *const syntaxes[] = {"1.2.840.10008.1.2.5", "1.2.840.10008.1.2.4.57", "1.2.840.10008.1.2.4.80"};
    const struct ref_header *h = &m->header;
    static const uint8_t preamble[128];
    char frames[16];
    (void)snprintf(frames, sizeof frames, "%u", (unsigned)h->frames);
    ref_put(b, preamble, sizeof preamble);
    ref_put(b, "DICM", 4);
    put_element(b, 0x00020010, "UI", syntaxes[m->kind]);
    put_element(b, 0x00080016, "UI", "1.2.840.10008.5.1.4.1.1.7");
    put_short(b, 0x00280002, h->components);
    put_element(b, 0x00280004, "CS", h->components == 3 ? "RGB" : "MONOCHROME2");
    if (h->components == 3) put_short(b, 0x00280006, 0);
    put_element(b, 0x00280008, "IS", frames);
    put_short(b, 0x00280010, h->rows);
    put_short(b, 0x00280011, h->columns);
    put_short(b, 0x00280100, h->allocated);
    put_short(b, 0x00280101, h->stored);
    put_short(b, 0x00280102, h->stored - 1);
    put_short(b, 0x00280103, 0);
    put_big(b, 0xe07f1000, 4);
    ref_put(b, "OB\0", 4);
    put_number(b, UINT32_MAX, 4);
    put_big(b, 0xfeff00e0, 4);
    put_number(b, 0, 4);
}

/* A frame's items: the stream in 1 .. 3 fragments, and its record. */
static void put_items(struct ref_stream *b, struct ref_stream *records, const struct image *m,
                      const struct ref_stream *stream, const struct ref_stream *residue)
{
    size_t at = 0, fragments = m->header.frames == 1 ? 1 + below(3) : 1;
    put_varint(records, fragments);
    while (fragments-- > 0) {
        size_t left = stream->size - at, size = fragments == 0 ? left : below((uint32_t)left / 2 + 1) * 2;
        if (fragments > 0) put_varint(records, size);
        put_big(b, 0xfeff00e0, 4);
        put_number(b, (uint32_t)size, 4);
        if (size > 0) ref_put(b, stream->data + at, size);
        at += size;
    }
    put_varint(records, residue->size);
    ref_put(records, residue->data, residue->size);
}

/* Random deviations may not fit; then there are none. */
static bool put_stream(struct ref_stream *b, struct ref_stream *records, const struct image *m, const uint8_t *raster)
{
    for (int tries = 0; tries < 6; tries++) {
        struct ref_stream residue = {.size = 0}, stream = {.header = &m->header, .raster = raster};
        bool deviates = tries < 5 && below(2);
        if (m->kind == 0) put_rle_residue(&residue, m, deviates);
        if (m->kind == 1) put_jpeg_residue(&residue, m, deviates);
        if (m->kind == 2) put_jpeg_ls_residue(&residue, m, deviates);
        stream.residue = (struct ref_bytes){.data = residue.data, .size = residue.size};
        ref_clear();
        if (!ref_make_stream(&stream, m->kind)) continue;
        put_items(b, records, m, &stream, &residue);
        return true;
    }
    return false;
}

static bool save(const char *folder, unsigned number, const struct image *m, const char *suffix,
                 const struct ref_stream *b)
{
    static const char *const kinds[] = {"rle", "jpeg", "jpeg_ls"};
    char path[4096];
    (void)snprintf(path, sizeof path, "%s/%u.%s.%s", folder, number, kinds[m->kind], suffix);
    FILE *file = fopen(path, "wb");
    if (!file) return false;
    bool good = fwrite(b->data, 1, b->size, file) == b->size;
    return fclose(file) == 0 && good;
}

static bool make_file(const char *folder, unsigned number)
{
    struct image m = choose_image();
    struct ref_stream b = {.size = 0}, samples = {.size = 0}, records = {.size = 0};
    put_data_set(&b, &m);
    for (uint32_t f = 0; f < m.header.frames; f++) {
        const uint8_t *raster = paint(&m);
        if (!put_stream(&b, &records, &m, raster)) return false;
        ref_put(&samples, raster, ref_raster_size(&m.header));
    }
    put_big(&b, 0xfeffdde0, 4);
    put_number(&b, 0, 4);
    bool good = save(folder, number, &m, "dcm", &b) && save(folder, number, &m, "raw", &samples) &&
                save(folder, number, &m, "records", &records);
    return good || ref_fail("cannot write");
}

int main(int argc, char **argv)
{
    if (argc != 4) {
        fprintf(stderr, "usage: tsr_streams FOLDER COUNT SEED\n");
        return 2;
    }
    unsigned count = (unsigned)strtoul(argv[2], NULL, 10);
    state = strtoull(argv[3], NULL, 10);
    for (unsigned i = 0; i < count; i++) {
        void *mark = ref_mark();
        if (!make_file(argv[1], i)) {
            fprintf(stderr, "tsr_streams: %s.\n", ref_sentence());
            return 1;
        }
        ref_release(mark);
    }
    return 0;
}
