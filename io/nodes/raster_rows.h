/* Rows of a raster of 8 or 16 bits, component by component, as numbers: what the nodes of JPEG and JPEG-LS share. */
#ifndef TSR_IO_NODES_RASTER_ROWS_H
#define TSR_IO_NODES_RASTER_ROWS_H

#include "transform/image.h"

/* One row of one component. Its samples stand in an array of numbers, one at each `step` numbers; they are the raster's
 * without their lowest `shift` bits, which the raster has as zeros. */
struct tsr_raster_row {
    const struct tsr_image *image;
    int component;
    uint32_t row;
    size_t step;
    int shift;
};

/* numbers: the first of image->columns. raster: tsr_raster_bytes(image) bytes, little endian. */
void tsr_row_store(const struct tsr_raster_row *row, const uint16_t *numbers, uint8_t *raster);
void tsr_row_load(const struct tsr_raster_row *row, const uint8_t *raster, uint16_t *numbers);

#endif
