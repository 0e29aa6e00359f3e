/* Training linear predictors on the device, many planes at once: the steps of train_cpu.h, whose decisions are those of
 * entropy/predictor_training.h. FORMAT.md sections 7.1 and 7.9.
 *
 * A warp takes a block of 16 x 16 samples. Here: median edge costs and first labels, fits, the end, and the order of
 * the steps; sums and labels: train_sums_cuda.cu and train_labels_cuda.cu. */
#include "train.cuh"

#include "kernels/tables/code_lengths.cuh"
#include "kernels/tables/merge_tables.cuh"

namespace
{

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
__global__ void __launch_bounds__(TSR_TRAINING_THREADS) k_median_costs(const tsr_predict_batch p, unsigned groups)
{
    __shared__ tsr_block_place places[TSR_TRAINING_WARPS][TSR_TRAINING_GROUP];
    const unsigned lane = threadIdx.x % TSR_WARP, warp = threadIdx.x / TSR_WARP;
    const uint32_t plane = blockIdx.x / groups;
    if (tsr_plane_is_constant(p, plane)) return;
    const uint16_t *samples = p.b.shared.samples + plane * p.b.shape.plane_samples;
    const uint32_t stride = p.plan[0].block_stride;
    tsr_place_blocks(places[warp], p, plane,
                     (blockIdx.x - plane * groups) * (TSR_TRAINING_WARPS * TSR_TRAINING_GROUP) + warp, 0, lane);
    for (int number = 0; number < TSR_TRAINING_GROUP; number++) {
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
        p.median_cost[block.at] = tsr_median_block(cost, (int32_t)zeros, tsr_samples_of(block));
        if (tsr_samples_of(block) > 0 && tsr_block_takes_part(stride, block.number, block.x, block.y))
            atomicAdd(&p.cost_bins[(size_t)plane * TSR_COST_BINS + tsr_block_cost_bin(cost, tsr_samples_of(block))],
                      1ull);
    }
}

/* A block a plane: the first labels of a plan. */
__global__ void __launch_bounds__(TSR_COST_BINS) k_first_labels(const tsr_predict_batch p, int classes)
{
    __shared__ uint64_t sums[TSR_COST_BINS / TSR_WARP];
    const uint32_t plane = blockIdx.x;
    const uint64_t here = p.cost_bins[(size_t)plane * TSR_COST_BINS + threadIdx.x];
    uint64_t total;
    const uint64_t before = tsr_block_scan<TSR_COST_BINS>(here, sums, &total);
    p.first_label[(size_t)plane * TSR_COST_BINS + threadIdx.x] = tsr_first_label(before, here, total, classes);
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
    if (plane >= p.b.shape.planes || tsr_plane_is_constant(p, plane)) return;
    tsr_predictor_model &model = p.trial[(size_t)plan_number * p.b.shape.planes + plane];
    tsr_device_totals &totals = p.totals[(size_t)plan_number * p.b.shape.planes + plane];
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

/* ---- The end ------------------------------------------------------------------------------------------------ */

enum {
    FINISH_THREADS = 512,     /* of a plane, */
    FEW_FINISH_THREADS = 128, /* and where there are many planes */
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
    unsigned char merge[tsr_merge_bytes<int64_t, LABEL_PITCH>(TSR_LABEL_CELLS, LABEL_COUNTS / TSR_QUAD_COUNTS)];
    finish_codes codes[COUNT / TSR_WARP];
    uint8_t renumbered[TSR_LABELS_LIMIT];
    int plan;
};

/* The plan that costs least, and its classes that somebody wants. A thread. */
template <int COUNT>
__device__ __forceinline__ void choose_plan(const tsr_predict_batch &p, uint32_t plane, finish_memory<COUNT> &m)
{
    uint64_t least = UINT64_MAX;
    m.plan = 0;
    for (int i = 0; i < p.plan_count && p.plan_count > 1; i++) {
        const size_t at = (size_t)i * p.b.shape.planes + plane;
        const uint64_t cost = tsr_cost_of_training(reinterpret_cast<const uint64_t *>(p.totals[at].cost),
                                                   reinterpret_cast<const uint64_t *>(p.totals[at].samples),
                                                   p.plan[i].classes, tsr_features(p.trial[at].shape));
        if (cost < least) m.plan = i;
        if (cost < least) least = cost;
    }
    const size_t at = (size_t)m.plan * p.b.shape.planes + plane;
    tsr_drop_empty_classes(&p.trial[at], reinterpret_cast<const uint64_t *>(p.totals[at].samples),
                           p.plan[m.plan].classes, m.renumbered);
}

/* Renumbers the plan's labels, and counts them. */
template <int COUNT>
__device__ __forceinline__ void count_labels(const tsr_predict_batch &p, uint32_t plane, finish_memory<COUNT> &m,
                                             unsigned thread)
{
    const uint8_t *labels = p.label + (size_t)m.plan * tsr_all_tiles(p) * p.tile_blocks;
    for (uint32_t number = thread; number < p.b.shape.tiles * p.tile_blocks; number += COUNT) {
        const tsr_block_place block = tsr_any_block(p, plane, number);
        if (!block.is_there) continue;
        const int label = m.renumbered[labels[block.at]];
        const int left = block.x > 0 ? m.renumbered[labels[block.at - 1]] : -1;
        p.final_label[block.at] = (uint8_t)label;
        atomicAdd(&m.counts[tsr_label_cell(left) * LABEL_PITCH + label], 1u);
    }
}

/* Lengths and codewords of the labels' tables, a warp a table. */
template <int COUNT>
__device__ __forceinline__ void code_labels(const tsr_predict_batch &p, uint32_t plane, finish_memory<COUNT> &m,
                                            int tables, int symbols)
{
    const unsigned lane = threadIdx.x % TSR_WARP, warp = threadIdx.x / TSR_WARP;
    tsr_predictor_model &model = p.predictor[plane];
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
        tsr_count_lengths(own.by_symbol, symbols, own.first, lane);
        tsr_each_codeword(
            own.by_symbol, symbols, used, own.first,
            [&](int symbol, uint32_t bits, int length) {
                words[t][symbol].bits = (uint16_t)bits;
                words[t][symbol].length = (uint8_t)length;
            },
            lane);
    }
}

/* A block of COUNT threads a plane: the plan that costs least, without classes that nobody wants; its labels, counted,
 * and their codes. */
template <int COUNT> __global__ void __launch_bounds__(COUNT) k_finish_training(const tsr_predict_batch p)
{
    TSR_DYNAMIC_SHARED(memory);
    finish_memory<COUNT> &m = *reinterpret_cast<finish_memory<COUNT> *>(memory);
    const uint32_t plane = blockIdx.x;
    const unsigned thread = threadIdx.x;
    tsr_predictor_model &model = p.predictor[plane]; /* all zero */
    if (tsr_plane_is_constant(p, plane)) return;
    if (thread == 0) choose_plan(p, plane, m);
    for (unsigned i = thread; i < LABEL_COUNTS; i += COUNT) m.counts[i] = 0;
    __syncthreads();
    const tsr_predictor_model &best = p.trial[(size_t)m.plan * p.b.shape.planes + plane];
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
    count_labels(p, plane, m, thread);
    __syncthreads();
    const int tables = tsr_merge_cells<TSR_LABEL_CELLS, LABEL_PITCH, COUNT, 4, int64_t>(
        m.merge, sizeof m.merge, m.counts, symbols + 1, model.label_table_of, [](int) { return 0u; });
    if (thread == 0) model.label_tables = (uint8_t)tables;
    __syncthreads();
    code_labels(p, plane, m, tables, symbols);
}

cudaError_t train_plan(const tsr_predict_batch &p, int number, cudaStream_t stream)
{
    const tsr_training_plan plan = p.plan[number];
    const int features = tsr_features(tsr_shape_of_plan(p, plan));
    const size_t classes = p.b.shape.planes * plan.classes,
                 fit_classes = classes < MANY_CLASSES ? FIT_THREADS / TSR_WARP : FIT_THREADS / FIT_LANES,
                 of_fit = fit_classes * fit_class_bytes(features);
    const auto fit = classes < MANY_CLASSES ? k_fit<TSR_WARP> : k_fit<FIT_LANES>;
    TSR_CUDA_TRY(tsr_allow_shared(fit, of_fit));
    TSR_CUDA_TRY(tsr_launch(k_first_labels, p.b.shape.planes, TSR_COST_BINS, 0, stream, p, (int)plan.classes));
    for (int round = 0; round < plan.rounds; round++) {
        TSR_CUDA_TRY(tsr_train_sums(p, number, round, stream));
        TSR_CUDA_TRY(tsr_launch(fit, (unsigned)((classes + fit_classes - 1) / fit_classes), FIT_THREADS, of_fit, stream,
                                p, number, features));
        TSR_CUDA_TRY(tsr_train_labels(p, number, round, stream));
    }
    return tsr_train_flat_labels(p, number, stream);
}

template <int COUNT> int finish_training(const tsr_predict_batch &p, cudaStream_t stream)
{
    TSR_CUDA_TRY(tsr_allow_shared(k_finish_training<COUNT>, sizeof(finish_memory<COUNT>)));
    return tsr_launch(k_finish_training<COUNT>, p.b.shape.planes, COUNT, sizeof(finish_memory<COUNT>), stream, p);
}

} // namespace

int tsr_predict_train(const struct tsr_predict_batch *batch, cudaStream_t stream)
{
    const tsr_predict_batch &p = *batch;
    const unsigned groups = tsr_training_groups(p.b.shape.tiles * p.tile_blocks);
    TSR_CUDA_TRY(tsr_launch(k_median_costs, p.b.shape.planes * groups, TSR_TRAINING_THREADS, 0, stream, p, groups));
    for (int i = 0; i < p.plan_count; i++) TSR_CUDA_TRY(train_plan(p, i, stream));
    return p.b.shape.planes < MANY_PLANES ? finish_training<FINISH_THREADS>(p, stream)
                                          : finish_training<FEW_FINISH_THREADS>(p, stream);
}
