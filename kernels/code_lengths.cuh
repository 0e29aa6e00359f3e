/* Huffman tables: tsr_huffman_lengths and tsr_huffman_codewords.
 *
 * Where no codeword would be longer than the limit anyway, package-merge gives the lengths of plain Huffman codes that
 * take leaves before packages of the same weight. These a thread finds in place, a table a thread, in a tenth of the
 * time. Else a warp a table:
 *
 * Package-merge (Larmore and Hirschberg 1990), each level's merge by each item's rank: its own place and, by binary
 * search, how many of the other list stand before it. */
#ifndef TSR_KERNELS_CODE_LENGTHS_CUH
#define TSR_KERNELS_CODE_LENGTHS_CUH

#include "device.cuh"

#include "../entropy/huffman.h"

/* Packages weigh at most 12 times what was counted: counts of a table add up to less than 2^32 / 12. */
template <int SYMBOLS> struct tsr_lengths_memory {
    enum { LEVEL_WORDS = (2 * SYMBOLS + TSR_WARP - 1) / TSR_WARP };
    uint32_t leaf[SYMBOLS]; /* counts of used symbols, rarest first */
    uint32_t weight[2][2 * SYMBOLS];
    uint32_t is_leaf[TSR_CODE_LIMIT][LEVEL_WORDS]; /* by place in a level's order */
    uint16_t order[SYMBOLS];                       /* the leaves' symbols */
    uint16_t used[SYMBOLS];
    uint8_t length[SYMBOLS]; /* by leaf */
    int used_count;
};

/* weights[count], rising, to depths of a Huffman tree's leaves, in place (after Moffat and Katajainen 1995); count is 2
 * at least. Returns the greatest. Nodes lie where the leaves were that are taken: their weights, then, once they have a
 * parent, its number, then their depths. */
static __device__ __forceinline__ int tsr_tree_depths(uint32_t *weights, int count)
{
    int leaf = 0, node = 0; /* the first of each without a parent */
    for (int parent = 0; parent < count - 1; parent++) {
        uint32_t weight = 0;
        for (int child = 0; child < 2; child++) {
            const bool is_leaf = leaf < count && (node >= parent || weights[leaf] <= weights[node]);
            if (is_leaf) {
                weight += weights[leaf++];
            } else {
                weight += weights[node];
                weights[node++] = (uint32_t)parent;
            }
        }
        weights[parent] = weight;
    }
    weights[count - 2] = 0; /* the root */
    for (int i = count - 3; i >= 0; i--) weights[i] = weights[weights[i]] + 1;
    /* Places on a level are nodes or leaves: so many are left of them. */
    int places = 1, last = count - 1, inner = count - 2;
    uint32_t depth = 0;
    while (places > 0) {
        int nodes = 0;
        for (; inner >= 0 && weights[inner] == depth; inner--) nodes++;
        for (int i = nodes; i < places; i++) weights[last--] = depth;
        places = 2 * nodes;
        depth++;
    }
    return (int)depth - 1;
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

/* counts[symbols] to lengths[symbols]. */
template <int SYMBOLS>
static __device__ void tsr_find_lengths(tsr_lengths_memory<SYMBOLS> &m, const uint32_t *counts, int symbols,
                                        uint8_t *lengths, unsigned lane)
{
    typedef tsr_lengths_memory<SYMBOLS> memory;
    /* Used symbols by count, then by symbol. */
    int used = 0;
    __syncwarp();
    for (int first = 0; first < symbols; first += TSR_WARP) {
        const int s = first + (int)lane;
        const uint32_t c = s < symbols ? counts[s] : 0u, here = __ballot_sync(TSR_FULL_WARP, c != 0);
        if (c != 0) m.used[used + __popc(here & ((1u << lane) - 1u))] = (uint16_t)s;
        used += __popc(here);
        if (s < symbols) lengths[s] = 0;
    }
    if (lane == 0) m.used_count = used;
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
    /* The items of all levels: leaves merged with pairs of the level before, a leaf in front of its equals. */
    int size = 0;
    for (int level = 0; level < TSR_CODE_LIMIT; level++) {
        uint32_t *before = m.weight[(level + 1) & 1], *now = m.weight[level & 1];
        const int pairs = size / 2;
        for (int w = (int)lane; w < memory::LEVEL_WORDS; w += TSR_WARP) m.is_leaf[level][w] = 0;
        for (int p = (int)lane; p < pairs; p += TSR_WARP) now[p] = before[2 * p] + before[2 * p + 1];
        __syncwarp();
        for (int p = (int)lane; p < pairs; p += TSR_WARP) before[p] = now[p]; /* packages, in a place of their own */
        __syncwarp();
        for (int i = (int)lane; i < used; i += TSR_WARP) {
            const int at = i + tsr_entries_below(before, pairs, m.leaf[i], false);
            now[at] = m.leaf[i];
            atomicOr(&m.is_leaf[level][at / TSR_WARP], 1u << at % TSR_WARP);
        }
        for (int p = (int)lane; p < pairs; p += TSR_WARP)
            now[p + tsr_entries_below(m.leaf, used, before[p], true)] = before[p];
        size = used + pairs;
        __syncwarp();
    }
    /* Lengths of the leaves from the levels. */
    for (int i = (int)lane; i < used; i += TSR_WARP) m.length[i] = used == 1 ? 1 : 0;
    int take = 2 * (used - 1);
    for (int level = TSR_CODE_LIMIT - 1; used > 1 && level >= 0 && take > 0; level--) {
        int leaves = 0;
        for (int first = 0; first < take; first += TSR_WARP) {
            const uint32_t word = m.is_leaf[level][first / TSR_WARP];
            leaves += __popc(take - first >= TSR_WARP ? word : word & ((1u << (take - first)) - 1u));
        }
        for (int i = (int)lane; i < leaves; i += TSR_WARP) m.length[i]++;
        take = 2 * (take - leaves);
    }
    __syncwarp();
    for (int i = (int)lane; i < used; i += TSR_WARP) lengths[m.order[i]] = m.length[i];
    __syncwarp();
}

/* Canonical codewords of lengths[symbols], of two symbols at least: put(symbol, bits, length) for every symbol that is
 * used. Lane n keeps the next codeword of length n. */
template <typename Put>
static __device__ __forceinline__ void tsr_each_codeword(const uint8_t *lengths, int symbols, Put put, unsigned lane)
{
    uint32_t count = 0;
    for (int first = 0; first < symbols; first += TSR_WARP) {
        const int s = first + (int)lane, length = s < symbols ? lengths[s] : 0;
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
    for (int first = 0; first < symbols; first += TSR_WARP) {
        const int s = first + (int)lane, length = s < symbols ? lengths[s] : 0;
        uint32_t bits = __shfl_sync(TSR_FULL_WARP, next, length);
        for (unsigned n = 1; n <= TSR_CODE_LIMIT; n++) {
            const uint32_t here = __ballot_sync(TSR_FULL_WARP, length == (int)n);
            if (length == (int)n) bits += (uint32_t)__popc(here & ((1u << lane) - 1u));
            if (lane == n) next += (uint32_t)__popc(here);
        }
        if (length > 0) put(s, bits, length);
    }
}

/* The same as an array of all symbols. */
template <int SYMBOLS>
static __device__ void tsr_find_codewords(const tsr_lengths_memory<SYMBOLS> &m, const uint8_t *lengths, int symbols,
                                          tsr_codeword *words, unsigned lane)
{
    for (int s = (int)lane; s < symbols; s += TSR_WARP) words[s].bits = words[s].length = 0;
    __syncwarp();
    if (m.used_count < 2) return;
    tsr_each_codeword(
        lengths, symbols,
        [&](int symbol, uint32_t bits, int length) {
            words[symbol].bits = (uint16_t)bits;
            words[symbol].length = (uint8_t)length;
        },
        lane);
}

#endif
