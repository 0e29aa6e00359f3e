/* Which windows of a DICOM file are measured, the stored values inside them, and what a frame weighs. PS3.3,
 * C.7.6.16.2.9 and .10, C.11.1 and C.11.2. A file's bytes depend on both (--psnr, --quality): all arithmetic is in
 * integers.
 *
 * A header comes from strangers: what it names is bounded by its elements, and each step takes n log n of them at most.
 */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "header_values.h"
#include "io/formats/format.h"

/* Windows to choose from: that a frame names, and how many do. */
struct use {
    const struct tsr_named_window *window;
    uint32_t order; /* in the file */
    uint64_t frames;
};

struct choice {
    const struct tsr_header_values *values;
    uint32_t frames, items; /* of the image; of these, the first ones that have an item */
    bool has_rescale, are_of_all;
    struct tsr_named_window window[TSR_MEASURED_WINDOWS];
    uint32_t count, left_out;
    struct tsr_decimal slope;                              /* the largest one; 0: there is none */
    struct tsr_decimal window_slope[TSR_MEASURED_WINDOWS]; /* the same of the frames that have the window */
    bool has_lut; /* the windows are of what a Modality LUT makes of stored values: */
    struct tsr_value_range mapped[TSR_MEASURED_WINDOWS];
};

static const struct tsr_value_range nothing = {1, 0};

static bool same_window(const struct tsr_named_window *a, const struct tsr_named_window *b)
{
    return a->is_linear == b->is_linear && tsr_same_decimal(a->center, b->center) &&
           tsr_same_decimal(a->width, b->width);
}

/* ---- Which windows ---------------------------------------------------------------------------------------- */

static int by_window(const void *a, const void *b)
{
    const struct use *const one = a, *const other = b;
    const struct tsr_named_window *const w = one->window, *const v = other->window;
    const int64_t keys[5][2] = {{w->is_linear, v->is_linear},
                                {w->center.digits, v->center.digits},
                                {w->center.exponent, v->center.exponent},
                                {w->width.digits, v->width.digits},
                                {w->width.exponent, v->width.exponent}};
    for (int k = 0; k < 5; k++)
        if (keys[k][0] != keys[k][1]) return keys[k][0] < keys[k][1] ? -1 : 1;
    return (one->order > other->order) - (one->order < other->order);
}

static uint32_t add_uses(const struct tsr_header_values *values, const struct tsr_named_values *of, uint64_t frames,
                         struct use *uses, uint32_t count)
{
    for (uint32_t w = 0; w < of->windows && frames > 0; w++)
        uses[count++] = (struct use){&values->window[of->first + w], of->first + w, frames};
    return count;
}

/* All uses, each window once. Returns their number. */
static uint32_t list_uses(const struct choice *c, struct use *uses)
{
    const struct tsr_header_values *const v = c->values;
    uint64_t others = c->frames;
    uint32_t count = 0, windows = 0;
    for (uint32_t f = 0; f < c->items; f++) {
        if (!v->frame[f].has_windows) continue;
        count = add_uses(v, &v->frame[f], 1, uses, count);
        others--;
    }
    count = add_uses(v, v->shared.has_windows ? &v->shared : &v->dataset, others, uses, count);
    if (count > 0) qsort(uses, count, sizeof *uses, by_window);
    for (uint32_t i = 0; i < count; i++) {
        const bool is_new = windows == 0 || !same_window(uses[windows - 1].window, uses[i].window);
        if (is_new)
            uses[windows++] = uses[i];
        else
            uses[windows - 1].frames += uses[i].frames;
    }
    return windows;
}

static bool is_before(const struct use *a, const struct use *b)
{
    return a->frames > b->frames || (a->frames == b->frames && a->order < b->order);
}

/* Those that most frames name; of these, the first ones. They stay in the order of the file. */
static void take_most_used(struct choice *c, struct use *uses, uint32_t count)
{
    struct use taken[TSR_MEASURED_WINDOWS];
    c->count = count < TSR_MEASURED_WINDOWS ? count : TSR_MEASURED_WINDOWS;
    c->left_out = count - c->count;
    for (uint32_t w = 0; w < c->count; w++) {
        uint32_t best = w;
        for (uint32_t i = w + 1; i < count; i++)
            if (is_before(&uses[i], &uses[best])) best = i;
        const struct use use = uses[best];
        uses[best] = uses[w];
        uses[w] = use;
        uint32_t at = w;
        for (; at > 0 && taken[at - 1].order > use.order; at--) taken[at] = taken[at - 1];
        taken[at] = use;
    }
    for (uint32_t w = 0; w < c->count; w++) c->window[w] = *taken[w].window;
}

/* The windows of a CT that names none: soft tissue and lung. */
static void take_defaults(struct choice *c)
{
    static const struct tsr_named_window of_ct[2] = {{{4, 1}, {4, 2}, true}, {{-6, 2}, {15, 2}, true}};
    c->count = 2;
    memcpy(c->window, of_ct, sizeof of_ct);
    c->are_of_all = true;
}

static enum tsr_status choose(struct choice *c, bool is_ct, struct tsr_error *error)
{
    struct use *const uses = calloc(c->values->window_count + (size_t)1, sizeof *uses);
    if (!uses) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for the windows of a header");
    take_most_used(c, uses, list_uses(c, uses));
    free(uses);
    if (c->count == 0 && is_ct && c->has_rescale) take_defaults(c);
    return TSR_OK;
}

/* ---- Slopes ----------------------------------------------------------------------------------------------- */

static struct tsr_decimal magnitude(struct tsr_decimal a)
{
    return a.digits < 0 ? tsr_negative(a) : a;
}

static void note_slope(struct choice *c, const struct tsr_named_values *rescale)
{
    if (rescale->is_bad_rescale) return;
    c->has_rescale = c->has_rescale || rescale->has_rescale;
    if (tsr_is_larger(magnitude(rescale->slope), c->slope)) c->slope = magnitude(rescale->slope);
}

static void find_slope(struct choice *c)
{
    for (uint32_t f = 0; f < c->items; f++) note_slope(c, tsr_dicom_rescale_of(c->values, f));
    if (c->frames > c->items) note_slope(c, tsr_dicom_rescale_of(c->values, UINT32_MAX));
}

static bool is_named(const struct choice *c, const struct tsr_named_values *by, uint32_t w)
{
    bool is = c->are_of_all;
    for (uint32_t k = 0; k < by->windows && !is; k++)
        is = same_window(&c->values->window[by->first + k], &c->window[w]);
    return is;
}

static void note_window_slopes(struct choice *c, uint32_t f)
{
    const struct tsr_named_values *const rescale = tsr_dicom_rescale_of(c->values, f);
    const struct tsr_named_values *const by = tsr_dicom_windows_of(c->values, f);
    for (uint32_t w = 0; w < c->count && !rescale->is_bad_rescale; w++)
        if (is_named(c, by, w) && tsr_is_larger(magnitude(rescale->slope), c->window_slope[w]))
            c->window_slope[w] = magnitude(rescale->slope);
}

static void find_window_slopes(struct choice *c)
{
    for (uint32_t f = 0; f < c->items; f++) note_window_slopes(c, f);
    if (c->frames > c->items) note_window_slopes(c, UINT32_MAX);
    for (uint32_t w = 0; w < c->count; w++) /* frames of no known slope alone name it */
        if (c->window_slope[w].digits == 0) c->window_slope[w] = c->slope;
}

/* ---- Stored values ---------------------------------------------------------------------------------------- */

/* The values x with low < x <= high are inside. */
struct span {
    struct tsr_decimal low, high;
};

/* LINEAR: from center - 0.5 - (width - 1)/2 to center - 0.5 + (width - 1)/2; else center - width/2 to center + width/2.
 * PS3.3, C.11.2.1.2.1, C.11.2.1.3.1 and .2. */
static struct span span_of(const struct tsr_named_window *window)
{
    const struct tsr_decimal half = tsr_half(window->width), minus_one = {-1, 0};
    const struct span span = {tsr_add_decimals(window->center, tsr_negative(half)),
                              tsr_add_decimals(window->center, half)};
    return (struct span){span.low, window->is_linear ? tsr_add_decimals(span.high, minus_one) : span.high};
}

static struct tsr_value_range stored_of(const struct tsr_named_window *window, const struct tsr_named_values *rescale)
{
    const struct span span = span_of(window);
    const struct tsr_decimal back = tsr_negative(rescale->intercept), low = tsr_add_decimals(span.low, back),
                             high = tsr_add_decimals(span.high, back), slope = rescale->slope;
    if (slope.digits > 0)
        return (struct tsr_value_range){tsr_floor_quotient(low, slope) + 1, tsr_floor_quotient(high, slope)};
    const struct tsr_decimal rise = tsr_negative(slope); /* ceil(a / b) = -floor(a / -b) */
    return (struct tsr_value_range){-tsr_floor_quotient(high, rise), -tsr_floor_quotient(low, rise) - 1};
}

static uint32_t weight_of(const struct tsr_named_values *rescale, struct tsr_decimal largest)
{
    const uint32_t weight = tsr_share(TSR_WHOLE_WEIGHT, magnitude(rescale->slope), largest);
    return weight > 0 ? weight : 1;
}

/* How wide a window is in stored values of a slope. */
static uint32_t values_of(const struct tsr_named_window *window, struct tsr_decimal slope)
{
    static const struct tsr_decimal minus_one = {-1, 0};
    const struct tsr_decimal span = window->is_linear ? tsr_add_decimals(window->width, minus_one) : window->width;
    const int32_t values = tsr_floor_quotient(span, slope);
    return values > 0 ? (uint32_t)values : 1;
}

/* A frame's windows that are not among those of the file take the places of those that the frame does not name. */
static void add_own(const struct choice *c, const struct tsr_named_values *rescale, const struct tsr_named_values *by,
                    struct tsr_frame_values *values)
{
    uint32_t place = 0;
    for (uint32_t k = 0; k < by->windows; k++) {
        const struct tsr_named_window *const window = &c->values->window[by->first + k];
        bool is_measured = false;
        for (uint32_t w = 0; w < c->count; w++) is_measured = is_measured || same_window(window, &c->window[w]);
        if (is_measured) continue;
        while (place < c->count && (values->own_values[place] > 0 || is_named(c, by, place))) place++;
        if (place == c->count) return;
        values->window[place] = stored_of(window, rescale);
        values->own_values[place] = values_of(window, magnitude(rescale->slope));
    }
}

/* A frame whose rescale is not known counts as much as can be, and has no windows. */
static struct tsr_frame_values values_of_frame(const struct choice *c, uint32_t f)
{
    const struct tsr_named_values *const rescale = tsr_dicom_rescale_of(c->values, f);
    const struct tsr_named_values *const by = tsr_dicom_windows_of(c->values, f);
    const bool is_known = c->has_lut || !rescale->is_bad_rescale;
    struct tsr_frame_values values = {.weight = TSR_WHOLE_WEIGHT};
    if (is_known && !c->has_lut) values.weight = weight_of(rescale, c->slope);
    for (uint32_t w = 0; w < TSR_MEASURED_WINDOWS; w++) {
        const bool is_seen = is_known && w < c->count && is_named(c, by, w);
        values.window[w] = !is_seen ? nothing : c->has_lut ? c->mapped[w] : stored_of(&c->window[w], rescale);
        values.window_weight[w] = is_seen && !c->has_lut ? weight_of(rescale, c->window_slope[w]) : TSR_WHOLE_WEIGHT;
    }
    if (is_known && !c->has_lut && c->left_out > 0) add_own(c, rescale, by, &values);
    return values;
}

static bool are_alike(const struct tsr_frame_values *a, const struct tsr_frame_values *b)
{
    bool are = a->weight == b->weight;
    for (int w = 0; w < TSR_MEASURED_WINDOWS; w++)
        are = are && a->window[w].low == b->window[w].low && a->window[w].high == b->window[w].high &&
              a->window_weight[w] == b->window_weight[w] && a->own_values[w] == b->own_values[w];
    return are;
}

/* The table of frames, unless all are alike. */
static enum tsr_status tell_frames(const struct choice *c, struct tsr_windows *windows, struct tsr_error *error)
{
    const struct tsr_frame_values other = values_of_frame(c, c->frames > c->items ? UINT32_MAX : 0);
    struct tsr_frame_values *const frame = malloc((c->items + (size_t)1) * sizeof *frame);
    bool are_all_alike = true;
    uint32_t least = other.weight;
    if (!frame) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for the windows of %u frames", c->items);
    for (uint32_t w = 0; w < c->count; w++) windows->window[w].stored = other.window[w];
    for (uint32_t f = 0; f < c->items; f++) {
        frame[f] = values_of_frame(c, f);
        are_all_alike = are_all_alike && are_alike(&frame[f], &other);
        if (frame[f].weight < least) least = frame[f].weight;
    }
    if (are_all_alike) {
        free(frame);
        return TSR_OK;
    }
    windows->frames = c->items;
    windows->frame = frame;
    windows->other_frame = other;
    windows->least_weight = least < TSR_WHOLE_WEIGHT ? least : 0;
    return TSR_OK;
}

/* Whether a file can tell a window: FORMAT.md 3.9, item 9. */
static bool can_be_told(const struct tsr_value_window *window)
{
    const double most = (double)TSR_WINDOW_LIMIT / TSR_WINDOW_UNIT, least = 1.0 / TSR_WINDOW_UNIT;
    return (float)window->slope > 0 && (float)window->slope <= FLT_MAX && window->width >= least &&
           window->width <= most && fabs(window->center) <= most;
}

/* Windows that a file cannot tell are left out. */
static void tell_by_slope(struct choice *c, struct tsr_windows *windows)
{
    uint32_t count = 0;
    find_window_slopes(c);
    windows->slope = tsr_decimal_double(c->slope);
    for (uint32_t w = 0; w < c->count; w++) {
        const struct tsr_named_window *const window = &c->window[w];
        const struct tsr_value_window told = {.center = tsr_decimal_double(window->center),
                                              .width = tsr_decimal_double(window->width),
                                              .slope = tsr_decimal_double(c->window_slope[w]),
                                              .values = values_of(window, c->window_slope[w])};
        if (!can_be_told(&told)) continue;
        c->window[count] = *window;
        c->window_slope[count] = c->window_slope[w];
        windows->window[count++] = told;
    }
    c->left_out += c->count - count;
    c->count = windows->count = count;
}

/* ---- Modality LUTs ---------------------------------------------------------------------------------------- */

/* Whether what the table makes rises throughout, or falls. Where it does neither, the stored values inside a window
 * have gaps. */
static bool is_monotone(const struct tsr_named_lut *lut)
{
    bool rises = true, falls = true;
    for (uint32_t k = 1; k < lut->entries; k++) {
        rises = rises && tsr_lut_entry(lut, k) >= tsr_lut_entry(lut, k - 1);
        falls = falls && tsr_lut_entry(lut, k) <= tsr_lut_entry(lut, k - 1);
    }
    return rises || falls;
}

static struct tsr_value_range map_back(const struct tsr_named_window *window, const struct tsr_named_lut *lut,
                                       const struct tsr_dicom *dicom)
{
    static const struct tsr_decimal one = {1, 0};
    const struct span span = span_of(window);
    const int64_t low = (int64_t)tsr_floor_quotient(span.low, one) + 1, high = tsr_floor_quotient(span.high, one);
    const long bits = dicom->bits_stored >= 1 && dicom->bits_stored <= 16 ? dicom->bits_stored : 16;
    const int32_t values = 1 << bits, least = dicom->representation == 1 ? -values / 2 : 0;
    struct tsr_value_range stored = nothing;
    for (int32_t x = least; x < least + values; x++) {
        const int64_t at = (int64_t)x - lut->first, last = (int64_t)lut->entries - 1;
        const int64_t y = tsr_lut_entry(lut, (uint32_t)(at < 0 ? 0 : at > last ? last : at));
        if (y < low || y > high) continue;
        if (stored.low > stored.high) stored.low = x;
        stored.high = x;
    }
    return stored;
}

/* Windows become those of stored values, in which errors are told. */
static void tell_by_lut(struct choice *c, const struct tsr_dicom *dicom, struct tsr_windows *windows)
{
    const struct tsr_named_lut *const lut = &c->values->modality_lut;
    const bool is_read = lut->entries > 0, is_good = is_read && is_monotone(lut);
    uint32_t count = 0;
    c->has_lut = true;
    windows->slope = 1;
    for (uint32_t w = 0; w < c->count && is_good; w++) {
        const struct tsr_value_range stored = map_back(&c->window[w], lut, dicom);
        if (stored.low > stored.high) continue;
        c->window[count] = c->window[w];
        c->mapped[count] = stored;
        const uint32_t values = (uint32_t)(stored.high - stored.low) + 1;
        windows->window[count++] = (struct tsr_value_window){
            .center = ((double)stored.low + stored.high) / 2, .width = values + 1.0, .slope = 1, .values = values};
    }
    windows->note = is_good   ? "errors and windows are in stored values: it has a Modality LUT"
                    : is_read ? "errors are in stored values, and its windows are left out: its Modality LUT neither "
                                "rises nor falls throughout"
                              : "errors are in stored values, and its windows are left out: its Modality LUT cannot be "
                                "read";
    c->left_out += c->count - count;
    c->count = windows->count = count;
}

/* ---- All of it -------------------------------------------------------------------------------------------- */

static struct choice begin_choice(const struct tsr_header_values *values, long frames)
{
    struct choice c = {.values = values, .frames = frames > 0 ? (uint32_t)frames : 1};
    c.items = values->frames < c.frames ? values->frames : c.frames;
    find_slope(&c);
    return c;
}

enum tsr_status tsr_dicom_tell_windows(const uint8_t *bytes, const struct tsr_dicom_scan *scan,
                                       const struct tsr_dicom *dicom, struct tsr_windows *windows,
                                       struct tsr_error *error)
{
    struct tsr_header_values values;
    *windows = (struct tsr_windows){0};
    if (dicom->samples > 1) return TSR_OK;
    enum tsr_status status = tsr_dicom_read_values(bytes, scan, &values, error);
    if (status == TSR_OK) {
        struct choice c = begin_choice(&values, dicom->frames);
        status = choose(&c, strcmp(dicom->modality, "CT") == 0, error);
        if (values.has_modality_lut) {
            tell_by_lut(&c, dicom, windows);
        } else if (c.slope.digits > 0) {
            tell_by_slope(&c, windows);
        } else {
            windows->note = "its windows are left out: its rescale slope is 0 or no number";
            c.left_out += c.count;
            c.count = 0;
        }
        windows->left_out = c.left_out;
        if (status == TSR_OK) status = tell_frames(&c, windows, error);
    }
    tsr_dicom_free_values(&values);
    return status;
}

bool tsr_dicom_tell_series(struct tsr_input *input, struct tsr_dicom_series *series)
{
    struct tsr_dicom_scan scan;
    struct tsr_error ignored;
    uint8_t head[TSR_HEAD_BYTES];
    const size_t size = tsr_input_size(input) < sizeof head ? (size_t)tsr_input_size(input) : sizeof head;
    const struct tsr_dicom_element *const uid = &scan.fact[TSR_FACT_SERIES], *const frames =
                                                                                 &scan.fact[TSR_FACT_FRAMES];
    const uint8_t *bytes;
    struct tsr_header_values values;
    *series = (struct tsr_dicom_series){.slope = {1, 0}};
    if (tsr_input_read(input, 0, head, size, &ignored) != TSR_OK) return false;
    const struct tsr_format *const format = tsr_format_of(head, size);
    if (!format || format->kind != TSR_KIND_DICOM) return false;
    if (tsr_dicom_scan_file(input, &scan, &ignored) != TSR_OK) return false;
    if (tsr_input_hold(input, scan.pixels.value, &bytes, &ignored) != TSR_OK) return false;
    if (uid->tag != 0 && uid->length < TSR_DICOM_UID_BYTES) memcpy(series->uid, bytes + uid->value, uid->length);
    series->uid[strspn(series->uid, "0123456789.")] = '\0';
    struct tsr_decimal count = {0, 0};
    if (frames->tag != 0 && frames->length != TSR_UNDEFINED_LENGTH)
        tsr_read_decimal((const char *)bytes + frames->value, frames->length, &count);
    if (tsr_dicom_read_values(bytes, &scan, &values, &ignored) == TSR_OK && !values.has_modality_lut) {
        const struct tsr_decimal one = {1, 0};
        const struct choice c = begin_choice(&values, tsr_floor_quotient(count, one));
        if (c.slope.digits > 0) series->slope = c.slope;
    }
    tsr_dicom_free_values(&values);
    return series->uid[0] != '\0';
}
