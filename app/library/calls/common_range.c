/* One range for the images of a series: two slices must not differ in what they lose. Where their rescale slopes
 * differ, as in PET, this is one range in physical units: an image whose slope is a half of another's has twice its
 * range. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "app/library/arguments.h"
#include "app/library/budget.h"
#include "app/library/call.h"
#include "app/library/files.h"
#include "app/library/loss/range.h"
#include "io/formats/dicom/dicom_file.h"
#include "kernels/pool/thread_pool.h"
#include "transform/status.h"

enum { ONE_IN = 4, MOST = 16 }; /* images that are looked at */

struct group {
    uint32_t first, count; /* in the order of groups */
    atomic_uint range;     /* in stored values of this slope: */
    struct tsr_decimal slope;
};

struct grouping {
    struct tsr_engine *engine;
    const struct tsr_data_source *const *sources;
    struct member {
        struct tsr_dicom_series series;
        uint32_t number;
    } * members;
    struct group *groups;
    atomic_bool has_no_memory, is_cancelled;
};

/* ---- Groups ----------------------------------------------------------------------------------------------- */

/* Opens a source of which a part is read. False: it cannot be opened, or it is in vain. */
static bool look_into(const struct grouping *g, const struct tsr_data_source *source, struct tsr_input **input,
                      struct tsr_account *account)
{
    struct tsr_error ignored;
    if (atomic_load(&g->is_cancelled) || tsr_open_source(source, input, &ignored) != TSR_OK) return false;
    tsr_ask_without_progress(*input, source);
    tsr_account_open(account, g->engine, *input, NULL);
    return true;
}

static void look_away(struct grouping *g, struct tsr_input *input, struct tsr_account *account)
{
    struct tsr_error ignored;
    if (tsr_account_end(account, input, TSR_OK, &ignored) != TSR_OK) atomic_store(&g->is_cancelled, true);
}

static void find_series(void *context, unsigned k)
{
    struct grouping *const g = context;
    struct tsr_input *input = NULL;
    struct tsr_account account;
    g->members[k] = (struct member){.series = {.slope = {1, 0}}, .number = k};
    if (!look_into(g, g->sources[k], &input, &account)) return;
    if (!tsr_dicom_tell_series(input, &g->members[k].series)) g->members[k].series.uid[0] = '\0';
    look_away(g, input, &account);
}

static int by_uid(const void *a, const void *b)
{
    const struct member *const one = a, *const other = b;
    const int order = strcmp(one->series.uid, other->series.uid);
    return order ? order : (one->number > other->number) - (one->number < other->number);
}

/* ---- Ranges ----------------------------------------------------------------------------------------------- */

/* Counts the values of one image, in stored values of a slope, and adds those that are not kept. It adds nothing if the
 * image has no range of its own, or cannot be read now. */
static void count_image(struct grouping *g, const struct tsr_data_source *from, uint32_t weight,
                        struct tsr_value_counts *one, struct tsr_value_counts *sum, uint32_t *whole)
{
    const struct tsr_source_options options = {.samples_only = true, .may_lose = true}; /* then slopes are read */
    struct tsr_input *input = NULL;
    struct tsr_source *source = NULL;
    struct tsr_account account;
    struct tsr_error ignored;
    if (!look_into(g, from, &input, &account)) return;
    memset(one, 0, sizeof *one);
    if (tsr_source_open(input, &options, &source, &ignored) == TSR_OK && tsr_has_frames(&source->header) &&
        tsr_has_own_range(&source->header.image) &&
        tsr_keep_wanted(&source->header, from->kept, from->kept_count, "", &ignored) == TSR_OK &&
        tsr_count_source(source, one, &ignored) == TSR_OK) {
        const uint32_t range = tsr_whole_range(&source->header.image);
        if (range > *whole) *whole = range;
        tsr_add_counts(&source->header.image, one->count, weight, sum);
    }
    tsr_source_close(source);
    look_away(g, input, &account);
}

/* The image of a group that is looked at as number i of so many. */
static const struct member *member_of(const struct grouping *g, const struct group *group, uint32_t i, uint32_t taken)
{
    return &g->members[group->first + (2 * (uint64_t)i + 1) * group->count / (2 * (uint64_t)taken)];
}

static void find_range(void *context, unsigned n)
{
    struct grouping *const g = context;
    struct group *const group = &g->groups[n];
    const uint32_t wanted = (group->count + ONE_IN - 1) / ONE_IN, taken = wanted < MOST ? wanted : MOST;
    struct tsr_value_counts *const counts = calloc(2, sizeof *counts); /* of all; of one */
    uint32_t whole = 0;
    if (!counts) atomic_store(&g->has_no_memory, true);
    for (uint32_t i = 0; i < taken; i++) {
        const struct tsr_decimal slope = member_of(g, group, i, taken)->series.slope;
        if (tsr_is_larger(slope, group->slope)) group->slope = slope;
    }
    for (uint32_t i = 0; counts && i < taken; i++) {
        const struct member *const member = member_of(g, group, i, taken);
        const uint32_t weight = tsr_share(TSR_WHOLE_WEIGHT, member->series.slope, group->slope);
        count_image(g, g->sources[member->number], weight, counts + 1, counts, &whole);
    }
    if (counts && counts->samples > 0) group->range = tsr_range_of_counts(counts, whole);
    free(counts);
}

/* The range of a group in the stored values of one of its images. */
static uint32_t range_of(const struct group *group, const struct member *member)
{
    const uint32_t range = tsr_share(group->range, group->slope, member->series.slope);
    return group->range == 0         ? 0
           : range < TSR_LEAST_RANGE ? TSR_LEAST_RANGE
           : range > TSR_MOST_RANGE  ? TSR_MOST_RANGE
                                     : range;
}

/* Groups of more than one. */
static uint32_t form_groups(struct grouping *g, uint32_t count, bool are_one)
{
    uint32_t groups = 0;
    qsort(g->members, count, sizeof *g->members, by_uid);
    for (uint32_t first = 0, end; first < count; first = end) {
        for (end = first + 1; end < count && strcmp(g->members[end].series.uid, g->members[first].series.uid) == 0;)
            end++;
        if (end - first < 2 || (!g->members[first].series.uid[0] && !are_one)) continue;
        g->groups[groups].first = first;
        g->groups[groups++].count = end - first;
    }
    return groups;
}

enum tsr_status tsr_find_ranges(struct tsr_engine *engine, const struct tsr_data_source *const *sources, uint32_t count,
                                bool are_one, uint32_t *ranges, struct tsr_error *error)
{
    struct grouping g = {.engine = engine, .sources = sources};
    g.members = calloc(count + (size_t)1, sizeof *g.members);
    g.groups = calloc(count / 2 + (size_t)1, sizeof *g.groups);
    memset(ranges, 0, count * sizeof *ranges);
    if (g.members && g.groups) {
        tsr_pool_run_tasks(g.engine->pool, find_series, &g, count);
        const uint32_t groups = form_groups(&g, count, are_one);
        tsr_pool_run_tasks(g.engine->pool, find_range, &g, groups);
        for (uint32_t n = 0; n < groups; n++)
            for (uint32_t i = 0; i < g.groups[n].count; i++) {
                const struct member *const member = &g.members[g.groups[n].first + i];
                ranges[member->number] = range_of(&g.groups[n], member);
            }
    }
    const bool fails = !g.members || !g.groups || g.has_no_memory;
    free(g.members);
    free(g.groups);
    if (fails) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for the ranges of %u images", count);
    if (!g.is_cancelled) return TSR_OK;
    memset(ranges, 0, count * sizeof *ranges);
    return tsr_fail(error, TSR_ERROR_CANCELLED, "the ranges were not found: the call was cancelled");
}

static enum tsr_status find_ranges(const struct tsr_call *call)
{
    return tsr_find_ranges(call->engine, call->in, (uint32_t)call->count, call->choice, call->out, call->error);
}

enum tsr_status tsr_common_ranges(struct tsr_engine *engine, const struct tsr_data_source *const *sources,
                                  uint32_t count, bool are_one, uint32_t *ranges, struct tsr_error *error)
{
    struct tsr_error ignored;
    if (!error) error = &ignored;
    TSR_TRY(tsr_check_pointer(engine, "engine", error));
    if (count == 0) return TSR_OK;
    TSR_TRY(tsr_check_sources(sources, count, error));
    TSR_TRY(tsr_check_pointer(ranges, "ranges", error));
    const struct tsr_call call = {.run = find_ranges,
                                  .engine = engine,
                                  .choice = are_one,
                                  .in = sources,
                                  .out = ranges,
                                  .count = count,
                                  .error = error};
    return tsr_run_call(&call);
}
