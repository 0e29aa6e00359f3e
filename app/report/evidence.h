/* The page of compress, test and verify: what was compared, and what came out. */
#ifndef TSR_APP_REPORT_EVIDENCE_H
#define TSR_APP_REPORT_EVIDENCE_H

#include <stdbool.h>
#include <stdio.h>

#include "model.h"

/* Above this number of files, the table has only those that do not come back as the same file. */
enum { EVIDENCE_ROWS_LIMIT = 20000 };

/* false: the file has an error. */
bool report_write_evidence(FILE *f, const struct report_evidence *evidence);

#endif
