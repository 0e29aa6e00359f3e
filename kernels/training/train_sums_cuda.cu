/* Training on the device: sums of products of differences, by tensor cores. FORMAT.md section 7.1.
 *
 * Sums are integers, so their order is free: a warp adds up the products of its blocks in 32 bits, those of bytes
 * apart, and a plane's classes in 64 bits. */
#include "train.cuh"

#include "byte_products.cuh"

namespace
{

/* Eight features a time: an octet. The sum of products of two features is one number of a product of matrices: rows are
 * weighted differences of two octets, columns differences of one, and what is summed over are 32 samples, two rows of
 * a block. A lane makes from samples in shared memory just those bytes that the tensor cores want of it. */
enum {
    SUM_SLOTS = 256, /* places of blocks that a block of threads takes, at most */
    SUM_FEW = 64,    /* and where that gives few blocks of threads */
    SUM_GRID = 512,
    SUM_BATCH = TSR_WARP, /* blocks whose places a warp finds at once */
    OCTET = 8,
    OCTETS_LIMIT = 5,
    PAIRS_OF_ROW = TSR_PREDICTOR_BLOCK / 2,
    NO_FEATURE = 255,
    NO_LABEL = 255
};
static_assert(TSR_FEATURES_LIMIT + 1 <= OCTETS_LIMIT * OCTET, "octets take all features and the target");
/* Blocks whose products' sums of bytes add up in 32 bits. */
static_assert((int64_t)SUM_SLOTS * TSR_PREDICTOR_BLOCK_SAMPLES * 255 * 255 <= UINT32_MAX, "low x low");
static_assert((int64_t)SUM_SLOTS * TSR_PREDICTOR_BLOCK_SAMPLES * 2 * 255 * 32 <= INT32_MAX, "low x high");

/* The order of set 2's features: so the eight of an octet, two times four columns, lie in different banks. Spare places
 * are filled with an earlier plane's. */
__device__ const uint8_t sum_order[3 * OCTET] = {
    6,  1, 0,  2,  16, 10,         15,         NO_FEATURE, /* row 1: -2..1; row 3: -1..1 */
    9,  3, 17, 12, 7,  4,          NO_FEATURE, NO_FEATURE, /* row 0: -3, -2, target; row 2: -2..0 */
    14, 8, 13, 5,  11, NO_FEATURE, NO_FEATURE, NO_FEATURE  /* row 1: -3, 2, 3; row 2: 1, 2 */
};

/* Every pair of octets, and each with itself, once: an octet of columns meets its rows, the octet itself and those that
 * follow it in a circle, two at once. */
__host__ __device__ constexpr int octets_met(int octets, int column)
{
    return octets % 2 ? (octets + 1) / 2 : octets / 2 + (column < octets / 2 ? 1 : 0);
}

__host__ __device__ constexpr int product_tiles(int octets)
{
    int tiles = 0;
    for (int column = 0; column < octets; column++) tiles += (octets_met(octets, column) + 1) / 2;
    return tiles;
}

/* Shared memory of the sums. */
struct sum_warp {
    tsr_block_place place[SUM_BATCH];
    int32_t mean[SUM_BATCH];
    uint32_t weights[TSR_PREDICTOR_BLOCK][PAIRS_OF_ROW]; /* of two samples: the first in byte 0, the second in 3 */
    int16_t tap[TSR_TAP_PLACES];                         /* of the class at hand */
    uint2 quads[TSR_QUAD_PLACES];
};
struct sum_memory {
    uint32_t count[TSR_CLASS_LIMIT + 1], cursor[TSR_CLASS_LIMIT];
    uint8_t label[SUM_SLOTS], order[SUM_SLOTS]; /* order: slots by label */
    uint8_t feature[OCTETS_LIMIT * OCTET];      /* by place in the octets */
    sum_warp warp[TSR_TRAINING_WARPS];
};

size_t sum_bytes(bool narrow, int references)
{
    const int size = narrow ? tsr_window<true>::size(references) : tsr_window<false>::size(references);
    return (sizeof(sum_memory) + 15) / 16 * 16 + TSR_TRAINING_WARPS * (size_t)size * sizeof(uint32_t);
}

/* Which feature has which place in the octets; by one thread. */
__device__ __forceinline__ void place_features(tsr_predictor_shape shape, int places, uint8_t *feature)
{
    const int n = tsr_features(shape), own = shape.neighbours - 1;
    int next = own; /* an earlier plane's, then the target where it has no place of its own */
    const bool ordered = shape.neighbours == TSR_AT(tsr_neighbours)[2];
    for (int i = 0; i < places; i++) {
        uint8_t f = ordered ? i < 3 * OCTET ? sum_order[i] : NO_FEATURE : i < own ? i : NO_FEATURE;
        if (ordered && f == own) {
            f = (uint8_t)n;
        } else if (f == NO_FEATURE && next < n + !ordered) {
            f = (uint8_t)next++;
        }
        feature[i] = f;
    }
}

/* The largest magnitude with a weight of a fit of at least k, lane k's threshold; twice, and two more. */
__device__ __forceinline__ uint32_t fit_threshold(int32_t mean, unsigned k)
{
    const int32_t most = tsr_fit_magnitude(k > 0 ? (int)k : 1, mean) + 2;
    return (uint32_t)tsr_min(most, INT16_MAX) * 0x10001u;
}

/* Sums of products of bytes: high x high, both crosses, low x low; by tile. */
template <int TILES> struct product_sums {
    uint32_t high[TILES][4], cross[TILES][4], low[TILES][4];
};

__device__ __forceinline__ uint32_t negated_pair(uint32_t x)
{
    return __vadd2(~x, 0x10001u);
}

/* The differences of two samples and two of their base. */
__device__ __forceinline__ uint32_t difference_of_pairs(uint32_t x, uint32_t base, int shift)
{
    return __byte_perm((uint32_t)tsr_difference((int16_t)x - (int16_t)base, shift),
                       (uint32_t)tsr_difference(tsr_asr((int32_t)x, 16) - tsr_asr((int32_t)base, 16), shift), 0x5410);
}

/* Adds a block's. SMALL: differences fit 16 bits, and are not shifted. */
template <int OCTETS, bool SMALL>
__device__ __forceinline__ void add_products(product_sums<product_tiles(OCTETS)> &sum, const uint32_t *pairs,
                                             const sum_warp &own, const int first[OCTETS], const int base[OCTETS],
                                             bool has_bases, int shift, int pitch, int t)
{
#pragma unroll 2
    for (int row = 0; row < TSR_PREDICTOR_BLOCK; row += 2) {
        uint32_t low[OCTETS][2], high[OCTETS][2], weighted_low[OCTETS][2], weighted_high[OCTETS][2];
#pragma unroll
        for (int r = 0; r < 2; r++) {
            const uint2 weight = *reinterpret_cast<const uint2 *>(&own.weights[row + r][2 * t]);
            const uint32_t *line = pairs + (row + r) * pitch;
            uint32_t b0 = line[base[0]], b1 = line[base[0] + 2];
            uint32_t less0 = negated_pair(b0), less1 = negated_pair(b1);
#pragma unroll
            for (int o = 0; o < OCTETS; o++) {
                if (o > 0 && has_bases) {
                    b0 = line[base[o]];
                    b1 = line[base[o] + 2];
                    less0 = negated_pair(b0);
                    less1 = negated_pair(b1);
                }
                const uint32_t x0 = line[first[o]], x1 = line[first[o] + 2];
                const uint32_t most = TSR_DIFFERENCE_LIMIT * 0x10001u,
                               least = (uint32_t)(-TSR_DIFFERENCE_LIMIT & 0xffff) * 0x10001u;
                const uint32_t d0 = SMALL ? __vmins2(__viaddmax_s16x2(x0, less0, least), most)
                                          : difference_of_pairs(x0, b0, shift),
                               d1 = SMALL ? __vmins2(__viaddmax_s16x2(x1, less1, least), most)
                                          : difference_of_pairs(x1, b1, shift);
                low[o][r] = __byte_perm(d0, d1, 0x6420);
                high[o][r] = __byte_perm(d0, d1, 0x7531);
                const int32_t w[4] = {__dp2a_lo((int)d0, (int)weight.x, 0), __dp2a_hi((int)d0, (int)weight.x, 0),
                                      __dp2a_lo((int)d1, (int)weight.y, 0), __dp2a_hi((int)d1, (int)weight.y, 0)};
                tsr_split_bytes(w, &weighted_low[o][r], &weighted_high[o][r]);
            }
        }
        int tile = 0;
#pragma unroll
        for (int column = 0; column < OCTETS; column++)
#pragma unroll
            for (int i = 0; i < octets_met(OCTETS, column); i += 2, tile++) {
                const int a = (column + i) % OCTETS, b = (column + i + 1) % OCTETS;
                tsr_multiply_bytes<true, true>(sum.high[tile], weighted_high[a][0], weighted_high[b][0],
                                               weighted_high[a][1], weighted_high[b][1], high[column][0],
                                               high[column][1]);
                tsr_multiply_bytes<true, false>(sum.cross[tile], weighted_high[a][0], weighted_high[b][0],
                                                weighted_high[a][1], weighted_high[b][1], low[column][0],
                                                low[column][1]);
                tsr_multiply_bytes<false, true>(sum.cross[tile], weighted_low[a][0], weighted_low[b][0],
                                                weighted_low[a][1], weighted_low[b][1], high[column][0],
                                                high[column][1]);
                tsr_multiply_bytes<false, false>(sum.low[tile], weighted_low[a][0], weighted_low[b][0],
                                                 weighted_low[a][1], weighted_low[b][1], low[column][0],
                                                 low[column][1]);
            }
    }
}

/* By all threads of a block: those of its blocks that count, in the order of their labels. */
__device__ __forceinline__ void order_blocks(sum_memory &m, const tsr_predict_batch &p, int plan_number, int round,
                                             uint32_t plane, uint32_t start, unsigned each)
{
    const unsigned lane = threadIdx.x % TSR_WARP, warp = threadIdx.x / TSR_WARP;
    const uint32_t stride = tsr_round_stride(p.plan[plan_number], round);
    const uint8_t *labels = p.label + (size_t)plan_number * tsr_all_tiles(p) * p.tile_blocks,
                  *first_label = p.first_label + (size_t)plane * TSR_COST_BINS;
    const uint32_t slots = tsr_slots_of_row(p, stride) * p.blocks_down * p.b.shape.tiles;
    for (unsigned i = threadIdx.x; i <= TSR_CLASS_LIMIT; i += TSR_TRAINING_THREADS) m.count[i] = 0;
    __syncthreads();
    for (unsigned slot = threadIdx.x; slot < each; slot += TSR_TRAINING_THREADS) {
        int label = NO_LABEL;
        if (start + slot < slots) {
            const tsr_block_place block = tsr_training_block(p, plane, start + slot, stride);
            if (block.is_there && tsr_samples_of(block) > 0) {
                const uint32_t median = p.median_cost[block.at], cost = tsr_median_block_cost(median);
                if (!tsr_median_block_is_flat(median))
                    label = round > 0 ? labels[block.at] : first_label[tsr_block_cost_bin(cost, tsr_samples_of(block))];
            }
        }
        m.label[slot] = (uint8_t)label;
        if (label != NO_LABEL) atomicAdd(&m.count[label], 1u);
    }
    __syncthreads();
    if (warp == 0) {
        const uint32_t here = lane < TSR_CLASS_LIMIT ? m.count[lane] : 0u, until = tsr_warp_scan(here, lane);
        if (lane < TSR_CLASS_LIMIT) m.cursor[lane] = until - here;
        if (lane == TSR_CLASS_LIMIT) m.count[TSR_CLASS_LIMIT] = until;
    }
    __syncthreads();
    for (unsigned slot = threadIdx.x; slot < each; slot += TSR_TRAINING_THREADS)
        if (m.label[slot] != NO_LABEL) m.order[atomicAdd(&m.cursor[m.label[slot]], 1u)] = (uint8_t)slot;
    __syncthreads();
}

/* Adds a label's sums to its class's, and clears them. */
template <int OCTETS>
__device__ __forceinline__ void give_products(product_sums<product_tiles(OCTETS)> &sum, unsigned long long *products,
                                              const uint8_t *feature, int n, int g, int t)
{
    int tile = 0;
#pragma unroll
    for (int column = 0; column < OCTETS; column++)
#pragma unroll
        for (int i = 0; i < octets_met(OCTETS, column); i += 2, tile++)
#pragma unroll
            for (int k = 0; k < 4; k++) {
                const int octet = (column + i + k / 2) % OCTETS;
                const int a = feature[octet * OCTET + g], b = feature[column * OCTET + 2 * t + k % 2];
                const int64_t all = (int64_t)(int32_t)sum.high[tile][k] * 65536 +
                                    (int64_t)(int32_t)sum.cross[tile][k] * 256 + sum.low[tile][k];
                sum.high[tile][k] = sum.cross[tile][k] = sum.low[tile][k] = 0;
                if (a > n || b > n || all == 0 || (octet == column && a < b) || i + k / 2 >= octets_met(OCTETS, column))
                    continue;
                const int row = tsr_max(a, b);
                atomicAdd(&products[row * (row + 1) / 2 + tsr_min(a, b)], (unsigned long long)all);
            }
}

/* What a warp of k_sums knows of its plane and plan. */
struct sum_plane {
    tsr_predictor_shape shape;
    int32_t range, offset; /* pairs hold samples less the latter, so that they have 16 bits, and a sign */
    int n, taps, shift;    /* n: features */
    uint32_t is_small;     /* differences of samples fit 16 bits */
    unsigned lane;
    int g, t; /* lane 4 g + t */
};

/* The class at hand: its matrix, and what says the weights of samples. */
struct sum_class {
    tsr_tap_bytes matrix;
    uint32_t threshold[TSR_FIT_WEIGHT_LIMIT];
    int32_t mean;
};

__device__ __forceinline__ sum_plane sum_plane_of(const tsr_plane_view &view, int set)
{
    sum_plane v;
    v.shape.neighbours = TSR_AT(tsr_neighbours)[set];
    v.shape.references = (uint8_t)view.references;
    v.n = tsr_features(v.shape);
    v.taps = tsr_taps(v.shape);
    v.shift = tsr_difference_shift(view.range);
    v.range = (int32_t)view.range;
    v.is_small = v.shift == 0 && view.reference_range <= TSR_SAMPLE_BIAS;
    v.offset = v.is_small ? 0 : TSR_SAMPLE_BIAS;
    v.lane = threadIdx.x % TSR_WARP;
    v.g = (int)(v.lane / 4);
    v.t = (int)(v.lane % 4);
    return v;
}

/* Where the samples of this lane's features begin. */
template <int OCTETS, typename Window>
__device__ __forceinline__ void find_features(const sum_plane &v, const uint8_t *feature, int first[OCTETS],
                                              int base[OCTETS])
{
#pragma unroll
    for (int o = 0; o < OCTETS; o++) {
        const int place = o * OCTET + v.g, f = feature[feature[place] == NO_FEATURE ? o * OCTET : place];
        first[o] =
            (f < v.n ? Window::of_tap(v.shape.neighbours, tsr_feature_tap(v.shape, f)) : (int)Window::FIRST) + 4 * v.t;
        base[o] = Window::of_tap(v.shape.neighbours, f < v.n ? tsr_feature_base(v.shape, f) : 0) + 4 * v.t;
    }
}

/* The places of the next blocks, one a lane. */
__device__ __forceinline__ void place_blocks(const tsr_predict_batch &p, const sum_memory &m, sum_warp &own,
                                             uint32_t plane, uint32_t start, uint32_t number, uint32_t end,
                                             uint32_t stride, unsigned lane)
{
    __syncwarp();
    if (number + lane < end) {
        const tsr_block_place block = tsr_training_block(p, plane, start + m.order[number + lane], stride);
        own.place[lane] = block;
        own.mean[lane] = (int32_t)(tsr_median_block_cost(p.median_cost[block.at]) / (uint32_t)tsr_samples_of(block));
    }
    __syncwarp();
}

/* A block's samples, two in a word, and by bytes for tensor cores. */
template <bool NARROW>
__device__ __forceinline__ void stage_pairs(const tsr_plane_view &view, const tsr_block_place &block,
                                            const sum_plane &v, uint32_t *pairs, sum_warp &own)
{
    tsr_window<NARROW>::stage(view, block, v.lane, [&](int place, int row, int quad, uint2 x) {
        x.x ^= (uint32_t)v.offset * 0x10001u;
        x.y ^= (uint32_t)v.offset * 0x10001u;
        const uint32_t next = __shfl_down_sync(TSR_FULL_WARP, x.x, 1);
        *reinterpret_cast<uint4 *>(pairs + place) =
            make_uint4(x.x, __byte_perm(x.x, x.y, 0x5432), x.y, __byte_perm(x.y, next, 0x5432));
        if (NARROW)
            own.quads[tsr_quad_place(row, quad)] = make_uint2(
                __byte_perm(x.x, x.y, 0x6420), __byte_perm(x.x, x.y, 0x7531) ^ (v.offset == 0 ? 0x80808080u : 0u));
    });
}

/* Predictions of columns 2 t and 2 t + 1 of a row, and those 8 further right, less offset: by the median edge
 * predictor,
 */
template <typename Window>
__device__ __forceinline__ void predict_edges(int32_t prediction[4], const uint32_t *pairs, int row, int t)
{
#pragma unroll
    for (int side = 0; side < 2; side++) {
        const uint32_t *at = pairs + Window::place(row, 2 * t + 8 * side);
        const uint32_t w = at[-1], u = at[-(int)Window::PITCH], c = at[-(int)Window::PITCH - 1];
        prediction[2 * side] = tsr_median_edge((int16_t)w, (int16_t)u, (int16_t)c);
        prediction[2 * side + 1] =
            tsr_median_edge(tsr_asr((int32_t)w, 16), tsr_asr((int32_t)u, 16), tsr_asr((int32_t)c, 16));
    }
}

/* or by a class. */
template <bool NARROW>
__device__ __forceinline__ void predict_linear(int32_t prediction[4], const sum_plane &v, const sum_class &of,
                                               const int16_t *weights, const uint32_t *pairs, const sum_warp &own,
                                               int row)
{
    typedef tsr_window<NARROW> window;
    int32_t linear[4];
    if (NARROW) {
        tsr_predict_row(linear, own.quads, row, of.matrix, v.t);
    } else {
#pragma unroll
        for (int k = 0; k < 4; k++) linear[k] = (v.offset - TSR_SAMPLE_BIAS) * (1 << TSR_WEIGHT_SHIFT);
        for (int k = 0; k < v.taps; k++) {
            const int32_t weight = weights[k];
            const uint32_t *at = pairs + window::of_tap(v.shape.neighbours, k) + row * window::PITCH + 2 * v.t;
#pragma unroll
            for (int side = 0; side < 2; side++) {
                linear[2 * side] += weight * (int16_t)at[8 * side];
                linear[2 * side + 1] += weight * tsr_asr((int32_t)at[8 * side], 16);
            }
        }
    }
#pragma unroll
    for (int k = 0; k < 4; k++) prediction[k] = tsr_linear_prediction(linear[k], v.range) - v.offset;
}

/* Weights of a row's samples, by pairs. */
template <bool NARROW>
__device__ __forceinline__ void weigh_row(const int32_t prediction[4], const sum_plane &v, const sum_class &of,
                                          const tsr_block_place &block, const uint32_t *pairs, sum_warp &own, int row)
{
    typedef tsr_window<NARROW> window;
    const int32_t y = block.y * TSR_PREDICTOR_BLOCK + row;
    const bool is_in = y >= block.span.row && y < block.span.end;
#pragma unroll
    for (int side = 0; side < 2; side++) {
        const int column = 2 * v.t + 8 * side;
        const uint32_t x = pairs[window::place(row, column)];
        const int32_t m0 = tsr_abs((int16_t)x - prediction[2 * side]),
                      m1 = tsr_abs(tsr_asr((int32_t)x, 16) - prediction[2 * side + 1]);
        uint32_t weight = 0;
        if (v.range < INT16_MAX) {
            const uint32_t less = ~__byte_perm((uint32_t)m0, (uint32_t)m1, 0x5410); /* by one more */
#pragma unroll
            for (int k = 0; k < TSR_FIT_WEIGHT_LIMIT; k++)
                weight += __viaddmin_s16x2_relu(less, of.threshold[k], 0x10001u);
        } else {
            weight = (uint32_t)(tsr_fit_weight(m0, of.mean) | tsr_fit_weight(m1, of.mean) << 16);
        }
        if (!is_in || column >= block.span.columns) weight = 0;
        if (column + 1 >= block.span.columns) weight &= 0xffffu;
        own.weights[row][v.t + 4 * side] = __byte_perm(weight, 0, 0x2440);
    }
}

/* The class's threshold and mean; of the first round those of the block, whose cost a sample is mean. */
__device__ __forceinline__ void set_mean(sum_class &of, int32_t mean, unsigned lane)
{
    of.mean = mean;
    const uint32_t lanes = fit_threshold(mean, lane);
#pragma unroll
    for (int k = 0; k < TSR_FIT_WEIGHT_LIMIT; k++) of.threshold[k] = __shfl_sync(TSR_FULL_WARP, lanes, k + 1);
}

/* Weights of a block's samples: columns 2 t and 2 t + 1 of the halves of rows g and g + 8. first_round: the
 * median edge predictor's residuals say them, not those of the class with these weights. */
template <bool NARROW>
__device__ __forceinline__ void weigh_block(const sum_plane &v, const sum_class &of, const tsr_block_place &block,
                                            bool first_round, const int16_t *weights, const uint32_t *pairs,
                                            sum_warp &own)
{
#pragma unroll
    for (int part = 0; part < 2; part++) {
        const int row = 8 * part + v.g;
        int32_t prediction[4];
        if (first_round)
            predict_edges<tsr_window<NARROW>>(prediction, pairs, row, v.t);
        else
            predict_linear<NARROW>(prediction, v, of, weights, pairs, own, row);
        weigh_row<NARROW>(prediction, v, of, block, pairs, own, row);
    }
}

template <int TILES> __device__ __forceinline__ void clear_products(product_sums<TILES> &sum)
{
#pragma unroll
    for (int i = 0; i < TILES; i++)
#pragma unroll
        for (int k = 0; k < 4; k++) sum.high[i][k] = sum.cross[i][k] = sum.low[i][k] = 0;
}

/* A warp a block, those of a label one after the other: sums of products of its differences. */
template <int OCTETS, bool NARROW>
__global__ void __launch_bounds__(TSR_TRAINING_THREADS)
    k_sums(const tsr_predict_batch p, int plan_number, int round, unsigned groups, unsigned each)
{
    typedef tsr_window<NARROW> window;
    TSR_DYNAMIC_SHARED(memory);
    sum_memory &m = *reinterpret_cast<sum_memory *>(memory);
    const unsigned warp = threadIdx.x / TSR_WARP;
    const uint32_t plane = blockIdx.x / groups;
    if (tsr_plane_is_constant(p, plane)) return;
    const tsr_training_plan plan = p.plan[plan_number];
    const tsr_plane_view view = tsr_view_plane(p, plane);
    const tsr_predictor_model &model = p.trial[(size_t)plan_number * p.b.shape.planes + plane];
    const tsr_device_totals &totals = p.totals[(size_t)plan_number * p.b.shape.planes + plane];
    const sum_plane v = sum_plane_of(view, plan.set);
    const uint32_t start = (blockIdx.x - plane * groups) * each, stride = tsr_round_stride(plan, round);
    if (threadIdx.x == TSR_TRAINING_THREADS - 1) place_features(v.shape, OCTETS * OCTET, m.feature);
    order_blocks(m, p, plan_number, round, plane, start, each);
    sum_warp &own = m.warp[warp];
    uint32_t *pairs = reinterpret_cast<uint32_t *>(memory + (sizeof(sum_memory) + 15) / 16 * 16) +
                      warp * (unsigned)window::size(view.references); /* a sample less offset and the next */
    int first[OCTETS], base[OCTETS]; /* where the samples of this lane's features begin */
    find_features<OCTETS, window>(v, m.feature, first, base);
    const bool has_bases = !NARROW && view.references > 0; /* more than one */
    product_sums<product_tiles(OCTETS)> sum;
    clear_products(sum);
    sum_class of;
    of.mean = 0;
    const uint32_t all = m.count[TSR_CLASS_LIMIT], from = all * warp / TSR_TRAINING_WARPS,
                   end = all * (warp + 1) / TSR_TRAINING_WARPS;
    for (uint32_t number = from; number < end; number++) {
        const unsigned in_batch = (number - from) % SUM_BATCH;
        if (in_batch == 0) place_blocks(p, m, own, plane, start, number, end, stride, v.lane);
        const tsr_block_place block = own.place[in_batch];
        const int label = m.label[m.order[number]];
        const bool is_new = number == from || label != m.label[m.order[number - 1]],
                   is_last = number + 1 == end || label != m.label[m.order[number + 1]];
        __syncwarp();
        stage_pairs<NARROW>(view, block, v, pairs, own);
        if (round == 0 || is_new)
            set_mean(of, round == 0 ? own.mean[in_batch] : tsr_class_mean(totals.cost[label], totals.samples[label]),
                     v.lane);
        if (NARROW && round > 0 && is_new) {
            tsr_spread_taps(own.tap, model.weight[label], v.taps, v.lane);
            __syncwarp();
            tsr_tap_matrix(of.matrix, own.tap, v.g, v.t);
        }
        __syncwarp();
        weigh_block<NARROW>(v, of, block, round == 0, model.weight[label], pairs, own);
        __syncwarp();
        if (v.is_small)
            add_products<OCTETS, true>(sum, pairs, own, first, base, has_bases, 0, window::PITCH, v.t);
        else
            add_products<OCTETS, false>(sum, pairs, own, first, base, has_bases, v.shift, window::PITCH, v.t);
        if (is_last)
            give_products<OCTETS>(sum,
                                  p.products + ((size_t)plane * p.class_count + (unsigned)label) * p.class_products,
                                  m.feature, v.n, v.g, v.t);
    }
}

typedef void sum_kernel(tsr_predict_batch, int, int, unsigned, unsigned);

sum_kernel *sums_of(tsr_predictor_shape shape, bool is_narrow)
{
    const int octets = (tsr_features(shape) + OCTET) / OCTET;
    if (is_narrow) return octets <= 2 ? k_sums<2, true> : k_sums<3, true>;
    return octets <= 2   ? k_sums<2, false>
           : octets == 3 ? k_sums<3, false>
           : octets == 4 ? k_sums<4, false>
                         : k_sums<5, false>;
}

} // namespace

cudaError_t tsr_train_sums(const tsr_predict_batch &p, int number, int round, cudaStream_t stream)
{
    const tsr_training_plan plan = p.plan[number];
    const bool is_narrow = plan.set < 3 && p.references == 0;
    const uint32_t slots = tsr_slots_of_row(p, tsr_round_stride(plan, round)) * p.blocks_down * p.b.shape.tiles;
    const unsigned each = p.b.shape.planes * ((slots + SUM_SLOTS - 1) / SUM_SLOTS) < SUM_GRID ? SUM_FEW : SUM_SLOTS,
                   groups = (slots + each - 1) / each;
    const size_t bytes = sum_bytes(is_narrow, p.references);
    sum_kernel *const sums = sums_of(tsr_shape_of_plan(p, plan), is_narrow);
    TSR_CUDA_TRY(tsr_allow_shared(sums, bytes));
    return tsr_launch(sums, p.b.shape.planes * groups, TSR_TRAINING_THREADS, bytes, stream, p, number, round, groups,
                      each);
}
