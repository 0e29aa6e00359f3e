/* Run-level symbols of a block, one after the other: the device form of tsr_block_symbols (entropy/run_level.h), which
 * keeps them in an array, and arrays with computed places cost a GPU thread its stack.
 * tests/equality/test_cuda_engine.c holds both forms equal. */
#ifndef TSR_KERNELS_SLICES_RUN_LEVEL_CUH
#define TSR_KERNELS_SLICES_RUN_LEVEL_CUH

#include "kernels/machine/device.cuh"

#include "entropy/run_level.h"

/* Calls take(place, start) for each coefficient after the first that is not 0, in order: its place in the scan, and
 * where its run of zeros starts. mask: bit p is set where the coefficient at place p is not 0. Returns where the zeros
 * after the last one start: TSR_BLOCK_SAMPLES if there are none, else an end of block follows. */
template <typename Take> static __device__ __forceinline__ int tsr_visit_runs(uint32_t mask, Take take)
{
    int start = 1;
    for (mask &= ~1u; mask != 0; mask &= mask - 1u) {
        const int place = __ffs((int)mask) - 1;
        take(place, start);
        start = place + 1;
    }
    return start;
}

/* Symbol of a coefficient after its run of zeros; width: of its magnitude - 1. */
static __device__ __forceinline__ int tsr_run_level_symbol(int run, int width)
{
    return 1 + run * TSR_WIDTH_CLASSES + width;
}

/* Energies of a slice's blocks, in shared memory: what each shows to the blocks right of it and below. From ENOUGH on,
 * all give a neighbourhood the same class, so 16 bits hold them. */
struct tsr_slice_energies {
    enum { ENOUGH = 1 << (TSR_NEIGHBOUR_CLASSES - 2) };
    uint16_t dc[256], ac[256];

    __device__ __forceinline__ void set(unsigned place, uint32_t dc_energy, uint32_t ac_energy)
    {
        dc[place] = (uint16_t)min(dc_energy, (uint32_t)ENOUGH);
        ac[place] = (uint16_t)min(ac_energy, (uint32_t)ENOUGH);
    }

    /* Classes of the neighbourhoods of the block at a place of its slice. */
    __device__ __forceinline__ void classes(unsigned place, int *dc_class, int *ac_class) const
    {
        const bool has_left = place % 16 > 0, has_up = place >= 16;
        const unsigned left = has_left ? place - 1 : place, up = has_up ? place - 16 : place;
        *dc_class = tsr_neighbour_class(dc[left], has_left, dc[up], has_up);
        *ac_class = tsr_neighbour_class(ac[left], has_left, ac[up], has_up);
    }
};

#endif
