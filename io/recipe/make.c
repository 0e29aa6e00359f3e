/* Makes files of recipes; see recipe.h. */
#include <stdlib.h>
#include <string.h>

#include "io/nodes/deflate/deflate.h"
#include "io/nodes/elements/elements_mix.h"
#include "io/nodes/png/png_writer.h"
#include "pieces.h"
#include "png_parameters.h"
#include "recipe.h"

enum {
    CHUNK = 1 << 14,
    LANES = 16, /* pieces of elements that are joined at once, at most */
    LANE_BYTES = TSR_ELEMENTS_MEMORY + TSR_ELEMENTS_CODE + TSR_ELEMENTS_PLAIN
};

struct tsr_maker {
    const struct tsr_header *header;
    struct tsr_output *output;
    struct tsr_making making;
    struct tsr_recipe recipe;
    struct tsr_node_work work;
    struct deflate_coder *coder; /* of deflate streams, or NULL */
    struct tsr_bytes residues;   /* all, and how many of their bytes are used */
    size_t residues_at;
    const uint8_t *ahead; /* bytes of a blob that came, and are not used yet */
    size_t ahead_size;
    bool is_open; /* a node has begun: */
    struct tsr_step open;
    struct tsr_bytes plain; /* what it has so far */
    uint32_t files;         /* pieces that were files */
    struct tsr_bytes made;  /* by a node */
    /* Frames. */
    const struct tsr_step *frames;
    uint32_t frames_done;
    uint64_t spare_bytes; /* that the input has granted */
    uint8_t waiting;      /* of rasters of single bits, the bits of the last byte that are not put yet, */
    int waiting_bits;     /* and their number */
};

/* ---- Bytes -------------------------------------------------------------------------------------------------- */

/* Puts bytes to the node that has begun, or to the output. */
static enum tsr_status put(struct tsr_maker *m, const uint8_t *bytes, size_t size, struct tsr_error *error)
{
    const size_t before = !m->is_open || size < m->open.before ? size : (size_t)m->open.before;
    TSR_TRY(tsr_output_write(m->output, bytes, before, error));
    if (!m->is_open) return TSR_OK;
    m->open.before -= before;
    bytes += before;
    size -= before;
    if (m->open.foreseen > 0 && m->plain.capacity == 0 && m->open.foreseen <= m->plain.limit)
        TSR_TRY(tsr_bytes_reserve(&m->plain, (size_t)m->open.foreseen, error));
    return tsr_bytes_put(&m->plain, bytes, size, error);
}

/* The next bytes of a blob, at most so many; *size 0: there are no more. */
static enum tsr_status take(struct tsr_maker *m, enum tsr_blob blob, uint64_t most, const uint8_t **bytes, size_t *size,
                            struct tsr_error *error)
{
    const struct tsr_leaves *const leaves = &m->making.leaves;
    if (m->ahead_size == 0) TSR_TRY(leaves->read(leaves->context, blob, &m->ahead, &m->ahead_size, error));
    *bytes = m->ahead;
    *size = m->ahead_size < most ? m->ahead_size : (size_t)most;
    if (*size > 0) m->ahead += *size;
    m->ahead_size -= *size;
    return TSR_OK;
}

/* Takes just as many bytes. When a sixteenth of them is there, all get their room: a size alone may say anything. */
static enum tsr_status collect(struct tsr_maker *m, enum tsr_blob blob, uint64_t size, struct tsr_bytes *to,
                               struct tsr_error *error)
{
    enum { PART = 16 };
    bool is_reserved = false;
    to->size = 0;
    to->limit = (size_t)size;
    for (uint64_t left = size; left > 0;) {
        const uint8_t *bytes;
        size_t now;
        TSR_TRY(take(m, blob, left, &bytes, &now, error));
        if (now == 0) return tsr_fail(error, TSR_ERROR_CORRUPT, "the file ends within a piece");
        TSR_TRY(tsr_bytes_put(to, bytes, now, error));
        left -= now;
        if (is_reserved || left / PART > to->size) continue;
        is_reserved = true;
        TSR_TRY(tsr_bytes_reserve_by(&m->work.crew, to, (size_t)left, error));
    }
    return TSR_OK;
}

/* Writes the last byte of rasters of single bits. */
static enum tsr_status put_waiting(struct tsr_maker *m, struct tsr_error *error)
{
    if (m->waiting_bits == 0) return TSR_OK;
    const uint8_t last = (uint8_t)(m->waiting | m->recipe.spare << m->waiting_bits);
    m->waiting_bits = 0;
    return put(m, &last, 1, error);
}

static enum tsr_status put_bytes(struct tsr_maker *m, const struct tsr_step *step, struct tsr_error *error)
{
    if (step->bytes) return put(m, step->bytes, (size_t)step->size, error);
    for (uint64_t left = step->size; left > 0;) {
        const uint8_t *bytes;
        size_t now;
        TSR_TRY(take(m, step->from, left, &bytes, &now, error));
        if (now == 0 && step->size != TSR_ALL_BYTES)
            return tsr_fail(error, TSR_ERROR_CORRUPT, "%llu bytes are missing", (unsigned long long)left);
        if (now == 0) return TSR_OK;
        TSR_TRY(put(m, bytes, now, error));
        if (left != TSR_ALL_BYTES) left -= now;
    }
    return TSR_OK;
}

static enum tsr_status keep_residues(struct tsr_maker *m, struct tsr_error *error)
{
    const struct tsr_leaves *const leaves = &m->making.leaves;
    const uint64_t limit = tsr_output_limit_of(m->output);
    size_t size = 1;
    if (m->making.residues) {
        m->residues = *m->making.residues;
        *m->making.residues = (struct tsr_bytes){.limit = m->residues.limit};
        size = 0;
    }
    m->residues.limit = SIZE_MAX / 2;
    while (size > 0) {
        const uint8_t *bytes;
        TSR_TRY(leaves->read(leaves->context, TSR_BLOB_RESIDUES, &bytes, &size, error));
        if (m->residues.size + size > limit) break;
        TSR_TRY(tsr_bytes_put(&m->residues, bytes, size, error));
    }
    if (m->residues.size + size > 0 && !tsr_has_residues(m->header))
        return tsr_fail(error, TSR_ERROR_CORRUPT, "the file has residues, which it cannot have");
    if (m->residues.size + size > limit)
        return tsr_fail(error, TSR_ERROR_CORRUPT, "the residues are longer than the restored file");
    return TSR_OK;
}

/* ---- Nodes -------------------------------------------------------------------------------------------------- */

static enum tsr_status fail_room(struct tsr_error *error)
{
    return tsr_fail(error, TSR_ERROR_CORRUPT, "a piece of the file takes more memory than its header says");
}

/* Most bytes that a node may make: what the file has left after so many more, and of a piece no more than the room. */
static size_t bytes_left(const struct tsr_maker *m, uint64_t before)
{
    const uint64_t limit = tsr_output_limit_of(m->output), done = tsr_output_size(m->output) + before,
                   left = limit > done ? limit - done : 0,
                   most = m->recipe.count == 0 && m->header->room < left ? m->header->room : left;
    return most < SIZE_MAX / 4 ? (size_t)most : SIZE_MAX / 4;
}

/* Makes bytes of what the node has, and puts them. */
static enum tsr_status close_node(struct tsr_maker *m, const uint8_t *residue, size_t size, struct tsr_error *error)
{
    const struct tsr_node *const node = m->open.node;
    const struct tsr_node_parts parts = {m->plain.bytes ? m->plain.bytes : (const uint8_t *)"",
                                         residue ? residue : (const uint8_t *)"", m->plain.size, size};
    m->made.size = 0;
    m->made.limit = bytes_left(m, 0);
    if (m->open.before > 0)
        return tsr_fail(error, TSR_ERROR_CORRUPT, "the %s stream begins after the end of the file", node->name);
    TSR_TRY(node->join(&m->work, &parts, &m->made, error));
    m->is_open = false;
    return put(m, m->made.bytes, m->made.size, error);
}

static void open_node(struct tsr_maker *m, const struct tsr_step *step)
{
    m->is_open = true;
    m->open = *step;
    tsr_bytes_free(&m->plain);
    m->plain.limit = (size_t)step->size;
}

/* ---- Pieces: PACKED.md --------------------------------------------------------------------------------- */

/* *is_last: there are no more pieces. */
static enum tsr_status take_head(struct tsr_maker *m, struct tsr_piece_head *head, bool *is_last,
                                 struct tsr_error *error)
{
    uint8_t bytes[TSR_PIECE_HEAD_LIMIT];
    size_t size = 0, used = 0;
    *is_last = false;
    while (used == 0) {
        const uint8_t *byte;
        size_t now;
        TSR_TRY(take(m, TSR_BLOB_PREFIX, 1, &byte, &now, error));
        *is_last = now == 0 && size == 0;
        if (*is_last) return TSR_OK;
        if (now == 0) return tsr_fail(error, TSR_ERROR_CORRUPT, "the file ends within a piece");
        bytes[size++] = *byte;
        TSR_TRY(tsr_get_piece_head(bytes, size, head, &used, error));
    }
    return TSR_OK;
}

/* Pieces that follow each other and that threads make at once: codes of elements, JPEG streams, files, and few bytes
 * between them. * Others are made one by one. */
struct joining {
    unsigned count, lanes; /* lanes: those that have memory */
    uint64_t lane_bytes;
    struct lane {
        struct tsr_maker *maker;
        struct tsr_piece_head head;
        struct tsr_bytes code, residue, plain, made;
        struct deflate_coder *coder;
        enum tsr_status status;
        struct tsr_error error;
    } lane[LANES];
};

static bool are_bytes(const struct tsr_piece_head *head)
{
    return head->kind == TSR_PIECE_BYTES && head->inner == 0;
}

static bool may_join(const struct tsr_maker *m, const struct tsr_piece_head *head)
{
    enum { FEW_BYTES = 1 << 12 };
    if (m->making.enough > 0) return false;
    return head->kind == TSR_PIECE_ELEMENTS || head->kind == TSR_PIECE_JPEG || head->inner > 0 ||
           (tsr_has_inner(m->header) && are_bytes(head) && head->size <= FEW_BYTES);
}

/* Makes the bytes of a piece: lane->made, or of bytes lane->plain or lane->code. */
static enum tsr_status make_lane(struct lane *lane)
{
    const struct tsr_maker *const m = lane->maker;
    const struct tsr_node *const node = tsr_piece_node(lane->head.kind);
    const struct tsr_node_work work = {.whole = (size_t)lane->head.whole, .crew = m->work.crew, .kept = &lane->coder};
    const struct tsr_leaves *const leaves = &m->making.leaves;
    const struct tsr_bytes *plain = &lane->code;
    uint8_t start[TSR_PNG_START_BYTES];
    lane->made.size = lane->plain.size = 0;
    if (lane->head.inner > 0) {
        lane->plain.limit = (size_t)lane->head.size;
        TSR_TRY(leaves->file(leaves->context, lane->code.bytes, lane->code.size, &lane->plain, &lane->error));
        plain = &lane->plain;
    }
    if (lane->head.kind == TSR_PIECE_BYTES) return TSR_OK;
    if (!node) lane->made.limit = TSR_PNG_START_BYTES; /* the room is that of nodes */
    if (lane->head.kind == TSR_PIECE_PNG_END)
        return tsr_bytes_put(&lane->made, tsr_png_end, TSR_PNG_END_BYTES, &lane->error);
    if (lane->head.kind == TSR_PIECE_PNG_START) {
        tsr_png_start_of(plain->bytes, start);
        return tsr_bytes_put(&lane->made, start, sizeof start, &lane->error);
    }
    const struct tsr_node_parts parts = {plain->bytes ? plain->bytes : (const uint8_t *)"",
                                         lane->residue.bytes ? lane->residue.bytes : (const uint8_t *)"", plain->size,
                                         lane->residue.size};
    if (lane->head.inner == 0 && node->room(&parts, lane->made.limit) > m->header->room) return fail_room(&lane->error);
    return node->join(&work, &parts, &lane->made, &lane->error);
}

static void join_lane(void *context, unsigned i)
{
    struct lane *const lane = (struct lane *)context + i;
    lane->status = make_lane(lane);
}

static const struct tsr_bytes *made_of(const struct lane *lane)
{
    return lane->head.kind != TSR_PIECE_BYTES ? &lane->made : lane->head.inner > 0 ? &lane->plain : &lane->code;
}

static void give_lanes_back(const struct tsr_maker *m, struct joining *j)
{
    if (m->making.input && j->lanes > 1) tsr_input_return_spare(m->making.input, (j->lanes - 1) * j->lane_bytes);
    j->lanes = 1;
}

/* Joins all, and puts them in their order. One of several that had too little memory is done again, alone. */
static enum tsr_status put_lanes(struct tsr_maker *m, struct joining *j, struct tsr_error *error)
{
    const unsigned count = j->count;
    uint64_t sum = 0;
    j->count = 0;
    for (unsigned i = 0; i < count; sum += j->lane[i++].head.whole) j->lane[i].made.limit = bytes_left(m, sum);
    if (count > 1)
        m->work.crew.run(m->work.crew.pool, join_lane, j->lane, count);
    else if (count == 1)
        join_lane(j->lane, 0);
    for (struct lane *lane = j->lane; lane < j->lane + count; lane++) {
        const bool again = lane->status == TSR_ERROR_LIMIT && (count > 1 || j->lanes > 1);
        if (again) give_lanes_back(m, j);
        if (again) join_lane(lane, 0);
        if (lane->status != TSR_OK && error) *error = lane->error;
        TSR_TRY(lane->status);
        TSR_TRY(put(m, made_of(lane)->bytes, made_of(lane)->size, error));
        if (count == 1) tsr_bytes_free(&lane->code); /* it may be large, and the next piece small */
    }
    return TSR_OK;
}

/* What a piece takes, by its head, before it is read. */
static enum tsr_status check_room(struct tsr_maker *m, const struct tsr_piece_head *head, struct tsr_error *error)
{
    const struct tsr_node *const node = tsr_piece_node(head->kind);
    const struct tsr_node_parts sizes = {.plain_size = (size_t)head->size, .residue_size = (size_t)head->residue};
    const uint64_t room = head->inner > 0 ? tsr_inner_room(head) : node ? node->room(&sizes, 0) : 0;
    if (room > m->header->room || room > SIZE_MAX / 4 || head->size > SIZE_MAX / 4 || head->residue > SIZE_MAX / 4)
        return fail_room(error);
    if (head->inner == 0) return TSR_OK;
    if (m->files == m->header->inner)
        return tsr_fail(error, TSR_ERROR_CORRUPT, "the file has more files in it than its header says");
    m->files++;
    if (!m->making.leaves.file) return tsr_fail(error, TSR_ERROR_VERSION, "files in it are not restored here");
    return TSR_OK;
}

/* Takes a piece. Memory for the first lane is claimed. */
static enum tsr_status take_piece(struct tsr_maker *m, struct joining *j, const struct tsr_piece_head *head,
                                  struct tsr_error *error)
{
    TSR_TRY(check_room(m, head, error));
    if (j->count == j->lanes && j->lanes < LANES && m->work.crew.run &&
        (!m->making.input || tsr_input_take_spare(m->making.input, j->lane_bytes)))
        j->lanes++;
    if (j->count == j->lanes) TSR_TRY(put_lanes(m, j, error));
    struct lane *const lane = &j->lane[j->count++];
    lane->maker = m;
    lane->head = *head;
    TSR_TRY(collect(m, TSR_BLOB_PREFIX, head->inner > 0 ? head->inner : head->size, &lane->code, error));
    return collect(m, TSR_BLOB_PREFIX, head->residue, &lane->residue, error);
}

static enum tsr_status put_all(struct tsr_maker *m, struct joining *j, struct tsr_error *error)
{
    const uint64_t enough = m->making.enough > 0 ? m->making.enough : UINT64_MAX;
    struct tsr_piece_head head;
    bool is_last;
    TSR_TRY(take_head(m, &head, &is_last, error));
    while (!is_last && tsr_output_size(m->output) < enough) {
        const bool joins = may_join(m, &head);
        const struct tsr_step bytes = {.kind = TSR_STEP_BYTES, .from = TSR_BLOB_PREFIX, .size = head.size};
        if (!joins) TSR_TRY(put_lanes(m, j, error));
        TSR_TRY(!joins && are_bytes(&head) ? put_bytes(m, &bytes, error) : take_piece(m, j, &head, error));
        if (!joins) TSR_TRY(put_lanes(m, j, error));
        TSR_TRY(take_head(m, &head, &is_last, error));
    }
    TSR_TRY(put_lanes(m, j, error));
    if (m->making.enough == 0 && m->files != m->header->inner)
        return tsr_fail(error, TSR_ERROR_CORRUPT, "the file has fewer files in it than its header says");
    return TSR_OK;
}

static enum tsr_status put_pieces(struct tsr_maker *m, struct tsr_error *error)
{
    struct joining *const j = calloc(1, sizeof *j);
    if (!j) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory to make pieces");
    const uint64_t room = m->header->room;
    j->lanes = 1;
    j->lane_bytes = tsr_unpacking_memory(room, room, tsr_has_inner(m->header) ? NULL : &tsr_node_jpeg);
    if (j->lane_bytes < LANE_BYTES) j->lane_bytes = LANE_BYTES;
    const enum tsr_status status = put_all(m, j, error);
    give_lanes_back(m, j);
    for (struct lane *lane = j->lane; lane < j->lane + LANES; lane++) {
        tsr_bytes_free(&lane->code);
        tsr_bytes_free(&lane->residue);
        tsr_bytes_free(&lane->plain);
        tsr_bytes_free(&lane->made);
        tsr_deflate_forget(lane->coder);
    }
    free(j);
    return status;
}

/* ---- Frames ------------------------------------------------------------------------------------------------- */

/* Writes an item: tag and length, and its value. PS3.5 A.4. */
static enum tsr_status put_item(struct tsr_maker *m, const uint8_t *bytes, size_t size, struct tsr_error *error)
{
    uint8_t head[8] = {0xfe, 0xff, 0x00, 0xe0};
    if (size > UINT32_MAX) return tsr_fail(error, TSR_ERROR_CORRUPT, "a fragment has %zu bytes", size);
    tsr_put_u32(head + 4, (uint32_t)size);
    TSR_TRY(put(m, head, sizeof head, error));
    return put(m, bytes, size, error);
}

/* Makes the stream of a frame. One that is longer than usual takes memory that is spare. */
static enum tsr_status join_frame(struct tsr_maker *m, const struct tsr_node_parts *parts, struct tsr_error *error)
{
    const uint64_t output = tsr_output_limit_of(m->output), limit = output < SIZE_MAX / 2 ? output : SIZE_MAX / 2,
                   usual = tsr_usual_stream(&m->header->image, m->residues.size);
    struct tsr_input *const input = m->making.input;
    m->made.size = 0;
    m->made.limit = (size_t)(usual < limit && m->spare_bytes == 0 ? usual : limit);
    const enum tsr_status status = m->frames->node->join(&m->work, parts, &m->made, error);
    if (status != TSR_ERROR_CORRUPT || m->made.limit == limit) return status;
    if (input && !tsr_input_take_spare(input, 2 * limit))
        return tsr_fail(error, TSR_ERROR_LIMIT,
                        "frame %u becomes a stream of over %llu bytes, for which there is no memory: more of it, or "
                        "fewer threads, would do",
                        m->frames_done, (unsigned long long)usual);
    m->spare_bytes = 2 * limit; /* the stream, and what its coder holds */
    return join_frame(m, parts, error);
}

/* The next frame's record. FORMAT.md 4.4. */
static enum tsr_status take_record(struct tsr_maker *m, struct tsr_record *record, struct tsr_error *error)
{
    struct tsr_cursor c = {m->residues.bytes, m->residues.size, m->residues_at, false};
    m->frames_done++;
    if (!tsr_get_record(&c, record) || record->residue_size > c.size - c.at)
        return tsr_fail(error, TSR_ERROR_CORRUPT, "frame %u has no valid residue", m->frames_done);
    m->residues_at = c.at + (size_t)record->residue_size;
    record->residue = c.bytes + c.at;
    return TSR_OK;
}

/* Writes a stream in its fragments. */
static enum tsr_status put_fragments(struct tsr_maker *m, const struct tsr_record *record, const uint8_t *stream,
                                     size_t size, struct tsr_error *error)
{
    struct tsr_cursor sizes = record->sizes;
    size_t at = 0;
    for (uint64_t i = 1; i < record->fragments; i++) {
        const uint64_t part = tsr_get_varint(&sizes);
        if (part > size - at)
            return tsr_fail(error, TSR_ERROR_CORRUPT, "the fragments of frame %u exceed its stream", m->frames_done);
        TSR_TRY(put_item(m, stream + at, (size_t)part, error));
        at += (size_t)part;
    }
    return put_item(m, stream + at, size - at, error);
}

/* Makes a frame's stream of its raster. */
static enum tsr_status put_encapsulated(struct tsr_maker *m, const uint8_t *raster, struct tsr_error *error)
{
    struct tsr_record record;
    TSR_TRY(take_record(m, &record, error));
    const struct tsr_node_parts parts = {raster, record.residue, tsr_raster_bytes(&m->header->image),
                                         (size_t)record.residue_size};
    TSR_TRY(join_frame(m, &parts, error));
    return put_fragments(m, &record, m->made.bytes, m->made.size, error);
}

enum tsr_status tsr_put_stream(struct tsr_maker *m, const uint8_t *stream, size_t size, struct tsr_error *error)
{
    struct tsr_record record;
    TSR_TRY(take_record(m, &record, error));
    if (record.residue_size == 0) return put_fragments(m, &record, stream, size, error);
    return tsr_fail(error, TSR_ERROR_CORRUPT, "frame %u has a residue, and no samples", m->frames_done);
}

/* Writes the IDAT chunks of a PNG: the same as in the original, or new ones if the file is not to be that. PNG.md. */
static enum tsr_status put_idat(struct tsr_maker *m, const uint8_t *raster, struct tsr_error *error)
{
    const struct tsr_node_parts parts = {raster, m->residues.bytes, tsr_raster_bytes(&m->header->image),
                                         m->residues.size};
    if (!m->header->exact)
        return m->making.leaves_pixels
                   ? tsr_png_write_samples(raster, parts.plain_size, m->output, error)
                   : tsr_png_write_raster(tsr_png_rows_of(m->header), m->header->parameters[TSR_PNG_COLOUR_TYPE],
                                          &m->work.crew, raster, m->output, error);
    const uint64_t limit = tsr_output_limit_of(m->output);
    m->made.limit = limit < SIZE_MAX / 2 ? (size_t)limit : SIZE_MAX / 2;
    TSR_TRY(tsr_node_png.join(&m->work, &parts, &m->made, error));
    m->residues_at = m->residues.size;
    return put(m, m->made.bytes, m->made.size, error);
}

/* Frames of single bits follow each other without padding: two of them may share a byte. */
static enum tsr_status put_bits(struct tsr_maker *m, const uint8_t *raster, struct tsr_error *error)
{
    uint8_t chunk[CHUNK];
    const uint64_t bits = tsr_frame_bits(&m->header->image);
    const int shift = m->waiting_bits, rest = (int)(bits % 8);
    size_t used = 0;
    for (uint64_t i = 0; i < bits / 8; i++) {
        chunk[used++] = (uint8_t)(m->waiting | raster[i] << shift);
        m->waiting = (uint8_t)(raster[i] >> (8 - shift));
        if (used < CHUNK) continue;
        TSR_TRY(put(m, chunk, used, error));
        used = 0;
    }
    if (rest > 0) {
        const unsigned last = raster[bits / 8] & ((1u << rest) - 1u);
        const unsigned both = m->waiting | last << shift;
        m->waiting = (uint8_t)both;
        m->waiting_bits = shift + rest;
        if (m->waiting_bits >= 8) {
            chunk[used++] = (uint8_t)both;
            m->waiting = (uint8_t)(both >> 8);
            m->waiting_bits -= 8;
        }
    }
    return put(m, chunk, used, error);
}

/* The planes of a frame, or its values, from its raster. */
static enum tsr_status put_joined(struct tsr_maker *m, const uint8_t *raster, struct tsr_error *error)
{
    const struct tsr_image image = tsr_original_image(m->header);
    const struct tsr_node_parts parts = {raster, NULL, tsr_raster_bytes(&m->header->image), 0};
    m->made.size = 0;
    m->made.limit = tsr_raster_bytes(&image); /* planes have no more */
    TSR_TRY(m->frames->node->join(&m->work, &parts, &m->made, error));
    return put(m, m->made.bytes, m->made.size, error);
}

enum tsr_status tsr_put_frame(struct tsr_maker *m, const uint8_t *raster, struct tsr_error *error)
{
    const struct tsr_image *image = &m->header->image;
    if (m->frames->node == &tsr_node_png) return put_idat(m, raster, error);
    if (m->frames->size > 0) TSR_TRY(put(m, m->frames->bytes, (size_t)m->frames->size, error));
    if (m->frames->node == &tsr_node_planes || m->frames->node == &tsr_node_values) return put_joined(m, raster, error);
    if (m->frames->node) return put_encapsulated(m, raster, error);
    if (image->bits_allocated == 1) return put_bits(m, raster, error);
    return put(m, raster, (size_t)(tsr_frame_bits(image) / 8), error);
}

bool tsr_puts_parts(const struct tsr_maker *m)
{
    return !m->frames->node && m->frames->size == 0 && m->header->image.bits_allocated > 1;
}

enum tsr_status tsr_put_part(struct tsr_maker *m, const uint8_t *bytes, size_t size, struct tsr_error *error)
{
    return put(m, bytes, size, error);
}

/* ---- The recipe --------------------------------------------------------------------------------------------- */

static enum tsr_status run_step(struct tsr_maker *m, const struct tsr_step *step, struct tsr_error *error)
{
    switch (step->kind) {
    case TSR_STEP_BYTES:
        TSR_TRY(put_waiting(m, error));
        return put_bytes(m, step, error);
    case TSR_STEP_FRAMES:
        m->frames = step;
        return m->making.leaves.frames(m->making.leaves.context, m, error);
    case TSR_STEP_OPEN:
        open_node(m, step);
        return TSR_OK;
    case TSR_STEP_CLOSE:
        TSR_TRY(put_waiting(m, error));
        m->residues_at = m->residues.size;
        return close_node(m, m->residues.bytes, m->residues.size, error);
    }
    return TSR_OK;
}

/* A file without frames has a prefix alone. */
static enum tsr_status check_blobs(struct tsr_maker *m, struct tsr_error *error)
{
    const struct tsr_leaves *const leaves = &m->making.leaves;
    for (int blob = TSR_BLOB_SUFFIX; blob <= TSR_BLOB_RESIDUES && !tsr_has_frames(m->header); blob++) {
        const uint8_t *bytes;
        size_t size;
        TSR_TRY(leaves->read(leaves->context, (enum tsr_blob)blob, &bytes, &size, error));
        if (size > 0) return tsr_fail(error, TSR_ERROR_CORRUPT, "a file without frames has a suffix or residues");
    }
    return TSR_OK;
}

static enum tsr_status run(struct tsr_maker *m, struct tsr_error *error)
{
    if (m->making.enough == 0) TSR_TRY(check_blobs(m, error));
    if (tsr_has_frames(m->header)) TSR_TRY(keep_residues(m, error));
    TSR_TRY(tsr_recipe_of(m->header, m->making.blobs, &m->recipe, error));
    if (m->recipe.count == 0) return put_pieces(m, error);
    for (int i = 0; i < m->recipe.count; i++) TSR_TRY(run_step(m, &m->recipe.step[i], error));
    TSR_TRY(put_waiting(m, error));
    if (m->residues_at != m->residues.size)
        return tsr_fail(error, TSR_ERROR_CORRUPT, "%zu bytes of residues belong to no frame",
                        m->residues.size - m->residues_at);
    return TSR_OK;
}

enum tsr_status tsr_make(const struct tsr_header *header, const struct tsr_making *making, struct tsr_output *output,
                         struct tsr_error *error)
{
    struct tsr_maker *const m = calloc(1, sizeof *m);
    if (!m) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory to restore");
    m->header = header;
    m->output = output;
    m->making = *making;
    m->work = (struct tsr_node_work){.image = &header->image, .crew = making->crew, .kept = &m->coder};
    m->work.guessed = making->input ? tsr_input_guessed(making->input) : NULL;
    m->work.interlaced = tsr_makes_png(header) && tsr_png_rows_of(header).interlaced;
    if (tsr_has_planes(header)) m->work.form = header->parameters[0];
    m->work.values = &header->values;
    const enum tsr_status status = run(m, error);
    if (m->spare_bytes > 0 && making->input) tsr_input_return_spare(making->input, m->spare_bytes);
    tsr_bytes_free(&m->residues);
    tsr_bytes_free(&m->plain);
    tsr_bytes_free(&m->made);
    tsr_deflate_forget(m->coder);
    free(m);
    return status;
}
