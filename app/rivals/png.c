/* Rivals: PNG, compressed as well as libpng can (deflate level 9, libpng's choice of filters). */
#include "rivals.h"

#if TSR_WITH_PNG
#include <png.h>
#include <setjmp.h>

static void count_bytes(png_structp png, png_bytep bytes, size_t size)
{
    (void)bytes;
    *(uint64_t *)png_get_io_ptr(png) += size;
}

static void flush_nothing(png_structp png)
{
    (void)png;
}

static void escape(png_structp png, png_const_charp message)
{
    (void)message;
    png_longjmp(png, 1);
}

static void ignore_warning(png_structp png, png_const_charp message)
{
    (void)png;
    (void)message;
}

/* PNG has 1, 2, 4, 8 and 16 bits. Depths below 8 are only for a single channel. */
static int bit_depth(const struct picture *p)
{
    if (p->bits > 8) return 16;
    if (p->channels > 1 || p->bits > 4) return 8;
    return p->bits > 2 ? 4 : p->bits;
}

static bool write_file(const struct picture *p, uint64_t *bytes)
{
    static const int colour_types[] = {PNG_COLOR_TYPE_GRAY, PNG_COLOR_TYPE_GRAY_ALPHA, PNG_COLOR_TYPE_RGB,
                                       PNG_COLOR_TYPE_RGB_ALPHA};
    const uint16_t one = 1;
    png_infop info = NULL;
    png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, NULL, escape, ignore_warning);
    if (png) info = png_create_info_struct(png);
    if (!info || setjmp(png_jmpbuf(png))) {
        png_destroy_write_struct(&png, &info);
        return false;
    }
    png_set_write_fn(png, bytes, count_bytes, flush_nothing);
    png_set_compression_level(png, 9);
    png_set_IHDR(png, info, (png_uint_32)p->columns, (png_uint_32)p->rows, bit_depth(p), colour_types[p->channels - 1],
                 PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    png_write_info(png, info);
    if (bit_depth(p) < 8) png_set_packing(png);
    if (bit_depth(p) == 16 && *(const uint8_t *)&one == 1) png_set_swap(png); /* samples are in the machine's order */
    const size_t pitch = p->bytes / (size_t)p->rows;
    for (size_t y = 0; y < (size_t)p->rows; y++) png_write_row(png, p->samples + y * pitch);
    png_write_end(png, NULL);
    png_destroy_write_struct(&png, &info);
    return true;
}

uint64_t png_bytes(const struct picture *p)
{
    uint64_t bytes = 0;
    return write_file(p, &bytes) ? bytes : 0;
}
#else
uint64_t png_bytes(const struct picture *p)
{
    (void)p;
    return 0;
}
#endif
