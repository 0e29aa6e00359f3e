/* tessera-bench cavlc: 4x4 coefficients of pictures at several QPs, from QCIF to 4K, in macroblock order. The pictures
 * are drawn or from files; bench_coefficients.c makes coefficients of them. */
#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench_cavlc.h"

/* ---- One workload -------------------------------------------------------------------------------------------- */

/* Rows of macroblocks that do not depend on earlier rows: a slice of a frame. */
struct row_span {
    uint32_t first, rows; /* first: counted over all frames */
};

static size_t coefficient_bytes(const struct bench_coefficients *coefficients)
{
    return (size_t)coefficients->blocks * 16 * sizeof(int16_t);
}

struct tsr_cavlc_job bench_cavlc_job(const struct cavlc_run *run, const struct bench_memory *m)
{
    const struct bench_coefficients *coefficients = run->coefficients;
    return (struct tsr_cavlc_job){.order = TSR_ORDER_MACROBLOCKS,
                                  .coefficients = m->input[0],
                                  .blocks = coefficients->blocks,
                                  .mb_columns = coefficients->mb_columns,
                                  .mb_rows = coefficients->mb_rows,
                                  .frames = coefficients->frames,
                                  .mb_flags = m->input[1],
                                  .mb_slices = m->input[2],
                                  .stream = bench_stream()};
}

struct tsr_cavlc_job bench_cavlc_encode_job(const struct cavlc_run *run, const struct bench_memory *m)
{
    struct tsr_cavlc_job job = bench_cavlc_job(run, m);
    job.out = m->coded[0];
    job.bits = m->coded[1];
    job.unit_offsets = m->coded[2];
    return job;
}

struct tsr_cavlc_decode_job bench_cavlc_decode_job(const struct cavlc_run *run, const struct bench_memory *m)
{
    return (struct tsr_cavlc_decode_job){.shape = bench_cavlc_job(run, m),
                                         .in = m->right[0],
                                         .bits = run->bits,
                                         .unit_offsets = m->right[2],
                                         .coefficients = m->decoded,
                                         .error = m->error};
}

static struct bench_job encode_job(const struct bench_coder *coder, const struct bench_memory *m)
{
    static struct tsr_cavlc_job job;
    job = bench_cavlc_encode_job(coder->context, m);
    return (struct bench_job){&job, &job.workspace};
}

static struct bench_job decode_job(const struct bench_coder *coder, const struct bench_memory *m)
{
    static struct tsr_cavlc_decode_job job;
    job = bench_cavlc_decode_job(coder->context, m);
    return (struct bench_job){&job, &job.shape.workspace};
}

struct bench_coder bench_cavlc_coder(const struct cavlc_run *run)
{
    static const struct bench_memory none;
    const struct bench_coefficients *l = run->coefficients;
    const struct tsr_cavlc_job shape = bench_cavlc_job(run, &none);
    const size_t macroblocks = l->blocks / TSR_MB_BLOCKS, bytes = coefficient_bytes(l);
    const size_t offset_bytes = tsr_cavlc_units(&shape) * sizeof *run->unit_offsets;
    struct bench_coder coder = {.encode_job = encode_job, .decode_job = decode_job, .context = run};
    coder.encoder = tsr_cavlc_encoders(&coder.encoders);
    coder.decoder = tsr_cavlc_decoders(&coder.decoders);
    coder.in_bytes = (double)bytes;
    coder.out_bytes = (double)((run->bits + 7) / 8);
    coder.input[0] = (struct bench_array){l->values, bytes, bytes + 16, false};
    coder.input[1] = (struct bench_array){l->mb_flags, macroblocks, macroblocks, false};
    coder.input[2] = (struct bench_array){l->mb_slices, macroblocks * sizeof *l->mb_slices,
                                          macroblocks * sizeof *l->mb_slices, false};
    coder.coded[0] =
        (struct bench_array){run->string, (size_t)((run->bits + 7) / 8), tsr_cavlc_bound(&shape) + 16, false};
    coder.coded[1] = (struct bench_array){&run->bits, sizeof run->bits, sizeof run->bits, false};
    coder.coded[2] = (struct bench_array){run->unit_offsets, offset_bytes, offset_bytes, false};
    return coder;
}

/* ---- Reference ----------------------------------------------------------------------------------------------- */

/* The job of a slice, as a frame of its own. */
static struct tsr_cavlc_job job_of_span(const struct cavlc_run *run, const struct row_span *span)
{
    const struct bench_coefficients *l = run->coefficients;
    const size_t macroblock = (size_t)span->first * l->mb_columns;
    return (struct tsr_cavlc_job){.order = TSR_ORDER_MACROBLOCKS,
                                  .coefficients = l->values + macroblock * TSR_MB_BLOCKS * 16,
                                  .blocks = span->rows * l->mb_columns * TSR_MB_BLOCKS,
                                  .mb_columns = l->mb_columns,
                                  .mb_rows = span->rows,
                                  .frames = 1,
                                  .mb_flags = l->mb_flags + macroblock,
                                  .mb_slices = l->mb_slices + macroblock};
}

static void encode_span(const void *context, unsigned index, struct bench_part *part)
{
    const struct cavlc_run *run = context;
    struct tsr_cavlc_job job = job_of_span(run, &run->span[index]);
    int rows;
    part->bits = 0;
    part->string = bench_take(ON_HOST, tsr_cavlc_bound(&job) + 16);
    job.out = part->string;
    job.bits = &part->bits;
    job.unit_offsets = run->unit_offsets + run->span[index].first;
    if (bench_run_alone(tsr_cavlc_encoders(&rows)[0], (struct bench_job){&job, &job.workspace}) != 0) part->bits = 0;
    if ((part->bits + 7) / 8 > tsr_cavlc_bound(&job)) bench_stop(TSR_ERROR_INTERNAL, "a reference is too long");
}

static bool span_decodes(const void *context, unsigned index, const struct bench_part *part)
{
    const struct cavlc_run *run = context;
    uint32_t error = 1;
    int rows;
    struct tsr_cavlc_decode_job job = {.shape = job_of_span(run, &run->span[index]),
                                       .in = part->string,
                                       .bits = part->bits,
                                       .unit_offsets = run->unit_offsets + run->span[index].first,
                                       .error = &error};
    const size_t bytes = (size_t)job.shape.blocks * 16 * sizeof *job.coefficients;
    job.coefficients = bench_take(ON_HOST, bytes + 16);
    memset(job.coefficients, 0x55, bytes); /* the memory may hold the right result already */
    const struct tsr_kernel_row *row = tsr_cavlc_decoders(&rows)[0];
    const bool runs = bench_run_alone(row, (struct bench_job){&job, &job.shape.workspace}) == 0;
    const bool same = runs && error == 0 && memcmp(job.coefficients, job.shape.coefficients, bytes) == 0;
    bench_give(ON_HOST, job.coefficients);
    return same;
}

/* Finds the slices of all frames, and returns their number. */
static unsigned find_spans(struct cavlc_run *run)
{
    const struct bench_coefficients *l = run->coefficients;
    unsigned count = 0;
    for (uint32_t row = 0; row < l->mb_rows * l->frames; row++) {
        const uint16_t *slice = l->mb_slices + (size_t)row * l->mb_columns;
        if (row % l->mb_rows == 0 || *slice != *(slice - l->mb_columns)) run->span[count++] = (struct row_span){row, 0};
        run->span[count - 1].rows++;
    }
    return count;
}

bool bench_make_cavlc(struct bench *bench, struct cavlc_run *run)
{
    const uint32_t units = run->coefficients->mb_rows * run->coefficients->frames;
    struct bench_parts parts = {.context = run, .encode = encode_span, .decodes = span_decodes};
    bool proven;
    run->unit_offsets = bench_take(ON_HOST, units * sizeof *run->unit_offsets);
    run->span = bench_take(ON_HOST, units * sizeof *run->span);
    memset(run->unit_offsets, 0, units * sizeof *run->unit_offsets);
    parts.count = find_spans(run);
    parts.part = bench_take(ON_HOST, parts.count * sizeof *parts.part);
    run->string = bench_join_parts(bench, &parts, &run->bits, &proven);
    for (unsigned i = 0; i < parts.count; i++)
        for (uint32_t row = 0; row < run->span[i].rows; row++)
            run->unit_offsets[run->span[i].first + row] += parts.part[i].at;
    bench_give(ON_HOST, parts.part);
    bench_give(ON_HOST, run->span);
    return proven;
}

void bench_free_cavlc(struct cavlc_run *run)
{
    bench_give(ON_HOST, run->string);
    bench_give(ON_HOST, run->unit_offsets);
}

struct cavlc_run bench_begin_cavlc(const struct cavlc_run *run, struct bench_coefficients *coefficients)
{
    const struct bench_coefficients *all = run->coefficients;
    const size_t frame_bytes = coefficient_bytes(all) / all->frames;
    struct cavlc_run part = *run;
    *coefficients = *all;
    part.coefficients = coefficients;
    if (coefficient_bytes(all) > BENCH_CPU_BYTES && all->frames > 1) {
        coefficients->frames = frame_bytes < BENCH_CPU_BYTES ? (uint32_t)(BENCH_CPU_BYTES / frame_bytes) : 1;
        coefficients->blocks = all->blocks / all->frames * coefficients->frames;
        part.bits = run->unit_offsets[all->mb_rows * coefficients->frames];
    }
    part.string = bench_take(ON_HOST, (size_t)(part.bits + 7) / 8 + 16);
    bench_take_bits(part.string, run->string, 0, part.bits);
    return part;
}

static void describe(struct bench_workload *workload, const struct cavlc_run *run,
                     const struct bench_coefficient_statistics *s, int qp)
{
    const double bits = (double)run->bits / run->coefficients->blocks;
    snprintf(workload->notes, sizeof workload->notes,
             "  %u blocks, %.3f bits each; mean total coefficients %.3f, trailing ones %.3f, total zeros %.3f; largest "
             "coefficient "
             "%d\n  empty blocks %.1f %%, Intra16x16 macroblocks %.1f %%; coeff_token tables for nC 0-1, 2-3, 4-7, 8-: "
             "%.1f, %.1f, %.1f, %.1f %%\n",
             run->coefficients->blocks, bits, s->total, s->ones, s->zeros, s->largest, 100 * s->empty,
             100 * s->intra16x16, 100 * s->tables[0], 100 * s->tables[1], 100 * s->tables[2], 100 * s->tables[3]);
    workload->fields = cJSON_CreateObject();
    cJSON_AddNumberToObject(workload->fields, "qp", qp);
    cJSON_AddNumberToObject(workload->fields, "blocks", run->coefficients->blocks);
    cJSON_AddNumberToObject(workload->fields, "bits_per_block", bits);
    cJSON_AddNumberToObject(workload->fields, "mean_total_coefficients", s->total);
    cJSON_AddNumberToObject(workload->fields, "mean_trailing_ones", s->ones);
    cJSON_AddNumberToObject(workload->fields, "mean_total_zeros", s->zeros);
    cJSON_AddNumberToObject(workload->fields, "largest_coefficient", s->largest);
    cJSON_AddNumberToObject(workload->fields, "empty_blocks", s->empty);
    cJSON_AddNumberToObject(workload->fields, "intra16x16", s->intra16x16);
    cJSON_AddItemToObject(workload->fields, "coeff_token_tables", cJSON_CreateDoubleArray(s->tables, 4));
}

static struct bench_workload workload; /* too large for the stack */

static void run_pictures(struct bench *bench, const struct bench_pictures *pictures, int qp, bool over_formats)
{
    struct bench_coefficients coefficients = bench_make_coefficients(bench, pictures, qp);
    struct cavlc_run run = {.coefficients = &coefficients};
    char panel[PLOT_TEXT];
    bench_name_workload(&workload, "cavlc", pictures, qp, over_formats, panel);
    struct bench_coder coder = bench_cavlc_coder(&run);
    workload.in_bytes = coder.in_bytes;
    if (bench_has_room(bench, &workload, &coder)) {
        bench_find_limits(bench, &workload, false);
        const bool proven = bench_make_cavlc(bench, &run);
        coder = bench_cavlc_coder(&run);
        workload.out_bytes = coder.out_bytes;
        struct bench_coefficients first_coefficients;
        const struct cavlc_run part = bench_begin_cavlc(&run, &first_coefficients);
        const struct bench_coder beginning = bench_cavlc_coder(&part);
        bench_run_coders(bench, &workload, &beginning, &coder, proven);
        const struct bench_coefficient_statistics statistics = bench_count_coefficients(bench, &coefficients);
        describe(&workload, &run, &statistics, qp);
        bench_report(bench, &workload);
        bench_give(ON_HOST, part.string);
        bench_free_cavlc(&run);
    }
    bench_free_coefficients(&coefficients);
}

/* ---- Workloads ----------------------------------------------------------------------------------------------- */

void bench_name_workload(struct bench_workload *named, const char *family, const struct bench_pictures *pictures,
                         int qp, bool over_formats, char *panel)
{
    memset(named, 0, sizeof *named);
    snprintf(named->name, sizeof named->name, "%s: %.80s, %u x %u, %u frame%s, QP %d", family, pictures->name,
             pictures->columns, pictures->rows, pictures->frames, plural(pictures->frames), qp);
    if (over_formats)
        snprintf(panel, PLOT_TEXT, "at QP %d", qp);
    else
        snprintf(panel, PLOT_TEXT, "over QP, %.60s", pictures->name);
    named->panel = panel;
    named->x_label = over_formats ? NULL : "QP";
    named->group = pictures->name;
    named->x = qp;
}

static const struct format {
    const char *name;
    uint32_t columns, rows, frames;
} formats[] = {
    {"qcif", 176, 144, 50},    {"cif", 352, 288, 50},  {"720p", 1280, 720, 10},
    {"1080p", 1920, 1080, 10}, {"4k", 3840, 2160, 10},
};
enum { FORMATS = sizeof formats / sizeof formats[0] };

/* The QPs of the options, which are in eighths, or the default ones. */
static int qps_of(const struct bench *bench, int qps[QP_LIST_LIMIT])
{
    static const int usual[] = {0, 10, 20, 30, 40, 50}, quick[] = {0, 28};
    const struct bench_options *o = bench->options;
    const bool short_run = o->quick;
    const int count = o->qp_count ? o->qp_count : short_run ? 2 : 6;
    for (int i = 0; i < count; i++) {
        if (o->qp_count && (o->qp[i] < 0 || o->qp[i] % TSR_QP_UNIT != 0))
            bench_stop(TSR_ERROR_USAGE, "%s wants whole --qp, 0 to 51", bench->family);
        qps[i] = o->qp_count ? o->qp[i] / TSR_QP_UNIT : short_run ? quick[i] : usual[i];
    }
    return count;
}

static void run_format(struct bench *bench, const struct format *format, const int *qps, int count, bool over_formats,
                       bench_on_pictures *run)
{
    const uint32_t frames = bench->options->quick ? 2 : format->frames;
    struct bench_pictures pictures = bench_draw(bench, format->name, format->columns, format->rows, frames);
    for (int i = 0; i < count; i++) run(bench, &pictures, qps[i], over_formats);
    bench_free_pictures(&pictures);
}

static const struct format *format_named(const char *name, size_t length)
{
    for (int i = 0; i < FORMATS; i++)
        if (strlen(formats[i].name) == length && !strncmp(formats[i].name, name, length)) return &formats[i];
    bench_stop(TSR_ERROR_USAGE, "--formats wants qcif, cif, 720p, 1080p, 4k, not '%.*s'", (int)length, name);
}

static void run_files(struct bench *bench, const int *qps, int count, bench_on_pictures *run)
{
    int files;
    struct bench_pictures *pictures = bench_read_files(bench->options, &files);
    for (int i = 0; i < files; i++) {
        for (int q = 0; q < count; q++) run(bench, &pictures[i], qps[q], false);
        bench_free_pictures(&pictures[i]);
    }
    free(pictures);
}

void bench_each_pictures(struct bench *bench, bench_on_pictures *run)
{
    const struct bench_options *o = bench->options;
    int qps[QP_LIST_LIMIT];
    const int count = qps_of(bench, qps);
    if (o->takes_files) {
        run_files(bench, qps, count, run);
    } else if (o->formats) {
        for (const char *name = o->formats; name;) {
            const size_t length = strcspn(name, ",");
            run_format(bench, format_named(name, length), qps, count, false, run);
            name = name[length] ? name + length + 1 : NULL;
        }
    } else if (o->quick) {
        run_format(bench, &formats[0], qps, count, false, run);
    } else {
        static const int usual = 20;
        run_format(bench, format_named("1080p", 5), qps, count, false, run);
        for (int i = 0; i < FORMATS && !o->qp_count; i++) run_format(bench, &formats[i], &usual, 1, true, run);
    }
}

void bench_cavlc(struct bench *bench)
{
    bench_each_pictures(bench, run_pictures);
}
