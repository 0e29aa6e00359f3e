/* tessera decompress, and tessera test, which is the same without outputs. */
#include "cli.h"

int decompress_verb(const struct options *options)
{
    static const struct task_work work = {TSR_TASK_RESTORE, NULL, report_file, report_summary};
    return run_tasks(options, &work);
}

int test_verb(const struct options *options)
{
    static const struct task_work work = {TSR_TASK_TEST, NULL, report_file, report_summary};
    return run_tasks(options, &work);
}
