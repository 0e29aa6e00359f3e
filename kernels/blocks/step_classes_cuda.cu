/* Classes of steps on the device: textures of squares, their classes, and the classes' strings. FORMAT.md section 8.8;
 * the behaviour of tsr_tile_textures and of kernels/engine_cpu/encode_blocks_cpu.c. */
#include "kernels/machine/device.cuh"

#include "kernels/slices/coefficients.cuh"

#include "entropy/step_classes.h"
#include "entropy/textures.h"

namespace
{

enum {
    SLICE_SQUARES = TSR_SLICE_SAMPLES / TSR_CLASS_SIDE,
    THREADS = TSR_TILE_SLICES * SLICE_SQUARES * SLICE_SQUARES, /* a thread a square of a tile */
    PARTS = TSR_CLASS_SIDE / TSR_TEXTURE_SIDE                  /* across a square */
};

/* The squares of a tile. */
struct square_grid {
    int32_t columns, rows;

    __device__ __forceinline__ square_grid(const struct tsr_tile_place &place)
        : columns(tsr_squares_along(place.tile.width)), rows(tsr_squares_along(place.tile.height))
    {
    }
};

/* Of the 8 x 8 samples from column, row of the tile on; beyond it its last ones again. */
__device__ __forceinline__ uint32_t texture_of_part(const uint16_t *samples, const struct tsr_tile &tile,
                                                    uint32_t minimum, int32_t column, int32_t row, int shift)
{
    uint32_t sum = 0, squares = 0;
    for (int i = 0; i < TSR_TEXTURE_SIDE; i++) {
        const uint16_t *line = samples + (size_t)tsr_min(row + i, tile.height - 1) * tile.stride;
#pragma unroll
        for (int j = 0; j < TSR_TEXTURE_SIDE; j++) {
            const uint32_t x = tsr_texture_sample(line[tsr_min(column + j, tile.width - 1)] - minimum, shift);
            sum += x;
            squares += x * x;
        }
    }
    return tsr_texture(sum, squares);
}

/* A block of threads a tile of a plane. */
__global__ void __launch_bounds__(THREADS) k_textures(const tsr_cuda_batch b)
{
    const uint32_t number = blockIdx.x / b.shape.tiles;
    const tsr_plane_state state = b.shared.plane[number];
    if (tsr_state_span(state) == 1 || !tsr_plane_plan(&b, number).classes) return;
    const struct tsr_tile_place place = tsr_tile_place(&b, blockIdx.x - number * b.shape.tiles);
    const square_grid grid(place);
    uint64_t texture = 0;
    if ((int32_t)threadIdx.x < grid.columns * grid.rows) {
        const uint16_t *samples = b.shared.samples + number * b.shape.plane_samples + place.tile.first;
        const int32_t y = (int32_t)threadIdx.x / grid.columns, x = (int32_t)threadIdx.x - y * grid.columns;
        const int shift = tsr_texture_shift(tsr_state_span(state));
        uint32_t sum = 0;
        int parts = 0;
        for (int part = 0; part < PARTS * PARTS; part++) {
            const int32_t column = TSR_CLASS_SIDE * x + part % PARTS * TSR_TEXTURE_SIDE,
                          row = TSR_CLASS_SIDE * y + part / PARTS * TSR_TEXTURE_SIDE;
            if (column >= place.tile.width || row >= place.tile.height) continue;
            sum += texture_of_part(samples, place.tile, 65535u - state.not_minimum, column, row, shift);
            parts++;
        }
        texture = sum >> (parts / 2); /* of 1, 2 or 4 */
        b.transform.textures[(size_t)blockIdx.x * b.transform.tile_squares + threadIdx.x] = (uint32_t)texture;
    }
    texture = tsr_warp_sum(texture);
    if (threadIdx.x % TSR_WARP == 0 && texture > 0)
        atomicAdd(reinterpret_cast<unsigned long long *>(&b.transform.texture_sum[number]),
                  (unsigned long long)texture);
}

/* The same: a thread a square. */
__global__ void __launch_bounds__(THREADS) k_classes(const tsr_cuda_batch b)
{
    const uint32_t number = blockIdx.x / b.shape.tiles;
    if (tsr_state_span(b.shared.plane[number]) == 1 || !tsr_plane_plan(&b, number).classes) return;
    const square_grid grid(tsr_tile_place(&b, blockIdx.x - number * b.shape.tiles));
    const size_t at = (size_t)blockIdx.x * b.transform.tile_squares + threadIdx.x;
    const uint32_t mean = (uint32_t)(b.transform.texture_sum[number] / b.transform.plane_squares);
    if ((int32_t)threadIdx.x < grid.columns * grid.rows)
        b.transform.classes[at] = (uint8_t)tsr_class_of_texture(b.transform.textures[at], mean);
}

/* A block of threads a tile of a plane: which of its squares have AC coefficients; then one thread writes the string.
 */
template <typename Coefficient> __global__ void __launch_bounds__(THREADS) k_class_strings(const tsr_cuda_batch b)
{
    __shared__ uint32_t in_use[THREADS];
    __shared__ uint8_t classes[THREADS];
    const uint32_t number = blockIdx.x / b.shape.tiles;
    if (tsr_state_span(b.shared.plane[number]) == 1 || !tsr_plane_plan(&b, number).classes) {
        if (threadIdx.x == 0) b.transform.class_bytes[blockIdx.x] = 0;
        return;
    }
    const struct tsr_tile_place place = tsr_tile_place(&b, blockIdx.x - number * b.shape.tiles);
    const square_grid grid(place);
    const int32_t columns = (place.tile.width + 3) / 4, blocks = columns * ((place.tile.height + 3) / 4);
    const size_t first = (size_t)number * b.shape.slices + place.first_slice;
    const Coefficient *coefficients = static_cast<const Coefficient *>(b.transform.coefficients);
    in_use[threadIdx.x] = 0;
    if ((int32_t)threadIdx.x < grid.columns * grid.rows)
        classes[threadIdx.x] = b.transform.classes[(size_t)blockIdx.x * b.transform.tile_squares + threadIdx.x];
    __syncthreads();
    for (int32_t at = (int32_t)threadIdx.x; at < blocks; at += THREADS) {
        const int32_t row = at / columns, column = at - row * columns;
        int32_t block[TSR_BLOCK_SAMPLES];
        tsr_load_block(coefficients,
                       first + (uint32_t)(row / TSR_SLICE_BLOCKS) * place.slice_columns +
                           (uint32_t)(column / TSR_SLICE_BLOCKS),
                       (uint32_t)(row % TSR_SLICE_BLOCKS * TSR_SLICE_BLOCKS + column % TSR_SLICE_BLOCKS), block);
        if (tsr_magnitudes_of(block) > 0)
            atomicOr(&in_use[row / TSR_CLASS_BLOCKS * grid.columns + column / TSR_CLASS_BLOCKS], 1u);
    }
    __syncthreads();
    if (threadIdx.x != 0) return;
    for (int32_t y = 0; y < grid.rows; y++) {
        uint8_t *row = classes + y * grid.columns;
        for (int32_t x = 0; x < grid.columns; x++)
            if (!in_use[y * grid.columns + x])
                row[x] = (uint8_t)tsr_class_context(row, y > 0 ? row - grid.columns : NULL, x).predicted;
    }
    struct tsr_range_writer w = tsr_range_writer(
        b.transform.class_strings + (size_t)blockIdx.x * b.transform.class_room, b.transform.class_room);
    tsr_put_classes(&w, classes, grid.columns, grid.rows);
    b.transform.class_bytes[blockIdx.x] = (uint32_t)tsr_range_end(&w);
}

} // namespace

int tsr_cuda_classes(const struct tsr_cuda_batch *batch, cudaStream_t stream)
{
    const unsigned tiles = batch->shape.planes * batch->shape.tiles;
    TSR_CUDA_TRY(tsr_launch(k_textures, tiles, THREADS, 0, stream, *batch));
    return tsr_launch(k_classes, tiles, THREADS, 0, stream, *batch);
}

int tsr_cuda_class_strings(const struct tsr_cuda_batch *batch, cudaStream_t stream)
{
    void (*const kernel)(tsr_cuda_batch) =
        batch->transform.narrow ? k_class_strings<int16_t> : k_class_strings<int32_t>;
    return tsr_launch(kernel, batch->shape.planes * batch->shape.tiles, THREADS, 0, stream, *batch);
}
