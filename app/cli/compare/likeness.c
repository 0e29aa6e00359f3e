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

/* What the maps say of one row of windows: adds up luminance times structure, and contrast times structure alone. */
static void add_windows(const double *maps, size_t count, double *ssim, double *structure)
{
    const double c1 = 0.01 * 255 * 0.01 * 255, c2 = 0.03 * 255 * 0.03 * 255;
    double all = 0, contrast = 0;
    for (size_t x = 0; x < count; x++) {
        const double ma = maps[x], mb = maps[count + x];
        const double va = maps[2 * count + x] - ma * ma, vb = maps[3 * count + x] - mb * mb;
        const double cov = maps[4 * count + x] - ma * mb;
        const double cs = (2 * cov + c2) / (va + vb + c2);
        contrast += cs;
        all += cs * (2 * ma * mb + c1) / (ma * ma + mb * mb + c1);
    }
    *ssim += all;
    *structure += contrast;
}

/* The mean SSIM of a plane, and the mean without its luminance. False: no memory. */
static bool compare_plane(const struct plane *p, double *ssim, double *structure)
{
    double window[TAPS];
    const size_t count = p->columns - TAPS + 1, windows = p->rows - TAPS + 1;
    double *const ring = malloc((TAPS + 1) * MAPS * count * sizeof *ring), *const sums = ring;
    if (!ring) return false;
    double *const rows = ring + MAPS * count;
    make_window(window);
    *ssim = *structure = 0;
    for (size_t y = 0; y < p->rows; y++) {
        filter_row(window, p->a + y * p->columns, p->b + y * p->columns, count, rows + y % TAPS * MAPS * count);
        if (y + 1 < TAPS) continue;
        memset(sums, 0, MAPS * count * sizeof *sums);
        for (size_t t = 0; t < TAPS; t++) {
            const double *const row = rows + (y + 1 + t) % TAPS * MAPS * count; /* the oldest row first */
            for (size_t i = 0; i < MAPS * count; i++) sums[i] += window[t] * row[i];
        }
        add_windows(sums, count, ssim, structure);
    }
    free(ring);
    *ssim /= (double)count * (double)windows;
    *structure /= (double)count * (double)windows;
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

/* SSIM and MS-SSIM of one channel; the plane is used up. False: no memory. */
static bool compare_scales(struct plane *p, double *ssim, double *ms_ssim)
{
    static const double weights[SCALES] = {0.0448, 0.2856, 0.3001, 0.2363, 0.1333};
    double structure, at_scale;
    if (!compare_plane(p, ssim, &structure)) return false;
    *ms_ssim = NAN;
    if (p->columns < LEAST_SIDE || p->rows < LEAST_SIDE) return true;
    *ms_ssim = pow(fmax(structure, 0), weights[0]);
    for (int s = 1; s < SCALES; s++) {
        halve(p->a, p->columns, p->rows);
        halve(p->b, p->columns, p->rows);
        p->columns = (p->columns + 1) / 2;
        p->rows = (p->rows + 1) / 2;
        if (!compare_plane(p, &at_scale, &structure)) return false;
        *ms_ssim *= pow(fmax(s + 1 < SCALES ? structure : at_scale, 0), weights[s]);
    }
    return true;
}

static void measure_errors(const uint8_t *a, const uint8_t *b, size_t count, struct likeness *likeness)
{
    double squares = 0;
    likeness->max_error = 0;
    for (size_t i = 0; i < count; i++) {
        const int difference = abs(a[i] - b[i]);
        if ((uint32_t)difference > likeness->max_error) likeness->max_error = (uint32_t)difference;
        squares += difference * difference;
    }
    likeness->psnr_db = squares > 0 ? 10 * log10(255.0 * 255.0 * (double)count / squares) : INFINITY;
}

bool measure_likeness(const uint8_t *a, const uint8_t *b, uint32_t columns, uint32_t rows, int channels,
                      struct likeness *likeness)
{
    const size_t count = (size_t)columns * rows, step = (size_t)channels;
    double *const samples = malloc(2 * count * sizeof *samples);
    bool good = samples != NULL;
    measure_errors(a, b, count * step, likeness);
    likeness->ssim = likeness->ms_ssim = columns < TAPS || rows < TAPS ? NAN : 0;
    for (size_t c = 0; c < step && good && !isnan(likeness->ssim); c++) {
        struct plane plane = {columns, rows, samples, samples + count};
        double ssim = NAN, ms_ssim = NAN;
        for (size_t i = 0; i < count; i++) plane.a[i] = a[i * step + c], plane.b[i] = b[i * step + c];
        good = compare_scales(&plane, &ssim, &ms_ssim);
        likeness->ssim += ssim / channels;
        likeness->ms_ssim += ms_ssim / channels;
    }
    free(samples);
    return good;
}
