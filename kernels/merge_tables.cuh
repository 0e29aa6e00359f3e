/* tsr_merge_contexts by a block of threads: cells' counts to tables, the same as the definition makes.
 *
 * Costs are exact integer sums, so the lanes of a warp share one pair of cells; the gains of all pairs within the
 * window are kept by cell and distance, and after each merge the 24 that are new are worked out by as many warps at
 * once. Symbols that no cell uses are squeezed out first. What the definition decides by order, the first of equal
 * gains, is decided by the least of (gain, place). */
#ifndef TSR_KERNELS_MERGE_TABLES_CUH
#define TSR_KERNELS_MERGE_TABLES_CUH

#include "device.cuh"

#include "../entropy/contexts.h"

/* CELLS, SYMBOLS: at most so many. */
template <int CELLS, int SYMBOLS, int THREADS> struct tsr_merge_memory {
    enum {
        WARPS = THREADS / TSR_WARP,
        SYMBOL_WORDS = (SYMBOLS + TSR_WARP - 1) / TSR_WARP,
        CANDIDATES = CELLS * TSR_MERGE_WINDOW
    };
    int64_t gain[CELLS][TSR_MERGE_WINDOW]; /* of a cell and the next ones that are alive */
    uint64_t cost[CELLS];
    int64_t least[WARPS];
    uint32_t counts[CELLS * SYMBOLS];
    uint32_t symbols_used[SYMBOL_WORDS];
    uint32_t joined[SYMBOL_WORDS]; /* bit i: column i's symbol is the one after column i - 1's */
    uint32_t columns;
    uint16_t symbol_of[SYMBOLS]; /* by column */
    uint8_t alive[CELLS];        /* cells that are tables now, in order */
    uint8_t table_of[CELLS];
    int living;
};

/* tsr_table_cost by a warp of columns of counts; b null: of one cell. All lanes get it. */
static __device__ __forceinline__ uint64_t tsr_warp_table_cost(uint32_t columns, const uint32_t *joined,
                                                               const uint32_t *a, const uint32_t *b, unsigned lane)
{
    uint32_t total = 0, used = 0, gaps = 0, before = 1; /* nothing before the first symbol: no gap */
    uint64_t inside = 0;
    for (uint32_t first = 0; first < columns; first += TSR_WARP) {
        const uint32_t column = first + lane;
        uint32_t c = 0;
        if (column < columns) c = a[column] + (b ? b[column] : 0u);
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

/* counts[cells][symbols] are used up as the definition has it. table_of[cells]; returns the number of tables. All
 * threads of the block; no barrier is needed before, one is after. */
template <int CELLS, int SYMBOLS, int THREADS>
static __device__ int tsr_merge_cells(tsr_merge_memory<CELLS, SYMBOLS, THREADS> &m, uint32_t *counts, int cells,
                                      int symbols, uint8_t *table_of)
{
    typedef tsr_merge_memory<CELLS, SYMBOLS, THREADS> memory;
    const unsigned lane = threadIdx.x % TSR_WARP;
    const int thread = (int)threadIdx.x, warp = thread / TSR_WARP;
    __syncthreads();
    /* Squeeze. */
    if (thread < memory::SYMBOL_WORDS) m.symbols_used[thread] = m.joined[thread] = 0;
    __syncthreads();
    for (int i = thread; i < cells * symbols; i += THREADS) {
        const int s = i % symbols;
        if (counts[i] != 0 && !(m.symbols_used[s / TSR_WARP] >> s % TSR_WARP & 1u))
            atomicOr(&m.symbols_used[s / TSR_WARP], 1u << s % TSR_WARP);
    }
    __syncthreads();
    for (int s = thread; s < symbols; s += THREADS) {
        if (!(m.symbols_used[s / TSR_WARP] >> s % TSR_WARP & 1u)) continue;
        uint32_t column = (uint32_t)__popc(m.symbols_used[s / TSR_WARP] & ((1u << s % TSR_WARP) - 1u));
        for (int w = 0; w < s / TSR_WARP; w++) column += (uint32_t)__popc(m.symbols_used[w]);
        const bool is_joined = s == 0 || (m.symbols_used[(s - 1) / TSR_WARP] >> (s - 1) % TSR_WARP & 1u);
        if (is_joined) atomicOr(&m.joined[column / TSR_WARP], 1u << column % TSR_WARP);
        m.symbol_of[column] = (uint16_t)s;
    }
    uint32_t columns = 0;
    for (int w = 0; w < memory::SYMBOL_WORDS; w++) columns += (uint32_t)__popc(m.symbols_used[w]);
    __syncthreads();
    for (uint32_t i = (uint32_t)thread; i < columns * (uint32_t)cells; i += THREADS) {
        const uint32_t cell = i / columns;
        m.counts[i] = counts[cell * (uint32_t)symbols + m.symbol_of[i - cell * columns]];
    }
    __syncthreads();

    for (int c = warp; c < cells; c += memory::WARPS) {
        const uint64_t cost = tsr_warp_table_cost(columns, m.joined, m.counts + c * columns, NULL, lane);
        if (lane == 0) m.cost[c] = cost;
        if (lane == 0) m.table_of[c] = cost ? (uint8_t)c : (uint8_t)255;
    }
    __syncthreads();
    if (warp == 0) { /* the living, in order */
        int living = 0;
        for (int first = 0; first < cells; first += TSR_WARP) {
            const int c = first + (int)lane;
            const uint32_t here = __ballot_sync(TSR_FULL_WARP, c < cells && m.cost[c] != 0);
            if (here >> lane & 1u) m.alive[living + __popc(here & ((1u << lane) - 1u))] = (uint8_t)c;
            living += __popc(here);
        }
        if (lane == 0) m.living = living;
    }
    __syncthreads();
    int living = m.living;
    const auto find_gain =
        [&](int first, int second) { /* of places in alive[]; a warp */
                                     const int a = m.alive[first], b = m.alive[second];
                                     const uint64_t both = tsr_warp_table_cost(
                                         columns, m.joined, m.counts + a * columns, m.counts + b * columns, lane);
                                     if (lane == 0)
                                         m.gain[a][second - first - 1] = (int64_t)(both - m.cost[a] - m.cost[b]);
        };
    for (int task = warp; task < living * TSR_MERGE_WINDOW; task += memory::WARPS) {
        const int place = task / TSR_MERGE_WINDOW, other = place + 1 + task % TSR_MERGE_WINDOW;
        if (other < living) find_gain(place, other);
    }
    __syncthreads();
    while (living > 1) {
        /* Candidates as the definition numbers them: place among the living and distance; a key that orders by gain,
         * then by that number. Gains are below 2^27 * 12 * 4096 < 2^43 in magnitude. */
        int64_t key = INT64_MAX;
        for (int number = thread; number < living * TSR_MERGE_WINDOW; number += THREADS) {
            const int place = number / TSR_MERGE_WINDOW, k = number % TSR_MERGE_WINDOW;
            if (place + 1 + k < living) key = min(key, m.gain[m.alive[place]][k] * memory::CANDIDATES + number);
        }
        for (int lanes = TSR_WARP / 2; lanes > 0; lanes /= 2)
            key = min(key, __shfl_xor_sync(TSR_FULL_WARP, key, lanes));
        if (lane == 0) m.least[warp] = key;
        __syncthreads();
        key = m.least[0];
        for (int i = 1; i < memory::WARPS; i++) key = min(key, m.least[i]);
        int64_t number = key % memory::CANDIDATES;
        if (number < 0) number += memory::CANDIDATES;
        if (key - number >= 0 && living <= TSR_TABLE_LIMIT) break;
        const int pa = (int)number / TSR_MERGE_WINDOW, pb = pa + 1 + (int)number % TSR_MERGE_WINDOW;
        const int a = m.alive[pa], b = m.alive[pb];
        const uint8_t next = thread >= pb && thread + 1 < living ? m.alive[thread + 1] : (uint8_t)0;
        const int before = pb - 1 - (thread - (THREADS - TSR_MERGE_WINDOW)); /* the last threads: places before b */
        const int shifted = thread >= THREADS - TSR_MERGE_WINDOW && before >= 0 ? m.alive[before] : -1;
        __syncthreads();
        living--;
        if (thread >= pb && thread < living) m.alive[thread] = next;
        if (thread < cells && m.table_of[thread] == b) m.table_of[thread] = (uint8_t)a;
        if (shifted >= 0) /* windows that reached b now reach one further */
            for (int k = pb - 1 - before; k + 1 < TSR_MERGE_WINDOW; k++) m.gain[shifted][k] = m.gain[shifted][k + 1];
        if (warp == 0) {
            for (uint32_t i = lane; i < columns; i += TSR_WARP) {
                m.counts[a * columns + i] += m.counts[b * columns + i];
                m.counts[b * columns + i] = 0;
            }
            __syncwarp();
            const uint64_t cost = tsr_warp_table_cost(columns, m.joined, m.counts + a * columns, NULL, lane);
            if (lane == 0) m.cost[a] = cost;
        }
        __syncthreads();
        /* New are the gains of the pairs with a, and of those that reach over b's old place. */
        for (int task = warp; task < 3 * TSR_MERGE_WINDOW; task += memory::WARPS) {
            const int k = task % TSR_MERGE_WINDOW;
            const int first = task < TSR_MERGE_WINDOW ? pa - 1 - k : task < 2 * TSR_MERGE_WINDOW ? pa : pb - 1 - k;
            const int second = task < TSR_MERGE_WINDOW       ? pa
                               : task < 2 * TSR_MERGE_WINDOW ? pa + 1 + k
                                                             : first + TSR_MERGE_WINDOW;
            if (first >= 0 && second < living) find_gain(first, second);
        }
        __syncthreads();
    }
    /* Number the tables by their first cells, and move their counts to the front; cells without samples get the table
     * before them. */
    for (int i = thread; i < living * symbols; i += THREADS) counts[i] = 0;
    __syncthreads();
    for (uint32_t i = (uint32_t)thread; i < (uint32_t)living * columns; i += THREADS) {
        const uint32_t t = i / columns, column = i - t * columns;
        counts[t * (uint32_t)symbols + m.symbol_of[column]] = m.counts[m.alive[t] * columns + column];
    }
    for (int c = thread; c < cells; c += THREADS) {
        int cell = c, table = 0;
        while (cell >= 0 && m.table_of[cell] == 255) cell--;
        for (int t = 0; cell >= 0 && t < living; t++)
            if (m.alive[t] == m.table_of[cell]) table = t;
        table_of[c] = (uint8_t)table;
    }
    __syncthreads();
    return living;
}

#endif
