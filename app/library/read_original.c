/* The bytes of an original by range. */
#include <stdlib.h>
#include <string.h>

#include "call.h"
#include "reader.h"

/* ---- Blobs ------------------------------------------------------------------------------------------------ */

void tsr_forget_blob(struct tsr_kept_blob *blob)
{
    free(blob->pieces);
    free(blob->held);
    memset(blob, 0, sizeof *blob);
}

static enum tsr_status hold(struct tsr_kept_blob *blob, uint64_t start, const uint8_t *bytes, size_t size,
                            struct tsr_error *error)
{
    uint8_t *const grown = realloc(blob->held, size + 1);
    if (!grown) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for %zu bytes of metadata", size);
    memcpy(grown, bytes, size);
    blob->held = grown;
    blob->held_start = start;
    blob->held_size = size;
    return TSR_OK;
}

/* Reads the next piece that was not read yet, and holds it. */
static enum tsr_status read_next(struct tsr_reader *r, enum tsr_blob number, struct tsr_error *error)
{
    struct tsr_kept_blob *const blob = &r->blob[number];
    const uint64_t cursor = blob->cursor;
    const uint8_t *bytes;
    size_t size;
    TSR_TRY(tsr_container_get_blob(r->container, number, &blob->cursor, &bytes, &size, error));
    if (size == 0) {
        blob->is_complete = true;
        return TSR_OK;
    }
    if (blob->count == blob->capacity) {
        const size_t capacity = blob->capacity ? 2 * blob->capacity : 16;
        struct tsr_kept_piece *const grown = realloc(blob->pieces, capacity * sizeof *grown);
        if (!grown) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for %zu pieces of metadata", capacity);
        blob->pieces = grown;
        blob->capacity = capacity;
    }
    blob->pieces[blob->count++] = (struct tsr_kept_piece){blob->total, cursor};
    blob->total += size;
    return hold(blob, blob->total - size, bytes, size, error);
}

/* Holds the piece of a byte that is before blob->total. */
static enum tsr_status hold_piece(struct tsr_reader *r, enum tsr_blob number, uint64_t offset, struct tsr_error *error)
{
    struct tsr_kept_blob *const blob = &r->blob[number];
    if (offset >= blob->held_start && offset - blob->held_start < blob->held_size) return TSR_OK;
    size_t low = 0, high = blob->count;
    while (high - low > 1) {
        const size_t middle = low + (high - low) / 2;
        if (blob->pieces[middle].start <= offset)
            low = middle;
        else
            high = middle;
    }
    uint64_t cursor = blob->pieces[low].cursor;
    const uint8_t *bytes;
    size_t size;
    TSR_TRY(tsr_container_get_blob(r->container, number, &cursor, &bytes, &size, error));
    if (offset - blob->pieces[low].start >= size)
        return tsr_fail(error, TSR_ERROR_READ, "%s changed while it was read", r->name);
    return hold(blob, blob->pieces[low].start, bytes, size, error);
}

enum tsr_status tsr_reader_blob(struct tsr_reader *r, enum tsr_blob number, uint64_t offset, uint8_t *bytes,
                                size_t count, size_t *got, struct tsr_error *error)
{
    struct tsr_kept_blob *const blob = &r->blob[number];
    for (*got = 0; *got < count;) {
        while (offset >= blob->total && !blob->is_complete) TSR_TRY(read_next(r, number, error));
        if (offset >= blob->total) return TSR_OK;
        TSR_TRY(hold_piece(r, number, offset, error));
        const size_t at = (size_t)(offset - blob->held_start), there = blob->held_size - at;
        const size_t now = there < count - *got ? there : count - *got;
        memcpy(bytes + *got, blob->held + at, now);
        *got += now;
        offset += now;
    }
    return TSR_OK;
}

/* ---- Originals -------------------------------------------------------------------------------------------- */

/* Bytes of the frames, which stand one after the other without a bit between them. */
static enum tsr_status read_frames(struct tsr_reader *r, uint64_t offset, uint8_t *bytes, size_t count, size_t *got,
                                   struct tsr_error *error)
{
    const struct tsr_image *const image = &tsr_reader_header(r)->image;
    const size_t raster_bytes = tsr_raster_bytes(image);
    const uint8_t *raster;
    for (*got = 0; *got < count && offset / raster_bytes < image->frames;) {
        const size_t at = (size_t)(offset % raster_bytes);
        const size_t now = raster_bytes - at < count - *got ? raster_bytes - at : count - *got;
        TSR_TRY(tsr_reader_raster(r, (uint32_t)(offset / raster_bytes), &raster, error));
        memcpy(bytes + *got, raster + at, now);
        *got += now;
        offset += now;
    }
    return TSR_OK;
}

/* Prefix, frames and suffix, one after the other; of a verbatim file the prefix. */
static enum tsr_status read_parts(struct tsr_reader *r, uint64_t offset, uint8_t *bytes, size_t count, size_t *got,
                                  struct tsr_error *error)
{
    const struct tsr_header *const header = tsr_reader_header(r);
    const uint64_t frames = tsr_has_frames(header) ? tsr_all_rasters(&header->image) : 0;
    size_t now;
    TSR_TRY(tsr_reader_blob(r, TSR_BLOB_PREFIX, offset, bytes, count, got, error));
    if (*got == count) return TSR_OK;
    uint64_t at = offset + *got - r->blob[TSR_BLOB_PREFIX].total; /* which is all of it now */
    if (at < frames) {
        TSR_TRY(read_frames(r, at, bytes + *got, count - *got, &now, error));
        *got += now;
        at += now;
    }
    if (*got == count) return TSR_OK;
    TSR_TRY(tsr_reader_blob(r, TSR_BLOB_SUFFIX, at - frames, bytes + *got, count - *got, &now, error));
    *got += now;
    return TSR_OK;
}

enum tsr_status tsr_reader_restore(struct tsr_reader *r, struct tsr_error *error)
{
    struct tsr_proof proof;
    struct tsr_decoded decoded;
    bool identical;
    if (r->restored) return TSR_OK;
    struct tsr_output *const output = tsr_output_to_memory();
    if (!output) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory to restore");
    enum tsr_status status = tsr_container_get_proof(r->container, &proof, error);
    if (status == TSR_OK)
        status = tsr_restore_and_check(r->engine, r->container, NULL, &proof, output, &decoded, &identical, error);
    if (status == TSR_OK)
        r->restored = output;
    else
        tsr_output_close(output);
    return status;
}

/* Of size bytes that can be read; the count of those from offset on, at most count. */
static size_t clip(uint64_t size, uint64_t offset, size_t count)
{
    if (offset >= size) return 0;
    return size - offset < count ? (size_t)(size - offset) : count;
}

static enum tsr_status read_original(const struct tsr_call *call)
{
    struct tsr_reader *const r = call->reader;
    const uint32_t member = call->member;
    const uint64_t offset = call->offset;
    uint8_t *const bytes = call->out;
    const size_t count = call->count;
    size_t *const got = call->got;
    struct tsr_error *const error = call->error;
    if (!r->container) {
        if (member != 0) TSR_TRY(tsr_reader_choose(r, member, error)); /* which fails */
        *got = clip(tsr_input_size(r->input), offset, count);
        return *got > 0 ? tsr_input_read(r->input, offset, bytes, *got, error) : TSR_OK;
    }
    TSR_TRY(tsr_reader_choose(r, member, error));
    if (tsr_has_plain_parts(tsr_reader_header(r))) return read_parts(r, offset, bytes, count, got, error);
    TSR_TRY(tsr_reader_restore(r, error));
    *got = clip(tsr_output_size(r->restored), offset, count);
    if (*got > 0) memcpy(bytes, tsr_output_bytes(r->restored) + offset, *got);
    return TSR_OK;
}

enum tsr_status tsr_read_original(struct tsr_reader *reader, uint32_t member, uint64_t offset, void *bytes,
                                  size_t count, size_t *got, struct tsr_error *error)
{
    struct tsr_error ignored;
    if (!error) error = &ignored;
    TSR_TRY(tsr_check_pointer(reader, "reader", error));
    TSR_TRY(tsr_check_pointer(got, "got", error));
    *got = 0;
    if (count > 0) TSR_TRY(tsr_check_pointer(bytes, "bytes", error));
    struct tsr_call call = tsr_call_of_reader(reader, read_original, member, error);
    call.offset = offset;
    call.out = bytes;
    call.count = count;
    call.got = got;
    return tsr_run_call(&call);
}
