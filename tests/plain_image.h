/* The image of most tests and benchmarks: unsigned, one frame. */
#ifndef TSR_TESTS_PLAIN_IMAGE_H
#define TSR_TESTS_PLAIN_IMAGE_H

#include "app/tessera.h"

/* bits: of a sample. Words have 8 or 16 bits. */
static inline struct tsr_image plain_image(uint32_t columns, uint32_t rows, int components, int bits)
{
    struct tsr_image image = {0};
    image.columns = columns;
    image.rows = rows;
    image.frames = 1;
    image.components = (uint8_t)components;
    image.bits_allocated = bits > 8 ? 16 : 8;
    image.bits_stored = (uint8_t)bits;
    image.high_bit = (uint8_t)(bits - 1);
    return image;
}

#endif
