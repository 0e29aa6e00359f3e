/* Calls of the CUDA runtime that fail on demand; see the header. */
#include "failing_cuda.h"

#include <execinfo.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cuda_runtime_api.h>

const char *const cuda_call_names[CUDA_CALLS] = {
    "cudaMalloc",
    "cudaHostRegister",
    "cudaFree",
    "cudaHostUnregister",
    "cudaMemcpyAsync",
    "cudaMemsetAsync",
    "a launch",
    "cudaStreamCreateWithFlags",
    "cudaStreamDestroy",
    "cudaStreamSynchronize",
    "cudaDeviceSynchronize",
    "cudaGetDeviceCount",
    "cudaGetDevice",
    "cudaSetDevice",
    "cudaDeviceGetAttribute",
    "cudaMemGetInfo",
    "cudaFuncSetAttribute",
    "cudaEventCreateWithFlags",
    "cudaEventDestroy",
    "cudaEventRecord",
    "cudaEventSynchronize",
    "cudaEventElapsedTime",
};

/* ---- The plan ------------------------------------------------------------------------------------------------ */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* for all variables below */
static enum cuda_call planned_kind = CUDA_CALLS;
static long planned;
static bool plan_lasts;
static struct cuda_failure state;
static uint64_t *record;
static size_t record_room;

/* The error that cudaGetLastError will give the thread, and the call that had it. */
static _Thread_local cudaError_t pending = cudaSuccess;
static _Thread_local enum cuda_call pending_kind;

void plan_cuda_failure(enum cuda_call kind, long fails, bool lasts)
{
    pthread_mutex_lock(&lock);
    planned_kind = kind;
    planned = fails;
    plan_lasts = lasts;
    memset(&state, 0, sizeof state);
    pthread_mutex_unlock(&lock);
    pending = cudaSuccess;
}

struct cuda_failure cuda_failure(void)
{
    pthread_mutex_lock(&lock);
    const struct cuda_failure now = state;
    pthread_mutex_unlock(&lock);
    return now;
}

void record_cuda_calls(uint64_t *sites, size_t room)
{
    pthread_mutex_lock(&lock);
    record = sites;
    record_room = room;
    pthread_mutex_unlock(&lock);
}

/* The return addresses of this call and of a few of its callers, as one number (FNV-1a). */
static uint64_t way_here(void)
{
    enum { FRAMES = 9 };
    void *frame[FRAMES];
    const int depth = backtrace(frame, FRAMES);
    uint64_t hash = 14695981039346656037u;
    for (int i = 0; i < depth; i++) hash = (hash ^ (uint64_t)(uintptr_t)frame[i]) * 1099511628211u;
    return hash;
}

/* An error that the call may return. */
static cudaError_t error_of(enum cuda_call kind)
{
    switch (kind) {
    case CUDA_CALL_ALLOCATE:
    case CUDA_CALL_PIN:
    case CUDA_CALL_CREATE_STREAM:
        return cudaErrorMemoryAllocation;
    case CUDA_CALL_COUNT_DEVICES:
        return cudaErrorNoDevice;
    case CUDA_CALL_SET_DEVICE:
        return cudaErrorInvalidDevice;
    case CUDA_CALL_SET_KERNEL:
    case CUDA_CALL_ASK_DEVICE:
        return cudaErrorInvalidValue;
    default:
        return cudaErrorLaunchFailure;
    }
}

/* Counts a call. Returns the error that it must have. */
static cudaError_t count_call(enum cuda_call kind)
{
    cudaError_t error = cudaSuccess;
    pthread_mutex_lock(&lock);
    if (kind == CUDA_CALL_LAUNCH && pending != cudaSuccess &&
        (pending_kind == CUDA_CALL_COPY || pending_kind == CUDA_CALL_FILL))
        state.went_on = true;
    if (kind == planned_kind || planned_kind == CUDA_CALLS) {
        if (record && (size_t)state.calls < record_room) record[state.calls] = way_here();
        state.calls++;
        if (state.calls == planned) error = plan_lasts ? cudaErrorLaunchFailure : error_of(kind);
    }
    if (state.failed && plan_lasts) error = cudaErrorLaunchFailure;
    if (error != cudaSuccess && !state.failed) {
        state.failed = true;
        state.kind = kind;
        state.error = cudaGetErrorString(error);
    }
    pthread_mutex_unlock(&lock);
    if (error != cudaSuccess) {
        pending = error;
        pending_kind = kind;
    }
    return error;
}

#define FAILING(kind, name, parameters, arguments)                     \
    cudaError_t __real_##name parameters;                              \
    cudaError_t __wrap_##name parameters;                              \
    cudaError_t __wrap_##name parameters                               \
    {                                                                  \
        const cudaError_t error = count_call(kind);                    \
        return error == cudaSuccess ? __real_##name arguments : error; \
    }

/* ---- Calls that allocate nothing ----------------------------------------------------------------------------- */

FAILING(CUDA_CALL_COPY, cudaMemcpyAsync,
        (void *to, const void *from, size_t bytes, enum cudaMemcpyKind way, cudaStream_t stream),
        (to, from, bytes, way, stream))
FAILING(CUDA_CALL_FILL, cudaMemsetAsync, (void *memory, int value, size_t bytes, cudaStream_t stream),
        (memory, value, bytes, stream))

/* Waits even if it fails: a device that failed runs no more kernels, but this one still does. */
cudaError_t __real_cudaStreamSynchronize(cudaStream_t stream);
cudaError_t __wrap_cudaStreamSynchronize(cudaStream_t stream);
cudaError_t __wrap_cudaStreamSynchronize(cudaStream_t stream)
{
    const cudaError_t done = __real_cudaStreamSynchronize(stream), error = count_call(CUDA_CALL_WAIT);
    return error == cudaSuccess ? done : error;
}

FAILING(CUDA_CALL_WAIT_DEVICE, cudaDeviceSynchronize, (void), ())
FAILING(CUDA_CALL_COUNT_DEVICES, cudaGetDeviceCount, (int *count), (count))
FAILING(CUDA_CALL_GET_DEVICE, cudaGetDevice, (int *device), (device))
FAILING(CUDA_CALL_SET_DEVICE, cudaSetDevice, (int device), (device))
FAILING(CUDA_CALL_ASK_DEVICE, cudaDeviceGetAttribute, (int *value, enum cudaDeviceAttr attribute, int device),
        (value, attribute, device))
FAILING(CUDA_CALL_SET_KERNEL, cudaFuncSetAttribute, (const void *kernel, enum cudaFuncAttribute attribute, int value),
        (kernel, attribute, value))

FAILING(CUDA_CALL_NOTE_EVENT, cudaEventRecord, (cudaEvent_t event, cudaStream_t stream), (event, stream))
FAILING(CUDA_CALL_WAIT_EVENT, cudaEventSynchronize, (cudaEvent_t event), (event))
FAILING(CUDA_CALL_ASK_EVENT, cudaEventElapsedTime, (float *ms, cudaEvent_t from, cudaEvent_t to), (ms, from, to))

/* A launch, under the name that the compiler calls. */
#if defined(TSR_CUDA_EMULATED)
struct extent { /* C++ has a constructor for it */
    unsigned x, y, z;
};
FAILING(CUDA_CALL_LAUNCH, tsr_emulated_launch,
        (const void *kernel, struct extent grid, struct extent block, size_t shared_bytes, cudaStream_t stream),
        (kernel, grid, block, shared_bytes, stream))
#else
FAILING(CUDA_CALL_LAUNCH, cudaLaunchKernel,
        (const void *kernel, dim3 grid, dim3 block, void **arguments, size_t shared_bytes, cudaStream_t stream),
        (kernel, grid, block, arguments, shared_bytes, stream))
#if CUDART_VERSION >= 13000
FAILING(CUDA_CALL_LAUNCH, __cudaLaunchKernel,
        (cudaKernel_t kernel, dim3 grid, dim3 block, void **arguments, size_t shared_bytes, cudaStream_t stream),
        (kernel, grid, block, arguments, shared_bytes, stream))
#endif
#endif

cudaError_t __real_cudaMemGetInfo(size_t *free_bytes, size_t *all_bytes);
cudaError_t __wrap_cudaMemGetInfo(size_t *free_bytes, size_t *all_bytes);
cudaError_t __wrap_cudaMemGetInfo(size_t *free_bytes, size_t *all_bytes)
{
    cudaError_t error = count_call(CUDA_CALL_ASK_MEMORY);
    if (error == cudaSuccess) error = __real_cudaMemGetInfo(free_bytes, all_bytes);
    return error;
}

/* Gives an error once, unless it lasts. */
cudaError_t __real_cudaGetLastError(void);
cudaError_t __wrap_cudaGetLastError(void);
cudaError_t __wrap_cudaGetLastError(void)
{
    cudaError_t error = pending;
    pthread_mutex_lock(&lock);
    if (state.failed && plan_lasts) error = cudaErrorLaunchFailure;
    pthread_mutex_unlock(&lock);
    pending = cudaSuccess;
    return error != cudaSuccess ? error : __real_cudaGetLastError();
}

/* ---- Allocating and freeing ---------------------------------------------------------------------------------- */

/* Things that are held. To free anything else is an error of the caller, unless the first try to free it failed. */
enum { HELD_LIMIT = 4096, BLOCK = 0, HOST_BLOCK, STREAM, EVENT };
struct belonging {
    const void *what; /* NULL: the entry is free */
    int kind;
    bool was_tried; /* the caller tried to free it, and that failed */
};
static struct belonging held[HELD_LIMIT];
static struct cuda_belongings count;

static long *count_of(int kind)
{
    return kind == BLOCK        ? &count.blocks
           : kind == HOST_BLOCK ? &count.host_blocks
           : kind == STREAM     ? &count.streams
                                : &count.events;
}

static struct belonging *find_held(const void *what, int kind)
{
    for (int i = 0; i < HELD_LIMIT; i++)
        if (held[i].what == what && (!what || held[i].kind == kind)) return &held[i];
    fprintf(stderr, what ? "failing_cuda: %p is given back, and was not taken\n" : "failing_cuda: too much is held%p\n",
            what);
    abort();
}

static void take(const void *what, int kind)
{
    pthread_mutex_lock(&lock);
    ++*count_of(kind);
    *find_held(NULL, kind) = (struct belonging){what, kind, false};
    pthread_mutex_unlock(&lock);
}

/* Must run before the thing is freed, because another thread may get it at once. */
static void give(const void *what, int kind, bool fails)
{
    if (!what) return;
    pthread_mutex_lock(&lock);
    struct belonging *b = find_held(what, kind);
    if (!b->was_tried) --*count_of(kind);
    b->was_tried = fails;
    if (!fails) b->what = NULL;
    pthread_mutex_unlock(&lock);
}

struct cuda_belongings cuda_belongings(void)
{
    pthread_mutex_lock(&lock);
    const struct cuda_belongings now = count;
    pthread_mutex_unlock(&lock);
    return now;
}

#define TAKING(call, kind, name, parameters, arguments)            \
    cudaError_t __real_##name parameters;                          \
    cudaError_t __wrap_##name parameters;                          \
    cudaError_t __wrap_##name parameters                           \
    {                                                              \
        cudaError_t error = count_call(call);                      \
        if (error == cudaSuccess) error = __real_##name arguments; \
        if (error == cudaSuccess) take(*what, kind);               \
        return error;                                              \
    }

/* If it fails, the thing stays held until the caller tries again or until drop_cuda_belongings(). */
#define GIVING(call, kind, name, type)                             \
    cudaError_t __real_##name(type what);                          \
    cudaError_t __wrap_##name(type what);                          \
    cudaError_t __wrap_##name(type what)                           \
    {                                                              \
        const cudaError_t error = count_call(call);                \
        give(what, kind, error != cudaSuccess);                    \
        return error == cudaSuccess ? __real_##name(what) : error; \
    }

TAKING(CUDA_CALL_ALLOCATE, BLOCK, cudaMalloc, (void **what, size_t bytes), (what, bytes))
TAKING(CUDA_CALL_CREATE_STREAM, STREAM, cudaStreamCreateWithFlags, (cudaStream_t * what, unsigned flags), (what, flags))
TAKING(CUDA_CALL_CREATE_EVENT, EVENT, cudaEventCreateWithFlags, (cudaEvent_t * what, unsigned flags), (what, flags))
GIVING(CUDA_CALL_DESTROY_EVENT, EVENT, cudaEventDestroy, cudaEvent_t)
GIVING(CUDA_CALL_FREE, BLOCK, cudaFree, void *)
GIVING(CUDA_CALL_DESTROY_STREAM, STREAM, cudaStreamDestroy, cudaStream_t)

/* The caller owns pinned memory and frees it even if unpinning failed. A planned failure only returns an error. */
cudaError_t __real_cudaHostRegister(void *memory, size_t bytes, unsigned flags);
cudaError_t __wrap_cudaHostRegister(void *memory, size_t bytes, unsigned flags);
cudaError_t __wrap_cudaHostRegister(void *memory, size_t bytes, unsigned flags)
{
    cudaError_t error = count_call(CUDA_CALL_PIN);
    if (error == cudaSuccess) error = __real_cudaHostRegister(memory, bytes, flags);
    if (error == cudaSuccess) take(memory, HOST_BLOCK);
    return error;
}

cudaError_t __real_cudaHostUnregister(void *memory);
cudaError_t __wrap_cudaHostUnregister(void *memory);
cudaError_t __wrap_cudaHostUnregister(void *memory)
{
    const cudaError_t planned_error = count_call(CUDA_CALL_UNPIN);
    give(memory, HOST_BLOCK, false);
    const cudaError_t error = __real_cudaHostUnregister(memory);
    return planned_error == cudaSuccess ? error : planned_error;
}

void drop_cuda_belongings(void)
{
    __real_cudaDeviceSynchronize(); /* after a lasting failure the caller could not wait for kernels that use them */
    for (int i = 0; i < HELD_LIMIT; i++) {
        if (!held[i].what || !held[i].was_tried) continue;
        void *const what = (void *)(uintptr_t)held[i].what;
        if (held[i].kind == BLOCK) __real_cudaFree(what);
        if (held[i].kind == EVENT) __real_cudaEventDestroy((cudaEvent_t)what);
        if (held[i].kind == STREAM) __real_cudaStreamDestroy((cudaStream_t)what);
        held[i].what = NULL;
    }
}
