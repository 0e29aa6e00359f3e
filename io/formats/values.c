/* Values of images; see values.h. */
#include "values.h"

#include <stdlib.h>

#include "transform/planes/samples.h"

/* Sample number i of a raster as the number that it stands for. */
static inline int32_t value_at(const struct tsr_image *image, const uint8_t *raster, size_t i)
{
    const uint32_t word = image->bits_allocated == 8
                              ? raster[i ^ (size_t)image->swapped]
                              : (uint32_t)raster[2 * i + !image->big_endian] << 8 | raster[2 * i + image->big_endian];
    const struct tsr_word_layout layout =
        tsr_word_layout(image->bits_allocated, image->bits_stored, image->high_bit, image->is_signed, false);
    return tsr_word_sample(word, layout) - (image->is_signed ? 1 << (image->bits_stored - 1) : 0);
}

void tsr_add_values(const struct tsr_image *image, const uint8_t *raster, struct tsr_value_range *range)
{
    const size_t samples = (size_t)image->columns * image->rows * image->components;
    struct tsr_value_range r = *range;
    for (size_t i = 0; i < samples; i++) {
        const int32_t value = value_at(image, raster, i);
        r.low = value < r.low ? value : r.low;
        r.high = value > r.high ? value : r.high;
    }
    *range = r;
}

/* The different pixels that were seen: the samples of each in one number. */
struct pixels {
    uint64_t seen[TSR_FEW_VALUES + 1];
    int count;
};

/* Adds the pixels of a frame, until there are more than a few. */
static void add_pixels(const struct tsr_image *image, const uint8_t *raster, struct pixels *p)
{
    const size_t count = (size_t)image->columns * image->rows, components = image->components;
    for (size_t i = 0; i < count && p->count <= TSR_FEW_VALUES; i++) {
        uint64_t pixel = 0;
        for (size_t c = 0; c < components; c++) {
            const size_t at = image->planar ? c * count + i : i * components + c;
            pixel = pixel << 16 | (uint16_t)value_at(image, raster, at);
        }
        int k = 0;
        while (k < p->count && p->seen[k] != pixel) k++;
        if (k == p->count) p->seen[p->count++] = pixel;
    }
}

enum tsr_status tsr_has_few_values(struct tsr_source *source, bool *few, struct tsr_error *error)
{
    const struct tsr_image *const image = &source->header.image;
    const size_t bytes = (size_t)((tsr_frame_bits(image) + 7) / 8);
    const uint8_t *const held = source->ops->rasters ? source->ops->rasters(source) : NULL;
    uint8_t *const raster = held ? NULL : malloc(bytes);
    struct pixels pixels = {.count = 0};
    enum tsr_status status = TSR_OK;
    if (!held && !raster) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for a frame of %zu bytes", bytes);
    for (uint32_t f = 0; f < image->frames && pixels.count <= TSR_FEW_VALUES && status == TSR_OK; f++) {
        if (raster) status = source->ops->read_frame(source, f, raster, error);
        if (status == TSR_OK) add_pixels(image, raster ? raster : held + f * bytes, &pixels);
    }
    free(raster);
    *few = status == TSR_OK && pixels.count <= TSR_FEW_VALUES;
    return status;
}
