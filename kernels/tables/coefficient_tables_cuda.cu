/* Training on the device for energy contexts: a plane's counts of pairs' symbols to Huffman tables, of rANS symbols to
 * frequencies; the behaviour of train_entries. Groups of cells are merged (merge_tables.cuh), of small planes by a warp
 * each, of others by a block of threads; then a block makes codes of pairs (code_lengths.cuh), of a small plane or of a
 * group, or a warp a table of rANS.
 *
 * rANS: what tsr_rans_weights and tsr_rans_symbols make. A lane has three symbols; where the definition takes the first
 * of the best, the warp takes the best of (fraction, symbol). */
#include "kernels/machine/device.cuh"

#include "code_lengths.cuh"
#include "kernels/slices/coefficients.cuh"
#include "merge_tables.cuh"

namespace
{

/* True if planes are small, and so many that they fill the GPU with little of it each. */
cudaError_t are_small(const tsr_cuda_batch &b, bool *small)
{
    enum { MANY_PLANES = 4 /* for each multiprocessor */ };
    unsigned processors;
    TSR_CUDA_TRY(tsr_device_processors(&processors));
    const size_t most = (size_t)b.shape.slices * TSR_SLICE_PLACE_COUNT * TSR_BLOCK_SAMPLES; /* symbols of a group */
    *small = most <= TSR_NARROW_GAINS_TOTAL && b.shape.planes > MANY_PLANES * processors;
    return cudaSuccess;
}

/* ---- Merging -------------------------------------------------------------------------------------------- */

/* Groups of small planes are merged by a warp each, this many in a block, which share logarithms; others by a block
 * each.
 */
enum {
    MERGE_WARPS = 4,
    MERGE_THREADS = MERGE_WARPS * TSR_WARP,
    MERGE_RESIDENT = 8,
    MERGE_LANES = 4,
    SMALL_QUADS = 220
};
static_assert((int)TSR_ENERGY_CLASSES == (int)TSR_WARP, "a bit a cell");

/* Memory of a group with room for this many quads of counts: most groups use fewer, and what finds no room stays where
 * it was counted. */
template <int SYMBOLS, typename Gain, int QUADS> struct alignas(16) group_memory {
    unsigned char bytes[tsr_slots_bytes<Gain, SYMBOLS>(TSR_ENERGY_CLASSES, QUADS) / 16 * 16];
};

/* A group, by this many threads. */
template <int GROUPS, int SYMBOLS, int THREADS, typename Gain, int QUADS, typename Model>
__device__ __forceinline__ void merge_group(const tsr_cuda_batch &b, const tsr_merge_logarithms &logarithms,
                                            group_memory<SYMBOLS, Gain, QUADS> &memory, uint32_t plane, uint32_t group,
                                            Model &model)
{
    const uint32_t first = group * TSR_ENERGY_CLASSES;
    uint32_t *counts = b.transform.counts + (size_t)plane * b.transform.plane_counts + first * SYMBOLS;
    const int tables = tsr_merge_used_cells<SYMBOLS, THREADS, MERGE_LANES, Gain>(
        logarithms, memory.bytes, sizeof memory, counts, b.transform.cells_in_use[plane * GROUPS + group],
        model.table_of + first);
    if (tsr_merge_thread<THREADS>() != 0) return;
    model.tables[group] = (uint8_t)tables;
    if (group == 0) model.magnitude_shift = (uint8_t)tsr_plane_shift(b, plane);
}

/* A block a group. */
template <int GROUPS, int SYMBOLS, typename Model>
__global__ void __launch_bounds__(MERGE_THREADS, MERGE_RESIDENT) k_merge_groups(const tsr_cuda_batch b, Model *models)
{
    enum { QUADS = TSR_ENERGY_CLASSES * SYMBOLS / TSR_QUAD_COUNTS / 2 };
    __shared__ tsr_merge_logarithms logarithms;
    __shared__ group_memory<SYMBOLS, int64_t, QUADS> memory;
    const uint32_t plane = blockIdx.x / GROUPS, group = blockIdx.x % GROUPS;
    if (tsr_state_span(b.shared.plane[plane]) == 1) return;
    tsr_fill_logarithms<MERGE_THREADS>(logarithms);
    merge_group<GROUPS, SYMBOLS, MERGE_THREADS>(b, logarithms, memory, plane, group, models[plane]);
}

/* A warp a group, of planes with narrow gains; beside each other the same group of some planes, which takes about as
 * long. Groups follow each other from the last one on: the first ones are short. */
template <int GROUPS, int SYMBOLS, typename Model>
__global__ void __launch_bounds__(MERGE_THREADS, MERGE_RESIDENT) k_merge_small(const tsr_cuda_batch b, Model *models)
{
    __shared__ tsr_merge_logarithms logarithms;
    __shared__ group_memory<SYMBOLS, int32_t, SMALL_QUADS> memory[MERGE_WARPS];
    const uint32_t warp = threadIdx.x / TSR_WARP, blocks = (b.shape.planes + MERGE_WARPS - 1) / MERGE_WARPS;
    const uint32_t group = GROUPS - 1 - blockIdx.x / blocks, plane = blockIdx.x % blocks * MERGE_WARPS + warp;
    tsr_fill_logarithms<MERGE_THREADS>(logarithms);
    __syncthreads();
    if (plane >= b.shape.planes || tsr_state_span(b.shared.plane[plane]) == 1) return;
    merge_group<GROUPS, SYMBOLS, TSR_WARP>(b, logarithms, memory[warp], plane, group, models[plane]);
}

template <int GROUPS, int SYMBOLS, typename Model>
cudaError_t merge_groups(const tsr_cuda_batch &b, bool small, Model *models, cudaStream_t stream)
{
    if (small)
        return tsr_launch(k_merge_small<GROUPS, SYMBOLS, Model>,
                          (b.shape.planes + MERGE_WARPS - 1) / MERGE_WARPS * GROUPS, MERGE_THREADS, 0, stream, b,
                          models);
    return tsr_launch(k_merge_groups<GROUPS, SYMBOLS, Model>, b.shape.planes * GROUPS, MERGE_THREADS, 0, stream, b,
                      models);
}

/* ---- Huffman codes of pairs ----------------------------------------------------------------------------- */

/* This many tables at once: a tree is a thread's, so a warp grows many in the time of one. */
enum { CODE_WARPS = 4, CODE_RESIDENT = 8, CODE_TABLES = 32, CODE_THREADS = CODE_WARPS * TSR_WARP };
static_assert(TSR_PAIR_GROUPS * TSR_TABLE_LIMIT < 255, "bytes");

/* Of this many groups of a plane. */
template <int GROUPS> struct code_memory {
    tsr_tables_memory<CODE_TABLES, TSR_PAIR_SYMBOLS, CODE_WARPS> tables;
    uint8_t row_of[GROUPS * TSR_ENERGY_CLASSES];   /* by table: its counts and lengths */
    uint8_t table_of[GROUPS * TSR_ENERGY_CLASSES]; /* by cell: its table; 255: it counted nothing */

    /* Codewords of a table lie where its leaves were. */
    __device__ __forceinline__ uint32_t *words(int table)
    {
        static_assert(sizeof tables.leaf[0] >= TSR_PAIR_SYMBOLS * sizeof(uint16_t), "as much room");
        return tables.leaf[table];
    }
};

/* A block of threads this many groups of a plane; codewords go to all cells that counted something. */
template <int GROUPS>
__global__ void __launch_bounds__(CODE_THREADS, CODE_RESIDENT) k_pair_codes(const tsr_cuda_batch b)
{
    constexpr uint32_t BLOCKS = TSR_PAIR_GROUPS / GROUPS, CELLS = GROUPS * TSR_ENERGY_CLASSES;
    static_assert(TSR_PAIR_GROUPS % GROUPS == 0, "whole blocks of groups");
    __shared__ code_memory<GROUPS> m;
    const uint32_t thread = threadIdx.x, warp = thread / TSR_WARP, lane = thread % TSR_WARP;
    const uint32_t plane = blockIdx.x / BLOCKS, first_group = blockIdx.x % BLOCKS * GROUPS,
                   first_cell = first_group * TSR_ENERGY_CLASSES;
    if (tsr_state_span(b.shared.plane[plane]) == 1) return;
    tsr_pair_model &model = b.transform.pair_model[plane];
    const uint32_t *const counts =
        b.transform.counts + (size_t)plane * b.transform.plane_counts + first_cell * TSR_PAIR_SYMBOLS;
    int all = 0; /* tables */
    for (uint32_t g = 0; g < GROUPS; g++) {
        const int before = all;
        all += model.tables[first_group + g];
        if (g % CODE_WARPS != warp) continue;
        const uint32_t cell = g * TSR_ENERGY_CLASSES + lane;
        const bool is_used = b.transform.cells_in_use[plane * TSR_PAIR_GROUPS + first_group + g] >> lane & 1u;
        if (before + (int)lane < all) m.row_of[before + (int)lane] = (uint8_t)cell;
        m.table_of[cell] = (uint8_t)(is_used ? before + model.table_of[first_cell + cell] : 255);
    }
    for (int first = 0; first < all; first += CODE_TABLES) {
        const int tables = tsr_min(all - first, (int)CODE_TABLES);
        __syncthreads();
        tsr_code_tables<true>(
            m.tables, tables, [&](int t) { return counts + m.row_of[first + t] * TSR_PAIR_SYMBOLS; },
            [](int) { return (int)TSR_PAIR_SYMBOLS; },
            [&](int t, int s, uint8_t length, uint32_t bits, int coded) {
                model.lengths[first_cell + m.row_of[first + t]][s] = length;
                reinterpret_cast<uint16_t *>(m.words(t))[s] = (uint16_t)((uint32_t)coded << 12 | bits);
            });
        __syncthreads();
        enum { FOURS = TSR_PAIR_SYMBOLS / 4 };
        uint2 *const out = reinterpret_cast<uint2 *>(b.transform.pair_codes[plane].cell[first_cell]);
        for (uint32_t cell = warp; cell < CELLS; cell += CODE_WARPS) {
            const int table = m.table_of[cell] - first;
            if ((unsigned)table >= (unsigned)tables || lane >= FOURS) continue;
            const uint32_t *const words = m.words(table) + 2 * lane;
            out[cell * FOURS + lane] = make_uint2(words[0], words[1]);
        }
    }
}

/* ---- Frequencies of rANS -------------------------------------------------------------------------------- */

/* Symbols of a lane: 3 lane .. 3 lane + 2. */
enum { TABLE_WARPS = 4, EACH = TSR_COEFFICIENT_SYMBOLS / TSR_WARP };
static_assert(TSR_COEFFICIENT_SYMBOLS == EACH * TSR_WARP, "as many symbols a lane");
static_assert(TSR_COEFFICIENT_TABLES % TABLE_WARPS == 0, "whole blocks of tables");

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
__global__ void __launch_bounds__(TABLE_WARPS *TSR_WARP) k_coefficient_tables(const tsr_cuda_batch b)
{
    const unsigned lane = threadIdx.x % TSR_WARP;
    const uint32_t number = blockIdx.x * TABLE_WARPS + threadIdx.x / TSR_WARP;
    const uint32_t plane = number / TSR_COEFFICIENT_TABLES, table = number - plane * TSR_COEFFICIENT_TABLES;
    if (tsr_state_span(b.shared.plane[plane]) == 1) return;
    tsr_coefficient_model &model = b.transform.coefficient_model[plane];
    if (table % TSR_ENERGY_CLASSES >= model.tables[table / TSR_ENERGY_CLASSES]) return;
    const uint32_t *at =
        b.transform.counts + (size_t)plane * b.transform.plane_counts + table * TSR_COEFFICIENT_SYMBOLS + EACH * lane;
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
    struct tsr_rans_symbol *out =
        b.transform.coefficient_codes[(size_t)plane * TSR_COEFFICIENT_TABLES + table] + EACH * lane;
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
    bool small;
    TSR_CUDA_TRY(are_small(*b, &small));
    TSR_CUDA_TRY((merge_groups<TSR_PAIR_GROUPS, TSR_PAIR_SYMBOLS>(*b, small, b->transform.pair_model, stream)));
    return small ? tsr_launch(k_pair_codes<TSR_PAIR_GROUPS>, b->shape.planes, CODE_THREADS, 0, stream, *b)
                 : tsr_launch(k_pair_codes<1>, b->shape.planes * TSR_PAIR_GROUPS, CODE_THREADS, 0, stream, *b);
}

int tsr_cuda_train_coefficients(const struct tsr_cuda_batch *b, cudaStream_t stream)
{
    bool small;
    TSR_CUDA_TRY(are_small(*b, &small));
    TSR_CUDA_TRY((merge_groups<TSR_COEFFICIENT_GROUPS, TSR_COEFFICIENT_SYMBOLS>(
        *b, small, b->transform.coefficient_model, stream)));
    return tsr_launch(k_coefficient_tables, b->shape.planes * (TSR_COEFFICIENT_TABLES / TABLE_WARPS),
                      TABLE_WARPS * TSR_WARP, 0, stream, *b);
}
