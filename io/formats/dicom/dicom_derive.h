/* The header of a lossy copy: the original's bytes, except for the elements that record the loss. */
#ifndef TSR_IO_FORMATS_DICOM_DICOM_DERIVE_H
#define TSR_IO_FORMATS_DICOM_DICOM_DERIVE_H

#include "io/dicom/dicom_elements.h"
#include "dicom_file.h"
#include "io/formats/values.h"

/* Values that the header of a lossy copy gets. */
enum { TSR_EXACT_TEXT = 280 };
struct tsr_derivation {
    char uid[TSR_DICOM_UID_BYTES]; /* new SOP Instance UID */
    double ratio;                  /* compression ratio */
    struct tsr_value_range range;  /* of the decoded samples of all frames; needed if the header names one */
    bool is_signed;                /* the samples */
    char exact[TSR_EXACT_TEXT]; /* where samples are as they were, as half a sentence; empty: nowhere in particular */
};

/* The UID of a lossy copy: 2.25.N (PS3.5 B.2). N is the XXH3-128 of the original's hash, the coding and the patches, so
 * the same input and options give the same bytes. And the half sentence: the first rectangles of the patches. */
void tsr_dicom_derive_uid(const struct tsr_hash128 *original, const struct tsr_header *header,
                          char uid[TSR_DICOM_UID_BYTES]);
void tsr_dicom_tell_patches(const struct tsr_header *header, char *text, size_t size);

/* Rewrites the bytes of a scanned file up to the value of its pixel data for a lossy copy, as DERIVED.md says. Of a
 * deflated file, bytes has the inflated data set, and the transfer syntax becomes explicit little endian. All other
 * elements stay as they are, byte for byte. *derived is allocated. Errors: TSR_ERROR_CORRUPT (an element to be changed
 * stands twice, or has an impossible form), TSR_ERROR_LIMIT. */
enum tsr_status tsr_dicom_derive(const uint8_t *bytes, const struct tsr_dicom_scan *scan,
                                 const struct tsr_derivation *derivation, uint8_t **derived, size_t *size,
                                 struct tsr_error *error);

/* The tags that a lossy copy may change, in ascending order: those of the meta header, then those of the data set. The
 * lengths of their groups change with them. */
extern const uint32_t tsr_derived_tags[];
extern const int tsr_derived_tag_count;

/* Compares the header of a lossy copy with the original's, element by element, each up to the value of its pixel data.
 * Only what a lossy copy may change may differ (DERIVED.md). The copy's size is that of its header. Memory:
 * tsr_dicom_compare_memory. Errors: TSR_ERROR_CORRUPT, TSR_ERROR_LIMIT. */
enum tsr_status tsr_dicom_compare_headers(const struct tsr_dicom_bytes *original, const struct tsr_dicom_bytes *derived,
                                          struct tsr_error *error);
uint64_t tsr_dicom_compare_memory(uint64_t elements);

/* Bytes and elements that the header of a lossy copy has more than the scanned one, at most. */
uint64_t tsr_derived_bytes(const struct tsr_dicom_scan *scan);
uint64_t tsr_derived_elements(const struct tsr_dicom_scan *scan);

#endif
