/* Inputs that are series: each of their files is a task. */
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "inputs.h"

static bool keep_series(struct task_list *list, struct tsr_reader *series)
{
    struct tsr_reader **grown = realloc(list->series, (list->series_count + 1) * sizeof *grown);
    if (!grown) return false;
    list->series = grown;
    list->series[list->series_count++] = series;
    return true;
}

/* A file of a series whose name is damaged, or all whose names are lost: reading it says what is wrong. */
static void add_damaged(struct walk *walk, const char *path, struct tsr_reader *series, uint32_t k,
                        const struct place *place)
{
    struct tsr_info info = TSR_INFO;
    struct tsr_error error = {TSR_ERROR_CORRUPT, TSR_NO_OFFSET, "", 0};
    const enum tsr_status status = tsr_read_info(series, k, &info, &error);
    add_lost(walk, path, place->prefix, status == TSR_OK ? TSR_ERROR_CORRUPT : status, error.text);
}

/* A file of a series, below the folder where those of the series go; output: where this one goes instead, or NULL. */
static void add_member(struct walk *walk, const char *path, struct tsr_reader *series, uint32_t k,
                       const struct place *place, const char *output)
{
    const char *const folder = place->folder, *const name = tsr_reader_name(series, k),
                      *const slash = strrchr(name, '/');
    const char *const kept = walk->options->out.flat && slash ? slash + 1 : name;
    char *below = NULL;
    if (writes(walk->options) && output) below = strdup(output);
    if (writes(walk->options) && !output) {
        char *const place_of = folder[0] ? join(folder, kept) : strdup(kept);
        below = place_of ? output_name(walk->options, place_of) : NULL;
        free(place_of);
    }
    if (writes(walk->options) && !below) walk->no_memory = true;
    char *const original = place->prefix[0] ? join(place->prefix, name) : strdup(name);
    struct task *task = add_task(walk, strdup(path), below, original, TSR_OK, NULL);
    if (!task) return;
    task->series = series;
    task->number = k;
    task->names_output = output != NULL;
    task->member = strdup(name);
    if (!task->member || !task->name) walk->no_memory = true;
}

static bool matches(const struct wanted *wanted, const char *name)
{
    return wanted->exact ? strcmp(wanted->exact, name) == 0 : fnmatch(wanted->glob, name, 0) == 0;
}

struct wanted wanted_of(const struct tsr_reader *series, const char *exact, const char *glob)
{
    struct wanted wanted = {exact, exact ? NULL : glob, true};
    const bool is_one = exact || (glob && !strpbrk(glob, "*?[\\")); /* no two files of a series have one name */
    for (uint32_t k = 0; is_one && wanted.takes_lost && k < tsr_reader_members(series); k++) {
        const char *const name = tsr_reader_name(series, k);
        wanted.takes_lost = !name || !matches(&wanted, name);
    }
    return wanted;
}

bool is_wanted(const struct wanted *wanted, const char *name)
{
    if (!wanted->exact && !wanted->glob) return true;
    return name ? matches(wanted, name) : wanted->takes_lost;
}

static void add_members(struct walk *walk, const char *path, struct tsr_reader *series, const struct place *place,
                        const char *output)
{
    const struct wanted wanted = wanted_of(series, walk->wanted, walk->options->in.member);
    const char *const word = walk->wanted ? walk->wanted : walk->options->in.member;
    const uint32_t count = tsr_reader_members(series);
    size_t found = 0;
    for (uint32_t k = 0; k < count; k++) found += is_wanted(&wanted, tsr_reader_name(series, k));
    for (uint32_t k = 0; k < count; k++) {
        const char *const name = tsr_reader_name(series, k);
        if (!is_wanted(&wanted, name)) continue;
        if (!name)
            add_damaged(walk, path, series, k, place);
        else
            add_member(walk, path, series, k, place, word && found == 1 ? output : NULL);
    }
    if (found > 0) return;
    char *reason = NULL;
    if (asprintf(&reason, "it has no file that is called %s; info lists its files", word) < 0) reason = NULL;
    if (!reason) walk->no_memory = true;
    add_task(walk, strdup(path), NULL, NULL, TSR_ERROR_NO_INPUT, reason);
    free(reason);
}

bool add_series(struct walk *walk, const char *path, const struct place *place, const char *output)
{
    struct tsr_reader *series = NULL;
    struct tsr_error error = {TSR_OK, TSR_NO_OFFSET, "", 0};
    const struct tsr_data_source source = from_tsr(path);
    if (!walk->engine || walk->is_single) return false;
    const enum tsr_status status = tsr_open(walk->engine, &source, &series, &error);
    if (status == TSR_ERROR_CORRUPT && walk->options->picture.salvages) return false;
    if (status != TSR_OK) {
        name_flags(&error);
        add_task(walk, strdup(path), NULL, place->name ? strdup(place->name) : NULL, status, error.text);
        return true;
    }
    const enum tsr_content content = tsr_reader_content(series);
    if (content != TSR_CONTENT_SERIES) {
        tsr_close(series);
        if (content == TSR_CONTENT_ORIGINAL || (!walk->wanted && !walk->options->in.member)) return false;
        add_task(walk, strdup(path), NULL, NULL, TSR_ERROR_USAGE,
                 walk->wanted ? "it is not a series, and a name after :: is that of a file of a series"
                              : "it is not a series, and --member names a file of a series");
        return true;
    }
    if (!keep_series(walk->list, series)) {
        tsr_close(series);
        walk->no_memory = true;
        return true;
    }
    add_members(walk, path, series, place, output);
    return true;
}

bool may_be_lost(const struct task_list *list, const char *name)
{
    for (size_t i = 0; i < list->count; i++) {
        const char *const folder = list->tasks[i].lost_in;
        const size_t length = folder ? strlen(folder) : 0;
        if (folder && (length == 0 || (strncmp(name, folder, length) == 0 && name[length] == '/'))) return true;
    }
    return false;
}
