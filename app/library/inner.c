/* Files in files: the .tsr of each stands among the pieces of the outer one. PACKED.md 2. */
#include <string.h>

#include "files.h"

static enum tsr_status put_output(struct tsr_bytes *bytes, const struct tsr_output *output, struct tsr_error *error)
{
    return tsr_bytes_put(bytes, tsr_output_bytes(output), (size_t)tsr_output_size(output), error);
}

/* The account of what an input stands in. */
static struct tsr_account *outer_account(const struct tsr_input *outer)
{
    return (struct tsr_account *)tsr_input_account(outer);
}

/* Refuses what no file in a file is: a series, a file with loss, one with other bytes than plain is to have. */
static enum tsr_status check_inner(struct tsr_container_reader *reader, const struct tsr_bytes *plain,
                                   struct tsr_proof *proof, struct tsr_error *error)
{
    if (tsr_container_is_series(reader) || !tsr_container_header(reader)->exact)
        return tsr_fail(error, TSR_ERROR_CORRUPT, "a file in it is a series, or has lost something");
    TSR_TRY(tsr_container_get_proof(reader, proof, error));
    return proof->original_size == plain->limit
               ? TSR_OK
               : tsr_fail(error, TSR_ERROR_CORRUPT, "a file in it has not the bytes that it should have");
}

enum tsr_status tsr_restore_inner(struct tsr_engine *engine, struct tsr_input *outer, const uint8_t *tsr, size_t size,
                                  struct tsr_bytes *plain, struct tsr_error *error)
{
    struct tsr_account account, *const above = outer_account(outer);
    struct tsr_input *input = NULL;
    struct tsr_container_reader *reader = NULL;
    struct tsr_output *const restored = tsr_output_to_memory();
    struct tsr_decoded decoded;
    struct tsr_proof proof;
    bool identical;
    enum tsr_status status = tsr_input_open_inner(outer, tsr, size, &input, error);
    tsr_account_open_inner(&account, above, engine, input, NULL);
    if (status == TSR_OK && !restored) status = tsr_fail(error, TSR_ERROR_LIMIT, "no memory for a file in it");
    if (status == TSR_OK) status = tsr_container_open(input, &reader, error);
    if (status == TSR_ERROR_NOT_TSR) status = tsr_fail(error, TSR_ERROR_CORRUPT, "a file in it is no .tsr");
    if (status == TSR_OK) status = check_inner(reader, plain, &proof, error);
    if (status == TSR_OK)
        status = tsr_restore_and_check(engine, reader, above ? &account : NULL, &proof, restored, &decoded, &identical,
                                       error);
    if (status == TSR_OK && !tsr_input_count_inner(outer, plain->limit + tsr_input_inner_bytes(input)))
        status = tsr_fail(error, TSR_ERROR_CORRUPT, "the files in it have more bytes than a file of its size may have");
    if (status == TSR_OK) status = put_output(plain, restored, error);
    tsr_container_close(reader);
    tsr_output_close(restored);
    tsr_input_close(input);
    tsr_account_close(&account);
    return status;
}

enum tsr_status tsr_compress_inner(void *inner_files, struct tsr_input *input, struct tsr_bytes *tsr,
                                   struct tsr_error *error)
{
    const struct tsr_inner_files *const inner = inner_files;
    struct tsr_wanted wanted = {.coding = tsr_without_loss(&inner->wanted->coding), .verify = TSR_VERIFY_NONE};
    struct tsr_report report = TSR_REPORT;
    struct tsr_written written = {0};
    struct tsr_output *const output = tsr_output_to_memory();
    if (!output) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for a file in it");
    tsr_clear_report(&report);
    enum tsr_status status =
        tsr_write_container(inner->engine, input, output, &wanted, false, &written, &report, error);
    if (status == TSR_OK && tsr_way_of(&written.header) == TSR_WAY_STORED)
        status = tsr_fail(error, TSR_DECLINED, "it is stored");
    if (status == TSR_OK) status = put_output(tsr, output, error);
    tsr_output_close(output);
    return status;
}
