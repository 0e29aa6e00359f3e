/* A pool of threads that run numbered pieces of work. */
#ifndef TSR_KERNELS_THREAD_POOL_H
#define TSR_KERNELS_THREAD_POOL_H

struct tsr_pool;

typedef void tsr_work(void *context, unsigned index);

/* A pool in which threads (1 or more) work at once, the caller's own included. NULL if there is no memory; fewer
 * threads than asked for are no error. */
struct tsr_pool *tsr_pool_create(int threads);
void tsr_pool_destroy(struct tsr_pool *pool);
int tsr_pool_threads(const struct tsr_pool *pool);

/* Calls work(context, i) once for each i in 0 .. count-1, in any order and at once, and returns when all have
 * returned. Work may itself run work: whoever waits has first done what it could of its own. */
void tsr_pool_run(struct tsr_pool *pool, tsr_work *work, void *context, unsigned count);

/* Threads that this process may keep busy: its affinity mask and its cgroup's CPU quota, at least 1. */
int tsr_available_threads(void);

#endif
