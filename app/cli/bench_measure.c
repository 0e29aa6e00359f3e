/* Rows at work: checked, warmed up, timed, and checked again. See bench.h. */
#include <stdlib.h>

#include "bench.h"

enum { REPEATS = 10, QUICK_REPEATS = 2, REPEATS_LIMIT = 1000, APART_LIMIT = 5 };
/* CPU rows that take more than this run once; others thrice. */
#define ONCE_US 50e3
/* A GPU that waited for the CPU has let its clocks down: it runs so long before it is timed. */
#define WARM_UP_US 30e3

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
    const struct bench_words *words = &bench->options->bench;
    const int wanted = words->repeat ? words->repeat : words->quick ? QUICK_REPEATS : REPEATS;
    return wanted < REPEATS_LIMIT ? wanted : REPEATS_LIMIT;
}

/* The whole, again and again. */
static void time_whole(const struct bench *bench, const struct bench_task *task, struct bench_result *result)
{
    double us[REPEATS_LIMIT];
    int repeats = repeats_of(bench), count = 0;
    const bool on_device = task->row->on_device != 0;
    const double start = bench_now_us(), long_enough = bench->options->bench.quick ? 0 : WARM_UP_US;
    for (int i = 0; on_device && !result->error && (i < 2 || bench_now_us() - start < long_enough); i++)
        result->error = bench_run(task->row, task->job, result->policy);
    if (!on_device) repeats = repeats < 3 ? repeats : 3;
    while (count < repeats && !result->error) {
        result->error = bench_time(task->row, task->job, result->policy, false, &us[count]);
        if (!on_device && us[count] > ONCE_US) repeats = count + 1;
        count++;
    }
    if (result->error) return;
    result->us = median(us, count);
    result->least_us = us[0];
    result->repeats = count;
}

/* Each phase. Of one phase the whole says it. */
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

/* Runs once on spoilt output, and compares. */
static void check(const struct bench_task *task, struct bench_result *result)
{
    if (result->error) return;
    if (task->spoil) task->spoil(task->context);
    result->error = bench_run(task->row, task->job, result->policy);
    if (!result->error && task->is_right) result->wrong |= !task->is_right(task->context);
}

void bench_measure_policy(struct bench *bench, struct bench_workload *workload, const struct bench_task *task,
                          int policy)
{
    const struct tsr_kernel_row *row = task->row;
    if (workload->result_count == BENCH_RESULTS_LIMIT) bench_stop(TSR_ERROR_INTERNAL, "too many rows and policies");
    struct bench_result *result = &workload->result[workload->result_count++];
    *result = (struct bench_result){.kind = task->kind, .row = row, .policy = policy, .moved_bytes = task->moved_bytes};
    const enum bench_side side = row->on_device ? ON_DEVICE : ON_HOST;
    const size_t bytes = row->workspace_bytes ? row->workspace_bytes(task->job, policy) : 0;
    *task->workspace = bench_take(side, bytes);
    bench_fill(side, *task->workspace, 0xa5, bytes); /* no row may count on zeros */
    check(task, result);
    if (!result->error) time_whole(bench, task, result);
    if (!result->error) time_phases(task, result);
    if (row->on_device) check(task, result); /* what the timed runs left in the work space does no harm */
    bench_give(side, *task->workspace);
    *task->workspace = NULL;
    bench->measured++;
    bench->wrong += result->wrong;
    bench->failed += result->error != 0;
}

void bench_measure(struct bench *bench, struct bench_workload *workload, const struct bench_task *task)
{
    if (bench->options->bench.policies && task->row->on_device) {
        for (int policy = 0; policy < task->row->policies; policy++)
            bench_measure_policy(bench, workload, task, policy);
    } else {
        bench_measure_policy(bench, workload, task, task->row->best_policy);
    }
}

void bench_judge_reference(struct bench *bench, struct bench_workload *workload)
{
    bool proven = false;
    int reference = -1;
    for (int i = 0; i < workload->result_count; i++) {
        const struct bench_result *result = &workload->result[i];
        if (result->row->on_device) continue;
        if (result->kind == BENCH_ENCODE && reference < 0) reference = i;
        proven |= result->kind == BENCH_DECODE && !result->error && !result->wrong;
    }
    if (proven || reference < 0 || workload->result[reference].wrong) return;
    workload->result[reference].wrong = true;
    bench->wrong++;
}
