/* What the machine can do at most, measured in the same run as the coders: copy, read only, fill, and look-up. Look-up
 * is the limit of a byte coder: read N bytes, look each up in shared memory, write N * k / 8 bytes, pack nothing. The
 * benchmark's comparison of outputs in device memory stands here, too. */
#ifndef TSR_KERNELS_PAPERS_LIMITS_LIMITS_H
#define TSR_KERNELS_PAPERS_LIMITS_LIMITS_H

#include "kernels/papers/phases.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Bytes that a warp takes at once. */
enum { TSR_LIMITS_CHUNK = 2048 };

struct tsr_limits_job {
    const void *in;  /* bytes of input, 16-byte aligned; fill does not read it */
    size_t bytes;    /* rounded down to whole chunks */
    void *out;       /* bytes of output, 16-byte aligned; read needs only 16 bytes */
    void *workspace; /* not used */
    void *stream;    /* a cudaStream_t */
};

/* The bits that look-up writes for each byte in a policy: 1, 2, 4, 6 or 8. Each has several launch shapes. */
int tsr_limit_look_up_bits(int policy);

/* Writes what look-up writes, on one CPU thread. */
void tsr_limit_look_up_cpu(const void *in, size_t bytes, int bits, void *out);

/* Sets *d_result to 0 if the first bytes bytes of a and b are the same, else to 1. a, b and d_result are in device
 * memory, a and b 16-byte aligned. Puts all work on the stream. Returns a cudaError_t. */
int tsr_device_differs(const void *a, const void *b, size_t bytes, uint32_t *d_result, void *stream);

extern const struct tsr_kernel_row tsr_limit_copy, tsr_limit_read, tsr_limit_fill, tsr_limit_look_up;

#ifdef __cplusplus
}
#endif

#endif
