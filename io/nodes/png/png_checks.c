/* The checks of a zlib stream in IDAT chunks: right ones are made, and wrong ones listed. PNG.md 2. */
#include "png_checks.h"

#include <string.h>

#include "io/bytes/crc32.h"
#include "png_chunks.h"

enum { CHECK_BYTES = 4 };

/* Bytes in columns, whose sums a compiler adds at once: 1.3 times as fast as byte by byte. */
uint32_t tsr_png_adler(const uint8_t *bytes, size_t size)
{
    enum { COLUMNS = 16, ROWS = 256, MODULUS = 65521 }; /* ROWS: before a sum could overflow */
    uint64_t a = 1, b = 0;
    size_t at = 0;
    while (size - at >= COLUMNS) {
        const size_t rows = (size - at) / COLUMNS < ROWS ? (size - at) / COLUMNS : ROWS;
        uint32_t sum[COLUMNS] = {0}, before[COLUMNS] = {0}; /* before: the sums of all rows above each row */
        for (size_t y = 0; y < rows; y++, at += COLUMNS)
            for (size_t x = 0; x < COLUMNS; x++) {
                before[x] += sum[x];
                sum[x] += bytes[at + x];
            }
        b += a * rows * COLUMNS;
        for (size_t x = 0; x < COLUMNS; x++) {
            a += sum[x];
            b += (uint64_t)COLUMNS * before[x] + (COLUMNS - x) * sum[x];
        }
        a %= MODULUS;
        b %= MODULUS;
    }
    for (; at < size; at++) {
        a += bytes[at];
        b += a;
    }
    return (uint32_t)(b % MODULUS << 16 | a % MODULUS);
}

size_t tsr_png_find_wrong(const uint8_t *chunks, size_t size)
{
    struct tsr_png_chunk chunk;
    size_t number = 1;
    for (size_t at = 0; tsr_png_next(chunks, size, &at, &chunk); number++)
        if (!tsr_png_checks(&chunk)) return number;
    return 0;
}

enum tsr_status tsr_png_put_wrong(const uint8_t *chunks, size_t size, const uint8_t *adler, struct tsr_bytes *residue,
                                  struct tsr_error *error)
{
    struct tsr_png_chunk chunk;
    uint64_t count = adler ? 1 : 0;
    for (size_t at = 0; tsr_png_next(chunks, size, &at, &chunk);) count += !tsr_png_checks(&chunk);
    TSR_TRY(tsr_bytes_put_varint(residue, count, error));
    if (adler) TSR_TRY(tsr_bytes_put_varint(residue, 0, error));
    if (adler) TSR_TRY(tsr_bytes_put(residue, adler, CHECK_BYTES, error));
    uint64_t number = 1;
    for (size_t at = 0; tsr_png_next(chunks, size, &at, &chunk); number++) {
        if (tsr_png_checks(&chunk)) continue;
        TSR_TRY(tsr_bytes_put_varint(residue, number, error));
        TSR_TRY(tsr_bytes_put(residue, chunk.data + chunk.size, CHECK_BYTES, error));
    }
    return TSR_OK;
}

/* Chunks that stand with their sizes, types and data, and of which threads make the checks. Each takes those that begin
 * in its part of their bytes. */
struct checking {
    const struct tsr_crew *crew;
    uint8_t *chunks;
    size_t size;
    unsigned parts;
};

static void check_some(void *context, unsigned part)
{
    struct checking *const c = context;
    const size_t from = (size_t)((uint64_t)c->size * part / c->parts),
                 to = (size_t)((uint64_t)c->size * (part + 1) / c->parts);
    for (size_t at = 0; at < to;) {
        uint8_t *const type = c->chunks + at + CHECK_BYTES;
        const size_t size = tsr_read_u32_be(c->chunks + at);
        if (at >= from) tsr_put_u32_be(type + 4 + size, tsr_crc32_by(c->crew, type, size + 4));
        at += TSR_PNG_CHUNK_BYTES + size;
    }
}

void tsr_png_put_checks(const struct tsr_crew *crew, uint8_t *chunks, size_t size)
{
    enum { PARTS = 8, LEAST = 1 << 18 };
    struct checking c = {crew, chunks, size, 1};
    if (crew && crew->run && size / LEAST > 1) c.parts = size / LEAST < PARTS ? (unsigned)(size / LEAST) : PARTS;
    if (c.parts > 1)
        crew->run(crew->pool, check_some, &c, c.parts);
    else
        check_some(&c, 0);
}

bool tsr_png_wrong_adler(struct tsr_png_wrong *wrong, uint8_t check[4])
{
    struct tsr_cursor at = wrong->checks;
    if (wrong->count == 0 || tsr_get_varint(&at) != 0) return false;
    memcpy(check, tsr_get_bytes(&at, CHECK_BYTES), CHECK_BYTES);
    wrong->checks = at;
    wrong->count--;
    return true;
}

enum tsr_status tsr_png_put_wrong_checks(struct tsr_png_wrong *wrong, uint8_t *chunks, size_t size,
                                         struct tsr_error *error)
{
    uint64_t number = 0;
    for (size_t at = 0; wrong->count > 0; wrong->count--) {
        const uint64_t wanted = tsr_get_varint(&wrong->checks);
        struct tsr_png_chunk chunk;
        if (wanted <= number) return tsr_fail(error, TSR_ERROR_CORRUPT, "a wrong check of a PNG has no chunk");
        for (; number < wanted; number++)
            if (!tsr_png_next(chunks, size, &at, &chunk))
                return tsr_fail(error, TSR_ERROR_CORRUPT, "a wrong check of a PNG has no chunk");
        memcpy(chunks + at - CHECK_BYTES, tsr_get_bytes(&wrong->checks, CHECK_BYTES), CHECK_BYTES);
    }
    return TSR_OK;
}
