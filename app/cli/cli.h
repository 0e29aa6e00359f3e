/* The command line: what its verbs share. Results go to stdout, talk to stderr. */
#ifndef TSR_APP_CLI_CLI_H
#define TSR_APP_CLI_CLI_H

#include <sys/stat.h>

#include "app/tessera_cli.h"
#include "options/options.h"
#include "verdict.h"
#include "words/shown.h"

/* One file to be worked on. */
struct task {
    char *input;
    char *output;       /* NULL: none */
    char *name;         /* its place in the layout: the original's path below what was named; NULL: it has none */
    bool existed;       /* the output, when the inputs were listed: -f and --update replace no other one */
    size_t twin;        /* of the output, among the list's twins, from 1; 0: there is none */
    bool names_output;  /* the user has named it: links in it are followed */
    size_t root;        /* else: the first bytes of the output that name a folder; links are followed in these alone */
    uint64_t bytes;     /* of the input, as it was listed */
    uint32_t range;     /* of the values, by which loss counts; 0: the image's own */
    size_t place;       /* among the inputs of the whole set, if list->set has them */
    uint32_t referrers; /* with loss: files of the list that refer to its SOP Instance UID, which becomes another */
    const char *referrer[TSR_NAMED_REFERRERS]; /* the first of them: their input, which is theirs */
    double work;                               /* what it takes, beside other tasks; 0: as many bytes as it has */
    enum tsr_status status;                    /* known beforehand: the input cannot be taken */
    char *reason;
    char *lost_in;             /* the files that cannot be taken have unknown names: the folder of the layout that they
                                  belong to, "" for its beginning; else NULL */
    char *member;              /* what it is called in a series, NULL: it is in none */
    struct tsr_reader *series; /* to be restored from, and the file's number there */
    uint32_t number;
    int descriptor;            /* of the input's bytes, where they came through a pipe; else -1 */
    bool to_stdout;            /* the output is stdout */
    char *mask;                /* --salvage: its second output; NULL: it has none */
    char *original;            /* verify: the file to compare with; NULL: there is none */
    bool is_orphan;            /* verify: it stands on one side alone */
    struct tsr_file_state was; /* a series: the input before it was read */
};

/* A name that is not worked on, and why. */
struct skipped {
    char *path;
    const char *reason; /* static */
};

/* A folder without files: its output is made. */
struct empty_folder {
    char *output;
    size_t root;
};

struct task_list {
    struct task *tasks;
    size_t count, capacity;
    struct skipped *skipped; /* names that are not taken: links, devices and the like */
    size_t skipped_count, skipped_capacity;
    struct empty_folder *folders;
    size_t folder_count, folder_capacity;
    size_t others;         /* files that the verb does not look at */
    size_t tsr_files;      /* .tsr files in folders to compress that have no output's name */
    size_t left_tsr_files; /* of these, in no output: they are among the skipped */
    size_t empty_inputs;   /* tasks that have failed: folders that were named, and hold no file */
    size_t excluded;       /* by --exclude, or not of this shard or sample */
    size_t in_set;         /* files of all shards */
    char **set; /* NULL, or the inputs of them all: with loss, what a series loses depends on those of other shards */
    size_t unfinished;          /* outputs that another run is making, or has left behind */
    struct tsr_reader **series; /* that inputs are */
    size_t series_count;
    uint64_t shared_bytes; /* of the outputs, that no task counts: a series' header and index */

    struct tsr_file_set *tsr_seen; /* all .tsr files in folders to compress; NULL: there are none */
    char **twins;                  /* --rm: outputs that may be one file, those next to each other */
    size_t twin_count;
};

/* What came of a task. */
struct outcome {
    enum tsr_status status;
    struct tsr_error error;
    struct tsr_report report;
    bool is_current;   /* --update: the .tsr was there, and is of this file */
    bool is_gone;      /* and an earlier run with --rm has removed the file */
    bool is_compared;  /* every byte that comes back was compared with the original's */
    bool removed;      /* --rm has removed the original */
    bool is_judged;    /* it is known whether the original may be deleted */
    const char *kept;  /* why it must stay, or why --rm has not removed it; static, or NULL */
    bool may_be_lost;  /* the output exists, and is not known to be this task's: it may be an only copy */
    bool is_counted;   /* it has failed as many others: its sentence is for the log alone */
    struct stat input; /* of the original before it was read; of verify and of a series afterwards */
    char sha256[65];   /* of the original, where a manifest is written; else empty */
    double told;       /* the share of the task's work that tell_share has told of */
    void *more;        /* a verb's own results, freed with free() */
    char *line;        /* with --json: what the file's line says of a task of line_status, or NULL */
    enum tsr_status line_status;

    struct tsr_file_state made; /* is_compared: the .tsr that was there */
};

/* inputs/series_inputs.c: which files of a series are wanted. */
struct wanted {
    const char *exact, *glob; /* the one that an input names after ::, or --member; both NULL: all files */
    bool takes_lost;          /* files whose names are lost may be among them */
};
struct wanted wanted_of(const struct tsr_reader *series, const char *exact, const char *glob);
bool is_wanted(const struct wanted *wanted, const char *name); /* NULL: its name is lost */

/* inputs/inputs.c: the files that inputs and output name. engine opens those that may be a series; NULL: the verb reads
 * none. Errors: TSR_ERROR_NO_INPUT, TSR_ERROR_USAGE, TSR_ERROR_WRITE, TSR_ERROR_READ. */
enum tsr_status list_tasks(const struct options *options, struct tsr_engine *engine, struct task_list *list,
                           struct tsr_error *error);
/* inputs/filter.c: says which --include and --exclude have matched nothing, once all inputs are listed. */
void say_unmatched(const struct input_options *in);

void free_task(struct task *task);
void free_tasks(struct task_list *list);

/* Bytes of all inputs that can be read. */
uint64_t input_bytes(const struct task_list *list);

/* What a run took. */
struct run_times {
    double start_s, wall_s; /* of starting the engine; of the work, without that */
    struct tsr_engine_times gpu;
};

/* verbs/run.c: does the work of all tasks, several at once, and reports them one by one in their order, then all of
 * them. Returns the exit status. */
struct task_work {
    bool reads_tsr; /* the inputs are .tsr files, and may be series */
    /* NULL: list_tasks. */
    enum tsr_status (*list)(const struct options *options, struct tsr_engine *engine, struct task_list *list,
                            struct tsr_error *error);
    enum tsr_status (*work)(struct tsr_engine *engine, const struct options *options, const struct task *task,
                            struct outcome *outcome);
    /* Both are called in the order of the tasks, by one thread at a time. */
    void (*report)(const struct options *options, const struct task *task, const struct outcome *outcome);
    void (*summary)(const struct options *options, const struct task_list *list, const struct run_times *times,
                    const struct tally *tally);
    /* NULL, or what is found out of all tasks before the first one. */
    enum tsr_status (*begin)(const struct options *options, struct tsr_engine *engine, struct task_list *list,
                             struct tsr_error *error);
    /* NULL, or what of a report can be made by the thread that did the task, since reports wait for each other. */
    void (*prepare)(const struct options *options, const struct task *task, struct outcome *outcome);
};
int run_tasks(const struct options *options, const struct task_work *work);

/* A run that did not begin: says the sentence, and has its page and its JSON say that it has failed. list: what was
 * found, or empty. */
void end_unbegun(const struct options *options, const struct task_list *list, const struct tsr_error *error);

/* While a task is at work: that this share of it is done, for the progress. By any thread. */
void tell_share(const struct task *task, struct outcome *outcome, double share);

/* verbs/start.c: the engine that the options ask for, for an input of this many bytes (0: not known); signals remove
 * temporary files from now on. NULL: error says why. *seconds: what it took. */
struct tsr_engine *start_engine(const struct options *options, uint64_t bytes, double *seconds,
                                struct tsr_error *error);

/* verbs/start.c: makes room for as many open files as the process may have. */
void reserve_descriptors(void);

/* What a signal that ends the process says: "10 of 75 files are done; ...". */
void say_interrupted(int signal_number);

/* That a series is being written, which has no name until it is complete; NULL: not any more. */
void note_series(const char *path);

/* verbs/decompress.c: restores a task's input to where its output goes. */
enum tsr_status restore_one(struct tsr_engine *engine, const struct options *options, const struct task *task,
                            struct outcome *outcome);

/* inputs/names.c: that a picture is named as what it is. Errors: TSR_ERROR_USAGE. */
enum tsr_status check_picture_name(const struct task *task, struct tsr_error *error);
enum tsr_status check_not_original(const struct task *task, const char *path, struct tsr_error *error);

/* verbs/salvage.c: decompress --salvage. Returns the exit status. */
int salvage_files(const struct options *options);

/* verbs/decompress.c: decodes a task's input to its end, and checks it. */
enum tsr_status test_one(struct tsr_engine *engine, const struct options *options, const struct task *task,
                         struct outcome *outcome);

/* verbs/compress.c: the bytes of a task's input, and where its output goes. A descriptor comes from a pipe. */
struct tsr_data_source source_of(const struct task *task);
struct tsr_data_source tsr_of(const struct task *task); /* of a .tsr: with the key of the run */
/* inputs/keys.c: that key, which main opens and closes. */
enum tsr_status open_key(const struct options *options); /* says what is wrong */
void close_key(void);
struct tsr_key *key_to_write(const struct options *options); /* NULL: what is written is not encrypted */
struct tsr_data_source from_tsr(const char *path);           /* with the key */
const char *key_file(void);                                  /* that the key was read from; NULL: there is none */
bool is_key_file(const struct stat *status);                 /* also by another link */
struct tsr_data_source source_to_compress(const struct options *options, const struct task *task);
struct tsr_data_sink sink_of(const struct options *options, const struct task *task);

/* verbs/compress_series.c: compress --series. Returns the exit status. */
/* With loss: which files of the list refer to which. Errors: TSR_ERROR_LIMIT. */
enum tsr_status find_referrers(const struct options *options, struct tsr_engine *engine, struct task_list *list,
                               struct tsr_error *error);
int compress_to_series(const struct options *options);

/* verbs/dry_run.c: says what compress would do. Returns the exit status. */
int dry_run(const struct options *options);

/* verbs/update.c */

/* --update: whether the task's output is there, whole, and made of this very input. TSR_OK with *current. *replace: it
 * is a .tsr, of which the file has changed; never one that was not there when the inputs were listed. Errors:
 * TSR_ERROR_READ, TSR_ERROR_EXISTS (what is there is no .tsr of one file), TSR_ERROR_LIMIT. */
enum tsr_status check_current(struct tsr_engine *engine, const struct options *options, const struct task *task,
                              bool *current, bool *replace, struct outcome *outcome);

/* Whether a file that stands in a task's output has the size and the time of what the .tsr restores, or its size and
 * hash; what is not the same file has a time alone. report: what is known of it then; NULL: it is not wanted. */
bool is_restored(struct tsr_engine *engine, const struct task *task, enum update by, struct tsr_report *report);

/* verbs/exists.c: after TSR_ERROR_EXISTS, says whether the output that is there is this task's or may be an only copy.
 * The library says of it that it is not overwritten. */
#define NOT_OVERWRITTEN ", and overwrite is not set"
void explain_existing(struct tsr_engine *engine, const struct options *options, const struct task *task,
                      struct outcome *outcome);

struct file_hashes;

/* verbs/compare_original.c: restores a .tsr, or a member of a series, and compares all bytes with an original's. Where
 * they differ, and the .tsr does not promise them, the samples are compared: report->promise, ->max_error
 * and ->psnr_db say what was found. hashes, where it is not NULL, gets those of both sides. Errors: TSR_ERROR_VERIFY
 * (it is another file), TSR_ERROR_NOT_TSR, those of tsr_restore. */
enum tsr_status compare_with_original(struct tsr_engine *engine, const struct tsr_data_source *tsr,
                                      struct tsr_reader *series, uint32_t member, const char *original,
                                      struct tsr_report *report, struct file_hashes *hashes, struct tsr_error *error);

/* masks.c: reads the images of --roi, and those of --first, which have one size each; then how files are coded. Errors:
 * TSR_ERROR_USAGE, those of reading frames. */
enum tsr_status read_masks(struct tsr_engine *engine, const struct options *options, struct tsr_error *error);
struct tsr_compress_options coding_with_region(const struct options *options);

bool is_same_time(struct timespec a, struct timespec b);

/* What the library is told of a file that was looked at. */
static inline struct tsr_file_state state_of(const struct stat *s)
{
    return (struct tsr_file_state){(uint64_t)s->st_dev,         (uint64_t)s->st_ino, (uint64_t)s->st_size,
                                   s->st_mtim.tv_sec,           s->st_ctim.tv_sec,   (uint32_t)s->st_mtim.tv_nsec,
                                   (uint32_t)s->st_ctim.tv_nsec};
}

/* inputs/pipes.c: where bytes wait that have no name: TMPDIR, or /tmp; and a file there without a name, which goes when
 * it is closed. -1: errno says why. */
const char *temporary_folder(void);
int open_temporary(void);

/* verbs/remove.c: brings a file that another run has made to the disk, and its folder. False: errno says why not. */
bool bring_to_disk(int file, const char *path);

/* verbs/remove.c: whether the original of a task that is done, and whose output is on the disk, may be deleted; --rm
 * does it. Says so in the outcome. */
void judge_original(const struct options *options, const struct task_list *list, const struct task *task,
                    struct outcome *outcome);

/* inputs/lists.c: bytes of memory that the process may take. */
uint64_t memory_limit(const struct machine_options *machine);

/* inputs/lists.c: room for one more entry of this size after count of them. entries: the address of the pointer to the
 * list, which may move. False: no memory, and the list stays. */
bool grow_list(void *entries, size_t count, size_t *capacity, size_t size);

/* errors.c */

/* Fills error with a sentence; returns status. */
#if defined(__GNUC__)
__attribute__((format(printf, 3, 4)))
#endif
enum tsr_status
refuse(struct tsr_error *error, enum tsr_status status, const char *format, ...);

/* Where the library's sentence names an argument, it is to name the flag. */
void name_flags(struct tsr_error *error);

/* Where a sentence has a name as a whole word; NULL: nowhere. */
const char *find_name(const char *text, const char *name);

/* Puts "FILE: " or "MEMBER in FILE: " before a sentence that does not name the file yet. */
void name_file(struct tsr_error *error, const char *file, const char *member);

/* Of a task whose status was known beforehand: as refuse, with its reason and its input's name. */
enum tsr_status refuse_task(struct tsr_error *error, const struct task *task);

/* Whether it is that the module for DICOM cannot be loaded, which many files share. */
bool lacks_module(const struct tsr_error *error);

void say_error(const struct tsr_error *error);
void say_failure(const struct outcome *outcome); /* the same, or to the log alone */

/* verbs/report.c */
/* prepare_file: makes the text of what the JSON line of a task says, but for what is judged later. */
void prepare_file(const struct options *options, const struct task *task, struct outcome *outcome);
void report_file(const struct options *options, const struct task *task, const struct outcome *outcome);
void report_plan(const struct options *options, const struct task_list *list);
void report_skipped(const struct options *options, const struct task_list *list);
bool has_qp(const struct tsr_coding *coding);                     /* a lossy coding of the transform path */
bool is_own_range(const struct tsr_image *image, uint32_t range); /* not all that the bits could hold */
/* Which files refer to what has become lossy: how many, or some of them by name. To be freed; NULL: none, or no memory.
 */
char *say_referrers(const struct task *task, const struct outcome *outcome, bool names);
double least_window(void); /* dB; below it a loss is seen, and the summary and the page say so */
const struct tsr_window_loss *worst_window(const struct tsr_report *report); /* of those that are judged; or NULL */
double least_ssim(const struct tsr_report *report);                          /* of those; without one, over all */
bool is_poor(const struct tsr_report *report);       /* a window, told or not, has less than least_window() */
bool has_ssim(double ssim);                          /* it was measured */
bool is_over_ratio(const struct tsr_report *report); /* of its pixels, that is published for its modality */

/* The two words that users read: a file is coded (its samples, its streams or the files in it are modelled) or stored
 * (general compression alone). */
static inline bool is_stored(const struct tsr_report *report)
{
    return report->way == TSR_WAY_STORED;
}

/* summary/summary.c */
void report_summary(const struct options *options, const struct task_list *list, const struct run_times *times,
                    const struct tally *tally);
void report_unbegun(const struct options *options, const struct task_list *list, const struct tally *tally,
                    const char *sentence);
void add_to_summary(const struct options *options, const struct task *task, const struct outcome *outcome);
size_t unproven_files(void); /* of those that were added */
size_t damaged_files(void);  /* of those: originals that look so */
size_t kept_files(void);     /* of those: other originals that --rm has left */

/* Where talk that is a result goes: stderr where stdout takes a file. */
void talk_on_stderr(void);
#if defined(__GNUC__)
__attribute__((format(printf, 1, 2)))
#endif
void talk(const char *format, ...);

double wall_seconds(void); /* talk.c, too */

enum { HASH_TEXT = 33 };
void write_hash(const uint8_t hash[16], char text[HASH_TEXT]); /* an XXH3-128 in hexadecimal */
const char *plural(size_t count);                              /* "s", or nothing for one */

/* log.c: --log. Each returns what becomes of the exit status: another one where the log lacks something. end_log leaves
 * the streams as they are, for a thread that ends the process amid others. */
enum tsr_status begin_log(const struct options *options);
int end_log(int status);
int close_log(int status);
bool begins_as_log(const char *path);
#if defined(__GNUC__)
__attribute__((format(printf, 1, 2)))
#endif
void log_alone(const char *format, ...); /* a line that is in the log alone, if there is one */

/* verbs/, compare/ and mount/: one file per verb. Each returns the exit status. */
int compress_verb(const struct options *options);
int decompress_verb(const struct options *options);
int cat_verb(const struct options *options);
int export_verb(const struct options *options);
int test_verb(const struct options *options);
int verify_verb(const struct options *options);
int info_verb(const struct options *options);
int mount_verb(const struct options *options);
int compare_verb(const struct options *options);
int summary_verb(const struct options *options);

#endif
