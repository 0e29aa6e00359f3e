/* app/library/compress_file.c: of a PNG that could be coded, packed or stored, what is written is not longer than
 * packed, also where packed saves few bytes. */
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
    const struct tsr_source_options options = {.verbatim = true, .reason = tsr_smaller_verbatim, .packs = true};
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

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_png_is_not_longer_than_packed)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
