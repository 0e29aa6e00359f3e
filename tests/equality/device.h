/* What tests of kernels share: skipping if there is no GPU, buffers with guard bytes, running a row. */
#ifndef TSR_TESTS_GPU_DEVICE_H
#define TSR_TESTS_GPU_DEVICE_H

#include "kernels/papers/phases.h"
#include "tests/unit/support.h"

#include <cuda_runtime_api.h>
#include <stdio.h>

/* On the emulated GPU, AddressSanitizer also reports reads of guard bytes. */
#if defined(TSR_CUDA_EMULATED) && defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(memory, bytes) ((void)(memory))
#define ASAN_UNPOISON_MEMORY_REGION(memory, bytes) ((void)(memory))
#endif

enum { SKIPPED = 77, DEVICE_GUARD = 256 };

/* Returns whether there is a device to test on. If not, prints that. */
static inline bool has_device(void)
{
    int count = 0;
    if (cudaGetDeviceCount(&count) == cudaSuccess && count > 0) return true;
    printf("skipped: no CUDA device\n");
    return false;
}

/* Whether to run only few and small cases: on the emulated GPU, and with TSR_TEST_SMALL=N in the environment. The
 * latter is for the sanitizer, which makes kernels that spin very slow; then skip_case leaves out cases, too. */
static inline bool small_only(void)
{
#if defined(TSR_CUDA_EMULATED)
    return true;
#else
    return getenv("TSR_TEST_SMALL") != NULL;
#endif
}

#define must_cuda(call)                                                             \
    do {                                                                            \
        const cudaError_t error_ = (cudaError_t)(call);                             \
        expect(error_ == cudaSuccess, "%s: %s", #call, cudaGetErrorString(error_)); \
    } while (0)

/* A buffer of size bytes, filled with 0xc3, with guard bytes after it. It is device memory, or host memory for a row of
 * the CPU. */
struct device_buffer {
    uint8_t *bytes;
    size_t size;
    bool on_host;
};

static inline struct device_buffer device_buffer(size_t size)
{
    struct device_buffer buffer = {NULL, size, false};
    must_cuda(cudaMalloc((void **)&buffer.bytes, size + DEVICE_GUARD));
    must_cuda(cudaMemset(buffer.bytes, 0xc3, size + DEVICE_GUARD));
    ASAN_POISON_MEMORY_REGION(buffer.bytes + size, DEVICE_GUARD);
    return buffer;
}

/* A buffer that begins with a copy of host bytes. */
static inline struct device_buffer device_copy(const void *host, size_t bytes, size_t size)
{
    struct device_buffer buffer = device_buffer(size);
    if (bytes) must_cuda(cudaMemcpy(buffer.bytes, host, bytes, cudaMemcpyHostToDevice));
    return buffer;
}

/* The same in the memory of the side on which the row works. */
static inline struct device_buffer buffer_for(const struct tsr_kernel_row *row, const void *host, size_t bytes,
                                              size_t size)
{
    if (row->on_device) return device_copy(host, bytes, size);
    struct device_buffer buffer = {(uint8_t *)must(malloc(size + DEVICE_GUARD)), size, true};
    memset(buffer.bytes, 0xc3, size + DEVICE_GUARD);
    if (bytes) memcpy(buffer.bytes, host, bytes);
    return buffer;
}

static inline void from_device(void *host, const struct device_buffer *buffer, size_t bytes)
{
    if (buffer->on_host && bytes)
        memcpy(host, buffer->bytes, bytes);
    else if (bytes)
        must_cuda(cudaMemcpy(host, buffer->bytes, bytes, cudaMemcpyDeviceToHost));
}

/* Frees the buffer. Fails if a byte after it was written. */
static inline void device_free(struct device_buffer *buffer, const char *what)
{
    uint8_t guard[DEVICE_GUARD];
    ASAN_UNPOISON_MEMORY_REGION(buffer->bytes + buffer->size, DEVICE_GUARD);
    if (buffer->on_host)
        memcpy(guard, buffer->bytes + buffer->size, DEVICE_GUARD);
    else
        must_cuda(cudaMemcpy(guard, buffer->bytes + buffer->size, DEVICE_GUARD, cudaMemcpyDeviceToHost));
    for (int i = 0; i < DEVICE_GUARD; i++) expect(guard[i] == 0xc3, "%s: wrote %d bytes behind its buffer", what, i);
    if (buffer->on_host)
        free(buffer->bytes);
    else
        must_cuda(cudaFree(buffer->bytes));
    buffer->bytes = NULL;
}

/* Runs all phases of a row and waits for them. */
static inline void run_phases(const struct tsr_kernel_row *row, const void *job, int policy)
{
    for (int p = 0; p < TSR_PHASES_LIMIT && row->phase[p].name; p++) {
        const int error = row->phase[p].run(job, policy);
        expect(error == 0, "%s, %s, phase %s: %s", row->name, row->policy_name(policy), row->phase[p].name,
               cudaGetErrorString((cudaError_t)error));
    }
    if (row->on_device) must_cuda(cudaDeviceSynchronize());
}

#endif
