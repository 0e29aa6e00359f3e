/* Files: compress with proof, decompress, test, info. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "files.h"
#include "measure.h"
#include "../kernels/thread_pool.h"

double tsr_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

void tsr_end_process(int status)
{
    tsr_output_end_process(status);
}

void tsr_clear_report(struct tsr_file_report *report)
{
    memset(report, 0, sizeof *report);
    report->psnr_db = report->encode_s = report->verify_s = -1;
    report->max_error = -1;
}

/* What a header says, for a report. */
static void report_header(const struct tsr_header *header, struct tsr_file_report *report)
{
    const bool verbatim = header->restore == TSR_RESTORE_VERBATIM;
    report->kind = header->kind;
    report->verbatim = verbatim;
    report->lossless = verbatim || !header->coding.lossy;
    report->identical = header->exact;
    if (verbatim) {
        snprintf(report->reason, sizeof report->reason, "%s", header->reason);
        return;
    }
    const struct tsr_image *image = &header->image;
    report->image = *image;
    report->coding = header->coding;
    report->samples = (uint64_t)image->columns * image->rows * image->components * image->frames;
    const uint64_t bits = tsr_frame_bits(image) * image->frames;
    report->pixel_bytes = bits / 8 + (bits % 8 != 0);
}

static void report_loss(const struct tsr_header *header, const struct tsr_proof *proof, struct tsr_file_report *report)
{
    report->psnr_db = -1;
    report->max_error = -1;
    if (report->lossless) return;
    report->psnr_db = tsr_psnr_db(&header->image, report->samples, proof->squared_error);
    report->max_error = proof->max_error;
}

/* A PSNR that is more than a little over its target is said: where samples use little of their range, the coarsest step
 * may lose all that there is. */
static void report_overshoot(const struct tsr_compress_options *options, struct tsr_file_report *report)
{
    if (options->target != TSR_TARGET_PSNR || report->lossless || report->reason[0] || report->max_error == 0) return;
    if (report->psnr_db > (double)options->target_value / 100 + 0.1)
        snprintf(report->reason, sizeof report->reason,
                 "more than 0.1 dB over its PSNR: no coding that was tried is nearer");
}

/* The output to the disk; others work while it gets there. But where the last one was there at once, in a file system
 * in memory, this one will be, too: its thread's place, and the wait for another, cost more than that. */
static enum tsr_status finish(struct tsr_engine *engine, struct tsr_output *output, struct tsr_file_report *report,
                              struct tsr_error *error)
{
    static const double at_once_s = 500e-6;
    static int takes_time = 1;
    const double start = tsr_seconds();
    enum tsr_status status = tsr_output_flush(output, error);
    const bool rests = __atomic_load_n(&takes_time, __ATOMIC_RELAXED);
    const double flushed = tsr_seconds();
    if (rests) tsr_pool_rest(engine->pool, 0);
    if (status == TSR_OK) status = tsr_output_finish(output, error);
    const double finished = tsr_seconds();
    if (rests) tsr_pool_resume(engine->pool);
    __atomic_store_n(&takes_time, finished - flushed > at_once_s, __ATOMIC_RELAXED);
    report->write_s += finished - start;
    report->wait_s += tsr_seconds() - finished;
    return status;
}

static enum tsr_status publish(struct tsr_output *output, struct tsr_file_report *report, struct tsr_error *error)
{
    const double start = tsr_seconds();
    const enum tsr_status status = tsr_output_publish(output, error);
    report->write_s += tsr_seconds() - start;
    return status;
}

/* ---- Compress -------------------------------------------------------------------------------------------- */

/* Without loss: by path P, whatever a lossy coding would have taken. */
static enum tsr_status drop_loss(const struct tsr_compress_options *options, struct tsr_coding *coding,
                                 struct tsr_error *error)
{
    memset(coding, 0, sizeof *coding);
    coding->coder = options->coding.coder;
    coding->level = options->coding.level;
    return tsr_resolve_coding(coding, error);
}

/* The coding that this image gets: what was asked for, or lossless where loss makes no sense. */
static enum tsr_status settle_coding(struct tsr_source *source, const struct tsr_compress_options *options,
                                     struct tsr_coding *coding, struct tsr_file_report *report, struct tsr_error *error)
{
    const struct tsr_image *image = &source->header.image;
    *coding = options->coding;
    TSR_TRY(tsr_resolve_coding(coding, error));
    if (options->target != TSR_TARGET_NONE && (!coding->lossy || coding->path != TSR_PATH_TRANSFORM))
        return tsr_fail(error, TSR_ERROR_USAGE, "a target of PSNR or size is the lossy transform path's");
    if (source->header.restore == TSR_RESTORE_VERBATIM) return TSR_OK;
    if (source->header.restore == TSR_RESTORE_SPLICE && !source->header.exact)
        snprintf(report->reason, sizeof report->reason, "recoded: the same samples come back in a native file");
    if (!coding->lossy) return TSR_OK;
    const char *exact = image->exact_only                                       ? "palette indices"
                        : image->bits_allocated == 1 || image->bits_stored == 1 ? "samples of one bit"
                        : image->bits_allocated == 32                           ? "samples of 32 bits"
                                                                                : source->only_lossless;
    if (exact) {
        snprintf(report->reason, sizeof report->reason, "coded without loss: %s are never coded with loss", exact);
        return drop_loss(options, coding, error);
    }
    if (source->never_lossy && !options->allow_lossy)
        return tsr_fail(error, TSR_ERROR_USAGE, "%s is not coded with loss: %s (--allow-lossy does it)",
                        tsr_input_name(source->input), source->lossy_objection);
    const int32_t lowest = tsr_lowest_qp(image->bits_stored);
    if (coding->path == TSR_PATH_TRANSFORM && coding->qp_eighths < lowest)
        coding->qp_eighths = lowest; /* finer steps than 0.63 give nothing */
    return options->target == TSR_TARGET_NONE ? tsr_check_coding(image, coding, error) : TSR_OK;
}

/* Opens the source and gives it its coding. */
static enum tsr_status open_coded(struct tsr_engine *engine, struct tsr_input *input,
                                  const struct tsr_source_options *source_options,
                                  const struct tsr_compress_options *options, struct tsr_source **source,
                                  struct tsr_file_report *report, struct tsr_error *error)
{
    struct tsr_coding coding;
    TSR_TRY(tsr_source_open(input, source_options, source, error));
    TSR_TRY(settle_coding(*source, options, &coding, report, error));
    if ((*source)->header.restore == TSR_RESTORE_VERBATIM) return TSR_OK;
    if (coding.lossy && options->target != TSR_TARGET_NONE) {
        TSR_TRY(tsr_meet_target(engine, *source, options, &coding, &report->tries, error));
        tsr_source_close(*source);
        TSR_TRY(tsr_source_open(input, source_options, source, error));
        if (!coding.lossy)
            snprintf(report->reason, sizeof report->reason, "coded without loss: %s",
                     options->target == TSR_TARGET_PSNR ? "no step has that PSNR" : "that is small enough");
    }
    const struct tsr_header pristine = (*source)->header;
    tsr_set_coding(*source, &pristine, &coding);
    return TSR_OK;
}

/* A size is a promise of the whole file, also of one that is stored or coded without loss. */
static enum tsr_status check_size(const struct tsr_compress_options *options, struct tsr_input *input,
                                  const struct tsr_output *output, struct tsr_error *error)
{
    const uint64_t limit = tsr_size_limit(options, tsr_input_size(input)), size = tsr_output_size(output);
    if (size <= limit) return TSR_OK;
    return tsr_fail(error, TSR_ERROR_USAGE, "%s is not coded with loss, and takes %llu bytes, not %llu",
                    tsr_input_name(input), (unsigned long long)size, (unsigned long long)limit);
}

enum tsr_status tsr_write_container(struct tsr_engine *engine, struct tsr_input *input, struct tsr_output *output,
                                    const struct tsr_compress_options *options, struct tsr_container_writer **member,
                                    struct tsr_proof *proof, struct tsr_header *header, struct tsr_file_report *report,
                                    struct tsr_error *error)
{
    struct tsr_source_options source_options = {false, NULL, options->recode};
    const struct tsr_output_mark start = tsr_output_mark(output);
    char reason[sizeof report->reason];
    if (member) *member = NULL;
    for (;;) {
        struct tsr_source *source = NULL;
        struct tsr_encoded encoded = {0};
        const double opening = tsr_seconds();
        encoded.decoder = options->verify == TSR_VERIFY_ENGINE ? engine : engine->cpu;
        enum tsr_status status = open_coded(engine, input, &source_options, options, &source, report, error);
        report->read_s += tsr_seconds() - opening;
        if (status == TSR_OK && member) {
            status = tsr_container_begin_member(output, &source->header, member, error);
            if (status == TSR_OK) status = tsr_encode_contents(engine, source, *member, proof, &encoded, error);
        } else if (status == TSR_OK) {
            status = tsr_encode(engine, source, output, proof, &encoded, error);
            if (status == TSR_OK) status = check_size(options, input, output, error);
        }
        if (source) *header = source->header;
        report->payload_bytes = encoded.payload_bytes;
        report->engine = encoded.engine;
        report->read_s += encoded.read_s;
        report->write_s += encoded.write_s;
        snprintf(report->fallback, sizeof report->fallback, "%s", encoded.fallback ? encoded.fallback : "");
        tsr_source_close(source);
        if (status != TSR_ERROR_CORRUPT || source_options.verbatim) return status;
        snprintf(reason, sizeof reason, "%.*s", (int)sizeof reason - 1, error->text);
        source_options.verbatim = true;
        source_options.reason = reason;
        if (member) {
            tsr_container_writer_free(*member);
            *member = NULL;
        }
        TSR_TRY(tsr_output_return(output, &start, error));
    }
}

void tsr_report_written(const struct tsr_compress_options *options, const struct tsr_header *header,
                        const struct tsr_proof *proof, struct tsr_file_report *report)
{
    report_header(header, report);
    report_loss(header, proof, report);
    report_overshoot(options, report);
    report->bytes_in = proof->original_size;
}

bool tsr_same_image(const struct tsr_image *a, const struct tsr_image *b)
{
    return tsr_alike_images(a, b) && a->frames == b->frames;
}

/* Two sources that are the same in all that a restored file must have: blobs, image, samples. */
static enum tsr_status compare_sources(struct tsr_source *a, struct tsr_source *b, struct tsr_error *error)
{
    const struct tsr_image *image = &a->header.image;
    bool same = tsr_same_image(image, &b->header.image) && a->header.parameter_count == b->header.parameter_count &&
                memcmp(a->header.parameters, b->header.parameters, sizeof a->header.parameters) == 0;
    const size_t raster_bytes = same ? tsr_raster_bytes(image) : 0;
    const size_t room = raster_bytes > TSR_BLOB_CHUNK ? raster_bytes : TSR_BLOB_CHUNK;
    uint8_t *one = malloc(room), *other = malloc(room);
    enum tsr_status status = one && other ? TSR_OK : tsr_fail(error, TSR_ERROR_LIMIT, "no memory to verify");
    for (int blob = 0; blob < TSR_BLOB_COUNT && status == TSR_OK && same; blob++) {
        same = a->blob_size[blob] == b->blob_size[blob];
        for (uint64_t at = 0; same && status == TSR_OK && at < a->blob_size[blob]; at += room) {
            const uint64_t left = a->blob_size[blob] - at;
            const size_t now = left < room ? (size_t)left : room;
            status = a->ops->read_blob(a, (enum tsr_blob)blob, at, one, now, error);
            if (status == TSR_OK) status = b->ops->read_blob(b, (enum tsr_blob)blob, at, other, now, error);
            same = memcmp(one, other, now) == 0;
        }
    }
    for (uint32_t f = 0; f < image->frames && status == TSR_OK && same; f++) {
        status = a->ops->read_frame(a, f, one, error);
        if (status == TSR_OK) status = b->ops->read_frame(b, f, other, error);
        same = memcmp(one, other, raster_bytes) == 0;
    }
    free(one);
    free(other);
    if (status != TSR_OK) return status;
    return same ? TSR_OK : tsr_fail(error, TSR_ERROR_VERIFY, "the restored image is not the one that was read");
}

/* A file that comes back with new bytes around the same pixels: what was restored to memory must hold what a second
 * reading of the original holds. */
static enum tsr_status verify_pixels(const char *original, const struct tsr_output *restored, struct tsr_error *error)
{
    const struct tsr_source_options options = {false, NULL, true};
    struct tsr_input *input = NULL;
    struct tsr_source *a = NULL, *b = NULL;
    struct tsr_input *memory =
        tsr_input_from_memory(tsr_output_bytes(restored), (size_t)tsr_output_size(restored), "the restored file");
    enum tsr_status status =
        memory ? tsr_input_open(original, &input, error) : tsr_fail(error, TSR_ERROR_LIMIT, "no memory to verify");
    if (status == TSR_OK) status = tsr_source_open(input, &options, &a, error);
    if (status == TSR_OK) status = tsr_source_open(memory, &options, &b, error);
    if (status == TSR_OK) status = compare_sources(a, b, error);
    tsr_source_close(a);
    tsr_source_close(b);
    tsr_input_close(input);
    tsr_input_close(memory);
    return status;
}

/* A lossy PNG must read as the samples that were decoded. */
static enum tsr_status verify_lossy_png(const struct tsr_output *restored, const struct tsr_hash128 *samples,
                                        struct tsr_error *error)
{
    const struct tsr_source_options options = {false, NULL, false};
    struct tsr_source *source = NULL;
    struct tsr_hasher frames;
    tsr_hasher_init(&frames);
    struct tsr_input *memory =
        tsr_input_from_memory(tsr_output_bytes(restored), (size_t)tsr_output_size(restored), "the restored file");
    enum tsr_status status = memory ? tsr_source_open(memory, &options, &source, error)
                                    : tsr_fail(error, TSR_ERROR_LIMIT, "no memory to verify");
    if (status == TSR_OK && source->header.restore != TSR_RESTORE_PNG)
        status = tsr_fail(error, TSR_ERROR_VERIFY, "the restored file is no PNG: %s", source->header.reason);
    uint8_t *raster = status == TSR_OK ? malloc(tsr_raster_bytes(&source->header.image)) : NULL;
    if (status == TSR_OK && !raster) status = tsr_fail(error, TSR_ERROR_LIMIT, "no memory to verify");
    if (status == TSR_OK) status = source->ops->read_frame(source, 0, raster, error);
    if (status == TSR_OK) {
        tsr_add_frame_hash(&frames, &source->header.image, raster);
        const struct tsr_hash128 found = tsr_hasher_result128(&frames);
        if (!tsr_hash128_equal(&found, samples))
            status = tsr_fail(error, TSR_ERROR_VERIFY, "the restored PNG has other samples");
    }
    free(raster);
    tsr_source_close(source);
    tsr_input_close(memory);
    return status;
}

enum tsr_status tsr_verify_written(struct tsr_engine *engine, enum tsr_verify verify,
                                   struct tsr_container_reader *reader, const char *original,
                                   const struct tsr_proof *expected, struct tsr_file_report *report,
                                   struct tsr_error *error)
{
    const struct tsr_header *header = tsr_container_header(reader);
    struct tsr_proof proof;
    struct tsr_decoded decoded;
    bool identical = false;
    const bool rebuilt = header->restore == TSR_RESTORE_PNG;
    struct tsr_output *restored = rebuilt ? tsr_output_to_memory() : tsr_output_to_null();
    enum tsr_status status = restored ? TSR_OK : tsr_fail(error, TSR_ERROR_LIMIT, "no memory to verify");
    if (status == TSR_OK) status = tsr_container_get_proof(reader, &proof, error);
    if (status == TSR_OK)
        status = tsr_decode(verify == TSR_VERIFY_ENGINE ? engine : engine->cpu, reader, restored, &decoded, error);
    if (status == TSR_OK) {
        report->verified_by = decoded.engine;
        if (decoded.fallback && !report->fallback[0])
            snprintf(report->fallback, sizeof report->fallback, "%s", decoded.fallback);
    }
    /* Against what this process has read and decoded, not against what the file says of it. */
    if (status == TSR_OK) status = tsr_check_proof(header, expected, restored, &decoded.samples, &identical, error);
    if (status == TSR_OK && rebuilt)
        status = header->coding.lossy ? verify_lossy_png(restored, &expected->samples, error)
                                      : verify_pixels(original, restored, error);
    tsr_output_close(restored);
    return tsr_fail_verify(status, error);
}

enum tsr_status tsr_fail_verify(enum tsr_status status, struct tsr_error *error)
{
    char reason[400];
    if (status == TSR_OK || status == TSR_ERROR_LIMIT) return status;
    snprintf(reason, sizeof reason, "%.*s", (int)sizeof reason - 1, error->text);
    return tsr_fail(error, TSR_ERROR_VERIFY, "what was written does not decode to what was read: %s", reason);
}

/* Reads the finished file back from the disk, restores it by the ordinary way, and compares with what was read. */
static enum tsr_status verify(struct tsr_engine *engine, enum tsr_verify by, const char *original, const char *written,
                              const struct tsr_proof *expected, struct tsr_file_report *report, struct tsr_error *error)
{
    struct tsr_input *input = NULL;
    struct tsr_container_reader *reader = NULL;
    enum tsr_status status = tsr_input_open(written, &input, error);
    if (status == TSR_OK) status = tsr_container_open(input, &reader, error);
    if (status == TSR_OK && tsr_container_damage(reader))
        status = tsr_fail(error, TSR_ERROR_VERIFY, "the %s is damaged", tsr_container_damage(reader));
    status = status == TSR_OK ? tsr_verify_written(engine, by, reader, original, expected, report, error)
                              : tsr_fail_verify(status, error);
    tsr_container_close(reader);
    tsr_input_close(input);
    return status;
}

enum tsr_status tsr_compress_file(struct tsr_engine *engine, const char *input, const char *output,
                                  const struct tsr_compress_options *options, struct tsr_file_report *report,
                                  struct tsr_error *error)
{
    struct tsr_input *in = NULL;
    struct tsr_output *out = NULL;
    struct tsr_proof proof;
    struct tsr_header header;
    struct tsr_error ignored;
    if (!error) error = &ignored;
    tsr_clear_report(report);
    memset(&proof, 0, sizeof proof);
    const double start = tsr_seconds();
    enum tsr_status status = tsr_input_open(input, &in, error);
    if (status == TSR_OK) status = tsr_output_create(output, options->overwrite, &out, error);
    if (status == TSR_OK) tsr_output_inherit(out, in);
    if (status == TSR_OK) tsr_output_forgo_hash(out); /* its sections have theirs */
    if (status == TSR_OK) status = tsr_write_container(engine, in, out, options, NULL, &proof, &header, report, error);
    if (status == TSR_OK) status = finish(engine, out, report, error);
    const double written = tsr_seconds();
    if (status == TSR_OK && options->verify != TSR_VERIFY_NONE) {
        status = verify(engine, options->verify, input, tsr_output_temporary(out), &proof, report, error);
        report->verify_s = tsr_seconds() - written;
        report->verified = status == TSR_OK;
    }
    if (status == TSR_OK) status = publish(out, report, error);
    if (status == TSR_OK) {
        tsr_report_written(options, &header, &proof, report);
        report->bytes_out = tsr_output_size(out);
        report->encode_s = written - start;
    }
    tsr_output_close(out);
    tsr_input_close(in);
    return status;
}

/* ---- Decompress, test, info ------------------------------------------------------------------------------ */

enum tsr_status tsr_restore_file(struct tsr_engine *engine, struct tsr_input *input,
                                 struct tsr_container_reader *reader, const char *output, bool overwrite, bool whole,
                                 struct tsr_file_report *report, struct tsr_error *error)
{
    struct tsr_output *out = NULL;
    struct tsr_proof proof;
    struct tsr_decoded decoded;
    const double start = tsr_seconds();
    enum tsr_status status = tsr_container_get_proof(reader, &proof, error);
    if (status == TSR_OK && output) status = tsr_output_create(output, overwrite, &out, error);
    if (status == TSR_OK && output) tsr_output_inherit(out, input);
    if (status == TSR_OK && !output) {
        out = tsr_output_to_null();
        if (!out) status = tsr_fail(error, TSR_ERROR_LIMIT, "no memory to test");
    }
    if (status == TSR_OK) status = tsr_decode(engine, reader, out, &decoded, error);
    if (status == TSR_OK) {
        report_header(tsr_container_header(reader), report);
        report_loss(tsr_container_header(reader), &proof, report);
        status =
            tsr_check_proof(tsr_container_header(reader), &proof, out, &decoded.samples, &report->identical, error);
    }
    if (status == TSR_OK && !output && whole && tsr_container_damage(reader))
        status =
            tsr_fail(error, TSR_ERROR_CORRUPT,
                     "the %s is damaged; what it says stands elsewhere too, and decompress still restores the file",
                     tsr_container_damage(reader));
    if (status == TSR_OK) status = finish(engine, out, report, error);
    if (status == TSR_OK) status = publish(out, report, error);
    if (status == TSR_OK) {
        report->bytes_in = tsr_container_bytes(reader);
        report->bytes_out = tsr_output_size(out);
        report->payload_bytes = tsr_container_pixel_bytes(reader);
        report->engine = report->verified_by = decoded.engine;
        report->read_s += decoded.read_s;
        report->write_s += decoded.write_s;
        snprintf(report->fallback, sizeof report->fallback, "%s", decoded.fallback ? decoded.fallback : "");
        report->verify_s = tsr_seconds() - start;
        report->verified = true;
    }
    tsr_output_close(out);
    return status;
}

enum tsr_status tsr_decompress_file(struct tsr_engine *engine, const char *input, const char *output, bool overwrite,
                                    struct tsr_file_report *report, struct tsr_error *error)
{
    struct tsr_input *in = NULL;
    struct tsr_container_reader *reader = NULL;
    struct tsr_error ignored;
    if (!error) error = &ignored;
    tsr_clear_report(report);
    enum tsr_status status = tsr_input_open(input, &in, error);
    if (status == TSR_OK) status = tsr_container_open(in, &reader, error);
    if (status == TSR_OK && tsr_container_is_series(reader))
        status = tsr_fail(error, TSR_ERROR_USAGE, "%s is a series of %u files", input, tsr_container_members(reader));
    if (status == TSR_OK) status = tsr_restore_file(engine, in, reader, output, overwrite, true, report, error);
    tsr_container_close(reader);
    tsr_input_close(in);
    return status;
}

static const char *restore_name(enum tsr_restore restore)
{
    static const char *const names[] = {"verbatim", "splice", "png", "deflated", "encapsulated", "series"};
    return names[restore];
}

enum tsr_status tsr_describe(struct tsr_container_reader *reader, struct tsr_info *info, struct tsr_error *error)
{
    const struct tsr_header *header = tsr_container_header(reader);
    const struct tsr_image *image = &header->image;
    struct tsr_proof proof;
    memset(info, 0, sizeof *info);
    TSR_TRY(tsr_container_get_proof(reader, &proof, error));
    info->kind = header->kind;
    info->verbatim = header->restore == TSR_RESTORE_VERBATIM;
    memcpy(info->reason, header->reason, sizeof info->reason);
    info->restore = restore_name(header->restore);
    info->identical = header->exact;
    info->image = *image;
    info->coding = header->coding;
    info->file_bytes = tsr_container_bytes(reader);
    info->original_bytes = proof.original_size;
    info->payload_bytes = tsr_container_pixel_bytes(reader);
    info->sections = tsr_container_sections(reader);
    memcpy(info->original_hash, proof.original.bytes, sizeof info->original_hash);
    memcpy(info->samples_hash, proof.samples.bytes, sizeof info->samples_hash);
    info->max_error = -1;
    info->psnr_db = -1;
    if (header->coding.lossy) {
        const uint64_t samples = (uint64_t)image->columns * image->rows * image->components * image->frames;
        info->max_error = proof.max_error;
        info->psnr_db = tsr_psnr_db(image, samples, proof.squared_error);
    }
    info->damage = tsr_container_damage(reader);
    return TSR_OK;
}

/* Adds up the files of a series, but for those that are damaged. */
static enum tsr_status describe_series(struct tsr_container_reader *reader, uint64_t file_bytes, struct tsr_info *info,
                                       struct tsr_error *error)
{
    info->members = tsr_container_members(reader);
    info->restore = restore_name(TSR_RESTORE_SERIES);
    info->identical = true;
    info->file_bytes = file_bytes;
    info->sections = tsr_container_sections(reader);
    info->max_error = -1;
    info->psnr_db = -1;
    info->damage = tsr_container_damage(reader);
    for (uint32_t k = 0; k < info->members; k++) {
        struct tsr_info one;
        enum tsr_status status = tsr_container_choose(reader, k, error);
        if (status == TSR_OK) status = tsr_describe(reader, &one, error);
        if (status == TSR_ERROR_READ) return status;
        if (status != TSR_OK) continue;
        info->original_bytes += one.original_bytes;
        info->payload_bytes += one.payload_bytes;
        info->identical &= one.identical;
        info->coding.lossy |= one.coding.lossy;
    }
    return TSR_OK;
}

enum tsr_status tsr_read_info(const char *input, struct tsr_info *info, struct tsr_error *error)
{
    struct tsr_input *in = NULL;
    struct tsr_container_reader *reader = NULL;
    memset(info, 0, sizeof *info);
    enum tsr_status status = tsr_input_open(input, &in, error);
    if (status == TSR_OK) status = tsr_container_open(in, &reader, error);
    if (status == TSR_OK)
        status = tsr_container_is_series(reader) ? describe_series(reader, tsr_input_size(in), info, error)
                                                 : tsr_describe(reader, info, error);
    tsr_container_close(reader);
    tsr_input_close(in);
    return status;
}
