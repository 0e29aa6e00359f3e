/* Values of images; see values.h. */
#include "values.h"

#include "transform/planes/raster_words.h"

void tsr_add_values(const struct tsr_image *image, const uint8_t *raster, struct tsr_value_range *range)
{
    const size_t samples = (size_t)image->columns * image->rows * image->components;
    struct tsr_value_range r = *range;
    for (size_t i = 0; i < samples; i++) {
        const int32_t value = (int32_t)tsr_raster_value(image, raster, i);
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
static bool add_pixels(void *context, const struct tsr_image *image, const uint8_t *raster)
{
    struct pixels *const p = context;
    const size_t count = (size_t)image->columns * image->rows, components = image->components;
    for (size_t i = 0; i < count && p->count <= TSR_FEW_VALUES; i++) {
        uint64_t pixel = 0;
        for (size_t c = 0; c < components; c++) {
            const size_t at = image->planar ? c * count + i : i * components + c;
            pixel = pixel << 16 | (uint16_t)tsr_raster_value(image, raster, at);
        }
        int k = 0;
        while (k < p->count && p->seen[k] != pixel) k++;
        if (k == p->count) p->seen[p->count++] = pixel;
    }
    return p->count <= TSR_FEW_VALUES;
}

enum tsr_status tsr_has_few_values(struct tsr_source *source, bool *few, struct tsr_error *error)
{
    struct pixels pixels = {.count = 0};
    const enum tsr_status status = tsr_source_visit(source, add_pixels, &pixels, error);
    *few = status == TSR_OK && pixels.count <= TSR_FEW_VALUES;
    return status;
}
