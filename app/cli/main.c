/* The command line: parses, and calls the verb. */
#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "cli.h"

/* A file's buffers are the next file's: memory that is given back to the system in between costs a page fault every
 * 4 KiB, and threads that ask for memory there wait for each other. */
static void keep_memory(const struct options *options)
{
#if defined(__GLIBC__)
    const uint64_t memory = memory_limit(&options->machine);
    const int threads = options->machine.threads > 0 ? options->machine.threads : tsr_available_threads();
    /* Each thread's heap keeps so much, in all half of what the budget leaves to heaps. */
    const uint64_t share = memory / 64 / (uint64_t)threads, least = 1 << 17;
    const uint64_t kept = share < least ? least : share, most = 1 << 30, largest = 32 << 20;
    mallopt(M_MMAP_THRESHOLD, (int)(kept < largest ? kept : largest));
    mallopt(M_TRIM_THRESHOLD, (int)(kept < most ? kept : most));
    mallopt(M_TOP_PAD, (int)(kept < 1 << 20 ? kept : 1 << 20));
    mallopt(M_ARENA_MAX, threads); /* not eight times as many, each with pages of its own: most rest */
#else
    (void)options;
#endif
}

/* All is written: the destructors of libraries could only fail now, and without memory DCMTK's log ends the process by
 * a signal. Sanitizers need them. */
static int leave(int status)
{
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    fflush(NULL);
    _exit(status);
#else
    return status;
#endif
}

enum { STACK_BYTES = 1 << 20, PAGE_BYTES = 1 << 12 };

__attribute__((noinline)) static bool touch_stack(void)
{
    volatile char stack[STACK_BYTES];
    for (size_t at = STACK_BYTES; at > 0; at -= PAGE_BYTES) stack[at - 1] = 0;
    return stack[STACK_BYTES - 1] == 0;
}

/* The first thread's stack grows as it is used. Where it cannot, since the address space is limited (RLIMIT_AS), the
 * process ends by a signal: so the stack gets what it will take before anything else does. False: there is not so much.
 */
static bool reserve_stack(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur == RLIM_INFINITY) return true;
    if (getrlimit(RLIMIT_STACK, &limit) != 0 || limit.rlim_cur < 2 * STACK_BYTES) return true;
    void *const probe = mmap(NULL, 2 * STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (probe == MAP_FAILED) return false;
    munmap(probe, 2 * STACK_BYTES);
    return touch_stack();
}

/* The status of a run whose results could not be written is not 0, also where the reader of a pipe has gone: it may
 * have been killed. */
static int finish_output(int result)
{
    if (fflush(stdout) == 0 && !ferror(stdout)) return result;
    fprintf(stderr, "tessera: cannot write to standard output\n");
    return result ? result : TSR_ERROR_WRITE;
}

/* A closed standard descriptor would be that of the first file that is opened, and what is said would be written into
 * it: an output, or the manifest. So its place is taken, by what fails where it is read or written, as it should. */
static bool fill_descriptors(void)
{
    for (int i = STDIN_FILENO; i <= STDERR_FILENO; i++)
        if (fcntl(i, F_GETFD) < 0 && open("/dev/null", i == STDIN_FILENO ? O_WRONLY : O_RDONLY) != i) return false;
    return true;
}

int main(int argc, char **argv)
{
    static int (*const run[VERB_COUNT])(const struct options *) = {
        [VERB_COMPRESS] = compress_verb, [VERB_DECOMPRESS] = decompress_verb,
        [VERB_EXPORT] = export_verb,     [VERB_CAT] = cat_verb,
        [VERB_TEST] = test_verb,         [VERB_VERIFY] = verify_verb,
        [VERB_INFO] = info_verb,         [VERB_MOUNT] = mount_verb,
        [VERB_COMPARE] = compare_verb,   [VERB_SUMMARY] = summary_verb,
    };
    struct options options;
    bool finished;
    if (!fill_descriptors()) return TSR_ERROR_LIMIT; /* nobody hears a sentence */
    const enum tsr_status status = parse_options(argc, argv, &options, &finished);
    if (finished) {
        free_options(&options);
        return leave(finish_output((int)status));
    }
    if (!reserve_stack()) {
        fprintf(stderr, "tessera: no memory for the stack\n");
        return leave(TSR_ERROR_LIMIT);
    }
    keep_memory(&options);
    signal(SIGPIPE, SIG_IGN); /* the write fails instead, and the work goes on */
    const enum tsr_status begun = begin_log(&options);
    if (begun != TSR_OK) {
        free_options(&options);
        return leave((int)begun);
    }
    if (options.out.path && strcmp(options.out.path, "-") == 0) talk_on_stderr();
    int result = TSR_ERROR_LIMIT;
    options.out.written = tsr_file_set_create();
    if (options.out.written &&
        (!options.talk.log || tsr_file_set_add(options.out.written, options.talk.log, NULL, NULL) == TSR_OK)) {
        result = (int)open_key(&options);
        if (result == TSR_OK) result = run[options.verb](&options);
        close_key();
    } else {
        fprintf(stderr, "tessera: no memory for a set of files\n");
    }
    tsr_file_set_destroy(options.out.written);
    free_options(&options);
    return leave(close_log(finish_output(result)));
}
