/* The header of a lossy copy: the original's bytes, but for the elements that tell of the loss. */
#ifndef TSR_IO_FORMATS_DICOM_DICOM_DERIVE_H
#define TSR_IO_FORMATS_DICOM_DICOM_DERIVE_H

#include "dicom_elements.h"
#include "dicom_file.h"

/* What a DICOM object says of itself once its samples were coded with loss. */
struct tsr_derivation {
    char uid[65]; /* new SOP Instance UID */
    double ratio; /* of compression */
};

/* The bytes of a scanned file up to its pixel data's value, rewritten for a lossy copy: Lossy Image Compression 01, the
 * ratio and the method appended to those that are there, Image Type DERIVED, a new SOP Instance UID, a derivation
 * description; of a deflated file, whose data set bytes has inflated, explicit little endian as transfer syntax. All
 * other elements stay as they are, byte for byte. *derived is allocated. Errors: TSR_ERROR_CORRUPT (an element to be
 * changed stands twice, or is of a form that it cannot have), TSR_ERROR_LIMIT. */
enum tsr_status tsr_dicom_derive(const uint8_t *bytes, const struct tsr_dicom_scan *scan,
                                 const struct tsr_derivation *derivation, uint8_t **derived, size_t *size,
                                 struct tsr_error *error);

#endif
