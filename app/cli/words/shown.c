/* What a reader does not see is shown as an escape; see shown.h. */
#include "shown.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "app/report/text/text.h"

enum { ESCAPE = TEXT_CODE };

/* The bytes of the character at text; escape: what is shown in its place, or empty. */
static size_t escape_of(const char *text, char escape[ESCAPE])
{
    uint32_t code;
    const size_t length = text_character(text, &code);
    escape[0] = '\0';
    if (length > 0 && !text_is_hidden(code)) return length;
    if (length == 1 && strchr("\n\r\t", (char)code))
        snprintf(escape, ESCAPE, "\\%c", code == '\n' ? 'n' : code == '\r' ? 'r' : 't');
    else if (length <= 1)
        snprintf(escape, ESCAPE, "\\x%02x", (unsigned char)text[0]);
    else
        text_write_code(escape, code);
    return length > 0 ? length : 1;
}

/* What shown has made for a thread. Not a variable of the thread: each thread would begin with all of it cleared. */
enum { SHOWN = 4, ROOM = 4 * 4096 + ESCAPE };
struct texts {
    unsigned next;
    char text[SHOWN][ROOM];
};
static pthread_key_t texts_key;
static bool has_key;

static void make_key(void)
{
    has_key = pthread_key_create(&texts_key, free) == 0;
}

/* NULL: there is no memory. */
static char *next_text(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, make_key);
    if (!has_key) return NULL;
    struct texts *texts = pthread_getspecific(texts_key);
    if (!texts) {
        texts = calloc(1, sizeof *texts);
        if (!texts || pthread_setspecific(texts_key, texts) != 0) {
            free(texts);
            return NULL;
        }
    }
    return texts->text[texts->next++ % SHOWN];
}

const char *shown(const char *text)
{
    char escape[ESCAPE];
    const char *at = text;
    while (*at) {
        const size_t length = escape_of(at, escape);
        if (escape[0]) break;
        at += length;
    }
    if (!*at) return text;
    const int error = errno; /* that a sentence with the name may name, too */
    char *const out = next_text();
    errno = error;
    if (!out) return "(no memory for a name)";
    size_t used = 0;
    for (size_t length; *text && used + ESCAPE < ROOM; text += length) {
        length = escape_of(text, escape);
        const size_t size = escape[0] ? strlen(escape) : length;
        memcpy(out + used, escape[0] ? escape : text, size);
        used += size;
    }
    out[used] = '\0';
    return out;
}

bool is_blank(const char *name)
{
    return name[0] && !name[strspn(name, " ")];
}

const char *shown_bare(const char *name)
{
    static const char space[] = "\\x20";
    if (!is_blank(name)) return shown(name);
    char *const out = next_text();
    if (!out) return "(no memory for a name)";
    size_t used = 0;
    for (; *name && used + sizeof space < ROOM; name++, used += sizeof space - 1)
        memcpy(out + used, space, sizeof space);
    return out;
}

void print_shown_lines(FILE *to, const char *text, size_t size)
{
    char escape[ESCAPE];
    for (size_t at = 0, length; at < size; at += length) {
        char character[8] = ""; /* the text need not end with a zero */
        memcpy(character, text + at, size - at < sizeof character - 1 ? size - at : sizeof character - 1);
        length = escape_of(character, escape);
        if (escape[0] && character[0] != '\n' && character[0] != '\t')
            fputs(escape, to);
        else
            fwrite(character, 1, length, to);
    }
}
