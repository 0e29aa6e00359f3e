/* Planes of subsampled chroma in one raster: PLANES.md. */
#ifndef TSR_IO_NODES_PLANES_PLANES_H
#define TSR_IO_NODES_PLANES_PLANES_H

#include "io/nodes/node.h"

/* Forms: planes are the raster's bytes; chroma has half the columns and rows; half the columns. */
enum { TSR_PLANES_PLAIN = 0, TSR_PLANES_420 = 1, TSR_PLANES_422 = 2, TSR_PLANES_ODD = 4 };

/* Whether the image may have this form. */
bool tsr_planes_fit(const struct tsr_image *image, unsigned form);

/* The raster's columns and rows for luma of this size. */
void tsr_planes_size(unsigned form, uint32_t luma_columns, uint32_t luma_rows, struct tsr_image *image);

/* Columns and rows of luma, which stands at the top left of the raster. */
void tsr_planes_luma(const struct tsr_image *image, unsigned form, uint32_t *columns, uint32_t *rows);

/* Bytes of the planes of a frame. */
size_t tsr_planes_bytes(const struct tsr_image *image, unsigned form);

/* Makes a raster of planes, with room for it. */
void tsr_planes_gather(const struct tsr_image *image, unsigned form, const uint8_t *planes, uint8_t *raster);

/* Shows the bytes of the planes of a raster, in their order. */
void tsr_planes_each(const struct tsr_image *image, unsigned form, const uint8_t *raster,
                     void (*take)(void *context, const uint8_t *bytes, size_t size), void *context);

#endif
