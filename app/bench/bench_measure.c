/* Measures rows: they are checked, warmed up, timed, and checked again. Runs the coders of a family on either side, and
 * makes references in parts. See bench.h. */
#include <stdlib.h>
#include <string.h>

#include "bench.h"

enum { REPEATS = 10, QUICK_REPEATS = 2, REPEATS_LIMIT = 1000, APART_LIMIT = 5 };
/* A CPU row that takes longer than this runs once; a faster one runs three times. */
#define ONCE_US 50e3
/* A GPU that waited for the CPU has lowered its clocks. It runs for this time before it is timed; for less if it ran
 * just now. */
#define WARM_UP_US 30e3
#define WARM_US 10e3
#define JUST_NOW_US 20e3

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, int count)
{
    qsort(values, (size_t)count, sizeof *values, by_size);
    return count % 2 ? values[count / 2] : 0.5 * (values[count / 2 - 1] + values[count / 2]);
}

static int repeats_of(const struct bench *bench)
{
    const struct bench_options *words = bench->options;
    const int wanted = words->repeat ? words->repeat : words->quick ? QUICK_REPEATS : REPEATS;
    return wanted < REPEATS_LIMIT ? wanted : REPEATS_LIMIT;
}

/* Times the whole several times. */
static void time_whole(struct bench *bench, const struct bench_task *task, struct bench_result *result)
{
    double us[REPEATS_LIMIT];
    int repeats = repeats_of(bench), count = 0;
    const bool on_device = task->row->on_device != 0;
    const double start = bench_now_us();
    const bool is_warm = start - bench->device_ran_us < JUST_NOW_US;
    const double long_enough = bench->options->quick ? 0 : is_warm ? WARM_US : WARM_UP_US;
    for (int i = 0; on_device && !result->error && (i < 2 || bench_now_us() - start < long_enough); i++)
        result->error = bench_run(task->row, task->job, result->policy);
    if (!on_device) repeats = repeats < 3 ? repeats : 3;
    while (count < repeats && !result->error) {
        result->error = bench_time(task->row, task->job, result->policy, false, &us[count]);
        if (!on_device && us[count] > ONCE_US) repeats = count + 1;
        count++;
    }
    if (on_device) bench->device_ran_us = bench_now_us();
    if (result->error) return;
    result->us = median(us, count);
    result->least_us = us[0];
    result->repeats = count;
}

/* Times each phase. A single phase takes the time of the whole. */
static void time_phases(const struct bench_task *task, struct bench_result *result)
{
    double us[TSR_PHASES_LIMIT][APART_LIMIT];
    int phases = 0;
    while (phases < TSR_PHASES_LIMIT && task->row->phase[phases].name) phases++;
    result->phase_us[0] = result->us;
    if (phases == 1) return;
    const int repeats = result->repeats < APART_LIMIT ? result->repeats : APART_LIMIT;
    for (int r = 0; r < repeats && !result->error; r++) {
        double one[TSR_PHASES_LIMIT];
        result->error = bench_time(task->row, task->job, result->policy, true, one);
        for (int p = 0; p < phases; p++) us[p][r] = one[p];
    }
    for (int p = 0; p < phases && !result->error; p++) result->phase_us[p] = median(us[p], repeats);
}

/* Runs once on overwritten output and compares. If that run takes long, as on the CPU, its time is the result. */
static void check(const struct bench_task *task, struct bench_result *result)
{
    double us[TSR_PHASES_LIMIT] = {0};
    if (result->error) return;
    if (task->spoil) task->spoil(task->context);
    if (task->row->on_device)
        result->error = bench_run(task->row, task->job, result->policy);
    else
        result->error = bench_time(task->row, task->job, result->policy, false, us);
    if (us[0] > ONCE_US && !result->error) {
        result->us = result->least_us = us[0];
        result->repeats = 1;
    }
    if (!result->error && task->is_right) result->wrong |= !task->is_right(task->context);
}

void bench_measure_policy(struct bench *bench, struct bench_workload *workload, const struct bench_task *task,
                          int policy)
{
    const struct tsr_kernel_row *row = task->row;
    if (workload->result_count == BENCH_RESULTS_LIMIT) bench_stop(TSR_ERROR_INTERNAL, "too many rows and policies");
    struct bench_result *result = &workload->result[workload->result_count++];
    *result = (struct bench_result){
        .kind = task->kind, .row = row, .policy = policy, .in_bytes = task->in_bytes, .moved_bytes = task->moved_bytes};
    const enum bench_side side = row->on_device ? ON_DEVICE : ON_HOST;
    const size_t bytes = row->workspace_bytes ? row->workspace_bytes(task->job, policy) : 0;
    *task->workspace = bench_take(side, bytes);
    bench_fill(side, *task->workspace, 0xa5, bytes); /* a row must not rely on zeros */
    check(task, result);
    if (!result->error && result->repeats == 0) time_whole(bench, task, result);
    if (!result->error) time_phases(task, result);
    if (row->on_device) check(task, result); /* the row must work with what the timed runs left in the work space */
    bench_give(side, *task->workspace);
    *task->workspace = NULL;
    bench->measured++;
    bench->wrong += result->wrong;
    bench->failed += result->error != 0;
}

void bench_measure(struct bench *bench, struct bench_workload *workload, const struct bench_task *task)
{
    if (bench->options->policies && task->row->on_device) {
        for (int policy = 0; policy < task->row->policies; policy++)
            bench_measure_policy(bench, workload, task, policy);
    } else {
        bench_measure_policy(bench, workload, task, task->row->best_policy);
    }
}

/* ---- Coders ------------------------------------------------------------------------------------------------------ */

/* A coder on a side. */
struct coder_run {
    const struct bench_coder *coder;
    struct bench_memory memory;
};

static struct bench_memory take_memory(enum bench_side side, const struct bench_coder *coder)
{
    struct bench_memory m = {.side = side};
    for (int i = 0; i < BENCH_ARRAYS; i++) {
        const struct bench_array *input = &coder->input[i], *coded = &coder->coded[i];
        m.input[i] = input->content;
        m.right[i] = coded->content;
        m.coded[i] = bench_take(side, coded->room);
        if (side == ON_HOST) continue;
        void *d_input = bench_take(side, input->room), *d_right = bench_take(side, coded->bytes + 16);
        bench_copy(side, d_input, ON_HOST, input->content, input->bytes);
        bench_copy(side, d_right, ON_HOST, coded->content, coded->bytes);
        m.input[i] = d_input;
        m.right[i] = d_right;
    }
    m.decoded = bench_take(side, coder->input[0].room);
    m.error = bench_take(side, sizeof *m.error);
    return m;
}

static void give_memory(struct bench_memory *m)
{
    for (int i = 0; i < BENCH_ARRAYS; i++) {
        bench_give(m->side, m->coded[i]);
        if (m->side == ON_HOST) continue;
        bench_give(m->side, (void *)(uintptr_t)m->input[i]);
        bench_give(m->side, (void *)(uintptr_t)m->right[i]);
    }
    bench_give(m->side, m->decoded);
    bench_give(m->side, m->error);
}

enum { SPOILT = 0xc3 };

static void spoil_coded(void *context)
{
    const struct coder_run *run = context;
    for (int i = 0; i < BENCH_ARRAYS; i++) {
        const struct bench_array *array = &run->coder->coded[i];
        const size_t bytes = array->bytes + 16 < array->room ? array->bytes + 16 : array->room;
        bench_fill(run->memory.side, run->memory.coded[i], SPOILT, bytes);
    }
}

/* Whether a row has not written an array. No reference begins with these bytes. */
static bool is_untouched(const struct bench_memory *m, const void *array)
{
    uint8_t first[2];
    bench_copy(ON_HOST, first, m->side, array, sizeof first);
    return first[0] == SPOILT && first[1] == SPOILT;
}

static bool coded_is_right(void *context)
{
    const struct coder_run *run = context;
    const struct bench_memory *m = &run->memory;
    for (int i = 0; i < BENCH_ARRAYS; i++) {
        const struct bench_array *array = &run->coder->coded[i];
        if (array->optional && is_untouched(m, m->coded[i])) continue;
        if (!bench_same(m->side, m->coded[i], m->right[i], array->bytes)) return false;
    }
    return true;
}

static void spoil_decoded(void *context)
{
    const struct coder_run *run = context;
    bench_fill(run->memory.side, run->memory.decoded, SPOILT, run->coder->input[0].bytes);
    bench_fill(run->memory.side, run->memory.error, 0xff, sizeof *run->memory.error);
}

static bool decoded_is_right(void *context)
{
    const struct coder_run *run = context;
    const struct bench_memory *m = &run->memory;
    uint32_t error;
    bench_copy(ON_HOST, &error, m->side, m->error, sizeof error);
    return error == 0 && bench_same(m->side, m->decoded, m->input[0], run->coder->input[0].bytes);
}

static void run_row(struct bench *bench, struct bench_workload *workload, struct coder_run *run, enum bench_kind kind,
                    const struct tsr_kernel_row *row)
{
    const bool encodes = kind == BENCH_ENCODE;
    const struct bench_coder *coder = run->coder;
    if ((row->on_device ? ON_DEVICE : ON_HOST) != run->memory.side) return;
    const struct bench_job job = (encodes ? coder->encode_job : coder->decode_job)(coder, &run->memory);
    const struct bench_task task = {.kind = kind,
                                    .row = row,
                                    .job = job.job,
                                    .workspace = job.workspace,
                                    .spoil = encodes ? spoil_coded : spoil_decoded,
                                    .is_right = encodes ? coded_is_right : decoded_is_right,
                                    .context = run,
                                    .in_bytes = coder->in_bytes,
                                    .moved_bytes = coder->in_bytes + coder->out_bytes};
    bench_measure(bench, workload, &task);
}

static void run_side(struct bench *bench, struct bench_workload *workload, const struct bench_coder *coder,
                     enum bench_side side)
{
    struct coder_run run = {coder, take_memory(side, coder)};
    for (int i = 0; i < coder->encoders; i++) run_row(bench, workload, &run, BENCH_ENCODE, coder->encoder[i]);
    for (int i = 0; i < coder->decoders; i++) run_row(bench, workload, &run, BENCH_DECODE, coder->decoder[i]);
    give_memory(&run.memory);
}

void bench_run_coders(struct bench *bench, struct bench_workload *workload, const struct bench_coder *beginning,
                      const struct bench_coder *whole, bool proven)
{
    const int first = workload->result_count; /* the result of the CPU's encoder */
    run_side(bench, workload, beginning, ON_HOST);
    if (!proven && !workload->result[first].wrong) {
        workload->result[first].wrong = true;
        bench->wrong++;
    }
    if (bench->device.is_there) run_side(bench, workload, whole, ON_DEVICE);
}

/* The largest work space that a row of a list needs in any policy. */
static size_t most_workspace(const struct tsr_kernel_row *const *row, int rows, const void *job)
{
    size_t most = 0;
    for (int i = 0; i < rows; i++)
        for (int policy = 0; policy < row[i]->policies && row[i]->on_device; policy++) {
            const size_t bytes = row[i]->workspace_bytes ? row[i]->workspace_bytes(job, policy) : 0;
            if (bytes > most) most = bytes;
        }
    return most;
}

bool bench_has_room(const struct bench *bench, const struct bench_workload *workload, const struct bench_coder *coder)
{
    const struct bench_memory none = {.side = ON_DEVICE};
    if (!bench->device.is_there) return true;
    double bytes = (double)coder->input[0].room; /* decoded output */
    for (int i = 0; i < BENCH_ARRAYS; i++)
        bytes += (double)coder->input[i].room + (double)coder->coded[i].room + (double)coder->coded[i].bytes;
    const size_t encoders = most_workspace(coder->encoder, coder->encoders, coder->encode_job(coder, &none).job);
    const size_t decoders = most_workspace(coder->decoder, coder->decoders, coder->decode_job(coder, &none).job);
    bytes += (double)(encoders > decoders ? encoders : decoders);
    if (bytes <= (double)bench->device.free_bytes) return true;
    bench_say(bench, "\n%s is left out: it needs %.1f GiB of the GPU's memory, and %.1f are free", workload->name,
              bytes / (1 << 30), (double)bench->device.free_bytes / (1 << 30));
    return false;
}

/* ---- References -------------------------------------------------------------------------------------------------- */

int bench_run_alone(const struct tsr_kernel_row *row, struct bench_job job)
{
    *job.workspace = bench_take(ON_HOST, row->workspace_bytes ? row->workspace_bytes(job.job, row->best_policy) : 0);
    const int error = bench_run(row, job.job, row->best_policy);
    bench_give(ON_HOST, *job.workspace);
    return error;
}

void bench_take_bits(uint8_t *to, const uint8_t *from, uint64_t first_bit, uint64_t bits)
{
    const unsigned shift = first_bit % 8;
    const size_t bytes = (size_t)((bits + 7) / 8), touched = (size_t)((shift + bits + 7) / 8);
    from += first_bit / 8;
    for (size_t i = 0; i + 1 < touched && i < bytes; i++)
        to[i] = (uint8_t)(from[i] << shift | from[i + 1] >> (8 - shift));
    if (bytes > 0 && touched == bytes) to[bytes - 1] = (uint8_t)(from[bytes - 1] << shift);
    if (bits % 8 != 0) to[bytes - 1] &= (uint8_t)(0xff00 >> bits % 8);
}

struct joining {
    const struct bench_parts *parts;
    uint8_t *string;
    bool *proven; /* by part */
};

static void encode_part(void *context, unsigned index)
{
    const struct bench_parts *parts = ((const struct joining *)context)->parts;
    parts->encode(parts->context, index, &parts->part[index]);
}

/* Writes the bytes that begin in the part. The last one may end in the next part. */
static void place_part(void *context, unsigned index)
{
    const struct joining *j = context;
    const struct bench_part *part = &j->parts->part[index];
    const uint64_t skipped = (8 - part->at % 8) % 8, end = part->at + part->bits;
    if (part->bits <= skipped) return; /* the whole part lies in the last byte of the part before */
    bench_take_bits(j->string + (part->at + skipped) / 8, part->string, skipped, part->bits - skipped);
    if (end % 8 != 0 && index + 1 < j->parts->count) j->string[end / 8] |= (uint8_t)(part[1].string[0] >> end % 8);
}

/* Decodes the part from the joined string, so that joining is proven, too. */
static void prove_part(void *context, unsigned index)
{
    const struct joining *j = context;
    const struct bench_part *part = &j->parts->part[index];
    struct bench_part taken = {part->at, part->bits, bench_take(ON_HOST, (size_t)(part->bits + 7) / 8 + 16)};
    bench_take_bits(taken.string, j->string, part->at, part->bits);
    j->proven[index] = j->parts->decodes(j->parts->context, index, &taken);
    bench_give(ON_HOST, taken.string);
}

uint8_t *bench_join_parts(struct bench *bench, const struct bench_parts *parts, uint64_t *bits, bool *proven)
{
    struct joining j = {.parts = parts, .proven = bench_take(ON_HOST, parts->count * sizeof *j.proven)};
    tsr_pool_run(bench->pool, encode_part, &j, parts->count);
    *bits = 0;
    for (unsigned i = 0; i < parts->count; i++) {
        parts->part[i].at = *bits;
        *bits += parts->part[i].bits;
    }
    j.string = bench_take(ON_HOST, (size_t)(*bits + 7) / 8 + 16);
    tsr_pool_run(bench->pool, place_part, &j, parts->count);
    for (unsigned i = 0; i < parts->count; i++) bench_give(ON_HOST, parts->part[i].string);
    tsr_pool_run(bench->pool, prove_part, &j, parts->count);
    *proven = true;
    for (unsigned i = 0; i < parts->count; i++) *proven = *proven && j.proven[i];
    bench_give(ON_HOST, j.proven);
    return j.string;
}
