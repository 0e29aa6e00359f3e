/* Training on the device: labels of blocks, ordinary ones and flat ones. FORMAT.md section 7.1; the definition is
 * tsr_label_tile of train_cpu.c. What a block costs under each class: label_costs.cuh. */
#include "label_costs.cuh"

namespace
{

/* stride: of the blocks that the next round looks at; 0: the last round has been, and all blocks get labels. */
template <int STEPS, int EIGHTS, bool SHARED>
__global__ void __launch_bounds__(TSR_TRAINING_THREADS, STEPS == 1 ? 5 : 3)
    k_labels(const tsr_predict_batch p, int plan_number, unsigned groups, uint32_t stride)
{
    TSR_DYNAMIC_SHARED(memory);
    __shared__ unsigned long long cost_of[TSR_LABELS_LIMIT];
    __shared__ uint32_t samples_with[TSR_LABELS_LIMIT];
    __shared__ label_table<STEPS, EIGHTS> of_classes;
    __shared__ uint8_t tap_at[SLOTS_LIMIT * SLOT_TAPS];
    __shared__ tsr_block_place places[TSR_TRAINING_WARPS][TSR_TRAINING_GROUP];
    const unsigned lane = threadIdx.x % TSR_WARP, warp = threadIdx.x / TSR_WARP;
    const uint32_t plane = blockIdx.x / groups;
    if (tsr_plane_is_constant(p, plane)) return;
    const tsr_plane_view view = tsr_view_plane(p, plane);
    const tsr_training_plan plan = p.plan[plan_number];
    const bool last = stride == 0;
    if (threadIdx.x < TSR_LABELS_LIMIT) cost_of[threadIdx.x] = 0, samples_with[threadIdx.x] = 0;
    tsr_place_blocks(places[warp], p, plane,
                     (blockIdx.x - plane * groups) * (TSR_TRAINING_WARPS * TSR_TRAINING_GROUP) + warp, stride, lane);
    block_costs<STEPS, EIGHTS, SHARED> costs;
    costs.begin(p, view, plan, p.trial[(size_t)plan_number * p.b.shape.planes + plane], of_classes, tap_at, memory);

    uint8_t *labels = p.label + (size_t)plan_number * tsr_all_tiles(p) * p.tile_blocks;
    for (int number = 0; number < TSR_TRAINING_GROUP; number++) {
        const tsr_block_place block = places[warp][number];
        if (!block.is_there) continue;
        const uint32_t median = p.median_cost[block.at];
        if (last && tsr_median_block_is_flat(median)) continue; /* k_flat_labels takes it */
        costs.stage(view, block);
        const uint32_t key = tsr_samples_of(block) == TSR_PREDICTOR_BLOCK_SAMPLES && costs.range <= TSR_COST_MOST + 1
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
        atomicAdd(&samples_with[label], (uint32_t)tsr_samples_of(block));
    }
    __syncthreads();
    tsr_device_totals &totals = p.totals[(size_t)plan_number * p.b.shape.planes + plane];
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
__global__ void __launch_bounds__(TSR_TRAINING_THREADS)
    k_flat_labels(const tsr_predict_batch p, int plan_number, unsigned groups)
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
    for (unsigned slot = threadIdx.x; slot < FLAT_SLOTS && first + slot < p.b.shape.tiles * p.tile_blocks;
         slot += TSR_TRAINING_THREADS) {
        const tsr_block_place block = tsr_any_block(p, plane, first + slot);
        if (block.is_there && tsr_median_block_is_flat(p.median_cost[block.at]))
            slots[atomicAdd(&count, 1u)] = (uint8_t)slot;
    }
    __syncthreads();
    if (count == 0) return;
    const tsr_plane_view view = tsr_view_plane(p, plane);
    const tsr_training_plan plan = p.plan[plan_number];
    tsr_device_totals &totals = p.totals[(size_t)plan_number * p.b.shape.planes + plane];
    uint8_t *labels = p.label + (size_t)plan_number * tsr_all_tiles(p) * p.tile_blocks;
    for (unsigned i = threadIdx.x; i < LOGARITHMS_KEPT; i += TSR_TRAINING_THREADS)
        logarithms[i] = tsr_magnitude_cost(i);
    block_costs<STEPS, EIGHTS, false> costs;
    costs.begin(p, view, plan, p.trial[(size_t)plan_number * p.b.shape.planes + plane], of_classes, tap_at, memory);
    for (unsigned i = warp; i < count; i += TSR_TRAINING_WARPS) {
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
        atomicAdd(&totals.samples[label], (unsigned long long)tsr_samples_of(block));
    }
}

typedef void label_kernel(tsr_predict_batch, int, unsigned, uint32_t);
typedef void flat_kernel(tsr_predict_batch, int, unsigned);

/* For this many classes: without sharing the last eight, with it, and of flat blocks. */
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

size_t label_bytes(const tsr_predict_batch &p, const tsr_training_plan &plan)
{
    const bool is_narrow = plan.set < 3 && p.references == 0;
    return TSR_TRAINING_WARPS * (is_narrow ? label_warp_bytes<true>(0) : label_warp_bytes<false>(p.references));
}

} // namespace

cudaError_t tsr_train_labels(const tsr_predict_batch &p, int number, int round, cudaStream_t stream)
{
    const tsr_training_plan plan = p.plan[number];
    const bool last = round + 1 == plan.rounds;
    const uint32_t stride = last ? 0 : tsr_round_stride(plan, round + 1);
    const unsigned groups = tsr_training_groups(last ? p.b.shape.tiles * p.tile_blocks
                                                     : tsr_slots_of_row(p, stride) * p.blocks_down * p.b.shape.tiles);
    const size_t bytes = label_bytes(p, plan);
    label_kernel *const labels = labels_of(tsr_shape_of_plan(p, plan), plan.classes);
    TSR_CUDA_TRY(tsr_allow_shared(labels, bytes));
    return tsr_launch(labels, p.b.shape.planes * groups, TSR_TRAINING_THREADS, bytes, stream, p, number, groups,
                      stride);
}

cudaError_t tsr_train_flat_labels(const tsr_predict_batch &p, int number, cudaStream_t stream)
{
    const tsr_training_plan plan = p.plan[number];
    const unsigned groups = (p.b.shape.tiles * p.tile_blocks + FLAT_SLOTS - 1) / FLAT_SLOTS;
    const size_t bytes = label_bytes(p, plan);
    flat_kernel *const labels = flat_labels_of(tsr_shape_of_plan(p, plan), plan.classes);
    TSR_CUDA_TRY(tsr_allow_shared(labels, bytes));
    return tsr_launch(labels, p.b.shape.planes * groups, TSR_TRAINING_THREADS, bytes, stream, p, number, groups);
}
