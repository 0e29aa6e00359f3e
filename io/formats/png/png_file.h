/* PNG: declarations that the reader and the restorer share. FORMAT.md 4.3. */
#ifndef TSR_IO_FORMATS_PNG_PNG_FILE_H
#define TSR_IO_FORMATS_PNG_PNG_FILE_H

#include "io/container/container.h"

/* The numbers of PNG: 32 bits, most significant byte first. */
static inline uint32_t tsr_png_get_u32(const uint8_t *bytes)
{
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

static inline void tsr_png_put_u32(uint8_t *bytes, uint32_t value)
{
    for (int i = 0; i < 4; i++) bytes[i] = (uint8_t)(value >> (24 - 8 * i));
}

/* Indices of the parameters of the restore. */
enum { TSR_PNG_COLOUR_TYPE = 0, TSR_PNG_FORM = 1, TSR_PNG_PARAMETERS = 2 };

/* Bits of the form. The start is the signature and IHDR, which follow from the header; the end is IEND. */
enum { TSR_PNG_INTERLACED = 1, TSR_PNG_USUAL_START = 2, TSR_PNG_USUAL_END = 4 };

enum { TSR_PNG_START_BYTES = 33, TSR_PNG_END_BYTES = 12 };

/* Writes the start of the PNG that the header describes, or that has these 13 bytes in IHDR. */
enum { TSR_PNG_IHDR_BYTES = 13 };
void tsr_png_start(const struct tsr_header *header, uint8_t start[TSR_PNG_START_BYTES]);
void tsr_png_start_of(const uint8_t ihdr[TSR_PNG_IHDR_BYTES], uint8_t start[TSR_PNG_START_BYTES]);
extern const uint8_t tsr_png_end[TSR_PNG_END_BYTES];

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
