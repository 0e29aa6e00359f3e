/* The readers behind source.h. Each looks at an input and returns TSR_OK with a source, or TSR_ERROR_CORRUPT with the
 * reason why this input must be stored verbatim; other errors are errors. */
#ifndef TSR_IO_FORMATS_READERS_H
#define TSR_IO_FORMATS_READERS_H

#include "source.h"

bool tsr_png_is(const uint8_t *head, size_t size);
enum tsr_status tsr_png_open(struct tsr_input *input, struct tsr_source **source, struct tsr_error *error);

bool tsr_pnm_is(const uint8_t *head, size_t size);
enum tsr_status tsr_pnm_open(struct tsr_input *input, struct tsr_source **source, struct tsr_error *error);

bool tsr_dicom_is(const uint8_t *head, size_t size);
void tsr_dicom_prepare(void);
enum tsr_status tsr_dicom_open(struct tsr_input *input, const struct tsr_source_options *options,
                               struct tsr_source **source, struct tsr_error *error);

/* Bytes of an input that readers are recognised by. */
enum { TSR_HEAD_BYTES = 140 };

/* A source whose rasters lie in the input, one behind the other from first on; all before and behind is prefix and
 * suffix. header has kind, restore, exact, image and parameters. The input is closed with the source if owns_input is
 * set. Errors: TSR_ERROR_CORRUPT (the input ends before its last sample; the image is over a limit), TSR_ERROR_LIMIT.
 */
enum tsr_status tsr_splice_open(struct tsr_input *input, bool owns_input, const struct tsr_header *header,
                                uint64_t first, struct tsr_source **source, struct tsr_error *error);

#endif
