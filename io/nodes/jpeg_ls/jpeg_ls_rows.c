/* Rows of a raster as numbers, and HP's colour transforms. JPEG_LS.md 3. */
#include "jpeg_ls.h"

static size_t find_row(const struct tsr_image *image, int component, uint32_t y, size_t *step)
{
    const size_t bytes = image->bits_allocated / 8u, components = image->components;
    *step = image->planar ? bytes : bytes * components;
    if (image->planar) return ((size_t)component * image->rows + y) * image->columns * bytes;
    return ((size_t)y * image->columns * components + (size_t)component) * bytes;
}

void tsr_jpeg_ls_store_row(const struct tsr_image *image, uint8_t *raster, int component, uint32_t y,
                           const uint16_t *row)
{
    size_t step;
    uint8_t *at = raster + find_row(image, component, y, &step);
    const bool wide = image->bits_allocated == 16;
    if (!wide && step == 1) {
        for (uint32_t x = 0; x < image->columns; x++) at[x] = (uint8_t)row[x];
    } else if (!wide) {
        for (uint32_t x = 0; x < image->columns; x++) at[x * step] = (uint8_t)row[x];
    } else if (step == 2) {
        for (uint32_t x = 0; x < image->columns; x++) {
            at[2 * (size_t)x] = (uint8_t)row[x];
            at[2 * (size_t)x + 1] = (uint8_t)(row[x] >> 8);
        }
    } else {
        for (uint32_t x = 0; x < image->columns; x++) {
            at[x * step] = (uint8_t)row[x];
            at[x * step + 1] = (uint8_t)(row[x] >> 8);
        }
    }
}

/* Returns the largest sample. */
static uint32_t get_row(const struct tsr_image *image, const uint8_t *raster, int component, uint32_t y, uint16_t *row)
{
    size_t step;
    const uint8_t *at = raster + find_row(image, component, y, &step);
    uint32_t largest = 0;
    if (image->bits_allocated == 16) {
        for (uint32_t x = 0; x < image->columns; x++) row[x] = (uint16_t)(at[x * step] | at[x * step + 1] << 8);
    } else {
        for (uint32_t x = 0; x < image->columns; x++) row[x] = at[x * step];
    }
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
