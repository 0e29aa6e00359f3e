/* Plots as SVG, which any browser shows without script: alone in a file, or as figures of a page. No library is
 * needed. Nothing is left out: panels, series, marks and groups grow as they are added. */
#ifndef TSR_APP_REPORT_PLOT_H
#define TSR_APP_REPORT_PLOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum { PLOT_TEXT = 96 };

struct plot_mark {
    double x, y;
    char *tip; /* shown where the pointer rests; NULL: the series' name and the values */
};

struct plot_series {
    char *name;
    char *note;     /* PLOT_ROWS: stands at the bar's right end; else NULL */
    bool is_limit;  /* drawn dashed and grey: a bound that no series can exceed */
    bool is_strong; /* drawn thicker: what the reader looks for */
    int look;       /* its colour, marker and dashes: the same for all series of a name in a plot */
    size_t count, capacity;
    struct plot_mark *mark; /* by x */
};

enum plot_kind {
    PLOT_LINES,
    PLOT_LINES_LOG_X,
    PLOT_BARS,     /* upright, in groups: x is the number of a group */
    PLOT_ROWS,     /* a horizontal bar a series, x long */
    PLOT_SCATTER,  /* x is logarithmic; marks that no other exceeds in both x and y are joined as the Pareto front */
    PLOT_HISTOGRAM /* of the marks' x; y is not used */
};

struct plot_panel {
    struct plot *plot;
    char *title, *x_label, *y_label;
    enum plot_kind kind;
    bool fits_y;        /* the y axis begins near the lowest mark; else at 0 */
    double x_reference; /* a vertical line that divides better from worse; 0: none */
    size_t series_count, series_capacity;
    struct plot_series *series;
    size_t group_count, group_capacity;
    char **group;
};

/* All zero at first. */
struct plot {
    char title[PLOT_TEXT], subtitle[2 * PLOT_TEXT];
    bool shares_legend; /* in a page: one legend for all panels */
    bool has_failed;    /* memory ended: plot_write refuses */
    size_t panel_count, panel_capacity;
    struct plot_panel **panel;
    size_t name_count, name_capacity;
    char **name; /* of series, by look */
};

/* The panel of this title, created if there is none yet. NULL: no memory. Texts are copied here and below. */
struct plot_panel *plot_panel(struct plot *plot, const char *title, const char *x_label, const char *y_label,
                              enum plot_kind kind);

/* The series of this name, created if there is none yet. NULL: no memory. It is valid until the panel's next one. */
struct plot_series *plot_series(struct plot_panel *panel, const char *name);

/* Adds a mark. tip may be NULL. */
void plot_mark(struct plot_panel *panel, const char *series, double x, double y, const char *tip);

/* Adds a mark to a series, which is a limit or not. */
void plot_point(struct plot_panel *panel, const char *series, bool is_limit, double x, double y);

/* The number of the group of bars of this name, which is created if there is none yet. */
double plot_group(struct plot_panel *panel, const char *name);

/* Writes the plot as an SVG file; false, with errno: the file could not be written. */
bool plot_write(const struct plot *plot, const char *path);

/* Writes all panels as figures of an HTML page. Buttons of the legends hide and show series where script runs. */
void plot_write_figures(FILE *f, const struct plot *plot);

void plot_free(struct plot *plot);

/* The indices of the marks, among all of the panel's, series by series, that form the Pareto front, by x; returns
 * their number. front has room for all. */
size_t plot_front(const struct plot_panel *panel, struct plot_mark *front);

#endif
