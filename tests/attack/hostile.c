/* What hostile inputs are made of. See the header. */
#include "hostile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

const struct hostile *const hostile_tables[] = {hostile_deflate, hostile_png, hostile_streams, hostile_other, NULL};

void give_up(const char *what)
{
    fprintf(stderr, "hostile inputs: %s\n", what);
    exit(2);
}

void put(struct bytes *b, const void *more, size_t size)
{
    if (size == 0) return;
    if (b->size + size > b->room) {
        b->room = 2 * (b->size + size);
        b->data = realloc(b->data, b->room);
        if (!b->data) give_up("no memory");
    }
    memcpy(b->data + b->size, more, size);
    b->size += size;
}

void put_byte(struct bytes *b, unsigned value)
{
    const uint8_t byte = (uint8_t)value;
    put(b, &byte, 1);
}

void put_bytes(struct bytes *b, unsigned value, size_t count)
{
    while (count-- > 0) put_byte(b, value);
}

void put_number(struct bytes *b, uint32_t value, int bytes, bool big_endian)
{
    for (int i = 0; i < bytes; i++) put_byte(b, value >> 8 * (big_endian ? bytes - 1 - i : i) & 255);
}

void free_bytes(struct bytes *b)
{
    free(b->data);
    *b = (struct bytes){.size = 0};
}

uint32_t next_of(struct chance *c, uint32_t limit)
{
    c->state ^= c->state >> 12;
    c->state ^= c->state << 25;
    c->state ^= c->state >> 27;
    return (uint32_t)((c->state * 0x2545f4914f6cdd1du >> 32) * limit >> 32);
}

/* ---- PNG and gzip ----------------------------------------------------------------------------------------- */

void put_png_chunk(struct bytes *png, const char *type, const void *data, size_t size)
{
    put_number(png, (uint32_t)size, 4, true);
    put(png, type, 4);
    put(png, data, size);
    put_number(png, (uint32_t)crc32(0, png->data + png->size - 4 - size, (uInt)(4 + size)), 4, true);
}

void begin_png(struct bytes *png, uint32_t columns, uint32_t rows, unsigned depth, unsigned colour_type,
               bool interlaced)
{
    struct bytes header = {.size = 0};
    put_number(&header, columns, 4, true);
    put_number(&header, rows, 4, true);
    put_byte(&header, depth);
    put_byte(&header, colour_type);
    put_bytes(&header, 0, 2);
    put_byte(&header, interlaced);
    put(png, "\x89PNG\r\n\x1a\n", 8);
    put_png_chunk(png, "IHDR", header.data, header.size);
    free_bytes(&header);
}

void end_png(struct bytes *png)
{
    put_png_chunk(png, "IEND", "", 0);
}

void put_zlib(struct bytes *out, const uint8_t *plain, size_t size, int level)
{
    uLongf made = compressBound(size);
    uint8_t *const bytes = malloc(made);
    if (!bytes || compress2(bytes, &made, plain, size, level) != Z_OK) give_up("zlib");
    put(out, bytes, made);
    free(bytes);
}

void begin_gzip(struct bytes *gzip)
{
    put(gzip, "\x1f\x8b\x08\0\0\0\0\0\0\x03", 10);
}

void end_gzip(struct bytes *gzip, const uint8_t *plain, size_t size)
{
    put_number(gzip, (uint32_t)crc32_z(0, plain, size), 4, false);
    put_number(gzip, (uint32_t)size, 4, false);
}

void make_png_bomb(struct bytes *file, uint32_t side)
{
    struct bytes body = {.size = 0};
    uint8_t *const rows = calloc(side + 1, side);
    if (!rows) give_up("no memory");
    put_zlib(&body, rows, (size_t)(side + 1) * side, 9);
    begin_png(file, side, side, 8, 0, false);
    put_png_chunk(file, "IDAT", body.data, body.size);
    end_png(file);
    file->content = (size_t)(side + 1) * side;
    free_bytes(&body);
    free(rows);
}

/* ---- DICOM ------------------------------------------------------------------------------------------------ */

void put_element(struct bytes *b, uint16_t group, uint16_t element, const char *vr, const void *value, size_t size)
{
    const bool is_long = strcmp(vr, "OB") == 0 || strcmp(vr, "OW") == 0 || strcmp(vr, "SQ") == 0;
    put_number(b, group, 2, false);
    put_number(b, element, 2, false);
    put(b, vr, 2);
    if (is_long) put_bytes(b, 0, 2);
    put_number(b, (uint32_t)size, is_long ? 4 : 2, false);
    put(b, value, size);
}

void put_short(struct bytes *b, uint16_t element, unsigned value)
{
    const uint8_t bytes[2] = {(uint8_t)value, (uint8_t)(value >> 8)};
    put_element(b, 0x28, element, "US", bytes, 2);
}

void put_meta(struct bytes *b, const char *syntax)
{
    static const uint8_t version[2] = {0, 1};
    struct bytes meta = {.size = 0};
    put_element(&meta, 2, 1, "OB", version, 2);
    put_element(&meta, 2, 2, "UI", "1.2.840.10008.5.1.4.1.1.7.2", 28);
    put_element(&meta, 2, 3, "UI", "2.25.1", 6);
    put_element(&meta, 2, 16, "UI", syntax, (strlen(syntax) + 1) & ~(size_t)1);
    put_bytes(b, 0, 128);
    put(b, "DICM", 4);
    const uint8_t length[4] = {(uint8_t)meta.size, (uint8_t)(meta.size >> 8), 0, 0};
    put_element(b, 2, 0, "UL", length, 4);
    put(b, meta.data, meta.size);
    free_bytes(&meta);
}

void put_image_elements(struct bytes *b, unsigned long frames, unsigned rows, unsigned columns, unsigned bits)
{
    char number[32];
    const unsigned allocated = bits > 8 ? 16 : bits > 1 ? 8 : 1;
    put_short(b, 2, 1);
    put_element(b, 0x28, 4, "CS", "MONOCHROME2 ", 12);
    if (frames > 1) {
        snprintf(number, sizeof number, "%-12lu", frames);
        put_element(b, 0x28, 8, "IS", number, 12);
    }
    put_short(b, 0x10, rows);
    put_short(b, 0x11, columns);
    put_short(b, 0x100, allocated);
    put_short(b, 0x101, bits);
    put_short(b, 0x102, bits - 1);
    put_short(b, 0x103, 0);
}

void make_frames(struct bytes *b, unsigned long frames, unsigned bits)
{
    const size_t size = ((frames * bits + 7) / 8 + 1) & ~(size_t)1;
    uint8_t *samples = calloc(size, 1);
    if (!samples) give_up("no memory");
    for (size_t i = 0; i < size; i++) samples[i] = (uint8_t)(i * 0x9e3779b9u >> 13);
    put_meta(b, "1.2.840.10008.1.2.1");
    put_element(b, 8, 0x16, "UI", "1.2.840.10008.5.1.4.1.1.7.2", 28);
    put_image_elements(b, frames, 1, 1, bits);
    put_element(b, 0x7fe0, 0x10, bits > 8 ? "OW" : "OB", samples, size);
    free(samples);
}

void make_elements(struct bytes *b, unsigned count, bool in_order)
{
    uint8_t samples[512] = {1, 2, 3};
    put_meta(b, "1.2.840.10008.1.2.1");
    for (unsigned i = 0; i < count; i++) {
        const unsigned k = in_order ? i : (unsigned)((uint64_t)i * 7919 % count);
        put_element(b, (uint16_t)(0x0009 + 2 * (k / 0x1000)), (uint16_t)(0x1000 + k % 0x1000), "SH", "ab", 2);
    }
    put_image_elements(b, 1, 16, 16, 12);
    put_element(b, 0x7fe0, 0x10, "OW", samples, sizeof samples);
}
