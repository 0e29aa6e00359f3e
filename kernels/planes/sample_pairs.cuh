/* Two 16-bit samples in the halves of a word, for passes that take two columns at once. Sums and differences of such
 * words carry nothing from half to half that they do not take back, as long as what they end with fits. */
#ifndef TSR_KERNELS_PLANES_SAMPLE_PAIRS_CUH
#define TSR_KERNELS_PLANES_SAMPLE_PAIRS_CUH

#include "kernels/machine/device.cuh"

/* The first count samples of eight of a row, as pairs; the others are 0, and may not be there. is_aligned: at 16 bytes.
 */
static __device__ __forceinline__ uint4 tsr_load_samples(const uint16_t *at, int32_t count, bool is_aligned)
{
    if (is_aligned && count == 8) return *reinterpret_cast<const uint4 *>(at);
    uint32_t pair[4] = {0, 0, 0, 0};
#pragma unroll
    for (int i = 0; i < 8; i++)
        if (i < count) pair[i / 2] |= (uint32_t)at[i] << (16 * (i % 2));
    return make_uint4(pair[0], pair[1], pair[2], pair[3]);
}

/* tsr_median_edge of both: W + N - NW, NW brought between the other two, says the same and stays in 16 bits. */
static __device__ __forceinline__ uint32_t tsr_median_edges(uint32_t w, uint32_t n, uint32_t nw)
{
    return w + n - __vmaxu2(__vminu2(w, n), __vminu2(__vmaxu2(w, n), nw));
}

/* The amounts by which both differ. */
static __device__ __forceinline__ uint32_t tsr_pair_distances(uint32_t a, uint32_t b)
{
    return __vmaxu2(a, b) - __vminu2(a, b);
}

#endif
