/* SMALL_PNG.md: small PNG files. */
#include "ref_mix.h"

#include <stdlib.h>
#include <string.h>

enum { SKELETON = 1 << 15, PLAIN = 1 << 15 };

/* SMALL_PNG.md 3: the lines of its annex. */
enum { SEEN = 1841 };
static const char *const seen_before[] = {
#include "small_png_seen.inc"
};

struct state {
    struct ref_mix m;
    unsigned smooth;
    uint8_t *skeleton; /* SMALL_PNG.md 1 */
    size_t skeleton_size;
    const uint8_t *known_bytes;
};

static uint8_t skeleton_byte(struct state *z, uint32_t t, uint32_t o, uint32_t u)
{
    uint32_t *h = z->m.h, b1 = ref_back(&z->m, 1);
    if (z->skeleton_size == SKELETON) z->m.bad = true;
    if (z->m.bad) return 0;
    h[0] = ref_mix_hash(ref_mix_hash(ref_mix_hash(0, t), u), o < 255 ? o : 255);
    h[1] = ref_mix_hash(ref_mix_hash(1, t), b1);
    h[2] = ref_mix_hash(ref_mix_hash(2, ref_back(&z->m, 2)), b1);
    h[3] = ref_mix_hash(ref_mix_hash(h[2], ref_back(&z->m, 3)), 3);
    h[4] = ref_mix_hash(ref_mix_hash(h[3], ref_back(&z->m, 4)), 4);
    h[5] = ref_mix_hash(ref_mix_hash(ref_mix_hash(h[4], ref_back(&z->m, 5)), ref_back(&z->m, 6)), 5);
    h[6] = ref_mix_hash(h[0], b1);
    h[7] = ref_mix_hash(ref_mix_hash(ref_mix_hash(7, t), ref_back(&z->m, 3)), o % 3);
    z->m.n = 8;
    z->m.s = 0;
    uint8_t byte = ref_mixed_byte(&z->m, z->m.known ? *z->known_bytes++ : 0);
    z->skeleton[z->skeleton_size++] = byte;
    return byte;
}

/* ---- SMALL_PNG.md 1 ---- */

static uint32_t varint(struct state *z, uint32_t t, uint32_t *o, uint32_t u)
{
    uint32_t value = 0;
    for (unsigned i = 0; i < 3; i++) {
        uint8_t byte = skeleton_byte(z, t, (*o)++, u);
        value |= (uint32_t)(byte & 127) << 7 * i;
        if (byte < 128) return value;
    }
    z->m.bad = true;
    return 0;
}

static bool read_skeleton(struct state *z)
{
    uint32_t t = 0, o, idats = 0;
    z->skeleton_size = 0;
    for (o = 0; o < 13; o++) skeleton_byte(z, 0, o, 0);
    for (;;) {
        uint32_t u = t, at = o = 0, size = varint(z, 1, &o, u);
        if (size == 0) {
            t = 2;
            size = varint(z, t, &at, u);
            for (uint32_t i = 0; i < size && !z->m.bad; i++) {
                if (i < 12) {
                    skeleton_byte(z, t, at++, u);
                } else if (z->skeleton_size == SKELETON) {
                    z->m.bad = true;
                } else {
                    z->skeleton[z->skeleton_size++] = (uint8_t)ref_even(&z->m, 8);
                }
            }
            if (z->m.bad || ++idats > 1) return false;
            continue;
        }
        uint32_t type = 0;
        for (int i = 0; i < 4; i++) type = type << 8 | skeleton_byte(z, 1, o++, u);
        t = type;
        for (o = 0; o + 1 < size && !z->m.bad; o++) skeleton_byte(z, t, o, u);
        if (z->m.bad) return false;
        if (type == 0x49454e44 && size == 1) return idats == 1;
    }
}

/* The contexts of byte x of a row. row and up have 16 zeros before and after them. */
static uint32_t row_contexts(struct state *z, const uint8_t *row, const uint8_t *up, size_t x, size_t d)
{
    uint32_t *h = z->m.h, m = (uint32_t)(x % d), w = *(row + x - d), n = up[x], nw = *(up + x - d);
    const uint8_t *W = row + x - m - d, *N = up + x - m;
    uint32_t g = w + n < nw ? 0 : w + n - nw > 255 ? 255 : w + n - nw;
    uint32_t A = ref_mix_hash_bytes(m + 32, row + x - m, m);
    uint32_t r = m > 0 ? 256u + row[x - 1] - *(row + x - 1 - d) : 512 + nw;
    h[0] = ref_mix_hash(40, m);
    h[1] = ref_mix_hash(41, A);
    h[2] = ref_mix_hash(42, ref_mix_hash_bytes(A, N, d));
    h[3] = ref_mix_hash(43, ref_mix_hash_bytes(ref_mix_hash_bytes(ref_mix_hash_bytes(A, W, d), N, d), N + d, d));
    h[4] = ref_mix_hash(ref_mix_hash(44, m), g);
    h[5] = ref_mix_hash(ref_mix_hash(ref_mix_hash(45, m), w), r);
    z->m.n = 6;
    z->m.s = 1;
    return g;
}

/* One pass: count rows of so many bytes. Plain bytes go to *to, which moves on. */
static bool read_pass(struct state *z, uint64_t count, size_t bytes, size_t d, uint8_t **to)
{
    uint8_t *rows = ref_alloc(2, bytes + 48);
    uint32_t y1 = 0, y2 = 0;
    for (uint64_t y = 0; y < count; y++) {
        uint8_t *row = rows + (y % 2) * (bytes + 48) + 16, *up = rows + ((y + 1) % 2) * (bytes + 48) + 16;
        z->m.h[0] = ref_mix_hash(20, 0);
        z->m.h[1] = ref_mix_hash(21, y1);
        z->m.h[2] = ref_mix_hash(22, y1 + 8 * y2);
        z->m.n = 3;
        z->m.s = 1;
        uint8_t type = ref_mixed_byte(&z->m, 0);
        if (z->m.bad || type > 4) return ref_fail("a row of a small PNG is corrupt");
        for (size_t x = 0; x < bytes; x++) {
            uint32_t g = row_contexts(z, row, up, x, d);
            row[x] = (uint8_t)(ref_mixed_byte(&z->m, 0) + (z->smooth ? g : 0));
        }
        ref_filter_row(type, row - 1, up - 1, bytes + 1, d, *to);
        *to += bytes + 1;
        y2 = y1;
        y1 = type;
    }
    return true;
}

static uint32_t big_endian(const uint8_t *b)
{
    return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

static bool read_rows(struct state *z, uint8_t **plain, size_t *size)
{
    static const uint32_t passes[8][4] = {{0, 0, 8, 8}, {4, 0, 8, 8}, {0, 4, 4, 8}, {2, 0, 4, 4},
                                          {0, 2, 2, 4}, {1, 0, 2, 2}, {0, 1, 1, 2}, {0, 0, 1, 1}};
    static const unsigned channels[7] = {1, 0, 3, 1, 2, 0, 4};
    const uint8_t *ihdr = z->skeleton;
    uint64_t columns = big_endian(ihdr), rows = big_endian(ihdr + 4), counts[8], bytes[8], sum = 0;
    unsigned depth = ihdr[8], n = ihdr[9] < 7 ? channels[ihdr[9]] : 0, first = ihdr[12] ? 0 : 7, end = ihdr[12] ? 7 : 8;
    bool good_depth = depth == 8 || depth == 16 || (n == 1 && (depth == 1 || depth == 2 || depth == 4));
    if (!good_depth || n == 0 || ihdr[12] > 1 || columns == 0 || rows == 0)
        return ref_fail("the IHDR of a small PNG is corrupt");
    for (unsigned i = first; i < end; i++) {
        const uint32_t *p = passes[i];
        uint64_t across = columns > p[0] ? (columns - p[0] + p[2] - 1) / p[2] : 0;
        counts[i] = across > 0 && rows > p[1] ? (rows - p[1] + p[3] - 1) / p[3] : 0;
        bytes[i] = (across * n * depth + 7) / 8;
        if (counts[i] > PLAIN || (counts[i] > 0 && bytes[i] > PLAIN)) return ref_fail("a small PNG is too large");
        sum += counts[i] * (bytes[i] + 1);
    }
    if (sum > PLAIN) return ref_fail("a small PNG is too large");
    z->smooth = ref_even(&z->m, 1);
    uint8_t *to = *plain = ref_alloc((size_t)sum + 1, 1);
    *size = (size_t)sum;
    for (unsigned i = first; i < end; i++)
        if (counts[i] > 0 && !read_pass(z, counts[i], (size_t)bytes[i], n * depth < 8 ? 1 : n * depth / 8, &to))
            return false;
    return !z->m.bad || ref_fail("the rows of a small PNG end too early");
}

static bool put_chunk(const uint8_t *type, uint32_t size, ref_sink *put, void *to)
{
    uint32_t crc = ref_crc32(type, size + 4);
    uint8_t head[4] = {(uint8_t)(size >> 24), (uint8_t)(size >> 16), (uint8_t)(size >> 8), (uint8_t)size};
    uint8_t tail[4] = {(uint8_t)(crc >> 24), (uint8_t)(crc >> 16), (uint8_t)(crc >> 8), (uint8_t)crc};
    return put(to, head, 4) && put(to, type, size + 4) && put(to, tail, 4);
}

static bool put_file(const struct state *z, const uint8_t *plain, size_t plain_size, ref_sink *put, void *to)
{
    uint8_t start[33];
    struct ref_bytes b = {.data = z->skeleton, .size = z->skeleton_size};
    ref_png_start(ref_take(&b, 13), start);
    if (!put(to, start, sizeof start)) return false;
    while (ref_left(&b) > 0) {
        uint64_t size = ref_varint(&b);
        if (size > 0) {
            if (!put_chunk(ref_take(&b, size + 3), (uint32_t)size - 1, put, to)) return false;
            continue;
        }
        uint8_t *chunks = NULL;
        size_t chunks_size = 0, residue = (size_t)ref_varint(&b);
        if (!ref_plain_chunks(plain, plain_size, ref_take(&b, residue), residue, &chunks, &chunks_size) ||
            !put(to, chunks, chunks_size))
            return false;
    }
    return true;
}

/* The bytes of the annex. */
static uint8_t *seen_bytes(void)
{
    uint8_t *bytes = ref_alloc(SEEN, 1);
    size_t n = 0;
    for (size_t i = 0; i < sizeof seen_before / sizeof *seen_before; i++)
        for (const char *c = seen_before[i]; *c && n < SEEN; c++) {
            const bool is_hex = *c == '\\';
            const char digits[3] = {is_hex ? c[1] : 0, is_hex ? c[2] : 0, 0};
            bytes[n++] = (uint8_t)(is_hex ? strtoul(digits, NULL, 16) : (unsigned char)*c);
            if (is_hex) c += 2;
        }
    return bytes;
}

static void begin(struct state *z)
{
    static const int32_t weights[2] = {12000, 18000};
    ref_mix_begin(&z->m, 8, 2, weights, 1 << 17);
    z->skeleton = ref_alloc(SKELETON, 1);
    z->m.known = true;
    const uint8_t *const seen = seen_bytes();
    z->known_bytes = seen;
    while (z->known_bytes < seen + SEEN) (void)read_skeleton(z);
    z->m.known = false;
}

bool ref_small_png(const uint8_t *code, size_t size, ref_sink *put, void *to)
{
    struct state *z = ref_alloc(1, sizeof *z);
    uint8_t *plain = NULL;
    size_t plain_size = 0;
    begin(z);
    ref_mix_read(&z->m, code, size);
    if (!read_skeleton(z)) return ref_fail("the skeleton of a small PNG is corrupt");
    return read_rows(z, &plain, &plain_size) && put_file(z, plain, plain_size, put, to);
}
