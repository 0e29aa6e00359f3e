/* Failures that many files share; see repeated.h. */
#include "repeated.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Most files with a sentence each, and most causes that are told apart. Failures of other causes are all said. */
enum { NAMED = 3, CAUSES = 32 };

/* What is said of those that are not named: of one file, and of more. */
struct words {
    const char *one, *more;
};

static const struct words of_this_made = {"output exists; --update passes over it, -f makes it again",
                                          "outputs exist; --update passes over them, -f makes them again"};
static const struct words of_this = {"output exists; -f overwrites it", "outputs exist; -f overwrites them"};
static const struct words only_copy = {"output exists and may be the only copy of what it holds",
                                       "outputs exist and may be the only copies of what they hold"};
static const struct words another_runs = {"output has appeared since this run began, and is left as it is",
                                          "outputs have appeared since this run began, and are left as they are"};
static const struct words elsewhere = {"output would be in a folder that is another one now",
                                       "outputs would be in a folder that is another one now"};
static const struct words taken = {"input has an output, or a name in the manifest, that is taken by this run",
                                   "inputs have an output, or a name in the manifest, that is taken by this run"};
static const struct words no_module = {"file needs Tessera's module for DICOM",
                                       "files need Tessera's module for DICOM"};

/* Its words; or, where they are NULL, the system's for a failure. */
struct cause {
    const struct words *words;
    enum tsr_status status;
    char reason[120];
    size_t files;
};

static struct {
    struct cause causes[CAUSES];
    size_t count;
} counted;

bool has_update(const struct options *options)
{
    return options->verb == VERB_COMPRESS || options->verb == VERB_DECOMPRESS;
}

bool is_another_runs(const struct options *options, const struct task *task)
{
    return task->status == TSR_OK && task->output && !task->existed &&
           (options->out.force || options->archive.update != UPDATE_OFF);
}

static const struct words *words_of(const struct options *options, const struct task *task,
                                    const struct outcome *outcome)
{
    const bool exists = outcome->status == TSR_ERROR_EXISTS;
    if (exists && is_another_runs(options, task)) return &another_runs;
    if (task->status == TSR_ERROR_EXISTS || task->status == TSR_ERROR_SAME_FILE) return &taken;
    if (exists && outcome->may_be_lost) return &only_copy;
    if (exists) return has_update(options) ? &of_this_made : &of_this;
    if (outcome->status == TSR_ERROR_WRITE && outcome->error.system == ESTALE) return &elsewhere;
    return lacks_module(&outcome->error) ? &no_module : NULL;
}

/* The cause of a failure, with those that are known or as a new one. NULL: it is of this file alone. */
static struct cause *find_cause(const struct options *options, const struct task *task, const struct outcome *outcome)
{
    struct cause cause = {.words = words_of(options, task, outcome)};
    if (!cause.words && outcome->error.system == 0) return NULL;
    if (!cause.words) {
        cause.status = outcome->status;
        snprintf(cause.reason, sizeof cause.reason, "%s", strerror(outcome->error.system));
    }
    for (size_t i = 0; i < counted.count; i++) {
        struct cause *const known = &counted.causes[i];
        if (known->words == cause.words && known->status == cause.status && strcmp(known->reason, cause.reason) == 0)
            return known;
    }
    if (counted.count == CAUSES) return NULL;
    counted.causes[counted.count] = cause;
    return &counted.causes[counted.count++];
}

void count_failure(const struct options *options, const struct task *task, struct outcome *outcome)
{
    struct cause *const cause = find_cause(options, task, outcome);
    const size_t named = cause && cause->words == &no_module ? 1 : NAMED;
    if (cause) outcome->is_counted = options->talk.verbosity <= 0 && cause->files++ >= named;
}

void say_counted(void)
{
    for (size_t i = 0; i < counted.count; i++) {
        const struct cause *const cause = &counted.causes[i];
        const size_t named = cause->words == &no_module ? 1 : NAMED,
                     more = cause->files > named ? cause->files - named : 0;
        if (more == 0) continue;
        if (cause->words)
            fprintf(stderr, "tessera: %zu more %s\n", more, more == 1 ? cause->words->one : cause->words->more);
        else
            fprintf(stderr, "tessera: %zu more file%s: %s: %s\n", more, plural(more), tsr_status_name(cause->status),
                    cause->reason);
    }
    counted.count = 0;
}
