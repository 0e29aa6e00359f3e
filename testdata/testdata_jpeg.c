#include "testdata_jpeg.h"

#include "testdata_noise.h"

enum { CODE_BITS = 5, CATEGORIES = 17 };

/* Bits of a scan. */
struct scan {
    struct bytes *out;
    uint64_t bits;
    int count;
};

static void put_bits(struct scan *scan, uint32_t value, int count)
{
    scan->bits = scan->bits << count | value;
    scan->count += count;
    while (scan->count >= 8) {
        scan->count -= 8;
        const unsigned byte = (unsigned)(scan->bits >> scan->count) & 0xff;
        bytes_put_u8(scan->out, byte);
        if (byte == 0xff) bytes_put_u8(scan->out, 0);
    }
    scan->bits &= 0xff;
}

/* A difference modulo 2^16, from -32767 to 32768. */
static void put_difference(struct scan *scan, int32_t difference)
{
    difference = (difference & 0xffff) > 32768 ? (difference & 0xffff) - 65536 : difference & 0xffff;
    int category = 0;
    for (int32_t rest = difference < 0 ? -difference : difference; rest > 0; rest >>= 1) category++;
    put_bits(scan, (uint32_t)category, CODE_BITS);
    if (category == 0 || category == 16) return;
    const int32_t low = difference < 0 ? difference + (1 << category) - 1 : difference;
    put_bits(scan, (uint32_t)low, category);
}

void jpeg_put_frame(struct bytes *out, unsigned marker, const struct canvas *plane, int components, int bits)
{
    bytes_put_u16(out, true, 0xffd8);
    bytes_put_u16(out, true, marker);
    bytes_put_u16(out, true, (unsigned)(8 + 3 * components));
    bytes_put_u8(out, (unsigned)bits);
    bytes_put_u16(out, true, (unsigned)plane->rows);
    bytes_put_u16(out, true, (unsigned)plane->columns);
    bytes_put_u8(out, (unsigned)components);
    for (int c = 1; c <= components; c++) {
        bytes_put_u8(out, (unsigned)c);
        bytes_put_u16(out, true, 0x1100);
    }
}

void jpeg_put_scan(struct bytes *out, int components)
{
    bytes_put_u16(out, true, 0xffda);
    bytes_put_u16(out, true, (unsigned)(6 + 2 * components));
    bytes_put_u8(out, (unsigned)components);
    for (int c = 1; c <= components; c++) {
        bytes_put_u8(out, (unsigned)c);
        bytes_put_u8(out, 0);
    }
}

static void put_headers(struct bytes *out, const struct canvas *plane, int components, int bits)
{
    jpeg_put_frame(out, 0xffc3, plane, components, bits);
    bytes_put_u16(out, true, 0xffc4);
    bytes_put_u16(out, true, 2 + 1 + 16 + CATEGORIES);
    bytes_put_u8(out, 0);
    for (int length = 1; length <= 16; length++) bytes_put_u8(out, length == CODE_BITS ? CATEGORIES : 0);
    for (unsigned i = 0; i < CATEGORIES; i++) bytes_put_u8(out, i);
    jpeg_put_scan(out, components);
    bytes_put_u8(out, 1);
    bytes_put_u16(out, true, 0);
}

void jpeg_put_lossless(struct bytes *out, const struct canvas *planes, int components, int bits)
{
    const int columns = planes->columns, rows = planes->rows;
    const int32_t mask = (1 << bits) - 1;
    struct scan scan = {out, 0, 0};
    put_headers(out, planes, components, bits);
    for (int y = 0; y < rows; y++)
        for (int x = 0; x < columns; x++)
            for (int c = 0; c < components; c++) {
                const int32_t *const at = planes[c].shades + y * columns + x;
                const int32_t predicted = x > 0 ? at[-1] & mask : y > 0 ? at[-columns] & mask : 1 << (bits - 1);
                put_difference(&scan, (*at & mask) - predicted);
            }
    if (scan.count > 0) put_bits(&scan, (1u << (8 - scan.count)) - 1, 8 - scan.count);
    bytes_put_u16(out, true, 0xffd9);
}

/* Codes of 5 bits: of the categories of DC differences, and of EOB and 0 to 3 zeros before AC coefficients below 16. */
static void put_lossy_headers(struct bytes *out, int across, int down)
{
    bytes_put_u16(out, true, 0xffd8);
    bytes_put_u16(out, true, 0xffdb);
    bytes_put_u16(out, true, 2 + 1 + 64);
    bytes_fill(out, 0, 1);
    bytes_fill(out, 16, 64);
    bytes_put_u16(out, true, 0xffc0);
    bytes_put_u16(out, true, 11);
    bytes_put_u8(out, 8);
    bytes_put_u16(out, true, (unsigned)(8 * down));
    bytes_put_u16(out, true, (unsigned)(8 * across));
    bytes_put_u8(out, 1);
    bytes_put_u8(out, 1);
    bytes_put_u16(out, true, 0x1100);
    for (unsigned table = 0; table < 2; table++) {
        const unsigned symbols = table == 0 ? 12 : 17;
        bytes_put_u16(out, true, 0xffc4);
        bytes_put_u16(out, true, 2 + 1 + 16 + symbols);
        bytes_put_u8(out, table << 4);
        for (int length = 1; length <= 16; length++) bytes_put_u8(out, length == CODE_BITS ? symbols : 0);
        for (unsigned i = 0; i < symbols; i++)
            bytes_put_u8(out, table == 0 || i == 0 ? i : (i - 1) / 4 << 4 | ((i - 1) % 4 + 1));
    }
    bytes_put_u16(out, true, 0xffda);
    bytes_put_u16(out, true, 8);
    bytes_put_u8(out, 1);
    bytes_put_u8(out, 1);
    bytes_put_u16(out, true, 0);
    bytes_put_u16(out, true, 0x3f00);
}

void jpeg_put_lossy(struct bytes *out, int across, int down, uint64_t seed)
{
    struct scan scan = {out, 0, 0};
    struct random random = {seed};
    put_lossy_headers(out, across, down);
    for (int block = 0; block < across * down; block++) {
        put_difference(&scan, (int32_t)random_below(&random, 17) - 8);
        for (uint32_t left = random_below(&random, 5); left > 0; left--) {
            const uint32_t zeros = random_below(&random, 4), size = 1 + random_below(&random, 4);
            put_bits(&scan, 1 + 4 * zeros + size - 1, CODE_BITS);
            put_bits(&scan, random_below(&random, 1u << size), (int)size);
        }
        put_bits(&scan, 0, CODE_BITS);
    }
    if (scan.count > 0) put_bits(&scan, (1u << (8 - scan.count)) - 1, 8 - scan.count);
    bytes_put_u16(out, true, 0xffd9);
}
