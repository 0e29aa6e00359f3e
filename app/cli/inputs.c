/* Which files a command line names, and where their outputs go. */
#include <dirent.h>
#include <errno.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli.h"

static const char suffix[] = ".tsr";

static bool has_suffix(const char *name)
{
    const size_t length = strlen(name), tail = sizeof suffix - 1;
    return length > tail && strcmp(name + length - tail, suffix) == 0;
}

static char *join(const char *folder, const char *name)
{
    char *path = NULL;
    const size_t length = strlen(folder);
    const bool slash = length == 0 || folder[length - 1] == '/';
    return asprintf(&path, "%s%s%s", folder, slash ? "" : "/", name) < 0 ? NULL : path;
}

static char *base_name(const char *path)
{
    char *copy = strdup(path), *name = copy ? strdup(basename(copy)) : NULL;
    if (name && (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)) { /* these would lead out of the output's folder */
        free(name);
        free(copy);
        copy = realpath(path, NULL);
        name = copy ? strdup(basename(copy)) : NULL;
    }
    free(copy);
    return name;
}

/* The output's name for an input's name: with .tsr, or without it; in a series, the same. */
static char *output_name(const struct options *options, const char *name)
{
    const enum verb verb = options->verb;
    char *result = NULL;
    if (options->series) return strdup(name);
    if (verb == VERB_COMPRESS) return asprintf(&result, "%s%s", name, suffix) < 0 ? NULL : result;
    if (verb != VERB_DECOMPRESS) return NULL;
    if (has_suffix(name)) return strndup(name, strlen(name) - (sizeof suffix - 1));
    return asprintf(&result, "%s.restored", name) < 0 ? NULL : result;
}

static bool writes(const struct options *options)
{
    return options->verb == VERB_COMPRESS || options->verb == VERB_DECOMPRESS;
}

/* What the walk through the inputs knows. */
struct walk {
    const struct options *options;
    struct tsr_engine *engine; /* that opens what may be a series, or NULL */
    struct task_list *list;
    size_t root; /* of the outputs' names: a folder that the user has named */
    bool no_memory;
};

/* A task; takes over input and output. With a reason it has failed already. */
static struct task *add_task(struct walk *walk, char *input, char *output, enum tsr_status status, const char *reason)
{
    struct task_list *list = walk->list;
    if (list->count == list->capacity) {
        const size_t capacity = list->capacity ? 2 * list->capacity : 64;
        struct task *grown = realloc(list->tasks, capacity * sizeof *grown);
        if (grown) {
            list->tasks = grown;
            list->capacity = capacity;
        }
    }
    if (list->count == list->capacity || !input) {
        walk->no_memory = true;
        free(input);
        free(output);
        return NULL;
    }
    struct task *task = &list->tasks[list->count++];
    *task = (struct task){.input = input, .output = output, .root = walk->root, .status = status};
    if (reason) task->reason = strdup(reason);
    if (reason && !task->reason) walk->no_memory = true;
    return task;
}

/* ---- Series that are inputs ------------------------------------------------------------------------------- */

/* A file of a series, below the folder where those of the series go; output: where this one goes instead, or NULL. */
static void add_member(struct walk *walk, const char *path, struct tsr_reader *series, uint32_t k, const char *folder,
                       const char *output)
{
    const char *name = tsr_reader_name(series, k);
    if (!name) {
        struct tsr_info info = TSR_INFO;
        struct tsr_error error = {TSR_ERROR_CORRUPT, TSR_NO_OFFSET, ""};
        const enum tsr_status status = tsr_read_info(series, k, &info, &error);
        add_task(walk, strdup(path), NULL, status == TSR_OK ? TSR_ERROR_CORRUPT : status, error.text);
        return;
    }
    char *below = writes(walk->options) ? output ? strdup(output) : join(folder, name) : NULL;
    if (writes(walk->options) && !below) walk->no_memory = true;
    struct task *task = add_task(walk, strdup(path), below, TSR_OK, NULL);
    if (!task) return;
    task->series = series;
    task->number = k;
    task->names_output = output != NULL;
    task->member = strdup(name);
    if (!task->member) walk->no_memory = true;
}

static bool keep_series(struct task_list *list, struct tsr_reader *series)
{
    struct tsr_reader **grown = realloc(list->series, (list->series_count + 1) * sizeof *grown);
    if (!grown) return false;
    list->series = grown;
    list->series[list->series_count++] = series;
    return true;
}

/* The files of an input that is a series, to be restored below folder; or the one that is wanted, to output (NULL:
 * below folder, too). False if it is none. */
static bool add_series(struct walk *walk, const char *path, const char *folder, const char *output)
{
    const char *wanted = walk->options->member;
    struct tsr_reader *series = NULL;
    size_t found = 0;
    if (!walk->engine) return false;
    struct tsr_error error = {TSR_OK, TSR_NO_OFFSET, ""};
    const struct tsr_data_source source = tsr_from_path(path);
    const enum tsr_status status = tsr_open(walk->engine, &source, &series, &error);
    if (status != TSR_OK) {
        name_flags(&error);
        add_task(walk, strdup(path), NULL, status, error.text);
        return true;
    }
    const enum tsr_content content = tsr_reader_content(series);
    if (content != TSR_CONTENT_SERIES) {
        tsr_close(series);
        if (content == TSR_CONTENT_ORIGINAL || !wanted) return false;
        add_task(walk, strdup(path), NULL, TSR_ERROR_USAGE,
                 "it is not a series, and --member names a file of a series");
        return true;
    }
    if (!keep_series(walk->list, series)) {
        tsr_close(series);
        walk->no_memory = true;
        return true;
    }
    for (uint32_t k = 0; k < tsr_reader_members(series); k++) {
        const char *name = tsr_reader_name(series, k);
        if (wanted && (!name || strcmp(name, wanted) != 0)) continue;
        add_member(walk, path, series, k, folder, wanted ? output : NULL);
        found++;
    }
    if (found == 0) {
        char *reason = NULL;
        if (asprintf(&reason, "it has no file that is called %s", wanted) < 0) reason = NULL;
        if (!reason) walk->no_memory = true;
        add_task(walk, strdup(path), NULL, TSR_ERROR_NO_INPUT, reason);
        free(reason);
    }
    return true;
}

/* ---- Files and folders ------------------------------------------------------------------------------------ */

/* A file; folder is where its output goes, NULL: beside it. */
static void add_file(struct walk *walk, const char *path, const char *folder)
{
    char *name = base_name(path), *output = NULL;
    char *output_base = name && writes(walk->options) ? output_name(walk->options, name) : NULL;
    if (!name || (writes(walk->options) && !output_base)) walk->no_memory = true;
    if (output_base) {
        if (folder) {
            output = join(folder, output_base);
        } else {
            char *copy = strdup(path);
            output = copy ? (strchr(path, '/') ? join(dirname(copy), output_base) : strdup(output_base)) : NULL;
            free(copy);
        }
        if (!output) walk->no_memory = true;
    }
    free(output_base);
    free(name);
    if (add_series(walk, path, output, NULL)) {
        free(output);
        return;
    }
    const bool in_series = walk->options->series;
    struct task *task = add_task(walk, strdup(path), in_series ? NULL : output, TSR_OK, NULL);
    if (in_series && task)
        task->member = output;
    else if (in_series)
        free(output);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Names in a folder. */
struct names {
    char **name;
    size_t count, capacity;
};

static bool keep_name(struct names *names, const char *name)
{
    if (names->count == names->capacity) {
        const size_t capacity = names->capacity ? 2 * names->capacity : 64;
        char **grown = realloc(names->name, capacity * sizeof *grown);
        if (!grown) return false;
        names->name = grown;
        names->capacity = capacity;
    }
    names->name[names->count] = strdup(name);
    return names->name[names->count] && ++names->count;
}

static void free_names(struct names *names)
{
    for (size_t i = 0; i < names->count; i++) free(names->name[i]);
    free(names->name);
}

/* All names in a folder, sorted; errno where it cannot be read to its end, 0 where it was. */
static int read_folder(const char *path, struct names *names)
{
    DIR *folder = opendir(path);
    int reason = folder ? 0 : errno;
    *names = (struct names){0};
    while (folder && reason == 0) {
        errno = 0;
        const struct dirent *entry = readdir(folder);
        if (!entry) {
            reason = errno;
            break;
        }
        if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..")) continue;
        if (!keep_name(names, entry->d_name)) reason = ENOMEM;
    }
    if (folder) closedir(folder);
    if (names->count > 0) qsort(names->name, names->count, sizeof *names->name, by_name);
    return reason;
}

static bool is_same_file(const char *path, const char *other)
{
    struct stat one, two;
    return path && stat(path, &one) == 0 && stat(other, &two) == 0 && one.st_dev == two.st_dev &&
           one.st_ino == two.st_ino;
}

/* Whether a file of a folder is an input. Beside their inputs, the outputs of an earlier run are not inputs of this
 * one. */
static bool is_wanted(const struct options *options, const char *path, const char *name)
{
    if (options->series) return !is_same_file(path, options->series);
    if (options->verb == VERB_COMPRESS) return !has_suffix(name) || options->output;
    return has_suffix(name) == (options->verb != VERB_COMPARE);
}

static void walk_folder(struct walk *walk, const char *path, const char *output);

/* Folders below are walked; links are not followed, other things are skipped. */
static void walk_entry(struct walk *walk, const char *path, const char *name, const char *output)
{
    struct stat status;
    char *below = join(path, name), *below_output = output ? join(output, name) : NULL;
    if (!below || (output && !below_output))
        walk->no_memory = true;
    else if (lstat(below, &status) != 0)
        add_task(walk, strdup(below), NULL, errno == ENOMEM ? TSR_ERROR_LIMIT : TSR_ERROR_READ, strerror(errno));
    else if (S_ISDIR(status.st_mode))
        walk_folder(walk, below, below_output);
    else if (tsr_is_unfinished(name))
        walk->list->unfinished++;
    else if (S_ISREG(status.st_mode) && is_wanted(walk->options, below, name))
        add_file(walk, below, output);
    else
        walk->list->skipped++;
    free(below);
    free(below_output);
}

static void walk_folder(struct walk *walk, const char *path, const char *output)
{
    struct names names;
    const int reason = read_folder(path, &names);
    if (reason == ENOMEM) walk->no_memory = true;
    if (reason != 0)
        add_task(walk, strdup(path), NULL, reason == EMFILE ? TSR_ERROR_LIMIT : TSR_ERROR_READ, strerror(reason));
    for (size_t i = 0; i < names.count && !walk->no_memory; i++) walk_entry(walk, path, names.name[i], output);
    free_names(&names);
}

static bool is_folder(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

/* Several inputs go into one folder; folders among them keep their names there, a folder alone does not. */
static void walk_inputs(struct walk *walk)
{
    const struct options *o = walk->options;
    const char *output = o->series ? "" : o->output;
    for (int i = 0; i < o->input_count; i++) {
        const char *input = o->inputs[i], *slash = strrchr(input, '/');
        walk->root = output ? strlen(output) : is_folder(input) ? strlen(input) : slash ? (size_t)(slash - input) : 0;
        if (!is_folder(input)) {
            add_file(walk, input, output);
        } else if (!o->recursive) {
            add_task(walk, strdup(input), NULL, TSR_ERROR_USAGE, "it is a folder; -r looks into it");
        } else if (output && o->input_count > 1) {
            char *name = base_name(input), *folder = name ? join(output, name) : NULL;
            if (folder)
                walk_folder(walk, input, folder);
            else
                walk->no_memory = true;
            free(name);
            free(folder);
        } else {
            walk_folder(walk, input, output);
        }
    }
}

static int by_output(const void *a, const void *b)
{
    const struct task *one = *(struct task *const *)a, *other = *(struct task *const *)b;
    const int order = strcmp(one->output, other->output);
    return order ? order : (one > other) - (one < other);
}

/* Inputs that would write the same output: all but the first have failed. False: there is no memory. */
static bool refuse_collisions(struct task_list *list)
{
    struct task **sorted = malloc((list->count + 1) * sizeof *sorted);
    size_t count = 0;
    bool has_memory = sorted != NULL;
    if (!sorted) return false;
    for (size_t i = 0; i < list->count; i++)
        if (list->tasks[i].output) sorted[count++] = &list->tasks[i];
    qsort(sorted, count, sizeof *sorted, by_output);
    for (size_t i = 1; i < count; i++) {
        if (strcmp(sorted[i]->output, sorted[i - 1]->output) != 0) continue;
        sorted[i]->status = TSR_ERROR_EXISTS;
        free(sorted[i]->reason);
        sorted[i]->reason = strdup("another input of this run has the same output");
        has_memory = has_memory && sorted[i]->reason;
    }
    free(sorted);
    return has_memory;
}

/* Outputs that are their own inputs. False: there is no memory. */
static bool refuse_same_files(struct task_list *list, const char *series)
{
    bool has_memory = true;
    for (size_t i = 0; i < list->count; i++) {
        struct task *task = &list->tasks[i];
        const char *output = series ? series : task->output;
        if (!output || task->status != TSR_OK || !is_same_file(task->input, output)) continue;
        task->status = TSR_ERROR_SAME_FILE;
        task->reason = strdup("the output is the input");
        has_memory = has_memory && task->reason;
    }
    return has_memory;
}

/* One input and one output, both named. */
static void add_named(struct walk *walk)
{
    char *output = strdup(walk->options->output);
    struct task *task = output ? add_task(walk, strdup(walk->options->inputs[0]), output, TSR_OK, NULL) : NULL;
    if (task) task->names_output = true;
    if (!output) walk->no_memory = true;
}

enum tsr_status list_tasks(const struct options *options, struct tsr_engine *engine, struct task_list *list,
                           struct tsr_error *error)
{
    struct walk walk = {options, engine, list, options->output ? strlen(options->output) : 0, false};
    memset(list, 0, sizeof *list);
    const bool many = options->input_count > 1 || options->recursive;
    if (options->output && !many &&
        add_series(&walk, options->inputs[0], options->output, is_folder(options->output) ? NULL : options->output)) {
        /* One input, which is a series: OUT is the folder of its files, or the one that is wanted. */
    } else if (options->output && !many && !is_folder(options->output)) {
        /* One input, and OUT names a file. */
        if (is_folder(options->inputs[0]))
            add_task(&walk, strdup(options->inputs[0]), NULL, TSR_ERROR_USAGE, "it is a folder; -r looks into it");
        else
            add_named(&walk);
    } else if (options->output && many && !is_folder(options->output)) {
        struct stat status;
        if (stat(options->output, &status) == 0)
            return refuse(error, TSR_ERROR_WRITE, "%s is not a folder, and several inputs need one", options->output);
        walk_inputs(&walk);
    } else {
        walk_inputs(&walk);
    }
    if (walk.no_memory) return refuse(error, TSR_ERROR_LIMIT, "no memory for a list of %zu files", list->count);
    if (list->count == 0)
        return refuse(error, TSR_ERROR_NO_INPUT, "no input was found (%zu files were skipped)", list->skipped);
    if (refuse_collisions(list) && refuse_same_files(list, options->series)) return TSR_OK;
    return refuse(error, TSR_ERROR_LIMIT, "no memory for a list of %zu files", list->count);
}

void free_tasks(struct task_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        free(list->tasks[i].input);
        free(list->tasks[i].output);
        free(list->tasks[i].reason);
        free(list->tasks[i].member);
    }
    free(list->tasks);
    for (size_t i = 0; i < list->series_count; i++) tsr_close(list->series[i]);
    free(list->series);
}
