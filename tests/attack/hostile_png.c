/* Hostile PNG and gzip files around usual deflate streams. See the header. */
#include "hostile.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

/* ---- Chunks ----------------------------------------------------------------------------------------------- */

enum { EMPTY_IDATS, IDATS_OF_1, IDATS_BY_TURNS, EMPTY_TEXTS, TEXTS, ZTXTS, PROFILE, LONG_TEXT, FRAMES, TAIL, UNKNOWN };

/* Rows of small steps. */
static void make_rows(struct bytes *rows, unsigned row_bytes, unsigned count, unsigned letters)
{
    struct chance c = {4711};
    unsigned value = 0;
    for (unsigned y = 0; y < count; y++) {
        put_byte(rows, y % 5);
        for (unsigned x = 0; x < row_bytes; x++) {
            value = value + next_of(&c, letters) + 256 - letters / 2;
            put_byte(rows, value & 255);
        }
    }
}

static void put_any_text(struct bytes *file, const char *type, size_t size)
{
    struct bytes text = {.size = 0};
    put(&text, "Comment\0", 9);
    for (size_t i = 0; i < size; i++) put_byte(&text, 'a' + (unsigned)(i % 23 * i % 3));
    put_png_chunk(file, type, text.data, text.size);
    free_bytes(&text);
}

static void put_many_chunks(struct bytes *file, size_t size, int variant)
{
    while (file->size < size) {
        struct bytes body = {.size = 0};
        if (variant == EMPTY_TEXTS) put_png_chunk(file, "tEXt", "", 0);
        if (variant == UNKNOWN) put_png_chunk(file, file->size % 24 > 11 ? "abCd" : "xyZw", "", 0);
        if (variant == TEXTS) put_any_text(file, "tEXt", 10);
        if (variant == LONG_TEXT) put_any_text(file, "tEXt", size);
        if (variant == FRAMES)
            put_png_chunk(file, file->size % 100 > 49 ? "fcTL" : "fdAT", "0000\x78\x9c\x03\0\0\0\0\1", 12);
        if (variant == ZTXTS) {
            put(&body, "Comment\0", 9);
            put_zlib(&body, (const uint8_t *)"some text of the file, some text", 32, 9);
            put_png_chunk(file, "zTXt", body.data, body.size);
        }
        if (variant == PROFILE) {
            struct bytes profile = {.size = 0};
            make_rows(&profile, 1023, (unsigned)(size / 1024 + 1), 9);
            put(&body, "icc\0", 5);
            put_zlib(&body, profile.data, profile.size, 9);
            put_png_chunk(file, "iCCP", body.data, body.size);
            free_bytes(&profile);
        }
        free_bytes(&body);
        if (variant == PROFILE) return;
    }
}

static void make_chunks(struct bytes *file, size_t size, int variant)
{
    const bool is_idat = variant <= IDATS_BY_TURNS;
    struct bytes rows = {.size = 0}, zlib = {.size = 0};
    make_rows(&rows, 63, variant == IDATS_OF_1 ? (unsigned)(size / 13 / 40) : 32, 9);
    put_zlib(&zlib, rows.data, rows.size, 6);
    begin_png(file, 63, (uint32_t)(rows.size / 64), 8, 0, false);
    if (variant == FRAMES) put_png_chunk(file, "acTL", "\0\0\0\1\0\0\0\1", 8);
    if (!is_idat && variant != TAIL) put_many_chunks(file, size, variant);
    for (size_t at = 0; is_idat && at < zlib.size;) {
        const size_t now = variant == EMPTY_IDATS ? zlib.size : variant == IDATS_OF_1 ? 1 : 1 + at % 5;
        put_png_chunk(file, "IDAT", zlib.data + at, now < zlib.size - at ? now : zlib.size - at);
        at += now;
        for (size_t i = 0; variant == EMPTY_IDATS && i < size / 12; i++) put_png_chunk(file, "IDAT", "", 0);
    }
    if (!is_idat) put_png_chunk(file, "IDAT", zlib.data, zlib.size);
    end_png(file);
    if (variant == TAIL) put_many_chunks(file, size, EMPTY_TEXTS);
    free_bytes(&rows);
    free_bytes(&zlib);
}

/* An animation of black frames: a kilobyte of the file becomes a megabyte. */
static void make_animation(struct bytes *file, size_t size, int variant)
{
    enum { SIDE = 1023 };
    struct bytes rows = {.size = 0}, zlib = {.size = 0}, part = {.size = 0};
    uint32_t number = 0;
    put_bytes(&rows, 0, (size_t)SIDE * (SIDE + 1));
    put_zlib(&zlib, rows.data, rows.size, 9);
    begin_png(file, SIDE, SIDE, 8, 0, false);
    put_png_chunk(file, "acTL", "\0\0\0\1\0\0\0\1", 8);
    put_png_chunk(file, "IDAT", zlib.data, zlib.size);
    for (; file->size < size; file->content += rows.size) {
        uint8_t control[26] = {0, 0, 0, 0, 0, 0, SIDE >> 8, SIDE & 255, 0, 0, SIDE >> 8, SIDE & 255};
        control[2] = (uint8_t)(number >> 8);
        control[3] = (uint8_t)number++;
        put_png_chunk(file, "fcTL", control, sizeof control);
        part.size = 0;
        put_number(&part, number++, 4, true);
        put(&part, zlib.data, variant ? zlib.size / 2 : zlib.size); /* or a stream that is cut */
        put_png_chunk(file, "fdAT", part.data, part.size);
    }
    end_png(file);
    free_bytes(&rows);
    free_bytes(&zlib);
    free_bytes(&part);
}

/* ---- Pixels ----------------------------------------------------------------------------------------------- */

enum { PALETTE, OF_1_BIT, OF_16_BITS, INTERLACED, COLUMN, ONE_ROW, COLOURS, TALL_INTERLACED };

static void make_pixels(struct bytes *file, size_t size, int variant)
{
    static const unsigned depths[] = {8, 1, 16, 8, 8, 8, 8, 8}, types[] = {3, 0, 2, 0, 0, 0, 6, 0},
                          bits[] = {8, 1, 48, 8, 8, 8, 32, 8};
    const bool is_interlaced = variant == INTERLACED || variant == TALL_INTERLACED;
    const uint32_t columns = variant == COLUMN            ? 1
                             : variant == TALL_INTERLACED ? 2
                             : variant == ONE_ROW         ? (uint32_t)(size < 60000 ? size : 60000)
                                                          : 997,
                   row = (columns * bits[variant] + 7) / 8, count = (uint32_t)(size / (row + 1)) + 1;
    const uint32_t rows = is_interlaced ? count / 8 * 8 + 8 : count;
    struct bytes plain = {.size = 0}, zlib = {.size = 0}, palette = {.size = 0};
    struct chance c = {99};
    static const unsigned x0[] = {0, 4, 0, 2, 0, 1, 0}, y0[] = {0, 0, 4, 0, 2, 0, 1}, dx[] = {8, 8, 4, 4, 2, 2, 1},
                          dy[] = {8, 8, 8, 4, 4, 2, 2};
    for (int pass = 0; is_interlaced && pass < 7; pass++) {
        const uint32_t wide = columns > x0[pass] ? (columns - x0[pass] - 1) / dx[pass] + 1 : 0,
                       high = rows > y0[pass] ? (rows - y0[pass] - 1) / dy[pass] + 1 : 0;
        if (wide > 0) make_rows(&plain, wide, high, 7);
    }
    if (!is_interlaced) make_rows(&plain, row, rows, variant == PALETTE ? 256 : 7);
    for (size_t y = 0; variant == OF_1_BIT && y < rows; y++) plain.data[(row + 1) * y + row] &= 0xf8;
    put_zlib(&zlib, plain.data, plain.size, 6);
    begin_png(file, columns, rows, depths[variant], types[variant], is_interlaced);
    for (int i = 0; i < 3 * 256; i++) put_byte(&palette, next_of(&c, 256));
    if (variant == PALETTE) put_png_chunk(file, "PLTE", palette.data, palette.size);
    put_png_chunk(file, "IDAT", zlib.data, zlib.size);
    end_png(file);
    file->content = plain.size;
    free_bytes(&plain);
    free_bytes(&zlib);
    free_bytes(&palette);
}

/* A PNG of zeros, 128 bytes for each that was asked for. */
static void make_bomb(struct bytes *file, size_t size, int variant)
{
    uint32_t side = 1000;
    (void)variant;
    while ((uint64_t)side * side < 128 * (uint64_t)size) side += 100;
    make_png_bomb(file, side);
}

/* Noise that no coder shortens by much. */
static void make_noise(struct bytes *file, size_t size, int variant)
{
    struct bytes rows = {.size = 0}, zlib = {.size = 0};
    make_rows(&rows, 999, (unsigned)(size / 1000), (unsigned)variant);
    put_zlib(&zlib, rows.data, rows.size, variant > 99 ? 0 : 6);
    begin_png(file, 333, (uint32_t)(rows.size / 1000), 8, 2, false);
    put_png_chunk(file, "IDAT", zlib.data, zlib.size);
    end_png(file);
    file->content = rows.size;
    free_bytes(&rows);
    free_bytes(&zlib);
}

/* ---- gzip ------------------------------------------------------------------------------------------------- */

enum { EMPTY_MEMBERS, SMALL_MEMBERS, MEMBERS_OF_16K, LONG_NAME, NAMES, EXTRAS, LIKENESSES, SEEMING_MEMBERS };

static void put_member(struct bytes *file, const uint8_t *plain, size_t size)
{
    struct bytes zlib = {.size = 0};
    begin_gzip(file);
    put_zlib(&zlib, plain, size, 6);
    put(file, zlib.data + 2, zlib.size - 6);
    end_gzip(file, plain, size);
    free_bytes(&zlib);
}

static void make_members(struct bytes *file, size_t size, int variant)
{
    static uint8_t plain[1 << 16];
    struct chance c = {31};
    size_t content = 0;
    for (size_t i = 0; i < sizeof plain; i++) plain[i] = (uint8_t)(65 + next_of(&c, 9));
    while (file->size < size && content < size) {
        if (variant == EMPTY_MEMBERS) put_member(file, plain, 0);
        if (variant == SMALL_MEMBERS) put_member(file, plain, 5);
        if (variant == MEMBERS_OF_16K) {
            put_member(file, plain, 16384);
            content += 16384;
        }
        if (variant == LIKENESSES) put(file, "\x1f\x8b\x08\0\0\0\0\0\0\x03", 10);
        if (variant == SEEMING_MEMBERS) put(file, "\x1f\x8b\x08\0\0\0\0\0\0\x03\x03\0\0\0\0\0\xff\x03\0\0", 20);
        if (variant < LONG_NAME || variant > EXTRAS) continue;
        const size_t before = file->size, bytes = variant == LONG_NAME ? size : 60000;
        put(file, "\x1f\x8b\x08", 3);
        put_byte(file, variant == EXTRAS ? 4 : 8);
        put(file, "\0\0\0\0\0\x03", 6);
        if (variant == EXTRAS) put_number(file, 60000, 2, false);
        put_bytes(file, 'n', bytes);
        if (variant != EXTRAS) put_byte(file, 0);
        const size_t head = file->size - before;
        struct bytes member = {.size = 0};
        put_member(&member, plain, 16384);
        put(file, member.data + 10, member.size - 10);
        free_bytes(&member);
        if (head == 0) give_up("no head");
    }
    file->content = content;
}

const struct hostile hostile_png[] = {{"png-empty-idats", "png", make_chunks, EMPTY_IDATS},
                                      {"png-idats-of-1", "png", make_chunks, IDATS_OF_1},
                                      {"png-idats-by-turns", "png", make_chunks, IDATS_BY_TURNS},
                                      {"png-empty-texts", "png", make_chunks, EMPTY_TEXTS},
                                      {"png-texts", "png", make_chunks, TEXTS},
                                      {"png-ztxts", "png", make_chunks, ZTXTS},
                                      {"png-profile", "png", make_chunks, PROFILE},
                                      {"png-long-text", "png", make_chunks, LONG_TEXT},
                                      {"png-frames", "png", make_chunks, FRAMES},
                                      {"png-black-frames", "png", make_animation, 0},
                                      {"png-cut-frames", "png", make_animation, 1},
                                      {"png-tail", "png", make_chunks, TAIL},
                                      {"png-unknown-chunks", "png", make_chunks, UNKNOWN},
                                      {"png-palette", "png", make_pixels, PALETTE},
                                      {"png-1-bit", "png", make_pixels, OF_1_BIT},
                                      {"png-16-bits", "png", make_pixels, OF_16_BITS},
                                      {"png-interlaced", "png", make_pixels, INTERLACED},
                                      {"png-column", "png", make_pixels, COLUMN},
                                      {"png-one-row", "png", make_pixels, ONE_ROW},
                                      {"png-colours", "png", make_pixels, COLOURS},
                                      {"png-tall-interlaced", "png", make_pixels, TALL_INTERLACED},
                                      {"png-zeros", "png", make_bomb, 0},
                                      {"png-noise-2", "png", make_noise, 2},
                                      {"png-noise-64", "png", make_noise, 64},
                                      {"png-noise-256", "png", make_noise, 256},
                                      {"gzip-empty-members", "gz", make_members, EMPTY_MEMBERS},
                                      {"gzip-small-members", "gz", make_members, SMALL_MEMBERS},
                                      {"gzip-members-of-16k", "gz", make_members, MEMBERS_OF_16K},
                                      {"gzip-long-name", "gz", make_members, LONG_NAME},
                                      {"gzip-names", "gz", make_members, NAMES},
                                      {"gzip-extras", "gz", make_members, EXTRAS},
                                      {"gzip-likenesses", "gz", make_members, LIKENESSES},
                                      {"gzip-seeming-members", "gz", make_members, SEEMING_MEMBERS},
                                      {NULL, NULL, NULL, 0}};
