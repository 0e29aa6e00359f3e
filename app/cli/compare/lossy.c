/* Lossy codecs: on a picture of 8 bits, as a viewer shows it. See compare.h. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compare.h"
#include "likeness.h"

/* ---- The picture ------------------------------------------------------------------------------------------ */

/* What unpacked samples of a signed image have more than their values. */
static double bias_of(const struct tsr_image *image)
{
    return image->is_signed ? ldexp(1, image->bits_stored - 1) : 0;
}

static void show_all(const struct frame *frame, struct showing *showing)
{
    const size_t count = frame_samples(&frame->image);
    uint16_t least = UINT16_MAX, most = 0;
    for (size_t i = 0; i < count; i++) {
        least = frame->samples[i] < least ? frame->samples[i] : least;
        most = frame->samples[i] > most ? frame->samples[i] : most;
    }
    showing->low = least - bias_of(&frame->image);
    showing->high = most - bias_of(&frame->image);
    snprintf(showing->text, sizeof showing->text, "all samples, %.0f to %.0f", showing->low, showing->high);
}

/* What is not above the window is black, and its highest value is white. Pictures of 8 bits stay as they are. */
static void show_window(const struct frame *frame, const struct tsr_image_window *window, struct showing *showing)
{
    const double low = window->lowest - 1.0, high = window->highest;
    snprintf(showing->text, sizeof showing->text, "the window %g/%g, samples %.0f to %.0f", window->center,
             window->width, low, high);
    showing->has_window = true;
    showing->peak = window->stored_width;
    if (frame->image.bits_stored <= 8) return;
    showing->low = low;
    showing->high = high;
    showing->peak *= high > low ? 255 / (high - low) : 0;
}

enum tsr_status choose_showing(struct tsr_reader *reader, const struct frame *frame, struct showing *showing,
                               struct tsr_error *error)
{
    struct tsr_image_window window = TSR_IMAGE_WINDOW;
    const size_t count = frame_samples(&frame->image);
    uint8_t *const inside = malloc(count);
    *showing = (struct showing){.low = 0, .high = 255, .peak = 255};
    if (!inside) return refuse(error, TSR_ERROR_LIMIT, "no memory to compare");
    const enum tsr_status status = tsr_read_window(reader, 0, frame->number, 0, &window, inside, count, error);
    if (status == TSR_OK && window.width > 0) {
        show_window(frame, &window, showing);
        showing->inside = inside;
        return TSR_OK;
    }
    free(inside);
    if (status == TSR_OK && frame->image.bits_stored > 8) show_all(frame, showing);
    return status;
}

void free_showing(struct showing *showing)
{
    free(showing->inside);
}

enum tsr_status take_middle(const struct frame *frame, const struct showing *showing, uint32_t side,
                            struct middle *middle, struct tsr_error *error)
{
    const struct tsr_image *const image = &frame->image;
    const size_t step = image->components;
    *middle = (struct middle){.columns = image->columns < side ? image->columns : side,
                              .rows = image->rows < side ? image->rows : side};
    middle->x = (image->columns - middle->columns) / 2;
    middle->y = (image->rows - middle->rows) / 2;
    const size_t count = (size_t)middle->columns * middle->rows;
    middle->samples = malloc(count * step * sizeof *middle->samples);
    middle->inside = showing->inside ? malloc(count) : NULL;
    if (!middle->samples || (showing->inside && !middle->inside))
        return refuse(error, TSR_ERROR_LIMIT, "no memory to compare");
    for (size_t y = 0; y < middle->rows; y++) {
        const size_t from = (middle->y + y) * image->columns + middle->x, to = y * middle->columns;
        memcpy(middle->samples + to * step, frame->samples + from * step,
               middle->columns * step * sizeof *middle->samples);
        if (middle->inside) memcpy(middle->inside + to, showing->inside + from, middle->columns);
    }
    for (size_t i = 0; i < count; i++) middle->counted += middle->inside ? middle->inside[i] : 1;
    return TSR_OK;
}

void free_middle(struct middle *middle)
{
    free(middle->samples);
    free(middle->inside);
}

void show_middle(const struct frame *frame, const struct showing *showing, const struct middle *middle,
                 uint8_t *picture)
{
    const struct tsr_image *const image = &frame->image;
    const size_t count = (size_t)middle->columns * middle->rows * image->components;
    const double bias = image->bits_stored > 8 ? bias_of(image) : 0, low = showing->low,
                 scale = showing->high > low ? 255 / (showing->high - low) : 0;
    for (size_t i = 0; i < count; i++) {
        const double v = (middle->samples[i] - bias - low) * scale;
        picture[i] = (uint8_t)(v <= 0 ? 0 : v >= 255 ? 255 : lround(v));
    }
}

/* ---- Curves ----------------------------------------------------------------------------------------------- */

/* What lossy codecs code. */
struct picture {
    struct rival_picture rival;
    const uint8_t *inside; /* NULL: all samples count */
    double peak;
    bool is_judged; /* enough of them do */
};

static enum tsr_status measure_point(const struct options *options, const struct columns *columns, struct rival *rival,
                                     const struct picture *picture, struct report_cell *cell, uint8_t *decoded,
                                     struct tsr_error *error)
{
    const struct rival_picture *const p = &picture->rival;
    const struct likeness_of of = {p->bytes, decoded, p->columns, p->rows, p->channels, picture->inside, picture->peak};
    struct likeness likeness;
    const enum tsr_status status = code_cell(options, columns, rival, cell, decoded, error);
    if (status != TSR_OK || cell->outcome != CELL_DONE) return status;
    if (!measure_likeness(&of, &likeness)) return refuse(error, TSR_ERROR_LIMIT, "no memory to compare pictures");
    cell->psnr_db = picture->is_judged ? likeness.psnr_db : NAN;
    cell->ssim = picture->is_judged ? likeness.ssim : NAN;
    cell->ms_ssim = picture->is_judged ? likeness.ms_ssim : NAN;
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
                                     size_t column, const struct picture *picture, struct measured *measured,
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
                                      const struct picture *picture, struct measured *measured, struct tsr_error *error)
{
    const struct rival_picture *const p = &picture->rival;
    uint8_t *const decoded = malloc((size_t)p->columns * p->rows * (size_t)p->channels);
    enum tsr_status status = decoded ? TSR_OK : refuse(error, TSR_ERROR_LIMIT, "no memory to compare");
    rival_set_picture(rival, p);
    for (size_t k = 0; k < columns->count && status == TSR_OK; k++)
        if (columns->report[k].is_lossy && !columns->report[k].is_missing)
            status = measure_curve(options, columns, rival, k, picture, measured, decoded, error);
    free(decoded);
    return status;
}

/* What the report says of the picture. */
static void describe_picture(const struct showing *showing, const struct middle *middle, bool is_judged,
                             struct report_image *image)
{
    memcpy(image->window, showing->text, sizeof image->window);
    image->lossy_columns = middle->columns;
    image->lossy_rows = middle->rows;
    image->counted = middle->counted;
    image->is_judged = is_judged;
}

static enum tsr_status measure_middle(const struct options *options, const struct columns *columns, struct rival *rival,
                                      const struct frame *frame, const struct showing *showing,
                                      const struct middle *middle, struct measured *measured, struct tsr_error *error)
{
    const size_t samples = (size_t)middle->columns * middle->rows;
    uint8_t *const bytes = malloc(samples * frame->image.components);
    if (!bytes) return refuse(error, TSR_ERROR_LIMIT, "no memory to compare");
    const struct picture picture = {
        .rival = {middle->columns, middle->rows, frame->image.components, 8, NULL, bytes},
        .inside = middle->inside,
        .peak = showing->peak,
        .is_judged = !showing->has_window || tsr_is_judged(middle->counted, samples),
    };
    show_middle(frame, showing, middle, bytes);
    describe_picture(showing, middle, picture.is_judged, &measured->image);
    const enum tsr_status status = measure_curves(options, columns, rival, &picture, measured, error);
    free(bytes);
    return status;
}

enum tsr_status measure_lossy(const struct options *options, const struct columns *columns, struct rival *rival,
                              struct tsr_reader *reader, const struct frame *frame, struct measured *measured,
                              struct tsr_error *error)
{
    enum { SIDE = 1024 };
    const struct tsr_image *const image = &frame->image;
    struct showing showing;
    struct middle middle = {0};
    if ((image->components != 1 && image->components != 3) || image->exact_only || image->bits_stored < 2)
        return TSR_OK;
    enum tsr_status status = choose_showing(reader, frame, &showing, error);
    if (status == TSR_OK) status = take_middle(frame, &showing, SIDE, &middle, error);
    if (status == TSR_OK) status = measure_middle(options, columns, rival, frame, &showing, &middle, measured, error);
    free_middle(&middle);
    free_showing(&showing);
    return status;
}
