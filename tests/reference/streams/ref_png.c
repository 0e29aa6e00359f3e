/* PNG.md: IDAT chunks. */
#include "ref_deflate.h"

#include <stdlib.h>
#include <string.h>

static const uint32_t whole_image[1][4] = {{0, 0, 1, 1}};
static const uint32_t adam7[7][4] = {{0, 0, 8, 8}, {4, 0, 8, 8}, {0, 4, 4, 8}, {2, 0, 4, 4},
                                     {0, 2, 2, 4}, {1, 0, 2, 2}, {0, 1, 1, 2}};

/* ---- Chunks (PNG specification, 5.3 and annex D) ---- */

struct chunks {
    uint8_t *bytes;
    size_t size;
};

static uint8_t *put_number(uint8_t *to, uint32_t number)
{
    for (int i = 0; i < 4; i++) to[i] = (uint8_t)(number >> (24 - 8 * i));
    return to + 4;
}

uint32_t ref_crc32(const uint8_t *data, size_t size)
{
    uint32_t value = UINT32_MAX;
    for (size_t i = 0; i < size; i++) {
        value ^= data[i];
        for (int k = 0; k < 8; k++) value = value >> 1 ^ (value & 1 ? 0xedb88320 : 0);
    }
    return ~value;
}

/* There is room for 16 bytes more than the data. sequence: null for IDAT. */
static void put_chunk(struct chunks *chunks, uint32_t *sequence, const uint8_t *data, size_t size)
{
    size_t all = size + (sequence ? 4 : 0);
    uint8_t *to = put_number(chunks->bytes + chunks->size, (uint32_t)all);
    memcpy(to, sequence ? "fdAT" : "IDAT", 4);
    if (sequence) (void)put_number(to + 4, (*sequence)++);
    if (size > 0) memcpy(to + 4 + all - size, data, size);
    (void)put_number(to + 4 + all, ref_crc32(to, all + 4));
    chunks->size += all + 12;
}

/* ---- Rows ---- */

/* Writes the rows of a reduced image or of the whole one: columns x0, x0 + dx, ..., rows y0, y0 + dy, ... Returns their
 * bytes. */
static size_t filter_rows(const struct ref_header *h, const uint8_t *raster, uint32_t x0, uint32_t y0, uint32_t dx,
                          uint32_t dy, uint8_t *to)
{
    size_t at = 0;
    unsigned bytes = h->allocated / 8;
    if (x0 >= h->columns) return 0; /* an empty pass has no rows */
    for (uint32_t y = y0; y < h->rows; y += dy) {
        to[at++] = 0;
        size_t bit = 0;
        for (uint32_t x = x0; x < h->columns; x += dx)
            for (unsigned c = 0; c < h->components; c++) {
                const uint8_t *from = raster + (((size_t)y * h->columns + x) * h->components + c) * bytes;
                if (bytes == 2) {
                    to[at + bit / 8] = from[h->big_endian ? 0 : 1];
                    to[at + bit / 8 + 1] = from[h->big_endian ? 1 : 0];
                } else {
                    to[at + bit / 8] |= (uint8_t)(from[0] << (8 - h->stored - bit % 8));
                }
                bit += h->stored;
            }
        at += (bit + 7) / 8;
    }
    return at;
}

/* All rows without filters, in memory of ref_alloc(). */
static uint8_t *all_rows(const struct ref_header *h, const uint8_t *raster, size_t *size)
{
    size_t row = ((size_t)h->columns * h->components * h->stored + 7) / 8 + 1;
    uint8_t *rows = ref_alloc(h->rows + 8, (row + 8) * 2); /* passes have at most twice the rows, and spare bits */
    const uint32_t(*passes)[4] = h->parameters[1] & 1 ? adam7 : whole_image;
    *size = 0;
    for (int p = 0; p < (h->parameters[1] & 1 ? 7 : 1); p++)
        *size += filter_rows(h, raster, passes[p][0], passes[p][1], passes[p][2], passes[p][3], rows + *size);
    return rows;
}

/* PNG specification, 9.4 */
static int paeth(int a, int b, int c)
{
    int p = a + b - c, pa = abs(p - a), pb = abs(p - b), pc = abs(p - c);
    return pa <= pb && pa <= pc ? a : pb <= pc ? b : c;
}

/* PNG specification, 9.2: to and row begin with the filter type. above is null for the first row of a pass. */
void ref_filter_row(unsigned type, const uint8_t *row, const uint8_t *above, size_t size, size_t step, uint8_t *to)
{
    to[0] = (uint8_t)type;
    for (size_t i = 1; i < size; i++) {
        int a = i > step ? row[i - step] : 0, b = above ? above[i] : 0, c = above && i > step ? above[i - step] : 0;
        int predictions[5] = {0, a, b, (a + b) / 2, paeth(a, b, c)};
        to[i] = (uint8_t)(row[i] - predictions[type]);
    }
}

/* Step 1 of PNG.md: the plain bytes, in memory of ref_alloc(). types: each row's, or only one. */
static uint8_t *plain_bytes(const struct ref_header *h, const uint8_t *rows, size_t size, const uint8_t *types,
                            bool each)
{
    uint8_t *plain = ref_alloc(size, 1);
    const uint32_t(*passes)[4] = h->parameters[1] & 1 ? adam7 : whole_image;
    size_t at = 0, bits = h->components * h->stored, step = bits < 8 ? 1 : bits / 8;
    for (int p = 0; p < (h->parameters[1] & 1 ? 7 : 1); p++) {
        uint32_t x0 = passes[p][0], dx = passes[p][2];
        if (x0 >= h->columns) continue;
        size_t row = 1 + ((h->columns - x0 + dx - 1) / dx * bits + 7) / 8;
        for (uint32_t y = passes[p][1]; y < h->rows; y += passes[p][3], at += row) {
            ref_filter_row(*types, rows + at, y == passes[p][1] ? NULL : rows + at - row, row, step, plain + at);
            types += each;
        }
    }
    return plain;
}

static uint32_t row_count(const struct ref_header *h)
{
    if (!(h->parameters[1] & 1)) return h->rows;
    uint32_t count = 0;
    for (int p = 0; p < 7; p++)
        if (adam7[p][0] < h->columns)
            for (uint32_t y = adam7[p][1]; y < h->rows; y += adam7[p][3]) count++;
    return count;
}

/* ---- PNG.md 2: the same chunks, if bit 0 of flags is set ---- */

struct residue {
    uint64_t chunks, size, said; /* said: by the last chunk, if it is cut */
    unsigned flags;
    uint32_t sequence;      /* of the next chunk of a frame */
    struct ref_bytes sizes; /* if they are listed, else data is null */
    struct ref_bytes wrong; /* checks */
    uint64_t wrong_count;
    const uint8_t *head, *tail, *filters;
    uint64_t tail_size;
    bool each; /* each row has a filter of its own */
    struct ref_bytes deflated;
};

/* h: null if it has no rows. */
static bool read_residue(const struct ref_header *h, struct ref_bytes *b, struct residue *r)
{
    memset(r, 0, sizeof *r);
    r->chunks = ref_varint(b);
    r->size = ref_varint(b);
    r->flags = (unsigned)ref_number(b, 1);
    if (b->bad || r->chunks < 1 || r->flags > 31 || r->size > INT32_MAX) return false;
    if (r->flags & 1) {
        r->sizes = *b;
        for (uint64_t i = 0; i + 1 < r->chunks; i++)
            if (ref_varint(b) > INT32_MAX || b->bad) return false;
    }
    if (r->flags & 8) r->said = ref_varint(b);
    if (r->flags & 16) r->sequence = (uint32_t)ref_number(b, 4);
    r->head = ref_take(b, 2);
    r->tail_size = ref_varint(b);
    r->tail = ref_take(b, r->tail_size);
    if (r->flags & 2) r->wrong_count = ref_varint(b);
    r->wrong = *b;
    for (uint64_t i = 0; i < r->wrong_count; i++) {
        ref_varint(b);
        ref_take(b, 4);
        if (b->bad) return false;
    }
    if (h) r->filters = ref_take(b, 1);
    if (b->bad) return false;
    size_t types = h ? 1 : 0;
    if (h && r->filters[0] == 255) {
        r->each = true;
        types = row_count(h);
        r->filters = ref_take(b, types);
        if (b->bad) return false;
    }
    for (size_t i = 0; i < types; i++)
        if (r->filters[i] > 4) return false;
    r->deflated = (struct ref_bytes){.data = b->data + b->at, .size = ref_left(b)};
    return true;
}

static uint32_t adler(const uint8_t *data, size_t size)
{
    uint32_t a = 1, b = 0;
    for (size_t i = 0; i < size; i++) {
        a = (a + data[i]) % 65521;
        b = (b + a) % 65521;
    }
    return b << 16 | a;
}

/* The wrong CRCs of the chunks before a byte. */
static bool put_wrong(struct residue *r, struct chunks *chunks, size_t end)
{
    uint64_t number = 0;
    for (size_t at = 0; r->wrong_count > 0; r->wrong_count--) {
        uint64_t place = ref_varint(&r->wrong);
        if (place <= number) return ref_fail("the places of wrong checks of PNG do not rise");
        for (; number < place; number++) {
            if (at == end) return ref_fail("a wrong check of PNG has no chunk");
            const uint8_t *c = chunks->bytes + at;
            at += 12 + ((size_t)c[0] << 24 | (size_t)c[1] << 16 | (size_t)c[2] << 8 | c[3]);
        }
        memcpy(chunks->bytes + at - 4, ref_take(&r->wrong, 4), 4);
    }
    return true;
}

/* Step 3. */
static bool cut_stream(const uint8_t *stream, size_t size, struct residue *r, struct chunks *chunks)
{
    if (r->chunks > INT32_MAX / 16) return ref_fail("the chunks of PNG are too many");
    chunks->bytes = ref_alloc(size + (size_t)r->chunks * 16, 1);
    size_t at = 0;
    for (uint64_t i = 0; i + 1 < r->chunks; i++) {
        uint64_t part = r->sizes.data ? ref_varint(&r->sizes) : r->size;
        if (part > size - at) return ref_fail("the chunks of PNG are larger than the stream");
        put_chunk(chunks, r->flags & 16 ? &r->sequence : NULL, stream + at, (size_t)part);
        at += (size_t)part;
    }
    if (size - at > INT32_MAX) return ref_fail("the last chunk of PNG is too large");
    size_t whole = chunks->size;
    put_chunk(chunks, r->flags & 16 ? &r->sequence : NULL, stream + at, size - at);
    if (!(r->flags & 8)) return put_wrong(r, chunks, chunks->size);
    if (r->said < size - at + (r->flags & 16 ? 4 : 0) || r->said > INT32_MAX)
        return ref_fail("a cut chunk of PNG says too few bytes");
    chunks->size -= 4;
    (void)put_number(chunks->bytes + whole, (uint32_t)r->said);
    return put_wrong(r, chunks, whole);
}

/* Steps 2 and 3. */
static bool put_plain(const uint8_t *plain, size_t size, struct residue *r, struct chunks *chunks)
{
    struct ref_deflate_out out = {.bits = 0};
    for (int i = 0; i < 2; i++) ref_deflate_bits(&out, r->head[i], 8);
    if (!ref_deflate(plain, size, r->deflated.data, r->deflated.size, &out)) return false;
    uint8_t check[4];
    (void)put_number(check, adler(plain, size));
    if (!(r->flags & 4) && r->wrong_count > 0 && r->wrong.data[r->wrong.at] == 0) {
        ref_varint(&r->wrong);
        memcpy(check, ref_take(&r->wrong, 4), 4);
        r->wrong_count--;
    }
    for (int i = 0; i < 4 && !(r->flags & 4); i++) ref_deflate_bits(&out, check[i], 8);
    for (uint64_t i = 0; i < r->tail_size; i++) ref_deflate_bits(&out, r->tail[i], 8);
    return cut_stream(out.bytes, (size_t)(out.bits / 8), r, chunks);
}

static bool same_chunks(const struct ref_header *h, const uint8_t *raster, struct ref_bytes residue,
                        struct chunks *chunks)
{
    struct residue r;
    if (!read_residue(h, &residue, &r)) return ref_fail("the residue of PNG is corrupt");
    size_t size;
    uint8_t *rows = all_rows(h, raster, &size);
    return put_plain(plain_bytes(h, rows, size, r.filters, r.each), size, &r, chunks);
}

bool ref_plain_chunks(const uint8_t *plain, size_t plain_size, const uint8_t *residue, size_t residue_size,
                      uint8_t **bytes, size_t *size)
{
    struct residue r;
    struct chunks chunks = {NULL, 0};
    struct ref_bytes b = {.data = residue, .size = residue_size};
    if (!read_residue(NULL, &b, &r)) return ref_fail("the residue of PNG is corrupt");
    if (!put_plain(plain, plain_size, &r, &chunks)) return false;
    *bytes = chunks.bytes;
    *size = chunks.size;
    return true;
}

void ref_png_start(const uint8_t *ihdr, uint8_t start[33])
{
    memcpy(start, "\x89PNG\r\n\x1a\n\0\0\0\15IHDR", 16);
    memcpy(start + 16, ihdr, 13);
    (void)put_number(start + 29, ref_crc32(start + 12, 17));
}

/* ---- PNG.md 3: chunks written anew, if bit 0 of flags is not set ---- */

/* Step 1: each row's filter type, in memory of ref_alloc(). */
static uint8_t *chosen_types(const struct ref_header *h, const uint8_t *rows)
{
    uint8_t *types = ref_alloc(row_count(h), 1), *filtered = ref_alloc((size_t)h->columns * 8 + 2, 1), *next = types;
    const uint32_t(*passes)[4] = h->parameters[1] & 1 ? adam7 : whole_image;
    size_t at = 0, bits = h->components * h->stored, step = bits < 8 ? 1 : bits / 8;
    bool is_plain = h->stored < 8 || h->parameters[0] == 3;
    for (int p = 0; p < (h->parameters[1] & 1 ? 7 : 1); p++) {
        uint32_t x0 = passes[p][0], dx = passes[p][2];
        if (x0 >= h->columns) continue;
        size_t row = 1 + ((h->columns - x0 + dx - 1) / dx * bits + 7) / 8;
        for (uint32_t y = passes[p][1]; y < h->rows; y += passes[p][3], at += row, next++) {
            uint64_t least = UINT64_MAX;
            for (unsigned type = 0; type < (is_plain ? 1U : 5U); type++) {
                ref_filter_row(type, rows + at, y == passes[p][1] ? NULL : rows + at - row, row, step, filtered);
                uint64_t cost = 0;
                for (size_t i = 1; i < row; i++) cost += filtered[i] < 128 ? filtered[i] : 256u - filtered[i];
                if (cost < least) *next = (uint8_t)type;
                if (cost < least) least = cost;
            }
        }
    }
    return types;
}

static bool new_chunks(const struct ref_header *h, const uint8_t *raster, struct chunks *chunks)
{
    size_t size;
    const size_t most = 1 << 20;
    uint8_t *rows = all_rows(h, raster, &size), check[4];
    uint8_t *plain = plain_bytes(h, rows, size, chosen_types(h, rows), true);
    struct ref_deflate_out out = {.bits = 0};
    ref_deflate_bits(&out, 0x78, 8);
    ref_deflate_bits(&out, 0x01, 8);
    if (!ref_deflate_anew(plain, size, &out)) return false;
    (void)put_number(check, adler(plain, size));
    for (int i = 0; i < 4; i++) ref_deflate_bits(&out, check[i], 8);
    size_t bytes = (size_t)(out.bits / 8);
    chunks->bytes = ref_alloc(bytes + (bytes / most + 1) * 16, 1);
    for (size_t at = 0; at < bytes; at += most)
        put_chunk(chunks, NULL, out.bytes + at, bytes - at < most ? bytes - at : most);
    return true;
}

bool ref_check_png(const struct ref_header *h)
{
    if (h->parameter_count != 2) return ref_fail("the parameters of PNG are corrupt");
    static const unsigned components[7] = {1, 0, 3, 1, 2, 0, 4};
    unsigned type = h->parameters[0];
    if (type > 6 || components[type] != h->components) return ref_fail("the colour type is wrong");
    if (h->parameters[1] > 7) return ref_fail("the form of a PNG is unknown");
    unsigned b = h->stored;
    if (h->allocated != (b == 16 ? 16u : 8u) || (b != 1 && b != 2 && b != 4 && b != 8 && b != 16) || h->high != b - 1)
        return ref_fail("the depth is wrong");
    if (h->planar || h->is_signed || h->swapped || h->frames != 1 || (b == 16 && !h->big_endian))
        return ref_fail("the layout is not one of PNG");
    return true;
}

bool ref_png_chunks(const struct ref_header *h, const uint8_t *raster, const uint8_t *residue, size_t residue_size,
                    uint8_t **bytes, size_t *size)
{
    struct chunks chunks = {NULL, 0};
    bool good = false;
    if (h->exact) good = same_chunks(h, raster, (struct ref_bytes){.data = residue, .size = residue_size}, &chunks);
    if (!h->exact) good = new_chunks(h, raster, &chunks);
    *bytes = chunks.bytes;
    *size = chunks.size;
    return good;
}
