/* The header of a lossy copy: the original's bytes, except for the elements that record the loss. */
#ifndef TSR_IO_FORMATS_DICOM_DICOM_DERIVE_H
#define TSR_IO_FORMATS_DICOM_DICOM_DERIVE_H

#include "dicom_elements.h"
#include "dicom_file.h"

/* Values that the header of a lossy copy gets. */
struct tsr_derivation {
    char uid[65]; /* new SOP Instance UID */
    double ratio; /* compression ratio */
};

/* Rewrites the bytes of a scanned file up to the value of its pixel data for a lossy copy: Lossy Image Compression
 * becomes 01, ratio and method are appended to those of earlier losses, Image Type becomes DERIVED, SOP Instance UID
 * becomes a new one, and Derivation Description gets a sentence. Of a deflated file, bytes has the inflated data set,
 * and the transfer syntax becomes explicit little endian. All other elements stay as they are, byte for byte. *derived
 * is allocated. Errors: TSR_ERROR_CORRUPT (an element to be changed stands twice, or has an impossible form),
 * TSR_ERROR_LIMIT. */
enum tsr_status tsr_dicom_derive(const uint8_t *bytes, const struct tsr_dicom_scan *scan,
                                 const struct tsr_derivation *derivation, uint8_t **derived, size_t *size,
                                 struct tsr_error *error);

#endif
