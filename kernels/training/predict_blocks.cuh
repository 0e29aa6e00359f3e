/* Blocks of 16 x 16 samples on the device: the samples that a block's predictors look at, in shared memory, a warp a
 * block. FORMAT.md section 7.1. */
#ifndef TSR_KERNELS_TRAINING_PREDICT_BLOCKS_CUH
#define TSR_KERNELS_TRAINING_PREDICT_BLOCKS_CUH

#include "kernels/machine/device.cuh"

#include "transform/predict/median_edge.h"
#include "byte_products.cuh"
#include "kernels/batch/batch_predict_cuda.h"

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
    TSR_QUAD = 4 /* samples that are staged at once */
};

/* What a kernel knows of a plane that it trains or predicts. */
struct tsr_plane_view {
    const uint16_t *samples; /* x */
    uint32_t range;
    int references;
    const uint16_t *reference[TSR_REFERENCES_LIMIT];
    uint32_t reference_range; /* the largest of them */
};

static __device__ __forceinline__ uint32_t tsr_plane_range(const tsr_predict_batch &p, uint32_t plane)
{
    return p.b.shared.plane[plane].range;
}

/* Such a plane has no payload. */
static __device__ __forceinline__ bool tsr_plane_is_constant(const tsr_predict_batch &p, uint32_t plane)
{
    return tsr_plane_range(p, plane) < 2;
}

/* tsr_reference_planes, on the device. */
static __device__ __forceinline__ tsr_plane_view tsr_view_plane(const tsr_predict_batch &p, uint32_t plane)
{
    tsr_plane_view v;
    const uint32_t component = plane % p.b.shape.components;
    v.samples = p.b.shared.samples + plane * p.b.shape.plane_samples;
    v.range = tsr_plane_range(p, plane);
    v.references = 0;
    v.reference_range = 0;
#pragma unroll
    for (int r = 0; r < TSR_REFERENCES_LIMIT; r++) v.reference[r] = v.samples;
    const bool on_base = tsr_frame_refers(&p, plane / p.b.shape.components);
    if (on_base) {
        v.reference[0] = p.bases.planes + plane * p.b.shape.plane_samples;
        v.reference_range = v.range;
        v.references = 1;
    }
    for (uint32_t back = 1; back <= component; back++) {
        if (v.references == TSR_REFERENCES_LIMIT) break;
        if (tsr_plane_range(p, plane - back) < 2) continue;
        if (v.references == 0)
            v.reference[0] = v.samples - back * p.b.shape.plane_samples;
        else
            v.reference[1] = v.samples - back * p.b.shape.plane_samples;
        const uint32_t range = tsr_plane_range(p, plane - back);
        v.reference_range = range > v.reference_range ? range : v.reference_range;
        v.references++;
    }
    if (on_base && v.references == 1) v.reference[v.references++] = p.bases.means + plane * p.b.shape.plane_samples;
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
    b.at = ((size_t)plane * p.b.shape.tiles + tile) * p.tile_blocks + (size_t)(y * tsr_blocks_across(b.tile.width) + x);
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
    const int32_t first = tsr_first_training_block(stride, tile, (int32_t)y);
    return tsr_block_place_at(p, plane, tile, first + (int32_t)(slot * stride), (int32_t)y);
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

/* Where a tile's row goes on beside it: a virtual sample of column -1 is the row above's first. */
static __device__ __forceinline__ const uint16_t *tsr_row_beside(const uint16_t *from, const tsr_tile &tile,
                                                                 int32_t column, int32_t row)
{
    int32_t y = tsr_max(0, tsr_min(row, tile.height - 1));
    if (column < 0) y = tsr_max(0, y - 1);
    return from + (uint64_t)(uint32_t)y * (uint32_t)tile.stride;
}

/* A sample of a tile, or a virtual one. */
static __device__ __forceinline__ uint32_t tsr_sample_at(const uint16_t *from, const tsr_tile &tile, int32_t column,
                                                         int32_t row)
{
    return tsr_row_beside(from, tile, column, row)[tsr_max(0, tsr_min(column, tile.width - 1))];
}

/* Four samples of a tile's row from a column on, which is a multiple of 4 from the tile's first. ALIGNED, as
 * tsr_quads_are_aligned says: beside the tile they are those at its border. */
template <bool ALIGNED>
static __device__ __forceinline__ uint2 tsr_quad_at(const uint16_t *from, const tsr_tile &tile, int32_t column,
                                                    int32_t row)
{
    const uint16_t *line = tsr_row_beside(from, tile, column, row);
    if constexpr (ALIGNED) {
        return *reinterpret_cast<const uint2 *>(line + tsr_max(0, tsr_min(column, tile.width - TSR_QUAD)));
    } else {
        uint32_t four[TSR_QUAD];
#pragma unroll
        for (int i = 0; i < TSR_QUAD; i++) four[i] = line[tsr_max(0, tsr_min(column + i, tile.width - 1))];
        return make_uint2(four[0] | four[1] << 16, four[2] | four[3] << 16);
    }
}

static __device__ __forceinline__ bool tsr_quads_are_aligned(const uint16_t *from, const tsr_tile &tile)
{
    return (((uintptr_t)from | tile.stride * sizeof(uint16_t) | (size_t)tile.width * sizeof(uint16_t)) &
            (TSR_QUAD * sizeof(uint16_t) - 1)) == 0;
}

/* Rows of quads of a tile's samples from a column and a row on, by a warp: take(row, quad, samples) is called by all
 * its lanes together; the next quad of a row is the next lane's. Lanes too many do what the last one does. */
template <int QUADS, int ROWS, typename Take>
static __device__ __forceinline__ void tsr_stage_quads(const uint16_t *samples, const tsr_tile &tile, int32_t column,
                                                       int32_t row, unsigned lane, Take take)
{
    constexpr int AT_ONCE = TSR_WARP / QUADS, TURNS = ROWS / AT_ONCE;
    static_assert(ROWS % AT_ONCE == 0, "no row is there for nothing");
    const int number = tsr_min((int)lane, QUADS * AT_ONCE - 1), r = number / QUADS, quad = number % QUADS;
    const uint16_t *from = samples + tile.first;
    const int32_t c = column + TSR_QUAD * quad;
    uint2 x[TURNS];
    if (tsr_quads_are_aligned(from, tile)) {
#pragma unroll
        for (int i = 0; i < TURNS; i++) x[i] = tsr_quad_at<true>(from, tile, c, row + r + i * AT_ONCE);
        const bool before = c < 0, behind = c >= tile.width;
#pragma unroll
        for (int i = 0; i < TURNS; i++) {
            if (before) x[i].x = x[i].y = __byte_perm(x[i].x, 0, 0x1010);
            if (behind) x[i].x = x[i].y = __byte_perm(x[i].y, 0, 0x3232);
        }
    } else {
#pragma unroll
        for (int i = 0; i < TURNS; i++) x[i] = tsr_quad_at<false>(from, tile, c, row + r + i * AT_ONCE);
    }
#pragma unroll
    for (int i = 0; i < TURNS; i++) take(r + i * AT_ONCE, quad, x[i]);
}

/* Windows of quads around a block: this many quads a row, of which LEFT columns lie left of the block. Sets 1 and 2 of
 * neighbours reach less far than set 3 and its like. */
template <bool NARROW> struct tsr_window {
    enum {
        QUADS = NARROW ? 6 : 7,
        LEFT = NARROW ? 4 : 8,
        UP = 4, /* rows above the block */
        ROWS = UP + TSR_PREDICTOR_BLOCK,
        PITCH = QUADS * TSR_QUAD,
        SIZE = ROWS * PITCH,
        FIRST = UP * PITCH + LEFT,                /* the block's first sample */
        REFERENCE_ROWS = TSR_PREDICTOR_BLOCK + 4, /* two more than are wanted */
        REFERENCE_SIZE = REFERENCE_ROWS * PITCH,
        REFERENCE_FIRST = PITCH + LEFT
    };

    /* Places of a window and of those of earlier planes, of which narrow ones have none, one after the other. */
    static __host__ __device__ __forceinline__ int size(int references)
    {
        return SIZE + references * REFERENCE_SIZE;
    }

    /* Of the sample at the block's row and column of the plane itself, then of an earlier one. */
    static __device__ __forceinline__ int place(int row, int column)
    {
        return FIRST + row * PITCH + column;
    }
    static __device__ __forceinline__ int reference_place(int reference, int row, int column)
    {
        return SIZE + reference * REFERENCE_SIZE + REFERENCE_FIRST + row * PITCH + column;
    }

    /* Where a tap of the block's first sample lies. */
    static __device__ __forceinline__ int of_tap(int neighbours, int tap)
    {
        if (tap < neighbours) {
            const struct tsr_tap_place own = tsr_neighbour_place(tap);
            return place(-own.up, own.right);
        }
        const int r = (tap - neighbours) / TSR_REFERENCE_TAPS;
        const struct tsr_tap_place at = tsr_reference_place(r, (tap - neighbours) % TSR_REFERENCE_TAPS);
        return reference_place(r, -at.up, at.right);
    }

    /* take(place, row, quad, samples): place: of the quad's first sample; row: of the block, for the plane
     * itself, else -1. */
    template <typename Take>
    static __device__ __forceinline__ void stage(const tsr_plane_view &view, const tsr_block_place &block,
                                                 unsigned lane, Take take)
    {
        const int32_t column = block.x * TSR_PREDICTOR_BLOCK - LEFT, row = block.y * TSR_PREDICTOR_BLOCK;
        tsr_stage_quads<QUADS, ROWS>(view.samples, block.tile, column, row - UP, lane, [&](int r, int quad, uint2 x) {
            take(r * PITCH + quad * TSR_QUAD, r - UP, quad, x);
        });
        if constexpr (!NARROW) {
#pragma unroll
            for (int i = 0; i < TSR_REFERENCES_LIMIT; i++)
                if (i < view.references)
                    tsr_stage_quads<QUADS, REFERENCE_ROWS>(
                        view.reference[i], block.tile, column, row - 1, lane, [&](int r, int quad, uint2 x) {
                            take(SIZE + i * REFERENCE_SIZE + r * PITCH + quad * TSR_QUAD, -1, quad, x);
                        });
        }
    }
};

/* Predictions under one class by tensor cores, of narrow windows: columns of a product are eight neighbouring samples
 * of a row, what is summed over are the sixteen columns and four rows that their taps reach; so the class' matrix has
 * its taps in each column, a place further down. Rows of a product are the left halves of eight rows of the block, then
 * their right halves. */
enum {
    TSR_TAP_ROWS = 4,
    TSR_TAP_COLUMNS = 24,
    TSR_TAP_MIDDLE = 11, /* the column of the tap straight above */
    TSR_TAP_PLACES = TSR_TAP_ROWS * TSR_TAP_COLUMNS,
    TSR_QUAD_PITCH = 12, /* of a row of quads: eight rows lie in different banks */
    TSR_QUAD_PLACES = tsr_window<true>::ROWS * TSR_QUAD_PITCH
};

/* Words of the matrix: of rows 0 and 1 above a sample, then of 2 and 3. */
struct tsr_tap_bytes {
    uint32_t low[2][2], high[2][2];
};

/* Where the quads of a row of the block lie, low and high bytes; number 0 is left of it. */
static __device__ __forceinline__ int tsr_quad_place(int row, int quad)
{
    return (tsr_window<true>::UP + row) * TSR_QUAD_PITCH + quad;
}

/* A class' weights by place, zeros around them; by a warp. tap: TSR_TAP_PLACES. */
static __device__ __forceinline__ void tsr_spread_taps(int16_t *tap, const int16_t *weight, int taps, unsigned lane)
{
    for (int i = (int)lane; i < TSR_TAP_PLACES; i += TSR_WARP) tap[i] = 0;
    __syncwarp();
    for (int k = (int)lane; k < taps; k += TSR_WARP)
        tap[TSR_AT(tsr_tap_up)[k] * TSR_TAP_COLUMNS + TSR_TAP_MIDDLE + TSR_AT(tsr_tap_right)[k]] = weight[k];
}

/* Lane 4 g + t's part of the matrix. */
static __device__ __forceinline__ void tsr_tap_matrix(tsr_tap_bytes &matrix, const int16_t *tap, int g, int t)
{
#pragma unroll
    for (int i = 0; i < TSR_TAP_ROWS; i++) {
        int32_t four[TSR_QUAD];
#pragma unroll
        for (int k = 0; k < TSR_QUAD; k++)
            four[k] = tap[i * TSR_TAP_COLUMNS + TSR_TAP_MIDDLE - tsr_window<true>::LEFT + TSR_QUAD * t + k - g];
        tsr_split_bytes(four, &matrix.low[i / 2][i % 2], &matrix.high[i / 2][i % 2]);
    }
}

/* Sums of weight x (sample - 2^15): of columns 2 t and 2 t + 1 of a row, and those 8 further right. row: g or g + 8. */
static __device__ __forceinline__ void tsr_predict_row(int32_t sum[4], const uint2 *quads, int row,
                                                       const tsr_tap_bytes &matrix, int t)
{
    uint32_t highs[4], crosses[4], lows[4];
#pragma unroll
    for (int i = 0; i < 2; i++) {
        const uint2 *at = quads + tsr_quad_place(row - 2 * i, t), *above = at - TSR_QUAD_PITCH;
        const uint2 a0 = at[0], a1 = at[2], a2 = above[0], a3 = above[2];
        const uint32_t *low = matrix.low[i], *high = matrix.high[i];
        if (i == 0) {
            tsr_begin_products<true, true>(highs, 0, a0.y, a1.y, a2.y, a3.y, high[0], high[1]);
            tsr_begin_products<true, false>(crosses, 0, a0.y, a1.y, a2.y, a3.y, low[0], low[1]);
            tsr_begin_products<false, false>(lows, 0, a0.x, a1.x, a2.x, a3.x, low[0], low[1]);
        } else {
            tsr_multiply_bytes<true, true>(highs, a0.y, a1.y, a2.y, a3.y, high[0], high[1]);
            tsr_multiply_bytes<true, false>(crosses, a0.y, a1.y, a2.y, a3.y, low[0], low[1]);
            tsr_multiply_bytes<false, false>(lows, a0.x, a1.x, a2.x, a3.x, low[0], low[1]);
        }
        tsr_multiply_bytes<false, true>(crosses, a0.x, a1.x, a2.x, a3.x, high[0], high[1]);
    }
#pragma unroll
    for (int k = 0; k < 4; k++) sum[k] = tsr_join_products(highs[k], crosses[k], lows[k]);
}

/* Where a tap of the block's sample in a row and a column lies in the region: its place is row * TSR_REGION_PITCH +
 * column + offset. */
static __device__ __forceinline__ int tsr_tap_offset(int neighbours, int tap)
{
    if (tap < neighbours) {
        const struct tsr_tap_place own = tsr_neighbour_place(tap);
        return TSR_REGION_FIRST - own.up * TSR_REGION_PITCH + own.right;
    }
    const int r = (tap - neighbours) / TSR_REFERENCE_TAPS;
    const struct tsr_tap_place at = tsr_reference_place(r, (tap - neighbours) % TSR_REFERENCE_TAPS);
    return TSR_REGION_SAMPLES + r * TSR_REFERENCE_SAMPLES + TSR_REFERENCE_FIRST - at.up * TSR_REGION_PITCH + at.right;
}

/* The median edge prediction of the sample at a place of the region, less 2^15. */
static __device__ __forceinline__ int32_t tsr_region_median(const int16_t *at)
{
    return tsr_median_edge(at[-1], at[-TSR_REGION_PITCH], at[-TSR_REGION_PITCH - 1]);
}

#endif
