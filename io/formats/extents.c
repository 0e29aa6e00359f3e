/* What sources are made of: extents of blobs, and frames in memory or in an input. See source.h. */
#include <stdlib.h>
#include <string.h>

#include "format.h"

void *tsr_source_create(size_t bytes, struct tsr_input *input, const struct tsr_header *header,
                        const struct tsr_source_ops *ops, struct tsr_error *error)
{
    struct tsr_source *const source = calloc(1, bytes);
    if (!source) {
        tsr_fail(error, TSR_ERROR_LIMIT, "no memory for a source");
        return NULL;
    }
    source->input = input;
    source->header = *header;
    source->ops = ops;
    return source;
}

void tsr_source_forget(struct tsr_source *source, enum tsr_blob blob, uint64_t offset)
{
    struct tsr_extents *const extents = &source->blob[blob];
    size_t first = 0;
    for (; first < extents->count && extents->extent[first].at + extents->extent[first].size <= offset; first++)
        if (extents->extent[first].is_owned) free((uint8_t *)(uintptr_t)extents->extent[first].bytes);
    extents->count -= first;
    if (first > 0) memmove(extents->extent, extents->extent + first, extents->count * sizeof *extents->extent);
}

void tsr_source_clear(struct tsr_source *source, enum tsr_blob blob)
{
    tsr_source_forget(source, blob, UINT64_MAX);
    free(source->blob[blob].extent);
    source->blob[blob] = (struct tsr_extents){NULL, 0, 0};
    source->blob_size[blob] = 0;
}

void tsr_source_close(struct tsr_source *source)
{
    if (!source) return;
    if (source->ops && source->ops->close) source->ops->close(source);
    for (int blob = 0; blob < TSR_BLOB_COUNT; blob++) tsr_source_clear(source, (enum tsr_blob)blob);
    if (source->owns_samples) tsr_input_close(source->samples);
    for (size_t i = 0; i < sizeof source->held / sizeof source->held[0]; i++) free(source->held[i]);
    free(source->window);
    free(source->windows.frame);
    free(source);
}

enum tsr_status tsr_source_finish(void *made, enum tsr_status status, struct tsr_source **source)
{
    *source = status == TSR_OK ? made : NULL;
    if (status != TSR_OK) tsr_source_close(made);
    return status;
}

/* ---- Extents ------------------------------------------------------------------------------------------------ */

static enum tsr_status put_extent(struct tsr_source *source, enum tsr_blob blob, struct tsr_extent extent,
                                  struct tsr_error *error)
{
    struct tsr_extents *const extents = &source->blob[blob];
    if (extents->count == extents->capacity) {
        const size_t capacity = extents->capacity ? 2 * extents->capacity : 1;
        struct tsr_extent *const grown = realloc(extents->extent, capacity * sizeof *grown);
        if (!grown) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for %zu parts of a file", capacity);
        extents->extent = grown;
        extents->capacity = capacity;
    }
    extent.at = source->blob_size[blob];
    source->blob_size[blob] += extent.size;
    extents->extent[extents->count++] = extent;
    return TSR_OK;
}

enum tsr_status tsr_source_put(struct tsr_source *source, enum tsr_blob blob, const uint8_t *bytes, uint64_t size,
                               bool is_owned, struct tsr_error *error)
{
    const struct tsr_extent extent = {
        .size = size, .bytes = bytes ? bytes : (const uint8_t *)"", .is_owned = is_owned && bytes};
    const enum tsr_status status = put_extent(source, blob, extent, error);
    if (status != TSR_OK && is_owned) free((uint8_t *)(uintptr_t)bytes);
    return status;
}

enum tsr_status tsr_source_put_small(struct tsr_source *source, enum tsr_blob blob, const uint8_t *bytes, size_t size,
                                     struct tsr_error *error)
{
    struct tsr_extent extent = {.size = size, .is_small = true};
    memcpy(extent.own, bytes, size);
    return put_extent(source, blob, extent, error);
}

enum tsr_status tsr_source_put_range(struct tsr_source *source, enum tsr_blob blob, uint64_t offset, uint64_t size,
                                     struct tsr_error *error)
{
    return put_extent(source, blob, (struct tsr_extent){.size = size, .offset = offset}, error);
}

enum tsr_status tsr_source_read_blob(struct tsr_source *source, enum tsr_blob blob, uint64_t offset, void *buffer,
                                     size_t size, struct tsr_error *error)
{
    const struct tsr_extents *const extents = &source->blob[blob];
    uint8_t *to = buffer;
    size_t first = 0;
    for (size_t after = extents->count; after - first > 1;) { /* the last one that begins at the offset or before it */
        const size_t middle = first + (after - first) / 2;
        if (extents->extent[middle].at <= offset)
            first = middle;
        else
            after = middle;
    }
    for (size_t i = first; i < extents->count && size > 0; i++) {
        const struct tsr_extent *const extent = &extents->extent[i];
        const uint64_t skip = offset - extent->at, left = extent->size - skip;
        const size_t now = left < size ? (size_t)left : size;
        struct tsr_input *const input = source->samples ? source->samples : source->input;
        if (extent->bytes || extent->is_small)
            memcpy(to, (extent->is_small ? extent->own : extent->bytes) + skip, now);
        else if (now > 0)
            TSR_TRY(tsr_input_read(input, extent->offset + skip, to, now, error));
        to += now;
        offset += now;
        size -= now;
    }
    return size == 0 ? TSR_OK : tsr_fail(error, TSR_ERROR_INTERNAL, "a source ends %zu bytes early", size);
}

/* ---- Frames ------------------------------------------------------------------------------------------------- */

/* The samples that stand for the values of a frame. */
static enum tsr_status read_values(struct tsr_source *s, uint32_t frame, uint8_t *raster, struct tsr_error *error)
{
    const struct tsr_image image = tsr_original_image(&s->header);
    const size_t bytes = tsr_raster_bytes(&image), count = bytes / (s->header.values.bits / 8);
    TSR_TRY(tsr_input_read(s->samples, s->first + (uint64_t)bytes * frame, s->window, bytes, error));
    if (tsr_values_split(&s->header.values, &s->header.image, s->window, count, raster)) return TSR_OK;
    return tsr_fail(error, TSR_ERROR_READ, "%s has changed while it was read", tsr_input_name(s->input));
}

/* A frame that lies in the samples. */
static enum tsr_status read_samples(struct tsr_source *s, uint32_t frame, uint8_t *raster, struct tsr_error *error)
{
    if (tsr_has_values(&s->header)) return read_values(s, frame, raster, error);
    const uint64_t bits = tsr_frame_bits(&s->header.image), start = bits * frame;
    const size_t bytes = (size_t)((bits + 7) / 8);
    const int shift = (int)(start % 8), spare = (int)((8 - bits % 8) % 8);
    if (shift == 0 && spare == 0 && s->rasters_last && s->samples == s->input) {
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

enum tsr_status tsr_source_read_frame(struct tsr_source *source, uint32_t frame, uint8_t *raster,
                                      struct tsr_error *error)
{
    const size_t bytes = tsr_raster_bytes(&source->header.image);
    frame += source->skipped;
    if (source->rasters && !(source->units && source->units[frame])) {
        memcpy(raster, source->rasters + frame * bytes, bytes);
        return TSR_OK;
    }
    if (source->ops && source->ops->read_frame) return source->ops->read_frame(source, frame, raster, error);
    if (source->samples) return read_samples(source, frame, raster, error);
    return tsr_fail(error, TSR_ERROR_INTERNAL, "a file without frames has no frame %u", frame);
}

/* ---- Splices ------------------------------------------------------------------------------------------------ */

/* The bits of the last raster byte that are after the last sample are a parameter of the recipe. FORMAT.md 4.1. */
static enum tsr_status keep_spare_bits(struct tsr_source *s, uint64_t total_bits, struct tsr_error *error)
{
    uint8_t last;
    if (total_bits % 8 == 0) return TSR_OK;
    TSR_TRY(tsr_input_read(s->samples, s->first + total_bits / 8, &last, 1, error));
    if (s->header.parameter_count == TSR_PARAMETERS_LIMIT)
        return tsr_fail(error, TSR_ERROR_INTERNAL, "the header has no room for the spare bits");
    s->header.parameters[s->header.parameter_count++] = (uint8_t)(last >> (total_bits % 8));
    return TSR_OK;
}

struct tsr_need tsr_splice_need(const struct tsr_header *header, uint64_t first, uint64_t size)
{
    const uint64_t rasters = tsr_original_rasters(header), rest = size > first ? size - first : 0,
                   suffix = rest > rasters ? rest - rasters : 0;
    return (struct tsr_need){.blob = first > suffix ? first : suffix};
}

enum tsr_status tsr_source_splice(struct tsr_source *s, uint64_t first, struct tsr_error *error)
{
    const struct tsr_image original = tsr_original_image(&s->header), *const image = &original;
    if (!s->samples) s->samples = s->input;
    const uint64_t size = tsr_input_size(s->samples);
    if (tsr_check_coded_image(&s->header.image, error) != TSR_OK) return TSR_ERROR_CORRUPT;
    const uint64_t bits = tsr_frame_bits(image) * image->frames, /* below 2^33 * 2^31 */
        rasters = bits / 8 + (bits % 8 != 0);
    if (first > size || rasters > size - first)
        return tsr_fail_at(error, TSR_ERROR_CORRUPT, size,
                           "it ends before its last sample: %llu bytes of samples, %llu are there",
                           (unsigned long long)rasters, (unsigned long long)(first > size ? 0 : size - first));
    s->first = first;
    s->input_has_rasters = s->samples == s->input && bits % 8 == 0 && tsr_frame_bits(image) % 8 == 0 &&
                           !tsr_has_values(&s->header) && !(s->ops && s->ops->read_frame);
    if ((image->bits_allocated == 1 || tsr_has_values(&s->header)) &&
        !(s->window = malloc((size_t)(tsr_frame_bits(image) / 8 + 2))))
        return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for a frame");
    TSR_TRY(keep_spare_bits(s, bits, error));
    TSR_TRY(tsr_source_put_range(s, TSR_BLOB_PREFIX, 0, first, error));
    return tsr_source_put_range(s, TSR_BLOB_SUFFIX, first + rasters, size - first - rasters, error);
}

enum tsr_status tsr_splice_open(struct tsr_input *input, const struct tsr_header *header, uint64_t first,
                                struct tsr_source **source, struct tsr_error *error)
{
    struct tsr_source *const s = tsr_source_create(sizeof *s, input, header, NULL, error);
    const enum tsr_status status = s ? tsr_source_splice(s, first, error) : TSR_ERROR_LIMIT;
    return tsr_source_finish(s, status, source);
}
