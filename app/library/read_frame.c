/* Frames and regions of a reader, with gaps between their rows where the caller wants them. Those of a .tsr are read at
 * once: by the reader's own container where no other call has its turn, else by a view. */
#include <stdlib.h>
#include <string.h>

#include "call.h"
#include "reader.h"

/* ---- Views ------------------------------------------------------------------------------------------------ */

static void close_view(struct tsr_view *view)
{
    tsr_container_close(view->container);
    tsr_input_close(view->input);
    free(view);
}

void tsr_forget_views(struct tsr_reader *r)
{
    for (struct tsr_view *next; r->views; r->views = next) {
        next = r->views->next;
        close_view(r->views);
    }
}

/* A series' containers share what its reader has found; that of one file reads its own. */
static enum tsr_status open_view(struct tsr_reader *r, struct tsr_view *view, struct tsr_error *error)
{
    if (!r->pattern) return tsr_reader_open_member(r, 0, &view->input, &view->container, error);
    TSR_TRY(tsr_input_share(r->input, &view->input, error));
    return tsr_container_share(r->pattern, view->input, &view->container, error);
}

static enum tsr_status take_view(struct tsr_reader *r, struct tsr_view **taken, struct tsr_error *error)
{
    pthread_mutex_lock(&r->views_lock);
    struct tsr_view *view = r->views;
    if (view) r->views = view->next;
    pthread_mutex_unlock(&r->views_lock);
    *taken = view;
    if (view) return TSR_OK;
    view = calloc(1, sizeof *view);
    if (!view) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for a reader");
    view->member = TSR_ALL_MEMBERS;
    const enum tsr_status status = open_view(r, view, error);
    if (status == TSR_OK)
        *taken = view;
    else
        close_view(view);
    return status;
}

static enum tsr_status choose(const struct tsr_reader *r, struct tsr_view *view, uint32_t member,
                              struct tsr_error *error)
{
    if (view->member == member) return TSR_OK;
    view->member = TSR_ALL_MEMBERS;
    TSR_TRY(tsr_reader_choose_in(r, view->container, member, error));
    view->member = member;
    return TSR_OK;
}

static void give_view(struct tsr_reader *r, struct tsr_view *view)
{
    pthread_mutex_lock(&r->views_lock);
    view->next = r->views;
    r->views = view;
    pthread_mutex_unlock(&r->views_lock);
}

/* ---- Rows ------------------------------------------------------------------------------------------------- */

/* Rows of a raster, of all planes, as the caller's buffer has them. */
struct rows {
    size_t count, bytes; /* bytes: of one, without its gap; 0: they do not begin at bytes */
    size_t whole;        /* of all, without gaps */
    size_t distance;
};

/* Of columns x rows samples of an image. is_swapped: bytes are exchanged across the ends of rows. */
static enum tsr_status lay_rows(const struct tsr_image *image, uint32_t columns, uint32_t rows, bool is_swapped,
                                const struct tsr_call *call, struct rows *laid)
{
    const uint64_t planes = image->planar ? image->components : 1,
                   bits = (uint64_t)columns * (image->components / planes) * image->bits_allocated,
                   all = (bits * rows * planes + 7) / 8;
    *laid = (struct rows){.count = (size_t)(rows * planes), .whole = (size_t)all, .distance = call->row_bytes};
    if (image->bits_allocated > 1 && !is_swapped) laid->bytes = (size_t)(bits / 8);
    if (laid->distance > 0 && laid->bytes == 0)
        return tsr_fail(call->error, TSR_ERROR_USAGE, "row_bytes is %zu, and rows of this image do not begin at bytes",
                        laid->distance);
    if (laid->distance > 0 && laid->distance < laid->bytes)
        return tsr_fail(call->error, TSR_ERROR_USAGE, "row_bytes is %zu, and a row has %zu", laid->distance,
                        laid->bytes);
    if (laid->distance == laid->bytes) laid->distance = 0;
    const size_t gaps = laid->distance > 0 ? laid->distance - laid->bytes : 0;
    if (call->count >= laid->whole && (gaps == 0 || (call->count - laid->whole) / gaps >= laid->count - 1))
        return TSR_OK;
    return tsr_fail(call->error, TSR_ERROR_USAGE,
                    "%zu rows have %zu bytes and %zu of gaps between two, and buffer has "
                    "room for %zu",
                    laid->count, laid->whole, gaps, call->count);
}

static void spread(const struct rows *rows, const uint8_t *raster, uint8_t *out)
{
    for (size_t i = 0; i < rows->count; i++) memcpy(out + i * rows->distance, raster + i * rows->bytes, rows->bytes);
}

/* ---- Calls ------------------------------------------------------------------------------------------------ */

/* The samples of what was asked for, without gaps. container: NULL of an original. */
static enum tsr_status read_samples(const struct tsr_call *call, struct tsr_container_reader *container,
                                    const struct tsr_image *image, uint8_t *out)
{
    struct tsr_reader *const r = call->reader;
    const uint8_t *raster;
    if (container && call->region)
        return tsr_decode_region_of(r->engine, container, call->frame, call->region, out, call->error);
    if (!call->region) return tsr_reader_frame_of(r, container, call->frame, out, call->error);
    TSR_TRY(tsr_reader_raster(r, call->frame, &raster, call->error));
    tsr_cut_region(image, raster, call->region, out);
    return TSR_OK;
}

/* The same, as the original has them. count: samples of the image in it. */
static enum tsr_status read_raster(const struct tsr_call *call, struct tsr_container_reader *container,
                                   const struct tsr_header *header, size_t count, uint8_t *out)
{
    if (!tsr_has_values(header)) return read_samples(call, container, &header->image, out);
    const size_t size = count * header->image.components * (header->image.bits_allocated / 8);
    uint8_t *const samples = malloc(size + 1);
    if (!samples) return tsr_fail(call->error, TSR_ERROR_LIMIT, "no memory for a frame of %zu bytes", size);
    const enum tsr_status status = read_samples(call, container, &header->image, samples);
    const size_t values = header->values.form == TSR_VALUES_ORDERED && header->values.bits == 64
                              ? count
                              : count * header->image.components;
    if (status == TSR_OK) tsr_values_join(&header->values, &header->image, samples, values, out);
    free(samples);
    return status;
}

static enum tsr_status check_region(const struct tsr_image *image, const struct tsr_region *region,
                                    struct tsr_error *error)
{
    if (region->columns > 0 && region->rows > 0 && region->columns <= image->columns && region->rows <= image->rows &&
        region->column <= image->columns - region->columns && region->row <= image->rows - region->rows)
        return TSR_OK;
    return tsr_fail(error, TSR_ERROR_USAGE, "a region of %u x %u at %u, %u is not inside %u x %u", region->columns,
                    region->rows, region->column, region->row, image->columns, image->rows);
}

/* By a container that has chosen the member; NULL: the original, with the lock. */
static enum tsr_status read_rows(const struct tsr_call *call, struct tsr_container_reader *container)
{
    struct tsr_error *const error = call->error;
    const struct tsr_region *const region = call->region;
    struct tsr_image image;
    struct rows rows;
    const struct tsr_header *const header =
        container ? tsr_container_header(container) : &call->reader->original->header;
    TSR_TRY(tsr_reader_image_of(call->reader, header, &image, error));
    if (call->frame >= image.frames)
        return tsr_fail(error, TSR_ERROR_USAGE, "there is no frame %u: the image has %u, counted from 0", call->frame,
                        image.frames);
    if (region) TSR_TRY(check_region(&image, region, error));
    const uint32_t columns = region ? region->columns : image.columns, lines = region ? region->rows : image.rows;
    TSR_TRY(lay_rows(&image, columns, lines, image.swapped && !region, call, &rows));
    const size_t count = (size_t)columns * lines;
    if (rows.distance == 0) return read_raster(call, container, header, count, call->out);
    uint8_t *const raster = malloc(rows.whole + 1);
    if (!raster) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for a frame of %zu bytes", rows.whole);
    const enum tsr_status status = read_raster(call, container, header, count, raster);
    if (status == TSR_OK) spread(&rows, raster, call->out);
    free(raster);
    return status;
}

/* *in_turn: it needs the lock. */
static enum tsr_status read_by_view(const struct tsr_call *call, bool *in_turn)
{
    struct tsr_reader *const r = call->reader;
    struct tsr_view *view;
    enum tsr_status status = take_view(r, &view, call->error);
    *in_turn = false;
    if (status == TSR_OK) {
        tsr_input_begin(view->input);
        status = choose(r, view, call->member, call->error);
        *in_turn = status == TSR_OK && tsr_may_hold_frames(tsr_container_header(view->container));
        if (status == TSR_OK && !*in_turn) status = read_rows(call, view->container);
        status = tsr_input_end(view->input, tsr_reader_check(r, status, call->error), call->error);
        give_view(r, view);
    }
    return status;
}

enum tsr_status tsr_reader_part(const struct tsr_call *call)
{
    struct tsr_reader *const r = call->reader;
    struct tsr_container_reader *container = NULL;
    TSR_TRY(tsr_reader_check_member(r, call->member, call->error));
    if (!r->container || pthread_mutex_trylock(&r->lock) != 0) {
        bool in_turn = true;
        const enum tsr_status status = r->container ? read_by_view(call, &in_turn) : TSR_OK;
        if (status != TSR_OK || !in_turn) return status;
        pthread_mutex_lock(&r->lock);
    }
    tsr_input_begin(r->input);
    enum tsr_status status = tsr_reader_choose(r, call->member, call->error);
    if (status == TSR_OK) status = tsr_reader_frames(r, &container, call->error);
    if (status == TSR_OK) status = read_rows(call, container);
    return tsr_reader_end(r, status, call->error);
}

static enum tsr_status read_part(struct tsr_reader *reader, uint32_t member, uint32_t frame,
                                 const struct tsr_region *region, void *buffer, size_t byte_count, size_t row_bytes,
                                 struct tsr_error *error)
{
    TSR_TRY(tsr_check_pointer(buffer, "buffer", error));
    struct tsr_call call = tsr_call_of_reader(reader, tsr_reader_part, member, error);
    call.takes_turn = false;
    call.frame = frame;
    call.region = region;
    call.out = buffer;
    call.count = byte_count;
    call.row_bytes = row_bytes;
    return tsr_run_call(&call);
}

enum tsr_status tsr_read_frame(struct tsr_reader *reader, uint32_t member, uint32_t frame, void *buffer,
                               size_t byte_count, size_t row_bytes, struct tsr_error *error)
{
    TSR_TRY(tsr_check_pointer(reader, "reader", error));
    return read_part(reader, member, frame, NULL, buffer, byte_count, row_bytes, error);
}

enum tsr_status tsr_read_region(struct tsr_reader *reader, uint32_t member, uint32_t frame,
                                const struct tsr_region *region, void *buffer, size_t byte_count, size_t row_bytes,
                                struct tsr_error *error)
{
    TSR_TRY(tsr_check_pointer(reader, "reader", error));
    TSR_TRY(tsr_check_pointer(region, "region", error));
    return read_part(reader, member, frame, region, buffer, byte_count, row_bytes, error);
}
