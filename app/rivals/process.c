/* A process of tessera-rivals. See process.h.
 *
 * Each process has one socket, which is its standard input and output. */
#include "process.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

double process_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* ---- Start and end ------------------------------------------------------------------------------------------- */

/* The threads that start the process block signals. The process does not: signals end it as any other. */
static int spawn(const char *path, int socket, pid_t *id)
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
        if (!error) error = posix_spawn(id, path, &files, &attributes, words, environ);
        posix_spawnattr_destroy(&attributes);
    }
    posix_spawn_file_actions_destroy(&files);
    return error;
}

int process_start(struct process *process, const char *path)
{
    int ends[2];
    memset(process, 0, sizeof *process);
    process->socket = -1;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return errno;
    const int error = spawn(path, ends[1], &process->id);
    close(ends[1]);
    if (error)
        close(ends[0]);
    else
        process->socket = ends[0];
    return error;
}

int process_end(struct process *process, bool force)
{
    int how = 0;
    if (force) kill(process->id, SIGKILL);
    close(process->socket);
    process->socket = -1;
    process->held = 0;
    while (waitpid(process->id, &how, 0) < 0 && errno == EINTR) continue;
    return how;
}

/* ---- Bytes --------------------------------------------------------------------------------------------------- */

/* Waits until the socket can be read from or written to. False: the deadline has passed. */
static bool await(struct process *process, short events)
{
    struct pollfd socket = {.fd = process->socket, .events = events};
    for (;;) {
        int wait_ms = -1;
        if (process->deadline > 0) {
            const double left_s = process->deadline - process_now();
            wait_ms = left_s <= 0 ? 0 : left_s > 1e6 ? 1000000000 : (int)(left_s * 1000) + 1;
        }
        const int ready = poll(&socket, 1, wait_ms);
        if (ready > 0) return true;
        if (ready < 0 && (errno == EINTR || errno == EAGAIN)) continue;
        process->is_late = ready == 0;
        return false;
    }
}

static bool is_again(void)
{
    return errno == EINTR || errno == EAGAIN || errno == EWOULDBLOCK;
}

bool process_send(struct process *process, const void *bytes, size_t size)
{
    process->is_late = false;
    for (const char *next = bytes; size > 0;) {
        if (!await(process, POLLOUT)) return false;
        const ssize_t sent = send(process->socket, next, size, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0 && is_again()) continue;
        if (sent <= 0) return false;
        next += sent;
        size -= (size_t)sent;
    }
    return true;
}

/* Receives at least a byte. */
static bool receive_some(struct process *process, void *bytes, size_t size, size_t *got)
{
    for (;;) {
        if (!await(process, POLLIN)) return false;
        const ssize_t received = recv(process->socket, bytes, size, MSG_DONTWAIT);
        if (received < 0 && is_again()) continue;
        if (received <= 0) return false;
        *got = (size_t)received;
        return true;
    }
}

bool process_receive(struct process *process, void *bytes, size_t size)
{
    char *next = bytes;
    const size_t first = size < process->held ? size : process->held;
    process->is_late = false;
    memcpy(next, process->kept, first);
    memmove(process->kept, process->kept + first, process->held - first);
    process->held -= first;
    next += first;
    size -= first;
    while (size > 0) {
        size_t got;
        if (!receive_some(process, next, size, &got)) return false;
        next += got;
        size -= got;
    }
    return true;
}

bool process_receive_line(struct process *process, char *line, size_t size)
{
    char *end;
    process->is_late = false;
    while (!(end = memchr(process->kept, '\n', process->held))) {
        size_t got;
        if (process->held == sizeof process->kept) return false; /* no answer is so long */
        if (!receive_some(process, process->kept + process->held, sizeof process->kept - process->held, &got))
            return false;
        process->held += got;
    }
    const size_t length = (size_t)(end - process->kept), taken = length < size ? length : size - 1;
    memcpy(line, process->kept, taken);
    line[taken] = '\0';
    process->held -= length + 1;
    memmove(process->kept, end + 1, process->held);
    return true;
}
