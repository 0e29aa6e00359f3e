/* Rows of a PNG: passes, filters and packed samples (PNG specification, sections 8 and 9). */
#ifndef TSR_IO_NODES_PNG_PNG_ROWS_H
#define TSR_IO_NODES_PNG_PNG_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "app/tessera.h"

/* A pass of an image: the pixels (x0 + i dx, y0 + j dy). Images without interlace have one. */
struct tsr_png_pass {
    uint32_t x0, y0, dx, dy;
    uint32_t columns, rows; /* 0: it has no pixels, and no rows */
    size_t row_bytes;       /* without the filter type */
};

enum { TSR_PNG_PASSES = 7, TSR_PNG_FILTERS = 5 };

/* Fills the passes, and returns their number. */
int tsr_png_passes(const struct tsr_image *image, bool interlaced, struct tsr_png_pass passes[TSR_PNG_PASSES]);

/* Undoes a filter in place. above: the row before, of the same pass; zeros for its first row. */
void tsr_png_unfilter(int type, uint8_t *row, const uint8_t *above, size_t bytes, size_t pixel_bytes);

/* Filters a row. */
void tsr_png_filter(int type, const uint8_t *row, const uint8_t *above, size_t bytes, size_t pixel_bytes, uint8_t *out);

/* How far the bytes of a filtered row are from 0, modulo 256, in all. PNG.md 3. */
uint64_t tsr_png_cost(const uint8_t *filtered, size_t bytes);

/* Puts the samples of a row of a pass into the raster, or takes them from there. False: bits after the last sample of
 * the row are not 0. */
bool tsr_png_put_row(const struct tsr_image *image, const struct tsr_png_pass *pass, uint32_t y, const uint8_t *row,
                     uint8_t *raster);
void tsr_png_take_row(const struct tsr_image *image, const struct tsr_png_pass *pass, uint32_t y, const uint8_t *raster,
                      uint8_t *row);

#endif
