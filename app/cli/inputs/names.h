/* Names: see names.c. Functions that return a name allocate it; NULL: no memory. */
#ifndef TSR_APP_CLI_INPUTS_NAMES_H
#define TSR_APP_CLI_INPUTS_NAMES_H

#include "app/cli/cli.h"

/* The place of the original of an input: a .tsr file's without the suffix. */
char *original_name(const struct options *options, const char *name);

/* The output of an original's place. */
char *output_name(const struct options *options, const char *original);

/* Whether the verb writes a file for each input. */
bool writes(const struct options *options);
bool has_tsr_suffix(const char *name);
char *join(const char *folder, const char *name);

/* The last name of a path, without the folder; "stdin" of a pipe without a name. */
char *last_name(const char *path);

/* The path in the layout of a file that was named. */
char *layout_name(const struct options *options, const char *path);

bool is_same_file(const char *path, const char *other);
bool is_folder(const char *path);

/* Whether the only input has an output of its own name: no folder. */
bool names_one_file(const struct options *o);

/* OUT of several inputs is a folder: one that is there, or one that has no name of a file. Errors: TSR_ERROR_USAGE,
 * TSR_ERROR_WRITE. */
enum tsr_status check_folder(const struct options *o, struct tsr_error *error);

/* An output that is named as a kind of image that it will not be: TSR_ERROR_USAGE. */
enum tsr_status check_ending(const struct options *options, struct tsr_error *error);

#endif
