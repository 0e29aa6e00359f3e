/* What the attack on calls and its shim share: a plan and its results. */
#ifndef TSR_TESTS_ATTACK_SHIM_H
#define TSR_TESTS_ATTACK_SHIM_H

#include <stdatomic.h>

/* Calls of libc that can fail, or at which something can happen. */
/* clang-format off */
#define TSR_SHIM_CALLS(X)                                                                                        \
    X(open) X(openat) X(fopen) X(opendir) X(fdopendir) X(readdir) X(close) X(read) X(pread) X(preadv2) X(fread)  \
    X(fgets) X(lseek) X(fstat) X(fstatat) X(stat) X(lstat) X(write) X(pwrite) X(writev) X(ftruncate) X(fsync)    \
    X(fchmod) X(futimens) X(posix_fadvise) X(linkat) X(rename) X(renameat) X(renameat2) X(unlink) X(unlinkat)    \
    X(mkdir) X(mkdirat) X(flock) X(fcntl) X(realpath) X(access) X(pthread_create) X(malloc) X(calloc) X(realloc) \
    X(aligned_alloc)
/* clang-format on */

enum shim_call {
#define TSR_SHIM_NAME(name) SHIM_##name,
    TSR_SHIM_CALLS(TSR_SHIM_NAME)
#undef TSR_SHIM_NAME
        SHIM_CALLS
};

/* What happens at the call: it fails, it moves fewer bytes, the process is killed before or after it. The last three
 * happen before it: two names change places (renameat2's exchange), the bytes of one file are written over another's, a
 * file is cut to half of its size. */
enum shim_deed { SHIM_FAIL, SHIM_SHORT, SHIM_KILL, SHIM_KILL_BEHIND, SHIM_EXCHANGE, SHIM_OVERWRITE, SHIM_CUT };

#define TSR_SHIM_BOARD "TSR_SHIM_BOARD" /* the environment variable with the path of the board's file */

struct shim_board {
    atomic_long count[SHIM_CALLS];
    int call, error; /* error: errno, or the error that the call returns */
    long at;         /* the number of the call, from 1; 0: no call */
    enum shim_deed deed;
    atomic_int done; /* how often the deed has happened */
    char from[512], to[512];
};

#endif
