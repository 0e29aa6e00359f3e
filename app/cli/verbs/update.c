/* --update: which inputs are done: whether a .tsr is there, whole, and of this file; or what a .tsr restores. */
#include <errno.h>
#include <string.h>

#include "app/cli/cli.h"

/* Whether a file has the hash of the original of a .tsr: it is read, and nothing is decoded. */
static enum tsr_status has_hash(const char *path, const uint8_t hash[16], bool *same, struct tsr_error *error)
{
    uint8_t found[16];
    const struct tsr_data_source source = tsr_from_path(path);
    const enum tsr_status status = tsr_hash(&source, found, error);
    *same = status == TSR_OK && memcmp(found, hash, sizeof found) == 0;
    return status;
}

bool is_same_time(struct timespec a, struct timespec b)
{
    return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

/* A request without loss is not met by a file with loss, nor one for a region by a file that has none, nor one for
 * encryption by a file without. A file without a base meets one for a base: some have none. */
static bool meets_request(const struct options *options, const struct tsr_info *info)
{
    const bool may_be_lossy = options->coding.compress.loss != TSR_LOSSLESS && !options->coding.compress.lossless_rest;
    const bool lacks_region = options->coding.region && info->exact.samples == 0;
    if (key_to_write(options) && !info->encrypted) return false;
    return (may_be_lossy && !lacks_region) || info->promise != TSR_PROMISE_LOSSY;
}

/* What is known of a .tsr that stays as it is. */
static void report_current(const struct tsr_info *info, struct tsr_report *report)
{
    report->kind = info->kind;
    report->way = info->way;
    report->promise = info->promise;
    report->has_image = info->has_image && info->units < info->image.frames;
    report->image = info->image;
    report->coding = info->coding;
    report->bytes_in = info->original_bytes;
    report->bytes_out = info->file_bytes;
    report->psnr_db = info->psnr_db;
    report->psnr_stored_db = info->psnr_stored_db;
    report->range = info->range;
    report->windows = info->windows;
    memcpy(report->window, info->window, sizeof report->window);
    report->kept_count = info->kept_count;
    memcpy(report->kept, info->kept, sizeof report->kept);
    report->max_error = info->max_error;
    report->base_bytes = info->base_bytes;
    report->base_psnr_db = info->base_psnr_db;
    report->base_max_error = info->base_max_error;
    report->exact = info->exact;
    memcpy(report->original_hash, info->original_hash, sizeof report->original_hash);
    memcpy(report->damage, info->original_damage, sizeof report->damage);
}

/* Reads what a .tsr says of itself. */
static enum tsr_status read_output(struct tsr_engine *engine, const char *path, struct tsr_info *info, bool *is_one,
                                   struct tsr_error *error)
{
    const struct tsr_data_source source = from_tsr(path);
    struct tsr_reader *reader = NULL;
    enum tsr_status status = tsr_open(engine, &source, &reader, error);
    *is_one = status == TSR_OK && tsr_reader_content(reader) == TSR_CONTENT_TSR;
    if (*is_one) status = tsr_read_info(reader, 0, info, error);
    tsr_close(reader);
    return status;
}

/* With --rm the original of a .tsr that is there may be gone: then it is replaced only by -f, or if it is of the same
 * bytes. info: NULL, it cannot be read. *same: it is of these bytes. */
static enum tsr_status protect_only_copy(const struct options *options, const struct task *task,
                                         const struct tsr_info *info, bool *same, struct outcome *outcome)
{
    *same = false;
    if (!options->archive.removes || options->out.force) return TSR_OK;
    const enum tsr_status status = info ? has_hash(task->input, info->original_hash, same, &outcome->error) : TSR_OK;
    if (status != TSR_OK || *same) return status;
    return refuse(&outcome->error, TSR_ERROR_EXISTS,
                  "%s holds another file or another state of this one, which may be its only copy: rename it, or name "
                  "another output with -o",
                  task->output);
}

/* An encrypted .tsr is not replaced by one that is not, unless -f asks for it. */
static enum tsr_status keep_encrypted(struct tsr_engine *engine, const struct options *options, const struct task *task,
                                      struct outcome *outcome)
{
    const struct tsr_data_source without_key = tsr_from_path(task->output);
    struct tsr_reader *reader = NULL;
    struct tsr_error ignored;
    if (key_to_write(options) || options->out.force) return TSR_OK;
    const bool is_sealed = tsr_open(engine, &without_key, &reader, &ignored) == TSR_ERROR_KEY;
    tsr_close(reader);
    if (!is_sealed) return TSR_OK;
    return refuse(&outcome->error, TSR_ERROR_KEY,
                  "%s is encrypted, and what would replace it is not: give --encrypt, or -f", task->output);
}

enum tsr_status check_current(struct tsr_engine *engine, const struct options *options, const struct task *task,
                              bool *current, bool *replace, struct outcome *outcome)
{
    struct tsr_info info = TSR_INFO;
    struct stat original, made;
    bool is_one = false;
    *current = *replace = false;
    if (lstat(task->output, &made) != 0 || !S_ISREG(made.st_mode)) return TSR_OK;
    const struct tsr_file_state state = state_of(&made);
    if (tsr_file_set_find(options->out.written, task->output, &state)) return TSR_OK; /* writing it is refused */
    const enum tsr_status status = read_output(engine, task->output, &info, &is_one, &outcome->error);
    if (status == TSR_ERROR_READ || status == TSR_ERROR_LIMIT || status == TSR_ERROR_KEY) return status;
    if (status == TSR_OK && !is_one)
        return refuse(&outcome->error, TSR_ERROR_EXISTS,
                      "%s exists and is not a .tsr of one file: rename it, or name another output with -o",
                      task->output);
    if (status == TSR_ERROR_VERSION)
        return refuse(&outcome->error, TSR_ERROR_EXISTS,
                      "%s is of another format version: rename it, or name another output with -o", task->output);
    *replace = task->existed; /* a damaged one, or one of another state of the file */
    bool same;
    if (status != TSR_OK || info.damage || !meets_request(options, &info)) {
        const enum tsr_status kept = keep_encrypted(engine, options, task, outcome);
        if (kept != TSR_OK) return kept;
        return protect_only_copy(options, task, status == TSR_OK ? &info : NULL, &same, outcome);
    }
    const bool is_gone = stat(task->input, &original) != 0 && errno == ENOENT;
    const bool same_size = !is_gone && (uint64_t)original.st_size == info.original_bytes;
    enum tsr_status looked = TSR_OK;
    if (is_gone) /* has --rm removed it, amid a run that goes on now? */
        *current = outcome->is_gone =
            options->archive.removes && info.promise == TSR_PROMISE_FILE && !task->names_output;
    else if (same_size &&
             (options->archive.update == UPDATE_BY_HASH || !task->existed)) /* another run may work on another file */
        looked = has_hash(task->input, info.original_hash, current, &outcome->error);
    else
        *current = same_size && is_same_time(original.st_mtim, made.st_mtim);
    if (looked == TSR_OK && !*current) looked = protect_only_copy(options, task, &info, current, outcome);
    if (looked == TSR_OK && !*current) looked = keep_encrypted(engine, options, task, outcome);
    if (looked != TSR_OK) return looked;
    if (*current) report_current(&info, &outcome->report);
    return TSR_OK;
}

bool is_restored(struct tsr_engine *engine, const struct task *task, enum update by, struct tsr_report *report)
{
    const struct tsr_data_source source = tsr_of(task);
    struct tsr_info info = TSR_INFO;
    struct tsr_reader *reader = NULL;
    struct tsr_error ignored;
    struct stat made, tsr;
    if (lstat(task->output, &made) != 0 || !S_ISREG(made.st_mode) || stat(task->input, &tsr) != 0) return false;
    if (!task->series && tsr_open(engine, &source, &reader, &ignored) != TSR_OK) return false;
    const bool is_known = task->series ? tsr_read_info(task->series, task->number, &info, &ignored) == TSR_OK
                                       : tsr_reader_content(reader) == TSR_CONTENT_TSR &&
                                             tsr_read_info(reader, 0, &info, &ignored) == TSR_OK;
    tsr_close(reader);
    const struct timespec origin = {(time_t)info.modified_s, (long)info.modified_ns};
    bool is_same = is_known && (info.promise != TSR_PROMISE_FILE || (uint64_t)made.st_size == info.original_bytes);
    const bool is_by_hash = by == UPDATE_BY_HASH || info.base_bytes > 0; /* what --base has written has the same time */
    if (is_same && is_by_hash && info.promise == TSR_PROMISE_FILE)
        is_same = has_hash(task->output, info.original_hash, &is_same, &ignored) == TSR_OK && is_same;
    else
        is_same = is_same && is_same_time(made.st_mtim, info.has_origin ? origin : tsr.st_mtim);
    if (!is_same || !report) return is_same;
    report_current(&info, report);
    report->bytes_in = info.file_bytes;
    report->bytes_out = (uint64_t)made.st_size;
    return true;
}
