/* Differences of frames and their SSIM on a GPU, by the definitions' steps (transform/planes/difference.h, ssim.h):
 * where samples are coded with loss, a CT's slice takes a processor 0.5 ms otherwise. test_cuda_measure holds the sums
 * equal to those of difference_cpu.c and ssim_cpu.c. */
#include "kernels/machine/device.cuh"

#include "kernels/batch/batch_measure_cuda.h"
#include "kernels/machine/arena.cuh"
#include "transform/planes/raster_words.h"

namespace
{

enum {
    THREADS = 256,
    PART_WORDS = 32 * THREADS, /* of a block that sums up differences */
    ACROSS = 32,               /* positions of a block that sums up SSIMs */
    DOWN = THREADS / ACROSS,
    COLUMNS = (ACROSS - 1) * TSR_SSIM_STEP + TSR_SSIM_SIDE,
    ROWS = (DOWN - 1) * TSR_SSIM_STEP + TSR_SSIM_SIDE
};

__device__ __forceinline__ void add_to(uint64_t *sum, uint64_t value)
{
    const uint64_t all = tsr_warp_sum(value);
    if (threadIdx.x % TSR_WARP == 0 && all > 0)
        atomicAdd(reinterpret_cast<unsigned long long *>(sum), (unsigned long long)all);
}

__device__ __forceinline__ void raise(uint32_t *most, uint32_t value)
{
    const uint32_t all = tsr_warp_max(value);
    if (threadIdx.x % TSR_WARP == 0 && all > 0) atomicMax(most, all);
}

__device__ __forceinline__ bool is_kept(const tsr_measured &what, int64_t value)
{
    bool kept = false;
    for (uint32_t k = 0; k < what.kept; k++) kept = kept || tsr_in_value_range(value, what.kept_range[k]);
    return kept;
}

/* A block for each part of a frame's words. A frame has less than 2^32 of them: no sum is saturated. */
__global__ void __launch_bounds__(THREADS) k_differences(const tsr_measure_batch b, uint32_t parts, uint32_t words)
{
    const uint32_t frame = blockIdx.x / parts, first = (blockIdx.x - frame * parts) * PART_WORDS;
    const tsr_measured what = b.measured[frame];
    const uint8_t *const original = b.originals + frame * b.frame_bytes, *const decoded =
                                                                             b.rasters + frame * b.frame_bytes;
    const uint32_t columns = b.image.columns, pixels = columns * b.image.rows;
    tsr_difference own = {};
    uint64_t sum = 0, count = 0;
    for (uint32_t i = first + threadIdx.x; i < words && i - first < PART_WORDS; i += THREADS) {
        const int64_t value = tsr_raster_value(&b.image, original, i);
        tsr_add_sample_difference(&what, value, tsr_raster_value(&b.image, decoded, i), &own);
        const uint32_t row = i / columns;
        if (i < pixels && row % TSR_SSIM_STEP == 0 && (i - row * columns) % TSR_SSIM_STEP == 0 &&
            !is_kept(what, value)) {
            sum += (uint64_t)value;
            count++;
        }
    }
    tsr_frame_sums *const to = &b.sums[frame];
    raise(&to->difference.max_error, own.max_error);
    add_to(&to->difference.squared_error, own.squared_error);
    add_to(&to->difference.samples, own.samples);
    add_to(&to->mean_sum, sum);
    add_to(&to->mean_count, count);
    for (uint32_t w = 0; w < what.windows; w++) {
        raise(&to->difference.window[w].max_error, own.window[w].max_error);
        add_to(&to->difference.window[w].squared_error, own.window[w].squared_error);
        add_to(&to->difference.window[w].samples, own.window[w].samples);
    }
}

/* The scale of all values (window 0) or of a window (1 and on); false: no value can lie in it. As tsr_add_ssim has it.
 */
__device__ bool find_scale(const tsr_image &image, const tsr_measured &what, const tsr_frame_sums &sums,
                           uint32_t window, tsr_ssim_scale *scale)
{
    const int64_t half = (int64_t)1 << (image.bits_stored - 1), least = image.is_signed ? -half : 0,
                  most = least + 2 * half - 1;
    const uint32_t whole = (uint32_t)(most - least), range = what.range < whole ? what.range : whole;
    int64_t low = least, high = most, dynamic = whole;
    if (window > 0) {
        low = what.window[window - 1].low;
        high = what.window[window - 1].high;
        if (low > high || high < least || low > most) return false;
        dynamic = high - low < whole ? high - low : whole;
        if (dynamic < 1) dynamic = 1;
    } else if (range < whole) {
        const int64_t middle = sums.mean_count > 0 ? (int64_t)sums.mean_sum / (int64_t)sums.mean_count : 0;
        low = middle - range;
        high = middle + range;
        dynamic = range;
    }
    *scale = tsr_ssim_scale_of(low < least ? least : low, high > most ? most : high, (uint32_t)dynamic);
    return true;
}

struct ssim_block {
    tsr_ssim_scale scale;
    uint16_t original[ROWS][COLUMNS + 1], decoded[ROWS][COLUMNS + 1];
    bool has_scale;
};

/* The moments of the neighbourhood that begins at this row and column of the block. */
__device__ __forceinline__ tsr_ssim_moments sum_up(const ssim_block &s, uint32_t row, uint32_t column)
{
    tsr_ssim_moments m = {0, 0, 0, 0};
    for (uint32_t i = 0; i < TSR_SSIM_SIDE; i++) {
        uint32_t sum[4] = {0, 0, 0, 0};
#pragma unroll
        for (int k = 0; k < TSR_SSIM_SIDE; k++) {
            const uint32_t weight =
                TSR_AT(tsr_ssim_weight)[k < TSR_SSIM_REACH ? TSR_SSIM_REACH - k : k - TSR_SSIM_REACH];
            const uint32_t x = s.original[row + i][column + (uint32_t)k], y = s.decoded[row + i][column + (uint32_t)k];
            sum[0] += weight * x;
            sum[1] += weight * y;
            sum[2] += weight * (x * y);
            sum[3] += weight * ((x - y) * (x - y));
        }
        const uint64_t weight = TSR_AT(tsr_ssim_weight)[i < TSR_SSIM_REACH ? TSR_SSIM_REACH - i : i - TSR_SSIM_REACH];
        m.original += weight * sum[0];
        m.decoded += weight * sum[1];
        m.product += weight * sum[2];
        m.difference += weight * sum[3];
    }
    return m;
}

/* A block for ACROSS x DOWN positions of a component, over all and then for each window. */
__global__ void __launch_bounds__(THREADS) k_ssim(const tsr_measure_batch b, uint32_t blocks_across, uint32_t blocks)
{
    TSR_DYNAMIC_SHARED(shared);
    ssim_block &s = *reinterpret_cast<ssim_block *>(shared);
    const uint32_t number = blockIdx.x / blocks, place = blockIdx.x - number * blocks;
    const uint32_t frame = number / b.image.components, component = number - frame * b.image.components;
    const uint32_t first_across = place % blocks_across * ACROSS, first_down = place / blocks_across * DOWN;
    const uint32_t left = first_across * TSR_SSIM_STEP, top = first_down * TSR_SSIM_STEP;
    const uint32_t across = threadIdx.x % ACROSS, down = threadIdx.x / ACROSS;
    const bool is_position = first_across + across < tsr_ssim_positions(b.image.columns) &&
                             first_down + down < tsr_ssim_positions(b.image.rows);
    const uint8_t *const original = b.originals + frame * b.frame_bytes, *const decoded =
                                                                             b.rasters + frame * b.frame_bytes;
    const size_t step = b.image.planar ? 1 : b.image.components,
                 first = b.image.planar ? (size_t)component * b.image.columns * b.image.rows : component;
    const tsr_measured what = b.measured[frame];
    tsr_frame_sums *const to = &b.sums[frame];
    if (what.range == 0) return;
    const auto word_at = [&](uint32_t row, uint32_t column) {
        return first + ((size_t)row * b.image.columns + column) * step;
    };
    for (uint32_t window = 0; window <= what.windows; window++) {
        __syncthreads(); /* the last window's values are no longer read */
        if (threadIdx.x == 0) s.has_scale = find_scale(b.image, what, *to, window, &s.scale);
        __syncthreads();
        if (!s.has_scale) continue;
        for (uint32_t i = threadIdx.x; i < ROWS * COLUMNS; i += THREADS) {
            const uint32_t row = i / COLUMNS, column = i - row * COLUMNS;
            if (top + row >= b.image.rows || left + column >= b.image.columns) continue;
            const size_t at = word_at(top + row, left + column);
            s.original[row][column] = (uint16_t)tsr_ssim_value(&s.scale, tsr_raster_value(&b.image, original, at));
            s.decoded[row][column] = (uint16_t)tsr_ssim_value(&s.scale, tsr_raster_value(&b.image, decoded, at));
        }
        __syncthreads();
        uint64_t loss = 0, positions = 0;
        if (is_position) {
            const uint32_t row = down * TSR_SSIM_STEP, column = across * TSR_SSIM_STEP;
            const int64_t value = tsr_raster_value(&b.image, original,
                                                   word_at(top + row + TSR_SSIM_REACH, left + column + TSR_SSIM_REACH));
            if (value >= s.scale.low && value <= s.scale.high && !is_kept(what, value)) {
                const tsr_ssim_moments moments = sum_up(s, row, column);
                loss = tsr_ssim_loss(&s.scale, &moments);
                positions = 1;
            }
        }
        tsr_ssim_sum *const sum = window > 0 ? &to->difference.window[window - 1].ssim : &to->difference.ssim;
        add_to(&sum->positions, positions);
        add_to(&sum->loss, loss);
    }
}

} // namespace

size_t tsr_cuda_measure_lay_out(struct tsr_measure_batch *batch, const struct tsr_image *image, uint32_t frames,
                                const uint8_t *rasters, void *base)
{
    tsr_measure_batch &b = *batch;
    uint8_t *const bytes = static_cast<uint8_t *>(base);
    size_t used = 0;
    b.image = *image;
    b.frames = frames;
    b.frame_bytes = (size_t)(tsr_frame_bits(image) / 8);
    b.rasters = rasters;
    tsr_take_array(b.originals, bytes, used, frames * b.frame_bytes);
    tsr_take_array(b.measured, bytes, used, frames);
    tsr_take_array(b.sums, bytes, used, frames);
    return used;
}

int tsr_cuda_measure(const struct tsr_measure_batch *b, cudaStream_t stream)
{
    const uint32_t words = b->image.columns * b->image.rows * b->image.components,
                   parts = (words + PART_WORDS - 1) / PART_WORDS;
    const uint32_t across = (tsr_ssim_positions(b->image.columns) + ACROSS - 1) / ACROSS,
                   blocks = across * ((tsr_ssim_positions(b->image.rows) + DOWN - 1) / DOWN);
    TSR_CUDA_TRY(cudaMemsetAsync(b->sums, 0, b->frames * sizeof *b->sums, stream));
    TSR_CUDA_TRY(tsr_launch(k_differences, b->frames * parts, THREADS, 0, stream, *b, parts, words));
    return tsr_launch(k_ssim, b->frames * b->image.components * blocks, THREADS, sizeof(ssim_block), stream, *b, across,
                      blocks);
}
