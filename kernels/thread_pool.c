/* A pool of threads; see the header.
 *
 * Runs in progress form a list, newest first: helpers take pieces of the newest, so that an inner run finishes before
 * the outer one goes on; but see open_run. A run's own caller takes pieces of it too, and waits only for those that
 * others hold.
 *
 * Whoever works has one of the pool's seats. Who waits, for pieces that others hold or because it rests, gives its seat
 * up: all seats are then those of threads that get on, so nobody waits for a seat for ever. Threads that want theirs
 * back go before new pieces, so that what has been begun ends first. */
#define _GNU_SOURCE /* sched_getaffinity */
#include "thread_pool.h"

#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct run {
    tsr_work *work;
    void *context;
    unsigned count, next, done;
    struct run *older;
};

struct tsr_pool {
    pthread_mutex_t lock;
    pthread_cond_t arrived;  /* there is a piece and a seat for it, or the pool ends */
    pthread_cond_t finished; /* a run's last piece has returned */
    pthread_cond_t freed;    /* a seat, for a thread that wants one */
    struct run *newest;
    bool ends, rests;
    int seats, taken;
    int wanting; /* threads that wait for a seat */
    int idle;    /* helpers that wait for a piece */
    size_t resting_bytes, resting_limit;
    int helpers, helpers_limit;
    pthread_t *helper;
};

static _Thread_local struct tsr_pool *seated_in, *resting_in;
static _Thread_local size_t held_bytes; /* while it rests */

/* All functions down to tsr_pool_create are called with the lock. */

/* Where threads rest there is always work for others: they take pieces of the oldest run, that is another file, so that
 * nobody waits for pieces of his own that others hold. */
static struct run *open_run(struct tsr_pool *pool)
{
    struct run *open = NULL;
    for (struct run *run = pool->newest; run; run = run->older) {
        if (run->next == run->count) continue;
        open = run;
        if (!pool->rests) break;
    }
    return open;
}

static bool may_begin(const struct tsr_pool *pool)
{
    return pool->taken + pool->wanting < pool->seats && pool->resting_bytes <= pool->resting_limit;
}

static void *help(void *argument);

/* Sees to it that a free seat is used: by a thread that wants it, or else by a helper, which is started if none is
 * idle. */
static void offer_seat(struct tsr_pool *pool)
{
    if (pool->wanting > 0) {
        pthread_cond_signal(&pool->freed);
    } else if (may_begin(pool) && open_run(pool)) {
        if (pool->idle > 0)
            pthread_cond_signal(&pool->arrived);
        else if (pool->helpers < pool->helpers_limit && !pool->ends &&
                 pthread_create(&pool->helper[pool->helpers], NULL, help, pool) == 0)
            pool->helpers++;
    }
}

static void take_seat(struct tsr_pool *pool)
{
    pool->wanting++;
    while (pool->taken == pool->seats) pthread_cond_wait(&pool->freed, &pool->lock);
    pool->wanting--;
    pool->taken++;
    seated_in = pool;
}

static void give_seat(struct tsr_pool *pool)
{
    seated_in = NULL;
    pool->taken--;
    offer_seat(pool);
}

/* Takes a piece of run, works on it and comes back. */
static void work_on(struct tsr_pool *pool, struct run *run)
{
    const unsigned index = run->next++;
    pthread_mutex_unlock(&pool->lock);
    run->work(run->context, index);
    pthread_mutex_lock(&pool->lock);
    if (++run->done == run->count) pthread_cond_broadcast(&pool->finished);
}

static void *help(void *argument)
{
    struct tsr_pool *pool = argument;
    pthread_mutex_lock(&pool->lock);
    while (!pool->ends) {
        struct run *run = may_begin(pool) ? open_run(pool) : NULL;
        if (run) {
            pool->taken++;
            seated_in = pool;
            offer_seat(pool); /* another one: two seats that came free may have woken but this thread */
            work_on(pool, run);
            give_seat(pool);
        } else {
            pool->idle++;
            pthread_cond_wait(&pool->arrived, &pool->lock);
            pool->idle--;
        }
    }
    pthread_mutex_unlock(&pool->lock);
    return NULL;
}

struct tsr_pool *tsr_pool_create(int threads)
{
    return tsr_pool_create_resting(threads, 0, 0);
}

struct tsr_pool *tsr_pool_create_resting(int threads, int resting, size_t resting_bytes)
{
    const int wanted = threads > 1 ? threads - 1 : 0;
    struct tsr_pool *pool = calloc(1, sizeof *pool);
    if (pool) pool->helper = malloc(((size_t)wanted + (size_t)resting + 1) * sizeof *pool->helper);
    if (!pool || !pool->helper) {
        free(pool);
        return NULL;
    }
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->arrived, NULL);
    pthread_cond_init(&pool->finished, NULL);
    pthread_cond_init(&pool->freed, NULL);
    pool->rests = resting > 0;
    pool->resting_limit = resting_bytes;
    pthread_mutex_lock(&pool->lock);
    while (pool->helpers < wanted && pthread_create(&pool->helper[pool->helpers], NULL, help, pool) == 0)
        pool->helpers++;
    pool->seats = pool->helpers + 1;
    pool->helpers_limit = pool->helpers + resting;
    pthread_mutex_unlock(&pool->lock);
    return pool;
}

void tsr_pool_destroy(struct tsr_pool *pool)
{
    if (!pool) return;
    pthread_mutex_lock(&pool->lock);
    pool->ends = true;
    pthread_cond_broadcast(&pool->arrived);
    pthread_mutex_unlock(&pool->lock);
    for (int i = 0; i < pool->helpers; i++) pthread_join(pool->helper[i], NULL);
    pthread_cond_destroy(&pool->freed);
    pthread_cond_destroy(&pool->finished);
    pthread_cond_destroy(&pool->arrived);
    pthread_mutex_destroy(&pool->lock);
    free(pool->helper);
    free(pool);
}

int tsr_pool_threads(const struct tsr_pool *pool)
{
    return pool->seats;
}

void tsr_pool_run(struct tsr_pool *pool, tsr_work *work, void *context, unsigned count)
{
    if (pool->helpers_limit == 0 || count <= 1) {
        for (unsigned i = 0; i < count; i++) work(context, i);
        return;
    }
    struct run run = {work, context, count, 0, 0, NULL};
    struct tsr_pool *const before = seated_in;
    pthread_mutex_lock(&pool->lock);
    if (before != pool) take_seat(pool);
    run.older = pool->newest;
    pool->newest = &run;
    if (may_begin(pool))
        for (int i = 1; i < pool->seats && i <= pool->idle && (unsigned)i < count; i++)
            pthread_cond_signal(&pool->arrived);
    while (run.next < run.count) work_on(pool, &run);
    if (run.done < run.count) {
        give_seat(pool);
        while (run.done < run.count) pthread_cond_wait(&pool->finished, &pool->lock);
        if (before == pool) take_seat(pool);
    } else if (before != pool) {
        give_seat(pool);
    }
    seated_in = before;
    struct run **link = &pool->newest;
    while (*link != &run) link = &(*link)->older;
    *link = run.older;
    pthread_mutex_unlock(&pool->lock);
}

void tsr_pool_rest(struct tsr_pool *pool, size_t bytes)
{
    if (seated_in != pool) return;
    pthread_mutex_lock(&pool->lock);
    pool->resting_bytes += bytes;
    give_seat(pool);
    pthread_mutex_unlock(&pool->lock);
    resting_in = pool;
    held_bytes = bytes;
}

void tsr_pool_resume(struct tsr_pool *pool)
{
    if (resting_in != pool) return;
    pthread_mutex_lock(&pool->lock);
    take_seat(pool);
    pool->resting_bytes -= held_bytes;
    offer_seat(pool); /* what had been too many bytes may be so no longer */
    pthread_mutex_unlock(&pool->lock);
    resting_in = NULL;
}

/* CPUs' worth of time that the cgroup (v2) allows, rounded up; 0 if it sets no limit. */
static int cgroup_threads(void)
{
    FILE *file = fopen("/sys/fs/cgroup/cpu.max", "r");
    if (!file) return 0;
    long quota = 0, period = 0;
    const int fields = fscanf(file, "%ld %ld", &quota, &period); /* "max 100000" has no number first */
    fclose(file);
    return fields == 2 && quota > 0 && period > 0 ? (int)((quota + period - 1) / period) : 0;
}

int tsr_available_threads(void)
{
    cpu_set_t set;
    int threads = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : (int)sysconf(_SC_NPROCESSORS_ONLN);
    const int quota = cgroup_threads();
    if (quota > 0 && quota < threads) threads = quota;
    return threads > 0 ? threads : 1;
}
