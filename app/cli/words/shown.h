/* Text of others, such as the names of files, as a terminal, a log or a table may have it. */
#ifndef TSR_APP_CLI_WORDS_SHOWN_H
#define TSR_APP_CLI_WORDS_SHOWN_H

#include <stdbool.h>
#include <stdio.h>

/* Whether a text is of spaces alone. */
bool is_blank(const char *text);

/* The text itself, or, where it has what no reader sees or what is not UTF-8, a text with escapes in its place: \n,
 * \x1b (a byte), \u202e (a code point); spaces are escaped where there is nothing else. That one lasts for three more
 * calls of the thread. */
const char *shown(const char *text);

/* The same of a text of several lines: newlines and tabulators stay. */
void print_shown_lines(FILE *to, const char *text, size_t size);

#endif
