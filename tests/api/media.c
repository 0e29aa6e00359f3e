/* Compressing and restoring between memory, calls, descriptors and paths. usage: media FOLDER */
#include <fcntl.h>
#include <unistd.h>

#include "../../app/tessera_cli.h"
#include "check.h"

static struct tsr_engine *engine;
static struct tsr_error error;

static void check_same(const void *one, size_t one_count, const struct bytes *other)
{
    CHECK(one_count == other->count && memcmp(one, other->data, one_count) == 0, "%zu bytes are not the %zu", one_count,
          other->count);
}

static void to_memory_and_back(const struct bytes *original)
{
    struct tsr_buffer tsr, back;
    struct tsr_report report = TSR_REPORT;
    struct tsr_data_source source = tsr_from_memory(original->data, original->count);
    struct tsr_data_sink sink = tsr_to_memory(&tsr);
    DO(tsr_compress(engine, &source, &sink, NULL, &report, &error));
    CHECK(report.verified && report.bytes_out == tsr.count && report.bytes_in == original->count, "another report");
    uint8_t hash[16];
    DO(tsr_hash(&source, hash, &error));
    CHECK(memcmp(hash, report.original_hash, sizeof hash) == 0, "the report has another hash");
    source = tsr_from_memory(tsr.bytes, tsr.count);
    DO(tsr_test(engine, &source, NULL, &error));
    sink = tsr_to_memory(&back);
    DO(tsr_restore(engine, &source, &sink, &report, &error));
    CHECK(report.promise == TSR_PROMISE_FILE, "not identical");
    check_same(back.bytes, back.count, original);
    tsr_buffer_free(&back);
    CHECK(!back.bytes && back.count == 0, "a freed buffer is empty");

    if (original->count > 10000) { /* a change in a tile */
        tsr.bytes[tsr.count / 2] ^= 1;
        FAILS(TSR_ERROR_CORRUPT, tsr_restore(engine, &source, &sink, NULL, &error));
        CHECK(!back.bytes && back.count == 0, "an error leaves the buffer empty");
    }
    tsr_buffer_free(&tsr);
    tsr_buffer_free(NULL);
}

/* ---- Calls ---- */

struct pile {
    const struct bytes *from;
    struct bytes taken;
    size_t room;
    int64_t fails_after; /* the number of calls before those that fail, of writes one; negative: none fails */
};

/* Reads a few bytes at a time. */
static int64_t read_some(void *context, uint64_t offset, void *bytes, size_t count)
{
    struct pile *pile = context;
    const size_t now = count > 1000 ? count / 2 : count;
    CHECK(offset + count <= pile->from->count, "more than there is was asked for");
    if (pile->fails_after == 0) return -1;
    if (pile->fails_after > 0) pile->fails_after--;
    memcpy(bytes, pile->from->data + offset, now);
    return (int64_t)now;
}

static int64_t write_some(void *context, const void *bytes, size_t count)
{
    struct pile *pile = context;
    const size_t now = count > 100 ? 100 : count;
    if (pile->fails_after >= 0 && pile->fails_after-- == 0) return -1;
    CHECK(pile->taken.count + now <= pile->room, "more than was expected is written");
    memcpy(pile->taken.data + pile->taken.count, bytes, now);
    pile->taken.count += now;
    return (int64_t)now;
}

static void by_calls(const struct bytes *original)
{
    struct pile in = {original, {NULL, 0}, 0, -1}, out = {NULL, {NULL, 0}, original->count + 4096, -1};
    out.taken.data = must(malloc(out.room));
    struct tsr_data_source source = tsr_from_calls(read_some, &in, original->count);
    struct tsr_data_sink sink = tsr_to_calls(write_some, &out);
    DO(tsr_compress(engine, &source, &sink, NULL, NULL, &error));
    const struct tsr_buffer expected = compress_bytes(engine, original->data, original->count, NULL);
    CHECK(out.taken.count == expected.count, "%zu bytes", out.taken.count);

    struct bytes tsr = {must(malloc(out.taken.count)), out.taken.count};
    memcpy(tsr.data, out.taken.data, tsr.count);
    struct pile back = {&tsr, {NULL, 0}, 0, -1};
    source = tsr_from_calls(read_some, &back, tsr.count);
    out.taken.count = 0;
    DO(tsr_restore(engine, &source, &sink, NULL, &error));
    check_same(out.taken.data, out.taken.count, original);

    sink.temporary = "."; /* a file instead of memory: the same bytes */
    out.taken.count = 0;
    DO(tsr_restore(engine, &source, &sink, NULL, &error));
    check_same(out.taken.data, out.taken.count, original);
    sink.temporary = "/nowhere/at/all";
    FAILS(TSR_ERROR_WRITE, tsr_restore(engine, &source, &sink, NULL, &error));
    CHECK(error.system != 0, "errno is not told");
    sink.temporary = NULL;

    back.fails_after = 1;
    out.taken.count = 0;
    FAILS(TSR_ERROR_READ, tsr_restore(engine, &source, &sink, NULL, &error));
    back.fails_after = -1;
    out.taken.count = 0;
    out.fails_after = 2;
    FAILS(TSR_ERROR_WRITE, tsr_restore(engine, &source, &sink, NULL, &error));
    free(tsr.data);
    free(out.taken.data);
    struct tsr_buffer freed = expected;
    tsr_buffer_free(&freed);
}

/* ---- Descriptors and paths ---- */

static struct bytes read_path(const char *path)
{
    FILE *file = fopen(path, "rb");
    CHECK(file, "%s is not there", path);
    fseek(file, 0, SEEK_END);
    struct bytes b = {NULL, (size_t)ftell(file)};
    b.data = must(malloc(b.count + 1));
    rewind(file);
    CHECK(fread(b.data, 1, b.count, file) == b.count, "cannot read %s", path);
    fclose(file);
    return b;
}

static void by_files(const struct bytes *original, const char *folder)
{
    char in[4096], tsr[4096], back[4096];
    snprintf(in, sizeof in, "%s/in", folder);
    snprintf(tsr, sizeof tsr, "%s/tsr", folder);
    snprintf(back, sizeof back, "%s/back", folder);
    FILE *file = fopen(in, "wb");
    CHECK(file && fwrite(original->data, 1, original->count, file) == original->count && fclose(file) == 0, "%s", in);

    /* A source is read from its start, whatever its position. A sink is written from its position on. */
    const int input = open(in, O_RDONLY), output = open(tsr, O_RDWR | O_CREAT | O_TRUNC, 0600);
    CHECK(input >= 0 && output >= 0 && lseek(input, 7, SEEK_SET) == 7, "cannot open");
    struct tsr_data_source source = tsr_from_descriptor(input);
    struct tsr_data_sink sink = tsr_to_descriptor(output);
    DO(tsr_compress(engine, &source, &sink, NULL, NULL, &error));
    CHECK(lseek(input, 0, SEEK_CUR) == 7, "the source's position has changed");
    CHECK(close(input) == 0, "the source was closed");
    source = tsr_from_descriptor(output);
    sink = tsr_to_path(back);
    DO(tsr_restore(engine, &source, &sink, NULL, &error));
    CHECK(close(output) == 0, "the sink was closed");
    const struct bytes restored = read_path(back);
    check_same(restored.data, restored.count, original);
    free(restored.data);

    source = tsr_from_path(tsr);
    FAILS(TSR_ERROR_EXISTS, tsr_restore(engine, &source, &sink, NULL, &error));
    sink.overwrite = true;
    DO(tsr_restore(engine, &source, &sink, NULL, &error));
    sink = tsr_to_path(tsr);
    sink.overwrite = true;
    FAILS(TSR_ERROR_SAME_FILE, tsr_restore(engine, &source, &sink, NULL, &error));
    FAILS(TSR_ERROR_SAME_FILE, tsr_compress(engine, &source, &sink, NULL, NULL, &error));
    sink = tsr_to_path(back);
    sink.overwrite = true;
    uint8_t hash[16];
    source = tsr_from_path("/nowhere/at/all");
    FAILS(TSR_ERROR_READ, tsr_hash(&source, hash, &error));
    FAILS(TSR_ERROR_USAGE, tsr_hash(&source, NULL, &error));
    sink = tsr_to_path(back);
    FAILS(TSR_ERROR_WRITE, tsr_make_folder(&sink, &error)); /* a file has that name */
    unlink(back);
    sink.path = in; /* which is a folder for a moment */
    unlink(in);
    DO(tsr_make_folder(&sink, &error));
    DO(tsr_make_folder(&sink, &error));
    CHECK(rmdir(in) == 0, "no folder was made");
    CHECK((file = fopen(in, "wb")) && fwrite(original->data, 1, original->count, file) == original->count &&
              fclose(file) == 0,
          "%s", in);
    sink = tsr_to_path(back);
    FAILS(TSR_ERROR_READ, tsr_compress(engine, &source, &sink, NULL, NULL, &error));
    source = tsr_from_path(in);
    FAILS(TSR_ERROR_NOT_TSR, tsr_test(engine, &source, NULL, &error));
    DO(tsr_sync_folders(&error));
    unlink(in);
    unlink(tsr);
    unlink(back);
}

/* ---- Rasters, with loss and without ---- */

static void rasters(void)
{
    struct tsr_image image = {0};
    image.columns = 300;
    image.rows = 200;
    image.frames = 3;
    image.components = 1;
    image.bits_allocated = 16;
    image.bits_stored = 12;
    image.high_bit = 11;
    struct bytes raster = {must(malloc(300 * 200 * 3 * 2)), 300 * 200 * 3 * 2};
    draw(raster.data, raster.count, 5);
    for (size_t i = 1; i < raster.count; i += 2) raster.data[i] &= 15;
    struct tsr_data_source source = tsr_from_memory(raster.data, raster.count);
    struct tsr_buffer tsr;
    const struct tsr_data_sink sink = tsr_to_memory(&tsr);
    struct tsr_report report = TSR_REPORT;
    DO(tsr_compress_raster(engine, &image, &source, &sink, NULL, &report, &error));
    CHECK(report.promise == TSR_PROMISE_FILE && report.way == TSR_WAY_CODED && report.has_image &&
              report.image.frames == 3,
          "a raster is coded");
    const struct tsr_data_source coded = tsr_from_memory(tsr.bytes, tsr.count);
    struct tsr_buffer back;
    const struct tsr_data_sink restored = tsr_to_memory(&back);
    DO(tsr_restore(engine, &coded, &restored, NULL, &error));
    check_same(back.bytes, back.count, &raster);
    tsr_buffer_free(&back);
    tsr_buffer_free(&tsr);

    struct tsr_compress_options options = TSR_COMPRESS_OPTIONS;
    options.loss = TSR_LOSS_MAX_ERROR;
    options.max_error = 3;
    DO(tsr_compress_raster(engine, &image, &source, &sink, &options, &report, &error));
    CHECK(report.promise == TSR_PROMISE_LOSSY && report.max_error <= 3 && report.psnr_db > 30, "with loss");
    tsr_buffer_free(&tsr);
    options.loss = TSR_LOSS_BYTES;
    options.max_error = 0;
    options.byte_limit = 40000;
    DO(tsr_compress_raster(engine, &image, &source, &sink, &options, &report, &error));
    CHECK(tsr.count <= 40000 && tsr.count > 39000, "%zu bytes", tsr.count);
    tsr_buffer_free(&tsr);
    source.byte_count--;
    FAILS(TSR_ERROR_USAGE, tsr_compress_raster(engine, &image, &source, &sink, NULL, NULL, &error));
    free(raster.data);
}

int main(int argc, char **argv)
{
    CHECK(argc == 2, "usage: media FOLDER");
    char version[32];
    snprintf(version, sizeof version, "%d.%d.%d", TSR_VERSION_MAJOR, TSR_VERSION_MINOR, TSR_VERSION_PATCH);
    CHECK(strcmp(tsr_version(), TSR_VERSION_STRING) == 0, "another version is linked: %s", tsr_version());
    CHECK(strcmp(tsr_version(), version) == 0, "the parts are %s, and %s is linked", version, tsr_version());
    engine = make_engine(2);
    struct bytes original[] = {make_pnm(600, 400, 1, 8, 1), make_pnm(90, 70, 3, 8, 2), make_dicom(64, 48, 3, 3)};
    for (size_t i = 0; i < sizeof original / sizeof original[0]; i++) {
        to_memory_and_back(&original[i]);
        by_calls(&original[i]);
        by_files(&original[i], argv[1]);
        free(original[i].data);
    }
    const struct bytes empty = {must(malloc(1)), 0};
    to_memory_and_back(&empty);
    free(empty.data);
    rasters();
    tsr_engine_destroy(engine);
    return 0;
}
