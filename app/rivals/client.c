/* Starts tessera-rivals and sends requests to it. See client.h and protocol.h.
 *
 * Each process has one socket, which is its standard input and output. There are as many processes as threads that
 * compare at once, and each thread waits for its process, so codecs are as fast as within the program. */
#include "client.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

struct rival {
    pid_t process;
    int socket; /* -1: the process has ended */
    const char *name;
    struct rival *next;
};

struct rivals {
    char path[PATH_MAX];
    pthread_mutex_t lock;
    struct rival *idle;
};

/* ---- Finding the program ------------------------------------------------------------------------------------- */

/* Makes the path of the program from a folder and a path below it. False: the path is too long, or there is no such
 * program. */
static bool find_in(const char *folder, const char *below, char path[PATH_MAX])
{
    const int length = snprintf(path, PATH_MAX, "%s/%s/" RIVALS_NAME, folder, below);
    return length > 0 && length < PATH_MAX && access(path, X_OK) == 0;
}

static bool find_program(char path[PATH_MAX])
{
    char folder[PATH_MAX];
    const char *const told = getenv("TESSERA_RIVALS");
    if (told) return snprintf(path, PATH_MAX, "%s", told) < PATH_MAX && access(path, X_OK) == 0;
    const ssize_t length = readlink("/proc/self/exe", folder, sizeof folder - 1);
    if (length <= 0) return false;
    folder[length] = '\0';
    char *const slash = strrchr(folder, '/');
    if (slash) *slash = '\0';
    return slash && (find_in(folder, ".", path) || find_in(folder, TSR_LIBEXEC_FROM_PROGRAM, path));
}

struct rivals *rivals_find(void)
{
    struct rivals *rivals = calloc(1, sizeof *rivals);
    if (rivals && find_program(rivals->path)) {
        pthread_mutex_init(&rivals->lock, NULL);
        return rivals;
    }
    free(rivals);
    return NULL;
}

/* ---- Processes ----------------------------------------------------------------------------------------------- */

#if defined(__GNUC__)
__attribute__((format(printf, 4, 5)))
#endif
static enum tsr_status
fail(const struct rival *rival, struct tsr_error *error, enum tsr_status status, const char *format, ...)
{
    va_list arguments;
    char what[128];
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    error->status = status;
    error->offset = TSR_NO_OFFSET;
    snprintf(error->text, sizeof error->text, "%.300s: the program " RIVALS_NAME " %s", rival->name, what);
    return status;
}

/* The threads that start the process block signals. The process does not: signals end it as any other. */
static int spawn(const char *path, int socket, pid_t *process)
{
    char *const words[] = {(char[]){RIVALS_NAME}, NULL};
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    int error = posix_spawn_file_actions_init(&files);
    if (error) return error;
    error = posix_spawnattr_init(&attributes);
    if (!error) {
        error = posix_spawn_file_actions_adddup2(&files, socket, STDIN_FILENO);
        if (!error) error = posix_spawn_file_actions_adddup2(&files, socket, STDOUT_FILENO);
        if (!error) error = posix_spawnattr_setsigmask(&attributes, &none);
        if (!error) error = posix_spawnattr_setsigdefault(&attributes, &all);
        if (!error) error = posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
        if (!error) error = posix_spawn(process, path, &files, &attributes, words, environ);
        posix_spawnattr_destroy(&attributes);
    }
    posix_spawn_file_actions_destroy(&files);
    return error;
}

/* Closes the input of the process, which ends it, and waits for that. Returns the status of waitpid(). */
static int end_process(struct rival *rival)
{
    int how = 0;
    close(rival->socket);
    rival->socket = -1;
    while (waitpid(rival->process, &how, 0) < 0 && errno == EINTR) continue;
    return how;
}

/* The process has closed its side, or its answer is not valid. SIGKILL ends a process that would not end, and does
 * nothing to one that has ended. */
static enum tsr_status fail_process(struct rival *rival, struct tsr_error *error, const char *said)
{
    kill(rival->process, SIGKILL);
    const int how = end_process(rival);
    if (said) return fail(rival, error, TSR_ERROR_INTERNAL, "answers '%.60s'", said);
    if (WIFEXITED(how) && WEXITSTATUS(how) == TSR_ERROR_LIMIT)
        return fail(rival, error, TSR_ERROR_LIMIT, "ran out of memory");
    if (WIFEXITED(how)) return fail(rival, error, TSR_ERROR_INTERNAL, "ended with status %d", WEXITSTATUS(how));
    return fail(rival, error, TSR_ERROR_INTERNAL, "was ended by signal %d", WTERMSIG(how));
}

/* ---- Requests and answers ------------------------------------------------------------------------------------ */

static bool send_all(const struct rival *rival, const void *bytes, size_t size)
{
    for (const char *next = bytes; size > 0;) {
        const ssize_t sent = send(rival->socket, next, size, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR) continue;
        if (sent <= 0) return false;
        next += sent;
        size -= (size_t)sent;
    }
    return true;
}

/* Receives a line without its end. False: the process has ended. A line that is too long is cut. */
static bool receive_line(const struct rival *rival, char line[RIVALS_LINE])
{
    size_t used = 0;
    while (used + 1 < RIVALS_LINE) {
        const ssize_t received = recv(rival->socket, line + used, RIVALS_LINE - 1 - used, 0);
        if (received < 0 && errno == EINTR) continue;
        if (received <= 0) return false;
        used += (size_t)received; /* an answer is one line: nothing follows its end */
        if (line[used - 1] == '\n') break;
    }
    line[line[used - 1] == '\n' ? used - 1 : used] = '\0';
    return true;
}

/* Sends a request and receives its answer. */
static enum tsr_status ask(struct rival *rival, const char *request, char answer[RIVALS_LINE], struct tsr_error *error)
{
    if (send_all(rival, request, strlen(request)) && receive_line(rival, answer)) return TSR_OK;
    return fail_process(rival, error, NULL);
}

/* Sends a request that is answered by count sizes. */
static enum tsr_status ask_sizes(struct rival *rival, const char *request, int count, unsigned long long *size,
                                 struct tsr_error *error)
{
    char answer[RIVALS_LINE], *rest = answer;
    const enum tsr_status status = ask(rival, request, answer, error);
    for (int i = 0; i < count && status == TSR_OK; i++) {
        char *const from = rest;
        size[i] = strtoull(from, &rest, 10);
        if (rest == from || *rest != (i + 1 < count ? ' ' : '\0')) return fail_process(rival, error, answer);
    }
    return status;
}

static enum tsr_status ask_version(struct rival *rival, struct tsr_error *error)
{
    char answer[RIVALS_LINE];
    const enum tsr_status status = ask(rival, "version\n", answer, error);
    if (status != TSR_OK || !strcmp(answer, RIVALS_VERSION_LINE)) return status;
    return fail_process(rival, error, answer);
}

/* ---- Calls of client.h --------------------------------------------------------------------------------------- */

static enum tsr_status start(const struct rivals *rivals, struct rival *rival, struct tsr_error *error)
{
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
        return fail(rival, error, TSR_ERROR_LIMIT, "cannot be started: %s", strerror(errno));
    const int failure = spawn(rivals->path, ends[1], &rival->process);
    close(ends[1]);
    rival->socket = ends[0];
    if (failure == 0) return ask_version(rival, error);
    close(ends[0]);
    rival->socket = -1;
    return fail(rival, error, TSR_ERROR_LIMIT, "cannot be started: %s", strerror(failure));
}

enum tsr_status rivals_take(struct rivals *rivals, const char *name, struct rival **taken, struct tsr_error *error)
{
    *taken = NULL;
    if (!rivals) return TSR_OK;
    pthread_mutex_lock(&rivals->lock);
    struct rival *rival = rivals->idle;
    if (rival) rivals->idle = rival->next;
    pthread_mutex_unlock(&rivals->lock);
    const bool is_new = !rival;
    if (is_new) rival = calloc(1, sizeof *rival);
    const struct rival nobody = {.name = name};
    if (!rival) return fail(&nobody, error, TSR_ERROR_LIMIT, "cannot be started: no memory");
    rival->name = name;
    const enum tsr_status status = is_new ? start(rivals, rival, error) : TSR_OK;
    if (status == TSR_OK)
        *taken = rival;
    else
        free(rival);
    return status;
}

void rivals_give(struct rivals *rivals, struct rival *rival)
{
    if (!rival) return;
    if (rival->socket < 0) {
        free(rival);
        return;
    }
    pthread_mutex_lock(&rivals->lock);
    rival->next = rivals->idle;
    rivals->idle = rival;
    pthread_mutex_unlock(&rivals->lock);
}

void rivals_close(struct rivals *rivals)
{
    if (!rivals) return;
    while (rivals->idle) {
        struct rival *rival = rivals->idle;
        rivals->idle = rival->next;
        end_process(rival);
        free(rival);
    }
    pthread_mutex_destroy(&rivals->lock);
    free(rivals);
}

enum tsr_status rival_show(struct rival *rival, const struct rival_picture *p, struct tsr_error *error)
{
    enum { PART = 1 << 15 };
    uint8_t part[PART];
    char line[RIVALS_LINE];
    const size_t count = (size_t)p->columns * p->rows * (size_t)p->channels;
    if (!rival) return TSR_OK;
    snprintf(line, sizeof line, "picture %u %u %d %d\n", p->columns, p->rows, p->channels, p->bits);
    bool sent = send_all(rival, line, strlen(line));
    if (!p->words)
        sent = sent && send_all(rival, p->bytes, count);
    else if (p->bits > 8)
        sent = sent && send_all(rival, p->words, count * sizeof *p->words);
    else
        for (size_t first = 0, now; first < count && sent; first += now) {
            now = count - first < PART ? count - first : PART;
            for (size_t i = 0; i < now; i++) part[i] = (uint8_t)p->words[first + i];
            sent = send_all(rival, part, now);
        }
    return sent ? TSR_OK : fail_process(rival, error, NULL);
}

enum tsr_status rival_png_bytes(struct rival *rival, uint64_t *bytes, struct tsr_error *error)
{
    unsigned long long size = 0;
    const enum tsr_status status = rival ? ask_sizes(rival, "png\n", 1, &size, error) : TSR_OK;
    *bytes = size;
    return status;
}

enum tsr_status rival_jpeg_ls_bytes(struct rival *rival, uint64_t *bytes, struct tsr_error *error)
{
    unsigned long long size = 0;
    const enum tsr_status status = rival ? ask_sizes(rival, "jpeg-ls\n", 1, &size, error) : TSR_OK;
    *bytes = size;
    return status;
}

enum tsr_status rival_jpeg_at_psnr(struct rival *rival, double psnr_db, struct jpeg_size *size, struct tsr_error *error)
{
    char request[RIVALS_LINE];
    unsigned long long sizes[2] = {0, 0};
    snprintf(request, sizeof request, "jpeg %a\n", psnr_db); /* %a is exact */
    const enum tsr_status status = rival ? ask_sizes(rival, request, 2, sizes, error) : TSR_OK;
    size->bytes = sizes[0];
    size->optimised_bytes = sizes[1];
    return status;
}
