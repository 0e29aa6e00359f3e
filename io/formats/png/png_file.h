/* PNG: declarations that the reader and the restorer share. FORMAT.md 4.3. */
#ifndef TSR_IO_FORMATS_PNG_PNG_FILE_H
#define TSR_IO_FORMATS_PNG_PNG_FILE_H

#include "io/container/container.h"

/* Indices of the parameters of the restore. */
enum { TSR_PNG_COLOUR_TYPE = 0, TSR_PNG_INTERLACE = 1, TSR_PNG_PARAMETERS = 2 };

/* The status of a libpng error, from its message: nothing else tells that libpng got no memory. */
enum tsr_status tsr_png_status(const char *message);

enum { TSR_PNG_PALETTE = 3 }; /* colour type */

/* The channels of a colour type; 0: there is no such type. */
uint8_t tsr_png_channels(unsigned colour_type);

/* Whether the header describes a PNG's image, with its parameters. */
bool tsr_png_is_valid(const struct tsr_header *header);

/* Writes a raster as the IDAT chunks of a PNG file, and no other chunk. Errors: TSR_ERROR_LIMIT (memory),
 * TSR_ERROR_CORRUPT (libpng refuses), TSR_ERROR_VERSION (built without libpng), those of the
 * output. */
enum tsr_status tsr_png_put_raster(const struct tsr_header *header, const uint8_t *raster, struct tsr_output *output,
                                   struct tsr_error *error);

#endif
