/* Values of images; see values.h. */
#include "values.h"

#include <stdlib.h>
#include <string.h>

#include "io/nodes/values/find_slope.h"

#include "transform/image.h"
#include "transform/planes/raster_words.h"

const char tsr_are_values[] = "floating-point numbers and integers of 64 bits";

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

/* ---- Values of 32 and 64 bits ------------------------------------------------------------------------------- */

static enum tsr_status see_all(struct tsr_input *input, uint64_t first, uint64_t size, uint8_t *chunk, size_t room,
                               struct tsr_values_seen *seen, struct tsr_error *error)
{
    const size_t width = seen->values.bits / 8;
    while (size > 0 && !seen->is_ordered) {
        const size_t now = size < room ? (size_t)size : room;
        TSR_TRY(tsr_input_peek(input, first, chunk, now, error));
        tsr_see_values(seen, chunk, now / width);
        first += now;
        size -= now;
    }
    return TSR_OK;
}

/* Looks whether single numbers that are no multiples of a step are rounded ones. */
static enum tsr_status find_slope(struct tsr_input *input, uint64_t first, uint64_t size, struct tsr_values_seen *seen,
                                  struct tsr_error *error)
{
    enum { CHUNK = 1 << 18 };
    struct tsr_distinct *const distinct = calloc(1, sizeof *distinct);
    uint8_t *const chunk = malloc(CHUNK);
    struct tsr_values_seen other = {.values = seen->values};
    enum tsr_status status = distinct && chunk ? TSR_OK : tsr_fail(error, TSR_ERROR_LIMIT, "no memory for values");
    other.values.listed = 0;
    memset(other.values.list, 0, sizeof other.values.list);
    while (status == TSR_OK && size > 0 && !distinct->are_more) {
        const size_t now = size < CHUNK ? (size_t)size : CHUNK;
        status = tsr_input_peek(input, first, chunk, now, error);
        if (status == TSR_OK) tsr_add_distinct(distinct, &other, chunk, now / 4);
        first += now;
        size -= now;
    }
    if (status == TSR_OK && tsr_find_slope(distinct, &other)) *seen = other;
    free(chunk);
    free(distinct);
    return status;
}

enum tsr_status tsr_find_values(struct tsr_input *input, struct tsr_header *header, const struct tsr_image *image,
                                uint64_t first, struct tsr_error *error)
{
    enum { CHUNK = 1 << 18 };
    tsr_set_values(header, image, NULL);
    if (!image->is_float && image->bits_allocated < 64) return TSR_OK;
    struct tsr_values_seen seen = {.values = {.bits = image->bits_allocated,
                                              .is_float = image->is_float,
                                              .is_signed = image->is_signed,
                                              .big_endian = image->big_endian}};
    uint8_t *const chunk = malloc(CHUNK);
    if (!chunk) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory to look at values");
    const enum tsr_status status = see_all(input, first, tsr_all_rasters(image), chunk, CHUNK, &seen, error);
    free(chunk);
    TSR_TRY(status);
    tsr_set_values(header, image, &seen);
    if (image->is_float && image->bits_allocated == 32 && header->image.bits_allocated == 32) {
        TSR_TRY(find_slope(input, first, tsr_all_rasters(image), &seen, error));
        tsr_set_values(header, image, &seen);
    }
    if (tsr_has_values(header)) return TSR_OK;
    return tsr_fail(error, TSR_DECLINED, "it has %u components of 64 bits", image->components);
}
