/* Running tasks: several files at once over the engine's threads, reported in their order, with a progress line. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "app/cli/cli.h"
#include "app/cli/evidence/evidence.h"
#include "app/cli/inputs/inputs.h"
#include "app/cli/inputs/out_folders.h"
#include "manifest.h"
#include "app/cli/progress.h"
#include "app/cli/summary/repeated.h"

struct running {
    struct tsr_engine *engine;
    const struct options *options;
    const struct task_list *list;
    const struct task_work *work;
    struct outcome **outcomes; /* of tasks that are done and not yet reported */
    bool *done;
    size_t reported;   /* tasks before this one are reported */
    bool is_reporting; /* a thread, without the lock: it also reports what is done meanwhile */
    double last_report;
    struct out_folders folders;
    enum tsr_status sync_status; /* a folder could not be brought to the disk, or is another: no output of then or later
                                    counts */
    struct tsr_error sync_error;
    struct progress progress;
    size_t not_begun;
    enum tsr_status only_status; /* of the last task that was reported */
    atomic_bool is_full;         /* a disk, or what follows is said: no task is begun any more */
    const char *ends_for;        /* static; NULL: a disk is full */
    pthread_mutex_t lock;        /* guards what is above */
    pthread_mutex_t screen;      /* held while anything is printed */
    pthread_cond_t ended;
    bool is_over;
};

/* For the thread that waits for signals: the run, or the file that becomes a series. */
static struct running *the_run;
static _Atomic(const char *) the_series;

/* ---- Interruptions ----------------------------------------------------------------------------------------- */

void note_series(const char *path)
{
    atomic_store(&the_series, path);
}

void say_interrupted(int signal_number)
{
    struct running *const r = the_run;
    const char *const series = atomic_load(&the_series);
    if (series && signal_number != SIGALRM) {
        progress_end(NULL);
        fprintf(stderr, "tessera: interrupted: no series was written to %s; the same command begins anew\n",
                shown(series));
        fflush(stderr);
    }
    if (!r || signal_number == SIGALRM) return;
    const size_t done = r->progress.files - r->progress.failed;
    const bool has_screen = pthread_mutex_trylock(&r->screen) == 0; /* who holds it may wait for a pipe */
    if (has_screen) progress_end(NULL);
    if (has_update(r->options) && r->list->count > 1)
        fprintf(stderr, "tessera: interrupted: %zu of %zu files are done; the same command with --update goes on\n",
                done, r->list->count);
    else
        fprintf(stderr, "tessera: interrupted: %zu of %zu files are done\n", done, r->list->count);
    fflush(stderr);
}

/* ---- Reports ---------------------------------------------------------------------------------------------- */

/* A task that had succeeded, so far. */
static void fail_outcome(struct running *r, struct outcome *outcome, const struct tsr_error *error)
{
    outcome->status = error->status;
    outcome->error = *error;
    pthread_mutex_lock(&r->lock);
    r->progress.failed++;
    pthread_mutex_unlock(&r->lock);
}

static void end_early(struct running *r, const char *reason)
{
    r->ends_for = reason;
    atomic_store(&r->is_full, true);
}

static void check_folders(struct running *r)
{
    if (r->sync_status != TSR_OK) return;
    r->sync_status = check_out_folders(&r->folders, &r->sync_error);
    if (r->sync_status != TSR_OK) end_early(r, "the folder of the outputs is another one");
}

/* What is reported is lasting: the folders of these tasks' outputs go to the disk first, or the tasks have failed. Then
 * originals may go. */
static void sync_outputs(struct running *r, size_t first, size_t end)
{
    const enum verb verb = r->options->verb;
    if (verb != VERB_COMPRESS && verb != VERB_DECOMPRESS && verb != VERB_EXPORT) return;
    if (r->sync_status == TSR_OK) r->sync_status = tsr_sync_folders(&r->sync_error);
    check_folders(r);
    for (size_t i = first; i < end; i++) {
        struct outcome *const outcome = r->outcomes[i];
        if (!outcome) continue; /* there was no memory for it */
        if (outcome->status == TSR_OK && r->sync_status != TSR_OK) fail_outcome(r, outcome, &r->sync_error);
        if (r->options->report.manifest) note_in_manifest(&r->list->tasks[i], outcome);
    }
    struct tsr_error error;
    if (!r->options->report.manifest || !r->options->archive.removes || sync_manifest(&error) == TSR_OK) return;
    for (size_t i = first; i < end; i++) /* no original goes whose entry is not on the disk */
        if (r->outcomes[i] && r->outcomes[i]->status == TSR_OK) fail_outcome(r, r->outcomes[i], &error);
    end_early(r, "the manifest cannot be written"); /* the next ones would fail, too */
}

/* Reports one task, unless it was not begun. */
static void report_one(struct running *r, size_t i)
{
    struct outcome *const outcome = r->outcomes[i];
    if (!outcome) {
        const struct outcome none = {
            .status = TSR_ERROR_LIMIT,
            .error = {TSR_ERROR_LIMIT, TSR_NO_OFFSET, "no memory for the result of a file", 0}};
        r->only_status = none.status;
        r->work->report(r->options, &r->list->tasks[i], &none);
        return;
    }
    r->only_status = outcome->status;
    if (outcome->status == TSR_ERROR_CANCELLED) {
        r->not_begun++;
    } else {
        if (outcome->status == TSR_OK && (r->options->verb == VERB_COMPRESS || r->options->verb == VERB_VERIFY))
            judge_original(r->options, r->list, &r->list->tasks[i], outcome);
        if (outcome->status != TSR_OK) count_failure(r->options, &r->list->tasks[i], outcome);
        r->work->report(r->options, &r->list->tasks[i], outcome); /* at once: so few are gone and not reported */
    }
    free(outcome->more);
    free(outcome->line);
    free(outcome);
    r->outcomes[i] = NULL;
}

/* All that are done in their order, unless another thread is at it; not each alone, since a folder's way to the disk
 * takes as long for many files as for one. Called with the lock. */
static void report_done(struct running *r)
{
    static const double each_s = 0.1;
    const bool is_last = r->progress.files == r->list->count;
    if (r->is_reporting || (!is_last && wall_seconds() - r->last_report < each_s)) return;
    r->is_reporting = true;
    r->last_report = wall_seconds();
    while (r->done[r->reported]) {
        size_t end = r->reported;
        while (r->done[end]) end++; /* after the last task stands one that is never done */
        pthread_mutex_unlock(&r->lock);
        sync_outputs(r, r->reported, end);
        pthread_mutex_lock(&r->screen);
        progress_clear();
        for (size_t i = r->reported; i < end; i++) report_one(r, i);
        pthread_mutex_unlock(&r->screen);
        pthread_mutex_lock(&r->lock);
        r->reported = end;
    }
    r->is_reporting = false;
}

/* ---- Progress --------------------------------------------------------------------------------------------- */

/* A thread that draws while files are at work, and once where it begins when they are done. */
static void *draw_progress(void *context)
{
    struct running *const r = context;
    pthread_mutex_lock(&r->lock);
    do {
        const struct progress now = r->progress;
        pthread_mutex_unlock(&r->lock);
        pthread_mutex_lock(&r->screen);
        progress_show(&now);
        pthread_mutex_unlock(&r->screen);
        pthread_mutex_lock(&r->lock);
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += 50000000;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        if (!r->is_over) pthread_cond_timedwait(&r->ended, &r->lock, &until);
    } while (!r->is_over);
    pthread_mutex_unlock(&r->lock);
    return NULL;
}

/* It needs little of the address space. */
static bool start_drawing(pthread_t *thread, struct running *r)
{
    enum { STACK_BYTES = 1 << 20 };
    pthread_attr_t attributes;
    if (pthread_attr_init(&attributes) != 0) return false;
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    const bool started = pthread_create(thread, &attributes, draw_progress, r) == 0;
    pthread_attr_destroy(&attributes);
    return started;
}

/* ---- Tasks ------------------------------------------------------------------------------------------------ */

/* A task of the library's, to the run and to its number there. */
struct call {
    struct running *running;
    size_t index;
};

static enum tsr_status run_call(void *context, struct tsr_engine *engine, struct tsr_report *report,
                                struct tsr_error *error)
{
    const struct call *const call = context;
    struct running *const r = call->running;
    const struct task *const task = &r->list->tasks[call->index];
    struct outcome *const outcome = calloc(1, sizeof *outcome);
    if (!outcome) return refuse(error, TSR_ERROR_LIMIT, "no memory for the result of %s", task->input);
    outcome->report = *report;
    outcome->error = *error;
    r->outcomes[call->index] = outcome;
    if (task->status != TSR_OK)
        outcome->status = refuse_task(&outcome->error, task);
    else
        outcome->status = r->work->work(engine, r->options, task, outcome);
    if (outcome->status == TSR_ERROR_EXISTS) explain_existing(engine, r->options, task, outcome);
    return outcome->status;
}

static bool is_full(const struct outcome *outcome)
{
    return outcome->status == TSR_ERROR_WRITE && (outcome->error.system == ENOSPC || outcome->error.system == EDQUOT);
}

/* Of a task that was not begun, too. NULL: no memory. */
static struct outcome *outcome_of(struct running *r, const struct tsr_result *result)
{
    struct outcome *outcome = r->outcomes[result->index];
    if (!outcome) outcome = r->outcomes[result->index] = calloc(1, sizeof *outcome);
    if (!outcome) return NULL;
    outcome->status = result->status;
    if (!outcome->report.size) outcome->report = *result->report;
    if (!outcome->error.text[0]) outcome->error = *result->error;
    return outcome;
}

static double work_of(const struct task *task)
{
    return task->work > 0 ? task->work : (double)task->bytes;
}

void tell_share(const struct task *task, struct outcome *outcome, double share)
{
    struct running *const r = the_run;
    if (!r || share <= outcome->told) return;
    pthread_mutex_lock(&r->lock);
    r->progress.work += (share - outcome->told) * work_of(task);
    pthread_mutex_unlock(&r->lock);
    outcome->told = share;
}

static void take_result(void *context, const struct tsr_result *result)
{
    struct running *const r = context;
    const struct task *const task = &r->list->tasks[result->index];
    struct outcome *const outcome = outcome_of(r, result);
    if (outcome && outcome->status == TSR_ERROR_EXISTS && is_another_runs(r->options, task))
        refuse(&outcome->error, outcome->status, "%s has appeared since this run began, and is left as it is",
               task->output);
    if (outcome) name_flags(&outcome->error);
    if (outcome && outcome->status != TSR_OK) name_file(&outcome->error, task->input, task->member);
    if (outcome && is_full(outcome) && atomic_exchange(&r->is_full, true))
        outcome->status = TSR_ERROR_CANCELLED; /* said once */
    if (outcome && r->work->prepare) r->work->prepare(r->options, task, outcome);
    pthread_mutex_lock(&r->lock);
    r->done[result->index] = true;
    r->progress.files++;
    r->progress.failed += !outcome || outcome->status != TSR_OK;
    r->progress.bytes += task->bytes;
    r->progress.work += (1 - (outcome ? outcome->told : 0)) * work_of(task);
    if (outcome && outcome->status == TSR_OK && !outcome->is_current) {
        r->progress.bytes_in += outcome->report.bytes_in;
        r->progress.bytes_out += outcome->report.bytes_out;
    }
    report_done(r);
    pthread_mutex_unlock(&r->lock);
}

static void note_begin(void *context, size_t index)
{
    struct running *const r = context;
    pthread_mutex_lock(&r->lock);
    r->progress.current = r->list->tasks[index].input;
    pthread_mutex_unlock(&r->lock);
}

static bool is_cancelled(void *context)
{
    struct running *const r = context;
    return atomic_load(&r->is_full);
}

/* What a run of tasks allocates. */
struct run_calls {
    struct call *calls;
    struct tsr_task *tasks;
};

static enum tsr_status make_calls(struct running *r, struct run_calls *own)
{
    const size_t count = r->list->count;
    r->outcomes = calloc(count + 1, sizeof *r->outcomes);
    r->done = calloc(count + 1, sizeof *r->done);
    own->calls = calloc(count + 1, sizeof *own->calls);
    own->tasks = calloc(count + 1, sizeof *own->tasks);
    if (!r->outcomes || !r->done || !own->calls || !own->tasks) return TSR_ERROR_LIMIT;
    for (size_t i = 0; i < count; i++) {
        struct tsr_task made = TSR_TASK;
        own->calls[i] = (struct call){r, i};
        made.kind = TSR_TASK_CALL;
        made.call = run_call;
        made.context = &own->calls[i];
        own->tasks[i] = made;
    }
    return TSR_OK;
}

/* Folders without files, in the output. */
static enum tsr_status make_folders(const struct task_list *list, struct tsr_error *error)
{
    enum tsr_status status = TSR_OK;
    for (size_t i = 0; i < list->folder_count && status == TSR_OK; i++) {
        struct tsr_data_sink sink = tsr_to_path(list->folders[i].output);
        sink.is_bounded = true;
        sink.root = list->folders[i].root;
        status = tsr_make_folder(&sink, error);
    }
    return status;
}

/* What is said once of many files. */
static void say_rest(const struct running *r)
{
    const struct options *const o = r->options;
    say_counted();
    if (atomic_load(&r->is_full) && r->list->count > 1)
        fprintf(stderr, "tessera: %s: %zu of %zu files are done, %zu were not begun%s\n",
                r->ends_for ? r->ends_for : "the disk is full", r->progress.files - r->progress.failed, r->list->count,
                r->not_begun,
                !has_update(o) ? ""
                : r->ends_for  ? "; when that is mended, the same command with --update goes on"
                               : "; free some space, and the same command with --update goes on");
}

static enum tsr_status run_set(struct running *r, const struct tsr_task *tasks, struct tsr_error *error)
{
    struct tsr_set_options set = TSR_SET_OPTIONS;
    pthread_t drawer;
    set.results_at_once = true; /* the reports have a lock of their own, which no thread holds for long */
    set.on_begin = note_begin;
    set.is_cancelled = is_cancelled;
    r->progress.all_files = r->list->count;
    r->progress.all_bytes = input_bytes(r->list);
    bool has_work = false;
    for (size_t i = 0; i < r->list->count; i++) {
        has_work |= r->list->tasks[i].work > 0;
        r->progress.all_work += work_of(&r->list->tasks[i]);
    }
    if (!has_work) r->progress.all_work = 0; /* bytes tell the same */
    report_plan(r->options, r->list);
    progress_begin(r->options);
    the_run = r;
    const bool draws = progress_is_shown() && start_drawing(&drawer, r);
    begin_out_folders(&r->folders, r->list);
    enum tsr_status status = make_folders(r->list, error);
    if (status == TSR_OK) status = tsr_run_set(r->engine, tasks, r->list->count, &set, take_result, r, error);
    const bool was_well = r->sync_status == TSR_OK;
    check_folders(r); /* also after the last report */
    if (was_well && r->sync_status != TSR_OK) say_error(&r->sync_error);
    end_out_folders(&r->folders);
    pthread_mutex_lock(&r->lock);
    r->is_over = true;
    pthread_cond_signal(&r->ended);
    pthread_mutex_unlock(&r->lock);
    if (draws) pthread_join(drawer, NULL);
    progress_end(&r->progress);
    return status;
}

/* What all tasks came to, before the manifest and the report are written. */
static struct tally add_up(const struct running *r)
{
    return (struct tally){.files = r->list->count,
                          .failed = r->progress.failed - r->not_begun,
                          .left = r->not_begun,
                          .unproven = unproven_files(),
                          .not_taken = r->list->skipped_count,
                          .damaged = damaged_files(),
                          .kept = kept_files(),
                          .may_be_empty = r->options->in.shards > 0,
                          .lacks_entries = manifest_is_cut(),
                          .only = r->only_status,
                          .ended = atomic_load(&r->is_full) ? TSR_ERROR_WRITE : TSR_OK};
}

/* The manifest and the report, before the summary says that all is well. */
static void end_reports(const struct running *r, struct tally *tally)
{
    struct tsr_error error, other;
    if (r->options->report.manifest && r->options->verb == VERB_COMPRESS) {
        tally->unwritten = check_not_written(r->options, r->options->report.manifest, &error);
        const enum tsr_status ended = end_manifest(judge(tally) != VERDICT_FAIL, &other);
        if (tally->unwritten == TSR_OK && ended != TSR_OK) error = other;
        if (tally->unwritten == TSR_OK) tally->unwritten = ended;
    }
    if (tally->unwritten != TSR_OK) say_error(&error);
    const enum tsr_status reported = end_evidence(r->options, r->list, tally, NULL, &error);
    if (reported != TSR_OK) say_error(&error);
    if (tally->unwritten == TSR_OK) tally->unwritten = reported;
}

/* Whether a page of an earlier night is to be replaced: it is no file that the run was to read or write. */
static bool may_write_page(const struct options *options, enum tsr_status status)
{
    bool may = options->report.page && status != TSR_ERROR_SAME_FILE;
    for (int i = 0; i < options->in.count && may; i++) may = !is_same_file(options->report.page, options->in.names[i]);
    return may;
}

void end_unbegun(const struct options *options, const struct task_list *list, const struct tsr_error *error)
{
    const struct tally tally = {.ended = error->status, .not_taken = list->skipped_count};
    struct options careful = *options;
    struct tsr_error ignored;
    say_error(error);
    if (options->verb == VERB_COMPARE) return;
    careful.out.force = false;
    if (may_write_page(options, error->status) && begin_evidence(&careful, &ignored) == TSR_OK)
        end_evidence(options, list, &tally, error->text, &ignored);
    drop_evidence();
    report_unbegun(options, list, &tally, error->text);
}

static int run_list(struct running *r, struct run_times *times)
{
    struct tsr_error error = {TSR_ERROR_LIMIT, TSR_NO_OFFSET, "no memory for this set of files", 0};
    struct run_calls own = {0};
    const double start = wall_seconds();
    enum tsr_status status = make_calls(r, &own);
    if (status == TSR_OK) status = run_set(r, own.tasks, &error);
    if (status == TSR_OK || status == TSR_ERROR_PARTIAL || status == TSR_ERROR_CANCELLED) {
        times->wall_s = wall_seconds() - start;
        tsr_engine_tell_times(r->engine, &times->gpu);
        say_rest(r);
        struct tally tally = add_up(r);
        end_reports(r, &tally);
        r->work->summary(r->options, r->list, times, &tally);
        status = verdict_status(&tally);
    } else {
        drop_evidence();
        end_unbegun(r->options, r->list, &error);
    }
    the_run = NULL;
    free(r->outcomes);
    free(r->done);
    free(own.calls);
    free(own.tasks);
    return (int)status;
}

/* What reads .tsr files starts its engine first: to know which of them are series it opens them. */
int run_tasks(const struct options *options, const struct task_work *work)
{
    struct task_list list = {0};
    struct run_times times = {0};
    struct tsr_error error = {TSR_OK, TSR_NO_OFFSET, "", 0};
    struct running r = {.options = options, .list = &list, .work = work};
    enum tsr_status (*const list_all)(const struct options *, struct tsr_engine *, struct task_list *,
                                      struct tsr_error *) = work->list ? work->list : list_tasks;
    if (work->reads_tsr) r.engine = start_engine(options, 0, &times.start_s, &error);
    int status = work->reads_tsr && !r.engine ? (int)error.status : (int)list_all(options, r.engine, &list, &error);
    say_unmatched(&options->in);
    if (status == TSR_OK && !work->reads_tsr) {
        r.engine = start_engine(options, input_bytes(&list), &times.start_s, &error);
        status = r.engine ? TSR_OK : (int)error.status;
    }
    if (status == TSR_OK && work->begin) status = (int)work->begin(options, r.engine, &list, &error);
    if (status == TSR_OK && options->report.page && options->verb != VERB_COMPARE)
        status = (int)begin_evidence(options, &error);
    if (status == TSR_OK) {
        pthread_mutex_init(&r.lock, NULL);
        pthread_mutex_init(&r.screen, NULL);
        pthread_cond_init(&r.ended, NULL);
        status = run_list(&r, &times);
        pthread_cond_destroy(&r.ended);
        pthread_mutex_destroy(&r.screen);
        pthread_mutex_destroy(&r.lock);
    } else {
        end_unbegun(options, &list, &error);
    }
    drop_evidence();
    free_tasks(&list);
    tsr_engine_destroy(r.engine);
    return status;
}
