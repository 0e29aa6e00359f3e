/* Arguments of the public functions; see the header. */
#include "arguments.h"
#include "files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/container/container.h"
#include "io/file_set.h"
#include "io/folder.h"
#include "io/part.h"
#include "kernels/pool/large_stack.h"
#include "transform/status.h"
#include "app/tessera_cli.h"

/* Of which image a target of a PSNR is sensible: as the command line has it, 1 to 200 dB. */
enum { LEAST_PSNR = 100, MOST_PSNR = 20000, MOST_SSIM = 9999 };

enum tsr_status tsr_check_pointer(const void *pointer, const char *name, struct tsr_error *error)
{
    return pointer ? TSR_OK : tsr_fail(error, TSR_ERROR_USAGE, "%s is NULL", name);
}

enum tsr_status tsr_check_sized(const void *structure, size_t size, const char *name, struct tsr_error *error)
{
    size_t said;
    TSR_TRY(tsr_check_pointer(structure, name, error));
    memcpy(&said, structure, sizeof said);
    if (said == size) return TSR_OK;
    return tsr_fail(error, TSR_ERROR_USAGE, "%s->size is %zu and not %zu: initialise the structure by its macro", name,
                    said, size);
}

enum tsr_status tsr_check_report(struct tsr_report **report, struct tsr_report *own, struct tsr_error *error)
{
    own->size = sizeof *own;
    if (!*report) *report = own;
    return tsr_check_sized(*report, sizeof **report, "report", error);
}

enum tsr_status tsr_check_export(enum tsr_export_syntax to, struct tsr_error *error)
{
    if ((int)to >= TSR_EXPORT_NATIVE && to <= TSR_EXPORT_HTJ2K) return TSR_OK;
    return tsr_fail(error, TSR_ERROR_USAGE, "export %d is not known", (int)to);
}

/* ---- Options of compression ------------------------------------------------------------------------------- */

/* How much may be lost: of each loss its field, as a number, and the least and the most that it may be. */
struct amount {
    const char *loss, *name;
    int64_t value, least, most; /* of 64 bits: none is above INT64_MAX */
};

static enum tsr_status check_amounts(const struct tsr_compress_options *options, struct tsr_error *error)
{
    const struct amount amounts[] = {
        [TSR_LOSSLESS] = {"TSR_LOSSLESS", "loss", 0, 0, 0},
        [TSR_LOSS_QP] = {"TSR_LOSS_QP", "qp_eighths", options->qp_eighths, tsr_lowest_qp(16), TSR_HIGHEST_QP},
        [TSR_LOSS_MAX_ERROR] = {"TSR_LOSS_MAX_ERROR", "max_error", options->max_error, 1, TSR_MAX_ERROR_LIMIT},
        [TSR_LOSS_PSNR] = {"TSR_LOSS_PSNR", "psnr_hundredths", options->psnr_hundredths, LEAST_PSNR, MOST_PSNR},
        [TSR_LOSS_BYTES] = {"TSR_LOSS_BYTES", "byte_limit", (int64_t)options->byte_limit, 1, INT64_MAX},
        [TSR_LOSS_RATIO] = {"TSR_LOSS_RATIO", "ratio_thousandths", (int64_t)options->ratio_thousandths, 1, INT64_MAX},
        [TSR_LOSS_QUALITY] = {"TSR_LOSS_QUALITY", "quality", (int64_t)options->quality, TSR_QUALITY_DIAGNOSTIC,
                              TSR_QUALITY_WEB},
        [TSR_LOSS_SSIM] = {"TSR_LOSS_SSIM", "ssim_ten_thousandths", options->ssim_ten_thousandths, 1, MOST_SSIM},
    };
    if ((int)options->loss < TSR_LOSSLESS || options->loss > TSR_LOSS_SSIM)
        return tsr_fail(error, TSR_ERROR_USAGE, "loss %d is not known", (int)options->loss);
    const struct amount *const asked = &amounts[options->loss];
    if (asked->value < asked->least || asked->value > asked->most)
        return tsr_fail(error, TSR_ERROR_USAGE, "%s is %lld: with loss %s it must be %lld to %lld", asked->name,
                        (long long)asked->value, asked->loss, (long long)asked->least, (long long)asked->most);
    for (size_t i = 0; i < sizeof amounts / sizeof amounts[0]; i++)
        if (i != (size_t)options->loss && amounts[i].value != 0)
            return tsr_fail(error, TSR_ERROR_USAGE, "%s is set, and loss is %s: set %s to 0, or loss to %s",
                            amounts[i].name, asked->loss, amounts[i].name, amounts[i].loss);
    return TSR_OK;
}

static enum tsr_status want_loss(const struct tsr_compress_options *options, struct tsr_wanted *wanted,
                                 struct tsr_error *error)
{
    TSR_TRY(check_amounts(options, error));
    if (options->loss == TSR_LOSS_MAX_ERROR && options->path == TSR_PATH_TRANSFORM)
        return tsr_fail(error, TSR_ERROR_USAGE, "a largest error needs TSR_PATH_PREDICT");
    wanted->coding.lossy = options->loss != TSR_LOSSLESS;
    if (wanted->coding.lossy && options->loss != TSR_LOSS_MAX_ERROR) wanted->coding.path = TSR_PATH_TRANSFORM;
    if ((int)options->tune < TSR_TUNE_BY_LOSS || options->tune > TSR_TUNE_SSIM)
        return tsr_fail(error, TSR_ERROR_USAGE, "tune %d is not known", (int)options->tune);
    if (options->tune != TSR_TUNE_BY_LOSS && (!wanted->coding.lossy || options->loss == TSR_LOSS_MAX_ERROR))
        return tsr_fail(error, TSR_ERROR_USAGE, "tune is set: it needs a loss by QP, PSNR, SSIM, quality or size");
    const bool sees = options->quality == TSR_QUALITY_WEB || options->loss == TSR_LOSS_SSIM;
    wanted->coding.tune = (uint8_t)(options->tune != TSR_TUNE_BY_LOSS ? options->tune
                                    : sees                            ? TSR_TUNE_SSIM
                                                                      : TSR_TUNE_PSNR);
    wanted->either_tune = options->tune == TSR_TUNE_BY_LOSS && options->quality == TSR_QUALITY_WEB;
    wanted->coding.qp_eighths = options->qp_eighths;
    wanted->coding.max_error = options->max_error;
    wanted->target = options->loss == TSR_LOSS_PSNR      ? TSR_TARGET_PSNR
                     : options->loss == TSR_LOSS_BYTES   ? TSR_TARGET_BYTES
                     : options->loss == TSR_LOSS_RATIO   ? TSR_TARGET_RATIO
                     : options->loss == TSR_LOSS_QUALITY ? TSR_TARGET_QUALITY
                     : options->loss == TSR_LOSS_SSIM    ? TSR_TARGET_SSIM
                                                         : TSR_TARGET_NONE;
    wanted->target_value = options->psnr_hundredths + options->byte_limit + options->ratio_thousandths +
                           options->ssim_ten_thousandths +
                           (uint64_t)options->quality; /* one of them is not 0, at most */
    return TSR_OK;
}

/* name: of the option. */
static enum tsr_status check_samples(const struct tsr_roi *roi, const char *name, struct tsr_error *error)
{
    TSR_TRY(tsr_check_sized(roi, sizeof *roi, name, error));
    if (roi->rectangle_count == 0 && !roi->mask && !roi->body)
        return tsr_fail(error, TSR_ERROR_USAGE, "%s has no rectangle, no mask and no body", name);
    if (roi->rectangle_count > 0) TSR_TRY(tsr_check_pointer(roi->rectangles, "the rectangles of a region", error));
    for (uint32_t i = 0; i < roi->rectangle_count; i++)
        if (roi->rectangles[i].columns < 1 || roi->rectangles[i].rows < 1)
            return tsr_fail(error, TSR_ERROR_USAGE, "rectangle %u of %s has no samples", i, name);
    return TSR_OK;
}

static enum tsr_status check_roi(const struct tsr_compress_options *options, struct tsr_error *error)
{
    const struct tsr_roi *const roi = options->roi;
    if (options->loss == TSR_LOSSLESS)
        return tsr_fail(error, TSR_ERROR_USAGE, "roi is set: it needs a loss, which all but the region has");
    if (options->loss == TSR_LOSS_BYTES || options->loss == TSR_LOSS_RATIO)
        return tsr_fail(error, TSR_ERROR_USAGE, "roi is set, and a size of the whole: give another loss");
    if (options->lossless_rest)
        return tsr_fail(error, TSR_ERROR_USAGE, "roi and lossless_rest are set, by which all comes back as it was");
    return check_samples(roi, "roi", error);
}

enum tsr_status tsr_want(const struct tsr_compress_options *options, struct tsr_wanted *wanted, struct tsr_error *error)
{
    static const struct tsr_compress_options usual = TSR_COMPRESS_OPTIONS;
    memset(wanted, 0, sizeof *wanted);
    if (!options) options = &usual;
    TSR_TRY(tsr_check_sized(options, sizeof *options, "options", error));
    if ((int)options->verify < TSR_VERIFY_CPU || options->verify > TSR_VERIFY_ENGINE)
        return tsr_fail(error, TSR_ERROR_USAGE, "verify %d is not known", (int)options->verify);
    wanted->coding.path = options->path;
    wanted->coding.coder = options->coder;
    wanted->coding.effort = options->effort;
    struct tsr_coding resolved = wanted->coding;
    TSR_TRY(tsr_resolve_coding(&resolved, error));
    TSR_TRY(want_loss(options, wanted, error));
    wanted->verify = options->verify;
    wanted->allow_lossy = options->allow_lossy;
    wanted->samples_only = options->samples_only;
    if (options->range != 0 && (options->range < TSR_LEAST_RANGE || options->range > TSR_MOST_RANGE))
        return tsr_fail(error, TSR_ERROR_USAGE, "range %u is outside 255 to 16777215", options->range);
    wanted->range = options->range;
    if (options->least_db > MOST_PSNR)
        return tsr_fail(error, TSR_ERROR_USAGE, "least_db %u is above 20000", options->least_db);
    wanted->least_db = options->least_db;
    wanted->within_ratio = options->within_ratio;
    wanted->lossless_rest = options->lossless_rest;
    if (options->lossless_rest && options->loss == TSR_LOSSLESS)
        return tsr_fail(error, TSR_ERROR_USAGE, "lossless_rest is set: it needs a loss, which the base has");
    if (options->lossless_rest && options->samples_only)
        return tsr_fail(error, TSR_ERROR_USAGE, "lossless_rest and samples_only are set: the rest is of a whole file");
    wanted->independent = options->independent;
    wanted->roi = options->roi;
    wanted->first = options->first;
    wanted->tile_side = options->first && options->tile_side == 0 ? TSR_TILE_SIDE_LIMIT : options->tile_side;
    if (options->tile_side % TSR_TILE_SIDE_STEP != 0 || options->tile_side > TSR_TILE_SIDE_LIMIT)
        return tsr_fail(error, TSR_ERROR_USAGE, "tile_side %u is not 64, 128, 192 or 256", options->tile_side);
    if (options->first) TSR_TRY(check_samples(options->first, "first", error));
    return options->roi ? check_roi(options, error) : TSR_OK;
}

enum tsr_status tsr_check_options(const struct tsr_compress_options *options, struct tsr_error *error)
{
    struct tsr_wanted wanted;
    TSR_TRY(tsr_check_pointer(options, "options", error));
    return tsr_want(options, &wanted, error);
}

/* ---- Sources ---------------------------------------------------------------------------------------------- */

static enum tsr_status check_kept(const struct tsr_data_source *source, struct tsr_error *error)
{
    if (source->kept_count > TSR_KEPT_VALUES_LIMIT)
        return tsr_fail(error, TSR_ERROR_USAGE, "source->kept_count %u is above 4", source->kept_count);
    for (uint32_t i = 0; i < source->kept_count; i++)
        if (source->kept[i].lowest > source->kept[i].highest)
            return tsr_fail(error, TSR_ERROR_USAGE,
                            "source->kept[%u] is %d to %d: its lowest value is above its highest", i,
                            source->kept[i].lowest, source->kept[i].highest);
    return TSR_OK;
}

enum tsr_status tsr_check_source(const struct tsr_data_source *source, struct tsr_error *error)
{
    TSR_TRY(tsr_check_sized(source, sizeof *source, "source", error));
    if (source->watch) TSR_TRY(tsr_check_sized(source->watch, sizeof *source->watch, "source->watch", error));
    TSR_TRY(check_kept(source, error));
    switch (source->medium) {
    case TSR_MEDIUM_PATH:
        return tsr_check_pointer(source->path, "source->path", error);
    case TSR_MEDIUM_MEMORY:
        if (source->byte_count > SIZE_MAX)
            return tsr_fail(error, TSR_ERROR_USAGE, "source->byte_count is more than memory has");
        return source->byte_count > 0 ? tsr_check_pointer(source->memory, "source->memory", error) : TSR_OK;
    case TSR_MEDIUM_DESCRIPTOR:
        if (source->descriptor < 0)
            return tsr_fail(error, TSR_ERROR_USAGE, "source->descriptor is %d", source->descriptor);
        return TSR_OK;
    case TSR_MEDIUM_CALLS:
        if (!source->read) return tsr_fail(error, TSR_ERROR_USAGE, "source->read is NULL");
        if (source->byte_count > INT64_MAX)
            return tsr_fail(error, TSR_ERROR_USAGE, "source->byte_count is more than a file can have");
        return TSR_OK;
    }
    return tsr_fail(error, TSR_ERROR_USAGE, "source->medium %d is not known", (int)source->medium);
}

enum tsr_status tsr_check_sources(const struct tsr_data_source *const *sources, uint32_t count, struct tsr_error *error)
{
    TSR_TRY(tsr_check_pointer(sources, "sources", error));
    for (uint32_t k = 0; k < count; k++) TSR_TRY(tsr_check_source(sources[k], error));
    return TSR_OK;
}

const char *tsr_source_name(const struct tsr_data_source *source)
{
    return source->name                              ? source->name
           : source->medium == TSR_MEDIUM_PATH       ? source->path
           : source->medium == TSR_MEDIUM_MEMORY     ? "the source in memory"
           : source->medium == TSR_MEDIUM_DESCRIPTOR ? "the source's descriptor"
                                                     : "the source";
}

struct reading {
    const struct tsr_data_source *source;
    uint64_t offset;
    void *bytes;
    size_t count;
    int64_t got;
};

static void ask_to_read(void *context)
{
    struct reading *const r = context;
    r->got = r->source->read(r->source->context, r->offset, r->bytes, r->count);
}

static int64_t read_calls(void *source, uint64_t offset, void *bytes, size_t count)
{
    struct reading r = {source, offset, bytes, count, -1};
    tsr_call_back(ask_to_read, &r);
    return r.got;
}

static enum tsr_status open_medium(const struct tsr_data_source *source, struct tsr_input **input,
                                   struct tsr_error *error)
{
    const char *const name = tsr_source_name(source);
    const struct tsr_input_calls calls = {read_calls, (void *)(uintptr_t)source, source->byte_count};
    *input = NULL;
    switch (source->medium) {
    case TSR_MEDIUM_PATH:
        return tsr_input_open(source->path, input, error);
    case TSR_MEDIUM_DESCRIPTOR: {
        const int file = fcntl(source->descriptor, F_DUPFD_CLOEXEC, 0);
        if (file < 0) return tsr_fail_call(error, TSR_ERROR_READ, "cannot read", name);
        return tsr_input_from_descriptor(file, name, input, error);
    }
    case TSR_MEDIUM_MEMORY:
        *input = tsr_input_from_memory(source->memory, (size_t)source->byte_count, name);
        break;
    case TSR_MEDIUM_CALLS:
        *input = tsr_input_from_calls(&calls, name);
        break;
    }
    return *input ? TSR_OK : tsr_fail(error, TSR_ERROR_LIMIT, "no memory to open %s", name);
}

/* A question or a report, on the thread that has called the library where that is known. */
struct asking {
    const struct tsr_watch *watch;
    enum tsr_pass pass;
    uint64_t done, total;
    bool goes_on;
};

static void ask_whether_cancelled(void *context)
{
    struct asking *const a = context;
    a->goes_on = !a->watch->is_cancelled || !a->watch->is_cancelled(a->watch->context);
}

static void ask_watch(void *context)
{
    struct asking *const a = context;
    if (a->watch->progress) a->watch->progress(a->watch->context, a->pass, a->done, a->total);
    ask_whether_cancelled(context);
}

static bool asks(const struct tsr_watch *watch, enum tsr_pass pass, uint64_t done, uint64_t total)
{
    struct asking a = {watch, pass, done, total, false};
    tsr_call_back(ask_watch, &a);
    return a.goes_on;
}

/* Makes the input of a .tsr that of its base. */
static enum tsr_status narrow_to_base(struct tsr_input *input, struct tsr_error *error)
{
    struct tsr_container_reader *reader;
    TSR_TRY(tsr_container_open(input, &reader, error));
    const struct tsr_stretch_of_file base = tsr_container_base(reader);
    const enum tsr_status status =
        base.size > 0
            ? tsr_base_of(reader, NULL, error)
            : tsr_fail(error, TSR_ERROR_USAGE, "%s has no base (lossless_rest was not set)", tsr_input_name(input));
    tsr_container_close(reader);
    if (status == TSR_OK) tsr_input_narrow(input, base.offset, base.size);
    return status;
}

static enum tsr_status open_source(const struct tsr_data_source *source, bool salvages, struct tsr_input **input,
                                   struct tsr_error *error)
{
    TSR_TRY(open_medium(source, input, error));
    if (source->key) TSR_TRY(tsr_input_unseal(input, source->key, salvages, error));
    tsr_input_set_watch(*input, source->watch, TSR_PASS_READ, asks);
    return source->base ? narrow_to_base(*input, error) : TSR_OK;
}

enum tsr_status tsr_open_source(const struct tsr_data_source *source, struct tsr_input **input, struct tsr_error *error)
{
    return open_source(source, false, input, error);
}

enum tsr_status tsr_open_damaged_source(const struct tsr_data_source *source, struct tsr_input **input,
                                        struct tsr_error *error)
{
    return open_source(source, true, input, error);
}

static bool asks_only(const struct tsr_watch *watch, enum tsr_pass pass, uint64_t done, uint64_t total)
{
    struct asking a = {watch, pass, done, total, false};
    tsr_call_back(ask_whether_cancelled, &a);
    return a.goes_on;
}

void tsr_ask_without_progress(struct tsr_input *input, const struct tsr_data_source *source)
{
    tsr_input_set_watch(input, source->watch, TSR_PASS_READ, asks_only);
}

enum tsr_status tsr_hash(const struct tsr_data_source *source, uint8_t hash[16], struct tsr_error *error)
{
    struct tsr_input *input = NULL;
    struct tsr_hash128 found;
    TSR_TRY(tsr_check_source(source, error));
    TSR_TRY(tsr_check_pointer(hash, "hash", error));
    struct tsr_data_source stored = *source; /* all bytes, as they are */
    stored.key = NULL;
    TSR_TRY(tsr_open_source(&stored, &input, error));
    enum tsr_status status = tsr_input_end(input, tsr_input_hash(input, &found, error), error);
    if (status == TSR_OK) status = tsr_input_ask(input, error);
    tsr_input_close(input);
    if (status == TSR_OK) memcpy(hash, found.bytes, sizeof found.bytes);
    return status;
}

uint64_t tsr_source_bytes(const struct tsr_data_source *source)
{
    struct stat status;
    switch (source->medium) {
    case TSR_MEDIUM_PATH:
        return stat(source->path, &status) == 0 ? (uint64_t)status.st_size : 0;
    case TSR_MEDIUM_DESCRIPTOR:
        return fstat(source->descriptor, &status) == 0 ? (uint64_t)status.st_size : 0;
    default:
        return source->byte_count;
    }
}

/* ---- Sinks ------------------------------------------------------------------------------------------------ */

enum tsr_status tsr_check_sink(const struct tsr_data_sink *sink, struct tsr_error *error)
{
    TSR_TRY(tsr_check_sized(sink, sizeof *sink, "sink", error));
    switch (sink->medium) {
    case TSR_MEDIUM_PATH:
        TSR_TRY(tsr_check_pointer(sink->path, "sink->path", error));
        if (sink->is_bounded && sink->root > strlen(sink->path))
            return tsr_fail(error, TSR_ERROR_USAGE, "sink->root is %zu, more than the path is long", sink->root);
        return TSR_OK;
    case TSR_MEDIUM_MEMORY:
        TSR_TRY(tsr_check_pointer(sink->buffer, "sink->buffer", error));
        *sink->buffer = (struct tsr_buffer){NULL, 0};
        return TSR_OK;
    case TSR_MEDIUM_DESCRIPTOR:
        if (sink->descriptor < 0) return tsr_fail(error, TSR_ERROR_USAGE, "sink->descriptor is %d", sink->descriptor);
        return TSR_OK;
    case TSR_MEDIUM_CALLS:
        return sink->write ? TSR_OK : tsr_fail(error, TSR_ERROR_USAGE, "sink->write is NULL");
    }
    return tsr_fail(error, TSR_ERROR_USAGE, "sink->medium %d is not known", (int)sink->medium);
}

static bool has_state(bool is_descriptor, int descriptor, const char *path, struct tsr_file_state *state)
{
    struct stat status;
    if ((is_descriptor ? fstat(descriptor, &status) : stat(path, &status)) != 0 || !S_ISREG(status.st_mode))
        return false;
    *state = tsr_state_of(&status);
    return true;
}

enum tsr_status tsr_check_apart(const struct tsr_data_source *source, const struct tsr_data_sink *sink,
                                struct tsr_error *error)
{
    const bool is_descriptor = source->medium == TSR_MEDIUM_DESCRIPTOR;
    struct tsr_file_state in, out;
    if (sink->medium != TSR_MEDIUM_PATH || (source->medium != TSR_MEDIUM_PATH && !is_descriptor)) return TSR_OK;
    if (!has_state(false, -1, sink->path, &out)) return TSR_OK; /* as it is most often */
    if (!has_state(is_descriptor, source->descriptor, source->path, &in)) return TSR_OK;
    if (!tsr_is_one_file(&in, is_descriptor ? "" : source->path, &out, sink->path)) return TSR_OK;
    return tsr_fail(error, TSR_ERROR_SAME_FILE, "the output %s is the input", sink->path);
}

enum tsr_status tsr_open_sink(const struct tsr_data_sink *sink, bool is_private, struct tsr_output **output,
                              struct tsr_error *error)
{
    const struct tsr_output_options options = {sink->overwrite, sink->is_bounded, sink->root, sink->written};
    if (sink->medium == TSR_MEDIUM_PATH) return tsr_output_create(sink->path, &options, is_private, output, error);
    if (sink->medium != TSR_MEDIUM_MEMORY && sink->temporary)
        return tsr_output_to_temporary(sink->temporary, output, error);
    *output = tsr_output_to_memory();
    return *output ? TSR_OK : tsr_fail(error, TSR_ERROR_LIMIT, "no memory to write");
}

static enum tsr_status write_descriptor(int descriptor, const uint8_t *bytes, uint64_t size, struct tsr_error *error)
{
    while (size > 0) {
        const size_t most = size < (1 << 30) ? (size_t)size : 1 << 30;
        const ssize_t written = write(descriptor, bytes, most);
        if (written < 0 && errno == EINTR) continue;
        if (written < 0) return tsr_fail_call(error, TSR_ERROR_WRITE, "cannot write", "the sink's descriptor");
        bytes += written;
        size -= (uint64_t)written;
    }
    return TSR_OK;
}

struct writing {
    const struct tsr_data_sink *sink;
    const void *bytes;
    size_t count;
    int64_t taken;
};

static void ask_to_write(void *context)
{
    struct writing *const w = context;
    w->taken = w->sink->write(w->sink->context, w->bytes, w->count);
}

static enum tsr_status write_calls(const struct tsr_data_sink *sink, const uint8_t *bytes, uint64_t size,
                                   struct tsr_error *error)
{
    while (size > 0) {
        const size_t most = size < SIZE_MAX ? (size_t)size : SIZE_MAX;
        struct writing w = {sink, bytes, most, -1};
        tsr_call_back(ask_to_write, &w);
        const int64_t taken = w.taken;
        if (taken <= 0 || (uint64_t)taken > most)
            return tsr_fail(error, TSR_ERROR_WRITE, "cannot write to the sink: its function returns %lld of %zu bytes",
                            (long long)taken, most);
        bytes += taken;
        size -= (uint64_t)taken;
    }
    return TSR_OK;
}

static enum tsr_status write_some(const struct tsr_data_sink *sink, const uint8_t *bytes, uint64_t size,
                                  struct tsr_error *error)
{
    return sink->medium == TSR_MEDIUM_DESCRIPTOR ? write_descriptor(sink->descriptor, bytes, size, error)
                                                 : write_calls(sink, bytes, size, error);
}

/* Bytes that are in memory at once, those of a file through a buffer. */
static enum tsr_status hand_over(const struct tsr_data_sink *sink, struct tsr_output *output, struct tsr_error *error)
{
    enum { CHUNK = 1 << 18 };
    const uint64_t size = tsr_output_size(output);
    if (tsr_output_is_memory(output)) return write_some(sink, tsr_output_bytes(output), size, error);
    uint8_t *const chunk = malloc(CHUNK);
    enum tsr_status status = chunk ? TSR_OK : tsr_fail(error, TSR_ERROR_LIMIT, "no memory to write");
    for (uint64_t at = 0; status == TSR_OK && at < size;) {
        const size_t now = size - at < CHUNK ? (size_t)(size - at) : CHUNK;
        status = tsr_output_read(output, at, chunk, now, error);
        if (status == TSR_OK) status = write_some(sink, chunk, now, error);
        at += now;
    }
    free(chunk);
    return status;
}

enum tsr_status tsr_deliver(const struct tsr_data_sink *sink, struct tsr_output *output, struct tsr_error *error)
{
    switch (sink->medium) {
    case TSR_MEDIUM_PATH:
        TSR_TRY(tsr_output_publish(output, error));
        return sink->syncs_later ? TSR_OK : tsr_sync_folders(error);
    case TSR_MEDIUM_MEMORY:
        sink->buffer->count = (size_t)tsr_output_size(output);
        sink->buffer->bytes = tsr_output_take_bytes(output);
        return TSR_OK;
    case TSR_MEDIUM_DESCRIPTOR:
    case TSR_MEDIUM_CALLS:
        return hand_over(sink, output, error);
    }
    return TSR_ERROR_INTERNAL;
}

void tsr_buffer_free(struct tsr_buffer *buffer)
{
    if (!buffer) return;
    free(buffer->bytes);
    *buffer = (struct tsr_buffer){NULL, 0};
}

enum tsr_status tsr_make_folder(const struct tsr_data_sink *sink, struct tsr_error *error)
{
    struct tsr_spot spot;
    TSR_TRY(tsr_check_sink(sink, error));
    if (sink->medium != TSR_MEDIUM_PATH) return tsr_fail(error, TSR_ERROR_USAGE, "a folder has a path");
    const size_t room = strlen(sink->path) + sizeof "/.";
    char *const inside = malloc(room);
    if (!inside) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for a path");
    snprintf(inside, room, "%s/.", sink->path);
    const enum tsr_status status = tsr_spot_open(inside, sink->is_bounded ? sink->root : SIZE_MAX, &spot, error);
    tsr_spot_close(&spot);
    free(inside);
    return status;
}

void tsr_end_process(int status)
{
    tsr_parts_end_process(status);
}

const char *tsr_version(void)
{
    return TSR_VERSION_STRING;
}

unsigned tsr_format_version(void)
{
    return TSR_FORMAT_VERSION;
}
