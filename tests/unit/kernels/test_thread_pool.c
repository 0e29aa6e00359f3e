/* kernels/pool/thread_pool.h: every piece of work is done once, nested ones too, and reserved memory stays within its
 * lot. */
#define _GNU_SOURCE /* nanosleep, SCHED_BATCH */
#include "tests/unit/support.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "kernels/pool/thread_pool.h"

enum { PIECES = 1000, INNER = 7 };

struct tally {
    struct tsr_pool *pool;
    atomic_int done[PIECES];
    atomic_int inner[PIECES];
};

static void work_once(void *context, unsigned index)
{
    struct tally *tally = context;
    atomic_fetch_add(&tally->done[index], 1);
}

struct inner {
    struct tally *tally;
    unsigned index;
};

static void work_inside(void *context, unsigned index)
{
    struct inner *inner = context;
    (void)index;
    atomic_fetch_add(&inner->tally->inner[inner->index], 1);
}

static void work_outside(void *context, unsigned index)
{
    struct tally *tally = context;
    struct inner inner = {tally, index};
    tsr_pool_run(tally->pool, work_inside, &inner, INNER);
    work_once(tally, index);
    /* the inner run has returned, so it is finished */
    if (atomic_load(&tally->inner[index]) != INNER) atomic_fetch_add(&tally->done[index], 1000);
}

TEST(every_piece_once)
{
    static const unsigned counts[] = {0, 1, 2, 3, 16, PIECES};
    static struct tally tally;
    for (int threads = 1; threads <= 8; threads++) {
        tally.pool = must(tsr_pool_create(threads));
        assert_in_range(tsr_pool_threads(tally.pool), 1, threads);
        for (int round = 0; round < 20; round++)
            for (size_t i = 0; i < COUNT_OF(counts); i++) {
                memset(tally.done, 0, sizeof tally.done);
                tsr_pool_run(tally.pool, work_once, &tally, counts[i]);
                for (unsigned k = 0; k < PIECES; k++) assert_int_equal(tally.done[k], k < counts[i]);
            }
        tsr_pool_destroy(tally.pool);
    }
}

TEST(work_within_work)
{
    static struct tally tally;
    for (int threads = 1; threads <= 8; threads += 1 + threads / 3) {
        tally.pool = must(tsr_pool_create(threads));
        memset(tally.done, 0, sizeof tally.done);
        memset(tally.inner, 0, sizeof tally.inner);
        tsr_pool_run(tally.pool, work_outside, &tally, PIECES);
        for (int k = 0; k < PIECES; k++) assert_int_equal(tally.done[k], 1);
        tsr_pool_destroy(tally.pool);
    }
}

static void sleep_ms(long ms)
{
    const struct timespec time = {0, ms * 1000000};
    nanosleep(&time, NULL);
}

static void await(const atomic_int *count, int least)
{
    while (atomic_load(count) < least) sleep_ms(1);
}

static _Thread_local bool is_caller;
static atomic_int helper_has_begun, finished_pieces;

/* The caller's piece ends once a helper has begun the other piece, which takes long. */
static void work_unevenly(void *context, unsigned index)
{
    (void)context;
    (void)index;
    if (is_caller) {
        await(&helper_has_begun, 1);
    } else {
        atomic_store(&helper_has_begun, 1);
        sleep_ms(20);
    }
    atomic_fetch_add(&finished_pieces, 1);
}

/* A run returns when all pieces have returned, also those of other threads. */
TEST(runs_wait_for_others)
{
    is_caller = true;
    for (int round = 0; round < 5; round++) {
        struct tsr_pool *pool = must(tsr_pool_create(2));
        if (tsr_pool_threads(pool) < 2) { /* fewer threads than asked for are not an error */
            tsr_pool_destroy(pool);
            skip();
        }
        atomic_store(&helper_has_begun, 0);
        atomic_store(&finished_pieces, 0);
        tsr_pool_run(pool, work_unevenly, NULL, 2);
        const int finished = atomic_load(&finished_pieces);
        tsr_pool_destroy(pool);
        assert_int_equal(finished, 2);
    }
}

static atomic_int begun, working;
static atomic_bool too_many;

struct resting {
    struct tsr_pool *pool;
    int seats, together; /* together: the number that must have begun before any goes on */
};

/* Rests until r->together pieces have begun. Checks that no more threads than seats work at once. */
static void work_and_rest(void *context, unsigned index)
{
    const struct resting *r = context;
    (void)index;
    if (atomic_fetch_add(&working, 1) + 1 > r->seats) atomic_store(&too_many, true);
    atomic_fetch_add(&begun, 1);
    sleep_ms(1);
    atomic_fetch_sub(&working, 1);
    tsr_pool_rest(r->pool, 1);
    await(&begun, r->together);
    tsr_pool_resume(r->pool);
    if (atomic_fetch_add(&working, 1) + 1 > r->seats) atomic_store(&too_many, true);
    sleep_ms(1);
    atomic_fetch_sub(&working, 1);
    atomic_fetch_add(&finished_pieces, 1);
}

/* Other threads work in the seats of those that rest: all pieces begin, and no more threads work than seats. */
TEST(others_work_meanwhile)
{
    enum { RESTING = 12 };
    for (int seats = 1; seats <= 4; seats++) {
        struct resting r = {must(tsr_pool_create_resting(seats, RESTING, 1000)), seats, RESTING};
        if (tsr_pool_threads(r.pool) < seats) {
            tsr_pool_destroy(r.pool);
            skip();
        }
        atomic_store(&begun, 0);
        atomic_store(&finished_pieces, 0);
        tsr_pool_run(r.pool, work_and_rest, &r, 3 * RESTING);
        tsr_pool_destroy(r.pool);
        assert_int_equal(finished_pieces, 3 * RESTING);
        assert_false(too_many);
    }
}

static void rest_alone(void *context, unsigned index)
{
    const struct resting *r = context;
    (void)index;
    tsr_pool_rest(r->pool, 10);
    if (atomic_fetch_add(&begun, 1) + 1 > r->together) atomic_store(&too_many, true);
    sleep_ms(5);
    atomic_fetch_sub(&begun, 1);
    tsr_pool_resume(r->pool);
}

/* Pieces at work. Each waits until as many as may be are there; most never goes above that. */
struct crowd {
    atomic_int here, most;
    int wanted;
};

static void join_crowd(void *context, unsigned index)
{
    struct crowd *const c = context;
    const int here = atomic_fetch_add(&c->here, 1) + 1;
    (void)index;
    for (int most = atomic_load(&c->most); here > most && !atomic_compare_exchange_weak(&c->most, &most, here);)
        continue;
    while (atomic_load(&c->most) < c->wanted) sched_yield();
    for (int i = 0; i < 200; i++) sched_yield(); /* one more would come meanwhile */
    atomic_fetch_sub(&c->here, 1);
}

TEST(seats_set_aside)
{
    struct tsr_pool *const pool = must(tsr_pool_create_resting(16, 4, 1000));
    if (tsr_pool_threads(pool) < 16) skip();
    struct crowd fewer = {.wanted = 14}, all = {.wanted = 16};
    tsr_pool_set_aside(pool, true);
    tsr_pool_run(pool, join_crowd, &fewer, 200);
    assert_int_equal(atomic_load(&fewer.most), 14);
    tsr_pool_set_aside(pool, false);
    tsr_pool_run(pool, join_crowd, &all, 200);
    assert_int_equal(atomic_load(&all.most), 16);
    tsr_pool_destroy(pool);
}

/* While resting threads hold too much, no piece begins. At most three rest: two up to just above the bound, and the
 * caller. */
TEST(resting_is_bounded)
{
    struct resting r = {must(tsr_pool_create_resting(1, 8, 19)), 1, 3};
    atomic_store(&begun, 0);
    tsr_pool_run(r.pool, rest_alone, &r, 40);
    tsr_pool_destroy(r.pool);
    assert_false(too_many);
}

enum { SLEEPERS = 60 };

struct sleeping {
    struct tsr_pool *pool;
    int seats;
    _Atomic(struct tsr_sleeper *) sleeper[SLEEPERS];
};

/* Sleeps until another thread wakes it, which may happen before it sleeps. Before that it may rest. */
static void work_and_sleep(void *context, unsigned index)
{
    struct sleeping *s = context;
    atomic_store(&s->sleeper[index], tsr_pool_sleeper());
    if (index % 3 == 1) sleep_ms(2);
    if (index % 5 == 2) tsr_pool_rest(s->pool, 1);
    tsr_pool_sleep(s->pool, 1);
    if (atomic_fetch_add(&working, 1) + 1 > s->seats) atomic_store(&too_many, true);
    sleep_ms(1);
    atomic_fetch_sub(&working, 1);
    atomic_fetch_add(&finished_pieces, 1);
}

/* Wakes threads as the ends of a GPU's batches do: some at once, and not in the order in which they began. */
static void *wake_all(void *context)
{
    struct sleeping *s = context;
    for (int left = SLEEPERS; left > 0;)
        for (int i = SLEEPERS - 1; i >= 0; i--) {
            struct tsr_sleeper *const sleeper = atomic_exchange(&s->sleeper[i], NULL);
            if (!sleeper) continue;
            tsr_pool_wake(s->pool, sleeper);
            left--;
        }
    return NULL;
}

/* Each thread wakes once, with a seat. A thread that does not work for the pool may sleep, too. */
TEST(woken_with_a_seat)
{
    for (int seats = 1; seats <= 4; seats++) {
        static struct sleeping s;
        pthread_t waker;
        s.pool = must(tsr_pool_create_resting(seats, 12, 1000));
        s.seats = tsr_pool_threads(s.pool);
        atomic_store(&finished_pieces, 0);
        atomic_store(&too_many, false);
        assert_int_equal(pthread_create(&waker, NULL, wake_all, &s), 0);
        tsr_pool_run(s.pool, work_and_sleep, &s, SLEEPERS - 1);
        work_and_sleep(&s, SLEEPERS - 1);
        pthread_join(waker, NULL);
        tsr_pool_destroy(s.pool);
        assert_int_equal(finished_pieces, SLEEPERS);
        assert_false(too_many);
    }
}

static atomic_int begun_before_resumed;

static void rest_as_the_first(void *context, unsigned index)
{
    const struct resting *r = context;
    atomic_fetch_add(&begun, 1);
    if (index == 0) {
        tsr_pool_rest(r->pool, 1);
        await(&begun, 2);
        tsr_pool_resume(r->pool);
        atomic_store(&begun_before_resumed, atomic_load(&begun));
    } else {
        sleep_ms(2);
    }
}

/* New pieces may go before a thread that wants its seat again, but only two at a time. */
TEST(who_rested_goes_on)
{
    enum { MANY = 200 };
    struct resting r = {must(tsr_pool_create_resting(1, 8, 1000)), 1, 0};
    atomic_store(&begun, 0);
    tsr_pool_run(r.pool, rest_as_the_first, &r, MANY);
    tsr_pool_destroy(r.pool);
    assert_int_equal(begun, MANY);
    expect(begun_before_resumed < MANY / 2, "%d pieces went first", begun_before_resumed);
}

enum { WANTING = 6, INNER_PIECES = 60, ROUNDS = 20 };

/* Pieces that rest, and one that shares the pieces of an inner run. */
struct inner_run {
    struct tsr_pool *pool;
    atomic_int begun, wanting, resumed, before_resumed;
};

static _Thread_local bool runs_pieces;

/* Counts the pieces that threads other than the run's own begin while all that rested wait for their seats. */
static void work_as_piece(void *context, unsigned index)
{
    struct inner_run *r = context;
    (void)index;
    if (!runs_pieces && atomic_load(&r->wanting) == WANTING && atomic_load(&r->resumed) < WANTING)
        atomic_fetch_add(&r->before_resumed, 1);
    atomic_fetch_add(&r->begun, 1);
    sleep_ms(1);
}

static void rest_or_run(void *context, unsigned index)
{
    struct inner_run *r = context;
    if (index == WANTING) {
        runs_pieces = true;
        tsr_pool_run(r->pool, work_as_piece, r, INNER_PIECES);
        runs_pieces = false;
        return;
    }
    tsr_pool_rest(r->pool, 1);
    await(&r->begun, 3);
    atomic_fetch_add(&r->wanting, 1);
    tsr_pool_resume(r->pool);
    atomic_fetch_add(&r->resumed, 1);
    sleep_ms(2);
}

/* Pieces of an inner run do not go before threads that want their seats again. A thread may be late to its queue, so
 * this need not hold in all rounds. */
TEST(pieces_go_after_who_rested)
{
    int rounds = 0;
    for (int round = 0; round < ROUNDS; round++) {
        struct inner_run r = {.pool = must(tsr_pool_create_resting(2, WANTING + 2, 1000))};
        if (tsr_pool_threads(r.pool) < 2) {
            tsr_pool_destroy(r.pool);
            skip();
        }
        tsr_pool_run(r.pool, rest_or_run, &r, WANTING + 1);
        tsr_pool_destroy(r.pool);
        assert_int_equal(r.begun, INNER_PIECES);
        rounds += r.before_resumed > 2;
    }
    expect(rounds < ROUNDS / 2, "pieces went first in %d rounds", rounds);
}

enum { RETURNING = 6, HOLDING = 2 };

/* Threads that sleep until all seats are held, and two threads that hold the seats and wake them. */
struct returning {
    struct tsr_pool *pool;
    _Atomic(struct tsr_sleeper *) sleeper[RETURNING];
    int processor[RETURNING]; /* where the thread ran before it slept */
    atomic_int begun, asleep, holding, all_woken, awake, moved;
};

/* Waits until `sleepers` threads sleep and `holders` threads hold seats. */
static void await_all(const atomic_int *asleep, int sleepers, const atomic_int *holding, int holders)
{
    await(asleep, sleepers);
    await(holding, holders);
    sleep_ms(2); /* the last one counted itself just before it sleeps */
}

/* The first processor that the thread may run on. With a seat it is the only one. */
static int own_processor(void)
{
    cpu_set_t processors;
    int first = 0;
    assert_int_equal(sched_getaffinity(0, sizeof processors, &processors), 0);
    while (!CPU_ISSET((size_t)first, &processors)) first++;
    return first;
}

/* Wakes first the threads of one processor, then those of the other. In this order, threads would change seats if each
 * took the seat that is free. */
static void wake_by_processor(struct returning *r)
{
    for (int i = 0; i < RETURNING; i++)
        if (r->processor[i] == r->processor[0]) tsr_pool_wake(r->pool, atomic_load(&r->sleeper[i]));
    for (int i = 0; i < RETURNING; i++)
        if (r->processor[i] != r->processor[0]) tsr_pool_wake(r->pool, atomic_load(&r->sleeper[i]));
}

/* Threads go on two at a time, so that both seats serve equally many. */
static void await_the_other(atomic_int *count)
{
    const int number = atomic_fetch_add(count, 1);
    await(count, number / HOLDING * HOLDING + HOLDING);
}

static void return_to_seat(void *context, unsigned index)
{
    struct returning *r = context;
    if (index < RETURNING) {
        await_the_other(&r->begun);
        r->processor[index] = own_processor();
        atomic_store(&r->sleeper[index], tsr_pool_sleeper());
        atomic_fetch_add(&r->asleep, 1);
        tsr_pool_sleep(r->pool, 1);
        atomic_fetch_add(&r->moved, own_processor() != r->processor[index]);
        await_the_other(&r->awake);
        return;
    }
    const bool wakes = atomic_fetch_add(&r->holding, 1) + 1 == HOLDING;
    await_all(&r->asleep, RETURNING, &r->holding, HOLDING);
    if (wakes) {
        wake_by_processor(r);
        atomic_store(&r->all_woken, 1);
    }
    await(&r->all_woken, 1);
}

/* Threads that were woken get the seat that they had, if it is free as soon as another. A thread that slept too late
 * was woken before that, and its seat was handed on. This is rare. */
TEST(seats_are_those_had_last)
{
    cpu_set_t before, two;
    int left = HOLDING, moved = 0;
    assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
    if (CPU_COUNT(&before) < HOLDING) skip();
    CPU_ZERO(&two);
    for (size_t i = 0; left > 0; i++) {
        if (!CPU_ISSET(i, &before)) continue;
        CPU_SET(i, &two);
        left--;
    }
    assert_int_equal(sched_setaffinity(0, sizeof two, &two), 0);
    for (int round = 0; round < ROUNDS; round++) {
        struct returning r = {.pool = must(tsr_pool_create_resting(HOLDING, RETURNING + HOLDING, 1000))};
        tsr_pool_run(r.pool, return_to_seat, &r, RETURNING + HOLDING);
        tsr_pool_destroy(r.pool);
        moved += r.moved;
    }
    assert_int_equal(sched_setaffinity(0, sizeof before, &before), 0);
    expect(moved < ROUNDS * RETURNING / 4, "%d threads moved", moved);
}

enum { NEW_SEATS_OF = 4, WOKEN = 12, HELD = NEW_SEATS_OF - 1 };

/* Three kinds of threads: those that sleep; those that hold all seats, with the caller, while the others are woken; and
 * those with new pieces. */
struct seats_given {
    struct tsr_pool *pool;
    pthread_t caller;
    _Atomic(struct tsr_sleeper *) sleeper[WOKEN];
    atomic_int begun, asleep, holding, is_released, woken, fresh, is_over;
    int given_to_woken, given_to_fresh; /* of the seats that were held */
};

/* The caller never gives its seat to others between pieces, so it stays in this piece until it has counted them. */
static void count_given_seats(struct seats_given *s)
{
    await_all(&s->asleep, WOKEN, &s->holding, HELD);
    for (int i = 0; i < WOKEN; i++) tsr_pool_wake(s->pool, atomic_load(&s->sleeper[i]));
    atomic_store(&s->is_released, 1);
    while (atomic_load(&s->woken) + atomic_load(&s->fresh) < HELD) sleep_ms(1);
    sleep_ms(5);
    s->given_to_woken = atomic_load(&s->woken);
    s->given_to_fresh = atomic_load(&s->fresh);
    atomic_store(&s->is_over, 1);
}

static void get_a_seat(void *context, unsigned index)
{
    struct seats_given *s = context;
    (void)index;
    if (pthread_equal(pthread_self(), s->caller)) {
        if (!atomic_load(&s->is_over)) count_given_seats(s);
        return;
    }
    const int number = atomic_fetch_add(&s->begun, 1);
    if (number < WOKEN) {
        atomic_store(&s->sleeper[number], tsr_pool_sleeper());
        atomic_fetch_add(&s->asleep, 1);
        tsr_pool_sleep(s->pool, 1);
        atomic_fetch_add(&s->woken, 1);
        await(&s->is_over, 1);
    } else if (number < WOKEN + HELD) {
        atomic_fetch_add(&s->holding, 1);
        await(&s->is_released, 1);
    } else {
        atomic_fetch_add(&s->fresh, 1);
        await(&s->is_over, 1);
    }
}

/* One of four seats goes to new pieces, even if many threads want a seat. */
TEST(new_files_have_their_seats)
{
    struct seats_given s = {.pool = must(tsr_pool_create_resting(NEW_SEATS_OF, 4 * NEW_SEATS_OF, 1000)),
                            .caller = pthread_self()};
    if (tsr_pool_threads(s.pool) < NEW_SEATS_OF) {
        tsr_pool_destroy(s.pool);
        skip();
    }
    tsr_pool_run(s.pool, get_a_seat, &s, WOKEN + HELD + 2 * NEW_SEATS_OF);
    tsr_pool_destroy(s.pool);
    assert_int_equal(s.given_to_fresh, 1);
    assert_int_equal(s.given_to_woken, HELD - 1);
}

TEST(threads_at_hand)
{
    assert_true(tsr_available_threads() >= 1);
    tsr_pool_destroy(NULL);
}

struct policies {
    struct tsr_pool *pool;
    pthread_t caller;
    atomic_int helpers, wrong;
};

static void hurry_once(void *context, unsigned index)
{
    struct policies *p = context;
    const bool helps = !pthread_equal(pthread_self(), p->caller);
    const int usual = helps ? SCHED_BATCH : SCHED_OTHER;
    (void)index;
    sleep_ms(1);
    atomic_fetch_add(&p->helpers, helps);
    atomic_fetch_add(&p->wrong, sched_getscheduler(0) != usual);
    tsr_pool_hurry(p->pool, true);
    atomic_fetch_add(&p->wrong, sched_getscheduler(0) != SCHED_OTHER);
    tsr_pool_hurry(p->pool, false);
    atomic_fetch_add(&p->wrong, sched_getscheduler(0) != usual);
}

/* In a hurry, helpers have the usual policy, so that threads that they wake do not go before them; else they have
 * SCHED_BATCH. The caller's policy does not change. */
TEST(who_hurries_goes_first)
{
    const struct sched_param none = {0};
    if (sched_getscheduler(0) != SCHED_OTHER || sched_setscheduler(0, SCHED_BATCH, &none) != 0 ||
        sched_setscheduler(0, SCHED_OTHER, &none) != 0)
        skip();
    cpu_set_t processors;
    assert_int_equal(sched_getaffinity(0, sizeof processors, &processors), 0);
    const int least = CPU_COUNT(&processors) > 1 ? CPU_COUNT(&processors) : 2;
    for (int threads = least; threads <= 4 * least; threads *= 2) { /* helpers that rest start others */
        struct policies p = {must(tsr_pool_create_resting(threads, 4, 1 << 20)), pthread_self(), 0, 0};
        for (int round = 0; round < 20 && atomic_load(&p.helpers) == 0; round++)
            tsr_pool_run(p.pool, hurry_once, &p, 40);
        assert_true(atomic_load(&p.helpers) > 0);
        assert_int_equal(atomic_load(&p.wrong), 0);
        tsr_pool_destroy(p.pool);
    }
}

/* ---- Memory ------------------------------------------------------------------------------------------------- */

/* The bytes reserved of each lot, counted by the threads that hold them. */
struct held {
    struct tsr_pool *pool;
    atomic_size_t bytes[TSR_MEMORY_LOTS];
    atomic_int done, inner, too_much;
};

static void take(struct held *held, enum tsr_memory_lot lot, size_t bytes)
{
    const bool taken = tsr_pool_reserve(held->pool, lot, bytes);
    const size_t all = atomic_fetch_add(&held->bytes[lot], bytes) + bytes;
    if (!taken || all > tsr_pool_memory(held->pool, lot)) atomic_fetch_add(&held->too_much, 1);
}

static void give(struct held *held, enum tsr_memory_lot lot, size_t bytes)
{
    atomic_fetch_sub(&held->bytes[lot], bytes);
    tsr_pool_release(held->pool, lot, bytes);
}

static void work_in_memory(void *context, unsigned index)
{
    struct held *held = context;
    (void)index;
    atomic_fetch_add(&held->inner, 1);
}

enum { LOT = 1000, MEMORY_TASKS = 200, MEMORY_PIECES = 3 };

/* Sizes from nothing to all of the lot. */
static void reserve_once(void *context, unsigned index)
{
    struct held *held = context;
    struct rng r = {index};
    const size_t bytes = index % 10 == 0 ? LOT : rng_below(&r, LOT + 1);
    take(held, TSR_MEMORY_OF_FILES, bytes);
    if (index % 4 == 0) sleep_ms(1);
    tsr_pool_run(held->pool, work_in_memory, held, MEMORY_PIECES);
    give(held, TSR_MEMORY_OF_FILES, bytes);
    atomic_fetch_add(&held->done, 1);
}

static void *reserve_outside(void *context)
{
    for (unsigned i = 0; i < MEMORY_TASKS; i++) reserve_once(context, i);
    return NULL;
}

/* All threads together, with one that does not work for the pool, never hold more than the lot. */
TEST(memory_is_bounded)
{
    for (int threads = 1; threads <= 4; threads++) {
        struct held held = {.pool = must(tsr_pool_create_resting(threads, threads % 2 ? 4 : 0, 1000))};
        pthread_t outside;
        tsr_pool_set_memory(held.pool, TSR_MEMORY_OF_FILES, LOT);
        assert_int_equal(pthread_create(&outside, NULL, reserve_outside, &held), 0);
        tsr_pool_run_tasks(held.pool, reserve_once, &held, MEMORY_TASKS);
        pthread_join(outside, NULL);
        tsr_pool_destroy(held.pool);
        assert_int_equal(held.done, 2 * MEMORY_TASKS);
        assert_int_equal(held.inner, 2 * MEMORY_TASKS * MEMORY_PIECES);
        assert_int_equal(held.too_much, 0);
    }
}

TEST(tasks_once_each)
{
    static struct tally tally;
    for (int threads = 1; threads <= 4; threads++) {
        tally.pool = must(tsr_pool_create(threads));
        memset(tally.done, 0, sizeof tally.done);
        memset(tally.inner, 0, sizeof tally.inner);
        tsr_pool_run_tasks(tally.pool, work_outside, &tally, PIECES);
        for (int k = 0; k < PIECES; k++) assert_int_equal(tally.done[k], 1);
        tsr_pool_destroy(tally.pool);
    }
}

/* More than a lot's limit is refused at once, whatever is reserved, and reserves nothing. Each lot has its own limit.
 */
TEST(memory_that_never_is)
{
    struct tsr_pool *pool = must(tsr_pool_create(2));
    for (enum tsr_memory_lot lot = 0; lot < TSR_MEMORY_LOTS; lot++) {
        assert_true(tsr_pool_memory(pool, lot) == SIZE_MAX);
        assert_true(tsr_pool_reserve(pool, lot, SIZE_MAX));
        tsr_pool_release(pool, lot, SIZE_MAX);
        tsr_pool_set_memory(pool, lot, LOT + (size_t)lot);
    }
    for (int round = 0; round < 3; round++) {
        for (enum tsr_memory_lot lot = 0; lot < TSR_MEMORY_LOTS; lot++) {
            const size_t limit = LOT + (size_t)lot;
            assert_true(tsr_pool_memory(pool, lot) == limit);
            assert_false(tsr_pool_reserve(pool, lot, limit + 1));
            assert_false(tsr_pool_reserve(pool, lot, SIZE_MAX));
            assert_true(tsr_pool_reserve(pool, lot, limit));
            assert_false(tsr_pool_reserve(pool, lot, limit + 1));
            assert_true(tsr_pool_reserve(pool, lot, 0));
        }
        for (enum tsr_memory_lot lot = 0; lot < TSR_MEMORY_LOTS; lot++) tsr_pool_release(pool, lot, LOT + (size_t)lot);
    }
    tsr_pool_destroy(pool);
}

enum { QUEUE = 6, SMALL = LOT / 10 };

/* A thread that reserves memory and releases it when told to. */
struct claimant {
    struct tsr_pool *pool;
    pthread_t thread;
    size_t bytes;
    atomic_int id, has_it, gives, *order;
    int place; /* in the order in which they got their memory */
};

static void *claim(void *context)
{
    struct claimant *c = context;
    atomic_store(&c->id, (int)gettid());
    tsr_pool_reserve(c->pool, TSR_MEMORY_OF_FILES, c->bytes);
    c->place = atomic_fetch_add(c->order, 1);
    atomic_store(&c->has_it, 1);
    await(&c->gives, 1);
    tsr_pool_release(c->pool, TSR_MEMORY_OF_FILES, c->bytes);
    return NULL;
}

static void begin_claim(struct claimant *c, struct tsr_pool *pool, size_t bytes, atomic_int *order)
{
    *c = (struct claimant){.pool = pool, .bytes = bytes, .order = order};
    assert_int_equal(pthread_create(&c->thread, NULL, claim, c), 0);
}

static char state_of_thread(int id)
{
    char path[64], state = '?';
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", id);
    FILE *file = must(fopen(path, "r"));
    const int fields = fscanf(file, "%*d (%*[^)]) %c", &state);
    fclose(file);
    return fields == 1 ? state : '?';
}

/* Whether Linux says of a thread what it does; not where /proc is not mounted. */
static bool shows_threads(void)
{
    return access("/proc/self/task", R_OK | X_OK) == 0;
}

/* Waits until the thread with this id has slept for a few ms: then it waits for memory. */
static void await_asleep(const atomic_int *id)
{
    await(id, 1);
    for (int asleep = 0; asleep < 4; sleep_ms(1)) asleep = state_of_thread(atomic_load(id)) == 'S' ? asleep + 1 : 0;
}

TEST(first_come_first_served)
{
    if (!shows_threads()) skip();
    struct tsr_pool *pool = must(tsr_pool_create(2));
    struct claimant c[QUEUE];
    atomic_int order = 0;
    tsr_pool_set_memory(pool, TSR_MEMORY_OF_FILES, LOT);
    assert_true(tsr_pool_reserve(pool, TSR_MEMORY_OF_FILES, LOT));
    for (int i = 0; i < QUEUE; i++) {
        begin_claim(&c[i], pool, LOT, &order);
        await_asleep(&c[i].id);
    }
    assert_int_equal(order, 0);
    for (int i = 0; i < QUEUE; i++) atomic_store(&c[i].gives, 1);
    tsr_pool_release(pool, TSR_MEMORY_OF_FILES, LOT);
    for (int i = 0; i < QUEUE; i++) pthread_join(c[i].thread, NULL);
    for (int i = 0; i < QUEUE; i++) expect(c[i].place == i, "number %d was served as number %d", i, c[i].place);
    tsr_pool_destroy(pool);
}

/* Small claims that come later do not go before a large one, though there is enough memory for them. The large one
 * waits only for earlier claims. */
TEST(large_claims_are_not_starved)
{
    if (!shows_threads()) skip();
    struct tsr_pool *pool = must(tsr_pool_create(2));
    struct claimant early, large, late[3];
    atomic_int order = 0;
    tsr_pool_set_memory(pool, TSR_MEMORY_OF_FILES, LOT);
    begin_claim(&early, pool, SMALL, &order);
    await(&early.has_it, 1);
    begin_claim(&large, pool, LOT, &order);
    await_asleep(&large.id);
    for (int i = 0; i < 3; i++) {
        begin_claim(&late[i], pool, SMALL, &order);
        await_asleep(&late[i].id);
    }
    for (int i = 0; i < 3; i++) assert_int_equal(late[i].has_it, 0);
    atomic_store(&early.gives, 1);
    await(&large.has_it, 1);
    for (int i = 0; i < 3; i++) await_asleep(&late[i].id);
    for (int i = 0; i < 3; i++) assert_int_equal(late[i].has_it, 0);
    atomic_store(&large.gives, 1);
    for (int i = 0; i < 3; i++) await(&late[i].has_it, 1); /* together */
    for (int i = 0; i < 3; i++) atomic_store(&late[i].gives, 1);
    for (int i = 0; i < 3; i++) pthread_join(late[i].thread, NULL);
    pthread_join(early.thread, NULL);
    pthread_join(large.thread, NULL);
    assert_int_equal(large.place, 1);
    tsr_pool_destroy(pool);
}

/* Two tasks on two threads. Each takes all memory. */
struct helping {
    struct tsr_pool *pool;
    bool waits; /* the other thread sleeps before the inner run begins */
    atomic_int begun, other, met, alone, strangers;
    pthread_t holder;
};

/* Waits for count to reach least. Returns false after 20 seconds. */
static bool comes_to(const atomic_int *count, int least)
{
    for (int ms = 0; ms < 20000 && atomic_load(count) < least; ms++) sleep_ms(1);
    return atomic_load(count) >= least;
}

/* Two threads must meet here to go on. */
static void meet(void *context, unsigned index)
{
    struct helping *h = context;
    (void)index;
    atomic_fetch_add(&h->met, 1);
    if (!comes_to(&h->met, 2)) atomic_fetch_add(&h->alone, 1);
}

static void look_who_works(void *context, unsigned index)
{
    struct helping *h = context;
    (void)index;
    atomic_fetch_add(&h->strangers, !pthread_equal(pthread_self(), h->holder));
    sleep_ms(1);
}

static void take_all(void *context, unsigned index)
{
    struct helping *h = context;
    (void)index;
    if (atomic_fetch_add(&h->begun, 1) == 0) {
        tsr_pool_reserve(h->pool, TSR_MEMORY_OF_FILES, LOT);
        h->holder = pthread_self();
        atomic_fetch_add(&h->begun, 1);
        await(&h->other, 1);
        if (h->waits) await_asleep(&h->other);
        tsr_pool_run(h->pool, meet, h, 2);
        tsr_pool_run_tasks(h->pool, look_who_works, h, 20);
    } else {
        await(&h->begun, 3);
        atomic_store(&h->other, (int)gettid());
        tsr_pool_reserve(h->pool, TSR_MEMORY_OF_FILES, LOT);
    }
    tsr_pool_release(h->pool, TSR_MEMORY_OF_FILES, LOT);
}

/* A thread that waits for memory works on the inner runs of the threads that have it, but not on tasks: these may
 * themselves wait for memory, and so for this thread's turn. */
TEST(who_waits_helps)
{
    for (int round = 0; round < 10; round++) {
        struct helping h = {.pool = must(tsr_pool_create(2)), .waits = round % 2 && shows_threads()};
        if (tsr_pool_threads(h.pool) < 2) {
            tsr_pool_destroy(h.pool);
            skip();
        }
        tsr_pool_set_memory(h.pool, TSR_MEMORY_OF_FILES, LOT);
        tsr_pool_run_tasks(h.pool, take_all, &h, 2);
        tsr_pool_destroy(h.pool);
        assert_int_equal(h.met, 2);
        assert_int_equal(h.alone, 0);
        assert_int_equal(h.strangers, 0);
    }
}

/* The first piece holds all memory and rests until the third has begun. The second waits for memory. */
static void work_in_its_place(void *context, unsigned index)
{
    struct helping *h = context;
    if (index < 2) tsr_pool_reserve(h->pool, TSR_MEMORY_OF_FILES, LOT);
    if (index == 0) tsr_pool_rest(h->pool, 0);
    atomic_fetch_add(&h->begun, index != 1);
    if (index == 0 && !comes_to(&h->begun, 2)) atomic_fetch_add(&h->alone, 1);
    if (index < 2) tsr_pool_release(h->pool, TSR_MEMORY_OF_FILES, LOT);
    if (index == 0) tsr_pool_resume(h->pool);
}

/* While a thread waits for memory, another may have its seat. */
TEST(who_waits_gives_its_seat)
{
    for (int round = 0; round < 5; round++) {
        struct helping h = {.pool = must(tsr_pool_create_resting(1, 4, 1000))};
        tsr_pool_set_memory(h.pool, TSR_MEMORY_OF_FILES, LOT);
        tsr_pool_run_tasks(h.pool, work_in_its_place, &h, 3);
        tsr_pool_destroy(h.pool);
        assert_int_equal(h.begun, 2);
        assert_int_equal(h.alone, 0);
    }
}

/* Groups of tasks like those of a series. Each group reserves memory for its results and releases it when all groups
 * before it are done. Each of its tasks takes all memory for headers, then some for its file. */
enum { GROUPS = 30, GROUP_TASKS = 5 };

struct grouped {
    struct held held;
    pthread_mutex_t lock;
    atomic_int roomy; /* the number of groups that have their memory for results */
    int done;
    bool is_done[GROUPS + 1];
};

static size_t room_of(int group)
{
    return group % 7 == 3 ? LOT : 1 + (size_t)group * 37 % (LOT / 3);
}

static void read_and_code(void *context, unsigned index)
{
    struct grouped *g = context;
    const size_t bytes = index % 3 == 1 ? LOT : 100 + 150 * (size_t)index;
    take(&g->held, TSR_MEMORY_OF_HEADERS, LOT);
    take(&g->held, TSR_MEMORY_OF_FILES, bytes);
    give(&g->held, TSR_MEMORY_OF_HEADERS, LOT);
    tsr_pool_run(g->held.pool, work_in_memory, &g->held, MEMORY_PIECES);
    give(&g->held, TSR_MEMORY_OF_FILES, bytes);
    atomic_fetch_add(&g->held.done, 1);
}

static void make_group(void *context, unsigned index)
{
    struct grouped *g = context;
    tsr_pool_rest(g->held.pool, 0);
    await(&g->roomy, (int)index);
    tsr_pool_resume(g->held.pool);
    take(&g->held, TSR_MEMORY_OF_RESULTS, room_of((int)index));
    atomic_fetch_add(&g->roomy, 1);
    tsr_pool_run_tasks(g->held.pool, read_and_code, g, GROUP_TASKS);
    pthread_mutex_lock(&g->lock);
    g->is_done[index] = true;
    for (; g->is_done[g->done]; g->done++) give(&g->held, TSR_MEMORY_OF_RESULTS, room_of(g->done));
    pthread_mutex_unlock(&g->lock);
}

/* Reservations of all lots in the order that the header allows: no thread waits for ever. */
TEST(lots_within_lots)
{
    for (int threads = 1; threads <= 4; threads++) {
        for (int resting = 0; resting <= 4; resting += 4) {
            static struct grouped g;
            memset(&g, 0, sizeof g);
            g.held.pool = must(tsr_pool_create_resting(threads, resting, 1000));
            pthread_mutex_init(&g.lock, NULL);
            for (enum tsr_memory_lot lot = 0; lot < TSR_MEMORY_LOTS; lot++) tsr_pool_set_memory(g.held.pool, lot, LOT);
            tsr_pool_run_tasks(g.held.pool, make_group, &g, GROUPS);
            tsr_pool_destroy(g.held.pool);
            pthread_mutex_destroy(&g.lock);
            assert_int_equal(g.done, GROUPS);
            assert_int_equal(g.held.done, GROUPS * GROUP_TASKS);
            assert_int_equal(g.held.inner, GROUPS * GROUP_TASKS * MEMORY_PIECES);
            assert_int_equal(g.held.too_much, 0);
            for (enum tsr_memory_lot lot = 0; lot < TSR_MEMORY_LOTS; lot++) assert_int_equal(g.held.bytes[lot], 0);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_piece_once),
                                       cmocka_unit_test(work_within_work),
                                       cmocka_unit_test(runs_wait_for_others),
                                       cmocka_unit_test(others_work_meanwhile),
                                       cmocka_unit_test(seats_set_aside),
                                       cmocka_unit_test(resting_is_bounded),
                                       cmocka_unit_test(woken_with_a_seat),
                                       cmocka_unit_test(who_rested_goes_on),
                                       cmocka_unit_test(pieces_go_after_who_rested),
                                       cmocka_unit_test(who_hurries_goes_first),
                                       cmocka_unit_test(seats_are_those_had_last),
                                       cmocka_unit_test(new_files_have_their_seats),
                                       cmocka_unit_test(threads_at_hand),
                                       cmocka_unit_test(tasks_once_each),
                                       cmocka_unit_test(memory_is_bounded),
                                       cmocka_unit_test(memory_that_never_is),
                                       cmocka_unit_test(first_come_first_served),
                                       cmocka_unit_test(large_claims_are_not_starved),
                                       cmocka_unit_test(who_waits_helps),
                                       cmocka_unit_test(who_waits_gives_its_seat),
                                       cmocka_unit_test(lots_within_lots)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
