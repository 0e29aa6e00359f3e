/* What the sections of a .tsr file hold: members, frames, blobs, proof. FORMAT.md sections 3 to 5; section_reader.h
 * finds them, in damaged files too. */
#include <stdlib.h>
#include <string.h>

#include "section_reader.h"
#include "zstd_contexts.h"

#define NOWHERE SIZE_MAX

struct tsr_container_reader {
    struct tsr_sections sections;
    struct tsr_header header;
    /* Of a series: by member, its last section, which says what it is. Else NULL. */
    size_t *member_place;
    uint32_t members;
    bool shares; /* places of sections and member_place are another reader's */
    /* The chosen member, or the file: its sections, its name and its proof; the header is its own. */
    uint32_t member;
    size_t first, end;
    char name[TSR_NAME_LIMIT + 1];
    struct tsr_proof proof;
    size_t *frame_place; /* by frame: its section */
    size_t *model_place; /* by frame: where its model is, NOWHERE if that is damaged */
    uint8_t *blob;       /* decompressed */
    size_t blob_capacity;
    struct base { /* of each blob: what others are compressed with, of which member */
        uint8_t *bytes;
        size_t size, capacity;
        uint32_t member;
    } base[TSR_BLOB_COUNT];
};

/* Where the model of a frame is that has another's: so many frames before, whichever member they are in. */
static enum tsr_status find_model(struct tsr_container_reader *r, size_t from, size_t *found, struct tsr_error *error)
{
    const uint8_t *body;
    size_t size;
    struct tsr_error ignored;
    *found = NOWHERE;
    const enum tsr_status status =
        tsr_read_section(&r->sections, r->sections.place[from].offset, TSR_SECTION_LIKE, &body, &size, &ignored);
    if (status == TSR_ERROR_READ || status == TSR_ERROR_LIMIT) {
        if (error) *error = ignored;
        return status;
    }
    if (status != TSR_OK) return TSR_OK; /* who asks for the frame will be told */
    struct tsr_cursor c = {body, size, 0, false};
    tsr_get_varint(&c);
    uint64_t distance = tsr_get_varint(&c);
    if (c.bad || c.at != size || distance < 1 || distance > TSR_LIKE_LIMIT) return TSR_OK;
    while (from-- > 0) {
        const uint8_t type = r->sections.place[from].type;
        if (type != TSR_SECTION_FRAME && type != TSR_SECTION_LIKE) continue;
        if (--distance > 0) continue;
        if (type == TSR_SECTION_FRAME) *found = from; /* one link at most */
        return TSR_OK;
    }
    return TSR_OK;
}

/* Checks that the sections are those of such a file or member, in an order that it has, and notes where frames begin.
 */
static enum tsr_status find_frames(struct tsr_container_reader *r, struct tsr_error *error)
{
    const uint32_t frames = r->header.restore == TSR_RESTORE_VERBATIM ? 0 : r->header.image.frames;
    const uint8_t last = r->member_place ? TSR_SECTION_MEMBER : TSR_SECTION_PROOF;
    if (frames > r->end - r->first)
        return tsr_fail(error, TSR_ERROR_CORRUPT, "%u frames in %zu sections", frames, r->end - r->first);
    free(r->frame_place);
    free(r->model_place);
    r->model_place = malloc(((size_t)frames + 1) * sizeof *r->model_place);
    r->frame_place = malloc(((size_t)frames + 1) * sizeof *r->frame_place);
    if (!r->frame_place || !r->model_place)
        return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for an index of %u frames", frames);
    uint32_t frame = 0;
    size_t proofs = 0;
    bool in_frame = false;
    for (size_t i = r->first; i < r->end; i++) {
        const struct tsr_place *place = &r->sections.place[i];
        in_frame &= place->type == TSR_SECTION_TILE;
        switch (place->type) {
        case TSR_SECTION_FRAME:
        case TSR_SECTION_LIKE:
            if (frame < frames) {
                if (place->type == TSR_SECTION_FRAME)
                    r->model_place[frame] = i;
                else
                    TSR_TRY(find_model(r, i, &r->model_place[frame], error));
                r->frame_place[frame++] = i;
                in_frame = true;
                continue;
            }
            break;
        case TSR_SECTION_TILE:
            if (in_frame) continue;
            break;
        case TSR_SECTION_BLOB:
            if (frame == 0 || frame == frames) continue; /* not between frames */
            break;
        default:
            if (place->type == last && proofs++ == 0 && i + 1 == r->end) continue;
            break;
        }
        return tsr_fail_at(error, TSR_ERROR_CORRUPT, place->offset, "the section at byte %llu cannot stand there",
                           (unsigned long long)place->offset);
    }
    if (frame != frames || proofs != 1)
        return tsr_fail(error, TSR_ERROR_CORRUPT, "%u of %u frames and %zu proofs", frame, frames, proofs);
    return TSR_OK;
}

/* Where the members of a series end; their sections are looked at when they are chosen. */
static enum tsr_status find_members(struct tsr_container_reader *r, struct tsr_error *error)
{
    if (r->header.members > r->sections.count)
        return tsr_fail(error, TSR_ERROR_CORRUPT, "%u files in %zu sections", r->header.members, r->sections.count);
    r->member_place = malloc(r->header.members * sizeof *r->member_place);
    if (!r->member_place)
        return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for an index of %u files", r->header.members);
    size_t behind = 0;
    for (size_t i = 0; i < r->sections.count; i++) {
        if (r->sections.place[i].type != TSR_SECTION_MEMBER) continue;
        if (r->members < r->header.members) r->member_place[r->members] = i;
        r->members++;
        behind = i + 1;
    }
    if (r->members != r->header.members || behind != r->sections.count)
        return tsr_fail(error, TSR_ERROR_CORRUPT, "%u of %u files, and %zu sections behind them", r->members,
                        r->header.members, r->sections.count - behind);
    return TSR_OK;
}

static enum tsr_status find_contents(struct tsr_container_reader *r, struct tsr_error *error)
{
    if (r->header.restore == TSR_RESTORE_SERIES) return find_members(r, error);
    r->members = 1;
    r->end = r->sections.count;
    return find_frames(r, error);
}

enum tsr_status tsr_container_open(struct tsr_input *input, struct tsr_container_reader **reader,
                                   struct tsr_error *error)
{
    struct tsr_container_reader *r = calloc(1, sizeof *r);
    *reader = NULL;
    if (!r) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for a container");
    r->sections.input = input;
    enum tsr_status status = tsr_find_sections(&r->sections, &r->header, error);
    if (status == TSR_OK) status = find_contents(r, error);
    if (status != TSR_OK) {
        tsr_container_close(r);
        return status;
    }
    *reader = r;
    return TSR_OK;
}

void tsr_container_close(struct tsr_container_reader *reader)
{
    if (!reader) return;
    if (!reader->shares) {
        free(reader->sections.place);
        free(reader->member_place);
    }
    for (int blob = 0; blob < TSR_BLOB_COUNT; blob++) free(reader->base[blob].bytes);
    free(reader->frame_place);
    free(reader->model_place);
    free(reader->sections.buffer);
    free(reader->blob);
    free(reader);
}

enum tsr_status tsr_container_share(const struct tsr_container_reader *reader, struct tsr_input *input,
                                    struct tsr_container_reader **shared, struct tsr_error *error)
{
    struct tsr_container_reader *r = calloc(1, sizeof *r);
    *shared = r;
    if (!r) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for a container");
    r->sections.input = input;
    r->sections.damage = reader->sections.damage;
    r->sections.place = reader->sections.place;
    r->sections.count = reader->sections.count;
    r->member_place = reader->member_place;
    r->members = reader->members;
    r->shares = true;
    return TSR_OK;
}

uint32_t tsr_container_members(const struct tsr_container_reader *reader)
{
    return reader->members;
}

bool tsr_container_is_series(const struct tsr_container_reader *reader)
{
    return reader->member_place != NULL;
}

/* The body of a member's last section: name, header, proof. */
static enum tsr_status read_member(struct tsr_container_reader *r, uint32_t member, struct tsr_error *error)
{
    const struct tsr_place *place = &r->sections.place[r->member_place[member]];
    struct tsr_error why;
    const uint8_t *body;
    size_t size;
    TSR_TRY(tsr_read_section(&r->sections, place->offset, TSR_SECTION_MEMBER, &body, &size, error));
    const enum tsr_status status = tsr_get_member(body, size, r->name, &r->header, &r->proof, &why);
    if (status == TSR_OK) return TSR_OK;
    return tsr_fail_at(error, status, place->offset, "file %u of the series: %.400s", member + 1, why.text);
}

enum tsr_status tsr_container_choose(struct tsr_container_reader *r, uint32_t member, struct tsr_error *error)
{
    if (!r->member_place) return TSR_OK;
    if (member >= r->members) return tsr_fail(error, TSR_ERROR_USAGE, "file %u of a series of %u", member, r->members);
    r->first = r->end = 0;
    r->name[0] = '\0';
    TSR_TRY(read_member(r, member, error));
    r->member = member;
    r->first = member == 0 ? 0 : r->member_place[member - 1] + 1;
    r->end = r->member_place[member] + 1;
    return find_frames(r, error);
}

const char *tsr_container_name(const struct tsr_container_reader *reader)
{
    return reader->name;
}

uint64_t tsr_container_bytes(const struct tsr_container_reader *reader)
{
    if (!reader->member_place) return tsr_input_size(reader->sections.input);
    if (reader->first == reader->end) return 0;
    const struct tsr_place *last = &reader->sections.place[reader->end - 1];
    return last->offset + last->length - reader->sections.place[reader->first].offset;
}

const struct tsr_header *tsr_container_header(const struct tsr_container_reader *reader)
{
    return &reader->header;
}

const char *tsr_container_damage(const struct tsr_container_reader *reader)
{
    return reader->sections.damage;
}

uint64_t tsr_container_sections(const struct tsr_container_reader *reader)
{
    return reader->end > reader->first ? reader->end - reader->first : reader->sections.count;
}

uint64_t tsr_container_pixel_bytes(const struct tsr_container_reader *reader)
{
    uint64_t bytes = tsr_container_bytes(reader);
    for (size_t i = reader->first; i < reader->end; i++)
        if (reader->sections.place[i].type == TSR_SECTION_BLOB) bytes -= reader->sections.place[i].length;
    return bytes;
}

/* ---- Proof and blobs ------------------------------------------------------------------------------------- */

enum tsr_status tsr_container_get_proof(struct tsr_container_reader *r, struct tsr_proof *proof,
                                        struct tsr_error *error)
{
    if (r->member_place) {
        *proof = r->proof;
        return TSR_OK;
    }
    const struct tsr_place *place = &r->sections.place[r->sections.count - 1];
    const uint8_t *body;
    size_t size;
    TSR_TRY(tsr_read_section(&r->sections, place->offset, TSR_SECTION_PROOF, &body, &size, error));
    if (!tsr_get_proof(body, size, &r->header, proof))
        return tsr_fail_at(error, TSR_ERROR_CORRUPT, place->offset, "the proof is %zu bytes long", size);
    return TSR_OK;
}

/* A blob section: what it says, and its content as it is stored. */
struct stored_blob {
    uint8_t blob, method;
    uint8_t distance; /* how many members before the one stands whose blob it is compressed with */
    size_t size;      /* of the content */
    const uint8_t *bytes;
    size_t stored;
};

static enum tsr_status read_blob(struct tsr_container_reader *r, const struct tsr_place *place, struct stored_blob *b,
                                 struct tsr_error *error)
{
    const uint8_t *body;
    size_t body_size;
    TSR_TRY(tsr_read_section(&r->sections, place->offset, TSR_SECTION_BLOB, &body, &body_size, error));
    struct tsr_cursor c = {body, body_size, 0, false};
    b->blob = tsr_get_u8(&c);
    b->method = tsr_get_u8(&c);
    const uint64_t raw = tsr_get_varint(&c);
    b->distance = b->method == TSR_BLOB_ZSTD_AFTER ? tsr_get_u8(&c) : 0;
    b->bytes = body + c.at;
    b->stored = body_size - c.at;
    b->size = (size_t)raw;
    if (c.bad || b->blob >= TSR_BLOB_COUNT || raw > TSR_BLOB_CHUNK || raw == 0)
        return tsr_fail_at(error, TSR_ERROR_CORRUPT, place->offset, "blob %u of %llu bytes", b->blob,
                           (unsigned long long)raw);
    const bool good = b->method == TSR_BLOB_RAW          ? b->stored == raw
                      : b->method == TSR_BLOB_ZSTD_AFTER ? b->distance > 0
                                                         : b->method == TSR_BLOB_ZSTD;
    if (!good)
        return tsr_fail_at(error, TSR_ERROR_CORRUPT, place->offset, "a blob of method %u and %zu bytes", b->method,
                           b->stored);
    return TSR_OK;
}

/* Its content, decompressed to out where it is compressed; base: what it follows, or NULL. */
static enum tsr_status unpack_blob(const struct tsr_place *place, const struct stored_blob *b, const struct base *base,
                                   uint8_t *out, struct tsr_error *error)
{
#if TSR_WITH_ZSTD
    ZSTD_DCtx *context = tsr_take_decompressor();
    if (!context) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory to decompress %zu bytes", b->size);
    size_t result = base ? ZSTD_DCtx_refPrefix(context, base->bytes, base->size) : 0;
    if (!ZSTD_isError(result)) result = ZSTD_decompressDCtx(context, out, b->size, b->bytes, b->stored);
    tsr_give_decompressor(context);
    if (ZSTD_isError(result) || result != b->size)
        return tsr_fail_at(error, TSR_ERROR_CORRUPT, place->offset, "the blob at byte %llu does not decompress",
                           (unsigned long long)place->offset);
    return TSR_OK;
#else
    (void)b;
    (void)base;
    (void)out;
    return tsr_fail_at(error, TSR_ERROR_VERSION, place->offset,
                       "the metadata is compressed with zstd, and this build has none");
#endif
}

/* The first section of a blob of the member that stands so many before the chosen one; it is kept for the next. */
static enum tsr_status find_base(struct tsr_container_reader *r, const struct tsr_place *place, uint8_t blob,
                                 uint8_t distance, struct tsr_error *error)
{
    struct base *base = &r->base[blob];
    if (!r->member_place || distance > r->member)
        return tsr_fail_at(error, TSR_ERROR_CORRUPT, place->offset, "a blob that follows one %u files before",
                           distance);
    const uint32_t member = r->member - distance;
    if (base->size > 0 && base->member == member) return TSR_OK;
    base->size = 0;
    for (size_t i = member == 0 ? 0 : r->member_place[member - 1] + 1; i < r->member_place[member]; i++) {
        struct stored_blob b;
        if (r->sections.place[i].type != TSR_SECTION_BLOB) continue;
        TSR_TRY(read_blob(r, &r->sections.place[i], &b, error));
        if (b.blob != blob) continue;
        if (b.method == TSR_BLOB_ZSTD_AFTER) break; /* one link at most */
        TSR_TRY(tsr_grow_buffer(&base->bytes, &base->capacity, b.size, error));
        if (b.method == TSR_BLOB_RAW)
            memcpy(base->bytes, b.bytes, b.size);
        else
            TSR_TRY(unpack_blob(&r->sections.place[i], &b, NULL, base->bytes, error));
        base->size = b.size;
        base->member = member;
        return TSR_OK;
    }
    return tsr_fail_at(error, TSR_ERROR_CORRUPT, place->offset, "the blob that the one at byte %llu follows is none",
                       (unsigned long long)place->offset);
}

/* A blob section's content; *size is 0 where it is another blob's. */
static enum tsr_status open_blob(struct tsr_container_reader *r, const struct tsr_place *place, enum tsr_blob blob,
                                 const uint8_t **bytes, size_t *size, struct tsr_error *error)
{
    struct stored_blob b;
    TSR_TRY(read_blob(r, place, &b, error));
    *size = 0;
    if (b.blob != blob) return TSR_OK;
    *size = b.size;
    *bytes = b.bytes;
    if (b.method == TSR_BLOB_RAW) return TSR_OK;
    const struct base *base = NULL;
    if (b.method == TSR_BLOB_ZSTD_AFTER) {
        TSR_TRY(find_base(r, place, b.blob, b.distance, error));
        base = &r->base[b.blob];
        TSR_TRY(read_blob(r, place, &b, error)); /* the buffer held another */
    }
    TSR_TRY(tsr_grow_buffer(&r->blob, &r->blob_capacity, *size, error));
    *bytes = r->blob;
    return unpack_blob(place, &b, base, r->blob, error);
}

enum tsr_status tsr_container_get_blob(struct tsr_container_reader *r, enum tsr_blob blob, uint64_t *cursor,
                                       const uint8_t **bytes, size_t *size, struct tsr_error *error)
{
    *size = 0;
    while (*cursor < r->end - r->first) {
        const struct tsr_place *place = &r->sections.place[r->first + (*cursor)++];
        if (place->type != TSR_SECTION_BLOB) continue;
        TSR_TRY(open_blob(r, place, blob, bytes, size, error));
        if (*size > 0) return TSR_OK;
    }
    return TSR_OK;
}

/* ---- Frames ---------------------------------------------------------------------------------------------- */

/* How many sections a frame has: its own and its tiles'. */
static size_t frame_sections(const struct tsr_container_reader *r, uint32_t frame)
{
    size_t i = r->frame_place[frame] + 1;
    while (i < r->end && r->sections.place[i].type == TSR_SECTION_TILE) i++;
    return i - r->frame_place[frame];
}

uint32_t tsr_container_frame_tiles(const struct tsr_container_reader *reader, uint32_t frame)
{
    const size_t tiles = frame_sections(reader, frame) - 1;
    return tiles > UINT32_MAX - 1 ? UINT32_MAX - 1 : (uint32_t)tiles;
}

/* Of its own sections. */
static size_t own_bytes(const struct tsr_container_reader *r, uint32_t frame)
{
    const struct tsr_place *first = &r->sections.place[r->frame_place[frame]];
    const struct tsr_place *last = first + frame_sections(r, frame) - 1;
    return (size_t)(last->offset + last->length - first->offset);
}

/* The section of another frame whose model this one has, or NULL. */
static const struct tsr_place *other_model(const struct tsr_container_reader *r, uint32_t frame)
{
    const size_t model = r->model_place[frame];
    return model == NOWHERE || model == r->frame_place[frame] ? NULL : &r->sections.place[model];
}

size_t tsr_container_frame_bytes(const struct tsr_container_reader *reader, uint32_t frame)
{
    const struct tsr_place *other = other_model(reader, frame);
    return own_bytes(reader, frame) + (other ? (size_t)other->length : 0);
}

/* The model of a frame that has another's, behind its own sections in the buffer. */
static enum tsr_status get_other_model(struct tsr_container_reader *r, uint32_t frame, uint8_t *buffer,
                                       struct tsr_piece *model, struct tsr_error *error)
{
    const struct tsr_place *other = other_model(r, frame);
    if (!other) return tsr_fail(error, TSR_ERROR_CORRUPT, "frame %u has the model of none", frame);
    buffer += own_bytes(r, frame);
    size_t size = 0;
    TSR_TRY(tsr_input_read(r->sections.input, other->offset, buffer, (size_t)other->length, error));
    const uint8_t *body = tsr_open_section(buffer, (size_t)other->length, TSR_SECTION_FRAME, &size);
    struct tsr_cursor c = {body, body ? size : 0, 0, false};
    tsr_get_varint(&c);
    if (c.bad)
        return tsr_fail_at(error, TSR_ERROR_CORRUPT, other->offset, "the model of frame %u at byte %llu is damaged",
                           frame, (unsigned long long)other->offset);
    *model = (struct tsr_piece){body + c.at, size - c.at};
    return TSR_OK;
}

enum tsr_status tsr_container_get_frame(struct tsr_container_reader *r, uint32_t frame, uint8_t *buffer,
                                        struct tsr_piece *model, struct tsr_piece *tiles, struct tsr_error *error)
{
    const struct tsr_place *first = &r->sections.place[r->frame_place[frame]];
    const uint32_t tile_count = tsr_container_frame_tiles(r, frame);
    const bool like = first->type == TSR_SECTION_LIKE;
    TSR_TRY(tsr_input_read(r->sections.input, first->offset, buffer, own_bytes(r, frame), error));
    for (uint32_t i = 0; i <= tile_count; i++) {
        const struct tsr_place *place = first + i;
        const uint8_t *section = buffer + (place->offset - first->offset);
        size_t size = 0;
        const uint8_t *body =
            tsr_open_section(section, (size_t)place->length, (enum tsr_section_type)place->type, &size);
        struct tsr_cursor c = {body, body ? size : 0, 0, false};
        const bool numbered = tsr_get_varint(&c) == frame && (i == 0 || tsr_get_varint(&c) == i - 1);
        if (!body || c.bad || !numbered) {
            if (i == 0)
                return tsr_fail_at(error, TSR_ERROR_CORRUPT, place->offset, "frame %u at byte %llu is damaged", frame,
                                   (unsigned long long)place->offset);
            return tsr_fail_at(error, TSR_ERROR_CORRUPT, place->offset, "tile %u of frame %u at byte %llu is damaged",
                               i - 1, frame, (unsigned long long)place->offset);
        }
        struct tsr_piece *piece = i == 0 ? model : &tiles[i - 1];
        piece->bytes = body + c.at;
        piece->size = size - c.at;
    }
    return like ? get_other_model(r, frame, buffer, model, error) : TSR_OK;
}
