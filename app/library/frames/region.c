/* The region that comes back as it was, and the patches that have it. See flow.h. Patches are chosen by integers:
 * kernels/EFFORT.md. */
#include <stdlib.h>
#include <string.h>

#include "app/library/flow.h"

struct mask {
    uint32_t columns, rows;
    uint8_t *set; /* by sample of a component: 1, or 0 */
};

/* The part of a rectangle that lies in the image. False: none does. */
static bool clip(const struct tsr_image *image, const struct tsr_region *r, struct tsr_region *part)
{
    if (r->column >= image->columns || r->row >= image->rows) return false;
    *part = *r;
    if (part->columns > image->columns - r->column) part->columns = image->columns - r->column;
    if (part->rows > image->rows - r->row) part->rows = image->rows - r->row;
    return true;
}

enum tsr_status tsr_check_region(const struct tsr_source *source, const struct tsr_roi *roi, struct tsr_error *error)
{
    const struct tsr_image *const image = &source->header.image;
    const char *const name = tsr_input_name(source->input);
    struct tsr_region part;
    if (tsr_has_planes(&source->header))
        return tsr_fail(error, TSR_ERROR_USAGE, "%s is video, whose frames have no region (roi is set)", name);
    for (uint32_t i = 0; i < roi->rectangle_count; i++) {
        const struct tsr_region *const r = &roi->rectangles[i];
        if (!clip(image, r, &part))
            return tsr_fail(error, TSR_ERROR_USAGE,
                            "the region %u,%u,%u,%u lies outside of %s, which has %u x %u samples", r->column, r->row,
                            r->columns, r->rows, name, image->columns, image->rows);
    }
    if (roi->mask && (roi->mask_columns != image->columns || roi->mask_rows != image->rows))
        return tsr_fail(error, TSR_ERROR_USAGE, "the mask of the region has %u x %u samples, and %s %u x %u",
                        roi->mask_columns, roi->mask_rows, name, image->columns, image->rows);
    return TSR_OK;
}

/* ---- Patches ------------------------------------------------------------------------------------------------ */

static uint32_t parts_of(uint32_t whole, uint32_t part)
{
    return (whole + part - 1) / part;
}

static uint32_t less_of(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* Rows of a patch of so many columns that stand below each other in a box of so many rows: 255 divides the most rows
 * that an image can have. */
static uint32_t rows_of_strip(uint32_t columns, uint32_t rows)
{
    const uint32_t most = less_of(less_of(rows, 255), (uint32_t)(TSR_PATCH_SAMPLES / columns)),
                   even = parts_of(rows, parts_of(rows, most));
    return (uint64_t)parts_of(rows, even) * even <= UINT16_MAX ? even : most;
}

struct tsr_patches tsr_all_patches(const struct tsr_image *image)
{
    const uint32_t height = rows_of_strip(image->columns, image->rows);
    struct tsr_patches all = {.width = image->columns, .height = height, .across = 1};
    all.count = all.down = parts_of(image->rows, height);
    for (uint32_t i = 0; i < all.down; i++) all.bits[i / 8] = (uint8_t)(all.bits[i / 8] | 1u << (i % 8));
    return all;
}

/* The smallest rectangle with all that is set. False: nothing is. */
static bool find_box(const struct mask *mask, struct tsr_region *box)
{
    uint32_t left = mask->columns, right = 0, top = mask->rows, bottom = 0;
    for (uint32_t y = 0; y < mask->rows; y++) {
        const uint8_t *const row = mask->set + (size_t)y * mask->columns;
        const uint8_t *const first = memchr(row, 1, mask->columns);
        if (!first) continue;
        uint32_t last = mask->columns - 1;
        while (!row[last]) last--;
        left = less_of(left, (uint32_t)(first - row));
        right = right > last ? right : last;
        top = less_of(top, y);
        bottom = y;
    }
    *box = (struct tsr_region){left, top, right + 1 - left, bottom + 1 - top};
    return top < mask->rows;
}

static bool is_touched(const struct mask *mask, const struct tsr_region *box, const struct tsr_patches *p,
                       uint32_t place)
{
    const uint32_t column = p->left + place % p->across * p->width, row = p->top + place / p->across * p->height,
                   columns = less_of(p->width, box->column + box->columns - column),
                   end = less_of(row + p->height, box->row + box->rows);
    for (uint32_t y = row; y < end; y++)
        if (memchr(mask->set + (size_t)y * mask->columns + column, 1, columns)) return true;
    return false;
}

/* Patches of one size that touch what is set. *cost: samples of all of them, and a quarter of those at two of their
 * sides, which have no neighbours. False: there can be no such patches. */
static bool lay_patches(const struct mask *mask, const struct tsr_region *box, const struct tsr_image *image,
                        uint32_t width, uint32_t height, struct tsr_patches *p, uint64_t *cost)
{
    *p = (struct tsr_patches){.left = box->column, .top = box->row, .width = width, .height = height};
    p->across = parts_of(box->columns, width);
    p->down = parts_of(box->rows, height);
    if ((uint64_t)p->across * p->down > TSR_PATCHES_LIMIT) return false;
    for (uint32_t i = 0; i < p->across * p->down; i++)
        if (is_touched(mask, box, p, i)) p->bits[i / 8] = (uint8_t)(p->bits[i / 8] | 1u << (i % 8));
    if (!tsr_patches_fit(p, image)) return false;
    *cost = p->count * ((uint64_t)width * height + (width + height) / 4);
    return true;
}

static void choose_patches(const struct mask *mask, const struct tsr_region *box, const struct tsr_image *image,
                           struct tsr_patches *patches)
{
    enum { LEAST_SIDE = 16, MOST_SIDE = 1024 };
    struct tsr_patches tried;
    uint64_t least = UINT64_MAX, cost;
    if ((uint64_t)box->columns * box->rows <= TSR_PATCH_SAMPLES &&
        lay_patches(mask, box, image, box->columns, box->rows, patches, &cost))
        least = cost;
    if (lay_patches(mask, box, image, box->columns, rows_of_strip(box->columns, box->rows), &tried, &cost) &&
        cost < least) {
        *patches = tried;
        least = cost;
    }
    for (uint32_t side = LEAST_SIDE; side <= MOST_SIDE; side *= 2) {
        const uint32_t width = less_of(side, box->columns), height = less_of(side, box->rows);
        if (!lay_patches(mask, box, image, width, height, &tried, &cost) || cost >= least) continue;
        *patches = tried;
        least = cost;
    }
}

/* ---- The region --------------------------------------------------------------------------------------------- */

static void set_rectangle(struct mask *mask, const struct tsr_region *r)
{
    for (uint32_t y = 0; y < r->rows; y++)
        memset(mask->set + (size_t)(r->row + y) * mask->columns + r->column, 1, r->columns);
}

enum tsr_status tsr_settle_region(struct tsr_source *source, const struct tsr_roi *roi, struct tsr_patches *patches,
                                  struct tsr_error *error)
{
    const struct tsr_image *const image = &source->header.image;
    const size_t samples = (size_t)image->columns * image->rows;
    struct mask mask = {image->columns, image->rows, calloc(samples, 1)};
    struct tsr_region box;
    enum tsr_status status = TSR_OK;
    if (!mask.set) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for a region of %zu samples", samples);
    for (uint32_t i = 0; i < roi->rectangle_count; i++)
        if (clip(image, &roi->rectangles[i], &box)) set_rectangle(&mask, &box);
    for (size_t i = 0; roi->mask && i < samples; i++) mask.set[i] |= roi->mask[i] != 0;
    if (roi->body) status = tsr_find_body(source, mask.set, error);
    if (status != TSR_OK)
        ; /* the error has its sentence */
    else if (find_box(&mask, &box))
        choose_patches(&mask, &box, image, patches);
    else
        status = tsr_fail(error, TSR_ERROR_USAGE, "the region of %s has no samples", tsr_input_name(source->input));
    free(mask.set);
    return status;
}
