/* tessera decompress, and tessera test, which is the same without outputs. */
#include <stdio.h>

#include "cli.h"

static enum tsr_status restore_task(struct tsr_engine *engine, const struct options *options, const struct task *task,
                                    struct outcome *outcome)
{
    const struct tsr_output_options output = output_options(options, task);
    if (!task->series)
        return tsr_decompress_file(engine, task->input, task->output, &output, &outcome->report, &outcome->error);
    const enum tsr_status status = tsr_series_restore(engine, task->series, task->number, task->output, &output,
                                                      &outcome->report, &outcome->error);
    if (status != TSR_OK) { /* which of them */
        char text[sizeof outcome->error.text];
        snprintf(text, sizeof text, "%s", outcome->error.text);
        snprintf(outcome->error.text, sizeof outcome->error.text, "%.100s in %.100s: %.300s", task->member, task->input,
                 text);
    }
    return status;
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
