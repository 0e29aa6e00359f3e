/* The comparison's lossy part: sizes at equal quality as a table and as curves, and BD-rates. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "comparison_parts.h"
#include "curves.h"
#include "headline.h"
#include "page.h"
#include "plot/plot.h"
#include "text/text.h"

enum { TARGETS = 4 };

/* The qualities at which sizes are compared, and the ranges of BD-rates. */
static const struct {
    const char *name, *unit;
    double target[TARGETS], low, high;
} metrics[METRICS] = {
    {"PSNR", "\u00a0dB", {35, 40, 45, 50}, RATE_PSNR_LOW, RATE_PSNR_HIGH},
    {"SSIM", "", {0.90, 0.95, 0.98, 0.99}, RATE_SSIM_LOW, RATE_SSIM_HIGH},
};

/* ---- Cells --------------------------------------------------------------------------------------------------- */

/* The lossy codecs, ours first, and their curves. */
struct lossy {
    const struct sums *sums;
    struct curves curves;
    size_t codecs, *codec;
    struct sums_group *group;
    size_t groups, *number;
};

static bool make_lossy(struct lossy *l, const struct sums *sums)
{
    const struct report_comparison *c = sums->c;
    *l = (struct lossy){.sums = sums};
    l->codec = calloc(c->codec_count + 1, sizeof *l->codec);
    l->number = calloc(c->image_count + 1, sizeof *l->number);
    if (!curves_make(&l->curves, c) || !l->codec || !l->number) return false;
    for (int others = 0; others < 2; others++) /* ours first */
        for (size_t k = 0; k < c->codec_count; k++) {
            if (!c->codecs[k].is_lossy || c->codecs[k].is_missing || (k == sums->ours_lossy) == others) continue;
            l->codec[l->codecs++] = k;
        }
    l->group = sums_groups(c, KEY_MODALITY, l->number, &l->groups);
    return true;
}

static void free_lossy(struct lossy *l)
{
    curves_free(&l->curves);
    free(l->codec);
    free(l->number);
    free(l->group);
}

/* ---- Bytes against Tessera's, over the quality ---------------------------------------------------------------- */

/* A codec's bytes at one quality beside ours, over the images on which both reach it. */
struct beside {
    size_t count;
    double logs;
};

/* Adds an image at a quality on the scale of curves to the sums of all codecs. */
static void add_sizes(const struct lossy *l, size_t image, enum curve_metric metric, double scaled,
                      struct rate_point *points, struct beside *sums)
{
    const size_t anchor = curves_of(&l->curves, image, l->codec[0], metric, points);
    const double ours = rate_bytes_at(points, anchor, scaled);
    for (size_t k = 0; k < l->codecs; k++) {
        const size_t count = curves_of(&l->curves, image, l->codec[k], metric, points);
        const double ratio = rate_bytes_at(points, count, scaled) / ours;
        if (!(ratio > 0) || !isfinite(ratio)) continue;
        sums[k].count++;
        sums[k].logs += log(ratio);
    }
}

/* Whether the curves have a codec: of ours the default coder and rANS, of JPEG the best, so that curves can be told
 * apart. The tables have all. */
static bool is_drawn(const struct report_codec *codec, bool is_default)
{
    static const char *const left_out[] = {"tessera-lossy-cavlc", "jpeg", "jpeg-420-optimised"};
    for (size_t i = 0; i < sizeof left_out / sizeof *left_out; i++)
        if (strcmp(codec->key, left_out[i]) == 0) return is_default;
    return true;
}

/* A mark for each codec which half of our images of a modality reach at a quality. */
static void add_marks(struct plot_panel *panel, const struct lossy *l, int metric, double scaled,
                      const struct beside *sums)
{
    char tip[160], change[TEXT_NUMBER];
    for (size_t k = 0; k < l->codecs; k++) {
        const struct report_codec *const codec = &l->sums->c->codecs[l->codec[k]];
        if (sums[k].count == 0 || 2 * sums[k].count < sums[0].count || !is_drawn(codec, k == 0)) continue;
        const double ratio = exp(sums[k].logs / (double)sums[k].count);
        snprintf(tip, sizeof tip, "%s: %s at %s %.*f%s; %zu image%s", codec->name, text_change(change, ratio),
                 metrics[metric].name, metric == METRIC_PSNR ? 0 : 4,
                 metric == METRIC_PSNR ? scaled : 1 - pow(10, -scaled / 10), metrics[metric].unit, sums[k].count,
                 sums[k].count == 1 ? "" : "s");
        plot_mark(panel, codec->name, scaled, 100 * (ratio - 1), tip);
        struct plot_series *series = plot_series(panel, codec->name);
        if (series) series->is_strong = k == 0;
    }
}

static void add_curves(struct plot *plot, const struct lossy *l, int metric, size_t group, struct rate_point *points,
                       struct beside *sums)
{
    static const struct {
        const char *label;
        double low, high, step;
    } axes[METRICS] = {{"PSNR (dB)", 30, 52, 2},
                       {"SSIM as \u221210 log10(1 \u2212 SSIM): 10 is 0.9, 20 is 0.99", 10, 25, 1}};
    char title[120];
    struct plot_panel *panel = NULL;
    snprintf(title, sizeof title, "%s: at equal %s", l->group[group].name, metrics[metric].name);
    for (double q = axes[metric].low; q <= axes[metric].high; q += axes[metric].step) {
        for (size_t k = 0; k < l->codecs; k++) sums[k] = (struct beside){0, 0};
        for (size_t i = 0; i < l->sums->c->image_count; i++)
            if (curves_cells(&l->curves, i) > 0 && l->number[i] == group)
                add_sizes(l, i, (enum curve_metric)metric, q, points, sums);
        if (sums[0].count == 0) continue;
        if (!panel) panel = plot_panel(plot, title, axes[metric].label, "bytes beside Tessera's (%)", PLOT_LINES);
        if (!panel) return;
        panel->fits_y = true;
        add_marks(panel, l, metric, q, sums);
    }
}

/* Says of how many images lossy codecs got the middle part alone. */
static void put_parts(FILE *f, const struct report_comparison *c)
{
    size_t count = 0;
    uint32_t columns = 0, rows = 0;
    for (size_t i = 0; i < c->image_count; i++) {
        const struct report_image *image = &c->images[i];
        if (image->lossy_columns == 0 || image->lossy_rows == 0) continue;
        if (image->lossy_columns == image->columns && image->lossy_rows == image->rows) continue;
        count++;
        if (image->lossy_columns > columns) columns = image->lossy_columns;
        if (image->lossy_rows > rows) rows = image->lossy_rows;
    }
    if (count == 0) return;
    fprintf(f,
            "<p class=\"small\">Of %zu large image%s, lossy codecs coded only the middle part, of at most %u \u00d7 %u "
            "samples. Their rates and qualities are of that part.</p>\n",
            count, count == 1 ? "" : "s", columns, rows);
}

/* What a dB is, and which images have none. */
static void put_measure(FILE *f, const struct report_comparison *c)
{
    char number[32];
    size_t count = 0;
    fputs(
        "<p class=\"small\">A dB is one of <code>compress</code>: 20\u00a0log10(width of the file's first window / "
        "RMSE) "
        "over the samples whose original lies inside the window; of colour, and of images without a window, "
        "20\u00a0log10(255 / RMSE) over all samples of the 8-bit picture. SSIM is the mean over the same samples, each "
        "the middle of a Gaussian window of 11 \u00d7 11 (\u03c3 1.5, L = 255). <a href=\"#made\">The last section</a> "
        "lists the windows.</p>\n",
        f);
    for (size_t i = 0; i < c->image_count; i++) count += c->images[i].lossy_columns > 0 && !c->images[i].is_judged;
    if (count == 0) return;
    fprintf(f,
            "<p class=\"warning\">%zu image%s not judged: fewer than 256 samples, or 0.1\u00a0%%, lie inside the "
            "window (",
            count, count == 1 ? " is" : "s are");
    enum { NAMES = 10 };
    for (size_t i = 0, named = 0; i < c->image_count && named < NAMES; i++) {
        const struct report_image *const image = &c->images[i];
        if (image->lossy_columns == 0 || image->is_judged) continue;
        fputs(named++ > 0 ? ", " : "", f);
        text_escape(f, sums_name(image, number));
    }
    fputs(count > NAMES ? ", \u2026).</p>\n" : ").</p>\n", f);
}

static void put_curves(FILE *f, const struct lossy *l, struct rate_point *points)
{
    struct plot plot = {.shares_legend = true};
    struct beside *const sums = calloc(l->codecs + 1, sizeof *sums);
    for (size_t g = 0; g < l->groups && sums && l->sums->ours_lossy != SUMS_NONE; g++)
        for (int m = 0; m < METRICS; m++) add_curves(&plot, l, m, g, points, sums);
    fputs("<h3>Bytes against Tessera's over the quality, by modality</h3>\n", f);
    fputs(
        "<p class=\"small\">Above 0 the codec needs more bytes than Tessera at the same quality, below 0 fewer. Each "
        "point is the geometric mean over the images of the modality on which both reach the quality: at least half of "
        "those that Tessera reaches it on. The tables have all codecs and coders.</p>\n",
        f);
    put_measure(f, l->sums->c);
    put_parts(f, l->sums->c);
    plot_write_figures(f, &plot);
    plot_free(&plot);
    free(sums);
}

/* ---- Sizes at equal quality ---------------------------------------------------------------------------------- */

static void put_size_cells(FILE *f, const struct lossy *l, const struct beside *sums)
{
    char text[2 * TEXT_NUMBER], change[TEXT_NUMBER];
    page_cell_count(f, sums[0].count);
    for (size_t k = 1; k < l->codecs; k++) {
        const double ratio = exp(sums[k].logs / (double)sums[k].count);
        if (sums[k].count == 0) {
            page_cell_none(f, "no image on which both reach this quality");
            continue;
        }
        snprintf(text, sizeof text, "%s (%zu)", text_change(change, ratio), sums[k].count);
        page_cell_number(f, ratio, text, false);
    }
    fputs("</tr>\n", f);
}

static void put_size_row(FILE *f, const struct lossy *l, enum curve_metric metric, double target,
                         struct rate_point *points, struct beside *sums)
{
    for (size_t k = 0; k < l->codecs; k++) sums[k] = (struct beside){0, 0};
    for (size_t i = 0; i < l->sums->c->image_count; i++)
        if (curves_cells(&l->curves, i) > 0) add_sizes(l, i, metric, curves_scale(metric, target), points, sums);
    fprintf(f, "<tr><th scope=\"row\">%s %.*f%s</th>", metrics[metric].name, metric == METRIC_PSNR ? 0 : 2, target,
            metrics[metric].unit);
    put_size_cells(f, l, sums);
}

/* Both measures of a level of --quality. */
static void put_level_row(FILE *f, const struct lossy *l, const struct headline_level *level, struct rate_point *points,
                          struct beside *sums)
{
    for (size_t k = 0; k < l->codecs; k++) sums[k] = (struct beside){0, 0};
    for (size_t i = 0; i < l->sums->c->image_count; i++) {
        const double ours = headline_bytes(&l->curves, i, l->codec[0], level, points);
        for (size_t k = 0; k < l->codecs; k++) {
            const double ratio = headline_bytes(&l->curves, i, l->codec[k], level, points) / ours;
            if (isnan(ratio)) continue;
            sums[k].count++;
            sums[k].logs += log(ratio);
        }
    }
    fprintf(f, "<tr><th scope=\"row\">%s: %g\u00a0dB and %g</th>", level->name, level->psnr_db, level->ssim);
    put_size_cells(f, l, sums);
}

static void put_sizes(FILE *f, const struct lossy *l, struct rate_point *points)
{
    struct beside *const sums = calloc(l->codecs + 1, sizeof *sums);
    if (!sums || l->sums->ours_lossy == SUMS_NONE) {
        free(sums);
        return;
    }
    fputs("<h3>Size at equal quality</h3>\n", f);
    page_table(f, "Bytes against Tessera's at equal quality", "", "sizes");
    fputs("<thead><tr>", f);
    page_head(f, "At", false, false);
    page_head(f, "Tessera's images", true, false);
    for (size_t k = 1; k < l->codecs; k++) page_head(f, l->sums->c->codecs[l->codec[k]].name, true, false);
    fputs("</tr></thead>\n<tbody>\n", f);
    for (size_t i = 0; i < HEADLINE_LEVELS; i++) put_level_row(f, l, &headline_levels[i], points, sums);
    for (int m = 0; m < METRICS; m++)
        for (int t = 0; t < TARGETS; t++) put_size_row(f, l, (enum curve_metric)m, metrics[m].target[t], points, sums);
    fputs("</tbody>\n", f);
    page_table_end(f);
    fputs("<p class=\"small\">The codec's bytes against Tessera's at equal quality: with + it needs more, with \u2212 "
          "fewer. Geometric means over the images on which both reach the quality; their number is in brackets.</p>\n",
          f);
    free(sums);
}

/* ---- BD-rates ------------------------------------------------------------------------------------------------ */

struct bd {
    size_t count;
    double logs;
};

/* Adds an image's BD-rates of all codecs against the first to the sums of its modality, and of all. */
static void add_bd(const struct lossy *l, size_t image, enum curve_metric metric, struct rate_point *points,
                   struct bd *sums)
{
    for (size_t k = 1; k < l->codecs; k++) {
        const double ratio = curves_bd(&l->curves, image, l->codec[k], l->codec[0], metric, points);
        if (!isfinite(ratio)) continue;
        struct bd *const row = sums + k * (l->groups + 1);
        for (int both = 0; both < 2; both++) {
            struct bd *const sum = &row[both ? l->number[image] + 1 : 0];
            sum->count++;
            sum->logs += log(ratio);
        }
    }
}

static void put_bd(FILE *f, const struct lossy *l, enum curve_metric metric, struct rate_point *points)
{
    char label[120], text[3 * TEXT_NUMBER], change[TEXT_NUMBER];
    struct bd *const sums = calloc(l->codecs * (l->groups + 1), sizeof *sums);
    if (!sums) return;
    for (size_t i = 0; i < l->sums->c->image_count; i++)
        if (curves_cells(&l->curves, i) > 0) add_bd(l, i, metric, points, sums);
    snprintf(label, sizeof label, "BD-rate against Tessera, %s %g to %g%s", metrics[metric].name, metrics[metric].low,
             metrics[metric].high, metrics[metric].unit);
    fputs("<h3>", f);
    text_escape(f, label);
    fputs("</h3>\n", f);
    page_table(f, label, "", NULL);
    fputs("<thead><tr>", f);
    page_head(f, "Codec", false, true);
    page_head(f, "All images", true, true);
    for (size_t g = 0; g < l->groups; g++) page_head(f, l->group[g].name, true, true);
    fputs("</tr></thead>\n<tbody>\n", f);
    for (size_t k = 1; k < l->codecs; k++) {
        fputs("<tr><th scope=\"row\">", f);
        text_escape(f, l->sums->c->codecs[l->codec[k]].name);
        fputs("</th>", f);
        for (size_t g = 0; g <= l->groups; g++) {
            const struct bd *sum = &sums[k * (l->groups + 1) + g];
            const double ratio = exp(sum->logs / (double)sum->count);
            if (sum->count == 0) {
                page_cell_none(f, "no image on which both curves reach the range");
                continue;
            }
            snprintf(text, sizeof text, "%s (%zu)", text_change(change, ratio), sum->count);
            page_cell_number(f, ratio, text, false);
        }
        fputs("</tr>\n", f);
    }
    fputs("</tbody>\n", f);
    page_table_end(f);
    free(sums);
}

/* How far interpolated sizes are from those of pictures that were coded to check them. */
static void put_check(FILE *f, const struct lossy *l, struct rate_point *points)
{
    size_t checked = 0;
    double sum = 0, largest = 0;
    for (size_t image = 0; image < l->sums->c->image_count; image++)
        for (size_t i = l->curves.first[image]; i < l->curves.first[image + 1]; i++) {
            const struct report_cell *cell = l->curves.cell[i];
            if (!cell->is_check) continue;
            const size_t count = curves_of(&l->curves, image, cell->codec, METRIC_PSNR, points);
            const double error = fabs(rate_bytes_at(points, count, cell->psnr_db) / (double)cell->bytes - 1);
            if (!isfinite(error)) continue;
            checked++;
            sum += error;
            largest = fmax(largest, error);
        }
    fputs(
        "<p class=\"small\">A positive BD-rate means that the codec needs more bytes than Tessera at equal quality; "
        "the "
        "number of images on which both curves reach the whole range is in brackets. Between points, log(bytes) is "
        "interpolated over the quality by piecewise cubic polynomials that keep it monotone (PCHIP; Fritsch and "
        "Butland 1984), SSIM on the scale \u221210 log10(1 \u2212 SSIM). Nothing is extrapolated. The mean over images "
        "is geometric. ",
        f);
    if (checked > 0)
        fprintf(
            f,
            "The interpolation was checked at %zu more coded picture%s: the size differs by %.2f\u00a0%% on average, "
            "by %.2f\u00a0%% at most.",
            checked, checked == 1 ? "" : "s", 100 * sum / (double)checked, 100 * largest);
    else
        fputs("The interpolation was not checked by more coded pictures.", f);
    fputs("</p>\n", f);
}

void comparison_write_lossy(FILE *f, const struct sums *sums)
{
    struct lossy l;
    const bool good = make_lossy(&l, sums);
    struct rate_point *const points = good ? calloc(2 * l.curves.most + 2, sizeof *points) : NULL;
    page_section(f, "lossy", "Lossy codecs");
    if (!points) {
        fputs("<p class=\"warning\">Memory ended: this section is missing.</p>\n", f);
    } else if (l.curves.most == 0) {
        fputs("<p>No lossy codec was compared on an image that is judged.</p>\n", f);
        put_measure(f, sums->c);
    } else {
        put_sizes(f, &l, points);
        put_curves(f, &l, points);
        for (int m = 0; m < METRICS && sums->ours_lossy != SUMS_NONE && l.codecs > 1; m++)
            put_bd(f, &l, (enum curve_metric)m, points);
        put_check(f, &l, points);
    }
    page_section_end(f);
    free(points);
    free_lossy(&l);
}
