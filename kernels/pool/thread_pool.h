/* A pool of threads that run numbered pieces of work. */
#ifndef TSR_KERNELS_POOL_THREAD_POOL_H
#define TSR_KERNELS_POOL_THREAD_POOL_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include "app/tessera.h" /* tsr_available_threads */

struct tsr_pool;

typedef void tsr_work(void *context, unsigned index);

/* A pool in which threads (1 or more) work at once, the caller's own included. NULL if there is no memory; fewer
 * threads than asked for are no error. */
struct tsr_pool *tsr_pool_create(int threads);

/* The same with up to resting threads more, which are started when they are needed: of all no more than threads work at
 * once, the others rest. While those hold over resting_bytes together, none begins a new piece: what all of them hold
 * is that, and what threads more hold. */
struct tsr_pool *tsr_pool_create_resting(int threads, int resting, size_t resting_bytes);
/* Starts those now, from any thread, while work waits for something else; false: the pool has none. */
bool tsr_pool_start_resting(struct tsr_pool *pool);
void tsr_pool_destroy(struct tsr_pool *pool);
int tsr_pool_threads(const struct tsr_pool *pool);

/* Calls work(context, i) once for each i in 0 .. count-1, in any order and at once, and returns when all have
 * returned. Work may itself run work: whoever waits has first done what it could of its own. */
void tsr_pool_run(struct tsr_pool *pool, tsr_work *work, void *context, unsigned count);

/* The same of work whose pieces reserve memory. */
void tsr_pool_run_tasks(struct tsr_pool *pool, tsr_work *work, void *context, unsigned count);

/* Memory that all threads may reserve together, in three lots: what files take while they are worked on, what headers
 * take until it is known what their files will, and results that wait for their turn. Unlimited unless set, while none
 * is reserved. */
enum tsr_memory_lot { TSR_MEMORY_OF_FILES, TSR_MEMORY_OF_HEADERS, TSR_MEMORY_OF_RESULTS, TSR_MEMORY_LOTS };
void tsr_pool_set_memory(struct tsr_pool *pool, enum tsr_memory_lot lot, size_t bytes);
size_t tsr_pool_memory(const struct tsr_pool *pool, enum tsr_memory_lot lot);

/* Waits until so many bytes of a lot are free, behind those that wait already, and takes them; meanwhile the thread
 * works on pieces of others' inner runs. So that nobody waits for ever, who holds some of files reserves
 * no more of any lot until it is released, who holds some of headers none but of files, and who holds some of results
 * is let go by others only once those before it are. False: there will never be so many. */
bool tsr_pool_reserve(struct tsr_pool *pool, enum tsr_memory_lot lot, size_t bytes);
void tsr_pool_release(struct tsr_pool *pool, enum tsr_memory_lot lot, size_t bytes);

/* The calling thread is about to wait, for a GPU, a disk or another thread, holding so many bytes: if it works for the
 * pool, another may work in its place until it resumes. Whoever waits for other work of the same pool must rest. In
 * between it may run work, but not rest. */
void tsr_pool_rest(struct tsr_pool *pool, size_t bytes);
void tsr_pool_resume(struct tsr_pool *pool);

/* Between these, the calling thread does what many others wait for, in short pieces between waits of its own: it then
 * goes before threads with seats, on whose processors it runs. */
void tsr_pool_hurry(const struct tsr_pool *pool, bool hurries);

/* The same where another thread knows when the wait is over: tsr_pool_sleep rests, unless the calling thread rests
 * already, waits until somebody has woken it, and resumes; once for each time that it is woken, whichever is first. It
 * wakes with its seat, so it sleeps once, not twice. A thread's sleeper lives as long as it, is told to whoever shall
 * wake it, and also serves threads that do not work for the pool. */
struct tsr_sleeper;
struct tsr_sleeper *tsr_pool_sleeper(void);
void tsr_pool_sleep(struct tsr_pool *pool, size_t bytes);
void tsr_pool_wake(struct tsr_pool *pool, struct tsr_sleeper *sleeper);

/* A mutex that is held for a few instructions at a time: who wants it tries for a while before it sleeps. Returns 0, or
 * what pthread_mutex_init does. */
int tsr_make_lock(pthread_mutex_t *lock);

#endif
