/* A pool of threads that run numbered pieces of work. */
#ifndef TSR_KERNELS_POOL_THREAD_POOL_H
#define TSR_KERNELS_POOL_THREAD_POOL_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include "app/tessera.h" /* tsr_available_threads */

struct tsr_pool;

typedef void tsr_work(void *context, unsigned index);

/* Makes a pool in which at most threads (1 or more) threads work at once, the caller's own included. Threads start when
 * the first run needs them. There may be fewer if the system starts no more. Returns NULL if there is no memory. */
struct tsr_pool *tsr_pool_create(int threads);

/* The same with up to resting more threads, which start when they are needed. At most threads of all of them work at
 * once; the others rest. While the resting threads hold more than resting_bytes together, no thread begins a new piece.
 * All threads together then hold at most resting_bytes and what the working threads hold. */
struct tsr_pool *tsr_pool_create_resting(int threads, int resting, size_t resting_bytes);
/* Starts the resting threads now. Any thread may call it while work waits for something else. Returns false if the pool
 * has none. */
bool tsr_pool_start_resting(struct tsr_pool *pool);
/* Between is_aside = true and false an eighth of the seats stay empty, whose processors others need. The first call
 * comes before the first run. */
void tsr_pool_set_aside(struct tsr_pool *pool, bool is_aside);
void tsr_pool_destroy(struct tsr_pool *pool);
int tsr_pool_threads(const struct tsr_pool *pool);

/* Calls work(context, i) once for each i in 0 .. count-1, in any order and at once. Returns when all calls have
 * returned. work may itself call tsr_pool_run. A caller does all the pieces that it can before it waits. */
void tsr_pool_run(struct tsr_pool *pool, tsr_work *work, void *context, unsigned count);

/* The same for work whose pieces reserve memory. */
void tsr_pool_run_tasks(struct tsr_pool *pool, tsr_work *work, void *context, unsigned count);

/* Calls work(context) where enough of a stack is left for any call of the library (large_stack.h): here, or on another
 * thread, which the calling one waits for. Returns false, and calls nothing, if that thread cannot be started. */
bool tsr_pool_call(struct tsr_pool *pool, void (*work)(void *context), void *context);

/* The memory that all threads may reserve together, in three lots: the memory of files that are worked on; of headers,
 * until the need of their files is known; of results that wait for their turn. A lot has no limit until
 * tsr_pool_set_memory sets one, which must be before the first reservation. The unit is bytes. */
enum tsr_memory_lot { TSR_MEMORY_OF_FILES, TSR_MEMORY_OF_HEADERS, TSR_MEMORY_OF_RESULTS, TSR_MEMORY_LOTS };
void tsr_pool_set_memory(struct tsr_pool *pool, enum tsr_memory_lot lot, size_t bytes);
size_t tsr_pool_memory(const struct tsr_pool *pool, enum tsr_memory_lot lot);

/* Reserves bytes of a lot. If they are not free, the thread waits after those that wait already, and meanwhile works on
 * pieces of other threads' inner runs. Returns false, at once, if bytes is above the lot's limit.
 *
 * Three rules keep threads from waiting for each other for ever. A thread that holds memory of files reserves no more
 * of any lot before it is released. A thread that holds memory of headers reserves only memory of files. Memory of a
 * result is released once all results before it are. */
bool tsr_pool_reserve(struct tsr_pool *pool, enum tsr_memory_lot lot, size_t bytes);

/* Reserves bytes of a lot if they are free and nobody waits for any; else returns false, at once. A thread may call it
 * whatever it holds. */
bool tsr_pool_try_reserve(struct tsr_pool *pool, enum tsr_memory_lot lot, size_t bytes);
void tsr_pool_release(struct tsr_pool *pool, enum tsr_memory_lot lot, size_t bytes);

/* The calling thread is about to wait for a GPU, a disk or another thread, and holds bytes of memory. If it works for
 * the pool, another thread may work in its place until tsr_pool_resume. A thread that waits for other work of the same
 * pool must rest. Between rest and resume a thread may run work, but must not rest again. */
void tsr_pool_rest(struct tsr_pool *pool, size_t bytes);
void tsr_pool_resume(struct tsr_pool *pool);

/* Between hurries = true and false the calling thread does short pieces of what many other threads wait for, and waits
 * in between. Meanwhile it goes before the threads with seats on whose processors it runs. */
void tsr_pool_hurry(const struct tsr_pool *pool, bool hurries);

/* Rest whose end another thread knows. tsr_pool_sleep rests, unless the calling thread rests already, waits until
 * tsr_pool_wake is called for it, and resumes. Each call of tsr_pool_wake ends one sleep, even if it comes before that.
 * A sleeping thread wakes with its seat, so it sleeps once, not twice. tsr_pool_sleeper returns the calling thread's
 * sleeper, which lives as long as the thread and is given to the threads that shall wake it. A thread that does not
 * work for the pool has one, too. */
struct tsr_sleeper;
struct tsr_sleeper *tsr_pool_sleeper(void);
void tsr_pool_sleep(struct tsr_pool *pool, size_t bytes);
void tsr_pool_wake(struct tsr_pool *pool, struct tsr_sleeper *sleeper);

/* Makes a mutex that is held for a few instructions at a time: a thread that wants it tries for a while before it
 * sleeps. Returns 0, or the error of pthread_mutex_init. */
int tsr_make_lock(pthread_mutex_t *lock);

#endif
