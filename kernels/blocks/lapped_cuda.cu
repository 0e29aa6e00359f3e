/* Path T with loss and lapping on the device: values to coefficients. FORMAT.md section 8.7; the behaviour of kernels/
 * lapped_cpu.c.
 *
 * The samples of the four blocks around a corner that are nearest to it, 4 x 4 of them, are a window: lapping mixes
 * nothing else with them. So a thread takes a window through both directions in its registers; a block is a quarter of
 * each of four windows. Two kernels: which tiles are lapped, by a part of their blocks; samples to coefficients, or to
 * units of a step and DCs to coefficients where choose_cuda.cu chooses. */
#include "kernels/machine/device.cuh"

#include "kernels/slices/coefficients.cuh"

#include "entropy/rate_distortion.h"
#include "transform/block/dc_plane.h"
#include "transform/block/step_classes.h"
#include "transform/block/core4x4.h"

namespace
{

enum {
    THREADS = TSR_SLICE_PLACE_COUNT,
    CHOICE_THREADS = 128,
    RESIDENT = 4, /* blocks of threads of a multiprocessor */
    DC_PITCH = TSR_SLICE_BLOCKS + 1,
    WINDOWS = TSR_SLICE_BLOCKS + 1, /* across a slice */
    WINDOW_PITCH = WINDOWS
};

/* A tile of a plane. */
struct tile_view {
    const uint16_t *samples; /* the tile's first */
    uint32_t minimum;
    int32_t width, height, stride;
    int32_t columns, rows; /* of blocks */
};

__device__ __forceinline__ tile_view view_of(const tsr_cuda_batch &b, uint32_t plane, const tsr_plane_state &state,
                                             const struct tsr_tile_place &place)
{
    tile_view tile;
    tile.samples = b.shared.samples + plane * b.shape.plane_samples + place.tile.first;
    tile.minimum = 65535u - state.not_minimum;
    tile.width = place.tile.width;
    tile.height = place.tile.height;
    tile.stride = (int32_t)b.shape.pitch;
    tile.columns = (tile.width + 3) / 4;
    tile.rows = (tile.height + 3) / 4;
    return tile;
}

/* Samples with their fraction from column, row on, 4 x 4; beyond the tile its last ones again. What lies in front of
 * the tile is anything. */
__device__ __forceinline__ void load_samples(const tile_view &tile, int32_t column, int32_t row, int32_t out[16])
{
    const bool is_whole = column >= 0 && column + 4 <= tile.width;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const uint16_t *line = tile.samples + tsr_max(0, tsr_min(row + i, tile.height - 1)) * tile.stride;
        if (is_whole) { /* columns are even */
            const ushort2 low = *reinterpret_cast<const ushort2 *>(line + column);
            const ushort2 high = *reinterpret_cast<const ushort2 *>(line + column + 2);
            out[4 * i] = low.x;
            out[4 * i + 1] = low.y;
            out[4 * i + 2] = high.x;
            out[4 * i + 3] = high.y;
        } else {
#pragma unroll
            for (int j = 0; j < 4; j++) out[4 * i + j] = line[tsr_max(0, tsr_min(column + j, tile.width - 1))];
        }
    }
#pragma unroll
    for (int i = 0; i < 16; i++) out[i] = (int32_t)((uint32_t)out[i] - tile.minimum) << TSR_LAP_BITS;
}

/* Of samples, around the upper left corner of the block at column, row. */
__device__ __forceinline__ void lap_samples(const tile_view &tile, int32_t column, int32_t row, int32_t v[16])
{
    if (row > 0 && row < tile.rows)
#pragma unroll
        for (int j = 0; j < 4; j++) tsr_lap_forward(&v[j], &v[4 + j], &v[8 + j], &v[12 + j]);
    if (column > 0 && column < tile.columns)
#pragma unroll
        for (int i = 0; i < 4; i++) tsr_lap_forward(&v[4 * i], &v[4 * i + 1], &v[4 * i + 2], &v[4 * i + 3]);
}

/* The window around the upper left corner of the block at column, row. */
__device__ __forceinline__ void lap_window(const tile_view &tile, int32_t column, int32_t row, int32_t v[16])
{
    load_samples(tile, 4 * column - 2, 4 * row - 2, v);
    lap_samples(tile, column, row, v);
}

/* Values to units of the step q and the class, raster order. Returns the DC as the transform makes it. */
__device__ __forceinline__ int32_t forward_units(int32_t q, int step_class, int32_t block[16])
{
    int32_t factor[3];
#pragma unroll
    for (int k = 0; k < 3; k++) factor[k] = tsr_class_factor(q, k, step_class);
    tsr_core_forward(block);
    const int32_t dc = block[0];
#pragma unroll
    for (int i = 0; i < 16; i++)
        block[i] = tsr_units_by_factor(block[i], q,
                                       i == 0 ? tsr_quantiser_factor(q, 0) : factor[tsr_norm_class(i / 4, i % 4)]);
    return dc;
}

/* The class of a block's square; classes: of its tile, or null. */
__device__ __forceinline__ int class_at(const uint8_t *classes, const tile_view &tile, int32_t column, int32_t row)
{
    const int32_t across = tsr_squares_along(tile.width);
    return classes ? classes[row / TSR_CLASS_BLOCKS * across + column / TSR_CLASS_BLOCKS] : TSR_PLAIN_CLASS;
}

/* Of tile blockIdx.x of the batch. */
__device__ __forceinline__ const uint8_t *classes_here(const tsr_cuda_batch &b, const struct tsr_transform_plan &plan)
{
    return plan.classes ? b.transform.classes + (size_t)blockIdx.x * b.transform.tile_squares : NULL;
}

/* ---- Lapped or not -------------------------------------------------------------------------------------- */

/* A block and the samples around it that lapping mixes with it, two in a word: its own from row 2 and word 1 on. */
struct wide_block {
    uint32_t words[8][4];

    __device__ __forceinline__ wide_block(const tile_view &tile, int32_t column, int32_t row)
    {
        const int32_t x = 4 * column - 2, y = 4 * row - 2;
        const bool is_whole = x >= 0 && x + 8 <= tile.width;
#pragma unroll
        for (int i = 0; i < 8; i++) {
            const uint16_t *line = tile.samples + tsr_max(0, tsr_min(y + i, tile.height - 1)) * tile.stride;
            if (is_whole) {
                const uint2 own = *reinterpret_cast<const uint2 *>(line + x + 2);
                words[i][0] = *reinterpret_cast<const uint32_t *>(line + x);
                words[i][1] = own.x;
                words[i][2] = own.y;
                words[i][3] = *reinterpret_cast<const uint32_t *>(line + x + 6);
            } else {
#pragma unroll
                for (int k = 0; k < 4; k++)
                    words[i][k] = line[tsr_max(0, tsr_min(x + 2 * k, tile.width - 1))] |
                                  (uint32_t)line[tsr_max(0, tsr_min(x + 2 * k + 1, tile.width - 1))] << 16;
            }
        }
    }
    /* 4 x 4 samples with their fraction. */
    __device__ __forceinline__ void take(const tile_view &tile, int row, int word, int32_t out[16]) const
    {
#pragma unroll
        for (int i = 0; i < 16; i++) {
            const uint32_t two = words[row + i / 4][word + i % 4 / 2];
            out[i] = (int32_t)((i % 2 ? two >> 16 : two & 0xffffu) - tile.minimum) << TSR_LAP_BITS;
        }
    }
};

/* What the block's places but the first seem to cost. */
__device__ __forceinline__ uint32_t rough_cost(const int32_t units[16])
{
    uint32_t cost = 0;
#pragma unroll
    for (int i = 1; i < 16; i++) cost += tsr_rough_cost((uint32_t)tsr_abs(units[i]));
    return cost;
}

/* A block of threads a tile of a plane. */
__global__ void __launch_bounds__(CHOICE_THREADS, 6) k_choose_lapping(const tsr_cuda_batch b)
{
    __shared__ uint64_t sums[2][CHOICE_THREADS / TSR_WARP];
    const uint32_t number = blockIdx.x / b.shape.tiles;
    const tsr_plane_state state = b.shared.plane[number];
    if (tsr_state_span(state) == 1) return;
    const struct tsr_transform_plan plan = tsr_plane_plan(&b, number);
    if (plan.fine) {
        if (threadIdx.x == 0) b.transform.lapped[blockIdx.x] = 0;
        return;
    }
    const struct tsr_tile_place place = tsr_tile_place(&b, blockIdx.x - number * b.shape.tiles);
    const tile_view tile = view_of(b, number, state, place);
    uint64_t cost[2] = {0, 0};
    const int32_t blocks = tile.columns * tile.rows;
    const uint8_t *classes = classes_here(b, plan);
    for (int32_t at = (int32_t)threadIdx.x * TSR_ROUGH_STEP; at < blocks; at += CHOICE_THREADS * TSR_ROUGH_STEP) {
        const int32_t row = at / tile.columns, column = at - row * tile.columns;
        const int32_t q = tsr_block_qp(&plan, tsr_sample_number(&b, place.tile, column, row));
        const int step_class = class_at(classes, tile, column, row);
        int32_t block[16], window[16];
        const wide_block wide(tile, column, row);
        wide.take(tile, 2, 1, block);
        forward_units(q, step_class, block);
        cost[0] += rough_cost(block);
#pragma unroll
        for (int corner = 0; corner < 4; corner++) { /* its quarter nearest to the block's middle is another block's */
            const int x = corner % 2, y = corner / 2;
            wide.take(tile, 4 * y, 2 * x, window);
            lap_samples(tile, column + x, row + y, window);
#pragma unroll
            for (int i = 0; i < 2; i++)
#pragma unroll
                for (int j = 0; j < 2; j++)
                    block[4 * (2 * y + i) + 2 * x + j] = window[4 * (2 - 2 * y + i) + 2 - 2 * x + j];
        }
        forward_units(q + TSR_LAP_QP, step_class, block);
        cost[1] += rough_cost(block);
    }
    for (int way = 0; way < 2; way++) {
        const uint64_t sum = tsr_warp_sum(cost[way]);
        if (threadIdx.x % TSR_WARP == 0) sums[way][threadIdx.x / TSR_WARP] = sum;
    }
    __syncthreads();
    if (threadIdx.x != 0) return;
    for (int way = 0; way < 2; way++) {
        cost[way] = 0;
        for (int w = 0; w < CHOICE_THREADS / TSR_WARP; w++) cost[way] += sums[way][w];
    }
    b.transform.lapped[blockIdx.x] = cost[1] <= cost[0];
}

/* ---- Samples to coefficients, or to units --------------------------------------------------------------------- */

/* DCs as k_blocks has them, and a slice's windows: sample i of window w at [i][w]. Windows at the slice's upper and
 * left sides are those of the slices there. */
template <typename Coefficient> struct lapped_memory {
    int32_t dc[DC_PITCH * DC_PITCH];
    Coefficient left[TSR_SLICE_BLOCKS];
    Coefficient above[2][TSR_TILE_WIDTH / 4];
    int32_t window[16][WINDOWS * WINDOW_PITCH];
    int32_t lowest[16][TSR_TILE_WIDTH / 4 + 1]; /* along the lower sides of a row of slices */
};

/* The slice's windows, its first block at column, row: a thread one, below and right of its block; where there is no
 * slice before, some threads another one. */
template <typename Coefficient>
__device__ __forceinline__ void fill_windows(lapped_memory<Coefficient> &m, const tile_view &tile, int32_t column,
                                             int32_t row)
{
    enum { SIDE = TSR_SLICE_BLOCKS };
    const int32_t thread = (int32_t)threadIdx.x, group = thread / TSR_WARP, along = thread % TSR_WARP + 1;
    int32_t x = thread % SIDE + 1, y = thread / SIDE + 1;
    const bool is_left = column == 0 && group == 0 && along <= SIDE, is_upper = row == 0 && group == 1 && along <= SIDE,
               is_corner = column == 0 && row == 0 && thread == 2 * TSR_WARP;
    const int turns = is_left || is_upper || is_corner ? 2 : 1;
#pragma unroll 1
    for (int turn = 0; turn < turns; turn++) {
        if (column + x <= tile.columns && row + y <= tile.rows) {
            int32_t v[16];
            lap_window(tile, column + x, row + y, v);
#pragma unroll
            for (int i = 0; i < 16; i++) m.window[i][y * WINDOW_PITCH + x] = v[i];
        }
        x = is_upper ? along : 0;
        y = is_left ? along : 0;
    }
    if (row == 0) return;
    const int32_t i = thread / SIDE;
    m.window[i][thread % SIDE + 1] = m.lowest[i][column + thread % SIDE + 1];
    if (column == 0 && thread < 16) m.window[thread][0] = m.lowest[thread][0];
}
static_assert((int)THREADS == 16 * TSR_SLICE_BLOCKS && (int)THREADS > 2 * (int)TSR_WARP,
              "a thread a sample of the windows along a side");

/* Keeps the lower side's, before keep_right. */
template <typename Coefficient>
__device__ __forceinline__ void keep_lowest(lapped_memory<Coefficient> &m, int32_t column)
{
    enum { SIDE = TSR_SLICE_BLOCKS };
    const int32_t i = (int32_t)threadIdx.x / SIDE, x = (int32_t)threadIdx.x % SIDE + 1;
    m.lowest[i][column + x] = m.window[i][SIDE * WINDOW_PITCH + x];
    if (column == 0 && x == 1) m.lowest[i][0] = m.window[i][SIDE * WINDOW_PITCH];
}

/* The right side's windows are the left ones of the next slice. */
template <typename Coefficient> __device__ __forceinline__ void keep_right(lapped_memory<Coefficient> &m)
{
    for (int32_t at = (int32_t)threadIdx.x; at < 16 * WINDOWS; at += THREADS) {
        const int32_t i = at % 16, y = at / 16;
        m.window[i][y * WINDOW_PITCH] = m.window[i][y * WINDOW_PITCH + TSR_SLICE_BLOCKS];
    }
}

template <typename Coefficient>
__device__ __forceinline__ void take_block(const lapped_memory<Coefficient> &m, int32_t c, int32_t r, int32_t block[16])
{
#pragma unroll
    for (int i = 0; i < 4; i++)
#pragma unroll
        for (int j = 0; j < 4; j++)
            block[4 * i + j] = m.window[(i + 2) % 4 * 4 + (j + 2) % 4][(r + i / 2) * WINDOW_PITCH + c + j / 2];
}

/* Asks for the samples of the slice after this one at column, row: most threads a row of them. */
__device__ __forceinline__ void ask_for_next(const tile_view &tile, int32_t column, int32_t row)
{
    enum { SIDE = TSR_SLICE_BLOCKS, ROWS = 4 * SIDE + 2, MARGIN = 8 };
    const int32_t next = column + SIDE < tile.columns ? column + SIDE : 0;
    if (next == 0) row += SIDE;
    const int32_t y = 4 * row + (int32_t)threadIdx.x, x = 4 * next;
    if (threadIdx.x >= ROWS || row >= tile.rows || y >= tile.height) return;
    const int32_t columns = tsr_min(4 * SIDE + MARGIN, (tile.width - x + 7) / 8 * 8); /* pitches are multiples of 8 */
    tsr_prefetch(tile.samples + y * tile.stride + x, (uint32_t)columns * sizeof(uint16_t));
}

/* The neighbours' DCs to their places beside the slice; those outside the tile are never read. before: of the row of
 * slices above. */
template <typename Coefficient>
__device__ __forceinline__ void bring_dcs(lapped_memory<Coefficient> &memory, const Coefficient *before, int32_t column,
                                          unsigned thread)
{
    if (thread < TSR_SLICE_BLOCKS)
        memory.dc[thread + 1] = before[column + (int32_t)thread];
    else if (thread < 2 * TSR_SLICE_BLOCKS)
        memory.dc[(thread - TSR_SLICE_BLOCKS + 1) * DC_PITCH] = memory.left[thread - TSR_SLICE_BLOCKS];
    else if (thread == 2 * TSR_SLICE_BLOCKS && column > 0)
        memory.dc[0] = before[column - 1];
}

/* The first places from units to coefficients. */
template <int PLACES> __device__ __forceinline__ void round_places(int32_t block[16])
{
#pragma unroll
    for (int i = 0; i < PLACES; i++) {
        const int32_t coefficient = tsr_round_units(block[i], i == 0 ? TSR_ROUND_DC : TSR_ROUND_AC);
        block[i] = block[i] < 0 ? -coefficient : coefficient;
    }
}

/* Samples of a block to units or to coefficients, the first to a coefficient. means: where its DC goes instead, to this
 * place; NULL: it stays. */
template <bool UNITS>
__device__ __forceinline__ void forward_block(int32_t q, int step_class, uint32_t range, int32_t *means, int32_t place,
                                              int32_t block[16])
{
    const int32_t dc = forward_units(q, step_class, block);
    if (UNITS && means) {
        means[place] = tsr_dc_mean(dc, tsr_dc_fraction(range));
        block[0] = 0; /* and differences of zeros are zeros */
    }
    round_places<UNITS ? 1 : 16>(block);
}

/* Where the means of tile blockIdx.x go; NULL: the plane has no DC plane. */
__device__ __forceinline__ int32_t *means_here(const tsr_cuda_batch &b, uint32_t plane)
{
    if (!b.transform.has_dcs || tsr_state_span(b.transform.dcs.plane[plane]) == 1) return NULL;
    return b.transform.dcs.means + (size_t)blockIdx.x * tsr_tile_dcs(&b);
}

/* See k_blocks. UNITS: places but the first stay units, as they have to be for a choice. */
template <typename Coefficient, bool UNITS>
__global__ void __launch_bounds__(THREADS, RESIDENT) k_lapped(const tsr_cuda_batch b)
{
    __shared__ lapped_memory<Coefficient> memory;
    const unsigned thread = threadIdx.x;
    const uint32_t number = blockIdx.x / b.shape.tiles;
    const tsr_plane_state state = b.shared.plane[number];
    if (tsr_state_span(state) == 1) return;
    const struct tsr_transform_plan plan = tsr_plane_plan(&b, number);
    const struct tsr_tile_place place = tsr_tile_place(&b, blockIdx.x - number * b.shape.tiles);
    const tile_view tile = view_of(b, number, state, place);
    const bool lapped = b.transform.lapped[blockIdx.x] != 0;
    const int32_t lap_qp = lapped ? TSR_LAP_QP : 0, slices = (int32_t)(place.slice_columns * place.slice_rows);
    const int32_t c = (int32_t)(thread % TSR_SLICE_BLOCKS), r = (int32_t)(thread / TSR_SLICE_BLOCKS);
    size_t slice = (size_t)number * b.shape.slices + place.first_slice;
    int32_t column = 0, row = 0; /* of the slice, in blocks */
    int32_t *const means = UNITS ? means_here(b, number) : NULL;
    for (int32_t s = 0; s < slices; s++, slice++) {
        const bool is_block = column + c < tile.columns && row + r < tile.rows;
        int32_t block[16];
        ask_for_next(tile, column, row);
        __syncthreads(); /* the slice before is done with the memory */
        if (lapped) {
            fill_windows(memory, tile, column, row);
            __syncthreads();
            keep_lowest(memory, column);
        }
        if (is_block) {
            if (lapped)
                take_block(memory, c, r, block);
            else
                load_samples(tile, 4 * (column + c), 4 * (row + r), block);
            const int32_t q = plan.coarser_by == 0
                                  ? plan.qp_index
                                  : tsr_block_qp(&plan, tsr_sample_number(&b, place.tile, column + c, row + r));
            forward_block<UNITS>(q + lap_qp, class_at(classes_here(b, plan), tile, column + c, row + r), state.range,
                                 means, (row + r) * tile.columns + column + c, block);
            memory.dc[(r + 1) * DC_PITCH + c + 1] = block[0];
        }
        Coefficient *above = memory.above[row / TSR_SLICE_BLOCKS % 2];
        bring_dcs(memory, memory.above[1 - row / TSR_SLICE_BLOCKS % 2], column, thread);
        __syncthreads();
        if (lapped) keep_right(memory);
        if (is_block) {
            if (c == TSR_SLICE_BLOCKS - 1) memory.left[r] = (Coefficient)block[0];
            if (r == TSR_SLICE_BLOCKS - 1) above[column + c] = (Coefficient)block[0];
            block[0] -=
                tsr_predict_dc(&memory.dc[(r + 1) * DC_PITCH + c + 1], 1, DC_PITCH, column + c == 0, row + r == 0);
            int32_t scanned[16];
#pragma unroll
            for (int p = 0; p < 16; p++) scanned[p] = block[tsr_zigzag(p)];
            if (UNITS)
                tsr_store_block(b.transform.units, slice, thread, scanned);
            else
                tsr_store_block(static_cast<Coefficient *>(b.transform.coefficients), slice, thread, scanned);
        }
        if ((column += TSR_SLICE_BLOCKS) >= tile.columns) {
            column = 0;
            row += TSR_SLICE_BLOCKS;
        }
    }
}

template <typename Coefficient> cudaError_t lap(const tsr_cuda_batch *b, cudaStream_t stream)
{
    const unsigned tiles = b->shape.planes * b->shape.tiles;
    TSR_CUDA_TRY(tsr_launch(k_choose_lapping, tiles, CHOICE_THREADS, 0, stream, *b));
    void (*const kernel)(tsr_cuda_batch) =
        b->transform.chooses ? k_lapped<Coefficient, true> : k_lapped<Coefficient, false>;
    return tsr_launch(kernel, tiles, THREADS, 0, stream, *b);
}

} // namespace

int tsr_cuda_lapped(const struct tsr_cuda_batch *batch, cudaStream_t stream)
{
    return batch->transform.narrow ? lap<int16_t>(batch, stream) : lap<int32_t>(batch, stream);
}
