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
    ROUNDS = TSR_PREDICTOR_BLOCK / 2, /* a warp takes two rows of a block at once */
    GROUP = 8                         /* blocks that a warp takes, one after the other */
};

__device__ __forceinline__ bool is_constant(const tsr_predict_batch &p, uint32_t plane)
{
    return tsr_plane_range(p, plane) < 2;
}

__device__ __forceinline__ size_t all_tiles(const tsr_predict_batch &p)
{
    return (size_t)p.b.planes * p.b.tiles;
}

/* The place of this lane's sample in round round of a block, within the block. */
__device__ __forceinline__ int lane_row(int round, unsigned lane)
{
    return 2 * round + (int)(lane / TSR_PREDICTOR_BLOCK);
}

__device__ __forceinline__ int lane_column(unsigned lane)
{
    return (int)(lane % TSR_PREDICTOR_BLOCK);
}

/* Does that sample count? */
__device__ __forceinline__ bool counts(const tsr_block_place &block, int round, unsigned lane)
{
    const int32_t y = block.y * TSR_PREDICTOR_BLOCK + lane_row(round, lane);
    return lane_column(lane) < block.span.columns && y >= block.span.row && y < block.span.end;
}

__device__ __forceinline__ int32_t samples_of(const tsr_block_place &block)
{
    return block.span.columns * tsr_max(0, block.span.end - block.span.row);
}

/* ---- Median edge costs, first labels ------------------------------------------------------------------------ */

__global__ void __launch_bounds__(THREADS) k_median_costs(const tsr_predict_batch p, unsigned groups)
{
    __shared__ int16_t regions[WARPS][TSR_REGION_SAMPLES];
    const unsigned lane = threadIdx.x % TSR_WARP, warp = threadIdx.x / TSR_WARP;
    const uint32_t plane = blockIdx.x / groups;
    if (is_constant(p, plane)) return;
    const tsr_plane_view view = tsr_view_plane(p, plane);
    int16_t *region = regions[warp];
    const uint32_t first = ((blockIdx.x - plane * groups) * WARPS + warp) * GROUP;
    for (uint32_t number = first; number < first + GROUP; number++) {
        if (number >= p.b.tiles * p.tile_blocks) break;
        const tsr_block_place block = tsr_any_block(p, plane, number);
        if (!block.is_there) continue;
        tsr_stage_block(view, block, 0, region, lane);
        uint32_t cost = 0, zeros = 0;
        for (int round = 0; round < ROUNDS; round++) {
            const int16_t *at =
                region + TSR_REGION_FIRST + lane_row(round, lane) * TSR_REGION_PITCH + lane_column(lane);
            if (!counts(block, round, lane)) continue;
            const int32_t magnitude = tsr_abs(*at - tsr_region_median(at));
            cost += (uint32_t)tsr_min(magnitude, TSR_COST_MOST);
            zeros += magnitude == 0;
        }
        cost = tsr_warp_sum(cost);
        zeros = tsr_warp_sum(zeros);
        if (lane != 0) continue;
        p.median_cost[block.at] = tsr_median_block(cost, (int32_t)zeros, samples_of(block));
        if (samples_of(block) > 0 && tsr_block_takes_part(p.plan[0].block_stride, block.number, block.x, block.y))
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

enum {
    SUM_CHUNK = 4 * TSR_PREDICTOR_BLOCK, /* samples whose differences are kept at once */
    SUM_WORDS = SUM_CHUNK / 4,
    SUM_PITCH = SUM_WORDS + 4, /* of a feature's bytes: eight features lie in different banks */
    SUM_ROWS = 16,             /* features of a product's rows */
    BLOCK_SAMPLES = TSR_PREDICTOR_BLOCK * TSR_PREDICTOR_BLOCK,
    FIT_WEIGHTS = 64 /* weights of small residuals, which take a division each */
};

/* Shared memory of the sums. Behind it, by warp: region, weights, differences; then the halves of products. */
struct sum_memory {
    int16_t first[TSR_FEATURES_LIMIT + 1], base[TSR_FEATURES_LIMIT + 1]; /* offsets of a difference's samples */
    int16_t tap[TSR_TAPS_LIMIT];
};

/* rows: of features, in SUM_ROWS; of each four planes of bytes: differences and weighted ones, low and high. */
__host__ __device__ __forceinline__ size_t sum_warp_bytes(int rows)
{
    return TSR_REGION_ROOM * sizeof(int16_t) + BLOCK_SAMPLES + FIT_WEIGHTS +
           (size_t)rows * SUM_ROWS * 4 * SUM_PITCH * sizeof(uint32_t);
}

/* A warp a block: sums of products of its differences, by tensor cores: rows are weighted differences, columns
 * differences, eight at once; those on and below the diagonal are wanted. */
template <int ROWS>
__global__ void __launch_bounds__(THREADS)
    k_sums(const tsr_predict_batch p, int plan_number, int round, unsigned groups)
{
    constexpr int TILES = ROWS * (ROWS + 1); /* 2 in the first row of tiles, 4 in the next, ... */
    TSR_DYNAMIC_SHARED(memory);
    sum_memory &m = *reinterpret_cast<sum_memory *>(memory);
    const unsigned lane = threadIdx.x % TSR_WARP, warp = threadIdx.x / TSR_WARP;
    const uint32_t plane = blockIdx.x / groups;
    if (is_constant(p, plane)) return;
    const tsr_training_plan plan = p.plan[plan_number];
    const tsr_plane_view view = tsr_view_plane(p, plane);
    const tsr_predictor_model &model = p.trial[(size_t)plan_number * p.b.planes + plane];
    const tsr_device_totals &totals = p.totals[(size_t)plan_number * p.b.planes + plane];
    tsr_predictor_shape shape;
    shape.neighbours = TSR_AT(tsr_neighbours)[plan.set];
    shape.references = (uint8_t)view.references;
    const int n = tsr_features(shape), taps = tsr_taps(shape), pairs = (n + 1) * (n + 2) / 2;
    const int shift = tsr_difference_shift(view.range);

    uint8_t *rooms = memory + (sizeof(sum_memory) + 15) / 16 * 16;
    int16_t *region = reinterpret_cast<int16_t *>(rooms + warp * sum_warp_bytes(ROWS));
    uint8_t *weights = reinterpret_cast<uint8_t *>(region + TSR_REGION_ROOM);
    uint8_t *fit_weights = weights + BLOCK_SAMPLES;
    uint32_t *planes[4]; /* differences: low, high; weighted: low, high */
#pragma unroll
    for (int i = 0; i < 4; i++)
        planes[i] = reinterpret_cast<uint32_t *>(fit_weights + FIT_WEIGHTS) + i * ROWS * SUM_ROWS * SUM_PITCH;
    uint32_t *low = reinterpret_cast<uint32_t *>(rooms + WARPS * sum_warp_bytes(ROWS));
    int32_t *high = reinterpret_cast<int32_t *>(low + plan.classes * pairs);
    for (int i = (int)threadIdx.x; i <= n; i += THREADS) {
        m.first[i] = (int16_t)(i < n ? tsr_tap_offset(shape.neighbours, tsr_feature_tap(shape, i)) : TSR_REGION_FIRST);
        m.base[i] = (int16_t)tsr_tap_offset(shape.neighbours, i < n ? tsr_feature_base(shape, i) : 0);
    }
    for (int k = (int)threadIdx.x; k < taps; k += THREADS) m.tap[k] = (int16_t)tsr_tap_offset(shape.neighbours, k);
    for (int i = (int)threadIdx.x; i < 2 * plan.classes * pairs; i += THREADS) low[i] = 0;
    for (unsigned i = lane; i < 4 * ROWS * SUM_ROWS * SUM_PITCH; i += TSR_WARP) planes[0][i] = 0;
    __syncthreads();

    const uint8_t *labels = p.label + (size_t)plan_number * all_tiles(p) * p.tile_blocks;
    const uint32_t slots = tsr_slots_of_row(p, plan.block_stride) * p.blocks_down * p.b.tiles;
    const uint32_t start = ((blockIdx.x - plane * groups) * WARPS + warp) * GROUP;
    for (uint32_t number = start; number < start + GROUP && number < slots; number++) {
        const tsr_block_place block = tsr_training_block(p, plane, number, plan.block_stride);
        if (!block.is_there || samples_of(block) == 0) continue;
        const uint32_t median = p.median_cost[block.at];
        if (tsr_median_block_is_flat(median)) continue;
        tsr_stage_block(view, block, view.references, region, lane);
        int label;
        int32_t mean;
        if (round == 0) {
            const uint32_t cost = tsr_median_block_cost(median);
            label = p.first_label[(size_t)plane * TSR_COST_LEVELS + tsr_block_cost_level(cost, samples_of(block))];
            mean = (int32_t)(cost / (uint32_t)samples_of(block));
        } else {
            label = labels[block.at];
            mean = tsr_class_mean(totals.cost[label], totals.samples[label]);
        }
        uint32_t high_sum[TILES][4], cross_sum[TILES][4], low_sum[TILES][4];
#pragma unroll
        for (int i = 0; i < TILES; i++)
#pragma unroll
            for (int k = 0; k < 4; k++) high_sum[i][k] = cross_sum[i][k] = low_sum[i][k] = 0;
        for (int i = (int)lane; i < FIT_WEIGHTS; i += TSR_WARP) fit_weights[i] = (uint8_t)tsr_fit_weight(i, mean);
        __syncwarp();
        const int16_t *own = region + TSR_REGION_FIRST + lane_row(0, lane) * TSR_REGION_PITCH + lane_column(lane);
        int32_t prediction[ROUNDS];
#pragma unroll
        for (int i = 0; i < ROUNDS; i++) prediction[i] = 0;
        for (int k = 0; k < taps && round > 0; k++) {
            const int32_t weight = model.weight[label][k];
            const int16_t *at = own - TSR_REGION_FIRST + m.tap[k];
#pragma unroll
            for (int i = 0; i < ROUNDS; i++) prediction[i] += weight * at[2 * i * TSR_REGION_PITCH];
        }
#pragma unroll
        for (int i = 0; i < ROUNDS; i++) {
            const int16_t *at = own + 2 * i * TSR_REGION_PITCH;
            prediction[i] = round > 0 ? tsr_linear_prediction(prediction[i], (int32_t)view.range) - TSR_SAMPLE_BIAS
                                      : tsr_region_median(at);
            const int32_t magnitude = tsr_abs(*at - prediction[i]);
            int weight = 0;
            if (counts(block, i, lane))
                weight = magnitude < FIT_WEIGHTS ? fit_weights[magnitude] : tsr_fit_weight(magnitude, mean);
            weights[i * TSR_WARP + (int)lane] = (uint8_t)weight;
        }
        for (int chunk = 0; chunk < ROUNDS; chunk += 2) {
            __syncwarp();
            { /* four samples of every second feature */
                const int word = (int)(lane % SUM_WORDS);
                const int place = (2 * chunk + word / 4) * TSR_REGION_PITCH + word % 4 * 4;
                const uint32_t four = reinterpret_cast<const uint32_t *>(weights)[chunk * (TSR_WARP / 4) + word];
                int32_t base[4];
                int from = -1; /* base[] is of the tap there: one for all features of a plane */
                for (int f = (int)(lane / SUM_WORDS); f <= n; f += 2) {
                    const int16_t *first = region + m.first[f] + place;
                    int32_t d[4], w[4];
                    if (from != m.base[f]) {
                        from = m.base[f];
#pragma unroll
                        for (int i = 0; i < 4; i++) base[i] = region[from + place + i];
                    }
#pragma unroll
                    for (int i = 0; i < 4; i++) {
                        d[i] = tsr_difference(first[i] - base[i], shift);
                        w[i] = d[i] * (int32_t)(four >> (8 * i) & 255u);
                    }
                    uint32_t *to = planes[0] + f * SUM_PITCH + word;
                    tsr_split_bytes(d, to, to + ROWS * SUM_ROWS * SUM_PITCH);
                    tsr_split_bytes(w, to + 2 * ROWS * SUM_ROWS * SUM_PITCH, to + 3 * ROWS * SUM_ROWS * SUM_PITCH);
                }
            }
            __syncwarp();
#pragma unroll
            for (int step = 0; step < SUM_WORDS; step += 8) {
                const int at = (int)(lane / 4) * SUM_PITCH + step + (int)(lane % 4);
#pragma unroll
                for (int row = 0; row < ROWS; row++) {
                    uint32_t a[2][4]; /* low, high */
#pragma unroll
                    for (int i = 0; i < 8; i++)
                        a[i / 4][i % 4] =
                            planes[2 + i / 4][at + (row * SUM_ROWS + i % 2 * 8) * SUM_PITCH + i % 4 / 2 * 4];
#pragma unroll
                    for (int column = 0; column < 2 * row + 2; column++) {
                        if (8 * column > n) break;
                        uint32_t b[2][2];
#pragma unroll
                        for (int i = 0; i < 4; i++)
                            b[i / 2][i % 2] = planes[i / 2][at + column * 8 * SUM_PITCH + i % 2 * 4];
                        const int tile = row * (row + 1) + column;
                        tsr_multiply_bytes<true, true>(high_sum[tile], a[1][0], a[1][1], a[1][2], a[1][3], b[1][0],
                                                       b[1][1]);
                        tsr_multiply_bytes<true, false>(cross_sum[tile], a[1][0], a[1][1], a[1][2], a[1][3], b[0][0],
                                                        b[0][1]);
                        tsr_multiply_bytes<false, true>(cross_sum[tile], a[0][0], a[0][1], a[0][2], a[0][3], b[1][0],
                                                        b[1][1]);
                        tsr_multiply_bytes<false, false>(low_sum[tile], a[0][0], a[0][1], a[0][2], a[0][3], b[0][0],
                                                         b[0][1]);
                    }
                }
            }
        }
#pragma unroll
        for (int row = 0; row < ROWS; row++)
#pragma unroll
            for (int column = 0; column < 2 * row + 2; column++)
#pragma unroll
                for (int k = 0; k < 4; k++) {
                    const int i = row * SUM_ROWS + k / 2 * 8 + (int)(lane / 4),
                              j = column * 8 + (int)(lane % 4) * 2 + k % 2;
                    if (i > n || j > i) continue;
                    const int tile = row * (row + 1) + column;
                    const int32_t sum = tsr_join_products(high_sum[tile][k], cross_sum[tile][k], low_sum[tile][k]);
                    const int pair = label * pairs + i * (i + 1) / 2 + j;
                    atomicAdd(&low[pair], (uint32_t)sum & 0xffffu);
                    atomicAdd(&high[pair], sum >> 16);
                }
    }
    __syncthreads();
    unsigned long long *products = p.products + (size_t)plane * p.class_count * p.class_products;
    for (int i = (int)threadIdx.x; i < plan.classes * pairs; i += THREADS) {
        const int64_t sum = (int64_t)high[i] * 65536 + low[i];
        if (sum == 0) continue;
        const int c = i / pairs;
        atomicAdd(&products[(size_t)c * p.class_products + (size_t)(i - c * pairs)], (unsigned long long)sum);
    }
}

/* ---- Fit ---------------------------------------------------------------------------------------------------- */

/* tsr_solve_predictor by a warp: its steps, each row of a step by a lane. c, l: shared. */
struct fit_memory {
    int64_t c[TSR_FEATURES_LIMIT + 1][TSR_FEATURES_LIMIT + 2];
    int64_t l[TSR_FEATURES_LIMIT + 1][TSR_FEATURES_LIMIT + 2];
    int64_t solution[TSR_FEATURES_LIMIT];
    int16_t of_feature[TSR_FEATURES_LIMIT];
    int8_t shift[TSR_FEATURES_LIMIT + 1];
};

__device__ __forceinline__ void solve(const unsigned long long *sums, int n, fit_memory &s, unsigned lane)
{
    for (int i = (int)lane; i <= n; i += TSR_WARP) {
        const int64_t square = (int64_t)sums[i * (i + 1) / 2 + i];
        s.shift[i] = (int8_t)(square > 0 ? tsr_half_shift(square) : 0);
    }
    __syncwarp();
    for (int i = 0; i <= n; i++)
        for (int j = (int)lane; j <= i; j += TSR_WARP)
            s.c[i][j] = tsr_solver_entry((int64_t)sums[i * (i + 1) / 2 + j], s.shift[i] + s.shift[j], i == j);
    __syncwarp();
    for (int k = 0; k < n; k++) {
        const int64_t pivot = tsr_solver_pivot(s.c[k][k]);
        for (int i = k + 1 + (int)lane; i <= n; i += TSR_WARP) s.l[i][k] = tsr_solver_quotient(s.c[i][k], pivot);
        __syncwarp();
        for (int i = k + 1 + (int)lane; i <= n; i += TSR_WARP)
            for (int j = k + 1; j <= i; j++) s.c[i][j] = tsr_solver_step(s.c[i][j], s.c[i][k], s.l[j][k]);
        __syncwarp();
    }
    for (int i = n - 1; i >= 0; i--) {
        int64_t v = 0;
        for (int k = i + 1 + (int)lane; k < n; k += TSR_WARP)
            v += tsr_asr64(s.l[k][i] * s.solution[k], TSR_SOLVER_SHIFT);
        v = tsr_clamp_30(s.l[n][i] - tsr_warp_sum(v));
        if (lane == 0) {
            s.solution[i] = v;
            s.of_feature[i] = tsr_solver_weight(v, s.shift[i] - s.shift[n]);
        }
        __syncwarp();
    }
}

/* A warp a class: its weights from its products, which are cleared for the next round, as are the totals. */
__global__ void __launch_bounds__(TSR_WARP) k_fit(const tsr_predict_batch p, int plan_number)
{
    __shared__ fit_memory m;
    const tsr_training_plan plan = p.plan[plan_number];
    const uint32_t plane = blockIdx.x / plan.classes, c = blockIdx.x - plane * plan.classes;
    if (is_constant(p, plane)) return;
    const unsigned lane = threadIdx.x;
    tsr_predictor_model &model = p.trial[(size_t)plan_number * p.b.planes + plane];
    tsr_device_totals &totals = p.totals[(size_t)plan_number * p.b.planes + plane];
    unsigned long long *sums = p.products + ((size_t)plane * p.class_count + c) * p.class_products;
    tsr_predictor_shape shape;
    shape.neighbours = TSR_AT(tsr_neighbours)[plan.set];
    shape.references = (uint8_t)tsr_view_plane(p, plane).references;
    const int n = tsr_features(shape);
    solve(sums, n, m, lane);
    if (lane == 0) {
        tsr_take_weights(shape, m.of_feature, model.weight[c]);
        totals.cost[c] = totals.samples[c] = 0;
        if (c == 0) {
            totals.cost[plan.classes] = totals.samples[plan.classes] = 0;
            model.set = plan.set;
            model.shape = shape;
        }
    }
    for (int i = (int)lane; i < (n + 1) * (n + 2) / 2; i += TSR_WARP) sums[i] = 0;
}

/* ---- Labels ------------------------------------------------------------------------------------------------- */

/* A warp a block: the class that leaves least of it; in the end, of all blocks that are not flat, and the median edge
 * predictor competes.
 * Predictions of 16 samples under 8 classes are a product of matrices, by tensor cores. Lane 4 g + t holds the taps
 * t, t + 4, t + 8, ... of the samples in columns g and g + 8 of a row, in WORDS words of four taps; of the weights
 * likewise those of class g of eight. */
template <int WORDS, int EIGHTS>
__global__ void __launch_bounds__(THREADS)
    k_labels(const tsr_predict_batch p, int plan_number, unsigned groups, bool last)
{
    __shared__ int16_t regions[WARPS][TSR_REGION_ROOM];
    __shared__ unsigned long long cost_of[TSR_LABELS_LIMIT];
    __shared__ uint32_t samples_with[TSR_LABELS_LIMIT];
    const unsigned lane = threadIdx.x % TSR_WARP, warp = threadIdx.x / TSR_WARP;
    const int g = (int)(lane / 4), t = (int)(lane % 4);
    const uint32_t plane = blockIdx.x / groups;
    if (is_constant(p, plane)) return;
    const tsr_plane_view view = tsr_view_plane(p, plane);
    const tsr_training_plan plan = p.plan[plan_number];
    const int neighbours = TSR_AT(tsr_neighbours)[plan.set];
    const int taps = neighbours + view.references * TSR_REFERENCE_TAPS;
    const tsr_predictor_model &model = p.trial[(size_t)plan_number * p.b.planes + plane];
    int16_t *region = regions[warp];
    if (threadIdx.x < TSR_LABELS_LIMIT) cost_of[threadIdx.x] = 0, samples_with[threadIdx.x] = 0;
    int offset[4 * WORDS];                                          /* of this lane's taps of column g */
    uint32_t weight_low[EIGHTS][WORDS], weight_high[EIGHTS][WORDS]; /* of class g of each eight */
#pragma unroll
    for (int i = 0; i < 4 * WORDS; i++)
        offset[i] = (4 * i + t < taps ? tsr_tap_offset(neighbours, 4 * i + t) : (int)TSR_REGION_FIRST) + g;
#pragma unroll
    for (int e = 0; e < EIGHTS; e++)
#pragma unroll
        for (int w = 0; w < WORDS; w++) {
            int32_t four[4];
#pragma unroll
            for (int i = 0; i < 4; i++) {
                const int tap = 4 * (4 * w + i) + t, c = 8 * e + g;
                four[i] = tap < taps && c < plan.classes ? model.weight[c][tap] : 0;
            }
            tsr_split_bytes(four, &weight_low[e][w], &weight_high[e][w]);
        }
    __syncthreads();

    uint8_t *labels = p.label + (size_t)plan_number * all_tiles(p) * p.tile_blocks;
    const uint32_t slots =
        last ? p.b.tiles * p.tile_blocks : tsr_slots_of_row(p, plan.block_stride) * p.blocks_down * p.b.tiles;
    const uint32_t first = ((blockIdx.x - plane * groups) * WARPS + warp) * GROUP;
    for (uint32_t number = first; number < first + GROUP && number < slots; number++) {
        const tsr_block_place block =
            last ? tsr_any_block(p, plane, number) : tsr_training_block(p, plane, number, plan.block_stride);
        if (!block.is_there) continue;
        const uint32_t median = p.median_cost[block.at];
        if (last && tsr_median_block_is_flat(median)) continue; /* k_flat_labels takes it */
        tsr_stage_block(view, block, view.references, region, lane);
        const bool is_in[2] = {g < block.span.columns, g + 8 < block.span.columns};
        uint32_t cost[2 * EIGHTS]; /* of classes 8 e + 2 t and 8 e + 2 t + 1 */
#pragma unroll
        for (int i = 0; i < 2 * EIGHTS; i++) cost[i] = 0;
        const int end = block.span.end - block.y * TSR_PREDICTOR_BLOCK;
        for (int row = block.span.row - block.y * TSR_PREDICTOR_BLOCK; row < end; row++) {
            const int16_t *at = region + row * TSR_REGION_PITCH;
            uint32_t low[2][WORDS], high[2][WORDS]; /* of columns g and g + 8 */
#pragma unroll
            for (int side = 0; side < 2; side++)
#pragma unroll
                for (int w = 0; w < WORDS; w++) {
                    int32_t four[4];
#pragma unroll
                    for (int i = 0; i < 4; i++) four[i] = at[offset[4 * w + i] + 8 * side];
                    tsr_split_bytes(four, &low[side][w], &high[side][w]);
                }
            int32_t own[2];
#pragma unroll
            for (int side = 0; side < 2; side++) own[side] = at[TSR_REGION_FIRST + g + 8 * side] + TSR_SAMPLE_BIAS;
#pragma unroll
            for (int e = 0; e < EIGHTS; e++) {
                uint32_t highs[4] = {0, 0, 0, 0}, crosses[4] = {0, 0, 0, 0}, lows[4] = {0, 0, 0, 0};
#pragma unroll
                for (int w = 0; w + 1 < WORDS; w += 2) {
                    tsr_multiply_bytes<true, true>(highs, high[0][w], high[1][w], high[0][w + 1], high[1][w + 1],
                                                   weight_high[e][w], weight_high[e][w + 1]);
                    tsr_multiply_bytes<true, false>(crosses, high[0][w], high[1][w], high[0][w + 1], high[1][w + 1],
                                                    weight_low[e][w], weight_low[e][w + 1]);
                    tsr_multiply_bytes<false, true>(crosses, low[0][w], low[1][w], low[0][w + 1], low[1][w + 1],
                                                    weight_high[e][w], weight_high[e][w + 1]);
                    tsr_multiply_bytes<false, false>(lows, low[0][w], low[1][w], low[0][w + 1], low[1][w + 1],
                                                     weight_low[e][w], weight_low[e][w + 1]);
                }
                if (WORDS % 2) {
                    constexpr int w = WORDS - 1;
                    tsr_multiply_bytes<true, true>(highs, high[0][w], high[1][w], weight_high[e][w]);
                    tsr_multiply_bytes<true, false>(crosses, high[0][w], high[1][w], weight_low[e][w]);
                    tsr_multiply_bytes<false, true>(crosses, low[0][w], low[1][w], weight_high[e][w]);
                    tsr_multiply_bytes<false, false>(lows, low[0][w], low[1][w], weight_low[e][w]);
                }
#pragma unroll
                for (int k = 0; k < 4; k++) {
                    const int32_t prediction =
                        tsr_linear_prediction(tsr_join_products(highs[k], crosses[k], lows[k]), (int32_t)view.range);
                    const int32_t left = tsr_min(tsr_abs(own[k / 2] - prediction), TSR_COST_MOST);
                    cost[2 * e + k % 2] += is_in[k / 2] ? (uint32_t)left : 0u;
                }
            }
        }
        /* Costs are below 2^23; the first of equals wins. */
        uint32_t key = UINT32_MAX;
#pragma unroll
        for (int i = 0; i < 2 * EIGHTS; i++) {
            const uint32_t c = (uint32_t)(8 * (i / 2) + 2 * t + i % 2);
            for (int lanes = 4; lanes < TSR_WARP; lanes *= 2) cost[i] += __shfl_xor_sync(TSR_FULL_WARP, cost[i], lanes);
            if (c < plan.classes) key = min(key, cost[i] * TSR_WARP + c);
        }
        key = ~tsr_warp_max(~key);
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

/* A warp a flat block, in the end: the label of the least sum of logarithms. */
__global__ void __launch_bounds__(THREADS) k_flat_labels(const tsr_predict_batch p, int plan_number, unsigned groups)
{
    __shared__ int16_t regions[WARPS][TSR_REGION_ROOM];
    const unsigned lane = threadIdx.x % TSR_WARP, warp = threadIdx.x / TSR_WARP;
    const uint32_t plane = blockIdx.x / groups;
    if (is_constant(p, plane)) return;
    const tsr_plane_view view = tsr_view_plane(p, plane);
    const tsr_training_plan plan = p.plan[plan_number];
    const int neighbours = TSR_AT(tsr_neighbours)[plan.set];
    const int taps = neighbours + view.references * TSR_REFERENCE_TAPS;
    const tsr_predictor_model &model = p.trial[(size_t)plan_number * p.b.planes + plane];
    tsr_device_totals &totals = p.totals[(size_t)plan_number * p.b.planes + plane];
    uint8_t *labels = p.label + (size_t)plan_number * all_tiles(p) * p.tile_blocks;
    int16_t *region = regions[warp];
    const uint32_t first = ((blockIdx.x - plane * groups) * WARPS + warp) * GROUP;
    for (uint32_t number = first; number < first + GROUP && number < p.b.tiles * p.tile_blocks; number++) {
        const tsr_block_place block = tsr_any_block(p, plane, number);
        if (!block.is_there || !tsr_median_block_is_flat(p.median_cost[block.at])) continue;
        tsr_stage_block(view, block, view.references, region, lane);
        const int16_t *own = region + lane_row(0, lane) * TSR_REGION_PITCH + lane_column(lane);
        uint32_t least = UINT32_MAX, label = 0, cost = 0; /* logarithms are below 2^25; cost: of magnitudes */
        for (uint32_t l = 0; l <= plan.classes; l++) {
            int32_t sum[ROUNDS];
#pragma unroll
            for (int i = 0; i < ROUNDS; i++) sum[i] = 0;
            for (int k = 0; k < taps && l < plan.classes; k++) {
                const int32_t weight = model.weight[l][k];
                const int16_t *at = own + tsr_tap_offset(neighbours, k);
#pragma unroll
                for (int i = 0; i < ROUNDS; i++) sum[i] += weight * at[2 * i * TSR_REGION_PITCH];
            }
            uint32_t logarithms = 0, magnitudes = 0;
#pragma unroll
            for (int i = 0; i < ROUNDS; i++) {
                const int16_t *at = own + TSR_REGION_FIRST + 2 * i * TSR_REGION_PITCH;
                const int32_t prediction = l < plan.classes
                                               ? tsr_linear_prediction(sum[i], (int32_t)view.range) - TSR_SAMPLE_BIAS
                                               : tsr_region_median(at);
                if (!counts(block, i, lane)) continue;
                const int32_t magnitude = tsr_abs(*at - prediction);
                logarithms += tsr_magnitude_cost((uint32_t)magnitude);
                magnitudes += (uint32_t)tsr_min(magnitude, TSR_COST_MOST);
            }
            logarithms = tsr_warp_sum(logarithms);
            magnitudes = tsr_warp_sum(magnitudes);
            if (logarithms >= least) continue; /* the first of equals wins */
            least = logarithms;
            label = l;
            cost = magnitudes;
        }
        if (lane != 0) continue;
        labels[block.at] = (uint8_t)label;
        atomicAdd(&totals.cost[label], (unsigned long long)cost);
        atomicAdd(&totals.samples[label], (unsigned long long)samples_of(block));
    }
}

/* ---- The end ------------------------------------------------------------------------------------------------ */

enum {
    FINISH_THREADS = 256,
    FINISH_WARPS = FINISH_THREADS / TSR_WARP,
    LABEL_COUNTS = TSR_LABEL_CELLS * TSR_LABELS_LIMIT
};

struct finish_memory {
    tsr_merge_memory<TSR_LABEL_CELLS, TSR_LABELS_LIMIT, FINISH_THREADS> merge;
    tsr_lengths_memory<TSR_LABELS_LIMIT> lengths[FINISH_WARPS];
    uint32_t counts[LABEL_COUNTS];
    uint8_t renumbered[TSR_LABELS_LIMIT];
    int plan;
};

/* A block a plane: the plan that costs least, without classes that nobody wants; its labels, counted, and their codes.
 */
__global__ void __launch_bounds__(FINISH_THREADS) k_finish_training(const tsr_predict_batch p)
{
    TSR_DYNAMIC_SHARED(memory);
    finish_memory &m = *reinterpret_cast<finish_memory *>(memory);
    const uint32_t plane = blockIdx.x;
    const unsigned thread = threadIdx.x, lane = thread % TSR_WARP, warp = thread / TSR_WARP;
    tsr_predictor_model &model = p.predictor[plane]; /* all zero */
    if (is_constant(p, plane)) return;
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
    for (unsigned i = thread; i < LABEL_COUNTS; i += FINISH_THREADS) m.counts[i] = 0;
    __syncthreads();
    const tsr_predictor_model &best = p.trial[(size_t)m.plan * p.b.planes + plane];
    const int classes = best.classes, symbols = classes + 1;
    if (classes == 0) return;
    for (unsigned i = thread; i < TSR_CLASS_LIMIT * TSR_TAPS_LIMIT; i += FINISH_THREADS) {
        const unsigned c = i / TSR_TAPS_LIMIT, k = i % TSR_TAPS_LIMIT;
        if ((int)c < classes && (int)k < tsr_taps(best.shape)) model.weight[c][k] = best.weight[c][k];
    }
    if (thread == 0) {
        model.set = best.set;
        model.shape = best.shape;
        model.classes = (uint8_t)classes;
    }
    const uint8_t *labels = p.label + (size_t)m.plan * all_tiles(p) * p.tile_blocks;
    for (uint32_t number = thread; number < p.b.tiles * p.tile_blocks; number += FINISH_THREADS) {
        const tsr_block_place block = tsr_any_block(p, plane, number);
        if (!block.is_there) continue;
        const int label = m.renumbered[labels[block.at]];
        const int left = block.x > 0 ? m.renumbered[labels[block.at - 1]] : -1;
        p.final_label[block.at] = (uint8_t)label;
        atomicAdd(&m.counts[tsr_label_cell(left) * symbols + label], 1u);
    }
    __syncthreads();
    const int tables = tsr_merge_cells(m.merge, m.counts, symbols + 1, symbols, model.label_table_of);
    if (thread == 0) model.label_tables = (uint8_t)tables;
    __syncthreads();
    tsr_codeword(*const words)[TSR_LABELS_LIMIT] = p.label_code + (size_t)plane * TSR_LABEL_TABLES_LIMIT;
    for (int t = (int)warp; t < tables; t += FINISH_WARPS) {
        tsr_find_lengths(m.lengths[warp], m.counts + t * symbols, symbols, model.label_lengths[t], lane);
        tsr_find_codewords(m.lengths[warp], model.label_lengths[t], symbols, words[t], lane);
    }
}

typedef void label_kernel(tsr_predict_batch, int, unsigned, bool);

/* For so many taps and classes. */
template <int WORDS> label_kernel *labels_of_classes(int classes)
{
    return classes <= 8 ? k_labels<WORDS, 1> : classes <= 16 ? k_labels<WORDS, 2> : k_labels<WORDS, 3>;
}

label_kernel *labels_of(int taps, int classes)
{
    return taps <= 16   ? labels_of_classes<1>(classes)
           : taps <= 32 ? labels_of_classes<2>(classes)
                        : labels_of_classes<3>(classes);
}
static_assert(TSR_TAPS_LIMIT <= 48 && TSR_CLASS_LIMIT <= 24, "three words of taps, three eights of classes");

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
    const int most = tsr_features(shape) + 1, rows = (most + SUM_ROWS - 1) / SUM_ROWS;
    const size_t sum_bytes = (sizeof(sum_memory) + 15) / 16 * 16 + WARPS * sum_warp_bytes(rows) +
                             2 * sizeof(uint32_t) * plan.classes * (size_t)(most * (most + 1) / 2);
    const unsigned all = groups_of(p.b.tiles * p.tile_blocks);
    const unsigned taking_part = groups_of(tsr_slots_of_row(p, plan.block_stride) * p.blocks_down * p.b.tiles);
    void (*const sums)(tsr_predict_batch, int, int, unsigned) = rows == 1   ? k_sums<1>
                                                                : rows == 2 ? k_sums<2>
                                                                            : k_sums<3>;
    label_kernel *const labels = labels_of(tsr_taps(shape), plan.classes);
    TSR_CUDA_TRY(cudaFuncSetAttribute(sums, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)sum_bytes));
    TSR_CUDA_TRY(tsr_launch(k_first_labels, p.b.planes, TSR_COST_LEVELS, 0, stream, p, (int)plan.classes));
    for (int round = 0; round < plan.rounds; round++) {
        const bool last = round + 1 == plan.rounds;
        const unsigned groups = last ? all : taking_part;
        TSR_CUDA_TRY(
            tsr_launch(sums, p.b.planes * taking_part, THREADS, sum_bytes, stream, p, number, round, taking_part));
        TSR_CUDA_TRY(tsr_launch(k_fit, p.b.planes * plan.classes, TSR_WARP, 0, stream, p, number));
        TSR_CUDA_TRY(tsr_launch(labels, p.b.planes * groups, THREADS, 0, stream, p, number, groups, last));
    }
    return tsr_launch(k_flat_labels, p.b.planes * all, THREADS, 0, stream, p, number, all);
}
static_assert(TSR_FEATURES_LIMIT + 1 <= 3 * SUM_ROWS, "three rows of tiles");

} // namespace

int tsr_predict_train(const struct tsr_predict_batch *batch, cudaStream_t stream)
{
    const tsr_predict_batch &p = *batch;
    const unsigned groups = groups_of(p.b.tiles * p.tile_blocks);
    TSR_CUDA_TRY(tsr_launch(k_median_costs, p.b.planes * groups, THREADS, 0, stream, p, groups));
    for (int i = 0; i < p.plan_count; i++) TSR_CUDA_TRY((cudaError_t)train_plan(p, i, stream));
    TSR_CUDA_TRY(cudaFuncSetAttribute(k_finish_training, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                      (int)sizeof(finish_memory)));
    return tsr_launch(k_finish_training, p.b.planes, FINISH_THREADS, sizeof(finish_memory), stream, p);
}
