/* The command line: parses, and calls the verb. */
#include <malloc.h>
#include <stdio.h>

#include "../../kernels/memory_limit.h"
#include "../../kernels/thread_pool.h"
#include "cli.h"

/* A file's buffers are the next file's: memory that is given back to the system in between costs a page fault every
 * 4 KiB, and threads that ask for memory there wait for each other. */
static void keep_memory(const struct options *options)
{
#if defined(__GLIBC__)
    const uint64_t memory = options->memory > 0 ? options->memory : tsr_available_memory() / 4;
    const int threads = options->threads > 0 ? options->threads : tsr_available_threads();
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

int main(int argc, char **argv)
{
    static int (*const run[VERB_COUNT])(const struct options *) = {
        [VERB_COMPRESS] = compress_verb, [VERB_DECOMPRESS] = decompress_verb, [VERB_TEST] = test_verb,
        [VERB_INFO] = info_verb,         [VERB_COMPARE] = compare_verb,       [VERB_BENCH] = bench_verb,
    };
    struct options options;
    bool finished;
    const enum tsr_status status = parse_options(argc, argv, &options, &finished);
    if (finished) return (int)status;
    keep_memory(&options);
    const int result = run[options.verb](&options);
    if (fflush(stdout) != 0 || ferror(stdout)) {
        fprintf(stderr, "tessera: cannot write to standard output\n");
        return result ? result : TSR_ERROR_WRITE;
    }
    return result;
}
