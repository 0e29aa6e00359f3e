/* The stream of one frame of an encapsulated file: a unit's, or made again from samples and residue. */
#include <stdlib.h>
#include <string.h>

#include "app/library/call.h"
#include "io/recipe/recipe.h"
#include "io/recipe/unit.h"
#include "app/library/reader.h"

enum tsr_status tsr_read_unit(struct tsr_container_reader *container, uint32_t frame, struct tsr_bytes *stream,
                              struct tsr_error *error)
{
    const size_t bytes = tsr_container_unit_bytes(container, frame);
    struct tsr_piece unit;
    uint8_t *const section = malloc(bytes);
    if (!section) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for %zu bytes of payload", bytes);
    enum tsr_status status = tsr_container_get_unit(container, frame, section, &unit, error);
    if (status == TSR_OK) status = tsr_unit_open(tsr_container_header(container), unit.bytes, unit.size, stream, error);
    free(section);
    return status;
}

/* ---- Records: FORMAT.md 4.4 --------------------------------------------------------------------------------- */

static enum tsr_status fail_record(uint32_t frame, struct tsr_error *error)
{
    return tsr_fail(error, TSR_ERROR_CORRUPT, "frame %u has no valid residue", frame);
}

/* The next number of the residues' blob. */
static enum tsr_status take_number(struct tsr_reader *r, uint32_t frame, uint64_t *at, uint64_t *number,
                                   struct tsr_error *error)
{
    uint8_t bytes[TSR_VARINT_LIMIT];
    size_t got;
    TSR_TRY(tsr_reader_blob(r, TSR_BLOB_RESIDUES, *at, bytes, sizeof bytes, &got, error));
    struct tsr_cursor c = {bytes, got, 0, false};
    *number = tsr_get_varint(&c);
    *at += c.at;
    return c.bad ? fail_record(frame, error) : TSR_OK;
}

/* Where the residue of the next record stands, and its bytes. */
static enum tsr_status take_record(struct tsr_reader *r, uint32_t frame, uint64_t *at, uint64_t *size,
                                   struct tsr_error *error)
{
    uint64_t fragments, fragment;
    TSR_TRY(take_number(r, frame, at, &fragments, error));
    for (uint64_t i = 1; i < fragments; i++) TSR_TRY(take_number(r, frame, at, &fragment, error));
    TSR_TRY(take_number(r, frame, at, size, error));
    return fragments > 0 && *size <= r->stream.limit ? TSR_OK : fail_record(frame, error);
}

/* A frame's residue: by the records before it, from the last one on that was found. */
static enum tsr_status read_residue(struct tsr_reader *r, uint32_t frame, struct tsr_bytes *residue,
                                    struct tsr_error *error)
{
    uint64_t size = 0;
    size_t got;
    if (frame < r->record) r->record = 0;
    if (r->record == 0) r->record_at = 0;
    for (uint64_t at = r->record_at;; at += size) {
        r->record_at = at;
        TSR_TRY(take_record(r, r->record, &at, &size, error));
        if (r->record == frame) {
            TSR_TRY(tsr_bytes_reserve(residue, (size_t)size, error));
            TSR_TRY(tsr_reader_blob(r, TSR_BLOB_RESIDUES, at, residue->bytes, (size_t)size, &got, error));
            residue->size = got;
            return got == size ? TSR_OK : fail_record(frame, error);
        }
        r->record++;
    }
}

/* ---- Streams ------------------------------------------------------------------------------------------------ */

static enum tsr_status join_frame(struct tsr_reader *r, uint32_t frame, struct tsr_bytes *stream,
                                  struct tsr_error *error)
{
    const struct tsr_header *const header = tsr_container_header(r->container);
    const struct tsr_image *const image = &header->image;
    const struct tsr_node *const node = tsr_raster_node(header->parameters[0]);
    struct tsr_bytes residue = {.limit = SIZE_MAX / 4};
    const uint8_t *raster;
    if (!node)
        return tsr_fail(error, TSR_ERROR_VERSION, "the file has streams of kind %d, which this version does not know",
                        header->parameters[0]);
    enum tsr_status status = tsr_reader_raster(r, frame, &raster, error);
    if (status == TSR_OK) status = read_residue(r, frame, &residue, error);
    if (status == TSR_OK) status = tsr_node_join(node, image, raster, residue.bytes, residue.size, stream, error);
    tsr_bytes_free(&residue);
    return status;
}

/* No stream, and no residue, is longer than the original. */
static enum tsr_status limit_stream(struct tsr_reader *r, struct tsr_error *error)
{
    struct tsr_proof proof = {.original_size = SIZE_MAX / 4};
    if (r->container) TSR_TRY(tsr_container_get_proof(r->container, &proof, error));
    r->stream.limit = proof.original_size < SIZE_MAX / 4 ? (size_t)proof.original_size : SIZE_MAX / 4;
    return TSR_OK;
}

static enum tsr_status fill_stream(struct tsr_reader *r, uint32_t frame, struct tsr_error *error)
{
    struct tsr_bytes *const stream = &r->stream;
    if (r->original && r->original->ops && r->original->ops->read_stream)
        return r->original->ops->read_stream(r->original, frame, stream, error);
    if (r->original || !tsr_may_have_units(tsr_container_header(r->container)))
        return tsr_fail(error, TSR_ERROR_USAGE, "the frames of %s are no streams of their own", r->name);
    return tsr_container_is_unit(r->container, frame) ? tsr_read_unit(r->container, frame, stream, error)
                                                      : join_frame(r, frame, stream, error);
}

static enum tsr_status read_stream(const struct tsr_call *call)
{
    struct tsr_reader *const r = call->reader;
    struct tsr_container_reader *container;
    struct tsr_image image;
    TSR_TRY(tsr_reader_choose(r, call->member, call->error));
    TSR_TRY(tsr_reader_frames(r, &container, call->error));
    TSR_TRY(tsr_reader_image_of(r, container ? tsr_container_header(container) : &r->original->header, &image,
                                call->error));
    if (call->frame >= image.frames)
        return tsr_fail(call->error, TSR_ERROR_USAGE, "there is no frame %u: the image has %u, counted from 0",
                        call->frame, image.frames);
    if (!r->has_stream || r->stream_frame != call->frame) {
        r->has_stream = false;
        r->stream.size = 0;
        TSR_TRY(limit_stream(r, call->error));
        TSR_TRY(fill_stream(r, call->frame, call->error));
        r->has_stream = true;
        r->stream_frame = call->frame;
    }
    *call->got = r->stream.size;
    if (r->stream.size <= call->count && r->stream.size > 0) memcpy(call->out, r->stream.bytes, r->stream.size);
    return TSR_OK;
}

enum tsr_status tsr_reader_stream(struct tsr_reader *reader, uint32_t member, uint32_t frame, void *bytes, size_t count,
                                  size_t *size, struct tsr_error *error)
{
    struct tsr_error ignored;
    if (!error) error = &ignored;
    TSR_TRY(tsr_check_pointer(reader, "reader", error));
    TSR_TRY(tsr_check_pointer(size, "size", error));
    *size = 0;
    if (count > 0) TSR_TRY(tsr_check_pointer(bytes, "bytes", error));
    struct tsr_call call = tsr_call_of_reader(reader, read_stream, member, error);
    call.frame = frame;
    call.out = bytes;
    call.count = count;
    call.got = size;
    return tsr_run_call(&call);
}
