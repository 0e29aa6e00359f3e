/* Text of others, such as the names of files, as a terminal, a log or a table may have it. */
#ifndef TSR_APP_CLI_WORDS_SHOWN_H
#define TSR_APP_CLI_WORDS_SHOWN_H

#include <stdbool.h>
#include <stdio.h>

/* The text itself, or, where it has what no reader sees or what is not UTF-8, a text with escapes in its place: \n,
 * \x1b (a byte), \u202e (a code point). That one lasts for three more calls of the thread. */
const char *shown(const char *text);

/* The same of a name that stands without quotes: one of spaces alone is escaped, too. */
const char *shown_bare(const char *name);
bool is_blank(const char *name); /* of spaces alone */

/* shown of a text of several lines: newlines and tabulators stay. */
void print_shown_lines(FILE *to, const char *text, size_t size);

#endif
