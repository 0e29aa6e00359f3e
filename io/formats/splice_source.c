/* Sources whose samples are in the input without any coding: PNM and native DICOM. */
#include <stdlib.h>
#include <string.h>

#include "format.h"

struct splice_source {
    struct tsr_source base;
    struct tsr_input *samples; /* has the rasters: the file, or the inflated bytes of a deflated file */
    bool owns_samples;
    uint64_t first;        /* offset of the first raster, in bytes */
    uint64_t raster_bytes; /* bytes of all rasters */
    uint8_t *window;       /* bytes of a raster of single bits, before they are aligned */
};

static uint64_t blob_start(const struct splice_source *s, enum tsr_blob blob)
{
    return blob == TSR_BLOB_PREFIX ? 0 : s->first + s->raster_bytes;
}

static enum tsr_status read_blob(struct tsr_source *source, enum tsr_blob blob, uint64_t offset, void *buffer,
                                 size_t size, struct tsr_error *error)
{
    struct splice_source *s = (struct splice_source *)source;
    return tsr_input_read(s->samples, blob_start(s, blob) + offset, buffer, size, error);
}

static enum tsr_status read_frame(struct tsr_source *source, uint32_t frame, uint8_t *raster, struct tsr_error *error)
{
    struct splice_source *s = (struct splice_source *)source;
    const uint64_t bits = tsr_frame_bits(&source->header.image), start = bits * frame;
    const size_t bytes = (size_t)((bits + 7) / 8);
    const int shift = (int)(start % 8), spare = (int)((8 - bits % 8) % 8);
    if (shift == 0 && spare == 0 && source->rasters_last && s->samples == source->input) {
        TSR_TRY(tsr_input_read_lasting(s->samples, s->first + start / 8, raster, bytes, error));
    } else if (shift == 0) {
        TSR_TRY(tsr_input_read(s->samples, s->first + start / 8, raster, bytes, error));
    } else {
        const size_t window_bytes = (size_t)(((uint64_t)shift + bits + 7) / 8);
        TSR_TRY(tsr_input_read(s->samples, s->first + start / 8, s->window, window_bytes, error));
        for (size_t i = 0; i < bytes; i++) {
            const unsigned next = i + 1 < window_bytes ? s->window[i + 1] : 0u;
            raster[i] = (uint8_t)((s->window[i] | next << 8) >> shift);
        }
    }
    if (spare) raster[bytes - 1] &= (uint8_t)(0xff >> spare);
    return TSR_OK;
}

static void close_splice(struct tsr_source *source)
{
    struct splice_source *s = (struct splice_source *)source;
    if (s->owns_samples) tsr_input_close(s->samples);
    free(s->window);
    free(s);
}

static const struct tsr_source_ops splice_ops = {read_blob, read_frame, NULL, close_splice, NULL};

/* The bits of the last raster byte that are after the last sample are a parameter of the restore. FORMAT.md 4.1. */
static enum tsr_status keep_spare_bits(struct splice_source *s, uint64_t total_bits, struct tsr_error *error)
{
    uint8_t last;
    if (total_bits % 8 == 0) return TSR_OK;
    TSR_TRY(tsr_input_read(s->samples, s->first + s->raster_bytes - 1, &last, 1, error));
    struct tsr_header *header = &s->base.header;
    if (header->parameter_count == TSR_PARAMETERS_LIMIT)
        return tsr_fail(error, TSR_ERROR_INTERNAL, "the header has no room for the spare bits");
    header->parameters[header->parameter_count++] = (uint8_t)(last >> (total_bits % 8));
    return TSR_OK;
}

struct tsr_need tsr_splice_need(const struct tsr_header *header, uint64_t first, uint64_t size)
{
    const uint64_t bits = tsr_frame_bits(&header->image) * header->image.frames, rasters = bits / 8 + (bits % 8 != 0),
                   rest = size > first ? size - first : 0, suffix = rest > rasters ? rest - rasters : 0;
    return (struct tsr_need){.blob = first > suffix ? first : suffix};
}

enum tsr_status tsr_splice_open(struct tsr_input *input, bool owns_input, const struct tsr_header *header,
                                uint64_t first, struct tsr_source **source, struct tsr_error *error)
{
    struct splice_source *s = calloc(1, sizeof *s);
    *source = NULL;
    if (!s) {
        if (owns_input) tsr_input_close(input);
        return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for a source");
    }
    s->base.ops = &splice_ops;
    s->base.header = *header;
    s->samples = input;
    s->owns_samples = owns_input;
    s->first = first;
    const struct tsr_image *image = &header->image;
    enum tsr_status status = tsr_check_image(image, error);
    if (status != TSR_OK) status = TSR_ERROR_CORRUPT;
    uint64_t total_bits = 0;
    if (status == TSR_OK) {
        const uint64_t size = tsr_input_size(input);
        total_bits = tsr_frame_bits(image) * image->frames; /* below 2^32 * 2^31 */
        s->raster_bytes = total_bits / 8 + (total_bits % 8 != 0);
        if (first > size || s->raster_bytes > size - first)
            status = tsr_fail_at(
                error, TSR_ERROR_CORRUPT, size, "it ends before its last sample: %llu bytes of samples, %llu are there",
                (unsigned long long)s->raster_bytes, (unsigned long long)(first > size ? 0 : size - first));
    }
    if (status == TSR_OK && image->bits_allocated == 1) {
        s->window = malloc((size_t)(tsr_frame_bits(image) / 8 + 2));
        if (!s->window) status = tsr_fail(error, TSR_ERROR_LIMIT, "no memory for a frame");
    }
    if (status == TSR_OK) status = keep_spare_bits(s, total_bits, error);
    if (status != TSR_OK) {
        close_splice(&s->base);
        return status;
    }
    s->base.blob_size[TSR_BLOB_PREFIX] = first;
    s->base.blob_size[TSR_BLOB_SUFFIX] = tsr_input_size(input) - first - s->raster_bytes;
    *source = &s->base;
    return TSR_OK;
}
