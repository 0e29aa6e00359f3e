/* Bytes of the samples of an image. Its bits: tsr_frame_bits. */
#ifndef TSR_TRANSFORM_IMAGE_H
#define TSR_TRANSFORM_IMAGE_H

#include "app/tessera.h"
#include "hd.h"

/* As tsr_check_image, of an image whose samples an engine codes: they are integers of at most 32 bits. */
enum tsr_status tsr_check_coded_image(const struct tsr_image *image, struct tsr_error *error);

/* Images that differ in nothing but the number of frames and how they are cut into tiles. */
TSR_HD bool tsr_alike_samples(const struct tsr_image *a, const struct tsr_image *b)
{
    return a->columns == b->columns && a->rows == b->rows && a->components == b->components &&
           a->bits_allocated == b->bits_allocated && a->bits_stored == b->bits_stored && a->high_bit == b->high_bit &&
           a->is_signed == b->is_signed && a->planar == b->planar && a->big_endian == b->big_endian &&
           a->swapped == b->swapped && a->exact_only == b->exact_only && a->stacked_rows == b->stacked_rows;
}

/* Images that differ in nothing but the number of frames. */
TSR_HD bool tsr_alike_images(const struct tsr_image *a, const struct tsr_image *b)
{
    return tsr_alike_samples(a, b) && a->tile_side == b->tile_side;
}

/* The same image, however an encoder cuts it. */
static inline bool tsr_same_image(const struct tsr_image *a, const struct tsr_image *b)
{
    return tsr_alike_samples(a, b) && a->frames == b->frames;
}

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
