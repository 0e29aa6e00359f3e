#include "testdata_bytes.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { PATH_LIMIT = 4096 };

static struct saved saved;
static struct bytes manifest;

static void give_up(const char *what)
{
    fprintf(stderr, "tessera_testdata: %s: %s\n", what, strerror(errno));
    exit(EXIT_FAILURE);
}

void *allocate(size_t count, size_t size)
{
    void *memory = calloc(count ? count : 1, size ? size : 1);
    if (!memory) give_up("memory");
    return memory;
}

/* Makes room for more bytes and returns the place where they begin. */
static uint8_t *bytes_room(struct bytes *b, size_t more)
{
    if (b->size + more > b->capacity) {
        const size_t capacity = 2 * (b->size + more) + 64;
        uint8_t *grown = realloc(b->data, capacity);
        if (!grown) give_up("memory");
        b->data = grown;
        b->capacity = capacity;
    }
    uint8_t *room = b->data + b->size;
    b->size += more;
    return room;
}

void bytes_put(struct bytes *b, const void *data, size_t size)
{
    if (size > 0) memcpy(bytes_room(b, size), data, size);
}

void bytes_fill(struct bytes *b, uint8_t value, size_t count)
{
    if (count > 0) memset(bytes_room(b, count), value, count);
}

void bytes_put_u8(struct bytes *b, unsigned value)
{
    *bytes_room(b, 1) = (uint8_t)value;
}

void bytes_put_u16(struct bytes *b, bool big_endian, unsigned value)
{
    uint8_t *room = bytes_room(b, 2);
    room[big_endian ? 0 : 1] = (uint8_t)(value >> 8);
    room[big_endian ? 1 : 0] = (uint8_t)value;
}

void bytes_put_u32(struct bytes *b, bool big_endian, uint32_t value)
{
    bytes_fill(b, 0, 4);
    bytes_patch_u32(b, b->size - 4, big_endian, value);
}

void bytes_put_text(struct bytes *b, const char *text)
{
    bytes_put(b, text, strlen(text));
}

void bytes_patch_u32(struct bytes *b, size_t at, bool big_endian, uint32_t value)
{
    for (size_t i = 0; i < 4; i++) b->data[at + (big_endian ? 3 - i : i)] = (uint8_t)(value >> (8 * i));
}

uint32_t bytes_crc32(const uint8_t *data, size_t size)
{
    uint32_t crc = 0xffffffff;
    for (size_t i = 0; i < size; i++) {
        crc ^= data[i];
        for (int k = 0; k < 8; k++) crc = crc & 1 ? crc >> 1 ^ 0xedb88320 : crc >> 1;
    }
    return ~crc;
}

void bytes_free(struct bytes *b)
{
    free(b->data);
    *b = (struct bytes){0};
}

void make_folders(const char *path)
{
    char partial[PATH_LIMIT];
    const size_t length = strlen(path);
    if (length >= sizeof partial) {
        errno = ENAMETOOLONG;
        give_up(path);
    }
    for (size_t i = 0; i <= length; i++) {
        /* A prefix that ends before a slash, or the whole path. */
        const bool whole = i > 0 && (path[i] == '/' || path[i] == '\0');
        partial[i] = '\0';
        if (whole && mkdir(partial, 0777) != 0 && errno != EEXIST) give_up(partial);
        partial[i] = path[i];
    }
}

static void make_parents(const char *path)
{
    char folder[PATH_LIMIT];
    const char *slash = strrchr(path, '/');
    if (!slash) return;
    memcpy(folder, path, (size_t)(slash - path));
    folder[slash - path] = '\0';
    make_folders(folder);
}

static void write_file(const struct bytes *b, const char *path)
{
    FILE *file = fopen(path, "wb");
    if (!file) give_up(path);
    const bool written = b->size == 0 || fwrite(b->data, 1, b->size, file) == b->size;
    if (fclose(file) != 0 || !written) give_up(path);
}

void bytes_save(struct bytes *b, enum expected expected, const char *path_format, ...)
{
    char path[PATH_LIMIT];
    va_list arguments;
    va_start(arguments, path_format);
    const int length = vsnprintf(path, sizeof path, path_format, arguments);
    va_end(arguments);
    if (length < 0 || length >= PATH_LIMIT) {
        errno = ENAMETOOLONG;
        give_up(path_format);
    }
    make_parents(path);
    write_file(b, path);
    bytes_put_text(&manifest, expected == CODED ? "coded " : "verbatim ");
    bytes_put_text(&manifest, path);
    bytes_put_u8(&manifest, '\n');
    saved.files++;
    saved.bytes += b->size;
    bytes_free(b);
}

void save_manifest(const char *path)
{
    write_file(&manifest, path);
    bytes_free(&manifest);
}

struct saved saved_so_far(void)
{
    return saved;
}
