/* Options: the one table from which they are parsed, and which --help, the manual pages and the completions show. */
#include <string.h>

#include "parse.h"

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
    ON_READERS = (ON_FILES & ~ON_COMPRESS) | ON_MOUNT, /* of .tsr files */
    ON_ALL = (1 << VERB_COUNT) - 1,
    ON_TALKERS = ON_ALL & ~(ON_CAT | ON_MOUNT)
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
    {LONG_REGION, "region", "X,Y,W,H[@base]", ON_DECOMPRESS | ON_CAT | OFTEN,
     "not the original, but the samples of this rectangle, of which alone anything is decoded: as .npy, .png, .pgm or "
     ".ppm, as OUT ends; default: .npy"},
    {LONG_FRAME, "frame", "N", ON_DECOMPRESS | ON_CAT, "with --region, of this frame alone, counted from 0"},
    {LONG_SALVAGE, "salvage", NULL, ON_DECOMPRESS | OFTEN,
     "of damaged and cut files, the samples that are left, as .npy, .png, .pgm or .ppm, and a mask of them (76)"},
    {LONG_SERIES, "series", "OUT", ON_COMPRESS | OFTEN,
     "one output for all inputs, which share what is alike in their headers"},
    {LONG_NO_TIMES, "no-times", NULL, ON_COMPRESS, "of a series, store no times and permissions"},
    {LONG_SKIP_UNREADABLE, "skip-unreadable", NULL, ON_COMPRESS,
     "make a series without the inputs that cannot be read"},

    {0, NULL, NULL, 0, "Encryption"},
    {LONG_ENCRYPT, "encrypt", "KEYFILE", ON_COMPRESS,
     "encrypt what is written; KEYFILE has 32 random bytes, without which nothing comes back"},
    {LONG_KEY, "key", "KEYFILE", ON_READERS | OFTEN,
     "the key of .tsr files that are encrypted; default: the file that TESSERA_KEYFILE names"},
    {LONG_PASSPHRASE_FILE, "passphrase-file", "FILE", ON_READERS | ON_COMPRESS,
     "a passphrase instead of a key: what is in FILE, but for a newline at its end"},

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
     "how samples are decorrelated; default: predict, with --qp, --psnr, --ssim, --size transform"},
    {LONG_CODER, "coder", "huffman|cavlc|rans", ON_COMPRESS | ON_COMPARE, "entropy coder; default: the effort's"},
    {LONG_SAMPLES_ONLY, "samples-only", NULL, ON_COMPRESS,
     "keep the samples alone: of PNG, which is much faster, and of compressed DICOM that cannot come back as the same "
     "file"},
    {LONG_FIRST, "first", "X,Y,W,H|FILE|auto", ON_COMPRESS,
     "the tiles with the samples of this region, of all frames, come before all others, for readers at the end of a "
     "slow line: as --roi takes them"},
    {LONG_TILE, "tile", "N", ON_COMPRESS,
     "tiles of N x N samples (64, 128, 192, 256), so that damage costs fewer; default: 65536 samples, with --first 256 "
     "x "
     "256"},
    {LONG_INDEPENDENT, "independent", NULL, ON_COMPRESS,
     "each frame can be read alone; else -9 predicts frames from the one before, where that makes files smaller"},

    {0, NULL, NULL, 0, "Loss"},
    {LONG_QUALITY, "quality", "diagnostic|visually-lossless|web", ON_COMPRESS | OFTEN,
     "lossy; floors of PSNR and SSIM in each window"},
    {LONG_PSNR, "psnr", "DB", ON_COMPRESS, "lossy, with this PSNR or up to 0.1 dB more"},
    {LONG_SSIM, "ssim", "X", ON_COMPRESS, "lossy, with an SSIM of at least this over all samples, as 0.98"},
    {LONG_QP, "qp", "N", ON_COMPRESS, "lossy, with the step of this QP, up to 51 in eighths; 6 more double the step"},
    {LONG_SIZE, "size", "BYTES|N:1", ON_COMPRESS | OFTEN,
     "lossy, in so many bytes (500k, 2M) or at this ratio: never more, at most 1 % less"},
    {LONG_MAX_ERROR, "max-error", "N", ON_COMPRESS | OFTEN, "lossy; no sample differs by more than N"},
    {LONG_TUNE, "tune", "psnr|ssim", ON_COMPRESS,
     "lossy; what bytes are spent on: little error, or what is seen; default: ssim with --ssim, the smaller file with "
     "--quality web, else psnr"},
    {LONG_KEEP, "keep", "LOW..HIGH", ON_COMPRESS,
     "with loss, stored values that do not change, as of padding, and that no other sample gets; up to four times"},
    {LONG_STRICT, "strict", NULL, ON_COMPRESS,
     "no file (64) where it would have less than 35 dB in a window or over all, less than its --quality, or be smaller "
     "than is published for its modality"},
    {LONG_LOSSLESS_REST, "lossless-rest", NULL, ON_COMPRESS,
     "with one of the above, the same file comes back all the same: what has the loss is its base"},
    {LONG_ROI, "roi", "X,Y,W,H|FILE|auto", ON_COMPRESS,
     "with a loss, the samples of this region come back as they were: a rectangle, what an image of the same size has "
     "that is not 0, or the body; may be given several times"},
    {LONG_BASE, "base", NULL, ON_DECOMPRESS | ON_CAT | ON_EXPORT | ON_TEST | ON_INFO,
     "of files with a lossy base in them, that alone"},
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
_Static_assert((int)ROWS <= (int)ROWS_LIMIT, "raise ROWS_LIMIT");

const struct option_row *option_rows(int *count)
{
    *count = ROWS;
    return table;
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
