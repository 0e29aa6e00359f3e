/* Sums of magnitudes on the device, by which contexts shift them: see tsr_magnitude_shift. Where coefficients are
 * chosen, choose_cuda.cu does it on the way: one block in n leaves three quarters of each sector unused. */
#include "kernels/machine/device.cuh"

#include "kernels/slices/coefficients.cuh"

namespace
{

enum { THREADS = 256 };

/* A block of threads a tile of a plane, a thread every n-th block of it. */
template <typename Coefficient> __global__ void __launch_bounds__(THREADS) k_magnitudes(const tsr_cuda_batch b)
{
    const uint32_t number = blockIdx.x / b.shape.tiles;
    if (tsr_state_span(b.shared.plane[number]) == 1) return;
    const struct tsr_tile_place place = tsr_tile_place(&b, blockIdx.x - number * b.shape.tiles);
    const uint32_t columns = (uint32_t)(place.tile.width + 3) / 4, rows = (uint32_t)(place.tile.height + 3) / 4;
    const size_t first = (size_t)number * b.shape.slices + place.first_slice;
    uint64_t sum = 0;
    for (uint32_t at = threadIdx.x * TSR_MAGNITUDE_STEP; at < columns * rows; at += THREADS * TSR_MAGNITUDE_STEP) {
        const uint32_t row = at / columns, column = at - row * columns;
        int32_t block[TSR_BLOCK_SAMPLES];
        tsr_load_block(static_cast<const Coefficient *>(b.transform.coefficients),
                       first + row / TSR_SLICE_BLOCKS * place.slice_columns + column / TSR_SLICE_BLOCKS,
                       row % TSR_SLICE_BLOCKS * TSR_SLICE_BLOCKS + column % TSR_SLICE_BLOCKS, block);
        sum += tsr_magnitudes_of(block);
    }
    tsr_add_magnitudes(b, number, sum);
}

} // namespace

int tsr_cuda_magnitudes(const struct tsr_cuda_batch *batch, cudaStream_t stream)
{
    void (*const kernel)(tsr_cuda_batch) = batch->transform.narrow ? k_magnitudes<int16_t> : k_magnitudes<int32_t>;
    return tsr_launch(kernel, batch->shape.planes * batch->shape.tiles, THREADS, 0, stream, *batch);
}
