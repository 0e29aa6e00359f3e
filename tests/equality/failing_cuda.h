/* Calls of the CUDA runtime that fail on demand, and counts of what was taken and not given back: by --wrap of the
 * linker, in programs whose target says so (tsr_wrap_cuda in tests/equality/CMakeLists.txt, which also lists the
 * calls). */
#ifndef TSR_TESTS_GPU_FAILING_CUDA_H
#define TSR_TESTS_GPU_FAILING_CUDA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum cuda_call {
    CUDA_CALL_ALLOCATE, /* cudaMalloc */
    CUDA_CALL_PIN,      /* cudaHostRegister */
    CUDA_CALL_FREE,
    CUDA_CALL_UNPIN,
    CUDA_CALL_COPY,
    CUDA_CALL_FILL,
    CUDA_CALL_LAUNCH,
    CUDA_CALL_CREATE_STREAM,
    CUDA_CALL_DESTROY_STREAM,
    CUDA_CALL_WAIT, /* cudaStreamSynchronize */
    CUDA_CALL_WAIT_DEVICE,
    CUDA_CALL_COUNT_DEVICES,
    CUDA_CALL_GET_DEVICE,
    CUDA_CALL_SET_DEVICE,
    CUDA_CALL_ASK_DEVICE, /* cudaDeviceGetAttribute */
    CUDA_CALL_ASK_MEMORY,
    CUDA_CALL_SET_KERNEL, /* cudaFuncSetAttribute */
    CUDA_CALL_CREATE_EVENT,
    CUDA_CALL_DESTROY_EVENT,
    CUDA_CALL_NOTE_EVENT,
    CUDA_CALL_WAIT_EVENT,
    CUDA_CALL_ASK_EVENT, /* how long it took: that costs nobody anything */
    CUDA_CALLS
};

extern const char *const cuda_call_names[CUDA_CALLS];

/* From now on the fails-th call (1: the next one; 0: none) of this kind (CUDA_CALLS: of any) fails, with an error that
 * it may have; with lasts so do all calls after it, as after a kernel's bad access. Forgets what was planned before. */
void plan_cuda_failure(enum cuda_call kind, long fails, bool lasts);

struct cuda_failure {
    long calls;          /* since the plan was made, of its kind */
    bool failed;         /* one of them did */
    enum cuda_call kind; /* the first that did */
    const char *error;   /* what it said */
};
struct cuda_failure cuda_failure(void);

/* From the next plan on, sites[i] becomes a number for the way that call i + 1 of the planned kind came: the addresses
 * that it returns to. NULL: no longer. */
void record_cuda_calls(uint64_t *sites, size_t room);

/* Device memory, pinned memory, streams and events that nobody has tried to give back. */
struct cuda_belongings {
    long blocks, host_blocks, streams, events;
};
struct cuda_belongings cuda_belongings(void);

/* Really gives back what somebody has tried to, where that was made to fail. */
void drop_cuda_belongings(void);

#endif
