/* Folders of outputs; see folder.h. */
#define _GNU_SOURCE /* O_PATH */
#include "folder.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/bytes/checksum.h"
#include "part.h"

/* ---- Folders that this process knows ---------------------------------------------------------------------- */

/* A folder with names that are not on the disk yet. */
enum { UNSYNCED_LIMIT = 64, SHOWN_PATH = 300 };
struct unsynced {
    int file;
    struct stat status;
    char path[SHOWN_PATH]; /* for error texts */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards what follows */
static void *known;                                      /* tree of hashes of paths, by tsearch() */
static struct unsynced unsynced[UNSYNCED_LIMIT];
static size_t unsynced_count;
static uint64_t failures, told; /* folders that could not be synced, and how many of these a call has told of */
static int sync_failure;        /* errno of the first one that was not told of, or of the last one that was */
static char failed_path[SHOWN_PATH];

/* Of this thread: a folder has new names that it has not synced since, and how many failures there were before. */
static _Thread_local bool has_noted;
static _Thread_local uint64_t failures_before;

static pthread_mutex_t sync_lock = PTHREAD_MUTEX_INITIALIZER; /* held while folders are synced */

static int by_hash(const void *a, const void *b)
{
    const uint64_t one = *(const uint64_t *)a, other = *(const uint64_t *)b;
    return (one > other) - (one < other);
}

/* Whether this process writes to the folder of a path for the first time. It is known by its path: not all file systems
 * have numbers for it. Also true if there is no memory to remember the folder. */
static bool is_new(const char *path)
{
    const char *const slash = strrchr(path, '/');
    uint64_t *const one = malloc(sizeof *one);
    if (!one) return true;
    *one = tsr_hash64_of(path, slash ? (size_t)(slash - path) + 1 : 0);
    pthread_mutex_lock(&lock);
    uint64_t **const found = tsearch(one, &known, by_hash);
    const bool is_first = !found || *found == one;
    pthread_mutex_unlock(&lock);
    if (!found || *found != one) free(one);
    return is_first;
}

/* A folder without a number is none that is known. */
static bool is_same(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_ino != 0;
}

static void note_failure(const char *path)
{
    pthread_mutex_lock(&lock);
    if (failures++ == told) {
        sync_failure = errno;
        snprintf(failed_path, sizeof failed_path, "%s", path);
    }
    pthread_mutex_unlock(&lock);
}

/* EINVAL and ENOTSUP are ignored: such file systems cannot sync a folder and need no sync. */
static void sync_folder(int folder, const char *path)
{
    if (fsync(folder) != 0 && errno != EINVAL && errno != ENOTSUP) note_failure(path);
}

enum tsr_status tsr_folder_changed(int folder, const char *path, struct tsr_error *error)
{
    struct unsynced one;
    if (fstat(folder, &one.status) != 0)
        return tsr_fail_call(error, TSR_ERROR_WRITE, "cannot get the status of the folder of", path);
    snprintf(one.path, sizeof one.path, "%s", path);
    pthread_mutex_lock(&lock);
    if (!has_noted) failures_before = failures;
    has_noted = true;
    for (size_t i = 0; i < unsynced_count; i++) {
        if (!is_same(&unsynced[i].status, &one.status)) continue;
        pthread_mutex_unlock(&lock);
        return TSR_OK;
    }
    one.file = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const int reason = errno;
    const bool is_listed = one.file >= 0 && unsynced_count < UNSYNCED_LIMIT;
    if (is_listed) unsynced[unsynced_count++] = one;
    pthread_mutex_unlock(&lock);
    if (is_listed) return TSR_OK;
    if (one.file < 0) { /* a process that may not read a folder cannot sync it */
        errno = reason;
        return reason == EACCES ? TSR_OK : tsr_fail_call(error, TSR_ERROR_WRITE, "cannot open the folder of", path);
    }
    sync_folder(one.file, path);
    close(one.file);
    return TSR_OK;
}

enum tsr_status tsr_sync_folders(struct tsr_error *error)
{
    struct unsynced taken[UNSYNCED_LIMIT];
    pthread_mutex_lock(&sync_lock);
    pthread_mutex_lock(&lock);
    const size_t count = unsynced_count;
    memcpy(taken, unsynced, count * sizeof *taken);
    unsynced_count = 0;
    pthread_mutex_unlock(&lock);
    for (size_t i = 0; i < count; i++) {
        sync_folder(taken[i].file, taken[i].path);
        close(taken[i].file);
    }
    char path[SHOWN_PATH];
    pthread_mutex_lock(&lock);
    const int failure = sync_failure;
    const bool fails = failures > told || (has_noted && failures > failures_before); /* another thread's call, maybe */
    told = failures;
    has_noted = false;
    memcpy(path, failed_path, sizeof path);
    pthread_mutex_unlock(&lock);
    pthread_mutex_unlock(&sync_lock);
    if (!fails) return TSR_OK;
    errno = failure;
    return tsr_fail_call(error, TSR_ERROR_WRITE, "cannot sync the folder of", path);
}

/* ---- Paths ------------------------------------------------------------------------------------------------ */

static enum tsr_status fail_folder(struct tsr_error *error, const char *path, size_t length)
{
    char folder[400];
    snprintf(folder, sizeof folder, "%.*s", (int)(length < sizeof folder ? length : sizeof folder - 1), path);
    if (errno == ELOOP)
        return tsr_fail_as(error, TSR_ERROR_WRITE, errno,
                           "%s is a symbolic link; outputs do not follow links below the folder that was named",
                           folder);
    if (errno == ENOTDIR) return tsr_fail_as(error, TSR_ERROR_WRITE, errno, "%s is not a folder", folder);
    return tsr_fail_call(error, TSR_ERROR_WRITE, "cannot open the folder", folder);
}

/* Opens component, which ends at byte length of path, in folder; creates it if it is missing. Returns its descriptor,
 * or -1 with the error. */
static int step_into(int folder, const char *path, size_t length, const char *component, bool follows,
                     struct tsr_error *error)
{
    const int flags = O_PATH | O_DIRECTORY | O_CLOEXEC | (follows ? 0 : O_NOFOLLOW);
    int next = openat(folder, component, flags);
    if (next < 0 && errno == ENOENT) {
        const bool made = mkdirat(folder, component, 0777) == 0;
        if (made && tsr_folder_changed(folder, path, error) != TSR_OK) return -1;
        if (made || errno == EEXIST) next = openat(folder, component, flags);
    }
    if (next >= 0) return next;
    /* O_NOFOLLOW with O_DIRECTORY gives the same error for a link and for a file. The status tells them apart. */
    struct stat status;
    const int reason = errno;
    const bool is_link =
        !follows && fstatat(folder, component, &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(status.st_mode);
    errno = is_link ? ELOOP : reason;
    fail_folder(error, path, length);
    return -1;
}

/* Opens the folder that the first root bytes of path name. If that folder does not exist, opens "/" or ".", where the
 * path begins. *at: the part of the path that is still to be walked. */
static int open_root(char *path, size_t root, char *name, char **at)
{
    char *end = (size_t)(name - path) < root ? name : path + root;
    while (end < name && *end == '/') end++;
    const char kept = *end;
    *end = '\0';
    const int folder = end > path ? open(path, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
    *end = kept;
    *at = folder >= 0 ? end : path;
    return folder >= 0 ? folder : open(path[0] == '/' ? "/" : ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
}

static enum tsr_status open_folder(char *path, size_t root, char *name, int *folder, struct tsr_error *error)
{
    char *at;
    *folder = open_root(path, root, name, &at);
    if (*folder < 0) return tsr_fail_call(error, TSR_ERROR_WRITE, "cannot open the folder of", path);
    while (at < name) {
        char *const end = strchr(at, '/');
        const size_t start = (size_t)(at - path), length = (size_t)(end - path);
        if (end == at) { /* a repeated slash */
            at = end + 1;
            continue;
        }
        *end = '\0';
        const int next = step_into(*folder, path, length, at, start < root, error);
        *end = '/';
        close(*folder);
        *folder = next;
        if (next < 0) return error->status;
        at = end + 1;
    }
    return TSR_OK;
}

enum tsr_status tsr_spot_open(const char *path, size_t root, struct tsr_spot *spot, struct tsr_error *error)
{
    struct tsr_error ignored;
    if (!error) error = &ignored;
    *spot = (struct tsr_spot){-1, NULL};
    char *const copy = strdup(path);
    if (!copy) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory to open %s", path);
    char *const slash = strrchr(copy, '/'), *const name = slash ? slash + 1 : copy;
    enum tsr_status status = open_folder(copy, root, name, &spot->folder, error);
    if (status == TSR_OK) {
        spot->name = strdup(name);
        if (!spot->name) status = tsr_fail(error, TSR_ERROR_LIMIT, "no memory to open %s", path);
    }
    free(copy);
    if (status != TSR_OK) {
        tsr_spot_close(spot);
        return status;
    }
    if (is_new(path)) tsr_parts_clear(spot->folder);
    return TSR_OK;
}

void tsr_spot_close(struct tsr_spot *spot)
{
    if (spot->folder >= 0) close(spot->folder);
    free(spot->name);
    *spot = (struct tsr_spot){-1, NULL};
}
