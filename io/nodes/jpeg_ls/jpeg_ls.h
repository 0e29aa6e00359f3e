/* JPEG-LS without loss (T.87, NEAR = 0): what reading and writing of its streams share. JPEG_LS.md. */
#ifndef TSR_IO_NODES_JPEG_LS_JPEG_LS_H
#define TSR_IO_NODES_JPEG_LS_JPEG_LS_H

#include "io/nodes/jpeg_markers.h"
#include "io/nodes/node.h"

enum { TSR_JPEG_LS_COMPONENTS = 4 };

/* ---- Headers (jpeg_ls_headers.c) ------------------------------------------------------------------------- */

/* MAXVAL, T1, T2, T3 and RESET: T.87 C.2.4.1.1. */
struct tsr_jpeg_ls_preset {
    uint32_t maximum, t1, t2, t3, reset;
};

enum tsr_jpeg_ls_interleave { TSR_JPEG_LS_APART = 0, TSR_JPEG_LS_LINES = 1, TSR_JPEG_LS_SAMPLES = 2 };

/* What the markers up to an SOS have said. All zero before the first of them. */
struct tsr_jpeg_ls_headers {
    int precision, components; /* 0: no frame header yet */
    uint8_t ids[TSR_JPEG_LS_COMPONENTS];
    struct tsr_jpeg_ls_preset preset; /* as LSE has it; 0 stands for the default */
    uint32_t restart_lines;           /* 0: no restart markers */
    int transform;                    /* HP's colour transform, 0 to 3 */
    unsigned coded;                   /* a bit for each component whose scan has begun */
    bool takes_near;                  /* scans may be near-lossless: their streams are not made again */
    /* of the scan */
    int scan_components;
    uint8_t scan[TSR_JPEG_LS_COMPONENTS]; /* numbers of its components */
    enum tsr_jpeg_ls_interleave interleave;
    uint32_t near;                    /* T.87's NEAR; 0: without loss */
    struct tsr_jpeg_ls_preset coding; /* preset with its defaults */
};

/* Reads the markers from *at to the end of the next SOS. Before the first scan they begin with SOI. Errors:
 * TSR_ERROR_CORRUPT. */
enum tsr_status tsr_jpeg_ls_read_headers(struct tsr_jpeg_ls_headers *headers, const struct tsr_image *image,
                                         const uint8_t *bytes, size_t size, size_t *at, struct tsr_error *error);

/* The raster of a stream, also of a near-lossless one, which the node refuses. Errors: as its split. */
enum tsr_status tsr_jpeg_ls_read(const struct tsr_image *image, const uint8_t *stream, size_t size, uint8_t *raster,
                                 struct tsr_error *error);

/* Whether all components have had their scan. */
static inline bool tsr_jpeg_ls_is_complete(const struct tsr_jpeg_ls_headers *headers)
{
    return headers->components > 0 && headers->coded == (1u << headers->components) - 1;
}

/* ---- Rows of the raster (jpeg_ls_rows.c) ----------------------------------------------------------------- */

/* Samples as the colour transform has them. False: a sample is above maximum. */
bool tsr_jpeg_ls_load_row(const struct tsr_image *image, const uint8_t *raster,
                          const struct tsr_jpeg_ls_headers *headers, int component, uint32_t y, uint16_t *row);
/* The inverse colour transform of a whole raster. */
void tsr_jpeg_ls_restore_colours(const struct tsr_image *image, const struct tsr_jpeg_ls_headers *headers,
                                 uint8_t *raster);

/* ---- A scan (jpeg_ls_scan.h, _decode.c, _encode.c) -------------------------------------------------------- */

struct tsr_jpeg_ls_coder;

/* Errors: TSR_ERROR_LIMIT. */
enum tsr_status tsr_jpeg_ls_create(const struct tsr_image *image, struct tsr_jpeg_ls_coder **coder,
                                   struct tsr_error *error);
void tsr_jpeg_ls_free(struct tsr_jpeg_ls_coder *coder);
uint64_t tsr_jpeg_ls_memory(const struct tsr_image *image); /* most bytes that it takes */
/* Begins a scan. */
void tsr_jpeg_ls_set_scan(struct tsr_jpeg_ls_coder *coder, const struct tsr_jpeg_ls_headers *headers);

/* Decodes rows first .. first + count - 1 of the scan from a string of bits without stuffing, at least 64 bytes of
 * zeros after it. Returns the number of bits read; SIZE_MAX: the bits are not valid. */
size_t tsr_jpeg_ls_decode(struct tsr_jpeg_ls_coder *coder, const uint8_t *bits, uint8_t *raster, uint32_t first,
                          uint32_t count);

/* Encodes the rows of an interval: appends its bytes. *whole is the number of these bytes that have no padding. Errors:
 * TSR_ERROR_CORRUPT (a sample above MAXVAL, the stream's limit), TSR_ERROR_LIMIT. */
enum tsr_status tsr_jpeg_ls_encode(struct tsr_jpeg_ls_coder *coder, const uint8_t *raster, uint32_t first,
                                   uint32_t count, struct tsr_bytes *stream, size_t *whole, struct tsr_error *error);

#endif
