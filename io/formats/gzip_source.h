/* Files of a format in gzip (.nii.gz, .dcm.gz, .pnm.gz). GZIP.md. */
#ifndef TSR_IO_FORMATS_GZIP_SOURCE_H
#define TSR_IO_FORMATS_GZIP_SOURCE_H

#include "format.h"

/* The format of a file whose first member of gzip begins with these bytes; NULL: it is no gzip, or no format takes it.
 */
const struct tsr_format *tsr_format_in_gzip(const uint8_t *head, size_t size);

/* Opens such a file, whose plain bytes are of the format. Errors: TSR_ERROR_CORRUPT and TSR_DECLINED (it must be packed
 * or stored), TSR_ERROR_LIMIT, TSR_ERROR_READ. */
enum tsr_status tsr_gzip_open(struct tsr_input *input, const struct tsr_format *format,
                              const struct tsr_source_options *options, struct tsr_source **source,
                              struct tsr_error *error);

#endif
