/* Threads with large stacks, which make calls in place of threads that have little stack left. */
#ifndef TSR_KERNELS_POOL_LARGE_STACK_H
#define TSR_KERNELS_POOL_LARGE_STACK_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

/* Starts a thread whose stack has TSR_STACK_BYTES, whatever the process gives its threads. Returns what pthread_create
 * returns. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TSR_STACK_BYTES ((size_t)8 << 20) /* sanitizers make frames several times as large */
#elif !defined(TSR_STACK_BYTES) /* emulated GPUs' shared memory lies on stacks, too: CMakeLists.txt names more */
#define TSR_STACK_BYTES ((size_t)1 << 20)
#endif
int tsr_start_thread(pthread_t *thread, void *(*work)(void *context), void *context);

/* Whether at least three quarters of TSR_STACK_BYTES are left of the calling thread's stack, as far as can be known. */
bool tsr_has_large_stack(void);

/* Deputies are threads with large stacks. Letting one of them work takes some 10 us more than working oneself, so it is
 * only done where little stack is left. tsr_deputies_call lets one of them call work(context), and waits for it.
 * Deputies start when they are needed, and stay. Any number of threads may call at once. Returns false, and calls
 * nothing, if no thread can be started. */
struct tsr_deputies;
struct tsr_deputies *tsr_deputies_create(void); /* NULL: no memory */
void tsr_deputies_destroy(struct tsr_deputies *deputies);
bool tsr_deputies_call(struct tsr_deputies *deputies, void (*work)(void *context), void *context);

/* Calls work(context) on a thread with a large stack: on the calling one, or on one that is started for this call
 * alone. Returns false, and calls nothing, if no thread can be started. */
bool tsr_call_with_large_stack(void (*work)(void *context), void *context);

/* Calls work(context), which is a caller's function: on a deputy's thread that makes tsr_deputies_call return, the
 * thread that waits for the deputy calls it; any other thread calls it itself. Returns when work has returned. */
void tsr_call_back(void (*work)(void *context), void *context);

#endif
