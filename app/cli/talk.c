/* Words for people: names that a terminal can show, and the stream that they go to. And the time. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
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

/* Control characters of the terminal's are written as escapes: ASCII's, and those that UTF-8 has as C2 80 .. C2 9F. */
static size_t show_byte(const unsigned char *text, char *out)
{
    const bool is_pair = text[0] == 0xc2 && text[1] >= 0x80 && text[1] <= 0x9f;
    if (text[0] >= ' ' && text[0] != 127 && !is_pair) {
        out[0] = (char)text[0];
        return 1;
    }
    return text[0] == '\n' ? (size_t)snprintf(out, 5, "\\n") : (size_t)snprintf(out, 5, "\\x%02x", text[0]);
}

const char *shown(const char *text)
{
    enum { SHOWN = 4, ROOM = 4 * 4096 + 8 };
    static _Thread_local char room[SHOWN][ROOM];
    static _Thread_local int next;
    char *const out = room[next = (next + 1) % SHOWN];
    size_t used = 0;
    for (; *text && used + 5 < ROOM; text++) used += show_byte((const unsigned char *)text, out + used);
    out[used] = '\0';
    return out;
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
