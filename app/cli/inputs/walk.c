/* Folders: what is in them, by name, without following links unless that is asked for. */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "inputs.h"

/* A folder that contains what is looked at: a link to it would be walked without end. */
struct ancestor {
    dev_t device;
    ino_t inode;
    const struct ancestor *above;
};

/* Names in a folder. */
struct names {
    char **name;
    size_t count, capacity;
};

static bool keep_name(struct names *names, const char *name)
{
    if (!grow_list(&names->name, names->count, &names->capacity, sizeof *names->name)) return false;
    names->name[names->count] = strdup(name);
    return names->name[names->count] && ++names->count;
}

static void free_names(struct names *names)
{
    for (size_t i = 0; i < names->count; i++) free(names->name[i]);
    free(names->name);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* All names in a folder, sorted. Returns 0, or errno where it cannot be read to its end. */
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

static enum tsr_status status_of(int reason)
{
    return reason == ENOMEM || reason == EMFILE || reason == ENFILE ? TSR_ERROR_LIMIT : TSR_ERROR_READ;
}

/* What else than a file or a folder a name can be. */
static const char *kind_of(mode_t mode)
{
    return S_ISLNK(mode) ? "symbolic link" : S_ISFIFO(mode) ? "FIFO" : S_ISSOCK(mode) ? "socket" : "device";
}

/* The manifest of this run, or an unfinished one, is not among the originals. */
static bool is_manifest(const struct options *options, const char *path)
{
    bool is_one = false;
    for (size_t i = 0; i < MANIFEST_NAMES && options->report.manifest && !is_one; i++) {
        char *const name = manifest_name(options->report.manifest, i);
        is_one = name && is_same_name(name, path) && begins_as_manifest(path, i > 0);
        free(name);
    }
    return is_one;
}

/* The report of this run, of an earlier night. */
static bool is_report(const struct options *options, const char *path)
{
    return options->report.page && options->verb != VERB_COMPARE && is_same_name(options->report.page, path) &&
           begins_as_report(path);
}

static bool is_log(const struct options *options, const char *path)
{
    return options->talk.log && is_same_name(options->talk.log, path) && begins_as_log(path);
}

/* A file that an earlier run of the same command has written. */
static bool is_own(const struct options *options, const char *path, bool is_tsr)
{
    return (options->series.path && is_tsr && is_same_name(options->series.path, path)) || is_manifest(options, path) ||
           is_report(options, path) || is_log(options, path);
}

/* A .tsr file among originals. Beside them, and in OUT, it is an output, and stays as it is unless it turns out to
 * stand in the place of one of this run's. Elsewhere it is a file without a .tsr. */
static void leave_tsr(struct walk *walk, const char *path, const struct stat *status)
{
    const struct tsr_file_state state = state_of(status);
    struct task_list *const list = walk->list;
    list->tsr_files++;
    if (!walk->is_output && (walk->options->out.path || walk->options->series.path)) {
        list->left_tsr_files++;
        add_skipped(walk, path, ".tsr file");
        return;
    }
    if (!list->tsr_seen) list->tsr_seen = tsr_file_set_create();
    if (!list->tsr_seen || tsr_file_set_add(list->tsr_seen, path, &state, NULL) != TSR_OK) walk->no_memory = true;
}

/* A file in a folder: whether the verb takes it. */
static void take_file(struct walk *walk, const char *path, const char *base, const char *name, const char *folder,
                      const struct stat *status)
{
    const struct options *const o = walk->options;
    const bool is_tsr = has_tsr_suffix(base);
    if (tsr_is_unfinished(path))
        walk->list->unfinished++;
    else if (!is_included(&o->in, name, false))
        walk->list->excluded++;
    else if (is_own(o, path, is_tsr))
        walk->names--;
    else if (o->verb == VERB_COMPRESS && is_tsr)
        leave_tsr(walk, path, status);
    else if (o->verb != VERB_COMPRESS && is_tsr == (o->verb == VERB_COMPARE) && !(is_tsr && o->in.takes_tsr))
        walk->list->others++;
    else
        add_file(walk, path, name, folder, status);
}

/* A name of which errno says why it cannot be looked at. */
static void add_unread(struct walk *walk, const char *path, const char *name)
{
    const int reason = errno;
    add_task(walk, strdup(path), NULL, original_name(walk->options, name), status_of(reason), strerror(reason));
}

static void walk_entry(struct walk *walk, const char *path, const char *base, const char *name, const char *folder,
                       const struct ancestor *here)
{
    struct stat status;
    const bool follows = walk->options->in.dereference;
    walk->names++;
    if ((follows ? stat(path, &status) : lstat(path, &status)) != 0) {
        if (follows && errno == ENOENT && lstat(path, &status) == 0)
            add_skipped(walk, path, "symbolic link to nothing");
        else
            add_unread(walk, path, name);
    } else if (S_ISDIR(status.st_mode)) {
        walk->names--;
        if (is_included(&walk->options->in, name, true))
            walk_folder(walk, path, name, folder, here);
        else
            walk->list->excluded++;
    } else if (S_ISREG(status.st_mode)) {
        take_file(walk, path, base, name, folder, &status);
    } else if (is_included(&walk->options->in, name, false)) {
        add_skipped(walk, path, kind_of(status.st_mode));
    } else {
        walk->list->excluded++;
    }
}

/* Whether a folder contains itself, by links. */
static bool is_loop(const struct ancestor *here)
{
    for (const struct ancestor *at = here->above; at; at = at->above)
        if (at->device == here->device && at->inode == here->inode) return true;
    return false;
}

/* A folder with nothing in it: its output is made, too. */
static void take_empty_folder(struct walk *walk, const char *path, const char *prefix, const char *folder)
{
    if (walk->options->in.takes_tsr || walk->options->verb == VERB_MOUNT) { /* the archive's, to be compared or shown */
        add_empty_folder(walk, prefix);
        return;
    }
    if (walk->options->series.path) {
        add_skipped(walk, path, without_files);
        return;
    }
    if (!walk->options->out.path || !writes(walk->options)) return;
    char *const output = prefix[0] ? join(folder, prefix) : strdup(folder);
    if (output)
        add_empty_folder(walk, output);
    else
        walk->no_memory = true;
    free(output);
}

void walk_folder(struct walk *walk, const char *path, const char *prefix, const char *folder,
                 const struct ancestor *above)
{
    struct names names;
    struct stat status;
    struct ancestor here = {.above = above};
    const int reason = read_folder(path, &names);
    if (reason == ENOMEM) walk->no_memory = true;
    if (reason != 0) add_lost(walk, path, prefix, status_of(reason), strerror(reason));
    if (stat(path, &status) == 0) {
        here.device = status.st_dev;
        here.inode = status.st_ino;
        if (here.inode != 0 && is_loop(&here)) {
            add_skipped(walk, path, "symbolic link to a folder that it lies in");
            free_names(&names);
            return;
        }
    }
    const bool was_output = walk->is_output;
    walk->is_output |= walk->options->out.path && is_same_file(path, walk->options->out.path);
    if (reason == 0 && names.count == 0) take_empty_folder(walk, path, prefix, folder);
    bool *const singles = find_singles(walk, path, prefix, names.name, names.count);
    for (size_t i = 0; i < names.count && !walk->no_memory; i++) {
        char *const below = join(path, names.name[i]);
        char *const name = prefix[0] ? join(prefix, names.name[i]) : strdup(names.name[i]);
        walk->is_single = singles && singles[i];
        if (below && name)
            walk_entry(walk, below, names.name[i], name, folder, &here);
        else
            walk->no_memory = true;
        free(below);
        free(name);
    }
    walk->is_output = was_output;
    walk->is_single = false;
    free(singles);
    free_names(&names);
}
