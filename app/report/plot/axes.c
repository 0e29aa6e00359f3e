/* Axes and marks: what all kinds of panels are drawn with. See svg.h. */
#include <math.h>

#include "svg.h"
#include "app/report/text/text.h"

/* Colours that colour-blind readers can tell apart (Okabe and Ito 2008), then others: pages show at most 12 codecs. */
const char *const colours[COLOURS] = {"#0072b2",      "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9",
                                      "currentColor", "#8a4fc7", "#96602a", "#7f8c1f", "#d1264a", "#1fa8a8"};
const char *const dashes[DASHES] = {"none", "7 3", "2 2.5", "9 3 2 3", "4 2.5"};
static const char grid[] = "stroke=\"currentColor\" stroke-opacity=\"0.14\"";
static const char ink[] = "stroke=\"currentColor\" stroke-opacity=\"0.7\"";

/* ---- Axes ---------------------------------------------------------------------------------------------------- */

double scaled(const struct axis *axis, double value)
{
    return axis->log ? log2(value / axis->low) / log2(axis->high / axis->low)
                     : (value - axis->low) / (axis->high - axis->low);
}

/* The distance of ticks, 1, 2 or 5 times a power of ten, for at most count ticks. */
double tick_step(double range, int count)
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

bool is_drawn(const struct plot_panel *panel, size_t s)
{
    return !panel->series[s].is_limit || !leaves_limits_out(panel);
}

void find_axes(const struct plot_panel *panel, struct axis *x, struct axis *y, int ticks)
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

void put_text(FILE *f, double x, double y, const char *anchor, double size, const char *more, const char *text)
{
    fprintf(f, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\" font-size=\"%g\" fill=\"currentColor\" %s>", x, y,
            anchor, size, more);
    text_escape(f, text);
    fputs("</text>\n", f);
}

void put_line(FILE *f, double x1, double y1, double x2, double y2, const char *style)
{
    fprintf(f, "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" %s/>\n", x1, y1, x2, y2, style);
}

void put_tip(FILE *f, const struct plot_series *series, const struct plot_mark *mark)
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

int colour_of(const struct plot_series *series)
{
    return series->look % COLOURS;
}

/* A marker, closed by put_tip and </path>. Open shapes are for series that differ from another in nothing else. */
void put_marker(FILE *f, double x, double y, const struct plot_series *series)
{
    static const char *const shapes[MARKERS] = {
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
    fprintf(f, "<path class=\"mark f%d\" d=\"M%.1f %.1f%s\" fill=\"%s\">", c, x, y, shapes[series->look % MARKERS],
            colours[c]);
}

/* The attributes of a series' line. Limits are grey. */
const char *stroke_of(char text[192], const struct plot_series *series)
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

void begin_series(FILE *f, const char *name)
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

void put_frame(FILE *f, const struct plot_panel *panel, const struct frame *frame, const struct axis *x,
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
