/* Plots: how they are drawn. See plot.h.
 *
 * Colours are attributes, so that a file shows them alone; their classes (s0 and on: stroke, f0 and on: fill) let a
 * page's style change them for a dark background. Text, axes and grid have the current colour. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "plot.h"
#include "text.h"

/* Where a panel's axes stand, in pixels, and the size of its text. */
struct frame {
    double left, top, width, height, size;
};

/* A file's panels one below the other, with their legends at the right, and a page's figures. */
enum { LEFT = 84, WIDTH = 640, RIGHT = 230, TOP = 44, HEIGHT = 330, BOTTOM = 62, HEAD = 64 };
enum { PAGE_WIDTH = LEFT + WIDTH + RIGHT, FIGURE_WIDTH = 460, FIGURE_HEIGHT = 300 };

/* Colours that colour-blind readers can tell apart (Okabe and Ito 2008). */
static const char *const colours[] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "currentColor"};
static const char *const dashes[] = {"none", "7 3", "2 2.5", "9 3 2 3", "4 2.5"};
enum { COLOURS = sizeof colours / sizeof colours[0], DASHES = sizeof dashes / sizeof dashes[0], MARKERS = 8 };
static const char grid[] = "stroke=\"currentColor\" stroke-opacity=\"0.14\"";
static const char ink[] = "stroke=\"currentColor\" stroke-opacity=\"0.7\"";

/* ---- Axes ---------------------------------------------------------------------------------------------------- */

struct axis {
    double low, high, step; /* step: between ticks, if the axis is linear */
    bool log;
};

static double scaled(const struct axis *axis, double value)
{
    return axis->log ? log2(value / axis->low) / log2(axis->high / axis->low)
                     : (value - axis->low) / (axis->high - axis->low);
}

/* The distance of ticks, 1, 2 or 5 times a power of ten, for at most count ticks. */
static double tick_step(double range, int count)
{
    const double raw = range / count, unit = pow(10, floor(log10(raw)));
    const double steps = raw / unit;
    return unit * (steps <= 1 ? 1 : steps <= 2 ? 2 : steps <= 5 ? 5 : 10);
}

/* Limits that are ten times as high as all else would flatten the rest. Such a panel leaves them out, and its legend
 * says so. */
static bool leaves_limits_out(const struct plot_panel *panel)
{
    double top[2] = {0, 0};
    for (size_t s = 0; s < panel->series_count; s++)
        for (size_t i = 0; i < panel->series[s].count; i++)
            top[panel->series[s].is_limit] = fmax(top[panel->series[s].is_limit], panel->series[s].mark[i].y);
    return top[false] > 0 && top[true] > 10 * top[false];
}

static bool is_drawn(const struct plot_panel *panel, size_t s)
{
    return !panel->series[s].is_limit || !leaves_limits_out(panel);
}

static void find_axes(const struct plot_panel *panel, struct axis *x, struct axis *y, int ticks)
{
    double low = INFINITY, high = -INFINITY, bottom = INFINITY, top = -INFINITY;
    for (size_t s = 0; s < panel->series_count; s++) {
        if (!is_drawn(panel, s)) continue;
        for (size_t i = 0; i < panel->series[s].count; i++) {
            const struct plot_mark *mark = &panel->series[s].mark[i];
            low = fmin(low, mark->x);
            high = fmax(high, mark->x);
            bottom = fmin(bottom, mark->y);
            top = fmax(top, mark->y);
        }
    }
    x->log = (panel->kind == PLOT_LINES_LOG_X || panel->kind == PLOT_SCATTER) && low > 0;
    if (panel->kind == PLOT_SCATTER && x->log && high > low) { /* marks and their names need room */
        low /= pow(high / low, 0.08) * 1.05;
        high *= pow(high / low, 0.08) * 1.05;
    }
    if (panel->kind == PLOT_LINES && panel->fits_y && low > 0 && low < 0.4 * high) { /* lines of a page */
        low = 0;
        high *= 1.03;
    }
    if (!(high > low)) { /* a single point stands in the middle */
        const double middle = isfinite(low) ? low : 1;
        low = x->log ? middle / 2 : middle - 1;
        high = x->log ? middle * 2 : middle + 1;
    }
    *x = (struct axis){low, high, tick_step(high - low, ticks), x->log};
    if (!isfinite(top) || top <= 0) top = 1;
    if (!panel->fits_y || !isfinite(bottom)) bottom = 0;
    if (!(top > bottom)) bottom = fmin(0.5 * top, top - 1e-6);
    y->log = false;
    y->step = tick_step(top - bottom, ticks);
    y->low = y->step * floor(bottom / y->step + 1e-9);
    y->high = y->step * ceil(top / y->step - 1e-9);
}

/* ---- Marks --------------------------------------------------------------------------------------------------- */

static void put_text(FILE *f, double x, double y, const char *anchor, double size, const char *more, const char *text)
{
    fprintf(f, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\" font-size=\"%g\" fill=\"currentColor\" %s>", x, y,
            anchor, size, more);
    text_escape(f, text);
    fputs("</text>\n", f);
}

static void put_line(FILE *f, double x1, double y1, double x2, double y2, const char *style)
{
    fprintf(f, "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" %s/>\n", x1, y1, x2, y2, style);
}

static void put_tip(FILE *f, const struct plot_series *series, const struct plot_mark *mark)
{
    char x[TEXT_NUMBER], y[TEXT_NUMBER];
    fputs("<title>", f);
    if (mark->tip) {
        text_escape(f, mark->tip);
    } else {
        text_escape(f, series->name);
        fprintf(f, ": %s; %s", text_figure(x, mark->x), text_figure(y, mark->y));
    }
    fputs("</title>", f);
}

static int colour_of(const struct plot_series *series)
{
    return series->look % COLOURS;
}

/* A marker, closed by put_tip and </path>. Open forms are for series that differ from another in nothing else. */
static void put_marker(FILE *f, double x, double y, const struct plot_series *series)
{
    static const char *const forms[MARKERS] = {
        "m-3.6 0a3.6 3.6 0 1 0 7.2 0a3.6 3.6 0 1 0 -7.2 0z", /* disc */
        "m-3.2 -3.2h6.4v6.4h-6.4z",                          /* square */
        "m0 -4.4l4.2 7.2h-8.4z",                             /* triangle */
        "m0 -4.6l4.4 4.6l-4.4 4.6l-4.4 -4.6z",               /* diamond */
        "m0 4.4l4.2 -7.2h-8.4z",                             /* triangle on its tip */
        "m-1.3 -4.4h2.6v3.1h3.1v2.6h-3.1v3.1h-2.6v-3.1h-3.1v-2.6h3.1z",
        "m-4.2 -2.4l1.8 -1.8l2.4 2.4l2.4 -2.4l1.8 1.8l-2.4 2.4l2.4 2.4l-1.8 1.8l-2.4 -2.4l-2.4 2.4l-1.8 -1.8l2.4 -2.4z",
        "m-4.6 -2.4h9.2v4.8h-9.2z", /* bar */
    };
    const int c = colour_of(series);
    fprintf(f, "<path class=\"mark f%d\" d=\"M%.1f %.1f%s\" fill=\"%s\">", c, x, y, forms[series->look % MARKERS],
            colours[c]);
}

/* The attributes of a series' line. Limits are grey. */
static const char *stroke_of(char text[192], const struct plot_series *series)
{
    const int c = colour_of(series);
    if (series->is_limit)
        snprintf(text, 192, "stroke=\"#777777\" stroke-width=\"1.6\" stroke-dasharray=\"%s\"",
                 dashes[1 + series->look % (DASHES - 1)]);
    else
        snprintf(text, 192, "class=\"s%d\" stroke=\"%s\" stroke-width=\"%g\" stroke-dasharray=\"%s\"", c, colours[c],
                 series->is_strong ? 2.6 : 1.7, dashes[series->look % DASHES]);
    return text;
}

static void begin_series(FILE *f, const char *name)
{
    fputs("<g data-series=\"", f);
    text_escape(f, name);
    fputs("\">\n", f);
}

/* ---- Frame --------------------------------------------------------------------------------------------------- */

static void put_x_tick(FILE *f, const struct frame *frame, const struct axis *x, double value)
{
    char label[48];
    const double at = frame->left + frame->width * scaled(x, value);
    put_line(f, at, frame->top + frame->height, at, frame->top + frame->height + 4, ink);
    snprintf(label, sizeof label, "%g", fabs(value) < x->step * 1e-9 ? 0 : value);
    put_text(f, at, frame->top + frame->height + 5 + frame->size, "middle", frame->size, "", label);
}

/* Powers of two; where they are few, 1, 2 and 5 times powers of ten. */
static void put_log_ticks(FILE *f, const struct frame *frame, const struct axis *x, bool decimal)
{
    static const double steps[] = {1, 2, 5};
    const double octaves = log2(x->high / x->low);
    if (decimal) {
        const bool sparse = octaves * 3 / log2(10) > frame->width / 36;
        for (double unit = pow(10, floor(log10(x->low))); unit <= x->high; unit *= 10)
            for (int i = 0; i < (sparse ? 1 : 3); i++)
                if (unit * steps[i] >= x->low && unit * steps[i] <= x->high) put_x_tick(f, frame, x, unit * steps[i]);
        return;
    }
    const int skip = (int)ceil(octaves / (frame->width / 45));
    int i = 0;
    for (double v = exp2(ceil(log2(x->low) - 1e-9)); v <= x->high * 1.0001; v *= 2, i++)
        if (i % (skip > 0 ? skip : 1) == 0) put_x_tick(f, frame, x, v);
}

static void put_frame(FILE *f, const struct plot_panel *panel, const struct frame *frame, const struct axis *x,
                      const struct axis *y)
{
    char label[96];
    const double bottom = frame->top + frame->height, right = frame->left + frame->width;
    for (int i = 0; y->low + i * y->step <= y->high + 1e-6 * y->step; i++) {
        const double value = y->low + i * y->step, at = frame->top + frame->height * (1 - scaled(y, value));
        put_line(f, frame->left, at, right, at, grid);
        snprintf(label, sizeof label, "%g", fabs(value) < y->step * 1e-9 ? 0 : value);
        put_text(f, frame->left - 6, at + 0.35 * frame->size, "end", frame->size, "", label);
    }
    if (panel->kind == PLOT_BARS)
        for (size_t i = 0; i < panel->group_count; i++)
            put_text(f, frame->left + frame->width * ((double)i + 0.5) / (double)panel->group_count,
                     bottom + 5 + frame->size, "middle", frame->size, "", panel->group[i]);
    else if (x->log)
        put_log_ticks(f, frame, x, panel->kind == PLOT_SCATTER);
    else
        for (double v = x->step * ceil(x->low / x->step - 1e-9); v <= x->high + x->step * 1e-6; v += x->step)
            put_x_tick(f, frame, x, v);
    fprintf(f, "<path d=\"M%.1f %.1fV%.1fH%.1f\" fill=\"none\" %s/>\n", frame->left, frame->top, bottom, right, ink);
    put_text(f, frame->left + frame->width / 2, bottom + 10 + 2.4 * frame->size, "middle", frame->size, "",
             panel->x_label);
    const double across = frame->size + 2, middle = frame->top + frame->height / 2;
    snprintf(label, sizeof label, "transform=\"rotate(-90 %.1f %.1f)\"", across, middle);
    put_text(f, across, middle, "middle", frame->size, label, panel->y_label);
}

/* ---- Lines and upright bars ---------------------------------------------------------------------------------- */

static void put_lines(FILE *f, const struct plot_panel *panel, const struct frame *frame, const struct axis *x,
                      const struct axis *y)
{
    char stroke[192];
    for (size_t s = 0; s < panel->series_count; s++) {
        const struct plot_series *series = &panel->series[s];
        if (!is_drawn(panel, s)) continue;
        begin_series(f, series->name);
        fputs("<polyline points=\"", f);
        for (size_t i = 0; i < series->count; i++)
            fprintf(f, "%.1f,%.1f ", frame->left + frame->width * scaled(x, series->mark[i].x),
                    frame->top + frame->height * (1 - scaled(y, series->mark[i].y)));
        fprintf(f, "\" fill=\"none\" stroke-linejoin=\"round\" %s><title>", stroke_of(stroke, series));
        text_escape(f, series->name);
        fputs("</title></polyline>\n", f);
        for (size_t i = 0; i < series->count && !series->is_limit; i++) {
            put_marker(f, frame->left + frame->width * scaled(x, series->mark[i].x),
                       frame->top + frame->height * (1 - scaled(y, series->mark[i].y)), series);
            put_tip(f, series, &series->mark[i]);
            fputs("</path>\n", f);
        }
        fputs("</g>\n", f);
    }
}

/* Series that share a colour differ in their outline. */
static void put_bars(FILE *f, const struct plot_panel *panel, const struct frame *frame, const struct axis *y)
{
    const double group = frame->width / (double)(panel->group_count > 0 ? panel->group_count : 1);
    int drawn = 0, place = 0;
    for (size_t s = 0; s < panel->series_count; s++) drawn += is_drawn(panel, s);
    const double bar = group * 0.8 / (drawn > 0 ? drawn : 1);
    for (size_t s = 0; s < panel->series_count; s++) {
        const struct plot_series *series = &panel->series[s];
        const int c = colour_of(series);
        if (!is_drawn(panel, s)) continue;
        begin_series(f, series->name);
        for (size_t i = 0; i < series->count; i++) {
            const double height = frame->height * scaled(y, series->mark[i].y);
            fprintf(f,
                    "<rect class=\"f%d\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"%s\" "
                    "fill-opacity=\"%g\" stroke=\"currentColor\" stroke-width=\"0.6\" stroke-dasharray=\"%s\">",
                    c, frame->left + group * (series->mark[i].x + 0.1) + bar * place,
                    frame->top + frame->height - height, bar, height, series->is_limit ? "#777777" : colours[c],
                    series->look % 2 ? 0.55 : 1, dashes[series->look / COLOURS % DASHES]);
            put_tip(f, series, &series->mark[i]);
            fputs("</rect>\n", f);
        }
        fputs("</g>\n", f);
        place++;
    }
}

/* ---- Scatter ------------------------------------------------------------------------------------------------- */

struct box {
    double x, y, width, height;
};

static bool overlaps(const struct box *box, const struct box *others, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (box->x < others[i].x + others[i].width && others[i].x < box->x + box->width &&
            box->y < others[i].y + others[i].height && others[i].y < box->y + box->height)
            return true;
    return false;
}

/* Finds a place for a name beside its mark that overlaps nothing; false: there is none, and the legend has the name. */
static bool find_place(const struct frame *frame, double x, double y, double width, struct box *boxes, size_t count)
{
    const double height = frame->size * 0.95;
    const struct box tries[] = {
        {x + 7, y - height / 2, width, height},         {x - 7 - width, y - height / 2, width, height},
        {x - width / 2, y - 6 - height, width, height}, {x - width / 2, y + 6, width, height},
        {x + 5, y - 4 - height, width, height},         {x + 5, y + 4, width, height},
        {x - 5 - width, y - 4 - height, width, height}, {x - 5 - width, y + 4, width, height},
    };
    for (size_t i = 0; i < sizeof tries / sizeof tries[0]; i++) {
        const struct box *box = &tries[i];
        if (box->x < frame->left + 2 || box->x + box->width > frame->left + frame->width + 12) continue;
        if (box->y < frame->top || box->y + box->height > frame->top + frame->height - 1) continue;
        if (overlaps(box, boxes, count)) continue;
        boxes[count] = *box;
        return true;
    }
    return false;
}

static void put_front(FILE *f, const struct plot_panel *panel, const struct frame *frame, const struct axis *x,
                      const struct axis *y, struct plot_mark *front)
{
    const size_t count = plot_front(panel, front);
    begin_series(f, "Pareto front");
    fputs("<polyline points=\"", f);
    for (size_t i = 0; i < count; i++)
        fprintf(f, "%.1f,%.1f ", frame->left + frame->width * scaled(x, front[i].x),
                frame->top + frame->height * (1 - scaled(y, front[i].y)));
    fputs("\" fill=\"none\" stroke=\"currentColor\" stroke-opacity=\"0.55\" stroke-dasharray=\"5 3\">"
          "<title>Pareto front: no codec is both faster and smaller than one on this line</title></polyline>\n</g>\n",
          f);
}

static void put_scatter(FILE *f, const struct plot_panel *panel, const struct frame *frame, const struct axis *x,
                        const struct axis *y)
{
    size_t all = 0, boxed = 0;
    for (size_t s = 0; s < panel->series_count; s++) all += panel->series[s].count;
    struct box *const boxes = malloc((2 * all + 1) * sizeof *boxes);
    struct plot_mark *const front = malloc((all + 1) * sizeof *front);
    if (front) put_front(f, panel, frame, x, y, front);
    for (size_t s = 0; s < panel->series_count && boxes; s++)
        for (size_t i = 0; i < panel->series[s].count; i++, boxed++)
            boxes[boxed] =
                (struct box){frame->left + frame->width * scaled(x, panel->series[s].mark[i].x) - 4,
                             frame->top + frame->height * (1 - scaled(y, panel->series[s].mark[i].y)) - 4, 8, 8};
    for (size_t s = 0; s < panel->series_count; s++) {
        const struct plot_series *series = &panel->series[s];
        begin_series(f, series->name);
        for (size_t i = 0; i < series->count; i++) {
            const double at_x = frame->left + frame->width * scaled(x, series->mark[i].x);
            const double at_y = frame->top + frame->height * (1 - scaled(y, series->mark[i].y));
            put_marker(f, at_x, at_y, series);
            put_tip(f, series, &series->mark[i]);
            fputs("</path>\n", f);
            const double width = (double)strlen(series->name) * frame->size * 0.53;
            if (!boxes || !find_place(frame, at_x, at_y, width, boxes, boxed)) continue;
            put_text(f, boxes[boxed].x, boxes[boxed].y + frame->size * 0.78, "start", frame->size * 0.92,
                     series->is_strong ? "font-weight=\"bold\"" : "", series->name);
            boxed++;
        }
        fputs("</g>\n", f);
    }
    free(boxes);
    free(front);
}

/* ---- Histogram ----------------------------------------------------------------------------------------------- */

enum { BINS_LIMIT = 64 };

/* Bins of equal width. The last one holds all that is above, too, if a few values are far out. */
struct bins {
    double low, width;
    int count;
    bool is_open;
    size_t highest;
};

static int bin_of(const struct bins *bins, double value)
{
    const double bin = floor((value - bins->low) / bins->width + 1e-9);
    return bin < 0 ? 0 : bin >= bins->count ? bins->count - 1 : (int)bin;
}

static void count_bins(const struct bins *bins, const struct plot_series *series, size_t counts[BINS_LIMIT])
{
    memset(counts, 0, BINS_LIMIT * sizeof *counts);
    for (size_t i = 0; i < series->count; i++) counts[bin_of(bins, series->mark[i].x)]++;
}

static int compare_doubles(const void *left, const void *right)
{
    const double a = *(const double *)left, b = *(const double *)right;
    return a < b ? -1 : a > b;
}

static struct bins find_bins(const struct plot_panel *panel)
{
    struct bins bins = {0, 1, 1, false, 1};
    size_t all = 0, counts[BINS_LIMIT];
    for (size_t s = 0; s < panel->series_count; s++) all += panel->series[s].count;
    double *const values = malloc((all + 1) * sizeof *values);
    if (!values || all == 0) {
        free(values);
        return bins;
    }
    all = 0;
    for (size_t s = 0; s < panel->series_count; s++)
        for (size_t i = 0; i < panel->series[s].count; i++) values[all++] = panel->series[s].mark[i].x;
    qsort(values, all, sizeof *values, compare_doubles);
    const double low = values[0], far = low + 2.5 * (values[all * 9 / 10] - low);
    bins.is_open = far > low && values[all - 1] > far;
    const double high = bins.is_open ? far : values[all - 1];
    bins.width = tick_step(high > low ? high - low : fmax(0.1 * fabs(low), 1e-3), 24);
    bins.low = bins.width * floor(low / bins.width + 1e-9);
    bins.count = (int)fmin(BINS_LIMIT, floor((high - bins.low) / bins.width + 1e-9) + 1);
    free(values);
    for (size_t s = 0; s < panel->series_count; s++) {
        count_bins(&bins, &panel->series[s], counts);
        for (int b = 0; b < bins.count; b++)
            if (counts[b] > bins.highest) bins.highest = counts[b];
    }
    return bins;
}

/* The first series is filled, the others are outlines. */
static void put_histogram(FILE *f, const struct plot_panel *panel, const struct frame *frame, const struct axis *x,
                          const struct axis *y, const struct bins *bins)
{
    char stroke[192];
    size_t counts[BINS_LIMIT];
    const double bottom = frame->top + frame->height, wide = frame->width / bins->count;
    for (size_t s = 0; s < panel->series_count; s++) {
        const struct plot_series *series = &panel->series[s];
        const int c = colour_of(series);
        count_bins(bins, series, counts);
        begin_series(f, series->name);
        for (int b = 0; b < bins->count; b++) {
            const double height = frame->height * scaled(y, (double)counts[b]), low = bins->low + b * bins->width;
            if (counts[b] == 0) continue;
            fprintf(f,
                    "<rect class=\"f%d\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"%s\" "
                    "fill-opacity=\"%g\"><title>",
                    c, frame->left + wide * b, bottom - height, wide, height, colours[c], s == 0 ? 0.32 : 0.001);
            text_escape(f, series->name);
            fprintf(f, ": %zu image%s, %g ", counts[b], counts[b] == 1 ? "" : "s", low);
            if (bins->is_open && b == bins->count - 1)
                fputs("and more</title></rect>\n", f);
            else
                fprintf(f, "to %g</title></rect>\n", low + bins->width);
        }
        fprintf(f, "<path fill=\"none\" pointer-events=\"none\" %s d=\"M%.1f %.1f", stroke_of(stroke, series),
                frame->left, bottom);
        for (int b = 0; b < bins->count; b++)
            fprintf(f, "V%.1fH%.1f", bottom - frame->height * scaled(y, (double)counts[b]),
                    frame->left + wide * (b + 1));
        fprintf(f, "V%.1f\"/>\n</g>\n", bottom);
    }
    if (panel->x_reference <= x->low || panel->x_reference >= x->high) return;
    const double at = frame->left + frame->width * scaled(x, panel->x_reference);
    put_line(f, at, frame->top - 4, at, bottom,
             "stroke=\"currentColor\" stroke-width=\"1.4\" stroke-dasharray=\"3 3\"");
}

/* ---- Panels -------------------------------------------------------------------------------------------------- */

static void put_panel(FILE *f, const struct plot_panel *panel, const struct frame *frame)
{
    struct axis x, y;
    const int ticks = frame->width > 500 ? 10 : 6;
    find_axes(panel, &x, &y, ticks);
    if (panel->kind == PLOT_HISTOGRAM) {
        const struct bins bins = find_bins(panel);
        const double high = bins.low + bins.width * bins.count;
        x = (struct axis){bins.low, high, tick_step(high - bins.low, ticks), false};
        y.step = fmax(1, tick_step((double)bins.highest, ticks));
        y.low = 0;
        y.high = y.step * ceil((double)bins.highest / y.step);
        put_frame(f, panel, frame, &x, &y);
        put_histogram(f, panel, frame, &x, &y, &bins);
        return;
    }
    put_frame(f, panel, frame, &x, &y);
    if (panel->kind == PLOT_BARS)
        put_bars(f, panel, frame, &y);
    else if (panel->kind == PLOT_SCATTER)
        put_scatter(f, panel, frame, &x, &y);
    else
        put_lines(f, panel, frame, &x, &y);
}

/* Bars one below the other. Lengths are percentages, so that text keeps its size where the page is narrow. */
static void put_rows(FILE *f, const struct plot_panel *panel, double top, double row)
{
    double longest = 0;
    for (size_t s = 0; s < panel->series_count; s++)
        if (panel->series[s].count > 0) longest = fmax(longest, panel->series[s].mark[0].x);
    for (size_t s = 0; s < panel->series_count; s++) {
        const struct plot_series *series = &panel->series[s];
        const double y = top + row * (double)s;
        const char *const weight = series->is_strong ? "font-weight=\"bold\"" : "";
        if (series->count == 0) continue;
        begin_series(f, series->name);
        put_text(f, 0, y + 12, "start", 13, weight, series->name);
        fprintf(f, "<text x=\"100%%\" y=\"%.1f\" text-anchor=\"end\" font-size=\"13\" fill=\"currentColor\" %s>",
                y + 12, weight);
        text_escape(f, series->note);
        fprintf(f,
                "</text>\n<rect x=\"0\" y=\"%.1f\" width=\"100%%\" height=\"8\" fill=\"currentColor\" "
                "fill-opacity=\"0.07\"/>\n",
                y + 17);
        fprintf(f,
                "<rect class=\"bar %s\" x=\"0\" y=\"%.1f\" width=\"%.2f%%\" height=\"8\" fill=\"%s\" "
                "fill-opacity=\"%g\">",
                series->is_strong ? "f0" : "", y + 17, longest > 0 ? 100 * series->mark[0].x / longest : 0,
                series->is_strong ? colours[0] : "currentColor", series->is_strong ? 1 : 0.45);
        put_tip(f, series, &series->mark[0]);
        fputs("</rect>\n</g>\n", f);
    }
}

static void put_swatch(FILE *f, const struct plot_panel *panel, const struct plot_series *series, double x, double y)
{
    char stroke[192];
    if (panel->kind == PLOT_BARS) {
        const int c = colour_of(series);
        fprintf(f,
                "<rect class=\"f%d\" x=\"%.1f\" y=\"%.1f\" width=\"14\" height=\"10\" fill=\"%s\" "
                "fill-opacity=\"%g\" stroke=\"currentColor\" stroke-width=\"0.6\" stroke-dasharray=\"%s\"/>\n",
                c, x + 7, y - 5, series->is_limit ? "#777777" : colours[c], series->look % 2 ? 0.55 : 1,
                dashes[series->look / COLOURS % DASHES]);
        return;
    }
    if (panel->kind != PLOT_SCATTER) put_line(f, x, y, x + 28, y, stroke_of(stroke, series));
    if (series->is_limit || panel->kind == PLOT_HISTOGRAM) return;
    put_marker(f, x + 14, y, series);
    fputs("</path>\n", f);
}

/* ---- A file -------------------------------------------------------------------------------------------------- */

enum { ROW = 34 };

static double height_of(const struct plot_panel *panel)
{
    if (panel->kind == PLOT_ROWS) return TOP + ROW * (double)panel->series_count + 20;
    const double legend = 24 + 20 * (double)panel->series_count;
    return TOP + fmax(HEIGHT, legend) + BOTTOM;
}

static void put_panel_of_file(FILE *f, const struct plot_panel *panel, double top)
{
    put_text(f, panel->kind == PLOT_ROWS ? 20 : LEFT, top + TOP - 14, "start", 15, "font-weight=\"bold\"",
             panel->title);
    if (panel->kind == PLOT_ROWS) {
        fprintf(f, "<svg x=\"20\" width=\"%d\">", PAGE_WIDTH - 40);
        put_rows(f, panel, top + TOP, ROW);
        fputs("</svg>\n", f);
        return;
    }
    const struct frame frame = {LEFT, top + TOP, WIDTH, HEIGHT, 12};
    put_panel(f, panel, &frame);
    for (size_t s = 0; s < panel->series_count; s++) {
        char name[2 * PLOT_TEXT];
        const double x = LEFT + WIDTH + 16, y = frame.top + 12 + 20 * (double)s;
        put_swatch(f, panel, &panel->series[s], x, y);
        snprintf(name, sizeof name, "%.150s%s", panel->series[s].name, is_drawn(panel, s) ? "" : ": far above");
        put_text(f, x + 36, y + 4, "start", 12, "", name);
    }
}

bool plot_write(const struct plot *plot, const char *path)
{
    double height = HEAD;
    if (plot->has_failed) {
        errno = ENOMEM;
        return false;
    }
    FILE *f = fopen(path, "w");
    if (!f) return false;
    for (size_t p = 0; p < plot->panel_count; p++) height += height_of(plot->panel[p]);
    fprintf(f,
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" "
            "height=\"%.0f\" viewBox=\"0 0 %d %.0f\" font-family=\"sans-serif\" color=\"#000000\">\n"
            "<rect width=\"100%%\" height=\"100%%\" fill=\"#ffffff\"/>\n",
            PAGE_WIDTH, height, PAGE_WIDTH, height);
    put_text(f, 20, 28, "start", 18, "font-weight=\"bold\"", plot->title);
    put_text(f, 20, 48, "start", 12, "fill-opacity=\"0.7\"", plot->subtitle);
    double top = HEAD;
    for (size_t p = 0; p < plot->panel_count; p++) {
        put_panel_of_file(f, plot->panel[p], top);
        top += height_of(plot->panel[p]);
    }
    fputs("</svg>\n", f);
    const bool good = !ferror(f);
    return fclose(f) == 0 && good;
}

/* ---- Figures of a page --------------------------------------------------------------------------------------- */

static void put_legend_entry(FILE *f, const struct plot_panel *panel, const struct plot_series *series,
                             const char *remark)
{
    fputs("<li><button type=\"button\" aria-pressed=\"true\" data-series=\"", f);
    text_escape(f, series->name);
    fputs("\"><svg width=\"28\" height=\"12\" aria-hidden=\"true\">", f);
    put_swatch(f, panel, series, 0, 6);
    fputs("</svg>", f);
    text_escape(f, series->name);
    fprintf(f, "%s</button></li>\n", remark);
}

/* The legend of a panel, or of all panels. */
static void put_legend(FILE *f, const struct plot *plot, const struct plot_panel *only)
{
    fputs("<ul class=\"legend\" aria-label=\"Legend: each button hides or shows a series\">\n", f);
    for (size_t look = 0; look < plot->name_count; look++) {
        bool is_done = false;
        for (size_t p = 0; p < plot->panel_count && !is_done; p++) {
            const struct plot_panel *panel = plot->panel[p];
            for (size_t s = 0; s < panel->series_count && (!only || panel == only) && !is_done; s++)
                if ((size_t)panel->series[s].look == look) {
                    put_legend_entry(f, panel, &panel->series[s], is_drawn(panel, s) ? "" : ": far above");
                    is_done = true;
                }
        }
    }
    if ((only ? only : plot->panel[0])->kind == PLOT_SCATTER)
        fputs("<li><button type=\"button\" aria-pressed=\"true\" data-series=\"Pareto front\"><svg width=\"28\" "
              "height=\"12\" aria-hidden=\"true\"><line x1=\"0\" y1=\"6\" x2=\"28\" y2=\"6\" stroke=\"currentColor\" "
              "stroke-opacity=\"0.55\" stroke-dasharray=\"5 3\"/></svg>Pareto front</button></li>\n",
              f);
    fputs("</ul>\n", f);
}

static void put_label(FILE *f, const struct plot_panel *panel)
{
    fputs("role=\"img\" aria-label=\"", f);
    text_escape(f, panel->title);
    if (*panel->y_label || *panel->x_label) {
        fputs(". ", f);
        text_escape(f, panel->y_label);
        fputs(*panel->y_label && *panel->x_label ? " over " : "", f);
        text_escape(f, panel->x_label);
    }
    fputs(". Series:", f);
    for (size_t s = 0; s < panel->series_count; s++) {
        fputs(s ? ", " : " ", f);
        text_escape(f, panel->series[s].name);
        if (!panel->series[s].note) continue;
        fputs(" ", f);
        text_escape(f, panel->series[s].note);
    }
    fputs(".\"", f);
}

static void put_figure(FILE *f, const struct plot_panel *panel)
{
    fprintf(f, "<figure class=\"plot%s\">\n<figcaption>", panel->kind == PLOT_ROWS ? " rows" : "");
    text_escape(f, panel->title);
    fputs("</figcaption>\n<svg ", f);
    put_label(f, panel);
    if (panel->kind == PLOT_ROWS) {
        fprintf(f, " width=\"100%%\" height=\"%d\">\n", ROW * (int)panel->series_count);
        put_rows(f, panel, 0, ROW);
    } else {
        const struct frame frame = {60, 12, FIGURE_WIDTH - 60 - 22, FIGURE_HEIGHT - 12 - 48, 12};
        fprintf(f, " viewBox=\"0 0 %d %d\">\n", FIGURE_WIDTH, FIGURE_HEIGHT);
        put_panel(f, panel, &frame);
    }
    fputs("</svg>\n", f);
    if (!panel->plot->shares_legend && panel->kind != PLOT_ROWS) put_legend(f, panel->plot, panel);
    fputs("</figure>\n", f);
}

void plot_write_figures(FILE *f, const struct plot *plot)
{
    if (plot->panel_count == 0) return;
    fprintf(f, "<div class=\"plots%s\">\n", plot->shares_legend ? " shared" : "");
    if (plot->shares_legend) put_legend(f, plot, NULL);
    for (size_t p = 0; p < plot->panel_count; p++) put_figure(f, plot->panel[p]);
    fputs("</div>\n", f);
    if (plot->has_failed) fputs("<p class=\"warning\">Memory ended: these plots are not complete.</p>\n", f);
}
