/* Files in files: members of ZIP, TAR and gzip that are coded as files of their own. PACKED.md 2. */
#include <stdio.h>

#include "format.h"
#include "packed_file.h"

bool tsr_may_be_inner(const struct tsr_packed_file *p, const uint8_t *bytes, size_t size)
{
    if (!p->has_inner || size < TSR_PACKED_STREAM) return false;
    return tsr_format_of(bytes, size < TSR_HEAD_BYTES ? size : TSR_HEAD_BYTES) || tsr_begins_jpeg(bytes) ||
           tsr_begins_gzip(bytes) || tsr_may_have_streams(bytes, size);
}

enum tsr_status tsr_pack_inner(struct tsr_packed_file *p, const uint8_t *bytes, size_t size, struct tsr_bytes *tsr,
                               struct tsr_error *error)
{
    const struct tsr_inner_way *const way = &p->packing->inner;
    struct tsr_header *const header = &p->source->header;
    struct tsr_input *input = NULL;
    enum tsr_status status = tsr_input_open_inner(p->source->input, bytes, size, size, &input, error);
    if (status == TSR_ERROR_CORRUPT) return tsr_decline(error);
    if (status != TSR_OK) return status;
    tsr->limit = SIZE_MAX / 2;
    status = way->compress(way->context, input, tsr, error);
    if (tsr_input_damage(input)[0])
        tsr_input_note_damage(p->source->input, "a file in it looks damaged: %s", tsr_input_damage(input));
    tsr_input_close(input);
    if (status != TSR_OK) return status;
    header->recipe = TSR_RECIPE_INNER;
    snprintf(header->reason, sizeof header->reason, "%s", tsr_inner_coded);
    header->inner++;
    return TSR_OK;
}

enum tsr_status tsr_pack_file(struct tsr_packed_file *p, size_t start, size_t size, struct tsr_error *error)
{
    struct tsr_bytes tsr = {0}, none = {0};
    const enum tsr_status status = tsr_pack_inner(p, p->file + start, size, &tsr, error);
    if (status != TSR_OK) {
        tsr_bytes_free(&tsr);
        return status;
    }
    const struct tsr_piece_head head = {.kind = TSR_PIECE_BYTES, .size = size, .inner = tsr.size};
    tsr_bytes_fit(&tsr);
    return tsr_pack_parts(p, start, start + size, &head, tsr_inner_room(&head), &tsr, &none, error);
}
