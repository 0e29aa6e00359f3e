/* Twins: outputs of one run that are one file where a file system does not tell all names apart. Whether it does is
 * known when one of them is there; of which outputs it can be asked is known before. */
#include <stdlib.h>
#include <string.h>

#include "inputs.h"

/* Of so many before and behind a name it is asked: names of letters that are all not ASCII may all be twins. */
enum { NEIGHBOURS = 8 };

/* Twins stand together, and among them those that differ by the case of ASCII alone. */
static int by_folded(const void *a, const void *b)
{
    const char *const one = (*(struct task *const *)a)->output, *const other = (*(struct task *const *)b)->output;
    const int order = tsr_compare_folded(one, other), by_case = order ? order : strcasecmp(one, other);
    return by_case ? by_case : strcmp(one, other);
}

bool find_twins(struct task_list *list)
{
    struct task **const sorted = malloc((list->count + 1) * sizeof *sorted);
    size_t count = 0, capacity = 0;
    bool has_memory = sorted != NULL;
    for (size_t i = 0; has_memory && i < list->count; i++)
        if (list->tasks[i].output) sorted[count++] = &list->tasks[i];
    if (count > 0) qsort(sorted, count, sizeof *sorted, by_folded);
    for (size_t i = 0; i < count && has_memory; i++) {
        const char *const output = sorted[i]->output;
        const bool is_twin = (i > 0 && tsr_compare_folded(output, sorted[i - 1]->output) == 0) ||
                             (i + 1 < count && tsr_compare_folded(output, sorted[i + 1]->output) == 0);
        if (!is_twin) continue;
        has_memory = grow_list(&list->twins, list->twin_count, &capacity, sizeof *list->twins) &&
                     (list->twins[list->twin_count] = strdup(output)) != NULL;
        if (has_memory) sorted[i]->twin = ++list->twin_count;
    }
    free(sorted);
    return has_memory;
}

bool has_twin(const struct task_list *list, const struct task *task)
{
    if (task->twin == 0) return false;
    const size_t own = task->twin - 1, first = own > NEIGHBOURS ? own - NEIGHBOURS : 0;
    struct tsr_file_set *const set = tsr_file_set_create();
    bool is_one = !set || tsr_file_set_add(set, task->output, NULL, NULL) != TSR_OK; /* then nothing is known */
    for (size_t i = first; i < list->twin_count && i <= own + NEIGHBOURS && !is_one; i++)
        is_one = strcmp(list->twins[i], task->output) != 0 && tsr_file_set_find(set, list->twins[i], NULL);
    tsr_file_set_destroy(set);
    return is_one;
}
