/* Writing the members of a series, whose blobs may be compressed with those of others, and twins. FORMAT.md 3.7 and
 * 3.8. */
#include <stdlib.h>
#include <string.h>

#include "container_writer.h"
#include "long_blob.h"
#include "io/bytes/zstd_contexts.h"

/* Compresses bytes as a continuation of the base. */
static enum tsr_status compress_after(struct tsr_container_writer *w, const struct tsr_written_base *base,
                                      const void *bytes, size_t size, size_t *compressed, struct tsr_error *error)
{
    TSR_TRY(tsr_grow_buffer(&w->compressed, &w->compressed_capacity, tsr_zstd_bound(size), error));
    *compressed = tsr_zstd_compress(base->bytes, base->size, bytes, size, tsr_container_level(w, size), w->compressed,
                                    w->compressed_capacity);
    return *compressed > 0 ? TSR_OK : tsr_fail(error, TSR_ERROR_LIMIT, "no memory to compress %zu bytes", size);
}

enum tsr_status tsr_container_begin_again(const struct tsr_container_writer *member, struct tsr_output *output,
                                          struct tsr_container_writer **again, struct tsr_error *error)
{
    *again = NULL;
    if (member->blob_bytes > 0) return TSR_OK;
    TSR_TRY(tsr_container_begin_member(output, &member->header, again, error));
    for (int blob = 0; blob < TSR_BLOB_COUNT; blob++) {
        const struct tsr_waiting *waiting = &member->waiting[blob];
        if (waiting->size > 0)
            TSR_TRY(tsr_container_put_blob(*again, (enum tsr_blob)blob, waiting->bytes, waiting->size, error));
    }
    return TSR_OK;
}

/* Puts a small blob. The DICOM headers of a series are nearly equal, so all of them are compressed as a continuation of
 * one of them, the base. If that is not at least a quarter smaller, in proportion, than the base alone, the blob is
 * compressed alone and is the next base. */
static enum tsr_status put_with_base(struct tsr_container_writer *series, enum tsr_blob blob,
                                     const struct tsr_waiting *waiting, struct tsr_error *error)
{
    enum { BASE_LEAST = 64, BASE_REACH = 255 };
    struct tsr_written_base *base = &series->base[blob];
    const uint32_t distance = series->members - base->member;
    if (base->size >= BASE_LEAST && distance <= BASE_REACH) {
        size_t after = 0;
        TSR_TRY(compress_after(series, base, waiting->bytes, waiting->size, &after, error));
        if (4 * (uint64_t)after * base->size < 3 * base->alone * waiting->size) { /* each factor is below 2^21 */
            series->entries[base->entry].is_shared = true;
            uint8_t head[3 + TSR_VARINT_LIMIT] = {(uint8_t)blob, TSR_BLOB_ZSTD_AFTER};
            size_t used = 2 + tsr_put_varint(head + 2, waiting->size);
            head[used++] = (uint8_t)distance;
            const struct tsr_piece pieces[2] = {{head, used}, {series->compressed, after}};
            return tsr_put_section(series, TSR_SECTION_BLOB, pieces, 2, error);
        }
    }
    const bool is_base = waiting->size >= BASE_LEAST;
    if (is_base) {
        uint8_t *bytes = malloc(waiting->size);
        if (!bytes) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for %zu bytes of metadata", waiting->size);
        memcpy(bytes, waiting->bytes, waiting->size);
        free(base->bytes);
        *base = (struct tsr_written_base){bytes, waiting->size, 0, series->members, series->entry_count};
    }
    const uint64_t before = series->blob_bytes;
    const enum tsr_status status = tsr_put_alone(series, blob, waiting->bytes, waiting->size, error);
    if (is_base) base->alone = series->blob_bytes - before;
    return status;
}

/* Marks the models of other members that a member's frames need. from: the member's first section in the index of the
 * series. */
static void mark_models(struct tsr_container_writer *series, size_t from)
{
    for (size_t i = from; i < series->entry_count; i++) {
        uint8_t left = series->entries[i].type == TSR_SECTION_LIKE ? series->entries[i].distance : 0;
        for (size_t k = i; left > 0 && k-- > 0;) {
            const uint8_t type = series->entries[k].type;
            if (type != TSR_SECTION_FRAME && type != TSR_SECTION_LIKE) continue;
            if (--left == 0 && k < from) series->entries[k].is_shared = true;
        }
    }
}

static enum tsr_status add_entries(struct tsr_container_writer *series, const struct tsr_container_writer *member,
                                   struct tsr_error *error)
{
    for (size_t i = 0; i < member->entry_count; i++) TSR_TRY(tsr_add_entry(series, member->entries[i], error));
    series->blob_bytes += member->blob_bytes;
    return TSR_OK;
}

static enum tsr_status put_waiting(struct tsr_container_writer *series, const struct tsr_container_writer *member,
                                   struct tsr_error *error)
{
    for (int blob = 0; blob < TSR_BLOB_COUNT; blob++)
        if (member->waiting[blob].size > 0)
            TSR_TRY(put_with_base(series, (enum tsr_blob)blob, &member->waiting[blob], error));
    return TSR_OK;
}

/* Seals count sections of a member. entry: the first one in the index of the series; n: its number in the member;
 * offset: its place in the output. */
static enum tsr_status seal_entries(struct tsr_container_writer *series, uint64_t id, struct tsr_output *output,
                                    uint64_t offset, size_t entry, size_t count, uint64_t n, struct tsr_error *error)
{
    for (size_t i = entry; i < entry + count; i++, n++) {
        offset += series->entries[i].length;
        series->entries[i].is_of_member = true;
        TSR_TRY(tsr_seal_section(output, offset, series->entries[i].hash, tsr_seal(id, n), error));
    }
    return TSR_OK;
}

/* Puts the sections of a member. A member in memory is sealed before it is copied, and its blobs stand before it. A
 * member that was written to the output of the series stands before its blobs. */
static enum tsr_status put_sections(struct tsr_container_writer *series, struct tsr_container_writer *member,
                                    const struct tsr_proof *proof, uint64_t offset, struct tsr_error *error)
{
    const bool is_direct = member->output == series->output;
    const size_t first = series->entry_count;
    if (is_direct) TSR_TRY(add_entries(series, member, error));
    TSR_TRY(put_waiting(series, member, error));
    const size_t blobs = series->entry_count - first;
    if (!is_direct) TSR_TRY(add_entries(series, member, error));
    mark_models(series, first);
    const uint64_t id = tsr_make_id(&member->header, series->entries + first, series->entry_count - first, proof);
    member->header.id = id;
    if (is_direct)
        return seal_entries(series, id, series->output, offset, first, series->entry_count - first, 1, error);
    TSR_TRY(seal_entries(series, id, series->output, offset, first, blobs, 1, error));
    TSR_TRY(seal_entries(series, id, member->output, 0, first + blobs, member->entry_count, blobs + 1, error));
    return tsr_output_write(series->output, tsr_output_bytes(member->output), (size_t)tsr_output_size(member->output),
                            error);
}

enum tsr_status tsr_container_add_member(struct tsr_container_writer *series, struct tsr_container_writer *member,
                                         const char *name, const struct tsr_proof *proof, uint64_t *bytes,
                                         uint64_t *payload_bytes, struct tsr_error *error)
{
    const uint64_t blob_bytes = series->blob_bytes;
    if (!tsr_is_member_name(name, strlen(name)) || series->members == series->header.members)
        return tsr_fail(error, TSR_ERROR_INTERNAL, "the series cannot have a file %u called '%s'", series->members,
                        name);
    const uint64_t offset = member->output == series->output ? member->start : tsr_output_size(series->output);
    TSR_TRY(put_sections(series, member, proof, offset, error));
    uint8_t *body = malloc(TSR_MEMBER_LIMIT);
    if (!body) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for a file of the series");
    const struct tsr_piece piece = {body, tsr_put_member(body, name, &member->header, proof)};
    const enum tsr_status status = tsr_put_section(series, TSR_SECTION_MEMBER, &piece, 1, error);
    free(body);
    series->members++;
    *bytes = tsr_output_size(series->output) - offset;
    *payload_bytes = *bytes - (series->blob_bytes - blob_bytes);
    return status;
}

/* ---- Twins: a section that several members need stands again after all members ------------------------------ */

static enum tsr_status put_twin(struct tsr_container_writer *w, size_t entry, uint64_t offset, struct tsr_error *error)
{
    const size_t length = (size_t)w->entries[entry].length;
    uint8_t number[TSR_VARINT_LIMIT];
    TSR_TRY(tsr_grow_buffer(&w->compressed, &w->compressed_capacity, length, error));
    TSR_TRY(tsr_output_read(w->output, offset, w->compressed, length, error));
    struct tsr_cursor c = {w->compressed, length, 1, false};
    const size_t size = (size_t)tsr_get_varint(&c);
    const struct tsr_piece pieces[2] = {{number, tsr_put_varint(number, entry)}, {w->compressed + c.at, size}};
    return tsr_put_section(w, TSR_SECTION_TWIN, pieces, 2, error);
}

enum tsr_status tsr_put_twins(struct tsr_container_writer *w, uint64_t first, struct tsr_error *error)
{
    const size_t count = w->entry_count;
    uint64_t offset = first;
    for (size_t i = 0; i < count; i++) {
        if (w->entries[i].is_shared) TSR_TRY(put_twin(w, i, offset, error));
        offset += w->entries[i].length;
    }
    return TSR_OK;
}
