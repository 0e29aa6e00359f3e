/* Which originals may be deleted: those that their .tsr is proven to restore as the same file. --rm removes them. */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdlib.h>
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

bool bring_to_disk(int file, const char *path)
{
    char *const copy = strdup(path);
    const int folder = copy ? open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    const bool good = folder >= 0 && fsync(file) == 0 && fsync(folder) == 0;
    if (folder >= 0) close(folder);
    free(copy);
    return good;
}

/* Why an original must stay although what comes back of it is the same file; static, or NULL. */
static const char *reason_of_proof(const struct options *options, const struct outcome *outcome)
{
    const struct tsr_report *const r = &outcome->report;
    const bool is_proven = options->verb == VERB_VERIFY || outcome->is_current ? outcome->is_compared : r->verified;
    if (!is_proven && outcome->is_current) return "it was done before, and was not compared again";
    if (!is_proven) return "its .tsr was not proven";
    if (r->damage[0] && !options->archive.removes) return "it looks damaged";
    if (r->damage[0] && !options->archive.removes_damaged) return "it looks damaged; --rm=damaged-too removes it";
    return NULL;
}

/* Why an original must stay for what it is itself. */
static const char *reason_of_file(const struct task *task, const struct stat *status)
{
    if (task->descriptor >= 0) return "it came through a pipe";
    if (status->st_nlink == 0) return "it is not there any more";
    if (S_ISLNK(status->st_mode)) return "it is a symbolic link";
    return S_ISREG(status->st_mode) ? NULL : "it is not a regular file";
}

static bool is_lasting(const char *path)
{
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    const bool lasts = file >= 0 && bring_to_disk(file, path);
    if (file >= 0) close(file);
    return lasts;
}

/* Why an original must stay for what has happened to it, or to its .tsr, since they were read. */
static const char *reason_of_change(const struct options *options, const struct task_list *list,
                                    const struct task *task, const struct outcome *outcome)
{
    const struct tsr_report *const r = &outcome->report;
    const struct tsr_file_state input = state_of(&outcome->input);
    if (options->verb == VERB_VERIFY) return is_lasting(task->input) ? NULL : "its .tsr may not be on the disk yet";
    if (options->series.path)
        return is_unchanged(task->input, &task->was, false) ? NULL : "it has changed since it was read";
    if (!is_unchanged(task->input, &input, false) && !has_fewer_links(task->input, &outcome->input, r->original_hash))
        return access(task->input, F_OK) == 0 ? "it has changed since it was read" : "it is not there any more";
    if (!task->output) return "its .tsr went to stdout";
    if (has_twin(list, task)) return "its .tsr has two names of this run, which are one file here";
    return is_unchanged(task->output, outcome->is_current ? &outcome->made : &r->output, task->names_output)
               ? NULL
               : "its .tsr was replaced or changed since it was proven";
}

void judge_original(const struct options *options, const struct task_list *list, const struct task *task,
                    struct outcome *outcome)
{
    const enum tsr_promise promise = outcome->report.promise;
    if (outcome->is_gone) return;
    if (options->verb == VERB_VERIFY || options->series.path) {
        const char *const original = task->original ? task->original : task->input;
        if (lstat(original, &outcome->input) != 0) outcome->input.st_nlink = 0;
    }
    outcome->is_judged = true;
    outcome->kept = reason_of_file(task, &outcome->input);
    if (!outcome->kept && promise == TSR_PROMISE_LOSSY) outcome->kept = "its .tsr is lossy";
    if (!outcome->kept && promise != TSR_PROMISE_FILE)
        outcome->kept = "its .tsr restores the same samples in a new file";
    if (!outcome->kept) outcome->kept = reason_of_proof(options, outcome);
    if (!outcome->kept) outcome->kept = reason_of_change(options, list, task, outcome); /* as the last thing */
    if (outcome->kept || !options->archive.removes) return;
    if (unlink(task->input) == 0)
        outcome->removed = true;
    else
        outcome->kept = errno == EACCES || errno == EPERM ? "its folder does not let it be removed" : strerror(errno);
}
