/* Which files a command line names, and where their outputs go. The layout: what is in the only named folder lies in
 * OUT as it lies in that folder. Among several inputs, a file or a folder that is named by a relative path keeps it
 * below OUT, by an absolute one its last name. --flat keeps last names alone. */
#include "inputs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

const char without_files[] = "folder without files";

/* ---- Files ------------------------------------------------------------------------------------------------ */

/* A pipe that was named. */
static void add_pipe(struct walk *walk, const char *path, char *output, char *name, bool to_stdout)
{
    struct tsr_error error;
    int descriptor = -1;
    enum tsr_status status = TSR_OK;
    if (!output && !to_stdout && writes(walk->options) && !walk->options->series.path)
        status = refuse(&error, TSR_ERROR_USAGE, "a pipe has no folder for an output: name one with -o");
    if (status == TSR_OK) status = spool(path, &descriptor, &error);
    struct task *const task = add_task(walk, strdup(strcmp(path, "-") == 0 ? "stdin" : path), output, name, status,
                                       status == TSR_OK ? NULL : error.text);
    if (!task) return;
    task->descriptor = descriptor;
    task->to_stdout = to_stdout;
    if (walk->options->series.path && !(task->member = strdup(name))) walk->no_memory = true;
}

void add_file(struct walk *walk, const char *path, const char *name, const char *folder, const struct stat *status)
{
    const struct options *const o = walk->options;
    char *original = original_name(o, name), *output = NULL;
    if (original && o->out.flat) {
        char *const last = last_name(original);
        free(original);
        original = last;
    }
    if (original && writes(o) && !o->series.path) {
        char *const below = folder ? join(folder, original) : original_name(o, path);
        output = below ? output_name(o, below) : NULL;
        free(below);
    }
    if (!original || (writes(o) && !o->series.path && !output)) {
        walk->no_memory = true;
        free(original);
        free(output);
        return;
    }
    const bool is_only = o->in.count == 1 && strcmp(path, o->in.names[0]) == 0;
    const char *const below = is_only && folder ? folder : output ? output : "";
    if (add_series(walk, path, &(struct place){below, is_only ? "" : original, original}, NULL)) {
        free(original);
        free(output);
        return;
    }
    struct task *task = add_task(walk, strdup(path), output, original, TSR_OK, NULL);
    if (!task) return;
    if (status) task->bytes = (uint64_t)status->st_size;
    if (walk->wanted && !(task->member = strdup(walk->wanted))) walk->no_memory = true;
    if (o->series.path && !(task->member = strdup(original))) walk->no_memory = true;
}

/* ---- Inputs ----------------------------------------------------------------------------------------------- */

static size_t length_of_folder(const char *path)
{
    const char *const slash = strrchr(path, '/');
    return slash ? (size_t)(slash - path) : 0;
}

/* FILE.tsr::NAME, of verbs whose inputs may be written so: *file is FILE.tsr, to be freed. Returns NAME; NULL: the
 * input is not written so, since a file has that very name or none is called FILE.tsr. */
static const char *split_name(const struct walk *walk, const char *input, char **file)
{
    struct stat status;
    *file = NULL;
    if (walk->options->verb != VERB_CAT && walk->options->verb != VERB_INFO) return NULL;
    if (stat(input, &status) == 0) return NULL;
    for (const char *at = strstr(input, "::"); at; at = strstr(at + 1, "::")) {
        *file = strndup(input, (size_t)(at - input));
        if (*file && stat(*file, &status) == 0 && S_ISREG(status.st_mode)) return at + 2;
        free(*file);
        *file = NULL;
    }
    return NULL;
}

/* A folder that was named. One that holds no file is no input: it may be a share that is not mounted, and nobody is to
 * believe that its files are in the archive. But --rm leaves such folders behind. */
static void walk_named_folder(struct walk *walk, const char *input, const char *prefix, const char *folder)
{
    const size_t names = walk->names, tasks = walk->list->count;
    walk_folder(walk, input, prefix, folder, NULL);
    if (walk->names > names || walk->list->count > tasks) return;
    if (walk->options->archive.removes) {
        add_skipped(walk, input, without_files);
        return;
    }
    add_task(walk, strdup(input), NULL, NULL, TSR_ERROR_NO_INPUT,
             "no file is in this folder; leave it out, or mount the share that belongs there");
    walk->list->empty_inputs++;
}

/* Whether inputs are told apart by their own names. */
static bool takes_several(const struct options *o)
{
    return o->in.count > 1 || o->in.files_from;
}

/* Folders that are named among other inputs, and what each is called in the layout. */
static void keep_place(struct walk *walk, const char *place, const char *input)
{
    if (grow_list(&walk->folders, walk->folder_count, &walk->folder_capacity, sizeof *walk->folders)) {
        struct named_folder *const kept = &walk->folders[walk->folder_count];
        *kept = (struct named_folder){strdup(place), strdup(input)};
        if (kept->place && kept->input) {
            walk->folder_count++;
            return;
        }
        free(kept->place);
        free(kept->input);
    }
    walk->no_memory = true;
}

/* The path of a folder in the layout; of one that is named by dots alone, that of the folder they lead to. */
static char *layout_folder(const struct options *options, const char *input)
{
    char *const name = layout_name(options, input);
    if (!name || (strcmp(name, "..") != 0 && strcmp(name, "/") != 0)) return name;
    free(name);
    char *const real = realpath(input, NULL), *const last = real ? strdup(strrchr(real, '/') + 1) : NULL;
    free(real);
    return last;
}

static void walk_one_of_several(struct walk *walk, const char *input, const char *folder)
{
    char *const place = layout_folder(walk->options, input);
    if (place)
        keep_place(walk, place, input);
    else
        walk->no_memory = true;
    if (!walk->no_memory) walk_named_folder(walk, input, place, folder);
    free(place);
}

static int by_place(const void *a, const void *b)
{
    return strcmp(((const struct named_folder *)a)->place, ((const struct named_folder *)b)->place);
}

/* Two folders that would be one in the output or in a series. */
static enum tsr_status check_places(const struct walk *walk, struct tsr_error *error)
{
    const struct options *const o = walk->options;
    if (!writes(o) || (!o->out.path && !o->series.path) || o->out.flat || walk->folder_count < 2) return TSR_OK;
    qsort(walk->folders, walk->folder_count, sizeof *walk->folders, by_place);
    for (size_t i = 1; i < walk->folder_count; i++) {
        const struct named_folder *const one = &walk->folders[i - 1], *const other = &walk->folders[i];
        if (by_place(one, other) == 0)
            return refuse(
                error, TSR_ERROR_USAGE,
                "%s and %s would both be %s in %s: name their common folder, or give each an output of its own",
                one->input, other->input, one->place, o->series.path ? o->series.path : o->out.path);
    }
    return TSR_OK;
}

static void free_places(struct walk *walk)
{
    for (size_t i = 0; i < walk->folder_count; i++) {
        free(walk->folders[i].place);
        free(walk->folders[i].input);
    }
    free(walk->folders);
}

/* An input among several, or one whose output has no name of its own. */
static void walk_path(struct walk *walk, const char *input)
{
    const struct options *o = walk->options;
    const char *const folder = o->series.path ? "" : o->out.path;
    struct stat status;
    const bool exists = stat(input, &status) == 0, folder_input = exists && S_ISDIR(status.st_mode);
    walk->root = folder ? strlen(folder) : folder_input ? strlen(input) : length_of_folder(input);
    if (folder_input && o->in.recursive && !takes_several(o)) {
        walk_named_folder(walk, input, "", folder ? folder : input);
        return;
    }
    if (folder_input && o->in.recursive) {
        walk_one_of_several(walk, input, folder);
        return;
    }
    if (folder_input) {
        add_task(walk, strdup(input), NULL, NULL, TSR_ERROR_USAGE, "it is a folder; add -r to take what is in it");
        return;
    }
    char *const name = layout_name(o, input);
    if (!name) {
        walk->no_memory = true;
    } else if (is_pipe(input)) {
        char *const below = folder && writes(o) ? join(folder, name) : NULL;
        add_pipe(walk, input, below ? output_name(o, below) : NULL, strdup(name), false);
        free(below);
    } else if (o->in.files_from && !is_included(&o->in, name, false)) {
        walk->list->excluded++;
    } else {
        add_file(walk, input, name, folder, exists ? &status : NULL);
    }
    free(name);
}

/* One input whose output is named: a file, or stdout. */
static void add_named(struct walk *walk, const char *input)
{
    const struct options *const o = walk->options;
    const bool to_stdout = !o->out.path || strcmp(o->out.path, "-") == 0;
    char *const output = to_stdout ? NULL : strdup(o->out.path), *const name = layout_name(o, input);
    struct stat status;
    if ((!output && !to_stdout) || !name) {
        walk->no_memory = true;
        free(output);
        free(name);
        return;
    }
    if (is_folder(input)) {
        free(output);
        add_task(walk, strdup(input), NULL, name, TSR_ERROR_USAGE, "it is a folder; add -r to take what is in it");
        return;
    }
    if (is_pipe(input)) {
        add_pipe(walk, input, output, name, to_stdout);
    } else if (add_series(walk, input, &(struct place){to_stdout ? "" : o->out.path, "", NULL}, output)) {
        free(output);
        free(name);
        for (size_t i = 0; to_stdout && i < walk->list->count; i++) walk->list->tasks[i].to_stdout = true;
    } else {
        struct task *const task = add_task(walk, strdup(input), output, name, TSR_OK, NULL);
        if (task && stat(input, &status) == 0) task->bytes = (uint64_t)status.st_size;
        if (task) task->to_stdout = to_stdout;
    }
    if (walk->list->count > 0) walk->list->tasks[0].names_output = true;
}

static void walk_input(struct walk *walk, const char *input)
{
    char *file;
    walk->wanted = split_name(walk, input, &file);
    walk_path(walk, file ? file : input);
    walk->wanted = NULL;
    free(file);
}

static bool walk_name(void *context, const char *name)
{
    struct walk *const walk = context;
    walk_input(walk, name);
    return !walk->no_memory;
}

/* ---- The inputs of a run ------------------------------------------------------------------------------------ */

static enum tsr_status fail_empty(const struct options *options, const struct task_list *list, struct tsr_error *error)
{
    const bool wants_tsr = options->verb != VERB_COMPRESS && options->verb != VERB_COMPARE;
    size_t folders = list->empty_inputs, special = 0;
    for (size_t i = 0; i < list->skipped_count; i++) {
        const bool is_folder = list->skipped[i].reason == without_files;
        folders += is_folder;
        special += !is_folder;
    }
    const char *const empty = folders > 0 ? "; the folder holds no file: is a share not mounted?" : "";
    if (list->excluded > 0)
        return refuse(error, TSR_ERROR_NO_INPUT, "no file is left: --include, --exclude and --shard leave out %zu",
                      list->excluded);
    if (wants_tsr)
        return refuse(error, TSR_ERROR_NO_INPUT, "no .tsr files here: %zu other file%s%s", list->others,
                      plural(list->others), list->others + list->skipped_count == 0 ? empty : "");
    const size_t tsr_files = list->tsr_files + list->others;
    special -= list->left_tsr_files;
    char text[120] = "";
    if (tsr_files > 0) snprintf(text, sizeof text, ": %zu .tsr file%s", tsr_files, plural(tsr_files));
    if (special > 0)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s %zu link%s or special file%s",
                 tsr_files > 0 ? "," : ":", special, plural(special), plural(special));
    return refuse(error, TSR_ERROR_NO_INPUT, "no files to %s here%s%s",
                  options->in.takes_tsr ? "verify" : verb_name(options->verb), text, text[0] ? "" : empty);
}

static enum tsr_status list_inputs(struct walk *walk, struct tsr_error *error)
{
    const struct options *const o = walk->options;
    if (names_one_file(o)) {
        const enum tsr_status named = o->out.path ? check_ending(o, error) : TSR_OK;
        if (named == TSR_OK) add_named(walk, o->in.names[0]);
        const struct task *const first = named == TSR_OK && walk->list->count > 0 ? &walk->list->tasks[0] : NULL;
        if (first && walk->list->count > 1 && first->to_stdout)
            return refuse(error, TSR_ERROR_USAGE, "-o - takes one file, and %s is a series: name one with --member",
                          o->in.names[0]);
        const bool is_folder_of_series =
            first && first->series && first->output && !first->to_stdout && strcmp(first->output, o->out.path) != 0;
        return is_folder_of_series ? check_folder(o, error) : named;
    }
    enum tsr_status status = check_folder(o, error);
    if (status != TSR_OK) return status;
    for (int i = 0; i < o->in.count; i++) walk_input(walk, o->in.names[i]);
    if (o->in.files_from) status = read_names(o, walk_name, walk, error);
    return status == TSR_OK ? check_places(walk, error) : status;
}

/* Where some files are left to other runs, all are remembered. */
static bool note_set(const struct options *options, struct task_list *list)
{
    const bool is_part = options->in.shards > 0 || options->sample.share > 0;
    if (!is_part || options->verb != VERB_COMPRESS || options->coding.compress.loss == TSR_LOSSLESS) return true;
    list->set = calloc(list->count + 1, sizeof *list->set);
    for (size_t i = 0; list->set && i < list->count; i++) {
        list->tasks[i].place = i;
        list->set[i] = strdup(list->tasks[i].input);
        if (!list->set[i]) return false;
    }
    return list->set != NULL;
}

/* Stdout may be led into a file that is read. */
static enum tsr_status check_stdout(const struct options *options, const struct task_list *list,
                                    struct tsr_error *error)
{
    struct stat out, in;
    if (fstat(STDOUT_FILENO, &out) != 0 || !S_ISREG(out.st_mode)) return TSR_OK;
    for (size_t i = 0; i < list->count; i++) {
        const struct task *const task = &list->tasks[i];
        const bool is_written = task->to_stdout || options->verb == VERB_CAT;
        if (is_written && stat(task->input, &in) == 0 && in.st_dev == out.st_dev && in.st_ino == out.st_ino)
            return refuse(error, TSR_ERROR_SAME_FILE, "stdout leads into %s, which is read: lead it elsewhere",
                          task->input);
    }
    return TSR_OK;
}

enum tsr_status list_tasks(const struct options *options, struct tsr_engine *engine, struct task_list *list,
                           struct tsr_error *error)
{
    struct walk walk = {.options = options, .engine = engine, .list = list};
    memset(list, 0, sizeof *list);
    walk.root = options->out.path ? strlen(options->out.path) : 0;
    enum tsr_status status = list_inputs(&walk, error);
    free_places(&walk);
    list->in_set = list->count;
    if (status == TSR_OK && !walk.no_memory) status = check_names(options, list, error);
    if (status == TSR_OK && !walk.no_memory) walk.no_memory = !note_set(options, list);
    if (status == TSR_OK && !walk.no_memory && options->in.shards > 0) status = take_shard(&options->in, list, error);
    if (status == TSR_OK && !walk.no_memory && options->sample.share > 0)
        status = take_sample(&options->sample, list, error);
    if (status != TSR_OK) return status;
    const size_t files = options->in.shards > 0 ? list->in_set : list->count; /* a shard of a set may have none */
    const bool has_work = files > list->empty_inputs;
    if (!walk.no_memory && !has_work) return fail_empty(options, list, error);
    if (!walk.no_memory) return check_stdout(options, list, error);
    return refuse(error, TSR_ERROR_LIMIT, "no memory for a list of %zu files", list->count);
}
