/* Calls of the CUDA runtime that fail on demand, and counts of what was allocated and not freed. They use the linker's
 * --wrap, in programs whose targets ask for it (tsr_wrap_cuda in tests/equality/CMakeLists.txt, which also lists the
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
    CUDA_CALL_ASK_EVENT, /* the time between events: its failure does no harm */
    CUDA_CALLS
};

extern const char *const cuda_call_names[CUDA_CALLS];

/* Plans a failure: call number fails (1: the next one; 0: none) of this kind (CUDA_CALLS: of any) fails with an error
 * that it may have. If lasts, all calls after it fail, too, as after a kernel's bad access. Replaces the plan before.
 */
void plan_cuda_failure(enum cuda_call kind, long fails, bool lasts);

struct cuda_failure {
    long calls;          /* of the plan's kind, since it was made */
    bool failed;         /* whether a call failed */
    enum cuda_call kind; /* of the first that failed */
    const char *error;   /* its error, as text */
    bool went_on;        /* a kernel was launched after a copy or a fill that failed */
};
struct cuda_failure cuda_failure(void);

/* From the next plan on, sites[i] gets a number that stands for the return addresses of call i + 1 of the planned kind.
 * NULL ends this. */
void record_cuda_calls(uint64_t *sites, size_t room);

/* The numbers of blocks of device and of pinned memory, of streams and of events that nobody has tried to free. */
struct cuda_belongings {
    long blocks, host_blocks, streams, events;
};
struct cuda_belongings cuda_belongings(void);

/* Really frees all that somebody tried to free when that was made to fail. */
void drop_cuda_belongings(void);

#endif
