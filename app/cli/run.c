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

#include "transform/status.h"
#include "kernels/pool/thread_pool.h"
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
        while (r->done[end]) end++; /* behind the last task stands one that is never done */
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

static void run_task(void *context, unsigned index)
{
    struct running *r = context;
    const struct task *task = &r->list->tasks[index];
    struct outcome *outcome = &r->outcomes[index];
    outcome->error.offset = TSR_NO_OFFSET;
    outcome->status = task->status;
    if (task->status != TSR_OK) {
        tsr_fail(&outcome->error, task->status, "%s: %s", task->input,
                 task->reason ? task->reason : tsr_status_name(task->status));
    } else {
        outcome->status = r->work->work(r->engine, r->options, task, outcome);
    }
    pthread_mutex_lock(&r->lock);
    r->done[index] = true;
    r->finished++;
    r->failed += outcome->status != TSR_OK;
    r->bytes_in += outcome->report.bytes_in;
    r->bytes_out += outcome->report.bytes_out;
    report_done(r);
    pthread_mutex_unlock(&r->lock);
}

/* The status of the only task; of several, whether all is well. */
static int exit_status(const struct running *r)
{
    if (r->list->count == 1) return (int)r->outcomes[0].status;
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

/* A GPU takes 0.4 s to wake and to be left. On an H200's machine, 16 threads compress 470 MB/s at -5, with the GPU
 * 2000: it is ahead after some 240 MB, or so much for each thread. Of a gigabyte their decoders test 2.3 GB/s, the
 * GPU's, with its waking, 1.8: so decoding never waits for it, unless --verify cuda asks for its decoder. */
static enum tsr_engine_choice engine_choice(const struct options *options, uint64_t bytes)
{
    enum { WORTH_OF_THREAD = 16000000 };
    const int threads = options->threads > 0 ? options->threads : tsr_available_threads();
    const bool helps = options->verb == VERB_COMPRESS &&
                       (bytes >= (uint64_t)threads * WORTH_OF_THREAD || options->compress.verify == TSR_VERIFY_ENGINE);
    return options->engine == TSR_ENGINE_AUTO && !helps ? TSR_ENGINE_CPU : options->engine;
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

struct tsr_engine *start_engine(const struct options *options, uint64_t bytes, double *seconds, struct tsr_error *error)
{
    int numbers[NUMBERS_LIMIT];
    const struct tsr_coding *const coding = options->verb == VERB_COMPRESS ? &options->compress.coding : NULL;
    const struct tsr_gpu_choice gpus = {numbers, options->gpus.count, options->gpu_memory, coding};
    for (int i = 0; i < gpus.count; i++) numbers[i] = (int)options->gpus.value[i];
    reserve_descriptors();
    handle_signals();
    const double start = wall_seconds();
    struct tsr_engine *engine = tsr_engine_create_on(engine_choice(options, bytes), &gpus, options->threads, error);
    *seconds = wall_seconds() - start;
    if (!engine) return NULL;
    const struct tsr_error why = *error;
    if (tsr_engine_limit_memory(engine, options->memory, error) != TSR_OK) {
        tsr_engine_destroy(engine);
        return NULL;
    }
    *error = why;
    if (options->verbosity >= 0 && error->text[0] && options->compress.verify == TSR_VERIFY_ENGINE)
        fprintf(stderr, "tessera: the CPU engine works, and verifies: %s\n", error->text);
    else if (options->verbosity > 0 && error->text[0] && TSR_WITH_CUDA)
        fprintf(stderr, "tessera: the CPU engine works: %s\n", error->text);
    return engine;
}

static int run_list(const struct options *options, const struct task_list *list, const struct task_work *work)
{
    struct running r = {0};
    r.options = options;
    r.list = list;
    r.work = work;
    struct tsr_error error = {TSR_ERROR_LIMIT, TSR_NO_OFFSET, ""};
    struct run_times times = {0};
    r.engine = start_engine(options, input_bytes(list), &times.start_s, &error);
    r.outcomes = calloc(list->count, sizeof *r.outcomes);
    r.done = calloc(list->count + 1, sizeof *r.done);
    r.shows_progress = options->verbosity >= 0 && isatty(STDERR_FILENO);
    pthread_mutex_init(&r.lock, NULL);
    int status = TSR_ERROR_LIMIT;
    if (r.engine && r.outcomes && r.done && list->count <= UINT32_MAX) {
        r.start = wall_seconds();
        tsr_pool_run_tasks(r.engine->pool, run_task, &r, (unsigned)list->count);
        clear_progress(&r);
        times.wall_s = wall_seconds() - r.start;
        tsr_engine_tell_times(r.engine, &times.gpu);
        work->summary(options, list, r.outcomes, &times);
        status = exit_status(&r);
    } else {
        if (r.engine) tsr_fail(&error, TSR_ERROR_LIMIT, "no memory for this set of files");
        say_error(&error);
        status = (int)error.status;
    }
    for (size_t i = 0; r.outcomes && i < list->count; i++) free(r.outcomes[i].more);
    pthread_mutex_destroy(&r.lock);
    tsr_engine_destroy(r.engine);
    free(r.outcomes);
    free(r.done);
    return status;
}

int run_tasks(const struct options *options, const struct task_work *work)
{
    struct task_list list;
    struct tsr_error error;
    error.offset = TSR_NO_OFFSET;
    int status = (int)list_tasks(options, &list, &error);
    if (status == TSR_OK)
        status = run_list(options, &list, work);
    else
        say_error(&error);
    free_tasks(&list);
    return status;
}
