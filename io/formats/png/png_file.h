/* Files of PNG: what their finder and that of packed files share. PNG.md. */
#ifndef TSR_IO_FORMATS_PNG_PNG_FILE_H
#define TSR_IO_FORMATS_PNG_PNG_FILE_H

#include "io/recipe/png_parameters.h"

/* Notes what looks damaged in the chunks of a PNG, but for the contents of IDAT chunks: the file ends within one or
 * before IEND, or a CRC is wrong. */
struct tsr_input;
void tsr_png_note_chunks(struct tsr_input *input, const uint8_t *file, size_t size);

/* Whether bytes are the PNG that a header describes, which is not to be the original, but for its pixels: the
 * samples stand as they are in an IDAT chunk at a byte. PNG.md 4. Errors: TSR_ERROR_CORRUPT. */
enum tsr_status tsr_png_check_rest(const struct tsr_header *header, const uint8_t *file, size_t size, size_t at,
                                   struct tsr_error *error);

/* What a source of a PNG, which was read without loss, knows of its chunks, as tsr_node_png_chunks gives it. */
struct tsr_source;
struct tsr_bytes;
enum tsr_status tsr_png_chunks_of(const struct tsr_source *source, const struct tsr_crew *crew, struct tsr_bytes *plain,
                                  struct tsr_bytes *residue, struct tsr_error *error);

#endif
