/* A part of a large set that stands for all of it. */
#ifndef TSR_APP_CLI_COMPARE_SAMPLE_H
#define TSR_APP_CLI_COMPARE_SAMPLE_H

#include "app/cli/cli.h"

/* Leaves the images of the sample in the list, if the options want one: of each modality and size (in steps of four)
 * its share, and at least one while there is room. The same seed and the same files give the same sample. Errors:
 * TSR_ERROR_LIMIT. */
enum tsr_status take_images(const struct options *options, struct tsr_engine *engine, struct task_list *list,
                            struct tsr_error *error);

#endif
