/* Which paths lead to one file. The sets of tessera.h, as outputs use them. */
#ifndef TSR_IO_FILE_SET_H
#define TSR_IO_FILE_SET_H

#include <sys/stat.h>

#include "transform/status.h"
#include "app/tessera_cli.h"

struct tsr_file_state tsr_state_of(const struct stat *status);

/* Whether two paths with these statuses lead to one file. */
bool tsr_is_one_file(const struct tsr_file_state *one, const char *path, const struct tsr_file_state *other,
                     const char *other_path);

/* Whether a name in a folder (AT_FDCWD: a path) leads to the file that has this status. flags: those of fstatat. False
 * with errno: nothing can be found there; with errno 0: another file. */
bool tsr_leads_to(int folder, const char *name, int flags, const struct stat *status);

/* Adds a file that is to get this path. Returns its number; TSR_NO_FILE: no memory. */
#define TSR_NO_FILE UINT32_MAX
uint32_t tsr_file_set_announce(struct tsr_file_set *set, const char *path, const struct tsr_file_state *state);

/* The file did not get its path: it leaves the set. */
void tsr_file_set_withdraw(struct tsr_file_set *set, uint32_t file);

/* TSR_ERROR_SAME_FILE with both paths if the file of this path and status is one of the set, but for that number. */
enum tsr_status tsr_file_set_refuse(struct tsr_file_set *set, const char *path, const struct stat *status, uint32_t but,
                                    struct tsr_error *error);

/* Held while a file is looked at and then replaced, or while a name is looked for and then taken. */
void tsr_file_set_lock(struct tsr_file_set *set);
void tsr_file_set_unlock(struct tsr_file_set *set);

#endif
