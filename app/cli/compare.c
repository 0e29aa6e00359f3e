/* tessera compare: how it stands against PNG and JPEG-LS without loss, and against JPEG at equal PSNR.
 *
 * Sizes are those of whole files made from one frame's samples, without the original's metadata: a .tsr, a PNG, a
 * JPEG-LS, a JPEG. Of files with several frames the middle one stands for all. */
#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/formats/dicom/dicom_file.h"
#include "io/formats/format.h"
#include "app/library/flow.h"
#include "app/library/measure.h"
#include "cli.h"
#include "app/rivals/client.h"

/* Tessera and JPEG at one QP. */
struct lossy_point {
    uint64_t bytes;
    double psnr_db, ssim;
    uint32_t max_error;
    struct jpeg_size jpeg;
};

/* What is known of one image. */
struct comparison {
    bool skipped;
    char reason[256];
    uint32_t columns, rows, frame, frames;
    int components, bits;
    uint64_t raw_bytes, tessera_bytes, png_bytes, jpeg_ls_bytes;
    char window[64]; /* how more than 8 bits were shown; empty: they were not more */
    int points;      /* lossy ones; 0: no picture that JPEG can hold */
    struct lossy_point point[QP_LIST_LIMIT];
};

/* Where PNG, JPEG-LS and JPEG come from; NULL: compare does without them. */
static struct rivals *rivals;

static const int32_t default_qp[] = {10 * TSR_QP_UNIT, 20 * TSR_QP_UNIT, 30 * TSR_QP_UNIT};

static int qp_count(const struct options *options)
{
    return options->qp_count ? options->qp_count : (int)(sizeof default_qp / sizeof default_qp[0]);
}

static int32_t qp_at(const struct options *options, int i)
{
    return options->qp_count ? options->qp[i] : default_qp[i];
}

/* Bytes of the .tsr that holds just this frame. */
static enum tsr_status tsr_bytes(struct tsr_engine *engine, const struct tsr_image *image, const uint8_t *raster,
                                 const struct tsr_coding *coding, uint64_t *bytes, struct tsr_error *error)
{
    struct tsr_header header;
    struct tsr_proof proof = {0};
    struct tsr_source *source = NULL;
    struct tsr_encoded encoded = {0};
    struct tsr_input *input = tsr_input_from_memory(raster, tsr_raster_bytes(image), "a frame");
    struct tsr_output *output = tsr_output_to_null();
    memset(&header, 0, sizeof header);
    header.kind = TSR_KIND_PNM;
    header.restore = TSR_RESTORE_SPLICE;
    header.image = *image;
    enum tsr_status status = input && output ? TSR_OK : tsr_fail(error, TSR_ERROR_LIMIT, "no memory to compare");
    if (status == TSR_OK) status = tsr_splice_open(input, false, &header, 0, &source, error);
    if (status == TSR_OK) {
        source->input = input;
        source->header.coding = *coding;
        status = tsr_encode(engine, source, output, &proof, &encoded, error);
        *bytes = tsr_output_size(output);
    }
    tsr_source_close(source);
    tsr_output_close(output);
    tsr_input_close(input);
    return status;
}

/* ---- Windows ---------------------------------------------------------------------------------------------- */

/* Samples of more than 8 bits to 8, as a viewer shows them: by the file's first window, or from the smallest to the
 * largest sample. */
static void window_samples(struct tsr_input *input, const struct tsr_image *image, const uint16_t *samples,
                           size_t count, uint8_t *out, struct comparison *c)
{
    double slope = 1, low, high;
    const double bias = image->is_signed ? ldexp(1, image->bits_stored - 1) : 0;
    uint16_t least = UINT16_MAX, most = 0;
    for (size_t i = 0; i < count; i++) {
        least = samples[i] < least ? samples[i] : least;
        most = samples[i] > most ? samples[i] : most;
    }
    low = least - bias;
    high = most - bias;
    snprintf(c->window, sizeof c->window, "shown from %.0f to %.0f", low, high);
#if TSR_WITH_DCMTK
    struct tsr_dicom dicom = {0};
    if (tsr_dicom_describe_input(input, &dicom, NULL) == TSR_OK && dicom.window_width > 1 && dicom.slope > 0) {
        slope = dicom.slope;
        low = (dicom.window_center - 0.5 - (dicom.window_width - 1) / 2 - dicom.intercept) / slope;
        high = (dicom.window_center - 0.5 + (dicom.window_width - 1) / 2 - dicom.intercept) / slope;
        snprintf(c->window, sizeof c->window, "window %.0f, width %.0f", dicom.window_center, dicom.window_width);
    }
#else
    (void)input;
    (void)slope;
#endif
    const double scale = high > low ? 255 / (high - low) : 0;
    for (size_t i = 0; i < count; i++) {
        const double v = (samples[i] - bias - low) * scale;
        out[i] = (uint8_t)(v <= 0 ? 0 : v >= 255 ? 255 : lround(v));
    }
}

/* ---- One image ---------------------------------------------------------------------------------------------- */

static enum tsr_status compare_at(struct tsr_engine *engine, const struct options *options,
                                  const struct tsr_image *image, const uint8_t *samples, struct rival *rival,
                                  int32_t qp, struct lossy_point *point, struct tsr_error *error)
{
    struct tsr_coding coding = options->compress.coding;
    coding.path = TSR_PATH_TRANSFORM;
    coding.lossy = true;
    coding.qp_eighths = qp < tsr_lowest_qp(8) ? tsr_lowest_qp(8) : qp;
    TSR_TRY(tsr_resolve_coding(&coding, error));
    const size_t count = (size_t)image->columns * image->rows * image->components;
    uint8_t *payload = malloc(tsr_encode_bound(image)), *decoded = malloc(count);
    size_t size;
    enum tsr_status status = payload && decoded ? TSR_OK : tsr_fail(error, TSR_ERROR_LIMIT, "no memory to compare");
    if (status == TSR_OK) status = tsr_encode_frame(engine, image, &coding, samples, payload, &size, error);
    if (status == TSR_OK) status = tsr_decode_frame(engine, image, payload, size, decoded, error);
    if (status == TSR_OK) status = tsr_bytes(engine, image, samples, &coding, &point->bytes, error);
    if (status == TSR_OK) {
        struct tsr_difference difference = {0, 0};
        const int columns = (int)image->columns, rows = (int)image->rows, channels = image->components;
        tsr_add_difference(image, samples, decoded, &difference);
        point->max_error = difference.max_error;
        point->psnr_db = tsr_psnr_db(image, count, difference.squared_error);
        point->ssim = tsr_ssim(samples, decoded, columns, rows, channels);
        status = rival_jpeg_at_psnr(rival, point->psnr_db, &point->jpeg, error);
    }
    free(payload);
    free(decoded);
    return status;
}

static enum tsr_status compare_lossy(struct tsr_engine *engine, const struct options *options, struct tsr_input *input,
                                     const struct tsr_image *image, const uint16_t *samples, struct rival *rival,
                                     struct comparison *c, struct tsr_error *error)
{
    const size_t count = (size_t)image->columns * image->rows * image->components;
    if ((image->components != 1 && image->components != 3) || image->exact_only || image->bits_stored < 2)
        return TSR_OK;
    uint8_t *bytes = malloc(count);
    if (!bytes) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory to compare");
    if (image->bits_stored > 8)
        window_samples(input, image, samples, count, bytes, c);
    else
        for (size_t i = 0; i < count; i++) bytes[i] = (uint8_t)samples[i];
    struct tsr_image shown = {0};
    shown.columns = image->columns;
    shown.rows = image->rows;
    shown.frames = 1;
    shown.components = image->components;
    shown.bits_allocated = shown.bits_stored = 8;
    shown.high_bit = 7;
    const struct rival_picture picture = {image->columns, image->rows, image->components, 8, NULL, bytes};
    enum tsr_status status = rival_show(rival, &picture, error);
    c->points = qp_count(options);
    for (int i = 0; i < c->points && status == TSR_OK; i++)
        status = compare_at(engine, options, &shown, bytes, rival, qp_at(options, i), &c->point[i], error);
    free(bytes);
    return status;
}

/* The samples against all rivals. */
static enum tsr_status compare_samples(struct tsr_engine *engine, const struct options *options,
                                       struct tsr_input *input, const struct tsr_image *image, const uint16_t *samples,
                                       const char *name, struct comparison *c, struct tsr_error *error)
{
    const struct rival_picture picture = {image->columns,     image->rows, image->components,
                                          image->bits_stored, samples,     NULL};
    struct rival *rival;
    enum tsr_status status = rivals_take(rivals, name, &rival, error);
    if (status == TSR_OK) status = rival_show(rival, &picture, error);
    if (status == TSR_OK) status = rival_png_bytes(rival, &c->png_bytes, error);
    if (status == TSR_OK) status = rival_jpeg_ls_bytes(rival, &c->jpeg_ls_bytes, error);
    if (status == TSR_OK) status = compare_lossy(engine, options, input, image, samples, rival, c, error);
    rivals_give(rivals, rival);
    return status;
}

static enum tsr_status compare_frame(struct tsr_engine *engine, const struct options *options, struct tsr_input *input,
                                     struct tsr_source *source, const char *name, struct comparison *c,
                                     struct tsr_error *error)
{
    struct tsr_image image = source->header.image;
    c->columns = image.columns;
    c->rows = image.rows;
    c->frames = image.frames;
    c->frame = image.frames / 2;
    c->components = image.components;
    c->bits = image.bits_stored;
    image.frames = 1;
    const size_t count = (size_t)image.columns * image.rows * image.components;
    uint8_t *raster = malloc(tsr_raster_bytes(&image) + 1);
    uint16_t *samples = malloc(count * sizeof *samples);
    enum tsr_status status = raster && samples ? TSR_OK : tsr_fail(error, TSR_ERROR_LIMIT, "no memory to compare");
    if (status == TSR_OK) status = source->ops->read_frame(source, c->frame, raster, error);
    c->raw_bytes = tsr_raster_bytes(&image);
    struct tsr_coding lossless = options->compress.coding;
    if (status == TSR_OK) status = tsr_resolve_coding(&lossless, error);
    if (status == TSR_OK) status = tsr_bytes(engine, &image, raster, &lossless, &c->tessera_bytes, error);
    if (status == TSR_OK && image.bits_allocated < 32) {
        tsr_unpack_samples(&image, raster, samples);
        status = compare_samples(engine, options, input, &image, samples, name, c, error);
    }
    free(raster);
    free(samples);
    return status;
}

static enum tsr_status compare_task(struct tsr_engine *engine, const struct options *options, const struct task *task,
                                    struct outcome *outcome)
{
    const struct tsr_source_options source_options = {.recode = true};
    struct tsr_input *input = NULL;
    struct tsr_source *source = NULL;
    struct comparison *c = calloc(1, sizeof *c);
    struct tsr_error *error = &outcome->error;
    outcome->more = c;
    enum tsr_status status = c ? TSR_OK : tsr_fail(error, TSR_ERROR_LIMIT, "no memory to compare");
    if (status == TSR_OK) status = tsr_input_open(task->input, &input, error);
    if (status == TSR_OK) status = tsr_source_open(input, &source_options, &source, error);
    if (status == TSR_OK && source->header.restore == TSR_RESTORE_VERBATIM) {
        c->skipped = true;
        snprintf(c->reason, sizeof c->reason, "%s", source->header.reason);
    } else if (status == TSR_OK) {
        status = compare_frame(engine, options, input, source, task->input, c, error);
        outcome->report.bytes_in = c->raw_bytes;
        outcome->report.bytes_out = c->tessera_bytes;
    }
    tsr_source_close(source);
    tsr_input_close(input);
    return status;
}

/* ---- Reports ------------------------------------------------------------------------------------------------ */

static void add_bytes(cJSON *object, const char *name, uint64_t bytes)
{
    if (bytes)
        cJSON_AddNumberToObject(object, name, (double)bytes);
    else
        cJSON_AddNullToObject(object, name);
}

static void add_real(cJSON *object, const char *name, double value)
{
    if (isfinite(value))
        cJSON_AddNumberToObject(object, name, value);
    else
        cJSON_AddNullToObject(object, name);
}

static void add_points(cJSON *object, const struct options *options, const struct comparison *c)
{
    cJSON *array = cJSON_AddArrayToObject(object, "lossy");
    for (int i = 0; i < c->points; i++) {
        const struct lossy_point *p = &c->point[i];
        cJSON *o = cJSON_CreateObject();
        cJSON_AddNumberToObject(o, "qp", qp_at(options, i) / 8.0);
        add_bytes(o, "tessera_bytes", p->bytes);
        add_real(o, "psnr_db", p->psnr_db);
        add_real(o, "ssim", p->ssim);
        cJSON_AddNumberToObject(o, "max_error", p->max_error);
        add_bytes(o, "jpeg_bytes", p->jpeg.bytes);
        add_bytes(o, "jpeg_optimised_bytes", p->jpeg.optimised_bytes);
        cJSON_AddItemToArray(array, o);
    }
}

static void print_json(const struct options *options, const struct task *task, const struct outcome *outcome)
{
    const struct comparison *c = outcome->more;
    const bool compared = outcome->status == TSR_OK && !c->skipped;
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "file", task->input);
    cJSON_AddStringToObject(o, "status", outcome->status != TSR_OK ? "failed" : compared ? "ok" : "skipped");
    if (compared) {
        cJSON_AddNumberToObject(o, "columns", c->columns);
        cJSON_AddNumberToObject(o, "rows", c->rows);
        cJSON_AddNumberToObject(o, "frame", c->frame);
        cJSON_AddNumberToObject(o, "frames", c->frames);
        cJSON_AddNumberToObject(o, "components", c->components);
        cJSON_AddNumberToObject(o, "bits_stored", c->bits);
        add_bytes(o, "raw_bytes", c->raw_bytes);
        add_bytes(o, "tessera_bytes", c->tessera_bytes);
        add_bytes(o, "png_bytes", c->png_bytes);
        add_bytes(o, "jpeg_ls_bytes", c->jpeg_ls_bytes);
        if (c->window[0]) cJSON_AddStringToObject(o, "window", c->window);
        add_points(o, options, c);
    } else {
        cJSON_AddStringToObject(o, "error", outcome->status != TSR_OK ? outcome->error.text : c->reason);
    }
    print_json_line(o);
}

static void print_bytes(uint64_t bytes)
{
    if (bytes)
        printf(" %11llu", (unsigned long long)bytes);
    else
        printf(" %11s", "-");
}

/* Share of ours in theirs, as a difference in percent. */
static void print_share(uint64_t ours, uint64_t theirs)
{
    if (theirs)
        printf(" %+6.1f%%", 100.0 * ((double)ours / (double)theirs - 1));
    else
        printf(" %7s", "-");
}

static void print_lossless(const struct comparison *c)
{
    printf("  lossless     ");
    print_bytes(c->raw_bytes);
    print_bytes(c->tessera_bytes);
    print_bytes(c->png_bytes);
    print_share(c->tessera_bytes, c->png_bytes);
    print_bytes(c->jpeg_ls_bytes);
    print_share(c->tessera_bytes, c->jpeg_ls_bytes);
    printf("\n");
}

static void print_point(int32_t qp, const struct lossy_point *p)
{
    printf("  QP %-7.5g ", qp / 8.0);
    print_bytes(p->bytes);
    printf(" %8.2f dB       %.4f    %3u |", p->psnr_db, p->ssim, p->max_error);
    print_bytes(p->jpeg.bytes);
    print_share(p->bytes, p->jpeg.bytes);
    print_bytes(p->jpeg.optimised_bytes);
    print_share(p->bytes, p->jpeg.optimised_bytes);
    printf("\n");
}

static const char heading[] =
    "Bytes of whole files made from one frame's samples. Percentages: Tessera's size against the rival's.\n"
    "                   samples     Tessera         PNG             JPEG-LS\n"
    "                   Tessera        PSNR         SSIM  error | JPEG, same PSNR     its tables optimised\n";

static void report_comparison(const struct options *options, const struct task *task, const struct outcome *outcome)
{
    static bool headed;
    const struct comparison *c = outcome->more;
    if (options->json) {
        if (c) print_json(options, task, outcome);
    } else if (outcome->status == TSR_OK) {
        if (!headed) fputs(heading, stdout);
        headed = true;
        printf("%s", shown(task->input));
        if (c->skipped) {
            printf(": skipped, %s\n", c->reason);
        } else {
            printf(": %u x %u, %d bits%s", c->columns, c->rows, c->bits, c->components >= 3 ? ", colour" : "");
            if (c->frames > 1) printf(", frame %u of %u", c->frame + 1, c->frames);
            if (c->window[0]) printf("; with loss in 8 bits, %s", c->window);
            printf("\n");
            print_lossless(c);
            for (int i = 0; i < c->points; i++) print_point(qp_at(options, i), &c->point[i]);
        }
    }
    if (outcome->status != TSR_OK) say_error(&outcome->error);
    fflush(stdout);
}

/* Adds up images that all rivals could hold, so that totals compare like with like. */
static void add_to_total(struct comparison *total, const struct comparison *c, int *lossless, int *lossy, int points)
{
    if (c->png_bytes && c->jpeg_ls_bytes) {
        total->raw_bytes += c->raw_bytes;
        total->tessera_bytes += c->tessera_bytes;
        total->png_bytes += c->png_bytes;
        total->jpeg_ls_bytes += c->jpeg_ls_bytes;
        ++*lossless;
    }
    for (int i = 0; i < c->points && i < points; i++) {
        const struct lossy_point *p = &c->point[i];
        if (!p->jpeg.bytes) continue;
        total->point[i].bytes += p->bytes;
        total->point[i].jpeg.bytes += p->jpeg.bytes;
        total->point[i].jpeg.optimised_bytes += p->jpeg.optimised_bytes;
        lossy[i]++;
    }
}

static void summarise(const struct options *options, const struct task_list *list, const struct outcome *outcomes,
                      const struct run_times *times)
{
    struct comparison total;
    int lossless = 0, lossy[QP_LIST_LIMIT] = {0};
    const int points = qp_count(options);
    memset(&total, 0, sizeof total);
    for (size_t i = 0; i < list->count; i++)
        if (outcomes[i].status == TSR_OK) add_to_total(&total, outcomes[i].more, &lossless, lossy, points);
    if (options->json) {
        cJSON *o = cJSON_CreateObject();
        cJSON_AddBoolToObject(o, "summary", true);
        cJSON_AddNumberToObject(o, "files", (double)list->count);
        cJSON_AddNumberToObject(o, "images", lossless);
        add_bytes(o, "raw_bytes", total.raw_bytes);
        add_bytes(o, "tessera_bytes", total.tessera_bytes);
        add_bytes(o, "png_bytes", total.png_bytes);
        add_bytes(o, "jpeg_ls_bytes", total.jpeg_ls_bytes);
        cJSON *array = cJSON_AddArrayToObject(o, "lossy");
        for (int i = 0; i < points; i++) {
            cJSON *point = cJSON_CreateObject();
            cJSON_AddNumberToObject(point, "qp", qp_at(options, i) / 8.0);
            cJSON_AddNumberToObject(point, "images", lossy[i]);
            add_bytes(point, "tessera_bytes", total.point[i].bytes);
            add_bytes(point, "jpeg_bytes", total.point[i].jpeg.bytes);
            add_bytes(point, "jpeg_optimised_bytes", total.point[i].jpeg.optimised_bytes);
            cJSON_AddItemToArray(array, point);
        }
        cJSON_AddNumberToObject(o, "wall_s", times->wall_s);
        print_json_line(o);
        return;
    }
    if (lossless == 0) return;
    printf("total of %d image%s that all three can hold\n", lossless, plural((size_t)lossless));
    print_lossless(&total);
    for (int i = 0; i < points; i++) {
        const struct lossy_point *p = &total.point[i];
        if (lossy[i] == 0) continue;
        printf("  QP %-7.5g ", qp_at(options, i) / 8.0);
        print_bytes(p->bytes);
        printf("  of %5d images that JPEG reaches |", lossy[i]);
        print_bytes(p->jpeg.bytes);
        print_share(p->bytes, p->jpeg.bytes);
        print_bytes(p->jpeg.optimised_bytes);
        print_share(p->bytes, p->jpeg.optimised_bytes);
        printf("\n");
    }
}

int compare_verb(const struct options *options)
{
    static const struct task_work work = {compare_task, report_comparison, summarise};
    rivals = rivals_find();
    if (!rivals && options->verbosity >= 0)
        fprintf(stderr, "tessera: compare without PNG, JPEG-LS and JPEG: the program " RIVALS_NAME " was not found\n");
    const int status = run_tasks(options, &work);
    rivals_close(rivals);
    return status;
}
