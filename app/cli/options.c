/* Options: one table for parsing and for --help. */
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "meant.h"

const char program_name[] = "tessera";

static const struct verb_row verbs[VERB_COUNT] = {
    [VERB_COMPRESS] = {"compress",
                       "IN... [-o OUT]",
                       "compress images and prove that they come back; without loss unless told otherwise",
                       {{"-r scans -o archive", "a folder, mirrored below archive"},
                        {"-r --update scans -o archive", "go on, or take what is new"},
                        {"--series ct.tsr ct/*.dcm", "one file for all slices"},
                        {"--quality diagnostic scan.dcm", "smaller, with a loss"}}},
    [VERB_DECOMPRESS] = {"decompress",
                         "IN.tsr... [-o OUT]",
                         "restore the original files",
                         {{"scan.dcm.tsr", "scan.dcm, beside it"},
                          {"-r archive -o back", "a folder, mirrored below back"},
                          {"ct.tsr --member '*12.dcm' -o .", "some files of a series"}}},
    [VERB_CAT] = {"cat",
                  "IN.tsr[::NAME]...",
                  "write the original files to stdout, each when it is proven",
                  {{"scan.dcm.tsr | dcmdump -", "to a program"}, {"ct.tsr::12.dcm >12.dcm", "one file of a series"}}},
    [VERB_EXPORT] = {"export",
                     "IN.tsr... --to SYNTAX [-o OUT]",
                     "write standard DICOM files with the same samples, which other programs read",
                     {{"scan.dcm.tsr --to jpeg-ls -o scan.dcm", "JPEG-LS in DICOM"},
                      {"-r archive --to native -o plain", "a folder, without compression"}}},
    [VERB_TEST] = {"test",
                   "IN.tsr...",
                   "decode everything and check every checksum; write nothing",
                   {{"-r archive", "all files of a folder"}, {"-r --sample 5% archive", "some, drawn at random"}}},
    [VERB_VERIFY] = {"verify",
                     "ORIGINALS ARCHIVE",
                     "compare every restored byte with the originals; write nothing",
                     {{"scans archive", "two folders"},
                      {"scans archive --html page.html", "with a page of all hashes"}}},
    [VERB_INFO] = {"info",
                   "IN.tsr[::NAME]...",
                   "say what is inside, without decoding",
                   {{"scan.dcm.tsr", "sizes, hashes, how it was coded"},
                    {"--dicom scan.dcm.tsr", "the header of DICOM"},
                    {"ct.tsr", "the files of a series"}}},
    [VERB_MOUNT] = {"mount",
                    "ARCHIVE DIR",
                    "show the originals of a .tsr, or of a folder of them, as files in DIR, until fusermount3 -u DIR",
                    {{"archive view", "view is an empty folder"}}},
    [VERB_COMPARE] = {"compare",
                      "IN...",
                      "compare with PNG, JPEG, JPEG-LS, JPEG 2000, HTJ2K, JPEG XL, WebP and DICOM's codecs",
                      {{"-r --sample 60 --html page.html scans", "60 images, with a page"}}},
    [VERB_SUMMARY] = {"summary",
                      "RUN.json...",
                      "join the --json lines of several runs to one report",
                      {{"J.*.json", "the runs of a cluster"}}},
};

enum {
    ON_COMPRESS = 1 << VERB_COMPRESS,
    ON_DECOMPRESS = 1 << VERB_DECOMPRESS,
    ON_CAT = 1 << VERB_CAT,
    ON_EXPORT = 1 << VERB_EXPORT,
    ON_TEST = 1 << VERB_TEST,
    ON_VERIFY = 1 << VERB_VERIFY,
    ON_INFO = 1 << VERB_INFO,
    ON_MOUNT = 1 << VERB_MOUNT,
    ON_COMPARE = 1 << VERB_COMPARE,
    ON_SUMMARY = 1 << VERB_SUMMARY,
    ON_WRITERS = ON_COMPRESS | ON_DECOMPRESS | ON_EXPORT,
    ON_WORK = ON_COMPRESS | ON_DECOMPRESS | ON_EXPORT | ON_TEST | ON_VERIFY,
    ON_FILES = ON_WORK | ON_CAT | ON_INFO | ON_COMPARE,
    ON_ALL = (1 << VERB_COUNT) - 1,
    ON_TALKERS = ON_ALL & ~(ON_CAT | ON_MOUNT)
};

/* Long options without a letter have codes after the characters. */
enum {
    LONG_JSON = 256,
    LONG_LOG,
    LONG_PATH,
    LONG_CODER,
    LONG_QP,
    LONG_PSNR,
    LONG_QUALITY,
    LONG_KEEP,
    LONG_STRICT,
    LONG_SIZE,
    LONG_MAX_ERROR,
    LONG_VERIFY,
    LONG_ALLOW_LOSSY,
    LONG_SAMPLES_ONLY,
    LONG_ENGINE,
    LONG_TO,
    LONG_GPU,
    LONG_GPU_MEMORY,
    LONG_SERIES,
    LONG_MEMBER,
    LONG_MEMORY,
    LONG_FLAT,
    LONG_FILES_FROM,
    LONG_INCLUDE,
    LONG_EXCLUDE,
    LONG_UPDATE,
    LONG_RM,
    LONG_MANIFEST,
    LONG_SAMPLE,
    LONG_SHARD,
    LONG_PROGRESS,
    LONG_NO_TIMES,
    LONG_SKIP_UNREADABLE,
    LONG_REPORT,
    LONG_HTML,
    LONG_CSV,
    LONG_SEED,
    LONG_IDENTIFY,
    LONG_DICOM,
    LONG_CACHE
};

/* A row without verbs is the heading of those that follow it. */
static const struct option_row table[] = {
    {0, NULL, NULL, 0, "Inputs and outputs"},
    {LONG_TO, "to", "SYNTAX", ON_EXPORT | OFTEN, "native, jpeg-ls, jpeg-lossless, rle, j2k or htj2k, all without loss"},
    {'o', "output", "OUT", ON_WRITERS | OFTEN, "output: a file, a folder, or - for stdout; default: beside each input"},
    {'r', "recursive", NULL, ON_WRITERS | OFTEN, "take what is in folders; OUT mirrors them"},
    {'r', "recursive", NULL, (ON_FILES & ~ON_VERIFY & ~ON_WRITERS) | OFTEN, "take what is in folders"},
    {'f', "force", NULL, ON_WRITERS | OFTEN, "overwrite outputs that exist"},
    {'f', "force", NULL, ON_TEST | ON_VERIFY | ON_COMPARE, "overwrite a report's file that is no report of tessera"},
    {LONG_INCLUDE, "include", "GLOB", ON_FILES, "take these names, whatever a later --exclude says"},
    {LONG_EXCLUDE, "exclude", "GLOB", ON_FILES | OFTEN,
     "leave these names out; the first rule that matches a name below the named folder counts"},
    {LONG_FLAT, "flat", NULL, ON_WRITERS, "all outputs in OUT itself, without folders"},
    {'L', "dereference", NULL, ON_FILES, "follow symbolic links in folders"},
    {LONG_FILES_FROM, "files-from", "FILE", ON_FILES & ~ON_VERIFY, "names of inputs, one a line; - is stdin"},
    {LONG_FILES_FROM, "files-from", "FILE", ON_SUMMARY | OFTEN, "names of all files that the runs had to do"},
    {'0', "null", NULL, (ON_FILES & ~ON_VERIFY) | ON_SUMMARY,
     "zeros instead of newlines end the names of --files-from"},
    {LONG_MEMBER, "member", "GLOB", ON_DECOMPRESS | ON_CAT | ON_EXPORT | ON_TEST | ON_INFO | OFTEN,
     "of series, only the files of this name"},
    {LONG_SERIES, "series", "OUT", ON_COMPRESS | OFTEN,
     "one output for all inputs, which share what is alike in their headers"},
    {LONG_NO_TIMES, "no-times", NULL, ON_COMPRESS, "of a series, store no times and permissions"},
    {LONG_SKIP_UNREADABLE, "skip-unreadable", NULL, ON_COMPRESS,
     "make a series without the inputs that cannot be read"},

    {0, NULL, NULL, 0, "Going on, and removing originals"},
    {LONG_UPDATE, "update", "[=hash]", ON_COMPRESS | ON_DECOMPRESS | OFTEN,
     "skip inputs whose output is there: original and .tsr are of the same size and time, or of the same hash"},
    {LONG_RM, "rm", "[=damaged-too]", ON_COMPRESS | OFTEN,
     "remove originals whose .tsr restores the same file, but not those that look damaged"},
    {'n', "dry-run", NULL, ON_COMPRESS, "say what would be done, with an estimate from a sample"},
    {LONG_SHARD, "shard", "I/N|auto", ON_WORK, "do part I of N; auto: as Slurm or MPI number this process"},

    {0, NULL, NULL, 0, "Effort"},
    {'1', NULL, "-9", ON_COMPRESS | ON_COMPARE | OFTEN, "-1 is the fastest, -9 the smallest; default: -5"},
    {LONG_PATH, "path", "predict|transform", ON_COMPRESS,
     "how samples are decorrelated; default: predict, with --qp, --psnr, --size transform"},
    {LONG_CODER, "coder", "huffman|cavlc|rans", ON_COMPRESS | ON_COMPARE, "entropy coder; default: the effort's"},
    {LONG_SAMPLES_ONLY, "samples-only", NULL, ON_COMPRESS,
     "keep the samples alone of compressed DICOM that cannot come back as the same file"},

    {0, NULL, NULL, 0, "Loss"},
    {LONG_QUALITY, "quality", "diagnostic|visually-lossless|web", ON_COMPRESS | OFTEN,
     "lossy; floors of PSNR and SSIM in each window"},
    {LONG_PSNR, "psnr", "DB", ON_COMPRESS, "lossy, with this PSNR or up to 0.1 dB more"},
    {LONG_QP, "qp", "N", ON_COMPRESS, "lossy, with the step of this QP, up to 51 in eighths; 6 more double the step"},
    {LONG_SIZE, "size", "BYTES|N:1", ON_COMPRESS | OFTEN,
     "lossy, in so many bytes (500k, 2M) or at this ratio: never more, at most 1 % less"},
    {LONG_MAX_ERROR, "max-error", "N", ON_COMPRESS | OFTEN, "lossy; no sample differs by more than N"},
    {LONG_KEEP, "keep", "LOW..HIGH", ON_COMPRESS,
     "with loss, stored values that do not change, as of padding, and that no other sample gets; up to four times"},
    {LONG_STRICT, "strict", NULL, ON_COMPRESS,
     "no file (64) where it would have less than 35 dB in a window or over all, less than its --quality, or be smaller "
     "than is published for its modality"},
    {LONG_ALLOW_LOSSY, "allow-lossy", NULL, ON_COMPRESS, "code mammography, segmentations and doses with loss, too"},

    {0, NULL, NULL, 0, "Proof and reports"},
    {LONG_VERIFY, "verify", "cpu|cuda|none", ON_COMPRESS,
     "what decodes the finished file to prove it; default: cpu. none proves nothing"},
    {LONG_REPORT, "report", "FILE", ON_COMPRESS | ON_TEST | OFTEN, "write a page: what was proven, PASS or FAIL"},
    {LONG_HTML, "html", "FILE", ON_VERIFY | OFTEN, "write a page with the hashes of all files: PASS or FAIL"},
    {LONG_HTML, "html", "FILE", ON_COMPARE | OFTEN, "write a page with tables, plots and pictures"},
    {LONG_CSV, "csv", "FILE", ON_COMPARE | OFTEN, "write a table with a row for each image, codec and setting"},
    {LONG_IDENTIFY, "identify", NULL, ON_COMPRESS | ON_TEST | ON_COMPARE,
     "name files in reports, which number them otherwise"},
    {LONG_MANIFEST, "manifest", "FILE", ON_COMPRESS, "write sizes, XXH3-128 and SHA-256 of the originals"},
    {LONG_MANIFEST, "manifest", "FILE", ON_TEST, "compare with a manifest, too"},
    {LONG_SAMPLE, "sample", "N%", ON_TEST | OFTEN, "test a part of the files, drawn at random"},
    {LONG_SAMPLE, "sample", "N|N%", ON_COMPARE | OFTEN,
     "so many images, or this part of them, of each modality and size"},
    {LONG_SEED, "seed", "N", ON_COMPARE, "another sample; default: 1"},

    {0, NULL, NULL, 0, "The machine"},
    {'T', "threads", "N", ON_WORK | ON_CAT | ON_MOUNT | ON_COMPARE | OFTEN,
     "threads; default: all that this process may use"},
    {LONG_MEMORY, "memory", "BYTES", ON_WORK | ON_CAT | ON_MOUNT | ON_COMPARE | ON_SUMMARY | OFTEN,
     "most memory (500M, 4G, 2GiB); default: a quarter of the machine's or its cgroup's"},
    {LONG_ENGINE, "engine", "auto|cpu|cuda", ON_WORK,
     "what computes, with the same bytes; default: auto, the GPU where it helps"},
    {LONG_GPU, "gpu", "N,N,...", ON_WORK, "these GPUs and no others, counted from 0; default: all that can be used"},
    {LONG_GPU_MEMORY, "gpu-memory", "BYTES", ON_WORK,
     "most memory of each GPU (500M, 4G); default: half of what is free"},
    {LONG_CACHE, "cache", "BYTES", ON_MOUNT | OFTEN, "most memory of files that are decoded (500M, 4G); default: 256M"},
    {'f', "foreground", NULL, ON_MOUNT | OFTEN, "serve in this process, and log on stderr; ctrl-c unmounts"},

    {0, NULL, NULL, 0, "What is said"},
    {LONG_DICOM, "dicom", NULL, ON_INFO | OFTEN,
     "the header of DICOM as dcmdump lists it; with --json in the DICOM JSON model"},
    {LONG_JSON, "json", NULL, ON_TALKERS | OFTEN, "one JSON object a file on stdout; then, but for info, a summary"},
    {LONG_LOG, "log", "FILE", ON_ALL, "append all that the run says to FILE, with the times"},
    {LONG_PROGRESS, "progress", "auto|none|json", ON_WORK | ON_COMPARE,
     "progress on stderr; auto: a line on a terminal, else one every 30 s"},
    {'q', "quiet", NULL, ON_TALKERS | OFTEN, "no progress, no summary"},
    {'v', "verbose", NULL, ON_TALKERS | OFTEN, "a line for each file"},
    {'h', "help", NULL, ON_ALL | OFTEN, "examples and the options that are used most"},
};
enum { ROWS = sizeof table / sizeof table[0] };

static void print_verbs(FILE *to)
{
    fprintf(to, "usage: tessera VERB [OPTION...] IN...\n\n");
    for (int v = 0; v < VERB_COUNT; v++) fprintf(to, "  %-11s %s\n", verbs[v].name, verbs[v].purpose);
    fprintf(to, "\ntessera VERB --help  shows examples, and the options that are used most\n"
                "tessera help VERB    lists all options\n"
                "tessera --version    shows the version, and what this build can do\n");
}

static int count_options(enum verb verb)
{
    int count = 0;
    for (const struct option_row *row = table; row < table + ROWS; row++) count += row->verbs >> verb & 1;
    return count;
}

/* Examples, then the options: all, or those that are used most. */
static void print_help(enum verb verb, bool all)
{
    const struct verb_row *const row = &verbs[verb];
    printf("usage: tessera %s [OPTION...] %s\n%s\n\n", row->name, row->synopsis, row->purpose);
    int width = 0;
    for (int i = 0; i < EXAMPLES && row->examples[i].words; i++)
        if ((int)strlen(row->examples[i].words) > width) width = (int)strlen(row->examples[i].words);
    for (int i = 0; i < EXAMPLES && row->examples[i].words; i++)
        printf("  tessera %s %-*s  # %s\n", row->name, width, row->examples[i].words, row->examples[i].does);
    print_option_rows(table, ROWS, all ? 1 << verb : 1 << verb | OFTEN);
    if (!all) printf("\ntessera help %s and the manual page list all %d options.\n", row->name, count_options(verb));
}

static void print_version(void)
{
    printf("tessera %s\nformat: %u\n%sprogram: %s\n", tsr_version(), tsr_format_version(), tsr_build_features(),
           TSR_PROGRAM_LIBRARIES);
}

/* A QP, here in eighths. */
static enum tsr_status parse_qp(const char *text, struct options *o)
{
    int32_t qp[QP_LIST_LIMIT];
    int count;
    const enum tsr_status status = parse_qp_list(text, qp, &count);
    if (status == TSR_OK && count != 1) return usage("compress wants one --qp, not '%s'", text);
    if (status == TSR_OK) o->qp = qp[0];
    o->has_qp = status == TSR_OK;
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

static enum tsr_status parse_quality(const char *text, struct options *o)
{
    static const char *const words[] = {"diagnostic", "visually-lossless", "web"};
    for (int i = 0; i < 3; i++)
        if (strcmp(text, words[i]) == 0) return take_loss(o, TSR_LOSS_QUALITY, i + 1);
    return usage("--quality wants diagnostic, visually-lossless or web, not '%s'", text);
}

/* Bytes, or a ratio N:1, in thousandths. */
static enum tsr_status parse_size(const char *text, struct options *o)
{
    const size_t length = strlen(text);
    const bool ratio = length > 2 && !strcmp(text + length - 2, ":1");
    uint64_t value;
    if (!(ratio ? parse_units(text, 2, 1000, &value) : parse_bytes(text, &value)))
        return usage("--size wants bytes, as 20000, " BYTES_FORMS ", or a ratio, as 10:1, not '%s'", text);
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

/* A stored value, or LOW..HIGH. */
static enum tsr_status parse_keep(const char *text, struct options *o)
{
    const char *const dots = strstr(text, "..");
    char low[16] = "";
    double lowest, highest;
    if (o->kept_count == TSR_KEPT_VALUES_LIMIT) return usage("--keep is given more than four times: %s", text);
    if (dots && dots - text < (ptrdiff_t)sizeof low) memcpy(low, text, (size_t)(dots - text));
    if (!parse_number(dots ? low : text, INT16_MIN, UINT16_MAX, &lowest) ||
        !parse_number(dots ? dots + 2 : text, INT16_MIN, UINT16_MAX, &highest) || lowest != floor(lowest) ||
        highest != floor(highest) || lowest > highest)
        return usage("--keep wants a stored value, as -2000, or a range of them, as -2048..-1025, not '%s'", text);
    o->kept[o->kept_count++] = (struct tsr_stored_values){(int32_t)lowest, (int32_t)highest};
    return TSR_OK;
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

/* Which of count words it is; -1: none. */
static int find_word(const char *text, const char *const *words, int count)
{
    for (int i = 0; i < count; i++)
        if (strcmp(text, words[i]) == 0) return i;
    return -1;
}

static enum tsr_status parse_export(const char *text, struct options *o)
{
    int found = 0;
    while (found <= TSR_EXPORT_HTJ2K && strcmp(text, export_word((enum tsr_export)found)) != 0) found++;
    if (found > TSR_EXPORT_HTJ2K)
        return usage("--to wants native, jpeg-ls, jpeg-lossless, rle, j2k or htj2k, not '%s'", text);
    o->to = (enum tsr_export)found;
    o->has_to = true;
    return TSR_OK;
}

static enum tsr_status parse_engine(const char *text, struct options *o)
{
    static const char *const names[] = {
        [TSR_ENGINE_AUTO] = "auto", [TSR_ENGINE_CPU] = "cpu", [TSR_ENGINE_CUDA] = "cuda"};
    const int found = find_word(text, names, sizeof names / sizeof names[0]);
    if (found < 0) return usage("--engine wants auto, cpu or cuda, not '%s'", text);
    o->engine = (enum tsr_engine_choice)found;
    return TSR_OK;
}

/* ---- Sets ------------------------------------------------------------------------------------------------- */

static enum tsr_status refuse_memory(const char *what)
{
    fprintf(stderr, "tessera: no memory for %s\n", what);
    return TSR_ERROR_LIMIT;
}

static enum tsr_status add_filter(struct options *o, const char *pattern, bool includes)
{
    struct filter_rule *const grown = realloc(o->filters, (o->filter_count + 1) * sizeof *grown);
    if (!pattern[0]) return usage("an empty glob matches nothing: '%s'", pattern);
    if (!grown) return refuse_memory("a glob");
    o->filters = grown;
    o->filters[o->filter_count++] = (struct filter_rule){.pattern = pattern, .includes = includes};
    return TSR_OK;
}

static enum tsr_status parse_rm(const char *text, struct options *o)
{
    if (text && strcmp(text, "damaged-too") != 0) return usage("--rm takes nothing or =damaged-too, not '%s'", text);
    o->removes = true;
    o->removes_damaged = text != NULL;
    return TSR_OK;
}

static enum tsr_status parse_update(const char *text, struct options *o)
{
    if (text && strcmp(text, "hash") != 0) return usage("--update takes nothing or =hash, not '%s'", text);
    o->update = text ? UPDATE_BY_HASH : UPDATE_BY_TIME;
    return TSR_OK;
}

static enum tsr_status parse_progress(const char *text, struct options *o)
{
    static const char *const names[] = {[PROGRESS_AUTO] = "auto", [PROGRESS_NONE] = "none", [PROGRESS_JSON] = "json"};
    const int found = find_word(text, names, sizeof names / sizeof names[0]);
    if (found < 0) return usage("--progress wants auto, none or json, not '%s'", text);
    o->progress = (enum progress_form)found;
    return TSR_OK;
}

static enum tsr_status parse_sample(const char *text, struct options *o)
{
    char number[32];
    double percent;
    const size_t length = strlen(text);
    if (o->verb == VERB_COMPARE && parse_number(text, 1, 1e9, &percent) && percent == floor(percent)) {
        o->sample_count = (uint32_t)percent;
        return TSR_OK;
    }
    if (length < 2 || length >= sizeof number || text[length - 1] != '%')
        return usage(o->verb == VERB_COMPARE ? "--sample wants a number, as 60, or a percentage, as 5%%, not '%s'"
                                             : "--sample wants a percentage, as 5%%, not '%s'",
                     text);
    memcpy(number, text, length - 1);
    number[length - 1] = '\0';
    if (!parse_number(number, 1e-9, 100, &percent))
        return usage("--sample wants more than 0%%, at most 100%%, not '%s'", text);
    o->sample = percent / 100;
    return TSR_OK;
}

static enum tsr_status parse_seed(const char *text, struct options *o)
{
    double number;
    if (!parse_number(text, 0, 1e15, &number) || number != floor(number))
        return usage("--seed wants a whole number, not '%s'", text);
    o->seed = (uint64_t)number;
    return TSR_OK;
}

/* A whole number in the environment; negative: there is none. */
static long long number_of(const char *name)
{
    const char *const text = getenv(name);
    double number;
    return text && parse_number(text, 0, 1e9, &number) && number == floor(number) ? (long long)number : -1;
}

/* The number of this process among its kind, from 0, as these variables say it. */
static bool shard_of(struct options *o, const char *rank, const char *count)
{
    const long long i = number_of(rank), n = number_of(count);
    if (i < 0 || n < 1 || i >= n) return false;
    o->shard = (uint32_t)i + 1;
    o->shards = (uint32_t)n;
    return true;
}

static bool shard_of_array(struct options *o)
{
    const long long id = number_of("SLURM_ARRAY_TASK_ID"), first = number_of("SLURM_ARRAY_TASK_MIN"),
                    count = number_of("SLURM_ARRAY_TASK_COUNT"), said = number_of("SLURM_ARRAY_TASK_STEP"),
                    step = said > 0 ? said : 1;
    if (id < 0 || first < 0 || count < 1 || id < first || (id - first) % step != 0 || (id - first) / step >= count)
        return false;
    o->shard = (uint32_t)((id - first) / step) + 1;
    o->shards = (uint32_t)count;
    return true;
}

static enum tsr_status parse_shard(const char *text, struct options *o)
{
    unsigned long i, n;
    char rest;
    if (strcmp(text, "auto") == 0) {
        if (getenv("SLURM_ARRAY_TASK_ID")) {
            if (shard_of_array(o)) return TSR_OK;
            return usage("--shard auto: SLURM_ARRAY_TASK_ID %s does not fit SLURM_ARRAY_TASK_MIN, _COUNT and _STEP; an "
                         "array's numbers must follow each other",
                         getenv("SLURM_ARRAY_TASK_ID"));
        }
        if (shard_of(o, "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE") || shard_of(o, "PMI_RANK", "PMI_SIZE") ||
            shard_of(o, "SLURM_PROCID", "SLURM_NTASKS"))
            return TSR_OK;
        return usage("--shard %s: neither Slurm nor MPI has numbered this process; say --shard I/N", text);
    }
    if (sscanf(text, "%lu/%lu%c", &i, &n, &rest) != 2 || i < 1 || i > n || n > 1000000)
        return usage("--shard wants I/N, as 1/8 to 8/8, or auto, not '%s'", text);
    o->shard = (uint32_t)i;
    o->shards = (uint32_t)n;
    return TSR_OK;
}

/* Options that choose files and say what becomes of them. */
static enum tsr_status take_set_option(int code, struct options *o)
{
    switch (code) {
    case 'r':
        o->recursive = true;
        return TSR_OK;
    case 'L':
        o->dereference = true;
        return TSR_OK;
    case '0':
        o->null_names = true;
        return TSR_OK;
    case 'n':
        o->dry_run = true;
        return TSR_OK;
    case LONG_FLAT:
        o->flat = true;
        return TSR_OK;
    case LONG_FILES_FROM:
        o->files_from = optarg;
        return TSR_OK;
    case LONG_INCLUDE:
    case LONG_EXCLUDE:
        return add_filter(o, optarg, code == LONG_INCLUDE);
    case LONG_UPDATE:
        return parse_update(optarg, o);
    case LONG_RM:
        return parse_rm(optarg, o);
    case LONG_MANIFEST:
        o->manifest = optarg;
        return TSR_OK;
    case LONG_SAMPLE:
        return parse_sample(optarg, o);
    case LONG_REPORT:
    case LONG_HTML:
        o->page = optarg;
        return TSR_OK;
    case LONG_CSV:
        o->csv = optarg;
        return TSR_OK;
    case LONG_SEED:
        return parse_seed(optarg, o);
    case LONG_IDENTIFY:
        o->identify = true;
        return TSR_OK;
    case LONG_SHARD:
        return parse_shard(optarg, o);
    case LONG_NO_TIMES:
        o->no_times = true;
        return TSR_OK;
    case LONG_SKIP_UNREADABLE:
        o->skip_unreadable = true;
        return TSR_OK;
    default:
        return TSR_ERROR_USAGE;
    }
}

/* ---- All options ------------------------------------------------------------------------------------------ */

/* Which of these options are among them. */
struct given {
    bool path, target, max_error;
};

static enum tsr_status take_target(int code, struct options *o, struct given *given)
{
    if (given->target) return usage("%s", "one target is enough: --quality, --psnr or --size");
    given->target = true;
    return code == LONG_PSNR      ? parse_psnr(optarg, o)
           : code == LONG_QUALITY ? parse_quality(optarg, o)
                                  : parse_size(optarg, o);
}

static enum tsr_status take_option(int code, struct options *o, struct given *given)
{
    switch (code) {
    case 'o':
        o->output = optarg;
        return TSR_OK;
    case LONG_PROGRESS:
        return parse_progress(optarg, o);
    case 'f':
        *(o->verb == VERB_MOUNT ? &o->foreground : &o->force) = true;
        return TSR_OK;
    case 'q':
        o->verbosity = -1;
        return TSR_OK;
    case 'v':
        o->verbosity = 1;
        return TSR_OK;
    case 'T':
        return parse_threads(optarg, &o->threads);
    case LONG_LOG:
        o->log = optarg;
        return TSR_OK;
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
    case LONG_QUALITY:
    case LONG_SIZE:
        return take_target(code, o, given);
    case LONG_MAX_ERROR:
        given->max_error = true;
        return parse_max_error(optarg, o);
    case LONG_KEEP:
        return parse_keep(optarg, o);
    case LONG_VERIFY:
        return parse_verify(optarg, o);
    case LONG_STRICT:
        o->compress.least_db = tsr_quality_floor(TSR_QUALITY_WEB);
        o->compress.within_ratio = true;
        return TSR_OK;
    case LONG_ALLOW_LOSSY:
        o->compress.allow_lossy = true;
        return TSR_OK;
    case LONG_SAMPLES_ONLY:
        o->compress.samples_only = true;
        return TSR_OK;
    case LONG_ENGINE:
        return parse_engine(optarg, o);
    case LONG_TO:
        return parse_export(optarg, o);
    case LONG_GPU:
        return parse_gpus(optarg, o);
    case LONG_GPU_MEMORY:
        return parse_bytes(optarg, &o->gpu_memory)
                   ? TSR_OK
                   : usage("--gpu-memory wants bytes, as " BYTES_FORMS ", not '%s'", optarg);
    case LONG_MEMORY:
        return parse_bytes(optarg, &o->memory) ? TSR_OK
                                               : usage("--memory wants bytes, as " BYTES_FORMS ", not '%s'", optarg);
    case LONG_SERIES:
        o->series = optarg;
        return TSR_OK;
    case LONG_CACHE:
        return parse_bytes(optarg, &o->cache) ? TSR_OK
                                              : usage("--cache wants bytes, as " BYTES_FORMS ", not '%s'", optarg);
    case LONG_DICOM:
        o->dicom = true;
        return TSR_OK;
    case LONG_MEMBER:
        o->member = optarg;
        return TSR_OK;
    default:
        if (code >= '1' && code <= '9') {
            o->compress.effort = code - '0';
            return TSR_OK;
        }
        return take_set_option(code, o);
    }
}

static bool ends_with(const char *name, const char *end)
{
    const size_t length = strlen(name), tail = strlen(end);
    return length >= tail && strcmp(name + length - tail, end) == 0;
}

/* --rm, --update and pipes, with what excludes them. */
static enum tsr_status settle_set(const struct options *o)
{
    const bool to_stdout = (o->output && strcmp(o->output, "-") == 0) || o->verb == VERB_CAT;
    if (o->removes && o->compress.verify == TSR_VERIFY_NONE)
        return usage("%s", "--rm removes what was proven; --verify none proves nothing");
    if (o->removes && o->compress.loss != TSR_LOSSLESS)
        return usage("%s", "--rm never removes the originals of lossy files");
    if (o->removes && (o->series || to_stdout)) return usage("%s", "--rm is for inputs with a .tsr each");
    if (o->update != UPDATE_OFF && (o->series || to_stdout))
        return usage("%s", "--update is for inputs with a .tsr each");
    if (o->manifest && o->series) return usage("%s", "--manifest is for inputs with a .tsr each");
    if (o->manifest && o->verb == VERB_COMPRESS && (ends_with(o->manifest, ".part") || ends_with(o->manifest, ".new")))
        return usage("--manifest %s: .part and .new end the names of unfinished manifests; choose another",
                     o->manifest);
    if (o->manifest && !TSR_WITH_OPENSSL)
        return usage("%s", "--manifest needs SHA-256: this program was built without OpenSSL");
    if (o->verb == VERB_EXPORT && !o->has_to)
        return usage("%s", "export wants --to native, jpeg-ls, jpeg-lossless, rle, j2k or htj2k");
    if (to_stdout && o->json) return usage("%s", "--json writes to stdout, as -o - does: name a file with -o");
    if (to_stdout && isatty(STDOUT_FILENO))
        return usage("%s", o->verb == VERB_CAT ? "stdout is a terminal: redirect it"
                                               : "stdout is a terminal: redirect it, or name a file with -o");
    if (o->flat && !o->output) return usage("%s", "--flat is for outputs below -o OUT");
    if ((o->no_times || o->skip_unreadable) && !o->series)
        return usage("%s", "--no-times and --skip-unreadable are for a --series");
    if (o->shards > 0 && o->series) return usage("%s", "--shard is for inputs with a .tsr each, not for a --series");
    if (o->dry_run && o->series) return usage("%s", "--dry-run is for inputs with a .tsr each, not for a --series");
    return TSR_OK;
}

/* Names that would be those of other files than the user means. */
static enum tsr_status check_names(const struct options *o)
{
    const struct {
        const char *flag, *name;
    } files[] = {{"--manifest", o->manifest},
                 {o->verb == VERB_COMPARE || o->verb == VERB_VERIFY ? "--html" : "--report", o->page},
                 {"--csv", o->csv},
                 {"--log", o->log},
                 {"--series", o->series},
                 {"-o", o->output}};
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        const char *const name = files[i].name;
        if (name && !name[0]) return usage("%s wants the name of a file, not an empty one", files[i].flag);
        if (name && strcmp(name, "-") == 0 && strcmp(files[i].flag, "-o") != 0)
            return usage("%s wants the name of a file, and - is none: ./- would be", files[i].flag);
    }
    for (int i = 0; i < o->input_count; i++)
        if (!o->inputs[i][0]) return usage("%s", "the name of an input is empty");
    return TSR_OK;
}

/* What the options say together: path, loss, and that they can be. */
static enum tsr_status settle_options(struct options *o, const struct given *given)
{
    struct tsr_compress_options *const compress = &o->compress;
    const bool has_qp = o->has_qp;
    if (has_qp + given->target + given->max_error > 1)
        return usage("%s", "--quality, --qp, --psnr, --size and --max-error exclude each other");
    if ((has_qp || given->target) && given->path && compress->path == TSR_PATH_PREDICT)
        return usage("%s", "--quality, --qp, --psnr and --size need the transform path, not --path predict");
    if (o->engine == TSR_ENGINE_CPU && o->gpus.count > 0)
        return usage("%s", "--gpu needs the CUDA engine, not --engine cpu");
    if (o->engine == TSR_ENGINE_CPU && compress->verify == TSR_VERIFY_ENGINE)
        return usage("%s", "--verify cuda needs the CUDA engine, not --engine cpu");
    if (o->gpus.count > 0) o->engine = TSR_ENGINE_CUDA; /* who names one demands it */
    if (o->series && o->output) return usage("%s", "--series names the output; -o would name another");
    if (o->series && given->target && compress->loss != TSR_LOSS_PSNR && compress->loss != TSR_LOSS_QUALITY)
        return usage("%s", "--size is for a single file, not for a --series");
    if (given->max_error && compress->path == TSR_PATH_TRANSFORM)
        return usage("%s", "--max-error needs the predictive path, not --path transform");
    if (o->kept_count > 0 && !has_qp && !given->target && !given->max_error)
        return usage("%s", "--keep is for loss, which --quality, --qp, --psnr, --size or --max-error asks for");
    if (has_qp || given->target) compress->path = TSR_PATH_TRANSFORM;
    if (has_qp) take_loss(o, TSR_LOSS_QP, o->qp);
    if (compress->least_db > 0 && compress->loss == TSR_LOSS_QUALITY)
        compress->least_db = tsr_quality_floor((enum tsr_quality)compress->loss_value);
    struct tsr_error error;
    const enum tsr_status status = tsr_check_options(compress, &error);
    return status == TSR_OK ? settle_set(o) : usage("%s", error.text);
}

const char *verb_name(enum verb verb)
{
    return verbs[verb].name;
}

const struct verb_row *verb_row(enum verb verb)
{
    return &verbs[verb];
}

const struct option_row *option_rows(int *count)
{
    *count = ROWS;
    return table;
}

void free_options(struct options *options)
{
    free(options->filters);
    free(options->words);
}

/* ---- Words ------------------------------------------------------------------------------------------------- */

static int find_verb(const char *word)
{
    int verb = 0;
    while (verb < VERB_COUNT && strcmp(word, verbs[verb].name) != 0) verb++;
    return verb;
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

const struct option_row *find_option(const char *word)
{
    const size_t length = strcspn(word, "=");
    for (const struct option_row *row = table; row < table + ROWS; row++) {
        if (!row->name) continue;
        const bool is_long = strncmp(word, "--", 2) == 0 && strlen(row->name) == length - 2;
        if (is_long && strncmp(word + 2, row->name, length - 2) == 0) return row;
        if (word[0] == '-' && word[1] == row->code && (!word[2] || row->argument)) return row;
    }
    return NULL;
}

bool takes_next(const char *word)
{
    const struct option_row *const row = find_option(word);
    return row && row->argument && row->argument[0] != '[' && !strchr(word, '=') && (word[1] == '-' || !word[2]);
}

/* TESSERA_THREADS stands for -T where the verb takes it and it is not given. */
static enum tsr_status take_environment(struct options *o)
{
    const char *const text = getenv("TESSERA_THREADS");
    double number;
    if (!text || !text[0] || o->threads > 0) return TSR_OK;
    for (const struct option_row *row = table; row < table + ROWS; row++) {
        if (row->code != 'T' || !(row->verbs & 1 << o->verb)) continue;
        if (!parse_number(text, 1, 1024, &number) || number != floor(number))
            return usage("TESSERA_THREADS in the environment wants a number of threads, 1 to 1024, not '%s'", text);
        o->threads = (int)number;
    }
    return TSR_OK;
}

enum tsr_status parse_options(int argc, char **argv, struct options *o, bool *finished)
{
    char letters[2 * ROWS + 10] = ":"; /* getopt tells a value that lacks from an unknown option, and says nothing */
    struct option longs[ROWS + 1];
    struct given given = {0};
    memset(o, 0, sizeof *o);
    o->compress.size = sizeof o->compress;
    o->seed = 1;
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
    o->words = malloc((size_t)argc * sizeof *o->words);
    if (!o->words) return refuse_memory("the command line");
    memcpy(o->words, argv + 2, (size_t)(argc - 2) * sizeof *o->words); /* getopt puts them in another order */
    o->word_count = argc - 2;
    fill_getopt(table, ROWS, 1 << verb, letters + 1, longs);
    for (int code; (code = getopt_long(argc - 1, argv + 1, letters, longs, NULL)) != -1;) {
        if (code == 'h') {
            print_help(o->verb, false);
            return TSR_OK;
        }
        if (code == '?' || code == ':') return refuse_option(o->verb, code == ':', argv + 1 + optind);
        const enum tsr_status status = take_option(code, o, &given);
        if (status != TSR_OK) return status;
    }
    o->inputs = (const char *const *)argv + 1 + optind;
    o->input_count = argc - 1 - optind;
    const bool is_pipe = o->input_count == 1 && strcmp(o->inputs[0], "-") == 0;
    if (is_pipe && !o->output && !o->series &&
        (o->verb == VERB_COMPRESS || o->verb == VERB_DECOMPRESS || o->verb == VERB_EXPORT))
        o->output = "-";
    enum tsr_status settled = check_names(o);
    if (settled == TSR_OK) settled = settle_options(o, &given);
    if (settled == TSR_OK) settled = take_environment(o);
    if (settled != TSR_OK) return settled;
    if (o->input_count == 0 && (!o->files_from || o->verb == VERB_SUMMARY)) {
        fprintf(stderr, "tessera: no input is named; tessera %s --help shows the usage\n", verbs[o->verb].name);
        return TSR_ERROR_USAGE;
    }
    *finished = false;
    return TSR_OK;
}
