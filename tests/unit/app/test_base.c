/* Files with a base (lossless_rest of struct tsr_compress_options): which bytes a reader of the base reads, frames and
 * regions of both, and hostile bases. BASE.md. */
#include "app/tessera_cli.h"
#include "tests/unit/images.h"

#include "io/container/container.h"
#include "tests/sections/sections.h"

enum { COLUMNS = 700, ROWS = 500, FRAMES = 3, FRAME = COLUMNS * ROWS * 2 };

static struct tsr_engine *engine;
static uint8_t raster[FRAMES * FRAME];
static struct tsr_image image;
static struct tsr_buffer both, lossy;
static struct tsr_error error;

#define DO(call) assert_int_equal((call), TSR_OK)

/* A scan of a kind: a smooth picture and noise. */
static void fill_frames(void)
{
    struct rng r = {483};
    for (size_t i = 0; i < sizeof raster / 2; i++) {
        const uint32_t x = (uint32_t)(i % COLUMNS), y = (uint32_t)(i / COLUMNS),
                       value = 1000 + (x * x / 900 + y * 3) % 1500 + rng_below(&r, 40);
        raster[2 * i] = (uint8_t)value;
        raster[2 * i + 1] = (uint8_t)(value >> 8);
    }
}

static int make_files(void **state)
{
    (void)state;
    struct tsr_compress_options options = TSR_COMPRESS_OPTIONS;
    const struct tsr_data_source source = tsr_from_memory(raster, sizeof raster);
    const struct tsr_data_sink to_both = tsr_to_memory(&both), to_lossy = tsr_to_memory(&lossy);
    engine = make_engine(TSR_ENGINE_CPU, 2);
    image = (struct tsr_image){.columns = COLUMNS,
                               .rows = ROWS,
                               .frames = FRAMES,
                               .components = 1,
                               .bits_allocated = 16,
                               .bits_stored = 12,
                               .high_bit = 11};
    fill_frames();
    options.loss = TSR_LOSS_PSNR;
    options.psnr_hundredths = 4500;
    options.effort = 7; /* that of the base of effort 5 */
    if (!engine || tsr_compress_raster(engine, &image, &source, &to_lossy, &options, NULL, &error) != TSR_OK) return -1;
    options.lossless_rest = true;
    options.effort = 5;
    return tsr_compress_raster(engine, &image, &source, &to_both, &options, NULL, &error) == TSR_OK ? 0 : -1;
}

static int free_files(void **state)
{
    (void)state;
    tsr_buffer_free(&both);
    tsr_buffer_free(&lossy);
    tsr_engine_destroy(engine);
    return 0;
}

/* A file that counts what is read of it. */
struct counted {
    const struct tsr_buffer *file;
    uint64_t bytes, beyond; /* beyond: of them, those that no reader of the base needs */
    uint64_t base_end;
};

static int64_t read_counted(void *context, uint64_t offset, void *bytes, size_t count)
{
    enum { END = 1024 };
    struct counted *const c = context;
    const uint64_t end = offset + count;
    memcpy(bytes, c->file->bytes + offset, count);
    c->bytes += count;
    if (end > c->base_end && offset < c->file->count - END) c->beyond += count;
    return (int64_t)count;
}

static struct tsr_info info_of(const struct tsr_data_source *source)
{
    struct tsr_reader *reader;
    struct tsr_info info = TSR_INFO;
    DO(tsr_open(engine, source, &reader, &error));
    DO(tsr_read_info(reader, 0, &info, &error));
    tsr_close(reader);
    return info;
}

/* The base is the lossy file, and stands at the start. A reader of it reads its bytes, and the ends of the file. */
TEST(reads_of_the_base)
{
    struct counted counted = {.file = &both, .base_end = UINT64_MAX};
    struct tsr_data_source source = tsr_from_calls(read_counted, &counted, both.count);
    const struct tsr_info info = info_of(&source);
    struct tsr_reader *reader;
    struct tsr_buffer restored = {NULL, 0}, wanted = {NULL, 0};
    const struct tsr_data_sink sink = tsr_to_memory(&restored), to_wanted = tsr_to_memory(&wanted);
    uint8_t *const frame = malloc(FRAME);
    assert_int_equal(info.base_bytes, lossy.count);
    assert_true(info.promise == TSR_PROMISE_FILE && info.file_bytes == both.count);
    size_t at = 0;
    while (at + lossy.count <= both.count && memcmp(both.bytes + at, lossy.bytes, lossy.count) != 0) at++;
    assert_true(at < 256);
    counted = (struct counted){.file = &both, .base_end = at + lossy.count};
    source.base = true;
    DO(tsr_open(engine, &source, &reader, &error));
    DO(tsr_read_frame(reader, 0, 1, frame, FRAME, 0, &error));
    assert_int_equal(counted.beyond, 0);
    expect(counted.bytes < lossy.count / 2 + 4096, "a frame of three reads %llu bytes of a base of %zu",
           (unsigned long long)counted.bytes, lossy.count);
    tsr_close(reader);
    counted.bytes = 0;
    DO(tsr_restore(engine, &source, &sink, NULL, &error));
    assert_int_equal(counted.beyond, 0);
    assert_true(counted.bytes < 2 * lossy.count + 8192);
    const struct tsr_data_source alone = tsr_from_memory(lossy.bytes, lossy.count);
    DO(tsr_restore(engine, &alone, &to_wanted, NULL, &error));
    assert_int_equal(restored.count, wanted.count);
    assert_memory_equal(restored.bytes, wanted.bytes, wanted.count);
    tsr_buffer_free(&restored);
    tsr_buffer_free(&wanted);
    free(frame);
}

/* Frames and regions of the whole file are those of the original. */
TEST(frames_and_regions)
{
    struct rng r = {484};
    struct tsr_reader *reader;
    const struct tsr_data_source source = tsr_from_memory(both.bytes, both.count);
    uint8_t *const frame = malloc(FRAME);
    DO(tsr_open(engine, &source, &reader, &error));
    for (uint32_t f = 0; f < FRAMES; f++) {
        DO(tsr_read_frame(reader, 0, f, frame, FRAME, 0, &error));
        assert_memory_equal(frame, raster + f * FRAME, FRAME);
        for (int i = 0; i < 10; i++) {
            struct tsr_region region = {rng_below(&r, COLUMNS), rng_below(&r, ROWS), 0, 0};
            region.columns = 1 + rng_below(&r, COLUMNS - region.column);
            region.rows = 1 + rng_below(&r, ROWS - region.row);
            DO(tsr_read_region(reader, 0, f, &region, frame, FRAME, 0, &error));
            for (uint32_t y = 0; y < region.rows; y++)
                assert_memory_equal(frame + (size_t)y * region.columns * 2,
                                    raster + f * FRAME + ((region.row + y) * COLUMNS + region.column) * 2,
                                    region.columns * 2);
        }
    }
    tsr_close(reader);
    free(frame);
}

/* Puts a file with the sections of another one and another base. */
static struct tsr_output *with_base(const void *base, size_t size)
{
    struct tsr_input *const input = tsr_input_from_memory(both.bytes, both.count, "both");
    struct tsr_output *const output = tsr_output_to_memory();
    struct tsr_container_reader *reader;
    struct tsr_container_writer *writer;
    struct tsr_proof proof;
    struct tsr_piece model, tiles[64];
    DO(tsr_container_open(input, &reader, &error));
    DO(tsr_container_get_proof(reader, &proof, &error));
    DO(tsr_container_begin(output, tsr_container_header(reader), &writer, &error));
    DO(tsr_container_put_base(writer, base, size, &error));
    for (uint32_t f = 0; f < FRAMES; f++) {
        uint8_t *const room = malloc(tsr_container_frame_bytes(reader, f));
        DO(tsr_container_get_frame(reader, f, room, &model, tiles, &error));
        DO(tsr_container_put_frame(writer, model.bytes, model.size, &error));
        for (uint32_t t = 0; t < tsr_container_frame_tiles(reader, f); t++)
            DO(tsr_container_put_tile(writer, &tiles[t], 1, &error));
        free(room);
    }
    DO(tsr_container_end(writer, &proof, &error));
    tsr_container_writer_free(writer);
    tsr_container_close(reader);
    tsr_input_close(input);
    return output;
}

static enum tsr_status test_with(const void *base, size_t size)
{
    struct tsr_output *const output = with_base(base, size);
    const struct tsr_data_source source = tsr_from_memory(tsr_output_bytes(output), (size_t)tsr_output_size(output));
    const enum tsr_status status = tsr_test(engine, &source, NULL, &error);
    tsr_output_close(output);
    return status;
}

/* Bases that are none: other bytes, a file without loss, one with a base, one of another image, and none. All checksums
 * hold. */
TEST(hostile_bases)
{
    struct tsr_compress_options options = TSR_COMPRESS_OPTIONS;
    struct tsr_image smaller = image;
    struct tsr_buffer other = {NULL, 0};
    const struct tsr_data_sink sink = tsr_to_memory(&other);
    struct tsr_data_source source = tsr_from_memory(raster, sizeof raster);
    assert_int_equal(test_with(lossy.bytes, lossy.count), TSR_OK);
    assert_int_equal(test_with(raster, 5000), TSR_ERROR_CORRUPT);
    assert_int_equal(test_with(lossy.bytes, lossy.count / 2), TSR_ERROR_CORRUPT);
    assert_int_equal(test_with(both.bytes, both.count), TSR_ERROR_CORRUPT);
    DO(tsr_compress_raster(engine, &image, &source, &sink, NULL, NULL, &error));
    assert_int_equal(test_with(other.bytes, other.count), TSR_ERROR_CORRUPT);
    tsr_buffer_free(&other);
    options.loss = TSR_LOSS_QP;
    options.qp_eighths = 200;
    DO(tsr_compress_raster(engine, &image, &source, &sink, &options, NULL, &error));
    assert_int_equal(test_with(other.bytes, other.count), TSR_ERROR_CORRUPT); /* it decodes to another original */
    tsr_buffer_free(&other);
    smaller.frames = 2;
    source.byte_count = 2 * FRAME;
    DO(tsr_compress_raster(engine, &smaller, &source, &sink, &options, NULL, &error));
    assert_int_equal(test_with(other.bytes, other.count), TSR_ERROR_CORRUPT);
    tsr_buffer_free(&other);
}

/* A base of the same image, which would decode: neither the whole file nor the base is read, nor salvaged. */
static void refuse_base(uint32_t psnr_hundredths)
{
    struct tsr_compress_options options = TSR_COMPRESS_OPTIONS;
    struct tsr_buffer other = {NULL, 0};
    struct tsr_reader *reader;
    const struct tsr_data_sink sink = tsr_to_memory(&other);
    const struct tsr_data_source source = tsr_from_memory(raster, sizeof raster);
    options.loss = TSR_LOSS_PSNR;
    options.psnr_hundredths = psnr_hundredths;
    DO(tsr_compress_raster(engine, &image, &source, &sink, &options, NULL, &error));
    struct tsr_output *const output = with_base(other.bytes, other.count);
    struct tsr_data_source whole = tsr_from_memory(tsr_output_bytes(output), (size_t)tsr_output_size(output));
    assert_int_equal(tsr_test(engine, &whole, NULL, &error), TSR_ERROR_CORRUPT);
    assert_non_null(strstr(error.text, "its base is not the one that it was made with"));
    const struct tsr_region region = {0, 0, COLUMNS, 8};
    uint8_t part[8 * COLUMNS * 2];
    DO(tsr_open(engine, &whole, &reader, &error));
    assert_int_equal(tsr_read_region(reader, 0, 0, &region, part, sizeof part, 0, &error), TSR_ERROR_CORRUPT);
    assert_non_null(strstr(error.text, "its base is not the one that it was made with"));
    tsr_close(reader);
    struct tsr_buffer picture, mask;
    const struct tsr_data_sink to = tsr_to_memory(&picture), of_mask = tsr_to_memory(&mask);
    struct tsr_salvage_sinks sinks = TSR_SALVAGE_SINKS;
    struct tsr_salvaged found = TSR_SALVAGED;
    sinks.mask = &of_mask;
    assert_int_equal(tsr_salvage(engine, &whole, 0, &to, &sinks, &found, &error), TSR_ERROR_CORRUPT);
    assert_int_equal(found.samples_held, 0);
    whole.base = true;
    assert_int_equal(tsr_open(engine, &whole, &reader, &error), TSR_ERROR_CORRUPT);
    assert_non_null(strstr(error.text, "its base is not the one that it was made with"));
    tsr_output_close(output);
    tsr_buffer_free(&other);
}

TEST(base_of_another_file)
{
    raster[0] ^= 1; /* another original */
    refuse_base(4500);
    raster[0] ^= 1;
    refuse_base(4000); /* the same one with other options */
}

static void append_varint(struct bytes *b, uint64_t number)
{
    do {
        const uint8_t byte = (uint8_t)((number & 0x7f) | (number >> 7 ? 0x80 : 0));
        append(b, &byte, 1);
        number >>= 7;
    } while (number > 0);
}

static uint64_t take_varint(struct bytes b, size_t *at)
{
    uint64_t number = 0;
    for (int shift = 0;; shift += 7) {
        number |= (uint64_t)(b.data[*at] & 0x7f) << shift;
        if (!(b.data[(*at)++] & 0x80)) return number;
    }
}

/* The file with an index whose checks hold, in which the base's section, the first one, has another length, and the
 * second one, too. */
static struct bytes with_lengths(uint64_t more, uint64_t less)
{
    struct sections s;
    size_t at = 0;
    assert_true(split_sections(both.bytes, both.count, &s));
    const struct bytes right = make_index(&s);
    take_varint(right, &at);
    assert_int_equal(right.data[at++], 'L');
    s.other_index = copy_bytes(right.data, at);
    append_varint(&s.other_index, take_varint(right, &at) + more);
    append(&s.other_index, right.data + at++, 1);
    append_varint(&s.other_index, take_varint(right, &at) - less);
    append(&s.other_index, right.data + at, right.size - at);
    const struct bytes file = join_sections(&s, OLD_IDS);
    free(right.data);
    free_sections(&s);
    return file;
}

/* Lengths whose sum stays, so that all other sections are where they are; and such that lead out of the file. */
TEST(forged_index)
{
    static const uint64_t lengths[][2] = {{5, 5},      {-5ULL, -5ULL},  {10, 10},           {1000, 0},
                                          {-10ULL, 0}, {UINT32_MAX, 0}, {UINT64_MAX / 2, 0}};
    const struct tsr_data_source alone = tsr_from_memory(lossy.bytes, lossy.count);
    uint8_t *const frame = malloc(FRAME), *const wanted = malloc(FRAME);
    struct tsr_reader *base;
    DO(tsr_open(engine, &alone, &base, &error));
    DO(tsr_read_frame(base, 0, 1, wanted, FRAME, 0, &error));
    tsr_close(base);
    for (size_t i = 0; i < COUNT_OF(lengths); i++) {
        const struct bytes file = with_lengths(lengths[i][0], lengths[i][1]);
        struct tsr_data_source source = tsr_from_memory(file.data, file.size);
        struct tsr_reader *reader = NULL;
        assert_int_equal(tsr_test(engine, &source, NULL, &error), TSR_ERROR_CORRUPT);
        source.base = true;
        const enum tsr_status status = tsr_open(engine, &source, &reader, &error);
        assert_true(status == TSR_ERROR_CORRUPT || status == TSR_OK);
        if (status == TSR_OK) { /* the sections of the file, or of the base, were found without an index */
            DO(tsr_read_frame(reader, 0, 1, frame, FRAME, 0, &error));
            assert_memory_equal(frame, wanted, FRAME);
            tsr_close(reader);
        }
        free(file.data);
    }
    free(frame);
    free(wanted);
}

/* What has no base, and options that contradict each other. */
TEST(no_base)
{
    struct tsr_compress_options options = TSR_COMPRESS_OPTIONS;
    struct tsr_reader *reader;
    struct tsr_data_source source = tsr_from_memory(lossy.bytes, lossy.count);
    source.base = true;
    assert_int_equal(tsr_open(engine, &source, &reader, &error), TSR_ERROR_USAGE);
    source = tsr_from_memory(raster, sizeof raster);
    source.base = true;
    assert_int_equal(tsr_open(engine, &source, &reader, &error), TSR_ERROR_NOT_TSR);
    options.lossless_rest = true;
    assert_int_equal(tsr_check_options(&options, &error), TSR_ERROR_USAGE);
    options.loss = TSR_LOSS_QP;
    options.qp_eighths = 80;
    assert_int_equal(tsr_check_options(&options, &error), TSR_OK);
    options.samples_only = true;
    assert_int_equal(tsr_check_options(&options, &error), TSR_ERROR_USAGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_of_the_base),    cmocka_unit_test(frames_and_regions), cmocka_unit_test(hostile_bases),
        cmocka_unit_test(base_of_another_file), cmocka_unit_test(forged_index),       cmocka_unit_test(no_base),
    };
    return cmocka_run_group_tests(tests, make_files, free_files);
}
