/* The .tsr files of a mount, opened. A series stays open, since it takes long to open; where another one has its name,
 * that is opened instead. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "mount.h"

/* A reader of a series, closed when nobody uses it any more. */
struct shared_reader {
    struct tsr_reader *reader;
    struct stat tsr; /* the file, before it was opened; all 0: not known */
    size_t users;    /* the series that it is the reader of counts as one */
};

struct series_file {
    const struct tsr_reader *listed; /* of the tasks; it is only compared */
    struct shared_reader *now;
    bool is_busy; /* one thread opens it without the lock, and the others wait */
};

struct archive_series {
    struct tsr_engine *engine;
    struct series_file *files; /* ordered by listed */
    size_t count;
    pthread_mutex_t lock;
    pthread_cond_t changed;
};

bool is_same_status(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
           is_same_time(a->st_mtim, b->st_mtim) && is_same_time(a->st_ctim, b->st_ctim);
}

static int by_reader(const void *a, const void *b)
{
    const uintptr_t one = (uintptr_t)((const struct series_file *)a)->listed,
                    other = (uintptr_t)((const struct series_file *)b)->listed;
    return (one > other) - (one < other);
}

/* With the lock, if others use it. */
static void drop(struct shared_reader *shared)
{
    if (!shared || --shared->users > 0) return;
    tsr_close(shared->reader);
    free(shared);
}

struct series_file *series_of(const struct archive_series *a, const struct task *task)
{
    const struct series_file wanted = {.listed = task->series};
    return task->series ? bsearch(&wanted, a->files, a->count, sizeof *a->files, by_reader) : NULL;
}

/* NULL: no memory, and the reader stays as it is. */
static struct shared_reader *share(struct tsr_reader *reader)
{
    struct shared_reader *const shared = calloc(1, sizeof *shared);
    if (shared) *shared = (struct shared_reader){.reader = reader, .users = 1};
    return shared;
}

struct archive_series *series_take(struct task_list *list, struct tsr_engine *engine)
{
    struct archive_series *const a = calloc(1, sizeof *a);
    struct series_file *const files = calloc(list->series_count + 1, sizeof *files);
    bool good = a && files;
    for (size_t i = 0; good && i < list->series_count; i++) {
        files[i].listed = list->series[i];
        good = (files[i].now = share(list->series[i])) != NULL;
    }
    if (!good) {
        for (size_t i = 0; files && i < list->series_count; i++) free(files[i].now);
        free(files);
        free(a);
        return NULL;
    }
    *a = (struct archive_series){.engine = engine, .files = files, .count = list->series_count};
    list->series_count = 0;
    qsort(files, a->count, sizeof *files, by_reader);
    for (size_t i = 0; i < list->count; i++) {
        struct series_file *const series = series_of(a, &list->tasks[i]);
        if (series && series->now->tsr.st_ino == 0) (void)stat(list->tasks[i].input, &series->now->tsr);
    }
    pthread_mutex_init(&a->lock, NULL);
    pthread_cond_init(&a->changed, NULL);
    return a;
}

void series_free(struct archive_series *a)
{
    for (size_t i = 0; i < a->count; i++) drop(a->files[i].now);
    pthread_cond_destroy(&a->changed);
    pthread_mutex_destroy(&a->lock);
    free(a->files);
    free(a);
}

/* ---- Opening ---------------------------------------------------------------------------------------------- */

static enum tsr_status open_content(struct tsr_engine *engine, const struct task *task, enum tsr_content wanted,
                                    struct tsr_reader **reader, struct tsr_error *error)
{
    const struct tsr_data_source source = from_tsr(task->input);
    const enum tsr_status status = tsr_open(engine, &source, reader, error);
    if (status != TSR_OK) return status;
    const enum tsr_content content = tsr_reader_content(*reader);
    if (content == wanted) return TSR_OK;
    tsr_close(*reader);
    *reader = NULL;
    if (content == TSR_CONTENT_ORIGINAL) return refuse(error, TSR_ERROR_NOT_TSR, "it is not a .tsr file");
    return refuse(error, TSR_ERROR_READ, "it is another file than it was when it was mounted: %s",
                  content == TSR_CONTENT_SERIES ? "a series" : "no series");
}

/* With the lock, which is let go meanwhile: opens what is there under the name now. */
static enum tsr_status open_series(struct archive_series *a, struct series_file *series, const struct task *task,
                                   const struct stat *tsr, struct tsr_error *error)
{
    struct tsr_reader *reader = NULL;
    series->is_busy = true;
    pthread_mutex_unlock(&a->lock);
    enum tsr_status status = open_content(a->engine, task, TSR_CONTENT_SERIES, &reader, error);
    struct shared_reader *const shared = status == TSR_OK ? share(reader) : NULL;
    if (status == TSR_OK && !shared) {
        tsr_close(reader);
        status = refuse(error, TSR_ERROR_LIMIT, "no memory for a series");
    }
    pthread_mutex_lock(&a->lock);
    series->is_busy = false;
    pthread_cond_broadcast(&a->changed);
    if (!shared) return status;
    shared->tsr = *tsr;
    drop(series->now);
    series->now = shared;
    return TSR_OK;
}

static enum tsr_status take_reader(struct archive_series *a, struct series_file *series, const struct task *task,
                                   struct shared_reader **taken, struct tsr_error *error)
{
    const struct tsr_data_source source = from_tsr(task->input);
    struct stat tsr;
    uint64_t id;
    if (stat(task->input, &tsr) != 0) return refuse(error, TSR_ERROR_READ, "it cannot be opened: %s", strerror(errno));
    enum tsr_status status = tsr_read_id(&source, &id, error);
    if (status != TSR_OK) return status;
    pthread_mutex_lock(&a->lock);
    while (series->is_busy) pthread_cond_wait(&a->changed, &a->lock);
    if (tsr_reader_id(series->now->reader) != id || !is_same_status(&series->now->tsr, &tsr))
        status = open_series(a, series, task, &tsr, error);
    if (status == TSR_OK) {
        *taken = series->now;
        series->now->users++;
    }
    pthread_mutex_unlock(&a->lock);
    return status;
}

/* The member of a task by its name, which most often has the number that it had. */
static enum tsr_status find_member(const struct tsr_reader *reader, const struct task *task, uint32_t *member,
                                   struct tsr_error *error)
{
    const uint32_t members = tsr_reader_members(reader);
    for (uint32_t i = 0; i <= members; i++) {
        *member = i == 0 ? task->number : i - 1;
        const char *const name = tsr_reader_name(reader, *member);
        if (name && strcmp(name, task->member) == 0) return TSR_OK;
    }
    return refuse(error, TSR_ERROR_READ, "the series has no such file any more");
}

enum tsr_status open_tsr(struct archive_series *a, struct series_file *series, const struct task *task,
                         struct opened_tsr *opened, struct tsr_error *error)
{
    *opened = (struct opened_tsr){0};
    if (!series) return open_content(a->engine, task, TSR_CONTENT_TSR, &opened->reader, error);
    enum tsr_status status = take_reader(a, series, task, &opened->shared, error);
    if (status != TSR_OK) return status;
    opened->reader = opened->shared->reader;
    status = find_member(opened->reader, task, &opened->member, error);
    if (status != TSR_OK) close_tsr(a, opened);
    return status;
}

void close_tsr(struct archive_series *a, struct opened_tsr *opened)
{
    if (!opened->shared) {
        tsr_close(opened->reader);
        return;
    }
    pthread_mutex_lock(&a->lock);
    drop(opened->shared);
    pthread_mutex_unlock(&a->lock);
}
