/* What the files of this folder share: the options' codes, and what parses them. Each parser returns TSR_OK, or prints
 * a sentence and returns TSR_ERROR_USAGE. */
#ifndef TSR_APP_CLI_OPTIONS_PARSE_H
#define TSR_APP_CLI_OPTIONS_PARSE_H

#include <stdio.h>

#include "options.h"

/* Long options without a letter have codes after the characters. */
enum {
    LONG_JSON = 256,
    LONG_LOG,
    LONG_PATH,
    LONG_CODER,
    LONG_QP,
    LONG_PSNR,
    LONG_SSIM,
    LONG_QUALITY,
    LONG_TUNE,
    LONG_KEEP,
    LONG_STRICT,
    LONG_SIZE,
    LONG_MAX_ERROR,
    LONG_VERIFY,
    LONG_ALLOW_LOSSY,
    LONG_SAMPLES_ONLY,
    LONG_LOSSLESS_REST,
    LONG_INDEPENDENT,
    LONG_ROI,
    LONG_FIRST,
    LONG_TILE,
    LONG_BASE,
    LONG_REGION,
    LONG_FRAME,
    LONG_SALVAGE,
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
    LONG_CACHE,
    LONG_ENCRYPT,
    LONG_KEY,
    LONG_PASSPHRASE_FILE
};

enum { ROWS_LIMIT = 128 }; /* of the table of options */

/* Which of these options are among them. */
struct given {
    bool path, max_error;
    int targets; /* --quality, --qp, --psnr and --size, each time */
};

/* verbs.c */
void print_verbs(FILE *to);
void print_help(enum verb verb, bool all); /* all options, or those that are used most */
void print_version(void);
int find_verb(const char *word); /* VERB_COUNT: it is none */

/* parse_coding.c: how compress codes, and what may be lost. */
enum tsr_status parse_target(int code, const char *text, struct coding_options *o, struct given *given);
enum tsr_status parse_max_error(const char *text, struct coding_options *o, struct given *given);
enum tsr_status parse_keep(const char *text, struct coding_options *o);
enum tsr_status parse_roi(const char *text, const char *flag, struct roi_options **options);
enum tsr_status parse_tile(const char *text, struct coding_options *o);
enum tsr_status parse_region(const char *text, struct input_options *in, struct picture_options *o);
enum tsr_status parse_frame(const char *text, struct picture_options *o);
enum tsr_status parse_path(const char *text, struct coding_options *o, struct given *given);
enum tsr_status parse_coder(const char *text, struct coding_options *o);
enum tsr_status parse_tune(const char *text, struct coding_options *o);
enum tsr_status parse_verify(const char *text, struct coding_options *o);

/* parse_files.c: which files are taken, and what becomes of them. */
enum tsr_status add_filter(struct input_options *o, const char *pattern, bool includes);
enum tsr_status parse_shard(const char *text, struct input_options *o);
enum tsr_status parse_sample(const char *text, enum verb verb, struct sample_options *o);
enum tsr_status parse_seed(const char *text, struct sample_options *o);
enum tsr_status parse_rm(const char *text, struct archive_options *o);
enum tsr_status parse_update(const char *text, struct archive_options *o);
enum tsr_status parse_export(const char *text, struct export_options *o);
enum tsr_status refuse_memory(const char *what); /* TSR_ERROR_LIMIT */

/* settle.c: what the options say together, and that they can be. */
enum tsr_status check_option_names(const struct options *o);
enum tsr_status settle_options(struct options *o, const struct given *given);

#endif
