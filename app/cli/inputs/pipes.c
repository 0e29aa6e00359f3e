/* Inputs that are pipes: their bytes go to a file without a name, since coding and proof read them at any place. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "inputs.h"

bool is_pipe(const char *path)
{
    struct stat status;
    if (strcmp(path, "-") == 0) return true;
    if (stat(path, &status) != 0) return false;
    return S_ISFIFO(status.st_mode) || S_ISSOCK(status.st_mode); /* a device may have no end */
}

const char *temporary_folder(void)
{
    const char *const named = getenv("TMPDIR");
    return named && named[0] ? named : "/tmp";
}

int open_temporary(void)
{
    const char *const folder = temporary_folder();
    char *path = NULL;
    int file = open(folder, O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);
    if (file >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL)) return file;
    if (asprintf(&path, "%s/tessera-XXXXXX", folder) < 0) return -1;
    file = mkostemp(path, O_CLOEXEC);
    if (file >= 0) unlink(path);
    free(path);
    return file;
}

static enum tsr_status copy(int from, const char *name, int to, struct tsr_error *error)
{
    static char buffer[1 << 16];
    for (;;) {
        const ssize_t got = read(from, buffer, sizeof buffer);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return refuse(error, TSR_ERROR_READ, "cannot read %s: %s", name, strerror(errno));
        if (got == 0) return TSR_OK;
        for (ssize_t at = 0; at < got;) {
            const ssize_t written = write(to, buffer + at, (size_t)(got - at));
            if (written < 0 && errno == EINTR) continue;
            if (written < 0)
                return refuse(error, TSR_ERROR_WRITE, "cannot write a temporary file in %s: %s; set TMPDIR to another",
                              temporary_folder(), strerror(errno));
            at += written;
        }
    }
}

enum tsr_status spool(const char *path, int *descriptor, struct tsr_error *error)
{
    const bool is_stdin = strcmp(path, "-") == 0;
    const char *const name = is_stdin ? "stdin" : path;
    const int from = is_stdin ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    *descriptor = -1;
    if (from < 0) return refuse(error, TSR_ERROR_READ, "cannot open %s: %s", name, strerror(errno));
    if (isatty(from)) {
        if (!is_stdin) close(from);
        return refuse(error, TSR_ERROR_USAGE, "%s is a terminal: redirect a file or a pipe to it", name);
    }
    const int to = open_temporary();
    enum tsr_status status = TSR_OK;
    if (to < 0)
        status = refuse(error, TSR_ERROR_WRITE, "cannot create a temporary file in %s: %s; set TMPDIR to another",
                        temporary_folder(), strerror(errno));
    if (status == TSR_OK) status = copy(from, name, to, error);
    if (!is_stdin) close(from);
    if (status == TSR_OK)
        *descriptor = to;
    else if (to >= 0)
        close(to);
    return status;
}
