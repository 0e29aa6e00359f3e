/* How results were made: the last section of each page. */
#ifndef TSR_APP_REPORT_ORIGIN_H
#define TSR_APP_REPORT_ORIGIN_H

#include <stdio.h>

#include "model.h"

/* The list of facts: command, version, machine, time. */
void origin_write(FILE *f, const struct report_origin *origin);

/* A BibTeX entry with a button that copies it. */
void origin_write_citation(FILE *f, const struct report_origin *origin);

#endif
