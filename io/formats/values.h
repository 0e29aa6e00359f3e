/* The values that an image has: in a source, before it is coded, and in rasters. */
#ifndef TSR_IO_FORMATS_VALUES_H
#define TSR_IO_FORMATS_VALUES_H

#include "source.h"

/* Most values of images that are never coded with loss: labels and drawings have no more. */
enum { TSR_FEW_VALUES = 16 };

/* *few: whether all frames together have at most TSR_FEW_VALUES different pixels. Reads frames, from the first on,
 * until there are more. Samples of 8 or 16 bits allocated. Errors: those of read_frame, TSR_ERROR_LIMIT (memory). */
enum tsr_status tsr_has_few_values(struct tsr_source *source, bool *few, struct tsr_error *error);

/* Reads all samples of an image from byte first on, if they are values (VALUES.md): what they are becomes the header's,
 * and its image that of the samples that stand for them. Else the header's image becomes this one. Errors: those of
 * tsr_input_peek, TSR_ERROR_LIMIT (memory), TSR_DECLINED (they cannot be coded). */
extern const char tsr_are_values[]; /* why they are never coded with loss */
enum tsr_status tsr_find_values(struct tsr_input *input, struct tsr_header *header, const struct tsr_image *image,
                                uint64_t first, struct tsr_error *error);

/* The range of no samples. */
#define TSR_NO_VALUES ((struct tsr_value_range){INT32_MAX, INT32_MIN})

/* Widens a range to the samples of a frame of 8 or 16 bits allocated. */
void tsr_add_values(const struct tsr_image *image, const uint8_t *raster, struct tsr_value_range *range);

#endif
