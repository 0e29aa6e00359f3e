/* Encapsulated DICOM whose frames come back as the same streams. FORMAT.md 4.4. */
#ifndef TSR_IO_FORMATS_DICOM_ENCAPSULATED_SOURCE_H
#define TSR_IO_FORMATS_DICOM_ENCAPSULATED_SOURCE_H

#include "io/formats/source.h"

/* Opens a source of a file whose pixel data has an undefined length and begins at byte value, with the number of a kind
 * of stream (tsr_stream_kinds). Each frame is decoded, and its stream is made again and compared. Errors:
 * TSR_ERROR_CORRUPT with the reason (half a sentence in which "it" is the file), TSR_ERROR_READ, TSR_ERROR_LIMIT. */
enum tsr_status tsr_encapsulated_open(struct tsr_input *input, const struct tsr_image *image, size_t value, int kind,
                                      struct tsr_source **source, struct tsr_error *error);

#endif
