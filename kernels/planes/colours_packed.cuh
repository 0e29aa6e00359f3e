/* Packed colours on the device: sets of a frame's colours, and what stands for a sample in a packed frame. */
#ifndef TSR_KERNELS_PLANES_COLOURS_PACKED_CUH
#define TSR_KERNELS_PLANES_COLOURS_PACKED_CUH

#include "kernels/machine/device.cuh"

#include "colour_choice.h"
#include "kernels/batch/batch_transform_cuda.h"

/* The first plane of a frame, and where its components' indices are. */
static __device__ __forceinline__ const uint16_t *tsr_frame_samples(const tsr_cuda_batch &b, uint32_t frame)
{
    return b.shared.samples + (size_t)frame * b.shape.components * b.shape.plane_samples;
}

static __device__ __forceinline__ uint16_t *tsr_component_index(const tsr_cuda_batch &b, uint32_t frame, int component)
{
    return b.shared.index + ((size_t)frame * b.shape.components + (uint32_t)component) * b.shape.values;
}

/* Puts a colour into a set, which counts them; many threads at once. Returns false, and may not have done it, where
 * there are more than TSR_PALETTE_LIMIT. */
static __device__ __forceinline__ bool tsr_put_colour(unsigned long long *slot, uint32_t *colours, uint64_t key)
{
    const volatile uint32_t *const now = colours;
    uint32_t at = tsr_colour_slot(key, TSR_DEVICE_COLOUR_SLOTS);
    for (int tries = 0; tries < TSR_DEVICE_COLOUR_SLOTS; tries++, at = (at + 1) % TSR_DEVICE_COLOUR_SLOTS) {
        unsigned long long there = slot[at]; /* or what was there: then the look that counts follows */
        if (there == 0) {
            if (*now > TSR_PALETTE_LIMIT) return false;
            there = atomicCAS(&slot[at], 0ull, (unsigned long long)key + 1u);
            if (there == 0) return atomicAdd(colours, 1u) < TSR_PALETTE_LIMIT;
        }
        if (there == key + 1) return true;
    }
    return false; /* all slots are taken */
}

/* The number of a colour of the set in the palette. */
static __device__ __forceinline__ uint16_t tsr_colour_rank(const tsr_colour_set &set, int leading, uint64_t key)
{
    uint32_t at = tsr_colour_slot(key, TSR_DEVICE_COLOUR_SLOTS);
    while (set.slot[at] != key + 1) at = (at + 1) % TSR_DEVICE_COLOUR_SLOTS;
    return set.rank[leading][at];
}

/* Bits of the values of a frame that is packed by component. */
static __device__ __forceinline__ int tsr_listed_bits(const tsr_packing_state &packing, int bits)
{
    tsr_colour_model model;
    model.packing = TSR_COLOURS_BY_COMPONENT;
    for (int c = 0; c < 3; c++) model.count[c] = packing.listed[c];
    return tsr_packed_colour_bits(&model, bits);
}

#endif
