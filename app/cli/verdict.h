/* Whether a run is well. This is the one definition: exit statuses, first lines of pages, JSON lines and the last line
 * of summaries have it from here. SECURITY.md has it as a table. */
#ifndef TSR_APP_CLI_VERDICT_H
#define TSR_APP_CLI_VERDICT_H

#include <stdbool.h>
#include <stddef.h>

#include "app/tessera.h"

enum verdict {
    VERDICT_PASS,     /* all that was to be done is done and proven */
    VERDICT_UNPROVEN, /* all is done, and nothing was proven, as --verify none asks */
    VERDICT_FAIL      /* the exit status is not 0 */
};

/* What a run came to. */
struct tally {
    size_t files;          /* that were to be done */
    size_t failed;         /* of these */
    size_t left;           /* of these: not begun, or not reported by any run */
    size_t unproven;       /* of these: done without proof */
    size_t not_taken;      /* names beside them: links, devices and the like */
    size_t damaged;        /* of the files: originals that look damaged. They come back as they are: no verdict */
    size_t kept;           /* of the files: other originals that --rm was to remove, and has not. No verdict either */
    bool may_be_empty;     /* a shard of a set that has files */
    bool lacks_entries;    /* the manifest that the files were compared with is not complete */
    enum tsr_status only;  /* of the file, where it is one */
    enum tsr_status ended; /* what kept the run from its work, or from the rest of it; TSR_OK: nothing */
    enum tsr_status
        unwritten; /* the manifest or the report could not be written; TSR_OK: they were, or none was asked for */
};

enum verdict judge(const struct tally *tally);

/* The exit status: that of the file, where it is one; of several TSR_ERROR_PARTIAL. TSR_OK unless the verdict is FAIL.
 */
enum tsr_status verdict_status(const struct tally *tally);

const char *verdict_word(enum verdict verdict); /* "PASS", as people read it */
const char *verdict_name(enum verdict verdict); /* "pass", as JSON has it */

/* What is to be said beside the word: "2 files failed, 4 names were not taken", or "". And both:
 * "PASS, 4 names were not taken". */
enum { VERDICT_ROOM = 320 };
void explain_verdict(const struct tally *tally, char text[VERDICT_ROOM]);
void say_verdict(const struct tally *tally, char text[VERDICT_ROOM]);

#endif
