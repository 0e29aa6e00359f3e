/* Which paths lead to one file; see file_set.h. */
#include "file_set.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>

#include "io/container/checksum.h"

#define ZFS_MAGIC 0x2fc12fc1

/* ---- One file --------------------------------------------------------------------------------------------- */

struct tsr_file_state tsr_state_of(const struct stat *status)
{
    return (struct tsr_file_state){
        .device = (uint64_t)status->st_dev,
        .inode = (uint64_t)status->st_ino,
        .bytes = (uint64_t)status->st_size,
        .modified_s = status->st_mtim.tv_sec,
        .changed_s = status->st_ctim.tv_sec,
        .modified_ns = (uint32_t)status->st_mtim.tv_nsec,
        .changed_ns = (uint32_t)status->st_ctim.tv_nsec,
    };
}

/* Whether a file system that does not tell all names apart could take two paths for one. Letters of ASCII may differ in
 * case. What is not ASCII may have other forms, and a name with a tilde may be a short name of FAT: from there on all
 * is possible. */
static bool may_be_one_path(const char *one, const char *other)
{
    for (;; one++, other++) {
        const unsigned char a = (unsigned char)*one, b = (unsigned char)*other;
        if (a >= 0x80 || b >= 0x80 || a == '~' || b == '~') return true;
        if (tolower(a) != tolower(b)) return false;
        if (a == '\0') return true;
    }
}

/* Seconds of FAT are even, and NTFS counts 100 ns: a time that was just set may be finer than one that was stored. */
static bool is_earlier(int64_t s, uint32_t ns, int64_t than_s, uint32_t than_ns)
{
    if (ns == 0) return s / 2 < than_s / 2;
    return s != than_s ? s < than_s : ns / 100 < than_ns / 100;
}

/* Whether a file has one number, and no other file has it. Network file systems, FUSE and FAT do not promise that: a
 * file may have another number at each look, or one for each spelling of its name. */
static bool has_true_numbers(const char *path)
{
    struct statfs system;
    if (statfs(path, &system) != 0) return true;
    switch ((uint32_t)system.f_type) {
    case BTRFS_SUPER_MAGIC:
    case EXT4_SUPER_MAGIC:
    case F2FS_SUPER_MAGIC:
    case NFS_SUPER_MAGIC:
    case OVERLAYFS_SUPER_MAGIC:
    case RAMFS_MAGIC:
    case TMPFS_MAGIC:
    case XFS_SUPER_MAGIC:
    case ZFS_MAGIC:
        return true;
    default:
        return false;
    }
}

/* Whether two paths lead to one file. The other one was looked at later, and may have changed its status since. Where
 * numbers do not decide, size and time do, and whether the two can be one path. */
static bool is_one_file(const struct tsr_file_state *file, const char *path, const struct tsr_file_state *other,
                        const char *other_path)
{
    if (file->device != other->device) return false;
    if (file->inode == other->inode && file->inode != 0) return true;
    if (file->bytes != other->bytes || file->modified_s / 2 != other->modified_s / 2 ||
        is_earlier(other->changed_s, other->changed_ns, file->changed_s, file->changed_ns) ||
        !may_be_one_path(path, other_path))
        return false;
    return file->inode == 0 || other->inode == 0 || !has_true_numbers(other_path);
}

bool tsr_is_one_file(const struct tsr_file_state *one, const char *path, const struct tsr_file_state *other,
                     const char *other_path)
{
    return is_one_file(one, path, other, other_path) && is_one_file(other, other_path, one, path);
}

static bool is_same_time(struct timespec a, struct timespec b)
{
    return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

bool tsr_leads_to(int folder, const char *name, int flags, const struct stat *status)
{
    struct stat named, again;
    if (fstatat(folder, name, &named, flags) != 0) return false;
    errno = 0;
    if (named.st_dev != status->st_dev) return false;
    if (named.st_ino == status->st_ino && named.st_ino != 0) return true;
    /* A number that is 0, or another one at each look, tells nothing. */
    const bool tells = named.st_ino != 0 && (fstatat(folder, name, &again, flags) != 0 || again.st_ino == named.st_ino);
    errno = 0;
    return !tells && named.st_size == status->st_size && is_same_time(named.st_mtim, status->st_mtim) &&
           is_same_time(named.st_ctim, status->st_ctim);
}

/* ---- Sets ------------------------------------------------------------------------------------------------- */

enum { LEAST_FILES = 64, BLOCK_BYTES = 1 << 14 };

struct file {
    struct tsr_file_state state;
    const char *path; /* NULL: it has left the set */
    uint32_t next[2]; /* of the files with one hash, by inode and by size and time */
};

/* Paths stand in blocks, which never move. */
struct block {
    struct block *before;
    char bytes[];
};

struct tsr_file_set {
    pthread_mutex_t lock;      /* guards all below */
    pthread_mutex_t replacing; /* tsr_file_set_lock */
    struct file *files;
    uint32_t *first[2];       /* by hash: numbers of files, or TSR_NO_FILE */
    uint32_t count, capacity; /* capacity: a power of two, or 0; also of the hashes */
    struct block *blocks;
    size_t used, room; /* of the last block */
};

struct tsr_file_set *tsr_file_set_create(void)
{
    struct tsr_file_set *const set = calloc(1, sizeof *set);
    if (!set) return NULL;
    pthread_mutex_init(&set->lock, NULL);
    pthread_mutex_init(&set->replacing, NULL);
    return set;
}

void tsr_file_set_destroy(struct tsr_file_set *set)
{
    if (!set) return;
    for (struct block *block = set->blocks, *before; block; block = before) {
        before = block->before;
        free(block);
    }
    free(set->files);
    free(set->first[0]);
    free(set->first[1]);
    pthread_mutex_destroy(&set->lock);
    pthread_mutex_destroy(&set->replacing);
    free(set);
}

void tsr_file_set_lock(struct tsr_file_set *set)
{
    pthread_mutex_lock(&set->replacing);
}

void tsr_file_set_unlock(struct tsr_file_set *set)
{
    pthread_mutex_unlock(&set->replacing);
}

/* Where a file stands: by inode, and by what decides where that does not. */
static uint32_t hash_of(const struct tsr_file_set *set, const struct tsr_file_state *state, int by)
{
    const uint64_t keys[2][3] = {{state->device, state->inode, 0},
                                 {state->device, state->bytes, (uint64_t)(state->modified_s / 2)}};
    return (uint32_t)tsr_hash64_of(keys[by], sizeof keys[by]) & (set->capacity - 1);
}

static void link_file(struct tsr_file_set *set, uint32_t number)
{
    for (int by = 0; by < 2; by++) {
        uint32_t *const first = &set->first[by][hash_of(set, &set->files[number].state, by)];
        set->files[number].next[by] = *first;
        *first = number;
    }
}

/* Room for one more file. False: no memory, and the set stays as it is. */
static bool grow(struct tsr_file_set *set)
{
    if (set->count < set->capacity) return true;
    if (set->capacity > UINT32_MAX / 4) return false;
    const uint32_t capacity = set->capacity > 0 ? 2 * set->capacity : LEAST_FILES;
    struct file *const files = realloc(set->files, capacity * sizeof *files);
    if (files) set->files = files;
    uint32_t *const by_inode = malloc(capacity * sizeof *by_inode), *const by_state =
                                                                        malloc(capacity * sizeof *by_state);
    if (!files || !by_inode || !by_state) {
        free(by_inode);
        free(by_state);
        return false;
    }
    free(set->first[0]);
    free(set->first[1]);
    set->first[0] = memset(by_inode, 0xff, capacity * sizeof *by_inode);
    set->first[1] = memset(by_state, 0xff, capacity * sizeof *by_state);
    set->capacity = capacity;
    for (uint32_t i = 0; i < set->count; i++) link_file(set, i);
    return true;
}

static const char *keep_path(struct tsr_file_set *set, const char *path)
{
    const size_t size = strlen(path) + 1;
    if (set->room - set->used < size) {
        const size_t room = size > BLOCK_BYTES ? size : BLOCK_BYTES;
        struct block *const block = malloc(sizeof *block + room);
        if (!block) return NULL;
        block->before = set->blocks;
        set->blocks = block;
        set->used = 0;
        set->room = room;
    }
    char *const kept = memcpy(set->blocks->bytes + set->used, path, size);
    set->used += size;
    return kept;
}

uint32_t tsr_file_set_announce(struct tsr_file_set *set, const char *path, const struct tsr_file_state *state)
{
    pthread_mutex_lock(&set->lock);
    const char *const kept = grow(set) ? keep_path(set, path) : NULL;
    const uint32_t number = kept ? set->count++ : TSR_NO_FILE;
    if (kept) {
        set->files[number] = (struct file){.state = *state, .path = kept};
        link_file(set, number);
    }
    pthread_mutex_unlock(&set->lock);
    return number;
}

void tsr_file_set_withdraw(struct tsr_file_set *set, uint32_t file)
{
    pthread_mutex_lock(&set->lock);
    set->files[file].path = NULL;
    pthread_mutex_unlock(&set->lock);
}

static bool look_at(const char *path, struct tsr_file_state *state)
{
    struct stat status;
    if (stat(path, &status) != 0) return false;
    *state = tsr_state_of(&status);
    return true;
}

enum tsr_status tsr_file_set_add(struct tsr_file_set *set, const char *path, const struct tsr_file_state *state,
                                 struct tsr_error *error)
{
    struct tsr_file_state looked;
    if (!set || !path) return tsr_fail(error, TSR_ERROR_USAGE, "set or path is NULL");
    if (!state && !look_at(path, &looked)) return tsr_fail_call(error, TSR_ERROR_READ, "cannot look at", path);
    if (tsr_file_set_announce(set, path, state ? state : &looked) != TSR_NO_FILE) return TSR_OK;
    return tsr_fail(error, TSR_ERROR_LIMIT, "no memory to remember %s", path);
}

/* The path of a file of the set, other than one, that is the file of this state and path; NULL: none is. */
static const char *find(struct tsr_file_set *set, const char *path, const struct tsr_file_state *state, uint32_t but)
{
    const char *found = NULL;
    pthread_mutex_lock(&set->lock);
    for (int by = 0; by < 2 && set->capacity > 0; by++) {
        uint32_t i = set->first[by][hash_of(set, state, by)];
        for (; i != TSR_NO_FILE && !found; i = set->files[i].next[by]) {
            const struct file *const file = &set->files[i];
            if (i != but && file->path && is_one_file(&file->state, file->path, state, path)) found = file->path;
        }
    }
    pthread_mutex_unlock(&set->lock);
    return found;
}

const char *tsr_file_set_find(struct tsr_file_set *set, const char *path, const struct tsr_file_state *state)
{
    struct tsr_file_state looked;
    if (!set || !path || (!state && !look_at(path, &looked))) return NULL;
    return find(set, path, state ? state : &looked, TSR_NO_FILE);
}

enum tsr_status tsr_file_set_refuse(struct tsr_file_set *set, const char *path, const struct stat *status, uint32_t but,
                                    struct tsr_error *error)
{
    const struct tsr_file_state state = tsr_state_of(status);
    const char *const other = find(set, path, &state, but);
    if (!other) return TSR_OK;
    if (strcmp(path, other) == 0)
        return tsr_fail(error, TSR_ERROR_SAME_FILE, "this run has written %s already, and does not replace it", path);
    return tsr_fail(
        error, TSR_ERROR_SAME_FILE,
        "%.180s and %.180s are one file here, which this run has written; write one of them to another folder", other,
        path);
}
