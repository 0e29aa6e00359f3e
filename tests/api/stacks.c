/* Every call on a thread with little stack: what it takes of that, what it gives, and who calls the caller's functions.
 * usage: stacks FILE... */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */
#include <pthread.h>
#include <sys/mman.h>

#include "../../app/tessera_cli.h"
#include "check.h"

/* The stack of the thread, and what a call may take of it. Sanitizers make frames several times as large. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { STACK = 512 << 10, MOST = 512 << 10 };
#else
enum { STACK = 64 << 10, MOST = 48 << 10 };
#endif
enum { GUARD = 4 << 20, PAINT = 0x5a };

static struct tsr_engine *engine;
static struct tsr_error error;
static const char *file, *step;

/* ---- A thread with little stack --------------------------------------------------------------------------- */

static pthread_t small;

/* The caller's functions may take what the documentation leaves them: 8 KiB here. */
static void check_thread(void)
{
    volatile char room[8 << 10];
    room[0] = room[sizeof room - 1] = 0;
    CHECK(pthread_equal(pthread_self(), small), "%s, %s: another thread calls a function of the caller's", file, step);
}

static size_t deepest;
static uint8_t *low;

/* What the last step took, as the stack's paint tells. */
static void note_depth(void)
{
    size_t clean = 0;
    while (low[clean] == PAINT) clean++;
    if (STACK - clean > deepest) deepest = STACK - clean;
    CHECK(STACK - clean <= MOST, "%s, %s: %zu bytes of the stack", file, step, STACK - clean);
}

static void on_small_stack(void *(*work)(void *), void *context)
{
    pthread_attr_t attributes;
    uint8_t *const area = mmap(NULL, GUARD + STACK, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    low = area + GUARD;
    CHECK(area != MAP_FAILED && mprotect(low, STACK, PROT_READ | PROT_WRITE) == 0, "no memory");
    memset(low, PAINT, STACK);
    pthread_attr_init(&attributes);
    CHECK(pthread_attr_setstack(&attributes, low, STACK) == 0, "no stack");
    CHECK(pthread_create(&small, &attributes, work, context) == 0, "no thread");
    pthread_join(small, NULL);
    note_depth();
    pthread_attr_destroy(&attributes);
    munmap(area, GUARD + STACK);
}

/* ---- The caller's functions ------------------------------------------------------------------------------- */

static int64_t read_some(void *context, uint64_t offset, void *bytes, size_t count)
{
    const struct bytes *const from = context;
    check_thread();
    memcpy(bytes, from->data + offset, count);
    return (int64_t)count;
}

static int64_t write_some(void *context, const void *bytes, size_t count)
{
    struct bytes *const to = context;
    check_thread();
    to->data = must(realloc(to->data, to->count + count));
    memcpy(to->data + to->count, bytes, count);
    to->count += count;
    return (int64_t)count;
}

static void note_steps(void *context, uint32_t steps, uint64_t bytes_in, uint64_t bytes_out)
{
    (void)steps, (void)bytes_in, (void)bytes_out;
    if (tsr_engine_threads(engine) == 1) check_thread();
    ++*(int *)context;
}

static bool goes_on(void *context)
{
    (void)context;
    if (tsr_engine_threads(engine) == 1) check_thread();
    return false;
}

/* A result's function that begins another call. */
static void count_result(void *context, const struct tsr_result *result)
{
    const struct tsr_data_source source = tsr_from_path(file);
    struct tsr_buffer tsr;
    const struct tsr_data_sink sink = tsr_to_memory(&tsr);
    CHECK(result->status == TSR_OK, "%s: %s", file, result->error->text);
    if (tsr_engine_threads(engine) == 1) check_thread();
    if (result->index == 0) {
        DO(tsr_compress(engine, &source, &sink, NULL, NULL, &error));
        tsr_buffer_free(&tsr);
    }
    __atomic_add_fetch((int *)context, 1, __ATOMIC_SEQ_CST);
}

static enum tsr_status work_in_set(void *context, struct tsr_engine *with, struct tsr_report *report,
                                   struct tsr_error *why)
{
    const struct tsr_data_source source = tsr_from_path(context);
    struct tsr_buffer tsr;
    const struct tsr_data_sink sink = tsr_to_memory(&tsr);
    const enum tsr_status status = tsr_compress(with, &source, &sink, NULL, report, why);
    tsr_buffer_free(&tsr);
    return status;
}

/* ---- Calls ------------------------------------------------------------------------------------------------ */

static struct bytes load(const char *path)
{
    FILE *const stream = must(fopen(path, "rb"));
    struct bytes b = {must(malloc(1 << 24)), 0};
    b.count = fread(b.data, 1, 1 << 24, stream);
    fclose(stream);
    return b;
}

/* Compresses and restores by functions; another thread with much stack has made expected. */
static struct bytes there_and_back(const struct bytes *original, const struct tsr_compress_options *options,
                                   const struct tsr_buffer *expected)
{
    struct bytes tsr = {NULL, 0}, back = {NULL, 0};
    struct tsr_report report = TSR_REPORT;
    struct tsr_data_source source = tsr_from_calls(read_some, (void *)original, original->count);
    struct tsr_data_sink sink = tsr_to_calls(write_some, &tsr);
    step = "compress";
    DO(tsr_compress(engine, &source, &sink, options, &report, &error));
    CHECK(tsr.count == expected->count && memcmp(tsr.data, expected->bytes, tsr.count) == 0, "%s: other bytes", file);
    source = tsr_from_calls(read_some, &tsr, tsr.count);
    sink = tsr_to_calls(write_some, &back);
    step = "test";
    DO(tsr_test(engine, &source, &report, &error));
    step = "restore";
    DO(tsr_restore(engine, &source, &sink, &report, &error));
    CHECK(report.promise != TSR_PROMISE_FILE ||
              (back.count == original->count && !memcmp(back.data, original->data, back.count)),
          "%s: restored otherwise", file);
    free(back.data);
    return tsr;
}

/* Some of these have no image, or no header: then they fail, with a sentence. */
static void read_all(struct tsr_reader *reader, uint32_t member)
{
    enum { ROOM = 1 << 22 };
    struct tsr_info info = TSR_INFO;
    struct tsr_image image;
    struct tsr_image_window window = TSR_IMAGE_WINDOW;
    struct tsr_metadata *metadata;
    struct tsr_buffer text, out;
    const struct tsr_data_sink sink = tsr_to_memory(&out);
    const struct tsr_region corner = {0, 0, 1, 1};
    size_t got;
    uint8_t *const room = must(malloc(ROOM));
    step = "reader";
    DO(tsr_read_info(reader, member, &info, &error));
    const bool has_image = tsr_reader_image(reader, member, &image, &error) == TSR_OK;
    if (has_image && tsr_frame_bits(&image) <= 8 * (uint64_t)ROOM) {
        DO(tsr_read_region(reader, member, 0, &corner, room, ROOM, 0, &error));
        DO(tsr_read_frame(reader, member, image.frames - 1, room, ROOM, 0, &error));
    }
    step = "window";
    const bool is_original = tsr_reader_content(reader) == TSR_CONTENT_ORIGINAL;
    const enum tsr_status of_window = tsr_read_window(reader, member, 0, 0, &window, room, ROOM, &error);
    CHECK((of_window == TSR_OK) == is_original, "%s: a window: %s", file, error.text);
    DO(tsr_read_original(reader, member, 0, room, ROOM, &got, &error));
    step = "header";
    if (tsr_read_header(reader, member, &metadata, &error) == TSR_OK) tsr_metadata_free(metadata);
    if (tsr_list_header(reader, member, TSR_LISTING_TEXT, &text, &error) == TSR_OK) tsr_buffer_free(&text);
    if (tsr_list_header(reader, member, TSR_LISTING_JSON, &text, &error) == TSR_OK) tsr_buffer_free(&text);
    free(room);
    if (tsr_reader_content(reader) == TSR_CONTENT_ORIGINAL) return;
    step = "a member";
    DO(tsr_test_member(reader, member, NULL, &error));
    DO(tsr_restore_member(reader, member, &sink, NULL, &error));
    tsr_buffer_free(&out);
    for (int to = TSR_EXPORT_NATIVE; to <= TSR_EXPORT_HTJ2K; to++) {
        step = "export";
        if (tsr_export_member(reader, member, &sink, (enum tsr_export_syntax)to, NULL, &error) == TSR_OK)
            tsr_buffer_free(&out);
        else
            CHECK(error.status == TSR_ERROR_USAGE || error.status == TSR_ERROR_VERSION ||
                      strstr(error.text, "cannot be started"), /* the decoder of HTJ2K, by a static library */
                  "%s: %s", file, error.text);
    }
}

static void open_and_read(struct bytes *bytes)
{
    struct tsr_reader *reader;
    const struct tsr_data_source source = tsr_from_calls(read_some, bytes, bytes->count);
    step = "open";
    DO(tsr_open(engine, &source, &reader, &error));
    for (uint32_t i = 0; i < tsr_reader_members(reader); i++) read_all(reader, i);
    tsr_close(reader);
}

/* ---- Calls that fail ---- */

static bool is_cancelled(void *context)
{
    check_thread();
    return --*(int *)context < 0;
}

/* All calls that read this .tsr, or find that it is damaged or no .tsr. */
static void try_all(const struct tsr_data_source *source, const struct tsr_data_source *original)
{
    struct tsr_buffer buffer;
    const struct tsr_data_sink sink = tsr_to_memory(&buffer);
    struct tsr_report report = TSR_REPORT;
    struct tsr_info info = TSR_INFO;
    struct tsr_reader *reader;
    uint64_t id;
    tsr_read_id(source, &id, &error);
    tsr_test(engine, source, NULL, &error);
    if (tsr_restore(engine, source, &sink, NULL, &error) == TSR_OK) tsr_buffer_free(&buffer);
    for (int to = TSR_EXPORT_NATIVE; to <= TSR_EXPORT_HTJ2K; to++)
        if (tsr_export(engine, source, &sink, (enum tsr_export_syntax)to, NULL, &error) == TSR_OK)
            tsr_buffer_free(&buffer);
    if (tsr_open(engine, source, &reader, &error) != TSR_OK) return;
    tsr_read_info(reader, 0, &info, &error);
    tsr_compare_samples(reader, 0, original, &report, &error);
    tsr_test_member(reader, 0, NULL, &error);
    tsr_close(reader);
}

/* A .tsr that is whole, cut, changed, cancelled, and what is none; limits and options that are invalid. */
static void fail_all(const struct bytes *original, const struct tsr_buffer *tsr)
{
    struct bytes bad = {must(malloc(tsr->count)), tsr->count};
    const struct tsr_data_source as_file = tsr_from_memory(original->data, original->count);
    struct tsr_data_source source = tsr_from_calls(read_some, &bad, bad.count);
    struct tsr_compress_options wrong = TSR_COMPRESS_OPTIONS;
    struct tsr_engine_options tiny = TSR_ENGINE_OPTIONS;
    struct tsr_watch watch = TSR_WATCH;
    struct tsr_engine *none;
    struct tsr_buffer buffer;
    const struct tsr_data_sink sink = tsr_to_memory(&buffer);
    memcpy(bad.data, tsr->bytes, tsr->count);
    step = "no error";
    try_all(&source, &as_file);
    for (size_t i = 1; i <= 8; i++) {
        step = "a damaged file";
        bad.data[tsr->count * i / 9] ^= 1;
        try_all(&source, &as_file);
        bad.data[tsr->count * i / 9] ^= 1;
        step = "a cut file";
        source.byte_count = tsr->count * i / 9;
        try_all(&source, &as_file);
        source.byte_count = tsr->count;
        step = "a cancelled call";
        int questions = (int)i * 2;
        watch.is_cancelled = is_cancelled;
        watch.context = &questions;
        source.watch = &watch;
        if (tsr_engine_threads(engine) == 1) try_all(&source, &as_file);
        source.watch = NULL;
    }
    step = "no .tsr";
    try_all(&as_file, &source);
    step = "wrong options";
    wrong.effort = 10;
    tiny.memory_bytes = 1;
    FAILS(TSR_ERROR_USAGE, tsr_compress(engine, &as_file, &sink, &wrong, NULL, &error));
    FAILS(TSR_ERROR_USAGE, tsr_engine_create(&tiny, &none, &error));
    free(bad.data);
}

static void make_series(const char *path)
{
    enum { FILES = 3 };
    static const char *const names[FILES] = {"one", "two", "three"};
    struct tsr_series_file files[FILES];
    struct tsr_series_options options = TSR_SERIES_OPTIONS;
    struct bytes tsr = {NULL, 0};
    int steps = 0;
    const struct tsr_data_sink sink = tsr_to_calls(write_some, &tsr);
    for (int i = 0; i < FILES; i++) files[i] = (struct tsr_series_file){tsr_from_path(path), names[i]};
    options.progress = note_steps;
    options.is_cancelled = goes_on;
    options.context = &steps;
    step = "series";
    DO(tsr_compress_series(engine, files, FILES, &sink, &options, NULL, NULL, NULL, &error));
    CHECK(steps > 0, "no step was told");
    open_and_read(&tsr);
    free(tsr.data);
}

static void run_a_set(const char *path)
{
    enum { TASKS = 5 };
    struct tsr_task tasks[TASKS];
    struct tsr_buffer tsr[TASKS];
    struct tsr_set_options options = TSR_SET_OPTIONS;
    int told = 0;
    for (int i = 0; i < TASKS; i++) {
        tasks[i] = (struct tsr_task)TSR_TASK;
        tasks[i].kind = i == 1 ? TSR_TASK_CALL : TSR_TASK_COMPRESS;
        tasks[i].source = tsr_from_path(path);
        tasks[i].sink = tsr_to_memory(&tsr[i]);
        tasks[i].call = work_in_set;
        tasks[i].context = (void *)path;
    }
    options.is_cancelled = goes_on;
    step = "set";
    DO(tsr_run_set(engine, tasks, TASKS, &options, count_result, &told, &error));
    CHECK(told == TASKS, "%d results were told", told);
    for (int i = 0; i < TASKS; i++)
        if (i != 1) tsr_buffer_free(&tsr[i]);
}

static void code_a_frame(void)
{
    const struct tsr_image image = {.columns = 90,
                                    .rows = 70,
                                    .frames = 1,
                                    .components = 1,
                                    .bits_allocated = 16,
                                    .bits_stored = 12,
                                    .high_bit = 11};
    const size_t bytes = (size_t)(tsr_frame_bits(&image) / 8), bound = tsr_encode_bound(&image);
    uint8_t *const raster = must(malloc(bytes)), *const back = must(malloc(bytes)),
                   *const payload = must(malloc(bound));
    draw(raster, bytes, 3);
    for (size_t i = 1; i < bytes; i += 2) raster[i] &= 15;
    step = "a frame";
    for (int effort = 1; effort <= 9; effort += 4) {
        const struct tsr_coding coding = {.effort = effort};
        size_t size;
        DO(tsr_encode_frame(engine, &image, &coding, raster, payload, &size, &error));
        DO(tsr_decode_frame(engine, &image, payload, size, back, &error));
        CHECK(memcmp(raster, back, bytes) == 0, "another frame");
    }
    free(payload);
    free(back);
    free(raster);
}

/* ---- All of them ------------------------------------------------------------------------------------------ */

/* How a file is coded, and what a thread with much stack makes of it. */
enum { WAYS = 7 };
static struct tsr_compress_options ways[WAYS];
static struct tsr_buffer expected[WAYS];
static bool applies[WAYS];

static void list_ways(void)
{
    for (int i = 0; i < WAYS; i++) ways[i] = (struct tsr_compress_options)TSR_COMPRESS_OPTIONS;
    ways[0].effort = 1;
    ways[1].effort = 9;
    ways[2].loss = TSR_LOSS_QP, ways[2].qp_eighths = 20 * TSR_QP_UNIT;
    ways[3].loss = TSR_LOSS_PSNR, ways[3].psnr_hundredths = 4000;
    ways[4].loss = TSR_LOSS_MAX_ERROR, ways[4].max_error = 2, ways[4].effort = 4;
    ways[5].samples_only = true, ways[5].coder = TSR_CODER_CAVLC, ways[5].path = TSR_PATH_TRANSFORM;
    ways[6].loss = TSR_LOSS_QP, ways[6].qp_eighths = 20 * TSR_QP_UNIT, ways[6].effort = 8; /* predicted tiles */
    for (int i = 0; i < WAYS; i++) ways[i].allow_lossy = true;
}

static void *all_calls(void *context)
{
    struct bytes original = load(context);
    struct tsr_data_source source = tsr_from_path(context);
    const struct tsr_data_source *const both[] = {&source, &source};
    struct tsr_referrers referrers[2];
    uint32_t ranges[2];
    uint8_t hash[16];
    step = "hash";
    DO(tsr_hash(&source, hash, &error));
    step = "a set as a whole";
    DO(tsr_common_ranges(engine, both, 2, true, ranges, &error));
    DO(tsr_find_referrers(engine, both, 2, referrers, &error));
    CHECK(referrers[0].count == referrers[1].count, "copies have other references");
    for (int i = 0; i < WAYS; i++) {
        if (!applies[i]) continue;
        struct bytes tsr = there_and_back(&original, &ways[i], &expected[i]);
        if (i == 1 || i == 2 || i == 6) open_and_read(&tsr);
        if (i == 0 || i == 3) fail_all(&original, &expected[i]);
        free(tsr.data);
    }
    open_and_read(&original);
    make_series(context);
    run_a_set(context);
    code_a_frame();
    free(original.data);
    return NULL;
}

static void *make_and_destroy_engine(void *context)
{
    step = "an engine";
    DO(tsr_engine_create(NULL, &engine, &error)); /* a GPU's, where there is one */
    tsr_engine_destroy(engine);
    return context;
}

int main(int argc, char **argv)
{
    file = "no file";
    list_ways();
    on_small_stack(make_and_destroy_engine, NULL);
    for (int threads = 1; threads <= 3; threads += 2) {
        engine = make_engine(threads);
        for (int i = 1; i < argc; i++) {
            file = argv[i];
            struct bytes original = load(file);
            const struct tsr_data_source source = tsr_from_memory(original.data, original.count);
            for (int way = 0; way < WAYS; way++) {
                const struct tsr_data_sink sink = tsr_to_memory(&expected[way]);
                applies[way] = tsr_compress(engine, &source, &sink, &ways[way], NULL, &error) == TSR_OK;
                CHECK(applies[way] || error.status == TSR_ERROR_USAGE, "%s: %s", file, error.text);
            }
            on_small_stack(all_calls, argv[i]);
            for (int way = 0; way < WAYS; way++) tsr_buffer_free(&expected[way]);
            free(original.data);
        }
        tsr_engine_destroy(engine);
    }
    printf("the calls took up to %zu bytes of a stack\n", deepest);
    return 0;
}
