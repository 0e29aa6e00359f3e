/* --rm: removes an original that its .tsr restores as the same file. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"

/* Whether the name still leads to the file that was read, as it was then. */
static bool is_unchanged(const char *path, const struct stat *was)
{
    struct stat is;
    return lstat(path, &is) == 0 && is.st_dev == was->st_dev && is.st_ino == was->st_ino &&
           is.st_size == was->st_size && is_same_time(is.st_mtim, was->st_mtim) &&
           is_same_time(is.st_ctim, was->st_ctim);
}

void remove_original(const struct options *options, const struct task *task, struct outcome *outcome)
{
    const struct tsr_report *const r = &outcome->report;
    const bool is_proven = outcome->is_current ? outcome->is_compared : r->verified;
    if (outcome->is_gone)
        return;
    else if (task->descriptor >= 0)
        outcome->kept = "it came through a pipe";
    else if (outcome->input.st_nlink == 0)
        outcome->kept = "it is not there any more";
    else if (S_ISLNK(outcome->input.st_mode))
        outcome->kept = "it is a symbolic link";
    else if (!S_ISREG(outcome->input.st_mode))
        outcome->kept = "it is not a regular file";
    else if (!r->lossless)
        outcome->kept = "its .tsr is lossy";
    else if (!r->identical)
        outcome->kept = "its .tsr restores the same samples in a new file";
    else if (!is_proven)
        outcome->kept = "its .tsr was not proven";
    else if (r->damage[0] && !options->removes_damaged)
        outcome->kept = "it looks damaged; --rm=damaged-too removes it";
    else if (!is_unchanged(task->input, &outcome->input))
        outcome->kept = "it has changed since it was read";
    else if (unlink(task->input) != 0)
        outcome->kept = errno == EACCES || errno == EPERM ? "its folder does not let it be removed" : strerror(errno);
    else
        outcome->removed = true;
}
