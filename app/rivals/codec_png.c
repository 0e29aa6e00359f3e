/* Rivals: PNG, compressed as well as libpng can (deflate level 9, libpng's choice of filters). */
#include "rivals.h"

#include <png.h>
#include <setjmp.h>
#include <stdio.h>
#include <string.h>

static void tell_library(char text[64])
{
    snprintf(text, 64, "libpng %s", png_get_libpng_ver(NULL));
}

/* ---- Calls of libpng ----------------------------------------------------------------------------------------- */

static void append_bytes(png_structp png, png_bytep bytes, size_t size)
{
    if (!bytes_append(png_get_io_ptr(png), bytes, size)) png_error(png, "out of memory");
}

static void flush_nothing(png_structp png)
{
    (void)png;
}

struct reader {
    const struct bytes *coded;
    size_t next;
};

static void take_bytes(png_structp png, png_bytep bytes, size_t size)
{
    struct reader *const reader = png_get_io_ptr(png);
    if (size > reader->coded->count - reader->next) png_error(png, "the file is too short");
    memcpy(bytes, reader->coded->data + reader->next, size);
    reader->next += size;
}

static void escape(png_structp png, png_const_charp message)
{
    struct job *const job = png_get_error_ptr(png);
    snprintf(job->note, sizeof job->note, "%s", message);
    png_longjmp(png, 1);
}

static void ignore_warning(png_structp png, png_const_charp message)
{
    (void)png;
    (void)message;
}

/* ---- Files --------------------------------------------------------------------------------------------------- */

/* PNG has 1, 2, 4, 8 and 16 bits. Depths below 8 are only for a single channel. */
static int bit_depth(const struct picture *p)
{
    if (p->bits > 8) return 16;
    if (p->channels > 1 || p->bits > 4) return 8;
    return p->bits > 2 ? 4 : p->bits;
}

/* Samples are in the machine's order in memory, with a byte or two each. */
static void use_picture_layout(png_structp png, const struct picture *p)
{
    const uint16_t one = 1;
    if (bit_depth(p) < 8) png_set_packing(png);
    if (bit_depth(p) == 16 && *(const uint8_t *)&one == 1) png_set_swap(png);
}

static bool encode(struct job *job)
{
    static const int colour_types[] = {PNG_COLOR_TYPE_GRAY, PNG_COLOR_TYPE_GRAY_ALPHA, PNG_COLOR_TYPE_RGB,
                                       PNG_COLOR_TYPE_RGB_ALPHA};
    const struct picture *const p = job->picture;
    png_infop info = NULL;
    png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, job, escape, ignore_warning);
    if (png) info = png_create_info_struct(png);
    if (!info || setjmp(png_jmpbuf(png))) {
        png_destroy_write_struct(&png, &info);
        return false;
    }
    job->coded.count = 0;
    png_set_write_fn(png, &job->coded, append_bytes, flush_nothing);
    png_set_compression_level(png, 9);
    png_set_IHDR(png, info, (png_uint_32)p->columns, (png_uint_32)p->rows, bit_depth(p), colour_types[p->channels - 1],
                 PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    png_write_info(png, info);
    use_picture_layout(png, p);
    const size_t pitch = p->bytes / (size_t)p->rows;
    for (size_t y = 0; y < (size_t)p->rows; y++) png_write_row(png, p->samples + y * pitch);
    png_write_end(png, NULL);
    png_destroy_write_struct(&png, &info);
    return true;
}

static bool decode(struct job *job)
{
    const struct picture *const p = job->picture;
    struct reader reader = {&job->coded, 0};
    png_infop info = NULL;
    png_structp png = png_create_read_struct(PNG_LIBPNG_VER_STRING, job, escape, ignore_warning);
    if (png) info = png_create_info_struct(png);
    if (!info || setjmp(png_jmpbuf(png))) {
        png_destroy_read_struct(&png, &info, NULL);
        return false;
    }
    png_set_read_fn(png, &reader, take_bytes);
    png_read_info(png, info);
    use_picture_layout(png, p);
    png_read_update_info(png, info);
    const size_t pitch = p->bytes / (size_t)p->rows;
    if (png_get_rowbytes(png, info) != pitch || png_get_image_height(png, info) != (png_uint_32)p->rows)
        png_error(png, "the file has another size");
    for (size_t y = 0; y < (size_t)p->rows; y++) png_read_row(png, job->samples + y * pitch, NULL);
    png_read_end(png, NULL);
    png_destroy_read_struct(&png, &info, NULL);
    return true;
}

const struct codec_calls png_calls = {tell_library, NULL, NULL, encode, decode, NULL};
