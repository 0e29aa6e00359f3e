/* A library that is loaded before all others (LD_PRELOAD). It counts the calls that a program and its libraries make
 * from main on. It makes one of them fail, or ends the process there, or puts another file in an input's place. */
#include "shim.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static struct shim_board *board; /* NULL before main */

/* The data dictionary while DCMTK reads it in this thread. Its reader does not check malloc: a failure ends the process
 * by a signal. That leaves no files, so allocations meanwhile are not counted. */
static _Thread_local FILE *dictionary;

/* The same goes for libraries while they are loaded: their C++ code may allocate. */
static _Thread_local bool is_loading;

/* ---- The plan --------------------------------------------------------------------------------------------- */

/* The shim's own calls go to the kernel, so they are not counted. */
static long kernel_open(const char *path, int flags)
{
    return syscall(SYS_openat, AT_FDCWD, path, flags, 0);
}

static void overwrite(const char *from, const char *to)
{
    char bytes[4096];
    const int in = (int)kernel_open(from, O_RDONLY), out = (int)kernel_open(to, O_WRONLY);
    for (long got; in >= 0 && out >= 0 && (got = syscall(SYS_read, in, bytes, sizeof bytes)) > 0;)
        if (syscall(SYS_write, out, bytes, got) != got) break;
    syscall(SYS_close, in);
    syscall(SYS_close, out);
}

static void cut(const char *path)
{
    const int file = (int)kernel_open(path, O_WRONLY);
    const long size = syscall(SYS_lseek, file, 0L, SEEK_END);
    if (size > 0) syscall(SYS_ftruncate, file, size / 2);
    syscall(SYS_close, file);
}

static void end_process(void)
{
    syscall(SYS_kill, syscall(SYS_getpid), SIGKILL);
}

/* Counts a call. Does what the plan says before it. Returns true if the call itself must fail or change. */
static bool is_planned(enum shim_call call)
{
    if (!board) return false;
    const long number = atomic_fetch_add(&board->count[call], 1) + 1;
    if ((int)call != board->call || number != board->at) return false;
    atomic_fetch_add(&board->done, 1);
    switch (board->deed) {
    case SHIM_KILL:
        end_process();
        break;
    case SHIM_EXCHANGE:
        syscall(SYS_renameat2, AT_FDCWD, board->from, AT_FDCWD, board->to, 2 /* exchange */);
        break;
    case SHIM_OVERWRITE:
        overwrite(board->from, board->to);
        break;
    case SHIM_CUT:
        cut(board->to);
        break;
    case SHIM_FAIL:
        errno = board->error;
        return true;
    case SHIM_SHORT:
    case SHIM_KILL_BEHIND:
        return true;
    }
    return false;
}

/* The rest of a planned call: it fails, or it happens in part, or it happens and is the last. */
static bool fails(void)
{
    return board->deed == SHIM_FAIL;
}

static size_t part(size_t size)
{
    return board->deed == SHIM_SHORT && size > 1 ? size / 2 : size;
}

static void is_done(void)
{
    if (board->deed == SHIM_KILL_BEHIND) end_process();
}

/* ---- The beginning ---------------------------------------------------------------------------------------- */

static int (*real_main)(int, char **, char **);

static int counted_main(int argc, char **argv, char **environment)
{
    const char *const path = getenv(TSR_SHIM_BOARD);
    const int file = path ? (int)kernel_open(path, O_RDWR) : -1;
    void *const mapped = file < 0 ? MAP_FAILED : mmap(NULL, sizeof *board, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (file >= 0) syscall(SYS_close, file);
    if (mapped != MAP_FAILED) board = mapped;
    return real_main(argc, argv, environment);
}

int __libc_start_main(int (*main)(int, char **, char **), int argc, char **argv, void (*init)(void), void (*fini)(void),
                      void (*loader)(void), void *stack)
{
    int (*real)(int (*)(int, char **, char **), int, char **, void (*)(void), void (*)(void), void (*)(void), void *);
    *(void **)&real = dlsym(RTLD_NEXT, "__libc_start_main");
    real_main = main;
    return real(counted_main, argc, argv, init, fini, loader, stack);
}

/* ---- Calls ------------------------------------------------------------------------------------------------ */

#define REAL(name)                 \
    static __typeof__(&name) real; \
    if (!real) *(void **)&real = dlsym(RTLD_NEXT, #name)

/* A call with these arguments that returns bad if it fails. */
#define CALL(type, name, bad, parameters, arguments)  \
    type name parameters                              \
    {                                                 \
        REAL(name);                                   \
        const bool planned = is_planned(SHIM_##name); \
        if (planned && fails()) return bad;           \
        type result = real arguments;                 \
        if (planned) is_done();                       \
        return result;                                \
    }

/* The same for a call that moves size bytes. */
#define MOVE(type, name, bad, parameters, ...)        \
    type name parameters                              \
    {                                                 \
        REAL(name);                                   \
        const bool planned = is_planned(SHIM_##name); \
        if (planned && fails()) return bad;           \
        if (planned) size = part(size);               \
        type result = real(__VA_ARGS__);              \
        if (planned) is_done();                       \
        return result;                                \
    }

FILE *fopen(const char *path, const char *mode)
{
    REAL(fopen);
    const bool planned = is_planned(SHIM_fopen);
    if (planned && fails()) return NULL;
    FILE *const file = real(path, mode);
    if (planned) is_done();
    if (file && strstr(path, ".dic")) dictionary = file;
    return file;
}

int fclose(FILE *file)
{
    REAL(fclose);
    if (file == dictionary) dictionary = NULL;
    return real(file);
}

void *dlopen(const char *path, int flags)
{
    REAL(dlopen);
    is_loading = true;
    void *const library = real(path, flags);
    is_loading = false;
    return library;
}

CALL(DIR *, opendir, NULL, (const char *path), (path))
CALL(DIR *, fdopendir, NULL, (int file), (file))
CALL(struct dirent *, readdir, NULL, (DIR * folder), (folder))
CALL(off_t, lseek, -1, (int file, off_t offset, int from), (file, offset, from))
CALL(int, fstat, -1, (int file, struct stat *status), (file, status))
CALL(int, fstatat, -1, (int folder, const char *path, struct stat *status, int flags), (folder, path, status, flags))
CALL(int, stat, -1, (const char *path, struct stat *status), (path, status))
CALL(int, lstat, -1, (const char *path, struct stat *status), (path, status))
CALL(int, ftruncate, -1, (int file, off_t size), (file, size))
CALL(int, fsync, -1, (int file), (file))
CALL(int, fchmod, -1, (int file, mode_t mode), (file, mode))
CALL(int, futimens, -1, (int file, const struct timespec times[2]), (file, times))
CALL(int, posix_fadvise, board->error, (int file, off_t at, off_t size, int advice), (file, at, size, advice))
CALL(int, linkat, -1, (int a, const char *from, int b, const char *to, int flags), (a, from, b, to, flags))
CALL(int, rename, -1, (const char *from, const char *to), (from, to))
CALL(int, renameat, -1, (int a, const char *from, int b, const char *to), (a, from, b, to))
CALL(int, renameat2, -1, (int a, const char *from, int b, const char *to, unsigned flags), (a, from, b, to, flags))
CALL(int, unlink, -1, (const char *path), (path))
CALL(int, unlinkat, -1, (int folder, const char *path, int flags), (folder, path, flags))
CALL(int, mkdir, -1, (const char *path, mode_t mode), (path, mode))
CALL(int, mkdirat, -1, (int folder, const char *path, mode_t mode), (folder, path, mode))
CALL(int, flock, -1, (int file, int how), (file, how))
CALL(char *, realpath, NULL, (const char *path, char *resolved), (path, resolved))
CALL(int, access, -1, (const char *path, int mode), (path, mode))
CALL(int, pthread_create, board->error,
     (pthread_t * thread, const pthread_attr_t *attributes, void *(*start)(void *), void *context),
     (thread, attributes, start, context))
CALL(char *, fgets, NULL, (char *text, int size, FILE *file), (text, size, file))

MOVE(ssize_t, read, -1, (int file, void *bytes, size_t size), file, bytes, size)
MOVE(ssize_t, pread, -1, (int file, void *bytes, size_t size, off_t at), file, bytes, size, at)
MOVE(ssize_t, write, -1, (int file, const void *bytes, size_t size), file, bytes, size)
MOVE(ssize_t, pwrite, -1, (int file, const void *bytes, size_t size, off_t at), file, bytes, size, at)
MOVE(size_t, fread, 0, (void *bytes, size_t each, size_t size, FILE *file), bytes, each, size, file)
CALL(ssize_t, writev, -1, (int file, const struct iovec *pieces, int count), (file, pieces, count))
CALL(ssize_t, preadv2, -1, (int file, const struct iovec *pieces, int count, off_t at, int flags),
     (file, pieces, count, at, flags))

/* Closes even if it fails, as Linux does. */
int close(int file)
{
    REAL(close);
    const bool planned = is_planned(SHIM_close);
    const int result = real(file);
    if (planned && fails()) errno = board->error;
    if (planned) is_done();
    return planned && fails() ? -1 : result;
}

#define OPEN(name, parameters, last, ...)             \
    int name parameters                               \
    {                                                 \
        REAL(name);                                   \
        va_list more;                                 \
        va_start(more, last);                         \
        const mode_t mode = va_arg(more, mode_t);     \
        va_end(more);                                 \
        const bool planned = is_planned(SHIM_##name); \
        if (planned && fails()) return -1;            \
        const int result = real(__VA_ARGS__, mode);   \
        if (planned) is_done();                       \
        return result;                                \
    }
OPEN(open, (const char *path, int flags, ...), flags, path, flags)
OPEN(openat, (int folder, const char *path, int flags, ...), flags, folder, path, flags)

int fcntl(int file, int command, ...)
{
    REAL(fcntl);
    va_list more;
    va_start(more, command);
    void *const argument = va_arg(more, void *);
    va_end(more);
    const bool planned = is_planned(SHIM_fcntl);
    if (planned && fails()) return -1;
    const int result = real(file, command, argument);
    if (planned) is_done();
    return result;
}

/* Calls that glibc's headers make under other names. */
FILE *fopen64(const char *path, const char *mode)
{
    return fopen(path, mode);
}

/* ---- Memory ----------------------------------------------------------------------------------------------- */

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *memory, size_t size);
void *__libc_memalign(size_t alignment, size_t size);

#define ALLOCATE(name, parameters, ...)                                             \
    void *name parameters                                                           \
    {                                                                               \
        const bool planned = !dictionary && !is_loading && is_planned(SHIM_##name); \
        if (planned && fails()) return NULL;                                        \
        void *const result = __VA_ARGS__;                                           \
        if (planned) is_done();                                                     \
        return result;                                                              \
    }
ALLOCATE(malloc, (size_t size), __libc_malloc(size))
ALLOCATE(calloc, (size_t count, size_t size), __libc_calloc(count, size))
ALLOCATE(realloc, (void *memory, size_t size), __libc_realloc(memory, size))
ALLOCATE(aligned_alloc, (size_t alignment, size_t size), __libc_memalign(alignment, size))
