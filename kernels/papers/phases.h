/* How a kernel family shows its rows to the benchmark and the tests: each row is a coder for the family's job, cut into
 * phases that are timed apart, in one or more launch policies. Policies never change bytes. */
#ifndef TSR_KERNELS_PAPERS_PHASES_H
#define TSR_KERNELS_PAPERS_PHASES_H

#include <stddef.h>
#include <stdint.h>

enum { TSR_PHASES_LIMIT = 8 };

/* A phase puts its work on the job's stream and returns 0, or the cudaError_t that stopped it; a CPU row's returns 0.
 * job: the family's job, policy: 0 .. the row's policies-1. */
struct tsr_phase {
    const char *name; /* "fill", "scan", "encode", "pack", ...; NULL ends the list */
    int (*run)(const void *job, int policy);
};

struct tsr_kernel_row {
    const char *name;                                       /* "CUVLE", "after GVLE", "Tessera" */
    const char *source;                                     /* whose kernel it is, in a few words */
    int on_device;                                          /* 0: in, out and work space are host memory */
    int policies;                                           /* at least 1 */
    int best_policy;                                        /* the one that measurement chose */
    const char *(*policy_name)(int policy);                 /* "256 threads x 16 symbols", ... */
    size_t (*workspace_bytes)(const void *job, int policy); /* job without its work space */
    struct tsr_phase phase[TSR_PHASES_LIMIT];
};

#endif
