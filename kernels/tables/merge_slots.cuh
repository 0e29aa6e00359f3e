/* Merging of cells to tables, second part: slots whose costs are known merge until no merge saves.
 *
 * A merge makes up to 24 gains new, three kinds of eight. A block of threads works them out as if it were done already:
 * the sums by all warps, what is known without them, and the best of all gains that stay, by the last. Then the first
 * warp takes them in, and finds the best partners of the at most 16 slots that have new gains, and so the next merge,
 * while others add up the counts and move up the list of the living: two barriers a merge. A warp alone does it all one
 * after the other: it has no barriers, and a third less to do. What the definition decides by order, the first of equal
 * gains, is decided by the least slot. */
#ifndef TSR_KERNELS_TABLES_MERGE_SLOTS_CUH
#define TSR_KERNELS_TABLES_MERGE_SLOTS_CUH

#include "merge_costs.cuh"

/* A pair that merges: its places and slots, and what they become. */
template <typename Gain> struct tsr_merge {
    int place, other, a, b;
    uint32_t row_a, row_b;
};

/* The gains that a merge makes new: eight of places before it with it, eight of it with places after, and eight of
 * pairs that then reach over its second place. Places are those after the merge. Those that are there are numbered
 * without gaps: of few slots most are not. */
struct tsr_fresh_pairs {
    int befores, behinds, overs, first_over; /* how many of each kind; k of the first of the third */

    template <typename Gain> __device__ __forceinline__ tsr_fresh_pairs(const tsr_merge<Gain> &merge, int living)
    {
        befores = tsr_min(merge.place, (int)TSR_MERGE_WINDOW);
        behinds = tsr_min(living - 1 - merge.place, (int)TSR_MERGE_WINDOW);
        first_over = tsr_max(0, merge.other + (int)TSR_MERGE_WINDOW - living);
        overs = tsr_max(0, tsr_min(merge.other, (int)TSR_MERGE_WINDOW) - first_over);
    }
    __device__ __forceinline__ int count() const
    {
        return befores + behinds + overs;
    }
    /* Kind and place among the eight of it. */
    __device__ __forceinline__ int place_of(int number) const
    {
        const int behind = number - befores, over = behind - behinds;
        return over >= 0     ? 2 * (int)TSR_MERGE_WINDOW + first_over + over
               : behind >= 0 ? (int)TSR_MERGE_WINDOW + behind
                             : number;
    }
};

struct tsr_fresh_pair {
    bool is_over;
    int first, second; /* without is_over, first is the other one */
};

template <typename Gain>
static __device__ __forceinline__ tsr_fresh_pair tsr_fresh_pair_of(const tsr_merge<Gain> &merge,
                                                                   const tsr_fresh_pairs &pairs, int number)
{
    tsr_fresh_pair pair;
    const int behind = number - pairs.befores, over = behind - pairs.behinds;
    pair.is_over = over >= 0;
    pair.first = over >= 0     ? merge.other - 1 - pairs.first_over - over
                 : behind >= 0 ? merge.place + 1 + behind
                               : merge.place - 1 - number;
    pair.second = pair.first + TSR_MERGE_WINDOW;
    return pair;
}

/* Their sums. */
template <int THREADS, int LANES, bool OUTSIDE, typename Gain, int WORDS>
static __device__ __forceinline__ void tsr_fresh_sums(const tsr_merge_memory<Gain, WORDS> &m,
                                                      const tsr_merge<Gain> &merge, const tsr_fresh_pairs &pairs,
                                                      uint64_t *inside)
{
    constexpr int AT_ONCE = THREADS / LANES, OF_WARP = TSR_WARP / LANES;
    const int thread = tsr_merge_thread<THREADS>(), count = pairs.count();
    for (int begin = thread / TSR_WARP * OF_WARP; begin < count; begin += AT_ONCE) {
        const int number = begin + thread % TSR_WARP / LANES;
        uint32_t row = 0, row_b = 0, row_c = 0;
        if (number < count) {
            const tsr_fresh_pair pair = tsr_fresh_pair_of(merge, pairs, number);
            row = m.row[tsr_byte_of(m.alive, pair.first + (pair.first >= merge.other))];
            row_b = pair.is_over ? m.row[tsr_byte_of(m.alive, pair.second + 1)] : merge.row_a;
            row_c = pair.is_over ? 0u : merge.row_b;
        }
        const uint64_t sum = tsr_sum_table<LANES, OUTSIDE>(m, row, row_b, row_c, thread % LANES);
        if (thread % LANES == 0 && number < count) inside[number] = sum;
    }
}

/* What is known of them without the sums, by a warp. */
template <typename Gain, int WORDS>
static __device__ __forceinline__ void tsr_fresh_rests(const tsr_merge_memory<Gain, WORDS> &m,
                                                       const tsr_merge<Gain> &merge, const tsr_fresh_pairs &pairs,
                                                       Gain least, tsr_merge_head<Gain> &head, unsigned lane)
{
    if ((int)lane >= pairs.count()) return;
    const tsr_fresh_pair pair = tsr_fresh_pair_of(merge, pairs, (int)lane);
    const int one = tsr_byte_of(m.alive, pair.first + (pair.first >= merge.other)),
              two = pair.is_over ? tsr_byte_of(m.alive, pair.second + 1) : merge.a;
    uint32_t total = m.total[one] + m.total[two];
    uint64_t less = (uint64_t)m.cost[one] + (uint64_t)m.cost[two];
    tsr_symbol_mask<WORDS> mask = m.mask[one];
    tsr_add_mask(mask, m.mask[two]);
    if (!pair.is_over) {
        total += m.total[merge.b];
        tsr_add_mask(mask, m.mask[merge.b]);
        less += (uint64_t)m.cost[merge.b] + (uint64_t)least;
    }
    head.all[lane] = tsr_count_cost(total);
    head.rest[lane] = (Gain)(tsr_description_of_table(mask) - less);
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
template <int CELLS, typename Gain, int WORDS>
static __device__ __forceinline__ void tsr_least_of_others(const tsr_merge_memory<Gain, WORDS> &m, int slots, int first,
                                                           int last, Gain *least, uint32_t *least_slot, unsigned lane)
{
    constexpr int EACH = CELLS <= TSR_WARP ? 1 : 4;
    *least = tsr_no_gain<Gain>();
    *least_slot = UINT32_MAX;
    for (int s = EACH * (int)lane; s < slots; s += EACH * TSR_WARP) {
        Gain best[EACH];
        if constexpr (EACH == 1)
            best[0] = m.best[s];
        else
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

/* The list of the living without a place, and the places after it, by a warp: eight bytes a lane. */
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

/* The second slot to the first one, by a warp. Counts add up where the longer row is. */
template <bool OUTSIDE, typename Gain, int WORDS>
static __device__ __forceinline__ void tsr_add_slots(const tsr_merge_memory<Gain, WORDS> &m,
                                                     const tsr_merge<Gain> &merge, Gain least, unsigned lane)
{
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

/* A slot's best partner to those of all; returns its gain. */
template <typename Gain, int WORDS>
static __device__ __forceinline__ Gain tsr_note_best(const tsr_merge_memory<Gain, WORDS> &m, int slot, const Gain *row)
{
    Gain best;
    int distance;
    tsr_find_best(row, &best, &distance);
    m.best[slot] = best;
    m.distance[slot] = (uint8_t)distance;
    return best;
}

/* Gains and best partners before the first merge. Barriers are inside, and one follows. */
template <int THREADS, bool OUTSIDE, typename Gain, int WORDS>
static __device__ __forceinline__ void tsr_begin_merging(const tsr_merge_memory<Gain, WORDS> &m, int slots)
{
    tsr_first_gains<THREADS, OUTSIDE>(m, slots);
    tsr_sync_threads<THREADS>();
    for (int slot = tsr_merge_thread<THREADS>(); slot < (slots + 3) / 4 * 4; slot += THREADS) {
        Gain row[TSR_MERGE_WINDOW];
        if (slot >= slots) {
            m.best[slot] = tsr_no_gain<Gain>();
            continue;
        }
        tsr_load_gains<TSR_MERGE_WINDOW>(row, m.gain + slot * TSR_MERGE_WINDOW);
        tsr_note_best(m, slot, row);
    }
    tsr_sync_threads<THREADS>();
}

/* What merges: the slot and its best partner. */
template <typename Gain, int WORDS>
static __device__ __forceinline__ tsr_merge<Gain> tsr_merge_of(const tsr_merge_memory<Gain, WORDS> &m, uint32_t slot)
{
    tsr_merge<Gain> merge;
    merge.a = (int)slot;
    merge.place = tsr_byte_of(m.place, merge.a);
    merge.other = merge.place + 1 + m.distance[merge.a];
    merge.b = tsr_byte_of(m.alive, merge.other);
    merge.row_a = m.row[merge.a];
    merge.row_b = m.row[merge.b];
    return merge;
}

/* A warp's part of a merge's gains, before the second barrier: the rests of new gains, and the least of those that
 * stay. */
template <int CELLS, typename Gain, int WORDS>
static __device__ __forceinline__ void
tsr_prepare_gains(const tsr_merge_memory<Gain, WORDS> &m, const tsr_merge<Gain> &merge, const tsr_fresh_pairs &pairs,
                  int slots, Gain least, tsr_merge_head<Gain> &head, unsigned lane)
{
    constexpr int WINDOW = TSR_MERGE_WINDOW;
    Gain *const fresh = &head.fresh[0][0];
    tsr_fresh_rests(m, merge, pairs, least, head, lane);
    if (lane < TSR_FRESH_GAINS) fresh[lane] = tsr_no_gain<Gain>();
    Gain of_others;
    uint32_t other_slot;
    tsr_least_of_others<CELLS>(m, slots, tsr_byte_of(m.alive, tsr_max(0, merge.place - WINDOW)), merge.b, &of_others,
                               &other_slot, lane);
    if (lane == 0) {
        head.least_of_others = of_others;
        head.other_slot = other_slot;
    }
}

/* Another's, after it: the new gains, and the least of all. place: of the lane's slot, whose gains are new if is_new.
 */
template <typename Gain, int WORDS>
static __device__ __forceinline__ void
tsr_finish_gains(const tsr_merge_memory<Gain, WORDS> &m, const tsr_merge<Gain> &merge, const tsr_fresh_pairs &pairs,
                 int place, bool is_new, int slot, tsr_merge_head<Gain> &head, unsigned lane)
{
    constexpr int WINDOW = TSR_MERGE_WINDOW;
    Gain *const fresh = &head.fresh[0][0];
    if ((int)lane < pairs.count())
        fresh[pairs.place_of((int)lane)] =
            (Gain)(tsr_symbols_cost(head.all[lane], head.inside[lane]) + (uint64_t)head.rest[lane]);
    __syncwarp();
    uint32_t next = lane == TSR_WARP - 1 ? head.other_slot : UINT32_MAX;
    Gain least = lane == TSR_WARP - 1 ? head.least_of_others : tsr_no_gain<Gain>();
    if (is_new) {
        Gain row[WINDOW];
        tsr_load_gains<WINDOW>(row, m.gain + slot * WINDOW);
        tsr_renew_gains(row, head.fresh, place, merge);
        tsr_store_gains(m.gain + slot * WINDOW, row);
        least = tsr_note_best(m, slot, row);
        next = (uint32_t)slot;
    }
    tsr_least_of_warp(&least, &next);
    if (lane == 0) {
        m.best[merge.b] = tsr_no_gain<Gain>();
        head.least = least;
        head.slot = next;
    }
}

/* Merges slots, whose costs are known; returns how many live. A barrier is needed before, and another after. */
template <int CELLS, int THREADS, int LANES, bool OUTSIDE, typename Gain, int WORDS>
static __device__ __forceinline__ int tsr_merge_slots(const tsr_merge_memory<Gain, WORDS> &m,
                                                      tsr_merge_head<Gain> &head, int slots)
{
    constexpr int WARPS = THREADS / TSR_WARP, WINDOW = TSR_MERGE_WINDOW, ADDS = 1, MOVES = WARPS > 2 ? 2 : 0;
    static_assert(WARPS > 1, "there is another warp");
    const unsigned lane = threadIdx.x % TSR_WARP;
    const int warp = tsr_merge_thread<THREADS>() / TSR_WARP;
    tsr_begin_merging<THREADS, OUTSIDE>(m, slots);
    Gain least = 0;
    int living = slots;
    if (warp == 0) {
        uint32_t slot;
        tsr_least_of_others<CELLS>(m, slots, slots, slots, &least, &slot, lane);
        if (lane == 0) {
            head.least = least;
            head.slot = slot;
        }
    }
    for (;;) {
        tsr_sync_threads<THREADS>();
        least = head.least;
        if (!tsr_merges_on(living, least < 0)) break;
        living--;
        const tsr_merge<Gain> merge = tsr_merge_of(m, head.slot);
        /* Slots with new gains are those before the second one, from the eighth before the first one on. */
        const int place = merge.other - 1 - (int)lane;
        const bool is_new = place >= 0 && place >= merge.place - WINDOW;
        const int slot = warp == 0 && is_new ? tsr_byte_of(m.alive, place) : 0;
        const tsr_fresh_pairs pairs(merge, living);
        tsr_fresh_sums<THREADS, LANES, OUTSIDE>(m, merge, pairs, head.inside);
        if (warp == WARPS - 1) /* which has no sums, or few */
            tsr_prepare_gains<CELLS>(m, merge, pairs, slots, least, head, lane);
        tsr_sync_threads<THREADS>();
        if (warp == ADDS) tsr_add_slots<OUTSIDE>(m, merge, least, lane);
        if (warp == MOVES) tsr_move_up(m, merge, slots, lane);
        if (warp == 0) tsr_finish_gains(m, merge, pairs, place, is_new, slot, head, lane);
    }
    return living;
}

/* The same by one warp: it does a merge first, and then works out what it makes new. */
template <int CELLS, int LANES, bool OUTSIDE, typename Gain, int WORDS>
static __device__ __forceinline__ int tsr_merge_slots_alone(const tsr_merge_memory<Gain, WORDS> &m,
                                                            tsr_merge_head<Gain> &head, int slots)
{
    constexpr int WINDOW = TSR_MERGE_WINDOW, AT_ONCE = TSR_WARP / LANES;
    const unsigned lane = threadIdx.x % TSR_WARP;
    Gain *const fresh = &head.fresh[0][0], least;
    uint32_t next;
    int living = slots;
    tsr_begin_merging<TSR_WARP, OUTSIDE>(m, slots);
    tsr_least_of_others<CELLS>(m, slots, slots, slots, &least, &next, lane);
    while (tsr_merges_on(living, least < 0)) {
        living--;
        const tsr_merge<Gain> merge = tsr_merge_of(m, next);
        __syncwarp();
        tsr_add_slots<OUTSIDE>(m, merge, least, lane);
        tsr_move_up(m, merge, slots, lane);
        if (lane < TSR_FRESH_GAINS) fresh[lane] = tsr_no_gain<Gain>();
        if (lane == 0) m.best[merge.b] = tsr_no_gain<Gain>();
        __syncwarp();
        const tsr_fresh_pairs pairs(merge, living);
        const int count = pairs.count();
        uint64_t all = 0, rest = 0, inside = 0;
        if ((int)lane < count) {
            const tsr_fresh_pair pair = tsr_fresh_pair_of(merge, pairs, (int)lane);
            const int one = tsr_byte_of(m.alive, pair.first),
                      two = pair.is_over ? tsr_byte_of(m.alive, pair.second) : merge.a;
            tsr_symbol_mask<WORDS> mask = m.mask[one];
            tsr_add_mask(mask, m.mask[two]);
            all = tsr_count_cost(m.total[one] + m.total[two]);
            rest = tsr_description_of_table(mask) - (uint64_t)m.cost[one] - (uint64_t)m.cost[two];
        }
        for (int begin = 0; begin < count; begin += AT_ONCE) {
            const int number = begin + (int)lane / LANES;
            uint32_t row_one = 0, row_two = 0;
            if (number < count) {
                const tsr_fresh_pair pair = tsr_fresh_pair_of(merge, pairs, number);
                row_one = m.row[tsr_byte_of(m.alive, pair.first)];
                row_two = m.row[pair.is_over ? tsr_byte_of(m.alive, pair.second) : (uint8_t)merge.a];
            }
            const uint64_t sum = tsr_sum_table<LANES, OUTSIDE>(m, row_one, row_two, 0, lane % LANES),
                           own = __shfl_sync(TSR_FULL_WARP, sum, lane % AT_ONCE * LANES);
            if ((int)lane / AT_ONCE == begin / AT_ONCE) inside = own;
        }
        if ((int)lane < count) fresh[pairs.place_of((int)lane)] = (Gain)(tsr_symbols_cost(all, inside) + rest);
        __syncwarp();
        const int place = merge.other - 1 - (int)lane;
        if (place >= 0 && place >= merge.place - WINDOW) {
            const int slot = tsr_byte_of(m.alive, place);
            Gain row[WINDOW];
            tsr_load_gains<WINDOW>(row, m.gain + slot * WINDOW);
            tsr_renew_gains(row, head.fresh, place, merge);
            tsr_store_gains(m.gain + slot * WINDOW, row);
            tsr_note_best(m, slot, row);
        }
        __syncwarp();
        tsr_least_of_others<CELLS>(m, slots, slots, slots, &least, &next, lane);
    }
    return living;
}

#endif
