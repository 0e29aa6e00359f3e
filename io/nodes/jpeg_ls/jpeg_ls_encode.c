/* Encodes a JPEG-LS scan: T.87 annexes A and B. JPEG_LS.md 4 to 6.
 *
 * Codes are first put together without stuffing: a code is one store, whatever its length. Blocks of these bits then
 * become the bytes of the stream, with a 0 bit after each FF. */
#include "jpeg_ls_scan.h"

#include <stdlib.h>
#include <string.h>

enum {
    SAMPLE_BYTES = 12, /* most bytes of a sample: an escape of 64 bits, a run of 1 + 15 bits before it */
    STUFF_FROM = 8192, /* bytes that wait */
    SLACK = 64
};

/* Bits without stuffing: used bytes, and the first filled < 8 bits of another on top of last. */
struct bits {
    uint8_t *bytes;
    size_t used;
    uint64_t last;
    uint32_t filled;
};

/* Puts value, of length bits: at most 56. */
JPEG_LS_INLINE void put(struct bits *bits, uint64_t value, uint32_t length)
{
    const uint64_t all = bits->last | value << 1 << (63 - bits->filled - length);
    const uint32_t filled = bits->filled + length;
    tsr_put_u64_be(bits->bytes + bits->used, all);
    bits->used += filled >> 3;
    bits->last = all << (filled & ~7u);
    bits->filled = filled & 7;
}

/* A code with many zeros, or an escape. */
JPEG_LS_APART static struct bits put_long(struct bits bits, uint32_t coded, uint32_t k, uint32_t longest, int qbpp)
{
    const uint32_t zeros = coded >> k;
    if (zeros < longest) {
        put(&bits, 0, zeros);
        put(&bits, (uint64_t)1 << k | (coded & (((uint32_t)1 << k) - 1)), k + 1);
    } else {
        put(&bits, 1, longest + 1);
        put(&bits, coded - 1, (uint32_t)qbpp);
    }
    return bits;
}

/* The limited Golomb code: T.87 A.5.3. */
JPEG_LS_INLINE void put_code(struct bits *bits, uint32_t coded, uint32_t k, int32_t brief, int32_t longest, int qbpp)
{
    const uint32_t zeros = coded >> k;
    if (JPEG_LS_RARE(zeros >= (uint32_t)brief)) {
        *bits = put_long(*bits, coded, k, (uint32_t)longest, qbpp);
        return;
    }
    put(bits, (uint64_t)1 << k | (coded & (((uint32_t)1 << k) - 1)), zeros + 1 + k);
}

/* An error modulo the range: T.87 A.4.5. */
JPEG_LS_INLINE int32_t reduce(int32_t error, int32_t range)
{
    error += error < 0 ? range : 0;
    return error - (error >= (range + 1) / 2 ? range : 0);
}

JPEG_LS_INLINE void put_regular(struct tsr_jpeg_ls_coder *coder, struct bits *bits, int32_t number, int32_t guess,
                                int32_t sample)
{
    const int32_t sign = jpeg_ls_sign(number);
    struct jpeg_ls_context *const context = &coder->contexts[(number ^ sign) - sign];
    const int32_t predicted = jpeg_ls_clamp(guess + ((context->c ^ sign) - sign), 0, coder->maximum);
    const int32_t error = reduce(((sample - predicted) ^ sign) - sign, coder->range);
    const int32_t swapped = error ^ -(int32_t)context->flip;
    const uint32_t coded = (uint32_t)swapped << 1 ^ (uint32_t)jpeg_ls_sign(swapped);
    put_code(bits, coded, context->k, coder->brief, coder->longest, coder->bits);
    jpeg_ls_adapt(context, error, 1, coder->reset);
}

/* The number of samples of value from row on. */
static uint32_t count_run(const uint16_t *row, uint32_t most, uint16_t value)
{
    const uint64_t four = value * (uint64_t)0x0001000100010001u;
    uint32_t length = 0;
    for (uint64_t next; most - length >= 4; length += 4) {
        memcpy(&next, row + length, sizeof next);
        if (next != four) break;
    }
    while (length < most && row[length] == value) length++;
    return length;
}

/* T.87 A.7.1.2. */
static void put_run(struct bits *bits, uint32_t *index, uint32_t length, bool ends_row)
{
    while (length >= (uint32_t)1 << jpeg_ls_run_bits[*index]) {
        put(bits, 1, 1);
        length -= (uint32_t)1 << jpeg_ls_run_bits[*index];
        if (*index < 31) (*index)++;
    }
    if (!ends_row)
        put(bits, length, 1u + jpeg_ls_run_bits[*index]);
    else if (length > 0)
        put(bits, 1, 1);
}

/* The sample that ends a run: T.87 A.7.2. */
static void put_interruption(struct tsr_jpeg_ls_coder *coder, struct bits *bits, uint32_t type, uint32_t index,
                             int32_t left, int32_t above, int32_t sample)
{
    struct jpeg_ls_run_context *const context = &coder->runs[type];
    const int32_t difference = sample - (type ? left : above);
    const int32_t error = reduce(!type && left > above ? -difference : difference, coder->range);
    const uint32_t k = jpeg_ls_run_k(context, type);
    const bool usually_negative = k != 0 || 2 * context->negative >= context->n;
    const uint32_t map = error != 0 && (error < 0) == usually_negative;
    const uint32_t coded = 2 * (uint32_t)(error < 0 ? -error : error) - type - map;
    const int32_t longest = coder->longest - jpeg_ls_run_bits[index] - 1;
    put_code(bits, coded, k, longest < JPEG_LS_SHORT ? longest : JPEG_LS_SHORT, longest, coder->bits);
    jpeg_ls_run_adapt(context, error, coded, type, coder->reset);
}

/* A run of count components, and what ends it. Returns the column after it. */
static uint32_t encode_run(struct tsr_jpeg_ls_coder *coder, struct bits *bits, int first, int count, uint32_t x)
{
    const uint32_t columns = coder->image.columns;
    uint32_t *const index = &coder->run_index[first];
    uint32_t length = columns - x;
    for (int c = first; c < first + count; c++) length = count_run(coder->row[c] + x, length, (coder->row[c] + x)[-1]);
    x += length;
    put_run(bits, index, length, x == columns);
    if (x == columns) return x;
    for (int c = first; c < first + count; c++) {
        const int32_t left = (coder->row[c] + x)[-1], above = coder->above[c][x];
        put_interruption(coder, bits, count == 1 && left == above, *index, left, above, coder->row[c][x]);
    }
    if (*index > 0) (*index)--;
    return x + 1;
}

static void encode_row(struct tsr_jpeg_ls_coder *coder, struct bits *all_bits, int component)
{
    struct bits bits = *all_bits;
    const uint32_t columns = coder->image.columns;
    const uint16_t *const above = coder->above[component];
    const uint16_t *const row = coder->row[component];
    const int8_t *const regions = coder->regions + JPEG_LS_WIDEST;
    int32_t left = row[-1], corner = above[-1], over = above[0], of_corner = regions[over - corner];
    for (uint32_t x = 0; x < columns;) {
        const int32_t right = above[x + 1], of_right = regions[right - over];
        const int32_t number = jpeg_ls_number(regions, left, corner, jpeg_ls_upper(of_right, of_corner));
        if (number != 0) {
            const int32_t sample = row[x++];
            put_regular(coder, &bits, number, jpeg_ls_predict(left, over, corner), sample);
            left = sample;
            corner = over;
            over = right;
            of_corner = of_right;
            continue;
        }
        *all_bits = bits;
        x = encode_run(coder, all_bits, component, 1, x);
        bits = *all_bits;
        left = row[x - 1];
        corner = above[x - 1];
        over = above[x];
        of_corner = regions[over - corner];
    }
    *all_bits = bits;
}

/* A row of interleaved samples. */
JPEG_LS_INLINE void encode_samples(struct tsr_jpeg_ls_coder *coder, struct bits *all_bits, const int components)
{
    struct bits bits = *all_bits;
    const uint32_t columns = coder->image.columns;
    for (uint32_t x = 0; x < columns;) {
        int32_t numbers[TSR_JPEG_LS_COMPONENTS];
        if (!jpeg_ls_numbers(coder, x, components, numbers)) {
            *all_bits = bits;
            x = encode_run(coder, all_bits, 0, components, x);
            bits = *all_bits;
            continue;
        }
        for (int c = 0; c < components; c++) {
            const uint16_t *const above = coder->above[c] + x, *const row = coder->row[c] + x;
            put_regular(coder, &bits, numbers[c], jpeg_ls_predict(row[-1], above[0], above[-1]), *row);
        }
        x++;
    }
    *all_bits = bits;
}

static void encode_rows(struct tsr_jpeg_ls_coder *coder, struct bits *bits)
{
    const int components = coder->headers->scan_components;
    if (coder->headers->interleave != TSR_JPEG_LS_SAMPLES) {
        for (int c = 0; c < components; c++) encode_row(coder, bits, c);
    } else if (components == 3) {
        encode_samples(coder, bits, 3);
    } else {
        encode_samples(coder, bits, components);
    }
}

/* ---- Stuffing -------------------------------------------------------------------------------------------- */

static bool has_ff(uint64_t eight)
{
    const uint64_t ones = 0x0101010101010101u, tops = 0x8080808080808080u;
    return ((~eight - ones) & eight & tops) != 0;
}

/* Turns whole bytes of the stream's out of bits; fewer than 8 bits stay. after_ff: the byte before was FF. Returns the
 * bytes written to out. */
static size_t stuff(struct bits *bits, bool *after_ff, uint8_t *out)
{
    const size_t end = 8 * bits->used + bits->filled;
    size_t at = 0, size = 0;
    tsr_put_u64_be(bits->bytes + bits->used, bits->last);
    memset(bits->bytes + bits->used + 8, 0, 8);
    while (end - at >= (*after_ff ? 7 : 8)) {
        const uint8_t *const from = bits->bytes + (at >> 3);
        const uint64_t eight = tsr_read_u64_be(from) << (at & 7) | from[8] >> (8 - (at & 7));
        if (*after_ff) {
            out[size++] = (uint8_t)(eight >> 57);
            at += 7;
            *after_ff = false;
        } else if (end - at >= 64 && !has_ff(eight)) {
            tsr_put_u64_be(out + size, eight);
            size += 8;
            at += 64;
        } else {
            out[size++] = (uint8_t)(eight >> 56);
            at += 8;
            *after_ff = eight >> 56 == 0xff;
        }
    }
    bits->last = tsr_read_u64_be(bits->bytes + (at >> 3)) << (at & 7);
    bits->filled = (uint32_t)(end - at);
    bits->used = 0;
    return size;
}

/* Bytes of the bits of a row, and of those that wait. */
static size_t room_of(const struct tsr_image *image)
{
    return STUFF_FROM + SAMPLE_BYTES * (size_t)image->columns * image->components + SLACK;
}

/* Bits, and after them room for what they become with stuffing. */
static size_t bits_bytes(size_t room)
{
    return room + room + room / 7 + SLACK;
}

uint64_t tsr_jpeg_ls_memory(const struct tsr_image *image)
{
    const uint64_t rows = 2 * TSR_JPEG_LS_COMPONENTS * ((uint64_t)image->columns + 2) * sizeof(uint16_t);
    return sizeof(struct tsr_jpeg_ls_coder) + rows + bits_bytes(room_of(image));
}

enum tsr_status tsr_jpeg_ls_encode(struct tsr_jpeg_ls_coder *coder, const uint8_t *raster, uint32_t first,
                                   uint32_t count, struct tsr_bytes *stream, size_t *whole, struct tsr_error *error)
{
    const struct tsr_jpeg_ls_headers *headers = coder->headers;
    const size_t room = room_of(&coder->image);
    if (!coder->bytes) coder->bytes = malloc(bits_bytes(room));
    if (!coder->bytes) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for %zu bytes", 2 * room);
    uint8_t *const out = coder->bytes + room;
    struct bits bits = {.bytes = coder->bytes};
    const size_t start = stream->size;
    bool after_ff = false;
    jpeg_ls_begin_interval(coder);
    for (uint32_t y = first; y < first + count; y++) {
        for (int c = 0; c < headers->scan_components; c++)
            if (!tsr_jpeg_ls_load_row(&coder->image, raster, headers, headers->scan[c], y, coder->row[c]))
                return tsr_fail(error, TSR_ERROR_CORRUPT, "a sample is above %d", coder->maximum);
        jpeg_ls_begin_row(coder);
        encode_rows(coder, &bits);
        jpeg_ls_end_row(coder);
        if (bits.used >= STUFF_FROM || y + 1 == first + count)
            TSR_TRY(tsr_bytes_put(stream, out, stuff(&bits, &after_ff, out), error));
    }
    *whole = stream->size - start;
    if (bits.filled == 0 && !after_ff) return TSR_OK;
    return tsr_bytes_put_u8(stream, (uint8_t)(bits.last >> (after_ff ? 57 : 56)), error);
}
