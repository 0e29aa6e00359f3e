/* Training linear predictors on the device, many planes at once: the steps of train_cpu.h, whose decisions are those of
 * entropy/predictor_training.h. FORMAT.md sections 7.1 and 7.9.
 *
 * A warp takes a block of 16 x 16 samples. Sums are integers, so their order is free: a block's products add up in 32
 * bits, those of a group of blocks in two halves in shared memory, of a plane in 64 bits. */
#include "device.cuh"

#include "byte_products.cuh"
#include "code_lengths.cuh"
#include "merge_tables.cuh"
#include "predict_blocks.cuh"

namespace
{

enum {
    WARPS = 4,
    THREADS = WARPS * TSR_WARP,
    GROUP = 16, /* blocks that a warp takes, one after the other */
    BLOCK_SAMPLES = TSR_PREDICTOR_BLOCK * TSR_PREDICTOR_BLOCK
};

__device__ __forceinline__ size_t all_tiles(const tsr_predict_batch &p)
{
    return (size_t)p.b.planes * p.b.tiles;
}

__device__ __forceinline__ int32_t samples_of(const tsr_block_place &block)
{
    return block.span.columns * tsr_max(0, block.span.end - block.span.row);
}

/* Places of the blocks that a warp takes: number first and every WARPS-th behind it, of those that take part under a
 * stride, or of all with stride 0. A lane each. */
__device__ __forceinline__ void place_blocks(tsr_block_place place[GROUP], const tsr_predict_batch &p, uint32_t plane,
                                             uint32_t first, uint32_t stride, unsigned lane)
{
    if (lane < GROUP) {
        const uint32_t number = first + lane * WARPS;
        const uint32_t slots =
            stride == 0 ? p.b.tiles * p.tile_blocks : tsr_slots_of_row(p, stride) * p.blocks_down * p.b.tiles;
        tsr_block_place block;
        block.is_there = false;
        if (number < slots)
            block = stride == 0 ? tsr_any_block(p, plane, number) : tsr_training_block(p, plane, number, stride);
        place[lane] = block;
    }
    __syncwarp();
}

/* ---- Median edge costs, first labels ------------------------------------------------------------------------ */

/* Four samples from a column on, in a row of either half of a block, and those above; left of them, where the block
 * begins. */
template <bool ALIGNED>
__device__ __forceinline__ void load_medians(const uint16_t *from, const tsr_block_place &block, int32_t column,
                                             int row, uint2 x[2], uint2 above[2], uint32_t left[2], uint32_t corner[2])
{
    const int32_t y = block.y * TSR_PREDICTOR_BLOCK + row;
#pragma unroll
    for (int half = 0; half < 2; half++) {
        x[half] = tsr_quad_at<ALIGNED>(from, block.tile, column, y + 8 * half);
        above[half] = tsr_quad_at<ALIGNED>(from, block.tile, column, y + 8 * half - 1);
        left[half] = corner[half] = 0;
        if (column > block.span.column) continue;
        left[half] = tsr_sample_at(from, block.tile, column - 1, y + 8 * half);
        corner[half] = tsr_sample_at(from, block.tile, column - 1, y + 8 * half - 1);
    }
}

/* A lane takes four samples of a row, of the upper half of a block and then of the lower. */
__global__ void __launch_bounds__(THREADS) k_median_costs(const tsr_predict_batch p, unsigned groups)
{
    __shared__ tsr_block_place places[WARPS][GROUP];
    const unsigned lane = threadIdx.x % TSR_WARP, warp = threadIdx.x / TSR_WARP;
    const uint32_t plane = blockIdx.x / groups;
    if (tsr_plane_is_constant(p, plane)) return;
    const uint16_t *samples = p.b.samples + plane * p.b.plane_samples;
    const uint32_t stride = p.plan[0].block_stride;
    place_blocks(places[warp], p, plane, (blockIdx.x - plane * groups) * (WARPS * GROUP) + warp, 0, lane);
    for (int number = 0; number < GROUP; number++) {
        const tsr_block_place block = places[warp][number];
        if (!block.is_there) continue;
        const uint16_t *from = samples + block.tile.first;
        const int32_t own = (int32_t)(lane % 4) * TSR_QUAD, column = block.span.column + own;
        uint2 x[2], above[2]; /* and in lane 0 of a row those to the left, of which one is wanted */
        uint32_t left[2], corner[2];
        if (tsr_quads_are_aligned(from, block.tile))
            load_medians<true>(from, block, column, (int)(lane / 4), x, above, left, corner);
        else
            load_medians<false>(from, block, column, (int)(lane / 4), x, above, left, corner);
        uint32_t cost = 0, zeros = 0;
#pragma unroll
        for (int half = 0; half < 2; half++) {
            const int32_t y = block.y * TSR_PREDICTOR_BLOCK + 8 * half + (int)(lane / 4);
            const uint32_t before = __shfl_up_sync(TSR_FULL_WARP, x[half].y, 1) >> 16,
                           before_above = __shfl_up_sync(TSR_FULL_WARP, above[half].y, 1) >> 16;
            int32_t w = (int32_t)(own > 0 ? before : left[half]), c = (int32_t)(own > 0 ? before_above : corner[half]);
            const bool is_in = y >= block.span.row && y < block.span.end;
#pragma unroll
            for (int i = 0; i < TSR_QUAD; i++) {
                const int32_t at = (int32_t)((i < 2 ? x[half].x : x[half].y) >> (16 * (i % 2)) & 0xffffu),
                              n = (int32_t)((i < 2 ? above[half].x : above[half].y) >> (16 * (i % 2)) & 0xffffu);
                const int32_t magnitude = tsr_abs(at - tsr_median_edge(w, n, c));
                if (is_in && own + i < block.span.columns) {
                    cost += (uint32_t)tsr_min(magnitude, TSR_COST_MOST);
                    zeros += magnitude == 0;
                }
                w = at;
                c = n;
            }
        }
        cost = tsr_warp_sum(cost);
        zeros = tsr_warp_sum(zeros);
        if (lane != 0) continue;
        p.median_cost[block.at] = tsr_median_block(cost, (int32_t)zeros, samples_of(block));
        if (samples_of(block) > 0 && tsr_block_takes_part(stride, block.number, block.x, block.y))
            atomicAdd(&p.cost_levels[(size_t)plane * TSR_COST_LEVELS + tsr_block_cost_level(cost, samples_of(block))],
                      1ull);
    }
}

/* A block a plane: the first labels of a plan. */
__global__ void __launch_bounds__(TSR_COST_LEVELS) k_first_labels(const tsr_predict_batch p, int classes)
{
    __shared__ uint64_t sums[TSR_COST_LEVELS / TSR_WARP];
    const uint32_t plane = blockIdx.x;
    const uint64_t here = p.cost_levels[(size_t)plane * TSR_COST_LEVELS + threadIdx.x];
    uint64_t total;
    const uint64_t before = tsr_block_scan<TSR_COST_LEVELS>(here, sums, &total);
    p.first_label[(size_t)plane * TSR_COST_LEVELS + threadIdx.x] = tsr_first_label(before, here, total, classes);
}

/* ---- Sums of products ----------------------------------------------------------------------------------------- */

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
static_assert((int64_t)SUM_SLOTS * BLOCK_SAMPLES * 255 * 255 <= UINT32_MAX, "low x low");
static_assert((int64_t)SUM_SLOTS * BLOCK_SAMPLES * 2 * 255 * 32 <= INT32_MAX, "low x high");

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
    sum_warp warp[WARPS];
};

size_t sum_bytes(bool narrow, int references)
{
    const int size = narrow ? tsr_window<true>::size(references) : tsr_window<false>::size(references);
    return (sizeof(sum_memory) + 15) / 16 * 16 + WARPS * (size_t)size * sizeof(uint32_t);
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

/* Weights of a fit by magnitude, as its thresholds say: the weight is at least k where 2 magnitude + 3 is at most
 * 5 (2 mean + 3) / 2 k. Lane k's threshold; twice, and two more. */
__device__ __forceinline__ uint32_t fit_threshold(int32_t mean, unsigned k)
{
    const int32_t most = tsr_asr(5 * (2 * mean + 3) / (2 * (int32_t)(k > 0 ? k : 1u)) - 3, 1) + 2;
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
    const uint32_t stride = p.plan[plan_number].block_stride;
    const uint8_t *labels = p.label + (size_t)plan_number * all_tiles(p) * p.tile_blocks,
                  *first_label = p.first_label + (size_t)plane * TSR_COST_LEVELS;
    const uint32_t slots = tsr_slots_of_row(p, stride) * p.blocks_down * p.b.tiles;
    for (unsigned i = threadIdx.x; i <= TSR_CLASS_LIMIT; i += THREADS) m.count[i] = 0;
    __syncthreads();
    for (unsigned slot = threadIdx.x; slot < each; slot += THREADS) {
        int label = NO_LABEL;
        if (start + slot < slots) {
            const tsr_block_place block = tsr_training_block(p, plane, start + slot, stride);
            if (block.is_there && samples_of(block) > 0) {
                const uint32_t median = p.median_cost[block.at], cost = tsr_median_block_cost(median);
                if (!tsr_median_block_is_flat(median))
                    label = round > 0 ? labels[block.at] : first_label[tsr_block_cost_level(cost, samples_of(block))];
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
    for (unsigned slot = threadIdx.x; slot < each; slot += THREADS)
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

/* A warp a block, those of a label one after the other: sums of products of its differences. */
template <int OCTETS, bool NARROW>
__global__ void __launch_bounds__(THREADS)
    k_sums(const tsr_predict_batch p, int plan_number, int round, unsigned groups, unsigned each)
{
    typedef tsr_window<NARROW> window;
    constexpr int TILES = product_tiles(OCTETS);
    TSR_DYNAMIC_SHARED(memory);
    sum_memory &m = *reinterpret_cast<sum_memory *>(memory);
    const unsigned lane = threadIdx.x % TSR_WARP, warp = threadIdx.x / TSR_WARP;
    const int g = (int)(lane / 4), t = (int)(lane % 4);
    const uint32_t plane = blockIdx.x / groups;
    if (tsr_plane_is_constant(p, plane)) return;
    const tsr_training_plan plan = p.plan[plan_number];
    const tsr_plane_view view = tsr_view_plane(p, plane);
    const tsr_predictor_model &model = p.trial[(size_t)plan_number * p.b.planes + plane];
    const tsr_device_totals &totals = p.totals[(size_t)plan_number * p.b.planes + plane];
    tsr_predictor_shape shape;
    shape.neighbours = TSR_AT(tsr_neighbours)[plan.set];
    shape.references = (uint8_t)view.references;
    const int n = tsr_features(shape), taps = tsr_taps(shape), shift = tsr_difference_shift(view.range);
    const int32_t range = (int32_t)view.range;
    const int32_t offset = shift > 0 ? TSR_SAMPLE_BIAS : 0; /* samples less this have 16 bits, and a sign */

    const uint32_t start = (blockIdx.x - plane * groups) * each;
    if (threadIdx.x == THREADS - 1) place_features(shape, OCTETS * OCTET, m.feature);
    order_blocks(m, p, plan_number, round, plane, start, each);
    sum_warp &own = m.warp[warp];
    uint32_t *pairs = reinterpret_cast<uint32_t *>(memory + (sizeof(sum_memory) + 15) / 16 * 16) +
                      warp * (unsigned)window::size(view.references); /* a sample less offset and the next */
    int first[OCTETS], base[OCTETS]; /* where the samples of this lane's features begin */
#pragma unroll
    for (int o = 0; o < OCTETS; o++) {
        const int place = o * OCTET + g, f = m.feature[m.feature[place] == NO_FEATURE ? o * OCTET : place];
        first[o] = (f < n ? window::of_tap(shape.neighbours, tsr_feature_tap(shape, f)) : (int)window::FIRST) + 4 * t;
        base[o] = window::of_tap(shape.neighbours, f < n ? tsr_feature_base(shape, f) : 0) + 4 * t;
    }
    const bool has_bases = !NARROW && view.references > 0; /* more than one */
    product_sums<TILES> sum;
#pragma unroll
    for (int i = 0; i < TILES; i++)
#pragma unroll
        for (int k = 0; k < 4; k++) sum.high[i][k] = sum.cross[i][k] = sum.low[i][k] = 0;
    tsr_tap_bytes matrix; /* of the class at hand */
    uint32_t threshold[TSR_FIT_WEIGHT_LIMIT];
    int32_t mean = 0;
    const uint32_t all = m.count[TSR_CLASS_LIMIT], from = all * warp / WARPS, end = all * (warp + 1) / WARPS;
    for (uint32_t number = from; number < end; number++) {
        const unsigned in_batch = (number - from) % SUM_BATCH;
        if (in_batch == 0) {
            __syncwarp();
            if (number + lane < end) {
                const tsr_block_place block =
                    tsr_training_block(p, plane, start + m.order[number + lane], plan.block_stride);
                own.place[lane] = block;
                own.mean[lane] =
                    (int32_t)(tsr_median_block_cost(p.median_cost[block.at]) / (uint32_t)samples_of(block));
            }
            __syncwarp();
        }
        const tsr_block_place block = own.place[in_batch];
        const int label = m.label[m.order[number]];
        const bool is_new = number == from || label != m.label[m.order[number - 1]],
                   is_last = number + 1 == end || label != m.label[m.order[number + 1]];
        __syncwarp();
        window::stage(view, block, lane, [&](int place, int row, int quad, uint2 x) {
            x.x ^= (uint32_t)offset * 0x10001u;
            x.y ^= (uint32_t)offset * 0x10001u;
            const uint32_t next = __shfl_down_sync(TSR_FULL_WARP, x.x, 1);
            *reinterpret_cast<uint4 *>(pairs + place) =
                make_uint4(x.x, __byte_perm(x.x, x.y, 0x5432), x.y, __byte_perm(x.y, next, 0x5432));
            if (NARROW)
                own.quads[tsr_quad_place(row, quad)] = make_uint2(
                    __byte_perm(x.x, x.y, 0x6420), __byte_perm(x.x, x.y, 0x7531) ^ (offset == 0 ? 0x80808080u : 0u));
        });
        if (round == 0 || is_new) {
            mean = round == 0 ? own.mean[in_batch] : tsr_class_mean(totals.cost[label], totals.samples[label]);
            const uint32_t lanes = fit_threshold(mean, lane);
#pragma unroll
            for (int k = 0; k < TSR_FIT_WEIGHT_LIMIT; k++) threshold[k] = __shfl_sync(TSR_FULL_WARP, lanes, k + 1);
        }
        if (NARROW && round > 0 && is_new) {
            tsr_spread_taps(own.tap, model.weight[label], taps, lane);
            __syncwarp();
            tsr_tap_matrix(matrix, own.tap, g, t);
        }
        __syncwarp();

        /* Weights of samples, by pairs: columns 2 t and 2 t + 1 of the halves of rows g and g + 8. */
#pragma unroll
        for (int part = 0; part < 2; part++) {
            const int row = 8 * part + g;
            int32_t prediction[4]; /* less offset */
            if (round == 0) {
#pragma unroll
                for (int side = 0; side < 2; side++) {
                    const uint32_t *at = pairs + window::place(row, 2 * t + 8 * side);
                    const uint32_t w = at[-1], u = at[-(int)window::PITCH], c = at[-(int)window::PITCH - 1];
                    prediction[2 * side] = tsr_median_edge((int16_t)w, (int16_t)u, (int16_t)c);
                    prediction[2 * side + 1] =
                        tsr_median_edge(tsr_asr((int32_t)w, 16), tsr_asr((int32_t)u, 16), tsr_asr((int32_t)c, 16));
                }
            } else {
                int32_t linear[4];
                if (NARROW) {
                    tsr_predict_row(linear, own.quads, row, matrix, t);
                } else {
#pragma unroll
                    for (int k = 0; k < 4; k++) linear[k] = (offset - TSR_SAMPLE_BIAS) * (1 << TSR_WEIGHT_SHIFT);
                    for (int k = 0; k < taps; k++) {
                        const int32_t weight = model.weight[label][k];
                        const uint32_t *at = pairs + window::of_tap(shape.neighbours, k) + row * window::PITCH + 2 * t;
#pragma unroll
                        for (int side = 0; side < 2; side++) {
                            linear[2 * side] += weight * (int16_t)at[8 * side];
                            linear[2 * side + 1] += weight * tsr_asr((int32_t)at[8 * side], 16);
                        }
                    }
                }
#pragma unroll
                for (int k = 0; k < 4; k++) prediction[k] = tsr_linear_prediction(linear[k], range) - offset;
            }
            const int32_t y = block.y * TSR_PREDICTOR_BLOCK + row;
            const bool is_in = y >= block.span.row && y < block.span.end;
#pragma unroll
            for (int side = 0; side < 2; side++) {
                const int column = 2 * t + 8 * side;
                const uint32_t x = pairs[window::place(row, column)];
                const int32_t m0 = tsr_abs((int16_t)x - prediction[2 * side]),
                              m1 = tsr_abs(tsr_asr((int32_t)x, 16) - prediction[2 * side + 1]);
                uint32_t weight = 0;
                if (range < INT16_MAX) {
                    const uint32_t less = ~__byte_perm((uint32_t)m0, (uint32_t)m1, 0x5410); /* by one more */
#pragma unroll
                    for (int k = 0; k < TSR_FIT_WEIGHT_LIMIT; k++)
                        weight += __viaddmin_s16x2_relu(less, threshold[k], 0x10001u);
                } else {
                    weight = (uint32_t)(tsr_fit_weight(m0, mean) | tsr_fit_weight(m1, mean) << 16);
                }
                if (!is_in || column >= block.span.columns) weight = 0;
                if (column + 1 >= block.span.columns) weight &= 0xffffu;
                own.weights[row][t + 4 * side] = __byte_perm(weight, 0, 0x2440);
            }
        }
        __syncwarp();

        if (shift == 0)
            add_products<OCTETS, true>(sum, pairs, own, first, base, has_bases, 0, window::PITCH, t);
        else
            add_products<OCTETS, false>(sum, pairs, own, first, base, has_bases, shift, window::PITCH, t);

        if (is_last)
            give_products<OCTETS>(sum,
                                  p.products + ((size_t)plane * p.class_count + (unsigned)label) * p.class_products,
                                  m.feature, n, g, t);
    }
}

/* ---- Fit ---------------------------------------------------------------------------------------------------- */

/* tsr_solve_predictor by a few lanes: its steps, each number of a step by a lane. All that is kept fits 32 bits. Eight
 * lanes waste least of a step (16 took as long where classes are 6144); a warp, where classes are few, waits least. */
enum { FIT_WARPS = 4, FIT_THREADS = FIT_WARPS * TSR_WARP, FIT_LANES = 8, MANY_CLASSES = 4096 };
struct fit_memory {
    int32_t *c; /* rows of pitch numbers; above the diagonal L, transposed */
    int pitch;
    int16_t *of_feature;
    int8_t *shift;
};

/* Rows lie in different banks. */
__host__ __device__ __forceinline__ int fit_pitch(int n)
{
    return (n + 1) | 1;
}

__host__ __device__ __forceinline__ size_t fit_class_bytes(int n)
{
    return (sizeof(int32_t) * (size_t)((n + 1) * fit_pitch(n)) + sizeof(int16_t) * TSR_FEATURES_LIMIT +
            TSR_FEATURES_LIMIT + 1 + 15) /
           16 * 16;
}

__device__ __forceinline__ fit_memory fit_memory_at(unsigned char *memory, int n)
{
    fit_memory s;
    s.pitch = fit_pitch(n);
    s.c = reinterpret_cast<int32_t *>(memory);
    s.of_feature = reinterpret_cast<int16_t *>(s.c + (n + 1) * s.pitch);
    s.shift = reinterpret_cast<int8_t *>(s.of_feature + TSR_FEATURES_LIMIT);
    return s;
}

/* lanes: those of the class, of which this is number own. */
template <int LANES>
__device__ __forceinline__ void solve(const unsigned long long *sums, int n, const fit_memory &s, unsigned lanes,
                                      int own)
{
    constexpr int COLUMNS = LANES == TSR_WARP ? LANES / 2 : LANES, LINES = LANES / COLUMNS,
                  EACH = (TSR_FEATURES_LIMIT + LANES - 1) / LANES;
    const int column = own % COLUMNS, line = own / COLUMNS;
    for (int i = own; i <= n; i += LANES) {
        const int64_t square = (int64_t)sums[i * (i + 1) / 2 + i];
        s.shift[i] = (int8_t)(square > 0 ? tsr_half_shift(square) : 0);
    }
    __syncwarp(lanes);
    for (int i = line; i <= n; i += LINES)
        for (int j = column; j <= i; j += COLUMNS)
            s.c[i * s.pitch + j] =
                (int32_t)tsr_solver_entry((int64_t)sums[i * (i + 1) / 2 + j], s.shift[i] + s.shift[j], i == j);
    __syncwarp(lanes);
    for (int k = 0; k < n; k++) {
        int32_t *const of_step = s.c + k * s.pitch; /* L's column */
        const int64_t pivot = tsr_solver_pivot(of_step[k]);
        for (int i = k + 1 + own; i <= n; i += LANES)
            of_step[i] = (int32_t)tsr_solver_quotient(s.c[i * s.pitch + k], pivot);
        __syncwarp(lanes);
        for (int j = k + 1 + column; j <= n; j += COLUMNS) { /* every row from the diagonal on, or every second */
            const int32_t l = of_step[j];
            const int start = LINES == 1 ? j : j + ((j + k + 1 + line) & 1);
            int32_t *to = s.c + start * s.pitch + j;
            const int32_t *from = s.c + start * s.pitch + k;
            for (int i = start; i <= n; i += LINES, to += LINES * s.pitch, from += LINES * s.pitch)
                *to = (int32_t)tsr_solver_step(*to, *from, l);
        }
        __syncwarp(lanes);
    }
    int64_t left[EACH]; /* of features own, own + LANES, ... */
#pragma unroll
    for (int e = 0; e < EACH; e++) {
        const int i = e * LANES + own;
        left[e] = i < n ? s.c[i * s.pitch + n] : 0;
    }
    for (int i = n - 1; i >= 0; i--) {
        int32_t v = 0;
#pragma unroll
        for (int e = 0; e < EACH; e++)
            if (i / LANES == e) v = (int32_t)tsr_clamp_30(left[e]);
        v = __shfl_sync(lanes, v, i % LANES, LANES);
        if (own == 0) s.c[i * s.pitch + i] = v; /* the diagonal has had its turn */
#pragma unroll
        for (int e = 0; e < EACH; e++) {
            if (e * LANES >= i) continue;
            const int k = e * LANES + own;
            if (k < i) left[e] -= tsr_asr64((int64_t)s.c[k * s.pitch + i] * v, TSR_SOLVER_SHIFT);
        }
    }
    __syncwarp(lanes);
    for (int i = own; i < n; i += LANES)
        s.of_feature[i] = tsr_solver_weight(s.c[i * s.pitch + i], s.shift[i] - s.shift[n]);
    __syncwarp(lanes);
}

/* LANES lanes a class: its weights from its products, which are cleared for the next round, as are the totals. */
template <int LANES>
__global__ void __launch_bounds__(FIT_THREADS) k_fit(const tsr_predict_batch p, int plan_number, int features)
{
    TSR_DYNAMIC_SHARED(memory);
    const tsr_training_plan plan = p.plan[plan_number];
    const uint32_t here = threadIdx.x / LANES, number = blockIdx.x * (FIT_THREADS / LANES) + here;
    const uint32_t plane = number / plan.classes, c = number - plane * plan.classes;
    const int own = (int)(threadIdx.x % LANES);
    const unsigned lanes = TSR_FULL_WARP >> (TSR_WARP - LANES) << (threadIdx.x % TSR_WARP - (unsigned)own);
    if (plane >= p.b.planes || tsr_plane_is_constant(p, plane)) return;
    tsr_predictor_model &model = p.trial[(size_t)plan_number * p.b.planes + plane];
    tsr_device_totals &totals = p.totals[(size_t)plan_number * p.b.planes + plane];
    unsigned long long *sums = p.products + ((size_t)plane * p.class_count + c) * p.class_products;
    tsr_predictor_shape shape;
    shape.neighbours = TSR_AT(tsr_neighbours)[plan.set];
    shape.references = (uint8_t)tsr_view_plane(p, plane).references;
    const int n = tsr_features(shape);
    const fit_memory m = fit_memory_at(memory + here * fit_class_bytes(features), n);
    solve<LANES>(sums, n, m, lanes, own);
    if (own == 0) {
        tsr_take_weights(shape, m.of_feature, model.weight[c]);
        totals.cost[c] = totals.samples[c] = 0;
        if (c == 0) {
            totals.cost[plan.classes] = totals.samples[plan.classes] = 0;
            model.set = plan.set;
            model.shape = shape;
        }
    }
    for (int i = own; i < (n + 1) * (n + 2) / 2; i += LANES) sums[i] = 0;
}

/* ---- Labels ------------------------------------------------------------------------------------------------- */

/* A warp a block: the class that leaves least of it, of those on the shortlist; in the end, of all blocks that are not
 * flat, and the median edge predictor competes.
 * Predictions of 16 samples under 8 classes are a product of matrices, by tensor cores. A word of its rows is a quad:
 * the low or the high bytes of four samples beside each other, at the sample's place in the row or as far beside and
 * above it as a slot says. Lane 4 g + t has, of the samples in columns g and g + 8 of a row, the quads of slots t,
 * 4 + t, ... and those above them, which it has had in the row before; of the weights likewise those of class g of
 * eight. Where at most four classes are left for the last eight, two rows share them, as they do a shortlist of four.
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
    return 2 * sizeof(uint32_t) * (size_t)tsr_window<NARROW>::size(references) + BLOCK_SAMPLES * sizeof(uint16_t);
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
        for (unsigned i = threadIdx.x; i < SLOTS_LIMIT * SLOT_TAPS; i += THREADS) tap_at[i] = NO_TAP;
        __syncthreads();
        if ((int)threadIdx.x < neighbours + view.references * TSR_REFERENCE_TAPS)
            tap_at[slot_byte(neighbours, (int)threadIdx.x)] = (uint8_t)threadIdx.x;
        __syncthreads();
        for (int i = (int)threadIdx.x; i < 8 * EIGHTS * 4 * STEPS; i += THREADS) {
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
            first = ~tsr_warp_max(~first);
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
        return ~tsr_warp_max(~best);
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
        return ~tsr_warp_max(~key);
    }
};

template <int STEPS, int EIGHTS, bool SHARED>
__global__ void __launch_bounds__(THREADS, STEPS == 1 ? 5 : 3)
    k_labels(const tsr_predict_batch p, int plan_number, unsigned groups, bool last)
{
    TSR_DYNAMIC_SHARED(memory);
    __shared__ unsigned long long cost_of[TSR_LABELS_LIMIT];
    __shared__ uint32_t samples_with[TSR_LABELS_LIMIT];
    __shared__ label_table<STEPS, EIGHTS> of_classes;
    __shared__ uint8_t tap_at[SLOTS_LIMIT * SLOT_TAPS];
    __shared__ tsr_block_place places[WARPS][GROUP];
    const unsigned lane = threadIdx.x % TSR_WARP, warp = threadIdx.x / TSR_WARP;
    const uint32_t plane = blockIdx.x / groups;
    if (tsr_plane_is_constant(p, plane)) return;
    const tsr_plane_view view = tsr_view_plane(p, plane);
    const tsr_training_plan plan = p.plan[plan_number];
    if (threadIdx.x < TSR_LABELS_LIMIT) cost_of[threadIdx.x] = 0, samples_with[threadIdx.x] = 0;
    place_blocks(places[warp], p, plane, (blockIdx.x - plane * groups) * (WARPS * GROUP) + warp,
                 last ? 0 : plan.block_stride, lane);
    block_costs<STEPS, EIGHTS, SHARED> costs;
    costs.begin(p, view, plan, p.trial[(size_t)plan_number * p.b.planes + plane], of_classes, tap_at, memory);

    uint8_t *labels = p.label + (size_t)plan_number * all_tiles(p) * p.tile_blocks;
    for (int number = 0; number < GROUP; number++) {
        const tsr_block_place block = places[warp][number];
        if (!block.is_there) continue;
        const uint32_t median = p.median_cost[block.at];
        if (last && tsr_median_block_is_flat(median)) continue; /* k_flat_labels takes it */
        costs.stage(view, block);
        const uint32_t key = samples_of(block) == BLOCK_SAMPLES && costs.range <= TSR_COST_MOST + 1
                                 ? costs.template label<WHOLE>(block, plan.classes)
                                 : costs.template label<MAGNITUDES>(block, plan.classes);
        uint32_t least = key / TSR_WARP, label = key % TSR_WARP;
        if (last && median < least) {
            least = median;
            label = plan.classes;
        }
        if (lane != 0) continue;
        labels[block.at] = (uint8_t)label;
        atomicAdd(&cost_of[label], (unsigned long long)least);
        atomicAdd(&samples_with[label], (uint32_t)samples_of(block));
    }
    __syncthreads();
    tsr_device_totals &totals = p.totals[(size_t)plan_number * p.b.planes + plane];
    const unsigned c = threadIdx.x;
    if (c >= TSR_LABELS_LIMIT || samples_with[c] + cost_of[c] == 0) return;
    atomicAdd(&totals.cost[c], cost_of[c]);
    atomicAdd(&totals.samples[c], (unsigned long long)samples_with[c]);
}

/* The logarithms of what the median edge predictor leaves of a block in a lane's columns t, t + 4, ... of rows g and
 * g + 8. */
template <typename Costs>
__device__ __forceinline__ uint32_t median_logarithms(const Costs &costs, const uint32_t *logarithms,
                                                      const tsr_block_place &block)
{
    uint32_t sum = 0;
    for (int i = 0; i < 8; i++) {
        const int row = costs.g + i / 4 * 8, column = costs.t + i % 4 * 4;
        const int32_t y = block.y * TSR_PREDICTOR_BLOCK + row;
        if (y < block.span.row || y >= block.span.end || column >= block.span.columns) continue;
        const int at = Costs::window::place(row, column);
        const auto sample = [&](int place) {
            return (int32_t)((costs.low[place] & 255u) | (costs.high[place] & 255u) << 8) ^ TSR_SAMPLE_BIAS;
        };
        const int32_t own = sample(at), prediction = tsr_median_edge(sample(at - 1), sample(at - Costs::window::PITCH),
                                                                     sample(at - Costs::window::PITCH - 1));
        sum += logarithm_of(logarithms, (uint32_t)tsr_abs(own - prediction));
    }
    return tsr_warp_sum(sum);
}

/* A warp a flat block, in the end: the label of the least sum of logarithms. */
template <int STEPS, int EIGHTS>
__global__ void __launch_bounds__(THREADS) k_flat_labels(const tsr_predict_batch p, int plan_number, unsigned groups)
{
    TSR_DYNAMIC_SHARED(memory);
    __shared__ uint32_t logarithms[LOGARITHMS_KEPT];
    __shared__ label_table<STEPS, EIGHTS> of_classes;
    __shared__ uint8_t tap_at[SLOTS_LIMIT * SLOT_TAPS], slots[FLAT_SLOTS];
    __shared__ unsigned count;
    const unsigned lane = threadIdx.x % TSR_WARP, warp = threadIdx.x / TSR_WARP;
    const uint32_t plane = blockIdx.x / groups, first = (blockIdx.x - plane * groups) * FLAT_SLOTS;
    if (tsr_plane_is_constant(p, plane)) return;
    if (threadIdx.x == 0) count = 0;
    __syncthreads();
    for (unsigned slot = threadIdx.x; slot < FLAT_SLOTS && first + slot < p.b.tiles * p.tile_blocks; slot += THREADS) {
        const tsr_block_place block = tsr_any_block(p, plane, first + slot);
        if (block.is_there && tsr_median_block_is_flat(p.median_cost[block.at]))
            slots[atomicAdd(&count, 1u)] = (uint8_t)slot;
    }
    __syncthreads();
    if (count == 0) return;
    const tsr_plane_view view = tsr_view_plane(p, plane);
    const tsr_training_plan plan = p.plan[plan_number];
    tsr_device_totals &totals = p.totals[(size_t)plan_number * p.b.planes + plane];
    uint8_t *labels = p.label + (size_t)plan_number * all_tiles(p) * p.tile_blocks;
    for (unsigned i = threadIdx.x; i < LOGARITHMS_KEPT; i += THREADS) logarithms[i] = tsr_magnitude_cost(i);
    block_costs<STEPS, EIGHTS, false> costs;
    costs.begin(p, view, plan, p.trial[(size_t)plan_number * p.b.planes + plane], of_classes, tap_at, memory);
    for (unsigned i = warp; i < count; i += WARPS) {
        const tsr_block_place block = tsr_any_block(p, plane, first + slots[i]);
        costs.stage(view, block);
        uint32_t cost[2 * EIGHTS] = {0}, of_logarithms[2 * EIGHTS] = {0};
        costs.template add<LOGARITHMS>(cost, of_logarithms, logarithms, block);
        costs.sum_up(of_logarithms);
        const uint32_t key = min(costs.least(of_logarithms, plan.classes),
                                 median_logarithms(costs, logarithms, block) * TSR_WARP + plan.classes);
        const uint32_t label = key % TSR_WARP;
        costs.sum_up(cost);
        uint32_t magnitudes = 0; /* of that class */
#pragma unroll
        for (int k = 0; k < 2 * EIGHTS; k++)
            if (costs.class_of(k) == label) magnitudes = cost[k];
        magnitudes = tsr_warp_max(magnitudes);
        if (label == plan.classes) magnitudes = tsr_median_block_cost(p.median_cost[block.at]);
        if (lane != 0) continue;
        labels[block.at] = (uint8_t)label;
        atomicAdd(&totals.cost[label], (unsigned long long)magnitudes);
        atomicAdd(&totals.samples[label], (unsigned long long)samples_of(block));
    }
}

/* ---- The end ------------------------------------------------------------------------------------------------ */

enum {
    FINISH_THREADS = 512,     /* of a plane, */
    FEW_FINISH_THREADS = 128, /* and where planes are so many */
    MANY_PLANES = 256,
    LABEL_PITCH = (TSR_LABELS_LIMIT + TSR_QUAD_COUNTS - 1) / TSR_QUAD_COUNTS * TSR_QUAD_COUNTS,
    LABEL_COUNTS = TSR_LABEL_CELLS * LABEL_PITCH
};

/* A warp's, of one table. */
struct finish_codes {
    tsr_lengths_memory<TSR_LABELS_LIMIT> lengths;
    uint32_t leaf[TSR_LABELS_LIMIT], first[TSR_CODE_LIMIT + 1];
    uint8_t order[TSR_LABELS_LIMIT], by_leaf[TSR_LABELS_LIMIT], by_symbol[TSR_LABELS_LIMIT];
};
static_assert((int)TSR_LABELS_LIMIT <= (int)TSR_WARP, "a lane a label");

template <int COUNT> struct alignas(16) finish_memory {
    uint32_t counts[LABEL_COUNTS];
    unsigned char merge[tsr_merge_bytes<int64_t>(TSR_LABEL_CELLS, LABEL_COUNTS / TSR_QUAD_COUNTS)];
    finish_codes codes[COUNT / TSR_WARP];
    uint8_t renumbered[TSR_LABELS_LIMIT];
    int plan;
};

/* A block of COUNT threads a plane: the plan that costs least, without classes that nobody wants; its labels, counted,
 * and their codes. */
template <int COUNT> __global__ void __launch_bounds__(COUNT) k_finish_training(const tsr_predict_batch p)
{
    TSR_DYNAMIC_SHARED(memory);
    finish_memory<COUNT> &m = *reinterpret_cast<finish_memory<COUNT> *>(memory);
    const uint32_t plane = blockIdx.x;
    const unsigned thread = threadIdx.x, lane = thread % TSR_WARP, warp = thread / TSR_WARP;
    tsr_predictor_model &model = p.predictor[plane]; /* all zero */
    if (tsr_plane_is_constant(p, plane)) return;
    if (thread == 0) {
        uint64_t least = UINT64_MAX;
        m.plan = 0;
        for (int i = 0; i < p.plan_count && p.plan_count > 1; i++) {
            const size_t at = (size_t)i * p.b.planes + plane;
            const uint64_t cost = tsr_cost_of_training(reinterpret_cast<const uint64_t *>(p.totals[at].cost),
                                                       reinterpret_cast<const uint64_t *>(p.totals[at].samples),
                                                       p.plan[i].classes, tsr_features(p.trial[at].shape));
            if (cost < least) m.plan = i;
            if (cost < least) least = cost;
        }
        const size_t at = (size_t)m.plan * p.b.planes + plane;
        tsr_drop_empty_classes(&p.trial[at], reinterpret_cast<const uint64_t *>(p.totals[at].samples),
                               p.plan[m.plan].classes, m.renumbered);
    }
    for (unsigned i = thread; i < LABEL_COUNTS; i += COUNT) m.counts[i] = 0;
    __syncthreads();
    const tsr_predictor_model &best = p.trial[(size_t)m.plan * p.b.planes + plane];
    const int classes = best.classes, symbols = classes + 1;
    if (classes == 0) return;
    for (unsigned i = thread; i < TSR_CLASS_LIMIT * TSR_TAPS_LIMIT; i += COUNT) {
        const unsigned c = i / TSR_TAPS_LIMIT, k = i % TSR_TAPS_LIMIT;
        if ((int)c < classes && (int)k < tsr_taps(best.shape)) model.weight[c][k] = best.weight[c][k];
    }
    if (thread == 0) {
        model.set = best.set;
        model.shape = best.shape;
        model.classes = (uint8_t)classes;
    }
    const uint8_t *labels = p.label + (size_t)m.plan * all_tiles(p) * p.tile_blocks;
    for (uint32_t number = thread; number < p.b.tiles * p.tile_blocks; number += COUNT) {
        const tsr_block_place block = tsr_any_block(p, plane, number);
        if (!block.is_there) continue;
        const int label = m.renumbered[labels[block.at]];
        const int left = block.x > 0 ? m.renumbered[labels[block.at - 1]] : -1;
        p.final_label[block.at] = (uint8_t)label;
        atomicAdd(&m.counts[tsr_label_cell(left) * LABEL_PITCH + label], 1u);
    }
    __syncthreads();
    const int tables = tsr_merge_cells<TSR_LABEL_CELLS, LABEL_PITCH, COUNT, 4, int64_t>(
        m.merge, sizeof m.merge, m.counts, symbols + 1, model.label_table_of, [](int) { return 0u; });
    if (thread == 0) model.label_tables = (uint8_t)tables;
    __syncthreads();
    tsr_codeword(*const words)[TSR_LABELS_LIMIT] = p.label_code + (size_t)plane * TSR_LABEL_TABLES_LIMIT;
    for (int t = (int)warp; t < tables; t += COUNT / TSR_WARP) {
        finish_codes &own = m.codes[warp];
        uint8_t *const lengths = model.label_lengths[t];
        const int used =
            tsr_sort_counts<TSR_LABELS_LIMIT>(m.counts + t * LABEL_PITCH, symbols, own.leaf, own.order, lane);
        tsr_limit_lengths(own.lengths, own.leaf, used, own.by_leaf, lane);
        if ((int)lane < symbols) own.by_symbol[lane] = 0;
        __syncwarp();
        if ((int)lane < used) own.by_symbol[own.order[lane]] = own.by_leaf[lane];
        __syncwarp();
        if ((int)lane < symbols) lengths[lane] = own.by_symbol[lane];
        tsr_each_codeword(
            own.by_symbol, symbols, used, own.first,
            [&](int symbol, uint32_t bits, int length) {
                words[t][symbol].bits = (uint16_t)bits;
                words[t][symbol].length = (uint8_t)length;
            },
            lane);
    }
}

typedef void label_kernel(tsr_predict_batch, int, unsigned, bool);
typedef void flat_kernel(tsr_predict_batch, int, unsigned);
typedef void sum_kernel(tsr_predict_batch, int, int, unsigned, unsigned);

/* For so many classes: without sharing the last eight, with it, and of flat blocks. */
template <int STEPS> label_kernel *labels_of_classes(int classes)
{
    return classes <= 8    ? k_labels<STEPS, 1, false>
           : classes <= 16 ? k_labels<STEPS, 2, false>
                           : k_labels<STEPS, 3, false>;
}

label_kernel *labels_of_few(int classes)
{
    return classes <= 4                    ? k_labels<1, 1, true>
           : classes > 8 && classes <= 12  ? k_labels<1, 2, true>
           : classes > 16 && classes <= 20 ? k_labels<1, 3, true>
                                           : labels_of_classes<1>(classes);
}

template <int STEPS> flat_kernel *flat_labels_of_classes(int classes)
{
    return classes <= 8 ? k_flat_labels<STEPS, 1> : classes <= 16 ? k_flat_labels<STEPS, 2> : k_flat_labels<STEPS, 3>;
}

int label_steps(tsr_predictor_shape shape)
{
    return ((shape.neighbours == TSR_NEIGHBOURS_LIMIT ? 7 : 4) + 2 * shape.references + 3) / 4;
}

label_kernel *labels_of(tsr_predictor_shape shape, int classes)
{
    const int steps = label_steps(shape);
    return steps == 1   ? labels_of_few(classes)
           : steps == 2 ? labels_of_classes<2>(classes)
                        : labels_of_classes<3>(classes);
}

flat_kernel *flat_labels_of(tsr_predictor_shape shape, int classes)
{
    const int steps = label_steps(shape);
    return steps == 1   ? flat_labels_of_classes<1>(classes)
           : steps == 2 ? flat_labels_of_classes<2>(classes)
                        : flat_labels_of_classes<3>(classes);
}
static_assert(TSR_CLASS_LIMIT <= 24 && TSR_FEW_CLASSES == 16 && 7 + 2 * TSR_REFERENCES_LIMIT <= SLOTS_LIMIT,
              "three eights, three steps");

sum_kernel *sums_of(tsr_predictor_shape shape, bool is_narrow)
{
    const int octets = (tsr_features(shape) + OCTET) / OCTET;
    if (is_narrow) return octets <= 2 ? k_sums<2, true> : k_sums<3, true>;
    return octets <= 2   ? k_sums<2, false>
           : octets == 3 ? k_sums<3, false>
           : octets == 4 ? k_sums<4, false>
                         : k_sums<5, false>;
}
unsigned groups_of(uint32_t blocks)
{
    return (blocks + WARPS * GROUP - 1) / (WARPS * GROUP);
}

int train_plan(const tsr_predict_batch &p, int number, cudaStream_t stream)
{
    const tsr_training_plan plan = p.plan[number];
    tsr_predictor_shape shape;
    shape.neighbours = TSR_AT(tsr_neighbours)[plan.set];
    shape.references = (uint8_t)p.references;
    const bool is_narrow = plan.set < 3 && p.references == 0;
    const uint32_t slots = tsr_slots_of_row(p, plan.block_stride) * p.blocks_down * p.b.tiles;
    const unsigned all = groups_of(p.b.tiles * p.tile_blocks), taking_part = groups_of(slots),
                   sum_slots = p.b.planes * ((slots + SUM_SLOTS - 1) / SUM_SLOTS) < SUM_GRID ? SUM_FEW : SUM_SLOTS,
                   sum_groups = (slots + sum_slots - 1) / sum_slots,
                   flat_groups = (p.b.tiles * p.tile_blocks + FLAT_SLOTS - 1) / FLAT_SLOTS;
    sum_kernel *const sums = sums_of(shape, is_narrow);
    label_kernel *const labels = labels_of(shape, plan.classes);
    flat_kernel *const flat_labels = flat_labels_of(shape, plan.classes);
    const size_t of_sums = sum_bytes(is_narrow, p.references), classes = p.b.planes * plan.classes,
                 fit_classes = classes < MANY_CLASSES ? FIT_THREADS / TSR_WARP : FIT_THREADS / FIT_LANES,
                 of_fit = fit_classes * fit_class_bytes(tsr_features(shape)),
                 of_labels = WARPS * (is_narrow ? label_warp_bytes<true>(0) : label_warp_bytes<false>(p.references));
    TSR_CUDA_TRY(tsr_allow_shared(sums, of_sums));
    TSR_CUDA_TRY(tsr_allow_shared(labels, of_labels));
    TSR_CUDA_TRY(tsr_allow_shared(flat_labels, of_labels));
    const auto fit = classes < MANY_CLASSES ? k_fit<TSR_WARP> : k_fit<FIT_LANES>;
    TSR_CUDA_TRY(tsr_allow_shared(fit, of_fit));
    TSR_CUDA_TRY(tsr_launch(k_first_labels, p.b.planes, TSR_COST_LEVELS, 0, stream, p, (int)plan.classes));
    for (int round = 0; round < plan.rounds; round++) {
        const bool last = round + 1 == plan.rounds;
        const unsigned groups = last ? all : taking_part;
        TSR_CUDA_TRY(tsr_launch(sums, p.b.planes * sum_groups, THREADS, of_sums, stream, p, number, round, sum_groups,
                                sum_slots));
        TSR_CUDA_TRY(tsr_launch(fit, (unsigned)((classes + fit_classes - 1) / fit_classes), FIT_THREADS, of_fit, stream,
                                p, number, tsr_features(shape)));
        TSR_CUDA_TRY(tsr_launch(labels, p.b.planes * groups, THREADS, of_labels, stream, p, number, groups, last));
    }
    return tsr_launch(flat_labels, p.b.planes * flat_groups, THREADS, of_labels, stream, p, number, flat_groups);
}

template <int COUNT> int finish_training(const tsr_predict_batch &p, cudaStream_t stream)
{
    TSR_CUDA_TRY(tsr_allow_shared(k_finish_training<COUNT>, sizeof(finish_memory<COUNT>)));
    return tsr_launch(k_finish_training<COUNT>, p.b.planes, COUNT, sizeof(finish_memory<COUNT>), stream, p);
}

} // namespace

int tsr_predict_train(const struct tsr_predict_batch *batch, cudaStream_t stream)
{
    const tsr_predict_batch &p = *batch;
    const unsigned groups = groups_of(p.b.tiles * p.tile_blocks);
    TSR_CUDA_TRY(tsr_launch(k_median_costs, p.b.planes * groups, THREADS, 0, stream, p, groups));
    for (int i = 0; i < p.plan_count; i++) TSR_CUDA_TRY((cudaError_t)train_plan(p, i, stream));
    return p.b.planes < MANY_PLANES ? finish_training<FINISH_THREADS>(p, stream)
                                    : finish_training<FEW_FINISH_THREADS>(p, stream);
}
