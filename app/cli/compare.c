/* tessera compare: how it stands against PNG and JPEG-LS without loss, and against JPEG at equal PSNR.
 *
 * Sizes are those of whole files made from one frame's samples, without the original's metadata: a .tsr, a PNG, a
 * JPEG-LS, a JPEG. Of files with several frames the middle one stands for all. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "json.h"
#include "ssim.h"
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

/* A frame that is compared, and the reader that it came from. */
struct picture {
    struct tsr_engine *engine;
    const struct options *options;
    struct tsr_reader *reader;
    struct tsr_image image; /* of one frame */
    struct comparison *c;
    struct rival *rival;
};

static size_t raster_bytes(const struct tsr_image *image)
{
    return (size_t)((tsr_frame_bits(image) + 7) / 8);
}

static size_t sample_count(const struct tsr_image *image)
{
    return (size_t)image->columns * image->rows * image->components;
}

/* The .tsr that holds just this frame. */
static enum tsr_status compress_frame(struct tsr_engine *engine, const struct tsr_image *image, const uint8_t *raster,
                                      const struct tsr_compress_options *options, struct tsr_report *report,
                                      struct tsr_error *error)
{
    struct tsr_buffer buffer;
    struct tsr_data_source source = tsr_from_memory(raster, raster_bytes(image));
    const struct tsr_data_sink sink = tsr_to_memory(&buffer);
    source.raster = image;
    source.name = "a frame";
    const enum tsr_status status = tsr_compress(engine, &source, &sink, options, report, error);
    tsr_buffer_free(&buffer);
    return status;
}

/* How frames are coded here: nothing is proven, and what is never coded with loss by accident is, too. */
static struct tsr_compress_options frame_options(const struct options *options)
{
    struct tsr_compress_options o = options->compress;
    o.path = TSR_PATH_PREDICT;
    o.verify = TSR_VERIFY_NONE;
    o.allow_lossy = true;
    return o;
}

/* ---- Windows ---------------------------------------------------------------------------------------------- */

/* A number of the header's data set, the first of several; else what is usual. */
static double header_number(const struct tsr_metadata *metadata, uint32_t tag, double usual)
{
    for (size_t i = 0; metadata && i < metadata->element_count; i++) {
        const struct tsr_element *const element = &metadata->elements[i];
        char text[32] = "", *end;
        if (element->tag != tag || element->depth > 0 || !element->value) continue;
        memcpy(text, element->value, element->count < sizeof text ? element->count : sizeof text - 1);
        const double value = strtod(text, &end);
        return end > text && isfinite(value) ? value : usual;
    }
    return usual;
}

/* The file's first window, in samples. False: it has none. */
static bool read_window(struct tsr_reader *reader, double *low, double *high, struct comparison *c)
{
    enum { CENTER = 0x00281050, WIDTH = 0x00281051, INTERCEPT = 0x00281052, SLOPE = 0x00281053 };
    struct tsr_metadata *metadata = NULL;
    struct tsr_error ignored;
    tsr_read_header(reader, 0, &metadata, &ignored);
    const bool is_dicom = metadata && metadata->kind == TSR_KIND_DICOM;
    const double center = is_dicom ? header_number(metadata, CENTER, 0) : 0,
                 width = is_dicom ? header_number(metadata, WIDTH, 0) : 0,
                 intercept = is_dicom ? header_number(metadata, INTERCEPT, 0) : 0,
                 slope = is_dicom ? header_number(metadata, SLOPE, 1) : 1;
    tsr_metadata_free(metadata);
    if (!(width > 1 && slope > 0)) return false;
    *low = (center - 0.5 - (width - 1) / 2 - intercept) / slope;
    *high = (center - 0.5 + (width - 1) / 2 - intercept) / slope;
    snprintf(c->window, sizeof c->window, "window %.0f, width %.0f", center, width);
    return true;
}

/* Samples of more than 8 bits to 8, as a viewer shows them: by the file's first window, or from the smallest to the
 * largest sample. */
static void window_samples(const struct picture *p, const uint16_t *samples, size_t count, uint8_t *out)
{
    double low, high;
    const double bias = p->image.is_signed ? ldexp(1, p->image.bits_stored - 1) : 0;
    uint16_t least = UINT16_MAX, most = 0;
    for (size_t i = 0; i < count; i++) {
        least = samples[i] < least ? samples[i] : least;
        most = samples[i] > most ? samples[i] : most;
    }
    if (!read_window(p->reader, &low, &high, p->c)) {
        low = least - bias;
        high = most - bias;
        snprintf(p->c->window, sizeof p->c->window, "shown from %.0f to %.0f", low, high);
    }
    const double scale = high > low ? 255 / (high - low) : 0;
    for (size_t i = 0; i < count; i++) {
        const double v = (samples[i] - bias - low) * scale;
        out[i] = (uint8_t)(v <= 0 ? 0 : v >= 255 ? 255 : lround(v));
    }
}

/* ---- One image ---------------------------------------------------------------------------------------------- */

/* A picture of 8 bits, to one QP and back. */
static enum tsr_status code_at(struct tsr_engine *engine, const struct tsr_image *shown, const uint8_t *samples,
                               const struct tsr_coding *coding, uint8_t *decoded, struct tsr_error *error)
{
    uint8_t *payload = malloc(tsr_encode_bound(shown));
    size_t size;
    enum tsr_status status = payload ? TSR_OK : refuse(error, TSR_ERROR_LIMIT, "no memory to compare");
    if (status == TSR_OK) status = tsr_encode_frame(engine, shown, coding, samples, payload, &size, error);
    if (status == TSR_OK) status = tsr_decode_frame(engine, shown, payload, size, decoded, error);
    free(payload);
    return status;
}

static enum tsr_status compare_at(const struct picture *p, const struct tsr_image *shown, const uint8_t *samples,
                                  int32_t qp, struct lossy_point *point, struct tsr_error *error)
{
    struct tsr_compress_options options = frame_options(p->options);
    struct tsr_report report = TSR_REPORT;
    options.loss = TSR_LOSS_QP;
    options.loss_value = qp;
    uint8_t *decoded = malloc(sample_count(shown));
    enum tsr_status status = decoded ? TSR_OK : refuse(error, TSR_ERROR_LIMIT, "no memory to compare");
    if (status == TSR_OK) status = compress_frame(p->engine, shown, samples, &options, &report, error);
    if (status == TSR_OK) status = code_at(p->engine, shown, samples, &report.coding, decoded, error);
    if (status == TSR_OK) {
        point->bytes = report.bytes_out;
        point->max_error = (uint32_t)report.max_error;
        point->psnr_db = report.psnr_db;
        point->ssim = ssim(samples, decoded, (int)shown->columns, (int)shown->rows, shown->components);
        status = rival_jpeg_at_psnr(p->rival, point->psnr_db, &point->jpeg, error);
    }
    free(decoded);
    return status;
}

static enum tsr_status compare_lossy(const struct picture *p, const uint16_t *samples, struct tsr_error *error)
{
    const struct tsr_image *const image = &p->image;
    const size_t count = sample_count(image);
    if ((image->components != 1 && image->components != 3) || image->exact_only || image->bits_stored < 2)
        return TSR_OK;
    uint8_t *bytes = malloc(count);
    if (!bytes) return refuse(error, TSR_ERROR_LIMIT, "no memory to compare");
    if (image->bits_stored > 8)
        window_samples(p, samples, count, bytes);
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
    enum tsr_status status = rival_show(p->rival, &picture, error);
    p->c->points = qp_count(p->options);
    for (int i = 0; i < p->c->points && status == TSR_OK; i++)
        status = compare_at(p, &shown, bytes, qp_at(p->options, i), &p->c->point[i], error);
    free(bytes);
    return status;
}

/* The samples against all rivals. */
static enum tsr_status compare_samples(struct picture *p, const uint16_t *samples, const char *name,
                                       struct tsr_error *error)
{
    const struct tsr_image *const image = &p->image;
    const struct rival_picture picture = {image->columns,     image->rows, image->components,
                                          image->bits_stored, samples,     NULL};
    enum tsr_status status = rivals_take(rivals, name, &p->rival, error);
    if (status == TSR_OK) status = rival_show(p->rival, &picture, error);
    if (status == TSR_OK) status = rival_png_bytes(p->rival, &p->c->png_bytes, error);
    if (status == TSR_OK) status = rival_jpeg_ls_bytes(p->rival, &p->c->jpeg_ls_bytes, error);
    if (status == TSR_OK) status = compare_lossy(p, samples, error);
    rivals_give(rivals, p->rival);
    return status;
}

static enum tsr_status compare_frame(struct picture *p, const char *name, struct tsr_error *error)
{
    struct tsr_image *const image = &p->image;
    struct comparison *const c = p->c;
    const struct tsr_compress_options lossless = frame_options(p->options);
    struct tsr_report report = TSR_REPORT;
    c->columns = image->columns;
    c->rows = image->rows;
    c->frames = image->frames;
    c->frame = image->frames / 2;
    c->components = image->components;
    c->bits = image->bits_stored;
    image->frames = 1;
    c->raw_bytes = raster_bytes(image);
    uint8_t *raster = malloc(raster_bytes(image) + 1);
    uint16_t *samples = malloc(sample_count(image) * sizeof *samples);
    enum tsr_status status = raster && samples ? TSR_OK : refuse(error, TSR_ERROR_LIMIT, "no memory to compare");
    if (status == TSR_OK) status = tsr_read_frame(p->reader, 0, c->frame, raster, raster_bytes(image), error);
    if (status == TSR_OK) status = compress_frame(p->engine, image, raster, &lossless, &report, error);
    c->tessera_bytes = report.bytes_out;
    if (status == TSR_OK && image->bits_allocated < 32) {
        status = tsr_unpack_samples(image, raster, samples, error);
        if (status == TSR_OK) status = compare_samples(p, samples, name, error);
    }
    free(raster);
    free(samples);
    return status;
}

static enum tsr_status compare_reader(struct tsr_engine *engine, const struct options *options,
                                      struct tsr_reader *reader, const char *name, struct comparison *c,
                                      struct tsr_error *error)
{
    struct tsr_info info = TSR_INFO;
    enum tsr_status status = tsr_read_info(reader, 0, &info, error);
    if (status != TSR_OK) return status;
    c->skipped = info.verbatim || tsr_reader_content(reader) != TSR_CONTENT_ORIGINAL;
    snprintf(c->reason, sizeof c->reason, "%s", info.verbatim ? info.reason : "it is a .tsr file");
    struct picture picture = {.engine = engine, .options = options, .reader = reader, .image = info.image, .c = c};
    return c->skipped ? TSR_OK : compare_frame(&picture, name, error);
}

static enum tsr_status compare_task(struct tsr_engine *engine, const struct options *options, const struct task *task,
                                    struct outcome *outcome)
{
    const struct tsr_data_source source = tsr_from_path(task->input);
    struct tsr_reader *reader = NULL;
    struct comparison *c = calloc(1, sizeof *c);
    outcome->more = c;
    if (!c) return refuse(&outcome->error, TSR_ERROR_LIMIT, "no memory to compare");
    enum tsr_status status = tsr_open(engine, &source, &reader, &outcome->error);
    if (status == TSR_OK) status = compare_reader(engine, options, reader, task->input, c, &outcome->error);
    tsr_close(reader);
    outcome->report.bytes_in = c->raw_bytes;
    outcome->report.bytes_out = c->tessera_bytes;
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
    add_name(o, "file", task->input);
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
        add_text(o, "reason", outcome->status == TSR_OK ? c->reason : NULL);
        add_text(o, "error", outcome->status != TSR_OK ? outcome->error.text : NULL);
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

/* Of all images so far. */
static struct comparison total;
static int lossless, lossy[QP_LIST_LIMIT];
static size_t all_files;

/* Adds up images that all rivals could hold, so that totals compare like with like. */
static void add_to_total(const struct comparison *c, int points)
{
    if (c->png_bytes && c->jpeg_ls_bytes) {
        total.raw_bytes += c->raw_bytes;
        total.tessera_bytes += c->tessera_bytes;
        total.png_bytes += c->png_bytes;
        total.jpeg_ls_bytes += c->jpeg_ls_bytes;
        lossless++;
    }
    for (int i = 0; i < c->points && i < points; i++) {
        const struct lossy_point *p = &c->point[i];
        if (!p->jpeg.bytes) continue;
        total.point[i].bytes += p->bytes;
        total.point[i].jpeg.bytes += p->jpeg.bytes;
        total.point[i].jpeg.optimised_bytes += p->jpeg.optimised_bytes;
        lossy[i]++;
    }
}

static void report_comparison(const struct options *options, const struct task *task, const struct outcome *outcome)
{
    static bool headed;
    const struct comparison *c = outcome->more;
    all_files++;
    if (outcome->status == TSR_OK) add_to_total(c, qp_count(options));
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

static void summarise(const struct options *options, const struct task_list *list, const struct run_times *times)
{
    const int points = qp_count(options);
    if (options->json) {
        cJSON *o = cJSON_CreateObject();
        cJSON_AddBoolToObject(o, "summary", true);
        cJSON_AddNumberToObject(o, "files", (double)all_files);
        cJSON_AddNumberToObject(o, "files_in_set", (double)list->in_set);
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
        add_text(o, "verb", verb_name(options->verb));
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
    static const struct task_work work = {false, NULL, compare_task, report_comparison, summarise};
    rivals = rivals_find();
    if (!rivals && options->verbosity >= 0)
        fprintf(stderr, "tessera: compare without PNG, JPEG-LS and JPEG: the program " RIVALS_NAME " was not found\n");
    const int status = run_tasks(options, &work);
    rivals_close(rivals);
    return status;
}
