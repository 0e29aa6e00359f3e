/* tessera compress --series: all inputs to one file. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"

struct steps {
    size_t files;
    double start, last;
    bool shown;
};

/* "files, MB/s, ratio", at most ten times a second: of the files that are written, then of those that are proven. */
static void show_step(void *context, uint32_t done, uint64_t bytes_in, uint64_t bytes_out)
{
    struct steps *s = context;
    const double now = wall_seconds(), elapsed = now - s->start;
    if (!s->shown || now - s->last < 0.1 || elapsed <= 0) return;
    s->last = now;
    if (done <= s->files)
        fprintf(stderr, "\r\033[K%u/%zu files  %.1f MB/s  ratio %.2f", done, s->files, (double)bytes_in / 1e6 / elapsed,
                (double)bytes_in / (double)(bytes_out ? bytes_out : 1));
    else
        fprintf(stderr, "\r\033[K%zu/%zu files proven", done - s->files, s->files);
    fflush(stderr);
}

/* One that failed, or the series as a whole: its sentence, and nothing else. */
static int report_failure(const struct options *options, const struct task *task, struct outcome *outcome)
{
    if (task)
        report_file(options, task, outcome);
    else
        say_error(&outcome->error);
    return (int)outcome->status;
}

static enum tsr_status write_series(struct tsr_engine *engine, const struct options *options, struct task_list *list,
                                    struct tsr_report *reports, uint32_t *failed, struct tsr_error *error)
{
    struct steps steps = {list->count, wall_seconds(), 0, options->verbosity >= 0 && isatty(STDERR_FILENO)};
    struct tsr_series_options series = TSR_SERIES_OPTIONS;
    struct tsr_data_sink sink = tsr_to_path(options->series);
    struct tsr_series_file *files = malloc(list->count * sizeof *files);
    uint64_t bytes = 0;
    series.compress = &options->compress;
    series.progress = show_step;
    series.context = &steps;
    sink.overwrite = options->force;
    enum tsr_status status = files && list->count <= INT32_MAX ? TSR_OK : refuse(error, TSR_ERROR_LIMIT, "no memory");
    for (size_t i = 0; files && i < list->count; i++)
        files[i] = (struct tsr_series_file){tsr_from_path(list->tasks[i].input), list->tasks[i].member};
    if (status == TSR_OK)
        status =
            tsr_compress_series(engine, files, (uint32_t)list->count, &sink, &series, reports, &bytes, failed, error);
    name_flags(error);
    if (steps.shown) fprintf(stderr, "\r\033[K");
    list->shared_bytes = bytes;
    for (size_t i = 0; status == TSR_OK && i < list->count; i++) list->shared_bytes -= reports[i].bytes_out;
    free(files);
    return status;
}

static int compress_list(const struct options *options, struct task_list *list)
{
    struct outcome whole = {.status = TSR_ERROR_LIMIT};
    whole.error = (struct tsr_error){TSR_ERROR_LIMIT, TSR_NO_OFFSET, "no memory for this set of files"};
    for (size_t i = 0; i < list->count; i++) {
        const struct task *task = &list->tasks[i];
        if (task->status == TSR_OK) continue;
        whole.status = refuse(&whole.error, task->status, "%s: %s", task->input,
                              task->reason ? task->reason : tsr_status_name(task->status));
        return report_failure(options, task, &whole);
    }
    struct tsr_report *reports = calloc(list->count, sizeof *reports);
    if (reports) reports->size = sizeof *reports;
    struct outcome *outcomes = calloc(list->count, sizeof *outcomes);
    struct run_times times = {0};
    struct tsr_engine *engine =
        reports && outcomes ? start_engine(options, input_bytes(list), &times.start_s, &whole.error) : NULL;
    const double start = wall_seconds();
    uint32_t failed = (uint32_t)list->count;
    if (engine)
        whole.status = write_series(engine, options, list, reports, &failed, &whole.error);
    else
        whole.status = whole.error.status;
    if (whole.status != TSR_OK) {
        report_failure(options, failed < list->count ? &list->tasks[failed] : NULL, &whole);
    } else {
        for (size_t i = 0; i < list->count; i++) {
            outcomes[i].report = reports[i];
            report_file(options, &list->tasks[i], &outcomes[i]);
        }
        times.wall_s = wall_seconds() - start;
        tsr_engine_tell_times(engine, &times.gpu);
        report_summary(options, list, outcomes, &times);
    }
    tsr_engine_destroy(engine);
    free(reports);
    free(outcomes);
    return (int)whole.status;
}

int compress_to_series(const struct options *options)
{
    struct task_list list;
    struct tsr_error error = {TSR_OK, TSR_NO_OFFSET, ""};
    int status = (int)list_tasks(options, NULL, &list, &error);
    if (status == TSR_OK)
        status = compress_list(options, &list);
    else
        say_error(&error);
    free_tasks(&list);
    return status;
}
