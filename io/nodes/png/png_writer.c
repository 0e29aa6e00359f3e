/* Writing PNG by libpng; see png_writer.h. */
#include "png_writer.h"

#if TSR_WITH_PNG
#include <png.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SIGNATURE_BYTES = 8, CHUNK_HEAD_BYTES = 8, CHECK_BYTES = 4 };

/* State of libpng's callbacks. It lives outside the stack frame that longjmp leaves. */
struct encoding {
    struct tsr_output *output;
    struct tsr_error *error;
    enum tsr_status status;
    /* The place in libpng's stream: the head of the current chunk, and bytes of the signature or the chunk still to
     * come. */
    uint8_t head[CHUNK_HEAD_BYTES];
    size_t head_bytes;
    uint64_t left;
    bool passing; /* the current chunk is an IDAT chunk */
    png_bytep *rows;
    char message[200];
};

static void put(struct encoding *e, png_structp png, const void *bytes, size_t size)
{
    e->status = tsr_output_write(e->output, bytes, size, e->error);
    if (e->status != TSR_OK) png_error(png, "output");
}

/* Passes on only those bytes of libpng's stream that belong to IDAT chunks. */
static void take_bytes(png_structp png, png_bytep bytes, size_t size)
{
    struct encoding *e = png_get_io_ptr(png);
    while (size > 0) {
        if (e->left > 0) {
            const size_t now = size < e->left ? size : (size_t)e->left;
            if (e->passing) put(e, png, bytes, now);
            e->left -= now;
            bytes += now;
            size -= now;
            continue;
        }
        e->head[e->head_bytes++] = *bytes++;
        size--;
        if (e->head_bytes < CHUNK_HEAD_BYTES) continue;
        e->head_bytes = 0;
        e->passing = memcmp(e->head + 4, "IDAT", 4) == 0;
        e->left = ((uint64_t)e->head[0] << 24 | (uint64_t)e->head[1] << 16 | (uint64_t)e->head[2] << 8 | e->head[3]) +
                  CHECK_BYTES;
        if (e->passing) put(e, png, e->head, CHUNK_HEAD_BYTES);
    }
}

static void flush_nothing(png_structp png)
{
    (void)png;
}

static void keep_message(png_structp png, png_const_charp message)
{
    struct encoding *e = png_get_error_ptr(png);
    snprintf(e->message, sizeof e->message, "%s", message);
    png_longjmp(png, 1);
}

static void ignore_warning(png_structp png, png_const_charp message)
{
    (void)png;
    (void)message;
}

/* The status of a libpng error, from its message: nothing else tells that libpng got no memory. */
static enum tsr_status status_of(const char *message)
{
    static const char *const words[] = {"nsufficient memory", "ut of memory", "ut of Memory"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strstr(message, words[i])) return TSR_ERROR_LIMIT;
    return TSR_ERROR_CORRUPT;
}

static enum tsr_status encode(const struct tsr_image *image, int colour_type, bool interlaced, const uint8_t *raster,
                              struct encoding *e)
{
    png_infop info = NULL;
    png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, e, keep_message, ignore_warning);
    if (png) info = png_create_info_struct(png);
    if (!info) {
        png_destroy_write_struct(&png, NULL);
        return tsr_fail(e->error, TSR_ERROR_LIMIT, "no memory for libpng");
    }
    if (setjmp(png_jmpbuf(png))) {
        png_destroy_write_struct(&png, &info);
        if (e->status != TSR_OK) return e->status;
        return tsr_fail(e->error, status_of(e->message), "libpng: %s", e->message);
    }
    png_set_write_fn(png, e, take_bytes, flush_nothing);
    png_set_IHDR(png, info, image->columns, image->rows, image->bits_stored, colour_type,
                 interlaced ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT,
                 PNG_FILTER_TYPE_DEFAULT);
    if (colour_type == PNG_COLOR_TYPE_PALETTE) {
        static const png_color any[256]; /* the prefix holds the real palette */
        png_set_PLTE(png, info, any, 1 << image->bits_stored);
        png_set_check_for_invalid_index(png, 0);
    }
    png_write_info(png, info);
    if (image->bits_stored < 8) png_set_packing(png);
    png_set_interlace_handling(png);
    const size_t pitch = (size_t)(tsr_frame_bits(image) / 8 / image->rows);
    for (size_t y = 0; y < image->rows; y++) e->rows[y] = (png_bytep)(uintptr_t)(raster + y * pitch);
    png_write_image(png, e->rows);
    png_write_end(png, NULL);
    png_destroy_write_struct(&png, &info);
    return TSR_OK;
}

static enum tsr_status put_image(const struct tsr_image *image, int colour_type, bool interlaced, const uint8_t *raster,
                                 struct tsr_output *output, struct tsr_error *error)
{
    struct encoding e = {0};
    e.output = output;
    e.error = error;
    e.left = SIGNATURE_BYTES;
    e.rows = malloc(image->rows * sizeof *e.rows);
    if (!e.rows) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for %u rows", image->rows);
    const enum tsr_status status = encode(image, colour_type, interlaced, raster, &e);
    free(e.rows);
    return status;
}

enum tsr_status tsr_png_write_raster(struct tsr_png_rows of, int colour_type, const uint8_t *raster,
                                     struct tsr_output *output, struct tsr_error *error)
{
    return put_image(of.image, colour_type, of.interlaced, raster, output, error);
}

#else

enum tsr_status tsr_png_write_raster(struct tsr_png_rows of, int colour_type, const uint8_t *raster,
                                     struct tsr_output *output, struct tsr_error *error)
{
    (void)of;
    (void)colour_type;
    (void)raster;
    (void)output;
    return tsr_fail(error, TSR_ERROR_VERSION, "restoring a PNG with loss needs libpng, which this build does not have");
}

#endif
