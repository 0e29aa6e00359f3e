/* tessera bench cavlc: 4x4 levels of pictures at a range of QP, from QCIF to 4K, in macroblock order. Pictures are
 * drawn, or those of files; bench_levels.c says how they become levels. */
#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench_levels.h"

/* ---- One workload -------------------------------------------------------------------------------------------- */

/* A job's memory on one side. */
struct cavlc_memory {
    enum bench_side side;
    int16_t *coefficients, *back;
    uint8_t *mb_flags;
    uint16_t *mb_slices;
    uint8_t *out;
    uint64_t *bits, *unit_offsets;
    uint32_t *error;
};

struct cavlc_run {
    const struct bench_levels *levels;
    const struct cavlc_memory *at;
    uint32_t units;
    bool has_reference;
    uint64_t bits;
    uint8_t *string;
    uint64_t *unit_offsets;
};

static size_t coefficient_bytes(const struct cavlc_run *run)
{
    return (size_t)run->levels->blocks * 16 * sizeof(int16_t);
}

static size_t string_bytes(const struct cavlc_run *run)
{
    return (size_t)((run->bits + 7) / 8);
}

static struct tsr_cavlc_job job_on(const struct cavlc_run *run, const struct cavlc_memory *m)
{
    return (struct tsr_cavlc_job){.order = TSR_ORDER_MACROBLOCKS,
                                  .coefficients = m ? m->coefficients : NULL,
                                  .blocks = run->levels->blocks,
                                  .mb_columns = run->levels->mb_columns,
                                  .mb_rows = run->levels->mb_rows,
                                  .frames = run->levels->frames,
                                  .mb_flags = m ? m->mb_flags : NULL,
                                  .mb_slices = m ? m->mb_slices : NULL,
                                  .out = m ? m->out : NULL,
                                  .bits = m ? m->bits : NULL,
                                  .unit_offsets = m ? m->unit_offsets : NULL,
                                  .stream = bench_stream()};
}

static struct cavlc_memory take_memory(enum bench_side side, const struct cavlc_run *run)
{
    const struct bench_levels *l = run->levels;
    const struct tsr_cavlc_job shape = job_on(run, NULL);
    const size_t macroblocks = l->blocks / TSR_MB_BLOCKS;
    struct cavlc_memory m = {.side = side};
    m.coefficients = bench_take(side, coefficient_bytes(run) + 16);
    m.back = bench_take(side, coefficient_bytes(run) + 16);
    m.mb_flags = bench_take(side, macroblocks);
    m.mb_slices = bench_take(side, macroblocks * sizeof *m.mb_slices);
    m.out = bench_take(side, tsr_cavlc_bound(&shape) + 16);
    m.bits = bench_take(side, sizeof *m.bits);
    m.unit_offsets = bench_take(side, run->units * sizeof *m.unit_offsets);
    m.error = bench_take(side, sizeof *m.error);
    bench_copy(side, m.coefficients, ON_HOST, l->coefficients, coefficient_bytes(run));
    bench_copy(side, m.mb_flags, ON_HOST, l->mb_flags, macroblocks);
    bench_copy(side, m.mb_slices, ON_HOST, l->mb_slices, macroblocks * sizeof *m.mb_slices);
    return m;
}

static void give_memory(struct cavlc_memory *m)
{
    bench_give(m->side, m->coefficients);
    bench_give(m->side, m->back);
    bench_give(m->side, m->mb_flags);
    bench_give(m->side, m->mb_slices);
    bench_give(m->side, m->out);
    bench_give(m->side, m->bits);
    bench_give(m->side, m->unit_offsets);
    bench_give(m->side, m->error);
}

static void spoil_string(void *context)
{
    const struct cavlc_run *run = context;
    bench_fill(run->at->side, run->at->out, 0xc3, string_bytes(run) + 16);
    bench_fill(run->at->side, run->at->bits, 0xc3, sizeof *run->at->bits);
    bench_fill(run->at->side, run->at->unit_offsets, 0xc3, run->units * sizeof *run->at->unit_offsets);
}

static bool string_is_right(void *context)
{
    const struct cavlc_run *run = context;
    if (!run->has_reference) return true; /* the decoders say */
    return bench_equals(run->at->side, run->at->bits, &run->bits, sizeof run->bits) &&
           bench_equals(run->at->side, run->at->out, run->string, string_bytes(run)) &&
           bench_equals(run->at->side, run->at->unit_offsets, run->unit_offsets, run->units * sizeof run->bits);
}

static void spoil_levels(void *context)
{
    const struct cavlc_run *run = context;
    bench_fill(run->at->side, run->at->back, 0xc3, coefficient_bytes(run));
    bench_fill(run->at->side, run->at->error, 0xff, sizeof *run->at->error);
}

static bool levels_are_right(void *context)
{
    const struct cavlc_run *run = context;
    const uint32_t none = 0;
    return bench_equals(run->at->side, run->at->error, &none, sizeof none) &&
           bench_equals(run->at->side, run->at->back, run->levels->coefficients, coefficient_bytes(run));
}

static void encode_by(struct bench *bench, struct bench_workload *workload, struct cavlc_run *run,
                      const struct tsr_kernel_row *row)
{
    struct tsr_cavlc_job job = job_on(run, run->at);
    const struct bench_task task = {.kind = BENCH_ENCODE,
                                    .row = row,
                                    .job = &job,
                                    .workspace = &job.workspace,
                                    .spoil = spoil_string,
                                    .is_right = string_is_right,
                                    .context = run,
                                    .moved_bytes = workload->in_bytes + workload->out_bytes};
    bench_measure(bench, workload, &task);
}

static void decode_by(struct bench *bench, struct bench_workload *workload, struct cavlc_run *run,
                      const struct tsr_kernel_row *row)
{
    struct tsr_cavlc_decode_job job = {.shape = job_on(run, run->at),
                                       .in = run->at->out,
                                       .bits = run->bits,
                                       .unit_offsets = run->at->unit_offsets,
                                       .coefficients = run->at->back,
                                       .error = run->at->error};
    const struct bench_task task = {.kind = BENCH_DECODE,
                                    .row = row,
                                    .job = &job,
                                    .workspace = &job.shape.workspace,
                                    .spoil = spoil_levels,
                                    .is_right = levels_are_right,
                                    .context = run,
                                    .moved_bytes = workload->in_bytes + workload->out_bytes};
    bench_measure(bench, workload, &task);
}

/* The first row is the CPU's: what it writes is the reference. Nobody counted its bits before. */
static void keep_reference(struct bench_workload *workload, struct cavlc_run *run)
{
    run->bits = *run->at->bits;
    const size_t bytes = string_bytes(run);
    const struct tsr_cavlc_job shape = job_on(run, NULL);
    if (bytes > tsr_cavlc_bound(&shape)) bench_stop(TSR_ERROR_INTERNAL, "the reference has %zu bytes", bytes);
    run->string = bench_take(ON_HOST, bytes + 16);
    run->unit_offsets = bench_take(ON_HOST, run->units * sizeof *run->unit_offsets);
    memcpy(run->string, run->at->out, bytes);
    memcpy(run->unit_offsets, run->at->unit_offsets, run->units * sizeof *run->unit_offsets);
    run->has_reference = true;
    workload->out_bytes = (double)bytes;
    for (int i = 0; i < workload->result_count; i++)
        if (workload->result[i].kind == BENCH_ENCODE)
            workload->result[i].moved_bytes = workload->in_bytes + workload->out_bytes;
}

static void run_side(struct bench *bench, struct bench_workload *workload, struct cavlc_run *run, enum bench_side side)
{
    int encoders, decoders;
    const struct tsr_kernel_row *const *encoder = tsr_cavlc_encoders(&encoders);
    const struct tsr_kernel_row *const *decoder = tsr_cavlc_decoders(&decoders);
    struct cavlc_memory memory = take_memory(side, run);
    run->at = &memory;
    for (int i = 0; i < encoders; i++) {
        if (encoder[i]->on_device != (side == ON_DEVICE)) continue;
        encode_by(bench, workload, run, encoder[i]);
        if (!run->has_reference) keep_reference(workload, run);
    }
    /* Decoders get the reference, whatever the last encoder wrote. */
    bench_copy(side, memory.out, ON_HOST, run->string, string_bytes(run));
    bench_copy(side, memory.unit_offsets, ON_HOST, run->unit_offsets, run->units * sizeof *run->unit_offsets);
    for (int i = 0; i < decoders; i++)
        if (decoder[i]->on_device == (side == ON_DEVICE)) decode_by(bench, workload, run, decoder[i]);
    give_memory(&memory);
}

static void describe(struct bench_workload *workload, const struct cavlc_run *run,
                     const struct bench_level_statistics *s, int qp)
{
    const double bits = (double)run->bits / run->levels->blocks;
    snprintf(workload->notes, sizeof workload->notes,
             "  %u blocks, %.3f bits each; mean total coefficients %.3f, trailing ones %.3f, total zeros %.3f; largest "
             "level "
             "%d\n  empty blocks %.1f %%, Intra16x16 macroblocks %.1f %%; coeff_token tables for nC 0-1, 2-3, 4-7, 8-: "
             "%.1f, %.1f, %.1f, %.1f %%\n",
             run->levels->blocks, bits, s->total, s->ones, s->zeros, s->largest, 100 * s->empty, 100 * s->intra16x16,
             100 * s->tables[0], 100 * s->tables[1], 100 * s->tables[2], 100 * s->tables[3]);
    workload->fields = cJSON_CreateObject();
    cJSON_AddNumberToObject(workload->fields, "qp", qp);
    cJSON_AddNumberToObject(workload->fields, "blocks", run->levels->blocks);
    cJSON_AddNumberToObject(workload->fields, "bits_per_block", bits);
    cJSON_AddNumberToObject(workload->fields, "mean_total_coefficients", s->total);
    cJSON_AddNumberToObject(workload->fields, "mean_trailing_ones", s->ones);
    cJSON_AddNumberToObject(workload->fields, "mean_total_zeros", s->zeros);
    cJSON_AddNumberToObject(workload->fields, "largest_level", s->largest);
    cJSON_AddNumberToObject(workload->fields, "empty_blocks", s->empty);
    cJSON_AddNumberToObject(workload->fields, "intra16x16", s->intra16x16);
    cJSON_AddItemToObject(workload->fields, "coeff_token_tables", cJSON_CreateDoubleArray(s->tables, 4));
}

static struct bench_workload workload; /* large */

/* over_formats: the plot has a group of bars for each format, and not a line over QP. */
static void run_pictures(struct bench *bench, const struct bench_pictures *pictures, int qp, bool over_formats)
{
    struct bench_levels levels = bench_make_levels(bench, pictures, qp);
    const struct bench_level_statistics statistics = bench_count_levels(&levels);
    struct cavlc_run run = {.levels = &levels};
    const struct tsr_cavlc_job shape = job_on(&run, NULL);
    char panel[PLOT_TEXT];
    run.units = tsr_cavlc_units(&shape);
    memset(&workload, 0, sizeof workload);
    snprintf(workload.name, sizeof workload.name, "cavlc: %.80s, %u x %u, %u frame%s, QP %d", pictures->name,
             pictures->columns, pictures->rows, pictures->frames, plural(pictures->frames), qp);
    if (over_formats)
        snprintf(panel, sizeof panel, "at QP %d", qp);
    else
        snprintf(panel, sizeof panel, "over QP, %.60s", pictures->name);
    workload.panel = panel;
    workload.x_label = over_formats ? NULL : "QP";
    workload.group = pictures->name;
    workload.x = qp;
    workload.in_bytes = (double)coefficient_bytes(&run);
    bench_find_limits(bench, &workload);
    workload.look_up_us = 0; /* no ceiling of this family's */
    run_side(bench, &workload, &run, ON_HOST);
    bench_judge_reference(bench, &workload);
    if (bench->device.is_there) run_side(bench, &workload, &run, ON_DEVICE);
    describe(&workload, &run, &statistics, qp);
    bench_report(bench, &workload);
    bench_give(ON_HOST, run.string);
    bench_give(ON_HOST, run.unit_offsets);
    bench_free_levels(&levels);
}

/* ---- Workloads ----------------------------------------------------------------------------------------------- */

static const struct format {
    const char *name;
    uint32_t columns, rows, frames;
} formats[] = {
    {"qcif", 176, 144, 50},    {"cif", 352, 288, 50},  {"720p", 1280, 720, 10},
    {"1080p", 1920, 1080, 10}, {"4k", 3840, 2160, 10},
};
enum { FORMATS = sizeof formats / sizeof formats[0] };

/* QPs as told, or the usual ones; they are kept in eighths. */
static int qps_of(const struct bench *bench, int qps[QP_LIST_LIMIT])
{
    static const int usual[] = {0, 10, 20, 30, 40, 50}, quick[] = {0, 28};
    const struct options *o = bench->options;
    const bool short_run = o->bench.quick;
    const int count = o->qp_count ? o->qp_count : short_run ? 2 : 6;
    for (int i = 0; i < count; i++) {
        if (o->qp_count && (o->qp[i] < 0 || o->qp[i] % TSR_QP_UNIT != 0))
            bench_stop(TSR_ERROR_USAGE, "bench wants whole --qp, 0 to 51");
        qps[i] = o->qp_count ? o->qp[i] / TSR_QP_UNIT : short_run ? quick[i] : usual[i];
    }
    return count;
}

static void run_format(struct bench *bench, const struct format *format, const int *qps, int count, bool over_formats)
{
    const uint32_t frames = bench->options->bench.quick ? 2 : format->frames;
    struct bench_pictures pictures = bench_draw(bench, format->name, format->columns, format->rows, frames);
    for (int i = 0; i < count; i++) run_pictures(bench, &pictures, qps[i], over_formats);
    free(pictures.luma);
}

static const struct format *format_named(const char *name, size_t length)
{
    for (int i = 0; i < FORMATS; i++)
        if (strlen(formats[i].name) == length && !strncmp(formats[i].name, name, length)) return &formats[i];
    bench_stop(TSR_ERROR_USAGE, "--formats wants qcif, cif, 720p, 1080p, 4k, not '%.*s'", (int)length, name);
}

/* Adds the frames of more behind those of all, if both are stills of one size. */
static bool join(struct bench_pictures *all, const struct bench_pictures *more)
{
    const size_t bytes = (size_t)all->columns * all->rows * all->frames;
    const size_t added = (size_t)more->columns * more->rows * more->frames;
    if (all->moves || more->moves || all->columns != more->columns || all->rows != more->rows) return false;
    uint8_t *luma = realloc(all->luma, bytes + added);
    if (!luma) bench_stop(TSR_ERROR_LIMIT, "no memory for pictures");
    memcpy(luma + bytes, more->luma, added);
    all->luma = luma;
    all->frames += more->frames;
    snprintf(all->name, sizeof all->name, "%u stills of %u x %u", all->frames, all->columns, all->rows);
    return true;
}

/* Stills of one size are one workload: one by one they are too small for a GPU. */
static void run_files(struct bench *bench, const int *qps, int count)
{
    const struct options *o = bench->options;
    const int files = o->input_count - 1;
    struct bench_pictures *all = bench_take(ON_HOST, (size_t)files * sizeof *all);
    for (int i = 0; i < files; i++) all[i] = bench_read_pictures(o->inputs[i + 1]);
    for (int i = 0; i < files; i++) {
        for (int k = i + 1; k < files && all[i].luma; k++) {
            if (!all[k].luma || !join(&all[i], &all[k])) continue;
            free(all[k].luma);
            all[k].luma = NULL;
        }
        for (int q = 0; q < count && all[i].luma; q++) run_pictures(bench, &all[i], qps[q], false);
        free(all[i].luma);
        all[i].luma = NULL;
    }
    bench_give(ON_HOST, all);
}

void bench_cavlc(struct bench *bench)
{
    const struct options *o = bench->options;
    int qps[QP_LIST_LIMIT];
    const int count = qps_of(bench, qps);
    if (o->bench.files) {
        run_files(bench, qps, count);
    } else if (o->bench.formats) {
        for (const char *name = o->bench.formats; name;) {
            const size_t length = strcspn(name, ",");
            run_format(bench, format_named(name, length), qps, count, false);
            name = name[length] ? name + length + 1 : NULL;
        }
    } else if (o->bench.quick) {
        run_format(bench, &formats[0], qps, count, false);
    } else {
        static const int usual = 20;
        run_format(bench, format_named("1080p", 5), qps, count, false);
        for (int i = 0; i < FORMATS && !o->qp_count; i++) run_format(bench, &formats[i], &usual, 1, true);
    }
}
