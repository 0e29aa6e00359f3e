/* Progress on stderr: one line that is redrawn on a terminal, a line every 30 seconds elsewhere, or JSON lines. */
#ifndef TSR_APP_CLI_PROGRESS_H
#define TSR_APP_CLI_PROGRESS_H

#include "cli.h"

/* What is done so far. bytes are those that the rate is told of: of the originals. */
struct progress {
    size_t files, failed, all_files;
    uint64_t bytes, all_bytes; /* of inputs, done and of the whole set */
    uint64_t bytes_in, bytes_out;
    double work, all_work; /* what tells of the time that is left, where it is known better than by bytes; else 0 */
    const char *what;      /* what is counted, where that is not files; static */
    const char *current;   /* a file that is at work, or NULL */
};

/* Called by one thread at a time. */
void progress_begin(const struct options *options);
bool progress_is_shown(void);                        /* at all */
void progress_show(const struct progress *progress); /* draws where it is time for it */
void progress_clear(void);                           /* before other output; the next show draws again at once */
void progress_end(const struct progress *at_end);    /* NULL: there is nothing to say of the end */

#endif
