/* Seats of a pool: which threads work, and on which processors.
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
#define _GNU_SOURCE /* sched_getaffinity */
#include "seats.h"

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "large_stack.h"

_Thread_local struct tsr_pool *tsr_seated_in;
_Thread_local struct tsr_sleeper tsr_this_thread;

struct tsr_sleeper *tsr_pool_sleeper(void)
{
    struct tsr_sleeper *const self = &tsr_this_thread;
    if (!self->has_semaphore) {
        sem_init(&self->woken, 0, 0);          /* cannot fail */
        self->id = (pid_t)syscall(SYS_gettid); /* gettid is of glibc 2.30, and wheels take 2.28 */
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
bool tsr_come_true(bool (*is_true)(void *context), void *context)
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

bool tsr_is_woken(void *sleeper)
{
    return sem_trywait(&((struct tsr_sleeper *)sleeper)->woken) == 0;
}

void tsr_wait_until_woken(struct tsr_sleeper *self)
{
    while (sem_wait(&self->woken) != 0) continue; /* sem_wait fails when a signal's handler has run */
}

/* Binds a thread that has a seat to the seat's processor. The thread itself calls it, or the one that wakes it. */
void tsr_bind_to_seat(const struct tsr_pool *pool, struct tsr_sleeper *sleeper)
{
    if (!pool->processor || sleeper->seat < 0 || sleeper->bound_to == pool->processor[sleeper->seat]) return;
    cpu_set_t set;
    CPU_ZERO(&set);
    sleeper->bound_to = pool->processor[sleeper->seat];
    CPU_SET((size_t)sleeper->bound_to, &set);
    sched_setaffinity(sleeper->id, sizeof set, &set); /* if this fails, the thread may run anywhere */
}

/* Lets the calling thread, which has no seat now, run on any processor. */
void tsr_unbind(const struct tsr_pool *pool)
{
    if (!pool->processor || tsr_this_thread.bound_to < 0) return;
    sched_setaffinity(0, sizeof pool->processors, &pool->processors);
    tsr_this_thread.bound_to = -1;
}

void tsr_wake(const struct tsr_pool *pool, struct tsr_sleeper *sleeper)
{
    if (!sleeper) return;
    tsr_bind_to_seat(pool, sleeper);
    sem_post(&sleeper->woken);
}

/* Returns false if the calling thread's policy is not from (its owner has set another one), or if it may not be
 * changed. */
bool tsr_set_policy(int from, int to)
{
    const struct sched_param none = {0};
    return sched_getscheduler(0) == from && sched_setscheduler(0, to, &none) == 0;
}

void tsr_pool_hurry(const struct tsr_pool *pool, bool hurries)
{
    if (!pool->processor || !tsr_this_thread.is_patient) return;
    tsr_set_policy(hurries ? SCHED_BATCH : SCHED_OTHER, hurries ? SCHED_OTHER : SCHED_BATCH);
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
struct run *tsr_open_run(const struct tsr_pool *pool)
{
    struct run *open = NULL;
    for (struct run *run = pool->newest; run; run = run->older)
        if (run->next < run->count) open = run;
    return open;
}

/* Whether a piece may begin at the next seat. */
bool tsr_may_begin(const struct tsr_pool *pool)
{
    const struct run *const run = tsr_open_run(pool);
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

void tsr_unseat(struct tsr_pool *pool, struct tsr_sleeper *sleeper)
{
    pool->free_seat[pool->seats - pool->taken--] = sleeper->seat;
    sleeper->seat = -1;
}

void tsr_begin_piece(struct tsr_pool *pool, struct tsr_sleeper *helper)
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

/* The thread's group. Its home may be a seat of another pool, which has more seats. */
struct group *tsr_group_of(const struct tsr_pool *pool, const struct tsr_sleeper *sleeper)
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
struct tsr_sleeper *tsr_hand_seat(struct tsr_pool *pool)
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
struct tsr_sleeper *tsr_offer_seat(struct tsr_pool *pool)
{
    if (tsr_may_begin(pool)) {
        struct tsr_sleeper *const helper = take_idle(pool);
        if (helper) {
            tsr_begin_piece(pool, helper);
            return helper;
        }
        if (pool->helpers < pool->helpers_limit && !pool->ends &&
            tsr_start_thread(&pool->helper[pool->helpers], tsr_help, pool) == 0) {
            pool->helpers++; /* it takes a seat by itself, if one is still free */
            return NULL;
        }
    }
    return tsr_hand_seat(pool);
}

void tsr_want_seat(struct tsr_pool *pool, struct tsr_sleeper *sleeper)
{
    struct group *const group = tsr_group_of(pool, sleeper);
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
void tsr_take_seat(struct tsr_pool *pool)
{
    struct tsr_sleeper *const self = tsr_pool_sleeper();
    if (pool->taken < pool->seats) {
        seat(pool, self);
    } else {
        tsr_want_seat(pool, self);
        pthread_mutex_unlock(&pool->lock);
        tsr_wait_until_woken(self);
        pthread_mutex_lock(&pool->lock);
    }
    tsr_seated_in = pool;
}

struct tsr_sleeper *tsr_give_seat(struct tsr_pool *pool)
{
    tsr_seated_in = NULL;
    tsr_unseat(pool, &tsr_this_thread);
    return tsr_offer_seat(pool);
}
