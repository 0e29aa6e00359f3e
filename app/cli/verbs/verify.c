/* tessera verify ORIGINALS ARCHIVE: compares what every .tsr restores with its original, byte by byte. */
#include <stdlib.h>
#include <string.h>

#include "app/cli/cli.h"
#include "app/cli/evidence/evidence.h"
#include "app/cli/inputs/inputs.h"

static int by_place(const void *a, const void *b)
{
    return strcmp((*(struct task *const *)a)->name, (*(struct task *const *)b)->name);
}

/* The tasks of a list that have a place, by it; also those that cannot be read. NULL: no memory. */
static struct task **sort_by_place(const struct task_list *list, size_t *count)
{
    struct task **const sorted = malloc((list->count + 1) * sizeof *sorted);
    *count = 0;
    for (size_t i = 0; sorted && i < list->count; i++)
        if (list->tasks[i].name) sorted[(*count)++] = &list->tasks[i];
    if (sorted && *count > 0) qsort(sorted, *count, sizeof *sorted, by_place);
    return sorted;
}

/* One side of the comparison: all files below what was named. */
static enum tsr_status list_side(const struct options *options, int side, enum verb verb, struct tsr_engine *engine,
                                 struct task_list *list, struct tsr_error *error)
{
    struct options one = *options;
    one.verb = verb;
    one.in.names = options->in.names + side;
    one.in.count = 1;
    one.in.recursive = true;
    one.out.path = NULL;
    one.in.takes_tsr = verb == VERB_COMPARE;
    const enum tsr_status status = list_tasks(&one, engine, list, error);
    if (status == TSR_ERROR_NO_INPUT) name_file(error, one.in.names[0], NULL);
    return status;
}

/* What the pairing of two lists has found. */
struct pairing {
    struct task_list *originals, *archive;
    bool is_single; /* one file each was named: whatever they are called, they belong together */
};

/* Gives each .tsr its original, and notes which originals have no .tsr. False: no memory. */
static bool pair(const struct pairing *p)
{
    size_t count, members;
    struct task **const sorted = sort_by_place(p->originals, &count),
                        **const made = sort_by_place(p->archive, &members);
    bool has_memory = sorted && made;
    for (size_t i = 0, k = 0; has_memory && (i < count || k < members);) {
        const int order = i == count     ? 1
                          : k == members ? -1
                          : p->is_single ? 0
                                         : strcmp(sorted[i]->name, made[k]->name);
        if (order < 0) {
            sorted[i++]->is_orphan = true;
        } else if (order > 0) {
            k++;
        } else {
            made[k]->original = strdup(sorted[i]->input);
            has_memory = made[k]->original != NULL;
            made[k++]->bytes = sorted[i++]->bytes;
        }
    }
    free(sorted);
    free(made);
    return has_memory;
}

/* What the archive holds that cannot be read. */
struct unread {
    bool any;       /* and of which it is not known what file it is of */
    bool names_all; /* all originals without a .tsr can be the files of series whose names are lost: those failures are
                       these originals' */
};

static struct unread count_unread(const struct task_list *archive, const struct task_list *originals)
{
    size_t failed = 0, lost = 0, covered = 0;
    for (size_t i = 0; i < archive->count; i++) {
        failed += archive->tasks[i].status != TSR_OK && !archive->tasks[i].original;
        lost += archive->tasks[i].lost_in != NULL;
    }
    for (size_t i = 0; lost > 0 && i < originals->count; i++) {
        const struct task *const task = &originals->tasks[i];
        covered += task->is_orphan && task->status == TSR_OK && may_be_lost(archive, task->name);
    }
    return (struct unread){failed > 0, covered <= lost};
}

/* Originals without a .tsr become tasks that have failed, but for the archive's own files, which may lie among the
 * originals, and for those of which another task says that they cannot be read. False: no memory. */
static bool add_orphans(struct walk *walk, const struct task_list *originals)
{
    struct tsr_file_set *const own = collect_inputs(walk->options, walk->list);
    const struct unread unread = count_unread(walk->list, originals);
    const char *const reason =
        unread.any ? "the archive has no .tsr of it that can be read" : "the archive has no .tsr of it";
    const size_t listed = walk->list->count;
    for (size_t i = 0; own && i < originals->count; i++) {
        const struct task *const task = &originals->tasks[i];
        const struct task_list archive = {.tasks = walk->list->tasks, .count = listed};
        if (task->name && !task->is_orphan) continue;
        if (task->status != TSR_OK) /* it could not be read */
            add_task(walk, strdup(task->input), NULL, NULL, task->status, task->reason);
        else if (!tsr_file_set_find(own, task->input, NULL) && !(unread.names_all && may_be_lost(&archive, task->name)))
            add_task(walk, strdup(task->input), NULL, NULL, TSR_ERROR_VERIFY, reason);
    }
    tsr_file_set_destroy(own);
    return own && !walk->no_memory;
}

/* Whether the archive is a folder that has this one below it. */
static bool has_folder(const char *archive, const char *name)
{
    char *const path = join(archive, name);
    const bool is_there = path && is_folder(path);
    free(path);
    return is_there;
}

/* Whether the .tsr files are on the side of the originals, and what they restore is on the other one. */
static bool looks_swapped(const struct options *options, const struct task_list *originals,
                          const struct task_list *archive)
{
    const char *const first = options->in.names[0], *const second = options->in.names[1];
    if (!is_folder(first))
        return has_tsr_suffix(first) && (is_folder(second) ? archive->count == 0 : !has_tsr_suffix(second));
    for (size_t i = 0; i < archive->count; i++)
        if (archive->tasks[i].original) return false; /* some belong together as they are named */
    bool is_swapped = false;
    for (size_t i = 0; i < originals->count && !is_swapped; i++) {
        struct stat status;
        const char *const name = originals->tasks[i].name;
        char *const path = name && has_tsr_suffix(name) ? join(second, name) : NULL;
        if (path) path[strlen(path) - strlen(".tsr")] = '\0';
        is_swapped = path && stat(path, &status) == 0 && S_ISREG(status.st_mode);
        free(path);
    }
    return is_swapped;
}

static enum tsr_status list_pairs(const struct options *options, struct tsr_engine *engine, struct task_list *list,
                                  struct tsr_error *error)
{
    struct task_list originals = {0};
    struct walk walk = {.options = options, .list = list};
    enum tsr_status status = list_side(options, 0, VERB_COMPARE, NULL, &originals, error);
    if (status == TSR_OK) status = list_side(options, 1, VERB_TEST, engine, list, error);
    const bool is_single = status == TSR_OK && originals.count == 1 && list->count == 1 && !list->tasks[0].series &&
                           !is_folder(options->in.names[0]) && !is_folder(options->in.names[1]);
    const struct pairing pairing = {&originals, list, is_single};
    if (status == TSR_OK && !(pair(&pairing) && add_orphans(&walk, &originals)))
        status = refuse(error, TSR_ERROR_LIMIT, "no memory for a list of %zu files", list->count);
    if ((status == TSR_OK || status == TSR_ERROR_NO_INPUT) && looks_swapped(options, &originals, list))
        status = refuse(error, TSR_ERROR_USAGE,
                        "the originals come first, and %s is the archive: tessera verify %s %s would compare them",
                        options->in.names[0], options->in.names[1], options->in.names[0]);
    for (size_t i = 0; status == TSR_OK && i < originals.folder_count; i++)
        if (!has_folder(options->in.names[1], originals.folders[i].output))
            add_task(&walk, join(options->in.names[0], originals.folders[i].output), NULL, NULL, TSR_ERROR_VERIFY,
                     "the archive does not have this empty folder");
    for (size_t i = 0; status == TSR_OK && i < originals.skipped_count; i++)
        add_skipped(&walk, originals.skipped[i].path, originals.skipped[i].reason);
    free_tasks(&originals);
    list->in_set = list->count;
    return status;
}

static enum tsr_status verify_one(struct tsr_engine *engine, const struct options *options, const struct task *task,
                                  struct outcome *outcome)
{
    const struct tsr_data_source source = tsr_of(task);
    struct file_hashes *hashes = NULL;
    if ((options->talk.json || options->report.page) && !(outcome->more = hashes = calloc(1, sizeof *hashes)))
        return refuse(&outcome->error, TSR_ERROR_LIMIT, "no memory for the hashes of %s", task->input);
    if (!task->original) {
        const enum tsr_status status = test_one(engine, options, task, outcome);
        return status == TSR_OK ? refuse(&outcome->error, TSR_ERROR_VERIFY, "there is no original of it") : status;
    }
    outcome->is_compared = true;
    return compare_with_original(engine, &source, task->series, task->number, task->original, &outcome->report, hashes,
                                 &outcome->error);
}

int verify_verb(const struct options *options)
{
    static const struct task_work work = {true,           list_pairs, verify_one,  report_file,
                                          report_summary, NULL,       prepare_file};
    if (options->in.count != 2) return usage("%s", "verify takes two names: ORIGINALS and ARCHIVE");
    return run_tasks(options, &work);
}
