/* tessera decompress and export, and tessera test, which writes nothing. */
#include "cli.h"
#include "manifest.h"

static enum tsr_status restore_one(struct tsr_engine *engine, const struct options *options, const struct task *task,
                                   struct outcome *outcome)
{
    const struct tsr_data_source source = source_of(task);
    const struct tsr_data_sink sink = sink_of(options, task);
    if (task->series) return tsr_restore_member(task->series, task->number, &sink, &outcome->report, &outcome->error);
    const enum tsr_status status = tsr_restore(engine, &source, &sink, &outcome->report, &outcome->error);
    if (status != TSR_ERROR_USAGE || task->descriptor < 0) return status;
    return refuse(&outcome->error, status, "%s is a series: write it to a file, and decompress that", task->input);
}

static enum tsr_status export_one(struct tsr_engine *engine, const struct options *options, const struct task *task,
                                  struct outcome *outcome)
{
    const struct tsr_data_source source = source_of(task);
    const struct tsr_data_sink sink = sink_of(options, task);
    struct tsr_error *const error = &outcome->error;
    if (task->series) return tsr_export_member(task->series, task->number, &sink, options->to, &outcome->report, error);
    return tsr_export(engine, &source, &sink, options->to, &outcome->report, error);
}

static enum tsr_status test_one(struct tsr_engine *engine, const struct options *options, const struct task *task,
                                struct outcome *outcome)
{
    const struct tsr_data_source source = source_of(task);
    const enum tsr_status status = task->series
                                       ? tsr_test_member(task->series, task->number, &outcome->report, &outcome->error)
                                       : tsr_test(engine, &source, &outcome->report, &outcome->error);
    return status == TSR_OK && options->manifest ? test_with_manifest(engine, task, &source, outcome) : status;
}

int decompress_verb(const struct options *options)
{
    static const struct task_work work = {true, NULL, restore_one, report_file, report_summary};
    return run_tasks(options, &work);
}

int export_verb(const struct options *options)
{
    static const struct task_work work = {true, NULL, export_one, report_file, report_summary};
    return run_tasks(options, &work);
}

int test_verb(const struct options *options)
{
    static const struct task_work work = {true, NULL, test_one, report_file, report_summary};
    static const struct task_work with_manifest = {true, list_with_manifest, test_one, report_file, report_summary};
    const int status = run_tasks(options, options->manifest ? &with_manifest : &work);
    free_manifest();
    return status;
}
