/* What stands before a run: the thread that waits for signals, room for open files, and the engine. */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include "app/cli/cli.h"
#include "app/cli/evidence/page_file.h"

/* A thread that ends the process on a signal, without leaving parts of outputs. */
static void *await_signal(void *signals)
{
    int number;
    while (sigwait(signals, &number) != 0) continue;
    say_interrupted(number);
    remove_page_parts();
    tsr_end_process(end_log(128 + number));
    return NULL;
}

/* From here on signals come to that thread alone: this one has them blocked, as have those that it creates. */
static void handle_signals(void)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGALRM, SIGXCPU};
    static sigset_t signals;
    pthread_t thread;
    sigemptyset(&signals);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        sigaddset(&signals, numbers[i]);
        signal(numbers[i], SIG_DFL); /* one that is ignored would not be waited for */
    }
    signal(SIGXFSZ, SIG_IGN); /* the write fails instead */
    pthread_sigmask(SIG_BLOCK, &signals, NULL);
    if (pthread_create(&thread, NULL, await_signal, &signals) == 0)
        pthread_detach(thread);
    else
        pthread_sigmask(SIG_UNBLOCK, &signals, NULL);
}

/* Of a gigabyte 16 threads' decoders test 2.3 GB/s, an H200's, with its waking, 1.8: so decoding never waits for a GPU
 * that nobody asks for. */
static enum tsr_engine_choice engine_choice(const struct options *options)
{
    const bool is_free = options->machine.engine == TSR_ENGINE_AUTO;
    return is_free && options->verb != VERB_COMPRESS ? TSR_ENGINE_CPU : options->machine.engine;
}

/* While threads open files beyond 64, 128, 256 at once, Linux makes the table of files longer each time, and all that
 * open or close a file wait, 5 to 40 ms, until it is sure that nobody reads the old one. So it gets its length while
 * there is one thread, which need not wait. A file at work takes up to four; of 16 threads' 256 files. */
void reserve_descriptors(void)
{
    enum { DESCRIPTORS = 2048, MOST = 1 << 16 };
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
    /* Series that are inputs stay open: all that this process may have. */
    const struct rlimit most = {limit.rlim_max < MOST ? limit.rlim_max : MOST, limit.rlim_max};
    if (limit.rlim_cur < most.rlim_cur && setrlimit(RLIMIT_NOFILE, &most) == 0) limit = most;
    const rlim_t last = (limit.rlim_cur < DESCRIPTORS ? limit.rlim_cur : DESCRIPTORS) - 1;
    const int high = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, (int)last);
    if (high >= 0) close(high);
}

/* Why the CPU engine works where another one might have. */
static void say_note(const struct options *options, const char *note)
{
    if (options->talk.verbosity >= 0 && note[0] && options->coding.compress.verify == TSR_VERIFY_ENGINE)
        fprintf(stderr, "tessera: the CPU engine works, and verifies: %s\n", note);
    else if (options->talk.verbosity > 0 && note[0] && TSR_WITH_CUDA)
        fprintf(stderr, "tessera: the CPU engine works: %s\n", note);
}

struct tsr_engine *start_engine(const struct options *options, uint64_t bytes, double *seconds, struct tsr_error *error)
{
    struct tsr_engine_options wanted = TSR_ENGINE_OPTIONS;
    struct tsr_engine *engine;
    int numbers[NUMBERS_LIMIT];
    for (int i = 0; i < options->machine.gpus.count; i++) numbers[i] = (int)options->machine.gpus.value[i];
    wanted.choice = engine_choice(options);
    wanted.threads = options->machine.threads;
    wanted.memory_bytes = options->machine.memory;
    wanted.gpus = numbers;
    wanted.gpu_count = options->machine.gpus.count;
    wanted.gpu_memory_bytes = options->machine.gpu_memory;
    const uint64_t known = bytes > 0 ? bytes : 1; /* a pipe alone, or a dry run: nothing that a GPU is woken for */
    wanted.expected_bytes =
        options->coding.compress.verify == TSR_VERIFY_ENGINE ? 0 : known; /* then the GPU's decoder is wanted */
    wanted.expected = options->verb == VERB_COMPRESS ? &options->coding.compress : NULL;
    reserve_descriptors();
    handle_signals();
    const double start = wall_seconds();
    const enum tsr_status status = tsr_engine_create(&wanted, &engine, error);
    *seconds = wall_seconds() - start;
    if (status == TSR_OK) say_note(options, tsr_engine_note(engine));
    return engine;
}
