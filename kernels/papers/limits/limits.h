/* What the machine can do at most, measured in the run of the benchmark that prints the coders: copy, read only, fill,
 * and the look-up ceiling of a byte coder: read N bytes, look each up in shared memory, write N * k / 8 bytes, pack
 * nothing. And what the benchmark compares outputs with where they lie. */
#ifndef TSR_KERNELS_PAPERS_LIMITS_LIMITS_H
#define TSR_KERNELS_PAPERS_LIMITS_LIMITS_H

#include "kernels/papers/phases.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Bytes that a warp takes at once. */
enum { TSR_LIMITS_CHUNK = 2048 };

struct tsr_limits_job {
    const void *in;  /* bytes of them, 16-byte aligned; fill does not read it */
    size_t bytes;    /* the whole chunks of them are done, what is left over is not */
    void *out;       /* 16-byte aligned; bytes of them; read needs 16 */
    void *workspace; /* not used */
    void *stream;    /* a cudaStream_t */
};

/* Bits that look-up writes for a byte in a policy: 1, 2, 4, 6, 8; each of them in several launch shapes. */
int tsr_limit_look_up_bits(int policy);

/* What look-up writes, on one CPU thread. */
void tsr_limit_look_up_cpu(const void *in, size_t bytes, int bits, void *out);

/* *d_result becomes 0 if the first bytes of a and b on the device, both 16-byte aligned, are the same, else 1. All work
 * is put on the stream; returns a cudaError_t. */
int tsr_device_differs(const void *a, const void *b, size_t bytes, uint32_t *d_result, void *stream);

extern const struct tsr_kernel_row tsr_limit_copy, tsr_limit_read, tsr_limit_fill, tsr_limit_look_up;

#ifdef __cplusplus
}
#endif

#endif
