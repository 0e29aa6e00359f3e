/* Sets: many files at once, over an engine's threads. */
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "call.h"
#include "files.h"
#include "kernels/pool/large_stack.h"
#include "kernels/pool/thread_pool.h"
#include "app/tessera_cli.h"

struct set {
    struct tsr_engine *engine;
    const struct tsr_task *tasks;
    size_t count;
    const struct tsr_set_options *options;
    struct tsr_file_set *written; /* by tasks whose sinks have no set of their own */
    void (*on_result)(void *context, const struct tsr_result *result);
    void *context;
    pthread_mutex_t lock; /* held while a result is told, unless several may be at once */
    atomic_size_t failed, cancelled;
};

static enum tsr_status run_kind(const struct set *set, const struct tsr_task *task, struct tsr_report *report,
                                struct tsr_error *error)
{
    struct tsr_data_sink sink = task->sink;
    if (!sink.written) sink.written = set->written;
    switch (task->kind) {
    case TSR_TASK_COMPRESS:
        return tsr_compress(set->engine, &task->source, &sink, task->compress, report, error);
    case TSR_TASK_RESTORE:
        return task->reader ? tsr_restore_member(task->reader, task->member, &sink, report, error)
                            : tsr_restore(set->engine, &task->source, &sink, report, error);
    case TSR_TASK_TEST:
        return task->reader ? tsr_test_member(task->reader, task->member, report, error)
                            : tsr_test(set->engine, &task->source, report, error);
    case TSR_TASK_CALL:
        return task->call(task->context, set->engine, report, error);
    }
    return TSR_ERROR_INTERNAL;
}

/* A task that begins, or its result. */
struct telling {
    const struct set *set;
    const struct tsr_result *result;
};

static void tell_begin(void *context)
{
    const struct telling *const t = context;
    t->set->options->on_begin(t->set->context, t->result->index);
}

static void tell_result(void *context)
{
    const struct telling *const t = context;
    t->set->on_result(t->set->context, t->result);
}

/* Tells a result, one at a time. A thread that waits for its turn rests: what another one is told may need its place,
 * as a set that is begun there does. */
static void tell(struct set *set, const struct tsr_result *result)
{
    if (!set->on_result) return;
    const bool takes_turns = !set->options->results_at_once;
    if (takes_turns && pthread_mutex_trylock(&set->lock) != 0) {
        tsr_pool_rest(set->engine->pool, 0);
        pthread_mutex_lock(&set->lock);
        tsr_pool_resume(set->engine->pool);
    }
    tsr_call_back(tell_result, &(struct telling){set, result});
    if (takes_turns) pthread_mutex_unlock(&set->lock);
}

static void run_task(void *context, unsigned index)
{
    struct set *const set = context;
    struct tsr_report report;
    struct tsr_error error = {TSR_OK, TSR_NO_OFFSET, "", 0};
    struct tsr_result result = {.index = index, .report = &report, .error = &error};
    tsr_clear_report(&report);
    if (set->options->is_cancelled && tsr_ask(set->options->is_cancelled, set->context)) {
        result.status = tsr_fail(&error, TSR_ERROR_CANCELLED, "the set was cancelled");
        atomic_fetch_add(&set->cancelled, 1);
    } else {
        if (set->options->on_begin) tsr_call_back(tell_begin, &(struct telling){set, &result});
        result.status = run_kind(set, &set->tasks[index], &report, &error);
        if (result.status != TSR_OK) atomic_fetch_add(&set->failed, 1);
    }
    tell(set, &result);
}

static enum tsr_status check_task(const struct tsr_task *task, struct tsr_error *error)
{
    struct tsr_wanted wanted;
    TSR_TRY(tsr_check_sized(task, sizeof *task, "task", error));
    switch (task->kind) {
    case TSR_TASK_COMPRESS:
        TSR_TRY(tsr_check_source(&task->source, error));
        TSR_TRY(tsr_check_sink(&task->sink, error));
        return tsr_want(task->compress, &wanted, error);
    case TSR_TASK_RESTORE:
        TSR_TRY(tsr_check_sink(&task->sink, error));
        return task->reader ? TSR_OK : tsr_check_source(&task->source, error);
    case TSR_TASK_TEST:
        return task->reader ? TSR_OK : tsr_check_source(&task->source, error);
    case TSR_TASK_CALL:
        return task->call ? TSR_OK : tsr_fail(error, TSR_ERROR_USAGE, "task->call is NULL");
    }
    return tsr_fail(error, TSR_ERROR_USAGE, "kind %d is not known", (int)task->kind);
}

static enum tsr_status check_tasks(const struct tsr_task *tasks, size_t count, struct tsr_error *error)
{
    struct tsr_error why;
    if (count > 0) TSR_TRY(tsr_check_pointer(tasks, "tasks", error));
    if (count > UINT_MAX) return tsr_fail(error, TSR_ERROR_LIMIT, "%zu tasks are more than a set can have", count);
    for (size_t i = 0; i < count; i++)
        if (check_task(&tasks[i], &why) != TSR_OK)
            return tsr_fail(error, TSR_ERROR_USAGE, "task %zu: %.400s", i, why.text);
    return TSR_OK;
}

static enum tsr_status run_tasks(const struct tsr_call *call)
{
    struct set *const set = call->out;
    if (set->count > 0) tsr_pool_run_tasks(call->engine->pool, run_task, set, (unsigned)set->count);
    return TSR_OK;
}

enum tsr_status tsr_run_set(struct tsr_engine *engine, const struct tsr_task *tasks, size_t count,
                            const struct tsr_set_options *options,
                            void (*on_result)(void *context, const struct tsr_result *result), void *context,
                            struct tsr_error *error)
{
    static const struct tsr_set_options usual = TSR_SET_OPTIONS;
    if (!options) options = &usual;
    TSR_TRY(tsr_check_pointer(engine, "engine", error));
    TSR_TRY(tsr_check_sized(options, sizeof *options, "options", error));
    TSR_TRY(check_tasks(tasks, count, error));
    struct set set = {.engine = engine,
                      .tasks = tasks,
                      .count = count,
                      .options = options,
                      .on_result = on_result,
                      .context = context};
    set.written = tsr_file_set_create();
    if (!set.written) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for a set of %zu tasks", count);
    const struct tsr_call call = {.run = run_tasks, .engine = engine, .out = &set, .error = error};
    pthread_mutex_init(&set.lock, NULL);
    const enum tsr_status status = tsr_run_call(&call);
    pthread_mutex_destroy(&set.lock);
    tsr_file_set_destroy(set.written);
    TSR_TRY(status);
    const size_t failed = atomic_load(&set.failed), cancelled = atomic_load(&set.cancelled);
    if (cancelled > 0)
        return tsr_fail(error, TSR_ERROR_CANCELLED, "the set was cancelled: %zu of %zu tasks were not begun", cancelled,
                        count);
    if (failed > 0) return tsr_fail(error, TSR_ERROR_PARTIAL, "%zu of %zu tasks failed", failed, count);
    return TSR_OK;
}
