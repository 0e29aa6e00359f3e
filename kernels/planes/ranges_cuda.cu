/* Ranges of planes on the device: a minimum, or a packed histogram. FORMAT.md section 6.2. The choice is that of
 * ranges_cpu.c: the same sums of the same costs over the same samples, and sums of integers have no order. */
#include "plane_groups.cuh"
#include "sample_pairs.cuh"
#include "used_values.cuh"

using namespace tsr_planes;

namespace
{

/* Ranges of planes that a colour transform has made. */
__global__ void __launch_bounds__(THREADS) k_ranges(const tsr_cuda_batch b, unsigned blocks)
{
    TSR_DYNAMIC_SHARED(memory);
    uint32_t *used = reinterpret_cast<uint32_t *>(memory);
    const uint32_t plane = blockIdx.x / blocks;
    const value_marks marks = marks_of(b, true);
    const uint32_t groups = (uint32_t)(b.shape.plane_samples / GROUP), across = b.shape.pitch / GROUP;
    const uint16_t *samples = b.shared.samples + plane * b.shape.plane_samples;
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
            if (column + i >= b.shape.image.columns) value[i] = value[0]; /* what pads a row counts for nothing */
        see_group(seen, used, marks, value);
    }
    publish_seen(b, plane, seen, used, marks);
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

/* Planes of at most this number of values have their indices in shared memory until it is known whether they are
 * needed. */
enum { INDEXED_VALUES = 1 << 14 };

/* A block a plane: its range, and whether packing its histogram pays. */
__global__ void __launch_bounds__(THREADS) k_choose_range(const tsr_cuda_batch b)
{
    TSR_DYNAMIC_SHARED(memory);
    __shared__ uint32_t sums[THREADS / TSR_WARP], starts[THREADS];
    __shared__ uint64_t wide_sums[THREADS / TSR_WARP];
    __shared__ uint16_t costs[COST_TABLE];
    const uint32_t plane = blockIdx.x;
    const tsr_plane_state state = b.shared.plane[plane];
    const uint32_t low = 65535u - state.not_minimum, span = tsr_state_span(state);
    if (threadIdx.x == 0) b.shared.plane[plane].range = span; /* packed is 0 */
    if (!b.shared.used || span <= 2) return;

    const uint32_t *used = b.shared.used + (size_t)plane * (b.shape.values / 32);
    uint16_t *const index_of_plane = b.shared.index + (size_t)plane * b.shape.values;
    uint16_t *const used_before = reinterpret_cast<uint16_t *>(memory); /* by word of used: values in use below it */
    uint16_t *const index = b.shape.values <= INDEXED_VALUES ? used_before + b.shape.values / 32 : index_of_plane;
    const uint32_t first_word = low / 32, words = (low + span - 1) / 32 + 1 - first_word,
                   words_each = (words + THREADS - 1) / THREADS;
    const uint32_t first = min(words, words_each * threadIdx.x), end = min(words, first + words_each);
    uint32_t total, in_use = used_below(used + first_word, first, end, sums, &total);
    /* A tenth of the values must be unused for the question to be worth its time. */
    if (10 * (uint64_t)total > 9 * (uint64_t)span) return;
    count_words(used + first_word, first, end, in_use, used_before);
    fill_costs(costs);
    __syncthreads(); /* used_before[], costs[] */
    for (uint32_t v = low + threadIdx.x; v < low + span; v += THREADS)
        index[v] = used_before[v / 32 - first_word] + number_in_word(used, v);
    __syncthreads(); /* index[] */

    const uint16_t *samples = b.shared.samples + plane * b.shape.plane_samples;
    const uint32_t step = tsr_choice_step(b.shape.image.columns, b.shape.image.rows, TSR_PACKING_SAMPLES),
                   rows = choice_rows(b.shape.image, step), across = b.shape.pitch / GROUP;
    range_costs sum = {0, 0};
    for (uint32_t group = threadIdx.x; group < rows * across; group += THREADS) {
        const uint32_t row = group / across, column = (group - row * across) * GROUP;
        const uint16_t *const at = samples + (size_t)(1 + row * step) * b.shape.pitch + column;
        add_range_costs(sum, costs, at, at - b.shape.pitch, column == 0 ? 1 : 0, b.shape.image.columns - column,
                        [&](uint32_t v) { return (uint32_t)index[v] << 16 | v; });
    }
    sum.plain = block_sum(sum.plain, wide_sums);
    sum.packed = block_sum(sum.packed, wide_sums);
    const uint32_t each = (span + THREADS - 1) / THREADS, first_value = low + min(span, each * threadIdx.x);
    const uint64_t bits = block_sum(
        stretch_bits(used, low, low + span - 1, first_value, low + min(span, each * (threadIdx.x + 1)), starts),
        wide_sums);
    const uint64_t looked_at = (uint64_t)rows * (b.shape.image.columns - 1),
                   samples_of_plane = (uint64_t)b.shape.image.columns * b.shape.image.rows;
    if (looked_at == 0 || sum.packed >= sum.plain) return; /* all threads know the sums */
    if ((sum.plain - sum.packed) / looked_at * samples_of_plane >> TSR_COST_SHIFT <= bits) return;
    if (threadIdx.x == 0) {
        b.shared.plane[plane].packed = 1;
        b.shared.plane[plane].range = total;
    }
    if (index == index_of_plane) return;
    for (uint32_t v = low + threadIdx.x; v < low + span; v += THREADS) index_of_plane[v] = index[v];
}

} // namespace

int tsr_cuda_ranges(const struct tsr_cuda_batch *batch, cudaStream_t stream)
{
    const unsigned blocks = blocks_of_plane(*batch, ROUNDS);
    if (batch->shape.components >= 3)
        TSR_CUDA_TRY(tsr_launch(k_ranges, batch->shape.planes * blocks, THREADS, seen_bytes(batch, true), stream,
                                *batch, blocks));
    const size_t index_bytes =
        (batch->shape.values / 32 + (batch->shape.values <= INDEXED_VALUES ? batch->shape.values : 0)) *
        sizeof(uint16_t);
    return tsr_launch(k_choose_range, batch->shape.planes, THREADS, index_bytes, stream, *batch);
}
