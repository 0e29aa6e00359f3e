/* The CUDA engine: path T's encoder on a GPU, the same bytes as the CPU engine's, to which it leaves everything else. */
#ifndef TSR_KERNELS_CUDA_ENGINE_H
#define TSR_KERNELS_CUDA_ENGINE_H

#include "engine.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Takes the pool over, also where it fails: then it returns NULL, and *reason says why in a few words (static text). */
struct tsr_engine *tsr_cuda_engine_create(struct tsr_pool *pool, const char **reason);

#ifdef __cplusplus
}
#endif

#endif
