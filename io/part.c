/* Parts; see part.h. */
#define _GNU_SOURCE /* flock */
#include "part.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "file_set.h"
#include "io/bytes/checksum.h"
#include "app/tessera_cli.h"

/* ---- Names ------------------------------------------------------------------------------------------------ */

static const char prefix[] = ".tessera-", suffix[] = ".part";
enum { HOST_DIGITS = 8, CHECK_DIGITS = 16 };

static pthread_once_t host_known = PTHREAD_ONCE_INIT;
static uint32_t host; /* number of this machine, since it was started. Machines may share a folder */

static void know_host(void)
{
    struct utsname system;
    char text[sizeof system.nodename + 64] = "";
    if (uname(&system) == 0) memcpy(text, system.nodename, sizeof system.nodename);
    const int file = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    if (file >= 0 && read(file, text + sizeof system.nodename, 63) < 0) text[sizeof system.nodename] = '\0';
    if (file >= 0) close(file);
    host = (uint32_t)tsr_hash64_of(text, sizeof text);
}

static uint32_t host_number(void)
{
    pthread_once(&host_known, know_host);
    return host;
}

void tsr_part_label(struct tsr_part *part)
{
    static unsigned counter;
    snprintf(part->label, sizeof part->label, "%0*x-%ld-%u", HOST_DIGITS, (unsigned)host_number(), (long)getpid(),
             __atomic_fetch_add(&counter, 1, __ATOMIC_RELAXED));
}

void tsr_part_mark(const char *label, uint8_t mark[TSR_PART_MARK])
{
    memset(mark, 0, TSR_PART_MARK);
    snprintf((char *)mark, TSR_PART_MARK, "tessera: unfinished %s\n", label);
}

/* Of a file of so many bytes that begins with these, which are all or TSR_PART_MARK. */
static uint64_t check_of(const char *label, uint64_t size, const uint8_t *bytes)
{
    uint8_t hashed[TSR_PART_LABEL + sizeof size + TSR_PART_MARK] = {0};
    memcpy(hashed, label, strlen(label));
    for (size_t i = 0; i < sizeof size; i++) hashed[TSR_PART_LABEL + i] = (uint8_t)(size >> 8 * i);
    if (size > 0)
        memcpy(hashed + TSR_PART_LABEL + sizeof size, bytes, size < TSR_PART_MARK ? (size_t)size : TSR_PART_MARK);
    return tsr_hash64_of(hashed, sizeof hashed);
}

void tsr_part_name(const char *label, uint64_t size, const uint8_t *bytes, char name[TSR_PART_NAME])
{
    snprintf(name, TSR_PART_NAME, "%s%s-%0*llx%s", prefix, label, CHECK_DIGITS,
             (unsigned long long)check_of(label, size, bytes), suffix);
}

/* The end of count lower-case hexadecimal digits; NULL: there are fewer. */
static const char *skip_hex(const char *text, int count)
{
    for (; count > 0; count--, text++)
        if (!isxdigit((unsigned char)*text) || isupper((unsigned char)*text)) return NULL;
    return text;
}

/* The end of a dash and a decimal number; NULL: there is none. */
static const char *skip_number(const char *text)
{
    const char *at = text + (*text == '-');
    while (isdigit((unsigned char)*at)) at++;
    return *text == '-' && at > text + 1 ? at : NULL;
}

/* The label and the checks in the name of a part. False: it is no such name. */
struct part_name {
    char label[TSR_PART_LABEL];
    uint64_t check[2];
    int checks;
};

static bool read_name(const char *name, struct part_name *read)
{
    const char *const begin = name + sizeof prefix - 1;
    if (strncmp(name, prefix, sizeof prefix - 1) != 0) return false;
    const char *end = skip_hex(begin, HOST_DIGITS);
    if (end) end = skip_number(end);
    if (end) end = skip_number(end);
    if (!end || *end != '-' || end - begin >= TSR_PART_LABEL) return false;
    memcpy(read->label, begin, (size_t)(end - begin));
    read->label[end - begin] = '\0';
    for (read->checks = 0; read->checks < 2 && end && *end == '-'; read->checks++) {
        read->check[read->checks] = strtoull(end + 1, NULL, 16);
        end = skip_hex(end + 1, CHECK_DIGITS);
    }
    return end && strcmp(end, suffix) == 0;
}

/* ---- Parts of this process -------------------------------------------------------------------------------- */

enum { PARTS_LIMIT = 1024 };

/* All parts that exist; tsr_parts_end_process removes them. lock guards the array and the names of its parts. A thread
 * that creates or renames a part holds "ending" for reading. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t ending = PTHREAD_RWLOCK_INITIALIZER;
static const struct tsr_part *parts[PARTS_LIMIT];

void tsr_parts_hold(void)
{
    pthread_rwlock_rdlock(&ending);
}

void tsr_parts_release(void)
{
    pthread_rwlock_unlock(&ending);
}

void tsr_part_remember(struct tsr_part *part)
{
    pthread_mutex_lock(&lock);
    for (int i = 0; i < PARTS_LIMIT && part->slot < 0; i++) {
        if (parts[i]) continue;
        parts[i] = part;
        part->slot = i;
    }
    pthread_mutex_unlock(&lock);
}

void tsr_part_forget(struct tsr_part *part)
{
    pthread_mutex_lock(&lock);
    if (part->slot >= 0) parts[part->slot] = NULL;
    part->slot = -1;
    part->name[0] = '\0';
    pthread_mutex_unlock(&lock);
}

void tsr_part_remove(struct tsr_part *part)
{
    if (part->name[0]) unlinkat(part->folder, part->name, 0);
    tsr_part_forget(part);
}

void tsr_parts_end_process(int status)
{
    pthread_rwlock_wrlock(&ending);
    pthread_mutex_lock(&lock);
    for (int i = 0; i < PARTS_LIMIT; i++)
        if (parts[i]) unlinkat(parts[i]->folder, parts[i]->name, 0);
    _exit(status);
}

/* ---- Parts of killed runs --------------------------------------------------------------------------------- */

/* Reads what a file of so many bytes begins with. */
static bool read_begin(int file, uint64_t size, uint8_t begin[TSR_PART_MARK])
{
    const size_t count = size < TSR_PART_MARK ? (size_t)size : TSR_PART_MARK;
    size_t got = 0;
    memset(begin, 0, TSR_PART_MARK);
    for (ssize_t now; got < count; got += (size_t)now)
        if ((now = pread(file, begin + got, count - got, (off_t)got)) <= 0) return false;
    return true;
}

/* Whether a file holds what a part of its name holds. */
static bool is_part(int file, const struct part_name *name, uint64_t size)
{
    uint8_t begin[TSR_PART_MARK], mark[TSR_PART_MARK];
    if (!read_begin(file, size, begin)) return false;
    tsr_part_mark(name->label, mark);
    if (size >= sizeof mark && memcmp(begin, mark, sizeof mark) == 0) return true;
    const uint64_t check = check_of(name->label, size, begin);
    return check == name->check[0] || (name->checks > 1 && check == name->check[1]);
}

bool tsr_part_expect(struct tsr_part *part, const char *name)
{
    uint8_t begin[TSR_PART_MARK];
    char both[TSR_PART_NAME];
    struct stat status;
    const int file = openat(part->folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    const bool is_known = file >= 0 && fstat(file, &status) == 0 && S_ISREG(status.st_mode) &&
                          read_begin(file, (uint64_t)status.st_size, begin);
    if (file >= 0) close(file);
    if (!is_known) return true;
    snprintf(both, sizeof both, "%.*s-%0*llx%s", (int)(strlen(part->name) - (sizeof suffix - 1)), part->name,
             CHECK_DIGITS, (unsigned long long)check_of(part->label, (uint64_t)status.st_size, begin), suffix);
    tsr_parts_hold();
    const bool is_renamed = renameat(part->folder, part->name, part->folder, both) == 0;
    if (is_renamed) memcpy(part->name, both, sizeof both);
    tsr_parts_release();
    return is_renamed;
}

bool tsr_is_unfinished(const char *path)
{
    const char *const slash = path ? strrchr(path, '/') : NULL, *const name = slash ? slash + 1 : path;
    struct part_name read;
    struct stat status;
    if (!name || !read_name(name, &read)) return false;
    const int file = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (file < 0) return true; /* it is gone meanwhile, or another user's */
    const bool is_one =
        fstat(file, &status) == 0 && S_ISREG(status.st_mode) && is_part(file, &read, (uint64_t)status.st_size);
    close(file);
    return is_one;
}

/* Whether no process works on a part. Of this process's own, the lock does not say it: a file system whose names fold
 * may have a lock for each name. */
static bool is_orphan(int file, const char *label, const struct stat *status)
{
    enum { DAY = 24 * 60 * 60 };
    char own[TSR_PART_LABEL];
    const int length = snprintf(own, sizeof own, "%0*x-%ld-", HOST_DIGITS, (unsigned)host_number(), (long)getpid());
    const bool is_of_host = strncmp(label, own, HOST_DIGITS) == 0;
    if (strncmp(label, own, (size_t)length) == 0) return false;
    if (!is_of_host && time(NULL) - status->st_mtime < DAY) return false;
    return flock(file, LOCK_EX | LOCK_NB) == 0;
}

static void remove_orphan(int folder, const char *name, const struct part_name *read)
{
    struct stat status;
    const int file = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (file < 0) return;
    if (fstat(file, &status) == 0 && S_ISREG(status.st_mode) && is_orphan(file, read->label, &status) &&
        is_part(file, read, (uint64_t)status.st_size) && tsr_leads_to(folder, name, AT_SYMLINK_NOFOLLOW, &status))
        unlinkat(folder, name, 0);
    close(file);
}

void tsr_parts_clear(int folder)
{
    struct part_name read;
    const int again = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *const stream = again >= 0 ? fdopendir(again) : NULL;
    if (!stream && again >= 0) close(again);
    if (!stream) return; /* the parts stay, which does no harm */
    for (struct dirent *entry; (entry = readdir(stream));)
        if (read_name(entry->d_name, &read)) remove_orphan(folder, entry->d_name, &read);
    closedir(stream);
}
