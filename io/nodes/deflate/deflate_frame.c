/* Streams of deflate that hold one frame (DICOM's Deflated Image Frame Compression, PS3.5 A.4.14). DEFLATE.md 6. */
#include <string.h>

#include "deflate.h"
#include "io/bytes/cursor.h"

static enum tsr_status put_residue(const uint8_t *tail, size_t size, size_t used, const struct tsr_bytes *coded,
                                   struct tsr_bytes *residue, struct tsr_error *error)
{
    const bool is_default = size == used % 2 && (size == 0 || tail[0] == 0);
    TSR_TRY(is_default ? tsr_bytes_put_u8(residue, 0, error) : tsr_bytes_put_list(residue, tail, size, 1, error));
    return tsr_bytes_put(residue, coded->bytes, coded->size, error);
}

static enum tsr_status split(const struct tsr_node_work *node, const uint8_t *stream, size_t size, size_t *used,
                             struct tsr_bytes *plain, struct tsr_bytes *residue, struct tsr_error *error)
{
    const struct tsr_image *const image = node->image;
    const size_t bytes = tsr_raster_bytes(image);
    const unsigned bits = tsr_node_last_bits(image);
    struct tsr_bytes coded = {.limit = residue->limit};
    size_t end = 0;
    enum tsr_status status = tsr_deflate_read(stream, size, &end, plain, &coded, error);
    if (status == TSR_OK && plain->size != bytes)
        status =
            tsr_fail_at(error, TSR_ERROR_CORRUPT, size, "it has %zu bytes of samples, not %zu", plain->size, bytes);
    if (status == TSR_OK && bits > 0 && plain->bytes[bytes - 1] >> bits != 0)
        status = tsr_fail(error, TSR_ERROR_CORRUPT, "bits after its last sample are not 0");
    if (status == TSR_OK) status = put_residue(stream + end, size - end, end, &coded, residue, error);
    *used = size;
    tsr_bytes_free(&coded);
    return status;
}

static enum tsr_status join(const struct tsr_node_work *node, const struct tsr_node_parts *parts,
                            struct tsr_bytes *stream, struct tsr_error *error)
{
    struct tsr_cursor c = {parts->residue, parts->residue_size, 0, false};
    const size_t begin = stream->size, bytes = tsr_raster_bytes(node->image);
    const uint64_t code = tsr_get_varint(&c);
    const uint8_t *const tail = tsr_get_bytes(&c, code > 0 ? code - 1 : 0);
    if (c.bad) return tsr_fail(error, TSR_ERROR_CORRUPT, "the residue of a deflate stream is damaged");
    TSR_TRY(tsr_deflate_write(parts->plain, bytes, c.bytes + c.at, c.size - c.at, stream, error));
    if (code > 0) return tsr_bytes_put(stream, tail, (size_t)code - 1, error);
    return tsr_bytes_put(stream, "", (stream->size - begin) % 2, error);
}

/* Of reading, plain bytes and a residue. */
static uint64_t memory(const struct tsr_node_work *node, uint64_t stream_bytes, bool writes)
{
    const uint64_t bytes = tsr_raster_bytes(node->image);
    return (writes ? 0 : bytes + stream_bytes) + tsr_deflate_memory(bytes);
}

const struct tsr_node tsr_node_deflate_frame = {
    .name = "deflate", .split = split, .join = join, .memory = memory, .takes_bits = true};
