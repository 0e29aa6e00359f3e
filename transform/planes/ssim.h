/* Structural similarity (SSIM; Wang, Bovik, Sheikh, Simoncelli: Image Quality Assessment, IEEE Transactions on Image
 * Processing 13(4), 2004) of an original and what a decoder makes of it, in integers: sums do not depend on the order
 * of frames, on threads, or on the instruction set.
 *
 * Where. Positions are the columns and rows 5, 9, 13, ... of each component whose neighbourhood of 11 x 11 samples lies
 * within the frame: one sample in 16, so that it costs little. Those count whose original lies inside the window and
 * not in a kept range. A frame with less than 11 columns or rows has none.
 *
 * Of what. Values are clipped to the window, and counted from its lowest value. L is the window's highest value less
 * its lowest. Without a window (SSIM over all) L is the range R of the image's values. Values then lie between 0 and R;
 * of an image with a range of its own (FORMAT.md 3.9) between m - R and m + R, m: the mean of each fourth original in
 * both directions that is not kept. So nothing between the image's lowest and highest values is clipped.
 *
 * How. Values are shifted such that the larger of their span and L / 16 has 11 bits; a wide one loses its lowest
 * bits. Weights are a Gaussian of standard deviation 1.5, in both directions 1024ths. Means, variances and the
 * covariance are exact then: 20 bits of fraction, 40 of products. With C1 = (L / 100)^2 and C2 = (3 L / 100)^2
 *
 *     SSIM = (1 - (mx - my)^2 / (mx^2 + my^2 + C1)) (1 - var(x - y) / (var(x) + var(y) + C2)),
 *
 * which is the usual product; each quotient is rounded to 1/2^20. What is summed is 1 - SSIM, 0 .. 2.
 *
 * By the formula in floating point, with the Gaussian as it is and no shift, a mean differs by at most 0.0001 and 1 %
 * of 1 - SSIM: of scikit-image 0.26 on images of ../shared/data/medical at an SSIM above 0.98 by at most 0.00013. */
#ifndef TSR_TRANSFORM_PLANES_SSIM_H
#define TSR_TRANSFORM_PLANES_SSIM_H

#include "transform/hd.h"

enum {
    TSR_SSIM_SIDE = 11,
    TSR_SSIM_REACH = TSR_SSIM_SIDE / 2,
    TSR_SSIM_STEP = 4,      /* columns and rows between positions */
    TSR_SSIM_BITS = 11,     /* of a value */
    TSR_SSIM_WEIGHT = 1024, /* the sum of a row's weights */
    TSR_SSIM_ONE = 1 << 20  /* an SSIM of 1 */
};

/* By distance from the centre. Their variance is 2304/1024 = 1.5^2. */
TSR_TABLE(uint16_t, tsr_ssim_weight, TSR_SSIM_REACH + 1, 272, 218, 112, 37, 8, 1);

/* Sums over positions. */
struct tsr_ssim_sum {
    uint64_t positions;
    uint64_t loss; /* of 1 - SSIM, in 1/TSR_SSIM_ONE */
};

/* How values become those that are compared: clipped to low .. high, less low, shifted to the left, then to the right.
 * And what stands for C1 and C2 beside products with 40 bits of fraction. */
struct tsr_ssim_scale {
    int64_t low, high;
    int left, right;
    uint64_t luminance, contrast;
};

/* Weighted sums over a neighbourhood, of weights whose sum is 2^20. */
struct tsr_ssim_moments {
    uint64_t original, decoded;
    uint64_t product;    /* of both */
    uint64_t difference; /* of its square */
};

/* Positions in a row or column of so many samples. */
TSR_HD uint32_t tsr_ssim_positions(uint32_t samples)
{
    return samples < TSR_SSIM_SIDE ? 0 : (samples - TSR_SSIM_SIDE) / TSR_SSIM_STEP + 1;
}

/* low <= high, spans of at most 2^17 - 1; dynamic: L, 1 .. 65535. */
TSR_HD struct tsr_ssim_scale tsr_ssim_scale_of(int64_t low, int64_t high, uint32_t dynamic)
{
    struct tsr_ssim_scale scale = {low, high, 0, 0, 0, 0};
    const uint64_t span = (uint64_t)(high - low), part = (dynamic + 15) / 16, most = span > part ? span : part;
    while (most >> scale.right >> TSR_SSIM_BITS) scale.right++;
    while (!(most << scale.left >> (TSR_SSIM_BITS - 1))) scale.left++;
    const uint64_t length = (uint64_t)dynamic << scale.left, square = length * length;
    scale.luminance = ((square << 24) / 10000 << 16) >> 2 * scale.right;
    scale.contrast = ((9 * square << 20) / 10000 << 20) >> 2 * scale.right;
    return scale;
}

TSR_HD uint32_t tsr_ssim_value(const struct tsr_ssim_scale *scale, int64_t value)
{
    const int64_t clipped = value < scale->low ? scale->low : value > scale->high ? scale->high : value;
    return (uint32_t)(clipped - scale->low) << scale->left >> scale->right;
}

/* part / whole in 1/2^20, rounded; whole >= 2^29, part at most twice the whole, below 2^63. */
TSR_HD uint64_t tsr_ssim_quotient(uint64_t part, uint64_t whole)
{
    const uint64_t unit = whole >> 20, sum = part + unit / 2;
    return sum < unit ? 0 : sum / unit;
}

/* 1 - SSIM of a neighbourhood, in 1/TSR_SSIM_ONE. */
TSR_HD uint64_t tsr_ssim_loss(const struct tsr_ssim_scale *scale, const struct tsr_ssim_moments *m)
{
    const uint64_t apart = m->original < m->decoded ? m->decoded - m->original : m->original - m->decoded,
                   varies = (m->difference << 20) - apart * apart; /* var(x - y) */
    /* var(x) + var(y) = var(x - y) + 2 cov(x, y), modulo 2^64 */
    const uint64_t both = varies + 2 * ((m->product << 20) - m->original * m->decoded);
    const uint64_t luminance = tsr_ssim_quotient(apart * apart, m->original * m->original + m->decoded * m->decoded +
                                                                    scale->luminance),
                   contrast = tsr_ssim_quotient(varies, both + scale->contrast);
    return luminance + contrast - (luminance * contrast >> 20);
}

#endif
