/* Series: several files in one, each of them coded and proven by itself. FORMAT.md 3.7. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "series.h"
#include "app/library/call.h"
#include "app/library/loss/range.h"
#include "kernels/pool/large_stack.h"
#include "kernels/pool/thread_pool.h"

/* ---- Compress -------------------------------------------------------------------------------------------- */

/* Files are coded in groups, several groups at once, each file into memory, and added in their order. Large ones are
 * groups of their own, wait for their turn and are written at once; the others take room for what they become before
 * they are coded, group after group. Small ones that follow each other are a group, and may share a model. */
#define DIRECT_BYTES ((uint64_t)32 << 20)
#define SMALL_BYTES ((uint64_t)2 << 20)

/* With the lock: of the groups all of whose files were added, or, at the end, of all. */
static void give_room(struct tsr_series_making *m, bool all)
{
    for (; m->added < m->roomy && (all || m->groups[m->added].end <= m->next); m->added++)
        tsr_pool_release(m->engine->pool, TSR_MEMORY_OF_RESULTS, m->groups[m->added].room);
}

void tsr_series_note_failure(struct tsr_series_making *m, uint32_t k, enum tsr_status status,
                             const struct tsr_error *error)
{
    if (m->status == TSR_OK || k < m->failed) {
        m->failed = k;
        m->status = status;
        m->error = *error;
    }
    give_room(m, true); /* or who waits for it waits for ever: nothing is added any more */
    pthread_cond_broadcast(&m->turned);
}

static void tell_progress(void *context)
{
    const struct tsr_series_making *const m = context;
    m->options->progress(m->options->context, m->steps, m->bytes_in, m->bytes_out);
}

/* With the lock. */
static void take_step(struct tsr_series_making *m, uint64_t bytes_in, uint64_t bytes_out)
{
    m->steps++;
    m->bytes_in += bytes_in;
    m->bytes_out += bytes_out;
    if (m->options->progress) tsr_call_back(tell_progress, m);
}

static void close_member(struct tsr_series_making *m, struct tsr_series_member *member)
{
    tsr_container_writer_free(member->written.writer);
    free(member->written.raster);
    if (member->output != m->output) tsr_output_close(member->output);
    memset(member, 0, sizeof *member);
}

/* Adds all members whose turn it is, with the lock. */
static void add_ready(struct tsr_series_making *m)
{
    while (m->status == TSR_OK && m->next < m->count && m->members[m->next].ready) {
        const uint32_t k = m->next;
        struct tsr_series_member *member = &m->members[k];
        struct tsr_report *report = &m->report[k];
        struct tsr_error error = {TSR_OK, TSR_NO_OFFSET, "", 0};
        const enum tsr_status status =
            tsr_container_add_member(m->writer, member->written.writer, m->files[k].name, &member->written.proof,
                                     &report->bytes_out, &report->payload_bytes, &error);
        if (status != TSR_OK) {
            tsr_series_note_failure(m, k, status, &error);
            return;
        }
        const struct tsr_proof proof = member->written.proof;
        close_member(m, member);
        member->written.proof = proof;
        m->next++;
        give_room(m, false);
        pthread_cond_broadcast(&m->turned);
        take_step(m, report->bytes_in, report->bytes_out);
    }
}

/* Whether the series still goes on, when it is this file's turn. */
static bool await_turn(struct tsr_series_making *m, uint32_t k)
{
    tsr_pool_rest(m->engine->pool, 0); /* files before it may want this thread's place */
    pthread_mutex_lock(&m->lock);
    while (m->status == TSR_OK && m->next != k) pthread_cond_wait(&m->turned, &m->lock);
    const bool goes_on = m->status == TSR_OK;
    pthread_mutex_unlock(&m->lock);
    tsr_pool_resume(m->engine->pool);
    return goes_on;
}

/* The same, and what else it leaves there: its raster if that is small. */
static size_t room_for(uint64_t size)
{
    enum { STACKED_RASTER = 1 << 18 };
    return tsr_series_output_bytes(size) + (size_t)(size < STACKED_RASTER ? size : STACKED_RASTER);
}

/* Codes a file into its member. */
static enum tsr_status encode_member(struct tsr_series_making *m, uint32_t k, struct tsr_input *input,
                                     struct tsr_error *error)
{
    struct tsr_series_member *member = &m->members[k];
    const double start = tsr_seconds();
    struct tsr_wanted wanted = *m->wanted;
    wanted.range = m->ranges[k];
    wanted.kept_count = m->files[k].source.kept_count;
    wanted.kept = m->files[k].source.kept;
    TSR_TRY(
        tsr_write_container(m->engine, input, member->output, &wanted, true, &member->written, &m->report[k], error));
    TSR_TRY(tsr_check_loss(&wanted, &member->written, tsr_input_name(input), error));
    tsr_report_written(m->wanted, &member->written, &m->report[k]);
    m->report[k].encode_s = tsr_seconds() - start;
    return TSR_OK;
}

static enum tsr_status check_cancelled(const struct tsr_series_making *m, struct tsr_error *error)
{
    if (!m->options->is_cancelled || !tsr_ask(m->options->is_cancelled, m->options->context)) return TSR_OK;
    return tsr_fail(error, TSR_ERROR_CANCELLED, "the series was cancelled");
}

static void make_member(struct tsr_series_making *m, uint32_t k)
{
    struct tsr_series_member *member = &m->members[k];
    struct tsr_input *input = NULL;
    struct tsr_error error = {TSR_OK, TSR_NO_OFFSET, "", 0};
    pthread_mutex_lock(&m->lock);
    const bool in_vain = m->status != TSR_OK && k > m->failed; /* those before may be the first that fails */
    pthread_mutex_unlock(&m->lock);
    if (in_vain) return;
    const struct tsr_data_source *const source = &m->files[k].source;
    enum tsr_status status = check_cancelled(m, &error);
    if (status == TSR_OK) status = tsr_open_source(source, &input, &error);
    if (status == TSR_OK && tsr_input_size(input) != member->size)
        status = tsr_fail(&error, TSR_ERROR_READ, "%s changed while it was read", tsr_source_name(source));
    const bool direct = status == TSR_OK && member->size > DIRECT_BYTES;
    if (direct && !await_turn(m, k)) {
        tsr_input_close(input);
        return;
    }
    if (status == TSR_OK) {
        pthread_mutex_lock(&m->lock);
        tsr_output_restrict(m->sealed ? m->sealed : m->output, input);
        pthread_mutex_unlock(&m->lock);
        member->output = direct ? m->output : tsr_output_to_memory();
        if (!member->output) status = tsr_fail(&error, TSR_ERROR_LIMIT, "no memory to write a series");
    }
    if (status == TSR_OK && !direct)
        status = tsr_output_make_room(member->output, tsr_series_output_bytes(member->size), &error);
    if (status == TSR_OK) status = encode_member(m, k, input, &error);
    if (status == TSR_OK) status = tsr_input_ask(input, &error);
    status = tsr_input_end(input, status, &error);
    tsr_input_close(input);
    if (status == TSR_OK) return;
    pthread_mutex_lock(&m->lock);
    tsr_series_note_failure(m, k, status, &error);
    pthread_mutex_unlock(&m->lock);
}

/* ---- Groups ---------------------------------------------------------------------------------------------- */

/* The group that is being made, to its pieces. */
struct pieces {
    struct tsr_series_making *making;
    uint32_t first;
};

static void make_one(void *context, unsigned i)
{
    const struct pieces *pieces = context;
    make_member(pieces->making, pieces->first + i);
}

/* Room for what a group becomes, when all before it have theirs: so these are not waited for in vain. False: the series
 * does not go on. */
static bool take_room(struct tsr_series_making *m, uint32_t g)
{
    struct tsr_error error = {TSR_OK, TSR_NO_OFFSET, "", 0};
    tsr_pool_rest(m->engine->pool, 0); /* groups before it may want this thread's place */
    pthread_mutex_lock(&m->lock);
    while (m->status == TSR_OK && m->roomy != g) pthread_cond_wait(&m->turned, &m->lock);
    bool goes_on = m->status == TSR_OK;
    pthread_mutex_unlock(&m->lock);
    tsr_pool_resume(m->engine->pool);
    if (!goes_on) return false;
    goes_on = tsr_pool_reserve(m->engine->pool, TSR_MEMORY_OF_RESULTS, m->groups[g].room);
    pthread_mutex_lock(&m->lock);
    if (goes_on)
        m->roomy++;
    else
        tsr_series_note_failure(m, m->groups[g].first,
                                tsr_fail_memory(m->engine, TSR_MEMORY_OF_RESULTS,
                                                tsr_source_name(&m->files[m->groups[g].first].source),
                                                m->groups[g].room, &error),
                                &error);
    pthread_cond_broadcast(&m->turned);
    pthread_mutex_unlock(&m->lock);
    return goes_on;
}

static void make_group(void *context, unsigned g)
{
    struct tsr_series_making *m = context;
    const struct tsr_series_group *const group = &m->groups[g];
    struct pieces pieces = {m, group->first};
    if (!take_room(m, g)) return;
    tsr_pool_run_tasks(m->engine->pool, make_one, &pieces, group->end - group->first);
    pthread_mutex_lock(&m->lock);
    const bool goes_on = m->status == TSR_OK;
    pthread_mutex_unlock(&m->lock);
    if (goes_on && group->end - group->first > 1) tsr_series_share_models(m, group->first, group->end);
    pthread_mutex_lock(&m->lock);
    for (uint32_t k = group->first; k < group->end && m->status == TSR_OK; k++) m->members[k].ready = true;
    add_ready(m);
    pthread_mutex_unlock(&m->lock);
}

/* Files that follow each other and are small: by their sizes alone, so that the groups depend on nothing else. */
static enum tsr_status form_groups(struct tsr_series_making *m, struct tsr_error *error)
{
    m->groups = malloc(m->count * sizeof *m->groups);
    if (!m->groups) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for a series of %u files", m->count);
    bool open = false; /* to more files: the last group */
    for (uint32_t k = 0; k < m->count; k++) {
        const uint64_t size = tsr_source_bytes(&m->files[k].source);
        const bool small = size <= SMALL_BYTES;
        if (!open || !small || k - m->groups[m->group_count - 1].first == TSR_SERIES_GROUP_FILES)
            m->groups[m->group_count++] = (struct tsr_series_group){.first = k};
        struct tsr_series_group *const group = &m->groups[m->group_count - 1];
        group->end = k + 1;
        if (size <= DIRECT_BYTES) group->room += room_for(size);
        m->members[k].size = size;
        open = small;
    }
    return TSR_OK;
}

static enum tsr_status reopen(const struct tsr_series_making *m, struct tsr_input **input, struct tsr_error *error)
{
    TSR_TRY(tsr_output_reopen(m->output, input, error));
    return m->key ? tsr_input_unseal(input, m->key, false, error) : TSR_OK;
}

static void prove_member(void *context, unsigned k)
{
    struct tsr_series_making *m = context;
    struct tsr_input *input = NULL;
    struct tsr_container_reader *reader = NULL;
    struct tsr_account account;
    struct tsr_error error = {TSR_OK, TSR_NO_OFFSET, "", 0};
    const double start = tsr_seconds();
    enum tsr_status status = check_cancelled(m, &error);
    if (status == TSR_OK) status = reopen(m, &input, &error);
    if (input) tsr_ask_without_progress(input, &m->files[k].source);
    tsr_account_open(&account, m->engine, input, NULL);
    if (status == TSR_OK) status = tsr_container_share(m->reader, input, &reader, &error);
    if (status == TSR_OK) status = tsr_container_choose(reader, k, &error);
    if (status == TSR_OK && strcmp(tsr_container_name(reader), m->files[k].name) != 0)
        status = tsr_fail(&error, TSR_ERROR_VERIFY, "it is called %.300s", tsr_container_name(reader));
    status = status == TSR_OK                ? tsr_verify_written(m->engine, m->wanted->verify, reader, &account,
                                                                  &m->members[k].written.proof, &m->report[k], &error)
             : status == TSR_ERROR_CANCELLED ? status
                                             : tsr_fail_verify(status, &error);
    tsr_container_close(reader);
    status = tsr_account_end(&account, input, status, &error);
    m->report[k].verify_s = tsr_seconds() - start;
    m->report[k].verified = status == TSR_OK;
    pthread_mutex_lock(&m->lock);
    if (status != TSR_OK) tsr_series_note_failure(m, k, status, &error);
    take_step(m, 0, 0);
    pthread_mutex_unlock(&m->lock);
}

/* Reads the finished file back from the disk, and all files in it, against what was read before. */
static void prove(struct tsr_series_making *m)
{
    struct tsr_input *input = NULL;
    enum tsr_status status = reopen(m, &input, &m->error);
    if (status == TSR_OK) status = tsr_container_open(input, &m->reader, &m->error);
    if (status == TSR_OK) status = tsr_container_check_series(m->reader, &m->error);
    if (status == TSR_OK) status = tsr_container_check_twins(m->reader, &m->error);
    if (status == TSR_OK && (tsr_container_damage(m->reader) || tsr_container_members(m->reader) != m->count))
        status = tsr_fail(&m->error, TSR_ERROR_VERIFY, "%u of %u files, and the %s is damaged",
                          tsr_container_members(m->reader), m->count,
                          tsr_container_damage(m->reader) ? tsr_container_damage(m->reader) : "index");
    m->status = tsr_fail_verify(status, &m->error);
    if (m->status == TSR_OK) tsr_pool_run_tasks(m->engine->pool, prove_member, m, m->count);
    tsr_container_close(m->reader);
    tsr_input_close(input);
}

static int by_name(const void *a, const void *b)
{
    const struct tsr_series_file *one = *(const struct tsr_series_file *const *)a,
                                 *other = *(const struct tsr_series_file *const *)b;
    const int order = strcmp(one->name, other->name);
    return order ? order : (one > other) - (one < other);
}

/* The number of the first file whose name is not valid, or that of a file before it; count if all are good. */
static enum tsr_status check_names(const struct tsr_series_file *files, uint32_t count, uint32_t *bad,
                                   struct tsr_error *error)
{
    const struct tsr_series_file **sorted = malloc(count * sizeof *sorted);
    if (!sorted) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for the names of %u files", count);
    enum tsr_status status = TSR_OK;
    for (uint32_t k = 0; k < count && status == TSR_OK; k++) {
        sorted[k] = &files[k];
        if (tsr_is_member_name(files[k].name, strlen(files[k].name))) continue;
        *bad = k;
        status = tsr_fail(error, TSR_ERROR_USAGE, "%s cannot be in a series: names there have 1 to 4096 bytes",
                          tsr_source_name(&files[k].source));
    }
    if (status == TSR_OK) qsort(sorted, count, sizeof *sorted, by_name);
    for (uint32_t k = 1; k < count && status == TSR_OK; k++) {
        if (strcmp(sorted[k]->name, sorted[k - 1]->name) != 0) continue;
        *bad = (uint32_t)(sorted[k] - files);
        status = tsr_fail(error, TSR_ERROR_EXISTS, "%s: another file of the series is called %s, too",
                          tsr_source_name(&sorted[k]->source), sorted[k]->name);
    }
    free(sorted);
    return status;
}

/* With loss, images of one series count by one range. */
static enum tsr_status find_ranges(struct tsr_series_making *m)
{
    m->ranges = malloc(m->count * sizeof *m->ranges);
    const struct tsr_data_source **const sources = malloc(m->count * sizeof *sources);
    enum tsr_status status = m->ranges && sources ? TSR_OK : tsr_fail(&m->error, TSR_ERROR_LIMIT, "no memory");
    for (uint32_t k = 0; k < m->count && status == TSR_OK; k++) {
        m->ranges[k] = m->wanted->range;
        sources[k] = &m->files[k].source;
    }
    if (status == TSR_OK && m->wanted->coding.lossy && m->wanted->range == 0)
        status = tsr_find_ranges(m->engine, sources, m->count, true, m->ranges, &m->error);
    free(sources);
    return status;
}

/* With a key the series is written to a spool, which is encrypted to the output when it is complete. */
static enum tsr_status begin_sealing(struct tsr_series_making *m)
{
    struct tsr_output *spool;
    if (!m->key) return TSR_OK;
    TSR_TRY(tsr_output_create_spool(m->output, true, &spool, &m->error));
    m->sealed = m->output;
    m->output = spool;
    return TSR_OK;
}

static enum tsr_status end_sealing(struct tsr_series_making *m)
{
    struct tsr_output *const spool = m->output;
    if (!m->key) return TSR_OK;
    m->output = m->sealed;
    m->sealed = NULL;
    tsr_output_forgo_hash(m->output);
    const enum tsr_status status = tsr_output_seal(spool, m->key, m->output, &m->error);
    tsr_output_close(spool);
    return status;
}

static enum tsr_status write_series(struct tsr_series_making *m, const struct tsr_data_sink *sink)
{
    struct tsr_header header;
    memset(&header, 0, sizeof header);
    header.recipe = TSR_RECIPE_SERIES;
    header.members = m->count;
    TSR_TRY(tsr_open_sink(sink, false, &m->output, &m->error));
    m->key = sink->key;
    TSR_TRY(begin_sealing(m));
    tsr_output_forgo_hash(m->output); /* its sections have theirs */
    TSR_TRY(tsr_container_begin(m->output, &header, &m->writer, &m->error));
    TSR_TRY(form_groups(m, &m->error));
    TSR_TRY(find_ranges(m));
    tsr_pool_run_tasks(m->engine->pool, make_group, m, m->group_count);
    give_room(m, true);
    TSR_TRY(m->status);
    TSR_TRY(tsr_container_end(m->writer, NULL, &m->error));
    TSR_TRY(end_sealing(m));
    TSR_TRY(tsr_output_finish(m->output, &m->error));
    if (m->wanted->verify != TSR_VERIFY_NONE) prove(m);
    return m->status;
}

static void close_making(struct tsr_series_making *m)
{
    for (uint32_t k = 0; k < m->count; k++) close_member(m, &m->members[k]);
    tsr_container_writer_free(m->writer);
    tsr_output_close(m->output);
    tsr_output_close(m->sealed);
    pthread_cond_destroy(&m->turned);
    pthread_mutex_destroy(&m->lock);
    free(m->members);
    free(m->groups);
    free(m->ranges);
}

static enum tsr_status compress_series(const struct tsr_call *call)
{
    struct tsr_series_making *const m = call->out;
    struct tsr_error *const error = call->error;
    m->error.offset = TSR_NO_OFFSET;
    m->members = calloc(m->count, sizeof *m->members);
    if (!m->members) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for a series of %u files", m->count);
    for (uint32_t k = 0; k < m->count; k++) tsr_clear_report(&m->report[k]);
    pthread_mutex_init(&m->lock, NULL);
    pthread_cond_init(&m->turned, NULL);
    m->status = write_series(m, call->sink);
    m->bytes_out = m->status == TSR_OK ? tsr_output_size(m->output) : 0;
    if (m->status == TSR_OK) m->status = tsr_deliver(call->sink, m->output, &m->error);
    if (m->status != TSR_OK) *error = m->error;
    close_making(m);
    return m->status;
}

static enum tsr_status check_files(const struct tsr_series_file *files, uint32_t count, struct tsr_error *error)
{
    if (count < 1 || count > INT32_MAX) return tsr_fail(error, TSR_ERROR_USAGE, "a series of %u files", count);
    TSR_TRY(tsr_check_pointer(files, "files", error));
    for (uint32_t k = 0; k < count; k++) {
        TSR_TRY(tsr_check_source(&files[k].source, error));
        TSR_TRY(tsr_check_pointer(files[k].name, "files->name", error));
    }
    return TSR_OK;
}

enum tsr_status tsr_compress_series(struct tsr_engine *engine, const struct tsr_series_file *files, uint32_t count,
                                    const struct tsr_data_sink *sink, const struct tsr_series_options *options,
                                    struct tsr_report *reports, uint64_t *bytes, uint32_t *failed,
                                    struct tsr_error *error)
{
    static const struct tsr_series_options usual = TSR_SERIES_OPTIONS;
    struct tsr_error ignored;
    struct tsr_wanted wanted;
    uint64_t own_bytes;
    uint32_t own_failed;
    if (!error) error = &ignored;
    if (!options) options = &usual;
    if (!bytes) bytes = &own_bytes;
    if (!failed) failed = &own_failed;
    *failed = count;
    TSR_TRY(tsr_check_pointer(engine, "engine", error));
    TSR_TRY(check_files(files, count, error));
    TSR_TRY(tsr_check_sink(sink, error));
    for (uint32_t k = 0; k < count; k++) TSR_TRY(tsr_check_apart(&files[k].source, sink, error));
    TSR_TRY(tsr_check_sized(options, sizeof *options, "options", error));
    TSR_TRY(tsr_want(options->compress, &wanted, error));
    if (wanted.lossless_rest || wanted.roi || wanted.first)
        return tsr_fail(error, TSR_ERROR_USAGE, "%s is set: files of a series have no base, and their tiles one order",
                        wanted.roi     ? "roi"
                        : wanted.first ? "first"
                                       : "lossless_rest");
    wanted.keeps_origin = !options->without_times;
    if (reports) TSR_TRY(tsr_check_sized(reports, sizeof *reports, "reports", error));
    if (wanted.target == TSR_TARGET_BYTES || wanted.target == TSR_TARGET_RATIO)
        return tsr_fail(error, TSR_ERROR_USAGE, "a size is the target of a single file, not of a series");
    TSR_TRY(check_names(files, count, failed, error));
    struct tsr_report *const own = reports ? NULL : malloc(count * sizeof *own);
    if (!reports && !own) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for a series of %u files", count);
    struct tsr_series_making m = {
        .engine = engine, .files = files, .count = count, .wanted = &wanted, .options = options};
    m.report = reports ? reports : own;
    m.failed = count;
    const struct tsr_call call = {.run = compress_series, .engine = engine, .sink = sink, .out = &m, .error = error};
    const enum tsr_status status = tsr_run_call(&call);
    *bytes = m.bytes_out;
    *failed = m.failed;
    free(own);
    return status;
}
