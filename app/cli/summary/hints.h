/* What a summary says of a better way. */
#ifndef TSR_APP_CLI_SUMMARY_HINTS_H
#define TSR_APP_CLI_SUMMARY_HINTS_H

#include "app/cli/cli.h"

/* After compress: that small outputs take far more of the disk than they have bytes, and that a series would not. Says
 * nothing where that is not so, or where a series cannot do what was asked for. */
void hint_at_series(const struct options *options, const struct task_list *list);

#endif
