/* Rows of a raster as numbers, and HP's colour transforms. JPEG_LS.md 3. */
#include "jpeg_ls.h"

#include "io/nodes/raster_rows.h"

/* Returns the largest sample. */
static uint32_t get_row(const struct tsr_image *image, const uint8_t *raster, int component, uint32_t y, uint16_t *row)
{
    uint32_t largest = 0;
    tsr_row_load(&(struct tsr_raster_row){image, component, y, 1, 0}, raster, row);
    for (uint32_t x = 0; x < image->columns; x++) largest = row[x] > largest ? row[x] : largest;
    return largest;
}

/* ---- Colour transforms: all modulo 2^P ------------------------------------------------------------------- */

static uint32_t get_sample(const struct tsr_image *image, const uint8_t *raster, size_t i)
{
    return image->bits_allocated == 8 ? raster[i] : (uint32_t)raster[2 * i] | (uint32_t)raster[2 * i + 1] << 8;
}

static void put_sample(const struct tsr_image *image, uint8_t *raster, size_t i, uint32_t value)
{
    if (image->bits_allocated == 8) {
        raster[i] = (uint8_t)value;
        return;
    }
    raster[2 * i] = (uint8_t)value;
    raster[2 * i + 1] = (uint8_t)(value >> 8);
}

static void transform(int number, uint32_t range, uint32_t v[3])
{
    const uint32_t mask = range - 1, half = range / 2, r = v[0], g = v[1], b = v[2];
    if (number == 1) {
        v[0] = (r - g + half) & mask;
        v[2] = (b - g + half) & mask;
    } else if (number == 2) {
        v[0] = (r - g + half) & mask;
        v[2] = (b - ((r + g) >> 1) - half) & mask;
    } else {
        v[1] = (b - g + half) & mask;
        v[2] = (r - g + half) & mask;
        v[0] = (g + ((v[1] + v[2]) >> 2) - range / 4) & mask;
    }
}

static void transform_back(int number, uint32_t range, uint32_t v[3])
{
    const uint32_t mask = range - 1, half = range / 2;
    if (number == 1) {
        v[0] = (v[0] + v[1] - half) & mask;
        v[2] = (v[2] + v[1] - half) & mask;
    } else if (number == 2) {
        v[0] = (v[0] + v[1] - half) & mask;
        v[2] = (v[2] + ((v[0] + v[1]) >> 1) - half) & mask;
    } else {
        const uint32_t g = (v[0] - ((v[1] + v[2]) >> 2) + range / 4) & mask;
        v[0] = (v[2] + g - half) & mask;
        v[2] = (v[1] + g - half) & mask;
        v[1] = g;
    }
}

void tsr_jpeg_ls_restore_colours(const struct tsr_image *image, const struct tsr_jpeg_ls_headers *headers,
                                 uint8_t *raster)
{
    const size_t samples = (size_t)image->rows * image->columns;
    for (size_t i = 0; i < samples; i++) {
        const size_t first = image->planar ? i : 3 * i, step = image->planar ? samples : 1;
        uint32_t v[3];
        for (size_t c = 0; c < 3; c++) v[c] = get_sample(image, raster, first + c * step);
        transform_back(headers->transform, 1u << headers->precision, v);
        for (size_t c = 0; c < 3; c++) put_sample(image, raster, first + c * step, v[c]);
    }
}

bool tsr_jpeg_ls_load_row(const struct tsr_image *image, const uint8_t *raster,
                          const struct tsr_jpeg_ls_headers *headers, int component, uint32_t y, uint16_t *row)
{
    if (headers->transform == 0) return get_row(image, raster, component, y, row) <= headers->coding.maximum;
    const size_t samples = (size_t)image->rows * image->columns;
    uint32_t largest = 0;
    for (uint32_t x = 0; x < image->columns; x++) {
        const size_t i = (size_t)y * image->columns + x;
        const size_t first = image->planar ? i : 3 * i, step = image->planar ? samples : 1;
        uint32_t v[3];
        for (size_t c = 0; c < 3; c++) {
            v[c] = get_sample(image, raster, first + c * step);
            largest = v[c] > largest ? v[c] : largest;
        }
        transform(headers->transform, 1u << headers->precision, v);
        row[x] = (uint16_t)v[component];
    }
    return largest <= headers->coding.maximum;
}
