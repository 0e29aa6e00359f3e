/* DICOM of several frames of lossy JPEG: each frame is a unit (io/recipe/unit.h). FORMAT.md 4.4. */
#ifndef TSR_IO_FORMATS_DICOM_UNIT_SOURCE_H
#define TSR_IO_FORMATS_DICOM_UNIT_SOURCE_H

#include "dicom_file.h"
#include "io/formats/source.h"

/* Opens a source of a file of a transfer syntax whose frames are not coded as samples. The file is not held. Errors:
 * TSR_ERROR_CORRUPT with the reason (half a sentence in which "it" is the file: it has one frame, or its first streams
 * cannot be packed), TSR_ERROR_READ, TSR_ERROR_LIMIT. */
enum tsr_status tsr_units_open(struct tsr_input *input, const struct tsr_dicom *dicom,
                               const struct tsr_dicom_element *pixels, struct tsr_source **source,
                               struct tsr_error *error);

#endif
