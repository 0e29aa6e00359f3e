/* Reading a .tsr file, and finding one's way in a damaged one. FORMAT.md sections 3 to 5. */
#include <stdlib.h>
#include <string.h>

#if TSR_WITH_ZSTD
#include <zstd.h>
#endif

#include "section.h"

/* A section that the index, or a walk through the file, names. */
struct place {
    uint64_t offset;
    uint64_t length; /* of the whole section */
    uint8_t type;
};

#define NOWHERE SIZE_MAX

struct tsr_container_reader {
    struct tsr_input *input;
    struct tsr_header header;
    const char *damage;
    struct place *places;
    size_t place_count, place_capacity;
    /* Of a series: by member, its last section, which says what it is. Else NULL. */
    size_t *member_place;
    uint32_t members;
    bool shares; /* places and member_place are another reader's */
    /* The chosen member, or the file: its sections, its name and its proof; the header is its own. */
    uint32_t member;
    size_t first, end;
    char name[TSR_NAME_LIMIT + 1];
    struct tsr_proof proof;
    size_t *frame_place;    /* by frame: its section */
    size_t *model_place;    /* by frame: where its model is, NOWHERE if that is damaged */
    uint8_t *buffer, *blob; /* a section as it is, a blob decompressed */
    size_t buffer_capacity, blob_capacity;
    struct base { /* of each blob: what others are compressed with, of which member */
        uint8_t *bytes;
        size_t size, capacity;
        uint32_t member;
    } base[TSR_BLOB_COUNT];
};

static void note_damage(struct tsr_container_reader *r, const char *what)
{
    if (!r->damage) r->damage = what;
}

static enum tsr_status grow(uint8_t **buffer, size_t *capacity, size_t size, struct tsr_error *error)
{
    if (size <= *capacity) return TSR_OK;
    free(*buffer);
    *capacity = 0;
    *buffer = malloc(size);
    if (!*buffer) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for a section of %zu bytes", size);
    *capacity = size;
    return TSR_OK;
}

/* The body of a section of length bytes, if it is of this type and its checksum holds; else NULL. */
static const uint8_t *open_section(const uint8_t *section, size_t length, enum tsr_section_type type, size_t *body_size)
{
    struct tsr_cursor c = {section, length, 0, false};
    if (tsr_get_u8(&c) != type) return NULL;
    const uint64_t size = tsr_get_varint(&c);
    if (c.bad || length - c.at < TSR_CHECK_BYTES || size != length - c.at - TSR_CHECK_BYTES) return NULL;
    if (tsr_hash64_of(section, length - TSR_CHECK_BYTES) != tsr_read_u64(section + length - TSR_CHECK_BYTES))
        return NULL;
    *body_size = (size_t)size;
    return section + c.at;
}

/* Type and whole length of the section at offset. */
static enum tsr_status read_head(struct tsr_container_reader *r, uint64_t offset, uint8_t *type, uint64_t *length,
                                 struct tsr_error *error)
{
    uint8_t head[TSR_SECTION_HEAD_LIMIT];
    const uint64_t left = tsr_input_size(r->input) - offset;
    struct tsr_cursor c = {head, left < sizeof head ? (size_t)left : sizeof head, 0, false};
    TSR_TRY(tsr_input_read(r->input, offset, head, c.size, error));
    *type = tsr_get_u8(&c);
    const uint64_t body = tsr_get_varint(&c);
    if (c.bad || left < c.at + TSR_CHECK_BYTES || body > left - c.at - TSR_CHECK_BYTES)
        return tsr_fail_at(error, TSR_ERROR_CORRUPT, offset, "the section at byte %llu does not fit the file",
                           (unsigned long long)offset);
    *length = c.at + body + TSR_CHECK_BYTES;
    return TSR_OK;
}

/* Longest section of a type that is read whole into the reader's buffer. An index names each section in 2 bytes or
 * more, so it is no longer than the file. */
static uint64_t section_limit(const struct tsr_container_reader *r, enum tsr_section_type type)
{
    switch (type) {
    case TSR_SECTION_HEADER:
    case TSR_SECTION_PROOF:
        return TSR_HEADER_LIMIT + TSR_SECTION_HEAD_LIMIT + TSR_CHECK_BYTES;
    case TSR_SECTION_MEMBER:
        return TSR_MEMBER_LIMIT + TSR_SECTION_HEAD_LIMIT + TSR_CHECK_BYTES;
    case TSR_SECTION_BLOB:
        return 2 * TSR_BLOB_CHUNK;
    default:
        return tsr_input_size(r->input);
    }
}

/* Reads the section at offset and returns its body, in the reader's buffer. */
static enum tsr_status read_section(struct tsr_container_reader *r, uint64_t offset, enum tsr_section_type type,
                                    const uint8_t **body, size_t *size, struct tsr_error *error)
{
    uint8_t found = 0;
    uint64_t length = 0;
    TSR_TRY(read_head(r, offset, &found, &length, error));
    if (found != type || length > section_limit(r, type))
        return tsr_fail_at(error, TSR_ERROR_CORRUPT, offset, "no section '%c' at byte %llu", type,
                           (unsigned long long)offset);
    TSR_TRY(grow(&r->buffer, &r->buffer_capacity, (size_t)length, error));
    TSR_TRY(tsr_input_read(r->input, offset, r->buffer, (size_t)length, error));
    *body = open_section(r->buffer, (size_t)length, type, size);
    if (!*body)
        return tsr_fail_at(error, TSR_ERROR_CORRUPT, offset, "the section '%c' at byte %llu is damaged", type,
                           (unsigned long long)offset);
    return TSR_OK;
}

static enum tsr_status add_place(struct tsr_container_reader *r, uint64_t offset, uint64_t length, uint8_t type,
                                 struct tsr_error *error)
{
    if (r->place_count == r->place_capacity) {
        const size_t capacity = r->place_capacity ? 2 * r->place_capacity : 64;
        struct place *grown = realloc(r->places, capacity * sizeof *grown);
        if (!grown) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for an index of %zu sections", capacity);
        r->places = grown;
        r->place_capacity = capacity;
    }
    r->places[r->place_count++] = (struct place){offset, length, type};
    return TSR_OK;
}

/* An index's body to places, the first of them at offset first; they must end at offset end. */
static enum tsr_status read_index(struct tsr_container_reader *r, const uint8_t *body, size_t size, uint64_t first,
                                  uint64_t end, struct tsr_error *error)
{
    struct tsr_cursor c = {body, size, 0, false};
    const uint64_t count = tsr_get_varint(&c);
    uint64_t offset = first;
    r->place_count = 0;
    for (uint64_t i = 0; i < count && !c.bad; i++) {
        const uint8_t type = tsr_get_u8(&c);
        const uint64_t length = tsr_get_varint(&c);
        if (c.bad || length < TSR_SECTION_LEAST || length > end - offset) break;
        TSR_TRY(add_place(r, offset, length, type, error));
        offset += length;
    }
    if (c.bad || c.at != size || offset != end)
        return tsr_fail_at(error, TSR_ERROR_CORRUPT, end, "the index does not describe the file");
    return TSR_OK;
}

/* Without an index: from section to section up to where the index stands. */
static enum tsr_status walk_sections(struct tsr_container_reader *r, uint64_t offset, struct tsr_error *error)
{
    const uint64_t size = tsr_input_size(r->input);
    r->place_count = 0;
    while (offset < size) {
        uint8_t type = 0;
        uint64_t length = 0;
        TSR_TRY(read_head(r, offset, &type, &length, error));
        if (type == TSR_SECTION_INDEX || type == TSR_SECTION_COPY) return TSR_OK;
        TSR_TRY(add_place(r, offset, length, type, error));
        offset += length;
    }
    return tsr_fail_at(error, TSR_ERROR_CORRUPT, size, "the file ends before its index");
}

/* The copy of header and index: both in one section. */
static enum tsr_status read_copy(struct tsr_container_reader *r, uint64_t copy_offset, const uint8_t **header,
                                 size_t *header_size, const uint8_t **index, size_t *index_size,
                                 struct tsr_error *error)
{
    const uint8_t *body;
    size_t size;
    TSR_TRY(read_section(r, copy_offset, TSR_SECTION_COPY, &body, &size, error));
    struct tsr_cursor c = {body, size, 0, false};
    const uint64_t length = tsr_get_varint(&c);
    *header_size = (size_t)length;
    *header = length <= TSR_HEADER_LIMIT ? tsr_get_bytes(&c, (size_t)length) : NULL;
    if (!*header)
        return tsr_fail_at(error, TSR_ERROR_CORRUPT, copy_offset, "the copy of the header is %llu bytes long",
                           (unsigned long long)length);
    *index = body + c.at;
    *index_size = size - c.at;
    return TSR_OK;
}

struct footer {
    bool whole;
    uint64_t index_offset, copy_offset;
};

static enum tsr_status read_footer(struct tsr_container_reader *r, struct footer *footer, struct tsr_error *error)
{
    uint8_t bytes[TSR_FOOTER_BYTES];
    const uint64_t size = tsr_input_size(r->input);
    memset(footer, 0, sizeof *footer);
    if (size < TSR_SIGNATURE_BYTES + TSR_SECTION_LEAST + TSR_FOOTER_BYTES) return TSR_OK;
    TSR_TRY(tsr_input_read(r->input, size - TSR_FOOTER_BYTES, bytes, sizeof bytes, error));
    footer->index_offset = tsr_read_u64(bytes);
    footer->copy_offset = tsr_read_u64(bytes + 8);
    footer->whole = memcmp(bytes + 20, TSR_END_MARK, 4) == 0 &&
                    tsr_read_u32(bytes + 16) == (uint32_t)tsr_hash64_of(bytes, 16) &&
                    footer->index_offset < footer->copy_offset && footer->copy_offset < size - TSR_FOOTER_BYTES;
    return TSR_OK;
}

/* The header, from the start or from its copy, and where the first section behind it stands. */
static enum tsr_status find_header(struct tsr_container_reader *r, const struct footer *footer, uint64_t *first,
                                   struct tsr_error *error)
{
    uint8_t signature[TSR_SIGNATURE_BYTES] = {0};
    const uint64_t size = tsr_input_size(r->input);
    const uint8_t *body, *index;
    size_t body_size, index_size;
    if (size >= TSR_SIGNATURE_BYTES) TSR_TRY(tsr_input_read(r->input, 0, signature, sizeof signature, error));
    const bool signed_ = memcmp(signature, TSR_SIGNATURE, TSR_SIGNATURE_BYTES) == 0;
    if (!signed_ && !footer->whole)
        return tsr_fail(error, TSR_ERROR_NOT_TSR, "%s is no .tsr file", tsr_input_name(r->input));
    if (!signed_) note_damage(r, "signature");
    if (size <= TSR_SIGNATURE_BYTES)
        return tsr_fail(error, TSR_ERROR_CORRUPT, "%s ends after its signature", tsr_input_name(r->input));
    const enum tsr_status status = read_section(r, TSR_SIGNATURE_BYTES, TSR_SECTION_HEADER, &body, &body_size, error);
    if (status == TSR_ERROR_LIMIT) return status; /* no damage */
    if (status == TSR_OK) {
        *first = TSR_SIGNATURE_BYTES + (uint64_t)(body - r->buffer) + body_size + TSR_CHECK_BYTES;
        return tsr_get_header(body, body_size, &r->header, error);
    }
    if (!footer->whole)
        return tsr_fail_at(error, TSR_ERROR_CORRUPT, TSR_SIGNATURE_BYTES, "the header and the footer are damaged");
    note_damage(r, "header");
    TSR_TRY(read_copy(r, footer->copy_offset, &body, &body_size, &index, &index_size, error));
    /* The damaged header's section has the length that a whole one would have. */
    uint8_t length[TSR_VARINT_LIMIT];
    *first = TSR_SIGNATURE_BYTES + 1 + tsr_put_varint(length, body_size) + body_size + TSR_CHECK_BYTES;
    return tsr_get_header(body, body_size, &r->header, error);
}

static enum tsr_status find_places(struct tsr_container_reader *r, const struct footer *footer, uint64_t first,
                                   struct tsr_error *error)
{
    const uint8_t *body, *header;
    size_t size, header_size;
    if (!footer->whole) {
        note_damage(r, "footer");
        return walk_sections(r, first, error);
    }
    enum tsr_status status = read_section(r, footer->index_offset, TSR_SECTION_INDEX, &body, &size, error);
    if (status == TSR_OK) {
        TSR_TRY(read_index(r, body, size, first, footer->index_offset, error));
        /* The copy is needed by nobody now, but somebody may ask whether the file is whole. */
        status = read_copy(r, footer->copy_offset, &header, &header_size, &body, &size, error);
        if (status == TSR_OK || status == TSR_ERROR_LIMIT) return status;
        note_damage(r, "copy of header and index");
        return TSR_OK;
    }
    if (status == TSR_ERROR_LIMIT) return status;
    note_damage(r, "index");
    status = read_copy(r, footer->copy_offset, &header, &header_size, &body, &size, error);
    if (status == TSR_OK) return read_index(r, body, size, first, footer->index_offset, error);
    if (status == TSR_ERROR_LIMIT) return status;
    note_damage(r, "index and its copy");
    return walk_sections(r, first, error);
}

/* Where the model of a frame is that has another's: so many frames before, whichever member they are in. */
static enum tsr_status find_model(struct tsr_container_reader *r, size_t from, size_t *found, struct tsr_error *error)
{
    const uint8_t *body;
    size_t size;
    struct tsr_error ignored;
    *found = NOWHERE;
    const enum tsr_status status = read_section(r, r->places[from].offset, TSR_SECTION_LIKE, &body, &size, &ignored);
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
        const uint8_t type = r->places[from].type;
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
        const struct place *place = &r->places[i];
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
    if (r->header.members > r->place_count)
        return tsr_fail(error, TSR_ERROR_CORRUPT, "%u files in %zu sections", r->header.members, r->place_count);
    r->member_place = malloc(r->header.members * sizeof *r->member_place);
    if (!r->member_place)
        return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for an index of %u files", r->header.members);
    size_t behind = 0;
    for (size_t i = 0; i < r->place_count; i++) {
        if (r->places[i].type != TSR_SECTION_MEMBER) continue;
        if (r->members < r->header.members) r->member_place[r->members] = i;
        r->members++;
        behind = i + 1;
    }
    if (r->members != r->header.members || behind != r->place_count)
        return tsr_fail(error, TSR_ERROR_CORRUPT, "%u of %u files, and %zu sections behind them", r->members,
                        r->header.members, r->place_count - behind);
    return TSR_OK;
}

static enum tsr_status find_contents(struct tsr_container_reader *r, struct tsr_error *error)
{
    if (r->header.restore == TSR_RESTORE_SERIES) return find_members(r, error);
    r->members = 1;
    r->end = r->place_count;
    return find_frames(r, error);
}

enum tsr_status tsr_container_open(struct tsr_input *input, struct tsr_container_reader **reader,
                                   struct tsr_error *error)
{
    struct footer footer;
    uint64_t first = 0;
    struct tsr_container_reader *r = calloc(1, sizeof *r);
    *reader = NULL;
    if (!r) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for a container");
    r->input = input;
    enum tsr_status status = read_footer(r, &footer, error);
    if (status == TSR_OK) status = find_header(r, &footer, &first, error);
    if (status == TSR_OK) status = find_places(r, &footer, first, error);
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
        free(reader->places);
        free(reader->member_place);
    }
    for (int blob = 0; blob < TSR_BLOB_COUNT; blob++) free(reader->base[blob].bytes);
    free(reader->frame_place);
    free(reader->model_place);
    free(reader->buffer);
    free(reader->blob);
    free(reader);
}

enum tsr_status tsr_container_share(const struct tsr_container_reader *reader, struct tsr_input *input,
                                    struct tsr_container_reader **shared, struct tsr_error *error)
{
    struct tsr_container_reader *r = calloc(1, sizeof *r);
    *shared = r;
    if (!r) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for a container");
    r->input = input;
    r->damage = reader->damage;
    r->places = reader->places;
    r->place_count = reader->place_count;
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
    const struct place *place = &r->places[r->member_place[member]];
    struct tsr_error why;
    const uint8_t *body;
    size_t size;
    TSR_TRY(read_section(r, place->offset, TSR_SECTION_MEMBER, &body, &size, error));
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
    if (!reader->member_place) return tsr_input_size(reader->input);
    if (reader->first == reader->end) return 0;
    const struct place *last = &reader->places[reader->end - 1];
    return last->offset + last->length - reader->places[reader->first].offset;
}

const struct tsr_header *tsr_container_header(const struct tsr_container_reader *reader)
{
    return &reader->header;
}

const char *tsr_container_damage(const struct tsr_container_reader *reader)
{
    return reader->damage;
}

uint64_t tsr_container_sections(const struct tsr_container_reader *reader)
{
    return reader->end > reader->first ? reader->end - reader->first : reader->place_count;
}

uint64_t tsr_container_pixel_bytes(const struct tsr_container_reader *reader)
{
    uint64_t bytes = tsr_container_bytes(reader);
    for (size_t i = reader->first; i < reader->end; i++)
        if (reader->places[i].type == TSR_SECTION_BLOB) bytes -= reader->places[i].length;
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
    const struct place *place = &r->places[r->place_count - 1];
    const uint8_t *body;
    size_t size;
    TSR_TRY(read_section(r, place->offset, TSR_SECTION_PROOF, &body, &size, error));
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

static enum tsr_status read_blob(struct tsr_container_reader *r, const struct place *place, struct stored_blob *b,
                                 struct tsr_error *error)
{
    const uint8_t *body;
    size_t body_size;
    TSR_TRY(read_section(r, place->offset, TSR_SECTION_BLOB, &body, &body_size, error));
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
static enum tsr_status unpack_blob(const struct place *place, const struct stored_blob *b, const struct base *base,
                                   uint8_t *out, struct tsr_error *error)
{
#if TSR_WITH_ZSTD
    ZSTD_DCtx *context = ZSTD_createDCtx();
    if (!context) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory to decompress %zu bytes", b->size);
    size_t result = base ? ZSTD_DCtx_refPrefix(context, base->bytes, base->size) : 0;
    if (!ZSTD_isError(result)) result = ZSTD_decompressDCtx(context, out, b->size, b->bytes, b->stored);
    ZSTD_freeDCtx(context);
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
static enum tsr_status find_base(struct tsr_container_reader *r, const struct place *place, uint8_t blob,
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
        if (r->places[i].type != TSR_SECTION_BLOB) continue;
        TSR_TRY(read_blob(r, &r->places[i], &b, error));
        if (b.blob != blob) continue;
        if (b.method == TSR_BLOB_ZSTD_AFTER) break; /* one link at most */
        TSR_TRY(grow(&base->bytes, &base->capacity, b.size, error));
        if (b.method == TSR_BLOB_RAW)
            memcpy(base->bytes, b.bytes, b.size);
        else
            TSR_TRY(unpack_blob(&r->places[i], &b, NULL, base->bytes, error));
        base->size = b.size;
        base->member = member;
        return TSR_OK;
    }
    return tsr_fail_at(error, TSR_ERROR_CORRUPT, place->offset, "the blob that the one at byte %llu follows is none",
                       (unsigned long long)place->offset);
}

/* A blob section's content; *size is 0 where it is another blob's. */
static enum tsr_status open_blob(struct tsr_container_reader *r, const struct place *place, enum tsr_blob blob,
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
    TSR_TRY(grow(&r->blob, &r->blob_capacity, *size, error));
    *bytes = r->blob;
    return unpack_blob(place, &b, base, r->blob, error);
}

enum tsr_status tsr_container_get_blob(struct tsr_container_reader *r, enum tsr_blob blob, uint64_t *cursor,
                                       const uint8_t **bytes, size_t *size, struct tsr_error *error)
{
    *size = 0;
    while (*cursor < r->end - r->first) {
        const struct place *place = &r->places[r->first + (*cursor)++];
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
    while (i < r->end && r->places[i].type == TSR_SECTION_TILE) i++;
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
    const struct place *first = &r->places[r->frame_place[frame]];
    const struct place *last = first + frame_sections(r, frame) - 1;
    return (size_t)(last->offset + last->length - first->offset);
}

/* The section of another frame whose model this one has, or NULL. */
static const struct place *other_model(const struct tsr_container_reader *r, uint32_t frame)
{
    const size_t model = r->model_place[frame];
    return model == NOWHERE || model == r->frame_place[frame] ? NULL : &r->places[model];
}

size_t tsr_container_frame_bytes(const struct tsr_container_reader *reader, uint32_t frame)
{
    const struct place *other = other_model(reader, frame);
    return own_bytes(reader, frame) + (other ? (size_t)other->length : 0);
}

/* The model of a frame that has another's, behind its own sections in the buffer. */
static enum tsr_status get_other_model(struct tsr_container_reader *r, uint32_t frame, uint8_t *buffer,
                                       struct tsr_piece *model, struct tsr_error *error)
{
    const struct place *other = other_model(r, frame);
    if (!other) return tsr_fail(error, TSR_ERROR_CORRUPT, "frame %u has the model of none", frame);
    buffer += own_bytes(r, frame);
    size_t size = 0;
    TSR_TRY(tsr_input_read(r->input, other->offset, buffer, (size_t)other->length, error));
    const uint8_t *body = open_section(buffer, (size_t)other->length, TSR_SECTION_FRAME, &size);
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
    const struct place *first = &r->places[r->frame_place[frame]];
    const uint32_t tile_count = tsr_container_frame_tiles(r, frame);
    const bool like = first->type == TSR_SECTION_LIKE;
    TSR_TRY(tsr_input_read(r->input, first->offset, buffer, own_bytes(r, frame), error));
    for (uint32_t i = 0; i <= tile_count; i++) {
        const struct place *place = first + i;
        const uint8_t *section = buffer + (place->offset - first->offset);
        size_t size = 0;
        const uint8_t *body = open_section(section, (size_t)place->length, (enum tsr_section_type)place->type, &size);
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
