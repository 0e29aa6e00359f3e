/* The folders that a run writes below, which are those of when it began: a share may be unmounted, or a folder moved,
 * while files are at work, and the next outputs would get another folder of the same name. */
#include "out_folders.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_named(const struct out_folder *folder, const struct task *task)
{
    return folder->length == task->root && strncmp(folder->path, task->output, task->root) == 0;
}

/* An open folder keeps its number, also if it is removed. */
static void open_folder(struct out_folder *folder)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%.*s", (int)folder->length, folder->path);
    folder->file = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

void begin_out_folders(struct out_folders *folders, const struct task_list *list)
{
    folders->count = 0;
    for (size_t i = 0; i < list->count && folders->count < OUT_FOLDERS; i++) {
        const struct task *const task = &list->tasks[i];
        if (!task->output || task->names_output || task->root == 0 || task->root >= PATH_MAX) continue;
        bool is_known = false;
        for (size_t k = 0; k < folders->count && !is_known; k++) is_known = is_named(&folders->all[k], task);
        if (is_known) continue;
        struct out_folder *const folder = &folders->all[folders->count++];
        *folder = (struct out_folder){.path = task->output, .length = task->root};
        open_folder(folder);
    }
}

/* Whether the name of an open folder leads to it. Some network file systems have no numbers of files, or others at each
 * look: there the device decides. */
static bool is_there(const struct out_folder *folder)
{
    char path[PATH_MAX];
    struct stat own, again, named;
    snprintf(path, sizeof path, "%.*s", (int)folder->length, folder->path);
    if (fstat(folder->file, &own) != 0 || stat(path, &named) != 0 || fstat(folder->file, &again) != 0) return false;
    if (own.st_dev != named.st_dev) return false;
    return own.st_ino == named.st_ino || own.st_ino == 0 || own.st_ino != again.st_ino;
}

enum tsr_status check_out_folders(struct out_folders *folders, struct tsr_error *error)
{
    for (size_t i = 0; i < folders->count; i++) {
        struct out_folder *const folder = &folders->all[i];
        if (folder->file < 0) open_folder(folder); /* the run has made it, or not yet */
        if (folder->file < 0 || is_there(folder)) continue;
        const enum tsr_status status =
            refuse(error, TSR_ERROR_WRITE,
                   "%.*s is not the folder any more that this run began with: was it moved, or a share unmounted?",
                   (int)(folder->length < 300 ? folder->length : 300), folder->path);
        error->system = ESTALE;
        return status;
    }
    return TSR_OK;
}

void end_out_folders(struct out_folders *folders)
{
    for (size_t i = 0; i < folders->count; i++)
        if (folders->all[i].file >= 0) close(folders->all[i].file);
    folders->count = 0;
}
