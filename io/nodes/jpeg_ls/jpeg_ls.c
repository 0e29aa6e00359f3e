/* Streams of JPEG-LS without loss as samples and residue, and back. JPEG_LS.md. */
#include "jpeg_ls.h"

#include <stdlib.h>
#include <string.h>

#include "io/bytes/cursor.h"

enum { FF = 0xff, SLACK = 80 };

static const uint8_t usual_tails[][3] = {{0xff, 0xd9}, {0xff, 0xd9, 0}}; /* EOI, and a byte that makes the size even */
enum { USUAL_TAILS = 2 };

static uint32_t interval_rows(const struct tsr_jpeg_ls_headers *headers, const struct tsr_image *image, uint32_t first)
{
    const uint32_t left = image->rows - first;
    return headers->restart_lines > 0 && headers->restart_lines < left ? headers->restart_lines : left;
}

/* ---- Reading --------------------------------------------------------------------------------------------- */

/* The coded bytes of an interval, and what stands after their last whole byte. */
struct interval {
    const uint8_t *bytes;
    size_t size;  /* up to a marker, or to the end of the stream */
    size_t bits;  /* without stuffing */
    size_t whole; /* bytes that hold bits of the samples alone */
};

/* Where the coded bytes end: at FF with a byte from 80 on after it. */
static size_t find_end(const uint8_t *bytes, size_t size)
{
    for (size_t at = 0; at < size;) {
        const uint8_t *ff = memchr(bytes + at, FF, size - at);
        if (!ff) return size;
        at = (size_t)(ff - bytes);
        if (at + 1 < size && bytes[at + 1] >= 0x80) return at;
        at += 2;
    }
    return size;
}

/* Appends count bits, at most 56, from the top of value: it has no others. filled < 8 bits of *at are in use. */
static void append(uint8_t **at, uint64_t *last, unsigned *filled, uint64_t value, unsigned count)
{
    const uint64_t all = *last | value >> *filled;
    for (unsigned i = 0; i < 8; i++) (*at)[i] = (uint8_t)(all >> (56 - 8 * i));
    *filled += count;
    *at += *filled >> 3;
    *last = all << (*filled & ~7u);
    *filled &= 7;
}

static uint64_t load_seven(const uint8_t *bytes)
{
    uint64_t value = 0;
    for (unsigned i = 0; i < 7; i++) value |= (uint64_t)bytes[i] << (56 - 8 * i);
    return value;
}

/* Takes the stuffing out: out has room for size + SLACK bytes, and ends in at least 64 zeros. */
static void take_stuffing(struct interval *interval, uint8_t *out)
{
    const uint8_t *from = interval->bytes, *const end = from + interval->size;
    uint8_t *at = out;
    uint64_t last = 0;
    unsigned filled = 0;
    while (from < end) {
        const uint8_t *ff = memchr(from, FF, (size_t)(end - from));
        const uint8_t *const stop = ff ? ff + 1 : end;
        for (; stop - from >= 7; from += 7) append(&at, &last, &filled, load_seven(from), 56);
        for (; from < stop; from++) append(&at, &last, &filled, (uint64_t)*from << 56, 8);
        if (ff && from < end) append(&at, &last, &filled, (uint64_t)*from++ << 57, 7);
    }
    interval->bits = 8 * (size_t)(at - out) + filled;
    append(&at, &last, &filled, 0, 0);
    memset(at + 8, 0, SLACK - 16);
}

/* Finds the bytes that are whole once the first used bits are the samples'. Returns the bits of the next byte that are
 * the samples', too. */
static size_t find_whole(struct interval *interval, size_t used)
{
    size_t spare = interval->bits - used, size = interval->size;
    for (; size > 0; size--) {
        const size_t last = size > 1 && interval->bytes[size - 2] == FF ? 7 : 8;
        if (spare < last) {
            interval->whole = spare > 0 ? size - 1 : size;
            return spare > 0 ? last - spare : 0;
        }
        spare -= last;
    }
    interval->whole = 0;
    return 0;
}

/* Whether the encoder makes the same bytes after the whole ones: zeros, and a byte of zeros after FF. */
static bool has_usual_end(const struct interval *interval, size_t used_bits)
{
    const bool after_ff = interval->whole > 0 && interval->bytes[interval->whole - 1] == FF;
    if (used_bits == 0 && !after_ff) return interval->size == interval->whole;
    const size_t spare = (after_ff ? 7 : 8) - used_bits;
    return interval->size - interval->whole == 1 && (interval->bytes[interval->whole] & ((1u << spare) - 1)) == 0;
}

struct reader {
    const struct tsr_image *image;
    const uint8_t *stream;
    size_t size, at;
    uint8_t *raster;
    struct tsr_jpeg_ls_headers headers;
    struct tsr_jpeg_ls_coder *coder;
    uint8_t *bits; /* of an interval, room for all of the stream */
    struct tsr_bytes *residue;
};

/* Passes a restart marker with its fill bytes. */
static enum tsr_status pass_restart(struct reader *r, struct tsr_error *error)
{
    size_t at = r->at;
    while (at < r->size && r->stream[at] == FF) at++;
    if (at == r->at || at == r->size || r->stream[at] < TSR_JPEG_RST0 || r->stream[at] > TSR_JPEG_RST7)
        return tsr_fail_at(error, TSR_ERROR_CORRUPT, at, "it has no restart marker where one is expected");
    r->at = at + 1;
    return TSR_OK;
}

/* Reads interval number of a scan, from row first on, and the restart marker after it. */
static enum tsr_status read_interval(struct reader *r, uint32_t number, uint32_t first, uint32_t rows,
                                     struct tsr_error *error)
{
    struct interval interval = {.bytes = r->stream + r->at};
    const bool is_last = first + rows == r->image->rows;
    interval.size = find_end(interval.bytes, r->size - r->at);
    take_stuffing(&interval, r->bits);
    const size_t used = tsr_jpeg_ls_decode(r->coder, r->bits, r->raster, first, rows);
    if (used > interval.bits)
        return tsr_fail_at(error, TSR_ERROR_CORRUPT, r->at, "it ends early or has a code that is not valid");
    const size_t used_bits = find_whole(&interval, used);
    const uint8_t *const rest = interval.bytes + interval.whole;
    bool is_usual = has_usual_end(&interval, used_bits);
    r->at += interval.size;
    if (!is_last) {
        const size_t marker = r->at;
        TSR_TRY(pass_restart(r, error));
        is_usual = is_usual && r->at - marker == 2 && r->stream[r->at - 1] == TSR_JPEG_RST0 + number % 8;
    }
    if (is_usual) return tsr_bytes_put_varint(r->residue, 0, error);
    return tsr_bytes_put_list(r->residue, rest, (size_t)(r->stream + r->at - rest), 1, error);
}

static enum tsr_status read_scan(struct reader *r, struct tsr_error *error)
{
    const size_t start = r->at;
    TSR_TRY(tsr_jpeg_ls_read_headers(&r->headers, r->image, r->stream, r->size, &r->at, error));
    TSR_TRY(tsr_bytes_put_list(r->residue, r->stream + start, r->at - start, 0, error));
    tsr_jpeg_ls_set_scan(r->coder, &r->headers);
    uint32_t number = 0;
    for (uint32_t y = 0; y < r->image->rows; number++) {
        const uint32_t rows = interval_rows(&r->headers, r->image, y);
        TSR_TRY(read_interval(r, number, y, rows, error));
        y += rows;
    }
    return TSR_OK;
}

static enum tsr_status read_all(struct reader *r, struct tsr_error *error)
{
    while (!tsr_jpeg_ls_is_complete(&r->headers)) TSR_TRY(read_scan(r, error));
    if (r->headers.transform > 0) tsr_jpeg_ls_restore_colours(r->image, &r->headers, r->raster);
    const uint8_t *const tail = r->stream + r->at;
    const size_t size = r->size - r->at;
    for (unsigned i = 0; i < USUAL_TAILS; i++)
        if (size == 2 + i && memcmp(tail, usual_tails[i], size) == 0) return tsr_bytes_put_varint(r->residue, i, error);
    return tsr_bytes_put_list(r->residue, tail, size, USUAL_TAILS, error);
}

/* r: its image, stream, raster and residue. */
static enum tsr_status read_stream(struct reader *r, struct tsr_error *error)
{
    TSR_TRY(tsr_jpeg_ls_create(r->image, &r->coder, error));
    r->bits = malloc(r->size + SLACK);
    const enum tsr_status status =
        r->bits ? read_all(r, error) : tsr_fail(error, TSR_ERROR_LIMIT, "no memory for %zu bytes", r->size);
    free(r->bits);
    tsr_jpeg_ls_free(r->coder);
    return status;
}

static enum tsr_status split(const struct tsr_node_work *node, const uint8_t *stream, size_t size, size_t *used,
                             struct tsr_bytes *plain, struct tsr_bytes *residue, struct tsr_error *error)
{
    struct reader r = {
        .image = node->image, .stream = stream, .size = size, .raster = plain->bytes, .residue = residue};
    *used = size;
    plain->size = plain->capacity;
    return read_stream(&r, error);
}

enum tsr_status tsr_jpeg_ls_read(const struct tsr_image *image, const uint8_t *stream, size_t size, uint8_t *raster,
                                 struct tsr_error *error)
{
    struct tsr_bytes residue = {.limit = SIZE_MAX / 4};
    struct reader r = {.image = image,
                       .stream = stream,
                       .size = size,
                       .raster = raster,
                       .headers = {.takes_near = true},
                       .residue = &residue};
    const enum tsr_status status = read_stream(&r, error);
    tsr_bytes_free(&residue);
    return status;
}

/* ---- Writing --------------------------------------------------------------------------------------------- */

struct writer {
    const struct tsr_image *image;
    const uint8_t *raster;
    struct tsr_jpeg_ls_headers headers;
    struct tsr_jpeg_ls_coder *coder;
    struct tsr_cursor residue;
    struct tsr_bytes *stream;
};

static enum tsr_status refuse(struct tsr_error *error)
{
    return tsr_fail(error, TSR_ERROR_CORRUPT, "a residue of JPEG-LS is not valid");
}

static enum tsr_status write_interval(struct writer *w, uint32_t number, uint32_t first, uint32_t rows,
                                      struct tsr_error *error)
{
    const size_t start = w->stream->size;
    size_t whole;
    const uint64_t code = tsr_get_varint(&w->residue);
    if (w->residue.bad) return refuse(error);
    TSR_TRY(tsr_jpeg_ls_encode(w->coder, w->raster, first, rows, w->stream, &whole, error));
    if (code > 0) {
        const uint8_t *rest = tsr_get_bytes(&w->residue, code - 1);
        if (!rest) return refuse(error);
        w->stream->size = start + whole;
        return tsr_bytes_put(w->stream, rest, (size_t)(code - 1), error);
    }
    const uint8_t marker[2] = {FF, (uint8_t)(TSR_JPEG_RST0 + number % 8)};
    return first + rows < w->image->rows ? tsr_bytes_put(w->stream, marker, 2, error) : TSR_OK;
}

static enum tsr_status write_scan(struct writer *w, struct tsr_error *error)
{
    size_t at = 0, size;
    const uint8_t *bytes = tsr_get_list(&w->residue, &size);
    if (!bytes) return refuse(error);
    TSR_TRY(tsr_jpeg_ls_read_headers(&w->headers, w->image, bytes, size, &at, error));
    if (at != size) return refuse(error);
    TSR_TRY(tsr_bytes_put(w->stream, bytes, size, error));
    tsr_jpeg_ls_set_scan(w->coder, &w->headers);
    uint32_t number = 0;
    for (uint32_t y = 0; y < w->image->rows; number++) {
        const uint32_t rows = interval_rows(&w->headers, w->image, y);
        TSR_TRY(write_interval(w, number, y, rows, error));
        y += rows;
    }
    return TSR_OK;
}

static enum tsr_status write_all(struct writer *w, struct tsr_error *error)
{
    while (!tsr_jpeg_ls_is_complete(&w->headers)) TSR_TRY(write_scan(w, error));
    const uint64_t code = tsr_get_varint(&w->residue);
    if (w->residue.bad) return refuse(error);
    const uint8_t *tail = code < USUAL_TAILS ? usual_tails[code] : tsr_get_bytes(&w->residue, code - USUAL_TAILS);
    if (!tail || w->residue.at != w->residue.size) return refuse(error);
    return tsr_bytes_put(w->stream, tail, (size_t)(code < USUAL_TAILS ? 2 + code : code - USUAL_TAILS), error);
}

static enum tsr_status join(const struct tsr_node_work *node, const struct tsr_node_parts *parts,
                            struct tsr_bytes *stream, struct tsr_error *error)
{
    struct writer w = {.image = node->image,
                       .raster = parts->plain,
                       .residue = {parts->residue, parts->residue_size, 0, false},
                       .stream = stream};
    TSR_TRY(tsr_jpeg_ls_create(node->image, &w.coder, error));
    const enum tsr_status status = write_all(&w, error);
    tsr_jpeg_ls_free(w.coder);
    return status;
}

/* Of reading, the stream without stuffed bits. */
static uint64_t memory(const struct tsr_node_work *node, uint64_t stream_bytes, bool writes)
{
    return tsr_jpeg_ls_memory(node->image) + (writes ? 0 : stream_bytes + SLACK);
}

const struct tsr_node tsr_node_jpeg_ls = {.name = "jpeg-ls", .split = split, .join = join, .memory = memory};
