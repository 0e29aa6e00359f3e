/* Differences of a batch's frames to their originals, which lie on the device, both in rasters one after the other:
 * transform/planes/difference.h and ssim.h. kernels/measure/measure_cuda.cu. */
#ifndef TSR_KERNELS_BATCH_BATCH_MEASURE_CUDA_H
#define TSR_KERNELS_BATCH_BATCH_MEASURE_CUDA_H

#include <cuda_runtime_api.h>

#include "app/tessera.h"
#include "transform/planes/difference.h"

/* What is summed up of a frame, without weights. */
struct tsr_frame_sums {
    struct tsr_difference difference;
    uint64_t mean_sum, mean_count; /* of the originals that the SSIM's middle goes by; the sum modulo 2^64 */
};

struct tsr_measure_batch {
    struct tsr_image image;
    uint32_t frames;
    size_t frame_bytes;
    const uint8_t *rasters; /* of the frames */
    uint8_t *originals;
    struct tsr_measured *measured; /* by frame, all with a range or all without one */
    struct tsr_frame_sums *sums;   /* by frame */
};

#ifdef __cplusplus
extern "C" {
#endif

/* Lays the arrays out from base on; if base is null, it only counts. Returns the bytes that they take. */
size_t tsr_cuda_measure_lay_out(struct tsr_measure_batch *batch, const struct tsr_image *image, uint32_t frames,
                                const uint8_t *rasters, void *base);

/* Sums up, on the stream. image of 8 or 16 bits allocated. */
int tsr_cuda_measure(const struct tsr_measure_batch *batch, cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
