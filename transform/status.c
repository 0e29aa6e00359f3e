/* Statuses and error texts. */
#include "status.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *tsr_status_name(enum tsr_status status)
{
    switch (status) {
    case TSR_OK:
        return "ok";
    case TSR_ERROR_INTERNAL:
        return "internal error";
    case TSR_ERROR_USAGE:
        return "usage";
    case TSR_ERROR_READ:
        return "cannot read";
    case TSR_ERROR_NOT_TSR:
        return "no .tsr file";
    case TSR_ERROR_NO_INPUT:
        return "no input";
    case TSR_ERROR_WRITE:
        return "cannot write";
    case TSR_ERROR_EXISTS:
        return "output exists";
    case TSR_ERROR_SAME_FILE:
        return "output is the input";
    case TSR_ERROR_VERIFY:
        return "verification failed";
    case TSR_ERROR_CORRUPT:
        return "corrupt";
    case TSR_ERROR_LIMIT:
        return "limit exceeded";
    case TSR_ERROR_VERSION:
        return "unknown version";
    case TSR_ERROR_ENGINE:
        return "engine unavailable";
    case TSR_ERROR_LOSS:
        return "loss over its limit";
    case TSR_ERROR_KEY:
        return "encrypted";
    case TSR_ERROR_PARTIAL:
        return "some files failed";
    case TSR_ERROR_CANCELLED:
        return "cancelled";
    }
    return "unknown status";
}

static enum tsr_status fail(struct tsr_error *error, enum tsr_status status, uint64_t offset, const char *format,
                            va_list arguments)
{
    if (error) {
        error->status = status;
        error->offset = offset;
        error->system = 0;
        vsnprintf(error->text, sizeof error->text, format, arguments);
    }
    return status;
}

enum tsr_status tsr_fail(struct tsr_error *error, enum tsr_status status, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fail(error, status, TSR_NO_OFFSET, format, arguments);
    va_end(arguments);
    return status;
}

enum tsr_status tsr_fail_as(struct tsr_error *error, enum tsr_status status, int reason, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fail(error, status, TSR_NO_OFFSET, format, arguments);
    va_end(arguments);
    if (error) error->system = reason;
    return status;
}

enum tsr_status tsr_fail_at(struct tsr_error *error, enum tsr_status status, uint64_t offset, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fail(error, status, offset, format, arguments);
    va_end(arguments);
    return status;
}

enum tsr_status tsr_fail_call(struct tsr_error *error, enum tsr_status status, const char *what, const char *name)
{
    const int reason = errno;
    if (reason == ENFILE || reason == EMFILE || reason == ENOMEM) status = TSR_ERROR_LIMIT;
    if (reason == EMFILE)
        tsr_fail(error, status,
                 "%s %s: this process may not open more files; raise the limit (ulimit -n) or take fewer threads", what,
                 name);
    else
        tsr_fail(error, status, "%s %s: %s", what, name, strerror(reason));
    if (error) error->system = reason;
    return status;
}
