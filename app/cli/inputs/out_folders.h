/* The folders that a run writes below. */
#ifndef TSR_APP_CLI_OUT_FOLDERS_H
#define TSR_APP_CLI_OUT_FOLDERS_H

#include "app/cli/cli.h"

/* A folder: the first bytes of a task's output. file: it, open; -1: it does not exist yet. */
struct out_folder {
    const char *path;
    size_t length;
    int file;
};

/* Of more folders, the others are not watched. */
enum { OUT_FOLDERS = 64 };
struct out_folders {
    struct out_folder all[OUT_FOLDERS];
    size_t count;
};

/* Notes the folders that the tasks' outputs lie below. The list must stay. */
void begin_out_folders(struct out_folders *folders, const struct task_list *list);

/* TSR_ERROR_WRITE: a folder is another one than when it was first there. */
enum tsr_status check_out_folders(struct out_folders *folders, struct tsr_error *error);

void end_out_folders(struct out_folders *folders);

#endif
