/* Rate curves, image by image. See curves.h. */
#include <stdlib.h>

#include "curves.h"

/* The cell if it is a point of a lossy codec's curve, or one that checks it; else NULL. An image that is not judged has
 * no curves. */
static const struct report_cell *lossy_cell(const struct report_comparison *c, size_t i)
{
    const struct report_cell *const cell = &c->cells[i];
    if (cell->image >= c->image_count || cell->codec >= c->codec_count) return NULL;
    const struct report_codec *const codec = &c->codecs[cell->codec];
    const bool is_done = cell->outcome == CELL_DONE && cell->bytes > 0;
    return codec->is_lossy && !codec->is_missing && is_done && c->images[cell->image].is_judged ? cell : NULL;
}

bool curves_make(struct curves *curves, const struct report_comparison *c)
{
    *curves = (struct curves){.c = c};
    curves->cell = calloc(c->cell_count + 1, sizeof *curves->cell);
    curves->first = calloc(c->image_count + 2, sizeof *curves->first);
    if (!curves->cell || !curves->first) return false;
    size_t *const place = curves->first + 1; /* of image i's next cell; at last, image i + 1's first */
    for (size_t i = 0; i < c->cell_count; i++) {
        const struct report_cell *const cell = lossy_cell(c, i);
        if (cell) place[cell->image + 1]++;
    }
    for (size_t i = 1; i <= c->image_count; i++) {
        if (place[i] > curves->most) curves->most = place[i];
        place[i] += place[i - 1];
    }
    for (size_t i = 0; i < c->cell_count; i++) {
        const struct report_cell *const cell = lossy_cell(c, i);
        if (cell) curves->cell[place[cell->image]++] = cell;
    }
    return true;
}

void curves_free(struct curves *curves)
{
    free(curves->cell);
    free(curves->first);
}

bool curves_hold(const struct curves *curves, size_t image, size_t codec)
{
    for (size_t i = curves->first[image]; i < curves->first[image + 1]; i++)
        if (curves->cell[i]->codec == codec) return true;
    return false;
}

double curves_quality(enum curve_metric metric, const struct report_cell *cell)
{
    return metric == METRIC_SSIM ? cell->ssim : cell->psnr_db;
}

double curves_scale(enum curve_metric metric, double quality)
{
    return metric == METRIC_SSIM ? rate_ssim_db(quality) : quality;
}

size_t curves_of(const struct curves *curves, size_t image, size_t codec, enum curve_metric metric,
                 struct rate_point *points)
{
    size_t count = 0;
    for (size_t i = curves->first[image]; i < curves->first[image + 1]; i++) {
        const struct report_cell *const cell = curves->cell[i];
        if (cell->codec != codec || cell->is_check) continue;
        points[count++] = (struct rate_point){(double)cell->bytes, curves_scale(metric, curves_quality(metric, cell))};
    }
    return rate_clean(points, count);
}

double curves_bd(const struct curves *curves, size_t image, size_t codec, size_t against, enum curve_metric metric,
                 struct rate_point *points)
{
    static const double low[METRICS] = {RATE_PSNR_LOW, RATE_SSIM_LOW}, high[METRICS] = {RATE_PSNR_HIGH, RATE_SSIM_HIGH};
    struct rate_point *const others = points + curves->most;
    const size_t count = curves_of(curves, image, codec, metric, points),
                 other_count = curves_of(curves, image, against, metric, others);
    return rate_bd(others, other_count, points, count, curves_scale(metric, low[metric]),
                   curves_scale(metric, high[metric]));
}
