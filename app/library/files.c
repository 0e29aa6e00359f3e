/* Files: compress with proof, decompress, test, info. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "files.h"
#include "measure.h"
#include "kernels/pool/thread_pool.h"

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

static enum tsr_status publish(struct tsr_output *output, const struct tsr_output_options *options,
                               struct tsr_file_report *report, struct tsr_error *error)
{
    const double start = tsr_seconds();
    enum tsr_status status = tsr_output_publish(output, error);
    if (status == TSR_OK && !options->syncs_later) status = tsr_sync_folders(error);
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
    coding->effort = options->coding.effort;
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
    if ((*source)->header.restore == TSR_RESTORE_VERBATIM) return tsr_input_claim(input, NULL, 0, error);
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

/* What the file takes stored as it is. */
static enum tsr_status measure_verbatim(struct tsr_engine *engine, struct tsr_input *input, uint64_t *bytes,
                                        struct tsr_error *error)
{
    const struct tsr_source_options options = {.verbatim = true, .reason = tsr_smaller_verbatim};
    struct tsr_source *source = NULL;
    struct tsr_proof proof;
    struct tsr_encoded encoded = {0};
    struct tsr_output *output = tsr_output_to_null();
    enum tsr_status status = output ? TSR_OK : tsr_fail(error, TSR_ERROR_LIMIT, "no memory to write");
    if (status == TSR_OK) status = tsr_source_open(input, &options, &source, error);
    if (status == TSR_OK) status = tsr_encode(engine, source, output, &proof, &encoded, error);
    *bytes = output ? tsr_output_size(output) : 0;
    tsr_source_close(source);
    tsr_output_close(output);
    return status;
}

/* TSR_ERROR_CORRUPT, with that as the reason, if a file that took so many bytes is smaller verbatim. Where it is far
 * smaller than the input that is not looked at: zstd would have to be better by a third than what is made for images,
 * or, on what is compressed already, to find something to do. */
static enum tsr_status check_gain(struct tsr_engine *engine, struct tsr_input *input, const struct tsr_header *header,
                                  uint64_t size, struct tsr_error *error)
{
    const uint64_t whole = tsr_input_size(input);
    const bool was_native = header->restore == TSR_RESTORE_SPLICE && header->image.bits_allocated > 1;
    uint64_t verbatim = 0;
    if (header->restore == TSR_RESTORE_VERBATIM || size <= (was_native ? whole / 4 * 3 : whole / 16 * 15))
        return TSR_OK;
    TSR_TRY(measure_verbatim(engine, input, &verbatim, error));
    return size <= verbatim ? TSR_OK : tsr_fail(error, TSR_ERROR_CORRUPT, "%s", tsr_smaller_verbatim);
}

/* Of a member, whose blobs are compressed later, the frames alone tell: they are no longer than what they replace. */
static enum tsr_status check_frames(const struct tsr_source *source, uint64_t size, struct tsr_error *error)
{
    uint64_t rest = tsr_input_size(source->input);
    if (source->header.restore == TSR_RESTORE_VERBATIM) return TSR_OK;
    for (int blob = 0; blob < TSR_BLOB_COUNT; blob++)
        rest -= source->blob_size[blob] < rest ? source->blob_size[blob] : rest;
    return size <= rest ? TSR_OK : tsr_fail(error, TSR_ERROR_CORRUPT, "%s", tsr_smaller_verbatim);
}

/* One try; TSR_ERROR_CORRUPT: it must be verbatim. */
static enum tsr_status try_container(struct tsr_engine *engine, struct tsr_source *source, struct tsr_output *output,
                                     const struct tsr_compress_options *options, bool is_member,
                                     struct tsr_written *written, struct tsr_encoded *encoded, struct tsr_error *error)
{
    const uint64_t start = tsr_output_size(output);
    encoded->decoder = options->verify == TSR_VERIFY_ENGINE ? engine : engine->cpu;
    encoded->gives_up = true;
    if (is_member) {
        const struct tsr_image *const image = &source->header.image;
        encoded->keeps_raster = image->frames == 1 && tsr_stack_limit(image, &source->header.coding) > 0;
        TSR_TRY(tsr_container_begin_member(output, &source->header, &written->writer, error));
        TSR_TRY(tsr_encode_contents(engine, source, written->writer, &written->proof, encoded, error));
        return check_frames(source, tsr_container_payload_bytes(written->writer), error);
    }
    TSR_TRY(tsr_encode(engine, source, output, &written->proof, encoded, error));
    TSR_TRY(check_gain(engine, source->input, &source->header, tsr_output_size(output) - start, error));
    return check_size(options, source->input, output, error);
}

static enum tsr_status write_container(struct tsr_engine *engine, struct tsr_input *input, struct tsr_output *output,
                                       const struct tsr_compress_options *options, bool is_member,
                                       struct tsr_written *written, struct tsr_file_report *report,
                                       struct tsr_error *error)
{
    struct tsr_source_options source_options = {.recode = options->recode, .may_lose = options->coding.lossy};
    const struct tsr_output_mark start = tsr_output_mark(output);
    char reason[sizeof report->reason];
    for (;;) {
        struct tsr_source *source = NULL;
        struct tsr_encoded encoded = {0};
        const double opening = tsr_seconds();
        enum tsr_status status = open_coded(engine, input, &source_options, options, &source, report, error);
        report->read_s += tsr_seconds() - opening;
        if (status == TSR_OK)
            status = try_container(engine, source, output, options, is_member, written, &encoded, error);
        if (source) written->header = source->header;
        written->raster = encoded.raster;
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
        report->reason[0] = '\0';
        free(written->raster);
        written->raster = NULL;
        tsr_container_writer_free(written->writer);
        written->writer = NULL;
        TSR_TRY(tsr_output_return(output, &start, error));
    }
}

enum tsr_status tsr_write_container(struct tsr_engine *engine, struct tsr_input *input, struct tsr_output *output,
                                    const struct tsr_compress_options *options, bool is_member,
                                    struct tsr_written *written, struct tsr_file_report *report,
                                    struct tsr_error *error)
{
    struct tsr_account account;
    memset(written, 0, sizeof *written);
    tsr_account_open(&account, engine, input, options->coding.lossy);
    account.is_verified = options->verify != TSR_VERIFY_NONE;
    const enum tsr_status status = write_container(engine, input, output, options, is_member, written, report, error);
    tsr_input_set_account(input, NULL);
    tsr_input_drop_held(input);
    tsr_account_close(&account);
    return status;
}

void tsr_report_written(const struct tsr_compress_options *options, const struct tsr_written *written,
                        struct tsr_file_report *report)
{
    report_header(&written->header, report);
    report_loss(&written->header, &written->proof, report);
    report_overshoot(options, report);
    report->bytes_in = written->proof.original_size;
}

bool tsr_same_image(const struct tsr_image *a, const struct tsr_image *b)
{
    return tsr_alike_images(a, b) && a->frames == b->frames;
}

/* ---- PNG: the restored file's IDAT is libpng's, so it is read again --------------------------------------- */

static enum tsr_status hash_blobs(struct tsr_source *source, struct tsr_parts_hash *parts, uint8_t *chunk,
                                  struct tsr_error *error)
{
    for (int blob = 0; blob < TSR_BLOB_COUNT; blob++) {
        const uint64_t size = source->blob_size[blob];
        for (uint64_t at = 0; at < size; at += TSR_BLOB_CHUNK) {
            const size_t now = size - at < TSR_BLOB_CHUNK ? (size_t)(size - at) : TSR_BLOB_CHUNK;
            TSR_TRY(source->ops->read_blob(source, (enum tsr_blob)blob, at, chunk, now, error));
            tsr_parts_add_blob(parts, (enum tsr_blob)blob, chunk, now);
        }
    }
    return TSR_OK;
}

/* Whether a PNG has the parts that the proof promises. */
static enum tsr_status check_parts(struct tsr_source *source, const struct tsr_header *header,
                                   const struct tsr_proof *proof, struct tsr_error *error)
{
    const struct tsr_image *image = &header->image;
    const size_t raster_bytes = tsr_raster_bytes(image);
    struct tsr_parts_hash parts;
    struct tsr_hasher frames;
    struct tsr_proof found;
    const struct tsr_image *const again = &source->header.image;
    if (source->header.restore != TSR_RESTORE_PNG || !tsr_same_image(image, again) ||
        image->exact_only != again->exact_only || header->parameter_count != source->header.parameter_count ||
        memcmp(header->parameters, source->header.parameters, header->parameter_count) != 0)
        return tsr_fail(error, TSR_ERROR_VERIFY, "the restored file is not the PNG that it should be");
    uint8_t *bytes = malloc(raster_bytes > TSR_BLOB_CHUNK ? raster_bytes : TSR_BLOB_CHUNK);
    if (!bytes) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory to read a PNG again");
    tsr_parts_begin(&parts);
    tsr_hasher_init(&frames);
    enum tsr_status status = hash_blobs(source, &parts, bytes, error);
    if (status == TSR_OK) status = source->ops->read_frame(source, 0, bytes, error);
    if (status == TSR_OK) {
        tsr_add_frame_hash(&frames, image, bytes);
        found.samples = tsr_hasher_result128(&frames);
        tsr_parts_end(&parts, header->restore, &found.samples, raster_bytes, &found);
        if (found.restored_size != proof->restored_size || !tsr_hash128_equal(&found.restored, &proof->restored))
            status = tsr_fail(error, TSR_ERROR_VERIFY, "the restored PNG has other pixels or other chunks");
    }
    free(bytes);
    return status;
}

/* Reads a restored PNG again. Errors: TSR_ERROR_VERIFY, TSR_ERROR_LIMIT, TSR_ERROR_WRITE. */
static enum tsr_status check_png(struct tsr_output *restored, const struct tsr_header *header,
                                 const struct tsr_proof *proof, struct tsr_error *error)
{
    const struct tsr_source_options options = {0};
    struct tsr_input *input = NULL;
    struct tsr_source *source = NULL;
    enum tsr_status status = tsr_output_reopen(restored, &input, error);
    if (status == TSR_OK) status = tsr_source_open(input, &options, &source, error);
    if (status == TSR_OK) status = check_parts(source, header, proof, error);
    tsr_source_close(source);
    tsr_input_close(input);
    return status;
}

/* Most bytes of the restored file. A PNG's IDAT has a byte for each row, of each of its passes, and is not much longer
 * than what it compresses. */
static uint64_t restored_limit(const struct tsr_header *header, const struct tsr_proof *proof)
{
    if (header->exact) return proof->original_size;
    if (header->restore != TSR_RESTORE_PNG) return proof->restored_size;
    return proof->restored_size + proof->restored_size / 64 + 4 * (uint64_t)header->image.rows + (1 << 16);
}

/* Where a file that is only tested goes. */
static struct tsr_output *output_to_test(const struct tsr_header *header)
{
    return header->restore == TSR_RESTORE_PNG ? tsr_output_to_memory() : tsr_output_to_null();
}

/* What restoring takes besides decoding: of a PNG, which is read again, the file, which is in memory or gets there, and
 * its pixels twice; of streams that are made again the residues and the toolkit's work. */
static uint64_t restore_memory(const struct tsr_header *header, const struct tsr_proof *proof)
{
    const uint64_t raster = tsr_raster_bytes(&header->image), bytes = restored_limit(header, proof);
    if (header->restore == TSR_RESTORE_PNG)
        return bytes + 2 * raster + 64 * (uint64_t)header->image.columns + 16 * (uint64_t)header->image.rows;
    return header->restore == TSR_RESTORE_ENCAPSULATED ? 2 * bytes + 8 * raster : 0;
}

/* Restores what a reader has chosen, and compares it with a proof: also with what was read, not only with what the file
 * says of itself. */
static enum tsr_status restore_and_check(struct tsr_engine *engine, struct tsr_container_reader *reader,
                                         struct tsr_account *account, const struct tsr_proof *proof,
                                         struct tsr_output *restored, struct tsr_decoded *decoded, bool *identical,
                                         struct tsr_error *error)
{
    const struct tsr_header *header = tsr_container_header(reader);
    tsr_output_limit(restored, restored_limit(header, proof));
    TSR_TRY(tsr_account_claim(account, tsr_decode_memory(engine, reader) + restore_memory(header, proof), error));
    if (tsr_output_is_memory(restored))
        TSR_TRY(tsr_output_make_room(restored, (size_t)restored_limit(header, proof), error));
    TSR_TRY(tsr_decode(engine, reader, restored, decoded, error));
    TSR_TRY(tsr_check_proof(header, proof, restored, decoded, identical, error));
    return header->restore == TSR_RESTORE_PNG ? check_png(restored, header, proof, error) : TSR_OK;
}

enum tsr_status tsr_verify_written(struct tsr_engine *engine, enum tsr_verify verify,
                                   struct tsr_container_reader *reader, struct tsr_account *account,
                                   const struct tsr_proof *expected, struct tsr_file_report *report,
                                   struct tsr_error *error)
{
    const struct tsr_header *header = tsr_container_header(reader);
    struct tsr_proof proof;
    struct tsr_decoded decoded;
    bool identical = false;
    struct tsr_output *restored = output_to_test(header);
    enum tsr_status status = restored ? TSR_OK : tsr_fail(error, TSR_ERROR_LIMIT, "no memory to verify");
    if (status == TSR_OK) status = tsr_container_get_proof(reader, &proof, error);
    if (status == TSR_OK && !tsr_same_proof(&proof, expected))
        status = tsr_fail(error, TSR_ERROR_VERIFY, "its proof is another");
    if (status == TSR_OK)
        status = restore_and_check(verify == TSR_VERIFY_ENGINE ? engine : engine->cpu, reader, account, expected,
                                   restored, &decoded, &identical, error);
    if (status == TSR_OK) {
        report->verified_by = decoded.engine;
        if (decoded.fallback && !report->fallback[0])
            snprintf(report->fallback, sizeof report->fallback, "%s", decoded.fallback);
    }
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
static enum tsr_status verify(struct tsr_engine *engine, enum tsr_verify by, struct tsr_output *written,
                              const struct tsr_proof *expected, struct tsr_file_report *report, struct tsr_error *error)
{
    struct tsr_input *input = NULL;
    struct tsr_container_reader *reader = NULL;
    struct tsr_account account;
    enum tsr_status status = tsr_output_reopen(written, &input, error);
    tsr_account_open(&account, engine, input, false);
    if (status == TSR_OK) status = tsr_container_open(input, &reader, error);
    if (status == TSR_OK && tsr_container_damage(reader))
        status = tsr_fail(error, TSR_ERROR_VERIFY, "the %s is damaged", tsr_container_damage(reader));
    status = status == TSR_OK ? tsr_verify_written(engine, by, reader, &account, expected, report, error)
                              : tsr_fail_verify(status, error);
    tsr_container_close(reader);
    tsr_input_close(input);
    tsr_account_close(&account);
    return status;
}

enum tsr_status tsr_compress_file(struct tsr_engine *engine, const char *input, const char *output,
                                  const struct tsr_compress_options *options, struct tsr_file_report *report,
                                  struct tsr_error *error)
{
    struct tsr_input *in = NULL;
    struct tsr_output *out = NULL;
    struct tsr_written written = {0};
    struct tsr_error ignored;
    if (!error) error = &ignored;
    tsr_clear_report(report);
    const double start = tsr_seconds();
    enum tsr_status status = tsr_input_open(input, &in, error);
    if (status == TSR_OK) status = tsr_output_create(output, &options->output, true, &out, error);
    if (status == TSR_OK) tsr_output_inherit(out, in);
    if (status == TSR_OK) tsr_output_forgo_hash(out); /* its sections have theirs */
    if (status == TSR_OK) status = tsr_write_container(engine, in, out, options, false, &written, report, error);
    if (status == TSR_OK) status = finish(engine, out, report, error);
    const double finished = tsr_seconds();
    if (status == TSR_OK && options->verify != TSR_VERIFY_NONE) {
        report->read_from_disk = tsr_output_drop_cache(out);
        status = verify(engine, options->verify, out, &written.proof, report, error);
        report->verify_s = tsr_seconds() - finished;
        report->verified = status == TSR_OK;
    }
    if (status == TSR_OK) status = publish(out, &options->output, report, error);
    if (status == TSR_OK) {
        tsr_report_written(options, &written, report);
        report->bytes_out = tsr_output_size(out);
        report->encode_s = finished - start;
    }
    tsr_output_close(out);
    tsr_input_close(in);
    return status;
}

/* ---- Decompress, test, info ------------------------------------------------------------------------------ */

enum tsr_status tsr_restore_file(struct tsr_engine *engine, struct tsr_input *input,
                                 struct tsr_container_reader *reader, struct tsr_account *account, const char *output,
                                 const struct tsr_output_options *options, bool whole, struct tsr_file_report *report,
                                 struct tsr_error *error)
{
    static const struct tsr_output_options ordinary;
    struct tsr_output *out = NULL;
    struct tsr_proof proof;
    struct tsr_decoded decoded;
    const double start = tsr_seconds();
    if (!options) options = &ordinary;
    enum tsr_status status = tsr_container_get_proof(reader, &proof, error);
    if (status == TSR_OK && output) status = tsr_output_create(output, options, true, &out, error);
    if (status == TSR_OK && output) tsr_output_inherit(out, input);
    if (status == TSR_OK && !output) {
        out = output_to_test(tsr_container_header(reader));
        if (!out) status = tsr_fail(error, TSR_ERROR_LIMIT, "no memory to test");
    }
    bool identical = false;
    if (status == TSR_OK) status = restore_and_check(engine, reader, account, &proof, out, &decoded, &identical, error);
    if (status == TSR_OK) {
        report_header(tsr_container_header(reader), report);
        report_loss(tsr_container_header(reader), &proof, report);
        report->identical = identical;
    }
    const char *const damage =
        whole && tsr_container_damage(reader) ? tsr_container_damage(reader) : tsr_container_repaired(reader);
    if (status == TSR_OK && !output && damage)
        status = tsr_fail(
            error, TSR_ERROR_CORRUPT,
            "the %s is damaged; what it says stands elsewhere too, and decompress still restores the file", damage);
    if (status == TSR_OK) status = finish(engine, out, report, error);
    if (status == TSR_OK && output) status = publish(out, options, report, error);
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

enum tsr_status tsr_decompress_file(struct tsr_engine *engine, const char *input, const char *output,
                                    const struct tsr_output_options *options, struct tsr_file_report *report,
                                    struct tsr_error *error)
{
    struct tsr_input *in = NULL;
    struct tsr_container_reader *reader = NULL;
    struct tsr_account account;
    struct tsr_error ignored;
    if (!error) error = &ignored;
    tsr_clear_report(report);
    enum tsr_status status = tsr_input_open(input, &in, error);
    tsr_account_open(&account, engine, in, false);
    if (status == TSR_OK) status = tsr_container_open(in, &reader, error);
    if (status == TSR_OK && tsr_container_is_series(reader))
        status = tsr_fail(error, TSR_ERROR_USAGE, "%s is a series of %u files", input, tsr_container_members(reader));
    if (status == TSR_OK) status = tsr_restore_file(engine, in, reader, &account, output, options, true, report, error);
    tsr_container_close(reader);
    tsr_input_close(in);
    tsr_account_close(&account);
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
