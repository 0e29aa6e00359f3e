/* What a DICOM file says of its samples, and what needs DCMTK's dictionary or a library of JPEG 2000. These are in a
 * module, which is loaded when a function that needs it is called for the first time (dicom_module.h). If it cannot be
 * loaded, these functions return TSR_ERROR_READ, or TSR_ERROR_LIMIT where memory or descriptors have run out. */
#ifndef TSR_IO_FORMATS_DICOM_DICOM_FILE_H
#define TSR_IO_FORMATS_DICOM_DICOM_FILE_H

#include "app/tessera.h"
#include "io/dicom/dicom_reader.h"
#include "io/formats/decimal.h"
#include "transform/status.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { TSR_DICOM_UID_BYTES = 65 };

/* The transfer syntax of a data set. */
/* JPEG 2000, with loss or without. */
#define TSR_JPEG_2000_UID "1.2.840.10008.1.2.4.91"

enum tsr_dicom_syntax {
    TSR_DICOM_NATIVE,        /* 1.2.840.10008.1.2, .1.2.1, .1.2.2, and private ones */
    TSR_DICOM_DEFLATED,      /* 1.2.840.10008.1.2.1.99 */
    TSR_DICOM_RLE,           /* encapsulated, and made again by io/nodes: */
    TSR_DICOM_JPEG_LOSSLESS, /* process 14 */
    TSR_DICOM_JPEG_SV1,      /* process 14, selection value 1 */
    TSR_DICOM_JPEG_LS,       /* lossless, or near-lossless: the stream says */
    TSR_DICOM_DEFLATED_FRAMES,
    TSR_DICOM_UNCOMPRESSED_FRAMES,
    TSR_DICOM_JPEG_2000, /* maybe with loss */
    TSR_DICOM_HTJ2K,     /* without loss; its samples can be read, but the stream cannot be made again */
    TSR_DICOM_OTHER
};

/* The one of this UID; empty: there is no meta header. */
enum tsr_dicom_syntax tsr_dicom_syntax_of(const char *uid);

/* What the header of a DICOM file says. Numbers are as in the file; -1: absent. */
struct tsr_dicom {
    enum tsr_dicom_syntax syntax;
    char syntax_uid[TSR_DICOM_UID_BYTES]; /* empty: there is no meta header */
    bool big_endian, explicit_vr;         /* of the elements */
    bool has_big_pixels;                  /* words of pixel data are big endian */
    long columns, rows, frames, samples, planar, bits_allocated, bits_stored, high_bit, representation;
    long padding, padding_limit; /* words, 0 .. 65535, whatever their sign */
    char photometric[20], modality[20];
};

/* Describes a scanned file, or a data set (explicit little endian, no meta header before it). bytes are those that the
 * scan read. Errors: TSR_ERROR_CORRUPT (the header can be read in two ways). */
struct tsr_dicom_scan;
enum tsr_status tsr_dicom_describe(const uint8_t *bytes, const struct tsr_dicom_scan *scan, bool is_dataset,
                                   struct tsr_dicom *dicom, struct tsr_error *error);

/* The windows that a scanned file names, for each frame: by Window Center and Width, by VOI LUTs, in the data set or in
 * functional groups; those of its modality where it names none (CT: 40/400 and -600/1500). And what each frame weighs.
 * Only an image of one sample a pixel has windows. bytes are those that the scan read. windows->frame is to be freed.
 * Errors: TSR_ERROR_LIMIT. */
struct tsr_windows;
enum tsr_status tsr_dicom_tell_windows(const uint8_t *bytes, const struct tsr_dicom_scan *scan,
                                       const struct tsr_dicom *dicom, struct tsr_windows *windows,
                                       struct tsr_error *error);

/* What says that images belong together, from the data set of a file. */
struct tsr_dicom_series {
    char uid[TSR_DICOM_UID_BYTES]; /* Series Instance UID; empty: it has none */
    struct tsr_decimal slope; /* the largest rescale slope of a frame; 1: none is named, or it has a Modality LUT */
};

/* False: it is of no series that is known. The slope is valid then, too. */
struct tsr_input;
bool tsr_dicom_tell_series(struct tsr_input *input, struct tsr_dicom_series *series);

/* The first bytes of a file, up to the value of its pixel data, or more. Its data set begins at dataset_offset.
 * is_inflated: the data set was inflated, so it is explicit little endian. */
struct tsr_dicom_bytes {
    const uint8_t *bytes;
    size_t size, dataset_offset;
    bool is_inflated;
};

/* Bytes that the module has allocated, to be freed with free(). {NULL, 0} after an error. */
struct tsr_dicom_made {
    uint8_t *bytes;
    size_t size;
};

/* A data set without pixel data, of another form, in explicit VR and little endian. Errors: TSR_ERROR_CORRUPT,
 * TSR_ERROR_LIMIT. */
enum tsr_status tsr_dicom_make_explicit(const uint8_t *bytes, size_t size, struct tsr_dicom_form form,
                                        struct tsr_dicom_made *made, struct tsr_error *error);

/* A header up to the start of its pixel data as text: lines as DCMTK's dcmdump prints them, or its data set in one line
 * of DICOM JSON (PS3.18, F.2) in UTF-8. *made has a zero at its end that does not count. Errors: TSR_ERROR_CORRUPT,
 * TSR_ERROR_LIMIT. */
enum tsr_status tsr_dicom_print(const struct tsr_dicom_bytes *header, bool as_json, struct tsr_dicom_made *made,
                                struct tsr_error *error);

/* A stream of JPEG 2000 or, is_ht, HTJ2K, and its raster, of samples of 8 or 16 bits allocated. jpeg_2000.h calls them.
 */
enum tsr_status tsr_dicom_encode_jpeg_2000(const struct tsr_image *image, const uint8_t *raster, int bits, bool is_ht,
                                           bool is_rgb, struct tsr_dicom_made *made, struct tsr_error *error);
enum tsr_status tsr_dicom_decode_jpeg_2000(const struct tsr_image *image, const uint8_t *stream, size_t size,
                                           uint8_t *raster, struct tsr_error *error);
/* The raster of a stream of lossy JPEG, of samples of 8 bits, by libjpeg: YCbCr becomes RGB. Errors: TSR_ERROR_CORRUPT
 * (it cannot be decoded, or is of another image), TSR_ERROR_VERSION (this build has no libjpeg), TSR_ERROR_LIMIT. */
enum tsr_status tsr_dicom_decode_jpeg(const struct tsr_image *image, const uint8_t *stream, size_t size,
                                      uint8_t *raster, struct tsr_error *error);
enum tsr_status tsr_dicom_decode_htj2k(const struct tsr_image *image, const uint8_t *stream, size_t size,
                                       uint8_t *raster, struct tsr_error *error);

#ifdef __cplusplus
}
#endif

#endif
