/* Restoring with all checks, and what was written against what was read. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "files.h"
#include "io/formats/png/png_file.h"
#include "io/recipe/recipe.h"

/* ---- PNG that is written anew: PNG.md 4 ------------------------------------------------------------------------ */

static enum tsr_status hash_blobs(struct tsr_source *source, struct tsr_parts_hash *parts, struct tsr_error *error)
{
    uint8_t chunk[1 << 14];
    for (int blob = TSR_BLOB_PREFIX; blob <= TSR_BLOB_SUFFIX; blob++) {
        const uint64_t size = source->blob_size[blob];
        for (uint64_t at = 0; at < size; at += sizeof chunk) {
            const size_t now = size - at < sizeof chunk ? (size_t)(size - at) : sizeof chunk;
            TSR_TRY(tsr_source_read_blob(source, (enum tsr_blob)blob, at, chunk, now, error));
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
    struct tsr_parts_hash parts;
    struct tsr_hasher frames;
    struct tsr_proof found;
    const struct tsr_image *const again = &source->header.image;
    if (!tsr_makes_png(&source->header) || source->only_lossless || !tsr_same_image(image, again) ||
        header->parameter_count != source->header.parameter_count ||
        memcmp(header->parameters, source->header.parameters, header->parameter_count) != 0)
        return tsr_fail(error, TSR_ERROR_CORRUPT, "the restored file is not the PNG that the .tsr describes");
    tsr_parts_begin(&parts);
    tsr_hasher_init(&frames);
    TSR_TRY(hash_blobs(source, &parts, error));
    tsr_add_frame_hash(&frames, image, source->rasters);
    found.samples = tsr_hasher_result128(&frames);
    tsr_parts_end(&parts, header, &found.samples, tsr_raster_bytes(image), &found);
    if (found.restored_size == proof->restored_size && tsr_hash128_equal(&found.restored, &proof->restored))
        return TSR_OK;
    return tsr_fail(error, TSR_ERROR_CORRUPT, "the restored PNG has other pixels or other chunks than the .tsr says");
}

/* Whether what is made with the samples in place of a stream is such a PNG, with the samples that were decoded. Those
 * and the other parts have been compared with the proof. */
static enum tsr_status check_rest(struct tsr_container_reader *reader, const struct tsr_output *made,
                                  const struct tsr_decoded *decoded, struct tsr_error *error)
{
    enum { CHUNK_HEAD = 8 };
    uint8_t start[TSR_START_LIMIT];
    struct tsr_hasher frames;
    const struct tsr_header *const header = tsr_container_header(reader);
    const size_t before = (size_t)tsr_container_blobs(reader).bytes[TSR_BLOB_PREFIX] + tsr_known_start(header, start);
    TSR_TRY(tsr_png_check_rest(header, tsr_output_bytes(made), (size_t)tsr_output_size(made), before, error));
    tsr_hasher_init(&frames);
    tsr_add_frame_hash(&frames, &header->image, tsr_output_bytes(made) + before + CHUNK_HEAD);
    const struct tsr_hash128 samples = tsr_hasher_result128(&frames);
    return tsr_hash128_equal(&samples, &decoded->found.samples)
               ? TSR_OK
               : tsr_fail(error, TSR_ERROR_CORRUPT, "the restored PNG has other pixels than were decoded");
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

/* Most bytes of the restored file. A PNG's IDAT has a byte for each row, of each of its passes, and is not much longer
 * than what it compresses. */
static uint64_t restored_limit(const struct tsr_header *header, const struct tsr_proof *proof)
{
    if (header->exact || tsr_has_planes(header)) return proof->original_size;
    if (!tsr_has_own_writer(header)) return proof->restored_size;
    return proof->restored_size + proof->restored_size / 64 + 4 * (uint64_t)header->image.rows + (1 << 16);
}

struct tsr_output *tsr_output_to_test(const struct tsr_header *header)
{
    return tsr_has_own_writer(header) ? tsr_output_to_memory() : tsr_output_to_null();
}

/* The residues of what a reader has chosen, under the claim of a header: they tell what restoring takes. */
static enum tsr_status read_residues(struct tsr_container_reader *reader, struct tsr_bytes *residues,
                                     struct tsr_error *error)
{
    const uint64_t size = tsr_container_blobs(reader).bytes[TSR_BLOB_RESIDUES];
    uint64_t cursor = 0;
    TSR_TRY(tsr_input_claim_header(tsr_container_input(reader), size, error));
    for (;;) {
        const uint8_t *bytes;
        size_t now;
        TSR_TRY(tsr_container_get_blob(reader, TSR_BLOB_RESIDUES, &cursor, &bytes, &now, error));
        if (now == 0) return TSR_OK;
        if (now > residues->limit - residues->size)
            return tsr_fail(error, TSR_ERROR_CORRUPT, "the residues are longer than the restored file");
        if (residues->capacity == 0 && size <= residues->limit)
            TSR_TRY(tsr_bytes_reserve(residues, (size_t)size, error));
        TSR_TRY(tsr_bytes_put(residues, bytes, now, error));
    }
}

/* The first bytes of a packed file's blob; they are the reader's, until it reads on. */
static enum tsr_status peek_begin(struct tsr_container_reader *reader, struct tsr_bytes *begin, struct tsr_error *error)
{
    const uint8_t *bytes;
    uint64_t cursor = 0;
    TSR_TRY(tsr_container_get_blob(reader, TSR_BLOB_PREFIX, &cursor, &bytes, &begin->size, error));
    begin->bytes = (uint8_t *)(uintptr_t)bytes;
    return TSR_OK;
}

/* Claims what restoring takes. account NULL: sees whether it ever may. */
static enum tsr_status claim_restoring(struct tsr_engine *engine, struct tsr_container_reader *reader,
                                       struct tsr_account *account, uint64_t limit, bool to_memory,
                                       struct tsr_bytes *residues, struct tsr_error *error)
{
    const struct tsr_header *const header = tsr_container_header(reader);
    const struct tsr_blob_sizes blobs = tsr_container_blobs(reader);
    struct tsr_foreseen foreseen = {.size = limit,
                                    .blobs = blobs.bytes[TSR_BLOB_PREFIX] + blobs.bytes[TSR_BLOB_SUFFIX],
                                    .threads = (unsigned)tsr_pool_threads(engine->pool)};
    struct tsr_bytes begin = {0};
    residues->limit = limit < SIZE_MAX / 2 ? (size_t)limit : SIZE_MAX / 2;
    if (tsr_has_residues(header)) {
        TSR_TRY(read_residues(reader, residues, error));
        foreseen.residues = residues;
    } else if (tsr_has_pieces(header)) {
        TSR_TRY(peek_begin(reader, &begin, error));
        foreseen.begin = &begin;
    }
    const struct tsr_restoring restoring = tsr_restoring_memory(header, &foreseen);
    const uint64_t size = limit < UINT64_MAX / 16 ? limit : UINT64_MAX / 16,
                   again = to_memory && tsr_has_own_writer(header) ? tsr_png_again_memory(header, size) : 0;
    uint64_t bytes = tsr_decode_memory(engine, reader, &restoring) + (to_memory ? size : 0);
    if (bytes < again) bytes = again;
    if (account) return tsr_account_claim(account, bytes, tsr_has_inner(header) && header->inner > 0, error);
    if (bytes <= tsr_files_memory(engine)) return TSR_OK;
    return tsr_fail_memory(engine, TSR_MEMORY_OF_FILES, "the original", bytes, error);
}

static enum tsr_status restore_and_check(struct tsr_engine *engine, struct tsr_container_reader *reader,
                                         struct tsr_account *account, const struct tsr_proof *proof, bool leaves_pixels,
                                         struct tsr_output *restored, struct tsr_decoded *decoded, bool *identical,
                                         struct tsr_error *error)
{
    const struct tsr_header *header = tsr_container_header(reader);
    const uint64_t limit = restored_limit(header, proof);
    const bool to_memory = tsr_output_is_memory(restored);
    struct tsr_bytes residues = {0};
    tsr_output_limit(restored, limit);
    enum tsr_status status = claim_restoring(engine, reader, account, limit, to_memory, &residues, error);
    if (status == TSR_OK && to_memory) status = tsr_output_make_room(restored, (size_t)limit, error);
    if (status == TSR_OK)
        status = tsr_decode(engine, reader, tsr_has_residues(header) ? &residues : NULL, restored, leaves_pixels,
                            decoded, error);
    tsr_bytes_free(&residues);
    if (status == TSR_OK) status = tsr_check_proof(header, proof, restored, decoded, identical, error);
    if (status != TSR_OK || !tsr_has_own_writer(header)) return status;
    if (leaves_pixels) return check_rest(reader, restored, decoded, error);
    if (account && !to_memory) { /* the file is on the disk, and nothing of it is held */
        account->base.give_back(&account->base);
        TSR_TRY(tsr_account_claim(
            account, tsr_container_memory(reader) + tsr_png_again_memory(header, tsr_output_size(restored)), false,
            error));
    }
    return check_png(restored, header, proof, error);
}

enum tsr_status tsr_restore_and_check(struct tsr_engine *engine, struct tsr_container_reader *reader,
                                      struct tsr_account *account, const struct tsr_proof *proof,
                                      struct tsr_output *restored, struct tsr_decoded *decoded, bool *identical,
                                      struct tsr_error *error)
{
    return restore_and_check(engine, reader, account, proof, false, restored, decoded, identical, error);
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
        status = restore_and_check(verify == TSR_VERIFY_ENGINE ? engine : engine->cpu, reader, account, expected,
                                   tsr_has_own_writer(header), restored, &decoded, &identical, error);
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
                                  struct tsr_key *key, const struct tsr_input *source, const struct tsr_proof *expected,
                                  struct tsr_report *report, struct tsr_error *error)
{
    struct tsr_input *input = NULL;
    struct tsr_container_reader *reader = NULL;
    struct tsr_account account;
    enum tsr_status status = tsr_output_reopen(written, &input, error);
    if (status == TSR_OK && key) status = tsr_input_unseal(&input, key, false, error);
    if (status == TSR_OK && key && tsr_input_stored_size(input) == tsr_input_size(input))
        status = tsr_fail(error, TSR_ERROR_CORRUPT, "%s is not encrypted", tsr_input_name(input));
    if (status == TSR_OK) tsr_input_follow(input, source);
    tsr_account_open(&account, engine, input, NULL);
    if (status == TSR_OK) status = tsr_container_open(input, &reader, error);
    if (status == TSR_OK && tsr_container_damage(reader))
        status = tsr_fail(error, TSR_ERROR_VERIFY, "the %s is damaged", tsr_container_damage(reader));
    status = status == TSR_OK ? tsr_verify_written(engine, by, reader, &account, expected, report, error)
                              : tsr_fail_verify(status, error);
    if (status == TSR_OK) status = tsr_input_ask(input, error);
    tsr_container_close(reader);
    return tsr_account_end(&account, input, status, error);
}
