/* What blocks cost under all classes of a plane's predictor, by tensor cores. For train_labels_cuda.cu. */
#ifndef TSR_KERNELS_TRAINING_LABEL_COSTS_CUH
#define TSR_KERNELS_TRAINING_LABEL_COSTS_CUH

#include "train.cuh"

#include "byte_products.cuh"

namespace
{

/* A warp a block: the class that leaves least of it, of those on the shortlist; in the end, of all blocks that are not
 * flat, and the median edge predictor competes.
 * Predictions of 16 samples under 8 classes are a product of matrices, by tensor cores. A word of its rows is a quad:
 * the low or the high bytes of four samples beside each other, at the sample's place in the row or as far beside and
 * above it as a slot says. Lane 4 g + t has, of the samples in columns g and g + 8 of a row, the quads of slots t,
 * 4 + t, ... and those above them, which it has had in the row before; of the weights in the same way those of class g
 * of eight. Where at most four classes are left for the last eight, two rows share them, as they do a shortlist of
 * four.
 */
enum {
    SLOT_TAPS = 2 * TSR_QUAD,
    SLOTS_LIMIT = 12,
    NO_TAP = 255,
    LOGARITHMS_KEPT = 512, /* of small magnitudes */
    FLAT_SLOTS = 256       /* blocks that a block of threads looks at for flat ones */
};

/* The byte of a tap among those of the slots: slot, upper or lower quad, sample. */
__device__ __forceinline__ int slot_byte(int neighbours, int tap)
{
    const bool wide = neighbours == TSR_NEIGHBOURS_LIMIT;
    int slot, above, right;
    if (tap < neighbours) {
        const int up = TSR_AT(tsr_tap_up)[tap];
        right = TSR_AT(tsr_tap_right)[tap];
        above = up % 2;
        if (right < -3) {
            slot = 4;
            right += 7;
        } else {
            slot = up < 4 ? up / 2 + (right > 0 ? 2 : 0) : right > 0 ? 6 : 5;
            right += right > 0 ? -1 : 3;
        }
    } else {
        const int r = (tap - neighbours) / TSR_REFERENCE_TAPS, i = (tap - neighbours) % TSR_REFERENCE_TAPS;
        const int up = TSR_AT(tsr_reference_up)[i];
        right = TSR_AT(tsr_reference_right)[i] + 1;
        slot = (wide ? 7 : 4) + 2 * r + (up > 0);
        above = up == 0;
    }
    return slot * SLOT_TAPS + above * TSR_QUAD + right;
}

/* Where the lower quad of a slot lies, for the block's first sample. */
template <typename Window> __device__ __forceinline__ int slot_place(int neighbours, int references, int slot)
{
    const int own = neighbours == TSR_NEIGHBOURS_LIMIT ? 7 : 4;
    if (slot < 4) return Window::place(-2 * (slot % 2), slot / 2 * TSR_QUAD - 3);
    if (slot >= own) {
        const int i = slot - own;
        return i < 2 * references ? Window::reference_place(i / 2, i % 2 ? -1 : 1, -1) : (int)Window::FIRST;
    }
    return slot == 4 ? Window::place(0, -7) : Window::place(-4, slot == 5 ? -3 : 1);
}

/* What a prediction is compared with: sample - lowest, where the prediction, with add and no more than most, is cut to
 * 0 .. most; so that what is left is at most TSR_COST_MOST, and 0 of a sample that does not count. */
struct label_target {
    int32_t own, add, most;
};

/* What of a block is summed up: magnitudes that saturate, where all samples count and none can, or of any block; and
 * their logarithms beside them. */
enum label_measure { WHOLE, MAGNITUDES, LOGARITHMS };

template <label_measure MEASURE>
__device__ __forceinline__ label_target target_of(const uint16_t *samples, const tsr_block_place &block, int row,
                                                  int column, int32_t range)
{
    const int32_t own = samples[row * TSR_PREDICTOR_BLOCK + column];
    label_target target = {own, TSR_SAMPLE_BIAS, range - 1};
    if (MEASURE == WHOLE) return target;
    const int32_t y = block.y * TSR_PREDICTOR_BLOCK + row,
                  lowest = MEASURE == MAGNITUDES ? tsr_max(0, own - TSR_COST_MOST) : 0;
    const bool is_in = column < block.span.columns && y >= block.span.row && y < block.span.end;
    target.own = is_in ? own - lowest : 0;
    target.add -= lowest;
    target.most = !is_in ? 0 : MEASURE == MAGNITUDES ? tsr_min(range - 1, own + TSR_COST_MOST) - lowest : range - 1;
    return target;
}

/* Of large magnitudes; not made part of each of the many places that call it. */
__device__ __noinline__ uint32_t large_logarithm(uint32_t magnitude)
{
    return tsr_magnitude_cost(magnitude);
}

/* Of small magnitudes by table. */
__device__ __forceinline__ uint32_t logarithm_of(const uint32_t *logarithms, uint32_t magnitude)
{
    return magnitude < LOGARITHMS_KEPT ? logarithms[magnitude] : large_logarithm(magnitude);
}

/* What predictions of samples in columns g (sums 0 and 1) and g + 8 leave. */
template <label_measure MEASURE>
__device__ __forceinline__ void add_costs(uint32_t cost[2], uint32_t of_logarithms[2], const uint32_t *logarithms,
                                          const uint32_t high[4], const uint32_t cross[4], const uint32_t low[4],
                                          const label_target target[2])
{
#pragma unroll
    for (int k = 0; k < 4; k++) {
        const label_target &of = target[k / 2];
        const int32_t sum = tsr_join_products(high[k], cross[k], low[k]);
        const int32_t prediction = __vimin_s32_relu(tsr_asr(sum, TSR_WEIGHT_SHIFT) + of.add, of.most);
        if (MEASURE != LOGARITHMS) {
            cost[k % 2] = __sad(of.own, prediction, cost[k % 2]);
        } else {
            const uint32_t magnitude = __sad(of.own, prediction, 0);
            cost[k % 2] += min(magnitude, (uint32_t)TSR_COST_MOST);
            of_logarithms[k % 2] += logarithm_of(logarithms, magnitude);
        }
    }
}

template <int STEPS, int EIGHTS> struct label_weights {
    uint32_t low[EIGHTS][STEPS][2], high[EIGHTS][STEPS][2];
};

/* Shared: of each class's weights what the lanes want, by slot: low bytes, then high ones; zeros beyond the classes. */
template <int STEPS, int EIGHTS> struct label_table {
    uint4 of_class[8 * EIGHTS][4 * STEPS];
};

/* The quads of a row: of its columns g and g + 8, by slot. */
template <int STEPS> struct label_quads {
    uint32_t low[2][STEPS], high[2][STEPS];
};

/* Sums of a row's products, with the rounding of predictions. */
template <int STEPS, bool BEGIN>
__device__ __forceinline__ void multiply_row(uint32_t high[4], uint32_t cross[4], uint32_t low[4],
                                             const label_quads<STEPS> &q, const label_quads<STEPS> &above,
                                             const uint32_t weight_low[STEPS][2], const uint32_t weight_high[STEPS][2])
{
#pragma unroll
    for (int s = 0; s < STEPS; s++) {
        const uint32_t *l = weight_low[s], *h = weight_high[s];
        if (BEGIN && s == 0) {
            tsr_begin_products<true, true>(high, 0, q.high[0][s], q.high[1][s], above.high[0][s], above.high[1][s],
                                           h[0], h[1]);
            tsr_begin_products<true, false>(cross, 0, q.high[0][s], q.high[1][s], above.high[0][s], above.high[1][s],
                                            l[0], l[1]);
            tsr_begin_products<false, false>(low, 1u << (TSR_WEIGHT_SHIFT - 1), q.low[0][s], q.low[1][s],
                                             above.low[0][s], above.low[1][s], l[0], l[1]);
        } else {
            tsr_multiply_bytes<true, true>(high, q.high[0][s], q.high[1][s], above.high[0][s], above.high[1][s], h[0],
                                           h[1]);
            tsr_multiply_bytes<true, false>(cross, q.high[0][s], q.high[1][s], above.high[0][s], above.high[1][s], l[0],
                                            l[1]);
            tsr_multiply_bytes<false, false>(low, q.low[0][s], q.low[1][s], above.low[0][s], above.low[1][s], l[0],
                                             l[1]);
        }
        tsr_multiply_bytes<false, true>(cross, q.low[0][s], q.low[1][s], above.low[0][s], above.low[1][s], h[0], h[1]);
    }
}

template <bool NARROW> __host__ __device__ __forceinline__ size_t label_warp_bytes(int references)
{
    return 2 * sizeof(uint32_t) * (size_t)tsr_window<NARROW>::size(references) +
           TSR_PREDICTOR_BLOCK_SAMPLES * sizeof(uint16_t);
}

/* A warp's way to a block's costs under all classes. SHARED: two rows share the last eight. */
template <int STEPS, int EIGHTS, bool SHARED> struct block_costs {
    typedef tsr_window<STEPS == 1> window;
    enum { SHORTLIST = EIGHTS > 2 ? 2 * TSR_SHORTLIST : TSR_SHORTLIST };
    uint32_t *low, *high; /* shared: quads by place; samples: the block's */
    uint16_t *samples;
    const label_table<STEPS, EIGHTS> *table;
    int g, t, place[STEPS];
    int32_t range;

    /* Of class g of each eight; of the last one where it is shared: of the upper row, and of the lower. */
    struct eights {
        label_weights<STEPS, EIGHTS> weight;
        label_weights<STEPS, 1> lower;
    };

    /* By all threads of a block, with barriers. tap_at, memory: shared. */
    __device__ __forceinline__ void begin(const tsr_predict_batch &p, const tsr_plane_view &view,
                                          const tsr_training_plan &plan, const tsr_predictor_model &model,
                                          label_table<STEPS, EIGHTS> &of_classes,
                                          uint8_t tap_at[SLOTS_LIMIT * SLOT_TAPS], unsigned char *memory)
    {
        const unsigned lane = threadIdx.x % TSR_WARP, warp = threadIdx.x / TSR_WARP;
        const int neighbours = TSR_AT(tsr_neighbours)[plan.set], size = window::size(view.references);
        table = &of_classes;
        g = (int)(lane / 4);
        t = (int)(lane % 4);
        range = (int32_t)view.range;
        low = reinterpret_cast<uint32_t *>(memory + warp * label_warp_bytes<STEPS == 1>(p.references));
        high = low + size;
        samples = reinterpret_cast<uint16_t *>(high + size);
        for (unsigned i = threadIdx.x; i < SLOTS_LIMIT * SLOT_TAPS; i += TSR_TRAINING_THREADS) tap_at[i] = NO_TAP;
        __syncthreads();
        if ((int)threadIdx.x < neighbours + view.references * TSR_REFERENCE_TAPS)
            tap_at[slot_byte(neighbours, (int)threadIdx.x)] = (uint8_t)threadIdx.x;
        __syncthreads();
        for (int i = (int)threadIdx.x; i < 8 * EIGHTS * 4 * STEPS; i += TSR_TRAINING_THREADS) {
            const int c = i / (4 * STEPS), slot = i % (4 * STEPS);
            uint32_t bytes[2][2];
#pragma unroll
            for (int above = 0; above < 2; above++) {
                int32_t four[4];
#pragma unroll
                for (int k = 0; k < TSR_QUAD; k++) {
                    const int tap = tap_at[slot * SLOT_TAPS + above * TSR_QUAD + k];
                    four[k] = tap != NO_TAP && c < plan.classes ? model.weight[c][tap] : 0;
                }
                tsr_split_bytes(four, &bytes[0][above], &bytes[1][above]);
            }
            of_classes.of_class[c][slot] = make_uint4(bytes[0][0], bytes[0][1], bytes[1][0], bytes[1][1]);
        }
        __syncthreads();
#pragma unroll
        for (int s = 0; s < STEPS; s++) place[s] = slot_place<window>(neighbours, view.references, 4 * s + t) + g;
    }

    /* A class's as an eight's of this lane, or zeros. */
    template <int COUNT>
    __device__ __forceinline__ void take_weights(label_weights<STEPS, COUNT> &to, int e, int c, bool is_there) const
    {
#pragma unroll
        for (int s = 0; s < STEPS; s++) {
            uint4 of = make_uint4(0, 0, 0, 0);
            if (is_there) of = table->of_class[c][4 * s + t];
            to.low[e][s][0] = of.x;
            to.low[e][s][1] = of.y;
            to.high[e][s][0] = of.z;
            to.high[e][s][1] = of.w;
        }
    }

    /* As a shared eight's: of lanes g < 4 for the upper row, of the others for the lower. */
    template <int COUNT>
    __device__ __forceinline__ void take_shared_weights(label_weights<STEPS, COUNT> &upper, int e,
                                                        label_weights<STEPS, 1> &of_lower, int c) const
    {
        take_weights(upper, e, c, g < 4);
        take_weights(of_lower, 0, c, g >= 4);
    }

    __device__ __forceinline__ void take_all(eights &of) const
    {
#pragma unroll
        for (int e = 0; e < EIGHTS - SHARED; e++) take_weights(of.weight, e, 8 * e + g, true);
        if (SHARED) take_shared_weights(of.weight, EIGHTS - 1, of.lower, 8 * (EIGHTS - 1) + g % 4);
    }

    __device__ __forceinline__ void stage(const tsr_plane_view &view, const tsr_block_place &block)
    {
        __syncwarp();
        window::stage(view, block, threadIdx.x % TSR_WARP, [&](int at, int row, int quad, uint2 x) {
            const int column = quad * TSR_QUAD - window::LEFT;
            if (row >= 0 && column >= 0 && column < TSR_PREDICTOR_BLOCK)
                *reinterpret_cast<uint2 *>(samples + row * TSR_PREDICTOR_BLOCK + column) = x;
            x.x ^= TSR_SAMPLE_BIAS * 0x10001u;
            x.y ^= TSR_SAMPLE_BIAS * 0x10001u;
            const uint32_t l = __byte_perm(x.x, x.y, 0x6420), h = __byte_perm(x.x, x.y, 0x7531);
            const uint32_t next_l = __shfl_down_sync(TSR_FULL_WARP, l, 1),
                           next_h = __shfl_down_sync(TSR_FULL_WARP, h, 1);
            *reinterpret_cast<uint4 *>(low + at) = make_uint4(
                l, __funnelshift_r(l, next_l, 8), __funnelshift_r(l, next_l, 16), __funnelshift_r(l, next_l, 24));
            *reinterpret_cast<uint4 *>(high + at) = make_uint4(
                h, __funnelshift_r(h, next_h, 8), __funnelshift_r(h, next_h, 16), __funnelshift_r(h, next_h, 24));
        });
        __syncwarp();
    }

    __device__ __forceinline__ void load(label_quads<STEPS> &q, const int from[STEPS], int row) const
    {
#pragma unroll
        for (int side = 0; side < 2; side++)
#pragma unroll
            for (int s = 0; s < STEPS; s++) {
                q.low[side][s] = low[from[s] + row * window::PITCH + 8 * side];
                q.high[side][s] = high[from[s] + row * window::PITCH + 8 * side];
            }
    }

    /* Where the quads above a row lie. */
    __device__ __forceinline__ void place_above(int above[STEPS]) const
    {
#pragma unroll
        for (int s = 0; s < STEPS; s++) above[s] = tsr_max(0, place[s] - window::PITCH);
    }

    /* Of an eight of classes, adds the costs of one row. */
    template <label_measure MEASURE, int COUNT>
    __device__ __forceinline__ void add_row(uint32_t *cost, uint32_t *of_logarithms, const uint32_t *logarithms,
                                            const label_quads<STEPS> &quads, const label_quads<STEPS> &above,
                                            const label_weights<STEPS, COUNT> &of, int e,
                                            const label_target target[2]) const
    {
        uint32_t highs[4], crosses[4], lows[4];
        multiply_row<STEPS, true>(highs, crosses, lows, quads, above, of.low[e], of.high[e]);
        add_costs<MEASURE>(cost, of_logarithms, logarithms, highs, crosses, lows, target);
    }

    /* Of a shared eight, of two rows: quads: above them, and their own. */
    template <label_measure MEASURE, int COUNT>
    __device__ __forceinline__ void
    add_shared_rows(uint32_t *cost, uint32_t *of_logarithms, const uint32_t *logarithms,
                    const label_quads<STEPS> quads[3], const label_weights<STEPS, COUNT> &upper, int e,
                    const label_weights<STEPS, 1> &of_lower, int row, const tsr_block_place &block) const
    {
        const label_target target[2] = {target_of<MEASURE>(samples, block, row + t / 2, g, range),
                                        target_of<MEASURE>(samples, block, row + t / 2, g + 8, range)};
        uint32_t highs[4], crosses[4], lows[4];
        multiply_row<STEPS, true>(highs, crosses, lows, quads[1], quads[0], upper.low[e], upper.high[e]);
        multiply_row<STEPS, false>(highs, crosses, lows, quads[2], quads[1], of_lower.low[0], of_lower.high[0]);
        add_costs<MEASURE>(cost, of_logarithms, logarithms, highs, crosses, lows, target);
    }

    /* Adds costs of two rows under this lane's classes: 8 e + 2 t and 8 e + 2 t + 1 of each eight, over the samples in
     * its columns; of a shared eight 2 (t % 2) and the next, over the rows of its half. */
    template <label_measure MEASURE>
    __device__ __forceinline__ void add_rows(uint32_t cost[2 * EIGHTS], uint32_t of_logarithms[2 * EIGHTS],
                                             const uint32_t *logarithms, const label_quads<STEPS> quads[3],
                                             const eights &of, int row, const tsr_block_place &block) const
    {
#pragma unroll
        for (int r = 0; r < 2 && EIGHTS - SHARED > 0; r++) {
            const label_target target[2] = {target_of<MEASURE>(samples, block, row + r, g, range),
                                            target_of<MEASURE>(samples, block, row + r, g + 8, range)};
#pragma unroll
            for (int e = 0; e < EIGHTS - SHARED; e++)
                add_row<MEASURE>(cost + 2 * e, of_logarithms + 2 * e, logarithms, quads[r + 1], quads[r], of.weight, e,
                                 target);
        }
        constexpr int e = EIGHTS - 1;
        if (SHARED)
            add_shared_rows<MEASURE>(cost + 2 * e, of_logarithms + 2 * e, logarithms, quads, of.weight, e, of.lower,
                                     row, block);
    }

    /* Of all rows. */
    template <label_measure MEASURE>
    __device__ __forceinline__ void add(uint32_t cost[2 * EIGHTS], uint32_t of_logarithms[2 * EIGHTS],
                                        const uint32_t *logarithms, const tsr_block_place &block) const
    {
        eights of;
        take_all(of);
        label_quads<STEPS> quads[3];
        int above[STEPS];
        place_above(above);
        load(quads[0], above, 0);
#pragma unroll 1
        for (int row = 0; row < TSR_PREDICTOR_BLOCK; row += 2) {
            load(quads[1], place, row);
            load(quads[2], place, row + 1);
            add_rows<MEASURE>(cost, of_logarithms, logarithms, quads, of, row, block);
            quads[0] = quads[2];
        }
    }

    /* Of the rows that make the shortlist, of a block of full height. */
    template <label_measure MEASURE>
    __device__ __forceinline__ void add_some(uint32_t cost[2 * EIGHTS], const tsr_block_place &block) const
    {
        eights of;
        take_all(of);
        int above[STEPS];
        place_above(above);
#pragma unroll 1
        for (int row = TSR_SHORTLIST_ROW; row < TSR_PREDICTOR_BLOCK; row += 8) {
            label_quads<STEPS> quads[3];
            load(quads[0], above, row);
            load(quads[1], place, row);
            load(quads[2], place, row + 1);
            add_rows<MEASURE>(cost, NULL, NULL, quads, of, row, block);
        }
    }

    /* And of the others, under the classes of the shortlist, lane g's is c: those at 2 (t % 2) and the next, or 2 t and
     * the next where it is an eight. */
    template <label_measure MEASURE>
    __device__ __forceinline__ void add_others(uint32_t cost[2], int c, const tsr_block_place &block) const
    {
        label_weights<STEPS, 1> listed, listed_lower;
        if (SHORTLIST == 4)
            take_shared_weights(listed, 0, listed_lower, c);
        else
            take_weights(listed, 0, c, true);
        label_quads<STEPS> quads[3];
        int above[STEPS];
        place_above(above);
        load(quads[0], above, 0);
#pragma unroll 1
        for (int eight = 0; eight < TSR_PREDICTOR_BLOCK; eight += 8)
#pragma unroll
            for (int pair = 0; pair < 8; pair += 2) {
                const int row = eight + pair;
                load(quads[2], place, row + 1);
                if (pair != TSR_SHORTLIST_ROW) {
                    load(quads[1], place, row);
                    if (SHORTLIST == 4) {
                        add_shared_rows<MEASURE>(cost, NULL, NULL, quads, listed, 0, listed_lower, row, block);
                    } else {
#pragma unroll
                        for (int r = 0; r < 2; r++) {
                            const label_target target[2] = {target_of<MEASURE>(samples, block, row + r, g, range),
                                                            target_of<MEASURE>(samples, block, row + r, g + 8, range)};
                            add_row<MEASURE>(cost, NULL, NULL, quads[r + 1], quads[r], listed, 0, target);
                        }
                    }
                }
                quads[0] = quads[2];
            }
    }

    /* What the class leaves of a block that leaves least, times TSR_WARP, and that class; by all lanes. */
    template <label_measure MEASURE>
    __device__ __forceinline__ uint32_t label(const tsr_block_place &block, uint32_t classes) const
    {
        uint32_t cost[2 * EIGHTS] = {0};
        const bool is_listed = MEASURE == WHOLE || block.span.end % TSR_PREDICTOR_BLOCK == 0;
        if (is_listed)
            add_some<MEASURE>(cost, block);
        else
            add<MEASURE>(cost, NULL, NULL, block);
        sum_up(cost);
        if (!is_listed) return least(cost, classes);
        /* The shortlist: lane i has its entry i. */
        uint32_t key[2 * EIGHTS], entry = 0, listed[2] = {0, 0};
#pragma unroll
        for (int i = 0; i < 2 * EIGHTS; i++)
            key[i] = class_of(i) < classes ? cost[i] * TSR_WARP + class_of(i) : UINT32_MAX;
        const int count = tsr_shortlist((int)classes), lane = 4 * g + t;
#pragma unroll
        for (int n = 0; n < SHORTLIST; n++) {
            if (n >= count) break;
            uint32_t first = UINT32_MAX;
#pragma unroll
            for (int i = 0; i < 2 * EIGHTS; i++) first = min(first, key[i]);
            first = tsr_warp_min(first);
            if (lane == n) entry = first;
#pragma unroll
            for (int i = 0; i < 2 * EIGHTS; i++)
                if (key[i] == first) key[i] = UINT32_MAX;
        }
        add_others<MEASURE>(listed, (int)(__shfl_sync(TSR_FULL_WARP, entry, g % SHORTLIST) % TSR_WARP), block);
        uint32_t best = UINT32_MAX;
#pragma unroll
        for (int i = 0; i < 2; i++) {
#pragma unroll
            for (int lanes = SHORTLIST == 4 ? 2 : 4; lanes < TSR_WARP; lanes *= 2)
                listed[i] += __shfl_xor_sync(TSR_FULL_WARP, listed[i], lanes);
            const int at = 2 * (t % (SHORTLIST / 2)) + i;
            const uint32_t before = __shfl_sync(TSR_FULL_WARP, entry, at);
            if (at < count) best = min(best, before + listed[i] * TSR_WARP);
        }
        return tsr_warp_min(best);
    }

    __device__ __forceinline__ static bool is_shared(int i)
    {
        return SHARED && i / 2 == EIGHTS - 1;
    }

    /* The class that cost i of a lane is of. */
    __device__ __forceinline__ uint32_t class_of(int i) const
    {
        return (uint32_t)(8 * (i / 2) + 2 * (is_shared(i) ? t % 2 : t) + i % 2);
    }

    /* Sums over all lanes of a class. */
    __device__ __forceinline__ void sum_up(uint32_t cost[2 * EIGHTS]) const
    {
#pragma unroll
        for (int i = 0; i < 2 * EIGHTS; i++)
#pragma unroll
            for (int lanes = is_shared(i) ? 2 : 4; lanes < TSR_WARP; lanes *= 2)
                cost[i] += __shfl_xor_sync(TSR_FULL_WARP, cost[i], lanes);
    }

    /* The least of them, by all lanes: it times TSR_WARP, and its class; the first of equals wins. They are below 2^26.
     */
    __device__ __forceinline__ uint32_t least(const uint32_t cost[2 * EIGHTS], uint32_t classes) const
    {
        uint32_t key = UINT32_MAX;
#pragma unroll
        for (int i = 0; i < 2 * EIGHTS; i++)
            if (class_of(i) < classes) key = min(key, cost[i] * TSR_WARP + class_of(i));
        return tsr_warp_min(key);
    }
};

} // namespace

#endif
