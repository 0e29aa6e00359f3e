/* tessera compress: a .tsr file for each input. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "app/cli/cli.h"
#include "manifest.h"

struct tsr_data_source source_of(const struct task *task)
{
    struct tsr_data_source source =
        task->descriptor >= 0 ? tsr_from_descriptor(task->descriptor) : tsr_from_path(task->input);
    source.name = task->input;
    return source;
}

struct tsr_data_source tsr_of(const struct task *task)
{
    struct tsr_data_source source = source_of(task);
    source.key = from_tsr(NULL).key;
    return source;
}

static struct tsr_data_source keep_values(const struct options *options, struct tsr_data_source source)
{
    source.kept_count = options->coding.kept_count;
    memcpy(source.kept, options->coding.kept, sizeof source.kept);
    return source;
}

struct tsr_data_source source_to_compress(const struct options *options, const struct task *task)
{
    return keep_values(options, source_of(task));
}

struct tsr_data_sink sink_of(const struct options *options, const struct task *task)
{
    struct tsr_data_sink sink = task->to_stdout ? tsr_to_descriptor(STDOUT_FILENO) : tsr_to_path(task->output);
    sink.temporary = temporary_folder();
    sink.overwrite = options->out.force && task->existed;
    sink.written = options->out.written;
    sink.is_bounded = !task->names_output;
    sink.root = task->root;
    sink.syncs_later = true;
    sink.key = key_to_write(options);
    return sink;
}

/* Compares a .tsr that was there with its original, and notes which file it was. */
static enum tsr_status compare_current(struct tsr_engine *engine, const struct task *task, struct outcome *outcome)
{
    const int file = open(task->output, O_RDONLY | O_CLOEXEC);
    struct stat status_of;
    if (file < 0 || fstat(file, &status_of) != 0 || !bring_to_disk(file, task->output)) {
        const int reason = errno;
        if (file >= 0) close(file);
        return refuse(&outcome->error, TSR_ERROR_WRITE, "cannot bring %s to the disk: %s", task->output,
                      strerror(reason));
    }
    posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED); /* then it is not read from the system's memory */
    struct tsr_data_source made = from_tsr(NULL);
    made.medium = TSR_MEDIUM_DESCRIPTOR;
    made.descriptor = file;
    struct tsr_report compared = outcome->report; /* the sizes stay those of the original and its .tsr */
    made.name = task->output;
    const enum tsr_status status =
        compare_with_original(engine, &made, NULL, 0, task->input, &compared, NULL, &outcome->error);
    close(file);
    outcome->made = state_of(&status_of);
    outcome->is_compared = status == TSR_OK;
    outcome->report.promise = compared.promise;
    return status;
}

/* What is there already is the work's result; --rm and --report want it compared again, since nothing else was done to
 * prove it. */
static enum tsr_status keep_current(struct tsr_engine *engine, const struct options *options, const struct task *task,
                                    struct outcome *outcome)
{
    const struct tsr_data_source made = from_tsr(task->output);
    outcome->is_current = true;
    if (outcome->is_gone) { /* it is the only copy: it must be whole to the end */
        struct tsr_report tested = TSR_REPORT;
        return tsr_test(engine, &made, &tested, &outcome->error);
    }
    return options->archive.removes || options->report.page ? compare_current(engine, task, outcome) : TSR_OK;
}

/* The output has appeared since check_current looked for it: it counts if it is of this file. */
static enum tsr_status take_their_output(struct tsr_engine *engine, const struct options *options,
                                         const struct task *task, struct outcome *outcome)
{
    const struct tsr_error exists = outcome->error;
    bool is_current, replace;
    const enum tsr_status status = check_current(engine, options, task, &is_current, &replace, outcome);
    if (status == TSR_OK && is_current) return keep_current(engine, options, task, outcome);
    outcome->error = exists;
    return TSR_ERROR_EXISTS;
}

static enum tsr_status make_output(struct tsr_engine *engine, const struct options *options, const struct task *task,
                                   struct outcome *outcome)
{
    const struct tsr_data_source source = source_to_compress(options, task);
    struct tsr_data_sink sink = sink_of(options, task);
    bool is_current = false, replace = false;
    outcome->is_current = false;
    if (lstat(task->input, &outcome->input) != 0) outcome->input.st_nlink = 0;
    enum tsr_status status = TSR_OK;
    if (options->archive.update != UPDATE_OFF && task->output && task->descriptor < 0)
        status = check_current(engine, options, task, &is_current, &replace, outcome);
    sink.overwrite |= replace;
    if (status == TSR_OK && is_current)
        status = keep_current(engine, options, task, outcome);
    else if (status == TSR_OK) {
        struct tsr_compress_options compress = coding_with_region(options);
        compress.range = task->range;
        status = tsr_compress(engine, &source, &sink, &compress, &outcome->report, &outcome->error);
    }
    if (status == TSR_ERROR_EXISTS && options->archive.update != UPDATE_OFF &&
        task->descriptor < 0) /* another process has made it meanwhile */
        status = take_their_output(engine, options, task, outcome);
    return status;
}

/* Whether the input has fewer links than when it was first looked at: --rm has removed another name of the file, which
 * the reader of this one takes for a change. */
static bool has_lost_links(const struct options *options, const struct task *task, const struct outcome *outcome)
{
    struct stat now;
    return options->archive.removes && task->descriptor < 0 && lstat(task->input, &now) == 0 && S_ISREG(now.st_mode) &&
           now.st_nlink < outcome->input.st_nlink;
}

static enum tsr_status compress_one(struct tsr_engine *engine, const struct options *options, const struct task *task,
                                    struct outcome *outcome)
{
    const struct tsr_data_source source = source_of(task);
    enum tsr_status status;
    do status = make_output(engine, options, task, outcome);
    while (status == TSR_ERROR_READ && has_lost_links(options, task, outcome));
    if (status == TSR_OK && options->report.manifest) status = hash_for_manifest(engine, task, &source, outcome);
    return status;
}

/* Whether a file that the run writes stands in OUT, which the run may have to make. */
static bool lies_in_output(const struct options *options, const char *path)
{
    const size_t length = options->out.path ? strlen(options->out.path) : 0;
    return path && length > 0 && strncmp(path, options->out.path, length) == 0 && path[length] == '/';
}

/* The manifest begins when it is known that it costs none of the files. */
static enum tsr_status list_to_compress(const struct options *options, struct tsr_engine *engine,
                                        struct task_list *list, struct tsr_error *error)
{
    struct tsr_error ignored;
    const struct tsr_data_sink folder = tsr_to_path(options->out.path);
    enum tsr_status status = list_tasks(options, engine, list, error);
    if (status == TSR_OK &&
        (lies_in_output(options, options->report.manifest) || lies_in_output(options, options->report.page)))
        status = tsr_make_folder(&folder, error);
    if (status == TSR_ERROR_NO_INPUT && lies_in_output(options, options->report.page)) /* which will say so */
        tsr_make_folder(&folder, &ignored);
    return status == TSR_OK && options->report.manifest ? begin_manifest(options, error) : status;
}

/* Sources, as the library takes sets of them. */
struct sources {
    struct tsr_data_source *all;
    const struct tsr_data_source **each;
};

static enum tsr_status make_sources(size_t count, struct sources *sources, struct tsr_error *error)
{
    sources->all = calloc(count, sizeof *sources->all);
    sources->each = calloc(count, sizeof *sources->each);
    if (!sources->all || !sources->each || count > INT32_MAX)
        return refuse(error, TSR_ERROR_LIMIT, "no memory for this set of files");
    for (size_t i = 0; i < count; i++) sources->each[i] = &sources->all[i];
    return TSR_OK;
}

static void free_sources(struct sources *sources)
{
    free(sources->all);
    free(sources->each);
}

enum tsr_status find_referrers(const struct options *options, struct tsr_engine *engine, struct task_list *list,
                               struct tsr_error *error)
{
    struct sources sources = {NULL, NULL};
    if (options->coding.compress.loss == TSR_LOSSLESS || list->count < 2) return TSR_OK;
    struct tsr_referrers *const referrers = calloc(list->count, sizeof *referrers);
    enum tsr_status status = referrers ? make_sources(list->count, &sources, error)
                                       : refuse(error, TSR_ERROR_LIMIT, "no memory for this set of files");
    for (size_t i = 0; i < list->count && status == TSR_OK; i++) sources.all[i] = source_of(&list->tasks[i]);
    if (status == TSR_OK) status = tsr_find_referrers(engine, sources.each, (uint32_t)list->count, referrers, error);
    for (size_t i = 0; i < list->count && status == TSR_OK; i++) {
        struct task *const task = &list->tasks[i];
        task->referrers = referrers[i].count;
        for (uint32_t k = 0; k < referrers[i].count && k < TSR_NAMED_REFERRERS; k++)
            task->referrer[k] = list->tasks[referrers[i].first[k]].input;
    }
    free(referrers);
    free_sources(&sources);
    return status;
}

/* With loss, the images of a series count by one range: two of its slices must not differ in what they lose. Of a part
 * of a set, the range is that of the whole set, so that all parts have it. */
static enum tsr_status find_ranges(const struct options *options, struct tsr_engine *engine, struct task_list *list,
                                   struct tsr_error *error)
{
    const size_t count = list->set ? list->in_set : list->count;
    struct sources sources = {NULL, NULL};
    if (count < 2 || list->count == 0) return TSR_OK;
    uint32_t *const ranges = calloc(count, sizeof *ranges);
    enum tsr_status status = ranges ? make_sources(count, &sources, error)
                                    : refuse(error, TSR_ERROR_LIMIT, "no memory for this set of files");
    for (size_t i = 0; i < count && status == TSR_OK && list->set; i++)
        sources.all[i] = keep_values(options, tsr_from_path(list->set[i]));
    for (size_t i = 0; i < list->count && status == TSR_OK; i++)
        sources.all[list->set ? list->tasks[i].place : i] = source_to_compress(options, &list->tasks[i]);
    if (status == TSR_OK) status = tsr_common_ranges(engine, sources.each, (uint32_t)count, false, ranges, error);
    for (size_t i = 0; i < list->count && status == TSR_OK; i++)
        list->tasks[i].range = ranges[list->set ? list->tasks[i].place : i];
    free(ranges);
    free_sources(&sources);
    return status;
}

/* With loss, what is known of all files together alone. */
static enum tsr_status look_at_all(const struct options *options, struct tsr_engine *engine, struct task_list *list,
                                   struct tsr_error *error)
{
    enum tsr_status status = read_masks(engine, options, error);
    if (status != TSR_OK || options->coding.compress.loss == TSR_LOSSLESS) return status;
    status = find_ranges(options, engine, list, error);
    return status == TSR_OK ? find_referrers(options, engine, list, error) : status;
}

int compress_verb(const struct options *options)
{
    static const struct task_work work = {false,          list_to_compress, compress_one, report_file,
                                          report_summary, look_at_all,      prepare_file};
    if (options->archive.dry_run) return dry_run(options);
    if (options->series.path) return compress_to_series(options);
    return run_tasks(options, &work);
}
