/* The list of a run's tasks: what is added while inputs are walked through, and its end. */
#include "inputs.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct task *add_task(struct walk *walk, char *input, char *output, char *name, enum tsr_status status,
                      const char *reason)
{
    struct task_list *list = walk->list;
    if (!input || !grow_list(&list->tasks, list->count, &list->capacity, sizeof *list->tasks)) {
        walk->no_memory = true;
        free(input);
        free(output);
        free(name);
        return NULL;
    }
    struct task *task = &list->tasks[list->count++];
    *task = (struct task){.input = input, .output = output, .name = name, .root = walk->root, .status = status};
    task->descriptor = -1;
    if (reason) task->reason = strdup(reason);
    if (reason && !task->reason) walk->no_memory = true;
    return task;
}

void add_lost(struct walk *walk, const char *path, const char *folder, enum tsr_status status, const char *reason)
{
    struct task *const task = add_task(walk, strdup(path), NULL, NULL, status, reason);
    if (task && !(task->lost_in = strdup(folder))) walk->no_memory = true;
}

void add_skipped(struct walk *walk, const char *path, const char *reason)
{
    struct task_list *list = walk->list;
    char *const copy = strdup(path);
    if (!copy || !grow_list(&list->skipped, list->skipped_count, &list->skipped_capacity, sizeof *list->skipped)) {
        walk->no_memory = true;
        free(copy);
        return;
    }
    list->skipped[list->skipped_count++] = (struct skipped){copy, reason};
}

void add_empty_folder(struct walk *walk, const char *output)
{
    struct task_list *list = walk->list;
    char *const copy = strdup(output);
    if (!copy || !grow_list(&list->folders, list->folder_count, &list->folder_capacity, sizeof *list->folders)) {
        walk->no_memory = true;
        free(copy);
        return;
    }
    list->folders[list->folder_count++] = (struct empty_folder){copy, walk->root};
}

uint64_t input_bytes(const struct task_list *list)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < list->count; i++)
        if (list->tasks[i].status == TSR_OK) bytes += list->tasks[i].bytes;
    return bytes;
}

void free_task(struct task *task)
{
    if (task->descriptor >= 0) close(task->descriptor);
    free(task->input);
    free(task->output);
    free(task->name);
    free(task->reason);
    free(task->lost_in);
    free(task->member);
    free(task->mask);
    free(task->original);
}

void free_tasks(struct task_list *list)
{
    for (size_t i = 0; i < list->count; i++) free_task(&list->tasks[i]);
    for (size_t i = 0; i < list->skipped_count; i++) free(list->skipped[i].path);
    for (size_t i = 0; i < list->folder_count; i++) free(list->folders[i].output);
    free(list->tasks);
    free(list->skipped);
    free(list->folders);
    for (size_t i = 0; i < list->series_count; i++) tsr_close(list->series[i]);
    free(list->series);
    for (size_t i = 0; i < list->twin_count; i++) free(list->twins[i]);
    free(list->twins);
    for (size_t i = 0; list->set && i < list->in_set; i++) free(list->set[i]);
    free(list->set);
    tsr_file_set_destroy(list->tsr_seen);
}
