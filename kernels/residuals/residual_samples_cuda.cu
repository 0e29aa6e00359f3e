/* Values to samples x on the device, their predictions, and what planes that try anchors need of them. FORMAT.md
 * sections 7.1 and 7.10. */
#include "kernels/machine/device.cuh"

#include "kernels/training/predict_blocks.cuh"
#include "transform/predict/anchor.h"

namespace
{

enum { THREADS = 256 };

/* ---- Indices ------------------------------------------------------------------------------------------------ */

enum { INDEX_GROUP = 8, INDEX_ROUNDS = 8 };

__global__ void __launch_bounds__(THREADS) k_indices(const tsr_predict_batch p, unsigned blocks)
{
    const uint32_t plane = blockIdx.x / blocks;
    const tsr_plane_state state = p.b.shared.plane[plane];
    if (!state.packed && state.not_minimum == 65535u) return; /* x are values already */
    const uint16_t *index = p.b.shared.index + (size_t)plane * p.b.shape.values;
    uint4 *const samples = reinterpret_cast<uint4 *>(p.b.shared.samples + plane * p.b.shape.plane_samples);
    size_t group = (size_t)(blockIdx.x - plane * blocks) * (THREADS * INDEX_ROUNDS) + threadIdx.x;
    for (int round = 0; round < INDEX_ROUNDS; round++, group += THREADS) {
        if (group >= p.b.shape.plane_samples / INDEX_GROUP) return;
        uint4 four = samples[group];
        uint32_t *pair = &four.x;
#pragma unroll
        for (int i = 0; i < 4; i++)
            pair[i] = ((uint32_t)tsr_sample_index(state, index, pair[i] & 0xffffu) & 0xffffu) |
                      (uint32_t)tsr_sample_index(state, index, pair[i] >> 16) << 16;
        samples[group] = four;
    }
}

/* ---- Predictions -------------------------------------------------------------------------------------------- */

enum { BLOCK_WARPS = 4, BLOCK_THREADS = BLOCK_WARPS * TSR_WARP, BLOCK_GROUP = 4 };

/* What stands for a sample until codes do. at: it in its region; all samples but the prediction are less 2^15. */
__device__ __forceinline__ uint32_t anchored_entry(const int16_t *at, int32_t w, bool is_first_row, int32_t prediction,
                                                   int32_t fraction, int32_t range)
{
    constexpr int32_t NOTHING = -TSR_SAMPLE_BIAS; /* above the first row */
    const int32_t n = is_first_row ? NOTHING : at[-TSR_REGION_PITCH],
                  nw = is_first_row ? NOTHING : at[-TSR_REGION_PITCH - 1],
                  ne = is_first_row ? NOTHING : at[-TSR_REGION_PITCH + 1];
    const struct tsr_anchor anchor = tsr_choose_anchor(prediction - TSR_SAMPLE_BIAS, fraction, w, n, nw, ne);
    return tsr_fold(tsr_anchored_residual(anchor, at[0], range)) | (uint32_t)tsr_anchor_bin(anchor.step, w, n, ne)
                                                                       << TSR_DEVICE_ANCHOR_SHIFT;
}

/* A warp a block, of planes that have linear predictors: what its label's predictor says of its samples. ANCHORS: the
 * planes try them. Then predictions are those of the first row, too, which are W. */
template <int NEIGHBOURS, bool ANCHORS>
__global__ void __launch_bounds__(BLOCK_THREADS) k_predictions(const tsr_predict_batch p, unsigned groups)
{
    constexpr int TAPS = NEIGHBOURS + TSR_REFERENCES_LIMIT * TSR_REFERENCE_TAPS;
    __shared__ int16_t regions[BLOCK_WARPS][TSR_REGION_ROOM];
    const unsigned lane = threadIdx.x % TSR_WARP, warp = threadIdx.x / TSR_WARP;
    const uint32_t plane = blockIdx.x / groups;
    const tsr_predictor_model &model = p.predictor[plane];
    if (tsr_plane_is_constant(p, plane) || model.set == 0 || TSR_AT(tsr_neighbours)[model.set] != NEIGHBOURS) return;
    const tsr_plane_view view = tsr_view_plane(p, plane);
    int16_t *region = regions[warp];
    const uint32_t first = ((blockIdx.x - plane * groups) * BLOCK_WARPS + warp) * BLOCK_GROUP;
    for (uint32_t number = first; number < first + BLOCK_GROUP && number < p.b.shape.tiles * p.tile_blocks; number++) {
        const tsr_block_place block = tsr_any_block(p, plane, number);
        if (!block.is_there) continue;
        tsr_stage_block(view, block, view.references, region, lane);
        const int label = p.final_label[block.at];
        const int column = (int)(lane % TSR_PREDICTOR_BLOCK);
        int32_t sum[TSR_PREDICTOR_BLOCK / 2];
#pragma unroll
        for (int round = 0; round < TSR_PREDICTOR_BLOCK / 2; round++) sum[round] = 0;
        if (label < model.classes) {
#pragma unroll
            for (int k = 0; k < TAPS; k++) {
                if (k >= NEIGHBOURS + view.references * TSR_REFERENCE_TAPS) break;
                const int32_t weight = model.weight[label][k];
                const int16_t *at = region + tsr_tap_offset(NEIGHBOURS, k) + column;
#pragma unroll
                for (int round = 0; round < TSR_PREDICTOR_BLOCK / 2; round++)
                    sum[round] += weight * at[(2 * round + (int)(lane / TSR_PREDICTOR_BLOCK)) * TSR_REGION_PITCH];
            }
        }
#pragma unroll
        for (int round = 0; round < TSR_PREDICTOR_BLOCK / 2; round++) {
            const int row = 2 * round + (int)(lane / TSR_PREDICTOR_BLOCK);
            const int32_t y = block.y * TSR_PREDICTOR_BLOCK + row;
            if (column >= block.span.columns || y >= block.tile.height) continue;
            const int16_t *const at = region + TSR_REGION_FIRST + row * TSR_REGION_PITCH + column;
            int32_t prediction = label < model.classes ? tsr_linear_prediction(sum[round], (int32_t)view.range)
                                                       : tsr_region_median(at) + TSR_SAMPLE_BIAS;
            if constexpr (ANCHORS) {
                const bool is_first_row = y == 0, is_linear = label < model.classes && !is_first_row;
                const int32_t x = block.span.column + column, range = (int32_t)view.range,
                              w = is_first_row && x == 0 ? -TSR_SAMPLE_BIAS : at[-1];
                if (is_first_row) prediction = w + TSR_SAMPLE_BIAS;
                const int32_t fraction = is_linear ? tsr_prediction_fraction(sum[round] + TSR_WEIGHT_HALF, range) : 0;
                p.code[((size_t)plane * p.b.shape.tiles + block.number) * p.tile_places + (uint32_t)y * p.tile_pitch +
                       (uint32_t)x] = anchored_entry(at, w, is_first_row, prediction, fraction, range);
            }
            p.prediction[plane * p.b.shape.plane_samples + block.tile.first + (size_t)y * block.tile.stride +
                         (size_t)(block.span.column + column)] = (uint16_t)prediction;
        }
    }
}

/* The kernel of a set of neighbours. */
template <bool ANCHORS> auto predictions_of(int set)
{
    return set == 1   ? k_predictions<TSR_CONSTANT(tsr_neighbours)[1], ANCHORS>
           : set == 2 ? k_predictions<TSR_CONSTANT(tsr_neighbours)[2], ANCHORS>
                      : k_predictions<TSR_CONSTANT(tsr_neighbours)[3], ANCHORS>;
}

/* The same by tensor cores, of planes that refer to no other under sets 1 and 2. Dynamic shared memory: the matrices of
 * all classes, by class and lane. */
enum { NARROW_GROUP = 32 };

struct narrow_memory {
    uint2 quads[BLOCK_WARPS][TSR_QUAD_PLACES];
    int16_t tap[BLOCK_WARPS][TSR_TAP_PLACES];
};

/* The matrices of a plane's classes: low bytes of all lanes, then high ones. A class a warp; quads of lane 4 g + t. */
__device__ __forceinline__ void make_matrices(const tsr_predictor_model &model, narrow_memory &m, uint4 *matrices,
                                              unsigned warp, unsigned lane)
{
    const int g = (int)(lane / 4), t = (int)(lane % 4);
    for (unsigned c = warp; c < model.classes; c += BLOCK_WARPS) {
        __syncwarp();
        tsr_spread_taps(m.tap[warp], model.weight[c], model.shape.neighbours, lane);
        __syncwarp();
        tsr_tap_bytes matrix;
        tsr_tap_matrix(matrix, m.tap[warp], g, t);
        uint4 *to = matrices + c * 2 * TSR_WARP + lane;
        to[0] = make_uint4(matrix.low[0][0], matrix.low[0][1], matrix.low[1][0], matrix.low[1][1]);
        to[TSR_WARP] = make_uint4(matrix.high[0][0], matrix.high[0][1], matrix.high[1][0], matrix.high[1][1]);
    }
}

/* Median edge predictions of columns 2 t, 2 t + 1, and those 8 further right. */
__device__ __forceinline__ void predict_edges(int32_t prediction[4], const uint2 *quads, int row, int t)
{
    typedef tsr_window<true> window;
    const auto sample = [&](int y, int column) {
        const uint2 quad = quads[tsr_quad_place(y, (column + window::LEFT) / TSR_QUAD)];
        const int shift = (column + window::LEFT) % TSR_QUAD * 8;
        return (int32_t)((quad.x >> shift & 255u) | (quad.y >> shift & 255u) << 8) ^ TSR_SAMPLE_BIAS;
    };
#pragma unroll
    for (int k = 0; k < 4; k++) {
        const int column = 2 * t + k % 2 + k / 2 * 8;
        prediction[k] = tsr_median_edge(sample(row, column - 1), sample(row - 1, column), sample(row - 1, column - 1));
    }
}

/* Writes them to their row, of which count columns from the block's first one on are inside the tile. */
__device__ __forceinline__ void put_predictions(uint16_t *to, int count, const int32_t prediction[4], int t)
{
#pragma unroll
    for (int side = 0; side < 2; side++) {
        const int column = 2 * t + 8 * side;
        uint16_t *at = to + column;
        if (column + 1 < count && (uintptr_t)at % sizeof(uint32_t) == 0) {
            *reinterpret_cast<uint32_t *>(at) = (uint32_t)(prediction[2 * side] | prediction[2 * side + 1] << 16);
        } else {
            if (column < count) at[0] = (uint16_t)prediction[2 * side];
            if (column + 1 < count) at[1] = (uint16_t)prediction[2 * side + 1];
        }
    }
}

__global__ void __launch_bounds__(BLOCK_THREADS) k_narrow_predictions(const tsr_predict_batch p, unsigned groups)
{
    typedef tsr_window<true> window;
    __shared__ narrow_memory m;
    TSR_DYNAMIC_SHARED(memory);
    uint4 *matrices = reinterpret_cast<uint4 *>(memory); /* by class: low bytes of all lanes, then high ones */
    const unsigned lane = threadIdx.x % TSR_WARP, warp = threadIdx.x / TSR_WARP;
    const int g = (int)(lane / 4), t = (int)(lane % 4);
    const uint32_t plane = blockIdx.x / groups;
    const tsr_predictor_model &model = p.predictor[plane];
    if (tsr_plane_is_constant(p, plane) || model.set == 0 || model.set == 3) return;
    const tsr_plane_view view = tsr_view_plane(p, plane);
    make_matrices(model, m, matrices, warp, lane);
    __syncthreads();
    uint2 *quads = m.quads[warp];
    const uint32_t first = (blockIdx.x - plane * groups) * (BLOCK_WARPS * NARROW_GROUP) + warp;
    for (unsigned i = 0; i < NARROW_GROUP; i++) {
        const uint32_t number = first + i * BLOCK_WARPS;
        if (number >= p.b.shape.tiles * p.tile_blocks) break;
        const tsr_block_place block = tsr_any_block(p, plane, number);
        if (!block.is_there) continue;
        __syncwarp();
        window::stage(view, block, lane, [&](int place, int row, int quad, uint2 x) {
            (void)place;
            quads[tsr_quad_place(row, quad)] =
                make_uint2(__byte_perm(x.x, x.y, 0x6420), __byte_perm(x.x, x.y, 0x7531) ^ 0x80808080u);
        });
        __syncwarp();
        const int label = p.final_label[block.at];
        const bool is_linear = label < model.classes;
        const uint4 *of_label = matrices + (unsigned)(is_linear ? label : 0) * 2 * TSR_WARP + lane;
        const uint4 l = of_label[0], h = of_label[TSR_WARP];
        const tsr_tap_bytes matrix = {{{l.x, l.y}, {l.z, l.w}}, {{h.x, h.y}, {h.z, h.w}}};
        uint16_t *to = p.prediction + plane * p.b.shape.plane_samples + block.tile.first + (size_t)block.span.column;
#pragma unroll
        for (int part = 0; part < 2; part++) {
            const int row = 8 * part + g;
            int32_t prediction[4];
            if (is_linear) {
                tsr_predict_row(prediction, quads, row, matrix, t);
#pragma unroll
                for (int k = 0; k < 4; k++) prediction[k] = tsr_linear_prediction(prediction[k], (int32_t)view.range);
            } else {
                predict_edges(prediction, quads, row, t);
            }
            const int32_t y = block.y * TSR_PREDICTOR_BLOCK + row;
            if (y < block.tile.height)
                put_predictions(to + (size_t)y * block.tile.stride, block.span.columns, prediction, t);
        }
    }
}

} // namespace

int tsr_predict_indices(const struct tsr_predict_batch *batch, cudaStream_t stream)
{
    const size_t each = (size_t)INDEX_GROUP * INDEX_ROUNDS * THREADS;
    const unsigned blocks = (unsigned)((batch->b.shape.plane_samples + each - 1) / each);
    return tsr_launch(k_indices, batch->b.shape.planes * blocks, THREADS, 0, stream, *batch, blocks);
}

int tsr_predict_samples(const struct tsr_predict_batch *batch, cudaStream_t stream)
{
    const uint32_t blocks = batch->b.shape.tiles * batch->tile_blocks, each = BLOCK_WARPS * BLOCK_GROUP;
    const unsigned groups = (blocks + each - 1) / each, grid = batch->b.shape.planes * groups;
    int classes = 0; /* of sets 1 and 2, where planes refer to no other */
    assert(!batch->tries_anchors || batch->references > 0);
    for (int i = 0; i < batch->plan_count; i++) {
        const bool is_narrow = batch->plan[i].set < 3 && batch->references == 0;
        if (is_narrow) classes = tsr_max(classes, batch->plan[i].classes);
        if (is_narrow) continue;
        TSR_CUDA_TRY(tsr_launch(batch->tries_anchors ? predictions_of<true>(batch->plan[i].set)
                                                     : predictions_of<false>(batch->plan[i].set),
                                grid, BLOCK_THREADS, 0, stream, *batch, groups));
    }
    if (classes == 0) return cudaSuccess;
    const unsigned narrow_groups = (blocks + BLOCK_WARPS * NARROW_GROUP - 1) / (BLOCK_WARPS * NARROW_GROUP);
    return tsr_launch(k_narrow_predictions, batch->b.shape.planes * narrow_groups, BLOCK_THREADS,
                      (size_t)classes * TSR_WARP * sizeof(tsr_tap_bytes), stream, *batch, narrow_groups);
}
