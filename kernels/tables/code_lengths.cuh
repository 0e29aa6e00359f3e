/* Huffman tables: tsr_huffman_lengths and tsr_huffman_codewords, in steps: symbols by their counts, lengths, codewords.
 *
 * Where no codeword would be longer than the limit anyway, package-merge gives the lengths of plain Huffman codes that
 * take leaves before packages of the same weight. These a thread finds in place, a table a thread, in a tenth of the
 * time. Else a warp a table:
 *
 * Package-merge (Larmore and Hirschberg 1990), each round's merge by each item's rank: its own place and, by binary
 * search, how many of the other list stand before it. */
#ifndef TSR_KERNELS_TABLES_CODE_LENGTHS_CUH
#define TSR_KERNELS_TABLES_CODE_LENGTHS_CUH

#include "kernels/machine/device.cuh"

#include "entropy/huffman.h"

/* Packages weigh at most 12 times what was counted: counts of a table add up to less than 2^32 / 12. */
template <int SYMBOLS> struct tsr_lengths_memory {
    enum { LEVEL_WORDS = (2 * SYMBOLS + TSR_WARP - 1) / TSR_WARP };
    uint32_t weight[2][2 * SYMBOLS];
    uint32_t is_leaf[TSR_CODE_LIMIT][LEVEL_WORDS]; /* by place in a round's order */
};

/* Sorts keys, EACH a lane, by a bitonic network. */
template <int EACH> static __device__ __forceinline__ void tsr_sort_keys(uint32_t key[EACH], unsigned lane)
{
#pragma unroll
    for (unsigned size = 2; size <= EACH * TSR_WARP; size *= 2)
#pragma unroll
        for (unsigned step = size / 2; step > 0; step /= 2) {
            if (step < EACH) {
#pragma unroll
                for (unsigned i = 0; i < EACH; i++) {
                    if (i & step) continue;
                    const bool falls = ((EACH * lane + i) & size) != 0;
                    const uint32_t low = min(key[i], key[i + step]), high = max(key[i], key[i + step]);
                    key[i] = falls ? high : low;
                    key[i + step] = falls ? low : high;
                }
                continue;
            }
            const bool falls = (EACH * lane & size) != 0, takes_low = ((EACH * lane & step) == 0) != falls;
#pragma unroll
            for (unsigned i = 0; i < EACH; i++) {
                const uint32_t other = __shfl_xor_sync(TSR_FULL_WARP, key[i], (int)(step / EACH));
                key[i] = takes_low ? min(key[i], other) : max(key[i], other);
            }
        }
}

/* Keys count << SHIFT | symbol, sorted, to leaf[used] and order[used]; a warp. */
template <int EACH, int SHIFT, typename Symbol>
static __device__ __forceinline__ void tsr_store_leaves(const uint32_t key[EACH], uint32_t *leaf, Symbol *order,
                                                        int used, unsigned lane)
{
#pragma unroll
    for (int i = 0; i < EACH; i++) {
        const int at = EACH * (int)lane + i;
        if (at >= used) continue;
        leaf[at] = key[i] >> SHIFT;
        order[at] = (Symbol)(key[i] & ((1u << SHIFT) - 1u));
    }
    __syncwarp();
}

/* leaf[used] and order[used], where count << SHIFT | symbol fits a word, by these; a warp. */
template <int EACH, int SHIFT, typename Symbol>
static __device__ __forceinline__ void tsr_sort_leaves(uint32_t *leaf, Symbol *order, int used, unsigned lane)
{
    uint32_t key[EACH];
#pragma unroll
    for (int i = 0; i < EACH; i++) {
        const int at = EACH * (int)lane + i;
        key[i] = at < used ? leaf[at] << SHIFT | order[at] : UINT32_MAX;
    }
    __syncwarp();
    tsr_sort_keys<EACH>(key, lane);
    tsr_store_leaves<EACH, SHIFT>(key, leaf, order, used, lane);
}

/* Sorts counts whose count << KEY_SHIFT | symbol fits a word, of at most 64 symbols, as tsr_sort_counts does. -1 where
 * one does not. */
template <int KEY_SHIFT, typename Symbol>
static __device__ __forceinline__ int tsr_sort_small_counts(const uint32_t *counts, int symbols, uint32_t *leaf,
                                                            Symbol *order, unsigned lane)
{
    uint32_t key[2];
    int sorted = 0;
    bool is_large = false;
#pragma unroll
    for (int i = 0; i < 2; i++) {
        const int s = 2 * (int)lane + i;
        const uint32_t c = s < symbols ? counts[s] : 0u;
        is_large |= c >> (32 - KEY_SHIFT) != 0;
        key[i] = c != 0 ? c << KEY_SHIFT | (uint32_t)s : UINT32_MAX;
        sorted += __popc(__ballot_sync(TSR_FULL_WARP, c != 0));
    }
    if (__any_sync(TSR_FULL_WARP, is_large)) return -1;
    tsr_sort_keys<2>(key, lane);
    tsr_store_leaves<2, KEY_SHIFT>(key, leaf, order, sorted, lane);
    return sorted;
}

/* The counts that are not 0, and their symbols, close together. Returns how many. */
template <int EACH, typename Symbol>
static __device__ __forceinline__ int tsr_gather_used(const uint32_t *counts, int symbols, uint32_t *leaf,
                                                      Symbol *order, unsigned lane)
{
    int used = 0;
    __syncwarp();
#pragma unroll
    for (int e = 0; e < EACH; e++) {
        const int s = e * TSR_WARP + (int)lane;
        const uint32_t c = s < symbols ? counts[s] : 0u, here = __ballot_sync(TSR_FULL_WARP, c != 0);
        if (c != 0) {
            const int at = used + __popc(here & ((1u << lane) - 1u));
            leaf[at] = c;
            order[at] = (Symbol)s;
        }
        used += __popc(here);
    }
    __syncwarp();
    return used;
}

/* Sorts leaf[used] and order[used], whatever the counts, by the rank of each among all. */
template <int EACH, typename Symbol>
static __device__ __forceinline__ void tsr_rank_leaves(uint32_t *leaf, Symbol *order, int used, unsigned lane)
{
    uint32_t mine[EACH];
    int symbol[EACH], rank[EACH];
#pragma unroll
    for (int e = 0; e < EACH; e++) {
        const int i = e * TSR_WARP + (int)lane;
        mine[e] = i < used ? leaf[i] : UINT32_MAX; /* after all that are used */
        symbol[e] = i < used ? order[i] : 0;
        rank[e] = 0;
    }
    __syncwarp();
#pragma unroll
    for (int e = 0; e < EACH; e++)
        for (int k = 0; k < tsr_min(used - e * TSR_WARP, (int)TSR_WARP); k++) {
            const uint32_t other = __shfl_sync(TSR_FULL_WARP, mine[e], k);
            rank[e] += other < mine[e] || (other == mine[e] && k < (int)lane);
#pragma unroll
            for (int f = 0; f < EACH; f++) {
                if (f == e || f * TSR_WARP >= used) continue;
                rank[f] += f > e ? other <= mine[f] : other < mine[f];
            }
        }
#pragma unroll
    for (int e = 0; e < EACH; e++) {
        if (e * TSR_WARP + (int)lane >= used) continue;
        leaf[rank[e]] = mine[e];
        order[rank[e]] = (Symbol)symbol[e];
    }
    __syncwarp();
}

/* Counts of a table's used symbols, rarest first, then by symbol: leaf, and these symbols: order, room for all symbols
 * each; a warp. Returns how many. */
template <int SYMBOLS, typename Symbol>
static __device__ __forceinline__ int tsr_sort_counts(const uint32_t *counts, int symbols, uint32_t *leaf,
                                                      Symbol *order, unsigned lane)
{
    constexpr int KEY_SHIFT = 6;
    if (symbols <= 1 << KEY_SHIFT) { /* most are, and their counts leave room for symbols below them */
        const int sorted = tsr_sort_small_counts<KEY_SHIFT>(counts, symbols, leaf, order, lane);
        if (sorted >= 0) return sorted;
    }
    constexpr int EACH = (SYMBOLS + TSR_WARP - 1) / TSR_WARP;
    static_assert(SYMBOLS <= 1 << 8 * sizeof(Symbol), "order must have room");
    const int used = tsr_gather_used<EACH>(counts, symbols, leaf, order, lane);
    if (EACH > 3) {
        constexpr int SHIFT = 9;
        static_assert(SYMBOLS <= 1 << SHIFT, "a symbol has its bits");
        bool is_large = false;
        for (int i = (int)lane; i < used; i += TSR_WARP) is_large |= leaf[i] >> (32 - SHIFT) != 0;
        if (used <= 8 * TSR_WARP && !__any_sync(TSR_FULL_WARP, is_large)) {
            if (used <= TSR_WARP)
                tsr_sort_leaves<1, SHIFT>(leaf, order, used, lane);
            else if (used <= 2 * TSR_WARP)
                tsr_sort_leaves<2, SHIFT>(leaf, order, used, lane);
            else if (used <= 4 * TSR_WARP || SYMBOLS <= 4 * TSR_WARP)
                tsr_sort_leaves<4, SHIFT>(leaf, order, used, lane);
            else
                tsr_sort_leaves<8, SHIFT>(leaf, order, used, lane);
            return used;
        }
    }
    tsr_rank_leaves<EACH>(leaf, order, used, lane);
    return used;
}

/* weights[count], rising, to a Huffman tree (after Moffat and Katajainen 1995); count is 2 at least, weights have room
 * for two more, and are used up: nodes lie where the leaves were that are taken, their weights, then, once they have a
 * parent, its number, then their depths. nodes[depth], zeros before: how many nodes that are no leaves are at a depth,
 * up to the limit. Returns the greatest depth of a leaf. */
static __device__ __forceinline__ int tsr_grow_tree(uint32_t *weights, int count, uint16_t *nodes)
{
    weights[count] = weights[count + 1] = UINT32_MAX;
    int leaf = 0; /* the first without a parent; the first such node follows from it */
    for (int parent = 0; parent < count - 1; parent++) {
        /* The two least of the next two leaves and the next two nodes; of equals, leaves come first. */
        const int node = 2 * parent - leaf;
        const uint32_t leaf_0 = weights[leaf], leaf_1 = weights[leaf + 1],
                       node_0 = node < parent ? weights[node] : UINT32_MAX,
                       node_1 = node + 1 < parent ? weights[node + 1] : UINT32_MAX;
        const bool takes_leaves = leaf_1 <= node_0, takes_nodes = node_1 < leaf_0;
        if (!takes_leaves) weights[node] = (uint32_t)parent;
        if (takes_nodes) weights[node + 1] = (uint32_t)parent;
        weights[parent] = (takes_nodes ? node_1 : leaf_0) + (takes_leaves ? leaf_1 : node_0);
        leaf += takes_leaves ? 2 : takes_nodes ? 0 : 1;
    }
    weights[count - 2] = 0; /* the root */
    nodes[0] = 1;
    uint32_t parent = count > 2 ? weights[count - 3] : 0, depth = 0, here = 1;
    for (int i = count - 3; i >= 0; i--) {                /* never a smaller depth than before */
        const uint32_t next = i > 0 ? weights[i - 1] : 0; /* before it has to wait */
        const uint32_t own = weights[parent] + 1;
        weights[i] = own;
        here = own == depth ? here + 1 : 1;
        depth = own;
        if (depth <= TSR_CODE_LIMIT) nodes[depth] = (uint16_t)here;
        parent = next;
    }
    return (int)depth + 1;
}

/* Entries of list[0 .. count-1], rising, that are below limit, or, with equal set, not above it. */
static __device__ __forceinline__ int tsr_entries_below(const uint32_t *list, int count, uint32_t limit, bool equal)
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

/* leaf[used], rising, to length[used] by package-merge; a warp. */
template <int SYMBOLS>
static __device__ __forceinline__ void tsr_limit_lengths(tsr_lengths_memory<SYMBOLS> &m, const uint32_t *leaf, int used,
                                                         uint8_t *length, unsigned lane)
{
    typedef tsr_lengths_memory<SYMBOLS> memory;
    __syncwarp();
    /* The items of all rounds: leaves merged with pairs of the round before, a leaf in front of its equals. */
    int size = 0;
    for (int round = 0; round < TSR_CODE_LIMIT; round++) {
        uint32_t *before = m.weight[(round + 1) & 1], *now = m.weight[round & 1];
        const int pairs = size / 2;
        for (int w = (int)lane; w < memory::LEVEL_WORDS; w += TSR_WARP) m.is_leaf[round][w] = 0;
        for (int p = (int)lane; p < pairs; p += TSR_WARP) now[p] = before[2 * p] + before[2 * p + 1];
        __syncwarp();
        for (int p = (int)lane; p < pairs; p += TSR_WARP) before[p] = now[p]; /* packages, in a place of their own */
        __syncwarp();
        for (int i = (int)lane; i < used; i += TSR_WARP) {
            const int at = i + tsr_entries_below(before, pairs, leaf[i], false);
            now[at] = leaf[i];
            atomicOr(&m.is_leaf[round][at / TSR_WARP], 1u << at % TSR_WARP);
        }
        for (int p = (int)lane; p < pairs; p += TSR_WARP)
            now[p + tsr_entries_below(leaf, used, before[p], true)] = before[p];
        size = used + pairs;
        __syncwarp();
    }
    /* Lengths of the leaves from the rounds. */
    for (int i = (int)lane; i < used; i += TSR_WARP) length[i] = used == 1 ? 1 : 0;
    int take = 2 * (used - 1);
    for (int round = TSR_CODE_LIMIT - 1; used > 1 && round >= 0 && take > 0; round--) {
        int leaves = 0;
        for (int first = 0; first < take; first += TSR_WARP) {
            const uint32_t word = m.is_leaf[round][first / TSR_WARP];
            leaves += __popc(take - first >= TSR_WARP ? word : word & ((1u << (take - first)) - 1u));
        }
        for (int i = (int)lane; i < leaves; i += TSR_WARP) length[i]++;
        take = 2 * (take - leaves);
    }
    __syncwarp();
}

/* How many symbols have a length: first[TSR_CODE_LIMIT + 1], shared memory; a warp. */
static __device__ __forceinline__ void tsr_count_lengths(const uint8_t *lengths, int symbols, uint32_t *first,
                                                         unsigned lane)
{
    __syncwarp();
    if (lane <= TSR_CODE_LIMIT) first[lane] = 0;
    __syncwarp();
    for (int begin = 0; begin < symbols; begin += TSR_WARP) {
        const int s = begin + (int)lane, length = s < symbols ? lengths[s] : 0;
        const uint32_t same = __match_any_sync(TSR_FULL_WARP, length);
        if (length > 0 && (same & ((1u << lane) - 1u)) == 0) first[length] += (uint32_t)__popc(same);
        __syncwarp();
    }
}

/* Canonical codewords of lengths[symbols], with first[] as above, which is used up: put(symbol, bits, length) for every
 * symbol, with no bits where it is not used, or the only one; a warp. */
template <typename Put>
static __device__ __forceinline__ void tsr_each_codeword(const uint8_t *lengths, int symbols, int used, uint32_t *first,
                                                         Put put, unsigned lane)
{
    __syncwarp();
    /* A length's first codeword comes after all that are shorter. */
    const int right = (int)TSR_CODE_LIMIT - (int)lane;
    const uint32_t taken = right >= 0 ? first[lane] << right : 0u, behind = tsr_warp_scan(taken, lane);
    __syncwarp();
    if (right >= 0) first[lane] = (behind - taken) >> right;
    __syncwarp();
    for (int begin = 0; begin < symbols; begin += TSR_WARP) {
        const int s = begin + (int)lane, length = s < symbols ? lengths[s] : 0;
        const uint32_t same = __match_any_sync(TSR_FULL_WARP, length), before = same & ((1u << lane) - 1u),
                       bits = first[length] + (uint32_t)__popc(before);
        __syncwarp();
        if (length > 0 && before == 0) first[length] += (uint32_t)__popc(same);
        __syncwarp();
        const bool has_bits = length > 0 && used > 1;
        if (s < symbols) put(s, has_bits ? bits : 0u, has_bits ? length : 0);
    }
}

/* ---- Tables of a block of threads ------------------------------------------------------------------------------- */

template <bool IS_BYTE> struct tsr_symbol_of {
    typedef uint8_t type;
};
template <> struct tsr_symbol_of<false> {
    typedef uint16_t type;
};

/* Of at most this many tables of this many symbols. */
template <int TABLES, int SYMBOLS, int WARPS> struct tsr_tables_memory {
    enum { LEAF_PITCH = (SYMBOLS + 2) | 1 }; /* each table begins at a bank of its own */
    typedef typename tsr_symbol_of<SYMBOLS <= 256>::type symbol;
    tsr_lengths_memory<SYMBOLS> memory[WARPS];
    uint32_t leaf[TABLES][LEAF_PITCH];
    symbol order[TABLES][SYMBOLS];
    uint16_t nodes[TABLES][TSR_CODE_LIMIT + 1]; /* by depth */
    uint8_t by_leaf[WARPS][SYMBOLS], by_symbol[WARPS][SYMBOLS];
    uint32_t first[WARPS][TSR_CODE_LIMIT + 1];
    int used[TABLES], depth[TABLES];
};

/* Lengths of a tree's leaves, whose nodes are known, by symbol, and how many have each: first[]; a warp. */
template <typename Symbol>
static __device__ __forceinline__ void tsr_tree_lengths(const uint16_t *nodes, int depth, const Symbol *order, int used,
                                                        uint8_t *by_symbol, uint32_t *first, unsigned lane)
{
    /* Two places below each node of the depth before are nodes or leaves. */
    uint32_t leaves = 0;
    if (lane > 0 && (int)lane <= depth) leaves = used == 1 ? 1u : 2u * nodes[lane - 1] - nodes[lane];
    if (lane <= TSR_CODE_LIMIT) first[lane] = leaves;
    /* The rarest ones are deepest: this many are as deep or deeper. */
    const int as_deep = used - (int)(tsr_warp_scan(leaves, lane) - leaves);
    for (int begin = 0; begin < used; begin += 2 * TSR_WARP) {
        const int i = begin + (int)lane, j = i + TSR_WARP;
        int length_i = 0, length_j = 0;
        for (int d = 1; d <= depth; d++) {
            const int many = __shfl_sync(TSR_FULL_WARP, as_deep, d);
            length_i += i < many;
            length_j += j < many;
        }
        if (i < used) by_symbol[order[i]] = (uint8_t)length_i;
        if (j < used) by_symbol[order[j]] = (uint8_t)length_j;
    }
    __syncwarp();
}

/* Tables' lengths and codewords, each table a warp's: put(table, symbol, symbol's length, bits, their number), of no
 * bits where the symbol is not used, or the only one; the table's leaves are no longer needed then. counts_of(table),
 * symbols_of(table): what it is made of. Without TREES all lengths are found by package-merge: where a warp has but one
 * table, a thread would take longer. By all threads; barriers are inside, one must be before the memory is used again.
 */
template <bool TREES, int TABLES, int SYMBOLS, int WARPS, typename CountsOf, typename SymbolsOf, typename Put>
static __device__ __forceinline__ void tsr_code_tables(tsr_tables_memory<TABLES, SYMBOLS, WARPS> &m, int tables,
                                                       CountsOf counts_of, SymbolsOf symbols_of, Put put)
{
    static_assert(TABLES <= WARPS * TSR_WARP, "a thread a table");
    const unsigned lane = threadIdx.x % TSR_WARP;
    const int warp = (int)(threadIdx.x / TSR_WARP);
    for (int t = warp; t < tables; t += WARPS) {
        const int count = tsr_sort_counts<SYMBOLS>(counts_of(t), symbols_of(t), m.leaf[t], m.order[t], lane);
        if (lane == 0) m.used[t] = count;
        if (TREES && lane <= TSR_CODE_LIMIT) m.nodes[t][lane] = 0;
    }
    __syncthreads();
    if (TREES && (int)threadIdx.x < tables) {
        const int t = (int)threadIdx.x, count = m.used[t];
        m.depth[t] = count > 1 ? tsr_grow_tree(m.leaf[t], count, m.nodes[t]) : 1;
    }
    __syncthreads();
    for (int t = warp; t < tables; t += WARPS) {
        const int symbols = symbols_of(t), count = m.used[t];
        for (int s = (int)lane; s < symbols; s += TSR_WARP) m.by_symbol[warp][s] = 0;
        __syncwarp();
        if (TREES && m.depth[t] <= TSR_CODE_LIMIT) {
            tsr_tree_lengths(m.nodes[t], m.depth[t], m.order[t], count, m.by_symbol[warp], m.first[warp], lane);
        } else {
            const uint32_t *const counts = counts_of(t);
            for (int i = (int)lane; TREES && i < count; i += TSR_WARP) m.leaf[t][i] = counts[m.order[t][i]];
            tsr_limit_lengths(m.memory[warp], m.leaf[t], count, m.by_leaf[warp], lane);
            for (int i = (int)lane; i < count; i += TSR_WARP) m.by_symbol[warp][m.order[t][i]] = m.by_leaf[warp][i];
            tsr_count_lengths(m.by_symbol[warp], symbols, m.first[warp], lane);
        }
        tsr_each_codeword(
            m.by_symbol[warp], symbols, count, m.first[warp],
            [&](int s, uint32_t bits, int length) { put(t, s, m.by_symbol[warp][s], bits, length); }, lane);
    }
}

#endif
