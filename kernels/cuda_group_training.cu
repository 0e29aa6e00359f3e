/* Training on the device for energy contexts: a plane's counts of pairs' symbols to Huffman tables, of rANS symbols to
 * frequencies; the behaviour of train_entries. A block of threads a group of cells merges them (cuda_merging.cuh), then
 * a warp a table.
 *
 * rANS: what tsr_rans_weights and tsr_rans_symbols make. A lane has three symbols; where the definition takes the first
 * of the best, the warp takes the best of (fraction, symbol). */
#include "device.cuh"

#include "cuda_levels.cuh"
#include "cuda_merging.cuh"

namespace
{

using namespace tsr_training;

enum { TABLE_WARPS = 4 };

/* ---- Merging -------------------------------------------------------------------------------------------- */

/* A model of groups of TSR_ENERGY_LEVELS cells. */
template <int GROUPS, int SYMBOLS, typename Model>
__global__ void __launch_bounds__(TSR_ENERGY_LEVELS *TSR_MERGE_WINDOW)
    k_merge_groups(const tsr_cuda_batch b, Model *models)
{
    typedef merge_memory<TSR_ENERGY_LEVELS, SYMBOLS> group_merging;
    __shared__ group_merging memory;
    const uint32_t plane = blockIdx.x / GROUPS, group = blockIdx.x % GROUPS;
    if (tsr_state_span(b.plane[plane]) == 1) return;
    Model &model = models[plane];
    const uint32_t first = group * TSR_ENERGY_LEVELS;
    uint32_t *counts = b.counts + (size_t)plane * b.plane_counts + first * SYMBOLS;
    const int tables = merge_cells(memory, counts, TSR_ENERGY_LEVELS, SYMBOLS, model.table_of + first);
    if (threadIdx.x != 0) return;
    model.tables[group] = (uint8_t)tables;
    if (group == 0) model.magnitude_shift = (uint8_t)tsr_plane_shift(b, plane);
}

/* ---- Huffman codes of pairs ----------------------------------------------------------------------------- */

struct pair_memory : code_memory<TSR_PAIR_SYMBOLS> {
    uint16_t words[TSR_PAIR_SYMBOLS];
};

/* A warp a table; its codewords go to all cells that have it. */
__global__ void __launch_bounds__(TABLE_WARPS *TSR_WARP) k_pair_codes(const tsr_cuda_batch b)
{
    __shared__ pair_memory memory[TABLE_WARPS];
    const unsigned lane = threadIdx.x % TSR_WARP;
    const uint32_t number = blockIdx.x * TABLE_WARPS + threadIdx.x / TSR_WARP;
    const uint32_t plane = number / TSR_PAIR_TABLES, table = number - plane * TSR_PAIR_TABLES;
    pair_memory &m = memory[threadIdx.x / TSR_WARP];
    if (tsr_state_span(b.plane[plane]) == 1) return;
    tsr_pair_model &model = b.pair_model[plane];
    const uint32_t group = table / TSR_ENERGY_LEVELS;
    if (table % TSR_ENERGY_LEVELS >= model.tables[group]) return;
    const uint32_t *counts = b.counts + (size_t)plane * b.plane_counts + table * TSR_PAIR_SYMBOLS;
    uint8_t *lengths = model.lengths[table];
    const int used = sort_leaves(m, counts, TSR_PAIR_SYMBOLS, lane);
    merge_levels(m, used, lane);
    take_lengths(m, used, lane);
    for (int s = (int)lane; s < TSR_PAIR_SYMBOLS; s += TSR_WARP) {
        lengths[s] = 0;
        m.words[s] = 0;
    }
    __syncwarp();
    for (int i = (int)lane; i < used; i += TSR_WARP) lengths[m.order[i]] = m.length[i];
    __syncwarp();
    assign_codewords(m, lengths, used, m.words, lane);
    __syncwarp();
    for (uint32_t cell = group * TSR_ENERGY_LEVELS; cell < (group + 1) * TSR_ENERGY_LEVELS; cell++) {
        if (model.table_of[cell] != table % TSR_ENERGY_LEVELS) continue;
        for (int s = (int)lane; s < TSR_PAIR_SYMBOLS; s += TSR_WARP) b.pair_codes[plane].cell[cell][s] = m.words[s];
    }
}
static_assert(TSR_PAIR_TABLES % TABLE_WARPS == 0 && TSR_LEVEL_TABLES % TABLE_WARPS == 0, "whole blocks of tables");

/* ---- Frequencies of rANS -------------------------------------------------------------------------------- */

/* Symbols of a lane: 3 lane .. 3 lane + 2. */
enum { EACH = TSR_LEVEL_SYMBOLS / TSR_WARP };
static_assert(TSR_LEVEL_SYMBOLS == EACH * TSR_WARP, "as many symbols a lane");

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
    void (*const merge)(tsr_cuda_batch, tsr_pair_model *) =
        k_merge_groups<TSR_PAIR_GROUPS, TSR_PAIR_SYMBOLS, tsr_pair_model>;
    TSR_CUDA_TRY(tsr_launch(merge, b->planes * TSR_PAIR_GROUPS, TSR_ENERGY_LEVELS * TSR_MERGE_WINDOW, 0, stream, *b,
                            b->pair_model));
    return tsr_launch(k_pair_codes, b->planes * (TSR_PAIR_TABLES / TABLE_WARPS), TABLE_WARPS * TSR_WARP, 0, stream, *b);
}

int tsr_cuda_train_levels(const struct tsr_cuda_batch *b, cudaStream_t stream)
{
    void (*const merge)(tsr_cuda_batch, tsr_level_model *) =
        k_merge_groups<TSR_LEVEL_GROUPS, TSR_LEVEL_SYMBOLS, tsr_level_model>;
    TSR_CUDA_TRY(tsr_launch(merge, b->planes * TSR_LEVEL_GROUPS, TSR_ENERGY_LEVELS * TSR_MERGE_WINDOW, 0, stream, *b,
                            b->level_model));
    return tsr_launch(k_level_tables, b->planes * (TSR_LEVEL_TABLES / TABLE_WARPS), TABLE_WARPS * TSR_WARP, 0, stream,
                      *b);
}
