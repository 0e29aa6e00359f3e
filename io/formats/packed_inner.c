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

enum tsr_status tsr_code_inner(const struct tsr_packed_file *p, const uint8_t *bytes, size_t size, uint64_t limit,
                               struct tsr_inner *inner, struct tsr_error *error)
{
    const struct tsr_inner_way *const way = &p->packing->inner;
    struct tsr_input *input = NULL;
    enum tsr_status status = tsr_input_open_inner(p->source->input, bytes, size, &input, error);
    if (status == TSR_ERROR_CORRUPT) return tsr_decline(error);
    if (status != TSR_OK) return status;
    tsr_input_limit_inner(input, limit);
    *inner = (struct tsr_inner){.tsr = {.limit = SIZE_MAX / 2}};
    status = way->compress(way->context, input, &inner->tsr, error);
    inner->bytes = size + tsr_input_inner_bytes(input);
    snprintf(inner->damage, sizeof inner->damage, "%s", tsr_input_damage(input));
    tsr_input_close(input);
    if (status != TSR_OK) tsr_bytes_free(&inner->tsr);
    return status;
}

bool tsr_take_inner(struct tsr_packed_file *p, const struct tsr_inner *inner)
{
    struct tsr_header *const header = &p->source->header;
    if (inner->damage[0]) tsr_input_note_damage(p->source->input, "a file in it looks damaged: %s", inner->damage);
    if (inner->tsr.size == 0 || !tsr_input_count_inner(p->source->input, inner->bytes)) return false;
    header->recipe = TSR_RECIPE_INNER;
    header->inner++;
    snprintf(header->reason, sizeof header->reason, "%s", tsr_inner_coded);
    return true;
}
