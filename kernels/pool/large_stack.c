/* Threads with large stacks; see the header. */
#define _GNU_SOURCE /* pthread_getattr_np */
#include "large_stack.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/resource.h>

/* What a call of the library takes is at most two thirds of this (tests/api/stacks.c). */
static const size_t enough = TSR_STACK_BYTES / 4 * 3;

int tsr_start_thread(pthread_t *thread, void *(*work)(void *context), void *context)
{
    pthread_attr_t attributes;
    int error = pthread_attr_init(&attributes);
    if (error != 0) return error;
    error = pthread_attr_setstacksize(&attributes, TSR_STACK_BYTES);
    if (error == 0) error = pthread_create(thread, &attributes, work, context);
    pthread_attr_destroy(&attributes);
    return error;
}

/* ---- What is left of a stack ------------------------------------------------------------------------------ */

/* Where the calling thread's stack begins and ends; 0 to 0: that is not known, without /proc for example. */
struct range {
    bool is_known;
    uintptr_t low, high;
};
static _Thread_local struct range stack;

/* The stack of the first thread ends behind the path of the program, which Linux puts there, and may grow down to the
 * process's limit: below it are 128 MiB without mappings. pthread_getattr_np reads all lines of /proc/self/maps to find
 * that. False: this thread has another stack. */
static bool find_first_stack(uintptr_t here)
{
    enum { MOST = 8 << 20, BEHIND = 1 + sizeof(void *) };
    struct rlimit limit;
    const char *const path = (const char *)(uintptr_t)getauxval(AT_EXECFN);
    if (!path || getrlimit(RLIMIT_STACK, &limit) != 0) return false;
    const uintptr_t high = (uintptr_t)path + strlen(path) + BEHIND,
                    bytes = limit.rlim_cur < MOST ? (uintptr_t)limit.rlim_cur : MOST;
    if (here >= high || high - here > bytes) return false;
    stack.low = high - bytes;
    stack.high = high;
    return true;
}

static void find_stack(void)
{
    pthread_attr_t attributes;
    void *low;
    size_t size, guard;
    stack.is_known = true;
    if (find_first_stack((uintptr_t)__builtin_frame_address(0))) return;
    if (pthread_getattr_np(pthread_self(), &attributes) != 0) return;
    if (pthread_attr_getstack(&attributes, &low, &size) == 0 && pthread_attr_getguardsize(&attributes, &guard) == 0) {
        stack.low = (uintptr_t)low + guard;
        stack.high = (uintptr_t)low + size;
    }
    pthread_attr_destroy(&attributes);
}

/* A fiber's stack, for example, lies outside of its thread's: little is taken to be left of it. */
bool tsr_has_large_stack(void)
{
    const int error = errno;
    if (!stack.is_known) find_stack();
    errno = error;
    const uintptr_t here = (uintptr_t)__builtin_frame_address(0);
    return here >= stack.low && here < stack.high && here - stack.low >= enough;
}

/* ---- Deputies --------------------------------------------------------------------------------------------- */

struct request {
    void (*work)(void *context);
    void *context;
};

/* A thread with a large stack, and the thread that it works for. The lock guards state and requests. */
struct deputy {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    enum deputy_state { IDLE, WORKS, CALLS_BACK, IS_DONE, ENDS } state;
    struct request request; /* of the caller to the deputy */
    struct request back;    /* of the deputy to the caller */
    struct deputy *next, *next_idle;
};

struct tsr_deputies {
    pthread_mutex_t lock;
    struct deputy *all, *idle;
};

static _Thread_local struct deputy *this_deputy; /* while it works for a caller */

/* Called with the lock held. */
static void change(struct deputy *deputy, enum deputy_state state)
{
    deputy->state = state;
    pthread_cond_broadcast(&deputy->changed);
}

static void *serve(void *context)
{
    struct deputy *const self = context;
    pthread_mutex_lock(&self->lock);
    for (;;) {
        while (self->state != WORKS && self->state != ENDS) pthread_cond_wait(&self->changed, &self->lock);
        if (self->state == ENDS) break;
        const struct request request = self->request;
        pthread_mutex_unlock(&self->lock);
        this_deputy = self;
        request.work(request.context);
        this_deputy = NULL;
        pthread_mutex_lock(&self->lock);
        change(self, IS_DONE);
    }
    pthread_mutex_unlock(&self->lock);
    return NULL;
}

static struct deputy *start_deputy(void)
{
    struct deputy *const deputy = calloc(1, sizeof *deputy);
    if (!deputy) return NULL;
    pthread_mutex_init(&deputy->lock, NULL);
    pthread_cond_init(&deputy->changed, NULL);
    if (tsr_start_thread(&deputy->thread, serve, deputy) == 0) return deputy;
    pthread_cond_destroy(&deputy->changed);
    pthread_mutex_destroy(&deputy->lock);
    free(deputy);
    return NULL;
}

struct tsr_deputies *tsr_deputies_create(void)
{
    struct tsr_deputies *const deputies = calloc(1, sizeof *deputies);
    if (deputies) pthread_mutex_init(&deputies->lock, NULL);
    return deputies;
}

void tsr_deputies_destroy(struct tsr_deputies *deputies)
{
    if (!deputies) return;
    for (struct deputy *deputy = deputies->all, *next; deputy; deputy = next) {
        next = deputy->next;
        pthread_mutex_lock(&deputy->lock);
        change(deputy, ENDS);
        pthread_mutex_unlock(&deputy->lock);
        pthread_join(deputy->thread, NULL);
        pthread_cond_destroy(&deputy->changed);
        pthread_mutex_destroy(&deputy->lock);
        free(deputy);
    }
    pthread_mutex_destroy(&deputies->lock);
    free(deputies);
}

/* An idle deputy, or a new one. NULL: no thread can be started. */
static struct deputy *take_deputy(struct tsr_deputies *deputies)
{
    pthread_mutex_lock(&deputies->lock);
    struct deputy *deputy = deputies->idle;
    if (deputy) {
        deputies->idle = deputy->next_idle;
    } else if ((deputy = start_deputy())) {
        deputy->next = deputies->all;
        deputies->all = deputy;
    }
    pthread_mutex_unlock(&deputies->lock);
    return deputy;
}

static void return_deputy(struct tsr_deputies *deputies, struct deputy *deputy)
{
    pthread_mutex_lock(&deputies->lock);
    deputy->next_idle = deputies->idle;
    deputies->idle = deputy;
    pthread_mutex_unlock(&deputies->lock);
}

bool tsr_deputies_call(struct tsr_deputies *deputies, void (*work)(void *context), void *context)
{
    struct deputy *const deputy = take_deputy(deputies);
    if (!deputy) return false;
    pthread_mutex_lock(&deputy->lock);
    deputy->request = (struct request){work, context};
    change(deputy, WORKS);
    while (deputy->state != IS_DONE) {
        if (deputy->state == CALLS_BACK) {
            const struct request back = deputy->back;
            pthread_mutex_unlock(&deputy->lock);
            back.work(back.context);
            pthread_mutex_lock(&deputy->lock);
            change(deputy, WORKS);
        }
        pthread_cond_wait(&deputy->changed, &deputy->lock);
    }
    deputy->state = IDLE;
    pthread_mutex_unlock(&deputy->lock);
    return_deputy(deputies, deputy);
    return true;
}

void tsr_call_back(void (*work)(void *context), void *context)
{
    struct deputy *const self = this_deputy;
    if (!self) {
        work(context);
        return;
    }
    pthread_mutex_lock(&self->lock);
    self->back = (struct request){work, context};
    change(self, CALLS_BACK);
    while (self->state == CALLS_BACK) pthread_cond_wait(&self->changed, &self->lock);
    pthread_mutex_unlock(&self->lock);
}

bool tsr_call_with_large_stack(void (*work)(void *context), void *context)
{
    if (tsr_has_large_stack()) {
        work(context);
        return true;
    }
    struct tsr_deputies *const deputies = tsr_deputies_create();
    const bool called = deputies && tsr_deputies_call(deputies, work, context);
    tsr_deputies_destroy(deputies);
    return called;
}
