/* Runs of residuals that are 0: where one begins, how far it goes, and which table codes what stands beside it.
 * FORMAT.md section 7.4.
 *
 * A sample is quiet if its activity is 0. Encoders ask the first functions of one sample, in bit 0, or of a bit a
 * sample; decoders walk a row with a tsr_run. */
#ifndef TSR_ENTROPY_RUNS_H
#define TSR_ENTROPY_RUNS_H

#include "residual_model.h"

/* Samples that begin a run unless they stand in one: quiet ones whose residual is 0. */
TSR_HD uint32_t tsr_run_starts(uint32_t zero, uint32_t quiet)
{
    return zero & quiet;
}

/* Interruptions: quiet samples directly after a run. before: the sample before is in a run; inside: it is itself. */
TSR_HD uint32_t tsr_interruptions(uint32_t quiet, uint32_t before, uint32_t inside)
{
    return quiet & before & ~inside;
}

/* The column after the run that begins at first: a run goes on to the row's end or to a residual other than 0. */
TSR_HD_INLINE int32_t tsr_run_end(const uint16_t *folded, int32_t first, int32_t width)
{
    int32_t end = first + 1;
    while (end < width && folded[end] == 0) end++;
    return end;
}

/* The table of a quiet sample. */
TSR_HD int tsr_quiet_table(bool after_run)
{
    return after_run ? TSR_INTERRUPTION_TABLE : TSR_RUN_TABLE;
}

/* What a decoder knows of runs: samples that are left of the one it is in, whether the last sample ended one. A symbol
 * of a run sets what is left, from its own sample on. */
struct tsr_run {
    int32_t left;
    uint32_t after; /* 1 or 0 */
};

TSR_HD_INLINE void tsr_run_begin_row(struct tsr_run *run)
{
    run->left = 0;
    run->after = false;
}

/* Steps over a sample. */
TSR_HD_INLINE void tsr_run_step(struct tsr_run *run)
{
    run->after = false;
    if (run->left > 0) run->after = --run->left == 0;
}

#endif
