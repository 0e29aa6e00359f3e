/* Prediction of a block from the samples beside it, which are restored before it. INTRA.md section 3.
 *
 * Modes: the mean; the row above; the column to the left; W + N - NW; a plane; ten directions. Five modes alone give
 * two thirds of what 15 do (tests/bench/decisions/041). */
#ifndef TSR_TRANSFORM_BLOCK_INTRA_H
#define TSR_TRANSFORM_BLOCK_INTRA_H

#include "blocks.h"

enum {
    TSR_INTRA_MEAN = 0,
    TSR_INTRA_ABOVE = 1,
    TSR_INTRA_LEFT = 2,
    TSR_INTRA_GRADIENT = 3,
    TSR_INTRA_PLANE = 4,
    TSR_INTRA_DIRECTIONS = 5, /* and all that follow */
    TSR_INTRA_MODES = 15,
    TSR_INTRA_REACH = 16 /* twice the longest side */
};

/* Samples beside a block, from the corner on. */
struct tsr_intra_edges {
    int32_t above[TSR_INTRA_REACH + 1], left[TSR_INTRA_REACH + 1];
};

/* Columns (1/32 of a sample) that a direction moves a row: along the row above, of four modes along the left column. */
TSR_TABLE(int8_t, tsr_intra_angle, TSR_INTRA_MODES, 0, 0, 0, 0, 0, -26, -13, 13, 26, 32, -26, -13, 13, 26, -32);

TSR_HD_INLINE bool tsr_is_intra_from_left(int mode)
{
    return mode >= 10 && mode < 14;
}

/* A restored tile: whole blocks, row by row. */
struct tsr_intra_tile {
    uint16_t *samples;
    int32_t columns, rows; /* of samples */
    uint32_t range;
};

/* The edges of the block whose first sample is at x, y. has_corner: the samples right above are restored, if the tile
 * has them. What a tile does not have is what it has beside. */
TSR_HD_INLINE void tsr_find_intra_edges(const struct tsr_intra_tile *tile, int32_t x, int32_t y, int side,
                                        bool has_corner, struct tsr_intra_edges *edges)
{
    const size_t pitch = (size_t)tile->columns;
    const uint16_t *at = tile->samples + (size_t)y * pitch + (size_t)x;
    const int32_t middle = (int32_t)(tile->range >> 1);
    const int across = has_corner ? tsr_min(2 * side, tile->columns - x) : side;
    for (int i = 1; i <= 2 * side; i++) {
        edges->above[i] = y > 0 ? *(at - pitch + tsr_min(i, across) - 1) : x > 0 ? *(at - 1) : middle;
        edges->left[i] = x > 0 ? *(at + (size_t)(tsr_min(i, side) - 1) * pitch - 1) : y > 0 ? *(at - pitch) : middle;
    }
    edges->above[0] = x > 0 && y > 0 ? *(at - pitch - 1) : x > 0 ? edges->left[1] : edges->above[1];
    edges->left[0] = edges->above[0];
}

/* Along a direction: two samples of the edge, weighted. */
TSR_HD_INLINE void tsr_predict_direction(const struct tsr_intra_edges *edges, int side, int mode, int32_t *block)
{
    const bool from_left = tsr_is_intra_from_left(mode);
    const int angle = TSR_AT(tsr_intra_angle)[mode];
    const int32_t *along = from_left ? edges->left : edges->above, *beside = from_left ? edges->above : edges->left;
    int32_t edge[3 * TSR_INTRA_REACH / 2 + 2]; /* from side samples before the corner on */
    for (int i = 1; i <= side && angle < 0; i++)
        edge[side - i] = beside[tsr_min((32 * i - angle / 2) / -angle, 2 * side)];
    for (int i = 0; i <= 2 * side; i++) edge[side + i] = along[i];
    edge[3 * side + 1] = along[2 * side];
    for (int r = 0; r < side; r++) {
        const int far = (r + 1) * angle, part = far & 31;
        const int32_t *from = edge + side + tsr_asr(far, 5) + 1;
        for (int c = 0; c < side; c++) {
            const int32_t value = (from[c] * (32 - part) + from[c + 1] * part + 16) >> 5;
            block[from_left ? c * side + r : r * side + c] = value;
        }
    }
}

/* A block of side x side, row by row. range: of the samples. */
TSR_HD_INLINE void tsr_predict_intra(const struct tsr_intra_edges *edges, int side, int mode, uint32_t range,
                                     int32_t *block)
{
    const int32_t *above = edges->above, *left = edges->left, top = (int32_t)range - 1;
    const int bits = side == 4 ? 3 : 4; /* of 2 side */
    int32_t mean = side;
    if (mode >= TSR_INTRA_DIRECTIONS) {
        tsr_predict_direction(edges, side, mode, block);
        return;
    }
    for (int i = 1; i <= side; i++) mean += above[i] + left[i];
    mean >>= bits;
    for (int i = 0; i < side; i++)
        for (int j = 0; j < side; j++) {
            int32_t v = mean;
            if (mode == TSR_INTRA_ABOVE) v = above[j + 1];
            if (mode == TSR_INTRA_LEFT) v = left[i + 1];
            if (mode == TSR_INTRA_GRADIENT) v = tsr_max(0, tsr_min(top, above[j + 1] + left[i + 1] - above[0]));
            if (mode == TSR_INTRA_PLANE)
                v = ((side - 1 - j) * left[i + 1] + (j + 1) * above[side + 1] + (side - 1 - i) * above[j + 1] +
                     (i + 1) * left[side + 1] + side) >>
                    bits;
            block[i * side + j] = v;
        }
}

#endif
