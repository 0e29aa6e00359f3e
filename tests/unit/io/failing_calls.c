/* Calls that fail on demand; see failing_calls.h. */
#include "failing_calls.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "io/output.h"

struct call_plan call_plans[CALL_KINDS];
static long blocks;

void plan_calls(enum call_kind kind, long fails, bool lasts, enum call_fault fault)
{
    call_plans[kind] = (struct call_plan){0, fails, lasts, fault, 0};
}

void plan_no_failures(void)
{
    for (int kind = 0; kind < CALL_KINDS; kind++) plan_calls((enum call_kind)kind, 0, false, FAULT_ERROR);
}

long live_blocks(void)
{
    return blocks;
}

/* Counts a call and says whether it fails. Several threads may call it, but which of them has which number is open. */
static bool fails(enum call_kind kind)
{
    struct call_plan *p = &call_plans[kind];
    const long count = __atomic_add_fetch(&p->count, 1, __ATOMIC_RELAXED);
    const bool now = p->fails > 0 && (count == p->fails || (p->lasts && count > p->fails));
    if (now) __atomic_add_fetch(&p->failed, 1, __ATOMIC_RELAXED);
    return now;
}

/* ---- Memory ------------------------------------------------------------------------------------------------- */

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *block, size_t size);
void *__real_aligned_alloc(size_t alignment, size_t size);
char *__real_strdup(const char *text);
void __real_free(void *block);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *block, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);
char *__wrap_strdup(const char *text);
int __wrap_asprintf(char **text, const char *format, ...);
void __wrap_free(void *block);

static void *counted(void *block)
{
    if (block)
        __atomic_add_fetch(&blocks, 1, __ATOMIC_RELAXED);
    else
        errno = ENOMEM;
    return block;
}

void *__wrap_malloc(size_t size)
{
    return counted(fails(CALL_ALLOCATE) ? NULL : __real_malloc(size));
}

void *__wrap_calloc(size_t count, size_t size)
{
    return counted(fails(CALL_ALLOCATE) ? NULL : __real_calloc(count, size));
}

void *__wrap_realloc(void *block, size_t size)
{
    if (fails(CALL_ALLOCATE)) return NULL;
    if (!block) return counted(__real_realloc(block, size));
    return __real_realloc(block, size);
}

void *__wrap_aligned_alloc(size_t alignment, size_t size)
{
    return counted(fails(CALL_ALLOCATE) ? NULL : __real_aligned_alloc(alignment, size));
}

char *__wrap_strdup(const char *text)
{
    return counted(fails(CALL_ALLOCATE) ? NULL : __real_strdup(text));
}

int __wrap_asprintf(char **text, const char *format, ...)
{
    va_list arguments;
    *text = (char *)(size_t)0xbad; /* asprintf leaves it undefined if it fails */
    errno = ENOMEM;
    if (fails(CALL_ALLOCATE)) return -1;
    va_start(arguments, format);
    const int size = vasprintf(text, format, arguments);
    va_end(arguments);
    counted(*text);
    return size;
}

void __wrap_free(void *block)
{
    if (block) __atomic_sub_fetch(&blocks, 1, __ATOMIC_RELAXED);
    __real_free(block);
}

/* ---- Files -------------------------------------------------------------------------------------------------- */

#if __SIZEOF_POINTER__ == 4 /* the names of calls with a 64-bit off_t */
#define __real_pread __real_pread64
#define __real_pwrite __real_pwrite64
#define __real_open __real_open64
#define __real_openat __real_openat64
#define __wrap_pread __wrap_pread64
#define __wrap_pwrite __wrap_pwrite64
#define __wrap_open __wrap_open64
#define __wrap_openat __wrap_openat64
#define __wrap___open_2 __wrap___open64_2
#define __wrap___openat_2 __wrap___openat64_2
#endif

ssize_t __real_writev(int file, const struct iovec *pieces, int count);
ssize_t __real_pread(int file, void *bytes, size_t size, off_t offset);
ssize_t __real_pwrite(int file, const void *bytes, size_t size, off_t offset);
int __real_open(const char *path, int flags, ...);
int __real_openat(int folder, const char *path, int flags, ...);
int __real_linkat(int from_folder, const char *from, int to_folder, const char *to, int flags);
int __real_renameat(int from_folder, const char *from, int to_folder, const char *to);
int __real_renameat2(int from_folder, const char *from, int to_folder, const char *to, unsigned flags);
ssize_t __wrap_writev(int file, const struct iovec *pieces, int count);
ssize_t __wrap_pwrite(int file, const void *bytes, size_t size, off_t offset);
ssize_t __wrap_pread(int file, void *bytes, size_t size, off_t offset);
int __wrap_open(const char *path, int flags, ...);
int __wrap_openat(int folder, const char *path, int flags, ...);
int __wrap___open_2(const char *path, int flags);
int __wrap___openat_2(int folder, const char *path, int flags);
int __wrap_fsync(int file);
int __wrap_linkat(int from_folder, const char *from, int to_folder, const char *to, int flags);
int __wrap_renameat(int from_folder, const char *from, int to_folder, const char *to);
int __wrap_renameat2(int from_folder, const char *from, int to_folder, const char *to, unsigned flags);

bool files_need_names;
void (*before_exchange)(void);

/* Writes a third of all pieces. */
static ssize_t write_less(int file, const struct iovec *pieces, int count)
{
    struct iovec less[4];
    size_t left = 2;
    assert(count <= 4);
    for (int i = 0; i < count; i++) left += pieces[i].iov_len;
    left /= 3;
    for (int i = 0; i < count; i++) {
        less[i] = pieces[i];
        if (less[i].iov_len > left) less[i].iov_len = left;
        left -= less[i].iov_len;
    }
    return __real_writev(file, less, count);
}

ssize_t __wrap_writev(int file, const struct iovec *pieces, int count)
{
    if (fails(CALL_WRITE)) {
        if (call_plans[CALL_WRITE].fault == FAULT_SHORT) return write_less(file, pieces, count);
        errno = call_plans[CALL_WRITE].fault == FAULT_INTERRUPTED ? EINTR : ENOSPC;
        return -1;
    }
    return __real_writev(file, pieces, count);
}

ssize_t __wrap_pwrite(int file, const void *bytes, size_t size, off_t offset)
{
    if (fails(CALL_WRITE)) {
        if (call_plans[CALL_WRITE].fault == FAULT_SHORT) return __real_pwrite(file, bytes, (size + 2) / 3, offset);
        errno = call_plans[CALL_WRITE].fault == FAULT_INTERRUPTED ? EINTR : ENOSPC;
        return -1;
    }
    return __real_pwrite(file, bytes, size, offset);
}

ssize_t __wrap_pread(int file, void *bytes, size_t size, off_t offset)
{
    if (fails(CALL_READ)) {
        if (call_plans[CALL_READ].fault == FAULT_SHORT) return __real_pread(file, bytes, (size + 2) / 3, offset);
        if (call_plans[CALL_READ].fault == FAULT_END) return 0;
        errno = call_plans[CALL_READ].fault == FAULT_INTERRUPTED ? EINTR : EIO;
        return -1;
    }
    return __real_pread(file, bytes, size, offset);
}

int __wrap_open(const char *path, int flags, ...)
{
    va_list arguments;
    va_start(arguments, flags);
    const mode_t mode = flags & O_CREAT ? va_arg(arguments, mode_t) : 0;
    va_end(arguments);
    if (fails(CALL_OPEN)) {
        errno = EMFILE;
        return -1;
    }
    return __real_open(path, flags, mode);
}

int __wrap_openat(int folder, const char *path, int flags, ...)
{
    va_list arguments;
    va_start(arguments, flags);
    const mode_t mode = flags & (O_CREAT | (O_TMPFILE & ~O_DIRECTORY)) ? va_arg(arguments, mode_t) : 0;
    va_end(arguments);
    if (files_need_names && (flags & O_TMPFILE) == O_TMPFILE) {
        errno = EOPNOTSUPP;
        return -1;
    }
    if (fails(CALL_OPEN)) {
        errno = EMFILE;
        return -1;
    }
    return __real_openat(folder, path, flags, mode);
}

/* Fortified calls, which have no mode. */
int __wrap___open_2(const char *path, int flags)
{
    return __wrap_open(path, flags);
}

int __wrap___openat_2(int folder, const char *path, int flags)
{
    return __wrap_openat(folder, path, flags);
}

int __wrap_fsync(int file)
{
    if (fails(CALL_SYNC)) {
        errno = EIO;
        return -1;
    }
    (void)file;
    return 0; /* no sync: a thousand runs need not wait for the disk */
}

/* EINVAL: this file system does not have the call. */
static bool fails_to_name(void)
{
    if (!fails(CALL_RENAME)) return false;
    errno = call_plans[CALL_RENAME].fault == FAULT_SHORT ? EINVAL : EACCES;
    return true;
}

int __wrap_linkat(int from_folder, const char *from, int to_folder, const char *to, int flags)
{
    return fails_to_name() ? -1 : __real_linkat(from_folder, from, to_folder, to, flags);
}

/* Each file system has this call. */
int __wrap_renameat(int from_folder, const char *from, int to_folder, const char *to)
{
    const bool is_lacking = call_plans[CALL_RENAME].fault == FAULT_SHORT;
    return !is_lacking && fails_to_name() ? -1 : __real_renameat(from_folder, from, to_folder, to);
}

int __wrap_renameat2(int from_folder, const char *from, int to_folder, const char *to, unsigned flags)
{
    void (*const now)(void) = flags & RENAME_EXCHANGE ? before_exchange : NULL;
    if (now) before_exchange = NULL, now();
    return fails_to_name() ? -1 : __real_renameat2(from_folder, from, to_folder, to, flags);
}

/* ---- Outputs ------------------------------------------------------------------------------------------------ */

enum tsr_status __real_tsr_output_write(struct tsr_output *output, const void *bytes, size_t size,
                                        struct tsr_error *error);
enum tsr_status __wrap_tsr_output_write(struct tsr_output *output, const void *bytes, size_t size,
                                        struct tsr_error *error);

enum tsr_status __wrap_tsr_output_write(struct tsr_output *output, const void *bytes, size_t size,
                                        struct tsr_error *error)
{
    if (fails(CALL_PUT)) return tsr_fail(error, TSR_ERROR_WRITE, "a planted failure");
    return __real_tsr_output_write(output, bytes, size, error);
}
