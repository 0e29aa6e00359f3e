/* What comes back from a .tsr with its original: byte by byte, else sample by sample. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <xxhash.h>

#include "app/cli/cli.h"
#include "app/cli/evidence/evidence.h"

/* ---- Bytes ------------------------------------------------------------------------------------------------- */

/* XXH3-128 and SHA-256 of the same bytes. */
struct both_hashes {
    XXH3_state_t *xxh3;
    struct sha256 sha;
};

/* Compares bytes that come in order with a file's. */
struct comparison {
    int file;
    uint64_t at, first_difference;
    bool differs, failed;
    bool hashes; /* both sides are hashed, too */
    struct both_hashes original, restored;
};

static bool begin_hashes(struct both_hashes *both)
{
    const bool has_sha = sha256_begin(&both->sha); /* or this build has none */
    both->xxh3 = XXH3_createState();
    return (has_sha || !TSR_WITH_OPENSSL) && both->xxh3 && XXH3_128bits_reset(both->xxh3) == XXH_OK;
}

static void add_to_hashes(struct both_hashes *both, const void *bytes, size_t count)
{
    XXH3_128bits_update(both->xxh3, bytes, count);
    sha256_add(&both->sha, bytes, count);
}

/* Frees them. */
static void end_hashes(struct both_hashes *both, char xxh3[HASH_TEXT], char sha256[SHA256_TEXT + 1])
{
    XXH128_canonical_t canonical;
    if (both->xxh3) {
        XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(both->xxh3));
        write_hash(canonical.digest, xxh3);
    }
    sha256_end(&both->sha, sha256);
    XXH3_freeState(both->xxh3);
}

static int64_t compare_bytes(void *context, const void *bytes, size_t count)
{
    uint8_t buffer[1 << 16];
    struct comparison *const c = context;
    size_t taken = 0;
    while (taken < count) {
        const size_t wanted = count - taken < sizeof buffer ? count - taken : sizeof buffer;
        const ssize_t got = pread(c->file, buffer, wanted, (off_t)(c->at + taken));
        if (got < 0 && errno == EINTR) continue;
        c->failed = got < 0;
        if (c->failed) return -1;
        const uint8_t *const theirs = (const uint8_t *)bytes + taken;
        if (c->hashes) {
            add_to_hashes(&c->original, buffer, (size_t)got);
            add_to_hashes(&c->restored, theirs, got > 0 ? (size_t)got : wanted);
        }
        if (!c->differs && (got == 0 || memcmp(buffer, theirs, (size_t)got) != 0)) {
            size_t same = 0;
            while (same < (size_t)got && buffer[same] == theirs[same]) same++;
            c->differs = true;
            c->first_difference = c->at + taken + same;
        }
        taken += got > 0 ? (size_t)got : wanted;
    }
    c->at += count;
    return (int64_t)count;
}

/* ---- Samples ----------------------------------------------------------------------------------------------- */

/* Where the bytes differ, the samples: none may differ by more than the .tsr promises. */
static enum tsr_status compare_samples(struct tsr_reader *tsr, uint32_t member, const char *path,
                                       struct tsr_report *report, struct tsr_error *error)
{
    const struct tsr_data_source source = tsr_from_path(path);
    const int64_t promised = report->promise == TSR_PROMISE_LOSSY ? report->max_error : 0;
    enum tsr_status status = tsr_compare_samples(tsr, member, &source, report, error);
    if (status == TSR_OK && report->max_error > promised)
        status = refuse(error, TSR_ERROR_VERIFY, "a sample differs by %lld, and the .tsr promises at most %lld",
                        (long long)report->max_error, (long long)promised);
    return status;
}

/* The rest of an original that is longer than what comes back. */
static void hash_rest(struct comparison *c)
{
    uint8_t buffer[1 << 14];
    for (uint64_t at = c->at;;) {
        const ssize_t got = pread(c->file, buffer, sizeof buffer, (off_t)at);
        if (got < 0 && errno == EINTR) continue;
        c->failed |= got < 0;
        if (got <= 0) return;
        add_to_hashes(&c->original, buffer, (size_t)got);
        at += (uint64_t)got;
    }
}

/* All bytes that come back, with the original's, whose file is open. */
static enum tsr_status compare_open_file(struct tsr_reader *tsr, uint32_t member, const char *original,
                                         struct comparison *c, bool *same, struct tsr_report *report,
                                         struct tsr_error *error)
{
    struct tsr_data_sink sink = tsr_to_calls(compare_bytes, c);
    struct stat status_of;
    sink.temporary = temporary_folder();
    if (fstat(c->file, &status_of) != 0)
        return refuse(error, TSR_ERROR_READ, "cannot read %s: %s", original, strerror(errno));
    const enum tsr_status status = tsr_restore_member(tsr, member, &sink, report, error);
    if (c->hashes && status == TSR_OK && !c->failed) hash_rest(c);
    if (c->failed) return refuse(error, TSR_ERROR_READ, "cannot read %s to its end", original);
    *same = !c->differs && c->at == (uint64_t)status_of.st_size;
    if (status != TSR_OK || *same || report->promise != TSR_PROMISE_FILE) return status;
    if (!c->differs) c->first_difference = c->at < (uint64_t)status_of.st_size ? c->at : (uint64_t)status_of.st_size;
    return refuse(error, TSR_ERROR_VERIFY, "what comes back differs from %s from byte %llu on", original,
                  (unsigned long long)c->first_difference);
}

static enum tsr_status compare_file(struct tsr_reader *tsr, uint32_t member, const char *original, bool *same,
                                    struct tsr_report *report, struct file_hashes *hashes, struct tsr_error *error)
{
    struct comparison c = {.file = open(original, O_RDONLY | O_CLOEXEC), .hashes = hashes != NULL};
    enum tsr_status status = TSR_OK;
    if (c.file < 0) return refuse(error, TSR_ERROR_READ, "cannot open %s: %s", original, strerror(errno));
    if (hashes && !(begin_hashes(&c.original) & begin_hashes(&c.restored)))
        status = refuse(error, TSR_ERROR_LIMIT, "no memory for the hashes of %s", original);
    if (status == TSR_OK) status = compare_open_file(tsr, member, original, &c, same, report, error);
    if (hashes) {
        end_hashes(&c.original, hashes->original_xxh3, hashes->original_sha256);
        end_hashes(&c.restored, hashes->restored_xxh3, hashes->restored_sha256);
    }
    close(c.file);
    return status;
}

/* Hashes of all samples that come back, frame by frame as rasters: SHA-256 of all, and XXH3-128 of the XXH3-128 of each
 * frame, which is the .tsr's own; not of values that stand for coded samples, whose hash the .tsr has. */
static enum tsr_status hash_samples(struct tsr_reader *tsr, uint32_t member, struct file_hashes *hashes,
                                    struct tsr_error *error)
{
    struct tsr_info info = TSR_INFO;
    struct sha256 sha;
    enum tsr_status status = tsr_read_info(tsr, member, &info, error);
    if (status != TSR_OK || !info.has_image || info.units > 0) return status; /* a unit has no samples of its own */
    hashes->frames = info.image.frames;
    const size_t bytes = (size_t)((tsr_frame_bits(&info.image) + 7) / 8);
    uint8_t *const raster = malloc(bytes);
    XXH3_state_t *const frames = XXH3_createState();
    XXH128_canonical_t canonical;
    sha256_begin(&sha);
    if (!raster || !frames || XXH3_128bits_reset(frames) != XXH_OK)
        status = refuse(error, TSR_ERROR_LIMIT, "no memory for a frame");
    for (uint32_t k = 0; k < info.image.frames && status == TSR_OK; k++) {
        status = tsr_read_frame(tsr, member, k, raster, bytes, 0, error);
        if (status != TSR_OK) break;
        sha256_add(&sha, raster, bytes);
        XXH128_canonicalFromHash(&canonical, XXH3_128bits(raster, bytes));
        XXH3_128bits_update(frames, canonical.digest, sizeof canonical.digest);
    }
    if (status == TSR_OK && info.coded_bits == 0) {
        XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(frames));
        write_hash(canonical.digest, hashes->samples_xxh3);
    }
    XXH3_freeState(frames);
    sha256_end(&sha, hashes->samples_sha256);
    free(raster);
    return status;
}

/* Where another file comes back: whether the original is the very file that the .tsr was made of. */
static enum tsr_status check_original(const char *path, const struct tsr_report *report, struct tsr_error *error)
{
    const struct tsr_data_source source = tsr_from_path(path);
    uint8_t hash[16];
    const enum tsr_status status = tsr_hash(&source, hash, error);
    if (status != TSR_OK || memcmp(hash, report->original_hash, sizeof hash) == 0) return status;
    return refuse(error, TSR_ERROR_VERIFY, "%s is not the file that the .tsr was made of: its hash is another", path);
}

enum tsr_status compare_with_original(struct tsr_engine *engine, const struct tsr_data_source *tsr,
                                      struct tsr_reader *series, uint32_t member, const char *original,
                                      struct tsr_report *report, struct file_hashes *hashes, struct tsr_error *error)
{
    struct tsr_reader *own = NULL;
    bool same = false;
    enum tsr_status status = series ? TSR_OK : tsr_open(engine, tsr, &own, error);
    struct tsr_reader *const reader = series ? series : own;
    if (status == TSR_OK && tsr_reader_content(reader) == TSR_CONTENT_ORIGINAL)
        status = refuse(error, TSR_ERROR_NOT_TSR, "%s is not a .tsr file", tsr->name);
    if (status == TSR_OK) status = compare_file(reader, member, original, &same, report, hashes, error);
    if (status == TSR_OK && !same) status = check_original(original, report, error);
    if (status == TSR_OK && !same) status = compare_samples(reader, member, original, report, error);
    if (status == TSR_OK && hashes) status = hash_samples(reader, member, hashes, error);
    if (status == TSR_OK && same && report->promise != TSR_PROMISE_LOSSY) report->promise = TSR_PROMISE_FILE;
    tsr_close(own);
    return status;
}
