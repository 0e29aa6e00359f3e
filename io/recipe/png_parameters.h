/* The parameters of a PNG in its header. PNG.md. */
#ifndef TSR_IO_RECIPE_PNG_PARAMETERS_H
#define TSR_IO_RECIPE_PNG_PARAMETERS_H

#include "header.h"
#include "io/nodes/png/png_chunks.h"
#include "io/nodes/png/png_idat.h"

enum { TSR_PNG_COLOUR_TYPE = 0, TSR_PNG_FORM = 1, TSR_PNG_PARAMETERS = 2 };

/* Bits of the form. The start is the signature and IHDR, which follow from the header; the end is IEND. */
enum { TSR_PNG_INTERLACED = 1, TSR_PNG_USUAL_START = 2, TSR_PNG_USUAL_END = 4 };

/* Writes the start of the PNG that the header describes. */
void tsr_png_start(const struct tsr_header *header, uint8_t start[TSR_PNG_START_BYTES]);

/* The rows of the header's PNG. */
static inline struct tsr_png_rows tsr_png_rows_of(const struct tsr_header *header)
{
    return (struct tsr_png_rows){&header->image, (header->parameters[TSR_PNG_FORM] & TSR_PNG_INTERLACED) != 0};
}

/* Whether the header describes a PNG's image, with its parameters. */
bool tsr_png_is_valid(const struct tsr_header *header);

#endif
