/* Sets and series: results, progress and cancelling. */
#include <sys/stat.h>
#include <unistd.h>

#include "../../app/tessera_cli.h"
#include "check.h"

enum { TASKS = 40 };

static struct tsr_engine *engine;
static struct tsr_error error;

struct counts {
    int asked, limit; /* limit: the number of tasks that may begin */
    int told[TASKS], good, failed, cancelled, inside, begun[TASKS];
};

static void note_begin(void *context, size_t index)
{
    struct counts *c = context;
    __atomic_add_fetch(&c->begun[index], 1, __ATOMIC_SEQ_CST);
}

static bool is_over(void *context)
{
    struct counts *c = context;
    return __atomic_add_fetch(&c->asked, 1, __ATOMIC_SEQ_CST) > c->limit;
}

static void count_result(void *context, const struct tsr_result *result)
{
    struct counts *c = context;
    CHECK(__atomic_add_fetch(&c->inside, 1, __ATOMIC_SEQ_CST) == 1, "two results are told at once");
    c->told[result->index]++;
    c->good += result->status == TSR_OK;
    c->cancelled += result->status == TSR_ERROR_CANCELLED;
    c->failed += result->status != TSR_OK && result->status != TSR_ERROR_CANCELLED;
    CHECK(result->status == TSR_OK || result->error->text[0], "a failure without a sentence");
    CHECK(result->status == TSR_OK || result->error->status == result->status, "the error has another status");
    __atomic_sub_fetch(&c->inside, 1, __ATOMIC_SEQ_CST);
}

/* The caller's work on the engine's threads. It compresses, too. */
static enum tsr_status call(void *context, struct tsr_engine *with, struct tsr_report *report, struct tsr_error *why)
{
    const struct bytes *original = context;
    struct tsr_buffer tsr;
    const struct tsr_data_source source = tsr_from_memory(original->data, original->count);
    const struct tsr_data_sink sink = tsr_to_memory(&tsr);
    const enum tsr_status status = tsr_compress(with, &source, &sink, NULL, report, why);
    tsr_buffer_free(&tsr);
    return status;
}

static enum tsr_status fail(void *context, struct tsr_engine *with, struct tsr_report *report, struct tsr_error *why)
{
    (void)context, (void)with, (void)report;
    why->status = TSR_ERROR_READ;
    strcpy(why->text, "it was to fail");
    return TSR_ERROR_READ;
}

/* Compresses many files at once, then restores and tests them, from sources and from readers. */
static void whole_sets(const struct bytes *original)
{
    struct tsr_task tasks[TASKS];
    struct tsr_buffer tsr[TASKS], back[TASKS];
    for (int i = 0; i < TASKS; i++) {
        tasks[i] = (struct tsr_task)TSR_TASK;
        tasks[i].source = tsr_from_memory(original->data, original->count - (size_t)i);
        tasks[i].sink = tsr_to_memory(&tsr[i]);
    }
    struct counts c = {0};
    DO(tsr_run_set(engine, tasks, TASKS, NULL, count_result, &c, &error));
    CHECK(c.good == TASKS && c.asked == 0, "%d of them are good", c.good);
    for (int i = 0; i < TASKS; i++) CHECK(c.told[i] == 1, "task %d was told %d times", i, c.told[i]);

    struct tsr_reader *reader;
    const struct tsr_data_source first = tsr_from_memory(tsr[0].bytes, tsr[0].count);
    DO(tsr_open(engine, &first, &reader, &error));
    for (int i = 0; i < TASKS; i++) {
        tasks[i] = (struct tsr_task)TSR_TASK;
        tasks[i].kind = i % 4 == 3 ? TSR_TASK_CALL : i % 2 ? TSR_TASK_TEST : TSR_TASK_RESTORE;
        tasks[i].source = tsr_from_memory(tsr[i].bytes, tsr[i].count);
        if (i % 8 >= 4) tasks[i].reader = reader;
        tasks[i].sink = tsr_to_memory(&back[i]);
        tasks[i].call = i == 3 ? fail : call;
        tasks[i].context = (void *)original;
    }
    c = (struct counts){0};
    FAILS(TSR_ERROR_PARTIAL, tsr_run_set(engine, tasks, TASKS, NULL, count_result, &c, &error));
    CHECK(c.good == TASKS - 1 && c.failed == 1, "%d are good, %d have failed", c.good, c.failed);
    for (int i = 0; i < TASKS; i++) {
        if (tasks[i].kind == TSR_TASK_RESTORE) {
            const size_t count = original->count - (size_t)(i % 8 >= 4 ? 0 : i);
            CHECK(back[i].count == count && memcmp(back[i].bytes, original->data, count) == 0, "task %d", i);
            tsr_buffer_free(&back[i]);
        }
        tsr_buffer_free(&tsr[i]);
    }
    tsr_close(reader);
}

static void cancelled_set(const struct bytes *original)
{
    struct tsr_task tasks[TASKS];
    struct tsr_set_options options = TSR_SET_OPTIONS;
    struct counts c = {.limit = 7};
    for (int i = 0; i < TASKS; i++) {
        tasks[i] = (struct tsr_task)TSR_TASK;
        tasks[i].kind = TSR_TASK_CALL;
        tasks[i].call = call;
        tasks[i].context = (void *)original;
    }
    options.is_cancelled = is_over;
    options.on_begin = note_begin;
    FAILS(TSR_ERROR_CANCELLED, tsr_run_set(engine, tasks, TASKS, &options, count_result, &c, &error));
    int begun = 0;
    for (int i = 0; i < TASKS; i++) begun += c.begun[i];
    CHECK(begun == 7, "%d tasks were said to begin", begun);
    CHECK(c.good == 7 && c.cancelled == TASKS - 7, "%d are good, %d cancelled", c.good, c.cancelled);
    c = (struct counts){0};
    tasks[11].size--;
    FAILS(TSR_ERROR_USAGE, tsr_run_set(engine, tasks, TASKS, NULL, count_result, &c, &error));
    CHECK(strstr(error.text, "task 11") && c.good == 0, "%s", error.text);
    DO(tsr_run_set(engine, NULL, 0, NULL, NULL, NULL, &error));
}

static uint32_t last_step;

static void step(void *context, uint32_t steps, uint64_t bytes_in, uint64_t bytes_out)
{
    (void)context;
    CHECK(steps == last_step + 1 && bytes_out <= bytes_in + 4096 * steps, "step %u after %u", steps, last_step);
    last_step = steps;
}

static bool at_once(void *context)
{
    (void)context;
    return true;
}

static void series(const struct bytes *original)
{
    struct tsr_series_file files[12];
    char names[12][16];
    struct tsr_report reports[12] = {TSR_REPORT};
    struct tsr_series_options options = TSR_SERIES_OPTIONS;
    struct tsr_buffer tsr;
    const struct tsr_data_sink sink = tsr_to_memory(&tsr);
    uint64_t bytes;
    uint32_t failed;
    for (int i = 0; i < 12; i++) {
        snprintf(names[i], sizeof names[i], "s/%d", i);
        files[i] = (struct tsr_series_file){tsr_from_memory(original->data, original->count - (size_t)i), names[i]};
    }
    options.progress = step;
    DO(tsr_compress_series(engine, files, 12, &sink, &options, reports, &bytes, &failed, &error));
    CHECK(bytes == tsr.count && failed == 12 && last_step == 24, "%u steps", last_step);
    for (int i = 0; i < 12; i++)
        CHECK(reports[i].verified && reports[i].bytes_in == original->count - (size_t)i, "%d", i);
    tsr_buffer_free(&tsr);
    options.progress = NULL;
    options.is_cancelled = at_once;
    FAILS(TSR_ERROR_CANCELLED, tsr_compress_series(engine, files, 12, &sink, &options, NULL, NULL, NULL, &error));
    files[5].name = "s/4";
    FAILS(TSR_ERROR_EXISTS, tsr_compress_series(engine, files, 12, &sink, NULL, NULL, NULL, &failed, &error));
    CHECK(failed == 5, "file %u", failed);
    files[5].name = "../4";
    FAILS(TSR_ERROR_USAGE, tsr_compress_series(engine, files, 12, &sink, NULL, NULL, NULL, &failed, &error));
    CHECK(failed == 5 && !tsr.bytes, "file %u", failed);
}

static void note_status(void *context, const struct tsr_result *result)
{
    ((enum tsr_status *)context)[result->index] = result->status;
    if (result->status == TSR_ERROR_SAME_FILE)
        CHECK(strstr(result->error->text, "this run has written"), "%s", result->error->text);
}

/* No output of a set replaces another one, and none of a run does; those of other calls and sets do. */
static void outputs_of_one_run(const struct bytes *original)
{
    enum { COUNT = 12 };
    static const char path[] = "sets_one.tsr", link_path[] = "./sets_one.tsr";
    struct tsr_task tasks[COUNT];
    enum tsr_status told[COUNT];
    struct tsr_report report = TSR_REPORT;
    struct stat status;
    for (int round = 0; round < 3; round++) { /* in the later ones the file is there */
        for (int i = 0; i < COUNT; i++) {
            tasks[i] = (struct tsr_task)TSR_TASK;
            tasks[i].source = tsr_from_memory(original->data, original->count - (size_t)i);
            tasks[i].sink = tsr_to_path(i % 2 ? path : link_path);
            tasks[i].sink.overwrite = true;
        }
        FAILS(TSR_ERROR_PARTIAL, tsr_run_set(engine, tasks, COUNT, NULL, note_status, told, &error));
        int good = 0, refused = 0;
        for (int i = 0; i < COUNT; i++) good += told[i] == TSR_OK, refused += told[i] == TSR_ERROR_SAME_FILE;
        CHECK(good == 1 && refused == COUNT - 1, "%d are good, %d refused", good, refused);
    }
    const struct tsr_data_source source = tsr_from_memory(original->data, original->count);
    struct tsr_data_sink sink = tsr_to_path(path);
    struct tsr_file_set *const run = tsr_file_set_create();
    CHECK(run, "no memory");
    sink.overwrite = true;
    DO(tsr_compress(engine, &source, &sink, NULL, &report, &error)); /* of no run: twice */
    DO(tsr_compress(engine, &source, &sink, NULL, &report, &error));
    sink.written = run;
    DO(tsr_compress(engine, &source, &sink, NULL, &report, &error));
    CHECK(stat(path, &status) == 0 && report.output.inode == (uint64_t)status.st_ino &&
              report.output.device == (uint64_t)status.st_dev && report.output.bytes == report.bytes_out &&
              report.output.changed_ns == (uint32_t)status.st_ctim.tv_nsec,
          "the report tells of another file");
    CHECK(tsr_file_set_find(run, link_path, NULL) && strcmp(tsr_file_set_find(run, link_path, NULL), path) == 0,
          "the output is not among those of its run");
    FAILS(TSR_ERROR_SAME_FILE, tsr_compress(engine, &source, &sink, NULL, NULL, &error));
    sink.path = link_path;
    sink.overwrite = false; /* that it exists would be no reason to set overwrite */
    FAILS(TSR_ERROR_SAME_FILE, tsr_compress(engine, &source, &sink, NULL, NULL, &error));
    sink.written = NULL;
    FAILS(TSR_ERROR_EXISTS, tsr_compress(engine, &source, &sink, NULL, NULL, &error));
    tsr_file_set_destroy(run);
    CHECK(unlink(path) == 0, "no output");
}

int main(void)
{
    engine = make_engine(4);
    struct bytes original = make_pnm(200, 150, 1, 8, 1);
    whole_sets(&original);
    cancelled_set(&original);
    series(&original);
    outputs_of_one_run(&original);
    free(original.data);
    tsr_engine_destroy(engine);
    return 0;
}
