/* Words and values of a raster (FORMAT.md section 3.2), one at a time, whatever its layout. */
#ifndef TSR_TRANSFORM_PLANES_RASTER_WORDS_H
#define TSR_TRANSFORM_PLANES_RASTER_WORDS_H

#include "app/tessera.h"
#include "samples.h"

/* Word number i of 8 or 16 bits allocated. */
TSR_HD uint32_t tsr_raster_word(const struct tsr_image *image, const uint8_t *raster, size_t i)
{
    if (image->bits_allocated == 8) return raster[i ^ (size_t)image->swapped];
    return (uint32_t)raster[2 * i + !image->big_endian] << 8 | raster[2 * i + image->big_endian];
}

/* The stored value of word number i, of any bits allocated. Words of 32 bits are values as a whole. */
TSR_HD_INLINE int64_t tsr_raster_value(const struct tsr_image *image, const uint8_t *raster, size_t i)
{
    uint32_t word = 0;
    if (image->bits_allocated == 32) {
        for (size_t k = 0; k < 4; k++) word = word << 8 | raster[4 * i + (image->big_endian ? k : 3 - k)];
        return image->is_signed ? (int64_t)(int32_t)word : (int64_t)word;
    }
    word = image->bits_allocated == 1 ? (uint32_t)raster[(i >> 3) ^ (size_t)image->swapped] >> (i & 7) & 1u
                                      : tsr_raster_word(image, raster, i);
    const int32_t bias = image->is_signed ? 1 << (image->bits_stored - 1) : 0;
    return tsr_word_sample(word, tsr_word_layout(image->bits_allocated, image->bits_stored, image->high_bit,
                                                 image->is_signed, false)) -
           bias;
}

#endif
