/* --log: what goes to stdout and stderr as words goes to a file, too, each line with the time and the process. stdout
 * and stderr become streams that write to both. A line is one write() to a file that is open for appending, so several
 * processes may share a log, and what was said is in it whatever ends the process. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli.h"

enum { STAMP_ROOM = 64, LINE_LIMIT = 1 << 20 };

/* One of the two streams; its line so far, behind room for the stamp. */
struct said {
    int descriptor;
    FILE *plain, *both;
    char *line;
    size_t used, capacity;
};

static struct {
    const char *path;
    int descriptor;
    double start_s;
    struct said out, err;
    atomic_size_t lost;  /* lines that could not be written */
    atomic_int reason;   /* errno of the last of them */
    atomic_bool is_torn; /* a line was written in part */
} logged = {.descriptor = -1};

/* "2026-11-25T18:44:57.123Z 4711 " */
static size_t write_stamp(char stamp[STAMP_ROOM])
{
    struct timespec now;
    struct tm utc;
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &utc);
    size_t used = strftime(stamp, STAMP_ROOM, "%Y-%m-%dT%H:%M:%S", &utc);
    used +=
        (size_t)snprintf(stamp + used, STAMP_ROOM - used, ".%03dZ %ld ", (int)(now.tv_nsec / 1000000), (long)getpid());
    return used;
}

/* Writes a line, which has room for the stamp before its text and for one byte behind it. */
static void write_line(char *line, size_t length)
{
    char stamp[STAMP_ROOM];
    const bool is_torn = atomic_exchange(&logged.is_torn, false);
    size_t before = write_stamp(stamp);
    char *const begin = line + STAMP_ROOM - before - is_torn;
    begin[0] = '\n';
    memcpy(begin + is_torn, stamp, before);
    line[STAMP_ROOM + length] = '\n';
    before += is_torn;
    ssize_t written;
    do written = write(logged.descriptor, begin, before + length + 1);
    while (written < 0 && errno == EINTR);
    if (written == (ssize_t)(before + length + 1)) return;
    atomic_store(&logged.reason, written < 0 ? errno : ENOSPC);
    atomic_fetch_add(&logged.lost, 1);
    if (written > 0 || is_torn) atomic_store(&logged.is_torn, true);
}

#if defined(__GLIBC__)
/* Room for one more byte of the line. A line that is too long, or for which there is no memory, goes on in another. */
static void grow_line(struct said *said)
{
    if (STAMP_ROOM + said->used + 1 < said->capacity) return;
    const size_t capacity = 2 * said->capacity;
    char *const grown = capacity <= LINE_LIMIT ? realloc(said->line, capacity) : NULL;
    if (grown) {
        said->line = grown;
        said->capacity = capacity;
    } else {
        write_line(said->line, said->used);
        said->used = 0;
    }
}

/* A carriage return begins a line anew, as on a terminal: only the end of a line of progress stays, which is empty. */
static void note(struct said *said, const char *bytes, size_t count)
{
    static const char erase[] = "\033[K";
    for (size_t i = 0; i < count; i++) {
        if (bytes[i] == '\n') {
            write_line(said->line, said->used);
            said->used = 0;
        } else if (bytes[i] == '\r') {
            said->used = 0;
        } else {
            grow_line(said);
            said->line[STAMP_ROOM + said->used++] = bytes[i];
            const char *const end = said->line + STAMP_ROOM + said->used;
            if (said->used >= sizeof erase - 1 && memcmp(end - (sizeof erase - 1), erase, sizeof erase - 1) == 0)
                said->used -= sizeof erase - 1;
        }
    }
}

/* What stdio gives to a stream: to where the stream leads, and to the log also where that fails. */
static ssize_t write_both(void *cookie, const char *bytes, size_t count)
{
    struct said *const said = cookie;
    size_t done = 0;
    note(said, bytes, count);
    while (done < count) {
        const ssize_t written = write(said->descriptor, bytes + done, count - done);
        if (written > 0)
            done += (size_t)written;
        else if (written == 0 || errno != EINTR)
            return 0;
    }
    return (ssize_t)count;
}

static bool divert(struct said *said, int descriptor, FILE **stream, int buffering)
{
    said->capacity = 1024;
    said->descriptor = descriptor;
    said->plain = *stream;
    said->line = malloc(said->capacity);
    said->both = said->line ? fopencookie(said, "w", (cookie_io_functions_t){.write = write_both}) : NULL;
    if (!said->both) return false;
    setvbuf(said->both, NULL, buffering, buffering == _IONBF ? 0 : BUFSIZ);
    *stream = said->both;
    return true;
}

static bool divert_both(void)
{
    return divert(&logged.out, STDOUT_FILENO, &stdout, _IOLBF) && divert(&logged.err, STDERR_FILENO, &stderr, _IONBF);
}

static void divert_back(void)
{
    fflush(stdout);
    fflush(stderr);
    stdout = logged.out.plain;
    stderr = logged.err.plain;
}
#else
static bool divert_both(void)
{
    return false; /* stdout is no variable there */
}

static void divert_back(void)
{
}
#endif

/* A line of the log's own. */
static void write_own(const char *format, va_list arguments)
{
    va_list again;
    va_copy(again, arguments);
    const int length = vsnprintf(NULL, 0, format, again);
    va_end(again);
    char *const line = length < 0 ? NULL : malloc(STAMP_ROOM + (size_t)length + 1);
    if (!line) {
        atomic_store(&logged.reason, ENOMEM);
        atomic_fetch_add(&logged.lost, 1);
        return;
    }
    vsnprintf(line + STAMP_ROOM, (size_t)length + 1, format, arguments);
    write_line(line, (size_t)length);
    free(line);
}

__attribute__((format(printf, 1, 2))) static void log_own(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    write_own(format, arguments);
    va_end(arguments);
}

void log_alone(const char *format, ...)
{
    va_list arguments;
    if (!logged.path) return;
    va_start(arguments, format);
    write_own(format, arguments);
    va_end(arguments);
}

/* What is no log might be an original: nothing is appended to it. */
bool begins_as_log(const char *path)
{
    const int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    char head[128] = "";
    const ssize_t got = descriptor < 0 ? -1 : read(descriptor, head, sizeof head - 1);
    if (descriptor >= 0) close(descriptor);
    const char *const space = strchr(head, ' '), *const name = space ? strchr(space + 1, ' ') : NULL;
    return got > 0 && space == head + sizeof "2026-11-25T18:44:57.123Z" - 1 && space[-1] == 'Z' && name &&
           strncmp(name, " tessera ", 9) == 0;
}

static enum tsr_status open_log(const char *path)
{
    struct stat status;
    /* A FIFO without a reader fails, and is not waited for. */
    logged.descriptor = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0666);
    if (logged.descriptor < 0 || fstat(logged.descriptor, &status) != 0) {
        fprintf(stderr, "tessera: cannot write the log %s: %s\n", shown(path), strerror(errno));
        return TSR_ERROR_WRITE;
    }
    if (S_ISREG(status.st_mode) && status.st_size > 0 && !begins_as_log(path)) {
        fprintf(stderr, "tessera: %s exists and is no log of tessera; name another with --log\n", shown(path));
        return TSR_ERROR_EXISTS;
    }
    fcntl(logged.descriptor, F_SETFL, O_APPEND);
    signal(SIGXFSZ, SIG_IGN); /* the write fails instead */
    return TSR_OK;
}

/* The command line as it was typed, as far as it fits. */
static void describe_command(const struct options *options, char *text, size_t size)
{
    size_t used = (size_t)snprintf(text, size, "%s", verb_name(options->verb));
    for (int i = 0; i < options->talk.word_count && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, " %s", shown(options->talk.words[i]));
}

enum tsr_status begin_log(const struct options *options)
{
    char command[4096];
    if (!options->talk.log) return TSR_OK;
    const enum tsr_status status = open_log(options->talk.log);
    if (status != TSR_OK) return status;
    if (!divert_both()) {
        fprintf(stderr, "tessera: this system has no means for --log, or no memory\n");
        return TSR_ERROR_LIMIT;
    }
    logged.path = options->talk.log;
    logged.start_s = wall_seconds();
    describe_command(options, command, sizeof command);
    log_own("tessera %s begins: tessera %s", tsr_version(), command);
    return TSR_OK;
}

int end_log(int status)
{
    if (!logged.path) return status;
    const int said = status || atomic_load(&logged.lost) == 0 ? status : TSR_ERROR_WRITE;
    log_own("tessera ends with status %d after %.1f s", said, wall_seconds() - logged.start_s);
    const bool has_disk = fsync(logged.descriptor) == 0 || errno == EINVAL || errno == ENOSYS || errno == EROFS;
    const size_t lost = atomic_load(&logged.lost);
    if (has_disk && lost == 0) return status;
    if (lost > 0)
        fprintf(logged.err.plain, "tessera: the log %s lacks %zu line%s: %s\n", shown(logged.path), lost, plural(lost),
                strerror(atomic_load(&logged.reason)));
    else
        fprintf(logged.err.plain, "tessera: the log %s may be lost: %s\n", shown(logged.path), strerror(errno));
    return status ? status : TSR_ERROR_WRITE;
}

int close_log(int status)
{
    if (!logged.path) return status;
    divert_back();
    if (logged.out.used > 0) write_line(logged.out.line, logged.out.used);
    if (logged.err.used > 0) write_line(logged.err.line, logged.err.used);
    status = end_log(status);
    if (close(logged.descriptor) != 0 && status == 0) status = TSR_ERROR_WRITE;
    logged.path = NULL;
    fclose(logged.out.both);
    fclose(logged.err.both);
    free(logged.out.line);
    free(logged.err.line);
    return status;
}
