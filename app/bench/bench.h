/* tessera-bench: what its families share. A family makes workloads; on each, every row (kernels/papers/phases.h) of it
 * runs in its launch policies, is timed as a whole and phase by phase, and is held to the reference. That is what the
 * CPU row writes: of a large workload in parts, on all threads, put together by the definition, and then decoded, part
 * by part again. CPU rows themselves are serial, and timed on the beginning of a large workload. Time on a GPU is dear:
 * outputs are compared where they lie. */
#ifndef TSR_APP_BENCH_BENCH_H
#define TSR_APP_BENCH_BENCH_H

#include <stdio.h>

#include "kernels/papers/phases.h"
#include "kernels/pool/thread_pool.h"
#include "app/cli/option_table.h"
#include "app/report/plot.h"

/* The command line as parsed. Lists and numbers that are not given are 0 or NULL, and stand for the defaults. */
struct bench_options {
    const char *family;
    const char *const *files;
    int file_count;
    struct numbers sizes, entropies, runs; /* in MiB, bits a byte, symbols a run */
    int32_t qp[QP_LIST_LIMIT];             /* in eighths */
    int qp_count;
    int effort;             /* engine: the only one to encode at */
    const char *formats;    /* names of picture sizes */
    const char *plot, *log; /* paths of outputs */
    int repeat, threads;
    bool takes_files, policies, quick, json;
};

/* bench_options.c: parses. Where *finished is set, there is nothing more to do: --help, --version or an error. */
enum tsr_status bench_parse_options(int argc, char **argv, struct bench_options *options, bool *finished);

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
/* Whether two pieces of a side's memory, 16-byte aligned, hold the same. */
bool bench_same(enum bench_side side, const void *a, const void *b, size_t bytes);
/* What all jobs on the device are queued on. */
void *bench_stream(void);
const char *bench_error_text(int error);
bool bench_is_out_of_memory(int error);

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
    double in_bytes;    /* of the uncompressed side */
    double moved_bytes; /* read and written, at least */
};

/* What came of a row in a policy. */
struct bench_result {
    enum bench_kind kind;
    const struct tsr_kernel_row *row;
    int policy, repeats;
    double us, least_us; /* of the whole: the median, and the least */
    double phase_us[TSR_PHASES_LIMIT];
    double in_bytes, moved_bytes;
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
    const struct bench_options *options;
    struct bench_device device;
    struct tsr_pool *pool;
    const char *family;
    FILE *json; /* where measurements go as JSON lines, or NULL */
    int measured, wrong, failed;
    double device_ran_us; /* when it last did */
    struct plot plot;
};

/* Runs a row on its task in its best policy, or in all of them, and notes what came of it. A CPU row runs once, and
 * thrice where that takes no time. */
void bench_measure(struct bench *bench, struct bench_workload *workload, const struct bench_task *task);
void bench_measure_policy(struct bench *bench, struct bench_workload *workload, const struct bench_task *task,
                          int policy);
/* bench_limits.c: fills in a workload's limits, measured once for each size; nothing without a device. look_up: with
 * the ceiling of byte coders. */
void bench_find_limits(struct bench *bench, struct bench_workload *workload, bool look_up);

/* ---- bench_measure.c: a family's coders ------------------------------------------------------------------------ */

enum { BENCH_ARRAYS = 3, BENCH_CPU_BYTES = 16 << 20 /* of the uncompressed side, for CPU rows, at most */ };

/* An array that jobs read or write. */
struct bench_array {
    const void *content; /* the host's: input, or the reference of what encoders write */
    size_t bytes;        /* that count */
    size_t room;         /* of which rows may read and spoil what is behind them */
    bool optional;       /* a row may leave it alone */
};

/* The arrays of a coder on one side. */
struct bench_memory {
    enum bench_side side;
    const void *input[BENCH_ARRAYS], *right[BENCH_ARRAYS]; /* right: the reference, which decoders are given */
    void *coded[BENCH_ARRAYS], *decoded;
    uint32_t *error;
};

/* A job of the family, and where in it its work space goes. */
struct bench_job {
    const void *job;
    void **workspace;
};

/* A workload as a family's rows take it. */
struct bench_coder {
    const struct tsr_kernel_row *const *encoder, *const *decoder; /* the CPU's first */
    int encoders, decoders;
    struct bench_array input[BENCH_ARRAYS]; /* the first is what decoders make again */
    struct bench_array coded[BENCH_ARRAYS];
    struct bench_job (*encode_job)(const struct bench_coder *coder, const struct bench_memory *memory);
    struct bench_job (*decode_job)(const struct bench_coder *coder, const struct bench_memory *memory);
    const void *context; /* the family's */
    double in_bytes, out_bytes;
};

/* Runs a row once on the host's memory, with work space of its own; from any thread. */
int bench_run_alone(const struct tsr_kernel_row *row, struct bench_job job);
/* Whether the GPU's rows have memory for it; says so if not, and if there is no GPU, they have. */
bool bench_has_room(const struct bench *bench, const struct bench_workload *workload, const struct bench_coder *coder);
/* All rows: the CPU's on the beginning, the GPU's on the whole. proven: whether a decoder made the input of the
 * reference; else the CPU's encoder is wrong, too. */
void bench_run_coders(struct bench *bench, struct bench_workload *workload, const struct bench_coder *beginning,
                      const struct bench_coder *whole, bool proven);

/* The bits from first_bit on, MSB first, at the start of to; what is left of the last byte becomes 0. */
void bench_take_bits(uint8_t *to, const uint8_t *from, uint64_t first_bit, uint64_t bits);

/* A part of a bit string. */
struct bench_part {
    uint64_t at, bits;
    uint8_t *string; /* its own, from its first bit on */
};
/* A string whose parts are coded apart. Parts but the last have 8 bits or more. */
struct bench_parts {
    unsigned count;
    struct bench_part *part;
    const void *context;
    void (*encode)(const void *context, unsigned index, struct bench_part *part);        /* string (bench_take), bits */
    bool (*decodes)(const void *context, unsigned index, const struct bench_part *part); /* to the input */
};
/* The whole string, as bench_take gives it, with 16 bytes more. *proven: all parts of it decode. */
uint8_t *bench_join_parts(struct bench *bench, const struct bench_parts *parts, uint64_t *bits, bool *proven);

/* ---- bench_report.c -------------------------------------------------------------------------------------------- */

void bench_report_run(const struct bench *bench);
/* Prints a workload's table or JSON lines, adds its points to the plot, and frees its fields. */
void bench_report(struct bench *bench, struct bench_workload *workload);
void bench_report_end(const struct bench *bench);
static inline const char *plural(size_t count)
{
    return count == 1 ? "" : "s";
}
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
    bool moves;     /* frames follow each other as in a film */
    uint8_t *luma;  /* freed with bench_free_pictures() */
    uint16_t *deep; /* the same in deep_bits bits, as stored; NULL: there is no more */
    int deep_bits;
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
/* The samples of all files that the command line names behind each other, since one is too little for a GPU: as stored,
 * bytes for bytes; or as tokens of the residuals that the median edge predictor leaves (FORMAT.md 7.1, 7.2, 7.4), a
 * byte a sample. The host's memory, with room for 16 bytes more. */
uint8_t *bench_read_samples(const struct bench_options *options, bool as_tokens, size_t *count);
/* The pictures of the files that the command line names: Y4M (8 bits), or what Tessera reads as an image; deeper
 * samples keep their highest 8 bits. Stills of one size are one, since each alone is too small for a GPU. *count
 * receives how many; freed with free(), and each one's arrays with the next. */
struct bench_pictures *bench_read_files(const struct bench_options *options, int *count);
void bench_free_pictures(struct bench_pictures *pictures);

/* Frames of one layout as they are stored, behind each other, and room for what a decoder makes of them. */
struct bench_frames {
    char name[160];
    struct tsr_image image; /* of one frame */
    uint32_t frames;
    bool is_lossy;
    uint8_t *rasters, *decoded; /* freed with free() */
};
/* Those of the files that the command line names, the first few of each file, 64 of a layout; or drawn ones, of 12 bits
 * in 16 and of 8. *count receives how many sets; freed with free(). */
struct bench_frames *bench_find_frames(struct bench *bench, int *count);

/* ---- Families -------------------------------------------------------------------------------------------------- */

void bench_vle(struct bench *bench);
void bench_rle(struct bench *bench);
void bench_cavlc(struct bench *bench);
void bench_engine(struct bench *bench);
void bench_decode(struct bench *bench, struct tsr_engine *cpu); /* the engine's other half */
void bench_limits_alone(struct bench *bench);

#endif
