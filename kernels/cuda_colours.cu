/* Colour transforms on the device: FORMAT.md sections 6.3 and 6.6. The choice is that of colours_cpu.c: the same sums
 * of the same costs over the same samples, and sums of integers have no order. */
#include "plane_groups.cuh"

#include "../entropy/code_cost.h"
#include "../transform/median_edge.h"

using namespace tsr_planes;

namespace
{

__device__ __forceinline__ uint32_t residual_cost(int32_t x, int32_t w, int32_t n, int32_t nw)
{
    return tsr_magnitude_cost((uint32_t)tsr_abs(x - tsr_median_edge(w, n, nw)));
}

__device__ __forceinline__ void colour_at(const uint16_t *planes, size_t plane_samples, size_t at, tsr_colour colour,
                                          int bits, int32_t out[3])
{
    for (int c = 0; c < 3; c++) out[c] = planes[c * plane_samples + at];
    tsr_colour_forward(out, colour, bits);
}

/* A block a frame and transform: what it costs. */
__global__ void __launch_bounds__(THREADS) k_colour_cost(const tsr_cuda_batch b)
{
    const uint32_t frame = blockIdx.x / TSR_COLOUR_COUNT;
    const tsr_colour colour = (tsr_colour)(blockIdx.x % TSR_COLOUR_COUNT);
    const uint16_t *planes = b.samples + (size_t)frame * b.components * b.plane_samples;
    const uint32_t step = tsr_choice_step(b.image.columns, b.image.rows, TSR_COLOUR_SAMPLES),
                   across = b.image.columns - 1;
    const uint32_t looked_at = choice_rows(b.image, step) * across;
    const int bits = b.bits;
    uint64_t cost = 0;
    for (uint32_t i = threadIdx.x; i < looked_at; i += THREADS) {
        const uint32_t row = i / across;
        const size_t at = (size_t)(1 + row * step) * b.pitch + 1 + (i - row * across);
        int32_t x[3], w[3], n[3], nw[3];
        colour_at(planes, b.plane_samples, at, colour, bits, x);
        colour_at(planes, b.plane_samples, at - 1, colour, bits, w);
        colour_at(planes, b.plane_samples, at - b.pitch, colour, bits, n);
        colour_at(planes, b.plane_samples, at - b.pitch - 1, colour, bits, nw);
        for (int c = 0; c < 3; c++) cost += residual_cost(x[c], w[c], n[c], nw[c]);
    }
    cost = tsr_warp_sum(cost);
    if (threadIdx.x % TSR_WARP == 0)
        atomicAdd(reinterpret_cast<unsigned long long *>(&b.frame[frame].colour_cost[colour]),
                  (unsigned long long)cost);
}

/* Which transforms wrap differences; of 16-bit components. */
__global__ void __launch_bounds__(THREADS) k_colour_wraps(const tsr_cuda_batch b, unsigned blocks)
{
    const uint32_t frame = blockIdx.x / blocks, group = (blockIdx.x - frame * blocks) * THREADS + threadIdx.x;
    const uint16_t *planes = b.samples + (size_t)frame * b.components * b.plane_samples;
    const int bits = b.bits;
    uint32_t wraps = 0;
    if (group < b.plane_samples / GROUP) {
        for (int i = 0; i < GROUP; i++) { /* what pads a row repeats a sample of it */
            const size_t at = (size_t)group * GROUP + i;
            for (int colour = 1; colour < TSR_COLOUR_COUNT; colour++) {
                int32_t v[3];
                colour_at(planes, b.plane_samples, at, (tsr_colour)colour, bits, v);
                tsr_colour_inverse(v, (tsr_colour)colour, bits, true);
                for (int c = 0; c < 3; c++) wraps |= (v[c] != planes[c * b.plane_samples + at] ? 1u : 0u) << colour;
            }
        }
    }
    for (int colour = 1; colour < TSR_COLOUR_COUNT; colour++)
        if (__any_sync(TSR_FULL_WARP, wraps >> colour & 1u) && threadIdx.x % TSR_WARP == 0)
            atomicOr(&b.frame[frame].wraps, 1u << colour);
}

/* Slots of a set of colours: its threads may each put one more into it before they see that it has too many. */
enum { COLOUR_SLOTS = 2048 };
static_assert(TSR_PALETTE_LIMIT + THREADS < COLOUR_SLOTS, "there is always a free slot");

/* Puts the colours of every step-th row into the set, until they are too many. A block. */
__device__ __forceinline__ void collect_colours(const tsr_image &image, const uint16_t *planes, size_t plane_samples,
                                                uint32_t pitch, uint32_t step, unsigned long long *slot,
                                                volatile uint32_t *colours)
{
    for (uint32_t row = 0; row < image.rows; row += step)
        for (uint32_t x = threadIdx.x; x < image.columns; x += THREADS) {
            if (*colours > TSR_PALETTE_LIMIT) return;
            const uint16_t *from = planes + (size_t)row * pitch + x;
            const unsigned long long key =
                ((unsigned long long)from[0] << 32 | (uint32_t)from[plane_samples] << 16 | from[2 * plane_samples]) +
                1u;
            uint32_t at = (uint32_t)(key * 0x9e3779b97f4a7c15ull >> 40) % COLOUR_SLOTS;
            for (;; at = (at + 1) % COLOUR_SLOTS) {
                if (*(volatile unsigned long long *)&slot[at] == key) break;
                const unsigned long long there = atomicCAS(&slot[at], 0ull, key);
                if (there == 0) atomicAdd(const_cast<uint32_t *>(colours), 1u);
                if (there == 0 || there == key) break;
            }
        }
}

/* A block a frame: what tsr_pack_colours finds first. used: shared, a bit a value. */
__global__ void __launch_bounds__(THREADS) k_colours_in_use(const tsr_cuda_batch b)
{
    TSR_DYNAMIC_SHARED(memory);
    __shared__ unsigned long long slot[COLOUR_SLOTS]; /* a colour, plus 1; 0 where it is free */
    __shared__ uint32_t colours, in_use, low, high;
    uint32_t *used = reinterpret_cast<uint32_t *>(memory);
    const tsr_image &image = b.image;
    const uint32_t frame = blockIdx.x, words = (1u << b.bits) / 32 + 1;
    const uint16_t *planes = b.samples + (size_t)frame * b.components * b.plane_samples;
    const uint32_t step = tsr_choice_step(image.columns, image.rows, TSR_PACKING_SAMPLES);
    if (image.rows < 2 || image.columns < 2) return;
    for (int i = (int)threadIdx.x; i < COLOUR_SLOTS; i += THREADS) slot[i] = 0;
    if (threadIdx.x == 0) colours = 0;
    __syncthreads();
    collect_colours(image, planes, b.plane_samples, b.pitch, step, slot, &colours);
    bool sparse = false;
    for (int c = 0; c < 3; c++) {
        const uint16_t *plane = planes + c * b.plane_samples;
        __syncthreads();
        for (uint32_t i = threadIdx.x; i < words; i += THREADS) used[i] = 0;
        if (threadIdx.x == 0) in_use = high = 0, low = 65535;
        __syncthreads();
        for (uint32_t row = 0; row < image.rows; row += step)
            for (uint32_t x = threadIdx.x; x < image.columns; x += THREADS) {
                const uint32_t v = plane[(size_t)row * b.pitch + x];
                atomicOr(&used[v / 32], 1u << v % 32);
            }
        __syncthreads();
        for (uint32_t i = threadIdx.x; i < words; i += THREADS) {
            if (used[i] == 0) continue;
            atomicAdd(&in_use, (uint32_t)__popc(used[i]));
            atomicMin(&low, 32 * i + (uint32_t)__ffs((int)used[i]) - 1);
            atomicMax(&high, 32 * i + (uint32_t)tsr_floor_log2(used[i]));
        }
        __syncthreads();
        sparse |= 2 * in_use <= high - low + 1;
    }
    if (!sparse) collect_colours(image, planes, b.plane_samples, b.pitch, 1, slot, &colours);
    __syncthreads();
    if (threadIdx.x != 0) return;
    b.frame[frame].few_colours = colours <= TSR_PALETTE_LIMIT;
    b.frame[frame].is_sparse = sparse;
}

/* Are frames of few colours grey? */
__global__ void __launch_bounds__(THREADS) k_coloured(const tsr_cuda_batch b, unsigned blocks)
{
    const uint32_t frame = blockIdx.x / blocks, group = (blockIdx.x - frame * blocks) * THREADS + threadIdx.x;
    if (!b.frame[frame].few_colours || b.frame[frame].is_sparse) return;
    const uint16_t *planes = b.samples + (size_t)frame * b.components * b.plane_samples;
    bool coloured = false;
    if (group < b.plane_samples / GROUP)
        for (int i = 0; i < GROUP; i++) { /* what pads a row repeats a sample of it */
            const size_t at = (size_t)group * GROUP + i;
            coloured |= planes[at] != planes[b.plane_samples + at] || planes[at] != planes[2 * b.plane_samples + at];
        }
    if (__any_sync(TSR_FULL_WARP, coloured) && threadIdx.x % TSR_WARP == 0) b.frame[frame].is_coloured = 1;
}

__device__ __forceinline__ tsr_colour choose_colour(const tsr_frame_state &state)
{
    const tsr_colour candidates[] = {TSR_COLOUR_GREEN, TSR_COLOUR_RCT, TSR_COLOUR_YCOCG};
    tsr_colour best = TSR_COLOUR_NONE;
    uint64_t least = state.colour_cost[TSR_COLOUR_NONE];
#pragma unroll
    for (int i = 0; i < 3; i++) {
        const uint64_t cost = state.colour_cost[candidates[i]];
        if ((state.wraps >> candidates[i] & 1u) || cost >= least) continue;
        least = cost;
        best = candidates[i];
    }
    return best;
}

__global__ void __launch_bounds__(THREADS) k_apply_colour(const tsr_cuda_batch b, unsigned blocks)
{
    const uint32_t frame = blockIdx.x / blocks, group = (blockIdx.x - frame * blocks) * THREADS + threadIdx.x;
    uint16_t *planes = b.samples + (size_t)frame * b.components * b.plane_samples;
    const tsr_colour colour = choose_colour(b.frame[frame]);
    const int bits = b.bits;
    if (group == 0) b.frame[frame].colour = colour;
    if (colour == TSR_COLOUR_NONE || group >= b.plane_samples / GROUP) return;
    for (int i = 0; i < GROUP; i++) {
        const size_t at = (size_t)group * GROUP + i;
        int32_t v[3];
        colour_at(planes, b.plane_samples, at, colour, bits, v);
        for (int c = 0; c < 3; c++) planes[c * b.plane_samples + at] = (uint16_t)v[c];
    }
}

} // namespace

int tsr_cuda_colour(const struct tsr_cuda_batch *batch, cudaStream_t stream)
{
    if (batch->components < 3) return cudaSuccess;
    const unsigned blocks = blocks_of_plane(*batch, 1);
    const int bits = batch->bits;
    if (batch->coding.path == TSR_PATH_PREDICT) {
        const size_t used_bytes = ((1u << bits) / 32 + 1) * sizeof(uint32_t);
        TSR_CUDA_TRY(tsr_launch(k_colours_in_use, batch->frames, THREADS, used_bytes, stream, *batch));
        TSR_CUDA_TRY(tsr_launch(k_coloured, batch->frames * blocks, THREADS, 0, stream, *batch, blocks));
    }
    TSR_CUDA_TRY(tsr_launch(k_colour_cost, batch->frames * TSR_COLOUR_COUNT, THREADS, 0, stream, *batch));
    if (tsr_loses_levels(&batch->coding) && tsr_chroma_bits(bits) <= bits)
        TSR_CUDA_TRY(tsr_launch(k_colour_wraps, batch->frames * blocks, THREADS, 0, stream, *batch, blocks));
    return tsr_launch(k_apply_colour, batch->frames * blocks, THREADS, 0, stream, *batch, blocks);
}
