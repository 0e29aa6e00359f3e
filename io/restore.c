/* Restoring files. FORMAT.md section 4. */
#include "restore.h"

#include <stdlib.h>
#include <string.h>

#include "png_file.h"
#include "section.h"
#if TSR_WITH_DCMTK
#include "deflate_stream.h"
#endif

enum { CHUNK = 1 << 14 };

struct tsr_restorer {
    struct tsr_header header;
    struct tsr_output *output;
    /* Rasters of single bits: those of the last byte that are not yet written, and how many. */
    uint8_t waiting;
    int waiting_bits;
    uint8_t spare; /* bits behind the last sample */
#if TSR_WITH_DCMTK
    struct tsr_deflater *deflater;
#endif
    uint64_t plain_left; /* bytes in front of the deflate stream still to come */
    uint8_t tail[TSR_PARAMETERS_LIMIT];
    size_t tail_size;
};

/* Parameters of the deflate stream, if there is one, and then the spare bits. */
static enum tsr_status read_parameters(struct tsr_restorer *r, struct tsr_error *error)
{
    const struct tsr_header *header = &r->header;
    struct tsr_cursor c = {header->parameters, header->parameter_count, 0, false};
    int level = 0;
    if (header->restore == TSR_RESTORE_DEFLATED) {
        r->plain_left = tsr_get_varint(&c);
        level = tsr_get_u8(&c);
        r->tail_size = tsr_get_u8(&c);
        const uint8_t *tail = tsr_get_bytes(&c, r->tail_size);
        if (tail) memcpy(r->tail, tail, r->tail_size);
        if (c.bad || level < 1 || level > 9)
            return tsr_fail(error, TSR_ERROR_CORRUPT, "the header's deflate parameters are none");
    }
    if (header->image.bits_allocated == 1 && tsr_frame_bits(&header->image) * header->image.frames % 8 != 0)
        r->spare = tsr_get_u8(&c);
    if (c.bad || c.at != header->parameter_count)
        return tsr_fail(error, TSR_ERROR_CORRUPT, "the header has %zu restore parameters", header->parameter_count);
    if (header->restore != TSR_RESTORE_DEFLATED) return TSR_OK;
#if TSR_WITH_DCMTK
    r->deflater = tsr_deflater_create(level, r->output);
    return r->deflater ? TSR_OK : tsr_fail(error, TSR_ERROR_LIMIT, "no memory to deflate");
#else
    return tsr_fail(error, TSR_ERROR_VERSION, "restoring deflated DICOM needs zlib, and this build has none");
#endif
}

enum tsr_status tsr_restorer_create(const struct tsr_header *header, struct tsr_output *output,
                                    struct tsr_restorer **restorer, struct tsr_error *error)
{
    struct tsr_restorer *r = calloc(1, sizeof *r);
    *restorer = NULL;
    if (!r) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory to restore");
    r->header = *header;
    r->output = output;
    enum tsr_status status = TSR_OK;
    if (header->restore == TSR_RESTORE_SPLICE || header->restore == TSR_RESTORE_DEFLATED)
        status = read_parameters(r, error);
    if (status != TSR_OK) {
        tsr_restorer_free(r);
        return status;
    }
    *restorer = r;
    return TSR_OK;
}

void tsr_restorer_free(struct tsr_restorer *restorer)
{
    if (!restorer) return;
#if TSR_WITH_DCMTK
    tsr_deflater_free(restorer->deflater);
#endif
    free(restorer);
}

/* Bytes of the file, or of what it inflates to. */
static enum tsr_status put(struct tsr_restorer *r, const uint8_t *bytes, size_t size, struct tsr_error *error)
{
#if TSR_WITH_DCMTK
    if (r->deflater) {
        const size_t plain = size < r->plain_left ? size : (size_t)r->plain_left;
        TSR_TRY(tsr_output_write(r->output, bytes, plain, error));
        r->plain_left -= plain;
        return size > plain ? tsr_deflater_put(r->deflater, bytes + plain, size - plain, false, error) : TSR_OK;
    }
#endif
    return tsr_output_write(r->output, bytes, size, error);
}

enum tsr_status tsr_restore_prefix(struct tsr_restorer *r, const void *bytes, size_t size, struct tsr_error *error)
{
    return put(r, bytes, size, error);
}

/* Frames of single bits follow each other without padding. */
static enum tsr_status put_bits(struct tsr_restorer *r, const uint8_t *raster, struct tsr_error *error)
{
    uint8_t chunk[CHUNK];
    const uint64_t bits = tsr_frame_bits(&r->header.image);
    const int shift = r->waiting_bits, rest = (int)(bits % 8);
    size_t used = 0;
    for (uint64_t i = 0; i < bits / 8; i++) {
        chunk[used++] = (uint8_t)(r->waiting | raster[i] << shift);
        r->waiting = (uint8_t)(raster[i] >> (8 - shift));
        if (used < CHUNK) continue;
        TSR_TRY(put(r, chunk, used, error));
        used = 0;
    }
    if (rest > 0) {
        const unsigned last = raster[bits / 8] & ((1u << rest) - 1u);
        const unsigned both = r->waiting | last << shift;
        r->waiting = (uint8_t)both;
        r->waiting_bits = shift + rest;
        if (r->waiting_bits >= 8) {
            chunk[used++] = (uint8_t)both;
            r->waiting = (uint8_t)(both >> 8);
            r->waiting_bits -= 8;
        }
    }
    return put(r, chunk, used, error);
}

enum tsr_status tsr_restore_frame(struct tsr_restorer *r, const uint8_t *raster, struct tsr_error *error)
{
    const struct tsr_image *image = &r->header.image;
    if (r->header.restore == TSR_RESTORE_PNG) return tsr_png_put_raster(&r->header, raster, r->output, error);
    if (image->bits_allocated == 1) return put_bits(r, raster, error);
    return put(r, raster, (size_t)(tsr_frame_bits(image) / 8), error);
}

/* The last byte of rasters of single bits. */
static enum tsr_status put_waiting(struct tsr_restorer *r, struct tsr_error *error)
{
    if (r->waiting_bits == 0) return TSR_OK;
    const uint8_t last = (uint8_t)(r->waiting | r->spare << r->waiting_bits);
    r->waiting_bits = 0;
    return put(r, &last, 1, error);
}

enum tsr_status tsr_restore_suffix(struct tsr_restorer *r, const void *bytes, size_t size, struct tsr_error *error)
{
    TSR_TRY(put_waiting(r, error));
    return put(r, bytes, size, error);
}

enum tsr_status tsr_restore_end(struct tsr_restorer *r, struct tsr_error *error)
{
    TSR_TRY(put_waiting(r, error));
#if TSR_WITH_DCMTK
    if (r->plain_left > 0)
        return tsr_fail(error, TSR_ERROR_CORRUPT, "the deflate stream would begin behind the end of the file");
    if (r->deflater) TSR_TRY(tsr_deflater_put(r->deflater, NULL, 0, true, error));
#endif
    return tsr_output_write(r->output, r->tail, r->tail_size, error);
}
