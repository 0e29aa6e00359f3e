/* --rm: removes an original that its .tsr restores as the same file. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "app/cli/inputs/inputs.h"

/* Whether a name still leads to a file as it was; follows: by links, too. Where numbers of inodes are others at each
 * look, as in some network file systems, the other fields tell. */
static bool is_unchanged(const char *path, const struct tsr_file_state *was, bool follows)
{
    const int flags = follows ? 0 : AT_SYMLINK_NOFOLLOW;
    struct stat status, again;
    if (fstatat(AT_FDCWD, path, &status, flags) != 0 || !S_ISREG(status.st_mode)) return false;
    const struct tsr_file_state is = state_of(&status);
    const bool is_same = is.device == was->device && is.bytes == was->bytes && is.modified_s == was->modified_s &&
                         is.modified_ns == was->modified_ns && is.changed_s == was->changed_s &&
                         is.changed_ns == was->changed_ns;
    return is_same &&
           (is.inode == was->inode || (fstatat(AT_FDCWD, path, &again, flags) == 0 && again.st_ino != status.st_ino));
}

/* Whether a name that has changed leads to the same content all the same: another name of the file was removed, by this
 * run too, which changes the time that its state was changed. */
static bool has_fewer_links(const char *path, const struct stat *was, const uint8_t hash[16])
{
    const struct tsr_data_source source = tsr_from_path(path);
    struct tsr_file_state wanted = state_of(was);
    struct tsr_error ignored;
    struct stat status;
    uint8_t found[16];
    if (lstat(path, &status) != 0 || status.st_nlink >= was->st_nlink) return false;
    const struct tsr_file_state is = state_of(&status);
    wanted.changed_s = is.changed_s;
    wanted.changed_ns = is.changed_ns;
    return is_unchanged(path, &wanted, false) && tsr_hash(&source, found, &ignored) == TSR_OK &&
           memcmp(found, hash, sizeof found) == 0 && is_unchanged(path, &wanted, false);
}

void remove_original(const struct options *options, const struct task_list *list, const struct task *task,
                     struct outcome *outcome)
{
    const struct tsr_report *const r = &outcome->report;
    const bool is_proven = outcome->is_current ? outcome->is_compared : r->verified;
    const struct tsr_file_state input = state_of(&outcome->input);
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
    else if (r->promise == TSR_PROMISE_LOSSY)
        outcome->kept = "its .tsr is lossy";
    else if (r->promise != TSR_PROMISE_FILE)
        outcome->kept = "its .tsr restores the same samples in a new file";
    else if (!is_proven)
        outcome->kept = "its .tsr was not proven";
    else if (r->damage[0] && !options->archive.removes_damaged)
        outcome->kept = "it looks damaged; --rm=damaged-too removes it";
    else if (!is_unchanged(task->input, &input, false) &&
             !has_fewer_links(task->input, &outcome->input, r->original_hash))
        outcome->kept =
            access(task->input, F_OK) == 0 ? "it has changed since it was read" : "it is not there any more";
    else if (has_twin(list, task))
        outcome->kept = "its .tsr has two names of this run, which are one file here";
    else if (!is_unchanged(task->output, outcome->is_current ? &outcome->made : &r->output,
                           task->names_output)) /* as the last thing */
        outcome->kept = "its .tsr was replaced or changed since it was proven";
    else if (unlink(task->input) != 0)
        outcome->kept = errno == EACCES || errno == EPERM ? "its folder does not let it be removed" : strerror(errno);
    else
        outcome->removed = true;
}
