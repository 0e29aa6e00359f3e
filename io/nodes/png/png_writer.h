/* IDAT chunks of a raster that are written anew: those of PNG files that do not come back byte for byte. PNG.md 3. */
#ifndef TSR_IO_NODES_PNG_PNG_WRITER_H
#define TSR_IO_NODES_PNG_PNG_WRITER_H

#include "io/output.h"
#include "png_idat.h"

/* Writes a raster as the IDAT chunks of a PNG file, and no other chunk. crew: threads that help, or NULL. Errors:
 * TSR_ERROR_LIMIT (memory), those of the output. */
enum tsr_status tsr_png_write_raster(struct tsr_png_rows of, int colour_type, const struct tsr_crew *crew,
                                     const uint8_t *raster, struct tsr_output *output, struct tsr_error *error);

/* Writes a chunk that has the samples in place of a stream, and 0 for its check: nobody but the proof reads it.
 * PNG.md 4.
 */
enum tsr_status tsr_png_write_samples(const uint8_t *raster, size_t size, struct tsr_output *output,
                                      struct tsr_error *error);

/* The memory that writing a raster takes. */
uint64_t tsr_png_writing_memory(struct tsr_png_rows of);

#endif
