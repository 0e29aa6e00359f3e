/* A file system for tests (libfuse3): it shows a folder, and does not tell all names apart. A name that exists keeps
 * its first spelling, as on VFAT, SMB and APFS. It has no files without names (O_TMPFILE).
 *
 * usage: tsr_fold_fs FOLDER MOUNTPOINT [case] [forms] [zero|changing|paths] [plain]
 *   case      letters of ASCII differ by nothing
 *   forms     letters with accents are one letter, composed (NFC) or not (NFD): a table of some
 *   zero      all inode numbers are 0
 *   changing  an inode has another number at each look
 *   paths     each spelling of a name has an inode number of its own
 *   plain     no links, and no renames that refuse to replace
 * It runs in the foreground until it is unmounted. */
#define FUSE_USE_VERSION 35
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fuse.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int root; /* the folder that is shown */
static bool folds_case, folds_forms, is_plain;
static enum { TRUE_NUMBERS, ZERO, CHANGING, BY_PATH } numbers;
enum { PATH_ROOM = PATH_MAX, NAME_ROOM = 4 * NAME_MAX };

/* ---- Names ------------------------------------------------------------------------------------------------ */

static const char *const forms[][2] = {{"\u00e4", "a\u0308"}, {"\u00f6", "o\u0308"}, {"\u00fc", "u\u0308"},
                                       {"\u00c4", "A\u0308"}, {"\u00d6", "O\u0308"}, {"\u00dc", "U\u0308"},
                                       {"\u00e9", "e\u0301"}, {"\u00e8", "e\u0300"}, {"\u00e0", "a\u0300"},
                                       {"\u00e7", "c\u0327"}, {"\u00f1", "n\u0303"}, {"\u00e5", "a\u030a"}};

/* What all spellings of a name have in common. */
static void fold(const char *name, char folded[NAME_ROOM])
{
    char *to = folded;
    while (*name && to < folded + NAME_ROOM - 4) {
        size_t i = 0;
        while (folds_forms && i < sizeof forms / sizeof *forms && strncmp(name, forms[i][0], strlen(forms[i][0])) != 0)
            i++;
        if (folds_forms && i < sizeof forms / sizeof *forms) {
            to = stpcpy(to, forms[i][1]);
            name += strlen(forms[i][0]);
        } else {
            *to++ = *name++;
        }
    }
    *to = '\0';
    for (to = folded; folds_case && *to; to++)
        if (isascii((unsigned char)*to)) *to = (char)tolower((unsigned char)*to);
}

/* Replaces a name by the spelling under which it exists in a folder. */
static void spell(const char *folder, char name[NAME_MAX + 1])
{
    char wanted[NAME_ROOM], other[NAME_ROOM];
    const int file = openat(root, folder[0] ? folder : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *const stream = file >= 0 ? fdopendir(file) : NULL;
    fold(name, wanted);
    for (struct dirent *entry; stream && (entry = readdir(stream));) {
        fold(entry->d_name, other);
        if (strcmp(wanted, other) != 0) continue;
        snprintf(name, NAME_MAX + 1, "%s", entry->d_name);
        break;
    }
    if (stream) closedir(stream);
}

/* The path below root that a path of the mount leads to. */
static const char *real(const char *path, char found[PATH_ROOM])
{
    char name[NAME_MAX + 1];
    size_t used = 0;
    found[0] = '\0';
    while (*path == '/') path++;
    while (*path) {
        const size_t length = strcspn(path, "/");
        snprintf(name, sizeof name, "%.*s", (int)length, path);
        spell(found, name);
        used += (size_t)snprintf(found + used, PATH_ROOM - used, "%s%s", used > 0 ? "/" : "", name);
        for (path += length; *path == '/';) path++;
    }
    return used > 0 ? found : strcpy(found, ".");
}

/* ---- Operations ------------------------------------------------------------------------------------------- */

#define RESULT(call) ((call) < 0 ? -errno : 0)

static int get_status(const char *path, struct stat *status, struct fuse_file_info *info)
{
    static atomic_uint looks = 1000;
    char to[PATH_ROOM];
    const int result = info ? fstat((int)info->fh, status) : fstatat(root, real(path, to), status, AT_SYMLINK_NOFOLLOW);
    if (result != 0) return -errno;
    if (numbers == ZERO) status->st_ino = 0;
    if (numbers == CHANGING) status->st_ino = atomic_fetch_add(&looks, 1);
    if (numbers != BY_PATH) return 0;
    status->st_ino = 14695981039346656037u;
    for (; *path; path++) status->st_ino = (status->st_ino ^ (unsigned char)*path) * 1099511628211u;
    return 0;
}

static int list(const char *path, void *buffer, fuse_fill_dir_t fill, off_t offset, struct fuse_file_info *info,
                enum fuse_readdir_flags flags)
{
    char to[PATH_ROOM];
    const int file = openat(root, real(path, to), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *const stream = file >= 0 ? fdopendir(file) : NULL;
    (void)offset, (void)info, (void)flags;
    if (!stream) return -errno;
    for (struct dirent *entry; (entry = readdir(stream));)
        fill(buffer, entry->d_name, NULL, 0, (enum fuse_fill_dir_flags)0);
    closedir(stream);
    return 0;
}

static int make_file(const char *path, mode_t mode, struct fuse_file_info *info)
{
    char to[PATH_ROOM];
    const int file = openat(root, real(path, to), info->flags | O_CREAT | O_CLOEXEC, mode);
    info->fh = (uint64_t)file;
    return RESULT(file);
}

static int open_file(const char *path, struct fuse_file_info *info)
{
    return make_file(path, 0, (info->flags &= ~(O_CREAT | O_EXCL | O_NOFOLLOW), info));
}

static int read_file(const char *path, char *bytes, size_t size, off_t offset, struct fuse_file_info *info)
{
    (void)path;
    const ssize_t got = pread((int)info->fh, bytes, size, offset);
    return got < 0 ? -errno : (int)got;
}

static int write_file(const char *path, const char *bytes, size_t size, off_t offset, struct fuse_file_info *info)
{
    (void)path;
    const ssize_t put = pwrite((int)info->fh, bytes, size, offset);
    return put < 0 ? -errno : (int)put;
}

static int close_file(const char *path, struct fuse_file_info *info)
{
    (void)path;
    return RESULT(close((int)info->fh));
}

static int sync_file(const char *path, int data, struct fuse_file_info *info)
{
    (void)path, (void)data, (void)info;
    return 0; /* no test ends the machine */
}

static int cut_file(const char *path, off_t size, struct fuse_file_info *info)
{
    char to[PATH_ROOM];
    const int file = info ? (int)info->fh : openat(root, real(path, to), O_WRONLY | O_CLOEXEC);
    const int result = RESULT(ftruncate(file, size));
    if (!info) close(file);
    return result;
}

static int set_mode(const char *path, mode_t mode, struct fuse_file_info *info)
{
    char to[PATH_ROOM];
    (void)info;
    return RESULT(fchmodat(root, real(path, to), mode, 0));
}

static int set_times(const char *path, const struct timespec times[2], struct fuse_file_info *info)
{
    char to[PATH_ROOM];
    (void)info;
    return RESULT(utimensat(root, real(path, to), times, AT_SYMLINK_NOFOLLOW));
}

static int make_folder(const char *path, mode_t mode)
{
    char to[PATH_ROOM];
    return RESULT(mkdirat(root, real(path, to), mode));
}

static int remove_file(const char *path)
{
    char to[PATH_ROOM];
    return RESULT(unlinkat(root, real(path, to), 0));
}

static int remove_folder(const char *path)
{
    char to[PATH_ROOM];
    return RESULT(unlinkat(root, real(path, to), AT_REMOVEDIR));
}

static int link_file(const char *from, const char *to)
{
    char one[PATH_ROOM], other[PATH_ROOM];
    return is_plain ? -EPERM : RESULT(linkat(root, real(from, one), root, real(to, other), 0));
}

static int move(const char *from, const char *to, unsigned flags)
{
    char one[PATH_ROOM], other[PATH_ROOM];
    if (is_plain && flags) return -EINVAL;
    return RESULT(renameat2(root, real(from, one), root, real(to, other), flags));
}

/* Nothing is kept, so that each look comes here. */
static void *begin(struct fuse_conn_info *connection, struct fuse_config *config)
{
    (void)connection;
    config->use_ino = 1;
    config->hard_remove = 1;
    config->entry_timeout = config->attr_timeout = config->negative_timeout = 0;
    return NULL;
}

int main(int argc, char **argv)
{
    static const struct fuse_operations operations = {
        .init = begin,
        .getattr = get_status,
        .readdir = list,
        .create = make_file,
        .open = open_file,
        .read = read_file,
        .write = write_file,
        .release = close_file,
        .fsync = sync_file,
        .fsyncdir = sync_file,
        .truncate = cut_file,
        .chmod = set_mode,
        .utimens = set_times,
        .mkdir = make_folder,
        .unlink = remove_file,
        .rmdir = remove_folder,
        .link = link_file,
        .rename = move,
    };
    /* One operation at a time: a name that is looked for is not made meanwhile. */
    char *words[] = {argv[0], (char[]){"-f"}, (char[]){"-s"}, argc > 2 ? argv[2] : NULL, NULL};
    for (int i = 3; i < argc; i++) {
        folds_case |= strcmp(argv[i], "case") == 0;
        folds_forms |= strcmp(argv[i], "forms") == 0;
        is_plain |= strcmp(argv[i], "plain") == 0;
        if (strcmp(argv[i], "zero") == 0) numbers = ZERO;
        if (strcmp(argv[i], "changing") == 0) numbers = CHANGING;
        if (strcmp(argv[i], "paths") == 0) numbers = BY_PATH;
    }
    root = argc > 2 ? open(argv[1], O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
    if (root < 0) {
        fprintf(stderr, "usage: %s FOLDER MOUNTPOINT [WORD]..., see fold_fs.c\n", argv[0]);
        return 2;
    }
    umask(0);
    return fuse_main(4, words, &operations, NULL);
}
