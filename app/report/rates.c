/* Rate curves. See rates.h. */
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "rates.h"

static int by_bytes(const void *left, const void *right)
{
    const struct rate_point *const a = left, *const b = right;
    if (a->bytes != b->bytes) return a->bytes < b->bytes ? -1 : 1;
    return a->quality > b->quality ? -1 : a->quality < b->quality;
}

size_t rate_clean(struct rate_point *points, size_t count)
{
    size_t finite = 0, kept = 0;
    for (size_t i = 0; i < count; i++)
        if (isfinite(points[i].quality) && isfinite(points[i].bytes) && points[i].bytes > 0)
            points[finite++] = points[i];
    if (finite > 1) qsort(points, finite, sizeof *points, by_bytes);
    for (size_t i = 0; i < finite; i++)
        if (kept == 0 || points[i].quality > points[kept - 1].quality) points[kept++] = points[i];
    return kept;
}

static double log_step(const struct rate_point *p, size_t i)
{
    return log(p[i + 1].bytes / p[i].bytes) / (p[i + 1].quality - p[i].quality);
}

/* The slope at an end of the curve: of the parabola through three points, as far as it keeps the shape. near: the
 * interval at the end; next: the one after it. */
static double end_slope(double near_width, double next_width, double near_step, double next_step)
{
    const double slope =
        ((2 * near_width + next_width) * near_step - near_width * next_step) / (near_width + next_width);
    if (slope * near_step <= 0) return 0;
    if (near_step * next_step <= 0 && fabs(slope) > 3 * fabs(near_step)) return 3 * near_step;
    return slope;
}

static double slope_at(const struct rate_point *p, size_t count, size_t i)
{
    if (count == 2) return log_step(p, 0);
    const size_t left = i == 0 ? 0 : i == count - 1 ? count - 3 : i - 1;
    const double widths[2] = {p[left + 1].quality - p[left].quality, p[left + 2].quality - p[left + 1].quality};
    const double steps[2] = {log_step(p, left), log_step(p, left + 1)};
    if (i == 0) return end_slope(widths[0], widths[1], steps[0], steps[1]);
    if (i == count - 1) return end_slope(widths[1], widths[0], steps[1], steps[0]);
    if (steps[0] * steps[1] <= 0) return 0;
    const double w0 = 2 * widths[1] + widths[0], w1 = widths[1] + 2 * widths[0];
    return (w0 + w1) / (w0 / steps[0] + w1 / steps[1]);
}

/* The polynomial of log(bytes) in t, the quality above that of point i. */
static void polynomial(const struct rate_point *p, size_t count, size_t i, double c[4])
{
    const double h = p[i + 1].quality - p[i].quality, step = log_step(p, i);
    const double s0 = slope_at(p, count, i), s1 = slope_at(p, count, i + 1);
    c[0] = log(p[i].bytes);
    c[1] = s0;
    c[2] = (3 * step - 2 * s0 - s1) / h;
    c[3] = (s0 + s1 - 2 * step) / (h * h);
}

double rate_bytes_at(const struct rate_point *points, size_t count, double quality)
{
    double c[4];
    size_t i = 0;
    if (count == 0 || !(quality >= points[0].quality && quality <= points[count - 1].quality)) return NAN;
    if (count == 1) return points[0].bytes;
    while (i + 2 < count && points[i + 1].quality < quality) i++;
    if (quality == points[i].quality) return points[i].bytes;
    if (quality == points[i + 1].quality) return points[i + 1].bytes;
    polynomial(points, count, i, c);
    const double t = quality - points[i].quality;
    return exp(c[0] + t * (c[1] + t * (c[2] + t * c[3])));
}

/* The integral of log(bytes) over the qualities low to high, which the curve reaches. */
static double integral(const struct rate_point *p, size_t count, double low, double high)
{
    double sum = 0, c[4];
    for (size_t i = 0; i + 1 < count; i++) {
        const double from = fmax(low, p[i].quality) - p[i].quality, to = fmin(high, p[i + 1].quality) - p[i].quality;
        if (!(to > from)) continue;
        polynomial(p, count, i, c);
        for (int k = 0; k < 4; k++) sum += c[k] * (pow(to, k + 1) - pow(from, k + 1)) / (k + 1);
    }
    return sum;
}

static bool reaches(const struct rate_point *points, size_t count, double low, double high)
{
    return count >= 2 && points[0].quality <= low && points[count - 1].quality >= high;
}

double rate_bd(const struct rate_point *anchor, size_t anchor_count, const struct rate_point *points, size_t count,
               double low, double high)
{
    if (!(high > low) || !reaches(anchor, anchor_count, low, high) || !reaches(points, count, low, high)) return NAN;
    return exp((integral(points, count, low, high) - integral(anchor, anchor_count, low, high)) / (high - low));
}

double rate_ssim_db(double ssim)
{
    return ssim < 1 ? -10 * log10(1 - ssim) : ssim >= 1 ? INFINITY : NAN;
}
