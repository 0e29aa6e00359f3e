/* Code tables on the device, for the kernels that train: the same as tsr_merge_contexts, tsr_huffman_lengths and
 * tsr_huffman_codewords make, by many threads.
 *
 * Merging: a block of threads an alphabet of a plane. Costs are exact integer sums, so the lanes of a warp share one
 * pair of cells; the gains of all pairs within the window are kept by pair, and after each merge the 24 that are new
 * are worked out by as many warps at once. Symbols that no cell uses are squeezed out first. What the definition
 * decides by order, the first of equal gains, is decided by the least of (gain, place).
 *
 * Lengths: a warp a table. Package-merge (Larmore and Hirschberg 1990), each level's merge by each item's rank: its own
 * place and, by binary search, how many of the other list stand before it. */
#ifndef TSR_KERNELS_CUDA_MERGING_CUH
#define TSR_KERNELS_CUDA_MERGING_CUH

#include "device.cuh"

#include "../entropy/contexts.h"
#include "../entropy/huffman.h"
#include "frame_model.h"

namespace tsr_training
{

/* ---- Merging -------------------------------------------------------------------------------------------- */

enum { MERGE_ROOM = 9216 /* most counts in shared memory: 64 cells of 144 symbols; more stay in global memory */ };

/* Of alphabets of so many symbols at most in a line of so many cells at most. */
template <int CELL_LIMIT, int SYMBOL_LIMIT> struct merge_memory {
    enum {
        CELLS = CELL_LIMIT,
        SYMBOLS = SYMBOL_LIMIT,
        THREADS = CELLS * TSR_MERGE_WINDOW, /* a thread a candidate */
        WARPS = THREADS / TSR_WARP,
        PAIRS = CELLS * (CELLS - 1) / 2,
        ROOM = CELLS * SYMBOLS < MERGE_ROOM ? CELLS * SYMBOLS : (int)MERGE_ROOM,
        SYMBOL_WORDS = (SYMBOLS + TSR_WARP - 1) / TSR_WARP
    };
    int64_t gain[PAIRS];
    uint64_t cost[CELLS];
    int64_t least[WARPS];
    uint32_t counts[ROOM];
    uint32_t symbols_used[SYMBOL_WORDS];
    uint32_t joined[SYMBOL_WORDS]; /* bit i: column i's symbol is the one after column i - 1's */
    uint16_t symbol_of[SYMBOLS];   /* by column */
    uint8_t alive[CELLS];          /* cells that are tables now, in order */
    uint8_t table_of[CELLS];
};

/* An alphabet's counts as the merging sees them: rows of columns. */
struct merge_counts {
    uint32_t *at;
    uint32_t pitch, columns;
};

template <typename Memory> __device__ __forceinline__ int pair_place(int a, int b)
{
    return a * (2 * Memory::CELLS - 1 - a) / 2 + b - a - 1;
}

/* tsr_table_cost by a warp; b null: of one cell. All lanes get it. */
__device__ __forceinline__ uint64_t table_cost(const merge_counts &counts, const uint32_t *joined, const uint32_t *a,
                                               const uint32_t *b, unsigned lane)
{
    uint32_t total = 0, used = 0, gaps = 0, before = 1; /* nothing before the first symbol: no gap */
    uint64_t inside = 0;
    for (uint32_t first = 0; first < counts.columns; first += TSR_WARP) {
        const uint32_t column = first + lane;
        uint32_t c = 0;
        if (column < counts.columns) c = a[column] + (b ? b[column] : 0u);
        const uint32_t here = __ballot_sync(TSR_FULL_WARP, c != 0);
        /* a gap stands before a used symbol unless the symbol before it is used, or there is none */
        gaps += (uint32_t)__popc(here & ~(joined[first / TSR_WARP] & (here << 1 | before)));
        used += (uint32_t)__popc(here);
        before = here >> 31;
        if (c == 0) continue;
        total += c;
        inside += (uint64_t)c * tsr_log2_cost(c);
    }
    if (used == 0) return 0;
    total = tsr_warp_sum(total);
    inside = tsr_warp_sum(inside);
    const uint64_t all = (uint64_t)total * tsr_log2_cost(total);
    return (all > inside ? all - inside : 0) + (uint64_t)(8 + 2 * used + 6 * gaps) * TSR_COST_BIT;
}

/* The gain of cells a < b as tables; a warp. */
template <typename Memory>
__device__ __forceinline__ void find_gain(Memory &m, const merge_counts &counts, int a, int b, unsigned lane)
{
    const uint64_t both =
        table_cost(counts, m.joined, counts.at + a * counts.pitch, counts.at + b * counts.pitch, lane);
    if (lane == 0) m.gain[pair_place<Memory>(a, b)] = (int64_t)(both - m.cost[a] - m.cost[b]);
}

/* Squeezes out the symbols that no cell uses, if the rest fit into shared memory. */
template <typename Memory>
__device__ __forceinline__ merge_counts squeeze(Memory &m, uint32_t *counts, int cells, int symbols)
{
    const unsigned thread = threadIdx.x, lane = thread % TSR_WARP;
    merge_counts out = {counts, (uint32_t)symbols, (uint32_t)symbols};
    for (int s = (int)thread; s < Memory::SYMBOL_WORDS * TSR_WARP; s += Memory::THREADS) {
        uint32_t any = 0;
        for (int c = 0; s < symbols && c < cells; c++) any |= counts[c * symbols + s];
        const uint32_t word = __ballot_sync(TSR_FULL_WARP, any != 0);
        if (lane == 0) m.symbols_used[s / TSR_WARP] = word;
    }
    __syncthreads();
    uint32_t columns = 0;
    for (int w = 0; w < Memory::SYMBOL_WORDS; w++) columns += (uint32_t)__popc(m.symbols_used[w]);
    const bool fits = columns * (uint32_t)cells <= (uint32_t)Memory::ROOM;
    if (fits) {
        out.at = m.counts;
        out.pitch = out.columns = columns;
    }
    if (thread < Memory::SYMBOL_WORDS) m.joined[thread] = fits ? 0u : TSR_FULL_WARP;
    __syncthreads();
    for (int s = (int)thread; s < symbols; s += Memory::THREADS) {
        uint32_t column = (uint32_t)s;
        const bool is_used = m.symbols_used[s / TSR_WARP] >> s % TSR_WARP & 1u;
        if (fits) {
            if (!is_used) continue;
            column = (uint32_t)__popc(m.symbols_used[s / TSR_WARP] & ((1u << s % TSR_WARP) - 1u));
            for (int w = 0; w < s / TSR_WARP; w++) column += (uint32_t)__popc(m.symbols_used[w]);
            const bool is_joined = s == 0 || (m.symbols_used[(s - 1) / TSR_WARP] >> (s - 1) % TSR_WARP & 1u);
            if (is_joined) atomicOr(&m.joined[column / TSR_WARP], 1u << column % TSR_WARP);
        }
        m.symbol_of[column] = (uint16_t)s;
    }
    __syncthreads();
    for (uint32_t i = thread; fits && i < columns * (uint32_t)cells; i += Memory::THREADS) {
        const uint32_t cell = i / columns;
        m.counts[i] = counts[cell * (uint32_t)symbols + m.symbol_of[i - cell * columns]];
    }
    __syncthreads();
    return out;
}

/* Candidate of this thread, as the definition numbers them: place among the living and distance; a key that orders by
 * gain, then by that number. Gains are below 2^27 * 12 * 4096 < 2^43 in magnitude. */
template <typename Memory> __device__ __forceinline__ int64_t candidate(const Memory &m, int living, unsigned thread)
{
    const int place = (int)thread / TSR_MERGE_WINDOW, other = place + 1 + (int)thread % TSR_MERGE_WINDOW;
    if (other >= living) return INT64_MAX;
    return m.gain[pair_place<Memory>(m.alive[place], m.alive[other])] * Memory::THREADS + (int64_t)thread;
}

template <typename Memory> __device__ __forceinline__ int64_t least_of_block(Memory &m, int64_t key)
{
    for (int lanes = TSR_WARP / 2; lanes > 0; lanes /= 2) key = min(key, __shfl_xor_sync(TSR_FULL_WARP, key, lanes));
    if (threadIdx.x % TSR_WARP == 0) m.least[threadIdx.x / TSR_WARP] = key;
    __syncthreads();
    key = m.least[0];
    for (int i = 1; i < Memory::WARPS; i++) key = min(key, m.least[i]);
    return key;
}

/* The pairs whose gains a merge makes new: those with a, at place pa, and those that reach over b's old place, pb.
 * Task 0..23 to a pair of places; false: there is none such. */
__device__ __forceinline__ bool new_pair(int task, int pa, int pb, int living, int *first, int *second)
{
    const int k = task % TSR_MERGE_WINDOW;
    *first = task < TSR_MERGE_WINDOW ? pa - 1 - k : task < 2 * TSR_MERGE_WINDOW ? pa : pb - 1 - k;
    *second = task < TSR_MERGE_WINDOW ? pa : task < 2 * TSR_MERGE_WINDOW ? pa + 1 + k : *first + TSR_MERGE_WINDOW;
    return *first >= 0 && *second < living;
}

/* A block an alphabet: tsr_merge_contexts. Returns the number of tables. */
template <typename Memory>
__device__ __forceinline__ int merge_cells(Memory &m, uint32_t *counts, int cells, int symbols, uint8_t *table_of)
{
    const unsigned thread = threadIdx.x, lane = thread % TSR_WARP;
    const int warp = (int)(thread / TSR_WARP);
    const merge_counts rows = squeeze(m, counts, cells, symbols);
    for (int c = warp; c < cells; c += Memory::WARPS) {
        const uint64_t cost = table_cost(rows, m.joined, rows.at + c * rows.pitch, NULL, lane);
        if (lane == 0) m.cost[c] = cost;
    }
    __syncthreads();
    int living = 0;
    for (int c = 0; c < cells; c++) {
        const bool is_alive = m.cost[c] != 0; /* the same in all threads */
        if (thread == 0) {
            if (is_alive) m.alive[living] = (uint8_t)c;
            m.table_of[c] = is_alive ? (uint8_t)c : (uint8_t)255;
        }
        living += is_alive;
    }
    __syncthreads();
    for (int task = warp; task < living * TSR_MERGE_WINDOW; task += Memory::WARPS) {
        const int place = task / TSR_MERGE_WINDOW, other = place + 1 + task % TSR_MERGE_WINDOW;
        if (other < living) find_gain(m, rows, m.alive[place], m.alive[other], lane);
    }
    __syncthreads();
    while (living > 1) {
        const int64_t key = least_of_block(m, candidate(m, living, thread));
        const int number = (int)(key & (Memory::THREADS - 1)); /* also of negative keys: two's complement */
        if (key >= 0 && living <= TSR_TABLE_LIMIT) break;
        const int pa = number / TSR_MERGE_WINDOW, pb = pa + 1 + number % TSR_MERGE_WINDOW;
        const int a = m.alive[pa], b = m.alive[pb];
        const uint8_t next = (int)thread < Memory::CELLS - 1 ? m.alive[thread + 1] : (uint8_t)0;
        for (uint32_t i = thread; i < rows.columns; i += Memory::THREADS) {
            rows.at[a * rows.pitch + i] += rows.at[b * rows.pitch + i];
            rows.at[b * rows.pitch + i] = 0;
        }
        __syncthreads();
        living--;
        if ((int)thread >= pb && (int)thread < living) m.alive[thread] = next;
        if ((int)thread < cells && m.table_of[thread] == b) m.table_of[thread] = (uint8_t)a;
        if (warp == 0) {
            const uint64_t cost = table_cost(rows, m.joined, rows.at + a * rows.pitch, NULL, lane);
            if (lane == 0) m.cost[a] = cost;
        }
        __syncthreads();
        for (int task = warp; task < 3 * TSR_MERGE_WINDOW; task += Memory::WARPS) {
            int first, second;
            if (new_pair(task, pa, pb, living, &first, &second))
                find_gain(m, rows, m.alive[first], m.alive[second], lane);
        }
        __syncthreads();
    }
    /* Number the tables by their first cells, and move their counts to the front. Rows only move up, so one after the
     * other; cells without samples get the table before them. */
    if (rows.at == counts) {
        for (int t = 0; t < living; t++) {
            for (int s = (int)thread; s < symbols; s += Memory::THREADS)
                counts[t * symbols + s] = counts[m.alive[t] * symbols + s];
            __syncthreads();
        }
    } else {
        for (int i = (int)thread; i < living * symbols; i += Memory::THREADS) counts[i] = 0;
        __syncthreads();
        for (uint32_t i = thread; i < (uint32_t)living * rows.columns; i += Memory::THREADS) {
            const uint32_t t = i / rows.columns, column = i - t * rows.columns;
            counts[t * (uint32_t)symbols + m.symbol_of[column]] = m.counts[m.alive[t] * rows.pitch + column];
        }
    }
    if ((int)thread < cells) {
        int cell = (int)thread;
        while (cell >= 0 && m.table_of[cell] == 255) cell--;
        int table = 0;
        for (int t = 0; cell >= 0 && t < living; t++)
            if (m.alive[t] == m.table_of[cell]) table = t;
        table_of[thread] = (uint8_t)table;
    }
    return living;
}

/* ---- Lengths and codewords ------------------------------------------------------------------------------ */

/* Packages weigh at most 12 times what was counted, and a plane counts at most 16 symbols in each of 2^23 blocks. */
static_assert((uint64_t)TSR_CODE_LIMIT * TSR_FRAME_SAMPLES_LIMIT < UINT32_MAX, "weights must fit 32 bits");

template <int SYMBOL_LIMIT> struct code_memory {
    enum { SYMBOLS = SYMBOL_LIMIT, LEVEL_WORDS = (2 * SYMBOLS + TSR_WARP - 1) / TSR_WARP };
    uint32_t leaf[SYMBOLS]; /* counts of used symbols, rarest first */
    uint32_t weight[2][2 * SYMBOLS];
    uint32_t is_leaf[TSR_CODE_LIMIT][LEVEL_WORDS]; /* by place in a level's order */
    uint16_t order[SYMBOLS];                       /* the leaves' symbols */
    uint16_t used[SYMBOLS];
    uint8_t length[SYMBOLS]; /* by leaf */
};

/* Entries of list[0 .. count-1], rising, that are below limit, or, with equal set, not above it. */
__device__ __forceinline__ int entries_below(const uint32_t *list, int count, uint32_t limit, bool equal)
{
    int low = 0, high = count;
    while (low < high) {
        const int middle = (low + high) / 2;
        if (list[middle] < limit || (equal && list[middle] == limit))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Used symbols by count, then by symbol. Returns their number. */
template <typename Memory>
__device__ __forceinline__ int sort_leaves(Memory &m, const uint32_t *counts, int symbols, unsigned lane)
{
    int used = 0;
    for (int first = 0; first < symbols; first += TSR_WARP) {
        const int s = first + (int)lane;
        const uint32_t c = s < symbols ? counts[s] : 0u, here = __ballot_sync(TSR_FULL_WARP, c != 0);
        if (c != 0) m.used[used + __popc(here & ((1u << lane) - 1u))] = (uint16_t)s;
        used += __popc(here);
    }
    __syncwarp();
    uint32_t *unsorted = m.weight[0];
    for (int i = (int)lane; i < used; i += TSR_WARP) unsorted[i] = counts[m.used[i]];
    __syncwarp();
    for (int i = (int)lane; i < used; i += TSR_WARP) {
        const uint32_t mine = unsorted[i];
        int rank = 0;
        for (int k = 0; k < used; k++) rank += unsorted[k] < mine || (unsorted[k] == mine && k < i);
        m.leaf[rank] = mine;
        m.order[rank] = m.used[i];
    }
    __syncwarp();
    return used;
}

/* The items of all levels: leaves merged with pairs of the level before, a leaf in front of its equals. */
template <typename Memory> __device__ __forceinline__ void merge_levels(Memory &m, int used, unsigned lane)
{
    int size = 0;
    for (int level = 0; level < TSR_CODE_LIMIT; level++) {
        uint32_t *before = m.weight[(level + 1) & 1], *now = m.weight[level & 1];
        const int pairs = size / 2;
        for (int w = (int)lane; w < Memory::LEVEL_WORDS; w += TSR_WARP) m.is_leaf[level][w] = 0;
        for (int p = (int)lane; p < pairs; p += TSR_WARP) m.weight[level & 1][p] = before[2 * p] + before[2 * p + 1];
        __syncwarp();
        for (int p = (int)lane; p < pairs; p += TSR_WARP) before[p] = now[p]; /* packages, in a place of their own */
        __syncwarp();
        for (int i = (int)lane; i < used; i += TSR_WARP) {
            const int at = i + entries_below(before, pairs, m.leaf[i], false);
            now[at] = m.leaf[i];
            atomicOr(&m.is_leaf[level][at / TSR_WARP], 1u << at % TSR_WARP);
        }
        for (int p = (int)lane; p < pairs; p += TSR_WARP)
            now[p + entries_below(m.leaf, used, before[p], true)] = before[p];
        size = used + pairs;
        __syncwarp();
    }
}

/* Lengths of the leaves from the levels; see tsr_huffman_lengths. */
template <typename Memory> __device__ __forceinline__ void take_lengths(Memory &m, int used, unsigned lane)
{
    for (int i = (int)lane; i < used; i += TSR_WARP) m.length[i] = used == 1 ? 1 : 0;
    if (used < 2) return;
    int take = 2 * (used - 1);
    for (int level = TSR_CODE_LIMIT - 1; level >= 0 && take > 0; level--) {
        int leaves = 0;
        for (int first = 0; first < take; first += TSR_WARP) {
            const uint32_t word = m.is_leaf[level][first / TSR_WARP];
            leaves += __popc(take - first >= TSR_WARP ? word : word & ((1u << (take - first)) - 1u));
        }
        for (int i = (int)lane; i < leaves; i += TSR_WARP) m.length[i]++;
        take = 2 * (take - leaves);
    }
}

/* Canonical codewords: tsr_huffman_codewords, packed; those of unused symbols are 0 already. Lane n keeps the next
 * codeword of length n. */
template <typename Memory>
__device__ __forceinline__ void assign_codewords(const Memory &m, const uint8_t *lengths, int used, uint16_t *codes,
                                                 unsigned lane)
{
    uint32_t count = 0;
    for (int first = 0; first < used; first += TSR_WARP) {
        const int i = first + (int)lane, length = i < used ? lengths[m.used[i]] : 0;
        for (unsigned n = 1; n <= TSR_CODE_LIMIT; n++) {
            const uint32_t here = __ballot_sync(TSR_FULL_WARP, length == (int)n);
            if (lane == n) count += (uint32_t)__popc(here);
        }
    }
    uint32_t next = 0, code = 0;
    for (unsigned n = 1; n <= TSR_CODE_LIMIT; n++) {
        const uint32_t shorter = __shfl_sync(TSR_FULL_WARP, count, (int)n - 1); /* lane 0 counts none */
        code = (code + shorter) << 1;
        if (lane == n) next = code;
    }
    for (int first = 0; first < used; first += TSR_WARP) {
        const int i = first + (int)lane, length = i < used ? lengths[m.used[i]] : 0;
        uint32_t bits = __shfl_sync(TSR_FULL_WARP, next, length);
        for (unsigned n = 1; n <= TSR_CODE_LIMIT; n++) {
            const uint32_t here = __ballot_sync(TSR_FULL_WARP, length == (int)n);
            if (length == (int)n) bits += (uint32_t)__popc(here & ((1u << lane) - 1u));
            if (lane == n) next += (uint32_t)__popc(here);
        }
        if (i < used && used > 1) codes[m.used[i]] = (uint16_t)((uint32_t)length << 12 | bits);
    }
}

} // namespace tsr_training

#endif
