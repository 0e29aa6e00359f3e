/* Pictures as PNG data URIs. Chunks: PNG specification, section 11. See png.h. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#if TSR_WITH_ZLIB
#include <zlib.h>
#endif

#include "png.h"
#include "text/text.h"

#if TSR_WITH_ZLIB
static unsigned char *put_number(unsigned char *out, uint32_t value)
{
    for (int shift = 24; shift >= 0; shift -= 8) *out++ = (unsigned char)(value >> shift);
    return out;
}

static unsigned char *put_chunk(unsigned char *out, const char *type, const void *bytes, size_t count)
{
    out = put_number(out, (uint32_t)count);
    unsigned char *const signs = out;
    memcpy(out, type, 4);
    if (count > 0) memmove(out + 4, bytes, count);
    out += 4 + count;
    return put_number(out, (uint32_t)crc32(0, signs, (unsigned)(4 + count)));
}

/* What a filter predicts (PNG specification, section 9.2). */
static int predict(int filter, int left, int up, int corner)
{
    const int p = left + up - corner, a = abs(p - left), b = abs(p - up), c = abs(p - corner);
    switch (filter) {
    case 1:
        return left;
    case 2:
        return up;
    case 3:
        return (left + up) / 2;
    case 4:
        return a <= b && a <= c ? left : b <= c ? up : corner;
    default:
        return 0;
    }
}

/* A row's bytes after a filter, and the sum of their absolute values. */
static long filter_row(unsigned char *out, const unsigned char *row, const unsigned char *above, size_t count,
                       size_t pixel, int filter)
{
    long sum = 0;
    out[0] = (unsigned char)filter;
    for (size_t i = 1; i < count; i++) {
        const bool has_left = i > pixel;
        const int up = above ? above[i] : 0, left = has_left ? row[i - pixel] : 0,
                  corner = above && has_left ? above[i - pixel] : 0;
        out[i] = (unsigned char)(row[i] - predict(filter, left, up, corner));
        sum += abs((signed char)out[i]);
    }
    return sum;
}

/* Writes the URI, each row by the filter that makes it smallest by the sum of absolute values. rows: each begins with
 * a byte for its filter. */
static bool write_uri(FILE *f, unsigned char *rows, uint32_t columns, uint32_t count, size_t bytes_a_pixel)
{
    enum { FILTERS = 5 };
    const size_t row_bytes = 1 + columns * bytes_a_pixel, all = row_bytes * count;
    unsigned char *const tried = malloc(2 * row_bytes);
    if (!tried) return false;
    unsigned char *best = tried, *other = tried + row_bytes;
    for (uint32_t y = count; y-- > 0;) { /* from the last on: filters look at rows that are not filtered */
        unsigned char *const row = rows + y * row_bytes;
        long least = LONG_MAX;
        for (int filter = 0; filter < FILTERS; filter++) {
            const long sum = filter_row(other, row, y > 0 ? row - row_bytes : NULL, row_bytes, bytes_a_pixel, filter);
            if (sum >= least) continue;
            unsigned char *const swapped = best;
            best = other, other = swapped, least = sum;
        }
        memcpy(row, best, row_bytes);
    }
    free(tried);
    uLongf packed = compressBound((uLong)all);
    unsigned char *const png = malloc(packed + 80);
    if (!png) return false;
    unsigned char header[13] = {0}, *out = png + 8;
    memcpy(png, "\x89PNG\r\n\x1a\n", 8);
    put_number(put_number(header, columns), count);
    header[8] = 8;
    header[9] = bytes_a_pixel == 3 ? 2 : 0;
    out = put_chunk(out, "IHDR", header, sizeof header);
    const bool good = compress2(out + 8, &packed, rows, (uLong)all, 9) == Z_OK;
    out = put_chunk(out, "IDAT", out + 8, good ? packed : 0);
    out = put_chunk(out, "IEND", NULL, 0);
    fputs("data:image/png;base64,", f);
    if (good) text_base64(f, png, (size_t)(out - png));
    free(png);
    return good;
}
#endif

bool png_write_uri(FILE *f, const uint8_t *samples, uint32_t columns, uint32_t rows, int components)
{
#if TSR_WITH_ZLIB
    const size_t bytes = (size_t)columns * (size_t)components;
    unsigned char *const all = malloc((bytes + 1) * rows + 1);
    if (!all) return false;
    for (uint32_t y = 0; y < rows; y++) memcpy(all + y * (bytes + 1) + 1, samples + y * bytes, bytes);
    const bool good = write_uri(f, all, columns, rows, (size_t)components);
    free(all);
    return good;
#else
    (void)f, (void)samples, (void)columns, (void)rows, (void)components;
    return false;
#endif
}

bool png_write_deep_uri(FILE *f, const uint16_t *samples, uint32_t columns, uint32_t rows, int components)
{
#if TSR_WITH_ZLIB
    const size_t row_bytes = 1 + (size_t)columns * 3, step = (size_t)components;
    unsigned char *const all = calloc(row_bytes * rows, step);
    if (!all) return false;
    for (size_t c = 0; c < step; c++)
        for (size_t y = 0; y < rows; y++)
            for (size_t x = 0; x < columns; x++) {
                unsigned char *const pixel = all + (c * rows + y) * row_bytes + 1 + 3 * x;
                const uint16_t sample = samples[(y * columns + x) * step + c];
                pixel[0] = (unsigned char)(sample >> 8);
                pixel[1] = (unsigned char)sample;
            }
    const bool good = write_uri(f, all, columns, rows * (uint32_t)components, 3);
    free(all);
    return good;
#else
    (void)f, (void)samples, (void)columns, (void)rows, (void)components;
    return false;
#endif
}
