/* The pages that are made from the option table and from tessera.h while Tessera is built: manual pages and
 * completions for shells. A page is a template; a line "@name@" in it stands for what one of these functions prints. */
#ifndef TSR_APP_CLI_PAGES_PAGES_H
#define TSR_APP_CLI_PAGES_PAGES_H

#include <stdio.h>

#include "app/cli/cli.h"

enum { WORDS_LIMIT = 24, WORD_ROOM = 32, COLUMNS = 72 };

/* A space at which put_wrapped breaks no line. */
#define KEPT_SPACE '\1'

/* What the argument of an option may be. */
struct values {
    enum { VALUE_NONE, VALUE_TEXT, VALUE_FILE, VALUE_WORDS } kind; /* none: it has no argument; text: anything */
    bool is_optional;                                              /* only behind '=' */
    int count;
    char words[WORDS_LIMIT][WORD_ROOM];
};

/* pages.c */
void find_values(const struct option_row *row, struct values *values);

/* The end of the names of a verb's inputs, as ".tsr"; empty: any. */
void input_ending(enum verb verb, char ending[WORD_ROOM]);

/* A text for roff: in filled text no character of it is a macro's. */
void put_roff(FILE *to, const char *text);

/* The same, as words in lines of at most COLUMNS, the first of them indented by first, the others by hang. */
void put_wrapped(FILE *to, const char *text, size_t first, size_t hang);

/* manual.c: tessera.1 */
void put_synopsis(FILE *to);
void put_verbs(FILE *to);
void put_options(FILE *to);
void put_examples(FILE *to);

/* reference.c: libtessera.3, from the header, which stays open. False: it is not written as tessera.h is. */
bool put_reference(FILE *header, FILE *to);

/* completions.c */
void put_bash(FILE *to);
void put_zsh(FILE *to);
void put_fish(FILE *to);

#endif
