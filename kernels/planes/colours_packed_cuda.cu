/* What packing a frame's colours would give, on the device: FORMAT.md section 6.6. The choice itself is made beside
 * that of the colour transform, in colours_cuda.cu; both are those of colours_cpu.c.
 *
 * Most frames are photographs, of which a few rows show that there is nothing to pack: all kernels but the first one
 * end at once there. Of other frames colours are collected in a set, each block's first, where they are few, and values
 * in use are marked, where a component is sparse. Lists are made of both: three palettes, one for each component that
 * may lead, and the components' values. */
#include "colours_packed.cuh"
#include "used_values.cuh"

using namespace tsr_planes;

namespace
{

/* ---- Colours and values in use ------------------------------------------------------------------------------ */

/* What a block has seen, in shared memory; beside it lie bits for the values of each component. */
struct seen_colours {
    unsigned long long slot[TSR_DEVICE_COLOUR_SLOTS];
    uint32_t colours;
};

/* A barrier follows. */
__device__ __forceinline__ void clear_seen(seen_colours &seen, uint32_t *used, uint32_t words)
{
    for (uint32_t i = threadIdx.x; i < TSR_DEVICE_COLOUR_SLOTS; i += THREADS) seen.slot[i] = 0;
    for (uint32_t i = threadIdx.x; i < 3 * words; i += THREADS) used[i] = 0;
    if (threadIdx.x == 0) seen.colours = 0;
}

__device__ __forceinline__ void see_values(uint32_t *used, uint32_t words, const uint32_t value[3][GROUP])
{
    uint32_t all = 1;
#pragma unroll
    for (uint32_t i = 0; i < 3 * GROUP; i++) {
        const uint32_t v = value[i / GROUP][i % GROUP];
        all &= used[i / GROUP * words + v / 32] >> v % 32;
    }
    if (all & 1u) return; /* nothing new, mostly */
#pragma unroll
    for (uint32_t i = 0; i < 3 * GROUP; i++) {
        const uint32_t v = value[i / GROUP][i % GROUP];
        uint32_t *const word = &used[i / GROUP * words + v / 32];
        if (!(*word >> v % 32 & 1u)) atomicOr(word, 1u << v % 32);
    }
}

__device__ __forceinline__ void see_colours(seen_colours &seen, const uint32_t value[3][GROUP])
{
    uint64_t key[GROUP];
    uint32_t others = 0; /* bit i: colour i is not where it would be looked for first, which most are */
    if (*(const volatile uint32_t *)&seen.colours > TSR_PALETTE_LIMIT) return;
#pragma unroll
    for (int i = 0; i < GROUP; i++) {
        key[i] = tsr_colour_key((uint16_t)value[0][i], (uint16_t)value[1][i], (uint16_t)value[2][i]);
        others |= (uint32_t)(seen.slot[tsr_colour_slot(key[i], TSR_DEVICE_COLOUR_SLOTS)] != key[i] + 1) << i;
    }
#pragma unroll
    for (int i = 0; i < GROUP; i++)
        if ((others >> i & 1u) && !tsr_put_colour(seen.slot, &seen.colours, key[i])) return;
}

/* A block a frame: what tsr_pack_colours finds first, in some rows; they are all there are if step is 1. */
__global__ void __launch_bounds__(THREADS) k_colours_in_use(const tsr_cuda_batch b, uint32_t step)
{
    TSR_DYNAMIC_SHARED(memory);
    __shared__ seen_colours seen;
    __shared__ uint32_t in_use[3], low[3], high[3];
    uint32_t *used = reinterpret_cast<uint32_t *>(memory);
    const uint32_t frame = blockIdx.x, words = tsr_listed_words(&b), across = b.shape.pitch / GROUP;
    const uint32_t groups = (b.shape.image.rows + step - 1) / step * across;
    clear_seen(seen, used, words);
    if (threadIdx.x < 3) in_use[threadIdx.x] = high[threadIdx.x] = 0, low[threadIdx.x] = 65535;
    __syncthreads();
    for (uint32_t group = threadIdx.x; group < groups; group += THREADS) {
        const uint32_t row = group / across, column = (group - row * across) * GROUP;
        uint32_t value[3][GROUP]; /* what pads a row repeats a sample of it */
        load_groups(tsr_frame_samples(b, frame) + (size_t)row * step * b.shape.pitch + column, b.shape.plane_samples,
                    value);
        see_values(used, words, value);
        see_colours(seen, value);
    }
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < 3 * words; i += THREADS) {
        if (used[i] == 0) continue;
        const uint32_t c = i / words, first = 32 * (i - c * words);
        atomicAdd(&in_use[c], (uint32_t)__popc(used[i]));
        atomicMin(&low[c], first + (uint32_t)__ffs((int)used[i]) - 1);
        atomicMax(&high[c], first + (uint32_t)tsr_floor_log2(used[i]));
    }
    __syncthreads();
    const bool few = seen.colours <= TSR_PALETTE_LIMIT;
    bool sparse = false;
    for (int c = 0; c < 3; c++) sparse |= tsr_is_sparse(in_use[c], low[c], high[c]);
    tsr_packing_state &packing = b.shared.packing[frame];
    if (threadIdx.x == 0) {
        packing.is_few = few;
        packing.is_sparse = sparse;
        if (few) packing.colours = seen.colours;
    }
    for (uint32_t i = threadIdx.x; few && i < TSR_DEVICE_COLOUR_SLOTS; i += THREADS)
        b.shared.colour_set[frame].slot[i] = seen.slot[i];
    for (uint32_t i = threadIdx.x; sparse && i < 3 * words; i += THREADS)
        b.shared.listed[3 * (size_t)frame * words + i] = used[i];
}

/* And in all rows, of frames that may be packed. */
__global__ void __launch_bounds__(THREADS) k_collect_colours(const tsr_cuda_batch b, unsigned blocks)
{
    TSR_DYNAMIC_SHARED(memory);
    __shared__ seen_colours seen;
    uint32_t *used = reinterpret_cast<uint32_t *>(memory);
    const uint32_t frame = blockIdx.x / blocks, words = tsr_listed_words(&b);
    const uint32_t groups = (uint32_t)(b.shape.plane_samples / GROUP);
    tsr_packing_state &packing = b.shared.packing[frame];
    const bool few = packing.is_few, sparse = packing.is_sparse;
    if (!few && !sparse) return;
    clear_seen(seen, used, words);
    __syncthreads();
    uint32_t group = (blockIdx.x - frame * blocks) * THREADS * ROUNDS + threadIdx.x;
#pragma unroll 1
    for (int round = 0; round < ROUNDS && group < groups; round++, group += THREADS) {
        uint32_t value[3][GROUP];
        load_groups(tsr_frame_samples(b, frame) + (size_t)group * GROUP, b.shape.plane_samples, value);
        if (sparse) see_values(used, words, value);
        if (few) see_colours(seen, value);
    }
    __syncthreads();
    uint32_t *const listed = b.shared.listed + 3 * (size_t)frame * words;
    for (uint32_t i = threadIdx.x; sparse && i < 3 * words; i += THREADS)
        if (used[i] & ~__ldcg(&listed[i])) atomicOr(&listed[i], used[i]);
    if (seen.colours > TSR_PALETTE_LIMIT) {
        if (threadIdx.x == 0) atomicMax(&packing.colours, seen.colours);
        return;
    }
    for (uint32_t i = threadIdx.x; few && i < TSR_DEVICE_COLOUR_SLOTS; i += THREADS)
        if (seen.slot[i] != 0 && !tsr_put_colour(b.shared.colour_set[frame].slot, &packing.colours, seen.slot[i] - 1))
            return;
}

/* ---- Lists of them ------------------------------------------------------------------------------------------- */

/* A block: the palette of a frame's colours when this component leads, and what its description takes. Colours of a
 * palette are in order, so each has as many before it as are less. */
__device__ void list_colours(const tsr_cuda_batch &b, uint32_t frame, int leading)
{
    __shared__ uint64_t keys[TSR_PALETTE_LIMIT], sorted[TSR_PALETTE_LIMIT];
    __shared__ uint16_t slot_of[TSR_PALETTE_LIMIT];
    __shared__ uint32_t count;
    __shared__ uint64_t sums[THREADS / TSR_WARP];
    tsr_packing_state &packing = b.shared.packing[frame];
    tsr_colour_set &set = b.shared.colour_set[frame];
    const uint32_t colours = packing.colours;
    if (!packing.is_few || colours < 2 || colours > TSR_PALETTE_LIMIT) return;
    if (threadIdx.x == 0) count = 0;
    __syncthreads();
    bool is_coloured = false;
    for (uint32_t i = threadIdx.x; i < TSR_DEVICE_COLOUR_SLOTS; i += THREADS) {
        if (set.slot[i] == 0) continue;
        const uint64_t key = set.slot[i] - 1;
        const uint32_t at = atomicAdd(&count, 1u); /* in any order */
        keys[at] = tsr_palette_key(key, leading);
        slot_of[at] = (uint16_t)i;
        is_coloured |= !tsr_is_grey(key);
    }
    if (!__syncthreads_or(is_coloured)) return;
    enum { EACH = TSR_PALETTE_LIMIT / THREADS };
    uint64_t own[EACH];
    uint32_t rank[EACH];
    for (uint32_t k = 0; k < EACH; k++) {
        own[k] = keys[min(k * THREADS + threadIdx.x, colours - 1)];
        rank[k] = 0;
    }
    for (uint32_t i = 0; i < colours; i++) {
        const uint64_t key = keys[i];
#pragma unroll
        for (int k = 0; k < EACH; k++) rank[k] += key < own[k];
    }
    for (uint32_t k = 0; k < EACH; k++) {
        const uint32_t i = k * THREADS + threadIdx.x;
        if (i >= colours) continue;
        sorted[rank[k]] = own[k];
        set.rank[leading][slot_of[i]] = (uint16_t)rank[k];
    }
    __syncthreads();
    uint64_t bits = 0;
    for (uint32_t i = threadIdx.x; i < colours; i += THREADS) {
        uint32_t step[3];
        tsr_palette_steps(sorted[i], i > 0 ? sorted[i - 1] : 0, i == 0, step);
        for (int k = 0; k < 3; k++) bits += tsr_ue_bits(step[k]);
    }
    bits = block_sum(bits, sums);
    if (threadIdx.x == 0) packing.palette_bits[leading] = (uint32_t)bits + 2 + tsr_ue_bits(colours - 1);
}

/* A block: the indices of a component's values, and what their list takes. used_before: shared, by word. */
__device__ void list_values(const tsr_cuda_batch &b, uint32_t frame, int component, uint16_t *used_before)
{
    __shared__ uint32_t count_sums[THREADS / TSR_WARP], starts[THREADS], low, high;
    __shared__ uint64_t sums[THREADS / TSR_WARP];
    tsr_packing_state &packing = b.shared.packing[frame];
    if (!packing.is_sparse) return;
    const uint32_t words = tsr_listed_words(&b), words_each = (words + THREADS - 1) / THREADS;
    const uint32_t *const listed = b.shared.listed + (3 * (size_t)frame + (uint32_t)component) * words;
    uint16_t *const index = tsr_component_index(b, frame, component);
    const uint32_t first = min(words, words_each * threadIdx.x), end = min(words, first + words_each);
    if (threadIdx.x == 0) high = 0, low = 65535;
    uint32_t total;
    const uint32_t below = used_below(listed, first, end, count_sums, &total); /* a barrier */
    count_words(listed, first, end, below, used_before);
    for (uint32_t i = first; i < end; i++) {
        if (listed[i] == 0) continue;
        atomicMin(&low, 32 * i + (uint32_t)__ffs((int)listed[i]) - 1);
        atomicMax(&high, 32 * i + (uint32_t)tsr_floor_log2(listed[i]));
    }
    __syncthreads();
    const uint32_t span = high - low + 1, each = (span + THREADS - 1) / THREADS;
    for (uint32_t v = low + threadIdx.x; v <= high; v += THREADS)
        index[v] = used_before[v / 32] + number_in_word(listed, v);
    const uint32_t first_value = low + min(span, each * threadIdx.x);
    const uint64_t bits = block_sum(
        stretch_bits(listed, low, high, first_value, low + min(span, each * (threadIdx.x + 1)), starts), sums);
    if (threadIdx.x != 0) return;
    packing.listed[component] = total;
    atomicAdd(&packing.list_bits, (uint32_t)bits + tsr_ue_bits(low) + tsr_ue_bits(span - 1));
}

/* A block a frame and component, twice: that leads a palette, whose values are listed. */
__global__ void __launch_bounds__(THREADS) k_list_colours(const tsr_cuda_batch b)
{
    TSR_DYNAMIC_SHARED(memory);
    const uint32_t frame = blockIdx.x / 6, number = blockIdx.x % 6;
    if (number < 3)
        list_colours(b, frame, (int)number);
    else
        list_values(b, frame, (int)number - 3, reinterpret_cast<uint16_t *>(memory));
}

} // namespace

int tsr_cuda_find_packings(const struct tsr_cuda_batch *batch, cudaStream_t stream)
{
    const tsr_image &image = batch->shape.image;
    if (!batch->shape.packs_colours || image.columns < 2 || image.rows < 2) return cudaSuccess;
    const uint32_t step = tsr_choice_step(image.columns, image.rows, TSR_PACKING_SAMPLES);
    const unsigned blocks = blocks_of_plane(*batch, ROUNDS);
    const size_t words = tsr_listed_words(batch), used_bytes = 3 * words * sizeof(uint32_t);
    TSR_CUDA_TRY(tsr_launch(k_colours_in_use, batch->shape.frames, THREADS, used_bytes, stream, *batch, step));
    if (step > 1)
        TSR_CUDA_TRY(
            tsr_launch(k_collect_colours, batch->shape.frames * blocks, THREADS, used_bytes, stream, *batch, blocks));
    return tsr_launch(k_list_colours, batch->shape.frames * 6, THREADS, words * sizeof(uint16_t), stream, *batch);
}
