/* The median edge predictor (Martucci 1990; the predictor of JPEG-LS). FORMAT.md section 7.1.
 *
 * Neighbours are W (left), N (above), NW; near a tile's border they are virtual samples, which the caller's
 * rows hold in guard columns: the row above the first is all zeros, the column left of a row repeats the
 * sample above its first, the column right of a row repeats its last. So the first row predicts W, the
 * first column N, the first sample 0. */
#ifndef TSR_TRANSFORM_PREDICT_MEDIAN_EDGE_H
#define TSR_TRANSFORM_PREDICT_MEDIAN_EDGE_H

#include "transform/hd.h"

/* median(W, N, W + N - NW); lies between W and N, so it needs no clamp. */
TSR_HD int32_t tsr_median_edge(int32_t w, int32_t n, int32_t nw)
{
    int32_t low = tsr_min(w, n), high = tsr_max(w, n);
    return tsr_max(low, tsr_min(high, w + n - nw));
}

#endif
