/* Finding the sections of a .tsr file, and reading them; see the header. */
#include "section_reader.h"

#include <stdlib.h>
#include <string.h>

static void note_damage(struct tsr_sections *s, const char *what)
{
    if (!s->damage) s->damage = what;
}

enum tsr_status tsr_grow_buffer(uint8_t **buffer, size_t *capacity, size_t size, struct tsr_error *error)
{
    if (size <= *capacity) return TSR_OK;
    free(*buffer);
    *capacity = 0;
    *buffer = malloc(size);
    if (!*buffer) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for a section of %zu bytes", size);
    *capacity = size;
    return TSR_OK;
}

const uint8_t *tsr_open_section(const uint8_t *section, size_t length, enum tsr_section_type type, size_t *body_size)
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
static enum tsr_status read_head(struct tsr_sections *s, uint64_t offset, uint8_t *type, uint64_t *length,
                                 struct tsr_error *error)
{
    uint8_t head[TSR_SECTION_HEAD_LIMIT];
    const uint64_t left = tsr_input_size(s->input) - offset;
    struct tsr_cursor c = {head, left < sizeof head ? (size_t)left : sizeof head, 0, false};
    TSR_TRY(tsr_input_read(s->input, offset, head, c.size, error));
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
static uint64_t section_limit(const struct tsr_sections *s, enum tsr_section_type type)
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
        return tsr_input_size(s->input);
    }
}

enum tsr_status tsr_read_section(struct tsr_sections *s, uint64_t offset, enum tsr_section_type type,
                                 const uint8_t **body, size_t *size, struct tsr_error *error)
{
    uint8_t found = 0;
    uint64_t length = 0;
    TSR_TRY(read_head(s, offset, &found, &length, error));
    if (found != type || length > section_limit(s, type))
        return tsr_fail_at(error, TSR_ERROR_CORRUPT, offset, "no section '%c' at byte %llu", type,
                           (unsigned long long)offset);
    TSR_TRY(tsr_grow_buffer(&s->buffer, &s->buffer_capacity, (size_t)length, error));
    TSR_TRY(tsr_input_read(s->input, offset, s->buffer, (size_t)length, error));
    *body = tsr_open_section(s->buffer, (size_t)length, type, size);
    if (!*body)
        return tsr_fail_at(error, TSR_ERROR_CORRUPT, offset, "the section '%c' at byte %llu is damaged", type,
                           (unsigned long long)offset);
    return TSR_OK;
}

static enum tsr_status add_place(struct tsr_sections *s, uint64_t offset, uint64_t length, uint8_t type,
                                 struct tsr_error *error)
{
    if (s->count == s->capacity) {
        const size_t capacity = s->capacity ? 2 * s->capacity : 64;
        struct tsr_place *grown = realloc(s->place, capacity * sizeof *grown);
        if (!grown) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for an index of %zu sections", capacity);
        s->place = grown;
        s->capacity = capacity;
    }
    s->place[s->count++] = (struct tsr_place){offset, length, type};
    return TSR_OK;
}

/* An index's body to places, the first of them at offset first; they must end at offset end. */
static enum tsr_status read_index(struct tsr_sections *s, const uint8_t *body, size_t size, uint64_t first,
                                  uint64_t end, struct tsr_error *error)
{
    struct tsr_cursor c = {body, size, 0, false};
    const uint64_t count = tsr_get_varint(&c);
    uint64_t offset = first;
    s->count = 0;
    for (uint64_t i = 0; i < count && !c.bad; i++) {
        const uint8_t type = tsr_get_u8(&c);
        const uint64_t length = tsr_get_varint(&c);
        if (c.bad || length < TSR_SECTION_LEAST || length > end - offset) break;
        TSR_TRY(add_place(s, offset, length, type, error));
        offset += length;
    }
    if (c.bad || c.at != size || offset != end)
        return tsr_fail_at(error, TSR_ERROR_CORRUPT, end, "the index does not describe the file");
    return TSR_OK;
}

/* Without an index: from section to section up to where the index stands. */
static enum tsr_status walk_sections(struct tsr_sections *s, uint64_t offset, struct tsr_error *error)
{
    const uint64_t size = tsr_input_size(s->input);
    s->count = 0;
    while (offset < size) {
        uint8_t type = 0;
        uint64_t length = 0;
        TSR_TRY(read_head(s, offset, &type, &length, error));
        if (type == TSR_SECTION_INDEX || type == TSR_SECTION_COPY) return TSR_OK;
        TSR_TRY(add_place(s, offset, length, type, error));
        offset += length;
    }
    return tsr_fail_at(error, TSR_ERROR_CORRUPT, size, "the file ends before its index");
}

/* The copy of header and index: both in one section. */
static enum tsr_status read_copy(struct tsr_sections *s, uint64_t copy_offset, const uint8_t **header,
                                 size_t *header_size, const uint8_t **index, size_t *index_size,
                                 struct tsr_error *error)
{
    const uint8_t *body;
    size_t size;
    TSR_TRY(tsr_read_section(s, copy_offset, TSR_SECTION_COPY, &body, &size, error));
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

static enum tsr_status read_footer(struct tsr_sections *s, struct footer *footer, struct tsr_error *error)
{
    uint8_t bytes[TSR_FOOTER_BYTES];
    const uint64_t size = tsr_input_size(s->input);
    memset(footer, 0, sizeof *footer);
    if (size < TSR_SIGNATURE_BYTES + TSR_SECTION_LEAST + TSR_FOOTER_BYTES) return TSR_OK;
    TSR_TRY(tsr_input_read(s->input, size - TSR_FOOTER_BYTES, bytes, sizeof bytes, error));
    footer->index_offset = tsr_read_u64(bytes);
    footer->copy_offset = tsr_read_u64(bytes + 8);
    footer->whole = memcmp(bytes + 20, TSR_END_MARK, 4) == 0 &&
                    tsr_read_u32(bytes + 16) == (uint32_t)tsr_hash64_of(bytes, 16) &&
                    footer->index_offset < footer->copy_offset && footer->copy_offset < size - TSR_FOOTER_BYTES;
    return TSR_OK;
}

/* The header, from the start or from its copy, and where the first section behind it stands. */
static enum tsr_status find_header(struct tsr_sections *s, const struct footer *footer, uint64_t *first,
                                   struct tsr_header *header, struct tsr_error *error)
{
    uint8_t signature[TSR_SIGNATURE_BYTES] = {0};
    const uint64_t size = tsr_input_size(s->input);
    const uint8_t *body, *index;
    size_t body_size, index_size;
    if (size >= TSR_SIGNATURE_BYTES) TSR_TRY(tsr_input_read(s->input, 0, signature, sizeof signature, error));
    const bool signed_ = memcmp(signature, TSR_SIGNATURE, TSR_SIGNATURE_BYTES) == 0;
    if (!signed_ && !footer->whole)
        return tsr_fail(error, TSR_ERROR_NOT_TSR, "%s is no .tsr file", tsr_input_name(s->input));
    if (!signed_) note_damage(s, "signature");
    if (size <= TSR_SIGNATURE_BYTES)
        return tsr_fail(error, TSR_ERROR_CORRUPT, "%s ends after its signature", tsr_input_name(s->input));
    const enum tsr_status status =
        tsr_read_section(s, TSR_SIGNATURE_BYTES, TSR_SECTION_HEADER, &body, &body_size, error);
    if (status == TSR_ERROR_LIMIT) return status; /* no damage */
    if (status == TSR_OK) {
        *first = TSR_SIGNATURE_BYTES + (uint64_t)(body - s->buffer) + body_size + TSR_CHECK_BYTES;
        return tsr_get_header(body, body_size, header, error);
    }
    if (!footer->whole)
        return tsr_fail_at(error, TSR_ERROR_CORRUPT, TSR_SIGNATURE_BYTES, "the header and the footer are damaged");
    note_damage(s, "header");
    TSR_TRY(read_copy(s, footer->copy_offset, &body, &body_size, &index, &index_size, error));
    /* The damaged header's section has the length that a whole one would have. */
    uint8_t length[TSR_VARINT_LIMIT];
    *first = TSR_SIGNATURE_BYTES + 1 + tsr_put_varint(length, body_size) + body_size + TSR_CHECK_BYTES;
    return tsr_get_header(body, body_size, header, error);
}

static enum tsr_status find_places(struct tsr_sections *s, const struct footer *footer, uint64_t first,
                                   struct tsr_error *error)
{
    const uint8_t *body, *header;
    size_t size, header_size;
    if (!footer->whole) {
        note_damage(s, "footer");
        return walk_sections(s, first, error);
    }
    enum tsr_status status = tsr_read_section(s, footer->index_offset, TSR_SECTION_INDEX, &body, &size, error);
    if (status == TSR_OK) {
        TSR_TRY(read_index(s, body, size, first, footer->index_offset, error));
        /* The copy is needed by nobody now, but somebody may ask whether the file is whole. */
        status = read_copy(s, footer->copy_offset, &header, &header_size, &body, &size, error);
        if (status == TSR_OK || status == TSR_ERROR_LIMIT) return status;
        note_damage(s, "copy of header and index");
        return TSR_OK;
    }
    if (status == TSR_ERROR_LIMIT) return status;
    note_damage(s, "index");
    status = read_copy(s, footer->copy_offset, &header, &header_size, &body, &size, error);
    if (status == TSR_OK) return read_index(s, body, size, first, footer->index_offset, error);
    if (status == TSR_ERROR_LIMIT) return status;
    note_damage(s, "index and its copy");
    return walk_sections(s, first, error);
}

enum tsr_status tsr_find_sections(struct tsr_sections *s, struct tsr_header *header, struct tsr_error *error)
{
    struct footer footer;
    uint64_t first = 0;
    TSR_TRY(read_footer(s, &footer, error));
    TSR_TRY(find_header(s, &footer, &first, header, error));
    return find_places(s, &footer, first, error);
}
