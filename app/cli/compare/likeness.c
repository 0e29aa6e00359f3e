/* PSNR, SSIM and MS-SSIM; see the header. */
#include "likeness.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum { TAPS = 11, SCALES = 5, LEAST_SIDE = 161, MAPS = 5 };

/* One channel of both pictures at one scale. */
struct plane {
    size_t columns, rows;
    double *a, *b;
    uint8_t *inside; /* NULL: all samples count */
};

static void make_window(double window[TAPS])
{
    double sum = 0;
    for (int i = 0; i < TAPS; i++) sum += window[i] = exp(-(i - TAPS / 2) * (i - TAPS / 2) / (2 * 1.5 * 1.5));
    for (int i = 0; i < TAPS; i++) window[i] /= sum;
}

/* A row of both pictures through the window: the means of a, b, a^2, b^2 and ab. */
static void filter_row(const double window[TAPS], const double *a, const double *b, size_t count, double *maps)
{
    memset(maps, 0, MAPS * count * sizeof *maps);
    for (int t = 0; t < TAPS; t++) {
        const double w = window[t];
        for (size_t x = 0; x < count; x++) {
            const double p = a[x + (size_t)t], q = b[x + (size_t)t];
            maps[x] += w * p;
            maps[count + x] += w * q;
            maps[2 * count + x] += w * p * p;
            maps[3 * count + x] += w * q * q;
            maps[4 * count + x] += w * p * q;
        }
    }
}

/* Sums over windows: of luminance times structure, and of contrast times structure alone. */
struct sums_of_windows {
    double ssim, structure;
    size_t count;
};

/* Adds what the maps say of one row of windows. inside: of their middle samples, or NULL. */
static void add_windows(const double *maps, size_t count, const uint8_t *inside, struct sums_of_windows *sums)
{
    const double c1 = 0.01 * 255 * 0.01 * 255, c2 = 0.03 * 255 * 0.03 * 255;
    double all = 0, contrast = 0;
    for (size_t x = 0; x < count; x++) {
        if (inside && !inside[x]) continue;
        const double ma = maps[x], mb = maps[count + x];
        const double va = maps[2 * count + x] - ma * ma, vb = maps[3 * count + x] - mb * mb;
        const double cov = maps[4 * count + x] - ma * mb;
        const double cs = (2 * cov + c2) / (va + vb + c2);
        contrast += cs;
        all += cs * (2 * ma * mb + c1) / (ma * ma + mb * mb + c1);
        sums->count++;
    }
    sums->ssim += all;
    sums->structure += contrast;
}

/* The mean SSIM of a plane, and the mean without its luminance; NaN: no window counts. False: no memory. */
static bool compare_plane(const struct plane *p, double *ssim, double *structure)
{
    double window[TAPS];
    const size_t count = p->columns - TAPS + 1;
    struct sums_of_windows found = {0, 0, 0};
    double *const ring = malloc((TAPS + 1) * MAPS * count * sizeof *ring), *const sums = ring;
    if (!ring) return false;
    double *const rows = ring + MAPS * count;
    make_window(window);
    for (size_t y = 0; y < p->rows; y++) {
        filter_row(window, p->a + y * p->columns, p->b + y * p->columns, count, rows + y % TAPS * MAPS * count);
        if (y + 1 < TAPS) continue;
        memset(sums, 0, MAPS * count * sizeof *sums);
        for (size_t t = 0; t < TAPS; t++) {
            const double *const row = rows + (y + 1 + t) % TAPS * MAPS * count; /* the oldest row first */
            for (size_t i = 0; i < MAPS * count; i++) sums[i] += window[t] * row[i];
        }
        const size_t middle = (y - TAPS / 2) * p->columns + TAPS / 2;
        add_windows(sums, count, p->inside ? p->inside + middle : NULL, &found);
    }
    free(ring);
    *ssim = found.ssim / (double)found.count;
    *structure = found.structure / (double)found.count;
    return true;
}

/* Means of 2 x 2 samples, in place; beyond the last column and row they are repeated. */
static void halve(double *samples, size_t columns, size_t rows)
{
    const size_t half = (columns + 1) / 2;
    for (size_t y = 0; y < rows; y += 2) {
        const double *const upper = samples + y * columns, *const lower = y + 1 < rows ? upper + columns : upper;
        for (size_t x = 0; x < columns; x += 2) {
            const size_t right = x + 1 < columns ? x + 1 : x;
            samples[y / 2 * half + x / 2] = (upper[x] + upper[right] + lower[x] + lower[right]) / 4;
        }
    }
}

/* The same of what counts: two of four do. */
static void halve_inside(uint8_t *inside, size_t columns, size_t rows)
{
    const size_t half = (columns + 1) / 2;
    for (size_t y = 0; y < rows; y += 2) {
        const uint8_t *const upper = inside + y * columns, *const lower = y + 1 < rows ? upper + columns : upper;
        for (size_t x = 0; x < columns; x += 2) {
            const size_t right = x + 1 < columns ? x + 1 : x;
            inside[y / 2 * half + x / 2] = upper[x] + upper[right] + lower[x] + lower[right] >= 2;
        }
    }
}

/* SSIM and MS-SSIM of one channel; the plane is used up. False: no memory. */
static bool compare_scales(struct plane *p, double *ssim, double *ms_ssim)
{
    static const double weights[SCALES] = {0.0448, 0.2856, 0.3001, 0.2363, 0.1333};
    double structure, at_scale;
    if (!compare_plane(p, ssim, &structure)) return false;
    *ms_ssim = NAN;
    if (p->columns < LEAST_SIDE || p->rows < LEAST_SIDE) return true;
    if (isnan(*ssim)) return true;
    *ms_ssim = pow(fmax(structure, 0), weights[0]);
    for (int s = 1; s < SCALES; s++) {
        halve(p->a, p->columns, p->rows);
        halve(p->b, p->columns, p->rows);
        if (p->inside) halve_inside(p->inside, p->columns, p->rows);
        p->columns = (p->columns + 1) / 2;
        p->rows = (p->rows + 1) / 2;
        if (!compare_plane(p, &at_scale, &structure)) return false;
        *ms_ssim *= pow(fmax(s + 1 < SCALES ? structure : at_scale, 0), weights[s]);
    }
    return true;
}

static void measure_errors(const struct likeness_of *of, struct likeness *likeness)
{
    const size_t count = (size_t)of->columns * of->rows * (size_t)of->channels;
    double squares = 0;
    size_t counted = 0;
    likeness->max_error = 0;
    for (size_t i = 0; i < count; i++) {
        const int difference = abs(of->original[i] - of->decoded[i]);
        if ((uint32_t)difference > likeness->max_error) likeness->max_error = (uint32_t)difference;
        if (of->inside && !of->inside[i]) continue;
        squares += difference * difference;
        counted++;
    }
    likeness->psnr_db = counted == 0  ? NAN
                        : squares > 0 ? 10 * log10(of->peak * of->peak * (double)counted / squares)
                                      : INFINITY;
}

bool measure_likeness(const struct likeness_of *of, struct likeness *likeness)
{
    const size_t count = (size_t)of->columns * of->rows, step = (size_t)of->channels;
    double *const samples = malloc(2 * count * sizeof *samples);
    uint8_t *const inside = of->inside ? malloc(count) : NULL;
    bool good = samples && (inside || !of->inside);
    measure_errors(of, likeness);
    likeness->ssim = likeness->ms_ssim = of->columns < TAPS || of->rows < TAPS ? NAN : 0;
    for (size_t c = 0; c < step && good && !isnan(likeness->ssim); c++) {
        struct plane plane = {of->columns, of->rows, samples, samples + count, inside};
        double ssim = NAN, ms_ssim = NAN;
        for (size_t i = 0; i < count; i++)
            plane.a[i] = of->original[i * step + c], plane.b[i] = of->decoded[i * step + c];
        if (inside) memcpy(inside, of->inside, count);
        good = compare_scales(&plane, &ssim, &ms_ssim);
        likeness->ssim += ssim / of->channels;
        likeness->ms_ssim += ms_ssim / of->channels;
    }
    free(samples);
    free(inside);
    return good;
}
