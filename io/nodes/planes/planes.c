/* Planes of subsampled chroma in one raster; see planes.h. */
#include "planes.h"

#include <string.h>

enum { SAMPLING = 3 }; /* bits of the form */

/* A frame's planes, in bytes and rows. */
struct layout {
    size_t row;                      /* bytes of a row of the raster */
    size_t luma, sample;             /* of a row of luma; of a sample */
    uint32_t luma_rows, chroma_rows; /* two rows of chroma are one of the raster */
};

static struct layout layout_of(const struct tsr_image *image, unsigned form)
{
    const uint32_t rows = image->rows, luma_rows = (form & SAMPLING) == TSR_PLANES_420 ? 2 * rows / 3 : rows / 2;
    const size_t sample = image->bits_allocated / 8, row = sample * image->columns;
    return (struct layout){row, form & TSR_PLANES_ODD ? row - sample : row, sample, luma_rows, rows - luma_rows};
}

bool tsr_planes_fit(const struct tsr_image *image, unsigned form)
{
    if (image->bits_allocated != 8 && image->bits_allocated != 16) return false;
    if (form == TSR_PLANES_PLAIN) return true;
    if (image->components != 1 || image->columns % 2 != 0) return false;
    if ((form & ~(unsigned)TSR_PLANES_ODD) == TSR_PLANES_420) return image->rows >= 2 && image->rows % 3 != 1;
    return (form & ~(unsigned)TSR_PLANES_ODD) == TSR_PLANES_422 && image->rows % 2 == 0;
}

void tsr_planes_size(unsigned form, uint32_t luma_columns, uint32_t luma_rows, struct tsr_image *image)
{
    image->columns = form == TSR_PLANES_PLAIN ? luma_columns : luma_columns + luma_columns % 2;
    image->rows = form == TSR_PLANES_PLAIN              ? luma_rows
                  : (form & SAMPLING) == TSR_PLANES_420 ? luma_rows + (luma_rows + 1) / 2
                                                        : 2 * luma_rows;
}

void tsr_planes_luma(const struct tsr_image *image, unsigned form, uint32_t *columns, uint32_t *rows)
{
    *columns = form & TSR_PLANES_ODD ? image->columns - 1 : image->columns;
    *rows = form == TSR_PLANES_PLAIN ? image->rows : layout_of(image, form).luma_rows;
}

size_t tsr_planes_bytes(const struct tsr_image *image, unsigned form)
{
    if (form == TSR_PLANES_PLAIN) return tsr_raster_bytes(image);
    const struct layout l = layout_of(image, form);
    return l.luma * l.luma_rows + l.row * l.chroma_rows;
}

void tsr_planes_gather(const struct tsr_image *image, unsigned form, const uint8_t *planes, uint8_t *raster)
{
    if (form == TSR_PLANES_PLAIN) {
        memcpy(raster, planes, tsr_raster_bytes(image));
        return;
    }
    const struct layout l = layout_of(image, form);
    const size_t half = l.row / 2;
    for (uint32_t y = 0; y < l.luma_rows; y++, planes += l.luma, raster += l.row) {
        memcpy(raster, planes, l.luma);
        if (l.luma < l.row) memcpy(raster + l.luma, planes + l.luma - l.sample, l.sample);
    }
    for (uint32_t y = 0; y < l.chroma_rows; y++, planes += half, raster += l.row) {
        memcpy(raster, planes, half);
        memcpy(raster + half, planes + half * l.chroma_rows, half);
    }
}

void tsr_planes_each(const struct tsr_image *image, unsigned form, const uint8_t *raster,
                     void (*take)(void *context, const uint8_t *bytes, size_t size), void *context)
{
    if (form == TSR_PLANES_PLAIN) {
        take(context, raster, tsr_raster_bytes(image));
        return;
    }
    const struct layout l = layout_of(image, form);
    const uint8_t *const chroma = raster + l.row * l.luma_rows;
    const size_t half = l.row / 2;
    for (uint32_t y = 0; y < l.luma_rows; y++) take(context, raster + y * l.row, l.luma);
    for (uint32_t y = 0; y < l.chroma_rows; y++) take(context, chroma + y * l.row, half);
    for (uint32_t y = 0; y < l.chroma_rows; y++) take(context, chroma + y * l.row + half, half);
}

static void put_row(void *context, const uint8_t *bytes, size_t size)
{
    struct tsr_bytes *const to = context;
    memcpy(to->bytes + to->size, bytes, size);
    to->size += size;
}

static enum tsr_status join(const struct tsr_node_work *work, const struct tsr_node_parts *parts,
                            struct tsr_bytes *bytes, struct tsr_error *error)
{
    TSR_TRY(tsr_bytes_reserve(bytes, tsr_planes_bytes(work->image, work->form), error));
    tsr_planes_each(work->image, work->form, parts->plain, put_row, bytes);
    return TSR_OK;
}

static uint64_t memory(const struct tsr_node_work *work, uint64_t bytes, bool joins)
{
    (void)work, (void)bytes, (void)joins;
    return 0;
}

const struct tsr_node tsr_node_planes = {.name = "planes", .join = join, .memory = memory};
