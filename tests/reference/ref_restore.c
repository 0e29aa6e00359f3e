/* FORMAT.md 4: restores the original. */
#include "ref.h"

#include <stdlib.h>
#include <string.h>
#ifdef REF_WITH_ZLIB
#include <zlib.h>
#endif

struct ref_output {
    FILE *file; /* null: nothing is written */
    const struct ref_header *header;
    bool rasters_only;
    struct ref_hash *hash;
    uint64_t size;
    /* Samples of one bit: the bits of a byte that is not yet full. */
    unsigned bit_count;
    uint8_t bit_byte;
    uint8_t last_bits; /* the parameter of 4.1 */
    /* Deflated, 4.2. */
    uint64_t plain_left;
    const uint8_t *tail;
    size_t tail_size;
    struct ref_bytes records; /* 4.4 */
#ifdef REF_WITH_ZLIB
    bool deflating;
    z_stream stream;
#endif
};

/* ---- Bytes of the restored file ---- */

static bool put(struct ref_output *out, const void *data, size_t size)
{
    if (size == 0) return true;
    ref_hash_add(out->hash, data, size);
    out->size += size;
    if (out->file && fwrite(data, 1, size, out->file) != size) return ref_fail("cannot write");
    return true;
}

#ifdef REF_WITH_ZLIB
static bool put_deflated(struct ref_output *out, const uint8_t *data, size_t size, int flush)
{
    do {
        size_t part = size < (1u << 20) ? size : (1u << 20);
        out->stream.next_in = (z_const Bytef *)data;
        out->stream.avail_in = (uInt)part;
        data += part;
        size -= part;
        uint8_t buffer[1 << 14];
        do {
            out->stream.next_out = buffer;
            out->stream.avail_out = sizeof buffer;
            if (deflate(&out->stream, size == 0 ? flush : Z_NO_FLUSH) == Z_STREAM_ERROR)
                return ref_fail("zlib's deflate fails");
            if (!put(out, buffer, sizeof buffer - out->stream.avail_out)) return false;
        } while (out->stream.avail_out == 0);
    } while (size > 0);
    return true;
}
#endif

/* Writes bytes, which are deflated if the file is. */
static bool put_inner(struct ref_output *out, const uint8_t *data, size_t size)
{
#ifdef REF_WITH_ZLIB
    if (out->deflating) {
        size_t plain = size < out->plain_left ? size : (size_t)out->plain_left;
        if (!put(out, data, plain)) return false;
        out->plain_left -= plain;
        return plain == size || put_deflated(out, data + plain, size - plain, Z_NO_FLUSH);
    }
#endif
    return put(out, data, size);
}

/* ---- 4.3 PNG: IDAT chunks with the raster. Each row has filter 0. ---- */

#ifdef REF_WITH_ZLIB
static bool put_chunk(struct ref_output *out, const char *type, const uint8_t *data, size_t size)
{
    uint8_t number[4];
    for (int i = 0; i < 4; i++) number[i] = (uint8_t)(size >> (24 - 8 * i));
    if (!put(out, number, 4) || !put(out, type, 4) || !put(out, data, size)) return false;
    uLong crc = crc32(crc32(0, NULL, 0), (const Bytef *)type, 4);
    if (size > 0) crc = crc32(crc, data, (uInt)size);
    for (int i = 0; i < 4; i++) number[i] = (uint8_t)(crc >> (24 - 8 * i));
    return put(out, number, 4);
}

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

/* Turns the same rows into samples again. Returns their bytes. */
static size_t unfilter_rows(const struct ref_header *h, const uint8_t *rows, uint32_t x0, uint32_t y0, uint32_t dx,
                            uint32_t dy, uint8_t *raster)
{
    if (x0 >= h->columns) return 0;
    size_t at = 0, row = ((size_t)((h->columns - x0 + dx - 1) / dx) * h->components * h->stored + 7) / 8;
    unsigned bytes = h->allocated / 8;
    for (uint32_t y = y0; y < h->rows; y += dy, at += row + 1) {
        struct ref_bits b = ref_string(rows + at + 1, row);
        for (uint32_t x = x0; x < h->columns; x += dx)
            for (unsigned c = 0; c < h->components; c++) {
                uint8_t *to = raster + (((size_t)y * h->columns + x) * h->components + c) * bytes;
                uint32_t sample = ref_u(&b, h->stored);
                for (unsigned k = 0; k < bytes; k++)
                    to[k] = (uint8_t)(sample >> 8 * (h->big_endian ? bytes - 1 - k : k));
            }
    }
    return at;
}

static const uint32_t whole_image[1][4] = {{0, 0, 1, 1}};
static const uint32_t adam7[7][4] = {{0, 0, 8, 8}, {4, 0, 8, 8}, {0, 4, 4, 8}, {2, 0, 4, 4},
                                     {0, 2, 2, 4}, {1, 0, 2, 2}, {0, 1, 1, 2}};

/* 4.3: IDAT chunks that were made are read again. */
static bool check_idat(const struct ref_header *h, const uint8_t *packed, size_t packed_size, size_t size,
                       const uint8_t *raster)
{
    uLongf got = (uLongf)size;
    uint8_t *rows = ref_alloc(size, 1), *again = ref_alloc(ref_raster_size(h), 1);
    if (uncompress(rows, &got, packed, (uLong)packed_size) != Z_OK || got != size)
        return ref_fail("zlib does not read what it wrote");
    const uint32_t(*passes)[4] = h->parameters[1] ? adam7 : whole_image;
    size_t at = 0;
    for (int p = 0; p < (h->parameters[1] ? 7 : 1); p++)
        at += unfilter_rows(h, rows + at, passes[p][0], passes[p][1], passes[p][2], passes[p][3], again);
    return (at == size && memcmp(again, raster, ref_raster_size(h)) == 0) ||
           ref_fail("the chunks do not hold the raster");
}

static bool put_idat(struct ref_output *out, const uint8_t *raster)
{
    const struct ref_header *h = out->header;
    size_t row = ((size_t)h->columns * h->components * h->stored + 7) / 8 + 1;
    uint8_t *rows = ref_alloc(h->rows + 8, (row + 8) * 2); /* passes have at most twice the rows, and spare bits */
    size_t size = 0;
    const uint32_t(*passes)[4] = h->parameters[1] ? adam7 : whole_image;
    for (int p = 0; p < (h->parameters[1] ? 7 : 1); p++)
        size += filter_rows(h, raster, passes[p][0], passes[p][1], passes[p][2], passes[p][3], rows + size);
    uLongf packed_size = compressBound((uLong)size);
    uint8_t *packed = ref_alloc(packed_size, 1);
    if (compress2(packed, &packed_size, rows, (uLong)size, 6) != Z_OK) return ref_fail("zlib's compress2 fails");
    if (!check_idat(h, packed, (size_t)packed_size, size, raster)) return false;
    for (size_t at = 0; at < packed_size;) {
        size_t part = packed_size - at < (1u << 20) ? packed_size - at : (1u << 20);
        if (!put_chunk(out, "IDAT", packed + at, part)) return false;
        at += part;
    }
    return true;
}
#endif

static bool check_png(const struct ref_header *h)
{
    if (h->parameter_count != 2) return ref_fail("the parameters of PNG are corrupt");
    static const unsigned components[7] = {1, 0, 3, 1, 2, 0, 4};
    unsigned type = h->parameters[0];
    if (type > 6 || components[type] != h->components) return ref_fail("the colour type is wrong");
    if (h->parameters[1] > 1) return ref_fail("the interlace method is unknown");
    unsigned b = h->stored;
    if (h->allocated != (b == 16 ? 16u : 8u) || (b != 1 && b != 2 && b != 4 && b != 8 && b != 16) || h->high != b - 1)
        return ref_fail("the depth is wrong");
    if (h->planar || h->is_signed || h->swapped || h->frames != 1 || (b == 16 && !h->big_endian))
        return ref_fail("the layout is not one of PNG");
#ifndef REF_WITH_ZLIB
    return ref_fail("this program was built without zlib");
#else
    return true;
#endif
}

/* ---- The parts of a file, in order ---- */

static bool begin(struct ref_output *out)
{
    const struct ref_header *h = out->header;
    if (h->restore == REF_ENCAPSULATED && !ref_check_encapsulated(h)) return false;
    if (out->rasters_only) return h->restore != REF_VERBATIM || ref_fail("a verbatim file has no samples");
    if (h->restore == REF_VERBATIM || h->restore == REF_ENCAPSULATED) return true;
    if (h->restore == REF_PNG) return check_png(h);
    struct ref_bytes b = {.data = h->parameters, .size = h->parameter_count};
    if (h->restore == REF_DEFLATED) {
        out->plain_left = ref_varint(&b);
        unsigned level = (unsigned)ref_number(&b, 1);
        out->tail_size = (size_t)ref_number(&b, 1);
        out->tail = ref_take(&b, out->tail_size);
        if (b.bad || level < 1 || level > 9) return ref_fail("the parameters of deflate are corrupt");
#ifdef REF_WITH_ZLIB
        if (deflateInit2(&out->stream, (int)level, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY) != Z_OK)
            return ref_fail("zlib's deflate fails");
        out->deflating = true;
#else
        return ref_fail("this program was built without zlib");
#endif
    }
    unsigned used = (unsigned)(ref_frame_bits(h) * h->frames % 8); /* bits that are used of the last byte */
    if (used != 0) out->last_bits = (uint8_t)ref_number(&b, 1);
    return (!b.bad && ref_left(&b) == 0 && out->last_bits >> (8 - used) == 0) || ref_fail("the parameters are corrupt");
}

struct ref_output *ref_output_open(const char *path, const struct ref_header *header, bool rasters_only)
{
    struct ref_output *out = ref_alloc(1, sizeof *out);
    out->header = header;
    out->rasters_only = rasters_only;
    out->hash = ref_hash_begin();
    bool good = begin(out);
    if (good && path) {
        out->file = fopen(path, "wb");
        if (!out->file) good = ref_fail("cannot write %s", path);
    }
    if (good) return out;
    ref_output_close(out, NULL);
    return NULL;
}

bool ref_output_blob(struct ref_output *out, const uint8_t *content, size_t size)
{
    return out->rasters_only || put_inner(out, content, size);
}

void ref_output_records(struct ref_output *out, const uint8_t *records, size_t size)
{
    out->records = (struct ref_bytes){.data = records, .size = size};
}

static bool put_item(void *to, const void *data, size_t size)
{
    return put(to, data, size);
}

bool ref_output_frame(struct ref_output *out, const uint8_t *raster)
{
    const struct ref_header *h = out->header;
    size_t size = ref_raster_size(h);
    if (out->rasters_only) return put(out, raster, size);
#ifdef REF_WITH_ZLIB
    if (h->restore == REF_PNG) return put_idat(out, raster);
#endif
    if (h->restore == REF_ENCAPSULATED) return ref_encapsulate(h, raster, &out->records, put_item, out);
    if (h->allocated > 1) return put_inner(out, raster, size);
    /* 3.2: frames of one bit follow each other without padding. */
    uint64_t bits = ref_frame_bits(h);
    for (uint64_t i = 0; i < bits; i++) {
        out->bit_byte |= (uint8_t)((raster[i / 8] >> (i % 8) & 1) << out->bit_count);
        if (++out->bit_count == 8) {
            if (!put_inner(out, &out->bit_byte, 1)) return false;
            out->bit_count = 0;
            out->bit_byte = 0;
        }
    }
    return true;
}

bool ref_output_samples_end(struct ref_output *out)
{
    if (out->rasters_only) return true;
    if (ref_left(&out->records) > 0) return ref_fail("records go on after the last frame"); /* 4.4 */
    if (out->bit_count == 0) return true;
    out->bit_byte |= (uint8_t)(out->last_bits << out->bit_count); /* 4.1 */
    return put_inner(out, &out->bit_byte, 1);
}

bool ref_output_close(struct ref_output *out, struct ref_piece *restored)
{
    bool good = true;
    if (restored && !out->rasters_only && out->records.size > out->size)
        good = ref_fail("the records are longer than the restored file"); /* 4.4 */
#ifdef REF_WITH_ZLIB
    if (out->deflating) {
        if (restored && out->plain_left > 0) good = ref_fail("the deflated part begins behind the end");
        if (restored && good) good = put_deflated(out, NULL, 0, Z_FINISH) && put(out, out->tail, out->tail_size);
        deflateEnd(&out->stream);
        out->deflating = false;
    }
#endif
    if (out->file && fclose(out->file) != 0) good = ref_fail("cannot write");
    struct ref_piece end = {.size = out->size};
    ref_hash_end(out->hash, end.hash);
    if (restored) *restored = end;
    return good;
}
