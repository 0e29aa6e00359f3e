/* tessera compress --series: all inputs to one file. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/cli/cli.h"
#include "app/cli/evidence/evidence.h"
#include "app/cli/progress.h"

struct steps {
    const struct task_list *list;
    uint64_t all_bytes;
};

/* Files that are written, then those that are proven: a file is done when it is both. */
static void show_step(void *context, uint32_t done, uint64_t bytes_in, uint64_t bytes_out)
{
    const struct steps *const s = context;
    struct progress now = {.all_files = s->list->count, .all_bytes = s->all_bytes};
    now.files = done / 2;
    now.bytes = now.bytes_in = bytes_in;
    now.bytes_out = bytes_out;
    progress_show(&now);
}

static enum tsr_status write_series(struct tsr_engine *engine, const struct options *options, struct task_list *list,
                                    struct tsr_report *reports, uint32_t *failed, struct tsr_error *error)
{
    struct steps steps = {list, input_bytes(list)};
    struct tsr_series_options series = TSR_SERIES_OPTIONS;
    struct tsr_data_sink sink = tsr_to_path(options->series.path);
    struct tsr_series_file *files = malloc(list->count * sizeof *files);
    uint64_t bytes = 0;
    series.compress = &options->coding.compress;
    series.without_times = options->series.no_times;
    series.progress = show_step;
    series.context = &steps;
    sink.overwrite = options->out.force;
    sink.written = options->out.written;
    sink.key = key_to_write(options);
    enum tsr_status status = files && list->count <= INT32_MAX ? TSR_OK : refuse(error, TSR_ERROR_LIMIT, "no memory");
    for (size_t i = 0; files && i < list->count; i++) {
        struct task *const task = &list->tasks[i];
        struct stat was = {0};
        if (lstat(task->input, &was) == 0) task->was = state_of(&was);
        files[i] = (struct tsr_series_file){source_to_compress(options, task), task->member};
    }
    progress_begin(options);
    if (status == TSR_OK)
        status =
            tsr_compress_series(engine, files, (uint32_t)list->count, &sink, &series, reports, &bytes, failed, error);
    progress_end(NULL);
    if (status == TSR_ERROR_EXISTS && strstr(error->text, NOT_OVERWRITTEN))
        refuse(error, status,
               "%s exists and may be the only copy of what it holds: rename it, or name another --series",
               options->series.path);
    name_flags(error);
    list->shared_bytes = bytes;
    for (size_t i = 0; status == TSR_OK && i < list->count; i++) list->shared_bytes -= reports[i].bytes_out;
    free(files);
    return status;
}

/* ---- Inputs that cannot be read ---------------------------------------------------------------------------- */

/* Says what is wrong with an input, which then leaves the list. */
static void drop_task(const struct options *options, struct task_list *list, size_t i, enum tsr_status status,
                      struct tsr_error *error)
{
    struct outcome outcome = {.status = status, .error = *error};
    struct task dropped = list->tasks[i];
    name_file(&outcome.error, dropped.input, NULL);
    report_file(options, &dropped, &outcome);
    memmove(&list->tasks[i], &list->tasks[i + 1], (--list->count - i) * sizeof *list->tasks);
    free_task(&dropped);
}

/* Inputs of which it is known that they cannot be taken. TSR_OK: none, or they are dropped. *failed: which is not. */
static enum tsr_status check_inputs(const struct options *options, struct task_list *list, uint32_t *failed,
                                    struct tsr_error *error)
{
    for (size_t i = 0; i < list->count;) {
        const struct task *const task = &list->tasks[i];
        if (task->status == TSR_OK) {
            i++;
            continue;
        }
        const enum tsr_status status = refuse_task(error, task);
        *failed = (uint32_t)i;
        if (!options->series.skip_unreadable) return status;
        drop_task(options, list, i, status, error);
    }
    *failed = UINT32_MAX;
    return list->count > 0 ? TSR_OK : refuse(error, TSR_ERROR_NO_INPUT, "none of the inputs can be read");
}

/* Again without each input that turns out to be unreadable, if that is wanted. */
static enum tsr_status write_readable(struct tsr_engine *engine, const struct options *options, struct task_list *list,
                                      struct tsr_report *reports, uint32_t *failed, struct tsr_error *error)
{
    for (;;) {
        const enum tsr_status status = write_series(engine, options, list, reports, failed, error);
        if (status == TSR_OK) return find_referrers(options, engine, list, error);
        if (*failed >= list->count) return status;
        name_file(error, list->tasks[*failed].input, NULL);
        if (status != TSR_ERROR_READ || !options->series.skip_unreadable || list->count == 1) return status;
        drop_task(options, list, *failed, status, error);
    }
}

/* What is said of the files. status: of the series; failed: the file that it failed with, or a number that none has.
 * dropped: inputs that could not be read. */
static struct tally report_files(const struct options *options, const struct task_list *list,
                                 const struct tsr_report *reports, size_t dropped, uint32_t failed,
                                 const struct tsr_error *error, enum tsr_status status)
{
    struct tally tally = {.files = list->count + dropped, .failed = dropped, .not_taken = list->skipped_count};
    tally.only = tally.ended = status;
    for (size_t i = 0; i < list->count && status == TSR_OK; i++) {
        struct outcome outcome = {.report = reports[i]};
        judge_original(options, list, &list->tasks[i], &outcome);
        report_file(options, &list->tasks[i], &outcome);
    }
    tally.unproven = unproven_files();
    tally.damaged = damaged_files();
    if (status == TSR_OK) return tally;
    const bool is_one = failed < list->count;
    const struct outcome outcome = {.status = status, .error = *error};
    if (is_one)
        report_file(options, &list->tasks[failed], &outcome);
    else
        say_error(error);
    tally.failed += is_one;
    tally.left = list->count - is_one;
    return tally;
}

static int compress_list(const struct options *options, struct task_list *list)
{
    struct tsr_error error = {TSR_ERROR_LIMIT, TSR_NO_OFFSET, "no memory for this set of files", 0}, unwritten;
    const size_t wanted = list->count;
    struct run_times times = {0};
    uint32_t failed = UINT32_MAX;
    enum tsr_status status = options->report.page ? begin_evidence(options, &error) : TSR_OK;
    if (status == TSR_OK) status = check_inputs(options, list, &failed, &error);
    struct tsr_report *reports = status == TSR_OK ? calloc(list->count, sizeof *reports) : NULL;
    if (reports) reports->size = sizeof *reports;
    struct tsr_engine *engine = reports ? start_engine(options, input_bytes(list), &times.start_s, &error) : NULL;
    const double start = wall_seconds();
    note_series(options->series.path);
    if (engine)
        status = write_readable(engine, options, list, reports, &failed, &error);
    else if (status == TSR_OK)
        status = error.status;
    note_series(NULL);
    struct tally tally = report_files(options, list, reports, wanted - list->count, failed, &error, status);
    tally.unwritten = end_evidence(options, list, &tally, failed < list->count ? NULL : error.text, &unwritten);
    if (tally.unwritten != TSR_OK) say_error(&unwritten);
    times.wall_s = wall_seconds() - start;
    if (engine) tsr_engine_tell_times(engine, &times.gpu);
    report_summary(options, list, &times, &tally);
    drop_evidence();
    tsr_engine_destroy(engine);
    free(reports);
    return (int)verdict_status(&tally);
}

int compress_to_series(const struct options *options)
{
    struct task_list list;
    struct tsr_error error = {TSR_OK, TSR_NO_OFFSET, "", 0};
    int status = (int)list_tasks(options, NULL, &list, &error);
    say_unmatched(&options->in);
    if (status == TSR_OK)
        status = compress_list(options, &list);
    else
        end_unbegun(options, &list, &error);
    free_tasks(&list);
    return status;
}
