/* The values that an image has: in a source, before it is coded, and in rasters. */
#ifndef TSR_IO_FORMATS_VALUES_H
#define TSR_IO_FORMATS_VALUES_H

#include "source.h"

/* Most values of images that are never coded with loss: labels and drawings have no more. */
enum { TSR_FEW_VALUES = 16 };

/* *few: whether all frames together have at most TSR_FEW_VALUES different pixels. Reads frames, from the first on,
 * until there are more. Samples of 8 or 16 bits allocated. Errors: those of read_frame, TSR_ERROR_LIMIT (memory). */
enum tsr_status tsr_has_few_values(struct tsr_source *source, bool *few, struct tsr_error *error);

/* The range of no samples. */
#define TSR_NO_VALUES ((struct tsr_value_range){INT32_MAX, INT32_MIN})

/* Widens a range to the samples of a frame of 8 or 16 bits allocated. */
void tsr_add_values(const struct tsr_image *image, const uint8_t *raster, struct tsr_value_range *range);

#endif
