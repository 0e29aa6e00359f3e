/* How plots are drawn: what the files of this folder share.
 *
 * Colours are attributes, so that a file shows them alone; their classes (s0 and on: stroke, f0 and on: fill) let a
 * page's style change them for a dark background. Text, axes and grid have the current colour. */
#ifndef TSR_APP_REPORT_PLOT_SVG_H
#define TSR_APP_REPORT_PLOT_SVG_H

#include "plot.h"

enum { COLOURS = 12, DASHES = 5, MARKERS = 8, ROW = 34 /* pixels of a row of PLOT_ROWS */ };
extern const char *const colours[COLOURS];
extern const char *const dashes[DASHES];

/* Where a panel's axes stand, in pixels, and the size of its text. */
struct frame {
    double left, top, width, height, size;
};

struct axis {
    double low, high, step; /* step: between ticks, if the axis is linear */
    bool log;
};

/* axes.c */

/* Where a value stands between the ends of its axis: 0 to 1. */
double scaled(const struct axis *axis, double value);
double tick_step(double range, int count); /* the distance of at most so many ticks */
void find_axes(const struct plot_panel *panel, struct axis *x, struct axis *y, int ticks);
bool is_drawn(const struct plot_panel *panel, size_t s); /* false: a limit far above all else, which the legend says */

/* more: further attributes. */
void put_text(FILE *f, double x, double y, const char *anchor, double size, const char *more, const char *text);
void put_line(FILE *f, double x1, double y1, double x2, double y2, const char *style);
void put_tip(FILE *f, const struct plot_series *series, const struct plot_mark *mark);
void put_marker(FILE *f, double x, double y, const struct plot_series *series); /* closed by put_tip and </path> */
const char *stroke_of(char text[192], const struct plot_series *series);        /* the attributes of its line */
int colour_of(const struct plot_series *series);
void begin_series(FILE *f, const char *name); /* ended by </g> */
void put_frame(FILE *f, const struct plot_panel *panel, const struct frame *frame, const struct axis *x,
               const struct axis *y);

/* kinds.c */

void put_panel(FILE *f, const struct plot_panel *panel, const struct frame *frame);

/* PLOT_ROWS: bars one below the other. */
void put_rows(FILE *f, const struct plot_panel *panel, double top, double row);

/* What a legend shows of a series. */
void put_swatch(FILE *f, const struct plot_panel *panel, const struct plot_series *series, double x, double y);

#endif
