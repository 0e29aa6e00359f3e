/* Rasters to planes on the device: FORMAT.md section 6.1. Planes keep their values; what makes indices of them (a
 * minimum, a packed histogram) is applied where they are read, which saves a pass over all planes. */
#include "plane_groups.cuh"

using namespace tsr_planes;

namespace
{

enum { AT_ONCE = 4 };
static_assert(ROUNDS % AT_ONCE == 0, "loads on their way together");

/* The words of a group in the raster, which starts at word first of a component. Word: of 8 or 16 bits. After the
 * count words that are there the first one is repeated. */
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

__device__ __forceinline__ uint4 split_four(const pair_layout &l, uint4 four, seen_bits &bits)
{
    return make_uint4(split_pair(l, four.x, bits), split_pair(l, four.y, bits), split_pair(l, four.z, bits),
                      split_pair(l, four.w, bits));
}

/* Words that are samples; that hold them; and these samples quantised, for bounded errors. */
enum words_kind { PLAIN, HELD, QUANTISED };

/* A group's words, count of them, to samples. unexpected: bits outside that are not as extended has them; as layout has
 * them. */
template <words_kind KIND>
__device__ __forceinline__ void samples_of_words(const tsr_cuda_batch &b, uint32_t count, struct tsr_word_layout layout,
                                                 struct tsr_word_layout extended, uint32_t value[GROUP],
                                                 uint32_t unexpected[2])
{
#pragma unroll
    for (uint32_t i = 0; i < GROUP; i++) {
        if (i < count) unexpected[0] |= tsr_word_outside(value[i], extended);
        if (i < count) unexpected[1] |= tsr_word_outside(value[i], layout);
        value[i] = tsr_word_sample(value[i], layout);
        if (KIND == QUANTISED)
            value[i] = tsr_near_lossless_index(value[i], tsr_frame_near_lossless(&b.shape.image, b.shape.max_error));
    }
}

/* True if words can be taken in pairs, eight at a time, from first on. */
template <typename Word> __device__ __forceinline__ bool may_pair(const pair_layout &pairs, const uint8_t *first)
{
    return sizeof(Word) == 2 && pairs.is_common && reinterpret_cast<uintptr_t>(first) % 16 == 0;
}

/* Rasters to planes; ranges: also the planes' ranges, where no colour transform comes between. */
template <typename Word, words_kind KIND>
__global__ void __launch_bounds__(THREADS) k_split(const tsr_cuda_batch b, unsigned blocks, bool ranges)
{
    TSR_DYNAMIC_SHARED(memory);
    uint32_t *used = reinterpret_cast<uint32_t *>(memory);
    const tsr_image &image = b.shape.image;
    const uint32_t plane = blockIdx.x / blocks, frame = plane / b.shape.components;
    const uint32_t component = plane % b.shape.components;
    const uint32_t groups = (uint32_t)(b.shape.plane_samples / GROUP), across = b.shape.pitch / GROUP;
    const uint32_t step = image.planar ? 1 : b.shape.components;
    const value_marks marks = marks_of(b, ranges);
    const uint8_t *raster = b.shared.rasters + frame * b.shape.frame_bytes;
    const size_t origin = image.planar ? (size_t)component * image.columns * image.rows : component;
    const struct tsr_word_layout layout = layout_of(image, false), extended = layout_of(image, true);
    const pair_layout pairs = pairs_of(image);
    const bool is_flat = KIND != QUANTISED && step == 1 && image.columns == b.shape.pitch &&
                         may_pair<Word>(pairs, raster + origin * sizeof(Word));
    uint16_t *samples = b.shared.samples + plane * b.shape.plane_samples;
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
            if (KIND != PLAIN) four[i] = split_four(pairs, four[i], bits);
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
        if (KIND != PLAIN) samples_of_words<KIND>(b, count, layout, extended, value, unexpected);
        if (ranges) see_group(seen, used, marks, value);
        *reinterpret_cast<uint4 *>(samples + (size_t)group * GROUP) = pack_group(value);
    }
    if (ranges) publish_seen(b, plane, seen, used, marks);
    unexpected[0] |= bits.changes & pairs.repeated;
    unexpected[1] |= bits.set & ~pairs.samples;
    for (int way = 0; KIND != PLAIN && way < 2; way++)
        if (__any_sync(TSR_FULL_WARP, unexpected[way] != 0) && threadIdx.x % TSR_WARP == 0)
            b.shared.frame[frame].unexpected[way] = 1;
}

template <typename Word> cudaError_t split(const tsr_cuda_batch &b, cudaStream_t stream)
{
    const unsigned blocks = blocks_of_plane(b, ROUNDS);
    const bool ranges = b.shape.components < 3,
               is_plain = b.shape.image.bits_allocated == b.shape.image.bits_stored && !b.shape.image.is_signed;
    void (*const kernel)(tsr_cuda_batch, unsigned, bool) = b.shape.max_error > 0 ? k_split<Word, QUANTISED>
                                                           : is_plain            ? k_split<Word, PLAIN>
                                                                                 : k_split<Word, HELD>;
    return tsr_launch(kernel, b.shape.planes * blocks, THREADS, seen_bytes(&b, ranges), stream, b, blocks, ranges);
}

} // namespace

int tsr_cuda_split(const struct tsr_cuda_batch *batch, cudaStream_t stream)
{
    return batch->shape.image.bits_allocated == 8 ? split<uint8_t>(*batch, stream) : split<uint16_t>(*batch, stream);
}
