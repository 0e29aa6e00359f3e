/* Which image the pixel data of a DICOM file holds. */
#ifndef TSR_IO_FORMATS_DICOM_DICOM_IMAGE_H
#define TSR_IO_FORMATS_DICOM_DICOM_IMAGE_H

#include "dicom_file.h"

/* The image that a header describes. If bits stored and high bit are nonsense, all allocated bits are samples, which
 * loses nothing. Errors: TSR_ERROR_CORRUPT with the reason. */
enum tsr_status tsr_dicom_image(const struct tsr_dicom *dicom, struct tsr_image *image, struct tsr_error *error);

/* The image of native pixel data in the element of this tag, of which so many bytes are there. What has no raster of
 * its own becomes one of bytes or words, as README.md says. *only_lossless: why the image must not be coded with loss,
 * as struct tsr_source has it; NULL: it may. Errors: TSR_ERROR_CORRUPT with the reason. */
enum tsr_status tsr_dicom_native_image(const struct tsr_dicom *dicom, uint32_t tag, uint64_t available,
                                       struct tsr_image *image, const char **only_lossless, struct tsr_error *error);

#endif
