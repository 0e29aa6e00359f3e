/* Where bins of activity and of intensity are cut into groups, on the device: at quantiles of what has been counted
 * of them (residual_contexts_cuda.cu). FORMAT.md section 7.3. */
#include "kernels/machine/device.cuh"

#include "kernels/training/predict_blocks.cuh"

namespace
{

enum { CUT_THREADS = 256 };

/* What threads of a block tell each other. */
struct cut_memory {
    uint32_t sums[CUT_THREADS / TSR_WARP], tops[CUT_THREADS / TSR_WARP];
};

/* tsr_quantile_group; where 32 bits are enough, and they mostly are, by a reciprocal: inverse is 2^32 / (2 total). */
__device__ __forceinline__ int quantile_group(uint32_t before, uint32_t count, uint32_t total, uint32_t inverse,
                                              int groups)
{
    if (inverse == 0) return tsr_quantile_group(before, count, total, groups);
    const uint32_t wanted = (2 * before + count) * (uint32_t)groups, group = __umulhi(wanted, inverse);
    return (int)(group + (wanted - group * 2 * total >= 2 * total)); /* one too few at most */
}

/* A thread's bins from first on: sixteen, or one where there is one. */
template <int EACH>
__device__ __forceinline__ void load_counts(const uint32_t *counts, int first, int bins, uint32_t count[EACH])
{
    if constexpr (EACH == 1) {
        count[0] = first < bins ? counts[first] : 0u;
    } else {
#pragma unroll
        for (int k = 0; k < EACH; k += 4) {
            const uint4 four = *reinterpret_cast<const uint4 *>(counts + first + k);
            count[k] = four.x;
            count[k + 1] = four.y;
            count[k + 2] = four.z;
            count[k + 3] = four.w;
        }
    }
}

template <int EACH>
__device__ __forceinline__ void store_groups(uint8_t *group_of, int first, int bins, const uint32_t group[EACH])
{
    if constexpr (EACH == 1) {
        if (first < bins) group_of[first] = (uint8_t)group[0];
    } else {
#pragma unroll
        for (int k = 0; k < EACH; k += 4)
            *reinterpret_cast<uint32_t *>(group_of + first + k) =
                group[k] | group[k + 1] << 8 | group[k + 2] << 16 | group[k + 3] << 24;
    }
}

/* tsr_cut_quantiles by a block, and the bins' groups, which rise: each thread has EACH bins, of all that counts and
 * group_of have. Returns the number of cuts. */
template <int EACH>
__device__ __forceinline__ int cut_quantiles(const uint32_t *counts, int bins, int groups, uint16_t *cuts,
                                             uint8_t *group_of, cut_memory &memory)
{
    const unsigned lane = threadIdx.x % TSR_WARP, warp = threadIdx.x / TSR_WARP;
    const int first = (int)threadIdx.x * EACH;
    uint32_t count[EACH], here = 0, total;
    load_counts<EACH>(counts, first, bins, count);
#pragma unroll
    for (int k = 0; k < EACH; k++) here += count[k];
    __syncthreads();
    uint32_t before = tsr_block_scan<CUT_THREADS>(here, memory.sums, &total);
    const uint32_t inverse =
        (uint64_t)total * 2 * (uint64_t)groups <= UINT32_MAX && total > 0 ? UINT32_MAX / (2 * total) : 0u;
    /* Groups plus one; 0: of a bin without samples. */
    uint32_t group[EACH], top = 0;
#pragma unroll
    for (int k = 0; k < EACH; k++) {
        group[k] = 0;
        if (count[k] != 0) top = group[k] = 1u + (uint32_t)quantile_group(before, count[k], total, inverse, groups);
        before += count[k];
    }
    /* The highest one of lower threads. */
    uint32_t below = top;
#pragma unroll
    for (unsigned delta = 1; delta < TSR_WARP; delta *= 2) {
        const uint32_t other = __shfl_up_sync(TSR_FULL_WARP, below, delta);
        if (lane >= delta) below = max(below, other);
    }
    if (lane == TSR_WARP - 1) memory.tops[warp] = below;
    below = __shfl_up_sync(TSR_FULL_WARP, below, 1);
    if (lane == 0) below = 0;
    __syncthreads();
    for (unsigned w = 0; w < warp; w++) below = max(below, memory.tops[w]);
    uint32_t own = 0, found = below, all;
#pragma unroll
    for (int k = 0; k < EACH; k++) {
        if (group[k] == 0) continue;
        own += found != 0 && group[k] != found;
        found = group[k];
    }
    uint32_t place = tsr_block_scan<CUT_THREADS>(own, memory.sums, &all), groups_here[EACH];
    found = below;
#pragma unroll
    for (int k = 0; k < EACH; k++) {
        if (group[k] != 0) {
            if (found != 0 && group[k] != found) cuts[place++] = (uint16_t)(first + k);
            found = group[k];
        }
        groups_here[k] = place;
    }
    store_groups<EACH>(group_of, first, bins, groups_here);
    return (int)all;
}

/* A block a set of counts. */
__global__ void __launch_bounds__(CUT_THREADS) k_cuts(const tsr_predict_batch p)
{
    __shared__ cut_memory memory;
    const uint32_t set = blockIdx.x;
    if (!tsr_set_is_there(&p, set)) return;
    tsr_residual_model &model = *tsr_residual_of_set(&p, set); /* all zero */
    tsr_device_bins &bins = p.bins[set];
    if (threadIdx.x == 0) bins.activity[1]++, bins.intensity[0]++; /* there may be none */
    __syncthreads();
    tsr_device_groups &groups = p.groups[set];
    const int activity_cuts = cut_quantiles<1>(bins.activity, TSR_ACTIVITY_BINS, p.activity_groups, model.activity_cut,
                                               groups.activity, memory);
    const int intensity_cuts = cut_quantiles<TSR_INTENSITY_BINS / CUT_THREADS>(
        bins.intensity, TSR_INTENSITY_BINS, p.intensity_groups, model.intensity_cut, groups.intensity, memory);
    if (threadIdx.x == 0) {
        model.lanes = (uint8_t)p.lanes;
        model.activity_cuts = (uint8_t)activity_cuts;
        model.intensity_cuts = (uint8_t)intensity_cuts;
    }
}
static_assert((int)TSR_ACTIVITY_BINS <= (int)CUT_THREADS && (int)TSR_INTENSITY_BINS % (int)CUT_THREADS == 0,
              "each bin has a thread");

} // namespace

int tsr_predict_cuts(const struct tsr_predict_batch *batch, cudaStream_t stream)
{
    return tsr_launch(k_cuts, tsr_predict_sets(batch), CUT_THREADS, 0, stream, *batch);
}
