/* Why many files of a set fail in one way: the first few are named, the others counted. */
#ifndef TSR_APP_CLI_SUMMARY_REPEATED_H
#define TSR_APP_CLI_SUMMARY_REPEATED_H

#include "app/cli/cli.h"

/* Whether the verb goes on with --update. */
bool has_update(const struct options *options);

/* Of a task whose output exists: whether it is one that -f or --update would have replaced, had it been there when the
 * inputs were listed. */
bool is_another_runs(const struct options *options, const struct task *task);

/* Counts the failure of a task. outcome->is_counted: enough were said that have its cause. With -v all are said. */
void count_failure(const struct options *options, const struct task *task, struct outcome *outcome);

/* Says of each cause how many files beyond those have it, and forgets them. */
void say_counted(void);

#endif
