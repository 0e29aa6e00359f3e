/* A pool of threads that run numbered pieces of work. */
#ifndef TSR_KERNELS_THREAD_POOL_H
#define TSR_KERNELS_THREAD_POOL_H

#include <stddef.h>

struct tsr_pool;

typedef void tsr_work(void *context, unsigned index);

/* A pool in which threads (1 or more) work at once, the caller's own included. NULL if there is no memory; fewer
 * threads than asked for are no error. */
struct tsr_pool *tsr_pool_create(int threads);

/* The same with up to resting threads more, which are started when they are needed: of all no more than threads work at
 * once, the others rest. While those hold over resting_bytes together, none begins a new piece: what all of them hold
 * is that, and what threads more hold. */
struct tsr_pool *tsr_pool_create_resting(int threads, int resting, size_t resting_bytes);
void tsr_pool_destroy(struct tsr_pool *pool);
int tsr_pool_threads(const struct tsr_pool *pool);

/* Calls work(context, i) once for each i in 0 .. count-1, in any order and at once, and returns when all have
 * returned. Work may itself run work: whoever waits has first done what it could of its own. */
void tsr_pool_run(struct tsr_pool *pool, tsr_work *work, void *context, unsigned count);

/* The calling thread is about to wait, for a GPU, a disk or another thread, holding so many bytes: if it works for the
 * pool, another may work in its place until it resumes. Whoever waits for other work of the same pool must rest. In
 * between it may run work, but not rest. */
void tsr_pool_rest(struct tsr_pool *pool, size_t bytes);
void tsr_pool_resume(struct tsr_pool *pool);

/* Threads that this process may keep busy: its affinity mask and its cgroup's CPU quota, at least 1. */
int tsr_available_threads(void);

#endif
