/* A .tsr of DICOM, or one in a series, to a DICOM file in another transfer syntax. */
#include <stdio.h>
#include <string.h>

#include "files.h"
#include "io/formats/dicom/dicom_export.h"

/* Decodes to a new exporter. Its samples are what the .tsr promises. */
static enum tsr_status write_file(struct tsr_engine *engine, struct tsr_container_reader *reader,
                                  const struct tsr_proof *proof, enum tsr_export_syntax to, bool all_bits,
                                  struct tsr_output *out, struct tsr_exporter **exporter, struct tsr_decoded *decoded,
                                  struct tsr_error *error)
{
    const struct tsr_blob_sizes blobs = tsr_container_blobs(reader);
    TSR_TRY(tsr_exporter_create(tsr_container_header(reader), to, all_bits, out, exporter, error));
    TSR_TRY(tsr_exporter_foresee(*exporter, blobs.bytes[TSR_BLOB_PREFIX], blobs.bytes[TSR_BLOB_SUFFIX], error));
    TSR_TRY(tsr_decode_to_exporter(engine, reader, *exporter, decoded, error));
    if (tsr_hash128_equal(&decoded->found.samples, &proof->samples)) return TSR_OK;
    return tsr_fail(error, TSR_ERROR_CORRUPT,
                    "the decoded samples are not those that were encoded: their hash differs");
}

/* Again with all bits, where a frame has some outside of its samples: streams of one file have the same precision. */
static enum tsr_status write_twice(struct tsr_engine *engine, struct tsr_container_reader *reader,
                                   const struct tsr_proof *proof, enum tsr_export_syntax to, struct tsr_output *out,
                                   struct tsr_exporter **exporter, struct tsr_decoded *decoded, struct tsr_error *error)
{
    const enum tsr_status status = write_file(engine, reader, proof, to, false, out, exporter, decoded, error);
    if (status != TSR_ERROR_CORRUPT || !*exporter || !tsr_exporter_needs_all_bits(*exporter)) return status;
    tsr_exporter_free(*exporter);
    *exporter = NULL;
    TSR_TRY(tsr_output_restart(out, error));
    return write_file(engine, reader, proof, to, true, out, exporter, decoded, error);
}

/* Reads the file again. held: bytes that are in memory besides the source. */
static enum tsr_status prove(struct tsr_engine *engine, const struct tsr_input *source,
                             const struct tsr_exporter *exporter, const struct tsr_hash128 *samples, uint64_t held,
                             struct tsr_output *out, struct tsr_report *report, struct tsr_error *error)
{
    struct tsr_input *input = NULL;
    struct tsr_account account;
    report->read_from_disk = tsr_output_drop_cache(out);
    enum tsr_status status = tsr_output_reopen(out, &input, error);
    if (status == TSR_OK) tsr_input_follow(input, source);
    tsr_account_open(&account, engine, input, NULL);
    account.output_bytes = held;
    if (status == TSR_OK) status = tsr_exporter_check(exporter, input, samples, error);
    status = tsr_account_end(&account, input, status, error);
    if (status == TSR_OK || status == TSR_ERROR_LIMIT || status == TSR_ERROR_CANCELLED) return status;
    char why[400];
    snprintf(why, sizeof why, "%.*s", (int)sizeof why - 1, error->text);
    return tsr_fail(error, TSR_ERROR_VERIFY, "the exported file does not decode to the samples: %s", why);
}

/* A small file that is exact has no hash of its samples. Restoring its original proves them. */
static enum tsr_status learn_samples(struct tsr_engine *engine, struct tsr_container_reader *reader,
                                     struct tsr_account *account, struct tsr_proof *proof, struct tsr_error *error)
{
    struct tsr_decoded decoded;
    bool identical;
    if (proof->has_samples) return TSR_OK;
    struct tsr_output *const nothing = tsr_output_to_null();
    enum tsr_status status = nothing ? TSR_OK : tsr_fail(error, TSR_ERROR_LIMIT, "no memory to restore");
    if (status == TSR_OK)
        status = tsr_restore_and_check(engine, reader, account, proof, nothing, &decoded, &identical, error);
    tsr_output_close(nothing);
    tsr_account_close(account); /* exporting claims anew */
    if (status == TSR_OK) proof->samples = decoded.found.samples;
    return status;
}

static void report_left_out(const struct tsr_exporter *exporter, struct tsr_report *report)
{
    const uint32_t tag = tsr_exporter_left_out(exporter);
    if (tag == 0) return;
    snprintf(report->reason, sizeof report->reason,
             "without its element (%04x,%04x), which has pixel data coded in another transfer syntax",
             (unsigned)(tag >> 16), (unsigned)(tag & 0xffff));
}

enum tsr_status tsr_export_file(struct tsr_engine *engine, struct tsr_input *input, struct tsr_container_reader *reader,
                                struct tsr_account *account, const char *name, const struct tsr_data_sink *sink,
                                enum tsr_export_syntax to, struct tsr_report *report, struct tsr_error *error)
{
    const struct tsr_header *const header = tsr_container_header(reader);
    struct tsr_output *out = NULL;
    struct tsr_exporter *exporter = NULL;
    struct tsr_proof proof;
    struct tsr_decoded decoded;
    struct tsr_error why = {0};
    if (tsr_can_export(header, to, &why) != TSR_OK)
        return tsr_fail(error, TSR_ERROR_USAGE, "%s cannot be exported: %.400s", name, why.text);
    if (tsr_container_units(reader) > 0)
        return tsr_fail(error, TSR_ERROR_USAGE,
                        "%s cannot be exported: %u of its %u frames are not coded as samples; tessera decompress "
                        "restores it",
                        name, tsr_container_units(reader), header->image.frames);
    enum tsr_status status = tsr_container_get_proof(reader, &proof, error);
    if (status == TSR_OK) status = learn_samples(engine, reader, account, &proof, error);
    if (status == TSR_OK) status = tsr_open_sink(sink, true, &out, error);
    const struct tsr_blob_sizes blobs = tsr_container_blobs(reader);
    const uint64_t prefix = blobs.bytes[TSR_BLOB_PREFIX], suffix = blobs.bytes[TSR_BLOB_SUFFIX],
                   held = out && tsr_output_is_memory(out) ? tsr_exported_bytes(header, to, prefix, suffix) : 0;
    const struct tsr_restoring exporting = tsr_export_memory(header, to, prefix, suffix);
    if (status == TSR_OK)
        status = tsr_account_claim(account, tsr_decode_memory(engine, reader, &exporting) + held, false, error);
    if (status == TSR_OK && held > 0) status = tsr_output_make_room(out, (size_t)held, error);
    if (status == TSR_OK) tsr_output_inherit(out, input);
    if (status == TSR_OK) tsr_output_forgo_hash(out);
    if (status == TSR_OK) status = write_twice(engine, reader, &proof, to, out, &exporter, &decoded, error);
    tsr_account_close(account); /* reading the file again claims anew */
    if (status == TSR_OK) status = tsr_finish_file(engine, out, report, error);
    if (status == TSR_OK)
        status = prove(engine, input, exporter, &proof.samples,
                       held + tsr_container_memory(reader) + 2 * tsr_raster_bytes(&header->image), out, report, error);
    if (status == TSR_OK) status = tsr_input_ask(input, error);
    if (status == TSR_OK) {
        tsr_report_restored(reader, &proof, &decoded, report);
        if (report->promise == TSR_PROMISE_FILE) report->promise = TSR_PROMISE_SAMPLES;
        report->bytes_out = tsr_output_size(out);
        report_left_out(exporter, report);
        status = tsr_deliver_file(sink, out, report, error);
    }
    tsr_exporter_free(exporter);
    tsr_output_close(out);
    return status;
}
