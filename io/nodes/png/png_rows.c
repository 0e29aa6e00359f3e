/* Rows of a PNG: passes, filters and packed samples. */
#include "png_rows.h"

#include <string.h>

int tsr_png_passes(const struct tsr_image *image, bool interlaced, struct tsr_png_pass passes[TSR_PNG_PASSES])
{
    static const uint8_t adam7[TSR_PNG_PASSES][4] = {{0, 0, 8, 8}, {4, 0, 8, 8}, {0, 4, 4, 8}, {2, 0, 4, 4},
                                                     {0, 2, 2, 4}, {1, 0, 2, 2}, {0, 1, 1, 2}};
    static const uint8_t whole[4] = {0, 0, 1, 1};
    const int count = interlaced ? TSR_PNG_PASSES : 1;
    for (int i = 0; i < count; i++) {
        const uint8_t *const p = interlaced ? adam7[i] : whole;
        struct tsr_png_pass pass = {.x0 = p[0], .y0 = p[1], .dx = p[2], .dy = p[3]};
        if (image->columns > pass.x0 && image->rows > pass.y0) {
            pass.columns = (image->columns - pass.x0 + pass.dx - 1) / pass.dx;
            pass.rows = (image->rows - pass.y0 + pass.dy - 1) / pass.dy;
        }
        pass.row_bytes = (size_t)(((uint64_t)pass.columns * image->components * image->bits_stored + 7) / 8);
        passes[i] = pass;
    }
    return count;
}

/* The predictor of Paeth: of left, above and above left the one that is nearest to left + above - above left. */
static uint8_t paeth(int a, int b, int c)
{
    const int pa = b > c ? b - c : c - b, pb = a > c ? a - c : c - a;
    const int both = a + b - 2 * c, pc = both < 0 ? -both : both;
    return (uint8_t)(pa <= pb && pa <= pc ? a : pb <= pc ? b : c);
}

/* The bytes of a pixel at once, for filters that wait for the pixel before: of three bytes Paeth's takes 2.1 ns a byte
 * instead of 6.8, of four 1.6 instead of 7.0 (tests/bench/decisions/042). tests/unit/io/test_png.c compares both. */
typedef int16_t lanes __attribute__((vector_size(16)));
typedef uint8_t lane_bytes __attribute__((vector_size(8)));

/* No function takes or gives lanes by value: on i386 without SSE that changes with flags of the compiler. */
#define MAGNITUDE(x) (((x) ^ (x) >> 15) - ((x) >> 15))
#define CHOOSE(where, yes, no) (((yes) & (where)) | ((no) & ~(where)))

static inline void load_lanes(const uint8_t *bytes, lanes *to)
{
    lane_bytes eight;
    memcpy(&eight, bytes, sizeof eight);
    *to = __builtin_convertvector(eight, lanes);
}

static inline void paeth_lanes(const lanes *a, const lanes *b, const lanes *c, lanes *predicted)
{
    const lanes to_a = *b - *c, to_b = *a - *c, to_c = to_a + to_b;
    const lanes pa = MAGNITUDE(to_a), pb = MAGNITUDE(to_b), pc = MAGNITUDE(to_c), is_b = pb < pa;
    const lanes nearer = CHOOSE(is_b, *b, *a), is_c = pc < CHOOSE(is_b, pb, pa);
    *predicted = CHOOSE(is_c, *c, nearer);
}

/* The pixels of a row that have eight bytes from their first one on. Returns the bytes of these pixels. */
static inline size_t unfilter_pixels(int type, uint8_t *row, const uint8_t *above, size_t bytes,
                                     const size_t pixel_bytes)
{
    lanes a = {0}, b, c = {0}, filtered, predicted;
    size_t i = 0;
    for (; i + sizeof(lane_bytes) <= bytes; i += pixel_bytes) {
        load_lanes(above + i, &b);
        load_lanes(row + i, &filtered);
        if (type == 4)
            paeth_lanes(&a, &b, &c, &predicted);
        else
            predicted = (a + b) >> 1;
        a = (filtered + predicted) & 255;
        c = b;
        const lane_bytes eight = __builtin_convertvector(a, lane_bytes);
        memcpy(row + i, &eight, pixel_bytes);
    }
    return i;
}

static size_t unfilter_most(int type, uint8_t *row, const uint8_t *above, size_t bytes, size_t pixel_bytes)
{
    switch (pixel_bytes) {
    case 2:
        return unfilter_pixels(type, row, above, bytes, 2);
    case 3:
        return unfilter_pixels(type, row, above, bytes, 3);
    case 4:
        return unfilter_pixels(type, row, above, bytes, 4);
    case 6:
        return unfilter_pixels(type, row, above, bytes, 6);
    case 8:
        return unfilter_pixels(type, row, above, bytes, 8);
    default:
        return 0;
    }
}

void tsr_png_unfilter(int type, uint8_t *row, const uint8_t *above, size_t bytes, size_t pixel_bytes)
{
    const size_t first = pixel_bytes < bytes ? pixel_bytes : bytes,
                 begin = type == 3 || type == 4 ? unfilter_most(type, row, above, bytes, pixel_bytes) : 0;
    if (type == 2)
        for (size_t i = 0; i < bytes; i++) row[i] = (uint8_t)(row[i] + above[i]);
    if (type == 3) {
        for (size_t i = begin; i < first; i++) row[i] = (uint8_t)(row[i] + above[i] / 2);
        for (size_t i = begin < first ? first : begin; i < bytes; i++)
            row[i] = (uint8_t)(row[i] + (row[i - pixel_bytes] + above[i]) / 2);
    }
    if (type == 1)
        for (size_t i = first; i < bytes; i++) row[i] = (uint8_t)(row[i] + row[i - pixel_bytes]);
    if (type == 4) {
        for (size_t i = begin; i < first; i++) row[i] = (uint8_t)(row[i] + above[i]);
        for (size_t i = begin < first ? first : begin; i < bytes; i++)
            row[i] = (uint8_t)(row[i] + paeth(row[i - pixel_bytes], above[i], above[i - pixel_bytes]));
    }
}

void tsr_png_filter(int type, const uint8_t *row, const uint8_t *above, size_t bytes, size_t pixel_bytes, uint8_t *out)
{
    const size_t first = pixel_bytes < bytes ? pixel_bytes : bytes;
    if (type == 0) memcpy(out, row, bytes);
    if (type == 2)
        for (size_t i = 0; i < bytes; i++) out[i] = (uint8_t)(row[i] - above[i]);
    if (type == 3) {
        for (size_t i = 0; i < first; i++) out[i] = (uint8_t)(row[i] - above[i] / 2);
        for (size_t i = first; i < bytes; i++) out[i] = (uint8_t)(row[i] - (row[i - pixel_bytes] + above[i]) / 2);
    }
    if (type == 1) {
        memcpy(out, row, first);
        for (size_t i = first; i < bytes; i++) out[i] = (uint8_t)(row[i] - row[i - pixel_bytes]);
    }
    if (type == 4) {
        for (size_t i = 0; i < first; i++) out[i] = (uint8_t)(row[i] - above[i]);
        for (size_t i = first; i < bytes; i++)
            out[i] = (uint8_t)(row[i] - paeth(row[i - pixel_bytes], above[i], above[i - pixel_bytes]));
    }
}

uint64_t tsr_png_cost(const uint8_t *filtered, size_t bytes)
{
    enum { PART = 1 << 16 }; /* a sum of 32 bits is the faster one */
    uint64_t cost = 0;
    for (size_t at = 0; at < bytes; at += PART) {
        const size_t end = bytes - at < PART ? bytes : at + PART;
        uint32_t sum = 0;
        for (size_t i = at; i < end; i++) {
            const uint8_t up = filtered[i], down = (uint8_t)(0 - up);
            sum += up < down ? up : down;
        }
        cost += sum;
    }
    return cost;
}

/* The bytes of a pixel in the raster, and of a row of it. */
static size_t raster_pixel(const struct tsr_image *image)
{
    return (size_t)image->components * (image->bits_allocated / 8u);
}

static uint8_t *raster_at(const struct tsr_image *image, const struct tsr_png_pass *pass, uint32_t y,
                          const uint8_t *raster)
{
    const size_t row = pass->y0 + (size_t)y * pass->dy;
    return (uint8_t *)(uintptr_t)raster + (row * image->columns + pass->x0) * raster_pixel(image);
}

bool tsr_png_put_row(const struct tsr_image *image, const struct tsr_png_pass *pass, uint32_t y, const uint8_t *row,
                     uint8_t *raster)
{
    const size_t pixel = raster_pixel(image), step = pixel * pass->dx;
    uint8_t *out = raster_at(image, pass, y, raster);
    if (image->bits_stored >= 8) {
        if (pass->dx == 1) memcpy(out, row, pass->row_bytes);
        for (uint32_t x = 0; x < pass->columns && pass->dx > 1; x++) memcpy(out + x * step, row + x * pixel, pixel);
        return true;
    }
    const unsigned depth = image->bits_stored, mask = (1u << depth) - 1; /* one sample a pixel */
    const unsigned last = (unsigned)((uint64_t)pass->columns * depth % 8);
    for (uint32_t x = 0; x < pass->columns; x++) {
        const size_t bit = (size_t)x * depth;
        out[x * step] = (uint8_t)((unsigned)row[bit / 8] >> (8 - depth - bit % 8) & mask);
    }
    return last == 0 || (row[pass->row_bytes - 1] & (0xffu >> last)) == 0;
}

void tsr_png_take_row(const struct tsr_image *image, const struct tsr_png_pass *pass, uint32_t y, const uint8_t *raster,
                      uint8_t *row)
{
    const size_t pixel = raster_pixel(image), step = pixel * pass->dx;
    const uint8_t *in = raster_at(image, pass, y, raster);
    if (image->bits_stored >= 8) {
        if (pass->dx == 1) memcpy(row, in, pass->row_bytes);
        for (uint32_t x = 0; x < pass->columns && pass->dx > 1; x++) memcpy(row + x * pixel, in + x * step, pixel);
        return;
    }
    const unsigned depth = image->bits_stored, mask = (1u << depth) - 1;
    memset(row, 0, pass->row_bytes);
    for (uint32_t x = 0; x < pass->columns; x++) {
        const size_t bit = (size_t)x * depth;
        row[bit / 8] = (uint8_t)(row[bit / 8] | (in[x * step] & mask) << (8 - depth - bit % 8));
    }
}
