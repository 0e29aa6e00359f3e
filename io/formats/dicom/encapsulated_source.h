/* Encapsulated DICOM whose frames come back as the same streams. FORMAT.md 4.4. */
#ifndef TSR_IO_FORMATS_DICOM_ENCAPSULATED_SOURCE_H
#define TSR_IO_FORMATS_DICOM_ENCAPSULATED_SOURCE_H

#include "dicom_rewrite.h"
#include "io/formats/source.h"
#include "io/nodes/node.h"

/* Opens a source of a file whose pixel data has an undefined length and begins at byte value, of a kind of stream that
 * has a number (tsr_raster_node_number). Each frame is decoded, and its stream is made again and compared. takes_units:
 * others than the first and only frame, which cannot be, become units (io/recipe/unit.h). Errors:
 * TSR_ERROR_CORRUPT with the reason (half a sentence in which "it" is the file), TSR_ERROR_READ, TSR_ERROR_LIMIT. */
enum tsr_status tsr_encapsulated_open(struct tsr_input *input, const struct tsr_image *image, size_t value,
                                      const struct tsr_node *kind, bool takes_units, struct tsr_source **source,
                                      struct tsr_error *error);

/* The same of the samples alone, which come back in a native file: splice, not exact. The image is interleaved; kind is
 * any that reads. */
struct tsr_encapsulated_samples {
    const struct tsr_dicom_scan *scan;
    struct tsr_dicom_target target;
};
enum tsr_status tsr_encapsulated_open_samples(struct tsr_input *input, const struct tsr_image *image,
                                              const struct tsr_node *kind,
                                              const struct tsr_encapsulated_samples *samples,
                                              struct tsr_source **source, struct tsr_error *error);

#endif
