/* A pool of threads; thread_pool.h says what it does, this page how. Seats: seats.c.
 *
 * Which piece is next. The runs in progress form a list, newest first. Helpers take pieces of the oldest run, which
 * begins another file. The pieces of an inner run are left to its caller, which then does not have to wait. Helpers
 * take them once all files have begun. (If helpers took pieces of the newest run, a caller would wait at the end of
 * each inner run for a piece that another thread holds.) */
#define _GNU_SOURCE /* sched_getaffinity, adaptive mutexes */
#include "seats.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernels/gpu_load.h"
#include "large_stack.h"

static _Thread_local struct tsr_pool *resting_in;
static _Thread_local size_t held_bytes; /* while the thread rests */

static bool is_done(void *run)
{
    const struct run *const r = run;
    return atomic_load(&r->done) == r->count;
}

/* Takes a piece of run and works on it. Releases the lock while it works. */
static void work_on(struct tsr_pool *pool, struct run *run)
{
    const unsigned index = run->next++;
    pthread_mutex_unlock(&pool->lock);
    tsr_bind_to_seat(pool, &tsr_this_thread);
    run->work(run->context, index);
    pthread_mutex_lock(&pool->lock);
    if (atomic_fetch_add(&run->done, 1) + 1 == run->count) pthread_cond_broadcast(&pool->finished);
}

void *tsr_help(void *argument)
{
    struct tsr_pool *pool = argument;
    struct tsr_sleeper *const self = tsr_pool_sleeper();
    pthread_mutex_lock(&pool->lock);
    if (pool->processor) {
        sched_setaffinity(0, sizeof pool->processors, &pool->processors); /* not those of the thread that created it */
        /* One that a patient helper has started begins with its policy. */
        self->is_patient =
            tsr_set_policy(SCHED_OTHER, SCHED_BATCH) || (pool->has_patient && sched_getscheduler(0) == SCHED_BATCH);
        pool->has_patient |= self->is_patient;
    }
    self->home = pool->new_seats + pool->started++ % (pool->seats - pool->new_seats);
    if (!pool->ends && tsr_may_begin(pool)) tsr_begin_piece(pool, self);
    while (self->seat >= 0 || !pool->ends) {
        struct run *const run = self->seat >= 0 ? tsr_open_run(pool) : NULL;
        if (run) {
            tsr_seated_in = pool;
            tsr_wake(pool, tsr_offer_seat(pool)); /* if there is another seat */
            work_on(pool, run);
            tsr_seated_in = NULL;
            tsr_unseat(pool, self);
            if (tsr_may_begin(pool)) tsr_begin_piece(pool, self);
            continue;
        }
        if (self->seat >= 0) { /* another thread has taken the last piece */
            tsr_unseat(pool, self);
            continue;
        }
        struct tsr_sleeper *const next = tsr_hand_seat(pool);
        struct group *const group = tsr_group_of(pool, self);
        self->next = group->idle;
        group->idle = self;
        pool->idle++;
        pthread_mutex_unlock(&pool->lock);
        tsr_wake(pool, next);
        if (!pool->tries || !tsr_come_true(tsr_is_woken, self))
            tsr_wait_until_woken(self); /* with a seat, or because the pool ends */
        pthread_mutex_lock(&pool->lock);
    }
    pthread_mutex_unlock(&pool->lock);
    return NULL;
}

struct tsr_pool *tsr_pool_create(int threads)
{
    return tsr_pool_create_resting(threads, 0, 0);
}

int tsr_make_lock(pthread_mutex_t *lock)
{
    pthread_mutexattr_t kind;
    pthread_mutexattr_init(&kind);
#if defined(__GLIBC__)
    pthread_mutexattr_settype(&kind, PTHREAD_MUTEX_ADAPTIVE_NP);
#endif
    const int error = pthread_mutex_init(lock, &kind);
    pthread_mutexattr_destroy(&kind);
    return error;
}

/* Gives each seat a processor, if there are at least as many seats as processors. */
static void place_seats(struct tsr_pool *pool)
{
    if (sched_getaffinity(0, sizeof pool->processors, &pool->processors) != 0) return;
    const int count = CPU_COUNT(&pool->processors);
    if (pool->seats < count) return;
    pool->processor = malloc((size_t)pool->seats * sizeof *pool->processor);
    for (int seat = 0, at = -1; seat < pool->seats && pool->processor; seat++) {
        do at = (at + 1) % CPU_SETSIZE;
        while (!CPU_ISSET((size_t)at, &pool->processors));
        pool->processor[seat] = at;
    }
}

/* Called with the lock held. */
static void start_helpers(struct tsr_pool *pool, int wanted)
{
    while (pool->helpers < wanted && tsr_start_thread(&pool->helper[pool->helpers], tsr_help, pool) == 0)
        pool->helpers++;
}

static void free_pool(struct tsr_pool *pool)
{
    if (pool) {
        free(pool->helper);
        free(pool->free_seat);
        free(pool->group);
        free(pool->processor);
        tsr_deputies_destroy(pool->deputies);
    }
    free(pool);
}

struct tsr_pool *tsr_pool_create_resting(int threads, int resting, size_t resting_bytes)
{
    const int wanted = threads > 1 ? threads - 1 : 0;
    struct tsr_pool *pool = calloc(1, sizeof *pool);
    if (pool) {
        pool->helper = malloc(((size_t)wanted + (size_t)resting + 1) * sizeof *pool->helper);
        pool->free_seat = malloc(((size_t)wanted + 1) * sizeof *pool->free_seat);
        pool->group = calloc((size_t)wanted + 1, sizeof *pool->group);
        pool->deputies = tsr_deputies_create();
    }
    if (!pool || !pool->helper || !pool->free_seat || !pool->group || !pool->deputies) {
        free_pool(pool);
        return NULL;
    }
    tsr_make_lock(&pool->lock);
    pthread_cond_init(&pool->finished, NULL);
    pthread_cond_init(&pool->freed, NULL);
    for (int lot = 0; lot < TSR_MEMORY_LOTS; lot++) pool->memory[lot].limit = SIZE_MAX;
    pool->few = resting > 0 ? TSR_FEW_OF_THREAD * threads : 0;
    pool->resting_limit = resting_bytes;
    pthread_mutex_lock(&pool->lock);
    if (resting > 0) start_helpers(pool, wanted);
    pool->seats = (resting > 0 ? pool->helpers : wanted) + 1;
    pool->helpers_limit = pool->seats - 1 + resting;
    pool->new_seats = resting > 0 ? pool->seats / 4 : 0;
    for (int seat = 0; seat < pool->seats; seat++) pool->free_seat[seat] = seat;
    if (resting > 0) place_seats(pool);
    cpu_set_t set;
    pool->tries = resting == 0 && sched_getaffinity(0, sizeof set, &set) == 0 && pool->seats <= CPU_COUNT(&set);
    pthread_mutex_unlock(&pool->lock);
    return pool;
}

bool tsr_pool_start_resting(struct tsr_pool *pool)
{
    for (bool starts = true; starts;) {
        pthread_mutex_lock(&pool->lock);
        starts = pool->helpers < pool->helpers_limit && !pool->ends &&
                 tsr_start_thread(&pool->helper[pool->helpers], tsr_help, pool) == 0;
        pool->helpers += starts;
        pthread_mutex_unlock(&pool->lock);
    }
    return pool->helpers_limit >= pool->seats;
}

void tsr_pool_set_aside(struct tsr_pool *pool, bool is_aside)
{
    const int count = pool->seats / 8;
    pthread_mutex_lock(&pool->lock);
    if (is_aside) {
        assert(pool->taken == 0); /* the last seats are next */
        pool->taken = count;
    }
    for (int i = 0; !is_aside && i < count; i++) {
        struct tsr_sleeper seated = {.seat = pool->seats - 1 - i};
        tsr_unseat(pool, &seated);
        tsr_wake(pool, tsr_offer_seat(pool));
    }
    pthread_mutex_unlock(&pool->lock);
}

void tsr_pool_destroy(struct tsr_pool *pool)
{
    if (!pool) return;
    pthread_mutex_lock(&pool->lock);
    pool->ends = true;
    for (struct group *group = pool->group; group < pool->group + pool->seats; group++) {
        for (struct tsr_sleeper *helper = group->idle, *next; helper; helper = next) {
            next = helper->next; /* the helper may end as soon as it wakes */
            tsr_wake(pool, helper);
        }
        group->idle = NULL;
    }
    pool->idle = 0;
    pthread_mutex_unlock(&pool->lock);
    for (int i = 0; i < pool->helpers; i++) pthread_join(pool->helper[i], NULL);
    pthread_cond_destroy(&pool->finished);
    pthread_cond_destroy(&pool->freed);
    pthread_mutex_destroy(&pool->lock);
    free_pool(pool);
}

int tsr_pool_threads(const struct tsr_pool *pool)
{
    return pool->seats;
}

static void run_pieces(struct tsr_pool *pool, tsr_work *work, void *context, unsigned count, bool reserves)
{
    if (pool->helpers_limit == 0 || count <= 1) {
        for (unsigned i = 0; i < count; i++) work(context, i);
        return;
    }
    struct run run = {work, context, count, 0, 0, reserves, NULL};
    struct tsr_pool *const before = tsr_seated_in;
    pthread_mutex_lock(&pool->lock);
    if (before != pool) tsr_take_seat(pool);
    run.older = pool->newest;
    pool->newest = &run;
    if (pool->reserving > 0 && !reserves) pthread_cond_broadcast(&pool->freed);
    const int wanted = (unsigned)pool->seats < count ? pool->seats - 1 : (int)count - 1;
    for (int i = 0; i < wanted && pool->idle; i++) tsr_wake(pool, tsr_offer_seat(pool));
    start_helpers(pool, wanted); /* at the first runs; a job of one small file needs none */
    while (run.next < run.count) work_on(pool, &run);
    if (!is_done(&run)) {
        struct tsr_sleeper *const next = tsr_give_seat(pool);
        pthread_mutex_unlock(&pool->lock);
        tsr_wake(pool, next);
        if (pool->tries) tsr_come_true(is_done, &run);
        pthread_mutex_lock(&pool->lock);
        while (!is_done(&run)) pthread_cond_wait(&pool->finished, &pool->lock);
        if (before == pool) tsr_take_seat(pool);
    } else if (before != pool) {
        tsr_wake(pool, tsr_give_seat(pool));
    }
    tsr_seated_in = before;
    struct run **link = &pool->newest;
    while (*link != &run) link = &(*link)->older;
    *link = run.older;
    pthread_mutex_unlock(&pool->lock);
    if (before == pool)
        tsr_bind_to_seat(pool, &tsr_this_thread);
    else
        tsr_unbind(pool);
}

void tsr_pool_run(struct tsr_pool *pool, tsr_work *work, void *context, unsigned count)
{
    run_pieces(pool, work, context, count, false);
}

void tsr_pool_run_tasks(struct tsr_pool *pool, tsr_work *work, void *context, unsigned count)
{
    run_pieces(pool, work, context, count, true);
}

/* A thread that waits for its deputy gives its seat up, which the deputy may need. */
bool tsr_pool_call(struct tsr_pool *pool, void (*work)(void *context), void *context)
{
    if (tsr_has_large_stack()) {
        work(context);
        return true;
    }
    const bool was_seated = tsr_seated_in == pool;
    if (was_seated) tsr_pool_rest(pool, 0);
    const bool called = tsr_deputies_call(pool->deputies, work, context);
    if (was_seated) tsr_pool_resume(pool);
    return called;
}

/* ---- Memory ----------------------------------------------------------------------------------------------- */

void tsr_pool_set_memory(struct tsr_pool *pool, enum tsr_memory_lot lot, size_t bytes)
{
    pool->memory[lot].limit = bytes;
}

size_t tsr_pool_memory(const struct tsr_pool *pool, enum tsr_memory_lot lot)
{
    return pool->memory[lot].limit;
}

/* The newest run with pieces left that do not wait for memory, or NULL. Threads that hold memory run such pieces, and
 * wait for them. */
static struct run *run_to_help(const struct tsr_pool *pool)
{
    for (struct run *run = pool->newest; run; run = run->older)
        if (run->next < run->count && !run->reserves) return run;
    return NULL;
}

static bool may_reserve(const struct memory *memory, uint64_t ticket, size_t bytes)
{
    return memory->turn == ticket && bytes <= memory->limit - memory->reserved;
}

/* Waits until the calling thread may reserve, or, if it had a seat, until there are pieces that it can work on. Gives
 * its seat up meanwhile. Releases the lock while it waits. */
static void wait_for_memory(struct tsr_pool *pool, const struct memory *memory, uint64_t ticket, size_t bytes)
{
    const bool was_seated = tsr_seated_in == pool;
    struct tsr_sleeper *const next = was_seated ? tsr_give_seat(pool) : NULL;
    if (next) {
        pthread_mutex_unlock(&pool->lock);
        tsr_wake(pool, next);
        pthread_mutex_lock(&pool->lock);
    }
    while (!may_reserve(memory, ticket, bytes) && !(was_seated && run_to_help(pool)))
        pthread_cond_wait(&pool->freed, &pool->lock);
    if (was_seated) tsr_take_seat(pool);
}

bool tsr_pool_reserve(struct tsr_pool *pool, enum tsr_memory_lot lot, size_t bytes)
{
    struct memory *const memory = &pool->memory[lot];
    if (bytes > memory->limit) return false;
    pthread_mutex_lock(&pool->lock);
    const uint64_t ticket = memory->next_ticket++;
    const bool waits = !may_reserve(memory, ticket, bytes);
    pool->reserving += waits;
    while (!may_reserve(memory, ticket, bytes)) {
        struct run *const run = tsr_seated_in == pool ? run_to_help(pool) : NULL;
        if (run)
            work_on(pool, run);
        else
            wait_for_memory(pool, memory, ticket, bytes);
    }
    pool->reserving -= waits;
    memory->turn++;
    memory->reserved += bytes;
    if (pool->reserving > 0) pthread_cond_broadcast(&pool->freed);
    pthread_mutex_unlock(&pool->lock);
    if (waits) tsr_bind_to_seat(pool, &tsr_this_thread);
    return true;
}

bool tsr_pool_try_reserve(struct tsr_pool *pool, enum tsr_memory_lot lot, size_t bytes)
{
    struct memory *const memory = &pool->memory[lot];
    pthread_mutex_lock(&pool->lock);
    const bool is_free = may_reserve(memory, memory->next_ticket, bytes);
    if (is_free) memory->reserved += bytes;
    pthread_mutex_unlock(&pool->lock);
    return is_free;
}

void tsr_pool_release(struct tsr_pool *pool, enum tsr_memory_lot lot, size_t bytes)
{
    pthread_mutex_lock(&pool->lock);
    pool->memory[lot].reserved -= bytes;
    if (pool->reserving > 0) pthread_cond_broadcast(&pool->freed);
    pthread_mutex_unlock(&pool->lock);
}

/* ---- Rest ------------------------------------------------------------------------------------------------- */

/* The calling thread, which has a seat, gives it up and holds bytes of memory until end_rest. Returns the thread that
 * gets the seat, which the caller must wake, or NULL. Called with the lock held. */
static struct tsr_sleeper *begin_rest(struct tsr_pool *pool, size_t bytes)
{
    pool->resting_bytes += bytes;
    pool->resting++;
    resting_in = pool;
    held_bytes = bytes;
    return tsr_give_seat(pool);
}

/* The calling thread has a seat again. Called with the lock held. */
static void end_rest(struct tsr_pool *pool)
{
    pool->resting--;
    pool->resting_bytes -= held_bytes;
    tsr_wake(pool, tsr_offer_seat(pool)); /* resting_bytes may have been over its limit */
    tsr_seated_in = pool;
    resting_in = NULL;
}

void tsr_pool_rest(struct tsr_pool *pool, size_t bytes)
{
    if (tsr_seated_in != pool) return;
    pthread_mutex_lock(&pool->lock);
    struct tsr_sleeper *const next = begin_rest(pool, bytes);
    pthread_mutex_unlock(&pool->lock);
    tsr_unbind(pool);
    tsr_wake(pool, next);
}

void tsr_pool_resume(struct tsr_pool *pool)
{
    if (resting_in != pool) return;
    pthread_mutex_lock(&pool->lock);
    tsr_take_seat(pool);
    end_rest(pool);
    pthread_mutex_unlock(&pool->lock);
    tsr_bind_to_seat(pool, &tsr_this_thread);
}

void tsr_pool_sleep(struct tsr_pool *pool, size_t bytes)
{
    struct tsr_sleeper *const self = tsr_pool_sleeper();
    pthread_mutex_lock(&pool->lock);
    if (self->state == CALLED) {
        self->state = AWAKE;
        if (resting_in == pool) tsr_take_seat(pool);
    } else {
        self->wants_seat = tsr_seated_in == pool || resting_in == pool;
        self->state = ASLEEP;
        struct tsr_sleeper *const next = tsr_seated_in == pool ? begin_rest(pool, bytes) : NULL;
        pthread_mutex_unlock(&pool->lock);
        tsr_wake(pool, next);
        tsr_wait_until_woken(self);
        pthread_mutex_lock(&pool->lock);
    }
    if (resting_in == pool) end_rest(pool);
    pthread_mutex_unlock(&pool->lock);
    tsr_bind_to_seat(pool, self);
}

void tsr_pool_wake(struct tsr_pool *pool, struct tsr_sleeper *sleeper)
{
    pthread_mutex_lock(&pool->lock);
    const bool is_asleep = sleeper->state == ASLEEP;
    sleeper->state = is_asleep ? AWAKE : CALLED;
    struct tsr_sleeper *next = is_asleep ? sleeper : NULL;
    if (is_asleep && sleeper->wants_seat) {
        tsr_want_seat(pool, sleeper);
        next = tsr_offer_seat(pool);
    }
    pthread_mutex_unlock(&pool->lock);
    tsr_wake(pool, next);
}

/* Processors' worth of time that the cgroup (v2) allows, rounded up; 0 if it sets no limit. */
static int cgroup_threads(void)
{
    FILE *file = fopen("/sys/fs/cgroup/cpu.max", "r");
    if (!file) return 0;
    long quota = 0, period = 0;
    const int fields = fscanf(file, "%ld %ld", &quota, &period); /* "max 100000" does not begin with a number */
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
