/* Rate curves of the lossy codecs of a comparison, image by image. What tables and pages say of them comes from here.
 */
#ifndef TSR_APP_REPORT_CURVES_H
#define TSR_APP_REPORT_CURVES_H

#include <stdbool.h>

#include "model.h"
#include "rates.h"

enum curve_metric { METRIC_PSNR, METRIC_SSIM, METRICS };

/* The cells of lossy codecs that are done, by image. */
struct curves {
    const struct report_comparison *c;
    const struct report_cell **cell;
    size_t *first; /* of image i's cells; image_count + 1 of them */
    size_t most;   /* cells of an image */
};

/* false: no memory. curves_free in any case. */
bool curves_make(struct curves *curves, const struct report_comparison *comparison);
void curves_free(struct curves *curves);

static inline size_t curves_cells(const struct curves *curves, size_t image)
{
    return curves->first[image + 1] - curves->first[image];
}

/* Whether a codec has a cell of an image. */
bool curves_hold(const struct curves *curves, size_t image, size_t codec);

/* A cell's quality, as it is stated: PSNR in dB, or SSIM. */
double curves_quality(enum curve_metric metric, const struct report_cell *cell);

/* A stated quality on the scale of rate curves. */
double curves_scale(enum curve_metric metric, double quality);

/* An image's clean curve of one codec, without the cells that check it. points has room for curves->most. */
size_t curves_of(const struct curves *curves, size_t image, size_t codec, enum curve_metric metric,
                 struct rate_point *points);

/* The BD-rate of a codec against another one on an image, over the metric's range (rates.h), as a ratio of bytes; NaN:
 * one of them does not reach the range. points has room for twice curves->most. */
double curves_bd(const struct curves *curves, size_t image, size_t codec, size_t against, enum curve_metric metric,
                 struct rate_point *points);

#endif
