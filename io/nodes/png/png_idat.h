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
 * chunks. size: bytes of the chunks. That reading those takes which libpng has made, by one thread. And that making
 * them takes, with them; residue: NULL, or theirs. */
uint64_t tsr_png_idat_memory(struct tsr_png_rows of, uint64_t size);
uint64_t tsr_png_reading_memory(struct tsr_png_rows of, uint64_t size);
uint64_t tsr_png_making_memory(struct tsr_png_rows of, uint64_t size, const struct tsr_bytes *residue,
                               unsigned threads);

/* Bytes of all rows with their filter types. */
uint64_t tsr_png_plain_bytes(struct tsr_png_rows of);

/* crew, in all of these: threads that help, or NULL.
 *
 * Writes the raster of IDAT chunks, which follow each other, and appends the residue. Errors: TSR_ERROR_CORRUPT (they
 * are not whole, or cannot be made again; the text says why, as half a sentence about the file), TSR_ERROR_LIMIT
 * (memory). */
enum tsr_status tsr_png_read_idat(struct tsr_png_rows of, const struct tsr_crew *crew, const uint8_t *chunks,
                                  size_t size, uint8_t *raster, struct tsr_bytes *residue, struct tsr_error *error);

/* Makes the chunks again, and appends them. Any raster and any residue are taken: what is not valid is
 * TSR_ERROR_CORRUPT. */
enum tsr_status tsr_png_write_idat(struct tsr_png_rows of, const struct tsr_crew *crew, const uint8_t *raster,
                                   const uint8_t *residue, size_t size, struct tsr_bytes *chunks,
                                   struct tsr_error *error);

/* The same without rows: chunks as the plain bytes of their stream and a residue (FORMAT.md 4.6), and back. The plain
 * bytes start empty. */
enum tsr_status tsr_png_read_chunks(const struct tsr_crew *crew, const uint8_t *chunks, size_t size,
                                    struct tsr_bytes *plain, struct tsr_bytes *residue, struct tsr_error *error);
enum tsr_status tsr_png_write_chunks(const struct tsr_crew *crew, const uint8_t *plain, size_t plain_size,
                                     const uint8_t *residue, size_t size, struct tsr_bytes *chunks,
                                     struct tsr_error *error);

/* What tsr_png_read_chunks would give, from what tsr_png_read_idat gave. */
enum tsr_status tsr_png_rows_to_chunks(struct tsr_png_rows of, const struct tsr_crew *crew, const uint8_t *raster,
                                       const uint8_t *residue, size_t size, struct tsr_bytes *plain,
                                       struct tsr_bytes *without_rows, struct tsr_error *error);

#endif
