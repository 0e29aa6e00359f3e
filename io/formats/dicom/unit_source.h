/* DICOM whose frames are not coded as samples: each frame is a unit (io/recipe/unit.h). FORMAT.md 4.4. */
#ifndef TSR_IO_FORMATS_DICOM_UNIT_SOURCE_H
#define TSR_IO_FORMATS_DICOM_UNIT_SOURCE_H

#include "dicom_file.h"
#include "io/formats/source.h"

/* Opens a source of a file whose frames cannot be made again from samples, such as lossy ones. The file is not held.
 * is_read: to read its frames, not to code it. Errors: TSR_ERROR_CORRUPT with the reason (half a sentence in which "it"
 * is the file: frames cannot be told apart; or it is better coded as a whole: of one frame, or of tiny ones),
 * TSR_ERROR_READ, TSR_ERROR_LIMIT. */
enum tsr_status tsr_units_open(struct tsr_input *input, const struct tsr_dicom *dicom,
                               const struct tsr_dicom_element *pixels, bool is_read, struct tsr_source **source,
                               struct tsr_error *error);

#endif
