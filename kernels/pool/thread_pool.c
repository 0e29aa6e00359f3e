/* A pool of threads; thread_pool.h says what it does, this page how.
 *
 * Which piece is next. The runs in progress form a list, newest first. Helpers take pieces of the oldest run, which
 * begins another file. The pieces of an inner run are left to its caller, which then does not have to wait. Helpers
 * take them once all files have begun. (If helpers took pieces of the newest run, a caller would wait at the end of
 * each inner run for a piece that another thread holds.)
 *
 * Seats. A thread that works has one of the pool's seats. A thread gives its seat up when it waits for pieces that
 * other threads hold, and when it rests. All seats then belong to threads that make progress, so no thread waits for a
 * seat for ever.
 *
 * Who gets a seat. Threads that want a seat go before new pieces, so that files that have begun end first. But threads
 * rest because they wait for a GPU. If no new file began before all finished work was dealt with, the GPU would run
 * dry. So a quarter of the seats are for new files. At these seats new files go first, as long as fewer than 4 threads
 * a seat rest. At the other seats up to two new files go before each thread that wants a seat, as long as fewer than 2
 * threads a seat rest. (With a limit of 2 at all seats a GPU ran dry five times in 2000 slices, 5 ms each time.) Most
 * files thus begin on a few processors and end on the others, and the caches of each hold the code and data of one kind
 * of work: 4 % less time. Pieces of inner runs never go first: all files that began last would then be at work at once,
 * in fresh memory, which costs a tenth of a second of page faults.
 *
 * Homes. A thread's home is the seat that it had last, of the seats that are not for new files. A free seat goes to the
 * thread that has waited longest of those whose home it is: the thread's stack and what it has allocated are in the
 * cache of that seat's processor, and the thread does not have to move. But no thread waits much longer than threads of
 * other homes because of this. A thread that waits for a seat has it already when it wakes. A thread that another one
 * wakes (tsr_pool_wake) wakes when there is a seat for it, and not before. A helper goes from one piece to the next
 * without sleeping.
 *
 * Processors. If threads rest, and there are at least as many seats as processors, each seat has a processor. Without
 * this, Linux puts a thread that wakes on the processor where it ran last, where it waits for the thread that is busy
 * there; Linux does not look for an idle processor when few are idle. With 16 of 128 threads awake on 16 processors,
 * three in ten processors idled. A thread without a seat may run on any processor.
 *
 * Trying. Passes over one image are short, and the next one begins soon. A thread that sleeps on a processor that has
 * nothing else to do lets it halt, and waking it takes as long as a tenth of a pass or more, above all in a virtual
 * machine. So a helper without work, and a caller that waits for the last piece, first try for TRY_NS whether there is
 * something, if there are as many processors as seats and no threads rest.
 *
 * Policy. If seats have processors, helpers have the policy SCHED_BATCH: a thread that wakes does not take the
 * processor from the thread that has woken it. Under the ordinary policy a thread that hands its seat on, to lead a
 * batch to the GPU or to wake the callers of one, stood still at the first thread that it woke. It stood as long as a
 * slice takes to decode, 4 ms, and the GPU stood with it. Threads between tsr_pool_hurry(true) and (false) have the
 * ordinary policy. */
#define _GNU_SOURCE /* sched_getaffinity, adaptive mutexes */
#include "thread_pool.h"

#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "large_stack.h"

struct run {
    tsr_work *work;
    void *context;
    unsigned count, next;
    atomic_uint done; /* changes with the lock */
    bool reserves;    /* its pieces may wait for memory */
    struct run *older;
};

/* The threads whose home is one seat. */
struct group {
    struct tsr_sleeper *first_wanting, *last_wanting; /* of the threads that wait for a seat */
    uint64_t first_ticket;                            /* of first_wanting */
    struct tsr_sleeper *idle; /* helpers that wait for a piece, the one that worked last first */
};

struct tsr_pool {
    pthread_mutex_t lock;
    pthread_cond_t finished; /* the last piece of a run has returned */
    struct run *newest;
    bool ends;
    int seats, taken;
    int *free_seat;       /* the seats - taken free ones */
    int new_seats;        /* seats with lower numbers are for new files */
    cpu_set_t processors; /* that the pool's threads may run on */
    int *processor;       /* of each seat; NULL: any */
    struct group *group;  /* of each seat */
    uint64_t next_ticket; /* of threads that want a seat */
    int wanting, idle;    /* threads, in all groups */
    int resting, few;     /* threads that rest, or that want their seat again; limit of resting (see above) */
    int ahead;            /* pieces that began since a thread that wanted a seat got one */
    size_t resting_bytes, resting_limit;
    struct memory {
        size_t limit, reserved;
        uint64_t next_ticket, turn; /* of threads that reserve */
    } memory[TSR_MEMORY_LOTS];
    int reserving;        /* threads that wait for memory */
    pthread_cond_t freed; /* memory was released, the turn has passed on, or a run has begun */
    bool tries;           /* threads try before they sleep */
    int helpers, helpers_limit, started;
    pthread_t *helper;
    struct tsr_deputies *deputies;
    bool has_patient; /* a helper is patient: the policy is this pool's, not that of the process */
};

/* A thread, as those that wake it know it. The pool's lock guards state and seat. */
struct tsr_sleeper {
    sem_t woken;
    bool has_semaphore;
    enum { AWAKE, ASLEEP, CALLED } state; /* CALLED: another thread woke it before it slept */
    bool wants_seat;
    bool is_patient;          /* its policy is SCHED_BATCH, except while it hurries */
    struct tsr_sleeper *next; /* in its group: of the threads that want a seat, or of the idle ones */
    uint64_t ticket;
    pid_t id;
    int seat;     /* the seat that it has, or -1 */
    int home;     /* the seat that it had last, of those that are not for new files */
    int bound_to; /* the processor that it runs on; -1: any */
};

static _Thread_local struct tsr_pool *seated_in, *resting_in;
static _Thread_local size_t held_bytes; /* while the thread rests */
static _Thread_local struct tsr_sleeper this_thread;

struct tsr_sleeper *tsr_pool_sleeper(void)
{
    struct tsr_sleeper *const self = &this_thread;
    if (!self->has_semaphore) {
        sem_init(&self->woken, 0, 0); /* cannot fail */
        self->id = gettid();
        self->seat = self->bound_to = -1;
    }
    self->has_semaphore = true;
    return self;
}

enum { TRY_NS = 200000, TRIES = 32 }; /* for a time, which is read after some tries */

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Tries for a while. False: it has not become true. */
static bool come_true(bool (*is_true)(void *context), void *context)
{
    const int64_t end = now_ns() + TRY_NS;
    do {
        for (int i = 0; i < TRIES; i++) {
            if (is_true(context)) return true;
#if defined(__x86_64__)
            __builtin_ia32_pause();
#endif
        }
    } while (now_ns() < end);
    return false;
}

static bool is_woken(void *sleeper)
{
    return sem_trywait(&((struct tsr_sleeper *)sleeper)->woken) == 0;
}

static void wait_until_woken(struct tsr_sleeper *self)
{
    while (sem_wait(&self->woken) != 0) continue; /* sem_wait fails when a signal's handler has run */
}

/* Binds a thread that has a seat to the seat's processor. The thread itself calls it, or the one that wakes it. */
static void bind_to_seat(const struct tsr_pool *pool, struct tsr_sleeper *sleeper)
{
    if (!pool->processor || sleeper->seat < 0 || sleeper->bound_to == pool->processor[sleeper->seat]) return;
    cpu_set_t set;
    CPU_ZERO(&set);
    sleeper->bound_to = pool->processor[sleeper->seat];
    CPU_SET((size_t)sleeper->bound_to, &set);
    sched_setaffinity(sleeper->id, sizeof set, &set); /* if this fails, the thread may run anywhere */
}

/* Lets the calling thread, which has no seat now, run on any processor. */
static void unbind(const struct tsr_pool *pool)
{
    if (!pool->processor || this_thread.bound_to < 0) return;
    sched_setaffinity(0, sizeof pool->processors, &pool->processors);
    this_thread.bound_to = -1;
}

static void wake(const struct tsr_pool *pool, struct tsr_sleeper *sleeper)
{
    if (!sleeper) return;
    bind_to_seat(pool, sleeper);
    sem_post(&sleeper->woken);
}

/* Returns false if the calling thread's policy is not from (its owner has set another one), or if it may not be
 * changed. */
static bool set_policy(int from, int to)
{
    const struct sched_param none = {0};
    return sched_getscheduler(0) == from && sched_setscheduler(0, to, &none) == 0;
}

void tsr_pool_hurry(const struct tsr_pool *pool, bool hurries)
{
    if (!pool->processor || !this_thread.is_patient) return;
    set_policy(hurries ? SCHED_BATCH : SCHED_OTHER, hurries ? SCHED_OTHER : SCHED_BATCH);
}

/* The functions from here to tsr_pool_create are called with the lock held. */

/* AHEAD_LIMIT: pieces that may go before a thread that wants a seat. LATER_LIMIT, times the seats: threads that came
 * later and may get their home seat before the thread that has waited longest. */
enum { AHEAD_LIMIT = 2, LATER_LIMIT = 4 };

/* The seat that is taken next. There must be a free one. */
static int next_seat(const struct tsr_pool *pool)
{
    return pool->free_seat[pool->seats - pool->taken - 1];
}

/* The oldest run that has pieces left, or NULL. */
static struct run *open_run(const struct tsr_pool *pool)
{
    struct run *open = NULL;
    for (struct run *run = pool->newest; run; run = run->older)
        if (run->next < run->count) open = run;
    return open;
}

/* Whether a piece may begin at the next seat. */
static bool may_begin(const struct tsr_pool *pool)
{
    const struct run *const run = open_run(pool);
    if (!run || pool->taken == pool->seats || pool->resting_bytes > pool->resting_limit) return false;
    if (pool->wanting == 0) return true;
    if (run->older) return false; /* the threads that rest do not wait for pieces of an inner run */
    if (next_seat(pool) < pool->new_seats) return pool->resting < pool->few;
    return pool->resting < (pool->new_seats > 0 ? pool->few / 2 : pool->few) && pool->ahead < AHEAD_LIMIT;
}

static void seat(struct tsr_pool *pool, struct tsr_sleeper *sleeper)
{
    sleeper->seat = next_seat(pool);
    pool->taken++;
    if (sleeper->seat >= pool->new_seats) sleeper->home = sleeper->seat;
}

static void unseat(struct tsr_pool *pool, struct tsr_sleeper *sleeper)
{
    pool->free_seat[pool->seats - pool->taken--] = sleeper->seat;
    sleeper->seat = -1;
}

static void begin(struct tsr_pool *pool, struct tsr_sleeper *helper)
{
    seat(pool, helper);
    pool->ahead++;
}

/* Takes an idle helper out of its group, from that of the next seat first. Returns NULL if no helper is idle. */
static struct tsr_sleeper *take_idle(struct tsr_pool *pool)
{
    const int first = pool->idle > 0 ? next_seat(pool) : 0;
    for (int i = 0; i < pool->seats && pool->idle > 0; i++) {
        struct group *const group = &pool->group[(first + i) % pool->seats];
        struct tsr_sleeper *const helper = group->idle;
        if (!helper) continue;
        group->idle = helper->next;
        pool->idle--;
        return helper;
    }
    return NULL;
}

static void *help(void *argument);

/* The thread's group. Its home may be a seat of another pool, which has more seats. */
static struct group *group_of(const struct tsr_pool *pool, const struct tsr_sleeper *sleeper)
{
    return &pool->group[sleeper->home % pool->seats];
}

/* Takes the thread that shall have this seat out of those that want one. At least one must want one. */
static struct tsr_sleeper *choose(struct tsr_pool *pool, int seat)
{
    struct group *oldest = NULL, *group = &pool->group[seat];
    for (struct group *g = pool->group; g < pool->group + pool->seats; g++)
        if (g->first_wanting && (!oldest || g->first_ticket < oldest->first_ticket)) oldest = g;
    const uint64_t most = (uint64_t)LATER_LIMIT * (uint64_t)pool->seats;
    if (!group->first_wanting || group->first_ticket - oldest->first_ticket > most) group = oldest;
    struct tsr_sleeper *const chosen = group->first_wanting;
    group->first_wanting = chosen->next;
    if (chosen->next) group->first_ticket = chosen->next->ticket;
    return chosen;
}

/* Gives a free seat to a thread that wants one and returns the thread, which the caller must wake. Returns NULL if no
 * seat is free, or no thread wants one. */
static struct tsr_sleeper *hand_seat(struct tsr_pool *pool)
{
    if (pool->wanting == 0 || pool->taken == pool->seats) return NULL;
    struct tsr_sleeper *const next = choose(pool, next_seat(pool));
    pool->wanting--;
    pool->ahead = 0;
    seat(pool, next);
    return next;
}

/* Puts a free seat to use: a helper gets it, or a thread that wants it. Returns the thread, which has the seat already
 * and which the caller must wake, or NULL. If no helper is idle, starts one if it may. */
static struct tsr_sleeper *offer_seat(struct tsr_pool *pool)
{
    if (may_begin(pool)) {
        struct tsr_sleeper *const helper = take_idle(pool);
        if (helper) {
            begin(pool, helper);
            return helper;
        }
        if (pool->helpers < pool->helpers_limit && !pool->ends &&
            tsr_start_thread(&pool->helper[pool->helpers], help, pool) == 0) {
            pool->helpers++; /* it takes a seat by itself, if one is still free */
            return NULL;
        }
    }
    return hand_seat(pool);
}

static void want_seat(struct tsr_pool *pool, struct tsr_sleeper *sleeper)
{
    struct group *const group = group_of(pool, sleeper);
    sleeper->next = NULL;
    sleeper->ticket = pool->next_ticket++;
    if (group->first_wanting) {
        group->last_wanting->next = sleeper;
    } else {
        group->first_wanting = sleeper;
        group->first_ticket = sleeper->ticket;
    }
    group->last_wanting = sleeper;
    pool->wanting++;
}

/* Gives the calling thread a seat. Releases the lock while it waits. */
static void take_seat(struct tsr_pool *pool)
{
    struct tsr_sleeper *const self = tsr_pool_sleeper();
    if (pool->taken < pool->seats) {
        seat(pool, self);
    } else {
        want_seat(pool, self);
        pthread_mutex_unlock(&pool->lock);
        wait_until_woken(self);
        pthread_mutex_lock(&pool->lock);
    }
    seated_in = pool;
}

static bool is_done(void *run)
{
    const struct run *const r = run;
    return atomic_load(&r->done) == r->count;
}

static struct tsr_sleeper *give_seat(struct tsr_pool *pool)
{
    seated_in = NULL;
    unseat(pool, &this_thread);
    return offer_seat(pool);
}

/* Takes a piece of run and works on it. Releases the lock while it works. */
static void work_on(struct tsr_pool *pool, struct run *run)
{
    const unsigned index = run->next++;
    pthread_mutex_unlock(&pool->lock);
    bind_to_seat(pool, &this_thread);
    run->work(run->context, index);
    pthread_mutex_lock(&pool->lock);
    if (atomic_fetch_add(&run->done, 1) + 1 == run->count) pthread_cond_broadcast(&pool->finished);
}

static void *help(void *argument)
{
    struct tsr_pool *pool = argument;
    struct tsr_sleeper *const self = tsr_pool_sleeper();
    pthread_mutex_lock(&pool->lock);
    if (pool->processor) {
        sched_setaffinity(0, sizeof pool->processors, &pool->processors); /* not those of the thread that created it */
        /* One that a patient helper has started begins with its policy. */
        self->is_patient =
            set_policy(SCHED_OTHER, SCHED_BATCH) || (pool->has_patient && sched_getscheduler(0) == SCHED_BATCH);
        pool->has_patient |= self->is_patient;
    }
    self->home = pool->new_seats + pool->started++ % (pool->seats - pool->new_seats);
    if (!pool->ends && may_begin(pool)) begin(pool, self);
    while (self->seat >= 0 || !pool->ends) {
        struct run *const run = self->seat >= 0 ? open_run(pool) : NULL;
        if (run) {
            seated_in = pool;
            wake(pool, offer_seat(pool)); /* if there is another seat */
            work_on(pool, run);
            seated_in = NULL;
            unseat(pool, self);
            if (may_begin(pool)) begin(pool, self);
            continue;
        }
        if (self->seat >= 0) { /* another thread has taken the last piece */
            unseat(pool, self);
            continue;
        }
        struct tsr_sleeper *const next = hand_seat(pool);
        struct group *const group = group_of(pool, self);
        self->next = group->idle;
        group->idle = self;
        pool->idle++;
        pthread_mutex_unlock(&pool->lock);
        wake(pool, next);
        if (!pool->tries || !come_true(is_woken, self))
            wait_until_woken(self); /* with a seat, or because the pool ends */
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
    while (pool->helpers < wanted && tsr_start_thread(&pool->helper[pool->helpers], help, pool) == 0) pool->helpers++;
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
    pool->few = resting > 0 ? 4 * threads : 0;
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
                 tsr_start_thread(&pool->helper[pool->helpers], help, pool) == 0;
        pool->helpers += starts;
        pthread_mutex_unlock(&pool->lock);
    }
    return pool->helpers_limit >= pool->seats;
}

void tsr_pool_destroy(struct tsr_pool *pool)
{
    if (!pool) return;
    pthread_mutex_lock(&pool->lock);
    pool->ends = true;
    for (struct group *group = pool->group; group < pool->group + pool->seats; group++) {
        for (struct tsr_sleeper *helper = group->idle, *next; helper; helper = next) {
            next = helper->next; /* the helper may end as soon as it wakes */
            wake(pool, helper);
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
    struct tsr_pool *const before = seated_in;
    pthread_mutex_lock(&pool->lock);
    if (before != pool) take_seat(pool);
    run.older = pool->newest;
    pool->newest = &run;
    if (pool->reserving > 0 && !reserves) pthread_cond_broadcast(&pool->freed);
    const int wanted = (unsigned)pool->seats < count ? pool->seats - 1 : (int)count - 1;
    for (int i = 0; i < wanted && pool->idle; i++) wake(pool, offer_seat(pool));
    start_helpers(pool, wanted); /* at the first runs; a job of one small file needs none */
    while (run.next < run.count) work_on(pool, &run);
    if (!is_done(&run)) {
        struct tsr_sleeper *const next = give_seat(pool);
        pthread_mutex_unlock(&pool->lock);
        wake(pool, next);
        if (pool->tries) come_true(is_done, &run);
        pthread_mutex_lock(&pool->lock);
        while (!is_done(&run)) pthread_cond_wait(&pool->finished, &pool->lock);
        if (before == pool) take_seat(pool);
    } else if (before != pool) {
        wake(pool, give_seat(pool));
    }
    seated_in = before;
    struct run **link = &pool->newest;
    while (*link != &run) link = &(*link)->older;
    *link = run.older;
    pthread_mutex_unlock(&pool->lock);
    if (before == pool)
        bind_to_seat(pool, &this_thread);
    else
        unbind(pool);
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
    const bool was_seated = seated_in == pool;
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

/* Waits until the calling thread may reserve, or until it may help, if it had a seat. Gives its seat up meanwhile.
 * Releases the lock while it waits. */
static void wait_for_memory(struct tsr_pool *pool, const struct memory *memory, uint64_t ticket, size_t bytes)
{
    const bool was_seated = seated_in == pool;
    struct tsr_sleeper *const next = was_seated ? give_seat(pool) : NULL;
    if (next) {
        pthread_mutex_unlock(&pool->lock);
        wake(pool, next);
        pthread_mutex_lock(&pool->lock);
    }
    while (!may_reserve(memory, ticket, bytes) && !(was_seated && run_to_help(pool)))
        pthread_cond_wait(&pool->freed, &pool->lock);
    if (was_seated) take_seat(pool);
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
        struct run *const run = seated_in == pool ? run_to_help(pool) : NULL;
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
    if (waits) bind_to_seat(pool, &this_thread);
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
    return give_seat(pool);
}

/* The calling thread has a seat again. Called with the lock held. */
static void end_rest(struct tsr_pool *pool)
{
    pool->resting--;
    pool->resting_bytes -= held_bytes;
    wake(pool, offer_seat(pool)); /* resting_bytes may have been over its limit */
    seated_in = pool;
    resting_in = NULL;
}

void tsr_pool_rest(struct tsr_pool *pool, size_t bytes)
{
    if (seated_in != pool) return;
    pthread_mutex_lock(&pool->lock);
    struct tsr_sleeper *const next = begin_rest(pool, bytes);
    pthread_mutex_unlock(&pool->lock);
    unbind(pool);
    wake(pool, next);
}

void tsr_pool_resume(struct tsr_pool *pool)
{
    if (resting_in != pool) return;
    pthread_mutex_lock(&pool->lock);
    take_seat(pool);
    end_rest(pool);
    pthread_mutex_unlock(&pool->lock);
    bind_to_seat(pool, &this_thread);
}

void tsr_pool_sleep(struct tsr_pool *pool, size_t bytes)
{
    struct tsr_sleeper *const self = tsr_pool_sleeper();
    pthread_mutex_lock(&pool->lock);
    if (self->state == CALLED) {
        self->state = AWAKE;
        if (resting_in == pool) take_seat(pool);
    } else {
        self->wants_seat = seated_in == pool || resting_in == pool;
        self->state = ASLEEP;
        struct tsr_sleeper *const next = seated_in == pool ? begin_rest(pool, bytes) : NULL;
        pthread_mutex_unlock(&pool->lock);
        wake(pool, next);
        wait_until_woken(self);
        pthread_mutex_lock(&pool->lock);
    }
    if (resting_in == pool) end_rest(pool);
    pthread_mutex_unlock(&pool->lock);
    bind_to_seat(pool, self);
}

void tsr_pool_wake(struct tsr_pool *pool, struct tsr_sleeper *sleeper)
{
    pthread_mutex_lock(&pool->lock);
    const bool is_asleep = sleeper->state == ASLEEP;
    sleeper->state = is_asleep ? AWAKE : CALLED;
    struct tsr_sleeper *next = is_asleep ? sleeper : NULL;
    if (is_asleep && sleeper->wants_seat) {
        want_seat(pool, sleeper);
        next = offer_seat(pool);
    }
    pthread_mutex_unlock(&pool->lock);
    wake(pool, next);
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
