/* What is said of an output that is there already: that of this very task, or something that may have no other copy. */
#include <string.h>

#include "cli.h"

/* Whether a .tsr that is there is of the input, as --update finds it. */
static bool is_of_input(struct tsr_engine *engine, const struct options *options, const struct task *task)
{
    struct outcome found = {.status = TSR_OK};
    bool is_current = false, replace;
    if (task->descriptor >= 0) return false;
    const enum tsr_status status = check_current(engine, options, task, &is_current, &replace, &found);
    return status == TSR_OK && is_current && !found.is_gone;
}

/* Whether a file that is there has the size and the time of what a .tsr restores. */
static bool is_of_tsr(struct tsr_engine *engine, const struct task *task)
{
    const struct tsr_data_source source = source_of(task);
    struct tsr_info info = TSR_INFO;
    struct tsr_reader *reader = NULL;
    struct tsr_error ignored;
    struct stat made, tsr;
    if (lstat(task->output, &made) != 0 || !S_ISREG(made.st_mode) || stat(task->input, &tsr) != 0) return false;
    if (!task->series && tsr_open(engine, &source, &reader, &ignored) != TSR_OK) return false;
    const bool is_known = task->series ? tsr_read_info(task->series, task->number, &info, &ignored) == TSR_OK
                                       : tsr_reader_content(reader) == TSR_CONTENT_TSR &&
                                             tsr_read_info(reader, 0, &info, &ignored) == TSR_OK;
    tsr_close(reader);
    const struct timespec origin = {(time_t)info.modified_s, (long)info.modified_ns};
    return is_known && (!info.identical || (uint64_t)made.st_size == info.original_bytes) &&
           is_same_time(made.st_mtim, info.has_origin ? origin : tsr.st_mtim);
}

void explain_existing(struct tsr_engine *engine, const struct options *options, const struct task *task,
                      struct outcome *outcome)
{
    struct tsr_error *const error = &outcome->error;
    if (!task->output || task->status != TSR_OK) return;
    if (!strstr(error->text, NOT_OVERWRITTEN)) {
        outcome->may_be_lost = true; /* --update has found something else, and said it */
    } else if (options->verb == VERB_COMPRESS && is_of_input(engine, options, task)) {
        refuse(error, TSR_ERROR_EXISTS, "%s exists and is of this file; --update passes over it, -f makes it again",
               task->output);
    } else if (options->verb == VERB_DECOMPRESS && is_of_tsr(engine, task)) {
        refuse(error, TSR_ERROR_EXISTS, "%s exists, with the size and time of what is in the .tsr; -f overwrites it",
               task->output);
    } else {
        outcome->may_be_lost = true;
        refuse(error, TSR_ERROR_EXISTS,
               "%s exists and may be the only copy of what it holds: rename it, or name another output with -o",
               task->output);
    }
}
