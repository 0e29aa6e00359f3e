/* Packs files that are not coded as samples: finds streams in them, makes them smaller, and proves that they come back.
 * PACKED.md. */
#include <stdio.h>
#include <string.h>

#include "packed_archive.h"
#include "packed_file.h"
#include "io/nodes/elements/elements_blocks.h"
#include "io/nodes/gzip/gzip.h"
#include "io/nodes/jpeg/jpeg.h"

enum { LEAST_PNG = 57 }; /* bytes of a PNG */

const char tsr_cannot_gzip[] = "its gzip stream cannot be coded: ",
           tsr_cannot_jpeg[] = "its JPEG stream cannot be coded: it ",
           tsr_no_gain[] = "coded it would not be smaller by 64 bytes";

/* ---- Pieces ------------------------------------------------------------------------------------------------ */

static enum tsr_status put_head(struct tsr_packed_file *p, const struct tsr_piece_head *head, struct tsr_error *error)
{
    uint8_t bytes[TSR_PIECE_HEAD_LIMIT];
    return tsr_source_put_small(p->source, TSR_BLOB_PREFIX, bytes, tsr_put_piece_head(bytes, head), error);
}

enum tsr_status tsr_pack_known(struct tsr_packed_file *p, enum tsr_piece_kind kind, uint64_t content, uint64_t size,
                               uint64_t end, struct tsr_error *error)
{
    p->done = end;
    TSR_TRY(put_head(p, &(struct tsr_piece_head){.kind = kind, .size = size}, error));
    return p->file ? tsr_source_put(p->source, TSR_BLOB_PREFIX, p->file + content, size, false, error)
                   : tsr_source_put_range(p->source, TSR_BLOB_PREFIX, content, size, error);
}

enum tsr_status tsr_pack_bytes(struct tsr_packed_file *p, uint64_t end, struct tsr_error *error)
{
    return end == p->done ? TSR_OK : tsr_pack_known(p, TSR_PIECE_BYTES, p->done, end - p->done, end, error);
}

static enum tsr_status put_parts(struct tsr_packed_file *p, uint64_t start, uint64_t end,
                                 const struct tsr_piece_head *head, uint64_t room, struct tsr_bytes *plain,
                                 struct tsr_bytes *residue, struct tsr_error *error)
{
    uint64_t *const most = &p->source->header.room;
    tsr_bytes_fit(plain);
    tsr_bytes_fit(residue);
    *most = tsr_max_u64(*most, tsr_max_u64(room, end - start));
    enum tsr_status status = tsr_pack_bytes(p, start, error);
    if (status == TSR_OK) status = put_head(p, head, error);
    p->done = end;
    const enum tsr_status first = tsr_source_put(p->source, TSR_BLOB_PREFIX, plain->bytes, plain->size, true, error),
                          last = tsr_source_put(p->source, TSR_BLOB_PREFIX, residue->bytes, residue->size, true, error);
    return status != TSR_OK ? status : first != TSR_OK ? first : last;
}

enum tsr_status tsr_pack_stream(struct tsr_packed_file *p, uint64_t start, uint64_t end, enum tsr_piece_kind kind,
                                struct tsr_bytes *plain, struct tsr_bytes *residue, struct tsr_error *error)
{
    const struct tsr_node_parts parts = {plain->bytes, residue->bytes, plain->size, residue->size};
    const struct tsr_piece_head head = {
        .kind = kind, .size = plain->size, .residue = residue->size, .whole = end - start};
    return put_parts(p, start, end, &head, tsr_piece_node(kind)->room(&parts, end - start), plain, residue, error);
}

enum tsr_status tsr_pack_inner(struct tsr_packed_file *p, uint64_t start, uint64_t end, enum tsr_piece_kind kind,
                               uint64_t size, struct tsr_inner *inner, struct tsr_bytes *residue,
                               struct tsr_error *error)
{
    const struct tsr_piece_head head = {.kind = kind, .size = size, .inner = inner->tsr.size, .residue = residue->size};
    return put_parts(p, start, end, &head, tsr_inner_room(&head), &inner->tsr, residue, error);
}

enum tsr_status tsr_pack_refuse(enum tsr_status status, const char *begin, const struct tsr_error *why,
                                struct tsr_error *error)
{
    const bool is_refusal = status == TSR_DECLINED || status == TSR_ERROR_CORRUPT;
    return tsr_fail_at(error, is_refusal ? TSR_DECLINED : status, why->offset, "%s%.400s", is_refusal ? begin : "",
                       why->text);
}

/* ---- Files ------------------------------------------------------------------------------------------------- */

/* Packs the streams of a DICOM file; if none can be, its elements. The error is about the streams. */
static enum tsr_status put_dicom(struct tsr_packed_file *p, struct tsr_error *error)
{
    struct tsr_error why;
    enum tsr_status status = tsr_pack_jpegs(p, error);
    if (status != TSR_DECLINED) return status;
    status = tsr_pack_elements(p, &why);
    if (status != TSR_OK && status != TSR_DECLINED) *error = why;
    return status;
}

/* Claims what packing takes, and finds streams. */
static enum tsr_status find_streams(struct tsr_packed_file *p, struct tsr_error *error)
{
    const bool is_jpeg = tsr_begins_jpeg(p->file);
    enum tsr_status status = TSR_OK;
    if (p->kind == TSR_KIND_OTHER && (!is_jpeg || tsr_has_more_jpegs(p)) && tsr_may_have_streams(p->file, p->size)) {
        status = tsr_pack_any(p, error);
    } else if (is_jpeg) {
        status = tsr_pack_jpegs(p, error);
    } else if (p->kind == TSR_KIND_DICOM) {
        status = put_dicom(p, error);
    } else if (tsr_begins_gzip(p->file)) {
        if (p->size < TSR_GZIP_HEAD + TSR_GZIP_TAIL)
            return tsr_fail_at(error, TSR_DECLINED, p->size, "%sit ends too early", tsr_cannot_gzip);
        status = tsr_pack_gzip(p, error);
    } else if (p->kind == TSR_KIND_PNG) {
        status = tsr_pack_png(p, error);
    }
    return status;
}

/* Packs the file, if it becomes smaller and is not small. Notes what looks damaged in any case. */
static enum tsr_status pack(struct tsr_packed_file *p, bool is_small, struct tsr_error *error)
{
    enum tsr_status status = find_streams(p, error);
    if (status == TSR_OK && p->source->header.room == 0)
        status = tsr_fail(error, TSR_DECLINED, "none of its streams can be coded");
    if (status == TSR_OK && is_small) status = tsr_fail(error, TSR_DECLINED, "%s", tsr_no_gain);
    if (status == TSR_OK) status = tsr_pack_bytes(p, p->size, error);
    if (status == TSR_OK) status = tsr_pack_check_gain(p, error);
    if (status == TSR_DECLINED && p->fault.text[0]) /* says more */
        tsr_fail_at(error, status, p->fault.offset, "%s%.400s", p->cannot, p->fault.text);
    if (status == TSR_OK && p->fault.text[0] && p->fault.offset != TSR_NO_OFFSET)
        tsr_input_note_damage(p->source->input, "%s%s", p->damaged, p->fault.text);
    tsr_source_note_damage(p->source->input, status, error);
    if (tsr_begins_jpeg(p->file) && !tsr_jpeg_has_end(p->file, p->size))
        tsr_input_note_damage(p->source->input, "its JPEG stream has no end: the marker EOI is missing");
    return status;
}

/* TSR_DECLINED: a look at the first bytes and the size says that the file is not packed. */
static enum tsr_status check_begin(struct tsr_input *input, const struct tsr_packing *packing, tsr_lists **list,
                                   struct tsr_error *error)
{
    const uint64_t size = tsr_input_size(input);
    const bool is_png = packing->kind == TSR_KIND_PNG, is_other = packing->kind == TSR_KIND_OTHER;
    uint8_t head[512] = {0};
    const size_t first = size < sizeof head ? (size_t)size : sizeof head;
    TSR_TRY(tsr_input_read(input, 0, head, first, error));
    if (packing->kind != TSR_KIND_DICOM && !is_png && !tsr_begins_jpeg(head) && !tsr_begins_gzip(head) &&
        !tsr_may_have_streams(head, first))
        return tsr_fail(error, TSR_DECLINED, "%s", "");
    const bool is_long = size > (tsr_begins_jpeg(head) ? TSR_PACKED_FILE : TSR_SMALL_ARCHIVE);
    if (is_other && size >= TSR_PACKED_STREAM && (tsr_begins_zip(head, first) || tsr_begins_tar(head, first)))
        *list = tsr_list_archive;
    else if (is_other && is_long && tsr_may_have_streams(head, first))
        *list = tsr_list_streams;
    else if (packing->kind == TSR_KIND_DICOM && size > TSR_ELEMENTS_LONG)
        *list = tsr_list_elements;
    return TSR_OK;
}

static enum tsr_status open_packed(struct tsr_input *input, const struct tsr_packing *packing,
                                   struct tsr_source **source, struct tsr_error *error)
{
    const uint64_t size = tsr_input_size(input);
    const enum tsr_kind kind = packing->kind;
    struct tsr_header header = {.kind = kind, .recipe = TSR_RECIPE_PACKED, .exact = true};
    struct tsr_packed_file p = {.packing = packing, .crew = tsr_input_crew(input), .kind = kind, .size = (size_t)size};
    tsr_lists *list = NULL;
    *source = NULL;
    tsr_input_begin_inner(input, size, UINT64_MAX);
    TSR_TRY(check_begin(input, packing, &list, error));
    snprintf(header.reason, sizeof header.reason, "%.*s", TSR_REASON_LIMIT, packing->reason);
    enum tsr_status status = list ? tsr_archive_open(input, packing, &header, list, source, error) : TSR_DECLINED;
    if (status != TSR_DECLINED || list == tsr_list_archive || (list && size > TSR_PACKED_FILE)) return status;
    if (size > TSR_PACKED_FILE)
        return tsr_fail(error, TSR_DECLINED, "it is not coded: it has more than %llu MiB",
                        (unsigned long long)(TSR_PACKED_FILE >> 20));
    TSR_TRY(tsr_input_claim_header(input, size, error));
    p.source = tsr_source_create(sizeof *p.source, input, &header, NULL, error);
    if (!p.source) return TSR_ERROR_LIMIT;
    status = tsr_input_hold(input, p.size, &p.file, error);
    const bool is_small = size < (kind == TSR_KIND_PNG ? LEAST_PNG : TSR_PACKED_STREAM),
               may_be_cut = kind != TSR_KIND_PNG && kind != TSR_KIND_DICOM; /* others have looked at their own */
    if (status == TSR_OK && (!is_small || may_be_cut)) status = pack(&p, is_small, error);
    if (is_small && (status == TSR_OK || status == TSR_DECLINED))
        status = tsr_fail(error, TSR_DECLINED, "it is not coded: it has only %llu bytes", (unsigned long long)size);
    return tsr_source_finish(p.source, status, source);
}

enum tsr_status tsr_packed_open(struct tsr_input *input, const struct tsr_packing *packing, struct tsr_source **source,
                                struct tsr_error *error)
{
    struct tsr_error why;
    const enum tsr_status status = open_packed(input, packing, source, &why);
    tsr_source_note_damage(input, status, &why);
    const bool says_all = status != TSR_DECLINED || (packing->kind == TSR_KIND_OTHER && why.text[0]) ||
                          strstr(why.text, packing->reason); /* it is said once */
    if (status != TSR_OK && says_all)
        *error = why;
    else if (status != TSR_OK && (!why.text[0] || packing->kind == TSR_KIND_PNG))
        tsr_fail(error, status, "%s", packing->reason);
    else if (status != TSR_OK)
        tsr_fail(error, status, "%.200s, and %.250s", packing->reason, why.text);
    return status;
}
