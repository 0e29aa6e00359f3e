/* Rate curves: bytes at a quality, and Bjontegaard's mean difference of two curves.
 *
 * The quality is the PSNR in dB, or rate_ssim_db() of an SSIM. Between points, log(bytes) is interpolated over the
 * quality by piecewise cubic Hermite polynomials whose slopes keep it monotone (Fritsch and Carlson 1980, with the
 * slopes of Fritsch and Butland 1984: the "PCHIP" of MATLAB and SciPy). Two points are joined by a line. Nothing is
 * extrapolated. */
#ifndef TSR_APP_REPORT_RATES_H
#define TSR_APP_REPORT_RATES_H

#include <stddef.h>

/* The ranges that reports take BD-rates over: PSNR in dB, and SSIM. */
#define RATE_PSNR_LOW 35
#define RATE_PSNR_HIGH 45
#define RATE_SSIM_LOW 0.95
#define RATE_SSIM_HIGH 0.99

struct rate_point {
    double bytes, quality;
};

/* Sorts points and keeps those that a curve can go through: finite, with more than 0 bytes, and of a higher quality
 * than all that have fewer bytes. Returns how many are left, by quality. */
size_t rate_clean(struct rate_point *points, size_t count);

/* The bytes at a quality; NaN: the curve, which is clean, does not reach it. */
double rate_bytes_at(const struct rate_point *points, size_t count, double quality);

/* The BD-rate of a curve against an anchor between two qualities, as a ratio: exp of the mean of
 * log(bytes) - log(anchor's bytes). Below 1: the curve needs fewer bytes. NaN: one of the clean curves does not reach
 * the whole range. */
double rate_bd(const struct rate_point *anchor, size_t anchor_count, const struct rate_point *points, size_t count,
               double low, double high);

/* An SSIM on the scale on which rate curves are smooth: -10 log10(1 - SSIM). Infinite: the SSIM is 1. */
double rate_ssim_db(double ssim);

#endif
