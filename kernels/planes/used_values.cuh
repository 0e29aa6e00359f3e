/* Values in use as bits of words, by a block of threads: how many are below one, and what they take as stretches. */
#ifndef TSR_KERNELS_PLANES_USED_VALUES_CUH
#define TSR_KERNELS_PLANES_USED_VALUES_CUH

#include "plane_groups.cuh"

namespace tsr_planes
{

/* Values in use in words below this thread's first .. end-1; total: in all threads' words. sums: see tsr_block_scan. */
static __device__ __forceinline__ uint32_t used_below(const uint32_t *words, uint32_t first, uint32_t end,
                                                      uint32_t *sums, uint32_t *total)
{
    uint32_t in_use = 0;
    for (uint32_t i = first; i < end; i++) in_use += (uint32_t)__popc(words[i]);
    return tsr_block_scan<THREADS>(in_use, sums, total);
}

/* By word first .. end-1: values in use below it. below: what used_below has found. */
static __device__ __forceinline__ void count_words(const uint32_t *words, uint32_t first, uint32_t end, uint32_t below,
                                                   uint16_t *used_before)
{
    for (uint32_t i = first; i < end; i++) {
        used_before[i] = (uint16_t)below;
        below += (uint32_t)__popc(words[i]);
    }
}

/* Values in use below this one in its word. */
static __device__ __forceinline__ uint16_t number_in_word(const uint32_t *used, uint32_t value)
{
    return (uint16_t)__popc(used[value / 32] & ((1u << value % 32) - 1u));
}

/* Calls take(first value, count, their bits) for values first .. end-1, up to 32 at a time. */
template <typename Take>
static __device__ __forceinline__ void take_used(const uint32_t *used, uint32_t first, uint32_t end, Take take)
{
    for (uint32_t v = first, count; v < end; v += count) {
        count = min(32u - v % 32, end - v);
        take(v, count, used[v / 32] >> v % 32 & UINT32_MAX >> (32 - count));
    }
}

/* Sum over the block; all threads get it. sums: shared, a value a warp. */
static __device__ __forceinline__ uint64_t block_sum(uint64_t value, uint64_t *sums)
{
    value = tsr_warp_sum(value);
    __syncthreads();
    if (threadIdx.x % TSR_WARP == 0) sums[threadIdx.x / TSR_WARP] = value;
    __syncthreads();
    uint64_t sum = 0;
    for (int i = 0; i < THREADS / TSR_WARP; i++) sum += sums[i];
    return sum;
}

/* Bits of values in use, and not in use, as stretches (FORMAT.md 6.4): of those that end before a stretch that begins
 * among this thread's values first .. end-1, and of the last one. starts: shared, a place a thread. */
static __device__ __forceinline__ uint64_t stretch_bits(const uint32_t *used, uint32_t low, uint32_t high,
                                                        uint32_t first, uint32_t end, uint32_t *starts)
{
    const uint32_t none = UINT32_MAX;
    uint32_t bits = 0, own = none;
    /* start(v) for each v that begins a stretch. */
    const auto each_start = [&](auto start) {
        take_used(used, first, end, [&](uint32_t v, uint32_t count, uint32_t word) {
            const uint32_t before = v > low ? used[(v - 1) / 32] >> (v - 1) % 32 & 1u : ~word & 1u;
            for (uint32_t begins = (word ^ (word << 1 | before)) & UINT32_MAX >> (32 - count); begins != 0;
                 begins &= begins - 1)
                start(v + (uint32_t)__ffs((int)begins) - 1u);
        });
    };
    each_start([&](uint32_t v) { own = v; });
    starts[threadIdx.x] = own;
    __syncthreads();
    uint32_t last = none;
    for (int t = (int)threadIdx.x - 1; t >= 0 && last == none; t--) last = starts[t];
    const auto add = [&](uint32_t length) { bits += tsr_ue_bits(length - 1); };
    each_start([&](uint32_t v) {
        if (last != none) add(v - last);
        last = v;
    });
    if (first < end && end == high + 1) add(end - last);
    return bits;
}

} // namespace tsr_planes

#endif
