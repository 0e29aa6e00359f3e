/* Folders that outputs go to: opened without following links, made where they are missing, cleared of what earlier runs
 * have left, and brought to the disk. */
#ifndef TSR_IO_FOLDER_H
#define TSR_IO_FOLDER_H

#include "transform/status.h"

/* Where a path leads: an open folder, and a name in it. */
struct tsr_spot {
    int folder;
    char *name;
};

/* Opens the folder of a path. Symbolic links are followed in the first root bytes alone, which name a folder; missing
 * folders are made. What is not closed by tsr_spot_close is the caller's. Errors: TSR_ERROR_WRITE (a link, or no
 * folder, stands in the way), TSR_ERROR_LIMIT. */
enum tsr_status tsr_spot_open(const char *path, size_t root, struct tsr_spot *spot, struct tsr_error *error);
void tsr_spot_close(struct tsr_spot *spot);

/* Names of files that are not finished: .tessera-HOST-PROCESS-NUMBER.part. A name for a new one, of at most
 * TSR_PART_NAME bytes. */
enum { TSR_PART_NAME = 64 };
void tsr_make_part_name(char name[TSR_PART_NAME]);

/* A folder has new names, of which the disk does not know yet: they get there with the next tsr_sync_folders. */
enum tsr_status tsr_folder_changed(int folder, const char *path, struct tsr_error *error);

#endif
