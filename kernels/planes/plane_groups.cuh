/* What the passes over planes share: groups of samples that a thread takes at once, and the values that a block has
 * seen, which become a plane's range. */
#ifndef TSR_KERNELS_PLANES_PLANE_GROUPS_CUH
#define TSR_KERNELS_PLANES_PLANE_GROUPS_CUH

#include "kernels/machine/device.cuh"

#include "entropy/code_cost.h"
#include "kernels/batch/batch_transform_cuda.h"

namespace tsr_planes
{

/* Rows of planes are filled up to groups of samples, which a thread loads and stores at once. */
enum { THREADS = 256, GROUP = 8, ROUNDS = 8 };

/* Blocks of THREADS threads a plane, each thread rounds groups of GROUP samples. */
static inline unsigned blocks_of_plane(const tsr_cuda_batch &b, unsigned rounds)
{
    const unsigned groups = (unsigned)(b.shape.plane_samples / GROUP);
    return (groups + THREADS * rounds - 1) / (THREADS * rounds);
}

/* Two neighbouring 16-bit values of a word. */
static __device__ __forceinline__ void unpack_pair(uint32_t pair, uint32_t out[2])
{
    out[0] = pair & 0xffffu;
    out[1] = pair >> 16;
}

static __device__ __forceinline__ void unpack_group(uint4 four, uint32_t out[GROUP])
{
    unpack_pair(four.x, out);
    unpack_pair(four.y, out + 2);
    unpack_pair(four.z, out + 4);
    unpack_pair(four.w, out + 6);
}

static __device__ __forceinline__ uint4 pack_group(const uint32_t value[GROUP])
{
    return make_uint4(value[0] | value[1] << 16, value[2] | value[3] << 16, value[4] | value[5] << 16,
                      value[6] | value[7] << 16);
}

/* A group of each of three planes. */
static __device__ __forceinline__ void load_groups(const uint16_t *samples, size_t plane_samples,
                                                   uint32_t value[3][GROUP])
{
#pragma unroll
    for (int c = 0; c < 3; c++) unpack_group(*reinterpret_cast<const uint4 *>(samples + c * plane_samples), value[c]);
}

/* Rows that a choice looks at. */
static __device__ __forceinline__ uint32_t choice_rows(const tsr_image &image, uint32_t step)
{
    return image.rows < 2 ? 0 : (image.rows - 2) / step + 1;
}

/* Costs of small residuals, in shared memory. */
enum { COST_TABLE = 512 };

static __device__ __forceinline__ void fill_costs(uint16_t *costs)
{
    for (uint32_t m = threadIdx.x; m < COST_TABLE; m += THREADS) costs[m] = (uint16_t)tsr_magnitude_cost(m);
}

static __device__ __forceinline__ uint32_t known_cost(const uint16_t *costs, uint32_t magnitude)
{
    return magnitude < COST_TABLE ? costs[magnitude] : tsr_magnitude_cost(magnitude);
}

/* ---- Values that are seen --------------------------------------------------------------------------------- */

/* Values in use are marked in shared memory: by bytes, without a look at what is there, from which the least and the
 * greatest one follow, too; by bits where there are many values. */
enum { MOST_BYTES = 1 << 14 };

struct value_marks {
    uint32_t words; /* of bits; 0: values are not marked */
    bool by_bytes;
};

static __host__ __device__ __forceinline__ value_marks marks_of(const tsr_cuda_batch &b, bool marks)
{
    value_marks m;
    m.words = marks && b.shared.used ? b.shape.values / 32 : 0;
    m.by_bytes = m.words > 0 && b.shape.values <= MOST_BYTES;
    return m;
}

/* Words of shared memory that the marks take; two more follow them. */
static __host__ __device__ __forceinline__ uint32_t mark_words(value_marks marks)
{
    return marks.by_bytes ? marks.words * 8 : marks.words;
}

/* What a thread has seen of a plane's values, unless bytes tell it. */
struct seen_values {
    uint32_t minimum, maximum;
};

/* used: shared. */
static __device__ __forceinline__ void see_group(seen_values &seen, uint32_t *used, value_marks marks,
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
static __device__ __forceinline__ void clear_seen(uint32_t *used, value_marks marks)
{
    for (uint32_t i = threadIdx.x; i < mark_words(marks) + 2; i += THREADS) used[i] = 0;
}

/* Word i of the marks. */
static __device__ __forceinline__ uint32_t marked_word(const uint32_t *used, value_marks marks, uint32_t i)
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
static __device__ __forceinline__ void publish_seen(const tsr_cuda_batch &b, uint32_t plane, seen_values seen,
                                                    uint32_t *used, value_marks marks)
{
    uint32_t *const most = used + mark_words(marks), *const of_plane = b.shared.used + (size_t)plane * marks.words;
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
    tsr_plane_state &state = b.shared.plane[plane];
    if (threadIdx.x != 0) return;
    if (__ldcg(&state.not_minimum) < most[0]) atomicMax(&state.not_minimum, most[0]);
    if (__ldcg(&state.maximum) < most[1]) atomicMax(&state.maximum, most[1]);
}

/* Bytes of shared memory that seeing values takes. */
static inline size_t seen_bytes(const struct tsr_cuda_batch *batch, bool ranges)
{
    return (mark_words(marks_of(*batch, ranges)) + 2) * sizeof(uint32_t);
}

} // namespace tsr_planes

#endif
