/* DC planes on the device (FORMAT.md 8.9): which planes have them, the behaviour of dc_choice_cpu.c; and their means to
 * units, that of tsr_forward_dcs. lapped_cuda.cu makes the means.
 *
 * What the definition of the choice walks through, row by row, depends on sums and quantised DCs alone, and on what
 * neighbours see of these. So a block of threads a tile makes all sums of the rows that count, then all DCs, then what
 * is seen of them, then costs. */
#include "kernels/machine/device.cuh"

#include "kernels/slices/coefficients.cuh"

#include "entropy/dc_choice.h"
#include "transform/block/core4x4.h"

namespace
{

enum {
    THREADS = 128,                                          /* of the choice */
    ROWS_LIMIT = TSR_TILE_SAMPLES / TSR_SLICE_SAMPLES / 16, /* of four blocks, in a tile */
    UNIT_THREADS = 256
};
static_assert((int)UNIT_THREADS >= TSR_TILE_SAMPLES / 256, "a thread a block of means");

/* ---- The choice ------------------------------------------------------------------------------------------- */

/* Rows of four blocks that count: see tsr_dc_row_counts. */
__host__ __device__ int32_t counted_rows(int32_t rows, int32_t columns, uint32_t above)
{
    int32_t count = 0;
    for (int32_t row = 0; row < rows; row++) count += tsr_dc_row_counts(row, rows, columns, above);
    return count;
}

/* The rows that count: sums of blocks; their DCs; what neighbours see of these. Of blocks of means what is seen, with
 * a row of zeros above and a zero before and after each row; in place of DCs first units and places of theirs. */
struct choice_rows {
    int32_t columns, across, rows; /* blocks, and whole blocks of means; rows of means */
    tsr_magnitudes *of_plane;
    int32_t *sum, *dc;
    uint16_t *seen;

    static __host__ __device__ size_t bytes(int32_t columns, int32_t rows)
    {
        return (size_t)(rows + 1) * (size_t)(columns / 4 + 2) * sizeof(tsr_magnitudes) +
               4 * (size_t)rows * (size_t)columns * (2 * sizeof(int32_t) + sizeof(uint16_t));
    }
    __device__ __forceinline__ choice_rows(void *memory, int32_t tile_columns, int32_t tile_rows)
        : columns(tile_columns), across(tile_columns / 4), rows(tile_rows)
    {
        const size_t blocks = 4 * (size_t)rows * (size_t)columns;
        of_plane = static_cast<tsr_magnitudes *>(memory);
        sum = reinterpret_cast<int32_t *>(of_plane + (size_t)(rows + 1) * (size_t)(across + 2));
        dc = sum + blocks;
        seen = reinterpret_cast<uint16_t *>(dc + blocks);
    }
    __device__ __forceinline__ tsr_magnitudes *seen_of_plane(int32_t row, int32_t column) const
    {
        return of_plane + (row + 1) * (across + 2) + 1 + column;
    }
    /* Block column of row number row of means, in units, in the order of the scan. */
    __device__ __forceinline__ void units(int32_t row, int32_t column, int32_t q, int fraction,
                                          int32_t out[TSR_BLOCK_SAMPLES]) const
    {
        int32_t block[TSR_BLOCK_SAMPLES];
#pragma unroll
        for (int i = 0; i < TSR_BLOCK_SAMPLES; i++)
            block[i] = tsr_dc_mean(sum[(4 * row + i / 4) * columns + 4 * column + i % 4], fraction);
        tsr_core_forward(block);
#pragma unroll
        for (int p = 0; p < TSR_BLOCK_SAMPLES; p++) {
            const int at = tsr_zigzag(p);
            out[p] = tsr_quantiser_units(block[at], q, tsr_norm_class(at / 4, at % 4));
        }
    }
};

/* Sum of a block's samples with their fraction; beyond the tile its last ones again. */
__device__ __forceinline__ int32_t sum_of_block(const uint16_t *samples, uint32_t minimum, const tsr_tile &tile,
                                                int32_t column, int32_t row)
{
    uint32_t sum = 0;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const uint16_t *line = samples + tile.first + (size_t)tsr_min(4 * row + i, tile.height - 1) * tile.stride;
        if (4 * column + 4 <= tile.width) {
            const ushort4 four = *reinterpret_cast<const ushort4 *>(line + 4 * column);
            sum += (uint32_t)four.x + four.y + four.z + four.w;
        } else {
#pragma unroll
            for (int j = 0; j < 4; j++) sum += line[tsr_min(4 * column + j, tile.width - 1)];
        }
    }
    return (int32_t)(sum - 16 * minimum) << TSR_LAP_BITS;
}

/* What the DCs cost as a plane, by all threads. */
__device__ __forceinline__ uint64_t cost_plane(const choice_rows &r, int32_t q, int fraction)
{
    const int32_t count = r.rows * r.across, thread = (int32_t)threadIdx.x;
    int32_t *const firsts = r.dc, *const places = r.dc + count;
    uint64_t cost = 0;
    for (int32_t i = thread; i < count; i += THREADS) {
        int32_t units[TSR_BLOCK_SAMPLES];
        r.units(i / r.across, i % r.across, q, fraction, units);
        firsts[i] = units[0];
    }
    __syncthreads();
    for (int32_t i = thread; i < count; i += THREADS) {
        const int32_t row = i / r.across, column = i % r.across;
        int32_t units[TSR_BLOCK_SAMPLES];
        int own;
        r.units(row, column, q, fraction, units);
        cost += tsr_dc_see_plane(units, column > 0 ? firsts[i - 1] : 0, r.seen_of_plane(row, column), &own);
        places[i] = own;
    }
    __syncthreads();
    for (int32_t i = thread; i < count; i += THREADS) {
        const int32_t row = i / r.across, column = i % r.across;
        cost += tsr_dc_rate_of_plane(r.seen_of_plane(row, column), r.seen_of_plane(row - 1, column), places[i]);
    }
    __syncthreads();
    return cost;
}

/* What they cost one by one, by all threads. follows: by row of means, whether the row above it counts, too. */
__device__ __forceinline__ uint64_t cost_apart(const choice_rows &r, const uint8_t *follows, int32_t q)
{
    const int32_t count = 4 * r.rows * r.columns, thread = (int32_t)threadIdx.x;
    uint64_t cost = 0;
    for (int32_t i = thread; i < count; i += THREADS) {
        const int32_t units = tsr_quantiser_units(r.sum[i], q, 0), rounded = tsr_round_units(units, TSR_ROUND_DC);
        r.dc[i] = units < 0 ? -rounded : rounded;
    }
    __syncthreads();
    for (int32_t i = thread; i < count; i += THREADS) {
        const int32_t row = i / r.columns, c = i - row * r.columns;
        const bool first = row % 4 == 0 && !follows[row / 4];
        const int32_t *dc = r.dc + i;
        const int32_t w = c > 0   ? dc[-1]
                          : first ? 0
                                  : dc[-r.columns],
                      n = first ? w : dc[-r.columns], nw = first || c == 0 ? n : dc[-r.columns - 1];
        r.seen[i] = (uint16_t)tsr_seen_magnitude((uint32_t)tsr_abs(*dc - tsr_median_edge(w, n, nw)), 0);
    }
    __syncthreads();
    for (int32_t i = thread; i < count; i += THREADS) {
        const int32_t row = i / r.columns, c = i - row * r.columns;
        const uint16_t *seen = r.seen + i, *above = seen - r.columns;
        const bool is_last = c + 1 == r.columns;
        const uint32_t w = c > 0 ? seen[-1] : 0u, n = row > 0 ? above[0] : 0u,
                       corners = (row > 0 && c > 0 ? above[-1] : 0u) + (row > 0 && !is_last ? above[1] : 0u);
        const int32_t units = tsr_abs(tsr_quantiser_units(r.sum[i], q, 0)),
                      rounded = tsr_round_units(units, TSR_ROUND_DC);
        cost += tsr_dc_cost_apart(units - rounded * TSR_UNIT, seen[0], w, n, corners);
    }
    return cost;
}

__device__ __forceinline__ void add(uint64_t *to, uint64_t cost)
{
    cost = tsr_warp_sum(cost);
    if (threadIdx.x % TSR_WARP == 0) atomicAdd(reinterpret_cast<unsigned long long *>(to), (unsigned long long)cost);
}

/* A block of threads a tile of a plane. */
__global__ void __launch_bounds__(THREADS) k_dc_costs(const tsr_cuda_batch b)
{
    TSR_DYNAMIC_SHARED(memory);
    __shared__ int32_t row_of[ROWS_LIMIT]; /* rows that count */
    __shared__ uint8_t follows[ROWS_LIMIT];
    const uint32_t number = blockIdx.x / b.shape.tiles;
    const tsr_plane_state state = b.shared.plane[number];
    if (tsr_state_span(state) == 1) return;
    const struct tsr_transform_plan plan = tsr_plane_plan(&b, number);
    if (!plan.dc_plane) return;
    const uint32_t in_plane = blockIdx.x - number * b.shape.tiles, above = in_plane / b.shape.tiles_across;
    const tsr_tile tile = tsr_tile_place(&b, in_plane).tile;
    const int32_t columns = (tile.width + 3) / 4, rows = (tile.height + 3) / 4 / 4,
                  counted = counted_rows(rows, columns, above);
    if (counted == 0) return;
    const choice_rows r(memory, columns, counted);
    if (threadIdx.x == 0)
        for (int32_t row = 0, at = 0; row < rows; row++) {
            if (!tsr_dc_row_counts(row, rows, columns, above)) continue;
            follows[at] = at > 0 && row_of[at - 1] == row - 1;
            row_of[at++] = row;
        }
    for (int32_t i = (int32_t)threadIdx.x; i < (counted + 1) * (r.across + 2); i += THREADS)
        for (int p = 0; p < TSR_BLOCK_SAMPLES; p++) r.of_plane[i].at[p] = 0;
    __syncthreads();
    const uint16_t *samples = b.shared.samples + number * b.shape.plane_samples;
    for (int32_t i = (int32_t)threadIdx.x; i < 4 * counted * r.columns; i += THREADS) {
        const int32_t row = i / r.columns;
        r.sum[i] =
            sum_of_block(samples, 65535u - state.not_minimum, tile, i - row * r.columns, 4 * row_of[row / 4] + row % 4);
    }
    __syncthreads();
    const int fraction = tsr_dc_fraction(state.range);
    const int32_t q = plan.choice_q + TSR_LAP_QP;
    struct tsr_dc_costs *costs = &b.transform.dcs.costs[number];
    add(&costs->plane, cost_plane(r, tsr_dc_choice_q(q, fraction), fraction));
    add(&costs->apart, cost_apart(r, follows, q));
    if (threadIdx.x == 0)
        atomicAdd(reinterpret_cast<unsigned long long *>(&costs->blocks), 4ull * (unsigned)(counted * r.columns));
}

/* A thread a plane. blocks: of a plane. */
__global__ void __launch_bounds__(THREADS) k_choose_dc_planes(const tsr_cuda_batch b, uint64_t blocks)
{
    const uint32_t number = blockIdx.x * THREADS + threadIdx.x;
    if (number >= b.shape.planes) return;
    const bool is_chosen = tsr_state_span(b.shared.plane[number]) > 1 && tsr_plane_plan(&b, number).dc_plane &&
                           tsr_is_dc_plane_cheaper(b.transform.dcs.costs[number], blocks);
    b.transform.dcs.plane[number] = {65535u, is_chosen ? 1u : 0u, is_chosen ? 2u : 1u, 0u};
}

/* ---- Means to units ----------------------------------------------------------------------------------------- */

/* A block of threads a tile, a thread a block of its means; places but the first to units, the first to a coefficient,
 * as choose_cuda.cu wants them. dcs: tsr_batch_of_dcs. */
__global__ void __launch_bounds__(UNIT_THREADS) k_units_of_dcs(const tsr_cuda_batch b, const tsr_cuda_batch dcs)
{
    __shared__ int32_t dc[2 * UNIT_THREADS]; /* with a row above and a column in front, which are never read */
    const uint32_t number = blockIdx.x / b.shape.tiles;
    if (tsr_state_span(dcs.shared.plane[number]) == 1) return;
    const struct tsr_tile_place place = tsr_tile_place(&dcs, blockIdx.x - number * b.shape.tiles);
    const int32_t width = place.tile.width, height = place.tile.height, columns = (width + 3) / 4,
                  rows = (height + 3) / 4, pitch = columns + 1;
    const int32_t row = (int32_t)threadIdx.x / columns, column = (int32_t)threadIdx.x - row * columns;
    const int32_t q = tsr_dc_q(tsr_plane_plan(&b, number).qp_index, tsr_dc_fraction(b.shared.plane[number].range));
    const int32_t *means = b.transform.dcs.means + (size_t)blockIdx.x * tsr_tile_dcs(&b);
    int32_t block[TSR_BLOCK_SAMPLES], *const own = dc + (row + 1) * pitch + column + 1;
    if (row < rows) {
#pragma unroll
        for (int i = 0; i < TSR_BLOCK_SAMPLES; i++)
            block[i] = means[tsr_min(4 * row + i / 4, height - 1) * width + tsr_min(4 * column + i % 4, width - 1)];
        tsr_core_forward(block);
#pragma unroll
        for (int i = 0; i < TSR_BLOCK_SAMPLES; i++)
            block[i] = tsr_quantiser_units(block[i], q, tsr_norm_class(i / 4, i % 4));
        const int32_t rounded = tsr_round_units(block[0], TSR_ROUND_DC);
        *own = block[0] < 0 ? -rounded : rounded;
    }
    __syncthreads();
    if (row >= rows) return;
    block[0] = *own - tsr_predict_dc(own, 1, pitch, column == 0, row == 0);
    int32_t scanned[TSR_BLOCK_SAMPLES];
#pragma unroll
    for (int p = 0; p < TSR_BLOCK_SAMPLES; p++) scanned[p] = block[tsr_zigzag(p)];
    const size_t slice = (size_t)number * dcs.shape.slices + place.first_slice +
                         (uint32_t)(row / TSR_SLICE_BLOCKS) * place.slice_columns +
                         (uint32_t)(column / TSR_SLICE_BLOCKS);
    tsr_store_block(dcs.transform.units, slice,
                    (uint32_t)(row % TSR_SLICE_BLOCKS * TSR_SLICE_BLOCKS + column % TSR_SLICE_BLOCKS), scanned);
}

} // namespace

int tsr_cuda_choose_dcs(const struct tsr_cuda_batch *batch, cudaStream_t stream)
{
    const struct tsr_batch_shape &shape = batch->shape;
    size_t shared_bytes = 0;
    for (uint32_t t = 0; t < shape.tiles; t++) {
        const tsr_tile tile = tsr_tile_place(batch, t).tile;
        const int32_t columns = (tile.width + 3) / 4;
        const size_t bytes =
            choice_rows::bytes(columns, counted_rows((tile.height + 3) / 4 / 4, columns, t / shape.tiles_across));
        if (bytes > shared_bytes) shared_bytes = bytes;
    }
    const uint64_t blocks = (uint64_t)((shape.image.columns + 3) / 4) * ((shape.image.rows + 3) / 4);
    TSR_CUDA_TRY(tsr_allow_shared(k_dc_costs, shared_bytes));
    TSR_CUDA_TRY(tsr_launch(k_dc_costs, shape.planes * shape.tiles, THREADS, shared_bytes, stream, *batch));
    return tsr_launch(k_choose_dc_planes, (shape.planes + THREADS - 1) / THREADS, THREADS, 0, stream, *batch, blocks);
}

int tsr_cuda_units_of_dcs(const struct tsr_cuda_batch *batch, const struct tsr_cuda_batch *dcs, cudaStream_t stream)
{
    return tsr_launch(k_units_of_dcs, batch->shape.planes * batch->shape.tiles, UNIT_THREADS, 0, stream, *batch, *dcs);
}
