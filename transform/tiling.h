/* The cutting of a plane into tiles. FORMAT.md section 5.2. */
#ifndef TSR_TRANSFORM_TILING_H
#define TSR_TRANSFORM_TILING_H

#include "hd.h"

enum {
    TSR_TILE_WIDTH = 1024,    /* default: full rows up to here */
    TSR_TILE_SAMPLES = 65536, /* default, see FORMAT.md 5.2 for what size costs */
    TSR_TILE_SAMPLES_LIMIT = 1 << 20,
    TSR_TILE_SIDE_STEP = 64, /* of sides that are asked for: slices end with tiles */
    TSR_TILE_SIDE_LIMIT = 256,
    TSR_DRAWN_TILE_WIDTH = 4096 /* of drawn frames, whose chances begin anew in each tile: few and large ones */
};

/* A plane's sides, and those of all tiles but the last ones of rows and columns; in samples. */
struct tsr_tiling {
    int32_t columns, rows;
    int32_t tile_width, tile_height;
};

/* A tile's place in its planes: first sample, size, and the planes' row stride, all in samples. */
struct tsr_tile {
    size_t first;
    int32_t width, height;
    size_t stride;
};

/* How many parts of this size, the last one perhaps smaller. */
TSR_HD uint32_t tsr_parts(int32_t side, int32_t part)
{
    return ((uint32_t)side + (uint32_t)part - 1) / (uint32_t)part;
}

/* The size of equal parts, as many as parts of at most most are needed, rounded up to a multiple of align. */
TSR_HD int32_t tsr_equal_part(int32_t side, int32_t most, int32_t align)
{
    const int32_t parts = (int32_t)tsr_parts(side, most);
    return (int32_t)tsr_parts((int32_t)tsr_parts(side, parts), align) * align;
}

/* Equal parts of at most this many columns and about this many samples, sides a multiple of align. */
TSR_HD struct tsr_tiling tsr_cut_parts(int32_t columns, int32_t rows, int32_t align, int32_t most_columns,
                                       int32_t samples)
{
    const int32_t width = tsr_equal_part(columns, most_columns, align);
    const int32_t most = tsr_max(align, samples / width / align * align);
    struct tsr_tiling tiling;
    tiling.columns = columns;
    tiling.rows = rows;
    tiling.tile_width = tsr_min(width, columns);
    tiling.tile_height = tsr_min(tsr_equal_part(rows, most, align), rows);
    return tiling;
}

/* Tiles as an encoder cuts them; and those of drawn frames, which are not more. */
TSR_HD struct tsr_tiling tsr_cut(int32_t columns, int32_t rows, int32_t align)
{
    return tsr_cut_parts(columns, rows, align, TSR_TILE_WIDTH, TSR_TILE_SAMPLES);
}

/* Tiles of at most this side, which is asked for: drawn frames have the same. */
TSR_HD struct tsr_tiling tsr_cut_squares(int32_t columns, int32_t rows, int32_t align, int32_t side)
{
    return tsr_cut_parts(columns, rows, align, side, side * side);
}

TSR_HD struct tsr_tiling tsr_cut_drawn(int32_t columns, int32_t rows)
{
    return tsr_cut_parts(columns, rows, 1, TSR_DRAWN_TILE_WIDTH, TSR_TILE_SAMPLES_LIMIT);
}

TSR_HD uint32_t tsr_tiling_across(struct tsr_tiling tiling)
{
    return tsr_parts(tiling.columns, tiling.tile_width);
}

TSR_HD uint32_t tsr_tiling_count(struct tsr_tiling tiling)
{
    return tsr_tiling_across(tiling) * tsr_parts(tiling.rows, tiling.tile_height);
}

/* The tile in this column and row of tiles, in planes whose rows are stride samples apart. */
TSR_HD struct tsr_tile tsr_tile_in(struct tsr_tiling tiling, uint32_t column, uint32_t row, size_t stride)
{
    const int32_t x = (int32_t)column * tiling.tile_width, y = (int32_t)row * tiling.tile_height;
    struct tsr_tile tile;
    tile.first = (size_t)y * stride + (size_t)x;
    tile.width = tsr_min(tiling.tile_width, tiling.columns - x);
    tile.height = tsr_min(tiling.tile_height, tiling.rows - y);
    tile.stride = stride;
    return tile;
}

/* The tile with this number, in planes without gaps between rows; tiles count along rows. */
TSR_HD struct tsr_tile tsr_tile_numbered(struct tsr_tiling tiling, uint32_t number)
{
    const uint32_t across = tsr_tiling_across(tiling);
    return tsr_tile_in(tiling, number % across, number / across, (size_t)tiling.columns);
}

#endif
