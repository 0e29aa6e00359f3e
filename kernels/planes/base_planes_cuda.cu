/* Bases to planes of indices, and to the means of these, on the device: BASE.md 3. The CPU's form is
 * engine_cpu/base_cpu.c; test_cuda_bases holds both equal. */
#include "kernels/machine/device.cuh"

#include "kernels/batch/batch_decode_cuda.h"
#include "kernels/batch/batch_predict_cuda.h"

namespace
{

enum { THREADS = 256 };

/* Components of an image, at most. */
enum { COMPONENTS = 4 };

/* How a batch's planes and bases lie. */
struct base_shape {
    tsr_image image;
    uint32_t frames, pitch;
    size_t plane_samples, frame_bytes;
    int32_t tile_width, tile_height;
    tsr_cuda_bases bases;
};

/* ---- What an encoder and a decoder know of a frame ---------------------------------------------------------- */

struct encoded {
    tsr_predict_batch p;

    __device__ __forceinline__ const tsr_plane_state &plane(uint32_t frame, uint32_t c) const
    {
        return p.b.shared.plane[frame * p.b.shape.components + c];
    }
    __device__ __forceinline__ bool refers(uint32_t frame) const
    {
        return tsr_frame_refers(&p, frame);
    }
    __device__ __forceinline__ bool is_coded(uint32_t frame, uint32_t c) const
    {
        return plane(frame, c).range > 1;
    }
    __device__ __forceinline__ void transform(uint32_t frame, int32_t value[3]) const
    {
        tsr_colour_forward(value, (tsr_colour)p.b.shared.frame[frame].colour, p.b.shape.bits);
    }

    /* tsr_base_index. Of packed planes there is the index of each value, which is that of the next one in use. */
    __device__ __forceinline__ uint32_t index(uint32_t frame, uint32_t c, uint32_t value) const
    {
        const size_t number = (size_t)frame * p.b.shape.components + c;
        const tsr_plane_state &state = plane(frame, c);
        const uint32_t minimum = 65535u - state.not_minimum;
        if (value <= minimum) return 0;
        if (value - minimum >= tsr_state_span(state)) return state.range - 1;
        if (!state.packed) return value - minimum;
        const uint32_t *const used = p.b.shared.used + number * (p.b.shape.values / 32);
        const bool is_used = used[value / 32] >> value % 32 & 1u;
        return p.b.shared.index[number * p.b.shape.values + value] - (is_used ? 0u : 1u);
    }
};

struct decoded {
    tsr_cuda_decode_batch b;

    __device__ __forceinline__ const tsr_frame_model &model(uint32_t frame) const
    {
        return *tsr_decode_model(&b, frame);
    }
    __device__ __forceinline__ bool refers(uint32_t frame) const
    {
        return b.frame[frame].state == TSR_DECODE_OK && tsr_refers_to_base(&model(frame));
    }
    __device__ __forceinline__ bool is_coded(uint32_t frame, uint32_t c) const
    {
        return model(frame).plane[c].range > 1;
    }
    __device__ __forceinline__ void transform(uint32_t frame, int32_t value[3]) const
    {
        tsr_colour_forward(value, model(frame).colour, tsr_first_plane_bits(&b.image, model(frame).max_error));
    }
    __device__ __forceinline__ uint32_t index(uint32_t frame, uint32_t c, uint32_t value) const
    {
        return tsr_base_index(&model(frame).plane[c], value);
    }
};

/* ---- Planes ------------------------------------------------------------------------------------------------- */

__device__ __forceinline__ uint32_t load_sample(const tsr_image &image, const uint8_t *raster, size_t at)
{
    const struct tsr_word_layout layout =
        tsr_word_layout(image.bits_allocated, image.bits_stored, image.high_bit, image.is_signed, false);
    if (image.bits_allocated == 8) return tsr_word_sample(raster[at ^ (size_t)image.swapped], layout);
    const uint32_t word = (uint32_t)raster[2 * at + !image.big_endian] << 8 | raster[2 * at + image.big_endian];
    return tsr_word_sample(word, layout);
}

/* A thread for each place of a frame: all its components. */
template <typename Frames>
__global__ void __launch_bounds__(THREADS) k_bases(const base_shape s, const Frames of, unsigned blocks)
{
    const uint32_t frame = blockIdx.x / blocks, count = s.image.columns * s.image.rows, components = s.image.components,
                   place = (blockIdx.x - frame * blocks) * THREADS + threadIdx.x;
    if (place >= count || !of.refers(frame)) return;
    const uint8_t *const raster = s.bases.rasters + frame * s.frame_bytes;
    const uint32_t row = place / s.image.columns, column = place - row * s.image.columns;
    int32_t value[COMPONENTS] = {0};
#pragma unroll
    for (uint32_t c = 0; c < COMPONENTS; c++)
        if (c < components)
            value[c] = (int32_t)load_sample(
                s.image, raster, s.image.planar ? (size_t)c * count + place : (size_t)place * components + c);
    if (components >= 3) of.transform(frame, value);
    uint16_t *const out =
        s.bases.planes + (size_t)frame * components * s.plane_samples + (size_t)row * s.pitch + column;
#pragma unroll
    for (uint32_t c = 0; c < COMPONENTS; c++)
        if (c < components && of.is_coded(frame, c))
            out[c * s.plane_samples] = (uint16_t)of.index(frame, c, (uint32_t)value[c]);
}

/* A thread for each place of a plane. */
template <typename Frames>
__global__ void __launch_bounds__(THREADS) k_base_means(const base_shape s, const Frames of, unsigned blocks)
{
    const int32_t columns = (int32_t)s.image.columns, rows = (int32_t)s.image.rows;
    const uint32_t plane = blockIdx.x / blocks, frame = plane / s.image.components,
                   place = (blockIdx.x - plane * blocks) * THREADS + threadIdx.x;
    if (place >= s.image.columns * s.image.rows || !of.refers(frame) ||
        !of.is_coded(frame, plane - frame * s.image.components))
        return;
    const int32_t y = (int32_t)place / columns, x = (int32_t)place - y * columns;
    const int32_t left = x / s.tile_width * s.tile_width, top = y / s.tile_height * s.tile_height;
    const int32_t right = tsr_min(left + s.tile_width, columns) - 1, bottom = tsr_min(top + s.tile_height, rows) - 1;
    const uint16_t *const from = s.bases.planes + plane * s.plane_samples;
    const auto at = [&](int32_t row, int32_t column) { return (int32_t)from[(size_t)row * s.pitch + (size_t)column]; };
    const int32_t up = tsr_max(top, y - 1), down = tsr_min(bottom, y + 1);
    const int32_t w = x > left ? at(y, x - 1) : at(up, left), e = at(y, tsr_min(right, x + 1));
    s.bases.means[plane * s.plane_samples + (size_t)y * s.pitch + (size_t)x] =
        (uint16_t)tsr_base_mean(w, at(up, x), e, at(down, x));
}

template <typename Frames> cudaError_t make_bases(const base_shape &s, const Frames &of, cudaStream_t stream)
{
    const unsigned blocks = (s.image.columns * s.image.rows + THREADS - 1) / THREADS;
    TSR_CUDA_TRY(tsr_launch(k_bases<Frames>, s.frames * blocks, THREADS, 0, stream, s, of, blocks));
    return tsr_launch(k_base_means<Frames>, s.frames * s.image.components * blocks, THREADS, 0, stream, s, of, blocks);
}

} // namespace

int tsr_predict_bases(const struct tsr_predict_batch *batch, cudaStream_t stream)
{
    const tsr_batch_shape &b = batch->b.shape;
    const base_shape shape = {b.image,       b.frames,     b.pitch,       b.plane_samples,
                              b.frame_bytes, b.tile_width, b.tile_height, batch->bases};
    return make_bases(shape, encoded{*batch}, stream);
}

int tsr_cuda_decode_bases(const struct tsr_cuda_decode_batch *batch, cudaStream_t stream)
{
    const tsr_cuda_decode_batch &b = *batch;
    const base_shape shape = {b.image,       b.frames,     b.pitch,       b.plane_samples,
                              b.frame_bytes, b.tile_width, b.tile_height, b.bases};
    return make_bases(shape, decoded{b}, stream);
}
