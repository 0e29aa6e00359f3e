/* Chunks of a PNG (PNG specification, section 5). PNG.md. */
#ifndef TSR_IO_NODES_PNG_PNG_CHUNKS_H
#define TSR_IO_NODES_PNG_PNG_CHUNKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "io/bytes/cursor.h"

/* Bytes of the signature; of the usual start, which is the signature and IHDR; of the data of IHDR; of the usual end,
 * which is IEND; of a chunk besides its data. */
enum {
    TSR_PNG_SIGNATURE_BYTES = 8,
    TSR_PNG_START_BYTES = 33,
    TSR_PNG_IHDR_BYTES = 13,
    TSR_PNG_END_BYTES = 12,
    TSR_PNG_CHUNK_BYTES = 12
};
void tsr_png_start_of(const uint8_t ihdr[TSR_PNG_IHDR_BYTES], uint8_t start[TSR_PNG_START_BYTES]);
extern const uint8_t tsr_png_end[TSR_PNG_END_BYTES];

struct tsr_png_chunk {
    const uint8_t *type, *data; /* the data follow the four bytes of the type */
    uint32_t size;              /* of the data */
    uint32_t check;             /* the CRC that the file has */
};

/* The chunk at a byte of a file; *at moves after it. False: no whole chunk is there. */
bool tsr_png_next(const uint8_t *file, size_t size, size_t *at, struct tsr_png_chunk *chunk);
/* A chunk at a byte that ends with the file, after its type: size is that of the data that are there, and the check is
 * not whole. */
bool tsr_png_cut(const uint8_t *file, size_t size, size_t at, struct tsr_png_chunk *chunk);
bool tsr_png_is(const struct tsr_png_chunk *chunk, const char type[4]);
bool tsr_png_checks(const struct tsr_png_chunk *chunk); /* the CRC is right */

/* Bytes from the first IDAT chunk on, and after the last one, which may be cut: then without its check. False: there is
 * none, or they do not follow each other. */
bool tsr_png_find_idat(const uint8_t *file, size_t size, size_t *start, size_t *end);

/* The next chunks fdAT that follow each other, from the chunk at a byte on, which moves after them: a frame of an
 * animated PNG. False: there are none. */
bool tsr_png_find_frame(const uint8_t *file, size_t size, size_t *at, size_t *start, size_t *end);

enum { TSR_PNG_PALETTE = 3 }; /* colour type */

/* The channels of a colour type; 0: there is no such type. */
uint8_t tsr_png_channels(unsigned colour_type);

#endif
