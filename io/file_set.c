/* Which paths lead to one file; see file_set.h. */
#include "file_set.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>

#include "io/bytes/checksum.h"

#define ZFS_MAGIC 0x2fc12fc1
#ifndef XFS_SUPER_MAGIC /* older headers lack it */
#define XFS_SUPER_MAGIC 0x58465342
#endif

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

/* What a path has in common with all that some file system takes for it: characters of ASCII, letters without their
 * case, but for letters that have an accent, in one character or in two. 0: the path ends. */
static int next_folded(const char **at)
{
    for (;;) {
        const unsigned char now = (unsigned char)**at, then = now ? (unsigned char)(*at)[1] : 0;
        if (now == '\0') return 0;
        ++*at;
        if (now < 0x80 && then != 0xcc && then != 0xcd) return tolower(now); /* U+0300 .. U+037F follow their letter */
    }
}

int tsr_compare_folded(const char *one, const char *other)
{
    for (;;) {
        const int now = next_folded(&one), then = next_folded(&other);
        if (now != then || now == 0) return now - then;
    }
}

/* Seconds of FAT are even, and NTFS counts 100 ns: a time that was just set may be finer than one that was stored. */
static bool is_earlier(int64_t s, uint32_t ns, int64_t than_s, uint32_t than_ns)
{
    if (ns == 0) return s / 2 < than_s / 2;
    return s != than_s ? s < than_s : ns / 100 < than_ns / 100;
}

/* Whether the files of a file system have one number each, which no other file has. Network file systems, FUSE and FAT
 * do not promise that: a file may have another number at each look, or one for each spelling of its name. path: of a
 * file there, which need not exist yet. */
static bool has_true_numbers(const char *path)
{
    struct statfs system;
    char folder[PATH_MAX];
    if (statfs(path, &system) != 0) {
        const char *const slash = strrchr(path, '/');
        snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - path) + 1 : 1, slash ? path : ".");
        if (statfs(folder, &system) != 0) return false;
    }
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

static bool has_same_number(const struct tsr_file_state *file, const struct tsr_file_state *other)
{
    return file->device == other->device && file->inode == other->inode && file->inode != 0;
}

/* Whether two files are one as far as all but their numbers tells: by size and time, and by whether their paths can be
 * one. The other one was looked at later, and may have changed its status since. */
static bool is_alike(const struct tsr_file_state *file, const char *path, const struct tsr_file_state *other,
                     const char *other_path)
{
    return file->device == other->device && file->bytes == other->bytes &&
           file->modified_s / 2 == other->modified_s / 2 &&
           !is_earlier(other->changed_s, other->changed_ns, file->changed_s, file->changed_ns) &&
           tsr_compare_folded(path, other_path) == 0;
}

bool tsr_is_one_file(const struct tsr_file_state *one, const char *path, const struct tsr_file_state *other,
                     const char *other_path)
{
    return has_same_number(one, other) || (is_alike(one, path, other, other_path) &&
                                           is_alike(other, other_path, one, path) && !has_true_numbers(other_path));
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

enum { LEAST_FILES = 64, BLOCK_BYTES = 1 << 14, DEVICES = 8 };

/* How files are found: by their numbers, and by size and path where these are not true. */
enum { BY_NUMBER, BY_PATH, WAYS };

struct file {
    struct tsr_file_state state;
    const char *path;
    bool has_left;       /* the set */
    uint32_t next[WAYS]; /* of the files with one hash */
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
    uint32_t *first[WAYS];    /* by hash: numbers of files, or TSR_NO_FILE */
    uint32_t count, capacity; /* capacity: a power of two, or 0; also of the hashes */
    struct block *blocks;
    size_t used, room; /* of the last block */
    struct {
        uint64_t number;
        bool has_true_numbers;
    } devices[DEVICES]; /* that are known */
    int device_count;
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

/* Whether the numbers of a device's files decide alone. path: that of one of them. */
static bool is_true(struct tsr_file_set *set, uint64_t device, const char *path)
{
    for (int i = 0; i < set->device_count; i++)
        if (set->devices[i].number == device) return set->devices[i].has_true_numbers;
    const bool is_so = has_true_numbers(path);
    if (set->device_count == DEVICES) return is_so;
    set->devices[set->device_count].number = device;
    set->devices[set->device_count++].has_true_numbers = is_so;
    return is_so;
}

static uint64_t mix(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * 0x9e3779b97f4a7c15u;
    return hash ^ hash >> 32;
}

/* Where a file stands: by its number, or by its size and by what its path has in common with others. */
static uint32_t hash_of(const struct tsr_file_set *set, const struct tsr_file_state *state, const char *path, int by)
{
    uint64_t hash = mix(state->device, by == BY_NUMBER ? state->inode : state->bytes);
    for (int now; by == BY_PATH && (now = next_folded(&path)) != 0;) hash = mix(hash, (uint64_t)now);
    return (uint32_t)hash & (set->capacity - 1);
}

static void link_file(struct tsr_file_set *set, uint32_t number)
{
    const struct file *const file = &set->files[number];
    const int ways = is_true(set, file->state.device, file->path) ? BY_PATH : WAYS;
    for (int by = 0; by < ways; by++) {
        uint32_t *const first = &set->first[by][hash_of(set, &file->state, file->path, by)];
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
    uint32_t *const by_inode = malloc(capacity * sizeof *by_inode), *const by_path = malloc(capacity * sizeof *by_path);
    if (!files || !by_inode || !by_path) {
        free(by_inode);
        free(by_path);
        return false;
    }
    free(set->first[0]);
    free(set->first[1]);
    set->first[0] = memset(by_inode, 0xff, capacity * sizeof *by_inode);
    set->first[1] = memset(by_path, 0xff, capacity * sizeof *by_path);
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
    set->files[file].has_left = true;
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
    const int ways = set->count == 0 ? 0 : is_true(set, state->device, path) ? BY_PATH : WAYS;
    for (int by = 0; by < ways; by++) {
        uint32_t i = set->first[by][hash_of(set, state, path, by)];
        for (; i != TSR_NO_FILE && !found; i = set->files[i].next[by]) {
            const struct file *const file = &set->files[i];
            if (i == but || file->has_left) continue;
            const bool is_it = by == BY_NUMBER ? has_same_number(&file->state, state)
                                               : is_alike(&file->state, file->path, state, path);
            if (is_it) found = file->path;
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
