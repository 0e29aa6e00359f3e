/* Readers: a .tsr, a series or an original that is open. */
#include "call.h"
#include "reader.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Open and close --------------------------------------------------------------------------------------- */

static void forget_member(struct tsr_reader *r)
{
    free(r->raster);
    r->raster = NULL;
    for (int blob = 0; blob < TSR_BLOB_COUNT; blob++) tsr_forget_blob(&r->blob[blob]);
    if (r->container) {
        tsr_source_close(r->original);
        r->original = NULL;
    }
    tsr_input_close(r->stored);
    r->stored = NULL;
    tsr_output_close(r->restored);
    r->restored = NULL;
    tsr_bytes_free(&r->stream);
    r->has_stream = false;
    r->record = 0;
    tsr_forget_inner(&r->inner);
    r->chosen = TSR_ALL_MEMBERS;
}

static void free_reader(struct tsr_reader *r)
{
    forget_member(r);
    tsr_source_close(r->original);
    tsr_forget_views(r);
    for (uint32_t k = 0; r->names && k < r->members; k++) free(r->names[k]);
    free(r->names);
    tsr_container_close(r->pattern);
    tsr_container_close(r->container);
    tsr_input_close(r->input);
    free(r->owned);
    free(r->name);
    pthread_mutex_destroy(&r->views_lock);
    pthread_mutex_destroy(&r->lock);
    free(r);
}

void tsr_close(struct tsr_reader *reader)
{
    if (reader) free_reader(reader);
}

/* What originals are read from: it may take no more memory than files may. */
static void open_account(struct tsr_reader *r, struct tsr_input *input)
{
    tsr_account_open(&r->account, r->engine, input, NULL);
    r->account.only_checks = true;
    r->account.base.grant_spare = NULL;
    tsr_input_set_crew(input, (struct tsr_crew){0}); /* readers may be many */
}

/* Whether a status may come of a file that has changed. Each section of a .tsr is bound to its file, so that one of
 * another file is an error; bytes of an original are not bound to each other. */
static bool depends_on_change(const struct tsr_reader *r, enum tsr_status status)
{
    return status == TSR_ERROR_READ || status == TSR_ERROR_NOT_TSR || status == TSR_ERROR_CORRUPT ||
           status == TSR_ERROR_VERSION || status == TSR_ERROR_USAGE ||
           (status == TSR_OK && r->content == TSR_CONTENT_ORIGINAL);
}

/* Whoever watches the reader is not asked. */
static bool read_own_id(struct tsr_input *input, uint64_t *id)
{
    struct tsr_error ignored;
    tsr_input_set_watch(input, NULL, TSR_PASS_READ, NULL);
    return tsr_container_read_id(input, id, &ignored) == TSR_OK;
}

/* Whether what is open still is the .tsr that it was, though it may have another name or none. */
static bool has_same_id(const struct tsr_reader *r)
{
    struct tsr_input *input = NULL;
    struct tsr_error ignored;
    uint64_t id = 0;
    const bool is_read =
        r->container && tsr_input_share(r->input, &input, &ignored) == TSR_OK && read_own_id(input, &id);
    tsr_input_close(input);
    return is_read && id == tsr_container_id(r->container);
}

enum tsr_status tsr_reader_check(const struct tsr_reader *r, enum tsr_status status, struct tsr_error *error)
{
    struct tsr_error changed;
    if (!r->input || !depends_on_change(r, status) || tsr_input_check(r->input, &changed) == TSR_OK || has_same_id(r))
        return status;
    if (error) *error = changed;
    return changed.status;
}

void tsr_reader_begin(struct tsr_reader *reader)
{
    pthread_mutex_lock(&reader->lock);
    tsr_input_begin(reader->input);
}

enum tsr_status tsr_reader_end(struct tsr_reader *reader, enum tsr_status status, struct tsr_error *error)
{
    const enum tsr_status checked = tsr_input_end(reader->input, tsr_reader_check(reader, status, error), error);
    pthread_mutex_unlock(&reader->lock);
    return checked;
}

static int by_string(const void *a, const void *b)
{
    return strcmp(**(char **const *)a, **(char **const *)b);
}

/* Of members with the same name only one keeps it. */
static enum tsr_status drop_twins(struct tsr_reader *r, struct tsr_error *error)
{
    char ***sorted = malloc(r->members * sizeof *sorted);
    uint32_t named = 0;
    if (!sorted) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for the names of %u files", r->members);
    for (uint32_t k = 0; k < r->members; k++)
        if (r->names[k]) sorted[named++] = &r->names[k];
    qsort(sorted, named, sizeof *sorted, by_string);
    for (uint32_t k = 1, kept = 0; k < named; k++) {
        if (strcmp(*sorted[k], *sorted[kept]) != 0) {
            kept = k;
            continue;
        }
        free(*sorted[k]);
        *sorted[k] = NULL;
    }
    free(sorted);
    return TSR_OK;
}

static enum tsr_status read_names(struct tsr_reader *r, struct tsr_error *error)
{
    r->names = calloc(r->members, sizeof *r->names);
    if (!r->names) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for the names of %u files", r->members);
    for (uint32_t k = 0; k < r->members; k++) {
        const enum tsr_status status = tsr_container_choose(r->container, k, error);
        if (status == TSR_ERROR_READ) return status;
        if (!tsr_container_name(r->container)[0]) continue; /* restoring it will say why */
        r->names[k] = strdup(tsr_container_name(r->container));
        if (!r->names[k]) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for the names of %u files", r->members);
    }
    return drop_twins(r, error);
}

static enum tsr_status open_reader(const struct tsr_call *call)
{
    struct tsr_reader *const r = call->reader;
    struct tsr_error *const error = call->error;
    struct tsr_proof proof;
    r->name = strdup(tsr_source_name(call->source)); /* the caller's may go away */
    if (!r->name) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for a reader");
    TSR_TRY(tsr_open_source(call->source, &r->input, error));
    const enum tsr_status status = tsr_container_open(r->input, &r->container, error);
    if (status == TSR_ERROR_NOT_TSR) {
        r->content = TSR_CONTENT_ORIGINAL;
        open_account(r, r->input);
        return TSR_OK;
    }
    TSR_TRY(status);
    r->members = tsr_container_choices(r->container);
    if (!tsr_container_is_series(r->container)) {
        r->content = TSR_CONTENT_TSR;
        r->members = 1;
        return tsr_container_get_proof(r->container, &proof, error);
    }
    r->content = TSR_CONTENT_SERIES;
    TSR_TRY(tsr_container_check_series(r->container, error));
    TSR_TRY(read_names(r, error));
    return tsr_container_share(r->container, r->input, &r->pattern, error);
}

enum tsr_status tsr_open(struct tsr_engine *engine, const struct tsr_data_source *source, struct tsr_reader **reader,
                         struct tsr_error *error)
{
    struct tsr_error ignored;
    if (!error) error = &ignored;
    TSR_TRY(tsr_check_pointer(reader, "reader", error));
    *reader = NULL;
    TSR_TRY(tsr_check_pointer(engine, "engine", error));
    TSR_TRY(tsr_check_source(source, error));
    struct tsr_reader *const r = calloc(1, sizeof *r);
    if (!r) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for a reader");
    r->engine = engine;
    r->source = *source;
    r->members = 1;
    r->chosen = TSR_ALL_MEMBERS;
    pthread_mutex_init(&r->lock, NULL);
    pthread_mutex_init(&r->views_lock, NULL);
    const struct tsr_call call = {
        .run = open_reader, .engine = engine, .reader = r, .source = &r->source, .error = error};
    const enum tsr_status status = tsr_input_end(r->input, tsr_reader_check(r, tsr_run_call(&call), error), error);
    if (status != TSR_OK)
        free_reader(r);
    else
        *reader = r;
    return status;
}

uint64_t tsr_reader_id(const struct tsr_reader *reader)
{
    return reader->container ? tsr_container_id(reader->container) : 0;
}

enum tsr_status tsr_read_id(const struct tsr_data_source *source, uint64_t *id, struct tsr_error *error)
{
    struct tsr_input *input = NULL;
    struct tsr_error ignored;
    if (!error) error = &ignored;
    TSR_TRY(tsr_check_source(source, error));
    TSR_TRY(tsr_check_pointer(id, "id", error));
    TSR_TRY(tsr_open_source(source, &input, error));
    const enum tsr_status status = tsr_input_end(input, tsr_container_read_id(input, id, error), error);
    tsr_input_close(input);
    return status;
}

/* ---- Members ---------------------------------------------------------------------------------------------- */

enum tsr_content tsr_reader_content(const struct tsr_reader *reader)
{
    return reader->content;
}

uint32_t tsr_reader_members(const struct tsr_reader *reader)
{
    return reader->members;
}

const char *tsr_reader_name(const struct tsr_reader *reader, uint32_t member)
{
    if (member >= reader->members) return NULL;
    return reader->names ? reader->names[member] : "";
}

enum tsr_status tsr_reader_check_member(const struct tsr_reader *r, uint32_t member, struct tsr_error *error)
{
    if (member < r->members) return TSR_OK;
    return tsr_fail(error, TSR_ERROR_USAGE, "there is no member %u: %s has %u, counted from 0", member, r->name,
                    r->members);
}

enum tsr_status tsr_reader_choose_in(const struct tsr_reader *r, struct tsr_container_reader *container,
                                     uint32_t member, struct tsr_error *error)
{
    TSR_TRY(tsr_container_choose(container, member, error));
    if (!r->names || (r->names[member] && strcmp(r->names[member], tsr_container_name(container)) == 0)) return TSR_OK;
    return tsr_fail(error, TSR_ERROR_CORRUPT, "file %u of the series is called %.300s, as another is", member + 1,
                    tsr_container_name(container));
}

static const struct tsr_source_options reading = {.samples_only = true, .reads_frames = true};

enum tsr_status tsr_reader_choose(struct tsr_reader *r, uint32_t member, struct tsr_error *error)
{
    TSR_TRY(tsr_reader_check_member(r, member, error));
    if (r->chosen == member) return TSR_OK;
    forget_member(r);
    if (!r->container && !r->original) TSR_TRY(tsr_source_open(r->input, &reading, &r->original, error));
    if (r->container) TSR_TRY(tsr_reader_choose_in(r, r->container, member, error));
    r->chosen = member;
    return TSR_OK;
}

const struct tsr_header *tsr_reader_header(const struct tsr_reader *r)
{
    return r->container ? tsr_container_header(r->container) : &r->original->header;
}

/* Opens the restored bytes of a member as an original. */
static enum tsr_status open_stored(struct tsr_reader *r, struct tsr_error *error)
{
    TSR_TRY(tsr_reader_restore(r, error));
    r->stored = tsr_input_from_memory(tsr_output_bytes(r->restored), (size_t)tsr_output_size(r->restored), r->name);
    if (!r->stored) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for a source");
    open_account(r, r->stored);
    return tsr_source_open(r->stored, &reading, &r->original, error);
}

enum tsr_status tsr_reader_frames(struct tsr_reader *r, struct tsr_container_reader **container,
                                  struct tsr_error *error)
{
    const struct tsr_header *const header = tsr_reader_header(r);
    *container = tsr_may_hold_frames(header) ? NULL : r->container;
    if (*container || r->original) return TSR_OK;
    const enum tsr_status status = open_stored(r, error);
    if (status == TSR_OK) return TSR_OK;
    tsr_input_close(r->stored);
    r->stored = NULL;
    return status;
}

/* ---- What a member is ------------------------------------------------------------------------------------- */

static void describe_original(const struct tsr_reader *r, struct tsr_info *info)
{
    const struct tsr_header *const header = &r->original->header;
    memset(info, 0, sizeof *info);
    info->size = sizeof *info;
    info->kind = header->kind;
    info->promise = tsr_promise_of(header);
    info->has_image = tsr_has_frames(header);
    memcpy(info->reason, header->reason, sizeof info->reason);
    info->image = tsr_original_image(header);
    for (uint32_t f = 0; r->original->units && f < header->image.frames; f++) info->units += r->original->units[f];
    info->file_bytes = info->original_bytes = tsr_input_size(r->input);
    info->max_error = info->base_max_error = -1;
    info->psnr_db = info->psnr_stored_db = info->base_psnr_db = -1;
    memcpy(info->original_damage, header->damage, sizeof info->original_damage);
}

static enum tsr_status read_info(const struct tsr_call *call)
{
    struct tsr_reader *const r = call->reader;
    const uint32_t member = call->member;
    struct tsr_info *const info = call->out;
    struct tsr_error *const error = call->error;
    if (member == TSR_ALL_MEMBERS && r->content == TSR_CONTENT_SERIES) {
        forget_member(r);
        TSR_TRY(tsr_describe_series(r->container, tsr_input_stored_size(r->input), info, error));
    } else {
        TSR_TRY(tsr_reader_choose(r, member == TSR_ALL_MEMBERS ? 0 : member, error));
        if (r->container)
            TSR_TRY(tsr_describe(r->container, info, error));
        else
            describe_original(r, info);
    }
    info->encrypted = tsr_input_stored_size(r->input) != tsr_input_size(r->input);
    return TSR_OK;
}

enum tsr_status tsr_read_info(struct tsr_reader *reader, uint32_t member, struct tsr_info *info,
                              struct tsr_error *error)
{
    TSR_TRY(tsr_check_pointer(reader, "reader", error));
    TSR_TRY(tsr_check_sized(info, sizeof *info, "info", error));
    struct tsr_call call = tsr_call_of_reader(reader, read_info, member, error);
    call.out = info;
    return tsr_run_call(&call);
}

static enum tsr_status read_exact(const struct tsr_call *call)
{
    uint64_t samples;
    TSR_TRY(tsr_reader_choose(call->reader, call->member, call->error));
    const struct tsr_header *const header = tsr_reader_header(call->reader);
    *call->got = header->patches.count == 0
                     ? 0
                     : tsr_list_patches(&header->patches, &header->image, call->out, call->count, &samples);
    return TSR_OK;
}

enum tsr_status tsr_read_exact(struct tsr_reader *reader, uint32_t member, struct tsr_region *rectangles, uint32_t room,
                               uint32_t *count, struct tsr_error *error)
{
    size_t found = 0;
    TSR_TRY(tsr_check_pointer(reader, "reader", error));
    TSR_TRY(tsr_check_pointer(count, "count", error));
    if (room > 0) TSR_TRY(tsr_check_pointer(rectangles, "rectangles", error));
    struct tsr_call call = tsr_call_of_reader(reader, read_exact, member, error);
    call.out = rectangles;
    call.count = room;
    call.got = &found;
    const enum tsr_status status = tsr_run_call(&call);
    *count = (uint32_t)found;
    return status;
}

enum tsr_status tsr_reader_image_of(const struct tsr_reader *r, const struct tsr_header *header,
                                    struct tsr_image *image, struct tsr_error *error)
{
    if (!tsr_has_frames(header))
        return tsr_fail(error, TSR_ERROR_USAGE, "%s has no image that can be read: %s", r->name, tsr_reason_of(header));
    *image = tsr_original_image(header);
    return TSR_OK;
}

static enum tsr_status run_read_image(const struct tsr_call *call)
{
    struct tsr_reader *const r = call->reader;
    struct tsr_container_reader *container;
    TSR_TRY(tsr_reader_choose(r, call->member, call->error));
    TSR_TRY(tsr_reader_frames(r, &container, call->error));
    return tsr_reader_image_of(r, container ? tsr_container_header(container) : &r->original->header, call->out,
                               call->error);
}

enum tsr_status tsr_reader_image(struct tsr_reader *reader, uint32_t member, struct tsr_image *image,
                                 struct tsr_error *error)
{
    TSR_TRY(tsr_check_pointer(reader, "reader", error));
    TSR_TRY(tsr_check_pointer(image, "image", error));
    struct tsr_call call = tsr_call_of_reader(reader, run_read_image, member, error);
    call.out = image;
    return tsr_run_call(&call);
}

/* ---- Frames ----------------------------------------------------------------------------------------------- */

enum tsr_status tsr_reader_frame_of(struct tsr_reader *r, struct tsr_container_reader *container, uint32_t frame,
                                    uint8_t *raster, struct tsr_error *error)
{
    if (container) return tsr_decode_frame_of(r->engine, container, frame, raster, error);
    return tsr_source_read_frame(r->original, frame, raster, error);
}

enum tsr_status tsr_reader_raster(struct tsr_reader *r, uint32_t frame, const uint8_t **raster, struct tsr_error *error)
{
    const size_t bytes = tsr_raster_bytes(r->original ? &r->original->header.image : &tsr_reader_header(r)->image);
    const bool is_kept = r->raster && r->raster_frame == frame;
    if (!is_kept) {
        uint8_t *const room = r->raster ? r->raster : malloc(bytes + 1);
        r->raster = NULL;
        if (!room) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for a frame of %zu bytes", bytes);
        const enum tsr_status status = tsr_reader_frame_of(r, r->original ? NULL : r->container, frame, room, error);
        if (status != TSR_OK) {
            free(room);
            return status;
        }
        r->raster = room;
        r->raster_frame = frame;
    }
    *raster = r->raster;
    return TSR_OK;
}

/* ---- Members restored and tested -------------------------------------------------------------------------- */

/* A second reader of the container, for one thread. */
static enum tsr_status share(struct tsr_reader *r, struct tsr_input *input, struct tsr_container_reader **container,
                             struct tsr_error *error)
{
    pthread_mutex_lock(&r->lock);
    const enum tsr_status status = tsr_container_share(r->container, input, container, error);
    pthread_mutex_unlock(&r->lock);
    return status;
}

/* The container of a file of its own, which must still be the one that the reader has open. */
static enum tsr_status open_again(const struct tsr_reader *r, struct tsr_input *input,
                                  struct tsr_container_reader **container, struct tsr_error *error)
{
    const enum tsr_status status = tsr_container_open(input, container, error);
    const bool is_same = status == TSR_OK && tsr_container_id(*container) == tsr_container_id(r->container);
    if (is_same || (status != TSR_OK && status != TSR_ERROR_NOT_TSR)) return status;
    return tsr_fail(error, TSR_ERROR_READ, "%s changed while it was read", r->name);
}

enum tsr_status tsr_reader_open_member(struct tsr_reader *r, uint32_t member, struct tsr_input **input,
                                       struct tsr_container_reader **container, struct tsr_error *error)
{
    TSR_TRY(tsr_input_share(r->input, input, error));
    if (r->content == TSR_CONTENT_TSR) return open_again(r, *input, container, error);
    TSR_TRY(share(r, *input, container, error));
    return tsr_reader_choose_in(r, *container, member, error);
}

static enum tsr_status check_twins(struct tsr_reader *r, struct tsr_input *input, struct tsr_error *error)
{
    struct tsr_container_reader *container = NULL;
    enum tsr_status status = share(r, input, &container, error);
    if (status == TSR_OK) status = tsr_container_check_twins(container, error);
    tsr_container_close(container);
    return status;
}

/* Restores, tests or exports a member. */
static enum tsr_status run_on_member(const struct tsr_call *call)
{
    struct tsr_reader *const r = call->reader;
    const uint32_t member = call->member;
    struct tsr_error *const error = call->error;
    struct tsr_input *input = NULL;
    struct tsr_container_reader *container = NULL;
    struct tsr_account account;
    const char *const name = tsr_reader_name(r, member);
    enum tsr_status status = tsr_reader_open_member(r, member, &input, &container, error);
    tsr_account_open(&account, r->engine, input, NULL);
    /* Damage to what belongs to no member is said once, not of each of them. */
    if (status == TSR_OK && !call->sink && member == 0 && r->content == TSR_CONTENT_SERIES)
        status = check_twins(r, input, error);
    if (status == TSR_OK)
        status = tsr_run_on_file(call, input, container, &account, name && name[0] ? name : r->name, member == 0);
    tsr_container_close(container);
    status = tsr_input_end(input, tsr_reader_check(r, status, error), error);
    tsr_input_close(input);
    tsr_account_close(&account);
    return status;
}

/* The sink must not be the file that is open. */
static enum tsr_status check_apart(const struct tsr_reader *r, const struct tsr_data_sink *sink,
                                   struct tsr_error *error)
{
    const struct tsr_data_source source = tsr_from_descriptor(tsr_input_descriptor(r->input));
    return source.descriptor < 0 ? TSR_OK : tsr_check_apart(&source, sink, error);
}

/* choice: a syntax to export to, or TSR_NO_EXPORT. */
static enum tsr_status check_and_run(struct tsr_reader *reader, uint32_t member, bool has_sink,
                                     const struct tsr_data_sink *sink, int choice, struct tsr_report *report,
                                     struct tsr_error *error)
{
    struct tsr_error ignored;
    struct tsr_report own;
    if (!error) error = &ignored;
    TSR_TRY(tsr_check_pointer(reader, "reader", error));
    if (has_sink) TSR_TRY(tsr_check_sink(sink, error));
    if (has_sink) TSR_TRY(check_apart(reader, sink, error));
    TSR_TRY(tsr_check_report(&report, &own, error));
    TSR_TRY(tsr_reader_check_member(reader, member, error));
    if (reader->content == TSR_CONTENT_ORIGINAL)
        return tsr_fail(error, TSR_ERROR_USAGE, "%s is an original, and not a .tsr", reader->name);
    tsr_clear_report(report);
    struct tsr_call call = tsr_call_of_reader(reader, run_on_member, member, error);
    call.takes_turn = false;
    call.sink = sink;
    call.choice = choice;
    call.report = report;
    return tsr_run_call(&call);
}

enum tsr_status tsr_restore_member(struct tsr_reader *reader, uint32_t member, const struct tsr_data_sink *sink,
                                   struct tsr_report *report, struct tsr_error *error)
{
    return check_and_run(reader, member, true, sink, TSR_NO_EXPORT, report, error);
}

enum tsr_status tsr_test_member(struct tsr_reader *reader, uint32_t member, struct tsr_report *report,
                                struct tsr_error *error)
{
    return check_and_run(reader, member, false, NULL, TSR_NO_EXPORT, report, error);
}

enum tsr_status tsr_export_member(struct tsr_reader *reader, uint32_t member, const struct tsr_data_sink *sink,
                                  enum tsr_export_syntax to, struct tsr_report *report, struct tsr_error *error)
{
    TSR_TRY(tsr_check_export(to, error));
    return check_and_run(reader, member, true, sink, (int)to, report, error);
}
