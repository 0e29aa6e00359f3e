/* Tiles stored as they are: the payload where no coder gets below it. */
#ifndef TSR_KERNELS_SLICES_RAW_TILES_CUH
#define TSR_KERNELS_SLICES_RAW_TILES_CUH

#include "kernels/machine/device.cuh"

/* Word number word of a string of count values of this many bits, its first bit the most significant; value(i): the
 * value at place i. */
template <typename Value>
static __device__ __forceinline__ uint32_t tsr_raw_word(uint32_t bits, uint32_t count, uint32_t word, Value value)
{
    uint64_t held = 0; /* the last 64 bits up to the value at work */
    for (uint32_t i = word * 32u / bits;; i++) {
        held = held << bits | (i < count ? value(i) : 0u);
        const uint32_t end = (i + 1) * bits;
        if (end >= word * 32u + 32u) return (uint32_t)(held >> (end - (word * 32u + 32u)));
    }
}

#endif
