/* A region of a reader's frames as a picture. */
#include <stdlib.h>
#include <string.h>

#include "app/library/call.h"
#include "app/library/reader.h"
#include "picture.h"

/* What was asked for: all of an image has 0 columns. */
struct asked {
    const struct tsr_region *region;
    uint32_t first, frames; /* 0: all from the first one on */
    enum tsr_picture picture;
};

/* The part of the region that lies in the image. */
static enum tsr_status clip(const struct tsr_reader *r, const struct tsr_image *image, const struct tsr_region *asked,
                            struct tsr_region *part, struct tsr_error *error)
{
    *part = *asked;
    if (part->column >= image->columns || part->row >= image->rows)
        return tsr_fail(error, TSR_ERROR_USAGE,
                        "the region %u,%u,%u,%u lies outside of %s, which has %u x %u samples: give one that touches "
                        "it",
                        part->column, part->row, part->columns, part->rows, r->name, image->columns, image->rows);
    if (part->columns > image->columns - part->column) part->columns = image->columns - part->column;
    if (part->rows > image->rows - part->row) part->rows = image->rows - part->row;
    return TSR_OK;
}

/* Reads and puts all frames. */
static enum tsr_status put_frames(const struct tsr_call *call, const struct tsr_region *part, uint32_t first,
                                  uint32_t frames, struct tsr_picture_file *file)
{
    const size_t bytes = (size_t)((tsr_frame_bits(&file->image) + 7) / 8);
    uint8_t *const raster = malloc(bytes + 1);
    if (!raster) return tsr_fail(call->error, TSR_ERROR_LIMIT, "no memory for a region of %zu bytes", bytes);
    enum tsr_status status = TSR_OK;
    for (uint32_t i = 0; i < frames && status == TSR_OK; i++) {
        struct tsr_call reading = *call;
        reading.frame = first + i;
        reading.region = part;
        reading.out = raster;
        reading.count = bytes;
        status = tsr_reader_part(&reading);
        if (status == TSR_OK) status = tsr_picture_put(file, raster, NULL, call->error);
    }
    free(raster);
    return status;
}

/* What is known of the member: all but what its file came to. */
static enum tsr_status describe(struct tsr_reader *r, uint32_t member, struct tsr_image *image,
                                struct tsr_report *report, struct tsr_error *error)
{
    struct tsr_info info = TSR_INFO;
    TSR_TRY(tsr_reader_image(r, member, image, error));
    TSR_TRY(tsr_read_info(r, member, &info, error));
    report->kind = info.kind;
    report->way = info.way;
    report->has_image = true;
    report->image = *image;
    report->bytes_in = info.file_bytes;
    report->promise = info.promise == TSR_PROMISE_LOSSY ? TSR_PROMISE_LOSSY : TSR_PROMISE_SAMPLES;
    memcpy(report->original_hash, info.original_hash, sizeof report->original_hash);
    report->verified = true; /* by the checks of the sections that are read */
    return TSR_OK;
}

static enum tsr_status write_region(const struct tsr_call *call)
{
    const struct asked *const asked = call->options;
    struct tsr_reader *const r = call->reader;
    struct tsr_error *const error = call->error;
    struct tsr_picture_file file = {.output = NULL};
    struct tsr_image image;
    struct tsr_region part;
    TSR_TRY(describe(r, call->member, &image, call->report, error));
    TSR_TRY(clip(r, &image, asked->region, &part, error));
    if (asked->first >= image.frames || asked->frames > image.frames - asked->first)
        return tsr_fail(error, TSR_ERROR_USAGE, "there is no frame %u: %s has %u, counted from 0",
                        asked->first >= image.frames ? asked->first : image.frames, r->name, image.frames);
    const uint32_t frames = asked->frames > 0 ? asked->frames : image.frames - asked->first;
    image.columns = part.columns;
    image.rows = part.rows;
    enum tsr_status status = tsr_picture_begin(&file, &image, frames, asked->picture, call->sink, r->input, error);
    if (status == TSR_OK) status = put_frames(call, &part, asked->first, frames, &file);
    if (status == TSR_OK) status = tsr_picture_end(&file, r->engine, call->report, error);
    if (status == TSR_OK) status = tsr_deliver_file(call->sink, file.output, call->report, error);
    tsr_picture_close(&file);
    return status;
}

enum tsr_status tsr_write_region(struct tsr_reader *reader, uint32_t member, const struct tsr_region *region,
                                 uint32_t first, uint32_t frames, enum tsr_picture picture,
                                 const struct tsr_data_sink *sink, struct tsr_report *report, struct tsr_error *error)
{
    const struct asked asked = {region, first, frames, picture};
    struct tsr_error ignored;
    struct tsr_report own;
    if (!error) error = &ignored;
    TSR_TRY(tsr_check_pointer(reader, "reader", error));
    TSR_TRY(tsr_check_pointer(region, "region", error));
    TSR_TRY(tsr_check_sink(sink, error));
    TSR_TRY(tsr_check_picture(picture, error));
    TSR_TRY(tsr_check_report(&report, &own, error));
    if (region->columns == 0 || region->rows == 0)
        return tsr_fail(error, TSR_ERROR_USAGE, "the region has no samples: columns and rows are at least 1");
    tsr_clear_report(report);
    struct tsr_call call = tsr_call_of_reader(reader, write_region, member, error);
    call.takes_turn = false;
    call.options = &asked;
    call.sink = sink;
    call.report = report;
    return tsr_run_call(&call);
}
