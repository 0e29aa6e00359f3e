/* The bases of a batch's frames on the device (BASE.md 3), which predictors refer to as to planes of the batch. */
#ifndef TSR_KERNELS_BATCH_BASE_CUDA_H
#define TSR_KERNELS_BATCH_BASE_CUDA_H

#include <stddef.h>
#include <stdint.h>

/* Of all frames of a batch; null where none refers to a base. Rasters lie as the batch's. */
struct tsr_cuda_bases {
    uint8_t *rasters;         /* by frame; of frames that refer to none: anything */
    uint16_t *planes, *means; /* by frame and component, plane_samples of the batch each: indices, and their means */
};

#endif
