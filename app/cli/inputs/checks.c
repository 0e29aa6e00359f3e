/* Names that would cost a file: outputs that are inputs, outputs that are each other, manifests that are either. */
#include <ctype.h>
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
            has_memory &= fail_task(sorted[i], TSR_ERROR_SAME_FILE,
                                    "another input of this run has the same output; name their common folder instead");
    count = 0;
    for (size_t i = 0; options->report.manifest && writes(options) && i < list->count; i++)
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

/* ---- Outputs that are folders of others ------------------------------------------------------------------- */

/* What a run makes: the file of a task, or a folder without files. */
struct made {
    const char *output;
    struct task *task; /* NULL: it is a folder */
};

/* A slash comes before all other bytes: what is in a folder follows its name. */
static int by_path(const void *a, const void *b)
{
    const unsigned char *one = (const unsigned char *)((const struct made *)a)->output;
    const unsigned char *other = (const unsigned char *)((const struct made *)b)->output;
    while (*one && *one == *other) one++, other++;
    const int byte = *one == '/' ? 1 : *one ? *one + 1 : 0, its = *other == '/' ? 1 : *other ? *other + 1 : 0;
    return byte - its;
}

/* Whether a path is a folder, or lies in it. */
static bool needs_folder(const struct made *made, const char *folder)
{
    const size_t length = strlen(folder);
    if (strncmp(made->output, folder, length) != 0) return false;
    return made->output[length] == '/' || (!made->task && !made->output[length]);
}

static bool fail_folder(struct task *task, const struct made *other)
{
    char *reason;
    if (asprintf(
            &reason,
            "its output %s is a file, and %s%s needs a folder of that name; rename one of the two inputs, or leave "
            "one out with --exclude",
            task->output, other->output, other->task ? "" : "/") < 0)
        return false;
    const bool has_memory = fail_task(task, TSR_ERROR_SAME_FILE, reason);
    free(reason);
    return has_memory;
}

/* Tasks have failed whose outputs are folders of other outputs, whichever would be made first. False: no memory. */
static bool refuse_folders(struct task_list *list)
{
    struct made *const made = malloc((list->count + list->folder_count + 1) * sizeof *made);
    size_t count = 0;
    bool has_memory = made != NULL;
    if (!made) return false;
    for (size_t i = 0; i < list->folder_count; i++) made[count++] = (struct made){list->folders[i].output, NULL};
    for (size_t i = 0; i < list->count; i++)
        if (list->tasks[i].output && list->tasks[i].status == TSR_OK)
            made[count++] = (struct made){list->tasks[i].output, &list->tasks[i]};
    qsort(made, count, sizeof *made, by_path);
    for (size_t i = 0; i < count && has_memory; i++) {
        size_t next = i + 1; /* its own folder may stand on either side of a file */
        if (next == count || !needs_folder(&made[next], made[i].output)) next = i > 0 ? i - 1 : i;
        if (made[i].task && needs_folder(&made[next], made[i].output))
            has_memory = fail_folder(made[i].task, &made[next]);
    }
    free(made);
    return has_memory;
}

/* ---- Outputs that are inputs ------------------------------------------------------------------------------ */

/* What the outputs of a run must not be. */
struct known {
    struct tsr_file_set *inputs;
    struct tsr_file_set *outputs; /* those that exist */
};

/* --rm would remove an original by one of its paths that is to be read by the other one. A file of several links stays
 * by the others. */
static bool refuse_second_path(struct task *task, const struct stat *status, const char *first)
{
    struct stat link;
    char *reason;
    const bool is_one = first && status->st_nlink == 1 && strcmp(first, task->input) != 0 &&
                        lstat(task->input, &link) == 0 && S_ISREG(link.st_mode);
    if (!is_one || task->status != TSR_OK) return true;
    if (asprintf(&reason, "it is the file %s, which this run removes; name it once", first) < 0) return false;
    const bool has_memory = fail_task(task, TSR_ERROR_SAME_FILE, reason);
    free(reason);
    return has_memory;
}

/* The key of a run is none of its files: an archive that holds the key that opens it is closed for ever, once --rm has
 * removed the key. */
static bool refuse_key(const struct options *options, struct task *task, const struct stat *status)
{
    if (options->verb != VERB_COMPRESS || !is_key_file(status)) return true;
    return fail_task(task, TSR_ERROR_SAME_FILE,
                     "it is the key of this run, which stays out of what it opens: keep it elsewhere, or leave it out "
                     "with --exclude");
}

struct tsr_file_set *collect_inputs(const struct options *options, struct task_list *list)
{
    struct tsr_file_set *const inputs = tsr_file_set_create();
    bool has_memory = inputs != NULL;
    for (size_t i = 0; has_memory && i < list->count; i++) {
        struct task *const task = &list->tasks[i];
        const bool again = i > 0 && task->series && task->series == list->tasks[i - 1].series;
        struct stat status;
        if (task->descriptor >= 0 || again || stat(task->input, &status) != 0) continue;
        const struct tsr_file_state state = state_of(&status);
        has_memory = refuse_key(options, task, &status);
        if (has_memory && options->archive.removes)
            has_memory = refuse_second_path(task, &status, tsr_file_set_find(inputs, task->input, &state));
        has_memory = has_memory && tsr_file_set_add(inputs, task->input, &state, NULL) == TSR_OK;
    }
    struct stat status;
    if (has_memory && options->in.files_from && stat(options->in.files_from, &status) == 0)
        has_memory = tsr_file_set_add(inputs, options->in.files_from, NULL, NULL) == TSR_OK;
    if (has_memory && key_file()) has_memory = tsr_file_set_add(inputs, key_file(), NULL, NULL) == TSR_OK;
    if (has_memory) return inputs;
    tsr_file_set_destroy(inputs);
    return NULL;
}

/* A task has failed whose output is a file that the run reads: the file would be lost. False: no memory. */
static bool refuse_overwriting(const struct options *options, struct task *task, const char *output, const char *input)
{
    char *reason;
    if (strcmp(input, task->input) == 0)
        return fail_task(task, TSR_ERROR_SAME_FILE, "the output is the input; name another with -o");
    const bool is_key = key_file() && strcmp(input, key_file()) == 0;
    if (options->series.path && !is_key) return true; /* the input that it is says so */
    if (asprintf(&reason, "its output is %s, which this run reads; name another with -o", output) < 0) return false;
    const bool has_memory = fail_task(task, TSR_ERROR_SAME_FILE, reason);
    free(reason);
    return has_memory;
}

static bool fail_twin(struct task *task, const char *other)
{
    char *reason;
    if (asprintf(&reason, "its output %s and another one, %s, are one file here; write one of them to another folder",
                 task->output, other) < 0)
        return false;
    const bool has_memory = fail_task(task, TSR_ERROR_SAME_FILE, reason);
    free(reason);
    return has_memory;
}

/* Two tasks have failed whose outputs exist and are one file: nobody knows which of them it is of, and another process
 * may work on the other one. first: the output of the one that was looked at before. False: no memory. */
static bool refuse_twins(struct task_list *list, size_t second, const char *first)
{
    bool has_memory = true;
    for (size_t i = 0; i < list->count && has_memory; i++) {
        struct task *const task = &list->tasks[i];
        if (i != second && task->status == TSR_OK && task->output && strcmp(task->output, first) == 0)
            has_memory = fail_twin(task, list->tasks[second].output);
    }
    return has_memory && fail_twin(&list->tasks[second], first);
}

/* A .tsr that stands in an output's place is not left as it is. */
static void count_place(struct task_list *list, const char *output, const struct tsr_file_state *state)
{
    if (!list->tsr_seen || !tsr_file_set_find(list->tsr_seen, output, state)) return;
    list->tsr_files--;
}

/* The output of a task that was not there when it was looked at, if it is the same file as one that was: another
 * process has made it in between. */
static const char *late_twin(const struct task *task, const struct known *known)
{
    struct stat status;
    if (task->status != TSR_OK || !task->output || task->existed) return NULL;
    if (lstat(task->output, &status) != 0 || !S_ISREG(status.st_mode) || status.st_nlink != 1) return NULL;
    const struct tsr_file_state state = state_of(&status);
    return tsr_file_set_find(known->outputs, task->output, &state);
}

/* Looks at all outputs that exist. False: no memory. */
static bool look_at_outputs(const struct options *options, struct task_list *list, const struct known *known)
{
    bool has_memory = true, are_there = false;
    for (size_t i = 0; has_memory && i < list->count; i++) {
        struct task *const task = &list->tasks[i];
        const char *const output = options->series.path ? options->series.path : task->output;
        struct stat status;
        if (task->status != TSR_OK || !output || stat(output, &status) != 0) continue;
        const struct tsr_file_state state = state_of(&status);
        const char *const input = tsr_file_set_find(known->inputs, output, &state);
        /* Two names of one file may be links, which outputs do not replace for each other. */
        const bool is_single = S_ISREG(status.st_mode) && status.st_nlink == 1 && !options->series.path;
        const char *const other = is_single ? tsr_file_set_find(known->outputs, output, &state) : NULL;
        task->existed = are_there = true;
        if (input) has_memory = refuse_overwriting(options, task, output, input);
        if (!input && other) has_memory = refuse_twins(list, i, other);
        if (input || other) continue;
        if (!S_ISREG(status.st_mode)) continue;
        count_place(list, output, &state);
        has_memory = tsr_file_set_add(known->outputs, output, &state, NULL) == TSR_OK;
    }
    for (size_t i = 0; has_memory && are_there && !options->series.path && i < list->count; i++) {
        const char *const other = late_twin(&list->tasks[i], known);
        if (other) has_memory = refuse_twins(list, i, other);
    }
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

static bool has_accents(const char *name)
{
    while (*name && isascii((unsigned char)*name)) name++;
    return *name != '\0';
}

bool is_same_name(const char *one, const char *other)
{
    const char *const name = last_part(one), *const its_name = last_part(other);
    if (strcmp(name, its_name) != 0) /* some file systems do not tell case and forms of letters apart */
        return (strcasecmp(name, its_name) == 0 || (has_accents(name) && has_accents(its_name))) &&
               is_same_file(one, other);
    char *const folder = folder_of(one), *const its = folder_of(other);
    const bool is_same = !folder || !its || strcmp(folder, its) == 0; /* without memory nothing is overwritten */
    free(folder);
    free(its);
    return is_same;
}

/* what: the kind of file, and option the one that names it. */
static enum tsr_status check_written(const struct options *options, const struct task_list *list,
                                     const struct known *known, const char *name, const char *what, const char *option,
                                     struct tsr_error *error)
{
    bool is_input = tsr_file_set_find(known->inputs, name, NULL) != NULL;
    bool is_output = (options->series.path && is_same_name(name, options->series.path)) ||
                     tsr_file_set_find(known->outputs, name, NULL) != NULL;
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
static enum tsr_status check_named(const struct options *options, const struct task_list *list,
                                   const struct known *known, const char *path, const char *what, const char *option,
                                   struct tsr_error *error)
{
    char *part = NULL;
    if (!path) return TSR_OK;
    enum tsr_status status = check_written(options, list, known, path, what, option, error);
    if (status == TSR_OK && asprintf(&part, "%s.part", path) < 0)
        return refuse(error, TSR_ERROR_LIMIT, "no memory for %s", path);
    if (status == TSR_OK) status = check_written(options, list, known, part, what, option, error);
    free(part);
    return status;
}

/* The log is open, and no other file of the run's. */
static enum tsr_status check_log(const struct options *options, const struct task_list *list, const struct known *known,
                                 struct tsr_error *error)
{
    const char *const others[] = {options->report.manifest, options->report.page, options->report.csv};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (others[i] && is_same_name(options->talk.log, others[i]))
            return refuse(error, TSR_ERROR_SAME_FILE, "%s cannot be both the log and another file of this run",
                          options->talk.log);
    return check_written(options, list, known, options->talk.log, "log", "--log", error);
}

static enum tsr_status check_manifest(const struct options *options, const struct task_list *list,
                                      const struct known *known, struct tsr_error *error)
{
    enum tsr_status status = TSR_OK;
    for (size_t i = 0; i < MANIFEST_NAMES && status == TSR_OK; i++) {
        char *const name = manifest_name(options->report.manifest, i);
        status = name ? check_written(options, list, known, name, "manifest", "--manifest", error)
                      : refuse(error, TSR_ERROR_LIMIT, "no memory for a manifest");
        if (status == TSR_OK && options->report.page && is_same_name(options->report.page, name))
            status = refuse(error, TSR_ERROR_SAME_FILE, "%s cannot be both the report and the manifest",
                            options->report.page);
        free(name);
    }
    return status;
}

/* With --salvage each task has a second output: the name of the picture with another ending. False: no memory. */
static bool name_masks(const struct options *options, struct task_list *list)
{
    for (size_t i = 0; options->picture.salvages && i < list->count; i++) {
        struct task *const task = &list->tasks[i];
        if (!task->output || task->mask) continue;
        const char *const dot = strrchr(last_part(task->output), '.');
        const int stem = dot ? (int)(dot - task->output) : (int)strlen(task->output);
        if (asprintf(&task->mask, "%.*s.mask.pgm", stem, task->output) < 0) task->mask = NULL;
        if (!task->mask) return false;
    }
    return true;
}

/* A second output that exists may be a file that the run reads, or its key. False: no memory. */
static bool look_at_masks(const struct options *options, struct task_list *list, const struct known *known)
{
    bool has_memory = true;
    for (size_t i = 0; has_memory && i < list->count; i++) {
        struct task *const task = &list->tasks[i];
        struct stat status;
        if (task->status != TSR_OK || !task->mask || stat(task->mask, &status) != 0) continue;
        const struct tsr_file_state state = state_of(&status);
        const char *const input = tsr_file_set_find(known->inputs, task->mask, &state);
        if (input) has_memory = refuse_overwriting(options, task, task->mask, input);
    }
    return has_memory;
}

static enum tsr_status check_files(const struct options *options, struct task_list *list, struct known *known,
                                   struct tsr_error *error)
{
    known->outputs = tsr_file_set_create();
    const bool has_twins = options->verb != VERB_COMPRESS || find_twins(list);
    const bool has_memory = has_twins && refuse_collisions(options, list) && (!writes(options) || refuse_folders(list));
    known->inputs = has_memory ? collect_inputs(options, list) : NULL;
    if (!known->inputs || !known->outputs || !look_at_outputs(options, list, known) || !name_masks(options, list) ||
        !look_at_masks(options, list, known))
        return refuse(error, TSR_ERROR_LIMIT, "no memory for a list of %zu files", list->count);
    enum tsr_status status = TSR_OK;
    if (options->report.manifest && writes(options)) status = check_manifest(options, list, known, error);
    if (status == TSR_OK && options->talk.log) status = check_log(options, list, known, error);
    if (status == TSR_OK)
        status = check_named(options, list, known, options->report.page, "report", "--report or --html", error);
    if (status == TSR_OK) status = check_named(options, list, known, options->report.csv, "table", "--csv", error);
    if (status == TSR_OK && options->report.page && options->report.csv &&
        is_same_name(options->report.page, options->report.csv))
        status = refuse(error, TSR_ERROR_SAME_FILE, "%s cannot be both the report and the table", options->report.page);
    return status;
}

enum tsr_status check_names(const struct options *options, struct task_list *list, struct tsr_error *error)
{
    struct known known = {0};
    const enum tsr_status status = check_files(options, list, &known, error);
    tsr_file_set_destroy(known.inputs);
    tsr_file_set_destroy(known.outputs);
    return status;
}

enum tsr_status check_not_written(const struct options *options, const char *path, struct tsr_error *error)
{
    const char *const other = tsr_file_set_find(options->out.written, path, NULL);
    if (!other) return TSR_OK;
    return refuse(error, TSR_ERROR_SAME_FILE,
                  "%.180s is not written: it is the file %.180s, which this run has written", path, other);
}
