/* For forms.py: in which places of this library's code a process is, asked at even steps of time. The file of the
 * linker's map says which object a place belongs to. */
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>
#include <ucontext.h>

enum { PLACE_BYTES = 16 };

int bench_samples_begin(uint32_t *counts, size_t places, long nanoseconds);
void bench_samples_end(void);

#if defined(__x86_64__) && defined(__linux__)
extern const char __ehdr_start[] __attribute__((visibility("hidden"))); /* where the library begins in memory */

static uint32_t *volatile found;
static volatile size_t found_places;
static timer_t timer;

static void note_place(int number, siginfo_t *info, void *context)
{
    const ucontext_t *at = context;
    const uintptr_t offset = (uintptr_t)at->uc_mcontext.gregs[REG_RIP] - (uintptr_t)__ehdr_start;
    (void)number, (void)info;
    if (found && offset / PLACE_BYTES < found_places) found[offset / PLACE_BYTES]++;
}

/* counts: of each 16 bytes of the library. Returns 0, or -1 after an error. */
int bench_samples_begin(uint32_t *counts, size_t places, long nanoseconds)
{
    const struct sigaction action = {.sa_sigaction = note_place, .sa_flags = SA_SIGINFO | SA_RESTART};
    const struct itimerspec step = {{0, nanoseconds}, {0, nanoseconds}};
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGPROF};
    found = counts;
    found_places = places;
    if (sigaction(SIGPROF, &action, NULL) != 0 || timer_create(CLOCK_MONOTONIC, &event, &timer) != 0) return -1;
    return timer_settime(timer, 0, &step, NULL);
}

void bench_samples_end(void)
{
    timer_delete(timer);
    found = NULL;
}
#else
int bench_samples_begin(uint32_t *counts, size_t places, long nanoseconds)
{
    (void)counts, (void)places, (void)nanoseconds;
    return -1;
}

void bench_samples_end(void)
{
}
#endif
