/* Coefficients on the device: how they lie, and how their symbols are counted, for kernels with a thread a block. */
#ifndef TSR_KERNELS_SLICES_COEFFICIENTS_CUH
#define TSR_KERNELS_SLICES_COEFFICIENTS_CUH

#include "kernels/machine/device.cuh"

#include "kernels/batch/batch_transform_cuda.h"

/* ---- Coefficients in memory ----------------------------------------------------------------------------------- */

static __device__ __forceinline__ int4 tsr_load_four(const int32_t *at)
{
    return __ldcs(reinterpret_cast<const int4 *>(at));
}

static __device__ __forceinline__ int4 tsr_load_four(const int16_t *at)
{
    const short4 four = __ldcs(reinterpret_cast<const short4 *>(at));
    return make_int4(four.x, four.y, four.z, four.w);
}

static __device__ __forceinline__ void tsr_store_four(int32_t *at, int32_t x, int32_t y, int32_t z, int32_t w)
{
    *reinterpret_cast<int4 *>(at) = make_int4(x, y, z, w);
}

static __device__ __forceinline__ void tsr_store_four(int16_t *at, int32_t x, int32_t y, int32_t z, int32_t w)
{
    *reinterpret_cast<short4 *>(at) = make_short4((short)x, (short)y, (short)z, (short)w);
}

/* The coefficients of the block at a place of a slice of the batch, in the scan's order. */
template <typename Coefficient>
static __device__ __forceinline__ void tsr_load_block(const Coefficient *coefficients, size_t slice, uint32_t place,
                                                      int32_t block[TSR_BLOCK_SAMPLES])
{
#pragma unroll
    for (int quarter = 0; quarter < 4; quarter++) {
        const int4 four = tsr_load_four(coefficients + tsr_coefficient_place(slice, (uint32_t)quarter, place));
        block[4 * quarter] = four.x;
        block[4 * quarter + 1] = four.y;
        block[4 * quarter + 2] = four.z;
        block[4 * quarter + 3] = four.w;
    }
}

template <typename Coefficient>
static __device__ __forceinline__ void tsr_store_block(Coefficient *coefficients, size_t slice, uint32_t place,
                                                       const int32_t block[TSR_BLOCK_SAMPLES])
{
#pragma unroll
    for (int quarter = 0; quarter < 4; quarter++)
        tsr_store_four(coefficients + tsr_coefficient_place(slice, (uint32_t)quarter, place), block[4 * quarter],
                       block[4 * quarter + 1], block[4 * quarter + 2], block[4 * quarter + 3]);
}

/* Places up to the last coefficient that is not 0. */
static __device__ __forceinline__ int tsr_places_of(const int32_t block[TSR_BLOCK_SAMPLES])
{
    uint32_t mask = 0;
#pragma unroll
    for (int p = 0; p < TSR_BLOCK_SAMPLES; p++) mask |= block[p] != 0 ? 1u << p : 0u;
    return tsr_bit_width(mask);
}

/* Of a block's places but the first. */
static __device__ __forceinline__ uint32_t tsr_magnitudes_of(const int32_t block[TSR_BLOCK_SAMPLES])
{
    uint32_t sum = 0;
#pragma unroll
    for (int p = 1; p < TSR_BLOCK_SAMPLES; p++) sum += (uint32_t)tsr_abs(block[p]);
    return sum;
}

/* To the plane's. By all threads of a warp. */
static __device__ __forceinline__ void tsr_add_magnitudes(const tsr_cuda_batch &b, uint32_t plane, uint64_t sum)
{
    sum = tsr_warp_sum(sum);
    if (threadIdx.x % TSR_WARP == 0 && sum > 0)
        atomicAdd(reinterpret_cast<unsigned long long *>(&b.transform.magnitudes[plane]), (unsigned long long)sum);
}

/* The shift of a plane's magnitudes. */
static __device__ __forceinline__ int tsr_plane_shift(const tsr_cuda_batch &b, uint32_t plane)
{
    return tsr_magnitude_shift(b.transform.magnitudes[plane], b.transform.magnitude_count);
}

/* ---- Counts of symbols ---------------------------------------------------------------------------------- */

/* Of a tile, in shared memory, two in a word: each must stay below 65536. */
template <int COUNTS> struct tsr_tile_counts {
    enum { WORDS = (COUNTS + 1) / 2 };
    uint32_t two[WORDS];

    /* By all threads. */
    __device__ __forceinline__ void clear(unsigned thread, unsigned threads)
    {
        for (unsigned i = thread; i < WORDS; i += threads) two[i] = 0;
    }

    __device__ __forceinline__ void add(uint32_t at)
    {
        atomicAdd(&two[at / 2], at % 2 ? 1u << 16 : 1u);
    }

    /* To a plane's. By all threads, after a barrier. */
    __device__ __forceinline__ void add_to(uint32_t *sums, unsigned thread, unsigned threads) const
    {
        for (unsigned i = thread; i < WORDS; i += threads) {
            const uint32_t own = two[i];
            if (own & 0xffffu) atomicAdd(&sums[2 * i], own & 0xffffu);
            if (own >> 16) atomicAdd(&sums[2 * i + 1], own >> 16);
        }
    }
};

/* Of groups of TSR_ENERGY_CLASSES cells. */
template <int GROUPS, int SYMBOLS>
struct alignas(8) tsr_cell_counts : tsr_tile_counts<GROUPS * TSR_ENERGY_CLASSES * SYMBOLS> {
    /* To a plane's; bit c of in_use[group], zero before, is set where a cell counted something. Where the tile is the
     * plane's only one, rows of other cells stay as they are, else all must be zero before. By all threads, after a
     * barrier. */
    __device__ __forceinline__ void add_to_cells(uint32_t *sums, uint32_t *in_use, bool is_only, unsigned thread,
                                                 unsigned threads) const
    {
        enum { FOURS = SYMBOLS / 4, CELLS = GROUPS * TSR_ENERGY_CLASSES, AT_ONCE = 4 /* of a warp */ };
        static_assert(SYMBOLS % 4 == 0 && FOURS <= TSR_WARP && TSR_ENERGY_CLASSES == 32, "a lane has four symbols");
        const unsigned lane = thread % TSR_WARP;
        for (unsigned first = thread / TSR_WARP * AT_ONCE; first < CELLS; first += threads / TSR_WARP * AT_ONCE) {
            uint32_t used = 0;
#pragma unroll
            for (unsigned c = 0; c < AT_ONCE; c++) {
                const unsigned at = (first + c) * FOURS + lane;
                const uint2 own = lane < FOURS ? reinterpret_cast<const uint2 *>(this->two)[at] : make_uint2(0, 0);
                if (!__any_sync(TSR_FULL_WARP, own.x | own.y)) continue;
                used |= 1u << c;
                if (lane >= FOURS) continue;
                uint4 *const to = reinterpret_cast<uint4 *>(sums) + at;
                const uint4 four = make_uint4(own.x & 0xffffu, own.x >> 16, own.y & 0xffffu, own.y >> 16);
                if (is_only) {
                    *to = four;
                    continue;
                }
                if (four.x) atomicAdd(&to->x, four.x);
                if (four.y) atomicAdd(&to->y, four.y);
                if (four.z) atomicAdd(&to->z, four.z);
                if (four.w) atomicAdd(&to->w, four.w);
            }
            if (lane == 0 && used) atomicOr(&in_use[first / TSR_ENERGY_CLASSES], used << first % TSR_ENERGY_CLASSES);
        }
    }
};

#endif
