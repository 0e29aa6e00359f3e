/* Anchored residuals: a sample less its anchor. FORMAT.md section 7.10.
 *
 * The anchor is the one of W, N, NW, NE and their median edge prediction that lies nearest to the linear prediction,
 * or the prediction itself where none lies near. Colour differences repeat the values of their neighbours. A weighted
 * mean of these lies between them, and is hit by few samples. How far the anchor lies from the prediction says how
 * likely the anchor is. The side on which the prediction lies is that of most samples that are not the anchor. */
#ifndef TSR_TRANSFORM_PREDICT_ANCHOR_H
#define TSR_TRANSFORM_PREDICT_ANCHOR_H

#include "median_edge.h"
#include "predictor.h"
#include "residual.h"

enum {
    TSR_ANCHOR_SHIFT = 6,      /* distances are in 64ths */
    TSR_ANCHOR_WHOLE = 2,      /* whole distances saturate here */
    TSR_ANCHOR_FAR = 96,       /* distances from here on: the anchor is the prediction */
    TSR_ANCHOR_STEPS = 5,      /* of nearer ones */
    TSR_ANCHOR_EQUALITIES = 4, /* of neighbours */
    TSR_ANCHOR_BINS = (TSR_ANCHOR_STEPS + 1) * TSR_ANCHOR_EQUALITIES
};

/* Magnitudes of distances from which on the steps after the first one begin. Other steps, up to 11, and other marks of
 * equality (NW, WW) were within 0.2 % of chroma (tests/bench/decisions/036). */
TSR_TABLE(uint8_t, tsr_anchor_step, TSR_ANCHOR_STEPS, 5, 16, 32, 64, TSR_ANCHOR_FAR);

/* By how much a linear prediction is more than its integer, in 64ths: -32 .. 31. sum_from_half, range: those of
 * tsr_weighted_prediction. */
TSR_HD int32_t tsr_prediction_fraction(int32_t sum_from_half, int32_t range)
{
    const int32_t whole = tsr_asr(sum_from_half, TSR_WEIGHT_SHIFT) + TSR_SAMPLE_BIAS;
    if (whole < 0 || whole >= range) return 0;
    return (tsr_asr(sum_from_half, TSR_WEIGHT_SHIFT - TSR_ANCHOR_SHIFT) & ((1 << TSR_ANCHOR_SHIFT) - 1)) -
           (1 << (TSR_ANCHOR_SHIFT - 1));
}

/* From a neighbour to the prediction, in 64ths. */
TSR_HD int32_t tsr_anchor_distance(int32_t prediction, int32_t fraction, int32_t neighbour)
{
    const int32_t whole = tsr_max(-TSR_ANCHOR_WHOLE, tsr_min(TSR_ANCHOR_WHOLE, prediction - neighbour));
    return whole * (1 << TSR_ANCHOR_SHIFT) + fraction;
}

struct tsr_anchor {
    int32_t value, distance;
    int32_t step; /* of the distance's magnitude, 0 .. TSR_ANCHOR_STEPS: the anchor is the prediction */
};

TSR_HD_INLINE void tsr_try_anchor(struct tsr_anchor *anchor, int32_t prediction, int32_t fraction, int32_t neighbour)
{
    const int32_t distance = tsr_anchor_distance(prediction, fraction, neighbour);
    const bool is_nearer = tsr_abs(distance) < tsr_abs(anchor->distance);
    anchor->value = is_nearer ? neighbour : anchor->value;
    anchor->distance = is_nearer ? distance : anchor->distance;
}

/* The first of the nearest. Above a tile's first row all samples are 0. */
TSR_HD_INLINE struct tsr_anchor tsr_choose_anchor(int32_t prediction, int32_t fraction, int32_t w, int32_t n,
                                                  int32_t nw, int32_t ne)
{
    struct tsr_anchor anchor;
    anchor.value = w;
    anchor.distance = tsr_anchor_distance(prediction, fraction, w);
    anchor.step = 0;
    tsr_try_anchor(&anchor, prediction, fraction, n);
    tsr_try_anchor(&anchor, prediction, fraction, nw);
    tsr_try_anchor(&anchor, prediction, fraction, ne);
    tsr_try_anchor(&anchor, prediction, fraction, tsr_median_edge(w, n, nw));
    for (int i = 0; i < TSR_ANCHOR_STEPS; i++)
        anchor.step += tsr_abs(anchor.distance) >= (int32_t)TSR_AT(tsr_anchor_step)[i];
    const bool is_far = anchor.step == TSR_ANCHOR_STEPS;
    anchor.value = is_far ? prediction : anchor.value;
    anchor.distance = is_far ? fraction : anchor.distance;
    return anchor;
}

/* The bin that takes the place of the intensity bin: 0 .. TSR_ANCHOR_BINS - 1. */
TSR_HD int tsr_anchor_bin(int32_t step, int32_t w, int32_t n, int32_t ne)
{
    return step * TSR_ANCHOR_EQUALITIES + (w == n) + 2 * (n == ne);
}

/* The residual of a sample. A sample on the side of the prediction has one above 0. */
TSR_HD int32_t tsr_anchored_residual(struct tsr_anchor anchor, int32_t sample, int32_t range)
{
    return anchor.distance < 0 ? tsr_residual(anchor.value, sample, range) : tsr_residual(sample, anchor.value, range);
}

/* The sample again. */
TSR_HD int32_t tsr_anchored_sample(struct tsr_anchor anchor, int32_t residual, int32_t range)
{
    return tsr_residual_inverse(anchor.distance < 0 ? -residual : residual, anchor.value, range);
}

#endif
