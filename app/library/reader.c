/* Readers: a .tsr, a series or an original that is open. */
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
    tsr_output_close(r->restored);
    r->restored = NULL;
    r->chosen = TSR_ALL_MEMBERS;
}

static void free_reader(struct tsr_reader *r)
{
    forget_member(r);
    tsr_source_close(r->original);
    for (uint32_t k = 0; r->names && k < r->members; k++) free(r->names[k]);
    free(r->names);
    tsr_container_close(r->container);
    tsr_input_close(r->input);
    free(r->path);
    free(r->name);
    pthread_mutex_destroy(&r->lock);
    free(r);
}

void tsr_close(struct tsr_reader *reader)
{
    if (reader) free_reader(reader);
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
        if (status != TSR_OK) continue; /* restoring it will say why */
        r->names[k] = strdup(tsr_container_name(r->container));
        if (!r->names[k]) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for the names of %u files", r->members);
    }
    return drop_twins(r, error);
}

/* The caller's strings may go away. */
static enum tsr_status keep_names(struct tsr_reader *r, struct tsr_error *error)
{
    const bool has_path = r->source.medium == TSR_MEDIUM_PATH;
    if (has_path) r->path = strdup(r->source.path);
    if (r->source.name) r->name = strdup(r->source.name);
    if ((has_path && !r->path) || (r->source.name && !r->name))
        return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for a reader");
    r->source.path = r->path;
    r->source.name = r->name;
    return TSR_OK;
}

static enum tsr_status open_reader(struct tsr_reader *r, struct tsr_error *error)
{
    struct tsr_proof proof;
    TSR_TRY(keep_names(r, error));
    TSR_TRY(tsr_open_source(&r->source, &r->input, error));
    const enum tsr_status status = tsr_container_open(r->input, &r->container, error);
    if (status == TSR_ERROR_NOT_TSR) {
        r->content = TSR_CONTENT_ORIGINAL;
        tsr_account_open(&r->account, r->engine, r->input, NULL);
        r->account.only_checks = true;
        r->account.base.grant_spare = NULL;
        tsr_input_set_crew(r->input, (struct tsr_crew){0}); /* readers may be many */
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
    return read_names(r, error);
}

enum tsr_status tsr_open(struct tsr_engine *engine, const struct tsr_data_source *source, struct tsr_reader **reader,
                         struct tsr_error *error)
{
    struct tsr_error ignored;
    if (!error) error = &ignored;
    TSR_TRY(tsr_check_pointer(reader, "reader", error));
    *reader = NULL;
    TSR_TRY(tsr_check_pointer(engine, "engine", error));
    TSR_TRY(tsr_check_tsr(source, error));
    struct tsr_reader *const r = calloc(1, sizeof *r);
    if (!r) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for a reader");
    r->engine = engine;
    r->source = *source;
    r->members = 1;
    r->chosen = TSR_ALL_MEMBERS;
    pthread_mutex_init(&r->lock, NULL);
    const enum tsr_status status = open_reader(r, error);
    if (status != TSR_OK)
        free_reader(r);
    else
        *reader = r;
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

static enum tsr_status check_member(const struct tsr_reader *r, uint32_t member, struct tsr_error *error)
{
    if (member < r->members) return TSR_OK;
    return tsr_fail(error, TSR_ERROR_USAGE, "there is no member %u: %s has %u, counted from 0", member,
                    tsr_source_name(&r->source), r->members);
}

/* Chooses in a container of the reader's; a name that stands twice is one member's. */
static enum tsr_status choose(const struct tsr_reader *r, struct tsr_container_reader *container, uint32_t member,
                              struct tsr_error *error)
{
    TSR_TRY(tsr_container_choose(container, member, error));
    if (!r->names || (r->names[member] && strcmp(r->names[member], tsr_container_name(container)) == 0)) return TSR_OK;
    return tsr_fail(error, TSR_ERROR_CORRUPT, "file %u of the series is called %.300s, as another is", member + 1,
                    tsr_container_name(container));
}

enum tsr_status tsr_reader_choose(struct tsr_reader *r, uint32_t member, struct tsr_error *error)
{
    const struct tsr_source_options options = {.samples_only = true};
    TSR_TRY(check_member(r, member, error));
    if (r->chosen == member) return TSR_OK;
    forget_member(r);
    if (!r->container && !r->original) TSR_TRY(tsr_source_open(r->input, &options, &r->original, error));
    if (r->container) TSR_TRY(choose(r, r->container, member, error));
    r->chosen = member;
    return TSR_OK;
}

const struct tsr_header *tsr_reader_header(const struct tsr_reader *r)
{
    return r->container ? tsr_container_header(r->container) : &r->original->header;
}

/* ---- What a member is ------------------------------------------------------------------------------------- */

static void describe_original(const struct tsr_reader *r, struct tsr_info *info)
{
    const struct tsr_header *const header = &r->original->header;
    memset(info, 0, sizeof *info);
    info->size = sizeof *info;
    info->kind = header->kind;
    info->verbatim = !tsr_has_frames(header);
    memcpy(info->reason, header->reason, sizeof info->reason);
    info->restore = "";
    info->identical = header->exact;
    info->image = header->image;
    info->file_bytes = info->original_bytes = tsr_input_size(r->input);
    info->max_error = -1;
    info->psnr_db = -1;
}

static enum tsr_status read_info(struct tsr_reader *r, uint32_t member, struct tsr_info *info, struct tsr_error *error)
{
    if (member == TSR_ALL_MEMBERS && r->content == TSR_CONTENT_SERIES) {
        forget_member(r);
        return tsr_describe_series(r->container, tsr_input_size(r->input), info, error);
    }
    TSR_TRY(tsr_reader_choose(r, member == TSR_ALL_MEMBERS ? 0 : member, error));
    if (r->container) return tsr_describe(r->container, info, error);
    describe_original(r, info);
    return TSR_OK;
}

enum tsr_status tsr_read_info(struct tsr_reader *reader, uint32_t member, struct tsr_info *info,
                              struct tsr_error *error)
{
    TSR_TRY(tsr_check_pointer(reader, "reader", error));
    TSR_TRY(tsr_check_sized(info, sizeof *info, "info", error));
    pthread_mutex_lock(&reader->lock);
    const enum tsr_status status = read_info(reader, member, info, error);
    pthread_mutex_unlock(&reader->lock);
    return status;
}

static enum tsr_status read_image(struct tsr_reader *r, uint32_t member, struct tsr_image *image,
                                  struct tsr_error *error)
{
    TSR_TRY(tsr_reader_choose(r, member, error));
    const struct tsr_header *const header = tsr_reader_header(r);
    if (!tsr_has_frames(header))
        return tsr_fail(error, TSR_ERROR_USAGE, "%s has no image that can be read: %s", tsr_source_name(&r->source),
                        header->reason);
    *image = header->image;
    return TSR_OK;
}

enum tsr_status tsr_reader_image(struct tsr_reader *reader, uint32_t member, struct tsr_image *image,
                                 struct tsr_error *error)
{
    TSR_TRY(tsr_check_pointer(reader, "reader", error));
    TSR_TRY(tsr_check_pointer(image, "image", error));
    pthread_mutex_lock(&reader->lock);
    const enum tsr_status status = read_image(reader, member, image, error);
    pthread_mutex_unlock(&reader->lock);
    return status;
}

/* ---- Frames ----------------------------------------------------------------------------------------------- */

static enum tsr_status decode_raster(struct tsr_reader *r, uint32_t frame, uint8_t *raster, struct tsr_error *error)
{
    if (r->container) return tsr_decode_frame_of(r->engine, r->container, frame, raster, error);
    return r->original->ops->read_frame(r->original, frame, raster, error);
}

enum tsr_status tsr_reader_raster(struct tsr_reader *r, uint32_t frame, const uint8_t **raster, struct tsr_error *error)
{
    const size_t bytes = tsr_raster_bytes(&tsr_reader_header(r)->image);
    const bool is_kept = r->raster && r->raster_frame == frame;
    if (!is_kept) {
        uint8_t *const room = r->raster ? r->raster : malloc(bytes + 1);
        r->raster = NULL;
        if (!room) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for a frame of %zu bytes", bytes);
        const enum tsr_status status = decode_raster(r, frame, room, error);
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

static enum tsr_status check_frame(const struct tsr_image *image, uint32_t frame, struct tsr_error *error)
{
    if (frame < image->frames) return TSR_OK;
    return tsr_fail(error, TSR_ERROR_USAGE, "there is no frame %u: the image has %u, counted from 0", frame,
                    image->frames);
}

static enum tsr_status read_frame(struct tsr_reader *r, uint32_t member, uint32_t frame, void *buffer,
                                  size_t byte_count, struct tsr_error *error)
{
    struct tsr_image image;
    TSR_TRY(read_image(r, member, &image, error));
    TSR_TRY(check_frame(&image, frame, error));
    const size_t bytes = tsr_raster_bytes(&image);
    if (byte_count < bytes)
        return tsr_fail(error, TSR_ERROR_USAGE, "a frame has %zu bytes, and buffer has room for %zu", bytes,
                        byte_count);
    return decode_raster(r, frame, buffer, error);
}

enum tsr_status tsr_read_frame(struct tsr_reader *reader, uint32_t member, uint32_t frame, void *buffer,
                               size_t byte_count, struct tsr_error *error)
{
    TSR_TRY(tsr_check_pointer(reader, "reader", error));
    TSR_TRY(tsr_check_pointer(buffer, "buffer", error));
    pthread_mutex_lock(&reader->lock);
    const enum tsr_status status = read_frame(reader, member, frame, buffer, byte_count, error);
    pthread_mutex_unlock(&reader->lock);
    return status;
}

static enum tsr_status check_region(const struct tsr_image *image, const struct tsr_region *region, size_t byte_count,
                                    struct tsr_error *error)
{
    const bool is_inside = region->columns > 0 && region->rows > 0 && region->columns <= image->columns &&
                           region->rows <= image->rows && region->column <= image->columns - region->columns &&
                           region->row <= image->rows - region->rows;
    if (!is_inside)
        return tsr_fail(error, TSR_ERROR_USAGE, "a region of %u x %u at %u, %u is not inside %u x %u", region->columns,
                        region->rows, region->column, region->row, image->columns, image->rows);
    const uint64_t bits = (uint64_t)region->columns * region->rows * image->components * image->bits_allocated;
    if (byte_count >= (bits + 7) / 8) return TSR_OK;
    return tsr_fail(error, TSR_ERROR_USAGE, "the region has %llu bytes, and buffer has room for %zu",
                    (unsigned long long)((bits + 7) / 8), byte_count);
}

static enum tsr_status read_region(struct tsr_reader *r, uint32_t member, uint32_t frame,
                                   const struct tsr_region *region, void *buffer, size_t byte_count,
                                   struct tsr_error *error)
{
    struct tsr_image image;
    const uint8_t *raster;
    TSR_TRY(read_image(r, member, &image, error));
    TSR_TRY(check_frame(&image, frame, error));
    TSR_TRY(check_region(&image, region, byte_count, error));
    if (r->container) return tsr_decode_region_of(r->engine, r->container, frame, region, buffer, error);
    TSR_TRY(tsr_reader_raster(r, frame, &raster, error));
    tsr_cut_region(&image, raster, region, buffer);
    return TSR_OK;
}

enum tsr_status tsr_read_region(struct tsr_reader *reader, uint32_t member, uint32_t frame,
                                const struct tsr_region *region, void *buffer, size_t byte_count,
                                struct tsr_error *error)
{
    TSR_TRY(tsr_check_pointer(reader, "reader", error));
    TSR_TRY(tsr_check_pointer(region, "region", error));
    TSR_TRY(tsr_check_pointer(buffer, "buffer", error));
    pthread_mutex_lock(&reader->lock);
    const enum tsr_status status = read_region(reader, member, frame, region, buffer, byte_count, error);
    pthread_mutex_unlock(&reader->lock);
    return status;
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

/* A container of its own, so that several threads restore at once. A file is opened by its name again. */
static enum tsr_status open_member(struct tsr_reader *r, uint32_t member, struct tsr_input **input,
                                   struct tsr_container_reader **container, struct tsr_error *error)
{
    TSR_TRY(tsr_open_source(&r->source, input, error));
    if (r->content == TSR_CONTENT_TSR) return tsr_container_open(*input, container, error);
    TSR_TRY(share(r, *input, container, error));
    return choose(r, *container, member, error);
}

static enum tsr_status check_twins(struct tsr_reader *r, struct tsr_input *input, struct tsr_error *error)
{
    struct tsr_container_reader *container = NULL;
    enum tsr_status status = share(r, input, &container, error);
    if (status == TSR_OK) status = tsr_container_check_twins(container, error);
    tsr_container_close(container);
    return status;
}

static enum tsr_status restore_member(struct tsr_reader *r, uint32_t member, const struct tsr_data_sink *sink,
                                      struct tsr_report *report, struct tsr_error *error)
{
    struct tsr_input *input = NULL;
    struct tsr_container_reader *container = NULL;
    struct tsr_account account;
    enum tsr_status status = open_member(r, member, &input, &container, error);
    tsr_account_open(&account, r->engine, input, NULL);
    /* Damage to what belongs to no member is said once, not of each of them. */
    if (status == TSR_OK && !sink && member == 0 && r->content == TSR_CONTENT_SERIES)
        status = check_twins(r, input, error);
    if (status == TSR_OK)
        status = tsr_restore_file(r->engine, input, container, &account, sink, member == 0, report, error);
    tsr_container_close(container);
    tsr_input_close(input);
    tsr_account_close(&account);
    return status;
}

static enum tsr_status check_and_restore(struct tsr_reader *reader, uint32_t member, const struct tsr_data_sink *sink,
                                         struct tsr_report *report, struct tsr_error *error)
{
    struct tsr_error ignored;
    struct tsr_report own;
    if (!error) error = &ignored;
    TSR_TRY(tsr_check_report(&report, &own, error));
    TSR_TRY(check_member(reader, member, error));
    if (reader->content == TSR_CONTENT_ORIGINAL)
        return tsr_fail(error, TSR_ERROR_USAGE, "%s is an original, and not a .tsr", tsr_source_name(&reader->source));
    tsr_clear_report(report);
    return restore_member(reader, member, sink, report, error);
}

enum tsr_status tsr_restore_member(struct tsr_reader *reader, uint32_t member, const struct tsr_data_sink *sink,
                                   struct tsr_report *report, struct tsr_error *error)
{
    TSR_TRY(tsr_check_pointer(reader, "reader", error));
    TSR_TRY(tsr_check_sink(sink, error));
    TSR_TRY(tsr_check_apart(&reader->source, sink, error));
    return check_and_restore(reader, member, sink, report, error);
}

enum tsr_status tsr_test_member(struct tsr_reader *reader, uint32_t member, struct tsr_report *report,
                                struct tsr_error *error)
{
    TSR_TRY(tsr_check_pointer(reader, "reader", error));
    return check_and_restore(reader, member, NULL, report, error);
}

/* ---- Members exported ------------------------------------------------------------------------------------- */

static enum tsr_status export_member(struct tsr_reader *r, uint32_t member, const struct tsr_data_sink *sink,
                                     enum tsr_export to, struct tsr_report *report, struct tsr_error *error)
{
    struct tsr_input *input = NULL;
    struct tsr_container_reader *container = NULL;
    struct tsr_account account;
    const char *const name = tsr_reader_name(r, member);
    enum tsr_status status = open_member(r, member, &input, &container, error);
    tsr_account_open(&account, r->engine, input, NULL);
    if (status == TSR_OK)
        status = tsr_export_file(r->engine, input, container, &account,
                                 name && name[0] ? name : tsr_source_name(&r->source), sink, to, report, error);
    tsr_container_close(container);
    tsr_input_close(input);
    tsr_account_close(&account);
    return status;
}

enum tsr_status tsr_export_member(struct tsr_reader *reader, uint32_t member, const struct tsr_data_sink *sink,
                                  enum tsr_export to, struct tsr_report *report, struct tsr_error *error)
{
    struct tsr_error ignored;
    struct tsr_report own;
    if (!error) error = &ignored;
    TSR_TRY(tsr_check_pointer(reader, "reader", error));
    TSR_TRY(tsr_check_sink(sink, error));
    TSR_TRY(tsr_check_apart(&reader->source, sink, error));
    TSR_TRY(tsr_check_export(to, error));
    TSR_TRY(tsr_check_report(&report, &own, error));
    TSR_TRY(check_member(reader, member, error));
    if (reader->content == TSR_CONTENT_ORIGINAL)
        return tsr_fail(error, TSR_ERROR_USAGE, "%s is an original, and not a .tsr", tsr_source_name(&reader->source));
    tsr_clear_report(report);
    return export_member(reader, member, sink, to, report, error);
}
