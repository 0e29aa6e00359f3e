/* The command line as parsed: what an option says stands in the structure of its group, and what one verb alone takes
 * in that verb's. Each function gets what it obeys. */
#ifndef TSR_APP_CLI_OPTIONS_OPTIONS_H
#define TSR_APP_CLI_OPTIONS_OPTIONS_H

#include <stdatomic.h>

#include "app/tessera_cli.h"
#include "option_table.h"

enum verb {
    VERB_COMPRESS,
    VERB_DECOMPRESS,
    VERB_CAT,
    VERB_EXPORT,
    VERB_TEST,
    VERB_VERIFY,
    VERB_INFO,
    VERB_MOUNT,
    VERB_COMPARE,
    VERB_SUMMARY,
    VERB_COUNT
};

enum update { UPDATE_OFF, UPDATE_BY_TIME, UPDATE_BY_HASH };
enum progress_style { PROGRESS_AUTO, PROGRESS_NONE, PROGRESS_JSON };

/* --include or --exclude: a glob, as rsync has them. */
struct filter_rule {
    const char *pattern;
    bool includes;
    atomic_bool matched, decided; /* a name; whether it was taken, since no earlier rule had matched it */
};

/* Which files are worked on. */
struct input_options {
    const char *const *names;
    int count;
    const char *files_from; /* a file with names of inputs, "-" is stdin; or NULL */
    bool null_names;        /* zeros end the names there */
    bool recursive, dereference;
    struct filter_rule *filters;
    size_t filter_count;
    bool base;              /* of a .tsr, its base instead */
    const char *member;     /* of series: a glob for the files that are wanted, NULL: all */
    uint32_t shard, shards; /* 1 .. shards; 0: all files */
    bool takes_tsr;         /* verify: .tsr files in the originals' folders are files as others */
};

/* test, compare: files that are drawn at random. */
struct sample_options {
    double share;   /* of the files, 0: all */
    uint32_t count; /* compare: files of a sample, 0: as share says */
    uint64_t seed;  /* compare */
};

/* Where outputs go. */
struct output_options {
    const char *path; /* -o, or NULL */
    bool force, flat;
    struct tsr_file_set *written; /* all files that this run has written: it replaces none of them */
};

/* compress --series: one output of all inputs. */
struct series_options {
    const char *path; /* NULL: each input has an output */
    bool no_times, skip_unreadable;
};

/* Files with secrets; each NULL or a name. */
struct key_options {
    const char *encrypt;    /* compress: the key of what is written */
    const char *key;        /* of what is read */
    const char *passphrase; /* instead of either */
};

/* What becomes of outputs that are there, and of originals. */
struct archive_options {
    enum update update;
    bool removes;         /* --rm */
    bool removes_damaged; /* and originals that look damaged, too */
    bool dry_run;
};

/* --roi and --first: samples of an image, which a file with loss gives back as they were; or which come first. */
enum { ROI_RECTANGLES = 64, ROI_MASKS = 16 };
struct roi_options {
    struct tsr_roi roi;
    struct tsr_region rectangles[ROI_RECTANGLES];
    const char *masks[ROI_MASKS]; /* names of images, which are read before the first file is coded */
    int mask_count;
    uint8_t *mask; /* of all of them together; or NULL */
};

/* How compress codes. */
struct coding_options {
    struct tsr_compress_options compress;
    uint32_t kept_count; /* values that loss does not change: of struct tsr_data_source */
    struct tsr_stored_values kept[TSR_KEPT_VALUES_LIMIT];
    struct roi_options *region, *first; /* or NULL */
};

/* Files that say what was found. */
struct report_options {
    const char *page;     /* --report, --html: where it is written, or NULL */
    const char *csv;      /* compare: or NULL */
    const char *manifest; /* or NULL */
    bool identify;        /* reports name files */
};

/* What is said meanwhile. */
struct talk_options {
    bool json;
    int verbosity; /* -1 quiet, 0, 1 verbose */
    enum progress_style progress;
    const char *log; /* or NULL */
    char **words;    /* the command line after its verb, as it was typed */
    int word_count;
};

struct machine_options {
    int threads; /* 0: as many as there are */
    enum tsr_engine_choice engine;
    struct numbers gpus; /* none: all that can be used */
    uint64_t gpu_memory; /* 0: the default */
    uint64_t memory;     /* of the host; 0: the default */
};

/* export: the transfer syntax. */
struct export_options {
    enum tsr_export_syntax syntax;
    bool is_given;
};

/* decompress, cat: samples as a picture, instead of an original. */
struct picture_options {
    bool salvages;  /* --salvage: of all that is left */
    bool is_region; /* --region: of this rectangle */
    struct tsr_region region;
    bool is_frame; /* --frame: of this frame alone */
    uint32_t frame;
    enum tsr_picture form; /* as the output's name ends */
};

struct info_options {
    bool dicom; /* the header of DICOM */
};

struct mount_options {
    bool foreground; /* serve in this process */
    uint64_t cache;  /* bytes of decoded files in memory, 0: the default */
};

struct options {
    enum verb verb;
    struct input_options in;
    struct sample_options sample;
    struct output_options out;
    struct series_options series;
    struct key_options keys;
    struct archive_options archive;
    struct coding_options coding;
    struct report_options report;
    struct talk_options talk;
    struct machine_options machine;
    struct export_options to;
    struct picture_options picture;
    struct info_options info;
    struct mount_options mount;
};

/* Parses; on TSR_OK with *finished set there is nothing more to do (--help). free_options frees what the
 * options have allocated. */
enum tsr_status parse_options(int argc, char **argv, struct options *options, bool *finished);
void free_options(struct options *options);
/* As --to has it. */
static inline const char *export_word(enum tsr_export_syntax to)
{
    static const char *const words[] = {
        [TSR_EXPORT_NATIVE] = "native", [TSR_EXPORT_JPEG_LS] = "jpeg-ls", [TSR_EXPORT_JPEG_LOSSLESS] = "jpeg-lossless",
        [TSR_EXPORT_RLE] = "rle",       [TSR_EXPORT_J2K] = "j2k",         [TSR_EXPORT_HTJ2K] = "htj2k"};
    return words[to];
}
const char *verb_name(enum verb verb);

/* What the help and the pages (pages/) say of a verb; and all rows of the option table. */
enum { EXAMPLES = 4 };
struct verb_row {
    const char *name, *synopsis, *purpose;
    struct {
        const char *words, *does; /* behind the verb; words are NULL after the last */
    } examples[EXAMPLES];
};
const struct verb_row *verb_row(enum verb verb);
const struct option_row *option_rows(int *count);

/* The row of an option as it is typed, with or without its value; NULL: it is none. */
const struct option_row *find_option(const char *word);
/* Whether an option that is typed so takes the next word as its value. */
bool takes_next(const char *word);

#endif
