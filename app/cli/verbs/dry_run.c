/* tessera compress --dry-run: what a run would do, with sizes and times from a sample. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "app/cli/cli.h"
#include "app/cli/json.h"
#include "app/cli/summary/notes.h"

enum { SAMPLE_FILES = 32, SENTENCES = 10 /* of what cannot be taken */ };
#define SAMPLE_BYTES ((uint64_t)256 << 20)

/* What is known beforehand, and what the sample's files became. */
struct estimate {
    size_t files, current, failing, sampled;
    uint64_t bytes;
    enum tsr_status status;          /* that the run would end with, as far as is known */
    double hits, share_out, share_s; /* sums of bytes out and seconds, a byte in, over all that were drawn */
};

static int64_t count_bytes(void *context, const void *bytes, size_t count)
{
    (void)context;
    (void)bytes;
    return (int64_t)count;
}

/* Codes a file, and keeps nothing. hits: how often it was drawn. */
static void sample_file(struct tsr_engine *engine, const struct options *options, const struct task *task, size_t hits,
                        struct estimate *e)
{
    const struct tsr_data_source source = source_of(task);
    const struct tsr_data_sink sink = tsr_to_calls(count_bytes, NULL);
    struct tsr_report report = TSR_REPORT;
    const struct tsr_compress_options compress = coding_with_region(options);
    const double start = wall_seconds();
    if (tsr_compress(engine, &source, &sink, &compress, &report, NULL) != TSR_OK) return;
    e->sampled++;
    e->hits += (double)hits;
    e->share_out += (double)hits * (double)report.bytes_out / (double)report.bytes_in;
    e->share_s += (double)hits * (wall_seconds() - start) / (double)report.bytes_in;
}

/* Whether a file is to be done; else it fails, as it would in the run, or is current. */
static enum tsr_status look_at_one(struct tsr_engine *engine, const struct options *options, const struct task *task,
                                   bool *current, struct outcome *outcome)
{
    bool replace = false;
    if (task->status != TSR_OK) return refuse_task(&outcome->error, task);
    if (task->descriptor < 0 && access(task->input, R_OK) != 0)
        return refuse(&outcome->error, TSR_ERROR_READ, "cannot open %s: %s", task->input, strerror(errno));
    if (options->archive.update != UPDATE_OFF && task->output)
        return check_current(engine, options, task, current, &replace, outcome);
    if (!task->existed || options->out.force) return TSR_OK;
    refuse(&outcome->error, TSR_ERROR_EXISTS, "%s exists" NOT_OVERWRITTEN, task->output);
    explain_existing(engine, options, task, outcome);
    return TSR_ERROR_EXISTS;
}

/* Which files are to be done; the first that fail are named. */
static void look_at(struct tsr_engine *engine, const struct options *options, const struct task_list *list,
                    bool *is_wanted, struct estimate *e)
{
    for (size_t i = 0; i < list->count; i++) {
        const struct task *const task = &list->tasks[i];
        struct outcome outcome = {.status = task->status};
        bool current = false;
        outcome.status = look_at_one(engine, options, task, &current, &outcome);
        if (outcome.status != TSR_OK) name_file(&outcome.error, task->input, NULL);
        if (outcome.status != TSR_OK && e->failing++ < SENTENCES) say_error(&outcome.error);
        if (outcome.status != TSR_OK) e->status = list->count == 1 ? outcome.status : TSR_ERROR_PARTIAL;
        e->current += outcome.status == TSR_OK && current;
        is_wanted[i] = outcome.status == TSR_OK && !current;
        e->files += is_wanted[i];
        if (is_wanted[i]) e->bytes += task->bytes;
    }
}

/* Files from all over the list, each drawn as often as its share of the bytes says: then the mean of their ratios is
 * that of the bytes. */
static void take_samples(struct tsr_engine *engine, const struct options *options, const struct task_list *list,
                         const bool *is_wanted, struct estimate *e)
{
    const uint64_t step = e->bytes / SAMPLE_FILES + 1;
    uint64_t passed = 0, next = step / 2, coded = 0;
    for (size_t i = 0; i < list->count; i++) {
        size_t hits = 0;
        if (!is_wanted[i]) continue;
        for (passed += list->tasks[i].bytes; next < passed; next += step) hits++;
        if (hits == 0 || (e->sampled > 0 && coded + list->tasks[i].bytes > SAMPLE_BYTES)) continue;
        sample_file(engine, options, &list->tasks[i], hits, e);
        coded += list->tasks[i].bytes;
    }
}

static void print_lines(const struct options *options, const struct task_list *list, const struct estimate *e,
                        double out, double seconds, uint64_t memory)
{
    talk("%zu file%s to %s, %llu bytes", e->files, plural(e->files), verb_name(options->verb),
         (unsigned long long)e->bytes);
    if (e->current > 0) talk(", %zu done before", e->current);
    talk("\n");
    if (e->sampled > 0)
        talk("  about %.0f bytes, ratio %.2f, in %.0f s: estimated from %zu of them\n", out, (double)e->bytes / out,
             seconds, e->sampled);
    talk("  at most %llu MB of memory (--memory), %d threads\n", (unsigned long long)(memory / 1000000),
         options->machine.threads > 0 ? options->machine.threads : tsr_available_threads());
    if (e->failing > 0) talk("  %zu cannot be taken\n", e->failing);
    for (size_t i = 0; i < list->skipped_count; i++)
        add_note(NOTE_NOT_TAKEN, list->skipped[i].path, list->skipped[i].reason);
    print_notes(options);
    free_notes();
    if (list->tsr_files > 0) talk("  %zu .tsr file%s left as they are\n", list->tsr_files, plural(list->tsr_files));
    for (size_t i = 0; options->talk.verbosity > 0 && i < list->count; i++)
        talk("  %s -> %s\n", shown(list->tasks[i].input), list->tasks[i].output ? shown(list->tasks[i].output) : "-");
}

static void print_estimate(const struct options *options, const struct task_list *list, const struct estimate *e,
                           int threads)
{
    const uint64_t memory = memory_limit(&options->machine);
    const double each = e->hits > 0 ? (double)e->bytes / e->hits : 0;
    const double out = e->share_out * each, seconds = e->share_s * each / threads;
    if (!options->talk.json) {
        print_lines(options, list, e, out, seconds, memory);
        return;
    }
    cJSON *const o = cJSON_CreateObject();
    cJSON_AddBoolToObject(o, "dry_run", true);
    add_number(o, "files", true, (double)e->files);
    add_number(o, "current", true, (double)e->current);
    add_number(o, "failing", true, (double)e->failing);
    add_number(o, "skipped", true, (double)list->skipped_count);
    add_number(o, "skipped_tsr", true, (double)list->tsr_files);
    add_number(o, "bytes_in", true, (double)e->bytes);
    add_number(o, "sampled", true, (double)e->sampled);
    add_number(o, "estimated_bytes_out", e->sampled > 0, out);
    add_number(o, "estimated_s", e->sampled > 0, seconds);
    add_number(o, "memory_bytes", true, (double)memory);
    print_json_line(o);
}

int dry_run(const struct options *options)
{
    struct task_list list = {0};
    struct estimate estimate = {0};
    struct tsr_error error = {TSR_OK, TSR_NO_OFFSET, "", 0};
    double seconds;
    enum tsr_status status = list_tasks(options, NULL, &list, &error);
    say_unmatched(&options->in);
    bool *const is_wanted = calloc(list.count + 1, sizeof *is_wanted);
    if (status == TSR_OK && !is_wanted) status = refuse(&error, TSR_ERROR_LIMIT, "no memory for a list of files");
    struct tsr_engine *const engine = status == TSR_OK ? start_engine(options, 0, &seconds, &error) : NULL;
    if (engine) status = read_masks(engine, options, &error);
    if (engine && status == TSR_OK) {
        look_at(engine, options, &list, is_wanted, &estimate);
        take_samples(engine, options, &list, is_wanted, &estimate);
        print_estimate(options, &list, &estimate, tsr_engine_threads(engine));
        status = estimate.status;
    } else {
        say_error(&error);
        if (status == TSR_OK) status = error.status;
    }
    tsr_engine_destroy(engine);
    free_tasks(&list);
    free(is_wanted);
    return (int)status;
}
