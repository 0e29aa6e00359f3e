/* tsr_same_png A B: compares the pixels of two PNG files and their bytes outside the IDAT chunks. Exit status 0 if they
 * are the same, 1 if not, 2 if one of them is not a PNG. */
#include <png.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct picture {
    uint8_t *rest; /* bytes outside the IDAT chunks */
    size_t rest_size;
    png_structp png;
    png_infop info;
};

static void stop(const char *path, const char *why)
{
    fprintf(stderr, "%s: %s\n", path, why);
    exit(2);
}

static uint8_t *read_file(const char *path, size_t *size)
{
    enum { LIMIT = 1 << 26 };
    FILE *file = fopen(path, "rb");
    uint8_t *bytes = malloc(LIMIT);
    if (!file || !bytes) stop(path, "cannot be opened");
    *size = fread(bytes, 1, LIMIT, file);
    fclose(file);
    return bytes;
}

static void keep_rest(const char *path, struct picture *p)
{
    size_t size, at = 8;
    uint8_t *bytes = read_file(path, &size);
    bool ended = false;
    if (size < at || memcmp(bytes, "\x89PNG\r\n\x1a\n", 8) != 0) stop(path, "is no PNG file");
    p->rest = bytes;
    p->rest_size = at;
    while (at < size) {
        size_t length = size - at; /* all bytes after IEND */
        if (!ended) {
            if (length < 12) stop(path, "ends within a chunk");
            const uint8_t *b = bytes + at;
            const size_t body = (size_t)b[0] << 24 | (size_t)b[1] << 16 | (size_t)b[2] << 8 | b[3];
            if (body > length - 12) stop(path, "ends within a chunk");
            length = body + 12;
            ended = memcmp(b + 4, "IEND", 4) == 0;
            if (memcmp(b + 4, "IDAT", 4) == 0) {
                at += length;
                continue;
            }
        }
        memmove(p->rest + p->rest_size, bytes + at, length); /* rest_size <= at */
        p->rest_size += length;
        at += length;
    }
}

static void ignore_warning(png_structp png, png_const_charp message)
{
    (void)png;
    (void)message;
}

static void keep_pixels(const char *path, struct picture *p)
{
    FILE *file = fopen(path, "rb");
    p->png = png_create_read_struct(PNG_LIBPNG_VER_STRING, NULL, NULL, ignore_warning);
    p->info = p->png ? png_create_info_struct(p->png) : NULL;
    if (!file || !p->info) stop(path, "cannot be read");
    if (setjmp(png_jmpbuf(p->png))) stop(path, "is damaged");
    png_init_io(p->png, file);
    png_set_user_limits(p->png, 1 << 20, 1 << 20);
    png_read_png(p->png, p->info, PNG_TRANSFORM_IDENTITY, NULL);
    fclose(file);
}

static bool same_pixels(const struct picture *a, const struct picture *b)
{
    const png_uint_32 height = png_get_image_height(a->png, a->info);
    const size_t bits = (size_t)png_get_image_width(a->png, a->info) * png_get_channels(a->png, a->info) *
                        png_get_bit_depth(a->png, a->info);
    if (png_get_rowbytes(a->png, a->info) != png_get_rowbytes(b->png, b->info) ||
        height != png_get_image_height(b->png, b->info))
        return false;
    png_bytepp rows = png_get_rows(a->png, a->info), others = png_get_rows(b->png, b->info);
    for (png_uint_32 y = 0; y < height; y++) {
        const unsigned spare = bits % 8 ? 0xffu << (8 - bits % 8) & 0xffu : 0xffu;
        const size_t whole = bits / 8;
        if (memcmp(rows[y], others[y], whole) != 0) return false;
        if (bits % 8 && ((rows[y][whole] ^ others[y][whole]) & spare)) return false;
    }
    return true;
}

int main(int argc, char **argv)
{
    struct picture p[2] = {{0}};
    if (argc != 3) stop("usage", "tsr_same_png A B");
    for (int i = 0; i < 2; i++) {
        keep_rest(argv[1 + i], &p[i]);
        keep_pixels(argv[1 + i], &p[i]);
    }
    if (p[0].rest_size != p[1].rest_size || memcmp(p[0].rest, p[1].rest, p[0].rest_size) != 0) {
        fprintf(stderr, "%s and %s have other chunks\n", argv[1], argv[2]);
        return 1;
    }
    if (!same_pixels(&p[0], &p[1])) {
        fprintf(stderr, "%s and %s have other pixels\n", argv[1], argv[2]);
        return 1;
    }
    for (int i = 0; i < 2; i++) {
        png_destroy_read_struct(&p[i].png, &p[i].info, NULL);
        free(p[i].rest);
    }
    return 0;
}
