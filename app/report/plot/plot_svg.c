/* A plot as a file of SVG: its panels one below the other, with their legends at the right. See plot.h. */
#include <errno.h>
#include <math.h>

#include "svg.h"

/* Pixels. */
enum { LEFT = 84, WIDTH = 640, RIGHT = 230, TOP = 44, HEIGHT = 330, BOTTOM = 62, HEAD = 64 };
enum { PAGE_WIDTH = LEFT + WIDTH + RIGHT };

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
