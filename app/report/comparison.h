/* The page of tessera compare. */
#ifndef TSR_APP_REPORT_COMPARISON_H
#define TSR_APP_REPORT_COMPARISON_H

#include <stdbool.h>
#include <stdio.h>

#include "model.h"

/* Writes the page. Views that do not fit in PAGE_LIMIT bytes are left out, and the page says how many. false: no
 * memory, or the file has an error. */
bool report_write_comparison(FILE *f, const struct report_comparison *comparison);

#endif
