/* Counts of path P's symbols to code tables on the device: tsr_merge_contexts, then Huffman lengths and codewords, or
 * rANS weights. FORMAT.md sections 7.5, 7.6 and 10.6. */
#include "device.cuh"

#include "code_lengths.cuh"
#include "cuda_predictive.h"
#include "merge_tables.cuh"

namespace
{

/* ---- Merging ------------------------------------------------------------------------------------------------ */

/* Cells of small planes, of level 1, and of all others: with fewer, less shared memory and fewer threads will do. A
 * merge makes 24 gains new: two or three a warp. */
enum {
    SMALL_CELLS = 24,
    SAMPLED_CELLS = TSR_ACTIVITY_GROUPS * TSR_SAMPLED_INTENSITY_GROUPS,
    LARGE_THREADS = 384,
    SMALL_THREADS = 256
};

__device__ __forceinline__ uint32_t *special_counts(const tsr_predict_batch &p, uint32_t plane)
{
    return p.counts + plane * p.cell_counts;
}

__device__ __forceinline__ uint32_t *cell_counts(const tsr_predict_batch &p, uint32_t plane)
{
    return special_counts(p, plane) + TSR_FIRST_RESIDUAL_TABLE * TSR_RUN_ALPHABET;
}

/* A block a plane: its tables' counts, and which table each context has. */
template <int CELLS, int THREADS> __global__ void __launch_bounds__(THREADS) k_merge(const tsr_predict_batch p)
{
    TSR_DYNAMIC_SHARED(memory);
    typedef tsr_merge_memory<CELLS, TSR_RESIDUAL_SYMBOLS, THREADS> merge_memory;
    const uint32_t plane = blockIdx.x, range = p.b.plane[plane].range;
    if (range < 2) return;
    tsr_residual_model &model = p.residual[plane];
    uint32_t *cell = cell_counts(p, plane);
    const int cells = tsr_model_cells(&model);
    if (p.period > 0 && threadIdx.x == 0) cell[0]++; /* one table at least */
    const int tables =
        tsr_merge_cells(*reinterpret_cast<merge_memory *>(memory), cell, cells, TSR_RESIDUAL_SYMBOLS, model.table_of);
    if (p.period > 0) {
        uint32_t *special = special_counts(p, plane);
        for (int i = (int)threadIdx.x; i < TSR_FIRST_RESIDUAL_TABLE * TSR_RUN_ALPHABET; i += THREADS)
            special[i] += tsr_symbol_may_come(i / TSR_RUN_ALPHABET, i % TSR_RUN_ALPHABET, range, p.b.tile_width);
        for (int i = (int)threadIdx.x; i < tables * TSR_RESIDUAL_SYMBOLS; i += THREADS)
            cell[i] += tsr_symbol_may_come(TSR_FIRST_RESIDUAL_TABLE, i % TSR_RESIDUAL_SYMBOLS, range, p.b.tile_width);
    }
    for (int c = (int)threadIdx.x; c < cells; c += THREADS)
        p.codes[plane].table_of[c] = (uint8_t)(tables > 0 ? TSR_FIRST_RESIDUAL_TABLE + model.table_of[c] : 0);
    if (threadIdx.x == 0) model.tables = (uint8_t)tables;
}

template <int CELLS, int THREADS> int launch_merge(const tsr_predict_batch &p, cudaStream_t stream)
{
    const size_t symbols = (size_t)tsr_token_symbol(p.b.values - 1) + 1; /* most that occur: less memory, more blocks */
    typedef tsr_merge_memory<CELLS, TSR_RESIDUAL_SYMBOLS, THREADS> memory;
    const size_t bytes = sizeof(memory) - (TSR_RESIDUAL_SYMBOLS - symbols) * CELLS * sizeof(uint32_t);
    TSR_CUDA_TRY(tsr_allow_shared(k_merge<CELLS, THREADS>, bytes));
    return tsr_launch(k_merge<CELLS, THREADS>, p.b.planes, THREADS, bytes, stream, p);
}

/* ---- Huffman ------------------------------------------------------------------------------------------------ */

enum { CODE_WARPS = 8, CODE_THREADS = CODE_WARPS * TSR_WARP, LEAF_PITCH = TSR_RUN_ALPHABET + 1 };
static_assert((int)TSR_MODEL_TABLES <= (int)TSR_WARP && LEAF_PITCH % 2 == 1,
              "a lane a table, each with a bank of its own");

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

/* What a table's used symbols are sorted by: count, then symbol. */
__device__ __forceinline__ uint32_t sorted_before(uint32_t mine, int symbol, uint32_t other, int other_symbol)
{
    return other < mine || (other == mine && other_symbol < symbol);
}

/* Counts of a table's used symbols, rarest first, and these symbols; a warp. Returns how many. */
__device__ __forceinline__ int sort_counts(const uint32_t *counts, int symbols, uint32_t *leaf, uint8_t *order,
                                           unsigned lane)
{
    int used = 0, rank[3] = {0, 0, 0};
    uint32_t mine[3], there[3];
#pragma unroll
    for (int k = 0; k < 3; k++) {
        const int s = k * TSR_WARP + (int)lane;
        mine[k] = s < symbols ? counts[s] : 0u;
        there[k] = __ballot_sync(TSR_FULL_WARP, mine[k] != 0);
        used += __popc(there[k]);
    }
#pragma unroll
    for (int word = 0; word < 3; word++)
        for (uint32_t rest = there[word]; rest != 0; rest &= rest - 1) {
            const int from = __ffs((int)rest) - 1;
            const uint32_t other = __shfl_sync(TSR_FULL_WARP, mine[word], from);
#pragma unroll
            for (int k = 0; k < 3; k++)
                rank[k] += (int)sorted_before(mine[k], k * TSR_WARP + (int)lane, other, word * TSR_WARP + from);
        }
#pragma unroll
    for (int k = 0; k < 3; k++) {
        if (mine[k] == 0) continue;
        leaf[rank[k]] = mine[k];
        order[rank[k]] = (uint8_t)(k * TSR_WARP + (int)lane);
    }
    return used;
}
static_assert((int)TSR_RUN_ALPHABET <= 3 * (int)TSR_WARP, "three symbols a lane");

/* A block a plane: lengths, codewords, and the most bits that a symbol takes. */
__global__ void __launch_bounds__(CODE_THREADS) k_huffman(const tsr_predict_batch p)
{
    __shared__ tsr_lengths_memory<TSR_RUN_ALPHABET> memory[CODE_WARPS];
    __shared__ uint32_t leaf[TSR_MODEL_TABLES][LEAF_PITCH];
    __shared__ uint8_t order[TSR_MODEL_TABLES][TSR_RUN_ALPHABET];
    __shared__ int used[TSR_MODEL_TABLES], depth[TSR_MODEL_TABLES];
    __shared__ uint32_t refill_bits;
    const unsigned lane = threadIdx.x % TSR_WARP;
    const int warp = (int)(threadIdx.x / TSR_WARP);
    const uint32_t plane = blockIdx.x;
    if (p.b.plane[plane].range < 2) return;
    tsr_residual_model &model = p.residual[plane];
    const int tables = TSR_FIRST_RESIDUAL_TABLE + model.tables;
    if (threadIdx.x == 0) refill_bits = 0;
    for (int t = warp; t < tables; t += CODE_WARPS) {
        const int count = sort_counts(table_counts(p, plane, t), symbols_of(t), leaf[t], order[t], lane);
        if (lane == 0) used[t] = count;
    }
    __syncthreads();
    if ((int)threadIdx.x < tables) {
        const int count = used[threadIdx.x];
        depth[threadIdx.x] = count > 1 ? tsr_tree_depths(leaf[threadIdx.x], count) : 1;
        if (count == 1) leaf[threadIdx.x][0] = 1;
    }
    __syncthreads();
    for (int t = warp; t < tables; t += CODE_WARPS) {
        const int symbols = symbols_of(t), count = used[t];
        uint8_t *lengths = model.lengths[t];
        uint32_t *codes = p.codes[plane].huffman[t], most = 0;
        if (depth[t] > TSR_CODE_LIMIT) {
            tsr_find_lengths(memory[warp], table_counts(p, plane, t), symbols, lengths, lane);
        } else {
            for (int s = (int)lane; s < symbols; s += TSR_WARP) lengths[s] = 0;
            __syncwarp();
            for (int i = (int)lane; i < count; i += TSR_WARP) lengths[order[t][i]] = (uint8_t)leaf[t][i];
        }
        __syncwarp();
        for (int s = (int)lane; s < TSR_DEVICE_CODE_PITCH; s += TSR_WARP) {
            const int length = s < symbols ? lengths[s] : 0, raw_bits = length ? tsr_symbol_raw_bits(s) : 0;
            if (length) most = max(most, (uint32_t)(raw_bits + (count == 1 ? 0 : length)));
            codes[s] = (uint32_t)raw_bits << 8;
        }
        __syncwarp();
        if (count > 1)
            tsr_each_codeword(
                lengths, symbols,
                [&](int symbol, uint32_t bits, int length) { codes[symbol] |= bits << 16 | (uint32_t)length; }, lane);
        most = tsr_warp_max(most);
        if (lane == 0) atomicMax(&refill_bits, most);
    }
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
    if (p.b.plane[plane].range < 2) return;
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

int tsr_predict_tables(const struct tsr_predict_batch *batch, cudaStream_t stream)
{
    TSR_CUDA_TRY((cudaError_t)(batch->cells <= SMALL_CELLS ? launch_merge<SMALL_CELLS, SMALL_THREADS>(*batch, stream)
                               : batch->cells <= SAMPLED_CELLS
                                   ? launch_merge<SAMPLED_CELLS, SMALL_THREADS>(*batch, stream)
                                   : launch_merge<TSR_CELL_LIMIT, LARGE_THREADS>(*batch, stream)));
    if (!batch->rans) return tsr_launch(k_huffman, batch->b.planes, CODE_THREADS, 0, stream, *batch);
    const unsigned blocks = (TSR_MODEL_TABLES + RANS_TABLES - 1) / RANS_TABLES;
    return tsr_launch(k_rans, batch->b.planes * blocks, TSR_WARP, 0, stream, *batch, blocks);
}
