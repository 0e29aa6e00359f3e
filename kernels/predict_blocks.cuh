/* Blocks of 16 x 16 samples on the device: the samples that a block's predictors look at, in shared memory, a warp a
 * block. FORMAT.md section 7.1. */
#ifndef TSR_KERNELS_PREDICT_BLOCKS_CUH
#define TSR_KERNELS_PREDICT_BLOCKS_CUH

#include "device.cuh"

#include "../transform/median_edge.h"
#include "cuda_predictive.h"

enum {
    TSR_REGION_UP = 4,   /* rows above a block that neighbours reach */
    TSR_REGION_LEFT = 6, /* columns beside it */
    TSR_REGION_RIGHT = 4,
    TSR_REGION_COLUMNS = TSR_REGION_LEFT + TSR_PREDICTOR_BLOCK + TSR_REGION_RIGHT,
    TSR_REGION_PITCH = 28, /* of all planes; two rows of 16 lie in different banks */
    TSR_REGION_SAMPLES = (TSR_REGION_UP + TSR_PREDICTOR_BLOCK) * TSR_REGION_PITCH,
    /* Of an earlier plane: a row and a column more on each side. */
    TSR_REFERENCE_SIDE = TSR_PREDICTOR_BLOCK + 2,
    TSR_REFERENCE_SAMPLES = TSR_REFERENCE_SIDE * TSR_REGION_PITCH,
    TSR_REGION_ROOM = TSR_REGION_SAMPLES + TSR_REFERENCES_LIMIT * TSR_REFERENCE_SAMPLES, /* samples of all */
    TSR_REGION_FIRST = TSR_REGION_UP * TSR_REGION_PITCH + TSR_REGION_LEFT,               /* the block's first sample */
    TSR_REFERENCE_FIRST = TSR_REGION_PITCH + 1,
    TSR_SAMPLE_BIAS = 1 << 15 /* regions hold samples less this */
};

/* What a kernel knows of a plane that it trains or predicts. */
struct tsr_plane_view {
    const uint16_t *samples; /* x */
    uint32_t range;
    int references;
    const uint16_t *reference[TSR_REFERENCES_LIMIT];
};

static __device__ __forceinline__ uint32_t tsr_plane_range(const tsr_predict_batch &p, uint32_t plane)
{
    return p.b.plane[plane].range;
}

/* tsr_reference_planes, on the device. */
static __device__ __forceinline__ tsr_plane_view tsr_view_plane(const tsr_predict_batch &p, uint32_t plane)
{
    tsr_plane_view v;
    const uint32_t component = plane % p.b.components;
    v.samples = p.b.samples + plane * p.b.plane_samples;
    v.range = tsr_plane_range(p, plane);
    v.references = 0;
#pragma unroll
    for (int r = 0; r < TSR_REFERENCES_LIMIT; r++) v.reference[r] = v.samples;
    for (uint32_t back = 1; back <= component; back++) {
        if (v.references == TSR_REFERENCES_LIMIT) break;
        if (tsr_plane_range(p, plane - back) < 2) continue;
        if (v.references == 0)
            v.reference[0] = v.samples - back * p.b.plane_samples;
        else
            v.reference[1] = v.samples - back * p.b.plane_samples;
        v.references++;
    }
    return v;
}

/* A block in the lists. */
struct tsr_block_place {
    bool is_there;
    tsr_tile tile;
    uint32_t number; /* of the tile in its plane */
    int32_t x, y;    /* of the block in its tile */
    struct tsr_block_span span;
    size_t at; /* in arrays by tile and block, of a batch's tiles */
};

static __device__ __forceinline__ tsr_block_place tsr_block_place_at(const tsr_predict_batch &p, uint32_t plane,
                                                                     uint32_t tile, int32_t x, int32_t y)
{
    tsr_block_place b;
    b.tile = tsr_tile_place(&p.b, tile).tile;
    b.number = tile;
    b.x = x;
    b.y = y;
    b.span = tsr_block_span(b.tile.width, b.tile.height, x, y);
    b.is_there = b.span.columns > 0 && y * TSR_PREDICTOR_BLOCK < b.tile.height;
    b.at = ((size_t)plane * p.b.tiles + tile) * p.tile_blocks + (size_t)(y * tsr_blocks_across(b.tile.width) + x);
    return b;
}

/* Block number of all that a plane can have. */
static __device__ __forceinline__ tsr_block_place tsr_any_block(const tsr_predict_batch &p, uint32_t plane,
                                                                uint32_t number)
{
    const uint32_t tile = number / p.tile_blocks, in_tile = number - tile * p.tile_blocks;
    const uint32_t y = in_tile / p.blocks_across;
    return tsr_block_place_at(p, plane, tile, (int32_t)(in_tile - y * p.blocks_across), (int32_t)y);
}

/* Place of a row of blocks for those that take part. */
static __host__ __device__ __forceinline__ uint32_t tsr_slots_of_row(const tsr_predict_batch &p, uint32_t stride)
{
    return (p.blocks_across + stride - 1) / stride;
}

/* Number number of those that take part. */
static __device__ __forceinline__ tsr_block_place tsr_training_block(const tsr_predict_batch &p, uint32_t plane,
                                                                     uint32_t number, uint32_t stride)
{
    const uint32_t slots = tsr_slots_of_row(p, stride), row = number / slots, slot = number - row * slots;
    const uint32_t tile = row / p.blocks_down, y = row - tile * p.blocks_down;
    const uint32_t first = (stride - (3u * y + tile) % stride) % stride;
    return tsr_block_place_at(p, plane, tile, (int32_t)(first + slot * stride), (int32_t)y);
}

/* A rectangle of a tile's samples and the virtual ones beside them, by a warp; columns: at most 32. */
static __device__ __forceinline__ void tsr_stage_rows(const uint16_t *samples, const tsr_tile &tile, int32_t column,
                                                      int32_t row, int columns, int rows, int pitch, int16_t *out,
                                                      unsigned lane)
{
    const int32_t c = column + (int32_t)lane, at = tsr_max(0, tsr_min(c, tile.width - 1));
    if ((int)lane >= columns) return;
    const uint16_t *from = samples + tile.first + at;
    for (int r = 0; r < rows; r++) {
        int32_t y = tsr_max(0, tsr_min(row + r, tile.height - 1));
        if (c < 0) y = tsr_max(0, y - 1);
        out[r * pitch + (int)lane] = (int16_t)(from[(size_t)y * tile.stride] ^ TSR_SAMPLE_BIAS);
    }
}

/* A block's region: its own samples, then those of earlier planes. All lanes may read it afterwards. */
static __device__ __forceinline__ void tsr_stage_block(const tsr_plane_view &view, const tsr_block_place &block,
                                                       int references, int16_t *region, unsigned lane)
{
    const int32_t column = block.x * TSR_PREDICTOR_BLOCK, row = block.y * TSR_PREDICTOR_BLOCK;
    __syncwarp();
    tsr_stage_rows(view.samples, block.tile, column - TSR_REGION_LEFT, row - TSR_REGION_UP, TSR_REGION_COLUMNS,
                   TSR_REGION_UP + TSR_PREDICTOR_BLOCK, TSR_REGION_PITCH, region, lane);
#pragma unroll
    for (int r = 0; r < TSR_REFERENCES_LIMIT; r++)
        if (r < references)
            tsr_stage_rows(view.reference[r], block.tile, column - 1, row - 1, TSR_REFERENCE_SIDE, TSR_REFERENCE_SIDE,
                           TSR_REGION_PITCH, region + TSR_REGION_SAMPLES + r * TSR_REFERENCE_SAMPLES, lane);
    __syncwarp();
}

/* Where a tap of the block's sample in a row and a column lies in the region: its place is row * TSR_REGION_PITCH +
 * column + offset. */
static __device__ __forceinline__ int tsr_tap_offset(int neighbours, int tap)
{
    if (tap < neighbours)
        return TSR_REGION_FIRST - TSR_AT(tsr_tap_up)[tap] * TSR_REGION_PITCH + TSR_AT(tsr_tap_right)[tap];
    const int r = (tap - neighbours) / TSR_REFERENCE_TAPS, i = (tap - neighbours) % TSR_REFERENCE_TAPS;
    return TSR_REGION_SAMPLES + r * TSR_REFERENCE_SAMPLES + TSR_REFERENCE_FIRST -
           TSR_AT(tsr_reference_up)[i] * TSR_REGION_PITCH + TSR_AT(tsr_reference_right)[i];
}

/* The median edge prediction of the sample at a place of the region, less 2^15. */
static __device__ __forceinline__ int32_t tsr_region_median(const int16_t *at)
{
    return tsr_median_edge(at[-1], at[-TSR_REGION_PITCH], at[-TSR_REGION_PITCH - 1]);
}

#endif
