/* Makes one page from its template: tessera_pages TEMPLATE DATE TESSERA.H EXAMPLE.C >PAGE. See
 * pages.h. */
#include "pages.h"

#include <stdlib.h>
#include <string.h>

/* One of the words of "auto|cpu|cuda"; of "I/N|auto" only "auto" is one. */
static bool is_word(const char *text, size_t length)
{
    const bool begins = *text >= 'a' && *text <= 'z';
    return begins && length < WORD_ROOM && strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789-") >= length;
}

static void add_word(struct values *values, const char *word, size_t length)
{
    if (!is_word(word, length) || values->count == WORDS_LIMIT) return;
    memcpy(values->words[values->count], word, length);
    values->words[values->count++][length] = '\0';
    values->kind = VALUE_WORDS;
}

void find_values(const struct option_row *row, struct values *values)
{
    static const char *const files[] = {"FILE", "OUT", "DIR", "FOLDER"};
    memset(values, 0, sizeof *values);
    if (!row->name || !row->argument) return;
    values->kind = VALUE_TEXT;
    values->is_optional = row->argument[0] == '[';
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
        if (strcmp(row->argument, files[i]) == 0) values->kind = VALUE_FILE;
    if (strcmp(row->argument, "SYNTAX") == 0) /* its words fill a line of the help */
        for (int to = 0; to <= TSR_EXPORT_HTJ2K; to++)
            add_word(values, export_word((enum tsr_export_syntax)to), strlen(export_word((enum tsr_export_syntax)to)));
    for (const char *at = row->argument; *at;) {
        at += strspn(at, "[=|]");
        const size_t length = strcspn(at, "|]");
        add_word(values, at, length);
        at += length;
    }
}

void input_ending(enum verb verb, char ending[WORD_ROOM])
{
    const char *const synopsis = verb_row(verb)->synopsis;
    const size_t length = strcspn(synopsis, " [");
    const char *const dot = memchr(synopsis, '.', length);
    const size_t letters = dot ? strspn(dot + 1, "abcdefghijklmnopqrstuvwxyz") : 0;
    snprintf(ending, WORD_ROOM, "%.*s", letters > 0 ? (int)letters + 1 : 0, dot ? dot : "");
}

void put_roff(FILE *to, const char *text)
{
    if (*text == '.' || *text == '\'') fputs("\\&", to);
    for (; *text; text++) {
        if (*text == '\\')
            fputs("\\e", to);
        else if (*text == '-')
            fputs("\\-", to);
        else
            putc(*text, to);
    }
}

void put_wrapped(FILE *to, const char *text, size_t first, size_t hang)
{
    size_t column = first;
    fprintf(to, "%*s", (int)first, "");
    for (bool begins_line = true; *text; begins_line = false) {
        const size_t length = strcspn(text, " \n");
        char word[256];
        if (!begins_line && column + 1 + length > COLUMNS) {
            fprintf(to, "\n%*s", (int)hang, "");
            column = hang;
        } else if (!begins_line) {
            putc(' ', to);
            column++;
        }
        snprintf(word, sizeof word, "%.*s", (int)length, text);
        for (char *kept = word; (kept = strchr(kept, KEPT_SPACE));) *kept = ' ';
        put_roff(to, word);
        column += length;
        text += length;
        text += strspn(text, " \n");
    }
    putc('\n', to);
}

/* A line of the template, in which @VERSION@, @DATE@ and @FORMAT@ stand for these. */
static void put_line(const char *line, const char *date)
{
    char format[16];
    snprintf(format, sizeof format, "%u", tsr_format_version());
    const char *const names[] = {"@VERSION@", "@DATE@", "@FORMAT@"}, *const texts[] = {tsr_version(), date, format};
    while (*line) {
        size_t found = 0;
        for (size_t i = 0; found == 0 && i < sizeof names / sizeof names[0]; i++) {
            if (strncmp(line, names[i], strlen(names[i])) != 0) continue;
            fputs(texts[i], stdout);
            found = strlen(names[i]);
        }
        if (found == 0) putchar(*line);
        line += found > 0 ? found : 1;
    }
}

static bool put_example(FILE *example, FILE *to)
{
    char line[512];
    while (fgets(line, sizeof line, example)) put_roff(to, line);
    return !ferror(example);
}

/* False: no such name, or no such part. */
static bool put_part(const char *name, FILE *header, FILE *example)
{
    static const struct {
        const char *name;
        void (*put)(FILE *to);
    } parts[] = {{"@synopsis@\n", put_synopsis}, {"@verbs@\n", put_verbs}, {"@options@\n", put_options},
                 {"@examples@\n", put_examples}, {"@bash@\n", put_bash},   {"@zsh@\n", put_zsh},
                 {"@fish@\n", put_fish}};
    if (strcmp(name, "@example@\n") == 0) return put_example(example, stdout);
    if (strcmp(name, "@reference@\n") == 0) return put_reference(header, stdout);
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        if (strcmp(name, parts[i].name) != 0) continue;
        parts[i].put(stdout);
        return true;
    }
    return false;
}

static bool make_page(FILE *template, const char *date, FILE *header, FILE *example)
{
    char line[1024];
    while (fgets(line, sizeof line, template)) {
        if (line[0] != '@' || strchr(line, ' ') || !strstr(line, "@\n")) {
            put_line(line, date);
        } else if (!put_part(line, header, example)) {
            fprintf(stderr, "nothing is made for the line %s", line);
            return false;
        }
    }
    return fflush(stdout) == 0 && !ferror(stdout) && !ferror(template);
}

int main(int argc, char **argv)
{
    FILE *const template = argc == 5 ? fopen(argv[1], "r") : NULL,
                *const header = argc == 5 ? fopen(argv[3], "r") : NULL,
                *const example = argc == 5 ? fopen(argv[4], "r") : NULL;
    const bool made = template && header && example && make_page(template, argv[2], header, example);
    if (template) fclose(template);
    if (header) fclose(header);
    if (example) fclose(example);
    if (!made) fprintf(stderr, "usage: tessera_pages TEMPLATE DATE TESSERA.H EXAMPLE.C >PAGE\n");
    return made ? 0 : 1;
}
