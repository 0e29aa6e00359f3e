/* PNG: declarations that the reader and the restorer share. FORMAT.md 4.3. */
#ifndef TSR_IO_FORMATS_PNG_PNG_FILE_H
#define TSR_IO_FORMATS_PNG_PNG_FILE_H

#include "io/container/container.h"
#include "io/nodes/png/png_chunks.h"
#include "io/nodes/png/png_idat.h"

/* Indices of the parameters of the restore. */
enum { TSR_PNG_COLOUR_TYPE = 0, TSR_PNG_FORM = 1, TSR_PNG_PARAMETERS = 2 };

/* Bits of the form. The start is the signature and IHDR, which follow from the header; the end is IEND. */
enum { TSR_PNG_INTERLACED = 1, TSR_PNG_USUAL_START = 2, TSR_PNG_USUAL_END = 4 };

/* Writes the start of the PNG that the header describes. */
void tsr_png_start(const struct tsr_header *header, uint8_t start[TSR_PNG_START_BYTES]);

/* Notes what looks damaged in the chunks of a PNG, but for the contents of IDAT chunks: the file ends within one or
 * before IEND, or a CRC is wrong. */
struct tsr_input;
void tsr_png_note_chunks(struct tsr_input *input, const uint8_t *file, size_t size);

/* What a source of a PNG, which was read without loss, knows of its chunks, as tsr_png_read_chunks gives it. */
struct tsr_source;
struct tsr_bytes;
enum tsr_status tsr_png_chunks_of(const struct tsr_source *source, const struct tsr_crew *crew, struct tsr_bytes *plain,
                                  struct tsr_bytes *residue, struct tsr_error *error);

/* The status of a libpng error, from its message: nothing else tells that libpng got no memory. */
enum tsr_status tsr_png_status(const char *message);

/* The rows of the header's PNG. */
static inline struct tsr_png_rows tsr_png_rows_of(const struct tsr_header *header)
{
    return (struct tsr_png_rows){&header->image, (header->parameters[TSR_PNG_FORM] & TSR_PNG_INTERLACED) != 0};
}

/* Whether the header describes a PNG's image, with its parameters. */
bool tsr_png_is_valid(const struct tsr_header *header);

/* Writes a raster as the IDAT chunks of a PNG file, and no other chunk. Errors: TSR_ERROR_LIMIT (memory),
 * TSR_ERROR_CORRUPT (libpng refuses), TSR_ERROR_VERSION (built without libpng), those of the
 * output. */
enum tsr_status tsr_png_put_raster(const struct tsr_header *header, const uint8_t *raster, struct tsr_output *output,
                                   struct tsr_error *error);

#endif
