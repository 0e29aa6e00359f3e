/* Raw deflate streams as deflated DICOM files hold them, reproduced bit for bit. FORMAT.md 4.2. */
#ifndef TSR_IO_FORMATS_DICOM_DEFLATE_STREAM_H
#define TSR_IO_FORMATS_DICOM_DEFLATE_STREAM_H

#include "io/input.h"
#include "io/output.h"

/* What the stream at start of an input inflates to, without keeping it. first: room for first_size bytes, which it
 * begins with; *first_size: how many there are. Errors: TSR_ERROR_CORRUPT (no such stream, or it inflates to more than
 * limit), TSR_ERROR_READ, TSR_ERROR_LIMIT (memory). */
struct tsr_stream_size {
    uint64_t stream, inflated;
};
enum tsr_status tsr_measure_stream(struct tsr_input *input, uint64_t start, uint64_t limit, uint8_t *first,
                                   size_t *first_size, struct tsr_stream_size *size, struct tsr_error *error);

/* Inflates a stream that was measured. Errors: TSR_ERROR_CORRUPT (it is another one), TSR_ERROR_LIMIT. */
enum tsr_status tsr_inflate_stream(const uint8_t *stream, const struct tsr_stream_size *size, uint8_t *inflated,
                                   struct tsr_error *error);

/* *level: the zlib level, 1..9, at which these bytes deflate to this stream; 0 if none does. Errors: TSR_ERROR_LIMIT
 * (memory). */
enum tsr_status tsr_find_deflate_level(const uint8_t *bytes, size_t size, const uint8_t *stream, size_t stream_size,
                                       int *level, struct tsr_error *error);

/* Deflates to an output, piece by piece. */
struct tsr_deflater;
struct tsr_deflater *tsr_deflater_create(int level, struct tsr_output *output); /* NULL: no memory, or no such level */
void tsr_deflater_free(struct tsr_deflater *deflater);
enum tsr_status tsr_deflater_put(struct tsr_deflater *deflater, const void *bytes, size_t size, bool end,
                                 struct tsr_error *error);

#endif
