/* app/library/compress_file.c: of a PNG that could be coded, packed or stored, what is written is not longer than
 * packed, also where packed saves few bytes. A deflate stream that is guessed wrongly comes back, too. */
#include "tests/unit/support.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "app/library/flow.h"
#include "io/output.h"

enum { SIDE = 48, LEAST_SIDE = 4, SAMPLES = 3, ROOM = 2 * SIDE * (SIDE * SAMPLES + 1), FILES = 400 };

static size_t put_chunk(uint8_t *file, size_t at, const char *type, const uint8_t *data, size_t size)
{
    const uint32_t check = (uint32_t)crc32(crc32(0, (const uint8_t *)type, 4), data, (uInt)size);
    for (int i = 0; i < 4; i++) file[at + (size_t)i] = (uint8_t)(size >> (24 - 8 * i));
    memcpy(file + at + 4, type, 4);
    memcpy(file + at + 8, data, size);
    for (int i = 0; i < 4; i++) file[at + 8 + size + (size_t)i] = (uint8_t)(check >> (24 - 8 * i));
    return at + 12 + size;
}

/* Noise of some values in gray or RGB. Returns its size. */
static size_t make_png(struct rng *r, uint8_t *file)
{
    static uint8_t plain[ROOM], stream[ROOM];
    const uint32_t columns = (uint32_t)rng_between(r, LEAST_SIDE, SIDE),
                   rows = (uint32_t)rng_between(r, LEAST_SIDE, SIDE);
    const bool is_rgb = rng_below(r, 2);
    const uint32_t values = rng_below(r, 2) ? 256 : (uint32_t)rng_between(r, 2, 64);
    const uint8_t head[13] = {0, 0, 0, (uint8_t)columns, 0, 0, 0, (uint8_t)rows, 8, is_rgb ? 2 : 0};
    size_t size = 0;
    for (uint32_t y = 0; y < rows; y++) {
        plain[size++] = (uint8_t)rng_below(r, 5);
        for (uint32_t x = 0; x < columns * (is_rgb ? SAMPLES : 1); x++) plain[size++] = (uint8_t)rng_below(r, values);
    }
    uLongf stream_size = sizeof stream;
    assert_int_equal(compress2(stream, &stream_size, plain, size, (int)rng_below(r, 10)), Z_OK);
    memcpy(file, "\x89PNG\r\n\x1a\n", 8);
    size_t at = put_chunk(file, 8, "IHDR", head, sizeof head);
    at = put_chunk(file, at, "IDAT", stream, stream_size);
    return put_chunk(file, at, "IEND", (const uint8_t *)"", 0);
}

/* What it takes packed; 0: it is not packed. */
static uint64_t packed_size(struct tsr_engine *engine, const uint8_t *file, size_t size)
{
    const struct tsr_source_options options = {.verbatim = true, .reason = tsr_smaller_stored, .packs = true};
    struct tsr_input *const input = must(tsr_input_from_memory(file, size, "a PNG"));
    struct tsr_output *const output = must(tsr_output_to_null());
    struct tsr_source *source;
    struct tsr_proof proof;
    struct tsr_encoded encoded = {0};
    struct tsr_error error;
    assert_int_equal(tsr_source_open(input, &options, &source, &error), TSR_OK);
    const bool is_packed = source->header.recipe == TSR_RECIPE_PACKED;
    if (is_packed) assert_int_equal(tsr_encode(engine, source, output, &proof, &encoded, &error), TSR_OK);
    const uint64_t taken = tsr_output_size(output);
    tsr_source_close(source);
    tsr_output_close(output);
    tsr_input_close(input);
    return taken;
}

TEST(a_png_is_not_longer_than_packed)
{
    struct tsr_engine *const engine = must(make_engine(TSR_ENGINE_CPU, 1));
    struct rng r = {5};
    static uint8_t file[ROOM + 100];
    int packed = 0, close = 0; /* close: packed saves few bytes */
    for (int i = 0; i < FILES; i++) {
        const size_t size = make_png(&r, file);
        struct tsr_buffer made;
        const struct tsr_data_source from = tsr_from_memory(file, size);
        const struct tsr_data_sink to = tsr_to_memory(&made);
        const uint64_t most = packed_size(engine, file, size);
        struct tsr_error error;
        assert_int_equal(tsr_compress(engine, &from, &to, NULL, NULL, &error), TSR_OK);
        if (most > 0 && most <= size && made.count > size / 8 * 5) /* else packing is not looked at */
            expect(made.count <= most, "%zu bytes, packed %d", made.count, (int)most);
        packed += most > 0;
        close += most > 0 && most <= size && most + 16 >= size;
        tsr_buffer_free(&made);
    }
    expect(packed >= FILES / 4 && close >= FILES / 40, "%d are packed, %d of them save little", packed, close);
    tsr_engine_destroy(engine);
}

enum { WIDE = 600, HIGH = 1600, LONG = HIGH * (WIDE + 1) };

/* A PNG of a random walk along each row, which is deflated by level 9, and from a place on by level 1. */
static size_t make_long_png(struct rng *r, size_t place, uint8_t *file)
{
    static uint8_t plain[LONG], stream[LONG];
    static const uint8_t head[13] = {0, 0, WIDE >> 8, WIDE & 255, 0, 0, HIGH >> 8, HIGH & 255, 8};
    for (size_t i = 0; i < LONG; i++) plain[i] = i % (WIDE + 1) == 0 ? 1 : (uint8_t)(rng_below(r, 4) - 1);
    z_stream z = {.next_in = plain, .avail_in = (uInt)place, .next_out = stream, .avail_out = sizeof stream};
    assert_int_equal(deflateInit(&z, 9), Z_OK);
    if (place < LONG) assert_int_equal(deflate(&z, Z_NO_FLUSH), Z_OK);
    if (place < LONG) assert_int_equal(deflateParams(&z, 1, Z_DEFAULT_STRATEGY), Z_OK);
    z.avail_in = (uInt)(plain + LONG - z.next_in);
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    memcpy(file, "\x89PNG\r\n\x1a\n", 8);
    size_t at = put_chunk(file, 8, "IHDR", head, sizeof head);
    at = put_chunk(file, at, "IDAT", stream, z.total_out);
    deflateEnd(&z);
    return put_chunk(file, at, "IEND", (const uint8_t *)"", 0);
}

/* Whether the deflate stream of a PNG is guessed. */
static bool is_guessed(const uint8_t *file, size_t size)
{
    const struct tsr_source_options options = {0};
    struct tsr_input *const input = must(tsr_input_from_memory(file, size, "a PNG"));
    struct tsr_source *source;
    struct tsr_error error;
    bool guessed = false;
    tsr_input_set_guessed(input, &guessed);
    assert_int_equal(tsr_source_open(input, &options, &source, &error), TSR_OK);
    tsr_source_close(source);
    tsr_input_close(input);
    return guessed;
}

/* It becomes a .tsr of so many bytes, and comes back. */
static struct tsr_buffer compress_by(struct tsr_engine *engine, enum tsr_verify verify, const uint8_t *file,
                                     size_t size)
{
    struct tsr_buffer coded, again;
    struct tsr_compress_options options = TSR_COMPRESS_OPTIONS;
    const struct tsr_data_source from = tsr_from_memory(file, size);
    const struct tsr_data_sink to = tsr_to_memory(&coded), back = tsr_to_memory(&again);
    struct tsr_error error;
    options.verify = verify;
    expect(tsr_compress(engine, &from, &to, &options, NULL, &error) == TSR_OK, "%s", error.text);
    const struct tsr_data_source written = tsr_from_memory(coded.bytes, coded.count);
    expect(tsr_restore(engine, &written, &back, NULL, &error) == TSR_OK, "%s", error.text);
    expect(again.count == size && memcmp(again.bytes, file, size) == 0, "another file");
    tsr_buffer_free(&again);
    return coded;
}

/* The same bytes come of what was guessed, rightly or wrongly, and of what was not. */
TEST(a_stream_that_changes)
{
    struct tsr_engine *const engine = must(make_engine(TSR_ENGINE_CPU, 1));
    struct rng r = {6};
    static uint8_t file[LONG];
    for (int i = 0; i < 2; i++) {
        const size_t size = make_long_png(&r, i == 0 ? LONG : LONG / 4 * 3, file);
        expect(is_guessed(file, size), "%d: nothing was guessed", i);
        struct tsr_buffer one = compress_by(engine, TSR_VERIFY_CPU, file, size),
                          other = compress_by(engine, TSR_VERIFY_NONE, file, size);
        expect(one.count == other.count && memcmp(one.bytes, other.bytes, one.count) == 0, "%d: other bytes", i);
        tsr_buffer_free(&one);
        tsr_buffer_free(&other);
    }
    tsr_engine_destroy(engine);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_png_is_not_longer_than_packed),
                                       cmocka_unit_test(a_stream_that_changes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
