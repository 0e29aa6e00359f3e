#include "testdata_shapes.h"

#include <stdlib.h>
#include <string.h>

#include "testdata_bytes.h"
#include "testdata_integer.h"

enum {
    SUBPIXELS = 16, /* places of an edge within a pixel */
    SUBROWS = 4,    /* scan lines a row, for the coverage of its pixels */
    SUBROW = SUBPIXELS / SUBROWS,
    FULL = SUBPIXELS * SUBROWS,
    ROOT_BITS = 15 /* fractional bits of half the width of an ellipse */
};

struct canvas canvas_new(int columns, int rows, int shade)
{
    struct canvas canvas = {columns, rows, allocate((size_t)columns * (size_t)rows, sizeof(int32_t))};
    for (int i = 0; i < columns * rows; i++) canvas.shades[i] = shade;
    return canvas;
}

void canvas_free(struct canvas *canvas)
{
    free(canvas->shades);
    canvas->shades = NULL;
}

/* Adds the part of a scan line from left to right, in subpixels, to the coverage of its pixels. */
static void cover(int *coverage, int columns, int64_t left, int64_t right)
{
    left = clamp(left, 0, (int64_t)columns * SUBPIXELS);
    right = clamp(right, 0, (int64_t)columns * SUBPIXELS);
    while (left < right) {
        const int64_t next = (left / SUBPIXELS + 1) * SUBPIXELS, end = next < right ? next : right;
        coverage[left / SUBPIXELS] += (int)(end - left);
        left = end;
    }
}

/* (distance / radius)^2 with 2 ROOT_BITS fractional bits. */
static int64_t relative_square(int64_t distance, int64_t radius)
{
    return square(distance) * ((int64_t)1 << (2 * ROOT_BITS)) / square(radius);
}

void paint_ellipsoid(struct canvas *canvas, const struct ellipsoid *shape, int z)
{
    const int64_t across = (int64_t)canvas->columns * SUBPIXELS, down = (int64_t)canvas->rows * SUBPIXELS;
    const int64_t x = across * shape->x / 1000, radius_x = across * shape->radius_x / 1000;
    const int64_t y = down * shape->y / 1000, radius_y = down * shape->radius_y / 1000;
    const int64_t depth = relative_square(z - shape->z, shape->radius_z);
    if (radius_x == 0 || radius_y == 0) return;
    int *coverage = allocate((size_t)canvas->columns, sizeof *coverage);
    for (int row = 0; row < canvas->rows; row++) {
        memset(coverage, 0, (size_t)canvas->columns * sizeof *coverage);
        for (int k = 0; k < SUBROWS; k++) {
            const int64_t line = (int64_t)row * SUBPIXELS + k * SUBROW + SUBROW / 2;
            const int64_t rest = ((int64_t)1 << (2 * ROOT_BITS)) - depth - relative_square(line - y, radius_y);
            const int64_t half = radius_x * square_root(rest) >> ROOT_BITS;
            cover(coverage, canvas->columns, x - half, x + half);
        }
        int32_t *shades = canvas->shades + (size_t)row * (size_t)canvas->columns;
        for (int column = 0; column < canvas->columns; column++)
            shades[column] +=
                (int32_t)divide_rounded((int64_t)(shape->shade - shades[column]) * coverage[column], FULL);
    }
    free(coverage);
}

void add_soft_disc(struct canvas *canvas, int x, int y, int radius, int shade)
{
    const int64_t limit = square(radius);
    for (int v = y - radius; v <= y + radius; v++)
        for (int u = x - radius; u <= x + radius; u++) {
            const int64_t inside = limit - square(u - x) - square(v - y);
            if (inside <= 0 || u < 0 || v < 0 || u >= canvas->columns || v >= canvas->rows) continue;
            canvas->shades[v * canvas->columns + u] += (int32_t)(shade * inside / limit);
        }
}

/* Filters a line of shades that are "step" apart, once. The first and the last shade continue beyond the ends. */
static void blur_line(int32_t *shades, int count, int step, int radius, int32_t *copy)
{
    for (int i = 0; i < count; i++) copy[i] = shades[i * step];
    for (int i = 0; i < count; i++) {
        int64_t sum = 0;
        for (int k = i - radius; k <= i + radius; k++) sum += copy[clamp(k, 0, count - 1)];
        shades[i * step] = (int32_t)divide_rounded(sum, 2 * radius + 1);
    }
}

void blur(struct canvas *canvas, int radius)
{
    const int columns = canvas->columns, rows = canvas->rows;
    int32_t *copy = allocate((size_t)(columns > rows ? columns : rows), sizeof *copy);
    for (int pass = 0; pass < 2; pass++) {
        for (int y = 0; y < rows; y++) blur_line(canvas->shades + y * columns, columns, 1, radius, copy);
        for (int x = 0; x < columns; x++) blur_line(canvas->shades + x, rows, columns, radius, copy);
    }
    free(copy);
}

static void soften_line(int32_t *shades, int count, int step, int32_t *copy)
{
    for (int i = 0; i < count; i++) copy[i] = shades[i * step];
    for (int i = 0; i < count; i++) {
        const int64_t before = copy[i > 0 ? i - 1 : i], behind = copy[i + 1 < count ? i + 1 : i];
        shades[i * step] = (int32_t)divide_rounded(before + 2 * (int64_t)copy[i] + behind, 4);
    }
}

void soften(struct canvas *canvas)
{
    const int columns = canvas->columns, rows = canvas->rows;
    int32_t *copy = allocate((size_t)(columns > rows ? columns : rows), sizeof *copy);
    for (int y = 0; y < rows; y++) soften_line(canvas->shades + y * columns, columns, 1, copy);
    for (int x = 0; x < columns; x++) soften_line(canvas->shades + x, rows, columns, copy);
    free(copy);
}

/* Seven rows from the top, five dots each, the leftmost dot in bit 4. */
struct glyph {
    char letter;
    uint8_t dots[7];
};

/* clang-format off */
static const struct glyph font[] = {
    {'0', {14, 17, 19, 21, 25, 17, 14}}, {'1', { 4, 12,  4,  4,  4,  4, 14}}, {'2', {14, 17,  1,  2,  4,  8, 31}},
    {'3', {30,  1,  1, 14,  1,  1, 30}}, {'4', { 2,  6, 10, 18, 31,  2,  2}}, {'5', {31, 16, 30,  1,  1, 17, 14}},
    {'6', { 6,  8, 16, 30, 17, 17, 14}}, {'7', {31,  1,  2,  4,  8,  8,  8}}, {'8', {14, 17, 17, 14, 17, 17, 14}},
    {'9', {14, 17, 17, 15,  1,  2, 12}}, {'A', {14, 17, 17, 31, 17, 17, 17}}, {'C', {14, 17, 16, 16, 16, 17, 14}},
    {'E', {31, 16, 16, 30, 16, 16, 31}}, {'H', {17, 17, 17, 31, 17, 17, 17}}, {'M', {17, 27, 21, 21, 17, 17, 17}},
    {'N', {17, 25, 21, 19, 17, 17, 17}}, {'O', {14, 17, 17, 17, 17, 17, 14}}, {'P', {30, 17, 17, 30, 16, 16, 16}},
    {'R', {30, 17, 17, 30, 20, 18, 17}}, {'S', {15, 16, 16, 14,  1,  1, 30}}, {'T', {31,  4,  4,  4,  4,  4,  4}},
};
/* clang-format on */

void fill_box(struct canvas *canvas, int x, int y, int width, int height, int shade)
{
    for (int v = y; v < y + height; v++)
        for (int u = x; u < x + width; u++)
            if (u >= 0 && v >= 0 && u < canvas->columns && v < canvas->rows)
                canvas->shades[v * canvas->columns + u] = shade;
}

static void draw_glyph(struct canvas *canvas, int x, int y, int size, int shade, const struct glyph *glyph)
{
    for (int row = 0; row < 7; row++)
        for (int dot = 0; dot < 5; dot++)
            if (glyph->dots[row] >> (4 - dot) & 1) fill_box(canvas, x + dot * size, y + row * size, size, size, shade);
}

void draw_text(struct canvas *canvas, int x, int y, int size, int shade, const char *text)
{
    for (; *text; text++, x += 6 * size)
        for (size_t i = 0; i < sizeof font / sizeof font[0]; i++)
            if (font[i].letter == *text) draw_glyph(canvas, x, y, size, shade, &font[i]);
}
