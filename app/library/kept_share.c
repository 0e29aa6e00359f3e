/* How much of an image has values that loss must not change. */
#include <stdlib.h>

#include "flow.h"
#include "kernels/kept/kept_frames.h"

const struct tsr_kept_ranges *tsr_kept_of(const struct tsr_header *header, const struct tsr_coding *coding)
{
    static const struct tsr_kept_ranges none = {0};
    return coding->lossy ? &header->kept : &none;
}

enum tsr_status tsr_weigh_kept(struct tsr_source *source, bool *is_mostly_kept, struct tsr_error *error)
{
    const struct tsr_image *const image = &source->header.image;
    const size_t bytes = tsr_raster_bytes(image);
    const uint64_t samples = (uint64_t)image->columns * image->rows * image->components,
                   half = samples * image->frames / 2;
    const uint8_t *const held = source->ops->rasters ? source->ops->rasters(source) : NULL;
    uint8_t *const raster = held ? NULL : malloc(bytes);
    uint64_t kept = 0;
    enum tsr_status status = TSR_OK;
    *is_mostly_kept = false;
    if (!held && !raster) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for a frame of %zu bytes", bytes);
    for (uint32_t f = 0; f < image->frames && status == TSR_OK; f++) {
        if (kept > half || samples * f - kept > half) break;
        if (raster) status = source->ops->read_frame(source, f, raster, error);
        if (status == TSR_OK)
            kept += tsr_count_kept(image, &source->header.kept, raster ? raster : held + (size_t)f * bytes);
    }
    free(raster);
    *is_mostly_kept = kept > half;
    return status;
}
