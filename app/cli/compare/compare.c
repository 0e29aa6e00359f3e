/* tessera compare: how Tessera stands against other codecs on the user's own images.
 *
 * Each file is compressed as compress would do it, in memory, with its proof. Of each image the middle frame's samples
 * then go to all codecs, Tessera among them, which run in the helper program and are measured there in one way. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/cli/evidence/origin.h"
#include "app/cli/evidence/page_file.h"
#include "app/cli/json.h"
#include "app/report/comparison.h"
#include "compare.h"
#include "sample.h"

/* The run, added up as its images are reported. */
static struct {
    struct columns columns;
    struct report_origin origin;
    struct page_file page, csv;
    enum tsr_status page_status; /* of either */
    struct report_image *images;
    size_t image_count, image_capacity;
    struct report_cell *cells;
    size_t cell_count, cell_capacity;
    size_t *task_of_image;
    size_t task_capacity;
    char **series; /* what has a number */
    size_t series_count, series_capacity;
    size_t files_in_set, failed, reported;
    const struct task_list *list;
    struct tsr_engine *engine;
} run;

/* ---- The list --------------------------------------------------------------------------------------------- */

/* Before it starts: how long it takes. */
static void say_size(const struct options *options, struct tsr_engine *engine, const struct task_list *list)
{
    enum { MANY = 300 /* seconds */ };
    size_t good = 0; /* files that may be images */
    for (size_t i = 0; i < list->count; i++) good += list->tasks[i].work > 0.5;
    if (options->talk.verbosity < 0 || good == 0) return;
    const double seconds = estimate_seconds(engine, options, &run.columns, list);
    if (isnan(seconds)) return;
    fprintf(stderr, "tessera: compare: %zu", list->count);
    if (list->count < run.files_in_set) fprintf(stderr, " of %zu", run.files_in_set);
    fprintf(stderr, " file%s, by all codecs and settings: about ", run.files_in_set == 1 ? "" : "s");
    if (seconds < 200)
        fprintf(stderr, "%.0f s", fmax(1, seconds));
    else if (seconds < 6000)
        fprintf(stderr, "%.0f minutes", seconds / 60);
    else
        fprintf(stderr, "%.1f hours", seconds / 3600);
    fprintf(stderr, " on an idle machine%s\n", seconds > MANY && list->count > 60 ? "; --sample 60 takes less" : "");
}

static enum tsr_status list_images(const struct options *options, struct tsr_engine *engine, struct task_list *list,
                                   struct tsr_error *error)
{
    struct options all = *options;
    all.sample.share = 0;
    enum tsr_status status = list_tasks(&all, NULL, list, error);
    run.files_in_set = list->count;
    if (status == TSR_OK) status = take_images(options, engine, list, error);
    if (status == TSR_OK) status = make_columns(options, &run.columns, error);
    if (status == TSR_OK && options->report.page)
        status = open_page(options->report.page, options->out.force, &run.page, error);
    if (status == TSR_OK && options->report.csv)
        status = open_page(options->report.csv, options->out.force, &run.csv, error);
    if (status != TSR_OK) return status;
    run.list = list;
    run.engine = engine;
    for (size_t i = 0; i < list->count; i++) list->tasks[i].work = image_seconds(engine, &list->tasks[i]);
    say_size(options, engine, list);
    return TSR_OK;
}

/* ---- Images ----------------------------------------------------------------------------------------------- */

static enum tsr_status compare_task(struct tsr_engine *engine, const struct options *options, const struct task *task,
                                    struct outcome *outcome)
{
    struct measured *const measured = calloc(1, sizeof *measured);
    outcome->more = measured;
    if (!measured) return refuse(&outcome->error, TSR_ERROR_LIMIT, "no memory to compare");
    measured->task = task;
    measured->outcome = outcome;
    measured->columns = &run.columns;
    const enum tsr_status status = measure_file(engine, options, &run.columns, task, measured, &outcome->error);
    outcome->report.bytes_in = measured->image.file_bytes;
    outcome->report.bytes_out = measured->image.tsr_bytes;
    return status;
}

/* The number of a series: that of its identifier, or of the folder that the file lies in. 0: no memory. */
static uint32_t number_series(const char *identifier, const char *path)
{
    const char *const slash = strrchr(path, '/');
    char *name = NULL;
    if (identifier[0] ? asprintf(&name, "uid %s", identifier) < 0
                      : asprintf(&name, "folder %.*s", slash ? (int)(slash - path) : 0, path) < 0)
        return 0;
    for (size_t i = 0; i < run.series_count; i++) {
        if (strcmp(run.series[i], name) != 0) continue;
        free(name);
        return (uint32_t)i + 1;
    }
    if (!grow_list(&run.series, run.series_count, &run.series_capacity, sizeof *run.series)) {
        free(name);
        return 0;
    }
    run.series[run.series_count++] = name;
    return (uint32_t)run.series_count;
}

/* Adds an image and its cells to those of the run. False: no memory. */
static bool keep_image(const struct options *options, const struct task *task, struct measured *measured)
{
    bool changed;
    if (!grow_list(&run.images, run.image_count, &run.image_capacity, sizeof *run.images) ||
        !grow_list(&run.task_of_image, run.image_count, &run.task_capacity, sizeof *run.task_of_image))
        return false;
    struct report_image *const image = &run.images[run.image_count];
    *image = measured->image;
    image->number = (uint32_t)run.image_count + 1;
    image->series = number_series(measured->series, task->input);
    image->name = options->report.identify ? copy_as_utf8(task->input, &changed) : NULL;
    run.task_of_image[run.image_count] = (size_t)(task - run.list->tasks);
    for (size_t i = 0; i < measured->count; i++) {
        if (!grow_list(&run.cells, run.cell_count, &run.cell_capacity, sizeof *run.cells)) return false;
        measured->cells[i].image = (uint32_t)run.image_count;
        run.cells[run.cell_count++] = measured->cells[i];
    }
    run.image_count++;
    return true;
}

static void print_image_line(const struct options *options, const struct task *task, const struct report_image *image)
{
    if (options->report.identify || options->talk.verbosity > 0)
        printf("%s", shown(task->input));
    else
        printf("image %u", image->number);
    if (image->columns > 0)
        printf(": %s, %u x %u, %d bits%s", image->modality, image->columns, image->rows, image->bits,
               image->components >= 3 ? ", colour" : "");
    if (image->frames > 1) printf(", frame %u of %u", image->frame + 1, image->frames);
    if (image->reason[0]) printf("; %s", shown(image->reason));
    if (image->lossy_columns > 0 && !image->is_judged)
        printf("; not judged with loss: %llu samples lie inside %s", (unsigned long long)image->counted, image->window);
    printf("\n");
}

static void report_image(const struct options *options, const struct task *task, const struct outcome *outcome)
{
    struct measured *const measured = outcome->more;
    run.reported++;
    run.failed += outcome->status != TSR_OK;
    if (measured && outcome->status != TSR_OK) {
        measured->image.proof = PROOF_FAILED;
        snprintf(measured->image.reason, sizeof measured->image.reason, "%.150s",
                 options->report.identify ? outcome->error.text : tsr_status_name(outcome->status));
    }
    const bool kept = measured && keep_image(options, task, measured);
    if (options->talk.json && kept)
        print_image_json(&run.columns, &run.images[run.image_count - 1], measured, task, options, outcome);
    else if (kept && options->talk.verbosity > 0 && outcome->status == TSR_OK)
        print_image_line(options, task, &run.images[run.image_count - 1]);
    if (outcome->status != TSR_OK) say_failure(outcome);
    if (measured && !kept) fprintf(stderr, "tessera: no memory for the results of %s\n", shown(task->input));
    free_measured(measured);
    fflush(stdout);
}

/* ---- The whole -------------------------------------------------------------------------------------------- */

static void end_page(struct page_file *page, bool is_good)
{
    struct tsr_error error;
    const enum tsr_status status = close_page(page, is_good, &error);
    if (status == TSR_OK) return;
    say_error(&error);
    run.page_status = status;
}

static void write_page(const struct options *options, struct tsr_engine *engine, struct report_comparison *comparison)
{
    struct report_view *views = NULL;
    struct tsr_error error;
    size_t size;
    char *csv = NULL;
    FILE *const text = open_memstream(&csv, &size);
    if (text) {
        write_csv(text, comparison);
        fclose(text);
    }
    comparison->csv = csv;
    if (make_views(engine, options, &run.columns, run.list, comparison, run.task_of_image, &views,
                   &comparison->view_count, &error) != TSR_OK)
        say_error(&error);
    comparison->views = views;
    const bool written = report_write_comparison(run.page.file, comparison);
    end_page(&run.page, written);
    free_views(views, comparison->view_count);
    free(csv);
}

static void summarise(const struct options *options, const struct task_list *list, const struct run_times *times,
                      const struct tally *tally)
{
    (void)times;
    (void)tally;
    end_origin(&run.origin);
    struct report_comparison comparison = {
        .origin = run.origin,
        .is_identified = options->report.identify,
        .codecs = run.columns.report,
        .codec_count = run.columns.count,
        .images = run.images,
        .image_count = run.image_count,
        .cells = run.cells,
        .cell_count = run.cell_count,
        .files_in_set = run.files_in_set,
        .sampled = list->count,
        .seed = options->sample.seed,
    };
    if (run.failed == run.image_count) { /* nothing to show */
        drop_page(&run.page);
        drop_page(&run.csv);
    }
    if (options->talk.json)
        print_comparison_json(&comparison, options, run.failed);
    else if (options->talk.verbosity >= 0)
        print_comparison(&comparison, options);
    if (run.csv.file) {
        write_csv(run.csv.file, &comparison);
        end_page(&run.csv, true);
    }
    if (run.page.file) write_page(options, run.engine, &comparison);
}

static void free_run(void)
{
    free_origin(&run.origin);
    drop_page(&run.page);
    drop_page(&run.csv);
    for (size_t i = 0; i < run.image_count; i++) free((char *)(uintptr_t)run.images[i].name);
    for (size_t i = 0; i < run.series_count; i++) free(run.series[i]);
    free(run.images);
    free(run.cells);
    free(run.task_of_image);
    free(run.series);
    free_columns(&run.columns);
    rivals_close(run.columns.rivals);
}

int compare_verb(const struct options *options)
{
    static const struct task_work work = {true, list_images, compare_task, report_image, summarise, NULL, NULL};
    memset(&run, 0, sizeof run);
    run.columns.rivals = rivals_find();
    if (!run.columns.rivals && options->talk.verbosity >= 0)
        fprintf(stderr, "tessera: compare without other codecs: the program " RIVALS_NAME " was not found\n");
    begin_origin(options, options->report.identify, &run.origin);
    const int status = run_tasks(options, &work);
    free_run();
    return run.page_status != TSR_OK ? (int)run.page_status : status;
}
