/* IDAT chunks that are written anew: the reference decoder makes the same bytes, and the raster comes back. Reading the
 * pixels alone takes the same chunks as the node does. PNG.md 3. */
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "io/bytes/crc32.h"
#include "io/formats/png/png_file.h"
#include "io/nodes/deflate/deflate.h"
#include "io/nodes/png/png_chunks.h"
#include "io/nodes/png/png_rows.h"
#include "io/nodes/png/png_writer.h"
#include "by_node.h"
#include "by_reference.h"
#include "tests/unit/support.h"

struct form {
    uint8_t type, depth, channels;
};
static const struct form forms[] = {{0, 1, 1}, {0, 2, 1},  {0, 4, 1},  {0, 8, 1}, {0, 16, 1},
                                    {2, 8, 3}, {2, 16, 3}, {3, 1, 1},  {3, 2, 1}, {3, 4, 1},
                                    {3, 8, 1}, {4, 8, 2},  {4, 16, 2}, {6, 8, 4}, {6, 16, 4}};

static struct tsr_image image_of(const struct form *f, uint32_t columns, uint32_t rows)
{
    return (struct tsr_image){.columns = columns,
                              .rows = rows,
                              .frames = 1,
                              .components = f->channels,
                              .bits_allocated = f->depth == 16 ? 16 : 8,
                              .bits_stored = f->depth,
                              .high_bit = (uint8_t)(f->depth - 1),
                              .big_endian = f->depth == 16,
                              .exact_only = f->type == TSR_PNG_PALETTE || f->depth == 1};
}

/* Contents: noise, one value, steps with some noise, and a drawing whose rows repeat. */
enum { NOISE, FLAT, SMOOTH, DRAWING, CONTENTS };

static uint8_t *raster_of(struct rng *r, const struct tsr_image *image, int content)
{
    const size_t bytes = tsr_raster_bytes(image), row = bytes / image->rows;
    const unsigned mask = image->bits_stored < 8 ? (1u << image->bits_stored) - 1 : 255;
    uint8_t *const raster = must(malloc(bytes));
    for (size_t i = 0; i < bytes; i++) {
        const size_t x = i % row, y = i / row;
        const unsigned value = content == NOISE    ? rng_below(r, 256)
                               : content == FLAT   ? 77
                               : content == SMOOTH ? (unsigned)(x + 3 * y + rng_below(r, 4))
                                                   : (unsigned)((x / 24 ^ y / 9) * 37);
        raster[i] = (uint8_t)(value & mask);
    }
    return raster;
}

static void write_anew(struct tsr_png_rows of, int type, const uint8_t *raster, const struct tsr_crew *crew,
                       struct tsr_bytes *chunks)
{
    struct tsr_output *const output = must(tsr_output_to_memory());
    assert_int_equal(tsr_png_write_raster(of, type, crew, raster, output, NULL), TSR_OK);
    chunks->limit = SIZE_MAX / 2;
    assert_int_equal(tsr_bytes_put(chunks, tsr_output_bytes(output), (size_t)tsr_output_size(output), NULL), TSR_OK);
    tsr_output_close(output);
}

/* What zlib makes of the chunks. */
static size_t inflated_bytes(const struct tsr_bytes *chunks)
{
    struct tsr_bytes stream = {.limit = chunks->size};
    struct tsr_png_chunk chunk;
    size_t at = 0;
    while (tsr_png_next(chunks->bytes, chunks->size, &at, &chunk)) {
        assert_true(tsr_png_is(&chunk, "IDAT") && tsr_png_checks(&chunk) && chunk.size > 0);
        assert_true(chunk.size == 1 << 20 || (at == chunks->size && chunk.size < 1 << 20));
        assert_int_equal(tsr_bytes_put(&stream, chunk.data, chunk.size, NULL), TSR_OK);
    }
    assert_int_equal(at, chunks->size);
    uLongf size = 1 << 24;
    uint8_t *const plain = must(malloc(size));
    assert_int_equal(uncompress(plain, &size, stream.bytes, stream.size), Z_OK);
    tsr_bytes_free(&stream);
    free(plain);
    return size;
}

static void check(struct rng *r, const struct form *f, uint32_t columns, uint32_t rows, bool interlaced, int content)
{
    const struct tsr_image image = image_of(f, columns, rows);
    const struct tsr_png_rows of = {&image, interlaced};
    const struct tsr_crew crew = {run_backwards, NULL};
    const size_t bytes = tsr_raster_bytes(&image);
    uint8_t *const raster = raster_of(r, &image, content), *const back = must(malloc(bytes)), *theirs;
    struct tsr_bytes chunks = {0}, by_crew = {0};
    size_t size;
    struct ref_header header = {
        .restore = REF_PNG, .columns = columns, .rows = rows, .frames = 1, .components = f->channels};
    header.allocated = image.bits_allocated;
    header.stored = image.bits_stored;
    header.high = image.high_bit;
    header.big_endian = image.big_endian;
    header.parameter_count = 2;
    header.parameters[0] = f->type;
    header.parameters[1] = interlaced;
    write_anew(of, f->type, raster, NULL, &chunks);
    write_anew(of, f->type, raster, &crew, &by_crew);
    assert_true(ref_png_chunks(&header, raster, NULL, 0, &theirs, &size));
    expect(size == chunks.size && memcmp(theirs, chunks.bytes, size) == 0,
           "type %d, depth %d, %u x %u, interlaced %d, content %d: the reference writes other chunks", f->type,
           f->depth, columns, rows, interlaced, content);
    expect(by_crew.size == chunks.size && memcmp(by_crew.bytes, chunks.bytes, chunks.size) == 0, "others by a crew");
    assert_int_equal(inflated_bytes(&chunks), tsr_png_plain_bytes(of));
    memset(back, 99, bytes);
    assert_int_equal(tsr_png_read_raster(of, NULL, chunks.bytes, chunks.size, back, NULL), TSR_OK);
    expect(memcmp(back, raster, bytes) == 0, "type %d, depth %d: another raster comes back", f->type, f->depth);
    ref_clear();
    tsr_bytes_free(&chunks);
    tsr_bytes_free(&by_crew);
    free(raster);
    free(back);
}

TEST(every_form)
{
    struct rng r = {61};
    for (size_t i = 0; i < COUNT_OF(forms); i++)
        for (int content = 0; content < CONTENTS; content++)
            for (int interlaced = 0; interlaced < 2; interlaced++) {
                check(&r, &forms[i], 1, 1, interlaced, content);
                check(&r, &forms[i], 1 + rng_below(&r, 9), 1 + rng_below(&r, 9), interlaced, content);
                check(&r, &forms[i], 1 + rng_below(&r, 90), 1 + rng_below(&r, 90), interlaced, content);
            }
}

/* Several blocks, stored blocks, several chunks, bands of rows. */
TEST(large)
{
    struct rng r = {62};
    for (int content = 0; content < CONTENTS; content++) check(&r, &forms[5], 700, 600, content % 2, content);
    check(&r, &forms[3], 33000, 3, false, DRAWING); /* repeats that are farther than a match may be */
    check(&r, &forms[3], 32769, 3, false, NOISE);
}

/* Filters of whole pixels at once, against the definition byte by byte. */
TEST(filters)
{
    enum { BYTES = 61 };
    struct rng r = {63};
    for (int type = 0; type < TSR_PNG_FILTERS; type++)
        for (size_t pixel = 1; pixel <= 8; pixel++)
            for (size_t bytes = 1; bytes <= BYTES; bytes++) {
                uint8_t row[BYTES], above[BYTES], filtered[BYTES];
                for (size_t i = 0; i < bytes; i++) row[i] = (uint8_t)(rng_below(&r, 4) ? rng_next(&r) : 255);
                for (size_t i = 0; i < bytes; i++) above[i] = (uint8_t)(rng_below(&r, 4) ? rng_next(&r) : 0);
                tsr_png_filter(type, row, above, bytes, pixel, filtered);
                tsr_png_unfilter(type, filtered, above, bytes, pixel);
                expect(memcmp(row, filtered, bytes) == 0, "type %d, %zu bytes of pixels of %zu", type, bytes, pixel);
            }
}

/* Bits of a stream, the lowest first; of a code, the highest first. */
static void put_bits(uint8_t *stream, size_t *at, unsigned value, unsigned count, bool is_code)
{
    for (unsigned i = 0; i < count; i++, ++*at) {
        const unsigned bit = value >> (is_code ? count - 1 - i : i) & 1;
        stream[*at / 8] = (uint8_t)(stream[*at / 8] | bit << *at % 8);
    }
}

/* A length of 258 in the longer form, symbol 284, which zlib takes and neither reader does. */
TEST(longer_form)
{
    for (unsigned extra = 30; extra < 32; extra++) {
        enum { MOST = 259 };
        uint8_t stream[16] = {0}, plain[MOST];
        size_t at = 0, used;
        put_bits(stream, &at, 1 | 1 << 1, 3, false); /* final, fixed codes */
        put_bits(stream, &at, 0x30 + 'a', 8, true);
        put_bits(stream, &at, 0xc0 + 284 - 280, 8, true);
        put_bits(stream, &at, extra, 5, false);
        put_bits(stream, &at, 0, 5, true); /* distance 1 */
        put_bits(stream, &at, 0, 7, true); /* end */
        struct tsr_bytes read = {.limit = MOST}, residue = {.limit = 1000};
        const bool is_longer = extra == 31;
        const size_t size = MOST - 31 + extra;
        assert_int_equal(tsr_deflate_read(stream, sizeof stream, &used, &read, &residue, NULL) == TSR_OK, !is_longer);
        assert_int_equal(tsr_deflate_plain(stream, sizeof stream, plain, size, &used), !is_longer);
        if (!is_longer) assert_int_equal(used, (at + 7) / 8);
        tsr_bytes_free(&read);
        tsr_bytes_free(&residue);
    }
}

/* Streams of zlib, of which bytes are changed or missing: both readers take the same. */
TEST(same_streams)
{
    enum { SIZE = 3000, ROUNDS = 6000 };
    struct rng r = {64};
    uint8_t plain[SIZE], other[SIZE];
    size_t good = 0;
    for (int round = 0; round < ROUNDS; round++) {
        for (size_t i = 0; i < SIZE; i++)
            plain[i] = (uint8_t)(i > 20 && rng_below(&r, 30) ? plain[i - 1 - rng_below(&r, 3)]
                                                             : rng_next(&r) & (round % 3 ? 15 : 255));
        uLongf size = compressBound(SIZE);
        uint8_t *const stream = must(malloc(size));
        assert_int_equal(compress2(stream, &size, plain, SIZE, round % 10), Z_OK);
        size -= 4; /* without head and check */
        if (round % 4 == 1) stream[2 + rng_below(&r, (uint32_t)size - 2)] ^= (uint8_t)(1u << rng_below(&r, 8));
        if (round % 4 == 2) size -= rng_below(&r, 4);
        if (round % 4 == 3) stream[2 + rng_below(&r, 60)] = (uint8_t)rng_next(&r);
        struct tsr_bytes read = {.limit = SIZE}, residue = {.limit = SIZE_MAX / 2};
        size_t used = 0, used_again = 0;
        const bool takes =
            tsr_deflate_read(stream + 2, size - 2, &used, &read, &residue, NULL) == TSR_OK && read.size == SIZE;
        const bool takes_again = tsr_deflate_plain(stream + 2, size - 2, other, SIZE, &used_again);
        expect(takes == takes_again && (!takes || (used == used_again && memcmp(other, read.bytes, SIZE) == 0)),
               "round %d: %d and %d, %zu and %zu bytes", round, takes, takes_again, used, used_again);
        good += takes;
        tsr_bytes_free(&read);
        tsr_bytes_free(&residue);
        free(stream);
    }
    expect(good > ROUNDS / 4 && good < ROUNDS, "%zu good streams", good);
}

static void put_chunk(struct tsr_bytes *file, const char *type, const void *data, size_t size)
{
    uint8_t number[4];
    tsr_put_u32_be(number, (uint32_t)size);
    assert_int_equal(tsr_bytes_put(file, number, 4, NULL), TSR_OK);
    assert_int_equal(tsr_bytes_put(file, type, 4, NULL), TSR_OK);
    assert_int_equal(tsr_bytes_put(file, data, size, NULL), TSR_OK);
    tsr_put_u32_be(number, tsr_crc32(file->bytes + file->size - size - 4, size + 4));
    assert_int_equal(tsr_bytes_put(file, number, 4, NULL), TSR_OK);
}

/* What the proof of a PNG that is written anew looks at besides samples and parts: PNG.md 4. */
TEST(rest)
{
    enum { GOOD, OTHER_PLACE, TWICE, ANIMATED, NO_END, OTHER_SIZE, OTHER_DEPTH, OTHER_FORM, FILLED, CASES };
    for (int fault = GOOD; fault < CASES; fault++) {
        struct tsr_header header = {.kind = TSR_KIND_PNG, .recipe = TSR_RECIPE_PNG};
        header.image = image_of(&forms[5], 40, 30);
        header.parameters[TSR_PNG_COLOUR_TYPE] = forms[5].type;
        header.parameters[TSR_PNG_FORM] = TSR_PNG_USUAL_START | TSR_PNG_USUAL_END;
        header.parameter_count = TSR_PNG_PARAMETERS;
        struct tsr_bytes file = {.limit = 10000};
        uint8_t start[TSR_PNG_START_BYTES];
        tsr_png_start(&header, start);
        assert_int_equal(tsr_bytes_put(&file, start, sizeof start, NULL), TSR_OK);
        put_chunk(&file, "gAMA", "abcd", 4);
        if (fault == ANIMATED) put_chunk(&file, "acTL", "12345678", 8);
        const size_t at = file.size + (fault == OTHER_PLACE);
        const size_t samples = tsr_raster_bytes(&header.image) + (fault == FILLED);
        uint8_t *const raster = must(calloc(1, samples));
        put_chunk(&file, "IDAT", raster, samples);
        free(raster);
        if (fault == TWICE) put_chunk(&file, "IDAT", "x", 1);
        put_chunk(&file, "tEXt", "text", 4);
        if (fault != NO_END) put_chunk(&file, "IEND", "", 0);
        if (fault == OTHER_SIZE) header.image.columns++;
        if (fault == OTHER_DEPTH) header.image.bits_stored = 16;
        if (fault == OTHER_FORM) header.parameters[TSR_PNG_FORM] |= TSR_PNG_INTERLACED;
        const enum tsr_status status = tsr_png_check_rest(&header, file.bytes, file.size, at, NULL);
        expect(status == (fault == GOOD ? TSR_OK : TSR_ERROR_CORRUPT), "case %d: status %d", fault, status);
        tsr_bytes_free(&file);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_form),  cmocka_unit_test(large),
                                       cmocka_unit_test(filters),     cmocka_unit_test(same_streams),
                                       cmocka_unit_test(longer_form), cmocka_unit_test(rest)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
