/* Inputs: files, memory and functions. */
#include "input.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "file_set.h"
#include "input_parts.h"

static struct tsr_input *create(const char *name)
{
    struct tsr_input *input = aligned_alloc(64, (sizeof *input + 63) / 64 * 64);
    if (!input) return NULL;
    memset(input, 0, sizeof *input);
    input->file = -1;
    input->name = strdup(name);
    if (!input->name) {
        free(input);
        return NULL;
    }
    tsr_hasher_init(&input->hasher);
    return input;
}

enum tsr_status tsr_input_from_descriptor(int file, const char *name, struct tsr_input **input, struct tsr_error *error)
{
    *input = NULL;
    struct tsr_input *opened = create(name);
    if (!opened) {
        close(file);
        return tsr_fail(error, TSR_ERROR_LIMIT, "no memory to open %s", name);
    }
    opened->file = file;
    if (fstat(file, &opened->opened) != 0 || !S_ISREG(opened->opened.st_mode)) {
        tsr_input_close(opened);
        return tsr_fail(error, TSR_ERROR_READ, "%s is not a regular file", name);
    }
    opened->size = (uint64_t)opened->opened.st_size;
    *input = opened;
    return TSR_OK;
}

enum tsr_status tsr_input_open(const char *path, struct tsr_input **input, struct tsr_error *error)
{
    *input = NULL;
    const int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* O_NONBLOCK: opening a pipe must not block */
    if (file < 0) return tsr_fail_call(error, TSR_ERROR_READ, "cannot open", path);
    TSR_TRY(tsr_input_from_descriptor(file, path, input, error));
    (*input)->is_by_name = true;
    return TSR_OK;
}

struct tsr_input *tsr_input_from_memory(const void *bytes, size_t size, const char *name)
{
    struct tsr_input *input = create(name);
    if (!input) return NULL;
    input->is_memory = true;
    input->bytes = bytes, input->size = size;
    return input;
}

enum tsr_status tsr_input_open_inner(struct tsr_input *outer, const void *bytes, size_t size, struct tsr_input **input,
                                     struct tsr_error *error)
{
    int depth = 1;
    for (const struct tsr_input *of = outer; of->outer; of = of->outer) depth++;
    *input = NULL;
    if (depth > TSR_INNER_DEPTH)
        return tsr_fail(error, TSR_ERROR_CORRUPT, "more than %d files stand in each other", TSR_INNER_DEPTH);
    struct tsr_input *const inner = tsr_input_from_memory(bytes, size, outer->name);
    if (!inner) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for a file in %s", outer->name);
    inner->outer = outer;
    inner->crew = outer->crew;
    inner->account = outer->account;
    inner->inner_most = outer->inner_most;
    *input = inner;
    return TSR_OK;
}

uint64_t tsr_input_inner_limit(const struct tsr_input *input)
{
    static const uint64_t free_bytes = 8 << 20, most = UINT64_MAX / 2 / TSR_INNER_RATIO;
    return input->outer ? input->inner_limit : free_bytes + TSR_INNER_RATIO * (input->size < most ? input->size : most);
}

void tsr_input_limit_inner(struct tsr_input *input, uint64_t bytes)
{
    input->inner_limit = bytes;
}

void tsr_input_begin_inner(struct tsr_input *input, uint64_t original, uint64_t tsr)
{
    atomic_store(&input->inner_bytes, 0);
    if (!input->outer) input->inner_most = tsr_inner_most(original, tsr);
}

bool tsr_input_count_inner(struct tsr_input *input, uint64_t bytes)
{
    uint64_t counted = atomic_load(&input->inner_bytes);
    do {
        if (bytes > input->inner_most || counted > input->inner_most - bytes) return false;
    } while (!atomic_compare_exchange_weak(&input->inner_bytes, &counted, counted + bytes));
    return true;
}

uint64_t tsr_input_inner_bytes(const struct tsr_input *input)
{
    return atomic_load(&input->inner_bytes);
}

struct tsr_input *tsr_input_from_calls(const struct tsr_input_calls *calls, const char *name)
{
    struct tsr_input *input = create(name);
    if (!input) return NULL;
    input->calls = *calls;
    input->size = calls->size;
    return input;
}

enum tsr_status tsr_input_share(const struct tsr_input *input, struct tsr_input **shared, struct tsr_error *error)
{
    struct tsr_input *const other = create(input->name);
    *shared = other;
    if (!other) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory to read %s", input->name);
    other->file = input->file;
    other->is_shared = true;
    other->is_memory = input->is_memory;
    other->bytes = input->bytes;
    other->calls = input->calls;
    other->start = input->start;
    other->size = input->size;
    other->opened = input->opened;
    other->sealed = input->sealed;
    tsr_input_set_watch(other, input->watch, input->pass, input->asks);
    return TSR_OK;
}

void tsr_input_narrow(struct tsr_input *input, uint64_t offset, uint64_t size)
{
    tsr_input_drop_held(input);
    input->start += offset, input->size = size;
    if (input->is_memory) input->bytes += offset;
}

/* ---- Watches ---------------------------------------------------------------------------------------------- */

void tsr_input_set_watch(struct tsr_input *input, const struct tsr_watch *watch, enum tsr_pass pass,
                         tsr_input_asks *asks)
{
    input->watch = watch;
    input->pass = pass;
    input->asks = asks;
}

void tsr_input_follow(struct tsr_input *input, const struct tsr_input *source)
{
    tsr_input_set_watch(input, source->watch, TSR_PASS_PROVE, source->asks);
    input->guessed = source->guessed;
}

void tsr_input_set_guessed(struct tsr_input *input, bool *guessed)
{
    input->guessed = guessed;
}

bool *tsr_input_guessed(const struct tsr_input *input)
{
    return input->guessed;
}

void tsr_input_begin(struct tsr_input *input)
{
    atomic_store(&input->done, 0);
    atomic_store(&input->is_cancelled, false);
}

enum tsr_status tsr_input_end(const struct tsr_input *input, enum tsr_status status, struct tsr_error *error)
{
    if (input && input->outer) return tsr_input_end(input->outer, status, error);
    if (!input || !atomic_load(&input->is_cancelled)) return status;
    return tsr_fail(error, TSR_ERROR_CANCELLED, "%s was not read to its end: the call was cancelled", input->name);
}

enum tsr_status tsr_input_ask(struct tsr_input *input, struct tsr_error *error)
{
    if (input->outer) return tsr_input_ask(input->outer, error);
    if (!input->watch) return TSR_OK;
    if (!atomic_load(&input->is_cancelled) &&
        !input->asks(input->watch, input->pass, atomic_load(&input->done), input->size))
        atomic_store(&input->is_cancelled, true);
    return tsr_input_end(input, TSR_OK, error);
}

static void note_done(struct tsr_input *input, uint64_t end)
{
    uint64_t done = atomic_load(&input->done);
    while (done < end && !atomic_compare_exchange_weak(&input->done, &done, end)) continue;
}

void tsr_input_close(struct tsr_input *input)
{
    if (!input) return;
    if (input->file >= 0 && !input->is_shared) close(input->file);
    tsr_input_drop_held(input);
    if (input->owns_sealed) tsr_sealed_close(input->sealed);
    free(input->name);
    free(input);
}

void tsr_input_note_damage(struct tsr_input *input, const char *format, ...)
{
    va_list list;
    if (input->damage[0]) return;
    va_start(list, format);
    vsnprintf(input->damage, sizeof input->damage, format, list);
    va_end(list);
}

const char *tsr_input_damage(const struct tsr_input *input)
{
    return input->damage;
}

int tsr_input_descriptor(const struct tsr_input *input)
{
    return input->file;
}

uint64_t tsr_input_size(const struct tsr_input *input)
{
    return input->size;
}

bool tsr_input_origin(const struct tsr_input *input, struct tsr_origin *origin)
{
    const struct stat *const opened = &input->opened;
    *origin = (struct tsr_origin){0};
    if (input->file < 0) return false;
    origin->has_time = origin->has_permissions = true;
    origin->seconds = opened->st_mtim.tv_sec;
    origin->nanoseconds = (uint32_t)opened->st_mtim.tv_nsec;
    origin->permissions = opened->st_mode & 0777;
    return true;
}

const char *tsr_input_name(const struct tsr_input *input)
{
    return input->name;
}

static enum tsr_status read_by_calls(struct tsr_input *input, uint64_t offset, uint8_t *buffer, size_t size,
                                     struct tsr_error *error)
{
    while (size > 0) {
        const int64_t got = input->calls.read(input->calls.context, input->start + offset, buffer, size);
        if (got <= 0 || (uint64_t)got > size)
            return tsr_fail_at(error, TSR_ERROR_READ, offset, "cannot read %s: its function returns %lld of %zu bytes",
                               input->name, (long long)got, size);
        buffer += got;
        offset += (uint64_t)got;
        size -= (size_t)got;
    }
    return TSR_OK;
}

static enum tsr_status read_outside(struct tsr_input *input, uint64_t offset, uint8_t *buffer, size_t size,
                                    struct tsr_error *error)
{
    if (input->sealed) return tsr_sealed_read(input->sealed, input->start + offset, buffer, size, error);
    if (input->file < 0) return read_by_calls(input, offset, buffer, size, error);
    while (size > 0) {
        const ssize_t got = pread(input->file, buffer, size, (off_t)(input->start + offset));
        if (got < 0 && errno == EINTR) continue;
        if (got < 0)
            return tsr_fail_at(error, TSR_ERROR_READ, offset, "cannot read %s: %s", input->name, strerror(errno));
        if (got == 0)
            return tsr_fail_at(error, TSR_ERROR_READ, offset, "%s became shorter while it was read", input->name);
        buffer += got;
        offset += (uint64_t)got;
        size -= (size_t)got;
    }
    return TSR_OK;
}

static enum tsr_status fail_end(const struct tsr_input *input, uint64_t offset, uint64_t size, struct tsr_error *error)
{
    return tsr_fail_at(error, TSR_ERROR_READ, offset, "%s ends before byte %llu", input->name,
                       (unsigned long long)(offset + size));
}

/* Reads bytes that the input has: those that are held at its start or its end, and those outside. */
static enum tsr_status read_here(struct tsr_input *input, uint64_t offset, uint8_t *out, size_t size,
                                 struct tsr_error *error)
{
    const uint8_t *const held = input->is_memory ? input->bytes : input->held;
    const uint64_t held_size = input->is_memory ? input->size : input->held_size;
    const size_t from_held = offset >= held_size ? 0 : size < held_size - offset ? size : (size_t)(held_size - offset);
    if (from_held > 0) memcpy(out, held + offset, from_held);
    const uint64_t end_begin = input->size - input->end_size;
    if (offset >= end_begin && size > from_held) {
        memcpy(out, input->end + (offset - end_begin), size);
        return TSR_OK;
    }
    return size > from_held ? read_outside(input, offset + from_held, out + from_held, size - from_held, error)
                            : TSR_OK;
}

/* Parts are as large as what a thread has in its cache. */
enum { PART_BYTES = 1 << 18, LEAST_PARTS = 4 };

struct parts {
    struct tsr_input *input;
    uint64_t offset;
    uint8_t *out;
    size_t size;
    atomic_bool fails;
};

static void read_part(void *context, unsigned index)
{
    struct parts *const parts = context;
    const size_t at = (size_t)index * PART_BYTES, left = parts->size - at;
    struct tsr_error ignored;
    if (read_here(parts->input, parts->offset + at, parts->out + at, left < PART_BYTES ? left : PART_BYTES, &ignored) !=
        TSR_OK)
        atomic_store(&parts->fails, true);
}

/* Reads the parts at once. If one of them fails, one thread reads all, so that the error does not depend on threads. */
static enum tsr_status read_parts(struct tsr_input *input, uint64_t offset, uint8_t *out, size_t size,
                                  struct tsr_error *error)
{
    struct parts parts = {.input = input, .offset = offset, .out = out, .size = size};
    const size_t count = (size + PART_BYTES - 1) / PART_BYTES;
    TSR_TRY(tsr_input_ask(input, error));
    if (input->watch) note_done(input, offset + size);
    const bool by_calls = input->file < 0 && !input->is_memory;
    if (!input->crew.run || by_calls || count < LEAST_PARTS || count > UINT_MAX)
        return read_here(input, offset, out, size, error);
    input->crew.run(input->crew.pool, read_part, &parts, (unsigned)count);
    return atomic_load(&parts.fails) ? read_here(input, offset, out, size, error) : TSR_OK;
}

enum tsr_status tsr_input_read(struct tsr_input *input, uint64_t offset, void *buffer, size_t size,
                               struct tsr_error *error)
{
    uint8_t *const out = buffer;
    if (offset > input->size || size > input->size - offset) return fail_end(input, offset, size, error);
    TSR_TRY(read_parts(input, offset, out, size, error));
    if (!input->hashes_late && input->lasting_size == 0 && offset <= input->hashed && offset + size > input->hashed) {
        const size_t known = (size_t)(input->hashed - offset);
        tsr_hasher_add(&input->hasher, out + known, size - known);
        input->hashed = offset + size;
    }
    return TSR_OK;
}

enum tsr_status tsr_input_peek(struct tsr_input *input, uint64_t offset, void *buffer, size_t size,
                               struct tsr_error *error)
{
    if (offset > input->size || size > input->size - offset) return fail_end(input, offset, size, error);
    TSR_TRY(tsr_input_ask(input, error));
    return read_here(input, offset, buffer, size, error);
}

enum tsr_status tsr_input_read_lasting(struct tsr_input *input, uint64_t offset, void *buffer, size_t size,
                                       struct tsr_error *error)
{
    const bool follows = input->lasting_size == 0 || input->lasting + input->lasting_size == buffer;
    if (offset != input->hashed + input->lasting_size || !follows || offset > input->size ||
        size > input->size - offset)
        return tsr_input_read(input, offset, buffer, size, error);
    TSR_TRY(read_parts(input, offset, buffer, size, error));
    if (input->lasting_size == 0) input->lasting = buffer;
    input->lasting_size += size;
    return TSR_OK;
}

void tsr_input_hash_read(struct tsr_input *input)
{
    tsr_hasher_add(&input->hasher, input->lasting, input->lasting_size);
    input->hashed += input->lasting_size;
    input->lasting_size = 0;
}

enum tsr_status tsr_input_hold(struct tsr_input *input, size_t size, const uint8_t **bytes, struct tsr_error *error)
{
    if (size > input->size) return fail_end(input, 0, size, error);
    *bytes = input->bytes;
    if (input->is_memory) return TSR_OK;
    if (size > input->held_size) {
        uint8_t *grown = realloc(input->held, size);
        if (!grown) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for %zu bytes of %s", size, input->name);
        input->held = grown;
        const size_t from = input->held_size;
        TSR_TRY(read_parts(input, from, grown + from, size - from, error));
        input->held_size = size;
    }
    *bytes = input->held;
    return TSR_OK;
}

enum tsr_status tsr_input_hold_end(struct tsr_input *input, size_t size, struct tsr_error *error)
{
    if (size > input->size) size = (size_t)input->size;
    if (input->is_memory || size <= input->end_size) return TSR_OK;
    uint8_t *const end = malloc(size);
    if (!end) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for %zu bytes of %s", size, input->name);
    const enum tsr_status status = read_outside(input, input->size - size, end, size, error);
    if (status != TSR_OK) {
        free(end);
        return status;
    }
    free(input->end);
    input->end = end;
    input->end_size = size;
    return TSR_OK;
}

void tsr_input_drop_held(struct tsr_input *input)
{
    free(input->held);
    free(input->end);
    input->held = input->end = NULL;
    input->held_size = input->end_size = 0;
}

/* Fails if the file is longer than its size. Files of pseudo file systems can be. */
static enum tsr_status check_end(struct tsr_input *input, struct tsr_error *error)
{
    uint8_t more;
    ssize_t got;
    do got = pread(input->file, &more, 1, input->opened.st_size);
    while (got < 0 && errno == EINTR);
    if (got < 0) return tsr_fail(error, TSR_ERROR_READ, "cannot read %s: %s", input->name, strerror(errno));
    if (got == 0) return TSR_OK;
    return tsr_fail(error, TSR_ERROR_READ, "%s is longer than its size of %llu bytes says", input->name,
                    (unsigned long long)input->size);
}

static bool same_time(struct timespec a, struct timespec b)
{
    return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

enum tsr_status tsr_input_check(const struct tsr_input *input, struct tsr_error *error)
{
    const struct stat *was = &input->opened;
    struct stat is;
    if (input->file < 0) return TSR_OK;
    if (fstat(input->file, &is) != 0)
        return tsr_fail(error, TSR_ERROR_READ, "cannot get the status of %s: %s", input->name, strerror(errno));
    if (is.st_size == was->st_size && same_time(is.st_mtim, was->st_mtim) && same_time(is.st_ctim, was->st_ctim))
        return TSR_OK;
    return tsr_fail(error, TSR_ERROR_READ, "%s changed while it was read", input->name);
}

/* Fails if the file's name leads to another one by now. */
static enum tsr_status check_name(const struct tsr_input *input, struct tsr_error *error)
{
    if (!input->is_by_name) return TSR_OK;
    if (tsr_leads_to(AT_FDCWD, input->name, 0, &input->opened)) return TSR_OK;
    return errno != 0
               ? tsr_fail(error, TSR_ERROR_READ, "%s was removed while it was read: %s", input->name, strerror(errno))
               : tsr_fail(error, TSR_ERROR_READ, "%s was replaced while it was read", input->name);
}

/* Reads what is not hashed before this byte: usually all is. */
static enum tsr_status hash_until(struct tsr_input *input, uint64_t end, struct tsr_error *error)
{
    uint8_t chunk[1 << 14];
    while (input->hashed < end) {
        const uint64_t left = end - input->hashed;
        TSR_TRY(tsr_input_read(input, input->hashed, chunk, left < sizeof chunk ? (size_t)left : sizeof chunk, error));
    }
    return TSR_OK;
}

enum tsr_status tsr_input_view(struct tsr_input *input, uint64_t offset, size_t size, uint8_t **room,
                               const uint8_t **bytes, struct tsr_error *error)
{
    *room = NULL;
    if (offset > input->size || size > input->size - offset) return fail_end(input, offset, size, error);
    if (input->is_memory || offset + size <= input->held_size) {
        *bytes = (input->is_memory ? input->bytes : input->held) + offset;
        return tsr_input_ask(input, error);
    }
    TSR_TRY(hash_until(input, offset, error));
    *bytes = *room = malloc(size + 1);
    if (!*room) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for %zu bytes of %s", size, input->name);
    return tsr_input_read(input, offset, *room, size, error);
}

enum tsr_status tsr_input_hash(struct tsr_input *input, struct tsr_hash128 *hash, struct tsr_error *error)
{
    input->hashes_late = false;
    enum tsr_status status = hash_until(input, input->size, error);
    if (status == TSR_OK && input->file >= 0) status = check_end(input, error);
    if (status == TSR_OK) status = tsr_input_check(input, error);
    if (status == TSR_OK) status = check_name(input, error);
    *hash = tsr_hasher_result128(&input->hasher);
    return status;
}

void tsr_input_hash_late(struct tsr_input *input)
{
    input->hashes_late = true;
}

void tsr_input_restart_hash(struct tsr_input *input)
{
    tsr_hasher_init(&input->hasher);
    input->hashes_late = false;
    input->hashed = input->lasting_size = 0;
}
