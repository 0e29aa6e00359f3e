/* Random images and rasters for the tests of kernels/. */
#ifndef TSR_TESTS_UNIT_IMAGES_H
#define TSR_TESTS_UNIT_IMAGES_H

#include "support.h"

#include "app/tessera.h"
#include "tests/plain_image.h"

/* An image of any layout with one frame of at most `most` x `most` samples. */
static inline struct tsr_image random_image(struct rng *r, int32_t most)
{
    static const uint8_t allocated[] = {1, 8, 16, 32, 8, 16, 16, 16};
    struct tsr_image image = {0};
    image.columns = (uint32_t)rng_between(r, 1, most);
    image.rows = (uint32_t)rng_between(r, 1, most);
    image.frames = 1;
    image.components = (uint8_t)rng_between(r, 1, 4);
    image.bits_allocated = allocated[rng_below(r, COUNT_OF(allocated))];
    image.bits_stored = (uint8_t)(rng_below(r, 3) ? image.bits_allocated : rng_between(r, 1, image.bits_allocated));
    image.high_bit = (uint8_t)rng_between(r, image.bits_stored - 1, image.bits_allocated - 1);
    if (rng_below(r, 2)) image.high_bit = (uint8_t)(image.bits_stored - 1);
    image.is_signed = rng_below(r, 2);
    image.planar = rng_below(r, 2);
    image.big_endian = rng_below(r, 2);
    image.swapped = image.bits_allocated <= 8 && tsr_frame_bits(&image) % 16 == 0 && rng_below(r, 2);
    return image;
}

static inline size_t raster_bytes(const struct tsr_image *image)
{
    return (size_t)((tsr_frame_bits(image) + 7) / 8);
}

/* The kinds of contents: noise; all zeros; few samples that are not zero; few values; extremes; a ramp with a little
 * noise, sign-extended. */
enum { CONTENTS = 6 };

static inline void put_word(const struct tsr_image *image, uint8_t *raster, size_t at, uint32_t word)
{
    const size_t bits = image->bits_allocated;
    for (size_t b = 0; b < bits; b++) {
        size_t byte = (at * bits + b) / 8;
        if (image->big_endian && bits > 8) byte = at * bits / 8 + (bits / 8 - 1 - b / 8);
        if (image->swapped) byte ^= 1u;
        const uint8_t mask = (uint8_t)(1u << (at * bits + b) % 8);
        raster[byte] = (uint8_t)(word >> b & 1u ? raster[byte] | mask : raster[byte] & ~mask);
    }
}

/* A word of a raster, read bit by bit as FORMAT.md 3.2 says. */
static inline uint32_t get_word(const struct tsr_image *image, const uint8_t *raster, size_t at)
{
    const size_t bits = image->bits_allocated;
    uint32_t word = 0;
    for (size_t b = 0; b < bits; b++) {
        size_t byte = (at * bits + b) / 8;
        if (image->big_endian && bits > 8) byte = at * bits / 8 + (bits / 8 - 1 - b / 8);
        if (image->swapped) byte ^= 1u;
        word |= (uint32_t)(raster[byte] >> (at * bits + b) % 8 & 1u) << b;
    }
    return word;
}

/* The stored value of a word, by FORMAT.md 3.2 and 6.1. */
static inline int64_t get_value(const struct tsr_image *image, const uint8_t *raster, size_t at)
{
    const bool whole = image->bits_allocated == 32;
    const int bits = whole ? 32 : image->bits_stored, low = whole ? 0 : image->high_bit + 1 - bits;
    const int64_t field = (int64_t)(get_word(image, raster, at) / ((uint64_t)1 << low) % ((uint64_t)1 << bits));
    return image->is_signed && field >= (int64_t)1 << (bits - 1) ? field - ((int64_t)1 << bits) : field;
}

/* The index of a sample among the words of a raster. */
static inline size_t word_place(const struct tsr_image *image, int component, size_t sample)
{
    const size_t count = (size_t)image->columns * image->rows;
    return image->planar ? (size_t)component * count + sample : sample * image->components + (size_t)component;
}

static inline void fill_raster(struct rng *r, const struct tsr_image *image, int content, uint8_t *raster)
{
    const size_t bytes = raster_bytes(image), count = (size_t)image->columns * image->rows;
    const uint64_t bits = tsr_frame_bits(image);
    for (size_t i = 0; i < bytes; i++)
        raster[i] = (uint8_t)(content == 0                            ? rng_next(r)
                              : content == 2 && rng_below(r, 20) == 0 ? rng_next(r)
                              : content == 3                          ? rng_below(r, 3) * 40
                              : content == 4                          ? (rng_below(r, 2) ? 0xff : 0)
                                                                      : 0);
    if (content == 5) {
        const int low = image->high_bit + 1 - image->bits_stored;
        for (size_t i = 0; i < count; i++)
            for (int c = 0; c < image->components; c++) {
                const uint64_t ramp =
                    (i % image->columns + i / image->columns) * 3 + rng_below(r, 4) + 5u * (unsigned)c;
                const uint32_t values = image->bits_stored == 32 ? UINT32_MAX : (1u << image->bits_stored) - 1u;
                uint32_t word = (uint32_t)ramp & values;
                if (image->is_signed && word >> (image->bits_stored - 1)) word |= ~values;
                put_word(image, raster, word_place(image, c, i), word << low);
            }
    }
    if (bits % 8) raster[bytes - 1] &= (uint8_t)((1u << bits % 8) - 1u);
}

/* A hill over the whole frame, with a little noise: planes of DCs (FORMAT.md 8.9) take fewer bytes. */
static inline void fill_smooth(struct rng *r, const struct tsr_image *image, uint8_t *raster)
{
    const uint64_t columns = image->columns, rows = image->rows, values = ((uint64_t)1 << image->bits_stored) - 1u;
    const int low = image->high_bit + 1 - image->bits_stored;
    memset(raster, 0, raster_bytes(image));
    for (uint64_t i = 0; i < columns * rows; i++)
        for (uint64_t c = 0; c < image->components; c++) {
            const uint64_t x = i % columns, y = i / columns, across = x * (columns - x), down = y * (rows - y);
            const uint64_t hill = (across * 4096 / (columns * columns) + down * 4096 / (rows * rows)) * (4 - c);
            uint64_t word = (hill * values >> 14) + rng_below(r, 1 + (uint32_t)(values >> 6));
            word = word < values / 2 ? word : values / 2; /* not negative */
            put_word(image, raster, word_place(image, (int)c, (size_t)i), (uint32_t)word << low);
        }
}

/* Draws a screen: flat rectangles and letters with `colours` colours. No component alone determines the colour. step:
 * the difference between neighbouring values of a component. noise: the lower third is noise of all values. */
static inline void fill_screen(struct rng *r, const struct tsr_image *image, uint32_t colours, uint32_t step,
                               bool noise, uint8_t *raster)
{
    const uint32_t columns = image->columns, rows = image->rows, values = (1u << image->bits_stored) - 1u;
    memset(raster, 0, raster_bytes(image));
    for (int rectangle = 0; rectangle < 30; rectangle++) {
        const uint32_t colour = rectangle ? rng_below(r, colours) : 0;
        const uint32_t left = rectangle ? rng_below(r, columns) : 0, top = rectangle ? rng_below(r, rows) : 0;
        const uint32_t right = rectangle ? left + 1 + rng_below(r, 40) : columns;
        const uint32_t bottom = rectangle ? top + 1 + rng_below(r, 20) : rows;
        const bool letters = rectangle % 3 == 2;
        for (uint32_t y = top; y < bottom && y < rows; y++)
            for (uint32_t x = left; x < right && x < columns; x++) {
                if (letters && rng_below(r, 4)) continue;
                for (uint32_t c = 0; c < image->components; c++)
                    put_word(image, raster, word_place(image, (int)c, (size_t)y * columns + x),
                             (colour * (5 + 2 * c) % colours * step + c) & values);
            }
    }
    for (size_t i = (size_t)(rows - rows / 3) * columns; noise && i < (size_t)rows * columns; i++)
        for (uint32_t c = 0; c < image->components; c++)
            put_word(image, raster, word_place(image, (int)c, i), (uint32_t)rng_next(r) & values);
}

#endif
