/* Running tasks: several files at once over the engine's threads, reported in their order, with a progress line. */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cli.h"

struct running {
    struct tsr_engine *engine;
    const struct options *options;
    const struct task_list *list;
    const struct task_work *work;
    struct outcome *outcomes;
    bool *done;
    size_t reported;   /* tasks before this one are reported */
    bool is_reporting; /* a thread, without the lock: it also reports what is done meanwhile */
    double last_report;
    enum tsr_status sync_status; /* a folder could not be brought to the disk: no output of then or later counts */
    struct tsr_error sync_error;
    size_t finished, failed;
    uint64_t bytes_in, bytes_out, bytes_total;
    double start, last_progress;
    bool shows_progress;
    pthread_mutex_t lock;
};

double wall_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* A thread that ends the process on a signal, without leaving parts of outputs. */
static void *await_signal(void *signals)
{
    int number;
    while (sigwait(signals, &number) != 0) continue;
    tsr_end_process(128 + number);
    return NULL;
}

/* From here on signals come to that thread alone: this one has them blocked, as have those that it creates. */
static void handle_signals(void)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGALRM, SIGXCPU};
    static sigset_t signals;
    pthread_t thread;
    sigemptyset(&signals);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        sigaddset(&signals, numbers[i]);
        signal(numbers[i], SIG_DFL); /* one that is ignored would not be waited for */
    }
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); /* the write fails instead */
    pthread_sigmask(SIG_BLOCK, &signals, NULL);
    if (pthread_create(&thread, NULL, await_signal, &signals) == 0)
        pthread_detach(thread);
    else
        pthread_sigmask(SIG_UNBLOCK, &signals, NULL);
}

static void clear_progress(const struct running *r)
{
    if (r->shows_progress) fprintf(stderr, "\r\033[K");
}

/* "files, MB/s, ratio, ETA"; at most ten times a second. */
static void show_progress(struct running *r)
{
    const double now = wall_seconds(), elapsed = now - r->start;
    if (!r->shows_progress || now - r->last_progress < 0.1 || elapsed <= 0) return;
    r->last_progress = now;
    const double share = (double)r->finished / (double)r->list->count;
    const int left = share > 0 ? (int)(elapsed / share - elapsed + 0.5) : 0;
    const double rate = (double)(r->options->verb == VERB_DECOMPRESS ? r->bytes_out : r->bytes_in) / 1e6 / elapsed;
    fprintf(stderr, "\r\033[K%zu/%zu files  %.1f MB/s", r->finished, r->list->count, rate);
    if (r->options->verb == VERB_COMPRESS && r->bytes_out > 0)
        fprintf(stderr, "  ratio %.2f", (double)r->bytes_in / (double)r->bytes_out);
    if (r->failed > 0) fprintf(stderr, "  %zu failed", r->failed);
    fprintf(stderr, "  ETA %d:%02d", left / 60, left % 60);
    fflush(stderr);
}

/* What is reported is lasting: the folders of these tasks' outputs go to the disk first, or the tasks have failed. */
static void sync_outputs(struct running *r, size_t first, size_t end)
{
    if (r->options->verb != VERB_COMPRESS && r->options->verb != VERB_DECOMPRESS) return;
    if (r->sync_status == TSR_OK) r->sync_status = tsr_sync_folders(&r->sync_error);
    for (size_t i = first; r->sync_status != TSR_OK && i < end; i++) {
        if (r->outcomes[i].status != TSR_OK) continue;
        r->outcomes[i].status = r->sync_status;
        r->outcomes[i].error = r->sync_error;
        pthread_mutex_lock(&r->lock);
        r->failed++;
        pthread_mutex_unlock(&r->lock);
    }
}

/* All that are done in their order, unless another thread is at it; not each alone, since a folder's way to the disk
 * takes as long for many files as for one. Called with the lock. */
static void report_done(struct running *r)
{
    static const double each_s = 0.1;
    const bool is_last = r->finished == r->list->count;
    if (r->is_reporting || (!is_last && wall_seconds() - r->last_report < each_s)) return;
    r->is_reporting = true;
    r->last_report = wall_seconds();
    while (r->done[r->reported]) {
        size_t end = r->reported;
        while (r->done[end]) end++; /* after the last task stands one that is never done */
        pthread_mutex_unlock(&r->lock);
        sync_outputs(r, r->reported, end);
        clear_progress(r);
        for (size_t i = r->reported; i < end; i++) r->work->report(r->options, &r->list->tasks[i], &r->outcomes[i]);
        pthread_mutex_lock(&r->lock);
        r->reported = end;
    }
    show_progress(r);
    r->is_reporting = false;
}

/* A task that does the verb's own work, or has failed before it could begin. */
struct call {
    struct running *running;
    size_t index;
};

static enum tsr_status run_call(void *context, struct tsr_engine *engine, struct tsr_report *report,
                                struct tsr_error *error)
{
    const struct call *const call = context;
    const struct running *const r = call->running;
    const struct task *const task = &r->list->tasks[call->index];
    struct outcome *const outcome = &r->outcomes[call->index];
    if (task->status != TSR_OK)
        return refuse(error, task->status, "%s: %s", task->input,
                      task->reason ? task->reason : tsr_status_name(task->status));
    outcome->error = *error;
    const enum tsr_status status = r->work->work(engine, r->options, task, outcome);
    report->bytes_in = outcome->report.bytes_in;
    report->bytes_out = outcome->report.bytes_out;
    *error = outcome->error;
    return status;
}

/* Which file of a series it is about. */
static void name_member(const struct task *task, struct tsr_error *error)
{
    char text[sizeof error->text];
    snprintf(text, sizeof text, "%s", error->text);
    snprintf(error->text, sizeof error->text, "%.100s in %.100s: %.300s", task->member, task->input, text);
}

static void take_result(void *context, const struct tsr_result *result)
{
    struct running *const r = context;
    const struct task *const task = &r->list->tasks[result->index];
    struct outcome *const outcome = &r->outcomes[result->index];
    outcome->status = result->status;
    outcome->report = *result->report;
    outcome->error = *result->error;
    name_flags(&outcome->error);
    if (outcome->status != TSR_OK && task->series) name_member(task, &outcome->error);
    pthread_mutex_lock(&r->lock);
    r->done[result->index] = true;
    r->finished++;
    r->failed += outcome->status != TSR_OK;
    r->bytes_in += outcome->report.bytes_in;
    r->bytes_out += outcome->report.bytes_out;
    report_done(r);
    pthread_mutex_unlock(&r->lock);
}

/* What the library is to do. An output's folder is brought to the disk before the task is reported. */
static struct tsr_task make_task(struct call *call)
{
    const struct running *const r = call->running;
    const struct task *const task = &r->list->tasks[call->index];
    struct tsr_task made = TSR_TASK;
    made.kind = task->status != TSR_OK ? TSR_TASK_CALL : r->work->kind;
    made.call = run_call;
    made.context = call;
    made.source = tsr_from_path(task->input);
    made.reader = task->series;
    made.member = task->number;
    made.sink = tsr_to_path(task->output);
    made.sink.overwrite = r->options->force;
    made.sink.is_bounded = !task->names_output;
    made.sink.root = task->root;
    made.sink.syncs_later = true;
    made.compress = &r->options->compress;
    return made;
}

/* The status of the only task; of several, whether all is well. */
static enum tsr_status exit_status(const struct running *r)
{
    if (r->list->count == 1) return r->outcomes[0].status;
    return r->failed == 0 ? TSR_OK : TSR_ERROR_PARTIAL;
}

uint64_t input_bytes(const struct task_list *list)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < list->count; i++) {
        struct stat status;
        if (list->tasks[i].status == TSR_OK && stat(list->tasks[i].input, &status) == 0)
            bytes += (uint64_t)status.st_size;
    }
    return bytes;
}

/* Of a gigabyte 16 threads' decoders test 2.3 GB/s, an H200's, with its waking, 1.8: so decoding never waits for a GPU
 * that nobody asks for. */
static enum tsr_engine_choice engine_choice(const struct options *options)
{
    const bool is_free = options->engine == TSR_ENGINE_AUTO;
    return is_free && options->verb != VERB_COMPRESS ? TSR_ENGINE_CPU : options->engine;
}

/* While threads open files beyond 64, 128, 256 at once, Linux makes the table of files longer each time, and all that
 * open or close a file wait, 5 to 40 ms, until it is sure that nobody reads the old one. So it gets its length while
 * there is one thread, which need not wait. A file at work takes up to four; of 16 threads' 128 files. */
static void reserve_descriptors(void)
{
    enum { DESCRIPTORS = 1024 };
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
    const rlim_t last = (limit.rlim_cur < DESCRIPTORS ? limit.rlim_cur : DESCRIPTORS) - 1;
    const int high = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, (int)last);
    if (high >= 0) close(high);
}

/* Why the CPU engine works where another one might have. */
static void say_note(const struct options *options, const char *note)
{
    if (options->verbosity >= 0 && note[0] && options->compress.verify == TSR_VERIFY_ENGINE)
        fprintf(stderr, "tessera: the CPU engine works, and verifies: %s\n", note);
    else if (options->verbosity > 0 && note[0] && TSR_WITH_CUDA)
        fprintf(stderr, "tessera: the CPU engine works: %s\n", note);
}

struct tsr_engine *start_engine(const struct options *options, uint64_t bytes, double *seconds, struct tsr_error *error)
{
    struct tsr_engine_options wanted = TSR_ENGINE_OPTIONS;
    struct tsr_engine *engine;
    int numbers[NUMBERS_LIMIT];
    for (int i = 0; i < options->gpus.count; i++) numbers[i] = (int)options->gpus.value[i];
    wanted.choice = engine_choice(options);
    wanted.threads = options->threads;
    wanted.memory_bytes = options->memory;
    wanted.gpus = numbers;
    wanted.gpu_count = options->gpus.count;
    wanted.gpu_memory_bytes = options->gpu_memory;
    wanted.expected_bytes =
        options->compress.verify == TSR_VERIFY_ENGINE ? 0 : bytes; /* then the GPU's decoder is wanted */
    wanted.expected = options->verb == VERB_COMPRESS ? &options->compress : NULL;
    reserve_descriptors();
    handle_signals();
    const double start = wall_seconds();
    const enum tsr_status status = tsr_engine_create(&wanted, &engine, error);
    *seconds = wall_seconds() - start;
    if (status == TSR_OK) say_note(options, tsr_engine_note(engine));
    return engine;
}

/* What a run of tasks allocates. */
struct room {
    struct call *calls;
    struct tsr_task *tasks;
};

static enum tsr_status make_room(struct running *r, struct room *room)
{
    const size_t count = r->list->count;
    r->outcomes = calloc(count, sizeof *r->outcomes);
    r->done = calloc(count + 1, sizeof *r->done);
    room->calls = calloc(count, sizeof *room->calls);
    room->tasks = calloc(count, sizeof *room->tasks);
    if (!r->outcomes || !r->done || !room->calls || !room->tasks) return TSR_ERROR_LIMIT;
    for (size_t i = 0; i < count; i++) {
        room->calls[i] = (struct call){r, i};
        room->tasks[i] = make_task(&room->calls[i]);
    }
    return TSR_OK;
}

static int run_list(struct running *r, struct run_times *times)
{
    const size_t count = r->list->count;
    struct tsr_set_options set = TSR_SET_OPTIONS;
    struct tsr_error error = {TSR_ERROR_LIMIT, TSR_NO_OFFSET, "no memory for this set of files"};
    struct room room = {0};
    enum tsr_status status = make_room(r, &room);
    set.results_at_once = true; /* the reports have a lock of their own, which no thread holds for long */
    r->shows_progress = r->options->verbosity >= 0 && isatty(STDERR_FILENO);
    r->start = wall_seconds();
    if (status == TSR_OK) status = tsr_run_set(r->engine, room.tasks, count, &set, take_result, r, &error);
    if (status == TSR_OK || status == TSR_ERROR_PARTIAL) {
        clear_progress(r);
        times->wall_s = wall_seconds() - r->start;
        tsr_engine_tell_times(r->engine, &times->gpu);
        r->work->summary(r->options, r->list, r->outcomes, times);
        status = exit_status(r);
    } else {
        say_error(&error);
    }
    for (size_t i = 0; r->outcomes && i < count; i++) free(r->outcomes[i].more);
    free(r->outcomes);
    free(r->done);
    free(room.calls);
    free(room.tasks);
    return (int)status;
}

/* What reads .tsr files starts its engine first: to know which of them are series it opens them. */
int run_tasks(const struct options *options, const struct task_work *work)
{
    struct task_list list = {0};
    struct run_times times = {0};
    struct tsr_error error = {TSR_OK, TSR_NO_OFFSET, ""};
    struct running r = {.options = options, .list = &list, .work = work};
    const bool reads_tsr = work->kind == TSR_TASK_RESTORE || work->kind == TSR_TASK_TEST;
    if (reads_tsr) r.engine = start_engine(options, 0, &times.start_s, &error);
    int status = reads_tsr && !r.engine ? (int)error.status : (int)list_tasks(options, r.engine, &list, &error);
    if (status == TSR_OK && !reads_tsr) {
        r.engine = start_engine(options, input_bytes(&list), &times.start_s, &error);
        status = r.engine ? TSR_OK : (int)error.status;
    }
    if (status == TSR_OK) {
        pthread_mutex_init(&r.lock, NULL);
        status = run_list(&r, &times);
        pthread_mutex_destroy(&r.lock);
    } else {
        say_error(&error);
    }
    free_tasks(&list);
    tsr_engine_destroy(r.engine);
    return status;
}
