/* Streams of deflate that hold one frame (DICOM's Deflated Image Frame Compression, PS3.5 A.4.14). FORMAT.md 4.14. */
#include <string.h>

#include "deflate.h"
#include "io/bytes/cursor.h"

static size_t raster_bytes(const struct tsr_image *image)
{
    const uint64_t bits = (uint64_t)image->columns * image->rows * image->components * image->bits_allocated;
    return (size_t)(bits / 8 + (bits % 8 != 0));
}

/* Bits of the last byte that belong to no sample. */
static unsigned spare_bits(const struct tsr_image *image, const uint8_t *raster, size_t size)
{
    const unsigned used =
        (unsigned)((uint64_t)image->columns * image->rows * image->components * image->bits_allocated % 8);
    return used > 0 ? (unsigned)raster[size - 1] >> used : 0;
}

static enum tsr_status put_residue(const uint8_t *tail, size_t size, size_t used, const struct tsr_bytes *coded,
                                   struct tsr_bytes *residue, struct tsr_error *error)
{
    const bool is_default = size == used % 2 && (size == 0 || tail[0] == 0);
    TSR_TRY(tsr_bytes_put_varint(residue, is_default ? 0 : 1 + (uint64_t)size, error));
    if (!is_default) TSR_TRY(tsr_bytes_put(residue, tail, size, error));
    return tsr_bytes_put(residue, coded->bytes, coded->size, error);
}

static enum tsr_status read_stream(const struct tsr_image *image, const uint8_t *stream, size_t size, uint8_t *raster,
                                   struct tsr_bytes *residue, struct tsr_error *error)
{
    const size_t bytes = raster_bytes(image);
    struct tsr_bytes plain = {.limit = bytes}, coded = {.limit = residue->limit};
    size_t used = 0;
    enum tsr_status status = tsr_deflate_read(stream, size, &used, &plain, &coded, error);
    if (status == TSR_OK && plain.size != bytes)
        status = tsr_fail_at(error, TSR_ERROR_CORRUPT, size, "it has %zu bytes of samples, not %zu", plain.size, bytes);
    if (status == TSR_OK && spare_bits(image, plain.bytes, bytes) != 0)
        status = tsr_fail(error, TSR_ERROR_CORRUPT, "bits after its last sample are not 0");
    if (status == TSR_OK) {
        memcpy(raster, plain.bytes, bytes);
        status = put_residue(stream + used, size - used, used, &coded, residue, error);
    }
    tsr_bytes_free(&plain);
    tsr_bytes_free(&coded);
    return status;
}

static enum tsr_status write_stream(const struct tsr_image *image, const uint8_t *raster, const uint8_t *residue,
                                    size_t size, struct tsr_bytes *stream, struct tsr_error *error)
{
    struct tsr_cursor c = {residue, size, 0, false};
    const size_t begin = stream->size;
    const uint64_t code = tsr_get_varint(&c);
    if (code > size) c.bad = true;
    const size_t tail_size = c.bad || code == 0 ? 0 : (size_t)code - 1;
    const uint8_t *const tail = tsr_get_bytes(&c, tail_size);
    if (c.bad) return tsr_fail(error, TSR_ERROR_CORRUPT, "the residue of a deflate stream is damaged");
    TSR_TRY(tsr_deflate_write(raster, raster_bytes(image), residue + c.at, size - c.at, stream, error));
    if (code > 0) return tsr_bytes_put(stream, tail, tail_size, error);
    return tsr_bytes_put(stream, "", (stream->size - begin) % 2, error);
}

/* Of reading, plain bytes and a residue. */
static uint64_t memory(const struct tsr_image *image, uint64_t stream_bytes, bool writes)
{
    const uint64_t bytes = raster_bytes(image);
    return (writes ? 0 : bytes + stream_bytes) + tsr_deflate_memory(bytes);
}

const struct tsr_stream_kind tsr_stream_deflate = {"deflate", read_stream, write_stream, memory};
