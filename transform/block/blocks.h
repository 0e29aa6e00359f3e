/* Order inside path T: the zigzag scan of a block, and the prediction of its DC. FORMAT.md section 8.4. */
#ifndef TSR_TRANSFORM_BLOCK_BLOCKS_H
#define TSR_TRANSFORM_BLOCK_BLOCKS_H

#include "transform/predict/median_edge.h"

enum { TSR_BLOCK_SIDE = 4, TSR_BLOCK_SAMPLES = 16 };

/* Coefficients, DC residuals included, are below this in magnitude: 24 bits, and CAVLC's longest codeword is 50. */
enum { TSR_COEFFICIENT_LIMIT = (1 << 23) - 2048 };

/* Raster place of the coefficient at each place of the scan (H.264 8.5.6, frame scan). */
TSR_TABLE(uint8_t, tsr_zigzag_scan, TSR_BLOCK_SAMPLES, 0, 1, 4, 8, 5, 2, 3, 6, 9, 12, 13, 10, 7, 11, 14, 15);

TSR_HD int tsr_zigzag(int place)
{
    return TSR_AT(tsr_zigzag_scan)[place];
}

/* The scan's inverse: place in the scan of the coefficient at a raster place. */
TSR_TABLE(uint8_t, tsr_zigzag_inverse, TSR_BLOCK_SAMPLES, 0, 1, 5, 6, 2, 4, 7, 12, 3, 8, 11, 13, 9, 10, 14, 15);

TSR_HD int tsr_zigzag_place(int raster)
{
    return TSR_AT(tsr_zigzag_inverse)[raster];
}

/* DC of a block predicted from the DCs of its neighbours in the tile, all of them quantised: the median edge
 * predictor; W in the tile's first row of blocks, N in its first column, 0 for its first block.
 * dc points at the block's own place; its left neighbour lies step before it, the upper one pitch. */
TSR_HD int32_t tsr_predict_dc(const int32_t *dc, size_t step, size_t pitch, bool first_column, bool first_row)
{
    if (first_row) return first_column ? 0 : *(dc - step);
    const int32_t *up = dc - pitch;
    return first_column ? *up : tsr_median_edge(*(dc - step), *up, *(up - step));
}

#endif
