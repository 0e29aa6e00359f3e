/* The headers of NIfTI-1 and NIfTI-2. Their fields are those of nifti1.h and nifti2.h of the NIfTI data format working
 * group. */
#ifndef TSR_IO_FORMATS_NIFTI_HEADER_H
#define TSR_IO_FORMATS_NIFTI_HEADER_H

#include "io/recipe/header.h"

enum { TSR_NIFTI1_BYTES = 348, TSR_NIFTI2_BYTES = 540 };

struct tsr_nifti {
    struct tsr_image image; /* of its samples, which may be floating-point numbers or have 64 bits */
    uint64_t first;         /* byte of the first sample */
    uint64_t end;           /* byte after the last sample, also of samples that are not coded; 0: not known */
    bool has_labels;        /* samples are not quantities */
};

/* Whether a file that begins with these bytes has header and samples in one file (.nii). */
bool tsr_is_nifti(const uint8_t *head, size_t size);

/* Reads a header, of which tsr_is_nifti holds. apart: small slices are frames of their own, too. Errors:
 * TSR_ERROR_CORRUPT (its samples cannot be coded, or it is not valid; the text says why, as half a sentence about the
 * file), after which nifti->end is valid, too. */
enum tsr_status tsr_read_nifti(const uint8_t *head, size_t size, bool apart, struct tsr_nifti *nifti,
                               struct tsr_error *error);

/* The header of a .tsr file; of values, as their bits. */
void tsr_nifti_describe(const struct tsr_nifti *nifti, struct tsr_header *header);

#endif
