/* What the files of a mount hold: learned when it is asked for, decoded when it is read. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mount.h"

/* A file. While it is busy, one thread learns or decodes it without the lock, and the others wait. */
struct content {
    const struct task *task;
    uint64_t size;
    struct timespec modified;
    uint32_t permissions;
    bool is_busy, is_known, is_broken; /* broken: its .tsr cannot be opened */
    int failure;                       /* of decoding; 0: none since it was opened last */
    uint32_t users;
    bool is_decoded;
    struct tsr_buffer buffer; /* the whole original, or it is in a file without a name: */
    int descriptor;           /* else -1 */
    uint32_t older, newer;    /* of those that are in memory */
};

struct contents {
    struct tsr_engine *engine;
    struct content *files;
    uint32_t count;
    uint64_t cache_bytes, used_bytes;
    uint32_t oldest, newest; /* in memory; NO_FILE: none is */
    pthread_mutex_t lock;
    pthread_cond_t changed;
};

struct contents *contents_create(const struct tree *tree, struct tsr_engine *engine, uint64_t cache_bytes)
{
    struct contents *const c = calloc(1, sizeof *c);
    struct content *const files = calloc((size_t)tree->file_count + 1, sizeof *files);
    if (!c || !files) {
        free(c);
        free(files);
        return NULL;
    }
    *c = (struct contents){.engine = engine, .files = files, .count = tree->file_count, .cache_bytes = cache_bytes};
    c->oldest = c->newest = NO_FILE;
    pthread_mutex_init(&c->lock, NULL);
    pthread_cond_init(&c->changed, NULL);
    for (uint32_t i = 0; i < c->count; i++) {
        files[i].task = tree->files[i];
        files[i].descriptor = -1;
        files[i].older = files[i].newer = NO_FILE;
    }
    return c;
}

void contents_destroy(struct contents *c)
{
    if (!c) return;
    for (uint32_t i = 0; i < c->count; i++) {
        tsr_buffer_free(&c->files[i].buffer);
        if (c->files[i].descriptor >= 0) close(c->files[i].descriptor);
    }
    pthread_cond_destroy(&c->changed);
    pthread_mutex_destroy(&c->lock);
    free(c->files);
    free(c);
}

static void log_failure(const struct content *file, struct tsr_error *error)
{
    name_flags(error);
    name_file(error, file->task->input, file->task->member);
    mount_log("%s", shown(error->text));
}

/* Waits until no other thread works at a file. With the lock. */
static struct content *await(struct contents *c, uint32_t number)
{
    struct content *const file = &c->files[number];
    while (file->is_busy) pthread_cond_wait(&c->changed, &c->lock);
    return file;
}

/* Takes a file out of the lock, and back. */
static void begin_work(struct contents *c, struct content *file)
{
    file->is_busy = true;
    pthread_mutex_unlock(&c->lock);
}

static void end_work(struct contents *c, struct content *file)
{
    pthread_mutex_lock(&c->lock);
    file->is_busy = false;
    pthread_cond_broadcast(&c->changed);
}

/* ---- Sizes, times, permissions ---------------------------------------------------------------------------- */

/* What comes back of a lossy file has a size that only decoding tells. */
static enum tsr_status learn_size(struct contents *c, const struct task *task, const struct tsr_info *info,
                                  uint64_t *size, struct tsr_error *error)
{
    struct tsr_report report = TSR_REPORT;
    const struct tsr_data_source source = source_of(task);
    *size = info->original_bytes;
    if (info->identical) return TSR_OK;
    const enum tsr_status status = task->series ? tsr_test_member(task->series, task->number, &report, error)
                                                : tsr_test(c->engine, &source, &report, error);
    *size = report.bytes_out;
    return status;
}

static enum tsr_status learn(struct contents *c, struct content *file, struct tsr_error *error)
{
    const struct task *const task = file->task;
    const struct tsr_data_source source = source_of(task);
    struct tsr_info info = TSR_INFO;
    struct tsr_reader *reader = NULL;
    struct stat status_of_tsr;
    if (task->status != TSR_OK) return refuse(error, task->status, "%s", task->reason ? task->reason : "no file");
    if (stat(task->input, &status_of_tsr) != 0)
        return refuse(error, TSR_ERROR_READ, "it cannot be opened: %s", strerror(errno));
    enum tsr_status status = task->series ? TSR_OK : tsr_open(c->engine, &source, &reader, error);
    if (status == TSR_OK && reader && tsr_reader_content(reader) == TSR_CONTENT_ORIGINAL)
        status = refuse(error, TSR_ERROR_NOT_TSR, "it is not a .tsr file");
    if (status == TSR_OK)
        status = tsr_read_info(task->series ? task->series : reader, task->series ? task->number : 0, &info, error);
    tsr_close(reader);
    if (status == TSR_OK) status = learn_size(c, task, &info, &file->size, error);
    file->modified = status_of_tsr.st_mtim;
    file->permissions = (uint32_t)status_of_tsr.st_mode & 0777;
    if (status == TSR_OK && info.has_origin) {
        file->modified.tv_sec = (time_t)info.modified_s;
        file->modified.tv_nsec = (long)info.modified_ns;
        file->permissions &= info.permissions; /* never more than the series has */
    }
    return status;
}

/* With the lock. */
static struct content *know(struct contents *c, uint32_t number)
{
    struct content *const file = await(c, number);
    struct tsr_error error = {TSR_OK, TSR_NO_OFFSET, "", 0};
    if (file->is_known) return file;
    begin_work(c, file);
    const enum tsr_status status = learn(c, file, &error);
    if (status != TSR_OK) log_failure(file, &error);
    end_work(c, file);
    file->is_known = true;
    file->is_broken = status != TSR_OK;
    if (file->is_broken) file->size = 0;
    return file;
}

void contents_stat(struct contents *c, uint32_t number, struct stat *status)
{
    pthread_mutex_lock(&c->lock);
    const struct content *const file = know(c, number);
    status->st_size = (off_t)file->size;
    status->st_blocks = (blkcnt_t)((file->size + 511) / 512);
    status->st_mtim = status->st_ctim = status->st_atim = file->modified;
    status->st_mode = S_IFREG | (mode_t)file->permissions;
    pthread_mutex_unlock(&c->lock);
}

/* ---- What is in memory ------------------------------------------------------------------------------------ */

static void unlink_file(struct contents *c, uint32_t number)
{
    struct content *const file = &c->files[number];
    if (file->older != NO_FILE)
        c->files[file->older].newer = file->newer;
    else
        c->oldest = file->newer;
    if (file->newer != NO_FILE)
        c->files[file->newer].older = file->older;
    else
        c->newest = file->older;
    file->older = file->newer = NO_FILE;
}

static void link_newest(struct contents *c, uint32_t number)
{
    struct content *const file = &c->files[number];
    file->older = c->newest;
    if (c->newest != NO_FILE) c->files[c->newest].newer = number;
    c->newest = number;
    if (c->oldest == NO_FILE) c->oldest = number;
}

static void forget(struct contents *c, uint32_t number)
{
    struct content *const file = &c->files[number];
    unlink_file(c, number);
    c->used_bytes -= file->size;
    tsr_buffer_free(&file->buffer);
    file->is_decoded = false;
}

/* Reserves room in memory, for which files go that nobody has open, the one first that was opened longest ago. False:
 * there is not so much. */
static bool make_room(struct contents *c, uint64_t size)
{
    if (size > c->cache_bytes) return false;
    for (uint32_t i = c->oldest, next; i != NO_FILE && size > c->cache_bytes - c->used_bytes; i = next) {
        next = c->files[i].newer;
        if (c->files[i].users == 0) forget(c, i);
    }
    if (size > c->cache_bytes - c->used_bytes) return false;
    c->used_bytes += size;
    return true;
}

/* ---- Decoding --------------------------------------------------------------------------------------------- */

static enum tsr_status restore(struct contents *c, const struct task *task, const struct tsr_data_sink *sink,
                               struct tsr_report *report, struct tsr_error *error)
{
    const struct tsr_data_source source = source_of(task);
    if (task->series) return tsr_restore_member(task->series, task->number, sink, report, error);
    return tsr_restore(c->engine, &source, sink, report, error);
}

/* Decodes and proves all of a file. */
static enum tsr_status decode(struct contents *c, struct content *file, bool in_memory, struct tsr_error *error)
{
    struct tsr_report report = TSR_REPORT;
    struct tsr_data_sink sink = tsr_to_memory(&file->buffer);
    if (!in_memory) {
        file->descriptor = open_temporary();
        if (file->descriptor < 0)
            return refuse(error, TSR_ERROR_WRITE, "cannot create a temporary file in %s: %s; set TMPDIR to another",
                          temporary_folder(), strerror(errno));
        sink = tsr_to_descriptor(file->descriptor);
        sink.temporary = temporary_folder();
    }
    const enum tsr_status status = restore(c, file->task, &sink, &report, error);
    if (status != TSR_OK || report.bytes_out == file->size) return status;
    return refuse(error, TSR_ERROR_READ, "it has changed since it was mounted: it restores %llu bytes, and not %llu",
                  (unsigned long long)report.bytes_out, (unsigned long long)file->size);
}

/* With the lock. */
static int load(struct contents *c, uint32_t number)
{
    struct content *const file = await(c, number);
    struct tsr_error error = {TSR_OK, TSR_NO_OFFSET, "", 0};
    if (file->is_decoded || file->failure) return file->failure;
    const bool in_memory = make_room(c, file->size);
    begin_work(c, file);
    const enum tsr_status status = decode(c, file, in_memory, &error);
    if (status != TSR_OK) log_failure(file, &error);
    end_work(c, file);
    file->is_decoded = status == TSR_OK;
    file->failure = status == TSR_OK ? 0 : status == TSR_ERROR_LIMIT ? ENOMEM : EIO;
    if (file->is_decoded && in_memory) link_newest(c, number);
    if (file->is_decoded) return 0;
    if (in_memory) c->used_bytes -= file->size;
    tsr_buffer_free(&file->buffer);
    if (file->descriptor >= 0) close(file->descriptor);
    file->descriptor = -1;
    return file->failure;
}

int contents_open(struct contents *c, uint32_t number)
{
    pthread_mutex_lock(&c->lock);
    struct content *const file = know(c, number);
    const int result = file->is_broken ? EIO : 0;
    file->users += result == 0;
    if (result == 0 && file->is_decoded && file->descriptor < 0) {
        unlink_file(c, number);
        link_newest(c, number);
    }
    pthread_mutex_unlock(&c->lock);
    return result;
}

void contents_close(struct contents *c, uint32_t number)
{
    pthread_mutex_lock(&c->lock);
    struct content *const file = await(c, number);
    if (--file->users == 0) {
        file->failure = 0; /* the next one tries again */
        if (file->descriptor >= 0) {
            close(file->descriptor);
            file->descriptor = -1;
            file->is_decoded = false;
        }
    }
    pthread_mutex_unlock(&c->lock);
}

int contents_decoded(struct contents *c, uint32_t number, struct decoded_file *decoded)
{
    pthread_mutex_lock(&c->lock);
    const int result = load(c, number);
    struct content *const file = &c->files[number];
    file->users += result == 0; /* a release may come before the last read is answered */
    *decoded = (struct decoded_file){file->descriptor >= 0 ? NULL : file->buffer.bytes, file->descriptor, file->size};
    pthread_mutex_unlock(&c->lock);
    return result;
}
