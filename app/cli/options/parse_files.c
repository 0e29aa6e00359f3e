/* Options that choose files and say what becomes of them: globs, shards, samples, --update, --rm, --to. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "parse.h"

enum tsr_status refuse_memory(const char *what)
{
    fprintf(stderr, "tessera: no memory for %s\n", what);
    return TSR_ERROR_LIMIT;
}

enum tsr_status add_filter(struct input_options *o, const char *pattern, bool includes)
{
    struct filter_rule *const grown = realloc(o->filters, (o->filter_count + 1) * sizeof *grown);
    if (!pattern[0]) return usage("an empty glob matches nothing: '%s'", pattern);
    if (!grown) return refuse_memory("a glob");
    o->filters = grown;
    o->filters[o->filter_count++] = (struct filter_rule){.pattern = pattern, .includes = includes};
    return TSR_OK;
}

enum tsr_status parse_rm(const char *text, struct archive_options *o)
{
    if (text && strcmp(text, "damaged-too") != 0) return usage("--rm takes nothing or =damaged-too, not '%s'", text);
    o->removes = true;
    o->removes_damaged = text != NULL;
    return TSR_OK;
}

enum tsr_status parse_update(const char *text, struct archive_options *o)
{
    if (text && strcmp(text, "hash") != 0) return usage("--update takes nothing or =hash, not '%s'", text);
    o->update = text ? UPDATE_BY_HASH : UPDATE_BY_TIME;
    return TSR_OK;
}

enum tsr_status parse_sample(const char *text, enum verb verb, struct sample_options *o)
{
    char number[32];
    double percent;
    const size_t length = strlen(text);
    if (verb == VERB_COMPARE && parse_number(text, 1, 1e9, &percent) && percent == floor(percent)) {
        o->count = (uint32_t)percent;
        return TSR_OK;
    }
    if (length < 2 || length >= sizeof number || text[length - 1] != '%')
        return usage(verb == VERB_COMPARE ? "--sample wants a number, as 60, or a percentage, as 5%%, not '%s'"
                                          : "--sample wants a percentage, as 5%%, not '%s'",
                     text);
    memcpy(number, text, length - 1);
    number[length - 1] = '\0';
    if (!parse_number(number, 1e-9, 100, &percent))
        return usage("--sample wants more than 0%%, at most 100%%, not '%s'", text);
    o->share = percent / 100;
    return TSR_OK;
}

enum tsr_status parse_seed(const char *text, struct sample_options *o)
{
    double number;
    if (!parse_number(text, 0, 1e15, &number) || number != floor(number))
        return usage("--seed wants a whole number, not '%s'", text);
    o->seed = (uint64_t)number;
    return TSR_OK;
}

/* A whole number in the environment; negative: there is none. */
static long long number_of(const char *name)
{
    const char *const text = getenv(name);
    double number;
    return text && parse_number(text, 0, 1e9, &number) && number == floor(number) ? (long long)number : -1;
}

/* The number of this process among its kind, from 0, as these variables say it. */
static bool shard_of(struct input_options *o, const char *rank, const char *count)
{
    const long long i = number_of(rank), n = number_of(count);
    if (i < 0 || n < 1 || i >= n) return false;
    o->shard = (uint32_t)i + 1;
    o->shards = (uint32_t)n;
    return true;
}

static bool shard_of_array(struct input_options *o)
{
    const long long id = number_of("SLURM_ARRAY_TASK_ID"), first = number_of("SLURM_ARRAY_TASK_MIN"),
                    count = number_of("SLURM_ARRAY_TASK_COUNT"), said = number_of("SLURM_ARRAY_TASK_STEP"),
                    step = said > 0 ? said : 1;
    if (id < 0 || first < 0 || count < 1 || id < first || (id - first) % step != 0 || (id - first) / step >= count)
        return false;
    o->shard = (uint32_t)((id - first) / step) + 1;
    o->shards = (uint32_t)count;
    return true;
}

enum tsr_status parse_shard(const char *text, struct input_options *o)
{
    unsigned long i, n;
    char rest;
    if (strcmp(text, "auto") == 0) {
        if (getenv("SLURM_ARRAY_TASK_ID")) {
            if (shard_of_array(o)) return TSR_OK;
            return usage("--shard auto: SLURM_ARRAY_TASK_ID %s does not fit SLURM_ARRAY_TASK_MIN, _COUNT and _STEP; an "
                         "array's numbers must follow each other",
                         getenv("SLURM_ARRAY_TASK_ID"));
        }
        if (shard_of(o, "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE") || shard_of(o, "PMI_RANK", "PMI_SIZE") ||
            shard_of(o, "SLURM_PROCID", "SLURM_NTASKS"))
            return TSR_OK;
        return usage("--shard %s: neither Slurm nor MPI has numbered this process; say --shard I/N", text);
    }
    if (sscanf(text, "%lu/%lu%c", &i, &n, &rest) != 2 || i < 1 || i > n || n > 1000000)
        return usage("--shard wants I/N, as 1/8 to 8/8, or auto, not '%s'", text);
    o->shard = (uint32_t)i;
    o->shards = (uint32_t)n;
    return TSR_OK;
}

enum tsr_status parse_export(const char *text, struct export_options *o)
{
    int found = 0;
    while (found <= TSR_EXPORT_HTJ2K && strcmp(text, export_word((enum tsr_export_syntax)found)) != 0) found++;
    if (found > TSR_EXPORT_HTJ2K)
        return usage("--to wants native, jpeg-ls, jpeg-lossless, rle, j2k or htj2k, not '%s'", text);
    o->syntax = (enum tsr_export_syntax)found;
    o->is_given = true;
    return TSR_OK;
}
