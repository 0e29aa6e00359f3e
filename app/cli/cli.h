/* The command line: what its verbs share. Results go to stdout, talk to stderr. */
#ifndef TSR_APP_CLI_CLI_H
#define TSR_APP_CLI_CLI_H

#include "app/tessera.h"
#include "option_table.h"

enum verb { VERB_COMPRESS, VERB_DECOMPRESS, VERB_TEST, VERB_INFO, VERB_COMPARE, VERB_COUNT };

/* The command line as parsed. */
struct options {
    enum verb verb;
    const char *const *inputs;
    int input_count;
    const char *output; /* -o, or NULL */
    const char *series; /* compress: the one output of all inputs, or NULL */
    const char *member; /* of series: the file that is wanted, NULL: all */
    bool recursive, force, json;
    int verbosity; /* -1 quiet, 0, 1 verbose */
    int threads;   /* 0: as many as there are */
    enum tsr_engine_choice engine;
    struct numbers gpus; /* none: all that can be used */
    uint64_t gpu_memory; /* 0: the default */
    uint64_t memory;     /* of the host; 0: the default */
    struct tsr_compress_options compress;
    int32_t qp[QP_LIST_LIMIT]; /* in eighths; compress has one at most */
    int qp_count;
};

/* One file to be worked on. */
struct task {
    char *input;
    char *output;      /* NULL: none */
    bool names_output; /* the user has named it: links in it are followed */
    size_t root;       /* else: the first bytes of the output that name a folder; links are followed in these alone */
    enum tsr_status status; /* known beforehand: the input cannot be taken */
    char *reason;
    char *member;              /* what it is called in a series, NULL: it is in none */
    struct tsr_reader *series; /* to be restored from, and the file's number there */
    uint32_t number;
};

struct task_list {
    struct task *tasks;
    size_t count, capacity;
    size_t skipped;             /* files that the verb does not look at */
    size_t unfinished;          /* outputs that another run is making, or has left behind */
    struct tsr_reader **series; /* that inputs are */
    size_t series_count;
    uint64_t shared_bytes; /* of the outputs, that no task counts: a series' header and index */
};

/* What came of a task. */
struct outcome {
    enum tsr_status status;
    struct tsr_error error;
    struct tsr_report report;
    void *more; /* a verb's own results, freed with free() */
};

/* options.c: parses; on TSR_OK with *finished set there is nothing more to do (--help). */
enum tsr_status parse_options(int argc, char **argv, struct options *options, bool *finished);

/* inputs.c: the files that inputs and output name. engine opens those that may be a series; NULL: the verb reads none.
 * Errors: TSR_ERROR_NO_INPUT, TSR_ERROR_USAGE, TSR_ERROR_WRITE. */
enum tsr_status list_tasks(const struct options *options, struct tsr_engine *engine, struct task_list *list,
                           struct tsr_error *error);
void free_tasks(struct task_list *list);

/* What a run took. */
struct run_times {
    double start_s, wall_s; /* of starting the engine; of the work, without that */
    struct tsr_engine_times gpu;
};

/* run.c: does the work of all tasks, several at once, and reports them one by one in their order, then all of them.
 * Returns the exit status. */
struct task_work {
    enum tsr_task_kind kind;
    /* TSR_TASK_CALL: what a task does. */
    enum tsr_status (*work)(struct tsr_engine *engine, const struct options *options, const struct task *task,
                            struct outcome *outcome);
    void (*report)(const struct options *options, const struct task *task, const struct outcome *outcome);
    void (*summary)(const struct options *options, const struct task_list *list, const struct outcome *outcomes,
                    const struct run_times *times);
};
int run_tasks(const struct options *options, const struct task_work *work);

/* The engine that the options ask for, for an input of this many bytes (0: not known); signals remove temporary files
 * from now on. NULL: error says why. *seconds: what it took. */
struct tsr_engine *start_engine(const struct options *options, uint64_t bytes, double *seconds,
                                struct tsr_error *error);

/* Bytes of all inputs that can be read. */
uint64_t input_bytes(const struct task_list *list);
double wall_seconds(void);

/* compress_series.c: compress --series. Returns the exit status. */
int compress_to_series(const struct options *options);

/* errors.c */

/* Fills error with a sentence; returns status. */
#if defined(__GNUC__)
__attribute__((format(printf, 3, 4)))
#endif
enum tsr_status
refuse(struct tsr_error *error, enum tsr_status status, const char *format, ...);

/* Where the library's sentence names an argument, it is to name the flag. */
void name_flags(struct tsr_error *error);

/* report.c */
struct cJSON;
void report_file(const struct options *options, const struct task *task, const struct outcome *outcome);
void report_summary(const struct options *options, const struct task_list *list, const struct outcome *outcomes,
                    const struct run_times *times);
void say_error(const struct tsr_error *error);

const char *shown(const char *text); /* a name or a sentence as a terminal may have it; lasts for three more calls */
bool has_qp(const struct tsr_coding *coding); /* a lossy coding of the transform path */
const char *plural(size_t count);             /* "s", or nothing for one */
void print_json_line(struct cJSON *object);   /* in a line; frees it */

/* One file per verb. Each returns the exit status. */
int compress_verb(const struct options *options);
int decompress_verb(const struct options *options);
int test_verb(const struct options *options);
int info_verb(const struct options *options);
int compare_verb(const struct options *options);

#endif
