/* Patches of an image; see the header. */
#include "patches.h"

#include <string.h>

#include "transform/image.h"

bool tsr_patches_fit(struct tsr_patches *p, const struct tsr_image *image)
{
    const uint64_t places = (uint64_t)p->across * p->down;
    p->count = 0;
    if (p->width < 1 || p->height < 1 || p->width > image->columns || p->height > image->rows || p->across < 1 ||
        p->down < 1 || p->across > TSR_PATCHES_LIMIT || p->down > TSR_PATCHES_LIMIT || places > TSR_PATCHES_LIMIT ||
        (uint64_t)p->width * p->height > TSR_PATCH_SAMPLES)
        return false;
    if (p->left + (uint64_t)(p->across - 1) * p->width >= image->columns ||
        p->top + (uint64_t)(p->down - 1) * p->height >= image->rows)
        return false;
    for (uint32_t i = 0; i < places; i++) p->count += tsr_has_patch(p, i);
    for (uint32_t i = (uint32_t)places; i % 8 != 0; i++)
        if (tsr_has_patch(p, i)) return false;
    return p->count > 0 && (uint64_t)p->count * p->height <= UINT16_MAX;
}

static uint32_t less_of(uint64_t a, uint64_t b)
{
    return (uint32_t)(a < b ? a : b);
}

static uint32_t part_inside(uint64_t from, uint32_t size, uint32_t whole)
{
    return from + size <= whole ? size : (uint32_t)(whole - from);
}

struct tsr_region tsr_patch_at(const struct tsr_patches *p, const struct tsr_image *image, uint32_t place)
{
    const uint32_t column = p->left + place % p->across * p->width, row = p->top + place / p->across * p->height;
    return (struct tsr_region){column, row, part_inside(column, p->width, image->columns),
                               part_inside(row, p->height, image->rows)};
}

struct tsr_image tsr_patches_image(const struct tsr_patches *p, const struct tsr_image *image)
{
    struct tsr_image all = *image;
    all.columns = p->width;
    all.rows = p->count * p->height;
    all.planar = all.swapped = false;
    return all;
}

/* ---- Samples ------------------------------------------------------------------------------------------------ */

/* Where a sample stands in a raster, in bytes. */
static size_t place_of(const struct tsr_image *image, uint32_t column, uint32_t row, uint32_t component)
{
    const size_t bytes = image->bits_allocated / 8;
    const size_t at = image->planar ? ((size_t)component * image->rows + row) * image->columns + column
                                    : ((size_t)row * image->columns + column) * image->components + component;
    return image->swapped ? (at * bytes) ^ 1 : at * bytes;
}

static bool is_plain(const struct tsr_image *image)
{
    return !image->swapped && (!image->planar || image->components == 1);
}

/* Copies a row of a rectangle to samples that are interleaved; or from there. */
static void take_row(const struct tsr_image *image, const struct tsr_region *r, uint32_t row, const uint8_t *raster,
                     uint8_t *samples)
{
    const size_t bytes = image->bits_allocated / 8, pixel = bytes * image->components;
    if (is_plain(image)) {
        memcpy(samples, raster + place_of(image, r->column, row, 0), r->columns * pixel);
        return;
    }
    for (uint32_t x = 0; x < r->columns; x++)
        for (uint32_t c = 0; c < image->components; c++)
            memcpy(samples + x * pixel + c * bytes, raster + place_of(image, r->column + x, row, c), bytes);
}

static void put_row(const struct tsr_image *image, const struct tsr_region *r, uint32_t row, const uint8_t *samples,
                    uint8_t *raster)
{
    const size_t bytes = image->bits_allocated / 8, pixel = bytes * image->components;
    if (is_plain(image)) {
        memcpy(raster + place_of(image, r->column, row, 0), samples, r->columns * pixel);
        return;
    }
    for (uint32_t x = 0; x < r->columns; x++)
        for (uint32_t c = 0; c < image->components; c++)
            memcpy(raster + place_of(image, r->column + x, row, c), samples + x * pixel + c * bytes, bytes);
}

/* The patches that are wanted, one after the other. */
static bool next_patch(const struct tsr_patches *p, uint32_t first, uint32_t count, uint32_t *place, uint32_t *number)
{
    for (; *place < p->across * p->down; ++*place) {
        if (!tsr_has_patch(p, *place)) continue;
        const uint32_t now = (*number)++;
        if (now >= first) return now - first < count;
    }
    return false;
}

void tsr_take_patches(const struct tsr_patches *p, const struct tsr_image *image, uint32_t first, uint32_t count,
                      const uint8_t *raster, uint8_t *samples)
{
    const size_t pixel = (size_t)image->components * (image->bits_allocated / 8), pitch = p->width * pixel;
    for (uint32_t place = 0, number = 0; next_patch(p, first, count, &place, &number); place++) {
        const struct tsr_region r = tsr_patch_at(p, image, place);
        for (uint32_t y = 0; y < p->height; y++, samples += pitch) {
            if (y >= r.rows) {
                memcpy(samples, samples - pitch, pitch);
                continue;
            }
            take_row(image, &r, r.row + y, raster, samples);
            for (uint32_t x = r.columns; x < p->width; x++)
                memcpy(samples + x * pixel, samples + (x - 1) * pixel, pixel);
        }
    }
}

/* What two rectangles have in common; without columns or rows where that is nothing. */
static struct tsr_region common_part(const struct tsr_region *a, const struct tsr_region *b)
{
    const uint32_t left = a->column > b->column ? a->column : b->column, top = a->row > b->row ? a->row : b->row,
                   right = less_of(a->column + (uint64_t)a->columns, b->column + (uint64_t)b->columns),
                   bottom = less_of(a->row + (uint64_t)a->rows, b->row + (uint64_t)b->rows);
    return (struct tsr_region){left, top, right > left ? right - left : 0, bottom > top ? bottom - top : 0};
}

void tsr_put_patches(const struct tsr_patches *p, const struct tsr_image *image, const struct tsr_region *window,
                     uint32_t first, uint32_t count, uint8_t *raster, const uint8_t *samples)
{
    const size_t pixel = (size_t)image->components * (image->bits_allocated / 8), pitch = p->width * pixel;
    const struct tsr_region whole = {0, 0, image->columns, image->rows};
    struct tsr_image shown = *image;
    if (window) {
        shown.columns = window->columns;
        shown.rows = window->rows;
        shown.swapped = false;
    } else {
        window = &whole;
    }
    for (uint32_t place = 0, number = 0; next_patch(p, first, count, &place, &number); place++) {
        const struct tsr_region patch = tsr_patch_at(p, image, place), part = common_part(&patch, window),
                                to = {part.column - window->column, part.row - window->row, part.columns, part.rows};
        const uint8_t *from = samples + (part.row - patch.row) * pitch + (part.column - patch.column) * pixel;
        for (uint32_t y = 0; y < to.rows && to.columns > 0; y++, from += pitch)
            put_row(&shown, &to, to.row + y, from, raster);
        samples += p->height * pitch;
    }
}

/* ---- As rectangles ------------------------------------------------------------------------------------------ */

/* Whether two rows of places have patches at the same columns. */
static bool are_rows_alike(const struct tsr_patches *p, uint32_t a, uint32_t b)
{
    for (uint32_t x = 0; x < p->across; x++)
        if (tsr_has_patch(p, a * p->across + x) != tsr_has_patch(p, b * p->across + x)) return false;
    return true;
}

size_t tsr_list_patches(const struct tsr_patches *p, const struct tsr_image *image, struct tsr_region *list,
                        size_t room, uint64_t *samples)
{
    size_t count = 0;
    *samples = 0;
    for (uint32_t y = 0, below; y < p->down; y = below) {
        for (below = y + 1; below < p->down && are_rows_alike(p, y, below);) below++;
        for (uint32_t x = 0, end; x < p->across; x = end) {
            for (end = x; end < p->across && tsr_has_patch(p, y * p->across + end);) end++;
            if (end == x) {
                end++;
                continue;
            }
            const struct tsr_region first = tsr_patch_at(p, image, y * p->across + x),
                                    last = tsr_patch_at(p, image, (below - 1) * p->across + end - 1),
                                    all = {first.column, first.row, last.column + last.columns - first.column,
                                           last.row + last.rows - first.row};
            if (count < room) list[count] = all;
            count++;
            *samples += (uint64_t)all.columns * all.rows;
        }
    }
    return count;
}
