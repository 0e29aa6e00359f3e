/* The report of compress, test and verify: a page that says what was proven, and of which files. */
#ifndef TSR_APP_CLI_EVIDENCE_EVIDENCE_H
#define TSR_APP_CLI_EVIDENCE_EVIDENCE_H

#include "app/cli/cli.h"
#include "sha256.h"

/* Hashes of a file that was compared with its .tsr, in hexadecimal. Empty: not worked out. */
struct file_hashes {
    char original_xxh3[HASH_TEXT], restored_xxh3[HASH_TEXT], samples_xxh3[HASH_TEXT];
    char original_sha256[SHA256_TEXT + 1], restored_sha256[SHA256_TEXT + 1], samples_sha256[SHA256_TEXT + 1];
    uint32_t frames; /* 0: no image */
};

/* Opens the page's file, so that a night's run does not end without one. Errors: those of open_page. */
enum tsr_status begin_evidence(const struct options *options, struct tsr_error *error);

/* One file, in the order of reports. Does nothing without begin_evidence. */
void add_evidence(const struct options *options, const struct task *task, const struct outcome *outcome);

/* Writes the page, if begin_evidence has opened one: its verdict is the tally's. sentence: why the run did not begin,
 * or NULL. Errors: TSR_ERROR_WRITE, TSR_ERROR_LIMIT. */
enum tsr_status end_evidence(const struct options *options, const struct task_list *list, const struct tally *tally,
                             const char *sentence, struct tsr_error *error);

/* Nothing came of the run: leaves no page. */
void drop_evidence(void);

#endif
