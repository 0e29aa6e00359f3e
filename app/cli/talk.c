/* Words for people: names that a terminal can show, and the stream that they go to. And the time. */
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
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

/* Control characters of the terminal's: ASCII's, and those that UTF-8 has as C2 80 .. C2 9F. */
static bool is_escaped(const unsigned char *text)
{
    return text[0] < ' ' || text[0] == 127 || (text[0] == 0xc2 && text[1] >= 0x80 && text[1] <= 0x9f);
}

static size_t show_byte(const unsigned char *text, char *out)
{
    if (!is_escaped(text)) {
        out[0] = (char)text[0];
        return 1;
    }
    return text[0] == '\n' ? (size_t)snprintf(out, 5, "\\n") : (size_t)snprintf(out, 5, "\\x%02x", text[0]);
}

/* What shown has made for a thread. Not a variable of the thread: each thread would begin with all of it cleared. */
enum { SHOWN = 4, ROOM = 4 * 4096 + 8 };
struct rooms {
    unsigned next;
    char text[SHOWN][ROOM];
};
static pthread_key_t rooms_key;
static bool has_key;

static void make_key(void)
{
    has_key = pthread_key_create(&rooms_key, free) == 0;
}

/* NULL: there is no memory. */
static char *next_room(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, make_key);
    if (!has_key) return NULL;
    struct rooms *rooms = pthread_getspecific(rooms_key);
    if (!rooms) {
        rooms = calloc(1, sizeof *rooms);
        if (!rooms || pthread_setspecific(rooms_key, rooms) != 0) {
            free(rooms);
            return NULL;
        }
    }
    return rooms->text[rooms->next++ % SHOWN];
}

const char *shown(const char *text)
{
    const unsigned char *byte = (const unsigned char *)text;
    while (*byte && !is_escaped(byte)) byte++;
    if (!*byte) return text;
    const int error = errno; /* that a sentence with the name may name, too */
    char *const out = next_room();
    errno = error;
    if (!out) return "(no memory for a name)";
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
