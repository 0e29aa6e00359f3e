/* Which image the pixel data of a DICOM file holds, whether it may be coded with loss, and whether it is whole. */
#ifndef TSR_IO_FORMATS_DICOM_DICOM_IMAGE_H
#define TSR_IO_FORMATS_DICOM_DICOM_IMAGE_H

#include "dicom_file.h"
#include "io/dicom/dicom_elements.h"
#include "transform/planes/kept_ranges.h"

/* The image that a header describes. If bits stored and high bit are nonsense, all allocated bits are samples, which
 * loses nothing. Errors: TSR_ERROR_CORRUPT with the reason. */
enum tsr_status tsr_dicom_image(const struct tsr_dicom *dicom, struct tsr_image *image, struct tsr_error *error);

/* What else there is to know of native pixel data. */
struct tsr_dicom_native {
    const char
        *only_lossless; /* why the image must not be coded with loss, as struct tsr_source has it; NULL: it may */
    uint64_t wanted;    /* bytes that the header tells of; 0: it does not */
};

/* The image of native pixel data in the element of this tag, of which so many bytes are there. What has no raster of
 * its own becomes one of bytes or words, as README.md says. Errors: TSR_ERROR_CORRUPT with the reason. *native is valid
 * after it, too. */
enum tsr_status tsr_dicom_native_image(const struct tsr_dicom *dicom, uint32_t tag, uint64_t available,
                                       struct tsr_image *image, struct tsr_dicom_native *native,
                                       struct tsr_error *error);

/* Whether the image may be coded with loss. */
struct tsr_dicom_loss {
    const char *only_lossless; /* as struct tsr_source has them; NULL: nothing speaks against loss */
    const char *objection;
    bool has_range; /* it names the smallest or the largest sample */
};

/* What a header says of it: SOP class, modality, palettes, overlays, kind of segmentation. bytes: up to the pixel data,
 * of a deflated file as they are inflated. */
struct tsr_dicom_loss tsr_dicom_loss_of(const uint8_t *bytes, const struct tsr_dicom_scan *scan, const char *modality);

/* The values that are no pixels: Pixel Padding Value, or the range from it to Pixel Padding Range Limit. None if
 * nothing or not two values are left, or if pixels have several samples. */
struct tsr_kept_ranges tsr_dicom_kept(const struct tsr_dicom *dicom, const struct tsr_image *image);

/* What looks damaged in the pixel data is noted at the input (tsr_input_note_damage), and does not change how the file
 * is read. What real archives have, such as padding or private elements, is not damage.
 *
 * Pixel data of which fewer bytes are there than the header tells of (wanted; 0: it does not). */
void tsr_dicom_note_short(struct tsr_input *input, const struct tsr_dicom *dicom, uint64_t wanted, uint64_t available);

/* The same of native pixel data in a file; and of any that is cut. */
void tsr_dicom_note_native(struct tsr_input *input, const struct tsr_dicom_scan *scan, const struct tsr_dicom *dicom,
                           uint64_t wanted, uint64_t available);

/* Encapsulated pixel data: a fragment is cut, the sequence has no end, or there are fewer fragments than frames. Reads
 * the head of each fragment. */
void tsr_dicom_note_fragments(struct tsr_input *input, const struct tsr_dicom_scan *scan,
                              const struct tsr_dicom *dicom);

#endif
