/* The IDAT chunks of a PNG as pixels and a residue, and the same chunks again. PNG.md. */
#ifndef TSR_IO_NODES_PNG_PNG_IDAT_H
#define TSR_IO_NODES_PNG_PNG_IDAT_H

#include "app/tessera.h"
#include "io/bytes/grown.h"

/* What a raster and its rows are. */
struct tsr_png_rows {
    const struct tsr_image *image;
    bool interlaced;
};

/* The memory that reading chunks takes, and then making them again, and comparing: besides the raster, with residue and
 * chunks. size: bytes of the chunks. That reading those takes which are written anew, by one thread. And that making
 * them takes, with them; residue: NULL, or theirs. */
uint64_t tsr_png_idat_memory(struct tsr_png_rows of, uint64_t size);
uint64_t tsr_png_reading_memory(struct tsr_png_rows of, uint64_t size);
uint64_t tsr_png_making_memory(struct tsr_png_rows of, uint64_t size, const struct tsr_bytes *residue,
                               unsigned threads);

/* Bytes of all rows with their filter types. */
uint64_t tsr_png_plain_bytes(struct tsr_png_rows of);

/* Reads the pixels of chunks, and not how they were compressed. The raster has room for a frame. The error has what
 * looks damaged, after TSR_OK, too. Takes no more memory than splitting. Errors: those of the node's split. */
enum tsr_status tsr_png_read_raster(struct tsr_png_rows of, const struct tsr_crew *crew, const uint8_t *chunks,
                                    size_t size, uint8_t *raster, struct tsr_error *error);

/* What the node of chunks makes, from raster and residue of tsr_node_png. crew: threads that help, or NULL. */
enum tsr_status tsr_png_rows_to_chunks(struct tsr_png_rows of, const struct tsr_crew *crew, const uint8_t *raster,
                                       const uint8_t *residue, size_t size, struct tsr_bytes *plain,
                                       struct tsr_bytes *without_rows, struct tsr_error *error);

#endif
