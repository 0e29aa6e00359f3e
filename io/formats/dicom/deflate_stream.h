/* How much a deflated DICOM file inflates to, before memory is claimed for that. FORMAT.md 4.2. */
#ifndef TSR_IO_FORMATS_DICOM_DEFLATE_STREAM_H
#define TSR_IO_FORMATS_DICOM_DEFLATE_STREAM_H

#include "io/input.h"

/* Measures the stream at byte start of an input: its bytes, and the bytes that it inflates to, which are not kept.
 * first has room for *first_size bytes and gets the first of those; *first_size becomes their number. Errors:
 * TSR_ERROR_CORRUPT (not a deflate stream, or it inflates to more than limit bytes), TSR_ERROR_READ, TSR_ERROR_LIMIT
 * (memory). */
struct tsr_stream_size {
    uint64_t stream, inflated;
};
enum tsr_status tsr_measure_stream(struct tsr_input *input, uint64_t start, uint64_t limit, uint8_t *first,
                                   size_t *first_size, struct tsr_stream_size *size, struct tsr_error *error);

#endif
