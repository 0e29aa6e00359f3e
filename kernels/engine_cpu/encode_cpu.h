/* A call that encodes frames on the CPU, one at a time or several at once. */
#ifndef TSR_KERNELS_ENGINE_CPU_ENCODE_CPU_H
#define TSR_KERNELS_ENGINE_CPU_ENCODE_CPU_H

#include "engine_cpu.h"
#include "scratches_cpu.h"

struct tsr_encode_call {
    struct tsr_pool *pool;
    const struct tsr_image *image;
    const struct tsr_coding *coding;
    uint8_t *workspace; /* by frame, space bytes each; then what all frames share */
    size_t space;
    struct tsr_scratches drawn; /* of drawn tiles; none if no frame is tried as a drawn one */
};

/* Begins a call. workspace: tsr_cpu_encode_space of so many frames, or of more. */
struct tsr_encode_call tsr_cpu_encode_call(struct tsr_pool *pool, const struct tsr_image *image,
                                           const struct tsr_coding *coding, uint32_t frames, void *workspace);

/* Encodes one frame of the call. */
void tsr_cpu_encode_frame(const struct tsr_encode_call *call, struct tsr_encode_job *job, uint32_t frame);

#endif
