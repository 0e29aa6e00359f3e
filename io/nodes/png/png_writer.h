/* New IDAT chunks of a raster, by libpng: those of a PNG with loss. PNG.md. */
#ifndef TSR_IO_NODES_PNG_PNG_WRITER_H
#define TSR_IO_NODES_PNG_PNG_WRITER_H

#include "io/output.h"
#include "png_idat.h"

/* Writes a raster as the IDAT chunks of a PNG file, and no other chunk. Errors: TSR_ERROR_LIMIT (memory),
 * TSR_ERROR_CORRUPT (libpng refuses), TSR_ERROR_VERSION (built without libpng), those of the output. */
enum tsr_status tsr_png_write_raster(struct tsr_png_rows of, int colour_type, const uint8_t *raster,
                                     struct tsr_output *output, struct tsr_error *error);

#endif
