/* Readers whose file is replaced, removed or written over while they have it open: what they tell is of the file that
 * they have opened, or an error. usage: changes FOLDER */
#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "check.h"

static struct tsr_engine *engine;
static struct tsr_error error;
static const char *folder;

/* ---- Files ---- */

static const char *path_of(const char *name)
{
    static char paths[4][1000];
    static int next;
    char *const path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

static void put(const char *path, int flags, const struct bytes *data)
{
    const int file = open(path, O_WRONLY | flags, 0600);
    CHECK(file >= 0 && write(file, data->data, data->count) == (ssize_t)data->count && close(file) == 0, "%s", path);
}

/* Kinds of files. The two of a pair are alike but for their samples; of originals they have the same size. */
enum { CODED, LOSSY, STORED, SMALL, SERIES, PNM, DICOM, KINDS };
static const char *const kind_name[KINDS] = {"coded", "lossy", "stored", "small", "series", "pnm", "dicom"};
static const bool is_original[KINDS] = {[PNM] = true, [DICOM] = true};

static struct bytes make_noise(size_t count, uint32_t seed)
{
    struct bytes noise = {must(malloc(count)), count};
    for (size_t i = 0; i < count; i++) noise.data[i] = (uint8_t)((seed = seed * 1664525u + 1013904223u) >> 24);
    return noise;
}

static struct bytes make_series(uint32_t seed)
{
    const struct bytes one = make_dicom(200, 300, 3, seed), other = make_dicom(200, 300, 1, seed + 10);
    const struct tsr_series_file files[] = {{tsr_from_memory(one.data, one.count), "a/one.dcm"},
                                            {tsr_from_memory(other.data, other.count), "two.dcm"}};
    struct tsr_buffer tsr;
    const struct tsr_data_sink sink = tsr_to_memory(&tsr);
    DO(tsr_compress_series(engine, files, 2, &sink, NULL, NULL, NULL, NULL, &error));
    free(one.data);
    free(other.data);
    return (struct bytes){tsr.bytes, tsr.count};
}

static struct bytes make_file(int kind, uint32_t seed)
{
    struct tsr_compress_options options = TSR_COMPRESS_OPTIONS;
    if (kind == SERIES) return make_series(seed);
    struct bytes original = kind == STORED  ? make_noise(1500000, seed)
                            : kind == SMALL ? make_dicom(20, 20, 1, seed)
                            : kind == PNM   ? make_pnm(400, 300, 1, 12, seed)
                                            : make_dicom(200, 300, 3, seed);
    if (is_original[kind]) return original;
    if (kind == LOSSY) options.loss = TSR_LOSS_QP, options.qp_eighths = 4 * TSR_QP_UNIT;
    const struct tsr_buffer tsr = compress_bytes(engine, original.data, original.count, &options);
    free(original.data);
    return (struct bytes){tsr.bytes, tsr.count};
}

/* ---- What a reader tells ---- */

enum { INFO, FRAME, REGION, ORIGINAL, HEADER, LISTING, RESTORE, TEST, EXPORT, CALLS };
static const char *const call_name[CALLS] = {"info",    "frame",   "region", "original", "header",
                                             "listing", "restore", "test",   "export"};

struct told {
    enum tsr_status status;
    struct bytes bytes;
};

static struct told take_buffer(enum tsr_status status, struct tsr_buffer *buffer)
{
    return (struct told){status, {buffer->bytes, buffer->count}};
}

static struct told ask_image(struct tsr_reader *reader, int call)
{
    const struct tsr_region region = {11, 190, 100, 30};
    struct tsr_image image;
    struct told told = {.status = tsr_reader_image(reader, 0, &image, &error)};
    if (told.status != TSR_OK) return told;
    told.bytes.count = call == FRAME ? (size_t)((tsr_frame_bits(&image) + 7) / 8) : 100 * 30 * 2;
    told.bytes.data = must(malloc(told.bytes.count));
    told.status =
        call == FRAME
            ? tsr_read_frame(reader, 0, image.frames - 1, told.bytes.data, told.bytes.count, 0, &error)
            : tsr_read_region(reader, 0, image.frames - 1, &region, told.bytes.data, told.bytes.count, 0, &error);
    return told;
}

static struct told ask_header(struct tsr_reader *reader)
{
    struct tsr_metadata *m;
    struct told told = {.status = tsr_read_header(reader, 0, &m, &error)};
    if (told.status != TSR_OK) return told;
    told.bytes = (struct bytes){must(malloc(m->byte_count)), m->byte_count};
    memcpy(told.bytes.data, m->bytes, m->byte_count);
    tsr_metadata_free(m);
    return told;
}

static struct told ask_original(struct tsr_reader *reader)
{
    struct tsr_info info = TSR_INFO;
    struct told told = {.status = tsr_read_info(reader, 0, &info, &error)};
    if (told.status != TSR_OK) return told;
    told.bytes.data = must(malloc((size_t)info.original_bytes + 1));
    told.status =
        tsr_read_original(reader, 0, 100, told.bytes.data, (size_t)info.original_bytes, &told.bytes.count, &error);
    return told;
}

static struct told ask(struct tsr_reader *reader, int call)
{
    struct tsr_info info = TSR_INFO;
    struct tsr_buffer buffer = {NULL, 0};
    const struct tsr_data_sink sink = tsr_to_memory(&buffer);
    enum tsr_status status;
    switch (call) {
    case FRAME:
    case REGION:
        return ask_image(reader, call);
    case ORIGINAL:
        return ask_original(reader);
    case HEADER:
        return ask_header(reader);
    case LISTING:
        status = tsr_list_header(reader, 0, TSR_LISTING_TEXT, &buffer, &error);
        return take_buffer(status, &buffer);
    case RESTORE:
        status = tsr_restore_member(reader, 0, &sink, NULL, &error);
        return take_buffer(status, &buffer);
    case EXPORT:
        status = tsr_export_member(reader, 0, &sink, TSR_EXPORT_RLE, NULL, &error);
        return take_buffer(status, &buffer);
    case TEST:
        return (struct told){.status = tsr_test_member(reader, 0, NULL, &error)};
    default:
        status = tsr_read_info(reader, 0, &info, &error);
        struct told told = {status, {must(malloc(16)), 16}};
        memcpy(told.bytes.data, info.original_hash, 16);
        return told;
    }
}

static bool same(const struct told *a, const struct told *b)
{
    if (a->status != b->status || a->status != TSR_OK) return a->status == b->status;
    return a->bytes.count == b->bytes.count &&
           (!a->bytes.count || !memcmp(a->bytes.data, b->bytes.data, a->bytes.count));
}

static void forget(struct told told[CALLS])
{
    for (int call = 0; call < CALLS; call++) free(told[call].bytes.data);
}

static void ask_all(struct tsr_reader *reader, struct told told[CALLS])
{
    for (int call = 0; call < CALLS; call++) told[call] = ask(reader, call);
}

static struct tsr_reader *open_path(const char *path)
{
    const struct tsr_data_source source = tsr_from_path(path);
    struct tsr_reader *reader;
    DO(tsr_open(engine, &source, &reader, &error));
    return reader;
}

/* ---- Changes ---- */

enum { REPLACED, REMOVED, REWRITTEN, REWRITTEN_SAME_TIMES, CUT, CHANGES };
static const char *const change_name[CHANGES] = {"replaced", "removed", "written over", "written over, same times",
                                                 "cut"};

/* Times of files may be coarse. */
static void wait_for_clock(void)
{
    nanosleep(&(struct timespec){0, 20000000}, NULL);
}

static void change(int how, const struct bytes *other)
{
    const char *const path = path_of("file");
    struct stat was;
    CHECK(stat(path, &was) == 0, "%s", path);
    wait_for_clock();
    switch (how) {
    case REPLACED:
        put(path_of("other"), O_CREAT | O_TRUNC, other);
        CHECK(rename(path_of("other"), path) == 0, "%s", path);
        return;
    case REMOVED:
        CHECK(unlink(path) == 0, "%s", path);
        return;
    case CUT:
        CHECK(truncate(path, was.st_size / 3) == 0, "%s", path);
        return;
    default:
        put(path, O_TRUNC, other);
    }
    const struct timespec times[2] = {was.st_atim, was.st_mtim};
    if (how == REWRITTEN_SAME_TIMES) CHECK(utimensat(AT_FDCWD, path, times, 0) == 0, "%s", path);
}

/* What a reader may tell after a change: what it told before, or an error. Another name for the open file changes
 * nothing of a .tsr. Of an original that is written over, nothing counts any more. */
static void judge(int kind, int how, int call, const struct told *before, const struct told *now)
{
    const bool has_file = how == REPLACED || how == REMOVED;
    const bool is_same = same(before, now);
    CHECK(is_same || now->status == TSR_ERROR_READ, "%s, %s: %s tells something else, status %d: %s", kind_name[kind],
          change_name[how], call_name[call], now->status, error.text);
    CHECK(is_same || strstr(error.text, "while it was read"), "%s", error.text);
    if (has_file && !is_original[kind])
        CHECK(is_same, "%s, %s: %s: %s", kind_name[kind], change_name[how], call_name[call], error.text);
    if (!has_file && is_original[kind] && before->status == TSR_OK)
        CHECK(!is_same, "%s, %s: %s", kind_name[kind], change_name[how], call_name[call]);
    if (!has_file && (call == RESTORE || call == TEST || call == EXPORT) && before->status == TSR_OK)
        CHECK(!is_same, "%s, %s: %s", kind_name[kind], change_name[how], call_name[call]);
}

/* is_warm: the reader has been asked before. */
static void try_change(int kind, int how, bool is_warm)
{
    const struct bytes one = make_file(kind, 1), other = make_file(kind, 2);
    const char *const path = path_of("file");
    struct told before[CALLS], now[CALLS];
    put(path, O_CREAT | O_TRUNC, &one);
    struct tsr_reader *reader = open_path(path), *late = open_path(path);
    ask_all(late, before);
    tsr_close(late);
    if (is_warm) {
        ask_all(reader, now);
        for (int call = 0; call < CALLS; call++) CHECK(same(&before[call], &now[call]), "%s", call_name[call]);
        forget(now);
    }
    change(how, &other);
    for (int i = 0; i < CALLS; i++) {
        const int call = (i + kind + how) % CALLS;
        error.text[0] = '\0';
        now[call] = ask(reader, call);
        judge(kind, how, call, &before[call], &now[call]);
    }
    forget(now);
    tsr_close(reader);
    if (how == REPLACED || how == REWRITTEN || how == REWRITTEN_SAME_TIMES) {
        late = open_path(path);
        ask_all(late, now);
        for (int call = 0; call < CALLS; call++)
            if (call == FRAME || call == ORIGINAL || call == RESTORE)
                CHECK(before[call].status != TSR_OK || !same(&before[call], &now[call]), "a new reader tells the old");
        forget(now);
        tsr_close(late);
    }
    forget(before);
    unlink(path);
    free(one.data);
    free(other.data);
}

/* ---- Others ---- */

/* Many members at once, of a file that is replaced. */
static void restore_at_once(int kind)
{
    enum { COUNT = 24 };
    const struct bytes one = make_file(kind, 1), other = make_file(kind, 2);
    struct tsr_buffer buffers[COUNT];
    struct tsr_task tasks[COUNT];
    const char *const path = path_of("file");
    put(path, O_CREAT | O_TRUNC, &one);
    struct tsr_reader *const reader = open_path(path);
    const struct told wanted = ask(reader, RESTORE);
    change(REPLACED, &other);
    for (int i = 0; i < COUNT; i++) {
        struct tsr_task task = TSR_TASK;
        task.kind = i % 3 == 2 ? TSR_TASK_TEST : TSR_TASK_RESTORE;
        task.reader = reader;
        buffers[i] = (struct tsr_buffer){NULL, 0};
        task.sink = tsr_to_memory(&buffers[i]);
        tasks[i] = task;
    }
    DO(tsr_run_set(engine, tasks, COUNT, NULL, NULL, NULL, &error));
    for (int i = 0; i < COUNT; i++) {
        const struct told told = {TSR_OK, {buffers[i].bytes, buffers[i].count}};
        CHECK(i % 3 == 2 || same(&wanted, &told), "%s: restored at once, number %d is another", kind_name[kind], i);
        tsr_buffer_free(&buffers[i]);
    }
    tsr_close(reader);
    free(wanted.bytes.data);
    free(one.data);
    free(other.data);
    unlink(path);
}

/* The file that is open is never written over, whatever its name is now. */
static void keep_input(void)
{
    const struct bytes one = make_file(CODED, 1);
    struct stat status;
    put(path_of("file"), O_CREAT | O_TRUNC, &one);
    struct tsr_reader *const reader = open_path(path_of("file"));
    CHECK(rename(path_of("file"), path_of("moved")) == 0, "cannot rename");
    struct tsr_data_sink sink = tsr_to_path(path_of("moved"));
    sink.overwrite = true;
    FAILS(TSR_ERROR_SAME_FILE, tsr_restore_member(reader, 0, &sink, NULL, &error));
    FAILS(TSR_ERROR_SAME_FILE, tsr_export_member(reader, 0, &sink, TSR_EXPORT_RLE, NULL, &error));
    CHECK(stat(path_of("moved"), &status) == 0 && status.st_size == (off_t)one.count, "the input was written over");
    tsr_close(reader);
    unlink(path_of("moved"));
    free(one.data);
}

static uint64_t id_of(const struct bytes *file)
{
    const struct tsr_data_source source = tsr_from_memory(file->data, file->count);
    struct tsr_info info = TSR_INFO;
    struct tsr_reader *reader;
    uint64_t id = 0;
    DO(tsr_read_id(&source, &id, &error));
    DO(tsr_open(engine, &source, &reader, &error));
    DO(tsr_read_info(reader, TSR_ALL_MEMBERS, &info, &error));
    CHECK(info.id == id && tsr_reader_id(reader) == id && id != 0, "the id is another");
    DO(tsr_read_info(reader, 0, &info, &error));
    CHECK((info.id == id) == (tsr_reader_content(reader) == TSR_CONTENT_TSR), "the id of a member");
    tsr_close(reader);
    return id;
}

static void ids(void)
{
    for (int kind = CODED; kind < PNM; kind++) {
        struct bytes one = make_file(kind, 1), again = make_file(kind, 1), other = make_file(kind, 2);
        CHECK(id_of(&one) == id_of(&again) && id_of(&one) != id_of(&other), "%s", kind_name[kind]);
        const struct tsr_data_source source = tsr_from_memory(again.data, again.count);
        uint64_t id = 0;
        again.data[6] ^= 255; /* a header that is damaged has a copy */
        if (kind != SMALL) DO(tsr_read_id(&source, &id, &error));
        if (kind != SMALL) CHECK(id == id_of(&one), "%s: a damaged header", kind_name[kind]);
        free(one.data);
        free(again.data);
        free(other.data);
    }
    const struct bytes pnm = make_file(PNM, 1);
    const struct tsr_data_source source = tsr_from_memory(pnm.data, pnm.count);
    uint64_t id;
    FAILS(TSR_ERROR_NOT_TSR, tsr_read_id(&source, &id, &error));
    FAILS(TSR_ERROR_USAGE, tsr_read_id(&source, NULL, &error));
    FAILS(TSR_ERROR_USAGE, tsr_read_id(NULL, &id, &error));
    free(pnm.data);
}

int main(int argc, char **argv)
{
    CHECK(argc == 2, "usage: changes FOLDER");
    folder = argv[1];
    engine = make_engine(3);
    for (int kind = 0; kind < KINDS; kind++)
        for (int how = 0; how < CHANGES; how++)
            for (int is_warm = 0; is_warm < 2; is_warm++) try_change(kind, how, is_warm);
    restore_at_once(CODED);
    restore_at_once(STORED);
    restore_at_once(SMALL);
    restore_at_once(SERIES);
    keep_input();
    ids();
    tsr_engine_destroy(engine);
    return 0;
}
