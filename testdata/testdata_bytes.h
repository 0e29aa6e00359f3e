/* A growing buffer of bytes, and files written from it. A failure ends the program: it is a tool of the tests. */
#ifndef TESTDATA_BYTES_H
#define TESTDATA_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bytes {
    uint8_t *data;
    size_t size, capacity;
};

/* What Tessera must do with a file: code its pixels, or store it as it is. */
enum expected { CODED, VERBATIM };

/* The files that were saved so far. */
struct saved {
    unsigned files;
    uint64_t bytes;
};

/* Allocates zeroed memory; never returns NULL. */
void *allocate(size_t count, size_t size);

void bytes_put(struct bytes *b, const void *data, size_t size);
void bytes_fill(struct bytes *b, uint8_t value, size_t count);
void bytes_put_u8(struct bytes *b, unsigned value);
void bytes_put_u16(struct bytes *b, bool big_endian, unsigned value);
void bytes_put_u32(struct bytes *b, bool big_endian, uint32_t value);
void bytes_put_text(struct bytes *b, const char *text);

/* Overwrites four bytes that were put before. */
void bytes_patch_u32(struct bytes *b, size_t at, bool big_endian, uint32_t value);

/* The checksum of PNG and gzip. */
uint32_t bytes_crc32(const uint8_t *data, size_t size);

void bytes_free(struct bytes *b);

/* Writes the bytes to a file below the current folder, creates missing folders, and frees the bytes. */
#if defined(__GNUC__)
__attribute__((format(printf, 3, 4)))
#endif
void bytes_save(struct bytes *b, enum expected expected, const char *path_format, ...);

/* Writes the list of all files that were saved, one a line: "coded PATH" or "verbatim PATH". */
void save_manifest(const char *path);

/* Creates a folder and all missing folders above it. */
void make_folders(const char *path);

struct saved saved_so_far(void);

#endif
