/* DICOM: which bytes of a file are samples, and what they mean. FORMAT.md sections 4.1, 4.2 and 4.4. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dicom_derive.h"
#include "dicom_image.h"
#include "encapsulated_source.h"
#include "frame_stream.h"
#include "jpeg_2000.h"
#include "unit_source.h"
#include "io/formats/format.h"
#include "io/formats/values.h"
#include "io/recipe/prove.h"
#include "io/nodes/deflate/deflate.h"

/* True if the file has a preamble and DICM, or, without a preamble, a first tag of group 2 or 8. */
static bool is_dicom(const uint8_t *head, size_t size)
{
    if (size >= 132 && memcmp(head + 128, "DICM", 4) == 0) return true;
    if (size < 8) return false;
    const bool little = (head[0] == 2 || head[0] == 8) && head[1] == 0 && head[3] == 0;
    const bool big = head[0] == 0 && (head[1] == 2 || head[1] == 8) && head[2] == 0;
    return little || big;
}

/* The bytes that a compressed file may unfold to. Real files unfold to less than 64 times their size, or are small. */
#define UNFOLD_LIMIT ((uint64_t)1 << 30)
static size_t unfold_limit(uint64_t file_size)
{
    const uint64_t limit = ((uint64_t)64 << 20) + 64 * (file_size < UNFOLD_LIMIT ? file_size : UNFOLD_LIMIT);
    return (size_t)(limit < UNFOLD_LIMIT ? limit : UNFOLD_LIMIT);
}

/* A file up to the value of its pixel data: its bytes and their meaning. For a deflated file, the inflated bytes. */
struct header {
    const uint8_t *bytes;
    struct tsr_dicom_scan scan;
    struct tsr_dicom dicom;
    struct tsr_dicom_loss loss; /* found only if the image may be coded with loss */
    bool tells_windows;         /* they are asked for: by who may lose, and by readers of samples */
};

struct dicom_source {
    struct tsr_source base; /* its prefix ends before the value of the pixel data. Of a deflated file, it holds what is
                               inflated */
    struct tsr_dicom_scan scan;
};

/* Whether pixel data without a length is in items. */
static enum tsr_status find_items(struct tsr_input *input, const struct tsr_dicom_element *pixels, bool *has_items,
                                  struct tsr_error *error)
{
    uint8_t first[4] = {0};
    *has_items = false;
    if (pixels->length != TSR_UNDEFINED_LENGTH || tsr_input_size(input) - pixels->value < sizeof first) return TSR_OK;
    TSR_TRY(tsr_input_read(input, pixels->value, first, sizeof first, error));
    *has_items = tsr_dicom_tag(first, false) == TSR_TAG_ITEM || tsr_dicom_tag(first, true) == TSR_TAG_ITEM;
    return TSR_OK;
}

/* Checks that the element of the pixel data can hold native samples, and counts the bytes that are there. Some writers
 * give native pixel data no length: then all bytes to the end of the input may be samples, unless items follow. */
static enum tsr_status check_element(struct tsr_input *input, const struct tsr_dicom_element *pixels,
                                     uint64_t *available, struct tsr_error *error)
{
    const uint64_t left = tsr_input_size(input) - pixels->value;
    bool has_items;
    if (strcmp(pixels->vr, "SQ") == 0) return tsr_fail(error, TSR_ERROR_CORRUPT, "its pixel data has the VR SQ");
    TSR_TRY(find_items(input, pixels, &has_items, error));
    if (has_items) return tsr_fail(error, TSR_ERROR_CORRUPT, "its pixel data is in items in a native transfer syntax");
    *available = pixels->length == TSR_UNDEFINED_LENGTH || left < pixels->length ? left : pixels->length;
    return TSR_OK;
}

/* Bytes of memory for a file's header. Up to twice its bytes are held, since the scan doubles what it holds. For a
 * lossy copy, the header is made again, and the elements of both are listed. */
static uint64_t header_memory(const struct tsr_dicom_scan *scan, bool may_lose)
{
    const uint64_t bytes = scan->pixels.value, grown = bytes + tsr_derived_bytes(scan),
                   elements = scan->elements + tsr_derived_elements(scan);
    return 2 * bytes + (may_lose ? 2 * grown + tsr_dicom_compare_memory(elements) : 0);
}

/* Reads a scanned header, and what it says of loss. Floating point numbers are never coded with loss. */
static enum tsr_status describe_header(struct header *header, bool is_dataset, bool may_lose, struct tsr_error *error)
{
    const struct tsr_dicom_scan *const scan = &header->scan;
    header->loss = (struct tsr_dicom_loss){0};
    TSR_TRY(tsr_dicom_describe(header->bytes, scan, is_dataset, &header->dicom, error));
    if (may_lose && scan->pixels.tag == TSR_TAG_PIXEL_DATA)
        header->loss = tsr_dicom_loss_of(header->bytes, scan, header->dicom.modality);
    return TSR_OK;
}

/* Why the element of native pixel data is not one that may be coded with loss, in words; NULL: it may be. Readers do
 * not agree on how words of VR UN are ordered where other words are big endian (PS3.5, 6.2.2). */
static const char *unusual_element(const struct header *header)
{
    const struct tsr_dicom_element *const pixels = &header->scan.pixels;
    const bool is_unknown = strcmp(pixels->vr, "UN") == 0,
               is_usual = !pixels->vr[0] || strcmp(pixels->vr, "OB") == 0 || strcmp(pixels->vr, "OW") == 0;
    if (pixels->length == TSR_UNDEFINED_LENGTH) return "pixel data without a length";
    if (header->dicom.syntax != TSR_DICOM_NATIVE) return "native pixel data in a transfer syntax of coded frames";
    if (is_unknown && header->dicom.has_big_pixels) return "pixel data of VR UN in big-endian files";
    return is_unknown || is_usual ? NULL : "pixel data of another VR than OB, OW and UN";
}

/* Why native pixel data is never coded with loss, in words; NULL: it may be. */
static const char *only_lossless_of(const struct header *header, const struct tsr_dicom_native *native)
{
    const char *const unusual = unusual_element(header);
    return native->only_lossless ? native->only_lossless : unusual ? unusual : header->loss.only_lossless;
}

/* Marks images that must not be coded with loss by accident. */
static void object_to_loss(const struct header *header, struct tsr_source *source)
{
    source->never_lossy = header->loss.objection != NULL;
    source->lossy_objection = header->loss.objection;
    snprintf(source->modality, sizeof source->modality, "%s", header->dicom.modality);
}

/* Reads the image of a derived header. */
static enum tsr_status read_derived(const uint8_t *derived, size_t size, struct tsr_image *image,
                                    struct tsr_error *error)
{
    struct tsr_dicom_scan scan;
    struct tsr_dicom dicom;
    struct tsr_input *const input = tsr_input_from_memory(derived, size, "it");
    if (!input) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for a header");
    enum tsr_status status = tsr_dicom_scan_file(input, &scan, error);
    tsr_input_close(input);
    TSR_TRY(status);
    TSR_TRY(tsr_dicom_describe(derived, &scan, false, &dicom, error));
    TSR_TRY(tsr_dicom_image(&dicom, image, error));
    if (dicom.syntax == TSR_DICOM_NATIVE && scan.pixels.value == size) return TSR_OK;
    return tsr_fail(error, TSR_ERROR_CORRUPT, "its header does not survive a lossy copy");
}

/* Checks that the derived header is of the same image, and has the same elements except those that record the loss. */
static enum tsr_status check_derived(const struct dicom_source *s, const uint8_t *bytes, const uint8_t *derived,
                                     size_t size, struct tsr_error *error)
{
    const struct tsr_image *const image = &s->base.header.image;
    const struct tsr_dicom_scan *const scan = &s->scan;
    const struct tsr_dicom_bytes original = {bytes, scan->pixels.value, scan->meta_end, scan->is_deflated},
                                 copy = {derived, size, 0, false};
    struct tsr_image again;
    TSR_TRY(read_derived(derived, size, &again, error));
    again.swapped = image->swapped;
    if (!tsr_same_image(&again, image))
        return tsr_fail(error, TSR_ERROR_CORRUPT, "its header does not survive a lossy copy");
    return tsr_dicom_compare_headers(&original, &copy, error);
}

static enum tsr_status derive(struct tsr_source *source, const struct tsr_hash128 *original, double ratio,
                              const struct tsr_value_range *range, struct tsr_error *error)
{
    struct dicom_source *s = (struct dicom_source *)source;
    struct tsr_derivation derivation;
    size_t size = 0;
    tsr_dicom_derive_uid(original, &source->header, derivation.uid);
    tsr_dicom_tell_patches(&source->header, derivation.exact, sizeof derivation.exact);
    derivation.ratio = ratio;
    derivation.range = *range;
    derivation.is_signed = source->header.image.is_signed;
    const uint8_t *bytes = source->held[0];
    uint8_t *derived = NULL;
    if (!bytes) TSR_TRY(tsr_input_hold(source->input, s->scan.pixels.value, &bytes, error));
    TSR_TRY(tsr_dicom_derive(bytes, &s->scan, &derivation, &derived, &size, error));
    tsr_source_clear(source, TSR_BLOB_PREFIX);
    TSR_TRY(tsr_source_put(source, TSR_BLOB_PREFIX, derived, size, true, error));
    return check_derived(s, bytes, derived, size, error);
}

static const struct tsr_source_ops dicom_ops = {.derive = derive};

/* Its frames are the caller's to free. To be called before the bytes of the header move. */
static enum tsr_status tell_windows(const struct header *found, struct tsr_windows *windows, struct tsr_error *error)
{
    *windows = (struct tsr_windows){0};
    if (!found->tells_windows) return TSR_OK;
    return tsr_dicom_tell_windows(found->bytes, &found->scan, &found->dicom, windows, error);
}

/* Describes the samples of a native data set. */
static enum tsr_status describe_native(struct tsr_input *samples, bool is_inflated, const struct header *found,
                                       struct tsr_header *header, struct tsr_dicom_native *native,
                                       struct tsr_error *error)
{
    struct tsr_image *const image = &header->image;
    const struct tsr_dicom_element *const pixels = &found->scan.pixels;
    const struct tsr_dicom *const dicom = &found->dicom;
    uint64_t available = 0;
    TSR_TRY(check_element(samples, pixels, &available, error));
    const enum tsr_status status = tsr_dicom_native_image(dicom, pixels->tag, available, image, native, error);
    if (status == TSR_OK) header->kept = tsr_dicom_kept(dicom, image);
    if (!is_inflated) tsr_dicom_note_native(samples, &found->scan, dicom, native->wanted, available);
    TSR_TRY(status);
    /* OW is swapped as words, whatever the samples are (PS3.5, 8.1.2 and A.3). A word of frames of an odd number of
     * bytes has samples of two frames, or the last one and a pad: no frame is then a range of the file. */
    const bool is_bytes = strcmp(pixels->vr, "OB") == 0 || strcmp(pixels->vr, "UN") == 0;
    image->swapped = dicom->has_big_pixels && !is_bytes && image->bits_allocated <= 8;
    if (image->swapped && tsr_frame_bits(image) % 16 != 0)
        return tsr_fail(error, TSR_ERROR_CORRUPT,
                        "its samples of %d bits are in big-endian words, which its frames do not fill",
                        image->bits_allocated);
    return tsr_check_coded_image(image, error) == TSR_OK ? TSR_OK : TSR_ERROR_CORRUPT;
}

/* Float and Double Float Pixel Data are values (VALUES.md), for which samples stand. */
static enum tsr_status find_floats(struct tsr_input *samples, const struct tsr_dicom_element *pixels,
                                   struct tsr_header *header, struct tsr_error *error)
{
    struct tsr_image image = header->image;
    const uint8_t bits = pixels->tag == TSR_TAG_FLOAT_PIXELS ? 32 : 64;
    if (pixels->tag == TSR_TAG_PIXEL_DATA) return TSR_OK;
    image.components = (uint8_t)(image.components * image.bits_allocated / bits); /* 64 bits are four words here */
    image.bits_allocated = image.bits_stored = bits;
    image.high_bit = (uint8_t)(bits - 1);
    image.is_float = true;
    const enum tsr_status status = tsr_find_values(samples, header, &image, pixels->value, error);
    return status == TSR_DECLINED ? TSR_ERROR_CORRUPT : status;
}

/* Makes a source of a native data set, whose samples are in the input or, inflated, set already. */
static enum tsr_status set_native(struct dicom_source *s, const struct header *found, bool may_lose,
                                  struct tsr_error *error)
{
    struct tsr_source *const source = &s->base;
    const bool is_inflated = source->samples != NULL;
    struct tsr_input *const samples = is_inflated ? source->samples : source->input;
    struct tsr_dicom_native native = {NULL, 0};
    TSR_TRY(tell_windows(found, &source->windows, error));
    TSR_TRY(describe_native(samples, is_inflated, found, &source->header, &native, error));
    if (!is_inflated) TSR_TRY(find_floats(samples, &found->scan.pixels, &source->header, error));
    if (!is_inflated) { /* what is inflated has claimed */
        struct tsr_need need = tsr_splice_need(&source->header, found->scan.pixels.value, tsr_input_size(samples));
        need.opening = need.held = header_memory(&found->scan, may_lose);
        need.only_lossless = only_lossless_of(found, &native) != NULL;
        TSR_TRY(tsr_input_claim(samples, &source->header, &need, error));
    }
    s->scan = found->scan;
    source->only_lossless = only_lossless_of(found, &native);
    source->wants_range = found->loss.has_range;
    object_to_loss(found, source);
    source->header.least_weight = source->windows.least_weight;
    return tsr_source_splice(source, found->scan.pixels.value, error);
}

static enum tsr_status open_native(struct tsr_input *input, const struct header *found, bool may_lose,
                                   struct tsr_source **source, struct tsr_error *error)
{
    const struct tsr_header header = {.kind = TSR_KIND_DICOM, .recipe = TSR_RECIPE_SPLICE, .exact = true};
    struct dicom_source *const s = tsr_source_create(sizeof *s, input, &header, &dicom_ops, error);
    const enum tsr_status status = s ? set_native(s, found, may_lose, error) : TSR_ERROR_LIMIT;
    return tsr_source_finish(s, status, source);
}

/* ---- Deflated --------------------------------------------------------------------------------------------- */

/* The stream of a deflated file. */
struct stream {
    const uint8_t *bytes;
    size_t size, start; /* start: in the file */
    size_t inflated;    /* bytes that it becomes */
};

/* Reads the description of the image from the first bytes that a deflated data set inflates to, at least so many. */
static enum tsr_status peek_image(struct tsr_input *input, const struct stream *stream, size_t first_size,
                                  bool may_lose, struct header *found, struct tsr_image *image, bool *only_lossless,
                                  struct tsr_error *error)
{
    struct tsr_bytes first = {.limit = SIZE_MAX / 2};
    enum tsr_status status = tsr_deflate_first(stream->bytes, stream->size, first_size, &first);
    if (status == TSR_ERROR_CORRUPT) tsr_fail(error, status, "its deflate stream is damaged");
    struct tsr_input *const memory =
        status == TSR_OK ? tsr_input_from_memory(first.bytes, first.size, tsr_input_name(input)) : NULL;
    if (!memory && status != TSR_ERROR_CORRUPT) status = tsr_fail(error, TSR_ERROR_LIMIT, "no memory for a source");
    if (status == TSR_OK) status = tsr_dicom_scan_dataset(memory, 0, &found->scan, error);
    found->bytes = first.bytes;
    if (status == TSR_OK) status = describe_header(found, true, may_lose, error);
    if (status == TSR_OK) {
        const struct tsr_dicom_element *const pixels = &found->scan.pixels;
        const uint64_t left = stream->inflated - pixels->value,
                       available = left < pixels->length ? left : pixels->length;
        struct tsr_dicom_native native;
        status = tsr_dicom_native_image(&found->dicom, pixels->tag, available, image, &native, error);
        tsr_dicom_note_short(input, &found->dicom, native.wanted, available);
        *only_lossless = only_lossless_of(found, &native) != NULL;
    }
    tsr_input_close(memory);
    tsr_bytes_free(&first);
    return status;
}

/* The file; plain bytes; residues, twice while they are joined or while pieces are, or the stream that is made again.
 */
static struct tsr_need deflated_need(uint64_t file_size, const struct stream *stream, const struct tsr_dicom_scan *scan,
                                     bool may_lose)
{
    const uint64_t plain = (uint64_t)stream->start + stream->inflated,
                   held = 2 * file_size + plain + header_memory(scan, may_lose), header = scan->pixels.value;
    return (struct tsr_need){.opening = held + 2 * file_size + tsr_deflate_memory(stream->inflated),
                             .held = held,
                             .blob = file_size > header ? file_size : header};
}

/* Measures a deflated file, and claims the memory for it. The header is looked for in FEW_BYTES first, then in
 * MANY_BYTES. */
static enum tsr_status measure_deflated(struct tsr_input *input, size_t start, bool may_lose, struct tsr_header *header,
                                        struct stream *stream, struct tsr_error *error)
{
    enum { FEW_BYTES = 1 << 20, MANY_BYTES = 64 << 20 };
    const uint64_t file_size = tsr_input_size(input);
    struct header found;
    struct tsr_image image;
    struct tsr_error why;
    const uint8_t *file;
    bool only_lossless = false;
    if (file_size > UNFOLD_LIMIT) return tsr_fail(error, TSR_ERROR_CORRUPT, "it is a deflated file of more than 1 GiB");
    TSR_TRY(tsr_input_claim_header(input, file_size + tsr_deflate_memory(8 * file_size), error));
    TSR_TRY(tsr_input_hold(input, (size_t)file_size, &file, error));
    *stream = (struct stream){file + start, (size_t)file_size - start, start, 0};
    enum tsr_status status =
        tsr_deflate_measure(stream->bytes, stream->size, unfold_limit(file_size), &stream->inflated, &why);
    if (status == TSR_ERROR_CORRUPT && why.offset != TSR_NO_OFFSET)
        return tsr_fail_at(error, status, start + why.offset, "its deflate stream is damaged: %.300s", why.text);
    if (status != TSR_OK) return tsr_fail(error, status, "%s", why.text);
    status = peek_image(input, stream, FEW_BYTES, may_lose, &found, &image, &only_lossless, error);
    if (status == TSR_ERROR_CORRUPT && stream->inflated > FEW_BYTES) {
        TSR_TRY(tsr_input_claim_header(input, file_size + MANY_BYTES, error));
        status = peek_image(input, stream, MANY_BYTES, may_lose, &found, &image, &only_lossless, error);
    }
    TSR_TRY(status);
    if (tsr_check_coded_image(&image, error) != TSR_OK) return TSR_ERROR_CORRUPT;
    header->image = image;
    struct tsr_need need = deflated_need(file_size, stream, &found.scan, may_lose);
    need.only_lossless = only_lossless;
    return tsr_input_claim(input, header, &need, error);
}

/* Makes the file as it would be without deflation: meta header and data set. Proves that the stream comes back; what
 * follows it becomes a residue, too. FORMAT.md 4.2. */
static enum tsr_status inflate_file(struct dicom_source *s, const struct stream *stream, struct tsr_error *error)
{
    struct tsr_source *const source = &s->base;
    const size_t file_size = (size_t)tsr_input_size(source->input), start = stream->start, inflated = stream->inflated;
    const struct tsr_node_work work = {.crew = tsr_input_crew(source->input),
                                       .guessed = tsr_input_guessed(source->input),
                                       .is_verified = tsr_input_is_verified(source->input)};
    struct tsr_bytes plain = {.limit = inflated}, coded = {.limit = 2 * file_size + 4096};
    uint8_t head[2 + TSR_VARINT_LIMIT] = {0}; /* of the record of the only stream: GZIP.md */
    const uint8_t *file;
    size_t used = 0;
    TSR_TRY(tsr_input_hold(source->input, file_size, &file, error));
    const struct tsr_bytes meta = {.bytes = (uint8_t *)(uintptr_t)file, .size = start};
    enum tsr_status status = tsr_bytes_reserve(&plain, inflated, error);
    if (status == TSR_OK)
        status = tsr_prove(&tsr_node_deflate, &work, file + start, file_size - start, &used, &plain, &coded, error);
    if (status == TSR_OK && plain.size != inflated)
        status = tsr_fail(error, TSR_ERROR_CORRUPT, "its deflate stream can be read in two ways");
    plain.limit += start;
    if (status == TSR_OK) status = tsr_bytes_put_before(&plain, &meta, error);
    source->held[0] = plain.bytes;
    const size_t head_size = 2 + tsr_put_varint(head + 2, coded.size);
    if (status == TSR_OK) status = tsr_source_put_small(source, TSR_BLOB_RESIDUES, head, head_size, error);
    if (status != TSR_OK) {
        tsr_bytes_free(&coded);
        return status;
    }
    TSR_TRY(tsr_source_put(source, TSR_BLOB_RESIDUES, coded.bytes, coded.size, true, error));
    return tsr_source_put(source, TSR_BLOB_RESIDUES, file + start + used, file_size - start - used, false, error);
}

/* The same, and its meaning. */
static enum tsr_status set_deflated(struct dicom_source *s, const struct tsr_dicom_scan *meta,
                                    const struct stream *stream, bool may_lose, bool tells_windows,
                                    struct tsr_error *error)
{
    struct tsr_source *const source = &s->base;
    struct header found;
    TSR_TRY(inflate_file(s, stream, error));
    source->samples =
        tsr_input_from_memory(source->held[0], stream->start + stream->inflated, tsr_input_name(source->input));
    source->owns_samples = true;
    if (!source->samples) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for a source");
    TSR_TRY(tsr_dicom_scan_dataset(source->samples, meta->meta_end, &found.scan, error));
    found.bytes = source->held[0];
    found.tells_windows = tells_windows;
    found.scan.meta_start = meta->meta_start;
    found.scan.meta_end = meta->meta_end;
    found.scan.is_deflated = true;
    TSR_TRY(describe_header(&found, true, may_lose, error));
    return set_native(s, &found, may_lose, error);
}

static enum tsr_status open_deflated(struct tsr_input *input, const struct tsr_dicom_scan *meta, bool may_lose,
                                     bool tells_windows, struct tsr_source **source, struct tsr_error *error)
{
    struct tsr_header header = {.kind = TSR_KIND_DICOM, .recipe = TSR_RECIPE_DEFLATED, .exact = true};
    struct stream stream;
    TSR_TRY(measure_deflated(input, meta->meta_end, may_lose, &header, &stream, error));
    header.parameter_count = tsr_put_varint(header.parameters, meta->meta_end);
    struct dicom_source *const s = tsr_source_create(sizeof *s, input, &header, &dicom_ops, error);
    const enum tsr_status status = s ? set_deflated(s, meta, &stream, may_lose, tells_windows, error) : TSR_ERROR_LIMIT;
    return tsr_source_finish(s, status, source);
}

/* ---- Encapsulated ----------------------------------------------------------------------------------------- */

/* How the streams of an encapsulated file are opened: all come back as they are; those that cannot be made again are
 * units; or the samples alone come back, in a native file. */
enum opening { ALL_AGAIN, SOME_UNITS, SAMPLES };

static enum tsr_status open_streams(struct tsr_input *input, const struct header *found, const struct tsr_node *kind,
                                    enum opening opening, struct tsr_source **source, struct tsr_error *error)
{
    const struct tsr_dicom_element *const pixels = &found->scan.pixels;
    const bool samples = opening == SAMPLES, was_mixed = strcmp(found->dicom.photometric, "YBR_RCT") == 0;
    struct tsr_image image;
    if (pixels->length != TSR_UNDEFINED_LENGTH)
        return tsr_fail(error, TSR_ERROR_CORRUPT, "its pixel data has a length, which coded frames do not have");
    TSR_TRY(tsr_dicom_image(&found->dicom, &image, error));
    if (tsr_check_coded_image(&image, error) != TSR_OK) return TSR_ERROR_CORRUPT;
    if ((image.bits_allocated == 1 && (samples || !kind->takes_bits)) || image.big_endian)
        return tsr_fail(error, TSR_ERROR_CORRUPT, "its streams are of %s",
                        image.big_endian ? "big-endian samples" : "samples of one bit");
    if (samples) {
        struct tsr_encapsulated_samples native = {&found->scan,
                                                  {.syntax_uid = TSR_NATIVE_UID,
                                                   .photometric = was_mixed ? "RGB" : NULL,
                                                   .interleaved = image.components > 1,
                                                   .native_bytes = tsr_frame_bits(&image) / 8 * image.frames,
                                                   .has_words = image.bits_allocated > 8,
                                                   .bits_stored = image.bits_stored,
                                                   .high_bit = image.high_bit}};
        image.planar = false;
        TSR_TRY(tsr_encapsulated_open_samples(input, &image, kind, &native, source, error));
    } else {
        TSR_TRY(tsr_encapsulated_open(input, &image, pixels->value, kind, opening == SOME_UNITS, source, error));
    }
    object_to_loss(found, *source);
    return TSR_OK;
}

/* ---- Opening ---------------------------------------------------------------------------------------------- */

/* Reads the header of a file; of a deflated file, only the meta header. */
static enum tsr_status read_header(struct tsr_input *input, bool may_lose, struct header *found,
                                   struct tsr_error *error)
{
    TSR_TRY(tsr_dicom_scan_file(input, &found->scan, error));
    if (found->scan.is_deflated) return TSR_OK;
    TSR_TRY(tsr_input_hold(input, found->scan.pixels.value, &found->bytes, error));
    return describe_header(found, false, may_lose, error);
}

/* NULL: frames of this syntax are not decoded. Items of a native syntax may hold native frames. */
static const struct tsr_node *stream_kind_of(enum tsr_dicom_syntax syntax)
{
    switch (syntax) {
    case TSR_DICOM_RLE:
        return &tsr_node_rle;
    case TSR_DICOM_DEFLATED_FRAMES:
        return &tsr_node_deflate_frame;
    case TSR_DICOM_JPEG_LS:
        return &tsr_node_jpeg_ls;
    case TSR_DICOM_JPEG_2000:
        return &tsr_node_j2k;
    case TSR_DICOM_HTJ2K:
        return &tsr_node_jpeg_2000;
    case TSR_DICOM_JPEG_LOSSLESS:
    case TSR_DICOM_JPEG_SV1:
        return &tsr_node_jpeg_lossless;
    case TSR_DICOM_NATIVE:
    case TSR_DICOM_UNCOMPRESSED_FRAMES:
        return &tsr_node_uncompressed;
    case TSR_DICOM_DEFLATED:
    case TSR_DICOM_OTHER:
        break;
    }
    return NULL;
}

/* Opens the samples of an encapsulated file. */
static enum tsr_status open_samples(struct tsr_input *input, const struct header *found, const struct tsr_node *kind,
                                    struct tsr_source **source, struct tsr_error *error)
{
    /* the library takes more forms of streams, but also what lost something, which only the syntax rules out */
    if (kind == &tsr_node_j2k && strcmp(found->dicom.syntax_uid, TSR_JPEG_2000_UID) != 0) kind = &tsr_node_jpeg_2000;
    return open_streams(input, found, kind, SAMPLES, source, error);
}

/* Opens with some frames that have no samples, or, without a kind, with none that has. The reason why nothing else can
 * be is kept. */
static enum tsr_status open_with_units(struct tsr_input *input, const struct tsr_source_options *options,
                                       const struct header *found, const struct tsr_node *kind,
                                       struct tsr_source **source, struct tsr_error *error)
{
    struct tsr_error why;
    tsr_input_give_back(input); /* another way may take more */
    const enum tsr_status status =
        kind ? open_streams(input, found, kind, SOME_UNITS, source, &why)
             : tsr_units_open(input, &found->dicom, &found->scan.pixels, options->reads_frames, source, &why);
    if (status != TSR_OK && status != TSR_ERROR_CORRUPT) *error = why;
    return status;
}

/* Opens an encapsulated file: exactly; or, if that cannot be and is allowed, its samples; or exactly with some frames
 * that have no samples, or with none that has. */
static enum tsr_status open_exactly_or_samples(struct tsr_input *input, const struct tsr_source_options *options,
                                               const struct header *found, struct tsr_source **source,
                                               struct tsr_error *error)
{
    const bool lose = found->dicom.frames > 1 && tsr_dicom_frames_lose(input, found->scan.pixels.value);
    const struct tsr_node *const kind = lose ? NULL : stream_kind_of(found->dicom.syntax);
    const bool again = kind && kind->join, samples = kind && options->samples_only;
    enum tsr_status status = tsr_fail(error, TSR_ERROR_CORRUPT, "its transfer syntax is %s", found->dicom.syntax_uid);
    if (again) status = open_streams(input, found, kind, samples ? ALL_AGAIN : SOME_UNITS, source, error);
    if (status == TSR_ERROR_CORRUPT && samples) {
        tsr_input_give_back(input); /* decoding alone may take more than making the streams again */
        status = open_samples(input, found, kind, source, error);
    }
    if (status == TSR_ERROR_CORRUPT && again && samples)
        status = open_with_units(input, options, found, kind, source, error);
    if (status != TSR_ERROR_CORRUPT) return status;
    status = open_with_units(input, options, found, NULL, source, error);
    if (status == TSR_OK)
        snprintf((*source)->no_samples, sizeof(*source)->no_samples, "%.*s", TSR_REASON_LIMIT, error->text);
    return status;
}

static enum tsr_status open_encapsulated(struct tsr_input *input, const struct tsr_source_options *options,
                                         const struct header *found, struct tsr_source **source,
                                         struct tsr_error *error)
{
    struct tsr_windows windows;
    TSR_TRY(tell_windows(found, &windows, error));
    const enum tsr_status status = open_exactly_or_samples(input, options, found, source, error);
    if (status == TSR_OK) {
        (*source)->windows = windows;
        (*source)->header.least_weight = windows.least_weight;
    } else {
        free(windows.frame);
    }
    return status;
}

/* Whether pixel data is native: by the transfer syntax, or because it has a length, which is that of native samples. */
static enum tsr_status find_native(struct tsr_input *input, const struct header *found, bool *is_native,
                                   struct tsr_error *error)
{
    const struct tsr_dicom_element *const pixels = &found->scan.pixels;
    struct tsr_image image;
    struct tsr_dicom_native native;
    bool has_items;
    TSR_TRY(find_items(input, pixels, &has_items, error));
    *is_native = found->dicom.syntax == TSR_DICOM_NATIVE && !has_items;
    if (found->dicom.syntax == TSR_DICOM_NATIVE || pixels->length == TSR_UNDEFINED_LENGTH) return TSR_OK;
    *is_native = tsr_dicom_native_image(&found->dicom, pixels->tag, pixels->length, &image, &native, error) == TSR_OK &&
                 (native.wanted == pixels->length || native.wanted + native.wanted % 2 == pixels->length);
    return TSR_OK;
}

static enum tsr_status open_dicom(struct tsr_input *input, const struct tsr_source_options *options,
                                  struct tsr_source **source, struct tsr_error *error)
{
    struct header found;
    bool is_native;
    *source = NULL;
    TSR_TRY(read_header(input, options->may_lose, &found, error));
    found.tells_windows = options->may_lose || options->samples_only;
    if (found.scan.is_deflated)
        return open_deflated(input, &found.scan, options->may_lose, found.tells_windows, source, error);
    TSR_TRY(find_native(input, &found, &is_native, error));
    if (is_native) return open_native(input, &found, options->may_lose, source, error);
    const enum tsr_status status = open_encapsulated(input, options, &found, source, error);
    /* the bytes are held now, unless the file is stored */
    if (status == TSR_OK || status == TSR_ERROR_CORRUPT) tsr_dicom_note_fragments(input, &found.scan, &found.dicom);
    return status;
}

const struct tsr_format tsr_dicom_format = {TSR_KIND_DICOM, "dicom", is_dicom, open_dicom, NULL};
