/* tessera decompress, tessera test */
#include "cli.h"

static enum tsr_status restore_task(struct tsr_engine *engine, const struct options *options, const struct task *task,
                                    struct outcome *outcome)
{
    return tsr_decompress_file(engine, task->input, task->output, options->force, &outcome->report, &outcome->error);
}

static int restore(const struct options *options)
{
    struct task_list list;
    struct tsr_error error;
    int status = list_tasks(options, &list, &error);
    if (status == TSR_OK)
        status = run_tasks(options, &list, restore_task);
    else
        say_error(&error);
    free_tasks(&list);
    return status;
}

int decompress_verb(const struct options *options)
{
    return restore(options);
}

int test_verb(const struct options *options)
{
    return restore(options); /* without outputs */
}
