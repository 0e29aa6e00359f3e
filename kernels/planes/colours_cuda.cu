/* Colour transforms and packings on the device: FORMAT.md sections 6.3 and 6.6. The choice is that of ranges_cpu.c and
 * colours_cpu.c: the same sums of the same costs over the same samples, and sums of integers have no order. */
#include "colours_packed.cuh"
#include "plane_groups.cuh"

#include "kernels/transform_plan.h"
#include "transform/predict/median_edge.h"

using namespace tsr_planes;

namespace
{

/* ---- What planes would be ---------------------------------------------------------------------------------- */

/* Ways to hold a sample's three components, each as what it makes of them. */
struct plain_values {
    tsr_colour colour;
    int bits;

    __device__ __forceinline__ void make(const uint32_t in[3], int32_t out[3]) const
    {
        for (int c = 0; c < 3; c++) out[c] = (int32_t)in[c];
        tsr_colour_forward(out, colour, bits);
    }
};

struct listed_values {
    const uint16_t *index[3];
    tsr_colour colour;
    int bits;

    __device__ __forceinline__ void make(const uint32_t in[3], int32_t out[3]) const
    {
        for (int c = 0; c < 3; c++) out[c] = index[c][in[c]];
        tsr_colour_forward(out, colour, bits);
    }
};

struct palette_values {
    const tsr_colour_set &set;
    int leading;

    __device__ __forceinline__ void make(const uint32_t in[3], int32_t out[3]) const
    {
        out[0] = tsr_colour_rank(set, leading, tsr_colour_key((uint16_t)in[0], (uint16_t)in[1], (uint16_t)in[2]));
        out[1] = out[2] = 0;
    }
};

__device__ __forceinline__ listed_values listed_of(const tsr_cuda_batch &b, uint32_t frame, tsr_colour colour)
{
    return {{tsr_component_index(b, frame, 0), tsr_component_index(b, frame, 1), tsr_component_index(b, frame, 2)},
            colour,
            tsr_listed_bits(b.shared.packing[frame], b.shape.bits)};
}

/* Of sample number i of a group. */
template <typename Values>
__device__ __forceinline__ void make_one(const Values &values, const uint32_t group[3][GROUP], int i, int32_t out[3])
{
    const uint32_t in[3] = {group[0][i], group[1][i], group[2][i]};
    values.make(in, out);
}

/* ---- Costs ------------------------------------------------------------------------------------------------- */

/* By a block: tsr_colour_cost, added to *sum. costs: filled. A thread takes a group of a row's columns. */
template <typename Values>
__device__ __forceinline__ void add_cost(const tsr_cuda_batch &b, uint32_t frame, const uint16_t *costs,
                                         const Values values, uint64_t *sum)
{
    const uint32_t step = tsr_choice_step(b.shape.image.columns, b.shape.image.rows, TSR_COLOUR_SAMPLES);
    const uint32_t across = b.shape.pitch / GROUP, groups = choice_rows(b.shape.image, step) * across;
    uint64_t cost = 0;
    for (uint32_t group = threadIdx.x; group < groups; group += THREADS) {
        const uint32_t row = group / across, column = (group - row * across) * GROUP;
        const uint16_t *const at = tsr_frame_samples(b, frame) + (size_t)(1 + row * step) * b.shape.pitch + column;
        uint32_t here[3][GROUP], above[3][GROUP];
        int32_t w[3] = {0, 0, 0}, nw[3] = {0, 0, 0};
        load_groups(at, b.shape.plane_samples, here);
        load_groups(at - b.shape.pitch, b.shape.plane_samples, above);
        if (column > 0) {
            const uint16_t *const left = at - 1, *const corner = left - b.shape.pitch;
            const uint32_t lefts[3] = {left[0], left[b.shape.plane_samples], left[2 * b.shape.plane_samples]},
                           corners[3] = {corner[0], corner[b.shape.plane_samples], corner[2 * b.shape.plane_samples]};
            values.make(lefts, w);
            values.make(corners, nw);
        }
#pragma unroll
        for (int i = 0; i < GROUP; i++) {
            int32_t x[3], n[3];
            make_one(values, here, i, x);
            make_one(values, above, i, n);
            const bool counts = column + (uint32_t)i > 0 && column + (uint32_t)i < b.shape.image.columns;
            for (int c = 0; c < 3; c++) {
                if (counts) cost += known_cost(costs, (uint32_t)tsr_abs(x[c] - tsr_median_edge(w[c], n[c], nw[c])));
                w[c] = x[c];
                nw[c] = n[c];
            }
        }
    }
    cost = tsr_warp_sum(cost);
    if (threadIdx.x % TSR_WARP == 0) atomicAdd(reinterpret_cast<unsigned long long *>(sum), (unsigned long long)cost);
}

/* Ways to hold a frame: a transform of its components, a transform of their indices, a palette by leading component. */
enum { LISTED_WAYS = TSR_COLOUR_COUNT, PALETTE_WAYS = 2 * TSR_COLOUR_COUNT, WAYS = PALETTE_WAYS + 3 };

/* A block a frame and way: what it costs, if it is one. */
__global__ void __launch_bounds__(THREADS) k_colour_cost(const tsr_cuda_batch b, unsigned ways)
{
    __shared__ uint16_t costs[COST_TABLE];
    const uint32_t frame = blockIdx.x / ways, way = blockIdx.x - frame * ways;
    const uint32_t listed = way - LISTED_WAYS, leading = way - PALETTE_WAYS;
    if (way >= PALETTE_WAYS ? b.shared.packing[frame].palette_bits[leading] == 0
                            : way >= LISTED_WAYS && !b.shared.packing[frame].is_sparse)
        return;
    fill_costs(costs);
    __syncthreads();
    if (way < LISTED_WAYS)
        add_cost(b, frame, costs, plain_values{(tsr_colour)way, b.shape.bits}, &b.shared.frame[frame].colour_cost[way]);
    else if (way < PALETTE_WAYS)
        add_cost(b, frame, costs, listed_of(b, frame, (tsr_colour)listed),
                 &b.shared.packing[frame].listed_cost[listed]);
    else
        add_cost(b, frame, costs, palette_values{b.shared.colour_set[frame], (int)leading},
                 &b.shared.packing[frame].palette_cost[leading]);
}

/* Which transforms wrap differences; of 16-bit components. */
__global__ void __launch_bounds__(THREADS) k_colour_wraps(const tsr_cuda_batch b, unsigned blocks)
{
    const uint32_t frame = blockIdx.x / blocks, group = (blockIdx.x - frame * blocks) * THREADS + threadIdx.x;
    uint32_t wraps = 0;
    if (group < b.shape.plane_samples / GROUP) {
        uint32_t value[3][GROUP]; /* what pads a row repeats a sample of it */
        load_groups(tsr_frame_samples(b, frame) + (size_t)group * GROUP, b.shape.plane_samples, value);
        for (int i = 0; i < GROUP; i++)
            for (int colour = 1; colour < TSR_COLOUR_COUNT; colour++) {
                int32_t v[3];
                make_one(plain_values{(tsr_colour)colour, b.shape.bits}, value, i, v);
                tsr_colour_inverse(v, (tsr_colour)colour, b.shape.bits, true);
                for (int c = 0; c < 3; c++) wraps |= (v[c] != (int32_t)value[c][i] ? 1u : 0u) << colour;
            }
    }
    for (int colour = 1; colour < TSR_COLOUR_COUNT; colour++)
        if (__any_sync(TSR_FULL_WARP, wraps >> colour & 1u) && threadIdx.x % TSR_WARP == 0)
            atomicOr(&b.shared.frame[frame].wraps, 1u << colour);
}

/* ---- The choice -------------------------------------------------------------------------------------------- */

__device__ __forceinline__ tsr_colour choose_colour(const uint64_t cost[TSR_COLOUR_COUNT], uint32_t not_these)
{
    const tsr_colour candidates[] = {TSR_COLOUR_GREEN, TSR_COLOUR_RCT, TSR_COLOUR_YCOCG};
    tsr_colour best = TSR_COLOUR_NONE;
    uint64_t least = cost[TSR_COLOUR_NONE];
#pragma unroll
    for (int i = 0; i < 3; i++) {
        const uint64_t here = cost[candidates[i]];
        if ((not_these >> candidates[i] & 1u) || here >= least) continue;
        least = here;
        best = candidates[i];
    }
    return best;
}

struct colour_choice {
    tsr_colour colour;
    tsr_colour_packing packing;
    int leading;
};

__device__ __forceinline__ uint64_t least_bits(const tsr_image &image, const uint64_t cost[TSR_COLOUR_COUNT])
{
    return tsr_bits_of_cost(cost[choose_colour(cost, 0)], image.columns, image.rows);
}

/* tsr_pack_colours, whose costs are known. */
__device__ void choose_packing(const tsr_cuda_batch &b, uint32_t frame, colour_choice *choice)
{
    const tsr_packing_state &packing = b.shared.packing[frame];
    if (!packing.is_sparse && packing.palette_bits[0] == 0) return;
    uint64_t least = least_bits(b.shape.image, b.shared.frame[frame].colour_cost) + 2 * TSR_PLANE_BITS;
    if (packing.is_sparse) {
        const uint64_t bits =
            least_bits(b.shape.image, packing.listed_cost) + tsr_packing_bits(packing.list_bits) + 2 * TSR_PLANE_BITS;
        if (bits < least) {
            least = bits;
            choice->packing = TSR_COLOURS_BY_COMPONENT;
            choice->colour = choose_colour(packing.listed_cost, 0);
        }
    }
    for (int leading = 0; leading < 3 && packing.palette_bits[leading] > 0; leading++) {
        const uint64_t bits =
            tsr_bits_of_cost(packing.palette_cost[leading], b.shape.image.columns, b.shape.image.rows) +
            tsr_packing_bits(packing.palette_bits[leading]);
        if (bits >= least) continue;
        least = bits;
        choice->packing = TSR_COLOURS_PALETTE;
        choice->colour = TSR_COLOUR_NONE;
        choice->leading = leading;
    }
}

/* The values of the palette's colours, in its order. By a block. */
__device__ __forceinline__ void put_palette(const tsr_cuda_batch &b, uint32_t frame, int leading)
{
    const tsr_colour_set &set = b.shared.colour_set[frame];
    uint16_t *const list = b.shared.palette + 3 * (size_t)frame * TSR_PALETTE_LIMIT;
    for (int i = (int)threadIdx.x; i < TSR_DEVICE_COLOUR_SLOTS; i += THREADS) {
        if (set.slot[i] == 0) continue;
        for (int c = 0; c < 3; c++)
            list[c * TSR_PALETTE_LIMIT + set.rank[leading][i]] = tsr_key_component(set.slot[i] - 1, c);
    }
}

/* samples: a group of each of the first three planes, in place. */
template <typename Values>
__device__ __forceinline__ void apply(uint16_t *samples, size_t plane_samples, const Values values)
{
    uint32_t value[3][GROUP];
    load_groups(samples, plane_samples, value);
#pragma unroll
    for (int i = 0; i < GROUP; i++) {
        int32_t out[3];
        make_one(values, value, i, out);
        for (int c = 0; c < 3; c++) value[c][i] = (uint32_t)out[c];
    }
    for (int c = 0; c < 3; c++) *reinterpret_cast<uint4 *>(samples + c * plane_samples) = pack_group(value[c]);
}

__global__ void __launch_bounds__(THREADS) k_apply_colour(const tsr_cuda_batch b, unsigned blocks)
{
    __shared__ colour_choice choice;
    const uint32_t frame = blockIdx.x / blocks, block = blockIdx.x - frame * blocks;
    const uint32_t group = block * THREADS + threadIdx.x;
    tsr_frame_state &state = b.shared.frame[frame];
    if (threadIdx.x == 0) {
        choice = {choose_colour(state.colour_cost, state.wraps | tsr_untried_colours(&b.shape.coding)),
                  TSR_COLOURS_PLAIN, 0};
        if (b.shape.packs_colours) choose_packing(b, frame, &choice);
        if (block == 0) {
            state.colour = choice.colour;
            state.packing = choice.packing;
            state.leading = (uint32_t)choice.leading;
            if (choice.packing == TSR_COLOURS_PALETTE) state.colours = b.shared.packing[frame].colours;
        }
    }
    __syncthreads();
    if (block == 0 && choice.packing == TSR_COLOURS_PALETTE) put_palette(b, frame, choice.leading);
    if (group >= b.shape.plane_samples / GROUP) return;
    uint16_t *samples =
        b.shared.samples + (size_t)frame * b.shape.components * b.shape.plane_samples + (size_t)group * GROUP;
    if (choice.packing == TSR_COLOURS_PALETTE)
        apply(samples, b.shape.plane_samples, palette_values{b.shared.colour_set[frame], choice.leading});
    else if (choice.packing == TSR_COLOURS_BY_COMPONENT)
        apply(samples, b.shape.plane_samples, listed_of(b, frame, choice.colour));
    else if (choice.colour != TSR_COLOUR_NONE)
        apply(samples, b.shape.plane_samples, plain_values{choice.colour, b.shape.bits});
}

} // namespace

int tsr_cuda_colour(const struct tsr_cuda_batch *batch, cudaStream_t stream)
{
    if (batch->shape.components < 3) return cudaSuccess;
    const unsigned blocks = blocks_of_plane(*batch, 1), ways = batch->shape.packs_colours ? WAYS : LISTED_WAYS;
    TSR_CUDA_TRY(tsr_launch(k_colour_cost, batch->shape.frames * ways, THREADS, 0, stream, *batch, ways));
    if (tsr_loses_coefficients(&batch->shape.coding) && tsr_chroma_bits(batch->shape.bits) <= batch->shape.bits)
        TSR_CUDA_TRY(tsr_launch(k_colour_wraps, batch->shape.frames * blocks, THREADS, 0, stream, *batch, blocks));
    return tsr_launch(k_apply_colour, batch->shape.frames * blocks, THREADS, 0, stream, *batch, blocks);
}
