/* Splicing: samples that lie unchanged in a file (io/formats/extents.c), and back (io/recipe/make.c). Samples
 * of one bit matter most here: their frames follow each other without padding. FORMAT.md 3.2, 4.1. */
#include "in_memory.h"
#include "tests/unit/leaves.h"
#include "io/container/section.h"
#include "io/nodes/deflate/deflate.h"
#include "io/formats/values.h"

static int bit_at(const uint8_t *bytes, uint64_t i)
{
    return bytes[i / 8] >> i % 8 & 1;
}

static void check_splice(struct rng *r, const struct tsr_image *image, size_t prefix, size_t suffix)
{
    const uint64_t frame_bits = tsr_frame_bits(image), bits = frame_bits * image->frames;
    const size_t raster_bytes = (size_t)((bits + 7) / 8), size = prefix + raster_bytes + suffix;
    const size_t frame_bytes = (size_t)((frame_bits + 7) / 8);
    uint8_t *file = must(malloc(size));
    for (size_t i = 0; i < size; i++) file[i] = (uint8_t)rng_next(r);
    struct tsr_header header;
    struct tsr_source *source;
    struct tsr_error error = {0};
    memset(&header, 0, sizeof header);
    header.recipe = TSR_RECIPE_SPLICE;
    header.exact = true;
    header.image = *image;
    struct tsr_input *input = must(tsr_input_from_memory(file, size, "splice"));
    enum tsr_status status = tsr_splice_open(input, &header, prefix, &source, &error);
    expect(status == TSR_OK, "%s", error.text);
    assert_int_equal(source->blob_size[TSR_BLOB_PREFIX], prefix);
    assert_int_equal(source->blob_size[TSR_BLOB_SUFFIX], suffix);
    assert_int_equal(source->header.parameter_count, bits % 8 ? 1 : 0);

    struct tsr_output *output = must(tsr_output_to_memory());
    uint8_t *raster = must(malloc(frame_bytes + 1)), *blob = must(malloc(prefix + suffix + 1)),
            *rasters = must(malloc(image->frames * frame_bytes + 1));
    assert_int_equal(tsr_source_read_blob(source, TSR_BLOB_PREFIX, 0, blob, prefix, &error), TSR_OK);
    for (uint32_t f = 0; f < image->frames; f++) {
        raster[frame_bytes] = 0xa5;
        assert_int_equal(tsr_source_read_frame(source, f, raster, &error), TSR_OK);
        for (uint64_t i = 0; i < frame_bytes * 8; i++) {
            const int wanted = i < frame_bits ? bit_at(file + prefix, f * frame_bits + i) : 0;
            expect(bit_at(raster, i) == wanted, "bit %llu of frame %u of %u x %u", (unsigned long long)i, f,
                   image->columns, image->rows);
        }
        assert_int_equal(raster[frame_bytes], 0xa5);
        memcpy(rasters + f * frame_bytes, raster, frame_bytes);
    }
    assert_int_equal(tsr_source_read_blob(source, TSR_BLOB_SUFFIX, 0, blob + prefix, suffix, &error), TSR_OK);
    struct test_leaves leaves = {.blob = {{blob, prefix, 0}, {blob + prefix, suffix, 0}},
                                 .step = 3,
                                 .rasters = rasters,
                                 .raster_bytes = frame_bytes,
                                 .frames = image->frames};
    assert_int_equal(make_of(&leaves, &source->header, output, &error), TSR_OK);
    expect(tsr_output_size(output) == size && memcmp(tsr_output_bytes(output), file, size) == 0,
           "%u frames of %u x %u, %u bits: not restored", image->frames, image->columns, image->rows,
           image->bits_allocated);

    /* The input is hashed as it is read. */
    struct tsr_hash128 hash;
    const struct tsr_hash128 wanted = tsr_hash128_of(file, size);
    assert_int_equal(tsr_input_hash(input, &hash, &error), TSR_OK);
    assert_true(tsr_hash128_equal(&hash, &wanted));
    tsr_output_close(output);
    tsr_source_close(source);
    tsr_input_close(input);
    free(raster);
    free(rasters);
    free(blob);
    free(file);
}

static struct tsr_image image_of(uint32_t columns, uint32_t rows, uint32_t frames, uint8_t bits, uint8_t components)
{
    struct tsr_image image;
    memset(&image, 0, sizeof image);
    image.columns = columns;
    image.rows = rows;
    image.frames = frames;
    image.components = components;
    image.bits_allocated = image.bits_stored = bits;
    image.high_bit = (uint8_t)(bits - 1);
    return image;
}

TEST(single_bits)
{
    struct rng r = {41};
    for (uint32_t columns = 1; columns <= 17; columns++)
        for (uint32_t rows = 1; rows <= 4; rows++)
            for (uint32_t frames = 1; frames <= 17; frames++) {
                const struct tsr_image image = image_of(columns, rows, frames, 1, 1);
                check_splice(&r, &image, rng_below(&r, 5), rng_below(&r, 5));
            }
}

/* More than fits the evaluator's buffer of 16 KiB. */
TEST(large_frames_of_single_bits)
{
    struct rng r = {42};
    static const uint32_t columns[] = {511, 512, 513, 1021};
    for (size_t i = 0; i < COUNT_OF(columns); i++) {
        const struct tsr_image image = image_of(columns[i], 1031, 3, 1, 1);
        check_splice(&r, &image, 3, 2);
    }
}

TEST(bytes_and_words)
{
    struct rng r = {43};
    static const uint8_t bits[] = {8, 16, 32};
    for (int i = 0; i < 500; i++) {
        const struct tsr_image image = image_of(1 + rng_below(&r, 20), 1 + rng_below(&r, 20), 1 + rng_below(&r, 5),
                                                bits[rng_below(&r, 3)], (uint8_t)(1 + rng_below(&r, 4)));
        check_splice(&r, &image, rng_below(&r, 50), rng_below(&r, 50));
    }
}

/* A byte too few, a start after the end, an image over a limit: each has its own error, and closes the input exactly
 * when it should (the sanitizer checks). */
TEST(refusals)
{
    static const uint8_t bytes[100];
    struct tsr_header header;
    memset(&header, 0, sizeof header);
    header.recipe = TSR_RECIPE_SPLICE;
    for (int i = 0; i < 8; i++) {
        struct tsr_source *source;
        struct tsr_error error = {0};
        struct tsr_input *input = must(tsr_input_from_memory(bytes, sizeof bytes, "refusals"));
        header.image = image_of(10, 10, i / 2 == 2 ? INT32_MAX : 1, 8, 1);
        if (i / 2 == 3) header.image.columns = 65536;
        const uint64_t first = i / 2 == 0 ? 1 : i / 2 == 1 ? UINT64_MAX : 0;
        const enum tsr_status status = tsr_splice_open(input, &header, first, &source, &error);
        expect(status == TSR_ERROR_CORRUPT && !source && error.text[0], "case %d: %s", i, tsr_status_name(status));
        tsr_input_close(input);
    }
}

/* Restore parameters that are not those of the image. */
TEST(wrong_parameters)
{
    for (int i = 0; i < 4; i++) {
        struct tsr_header header;
        struct tsr_recipe recipe;
        memset(&header, 0, sizeof header);
        header.recipe = i < 2 ? TSR_RECIPE_SPLICE : TSR_RECIPE_DEFLATED;
        header.image = i == 0 ? image_of(3, 3, 1, 1, 1) : image_of(4, 4, 1, 8, 1);
        header.parameter_count = i == 0 ? 0 : i == 1 ? 1 : i == 2 ? 0 : 3; /* of a deflated file, it is a varint */
        const enum tsr_status status = tsr_recipe_of(&header, 0, &recipe, NULL);
        expect(status == TSR_ERROR_CORRUPT, "case %d: %s", i, tsr_status_name(status));
    }
}

/* Restores a deflated file from its parts. The prefix has 6 bytes, and the suffix none. */
static enum tsr_status restore_deflated(uint64_t start, const uint8_t *residues, size_t size, const uint8_t *parts,
                                        struct bytes *file)
{
    enum { PREFIX = 6 };
    struct tsr_header header;
    struct tsr_error error = {0};
    struct tsr_output *output = must(tsr_output_to_memory());
    memset(&header, 0, sizeof header);
    header.recipe = TSR_RECIPE_DEFLATED;
    header.exact = true;
    header.image = image_of(4, 4, 2, 8, 1);
    header.parameter_count = tsr_put_varint(header.parameters, start);
    tsr_output_limit(output, 1 << 20);
    struct test_leaves leaves = {.blob = {{parts, PREFIX, 0}, [TSR_BLOB_RESIDUES] = {residues, size, 0}},
                                 .step = 1000,
                                 .rasters = parts + PREFIX,
                                 .raster_bytes = 16,
                                 .frames = 2};
    const enum tsr_status status = make_of(&leaves, &header, output, &error);
    expect(status == TSR_OK || (status == TSR_ERROR_CORRUPT && error.text[0]), "%s", tsr_status_name(status));
    *file = bytes_of(output);
    tsr_output_close(output);
    return status;
}

/* Deflated files: a stored block after two bytes, and three bytes after the stream. GZIP.md. */
enum { START = 2, ALL = 6 + 2 * 16, PLAIN = ALL - START, HEAD = 5, TAIL = 3 };
TEST(deflated_files)
{
    uint8_t parts[ALL], file[START + HEAD + PLAIN + TAIL];
    struct tsr_bytes plain = {.limit = PLAIN}, coded = {.limit = 1000}, residue = {.limit = 1000};
    struct bytes again;
    size_t used;
    for (int i = 0; i < ALL; i++) parts[i] = (uint8_t)(i * i);
    memcpy(file, parts, START);
    memcpy(file + START, "\x01\x24\x00\xdb\xff", HEAD); /* a stored block of 36 bytes, the last one */
    memcpy(file + START + HEAD, parts + START, PLAIN);
    memcpy(file + START + HEAD + PLAIN, "xyz", TAIL);
    assert_int_equal(tsr_deflate_read(file + START, sizeof file - START, &used, &plain, &coded, NULL), TSR_OK);
    assert_true(used == HEAD + PLAIN && plain.size == PLAIN);
    assert_int_equal(tsr_bytes_put(&residue, "\0", 2, NULL), TSR_OK); /* the only record, without a head */
    assert_int_equal(tsr_bytes_put_list(&residue, coded.bytes, coded.size, 0, NULL), TSR_OK);
    assert_int_equal(tsr_bytes_put(&residue, "xyz", TAIL, NULL), TSR_OK);
    assert_int_equal(restore_deflated(START, residue.bytes, residue.size, parts, &again), TSR_OK);
    assert_true(again.size == sizeof file && memcmp(again.data, file, sizeof file) == 0);
    free(again.data);
    for (size_t size = 0; size < residue.size - TAIL; size++) { /* the record is not whole */
        assert_int_equal(restore_deflated(START, residue.bytes, size, parts, &again), TSR_ERROR_CORRUPT);
        free(again.data);
    }
    for (size_t bit = 0; bit < 8 * residue.size; bit++) { /* the sanitizer sees any harm */
        residue.bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
        restore_deflated(START, residue.bytes, residue.size, parts, &again);
        free(again.data);
        residue.bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    static const uint64_t starts[] = {ALL + 1, UINT64_MAX}; /* after the end */
    for (size_t i = 0; i < COUNT_OF(starts); i++) {
        assert_int_equal(restore_deflated(starts[i], residue.bytes, residue.size, parts, &again), TSR_ERROR_CORRUPT);
        free(again.data);
    }
    tsr_bytes_free(&plain);
    tsr_bytes_free(&coded);
    tsr_bytes_free(&residue);
}

/* Frames of the given values, in turn, are a source: whether it has few values, and the frames that were read. */
static bool has_few(const struct tsr_image *image, const uint16_t *values, size_t count, size_t last_sample)
{
    const size_t bytes = image->bits_allocated / 8,
                 samples = (size_t)image->columns * image->rows * image->components * image->frames;
    uint8_t *const file = must(malloc(samples * bytes));
    struct tsr_header header = {.recipe = TSR_RECIPE_SPLICE, .exact = true, .image = *image};
    struct tsr_source *source;
    struct tsr_error error = {0};
    bool few = false;
    for (size_t i = 0; i < samples; i++) {
        const uint32_t value = i == last_sample ? 0x7171 : values[i % count];
        for (size_t k = 0; k < bytes; k++)
            file[bytes * i + k] = (uint8_t)(value >> 8 * (image->big_endian ? bytes - 1 - k : k));
    }
    struct tsr_input *input = must(tsr_input_from_memory(file, samples * bytes, "values"));
    assert_int_equal(tsr_splice_open(input, &header, 0, &source, &error), TSR_OK);
    assert_int_equal(tsr_has_few_values(source, &few, &error), TSR_OK);
    tsr_source_close(source);
    tsr_input_close(input);
    free(file);
    return few;
}

/* 16 pixels are few, 17 are not, in whichever frame the last one is. A pixel is all its samples together. */
TEST(few_values)
{
    static const uint16_t values[] = {9, 250, 7, 77, 30, 1, 0, 255, 100, 101, 102, 103, 104, 105, 106, 107, 108};
    for (int way = 0; way < 8; way++) {
        struct tsr_image image = image_of(20, 10, 3, way & 1 ? 16 : 8, 1);
        image.big_endian = way & 1 && way & 2;
        image.is_signed = way & 4;
        expect(has_few(&image, values, 16, SIZE_MAX), "way %d: 16 values", way);
        expect(!has_few(&image, values, 17, SIZE_MAX), "way %d: 17 values", way);
        expect(!has_few(&image, values, 16, 599), "way %d: another value at the end", way);
        expect(has_few(&image, values, 15, 400), "way %d: 15 values and one", way);
    }
    struct tsr_image image = image_of(24, 10, 1, 8, 3); /* of 3 values in turn, each pixel is the same */
    expect(has_few(&image, values, 3, SIZE_MAX), "one colour");
    expect(has_few(&image, values, 15, SIZE_MAX), "five colours");
    expect(!has_few(&image, values, 17, SIZE_MAX), "seventeen colours");
    image.planar = true;
    expect(!has_few(&image, values, 17, SIZE_MAX), "seventeen colours, planar");
    image = image_of(20, 10, 1, 16, 1); /* bits around the sample do not count */
    image.bits_stored = 4;
    image.high_bit = 7;
    expect(has_few(&image, values, 17, SIZE_MAX), "samples of 4 bits");
}

TEST(ranges_of_values)
{
    static const uint8_t bytes[] = {0x34, 0xf2, 0xff, 0x17, 0x00, 0xf8, 0x01, 0x70};
    static const struct {
        bool is_signed, big_endian;
        uint8_t bits_stored, high_bit;
        int32_t smallest, largest; /* of F234, 17FF, F800, 7001; of 34F2, FF17, 00F8, 0170 in big endian */
    } cases[] = {{false, false, 16, 15, 0x17ff, 0xf800}, {true, false, 16, 15, -3532, 0x7001},
                 {true, false, 12, 11, -2048, 2047},     {false, false, 12, 11, 1, 0x800},
                 {false, false, 8, 11, 0, 0x80},         {false, true, 16, 15, 0xf8, 0xff17},
                 {true, true, 16, 15, -233, 0x34f2}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct tsr_image image = image_of(4, 1, 1, 16, 1);
        struct tsr_value_range range = TSR_NO_VALUES;
        image.is_signed = cases[i].is_signed;
        image.big_endian = cases[i].big_endian;
        image.bits_stored = cases[i].bits_stored;
        image.high_bit = cases[i].high_bit;
        tsr_add_values(&image, bytes, &range);
        expect(range.low == cases[i].smallest && range.high == cases[i].largest, "case %zu: %d to %d", i, range.low,
               range.high);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(single_bits),      cmocka_unit_test(large_frames_of_single_bits),
        cmocka_unit_test(bytes_and_words),  cmocka_unit_test(refusals),
        cmocka_unit_test(wrong_parameters), cmocka_unit_test(deflated_files),
        cmocka_unit_test(few_values),       cmocka_unit_test(ranges_of_values)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
