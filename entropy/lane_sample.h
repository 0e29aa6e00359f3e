/* A sample of path P as a decoder's lane works it out: prediction and activity, which say the table; then, with what
 * the symbol gave, the sample itself. FORMAT.md sections 7.1 to 7.5 and 7.10.
 *
 * The plain CPU form and the GPU call these functions; how they find what lies above and how they take a symbol
 * differs. Samples are less 2^15, predictions are not. */
#ifndef TSR_ENTROPY_LANE_SAMPLE_H
#define TSR_ENTROPY_LANE_SAMPLE_H

#include "transform/predict/anchor.h"
#include "transform/predict/median_edge.h"
#include "transform/predict/predictor.h"
#include "transform/predict/residual.h"
#include "runs.h"

/* What a lane carries along its row: samples and context magnitudes on the left, and the run. */
struct tsr_lane_left {
    int32_t w, ww, www;
    int32_t magnitude_w, magnitude_ww;
    struct tsr_run run;
};

/* What the rows above and the block's predictor give to a sample. */
struct tsr_lane_above {
    bool first_row;              /* of the tile: W predicts, unless linear */
    bool linear;                 /* else the median edge predictor */
    int32_t sum;                 /* linear: of all taps but W, WW, WWW, from TSR_WEIGHT_HALF on */
    int32_t of_w, of_ww, of_www; /* linear: their weights */
    int32_t n, nw;               /* for the median edge predictor, and for anchors, as is NE; in the first row 0 */
    int32_t ne;
    int32_t activity;                /* tsr_activity_above */
    struct tsr_left_activity weight; /* of the magnitudes on the left */
};

/* The sum of a linear prediction, from TSR_WEIGHT_HALF on. */
TSR_HD_INLINE int32_t tsr_lane_sum(const struct tsr_lane_left *left, const struct tsr_lane_above *above)
{
    return above->sum + above->of_w * left->w + above->of_ww * left->ww + above->of_www * left->www;
}

TSR_HD_INLINE int32_t tsr_lane_prediction(const struct tsr_lane_left *left, const struct tsr_lane_above *above,
                                          int32_t range)
{
    if (!above->linear)
        return (above->first_row ? left->w : tsr_median_edge(left->w, above->n, above->nw)) + TSR_SAMPLE_BIAS;
    return tsr_weighted_prediction(tsr_lane_sum(left, above), range);
}

/* Of anchored planes: the anchor of the sample with this prediction, and the bin of the anchor. */
TSR_HD_INLINE struct tsr_anchor tsr_lane_anchor(const struct tsr_lane_left *left, const struct tsr_lane_above *above,
                                                int32_t prediction, int32_t range)
{
    const int32_t fraction = above->linear ? tsr_prediction_fraction(tsr_lane_sum(left, above), range) : 0;
    return tsr_choose_anchor(prediction, fraction, left->w + TSR_SAMPLE_BIAS, above->n + TSR_SAMPLE_BIAS,
                             above->nw + TSR_SAMPLE_BIAS, above->ne + TSR_SAMPLE_BIAS);
}

TSR_HD_INLINE int tsr_lane_anchor_bin(const struct tsr_lane_left *left, const struct tsr_lane_above *above,
                                      struct tsr_anchor anchor)
{
    return tsr_anchor_bin(anchor.step, left->w, above->n, above->ne);
}

TSR_HD_INLINE int32_t tsr_lane_activity(const struct tsr_lane_left *left, const struct tsr_lane_above *above)
{
    return above->activity + above->weight.w * left->magnitude_w + above->weight.ww * left->magnitude_ww;
}

/* Steps to the next column: sample as it is in the plane. */
TSR_HD_INLINE void tsr_lane_step(struct tsr_lane_left *left, int32_t sample, int32_t residual)
{
    tsr_run_step(&left->run);
    left->www = left->ww;
    left->ww = left->w;
    left->w = sample - TSR_SAMPLE_BIAS;
    left->magnitude_ww = left->magnitude_w;
    left->magnitude_w = tsr_context_magnitude(residual);
}

#endif
