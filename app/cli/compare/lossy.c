/* Lossy codecs: on a picture of 8 bits, as a viewer shows it. See compare.h. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compare.h"
#include "likeness.h"

/* ---- The picture ------------------------------------------------------------------------------------------ */

double sample_bias(const struct tsr_image *image)
{
    return image->is_signed ? ldexp(1, image->bits_stored - 1) : 0;
}

void choose_window(const struct frame *frame, const struct fields *fields, double *low, double *high, char text[64])
{
    const double bias = sample_bias(&frame->image);
    const size_t count = frame_samples(&frame->image);
    uint16_t least = UINT16_MAX, most = 0;
    text[0] = '\0';
    *low = 0;
    *high = 255;
    if (frame->image.bits_stored <= 8) return;
    *low = fields->low;
    *high = fields->high;
    if (fields->has_window) {
        snprintf(text, 64, "the file's window, samples %.0f to %.0f", *low, *high);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        least = frame->samples[i] < least ? frame->samples[i] : least;
        most = frame->samples[i] > most ? frame->samples[i] : most;
    }
    *low = least - bias;
    *high = most - bias;
    snprintf(text, 64, "all samples, %.0f to %.0f", *low, *high);
}

void apply_window(const uint16_t *samples, size_t count, double bias, double low, double high, uint8_t *out)
{
    const double scale = high > low ? 255 / (high - low) : 0;
    for (size_t i = 0; i < count; i++) {
        const double v = (samples[i] - bias - low) * scale;
        out[i] = (uint8_t)(v <= 0 ? 0 : v >= 255 ? 255 : lround(v));
    }
}

/* The middle part of a large image. Copies its samples. NULL: no memory. */
static uint16_t *crop(const struct frame *frame, uint32_t *columns, uint32_t *rows)
{
    enum { SIDE = 1024 };
    const struct tsr_image *const image = &frame->image;
    const size_t step = image->components;
    *columns = image->columns > SIDE ? SIDE : image->columns;
    *rows = image->rows > SIDE ? SIDE : image->rows;
    const size_t x = (image->columns - *columns) / 2, y = (image->rows - *rows) / 2;
    uint16_t *const samples = malloc((size_t)*columns * *rows * step * sizeof *samples);
    for (size_t row = 0; samples && row < *rows; row++)
        memcpy(samples + row * *columns * step, frame->samples + ((y + row) * image->columns + x) * step,
               *columns * step * sizeof *samples);
    return samples;
}

/* ---- Curves ----------------------------------------------------------------------------------------------- */

static enum tsr_status measure_point(const struct options *options, const struct columns *columns, struct rival *rival,
                                     const struct rival_picture *picture, struct report_cell *cell, uint8_t *decoded,
                                     struct tsr_error *error)
{
    struct likeness likeness;
    const enum tsr_status status = code_cell(options, columns, rival, cell, decoded, error);
    if (status != TSR_OK || cell->outcome != CELL_DONE) return status;
    if (!measure_likeness(picture->bytes, decoded, picture->columns, picture->rows, picture->channels, &likeness))
        return refuse(error, TSR_ERROR_LIMIT, "no memory to compare pictures");
    cell->psnr_db = likeness.psnr_db;
    cell->ssim = likeness.ssim;
    cell->ms_ssim = likeness.ms_ssim;
    cell->max_error = likeness.max_error;
    return TSR_OK;
}

/* The setting halfway between two of a codec's. */
static void halfway(const char *one, const char *other, char setting[16])
{
    const size_t prefix = strcspn(one, "0123456789.-");
    const double middle = (atof(one + prefix) + atof(other + prefix)) / 2;
    snprintf(setting, 16, "%.*s%.4g", (int)prefix, one, middle);
}

/* All settings of one codec; of a tenth of the images also one between two of them, which checks what is interpolated.
 */
static enum tsr_status measure_curve(const struct options *options, const struct columns *columns, struct rival *rival,
                                     size_t column, const struct rival_picture *picture, struct measured *measured,
                                     uint8_t *decoded, struct tsr_error *error)
{
    const struct rival_codec *const codec = columns->column[column].codec;
    const int middle = codec->setting_count / 2;
    enum tsr_status status = TSR_OK;
    for (int s = 0; s < codec->setting_count + measured->is_checked && status == TSR_OK; s++) {
        const bool is_check = s == codec->setting_count;
        char setting[16];
        if (is_check)
            halfway(codec->settings[middle - 1], codec->settings[middle], setting);
        else
            snprintf(setting, sizeof setting, "%s", codec->settings[s]);
        struct report_cell *const cell = add_cell(measured, column, setting);
        if (!cell) return refuse(error, TSR_ERROR_LIMIT, "no memory to compare");
        cell->is_check = is_check;
        status = measure_point(options, columns, rival, picture, cell, decoded, error);
        if (cell->outcome == CELL_CANNOT) return status; /* so it is at all settings */
    }
    return status;
}

static enum tsr_status measure_curves(const struct options *options, const struct columns *columns, struct rival *rival,
                                      const struct rival_picture *picture, struct measured *measured,
                                      struct tsr_error *error)
{
    uint8_t *const decoded = malloc((size_t)picture->columns * picture->rows * (size_t)picture->channels);
    enum tsr_status status = decoded ? TSR_OK : refuse(error, TSR_ERROR_LIMIT, "no memory to compare");
    rival_set_picture(rival, picture);
    for (size_t k = 0; k < columns->count && status == TSR_OK; k++)
        if (columns->report[k].is_lossy && !columns->report[k].is_missing)
            status = measure_curve(options, columns, rival, k, picture, measured, decoded, error);
    free(decoded);
    return status;
}

enum tsr_status measure_lossy(const struct options *options, const struct columns *columns, struct rival *rival,
                              const struct frame *frame, const struct fields *fields, struct measured *measured,
                              struct tsr_error *error)
{
    const struct tsr_image *const image = &frame->image;
    struct rival_picture picture = {.channels = image->components, .bits = 8};
    double low, high;
    if ((image->components != 1 && image->components != 3) || image->exact_only || image->bits_stored < 2)
        return TSR_OK;
    uint16_t *const samples = crop(frame, &picture.columns, &picture.rows);
    const size_t count = (size_t)picture.columns * picture.rows * image->components;
    uint8_t *const bytes = malloc(count);
    enum tsr_status status = samples && bytes ? TSR_OK : refuse(error, TSR_ERROR_LIMIT, "no memory to compare");
    if (status == TSR_OK) {
        choose_window(frame, fields, &low, &high, measured->image.window);
        if (image->bits_stored > 8)
            apply_window(samples, count, sample_bias(image), low, high, bytes);
        else
            for (size_t i = 0; i < count; i++) bytes[i] = (uint8_t)samples[i];
        picture.bytes = bytes;
        measured->image.lossy_columns = picture.columns;
        measured->image.lossy_rows = picture.rows;
        status = measure_curves(options, columns, rival, &picture, measured, error);
    }
    free(samples);
    free(bytes);
    return status;
}
