/* Options of a command line, into their structures; see options.h. */
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "meant.h"
#include "parse.h"

const char program_name[] = "tessera";

/* Which of count words it is; -1: none. */
static int find_word(const char *text, const char *const *words, int count)
{
    for (int i = 0; i < count; i++)
        if (strcmp(text, words[i]) == 0) return i;
    return -1;
}

/* Numbers of GPUs, each once. */
static enum tsr_status parse_gpus(const char *text, struct machine_options *o)
{
    const enum tsr_status status = parse_numbers("--gpu", text, 0, 255, &o->gpus);
    for (int i = 0; status == TSR_OK && i < o->gpus.count; i++) {
        if (o->gpus.value[i] != floor(o->gpus.value[i])) return usage("--gpu wants numbers of GPUs, not '%s'", text);
        for (int k = 0; k < i; k++)
            if (o->gpus.value[k] == o->gpus.value[i]) return usage("--gpu names a GPU twice: '%s'", text);
    }
    return status;
}

static enum tsr_status parse_engine(const char *text, struct machine_options *o)
{
    static const char *const names[] = {
        [TSR_ENGINE_AUTO] = "auto", [TSR_ENGINE_CPU] = "cpu", [TSR_ENGINE_CUDA] = "cuda"};
    const int found = find_word(text, names, sizeof names / sizeof names[0]);
    if (found < 0) return usage("--engine wants auto, cpu or cuda, not '%s'", text);
    o->engine = (enum tsr_engine_choice)found;
    return TSR_OK;
}

static enum tsr_status parse_progress(const char *text, struct talk_options *o)
{
    static const char *const names[] = {[PROGRESS_AUTO] = "auto", [PROGRESS_NONE] = "none", [PROGRESS_JSON] = "json"};
    const int found = find_word(text, names, sizeof names / sizeof names[0]);
    if (found < 0) return usage("--progress wants auto, none or json, not '%s'", text);
    o->progress = (enum progress_style)found;
    return TSR_OK;
}

/* The field of an option without a value that is set where the option is given; NULL: the option is another one. */
static bool *flag_of(int code, struct options *o)
{
    switch (code) {
    case 'r':
        return &o->in.recursive;
    case 'L':
        return &o->in.dereference;
    case '0':
        return &o->in.null_names;
    case 'n':
        return &o->archive.dry_run;
    case 'f':
        return o->verb == VERB_MOUNT ? &o->mount.foreground : &o->out.force;
    case LONG_FLAT:
        return &o->out.flat;
    case LONG_NO_TIMES:
        return &o->series.no_times;
    case LONG_SKIP_UNREADABLE:
        return &o->series.skip_unreadable;
    case LONG_ALLOW_LOSSY:
        return &o->coding.compress.allow_lossy;
    case LONG_SAMPLES_ONLY:
        return &o->coding.compress.samples_only;
    case LONG_INDEPENDENT:
        return &o->coding.compress.independent;
    case LONG_LOSSLESS_REST:
        return &o->coding.compress.lossless_rest;
    case LONG_BASE:
        return &o->in.base;
    case LONG_SALVAGE:
        return &o->picture.salvages;
    case LONG_IDENTIFY:
        return &o->report.identify;
    case LONG_DICOM:
        return &o->info.dicom;
    case LONG_JSON:
        return &o->talk.json;
    default:
        return NULL;
    }
}

/* The field of an option whose value is a name or a glob, as it was typed; NULL: the option is another one. */
static const char **name_of(int code, struct options *o)
{
    switch (code) {
    case 'o':
        return &o->out.path;
    case LONG_SERIES:
        return &o->series.path;
    case LONG_FILES_FROM:
        return &o->in.files_from;
    case LONG_MEMBER:
        return &o->in.member;
    case LONG_MANIFEST:
        return &o->report.manifest;
    case LONG_ENCRYPT:
        return &o->keys.encrypt;
    case LONG_KEY:
        return &o->keys.key;
    case LONG_PASSPHRASE_FILE:
        return &o->keys.passphrase;
    case LONG_REPORT:
    case LONG_HTML:
        return &o->report.page;
    case LONG_CSV:
        return &o->report.csv;
    case LONG_LOG:
        return &o->talk.log;
    default:
        return NULL;
    }
}

static enum tsr_status take_bytes(const char *text, const char *sentence, uint64_t *bytes)
{
    return parse_bytes(text, bytes) ? TSR_OK : usage(sentence, text);
}

/* How compress codes. */
static enum tsr_status take_coding(int code, struct coding_options *o, struct given *given)
{
    switch (code) {
    case LONG_PATH:
        return parse_path(optarg, o, given);
    case LONG_CODER:
        return parse_coder(optarg, o);
    case LONG_QP:
    case LONG_PSNR:
    case LONG_SSIM:
    case LONG_QUALITY:
    case LONG_SIZE:
        return parse_target(code, optarg, o, given);
    case LONG_MAX_ERROR:
        return parse_max_error(optarg, o, given);
    case LONG_KEEP:
        return parse_keep(optarg, o);
    case LONG_ROI:
        return parse_roi(optarg, "--roi", &o->region);
    case LONG_FIRST:
        return parse_roi(optarg, "--first", &o->first);
    case LONG_TILE:
        return parse_tile(optarg, o);
    case LONG_TUNE:
        return parse_tune(optarg, o);
    case LONG_VERIFY:
        return parse_verify(optarg, o);
    case LONG_STRICT:
        o->compress.least_db = tsr_quality_floor(TSR_QUALITY_WEB);
        o->compress.within_ratio = true;
        return TSR_OK;
    default:
        if (code < '1' || code > '9') return TSR_ERROR_USAGE;
        o->compress.effort = code - '0';
        return TSR_OK;
    }
}

static enum tsr_status take_option(int code, struct options *o, struct given *given)
{
    bool *const flag = flag_of(code, o);
    const char **const name = name_of(code, o);
    if (flag) *flag = true;
    if (name && *name) return refuse_second(o->verb, code);
    if (name) *name = optarg;
    if (flag || name) return TSR_OK;
    switch (code) {
    case 'q':
    case 'v':
        o->talk.verbosity = code == 'q' ? -1 : 1;
        return TSR_OK;
    case 'T':
        return parse_threads(optarg, &o->machine.threads);
    case LONG_PROGRESS:
        return parse_progress(optarg, &o->talk);
    case LONG_ENGINE:
        return parse_engine(optarg, &o->machine);
    case LONG_GPU:
        return parse_gpus(optarg, &o->machine);
    case LONG_GPU_MEMORY:
        return take_bytes(optarg, "--gpu-memory wants bytes, as " BYTES_FORMS ", not '%s'", &o->machine.gpu_memory);
    case LONG_MEMORY:
        return take_bytes(optarg, "--memory wants bytes, as " BYTES_FORMS ", not '%s'", &o->machine.memory);
    case LONG_CACHE:
        return take_bytes(optarg, "--cache wants bytes, as " BYTES_FORMS ", not '%s'", &o->mount.cache);
    case LONG_INCLUDE:
    case LONG_EXCLUDE:
        return add_filter(&o->in, optarg, code == LONG_INCLUDE);
    case LONG_UPDATE:
        return parse_update(optarg, &o->archive);
    case LONG_RM:
        return parse_rm(optarg, &o->archive);
    case LONG_SAMPLE:
        return parse_sample(optarg, o->verb, &o->sample);
    case LONG_SEED:
        return parse_seed(optarg, &o->sample);
    case LONG_SHARD:
        return parse_shard(optarg, &o->in);
    case LONG_TO:
        return parse_export(optarg, &o->to);
    case LONG_REGION:
        return parse_region(optarg, &o->in, &o->picture);
    case LONG_FRAME:
        return parse_frame(optarg, &o->picture);
    default:
        return take_coding(code, &o->coding, given);
    }
}

void free_options(struct options *options)
{
    free(options->in.filters);
    struct roi_options *const regions[] = {options->coding.region, options->coding.first};
    for (int i = 0; i < 2; i++) {
        if (regions[i]) free(regions[i]->mask);
        free(regions[i]);
    }
    free(options->talk.words);
}

/* --help and --version, and help without a verb. */
static bool is_answered(int argc, char **argv)
{
    if (strcmp(argv[1], "--version") == 0)
        print_version();
    else if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") || (!strcmp(argv[1], "help") && argc == 2))
        print_verbs(stdout);
    else
        return false;
    return true;
}

/* TESSERA_THREADS stands for -T where the verb takes it and it is not given. */
static enum tsr_status take_environment(struct options *o)
{
    const char *const text = getenv("TESSERA_THREADS");
    double number;
    int rows;
    const struct option_row *const table = option_rows(&rows);
    if (!text || !text[0] || o->machine.threads > 0) return TSR_OK;
    for (const struct option_row *row = table; row < table + rows; row++) {
        if (row->code != 'T' || !(row->verbs & 1 << o->verb)) continue;
        if (!parse_number(text, 1, 1024, &number) || number != floor(number))
            return usage("TESSERA_THREADS in the environment wants a number of threads, 1 to 1024, not '%s'", text);
        o->machine.threads = (int)number;
    }
    return TSR_OK;
}

enum tsr_status parse_options(int argc, char **argv, struct options *o, bool *finished)
{
    char letters[2 * ROWS_LIMIT + 10] =
        ":"; /* getopt tells a value that lacks from an unknown option, and says nothing */
    struct option longs[ROWS_LIMIT + 1];
    int rows;
    const struct option_row *const table = option_rows(&rows);
    struct given given = {0};
    memset(o, 0, sizeof *o);
    o->coding.compress.size = sizeof o->coding.compress;
    o->sample.seed = 1;
    *finished = true;
    if (argc < 2) {
        print_verbs(stderr);
        return TSR_ERROR_USAGE;
    }
    if (is_answered(argc, argv)) return TSR_OK;
    const bool asks = strcmp(argv[1], "help") == 0;
    const int verb = find_verb(argv[1 + asks]);
    if (verb == VERB_COUNT) return refuse_verb(argv[1 + asks]);
    if (asks) {
        print_help((enum verb)verb, true);
        return TSR_OK;
    }
    if (check_words(argc, argv) != TSR_OK) return TSR_ERROR_USAGE;
    o->verb = (enum verb)verb;
    o->talk.words = malloc((size_t)argc * sizeof *o->talk.words);
    if (!o->talk.words) return refuse_memory("the command line");
    memcpy(o->talk.words, argv + 2, (size_t)(argc - 2) * sizeof *o->talk.words); /* getopt puts them in another order */
    o->talk.word_count = argc - 2;
    fill_getopt(table, rows, 1 << verb, letters + 1, longs);
    for (int code; (code = getopt_long(argc - 1, argv + 1, letters, longs, NULL)) != -1;) {
        if (code == 'h') {
            print_help(o->verb, false);
            return TSR_OK;
        }
        if (code == '?' || code == ':') return refuse_option(o->verb, code == ':', argv + 1 + optind);
        const enum tsr_status status = take_option(code, o, &given);
        if (status != TSR_OK) return status;
    }
    o->in.names = (const char *const *)argv + 1 + optind;
    o->in.count = argc - 1 - optind;
    const bool is_pipe = o->in.count == 1 && strcmp(o->in.names[0], "-") == 0;
    if (is_pipe && !o->out.path && !o->series.path &&
        (o->verb == VERB_COMPRESS || o->verb == VERB_DECOMPRESS || o->verb == VERB_EXPORT))
        o->out.path = "-";
    enum tsr_status settled = check_option_names(o);
    if (settled == TSR_OK) settled = settle_options(o, &given);
    if (settled == TSR_OK) settled = take_environment(o);
    if (settled != TSR_OK) return settled;
    if (o->in.count == 0 && (!o->in.files_from || o->verb == VERB_SUMMARY)) {
        fprintf(stderr, "tessera: no input is named; tessera %s --help shows the usage\n", verb_name(o->verb));
        return TSR_ERROR_USAGE;
    }
    *finished = false;
    return TSR_OK;
}
