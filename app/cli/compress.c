/* tessera compress */
#include <stdio.h>

#include "cli.h"

static enum tsr_status compress_task(struct tsr_engine *engine, const struct options *options, const struct task *task,
                                     struct outcome *outcome)
{
    return tsr_compress_file(engine, task->input, task->output, &options->compress, &outcome->report, &outcome->error);
}

int compress_verb(const struct options *options)
{
    struct task_list list;
    struct tsr_error error;
    int status = list_tasks(options, &list, &error);
    if (status == TSR_OK)
        status = run_tasks(options, &list, compress_task);
    else
        say_error(&error);
    free_tasks(&list);
    return status;
}
