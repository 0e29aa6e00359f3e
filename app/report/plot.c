/* Plots as SVG. See plot.h. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "plot.h"

/* Geometry in pixels: the frame of a panel, and the margins around it. */
enum { LEFT = 84, WIDTH = 640, RIGHT = 230, TOP = 44, HEIGHT = 330, BOTTOM = 62, HEAD = 64 };
enum { PANEL_HEIGHT = TOP + HEIGHT + BOTTOM, PAGE_WIDTH = LEFT + WIDTH + RIGHT };

/* Colours that colour-blind readers can tell apart (Okabe and Ito 2008), black last. Each series also has a marker. */
static const char *const colours[] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000"};
enum { COLOURS = sizeof colours / sizeof colours[0], MARKERS = 4 };

struct plot_panel *plot_panel(struct plot *plot, const char *title, const char *x_label, const char *y_label,
                              enum plot_kind kind)
{
    for (int i = 0; i < plot->panel_count; i++)
        if (!strcmp(plot->panel[i].title, title)) return &plot->panel[i];
    if (plot->panel_count == PLOT_PANELS_LIMIT) {
        plot->left_out++;
        return NULL;
    }
    struct plot_panel *panel = &plot->panel[plot->panel_count++];
    memset(panel, 0, sizeof *panel);
    snprintf(panel->title, sizeof panel->title, "%s", title);
    panel->x_label = x_label;
    panel->y_label = y_label;
    panel->kind = kind;
    return panel;
}

void plot_point(struct plot_panel *panel, const char *name, bool is_limit, double x, double y)
{
    int i = 0;
    while (i < panel->series_count && strcmp(panel->series[i].name, name) != 0) i++;
    if (i == PLOT_SERIES_LIMIT) return;
    struct plot_series *series = &panel->series[i];
    if (i == panel->series_count) {
        memset(series, 0, sizeof *series);
        snprintf(series->name, sizeof series->name, "%s", name);
        series->is_limit = is_limit;
        panel->series_count++;
    }
    if (series->points == PLOT_POINTS_LIMIT) return;
    int at = series->points++; /* points are ordered by x */
    for (; at > 0 && series->x[at - 1] > x; at--) {
        series->x[at] = series->x[at - 1];
        series->y[at] = series->y[at - 1];
    }
    series->x[at] = x;
    series->y[at] = y;
}

double plot_group(struct plot_panel *panel, const char *name)
{
    int i = 0;
    while (i < panel->group_count && strcmp(panel->group[i], name) != 0) i++;
    if (i == panel->group_count && i < PLOT_POINTS_LIMIT)
        snprintf(panel->group[panel->group_count++], PLOT_TEXT, "%s", name);
    return i;
}

/* ---- Axes ---------------------------------------------------------------------------------------------------- */

struct axis {
    double low, high, step; /* between ticks, if the axis is linear */
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
    for (int s = 0; s < panel->series_count; s++)
        for (int i = 0; i < panel->series[s].points; i++)
            top[panel->series[s].is_limit] = fmax(top[panel->series[s].is_limit], panel->series[s].y[i]);
    return top[false] > 0 && top[true] > 10 * top[false];
}

static bool is_drawn(const struct plot_panel *panel, int s)
{
    return !panel->series[s].is_limit || !leaves_limits_out(panel);
}

static void find_axes(const struct plot_panel *panel, struct axis *x, struct axis *y)
{
    double low = INFINITY, high = -INFINITY, top = 0;
    for (int s = 0; s < panel->series_count; s++) {
        const struct plot_series *series = &panel->series[s];
        if (!is_drawn(panel, s)) continue;
        for (int i = 0; i < series->points; i++) {
            low = fmin(low, series->x[i]);
            high = fmax(high, series->x[i]);
            top = fmax(top, series->y[i]);
        }
    }
    x->log = panel->kind == PLOT_LINES_LOG_X && low > 0;
    if (!(high > low)) { /* a single point stands in the middle */
        low = x->log ? low / 2 : low - 1;
        high = x->log ? high * 2 : high + 1;
    }
    x->low = low;
    x->high = high;
    x->step = tick_step(high - low, 10);
    y->log = false;
    y->low = 0;
    y->step = tick_step(top > 0 ? top : 1, 8);
    y->high = y->step * ceil((top > 0 ? top : 1) / y->step);
}

/* ---- Marks --------------------------------------------------------------------------------------------------- */

static void put_text(FILE *f, double x, double y, const char *anchor, int size, const char *more, const char *text)
{
    fprintf(f, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\" font-size=\"%d\" %s>", x, y, anchor, size, more);
    for (; *text; text++) {
        if (*text == '&')
            fputs("&amp;", f);
        else if (*text == '<')
            fputs("&lt;", f);
        else if (*text == '>')
            fputs("&gt;", f);
        else if ((unsigned char)*text < 0x20 || (unsigned char)*text > 0x7e)
            fputc('?', f); /* names of files need not be UTF-8, but XML must be */
        else
            fputc(*text, f);
    }
    fputs("</text>\n", f);
}

static void put_line(FILE *f, double x1, double y1, double x2, double y2, const char *style)
{
    fprintf(f, "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" %s/>\n", x1, y1, x2, y2, style);
}

static void put_marker(FILE *f, double x, double y, int kind, const char *colour)
{
    switch (kind % MARKERS) {
    case 0:
        fprintf(f, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3.5\" fill=\"%s\"/>\n", x, y, colour);
        break;
    case 1:
        fprintf(f, "<rect x=\"%.1f\" y=\"%.1f\" width=\"6.4\" height=\"6.4\" fill=\"%s\"/>\n", x - 3.2, y - 3.2,
                colour);
        break;
    case 2:
        fprintf(f, "<path d=\"M%.1f %.1fl4.2 7.4h-8.4z\" fill=\"%s\"/>\n", x, y - 4.6, colour);
        break;
    default:
        fprintf(f, "<path d=\"M%.1f %.1fl4.4 4.4l-4.4 4.4l-4.4 -4.4z\" fill=\"%s\"/>\n", x, y - 4.4, colour);
        break;
    }
}

/* The look of series s of a panel. Limits are grey, each dashed in its own way. */
struct look {
    const char *colour;
    char stroke[96];
    int marker;
};

static struct look look_of(const struct plot_panel *panel, int s)
{
    static const char *const dashes[] = {"8 4", "2 3", "10 3 2 3", "5 5"};
    struct look look;
    int before = 0;
    for (int i = 0; i < s; i++) before += panel->series[i].is_limit == panel->series[s].is_limit;
    look.marker = before;
    look.colour = panel->series[s].is_limit ? "#777777" : colours[before % COLOURS];
    if (panel->series[s].is_limit)
        snprintf(look.stroke, sizeof look.stroke, "stroke=\"#777777\" stroke-width=\"1.6\" stroke-dasharray=\"%s\"",
                 dashes[before % 4]);
    else
        snprintf(look.stroke, sizeof look.stroke, "stroke=\"%s\" stroke-width=\"2\"", look.colour);
    return look;
}

/* ---- Panels -------------------------------------------------------------------------------------------------- */

static void put_frame(FILE *f, const struct plot_panel *panel, const struct axis *x, const struct axis *y, double top)
{
    char label[48];
    put_text(f, LEFT, top - 14, "start", 15, "font-weight=\"bold\"", panel->title);
    for (double v = 0; v <= y->high * 1.0001; v += y->step) {
        const double at = top + HEIGHT * (1 - scaled(y, v));
        put_line(f, LEFT, at, LEFT + WIDTH, at, "stroke=\"#dddddd\"");
        snprintf(label, sizeof label, "%g", v);
        put_text(f, LEFT - 8, at + 4, "end", 12, "", label);
    }
    if (panel->kind == PLOT_BARS) {
        for (int i = 0; i < panel->group_count; i++)
            put_text(f, LEFT + WIDTH * (i + 0.5) / panel->group_count, top + HEIGHT + 18, "middle", 12, "",
                     panel->group[i]);
    } else if (x->log) {
        const int skip = (int)ceil(log2(x->high / x->low) / 14);
        int i = 0;
        for (double v = exp2(ceil(log2(x->low) - 1e-9)); v <= x->high * 1.0001; v *= 2, i++) {
            if (i % (skip > 0 ? skip : 1) != 0) continue;
            const double at = LEFT + WIDTH * scaled(x, v);
            put_line(f, at, top + HEIGHT, at, top + HEIGHT + 5, "stroke=\"#000000\"");
            snprintf(label, sizeof label, "%g", v);
            put_text(f, at, top + HEIGHT + 18, "middle", 12, "", label);
        }
    } else {
        for (double v = x->step * ceil(x->low / x->step - 1e-9); v <= x->high + x->step * 1e-6; v += x->step) {
            const double at = LEFT + WIDTH * scaled(x, v);
            put_line(f, at, top + HEIGHT, at, top + HEIGHT + 5, "stroke=\"#000000\"");
            snprintf(label, sizeof label, "%g", v + 0.0); /* no -0 */
            put_text(f, at, top + HEIGHT + 18, "middle", 12, "", label);
        }
    }
    fprintf(f, "<rect x=\"%d\" y=\"%.1f\" width=\"%d\" height=\"%d\" fill=\"none\" stroke=\"#000000\"/>\n", LEFT, top,
            WIDTH, HEIGHT);
    put_text(f, LEFT + WIDTH / 2.0, top + HEIGHT + 40, "middle", 13, "", panel->x_label);
    snprintf(label, sizeof label, "transform=\"rotate(-90 22 %.1f)\"", top + HEIGHT / 2.0);
    put_text(f, 22, top + HEIGHT / 2.0, "middle", 13, label, panel->y_label);
}

static void put_lines(FILE *f, const struct plot_panel *panel, const struct axis *x, const struct axis *y, double top)
{
    for (int s = 0; s < panel->series_count; s++) {
        const struct plot_series *series = &panel->series[s];
        if (!is_drawn(panel, s)) continue;
        const struct look look = look_of(panel, s);
        fputs("<polyline points=\"", f);
        for (int i = 0; i < series->points; i++)
            fprintf(f, "%.1f,%.1f ", LEFT + WIDTH * scaled(x, series->x[i]),
                    top + HEIGHT * (1 - scaled(y, series->y[i])));
        fprintf(f, "\" fill=\"none\" %s/>\n", look.stroke);
        for (int i = 0; i < series->points && !series->is_limit; i++)
            put_marker(f, LEFT + WIDTH * scaled(x, series->x[i]), top + HEIGHT * (1 - scaled(y, series->y[i])),
                       look.marker, look.colour);
    }
}

static void put_bars(FILE *f, const struct plot_panel *panel, const struct axis *y, double top)
{
    const double group = (double)WIDTH / (panel->group_count > 0 ? panel->group_count : 1);
    int drawn = 0, place = 0;
    for (int s = 0; s < panel->series_count; s++) drawn += is_drawn(panel, s);
    const double bar = group * 0.8 / (drawn > 0 ? drawn : 1);
    for (int s = 0; s < panel->series_count; s++) {
        const struct plot_series *series = &panel->series[s];
        if (!is_drawn(panel, s)) continue;
        for (int i = 0; i < series->points; i++) {
            const double height = HEIGHT * scaled(y, series->y[i]);
            fprintf(f,
                    "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"%s\" stroke=\"#ffffff\" "
                    "stroke-width=\"0.5\"/>\n",
                    LEFT + group * (series->x[i] + 0.1) + bar * place, top + HEIGHT - height, bar, height,
                    look_of(panel, s).colour);
        }
        place++;
    }
}

static void put_legend(FILE *f, const struct plot_panel *panel, double top)
{
    const double x = LEFT + WIDTH + 16;
    for (int s = 0; s < panel->series_count; s++) {
        const double y = top + 12 + 20 * s;
        const struct look look = look_of(panel, s);
        if (panel->kind == PLOT_BARS) {
            fprintf(f, "<rect x=\"%.1f\" y=\"%.1f\" width=\"14\" height=\"10\" fill=\"%s\"/>\n", x + 7, y - 5,
                    look.colour);
        } else {
            put_line(f, x, y, x + 28, y, look.stroke);
            if (!panel->series[s].is_limit) put_marker(f, x + 14, y, look.marker, look.colour);
        }
        char name[PLOT_TEXT + 32];
        snprintf(name, sizeof name, "%s%s", panel->series[s].name, is_drawn(panel, s) ? "" : ": far above");
        put_text(f, x + 36, y + 4, "start", 12, "", name);
    }
}

bool plot_write(const struct plot *plot, const char *path)
{
    FILE *f = fopen(path, "w");
    if (!f) return false;
    const int height = HEAD + PANEL_HEIGHT * plot->panel_count;
    fprintf(f,
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" "
            "height=\"%d\" viewBox=\"0 0 %d %d\" font-family=\"sans-serif\">\n<rect width=\"100%%\" height=\"100%%\" "
            "fill=\"#ffffff\"/>\n",
            PAGE_WIDTH, height, PAGE_WIDTH, height);
    put_text(f, 20, 28, "start", 18, "font-weight=\"bold\"", plot->title);
    put_text(f, 20, 48, "start", 12, "fill=\"#555555\"", plot->subtitle);
    for (int p = 0; p < plot->panel_count; p++) {
        const struct plot_panel *panel = &plot->panel[p];
        const double top = HEAD + PANEL_HEIGHT * p + TOP;
        struct axis x, y;
        find_axes(panel, &x, &y);
        put_frame(f, panel, &x, &y, top);
        if (panel->kind == PLOT_BARS)
            put_bars(f, panel, &y, top);
        else
            put_lines(f, panel, &x, &y, top);
        put_legend(f, panel, top);
    }
    fputs("</svg>\n", f);
    const bool good = !ferror(f);
    return fclose(f) == 0 && good;
}
