/* The page of compress, test and verify: what was compared, and what came out. */
#ifndef TSR_APP_REPORT_EVIDENCE_H
#define TSR_APP_REPORT_EVIDENCE_H

#include <stdbool.h>
#include <stdio.h>

#include "model.h"

/* No table of files is longer than this, in bytes, and no list. What failed comes first where not all has room. */
enum { EVIDENCE_TABLE_BYTES = 3 << 20, EVIDENCE_LIST_BYTES = 1 << 18 };

/* The page has no use for more files of one sort than this: those that failed, and so on. */
enum evidence_sort { SORT_FAILED, SORT_DIFFERS, SORT_NOT_TAKEN, SORT_DAMAGED, SORT_STORED, SORT_SAME, EVIDENCE_SORTS };
enum { EVIDENCE_FILES_LIMIT = 5000 };
enum evidence_sort evidence_sort_of(const struct evidence_file *file);

/* Adds a file to the counts. */
void evidence_count(struct evidence_counts *counts, const struct evidence_file *file);

/* false: no memory, or the file has an error. */
bool report_write_evidence(FILE *f, const struct report_evidence *evidence);

#endif
