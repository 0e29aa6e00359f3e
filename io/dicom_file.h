/* What the DICOM toolkit is asked for: the C side of the one C++ file. */
#ifndef TSR_IO_DICOM_FILE_H
#define TSR_IO_DICOM_FILE_H

#include "status.h"
#include "../app/tessera.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { TSR_DICOM_UID_BYTES = 65 };

/* How the data set is written. */
enum tsr_dicom_syntax {
    TSR_DICOM_NATIVE,        /* 1.2.840.10008.1.2, .1.2.1, .1.2.2 */
    TSR_DICOM_DEFLATED,      /* 1.2.840.10008.1.2.1.99 */
    TSR_DICOM_RLE,           /* encapsulated, and decoded by this build without loss: */
    TSR_DICOM_JPEG_LOSSLESS, /* process 14 */
    TSR_DICOM_JPEG_SV1,      /* process 14, selection value 1 */
    TSR_DICOM_OTHER /* all else: also JPEG-LS, for which the toolkit's codec aborts on samples above bits stored */
};

/* A DICOM file up to the value of its pixel data. Numbers are as the file has them; -1: absent. */
struct tsr_dicom {
    enum tsr_dicom_syntax syntax;
    char syntax_uid[TSR_DICOM_UID_BYTES]; /* empty without a meta header */
    bool big_endian, explicit_vr;
    uint64_t dataset_offset; /* first byte behind the meta header */
    uint64_t value_offset;   /* behind tag, VR and length of the element where reading stopped: the pixel
                              * data, an element above it, or the end */
    long columns, rows, frames, samples, planar, bits_allocated, bits_stored, high_bit, representation;
    /* For showing samples: value = slope * sample + intercept, window of values; width 0: there is none. */
    double slope, intercept, window_center, window_width;
    char photometric[20], modality[20], sop_class[TSR_DICOM_UID_BYTES];
};

/* Loads the toolkit's dictionary, if it is not loaded. */
void tsr_dicom_load_dictionary(void);

/* Reads a file, or, with dataset set, the inflated data set of one (explicit little endian, no meta header).
 * Errors: TSR_ERROR_CORRUPT with the reason why it cannot be read as DICOM, TSR_ERROR_LIMIT (memory). */
enum tsr_status tsr_dicom_describe_file(const char *path, struct tsr_dicom *dicom, struct tsr_error *error);
enum tsr_status tsr_dicom_describe_dataset(const uint8_t *dataset, size_t size, struct tsr_dicom *dicom,
                                           struct tsr_error *error);

/* Reads the beginning of a file, meta header and all, up to its pixel data's value; is_whole: nothing follows. Errors
 * as above. */
enum tsr_status tsr_dicom_describe_memory(const uint8_t *bytes, size_t size, bool is_whole, struct tsr_dicom *dicom,
                                          struct tsr_error *error);

/* What a DICOM object says of itself once its samples were coded with loss. */
struct tsr_derivation {
    char uid[TSR_DICOM_UID_BYTES]; /* new SOP Instance UID */
    double ratio;                  /* of compression */
};

/* The bytes of a file in front of its pixel data's element, rewritten for a lossy copy: Lossy Image Compression 01, the
 * ratio and the method appended to those that are there, Image Type DERIVED, a new SOP Instance UID, a derivation
 * description. Deflated files become explicit little endian. *bytes is allocated. Errors: TSR_ERROR_CORRUPT,
 * TSR_ERROR_LIMIT. */
enum tsr_status tsr_dicom_derive(const char *path, const struct tsr_derivation *derivation, uint8_t **bytes,
                                 size_t *size, struct tsr_error *error);

/* Where a frame's stream stands in an encapsulated file: the content of its only fragment. */
struct tsr_fragment {
    uint64_t offset, size;
};

/* An encapsulated file decoded: as a native one, explicit little endian, and what it was decoded from. */
struct tsr_dicom_decoded {
    uint8_t *bytes;
    size_t size;
    uint64_t dataset_offset;
    struct tsr_fragment *fragments; /* one a frame; NULL where fragments and frames do not agree */
};
enum tsr_status tsr_dicom_decode_file(const char *path, const struct tsr_dicom *dicom,
                                      struct tsr_dicom_decoded *decoded, struct tsr_error *error);
void tsr_dicom_decoded_free(struct tsr_dicom_decoded *decoded);

/* A frame's raster (little endian, 8 or 16 bits allocated) as the stream that the toolkit makes of it, up to its last
 * marker. *stream is allocated. Errors: TSR_ERROR_CORRUPT where the codec cannot take such a frame, TSR_ERROR_LIMIT. */
enum tsr_status tsr_dicom_encode_frame(const struct tsr_image *image, enum tsr_dicom_syntax syntax,
                                       const uint8_t *raster, uint8_t **stream, size_t *size, struct tsr_error *error);

#ifdef __cplusplus
}
#endif

#endif
