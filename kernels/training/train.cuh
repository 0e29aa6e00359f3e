/* What the steps of training on the device share: which blocks a warp takes; and those that stand in files of their
 * own.
 */
#ifndef TSR_KERNELS_TRAINING_TRAIN_CUH
#define TSR_KERNELS_TRAINING_TRAIN_CUH

#include "kernels/machine/device.cuh"

#include "predict_blocks.cuh"

enum {
    TSR_TRAINING_WARPS = 4,
    TSR_TRAINING_THREADS = TSR_TRAINING_WARPS * TSR_WARP,
    TSR_TRAINING_GROUP = 16, /* blocks that a warp takes, one after the other */
    TSR_PREDICTOR_BLOCK_SAMPLES = TSR_PREDICTOR_BLOCK * TSR_PREDICTOR_BLOCK
};

static __device__ __forceinline__ size_t tsr_all_tiles(const tsr_predict_batch &p)
{
    return (size_t)p.b.shape.planes * p.b.shape.tiles;
}

static __device__ __forceinline__ int32_t tsr_samples_of(const tsr_block_place &block)
{
    return block.span.columns * tsr_max(0, block.span.end - block.span.row);
}

/* Places of the blocks that a warp takes: number first and every TSR_TRAINING_WARPS-th after it, of those that take
 * part under a stride, or of all with stride 0. A lane each. */
static __device__ __forceinline__ void tsr_place_blocks(tsr_block_place place[TSR_TRAINING_GROUP],
                                                        const tsr_predict_batch &p, uint32_t plane, uint32_t first,
                                                        uint32_t stride, unsigned lane)
{
    if (lane < TSR_TRAINING_GROUP) {
        const uint32_t number = first + lane * TSR_TRAINING_WARPS;
        const uint32_t slots = stride == 0 ? p.b.shape.tiles * p.tile_blocks
                                           : tsr_slots_of_row(p, stride) * p.blocks_down * p.b.shape.tiles;
        tsr_block_place block;
        block.is_there = false;
        if (number < slots)
            block = stride == 0 ? tsr_any_block(p, plane, number) : tsr_training_block(p, plane, number, stride);
        place[lane] = block;
    }
    __syncwarp();
}

/* Blocks of threads of a plane whose warps take this many blocks. */
static inline unsigned tsr_training_groups(uint32_t blocks)
{
    return (blocks + TSR_TRAINING_WARPS * TSR_TRAINING_GROUP - 1) / (TSR_TRAINING_WARPS * TSR_TRAINING_GROUP);
}

/* What the predictors of a plan look at. */
static inline tsr_predictor_shape tsr_shape_of_plan(const tsr_predict_batch &p, const tsr_training_plan &plan)
{
    tsr_predictor_shape shape;
    shape.neighbours = TSR_AT(tsr_neighbours)[plan.set];
    shape.references = (uint8_t)p.references;
    return shape;
}

/* Plan number number of the batch, round by round: a class's sums of products (k_fit clears them), then labels: of the
 * blocks that take part in the next round, or, in the end, of all that are not flat, and then of those that are. */
cudaError_t tsr_train_sums(const tsr_predict_batch &p, int number, int round, cudaStream_t stream);
cudaError_t tsr_train_labels(const tsr_predict_batch &p, int number, int round, cudaStream_t stream);
cudaError_t tsr_train_flat_labels(const tsr_predict_batch &p, int number, cudaStream_t stream);

#endif
