/* Files that reports are written to: a page, or a table. The file has its name when it is complete; until then it is
 * called FILE.part. */
#ifndef TSR_APP_CLI_EVIDENCE_PAGE_FILE_H
#define TSR_APP_CLI_EVIDENCE_PAGE_FILE_H

#include <stdio.h>

#include "app/cli/cli.h"

struct page_file {
    const char *path; /* the caller's */
    char *part;
    FILE *file; /* to be written to; NULL: it is not open */
};

/* overwrite: any regular file, else only one that tessera has made. Errors: TSR_ERROR_EXISTS, TSR_ERROR_WRITE,
 * TSR_ERROR_LIMIT. */
enum tsr_status open_page(const char *path, bool overwrite, struct page_file *page, struct tsr_error *error);

/* Brings it to the disk and gives it its name; is_good: all was written. Errors: TSR_ERROR_WRITE; then nothing is left.
 */
enum tsr_status close_page(struct page_file *page, bool is_good, struct tsr_error *error);

/* Leaves nothing. */
void drop_page(struct page_file *page);

/* Before a signal ends the process: no file is left that is not complete, and none is given its name any more. */
void remove_page_parts(void);

#endif
