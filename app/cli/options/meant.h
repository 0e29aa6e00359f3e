/* What was meant by a word that is no verb or no option: habits of other programs, and slips. Each prints a sentence
 * and returns TSR_ERROR_USAGE. */
#ifndef TSR_APP_CLI_OPTIONS_MEANT_H
#define TSR_APP_CLI_OPTIONS_MEANT_H

#include "options.h"

/* The first word of a command line, which is none of the verbs. */
enum tsr_status refuse_verb(const char *word);

/* An option that getopt_long() refuses: lacks_value, its value is missing. next: the word that getopt_long() would look
 * at next. */
enum tsr_status refuse_option(enum verb verb, bool lacks_value, char *const *next);

/* An option with a name that is given again: what the first one names would be left out. */
enum tsr_status refuse_second(enum verb verb, int code);

/* Words that getopt_long() would take, and that mean something else: "-10", "-q90", "-q 90". TSR_OK: there are none. */
enum tsr_status check_words(int argc, char **argv);

#endif
