/* A .tsr, or a file of a series, to what it restores; and calls that restore, test or export a .tsr. */
#include "call.h"
#include "files.h"

/* Without a sink it is tested. */
static enum tsr_status restore_file(struct tsr_engine *engine, struct tsr_input *input,
                                    struct tsr_container_reader *reader, struct tsr_account *account,
                                    const struct tsr_data_sink *sink, bool whole, struct tsr_report *report,
                                    struct tsr_error *error)
{
    const struct tsr_header *const header = tsr_container_header(reader);
    struct tsr_output *out = NULL;
    struct tsr_proof proof;
    struct tsr_decoded decoded;
    bool identical = false;
    const double start = tsr_seconds();
    enum tsr_status status = tsr_container_get_proof(reader, &proof, error);
    if (status == TSR_OK && sink) status = tsr_open_sink(sink, true, &out, error);
    if (status == TSR_OK && sink) tsr_output_inherit(out, input);
    if (status == TSR_OK && sink) tsr_output_return_to(out, &header->origin);
    if (status == TSR_OK && !sink && !(out = tsr_output_to_test(header)))
        status = tsr_fail(error, TSR_ERROR_LIMIT, "no memory to test");
    if (status == TSR_OK)
        status = tsr_restore_and_check(engine, reader, account, &proof, out, &decoded, &identical, error);
    const char *const damage =
        whole && tsr_container_damage(reader) ? tsr_container_damage(reader) : tsr_container_repaired(reader);
    if (status == TSR_OK && !sink && damage)
        status = tsr_fail(
            error, TSR_ERROR_CORRUPT,
            "the %s is damaged; what it says stands elsewhere too, and decompress still restores the file", damage);
    if (status == TSR_OK) status = tsr_finish_file(engine, out, report, error);
    if (status == TSR_OK) status = tsr_input_ask(input, error);
    if (status == TSR_OK) {
        tsr_report_restored(reader, &proof, &decoded, report);
        if (report->promise != TSR_PROMISE_LOSSY) report->promise = identical ? TSR_PROMISE_FILE : TSR_PROMISE_SAMPLES;
        report->bytes_out = tsr_output_size(out);
        if (sink) status = tsr_deliver_file(sink, out, report, error);
        report->verify_s = tsr_seconds() - start;
    }
    tsr_output_close(out);
    return status;
}

enum tsr_status tsr_run_on_file(const struct tsr_call *call, struct tsr_input *input,
                                struct tsr_container_reader *reader, struct tsr_account *account, const char *name,
                                bool whole)
{
    TSR_TRY(tsr_input_authenticate(input, call->error));
    if (call->choice == TSR_NO_EXPORT)
        return restore_file(call->engine, input, reader, account, call->sink, whole, call->report, call->error);
    return tsr_export_file(call->engine, input, reader, account, name, call->sink, (enum tsr_export_syntax)call->choice,
                           call->report, call->error);
}

static enum tsr_status run_on_source(const struct tsr_call *call)
{
    const char *const name = tsr_source_name(call->source);
    struct tsr_error *const error = call->error;
    struct tsr_input *in = NULL;
    struct tsr_container_reader *reader = NULL;
    struct tsr_account account;
    enum tsr_status status = tsr_open_source(call->source, &in, error);
    tsr_account_open(&account, call->engine, in, NULL);
    if (status == TSR_OK) status = tsr_container_open(in, &reader, error);
    if (status == TSR_OK && tsr_container_is_series(reader))
        status = tsr_fail(error, TSR_ERROR_USAGE, "%s is a series of %u files", name, tsr_container_members(reader));
    if (status == TSR_OK) status = tsr_run_on_file(call, in, reader, &account, name, true);
    tsr_container_close(reader);
    return tsr_account_end(&account, in, status, error);
}

/* choice: a syntax to export to, or TSR_NO_EXPORT. */
static enum tsr_status check_and_run(struct tsr_engine *engine, const struct tsr_data_source *source, bool has_sink,
                                     const struct tsr_data_sink *sink, int choice, struct tsr_report *report,
                                     struct tsr_error *error)
{
    struct tsr_error ignored;
    struct tsr_report own;
    if (!error) error = &ignored;
    TSR_TRY(tsr_check_pointer(engine, "engine", error));
    TSR_TRY(tsr_check_source(source, error));
    if (has_sink) TSR_TRY(tsr_check_sink(sink, error));
    if (has_sink) TSR_TRY(tsr_check_apart(source, sink, error));
    TSR_TRY(tsr_check_report(&report, &own, error));
    tsr_clear_report(report);
    const struct tsr_call call = {.run = run_on_source,
                                  .engine = engine,
                                  .source = source,
                                  .sink = sink,
                                  .choice = choice,
                                  .report = report,
                                  .error = error};
    return tsr_run_call(&call);
}

enum tsr_status tsr_restore(struct tsr_engine *engine, const struct tsr_data_source *source,
                            const struct tsr_data_sink *sink, struct tsr_report *report, struct tsr_error *error)
{
    return check_and_run(engine, source, true, sink, TSR_NO_EXPORT, report, error);
}

enum tsr_status tsr_test(struct tsr_engine *engine, const struct tsr_data_source *source, struct tsr_report *report,
                         struct tsr_error *error)
{
    return check_and_run(engine, source, false, NULL, TSR_NO_EXPORT, report, error);
}

enum tsr_status tsr_export(struct tsr_engine *engine, const struct tsr_data_source *source,
                           const struct tsr_data_sink *sink, enum tsr_export_syntax to, struct tsr_report *report,
                           struct tsr_error *error)
{
    TSR_TRY(tsr_check_export(to, error));
    return check_and_run(engine, source, true, sink, (int)to, report, error);
}
