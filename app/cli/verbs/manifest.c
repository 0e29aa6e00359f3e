/* Manifests; see manifest.h. */
#include "manifest.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "app/cli/evidence/sha256.h"
#include "app/cli/inputs/inputs.h"

static const char first_line[] = MANIFEST_FIRST_LINE;
/* The second line, of one length, so that it can be replaced in place. */
static const char unfinished[] = MANIFEST_UNFINISHED;

struct entry {
    char *path;
    uint64_t bytes;
    char xxh[HASH_TEXT], sha256[SHA256_TEXT + 1], restores[8];
    size_t order; /* of reading: the last one of a name counts */
    bool is_seen;
};

static struct {
    FILE *file;  /* that is written, and locked; or NULL */
    int failure; /* errno of the first write that failed, or 0 */
    char *path, *part, *next;
    struct entry *entries; /* that were read, by path */
    size_t count, capacity;
    bool is_cut; /* of those that were read: the run that writes the file has not come to its end */
} manifest;

/* A file whose bytes are hashed while they are read. */
struct hashed_file {
    struct sha256 sha;
    int file;
};

/* As the source of tsr_hash, which reads once and in order: so both hashes are of the same bytes. */
static int64_t read_and_add(void *context, uint64_t offset, void *bytes, size_t count)
{
    struct hashed_file *const hashed = context;
    ssize_t got;
    do got = pread(hashed->file, bytes, count, (off_t)offset);
    while (got < 0 && errno == EINTR);
    if (got > 0 && offset == hashed->sha.bytes)
        sha256_add(&hashed->sha, bytes, (size_t)got);
    else
        hashed->sha.failed = true;
    return got;
}

static int64_t take_and_add(void *context, const void *bytes, size_t count)
{
    sha256_add(context, bytes, count);
    return (int64_t)count;
}

/* ---- Reading ---------------------------------------------------------------------------------------------- */

static int by_path(const void *a, const void *b)
{
    return strcmp(((const struct entry *)a)->path, ((const struct entry *)b)->path);
}

static int by_path_and_order(const void *a, const void *b)
{
    const struct entry *const one = a, *const other = b;
    const int order = by_path(a, b);
    return order ? order : (one->order > other->order) - (one->order < other->order);
}

/* One entry for each name, by name. */
static void settle_entries(void)
{
    size_t kept = 0;
    if (manifest.count > 0) qsort(manifest.entries, manifest.count, sizeof *manifest.entries, by_path_and_order);
    for (size_t i = 0; i < manifest.count; i++) {
        if (kept > 0 && strcmp(manifest.entries[kept - 1].path, manifest.entries[i].path) == 0)
            free(manifest.entries[--kept].path);
        manifest.entries[kept++] = manifest.entries[i];
    }
    manifest.count = kept;
}

static struct entry *find_entry(const char *path)
{
    struct entry wanted = {.path = (char *)(uintptr_t)path};
    return manifest.count == 0 || !path
               ? NULL
               : bsearch(&wanted, manifest.entries, manifest.count, sizeof *manifest.entries, by_path);
}

/* Undoes sha256sum's escapes, in place. */
static void unescape(char *name)
{
    char *to = name;
    for (const char *at = name; *at; at++) {
        if (*at == '\\' && at[1] == 'n')
            *to++ = '\n', at++;
        else if (*at == '\\' && at[1] == 'r')
            *to++ = '\r', at++;
        else if (*at == '\\' && at[1] == '\\')
            *to++ = '\\', at++;
        else
            *to++ = *at;
    }
    *to = '\0';
}

static bool add_entry(const struct entry *entry)
{
    if (!grow_list(&manifest.entries, manifest.count, &manifest.capacity, sizeof *manifest.entries)) return false;
    manifest.entries[manifest.count] = *entry;
    manifest.entries[manifest.count].order = manifest.count;
    manifest.count++;
    return true;
}

/* A line of sha256sum's, after one that tells of its file. False: it is not one. */
static bool read_entry(char *line, struct entry *entry)
{
    const bool is_escaped = line[0] == '\\';
    char *const hash = line + is_escaped;
    if (strlen(hash) < SHA256_TEXT + 3 || strspn(hash, "0123456789abcdef") != SHA256_TEXT) return false;
    if (hash[SHA256_TEXT] != ' ' || (hash[SHA256_TEXT + 1] != ' ' && hash[SHA256_TEXT + 1] != '*')) return false;
    memcpy(entry->sha256, hash, SHA256_TEXT);
    entry->sha256[SHA256_TEXT] = '\0';
    entry->path = strdup(hash + SHA256_TEXT + 2);
    if (entry->path && is_escaped) unescape(entry->path);
    return true;
}

/* What is read of a manifest. */
struct reading {
    struct lines lines;
    struct entry entry;        /* of which the line that comes next may tell the rest */
    bool is_told;              /* the line before has told of its file */
    unsigned long long wanted; /* entries, ULLONG_MAX: it does not say */
    uint64_t limit, left;      /* bytes of memory that its entries may take */
};

static enum tsr_status take_entry(struct reading *r, struct tsr_error *error)
{
    struct lines *const lines = &r->lines;
    if (!r->is_told || !read_entry(lines->line, &r->entry))
        return refuse(error, TSR_ERROR_READ, "%s is not a manifest: line %zu", lines->path, lines->number);
    const bool fits = take_share(&r->left, 3 * sizeof r->entry + lines->length);
    const bool is_kept = fits && r->entry.path && add_entry(&r->entry);
    if (!is_kept) free(r->entry.path);
    r->entry.path = NULL;
    r->is_told = false;
    if (!fits)
        return refuse(error, TSR_ERROR_LIMIT,
                      "the names in %s take more than %llu MB, a quarter of the memory: give more --memory",
                      lines->path, (unsigned long long)(r->limit / 1000000));
    return is_kept ? TSR_OK : refuse(error, TSR_ERROR_LIMIT, "no memory for the manifest %s", lines->path);
}

/* A line after the first one. The last one of a killed run's may be cut. */
static enum tsr_status take_line(struct reading *r, struct tsr_error *error)
{
    unsigned long long bytes;
    const char *const line = r->lines.line;
    if (sscanf(line, "# bytes=%llu xxh3-128=%32[0-9a-f] restores=%7[a-z]", &bytes, r->entry.xxh, r->entry.restores) ==
        3) {
        r->entry.bytes = bytes;
        r->is_told = true;
        return TSR_OK;
    }
    if (r->lines.number == 2) sscanf(line, "# complete %llu", &r->wanted);
    return line[0] == '#' || line[0] == '\0' ? TSR_OK : take_entry(r, error);
}

/* limit: bytes of memory that its entries may take. */
static enum tsr_status read_file(const char *path, bool may_be_cut, uint64_t limit, struct tsr_error *error)
{
    struct reading r = {.wanted = ULLONG_MAX, .limit = limit, .left = limit};
    const size_t before = manifest.count;
    bool is_line;
    enum tsr_status status = open_lines(path, NAME_LIMIT, &r.lines, error);
    if (status != TSR_OK) return status;
    r.lines.path = path;
    status = next_line(&r.lines, &is_line, error);
    const bool has_head = status == TSR_OK && r.lines.has_end &&
                          strncmp(r.lines.line, first_line, sizeof first_line - 2) == 0 &&
                          r.lines.length == sizeof first_line - 2;
    if (status != TSR_ERROR_READ && !has_head && !may_be_cut)
        status =
            refuse(error, TSR_ERROR_READ, "%s is not a manifest: it does not begin with '# tessera manifest 1'", path);
    while (has_head && status == TSR_OK && (status = next_line(&r.lines, &is_line, error)) == TSR_OK && is_line) {
        if (may_be_cut && !r.lines.has_end) break;
        status = take_line(&r, error);
    }
    close_lines(&r.lines);
    if (status == TSR_OK && r.wanted != ULLONG_MAX && manifest.count - before != r.wanted)
        status = refuse(error, TSR_ERROR_READ, "%s is cut: it has %zu of its %llu entries", path,
                        manifest.count - before, r.wanted);
    settle_entries();
    return status;
}

static enum tsr_status read_manifest(const struct options *options, struct tsr_error *error)
{
    manifest.is_cut = begins_as_manifest(options->report.manifest, true);
    if (manifest.is_cut)
        fprintf(stderr,
                "tessera: %s is not complete: what it has is checked; the command that writes it goes on with "
                "--update\n",
                shown(options->report.manifest));
    return read_file(options->report.manifest, manifest.is_cut, memory_limit(&options->machine) / 4, error);
}

bool manifest_is_cut(void)
{
    return manifest.is_cut;
}

void free_manifest(void)
{
    for (size_t i = 0; i < manifest.count; i++) free(manifest.entries[i].path);
    free(manifest.entries);
    manifest.entries = NULL;
    manifest.count = manifest.capacity = 0;
}

/* ---- Writing ---------------------------------------------------------------------------------------------- */

static void print_name(FILE *file, const char *name)
{
    for (; *name; name++) {
        if (*name == '\n')
            fputs("\\n", file);
        else if (*name == '\r')
            fputs("\\r", file);
        else if (*name == '\\')
            fputs("\\\\", file);
        else
            putc(*name, file);
    }
}

static void print_entry(FILE *file, const struct entry *entry)
{
    fprintf(file, "# bytes=%llu xxh3-128=%s restores=%s\n%s%s  ", (unsigned long long)entry->bytes, entry->xxh,
            entry->restores, strpbrk(entry->path, "\\\n\r") ? "\\" : "", entry->sha256);
    print_name(file, entry->path);
    putc('\n', file);
}

static bool print_all(FILE *file)
{
    fputs(first_line, file);
    fputs(unfinished, file);
    fflush(file); /* at once, so that a kill leaves no file that says nothing */
    for (size_t i = 0; i < manifest.count; i++) print_entry(file, &manifest.entries[i]);
    return fflush(file) == 0 && !ferror(file) && fsync(fileno(file)) == 0;
}

/* A file of another run at work has a lock. A file of a run that has ended is taken; there is none, or another file:
 * TSR_OK, and the file that is to be locked while it is replaced in *held, or -1. */
static enum tsr_status check_free(const char *name, int *held, struct tsr_error *error)
{
    struct stat there;
    *held = -1;
    if (lstat(name, &there) != 0) return TSR_OK;
    /* An empty one is left by a run that was killed before it had its first line. */
    const bool was_begun = name == manifest.next && there.st_size == 0;
    if (!S_ISREG(there.st_mode) || (!was_begun && !begins_as_manifest(name, true)))
        return refuse(error, TSR_ERROR_EXISTS,
                      "%s exists and is no unfinished manifest: rename it, or name another manifest", name);
    *held = open(name, O_RDWR | O_CLOEXEC);
    if (*held >= 0 && flock(*held, LOCK_EX | LOCK_NB) == 0) return TSR_OK;
    return refuse(error, TSR_ERROR_EXISTS, "another run is writing %s: each run needs a manifest of its own", name);
}

/* Creates the file that is to take the part's place, locked. NULL: errno says why. */
static FILE *create_next(void)
{
    const int file = open(manifest.next, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    FILE *const stream = file >= 0 && flock(file, LOCK_EX | LOCK_NB) == 0 ? fdopen(file, "w") : NULL;
    if (file >= 0 && !stream) close(file);
    return stream;
}

/* Writes all entries to the file that takes the part's place, so that a kill loses none. */
static enum tsr_status rewrite_part(struct tsr_error *error)
{
    FILE *const file = create_next();
    bool good = file && print_all(file);
    if (good) good = rename(manifest.next, manifest.part) == 0;
    const enum tsr_status status =
        good ? TSR_OK : refuse(error, TSR_ERROR_WRITE, "cannot write %s: %s", manifest.next, strerror(errno));
    if (status != TSR_OK) error->system = errno;
    if (file && !good) unlink(manifest.next);
    if (manifest.file) fclose(manifest.file);
    manifest.file = good ? file : NULL;
    if (file && !good) fclose(file);
    return status;
}

/* Reads what earlier runs have written, and begins the part. */
static enum tsr_status go_on(const struct options *options, bool exists, bool has_part, struct tsr_error *error)
{
    const bool goes_on = options->archive.update != UPDATE_OFF;
    enum tsr_status status = TSR_OK;
    if (has_part && !goes_on && !options->out.force)
        return refuse(error, TSR_ERROR_EXISTS,
                      "%s is of a run that has not come to its end: --update goes on with it, -f begins anew",
                      manifest.part);
    if (goes_on && exists) status = read_file(manifest.path, false, memory_limit(&options->machine) / 4, error);
    if (status == TSR_OK && goes_on && has_part)
        status = read_file(manifest.part, true, memory_limit(&options->machine) / 4, error);
    return status == TSR_OK ? rewrite_part(error) : status;
}

static enum tsr_status begin_part(const struct options *options, bool exists, struct tsr_error *error)
{
    int part, next = -1;
    manifest.failure = 0;
    manifest.path = manifest_name(options->report.manifest, 0);
    manifest.part = manifest_name(options->report.manifest, 1);
    manifest.next = manifest_name(options->report.manifest, 2);
    if (!manifest.path || !manifest.part || !manifest.next)
        return refuse(error, TSR_ERROR_LIMIT, "no memory for a manifest");
    enum tsr_status status = check_free(manifest.part, &part, error);
    if (status == TSR_OK) status = check_free(manifest.next, &next, error);
    if (status == TSR_OK && next >= 0) unlink(manifest.next); /* of a run that was killed when it began or ended */
    if (status == TSR_OK) status = go_on(options, exists, part >= 0, error);
    if (part >= 0) close(part);
    if (next >= 0) close(next);
    return status;
}

enum tsr_status begin_manifest(const struct options *options, struct tsr_error *error)
{
    struct stat there;
    const bool exists = lstat(options->report.manifest, &there) == 0;
    if (exists && !S_ISREG(there.st_mode))
        return refuse(error, TSR_ERROR_WRITE, "%s is not a regular file and is left as it is",
                      options->report.manifest);
    if (exists && !options->out.force && options->archive.update == UPDATE_OFF)
        return refuse(error, TSR_ERROR_EXISTS,
                      "%s exists, and may be all that is known of its originals: name another manifest",
                      options->report.manifest);
    const enum tsr_status status = begin_part(options, exists, error);
    return status == TSR_OK ? tsr_file_set_add(options->out.written, manifest.part, NULL, error) : status;
}

/* Of what comes back, where the original is gone. */
static enum tsr_status hash_restored(struct tsr_engine *engine, const struct tsr_data_source *tsr,
                                     struct tsr_reader *series, uint32_t member, char sha256[SHA256_TEXT + 1],
                                     struct tsr_report *report, struct tsr_error *error)
{
    struct sha256 sha;
    struct tsr_data_sink sink = tsr_to_calls(take_and_add, &sha);
    sink.temporary = temporary_folder();
    enum tsr_status status =
        sha256_begin(&sha) ? TSR_OK
                           : refuse(error, TSR_ERROR_LIMIT, "no SHA-256: libcrypto is missing, or there is no memory");
    if (status == TSR_OK)
        status = series ? tsr_restore_member(series, member, &sink, report, error)
                        : tsr_restore(engine, tsr, &sink, report, error);
    if (!sha256_end(&sha, sha256) && status == TSR_OK) status = refuse(error, TSR_ERROR_INTERNAL, "no SHA-256");
    return status;
}

static enum tsr_status hash_original(const struct task *task, const struct tsr_data_source *source,
                                     struct outcome *outcome)
{
    struct hashed_file hashed;
    struct stat status_of;
    uint8_t found[16];
    const bool has_sha = sha256_begin(&hashed.sha);
    hashed.file =
        task->descriptor >= 0 ? fcntl(source->descriptor, F_DUPFD_CLOEXEC, 0) : open(task->input, O_RDONLY | O_CLOEXEC);
    enum tsr_status status = TSR_OK;
    if (hashed.file < 0 || fstat(hashed.file, &status_of) != 0)
        status = refuse(&outcome->error, TSR_ERROR_READ, "cannot open %s: %s", task->input, strerror(errno));
    if (status == TSR_OK && !has_sha)
        status = refuse(&outcome->error, TSR_ERROR_LIMIT, "no SHA-256: libcrypto is missing, or there is no memory");
    if (status == TSR_OK) {
        const struct tsr_data_source again = tsr_from_calls(read_and_add, &hashed, (uint64_t)status_of.st_size);
        status = tsr_hash(&again, found, &outcome->error);
    }
    if (status == TSR_OK && memcmp(found, outcome->report.original_hash, sizeof found) != 0)
        status = refuse(&outcome->error, TSR_ERROR_READ, "%s changed while it was read", task->input);
    if (!sha256_end(&hashed.sha, outcome->sha256) && status == TSR_OK)
        status = refuse(&outcome->error, TSR_ERROR_INTERNAL, "no SHA-256 of %s", task->input);
    if (hashed.file >= 0) close(hashed.file);
    return status;
}

enum tsr_status hash_for_manifest(struct tsr_engine *engine, const struct task *task,
                                  const struct tsr_data_source *source, struct outcome *outcome)
{
    const struct entry *const entry = find_entry(task->name);
    const struct tsr_data_source made = from_tsr(task->output);
    struct tsr_report restored = TSR_REPORT;
    struct stat status;
    char xxh[HASH_TEXT];
    write_hash(outcome->report.original_hash, xxh);
    if (entry && entry->bytes == outcome->report.bytes_in && strcmp(entry->xxh, xxh) == 0) {
        memcpy(outcome->sha256, entry->sha256, sizeof outcome->sha256);
        return TSR_OK;
    }
    if (outcome->is_current && stat(task->input, &status) != 0 && errno == ENOENT)
        return hash_restored(engine, &made, NULL, 0, outcome->sha256, &restored, &outcome->error);
    return hash_original(task, source, outcome);
}

/* What comes back, the worst first. */
static const char *const restores[] = {"loss", "samples", "file"};

static int rank_of(const struct tsr_report *report)
{
    return report->promise == TSR_PROMISE_LOSSY ? 0 : report->promise == TSR_PROMISE_FILE ? 2 : 1;
}

void note_in_manifest(const struct task *task, const struct outcome *outcome)
{
    const struct tsr_report *const r = &outcome->report;
    struct entry entry = {.path = task->name, .bytes = r->bytes_in};
    if (!manifest.file || outcome->status != TSR_OK) return;
    write_hash(r->original_hash, entry.xxh);
    memcpy(entry.sha256, outcome->sha256, sizeof entry.sha256);
    snprintf(entry.restores, sizeof entry.restores, "%s", restores[rank_of(r)]);
    if (!manifest.failure) print_entry(manifest.file, &entry);
    if (!manifest.failure && ferror(manifest.file)) manifest.failure = errno ? errno : EIO;
}

enum tsr_status sync_manifest(struct tsr_error *error)
{
    if (!manifest.file) return TSR_OK;
    if (!manifest.failure && (fflush(manifest.file) != 0 || ferror(manifest.file) || fsync(fileno(manifest.file)) != 0))
        manifest.failure = errno ? errno : EIO;
    if (!manifest.failure) return TSR_OK;
    const enum tsr_status status =
        refuse(error, TSR_ERROR_WRITE, "cannot write %s: %s", manifest.part, strerror(manifest.failure));
    error->system = manifest.failure;
    return status;
}

/* The part gets its name, and then says that it is complete. */
static enum tsr_status name_part(struct tsr_error *error)
{
    char complete[sizeof unfinished];
    snprintf(complete, sizeof complete, "# complete %012zu", manifest.count);
    complete[sizeof complete - 2] = '\n';
    const bool good =
        rename(manifest.part, manifest.path) == 0 &&
        pwrite(fileno(manifest.file), complete, sizeof complete - 1, sizeof first_line - 1) == sizeof complete - 1 &&
        fsync(fileno(manifest.file)) == 0;
    return good ? TSR_OK : refuse(error, TSR_ERROR_WRITE, "cannot write %s: %s", manifest.path, strerror(errno));
}

enum tsr_status end_manifest(bool is_complete, struct tsr_error *error)
{
    enum tsr_status status = sync_manifest(error);
    if (status == TSR_OK && manifest.file) {
        free_manifest();
        status = read_file(manifest.part, false, UINT64_MAX, error);
        if (status == TSR_OK) status = rewrite_part(error);
    }
    if (status == TSR_OK && manifest.file && is_complete) status = name_part(error);
    if (status == TSR_OK && manifest.file && !is_complete && manifest.count == 0) unlink(manifest.part);
    if (status == TSR_OK && manifest.file && !is_complete && manifest.count > 0)
        fprintf(stderr,
                "tessera: the manifest is not complete and is called %s; the same command with --update goes on; what "
                "can never be done needs another name, or --exclude\n",
                shown(manifest.part));
    if (manifest.file) fclose(manifest.file);
    manifest.file = NULL;
    free(manifest.path);
    free(manifest.part);
    free(manifest.next);
    manifest.path = manifest.part = manifest.next = NULL;
    free_manifest();
    return status;
}

/* ---- test --manifest -------------------------------------------------------------------------------------- */

/* Whether --include and --exclude would let the .tsr of an original through, and all folders above it. */
static bool is_looked_for(const struct options *options, const char *original)
{
    char *name = NULL;
    if (asprintf(&name, "%s.tsr", original) < 0) return true;
    bool is_wanted = is_included(&options->in, name, false);
    for (char *slash = strchr(name, '/'); slash && is_wanted; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        is_wanted = is_included(&options->in, name, true);
        *slash = '/';
    }
    free(name);
    return is_wanted;
}

enum tsr_status list_with_manifest(const struct options *options, struct tsr_engine *engine, struct task_list *list,
                                   struct tsr_error *error)
{
    struct options all = *options;
    all.in.shards = 0; /* a shard and a sample are taken of what is missing, too */
    all.sample.share = 0;
    enum tsr_status status = read_manifest(options, error);
    if (status == TSR_OK) status = list_tasks(&all, engine, list, error);
    if (status != TSR_OK) return status;
    struct walk walk = {.options = options, .list = list};
    const size_t found = list->count;
    const char *reason = "the manifest names it, and there is no .tsr of it";
    for (size_t i = 0; i < found; i++) {
        struct entry *const entry = find_entry(list->tasks[i].name);
        if (entry) entry->is_seen = true;
        if (list->tasks[i].status != TSR_OK && !entry) /* of which file is not known */
            reason = "the manifest names it, and there is no .tsr of it that can be read";
    }
    const bool names_all = !options->in.files_from && !options->in.member;
    for (size_t i = 0; i < manifest.count && names_all && !walk.no_memory; i++)
        if (!manifest.entries[i].is_seen && is_looked_for(options, manifest.entries[i].path))
            add_task(&walk, strdup(manifest.entries[i].path), NULL, strdup(manifest.entries[i].path), TSR_ERROR_VERIFY,
                     reason);
    list->in_set = list->count;
    if (!walk.no_memory && options->in.shards > 0) status = take_shard(&options->in, list, error);
    if (!walk.no_memory && status == TSR_OK && options->sample.share > 0)
        status = take_sample(&options->sample, list, error);
    return walk.no_memory ? refuse(error, TSR_ERROR_LIMIT, "no memory for a list of %zu files", list->count) : status;
}

enum tsr_status test_with_manifest(struct tsr_engine *engine, const struct task *task,
                                   const struct tsr_data_source *source, struct outcome *outcome)
{
    const struct entry *const entry = find_entry(task->name);
    struct tsr_report *const r = &outcome->report;
    char sha256[SHA256_TEXT + 1] = "", xxh[HASH_TEXT];
    if (!entry)
        return refuse(&outcome->error, TSR_ERROR_VERIFY, "%s: the manifest does not name %s", task->input, task->name);
    const enum tsr_status status =
        hash_restored(engine, source, task->series, task->number, sha256, r, &outcome->error);
    if (status != TSR_OK) return status;
    write_hash(r->original_hash, xxh);
    if (strcmp(xxh, entry->xxh) != 0)
        return refuse(&outcome->error, TSR_ERROR_VERIFY, "%s is a .tsr of another file than the manifest's",
                      task->input);
    if (r->promise == TSR_PROMISE_FILE && (r->bytes_out != entry->bytes || strcmp(sha256, entry->sha256) != 0))
        return refuse(&outcome->error, TSR_ERROR_VERIFY, "%s restores a file with another SHA-256 than the manifest's",
                      task->input);
    if (rank_of(r) < 2 && strcmp(entry->restores, restores[2]) == 0)
        return refuse(&outcome->error, TSR_ERROR_VERIFY,
                      "%s does not restore the same file any more, as the manifest says", task->input);
    if (rank_of(r) < 1 && strcmp(entry->restores, restores[1]) == 0)
        return refuse(&outcome->error, TSR_ERROR_VERIFY,
                      "%s does not restore the same samples any more, as the manifest says", task->input);
    memcpy(outcome->sha256, entry->sha256, sizeof outcome->sha256);
    return TSR_OK;
}
