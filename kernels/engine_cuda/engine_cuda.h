/* The CUDA engine: encoders of both paths on a GPU, byte for byte what the CPU engine writes, and the decoder of both
 * paths; all else it hands to a CPU engine of its own. See engine.h. */
#ifndef TSR_KERNELS_ENGINE_CUDA_ENGINE_CUDA_H
#define TSR_KERNELS_ENGINE_CUDA_ENGINE_CUDA_H

#include "kernels/engine.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { TSR_CUDA_FRAMES = 256 }; /* of 512 x 512: what fills a GPU */

/* An engine on the devices of choice (NULL: all that can be used); it takes the pool over, also where it fails and
 * returns NULL. reason then says why. */
struct tsr_engine *tsr_cuda_engine_create(struct tsr_pool *pool, const struct tsr_gpu_choice *choice, char *reason,
                                          size_t reason_size);

/* Memory of the host that an engine of this choice pins, if the process may take this many bytes. No GPU is asked. */
size_t tsr_cuda_pinned_memory(const struct tsr_gpu_choice *choice, size_t bytes);

/* For measurements and tests: from the next call on path P's encoder launches its kernels by this one of
 * tsr_launch_policies (policies_cuda.h); at first by 0. Not while calls are under way. */
void tsr_cuda_engine_launch_by(struct tsr_engine *engine, int policy);

/* For measurements: encodes frames that lie on the device, one after the other without gaps, to payloads and code
 * tables that stay there. All work is put on the stream (a cudaStream_t), and only with payload_bytes not null does the
 * call wait for it, to say how many bytes the payloads take. Frames that encode would leave to the CPU engine
 * (unexpected outside bits) are coded without what the GPU does not do. Returns a cudaError_t. One caller at a time. */
int tsr_cuda_encode_resident(struct tsr_engine *engine, const struct tsr_image *image, const struct tsr_coding *coding,
                             const uint8_t *d_rasters, uint32_t frames, uint64_t *payload_bytes, void *stream);

#ifdef __cplusplus
}
#endif

#endif
