/* Hostile JPEG files, and DICOM files with streams of JPEG, JPEG-LS, JPEG 2000, RLE and deflate. See the header. */
#include "hostile.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

/* ---- JPEG ------------------------------------------------------------------------------------------------- */

struct scan {
    struct bytes *out;
    uint32_t bits;
    int count;
};

static void put_bits(struct scan *s, uint32_t value, int bits)
{
    for (int i = bits - 1; i >= 0; i--) {
        s->bits = s->bits << 1 | (value >> i & 1);
        if (++s->count < 8) continue;
        put_byte(s->out, s->bits & 255);
        if ((s->bits & 255) == 255) put_byte(s->out, 0);
        s->count = 0;
    }
}

static void end_scan(struct scan *s)
{
    while (s->count > 0) put_bits(s, 1, 1);
}

static void put_segment(struct bytes *b, unsigned marker, const void *data, size_t size)
{
    put_byte(b, 255);
    put_byte(b, marker);
    put_number(b, (uint32_t)size + 2, 2, true);
    put(b, data, size);
}

static void put_quantiser(struct bytes *b)
{
    uint8_t table[65] = {0};
    memset(table + 1, 8, 64);
    put_segment(b, 0xdb, table, sizeof table);
}

static void put_frame(struct bytes *b, unsigned marker, unsigned rows, unsigned columns, unsigned bits)
{
    const uint8_t frame[] = {
        (uint8_t)bits, (uint8_t)(rows >> 8), (uint8_t)rows, (uint8_t)(columns >> 8), (uint8_t)columns, 1, 1, 0x11, 0};
    put_segment(b, marker, frame, sizeof frame);
}

/* DC: category 0 has the code 0, category 4 the code 10. AC: end of block 0, a run of 2^14 blocks and more 10, 04 is
 * 110. */
static void put_codes(struct bytes *b)
{
    static const uint8_t dc[17 + 2] = {0x00, 1, 1, [17] = 0, [18] = 4}, ac[17 + 3] = {0x10, 1, 1, 1, [17] = 0, 0xe0, 4};
    put_segment(b, 0xc4, dc, sizeof dc);
    put_segment(b, 0xc4, ac, sizeof ac);
}

static void put_scan(struct bytes *b, unsigned first, unsigned last, unsigned high, unsigned low)
{
    const uint8_t scan[] = {1, 1, 0, (uint8_t)first, (uint8_t)last, (uint8_t)(high << 4 | low)};
    put_segment(b, 0xda, scan, sizeof scan);
}

enum { SCANS, CORRECTIONS, RESTARTS, APPS, TABLES, FILLS, NO_MARKERS, HUGE, ARITHMETIC, BASELINE, FEW_BLOCKS };

/* Scans of one band after another, all of zeros but for DC; with corrections, one coefficient of each block is not 0.
 */
static void put_scans(struct bytes *file, size_t blocks, unsigned wanted, bool corrects)
{
    struct scan s = {file, 0, 0};
    put_scan(file, 0, 0, 0, 0);
    for (size_t i = 0; i < blocks; i++) put_bits(&s, 0, 1);
    end_scan(&s);
    for (unsigned i = 0; i < wanted && i < 63 * 13; i++) {
        const unsigned k = corrects ? 1 : 1 + i / 13, low = 13 - i % 13, last = corrects ? 63 : k;
        if (corrects && i == 13) break;
        put_scan(file, k, last, i % 13 == 0 ? 0 : low + 1, low);
        for (size_t left = blocks; left > 0;) { /* a run of 2^14 to 2^15 - 1, or the end of a block */
            const size_t run = left > 32767 ? 32767 : left;
            if (run >= 16384) {
                put_bits(&s, 2, 2);
                put_bits(&s, (uint32_t)(run - 16384), 14);
                left -= run;
            } else {
                put_bits(&s, 0, 1);
                left--;
            }
        }
        end_scan(&s);
    }
}

static void make_jpeg(struct bytes *file, size_t size, int variant)
{
    const bool is_progressive = variant == SCANS || variant == CORRECTIONS || variant == FEW_BLOCKS;
    const unsigned columns = variant == HUGE ? 65500 : 8 * 256;
    unsigned rows = variant == SCANS        ? (unsigned)(8 * (size / 256 / 4))
                    : variant == FEW_BLOCKS ? 8
                                            : (unsigned)(8 * (size / 256));
    if (variant == CORRECTIONS) rows = (unsigned)(8 * (16 * size / 256));
    if (rows > 65528) rows = 65528;
    if (variant == HUGE) rows = 65500;
    if (variant == RESTARTS) rows = (unsigned)(8 * (size / 3 / 256));
    if (rows < 8) rows = 8;
    struct bytes rest = {.size = 0};
    struct scan s = {file, 0, 0};
    size_t blocks = (size_t)256 * (rows / 8);
    struct chance c = {3};
    put(file, "\xff\xd8", 2);
    put_quantiser(file);
    for (size_t i = 0; variant == APPS && i < size / 4; i++) put_segment(file, 0xe0 + i % 16, "", 0);
    for (size_t i = 0; variant == TABLES && i < size / 45; i++) put_codes(file);
    if (variant == FILLS) put_bytes(file, 255, size);
    if (variant == NO_MARKERS) put_bytes(file, 17, size);
    if (variant == APPS || variant == TABLES || variant == FILLS || variant == NO_MARKERS) blocks = 256, rows = 8;
    put_frame(file, variant == ARITHMETIC ? 0xc9 : is_progressive ? 0xc2 : 0xc0, rows, columns, 8);
    put_codes(file);
    if (variant == RESTARTS) put_segment(file, 0xdd, "\0\1", 2);
    if (is_progressive) {
        const size_t all = 256 * size, scans = all / blocks;
        put_scans(file, blocks, (unsigned)scans, variant == CORRECTIONS);
        put(&rest, "\xff\xd9", 2);
        while (file->size < size) put_segment(file, 0xfe, memset((char[65000]){0}, 'x', 65000), 65000);
    } else {
        put_scan(file, 0, 63, 0, 0);
        if (variant == HUGE) blocks = 8 * size / 2;
        for (size_t i = 0; i < blocks; i++) {
            if (variant == RESTARTS && i > 0) {
                put_byte(file, 255);
                put_byte(file, 0xd0 + (i - 1) % 8);
            }
            if (variant == RESTARTS || variant == HUGE) {
                put_bits(&s, 0, 2);
            } else {
                put_bits(&s, 2, 2);
                put_bits(&s, next_of(&c, 16), 4);
                put_bits(&s, 0, 1);
            }
            if (variant == RESTARTS) end_scan(&s);
        }
        end_scan(&s);
    }
    put(file, "\xff\xd9", 2);
    free_bytes(&rest);
    file->content = 64 * blocks;
}

enum { CUT_ONCE, CUT_WITH_END, CUT_WITHOUT_END };

/* A JPEG that is cut, or many in a TIFF, one after the other: the only EOI is the file's end, or there is none. */
static void make_cut_jpegs(struct bytes *file, size_t size, int variant)
{
    struct bytes one = {.size = 0};
    make_jpeg(&one, variant == CUT_ONCE ? size : 2048, BASELINE);
    const size_t bytes = variant == CUT_ONCE ? one.size * 3 / 4 : 512;
    if (variant != CUT_ONCE) put(file, "II*\0", 4);
    if (variant != CUT_ONCE) memset(one.data + bytes / 2, 0, bytes / 2); /* codes of flat blocks */
    do put(file, one.data, bytes);
    while (file->size < size && variant != CUT_ONCE);
    if (variant == CUT_WITH_END) put(file, "\xff\xd9", 2);
    file->content = 64 * one.content;
    free_bytes(&one);
}

/* ---- Encapsulated DICOM ----------------------------------------------------------------------------------- */

static void put_item(struct bytes *b, const void *data, size_t size)
{
    put(b, "\xfe\xff\x00\xe0", 4);
    put_number(b, (uint32_t)(size + size % 2), 4, false);
    put(b, data, size);
    put_bytes(b, 0, size % 2);
}

static void begin_pixels(struct bytes *b, const char *syntax, unsigned long frames, unsigned rows, unsigned columns,
                         unsigned bits)
{
    put_meta(b, syntax);
    put_element(b, 8, 0x16, "UI", "1.2.840.10008.5.1.4.1.1.7.2", 28);
    put_image_elements(b, frames, rows, columns, bits);
    put(b, "\xe0\x7f\x10\0OB\0\0\xff\xff\xff\xff", 12);
    put_item(b, "", 0);
}

static void end_pixels(struct bytes *b)
{
    put(b, "\xfe\xff\xdd\xe0\0\0\0", 8);
}

static const char rle[] = "1.2.840.10008.1.2.5", jpeg[] = "1.2.840.10008.1.2.4.50",
                  jpeg_ls[] = "1.2.840.10008.1.2.4.80", j2k[] = "1.2.840.10008.1.2.4.90",
                  lossless[] = "1.2.840.10008.1.2.4.70", deflated[] = "1.2.840.10008.1.2.8.1";

enum { RLE_LITERALS, RLE_ANY, RLE_IDLE, RLE_SHORT, RLE_FRAMES, RLE_FRAGMENTS };

static void put_rle_header(struct bytes *b)
{
    put_number(b, 1, 4, false);
    put_number(b, 64, 4, false);
    put_bytes(b, 0, 56);
}

static void make_rle(struct bytes *file, size_t size, int variant)
{
    enum { COLUMNS = 1000 };
    const unsigned rows = (unsigned)(size / COLUMNS / (variant == RLE_LITERALS ? 2 : 1));
    struct bytes stream = {.size = 0};
    struct chance c = {17};
    if (variant == RLE_FRAMES || variant == RLE_FRAGMENTS) {
        const unsigned long items = (unsigned long)(size / 74), frames = variant == RLE_FRAMES ? items : 1;
        begin_pixels(file, rle, frames, 1, 1, 8);
        put_rle_header(&stream);
        put(&stream, "\0\7", 2);
        for (unsigned long i = 0; i < items; i++) put_item(file, stream.data, i > 0 && frames == 1 ? 0 : stream.size);
        end_pixels(file);
        free_bytes(&stream);
        return;
    }
    begin_pixels(file, rle, 1, rows, COLUMNS, 8);
    put_rle_header(&stream);
    for (size_t made = 0; made < (size_t)rows * COLUMNS;) {
        const size_t left = (size_t)rows * COLUMNS - made;
        unsigned n = variant == RLE_LITERALS ? 1 : 1 + next_of(&c, variant == RLE_SHORT ? 3 : 128);
        if (n > left) n = (unsigned)left;
        if (variant == RLE_IDLE) put_bytes(&stream, 128, 100);
        if (variant != RLE_LITERALS && n > 1 && next_of(&c, 2)) {
            put_byte(&stream, 257 - n);
            put_byte(&stream, next_of(&c, 3));
        } else {
            put_byte(&stream, n - 1);
            for (unsigned i = 0; i < n; i++) put_byte(&stream, next_of(&c, 3));
        }
        made += n;
    }
    put_item(file, stream.data, stream.size);
    end_pixels(file);
    free_bytes(&stream);
    file->content = (size_t)rows * COLUMNS;
}

enum { JPEG_FRAGMENTS, JPEG_FRAMES, JPEG_BROKEN, DEFLATED_FRAMES, DEFLATED_FRAME, SEEMING_ITEMS };

static void make_frames_of_jpeg(struct bytes *file, size_t size, int variant)
{
    struct bytes stream = {.size = 0};
    make_jpeg(&stream, variant == JPEG_BROKEN ? 256 : 2048, BASELINE);
    const unsigned frames = (unsigned)(size / (stream.size + 8));
    if (variant == JPEG_BROKEN) stream.data[stream.size - 3] = 0xff;
    begin_pixels(file, jpeg, variant == JPEG_FRAGMENTS ? 1 : frames, 64, 2048, 8);
    if (variant == JPEG_FRAGMENTS) {
        put_item(file, stream.data, stream.size);
        for (size_t i = 0; i < size / 8; i++) put_item(file, "", 0);
    }
    for (unsigned i = 0; variant != JPEG_FRAGMENTS && i < frames; i++) put_item(file, stream.data, stream.size);
    for (size_t i = 0; variant == SEEMING_ITEMS && i < size / 12; i++)
        put(file, "\xfe\xff\x00\xe0\x00\x01\x00\x00\xff\xd8\xff\xc0", 12);
    end_pixels(file);
    free_bytes(&stream);
}

static void make_deflated(struct bytes *file, size_t size, int variant)
{
    const unsigned side = variant == DEFLATED_FRAMES ? 1 : 1000,
                   rows = variant == DEFLATED_FRAMES ? 1 : (unsigned)(size / 1000);
    const unsigned long frames = variant == DEFLATED_FRAMES ? size / 12 : 1;
    struct bytes zlib = {.size = 0}, plain = {.size = 0};
    struct chance c = {5};
    for (size_t i = 0; i < (size_t)side * rows; i++) put_byte(&plain, 65 + next_of(&c, 2));
    put_zlib(&zlib, plain.data, plain.size, 9);
    begin_pixels(file, deflated, frames, rows, side, 8);
    for (unsigned long i = 0; i < frames; i++) put_item(file, zlib.data + 2, zlib.size - 6);
    end_pixels(file);
    free_bytes(&zlib);
    free_bytes(&plain);
    file->content = (size_t)side * rows * frames;
}

/* ---- JPEG-LS and lossless JPEG ---------------------------------------------------------------------------- */

enum { LS_FLAT, LS_RESTARTS, LS_SEGMENTS, LS_NOISE, LOSSLESS_TABLES, LOSSLESS_RESTARTS };

static void make_jpeg_ls(struct bytes *file, size_t size, int variant)
{
    const bool is_lossless = variant >= LOSSLESS_TABLES;
    const unsigned columns = variant == LS_RESTARTS || variant == LOSSLESS_RESTARTS ? 1 : 1000;
    unsigned rows = variant == LS_FLAT       ? (unsigned)(size / 10)
                    : variant == LS_RESTARTS ? (unsigned)(size / 3)
                                             : (unsigned)(size / 1000);
    if (variant == LOSSLESS_RESTARTS) rows = (unsigned)(size / 3);
    if (rows > 65535) rows = 65535;
    struct bytes stream = {.size = 0};
    put(&stream, "\xff\xd8", 2);
    for (size_t i = 0; variant == LS_SEGMENTS && i < size / 4; i++) put_segment(&stream, 0xe0 + i % 8, "", 0);
    for (size_t i = 0; variant == LOSSLESS_TABLES && i < size / 45; i++) put_codes(&stream);
    put_frame(&stream, is_lossless ? 0xc3 : 0xf7, rows, columns, 8);
    if (is_lossless) put_codes(&stream);
    if (variant == LS_RESTARTS) put_segment(&stream, 0xdd, "\0\1", 2);
    if (variant == LOSSLESS_RESTARTS) put_segment(&stream, 0xdd, "\0\1", 2);
    const uint8_t scan[] = {1, 1, 0, is_lossless ? 1 : 0, 0, 0};
    put_segment(&stream, 0xda, scan, sizeof scan);
    const unsigned restarts = variant == LS_RESTARTS || variant == LOSSLESS_RESTARTS ? rows : 1;
    struct chance c = {5};
    for (unsigned i = 0; i < restarts; i++) {
        if (i > 0) {
            put_byte(&stream, 255);
            put_byte(&stream, 0xd0 + (i - 1) % 8);
        }
        struct scan s = {&stream, 0, 0};
        if (variant == LS_RESTARTS) {
            put_byte(&stream, 0x80); /* a run to the row's end */
        } else if (variant == LS_NOISE) {
            for (size_t k = 0; k < size; k++) put_byte(&stream, next_of(&c, 128));
        } else if (is_lossless) { /* differences of 0 */
            for (size_t k = 0; k < (size_t)rows * columns / restarts; k++) put_bits(&s, 0, 1);
            end_scan(&s);
        } else { /* runs, the longer the more of them there were */
            for (size_t k = 0; k < rows / 8 + 40; k++) put_byte(&stream, k % 2 == 0 ? 255 : 127);
        }
    }
    put(&stream, "\xff\xd9", 2);
    begin_pixels(file, is_lossless ? lossless : jpeg_ls, 1, rows, columns, 8);
    put_item(file, stream.data, stream.size);
    end_pixels(file);
    free_bytes(&stream);
    file->content = (size_t)rows * columns;
}

/* ---- JPEG 2000 -------------------------------------------------------------------------------------------- */

enum { J2K_TILES, J2K_LAYERS, J2K_PRECINCTS, J2K_PARTS, J2K_LEVELS, J2K_COMMENTS };

/* Whether a line of a tile has a sample of a resolution. */
static bool has_any(unsigned from, unsigned to, unsigned reduce)
{
    const uint64_t more = ((uint64_t)1 << reduce) - 1;
    return (from + more) >> reduce < (to + more) >> reduce;
}

/* Packets of a tile in a layer. In precincts of 16 x 16 there are 8 x 8 of each band. */
static size_t packets_of(unsigned x, unsigned y, unsigned tile, unsigned levels, bool has_precincts)
{
    size_t packets = 0;
    for (unsigned r = 0; r <= levels; r++) {
        const unsigned across = (tile >> (levels - r)) / 16;
        const bool is_any = has_any(x, x + tile, levels - r) && has_any(y, y + tile, levels - r);
        packets += !is_any ? 0 : has_precincts && across > 0 ? (size_t)across * across : 1;
    }
    return packets;
}

static void put_j2k_head(struct bytes *s, unsigned side, unsigned tile, unsigned layers, unsigned levels,
                         bool has_precincts)
{
    struct bytes cod = {.size = 0}, qcd = {.size = 0};
    const uint32_t sizes[] = {side, side, 0, 0, tile, tile, 0, 0};
    put(s, "\xff\x4f\xff\x51", 4);
    put_number(s, 41, 2, true);
    put_number(s, 0, 2, true);
    for (int i = 0; i < 8; i++) put_number(s, sizes[i], 4, true);
    put(s, "\0\1\7\1\1", 5);
    put_byte(&cod, has_precincts);
    put_byte(&cod, has_precincts ? 2 : 0);
    put_number(&cod, layers, 2, true);
    put_byte(&cod, 0);
    put_byte(&cod, levels);
    put(&cod, "\4\4\0\1", 4);
    for (unsigned i = 0; has_precincts && i <= levels; i++) put_byte(&cod, 0x44);
    put_segment(s, 0x52, cod.data, cod.size);
    put_byte(&qcd, 0x40);
    for (unsigned i = 0; i < 3 * levels + 1; i++) put_byte(&qcd, 0x48);
    put_segment(s, 0x5c, qcd.data, qcd.size);
    free_bytes(&cod);
    free_bytes(&qcd);
}

/* Packets without passes, each a byte: all samples are 128. */
static void make_j2k(struct bytes *file, size_t size, int variant)
{
    const bool has_precincts = variant == J2K_PRECINCTS, is_small = variant >= J2K_PARTS || variant == J2K_LAYERS;
    const unsigned side = is_small && variant != J2K_LEVELS ? 64 : 2048, tile = variant == J2K_TILES    ? 16
                                                                                : variant == J2K_LEVELS ? 64
                                                                                                        : side;
    const unsigned across = side / tile, levels = variant == J2K_LEVELS ? 32 : has_precincts ? 5 : 0;
    const size_t packets = packets_of(0, 0, tile, levels, has_precincts);
    size_t layers = is_small && variant != J2K_LEVELS ? 65535 : size / packets / across / across + 1;
    if (layers > 65535) layers = 65535;
    struct bytes s = {.size = 0};
    put_j2k_head(&s, side, tile, (unsigned)layers, levels, has_precincts);
    for (size_t i = 0; variant == J2K_COMMENTS && i < size / 6; i++) put_segment(&s, 0x64, "\0\1", 2);
    for (unsigned t = 0; t < across * across; t++) {
        const size_t all = layers * packets_of(t % across * tile, t / across * tile, tile, levels, has_precincts);
        const size_t parts = variant == J2K_PARTS ? 255 : 1;
        for (size_t p = 0; p < parts; p++) {
            const size_t now = p + 1 < parts ? all / parts : all - (parts - 1) * (all / parts);
            put(&s, "\xff\x90", 2);
            put_number(&s, 10, 2, true);
            put_number(&s, t, 2, true);
            put_number(&s, (uint32_t)(14 + now), 4, true);
            put_byte(&s, (unsigned)p);
            put_byte(&s, (unsigned)parts);
            put(&s, "\xff\x93", 2);
            put_bytes(&s, 0, now);
        }
    }
    put(&s, "\xff\xd9", 2);
    begin_pixels(file, j2k, 1, side, side, 8);
    put_item(file, s.data, s.size);
    end_pixels(file);
    free_bytes(&s);
    file->content = (size_t)side * side;
}

const struct hostile hostile_streams[] = {{"jpeg-scans", "jpg", make_jpeg, SCANS},
                                          {"jpeg-corrections", "jpg", make_jpeg, CORRECTIONS},
                                          {"jpeg-few-blocks", "jpg", make_jpeg, FEW_BLOCKS},
                                          {"jpeg-restarts", "jpg", make_jpeg, RESTARTS},
                                          {"jpeg-segments", "jpg", make_jpeg, APPS},
                                          {"jpeg-tables", "jpg", make_jpeg, TABLES},
                                          {"jpeg-fill-bytes", "jpg", make_jpeg, FILLS},
                                          {"jpeg-no-markers", "jpg", make_jpeg, NO_MARKERS},
                                          {"jpeg-65500", "jpg", make_jpeg, HUGE},
                                          {"jpeg-arithmetic", "jpg", make_jpeg, ARITHMETIC},
                                          {"jpeg-baseline", "jpg", make_jpeg, BASELINE},
                                          {"jpeg-cut", "jpg", make_cut_jpegs, CUT_ONCE},
                                          {"jpegs-cut", "tif", make_cut_jpegs, CUT_WITH_END},
                                          {"jpegs-without-end", "tif", make_cut_jpegs, CUT_WITHOUT_END},
                                          {"dicom-jpeg-fragments", "dcm", make_frames_of_jpeg, JPEG_FRAGMENTS},
                                          {"dicom-jpeg-frames", "dcm", make_frames_of_jpeg, JPEG_FRAMES},
                                          {"dicom-jpeg-broken", "dcm", make_frames_of_jpeg, JPEG_BROKEN},
                                          {"dicom-seeming-items", "dcm", make_frames_of_jpeg, SEEMING_ITEMS},
                                          {"rle-literals", "dcm", make_rle, RLE_LITERALS},
                                          {"rle-any", "dcm", make_rle, RLE_ANY},
                                          {"rle-idle", "dcm", make_rle, RLE_IDLE},
                                          {"rle-short", "dcm", make_rle, RLE_SHORT},
                                          {"rle-frames", "dcm", make_rle, RLE_FRAMES},
                                          {"rle-fragments", "dcm", make_rle, RLE_FRAGMENTS},
                                          {"deflated-frames", "dcm", make_deflated, DEFLATED_FRAMES},
                                          {"deflated-frame", "dcm", make_deflated, DEFLATED_FRAME},
                                          {"jpeg-ls-flat", "dcm", make_jpeg_ls, LS_FLAT},
                                          {"jpeg-ls-restarts", "dcm", make_jpeg_ls, LS_RESTARTS},
                                          {"jpeg-ls-segments", "dcm", make_jpeg_ls, LS_SEGMENTS},
                                          {"jpeg-ls-noise", "dcm", make_jpeg_ls, LS_NOISE},
                                          {"lossless-tables", "dcm", make_jpeg_ls, LOSSLESS_TABLES},
                                          {"lossless-restarts", "dcm", make_jpeg_ls, LOSSLESS_RESTARTS},
                                          {"j2k-tiles", "dcm", make_j2k, J2K_TILES},
                                          {"j2k-layers", "dcm", make_j2k, J2K_LAYERS},
                                          {"j2k-precincts", "dcm", make_j2k, J2K_PRECINCTS},
                                          {"j2k-parts", "dcm", make_j2k, J2K_PARTS},
                                          {"j2k-levels", "dcm", make_j2k, J2K_LEVELS},
                                          {"j2k-comments", "dcm", make_j2k, J2K_COMMENTS},
                                          {NULL, NULL, NULL, 0}};
