/* Rasters to planes on the device, colour transforms and ranges: FORMAT.md sections 6.1 to 6.3.
 *
 * The choices are those of range_cpu.c: the same sums of the same costs over the same samples, and sums of integers
 * have no order. Planes keep their values; what makes indices of them (a minimum, a packed histogram) is applied where
 * they are read, which saves a pass over all planes. */
#include "device.cuh"

#include "cuda_stages.h"
#include "sample_pairs.cuh"

#include "../entropy/code_cost.h"
#include "../transform/median_edge.h"

namespace
{

/* Rows of planes are filled up to groups of samples, which a thread loads and stores at once. */
enum { THREADS = 256, GROUP = 8, ROUNDS = 8, AT_ONCE = 4 };
static_assert(ROUNDS % AT_ONCE == 0, "loads on their way together");

/* Blocks of THREADS threads a plane, each thread rounds groups of GROUP samples. */
unsigned blocks_of_plane(const tsr_cuda_batch &b, unsigned rounds)
{
    const unsigned groups = (unsigned)(b.plane_samples / GROUP);
    return (groups + THREADS * rounds - 1) / (THREADS * rounds);
}

/* ---- Ranges of values ----------------------------------------------------------------------------------- */

/* Values in use are marked in shared memory: by bytes, without a look at what is there, from which the least and the
 * greatest one follow, too; by bits where there are many values. */
enum { MOST_BYTES = 1 << 14 };

struct value_marks {
    uint32_t words; /* of bits; 0: values are not marked */
    bool by_bytes;
};

__host__ __device__ __forceinline__ value_marks marks_of(const tsr_cuda_batch &b, bool marks)
{
    value_marks m;
    m.words = marks && b.used ? b.values / 32 : 0;
    m.by_bytes = m.words > 0 && b.values <= MOST_BYTES;
    return m;
}

/* Words of shared memory that the marks take; two more lie behind them. */
__host__ __device__ __forceinline__ uint32_t mark_words(value_marks marks)
{
    return marks.by_bytes ? marks.words * 8 : marks.words;
}

/* What a thread has seen of a plane's values, unless bytes tell it. */
struct seen_values {
    uint32_t minimum, maximum;
};

/* used: shared. */
__device__ __forceinline__ void see_group(seen_values &seen, uint32_t *used, value_marks marks,
                                          const uint32_t value[GROUP])
{
    if (marks.by_bytes) {
        uint8_t *const bytes = reinterpret_cast<uint8_t *>(used);
#pragma unroll
        for (int i = 0; i < GROUP; i++) bytes[value[i]] = 1;
        return;
    }
#pragma unroll
    for (int i = 0; i < GROUP; i++) {
        seen.minimum = min(seen.minimum, value[i]);
        seen.maximum = max(seen.maximum, value[i]);
    }
    if (marks.words == 0) return;
    uint32_t all = 1;
#pragma unroll
    for (int i = 0; i < GROUP; i++) all &= used[value[i] / 32] >> value[i] % 32;
    if (all & 1u) return; /* nothing new, mostly */
#pragma unroll
    for (int i = 0; i < GROUP; i++)
        if (!(used[value[i] / 32] >> value[i] % 32 & 1u)) atomicOr(&used[value[i] / 32], 1u << value[i] % 32);
}

/* A barrier follows. */
__device__ __forceinline__ void clear_seen(uint32_t *used, value_marks marks)
{
    for (uint32_t i = threadIdx.x; i < mark_words(marks) + 2; i += THREADS) used[i] = 0;
}

/* Word i of the marks. */
__device__ __forceinline__ uint32_t marked_word(const uint32_t *used, value_marks marks, uint32_t i)
{
    if (!marks.by_bytes) return used[i];
    const uint4 *const at = reinterpret_cast<const uint4 *>(used) + 2 * i;
    const uint4 low = at[0], high = at[1];
    const uint32_t four[8] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
    uint32_t word = 0;
#pragma unroll
    for (int k = 0; k < 8; k++) word |= (four[k] * 0x10204080u >> 28) << 4 * k; /* of each byte the lowest bit */
    return word;
}

/* What all threads of the block have seen goes to the plane. Most blocks find nothing new, and need no atomics. */
__device__ __forceinline__ void publish_seen(const tsr_cuda_batch &b, uint32_t plane, seen_values seen, uint32_t *used,
                                             value_marks marks)
{
    uint32_t *const most = used + mark_words(marks), *const of_plane = b.used + (size_t)plane * marks.words;
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < marks.words; i += THREADS) {
        const uint32_t word = marked_word(used, marks, i);
        if (word & ~__ldcg(&of_plane[i])) atomicOr(&of_plane[i], word);
        if (marks.by_bytes && word != 0) {
            seen.minimum = min(seen.minimum, 32 * i + (uint32_t)__ffs((int)word) - 1u);
            seen.maximum = max(seen.maximum, 32 * i + tsr_highest_bit(word));
        }
    }
    const uint32_t not_minimum = tsr_warp_max(65535u - seen.minimum); /* of a thread that saw nothing: 0 */
    seen.maximum = tsr_warp_max(seen.maximum);
    if (threadIdx.x % TSR_WARP == 0) {
        atomicMax(&most[0], not_minimum);
        atomicMax(&most[1], seen.maximum);
    }
    __syncthreads();
    tsr_plane_state &state = b.plane[plane];
    if (threadIdx.x != 0) return;
    if (__ldcg(&state.not_minimum) < most[0]) atomicMax(&state.not_minimum, most[0]);
    if (__ldcg(&state.maximum) < most[1]) atomicMax(&state.maximum, most[1]);
}

/* ---- Split ---------------------------------------------------------------------------------------------- */

/* Two neighbouring 16-bit values of a word. */
__device__ __forceinline__ void unpack_pair(uint32_t pair, uint32_t out[2])
{
    out[0] = pair & 0xffffu;
    out[1] = pair >> 16;
}

__device__ __forceinline__ void unpack_group(uint4 four, uint32_t out[GROUP])
{
    unpack_pair(four.x, out);
    unpack_pair(four.y, out + 2);
    unpack_pair(four.z, out + 4);
    unpack_pair(four.w, out + 6);
}

/* The words of a group in the raster, which starts at word first of a component. Word: of 8 or 16 bits. Behind the
 * count of them that are there the first one is repeated. */
template <typename Word>
__device__ __forceinline__ void load_words(const tsr_image &image, const uint8_t *raster, size_t first, uint32_t step,
                                           uint32_t count, uint32_t word[GROUP])
{
    const uint8_t *at = raster + first * sizeof(Word);
    if (count == GROUP && step == 1 && !image.swapped &&
        reinterpret_cast<uintptr_t>(at) % (GROUP * sizeof(Word)) == 0) {
        if (sizeof(Word) == 2) {
            unpack_group(*reinterpret_cast<const uint4 *>(at), word);
        } else {
            const uint2 two = *reinterpret_cast<const uint2 *>(at);
#pragma unroll
            for (int i = 0; i < 4; i++) {
                word[i] = two.x >> (8 * i) & 255u;
                word[4 + i] = two.y >> (8 * i) & 255u;
            }
        }
    } else {
#pragma unroll
        for (uint32_t i = 0; i < GROUP; i++) {
            const size_t place = first + (i < count ? i * step : 0u);
            if (sizeof(Word) == 1)
                word[i] = raster[place ^ (size_t)image.swapped];
            else
                word[i] = (uint32_t)raster[2 * place + 1] << 8 | raster[2 * place];
        }
    }
    if (sizeof(Word) == 2 && image.big_endian) {
#pragma unroll
        for (int i = 0; i < GROUP; i++) word[i] = (word[i] << 8 | word[i] >> 8) & 0xffffu;
    }
}

__device__ __forceinline__ struct tsr_word_layout layout_of(const tsr_image &image, bool extends_sign)
{
    return tsr_word_layout(image.bits_allocated, image.bits_stored, image.high_bit, image.is_signed, extends_sign);
}

/* Pairs of words as they mostly come, samples at the bottom of words in the machine's order: two at a time, where a
 * plane's rows are as long as the raster's. */
struct pair_layout {
    bool is_common;
    uint32_t samples, sign; /* bits of both words that are samples; what makes signed ones unsigned */
    uint32_t repeated;      /* bits that the next higher one repeats if all above the samples repeat their top bit */
};

__device__ __forceinline__ pair_layout pairs_of(const tsr_image &image)
{
    const uint32_t top = 1u << (image.bits_stored - 1u);
    pair_layout l;
    l.is_common = image.bits_allocated == 16 && image.high_bit + 1 == image.bits_stored && !image.big_endian;
    l.samples = (2u * top - 1u) * 0x10001u;
    l.sign = image.is_signed ? top * 0x10001u : 0u;
    l.repeated = (0x8000u - top) * 0x10001u;
    return l;
}

/* Bits that some pair has, and that differ from the next higher one in some. */
struct seen_bits {
    uint32_t set, changes;
};

__device__ __forceinline__ uint32_t split_pair(const pair_layout &l, uint32_t pair, seen_bits &bits)
{
    bits.set |= pair;
    bits.changes |= pair ^ pair >> 1;
    return (pair & l.samples) ^ l.sign;
}

/* Rasters to planes; ranges: also the planes' ranges, where no colour transform comes between. PLAIN: words are
 * samples. */
template <typename Word, bool PLAIN>
__global__ void __launch_bounds__(THREADS) k_split(const tsr_cuda_batch b, unsigned blocks, bool ranges)
{
    TSR_DYNAMIC_SHARED(memory);
    uint32_t *used = reinterpret_cast<uint32_t *>(memory);
    const tsr_image &image = b.image;
    const uint32_t plane = blockIdx.x / blocks, frame = plane / b.components, component = plane - frame * b.components;
    const uint32_t groups = (uint32_t)(b.plane_samples / GROUP), across = b.pitch / GROUP;
    const uint32_t step = image.planar ? 1 : b.components;
    const value_marks marks = marks_of(b, ranges);
    const uint8_t *raster = b.rasters + frame * b.frame_bytes;
    const size_t origin = image.planar ? (size_t)component * image.columns * image.rows : component;
    const struct tsr_word_layout layout = layout_of(image, false), extended = layout_of(image, true);
    const pair_layout pairs = pairs_of(image);
    const bool is_flat = sizeof(Word) == 2 && pairs.is_common && step == 1 && image.columns == b.pitch &&
                         reinterpret_cast<uintptr_t>(raster + origin * sizeof(Word)) % 16 == 0;
    uint16_t *samples = b.samples + plane * b.plane_samples;
    uint32_t unexpected[2] = {0, 0}; /* bits outside that are not the repeated top bit; that are not 0 */
    seen_bits bits = {0, 0};
    seen_values seen = {65535, 0};
    clear_seen(used, marks);
    __syncthreads();
    uint32_t group = (blockIdx.x - plane * blocks) * THREADS * ROUNDS + threadIdx.x;
    int round = 0;
#pragma unroll 1
    for (; is_flat && round < ROUNDS; round += AT_ONCE, group += AT_ONCE * THREADS) {
        const uint4 *const from = reinterpret_cast<const uint4 *>(raster + origin * sizeof(Word)) + group;
        uint4 *const to = reinterpret_cast<uint4 *>(samples) + group;
        uint4 four[AT_ONCE];
#pragma unroll
        for (uint32_t i = 0; i < AT_ONCE; i++)
            if (group + i * THREADS < groups) four[i] = from[i * THREADS];
#pragma unroll
        for (uint32_t i = 0; i < AT_ONCE; i++) {
            if (group + i * THREADS >= groups) continue;
            if (!PLAIN)
                four[i] = make_uint4(split_pair(pairs, four[i].x, bits), split_pair(pairs, four[i].y, bits),
                                     split_pair(pairs, four[i].z, bits), split_pair(pairs, four[i].w, bits));
            to[i * THREADS] = four[i];
            if (!ranges) continue;
            uint32_t value[GROUP];
            unpack_group(four[i], value);
            see_group(seen, used, marks, value);
        }
    }
#pragma unroll 2
    for (; round < ROUNDS; round++, group += THREADS) {
        if (group >= groups) continue;
        uint32_t value[GROUP];
        const uint32_t row = group / across, column = (group - row * across) * GROUP;
        const uint32_t count = min((uint32_t)GROUP, image.columns - column); /* at least 1 */
        load_words<Word>(image, raster, origin + ((size_t)row * image.columns + column) * step, step, count, value);
        if (!PLAIN) {
#pragma unroll
            for (uint32_t i = 0; i < GROUP; i++) {
                if (i < count) unexpected[0] |= tsr_word_outside(value[i], extended);
                if (i < count) unexpected[1] |= tsr_word_outside(value[i], layout);
                value[i] = tsr_word_sample(value[i], layout);
            }
        }
        if (ranges) see_group(seen, used, marks, value);
        *reinterpret_cast<uint4 *>(samples + (size_t)group * GROUP) = make_uint4(
            value[0] | value[1] << 16, value[2] | value[3] << 16, value[4] | value[5] << 16, value[6] | value[7] << 16);
    }
    if (ranges) publish_seen(b, plane, seen, used, marks);
    unexpected[0] |= bits.changes & pairs.repeated;
    unexpected[1] |= bits.set & ~pairs.samples;
    for (int way = 0; !PLAIN && way < 2; way++)
        if (__any_sync(TSR_FULL_WARP, unexpected[way] != 0) && threadIdx.x % TSR_WARP == 0)
            b.frame[frame].unexpected[way] = 1;
}

/* ---- Colour --------------------------------------------------------------------------------------------- */

/* Rows that a choice looks at. */
__device__ __forceinline__ uint32_t choice_rows(const tsr_image &image, uint32_t step)
{
    return image.rows < 2 ? 0 : (image.rows - 2) / step + 1;
}

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
    const int bits = tsr_sample_bits(&b.image);
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
    const int bits = tsr_sample_bits(&b.image);
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
    const uint32_t frame = blockIdx.x, words = (1u << tsr_sample_bits(&image)) / 32 + 1;
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
    const int bits = tsr_sample_bits(&b.image);
    if (group == 0) b.frame[frame].colour = colour;
    if (colour == TSR_COLOUR_NONE || group >= b.plane_samples / GROUP) return;
    for (int i = 0; i < GROUP; i++) {
        const size_t at = (size_t)group * GROUP + i;
        int32_t v[3];
        colour_at(planes, b.plane_samples, at, colour, bits, v);
        for (int c = 0; c < 3; c++) planes[c * b.plane_samples + at] = (uint16_t)v[c];
    }
}

/* ---- Range ---------------------------------------------------------------------------------------------- */

/* Ranges of planes that a colour transform has made. */
__global__ void __launch_bounds__(THREADS) k_ranges(const tsr_cuda_batch b, unsigned blocks)
{
    TSR_DYNAMIC_SHARED(memory);
    uint32_t *used = reinterpret_cast<uint32_t *>(memory);
    const uint32_t plane = blockIdx.x / blocks;
    const value_marks marks = marks_of(b, true);
    const uint32_t groups = (uint32_t)(b.plane_samples / GROUP), across = b.pitch / GROUP;
    const uint16_t *samples = b.samples + plane * b.plane_samples;
    seen_values seen = {65535, 0};
    clear_seen(used, marks);
    __syncthreads();
    uint32_t group = (blockIdx.x - plane * blocks) * THREADS * ROUNDS + threadIdx.x;
#pragma unroll 2
    for (int round = 0; round < ROUNDS; round++, group += THREADS) {
        if (group >= groups) continue;
        const uint32_t column = group % across * GROUP;
        uint32_t value[GROUP];
        unpack_group(*reinterpret_cast<const uint4 *>(samples + (size_t)group * GROUP), value);
#pragma unroll
        for (uint32_t i = 1; i < GROUP; i++)
            if (column + i >= b.image.columns) value[i] = value[0]; /* what pads a row counts for nothing */
        see_group(seen, used, marks, value);
    }
    publish_seen(b, plane, seen, used, marks);
}

/* Calls take(first value, count, their bits) for values first .. end-1, up to 32 at a time. */
template <typename Take>
__device__ __forceinline__ void take_used(const uint32_t *used, uint32_t first, uint32_t end, Take take)
{
    for (uint32_t v = first, count; v < end; v += count) {
        count = min(32u - v % 32, end - v);
        take(v, count, used[v / 32] >> v % 32 & UINT32_MAX >> (32 - count));
    }
}

/* Sum over the block; all threads get it. sums: shared, a value a warp. */
__device__ __forceinline__ uint64_t block_sum(uint64_t value, uint64_t *sums)
{
    value = tsr_warp_sum(value);
    __syncthreads();
    if (threadIdx.x % TSR_WARP == 0) sums[threadIdx.x / TSR_WARP] = value;
    __syncthreads();
    uint64_t sum = 0;
    for (int i = 0; i < THREADS / TSR_WARP; i++) sum += sums[i];
    return sum;
}

/* Bits that the description of the packed histogram takes: of stretches that end before a stretch that begins among
 * this thread's values first .. end-1, and of the last one. starts: shared, a place a thread. */
__device__ __forceinline__ uint64_t description_bits(const uint32_t *used, uint32_t low, uint32_t high, uint32_t first,
                                                     uint32_t end, uint32_t *starts)
{
    const uint32_t none = UINT32_MAX;
    uint32_t bits = 0, own = none;
    /* start(v) for each v that begins a stretch. */
    const auto each_start = [&](auto start) {
        take_used(used, first, end, [&](uint32_t v, uint32_t count, uint32_t word) {
            const uint32_t before = v > low ? used[(v - 1) / 32] >> (v - 1) % 32 & 1u : ~word & 1u;
            for (uint32_t begins = (word ^ (word << 1 | before)) & UINT32_MAX >> (32 - count); begins != 0;
                 begins &= begins - 1)
                start(v + (uint32_t)__ffs((int)begins) - 1u);
        });
    };
    each_start([&](uint32_t v) { own = v; });
    starts[threadIdx.x] = own;
    __syncthreads();
    uint32_t last = none;
    for (int t = (int)threadIdx.x - 1; t >= 0 && last == none; t--) last = starts[t];
    const auto add = [&](uint32_t length) { bits += (uint32_t)(2 * tsr_floor_log2(length) + 1); };
    each_start([&](uint32_t v) {
        if (last != none) add(v - last);
        last = v;
    });
    if (first < end && end == high + 1) add(end - last);
    return bits;
}

/* Costs of small residuals, in shared memory. */
enum { COST_TABLE = 512 };

__device__ __forceinline__ uint32_t known_cost(const uint16_t *costs, uint32_t magnitude)
{
    return magnitude < COST_TABLE ? costs[magnitude] : tsr_magnitude_cost(magnitude);
}

/* What a thread's share of a plane costs as it is, and with its histogram packed. */
struct range_costs {
    uint64_t plain, packed;
};

/* pair_of(value): below, the value, above, its index; all that is done with them is done with both. at: a group of a
 * row's columns; first, count: those that are looked at. */
template <typename PairOf>
__device__ __forceinline__ void add_range_costs(range_costs &sum, const uint16_t *costs, const uint16_t *at,
                                                const uint16_t *up, uint32_t first, uint32_t count, PairOf pair_of)
{
    uint32_t here[GROUP], above[GROUP], w = 0, nw = 0;
    unpack_group(*reinterpret_cast<const uint4 *>(at), here);
    unpack_group(*reinterpret_cast<const uint4 *>(up), above);
    if (first == 0) {
        w = pair_of(at[-1]);
        nw = pair_of(up[-1]);
    }
#pragma unroll
    for (uint32_t i = 0; i < GROUP; i++) {
        const uint32_t x = pair_of(here[i]), n = pair_of(above[i]);
        const uint32_t magnitudes = tsr_pair_distances(x, tsr_median_edges(w, n, nw));
        w = x;
        nw = n;
        if (i < first || i >= count) continue;
        sum.plain += known_cost(costs, magnitudes & 0xffffu);
        sum.packed += known_cost(costs, magnitudes >> 16);
    }
}

/* Planes of so many values have their indices in shared memory until it is known whether they are needed. */
enum { INDEXED_VALUES = 1 << 14 };

/* A block a plane: its range, and whether packing its histogram pays. */
__global__ void __launch_bounds__(THREADS) k_choose_range(const tsr_cuda_batch b)
{
    TSR_DYNAMIC_SHARED(memory);
    __shared__ uint32_t sums[THREADS / TSR_WARP], starts[THREADS];
    __shared__ uint64_t wide_sums[THREADS / TSR_WARP];
    __shared__ uint16_t costs[COST_TABLE];
    const uint32_t plane = blockIdx.x;
    const tsr_plane_state state = b.plane[plane];
    const uint32_t low = 65535u - state.not_minimum, span = tsr_state_span(state);
    if (threadIdx.x == 0) b.plane[plane].range = span; /* packed is 0 */
    if (!b.used || span <= 2) return;

    const uint32_t *used = b.used + (size_t)plane * (b.values / 32);
    uint16_t *const index_of_plane = b.index + (size_t)plane * b.values;
    uint16_t *const used_before = reinterpret_cast<uint16_t *>(memory); /* by word of used: values in use below it */
    uint16_t *const index = b.values <= INDEXED_VALUES ? used_before + b.values / 32 : index_of_plane;
    const uint32_t first_word = low / 32, words = (low + span - 1) / 32 + 1 - first_word,
                   words_each = (words + THREADS - 1) / THREADS;
    const uint32_t first = min(words, words_each * threadIdx.x), end = min(words, first + words_each);
    uint32_t in_use = 0, total;
    for (uint32_t i = first; i < end; i++) in_use += (uint32_t)__popc(used[first_word + i]);
    in_use = tsr_block_scan<THREADS>(in_use, sums, &total);
    /* A tenth of the values must be unused for the question to be worth its time. */
    if (10 * (uint64_t)total > 9 * (uint64_t)span) return;
    for (uint32_t i = first; i < end; i++) {
        used_before[i] = (uint16_t)in_use;
        in_use += (uint32_t)__popc(used[first_word + i]);
    }
    for (uint32_t m = threadIdx.x; m < COST_TABLE; m += THREADS) costs[m] = (uint16_t)tsr_magnitude_cost(m);
    __syncthreads(); /* used_before[], costs[] */
    for (uint32_t v = low + threadIdx.x; v < low + span; v += THREADS)
        index[v] = (uint16_t)(used_before[v / 32 - first_word] + __popc(used[v / 32] & ((1u << v % 32) - 1u)));
    __syncthreads(); /* index[] */

    const uint16_t *samples = b.samples + plane * b.plane_samples;
    const uint32_t step = tsr_choice_step(b.image.columns, b.image.rows, TSR_PACKING_SAMPLES),
                   rows = choice_rows(b.image, step), across = b.pitch / GROUP;
    range_costs sum = {0, 0};
    for (uint32_t group = threadIdx.x; group < rows * across; group += THREADS) {
        const uint32_t row = group / across, column = (group - row * across) * GROUP;
        const uint16_t *const at = samples + (size_t)(1 + row * step) * b.pitch + column;
        add_range_costs(sum, costs, at, at - b.pitch, column == 0 ? 1 : 0, b.image.columns - column,
                        [&](uint32_t v) { return (uint32_t)index[v] << 16 | v; });
    }
    sum.plain = block_sum(sum.plain, wide_sums);
    sum.packed = block_sum(sum.packed, wide_sums);
    const uint32_t each = (span + THREADS - 1) / THREADS, first_value = low + min(span, each * threadIdx.x);
    const uint64_t bits = block_sum(
        description_bits(used, low, low + span - 1, first_value, low + min(span, each * (threadIdx.x + 1)), starts),
        wide_sums);
    const uint64_t looked_at = (uint64_t)rows * (b.image.columns - 1),
                   samples_of_plane = (uint64_t)b.image.columns * b.image.rows;
    if (looked_at == 0 || sum.packed >= sum.plain) return; /* all threads know the sums */
    if ((sum.plain - sum.packed) / looked_at * samples_of_plane >> TSR_COST_SHIFT <= bits) return;
    if (threadIdx.x == 0) {
        b.plane[plane].packed = 1;
        b.plane[plane].range = total;
    }
    if (index == index_of_plane) return;
    for (uint32_t v = low + threadIdx.x; v < low + span; v += THREADS) index_of_plane[v] = index[v];
}

} // namespace

/* Bytes of shared memory that seeing values takes. */
static size_t seen_bytes(const struct tsr_cuda_batch *batch, bool ranges)
{
    return (mark_words(marks_of(*batch, ranges)) + 2) * sizeof(uint32_t);
}

int tsr_cuda_split(const struct tsr_cuda_batch *batch, cudaStream_t stream)
{
    const unsigned blocks = blocks_of_plane(*batch, ROUNDS);
    const tsr_image &image = batch->image;
    const bool ranges = batch->components < 3, is_plain = image.bits_allocated == image.bits_stored && !image.is_signed;
    void (*const kernel)(tsr_cuda_batch, unsigned, bool) =
        image.bits_allocated == 8 ? (is_plain ? k_split<uint8_t, true> : k_split<uint8_t, false>)
                                  : (is_plain ? k_split<uint16_t, true> : k_split<uint16_t, false>);
    return tsr_launch(kernel, batch->planes * blocks, THREADS, seen_bytes(batch, ranges), stream, *batch, blocks,
                      ranges);
}

int tsr_cuda_colour(const struct tsr_cuda_batch *batch, cudaStream_t stream)
{
    if (batch->components < 3) return cudaSuccess;
    const unsigned blocks = blocks_of_plane(*batch, 1);
    const int bits = tsr_sample_bits(&batch->image);
    if (batch->coding.path == TSR_PATH_PREDICT) {
        const size_t used_bytes = ((1u << bits) / 32 + 1) * sizeof(uint32_t);
        TSR_CUDA_TRY(tsr_launch(k_colours_in_use, batch->frames, THREADS, used_bytes, stream, *batch));
        TSR_CUDA_TRY(tsr_launch(k_coloured, batch->frames * blocks, THREADS, 0, stream, *batch, blocks));
    }
    TSR_CUDA_TRY(tsr_launch(k_colour_cost, batch->frames * TSR_COLOUR_COUNT, THREADS, 0, stream, *batch));
    if (batch->coding.lossy && tsr_chroma_bits(bits) <= bits)
        TSR_CUDA_TRY(tsr_launch(k_colour_wraps, batch->frames * blocks, THREADS, 0, stream, *batch, blocks));
    return tsr_launch(k_apply_colour, batch->frames * blocks, THREADS, 0, stream, *batch, blocks);
}

int tsr_cuda_ranges(const struct tsr_cuda_batch *batch, cudaStream_t stream)
{
    const unsigned blocks = blocks_of_plane(*batch, ROUNDS);
    if (batch->components >= 3)
        TSR_CUDA_TRY(
            tsr_launch(k_ranges, batch->planes * blocks, THREADS, seen_bytes(batch, true), stream, *batch, blocks));
    const size_t index_bytes =
        (batch->values / 32 + (batch->values <= INDEXED_VALUES ? batch->values : 0)) * sizeof(uint16_t);
    return tsr_launch(k_choose_range, batch->planes, THREADS, index_bytes, stream, *batch);
}
