/* BASE.md: the base of a file, and the planes that predictors refer to. */
#include "ref.h"

#include <string.h>

/* 1: is the base of such an image? */
bool ref_fits_base(const struct ref_header *h, const struct ref_header *base)
{
    return ref_has_frames(base) && base->restore != REF_SERIES && base->lossy && !base->has_base &&
           base->columns == h->columns && base->rows == h->rows && base->frames == h->frames &&
           base->components == h->components && base->allocated == h->allocated && base->stored == h->stored &&
           base->high == h->high && base->is_signed == h->is_signed && base->planar == h->planar &&
           base->big_endian == h->big_endian && base->swapped == h->swapped;
}

/* FORMAT.md 3.2, 6.1: a sample value in the order of numbers. */
static int32_t value_at(const struct ref_header *h, const uint8_t *raster, size_t pixels, unsigned c, size_t i)
{
    size_t place = h->planar ? c * pixels + i : i * h->components + c;
    uint32_t word = h->allocated == 8 ? raster[place ^ (size_t)h->swapped]
                    : h->big_endian   ? (uint32_t)raster[2 * place] << 8 | raster[2 * place + 1]
                                      : (uint32_t)raster[2 * place + 1] << 8 | raster[2 * place];
    uint32_t f = (word >> (h->high + 1 - h->stored)) & (((uint32_t)1 << h->stored) - 1);
    return (int32_t)(h->is_signed ? f ^ (uint32_t)1 << (h->stored - 1) : f);
}

/* FORMAT.md 6.3, forward. */
static int32_t wrap(int32_t v, unsigned c)
{
    int32_t half = (int32_t)1 << (c - 1);
    return ((v + half) & (2 * half - 1)) - half;
}

static void transform(unsigned number, unsigned b, int32_t *p)
{
    unsigned c = b + 1 < 16 ? b + 1 : 16;
    int32_t red = p[0], green = p[1], blue = p[2], y, u, v, top = (int32_t)(((uint32_t)1 << b) - 1);
    if (number == 0) return;
    if (number == 1) {
        y = green;
        u = wrap(red - green, c);
        v = wrap(blue - green, c);
    } else if (number == 2) {
        u = wrap(blue - green, c);
        v = wrap(red - green, c);
        y = (green + ((u + v) >> 2)) & top;
    } else {
        u = wrap(red - blue, c);
        int32_t t = blue + (u >> 1);
        v = wrap(green - t, c);
        y = (t + (v >> 1)) & top;
    }
    p[0] = y;
    p[1] = u + ((int32_t)1 << (c - 1));
    p[2] = v + ((int32_t)1 << (c - 1));
}

/* 3: the table. */
static uint16_t index_of(const struct ref_plane_model *plane, uint32_t y)
{
    uint32_t k = 0;
    if (y <= plane->minimum) return 0;
    if (!plane->offset) return (uint16_t)(y - plane->minimum < plane->range ? y - plane->minimum : plane->range - 1);
    while (k + 1 < plane->range && plane->offset[k + 1] <= y - plane->minimum) k++;
    return (uint16_t)k;
}

void ref_frame_base(struct ref_frame *frame, const struct ref_header *h, const uint8_t *raster)
{
    size_t pixels = (size_t)h->columns * h->rows;
    if (!frame->refers || frame->packing != 0) return;
    for (unsigned c = 0; c < h->components; c++) frame->base[c] = ref_alloc(pixels, sizeof *frame->base[c]);
    for (size_t i = 0; i < pixels; i++) {
        int32_t p[4] = {0};
        for (unsigned c = 0; c < h->components; c++) p[c] = value_at(h, raster, pixels, c, i);
        transform(frame->colour, h->stored, p);
        for (unsigned c = 0; c < h->components; c++)
            if (frame->plane[c].range > 1) frame->base[c][i] = index_of(&frame->plane[c], (uint32_t)p[c]);
    }
}

/* FORMAT.md 7.1: with the virtual samples beside the tile. */
static uint32_t at(const uint16_t *z, int32_t width, int32_t r, int32_t c)
{
    if (c < 0) return r > 0 ? at(z, width, r - 1, 0) : z[0];
    return z[(size_t)r * (size_t)width + (size_t)(c < width ? c : width - 1)];
}

void ref_base_tile(struct ref_frame *frame, const struct ref_header *h, unsigned p, uint32_t left, uint32_t top,
                   uint32_t width, uint32_t height)
{
    size_t count = (size_t)width * height;
    if (p >= h->components || !frame->base[p]) return;
    uint16_t *z = frame->base_plane[p].x = ref_alloc(count, sizeof *z);
    uint16_t *means = frame->means_plane[p].x = ref_alloc(count, sizeof *means);
    for (uint32_t r = 0; r < height; r++)
        memcpy(z + (size_t)r * width, frame->base[p] + (size_t)(top + r) * h->columns + left, width * sizeof *z);
    for (int32_t r = 0; r < (int32_t)height; r++)
        for (int32_t c = 0; c < (int32_t)width; c++) {
            int32_t w = (int32_t)width, below = r + 1 < (int32_t)height ? r + 1 : r;
            uint32_t sum =
                at(z, w, r, c - 1) + at(z, w, r > 0 ? r - 1 : 0, c) + at(z, w, r, c + 1) + at(z, w, below, c);
            means[(size_t)r * width + (size_t)c] = (uint16_t)((sum + 2) >> 2);
        }
}

/* ---- 4: patches ---- */

static bool has_patch(const struct ref_header *h, uint32_t place)
{
    return h->patches.bits[place / 8] >> place % 8 & 1;
}

bool ref_read_patches(struct ref_header *h, struct ref_bytes value)
{
    uint32_t *const numbers[6] = {&h->patches.left,   &h->patches.top,    &h->patches.width,
                                  &h->patches.height, &h->patches.across, &h->patches.down};
    for (unsigned i = 0; i < 6; i++) {
        const uint64_t number = ref_varint(&value);
        if (value.bad || number > 65535) return false;
        *numbers[i] = (uint32_t)number;
    }
    const uint64_t width = h->patches.width, height = h->patches.height, across = h->patches.across,
                   down = h->patches.down;
    if ((h->restore != REF_SPLICE && h->restore != REF_PNG) || h->exact || !h->lossy) return false;
    if (width < 1 || width > h->columns || height < 1 || height > h->rows || width * height > 1 << 20) return false;
    if (across < 1 || down < 1 || across * down > 4096) return false;
    if (h->patches.left + (across - 1) * width >= h->columns || h->patches.top + (down - 1) * height >= h->rows)
        return false;
    if (ref_left(&value) != (across * down + 7) / 8) return false;
    memcpy(h->patches.bits, value.data + value.at, ref_left(&value));
    for (uint32_t place = 0; place < 4096; place++) {
        if (has_patch(h, place) && place >= across * down) return false;
        h->patches.count += has_patch(h, place);
    }
    return h->patches.count > 0 && h->patches.count * height <= 65535;
}

struct ref_header ref_coded_header(const struct ref_header *h)
{
    struct ref_header coded = *h;
    if (h->patches.count == 0) return coded;
    coded.columns = h->patches.width;
    coded.rows = h->patches.count * h->patches.height;
    coded.planar = coded.swapped = coded.lossy = false;
    coded.kept_count = 0;
    return coded;
}

static uint8_t *sample(const struct ref_header *h, const uint8_t *raster, uint32_t row, uint32_t column, unsigned c)
{
    const size_t bytes = h->allocated / 8, pixel = (size_t)row * h->columns + column;
    const size_t at = h->planar ? (size_t)c * h->columns * h->rows + pixel : pixel * h->components + c;
    return (uint8_t *)(uintptr_t)raster + (h->swapped ? at ^ 1 : at * bytes);
}

/* Copies each sample of all patches, from the image to the coded image or back. */
static void copy_patches(const struct ref_header *h, const uint8_t *raster, const uint8_t *samples, bool back)
{
    const struct ref_header coded = ref_coded_header(h);
    uint32_t first = 0;
    for (uint32_t place = 0; place < h->patches.across * h->patches.down; place++) {
        if (!has_patch(h, place)) continue;
        const uint32_t left = h->patches.left + place % h->patches.across * h->patches.width,
                       top = h->patches.top + place / h->patches.across * h->patches.height;
        for (uint32_t y = 0; y < h->patches.height; y++)
            for (uint32_t x = 0; x < h->patches.width; x++)
                for (unsigned c = 0; c < h->components; c++) {
                    const bool is_inside = left + x < h->columns && top + y < h->rows;
                    const uint32_t column = left + x < h->columns ? left + x : h->columns - 1,
                                   row = top + y < h->rows ? top + y : h->rows - 1;
                    uint8_t *const there = sample(h, raster, row, column, c), *const here = sample(&coded, samples,
                                                                                                   first + y, x, c);
                    if (!back) memcpy(here, there, h->allocated / 8);
                    if (back && is_inside) memcpy(there, here, h->allocated / 8);
                }
        first += h->patches.height;
    }
}

void ref_take_patches(const struct ref_header *h, const uint8_t *raster, uint8_t *samples)
{
    copy_patches(h, raster, samples, false);
}

void ref_put_patches(const struct ref_header *h, const uint8_t *samples, uint8_t *raster)
{
    copy_patches(h, raster, samples, true);
}
