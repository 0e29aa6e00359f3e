/* Samples by modality and size; see sample.h. */
#include "sample.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "app/cli/inputs/inputs.h"
#include "fields.h"

/* An image before it is drawn. */
struct candidate {
    char modality[17];
    int size_class; /* log4 of the file's bytes */
    uint64_t draw;  /* the smallest are taken first */
    size_t task;
};

/* SplitMix64 (Steele, Lea, Flood 2014): a well-mixed number for each state. */
static uint64_t next_number(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static void describe(struct tsr_engine *engine, const struct task *task, struct candidate *candidate)
{
    const struct tsr_data_source source = from_tsr(task->input);
    struct tsr_reader *reader = NULL;
    struct tsr_info info = TSR_INFO;
    struct tsr_error ignored;
    struct fields fields = {.modality = ""};
    if (task->status == TSR_OK && tsr_open(engine, &source, &reader, &ignored) == TSR_OK &&
        tsr_read_info(reader, 0, &info, &ignored) == TSR_OK)
        read_fields(reader, info.kind, &fields);
    tsr_close(reader);
    memcpy(candidate->modality, fields.modality, sizeof candidate->modality);
    candidate->size_class = task->bytes > 0 ? (int)(log2((double)task->bytes) / 2) : 0;
}

static int compare_strata(const struct candidate *a, const struct candidate *b)
{
    const int order = strcmp(a->modality, b->modality);
    return order ? order : (a->size_class > b->size_class) - (a->size_class < b->size_class);
}

static int by_stratum(const void *a, const void *b)
{
    const struct candidate *const one = a, *const other = b;
    const int order = compare_strata(one, other);
    if (order) return order;
    if (one->draw != other->draw) return one->draw < other->draw ? -1 : 1;
    return (one->task > other->task) - (one->task < other->task);
}

/* Marks wanted of the sorted candidates: of each stratum its share, counted up so that the shares add up. */
static void mark(const struct candidate *candidates, size_t count, size_t wanted, bool *marked)
{
    size_t strata = 0, taken = 0;
    for (size_t i = 0; i < count; i++) strata += i == 0 || compare_strata(&candidates[i], &candidates[i - 1]) != 0;
    const size_t spare = wanted > strata ? wanted - strata : 0; /* beyond one each */
    for (size_t first = 0, end; first < count && taken < wanted; first = end) {
        end = first + 1;
        while (end < count && compare_strata(&candidates[end], &candidates[first]) == 0) end++;
        const double before = (double)first / (double)count, after = (double)end / (double)count;
        size_t share = 1 + (size_t)(after * (double)spare + 0.5) - (size_t)(before * (double)spare + 0.5);
        for (size_t i = first; i < end && share > 0 && taken < wanted; i++, share--, taken++)
            marked[candidates[i].task] = true;
    }
    for (size_t i = 0; i < count && taken < wanted; i++) { /* strata that had fewer than their share */
        taken += !marked[candidates[i].task];
        marked[candidates[i].task] = true;
    }
}

enum tsr_status take_images(const struct options *options, struct tsr_engine *engine, struct task_list *list,
                            struct tsr_error *error)
{
    const size_t share = (size_t)ceil((double)list->count * options->sample.share - 1e-9);
    const size_t wanted = options->sample.count > 0 ? options->sample.count : share;
    uint64_t state = options->sample.seed;
    if (wanted == 0 || wanted >= list->count) return TSR_OK;
    struct candidate *const candidates = calloc(list->count, sizeof *candidates);
    bool *const marked = calloc(list->count, sizeof *marked);
    for (size_t i = 0; candidates && marked && i < list->count; i++) {
        candidates[i].task = i;
        candidates[i].draw = next_number(&state);
        describe(engine, &list->tasks[i], &candidates[i]);
    }
    if (candidates && marked) {
        qsort(candidates, list->count, sizeof *candidates, by_stratum);
        mark(candidates, list->count, wanted, marked);
        keep_marked(list, marked);
    }
    const bool has_memory = candidates && marked;
    free(candidates);
    free(marked);
    return has_memory ? TSR_OK : refuse(error, TSR_ERROR_LIMIT, "no memory to choose among %zu files", list->count);
}
