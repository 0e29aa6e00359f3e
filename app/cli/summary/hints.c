/* What a summary says of a better way; see hints.h. */
#include "hints.h"

/* Outputs that are looked at, at most: evenly over the list. */
enum { LOOKED_AT = 4096, LEAST_FILES = 16, LEAST_WASTE = 1000000, BLOCK = 512 };

void hint_at_series(const struct options *options, const struct task_list *list)
{
    const bool is_possible = options->verb == VERB_COMPRESS && !options->series.path && !options->archive.removes &&
                             options->archive.update == UPDATE_OFF && options->in.shards == 0 &&
                             !options->report.manifest;
    const size_t step = list->count / LOOKED_AT + 1;
    double files = 0, bytes = 0, disk = 0;
    if (!is_possible || list->count < LEAST_FILES) return;
    for (size_t i = 0; i < list->count; i += step) {
        const struct task *const task = &list->tasks[i];
        struct stat status;
        if (task->status != TSR_OK || !task->output || stat(task->output, &status) != 0) continue;
        files += (double)step;
        bytes += (double)step * (double)status.st_size;
        disk += (double)step * BLOCK * (double)status.st_blocks;
    }
    if (files < LEAST_FILES || disk < 2 * bytes || disk - bytes < LEAST_WASTE) return;
    talk("  %.1f MB of .tsr files take %.1f MB of blocks on the disk; --series OUT.tsr makes one file of them\n",
         bytes / 1e6, disk / 1e6);
}
