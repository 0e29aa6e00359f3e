/* A pool of threads from within: what thread_pool.c and seats.c share. */
#ifndef TSR_KERNELS_POOL_SEATS_H
#define TSR_KERNELS_POOL_SEATS_H

#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/types.h>

#include "thread_pool.h"

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
    int resting, few; /* threads that rest, or that want their seat again; of how many tsr_may_begin allows pieces */
    int ahead;        /* pieces that began since a thread that wanted a seat got one */
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

extern _Thread_local struct tsr_pool *tsr_seated_in;
extern _Thread_local struct tsr_sleeper tsr_this_thread;

/* Tries for a while. False: it has not become true. */
bool tsr_come_true(bool (*is_true)(void *context), void *context);
bool tsr_is_woken(void *sleeper);
void tsr_wait_until_woken(struct tsr_sleeper *self);
void tsr_wake(const struct tsr_pool *pool, struct tsr_sleeper *sleeper);
void tsr_bind_to_seat(const struct tsr_pool *pool, struct tsr_sleeper *sleeper);
void tsr_unbind(const struct tsr_pool *pool);
bool tsr_set_policy(int from, int to);

/* Those that follow are called with the lock held. */

struct run *tsr_open_run(const struct tsr_pool *pool);
bool tsr_may_begin(const struct tsr_pool *pool);
void tsr_begin_piece(struct tsr_pool *pool, struct tsr_sleeper *helper);
void tsr_unseat(struct tsr_pool *pool, struct tsr_sleeper *sleeper);
struct group *tsr_group_of(const struct tsr_pool *pool, const struct tsr_sleeper *sleeper);
struct tsr_sleeper *tsr_hand_seat(struct tsr_pool *pool);
struct tsr_sleeper *tsr_offer_seat(struct tsr_pool *pool);
void tsr_want_seat(struct tsr_pool *pool, struct tsr_sleeper *sleeper);
void tsr_take_seat(struct tsr_pool *pool);
struct tsr_sleeper *tsr_give_seat(struct tsr_pool *pool);

/* thread_pool.c: what a helper does; argument: the pool. */
void *tsr_help(void *argument);

#endif
