/* Decodes HTJ2K in a process of its own: OpenJPH 0.9 ends a process that gives it some damaged streams. See
 * htj2k_main.cc for the other side. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "dicom_module.h"

extern char **environ;

/* One socket is the process's standard input and output; nobody hears its errors. Returns an errno. */
static int set_up(posix_spawn_file_actions_t *files, posix_spawnattr_t *attributes, int socket)
{
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    int failure = posix_spawn_file_actions_adddup2(files, socket, STDIN_FILENO);
    if (!failure) failure = posix_spawn_file_actions_adddup2(files, socket, STDOUT_FILENO);
    if (!failure) failure = posix_spawn_file_actions_addopen(files, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    if (!failure) failure = posix_spawnattr_setsigmask(attributes, &none);
    if (!failure) failure = posix_spawnattr_setsigdefault(attributes, &all);
    if (!failure) failure = posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    return failure;
}

static int spawn(const char *path, int socket, pid_t *id)
{
    char *const words[] = {(char[]){TSR_HTJ2K_PROGRAM}, (char[]){TSR_VERSION_STRING}, NULL};
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    int failure = posix_spawn_file_actions_init(&files);
    if (failure) return failure;
    failure = posix_spawnattr_init(&attributes);
    if (!failure) {
        failure = set_up(&files, &attributes, socket);
        if (!failure) failure = posix_spawn(id, path, &files, &attributes, words, environ);
        posix_spawnattr_destroy(&attributes);
    }
    posix_spawn_file_actions_destroy(&files);
    return failure;
}

static bool put(int socket, const void *bytes, size_t size)
{
    for (const char *next = bytes; size > 0;) {
        const ssize_t sent = send(socket, next, size, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR) continue;
        if (sent <= 0) return false;
        next += sent;
        size -= (size_t)sent;
    }
    return true;
}

static bool get(int socket, void *bytes, size_t size)
{
    for (char *next = bytes; size > 0;) {
        const ssize_t came = recv(socket, next, size, 0);
        if (came < 0 && errno == EINTR) continue;
        if (came <= 0) return false;
        next += came;
        size -= (size_t)came;
    }
    return true;
}

/* The whole request is sent before the answer is read: the process reads all of it before it writes. */
static enum tsr_status ask(int socket, const struct tsr_image *image, const uint8_t *stream, size_t size,
                           uint8_t *raster, struct tsr_error *error)
{
    const struct tsr_htj2k_request request = {*image, size};
    struct tsr_htj2k_answer answer;
    if (!put(socket, &request, sizeof request) || !put(socket, stream, size) || !get(socket, &answer, sizeof answer) ||
        (answer.status == TSR_OK && !get(socket, raster, (size_t)(tsr_frame_bits(image) / 8))))
        return tsr_fail(error, TSR_ERROR_CORRUPT, "it makes OpenJPH end without a result");
    answer.text[sizeof answer.text - 1] = '\0';
    return answer.status == TSR_OK ? TSR_OK : tsr_fail(error, answer.status, "%s", answer.text);
}

static enum tsr_status fail_start(int failure, struct tsr_error *error)
{
    const bool is_missing = failure == ENOENT || failure == EACCES || failure == ENOEXEC;
    return tsr_fail(error, is_missing ? TSR_ERROR_READ : TSR_ERROR_LIMIT,
                    "it needs Tessera's decoder of HTJ2K, which cannot be started: %s: %s", TSR_HTJ2K_PROGRAM,
                    strerror(failure));
}

enum tsr_status tsr_dicom_decode_htj2k(const struct tsr_image *image, const uint8_t *stream, size_t size,
                                       uint8_t *raster, struct tsr_error *error)
{
    char path[TSR_MODULE_PATH];
    int ends[2];
    pid_t id;
    if (!tsr_dicom_find_beside(TSR_HTJ2K_PROGRAM, path)) return fail_start(ENOENT, error);
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return fail_start(errno, error);
    const int failure = spawn(path, ends[1], &id);
    close(ends[1]);
    const enum tsr_status status =
        failure ? fail_start(failure, error) : ask(ends[0], image, stream, size, raster, error);
    close(ends[0]);
    while (!failure && waitpid(id, NULL, 0) < 0 && errno == EINTR) continue;
    return status;
}
