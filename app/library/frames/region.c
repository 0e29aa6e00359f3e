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

enum tsr_status tsr_check_region(const struct tsr_source *source, const struct tsr_region_option *option,
                                 struct tsr_error *error)
{
    const struct tsr_roi *const roi = option->region;
    const struct tsr_image *const image = &source->header.image;
    const char *const name = tsr_input_name(source->input);
    struct tsr_region part;
    if (tsr_has_planes(&source->header))
        return tsr_fail(error, TSR_ERROR_USAGE, "%s is video, whose frames have no region (%s is set)", name,
                        option->name);
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

/* A mask of the region, and the smallest rectangle with all of it. The caller frees what is set, also after an error.
 */
static enum tsr_status make_mask(struct tsr_source *source, const struct tsr_roi *roi, struct mask *mask,
                                 struct tsr_region *box, struct tsr_error *error)
{
    const struct tsr_image *const image = &source->header.image;
    const size_t samples = (size_t)image->columns * image->rows;
    *mask = (struct mask){image->columns, image->rows, calloc(samples, 1)};
    if (!mask->set) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for a region of %zu samples", samples);
    for (uint32_t i = 0; i < roi->rectangle_count; i++)
        if (clip(image, &roi->rectangles[i], box)) set_rectangle(mask, box);
    for (size_t i = 0; roi->mask && i < samples; i++) mask->set[i] |= roi->mask[i] != 0;
    if (roi->body) TSR_TRY(tsr_find_body(source, mask->set, error));
    if (find_box(mask, box)) return TSR_OK;
    return tsr_fail(error, TSR_ERROR_USAGE, "the region of %s has no samples", tsr_input_name(source->input));
}

enum tsr_status tsr_settle_region(struct tsr_source *source, const struct tsr_roi *roi, struct tsr_patches *patches,
                                  struct tsr_error *error)
{
    struct mask mask;
    struct tsr_region box;
    const enum tsr_status status = make_mask(source, roi, &mask, &box, error);
    if (status == TSR_OK) choose_patches(&mask, &box, &source->header.image, patches);
    free(mask.set);
    return status;
}

/* ---- Which tiles come first --------------------------------------------------------------------------------- */

static void mark_tiles(const struct mask *mask, struct tsr_tiling cut, uint8_t *marks)
{
    for (uint32_t t = 0; t < tsr_tiling_count(cut); t++) {
        const struct tsr_tile tile = tsr_tile_numbered(cut, t);
        const uint8_t *row = mask->set + tile.first;
        for (int32_t y = 0; y < tile.height && !marks[t]; y++, row += tile.stride)
            marks[t] = memchr(row, 1, (size_t)tile.width) != NULL;
    }
}

/* Runs of tiles whose marks are set. Of more than there can be, those with the least gaps between them become one. */
static void put_runs(const uint8_t *marks, uint32_t tiles, struct tsr_tile_order *order)
{
    bool is_full = true;
    for (uint32_t least_gap = 1; is_full; least_gap++) {
        uint32_t end = 0, at = 0; /* end: of the run before */
        is_full = false;
        *order = (struct tsr_tile_order){.tiles = tiles};
        while (at < tiles && !is_full) {
            while (at < tiles && !marks[at]) at++;
            const uint32_t begin = at;
            uint32_t behind = at; /* the run's last tile */
            for (; at < tiles && at - behind < least_gap; at++)
                if (marks[at]) behind = at + 1;
            if (begin < tiles) is_full = !tsr_order_add(order, begin - end, behind - begin);
            end = behind;
        }
    }
    if (order->first == tiles) *order = (struct tsr_tile_order){0};
}

enum tsr_status tsr_settle_order(struct tsr_source *source, const struct tsr_roi *first, struct tsr_tile_order *order,
                                 struct tsr_error *error)
{
    const struct tsr_image *const image = &source->header.image;
    const struct tsr_coding *const coding = &source->header.coding;
    struct mask mask;
    struct tsr_region box;
    if (!tsr_has_samples(&source->header) || source->header.patches.count > 0) return TSR_OK;
    const struct tsr_tiling cut = tsr_cut_tiles(image, tsr_tile_alignment(coding->path, coding->coder));
    const uint32_t tiles = tsr_tiling_count(cut);
    enum tsr_status status = make_mask(source, first, &mask, &box, error);
    uint8_t *const marks = calloc(tiles, 1);
    if (!marks && status == TSR_OK) status = tsr_fail(error, TSR_ERROR_LIMIT, "no memory for %u tiles", tiles);
    if (status == TSR_OK && tiles <= TSR_ORDER_TILES) {
        mark_tiles(&mask, cut, marks);
        put_runs(marks, tiles, order);
    }
    free(mask.set);
    free(marks);
    return status;
}
