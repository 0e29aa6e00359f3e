/* Streams that are the samples of one frame (PS3.5, A.4: Encapsulated Uncompressed Explicit VR Little Endian).
 * UNCOMPRESSED.md. */
#include "io/nodes/node.h"

static enum tsr_status split(const struct tsr_node_work *work, const uint8_t *stream, size_t size, size_t *used,
                             struct tsr_bytes *plain, struct tsr_bytes *residue, struct tsr_error *error)
{
    const size_t bytes = tsr_raster_bytes(work->image);
    const unsigned bits = tsr_node_last_bits(work->image);
    *used = size;
    if (size < bytes)
        return tsr_fail_at(error, TSR_ERROR_CORRUPT, size, "it has %zu bytes of samples, not %zu", size, bytes);
    const uint8_t last = stream[bytes - 1], spare = (uint8_t)(bits > 0 ? last >> bits : 0);
    TSR_TRY(tsr_bytes_put(plain, stream, bytes, error));
    if (bits > 0) plain->bytes[plain->size - 1] = (uint8_t)(last & ((1u << bits) - 1));
    const bool is_usual = spare == 0 && size == bytes + bytes % 2 && (size == bytes || stream[bytes] == 0);
    if (is_usual) return TSR_OK;
    TSR_TRY(tsr_bytes_put_u8(residue, spare, error));
    return tsr_bytes_put(residue, stream + bytes, size - bytes, error);
}

static enum tsr_status join(const struct tsr_node_work *work, const struct tsr_node_parts *parts,
                            struct tsr_bytes *stream, struct tsr_error *error)
{
    const size_t bytes = tsr_raster_bytes(work->image);
    const unsigned bits = tsr_node_last_bits(work->image);
    TSR_TRY(tsr_bytes_put(stream, parts->plain, bytes, error));
    if (parts->residue_size == 0) return tsr_bytes_put(stream, "", bytes % 2, error);
    const uint8_t spare = parts->residue[0];
    if (bits > 0 ? spare >> (8 - bits) != 0 : spare != 0)
        return tsr_fail(error, TSR_ERROR_CORRUPT, "the residue of uncompressed samples is damaged");
    if (bits > 0) stream->bytes[stream->size - 1] |= (uint8_t)(spare << bits);
    return tsr_bytes_put(stream, parts->residue + 1, parts->residue_size - 1, error);
}

static uint64_t memory(const struct tsr_node_work *work, uint64_t bytes, bool joins)
{
    (void)work, (void)bytes, (void)joins;
    return 0;
}

const struct tsr_node tsr_node_uncompressed = {
    .name = "uncompressed", .split = split, .join = join, .memory = memory, .takes_bits = true};
