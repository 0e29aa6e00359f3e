/* PNG: what the reader and the restorer share. FORMAT.md 4.3. */
#ifndef TSR_IO_FORMATS_PNG_PNG_FILE_H
#define TSR_IO_FORMATS_PNG_PNG_FILE_H

#include "io/container/container.h"

/* The restore's parameters. */
enum { TSR_PNG_COLOUR_TYPE = 0, TSR_PNG_INTERLACE = 1, TSR_PNG_PARAMETERS = 2 };

/* The status of an error of libpng's, by its sentence: there is no other sign of memory that cannot be had. */
enum tsr_status tsr_png_status(const char *message);

/* Writes a raster as the IDAT chunks of a PNG file, nothing else. Errors: TSR_ERROR_LIMIT (memory), TSR_ERROR_CORRUPT
 * (the header is none of a PNG), TSR_ERROR_VERSION (built without libpng), those of the output. */
enum tsr_status tsr_png_put_raster(const struct tsr_header *header, const uint8_t *raster, struct tsr_output *output,
                                   struct tsr_error *error);

#endif
