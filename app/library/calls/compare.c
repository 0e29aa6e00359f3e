/* The samples that a .tsr decodes to, with those of an original: by the measures of a file that is coded with loss. */
#include <string.h>

#include "app/library/call.h"
#include "app/library/loss/measure.h"
#include "app/library/loss/range.h"
#include "app/library/reader.h"
#include "io/formats/source.h"
#include "kernels/measure/difference_cpu.h"
#include "kernels/measure/ssim_cpu.h"
#include "transform/status.h"

struct comparing {
    struct tsr_reader *reader;
    struct tsr_measured what;
    const struct tsr_windows *windows;
    const struct tsr_patches *exact; /* NULL: none */
    uint32_t frame;
    struct tsr_difference found;
    enum tsr_status status;
    struct tsr_error *error;
};

static bool compare_frame(void *context, const struct tsr_image *image, const uint8_t *original)
{
    struct comparing *const c = context;
    const uint8_t *decoded;
    const uint32_t frame = c->frame++;
    c->status = tsr_reader_raster(c->reader, frame, &decoded, c->error);
    if (c->status != TSR_OK) return false;
    if (memcmp(original, decoded, tsr_raster_bytes(image)) == 0)
        decoded = original; /* bits beside the samples do not count */
    struct tsr_difference measured = {0}, inside = {0};
    struct tsr_own_window ignored = {0};
    if (c->exact) c->status = tsr_add_inside(c->exact, image, &tsr_measure_all, original, decoded, &inside, c->error);
    if (c->status == TSR_OK && inside.max_error > 0)
        c->status =
            tsr_fail(c->error, TSR_ERROR_VERIFY, "a sample of frame %u differs in the region that is exact", frame);
    if (c->status != TSR_OK) return false;
    tsr_measure_frame(c->windows, frame, &c->what);
    tsr_add_difference(image, &c->what, original, decoded, &measured);
    tsr_add_ssim(tsr_isa(), image, &c->what, original, decoded, &measured);
    tsr_add_frame(c->windows, frame, (uint64_t)image->columns * image->rows, &measured, &c->found, &ignored);
    return true;
}

static enum tsr_status check_images(const struct tsr_image *a, const struct tsr_image *b, struct tsr_error *error)
{
    if (a->columns != b->columns || a->rows != b->rows || a->frames != b->frames || a->components != b->components ||
        a->bits_stored != b->bits_stored || a->is_signed != b->is_signed)
        return tsr_fail(error, TSR_ERROR_VERIFY, "the images have other dimensions or depths");
    if (a->bits_allocated == b->bits_allocated && a->high_bit == b->high_bit && a->planar == b->planar &&
        a->big_endian == b->big_endian && a->swapped == b->swapped && a->bits_allocated <= 16)
        return TSR_OK;
    return tsr_fail(error, TSR_ERROR_VERIFY, "the samples lie otherwise in the two files and were not compared");
}

/* The loss of these samples as a header and a proof would tell it. */
static void report_difference(const struct tsr_header *coded, const struct tsr_source *source,
                              const struct tsr_difference *found, struct tsr_report *report)
{
    struct tsr_header header = *coded;
    struct tsr_proof proof;
    struct tsr_told_loss loss;
    header.coding.lossy = found->max_error > 0;
    tsr_set_windows(&header, &source->windows);
    tsr_note_difference(&header.image, found, &proof);
    tsr_tell_loss(&header, &proof, &loss);
    report->promise = header.coding.lossy ? TSR_PROMISE_LOSSY : TSR_PROMISE_SAMPLES;
    tsr_report_loss(&loss, report);
    report->ssim = header.coding.lossy ? tsr_ssim_of(&found->ssim) : -1;
}

static enum tsr_status compare_with(struct tsr_reader *reader, struct tsr_source *source, struct tsr_report *report,
                                    struct tsr_error *error)
{
    const struct tsr_header *const header = tsr_reader_header(reader);
    if (!tsr_has_frames(header) || !tsr_has_frames(&source->header))
        return tsr_fail(error, TSR_ERROR_VERIFY, "only samples can be compared, and one of the files has none");
    if (source->units || (reader->container && tsr_container_units(reader->container) > 0))
        return tsr_fail(error, TSR_ERROR_VERIFY,
                        "only samples can be compared, and some frames are not coded as samples");
    if (tsr_has_values(header) || tsr_has_values(&source->header))
        return tsr_fail(error, TSR_ERROR_VERIFY, "floating-point samples and those of 64 bits are not compared");
    TSR_TRY(check_images(&header->image, &source->header.image, error));
    struct comparing c = {.reader = reader, .what = tsr_measured_of(&header->image, &header->kept), .error = error};
    c.what.range = tsr_header_range(header);
    c.windows = &source->windows;
    c.exact = header->patches.count > 0 ? &header->patches : NULL;
    tsr_tell_exact(header, &report->exact);
    TSR_TRY(tsr_source_visit(source, compare_frame, &c, error));
    if (c.status == TSR_OK) report_difference(header, source, &c.found, report);
    return c.status;
}

static enum tsr_status compare_samples(const struct tsr_call *call)
{
    struct tsr_source_options options = {.samples_only = true, .may_lose = true};
    struct tsr_reader *const reader = call->reader;
    struct tsr_input *input = NULL;
    struct tsr_source *source = NULL;
    struct tsr_account account;
    TSR_TRY(tsr_reader_choose(reader, call->member, call->error));
    TSR_TRY(tsr_open_source(call->source, &input, call->error));
    tsr_account_open(&account, reader->engine, input, NULL);
    options.frames_apart = tsr_reader_header(reader)->patches.count > 0;
    enum tsr_status status = tsr_source_open(input, &options, &source, call->error);
    if (status == TSR_OK) status = compare_with(reader, source, call->report, call->error);
    tsr_source_close(source);
    return tsr_account_end(&account, input, status, call->error);
}

enum tsr_status tsr_compare_samples(struct tsr_reader *reader, uint32_t member, const struct tsr_data_source *original,
                                    struct tsr_report *report, struct tsr_error *error)
{
    TSR_TRY(tsr_check_pointer(reader, "reader", error));
    TSR_TRY(tsr_check_source(original, error));
    TSR_TRY(tsr_check_sized(report, sizeof *report, "report", error));
    struct tsr_call call = tsr_call_of_reader(reader, compare_samples, member, error);
    call.source = original;
    call.report = report;
    return tsr_run_call(&call);
}
