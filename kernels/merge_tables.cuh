/* tsr_merge_contexts by a block of threads: cells' counts to tables, the same as the definition makes.
 *
 * Cells that counted something are slots, in order. A slot's counts lie in shared memory as quads up to its last used
 * symbol; what finds no room there stays where it was counted. Costs are exact integer sums: a few lanes share the
 * quads of a pair, so that a warp sums up several pairs at once.
 *
 * A merge makes 24 gains new, three kinds of eight, which are worked out as if it were done already: the sums by all
 * warps, what is known without them, and the best of all gains that stay, by the last. Then the first warp takes them
 * in, and finds the best partners of the at most 16 slots that have new gains, and so the next merge, while others add
 * up the counts and move up the list of the living: two barriers a merge. What the definition decides by order, the
 * first of equal gains, is decided by the least slot. */
#ifndef TSR_KERNELS_MERGE_TABLES_CUH
#define TSR_KERNELS_MERGE_TABLES_CUH

#include "device.cuh"

#include "../entropy/contexts.h"

enum {
    TSR_QUAD_COUNTS = 4,
    TSR_MERGE_COSTS = 512,           /* counts whose logarithms are kept */
    TSR_NARROW_GAINS_TOTAL = 3 << 17 /* counts that add up to no more have gains of 32 bits */
};
/* A logarithm is at most 1 off, so a cost is at most twice its total off; in truth two tables cost at most one bit a
 * count less than one. The descriptions change by less than that of a whole table. */
static_assert((int64_t)TSR_NARROW_GAINS_TOTAL * (TSR_COST_BIT + 4) + 2 * (8 + (2 + 6) * 512) * TSR_COST_BIT < INT32_MAX,
              "narrow gains fit, and are below that of no pair");
static_assert(10 * TSR_COST_BIT <= UINT16_MAX, "small counts' logarithms");

enum { TSR_FRESH_GAINS = 3 * TSR_MERGE_WINDOW };

/* The first part of the memory, of fixed size. */
template <typename Gain> struct alignas(16) tsr_merge_head {
    Gain fresh[3][TSR_MERGE_WINDOW]; /* gains that a merge makes new */
    Gain rest[TSR_FRESH_GAINS];      /* of such a gain: what does not hang on the next two */
    uint64_t all[TSR_FRESH_GAINS], inside[TSR_FRESH_GAINS];
    Gain least, least_of_others; /* of the next merge; of slots without new gains */
    uint32_t slot, other_slot;
    uint32_t sums[TSR_WARP];
    uint16_t logarithm[TSR_MERGE_COSTS];
};

/* Symbols that are used. */
enum { TSR_MASK_SYMBOLS = 64 };
template <int WORDS> struct tsr_symbol_mask {
    uint64_t word[WORDS];
};

/* Of so many symbols. */
template <int SYMBOLS> struct tsr_mask_words {
    enum { WORDS = (SYMBOLS + TSR_MASK_SYMBOLS - 1) / TSR_MASK_SYMBOLS };
};

template <int WORDS>
static __device__ __forceinline__ void tsr_add_mask(tsr_symbol_mask<WORDS> &to, const tsr_symbol_mask<WORDS> &mask)
{
#pragma unroll
    for (int w = 0; w < WORDS; w++) to.word[w] |= mask.word[w];
}

/* Quads up to the last symbol. */
template <int WORDS> static __device__ __forceinline__ uint32_t tsr_quads_of_mask(const tsr_symbol_mask<WORDS> &mask)
{
    uint32_t quads = 0;
#pragma unroll
    for (int w = 0; w < WORDS; w++)
        if (mask.word[w])
            quads = (uint32_t)((w + 1) * TSR_MASK_SYMBOLS - 1 - __clzll((long long)mask.word[w])) / TSR_QUAD_COUNTS + 1;
    return quads;
}

/* What the costs of so many small counts add up in. */
template <int WORDS,
          bool IS_NARROW = (uint64_t)WORDS *TSR_MASK_SYMBOLS *TSR_MERGE_COSTS * 10 * TSR_COST_BIT <= UINT32_MAX>
struct tsr_small_sum {
    typedef uint32_t type;
};
template <int WORDS> struct tsr_small_sum<WORDS, false> {
    typedef uint64_t type;
};

/* What is kept of a slot, but for its counts. */
template <typename Gain, int WORDS> struct tsr_merge_slot_bytes {
    enum { ALL = (TSR_MERGE_WINDOW + 2) * sizeof(Gain) + WORDS * sizeof(uint64_t) + 2 * sizeof(uint32_t) + 4 };
};

/* Memory that so many cells of so many symbols need at least, 128 bytes of it for rounding; with quads more, fewer of
 * their counts stay outside. */
template <typename Gain, int SYMBOLS> static constexpr size_t tsr_merge_bytes(size_t cells, size_t quads)
{
    constexpr int WORDS = tsr_mask_words<SYMBOLS>::WORDS;
    const size_t of_cells = (cells * (WORDS * sizeof(uint64_t) + sizeof(uint32_t)) + 15) / 16 * 16;
    return sizeof(tsr_merge_head<Gain>) + cells * (tsr_merge_slot_bytes<Gain, WORDS>::ALL + 1) + 128 +
           (of_cells > quads * 16 ? of_cells : quads * 16);
}

/* Where everything lies, for so many slots. */
template <typename Gain, int WORDS> struct tsr_merge_memory {
    Gain *gain;                   /* of a slot and the next ones that are alive: rows of eight */
    tsr_symbol_mask<WORDS> *mask; /* symbols that a slot uses */
    uint64_t *alive;              /* bytes: slots that are tables now, in order */
    uint64_t *place;              /* bytes: by slot, where it is among them, or would be */
    Gain *best;                   /* by slot: the least gain */
    Gain *cost;                   /* narrow: its low bits */
    uint32_t *total;
    uint32_t *row;     /* TSR_MERGE_OUTSIDE | first quad << 8 | quads */
    uint8_t *distance; /* to the best partner, less 1 */
    uint8_t *parent;   /* into which a slot has merged, or itself */
    const uint16_t *logarithm;
    uint4 *quads;   /* of counts */
    uint4 *outside; /* counts as they came */
};
#define TSR_MERGE_OUTSIDE 0x80000000u

static __device__ __forceinline__ uint8_t &tsr_byte_of(uint64_t *bytes, int at)
{
    return reinterpret_cast<uint8_t *>(bytes)[at];
}

template <int THREADS> static __device__ __forceinline__ void tsr_sync_threads()
{
    if constexpr (THREADS == TSR_WARP)
        __syncwarp();
    else
        __syncthreads();
}

template <typename Gain> static __device__ __forceinline__ Gain tsr_no_gain()
{
    return (Gain)(((uint64_t)1 << (8 * sizeof(Gain) - 1)) - 1);
}

/* Quad q of a slot's counts. */
template <bool OUTSIDE, typename Gain, int WORDS>
static __device__ __forceinline__ uint4 tsr_quad_of(const tsr_merge_memory<Gain, WORDS> &m, uint32_t row, uint32_t q)
{
    if (q >= (row & 255u)) return make_uint4(0, 0, 0, 0);
    const uint32_t at = ((row & ~TSR_MERGE_OUTSIDE) >> 8) + q;
    if (OUTSIDE && (row & TSR_MERGE_OUTSIDE)) return m.outside[at];
    return m.quads[at];
}

/* The sum of each count times its logarithm, of up to three rows added up. LANES lanes share a sum, part is the lane's
 * number among them; all get it. All lanes of the warp. */
template <int LANES, bool OUTSIDE, typename Gain, int WORDS>
static __device__ __forceinline__ uint64_t tsr_sum_table(const tsr_merge_memory<Gain, WORDS> &m, uint32_t a, uint32_t b,
                                                         uint32_t c, uint32_t part)
{
    const uint32_t quads = max(max(a & 255u, b & 255u), c & 255u);
    typename tsr_small_sum<WORDS>::type small = 0;
    uint64_t large = 0; /* below 2^44 together */
    for (uint32_t q = part; q < quads; q += LANES) {
        const uint4 x = tsr_quad_of<OUTSIDE>(m, a, q), y = tsr_quad_of<OUTSIDE>(m, b, q),
                    z = tsr_quad_of<OUTSIDE>(m, c, q);
        const uint32_t count[TSR_QUAD_COUNTS] = {x.x + y.x + z.x, x.y + y.y + z.y, x.z + y.z + z.z, x.w + y.w + z.w};
        if ((count[0] | count[1] | count[2] | count[3]) < TSR_MERGE_COSTS) {
#pragma unroll
            for (int i = 0; i < TSR_QUAD_COUNTS; i++) small += count[i] * m.logarithm[count[i]];
        } else {
#pragma unroll
            for (int i = 0; i < TSR_QUAD_COUNTS; i++) large += (uint64_t)count[i] * tsr_log2_cost(max(count[i], 1u));
        }
    }
#pragma unroll
    for (int lanes = 1; lanes < LANES; lanes *= 2) small += __shfl_xor_sync(TSR_FULL_WARP, small, lanes);
    if (__any_sync(TSR_FULL_WARP, large != 0))
#pragma unroll
        for (int lanes = 1; lanes < LANES; lanes *= 2) large += __shfl_xor_sync(TSR_FULL_WARP, large, lanes);
    return small + large;
}

/* tsr_table_cost is all less inside, or 0, and the description, which its used symbols say. */
static __device__ __forceinline__ uint64_t tsr_whole_of_table(uint32_t total)
{
    return (uint64_t)total * tsr_log2_cost(total);
}

template <int WORDS>
static __device__ __forceinline__ uint32_t tsr_description_of_table(const tsr_symbol_mask<WORDS> &used)
{
    int symbols = 0, gaps = 0;
    uint64_t before = 1; /* no gap is before the first symbol */
#pragma unroll
    for (int w = 0; w < WORDS; w++) {
        symbols += __popcll((long long)used.word[w]);
        gaps += __popcll((long long)(used.word[w] & ~(used.word[w] << 1 | before)));
        before = used.word[w] >> (TSR_MASK_SYMBOLS - 1);
    }
    return (uint32_t)(8 + 2 * symbols + 6 * gaps) * TSR_COST_BIT;
}

static __device__ __forceinline__ uint64_t tsr_symbols_of_table(uint64_t all, uint64_t inside)
{
    return all > inside ? all - inside : 0;
}

/* Gains of all slots with those behind them, or, with OWN, the slots' own costs; a thread each. */
template <int THREADS, bool OWN, bool OUTSIDE, typename Gain, int WORDS>
static __device__ __forceinline__ void tsr_first_gains(const tsr_merge_memory<Gain, WORDS> &m, int slots)
{
    constexpr int EACH = OWN ? 1 : (int)TSR_MERGE_WINDOW;
    const int count = slots * EACH;
    for (int first = 0; first < count; first += THREADS) {
        const int number = first + (int)threadIdx.x, one = number / EACH, two = one + 1 + number % EACH;
        if (first + (int)threadIdx.x / TSR_WARP * TSR_WARP >= count) break; /* the whole warp */
        const bool is_there = number < count && (OWN || two < slots);
        uint32_t row = 0, row_two = 0, total = 1;
        tsr_symbol_mask<WORDS> mask = {};
        if (is_there) {
            row = m.row[one];
            total = m.total[one];
            mask = m.mask[one];
        }
        if (is_there && !OWN) {
            row_two = m.row[two];
            total += m.total[two];
            tsr_add_mask(mask, m.mask[two]);
        }
        const uint64_t inside = tsr_sum_table<1, OUTSIDE>(m, row, row_two, 0, 0),
                       cost = tsr_symbols_of_table(tsr_whole_of_table(total), inside) + tsr_description_of_table(mask);
        if (number >= count) break;
        if (OWN)
            m.cost[one] = (Gain)cost;
        else
            m.gain[number] =
                is_there ? (Gain)(cost - (uint64_t)m.cost[one] - (uint64_t)m.cost[two]) : tsr_no_gain<Gain>();
    }
}

/* A pair that merges: its places and slots, and what they become. */
template <typename Gain> struct tsr_merge {
    int place, other, a, b;
    uint32_t row_a, row_b;
};

/* The gains that a merge makes new, by number: eight of places before it with it, eight of it with places behind, and
 * eight of pairs that then reach over its second place. Places are those after the merge. */
struct tsr_fresh_pair {
    int kind, first, second; /* with kind below 2, first is the other one */
    bool is_there;
};

template <typename Gain>
static __device__ __forceinline__ tsr_fresh_pair tsr_fresh_pair_of(const tsr_merge<Gain> &merge, int number, int living)
{
    const int k = number % TSR_MERGE_WINDOW;
    tsr_fresh_pair pair;
    pair.kind = number / TSR_MERGE_WINDOW;
    pair.first = (pair.kind == 2 ? merge.other : merge.place) + (pair.kind == 1 ? k + 1 : -1 - k);
    pair.second = pair.first + TSR_MERGE_WINDOW;
    pair.is_there =
        (unsigned)pair.first < (unsigned)living && (pair.kind < 2 || pair.second < living) && number < TSR_FRESH_GAINS;
    return pair;
}

/* Their sums. */
template <int THREADS, int LANES, bool OUTSIDE, typename Gain, int WORDS>
static __device__ __forceinline__ void tsr_fresh_sums(const tsr_merge_memory<Gain, WORDS> &m,
                                                      const tsr_merge<Gain> &merge, int living, uint64_t *inside)
{
    constexpr int AT_ONCE = THREADS / LANES, OF_WARP = TSR_WARP / LANES;
    const int thread = (int)threadIdx.x;
#pragma unroll
    for (int begin = 0; begin < TSR_FRESH_GAINS; begin += AT_ONCE) {
        if (begin + thread / TSR_WARP * OF_WARP >= TSR_FRESH_GAINS) break; /* the whole warp */
        const int number = begin + thread / LANES;
        const tsr_fresh_pair pair = tsr_fresh_pair_of(merge, number, living);
        uint32_t row = 0, row_b = 0, row_c = 0;
        if (pair.is_there) {
            row = m.row[tsr_byte_of(m.alive, pair.first + (pair.first >= merge.other))];
            row_b = pair.kind < 2 ? merge.row_a : m.row[tsr_byte_of(m.alive, pair.second + 1)];
            row_c = pair.kind < 2 ? merge.row_b : 0u;
        }
        const uint64_t sum = tsr_sum_table<LANES, OUTSIDE>(m, row, row_b, row_c, thread % LANES);
        if (thread % LANES == 0 && number < TSR_FRESH_GAINS) inside[number] = sum;
    }
}

/* What is known of them without the sums, by a warp. */
template <typename Gain, int WORDS>
static __device__ __forceinline__ void tsr_fresh_rests(const tsr_merge_memory<Gain, WORDS> &m,
                                                       const tsr_merge<Gain> &merge, Gain least, int living,
                                                       tsr_merge_head<Gain> &head, unsigned lane)
{
    const tsr_fresh_pair pair = tsr_fresh_pair_of(merge, (int)lane, living);
    if (lane >= TSR_FRESH_GAINS) return;
    uint64_t all = 0, rest = (uint64_t)tsr_no_gain<Gain>();
    if (pair.is_there) {
        const int one = tsr_byte_of(m.alive, pair.first + (pair.first >= merge.other)),
                  two = pair.kind < 2 ? merge.a : tsr_byte_of(m.alive, pair.second + 1);
        uint32_t total = m.total[one] + m.total[two];
        uint64_t less = (uint64_t)m.cost[one] + (uint64_t)m.cost[two];
        tsr_symbol_mask<WORDS> mask = m.mask[one];
        tsr_add_mask(mask, m.mask[two]);
        if (pair.kind < 2) {
            total += m.total[merge.b];
            tsr_add_mask(mask, m.mask[merge.b]);
            less += (uint64_t)m.cost[merge.b] + (uint64_t)least;
        }
        all = tsr_whole_of_table(total);
        rest = tsr_description_of_table(mask) - less;
    }
    head.all[lane] = all;
    head.rest[lane] = (Gain)rest;
}

/* Some gains, 16 bytes at once. */
template <int COUNT, typename Gain> static __device__ __forceinline__ void tsr_load_gains(Gain *row, const Gain *from)
{
    uint4 raw[COUNT * sizeof(Gain) / sizeof(uint4)];
#pragma unroll
    for (unsigned i = 0; i < sizeof raw / sizeof *raw; i++) raw[i] = reinterpret_cast<const uint4 *>(from)[i];
    memcpy(row, raw, sizeof raw);
}

template <typename Gain> static __device__ __forceinline__ void tsr_store_gains(Gain *to, const Gain *row)
{
    uint4 raw[TSR_MERGE_WINDOW * sizeof(Gain) / sizeof(uint4)];
    memcpy(raw, row, sizeof raw);
#pragma unroll
    for (unsigned i = 0; i < sizeof raw / sizeof *raw; i++) reinterpret_cast<uint4 *>(to)[i] = raw[i];
}

/* A slot's best partner: its gain, the first of equals, and the distance less 1. */
template <typename Gain>
static __device__ __forceinline__ void tsr_find_best(const Gain *row, Gain *best, int *distance)
{
    *best = row[0];
    *distance = 0;
#pragma unroll
    for (int k = 1; k < TSR_MERGE_WINDOW; k++) {
        if (row[k] < *best) *distance = k;
        *best = min(*best, row[k]);
    }
}

/* The gains of the slot at a place before the merge's second one, where it makes any new. */
template <typename Gain>
static __device__ __forceinline__ void tsr_renew_gains(Gain *row, const Gain (*fresh)[TSR_MERGE_WINDOW], int place,
                                                       const tsr_merge<Gain> &merge)
{
    const int gone = merge.other - 1 - place, with = merge.place - 1 - place;
    if (gone < TSR_MERGE_WINDOW) { /* windows that reached its second place now reach one further */
#pragma unroll
        for (int k = 0; k + 1 < TSR_MERGE_WINDOW; k++)
            if (k >= gone) row[k] = row[k + 1];
        row[TSR_MERGE_WINDOW - 1] = fresh[2][gone];
    }
    if (with >= 0) {
        const Gain gain = fresh[0][with];
#pragma unroll
        for (int k = 0; k < TSR_MERGE_WINDOW; k++)
            if (k == with) row[k] = gain;
    }
    if (with == -1) tsr_load_gains<TSR_MERGE_WINDOW>(row, fresh[1]);
}

/* The least of the lanes' gains, and of equals the first slot; all lanes get it. */
template <typename Gain> static __device__ __forceinline__ void tsr_least_of_warp(Gain *gain, uint32_t *slot)
{
    const Gain own = *gain;
    *gain = tsr_warp_min(own);
    *slot = tsr_warp_min(own == *gain ? *slot : UINT32_MAX);
}

/* The best gain of the slots but for some, first to last, by a warp, and its slot. */
template <typename Gain, int WORDS>
static __device__ __forceinline__ void tsr_least_of_others(const tsr_merge_memory<Gain, WORDS> &m, int slots, int first,
                                                           int last, Gain *least, uint32_t *least_slot, unsigned lane)
{
    constexpr int EACH = 4;
    *least = tsr_no_gain<Gain>();
    *least_slot = UINT32_MAX;
    for (int s = EACH * (int)lane; s < slots; s += EACH * TSR_WARP) {
        Gain best[EACH];
        tsr_load_gains<EACH>(best, m.best + s);
#pragma unroll
        for (int i = 0; i < EACH; i++) {
            if (best[i] >= *least || (s + i >= first && s + i <= last)) continue;
            *least = best[i];
            *least_slot = (uint32_t)(s + i);
        }
    }
    tsr_least_of_warp(least, least_slot);
}

/* The list of the living without a place, and the places behind it, by a warp: eight bytes a lane. */
template <typename Gain, int WORDS>
static __device__ __forceinline__ void tsr_move_up(const tsr_merge_memory<Gain, WORDS> &m, const tsr_merge<Gain> &merge,
                                                   int slots, unsigned lane)
{
    const int words = (slots + 7) / 8;
    const bool is_there = (int)lane < words;
    uint64_t here = 0, behind = 0, place = 0;
    if (is_there) {
        here = m.alive[lane];
        place = m.place[lane];
        if ((int)lane + 1 < words) behind = m.alive[lane + 1];
    }
    __syncwarp();
    if (!is_there) return;
    /* bytes from a place on: all, some or none */
    const auto bytes_from = [&](int at, uint64_t bytes) {
        const int first = at - 8 * (int)lane;
        return first >= 8 ? 0 : first <= 0 ? bytes : bytes << 8 * first;
    };
    const uint64_t moved = bytes_from(merge.other, UINT64_MAX);
    m.alive[lane] = (here & ~moved) | ((here >> 8 | behind << 56) & moved);
    m.place[lane] = place - bytes_from(merge.b + 1, 0x0101010101010101u); /* no byte below 0: they count who lives */
}

/* Merges slots; returns how many live. A barrier is needed before, and another after. */
template <int THREADS, int LANES, bool OUTSIDE, typename Gain, int WORDS>
static __device__ __forceinline__ int tsr_merge_slots(const tsr_merge_memory<Gain, WORDS> &m,
                                                      tsr_merge_head<Gain> &head, int slots)
{
    constexpr int WARPS = THREADS / TSR_WARP, WINDOW = TSR_MERGE_WINDOW, ADDS = WARPS > 1 ? 1 : 0,
                  MOVES = WARPS > 2 ? 2 : 0;
    const unsigned lane = threadIdx.x % TSR_WARP;
    const int thread = (int)threadIdx.x, warp = thread / TSR_WARP;
    tsr_first_gains<THREADS, true, OUTSIDE>(m, slots);
    tsr_sync_threads<THREADS>();
    tsr_first_gains<THREADS, false, OUTSIDE>(m, slots);
    tsr_sync_threads<THREADS>();
    for (int slot = thread; slot < (slots + 3) / 4 * 4; slot += THREADS) {
        Gain row[WINDOW], best;
        int distance;
        if (slot >= slots) {
            m.best[slot] = tsr_no_gain<Gain>();
            continue;
        }
        tsr_load_gains<WINDOW>(row, m.gain + slot * WINDOW);
        tsr_find_best(row, &best, &distance);
        m.best[slot] = best;
        m.distance[slot] = (uint8_t)distance;
    }
    tsr_sync_threads<THREADS>();
    Gain least = 0;
    int living = slots;
    if (warp == 0) {
        uint32_t slot;
        tsr_least_of_others(m, slots, slots, slots, &least, &slot, lane);
        if (lane == 0) {
            head.least = least;
            head.slot = slot;
        }
    }
    for (;;) {
        tsr_sync_threads<THREADS>();
        least = head.least;
        if (living < 2 || (least >= 0 && living <= TSR_TABLE_LIMIT)) break;
        living--;
        tsr_merge<Gain> merge;
        merge.a = (int)head.slot;
        merge.place = tsr_byte_of(m.place, merge.a);
        merge.other = merge.place + 1 + m.distance[merge.a];
        merge.b = tsr_byte_of(m.alive, merge.other);
        merge.row_a = m.row[merge.a];
        merge.row_b = m.row[merge.b];
        /* Slots with new gains are those before the second one, from the eighth before the first one on. */
        const int place = merge.other - 1 - (int)lane;
        const bool is_new = place >= 0 && place >= merge.place - WINDOW;
        const int slot = warp == 0 && is_new ? tsr_byte_of(m.alive, place) : 0;
        tsr_fresh_sums<THREADS, LANES, OUTSIDE>(m, merge, living, head.inside);
        if (warp == WARPS - 1) { /* which has no sums, or few */
            tsr_fresh_rests(m, merge, least, living, head, lane);
            Gain of_others;
            uint32_t other_slot;
            tsr_least_of_others(m, slots, tsr_byte_of(m.alive, tsr_max(0, merge.place - WINDOW)), merge.b, &of_others,
                                &other_slot, lane);
            if (lane == 0) {
                head.least_of_others = of_others;
                head.other_slot = other_slot;
            }
        }
        tsr_sync_threads<THREADS>();
        if (warp == ADDS) { /* counts add up where the longer row is */
            const bool longer = (merge.row_b & 255u) > (merge.row_a & 255u);
            const uint32_t to = longer ? merge.row_b : merge.row_a, from = longer ? merge.row_a : merge.row_b;
            for (uint32_t q = lane; q < (from & 255u); q += TSR_WARP) {
                const uint4 x = tsr_quad_of<OUTSIDE>(m, to, q), y = tsr_quad_of<OUTSIDE>(m, from, q);
                const uint32_t quad = ((to & ~TSR_MERGE_OUTSIDE) >> 8) + q;
                (OUTSIDE && (to & TSR_MERGE_OUTSIDE) ? m.outside : m.quads)[quad] =
                    make_uint4(x.x + y.x, x.y + y.y, x.z + y.z, x.w + y.w);
                if (WORDS * TSR_MASK_SYMBOLS <= TSR_WARP * TSR_QUAD_COUNTS) break;
            }
            if (lane == 0) {
                m.row[merge.a] = to;
                m.total[merge.a] += m.total[merge.b];
                tsr_add_mask(m.mask[merge.a], m.mask[merge.b]);
                m.cost[merge.a] = (Gain)((uint64_t)m.cost[merge.a] + (uint64_t)m.cost[merge.b] + (uint64_t)least);
                m.parent[merge.b] = (uint8_t)merge.a;
            }
        }
        if (warp == MOVES) tsr_move_up(m, merge, slots, lane);
        if (warp == 0) {
            if (lane < TSR_FRESH_GAINS) {
                const Gain gain =
                    (Gain)(tsr_symbols_of_table(head.all[lane], head.inside[lane]) + (uint64_t)head.rest[lane]);
                head.fresh[lane / WINDOW][lane % WINDOW] = gain;
            }
            __syncwarp();
            uint32_t next = lane == TSR_WARP - 1 ? head.other_slot : UINT32_MAX;
            least = lane == TSR_WARP - 1 ? head.least_of_others : tsr_no_gain<Gain>();
            if (is_new) {
                Gain row[WINDOW];
                int distance;
                tsr_load_gains<WINDOW>(row, m.gain + slot * WINDOW);
                tsr_renew_gains(row, head.fresh, place, merge);
                tsr_store_gains(m.gain + slot * WINDOW, row);
                tsr_find_best(row, &least, &distance);
                next = (uint32_t)slot;
                m.best[slot] = least;
                m.distance[slot] = (uint8_t)distance;
            }
            tsr_least_of_warp(&least, &next);
            if (lane == 0) {
                m.best[merge.b] = tsr_no_gain<Gain>();
                head.least = least;
                head.slot = next;
            }
        }
    }
    return living;
}

/* counts[cells][SYMBOLS], 16-byte aligned, are used up as the definition has it, but for those of the tables, to which
 * more(symbol) is added. table_of[cells]; returns the number of tables. memory: shared, 16-byte aligned,
 * tsr_merge_bytes() at least. LANES share a sum. All threads of the block; a barrier is before and after. */
template <int CELLS, int SYMBOLS, int THREADS, int LANES, typename Gain, typename More>
static __device__ int tsr_merge_cells(unsigned char *memory, size_t bytes, uint32_t *counts, int cells,
                                      uint8_t *table_of, More more)
{
    constexpr int WARPS = THREADS / TSR_WARP, EACH = (CELLS + THREADS - 1) / THREADS,
                  ROW_QUADS = SYMBOLS / TSR_QUAD_COUNTS, WORDS = tsr_mask_words<SYMBOLS>::WORDS;
    typedef tsr_symbol_mask<WORDS> symbol_mask;
    static_assert(CELLS <= 255 && ROW_QUADS <= 255 && SYMBOLS % TSR_QUAD_COUNTS == 0, "bytes and quads");
    const unsigned lane = threadIdx.x % TSR_WARP;
    const int thread = (int)threadIdx.x, warp = thread / TSR_WARP;
    tsr_merge_head<Gain> &head = *reinterpret_cast<tsr_merge_head<Gain> *>(memory);
    uint8_t *const slot_of = memory + sizeof head; /* by cell; 255: it counted nothing */
    const size_t before_slots = sizeof head + ((size_t)cells + 15) / 16 * 16;
    /* Cells, for the time being, lie at the end. */
    constexpr size_t OF_CELL = sizeof(symbol_mask) + sizeof(uint32_t);
    symbol_mask *const cell_mask =
        reinterpret_cast<symbol_mask *>(memory + (bytes / 16 * 16 - ((size_t)cells * OF_CELL + 15) / 16 * 16));
    uint32_t *const cell_total = reinterpret_cast<uint32_t *>(cell_mask + cells);
    tsr_sync_threads<THREADS>();
    for (int c = thread; c < TSR_MERGE_COSTS; c += THREADS)
        head.logarithm[c] = (uint16_t)(c == 0 ? 0 : tsr_log2_cost((uint32_t)c));
#pragma unroll 4
    for (int c = warp; c < cells; c += WARPS) {
        const uint32_t *const row = counts + c * SYMBOLS;
        symbol_mask mask;
        uint32_t total = 0;
#pragma unroll
        for (int w = 0; w < WORDS; w++) {
            const int low_at = w * TSR_MASK_SYMBOLS + (int)lane, high_at = low_at + TSR_WARP;
            const bool has_high = w * TSR_MASK_SYMBOLS + TSR_WARP < SYMBOLS;
            const uint32_t low = low_at < SYMBOLS ? row[low_at] : 0u,
                           high = has_high && high_at < SYMBOLS ? row[high_at] : 0u;
            mask.word[w] = __ballot_sync(TSR_FULL_WARP, low != 0) |
                           (uint64_t)(has_high ? __ballot_sync(TSR_FULL_WARP, high != 0) : 0u) << TSR_WARP;
            total += low + high;
        }
        total = tsr_warp_sum(total);
        if (lane != 0) continue;
        cell_mask[c] = mask;
        cell_total[c] = total;
    }
    tsr_sync_threads<THREADS>();
    /* A thread takes a few cells that follow each other. Slots, and above them quads, before its own; and of all. */
    uint32_t mine = 0, all;
    for (int e = 0; e < EACH; e++) {
        const int c = thread * EACH + e;
        const uint32_t quads = c < cells ? tsr_quads_of_mask(cell_mask[c]) : 0u;
        if (quads > 0) mine += 1u + (quads << 16);
    }
    uint32_t before = tsr_block_scan<THREADS>(mine, head.sums, &all);
    const int slots = (int)(all & 0xffffu);
    tsr_merge_memory<Gain, WORDS> m;
    const int slot_words = (slots + 7) / 8;
    m.gain = reinterpret_cast<Gain *>(memory + before_slots);
    m.best = m.gain + slots * TSR_MERGE_WINDOW;
    m.mask = reinterpret_cast<symbol_mask *>(m.best + (slots + 3) / 4 * 4);
    m.alive = reinterpret_cast<uint64_t *>(m.mask + slots);
    m.place = m.alive + slot_words;
    m.cost = reinterpret_cast<Gain *>(m.place + slot_words);
    m.total = reinterpret_cast<uint32_t *>(m.cost + slots);
    m.row = m.total + slots;
    m.distance = reinterpret_cast<uint8_t *>(m.row + slots);
    m.parent = m.distance + slots;
    m.logarithm = head.logarithm;
    const size_t before_quads = before_slots + ((size_t)(m.parent + slots - memory) - before_slots + 15) / 16 * 16;
    m.quads = reinterpret_cast<uint4 *>(memory + before_quads);
    m.outside = reinterpret_cast<uint4 *>(counts);
    const uint32_t room = (uint32_t)((bytes - before_quads) / sizeof(uint4));
    for (int e = 0; e < EACH; e++) {
        const int c = thread * EACH + e;
        if (c >= cells) break;
        const symbol_mask mask = cell_mask[c];
        slot_of[c] = 255;
        const uint32_t slot = before & 0xffffu, first = before >> 16, quads = tsr_quads_of_mask(mask);
        if (quads == 0) continue;
        before += 1u + (quads << 16);
        slot_of[c] = (uint8_t)slot;
        m.mask[slot] = mask;
        m.total[slot] = cell_total[c];
        m.row[slot] = quads | (first + quads <= room ? first << 8 : (uint32_t)(c * ROW_QUADS) << 8 | TSR_MERGE_OUTSIDE);
        tsr_byte_of(m.alive, (int)slot) = tsr_byte_of(m.place, (int)slot) = m.parent[slot] = (uint8_t)slot;
    }
    tsr_sync_threads<THREADS>();
    for (int i = thread; i < cells * ROW_QUADS; i += THREADS) {
        const int c = i / ROW_QUADS, q = i % ROW_QUADS;
        if (slot_of[c] == 255) continue;
        const uint32_t row = m.row[slot_of[c]];
        if (!(row & TSR_MERGE_OUTSIDE) && q < (int)(row & 255u)) m.quads[(row >> 8) + (uint32_t)q] = m.outside[i];
    }
    tsr_sync_threads<THREADS>();
    const bool outside = all >> 16 > room;
    const int living = outside ? tsr_merge_slots<THREADS, LANES, true>(m, head, slots)
                               : tsr_merge_slots<THREADS, LANES, false>(m, head, slots);
    tsr_sync_threads<THREADS>();
    /* Tables are numbered by their first cells, and their counts move to the front: one after the other where they may
     * come from further behind. Cells without samples get the table before them. */
    const int at_once = outside ? (int)ROW_QUADS : living * ROW_QUADS;
    for (int first = 0; first < living * ROW_QUADS; first += at_once) {
        for (int i = first + thread; i < first + at_once; i += THREADS) {
            const uint32_t row = m.row[tsr_byte_of(m.alive, i / ROW_QUADS)];
            const int q = i % ROW_QUADS, s = q * TSR_QUAD_COUNTS;
            uint4 quad = tsr_quad_of<true>(m, row, (uint32_t)q);
            quad.x += more(s);
            quad.y += more(s + 1);
            quad.z += more(s + 2);
            quad.w += more(s + 3);
            reinterpret_cast<uint4 *>(counts)[i] = quad;
        }
        if (outside) tsr_sync_threads<THREADS>();
    }
    for (int c = thread; c < cells; c += THREADS) {
        int cell = c, slot = 0;
        while (cell >= 0 && slot_of[cell] == 255) cell--;
        if (cell >= 0) slot = slot_of[cell];
        while (cell >= 0 && m.parent[slot] != slot) slot = m.parent[slot];
        table_of[c] = cell >= 0 ? tsr_byte_of(m.place, slot) : (uint8_t)0;
    }
    tsr_sync_threads<THREADS>();
    return living;
}

/* ---- Alphabets with gaps --------------------------------------------------------------------------------------------
 */

/* Large alphabets of which little is used are merged without the symbols that no cell uses, but for one in each gap,
 * before the first used symbol too: descriptions cost the same. */
template <int SYMBOLS> struct tsr_kept_symbols {
    enum { WORDS = (SYMBOLS + TSR_WARP - 1) / TSR_WARP, EACH = WORDS /* symbols of a lane */ };
    uint32_t used[WORDS], kept[WORDS];

    /* A symbol's place among those kept. */
    __device__ __forceinline__ int place(int word, unsigned lane) const
    {
        int before = __popc(kept[word] & ((1u << lane) - 1u));
        for (int w = 0; w < word; w++) before += __popc(kept[w]);
        return before;
    }
    __device__ __forceinline__ bool is_kept(int word, unsigned lane) const
    {
        return kept[word] >> lane & 1u;
    }
};

/* counts[cells][PITCH], of SYMBOLS symbols each, to counts of those kept, and zeros. k: shared memory. By all threads;
 * a barrier is behind. */
template <int SYMBOLS, int PITCH, int THREADS>
static __device__ __forceinline__ void tsr_close_gaps(tsr_kept_symbols<SYMBOLS> &k, uint32_t *counts, int cells)
{
    typedef tsr_kept_symbols<SYMBOLS> kept_symbols;
    const unsigned lane = threadIdx.x % TSR_WARP;
    const int warp = (int)(threadIdx.x / TSR_WARP);
    for (int w = warp; w < kept_symbols::WORDS; w += THREADS / TSR_WARP) {
        const int s = w * TSR_WARP + (int)lane;
        uint32_t any = 0;
#pragma unroll 8
        for (int c = 0; c < cells; c++) any |= s < SYMBOLS ? counts[c * PITCH + s] : 0u;
        const uint32_t used = __ballot_sync(TSR_FULL_WARP, any != 0);
        if (lane == 0) k.used[w] = used;
    }
    tsr_sync_threads<THREADS>();
    if ((int)threadIdx.x < kept_symbols::WORDS) {
        const uint32_t used = k.used[threadIdx.x], before = threadIdx.x > 0 ? k.used[threadIdx.x - 1] >> 31 : 1u;
        k.kept[threadIdx.x] = used | used << 1 | before;
    }
    tsr_sync_threads<THREADS>();
    for (int c = warp; c < cells; c += THREADS / TSR_WARP) {
        uint32_t *const row = counts + c * PITCH;
        uint32_t count[kept_symbols::EACH];
#pragma unroll
        for (int w = 0; w < kept_symbols::EACH; w++) {
            const int s = w * TSR_WARP + (int)lane;
            count[w] = s < SYMBOLS ? row[s] : 0u;
        }
        __syncwarp();
#pragma unroll
        for (int w = 0; w < kept_symbols::EACH; w++)
            if (count[w] != 0) row[w * TSR_WARP + (int)lane] = 0;
        __syncwarp();
#pragma unroll
        for (int w = 0; w < kept_symbols::EACH; w++)
            if (count[w] != 0) row[k.place(w, lane)] = count[w];
    }
    tsr_sync_threads<THREADS>();
}

/* And back, of so many tables. */
template <int SYMBOLS, int PITCH, int THREADS>
static __device__ __forceinline__ void tsr_open_gaps(const tsr_kept_symbols<SYMBOLS> &k, uint32_t *counts, int tables)
{
    typedef tsr_kept_symbols<SYMBOLS> kept_symbols;
    const unsigned lane = threadIdx.x % TSR_WARP;
    for (int t = (int)(threadIdx.x / TSR_WARP); t < tables; t += THREADS / TSR_WARP) {
        uint32_t *const row = counts + t * PITCH;
        uint32_t count[kept_symbols::EACH];
#pragma unroll
        for (int w = 0; w < kept_symbols::EACH; w++) count[w] = k.is_kept(w, lane) ? row[k.place(w, lane)] : 0u;
        __syncwarp();
#pragma unroll
        for (int w = 0; w < kept_symbols::EACH; w++) {
            const int s = w * TSR_WARP + (int)lane;
            if (s < SYMBOLS) row[s] = count[w];
        }
    }
    tsr_sync_threads<THREADS>();
}

#endif
