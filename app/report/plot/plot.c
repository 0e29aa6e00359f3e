/* Plots: their panels, series and marks, which callers add. plot_svg.c draws them. See plot.h. */
#include <stdlib.h>
#include <string.h>

#include "plot.h"

/* Makes room for one more element in the array that the pointer at list points to; false: no memory. */
static bool grow(void *list, size_t count, size_t *capacity, size_t size)
{
    if (count < *capacity) return true;
    const size_t more = *capacity ? 2 * *capacity : 8;
    void *old;
    memcpy(&old, list, sizeof old);
    void *const grown = realloc(old, more * size);
    if (!grown) return false;
    memcpy(list, &grown, sizeof grown);
    *capacity = more;
    return true;
}

static char *copy(struct plot *plot, const char *text)
{
    char *const copied = strdup(text ? text : "");
    if (!copied) plot->has_failed = true;
    return copied;
}

struct plot_panel *plot_panel(struct plot *plot, const char *title, const char *x_label, const char *y_label,
                              enum plot_kind kind)
{
    for (size_t i = 0; i < plot->panel_count; i++)
        if (!strcmp(plot->panel[i]->title, title)) return plot->panel[i];
    struct plot_panel *const panel = calloc(1, sizeof *panel);
    if (!panel || !grow(&plot->panel, plot->panel_count, &plot->panel_capacity, sizeof *plot->panel)) {
        plot->has_failed = true;
        free(panel);
        return NULL;
    }
    panel->plot = plot;
    panel->title = copy(plot, title);
    panel->x_label = copy(plot, x_label);
    panel->y_label = copy(plot, y_label);
    panel->kind = kind;
    plot->panel[plot->panel_count++] = panel;
    if (panel->title && panel->x_label && panel->y_label) return panel;
    plot->panel_count--; /* a panel without texts cannot be told from others */
    free(panel->title);
    free(panel->x_label);
    free(panel->y_label);
    free(panel);
    return NULL;
}

/* The number of a text in a list, where it is added if it is not there; the list's length: no memory. */
static size_t number_of(struct plot *plot, char ***list, size_t *count, size_t *capacity, const char *text)
{
    for (size_t i = 0; i < *count; i++)
        if (!strcmp((*list)[i], text)) return i;
    char *const copied = copy(plot, text);
    if (!copied || !grow(list, *count, capacity, sizeof **list)) {
        plot->has_failed = true;
        free(copied);
        return *count;
    }
    (*list)[*count] = copied;
    return (*count)++;
}

struct plot_series *plot_series(struct plot_panel *panel, const char *name)
{
    struct plot *const plot = panel->plot;
    for (size_t i = 0; i < panel->series_count; i++)
        if (!strcmp(panel->series[i].name, name)) return &panel->series[i];
    if (!grow(&panel->series, panel->series_count, &panel->series_capacity, sizeof *panel->series)) {
        plot->has_failed = true;
        return NULL;
    }
    struct plot_series *const series = &panel->series[panel->series_count];
    memset(series, 0, sizeof *series);
    series->look = (int)number_of(plot, &plot->name, &plot->name_count, &plot->name_capacity, name);
    series->name = copy(plot, name);
    if (!series->name) return NULL;
    panel->series_count++;
    return series;
}

static void add_mark(struct plot_panel *panel, struct plot_series *series, double x, double y, const char *tip)
{
    struct plot *const plot = panel->plot;
    const bool sorts = panel->kind != PLOT_HISTOGRAM; /* which may have a mark an image */
    char *const copied = tip ? copy(plot, tip) : NULL;
    if ((tip && !copied) || !grow(&series->mark, series->count, &series->capacity, sizeof *series->mark)) {
        plot->has_failed = true;
        free(copied);
        return;
    }
    size_t at = series->count++;
    for (; sorts && at > 0 && series->mark[at - 1].x > x; at--) series->mark[at] = series->mark[at - 1];
    series->mark[at] = (struct plot_mark){x, y, copied};
}

void plot_mark(struct plot_panel *panel, const char *name, double x, double y, const char *tip)
{
    struct plot_series *const series = plot_series(panel, name);
    if (series) add_mark(panel, series, x, y, tip);
}

void plot_point(struct plot_panel *panel, const char *name, bool is_limit, double x, double y)
{
    struct plot_series *const series = plot_series(panel, name);
    if (!series) return;
    series->is_limit = is_limit;
    add_mark(panel, series, x, y, NULL);
}

double plot_group(struct plot_panel *panel, const char *name)
{
    return (double)number_of(panel->plot, &panel->group, &panel->group_count, &panel->group_capacity, name);
}

static void free_panel(struct plot_panel *panel)
{
    for (size_t s = 0; s < panel->series_count; s++) {
        for (size_t i = 0; i < panel->series[s].count; i++) free(panel->series[s].mark[i].tip);
        free(panel->series[s].mark);
        free(panel->series[s].name);
        free(panel->series[s].note);
    }
    for (size_t i = 0; i < panel->group_count; i++) free(panel->group[i]);
    free(panel->series);
    free(panel->group);
    free(panel->title);
    free(panel->x_label);
    free(panel->y_label);
    free(panel);
}

void plot_free(struct plot *plot)
{
    for (size_t p = 0; p < plot->panel_count; p++) free_panel(plot->panel[p]);
    for (size_t i = 0; i < plot->name_count; i++) free(plot->name[i]);
    free(plot->panel);
    free(plot->name);
    memset(plot, 0, sizeof *plot);
}

static int by_x_then_best(const void *left, const void *right)
{
    const struct plot_mark *const a = left, *const b = right;
    if (a->x != b->x) return a->x < b->x ? -1 : 1;
    return a->y > b->y ? -1 : a->y < b->y;
}

size_t plot_front(const struct plot_panel *panel, struct plot_mark *front)
{
    size_t all = 0, kept = 0;
    for (size_t s = 0; s < panel->series_count; s++)
        for (size_t i = 0; i < panel->series[s].count; i++) front[all++] = panel->series[s].mark[i];
    if (all > 0) qsort(front, all, sizeof *front, by_x_then_best);
    for (size_t i = 0; i < all; i++) { /* drops all marks that this one exceeds in y and not falls short of in x */
        while (kept > 0 && front[kept - 1].y <= front[i].y) kept--;
        if (kept == 0 || front[kept - 1].x < front[i].x) front[kept++] = front[i];
    }
    return kept;
}
