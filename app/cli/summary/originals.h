/* Which originals of a run can be deleted, added up file by file and said in one line. */
#ifndef TSR_APP_CLI_SUMMARY_ORIGINALS_H
#define TSR_APP_CLI_SUMMARY_ORIGINALS_H

#include "app/cli/cli.h"

void add_original(const struct outcome *outcome); /* of a file that is done */
size_t deletable_originals(void);

/* Whether the verb judges originals, and the run as a whole has not failed. */
bool judges_originals(const struct options *options, const struct tally *tally);

void forget_originals(void);

/* "originals: 4 of 6 can be deleted; to keep: 2 (its .tsr is lossy)". Empty: the verb does not judge that, --rm has
 * deleted them, or the run as a whole has failed. "all" is said where the folders hold nothing else of the user's. */
enum { ORIGINALS_ROOM = 640 };
void say_originals(const struct options *options, const struct task_list *list, const struct tally *tally,
                   char text[ORIGINALS_ROOM]);

#endif
