/* tessera compress */
#include "cli.h"

static enum tsr_status compress_task(struct tsr_engine *engine, const struct options *options, const struct task *task,
                                     struct outcome *outcome)
{
    struct tsr_compress_options compress = options->compress;
    compress.output = output_options(options, task);
    return tsr_compress_file(engine, task->input, task->output, &compress, &outcome->report, &outcome->error);
}

int compress_verb(const struct options *options)
{
    static const struct task_work work = {compress_task, report_file, report_summary};
    if (options->series) return compress_to_series(options);
    return run_tasks(options, &work);
}
