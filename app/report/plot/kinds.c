/* Kinds of panels: lines, bars, scatter plots, histograms and rows. See svg.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "svg.h"
#include "app/report/text/text.h"

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

void put_panel(FILE *f, const struct plot_panel *panel, const struct frame *frame)
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
void put_rows(FILE *f, const struct plot_panel *panel, double top, double row)
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

void put_swatch(FILE *f, const struct plot_panel *panel, const struct plot_series *series, double x, double y)
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
