/* Names that would cost a file: outputs that are inputs, outputs that are each other, manifests that are either. */
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "inputs.h"

static bool fail_task(struct task *task, enum tsr_status status, const char *reason)
{
    task->status = status;
    free(task->reason);
    task->reason = strdup(reason);
    return task->reason != NULL;
}

/* ---- Outputs of two inputs -------------------------------------------------------------------------------- */

static int by_output(const void *a, const void *b)
{
    const struct task *one = *(struct task *const *)a, *other = *(struct task *const *)b;
    const int order = strcmp(one->output, other->output);
    return order ? order : (one > other) - (one < other);
}

static int by_place(const void *a, const void *b)
{
    const struct task *one = *(struct task *const *)a, *other = *(struct task *const *)b;
    const int order = strcmp(one->name, other->name);
    return order ? order : (one > other) - (one < other);
}

/* All but the first that write one output have failed, and, with a manifest, all but the first of one name in it.
 * False: no memory. */
static bool refuse_collisions(const struct options *options, struct task_list *list)
{
    struct task **sorted = malloc((list->count + 1) * sizeof *sorted);
    size_t count = 0;
    bool has_memory = sorted != NULL;
    if (!sorted) return false;
    for (size_t i = 0; i < list->count; i++)
        if (list->tasks[i].output) sorted[count++] = &list->tasks[i];
    qsort(sorted, count, sizeof *sorted, by_output);
    for (size_t i = 1; i < count; i++)
        if (strcmp(sorted[i]->output, sorted[i - 1]->output) == 0)
            has_memory &= fail_task(sorted[i], TSR_ERROR_EXISTS,
                                    "another input of this run has the same output; name their common folder instead");
    count = 0;
    for (size_t i = 0; options->manifest && writes(options) && i < list->count; i++)
        if (list->tasks[i].name && list->tasks[i].status == TSR_OK) sorted[count++] = &list->tasks[i];
    qsort(sorted, count, sizeof *sorted, by_place);
    for (size_t i = 1; i < count; i++)
        if (strcmp(sorted[i]->name, sorted[i - 1]->name) == 0)
            has_memory &= fail_task(sorted[i], TSR_ERROR_EXISTS,
                                    "another input of this run has the same name in the manifest; name their common "
                                    "folder, or write a manifest for each");
    free(sorted);
    return has_memory;
}

/* ---- Outputs that are inputs ------------------------------------------------------------------------------ */

static int by_identity(const void *a, const void *b)
{
    const struct identity *one = a, *other = b;
    if (one->device != other->device) return one->device < other->device ? -1 : 1;
    return (one->inode > other->inode) - (one->inode < other->inode);
}

bool identify(const char *path, struct identity *identity)
{
    struct stat status;
    if (!path || stat(path, &status) != 0) return false;
    *identity = (struct identity){status.st_dev, status.st_ino, path};
    return true;
}

/* The files of a series have one input. */
struct identity *identify_inputs(const struct options *options, const struct task_list *list, size_t *count)
{
    struct identity *const inputs = malloc((list->count + 2) * sizeof *inputs);
    *count = 0;
    if (!inputs) return NULL;
    for (size_t i = 0; i < list->count; i++) {
        const struct task *const task = &list->tasks[i];
        const bool again = i > 0 && task->series && task->series == list->tasks[i - 1].series;
        if (task->descriptor < 0 && !again) *count += identify(task->input, &inputs[*count]);
    }
    *count += identify(options->files_from, &inputs[*count]);
    qsort(inputs, *count, sizeof *inputs, by_identity);
    return inputs;
}

const struct identity *find_identity(const struct identity *wanted, const struct identity *sorted, size_t count)
{
    return bsearch(wanted, sorted, count, sizeof *sorted, by_identity);
}

/* Each task whose output is a file that the run reads has failed: the file would be lost. False: no memory. */
static bool refuse_overwriting(const struct options *options, struct task_list *list)
{
    size_t count;
    struct identity output, *const inputs = identify_inputs(options, list, &count);
    bool has_memory = inputs != NULL;
    char *reason;
    for (size_t i = 0; has_memory && i < list->count; i++) {
        struct task *const task = &list->tasks[i];
        if (task->status != TSR_OK || !identify(options->series ? options->series : task->output, &output)) continue;
        const struct identity *const input = find_identity(&output, inputs, count);
        if (!input) continue;
        if (is_same_file(task->input, output.path))
            has_memory = fail_task(task, TSR_ERROR_SAME_FILE, "the output is the input; name another with -o");
        else if (options->series)
            continue; /* the input that it is says so */
        else if (asprintf(&reason, "its output is %s, which this run reads; name another with -o", output.path) < 0)
            has_memory = false;
        else
            has_memory = fail_task(task, TSR_ERROR_SAME_FILE, reason), free(reason);
    }
    free(inputs);
    return has_memory;
}

/* ---- Manifests -------------------------------------------------------------------------------------------- */

static const char *last_part(const char *path)
{
    const char *const slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

char *manifest_name(const char *path, size_t i)
{
    static const char *const endings[MANIFEST_NAMES] = {"", ".part", ".new"};
    char *name = NULL;
    return asprintf(&name, "%s%s", path, endings[i]) < 0 ? NULL : name;
}

bool begins_as_report(const char *path)
{
    static const char *const beginnings[] = {"<meta name=\"generator\" content=\"tessera", "image,codec,setting,"};
    char head[1024] = "";
    FILE *const file = fopen(path, "r");
    const size_t got = file ? fread(head, 1, sizeof head - 1, file) : 0;
    if (file) fclose(file);
    head[got] = '\0';
    return strstr(head, beginnings[0]) || strncmp(head, beginnings[1], strlen(beginnings[1])) == 0;
}

bool begins_as_manifest(const char *path, bool is_unfinished)
{
    static const char wanted[] = MANIFEST_FIRST_LINE MANIFEST_UNFINISHED;
    char head[sizeof wanted];
    const size_t length = is_unfinished ? sizeof wanted - 1 : sizeof MANIFEST_FIRST_LINE - 1;
    FILE *const file = fopen(path, "r");
    const size_t got = file ? fread(head, 1, length, file) : 0;
    if (file) fclose(file);
    return got == length && memcmp(head, wanted, length) == 0;
}

/* A path without links and dots, though its end, or all of it but the root, is not there. NULL: no memory. */
static char *canonical(const char *path)
{
    char *const head = strdup(path), *whole = NULL, *real;
    if (!head) return NULL;
    size_t length = strlen(head);
    while (!(real = realpath(length > 0 ? head : path[0] == '/' ? "/" : ".", NULL)) && length > 0) {
        while (length > 0 && head[length - 1] == '/') length--;
        while (length > 0 && head[length - 1] != '/') length--;
        head[length] = '\0';
    }
    if (real && asprintf(&whole, "%s/", real) < 0) whole = NULL;
    free(real);
    memcpy(head, path, strlen(path) + 1);
    char *rest = head + length;
    for (const char *part; whole && (part = strsep(&rest, "/"));) {
        char *next = NULL;
        if (!part[0] || strcmp(part, ".") == 0) continue;
        if (asprintf(&next, "%s/%s", whole, part) < 0) next = NULL;
        free(whole);
        whole = next;
    }
    free(head);
    return whole;
}

/* The folder that a name lies in. NULL: no memory. */
static char *folder_of(const char *path)
{
    char *const copy = strdup(path), *const folder = copy ? canonical(dirname(copy)) : NULL;
    free(copy);
    return folder;
}

bool is_same_name(const char *one, const char *other)
{
    if (strcmp(last_part(one), last_part(other)) != 0) return false;
    char *const folder = folder_of(one), *const its = folder_of(other);
    const bool is_same = !folder || !its || strcmp(folder, its) == 0; /* without memory nothing is overwritten */
    free(folder);
    free(its);
    return is_same;
}

/* what: the kind of file, and option the one that names it. */
static enum tsr_status check_written(const struct options *options, const struct task_list *list, const char *name,
                                     const char *what, const char *option, struct tsr_error *error)
{
    bool is_input = options->files_from && is_same_name(name, options->files_from);
    bool is_output = options->series && is_same_name(name, options->series);
    for (size_t i = 0; i < list->count && !is_input && !is_output; i++) {
        const struct task *const task = &list->tasks[i];
        is_input = task->descriptor < 0 && is_same_name(name, task->input);
        is_output = task->output && is_same_name(name, task->output);
    }
    if (!is_input && !is_output) return TSR_OK;
    return refuse(error, TSR_ERROR_SAME_FILE, "the %s would overwrite %s, which this run %s; name another with %s",
                  what, name, is_input ? "reads" : "writes", option);
}

/* A file that a run writes beside its outputs, and what it is called until it is complete. */
static enum tsr_status check_named(const struct options *options, const struct task_list *list, const char *path,
                                   const char *what, const char *option, struct tsr_error *error)
{
    char *part = NULL;
    if (!path) return TSR_OK;
    enum tsr_status status = check_written(options, list, path, what, option, error);
    if (status == TSR_OK && asprintf(&part, "%s.part", path) < 0)
        return refuse(error, TSR_ERROR_LIMIT, "no memory for %s", path);
    if (status == TSR_OK) status = check_written(options, list, part, what, option, error);
    free(part);
    return status;
}

/* The log is open, and no other file of the run's. */
static enum tsr_status check_log(const struct options *options, const struct task_list *list, struct tsr_error *error)
{
    const char *const others[] = {options->manifest, options->page, options->csv};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (others[i] && is_same_name(options->log, others[i]))
            return refuse(error, TSR_ERROR_SAME_FILE, "%s cannot be both the log and another file of this run",
                          options->log);
    return check_written(options, list, options->log, "log", "--log", error);
}

enum tsr_status check_names(const struct options *options, struct task_list *list, struct tsr_error *error)
{
    if (!refuse_collisions(options, list) || !refuse_overwriting(options, list))
        return refuse(error, TSR_ERROR_LIMIT, "no memory for a list of %zu files", list->count);
    enum tsr_status status = TSR_OK;
    for (size_t i = 0; i < MANIFEST_NAMES && options->manifest && writes(options) && status == TSR_OK; i++) {
        char *const name = manifest_name(options->manifest, i);
        status = name ? check_written(options, list, name, "manifest", "--manifest", error)
                      : refuse(error, TSR_ERROR_LIMIT, "no memory for a manifest");
        if (status == TSR_OK && options->page && is_same_name(options->page, name))
            status = refuse(error, TSR_ERROR_SAME_FILE, "%s cannot be both the report and the manifest", options->page);
        free(name);
    }
    if (status == TSR_OK && options->log) status = check_log(options, list, error);
    if (status == TSR_OK) status = check_named(options, list, options->page, "report", "--report or --html", error);
    if (status == TSR_OK) status = check_named(options, list, options->csv, "table", "--csv", error);
    if (status == TSR_OK && options->page && options->csv && is_same_name(options->page, options->csv))
        status = refuse(error, TSR_ERROR_SAME_FILE, "%s cannot be both the report and the table", options->page);
    return status;
}
