/* Plots as SVG: panels of lines or bars, one below the other, which any browser shows. No library is needed. */
#ifndef TSR_APP_REPORT_PLOT_H
#define TSR_APP_REPORT_PLOT_H

#include <stdbool.h>

enum { PLOT_PANELS_LIMIT = 16, PLOT_SERIES_LIMIT = 16, PLOT_POINTS_LIMIT = 48, PLOT_TEXT = 96 };

struct plot_series {
    char name[PLOT_TEXT];
    bool is_limit; /* drawn dashed and grey: a bound that no series can exceed */
    int points;
    double x[PLOT_POINTS_LIMIT], y[PLOT_POINTS_LIMIT];
};

enum plot_kind { PLOT_LINES, PLOT_LINES_LOG_X, PLOT_BARS };

struct plot_panel {
    char title[PLOT_TEXT];
    const char *x_label, *y_label;
    enum plot_kind kind;
    int series_count;
    struct plot_series series[PLOT_SERIES_LIMIT];
    int group_count; /* bars: x is the number of a group */
    char group[PLOT_POINTS_LIMIT][PLOT_TEXT];
};

struct plot {
    char title[PLOT_TEXT], subtitle[2 * PLOT_TEXT];
    int panel_count;
    int left_out; /* number of panels that did not fit in */
    struct plot_panel panel[PLOT_PANELS_LIMIT];
};

/* The panel of this title, created if there is none yet. NULL: there are PLOT_PANELS_LIMIT panels already. */
struct plot_panel *plot_panel(struct plot *plot, const char *title, const char *x_label, const char *y_label,
                              enum plot_kind kind);

/* Adds a point to the series of this name, which is created if there is none yet. Series and points above the limits
 * are left out. */
void plot_point(struct plot_panel *panel, const char *series, bool is_limit, double x, double y);

/* The number of the group of bars of this name, which is created if there is none yet. */
double plot_group(struct plot_panel *panel, const char *name);

/* Writes the file; false, with errno: the file could not be written. */
bool plot_write(const struct plot *plot, const char *path);

#endif
