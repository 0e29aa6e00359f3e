/* Headers of originals: their bytes before the pixels, and the elements in them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/formats/png/png_file.h"
#include "call.h"
#include "reader.h"
#include "io/recipe/recipe.h"
#include "io/dicom/dicom_elements.h"
#include "io/formats/dicom/dicom_file.h"
#include "io/nodes/deflate/deflate.h"

/* Bytes of a header that are read, at most: as many as the DICOM reader takes. */
#define HEADER_LIMIT ((size_t)64 << 20)

/* A header in the making; what tsr_read_header returns is its first field. */
struct header {
    struct tsr_metadata base;
    uint8_t *bytes;
    struct tsr_element *elements;
    struct tsr_dicom_scan scan;
};

void tsr_metadata_free(struct tsr_metadata *metadata)
{
    struct header *const header = (struct header *)metadata;
    if (!header) return;
    free(header->bytes);
    free(header->elements);
    free(header);
}

/* ---- Bytes ------------------------------------------------------------------------------------------------ */

/* Up to count bytes of the prefix of what is chosen, as it is stored. */
static enum tsr_status read_blob_of(struct tsr_reader *r, uint8_t *bytes, size_t count, size_t *got,
                                    struct tsr_error *error)
{
    if (r->container) return tsr_reader_blob(r, TSR_BLOB_PREFIX, 0, bytes, count, got, error);
    const uint64_t size = r->original->blob_size[TSR_BLOB_PREFIX];
    *got = size < count ? (size_t)size : count;
    return *got > 0 ? tsr_source_read_blob(r->original, TSR_BLOB_PREFIX, 0, bytes, *got, error) : TSR_OK;
}

/* Up to count bytes of what stands before the samples. */
static enum tsr_status read_prefix(struct tsr_reader *r, uint8_t *bytes, size_t count, size_t *got,
                                   struct tsr_error *error)
{
    const struct tsr_header *const header = r->container ? tsr_container_header(r->container) : &r->original->header;
    uint8_t start[TSR_START_LIMIT];
    const size_t known = tsr_known_start(header, start), begun = count < known ? count : known;
    memcpy(bytes, start, begun);
    TSR_TRY(read_blob_of(r, bytes + begun, count - begun, got, error));
    *got += begun;
    return TSR_OK;
}

/* The prefix, or its first limit bytes. */
static enum tsr_status take_prefix(struct tsr_reader *r, size_t limit, struct header *header, struct tsr_error *error)
{
    enum { FIRST = 1 << 14 };
    size_t room = FIRST, got = 0;
    for (;;) {
        if (room > limit) room = limit;
        uint8_t *const grown = realloc(header->bytes, room);
        if (!grown) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for a header of %zu bytes", room);
        header->bytes = grown;
        TSR_TRY(read_prefix(r, header->bytes, room, &got, error));
        header->base.byte_count = got;
        if (got < room || room == limit) return TSR_OK;
        room *= 4;
    }
}

/* ---- PNG -------------------------------------------------------------------------------------------------- */

/* Chunks of a PNG: length, type, content, checksum. */
static enum tsr_status list_chunks(struct header *header, struct tsr_error *error)
{
    enum { SIGNATURE = 8, OVERHEAD = 12 };
    const size_t size = header->base.byte_count;
    header->elements = calloc(size / OVERHEAD + 1, sizeof *header->elements);
    if (!header->elements) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for a list of chunks");
    for (size_t at = SIGNATURE; at + OVERHEAD <= size;) {
        const uint32_t length = tsr_read_u32_be(header->bytes + at);
        if (length > size - at - OVERHEAD)
            return tsr_fail(error, TSR_ERROR_CORRUPT, "the header's chunk at byte %zu is longer than the header", at);
        struct tsr_element *const element = &header->elements[header->base.element_count++];
        element->tag = tsr_read_u32_be(header->bytes + at + 4);
        element->value = header->bytes + at + 8;
        element->count = length;
        at += OVERHEAD + length;
    }
    return TSR_OK;
}

/* ---- DICOM ------------------------------------------------------------------------------------------------ */

static enum tsr_status keep_elements(const struct tsr_dicom_listing *listing, struct header *header,
                                     struct tsr_error *error)
{
    header->elements = calloc(listing->count + 1, sizeof *header->elements);
    if (!header->elements)
        return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for a list of %zu elements", listing->count);
    header->base.element_count = listing->count;
    for (size_t i = 0; i < listing->count; i++) {
        const struct tsr_dicom_listed *const from = &listing->entries[i];
        struct tsr_element *const to = &header->elements[i];
        to->tag = from->element.tag;
        memcpy(to->vr, from->element.vr, sizeof from->element.vr);
        to->depth = from->depth;
        if (from->has_content || from->element.end > header->base.byte_count) continue;
        to->value = header->bytes + from->element.value;
        to->count = from->element.end - from->element.value;
    }
    return TSR_OK;
}

/* Lists the elements of an input up to its pixel data, or all of one that has none. Of a deflated file the input is
 * what it inflates to. */
static enum tsr_status scan(struct tsr_input *input, struct tsr_dicom_listing *listing, struct tsr_dicom_scan *scan,
                            bool is_inflated, struct tsr_error *error)
{
    enum tsr_status status = tsr_dicom_list_file(input, listing, scan, error);
    const size_t meta_end = scan->meta_end;
    if (status == TSR_OK && scan->is_deflated) {
        if (!is_inflated) return tsr_fail(error, TSR_ERROR_USAGE, "its header is deflated");
        status = tsr_dicom_list_dataset(input, meta_end, listing, scan, error);
        scan->meta_end = meta_end;
        scan->is_deflated = true;
    }
    if (status == TSR_OK || !scan->has_no_pixels || tsr_input_size(input) > HEADER_LIMIT) return status;
    scan->pixels.start = scan->pixels.value = (size_t)tsr_input_size(input); /* a report or a plan: all is header */
    return TSR_OK;
}

/* The header of a file of its own, of which only that is read. */
static enum tsr_status take_dicom_file(struct tsr_input *input, struct tsr_dicom_listing *listing,
                                       struct tsr_dicom_scan *found, struct header *header, struct tsr_error *error)
{
    TSR_TRY(scan(input, listing, found, false, error));
    header->base.byte_count = found->pixels.value;
    header->bytes = malloc(header->base.byte_count + 1);
    if (!header->bytes) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for a header");
    return tsr_input_read(input, 0, header->bytes, header->base.byte_count, error);
}

/* Where the first bytes of a packed file come from. */
struct prefix {
    struct tsr_reader *reader;
    uint64_t offset;
    uint8_t chunk[1 << 12];
};

static enum tsr_status next_of_prefix(void *context, enum tsr_blob blob, const uint8_t **bytes, size_t *size,
                                      struct tsr_error *error)
{
    struct prefix *const p = context;
    TSR_TRY(tsr_reader_blob(p->reader, blob, p->offset, p->chunk, sizeof p->chunk, size, error));
    p->offset += *size;
    *bytes = p->chunk;
    return TSR_OK;
}

/* The first bytes of a packed file, at least so many or all, become the bytes of a header: as many pieces as they take,
 * without the file's proof. No piece makes more than the file has. */
static enum tsr_status unpack_prefix(struct tsr_reader *r, size_t wanted, struct header *header,
                                     struct tsr_error *error)
{
    struct tsr_proof proof;
    struct prefix prefix = {.reader = r};
    TSR_TRY(tsr_container_get_proof(r->container, &proof, error));
    struct tsr_output *const output = tsr_output_to_memory();
    const struct tsr_making making = {.leaves = {.read = next_of_prefix, .context = &prefix}, .enough = wanted};
    enum tsr_status status =
        output ? TSR_OK : tsr_fail(error, TSR_ERROR_LIMIT, "no memory for a header of %zu bytes", wanted);
    if (output) tsr_output_limit(output, proof.original_size);
    if (status == TSR_OK) status = tsr_make(tsr_container_header(r->container), &making, output, error);
    const size_t there = status == TSR_OK ? (size_t)tsr_output_size(output) : 0;
    const size_t size = there < HEADER_LIMIT ? there : HEADER_LIMIT;
    uint8_t *const grown = status == TSR_OK ? realloc(header->bytes, size + 1) : NULL;
    if (status == TSR_OK && !grown)
        status = tsr_fail(error, TSR_ERROR_LIMIT, "no memory for a header of %zu bytes", size);
    if (grown) {
        if (size > 0) memcpy(grown, tsr_output_bytes(output), size);
        header->bytes = grown;
        header->base.byte_count = size;
    }
    tsr_output_close(output);
    return status;
}

/* Replaces a file whose data set is deflated by its meta header and the first bytes that the data set inflates to. */
static enum tsr_status inflate_header(size_t meta_end, struct header *header, struct tsr_error *error)
{
    const size_t size = header->base.byte_count - meta_end;
    struct tsr_bytes bytes = {.limit = SIZE_MAX / 2};
    enum tsr_status status = tsr_bytes_put(&bytes, header->bytes, meta_end, error);
    if (status == TSR_OK) status = tsr_deflate_first(header->bytes + meta_end, size, meta_end + HEADER_LIMIT, &bytes);
    if (status != TSR_OK) {
        tsr_bytes_free(&bytes);
        return tsr_fail(error, status, "its deflate stream is damaged, or there is no memory to inflate it");
    }
    free(header->bytes);
    header->bytes = bytes.bytes;
    header->base.byte_count = bytes.size;
    return TSR_OK;
}

static enum tsr_status scan_bytes(const struct tsr_reader *r, struct tsr_dicom_listing *listing,
                                  struct tsr_dicom_scan *found, bool is_inflated, struct header *header,
                                  struct tsr_error *error)
{
    struct tsr_input *const input = tsr_input_from_memory(header->bytes, header->base.byte_count, r->name);
    if (!input) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for a header");
    enum tsr_status status = scan(input, listing, found, is_inflated, error);
    const bool is_deflated = status == TSR_ERROR_USAGE && found->is_deflated && !is_inflated;
    if (is_deflated) status = inflate_header(found->meta_end, header, error);
    tsr_input_close(input);
    if (!is_deflated || status != TSR_OK) return status;
    listing->count = 0;
    return scan_bytes(r, listing, found, true, header, error);
}

/* The header of a packed file: before its pixel data, for which a few bytes are unpacked at first, or, where there is
 * none, all of it. */
static enum tsr_status take_packed(struct tsr_reader *r, struct tsr_dicom_listing *listing,
                                   struct tsr_dicom_scan *found, struct header *header, struct tsr_error *error)
{
    for (size_t wanted = 1 << 14;; wanted *= 16) {
        TSR_TRY(unpack_prefix(r, wanted < HEADER_LIMIT ? wanted : HEADER_LIMIT, header, error));
        const bool is_all = header->base.byte_count < wanted || wanted >= HEADER_LIMIT;
        listing->count = 0;
        *found = (struct tsr_dicom_scan){0};
        const enum tsr_status status = scan_bytes(r, listing, found, false, header, error);
        const bool has_pixels = status == TSR_OK && found->pixels.tag != 0;
        if (has_pixels) header->base.byte_count = found->pixels.value;
        if (is_all || has_pixels || status == TSR_ERROR_LIMIT || status == TSR_ERROR_READ) return status;
    }
}

/* The header at the start of the prefix, which of a file that is stored as it is, is the file. */
static enum tsr_status take_dicom_prefix(struct tsr_reader *r, struct tsr_dicom_listing *listing,
                                         struct tsr_dicom_scan *found, struct header *header, struct tsr_error *error)
{
    const bool is_inflated = tsr_is_deflated(tsr_reader_header(r));
    if (tsr_has_pieces(tsr_reader_header(r))) return take_packed(r, listing, found, header, error);
    TSR_TRY(take_prefix(r, HEADER_LIMIT, header, error));
    const enum tsr_status status = scan_bytes(r, listing, found, is_inflated, header, error);
    if (status == TSR_OK && found->pixels.value < header->base.byte_count)
        header->base.byte_count = found->pixels.value;
    return status;
}

static enum tsr_status take_dicom(struct tsr_reader *r, struct header *header, struct tsr_error *error)
{
    struct tsr_dicom_listing listing = {0};
    struct tsr_dicom_scan found = {0};
    const bool is_plain = !r->container && !tsr_is_deflated(tsr_reader_header(r));
    enum tsr_status status = is_plain ? take_dicom_file(r->input, &listing, &found, header, error)
                                      : take_dicom_prefix(r, &listing, &found, header, error);
    header->base.big_endian = status == TSR_OK && found.form.big_endian;
    header->scan = found;
    if (status == TSR_OK) status = keep_elements(&listing, header, error);
    free(listing.entries);
    return status;
}

/* ---- All -------------------------------------------------------------------------------------------------- */

static enum tsr_status take_header(struct tsr_reader *r, struct header *header, struct tsr_error *error)
{
    const struct tsr_header *const what = tsr_reader_header(r);
    header->base.kind = what->kind;
    if (what->kind == TSR_KIND_DICOM) {
        struct tsr_error why;
        const enum tsr_status status = take_dicom(r, header, &why);
        if (status != TSR_ERROR_CORRUPT && status != TSR_ERROR_USAGE) {
            if (status != TSR_OK && error) *error = why;
            return status;
        }
        return tsr_fail(error, TSR_ERROR_USAGE, "%s has no header that can be read: %.400s", r->name, why.text);
    }
    if (!tsr_has_frames(what))
        return tsr_fail(error, TSR_ERROR_USAGE, "%s has no header that can be read: %s", r->name, tsr_reason_of(what));
    TSR_TRY(take_prefix(r, HEADER_LIMIT, header, error));
    return what->kind == TSR_KIND_PNG ? list_chunks(header, error) : TSR_OK;
}

static enum tsr_status read_header(struct tsr_reader *r, uint32_t member, struct header **made, struct tsr_error *error)
{
    TSR_TRY(tsr_reader_choose(r, member, error));
    struct header *const header = calloc(1, sizeof *header);
    if (!header) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for a header");
    const enum tsr_status status = take_header(r, header, error);
    header->base.bytes = header->bytes;
    header->base.elements = header->elements;
    if (status == TSR_OK)
        *made = header;
    else
        tsr_metadata_free(&header->base);
    return status;
}

static enum tsr_status take_turn(const struct tsr_call *call, struct header **header)
{
    struct tsr_reader *const reader = call->reader;
    tsr_reader_begin(reader);
    const enum tsr_status status =
        tsr_reader_end(reader, read_header(reader, call->member, header, call->error), call->error);
    if (status != TSR_OK && *header) tsr_metadata_free(&(*header)->base); /* the file has changed */
    return status;
}

static enum tsr_status run_read_header(const struct tsr_call *call)
{
    struct tsr_metadata **const metadata = call->out;
    struct header *header = NULL;
    TSR_TRY(take_turn(call, &header));
    *metadata = &header->base;
    return TSR_OK;
}

enum tsr_status tsr_read_header(struct tsr_reader *reader, uint32_t member, struct tsr_metadata **metadata,
                                struct tsr_error *error)
{
    TSR_TRY(tsr_check_pointer(metadata, "metadata", error));
    *metadata = NULL;
    TSR_TRY(tsr_check_pointer(reader, "reader", error));
    struct tsr_call call = tsr_call_of_reader(reader, run_read_header, member, error);
    call.takes_turn = false;
    call.out = metadata;
    return tsr_run_call(&call);
}

/* ---- Text ------------------------------------------------------------------------------------------------- */

/* A line as those of DCMTK of the pixel data, whose value was not read. */
static enum tsr_status add_pixel_line(const struct tsr_dicom_element *pixels, struct tsr_buffer *text,
                                      struct tsr_error *error)
{
    char length[16], line[160];
    if (pixels->length == TSR_UNDEFINED_LENGTH)
        snprintf(length, sizeof length, "u/l");
    else
        snprintf(length, sizeof length, "%3lu", (unsigned long)pixels->length);
    const int count =
        snprintf(line, sizeof line, "(%04x,%04x) %s %-40s # %s, 1 %s\n", (unsigned)(pixels->tag >> 16),
                 (unsigned)(pixels->tag & 0xffff), pixels->vr[0] ? pixels->vr : "OW", "(not read)", length,
                 pixels->tag == TSR_TAG_PIXEL_DATA     ? "PixelData"
                 : pixels->tag == TSR_TAG_FLOAT_PIXELS ? "FloatPixelData"
                                                       : "DoubleFloatPixelData");
    uint8_t *const grown = realloc(text->bytes, text->count + (size_t)count + 1);
    if (!grown) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for a header as text");
    memcpy(grown + text->count, line, (size_t)count + 1);
    text->bytes = grown;
    text->count += (size_t)count;
    return TSR_OK;
}

static enum tsr_status print_dicom(const struct header *header, enum tsr_listing listing, struct tsr_buffer *text,
                                   struct tsr_error *error)
{
    const struct tsr_dicom_scan *const scan = &header->scan;
    const struct tsr_dicom_bytes bytes = {header->bytes, scan->pixels.start, scan->meta_end, scan->is_deflated};
    struct tsr_dicom_made made;
    TSR_TRY(tsr_dicom_print(&bytes, listing == TSR_LISTING_JSON, &made, error));
    *text = (struct tsr_buffer){made.bytes, made.size};
    if (listing == TSR_LISTING_JSON || scan->pixels.tag == 0) return TSR_OK;
    const enum tsr_status status = add_pixel_line(&scan->pixels, text, error);
    if (status != TSR_OK) tsr_buffer_free(text);
    return status;
}

static enum tsr_status list_header(const struct tsr_call *call)
{
    struct header *header = NULL;
    TSR_TRY(take_turn(call, &header));
    const enum tsr_status status = header->base.kind == TSR_KIND_DICOM
                                       ? print_dicom(header, (enum tsr_listing)call->choice, call->out, call->error)
                                       : tsr_fail(call->error, TSR_ERROR_USAGE, "%s is not DICOM, but %s",
                                                  call->reader->name, tsr_kind_name(header->base.kind));
    tsr_metadata_free(&header->base);
    return status;
}

enum tsr_status tsr_list_header(struct tsr_reader *reader, uint32_t member, enum tsr_listing listing,
                                struct tsr_buffer *text, struct tsr_error *error)
{
    TSR_TRY(tsr_check_pointer(text, "text", error));
    *text = (struct tsr_buffer){NULL, 0};
    TSR_TRY(tsr_check_pointer(reader, "reader", error));
    if ((int)listing < TSR_LISTING_TEXT || listing > TSR_LISTING_JSON)
        return tsr_fail(error, TSR_ERROR_USAGE, "listing %d is not known", (int)listing);
    struct tsr_call call = tsr_call_of_reader(reader, list_header, member, error);
    call.takes_turn = false;
    call.choice = (int)listing;
    call.out = text;
    return tsr_run_call(&call);
}
