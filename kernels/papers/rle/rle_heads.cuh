/* Heads of runs, which are the symbols that differ from the symbol before. They are found 16 bytes at a time in
 * registers. A symbol has type T: 8, 16 or 32 bits. */
#ifndef TSR_KERNELS_PAPERS_RLE_RLE_HEADS_CUH
#define TSR_KERNELS_PAPERS_RLE_RLE_HEADS_CUH

#include "kernels/machine/look_back.cuh"

/* What a stretch of symbols adds to a scan, in 62 bits: the number of its heads, and the position of its last head, or
 * 0 if it has none. The first symbol of the input is a head, so that the greatest position is the last head of several
 * stretches. */
static constexpr int TSR_POSITION_BITS = 31;
static constexpr uint64_t TSR_POSITION_MASK = ((uint64_t)1 << TSR_POSITION_BITS) - 1u;

static __device__ __forceinline__ uint64_t tsr_pack_heads(uint32_t heads, uint32_t last)
{
    return (uint64_t)heads << TSR_POSITION_BITS | last;
}

static __device__ __forceinline__ uint32_t tsr_heads_of(uint64_t packed)
{
    return (uint32_t)(packed >> TSR_POSITION_BITS);
}

static __device__ __forceinline__ uint32_t tsr_last_head_of(uint64_t packed)
{
    return (uint32_t)(packed & TSR_POSITION_MASK);
}

/* The operator of a scan over stretches, for tsr_look_back_by. */
struct tsr_add_heads {
    static __device__ __forceinline__ uint64_t value(uint64_t sum)
    {
        return sum & ~TSR_KNOWN;
    }
    static __device__ __forceinline__ uint64_t both(uint64_t a, uint64_t b)
    {
        const uint32_t last_a = tsr_last_head_of(a), last_b = tsr_last_head_of(b);
        return tsr_pack_heads(tsr_heads_of(a) + tsr_heads_of(b), last_a < last_b ? last_b : last_a);
    }
    static __device__ __forceinline__ uint64_t sums(uint64_t value)
    {
        return tsr_pack_heads(tsr_warp_sum(tsr_heads_of(value)), tsr_warp_max(tsr_last_head_of(value)));
    }
};

/* Appends one bit for each symbol of word to bits, from below, the first symbol lowest: 1 if the symbol differs from
 * the one before. The one before the first is the last of before. Fields of the difference that are not 0 become their
 * top bits, and a product gathers these. */
template <typename T>
static __device__ __forceinline__ uint32_t tsr_join_heads(uint32_t bits, uint32_t word, uint32_t before)
{
    if (sizeof(T) == 4) return bits << 1 | (word != before ? 1u : 0u);
    constexpr uint32_t low = sizeof(T) == 1 ? 0x7f7f7f7fu : 0x7fff7fffu;
    constexpr uint32_t gather = sizeof(T) == 1 ? 1u | 1u << 7 | 1u << 14 | 1u << 21 : 1u | 1u << 15;
    const uint32_t differs = word ^ __funnelshift_l(before, word, 8 * sizeof(T));
    const uint32_t top = (((differs & low) + low) | differs) & ~low;
    return __funnelshift_l(top * gather, bits, 4 / sizeof(T));
}

/* The heads among the 16 bytes v, one bit a symbol. before: the word before them. */
template <typename T> static __device__ __forceinline__ uint32_t tsr_heads(uint4 v, uint32_t before)
{
    uint32_t bits = tsr_join_heads<T>(0u, v.w, v.z);
    bits = tsr_join_heads<T>(bits, v.z, v.y);
    bits = tsr_join_heads<T>(bits, v.y, v.x);
    return tsr_join_heads<T>(bits, v.x, before);
}

#endif
