/* Energies on the device (entropy/energies.h), for encoder and decoder. Here two places share a word: a block's
 * magnitudes are 8 words, as are its energies, and what one magnitude adds to all of them is 8 multiplications. No half
 * overflows into the other: see TSR_MAGNITUDE_CAP. tests/equality/test_cuda_choice.c and test_cuda_engine.c hold both
 * forms equal. */
#ifndef TSR_KERNELS_SLICES_ENERGIES_CUH
#define TSR_KERNELS_SLICES_ENERGIES_CUH

#include "kernels/machine/device.cuh"

#include "entropy/energies.h"

enum { TSR_PLACE_WORDS = TSR_BLOCK_SAMPLES / 2 };

static __device__ __forceinline__ uint32_t tsr_half(const uint32_t words[TSR_PLACE_WORDS], int place)
{
    return place % 2 ? words[place / 2] >> 16 : words[place / 2] & 0xffffu;
}

/* tsr_see_magnitudes. */
static __device__ __forceinline__ void tsr_see_words(const int32_t block[TSR_BLOCK_SAMPLES], int shift,
                                                     uint32_t seen[TSR_PLACE_WORDS])
{
#pragma unroll
    for (int k = 0; k < TSR_PLACE_WORDS; k++)
        seen[k] = tsr_seen_magnitude((uint32_t)tsr_abs(block[2 * k + 1]), shift) << 16 |
                  tsr_seen_magnitude((uint32_t)tsr_abs(block[2 * k]), shift);
}

/* tsr_energies_around; corners: the sums of both. */
static __device__ __forceinline__ void tsr_word_energies(const uint32_t left[TSR_PLACE_WORDS],
                                                         const uint32_t above[TSR_PLACE_WORDS],
                                                         const uint32_t corners[TSR_PLACE_WORDS],
                                                         uint32_t energy[TSR_PLACE_WORDS])
{
#pragma unroll
    for (int k = 0; k < TSR_PLACE_WORDS; k++) {
        /* All by the lower place's weights, and the upper half by what its place's are more: mod 2^32 that is exact. */
        const uint32_t low[3] = {TSR_AT(tsr_weight_left)[2 * k], TSR_AT(tsr_weight_above)[2 * k],
                                 TSR_AT(tsr_weight_corner)[2 * k]};
        const uint32_t more[3] = {TSR_AT(tsr_weight_left)[2 * k + 1] - low[0],
                                  TSR_AT(tsr_weight_above)[2 * k + 1] - low[1],
                                  TSR_AT(tsr_weight_corner)[2 * k + 1] - low[2]};
        energy[k] = left[k] * low[0] + above[k] * low[1] + corners[k] * low[2] + (left[k] & 0xffff0000u) * more[0] +
                    (above[k] & 0xffff0000u) * more[1] + (corners[k] & 0xffff0000u) * more[2];
    }
}

/* Two steps an octave, as tsr_energy_class has them, but 0 and 1 lie three steps apart, not one. */
static __device__ __forceinline__ uint32_t tsr_energy_row(uint32_t energy)
{
    const uint32_t bits = energy << 1 | 1u, zeros = (uint32_t)__clz((int)bits);
    return (bits << zeros >> 30) + 60u - 2u * zeros;
}

/* tsr_energy_class. */
static __device__ __forceinline__ int tsr_class_of_energy(uint32_t energy)
{
    return tsr_max(0, (int)tsr_energy_row(energy) - 2);
}

/* tsr_block_energy_class. */
static __device__ __forceinline__ int tsr_class_of_block(const uint32_t energy[TSR_PLACE_WORDS])
{
    uint32_t sum = 0;
#pragma unroll
    for (int k = 0; k < TSR_PLACE_WORDS; k++) sum += (energy[k] & 0xffffu) + (energy[k] >> 16);
    return tsr_class_of_energy(min(sum >> 2, 65535u));
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

    __device__ __forceinline__ void energies(uint32_t place, uint32_t energy[TSR_PLACE_WORDS]) const
    {
        uint32_t left[TSR_PLACE_WORDS], above[TSR_PLACE_WORDS], corners[TSR_PLACE_WORDS];
#pragma unroll
        for (int k = 0; k < TSR_PLACE_WORDS; k++) {
            const uint32_t *row = words[k];
            left[k] = row[place - 1u];
            above[k] = row[place - PITCH];
            corners[k] = row[place - PITCH - 1u] + row[place - PITCH + 1u];
        }
        tsr_word_energies(left, above, corners, energy);
    }
};

#endif
