/* DICOM files of frames, one fragment each.
 *   tsr_dicom_frames OUT FRAMES ACROSS DOWN          writes frames of lossy JPEG of so many blocks of 8 x 8 samples
 *   tsr_dicom_frames OUT FRAMES BYTES alike          writes frames of so many bytes of noise, 1/8 of them the same
 *   tsr_dicom_frames IN OUT FRAME cut|empty|noise|fault copies a file with another stream in a frame, from 0
 *   tsr_dicom_frames IN FRAME                        writes the stream of a frame to stdout */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "testdata/testdata_bytes.h"
#include "testdata/testdata_jpeg.h"
#include "testdata/testdata_noise.h"

static void fail(const char *what)
{
    fprintf(stderr, "tsr_dicom_frames: %s\n", what);
    exit(1);
}

/* ---- Writing ------------------------------------------------------------------------------------------------ */

static void put_element(struct bytes *b, uint32_t tag, const char *vr, const void *value, size_t size)
{
    bytes_put_u16(b, false, tag >> 16);
    bytes_put_u16(b, false, tag & 0xffff);
    bytes_put(b, vr, 2);
    bytes_put_u16(b, false, (unsigned)(size + size % 2));
    bytes_put(b, value, size);
    if (size % 2) bytes_put_u8(b, vr[0] == 'U' ? 0 : ' ');
}

static void put_text(struct bytes *b, uint32_t tag, const char *vr, const char *text)
{
    put_element(b, tag, vr, text, strlen(text));
}

static void put_short(struct bytes *b, uint32_t tag, unsigned value)
{
    const uint8_t bytes[2] = {(uint8_t)value, (uint8_t)(value >> 8)};
    put_element(b, tag, "US", bytes, sizeof bytes);
}

static void put_item(struct bytes *b, unsigned element, const struct bytes *value)
{
    bytes_put_u16(b, false, 0xfffe);
    bytes_put_u16(b, false, element);
    bytes_put_u32(b, false, (uint32_t)value->size);
    bytes_put(b, value->data, value->size);
}

static void put_header(struct bytes *b, int frames, int across, int down)
{
    struct bytes meta = {0};
    char number[16];
    put_text(&meta, 0x00020002, "UI", "1.2.840.10008.5.1.4.1.1.77.1.6");
    put_text(&meta, 0x00020010, "UI", "1.2.840.10008.1.2.4.50");
    bytes_fill(b, 0, 128);
    bytes_put_text(b, "DICM");
    const uint8_t length[4] = {(uint8_t)meta.size};
    put_element(b, 0x00020000, "UL", length, sizeof length);
    bytes_put(b, meta.data, meta.size);
    bytes_free(&meta);
    put_text(b, 0x00080060, "CS", "SM");
    put_short(b, 0x00280002, 1);
    put_text(b, 0x00280004, "CS", "MONOCHROME2");
    snprintf(number, sizeof number, "%d", frames);
    put_text(b, 0x00280008, "IS", number);
    put_short(b, 0x00280010, 8 * (unsigned)down);
    put_short(b, 0x00280011, 8 * (unsigned)across);
    put_short(b, 0x00280100, 8);
    put_short(b, 0x00280101, 8);
    put_short(b, 0x00280102, 7);
    put_short(b, 0x00280103, 0);
}

/* Noise that begins as all frames do. */
static void put_alike(struct bytes *frame, size_t size, uint64_t seed)
{
    struct random same = {0x5eed}, other = {seed + 1};
    for (size_t i = 0; i < size; i++) bytes_put_u8(frame, (uint8_t)random_below(i < size / 8 ? &same : &other, 256));
}

/* down 0: frames of noise, of across bytes. */
static void make(const char *out, int frames, int across, int down)
{
    struct bytes b = {0}, none = {0};
    put_header(&b, frames, down > 0 ? across : 4, down > 0 ? down : 4);
    bytes_put(&b, "\xe0\x7f\x10\0OB\0\0\xff\xff\xff\xff", 12);
    put_item(&b, 0xe000, &none);
    for (int k = 0; k < frames; k++) {
        struct bytes frame = {0};
        if (down > 0)
            jpeg_put_lossy(&frame, across, down, (uint64_t)k);
        else
            put_alike(&frame, (size_t)across, (uint64_t)k);
        if (frame.size % 2) bytes_put_u8(&frame, 0);
        put_item(&b, 0xe000, &frame);
        bytes_free(&frame);
    }
    put_item(&b, 0xe0dd, &none);
    bytes_save(&b, VERBATIM, "%s", out);
}

/* ---- Reading ------------------------------------------------------------------------------------------------ */

static struct bytes read_file(const char *path)
{
    struct bytes b = {0};
    uint8_t piece[1 << 14];
    FILE *const file = fopen(path, "rb");
    if (!file) fail("cannot read");
    for (size_t got; (got = fread(piece, 1, sizeof piece, file)) > 0;) bytes_put(&b, piece, got);
    fclose(file);
    return b;
}

static uint32_t length_at(const struct bytes *b, size_t at)
{
    return b->data[at] | (uint32_t)b->data[at + 1] << 8 | (uint32_t)b->data[at + 2] << 16 |
           (uint32_t)b->data[at + 3] << 24;
}

/* The item of a frame: after the element of the pixel data, which has no length, and the offset table. */
static size_t find_frame(const struct bytes *b, long frame)
{
    static const uint8_t pixels[] = {0xe0, 0x7f, 0x10, 0}, item[] = {0xfe, 0xff, 0, 0xe0};
    size_t at = 128;
    while (at + 20 < b->size && (memcmp(b->data + at, pixels, 4) != 0 || memcmp(b->data + at + 12, item, 4) != 0)) at++;
    if (at + 20 >= b->size) fail("there are no items");
    for (at += 12; frame >= 0; frame--) {
        at += 8 + length_at(b, at + 4);
        if (at + 8 > b->size || memcmp(b->data + at, item, sizeof item) != 0) fail("there is no such frame");
    }
    return at;
}

static void damage(const char *in, const char *out, long frame, const char *how)
{
    struct bytes file = read_file(in), b = {0}, stream = {0};
    const size_t at = find_frame(&file, frame), size = length_at(&file, at + 4);
    bytes_put(&stream, file.data + at + 8, size);
    if (strcmp(how, "cut") == 0) stream.size = size / 4 * 2;
    if (strcmp(how, "empty") == 0) stream.size = 0;
    for (size_t i = 0; strcmp(how, "fault") == 0 && i < size / 16; i++) /* ones are no code */
        stream.data[size / 4 * 3 + i] = i % 2 ? 0 : 0xff;
    struct random random = {0x5eed};
    for (size_t i = 0; strcmp(how, "noise") == 0 && i < size; i++) stream.data[i] = (uint8_t)random_below(&random, 256);
    bytes_put(&b, file.data, at);
    put_item(&b, 0xe000, &stream);
    bytes_put(&b, file.data + at + 8 + size, file.size - at - 8 - size);
    bytes_save(&b, VERBATIM, "%s", out);
    bytes_free(&file);
    bytes_free(&stream);
}

int main(int argc, char **argv)
{
    if (argc == 3) {
        struct bytes file = read_file(argv[1]);
        const size_t at = find_frame(&file, atol(argv[2]));
        fwrite(file.data + at + 8, 1, length_at(&file, at + 4), stdout);
        bytes_free(&file);
        return 0;
    }
    if (argc != 5) fail("wrong arguments");
    if (strspn(argv[4], "0123456789") == strlen(argv[4]) || strcmp(argv[4], "alike") == 0)
        make(argv[1], atoi(argv[2]), atoi(argv[3]), atoi(argv[4]));
    else
        damage(argv[1], argv[2], atol(argv[3]), argv[4]);
    return 0;
}
