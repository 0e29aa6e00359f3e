/* tessera compress */
#include "cli.h"

int compress_verb(const struct options *options)
{
    static const struct task_work work = {TSR_TASK_COMPRESS, NULL, report_file, report_summary};
    if (options->series) return compress_to_series(options);
    return run_tasks(options, &work);
}
