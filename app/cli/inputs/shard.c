/* Shards: the part of a set that one of several runs works on. Samples: a part that is drawn. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "inputs.h"

uint64_t hash_name(const char *name)
{
    uint64_t hash = 0xcbf29ce484222325u;
    for (; *name; name++) hash = (hash ^ (unsigned char)*name) * 0x100000001b3u;
    hash = (hash ^ hash >> 33) * 0xff51afd7ed558ccdu;
    hash = (hash ^ hash >> 33) * 0xc4ceb9fe1a85ec53u;
    return hash ^ hash >> 33;
}

static const char *name_of(const struct task *task)
{
    return task->name ? task->name : task->input;
}

void keep_marked(struct task_list *list, const bool *marked)
{
    size_t kept = 0;
    for (size_t i = 0; i < list->count; i++) {
        if (marked[i])
            list->tasks[kept++] = list->tasks[i];
        else
            free_task(&list->tasks[i]);
    }
    list->excluded += list->count - kept;
    list->count = kept;
}

struct weight {
    uint64_t bytes;
    size_t task;
};

static int heaviest_first(const void *a, const void *b)
{
    const struct weight *one = a, *other = b;
    if (one->bytes != other->bytes) return one->bytes < other->bytes ? 1 : -1;
    return (one->task > other->task) - (one->task < other->task);
}

/* Bytes of an original, also of one that --rm has removed already: its .tsr says them. */
static uint64_t bytes_of(struct tsr_engine *engine, const struct task *task)
{
    const struct tsr_data_source source = from_tsr(task->output);
    struct tsr_info info = TSR_INFO;
    struct tsr_reader *reader = NULL;
    struct tsr_error error;
    struct stat status;
    const bool is_gone = task->bytes == 0 && stat(task->input, &status) != 0 && errno == ENOENT;
    if (!is_gone || !task->output || !engine) return task->bytes;
    const bool is_known = tsr_open(engine, &source, &reader, &error) == TSR_OK &&
                          tsr_reader_content(reader) == TSR_CONTENT_TSR &&
                          tsr_read_info(reader, 0, &info, &error) == TSR_OK;
    tsr_close(reader);
    return is_known ? info.original_bytes : 0;
}

/* The largest first, each to the shard that has least. A file counts as some bytes more than it has, for its opening.
 */
static void balance(const struct input_options *in, const struct weight *weights, size_t count, uint64_t *load,
                    bool *marked)
{
    enum { OPENING = 1 << 16 };
    for (size_t i = 0; i < count; i++) {
        uint32_t least = 0;
        for (uint32_t s = 1; s < in->shards; s++)
            if (load[s] < load[least]) least = s;
        load[least] += weights[i].bytes + OPENING;
        marked[weights[i].task] = least + 1 == in->shard;
    }
}

static bool mark_balanced(const struct input_options *in, const struct task_list *list, bool *marked)
{
    struct tsr_engine_options small = TSR_ENGINE_OPTIONS;
    struct tsr_engine *engine = NULL;
    struct weight *const weights = malloc((list->count + 1) * sizeof *weights);
    uint64_t *const load = calloc(in->shards, sizeof *load);
    const bool has_memory = weights && load;
    small.choice = TSR_ENGINE_CPU;
    small.threads = 1;
    if (has_memory && tsr_engine_create(&small, &engine, NULL) != TSR_OK) engine = NULL;
    for (size_t i = 0; has_memory && i < list->count; i++)
        weights[i] = (struct weight){bytes_of(engine, &list->tasks[i]), i};
    if (has_memory && list->count > 0) qsort(weights, list->count, sizeof *weights, heaviest_first);
    if (has_memory) balance(in, weights, list->count, load, marked);
    tsr_engine_destroy(engine);
    free(weights);
    free(load);
    return has_memory;
}

enum tsr_status take_shard(const struct input_options *in, struct task_list *list, struct tsr_error *error)
{
    bool *const marked = calloc(list->count + 1, sizeof *marked);
    bool has_memory = marked != NULL;
    if (has_memory && in->files_from && !in->recursive) /* what folders hold may change meanwhile */
        has_memory = mark_balanced(in, list, marked);
    else
        for (size_t i = 0; has_memory && i < list->count; i++)
            marked[i] = hash_name(name_of(&list->tasks[i])) % in->shards == in->shard - 1;
    if (has_memory) keep_marked(list, marked);
    free(marked);
    return has_memory ? TSR_OK : refuse(error, TSR_ERROR_LIMIT, "no memory to choose among %zu files", list->count);
}

/* Each choice of that many files is as likely as another. What has failed already is in each. */
enum tsr_status take_sample(const struct sample_options *sample, struct task_list *list, struct tsr_error *error)
{
    bool *const marked = calloc(list->count + 1, sizeof *marked);
    size_t rest = 0;
    uint64_t drawn;
    if (!marked) return refuse(error, TSR_ERROR_LIMIT, "no memory to choose among %zu files", list->count);
    for (size_t i = 0; i < list->count; i++) rest += list->tasks[i].status == TSR_OK;
    size_t wanted = (size_t)((double)rest * sample->share + 0.999999);
    for (size_t i = 0; i < list->count; i++) {
        marked[i] = list->tasks[i].status != TSR_OK;
        if (marked[i]) continue;
        if (getrandom(&drawn, sizeof drawn, 0) != sizeof drawn) drawn = hash_name(list->tasks[i].input);
        marked[i] = drawn % rest-- < wanted;
        wanted -= marked[i];
    }
    keep_marked(list, marked);
    free(marked);
    return TSR_OK;
}
