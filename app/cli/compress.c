/* tessera compress: a .tsr file for each input. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "manifest.h"

/* Where the output waits until it is whole and proven, if it cannot wait under a name of its own. */
static const char *temporary_folder(void)
{
    const char *const named = getenv("TMPDIR");
    return named && named[0] ? named : "/tmp";
}

struct tsr_data_source source_of(const struct task *task)
{
    struct tsr_data_source source =
        task->descriptor >= 0 ? tsr_from_descriptor(task->descriptor) : tsr_from_path(task->input);
    source.name = task->input;
    return source;
}

struct tsr_data_sink sink_of(const struct options *options, const struct task *task)
{
    struct tsr_data_sink sink = task->to_stdout ? tsr_to_descriptor(STDOUT_FILENO) : tsr_to_path(task->output);
    sink.temporary = temporary_folder();
    sink.overwrite = options->force;
    sink.is_bounded = !task->names_output;
    sink.root = task->root;
    sink.syncs_later = true;
    return sink;
}

/* What is there already is the work's result; --rm wants it compared again, since nothing else was done to prove it. */
static enum tsr_status keep_current(struct tsr_engine *engine, const struct options *options, const struct task *task,
                                    struct outcome *outcome)
{
    const struct tsr_data_source made = tsr_from_path(task->output);
    outcome->is_current = true;
    if (!options->removes || outcome->input.st_nlink == 0) return TSR_OK;
    outcome->is_compared = true;
    return compare_with_original(engine, &made, NULL, 0, task->input, &outcome->report, &outcome->error);
}

/* The output has appeared since check_current looked for it: it counts if it is of this file. */
static enum tsr_status take_their_output(struct tsr_engine *engine, const struct options *options,
                                         const struct task *task, struct outcome *outcome)
{
    const struct tsr_error exists = outcome->error;
    bool is_current, replace;
    const enum tsr_status status = check_current(engine, options, task, &is_current, &replace, outcome);
    if (status == TSR_OK && is_current) return keep_current(engine, options, task, outcome);
    outcome->error = exists;
    return TSR_ERROR_EXISTS;
}

static enum tsr_status compress_one(struct tsr_engine *engine, const struct options *options, const struct task *task,
                                    struct outcome *outcome)
{
    const struct tsr_data_source source = source_of(task);
    struct tsr_data_sink sink = sink_of(options, task);
    bool is_current = false, replace = false;
    if (options->removes && lstat(task->input, &outcome->input) != 0) outcome->input.st_nlink = 0;
    enum tsr_status status = TSR_OK;
    if (options->update != UPDATE_OFF && task->output)
        status = check_current(engine, options, task, &is_current, &replace, outcome);
    sink.overwrite |= replace;
    if (status == TSR_OK && is_current)
        status = keep_current(engine, options, task, outcome);
    else if (status == TSR_OK)
        status = tsr_compress(engine, &source, &sink, &options->compress, &outcome->report, &outcome->error);
    if (status == TSR_ERROR_EXISTS && options->update != UPDATE_OFF) /* another process has made it meanwhile */
        status = take_their_output(engine, options, task, outcome);
    if (status == TSR_OK && options->manifest) status = hash_for_manifest(engine, task, &source, outcome);
    return status;
}

int compress_verb(const struct options *options)
{
    static const struct task_work work = {false, NULL, compress_one, report_with_manifest, report_summary};
    if (options->dry_run) return dry_run(options);
    if (options->series) return compress_to_series(options);
    struct tsr_error error;
    if (options->manifest && begin_manifest(options, &error) != TSR_OK) {
        say_error(&error);
        return (int)error.status;
    }
    const int status = run_tasks(options, &work);
    if (!options->manifest) return status;
    if (end_manifest(status == TSR_OK || status == TSR_ERROR_PARTIAL, &error) == TSR_OK) return status;
    say_error(&error);
    return status == TSR_OK ? (int)error.status : status;
}
