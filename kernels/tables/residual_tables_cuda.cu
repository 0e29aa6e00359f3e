/* Counts of path P's symbols to code tables on the device: tsr_merge_contexts, then Huffman lengths and codewords, or
 * rANS weights. The same of the trial of anchors, up to the tables, and which of them cost less. FORMAT.md
 * sections 7.5, 7.6, 7.10 and 10.6. */
#include "kernels/machine/device.cuh"

#include "code_lengths.cuh"
#include "kernels/batch/batch_predict_cuda.h"
#include "merge_tables.cuh"

namespace
{

/* ---- Merging ------------------------------------------------------------------------------------------------ */

enum { SMALL_CELLS = 24 /* of small planes, at most */ };
static_assert((TSR_FIRST_RESIDUAL_TABLE * TSR_RUN_ALPHABET) % TSR_QUAD_COUNTS == 0, "cells' counts are aligned");

/* Of a set of counts, whose number outside of the trial is its plane's. */
__device__ __forceinline__ uint32_t *special_counts(const tsr_predict_batch &p, uint32_t set)
{
    return p.counts + set * p.cell_counts;
}

__device__ __forceinline__ uint32_t *cell_counts(const tsr_predict_batch &p, uint32_t set)
{
    return special_counts(p, set) + TSR_FIRST_RESIDUAL_TABLE * TSR_RUN_ALPHABET;
}

/* A block a set: its tables' counts, and which table each context has. */
template <int CELLS, int THREADS, int LANES, int PLANES, typename Gain>
__global__ void __launch_bounds__(THREADS, PLANES) k_merge(const tsr_predict_batch p, unsigned bytes)
{
    TSR_DYNAMIC_SHARED(memory);
    const uint32_t set = blockIdx.x, plane = tsr_plane_of_set(&p, set), range = p.b.shared.plane[plane].range;
    if (!tsr_set_is_there(&p, set)) return;
    tsr_residual_model &model = *tsr_residual_of_set(&p, set);
    uint32_t *cell = cell_counts(p, set);
    const int cells = tsr_model_cells(&model);
    const bool is_sampled = p.period > 0;
    if (is_sampled && threadIdx.x == 0) cell[0]++; /* one table at least */
    const int tables = tsr_merge_cells<CELLS, TSR_RESIDUAL_SYMBOLS, THREADS, LANES, Gain>(
        memory, bytes, cell, cells, model.table_of, [&](int symbol) {
            return is_sampled && !p.in_trial &&
                           tsr_symbol_may_come(TSR_FIRST_RESIDUAL_TABLE, symbol, range, p.b.shape.tile_width)
                       ? 1u
                       : 0u;
        });
    if (p.in_trial) {
        if (threadIdx.x == 0) model.tables = (uint8_t)tables;
        return;
    }
    if (is_sampled) {
        uint32_t *special = special_counts(p, plane);
        for (int i = (int)threadIdx.x; i < TSR_FIRST_RESIDUAL_TABLE * TSR_RUN_ALPHABET; i += THREADS)
            special[i] += tsr_symbol_may_come(i / TSR_RUN_ALPHABET, i % TSR_RUN_ALPHABET, range, p.b.shape.tile_width);
    }
    for (int c = (int)threadIdx.x; c < cells; c += THREADS)
        p.codes[plane].table_of[c] = (uint8_t)(tables > 0 ? TSR_FIRST_RESIDUAL_TABLE + model.table_of[c] : 0);
    if (threadIdx.x == 0) model.tables = (uint8_t)tables;
}

/* PLANES: at once on a multiprocessor, where there are this many; they share its memory. */
template <int CELLS, int THREADS, int LANES, int PLANES, typename Gain>
cudaError_t launch_merge(const tsr_predict_batch &p, cudaStream_t stream)
{
    constexpr size_t OF_SYSTEM = 1024; /* bytes of each block */
    const auto kernel = k_merge<CELLS, THREADS, LANES, PLANES, Gain>;
    int device = 0, most = 0;
    unsigned processors;
    TSR_CUDA_TRY(cudaGetDevice(&device));
    TSR_CUDA_TRY(cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
    TSR_CUDA_TRY(tsr_device_processors(&processors));
    const size_t symbols = (size_t)tsr_token_symbol(p.b.shape.values - 1) + 1; /* most that occur */
    const size_t quads = (symbols + TSR_QUAD_COUNTS - 1) / TSR_QUAD_COUNTS * p.cells;
    const unsigned sets = p.in_trial ? tsr_predict_sets(&p) : p.b.shape.planes;
    const size_t planes = max(1u, min((unsigned)PLANES, (sets + processors - 1) / processors));
    const size_t share = ((size_t)most + OF_SYSTEM) / planes - OF_SYSTEM;
    const size_t least = tsr_merge_bytes<Gain, TSR_RESIDUAL_SYMBOLS>(p.cells, 0),
                 wanted = tsr_merge_bytes<Gain, TSR_RESIDUAL_SYMBOLS>(p.cells, quads);
    const size_t bytes = max(least, min(share, wanted)) / 16 * 16;
    TSR_CUDA_TRY(tsr_allow_shared(kernel, bytes));
    return tsr_launch(kernel, sets, THREADS, bytes, stream, p, (unsigned)bytes);
}

/* Large planes, whose gains are wide, are few: more threads for each. */
template <typename Gain> cudaError_t launch_merge(const tsr_predict_batch &p, cudaStream_t stream)
{
    constexpr bool IS_NARROW = sizeof(Gain) == sizeof(int32_t);
    constexpr int THREADS = IS_NARROW ? 128 : 256, LANES = IS_NARROW ? 4 : 8, PLANES = IS_NARROW ? 8 : 2;
    if (p.cells <= SMALL_CELLS) return launch_merge<SMALL_CELLS, 32, 4, 28, Gain>(p, stream);
    return launch_merge<TSR_CELL_LIMIT, THREADS, LANES, PLANES, Gain>(p, stream);
}

cudaError_t merge_sets(const tsr_predict_batch &p, cudaStream_t stream)
{
    return p.b.shape.plane_samples < TSR_NARROW_GAINS_TOTAL ? launch_merge<int32_t>(p, stream)
                                                            : launch_merge<int64_t>(p, stream);
}

/* ---- The trial of anchors ------------------------------------------------------------------------------------- */

enum { CHOICE_WARPS = 16, CHOICE_THREADS = CHOICE_WARPS * TSR_WARP };

/* What all tables of a set cost together, added to a sum; a warp a table. */
__device__ __forceinline__ void add_table_costs(const tsr_predict_batch &p, uint32_t set, unsigned long long *cost)
{
    const unsigned lane = threadIdx.x % TSR_WARP;
    const int tables = TSR_FIRST_RESIDUAL_TABLE + tsr_residual_of_set(&p, set)->tables;
    for (int t = (int)(threadIdx.x / TSR_WARP); t < tables; t += CHOICE_WARPS) {
        const bool is_special = t < TSR_FIRST_RESIDUAL_TABLE;
        const uint32_t *const count = is_special
                                          ? special_counts(p, set) + t * TSR_RUN_ALPHABET
                                          : cell_counts(p, set) + (t - TSR_FIRST_RESIDUAL_TABLE) * TSR_RESIDUAL_SYMBOLS;
        struct tsr_trial_sums sums = {0, 0, 0, 0, 0};
        for (int s = (int)lane; s < (is_special ? (int)TSR_RUN_ALPHABET : (int)TSR_RESIDUAL_SYMBOLS); s += TSR_WARP)
            tsr_add_trial_count(&sums, s, count[s], s > 0 ? count[s - 1] : 1u);
        __syncwarp();
        sums.inside = tsr_warp_sum(sums.inside);
        sums.raw_bits = tsr_warp_sum(sums.raw_bits);
        sums.total = tsr_warp_sum(sums.total);
        sums.used = tsr_warp_sum(sums.used);
        sums.gaps = tsr_warp_sum(sums.gaps);
        if (lane == 0) atomicAdd(cost, (unsigned long long)tsr_trial_cost(&sums));
    }
}

/* A block a plane: whether it is anchored, and its cuts and groups if it is. Its counts are cleared. */
__global__ void __launch_bounds__(CHOICE_THREADS) k_choice(const tsr_predict_batch p)
{
    __shared__ unsigned long long cost[2];
    const uint32_t plane = blockIdx.x, anchored = p.b.shape.planes + plane;
    if (!tsr_set_is_there(&p, plane)) return;
    if (threadIdx.x < 2) cost[threadIdx.x] = 0;
    __syncthreads();
    bool takes_anchors = false;
    if (tsr_set_is_there(&p, anchored)) { /* the same for all threads */
        add_table_costs(p, plane, &cost[0]);
        add_table_costs(p, anchored, &cost[1]);
        __syncthreads();
        takes_anchors = tsr_trial_takes_anchors(cost[0], cost[1]);
    }
    uint32_t *const counts = special_counts(p, plane);
    for (size_t i = threadIdx.x; i < p.cell_counts; i += CHOICE_THREADS) counts[i] = 0;
    if (!takes_anchors) return;
    const tsr_residual_model &from = *tsr_residual_of_set(&p, anchored);
    tsr_residual_model &to = p.residual[plane];
    const tsr_device_groups &its_groups = p.groups[anchored];
    tsr_device_groups &groups = p.groups[plane];
    if (threadIdx.x < TSR_ACTIVITY_BINS) groups.activity[threadIdx.x] = its_groups.activity[threadIdx.x];
    for (unsigned i = threadIdx.x; i < TSR_INTENSITY_BINS; i += CHOICE_THREADS)
        groups.intensity[i] = its_groups.intensity[i];
    if (threadIdx.x < TSR_ACTIVITY_GROUPS - 1) to.activity_cut[threadIdx.x] = from.activity_cut[threadIdx.x];
    if (threadIdx.x < TSR_INTENSITY_GROUPS - 1) to.intensity_cut[threadIdx.x] = from.intensity_cut[threadIdx.x];
    if (threadIdx.x != 0) return;
    to.activity_cuts = from.activity_cuts;
    to.intensity_cuts = from.intensity_cuts;
    p.predictor[plane].anchored = true;
}
static_assert((int)TSR_INTENSITY_GROUPS <= (int)CHOICE_THREADS && (int)TSR_ACTIVITY_BINS <= (int)CHOICE_THREADS,
              "a thread a cut, and one a bin");

/* ---- Huffman ------------------------------------------------------------------------------------------------ */

/* Warps of a plane, of either kind. */
enum { CODE_WARPS = 4, MOST_CODE_WARPS = 16 };

__device__ __forceinline__ int symbols_of(int table)
{
    return table < TSR_FIRST_RESIDUAL_TABLE ? (int)TSR_RUN_ALPHABET : (int)TSR_RESIDUAL_SYMBOLS;
}

__device__ __forceinline__ const uint32_t *table_counts(const tsr_predict_batch &p, uint32_t plane, int table)
{
    return table < TSR_FIRST_RESIDUAL_TABLE
               ? special_counts(p, plane) + table * TSR_RUN_ALPHABET
               : cell_counts(p, plane) + (table - TSR_FIRST_RESIDUAL_TABLE) * TSR_RESIDUAL_SYMBOLS;
}

/* A block a plane: lengths, codewords, and the most bits that a symbol takes. */
template <int WARPS> __global__ void __launch_bounds__(WARPS *TSR_WARP) k_huffman(const tsr_predict_batch p)
{
    __shared__ tsr_tables_memory<TSR_MODEL_TABLES, TSR_RUN_ALPHABET, WARPS> memory;
    __shared__ uint32_t refill_bits;
    const unsigned lane = threadIdx.x % TSR_WARP;
    const uint32_t plane = blockIdx.x;
    if (p.b.shared.plane[plane].range < 2 || tsr_is_rans(&p, plane)) return;
    tsr_residual_model &model = p.residual[plane];
    const int tables = TSR_FIRST_RESIDUAL_TABLE + model.tables;
    if (threadIdx.x == 0) refill_bits = 0;
    for (int t = (int)(threadIdx.x / TSR_WARP); t < tables; t += WARPS)
        for (int s = symbols_of(t) + (int)lane; s < TSR_DEVICE_CODE_PITCH; s += TSR_WARP)
            p.codes[plane].huffman[t][s] = 0;
    uint32_t most = 0;
    tsr_code_tables<true>(
        memory, tables, [&](int t) { return table_counts(p, plane, t); }, symbols_of,
        [&](int t, int s, uint8_t own, uint32_t bits, int length) {
            const uint32_t raw_bits = own ? (uint32_t)tsr_symbol_raw_bits(s) : 0u;
            model.lengths[t][s] = own;
            p.codes[plane].huffman[t][s] = bits << 16 | raw_bits << 8 | (uint32_t)length;
            most = max(most, raw_bits + (uint32_t)length);
        });
    most = tsr_warp_max(most);
    if (lane == 0) atomicMax(&refill_bits, most);
    __syncthreads();
    if (threadIdx.x == 0) model.refill_bits = (uint8_t)refill_bits;
}

/* ---- rANS --------------------------------------------------------------------------------------------------- */

enum { MANTISSAS = TSR_RANS_MANTISSA_LIMIT + 1, RANS_TABLES = TSR_WARP / MANTISSAS };

/* A warp four tables: tsr_rans_weights, a thread a number of mantissa bits. */
__global__ void __launch_bounds__(TSR_WARP) k_rans(const tsr_predict_batch p, unsigned blocks)
{
    const uint32_t plane = blockIdx.x / blocks;
    const int table = (int)((blockIdx.x - plane * blocks) * RANS_TABLES + threadIdx.x / MANTISSAS),
              mantissa = (int)(threadIdx.x % MANTISSAS);
    if (p.b.shared.plane[plane].range < 2 || !tsr_is_rans(&p, plane)) return;
    tsr_residual_model &model = p.residual[plane];
    const bool is_there = table < TSR_FIRST_RESIDUAL_TABLE + model.tables;
    uint16_t exact[TSR_RUN_ALPHABET], rounded[TSR_RUN_ALPHABET];
    const uint32_t *counts = table_counts(p, plane, is_there ? table : 0);
    const int used = is_there ? tsr_rans_used(counts, symbols_of(table)) : 0;
    tsr_rans_normalise(counts, used, exact);
    const uint64_t cost = tsr_rans_rounded_cost(counts, exact, used, mantissa, rounded);
    uint64_t least = cost;
    int best = mantissa;
    for (int lanes = MANTISSAS / 2; lanes > 0; lanes /= 2) {
        const uint64_t other = __shfl_xor_sync(TSR_FULL_WARP, least, lanes);
        const int with = __shfl_xor_sync(TSR_FULL_WARP, best, lanes);
        if (other < least || (other == least && with < best)) least = other, best = with;
    }
    if (!is_there || best != mantissa) return;
    model.mantissa[table] = (uint8_t)mantissa;
    for (int s = 0; s < used; s++) model.weights[table][s] = rounded[s];
    tsr_rans_symbols(model.weights[table], TSR_RUN_ALPHABET, p.codes[plane].rans[table]);
}

} // namespace

int tsr_predict_choice(const struct tsr_predict_batch *trial, cudaStream_t stream)
{
    TSR_CUDA_TRY(merge_sets(*trial, stream));
    return tsr_launch(k_choice, trial->b.shape.planes, CHOICE_THREADS, 0, stream, *trial);
}

int tsr_predict_tables(const struct tsr_predict_batch *batch, cudaStream_t stream)
{
    TSR_CUDA_TRY(merge_sets(*batch, stream));
    const unsigned planes = batch->b.shape.planes;
    if (batch->huffman)
        TSR_CUDA_TRY(
            batch->launch.length_warps == CODE_WARPS
                ? tsr_launch(k_huffman<CODE_WARPS>, planes, CODE_WARPS * TSR_WARP, 0, stream, *batch)
                : tsr_launch(k_huffman<MOST_CODE_WARPS>, planes, MOST_CODE_WARPS * TSR_WARP, 0, stream, *batch));
    if (!batch->rans_components) return cudaSuccess;
    const unsigned blocks = (TSR_MODEL_TABLES + RANS_TABLES - 1) / RANS_TABLES;
    return tsr_launch(k_rans, planes * blocks, TSR_WARP, 0, stream, *batch, blocks);
}
