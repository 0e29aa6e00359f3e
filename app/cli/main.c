/* The command line: parses, and calls the verb. */
#include <stdio.h>

#include "cli.h"

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
    const int result = run[options.verb](&options);
    if (fflush(stdout) != 0 || ferror(stdout)) {
        fprintf(stderr, "tessera: cannot write to standard output\n");
        return result ? result : TSR_ERROR_WRITE;
    }
    return result;
}
