/* What is said of an output that is there already: that of this very task, or something that may have no other copy. */
#include <string.h>

#include "app/cli/cli.h"

/* Whether a .tsr that is there is of the input, as --update finds it. */
static bool is_of_input(struct tsr_engine *engine, const struct options *options, const struct task *task)
{
    struct outcome found = {.status = TSR_OK};
    bool is_current = false, replace;
    if (task->descriptor >= 0) return false;
    const enum tsr_status status = check_current(engine, options, task, &is_current, &replace, &found);
    return status == TSR_OK && is_current && !found.is_gone;
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
    } else if (options->verb == VERB_DECOMPRESS && is_restored(engine, task, UPDATE_BY_TIME, NULL)) {
        refuse(error, TSR_ERROR_EXISTS,
               "%s exists, with the size and time of what is in the .tsr; --update passes over it, -f overwrites it",
               task->output);
    } else {
        outcome->may_be_lost = true;
        refuse(error, TSR_ERROR_EXISTS,
               "%s exists and may be the only copy of what it holds: rename it, or name another output with -o",
               task->output);
    }
}
