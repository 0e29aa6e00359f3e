/* Training on the device for energy contexts: a plane's counts of pairs' symbols to Huffman tables, of rANS symbols to
 * frequencies; the behaviour of train_entries. A block of threads a group of cells merges them (merge_tables.cuh); then
 * it is a block a group that makes codes of pairs (code_lengths.cuh), or a warp a table of rANS.
 *
 * rANS: what tsr_rans_weights and tsr_rans_symbols make. A lane has three symbols; where the definition takes the first
 * of the best, the warp takes the best of (fraction, symbol). */
#include "device.cuh"

#include "code_lengths.cuh"
#include "cuda_levels.cuh"
#include "merge_tables.cuh"

namespace
{

/* ---- Merging -------------------------------------------------------------------------------------------- */

/* Planes with narrow gains are many, others few. With 128 threads for the former: 236 us where 64 take 227; 256, and 8
 * lanes a sum: 374 (1024 planes of 512 x 512 on an H200). */
enum { NARROW_THREADS = 64, WIDE_THREADS = 128, MERGE_LANES = 4, MERGE_RESIDENT_THREADS = 1024 };

/* With room for half of a group's counts: most groups use fewer, and others stay where they were counted. */
template <int SYMBOLS, typename Gain> struct alignas(16) group_memory {
    enum { QUADS = TSR_ENERGY_LEVELS * SYMBOLS / TSR_QUAD_COUNTS / 2 };
    unsigned char bytes[tsr_merge_bytes<Gain, SYMBOLS>(TSR_ENERGY_LEVELS, QUADS)];
};

/* A model of groups of TSR_ENERGY_LEVELS cells. */
template <int GROUPS, int SYMBOLS, int THREADS, typename Gain, typename Model>
__global__ void __launch_bounds__(THREADS, MERGE_RESIDENT_THREADS / THREADS)
    k_merge_groups(const tsr_cuda_batch b, Model *models)
{
    __shared__ group_memory<SYMBOLS, Gain> memory;
    const uint32_t plane = blockIdx.x / GROUPS, group = blockIdx.x % GROUPS;
    if (tsr_state_span(b.plane[plane]) == 1) return;
    Model &model = models[plane];
    const uint32_t first = group * TSR_ENERGY_LEVELS;
    uint32_t *counts = b.counts + (size_t)plane * b.plane_counts + first * SYMBOLS;
    const int tables = tsr_merge_cells<TSR_ENERGY_LEVELS, SYMBOLS, THREADS, MERGE_LANES, Gain>(
        memory.bytes, sizeof memory, counts, TSR_ENERGY_LEVELS, model.table_of + first, [](int) { return 0u; });
    if (threadIdx.x != 0) return;
    model.tables[group] = (uint8_t)tables;
    if (group == 0) model.magnitude_shift = (uint8_t)tsr_plane_shift(b, plane);
}

template <int GROUPS, int SYMBOLS, typename Model>
cudaError_t merge_groups(const tsr_cuda_batch &b, Model *models, cudaStream_t stream)
{
    const size_t most = (size_t)b.slices * TSR_SLICE_PLACE_COUNT * TSR_BLOCK_SAMPLES; /* symbols of a group */
    return most <= TSR_NARROW_GAINS_TOTAL ? tsr_launch(k_merge_groups<GROUPS, SYMBOLS, NARROW_THREADS, int32_t, Model>,
                                                       b.planes * GROUPS, NARROW_THREADS, 0, stream, b, models)
                                          : tsr_launch(k_merge_groups<GROUPS, SYMBOLS, WIDE_THREADS, int64_t, Model>,
                                                       b.planes * GROUPS, WIDE_THREADS, 0, stream, b, models);
}

/* ---- Huffman codes of pairs ----------------------------------------------------------------------------- */

enum { CODE_WARPS = 4, CODE_RESIDENT = 9 };

/* A block of threads a group; codewords go to all cells that have them. */
__global__ void __launch_bounds__(CODE_WARPS *TSR_WARP, CODE_RESIDENT) k_pair_codes(const tsr_cuda_batch b)
{
    __shared__ tsr_tables_memory<TSR_TABLE_LIMIT, TSR_PAIR_SYMBOLS, CODE_WARPS> memory;
    __shared__ uint16_t words[TSR_TABLE_LIMIT][TSR_PAIR_SYMBOLS];
    const uint32_t plane = blockIdx.x / TSR_PAIR_GROUPS, group = blockIdx.x % TSR_PAIR_GROUPS,
                   first = group * TSR_ENERGY_LEVELS;
    if (tsr_state_span(b.plane[plane]) == 1) return;
    tsr_pair_model &model = b.pair_model[plane];
    const uint32_t *counts = b.counts + (size_t)plane * b.plane_counts + first * TSR_PAIR_SYMBOLS;
    const int tables = model.tables[group];
    if (tables == 0) return;
    tsr_code_tables<true>(
        memory, tables, [&](int t) { return counts + t * TSR_PAIR_SYMBOLS; }, [](int) { return (int)TSR_PAIR_SYMBOLS; },
        [&](int t, int s, uint8_t length, uint32_t bits, int coded) {
            model.lengths[first + t][s] = length;
            words[t][s] = (uint16_t)((uint32_t)coded << 12 | bits);
        });
    __syncthreads();
    uint16_t *const out = &b.pair_codes[plane].cell[first][0];
    for (uint32_t i = threadIdx.x; i < TSR_ENERGY_LEVELS * TSR_PAIR_SYMBOLS; i += CODE_WARPS * TSR_WARP) {
        const uint32_t cell = i / TSR_PAIR_SYMBOLS;
        out[i] = words[model.table_of[first + cell]][i - cell * TSR_PAIR_SYMBOLS];
    }
}

/* ---- Frequencies of rANS -------------------------------------------------------------------------------- */

/* Symbols of a lane: 3 lane .. 3 lane + 2. */
enum { TABLE_WARPS = 4, EACH = TSR_LEVEL_SYMBOLS / TSR_WARP };
static_assert(TSR_LEVEL_SYMBOLS == EACH * TSR_WARP, "as many symbols a lane");
static_assert(TSR_LEVEL_TABLES % TABLE_WARPS == 0, "whole blocks of tables");

/* What a step of tsr_rans_normalise compares: count / twice. */
struct candidate_fraction {
    uint32_t count, twice; /* twice 0: none */
    int symbol;
};

/* True if b comes before a. */
__device__ __forceinline__ bool is_better(const candidate_fraction &a, const candidate_fraction &b, bool grows)
{
    if (b.twice == 0 || a.twice == 0) return b.twice != 0;
    const uint64_t here = (uint64_t)b.count * a.twice, there = (uint64_t)a.count * b.twice;
    if (here != there) return grows ? here > there : here < there;
    return b.symbol < a.symbol;
}

/* tsr_rans_normalise by a warp. */
__device__ __forceinline__ void normalise(const uint32_t counts[EACH], uint32_t frequency[EACH], unsigned lane)
{
    uint64_t total = 0;
    for (int i = 0; i < EACH; i++) total += counts[i];
    total = tsr_warp_sum(total);
    const bool is_small = total < 1u << 19; /* then 32 bits are enough, and divide in a third of the time */
    int32_t taken = 0;
    for (int i = 0; i < EACH; i++) {
        frequency[i] = 0;
        if (counts[i] == 0) continue;
        const uint64_t share = is_small ? ((uint32_t)counts[i] * TSR_RANS_TOTAL + (uint32_t)total / 2) / (uint32_t)total
                                        : ((uint64_t)counts[i] * TSR_RANS_TOTAL + total / 2) / total;
        frequency[i] = (uint32_t)(share > 0 ? share : 1);
        taken += (int32_t)frequency[i];
    }
    int32_t left = total == 0 ? 0 : TSR_RANS_TOTAL - (int32_t)tsr_warp_sum((uint32_t)taken);
    while (left != 0) {
        const bool grows = left > 0;
        candidate_fraction best = {0, 0, 0};
        for (int i = 0; i < EACH; i++) {
            if (counts[i] == 0 || (!grows && frequency[i] == 1)) continue;
            const candidate_fraction own = {counts[i], grows ? 2 * frequency[i] + 1 : 2 * frequency[i] - 1,
                                            EACH * (int)lane + i};
            if (is_better(best, own, grows)) best = own;
        }
        for (int lanes = TSR_WARP / 2; lanes > 0; lanes /= 2) {
            candidate_fraction other;
            other.count = __shfl_xor_sync(TSR_FULL_WARP, best.count, lanes);
            other.twice = __shfl_xor_sync(TSR_FULL_WARP, best.twice, lanes);
            other.symbol = __shfl_xor_sync(TSR_FULL_WARP, best.symbol, lanes);
            if (is_better(best, other, grows)) best = other;
        }
        for (int i = 0; i < EACH; i++)
            if (EACH * (int)lane + i == best.symbol) frequency[i] += grows ? 1u : ~0u;
        left += grows ? -1 : 1;
    }
}

/* The width of the weight before the lane's first, or what the first step goes from. */
__device__ __forceinline__ int width_before(const uint32_t weight[EACH], unsigned lane)
{
    int last = 0;
    for (int i = 0; i < EACH; i++)
        if (weight[i] != 0) last = tsr_bit_width(weight[i]);
    const uint32_t before = __ballot_sync(TSR_FULL_WARP, last != 0) & ((1u << lane) - 1u);
    const int other = __shfl_sync(TSR_FULL_WARP, last, before ? 31 - __clz((int)before) : 0);
    return before ? other : (int)TSR_FIRST_STEP_FROM;
}

/* A warp a table: its weights, and what the encoder's step needs of each symbol. */
__global__ void __launch_bounds__(TABLE_WARPS *TSR_WARP) k_level_tables(const tsr_cuda_batch b)
{
    const unsigned lane = threadIdx.x % TSR_WARP;
    const uint32_t number = blockIdx.x * TABLE_WARPS + threadIdx.x / TSR_WARP;
    const uint32_t plane = number / TSR_LEVEL_TABLES, table = number - plane * TSR_LEVEL_TABLES;
    if (tsr_state_span(b.plane[plane]) == 1) return;
    tsr_level_model &model = b.level_model[plane];
    if (table % TSR_ENERGY_LEVELS >= model.tables[table / TSR_ENERGY_LEVELS]) return;
    const uint32_t *at = b.counts + (size_t)plane * b.plane_counts + table * TSR_LEVEL_SYMBOLS + EACH * lane;
    uint32_t counts[EACH], exact[EACH], weight[EACH], frequency[EACH];
    uint64_t least = UINT64_MAX;
    int best = 0;
    for (int i = 0; i < EACH; i++) counts[i] = at[i];
    normalise(counts, exact, lane);
    for (int mantissa = 0; mantissa <= TSR_RANS_MANTISSA_LIMIT; mantissa++) {
        uint32_t rounded[EACH], found[EACH];
        for (int i = 0; i < EACH; i++) rounded[i] = tsr_rans_round(exact[i], mantissa);
        normalise(rounded, found, lane);
        int previous = width_before(rounded, lane);
        uint64_t cost = 0;
        for (int i = 0; i < EACH; i++) {
            if (exact[i] == 0) continue;
            const int width = tsr_bit_width(rounded[i]);
            const int bits = tsr_rans_width_bits(width, previous) + tsr_min(width - 1, mantissa);
            cost += (uint64_t)counts[i] * ((TSR_RANS_BITS << TSR_COST_SHIFT) - tsr_log2_cost(found[i]));
            cost += (uint64_t)bits << TSR_COST_SHIFT;
            previous = width;
        }
        cost = tsr_warp_sum(cost);
        if (cost >= least) continue; /* the same in all lanes */
        least = cost;
        best = mantissa;
        for (int i = 0; i < EACH; i++) {
            weight[i] = rounded[i];
            frequency[i] = found[i];
        }
    }
    if (lane == 0) model.mantissa[table] = (uint8_t)best;
    uint32_t start = 0;
    for (int i = 0; i < EACH; i++) start += frequency[i];
    start = tsr_warp_scan(start, lane) - start;
    struct tsr_rans_symbol *out = b.level_codes[(size_t)plane * TSR_LEVEL_TABLES + table] + EACH * lane;
    for (int i = 0; i < EACH; i++) {
        model.weight[table][EACH * lane + i] = (uint16_t)weight[i];
        out[i].inverse = frequency[i] ? UINT32_MAX / frequency[i] : 0;
        out[i].frequency = (uint16_t)frequency[i];
        out[i].start = (uint16_t)start;
        start += frequency[i];
    }
}

} // namespace

int tsr_cuda_train_pairs(const struct tsr_cuda_batch *b, cudaStream_t stream)
{
    TSR_CUDA_TRY((merge_groups<TSR_PAIR_GROUPS, TSR_PAIR_SYMBOLS>(*b, b->pair_model, stream)));
    return tsr_launch(k_pair_codes, b->planes * TSR_PAIR_GROUPS, CODE_WARPS * TSR_WARP, 0, stream, *b);
}

int tsr_cuda_train_levels(const struct tsr_cuda_batch *b, cudaStream_t stream)
{
    TSR_CUDA_TRY((merge_groups<TSR_LEVEL_GROUPS, TSR_LEVEL_SYMBOLS>(*b, b->level_model, stream)));
    return tsr_launch(k_level_tables, b->planes * (TSR_LEVEL_TABLES / TABLE_WARPS), TABLE_WARPS * TSR_WARP, 0, stream,
                      *b);
}
