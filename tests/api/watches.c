/* Calls that are cancelled, at many of their questions, and what they tell of their progress. usage: watches FOLDER */
#include <unistd.h>

#include "check.h"
#include "../../app/tessera_cli.h"

static struct tsr_engine *engine;
static struct tsr_error error;
static const char *folder, *what;

/* Who watches: says yes from question number cancels_at on. */
struct watcher {
    int questions, cancels_at; /* 0: never */
    uint64_t done[2], total[2];
};

static bool is_cancelled(void *context)
{
    struct watcher *const w = context;
    return ++w->questions >= w->cancels_at && w->cancels_at > 0;
}

static void note_progress(void *context, enum tsr_pass pass, uint64_t done, uint64_t total)
{
    struct watcher *const w = context;
    CHECK(done <= total && done >= w->done[pass], "%s: %llu of %llu after %llu", what, (unsigned long long)done,
          (unsigned long long)total, (unsigned long long)w->done[pass]);
    w->done[pass] = done;
    w->total[pass] = total;
}

enum { COMPRESS, RASTER, TO_PATH, RESTORE, TEST, EXPORT, HASH, OPEN, CALLS };
static const char *const names[CALLS] = {
    "compress", "compress a raster", "compress to a path", "restore", "test", "export", "hash", "open"};

/* A call of a source. image: of which the source is a raster. */
static enum tsr_status call(int number, const struct tsr_data_source *source, const struct tsr_image *image)
{
    struct tsr_buffer buffer = {NULL, 0};
    struct tsr_data_sink sink = tsr_to_memory(&buffer);
    struct tsr_reader *reader = NULL;
    uint8_t hash[16];
    char path[1000];
    enum tsr_status status = TSR_OK;
    snprintf(path, sizeof path, "%s/watched.tsr", folder);
    switch (number) {
    case COMPRESS:
        status = tsr_compress(engine, source, &sink, NULL, NULL, &error);
        break;
    case RASTER:
        status = tsr_compress_raster(engine, image, source, &sink, NULL, NULL, &error);
        break;
    case TO_PATH:
        sink = tsr_to_path(path);
        status = tsr_compress(engine, source, &sink, NULL, NULL, &error);
        CHECK((access(path, F_OK) == 0) == (status == TSR_OK), "%s: an output after an error", what);
        unlink(path);
        break;
    case RESTORE:
        status = tsr_restore(engine, source, &sink, NULL, &error);
        break;
    case TEST:
        status = tsr_test(engine, source, NULL, &error);
        break;
    case EXPORT:
        status = tsr_export(engine, source, &sink, TSR_EXPORT_RLE, NULL, &error);
        break;
    case HASH:
        status = tsr_hash(source, hash, &error);
        break;
    default:
        status = tsr_open(engine, source, &reader, &error);
        CHECK(!reader == (status != TSR_OK), "a reader after an error");
        tsr_close(reader);
    }
    CHECK(status == TSR_OK || !buffer.bytes, "%s: bytes after an error", what);
    tsr_buffer_free(&buffer);
    return status;
}

/* The same, cancelled at one of 15 questions or more. proves: it reads again what it has made. */
static void check_call(int number, struct tsr_data_source source, const struct tsr_image *image, bool proves)
{
    struct watcher w = {0};
    struct tsr_watch watch = TSR_WATCH;
    what = names[number];
    watch.is_cancelled = is_cancelled;
    watch.context = &w;
    source.watch = &watch;
    watch.progress = note_progress;
    DO(call(number, &source, image));
    CHECK(w.questions > 1, "%s asks %d times", what, w.questions);
    CHECK(w.total[TSR_PASS_READ] > 0, "%s tells no progress", what);
    CHECK(number == OPEN || w.done[TSR_PASS_READ] == w.total[TSR_PASS_READ], "%s: %llu of %llu bytes were read", what,
          (unsigned long long)w.done[TSR_PASS_READ], (unsigned long long)w.total[TSR_PASS_READ]);
    CHECK((w.total[TSR_PASS_PROVE] > 0) == proves, "%s: a proof", what);
    const int questions = w.questions, step = questions > 15 ? questions / 15 : 1;
    for (int at = 1; at <= questions; at += step) {
        w = (struct watcher){.cancels_at = at};
        FAILS(TSR_ERROR_CANCELLED, call(number, &source, image));
    }
    w = (struct watcher){.cancels_at = questions + 1};
    DO(call(number, &source, image));
}

/* Calls of a reader; after one that is cancelled the reader goes on. */
static void check_reader(struct tsr_data_source source)
{
    struct watcher w = {0};
    struct tsr_watch watch = TSR_WATCH;
    struct tsr_reader *reader;
    struct tsr_image image;
    struct tsr_buffer buffer;
    const struct tsr_data_sink sink = tsr_to_memory(&buffer);
    const struct tsr_region corner = {0, 0, 3, 3};
    size_t got;
    watch.is_cancelled = is_cancelled;
    watch.context = &w;
    source.watch = &watch;
    DO(tsr_open(engine, &source, &reader, &error));
    DO(tsr_reader_image(reader, 0, &image, &error));
    const size_t bytes = (size_t)(tsr_frame_bits(&image) / 8);
    uint8_t *const frame = must(malloc(bytes));
#define CHECK_READER(call)                                   \
    do {                                                     \
        what = #call;                                        \
        w = (struct watcher){.cancels_at = 1};               \
        FAILS(TSR_ERROR_CANCELLED, call);                    \
        w = (struct watcher){0};                             \
        DO(call);                                            \
        CHECK(w.questions > 0, "%s asks %d times", what, 0); \
    } while (0)
    CHECK_READER(tsr_read_frame(reader, 0, 1, frame, bytes, 0, &error));
    CHECK_READER(tsr_read_region(reader, 0, 2, &corner, frame, bytes, 0, &error));
    CHECK_READER(tsr_read_original(reader, 0, 9, frame, 100, &got, &error));
    CHECK_READER(tsr_test_member(reader, 0, NULL, &error));
    CHECK_READER(tsr_restore_member(reader, 0, &sink, NULL, &error));
    tsr_buffer_free(&buffer);
    CHECK_READER(tsr_export_member(reader, 0, &sink, TSR_EXPORT_NATIVE, NULL, &error));
    tsr_buffer_free(&buffer);
    free(frame);
    tsr_close(reader);
}

enum { RANGES, REFERRERS, SERIES, SET_CALLS };

/* A call of two sources, as images of one series that is coded with loss. */
static enum tsr_status call_of_two(int number, const struct tsr_data_source two[2])
{
    static const char *const set_names[SET_CALLS] = {"ranges", "referrers", "a series"};
    const struct tsr_data_source *const each[] = {&two[0], &two[1]};
    const struct tsr_series_file files[] = {{two[0], "one"}, {two[1], "other"}};
    struct tsr_compress_options lossy = TSR_COMPRESS_OPTIONS;
    struct tsr_series_options options = TSR_SERIES_OPTIONS;
    struct tsr_buffer buffer = {NULL, 0};
    const struct tsr_data_sink sink = tsr_to_memory(&buffer);
    struct tsr_referrers referrers[2];
    uint32_t ranges[2];
    what = set_names[number];
    if (number == RANGES) return tsr_common_ranges(engine, each, 2, true, ranges, &error);
    if (number == REFERRERS) return tsr_find_referrers(engine, each, 2, referrers, &error);
    lossy.loss = TSR_LOSS_QP, lossy.qp_eighths = 20 * TSR_QP_UNIT, lossy.allow_lossy = true;
    options.compress = &lossy;
    const enum tsr_status status = tsr_compress_series(engine, files, 2, &sink, &options, NULL, NULL, NULL, &error);
    CHECK(status == TSR_OK || !buffer.bytes, "%s: bytes after an error", what);
    tsr_buffer_free(&buffer);
    return status;
}

/* The second of two sources is watched. Only the series reads it as a whole, and tells that once. */
static void check_call_of_two(int number, const struct bytes *original)
{
    struct watcher w = {0};
    struct tsr_watch watch = TSR_WATCH;
    const struct tsr_data_source source = tsr_from_memory(original->data, original->count);
    struct tsr_data_source two[] = {source, source};
    watch.is_cancelled = is_cancelled;
    watch.context = &w;
    watch.progress = note_progress;
    two[1].watch = &watch;
    DO(call_of_two(number, two));
    CHECK(w.questions > 1, "%s asks %d times", what, w.questions);
    CHECK(w.total[TSR_PASS_READ] == (number == SERIES ? original->count : 0) &&
              w.done[TSR_PASS_READ] == w.total[TSR_PASS_READ] && w.total[TSR_PASS_PROVE] == 0,
          "%s: %llu of %llu bytes were read", what, (unsigned long long)w.done[TSR_PASS_READ],
          (unsigned long long)w.total[TSR_PASS_READ]);
    const int questions = w.questions;
    for (int at = 1; at <= questions; at++) {
        w = (struct watcher){.cancels_at = at};
        FAILS(TSR_ERROR_CANCELLED, call_of_two(number, two));
    }
    w = (struct watcher){.cancels_at = questions + 1};
    DO(call_of_two(number, two));
}

int main(int argc, char **argv)
{
    CHECK(argc == 2, "usage: watches FOLDER");
    folder = argv[1];
    engine = make_engine(1);
    const struct tsr_image image = {.columns = 200,
                                    .rows = 150,
                                    .frames = 20,
                                    .components = 1,
                                    .bits_allocated = 16,
                                    .bits_stored = 12,
                                    .high_bit = 11};
    const size_t raster = 200 * 150 * 20 * 2;
    const struct bytes originals[] = {make_dicom(200, 150, 20, 3), make_pnm(600, 400, 3, 8, 2)};
    for (int i = 0; i < 2; i++) {
        const struct tsr_data_source source = tsr_from_memory(originals[i].data, originals[i].count);
        struct tsr_buffer tsr = compress_bytes(engine, originals[i].data, originals[i].count, NULL);
        const struct tsr_data_source coded = tsr_from_memory(tsr.bytes, tsr.count);
        check_call(COMPRESS, source, NULL, true);
        check_call(TO_PATH, source, NULL, true);
        check_call(HASH, source, NULL, false);
        check_call(RESTORE, coded, NULL, false);
        check_call(TEST, coded, NULL, false);
        check_call(OPEN, coded, NULL, false);
        for (int number = 0; i == 0 && number < SET_CALLS; number++) check_call_of_two(number, &originals[i]);
        if (i == 0) {
            check_call(EXPORT, coded, NULL, true);
            check_call(RASTER, tsr_from_memory(originals[i].data + originals[i].count - raster, raster), &image, true);
            check_reader(coded);
        }
        tsr_buffer_free(&tsr);
        free(originals[i].data);
    }
    tsr_engine_destroy(engine);
    return 0;
}
