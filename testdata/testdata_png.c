#include "testdata_png.h"

#include <stdlib.h>
#include <string.h>

#include "testdata_deflate.h"

static const uint8_t signature[8] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};

/* The pixels of an image that one pass of Adam7 sends, or all of them. */
struct pass {
    int x, y, step_x, step_y;
};
static const struct pass whole = {0, 0, 1, 1};
static const struct pass adam7[7] = {{0, 0, 8, 8}, {4, 0, 8, 8}, {0, 4, 4, 8}, {2, 0, 4, 4},
                                     {0, 2, 2, 4}, {1, 0, 2, 2}, {0, 1, 1, 2}};

int png_components(int colour_type)
{
    static const int components[] = {
        [PNG_GRAY] = 1, [PNG_RGB] = 3, [PNG_PALETTE] = 1, [PNG_GRAY_ALPHA] = 2, [PNG_RGBA] = 4};
    return components[colour_type];
}

void png_put_chunk(struct bytes *out, const char *type, const void *data, size_t size)
{
    bytes_put_u32(out, true, (uint32_t)size);
    const size_t start = out->size;
    bytes_put(out, type, 4);
    bytes_put(out, data, size);
    bytes_put_u32(out, true, bytes_crc32(out->data + start, size + 4));
}

/* Packs the samples of a row of a pass, from the most significant bit on. */
static void pack_row(const struct png *png, const struct canvas *planes, const struct pass *pass, int y, uint8_t *row)
{
    const int components = png_components(png->colour_type);
    size_t bit = 0;
    for (int x = pass->x; x < planes->columns; x += pass->step_x)
        for (int c = 0; c < components; c++) {
            const uint32_t shade = (uint32_t)planes[c].shades[y * planes->columns + x];
            for (int k = png->depth - 1; k >= 0; k--, bit++)
                row[bit / 8] = (uint8_t)(row[bit / 8] | (shade >> k & 1) << (7 - bit % 8));
        }
}

static int paeth(int left, int above, int corner)
{
    const int to_left = abs(above - corner), to_above = abs(left - corner), to_corner = abs(left + above - 2 * corner);
    if (to_left <= to_above && to_left <= to_corner) return left;
    return to_above <= to_corner ? above : corner;
}

/* Filters a row, and returns the sum of the results' absolute values as signed bytes. */
static long filter_row(int filter, const uint8_t *row, const uint8_t *above, size_t size, size_t pixel, uint8_t *out)
{
    long sum = 0;
    for (size_t i = 0; i < size; i++) {
        const int a = i >= pixel ? row[i - pixel] : 0, b = above[i], c = i >= pixel ? above[i - pixel] : 0;
        const int predictions[5] = {0, a, b, (a + b) / 2, paeth(a, b, c)};
        out[i] = (uint8_t)(row[i] - predictions[filter]);
        sum += out[i] < 128 ? out[i] : 256 - out[i];
    }
    return sum;
}

static void put_pass(struct bytes *out, const struct png *png, const struct canvas *planes, const struct pass *pass)
{
    const int columns = (planes->columns - pass->x + pass->step_x - 1) / pass->step_x;
    const size_t bits = (size_t)(png_components(png->colour_type) * png->depth), pixel = bits < 8 ? 1 : bits / 8;
    if (columns <= 0) return;
    const size_t size = ((size_t)columns * bits + 7) / 8;
    uint8_t *above = allocate(size, 1), *row = allocate(size, 1), *filtered = allocate(size, 1);
    const bool adaptive = png->depth >= 8 && png->colour_type != PNG_PALETTE;
    for (int y = pass->y; y < planes->rows; y += pass->step_y) {
        memset(row, 0, size);
        pack_row(png, planes, pass, y, row);
        int best = 0;
        long least = filter_row(0, row, above, size, pixel, filtered);
        for (int filter = 1; filter < 5 && adaptive; filter++) {
            const long sum = filter_row(filter, row, above, size, pixel, filtered);
            if (sum >= least) continue;
            least = sum;
            best = filter;
        }
        filter_row(best, row, above, size, pixel, filtered);
        bytes_put_u8(out, (unsigned)best);
        bytes_put(out, filtered, size);
        memcpy(above, row, size);
    }
    free(above);
    free(row);
    free(filtered);
}

static void put_chunks(struct bytes *out, const struct png *png, int place)
{
    for (int i = 0; i < png->chunk_count; i++)
        if ((int)png->chunks[i].place == place)
            png_put_chunk(out, png->chunks[i].type, png->chunks[i].data, png->chunks[i].size);
}

static void put_header(struct bytes *out, const struct png *png, const struct canvas *planes)
{
    struct bytes header = {0};
    bytes_put_u32(&header, true, (uint32_t)planes->columns);
    bytes_put_u32(&header, true, (uint32_t)planes->rows);
    const uint8_t rest[5] = {(uint8_t)png->depth, (uint8_t)png->colour_type, 0, 0, png->interlaced};
    bytes_put(&header, rest, sizeof rest);
    png_put_chunk(out, "IHDR", header.data, header.size);
    bytes_free(&header);
}

static void put_palette(struct bytes *out, int depth)
{
    uint8_t palette[3 * 256];
    const int count = 1 << depth;
    for (int i = 0; i < count; i++) {
        const int shade = 255 * i / (count - 1);
        palette[3 * i] = (uint8_t)shade;
        palette[3 * i + 1] = (uint8_t)(shade * shade / 255);
        palette[3 * i + 2] = (uint8_t)(255 - shade);
    }
    png_put_chunk(out, "PLTE", palette, 3 * (size_t)count);
}

void png_put(struct bytes *out, const struct png *png, const struct canvas *planes)
{
    struct bytes rows = {0}, stream = {0};
    bytes_put(out, signature, sizeof signature);
    put_header(out, png, planes);
    put_chunks(out, png, PNG_BEFORE_PALETTE);
    if (png->colour_type == PNG_PALETTE) put_palette(out, png->depth);
    put_chunks(out, png, PNG_BEFORE_DATA);
    for (int i = 0; i < (png->interlaced ? 7 : 1); i++)
        put_pass(&rows, png, planes, png->interlaced ? &adam7[i] : &whole);
    zlib_fixed(&stream, &rows);
    const size_t limit = png->idat_limit ? png->idat_limit : stream.size;
    for (size_t at = 0; at < stream.size; at += limit) {
        png_put_chunk(out, "IDAT", stream.data + at, stream.size - at < limit ? stream.size - at : limit);
        if (at == 0) put_chunks(out, png, PNG_AMID_DATA);
    }
    put_chunks(out, png, PNG_BEHIND_DATA);
    png_put_chunk(out, "IEND", NULL, 0);
    bytes_free(&rows);
    bytes_free(&stream);
}
