#include "testdata_jpeg.h"

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
