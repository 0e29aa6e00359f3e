/* What the files of a mount hold: learned when it is asked for, decoded when it is read. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mount.h"

/* An original, which never changes: what a file of the mount has while its .tsr has one id. While it is busy, one
 * thread decodes it without the lock, and the others wait. */
struct version {
    struct content *file;
    struct version *before; /* the one that it has replaced, of which something is still in use */
    uint32_t number;
    uint64_t id, size;
    struct timespec modified;
    uint32_t permissions;
    bool is_broken;   /* its .tsr cannot be opened, */
    bool may_heal;    /* which may be otherwise the next time, without a change of the .tsr */
    uint64_t lookups; /* as often as the system has been told of it, and has not forgotten it */
    uint32_t users;
    bool is_busy;
    int failure; /* of decoding; 0: none since it was opened last */
    bool is_decoded;
    struct tsr_buffer buffer;      /* the whole original, or it is in a file without a name: */
    int descriptor;                /* else -1 */
    struct version *older, *newer; /* of those that are in memory */
};

/* A file. While it is busy, one thread looks at its .tsr without the lock, and the others wait. */
struct content {
    const struct task *task;
    struct series_file *series; /* that it is in, or NULL */
    bool is_busy;
    struct stat tsr;         /* the .tsr, by its name, before it was opened to learn what is in it */
    uint64_t tsr_id;         /* what was found in it */
    struct version *current; /* NULL: nothing is known yet */
};

struct contents {
    struct tsr_engine *engine;
    struct content *files;
    uint32_t count;
    struct archive_series *archive;
    uint64_t cache_bytes, used_bytes;
    struct version *oldest, *newest; /* in memory; NULL: none is */
    pthread_mutex_t lock;
    pthread_cond_t changed;
};

struct contents *contents_create(const struct tree *tree, struct task_list *list, struct tsr_engine *engine,
                                 uint64_t cache_bytes)
{
    struct contents *const c = calloc(1, sizeof *c);
    struct content *const files = calloc((size_t)tree->file_count + 1, sizeof *files);
    struct archive_series *const archive = c && files ? series_take(list, engine) : NULL;
    if (!archive) {
        free(c);
        free(files);
        return NULL;
    }
    *c = (struct contents){
        .engine = engine, .files = files, .count = tree->file_count, .archive = archive, .cache_bytes = cache_bytes};
    pthread_mutex_init(&c->lock, NULL);
    pthread_cond_init(&c->changed, NULL);
    for (uint32_t i = 0; i < c->count; i++) {
        files[i].task = tree->files[i];
        files[i].series = series_of(archive, tree->files[i]);
    }
    return c;
}

static void free_version(struct version *version)
{
    tsr_buffer_free(&version->buffer);
    if (version->descriptor >= 0) close(version->descriptor);
    free(version);
}

void contents_destroy(struct contents *c)
{
    if (!c) return;
    for (uint32_t i = 0; i < c->count; i++)
        for (struct version *v = c->files[i].current, *before; v; v = before) {
            before = v->before;
            free_version(v);
        }
    series_free(c->archive);
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

/* Takes what is busy out of the lock, when no other thread works at it; and back. */
static void begin_work(struct contents *c, bool *is_busy)
{
    while (*is_busy) pthread_cond_wait(&c->changed, &c->lock);
    *is_busy = true;
    pthread_mutex_unlock(&c->lock);
}

static void end_work(struct contents *c, bool *is_busy)
{
    pthread_mutex_lock(&c->lock);
    *is_busy = false;
    pthread_cond_broadcast(&c->changed);
}

/* ---- What is in memory ------------------------------------------------------------------------------------ */

static void unlink_version(struct contents *c, struct version *v)
{
    *(v->older ? &v->older->newer : &c->oldest) = v->newer;
    *(v->newer ? &v->newer->older : &c->newest) = v->older;
    v->older = v->newer = NULL;
}

static void link_newest(struct contents *c, struct version *v)
{
    v->older = c->newest;
    *(c->newest ? &c->newest->newer : &c->oldest) = v;
    c->newest = v;
}

/* Nobody has it open. */
static void drop_bytes(struct contents *c, struct version *v)
{
    if (v->is_decoded && v->descriptor < 0) {
        unlink_version(c, v);
        c->used_bytes -= v->size;
        tsr_buffer_free(&v->buffer);
    }
    if (v->descriptor >= 0) close(v->descriptor);
    v->descriptor = -1;
    v->is_decoded = false;
}

/* Reserves room in memory, for which versions go that nobody has open, the one first that was opened longest ago.
 * False: there is not so much. */
static bool make_room(struct contents *c, uint64_t size)
{
    if (size > c->cache_bytes) return false;
    for (struct version *v = c->oldest, *next; v && size > c->cache_bytes - c->used_bytes; v = next) {
        next = v->newer;
        if (v->users == 0) drop_bytes(c, v);
    }
    if (size > c->cache_bytes - c->used_bytes) return false;
    c->used_bytes += size;
    return true;
}

/* Frees one that was replaced when nothing of it is in use any more. */
static void release(struct contents *c, struct version *v)
{
    struct version **at = &v->file->current;
    if (v == *at || v->users > 0) return;
    drop_bytes(c, v);
    if (v->lookups > 0) return;
    while (*at != v) at = &(*at)->before;
    *at = v->before;
    free_version(v);
}

/* ---- Which version is there ------------------------------------------------------------------------------- */

/* What comes back of a lossy file has a size that only decoding tells. */
static enum tsr_status learn_size(const struct opened_tsr *tsr, const struct tsr_info *info, uint64_t *size,
                                  struct tsr_error *error)
{
    struct tsr_report report = TSR_REPORT;
    *size = info->original_bytes;
    if (info->promise == TSR_PROMISE_FILE) return TSR_OK;
    const enum tsr_status status = tsr_test_member(tsr->reader, tsr->member, &report, error);
    *size = report.bytes_out;
    return status;
}

/* Fills in what is learned of the .tsr that is there now; and the file's field tsr and tsr_id, which nobody else uses
 * meanwhile. */
static enum tsr_status learn(struct contents *c, struct content *file, struct version *v, struct tsr_error *error)
{
    struct tsr_info info = TSR_INFO;
    struct opened_tsr tsr;
    file->tsr = (struct stat){0};
    if (stat(file->task->input, &file->tsr) != 0)
        return refuse(error, TSR_ERROR_READ, "it cannot be opened: %s", strerror(errno));
    v->modified = file->tsr.st_mtim;
    v->permissions = (uint32_t)file->tsr.st_mode & 0777;
    enum tsr_status status = open_tsr(c->archive, file->series, file->task, &tsr, error);
    if (status != TSR_OK) return status;
    status = tsr_read_info(tsr.reader, tsr.member, &info, error);
    if (status == TSR_OK) status = learn_size(&tsr, &info, &v->size, error);
    file->tsr_id = tsr_reader_id(tsr.reader);
    close_tsr(c->archive, &tsr);
    v->id = info.id;
    if (status == TSR_OK && info.has_origin) {
        v->modified.tv_sec = (time_t)info.modified_s;
        v->modified.tv_nsec = (long)info.modified_ns;
        v->permissions &= info.permissions; /* never more than the series has */
    }
    return status;
}

static bool is_same_version(const struct version *a, const struct version *b)
{
    return a->is_broken == b->is_broken && a->id == b->id && a->size == b->size;
}

/* With the lock: what was learned becomes the current version, or tells of it. */
static void take_learned(struct contents *c, struct content *file, struct version *learned)
{
    struct version *const was = file->current;
    if (was && is_same_version(was, learned)) {
        was->modified = learned->modified;
        was->permissions = learned->permissions;
        was->may_heal = learned->may_heal;
        free(learned);
        return;
    }
    learned->number = was ? was->number + 1 : 0;
    learned->before = was;
    file->current = learned;
    if (was) release(c, was);
}

/* Whether the .tsr is what it was, as its status tells. Another one may have the same; opening it finds out. */
static bool has_same_status(const struct content *file)
{
    struct stat now;
    return file->current && !file->current->may_heal && stat(file->task->input, &now) == 0 &&
           is_same_status(&file->tsr, &now);
}

static bool has_same_id(const struct content *file)
{
    const struct tsr_data_source source = tsr_of(file->task);
    struct tsr_error ignored;
    uint64_t id = 0;
    if (!has_same_status(file)) return false;
    return file->current->is_broken || (tsr_read_id(&source, &id, &ignored) == TSR_OK && id == file->tsr_id);
}

/* What cannot be opened. It has a size, since programs do not look into what has none. */
static void mark_broken(struct content *file, struct version *v, enum tsr_status why)
{
    v->is_broken = true;
    v->may_heal = why == TSR_ERROR_READ || why == TSR_ERROR_LIMIT || why == TSR_ERROR_WRITE;
    v->size = file->tsr.st_size > 0 ? (uint64_t)file->tsr.st_size : 1;
    v->id = 0;
}

/* With the lock: finds out which version is there now, unless is_same says that it is the current one. Errors: ENOMEM,
 * with the current one as it was. */
static int refresh(struct contents *c, struct content *file, bool (*is_same)(const struct content *file))
{
    struct tsr_error error = {TSR_OK, TSR_NO_OFFSET, "", 0};
    begin_work(c, &file->is_busy);
    const bool is_known = is_same(file);
    struct version *const v = is_known ? NULL : calloc(1, sizeof *v);
    if (v) {
        *v = (struct version){.file = file, .permissions = 0400, .descriptor = -1};
        const enum tsr_status status = learn(c, file, v, &error);
        if (status != TSR_OK) mark_broken(file, v, status);
        if (status != TSR_OK && !(file->current && file->current->is_broken)) log_failure(file, &error);
    }
    end_work(c, &file->is_busy);
    if (v) take_learned(c, file, v);
    return is_known || v ? 0 : ENOMEM;
}

static void describe(const struct version *v, struct stat *status)
{
    status->st_size = (off_t)v->size;
    status->st_blocks = (blkcnt_t)((v->size + 511) / 512);
    status->st_mtim = status->st_ctim = status->st_atim = v->modified;
    status->st_mode = S_IFREG | (mode_t)v->permissions;
}

/* NULL: it was forgotten. */
static struct version *find_version(const struct content *file, uint32_t number)
{
    struct version *v = file->current;
    while (v && v->number != number) v = v->before;
    return v;
}

int contents_look_up(struct contents *c, uint32_t number, uint32_t *version, struct stat *status)
{
    struct content *const file = &c->files[number];
    pthread_mutex_lock(&c->lock);
    const int result = refresh(c, file, has_same_status);
    if (result == 0) {
        file->current->lookups++;
        *version = file->current->number;
        describe(file->current, status);
    }
    pthread_mutex_unlock(&c->lock);
    return result;
}

void contents_forget(struct contents *c, uint32_t number, uint32_t version, uint64_t lookups)
{
    pthread_mutex_lock(&c->lock);
    struct version *const v = find_version(&c->files[number], version);
    if (v) {
        v->lookups -= lookups < v->lookups ? lookups : v->lookups;
        release(c, v);
    }
    pthread_mutex_unlock(&c->lock);
}

int contents_stat(struct contents *c, uint32_t number, uint32_t version, struct stat *status)
{
    pthread_mutex_lock(&c->lock);
    const struct version *const v = find_version(&c->files[number], version);
    if (v) describe(v, status);
    pthread_mutex_unlock(&c->lock);
    return v ? 0 : ESTALE;
}

/* ---- Decoding --------------------------------------------------------------------------------------------- */

static enum tsr_status create_sink(struct version *v, bool in_memory, struct tsr_data_sink *sink,
                                   struct tsr_error *error)
{
    *sink = tsr_to_memory(&v->buffer);
    if (in_memory) return TSR_OK;
    v->descriptor = open_temporary();
    if (v->descriptor < 0)
        return refuse(error, TSR_ERROR_WRITE, "cannot create a temporary file in %s: %s; set TMPDIR to another",
                      temporary_folder(), strerror(errno));
    *sink = tsr_to_descriptor(v->descriptor);
    sink->temporary = temporary_folder();
    return TSR_OK;
}

/* Decodes and proves all of a version. *failure: 0 or an errno; ESTALE: another one has its place. */
static enum tsr_status decode(struct contents *c, struct version *v, bool in_memory, int *failure,
                              struct tsr_error *error)
{
    struct tsr_report report = TSR_REPORT;
    struct tsr_info info = TSR_INFO;
    struct tsr_data_sink sink;
    struct opened_tsr tsr;
    *failure = EIO;
    enum tsr_status status = open_tsr(c->archive, v->file->series, v->file->task, &tsr, error);
    if (status == TSR_ERROR_LIMIT) *failure = ENOMEM;
    if (status != TSR_OK) return status;
    status = tsr_read_info(tsr.reader, tsr.member, &info, error);
    if (status == TSR_OK && info.id != v->id) {
        *failure = ESTALE;
        status = refuse(error, TSR_ERROR_READ, "it was replaced while it was open");
    }
    if (status == TSR_OK) status = create_sink(v, in_memory, &sink, error);
    if (status == TSR_OK) status = tsr_restore_member(tsr.reader, tsr.member, &sink, &report, error);
    close_tsr(c->archive, &tsr);
    if (status == TSR_OK && report.bytes_out != v->size)
        status = refuse(error, TSR_ERROR_INTERNAL, "it restores %llu bytes, and not %llu",
                        (unsigned long long)report.bytes_out, (unsigned long long)v->size);
    if (status == TSR_OK) *failure = 0;
    if (status == TSR_ERROR_LIMIT) *failure = ENOMEM;
    return status;
}

/* With the lock. */
static int load(struct contents *c, struct version *v)
{
    struct tsr_error error = {TSR_OK, TSR_NO_OFFSET, "", 0};
    int failure;
    while (v->is_busy) pthread_cond_wait(&c->changed, &c->lock);
    if (v->is_decoded || v->failure) return v->failure;
    const bool in_memory = make_room(c, v->size);
    begin_work(c, &v->is_busy);
    if (decode(c, v, in_memory, &failure, &error) != TSR_OK) log_failure(v->file, &error);
    end_work(c, &v->is_busy);
    v->failure = failure;
    v->is_decoded = failure == 0;
    if (v->is_decoded && in_memory) link_newest(c, v);
    if (v->is_decoded) return 0;
    if (in_memory) c->used_bytes -= v->size;
    tsr_buffer_free(&v->buffer);
    drop_bytes(c, v);
    return failure;
}

int contents_open(struct contents *c, uint32_t number, uint32_t version, struct version **opened)
{
    struct content *const file = &c->files[number];
    pthread_mutex_lock(&c->lock);
    int result = refresh(c, file, has_same_id);
    struct version *const v = find_version(file, version);
    if (result == 0 && v != file->current) result = ESTALE; /* the system looks its name up again */
    if (result == 0 && v->is_broken) result = EIO;
    if (result == 0) {
        v->users++;
        if (v->is_decoded && v->descriptor < 0) {
            unlink_version(c, v);
            link_newest(c, v);
        }
    }
    *opened = v;
    pthread_mutex_unlock(&c->lock);
    return result;
}

/* With the lock. */
static void end_use(struct contents *c, struct version *v)
{
    if (--v->users > 0) return;
    v->failure = 0; /* the next one tries again */
    if (v->descriptor >= 0) drop_bytes(c, v);
    release(c, v);
}

void contents_close(struct contents *c, struct version *v)
{
    pthread_mutex_lock(&c->lock);
    end_use(c, v);
    pthread_mutex_unlock(&c->lock);
}

int contents_decoded(struct contents *c, struct version *v, struct decoded_file *decoded)
{
    pthread_mutex_lock(&c->lock);
    v->users++; /* a release may come before the last read is answered */
    const int result = load(c, v);
    *decoded = (struct decoded_file){v->descriptor >= 0 ? NULL : v->buffer.bytes, v->descriptor, v->size};
    if (result != 0) end_use(c, v);
    pthread_mutex_unlock(&c->lock);
    return result;
}
