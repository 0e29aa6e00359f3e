/* The storage area; store.h and app/orthanc/README.md say what it promises. */
#define _GNU_SOURCE /* O_DIRECTORY, O_NOFOLLOW */
#include "app/orthanc/store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ID_LENGTH = 36, FOLDERS = 1 << 16, NAME_BYTES = SETTINGS_PATH + 64 };

struct store {
    struct settings settings;
    struct tsr_engine *engine;
    struct store_counts counts;
    mode_t mode;                  /* of new files, as Orthanc's own have it */
    atomic_bool is_made[FOLDERS]; /* by the first four digits of ids: this process has brought the folder to the disk */
};

struct names {
    char folder[NAME_BYTES], plain[NAME_BYTES], tsr[NAME_BYTES];
    unsigned number; /* of the folder */
};

/* ---- Sentences and names ---------------------------------------------------------------------------------- */

static enum store_status fail(struct store_note *note, enum store_status status, const char *what, const char *id,
                              const char *reason)
{
    snprintf(note->text, sizeof note->text, "%s %.40s: %s", what, id, reason);
    return status;
}

static enum store_status fail_write(struct store_note *note, const char *id, int reason)
{
    return fail(note, reason == ENOSPC || reason == EDQUOT ? STORE_FULL : STORE_UNWRITABLE, "cannot store", id,
                strerror(reason));
}

static enum store_status fail_library(struct store_note *note, enum tsr_status status, const char *id,
                                      const struct tsr_error *error)
{
    enum store_status is = STORE_DAMAGED;
    if (status == TSR_ERROR_LIMIT) is = STORE_NO_MEMORY;
    if (status == TSR_ERROR_READ) is = STORE_UNREADABLE;
    return fail(note, is, "cannot read", id, error->text);
}

static int digit(char c)
{
    static const char digits[] = "0123456789abcdef0123456789ABCDEF";
    const char *const found = c ? strchr(digits, c) : NULL;
    return found ? (int)(found - digits) % 16 : -1;
}

/* Only names that Orthanc makes: what comes from elsewhere never leads out of the folder. */
static bool find_names(const struct store *store, const char *id, struct names *names)
{
    names->number = 0;
    for (int i = 0; i < ID_LENGTH; i++) {
        const bool is_hyphen = i == 8 || i == 13 || i == 18 || i == 23;
        if (is_hyphen ? id[i] != '-' : digit(id[i]) < 0) return false;
        if (i < 4) names->number = names->number << 4 | (unsigned)digit(id[i]);
    }
    if (id[ID_LENGTH]) return false;
    snprintf(names->folder, NAME_BYTES, "%s/%.2s/%.2s", store->settings.root, id, id + 2);
    snprintf(names->plain, NAME_BYTES, "%s/%.2s/%.2s/%s", store->settings.root, id, id + 2, id);
    snprintf(names->tsr, NAME_BYTES, "%s/%.2s/%.2s/%s.tsr", store->settings.root, id, id + 2, id);
    return true;
}

/* ---- The store -------------------------------------------------------------------------------------------- */

struct store *store_open(const struct settings *settings, char sentence[SETTINGS_SENTENCE])
{
    struct tsr_error error;
    struct stat status;
    struct store *const store = calloc(1, sizeof *store);
    if (!store) {
        snprintf(sentence, SETTINGS_SENTENCE, "There is no memory for the plugin");
        return NULL;
    }
    store->settings = *settings;
    const mode_t mask = umask(022);
    umask(mask);
    store->mode = 0666 & ~mask;
    if ((mkdir(settings->root, 0777) != 0 && errno != EEXIST) || stat(settings->root, &status) != 0 ||
        !S_ISDIR(status.st_mode)) {
        snprintf(sentence, SETTINGS_SENTENCE, "\"StorageDirectory\" is no folder that can be used: %.300s",
                 settings->root);
        free(store);
        return NULL;
    }
    if (tsr_engine_create(&settings->engine, &store->engine, &error) != TSR_OK) {
        snprintf(sentence, SETTINGS_SENTENCE, "The engine does not start: %.400s", error.text);
        free(store);
        return NULL;
    }
    return store;
}

void store_close(struct store *store)
{
    if (!store) return;
    tsr_engine_destroy(store->engine);
    free(store);
}

struct store_counts *store_counts(struct store *store)
{
    return &store->counts;
}

const struct tsr_engine *store_engine(const struct store *store)
{
    return store->engine;
}

/* ---- Folders ---------------------------------------------------------------------------------------------- */

/* Brings the names in a folder to the disk. Some file systems cannot, and need not. */
static int sync_descriptor(int folder)
{
    return fsync(folder) == 0 || errno == EINVAL || errno == ENOTSUP ? 0 : errno;
}

static int sync_folder(const char *path)
{
    const int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0) return errno;
    const int reason = sync_descriptor(folder);
    close(folder);
    return reason;
}

/* Makes ROOT/aa/bb, and brings both names to the disk. Returns errno of what failed, or 0. */
static int make_folders(struct store *store, const struct names *names)
{
    char outer[NAME_BYTES];
    snprintf(outer, sizeof outer, "%s", names->folder);
    *strrchr(outer, '/') = '\0';
    if (mkdir(outer, 0777) != 0 && errno != EEXIST) return errno;
    if (mkdir(names->folder, 0777) != 0 && errno != EEXIST) return errno;
    int reason = sync_folder(outer);
    if (reason == 0) reason = sync_folder(store->settings.root);
    atomic_store(&store->is_made[names->number], reason == 0);
    return reason;
}

/* Opens the folder of a file. Errors of the disk that happen later are told to this descriptor. Folders are not removed
 * with their last file: another thread may be about to write there. */
static int open_folder(struct store *store, const struct names *names, int *reason)
{
    int folder = -1;
    for (int attempt = 0; attempt < 2 && folder < 0; attempt++) {
        *reason = attempt == 0 && atomic_load(&store->is_made[names->number]) ? 0 : make_folders(store, names);
        if (*reason != 0) return -1;
        folder = open(names->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        *reason = folder < 0 ? errno : 0;
    }
    return folder;
}

/* ---- Writing ---------------------------------------------------------------------------------------------- */

static int write_all(int file, const uint8_t *bytes, size_t count)
{
    for (size_t done = 0; done < count;) {
        const ssize_t wrote = write(file, bytes + done, count - done);
        if (wrote < 0 && errno == EINTR) continue;
        if (wrote <= 0) return wrote < 0 ? errno : EIO;
        done += (size_t)wrote;
    }
    return fsync(file) == 0 ? 0 : errno;
}

/* The file as it is: complete and on the disk before it has its name. */
static int write_plain(const struct names *names, const char *id, int folder, const void *bytes, size_t count)
{
    char part[ID_LENGTH + 16];
    snprintf(part, sizeof part, ".%s.part", id);
    const int file = openat(folder, part, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (file < 0) return errno;
    int reason = write_all(file, bytes, count);
    if (close(file) != 0 && reason == 0) reason = errno;
    if (reason == 0 && renameat(folder, part, AT_FDCWD, names->plain) != 0) reason = errno;
    if (reason != 0) unlinkat(folder, part, 0);
    return reason;
}

/* A .tsr that is proven to restore the same file; the library gives it its name when it is complete and on the disk.
 * The caller syncs the folder once more: of calls at once, the library does not know whose folder failed. */
static bool write_tsr(struct store *store, const struct names *names, const void *bytes, size_t count,
                      struct tsr_report *report, struct tsr_error *error)
{
    struct tsr_compress_options options = TSR_COMPRESS_OPTIONS;
    options.effort = store->settings.effort;
    const struct tsr_data_source source = tsr_from_memory(bytes, count);
    const struct tsr_data_sink sink = tsr_to_path(names->tsr);
    const enum tsr_status status = tsr_compress(store->engine, &source, &sink, &options, report, error);
    if (status != TSR_OK) return false;
    if (report->verified && report->promise == TSR_PROMISE_FILE) {
        (void)!chmod(names->tsr, store->mode); /* what comes from memory is its owner's alone */
        return true;
    }
    unlink(names->tsr);
    snprintf(error->text, sizeof error->text, "its .tsr would not restore the same file");
    return false;
}

static enum store_status create(struct store *store, const char *id, const void *bytes, size_t count,
                                struct store_note *note)
{
    struct names names;
    struct tsr_report report = TSR_REPORT;
    struct tsr_error error = {.text = ""};
    int reason;
    if (!find_names(store, id, &names)) return fail(note, STORE_BAD_ID, "cannot store", id, "this is no id of a file");
    const int folder = open_folder(store, &names, &reason);
    if (folder < 0) return fail_write(note, id, reason);
    if (access(names.plain, F_OK) == 0 || access(names.tsr, F_OK) == 0) reason = EEXIST;

    const bool is_tsr = reason == 0 && count > 0 && write_tsr(store, &names, bytes, count, &report, &error);
    if (reason == 0 && !is_tsr) unlink(names.tsr); /* it may have had its name before its folder's sync failed */
    if (reason == 0 && !is_tsr) reason = write_plain(&names, id, folder, bytes, count);
    if (reason == 0 && (reason = sync_descriptor(folder)) != 0) unlink(is_tsr ? names.tsr : names.plain);
    close(folder);
    if (reason != 0) return fail_write(note, id, reason);

    struct store_counts *const counts = &store->counts;
    atomic_fetch_add(is_tsr ? report.way == TSR_WAY_CODED ? &counts->coded : &counts->stored : &counts->kept, 1);
    atomic_fetch_add(&counts->bytes_in, count);
    atomic_fetch_add(&counts->bytes_out, is_tsr ? report.bytes_out : count);
    if (!is_tsr && count > 0) fail(note, STORE_OK, "stored as it is", id, error.text);
    return STORE_OK;
}

enum store_status store_create(struct store *store, const char *id, const void *bytes, size_t count,
                               struct store_note *note)
{
    note->text[0] = '\0';
    const enum store_status status = create(store, id, bytes, count, note);
    if (status != STORE_OK) atomic_fetch_add(&store->counts.refused, 1);
    return status;
}

/* ---- Reading ---------------------------------------------------------------------------------------------- */

/* Opens a file in one of its forms. While a store is migrated, a file has its new form before it loses the old one: so
 * the first form is tried once more. */
static int open_form(const struct names *names, bool *is_tsr)
{
    for (int attempt = 0; attempt < 3; attempt++) {
        *is_tsr = attempt != 1;
        const int file = open(*is_tsr ? names->tsr : names->plain, O_RDONLY | O_CLOEXEC);
        if (file >= 0 || errno != ENOENT) return file;
    }
    return -1;
}

static enum store_status read_plain(int file, const char *id, uint64_t offset, uint8_t *bytes, size_t count,
                                    struct store_note *note)
{
    for (size_t done = 0; done < count;) {
        const ssize_t got = pread(file, bytes + done, count - done, (off_t)(offset + done));
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return fail(note, STORE_UNREADABLE, "cannot read", id, strerror(errno));
        if (got == 0) return fail(note, STORE_DAMAGED, "cannot read", id, "it became shorter");
        done += (size_t)got;
    }
    return STORE_OK;
}

static int64_t take(void *context, const void *bytes, size_t count)
{
    struct tsr_buffer *const buffer = context;
    uint8_t *const longer = realloc(buffer->bytes, buffer->count + count);
    if (!longer) return -1;
    memcpy(longer + buffer->count, bytes, count);
    buffer->bytes = longer;
    buffer->count += count;
    return (int64_t)count;
}

/* Restores a file to memory, which counts as the engine's; where that is too little, by a temporary file. */
static enum store_status restore(struct store *store, int file, const char *id, struct tsr_buffer *buffer,
                                 struct store_note *note)
{
    struct tsr_error error;
    struct tsr_report report = TSR_REPORT;
    struct tsr_data_source source = tsr_from_descriptor(file);
    struct tsr_data_sink sink = tsr_to_memory(buffer);
    enum tsr_status status = tsr_restore(store->engine, &source, &sink, &report, &error);
    if (status == TSR_ERROR_LIMIT) {
        *buffer = (struct tsr_buffer){NULL, 0};
        sink = tsr_to_calls(take, buffer);
        sink.temporary = store->settings.root;
        report = (struct tsr_report)TSR_REPORT;
        status = tsr_restore(store->engine, &source, &sink, &report, &error);
    }
    if (status != TSR_OK) return fail_library(note, status, id, &error);
    if (report.promise != TSR_PROMISE_FILE)
        return fail(note, STORE_DAMAGED, "cannot read", id, "its .tsr does not restore the same file");
    return STORE_OK;
}

static enum store_status count_read(struct store *store, enum store_status status)
{
    if (status != STORE_OK)
        atomic_fetch_add(status == STORE_DAMAGED ? &store->counts.damaged : &store->counts.failed_reads, 1);
    return status;
}

/* Opens a file to read. */
static enum store_status begin_read(struct store *store, const char *id, int *file, bool *is_tsr, uint64_t *size,
                                    struct store_note *note)
{
    struct names names;
    struct stat state;
    note->text[0] = '\0';
    if (!find_names(store, id, &names)) return fail(note, STORE_BAD_ID, "cannot read", id, "this is no id of a file");
    *file = open_form(&names, is_tsr);
    if (*file < 0 && errno == ENOENT)
        return fail(note, STORE_MISSING, "cannot read", id, "the storage area has no such file");
    if (*file < 0) return fail(note, STORE_UNREADABLE, "cannot read", id, strerror(errno));
    if (fstat(*file, &state) == 0 && S_ISREG(state.st_mode)) {
        *size = (uint64_t)state.st_size;
        return STORE_OK;
    }
    close(*file);
    return fail(note, STORE_UNREADABLE, "cannot read", id, "it is no regular file");
}

enum store_status store_read(struct store *store, const char *id, void *(*allocate)(void *context, size_t count),
                             void *context, struct store_note *note)
{
    struct tsr_buffer buffer = {NULL, 0};
    int file;
    bool is_tsr;
    uint64_t size;
    atomic_fetch_add(&store->counts.read, 1);
    enum store_status status = begin_read(store, id, &file, &is_tsr, &size, note);
    if (status != STORE_OK) return count_read(store, status);
    if (is_tsr) status = restore(store, file, id, &buffer, note);
    const size_t count = is_tsr ? buffer.count : (size_t)size;
    void *const bytes = status == STORE_OK ? allocate(context, count) : NULL;
    if (status == STORE_OK && !bytes && count > 0)
        status = fail(note, STORE_NO_MEMORY, "cannot read", id, "Orthanc has no memory for it");
    if (status == STORE_OK && is_tsr && count > 0) memcpy(bytes, buffer.bytes, count);
    if (status == STORE_OK && !is_tsr) status = read_plain(file, id, 0, bytes, count, note);
    tsr_buffer_free(&buffer);
    close(file);
    return count_read(store, status);
}

/* A range of what a .tsr restores. The reader decodes the frames and the headers that the range touches, each against
 * its own checksum, where the original lies in the .tsr as it is but for samples, or is stored; else it would restore
 * all without asking for the engine's memory. */
static enum store_status restore_range(struct store *store, int file, const char *id, uint64_t offset, void *bytes,
                                       size_t count, struct store_note *note)
{
    struct tsr_error error;
    struct tsr_reader *reader = NULL;
    struct tsr_info info = TSR_INFO;
    struct tsr_buffer buffer = {NULL, 0};
    struct tsr_data_source source = tsr_from_descriptor(file);
    size_t got = 0;
    enum store_status is = STORE_OK;
    enum tsr_status status = tsr_open(store->engine, &source, &reader, &error);
    if (status == TSR_OK && tsr_reader_content(reader) != TSR_CONTENT_TSR) {
        tsr_close(reader);
        return fail(note, STORE_DAMAGED, "cannot read", id, "its .tsr is not one of a single file");
    }
    if (status == TSR_OK) status = tsr_read_info(reader, 0, &info, &error);
    const bool is_pieces = info.returns == TSR_RETURNS_SPLICED || info.returns == TSR_RETURNS_STORED;
    const bool is_range = status == TSR_OK && offset <= info.original_bytes && count <= info.original_bytes - offset;
    if (is_range && is_pieces && info.promise == TSR_PROMISE_FILE)
        status = tsr_read_original(reader, 0, offset, bytes, count, &got, &error);
    tsr_close(reader);
    if (status != TSR_OK) return fail_library(note, status, id, &error);
    if (!is_range) return fail(note, STORE_BAD_RANGE, "cannot read", id, "it ends before the range");
    if (got == count) return STORE_OK;
    is = restore(store, file, id, &buffer, note);
    if (is == STORE_OK && (offset > buffer.count || count > buffer.count - offset))
        is = fail(note, STORE_DAMAGED, "cannot read", id, "it is shorter than its .tsr says");
    if (is == STORE_OK) memcpy(bytes, buffer.bytes + offset, count);
    tsr_buffer_free(&buffer);
    return is;
}

enum store_status store_read_range(struct store *store, const char *id, uint64_t offset, void *bytes, size_t count,
                                   struct store_note *note)
{
    int file;
    bool is_tsr;
    uint64_t size;
    atomic_fetch_add(&store->counts.ranges, 1);
    enum store_status status = begin_read(store, id, &file, &is_tsr, &size, note);
    if (status != STORE_OK) return count_read(store, status);
    if (is_tsr)
        status = restore_range(store, file, id, offset, bytes, count, note);
    else if (offset > size || count > size - offset)
        status = fail(note, STORE_BAD_RANGE, "cannot read", id, "it ends before the range");
    else
        status = read_plain(file, id, offset, bytes, count, note);
    close(file);
    return count_read(store, status);
}

/* ---- Removing --------------------------------------------------------------------------------------------- */

enum store_status store_remove(struct store *store, const char *id, struct store_note *note)
{
    struct names names;
    note->text[0] = '\0';
    if (!find_names(store, id, &names)) return fail(note, STORE_BAD_ID, "cannot remove", id, "this is no id of a file");
    int reason = 0;
    if (unlink(names.tsr) != 0 && errno != ENOENT) reason = errno;
    if (unlink(names.plain) != 0 && errno != ENOENT && reason == 0) reason = errno;
    if (reason != 0) return fail(note, STORE_UNWRITABLE, "cannot remove", id, strerror(reason));
    atomic_fetch_add(&store->counts.removed, 1);
    return STORE_OK;
}
