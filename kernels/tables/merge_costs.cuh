/* Merging of cells to tables, first part: where a merging keeps its slots, and what tables cost.
 *
 * Cells that counted something are slots, in order. A slot's counts lie in shared memory as quads up to its last used
 * symbol; what finds no room there stays where it was counted. Costs are exact integer sums: a few lanes share the
 * quads of a pair, so that a warp sums up several pairs at once. */
#ifndef TSR_KERNELS_TABLES_MERGE_COSTS_CUH
#define TSR_KERNELS_TABLES_MERGE_COSTS_CUH

#include "kernels/machine/device.cuh"

#include "entropy/contexts.h"

enum {
    TSR_QUAD_COUNTS = 4,
    TSR_MERGE_COSTS = 512,           /* counts whose logarithms are kept */
    TSR_NARROW_GAINS_TOTAL = 3 << 17 /* counts that add up to no more have gains of 32 bits */
};
/* A logarithm is at most 1 off, so a cost is at most twice its total off; in truth two tables cost at most one bit a
 * count less than one. The descriptions change by less than that of a whole table. */
static_assert((int64_t)TSR_NARROW_GAINS_TOTAL * (TSR_COST_BIT + 4) +
                      2 * (TSR_DESCRIBED_TABLE + (TSR_DESCRIBED_SYMBOL + TSR_DESCRIBED_GAP) * 512) * TSR_COST_BIT <
                  INT32_MAX,
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
};

/* Logarithms of small counts, in shared memory. */
struct alignas(16) tsr_merge_logarithms {
    uint16_t of[TSR_MERGE_COSTS];
};

/* Symbols that are used. */
enum { TSR_MASK_SYMBOLS = 64 };
template <int WORDS> struct tsr_symbol_mask {
    uint64_t word[WORDS];
};

/* Of this many symbols. */
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

/* What the costs of this many small counts add up in. */
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

/* Memory that this many cells of this many symbols need at least, 128 bytes of it for rounding; with quads more, fewer
 * of their counts stay outside. */
template <typename Gain, int SYMBOLS> static constexpr size_t tsr_slots_bytes(size_t cells, size_t quads)
{
    constexpr int WORDS = tsr_mask_words<SYMBOLS>::WORDS;
    const size_t of_cells = (cells * (WORDS * sizeof(uint64_t) + sizeof(uint32_t)) + 15) / 16 * 16;
    return sizeof(tsr_merge_head<Gain>) + cells * (tsr_merge_slot_bytes<Gain, WORDS>::ALL + 1) + 128 +
           (of_cells > quads * 16 ? of_cells : quads * 16);
}

/* And for logarithms, where they are not shared with others. */
template <typename Gain, int SYMBOLS> static constexpr size_t tsr_merge_bytes(size_t cells, size_t quads)
{
    return sizeof(tsr_merge_logarithms) + tsr_slots_bytes<Gain, SYMBOLS>(cells, quads);
}

/* Where everything lies, for this many slots. */
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

/* Number of the thread among those that merge together. */
template <int THREADS> static __device__ __forceinline__ int tsr_merge_thread()
{
    return (int)(threadIdx.x % THREADS);
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

/* The cost of the description of a table with these symbols. */
template <int WORDS>
static __device__ __forceinline__ uint32_t tsr_description_of_table(const tsr_symbol_mask<WORDS> &used)
{
    uint32_t symbols = 0, gaps = 0;
    uint64_t before = 1; /* no gap is before the first symbol */
#pragma unroll
    for (int w = 0; w < WORDS; w++) {
        symbols += (uint32_t)__popcll((long long)used.word[w]);
        gaps += (uint32_t)__popcll((long long)(used.word[w] & ~(used.word[w] << 1 | before)));
        before = used.word[w] >> (TSR_MASK_SYMBOLS - 1);
    }
    return tsr_description_cost(symbols, gaps);
}

/* What a table of a slot would cost, or, with a second one, of both; a lane each. */
template <bool OUTSIDE, typename Gain, int WORDS>
static __device__ __forceinline__ uint64_t tsr_cost_of(const tsr_merge_memory<Gain, WORDS> &m, int one, int two,
                                                       bool has_two, bool is_there)
{
    uint32_t row = 0, row_two = 0, total = 1;
    tsr_symbol_mask<WORDS> mask = {};
    if (is_there) {
        row = m.row[one];
        total = m.total[one];
        mask = m.mask[one];
    }
    if (is_there && has_two) {
        row_two = m.row[two];
        total += m.total[two];
        tsr_add_mask(mask, m.mask[two]);
    }
    const uint64_t inside = tsr_sum_table<1, OUTSIDE>(m, row, row_two, 0, 0);
    return tsr_symbols_cost(tsr_count_cost(total), inside) + tsr_description_of_table(mask);
}

template <int THREADS, bool OUTSIDE, typename Gain, int WORDS>
static __device__ __forceinline__ void tsr_first_costs(const tsr_merge_memory<Gain, WORDS> &m, int slots)
{
    for (int first = 0; first < slots; first += THREADS) {
        const int slot = first + tsr_merge_thread<THREADS>();
        if (slot / TSR_WARP * TSR_WARP >= slots) break; /* the whole warp */
        const uint64_t cost = tsr_cost_of<OUTSIDE>(m, slot, 0, false, slot < slots);
        if (slot < slots) m.cost[slot] = (Gain)cost;
    }
}

/* Gains of all slots with those after them, a thread each. The pairs at a distance and those at the distance that is
 * as far from the other end are numbered together, which are always as many: so there are no gaps. */
template <int THREADS, bool OUTSIDE, typename Gain, int WORDS>
static __device__ __forceinline__ void tsr_first_gains(const tsr_merge_memory<Gain, WORDS> &m, int slots)
{
    const int greatest = tsr_min(slots - 1, (int)TSR_MERGE_WINDOW), of_two = 2 * slots - 1 - greatest,
              count = greatest * of_two / 2;
    for (int i = tsr_merge_thread<THREADS>(); i < TSR_MERGE_WINDOW * TSR_MERGE_WINDOW; i += THREADS) {
        const int slot = slots - 1 - i / TSR_MERGE_WINDOW, k = i % TSR_MERGE_WINDOW;
        if (slot >= 0 && slot + 1 + k >= slots) m.gain[slot * TSR_MERGE_WINDOW + k] = tsr_no_gain<Gain>();
    }
    for (int first = 0; first < count; first += THREADS) {
        const int number = first + tsr_merge_thread<THREADS>();
        if (number / TSR_WARP * TSR_WARP >= count) break; /* the whole warp */
        int distance = number / of_two + 1, one = number - (distance - 1) * of_two;
        if (one >= slots - distance) {
            one -= slots - distance;
            distance = greatest + 1 - distance;
        }
        const uint64_t cost = tsr_cost_of<OUTSIDE>(m, one, one + distance, true, number < count);
        if (number < count)
            m.gain[one * TSR_MERGE_WINDOW + distance - 1] =
                (Gain)(cost - (uint64_t)m.cost[one] - (uint64_t)m.cost[one + distance]);
    }
}

#endif
