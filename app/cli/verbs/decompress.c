/* tessera decompress, cat and export, and tessera test, which writes nothing. */
#include <errno.h>
#include <signal.h>

#include "app/cli/cli.h"
#include "manifest.h"

static struct tsr_data_source source_to_read(const struct options *options, const struct task *task)
{
    struct tsr_data_source source = tsr_of(task);
    source.base = options->in.base;
    return source;
}

static enum tsr_status refuse_base(struct outcome *outcome)
{
    return refuse(&outcome->error, TSR_ERROR_USAGE, "%s", "the files of a series have no base");
}

/* --region: the picture of a rectangle. */
static enum tsr_status write_region(struct tsr_engine *engine, const struct options *options, const struct task *task,
                                    struct outcome *outcome)
{
    const struct picture_options *const p = &options->picture;
    const struct tsr_data_source source = source_to_read(options, task);
    const struct tsr_data_sink sink = sink_of(options, task);
    struct tsr_reader *opened = NULL;
    if (task->series && source.base) return refuse_base(outcome);
    enum tsr_status status = check_picture_name(task, &outcome->error);
    if (status == TSR_OK && !task->series) status = tsr_open(engine, &source, &opened, &outcome->error);
    struct tsr_reader *const reader = task->series ? task->series : opened;
    if (status == TSR_OK && tsr_reader_content(reader) == TSR_CONTENT_ORIGINAL)
        status = refuse(&outcome->error, TSR_ERROR_NOT_TSR, "%s is not a .tsr file", task->input);
    if (status == TSR_OK)
        status = tsr_write_region(reader, task->series ? task->number : 0, &p->region, p->frame, p->is_frame ? 1 : 0,
                                  p->form, &sink, &outcome->report, &outcome->error);
    tsr_close(opened);
    return status;
}

enum tsr_status restore_one(struct tsr_engine *engine, const struct options *options, const struct task *task,
                            struct outcome *outcome)
{
    const struct tsr_data_source source = source_to_read(options, task);
    const struct tsr_data_sink sink = sink_of(options, task);
    const bool may_be_done = options->archive.update != UPDATE_OFF && task->output && task->descriptor < 0;
    if (options->picture.is_region) return write_region(engine, options, task, outcome);
    outcome->is_current = may_be_done && is_restored(engine, task, options->archive.update, &outcome->report);
    if (outcome->is_current) return TSR_OK;
    if (task->series && source.base) return refuse_base(outcome);
    if (task->series) return tsr_restore_member(task->series, task->number, &sink, &outcome->report, &outcome->error);
    const enum tsr_status status = tsr_restore(engine, &source, &sink, &outcome->report, &outcome->error);
    if (status != TSR_ERROR_USAGE || task->descriptor < 0) return status;
    return refuse(&outcome->error, status, "%s is a series: write it to a file, and decompress that", task->input);
}

static enum tsr_status export_one(struct tsr_engine *engine, const struct options *options, const struct task *task,
                                  struct outcome *outcome)
{
    const struct tsr_data_source source = source_to_read(options, task);
    const struct tsr_data_sink sink = sink_of(options, task);
    struct tsr_error *const error = &outcome->error;
    if (task->series && source.base) return refuse_base(outcome);
    if (task->series)
        return tsr_export_member(task->series, task->number, &sink, options->to.syntax, &outcome->report, error);
    return tsr_export(engine, &source, &sink, options->to.syntax, &outcome->report, error);
}

enum tsr_status test_one(struct tsr_engine *engine, const struct options *options, const struct task *task,
                         struct outcome *outcome)
{
    const struct tsr_data_source source = source_to_read(options, task);
    if (task->series && source.base) return refuse_base(outcome);
    const enum tsr_status status = task->series
                                       ? tsr_test_member(task->series, task->number, &outcome->report, &outcome->error)
                                       : tsr_test(engine, &source, &outcome->report, &outcome->error);
    return status == TSR_OK && options->report.manifest ? test_with_manifest(engine, task, &source, outcome) : status;
}

int decompress_verb(const struct options *options)
{
    if (options->picture.salvages) return salvage_files(options);
    static const struct task_work work = {true, NULL, restore_one, report_file, report_summary, NULL, prepare_file};
    return run_tasks(options, &work);
}

/* ---- cat --------------------------------------------------------------------------------------------------- */

/* The status of a process that SIGPIPE has ended: nobody reads any more, and no sentence is due. */
enum { CLOSED_PIPE = 128 + SIGPIPE };

/* One file after the other, each proven before its first byte leaves. After one that fails, the others follow. */
static int cat_tasks(struct tsr_engine *engine, const struct options *options, struct task_list *list)
{
    struct tally tally = {.files = list->count};
    enum tsr_status status = TSR_OK;
    for (size_t i = 0; i < list->count; i++) {
        struct task *const task = &list->tasks[i];
        struct outcome outcome = {.report = TSR_REPORT, .error = {TSR_OK, TSR_NO_OFFSET, "", 0}};
        task->to_stdout = true;
        if (task->status == TSR_OK)
            status = restore_one(engine, options, task, &outcome);
        else
            status = refuse(&outcome.error, task->status, "%s", task->reason ? task->reason : "it cannot be taken");
        if (status == TSR_OK) continue;
        if (status == TSR_ERROR_WRITE && outcome.error.system == EPIPE) return CLOSED_PIPE;
        name_flags(&outcome.error);
        name_file(&outcome.error, task->input, task->member);
        say_error(&outcome.error);
        if (status == TSR_ERROR_WRITE) return (int)status; /* what follows would stand in another's place */
        tally.failed++;
        tally.only = status;
    }
    return (int)verdict_status(&tally);
}

int cat_verb(const struct options *options)
{
    struct task_list list = {0};
    struct tsr_error error = {TSR_OK, TSR_NO_OFFSET, "", 0};
    double seconds;
    struct tsr_engine *const engine = start_engine(options, 0, &seconds, &error);
    int status = engine ? (int)list_tasks(options, engine, &list, &error) : (int)error.status;
    say_unmatched(&options->in);
    if (status == TSR_OK)
        status = cat_tasks(engine, options, &list);
    else
        say_error(&error);
    free_tasks(&list);
    tsr_engine_destroy(engine);
    return status;
}

/* ---- export and test --------------------------------------------------------------------------------------- */

int export_verb(const struct options *options)
{
    static const struct task_work work = {true, NULL, export_one, report_file, report_summary, NULL, prepare_file};
    return run_tasks(options, &work);
}

int test_verb(const struct options *options)
{
    static const struct task_work work = {true, NULL, test_one, report_file, report_summary, NULL, prepare_file};
    static const struct task_work with_manifest = {true, list_with_manifest, test_one, report_file, report_summary,
                                                   NULL, prepare_file};
    const int status = run_tasks(options, options->report.manifest ? &with_manifest : &work);
    free_manifest();
    return status;
}
