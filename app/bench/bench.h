/* tessera-bench: what its families share. A family makes workloads. Every row of the family (kernels/papers/phases.h)
 * runs on each workload in its launch policies, is timed as a whole and by phase, and is compared with the reference.
 * The reference is what the CPU row writes: a large workload is coded in parts on all threads, the parts are joined,
 * and each part is decoded again. CPU rows themselves are serial, and are timed on the beginning of a large workload.
 * Time on a GPU is expensive, so outputs are compared where they lie. */
#ifndef TSR_APP_BENCH_BENCH_H
#define TSR_APP_BENCH_BENCH_H

#include <stdio.h>

#include "kernels/papers/phases.h"
#include "kernels/pool/thread_pool.h"
#include "app/cli/options/option_table.h"
#include "app/report/plot/plot.h"

/* The parsed command line. Lists and numbers that are not given are 0 or NULL, which stands for the defaults. */
struct bench_options {
    const char *family;
    const char *const *files;
    int file_count;
    struct numbers sizes, entropies, runs; /* in MiB, bits a byte, symbols a run */
    int32_t qp[QP_LIST_LIMIT];             /* in eighths */
    int qp_count;
    int effort;                    /* engine: the only effort to encode at; 0: all */
    const char *formats;           /* names of picture sizes */
    const char *plot, *html, *log; /* paths of outputs */
    int repeat, threads;
    bool takes_files, policies, quick, json;
};

/* bench_options.c: parses the command line. *finished: there is nothing more to do after --help, --version or an error.
 */
enum tsr_status bench_parse_options(int argc, char **argv, struct bench_options *options, bool *finished);

/* ---- bench_device.c: memory, copies and time on either side --------------------------------------------------- */

enum bench_side { ON_HOST, ON_DEVICE };

struct bench_device {
    bool is_there;
    char name[256];    /* the GPU's, or the reason why there is no GPU */
    char driver[64];   /* its version, as the system tells it */
    char cuda[64];     /* versions of the runtime and of the driver's interface */
    size_t free_bytes; /* of the GPU's memory */
};
struct bench_device bench_find_device(void);

/* Takes memory, aligned to 256 bytes. Never returns NULL: a benchmark without memory says so and exits. */
void *bench_take(enum bench_side side, size_t bytes);
void bench_give(enum bench_side side, void *memory);
void bench_fill(enum bench_side side, void *memory, int byte, size_t bytes);
void bench_copy(enum bench_side to_side, void *to, enum bench_side from_side, const void *from, size_t bytes);
/* Whether two pieces of memory on one side, aligned to 16 bytes, are equal. */
bool bench_same(enum bench_side side, const void *a, const void *b, size_t bytes);
/* The stream of all jobs on the device. */
void *bench_stream(void);
const char *bench_error_text(int error);
bool bench_is_out_of_memory(int error);

/* Runs all phases once and waits for them. Returns the first error. */
int bench_run(const struct tsr_kernel_row *row, const void *job, int policy);
double bench_now_us(void);
/* Times one run in microseconds. apart: us[] gets the time of each phase; else us[0] gets the time of the whole. On the
 * device, the time is that between events, and all work is queued before the first event happens, so launches cost
 * nothing. */
int bench_time(const struct tsr_kernel_row *row, const void *job, int policy, bool apart, double *us);

/* ---- bench_measure.c: rows at work ---------------------------------------------------------------------------- */

enum bench_kind { BENCH_LIMIT, BENCH_ENCODE, BENCH_DECODE, BENCH_KINDS };

/* A row with a job of its family. The job and all its memory, except for the work space, lie on the row's side. */
struct bench_task {
    enum bench_kind kind;
    const struct tsr_kernel_row *row;
    const void *job;
    void **workspace;                /* the job's member for the work space */
    void (*spoil)(void *context);    /* overwrites the output before a run */
    bool (*is_right)(void *context); /* compares the output with the reference; NULL: there is no output */
    void *context;
    double in_bytes;    /* of the uncompressed side */
    double moved_bytes; /* bytes that are read and written, at least */
};

/* The result of a row in a policy. */
struct bench_result {
    enum bench_kind kind;
    const struct tsr_kernel_row *row;
    int policy, repeats;
    double us, least_us; /* of the whole: median and least */
    double phase_us[TSR_PHASES_LIMIT];
    double in_bytes, moved_bytes;
    int error;  /* not 0: the row could not run */
    bool wrong; /* the output differs from the reference */
};

enum { BENCH_RESULTS_LIMIT = 256 };

/* A workload, for the report. */
struct bench_workload {
    char name[160];             /* "256 MiB, entropy 4.00" */
    double in_bytes, out_bytes; /* of the encoder */
    char notes[1024];           /* lines of statistics for the table */
    struct cJSON *fields;       /* the same for JSON, copied into each measurement; NULL: none */
    const char *panel;          /* of the plot, "over entropy, 256 MiB"; NULL: not in the plot */
    const char *x_label;        /* NULL: bars, with group as their label */
    const char *group;
    bool log_x;
    double x;
    double copy_us, read_us, fill_us; /* limits at in_bytes; 0: not measured */
    double look_up_us;                /* VLE: the ceiling of the encoders */
    int result_count;
    struct bench_result result[BENCH_RESULTS_LIMIT];
};

struct bench {
    const struct bench_options *options;
    struct bench_device device;
    struct tsr_pool *pool;
    const char *family;
    FILE *json; /* takes measurements as JSON lines, or NULL */
    int measured, wrong, failed;
    double device_ran_us; /* the time when it last ran */
    struct plot plot;
};

/* Runs a row on its task, in its best policy or in all policies, and stores the results. A CPU row runs once, or three
 * times if it is fast. */
void bench_measure(struct bench *bench, struct bench_workload *workload, const struct bench_task *task);
void bench_measure_policy(struct bench *bench, struct bench_workload *workload, const struct bench_task *task,
                          int policy);
/* bench_limits.c: fills in the limits of a workload. They are measured once for each size, and only with a device.
 * look_up: also the ceiling of byte coders. */
void bench_find_limits(struct bench *bench, struct bench_workload *workload, bool look_up);

/* ---- bench_measure.c: a family's coders ------------------------------------------------------------------------ */

enum { BENCH_ARRAYS = 4, BENCH_CPU_BYTES = 16 << 20 /* most bytes of the uncompressed side, for CPU rows */ };

/* An array that jobs read or write. */
struct bench_array {
    const void *content; /* on the host: input, or the reference of an encoder's output */
    size_t bytes;        /* bytes of the content */
    size_t room;         /* bytes of the memory: rows may read and overwrite those after the content */
    bool optional;       /* a row need not write the array */
};

/* The arrays of a coder on one side. */
struct bench_memory {
    enum bench_side side;
    const void *input[BENCH_ARRAYS], *right[BENCH_ARRAYS]; /* right: the reference, which decoders read */
    void *coded[BENCH_ARRAYS], *decoded;
    uint32_t *error;
};

/* A job of the family, and its member for the work space. */
struct bench_job {
    const void *job;
    void **workspace;
};

/* A workload as the rows of a family take it. */
struct bench_coder {
    const struct tsr_kernel_row *const *encoder, *const *decoder; /* the CPU's row is the first */
    int encoders, decoders;
    struct bench_array input[BENCH_ARRAYS]; /* decoders restore the first array */
    struct bench_array coded[BENCH_ARRAYS];
    struct bench_job (*encode_job)(const struct bench_coder *coder, const struct bench_memory *memory);
    struct bench_job (*decode_job)(const struct bench_coder *coder, const struct bench_memory *memory);
    const void *context; /* of the family */
    double in_bytes, out_bytes;
};

/* Runs a row once on host memory, with a work space of its own. Any thread may call this. */
int bench_run_alone(const struct tsr_kernel_row *row, struct bench_job job);
/* Whether the GPU has memory for all rows; if not, says so. True without a GPU. */
bool bench_has_room(const struct bench *bench, const struct bench_workload *workload, const struct bench_coder *coder);
/* Runs all rows: the CPU's on the beginning, the GPU's on the whole. proven: the reference decodes to the input; if it
 * does not, the CPU's encoder is wrong, too. */
void bench_run_coders(struct bench *bench, struct bench_workload *workload, const struct bench_coder *beginning,
                      const struct bench_coder *whole, bool proven);

/* Copies the bits from first_bit on, MSB first, to the start of to. The rest of the last byte becomes 0. */
void bench_take_bits(uint8_t *to, const uint8_t *from, uint64_t first_bit, uint64_t bits);

/* A part of a bit string. */
struct bench_part {
    uint64_t at, bits;
    uint8_t *string; /* a string of its own, from its first bit on */
};
/* A string whose parts are coded separately. All parts but the last have 8 bits or more. */
struct bench_parts {
    unsigned count;
    struct bench_part *part;
    const void *context;
    void (*encode)(const void *context, unsigned index, struct bench_part *part);        /* sets string and bits */
    bool (*decodes)(const void *context, unsigned index, const struct bench_part *part); /* to the input */
};
/* Joins the parts to the whole string, in memory of bench_take with 16 bytes more. *proven: all parts of the string
 * decode. */
uint8_t *bench_join_parts(struct bench *bench, const struct bench_parts *parts, uint64_t *bits, bool *proven);

/* ---- bench_report.c -------------------------------------------------------------------------------------------- */

void bench_report_run(const struct bench *bench);
/* Prints a workload as a table or as JSON lines, adds its points to the plot, and frees its fields. */
void bench_report(struct bench *bench, struct bench_workload *workload);
void bench_report_end(const struct bench *bench);
static inline const char *plural(size_t count)
{
    return count == 1 ? "" : "s";
}
/* Prints a note among the tables. */
#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
void bench_say(const struct bench *bench, const char *format, ...);
/* Prints the sentence on stderr and exits with the status. */
#if defined(__GNUC__)
__attribute__((format(printf, 2, 3), noreturn))
#endif
void bench_stop(enum tsr_status status, const char *format, ...);

/* ---- bench_pictures.c: inputs ---------------------------------------------------------------------------------- */

enum { BENCH_FRAMES_LIMIT = 50 };

/* Frames of 8-bit luma, one after the other. */
struct bench_pictures {
    char name[160];
    uint32_t columns, rows, frames;
    bool moves;     /* the frames are those of a film */
    uint8_t *luma;  /* freed with bench_free_pictures() */
    uint16_t *deep; /* the same in deep_bits bits, as stored; NULL: there are only 8 bits */
    int deep_bits;
};

/* A random number of a seed and a place: splitmix64 (Steele, Lea and Flood 2014). */
static inline uint64_t bench_random(uint64_t seed, uint64_t place)
{
    uint64_t z = seed + (place + 1) * 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* Draws synthetic pictures: shapes, edges, texture and noise that move by a few samples a frame. */
struct bench_pictures bench_draw(struct bench *bench, const char *name, uint32_t columns, uint32_t rows,
                                 uint32_t frames);
/* Reads the samples of all files on the command line, one after the other, since a single file is too small for a GPU.
 * as_tokens: tokens of the residuals of the median edge predictor (FORMAT.md 7.1, 7.2, 7.4), a byte a sample; else the
 * bytes as stored. Returns host memory with room for 16 bytes more. */
uint8_t *bench_read_samples(const struct bench_options *options, bool as_tokens, size_t *count);
/* Reads the pictures of the files on the command line: Y4M (8 bits), or what Tessera reads as an image. Luma has the
 * highest 8 bits of deeper samples. Stills of one size are joined, since each alone is too small for a GPU. *count:
 * number of elements. The caller frees each element with the next function, and the array with free(). */
struct bench_pictures *bench_read_files(const struct bench_options *options, int *count);
void bench_free_pictures(struct bench_pictures *pictures);

/* Frames of one layout as they are stored, one after the other, and room for them decoded. */
struct bench_frames {
    char name[160];
    struct tsr_image image; /* of one frame */
    uint32_t frames;
    bool is_lossy;
    uint8_t *rasters, *decoded; /* freed with free() */
};
/* Finds frames to decode: the first few of each file on the command line, at most 64 of a layout; or drawn ones, of 12
 * bits in 16 and of 8 bits. *count: number of sets. The caller frees the array with free(). */
struct bench_frames *bench_find_frames(struct bench *bench, int *count);

/* ---- Families -------------------------------------------------------------------------------------------------- */

void bench_vle(struct bench *bench);
void bench_rle(struct bench *bench);
void bench_cavlc(struct bench *bench);
void bench_hiding(struct bench *bench);
void bench_engine(struct bench *bench);
void bench_decode(struct bench *bench, struct tsr_engine *cpu); /* the decoding half of engine */
void bench_limits_alone(struct bench *bench);

#endif
