/* The header of the same image in another transfer syntax: PS3.5 A.2 (native), A.4 (encapsulated); PS3.10, 7.1. */
#ifndef TSR_IO_FORMATS_DICOM_DICOM_REWRITE_H
#define TSR_IO_FORMATS_DICOM_DICOM_REWRITE_H

#include "dicom_edit.h"

/* What changes. All that can be written has explicit VRs and is little endian. */
struct tsr_dicom_target {
    const char *syntax_uid;
    const char *photometric;   /* NULL: stays */
    bool interleaved;          /* planar configuration becomes 0, where there is one */
    uint64_t native_bytes;     /* of all rasters; 0: the pixel data is encapsulated */
    bool has_words;            /* native samples are of more than 8 bits */
    int bits_stored, high_bit; /* as they make sense */
};

#define TSR_NATIVE_UID "1.2.840.10008.1.2.1"

/* Makes a file's first bytes, up to the value of its pixel data, from those of another one. bytes: of a scanned header,
 * up to its pixel data, of a deflated file as they are inflated. What belongs to the coded form of the old pixel data
 * goes: offset tables and lengths of group 7FE0, and, in another transfer syntax, sequences with pixel data in items,
 * such as coded icons. A file without a meta header gets one. The caller frees text->bytes,
 * also after an error. Errors: TSR_ERROR_CORRUPT with the reason, TSR_ERROR_LIMIT. */
enum tsr_status tsr_dicom_rewrite(const uint8_t *bytes, const struct tsr_dicom_scan *scan,
                                  const struct tsr_dicom_target *target, struct tsr_dicom_text *text,
                                  struct tsr_error *error);

/* Appends the elements that follow the pixel data, as far as they are elements, without sequences with pixel data in
 * items. */
enum tsr_status tsr_dicom_rewrite_rest(const uint8_t *bytes, size_t size, struct tsr_dicom_form form,
                                       struct tsr_dicom_text *text, struct tsr_error *error);

/* What ends native pixel data of so many bytes, and what follows it in an original: the elements after its pixel data,
 * which are the last bytes of a blob. */
size_t tsr_dicom_skip_pixels(const struct tsr_dicom_element *pixels, uint64_t raster_bytes, const uint8_t *suffix,
                             size_t size);

#endif
