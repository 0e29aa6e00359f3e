/* Words for people, and the stream that they go to. And the time. */
#include <stdarg.h>
#include <stdio.h>
#include <time.h>

#include "cli.h"

static bool on_stderr;

void talk_on_stderr(void)
{
    on_stderr = true;
}

void talk(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vfprintf(on_stderr ? stderr : stdout, format, arguments);
    va_end(arguments);
}

void write_hash(const uint8_t hash[16], char text[HASH_TEXT])
{
    for (int i = 0; i < 16; i++) snprintf(text + 2 * i, 3, "%02x", hash[i]);
}

const char *plural(size_t count)
{
    return count == 1 ? "" : "s";
}

double wall_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}
