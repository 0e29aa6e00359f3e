/* Files with a base: BASE.md. See files.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/library/files.h"
#include "app/library/loss/range.h"

enum { TSR_EFFORT_BASE = 7 };

enum tsr_status tsr_settle_base(struct tsr_source *source, const struct tsr_wanted *wanted, struct tsr_error *error)
{
    struct tsr_input *input = NULL;
    struct tsr_container_reader *reader = NULL;
    if (!tsr_has_samples(&source->header)) return TSR_OK;
    if (wanted->base.size == 0 || (wanted->roi ? !tsr_may_have_patches(&source->header) : !source->header.exact))
        return TSR_OK;
    input = tsr_input_from_memory(wanted->base.bytes, wanted->base.size, tsr_input_name(source->input));
    if (!input) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for a base");
    const enum tsr_status status = tsr_container_open(input, &reader, error);
    source->header.has_base = status == TSR_OK && tsr_fits_base(&source->header, tsr_container_header(reader));
    if (source->header.has_base) source->header.base_id = tsr_container_id(reader);
    source->base.bytes = wanted->base.bytes;
    source->base.size = wanted->base.size;
    tsr_container_close(reader);
    tsr_input_close(input);
    if (status != TSR_OK || !wanted->roi || !source->header.has_base) return status;
    return tsr_settle_region(source, wanted->roi, &source->header.patches, error);
}

/* Before a file is written in another way: what is known of it is forgotten, and its memory claimed anew. */
static void begin_again(struct tsr_input *input, struct tsr_written *written, struct tsr_report *report)
{
    report->reason[0] = '\0';
    memset(written, 0, sizeof *written);
    tsr_input_give_back(input);
}

/* The coding of a base: at efforts 5 and 6 that of effort 7, with which it takes 0.70 to 0.95 of the bytes, and all of
 * the file 0.96 to 1.01 of the instructions (tests/bench/decisions/058). */
static struct tsr_coding coding_of_base(const struct tsr_coding *wanted)
{
    struct tsr_coding coding = *wanted;
    const int effort = coding.effort ? coding.effort : TSR_EFFORT_DEFAULT;
    if (effort >= TSR_EFFORT_DEFAULT && effort < TSR_EFFORT_BASE) coding.effort = TSR_EFFORT_BASE;
    return coding;
}

enum tsr_status tsr_write_on_base(struct tsr_account *account, struct tsr_input *input, struct tsr_output *output,
                                  struct tsr_wanted *wanted, struct tsr_written *written, struct tsr_report *report,
                                  struct tsr_output *base, struct tsr_error *error)
{
    struct tsr_wanted lossy = *wanted, lossless = *wanted;
    struct tsr_coding coding = tsr_without_loss(&wanted->coding);
    char reason[sizeof report->reason];
    lossy.coding = account->coding = coding_of_base(&wanted->coding);
    TSR_TRY(tsr_resolve_coding(&account->coding, error));
    account->output_bytes += tsr_input_size(input) + 2 * TSR_EXCESS_BYTES; /* of the base */
    account->has_base = true;
    TSR_TRY(tsr_write_smaller(account, input, base, &lossy, false, written, report, error));
    TSR_TRY(tsr_check_loss(wanted, written, tsr_input_name(input), error));
    struct tsr_told_loss loss;
    tsr_tell_loss(&written->header, &written->proof, &loss);
    memcpy(reason, report->reason, sizeof reason);
    const bool is_lossy = tsr_has_frames(&written->header) && written->header.coding.lossy;
    TSR_TRY(tsr_resolve_coding(&coding, error));
    lossless.coding = coding;
    lossless.coding.coder = wanted->coding.coder;
    lossless.target = TSR_TARGET_NONE;
    lossless.kept_count = 0;
    if (is_lossy) lossless.base = (struct tsr_piece){tsr_output_bytes(base), (size_t)tsr_output_size(base)};
    account->coding = coding;
    account->has_base = is_lossy;
    const struct tsr_output_mark start = tsr_output_mark(output);
    begin_again(input, written, report);
    TSR_TRY(tsr_write_smaller(account, input, output, &lossless, false, written, report, error));
    wanted->base = lossless.base;
    written->base_loss = loss;
    if (written->header.has_base) return TSR_OK;
    const bool is_too_large = is_lossy && !tsr_has_frames(&written->header);
    if (is_too_large) { /* stored it is smaller; without a base it may be coded all the same */
        lossless.base = (struct tsr_piece){NULL, 0};
        account->has_base = false;
        begin_again(input, written, report);
        TSR_TRY(tsr_output_return(output, &start, error));
        TSR_TRY(tsr_write_smaller(account, input, output, &lossless, false, written, report, error));
    }
    const char *const why = is_too_large ? "with one it would be larger than stored"
                            : reason[0]  ? reason
                            : is_lossy   ? "with loss its samples lie in another way"
                                         : "it has no samples";
    snprintf(report->reason, sizeof report->reason, "no base: %.240s", why);
    return TSR_OK;
}

/* ---- Files with a region that comes back as it was ----------------------------------------------------------------
 */

/* Whether no loss at all may take at most 1.1 times the bytes: if what is known of the frames leaves that open. */
static bool may_be_small_enough(const struct tsr_estimate *frames, uint64_t bytes)
{
    return frames->lossless == 0 || frames->is_exact || (frames->around + frames->lossless) * 4 < bytes * 5;
}

/* Without loss, where that takes at most 1.1 times the bytes of what was written. */
static enum tsr_status write_whole(struct tsr_account *account, struct tsr_input *input, struct tsr_output *output,
                                   const struct tsr_output_mark *start, const struct tsr_wanted *wanted,
                                   struct tsr_written *written, struct tsr_report *report, struct tsr_output *whole,
                                   struct tsr_error *error)
{
    const struct tsr_written before = *written;
    const struct tsr_report told = *report;
    struct tsr_wanted lossless = *wanted;
    struct tsr_coding coding = tsr_without_loss(&wanted->coding);
    TSR_TRY(tsr_resolve_coding(&coding, error));
    lossless.roi = NULL;
    lossless.settled = &coding;
    lossless.target = TSR_TARGET_NONE;
    lossless.base = (struct tsr_piece){NULL, 0};
    account->coding = coding;
    account->has_base = account->has_region = false;
    begin_again(input, written, report);
    TSR_TRY(tsr_write_once(account->engine, input, whole, &lossless, false, written, report, error));
    if (written->bytes * 10 > before.bytes * 11) {
        *written = before;
        *report = told;
        return TSR_OK;
    }
    snprintf(report->reason, sizeof report->reason, "%s", tsr_not_smaller);
    TSR_TRY(tsr_output_return(output, start, error));
    return tsr_output_write(output, tsr_output_bytes(whole), (size_t)tsr_output_size(whole), error);
}

enum tsr_status tsr_write_with_region(struct tsr_account *account, struct tsr_input *input, struct tsr_output *output,
                                      struct tsr_wanted *wanted, struct tsr_written *written, struct tsr_report *report,
                                      struct tsr_output *base, struct tsr_error *error)
{
    struct tsr_wanted on_base = *wanted;
    const struct tsr_output_mark start = tsr_output_mark(output);
    account->output_bytes += 2 * (tsr_input_size(input) + 2 * TSR_EXCESS_BYTES); /* of the base, and without loss */
    account->has_region = true;
    TSR_TRY(tsr_write_smaller(account, input, base, wanted, false, written, report, error));
    const struct tsr_piece tsr = {tsr_output_bytes(base), (size_t)tsr_output_size(base)};
    if (!tsr_has_frames(&written->header) || !written->header.coding.lossy)
        return tsr_output_write(output, tsr.bytes, tsr.size, error);
    const struct tsr_coding coding = written->header.coding;
    const struct tsr_estimate frames = written->estimate;
    struct tsr_told_loss loss;
    tsr_tell_loss(&written->header, &written->proof, &loss);
    on_base.settled = &coding;
    on_base.range = tsr_header_range(&written->header);
    on_base.target = TSR_TARGET_NONE;
    on_base.base = tsr;
    account->coding = coding;
    account->has_base = true;
    begin_again(input, written, report);
    TSR_TRY(tsr_write_once(account->engine, input, output, &on_base, false, written, report, error));
    wanted->base = tsr;
    written->base_loss = loss;
    if (!written->header.has_base || !may_be_small_enough(&frames, written->bytes)) return TSR_OK;
    struct tsr_output *const whole = tsr_output_to_memory();
    if (!whole) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory to code without loss");
    const enum tsr_status status = write_whole(account, input, output, &start, &on_base, written, report, whole, error);
    tsr_output_close(whole);
    return status;
}
