/* Invalid calls: every enum, size and pointer that a call checks. */
#include "../../app/tessera_cli.h"
#include "check.h"

static struct tsr_engine *engine;
static struct tsr_error error;
static struct tsr_buffer buffer;

/* Options with a field at an invalid value. */
#define BAD_OPTION(field, value)                                                          \
    do {                                                                                  \
        struct tsr_compress_options bad = TSR_COMPRESS_OPTIONS;                           \
        bad.field = value;                                                                \
        FAILS(TSR_ERROR_USAGE, tsr_check_options(&bad, &error));                          \
        FAILS(TSR_ERROR_USAGE, tsr_compress(engine, &source, &sink, &bad, NULL, &error)); \
    } while (0)

#define BAD_LOSS(kind, field, value)                             \
    do {                                                         \
        struct tsr_compress_options bad = TSR_COMPRESS_OPTIONS;  \
        bad.loss = kind;                                         \
        bad.field = value;                                       \
        FAILS(TSR_ERROR_USAGE, tsr_check_options(&bad, &error)); \
    } while (0)

static void options(const struct tsr_data_source *given)
{
    const struct tsr_data_source source = *given;
    const struct tsr_data_sink sink = tsr_to_memory(&buffer);
    struct tsr_compress_options good = TSR_COMPRESS_OPTIONS;
    DO(tsr_check_options(&good, &error));
    FAILS(TSR_ERROR_USAGE, tsr_check_options(NULL, &error));
    BAD_OPTION(size, 0);
    BAD_OPTION(size, sizeof good + 1);
    BAD_OPTION(effort, -1);
    BAD_OPTION(effort, 10);
    BAD_OPTION(coder, (enum tsr_coder)4);
    BAD_OPTION(coder, (enum tsr_coder) - 1);
    BAD_OPTION(path, (enum tsr_path)2);
    BAD_OPTION(path, (enum tsr_path) - 1);
    BAD_OPTION(loss, (enum tsr_loss)7);
    BAD_OPTION(loss, (enum tsr_loss) - 1);
    BAD_OPTION(verify, (enum tsr_verify)3);
    BAD_OPTION(verify, (enum tsr_verify) - 1);
    BAD_LOSS(TSR_LOSS_QP, qp_eighths, TSR_HIGHEST_QP + 1);
    BAD_LOSS(TSR_LOSS_QP, qp_eighths, -48 * TSR_QP_UNIT - 1);
    BAD_LOSS(TSR_LOSS_MAX_ERROR, max_error, 0);
    BAD_LOSS(TSR_LOSS_MAX_ERROR, max_error, TSR_MAX_ERROR_LIMIT + 1);
    BAD_LOSS(TSR_LOSS_PSNR, psnr_hundredths, 0);
    BAD_LOSS(TSR_LOSS_PSNR, psnr_hundredths, 20001);
    BAD_LOSS(TSR_LOSS_BYTES, byte_limit, 0);
    BAD_LOSS(TSR_LOSS_BYTES, byte_limit, UINT64_MAX);
    BAD_LOSS(TSR_LOSS_RATIO, ratio_thousandths, 0);
    BAD_LOSS(TSR_LOSS_QUALITY, quality, (enum tsr_quality)0);
    BAD_LOSS(TSR_LOSS_QUALITY, quality, (enum tsr_quality)4);
    BAD_LOSS(TSR_LOSSLESS, max_error, 2); /* a field without its loss */
    BAD_LOSS(TSR_LOSSLESS, qp_eighths, -8);
    BAD_LOSS(TSR_LOSS_QP, max_error, 2);
    BAD_LOSS(TSR_LOSS_QP, byte_limit, 1000);
    good.loss = TSR_LOSS_MAX_ERROR;
    good.max_error = 1;
    good.path = TSR_PATH_TRANSFORM;
    FAILS(TSR_ERROR_USAGE, tsr_check_options(&good, &error));
}

static void sources(const struct tsr_data_source *good)
{
    const struct tsr_data_sink sink = tsr_to_memory(&buffer);
    struct tsr_report report = TSR_REPORT;
    struct tsr_data_source bad = *good;
    const struct tsr_watch unsized = {0};
    struct tsr_reader *reader;
#define BAD_SOURCE()                                                                   \
    do {                                                                               \
        FAILS(TSR_ERROR_USAGE, tsr_compress(engine, &bad, &sink, NULL, NULL, &error)); \
        FAILS(TSR_ERROR_USAGE, tsr_restore(engine, &bad, &sink, NULL, &error));        \
        FAILS(TSR_ERROR_USAGE, tsr_test(engine, &bad, NULL, &error));                  \
        FAILS(TSR_ERROR_USAGE, tsr_open(engine, &bad, &reader, &error));               \
        CHECK(!reader, "a reader after an error");                                     \
        bad = *good;                                                                   \
    } while (0)
    bad.size = 0;
    BAD_SOURCE();
    bad.medium = (enum tsr_medium)4;
    BAD_SOURCE();
    bad.medium = (enum tsr_medium) - 1;
    BAD_SOURCE();
    bad.memory = NULL;
    BAD_SOURCE();
    bad = tsr_from_path(NULL);
    BAD_SOURCE();
    bad = tsr_from_descriptor(-1);
    BAD_SOURCE();
    bad = tsr_from_calls(NULL, NULL, 1);
    BAD_SOURCE();
    bad.watch = &unsized;
    BAD_SOURCE();
    FAILS(TSR_ERROR_USAGE, tsr_compress(engine, NULL, &sink, NULL, NULL, &error));
    FAILS(TSR_ERROR_USAGE, tsr_compress(NULL, good, &sink, NULL, NULL, &error));
    FAILS(TSR_ERROR_USAGE, tsr_open(NULL, good, &reader, &error));
    FAILS(TSR_ERROR_USAGE, tsr_open(engine, good, NULL, &error));
    FAILS(TSR_ERROR_USAGE, tsr_compress(engine, good, NULL, NULL, NULL, &error));
    report.size = 0;
    FAILS(TSR_ERROR_USAGE, tsr_compress(engine, good, &sink, NULL, &report, &error));
}

static void sinks_and_rasters(const struct tsr_data_source *good)
{
    const struct tsr_data_sink sink = tsr_to_memory(&buffer);
    struct tsr_data_sink wrong = sink;
#define BAD_SINK() FAILS(TSR_ERROR_USAGE, tsr_compress(engine, good, &wrong, NULL, NULL, &error))
    wrong.size = 0;
    BAD_SINK();
    wrong = sink, wrong.medium = (enum tsr_medium)7;
    BAD_SINK();
    wrong = tsr_to_memory(NULL);
    BAD_SINK();
    wrong = tsr_to_path(NULL);
    BAD_SINK();
    wrong = tsr_to_descriptor(-1);
    BAD_SINK();
    wrong = tsr_to_calls(NULL, NULL);
    BAD_SINK();
    wrong = tsr_to_path("x"), wrong.is_bounded = true, wrong.root = 2;
    BAD_SINK();

    struct tsr_image image = {
        .columns = 2, .rows = 2, .frames = 1, .components = 1, .bits_allocated = 8, .bits_stored = 8, .high_bit = 7};
    struct tsr_data_source raster = tsr_from_memory("abcd", 4);
#define BAD_RASTER() FAILS(TSR_ERROR_USAGE, tsr_compress_raster(engine, &image, &raster, &sink, NULL, NULL, &error))
    FAILS(TSR_ERROR_USAGE, tsr_compress_raster(engine, NULL, &raster, &sink, NULL, NULL, &error));
    FAILS(TSR_ERROR_USAGE, tsr_compress_raster(engine, &image, NULL, &sink, NULL, NULL, &error));
    image.bits_stored = 9;
    BAD_RASTER();
    image.bits_stored = 8, image.stacked_rows = 1;
    BAD_RASTER();
    image.stacked_rows = 0, raster.byte_count = 3;
    BAD_RASTER();
    raster.byte_count = 4;
    DO(tsr_compress_raster(engine, &image, &raster, &sink, NULL, NULL, &error));
    tsr_buffer_free(&buffer);
}

static void engines(void)
{
    struct tsr_engine *none;
    struct tsr_engine_options bad = TSR_ENGINE_OPTIONS;
    const struct tsr_engine_options good = TSR_ENGINE_OPTIONS;
    struct tsr_compress_options expected = TSR_COMPRESS_OPTIONS;
#define BAD_ENGINE()                                                    \
    do {                                                                \
        FAILS(TSR_ERROR_USAGE, tsr_engine_create(&bad, &none, &error)); \
        CHECK(!none, "an engine after an error");                       \
        bad = good;                                                     \
    } while (0)
    bad.size = 0;
    BAD_ENGINE();
    bad.choice = (enum tsr_engine_choice)3;
    BAD_ENGINE();
    bad.choice = (enum tsr_engine_choice) - 1;
    BAD_ENGINE();
    bad.threads = -1;
    BAD_ENGINE();
    bad.threads = 4097;
    BAD_ENGINE();
    bad.gpu_count = 1;
    BAD_ENGINE();
    bad.gpu_count = -1;
    BAD_ENGINE();
    bad.choice = TSR_ENGINE_CPU, bad.memory_bytes = 1;
    BAD_ENGINE();
    expected.size = 0;
    bad.expected = &expected;
    BAD_ENGINE();
    FAILS(TSR_ERROR_USAGE, tsr_engine_create(&good, NULL, &error));
    tsr_engine_destroy(NULL);
}

static void payloads(void)
{
    const struct tsr_image good = {
        .columns = 8, .rows = 8, .frames = 1, .components = 1, .bits_allocated = 8, .bits_stored = 8, .high_bit = 7};
    struct tsr_coding coding = {.coder = TSR_CODER_HUFFMAN};
    uint8_t raster[64] = {0}, payload[4096 * 64];
    uint16_t samples[64];
    size_t size;
    CHECK(tsr_encode_bound(&good) > 0 && tsr_encode_bound(NULL) == 0, "a bound");
#define BAD_IMAGE(field, value)                                                                                   \
    do {                                                                                                          \
        struct tsr_image bad = good;                                                                              \
        bad.field = value;                                                                                        \
        const enum tsr_status status = tsr_check_image(&bad, &error);                                             \
        CHECK(status == TSR_ERROR_USAGE || status == TSR_ERROR_LIMIT, "%s: %s", #field, tsr_status_name(status)); \
        CHECK(tsr_encode_bound(&bad) == 0, "%s: a bound", #field);                                                \
        FAILS(status, tsr_encode_frame(engine, &bad, &coding, raster, payload, &size, &error));                   \
        FAILS(status, tsr_decode_frame(engine, &bad, payload, 1, raster, &error));                                \
        FAILS(status, tsr_unpack_samples(&bad, raster, samples, &error));                                         \
    } while (0)
    BAD_IMAGE(columns, 0);
    BAD_IMAGE(rows, 65536);
    BAD_IMAGE(frames, 0);
    BAD_IMAGE(components, 0);
    BAD_IMAGE(components, 5);
    BAD_IMAGE(bits_allocated, 7);
    BAD_IMAGE(bits_stored, 9);
    BAD_IMAGE(high_bit, 3);
    BAD_IMAGE(reserved[0], 1);
    BAD_IMAGE(reserved[13], 1);
    BAD_IMAGE(is_float, true);
    coding.coder = (enum tsr_coder)9;
    FAILS(TSR_ERROR_USAGE, tsr_encode_frame(engine, &good, &coding, raster, payload, &size, &error));
    FAILS(TSR_ERROR_USAGE, tsr_resolve_coding(&coding, &error));
    FAILS(TSR_ERROR_USAGE, tsr_resolve_coding(NULL, &error));
    FAILS(TSR_ERROR_USAGE, tsr_check_image(NULL, &error));
    struct tsr_image values = good; /* of files and rasters alone */
    values.bits_allocated = values.bits_stored = 32;
    values.high_bit = 31;
    values.is_float = true;
    DO(tsr_check_image(&values, &error));
    FAILS(TSR_ERROR_USAGE, tsr_encode_frame(engine, &values, &coding, raster, payload, &size, &error));
    CHECK(tsr_encode_bound(&values) == 0, "a bound of floating-point samples");
    coding = (struct tsr_coding){.reserved = {[11] = 1}};
    FAILS(TSR_ERROR_USAGE, tsr_resolve_coding(&coding, &error));
    FAILS(TSR_ERROR_USAGE, tsr_encode_frame(engine, &good, &coding, raster, payload, &size, &error));
    coding = (struct tsr_coding){0};
    FAILS(TSR_ERROR_USAGE, tsr_encode_frame(engine, &good, &coding, NULL, payload, &size, &error));
    FAILS(TSR_ERROR_USAGE, tsr_decode_frame(engine, &good, payload, 1, NULL, &error));
    FAILS(TSR_ERROR_CORRUPT, tsr_decode_frame(engine, &good, payload, 0, raster, &error));
    DO(tsr_encode_frame(engine, &good, &coding, raster, payload, &size, &error));
    DO(tsr_decode_frame(engine, &good, payload, size, raster, &error));
}

static void readers(const struct tsr_data_source *tsr)
{
    struct tsr_reader *reader;
    struct tsr_info info = TSR_INFO;
    struct tsr_report report = TSR_REPORT;
    struct tsr_image image;
    struct tsr_metadata *metadata;
    struct tsr_buffer listed;
    const struct tsr_region region = {0, 0, 1, 1};
    uint8_t bytes[8];
    size_t got;
    DO(tsr_open(engine, tsr, &reader, &error));
    info.size = 0;
    FAILS(TSR_ERROR_USAGE, tsr_read_info(reader, 0, &info, &error));
    info.size = sizeof info;
    FAILS(TSR_ERROR_USAGE, tsr_read_info(reader, 1, &info, &error));
    FAILS(TSR_ERROR_USAGE, tsr_read_info(NULL, 0, &info, &error));
    FAILS(TSR_ERROR_USAGE, tsr_reader_image(reader, 1, &image, &error));
    FAILS(TSR_ERROR_USAGE, tsr_reader_image(reader, 0, NULL, &error));
    FAILS(TSR_ERROR_USAGE, tsr_read_header(reader, 1, &metadata, &error));
    FAILS(TSR_ERROR_USAGE, tsr_read_header(reader, 0, NULL, &error));
    FAILS(TSR_ERROR_USAGE, tsr_list_header(reader, 1, TSR_LISTING_TEXT, &listed, &error));
    FAILS(TSR_ERROR_USAGE, tsr_list_header(reader, 0, TSR_LISTING_TEXT, NULL, &error));
    FAILS(TSR_ERROR_USAGE, tsr_list_header(NULL, 0, TSR_LISTING_TEXT, &listed, &error));
    FAILS(TSR_ERROR_USAGE, tsr_list_header(reader, 0, (enum tsr_listing)2, &listed, &error));
    FAILS(TSR_ERROR_USAGE, tsr_read_frame(reader, 0, 0, NULL, 1, 0, &error));
    FAILS(TSR_ERROR_USAGE, tsr_read_region(reader, 0, 0, NULL, bytes, 8, 0, &error));
    FAILS(TSR_ERROR_USAGE, tsr_read_region(reader, 0, 0, &region, NULL, 8, 0, &error));
    FAILS(TSR_ERROR_USAGE, tsr_compare_samples(NULL, 0, tsr, &report, &error));
    FAILS(TSR_ERROR_USAGE, tsr_compare_samples(reader, 0, NULL, &report, &error));
    FAILS(TSR_ERROR_USAGE, tsr_compare_samples(reader, 0, tsr, NULL, &error));
    FAILS(TSR_ERROR_USAGE, tsr_compare_samples(reader, 1, tsr, &report, &error));
    FAILS(TSR_ERROR_VERIFY, tsr_compare_samples(reader, 0, tsr, &report, &error)); /* a .tsr is no image */
    FAILS(TSR_ERROR_USAGE, tsr_read_original(reader, 1, 0, bytes, 8, &got, &error));
    FAILS(TSR_ERROR_USAGE, tsr_read_original(reader, 0, 0, NULL, 8, &got, &error));
    FAILS(TSR_ERROR_USAGE, tsr_read_original(reader, 0, 0, bytes, 8, NULL, &error));
    FAILS(TSR_ERROR_USAGE, tsr_reader_stream(NULL, 0, 0, bytes, 8, &got, &error));
    FAILS(TSR_ERROR_USAGE, tsr_reader_stream(reader, 1, 0, bytes, 8, &got, &error));
    FAILS(TSR_ERROR_USAGE, tsr_reader_stream(reader, 0, 0, NULL, 8, &got, &error));
    FAILS(TSR_ERROR_USAGE, tsr_reader_stream(reader, 0, 0, bytes, 8, NULL, &error));
    FAILS(TSR_ERROR_USAGE, tsr_reader_stream(reader, 0, 0, bytes, 8, &got, &error)); /* its frames are no streams */
    FAILS(TSR_ERROR_USAGE, tsr_restore_member(reader, 0, NULL, NULL, &error));
    FAILS(TSR_ERROR_USAGE, tsr_test_member(reader, 1, NULL, &error));
    FAILS(TSR_ERROR_USAGE, tsr_export_member(reader, 0, NULL, TSR_EXPORT_RLE, NULL, &error));
    FAILS(TSR_ERROR_USAGE, tsr_export_member(NULL, 0, NULL, TSR_EXPORT_RLE, NULL, &error));
    CHECK(tsr_read_frame(reader, 0, 9, bytes, 8, 0, NULL) == TSR_ERROR_USAGE, "without an error");
    tsr_close(reader);
    tsr_metadata_free(NULL);
}

static void sets(const struct tsr_data_source *source)
{
    struct tsr_task task = TSR_TASK;
    struct tsr_set_options set = TSR_SET_OPTIONS;
    struct tsr_series_options series = TSR_SERIES_OPTIONS;
    const struct tsr_data_sink sink = tsr_to_memory(&buffer);
    struct tsr_series_file file = {*source, "a"};
    task.source = *source;
    task.sink = sink;
    set.size = 1;
    FAILS(TSR_ERROR_USAGE, tsr_run_set(engine, &task, 1, &set, NULL, NULL, &error));
    FAILS(TSR_ERROR_USAGE, tsr_run_set(engine, NULL, 1, NULL, NULL, NULL, &error));
    FAILS(TSR_ERROR_USAGE, tsr_run_set(NULL, &task, 1, NULL, NULL, NULL, &error));
    task.kind = (enum tsr_task_kind)4;
    FAILS(TSR_ERROR_USAGE, tsr_run_set(engine, &task, 1, NULL, NULL, NULL, &error));
    task.kind = TSR_TASK_CALL;
    FAILS(TSR_ERROR_USAGE, tsr_run_set(engine, &task, 1, NULL, NULL, NULL, &error));
    FAILS(TSR_ERROR_USAGE, tsr_compress_series(engine, &file, 0, &sink, NULL, NULL, NULL, NULL, &error));
    FAILS(TSR_ERROR_USAGE, tsr_compress_series(engine, NULL, 1, &sink, NULL, NULL, NULL, NULL, &error));
    FAILS(TSR_ERROR_USAGE, tsr_find_referrers(engine, NULL, 1, NULL, &error));
    FAILS(TSR_ERROR_USAGE, tsr_find_referrers(NULL, NULL, 0, NULL, &error));
    series.size = 0;
    FAILS(TSR_ERROR_USAGE, tsr_compress_series(engine, &file, 1, &sink, &series, NULL, NULL, NULL, &error));
    file.name = NULL;
    FAILS(TSR_ERROR_USAGE, tsr_compress_series(engine, &file, 1, &sink, NULL, NULL, NULL, NULL, &error));
    struct tsr_compress_options sized = TSR_COMPRESS_OPTIONS;
    sized.loss = TSR_LOSS_BYTES;
    sized.byte_limit = 1000;
    series.size = sizeof series;
    series.compress = &sized;
    file.name = "a";
    FAILS(TSR_ERROR_USAGE, tsr_compress_series(engine, &file, 1, &sink, &series, NULL, NULL, NULL, &error));
}

int main(void)
{
    engine = make_engine(1);
    struct bytes original = make_pnm(30, 20, 1, 8, 1);
    const struct tsr_data_source source = tsr_from_memory(original.data, original.count);
    options(&source);
    sources(&source);
    sinks_and_rasters(&source);
    engines();
    payloads();
    sets(&source);
    struct tsr_buffer tsr = compress_bytes(engine, original.data, original.count, NULL);
    const struct tsr_data_source coded = tsr_from_memory(tsr.bytes, tsr.count);
    readers(&coded);
    CHECK(!buffer.bytes, "a buffer after an error");
    tsr_buffer_free(&tsr);
    free(original.data);
    tsr_engine_destroy(engine);
    return 0;
}
