/* Restoring with all checks, and what was written against what was read. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "files.h"
#include "io/formats/restore.h"

bool tsr_same_image(const struct tsr_image *a, const struct tsr_image *b)
{
    return tsr_alike_images(a, b) && a->frames == b->frames;
}

/* ---- PNG with loss: the restored file's IDAT is libpng's, so it is read again ---------------------------------------
 */

static enum tsr_status hash_blobs(struct tsr_source *source, struct tsr_parts_hash *parts, uint8_t *chunk,
                                  struct tsr_error *error)
{
    for (int blob = TSR_BLOB_PREFIX; blob <= TSR_BLOB_SUFFIX; blob++) {
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
        return tsr_fail(error, TSR_ERROR_CORRUPT, "the restored file is not the PNG that the .tsr describes");
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
            status = tsr_fail(error, TSR_ERROR_CORRUPT,
                              "the restored PNG has other pixels or other chunks than the .tsr says");
    }
    free(bytes);
    return status;
}

/* Reads a restored PNG again. Errors: TSR_ERROR_CORRUPT, TSR_ERROR_LIMIT, TSR_ERROR_WRITE. */
static enum tsr_status check_png(struct tsr_output *restored, const struct tsr_header *header,
                                 const struct tsr_proof *proof, struct tsr_error *error)
{
    const struct tsr_source_options options = {.may_lose = true};
    struct tsr_input *input = NULL;
    struct tsr_source *source = NULL;
    enum tsr_status status = tsr_output_reopen(restored, &input, error);
    if (status == TSR_OK) status = tsr_source_open(input, &options, &source, error);
    if (status == TSR_OK) status = check_parts(source, header, proof, error);
    tsr_source_close(source);
    tsr_input_close(input);
    return status;
}

static bool is_lossy_png(const struct tsr_header *header)
{
    return header->restore == TSR_RESTORE_PNG && !header->exact;
}

/* Most bytes of the restored file. A PNG's IDAT has a byte for each row, of each of its passes, and is not much longer
 * than what it compresses. */
static uint64_t restored_limit(const struct tsr_header *header, const struct tsr_proof *proof)
{
    if (header->exact) return proof->original_size;
    if (!is_lossy_png(header)) return proof->restored_size;
    return proof->restored_size + proof->restored_size / 64 + 4 * (uint64_t)header->image.rows + (1 << 16);
}

struct tsr_output *tsr_output_to_test(const struct tsr_header *header)
{
    return is_lossy_png(header) ? tsr_output_to_memory() : tsr_output_to_null();
}

/* What restoring takes besides decoding: of a lossy PNG, which is read again, the file, which is in memory or gets
 * there, and its pixels twice; else what the restorer holds, and of an output in memory the output. */
static uint64_t restore_memory(const struct tsr_header *header, const struct tsr_proof *proof, bool to_memory)
{
    const uint64_t raster = tsr_raster_bytes(&header->image), bytes = restored_limit(header, proof);
    if (is_lossy_png(header))
        return bytes + 2 * raster + 64 * (uint64_t)header->image.columns + 16 * (uint64_t)header->image.rows;
    if (bytes > UINT64_MAX / 16) return UINT64_MAX / 2; /* which no memory has */
    return tsr_restoring_memory(header, bytes) + (to_memory ? bytes : 0);
}

enum tsr_status tsr_restore_and_check(struct tsr_engine *engine, struct tsr_container_reader *reader,
                                      struct tsr_account *account, const struct tsr_proof *proof,
                                      struct tsr_output *restored, struct tsr_decoded *decoded, bool *identical,
                                      struct tsr_error *error)
{
    const struct tsr_header *header = tsr_container_header(reader);
    tsr_output_limit(restored, restored_limit(header, proof));
    const uint64_t bytes =
        tsr_decode_memory(engine, reader) + restore_memory(header, proof, tsr_output_is_memory(restored));
    if (account)
        TSR_TRY(tsr_account_claim(account, bytes, error));
    else if (bytes > tsr_files_memory(engine))
        return tsr_fail_memory(engine, TSR_MEMORY_OF_FILES, "the original", bytes, error);
    if (tsr_output_is_memory(restored))
        TSR_TRY(tsr_output_make_room(restored, (size_t)restored_limit(header, proof), error));
    TSR_TRY(tsr_decode(engine, reader, restored, decoded, error));
    TSR_TRY(tsr_check_proof(header, proof, restored, decoded, identical, error));
    return is_lossy_png(header) ? check_png(restored, header, proof, error) : TSR_OK;
}

enum tsr_status tsr_verify_written(struct tsr_engine *engine, enum tsr_verify verify,
                                   struct tsr_container_reader *reader, struct tsr_account *account,
                                   const struct tsr_proof *expected, struct tsr_report *report, struct tsr_error *error)
{
    const struct tsr_header *header = tsr_container_header(reader);
    struct tsr_proof proof;
    struct tsr_decoded decoded;
    bool identical = false;
    struct tsr_output *restored = tsr_output_to_test(header);
    enum tsr_status status = restored ? TSR_OK : tsr_fail(error, TSR_ERROR_LIMIT, "no memory to verify");
    if (status == TSR_OK) status = tsr_container_get_proof(reader, &proof, error);
    if (status == TSR_OK && !tsr_same_proof(&proof, expected))
        status = tsr_fail(error, TSR_ERROR_VERIFY, "its proof is another");
    if (status == TSR_OK)
        status = tsr_restore_and_check(verify == TSR_VERIFY_ENGINE ? engine : engine->cpu, reader, account, expected,
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

enum tsr_status tsr_verify_output(struct tsr_engine *engine, enum tsr_verify by, struct tsr_output *written,
                                  const struct tsr_proof *expected, struct tsr_report *report, struct tsr_error *error)
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
