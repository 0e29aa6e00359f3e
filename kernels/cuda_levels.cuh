/* Levels on the device: how they lie, and the energies around them (entropy/energies.h), for kernels with a thread a
 * block. Here two places share a word: a block's magnitudes are 8 words, and what one of them adds to all energies is 8
 * multiplications. No half overflows into the other: see TSR_MAGNITUDE_CAP. */
#ifndef TSR_KERNELS_CUDA_LEVELS_CUH
#define TSR_KERNELS_CUDA_LEVELS_CUH

#include "device.cuh"

#include "cuda_stages.h"

#include "../entropy/energies.h"

/* ---- Levels in memory ----------------------------------------------------------------------------------- */

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

/* The levels of the block at a place of a slice of the batch, in the scan's order. */
template <typename Level>
static __device__ __forceinline__ void tsr_load_block(const Level *levels, size_t slice, uint32_t place,
                                                      int32_t block[TSR_BLOCK_SAMPLES])
{
#pragma unroll
    for (int quarter = 0; quarter < 4; quarter++) {
        const int4 four = tsr_load_four(levels + tsr_level_place(slice, (uint32_t)quarter, place));
        block[4 * quarter] = four.x;
        block[4 * quarter + 1] = four.y;
        block[4 * quarter + 2] = four.z;
        block[4 * quarter + 3] = four.w;
    }
}

template <typename Level>
static __device__ __forceinline__ void tsr_store_block(Level *levels, size_t slice, uint32_t place,
                                                       const int32_t block[TSR_BLOCK_SAMPLES])
{
#pragma unroll
    for (int quarter = 0; quarter < 4; quarter++)
        tsr_store_four(levels + tsr_level_place(slice, (uint32_t)quarter, place), block[4 * quarter],
                       block[4 * quarter + 1], block[4 * quarter + 2], block[4 * quarter + 3]);
}

/* Places up to the last level that is not 0. */
static __device__ __forceinline__ int tsr_places_of(const int32_t block[TSR_BLOCK_SAMPLES])
{
    uint32_t mask = 0;
#pragma unroll
    for (int p = 0; p < TSR_BLOCK_SAMPLES; p++) mask |= block[p] != 0 ? 1u << p : 0u;
    return tsr_bit_width(mask);
}

/* The shift of a plane's magnitudes. */
static __device__ __forceinline__ int tsr_plane_shift(const tsr_cuda_batch &b, uint32_t plane)
{
    return tsr_magnitude_shift(b.magnitudes[plane], b.magnitude_count);
}

/* ---- Magnitudes and energies ---------------------------------------------------------------------------- */

enum { TSR_PLACE_WORDS = TSR_BLOCK_SAMPLES / 2 };

/* Magnitudes of 256 blocks, COLUMNS in a row, with a row above and a block on both sides. */
template <int COLUMNS> struct tsr_seen_blocks {
    enum { ROWS = 256 / COLUMNS, PITCH = COLUMNS + 2, BLOCKS = PITCH * (ROWS + 1) };
    uint32_t words[TSR_PLACE_WORDS][BLOCKS];

    /* Place of a thread's block. */
    static __device__ __forceinline__ uint32_t at(uint32_t thread)
    {
        return (thread / COLUMNS + 1u) * PITCH + thread % COLUMNS + 1u;
    }

    __device__ __forceinline__ void set(uint32_t place, const uint32_t seen[TSR_PLACE_WORDS])
    {
#pragma unroll
        for (int k = 0; k < TSR_PLACE_WORDS; k++) words[k][place] = seen[k];
    }

    /* Zeros everywhere. By all threads. */
    __device__ __forceinline__ void clear(uint32_t thread, uint32_t threads)
    {
        for (uint32_t i = thread; i < (uint32_t)(TSR_PLACE_WORDS * BLOCKS); i += threads) (&words[0][0])[i] = 0;
    }

    /* tsr_energies_around. */
    __device__ __forceinline__ void energies(uint32_t place, uint32_t energy[TSR_PLACE_WORDS]) const
    {
#pragma unroll
        for (int k = 0; k < TSR_PLACE_WORDS; k++) {
            const uint32_t *row = words[k];
            const uint32_t left = row[place - 1u], above = row[place - PITCH];
            const uint32_t corners = row[place - PITCH - 1u] + row[place - PITCH + 1u];
            const uint32_t low = (left & 0xffffu) * TSR_AT(tsr_weight_left)[2 * k] +
                                 (above & 0xffffu) * TSR_AT(tsr_weight_above)[2 * k] +
                                 (corners & 0xffffu) * TSR_AT(tsr_weight_corner)[2 * k];
            const uint32_t high = (left >> 16) * TSR_AT(tsr_weight_left)[2 * k + 1] +
                                  (above >> 16) * TSR_AT(tsr_weight_above)[2 * k + 1] +
                                  (corners >> 16) * TSR_AT(tsr_weight_corner)[2 * k + 1];
            energy[k] = high << 16 | low;
        }
    }
};

/* tsr_see_magnitudes. */
static __device__ __forceinline__ void tsr_see_words(const int32_t block[TSR_BLOCK_SAMPLES], int shift,
                                                     uint32_t seen[TSR_PLACE_WORDS])
{
#pragma unroll
    for (int k = 0; k < TSR_PLACE_WORDS; k++)
        seen[k] = tsr_seen_magnitude((uint32_t)tsr_abs(block[2 * k + 1]), shift) << 16 |
                  tsr_seen_magnitude((uint32_t)tsr_abs(block[2 * k]), shift);
}

static __device__ __forceinline__ uint32_t tsr_half(const uint32_t words[TSR_PLACE_WORDS], int place)
{
    return place % 2 ? words[place / 2] >> 16 : words[place / 2] & 0xffffu;
}

/* tsr_add_energies. */
static __device__ __forceinline__ void tsr_add_own_energies(const uint32_t seen[TSR_PLACE_WORDS],
                                                            uint32_t energy[TSR_PLACE_WORDS])
{
#pragma unroll
    for (int p = 1; p < TSR_BLOCK_SAMPLES; p++) {
        const uint32_t magnitude = tsr_half(seen, p);
#pragma unroll
        for (int k = 0; k < TSR_PLACE_WORDS; k++)
            energy[k] += magnitude * ((uint32_t)TSR_AT(tsr_weight_inside)[TSR_BLOCK_SAMPLES * p + 2 * k + 1] << 16 |
                                      TSR_AT(tsr_weight_inside)[TSR_BLOCK_SAMPLES * p + 2 * k]);
    }
}

/* tsr_block_energy_level. */
static __device__ __forceinline__ int tsr_level_of_block(const uint32_t energy[TSR_PLACE_WORDS])
{
    uint32_t sum = 0;
#pragma unroll
    for (int k = 0; k < TSR_PLACE_WORDS; k++) sum += (energy[k] & 0xffffu) + (energy[k] >> 16);
    return tsr_energy_level(min(sum >> 2, 65535u));
}

#endif
