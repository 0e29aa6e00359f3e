/* Words of rasters of 8 and 16 bits allocated, and which of their samples are kept. */
#ifndef TSR_KERNELS_KEPT_KEPT_WORDS_H
#define TSR_KERNELS_KEPT_KEPT_WORDS_H

#include <string.h>

#include "transform/planes/kept_ranges.h"
#include "transform/planes/raster_words.h"

static inline void tsr_set_raster_word(const struct tsr_image *image, uint8_t *raster, size_t i, uint32_t word)
{
    if (image->bits_allocated == 8) {
        raster[i ^ (size_t)image->swapped] = (uint8_t)word;
        return;
    }
    raster[2 * i + !image->big_endian] = (uint8_t)(word >> 8);
    raster[2 * i + image->big_endian] = (uint8_t)word;
}

/* As the header says that words are: bits above repeat the sign of numbers that have one. */
static inline struct tsr_word_layout tsr_expected_layout(const struct tsr_image *image)
{
    return tsr_word_layout(image->bits_allocated, image->bits_stored, image->high_bit, image->is_signed,
                           image->is_signed);
}

/* The words of one component in a raster: the number of the first one, and the distances to the next one and to the
 * next row. */
struct tsr_raster_component {
    size_t first, step, row;
};

static inline struct tsr_raster_component tsr_component_of(const struct tsr_image *image, unsigned c)
{
    const size_t columns = image->columns;
    if (image->planar) return (struct tsr_raster_component){c * columns * image->rows, 1, columns};
    return (struct tsr_raster_component){c, image->components, columns * image->components};
}

/* Samples of a row that are looked at together: loops over so many become vectors. */
enum { TSR_STRETCH = 256 };

/* The values of at most TSR_STRETCH samples, from word number i on. */
static inline void tsr_stretch_values(const struct tsr_image *image, struct tsr_word_layout layout,
                                      const uint8_t *raster, size_t i, size_t step, int count, uint16_t *values)
{
    const bool is_native = image->big_endian == (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__);
    if (image->bits_allocated == 16 && is_native && step == 1) /* the usual case */
        memcpy(values, raster + 2 * i, 2 * (size_t)count);
    else
        for (int k = 0; k < count; k++, i += step) values[k] = (uint16_t)tsr_raster_word(image, raster, i);
    const uint16_t mask = (uint16_t)((1u << layout.bits_stored) - 1u),
                   bias = (uint16_t)(layout.is_signed ? 1u << (layout.bits_stored - 1) : 0);
    for (int k = 0; k < count; k++) /* tsr_word_sample, as vectors */
        values[k] = (uint16_t)((values[k] >> layout.low_bit & mask) ^ bias);
}

/* Gives those of the samples that have changed their values; bits outside of samples stay. */
static inline void tsr_put_stretch(const struct tsr_image *image, struct tsr_word_layout layout,
                                   const uint16_t *restrict values, const uint16_t *restrict changed, size_t i,
                                   size_t step, int count, uint8_t *raster)
{
    const bool is_native = image->big_endian == (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__);
    if (image->bits_allocated == 16 && is_native && step == 1) {
        /* tsr_join_word, as vectors: bits above that repeat the sign change with it. */
        const uint16_t mask = (uint16_t)(((1u << layout.bits_stored) - 1u) << layout.low_bit),
                       bias = (uint16_t)(layout.is_signed ? 1u << (layout.bits_stored - 1) : 0),
                       sign = (uint16_t)(layout.extends_sign ? 1u << (layout.low_bit + layout.bits_stored - 1) : 0),
                       above = (uint16_t) ~((sign << 1) - 1u);
        uint16_t words[TSR_STRETCH];
        memcpy(words, raster + 2 * i, 2 * (size_t)count);
        for (int k = 0; k < count; k++) {
            const uint16_t field = (uint16_t)((uint16_t)(values[k] ^ bias) << layout.low_bit),
                           flips = (uint16_t)((words[k] ^ field) & sign ? above : 0),
                           word = (uint16_t)(((words[k] & (uint16_t)~mask) | field) ^ flips);
            words[k] = changed[k] ? word : words[k];
        }
        memcpy(raster + 2 * i, words, 2 * (size_t)count);
        return;
    }
    for (int k = 0; k < count; k++, i += step) {
        const uint32_t word = tsr_raster_word(image, raster, i);
        if (changed[k])
            tsr_set_raster_word(image, raster, i, tsr_join_word(values[k], tsr_word_outside(word, layout), layout));
    }
}

/* The numbers of values (kept_ranges.h). Returns whether one is not 0. */
static inline bool tsr_stretch_numbers(const struct tsr_kept_ranges *kept, const uint16_t *restrict values, int count,
                                       uint16_t *restrict numbers)
{
    uint16_t before = 1, any = 0;
    memset(numbers, 0, (size_t)count * sizeof *numbers);
    for (int i = 0; i < kept->count; i++) {
        const uint16_t lowest = (uint16_t)kept->range[i].lowest, span = (uint16_t)(kept->range[i].highest - lowest);
        for (int k = 0; k < count; k++) {
            const uint16_t offset = (uint16_t)(values[k] - lowest), number = (uint16_t)(before + offset);
            numbers[k] = (uint16_t)(numbers[k] | (offset <= span ? number : 0)); /* a value is in one range */
        }
        before = (uint16_t)(before + span + 1);
    }
    for (int k = 0; k < count; k++) any |= numbers[k];
    return any != 0;
}

#endif
