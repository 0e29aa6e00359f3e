/* One file of a comparison: as a whole, and one of its frames by all lossless codecs. See compare.h. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/cli/inputs/inputs.h"
#include "compare.h"

/* ---- Frames ----------------------------------------------------------------------------------------------- */

size_t frame_samples(const struct tsr_image *image)
{
    return (size_t)image->columns * image->rows * image->components;
}

enum tsr_status read_middle_frame(struct tsr_reader *reader, const struct tsr_image *image, struct frame *frame,
                                  struct tsr_error *error)
{
    *frame = (struct frame){.image = *image, .number = image->frames / 2};
    frame->image.frames = 1;
    const size_t bytes = (size_t)((tsr_frame_bits(image) + 7) / 8);
    frame->raster = malloc(bytes);
    if (image->bits_allocated < 32) frame->samples = malloc(frame_samples(image) * sizeof *frame->samples);
    enum tsr_status status = TSR_OK;
    if (!frame->raster || (image->bits_allocated < 32 && !frame->samples))
        status = refuse(error, TSR_ERROR_LIMIT, "no memory to compare");
    if (status == TSR_OK) status = tsr_read_frame(reader, 0, frame->number, frame->raster, bytes, 0, error);
    if (status == TSR_OK && frame->samples)
        status = tsr_unpack_samples(&frame->image, frame->raster, frame->samples, error);
    return status;
}

void free_frame(struct frame *frame)
{
    free(frame->raster);
    free(frame->samples);
}

/* ---- Cells ------------------------------------------------------------------------------------------------ */

/* What the cells of a column take, beside those of others: a lossless one has more runs. */
static double column_work(const struct columns *columns, size_t column)
{
    enum { LOSSLESS_CELL = 4 };
    if (columns->report[column].is_missing) return 0;
    return columns->report[column].is_lossy ? columns->column[column].codec->setting_count : LOSSLESS_CELL;
}

/* Before a cell of a column is measured: how much of the image is done. */
static void tell_cell(const struct measured *measured, size_t column)
{
    double before = 0, all = 0, within = 0;
    for (size_t k = 0; k < measured->columns->count; k++) {
        all += column_work(measured->columns, k);
        if (k < column) before += column_work(measured->columns, k);
    }
    for (size_t i = 0; i < measured->count; i++) within += measured->cells[i].codec == column;
    tell_share(measured->task, measured->outcome, fmin(before + within, all) / all);
}

struct report_cell *add_cell(struct measured *measured, size_t column, const char *setting)
{
    tell_cell(measured, column);
    if (!grow_list(&measured->cells, measured->count, &measured->capacity, sizeof *measured->cells)) return NULL;
    struct report_cell *const cell = &measured->cells[measured->count++];
    *cell = (struct report_cell){.codec = (uint32_t)column, .outcome = CELL_NOT_RUN};
    snprintf(cell->setting, sizeof cell->setting, "%s", setting);
    return cell;
}

void free_measured(struct measured *measured)
{
    if (!measured) return;
    free(measured->cells);
    measured->cells = NULL;
}

static void take_result(struct report_cell *cell, const struct rival_result *result)
{
    static const enum cell_outcome outcomes[] = {
        [RIVAL_DONE] = CELL_DONE, [RIVAL_CANNOT] = CELL_CANNOT, [RIVAL_FAILED] = CELL_FAILED};
    cell->outcome = outcomes[result->outcome];
    snprintf(cell->reason, sizeof cell->reason, "%s", result->reason);
    cell->bytes = result->bytes;
    cell->encode_s = result->encode_s;
    cell->decode_s = result->decode_s;
    cell->encode_spread = result->encode_spread;
    cell->decode_spread = result->decode_spread;
    cell->runs = result->runs;
    cell->peak_bytes = result->peak_bytes;
    cell->is_same = result->is_same;
}

enum tsr_status code_cell(const struct options *options, const struct columns *columns, struct rival *rival,
                          struct report_cell *cell, uint8_t *decoded, struct tsr_error *error)
{
    const struct column *const column = &columns->column[cell->codec];
    const struct rival_limits limits = cell_limits(options);
    struct rival_result result;
    const char *const setting = column->setting ? column->setting : cell->setting;
    const enum tsr_status status = rival_code(rival, column->codec->key, setting, &limits, &result, decoded, error);
    if (status == TSR_OK) take_result(cell, &result);
    return status;
}

static enum tsr_status measure_lossless(const struct options *options, const struct columns *columns,
                                        struct rival *rival, const struct frame *frame, struct measured *measured,
                                        struct tsr_error *error)
{
    const struct rival_picture picture = {frame->image.columns,     frame->image.rows, frame->image.components,
                                          frame->image.bits_stored, frame->samples,    NULL};
    enum tsr_status status = TSR_OK;
    rival_set_picture(rival, &picture);
    for (size_t k = 0; k < columns->count && status == TSR_OK; k++) {
        if (columns->report[k].is_lossy || columns->report[k].is_missing) continue;
        struct report_cell *const cell = add_cell(measured, k, "");
        status = cell ? code_cell(options, columns, rival, cell, NULL, error)
                      : refuse(error, TSR_ERROR_LIMIT, "no memory to compare");
    }
    return status;
}

/* ---- The whole file --------------------------------------------------------------------------------------- */

static int64_t count_bytes(void *context, const void *bytes, size_t count)
{
    (void)bytes;
    *(uint64_t *)context += count;
    return (int64_t)count;
}

static enum tsr_status compress_whole(struct tsr_engine *engine, const struct options *options, const char *path,
                                      bool samples_only, struct tsr_report *report, struct tsr_error *error)
{
    const struct tsr_data_source source = tsr_from_path(path);
    uint64_t bytes = 0;
    struct tsr_data_sink sink = tsr_to_calls(count_bytes, &bytes);
    struct tsr_compress_options whole = TSR_COMPRESS_OPTIONS;
    whole.effort = options->coding.compress.effort;
    whole.coder = options->coding.compress.coder;
    whole.samples_only = samples_only;
    sink.temporary = temporary_folder();
    return tsr_compress(engine, &source, &sink, &whole, report, error);
}

/* What compress would make of the file, with its proof. That it fails is a result, too. */
static void measure_whole(struct tsr_engine *engine, const struct options *options, const char *path,
                          const struct fields *fields, struct report_image *image)
{
    struct tsr_report report = TSR_REPORT;
    struct tsr_error error;
    image->proof = PROOF_FAILED;
    snprintf(image->reason, sizeof image->reason, "it cannot be compressed");
    if (compress_whole(engine, options, path, false, &report, &error) != TSR_OK) return;
    image->tsr_bytes = report.bytes_out;
    image->file_bytes = report.bytes_in;
    image->is_stored = is_stored(&report);
    image->proof = !report.verified                     ? PROOF_NONE
                   : report.promise == TSR_PROMISE_FILE ? PROOF_SAME_FILE
                                                        : PROOF_SAME_SAMPLES;
    snprintf(image->reason, sizeof image->reason, "%.150s", report.reason);
    if (!fields->is_encapsulated) return;
    image->stream_bytes = report.bytes_in > fields->header_bytes ? report.bytes_in - fields->header_bytes : 0;
    image->encapsulated = is_stored(&report) ? "stored" : "exact";
    struct tsr_report samples = TSR_REPORT;
    if (compress_whole(engine, options, path, true, &samples, &error) != TSR_OK || !samples.has_image) return;
    image->sample_bytes = samples.payload_bytes;
    if (samples.promise != TSR_PROMISE_FILE) image->encapsulated = "samples alone";
}

/* ---- One file --------------------------------------------------------------------------------------------- */

static enum tsr_status measure_frame(const struct options *options, const struct columns *columns,
                                     struct tsr_reader *reader, const struct tsr_info *info, const char *name,
                                     struct measured *measured, struct tsr_error *error)
{
    struct frame frame;
    struct rival *rival = NULL;
    struct report_image *const image = &measured->image;
    enum tsr_status status = read_middle_frame(reader, &info->image, &frame, error);
    image->columns = info->image.columns;
    image->rows = info->image.rows;
    image->frames = info->image.frames;
    image->frame = frame.number;
    image->components = info->image.components;
    image->bits = info->image.bits_stored;
    image->is_signed = info->image.is_signed;
    image->raw_bytes = (tsr_frame_bits(&info->image) + 7) / 8;
    if (status == TSR_OK && !frame.samples)
        snprintf(image->reason, sizeof image->reason, "samples of 32 bits: no other codec takes them");
    if (status == TSR_OK && frame.samples && columns->rivals) {
        status = rivals_take(columns->rivals, name, &rival, error);
        if (status == TSR_OK) status = measure_lossless(options, columns, rival, &frame, measured, error);
        if (status == TSR_OK) status = measure_lossy(options, columns, rival, reader, &frame, measured, error);
        rivals_give(columns->rivals, rival);
        image->is_compared = status == TSR_OK;
    }
    free_frame(&frame);
    return status;
}

static enum tsr_status measure_reader(struct tsr_engine *engine, const struct options *options,
                                      const struct columns *columns, struct tsr_reader *reader, const struct task *task,
                                      struct measured *measured, struct tsr_error *error)
{
    struct tsr_info info = TSR_INFO;
    struct fields fields;
    struct report_image *const image = &measured->image;
    const enum tsr_status status = tsr_read_info(reader, 0, &info, error);
    if (status != TSR_OK) return status;
    read_fields(reader, info.kind, &fields);
    memcpy(image->modality, fields.modality, sizeof image->modality);
    memcpy(image->transfer_syntax, fields.transfer_syntax, sizeof image->transfer_syntax);
    memcpy(measured->series, fields.series, sizeof measured->series);
    image->may_show_names = fields.may_show_names;
    image->file_bytes = task->bytes;
    if (tsr_reader_content(reader) != TSR_CONTENT_ORIGINAL) {
        snprintf(image->reason, sizeof image->reason, "it is a .tsr file");
        return TSR_OK;
    }
    measure_whole(engine, options, task->input, &fields, image);
    if (info.kind == TSR_KIND_PNG) image->own_png_bytes = image->file_bytes;
    if (!info.has_image || info.units > 0) return TSR_OK; /* the reason is known: there are no samples to compare */
    return measure_frame(options, columns, reader, &info, task->input, measured, error);
}

enum tsr_status measure_file(struct tsr_engine *engine, const struct options *options, const struct columns *columns,
                             const struct task *task, struct measured *measured, struct tsr_error *error)
{
    const struct tsr_data_source source = from_tsr(task->input);
    struct tsr_reader *reader = NULL;
    measured->is_checked = hash_name(task->input) % 10 == 0;
    enum tsr_status status = tsr_open(engine, &source, &reader, error);
    if (status == TSR_OK) status = measure_reader(engine, options, columns, reader, task, measured, error);
    tsr_close(reader);
    return status;
}
