/* Figures of a page: panels in HTML, with legends that are buttons. See plot.h. */
#include "svg.h"
#include "app/report/text/text.h"

enum { FIGURE_WIDTH = 460, FIGURE_HEIGHT = 300 };

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
