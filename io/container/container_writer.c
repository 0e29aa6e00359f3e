/* Writing a .tsr file: sections, their seals, index and end. FORMAT.md sections 3 to 5. */
#include "container_writer.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static enum tsr_status append_entry(struct tsr_entry **entries, size_t *count, size_t *capacity, struct tsr_entry entry,
                                    struct tsr_error *error)
{
    if (*count == *capacity) {
        const size_t more = *capacity ? 2 * *capacity : 64;
        struct tsr_entry *grown = realloc(*entries, more * sizeof *grown);
        if (!grown) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for an index of %zu sections", more);
        *entries = grown;
        *capacity = more;
    }
    (*entries)[(*count)++] = entry;
    return TSR_OK;
}

enum tsr_status tsr_add_entry(struct tsr_container_writer *w, struct tsr_entry entry, struct tsr_error *error)
{
    uint8_t varint[TSR_VARINT_LIMIT];
    w->listed_bytes += entry.length;
    w->line_bytes += 1 + tsr_put_varint(varint, entry.length);
    if (!w->is_trial) return append_entry(&w->entries, &w->entry_count, &w->entry_capacity, entry, error);
    w->entry_count++;
    return TSR_OK;
}

/* Writes a section of pieces. Its check is the sum of its hash and the seal. */
static enum tsr_status write_section(struct tsr_container_writer *w, enum tsr_section_type type,
                                     const struct tsr_piece *pieces, int count, uint64_t seal, struct tsr_entry *entry,
                                     struct tsr_error *error)
{
    uint8_t head[TSR_SECTION_HEAD_LIMIT], check[TSR_CHECK_BYTES];
    uint64_t body = 0;
    struct tsr_hasher hasher;
    for (int i = 0; i < count; i++) body += pieces[i].size;
    head[0] = (uint8_t)type;
    const size_t head_size = 1 + tsr_put_varint(head + 1, body);
    tsr_hasher_init(&hasher);
    tsr_hasher_add(&hasher, head, head_size);
    TSR_TRY(tsr_output_write(w->output, head, head_size, error));
    for (int i = 0; i < count; i++) {
        tsr_hasher_add(&hasher, pieces[i].bytes, pieces[i].size);
        TSR_TRY(tsr_output_write(w->output, pieces[i].bytes, pieces[i].size, error));
    }
    *entry = (struct tsr_entry){
        .length = head_size + body + sizeof check, .hash = tsr_hasher_result64(&hasher), .type = (uint8_t)type};
    tsr_put_u64(check, entry->hash + seal);
    return tsr_output_write(w->output, check, sizeof check, error);
}

enum tsr_status tsr_put_section(struct tsr_container_writer *w, enum tsr_section_type type,
                                const struct tsr_piece *pieces, int count, struct tsr_error *error)
{
    struct tsr_entry entry;
    TSR_TRY(write_section(w, type, pieces, count, 0, &entry, error));
    if (type == TSR_SECTION_BLOB) w->blob_bytes += entry.length;
    return tsr_add_entry(w, entry, error);
}

void tsr_container_stay_large(struct tsr_container_writer *w)
{
    tsr_small_free(w->small);
    w->small = NULL;
}

void tsr_container_know_pieces(struct tsr_container_writer *w, const struct tsr_header *header)
{
    w->header.room = header->room;
    w->header.inner = header->inner;
    memcpy(w->header.reason, header->reason, sizeof header->reason);
}

enum tsr_status tsr_keep_part(struct tsr_container_writer *w, uint8_t type, const struct tsr_piece *pieces, int count,
                              struct tsr_error *error)
{
    const size_t limit = tsr_has_frames(&w->header) ? TSR_SMALL_CODED : TSR_SMALL_STORED;
    bool fits = true;
    if (!w->small) return TSR_OK;
    TSR_TRY(tsr_small_add(w->small, type, pieces, count, limit, &fits, error));
    if (!fits) tsr_container_stay_large(w);
    return TSR_OK;
}

enum tsr_status tsr_seal_section(struct tsr_output *output, uint64_t end, uint64_t hash, uint64_t seal,
                                 struct tsr_error *error)
{
    uint8_t check[TSR_CHECK_BYTES];
    tsr_put_u64(check, hash + seal);
    return tsr_output_patch(output, end - sizeof check, check, sizeof check, error);
}

/* A writer that has written nothing yet. */
static enum tsr_status new_writer(struct tsr_output *output, const struct tsr_header *header,
                                  struct tsr_container_writer **writer, struct tsr_error *error)
{
    struct tsr_container_writer *const w = *writer = calloc(1, sizeof *w);
    if (!w) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for a container");
    w->output = output;
    w->header = *header;
    w->header.id = 0;
    w->start = tsr_output_size(output);
    return TSR_OK;
}

/* A trial takes as many bytes in any order. */
static bool has_order(const struct tsr_container_writer *w)
{
    return w->header.order.tiles > 0 && !w->is_trial;
}

/* The file may become a small one. */
static enum tsr_status may_be_small(struct tsr_container_writer *w, struct tsr_error *error)
{
    w->small = calloc(1, sizeof *w->small);
    return w->small ? TSR_OK : tsr_fail(error, TSR_ERROR_LIMIT, "no memory for a container");
}

enum tsr_status tsr_container_begin(struct tsr_output *output, const struct tsr_header *header,
                                    struct tsr_container_writer **writer, struct tsr_error *error)
{
    uint8_t body[TSR_HEADER_LIMIT];
    struct tsr_entry unlisted;
    TSR_TRY(new_writer(output, header, writer, error));
    struct tsr_container_writer *const w = *writer;
    w->begin = tsr_output_mark(output);
    if (!tsr_is_series(header) && !has_order(w)) TSR_TRY(may_be_small(w, error));
    const struct tsr_piece piece = {body, tsr_put_header(body, &w->header)};
    TSR_TRY(tsr_output_write(output, TSR_SIGNATURE, TSR_SIGNATURE_BYTES, error));
    return write_section(w, TSR_SECTION_HEADER, &piece, 1, 0, &unlisted, error);
}

enum tsr_status tsr_container_begin_member(struct tsr_output *output, const struct tsr_header *header,
                                           struct tsr_container_writer **writer, struct tsr_error *error)
{
    TSR_TRY(new_writer(output, header, writer, error));
    (*writer)->is_member = true;
    return TSR_OK;
}

void tsr_container_writer_free(struct tsr_container_writer *writer)
{
    if (!writer) return;
    for (int blob = 0; blob < TSR_BLOB_COUNT; blob++) {
        free(writer->waiting[blob].bytes);
        free(writer->base[blob].bytes);
    }
    tsr_small_free(writer->small);
    tsr_output_close(writer->rest);
    free(writer->rest_entries);
    free(writer->entries);
    free(writer->compressed);
    free(writer);
}

enum tsr_status tsr_container_put_base(struct tsr_container_writer *w, const void *tsr, size_t size,
                                       struct tsr_error *error)
{
    const struct tsr_piece piece = {tsr, size};
    tsr_container_stay_large(w);
    return tsr_put_section(w, TSR_SECTION_BASE, &piece, 1, error);
}

/* The last frame must have the tiles that the header promises: what readers look for depends on it. */
static enum tsr_status check_tiles(const struct tsr_container_writer *w, struct tsr_error *error)
{
    if (!has_order(w) || !w->in_frame || w->tiles == w->header.order.tiles) return TSR_OK;
    return tsr_fail(error, TSR_ERROR_INTERNAL, "frame %u has %u tiles, not %u", w->frames - 1, w->tiles,
                    w->header.order.tiles);
}

/* Counts frames that begin; has_tiles: tiles follow. */
static enum tsr_status begin_frame(struct tsr_container_writer *w, uint32_t frames, bool has_tiles,
                                   struct tsr_error *error)
{
    TSR_TRY(check_tiles(w, error));
    w->frames += frames;
    w->tiles = 0;
    w->in_frame = has_tiles;
    return TSR_OK;
}

enum tsr_status tsr_container_put_frame(struct tsr_container_writer *w, const void *model, size_t size,
                                        struct tsr_error *error)
{
    uint8_t number[TSR_VARINT_LIMIT];
    const struct tsr_piece pieces[2] = {{number, tsr_put_varint(number, w->frames)}, {model, size}};
    TSR_TRY(begin_frame(w, 1, true, error));
    TSR_TRY(tsr_keep_part(w, TSR_SECTION_FRAME, pieces + 1, 1, error));
    return tsr_put_section(w, TSR_SECTION_FRAME, pieces, 2, error);
}

enum tsr_status tsr_container_put_unit(struct tsr_container_writer *w, const void *unit, size_t size,
                                       struct tsr_error *error)
{
    uint8_t number[TSR_VARINT_LIMIT];
    const struct tsr_piece pieces[2] = {{number, tsr_put_varint(number, w->frames)}, {unit, size}};
    TSR_TRY(begin_frame(w, 1, false, error));
    TSR_TRY(tsr_keep_part(w, TSR_SECTION_UNIT, pieces + 1, 1, error));
    return tsr_put_section(w, TSR_SECTION_UNIT, pieces, 2, error);
}

enum tsr_status tsr_container_put_frame_like(struct tsr_container_writer *w, uint32_t distance, struct tsr_error *error)
{
    uint8_t numbers[2 * TSR_VARINT_LIMIT];
    size_t used = tsr_put_varint(numbers, w->frames);
    const size_t length = tsr_put_varint(numbers + used, distance);
    const struct tsr_piece part = {numbers + used, length}, piece = {numbers, used + length};
    TSR_TRY(tsr_keep_part(w, TSR_SECTION_LIKE, &part, 1, error));
    TSR_TRY(begin_frame(w, 1, true, error));
    TSR_TRY(tsr_put_section(w, TSR_SECTION_LIKE, &piece, 1, error));
    if (!w->is_trial) w->entries[w->entry_count - 1].distance = (uint8_t)distance;
    return TSR_OK;
}

/* Writes the section of runs of equal frames, of which the part is all but the number of the first frame. */
static enum tsr_status put_equal(struct tsr_container_writer *w, struct tsr_piece runs, uint32_t frames,
                                 struct tsr_error *error)
{
    uint8_t number[TSR_VARINT_LIMIT];
    const struct tsr_piece pieces[2] = {{number, tsr_put_varint(number, w->frames)}, runs};
    TSR_TRY(begin_frame(w, frames, false, error));
    TSR_TRY(tsr_keep_part(w, TSR_SECTION_EQUAL, pieces + 1, 1, error));
    return tsr_put_section(w, TSR_SECTION_EQUAL, pieces, 2, error);
}

enum tsr_status tsr_container_put_equal(struct tsr_container_writer *w, const struct tsr_equal_run *runs, int count,
                                        struct tsr_error *error)
{
    uint8_t bytes[2 * TSR_VARINT_LIMIT * TSR_EQUAL_LIMIT];
    size_t used = 0;
    uint32_t frames = 0;
    for (int i = 0; i < count; i++) {
        used += tsr_put_varint(bytes + used, runs[i].count);
        used += tsr_put_varint(bytes + used, w->frames + frames - runs[i].source);
        frames += runs[i].count;
    }
    assert(count > 0 && frames <= TSR_EQUAL_LIMIT);
    return put_equal(w, (struct tsr_piece){bytes, used}, frames, error);
}

enum tsr_status tsr_container_put_runs(struct tsr_container_writer *w, const uint8_t *runs, size_t size,
                                       struct tsr_error *error)
{
    const uint32_t frames = tsr_equal_frames(runs, size);
    if (frames == 0) return tsr_fail(error, TSR_ERROR_CORRUPT, "runs of equal frames of %zu bytes are not valid", size);
    return put_equal(w, (struct tsr_piece){runs, size}, frames, error);
}

/* ---- Tiles that wait for all frames: ORDER.md --------------------------------------------------------------- */

/* Writes the section of a tile that comes after all frames where it waits. */
static enum tsr_status put_to_rest(struct tsr_container_writer *w, const struct tsr_piece *pieces, int count,
                                   struct tsr_error *error)
{
    struct tsr_output *const output = w->output;
    struct tsr_entry entry;
    if (!w->rest) TSR_TRY(tsr_output_create_spool(output, false, &w->rest, error));
    tsr_output_forgo_hash(w->rest);
    w->output = w->rest;
    const enum tsr_status status = write_section(w, TSR_SECTION_TILE, pieces, count, 0, &entry, error);
    w->output = output;
    TSR_TRY(status);
    return append_entry(&w->rest_entries, &w->rest_count, &w->rest_capacity, entry, error);
}

enum tsr_status tsr_container_end_frames(struct tsr_container_writer *w, struct tsr_error *error)
{
    enum { AT_ONCE = 1 << 16 };
    const uint64_t size = w->rest ? tsr_output_size(w->rest) : 0;
    TSR_TRY(check_tiles(w, error));
    w->in_frame = false;
    uint8_t *const bytes = size > 0 ? malloc(AT_ONCE) : NULL;
    enum tsr_status status = bytes || size == 0 ? TSR_OK : tsr_fail(error, TSR_ERROR_LIMIT, "no memory to copy tiles");
    for (uint64_t at = 0; at < size && status == TSR_OK; at += AT_ONCE) {
        const size_t count = size - at < AT_ONCE ? (size_t)(size - at) : AT_ONCE;
        status = tsr_output_read(w->rest, at, bytes, count, error);
        if (status == TSR_OK) status = tsr_output_write(w->output, bytes, count, error);
    }
    free(bytes);
    for (size_t i = 0; i < w->rest_count && status == TSR_OK; i++) status = tsr_add_entry(w, w->rest_entries[i], error);
    tsr_output_close(w->rest);
    w->rest = NULL;
    w->rest_count = 0;
    return status;
}

enum tsr_status tsr_container_put_tile(struct tsr_container_writer *w, const struct tsr_piece *payload, int count,
                                       struct tsr_error *error)
{
    enum { PIECES = 16 };
    uint8_t numbers[2 * TSR_VARINT_LIMIT];
    struct tsr_piece pieces[PIECES + 1];
    if (count > PIECES || w->frames == 0)
        return tsr_fail(error, TSR_ERROR_INTERNAL, "a tile cannot have %d pieces", count);
    const uint32_t tile = w->tiles++;
    size_t used = tsr_put_varint(numbers, w->frames - 1);
    used += tsr_put_varint(numbers + used, tile);
    pieces[0] = (struct tsr_piece){numbers, used};
    for (int i = 0; i < count; i++) pieces[1 + i] = payload[i];
    bool is_first = true;
    if (has_order(w)) tsr_order_rank(&w->header.order, tile, &is_first);
    if (!is_first) return put_to_rest(w, pieces, count + 1, error);
    TSR_TRY(tsr_keep_part(w, TSR_SECTION_TILE, payload, count, error));
    return tsr_put_section(w, TSR_SECTION_TILE, pieces, count + 1, error);
}

/* Writes the index's body: the number of sections, then type and length of each. */
static size_t put_index(const struct tsr_container_writer *w, size_t entries, uint8_t *out)
{
    size_t used = tsr_put_varint(out, entries);
    for (size_t i = 0; i < entries; i++) {
        out[used++] = w->entries[i].type;
        used += tsr_put_varint(out + used, w->entries[i].length);
    }
    return used;
}

/* Writes the header again, with its id and its seal. */
static enum tsr_status seal_header(struct tsr_container_writer *w, struct tsr_error *error)
{
    uint8_t section[TSR_SECTION_HEAD_LIMIT + TSR_HEADER_LIMIT + TSR_CHECK_BYTES], body[TSR_HEADER_LIMIT];
    const size_t size = tsr_put_header(body, &w->header);
    section[0] = TSR_SECTION_HEADER;
    size_t used = 1 + tsr_put_varint(section + 1, size);
    memcpy(section + used, body, size);
    used += size;
    tsr_put_u64(section + used, tsr_hash64_of(section, used) + tsr_seal(w->header.id, 0));
    return tsr_output_patch(w->output, w->start + TSR_SIGNATURE_BYTES, section, used + TSR_CHECK_BYTES, error);
}

/* Seals the file's own sections, not those of members. *count: their number. */
static enum tsr_status seal_own(struct tsr_container_writer *w, uint64_t first, uint64_t *count,
                                struct tsr_error *error)
{
    uint64_t end = first;
    *count = 0;
    for (size_t i = 0; i < w->entry_count; i++) {
        end += w->entries[i].length;
        if (w->entries[i].is_of_member) continue;
        TSR_TRY(tsr_seal_section(w->output, end, w->entries[i].hash, tsr_seal(w->header.id, ++*count), error));
    }
    return TSR_OK;
}

uint64_t tsr_make_id(const struct tsr_header *header, const struct tsr_entry *entries, size_t count,
                     const struct tsr_proof *proof)
{
    uint8_t body[TSR_HEADER_LIMIT];
    struct tsr_hasher id;
    tsr_id_begin(&id, tsr_header_hash(body, tsr_put_header(body, header)));
    for (size_t i = 0; i < count; i++)
        if (!entries[i].is_of_member) tsr_id_add(&id, entries[i].hash);
    if (proof) tsr_id_add(&id, tsr_hash64_of(body, tsr_put_proof(body, proof, header)));
    return tsr_hasher_result64(&id);
}

/* Writes index, copies and footer of a file whose id is known. own: the number of the file's own sections. */
static enum tsr_status put_end(struct tsr_container_writer *w, uint64_t own, struct tsr_error *error)
{
    uint8_t header_body[TSR_HEADER_LIMIT], header_size[TSR_VARINT_LIMIT], footer[TSR_FOOTER_BYTES];
    struct tsr_entry unlisted;
    uint8_t *index = malloc(TSR_VARINT_LIMIT + w->entry_count * (1 + TSR_VARINT_LIMIT));
    if (!index) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for an index of %zu sections", w->entry_count);
    const struct tsr_piece index_piece = {index, put_index(w, w->entry_count, index)};
    const uint64_t index_offset = tsr_output_size(w->output);
    enum tsr_status status =
        write_section(w, TSR_SECTION_INDEX, &index_piece, 1, tsr_seal(w->header.id, own + 1), &unlisted, error);
    const uint64_t copy_offset = tsr_output_size(w->output);
    if (status == TSR_OK) {
        const size_t size = tsr_put_header(header_body, &w->header);
        const struct tsr_piece copy[3] = {
            {header_size, tsr_put_varint(header_size, size)}, {header_body, size}, index_piece};
        status = write_section(w, TSR_SECTION_COPY, copy, 3, tsr_seal(w->header.id, own + 2), &unlisted, error);
    }
    free(index);
    TSR_TRY(status);
    tsr_put_u64(footer, index_offset);
    tsr_put_u64(footer + 8, copy_offset);
    tsr_put_u32(footer + 16, (uint32_t)tsr_hash64_of(footer, 16));
    memcpy(footer + 20, TSR_END_MARK, 4);
    return tsr_output_write(w->output, footer, sizeof footer, error);
}

enum tsr_status tsr_container_end(struct tsr_container_writer *w, const struct tsr_proof *proof,
                                  struct tsr_error *error)
{
    uint8_t body[TSR_PROOF_LIMIT], header_body[TSR_HEADER_LIMIT];
    const size_t header_size = tsr_put_header(header_body, &w->header);
    const uint64_t first = w->start + tsr_header_end(header_size);
    uint64_t own = 0;
    if (w->small) {
        w->header.grows = false; /* all is written again */
        TSR_TRY(tsr_output_return(w->output, &w->begin, error));
        return tsr_small_write(w->small, &w->header, proof, w->output, error);
    }
    if (!tsr_is_series(&w->header)) {
        const struct tsr_piece proof_piece = {body, tsr_put_proof(body, proof, &w->header)};
        TSR_TRY(tsr_put_section(w, TSR_SECTION_PROOF, &proof_piece, 1, error));
    } else if (w->members != w->header.members) {
        return tsr_fail(error, TSR_ERROR_INTERNAL, "the series has only %u of its %u files", w->members,
                        w->header.members);
    } else {
        TSR_TRY(tsr_put_twins(w, first, error));
    }
    w->header.id = tsr_make_id(&w->header, w->entries, w->entry_count, NULL);
    TSR_TRY(seal_header(w, error));
    TSR_TRY(seal_own(w, first, &own, error));
    return put_end(w, own, error);
}

uint64_t tsr_container_written(const struct tsr_container_writer *writer)
{
    return tsr_output_size(writer->output) - writer->start;
}

uint64_t tsr_container_payload_bytes(const struct tsr_container_writer *writer)
{
    if (writer->small) return tsr_small_payload(writer->small);
    return tsr_output_size(writer->output) - writer->start - writer->blob_bytes;
}

/* ---- Trials ------------------------------------------------------------------------------------------------- */

uint64_t tsr_container_bytes_to_be(const struct tsr_container_writer *w)
{
    enum { PROOF_LINE = 2 };
    uint8_t varint[TSR_VARINT_LIMIT], body[TSR_HEADER_LIMIT];
    if (w->small) return tsr_small_bytes(w->small);
    if (w->is_member) return w->listed_bytes + 2 * w->line_bytes;
    const uint64_t index = tsr_put_varint(varint, w->entry_count + 1) + w->line_bytes + PROOF_LINE;
    return w->listed_bytes + 2 * index + tsr_put_varint(varint, index) +
           tsr_put_varint(varint, index + tsr_put_header(body, &w->header) + 1);
}

uint64_t tsr_container_twin_bytes(size_t model)
{
    enum { SECTION_NUMBER = 3, FRAME_NUMBER = 1 };
    uint8_t varint[TSR_VARINT_LIMIT];
    const uint64_t body = SECTION_NUMBER + FRAME_NUMBER + model,
                   length = 1 + tsr_put_varint(varint, body) + body + TSR_CHECK_BYTES;
    return length + 2 * (1 + tsr_put_varint(varint, length));
}

/* The blobs among the parts of a small file. */
static enum tsr_status copy_parts(const struct tsr_small *from, struct tsr_small *to, struct tsr_error *error)
{
    struct tsr_piece part = {from->content.bytes, 0};
    for (int i = 0; i < from->count; i++, part.bytes = (const uint8_t *)part.bytes + part.size) {
        bool fits;
        part.size = from->part_size[i];
        if (tsr_small_is_blob(from->type[i]))
            TSR_TRY(tsr_small_add(to, from->type[i], &part, 1, TSR_SMALL_CODED, &fits, error));
    }
    return TSR_OK;
}

enum tsr_status tsr_container_begin_trial(const struct tsr_container_writer *writer, struct tsr_output *nothing,
                                          struct tsr_container_writer **trial, struct tsr_error *error)
{
    TSR_TRY(new_writer(nothing, &writer->header, trial, error));
    struct tsr_container_writer *const w = *trial;
    w->is_trial = true;
    w->is_member = writer->is_member;
    for (size_t i = 0; i < writer->entry_count; i++)
        if (writer->entries[i].type == TSR_SECTION_BLOB || writer->entries[i].type == TSR_SECTION_BASE)
            TSR_TRY(tsr_add_entry(w, writer->entries[i], error));
    if (!writer->small) return TSR_OK;
    TSR_TRY(may_be_small(w, error));
    return copy_parts(writer->small, w->small, error);
}
