/* tessera decompress, and tessera test, which is the same without outputs. */
#include "cli.h"

static enum tsr_status restore_task(struct tsr_engine *engine, const struct options *options, const struct task *task,
                                    struct outcome *outcome)
{
    return tsr_decompress_file(engine, task->input, task->output, options->force, &outcome->report, &outcome->error);
}

int decompress_verb(const struct options *options)
{
    static const struct task_work work = {restore_task, report_file, report_summary};
    return run_tasks(options, &work);
}

int test_verb(const struct options *options)
{
    return decompress_verb(options);
}
