/* Files that are not images, or only look like images, and files that are packed: none is coded as samples. */
#include <stdio.h>
#include <string.h>

#include "testdata_bytes.h"
#include "testdata_deflate.h"
#include "testdata_jpeg.h"
#include "testdata_noise.h"
#include "testdata_sets.h"

static const char prose[] =
    "This file is no image.\nIt must come back all the same, line by line,\r\nwhatever its line ends.\n";

static const struct {
    const char *path, *content;
} texts[] = {
    {"other/text.txt", prose},
    {"other/text named.png", "This is no PNG.\n"},
    {"other/empty", ""},
    {"other/one_byte", "x"},
    {"other/ascii.pgm", "P2\n# samples as text\n3 2\n255\n0 1 2\n253 254 255\n"},
    {"other/bitmap.pbm", "P4\n8 2\n\xaa\x55"},
    {"other/header_only.pgm", "P5\n"},
    {"other/no_size.ppm", "P6\n0 5\n255\n"},
    {"other/magic_only.png", "\x89PNG\r\n\x1a\n"},
    {"other/name with spaces, \xc3\xbcml\xc3\xa4ut \xe2\x82\xac.txt", "A name of several words, in UTF-8.\n"},
    {"other/a/b/c/nested.txt", "Three folders down.\n"},
    {"other/.hidden", "A name that begins with a dot.\n"},
};

static void put_member(struct bytes *b, const struct bytes *content, const char *name)
{
    static const uint8_t head[10] = {0x1f, 0x8b, 8, 8, 0, 0, 0, 0, 0, 3};
    bytes_put(b, head, sizeof head);
    bytes_put(b, name, strlen(name) + 1);
    deflate_fixed(b, content);
    bytes_put_u32(b, false, bytes_crc32(content->data, content->size));
    bytes_put_u32(b, false, (uint32_t)content->size);
}

/* Streams of JPEG and deflate, which become smaller: a JPEG with bytes after its end, and gzip of two members. */
static void make_packed(void)
{
    struct bytes b = {0}, digits = {0};
    struct random random = {4711};
    jpeg_put_lossy(&b, 24, 16, 815);
    bytes_put_text(&b, "bytes after the end");
    bytes_save(&b, VERBATIM, "packed/photo.jpg");
    for (int i = 0; i < 9000; i++) bytes_put_u8(&digits, '0' + random_below(&random, 10));
    put_member(&b, &digits, "digits");
    put_member(&b, &digits, "digits again");
    bytes_free(&digits);
    bytes_save(&b, VERBATIM, "packed/digits.gz");
}

/* A member of TAR (POSIX.1): a block of header, the file, zeros to the end of a block. */
static void put_tar_member(struct bytes *b, const char *name, const struct bytes *file)
{
    enum { BLOCK = 512, NAME = 100, SIZE = 124, SUM = 148, TYPE = 156, MAGIC = 257 };
    uint8_t header[BLOCK] = {0};
    char number[16];
    unsigned sum = 0;
    memcpy(header, name, strlen(name));
    memcpy(header + NAME, "0000644", 7);
    (void)snprintf(number, sizeof number, "%011o", (unsigned)file->size);
    memcpy(header + SIZE, number, 11);
    memset(header + SUM, ' ', 8);
    header[TYPE] = '0';
    memcpy(header + MAGIC, "ustar\00000", 8);
    for (int i = 0; i < BLOCK; i++) sum += header[i];
    (void)snprintf(number, sizeof number, "%06o", sum);
    memcpy(header + SUM, number, 7);
    bytes_put(b, header, sizeof header);
    bytes_put(b, file->data, file->size);
    bytes_fill(b, 0, (BLOCK - file->size % BLOCK) % BLOCK);
}

/* A PGM of a slope with some noise. */
static void put_slope(struct bytes *b, unsigned columns, unsigned rows, struct random *random)
{
    char header[32];
    (void)snprintf(header, sizeof header, "P5 %u %u 255\n", columns, rows);
    bytes_put_text(b, header);
    for (unsigned y = 0; y < rows; y++)
        for (unsigned x = 0; x < columns; x++) bytes_put_u8(b, 40 + (x + y) / 2 + random_below(random, 8));
}

/* An archive with images in it: one as it is, one in gzip; and a text. */
static void make_archive(void)
{
    struct bytes b = {0}, file = {0}, gzip = {0};
    struct random random = {1707};
    put_slope(&file, 96, 80, &random);
    put_tar_member(&b, "slope.pgm", &file);
    bytes_free(&file);
    bytes_put_text(&file, prose);
    put_tar_member(&b, "text.txt", &file);
    bytes_free(&file);
    put_slope(&file, 112, 64, &random);
    put_member(&gzip, &file, "slope.pgm");
    put_tar_member(&b, "slope.pgm.gz", &gzip);
    bytes_fill(&b, 0, 1024);
    bytes_save(&b, VERBATIM, "packed/archive.tar");
    bytes_free(&file);
    bytes_free(&gzip);
}

void make_other(void)
{
    make_packed();
    make_archive();
    struct bytes b = {0};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        bytes_put_text(&b, texts[i].content);
        bytes_save(&b, VERBATIM, "%s", texts[i].path);
    }
    struct random random = {10000};
    for (int i = 0; i < 10000; i++) bytes_put_u8(&b, random_below(&random, 256));
    bytes_save(&b, VERBATIM, "other/random.bin");
    for (int i = 0; i < 300; i++) bytes_put_text(&b, prose);
    bytes_save(&b, VERBATIM, "other/long.txt");
    bytes_fill(&b, 0, 128);
    bytes_put_text(&b, "DICM");
    bytes_save(&b, VERBATIM, "other/magic_only.dcm");
}
