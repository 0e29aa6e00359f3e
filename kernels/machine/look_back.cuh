/* The single-pass scan over tiles: decoupled look-back (Merrill and Garland 2016), one warp a tile. The
 * paper looks at a window of 32 tiles at a time; a round here takes four of them.
 *
 * A tile takes its number from an atomic ticket, so that all tiles before it have begun. It publishes its own sum as
 * soon as it knows it, looks back over the tiles before it, 128 in one round trip, until it finds one whose prefix is
 * known, and publishes its own prefix. Sums and prefixes lie in two 64-bit words a tile, each of which says itself
 * whether it is there: bit 63. So no word depends on the order of another, loads and stores may be relaxed, and a value
 * may have 63 bits: a string of 2^33 bits is not a special case. */
#ifndef TSR_KERNELS_MACHINE_LOOK_BACK_CUH
#define TSR_KERNELS_MACHINE_LOOK_BACK_CUH

#include "device.cuh"

/* One tile's words, 16 bytes. All zero before the launch. */
struct alignas(16) tsr_tile_state {
    uint64_t sum;    /* TSR_KNOWN | what the tile adds in its low bits, under TSR_SUM_BITS; the rest is the caller's */
    uint64_t prefix; /* TSR_KNOWN | what all tiles up to and with this one add */
};

static constexpr uint64_t TSR_KNOWN = (uint64_t)1 << 63;

/* Work space of a launch over this number of tiles: zeroed by cudaMemsetAsync before it. The ticket comes first. */
struct tsr_look_back {
    unsigned *ticket;
    tsr_tile_state *tiles;
};

static inline size_t tsr_look_back_bytes(size_t tiles)
{
    return 16 + tiles * sizeof(tsr_tile_state);
}

static inline tsr_look_back tsr_look_back_at(void *workspace)
{
    tsr_look_back state;
    state.ticket = static_cast<unsigned *>(workspace);
    state.tiles = reinterpret_cast<tsr_tile_state *>(static_cast<unsigned char *>(workspace) + 16);
    return state;
}

/* The next tile's number; one thread of the block calls it. */
static __device__ __forceinline__ unsigned tsr_take_ticket(tsr_look_back state)
{
    return atomicAdd(state.ticket, 1u);
}

/* Publishes a tile's sum. Its low SUM_BITS bits are for the scan; the bits above, below bit 63, may tell the caller's
 * neighbours anything else. One thread calls it. */
static __device__ __forceinline__ void tsr_publish_sum(tsr_look_back state, unsigned tile, uint64_t sum)
{
    tsr_store_relaxed(&state.tiles[tile].sum, TSR_KNOWN | sum);
}

enum { TSR_LOOKS = 4 /* tiles that a lane looks at in one round */ };

/* How tiles add up: a sum of bits, the scan's usual operator. Another operator has the same three functions; zero must
 * be its neutral element, order must not matter, and 63 bits must hold its values. */
template <int BITS> struct tsr_add_bits {
    static __device__ __forceinline__ uint64_t value(uint64_t sum) /* the part of a published sum that is added up */
    {
        return sum & (((uint64_t)1 << BITS) - 1u);
    }
    static __device__ __forceinline__ uint64_t both(uint64_t a, uint64_t b)
    {
        return a + b;
    }
    static __device__ __forceinline__ uint64_t sums(uint64_t value) /* of all lanes, TSR_LOOKS sums in each */
    {
        static_assert(TSR_LOOKS * TSR_WARP == 1 << 7, "a round of sums has 7 bits more");
        return BITS + 7 <= 32 ? (uint64_t)tsr_warp_sum((uint32_t)value) : tsr_warp_sum(value);
    }
};

/* All 32 lanes of one warp call it, after tsr_publish_sum. Returns what all tiles before this one add up to, and
 * publishes it with own added (own: this tile's, Add::value() of what it has published).
 *
 * All later tiles wait for each round, so it is kept short: its loads are issued together, and it ends with one sum
 * over the warp, for any number of windows of 32 tiles. */
template <typename Add>
static __device__ __forceinline__ uint64_t tsr_look_back_by(tsr_look_back state, unsigned tile, uint64_t own)
{
    const unsigned lane = threadIdx.x % TSR_WARP;
    uint64_t before = 0;
    bool found = tile == 0;
    for (int64_t last = (int64_t)tile - 1; !found;) {
        uint64_t sum[TSR_LOOKS], prefix[TSR_LOOKS];
#pragma unroll
        for (int k = 0; k < TSR_LOOKS; k++) {
            const int64_t at = last - lane - (int64_t)TSR_WARP * k;
            sum[k] = 0;
            prefix[k] = TSR_KNOWN; /* before the first tile: nothing */
            if (at >= 0) tsr_load_relaxed_pair(&state.tiles[at].sum, &sum[k], &prefix[k]);
        }
        uint64_t mine = 0, base = 0; /* sums of tiles, and the prefix before them, which one lane has */
        unsigned base_lane = 0;
        bool whole = true; /* all windows so far are complete */
#pragma unroll
        for (int k = 0; k < TSR_LOOKS; k++) {
            const unsigned known = __ballot_sync(TSR_FULL_WARP, (prefix[k] & TSR_KNOWN) != 0);
            const unsigned summed = __ballot_sync(TSR_FULL_WARP, (sum[k] & TSR_KNOWN) != 0);
            const unsigned nearest = known & (0u - known), nearer = nearest - 1u; /* all ones if no tile is known */
            whole = whole && !found && (nearer & ~summed) == 0; /* else a nearer tile has not published its sum yet */
            if (!whole) continue;
            if (nearer >> lane & 1u) mine = Add::both(mine, Add::value(sum[k]));
            found = nearest != 0;
            if (found) base_lane = 31u - (unsigned)__clz((int)nearest);
            if (found) base = prefix[k] & ~TSR_KNOWN;
            last -= TSR_WARP;
        }
        before = Add::both(before, Add::sums(mine));
        if (found)
            before = Add::both(before, __shfl_sync(TSR_FULL_WARP, base, (int)base_lane));
        else
            tsr_wait_a_little();
    }
    if (lane == 0) tsr_store_relaxed(&state.tiles[tile].prefix, TSR_KNOWN | Add::both(before, own));
    return before;
}

template <int SUM_BITS>
static __device__ __forceinline__ uint64_t tsr_look_back_sum(tsr_look_back state, unsigned tile, uint64_t own)
{
    return tsr_look_back_by<tsr_add_bits<SUM_BITS>>(state, tile, own);
}

#endif
