/* tsr_merge_contexts by a block of threads: cells' counts to tables, the same as the definition makes.
 *
 * Costs are exact integer sums. The lanes of a warp share the symbols of one pair of cells, and each lane then works
 * out one pair's gain from its sums. Gains are kept by cell and distance; a merge makes 24 of them new, which the warps
 * share, and changes the best of the 17 cells that have them, which the first warp looks for. The living stand in two
 * lists, an old and a new one, so that a merge takes three barriers. Symbols that no cell uses are squeezed out first.
 * What the definition decides by order, the first of equal gains, is decided by the least of (gain, place). */
#ifndef TSR_KERNELS_MERGE_TABLES_CUH
#define TSR_KERNELS_MERGE_TABLES_CUH

#include "device.cuh"

#include "../entropy/contexts.h"

/* CELLS, SYMBOLS: at most so many. */
template <int CELLS, int SYMBOLS, int THREADS> struct tsr_merge_memory {
    enum {
        WARPS = THREADS / TSR_WARP,
        SYMBOL_WORDS = (SYMBOLS + TSR_WARP - 1) / TSR_WARP,
        NEW_GAINS = 3 * TSR_MERGE_WINDOW,
        COSTS = 512 /* of which no table's sum exceeds 32 bits */
    };
    static_assert((uint64_t)SYMBOLS * COSTS * 9 * TSR_COST_BIT <= UINT32_MAX, "sums of small counts' costs");
    static_assert(CELLS <= 255 && CELLS <= THREADS, "a thread a cell");
    int64_t gain[CELLS][TSR_MERGE_WINDOW]; /* of a cell and the next ones that are alive */
    int64_t best[CELLS];                   /* the least of them */
    uint64_t cost[CELLS];
    uint32_t count_cost[COSTS]; /* as tsr_merge_work's */
    uint32_t symbols_used[SYMBOL_WORDS];
    uint32_t joined[SYMBOL_WORDS];      /* bit i: column i's symbol is the one after column i - 1's */
    uint32_t mask[CELLS][SYMBOL_WORDS]; /* columns that a cell uses */
    uint16_t symbol_of[SYMBOLS];        /* by column */
    uint8_t alive[2][CELLS];            /* cells that are tables now, in order */
    uint8_t distance[CELLS];            /* of the best partner, less 1 */
    uint8_t table_of[CELLS];
    int living, place, other; /* of the next merge; place -1: there is none */
    uint32_t counts[CELLS * SYMBOLS];
};

/* What tsr_table_cost sums up of counts. */
struct tsr_table_sums {
    uint32_t total;
    uint64_t inside; /* of each count times its logarithm */
};

/* By a warp, of columns of counts; b null: of one cell. All lanes get it. */
template <typename Memory>
static __device__ __forceinline__ tsr_table_sums tsr_sum_table(const Memory &m, uint32_t columns, const uint32_t *a,
                                                               const uint32_t *b, unsigned lane)
{
    tsr_table_sums sums;
    uint32_t total = 0, inside = 0;
    uint64_t large = 0;
#pragma unroll
    for (uint32_t word = 0; word < (uint32_t)Memory::SYMBOL_WORDS; word++) {
        const uint32_t column = word * TSR_WARP + lane;
        if (column >= columns) continue;
        const uint32_t c = a[column] + (b ? b[column] : 0u);
        total += c;
        if (c < Memory::COSTS)
            inside += m.count_cost[c];
        else
            large += (uint64_t)c * tsr_log2_cost(c);
    }
    sums.total = tsr_warp_sum(total);
    sums.inside = tsr_warp_sum(inside);
    if (__any_sync(TSR_FULL_WARP, large != 0)) { /* below 2^44 together */
        sums.inside += tsr_warp_sum((uint32_t)large & 0x3fffffu);
        sums.inside += (uint64_t)tsr_warp_sum((uint32_t)(large >> 22)) << 22;
    }
    return sums;
}

/* tsr_table_cost of cells a and b from their sums; both may be the same. */
template <typename Memory>
static __device__ __forceinline__ uint64_t tsr_cost_of_sums(const Memory &m, const tsr_table_sums &sums, int a, int b)
{
    uint32_t used = 0, gaps = 0, before = 1; /* nothing before the first symbol: no gap */
#pragma unroll
    for (int word = 0; word < Memory::SYMBOL_WORDS; word++) {
        const uint32_t here = m.mask[a][word] | m.mask[b][word];
        /* a gap stands before a used symbol unless the symbol before it is used, or there is none */
        gaps += (uint32_t)__popc(here & ~(m.joined[word] & (here << 1 | before)));
        used += (uint32_t)__popc(here);
        before = here >> 31;
    }
    if (used == 0) return 0;
    const uint64_t all = (uint64_t)sums.total * tsr_log2_cost(sums.total);
    return (all > sums.inside ? all - sums.inside : 0) + (uint64_t)(8 + 2 * used + 6 * gaps) * TSR_COST_BIT;
}

/* Gains of the pairs that place_pair names: (number, first place, second place) is true where there is such a pair. The
 * warps take count numbers in turn, each at most 32 of them. */
template <typename Memory, typename Pair>
static __device__ __forceinline__ void tsr_find_gains(Memory &m, uint32_t columns, const uint8_t *alive, int count,
                                                      Pair place_pair)
{
    const unsigned lane = threadIdx.x % TSR_WARP;
    const int warp = (int)(threadIdx.x / TSR_WARP);
    tsr_table_sums own = {0, 0};
    int a = 0, b = 0, distance = -1, turn = 0;
    for (int number = warp; number < count; number += Memory::WARPS) {
        int first, second;
        if (!place_pair(number, &first, &second)) continue;
        const int one = alive[first], two = alive[second];
        const tsr_table_sums sums = tsr_sum_table(m, columns, m.counts + one * columns, m.counts + two * columns, lane);
        if ((int)lane == turn) {
            own = sums;
            a = one;
            b = two;
            distance = second - first - 1;
        }
        turn++;
    }
    if (distance >= 0) m.gain[a][distance] = (int64_t)(tsr_cost_of_sums(m, own, a, b) - m.cost[a] - m.cost[b]);
}

/* tsr_find_partner for the cell at a place of the living. */
template <typename Memory>
static __device__ __forceinline__ void tsr_find_best(Memory &m, const uint8_t *alive, int living, int place)
{
    const int cell = alive[place];
    int64_t best = INT64_MAX;
    int distance = 0;
#pragma unroll
    for (int k = 0; k < TSR_MERGE_WINDOW; k++) {
        const int64_t gain = m.gain[cell][k];
        if (place + 1 + k >= living || gain >= best) continue;
        best = gain;
        distance = k;
    }
    m.best[cell] = best;
    m.distance[cell] = (uint8_t)distance;
}

/* The pair that merges next, by the first warp. */
template <typename Memory>
static __device__ __forceinline__ void tsr_choose_merge(Memory &m, const uint8_t *alive, int living, unsigned lane)
{
    int64_t key = INT64_MAX; /* orders by gain, then by place; gains are below 2^27 * 12 * 4096 < 2^43 in magnitude */
    for (int place = (int)lane; place + 1 < living; place += TSR_WARP)
        key = min(key, m.best[alive[place]] * 256 + place);
    for (int lanes = TSR_WARP / 2; lanes > 0; lanes /= 2) key = min(key, __shfl_xor_sync(TSR_FULL_WARP, key, lanes));
    if (lane != 0) return;
    const int place = (int)(key & 255); /* also of negative keys: two's complement */
    const bool is_last = living < 2 || (key >= 0 && living <= TSR_TABLE_LIMIT);
    m.place = is_last ? -1 : place;
    m.other = is_last ? -1 : place + 1 + m.distance[alive[place]];
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
    for (int c = thread; c < memory::COSTS; c += THREADS)
        m.count_cost[c] = c == 0 ? 0 : (uint32_t)c * tsr_log2_cost((uint32_t)c);
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
#pragma unroll
        for (uint32_t word = 0; word < (uint32_t)memory::SYMBOL_WORDS; word++) {
            const uint32_t column = word * TSR_WARP + lane;
            const uint32_t here =
                __ballot_sync(TSR_FULL_WARP, column < columns && m.counts[(uint32_t)c * columns + column] != 0);
            if (lane == 0) m.mask[c][word] = here;
        }
        __syncwarp();
        const tsr_table_sums sums = tsr_sum_table(m, columns, m.counts + c * columns, NULL, lane);
        const uint64_t cost = tsr_cost_of_sums(m, sums, c, c);
        if (lane == 0) m.cost[c] = cost;
        if (lane == 0) m.table_of[c] = cost ? (uint8_t)c : (uint8_t)255;
    }
    __syncthreads();
    uint8_t *alive = m.alive[0], *next_alive = m.alive[1];
    if (warp == 0) { /* the living, in order */
        int living = 0;
        for (int first = 0; first < cells; first += TSR_WARP) {
            const int c = first + (int)lane;
            const uint32_t here = __ballot_sync(TSR_FULL_WARP, c < cells && m.cost[c] != 0);
            if (here >> lane & 1u) alive[living + __popc(here & ((1u << lane) - 1u))] = (uint8_t)c;
            living += __popc(here);
        }
        if (lane == 0) m.living = living;
    }
    __syncthreads();
    int living = m.living;
    for (int first = 0; first < living * TSR_MERGE_WINDOW; first += THREADS) /* 32 pairs a warp */
        tsr_find_gains(m, columns, alive, tsr_min((int)THREADS, living * TSR_MERGE_WINDOW - first),
                       [&](int number, int *one, int *two) {
                           *one = (first + number) / TSR_MERGE_WINDOW;
                           *two = *one + 1 + (first + number) % TSR_MERGE_WINDOW;
                           return *two < living;
                       });
    __syncthreads();
    if (thread < living) tsr_find_best(m, alive, living, thread);
    __syncthreads();
    for (;;) {
        if (warp == 0) tsr_choose_merge(m, alive, living, lane);
        __syncthreads();
        const int pa = m.place, pb = m.other;
        if (pa < 0) break;
        const int a = alive[pa], b = alive[pb];
        living--;
        if (thread < living) next_alive[thread] = alive[thread + (thread >= pb)];
        if (thread < cells && m.table_of[thread] == b) m.table_of[thread] = (uint8_t)a;
        for (uint32_t i = (uint32_t)thread; i < columns; i += THREADS)
            m.counts[a * columns + i] += m.counts[b * columns + i];
        if (thread < memory::SYMBOL_WORDS) m.mask[a][thread] |= m.mask[b][thread];
        if (thread == 0) m.cost[a] += m.cost[b] + (uint64_t)m.best[a];
        /* Windows that reached b now reach one further. */
        const int before = pb - 1 - (thread - (THREADS - TSR_MERGE_WINDOW));
        if (thread >= THREADS - TSR_MERGE_WINDOW && before >= 0) {
            const int cell = alive[before];
            for (int k = pb - 1 - before; k + 1 < TSR_MERGE_WINDOW; k++) m.gain[cell][k] = m.gain[cell][k + 1];
        }
        uint8_t *const old = alive;
        alive = next_alive;
        next_alive = old;
        __syncthreads();
        /* New are the gains of the pairs with a, and of those that reach over b's old place. */
        tsr_find_gains(m, columns, alive, memory::NEW_GAINS, [&](int number, int *one, int *two) {
            const int k = number % TSR_MERGE_WINDOW, kind = number / TSR_MERGE_WINDOW;
            *one = kind == 0 ? pa - 1 - k : kind == 1 ? pa : pb - 1 - k;
            *two = kind == 0 ? pa : kind == 1 ? pa + 1 + k : *one + TSR_MERGE_WINDOW;
            return *one >= 0 && *two < living;
        });
        __syncthreads();
        if (warp != 0) continue;
        const int change = (int)lane <= TSR_MERGE_WINDOW ? pa - (int)lane : pb - ((int)lane - TSR_MERGE_WINDOW);
        if (lane <= 2 * TSR_MERGE_WINDOW && change >= 0 && change < living) tsr_find_best(m, alive, living, change);
        __syncwarp();
    }
    /* Number the tables by their first cells, and move their counts to the front; cells without samples get the table
     * before them. */
    for (int i = thread; i < living * symbols; i += THREADS) counts[i] = 0;
    __syncthreads();
    for (uint32_t i = (uint32_t)thread; i < (uint32_t)living * columns; i += THREADS) {
        const uint32_t t = i / columns, column = i - t * columns;
        counts[t * (uint32_t)symbols + m.symbol_of[column]] = m.counts[alive[t] * columns + column];
    }
    for (int c = thread; c < cells; c += THREADS) {
        int cell = c, table = 0;
        while (cell >= 0 && m.table_of[cell] == 255) cell--;
        for (int t = 0; cell >= 0 && t < living; t++)
            if (alive[t] == m.table_of[cell]) table = t;
        table_of[c] = (uint8_t)table;
    }
    __syncthreads();
    return living;
}

#endif
