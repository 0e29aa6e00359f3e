/* The reference in libtessera.3: what tessera.h declares, each with its comment. The header is read as it is written:
 * a comment at the beginning of a line belongs to the declarations up to the next blank line or comment. */
#include <stdlib.h>
#include <string.h>

#include "pages.h"

enum { LINE_ROOM = 512, TEXT_ROOM = 1 << 16 };

struct reference {
    FILE *header, *to;
    char line[LINE_ROOM]; /* of the header, without its end */
    char comment[TEXT_ROOM], code[TEXT_ROOM];
    bool is_sound;
    bool is_titled; /* nothing stands below a heading yet */
};

static bool next_line(struct reference *r)
{
    if (!fgets(r->line, sizeof r->line, r->header)) return false;
    r->is_sound &= strchr(r->line, '\n') != NULL;
    r->line[strcspn(r->line, "\n")] = '\0';
    return true;
}

static void append(struct reference *r, char text[TEXT_ROOM], const char *more, const char *end)
{
    const size_t used = strlen(text);
    r->is_sound &= snprintf(text + used, TEXT_ROOM - used, "%s%s", more, end) < (int)(TEXT_ROOM - used);
}

static bool begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

/* ---- Comments --------------------------------------------------------------------------------------------- */

/* Where a paragraph stands: a heading and a list entry need no macro between them and their text. */
struct paragraph {
    bool in_list, is_due;
};

/* A paragraph's line; "name  what it is", indented by a few spaces, begins an entry of a list. */
static void put_comment_line(FILE *to, const char *line, struct paragraph *p)
{
    const size_t indent = strspn(line, " ");
    const char *const text = line + indent, *const gap = strstr(text, "  ");
    if (!*text) {
        p->is_due = true;
    } else if (indent > 0 && indent <= 4 && gap && (size_t)(gap - text) < 12) {
        fprintf(to, ".TP\n.B %.*s\n", (int)(gap - text), text);
        put_wrapped(to, gap + strspn(gap, " "), 0, 0);
        *p = (struct paragraph){.in_list = true};
    } else {
        if (p->is_due || (p->in_list && indent <= 4)) fputs(".PP\n", to);
        *p = (struct paragraph){.in_list = p->in_list && indent > 4};
        put_wrapped(to, text, 0, 0);
    }
}

static void put_comment(FILE *to, const char *comment)
{
    struct paragraph paragraph = {0};
    while (*comment) {
        char line[LINE_ROOM];
        const size_t length = strcspn(comment, "\n");
        snprintf(line, sizeof line, "%.*s", (int)length, comment);
        put_comment_line(to, line, &paragraph);
        comment += length + 1;
    }
}

/* Reads a comment, whose first line is there. */
static void take_comment(struct reference *r)
{
    r->comment[0] = '\0';
    for (bool is_first = true;; is_first = false) {
        char *text = r->line + (is_first ? strlen("/*") : strspn(r->line, " "));
        if (!is_first && *text == '*' && text[1] != '/') text++;
        if (*text == ' ') text++;
        char *const end = strstr(text, "*/");
        if (end) *end = '\0';
        for (size_t length = strlen(text); length > 0 && text[length - 1] == ' ';) text[--length] = '\0';
        if (*text || !end) append(r, r->comment, text, "\n");
        if (end || !next_line(r)) break;
    }
}

/* ---- Declarations ----------------------------------------------------------------------------------------- */

/* A line of a structure or an enumeration whose comment, which may go on, is moved below it where it is long. */
static const char *put_member(FILE *to, const char *at)
{
    char code[LINE_ROOM], comment[4096];
    const size_t length = strcspn(at, "\n"), indent = strspn(at, " ");
    const char *const opening = strstr(at, "/*");
    if (!opening || opening > at + length) {
        snprintf(code, sizeof code, "%.*s", (int)(length - indent), at + indent);
        put_wrapped(to, code, indent, indent + 4);
        return at + length + (at[length] == '\n');
    }
    const char *const closing = strstr(opening, "*/"), *const end = closing ? closing + 2 : at + strlen(at);
    size_t used = (size_t)(opening - at) - indent;
    while (used > 0 && at[indent + used - 1] == ' ') used--;
    snprintf(code, sizeof code, "%.*s", (int)used, at + indent);
    snprintf(comment, sizeof comment, "%.*s", (int)(end - opening), opening);
    for (char *star = comment; (star = strstr(star, "\n")); star++) {
        star += strspn(star + 1, " ");
        if (strncmp(star + 1, "* ", 2) == 0) star[1] = ' ';
    }
    const bool is_short = !strchr(comment, '\n') && indent + used + 1 + strlen(comment) <= COLUMNS;
    if (used > 0 && is_short) {
        strcat(code, " ");
        strcat(code, comment);
        put_wrapped(to, code, indent, indent);
    } else {
        if (used > 0) put_wrapped(to, code, indent, indent + 4);
        put_wrapped(to, comment, indent + (used > 0 ? 4 : 0), indent + (used > 0 ? 7 : 3));
    }
    return end + (*end == '\n');
}

/* Functions are wrapped anew, between their parameters; what follows one on its line is its comment. */
static const char *put_function(FILE *to, const char *at)
{
    char code[4096];
    const char *const end = strchr(at, ';');
    const size_t length = end ? (size_t)(end - at) + 1 : strlen(at);
    snprintf(code, sizeof code, "%.*s", (int)length, at);
    char *gap = strchr(code, '(');
    for (gap = gap ? strpbrk(gap, " \n") : NULL; gap; gap = strpbrk(gap + 1, " \n"))
        if (gap[-1] != ',' && gap[1] != ' ') *gap = KEPT_SPACE;
    put_wrapped(to, code, 0, 4);
    at += length;
    at += strspn(at, " ");
    if (*at == '/') return put_member(to, at);
    return at + (*at == '\n');
}

static void flush_reference(struct reference *r)
{
    if ((r->code[0] || r->comment[0]) && !r->is_titled) fputs(".PP\n", r->to);
    r->is_titled &= !r->code[0] && !r->comment[0];
    if (r->code[0]) {
        fputs(".EX\n", r->to);
        for (const char *at = r->code; *at;) {
            if (begins(at, "TSR_API "))
                at = put_function(r->to, at + strlen("TSR_API "));
            else
                at = begins(at, "static inline ") ? put_function(r->to, at) : put_member(r->to, at);
        }
        fputs(".EE\n", r->to);
    }
    if (r->comment[0]) {
        if (r->code[0]) fputs(".RS 4\n", r->to);
        put_comment(r->to, r->comment);
        if (r->code[0]) fputs(".RE\n", r->to);
    }
    r->code[0] = r->comment[0] = '\0';
}

/* An inline function without its body. */
static void take_inline(struct reference *r)
{
    while (strcmp(r->line, "{") != 0) {
        append(r, r->code, r->line, "\n");
        if (!next_line(r)) return;
    }
    r->code[strlen(r->code) - 1] = '\0';
    append(r, r->code, ";\n", "");
    while (strcmp(r->line, "}") != 0 && next_line(r)) continue;
}

/* What depends on the compiler is left out. */
static void skip_condition(struct reference *r)
{
    for (int depth = 1; depth > 0 && next_line(r);) depth += begins(r->line, "#if") - begins(r->line, "#endif");
}

static void take_line(struct reference *r)
{
    if (begins(r->line, "/* ----")) {
        flush_reference(r);
        char *const title = r->line + strspn(r->line, "/*- ");
        title[strcspn(title, "-*")] = '\0';
        fputs(".SS ", r->to);
        put_wrapped(r->to, title, 0, 0);
        r->is_titled = true;
    } else if (begins(r->line, "/*")) {
        flush_reference(r);
        take_comment(r);
    } else if (!r->line[0]) {
        flush_reference(r);
    } else if (begins(r->line, "static inline ")) {
        take_inline(r);
    } else if (begins(r->line, "#if") && strcmp(r->line, "#ifndef TESSERA_H") != 0) {
        r->comment[0] = '\0';
        skip_condition(r);
    } else if (begins(r->line, "#define TSR_") || r->line[0] != '#') {
        append(r, r->code, r->line, "\n");
    }
}

bool put_reference(FILE *header, FILE *to)
{
    struct reference *const r = calloc(1, sizeof *r);
    if (!r) return false;
    *r = (struct reference){.header = header, .to = to, .is_sound = true, .is_titled = true};
    while (next_line(r)) take_line(r);
    flush_reference(r);
    const bool is_sound = r->is_sound;
    free(r);
    return is_sound;
}
