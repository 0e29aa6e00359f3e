/* Limits of the machine: copy, read, fill, and the look-up ceiling (kernels/papers/limits/limits.h). They are measured
 * in the same run as the rows that are compared with them. */
#include <stdio.h>
#include <string.h>

#include "bench.h"

#if TSR_WITH_CUDA
#include "kernels/papers/limits/limits.h"

enum { LOOK_UP_BITS = 8, SIZES_LIMIT = 64, DRAW_CHUNK = 1 << 20 };

/* Medians at one size; 0: the row did not run. */
struct limits {
    size_t bytes;
    double copy_us, read_us, fill_us;
    double look_up_us[LOOK_UP_BITS + 1]; /* the fastest, by bits of output for a byte */
    struct bench_workload rows;          /* all results */
};

static void spoil_copy(void *context)
{
    const struct tsr_limits_job *job = context;
    bench_fill(ON_DEVICE, job->out, 0xc3, job->bytes);
}

static bool copy_is_right(void *context)
{
    const struct tsr_limits_job *job = context;
    return bench_same(ON_DEVICE, job->out, job->in, job->bytes);
}

/* The fastest result of a row, from number first on; NULL: the row did not run. */
static const struct bench_result *fastest(const struct bench_workload *rows, const struct tsr_kernel_row *row,
                                          int first)
{
    const struct bench_result *best = NULL;
    for (int i = first; i < rows->result_count; i++) {
        const struct bench_result *result = &rows->result[i];
        if (result->row == row && !result->error && (!best || result->us < best->us)) best = result;
    }
    return best;
}

static double measure(struct bench *bench, struct limits *limits, struct tsr_limits_job *job,
                      const struct tsr_kernel_row *row, double moved)
{
    const bool copies = row == &tsr_limit_copy;
    const struct bench_task task = {.kind = BENCH_LIMIT,
                                    .row = row,
                                    .job = job,
                                    .workspace = &job->workspace,
                                    .spoil = copies ? spoil_copy : NULL,
                                    .is_right = copies ? copy_is_right : NULL,
                                    .context = job,
                                    .in_bytes = (double)job->bytes,
                                    .moved_bytes = moved};
    bench_measure(bench, &limits->rows, &task);
    const struct bench_result *best = fastest(&limits->rows, row, 0);
    return best ? best->us : 0;
}

/* Measures all policies, whatever the options say, since they are the points of one curve; in a quick run, only the
 * best one. */
static void measure_look_up(struct bench *bench, struct limits *limits, struct tsr_limits_job *job)
{
    for (int policy = 0; policy < tsr_limit_look_up.policies; policy++) {
        const int bits = tsr_limit_look_up_bits(policy), first = limits->rows.result_count;
        const struct bench_task task = {.kind = BENCH_LIMIT,
                                        .row = &tsr_limit_look_up,
                                        .job = job,
                                        .workspace = &job->workspace,
                                        .in_bytes = (double)job->bytes,
                                        .moved_bytes = (double)job->bytes * (1 + bits / 8.0)};
        if (bench->options->quick && policy != tsr_limit_look_up.best_policy) continue;
        if (bits < 1 || bits > LOOK_UP_BITS) continue;
        bench_measure_policy(bench, &limits->rows, &task, policy);
        const struct bench_result *best = fastest(&limits->rows, &tsr_limit_look_up, first);
        double *const known_us = &limits->look_up_us[bits];
        if (best && (*known_us <= 0 || best->us < *known_us)) *known_us = best->us;
    }
}

static void draw_chunk(void *context, unsigned index)
{
    const struct tsr_limits_job *drawn = context; /* on the host */
    uint8_t *bytes = drawn->out;
    const size_t first = (size_t)index * DRAW_CHUNK;
    for (size_t i = first; i < first + DRAW_CHUNK && i < drawn->bytes; i += 8) {
        const uint64_t value = bench_random(1, i);
        memcpy(bytes + i, &value, 8);
    }
}

/* look_up: also measures the ceiling, which takes most of the time. */
static const struct limits *limits_of(struct bench *bench, size_t bytes, bool look_up)
{
    static struct limits known[SIZES_LIMIT];
    static int count;
    bytes = bytes / TSR_LIMITS_CHUNK * TSR_LIMITS_CHUNK;
    for (int i = 0; i < count; i++)
        if (known[i].bytes == bytes) return &known[i];
    if (bytes == 0 || count == SIZES_LIMIT) return NULL;
    struct limits *limits = &known[count++];
    limits->bytes = bytes;
    struct tsr_limits_job drawn = {.out = bench_take(ON_HOST, bytes), .bytes = bytes};
    tsr_pool_run(bench->pool, draw_chunk, &drawn, (unsigned)((bytes + DRAW_CHUNK - 1) / DRAW_CHUNK));
    void *d_in = bench_take(ON_DEVICE, bytes);
    struct tsr_limits_job job = {
        .in = d_in, .bytes = bytes, .out = bench_take(ON_DEVICE, bytes), .stream = bench_stream()};
    bench_copy(ON_DEVICE, d_in, ON_HOST, drawn.out, bytes);
    bench_give(ON_HOST, drawn.out);
    limits->copy_us = measure(bench, limits, &job, &tsr_limit_copy, 2.0 * (double)bytes);
    limits->read_us = measure(bench, limits, &job, &tsr_limit_read, (double)bytes);
    limits->fill_us = measure(bench, limits, &job, &tsr_limit_fill, (double)bytes);
    if (look_up) measure_look_up(bench, limits, &job);
    bench_give(ON_DEVICE, job.out);
    bench_give(ON_DEVICE, d_in);
    return limits;
}

/* Interpolates linearly between the whole numbers of bits that were measured. */
static double look_up_at(const struct limits *limits, double bits)
{
    int below = 0, above = 0;
    for (int k = 1; k <= LOOK_UP_BITS; k++) {
        if (limits->look_up_us[k] <= 0) continue;
        if (k <= bits) below = k;
        if (k >= bits && !above) above = k;
    }
    if (!below || !above) return limits->look_up_us[below ? below : above];
    if (below == above) return limits->look_up_us[below];
    const double share = (bits - below) / (above - below);
    return limits->look_up_us[below] * (1 - share) + limits->look_up_us[above] * share;
}

void bench_find_limits(struct bench *bench, struct bench_workload *workload, bool look_up)
{
    const struct limits *limits = bench->device.is_there ? limits_of(bench, (size_t)workload->in_bytes, look_up) : NULL;
    if (!limits) return;
    /* The table begins with these limits in their fastest policies. `tessera-bench limits` shows all points of the
     * look-up. */
    const struct tsr_kernel_row *const shown[] = {&tsr_limit_copy, &tsr_limit_read, &tsr_limit_fill};
    for (int i = 0; i < 3; i++) {
        const struct bench_result *best = fastest(&limits->rows, shown[i], 0);
        if (best) workload->result[workload->result_count++] = *best;
    }
    const double whole = workload->in_bytes / (double)limits->bytes; /* a part of a chunk was not measured */
    workload->copy_us = limits->copy_us * whole;
    workload->read_us = limits->read_us * whole;
    workload->fill_us = limits->fill_us * whole;
    if (look_up) workload->look_up_us = look_up_at(limits, 8 * workload->out_bytes / workload->in_bytes) * whole;
}

void bench_limits_alone(struct bench *bench)
{
    static const double full[] = {0.25, 1, 4, 16, 64, 256, 1024}, quick[] = {0.0625};
    const struct numbers *sizes = &bench->options->sizes;
    const bool short_run = bench->options->quick;
    const double *const usual = short_run ? quick : full;
    const int count = sizes->count ? sizes->count : short_run ? 1 : (int)(sizeof full / sizeof full[0]);
    if (!bench->device.is_there) bench_stop(TSR_ERROR_ENGINE, "limits needs a GPU: %s", bench->device.name);
    for (int i = 0; i < count; i++) {
        const double mib = sizes->count ? sizes->value[i] : usual[i];
        const struct limits *limits = limits_of(bench, (size_t)(mib * (1 << 20)), true);
        if (!limits) continue;
        static struct bench_workload workload;
        workload = limits->rows;
        snprintf(workload.name, sizeof workload.name, "limits, %g MiB", mib);
        workload.in_bytes = (double)limits->bytes;
        workload.copy_us = limits->copy_us;
        workload.panel = "over the size";
        workload.x_label = "input, MiB";
        workload.log_x = true;
        workload.x = mib;
        bench_report(bench, &workload);
    }
}
#else
void bench_find_limits(struct bench *bench, struct bench_workload *workload, bool look_up)
{
    (void)bench;
    (void)workload;
    (void)look_up;
}

void bench_limits_alone(struct bench *bench)
{
    bench_stop(TSR_ERROR_ENGINE, "limits needs a GPU: %s", bench->device.name);
}
#endif
