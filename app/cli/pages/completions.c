/* The parts of the completions for bash, zsh and fish that the option table says. */
#include <string.h>

#include "pages.h"

/* Calls put for each row of a verb. */
static void each_row(FILE *to, enum verb verb, void (*put)(FILE *to, enum verb verb, const struct option_row *row))
{
    int count;
    const struct option_row *const rows = option_rows(&count);
    for (const struct option_row *row = rows; row < rows + count; row++)
        if (row->verbs & 1 << verb) put(to, verb, row);
}

static bool has_letter(const struct option_row *row)
{
    return row->name && row->code < 256;
}

/* A text within single quotes, and of these characters each behind a backslash. */
static void put_quoted(FILE *to, const char *text, const char *escaped, const char *quote)
{
    for (; *text; text++) {
        if (*text == '\'') {
            fputs(quote, to);
            continue;
        }
        if (strchr(escaped, *text)) putc('\\', to);
        putc(*text, to);
    }
}

static void put_words(FILE *to, const struct values *values)
{
    for (int i = 0; i < values->count; i++) fprintf(to, "%s%s", i > 0 ? " " : "", values->words[i]);
}

/* ---- bash ------------------------------------------------------------------------------------------------- */

static void put_bash_name(FILE *to, enum verb verb, const struct option_row *row)
{
    (void)verb;
    for (char effort = '1'; !row->name && effort <= '9'; effort++) fprintf(to, " -%c", effort);
    if (has_letter(row)) fprintf(to, " -%c", row->code);
    if (row->name) fprintf(to, " --%s", row->name);
}

static void put_bash_values(FILE *to, enum verb verb, const struct option_row *row)
{
    struct values values;
    (void)verb;
    find_values(row, &values);
    if (values.kind == VALUE_NONE) return;
    fputs("        ", to);
    if (has_letter(row)) fprintf(to, "-%c | ", row->code);
    if (!values.is_optional) fprintf(to, "--%s | ", row->name);
    fprintf(to, "--%s=) ", row->name);
    if (values.kind == VALUE_WORDS) {
        fputs("words='", to);
        put_words(to, &values);
        fputs("'", to);
    }
    fprintf(to, "%s ;;\n", values.kind == VALUE_FILE ? "kind=file" : values.kind == VALUE_TEXT ? "kind=text" : "");
}

void put_bash(FILE *to)
{
    fputs("    local verbs='", to);
    for (int v = 0; v < VERB_COUNT; v++) fprintf(to, "%s%s", v > 0 ? " " : "", verb_row((enum verb)v)->name);
    fputs("'\n    case $verb in\n", to);
    for (int v = 0; v < VERB_COUNT; v++) {
        char ending[WORD_ROOM];
        input_ending((enum verb)v, ending);
        fprintf(to, "    %s)\n        ending='%s'\n        options='", verb_row((enum verb)v)->name, ending);
        each_row(to, (enum verb)v, put_bash_name);
        fputs("'\n        case $option in\n", to);
        each_row(to, (enum verb)v, put_bash_values);
        fputs("        esac\n        ;;\n", to);
    }
    fputs("    esac\n", to);
}

/* ---- zsh -------------------------------------------------------------------------------------------------- */

static void put_zsh_help(FILE *to, const struct option_row *row)
{
    putc('[', to);
    put_quoted(to, row->help, "[]\\:", "'\\''");
    putc(']', to);
}

/* What follows the option's name in its specification. */
static void put_zsh_value(FILE *to, const struct option_row *row, const struct values *values)
{
    put_zsh_help(to, row);
    if (values->kind != VALUE_NONE) {
        fputs(values->is_optional ? "::" : ":", to);
        put_quoted(to, row->argument, "[]\\:", "'\\''");
        putc(':', to);
    }
    if (values->kind == VALUE_FILE) fputs("_files", to);
    if (values->kind == VALUE_WORDS) {
        putc('(', to);
        put_words(to, values);
        putc(')', to);
    }
    fputs("' \\\n", to);
}

static void put_zsh_row(FILE *to, enum verb verb, const struct option_row *row)
{
    struct values values;
    const bool repeats = row->argument && strcmp(row->argument, "GLOB") == 0;
    (void)verb;
    find_values(row, &values);
    for (char effort = '1'; !row->name && effort <= '9'; effort++) {
        fprintf(to, "            '(-1 -2 -3 -4 -5 -6 -7 -8 -9)-%c", effort);
        put_zsh_value(to, row, &values);
    }
    if (!row->name) return;
    fputs("            '", to);
    if (repeats) putc('*', to);
    if (has_letter(row) && !repeats) fprintf(to, "(-%c --%s)", row->code, row->name);
    if (has_letter(row))
        fprintf(to, "'{-%c%s,--%s%s}'", row->code, row->argument ? "+" : "", row->name, row->argument ? "=" : "");
    if (!has_letter(row))
        fprintf(to, "--%s%s", row->name, values.is_optional ? "=-" : values.kind != VALUE_NONE ? "=" : "");
    put_zsh_value(to, row, &values);
}

void put_zsh(FILE *to)
{
    fputs("    verbs=(\n", to);
    for (int v = 0; v < VERB_COUNT; v++) {
        fprintf(to, "        '%s:", verb_row((enum verb)v)->name);
        put_quoted(to, verb_row((enum verb)v)->purpose, ":\\", "'\\''");
        fputs("'\n", to);
    }
    fputs("        'help:say what there is'\n    )\n", to);
    fputs("    case $state in\n    verb) _describe -t verbs verb verbs && ret=0 ;;\n    rest)\n        case $words[1] "
          "in\n",
          to);
    fputs("        help) _describe -t verbs verb verbs && ret=0 ;;\n", to);
    for (int v = 0; v < VERB_COUNT; v++) {
        char ending[WORD_ROOM];
        input_ending((enum verb)v, ending);
        fprintf(to, "        %s)\n            _arguments -s -S : \\\n", verb_row((enum verb)v)->name);
        each_row(to, (enum verb)v, put_zsh_row);
        if (ending[0])
            fprintf(to, "            '*:file:_files -g \"*%s(-.)\"' && ret=0\n            ;;\n", ending);
        else
            fputs("            '*:file:_files' && ret=0\n            ;;\n", to);
    }
    fputs("        esac\n        ;;\n    esac\n", to);
}

/* ---- fish ------------------------------------------------------------------------------------------------- */

static void put_fish_help(FILE *to, const char *help)
{
    fputs(" -d '", to);
    put_quoted(to, help, "\\", "\\'");
    fputs("'\n", to);
}

static void put_fish_row(FILE *to, enum verb verb, const struct option_row *row)
{
    struct values values;
    find_values(row, &values);
    for (char effort = '1'; !row->name && effort <= '9'; effort++) {
        fprintf(to, "complete -c tessera -n '__tessera_verb_is %s' -s %c", verb_row(verb)->name, effort);
        put_fish_help(to, row->help);
    }
    if (!row->name) return;
    fprintf(to, "complete -c tessera -n '__tessera_verb_is %s'", verb_row(verb)->name);
    if (has_letter(row)) fprintf(to, " -s %c", row->code);
    fprintf(to, " -l %s", row->name);
    if (values.kind == VALUE_FILE) fputs(" -r -F", to);
    if (values.kind == VALUE_TEXT) fputs(" -x", to);
    if (values.kind == VALUE_WORDS) {
        fputs(values.is_optional ? " -f -a '" : " -x -a '", to);
        put_words(to, &values);
        putc('\'', to);
    }
    put_fish_help(to, row->help);
}

void put_fish(FILE *to)
{
    for (int v = 0; v < VERB_COUNT; v++) {
        fprintf(to, "complete -c tessera -f -n '__tessera_wants_verb; or __tessera_wants_help_of' -a %s",
                verb_row((enum verb)v)->name);
        put_fish_help(to, verb_row((enum verb)v)->purpose);
    }
    for (int v = 0; v < VERB_COUNT; v++) {
        char ending[WORD_ROOM];
        input_ending((enum verb)v, ending);
        each_row(to, (enum verb)v, put_fish_row);
        if (ending[0])
            fprintf(to, "complete -c tessera -f -n '__tessera_verb_is %s' -a '(__fish_complete_suffix %s)'\n",
                    verb_row((enum verb)v)->name, ending);
    }
}
