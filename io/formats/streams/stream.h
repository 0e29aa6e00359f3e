/* Streams inside files, and how their bytes are made again. A stream is a coded image in a file of another format. It
 * becomes samples and a residue: what the samples do not say of the stream. Both give the same stream again, whatever
 * libraries are installed. FORMAT.md 4.5. */
#ifndef TSR_IO_FORMATS_STREAMS_STREAM_H
#define TSR_IO_FORMATS_STREAMS_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transform/status.h"
#include "app/tessera.h"

struct tsr_crew;

/* Bytes that grow up to a limit. All zero but the limit: empty. */
struct tsr_bytes {
    uint8_t *bytes; /* allocated */
    size_t size, capacity, limit;
};

/* Makes room for size more bytes: the first time for no more than these, then for twice as many as before, and more
 * if need be. Errors: TSR_ERROR_CORRUPT (over the limit), TSR_ERROR_LIMIT (memory). */
enum tsr_status tsr_bytes_reserve(struct tsr_bytes *bytes, size_t size, struct tsr_error *error);

/* The same, of bytes that are about to be used: the crew's threads have their pages cleared. crew may be NULL. */
enum tsr_status tsr_bytes_reserve_by(const struct tsr_crew *crew, struct tsr_bytes *bytes, size_t size,
                                     struct tsr_error *error);
enum tsr_status tsr_bytes_put(struct tsr_bytes *bytes, const void *more, size_t size, struct tsr_error *error);
enum tsr_status tsr_bytes_put_varint(struct tsr_bytes *bytes, uint64_t value, struct tsr_error *error);
/* Puts other bytes before all that are there. */
enum tsr_status tsr_bytes_put_before(struct tsr_bytes *bytes, const struct tsr_bytes *first, struct tsr_error *error);
/* Gives back room that is not used. */
void tsr_bytes_fit(struct tsr_bytes *bytes);
void tsr_bytes_free(struct tsr_bytes *bytes);

/* A kind of stream that holds one frame. The raster is as FORMAT.md 3.2 has it: rows of image->columns pixels, each
 * with image->components samples of image->bits_allocated bits (1, 8, 16 or 32), little endian. If image->planar is
 * set, one plane of a component follows the other. */
struct tsr_stream_kind {
    const char *name;
    /* Decodes a stream: writes the whole raster, and appends the residue. All bytes of the stream count, also those
     * after its last marker. Work and memory are bounded by the size of the stream and of the raster. Errors:
     * TSR_ERROR_CORRUPT (it is no such stream of this image, or no stream that can be made again; the text says why, as
     * half a sentence about "its stream"), TSR_ERROR_LIMIT (memory). The error has an offset if the stream looks
     * damaged there; after TSR_OK, too. */
    enum tsr_status (*read)(const struct tsr_image *image, const uint8_t *stream, size_t size, uint8_t *raster,
                            struct tsr_bytes *residue, struct tsr_error *error);
    /* Makes the stream again, and appends it. Any residue and any raster are taken: what is not valid is
     * TSR_ERROR_CORRUPT. */
    enum tsr_status (*write)(const struct tsr_image *image, const uint8_t *raster, const uint8_t *residue, size_t size,
                             struct tsr_bytes *stream, struct tsr_error *error);
    /* Bytes of memory that reading or writing a stream of this many bytes takes beside its arguments. */
    uint64_t (*memory)(const struct tsr_image *image, uint64_t stream_bytes, bool writes);
};

extern const struct tsr_stream_kind tsr_stream_rle;           /* DICOM's RLE: FORMAT.md 4.6 */
extern const struct tsr_stream_kind tsr_stream_jpeg_lossless; /* T.81 process 14: FORMAT.md 4.7 */
extern const struct tsr_stream_kind tsr_stream_jpeg_ls;       /* T.87, lossless: FORMAT.md 4.8 */
extern const struct tsr_stream_kind tsr_stream_deflate;       /* RFC 1951: FORMAT.md 4.14 */
extern const struct tsr_stream_kind tsr_stream_j2k;           /* T.800, lossless: FORMAT.md 4.15 */

/* By number in files: FORMAT.md 4.5. NULL: no kind has the number. */
enum {
    TSR_STREAM_RLE = 0,
    TSR_STREAM_JPEG_LOSSLESS = 1,
    TSR_STREAM_JPEG_LS = 2,
    TSR_STREAM_DEFLATE = 3,
    TSR_STREAM_J2K = 4
};
extern const struct tsr_stream_kind *const tsr_stream_kinds[];
extern const int tsr_stream_kind_count;
const struct tsr_stream_kind *tsr_stream_kind_of(int number);

#endif
