/* A pool of threads; see the header.
 *
 * Runs in progress form a list, newest first: helpers take pieces of the newest, so that an inner run finishes before
 * the outer one goes on. A run's own caller takes pieces of it too, and waits only for those that others hold. */
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
    pthread_cond_t arrived;  /* a run was added, or the pool ends */
    pthread_cond_t finished; /* a run's last piece has returned */
    struct run *newest;
    bool ends;
    int helpers;
    pthread_t helper[];
};

/* Takes a piece of run, works on it and comes back; the lock is held on entry and on return. */
static void work_on(struct tsr_pool *pool, struct run *run)
{
    const unsigned index = run->next++;
    pthread_mutex_unlock(&pool->lock);
    run->work(run->context, index);
    pthread_mutex_lock(&pool->lock);
    if (++run->done == run->count) pthread_cond_broadcast(&pool->finished);
}

static struct run *open_run(struct tsr_pool *pool)
{
    struct run *run = pool->newest;
    while (run && run->next == run->count) run = run->older;
    return run;
}

static void *help(void *argument)
{
    struct tsr_pool *pool = argument;
    pthread_mutex_lock(&pool->lock);
    while (!pool->ends) {
        struct run *run = open_run(pool);
        if (run)
            work_on(pool, run);
        else
            pthread_cond_wait(&pool->arrived, &pool->lock);
    }
    pthread_mutex_unlock(&pool->lock);
    return NULL;
}

struct tsr_pool *tsr_pool_create(int threads)
{
    const int wanted = threads > 1 ? threads - 1 : 0;
    struct tsr_pool *pool = calloc(1, sizeof *pool + (size_t)wanted * sizeof pool->helper[0]);
    if (!pool) return NULL;
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->arrived, NULL);
    pthread_cond_init(&pool->finished, NULL);
    while (pool->helpers < wanted && pthread_create(&pool->helper[pool->helpers], NULL, help, pool) == 0)
        pool->helpers++;
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
    pthread_cond_destroy(&pool->finished);
    pthread_cond_destroy(&pool->arrived);
    pthread_mutex_destroy(&pool->lock);
    free(pool);
}

int tsr_pool_threads(const struct tsr_pool *pool)
{
    return pool->helpers + 1;
}

void tsr_pool_run(struct tsr_pool *pool, tsr_work *work, void *context, unsigned count)
{
    if (pool->helpers == 0 || count <= 1) {
        for (unsigned i = 0; i < count; i++) work(context, i);
        return;
    }
    struct run run = {work, context, count, 0, 0, NULL};
    pthread_mutex_lock(&pool->lock);
    run.older = pool->newest;
    pool->newest = &run;
    pthread_cond_broadcast(&pool->arrived);
    while (run.next < run.count) work_on(pool, &run);
    while (run.done < run.count) pthread_cond_wait(&pool->finished, &pool->lock);
    struct run **link = &pool->newest;
    while (*link != &run) link = &(*link)->older;
    *link = run.older;
    pthread_mutex_unlock(&pool->lock);
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
