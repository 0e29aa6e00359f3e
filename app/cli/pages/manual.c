/* The parts of tessera.1 that the option table says. */
#include "pages.h"

void put_synopsis(FILE *to)
{
    for (int v = 0; v < VERB_COUNT; v++) {
        fprintf(to, ".B tessera %s\n", verb_row((enum verb)v)->name);
        fputs("[\\fIOPTION\\fR...] ", to);
        put_roff(to, verb_row((enum verb)v)->synopsis);
        fputs("\n.br\n", to);
    }
}

void put_verbs(FILE *to)
{
    for (int v = 0; v < VERB_COUNT; v++) {
        const struct verb_row *const row = verb_row((enum verb)v);
        fputs(".TP\n.B ", to);
        fprintf(to, "%s\n", row->name);
        put_wrapped(to, row->purpose, 0, 0);
    }
}

static void put_flags(FILE *to, const struct option_row *row)
{
    fputs(".TP\n", to);
    if (!row->name) {
        fprintf(to, "\\fB\\-%c\\fR ... \\fB", row->code);
        put_roff(to, row->argument);
        fputs("\\fR\n", to);
        return;
    }
    if (row->code < 256) fprintf(to, "\\fB\\-%c\\fR, ", row->code);
    fputs("\\fB\\-\\-", to);
    put_roff(to, row->name);
    fputs("\\fR", to);
    if (row->argument) {
        fputs(row->argument[0] == '[' ? "\\fI" : " \\fI", to);
        put_roff(to, row->argument);
        fputs("\\fR", to);
    }
    putc('\n', to);
}

/* "(compress, test)" */
static void put_takers(FILE *to, int verbs)
{
    const int all = (1 << VERB_COUNT) - 1;
    char text[32 * VERB_COUNT] = "(all verbs)";
    size_t used = 0;
    for (int v = 0; v < VERB_COUNT && (verbs & all) != all; v++)
        if (verbs & 1 << v)
            used += (size_t)snprintf(text + used, sizeof text - used, "%s%s", used > 0 ? ", " : "(",
                                     verb_row((enum verb)v)->name);
    if (used > 0) snprintf(text + used, sizeof text - used, ")");
    put_wrapped(to, text, 0, 0);
}

void put_options(FILE *to)
{
    int count;
    const struct option_row *const rows = option_rows(&count);
    for (const struct option_row *row = rows; row < rows + count; row++) {
        if (!row->verbs) {
            fprintf(to, ".SS %s\n", row->help);
            continue;
        }
        put_flags(to, row);
        put_wrapped(to, row->help, 0, 0);
        put_takers(to, row->verbs);
    }
}

void put_examples(FILE *to)
{
    for (int v = 0; v < VERB_COUNT; v++) {
        const struct verb_row *const row = verb_row((enum verb)v);
        for (int i = 0; i < EXAMPLES && row->examples[i].words; i++) {
            fprintf(to, ".TP\n.B tessera %s ", row->name);
            put_roff(to, row->examples[i].words);
            putc('\n', to);
            put_wrapped(to, row->examples[i].does, 0, 0);
        }
    }
}
