/* Raw deflate streams as deflated DICOM files hold them, reproduced bit for bit. FORMAT.md 4.2. */
#ifndef TSR_IO_DEFLATE_STREAM_H
#define TSR_IO_DEFLATE_STREAM_H

#include "output.h"

/* Inflates a stream. *inflated is allocated, at most limit bytes; *used tells how much of the stream there was.
 * Errors: TSR_ERROR_CORRUPT (no such stream, or it inflates to more than limit), TSR_ERROR_LIMIT (memory). */
enum tsr_status tsr_inflate_stream(const uint8_t *stream, size_t size, size_t limit, uint8_t **inflated,
                                   size_t *inflated_size, size_t *used, struct tsr_error *error);

/* The zlib level, 1..9, at which these bytes deflate to this stream; 0 if none does. */
int tsr_find_deflate_level(const uint8_t *bytes, size_t size, const uint8_t *stream, size_t stream_size);

/* Deflates to an output, piece by piece. */
struct tsr_deflater;
struct tsr_deflater *tsr_deflater_create(int level, struct tsr_output *output); /* NULL: no memory, or no such level */
void tsr_deflater_free(struct tsr_deflater *deflater);
enum tsr_status tsr_deflater_put(struct tsr_deflater *deflater, const void *bytes, size_t size, bool end,
                                 struct tsr_error *error);

#endif
