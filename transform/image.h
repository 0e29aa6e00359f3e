/* Bytes of the samples of an image. Its bits: tsr_frame_bits. */
#ifndef TSR_TRANSFORM_IMAGE_H
#define TSR_TRANSFORM_IMAGE_H

#include "app/tessera.h"

/* As tsr_check_image, of an image whose samples an engine codes: they are integers of at most 32 bits. */
enum tsr_status tsr_check_coded_image(const struct tsr_image *image, struct tsr_error *error);

/* Bytes of a frame's raster. */
static inline size_t tsr_raster_bytes(const struct tsr_image *image)
{
    return (size_t)((tsr_frame_bits(image) + 7) / 8);
}

/* Bytes of the rasters of all frames, one directly after the other: single bits have no gaps between frames. */
static inline uint64_t tsr_all_rasters(const struct tsr_image *image)
{
    const uint64_t bits = tsr_frame_bits(image) * image->frames;
    return bits / 8 + (bits % 8 != 0);
}

#endif
