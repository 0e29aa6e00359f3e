/* What the families cavlc and hiding share: coefficients as a workload of CAVLC's rows, their reference, and the list
 * of pictures. */
#ifndef TSR_APP_BENCH_BENCH_CAVLC_H
#define TSR_APP_BENCH_BENCH_CAVLC_H

#include "bench_coefficients.h"

struct row_span;

/* Coefficients and their code. */
struct cavlc_run {
    const struct bench_coefficients *coefficients;
    uint64_t bits;
    uint8_t *string;
    uint64_t *unit_offsets;
    struct row_span *span; /* while the reference is made */
};

/* The job of an encoder, without its outputs, in the memory of a side. */
struct tsr_cavlc_job bench_cavlc_job(const struct cavlc_run *run, const struct bench_memory *m);
/* The same with outputs, and that of a decoder. */
struct tsr_cavlc_job bench_cavlc_encode_job(const struct cavlc_run *run, const struct bench_memory *m);
struct tsr_cavlc_decode_job bench_cavlc_decode_job(const struct cavlc_run *run, const struct bench_memory *m);
/* All rows of the family CAVLC on the run. */
struct bench_coder bench_cavlc_coder(const struct cavlc_run *run);

/* Makes the reference: string, bits, unit_offsets. Returns whether it decodes to the coefficients. */
bool bench_make_cavlc(struct bench *bench, struct cavlc_run *run);
void bench_free_cavlc(struct cavlc_run *run);
/* The first frames, for the CPU's rows. Their string is the beginning of the whole string, and belongs to the caller.
 * coefficients: gets those of these frames. */
struct cavlc_run bench_begin_cavlc(const struct cavlc_run *run, struct bench_coefficients *coefficients);

/* Runs a family on pictures, drawn or from files, at each QP. over_formats: the plot has a group of bars for each
 * format instead of a line over QP. */
typedef void bench_on_pictures(struct bench *bench, const struct bench_pictures *pictures, int qp, bool over_formats);
void bench_each_pictures(struct bench *bench, bench_on_pictures *run);
/* Names a workload, its panel of the plot (PLOT_TEXT bytes) and its place there. */
void bench_name_workload(struct bench_workload *workload, const char *family, const struct bench_pictures *pictures,
                         int qp, bool over_formats, char *panel);

#endif
