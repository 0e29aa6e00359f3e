/* Outputs: files, memory, nothing. */
#define _GNU_SOURCE /* O_TMPFILE, flock, preadv2 */
#include "output.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "file_set.h"
#include "output_parts.h"

/* A file's buffer collects pieces: a file that fits is written by one call, with what is patched in it meanwhile. Where
 * a file is longer, its pieces of DIRECT_BYTES or more are written without a copy. */
enum { BUFFER_BYTES = 1 << 16, DIRECT_BYTES = 1 << 13 };

/* That of a spool: most files stay in it, and are never scrambled. */
enum { SPOOL_BYTES = 1 << 19 };

/* ---- Making outputs --------------------------------------------------------------------------------------- */

static struct tsr_output *create(enum output_kind kind)
{
    struct tsr_output *output = aligned_alloc(64, (sizeof *output + 63) / 64 * 64);
    if (!output) return NULL;
    memset(output, 0, sizeof *output);
    output->kind = kind;
    output->file = -1;
    output->part.slot = -1;
    output->limit = UINT64_MAX;
    output->spot.folder = -1;
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

void tsr_output_limit(struct tsr_output *output, uint64_t bytes)
{
    output->limit = bytes;
}

uint64_t tsr_output_limit_of(const struct tsr_output *output)
{
    return output->limit;
}

/* If the caller named a symbolic link, the output replaces the file that the link leads to. */
static enum tsr_status follow_link(struct tsr_output *output, struct tsr_error *error)
{
    struct stat there;
    if (lstat(output->path, &there) != 0 || !S_ISLNK(there.st_mode)) return TSR_OK;
    char *const target = realpath(output->path, NULL);
    if (!target && errno == ENOMEM) return tsr_fail_call(error, TSR_ERROR_LIMIT, "cannot follow", output->path);
    if (!target)
        return tsr_fail(error, TSR_ERROR_WRITE, "%s is a symbolic link that leads nowhere: %s", output->path,
                        strerror(errno));
    free(output->path);
    output->path = target;
    return TSR_OK;
}

/* Writes to a place in the file; its position stays. */
static enum tsr_status write_at(struct tsr_output *output, uint64_t offset, const uint8_t *bytes, size_t size,
                                struct tsr_error *error)
{
    while (size > 0) {
        const ssize_t written = pwrite(output->file, bytes, size, (off_t)offset);
        if (written < 0 && errno == EINTR) continue;
        if (written < 0) return tsr_fail_call(error, TSR_ERROR_WRITE, "cannot write", output->path);
        bytes += written;
        offset += (uint64_t)written;
        size -= (size_t)written;
    }
    return TSR_OK;
}

/* A file with a part's name begins with the mark. */
static enum tsr_status write_mark(struct tsr_output *output, struct tsr_error *error)
{
    uint8_t mark[TSR_PART_MARK];
    tsr_part_mark(output->part.label, mark);
    return write_at(output, 0, mark, sizeof mark, error);
}

/* Creates a file with the name of a part and locks the file. Another process may remove the file as an orphan before it
 * is locked; then it is created again. */
static enum tsr_status open_part(struct tsr_output *output, mode_t mode, struct tsr_error *error)
{
    struct tsr_part *const part = &output->part;
    struct stat status;
    part->folder = output->spot.folder;
    for (int attempt = 0; attempt < 100; attempt++) {
        tsr_part_label(part);
        tsr_part_name(part->label, 0, NULL, part->name);
        output->file = openat(part->folder, part->name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
        if (output->file < 0 && errno == EEXIST) continue;
        if (output->file < 0) break;
        tsr_part_remember(part);
        /* Some file systems have no locks. A lock that another one holds is of a process that takes this for an orphan.
         */
        const bool is_taken = flock(output->file, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
        if (!is_taken && fstat(output->file, &status) == 0 && status.st_nlink > 0) {
            output->is_marked = true;
            return write_mark(output, error);
        }
        close(output->file);
        output->file = -1;
        tsr_part_remove(part);
    }
    part->name[0] = '\0';
    return tsr_fail_call(error, TSR_ERROR_WRITE, "cannot create", output->path);
}

static enum tsr_status open_file(struct tsr_output *output, mode_t mode, struct tsr_error *error)
{
    static int has_paths; /* /proc is there: it stays */
    char path[32];
    output->file = openat(output->spot.folder, ".", O_RDWR | O_TMPFILE | O_CLOEXEC, mode);
    if (output->file >= 0) {
        if (__atomic_load_n(&has_paths, __ATOMIC_RELAXED)) return TSR_OK;
        tsr_path_of_descriptor(output->file, path);
        const bool has_path = access(path, F_OK) == 0;
        __atomic_store_n(&has_paths, has_path, __ATOMIC_RELAXED);
        if (has_path) return TSR_OK;
        close(output->file); /* /proc is missing, so the file could not get a name later */
        output->file = -1;
    } else if (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL && errno != ENOENT) {
        return tsr_fail_call(error, TSR_ERROR_WRITE, "cannot create", output->path);
    }
    tsr_parts_hold();
    const enum tsr_status status = open_part(output, mode, error);
    tsr_parts_release();
    return status;
}

enum tsr_status tsr_output_create(const char *path, const struct tsr_output_options *options, bool is_private,
                                  struct tsr_output **output, struct tsr_error *error)
{
    struct stat there;
    *output = NULL;
    struct tsr_output *created = create(TO_FILE);
    if (!created) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory to write %s", path);
    created->overwrite = options->overwrite;
    created->written = options->written;
    created->path = strdup(path);
    created->bytes = malloc(BUFFER_BYTES);
    created->capacity = BUFFER_BYTES;
    enum tsr_status status =
        created->path && created->bytes ? TSR_OK : tsr_fail(error, TSR_ERROR_LIMIT, "no memory to write %s", path);
    if (status == TSR_OK && !options->is_bounded) status = follow_link(created, error);
    if (status == TSR_OK)
        status = tsr_spot_open(created->path, options->is_bounded ? options->root : SIZE_MAX, &created->spot, error);
    if (status == TSR_OK) status = tsr_output_check_target(created, TSR_NO_FILE, &there, error);
    if (status == TSR_OK) status = open_file(created, is_private ? 0600 : 0666, error);
    if (status != TSR_OK) {
        tsr_output_close(created);
        return status;
    }
    *output = created;
    return TSR_OK;
}

/* An output to a file without a name, which is not there yet. folder: its descriptor, which the output closes; path:
 * for error texts. */
static enum tsr_status create_temporary(int folder, const char *path, size_t buffer, struct tsr_output **output,
                                        struct tsr_error *error)
{
    static const char name[] = "a temporary file in ";
    *output = NULL;
    if (folder < 0) return tsr_fail_call(error, TSR_ERROR_WRITE, "cannot create a temporary file in", path);
    struct tsr_output *const created = create(TO_FILE);
    if (!created) {
        close(folder);
        return tsr_fail(error, TSR_ERROR_LIMIT, "no memory to write to %s", path);
    }
    created->spot.folder = folder;
    created->path = malloc(strlen(path) + sizeof name);
    created->bytes = malloc(buffer);
    created->capacity = buffer;
    if (!created->path || !created->bytes) {
        tsr_output_close(created);
        return tsr_fail(error, TSR_ERROR_LIMIT, "no memory to write to %s", path);
    }
    sprintf(created->path, "%s%s", name, path);
    *output = created;
    return TSR_OK;
}

static enum tsr_status open_temporary(struct tsr_output *output, struct tsr_error *error)
{
    TSR_TRY(open_file(output, 0600, error));
    if (output->is_marked && ftruncate(output->file, 0) != 0)
        return tsr_fail_call(error, TSR_ERROR_WRITE, "cannot create", output->path);
    tsr_part_remove(&output->part); /* where the file system had to give it a name */
    output->is_marked = false;
    return TSR_OK;
}

enum tsr_status tsr_output_to_temporary(const char *folder, struct tsr_output **output, struct tsr_error *error)
{
    TSR_TRY(create_temporary(open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC), folder, BUFFER_BYTES, output, error));
    const enum tsr_status status = open_temporary(*output, error);
    if (status == TSR_OK) return TSR_OK;
    tsr_output_close(*output);
    *output = NULL;
    return status;
}

enum tsr_status tsr_output_create_spool(const struct tsr_output *target, bool hides, struct tsr_output **spool,
                                        struct tsr_error *error)
{
    if (target->kind == TO_MEMORY) {
        *spool = tsr_output_to_memory();
        return *spool ? TSR_OK : tsr_fail(error, TSR_ERROR_LIMIT, "no memory to write");
    }
    const int folder = fcntl(target->spot.folder, F_DUPFD_CLOEXEC, 0);
    TSR_TRY(create_temporary(folder, target->path, SPOOL_BYTES, spool, error));
    (*spool)->is_spool = true;
    (*spool)->hides = hides || target->hides;
    memcpy((*spool)->path, target->path, strlen(target->path) + 1); /* the user knows that one */
    return TSR_OK;
}

void tsr_output_close(struct tsr_output *output)
{
    if (!output) return;
    if (output->file >= 0) close(output->file);
    tsr_part_remove(&output->part);
    tsr_spot_close(&output->spot);
    tsr_scrambler_free(output->scrambler);
    free(output->path);
    free(output->bytes);
    free(output);
}

/* ---- Permissions and times -------------------------------------------------------------------------------- */

/* The permission bits of the original for its copy, without set-user-ID bits and the like. If the copy cannot have the
 * original's group, its group gets only those bits that all others have, too. */
static mode_t permissions_for(int file, const struct stat *original)
{
    struct stat copy;
    const mode_t mode = original->st_mode & 0777;
    if (fstat(file, &copy) == 0 && copy.st_gid == original->st_gid) return mode;
    if (fchown(file, (uid_t)-1, original->st_gid) == 0) return mode;
    return (mode & ~(mode_t)070) | (mode & (mode << 3) & 070);
}

void tsr_output_inherit(struct tsr_output *output, const struct tsr_input *input)
{
    struct stat status;
    if (output->file < 0 || tsr_input_descriptor(input) < 0 || fstat(tsr_input_descriptor(input), &status) != 0) return;
    (void)!fchmod(output->file, permissions_for(output->file, &status));
    output->has_time = true;
    output->time = status.st_mtim;
}

void tsr_output_return_to(struct tsr_output *output, const struct tsr_origin *origin)
{
    struct stat status;
    if (output->file < 0) return;
    if (origin->has_permissions && fstat(output->file, &status) == 0)
        (void)!fchmod(output->file, status.st_mode & origin->permissions);
    if (!origin->has_time) return;
    output->has_time = true;
    output->time = (struct timespec){(time_t)origin->seconds, (long)origin->nanoseconds};
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
    (void)!fchmod(output->file, out.st_mode & permissions_for(output->file, &in));
}

/* ---- Writing ---------------------------------------------------------------------------------------------- */

/* Scrambles the buffered bytes of a spool before they are written to byte in_file of its file, which is made now if it
 * is not there. */
static enum tsr_status hide(struct tsr_output *output, uint64_t in_file, struct tsr_error *error)
{
    if (output->is_spool && output->file < 0) TSR_TRY(open_temporary(output, error));
    if (!output->hides) return TSR_OK;
    if (!output->scrambler) output->scrambler = tsr_scrambler_create();
    if (!output->scrambler) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for a key");
    tsr_scramble(output->scrambler, in_file, output->bytes, output->held);
    return TSR_OK;
}

/* Writes the buffered bytes, then these, which are not copied to the buffer. */
static enum tsr_status write_file(struct tsr_output *output, const void *bytes, size_t size, struct tsr_error *error)
{
    struct iovec pieces[2] = {{output->bytes, output->held}, {(void *)(uintptr_t)bytes, size}};
    output->held = 0;
    while (pieces[0].iov_len + pieces[1].iov_len > 0) {
        const ssize_t result = writev(output->file, pieces, 2);
        if (result < 0 && errno == EINTR) continue;
        if (result < 0) return tsr_fail_call(error, TSR_ERROR_WRITE, "cannot write", output->path);
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
    if (output->kind != TO_FILE || output->held == 0) return TSR_OK;
    TSR_TRY(hide(output, output->size - output->held, error));
    return write_file(output, output->bytes, 0, error);
}

bool tsr_output_is_memory(const struct tsr_output *output)
{
    return output->kind == TO_MEMORY;
}

enum tsr_status tsr_output_make_room(struct tsr_output *output, size_t bytes, struct tsr_error *error)
{
    assert(output->kind == TO_MEMORY && output->held == 0);
    if (bytes <= output->capacity) return TSR_OK;
    free(output->bytes);
    output->bytes = malloc(bytes);
    output->capacity = output->bytes ? bytes : 0;
    return output->bytes ? TSR_OK : tsr_fail(error, TSR_ERROR_LIMIT, "no memory for %zu bytes of output", bytes);
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

/* Appends to the file of a spool, always through the buffer. The output's size has these bytes. */
static enum tsr_status append_hidden(struct tsr_output *output, const uint8_t *bytes, size_t size,
                                     struct tsr_error *error)
{
    uint64_t in_file = output->size - size - output->held;
    while (size > 0) {
        const size_t room = output->capacity - output->held, now = size < room ? size : room;
        memcpy(output->bytes + output->held, bytes, now);
        output->held += now;
        bytes += now;
        size -= now;
        if (output->held < output->capacity) continue;
        TSR_TRY(hide(output, in_file, error));
        in_file += output->held;
        TSR_TRY(write_file(output, output->bytes, 0, error));
    }
    return TSR_OK;
}

/* Appends to a file, through the buffer or past it. */
static enum tsr_status append(struct tsr_output *output, const void *bytes, size_t size, struct tsr_error *error)
{
    const bool may_fit = output->size <= output->capacity; /* all of the file, up to here */
    if (output->is_spool) return append_hidden(output, bytes, size, error);
    if (size > output->capacity - output->held || (size >= DIRECT_BYTES && !may_fit))
        return write_file(output, bytes, size, error);
    memcpy(output->bytes + output->held, bytes, size);
    output->held += size;
    return TSR_OK;
}

/* Keeps those of size bytes at an offset that are among the first. Returns how many of them do not go to the file,
 * since the mark stands there. */
static size_t keep_head(struct tsr_output *output, uint64_t offset, const void *bytes, size_t size)
{
    if (output->kind != TO_FILE || offset >= TSR_PART_MARK) return 0;
    const size_t count = size < TSR_PART_MARK - offset ? size : (size_t)(TSR_PART_MARK - offset);
    memcpy(output->head + offset, bytes, count);
    return output->is_marked ? count : 0;
}

enum tsr_status tsr_output_write(struct tsr_output *output, const void *bytes, size_t size, struct tsr_error *error)
{
    const uint64_t offset = output->size;
    if (size == 0) return TSR_OK;
    if (output->size > output->limit || size > output->limit - output->size)
        return tsr_fail(error, TSR_ERROR_CORRUPT, "the restored file is longer than the .tsr file says");
    output->size += size;
    if (!output->forgoes_hash) tsr_hasher_add(&output->hasher, bytes, size);
    if (output->kind == TO_MEMORY) return keep(output, bytes, size, error);
    if (output->kind == TO_NULL) return TSR_OK;
    const size_t marked = keep_head(output, offset, bytes, size);
    if (marked > 0) {
        uint8_t mark[TSR_PART_MARK];
        tsr_part_mark(output->part.label, mark);
        TSR_TRY(append(output, mark + offset, marked, error));
    }
    return append(output, (const uint8_t *)bytes + marked, size - marked, error);
}

/* Overwrites bytes that are in the file. */
static enum tsr_status patch_file(struct tsr_output *output, uint64_t offset, const uint8_t *bytes, size_t size,
                                  struct tsr_error *error)
{
    uint8_t hidden[256];
    if (!output->scrambler) return write_at(output, offset, bytes, size, error);
    while (size > 0) {
        const size_t now = size < sizeof hidden ? size : sizeof hidden;
        memcpy(hidden, bytes, now);
        tsr_scramble(output->scrambler, offset, hidden, now);
        TSR_TRY(write_at(output, offset, hidden, now, error));
        bytes += now;
        offset += now;
        size -= now;
    }
    return TSR_OK;
}

enum tsr_status tsr_output_patch(struct tsr_output *output, uint64_t offset, const void *bytes, size_t size,
                                 struct tsr_error *error)
{
    const uint64_t in_file = output->size - output->held; /* 0 for a memory output, whose bytes are all held */
    assert(offset <= output->size && size <= output->size - offset);
    if (output->kind == TO_NULL) return TSR_OK;
    const size_t marked = keep_head(output, offset, bytes, size);
    const uint8_t *const from = (const uint8_t *)bytes + marked;
    offset += marked;
    size -= marked;
    const size_t before = offset >= in_file ? 0 : size < in_file - offset ? size : (size_t)(in_file - offset);
    TSR_TRY(patch_file(output, offset, from, before, error));
    if (size > before) memcpy(output->bytes + (offset + before - in_file), from + before, size - before);
    return TSR_OK;
}

enum tsr_status tsr_output_read(struct tsr_output *output, uint64_t offset, void *bytes, size_t size,
                                struct tsr_error *error)
{
    uint8_t *to = bytes;
    const uint64_t in_file = output->size - output->held;
    assert(output->kind != TO_NULL && offset <= output->size && size <= output->size - offset);
    for (; output->is_marked && size > 0 && offset < TSR_PART_MARK; size--) *to++ = output->head[offset++];
    while (size > 0 && offset < in_file) {
        const size_t now = size < in_file - offset ? size : (size_t)(in_file - offset);
        const ssize_t got = pread(output->file, to, now, (off_t)offset);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return tsr_fail_call(error, TSR_ERROR_WRITE, "cannot read again", output->path);
        if (got == 0) return tsr_fail(error, TSR_ERROR_WRITE, "%s became shorter while it was written", output->path);
        if (output->scrambler) tsr_scramble(output->scrambler, offset, to, (size_t)got);
        to += got;
        offset += (uint64_t)got;
        size -= (size_t)got;
    }
    if (size > 0) memcpy(to, output->bytes + (offset - in_file), size);
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
    const uint64_t in_file = output->size - output->held; /* bytes of a file that are not in the buffer any more */
    const bool kept = mark->size >= in_file;
    if (output->kind == TO_FILE)
        output->held = kept ? (size_t)(mark->size - in_file) : 0;
    else if (output->kind == TO_MEMORY)
        output->held = (size_t)mark->size;
    output->size = mark->size;
    output->hasher = mark->hasher;
    if (output->kind == TO_FILE && !kept &&
        (ftruncate(output->file, size) != 0 || lseek(output->file, size, SEEK_SET) != size))
        return tsr_fail_call(error, TSR_ERROR_WRITE, "cannot rewrite", output->path);
    return output->is_marked && size < TSR_PART_MARK ? write_mark(output, error) : TSR_OK;
}

/* Replaces the mark by the bytes that the file is to begin with. The name of the part says them first, so that the file
 * is known as a part at each moment. */
static enum tsr_status remove_mark(struct tsr_output *output, struct tsr_error *error)
{
    struct tsr_part *const part = &output->part;
    char name[TSR_PART_NAME];
    const size_t count = output->size < TSR_PART_MARK ? (size_t)output->size : TSR_PART_MARK;
    tsr_part_name(part->label, output->size, output->head, name);
    tsr_parts_hold();
    const bool is_renamed = renameat(part->folder, part->name, part->folder, name) == 0;
    if (is_renamed) memcpy(part->name, name, sizeof name);
    tsr_parts_release();
    if (!is_renamed) return tsr_fail_call(error, TSR_ERROR_WRITE, "cannot rename the part of", output->path);
    TSR_TRY(write_at(output, 0, output->head, count, error));
    if (ftruncate(output->file, (off_t)output->size) != 0)
        return tsr_fail_call(error, TSR_ERROR_WRITE, "cannot write", output->path);
    output->is_marked = false;
    return TSR_OK;
}

enum tsr_status tsr_output_finish(struct tsr_output *output, struct tsr_error *error)
{
    if (output->kind != TO_FILE) return TSR_OK;
    TSR_TRY(tsr_output_flush(output, error));
    if (output->is_marked) TSR_TRY(remove_mark(output, error));
    if (!output->part.name[0]) tsr_output_set_time(output);
    if (fsync(output->file) != 0) return tsr_fail_call(error, TSR_ERROR_WRITE, "cannot write", output->path);
    return TSR_OK;
}

bool tsr_output_drop_cache(struct tsr_output *output)
{
    uint8_t byte;
    const struct iovec first = {&byte, 1};
    /* On Linux the first try sometimes leaves a page in the cache (6 of 1800 files), and the next one does not. */
    for (int tries = 0; tries < 3; tries++) {
        if (output->kind != TO_FILE || posix_fadvise(output->file, 0, 0, POSIX_FADV_DONTNEED) != 0) return false;
        /* If nothing is cached, a read that must not wait fails with EAGAIN. */
        if (preadv2(output->file, &first, 1, 0, RWF_NOWAIT) < 0) return errno == EAGAIN;
    }
    return false;
}

enum tsr_status tsr_output_reopen(struct tsr_output *output, struct tsr_input **input, struct tsr_error *error)
{
    assert(output->kind != TO_NULL);
    TSR_TRY(tsr_output_flush(output, error));
    if (output->kind == TO_MEMORY) {
        *input = tsr_input_from_memory(output->bytes, (size_t)output->size, "what was written");
        return *input ? TSR_OK : tsr_fail(error, TSR_ERROR_LIMIT, "no memory to read what was written");
    }
    if (output->is_marked) TSR_TRY(remove_mark(output, error)); /* all is written, and the part has a name of that */
    const int again = fcntl(output->file, F_DUPFD_CLOEXEC, 0);
    if (again < 0) return tsr_fail_call(error, TSR_ERROR_WRITE, "cannot read again", output->path);
    return tsr_input_from_descriptor(again, output->path, input, error);
}

/* ---- Results ---------------------------------------------------------------------------------------------- */

const uint8_t *tsr_output_bytes(const struct tsr_output *output)
{
    return output->bytes;
}

uint8_t *tsr_output_take_bytes(struct tsr_output *output)
{
    assert(output->kind == TO_MEMORY);
    uint8_t *const shrunk = output->held > 0 ? realloc(output->bytes, output->held) : NULL;
    uint8_t *const bytes = shrunk ? shrunk : output->bytes;
    output->bytes = NULL;
    output->held = output->capacity = 0;
    return bytes;
}

struct tsr_hash128 tsr_output_hash(const struct tsr_output *output)
{
    return tsr_hasher_result128(&output->hasher);
}
