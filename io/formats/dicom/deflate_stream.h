/* Raw deflate streams of deflated DICOM files, reproduced bit for bit. FORMAT.md 4.2. */
#ifndef TSR_IO_FORMATS_DICOM_DEFLATE_STREAM_H
#define TSR_IO_FORMATS_DICOM_DEFLATE_STREAM_H

#include "io/input.h"
#include "io/output.h"

/* Measures the stream at byte start of an input: its bytes, and the bytes that it inflates to, which are not kept.
 * first has room for *first_size bytes and gets the first of those; *first_size becomes their number. Errors:
 * TSR_ERROR_CORRUPT (not a deflate stream, or it inflates to more than limit bytes), TSR_ERROR_READ, TSR_ERROR_LIMIT
 * (memory). */
struct tsr_stream_size {
    uint64_t stream, inflated;
};
enum tsr_status tsr_measure_stream(struct tsr_input *input, uint64_t start, uint64_t limit, uint8_t *first,
                                   size_t *first_size, struct tsr_stream_size *size, struct tsr_error *error);

/* Inflates a measured stream. inflated has room for size->inflated bytes. Errors: TSR_ERROR_CORRUPT (the stream has
 * another size), TSR_ERROR_LIMIT. */
enum tsr_status tsr_inflate_stream(const uint8_t *stream, const struct tsr_stream_size *size, uint8_t *inflated,
                                   struct tsr_error *error);

/* *level: the deflate level, 1 to 9, at which zlib makes exactly this stream of these bytes; 0: no level does. Errors:
 * TSR_ERROR_LIMIT (memory). */
enum tsr_status tsr_find_deflate_level(const uint8_t *bytes, size_t size, const uint8_t *stream, size_t stream_size,
                                       int *level, struct tsr_error *error);

/* Deflates pieces of bytes to an output. end: the piece is the last one. Errors of put: TSR_ERROR_INTERNAL, those of
 * the output. */
struct tsr_deflater;
struct tsr_deflater *tsr_deflater_create(int level, struct tsr_output *output); /* NULL: no memory, or a wrong level */
void tsr_deflater_free(struct tsr_deflater *deflater);
enum tsr_status tsr_deflater_put(struct tsr_deflater *deflater, const void *bytes, size_t size, bool end,
                                 struct tsr_error *error);

#endif
