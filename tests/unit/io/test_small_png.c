/* Small PNG files as one piece: they come back, the reference decoder makes the same of them, and damage is bounded.
 * SMALL_PNG.md. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "io/bytes/crc32.h"
#include "io/formats/packed.h"
#include "io/formats/png/png_file.h"
#include "io/nodes/png/png_idat.h"
#include "io/nodes/small_png/png_mix.h"
#include "io/nodes/gzip/gzip.h"
#include "streams/by_node.h"
#include "streams/by_reference.h"
#include "tests/unit/support.h"

enum { LIMIT = 1 << 20, FILES = 60, THREADS = 4, FILES_AT_ONCE = 24 };

struct shape {
    uint32_t columns, rows;
    unsigned depth, type, interlaced;
    unsigned filters; /* types of rows are below it */
    unsigned kinds;   /* values of bytes */
};

static void put(struct tsr_bytes *b, const void *bytes, size_t size)
{
    assert_int_equal(tsr_bytes_put(b, bytes, size, NULL), TSR_OK);
}

static void put_chunk(struct tsr_bytes *b, const char *type, const void *data, size_t size)
{
    uint8_t number[4];
    tsr_put_u32_be(number, (uint32_t)size);
    put(b, number, 4);
    put(b, type, 4);
    put(b, data, size);
    tsr_put_u32_be(number, tsr_crc32(b->bytes + b->size - size - 4, size + 4));
    put(b, number, 4);
}

static void put_rows(struct tsr_bytes *plain, const struct shape *s, uint32_t columns, uint32_t rows, struct rng *r)
{
    const size_t bits = (size_t)tsr_png_channels(s->type) * s->depth;
    for (uint32_t y = 0; columns > 0 && y < rows; y++) {
        uint8_t byte = (uint8_t)rng_below(r, s->filters);
        put(plain, &byte, 1);
        for (size_t x = 0; x < (columns * bits + 7) / 8; x++) {
            if (s->kinds == 0) byte = (uint8_t)(5 * x + 3 * y); /* smooth */
            if (s->kinds > 0 && rng_below(r, 4) == 0) byte = (uint8_t)(rng_below(r, s->kinds) * 37);
            put(plain, &byte, 1);
        }
    }
}

/* All rows with their filter types, of which nothing but their number follows from the shape. */
static void put_plain(struct tsr_bytes *plain, const struct shape *s, struct rng *r)
{
    static const uint32_t passes[7][4] = {{0, 0, 8, 8}, {4, 0, 8, 8}, {0, 4, 4, 8}, {2, 0, 4, 4},
                                          {0, 2, 2, 4}, {1, 0, 2, 2}, {0, 1, 1, 2}};
    if (!s->interlaced) put_rows(plain, s, s->columns, s->rows, r);
    for (int i = 0; i < 7 && s->interlaced; i++)
        put_rows(plain, s, (s->columns + passes[i][2] - 1 - passes[i][0]) / passes[i][2],
                 (s->rows + passes[i][3] - 1 - passes[i][1]) / passes[i][3], r);
}

enum { TEXTS = 1, UNKNOWN = 2, AFTER = 4, TWO_IDATS = 8 };

/* Makes a file; extras: chunks that it has besides. */
static struct tsr_bytes make_png(const struct shape *s, unsigned extras, int level, struct rng *r)
{
    struct tsr_bytes file = {.limit = LIMIT}, plain = {.limit = LIMIT};
    uint8_t ihdr[13] = {0, 0, 0, 0, 0, 0, 0, 0, (uint8_t)s->depth, (uint8_t)s->type, 0, 0, (uint8_t)s->interlaced};
    tsr_put_u32_be(ihdr, s->columns);
    tsr_put_u32_be(ihdr + 4, s->rows);
    put_plain(&plain, s, r);
    uLongf size = compressBound((uLong)plain.size);
    uint8_t *const stream = must(malloc(size));
    assert_int_equal(compress2(stream, &size, plain.bytes, (uLong)plain.size, level), Z_OK);
    put(&file, "\x89PNG\r\n\x1a\n", 8);
    put_chunk(&file, "IHDR", ihdr, sizeof ihdr);
    if (extras & TEXTS) put_chunk(&file, "tEXt", "Software\0a test", 15);
    if (extras & UNKNOWN) put_chunk(&file, "teSt", stream, 200 < size ? 200 : size);
    put_chunk(&file, "IDAT", stream, extras & TWO_IDATS ? size / 3 : size);
    if (extras & TWO_IDATS) put_chunk(&file, "IDAT", stream + size / 3, size - size / 3);
    if (extras & AFTER) put_chunk(&file, "tIME", "\7\xe4\1\2\3\4\5", 7);
    put_chunk(&file, "IEND", "", 0);
    free(stream);
    tsr_bytes_free(&plain);
    return file;
}

static struct tsr_bytes make_any(unsigned i, struct rng *r)
{
    static const unsigned forms[15][2] = {{1, 0}, {2, 0}, {4, 0}, {8, 0}, {16, 0}, {8, 2}, {16, 2}, {1, 3},
                                          {2, 3}, {4, 3}, {8, 3}, {8, 4}, {16, 4}, {8, 6}, {16, 6}};
    const struct shape s = {.columns = 1 + rng_below(r, 40),
                            .rows = 1 + rng_below(r, 30),
                            .depth = forms[i % 15][0],
                            .type = forms[i % 15][1],
                            .interlaced = i / 15 % 2,
                            .filters = i % 3 ? 5 : 1,
                            .kinds = rng_below(r, 12)};
    return make_png(&s, rng_below(r, 16), (int)(1 + rng_below(r, 9)), r);
}

/* Where the IDAT chunks are; codes them. */
static enum tsr_status mix(const struct tsr_bytes *file, struct tsr_bytes *code)
{
    struct tsr_bytes plain = {.limit = LIMIT}, residue = {.limit = LIMIT};
    struct tsr_png_parts parts = {file->bytes, file->size, 0, 0, &plain, &residue};
    *code = (struct tsr_bytes){.limit = LIMIT};
    for (size_t at = 8; at + 12 <= file->size; at += 12 + (size_t)tsr_read_u32_be(file->bytes + at)) {
        if (memcmp(file->bytes + at + 4, "IDAT", 4) != 0) continue;
        if (parts.start == 0) parts.start = at;
        parts.end = at + 12 + (size_t)tsr_read_u32_be(file->bytes + at);
    }
    assert_int_equal(
        split_by(&tsr_node_png_chunks, file->bytes + parts.start, parts.end - parts.start, &plain, &residue, NULL),
        TSR_OK);
    const enum tsr_status status = tsr_png_mix(&parts, code, NULL);
    tsr_bytes_free(&plain);
    tsr_bytes_free(&residue);
    return status;
}

static enum tsr_status by_product(const struct tsr_bytes *code, size_t plain_size, struct tsr_bytes *file,
                                  struct tsr_error *error)
{
    (void)plain_size;
    return join_by(&tsr_node_small_png, (struct tsr_node_parts){.plain = code->bytes, .plain_size = code->size}, 0,
                   file, error);
}

static bool by_reference(const struct tsr_bytes *code, size_t plain_size, ref_sink *put_bytes, void *to)
{
    (void)plain_size;
    return ref_small_png(code->bytes, code->size, put_bytes, to);
}

struct work {
    struct tsr_bytes file[FILES_AT_ONCE], code[FILES_AT_ONCE];
    pthread_t thread;
};

static void *mix_all(void *context)
{
    struct work *const w = context;
    for (unsigned i = 0; i < FILES_AT_ONCE; i++) (void)mix(&w->file[i], &w->code[i]);
    return NULL;
}

/* Threads that begin at once, with no model made yet, share none. The first files are large, and others small: models
 * that coded many bits or few begin anew. */
TEST(at_once)
{
    static struct work work[THREADS];
    static const struct shape large = {90, 90, 8, 2, 0, 5, 12}, small = {4, 4, 8, 0, 0, 2, 3};
    struct rng r = {45};
    for (unsigned t = 0; t < THREADS; t++)
        for (unsigned i = 0; i < FILES_AT_ONCE; i++)
            work[t].file[i] = make_png(i % 8 == 0 ? &large : &small, i % 4 ? TEXTS : 0, 6, &r);
    for (unsigned t = 0; t < THREADS; t++)
        assert_int_equal(pthread_create(&work[t].thread, NULL, mix_all, &work[t]), 0);
    for (unsigned t = 0; t < THREADS; t++) assert_int_equal(pthread_join(work[t].thread, NULL), 0);
    for (unsigned t = 0; t < THREADS; t++) {
        for (unsigned i = 0; i < FILES_AT_ONCE; i++) {
            struct tsr_bytes *const file = &work[t].file[i], again;
            assert_int_equal(unmix(by_product, by_reference, &work[t].code[i], 0, &again, "a file of several at once"),
                             TSR_OK);
            expect(again.size == file->size && memcmp(again.bytes, file->bytes, file->size) == 0,
                   "file %u: other bytes", i);
            tsr_bytes_free(file);
            tsr_bytes_free(&work[t].code[i]);
            tsr_bytes_free(&again);
        }
    }
}

TEST(come_back)
{
    struct rng r = {41};
    for (unsigned i = 0; i < FILES; i++) {
        struct tsr_bytes file = make_any(i, &r), code, again;
        expect(mix(&file, &code) == TSR_OK, "file %u is refused", i);
        assert_int_equal(unmix(by_product, by_reference, &code, 0, &again, "a good file"), TSR_OK);
        expect(again.size == file.size && memcmp(again.bytes, file.bytes, file.size) == 0, "file %u: other bytes", i);
        tsr_bytes_free(&file);
        tsr_bytes_free(&code);
        tsr_bytes_free(&again);
    }
}

/* Forms that the code does not have are refused, and do no harm. */
TEST(refused)
{
    static const struct shape shapes[] = {
        {8, 8, 8, 0, 0, 6, 9},    /* a filter type 5 */
        {181, 182, 8, 0, 0, 1, 2} /* too many plain bytes */
    };
    struct rng r = {42};
    for (int i = 0; i < 5; i++) {
        const struct shape usual = {8, 8, 8, 0, 0, 1, 9};
        struct tsr_bytes file = make_png(i < 2 ? &shapes[i] : &usual, TEXTS, 9, &r), code;
        if (i == 2) file.bytes[45] ^= 1; /* the text: a wrong CRC */
        if (i == 3) put(&file, "after the end", 13);
        if (i == 4) file.bytes[20 + 3]++; /* one row more than there is */
        if (i == 4) tsr_put_u32_be(file.bytes + 29, tsr_crc32(file.bytes + 12, 17));
        expect(mix(&file, &code) == TSR_ERROR_CORRUPT, "case %d is taken", i);
        tsr_bytes_free(&file);
        tsr_bytes_free(&code);
    }
}

/* A piece has a code, and none that is too long. */
TEST(sizes_of_codes)
{
    static const struct {
        uint8_t bytes[4];
        size_t size;
        enum tsr_status status;
    } cases[] = {{{6, 0}, 2, TSR_ERROR_CORRUPT},
                 {{6, 1}, 2, TSR_OK},
                 {{6, 0x80, 0x80, 8}, 4, TSR_OK}, /* 2^17 */
                 {{6, 0x81, 0x80, 8}, 4, TSR_ERROR_CORRUPT}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct tsr_piece_head head;
        size_t used;
        const enum tsr_status status = tsr_get_piece_head(cases[i].bytes, cases[i].size, &head, &used, NULL);
        expect(status == cases[i].status, "case %zu: status %d", i, (int)status);
    }
}

/* The largest rows that are taken. */
TEST(limits)
{
    const struct shape shapes[] = {{255, 128, 8, 3, 0, 1, 3}, {1, 16384, 8, 0, 0, 5, 2}, {32767, 1, 8, 0, 0, 5, 2}};
    struct rng r = {43};
    for (size_t i = 0; i < COUNT_OF(shapes); i++) {
        struct tsr_bytes file = make_png(&shapes[i], 0, 6, &r), code, again;
        assert_int_equal(mix(&file, &code), TSR_OK);
        assert_int_equal(unmix(by_product, by_reference, &code, 0, &again, "a large file"), TSR_OK);
        assert_true(again.size == file.size && memcmp(again.bytes, file.bytes, file.size) == 0);
        tsr_bytes_free(&file);
        tsr_bytes_free(&code);
        tsr_bytes_free(&again);
    }
}

TEST(damaged)
{
    struct rng r = {44};
    int refused = 0;
    for (unsigned i = 0; i < 20; i++) {
        struct tsr_bytes file = make_any(i, &r), code, again;
        assert_int_equal(mix(&file, &code), TSR_OK);
        for (unsigned k = 0; k < 15; k++) {
            struct tsr_bytes bad = {.limit = LIMIT};
            put(&bad, code.bytes, k % 3 ? code.size : 1 + rng_below(&r, (uint32_t)code.size));
            if (k % 3)
                bad.bytes[rng_below(&r, (uint32_t)(k % 2 && bad.size > 30 ? 30 : bad.size))] ^=
                    (uint8_t)(1u << rng_below(&r, 8));
            refused += unmix(by_product, by_reference, &bad, 0, &again, "a damaged file") != TSR_OK;
            tsr_bytes_free(&bad);
            tsr_bytes_free(&again);
        }
        tsr_bytes_free(&file);
        tsr_bytes_free(&code);
    }
    expect(refused > 150, "only %d are refused", refused);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(at_once), cmocka_unit_test(come_back),
                                       cmocka_unit_test(refused), cmocka_unit_test(sizes_of_codes),
                                       cmocka_unit_test(limits),  cmocka_unit_test(damaged)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
