/* Values to coefficients on the device: 4x4 transforms, quantiser, DC prediction, and the counts of run-level symbols.
 * FORMAT.md sections 8 and 10; the behaviour of tsr_blocks_forward and tsr_count_blocks.
 *
 * A block of threads a tile, a thread a 4x4 block, slice after slice. DCs are predicted from those that the slice's
 * threads leave in shared memory, and those that the slices left of it and above have left there: no pass over the
 * coefficients. */
#include "kernels/machine/device.cuh"

#include "kernels/slices/coefficients.cuh"
#include "kernels/slices/run_level.cuh"

#include "transform/block/core4x4.h"
#include "transform/predict/residual.h"
#include "transform/block/reversible4x4.h"

namespace
{

enum { RESIDENT = 4 /* blocks of threads of a multiprocessor */ };
enum { THREADS = TSR_SLICE_PLACE_COUNT, DC_PITCH = TSR_SLICE_BLOCKS + 1 };

/* Counts of a tile fit 16 bits, two in a word: 4096 blocks of at most 15 symbols of a cell. */
static_assert(TSR_TILE_SLICES * TSR_SLICE_PLACE_COUNT * 15 < 65536, "a tile's counts must fit 16 bits");

/* What blocks are made of samples: transformed without loss, transformed and quantised, path P's residuals. */
enum block_kind { REVERSIBLE, QUANTISED, RESIDUAL };

/* A tile of a plane as its blocks see it. */
struct tile_view {
    const uint16_t *samples; /* the tile's first */
    const uint16_t *index;   /* x by value, or null */
    uint32_t minimum, range;
    int32_t width, height, stride;
};

/* The block's samples; columns and rows beyond the tile repeat its last ones. Planes that are coded with loss are not
 * packed. */
template <block_kind KIND>
__device__ __forceinline__ void load_block(const tile_view &tile, int32_t column, int32_t row, int32_t block[16])
{
    const bool is_whole = column + 4 <= tile.width;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const uint16_t *line = tile.samples + (uint32_t)(tsr_min(row + i, tile.height - 1) * tile.stride);
        if (is_whole) {
            const ushort4 four = *reinterpret_cast<const ushort4 *>(line + column);
            block[4 * i] = four.x;
            block[4 * i + 1] = four.y;
            block[4 * i + 2] = four.z;
            block[4 * i + 3] = four.w;
        } else {
#pragma unroll
            for (int j = 0; j < 4; j++) block[4 * i + j] = line[tsr_min(column + j, tile.width - 1)];
        }
    }
#pragma unroll
    for (int i = 0; i < 16; i++)
        block[i] =
            KIND != QUANTISED && tile.index ? tile.index[block[i]] : (int32_t)((uint32_t)block[i] - tile.minimum);
}

/* x of a sample of the tile. */
__device__ __forceinline__ int32_t index_at(const tile_view &tile, int32_t column, int32_t row)
{
    const uint32_t value = tile.samples[row * tile.stride + column];
    return tile.index ? tile.index[value] : (int32_t)(value - tile.minimum);
}

/* Indices to residuals of the median edge predictor; 0 beyond the tile. */
__device__ __forceinline__ void predict_block(const tile_view &tile, int32_t column, int32_t row, int32_t block[16])
{
    int32_t above[5]; /* the samples above the line at work, from the corner on */
#pragma unroll
    for (int j = 0; j < 5; j++) {
        const int32_t x = tsr_min(column + j - 1, tile.width - 1);
        above[j] = row > 0 && x >= 0 ? index_at(tile, x, row - 1) : 0;
    }
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const int32_t y = row + i;
        int32_t w = column > 0 && y < tile.height ? index_at(tile, column - 1, y) : 0, corner = above[0];
        above[0] = w;
#pragma unroll
        for (int j = 0; j < 4; j++) {
            const int32_t x = block[4 * i + j], n = above[j + 1];
            const bool is_first = column + j == 0;
            const int32_t prediction = y == 0 ? w : is_first ? n : tsr_median_edge(w, n, corner);
            const bool is_sample = y < tile.height && column + j < tile.width;
            block[4 * i + j] = is_sample ? tsr_residual(x, prediction, (int32_t)tile.range) : 0;
            corner = n;
            above[j + 1] = w = x;
        }
    }
}

/* Samples to coefficients, raster order. */
template <block_kind KIND> __device__ __forceinline__ void forward_block(int32_t qp_index, int32_t block[16])
{
    if (KIND == REVERSIBLE) {
        tsr_reversible_forward(block);
        return;
    }
    tsr_core_forward(block);
#pragma unroll
    for (int i = 0; i < 16; i++)
        block[i] = tsr_quantise(block[i], qp_index, tsr_norm_class(i / 4, i % 4), i == 0 ? TSR_ROUND_DC : TSR_ROUND_AC);
}

/* DCs that a block of threads keeps: those of the slice, with the ones left of it and above, and what the slices to
 * come will ask for. */
template <typename Coefficient> struct dc_memory {
    int32_t dc[DC_PITCH * DC_PITCH];
    Coefficient left[TSR_SLICE_BLOCKS];       /* last column of the slice before */
    Coefficient above[2][TSR_TILE_WIDTH / 4]; /* last rows of this row of slices and of the one before it, in turn */
};

/* And of its blocks where their symbols are counted. */
struct count_memory {
    tsr_slice_energies energies;
    uint8_t width[TSR_BLOCK_SAMPLES][THREADS]; /* of the magnitude - 1 at place p of thread t's block: [p][t] */
    tsr_tile_counts<TSR_PLANE_COUNTS> counts;
};

/* The neighbours' DCs to their places beside the slice: thread 0..15 above, 16..31 left, 32 the corner. Those outside
 * the tile are never read. */
template <typename Coefficient>
__device__ __forceinline__ void bring_neighbours(dc_memory<Coefficient> &m, const Coefficient *above, int32_t column,
                                                 unsigned thread)
{
    if (thread < TSR_SLICE_BLOCKS)
        m.dc[thread + 1] = above[column + (int32_t)thread];
    else if (thread < 2 * TSR_SLICE_BLOCKS)
        m.dc[(thread - TSR_SLICE_BLOCKS + 1) * DC_PITCH] = m.left[thread - TSR_SLICE_BLOCKS];
    else if (thread == 2 * TSR_SLICE_BLOCKS && column > 0)
        m.dc[0] = above[column - 1];
}

template <typename Width>
__device__ __forceinline__ void count_block(tsr_tile_counts<TSR_PLANE_COUNTS> &counts, int32_t dc, uint32_t mask,
                                            Width width, int dc_class, int ac_class)
{
    counts.add((uint32_t)(dc_class * TSR_DC_SYMBOLS + tsr_token_symbol(tsr_fold(dc))));
    const auto add_ac = [&](int symbol, int start) {
        const int cell = tsr_ac_cell(tsr_place_class(start), ac_class);
        counts.add((uint32_t)(TSR_DC_COUNTS + cell * TSR_AC_PITCH + symbol));
    };
    const int end = tsr_visit_runs(
        mask, [&](int place, int start) { add_ac(tsr_run_level_symbol(place - start, width(place)), start); });
    if (end < TSR_BLOCK_SAMPLES) add_ac(TSR_END_OF_BLOCK, end);
}

/* Counts the symbols of a slice's blocks, whose coefficients are known. A barrier inside. */
__device__ __forceinline__ void count_slice(count_memory &counting, const int32_t block[16], bool is_block,
                                            unsigned thread)
{
    uint32_t energy = 0, mask = 0;
    if (is_block) {
#pragma unroll
        for (int p = 1; p < 16; p++) {
            const uint32_t magnitude = (uint32_t)tsr_abs(block[tsr_zigzag(p)]);
            if (magnitude != 0) counting.width[p][thread] = (uint8_t)tsr_bit_width(magnitude - 1u);
            mask |= magnitude != 0 ? 1u << p : 0u;
            energy += magnitude;
        }
        counting.energies.set(thread, (uint32_t)tsr_abs(block[0]), energy);
    }
    __syncthreads();
    if (is_block) {
        int dc_class, ac_class;
        counting.energies.classes(thread, &dc_class, &ac_class);
        count_block(
            counting.counts, block[0], mask, [&](int p) { return counting.width[p][thread]; }, dc_class, ac_class);
    }
}

/* A block in raster order to its place in the scan's order. */
template <typename Coefficient>
__device__ __forceinline__ void store_scanned(Coefficient *coefficients, const int32_t block[16])
{
#pragma unroll
    for (int quarter = 0; quarter < 4; quarter++)
        tsr_store_four(coefficients + tsr_coefficient_place(0, quarter, 0), block[tsr_zigzag(4 * quarter)],
                       block[tsr_zigzag(4 * quarter + 1)], block[tsr_zigzag(4 * quarter + 2)],
                       block[tsr_zigzag(4 * quarter + 3)]);
}

template <typename Coefficient, block_kind KIND, bool COUNTS>
__global__ void __launch_bounds__(THREADS, RESIDENT) k_blocks(const tsr_cuda_batch b)
{
    __shared__ dc_memory<Coefficient> memory;
    TSR_DYNAMIC_SHARED(dynamic);
    count_memory &counting = *reinterpret_cast<count_memory *>(dynamic); /* only there if COUNTS */
    const unsigned thread = threadIdx.x;
    const uint32_t number = blockIdx.x / b.shape.tiles;
    const tsr_plane_state state = b.shared.plane[number];
    if (tsr_state_span(state) == 1) return;
    const struct tsr_tile_place place = tsr_tile_place(&b, blockIdx.x - number * b.shape.tiles);
    const tile_view tile = {b.shared.samples + number * b.shape.plane_samples + place.tile.first,
                            state.packed ? b.shared.index + (size_t)number * b.shape.values : NULL,
                            65535u - state.not_minimum,
                            state.range,
                            place.tile.width,
                            place.tile.height,
                            (int32_t)b.shape.pitch};
    const int32_t c = (int32_t)(thread % TSR_SLICE_BLOCKS), r = (int32_t)(thread / TSR_SLICE_BLOCKS);
    if (COUNTS) counting.counts.clear(thread, THREADS);
    const struct tsr_transform_plan plan = KIND == QUANTISED ? tsr_plane_plan(&b, number) : b.transform.plan;

    Coefficient *coefficients = static_cast<Coefficient *>(b.transform.coefficients) +
                                tsr_coefficient_place((size_t)number * b.shape.slices + place.first_slice, 0, thread);
    int32_t column = 0, row = 0; /* of the slice, in blocks */
    const int32_t slices = (int32_t)(place.slice_columns * place.slice_rows);
    for (int32_t s = 0; s < slices; s++, coefficients += TSR_SLICE_PLACE_COUNT * TSR_BLOCK_SAMPLES) {
        const bool is_block = 4 * (column + c) < tile.width && 4 * (row + r) < tile.height;
        int32_t block[16];
        __syncthreads(); /* the slice before is done with the memory */
        if (is_block) {
            load_block<KIND>(tile, 4 * (column + c), 4 * (row + r), block);
            if (KIND == RESIDUAL)
                predict_block(tile, 4 * (column + c), 4 * (row + r), block);
            else if (KIND == QUANTISED && plan.coarser_by > 0)
                forward_block<KIND>(tsr_block_qp(&plan, tsr_sample_number(&b, place.tile, column + c, row + r)), block);
            else
                forward_block<KIND>(plan.qp_index, block);
            memory.dc[(r + 1) * DC_PITCH + c + 1] = block[0];
        }
        Coefficient *above = memory.above[row / TSR_SLICE_BLOCKS % 2];
        bring_neighbours(memory, memory.above[1 - row / TSR_SLICE_BLOCKS % 2], column, thread);
        __syncthreads();
        if (is_block) {
            if (c == TSR_SLICE_BLOCKS - 1) memory.left[r] = (Coefficient)block[0];
            if (r == TSR_SLICE_BLOCKS - 1) above[column + c] = (Coefficient)block[0];
            if (KIND != RESIDUAL)
                block[0] -=
                    tsr_predict_dc(&memory.dc[(r + 1) * DC_PITCH + c + 1], 1, DC_PITCH, column + c == 0, row + r == 0);
            store_scanned(coefficients, block);
        }
        if (COUNTS) count_slice(counting, block, is_block, thread);
        column += TSR_SLICE_BLOCKS;
        if (4 * column >= tile.width) {
            column = 0;
            row += TSR_SLICE_BLOCKS;
        }
    }
    if (!COUNTS) return;
    __syncthreads();
    counting.counts.add_to(b.transform.counts + (size_t)number * TSR_PLANE_COUNTS, thread, THREADS);
}

template <typename Coefficient, block_kind KIND, bool COUNTS>
cudaError_t launch_blocks(const tsr_cuda_batch *batch, cudaStream_t stream)
{
    void (*const kernel)(tsr_cuda_batch) = k_blocks<Coefficient, KIND, COUNTS>;
    const size_t shared_bytes = COUNTS ? sizeof(count_memory) : 0;
    TSR_CUDA_TRY(tsr_allow_shared(kernel, shared_bytes));
    return tsr_launch(kernel, batch->shape.planes * batch->shape.tiles, THREADS, shared_bytes, stream, *batch);
}

template <typename Coefficient> cudaError_t launch_kind(const tsr_cuda_batch *batch, cudaStream_t stream)
{
    const bool counts = batch->transform.by == TSR_BY_RUN_LEVEL;
    if (batch->shape.coding.path == TSR_PATH_PREDICT) return launch_blocks<Coefficient, RESIDUAL, false>(batch, stream);
    if (batch->shape.coding.lossy)
        return counts ? launch_blocks<Coefficient, QUANTISED, true>(batch, stream)
                      : launch_blocks<Coefficient, QUANTISED, false>(batch, stream);
    return counts ? launch_blocks<Coefficient, REVERSIBLE, true>(batch, stream)
                  : launch_blocks<Coefficient, REVERSIBLE, false>(batch, stream);
}

} // namespace

int tsr_cuda_blocks(const struct tsr_cuda_batch *batch, cudaStream_t stream)
{
    return batch->transform.narrow ? launch_kind<int16_t>(batch, stream) : launch_kind<int32_t>(batch, stream);
}
