/* Plain bytes of IDAT chunks: rows with their filter types, from a raster and back. PNG.md 2, 3. */
#ifndef TSR_IO_NODES_PNG_PNG_PLAIN_H
#define TSR_IO_NODES_PNG_PNG_PLAIN_H

#include "png_idat.h"
#include "png_rows.h"

/* The rows of a raster, in the order of its passes. */
struct tsr_png_form {
    const struct tsr_image *image;
    struct tsr_png_pass pass[TSR_PNG_PASSES];
    int passes;
    size_t pixel_bytes, plain_bytes, all, longest; /* all: rows of all passes */
};
struct tsr_png_form tsr_png_form_of(struct tsr_png_rows of);

/* Undoes the filters, and fills the raster. types: room for each row's, or NULL. Errors: TSR_ERROR_CORRUPT (an unknown
 * filter, bits after the last pixel of a row), TSR_ERROR_LIMIT (memory). */
enum tsr_status tsr_png_take_plain(const struct tsr_png_form *form, const uint8_t *plain, uint8_t *types,
                                   uint8_t *raster, struct tsr_error *error);

/* Filters all rows. types: each row's, or NULL: all have type, or TSR_PNG_CHOSEN: each row's is chosen (PNG.md 3).
 * Errors: TSR_ERROR_LIMIT (memory). */
enum { TSR_PNG_CHOSEN = -1 };
enum tsr_status tsr_png_make_plain(const struct tsr_png_form *form, const struct tsr_crew *crew, const uint8_t *raster,
                                   int type, const uint8_t *types, uint8_t *plain, struct tsr_error *error);

/* Rows of bands, and plain bytes. */
uint64_t tsr_png_form_memory(const struct tsr_png_form *form);

#endif
