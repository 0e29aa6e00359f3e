/* A file to a .tsr, with proof. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "call.h"
#include "files.h"
#include "io/formats/values.h"
#include "loss/range.h"

const char *tsr_never_lossy(const struct tsr_image *image)
{
    return image->exact_only                                       ? "palette indices"
           : image->bits_allocated == 1 || image->bits_stored == 1 ? "samples of one bit"
           : image->bits_allocated == 32                           ? "samples of 32 bits"
                                                                   : NULL;
}

struct tsr_coding tsr_without_loss(const struct tsr_coding *coding)
{
    return (struct tsr_coding){.coder = coding->coder, .effort = coding->effort};
}

struct tsr_coding tsr_coding_of_frames(const struct tsr_header *header)
{
    return header->patches.count > 0 ? tsr_without_loss(&header->coding) : header->coding;
}

const struct tsr_kept_ranges *tsr_kept_of(const struct tsr_header *header, const struct tsr_coding *coding)
{
    static const struct tsr_kept_ranges none = {0};
    return coding->lossy && header->patches.count == 0 ? &header->kept : &none;
}

/* Without loss: by path P, whatever a lossy coding would have taken. */
static enum tsr_status drop_loss(const struct tsr_wanted *wanted, struct tsr_coding *coding, struct tsr_error *error)
{
    *coding = tsr_without_loss(&wanted->coding);
    return tsr_resolve_coding(coding, error);
}

/* The coding that this image gets: what was asked for, or lossless where loss makes no sense. */
static enum tsr_status settle_coding(struct tsr_source *source, const struct tsr_wanted *wanted,
                                     struct tsr_coding *coding, struct tsr_report *report, struct tsr_error *error)
{
    const struct tsr_image *image = &source->header.image;
    *coding = wanted->settled ? *wanted->settled : wanted->coding;
    if (wanted->settled) return TSR_OK;
    TSR_TRY(tsr_resolve_coding(coding, error));
    if (!tsr_has_frames(&source->header)) return TSR_OK;
    if (tsr_is_spliced(&source->header) && !source->header.exact)
        snprintf(report->reason, sizeof report->reason, "samples alone: they come back in a native file");
    if (tsr_makes_png(&source->header) && !source->header.exact)
        snprintf(report->reason, sizeof report->reason, "samples alone: they come back in a PNG that is written anew");
    if (source->left_out)
        snprintf(
            report->reason, sizeof report->reason,
            "samples alone: they come back in a native file without the coded pixel data in its element (%04x,%04x)",
            (unsigned)(source->left_out >> 16), (unsigned)(source->left_out & 0xffff));
    if (!coding->lossy) return TSR_OK;
    const char *exact = source->only_lossless ? source->only_lossless : tsr_never_lossy(image);
    bool few = false;
    if (!exact) {
        TSR_TRY(tsr_source_hold(source, error)); /* its frames are looked at three times */
        TSR_TRY(tsr_has_few_values(source, &few, error));
    }
    if (few) exact = "images of at most 16 values";
    if (exact) {
        snprintf(report->reason, sizeof report->reason, "coded without loss: %s are never coded with loss", exact);
        return drop_loss(wanted, coding, error);
    }
    if (source->never_lossy && !wanted->allow_lossy)
        return tsr_fail(error, TSR_ERROR_USAGE, "%s is not coded with loss: %s (allow_lossy is not set)",
                        tsr_input_name(source->input), source->lossy_objection);
    return TSR_OK;
}

/* The range by which a lossy coding counts, and its QP by that, which a settled coding has: finer steps than 0.63 give
 * nothing. And the values that it keeps; if the file or the caller names most of them, nothing is lost. */
static enum tsr_status settle_values(struct tsr_source *source, const struct tsr_wanted *wanted,
                                     struct tsr_coding *coding, struct tsr_report *report, struct tsr_error *error)
{
    const struct tsr_image *const image = &source->header.image;
    const uint32_t whole = tsr_whole_range(image);
    /* that of a series whose slopes differ may be wider than a slice's words */
    const uint32_t most = source->windows.slope > 0 ? TSR_MOST_RANGE : whole;
    const uint32_t given = wanted->range < most ? wanted->range : most;
    struct tsr_values_found found;
    TSR_TRY(tsr_keep_wanted(&source->header, wanted->kept, wanted->kept_count, tsr_input_name(source->input), error));
    TSR_TRY(tsr_look_at_values(source, &found, error));
    if (found.is_mostly_kept && !wanted->settled) {
        snprintf(report->reason, sizeof report->reason,
                 "coded without loss: more than half of its samples have values that loss must not change");
        return drop_loss(wanted, coding, error);
    }
    const uint32_t range = given > 0 && tsr_has_own_range(image) ? given : found.range;
    source->header.range = range == whole ? 0 : range;
    if (wanted->target != TSR_TARGET_NONE || wanted->settled) return TSR_OK;
    if (coding->path != TSR_PATH_TRANSFORM) return tsr_check_coding(image, coding, error);
    coding->qp_eighths = tsr_qp_of_samples(image, range, coding->qp_eighths); /* all that the quantiser can have */
    return TSR_OK;
}

static enum tsr_status open_source(struct tsr_input *input, const struct tsr_source_options *options,
                                   const struct tsr_wanted *wanted, struct tsr_source **source, struct tsr_error *error)
{
    TSR_TRY(tsr_source_open(input, options, source, error));
    (*source)->header.image.tile_side = wanted->tile_side;
    return TSR_OK;
}

/* Opens the source and gives it its coding. */
static enum tsr_status open_coded(struct tsr_engine *engine, struct tsr_input *input,
                                  const struct tsr_source_options *source_options, const struct tsr_wanted *wanted,
                                  struct tsr_source **source, struct tsr_report *report, struct tsr_error *error)
{
    struct tsr_coding coding;
    TSR_TRY(open_source(input, source_options, wanted, source, error));
    TSR_TRY(settle_coding(*source, wanted, &coding, report, error));
    const struct tsr_region_option regions[] = {{wanted->roi, "roi"}, {wanted->first, "first"}};
    for (int i = 0; i < 2; i++)
        if (regions[i].region && tsr_has_samples(&(*source)->header))
            TSR_TRY(tsr_check_region(*source, &regions[i], error));
    if (tsr_has_pieces(&(*source)->header)) return TSR_OK; /* it has claimed */
    if (!tsr_has_frames(&(*source)->header)) return tsr_input_claim(input, NULL, &(struct tsr_need){0}, error);
    if (coding.lossy) TSR_TRY(settle_values(*source, wanted, &coding, report, error));
    const uint32_t range = (*source)->header.range;
    const struct tsr_kept_ranges kept = (*source)->header.kept;
    const bool has_tried = coding.lossy && wanted->target != TSR_TARGET_NONE;
    if (has_tried) {
        struct tsr_patches apart = {0};
        if (wanted->roi) TSR_TRY(tsr_settle_region(*source, wanted->roi, &apart, error));
        TSR_TRY(
            tsr_meet_target(engine, *source, wanted, apart.count > 0 ? &apart : NULL, &coding, &report->tries, error));
        if (!coding.lossy)
            snprintf(report->reason, sizeof report->reason, "coded without loss: %s",
                     wanted->target == TSR_TARGET_PSNR      ? "no step has that PSNR"
                     : wanted->target == TSR_TARGET_SSIM    ? "no step has that SSIM"
                     : wanted->target == TSR_TARGET_QUALITY ? "no step has that quality"
                                                            : "that is small enough");
    }
    const bool was_expected = (*source)->only_lossless || tsr_never_lossy(&(*source)->header.image);
    if (has_tried || (wanted->coding.lossy && !coding.lossy && !was_expected)) {
        struct tsr_source_options again = *source_options; /* without loss, a PNG is proven when it is opened */
        again.may_lose = coding.lossy;
        tsr_source_close(*source);
        *source = NULL;
        TSR_TRY(open_source(input, &again, wanted, source, error));
        (*source)->header.range = range;
        (*source)->header.kept = kept;
    }
    const struct tsr_header pristine = (*source)->header;
    tsr_set_coding(*source, &pristine, &coding);
    TSR_TRY(tsr_settle_base(*source, wanted, error));
    return wanted->first ? tsr_settle_order(*source, wanted->first, &(*source)->header.order, error) : TSR_OK;
}

/* A size is a promise of the whole file, also of one that is stored or coded without loss. */
static enum tsr_status check_size(const struct tsr_wanted *wanted, struct tsr_input *input,
                                  const struct tsr_output *output, struct tsr_error *error)
{
    const uint64_t limit = tsr_size_limit(wanted, tsr_input_size(input)), size = tsr_output_size(output);
    if (size <= limit) return TSR_OK;
    return tsr_fail(error, TSR_ERROR_USAGE, "%s is not coded with loss, and takes %llu bytes, not %llu",
                    tsr_input_name(input), (unsigned long long)size, (unsigned long long)limit);
}

/* Another form of a file, which was measured: it stays as it is, or is packed. */
struct form {
    struct tsr_source *source;
    struct tsr_output *output; /* what it becomes, in memory; to nothing: it must be encoded again */
    struct tsr_proof proof;
    struct tsr_encoded encoded;
};

static void free_form(struct form *form)
{
    tsr_output_close(form->output);
    tsr_source_close(form->source);
    *form = (struct form){0};
}

static bool is_kept(const struct form *form)
{
    return form->output && tsr_output_is_memory(form->output);
}

/* Opens a file in another form, and measures that. What a packed one becomes is kept, if it takes no more than the
 * file; TSR_DECLINED: it does. It would be compressed twice else, which is most of the work. A small file has
 * sections first, which take more than it does in the end. */
static enum tsr_status measure_form(struct tsr_engine *engine, struct tsr_input *input,
                                    const struct tsr_source_options *options, struct form *form,
                                    struct tsr_error *error)
{
    const uint64_t most = tsr_input_size(input);
    TSR_TRY(tsr_source_open(input, options, &form->source, error));
    const bool keeps = tsr_has_pieces(&form->source->header);
    form->output = keeps ? tsr_output_to_memory() : tsr_output_to_null();
    if (!form->output) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory to write");
    tsr_output_forgo_hash(form->output);
    if (keeps) { /* packed files are held in memory: the sum is no overflow */
        TSR_TRY(tsr_output_make_room(form->output, (size_t)(most + TSR_EXCESS_BYTES), error));
        tsr_output_limit(form->output, most + TSR_EXCESS_BYTES);
    }
    TSR_TRY(tsr_encode(engine, form->source, form->output, &form->proof, &form->encoded, error));
    return keeps && tsr_output_size(form->output) > most ? tsr_fail(error, TSR_DECLINED, "coded, it would be larger")
                                                         : TSR_OK;
}

/* Why a source that could be coded is stored. */
static const char *why_stored(const struct tsr_source *source)
{
    return source->no_samples[0] != '\0' ? source->no_samples : tsr_smaller_stored;
}

/* Measures what the file takes stored as it is or, a PNG, packed: what takes less. The other source of it is known, and
 * what it took. */
static enum tsr_status measure_verbatim(struct tsr_engine *engine, const struct tsr_source *coded, uint64_t size,
                                        struct form *form, struct tsr_error *error)
{
    const bool is_png = tsr_makes_png(&coded->header) && coded->header.exact;
    struct tsr_source_options options = {
        .verbatim = true, .reason = why_stored(coded), .packs = true, .opened = is_png ? coded : NULL, .coded = size};
    enum tsr_status status = measure_form(engine, coded->input, &options, form, error);
    if (status == TSR_DECLINED && is_kept(form)) {
        free_form(form);
        options.packs = false;
        status = measure_form(engine, coded->input, &options, form, error);
    }
    return status;
}

/* TSR_DECLINED, with that as the reason, if a file that took this many bytes is smaller verbatim. Where it is far
 * smaller than the input that is not looked at: zstd would have to be better by a third than what is made for images,
 * or, on what is compressed already, to find something to do. A file with residues that are longer than the input is
 * never kept: the evaluator refuses them. most: bytes at the worst of the efforts that were tried, so that a higher
 * effort looks wherever a lower one does. */
static enum tsr_status check_gain(struct tsr_engine *engine, const struct tsr_source *source, uint64_t size,
                                  uint64_t most, struct form *instead, struct tsr_error *error)
{
    enum { SMALL_PNG = 1 << 14 };
    const struct tsr_header *const header = &source->header;
    const uint64_t whole = tsr_input_size(source->input);
    const bool was_native = tsr_is_spliced(header) && header->image.bits_allocated > 1;
    /* to pack a PNG takes long: where it need not come back exactly, only a small one is packed to be a bit smaller */
    const bool is_png = tsr_makes_png(header) && (header->exact || whole <= SMALL_PNG);
    const uint64_t little = is_png ? whole / 8 * 5 : whole / 16 * (was_native ? 12 : 15);
    const bool is_refused = source->blob_size[TSR_BLOB_RESIDUES] > whole;
    /* streams that are units, frames of a video and values may repeat each other, which general compression sees */
    const bool may_repeat = tsr_are_units(header) || (tsr_has_planes(header) && header->image.frames > 1) ||
                            (tsr_has_values(header) && !tsr_is_deflated(header)),
               is_surely_less = most <= little && !is_refused && !may_repeat;
    if (!tsr_has_frames(header) || is_surely_less) return TSR_OK;
    const enum tsr_status status = measure_verbatim(engine, source, most, instead, error);
    /* units may take 1/32 more than what is stored: each can be read alone */
    const uint64_t other = status == TSR_OK ? tsr_output_size(instead->output) : 0,
                   more = tsr_are_units(header) ? other / 32 + 16 : 0;
    if (status == TSR_OK && (is_refused || other + more < size))
        return tsr_fail(error, TSR_DECLINED, "%s", why_stored(source));
    free_form(instead);
    return status;
}

/* Of a member, whose blobs are compressed later, the frames alone tell: they are, in a section for each model and one
 * for each payload, no longer than what they replace. */
static enum tsr_status check_frames(const struct tsr_source *source, uint64_t size, struct tsr_error *error)
{
    enum { SECTION_BYTES = 12 };
    uint64_t rest = tsr_input_size(source->input);
    const uint64_t sections = source->header.image.frames > 1 ? 2 * (uint64_t)source->header.image.frames : 0;
    if (!tsr_has_frames(&source->header)) return TSR_OK;
    for (int blob = 0; blob < TSR_BLOB_COUNT; blob++)
        rest -= source->blob_size[blob] < rest ? source->blob_size[blob] : rest;
    return size + SECTION_BYTES * sections <= rest ? TSR_OK : tsr_fail(error, TSR_DECLINED, "%s", why_stored(source));
}

/* One try; TSR_DECLINED: it must be verbatim, as *instead if that has a source. */
static enum tsr_status try_container(struct tsr_engine *engine, struct tsr_source *source, struct tsr_output *output,
                                     const struct tsr_wanted *wanted, bool is_member, struct tsr_written *written,
                                     struct tsr_encoded *encoded, struct form *instead, struct tsr_error *error)
{
    const uint64_t start = tsr_output_size(output);
    encoded->estimates = source->header.coding.lossy && !wanted->settled && wanted->target != TSR_TARGET_BYTES &&
                         wanted->target != TSR_TARGET_RATIO;
    encoded->stops_if_longer = !wanted->raster; /* stored as it is it would have no image */
    encoded->coder = wanted->coding.coder;
    encoded->independent = wanted->independent;
    if (is_member) {
        const struct tsr_image *const image = &source->header.image;
        encoded->keeps_raster = image->frames == 1 && tsr_stack_limit(image, &source->header.coding) > 0;
        if (wanted->keeps_origin) tsr_input_origin(source->input, &source->header.origin);
        TSR_TRY(tsr_encode_to_writer(engine, source, output, true, &written->writer, &written->proof, encoded, error));
        return check_frames(source, tsr_container_payload_bytes(written->writer), error);
    }
    TSR_TRY(tsr_encode(engine, source, output, &written->proof, encoded, error));
    const uint64_t size = tsr_output_size(output) - start;
    if (!wanted->raster) TSR_TRY(check_gain(engine, source, size, size + encoded->longer, instead, error));
    return check_size(wanted, source->input, output, error);
}

/* Writes what a measured form has become already. */
static enum tsr_status put_form(const struct form *form, struct tsr_input *input, struct tsr_output *output,
                                const struct tsr_wanted *wanted, struct tsr_written *written,
                                struct tsr_encoded *encoded, struct tsr_error *error)
{
    written->proof = form->proof;
    *encoded = form->encoded;
    TSR_TRY(tsr_output_write(output, tsr_output_bytes(form->output), (size_t)tsr_output_size(form->output), error));
    return check_size(wanted, input, output, error);
}

/* Bytes of memory that the output takes, if it is in memory. */
static uint64_t output_room(const struct tsr_input *input, const struct tsr_output *output, bool is_member)
{
    return tsr_output_is_memory(output) && !is_member ? tsr_input_size(input) + 2 * TSR_EXCESS_BYTES : 0;
}

static void note_written(const struct tsr_source *source, const struct tsr_encoded *encoded,
                         struct tsr_written *written)
{
    written->header = source->header;
    snprintf(written->header.damage, sizeof written->header.damage, "%s", tsr_input_damage(source->input));
    written->tried_loss |= tsr_has_frames(&source->header) && source->header.coding.lossy;
    written->ssim = encoded->difference.ssim;
    memcpy(written->modality, source->modality, sizeof written->modality);
    written->own_window = encoded->own_window;
    written->windows_left_out = source->windows.left_out;
    written->windows_note = source->windows.note;
}

/* Bytes of what was written: all since the output had as many as before; of a member, but for blobs that wait. */
static uint64_t bytes_of(const struct form *form, const struct tsr_container_writer *member,
                         const struct tsr_output *output, uint64_t before)
{
    if (!member) return tsr_output_size(output) - before;
    const struct tsr_source *const source = form->source;
    const uint64_t residues = source->header.exact ? source->blob_size[TSR_BLOB_RESIDUES] : 0;
    return tsr_container_bytes_to_be(member) + residues;
}

enum tsr_status tsr_write_once(struct tsr_engine *engine, struct tsr_input *input, struct tsr_output *output,
                               const struct tsr_wanted *wanted, bool is_member, struct tsr_written *written,
                               struct tsr_report *report, struct tsr_error *error)
{
    struct tsr_inner_files inner_files = {engine, wanted};
    struct tsr_source_options source_options = {.packs = true,
                                                .inner = {tsr_compress_inner, &inner_files},
                                                .samples_only = wanted->samples_only,
                                                .may_lose =
                                                    wanted->settled ? wanted->settled->lossy : wanted->coding.lossy,
                                                .frames_apart = wanted->roi != NULL,
                                                .raster = wanted->raster};
    const struct tsr_output_mark start = tsr_output_mark(output);
    const uint64_t before = tsr_output_size(output);
    const uint64_t room = output_room(input, output, is_member);
    char reason[sizeof report->reason];
    struct form instead = {0}; /* was measured */
    for (;;) {
        struct form form = instead;
        struct tsr_encoded encoded = {0};
        const double opening = tsr_seconds();
        enum tsr_status status =
            form.source ? TSR_OK : open_coded(engine, input, &source_options, wanted, &form.source, report, error);
        instead = (struct form){0};
        report->read_s += tsr_seconds() - opening;
        if (status == TSR_OK && room > 0) status = tsr_output_make_room(output, (size_t)room, error);
        if (status == TSR_OK && is_kept(&form))
            status = put_form(&form, input, output, wanted, written, &encoded, error);
        else if (status == TSR_OK)
            status = try_container(engine, form.source, output, wanted, is_member, written, &encoded, &instead, error);
        if (form.source) note_written(form.source, &encoded, written);
        written->raster = encoded.raster;
        written->estimate = encoded.estimate;
        written->gives_way = encoded.gives_way;
        written->payload_bytes = written->writer ? tsr_container_payload_bytes(written->writer) : encoded.payload_bytes;
        if (status == TSR_OK) written->bytes = bytes_of(&form, written->writer, output, before);
        report->payload_bytes = encoded.payload_bytes;
        report->engine = encoded.engine;
        report->read_s += encoded.read_s;
        report->write_s += encoded.write_s;
        snprintf(report->fallback, sizeof report->fallback, "%s", encoded.fallback ? encoded.fallback : "");
        free_form(&form);
        if (status != TSR_DECLINED || encoded.gives_way || source_options.verbatim || wanted->raster) return status;
        snprintf(reason, sizeof reason, "%.*s", (int)sizeof reason - 1, error->text);
        source_options.verbatim = true;
        source_options.reason = reason;
        report->reason[0] = '\0';
        free(written->raster);
        written->raster = NULL;
        tsr_container_writer_free(written->writer);
        written->writer = NULL;
        status = tsr_output_return(output, &start, error);
        if (status == TSR_OK) continue;
        free_form(&instead);
        return status;
    }
}

enum tsr_status tsr_write_container(struct tsr_engine *engine, struct tsr_input *input, struct tsr_output *output,
                                    const struct tsr_wanted *wanted, bool is_member, struct tsr_written *written,
                                    struct tsr_report *report, struct tsr_error *error)
{
    struct tsr_account account;
    memset(written, 0, sizeof *written);
    struct tsr_memory_account *const above = tsr_input_account(input);
    if (above)
        tsr_account_open_inner(&account, (struct tsr_account *)above, engine, input, &wanted->coding);
    else
        tsr_account_open(&account, engine, input, &wanted->coding);
    account.base.is_verified = wanted->verify != TSR_VERIFY_NONE;
    account.is_raster = wanted->raster != NULL;
    account.kept_count = wanted->kept_count;
    account.kept = wanted->kept;
    account.is_member = is_member;
    account.has_first = wanted->first != NULL;
    account.tile_side = wanted->tile_side;
    account.is_independent = wanted->independent;
    account.output_bytes = output_room(input, output, is_member) * (1u + (wanted->key != NULL) + account.has_first);
    const bool has_base = wanted->lossless_rest || wanted->roi;
    struct tsr_output *const base = has_base ? tsr_output_to_memory() : NULL;
    struct tsr_wanted on_base = *wanted;
    enum tsr_status status;
    if (!has_base)
        status = tsr_write_smaller(&account, input, output, wanted, is_member, written, report, error);
    else if (base && wanted->roi)
        status = tsr_write_with_region(&account, input, output, &on_base, written, report, base, error);
    else if (base)
        status = tsr_write_on_base(&account, input, output, &on_base, written, report, base, error);
    else
        status = tsr_fail(error, TSR_ERROR_LIMIT, "no memory for a base");
    written->base_bytes = written->header.has_base ? on_base.base.size : 0;
    tsr_output_close(base);
    tsr_input_set_account(input, NULL);
    tsr_input_drop_held(input);
    tsr_account_close(&account);
    return status;
}

static enum tsr_status prove(struct tsr_engine *engine, const struct tsr_wanted *wanted, struct tsr_input *in,
                             struct tsr_output *out, const struct tsr_proof *expected, struct tsr_report *report,
                             struct tsr_error *error)
{
    const double start = tsr_seconds();
    if (wanted->verify == TSR_VERIFY_NONE) return TSR_OK;
    report->read_from_disk = tsr_output_drop_cache(out);
    const enum tsr_status status =
        tsr_verify_output(engine, wanted->verify, out, wanted->key, in, expected, report, error);
    report->verify_s = tsr_seconds() - start;
    report->verified = status == TSR_OK;
    return status;
}

/* Writes a file and proves it. *out: NULL, or what is to be delivered. *finished: when it was written. */
static enum tsr_status write_proven(struct tsr_engine *engine, struct tsr_input *in, const struct tsr_data_sink *sink,
                                    const struct tsr_wanted *wanted, struct tsr_output **out, double *finished,
                                    struct tsr_written *written, struct tsr_report *report, struct tsr_error *error)
{
    struct tsr_output *spool = NULL; /* what is to be encrypted */
    enum tsr_status status = tsr_open_sink(sink, true, out, error);
    if (status == TSR_OK) tsr_output_inherit(*out, in);
    if (status == TSR_OK && wanted->key) status = tsr_output_create_spool(*out, true, &spool, error);
    struct tsr_output *const plain = spool ? spool : *out;
    if (status == TSR_OK) tsr_output_forgo_hash(*out); /* its sections, or blocks, have theirs */
    if (status == TSR_OK) tsr_output_forgo_hash(plain);
    if (status == TSR_OK) status = tsr_write_container(engine, in, plain, wanted, false, written, report, error);
    if (status == TSR_OK) status = tsr_check_loss(wanted, written, tsr_input_name(in), error);
    if (status == TSR_OK && spool) status = tsr_output_seal(spool, wanted->key, *out, error);
    tsr_output_close(spool);
    if (status == TSR_OK) status = tsr_finish_file(engine, *out, report, error);
    *finished = tsr_seconds();
    return status == TSR_OK ? prove(engine, wanted, in, *out, &written->proof, report, error) : status;
}

static enum tsr_status compress_file(struct tsr_engine *engine, const struct tsr_data_source *source,
                                     const struct tsr_data_sink *sink, const struct tsr_wanted *wanted,
                                     struct tsr_report *report, struct tsr_error *error)
{
    struct tsr_input *in = NULL;
    struct tsr_output *out = NULL;
    struct tsr_written written = {0};
    const double start = tsr_seconds();
    double finished = start;
    bool guessed = false;
    enum tsr_status status = tsr_open_source(source, &in, error);
    if (status == TSR_OK && wanted->verify != TSR_VERIFY_NONE) tsr_input_set_guessed(in, &guessed);
    if (status == TSR_OK) status = write_proven(engine, in, sink, wanted, &out, &finished, &written, report, error);
    if (status == TSR_ERROR_VERIFY && guessed) { /* perhaps because of that */
        tsr_output_close(out);
        out = NULL;
        tsr_clear_report(report);
        tsr_input_set_guessed(in, NULL);
        status = write_proven(engine, in, sink, wanted, &out, &finished, &written, report, error);
    }
    if (status == TSR_OK) status = tsr_input_ask(in, error);
    if (status == TSR_OK) {
        tsr_report_written(wanted, &written, report);
        report->bytes_out = tsr_output_size(out);
        report->encode_s = finished - start;
        status = tsr_deliver_file(sink, out, report, error);
    }
    status = tsr_input_end(in, status, error);
    tsr_output_close(out);
    tsr_input_close(in);
    return status;
}

static enum tsr_status run_compress(const struct tsr_call *call)
{
    return compress_file(call->engine, call->source, call->sink, call->options, call->report, call->error);
}

/* raster: the image that the source is a raster of; NULL: it is a file. */
static enum tsr_status compress(struct tsr_engine *engine, const struct tsr_image *raster,
                                const struct tsr_data_source *source, const struct tsr_data_sink *sink,
                                const struct tsr_compress_options *options, struct tsr_report *report,
                                struct tsr_error *error)
{
    struct tsr_wanted wanted;
    struct tsr_error ignored;
    struct tsr_report own;
    if (!error) error = &ignored;
    TSR_TRY(tsr_check_pointer(engine, "engine", error));
    TSR_TRY(tsr_check_source(source, error));
    TSR_TRY(tsr_check_sink(sink, error));
    TSR_TRY(tsr_check_apart(source, sink, error));
    TSR_TRY(tsr_want(options, &wanted, error));
    TSR_TRY(tsr_check_report(&report, &own, error));
    wanted.raster = raster;
    wanted.kept_count = source->kept_count;
    wanted.kept = source->kept;
    wanted.key = sink->key;
    tsr_clear_report(report);
    const struct tsr_call call = {.run = run_compress,
                                  .engine = engine,
                                  .source = source,
                                  .sink = sink,
                                  .options = &wanted,
                                  .report = report,
                                  .error = error};
    return tsr_run_call(&call);
}

enum tsr_status tsr_compress(struct tsr_engine *engine, const struct tsr_data_source *source,
                             const struct tsr_data_sink *sink, const struct tsr_compress_options *options,
                             struct tsr_report *report, struct tsr_error *error)
{
    return compress(engine, NULL, source, sink, options, report, error);
}

enum tsr_status tsr_compress_raster(struct tsr_engine *engine, const struct tsr_image *image,
                                    const struct tsr_data_source *source, const struct tsr_data_sink *sink,
                                    const struct tsr_compress_options *options, struct tsr_report *report,
                                    struct tsr_error *error)
{
    TSR_TRY(tsr_check_image(image, error));
    if (image->stacked_rows)
        return tsr_fail(error, TSR_ERROR_USAGE, "image->stacked_rows is %u: set it to 0, a raster has no stacked rows",
                        image->stacked_rows);
    return compress(engine, image, source, sink, options, report, error);
}
