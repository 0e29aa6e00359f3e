/* Options of tessera-bench: one table for parsing and for --help. */
#include <getopt.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

const char program_name[] = "tessera-bench";

/* Options without a letter have codes above all characters. */
enum {
    LONG_FILES = 256,
    LONG_SIZES,
    LONG_ENTROPIES,
    LONG_RUNS,
    LONG_QP,
    LONG_FORMATS,
    LONG_POLICIES,
    LONG_REPEAT,
    LONG_QUICK,
    LONG_ISA,
    LONG_LOG,
    LONG_PLOT,
    LONG_HTML,
    LONG_JSON,
    LONG_VERSION
};

enum { BENCH = 1 }; /* the table's only verb */

static const struct option_row table[] = {
    {'1', NULL, "-9", BENCH, "engine: encode at this effort only"},
    {LONG_FILES, "files", NULL, BENCH, "take pixels and residuals of F..., images or Y4M, as input"},
    {LONG_SIZES, "sizes", "MIB,...", BENCH, "vle, rle, engine, limits: sizes of the input"},
    {LONG_ENTROPIES, "entropies", "BITS,...", BENCH, "vle: entropies of the input, 0 to 8 bits a byte"},
    {LONG_RUNS, "runs", "MEAN,...", BENCH, "rle: mean lengths of runs"},
    {LONG_QP, "qp", "QP,...", BENCH, "cavlc, hiding, engine: steps, 0 to 51"},
    {LONG_FORMATS, "formats", "NAME,...", BENCH, "cavlc, hiding: pictures among qcif, cif, 720p, 1080p, 4k"},
    {LONG_POLICIES, "policies", NULL, BENCH, "every launch policy of every row; default: the best"},
    {LONG_REPEAT, "repeat", "N", BENCH, "timed runs, of which the median counts; default: 10"},
    {LONG_QUICK, "quick", NULL, BENCH, "tiny inputs: all outputs are checked, no figure counts"},
    {LONG_ISA, "isa", "NAME", BENCH, "CPU rows: no later instructions than plain, avx2 or avx512"},
    {LONG_LOG, "log", "OUT.json", BENCH, "write the lines of --json to a file, and the tables too"},
    {LONG_PLOT, "plot", "OUT.svg", BENCH, "plot rates over entropy, run length or QP"},
    {LONG_HTML, "html", "OUT.html", BENCH, "the same plots as a page"},
    {'T', "threads", "N", BENCH, "threads; default: all that this process may use"},
    {LONG_JSON, "json", NULL, BENCH, "one JSON object a measurement on stdout, then a summary"},
    {'h', "help", NULL, BENCH, "this text"},
    {LONG_VERSION, "version", NULL, BENCH, "the version"},
};
enum { ROWS = sizeof table / sizeof table[0] };

static void print_help(void)
{
    printf("usage: tessera-bench [OPTION...] vle|rle|cavlc|hiding|engine|limits [--files F...]\n"
           "time the papers' kernels and ours on one family's workloads, and prove every output\n\n");
    print_option_rows(table, ROWS, BENCH);
}

/* The engine asks for the variable once, when its first stage begins. */
static enum tsr_status take_isa(const char *name)
{
    if (strcmp(name, "plain") != 0 && strcmp(name, "avx2") != 0 && strcmp(name, "avx512") != 0)
        return usage("--isa wants plain, avx2 or avx512, not '%s'", name);
    return setenv("TESSERA_ISA", name, 1) == 0 ? TSR_OK : TSR_ERROR_LIMIT;
}

static enum tsr_status take_option(int code, struct bench_options *o)
{
    double number;
    switch (code) {
    case 'T':
        return parse_threads(optarg, &o->threads);
    case LONG_FILES: /* their names are the words after the family */
        o->takes_files = true;
        return TSR_OK;
    case LONG_SIZES:
        return parse_numbers("--sizes", optarg, 0.001, 8192, &o->sizes);
    case LONG_ENTROPIES:
        return parse_numbers("--entropies", optarg, 0, 8, &o->entropies);
    case LONG_RUNS:
        return parse_numbers("--runs", optarg, 1, 1e9, &o->runs);
    case LONG_QP:
        return parse_qp_list(optarg, o->qp, &o->qp_count);
    case LONG_FORMATS:
        o->formats = optarg;
        return TSR_OK;
    case LONG_POLICIES:
        o->policies = true;
        return TSR_OK;
    case LONG_REPEAT:
        if (!parse_number(optarg, 1, 1000, &number) || number != floor(number))
            return usage("--repeat wants a number, 1 to 1000, not '%s'", optarg);
        o->repeat = (int)number;
        return TSR_OK;
    case LONG_QUICK:
        o->quick = true;
        return TSR_OK;
    case LONG_ISA:
        return take_isa(optarg);
    case LONG_LOG:
        o->log = optarg;
        return TSR_OK;
    case LONG_PLOT:
        o->plot = optarg;
        return TSR_OK;
    case LONG_HTML:
        o->html = optarg;
        return TSR_OK;
    case LONG_JSON:
        o->json = true;
        return TSR_OK;
    default:
        if (code >= '1' && code <= '9') {
            o->effort = code - '0';
            return TSR_OK;
        }
        fprintf(stderr, "tessera-bench --help lists the options\n");
        return TSR_ERROR_USAGE;
    }
}

/* Takes the words that are not options: a family, and with --files the names of files. */
static enum tsr_status take_words(char **words, int count, struct bench_options *o)
{
    if (count == 0) return usage("%s", "no family is named; tessera-bench --help shows the usage");
    o->family = words[0];
    o->files = (const char *const *)words + 1;
    o->file_count = count - 1;
    if (o->takes_files == (o->file_count > 0)) return TSR_OK;
    return usage("%s", o->takes_files ? "--files wants the names of files"
                                      : "tessera-bench takes one family, and files after --files");
}

enum tsr_status bench_parse_options(int argc, char **argv, struct bench_options *o, bool *finished)
{
    char letters[2 * ROWS + 9];
    struct option longs[ROWS + 1];
    memset(o, 0, sizeof *o);
    *finished = true;
    fill_getopt(table, ROWS, BENCH, letters, longs);
    for (int code; (code = getopt_long(argc, argv, letters, longs, NULL)) != -1;) {
        if (code == 'h') {
            print_help();
            return TSR_OK;
        }
        if (code == LONG_VERSION) {
            printf("tessera-bench %s\n", TSR_VERSION_STRING);
            return TSR_OK;
        }
        const enum tsr_status status = take_option(code, o);
        if (status != TSR_OK) return status;
    }
    const enum tsr_status status = take_words(argv + optind, argc - optind, o);
    *finished = status != TSR_OK;
    return status;
}
