/* Errors: of the command line's own, and the library's in its words. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "cli.h"

/* What the library calls an argument, and the command line a flag. */
static const struct {
    const char *argument, *flag;
} flags[] = {
    {", and overwrite is not set", "; -f overwrites it"},
    {"give a shorter name", "give a shorter name with -o"},
    {"(allow_lossy is not set)", "(--allow-lossy does it)"},
    {"memory_bytes of ", "--memory "},
    {"take fewer threads", "lower -T"},
};

/* At the end of a sentence, after the names of files. */
void name_flags(struct tsr_error *error)
{
    char tail[sizeof error->text];
    for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++) {
        char *found = NULL;
        for (char *at = error->text; (at = strstr(at, flags[i].argument)); at++) found = at;
        if (!found) continue;
        snprintf(tail, sizeof tail, "%s%s", flags[i].flag, found + strlen(flags[i].argument));
        snprintf(found, sizeof error->text - (size_t)(found - error->text), "%s", tail);
    }
}

enum tsr_status refuse(struct tsr_error *error, enum tsr_status status, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    error->status = status;
    error->offset = TSR_NO_OFFSET;
    vsnprintf(error->text, sizeof error->text, format, arguments);
    va_end(arguments);
    return status;
}
