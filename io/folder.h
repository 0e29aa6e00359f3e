/* Folders of outputs: opened without following symbolic links, created if they are missing, cleared of parts of
 * killed runs, and synced to the disk. */
#ifndef TSR_IO_FOLDER_H
#define TSR_IO_FOLDER_H

#include "transform/status.h"

/* A path that was opened: its folder, and the name in that folder. */
struct tsr_spot {
    int folder;
    char *name;
};

/* Opens the folder of path and creates missing folders. Symbolic links are followed only in the first root bytes of
 * path, which name a folder. The caller closes the spot with tsr_spot_close. Errors: TSR_ERROR_WRITE (a component of
 * path is a symbolic link or not a folder), TSR_ERROR_LIMIT. */
enum tsr_status tsr_spot_open(const char *path, size_t root, struct tsr_spot *spot, struct tsr_error *error);
void tsr_spot_close(struct tsr_spot *spot);

/* Notes that a folder has new names that are not on the disk yet; the next tsr_sync_folders brings them there. path
 * appears in error texts. Errors: TSR_ERROR_WRITE. */
enum tsr_status tsr_folder_changed(int folder, const char *path, struct tsr_error *error);

#endif
