/* Files in files: members of ZIP, TAR and gzip that are coded as files of their own. PACKED.md 2. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format.h"
#include "packed_archive.h"
#include "packed_file.h"
#include "io/nodes/deflate/deflate.h"

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

/* ---- What would be enough ----------------------------------------------------------------------------------- */

void tsr_measure_inner(const struct tsr_packed_file *p, const uint8_t *bytes, size_t size, uint64_t limit)
{
    struct tsr_inner inner = {.bytes = 0};
    struct tsr_error ignored;
    if (tsr_may_be_inner(p, bytes, size)) tsr_code_inner(p, bytes, size, limit, &inner, &ignored);
    tsr_bytes_free(&inner.tsr);
}

/* Of a format, the first bytes tell. Of others this is above what most take. */
void tsr_measure_unseen(const struct tsr_packed_file *p, const uint8_t *first, size_t first_size, uint64_t size,
                        uint64_t limit)
{
    const size_t head = first_size < TSR_HEAD_BYTES ? first_size : TSR_HEAD_BYTES;
    const bool has_format = tsr_format_of(first, head) != NULL,
               is_archive = first_size > 0 && (tsr_begins_zip(first, first_size) || tsr_begins_tar(first, first_size));
    struct tsr_need need = tsr_input_need(p->source->input);
    struct tsr_error ignored;
    uint8_t *const bytes = size < SIZE_MAX ? calloc(1, (size_t)size) : NULL; /* of which few pages are touched */
    if (bytes && first_size > 0) memcpy(bytes, first, first_size < size ? first_size : (size_t)size);
    if (bytes) tsr_measure_inner(p, bytes, (size_t)size, limit);
    free(bytes);
    if (has_format && bytes) return;
    need.opening += is_archive ? tsr_guess_inner(size / 2) : tsr_guess_inner(size);
    need.has_inner = false;
    tsr_input_claim(p->source->input, NULL, &need, &ignored);
}

/* Measures the file that a stream becomes, if it becomes size bytes. False: it was not looked at. */
static bool measure_plain(const struct tsr_packed_file *p, const uint8_t *stream, size_t size, uint64_t plain_size,
                          uint64_t limit)
{
    struct tsr_input *const input = p->source->input;
    const uint64_t held = plain_size + tsr_deflate_memory(0);
    size_t used;
    if (plain_size == 0 || !tsr_input_take_spare(input, held)) return false;
    uint8_t *const plain = malloc((size_t)plain_size);
    const bool is_seen = plain && tsr_deflate_plain(stream, size, plain, (size_t)plain_size, &used);
    if (is_seen) tsr_measure_inner(p, plain, (size_t)plain_size, limit);
    free(plain);
    tsr_input_return_spare(input, held);
    return is_seen;
}

void tsr_measure_deflated(const struct tsr_packed_file *p, const uint8_t *stream, size_t size, uint64_t told,
                          uint64_t most, uint64_t limit)
{
    struct tsr_input *const input = p->source->input;
    const uint64_t held = tsr_deflate_memory(most);
    struct tsr_bytes first = {.limit = SIZE_MAX / 2};
    struct tsr_error ignored;
    size_t plain_size = 0;
    if (measure_plain(p, stream, size, told, limit)) return;
    if (tsr_input_take_spare(input, held)) {
        if (tsr_deflate_measure(stream, size, (size_t)most, &plain_size, &ignored) != TSR_OK) plain_size = 0;
        tsr_input_return_spare(input, held);
        if (plain_size == told) plain_size = 0; /* there was no room */
    }
    if (measure_plain(p, stream, size, plain_size, limit)) return;
    tsr_deflate_first(stream, size, TSR_UNSEEN_FIRST, &first); /* after an error, what was made before it counts */
    tsr_measure_unseen(p, first.bytes, first.size, plain_size > 0 ? plain_size : told > 0 ? told : most, limit);
    tsr_bytes_free(&first);
}
