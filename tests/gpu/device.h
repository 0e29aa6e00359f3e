/* What the tests of kernels share: skipping without a GPU, device buffers with guard bytes. */
#ifndef TSR_TESTS_GPU_DEVICE_H
#define TSR_TESTS_GPU_DEVICE_H

#include "tests/unit/support.h"

#include <cuda_runtime_api.h>
#include <stdio.h>

enum { SKIPPED = 77, DEVICE_GUARD = 256 };

/* True if there is a device to test on; says so if not. */
static inline bool has_device(void)
{
    int count = 0;
    if (cudaGetDeviceCount(&count) == cudaSuccess && count > 0) return true;
    printf("skipped: no CUDA device\n");
    return false;
}

/* Few and small cases: emulated, and with TSR_TEST_SMALL=N in the environment, for the sanitizer, under which spinning
 * kernels crawl; then also only every N-th of them (skip_case). */
static inline bool small_only(void)
{
#if defined(TSR_CUDA_EMULATED)
    return true;
#else
    return getenv("TSR_TEST_SMALL") != NULL;
#endif
}

static inline bool skip_case(void)
{
    static int number;
    const char *const step = getenv("TSR_TEST_SMALL");
    return step && atoi(step) > 1 && number++ % atoi(step) != 0;
}

#define must_cuda(call)                                                                       \
    do {                                                                                      \
        const cudaError_t error_ = (cudaError_t)(call);                                       \
        expect(error_ == cudaSuccess, "%s: %s", #call, cudaGetErrorString(error_));           \
    } while (0)

/* Device memory of bytes, filled with 0xc3, and guard bytes behind it. */
struct device_buffer {
    uint8_t *bytes; /* device memory */
    size_t size;
};

static inline struct device_buffer device_buffer(size_t size)
{
    struct device_buffer buffer = {NULL, size};
    must_cuda(cudaMalloc((void **)&buffer.bytes, size + DEVICE_GUARD));
    must_cuda(cudaMemset(buffer.bytes, 0xc3, size + DEVICE_GUARD));
    return buffer;
}

/* With a copy of host bytes at its start. */
static inline struct device_buffer device_copy(const void *host, size_t bytes, size_t size)
{
    struct device_buffer buffer = device_buffer(size);
    if (bytes) must_cuda(cudaMemcpy(buffer.bytes, host, bytes, cudaMemcpyHostToDevice));
    return buffer;
}

static inline void from_device(void *host, const struct device_buffer *buffer, size_t bytes)
{
    if (bytes) must_cuda(cudaMemcpy(host, buffer->bytes, bytes, cudaMemcpyDeviceToHost));
}

/* Fails if a byte behind the buffer was written; frees it. */
static inline void device_free(struct device_buffer *buffer, const char *what)
{
    uint8_t guard[DEVICE_GUARD];
    must_cuda(cudaMemcpy(guard, buffer->bytes + buffer->size, DEVICE_GUARD, cudaMemcpyDeviceToHost));
    for (int i = 0; i < DEVICE_GUARD; i++) expect(guard[i] == 0xc3, "%s: wrote %d bytes behind its buffer", what, i);
    must_cuda(cudaFree(buffer->bytes));
    buffer->bytes = NULL;
}

#endif
