/* tessera bench: what its families share. A family makes workloads; on each, every row (kernels/phases.h) of it runs in
 * its launch policies, is timed as a whole and phase by phase, and is held to the reference: the CPU row's output,
 * which the decoders turn into the input again. */
#ifndef TSR_APP_CLI_BENCH_H
#define TSR_APP_CLI_BENCH_H

#include <stdio.h>

#include "../../kernels/phases.h"
#include "../../kernels/thread_pool.h"
#include "cli.h"
#include "plot.h"

/* ---- bench_device.c: memory, copies and time on either side --------------------------------------------------- */

enum bench_side { ON_HOST, ON_DEVICE };

struct bench_device {
    bool is_there;
    char name[256];    /* the GPU's, or why there is none */
    char driver[64];   /* as the system tells it */
    char cuda[64];     /* the runtime's version, and that of the driver's interface */
    size_t free_bytes; /* of its memory */
};
struct bench_device bench_find_device(void);

/* Memory, 256-byte aligned; never NULL: a benchmark without memory says so and exits. */
void *bench_take(enum bench_side side, size_t bytes);
void bench_give(enum bench_side side, void *memory);
void bench_fill(enum bench_side side, void *memory, int byte, size_t bytes);
void bench_copy(enum bench_side to_side, void *to, enum bench_side from_side, const void *from, size_t bytes);
/* Whether memory of a side holds these bytes of the host's. */
bool bench_equals(enum bench_side side, const void *memory, const void *bytes, size_t count);
/* What all jobs on the device are queued on. */
void *bench_stream(void);
const char *bench_error_text(int error);

/* Runs all phases once and waits; returns the first error. */
int bench_run(const struct tsr_kernel_row *row, const void *job, int policy);
double bench_now_us(void);
/* Microseconds of one run; apart: those of each phase to us[], else of the whole to us[0]. On the device between
 * events, with everything queued before the first of them comes to pass, so that launching costs nothing. */
int bench_time(const struct tsr_kernel_row *row, const void *job, int policy, bool apart, double *us);

/* ---- bench_measure.c: rows at work ---------------------------------------------------------------------------- */

enum bench_kind { BENCH_LIMIT, BENCH_ENCODE, BENCH_DECODE, BENCH_KINDS };

/* A row with a job of its family, which lies on the row's side with all its memory but the work space. */
struct bench_task {
    enum bench_kind kind;
    const struct tsr_kernel_row *row;
    const void *job;
    void **workspace;                /* the job's member */
    void (*spoil)(void *context);    /* overwrites what the row is to write */
    bool (*is_right)(void *context); /* compares it with the reference; NULL: nothing is written */
    void *context;
    double moved_bytes; /* read and written, at least */
};

/* What came of a row in a policy. */
struct bench_result {
    enum bench_kind kind;
    const struct tsr_kernel_row *row;
    int policy, repeats;
    double us, least_us; /* of the whole: the median, and the least */
    double phase_us[TSR_PHASES_LIMIT];
    double moved_bytes;
    int error;  /* not 0: the row could not run */
    bool wrong; /* it wrote something else */
};

enum { BENCH_RESULTS_LIMIT = 256 };

/* A workload as the report sees it. */
struct bench_workload {
    char name[160];             /* "256 MiB, entropy 4.00" */
    double in_bytes, out_bytes; /* of the encoder */
    char notes[512];            /* lines of statistics for the table */
    struct cJSON *fields;       /* the same for JSON, copied into each measurement; NULL: none */
    const char *panel;          /* of the plot, "over entropy, 256 MiB"; NULL: it is in none */
    const char *x_label;        /* NULL: bars, under the name of group */
    const char *group;
    bool log_x;
    double x;
    double copy_us, read_us, fill_us; /* limits at in_bytes; 0: not measured */
    double look_up_us;                /* VLE: the ceiling of its encoders */
    int result_count;
    struct bench_result result[BENCH_RESULTS_LIMIT];
};

struct bench {
    const struct options *options;
    struct bench_device device;
    struct tsr_pool *pool;
    const char *family;
    FILE *json; /* where measurements go as JSON lines, or NULL */
    int measured, wrong, failed;
    struct plot plot;
};

/* Runs a row on its task in its best policy, or in all of them, and notes what came of it. A CPU row runs once, and
 * thrice where that takes no time. */
void bench_measure(struct bench *bench, struct bench_workload *workload, const struct bench_task *task);
void bench_measure_policy(struct bench *bench, struct bench_workload *workload, const struct bench_task *task,
                          int policy);
/* The reference is right only if a CPU decoder made the input of it; else its row is wrong, too. */
void bench_judge_reference(struct bench *bench, struct bench_workload *workload);
/* bench_limits.c: fills in a workload's limits, measured once for each size; nothing without a device. */
void bench_find_limits(struct bench *bench, struct bench_workload *workload);

/* ---- bench_report.c -------------------------------------------------------------------------------------------- */

void bench_report_run(const struct bench *bench);
/* Prints a workload's table or JSON lines, adds its points to the plot, and frees its fields. */
void bench_report(struct bench *bench, struct bench_workload *workload);
void bench_report_end(const struct bench *bench);
/* A note for people, printed among the tables. */
#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
void bench_say(const struct bench *bench, const char *format, ...);
/* The sentence on stderr, and the exit status. */
#if defined(__GNUC__)
__attribute__((format(printf, 2, 3), noreturn))
#endif
void bench_stop(enum tsr_status status, const char *format, ...);

/* ---- bench_pictures.c: inputs ---------------------------------------------------------------------------------- */

enum { BENCH_FRAMES_LIMIT = 50 };

/* Frames of 8-bit luma behind each other. */
struct bench_pictures {
    char name[160];
    uint32_t columns, rows, frames;
    bool moves;    /* frames follow each other as in a film */
    uint8_t *luma; /* freed with free() */
};

/* Numbers that are random enough: splitmix64 of a place (Steele, Lea and Flood 2014). */
static inline uint64_t bench_random(uint64_t seed, uint64_t place)
{
    uint64_t z = seed + (place + 1) * 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* Synthetic ones: shapes, edges, texture and noise that move by a few samples a frame. */
struct bench_pictures bench_draw(struct bench *bench, const char *name, uint32_t columns, uint32_t rows,
                                 uint32_t frames);
/* Those of a file: Y4M (8 bits), or what Tessera reads as an image; deeper samples keep their highest 8 bits. */
struct bench_pictures bench_read_pictures(const char *path);
/* The samples of all files that the command line names behind each other, since one is too little for a GPU: as stored,
 * bytes for bytes; or as tokens of the residuals that the median edge predictor leaves (FORMAT.md 7.1, 7.2, 7.4), a
 * byte a sample. The host's memory, with room for 16 bytes more. */
uint8_t *bench_read_samples(const struct options *options, bool as_tokens, size_t *count);

/* ---- Families -------------------------------------------------------------------------------------------------- */

void bench_vle(struct bench *bench);
void bench_rle(struct bench *bench);
void bench_cavlc(struct bench *bench);
void bench_engine(struct bench *bench);
void bench_limits_alone(struct bench *bench);

#endif
