/* kernels/thread_pool.h: every piece of work is done once, nested ones too. */
#define _POSIX_C_SOURCE 200809L /* nanosleep */
#include "support.h"

#include <stdatomic.h>
#include <time.h>

#include "kernels/thread_pool.h"

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

static _Thread_local bool is_caller;
static atomic_int helper_has_begun, finished_pieces;

/* The caller's piece ends once a helper holds the other one, which takes long. */
static void work_unevenly(void *context, unsigned index)
{
    (void)context;
    (void)index;
    if (is_caller) {
        while (!atomic_load(&helper_has_begun)) sleep_ms(1);
    } else {
        atomic_store(&helper_has_begun, 1);
        sleep_ms(20);
    }
    atomic_fetch_add(&finished_pieces, 1);
}

/* A run returns when all pieces have, also those that other threads hold. */
TEST(runs_wait_for_others)
{
    is_caller = true;
    for (int round = 0; round < 5; round++) {
        struct tsr_pool *pool = must(tsr_pool_create(2));
        if (tsr_pool_threads(pool) < 2) { /* fewer than asked for are no error */
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

TEST(threads_at_hand)
{
    assert_true(tsr_available_threads() >= 1);
    tsr_pool_destroy(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_piece_once), cmocka_unit_test(work_within_work),
                                       cmocka_unit_test(runs_wait_for_others), cmocka_unit_test(threads_at_hand)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
