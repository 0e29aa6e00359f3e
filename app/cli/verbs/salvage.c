/* tessera decompress --salvage: what is left of damaged files, one after the other, with masks and lists. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/cli/cli.h"
#include "app/cli/inputs/inputs.h"
#include "app/cli/json.h"

/* The exit status where something was saved: nothing is proven of a file of which something may be lost. */
enum { SALVAGED = 76 };

struct salvaging {
    const struct options *options;
    const struct task *task;
};

static void add_input(cJSON *o, const struct task *task)
{
    add_name(o, "file", task->input);
    if (task->member) add_name(o, "member", task->member);
}

static void tell_region(void *context, uint32_t frame, const struct tsr_region *r, bool is_held)
{
    const struct salvaging *const s = context;
    const int numbers[4] = {(int)r->column, (int)r->row, (int)r->columns, (int)r->rows};
    if (!s->options->talk.json) return;
    cJSON *const o = cJSON_CreateObject();
    add_input(o, s->task);
    cJSON_AddNumberToObject(o, "frame", frame);
    cJSON_AddItemToObject(o, "region", cJSON_CreateIntArray(numbers, 4));
    cJSON_AddBoolToObject(o, "held", is_held);
    print_json_line(o);
}

/* A line of a file at its end. found: NULL where it has failed. */
static void tell_file(const struct options *options, const struct task *task, const struct tsr_salvaged *found,
                      const struct tsr_error *error)
{
    if (options->talk.json) {
        cJSON *const o = cJSON_CreateObject();
        add_input(o, task);
        add_name(o, "output", found ? task->output : NULL);
        add_name(o, "mask", found ? task->mask : NULL);
        add_text(o, "status", found ? "salvaged" : "failed");
        add_number(o, "frames", found, found ? found->image.frames : 0);
        add_number(o, "frames_written", found, found ? found->frames : 0);
        add_number(o, "samples", found, found ? (double)found->samples : 0);
        add_number(o, "samples_held", found, found ? (double)found->samples_held : 0);
        if (found) cJSON_AddBoolToObject(o, "lossless", !found->lossy);
        if (found) cJSON_AddBoolToObject(o, "searched", found->is_searched);
        add_text(o, "error", found ? NULL : error->text);
        add_number(o, "exit", true, found ? SALVAGED : (double)error->status);
        print_json_line(o);
    } else if (found && options->talk.verbosity >= 0) {
        talk("%s%s%s -> %s: %.2f %% of the samples are held%s; %s is the mask\n", shown_bare(task->input),
             task->member ? ": " : "", task->member ? shown_bare(task->member) : "", shown(task->output),
             100.0 * (double)found->samples_held / (double)found->samples,
             found->lossy ? ", as they were coded with loss" : ", as they were", shown(task->mask));
    }
    if (!found) say_error(error);
    fflush(stdout);
}

static enum tsr_status salvage_one(struct tsr_engine *engine, const struct options *options, const struct task *task,
                                   struct tsr_error *error)
{
    const struct salvaging salvaging = {options, task};
    struct tsr_data_source source = tsr_of(task);
    const struct tsr_data_sink sink = sink_of(options, task);
    struct tsr_data_sink of_mask = sink;
    struct tsr_salvage_sinks sinks = TSR_SALVAGE_SINKS;
    struct tsr_salvaged found = TSR_SALVAGED;
    enum tsr_status status = task->status == TSR_OK ? check_picture_name(task, error) : refuse_task(error, task);
    if (status == TSR_OK) status = check_not_original(task, task->mask, error);
    of_mask.path = task->mask;
    of_mask.overwrite = options->out.force;
    source.base = options->in.base;
    sinks.picture = options->picture.form;
    sinks.mask = &of_mask;
    sinks.tell = tell_region;
    sinks.context = (void *)(uintptr_t)&salvaging;
    if (status == TSR_OK)
        status = tsr_salvage(engine, &source, task->series ? task->number : 0, &sink, &sinks, &found, error);
    if (status != TSR_OK) name_flags(error);
    if (status != TSR_OK) name_file(error, task->input, task->member);
    tell_file(options, task, status == TSR_OK ? &found : NULL, error);
    return status;
}

static void tell_summary(const struct options *options, size_t files, size_t failed, int status)
{
    if (options->talk.json) {
        cJSON *const o = cJSON_CreateObject();
        cJSON_AddBoolToObject(o, "summary", true);
        add_text(o, "verb", "decompress");
        add_number(o, "files", true, (double)files);
        add_number(o, "salvaged", true, (double)(files - failed));
        add_number(o, "failed", true, (double)failed);
        add_number(o, "exit", true, status);
        print_json_line(o);
    } else if (options->talk.verbosity >= 0 && files > 1) {
        talk("%zu of %zu files: what is left of them was written; nothing of it is proven as a whole\n", files - failed,
             files);
    }
}

int salvage_files(const struct options *options)
{
    struct task_list list = {0};
    struct tsr_error error = {TSR_OK, TSR_NO_OFFSET, "", 0};
    double seconds;
    size_t failed = 0;
    struct tsr_engine *const engine = start_engine(options, 0, &seconds, &error);
    enum tsr_status status = engine ? list_tasks(options, engine, &list, &error) : error.status;
    say_unmatched(&options->in);
    if (status != TSR_OK) say_error(&error);
    int exit_status = (int)status;
    for (size_t i = 0; i < list.count && exit_status == TSR_OK; i++) {
        status = salvage_one(engine, options, &list.tasks[i], &error);
        failed += status != TSR_OK;
        if (status == TSR_ERROR_WRITE) exit_status = (int)status; /* so would the next one be */
    }
    if (list.count > 0 && exit_status == TSR_OK) {
        if (failed < list.count && tsr_sync_folders(&error) != TSR_OK) {
            say_error(&error);
            exit_status = (int)error.status;
        }
        if (exit_status == TSR_OK)
            exit_status = failed == 0 ? SALVAGED : list.count == 1 ? (int)status : TSR_ERROR_PARTIAL;
        tell_summary(options, list.count, failed, exit_status);
    }
    free_tasks(&list);
    tsr_engine_destroy(engine);
    return exit_status;
}
