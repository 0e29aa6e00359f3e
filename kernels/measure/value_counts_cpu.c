/* How often a frame has each value. Four equal values, as in backgrounds, are added at once: else each addition waits
 * for the one before. Counting a CT's 512 x 512 values on an AMD EPYC (Zen 5) so takes 0.57 to 1.0 of the time of one
 * addition a value; four tables, which are added up after each frame, take 0.72 to 0.92. */
#include <assert.h>
#include <string.h>

#include "difference_cpu.h"

enum { BLOCK = 512 };

static void count_block(const uint16_t *value, size_t count, uint64_t *counts)
{
    size_t i = 0;
    for (; i + 4 <= count; i += 4) {
        const uint64_t first = value[i] * (uint64_t)0x0001000100010001;
        if (memcmp(value + i, &first, sizeof first) == 0) {
            counts[value[i]] += 4;
            continue;
        }
        for (size_t k = 0; k < 4; k++) counts[value[i + k]]++;
    }
    for (; i < count; i++) counts[value[i]]++;
}

/* Inlined for each size of words. */
static inline __attribute__((always_inline)) void count_words(struct tsr_image image, int bits, const uint8_t *raster,
                                                              size_t words, int64_t least, uint64_t *counts)
{
    image.bits_allocated = (uint8_t)bits;
    for (size_t i = 0; i < words; i += BLOCK) {
        uint16_t value[BLOCK];
        const size_t here = words - i < BLOCK ? words - i : BLOCK;
        for (size_t k = 0; k < here; k++) value[k] = (uint16_t)(tsr_raster_value(&image, raster, i + k) - least);
        count_block(value, here, counts);
    }
}

void tsr_count_values(const struct tsr_image *image, const uint8_t *raster, uint64_t counts[TSR_VALUE_COUNTS])
{
    const size_t words = (size_t)image->columns * image->rows * image->components;
    const int64_t least = image->is_signed ? -((int64_t)1 << (image->bits_stored - 1)) : 0;
    assert(image->bits_allocated <= 16);
    if (image->bits_allocated == 16)
        count_words(*image, 16, raster, words, least, counts);
    else
        count_words(*image, image->bits_allocated, raster, words, least, counts);
}
