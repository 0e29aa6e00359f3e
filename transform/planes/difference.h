/* Differences between a frame's samples and what a decoder makes of them: what is measured, and how. A file holds the
 * largest one and the sum of their squares (FORMAT.md section 3.4).
 *
 * Values are stored values: those of a sample's bits, with a sign if the image has one. */
#ifndef TSR_TRANSFORM_PLANES_DIFFERENCE_H
#define TSR_TRANSFORM_PLANES_DIFFERENCE_H

#include "transform/hd.h"
#include "ssim.h"

enum { TSR_MEASURED_WINDOWS = 4, TSR_KEPT_RANGES = 4 };

/* The weight of a frame is a fraction of this number. */
#define TSR_WHOLE_WEIGHT 65536u

/* Values from low to high, both included; none if low > high. */
struct tsr_value_range {
    int32_t low, high;
};

/* What of a frame's samples is measured. */
struct tsr_measured {
    uint32_t windows; /* 0 .. TSR_MEASURED_WINDOWS: these are measured on their own, too */
    struct tsr_value_range window[TSR_MEASURED_WINDOWS]; /* samples whose original lies inside */
    uint32_t kept;                                       /* 0 .. TSR_KEPT_RANGES */
    struct tsr_value_range kept_range[TSR_KEPT_RANGES];  /* originals inside count for max_error alone */
    uint32_t range;  /* R of the image's values, for the SSIM (ssim.h); 0: that is not measured */
    uint32_t weight; /* 0 .. TSR_WHOLE_WEIGHT, of differences: the frame's slope / the largest slope of the file */
    uint32_t window_weight[TSR_MEASURED_WINDOWS]; /* 0 .. TSR_WHOLE_WEIGHT: the frame's slope / the largest slope of the
                                                     frames that have the window. 0 stands for TSR_WHOLE_WEIGHT */
};

/* Sums over samples. Sums of squares are saturated at 2^64 - 1. */
struct tsr_difference {
    uint32_t max_error;     /* the largest difference of two samples, kept ones included; not weighted */
    uint64_t squared_error; /* weighted */
    uint64_t samples;       /* that are not kept */
    struct tsr_ssim_sum ssim;
    struct {
        uint64_t samples;       /* inside this window, and not kept */
        uint64_t squared_error; /* weighted by the window's weights */
        uint32_t max_error;     /* not weighted */
        struct tsr_ssim_sum ssim;
    } window[TSR_MEASURED_WINDOWS];
};

TSR_HD bool tsr_in_value_range(int64_t value, struct tsr_value_range range)
{
    return value >= range.low && value <= range.high;
}

TSR_HD uint64_t tsr_add_saturated(uint64_t a, uint64_t b)
{
    return b > UINT64_MAX - a ? UINT64_MAX : a + b;
}

/* Adds one sample to the sums of a frame, without the frame's weight. */
TSR_HD void tsr_add_sample_difference(const struct tsr_measured *what, int64_t original, int64_t decoded,
                                      struct tsr_difference *sum)
{
    const uint64_t magnitude = (uint64_t)(original < decoded ? decoded - original : original - decoded);
    const uint64_t square = magnitude * magnitude;
    if (magnitude > sum->max_error) sum->max_error = (uint32_t)magnitude;
    for (uint32_t k = 0; k < what->kept; k++)
        if (tsr_in_value_range(original, what->kept_range[k])) return;
    sum->samples++;
    sum->squared_error = tsr_add_saturated(sum->squared_error, square);
    for (uint32_t w = 0; w < what->windows; w++) {
        if (!tsr_in_value_range(original, what->window[w])) continue;
        sum->window[w].samples++;
        if (magnitude > sum->window[w].max_error) sum->window[w].max_error = (uint32_t)magnitude;
        sum->window[w].squared_error = tsr_add_saturated(sum->window[w].squared_error, square);
    }
}

/* A frame's sum of squares after its weight: sum x weight^2 / 2^32, rounded to the nearest integer, halves up. A
 * saturated sum counts as the number that it is. */
TSR_HD uint64_t tsr_weigh_squares(uint64_t sum, uint32_t weight)
{
    const uint64_t square = (uint64_t)weight * weight, half = (uint64_t)1 << 31;
    return (sum >> 32) * square + (((sum & UINT32_MAX) * square + half) >> 32);
}

#endif
