/* How a report was made: version, command, machine, time. */
#ifndef TSR_APP_CLI_EVIDENCE_ORIGIN_H
#define TSR_APP_CLI_EVIDENCE_ORIGIN_H

#include "app/cli/cli.h"
#include "app/report/model.h"

/* Fills all but the end; free_origin frees what that allocates. A command names files only where is_identified is set:
 * else each input is IN, and names in options are "...". */
void begin_origin(const struct options *options, bool is_identified, struct report_origin *origin);

/* Notes the end. */
void end_origin(struct report_origin *origin);

void free_origin(struct report_origin *origin);

#endif
