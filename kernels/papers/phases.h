/* How a kernel family shows its rows to the benchmark and the tests. Each row is a coder that does the family's job. It
 * has phases, which are timed separately, and one or more launch policies. Policies never change bytes. */
#ifndef TSR_KERNELS_PAPERS_PHASES_H
#define TSR_KERNELS_PAPERS_PHASES_H

#include <stddef.h>
#include <stdint.h>

enum { TSR_PHASES_LIMIT = 8 };

/* Puts the work of a phase on the job's stream. Returns 0, or the cudaError_t that stopped it; a CPU row returns 0.
 * job: the family's job. policy: 0 .. the row's policies-1. */
struct tsr_phase {
    const char *name; /* "fill", "scan", "encode", "pack", ...; NULL ends the list */
    int (*run)(const void *job, int policy);
};

struct tsr_kernel_row {
    const char *name;                                       /* "CUVLE", "after GVLE", "Tessera" */
    const char *source;                                     /* where the kernel comes from, in a few words */
    int on_device;                                          /* 0: in, out and work space are host memory */
    int policies;                                           /* at least 1 */
    int best_policy;                                        /* the fastest when measured */
    const char *(*policy_name)(int policy);                 /* "256 threads x 16 symbols", ... */
    size_t (*workspace_bytes)(const void *job, int policy); /* job: its workspace is not read */
    struct tsr_phase phase[TSR_PHASES_LIMIT];
};

#endif
