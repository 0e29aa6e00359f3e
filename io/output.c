/* Outputs: files, memory, hashes, nothing. */
#define _GNU_SOURCE /* renameat2 */
#include "output.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

/* A file's buffer is for small pieces: larger ones are written from where they are. */
enum { BUFFER_BYTES = 1 << 16, DIRECT_BYTES = 1 << 13, TEMPORARIES_LIMIT = 1024 };

enum output_kind { TO_FILE, TO_MEMORY, TO_NULL };

struct tsr_output {
    enum output_kind kind;
    uint64_t size;
    int file;
    bool overwrite;
    char *path, *temporary;
    bool has_time;
    struct timespec time; /* of last modification, for the published file */
    int slot;             /* of the temporary's name in temporaries[], -1: none */
    uint8_t *bytes;       /* a file's buffer, or the memory */
    size_t held, capacity;
    bool forgoes_hash;
    struct tsr_hasher hasher;
};

/* Names of temporary files that exist, for who ends the process. They change under the lock; files are created while
 * it may not end. */
static pthread_mutex_t temporaries_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t ending = PTHREAD_RWLOCK_INITIALIZER;
static char *temporaries[TEMPORARIES_LIMIT];

static int remember_temporary(char *name)
{
    int slot = -1;
    pthread_mutex_lock(&temporaries_lock);
    for (int i = 0; i < TEMPORARIES_LIMIT && slot < 0; i++)
        if (!temporaries[i]) slot = i;
    if (slot >= 0) temporaries[slot] = name;
    pthread_mutex_unlock(&temporaries_lock);
    return slot;
}

static void forget_temporary(struct tsr_output *output)
{
    pthread_mutex_lock(&temporaries_lock);
    if (output->slot >= 0) temporaries[output->slot] = NULL;
    output->slot = -1;
    pthread_mutex_unlock(&temporaries_lock);
}

void tsr_output_end_process(int status)
{
    pthread_rwlock_wrlock(&ending);
    pthread_mutex_lock(&temporaries_lock);
    for (int i = 0; i < TEMPORARIES_LIMIT; i++)
        if (temporaries[i]) unlink(temporaries[i]);
    _exit(status);
}

static struct tsr_output *create(enum output_kind kind)
{
    struct tsr_output *output = aligned_alloc(64, (sizeof *output + 63) / 64 * 64);
    if (!output) return NULL;
    memset(output, 0, sizeof *output);
    output->kind = kind;
    output->file = -1;
    output->slot = -1;
    tsr_hasher_init(&output->hasher);
    return output;
}

struct tsr_output *tsr_output_to_memory(void)
{
    return create(TO_MEMORY);
}

struct tsr_output *tsr_output_to_null(void)
{
    return create(TO_NULL);
}

/* Opens a file with a name that nobody else has: .NAME.PID-COUNT.tmp in the folder of path. */
static int open_temporary(struct tsr_output *output)
{
    static unsigned counter;
    char *folder_copy = strdup(output->path), *name_copy = strdup(output->path);
    int file = -1;
    errno = ENOMEM;
    for (int attempt = 0; folder_copy && name_copy && attempt < 100 && file < 0; attempt++) {
        const unsigned number = __atomic_fetch_add(&counter, 1, __ATOMIC_RELAXED);
        free(output->temporary);
        if (attempt == 0) {
            /* dirname and basename may change what they are given, hence the copies. */
            char *folder = dirname(folder_copy), *name = basename(name_copy);
            memmove(folder_copy, folder, strlen(folder) + 1);
            memmove(name_copy, name, strlen(name) + 1);
        }
        /* Names are at most 255 bytes long: the temporary keeps the first 200 of the output's. */
        if (asprintf(&output->temporary, "%s/.%.200s.%ld-%u.tmp", folder_copy, name_copy, (long)getpid(), number) < 0) {
            output->temporary = NULL;
            break;
        }
        file = open(output->temporary, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (file < 0 && errno != EEXIST) break;
    }
    const int reason = errno;
    free(folder_copy);
    free(name_copy);
    errno = reason;
    return file;
}

enum tsr_status tsr_output_create(const char *path, bool overwrite, struct tsr_output **output, struct tsr_error *error)
{
    *output = NULL;
    struct stat there;
    if (lstat(path, &there) == 0) {
        if (!overwrite) return tsr_fail(error, TSR_ERROR_EXISTS, "%s exists; -f overwrites it", path);
        if (S_ISDIR(there.st_mode)) return tsr_fail(error, TSR_ERROR_WRITE, "%s is a folder", path);
    }
    struct tsr_output *created = create(TO_FILE);
    if (!created) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory to write %s", path);
    created->overwrite = overwrite;
    created->path = strdup(path);
    created->bytes = malloc(BUFFER_BYTES);
    created->capacity = BUFFER_BYTES;
    if (!created->path || !created->bytes) {
        tsr_output_close(created);
        return tsr_fail(error, TSR_ERROR_LIMIT, "no memory to write %s", path);
    }
    pthread_rwlock_rdlock(&ending);
    created->file = open_temporary(created);
    const int reason = errno;
    if (created->file >= 0) created->slot = remember_temporary(created->temporary);
    pthread_rwlock_unlock(&ending);
    errno = reason;
    if (created->file < 0) {
        const enum tsr_status status = tsr_fail(error, errno == ENOMEM ? TSR_ERROR_LIMIT : TSR_ERROR_WRITE,
                                                "cannot create %s: %s", path, strerror(errno));
        tsr_output_close(created);
        return status;
    }
    *output = created;
    return TSR_OK;
}

void tsr_output_close(struct tsr_output *output)
{
    if (!output) return;
    if (output->file >= 0) {
        close(output->file);
        unlink(output->temporary);
    }
    forget_temporary(output);
    free(output->path);
    free(output->temporary);
    free(output->bytes);
    free(output);
}

void tsr_output_inherit(struct tsr_output *output, const struct tsr_input *input)
{
    struct stat status;
    if (output->file < 0 || tsr_input_descriptor(input) < 0 || fstat(tsr_input_descriptor(input), &status) != 0) return;
    (void)!fchmod(output->file, status.st_mode & 0777);
    output->has_time = true;
    output->time = status.st_mtim;
}

void tsr_output_forgo_hash(struct tsr_output *output)
{
    output->forgoes_hash = true;
}

void tsr_output_restrict(struct tsr_output *output, const struct tsr_input *input)
{
    struct stat in, out;
    if (output->file < 0 || tsr_input_descriptor(input) < 0) return;
    if (fstat(tsr_input_descriptor(input), &in) != 0 || fstat(output->file, &out) != 0) return;
    (void)!fchmod(output->file, out.st_mode & in.st_mode & 0777);
}

/* To the file: what is held of it, then these bytes, which are not copied for that. */
static enum tsr_status write_file(struct tsr_output *output, const void *bytes, size_t size, struct tsr_error *error)
{
    struct iovec pieces[2] = {{output->bytes, output->held}, {(void *)(uintptr_t)bytes, size}};
    output->held = 0;
    while (pieces[0].iov_len + pieces[1].iov_len > 0) {
        const ssize_t result = writev(output->file, pieces, 2);
        if (result < 0 && errno == EINTR) continue;
        if (result < 0) return tsr_fail(error, TSR_ERROR_WRITE, "cannot write %s: %s", output->path, strerror(errno));
        size_t written = (size_t)result;
        for (struct iovec *piece = pieces; piece < pieces + 2; piece++) {
            const size_t now = written < piece->iov_len ? written : piece->iov_len;
            piece->iov_base = (uint8_t *)piece->iov_base + now;
            piece->iov_len -= now;
            written -= now;
        }
    }
    return TSR_OK;
}

enum tsr_status tsr_output_flush(struct tsr_output *output, struct tsr_error *error)
{
    return output->kind == TO_FILE ? write_file(output, output->bytes, 0, error) : TSR_OK;
}

static enum tsr_status keep(struct tsr_output *output, const void *bytes, size_t size, struct tsr_error *error)
{
    if (size > output->capacity - output->held) {
        size_t capacity = output->capacity ? output->capacity : 4096;
        while (capacity - output->held < size && capacity < SIZE_MAX / 2) capacity *= 2;
        uint8_t *grown = capacity - output->held < size ? NULL : realloc(output->bytes, capacity);
        if (!grown) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for %zu bytes more of output", size);
        output->bytes = grown;
        output->capacity = capacity;
    }
    memcpy(output->bytes + output->held, bytes, size);
    output->held += size;
    return TSR_OK;
}

enum tsr_status tsr_output_write(struct tsr_output *output, const void *bytes, size_t size, struct tsr_error *error)
{
    if (size == 0) return TSR_OK;
    output->size += size;
    if (!output->forgoes_hash) tsr_hasher_add(&output->hasher, bytes, size);
    switch (output->kind) {
    case TO_MEMORY:
        return keep(output, bytes, size, error);
    case TO_NULL:
        return TSR_OK;
    case TO_FILE:
        break;
    }
    if (size > output->capacity - output->held || size >= DIRECT_BYTES) return write_file(output, bytes, size, error);
    memcpy(output->bytes + output->held, bytes, size);
    output->held += size;
    return TSR_OK;
}

uint64_t tsr_output_size(const struct tsr_output *output)
{
    return output->size;
}

enum tsr_status tsr_output_restart(struct tsr_output *output, struct tsr_error *error)
{
    struct tsr_output_mark start = {0};
    tsr_hasher_init(&start.hasher);
    return tsr_output_return(output, &start, error);
}

struct tsr_output_mark tsr_output_mark(const struct tsr_output *output)
{
    return (struct tsr_output_mark){output->size, output->hasher};
}

enum tsr_status tsr_output_return(struct tsr_output *output, const struct tsr_output_mark *mark,
                                  struct tsr_error *error)
{
    const off_t size = (off_t)mark->size;
    const uint64_t in_file = output->size - output->held; /* a file's; what is held of it may go */
    const bool kept = mark->size >= in_file;
    if (output->kind == TO_FILE)
        output->held = kept ? (size_t)(mark->size - in_file) : 0;
    else if (output->kind == TO_MEMORY)
        output->held = (size_t)mark->size;
    output->size = mark->size;
    output->hasher = mark->hasher;
    if (output->kind == TO_FILE && !kept &&
        (ftruncate(output->file, size) != 0 || lseek(output->file, size, SEEK_SET) != size))
        return tsr_fail(error, TSR_ERROR_WRITE, "cannot rewrite %s: %s", output->path, strerror(errno));
    return TSR_OK;
}

enum tsr_status tsr_output_finish(struct tsr_output *output, struct tsr_error *error)
{
    if (output->kind != TO_FILE) return TSR_OK;
    TSR_TRY(tsr_output_flush(output, error));
    if (output->has_time) {
        const struct timespec times[2] = {{0, UTIME_NOW}, output->time};
        (void)!futimens(output->file, times);
    }
    if (fsync(output->file) != 0)
        return tsr_fail(error, TSR_ERROR_WRITE, "cannot write %s: %s", output->path, strerror(errno));
    return TSR_OK;
}

const char *tsr_output_temporary(const struct tsr_output *output)
{
    return output->temporary;
}

enum tsr_status tsr_output_publish(struct tsr_output *output, struct tsr_error *error)
{
    if (output->kind != TO_FILE) return TSR_OK;
    int failed =
        output->overwrite ? -1 : renameat2(AT_FDCWD, output->temporary, AT_FDCWD, output->path, RENAME_NOREPLACE);
    if (failed && !output->overwrite && errno == EEXIST)
        return tsr_fail(error, TSR_ERROR_EXISTS, "%s exists; -f overwrites it", output->path);
    /* Some file systems know no RENAME_NOREPLACE; the check at tsr_output_create must do there. */
    if (failed && (output->overwrite || errno == EINVAL || errno == ENOSYS))
        failed = rename(output->temporary, output->path);
    if (failed) return tsr_fail(error, TSR_ERROR_WRITE, "cannot name the output %s: %s", output->path, strerror(errno));
    close(output->file);
    output->file = -1;
    forget_temporary(output);
    return TSR_OK;
}

const uint8_t *tsr_output_bytes(const struct tsr_output *output)
{
    return output->bytes;
}

struct tsr_hash128 tsr_output_hash(const struct tsr_output *output)
{
    return tsr_hasher_result128(&output->hasher);
}
