/* Packs and unpacks lossy JPEG streams. JPEG.md. */
#include "jpeg.h"

#include <stdlib.h>
#include <string.h>

#include "jpeg_coder.h"
#include "jpeg_coefficients.h"
#include "jpeg_pack.h"
#include "jpeg_scan.h"
#include "transform/status.h"

enum {
    SLICE_BLOCKS = 1 << 15, /* at least, if there are several slices */
    SIZE_BITS = 40,         /* of a stream's size */
    HAS_RUNS = 4,           /* flags; below them the kind of padding */
    IS_CUT = 8,
    BLOCK_MEMORY = 130 /* bytes of coefficients and counts */
};

static const char no_scan[] = "has no scan";

/* A stream between its two forms. */
struct parts {
    uint8_t *head; /* after what is known before it: */
    size_t known;
    size_t head_size;
    int16_t *coefficients;
    uint8_t *counts;
    struct tsr_jpeg_oddities oddities;
};

static void free_parts(struct parts *parts)
{
    free(parts->head);
    free(parts->coefficients);
    free(parts->counts);
    tsr_bytes_free(&parts->oddities.padding);
    tsr_bytes_free(&parts->oddities.runs.bytes);
}

static enum tsr_status damaged(struct tsr_error *error)
{
    return tsr_fail(error, TSR_ERROR_CORRUPT, "the coded bytes of a JPEG stream are damaged");
}

/* Room for a head of size bytes, and what is known before it. */
static enum tsr_status make_head(const struct tsr_node_work *work, struct parts *parts, size_t size,
                                 struct tsr_error *error)
{
    struct tsr_cursor shared = {work->known, work->known_size, 0, false};
    const uint64_t more = work->known_size > 0 ? tsr_get_varint(&shared) : 0;
    if (shared.bad || more > TSR_JPEG_SHARED) return damaged(error);
    const size_t known = TSR_JPEG_KNOWN + (size_t)more;
    uint8_t *const bytes = size < SIZE_MAX - known ? malloc(known + size) : NULL;
    if (!bytes) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for a head of %zu bytes", size);
    tsr_jpeg_put_known(bytes);
    parts->head = bytes;
    parts->known = known;
    const bool is_good =
        tsr_jpeg_get_head(&shared, bytes + TSR_JPEG_KNOWN, TSR_JPEG_KNOWN, (size_t)more) && shared.at == shared.size;
    return is_good ? TSR_OK : damaged(error);
}

static enum tsr_status make_blocks(struct parts *parts, size_t blocks, struct tsr_error *error)
{
    parts->coefficients = calloc(blocks, TSR_JPEG_BLOCK * sizeof *parts->coefficients);
    parts->counts = calloc(blocks, 1);
    if (parts->coefficients && parts->counts) return TSR_OK;
    return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for %zu blocks", blocks);
}

/* MCU rows of a slice: all but the last have as many. */
static size_t rows_of_slices(const struct tsr_jpeg *jpeg, size_t slices)
{
    return (jpeg->mcus_down + slices - 1) / slices;
}

/* ---- Packing ---------------------------------------------------------------------------------------------- */

/* Parts a stream into head and coefficients. The stream ends before its first fault, of which the error tells. */
static enum tsr_status read_stream(struct tsr_jpeg *jpeg, struct parts *parts, struct tsr_error *error)
{
    for (bool found = true; found && !parts->oddities.is_cut;) {
        const size_t from = jpeg->at;
        const enum tsr_status status = tsr_jpeg_next_scan(jpeg, &found, error);
        if (status != TSR_OK && !parts->coefficients) return status;
        if (status != TSR_OK) { /* between scans */
            jpeg->stream_size = jpeg->at = jpeg->size = from;
            return TSR_OK;
        }
        const size_t size = (found ? jpeg->at : jpeg->size) - from;
        memcpy(parts->head + parts->known + parts->head_size, jpeg->bytes + from, size);
        parts->head_size += size;
        if (!found) break;
        if (!parts->coefficients) TSR_TRY(make_blocks(parts, jpeg->blocks, error));
        TSR_TRY(tsr_jpeg_read_scan(jpeg, parts->coefficients, &parts->oddities, error));
    }
    if (parts->oddities.is_cut) jpeg->size = jpeg->at;
    return jpeg->scans > 0 ? TSR_OK : tsr_fail(error, TSR_ERROR_CORRUPT, no_scan);
}

static enum tsr_status put_oddities(const struct tsr_jpeg_oddities *o, struct tsr_bytes *packed,
                                    struct tsr_error *error)
{
    const unsigned kind = o->padding_ones == o->padding_bits ? 1 : o->padding_ones == 0 ? 0 : 2;
    const struct tsr_bytes *const runs = &o->runs.bytes;
    TSR_TRY(tsr_bytes_put_u8(packed, (uint8_t)(kind | (runs->size ? HAS_RUNS : 0) | (o->is_cut ? IS_CUT : 0)), error));
    if (o->is_cut) TSR_TRY(tsr_bytes_put_varint(packed, o->whole, error));
    if (kind == 2) TSR_TRY(tsr_bytes_put_list(packed, o->padding.bytes, o->padding.size, 0, error));
    return runs->size == 0 ? TSR_OK : tsr_bytes_put_list(packed, runs->bytes, runs->size, 0, error);
}

static enum tsr_status put_slices(const struct tsr_jpeg *jpeg, struct parts *parts, struct tsr_bytes *slices,
                                  struct tsr_bytes *packed, struct tsr_error *error)
{
    size_t count = jpeg->blocks / SLICE_BLOCKS;
    count = count < 1 ? 1 : count > jpeg->mcus_down ? jpeg->mcus_down : count;
    const size_t rows = rows_of_slices(jpeg, count);
    count = (jpeg->mcus_down + rows - 1) / rows;
    TSR_TRY(tsr_bytes_put_varint(packed, count, error));
    for (size_t i = 0; i < count; i++) {
        struct tsr_bytes slice = {.limit = slices->limit + 2 * TSR_JPEG_BLOCK_BYTES}; /* room that is not all used */
        const size_t to = (i + 1) * rows < jpeg->mcus_down ? (i + 1) * rows : jpeg->mcus_down;
        enum tsr_status status =
            tsr_jpeg_put_slice(jpeg, parts->coefficients, parts->counts, i * rows, to, &slice, error);
        if (status == TSR_OK && i + 1 < count) status = tsr_bytes_put_varint(packed, slice.size, error);
        if (status == TSR_OK) status = tsr_bytes_put(slices, slice.bytes, slice.size, error);
        tsr_bytes_free(&slice);
        TSR_TRY(status);
    }
    return tsr_bytes_put(packed, slices->bytes, slices->size, error);
}

static enum tsr_status put_stream(struct tsr_jpeg *jpeg, struct parts *parts, struct tsr_bytes *packed,
                                  struct tsr_error *error)
{
    TSR_TRY(tsr_bytes_put_varint(packed, jpeg->size, error));
    TSR_TRY(put_oddities(&parts->oddities, packed, error));
    TSR_TRY(tsr_bytes_put_varint(packed, parts->head_size, error));
    TSR_TRY(tsr_jpeg_put_head(parts->head + parts->known, parts->known, parts->head_size, packed, error));
    struct tsr_bytes slices = {.limit = packed->limit - packed->size}; /* longer ones would become no smaller */
    const enum tsr_status status = put_slices(jpeg, parts, &slices, packed, error);
    tsr_bytes_free(&slices);
    return status;
}

static enum tsr_status pack(const struct tsr_node_work *work, struct tsr_jpeg *jpeg, struct parts *parts,
                            struct tsr_bytes *packed, struct tsr_error *error)
{
    TSR_TRY(make_head(work, parts, jpeg->size, error));
    TSR_TRY(read_stream(jpeg, parts, error));
    if (packed->limit > jpeg->size) packed->limit = jpeg->size;
    const enum tsr_status status = put_stream(jpeg, parts, packed, NULL);
    if (status == TSR_ERROR_LIMIT) return tsr_fail(error, status, "no memory for a JPEG stream");
    if (status == TSR_OK || parts->oddities.is_cut) return status; /* the error tells of the fault */
    return tsr_fail(error, status, "would become no smaller");
}

/* The bytes before zeros to the end, which no marker EOI precedes: a disk's fault, or a file that was not written to
 * its end. As codes they would be coefficients. */
static size_t without_zeros(const uint8_t *stream, size_t size)
{
    enum { LEAST = 64 };
    size_t end = size;
    while (end > 0 && stream[end - 1] == 0) end--;
    return size - end < LEAST || end < 2 || (stream[end - 2] == 0xff && stream[end - 1] == TSR_JPEG_EOI) ? size : end;
}

static enum tsr_status split(const struct tsr_node_work *work, const uint8_t *bytes, size_t size, size_t *used,
                             struct tsr_bytes *plain, struct tsr_bytes *residue, struct tsr_error *error)
{
    (void)residue;
    *used = size;
    struct tsr_jpeg *jpeg = calloc(1, sizeof *jpeg);
    if (!jpeg) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for a JPEG stream");
    struct parts held = {.oddities = {.padding = {.limit = SIZE_MAX / 4}, .runs = {.bytes = {.limit = SIZE_MAX / 4}}}};
    jpeg->bytes = bytes;
    jpeg->stream_size = jpeg->size = without_zeros(bytes, size);
    const enum tsr_status status = pack(work, jpeg, &held, plain, error);
    if (status == TSR_OK) *used = jpeg->size;
    free_parts(&held);
    free(jpeg);
    return status;
}

/* ---- Unpacking -------------------------------------------------------------------------------------------- */

static bool get_oddities(struct tsr_cursor *packed, struct tsr_jpeg_oddities *o)
{
    const uint8_t flags = tsr_get_u8(packed);
    o->padding_kind = flags & 3;
    if (packed->bad || flags > 15 || o->padding_kind > 2) return false;
    o->is_cut = flags & IS_CUT;
    if (o->is_cut) o->whole = tsr_get_varint(packed);
    if (o->padding_kind == 2)
        o->padding.bytes = (uint8_t *)tsr_get_list(packed, &o->padding.size); /* read, not freed */
    if (flags & HAS_RUNS) {
        size_t size;
        o->runs.at = tsr_get_list(packed, &size);
        o->runs.end = o->runs.at ? o->runs.at + size : NULL;
    }
    return !packed->bad;
}

static enum tsr_status get_slices(const struct tsr_jpeg *jpeg, struct parts *parts, struct tsr_cursor *packed,
                                  struct tsr_error *error)
{
    const uint64_t count = tsr_get_varint(packed);
    if (packed->bad || count < 1 || count > jpeg->mcus_down) return damaged(error);
    struct tsr_cursor sizes = *packed;
    for (uint64_t i = 0; i + 1 < count; i++) tsr_get_varint(packed);
    const size_t rows = rows_of_slices(jpeg, (size_t)count);
    for (size_t i = 0; i < count; i++) {
        const size_t size = i + 1 < count ? (size_t)tsr_get_varint(&sizes) : packed->size - packed->at;
        const uint8_t *slice = tsr_get_bytes(packed, size);
        const size_t from = i * rows, to = from + rows < jpeg->mcus_down ? from + rows : jpeg->mcus_down;
        if (packed->bad || from >= to) return damaged(error);
        TSR_TRY(tsr_jpeg_get_slice(jpeg, parts->coefficients, parts->counts, from, to, slice, size, error));
    }
    return TSR_OK;
}

/* Writes head and scans. */
static enum tsr_status write_stream(struct tsr_jpeg *jpeg, struct parts *parts, struct tsr_bytes *stream,
                                    struct tsr_error *error)
{
    for (bool found = true; found;) {
        const size_t from = jpeg->at;
        TSR_TRY(tsr_jpeg_next_scan(jpeg, &found, error));
        TSR_TRY(tsr_bytes_put(stream, jpeg->bytes + from, (found ? jpeg->at : jpeg->size) - from, error));
        if (found) TSR_TRY(tsr_jpeg_write_scan(jpeg, parts->coefficients, &parts->oddities, stream, error));
    }
    return TSR_OK;
}

/* Reads all up to the slices, and makes the head. */
static enum tsr_status get_head(const struct tsr_node_work *work, struct tsr_jpeg *jpeg, struct parts *parts,
                                struct tsr_cursor *packed, uint64_t limit, struct tsr_error *error)
{
    const uint64_t size = tsr_get_varint(packed);
    if (packed->bad || size >> SIZE_BITS || size > limit || !get_oddities(packed, &parts->oddities))
        return damaged(error);
    const uint64_t head_size = tsr_get_varint(packed);
    if (packed->bad || head_size > size) return damaged(error);
    TSR_TRY(make_head(work, parts, (size_t)head_size, error));
    uint8_t *const head = parts->head + parts->known;
    if (!tsr_jpeg_get_head(packed, head, parts->known, (size_t)head_size)) return damaged(error);
    *jpeg = (struct tsr_jpeg){.bytes = head, .size = (size_t)head_size, .stream_size = size};
    return TSR_OK;
}

static enum tsr_status unpack(const struct tsr_node_work *work, struct tsr_jpeg *jpeg, struct parts *parts,
                              struct tsr_cursor *packed, struct tsr_bytes *stream, struct tsr_error *error)
{
    TSR_TRY(get_head(work, jpeg, parts, packed, stream->limit - stream->size, error));
    const struct tsr_jpeg start = *jpeg;
    for (bool found = true; found;) TSR_TRY(tsr_jpeg_next_scan(jpeg, &found, error));
    if (jpeg->scans == 0) return damaged(error);
    TSR_TRY(make_blocks(parts, jpeg->blocks, error));
    TSR_TRY(get_slices(jpeg, parts, packed, error));
    *jpeg = start;
    const size_t before = stream->size;
    TSR_TRY(write_stream(jpeg, parts, stream, error));
    return stream->size - before == jpeg->stream_size ? TSR_OK : damaged(error);
}

static enum tsr_status join(const struct tsr_node_work *work, const struct tsr_node_parts *parts,
                            struct tsr_bytes *bytes, struct tsr_error *error)
{
    struct tsr_jpeg *jpeg = calloc(1, sizeof *jpeg);
    if (!jpeg) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for a JPEG stream");
    struct parts held = {.head = NULL};
    struct tsr_cursor cursor = {parts->plain, parts->plain_size, 0, false};
    const enum tsr_status status = unpack(work, jpeg, &held, &cursor, bytes, error);
    held.oddities.padding.bytes = NULL; /* of the packed bytes */
    free_parts(&held);
    free(jpeg);
    return status;
}

uint64_t tsr_jpeg_blocks(const struct tsr_node_work *work, const uint8_t *packed, size_t size, uint64_t limit)
{
    struct tsr_jpeg *jpeg = calloc(1, sizeof *jpeg);
    if (!jpeg) return 0;
    struct parts parts = {.head = NULL};
    struct tsr_cursor cursor = {packed, size, 0, false};
    bool found = false;
    const bool known = get_head(work, jpeg, &parts, &cursor, limit, NULL) == TSR_OK &&
                       tsr_jpeg_next_scan(jpeg, &found, NULL) == TSR_OK && found;
    const uint64_t blocks = known ? jpeg->blocks : 0;
    parts.oddities.padding.bytes = NULL; /* of the packed bytes */
    free_parts(&parts);
    free(jpeg);
    return blocks;
}

uint64_t tsr_jpeg_stream_blocks(const uint8_t *stream, size_t size)
{
    struct tsr_jpeg *jpeg = calloc(1, sizeof *jpeg);
    if (!jpeg) return 0;
    *jpeg = (struct tsr_jpeg){.bytes = stream, .size = size, .stream_size = size};
    bool found = false;
    const uint64_t blocks = tsr_jpeg_next_scan(jpeg, &found, NULL) == TSR_OK && found ? jpeg->blocks : 0;
    free(jpeg);
    return blocks;
}

enum tsr_status tsr_jpeg_share_bytes(const uint8_t *head, size_t size, struct tsr_bytes *packed,
                                     struct tsr_error *error)
{
    struct parts parts = {.head = NULL};
    enum tsr_status status = make_head(&(struct tsr_node_work){0}, &parts, size, error);
    if (status == TSR_OK && size > 0) memcpy(parts.head + parts.known, head, size);
    if (status == TSR_OK) status = tsr_bytes_put_varint(packed, size, error);
    if (status == TSR_OK) status = tsr_jpeg_put_head(parts.head + parts.known, parts.known, size, packed, error);
    free_parts(&parts);
    return status;
}

enum tsr_status tsr_jpeg_open_head(const uint8_t *packed, size_t size, struct tsr_bytes *head, struct tsr_error *error)
{
    const struct tsr_node_work work = {.known = packed, .known_size = size};
    struct parts parts = {.head = NULL};
    enum tsr_status status = make_head(&work, &parts, 0, error);
    if (status == TSR_OK)
        status = tsr_bytes_put(head, parts.head + TSR_JPEG_KNOWN, parts.known - TSR_JPEG_KNOWN, error);
    free_parts(&parts);
    return status;
}

enum tsr_status tsr_jpeg_share_head(const uint8_t *stream, size_t size, struct tsr_bytes *packed,
                                    struct tsr_error *error)
{
    struct tsr_jpeg *jpeg = calloc(1, sizeof *jpeg);
    bool found = false;
    if (!jpeg) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for a JPEG stream");
    *jpeg = (struct tsr_jpeg){.bytes = stream, .size = size, .stream_size = size};
    enum tsr_status status = tsr_jpeg_next_scan(jpeg, &found, error);
    const size_t shared = jpeg->at < TSR_JPEG_SHARED ? jpeg->at : TSR_JPEG_SHARED;
    if (status == TSR_OK && !found) status = tsr_fail(error, TSR_ERROR_CORRUPT, no_scan);
    if (status == TSR_OK) status = tsr_jpeg_share_bytes(stream, shared, packed, error);
    free(jpeg);
    return status;
}

enum tsr_status tsr_jpeg_memory(const uint8_t *stream, size_t size, uint64_t *memory, struct tsr_error *error)
{
    struct tsr_jpeg *jpeg = calloc(1, sizeof *jpeg);
    if (!jpeg) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for a JPEG stream");
    bool found = false;
    jpeg->bytes = stream;
    jpeg->size = size;
    jpeg->stream_size = size;
    enum tsr_status status = tsr_jpeg_next_scan(jpeg, &found, error);
    if (status == TSR_OK && !found) status = tsr_fail(error, TSR_ERROR_CORRUPT, no_scan);
    if (status == TSR_OK) *memory = BLOCK_MEMORY * (uint64_t)jpeg->blocks + tsr_jpeg_slice_memory(jpeg);
    free(jpeg);
    return status;
}

/* ---- The node ----------------------------------------------------------------------------------------------- */

static uint64_t memory(const struct tsr_node_work *work, uint64_t bytes, bool joins)
{
    enum { CODER = 2 << 20 };
    (void)joins;
    return work->room + 2 * bytes + CODER;
}

static uint64_t room(const struct tsr_node_parts *parts, uint64_t limit)
{
    enum { BLOCK_BYTES = 132 };
    const struct tsr_node_work work = {0};
    return 2 * (uint64_t)parts->plain_size +
           (parts->plain ? BLOCK_BYTES * tsr_jpeg_blocks(&work, parts->plain, parts->plain_size, limit) : 0);
}

const struct tsr_node tsr_node_jpeg = {.name = "jpeg", .split = split, .join = join, .memory = memory, .room = room};
