/* Basics of every .cu file: launches, shared memory of run-time size, loads and stores by which blocks exchange values,
 * and scans inside a warp and a block. */
#ifndef TSR_KERNELS_MACHINE_DEVICE_CUH
#define TSR_KERNELS_MACHINE_DEVICE_CUH

#include <cuda_runtime.h>
#include <pthread.h>

#include "transform/hd.h"

/* Returns from a function that returns a cudaError_t, or an int of its values. */
#define TSR_CUDA_TRY(call)                                \
    do {                                                  \
        const cudaError_t tsr_error_ = (call);            \
        if (tsr_error_ != cudaSuccess) return tsr_error_; \
    } while (0)

/* Every launch goes through here, on the caller's stream; an empty grid is not launched. The one place with <<<>>>. */
template <typename... Parameters, typename... Arguments>
static cudaError_t tsr_launch(void (*kernel)(Parameters...), unsigned grid, unsigned block, size_t shared_bytes,
                              cudaStream_t stream, Arguments... arguments)
{
    if (grid == 0) return cudaSuccess;
#if defined(TSR_CUDA_EMULATED)
    tsr_emulated_launch([=] { kernel(Parameters(arguments)...); }, dim3(grid), dim3(block), shared_bytes, stream);
#else
    kernel<<<grid, block, shared_bytes, stream>>>(Parameters(arguments)...);
#endif
    return cudaGetLastError();
}

/* Lets a kernel use this number of bytes of dynamic shared memory on this device. Threads launch a kernel with
 * different amounts at once: what one of them may use is never taken back. */
template <typename Kernel> static cudaError_t tsr_allow_shared(Kernel kernel, size_t bytes)
{
    enum { MOST = 256 }; /* kernels of a file times devices; others get what they ask for */
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static struct {
        Kernel kernel;
        int device;
        size_t bytes;
    } allowed[MOST];
    int device = 0, i = 0;
    TSR_CUDA_TRY(cudaGetDevice(&device));
    pthread_mutex_lock(&lock);
    while (i < MOST && allowed[i].kernel && (allowed[i].kernel != kernel || allowed[i].device != device)) i++;
    if (i < MOST && allowed[i].bytes > bytes) bytes = allowed[i].bytes;
    const cudaError_t error = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes);
    if (i < MOST && error == cudaSuccess) {
        allowed[i].kernel = kernel;
        allowed[i].device = device;
        allowed[i].bytes = bytes;
    }
    pthread_mutex_unlock(&lock);
    return error;
}

/* Multiprocessors of the thread's device. */
static inline cudaError_t tsr_device_processors(unsigned *processors)
{
    int device = 0, count = 0;
    TSR_CUDA_TRY(cudaGetDevice(&device));
    TSR_CUDA_TRY(cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device));
    *processors = (unsigned)count;
    return cudaSuccess;
}

/* Blocks that the device holds at once of this kernel; lets it use shared_bytes of dynamic shared memory. */
template <typename Kernel>
static cudaError_t tsr_resident_blocks(Kernel kernel, unsigned threads, size_t shared_bytes, unsigned *blocks)
{
    int each = 0;
    unsigned processors;
    TSR_CUDA_TRY(tsr_device_processors(&processors));
    TSR_CUDA_TRY(tsr_allow_shared(kernel, shared_bytes));
    TSR_CUDA_TRY(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, kernel, (int)threads, shared_bytes));
    *blocks = (unsigned)each * processors;
    return *blocks > 0 ? cudaSuccess : cudaErrorInvalidValue;
}

/* Shared memory whose size the launch says, 16-byte aligned. */
#if defined(TSR_CUDA_EMULATED)
#define TSR_DYNAMIC_SHARED(name) unsigned char *name = static_cast<unsigned char *>(tsr_emulated_shared())
#else
#define TSR_DYNAMIC_SHARED(name) extern __shared__ __align__(16) unsigned char name[]
#endif

/* Asks for memory before it is read, if the GPU can do that. Address and bytes are multiples of 16. */
static __device__ __forceinline__ void tsr_prefetch(const void *at, uint32_t bytes)
{
#if !defined(TSR_CUDA_EMULATED) && __CUDA_ARCH__ >= 900 && __CUDACC_VER_MAJOR__ >= 12
    asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" : : "l"(at), "r"(bytes) : "memory");
#else
    (void)at;
    (void)bytes;
#endif
}

/* Words that blocks of one launch pass to each other. A bit of each word says whether it has been written, and a word
 * says nothing about other memory, so relaxed order is enough. Loops that wait call tsr_wait_a_little() each round. */
static __device__ __forceinline__ uint64_t tsr_load_relaxed(const uint64_t *at)
{
#if defined(TSR_CUDA_EMULATED)
    return __atomic_load_n(at, __ATOMIC_RELAXED);
#else
    uint64_t value;
    asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(value) : "l"(at) : "memory");
    return value;
#endif
}

/* Two neighbouring words, 16-byte aligned, each of them whole. */
static __device__ __forceinline__ void tsr_load_relaxed_pair(const uint64_t *at, uint64_t *first, uint64_t *second)
{
#if defined(TSR_CUDA_EMULATED)
    *first = tsr_load_relaxed(at);
    *second = tsr_load_relaxed(at + 1);
#else
    asm volatile("ld.relaxed.gpu.global.v2.u64 {%0, %1}, [%2];" : "=l"(*first), "=l"(*second) : "l"(at) : "memory");
#endif
}

static __device__ __forceinline__ void tsr_store_relaxed(uint64_t *at, uint64_t value)
{
#if defined(TSR_CUDA_EMULATED)
    __atomic_store_n(at, value, __ATOMIC_RELAXED);
#else
    asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" : : "l"(at), "l"(value) : "memory");
#endif
}

static __device__ __forceinline__ void tsr_wait_a_little()
{
#if defined(TSR_CUDA_EMULATED)
    tsr_emulated_yield();
#endif
}

/* Words of an MSB-first bit string are big-endian in memory. */
static __device__ __forceinline__ uint32_t tsr_big_endian(uint32_t word)
{
    return __byte_perm(word, 0, 0x0123);
}

/* Position of the highest bit that is set, all ones if the value is 0; one instruction, where 31 - __clz() is three. */
static __device__ __forceinline__ uint32_t tsr_highest_bit(uint32_t bits)
{
#if defined(TSR_CUDA_EMULATED)
    return 31u - (uint32_t)__clz((int)bits);
#else
    uint32_t at;
    asm("bfind.u32 %0, %1;" : "=r"(at) : "r"(bits));
    return at;
#endif
}

enum { TSR_WARP = 32 };
#define TSR_FULL_WARP 0xffffffffu

/* Inclusive sum over the lanes of a warp. */
template <typename T> static __device__ __forceinline__ T tsr_warp_scan(T value, unsigned lane)
{
#pragma unroll
    for (unsigned delta = 1; delta < TSR_WARP; delta *= 2) {
        const T other = __shfl_up_sync(TSR_FULL_WARP, value, delta);
        if (lane >= delta) value += other;
    }
    return value;
}

/* Sum over the lanes of a warp, in all of them; 32 bits have an instruction for it. */
template <typename T> static __device__ __forceinline__ T tsr_warp_sum(T value)
{
#if defined(__CUDA_ARCH__)
    constexpr bool has_instruction = sizeof(T) == sizeof(uint32_t);
#else
    constexpr bool has_instruction = false;
#endif
    if constexpr (has_instruction) {
        value = __reduce_add_sync(TSR_FULL_WARP, value);
    } else {
#pragma unroll
        for (int lanes = TSR_WARP / 2; lanes > 0; lanes /= 2) value += __shfl_xor_sync(TSR_FULL_WARP, value, lanes);
    }
    return value;
}

/* The greatest value of the lanes of a warp, in all of them. */
static __device__ __forceinline__ uint32_t tsr_warp_max(uint32_t value)
{
#if defined(__CUDA_ARCH__)
    return __reduce_max_sync(TSR_FULL_WARP, value);
#else
#pragma unroll
    for (int lanes = TSR_WARP / 2; lanes > 0; lanes /= 2) {
        const uint32_t other = __shfl_xor_sync(TSR_FULL_WARP, value, lanes);
        value = value < other ? other : value;
    }
    return value;
#endif
}

/* The least value of the lanes of a warp, in all of them. */
static __device__ __forceinline__ uint32_t tsr_warp_min(uint32_t value)
{
    return ~tsr_warp_max(~value);
}

static __device__ __forceinline__ int32_t tsr_warp_min(int32_t value)
{
    return (int32_t)(tsr_warp_min((uint32_t)value ^ 0x80000000u) ^ 0x80000000u);
}

static __device__ __forceinline__ int64_t tsr_warp_min(int64_t value)
{
    const int32_t high = tsr_warp_min((int32_t)(value >> 32));
    const uint32_t low = tsr_warp_min((int32_t)(value >> 32) == high ? (uint32_t)value : UINT32_MAX);
    return (int64_t)((uint64_t)(uint32_t)high << 32 | low);
}

/* Exclusive sum over THREADS threads (a multiple of 32) of a one-dimensional block; *total receives the sum of all.
 * sums: shared, THREADS / 32 values. One barrier inside; the caller puts another before it uses sums again. */
template <unsigned THREADS, typename T> static __device__ __forceinline__ T tsr_block_scan(T value, T *sums, T *total)
{
    const unsigned lane = threadIdx.x % TSR_WARP, warp = threadIdx.x / TSR_WARP, warps = THREADS / TSR_WARP;
    const T inclusive = tsr_warp_scan(value, lane);
    if (lane == TSR_WARP - 1) sums[warp] = inclusive;
    __syncthreads();
    const T scanned = tsr_warp_scan(lane < warps ? sums[lane] : T(0), lane);
    *total = __shfl_sync(TSR_FULL_WARP, scanned, warps - 1);
    const T before = __shfl_sync(TSR_FULL_WARP, scanned, warp == 0 ? 0 : warp - 1);
    return inclusive - value + (warp == 0 ? T(0) : before);
}

#endif
