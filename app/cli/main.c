/* The command line: parses, and calls the verb. */
#include <malloc.h>
#include <stdio.h>

#include "../../kernels/thread_pool.h"
#include "cli.h"

/* A file's buffers are the next file's: memory that is given back to the system in between costs a page fault every
 * 4 KiB, and threads that ask for memory there wait for each other. */
static void keep_memory(void)
{
#if defined(__GLIBC__)
    mallopt(M_MMAP_THRESHOLD, 32 << 20);
    mallopt(M_TRIM_THRESHOLD, 1 << 30);
    mallopt(M_TOP_PAD, 1 << 20);
    mallopt(M_ARENA_MAX, tsr_available_threads()); /* not eight times as many, each with pages of its own: most rest */
#endif
}

int main(int argc, char **argv)
{
    static int (*const run[VERB_COUNT])(const struct options *) = {
        [VERB_COMPRESS] = compress_verb, [VERB_DECOMPRESS] = decompress_verb, [VERB_TEST] = test_verb,
        [VERB_INFO] = info_verb,         [VERB_COMPARE] = compare_verb,       [VERB_BENCH] = bench_verb,
    };
    struct options options;
    bool finished;
    keep_memory();
    const enum tsr_status status = parse_options(argc, argv, &options, &finished);
    if (finished) return (int)status;
    const int result = run[options.verb](&options);
    if (fflush(stdout) != 0 || ferror(stdout)) {
        fprintf(stderr, "tessera: cannot write to standard output\n");
        return result ? result : TSR_ERROR_WRITE;
    }
    return result;
}
