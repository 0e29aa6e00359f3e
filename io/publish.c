/* How an output gets its name: it appears complete or not at all, and replaces only what it may. */
#define _GNU_SOURCE /* renameat2, flock */
#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "file_set.h"
#include "output_parts.h"

enum tsr_status tsr_output_check_target(const struct tsr_output *output, uint32_t own, struct stat *there,
                                        struct tsr_error *error)
{
    if (fstatat(output->spot.folder, output->spot.name, there, AT_SYMLINK_NOFOLLOW) != 0) {
        there->st_mode = 0;
        if (errno == ENOENT) return TSR_OK;
        if (errno == ENAMETOOLONG)
            return tsr_fail_as(error, TSR_ERROR_WRITE, errno,
                               "the file name %s is too long for this folder; give a shorter name", output->path);
        return tsr_fail_call(error, TSR_ERROR_WRITE, "cannot create", output->path);
    }
    if (S_ISDIR(there->st_mode)) return tsr_fail_as(error, TSR_ERROR_WRITE, EISDIR, "%s is a folder", output->path);
    if (S_ISLNK(there->st_mode))
        return tsr_fail_as(error, TSR_ERROR_WRITE, ELOOP,
                           "%s is a symbolic link; outputs do not follow links below the folder that was named",
                           output->path);
    if (!S_ISREG(there->st_mode))
        return tsr_fail(error, TSR_ERROR_WRITE, "%s is not a regular file and is left as it is", output->path);
    if (output->written) TSR_TRY(tsr_file_set_refuse(output->written, output->path, there, own, error));
    if (output->overwrite) return TSR_OK;
    return tsr_fail(error, TSR_ERROR_EXISTS, "%s exists, and overwrite is not set", output->path);
}

void tsr_output_set_time(struct tsr_output *output)
{
    const struct timespec times[2] = {{0, UTIME_NOW}, output->time};
    if (output->has_time) (void)!futimens(output->file, times);
}

/* Gives a name to a file that has none. If the name exists, it stays as it is and errno is EEXIST. */
static int link_file(const struct tsr_output *output, const char *name)
{
    char path[32];
    tsr_path_of_descriptor(output->file, path);
    return linkat(AT_FDCWD, path, output->spot.folder, name, AT_SYMLINK_FOLLOW);
}

static enum tsr_status fail_publish(const struct tsr_output *output, struct tsr_error *error)
{
    return tsr_fail_call(error, TSR_ERROR_WRITE, "cannot name the output", output->path);
}

/* Gives the file the name of a part, so that the part can replace another file. The lock keeps the part from being
 * removed as an orphan. */
static enum tsr_status name_part(struct tsr_output *output, struct tsr_error *error)
{
    struct tsr_part *const part = &output->part;
    enum tsr_status status = TSR_OK;
    tsr_parts_hold();
    flock(output->file, LOCK_EX | LOCK_NB);
    part->folder = output->spot.folder;
    tsr_part_label(part);
    tsr_part_name(part->label, output->size, output->head, part->name);
    if (link_file(output, part->name) == 0) {
        tsr_part_remember(part);
    } else {
        part->name[0] = '\0';
        status = fail_publish(output, error);
    }
    tsr_parts_release();
    return status;
}

/* Whether the name of the part leads to the file that was looked at, whose status the exchange may have changed. */
static bool is_looked_at(const struct tsr_part *part, const struct stat *there)
{
    struct stat now, expected = *there;
    if (fstatat(part->folder, part->name, &now, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(now.st_mode)) return false;
    expected.st_ctim = now.st_ctim;
    return tsr_leads_to(part->folder, part->name, AT_SYMLINK_NOFOLLOW, &expected);
}

/* Exchanges the part with what exists. What another process has put there since it was looked at goes back. */
static enum tsr_status exchange(struct tsr_output *output, const struct stat *there, struct tsr_error *error)
{
    struct tsr_part *const part = &output->part;
    const char *const name = output->spot.name;
    if (!tsr_part_expect(part, name)) return fail_publish(output, error);
    tsr_parts_hold(); /* the part is for a moment what another process has put there */
    int failed = renameat2(part->folder, part->name, part->folder, name, RENAME_EXCHANGE);
    int reason = failed ? errno : 0;
    if (!failed && is_looked_at(part, there)) {
        tsr_part_remove(part); /* the old file */
    } else if (!failed) {
        reason = EEXIST;
        if (renameat2(part->folder, part->name, part->folder, name, RENAME_EXCHANGE) != 0) tsr_part_forget(part);
    } else {
        /* It is gone meanwhile; or the file system cannot exchange files, and then what appears now is lost. */
        if (reason == ENOENT)
            failed = renameat2(part->folder, part->name, part->folder, name, RENAME_NOREPLACE), reason = errno;
        if (failed && (reason == EINVAL || reason == ENOSYS))
            failed = renameat2(part->folder, part->name, part->folder, name, 0), reason = errno;
        if (!failed) tsr_part_forget(part), reason = 0;
    }
    tsr_parts_release();
    errno = reason;
    return reason == 0 ? TSR_OK
           : reason == EEXIST
               ? tsr_fail(error, TSR_ERROR_EXISTS, "%s was replaced by another process meanwhile, and is left as it is",
                          output->path)
               : fail_publish(output, error);
}

/* Puts the file in the place of what exists, if that may be replaced. own: its number in its set. */
static enum tsr_status replace(struct tsr_output *output, uint32_t own, struct tsr_error *error)
{
    struct stat there;
    if (!output->part.name[0]) TSR_TRY(name_part(output, error));
    if (output->written) tsr_file_set_lock(output->written);
    enum tsr_status status = tsr_output_check_target(output, own, &there, error);
    if (status == TSR_OK) status = exchange(output, &there, error);
    if (output->written) tsr_file_set_unlock(output->written);
    return status;
}

/* Gives the file its name if nothing else has it. Else returns -1, with EEXIST in errno; or with another error if a
 * part cannot be named so. */
static int name_new(struct tsr_output *output)
{
    struct tsr_part *const part = &output->part;
    if (!part->name[0]) return link_file(output, output->spot.name);
    int failed = renameat2(part->folder, part->name, part->folder, output->spot.name, RENAME_NOREPLACE);
    if (failed && (errno == EINVAL || errno == ENOSYS)) { /* without RENAME_NOREPLACE: try a link */
        failed = linkat(part->folder, part->name, part->folder, output->spot.name, 0);
        if (!failed) tsr_part_remove(part);
        if (failed && errno != EEXIST) errno = EINVAL;
    }
    if (!failed) tsr_part_forget(part);
    return failed;
}

/* own: the output's number in its set. */
static enum tsr_status take_name(struct tsr_output *output, uint32_t own, struct tsr_error *error)
{
    if (name_new(output) == 0) return TSR_OK;
    const bool exists = errno == EEXIST, has_no_way = errno == EINVAL && output->part.name[0];
    if (has_no_way || (exists && output->overwrite)) return replace(output, own, error);
    if (!exists) return fail_publish(output, error);
    struct stat there;
    if (output->written && fstatat(output->spot.folder, output->spot.name, &there, AT_SYMLINK_NOFOLLOW) == 0)
        TSR_TRY(tsr_file_set_refuse(output->written, output->path, &there, own, error));
    return tsr_fail(error, TSR_ERROR_EXISTS, "%s exists, and overwrite is not set", output->path);
}

enum tsr_status tsr_output_publish(struct tsr_output *output, struct tsr_error *error)
{
    uint32_t own = TSR_NO_FILE;
    struct stat file;
    if (output->kind != TO_FILE) return TSR_OK;
    if (output->part.name[0]) tsr_output_set_time(output);
    if (fstat(output->file, &file) != 0) return fail_publish(output, error);
    if (output->written) { /* before it has its name, so that no other thread of the run can replace it */
        const struct tsr_file_state state = tsr_state_of(&file);
        own = tsr_file_set_announce(output->written, output->path, &state);
        if (own == TSR_NO_FILE) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory to remember %s", output->path);
    }
    const enum tsr_status status = take_name(output, own, error);
    if (status != TSR_OK) {
        if (output->written) tsr_file_set_withdraw(output->written, own);
        return status;
    }
    if (fstat(output->file, &file) == 0) output->published = tsr_state_of(&file); /* the name has changed its status */
    close(output->file);
    output->file = -1;
    return tsr_folder_changed(output->spot.folder, output->path, error);
}

struct tsr_file_state tsr_output_published(const struct tsr_output *output)
{
    return output->published;
}
