/* Options: one table for parsing and for --help. */
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

const char program_name[] = "tessera";

static const struct {
    const char *name, *synopsis, *purpose;
} verbs[VERB_COUNT] = {
    [VERB_COMPRESS] = {"compress", "IN... [-o OUT]",
                       "compress images and prove that they come back; without loss unless told otherwise"},
    [VERB_DECOMPRESS] = {"decompress", "IN.tsr... [-o OUT]", "restore the original files"},
    [VERB_TEST] = {"test", "IN.tsr...", "decode everything and check every checksum; write nothing"},
    [VERB_INFO] = {"info", "IN.tsr...", "say what is inside, without decoding"},
    [VERB_COMPARE] = {"compare", "IN...", "compare sizes with PNG and JPEG-LS, and with JPEG at equal PSNR"},
};

enum {
    ON_COMPRESS = 1 << VERB_COMPRESS,
    ON_DECOMPRESS = 1 << VERB_DECOMPRESS,
    ON_TEST = 1 << VERB_TEST,
    ON_INFO = 1 << VERB_INFO,
    ON_COMPARE = 1 << VERB_COMPARE,
    ON_ALL = (1 << VERB_COUNT) - 1
};

/* Long options without a letter have codes after the characters. */
enum {
    LONG_JSON = 256,
    LONG_PATH,
    LONG_CODER,
    LONG_QP,
    LONG_PSNR,
    LONG_SIZE,
    LONG_MAX_ERROR,
    LONG_VERIFY,
    LONG_ALLOW_LOSSY,
    LONG_RECODE,
    LONG_ENGINE,
    LONG_GPU,
    LONG_GPU_MEMORY,
    LONG_SERIES,
    LONG_MEMBER,
    LONG_MEMORY
};

static const struct option_row table[] = {
    {'o', "output", "OUT", ON_COMPRESS | ON_DECOMPRESS,
     "output: a file, or a folder for several inputs; default: beside each input"},
    {'r', "recursive", NULL, ON_ALL, "look into folders, and mirror their tree"},
    {LONG_SERIES, "series", "OUT", ON_COMPRESS,
     "one output for all inputs, which share what is alike in their headers"},
    {LONG_MEMBER, "member", "NAME", ON_DECOMPRESS | ON_TEST | ON_INFO, "of series, only the file of this name"},
    {'f', "force", NULL, ON_COMPRESS | ON_DECOMPRESS, "overwrite outputs that exist"},
    {LONG_PATH, "path", "predict|transform", ON_COMPRESS,
     "how samples are decorrelated; default: predict, with --qp, --psnr, --size transform"},
    {LONG_CODER, "coder", "huffman|cavlc|rans", ON_COMPRESS | ON_COMPARE, "entropy coder; default: the effort's"},
    {'1', NULL, "-9", ON_COMPRESS | ON_COMPARE, "efforts: -1 the fastest, -9 the smallest; default: -5"},
    {LONG_QP, "qp", "N", ON_COMPRESS, "lossy, with the step of this QP, up to 51 in eighths; 6 more double the step"},
    {LONG_QP, "qp", "N,N,...", ON_COMPARE, "lossy steps to compare at; default: 10,20,30"},
    {LONG_PSNR, "psnr", "DB", ON_COMPRESS, "lossy, with this PSNR: never less, and at most 0.1 dB more"},
    {LONG_SIZE, "size", "BYTES|N:1", ON_COMPRESS,
     "lossy, in so many bytes (500k, 2M) or at this ratio: never more, at most 1 % less"},
    {LONG_MAX_ERROR, "max-error", "N", ON_COMPRESS, "lossy, and no sample differs by more than N; 0: without loss"},
    {LONG_ALLOW_LOSSY, "allow-lossy", NULL, ON_COMPRESS, "code mammography, segmentations and doses with loss, too"},
    {LONG_VERIFY, "verify", "cpu|cuda|none", ON_COMPRESS,
     "what decodes the finished file to prove it; default: cpu. none proves nothing"},
    {LONG_RECODE, "recode", NULL, ON_COMPRESS, "recode RLE and JPEG lossless in DICOM also where the file will differ"},
    {LONG_ENGINE, "engine", "auto|cpu|cuda", ON_COMPRESS | ON_DECOMPRESS | ON_TEST,
     "what computes, with the same bytes; default: auto, the GPU where it helps"},
    {LONG_GPU, "gpu", "N,N,...", ON_COMPRESS | ON_DECOMPRESS | ON_TEST,
     "these GPUs and no others, counted from 0; default: all that can be used"},
    {LONG_GPU_MEMORY, "gpu-memory", "BYTES", ON_COMPRESS | ON_DECOMPRESS | ON_TEST,
     "most memory of each GPU (500M, 4G); default: half of what is free"},
    {'T', "threads", "N", ON_ALL & ~ON_INFO, "threads; default: all that this process may use"},
    {LONG_MEMORY, "memory", "BYTES", ON_ALL & ~ON_INFO,
     "most memory (500M, 4G); default: a quarter of the machine's or its cgroup's"},
    {LONG_JSON, "json", NULL, ON_ALL, "one JSON object a file on stdout; then, but for info, a summary"},
    {'q', "quiet", NULL, ON_ALL, "no progress, no summary"},
    {'v', "verbose", NULL, ON_ALL, "a line for each file"},
    {'h', "help", NULL, ON_ALL, "this text"},
};
enum { ROWS = sizeof table / sizeof table[0] };

static void print_verbs(FILE *to)
{
    fprintf(to, "usage: tessera VERB [OPTION...] IN...\n\n");
    for (int v = 0; v < VERB_COUNT; v++) fprintf(to, "  %-11s %s\n", verbs[v].name, verbs[v].purpose);
    fprintf(to, "\ntessera VERB --help tells a verb's options; tessera --version the version.\n");
}

static void print_help(enum verb verb)
{
    printf("usage: tessera %s [OPTION...] %s\n%s\n\n", verbs[verb].name, verbs[verb].synopsis, verbs[verb].purpose);
    print_option_rows(table, ROWS, 1 << verb);
}

/* A QP in eighths, or a list of them. */
static enum tsr_status parse_qp(const char *text, struct options *o)
{
    const enum tsr_status status = parse_qp_list(text, o->qp, &o->qp_count);
    if (status == TSR_OK && o->verb == VERB_COMPRESS && o->qp_count != 1)
        return usage("compress wants one --qp, not '%s'", text);
    return status;
}

/* What may be lost. */
static enum tsr_status take_loss(struct options *o, enum tsr_loss loss, int64_t value)
{
    o->compress.loss = loss;
    o->compress.loss_value = value;
    return TSR_OK;
}

/* A PSNR in hundredths of a dB. */
static enum tsr_status parse_psnr(const char *text, struct options *o)
{
    double number;
    if (!parse_number(text, 1, 200, &number) || fabs(number * 100 - round(number * 100)) > 1e-6)
        return usage("--psnr wants 1 to 200 dB, with at most two digits after the point, not '%s'", text);
    return take_loss(o, TSR_LOSS_PSNR, llround(number * 100));
}

/* A number of units before a suffix of that length. False: it is not a number, or rounds to 0. */
static bool parse_units(const char *text, size_t suffix, double unit, uint64_t *count)
{
    char number[32];
    double value;
    const size_t length = strlen(text) - suffix;
    snprintf(number, sizeof number, "%.*s", (int)length, text);
    if (length >= sizeof number || !parse_number(number, 0, 1e15, &value) || llround(value * unit) < 1) return false;
    *count = (uint64_t)llround(value * unit);
    return true;
}

/* Bytes, thousands, millions or milliards of them. */
static bool parse_bytes(const char *text, uint64_t *bytes)
{
    const char last = text[0] ? text[strlen(text) - 1] : '\0';
    const double unit = last == 'k' ? 1e3 : last == 'M' ? 1e6 : last == 'G' ? 1e9 : 1;
    return parse_units(text, unit > 1, unit, bytes);
}

/* Bytes, or a ratio N:1, in thousandths. */
static enum tsr_status parse_size(const char *text, struct options *o)
{
    const size_t length = strlen(text);
    const bool ratio = length > 2 && !strcmp(text + length - 2, ":1");
    uint64_t value;
    if (!(ratio ? parse_units(text, 2, 1000, &value) : parse_bytes(text, &value)))
        return usage("--size wants bytes, as 20000, 500k or 2M, or a ratio, as 10:1, not '%s'", text);
    return take_loss(o, ratio ? TSR_LOSS_RATIO : TSR_LOSS_BYTES, (int64_t)value);
}

/* An error of 0 is no loss. */
static enum tsr_status parse_max_error(const char *text, struct options *o)
{
    double number;
    if (!parse_number(text, 0, TSR_MAX_ERROR_LIMIT, &number) || number != floor(number))
        return usage("--max-error wants 0 to 32767, not '%s'", text);
    return take_loss(o, number > 0 ? TSR_LOSS_MAX_ERROR : TSR_LOSSLESS, (int64_t)number);
}

/* Numbers of GPUs, each once. */
static enum tsr_status parse_gpus(const char *text, struct options *o)
{
    const enum tsr_status status = parse_numbers("--gpu", text, 0, 255, &o->gpus);
    for (int i = 0; status == TSR_OK && i < o->gpus.count; i++) {
        if (o->gpus.value[i] != floor(o->gpus.value[i])) return usage("--gpu wants numbers of GPUs, not '%s'", text);
        for (int k = 0; k < i; k++)
            if (o->gpus.value[k] == o->gpus.value[i]) return usage("--gpu names a GPU twice: '%s'", text);
    }
    return status;
}

static enum tsr_status parse_path(const char *text, struct options *o)
{
    if (!strcmp(text, "predict"))
        o->compress.path = TSR_PATH_PREDICT;
    else if (!strcmp(text, "transform"))
        o->compress.path = TSR_PATH_TRANSFORM;
    else
        return usage("--path wants predict or transform, not '%s'", text);
    return TSR_OK;
}

static enum tsr_status parse_coder(const char *text, struct options *o)
{
    if (!strcmp(text, "huffman"))
        o->compress.coder = TSR_CODER_HUFFMAN;
    else if (!strcmp(text, "cavlc"))
        o->compress.coder = TSR_CODER_CAVLC;
    else if (!strcmp(text, "rans"))
        o->compress.coder = TSR_CODER_RANS;
    else
        return usage("--coder wants huffman, cavlc or rans, not '%s'", text);
    return TSR_OK;
}

static enum tsr_status parse_verify(const char *text, struct options *o)
{
    if (!strcmp(text, "cpu"))
        o->compress.verify = TSR_VERIFY_CPU;
    else if (!strcmp(text, "none"))
        o->compress.verify = TSR_VERIFY_NONE;
    else if (!strcmp(text, "cuda"))
        o->compress.verify = TSR_VERIFY_ENGINE;
    else
        return usage("--verify wants cpu, cuda or none, not '%s'", text);
    return TSR_OK;
}

static enum tsr_status parse_engine(const char *text, struct options *o)
{
    static const char *const names[] = {
        [TSR_ENGINE_AUTO] = "auto", [TSR_ENGINE_CPU] = "cpu", [TSR_ENGINE_CUDA] = "cuda"};
    for (int i = 0; i < 3; i++) {
        if (strcmp(text, names[i]) != 0) continue;
        o->engine = (enum tsr_engine_choice)i;
        return TSR_OK;
    }
    return usage("--engine wants auto, cpu or cuda, not '%s'", text);
}

/* Which of these options are among them. */
struct given {
    bool path, target, max_error;
};

static enum tsr_status take_target(int code, struct options *o, struct given *given)
{
    if (given->target) return usage("%s", "one target is enough: --psnr or --size");
    given->target = true;
    return code == LONG_PSNR ? parse_psnr(optarg, o) : parse_size(optarg, o);
}

static enum tsr_status take_option(int code, struct options *o, struct given *given)
{
    switch (code) {
    case 'o':
        o->output = optarg;
        return TSR_OK;
    case 'r':
        o->recursive = true;
        return TSR_OK;
    case 'f':
        o->force = true;
        return TSR_OK;
    case 'q':
        o->verbosity = -1;
        return TSR_OK;
    case 'v':
        o->verbosity = 1;
        return TSR_OK;
    case 'T':
        return parse_threads(optarg, &o->threads);
    case LONG_JSON:
        o->json = true;
        return TSR_OK;
    case LONG_PATH:
        given->path = true;
        return parse_path(optarg, o);
    case LONG_CODER:
        return parse_coder(optarg, o);
    case LONG_QP:
        return parse_qp(optarg, o);
    case LONG_PSNR:
    case LONG_SIZE:
        return take_target(code, o, given);
    case LONG_MAX_ERROR:
        given->max_error = true;
        return parse_max_error(optarg, o);
    case LONG_VERIFY:
        return parse_verify(optarg, o);
    case LONG_ALLOW_LOSSY:
        o->compress.allow_lossy = true;
        return TSR_OK;
    case LONG_RECODE:
        o->compress.recode = true;
        return TSR_OK;
    case LONG_ENGINE:
        return parse_engine(optarg, o);
    case LONG_GPU:
        return parse_gpus(optarg, o);
    case LONG_GPU_MEMORY:
        return parse_bytes(optarg, &o->gpu_memory) ? TSR_OK
                                                   : usage("--gpu-memory wants bytes, as 500M or 4G, not '%s'", optarg);
    case LONG_MEMORY:
        return parse_bytes(optarg, &o->memory) ? TSR_OK
                                               : usage("--memory wants bytes, as 500M or 4G, not '%s'", optarg);
    case LONG_SERIES:
        o->series = optarg;
        return TSR_OK;
    case LONG_MEMBER:
        o->member = optarg;
        return TSR_OK;
    default:
        if (code >= '1' && code <= '9') {
            o->compress.effort = code - '0';
            return TSR_OK;
        }
        fprintf(stderr, "tessera %s --help tells the options\n", verbs[o->verb].name);
        return TSR_ERROR_USAGE;
    }
}

/* What the options say together: path, loss, and that they can be. */
static enum tsr_status settle_options(struct options *o, const struct given *given)
{
    struct tsr_compress_options *const compress = &o->compress;
    const bool has_qp = o->verb == VERB_COMPRESS && o->qp_count > 0;
    if (has_qp + given->target + given->max_error > 1)
        return usage("%s", "--qp, --psnr, --size and --max-error exclude each other");
    if ((has_qp || given->target) && given->path && compress->path == TSR_PATH_PREDICT)
        return usage("%s", "--qp, --psnr and --size need the transform path, not --path predict");
    if (o->engine == TSR_ENGINE_CPU && o->gpus.count > 0)
        return usage("%s", "--gpu needs the CUDA engine, not --engine cpu");
    if (o->engine == TSR_ENGINE_CPU && compress->verify == TSR_VERIFY_ENGINE)
        return usage("%s", "--verify cuda needs the CUDA engine, not --engine cpu");
    if (o->gpus.count > 0) o->engine = TSR_ENGINE_CUDA; /* who names one demands it */
    if (o->series && o->output) return usage("%s", "--series names the output; -o would name another");
    if (o->series && given->target && compress->loss != TSR_LOSS_PSNR)
        return usage("%s", "--size is for a single file, not for a --series");
    if (given->max_error && compress->path == TSR_PATH_TRANSFORM)
        return usage("%s", "--max-error needs the predictive path, not --path transform");
    if (has_qp || given->target) compress->path = TSR_PATH_TRANSFORM;
    if (has_qp) take_loss(o, TSR_LOSS_QP, o->qp[0]);
    struct tsr_error error;
    const enum tsr_status status = tsr_check_options(compress, &error);
    return status == TSR_OK ? TSR_OK : usage("%s", error.text);
}

enum tsr_status parse_options(int argc, char **argv, struct options *o, bool *finished)
{
    char letters[2 * ROWS + 9];
    struct option longs[ROWS + 1];
    struct given given = {0};
    memset(o, 0, sizeof *o);
    o->compress.size = sizeof o->compress;
    *finished = true;
    if (argc < 2) {
        print_verbs(stderr);
        return TSR_ERROR_USAGE;
    }
    if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") || !strcmp(argv[1], "help")) {
        print_verbs(stdout);
        return TSR_OK;
    }
    if (!strcmp(argv[1], "--version")) {
        printf("tessera %s\n", tsr_version());
        return TSR_OK;
    }
    int verb = 0;
    while (verb < VERB_COUNT && strcmp(argv[1], verbs[verb].name) != 0) verb++;
    if (verb == VERB_COUNT) return usage("no verb '%s'; tessera --help tells them", argv[1]);
    o->verb = (enum verb)verb;
    fill_getopt(table, ROWS, 1 << verb, letters, longs);
    argv[1] = argv[0]; /* getopt's messages begin with the program's name */
    for (int code; (code = getopt_long(argc - 1, argv + 1, letters, longs, NULL)) != -1;) {
        if (code == 'h') {
            print_help(o->verb);
            return TSR_OK;
        }
        const enum tsr_status status = take_option(code, o, &given);
        if (status != TSR_OK) return status;
    }
    o->inputs = (const char *const *)argv + 1 + optind;
    o->input_count = argc - 1 - optind;
    const enum tsr_status settled = settle_options(o, &given);
    if (settled != TSR_OK) return settled;
    if (o->input_count == 0) {
        fprintf(stderr, "tessera: no input is named; tessera %s --help tells the usage\n", verbs[o->verb].name);
        return TSR_ERROR_USAGE;
    }
    *finished = false;
    return TSR_OK;
}
