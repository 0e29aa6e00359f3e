/* The windows of an original, for callers that measure what others make of its samples. */
#include <string.h>

#include "app/library/arguments.h"
#include "app/library/call.h"
#include "app/library/loss/measure.h"
#include "app/library/reader.h"
#include "app/tessera_cli.h"

struct reading {
    uint32_t number;
    struct tsr_image_window *window;
    uint8_t *inside; /* or NULL */
    size_t byte_count;
};

/* By the step that measures a file's loss: a kept sample is in no window. */
static void mark_inside(const struct tsr_image *image, const struct tsr_measured *what, const uint8_t *raster,
                        uint8_t *inside)
{
    const size_t count = (size_t)image->columns * image->rows;
    struct tsr_difference sum = {0};
    for (size_t i = 0; i < count; i++) {
        const uint64_t before = sum.window[0].samples;
        const int64_t value = tsr_raster_value(image, raster, i);
        tsr_add_sample_difference(what, value, value, &sum);
        inside[i] = sum.window[0].samples > before;
    }
}

static enum tsr_status read_window(const struct tsr_call *call)
{
    const struct reading *const reading = call->options;
    struct tsr_reader *const r = call->reader;
    const uint8_t *raster;
    const size_t size = reading->window->size;
    *reading->window = (struct tsr_image_window){.size = size};
    TSR_TRY(tsr_reader_choose(r, call->member, call->error));
    if (r->container) return tsr_fail(call->error, TSR_ERROR_USAGE, "%s is a .tsr, and not an original", r->name);
    const struct tsr_image *const image = &r->original->header.image;
    const struct tsr_windows *const windows = &r->original->windows;
    if (!tsr_has_frames(&r->original->header) || image->components > 1 || reading->number >= windows->count)
        return TSR_OK;
    const struct tsr_value_window *const found = &windows->window[reading->number];
    if (call->frame >= image->frames)
        return tsr_fail(call->error, TSR_ERROR_USAGE, "there is no frame %u: the image has %u, counted from 0",
                        call->frame, image->frames);
    struct tsr_measured what = tsr_measured_of(image, &r->original->header.kept);
    tsr_measure_frame(windows, call->frame, &what);
    if (tsr_has_own_window(windows, call->frame, reading->number)) return TSR_OK; /* the frame does not name it */
    *reading->window = (struct tsr_image_window){.size = size,
                                                 .center = found->center,
                                                 .width = found->width,
                                                 .stored_width = found->width / found->slope * TSR_WHOLE_WEIGHT /
                                                                 what.window_weight[reading->number],
                                                 .lowest = what.window[reading->number].low,
                                                 .highest = what.window[reading->number].high};
    if (!reading->inside) return TSR_OK;
    if (reading->byte_count < (size_t)image->columns * image->rows)
        return tsr_fail(call->error, TSR_ERROR_USAGE, "inside has room for %zu samples, and a frame has %zu",
                        reading->byte_count, (size_t)image->columns * image->rows);
    what.windows = 1;
    what.window[0] = what.window[reading->number];
    TSR_TRY(tsr_reader_raster(r, call->frame, &raster, call->error));
    mark_inside(image, &what, raster, reading->inside);
    return TSR_OK;
}

enum tsr_status tsr_read_window(struct tsr_reader *reader, uint32_t member, uint32_t frame, uint32_t number,
                                struct tsr_image_window *window, uint8_t *inside, size_t byte_count,
                                struct tsr_error *error)
{
    TSR_TRY(tsr_check_pointer(reader, "reader", error));
    TSR_TRY(tsr_check_sized(window, sizeof *window, "window", error));
    const struct reading reading = {number, window, inside, byte_count};
    struct tsr_call call = tsr_call_of_reader(reader, read_window, member, error);
    call.frame = frame;
    call.options = &reading;
    return tsr_run_call(&call);
}
