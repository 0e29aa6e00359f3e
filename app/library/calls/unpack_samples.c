/* The words of a raster as samples of 16 bits, one after the other. */
#include "app/library/arguments.h"
#include "kernels/measure/difference_cpu.h"
#include "transform/image.h"
#include "transform/status.h"

enum tsr_status tsr_unpack_samples(const struct tsr_image *image, const uint8_t *raster, uint16_t *samples,
                                   struct tsr_error *error)
{
    TSR_TRY(tsr_check_pointer(image, "image", error));
    TSR_TRY(tsr_check_pointer(raster, "raster", error));
    TSR_TRY(tsr_check_pointer(samples, "samples", error));
    if (image->bits_allocated == 32 || image->bits_allocated == 64)
        return tsr_fail(error, TSR_ERROR_USAGE, "samples of %d bits do not fit into 16", image->bits_allocated);
    TSR_TRY(tsr_check_coded_image(image, error));
    const size_t count = (size_t)image->columns * image->rows, components = image->components;
    const int64_t least = image->is_signed ? -((int64_t)1 << (image->bits_stored - 1)) : 0;
    for (size_t i = 0; i < count; i++)
        for (size_t c = 0; c < components; c++)
            samples[i * components + c] =
                (uint16_t)(tsr_raster_value(image, raster, image->planar ? c * count + i : i * components + c) - least);
    return TSR_OK;
}
