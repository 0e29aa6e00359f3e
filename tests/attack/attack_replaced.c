/* The attack on what stays open. A .tsr, a series or an original is replaced, written over, cut or removed while a
 * reader has it open, or while it is mounted, between calls and amid them. What an open file tells must be of the one
 * that it was when it was opened, or an error; what is opened afterwards must be of the new one. Of a mounted series
 * that is cut, no folder may look whole.
 *
 * usage: tsr_attack_replaced TESSERA DATA WORK COUNT [seed=N] [run=N] [part=readers|mounts]
 *   TESSERA   the program
 *   DATA      the synthetic set
 *   WORK      a folder
 *   COUNT     runs with readers; a mount has as many steps
 *
 * A finding names the arguments that repeat it. Exit status: 0; 1 if something was found; 2 if it cannot work. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "app/tessera.h"

enum { PATH_LIMIT = 1024, FINDINGS_LIMIT = 20 };

static const char *program, *data, *work;
static struct tsr_engine *engine;
static uint64_t seed = 1;
static long run_number;
static int findings;

static void stop(const char *what)
{
    fprintf(stderr, "tsr_attack_replaced: %s: %s\n", what, strerror(errno));
    exit(2);
}

#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
static void
wrong(const char *part, const char *format, ...)
{
    va_list arguments;
    if (findings++ >= FINDINGS_LIMIT) return;
    va_start(arguments, format);
    fprintf(stderr, "WRONG: ");
    vfprintf(stderr, format, arguments);
    fprintf(stderr, "; part=%s seed=%llu run=%ld\n", part, (unsigned long long)seed, run_number);
    va_end(arguments);
}

/* splitmix64 */
static uint64_t next(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* ---- Files ------------------------------------------------------------------------------------------------ */

struct bytes {
    uint8_t *data;
    size_t count;
};

/* Lasts for seven more calls. */
static const char *path_of(const char *folder, const char *name)
{
    static _Thread_local char paths[8][PATH_LIMIT];
    static _Thread_local int at;
    char path[PATH_LIMIT];
    snprintf(path, sizeof path, "%.500s/%.500s", folder, name);
    return strcpy(paths[at++ % 8], path);
}

static struct bytes read_path(const char *path)
{
    struct stat status;
    const int file = open(path, O_RDONLY);
    if (file < 0 || fstat(file, &status) != 0) stop(path);
    struct bytes read_bytes = {malloc((size_t)status.st_size + 1), (size_t)status.st_size};
    if (!read_bytes.data || read(file, read_bytes.data, read_bytes.count) != (ssize_t)read_bytes.count) stop(path);
    close(file);
    return read_bytes;
}

static void write_path(const char *path, const struct bytes *bytes)
{
    const int file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    if (file < 0 || write(file, bytes->data, bytes->count) != (ssize_t)bytes->count || close(file) != 0) stop(path);
}

static struct bytes compress(const struct bytes *original, uint32_t max_error)
{
    struct tsr_compress_options options = TSR_COMPRESS_OPTIONS;
    struct tsr_error error;
    struct tsr_buffer tsr = {NULL, 0};
    const struct tsr_data_source source = tsr_from_memory(original->data, original->count);
    const struct tsr_data_sink sink = tsr_to_memory(&tsr);
    options.loss = max_error > 0 ? TSR_LOSS_MAX_ERROR : TSR_LOSSLESS;
    options.max_error = max_error;
    if (tsr_compress(engine, &source, &sink, &options, NULL, &error) != TSR_OK) stop(error.text);
    return (struct bytes){tsr.bytes, tsr.count};
}

static struct bytes compress_series(const struct bytes *first, const struct bytes *second)
{
    struct tsr_error error;
    struct tsr_buffer tsr = {NULL, 0};
    const struct tsr_data_sink sink = tsr_to_memory(&tsr);
    const struct tsr_series_file files[] = {{tsr_from_memory(first->data, first->count), "a/x"},
                                            {tsr_from_memory(second->data, second->count), "y"}};
    if (tsr_compress_series(engine, files, 2, &sink, NULL, NULL, NULL, NULL, &error) != TSR_OK) stop(error.text);
    return (struct bytes){tsr.bytes, tsr.count};
}

/* A file of random bytes, which is stored. */
static struct bytes make_noise(size_t count, uint64_t state)
{
    struct bytes noise = {malloc(count), count};
    if (!noise.data) stop("no memory");
    for (size_t i = 0; i < count; i++) noise.data[i] = (uint8_t)next(&state);
    return noise;
}

/* Two states of a file, and the original of its first member or of it. */
enum { CODED, LOSSY, STORED, SMALL, SERIES, DICOM, PNM, PNG, KINDS };
static const char *const kind_name[KINDS] = {"coded", "lossy", "stored", "small", "series", "dicom", "pnm", "png"};
static struct pair {
    struct bytes file[2], original[2];
} pairs[KINDS];

static void make_pairs(void)
{
    static const char *const names[3][2] = {{"dicom/ct/slice_01.dcm", "dicom/ct/slice_02.dcm"},
                                            {"pnm/texture_200.pgm", "odd/63x65_16bit.pgm"},
                                            {"png/formats/rgb8.png", "png/interlaced/rgb8.png"}};
    for (int s = 0; s < 2; s++) {
        const struct bytes ct = read_path(path_of(data, names[0][s])), noise = make_noise(700000, (uint64_t)s),
                           small = read_path(path_of(data, s ? "dicom/mr/small_02.dcm" : "dicom/mr/small_01.dcm"));
        for (int k = 0; k < KINDS; k++) pairs[k].original[s] = k == STORED ? noise : k == SMALL ? small : ct;
        pairs[CODED].file[s] = compress(&ct, 0);
        pairs[LOSSY].file[s] = compress(&ct, 3);
        pairs[STORED].file[s] = compress(&noise, 0);
        pairs[SMALL].file[s] = compress(&small, 0);
        pairs[SERIES].file[s] = compress_series(&ct, &small);
        for (int k = DICOM; k < KINDS; k++) pairs[k].file[s] = read_path(path_of(data, names[k - DICOM][s]));
    }
}

/* ---- Changes ---------------------------------------------------------------------------------------------- */

enum { RENAME, EXCHANGE, OVERWRITE, SAME_TIMES, CUT, REMOVE, CHANGES };

/* A file that changes. now: its state; -1: it is cut, or not there. */
struct place {
    const struct pair *pair;
    char path[PATH_LIMIT], spare[PATH_LIMIT];
    int now;
};

/* Times of files may be coarse, and nothing else tells that an original has changed. */
static void rest(void)
{
    nanosleep(&(struct timespec){0, 12000000}, NULL);
}

static void put(struct place *place, int state, int how)
{
    struct stat was;
    const bool is_there = stat(place->path, &was) == 0;
    place->now = state;
    if (how == OVERWRITE || (how == SAME_TIMES && is_there)) {
        write_path(place->path, &place->pair->file[state]);
        const struct timespec times[2] = {was.st_atim, was.st_mtim};
        if (how == SAME_TIMES) utimensat(AT_FDCWD, place->path, times, 0);
        return;
    }
    write_path(place->spare, &place->pair->file[state]);
    if (is_there) utimensat(AT_FDCWD, place->spare, (const struct timespec[2]){was.st_atim, was.st_mtim}, 0);
    if (how == EXCHANGE && is_there)
        syscall(SYS_renameat2, AT_FDCWD, place->spare, AT_FDCWD, place->path, 2 /* exchange */);
    else if (rename(place->spare, place->path) != 0)
        stop(place->path);
}

static void change(struct place *place, uint64_t *random)
{
    const int how = (int)(next(random) % CHANGES);
    if (how < CUT) {
        put(place, place->now < 0 ? (int)(next(random) % 2) : !place->now, how);
        return;
    }
    if (how == REMOVE)
        unlink(place->path);
    else if (truncate(place->path, (off_t)(place->pair->file[0].count / 3)) != 0 && errno != ENOENT)
        stop(place->path);
    place->now = -1;
}

/* ---- What a reader tells ---------------------------------------------------------------------------------- */

enum { INFO, FRAME, REGION, RANGE, HEADER, RESTORE, TEST, EXPORT, CALLS };
static const char *const call_name[CALLS] = {"info", "frame", "region", "range", "header", "restore", "test", "export"};

struct told {
    enum tsr_status status;
    struct bytes bytes;
};

static struct told take(enum tsr_status status, const void *bytes, size_t count)
{
    struct told told = {status, {malloc(count + 1), status == TSR_OK ? count : 0}};
    if (!told.bytes.data) stop("no memory");
    if (told.bytes.count > 0) memcpy(told.bytes.data, bytes, count);
    return told;
}

static struct told ask_part(struct tsr_reader *reader, uint32_t member, int call, uint64_t random)
{
    static uint8_t bytes[4 << 20];
    struct tsr_image image;
    size_t got = 0;
    enum tsr_status status;
    if (call == RANGE) {
        status = tsr_read_original(reader, member, random % 100000, bytes, (size_t)(random % 300000), &got, NULL);
        return take(status, bytes, got);
    }
    status = tsr_reader_image(reader, member, &image, NULL);
    if (status != TSR_OK) return take(status, NULL, 0);
    const struct tsr_region region = {0, (uint32_t)(random % image.rows), image.columns, 1};
    got = (size_t)((tsr_frame_bits(&image) + 7) / 8);
    if (call == REGION) got /= image.rows;
    status = call == FRAME ? tsr_read_frame(reader, member, 0, bytes, sizeof bytes, 0, NULL)
                           : tsr_read_region(reader, member, 0, &region, bytes, sizeof bytes, 0, NULL);
    return take(status, bytes, got);
}

static struct told ask(struct tsr_reader *reader, int call, uint64_t random)
{
    const uint32_t member = tsr_reader_content(reader) == TSR_CONTENT_SERIES ? (uint32_t)(random >> 40) % 2 : 0;
    struct tsr_info info = TSR_INFO;
    struct tsr_metadata *header = NULL;
    struct tsr_buffer buffer = {NULL, 0};
    const struct tsr_data_sink sink = tsr_to_memory(&buffer);
    struct told told;
    switch (call) {
    case INFO:
        return take(tsr_read_info(reader, member, &info, NULL), info.original_hash, sizeof info.original_hash);
    case HEADER:
        told.status = tsr_read_header(reader, member, &header, NULL);
        told = take(told.status, header ? header->bytes : NULL, header ? header->byte_count : 0);
        tsr_metadata_free(header);
        return told;
    case TEST:
        return take(tsr_test_member(reader, member, NULL, NULL), NULL, 0);
    case RESTORE:
    case EXPORT:
        told.status = call == RESTORE ? tsr_restore_member(reader, member, &sink, NULL, NULL)
                                      : tsr_export_member(reader, member, &sink, TSR_EXPORT_JPEG_LS, NULL, NULL);
        told = take(told.status, buffer.bytes, buffer.count);
        tsr_buffer_free(&buffer);
        return told;
    default:
        return ask_part(reader, member, call, random);
    }
}

static bool same(const struct told *a, const struct told *b)
{
    return a->status == b->status && a->bytes.count == b->bytes.count &&
           (!a->bytes.count || !memcmp(a->bytes.data, b->bytes.data, a->bytes.count));
}

static struct tsr_reader *open_source(const struct tsr_data_source *source)
{
    struct tsr_reader *reader = NULL;
    return tsr_open(engine, source, &reader, NULL) == TSR_OK ? reader : NULL;
}

static struct tsr_reader *open_state(const struct pair *pair, int state)
{
    const struct tsr_data_source source = tsr_from_memory(pair->file[state].data, pair->file[state].count);
    return open_source(&source);
}

/* Asks a reader, and one of the state that it must be of. Errors are right where the file may have changed. */
static void compare(struct tsr_reader *reader, struct tsr_reader *reference, const char *kind, bool may_fail, int call,
                    uint64_t random)
{
    struct told wanted = ask(reference, call, random), told = ask(reader, call, random);
    if (!same(&wanted, &told) && (told.status == TSR_OK || !may_fail))
        wrong("readers", "%s: %s tells something else, status %d", kind, call_name[call], told.status);
    free(wanted.bytes.data);
    free(told.bytes.data);
}

static void attack_reader(int kind, uint64_t *random)
{
    struct place place = {.pair = &pairs[kind]};
    strcpy(place.path, path_of(work, "file"));
    strcpy(place.spare, path_of(work, "spare"));
    unlink(place.path);
    put(&place, 0, RENAME);
    const struct tsr_data_source source = tsr_from_path(place.path);
    struct tsr_reader *const reader = open_source(&source), *const old = open_state(place.pair, 0);
    if (!reader || !old) stop("no reader");
    bool has_changed = false;
    for (int step = 3 + (int)(next(random) % 10); step > 0; step--) {
        if (next(random) % 3 == 0) {
            if (kind >= DICOM) rest();
            change(&place, random);
            has_changed = true;
        } else {
            const int call = (int)(next(random) % CALLS);
            compare(reader, old, kind_name[kind], has_changed, call, next(random));
        }
    }
    tsr_close(reader);
    tsr_close(old);
    if (place.now < 0) return;
    struct tsr_reader *const again = open_source(&source), *const now = open_state(place.pair, place.now);
    if (!again || !now) stop("no reader");
    for (int call = 0; call < CALLS; call++) compare(again, now, kind_name[kind], false, call, next(random));
    tsr_close(again);
    tsr_close(now);
}

/* ---- Changes amid calls ----------------------------------------------------------------------------------- */

static atomic_bool is_over;

static void *keep_changing(void *context)
{
    struct place *const place = context;
    for (uint64_t i = 0; !atomic_load(&is_over); i++) {
        put(place, !place->now, place->pair - pairs < DICOM && i % 3 == 2 ? OVERWRITE : i % 2 ? EXCHANGE : RENAME);
        nanosleep(&(struct timespec){0, 200000}, NULL);
    }
    return NULL;
}

/* Whether all that a reader tells is of one state. */
static void attack_amid(int kind, long count)
{
    struct place place = {.pair = &pairs[kind]};
    pthread_t thread;
    uint64_t random = seed;
    strcpy(place.path, path_of(work, "file"));
    strcpy(place.spare, path_of(work, "spare"));
    put(&place, 0, RENAME);
    struct tsr_reader *const states[2] = {open_state(place.pair, 0), open_state(place.pair, 1)};
    atomic_store(&is_over, false);
    if (pthread_create(&thread, NULL, keep_changing, &place) != 0) stop("no thread");
    const struct tsr_data_source source = tsr_from_path(path_of(work, "file"));
    for (run_number = 0; run_number < count; run_number++) {
        struct tsr_reader *const reader = open_source(&source);
        const bool is_begun =
            reader && tsr_reader_content(reader) == tsr_reader_content(states[0]); /* or it is empty */
        bool may_be[2] = {true, true};
        for (int i = 0; is_begun && i < 12; i++) {
            const int call = (int)(next(&random) % CALLS);
            const uint64_t argument = next(&random);
            struct told told = ask(reader, call, argument);
            for (int s = 0; s < 2 && told.status == TSR_OK; s++) {
                struct told wanted = ask(states[s], call, argument);
                may_be[s] &= same(&wanted, &told);
                free(wanted.bytes.data);
            }
            free(told.bytes.data);
        }
        if (!may_be[0] && !may_be[1]) wrong("readers", "%s: a reader is of two states", kind_name[kind]);
        tsr_close(reader);
    }
    atomic_store(&is_over, true);
    pthread_join(thread, NULL);
    tsr_close(states[0]);
    tsr_close(states[1]);
}

/* ---- Mounts ----------------------------------------------------------------------------------------------- */

static pid_t server;

static pid_t start(const char *const *words)
{
    const pid_t child = fork();
    if (child < 0) stop("no process");
    if (child > 0) return child;
    const int log = open(path_of(work, "mount.log"), O_WRONLY | O_CREAT | O_TRUNC, 0644);
    dup2(log, 1);
    dup2(log, 2);
    execvp(words[0], (char *const *)words);
    _exit(127);
}

static bool is_mounted(const char *folder)
{
    struct statfs status;
    return statfs(folder, &status) == 0 && status.f_type == 0x65735546; /* FUSE_SUPER_MAGIC */
}

/* False: there are no mounts here. */
static bool mount_archive(const char *archive, const char *folder)
{
    const char *const words[] = {program, "mount", "-f", "--cache", "1M", archive, folder, NULL};
    server = start(words);
    for (int i = 0; i < 500 && !is_mounted(folder); i++) {
        if (waitpid(server, NULL, WNOHANG) == server) return false;
        rest();
    }
    return is_mounted(folder);
}

static void unmount(const char *folder)
{
    const char *const words[] = {"fusermount3", "-u", folder, NULL};
    int status = 0;
    waitpid(start(words), NULL, 0);
    if (waitpid(server, &status, 0) != server || status != 0) wrong("mounts", "the mount ends with status %x", status);
}

/* A file of the mount that is open: the state that it has been of. */
struct handle {
    int file, state;
};

/* Reads a part of an open file, which must be of its state, if it can be read. */
static void read_part(const struct handle *handle, const struct pair *pair, size_t at, size_t count)
{
    static uint8_t bytes[1 << 20];
    const struct bytes *const original = &pair->original[handle->state];
    const size_t there = at < original->count ? original->count - at : 0, wanted = there < count ? there : count;
    const ssize_t got = pread(handle->file, bytes, count, (off_t)at);
    if (got < 0 && (errno == EIO || errno == ESTALE)) return;
    if (got < 0 || (size_t)got > wanted || memcmp(bytes, original->data + at, (size_t)got) != 0)
        wrong("mounts", "an open file gives other bytes");
}

/* What is opened now must be what is there, from its size on. */
static int open_now(const char *path, const struct place *place)
{
    struct stat status;
    const struct pair *const pair = place->pair;
    const int file = open(path, O_RDONLY);
    if (place->now < 0) {
        if (file >= 0) wrong("mounts", "what is not there can be opened");
        if (file >= 0) close(file);
        return -1;
    }
    if (file < 0 || fstat(file, &status) != 0) {
        wrong("mounts", "what is there cannot be opened: %s", strerror(errno));
    } else if ((size_t)status.st_size != pair->original[place->now].count) {
        wrong("mounts", "a file has another size");
    } else {
        const struct bytes *const original = &pair->original[place->now];
        uint8_t *const bytes = malloc(original->count + 1);
        const ssize_t got = bytes ? read(file, bytes, original->count + 1) : -1;
        if (got < 0 || (size_t)got != original->count || memcmp(bytes, original->data, original->count) != 0)
            wrong("mounts", "a file that was opened after the change is another");
        free(bytes);
    }
    return file;
}

/* Steps with files of the mount: each is changed, opened, read in parts, closed. */
static void attack_mount(struct place places[2], const char *const paths[2], long count)
{
    enum { HANDLES = 4 };
    struct handle handles[2][HANDLES];
    uint64_t random = seed * 77;
    for (int p = 0; p < 2; p++)
        for (int i = 0; i < HANDLES; i++) handles[p][i].file = -1;
    for (run_number = 0; run_number < count; run_number++) {
        const int p = (int)(next(&random) % 2);
        struct handle *const handle = &handles[p][next(&random) % HANDLES];
        const uint64_t deed = next(&random) % 8;
        if (deed == 0) change(&places[p], &random);
        if (deed == 1 && handle->file >= 0) close(handle->file), handle->file = -1;
        if (deed == 2 && handle->file < 0) *handle = (struct handle){open_now(paths[p], &places[p]), places[p].now};
        if (deed > 2 && handle->file >= 0)
            read_part(handle, places[p].pair, (size_t)(next(&random) % 600000), (size_t)(next(&random) % 200000));
    }
    for (int p = 0; p < 2; p++)
        for (int i = 0; i < HANDLES; i++)
            if (handles[p][i].file >= 0) close(handles[p][i].file);
}

/* Reads files whole while they change: each must be of one state. */
static void attack_mount_amid(struct place *place, const char *path, long count)
{
    pthread_t thread;
    put(place, 0, RENAME);
    atomic_store(&is_over, false);
    if (pthread_create(&thread, NULL, keep_changing, place) != 0) stop("no thread");
    for (run_number = 0; run_number < count; run_number++) {
        uint8_t *const bytes = calloc(1, 1 << 20);
        const int file = open(path, O_RDONLY);
        size_t got = 0;
        ssize_t now = file < 0 || !bytes ? -1 : 0;
        for (; now >= 0 && (now = read(file, bytes + got, 65536)) > 0; got += (size_t)now) continue;
        bool is_one = false;
        for (int s = 0; s < 2 && bytes; s++) {
            const struct bytes *const original = &place->pair->original[s];
            is_one |=
                (got == original->count || (now < 0 && got < original->count)) && !memcmp(bytes, original->data, got);
        }
        if (!is_one) wrong("mounts", "a file is of two states");
        if (file >= 0) close(file);
        free(bytes);
    }
    atomic_store(&is_over, true);
    pthread_join(thread, NULL);
}

/* How reading a folder ends. */
static int list(const char *path)
{
    DIR *const folder = opendir(path);
    if (!folder) return errno;
    do errno = 0;
    while (readdir(folder));
    const int failure = errno;
    closedir(folder);
    return failure;
}

/* A series of which the end is lost. False: there are no mounts here. */
static bool attack_lost(const char *archive, const char *folder)
{
    struct bytes cut = pairs[SERIES].file[0];
    cut.count -= cut.count / 20;
    write_path(path_of(archive, "s.tsr"), &cut);
    if (!mount_archive(archive, folder)) return false;
    if (list(path_of(folder, "s")) == 0 || list(path_of(folder, "s/a")) == 0)
        wrong("mounts", "a folder of which files are lost looks whole");
    unmount(folder);
    return true;
}

static void attack_mounts(long count)
{
    char archive[PATH_LIMIT], folder[PATH_LIMIT], paths[2][PATH_LIMIT];
    struct place places[2] = {{.pair = &pairs[STORED]}, {.pair = &pairs[SERIES]}};
    const char *const shown[2] = {paths[0], paths[1]};
    strcpy(archive, path_of(work, "archive"));
    strcpy(folder, path_of(work, "mounted"));
    mkdir(archive, 0755);
    mkdir(folder, 0755);
    for (int p = 0; p < 2; p++) {
        strcpy(places[p].path, path_of(archive, p ? "s.tsr" : "x.tsr"));
        strcpy(places[p].spare, path_of(work, "spare"));
        strcpy(paths[p], path_of(folder, p ? "s/a/x" : "x"));
    }
    if (!attack_lost(archive, folder)) {
        printf("skipped: mounts: they cannot be had here (FUSE)\n");
        return;
    }
    for (int p = 0; p < 2; p++) put(&places[p], 0, RENAME);
    if (!mount_archive(archive, folder)) stop("cannot mount again");
    attack_mount(places, shown, count);
    attack_mount_amid(&places[0], paths[0], count / 8 + 1);
    attack_mount_amid(&places[1], paths[1], count / 8 + 1);
    unmount(folder);
}

/* ---- All -------------------------------------------------------------------------------------------------- */

static void attack_readers(long count, long only)
{
    for (run_number = only < 0 ? 0 : only; run_number < (only < 0 ? count : only + 1); run_number++) {
        uint64_t random = seed << 32 | (uint64_t)run_number;
        attack_reader((int)(run_number % KINDS), &random);
    }
    for (int kind = 0; only < 0 && kind < KINDS; kind++) attack_amid(kind, count / 16 + 1);
}

int main(int argc, char **argv)
{
    long only = -1;
    const char *part = "";
    for (int i = 5; i < argc; i++) {
        if (!strncmp(argv[i], "seed=", 5)) seed = strtoull(argv[i] + 5, NULL, 10);
        if (!strncmp(argv[i], "run=", 4)) only = strtol(argv[i] + 4, NULL, 10);
        if (!strncmp(argv[i], "part=", 5)) part = argv[i] + 5;
    }
    char *const found = argc > 4 ? realpath(argv[1], NULL) : NULL;
    if (!found || strtol(argv[4], NULL, 10) < 1) {
        fprintf(stderr, "usage: tsr_attack_replaced TESSERA DATA WORK COUNT [seed=N] [run=N] [part=readers|mounts]\n");
        return 2;
    }
    struct tsr_engine_options options = TSR_ENGINE_OPTIONS;
    program = found;
    data = argv[2];
    work = argv[3];
    options.choice = TSR_ENGINE_CPU;
    options.threads = 2;
    if (tsr_engine_create(&options, &engine, NULL) != TSR_OK) stop("no engine");
    make_pairs();
    if (strcmp(part, "mounts") != 0) attack_readers(strtol(argv[4], NULL, 10), only);
    if (strcmp(part, "readers") != 0) attack_mounts(strtol(argv[4], NULL, 10));
    printf("replaced files under readers and mounts: %d findings\n", findings);
    tsr_engine_destroy(engine);
    free(found);
    return findings > 0;
}
