/* Finds the sections of a .tsr file and reads them; see section_reader.h. */
#include "section_reader.h"

#include "small.h"

#include <stdlib.h>
#include <string.h>

#include "io/cipher/cipher.h"

static void note_damage(struct tsr_sections *s, const char *what)
{
    if (!s->damage) s->damage = what;
}

const uint8_t *tsr_open_section(const uint8_t *section, size_t length, enum tsr_section_type type, uint64_t seal,
                                size_t *body_size, uint64_t *hash)
{
    struct tsr_cursor c = {section, length, 0, false};
    if (tsr_get_u8(&c) != type) return NULL;
    const uint64_t size = tsr_get_varint(&c);
    if (c.bad || length - c.at < TSR_CHECK_BYTES || size != length - c.at - TSR_CHECK_BYTES) return NULL;
    const uint64_t found = tsr_hash64_of(section, length - TSR_CHECK_BYTES);
    if (found + seal != tsr_read_u64(section + length - TSR_CHECK_BYTES)) return NULL;
    if (hash) *hash = found;
    *body_size = (size_t)size;
    return section + c.at;
}

enum tsr_status tsr_read_head(struct tsr_sections *s, uint64_t offset, uint8_t *type, uint64_t *length,
                              struct tsr_error *error)
{
    uint8_t head[TSR_SECTION_HEAD_LIMIT];
    const uint64_t left = tsr_input_size(s->input) - offset;
    struct tsr_cursor c = {head, left < sizeof head ? (size_t)left : sizeof head, 0, false};
    TSR_TRY(tsr_input_read(s->input, offset, head, c.size, error));
    *type = tsr_get_u8(&c);
    const uint64_t body = tsr_get_varint(&c);
    if (c.bad || left < c.at + TSR_CHECK_BYTES || body > left - c.at - TSR_CHECK_BYTES)
        return tsr_fail_at(error, TSR_ERROR_CORRUPT, offset, "the section at byte %llu does not fit into the file",
                           (unsigned long long)offset);
    *length = c.at + body + TSR_CHECK_BYTES;
    return TSR_OK;
}

/* The longest section of a type, in bytes, that is read whole into the buffer. An index may be as long as the file. */
static uint64_t section_limit(const struct tsr_sections *s, enum tsr_section_type type)
{
    switch (type) {
    case TSR_SECTION_HEADER:
    case TSR_SECTION_PROOF:
        return TSR_HEADER_LIMIT + TSR_SECTION_HEAD_LIMIT + TSR_CHECK_BYTES;
    case TSR_SECTION_MEMBER:
        return TSR_MEMBER_LIMIT + TSR_SECTION_HEAD_LIMIT + TSR_CHECK_BYTES;
    case TSR_SECTION_BLOB:
    case TSR_SECTION_TWIN:
        return 2 * TSR_BLOB_CHUNK;
    case TSR_SECTION_INDEX:
    case TSR_SECTION_COPY:
        return tsr_input_size(s->input);
    default: /* a tile has up to 2^20 samples of 2 bytes in 4 components */
        return 4 * TSR_BLOB_CHUNK;
    }
}

/* Reads a whole section of this type into the buffer. Its check may be wrong. */
static enum tsr_status read_unchecked(struct tsr_sections *s, uint64_t offset, enum tsr_section_type type,
                                      const uint8_t **body, size_t *size, size_t *length, struct tsr_error *error)
{
    uint8_t found = 0;
    uint64_t whole = 0;
    TSR_TRY(tsr_read_head(s, offset, &found, &whole, error));
    if (found != type || whole > section_limit(s, type))
        return tsr_fail_at(error, TSR_ERROR_CORRUPT, offset, "there is no section '%c' at byte %llu", type,
                           (unsigned long long)offset);
    if (whole > SIZE_MAX) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for a section of that size");
    if (type == TSR_SECTION_INDEX || type == TSR_SECTION_COPY)
        TSR_TRY(tsr_input_claim_header(s->input, 2 * whole + TSR_INDEX_MEMORY * (whole / 2), error));
    TSR_TRY(tsr_grow_buffer(&s->buffer, &s->buffer_capacity, (size_t)whole, error));
    TSR_TRY(tsr_input_read(s->input, offset, s->buffer, (size_t)whole, error));
    struct tsr_cursor c = {s->buffer, (size_t)whole, 1, false};
    const uint64_t claimed = tsr_get_varint(&c);
    if (c.bad || claimed != whole - c.at - TSR_CHECK_BYTES) /* the file has changed since the head was read */
        return tsr_fail_at(error, TSR_ERROR_CORRUPT, offset, "the section '%c' at byte %llu is damaged", type,
                           (unsigned long long)offset);
    *size = (size_t)claimed;
    *body = s->buffer + c.at;
    *length = (size_t)whole;
    return TSR_OK;
}

static enum tsr_status check_section(const struct tsr_sections *s, uint64_t offset, enum tsr_section_type type,
                                     size_t length, uint64_t seal, struct tsr_error *error)
{
    size_t size;
    if (tsr_open_section(s->buffer, length, type, seal, &size, NULL)) return TSR_OK;
    return tsr_fail_at(error, TSR_ERROR_CORRUPT, offset, "the section '%c' at byte %llu is damaged", type,
                       (unsigned long long)offset);
}

enum tsr_status tsr_hash_section(struct tsr_sections *s, const struct tsr_place *place, uint64_t seal, uint64_t *hash,
                                 struct tsr_error *error)
{
    enum { PIECE = 1 << 16 };
    uint8_t piece[PIECE], check[TSR_CHECK_BYTES];
    const uint64_t end = place->offset + place->length - sizeof check;
    struct tsr_hasher hasher;
    tsr_hasher_init(&hasher);
    for (uint64_t at = place->offset; at < end;) {
        const size_t now = end - at < sizeof piece ? (size_t)(end - at) : sizeof piece;
        TSR_TRY(tsr_input_read(s->input, at, piece, now, error));
        if (at == place->offset && piece[0] != place->type) break;
        tsr_hasher_add(&hasher, piece, now);
        at += now;
    }
    TSR_TRY(tsr_input_read(s->input, end, check, sizeof check, error));
    *hash = tsr_hasher_result64(&hasher);
    if (*hash + seal == tsr_read_u64(check)) return TSR_OK;
    return tsr_fail_at(error, TSR_ERROR_CORRUPT, place->offset, "the section '%c' at byte %llu is damaged", place->type,
                       (unsigned long long)place->offset);
}

enum tsr_status tsr_read_section(struct tsr_sections *s, uint64_t offset, enum tsr_section_type type, uint64_t seal,
                                 const uint8_t **body, size_t *size, struct tsr_error *error)
{
    size_t length = 0;
    TSR_TRY(read_unchecked(s, offset, type, body, size, &length, error));
    return check_section(s, offset, type, length, seal, error);
}

enum tsr_status tsr_add_place(struct tsr_sections *s, uint64_t offset, uint64_t length, uint8_t type,
                              struct tsr_error *error)
{
    if (s->count == s->capacity) {
        const size_t capacity = s->capacity ? 2 * s->capacity : 64;
        TSR_TRY(tsr_input_claim_header(s->input, (uint64_t)TSR_INDEX_MEMORY * capacity, error));
        struct tsr_place *grown = realloc(s->place, capacity * sizeof *grown);
        if (!grown) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for an index of %zu sections", capacity);
        s->place = grown;
        s->capacity = capacity;
    }
    s->place[s->count++] = (struct tsr_place){offset, length, type};
    return TSR_OK;
}

/* Reads an index's body to places. The first section begins at offset first, and the last one must end at offset end.
 */
static enum tsr_status read_index(struct tsr_sections *s, const uint8_t *body, size_t size, uint64_t first,
                                  uint64_t end, struct tsr_error *error)
{
    struct tsr_cursor c = {body, size, 0, false};
    const uint64_t count = tsr_get_varint(&c);
    uint64_t offset = first;
    s->count = 0;
    if (first > end) return tsr_fail_at(error, TSR_ERROR_CORRUPT, end, "the index stands before the first section");
    for (uint64_t i = 0; i < count && !c.bad; i++) {
        const uint8_t type = tsr_get_u8(&c);
        const uint64_t length = tsr_get_varint(&c);
        if (c.bad || length < TSR_SECTION_LEAST || length > end - offset) break;
        TSR_TRY(tsr_add_place(s, offset, length, type, error));
        offset += length;
    }
    if (c.bad || c.at != size || offset != end)
        return tsr_fail_at(error, TSR_ERROR_CORRUPT, end, "the index does not describe the file");
    return TSR_OK;
}

/* Finds the sections without an index: walks from one to the next, up to the index or to the first damage. A reader
 * that needs a missing section reports that. */
static enum tsr_status walk_sections(struct tsr_sections *s, uint64_t offset, struct tsr_error *error)
{
    const uint64_t size = tsr_input_size(s->input);
    s->count = 0;
    s->is_walked = true;
    while (offset < size) {
        uint8_t type = 0;
        uint64_t length = 0;
        const enum tsr_status status = tsr_read_head(s, offset, &type, &length, error);
        if (status == TSR_ERROR_CORRUPT || type == TSR_SECTION_INDEX || type == TSR_SECTION_COPY) return TSR_OK;
        TSR_TRY(status);
        if (type == 0) return TSR_OK; /* zeros, as of a hole, and no section */
        TSR_TRY(tsr_add_place(s, offset, length, type, error));
        offset += length;
    }
    return TSR_OK;
}

/* Counts those sections of an index that are the file's own: in a series, sections that belong to no member. */
static uint64_t count_own(const uint8_t *index, size_t size, bool is_series)
{
    struct tsr_cursor c = {index, size, 0, false};
    const uint64_t count = tsr_get_varint(&c);
    uint64_t own = 0;
    for (uint64_t i = 0; i < count && !c.bad; i++) {
        const uint8_t type = tsr_get_u8(&c);
        tsr_get_varint(&c);
        own += !is_series || type == TSR_SECTION_MEMBER || type == TSR_SECTION_TWIN;
    }
    return own;
}

/* Reads the index. *length: bytes of the whole section. */
static enum tsr_status read_index_section(struct tsr_sections *s, uint64_t offset, const struct tsr_header *header,
                                          const uint8_t **index, size_t *size, size_t *length, struct tsr_error *error)
{
    TSR_TRY(read_unchecked(s, offset, TSR_SECTION_INDEX, index, size, length, error));
    const uint64_t own = count_own(*index, *size, tsr_is_series(header));
    return check_section(s, offset, TSR_SECTION_INDEX, *length, tsr_seal(header->id, own + 1), error);
}

/* The copy of header and index, one section in the buffer. */
struct copy {
    struct tsr_header header;
    const uint8_t *body, *index;          /* body: of the header */
    size_t body_size, index_size, length; /* length: of the whole section */
};

static enum tsr_status read_copy(struct tsr_sections *s, uint64_t offset, struct copy *copy, struct tsr_error *error)
{
    const uint8_t *body;
    size_t size;
    copy->length = 0;
    TSR_TRY(read_unchecked(s, offset, TSR_SECTION_COPY, &body, &size, &copy->length, error));
    struct tsr_cursor c = {body, size, 0, false};
    const uint64_t header_size = tsr_get_varint(&c);
    copy->body = header_size <= TSR_HEADER_LIMIT ? tsr_get_bytes(&c, (size_t)header_size) : NULL;
    if (!copy->body)
        return tsr_fail_at(error, TSR_ERROR_CORRUPT, offset, "the copy of the header cannot have %llu bytes",
                           (unsigned long long)header_size);
    copy->body_size = (size_t)header_size;
    copy->index = body + c.at;
    copy->index_size = size - c.at;
    if (header_size < TSR_ID_OFFSET + TSR_ID_BYTES)
        return tsr_fail_at(error, TSR_ERROR_CORRUPT, offset, "the copy of the header cannot have %zu bytes",
                           copy->body_size);
    const struct tsr_header said = {.recipe = (enum tsr_recipe_number)copy->body[TSR_RECIPE_OFFSET]};
    const uint64_t own = count_own(copy->index, copy->index_size, tsr_is_series(&said));
    const uint64_t seal = tsr_seal(tsr_read_u64(copy->body + TSR_ID_OFFSET), own + 2);
    TSR_TRY(check_section(s, offset, TSR_SECTION_COPY, copy->length, seal, error));
    return tsr_get_header(copy->body, copy->body_size, &copy->header, error);
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

/* Reads the header at the file's start. *version: the version that the header says, even if its check is wrong; -1:
 * unknown. */
static enum tsr_status read_header(struct tsr_sections *s, struct tsr_header *header, uint64_t *first, int *version,
                                   struct tsr_error *error)
{
    const uint8_t *body;
    size_t size, length = 0;
    *version = -1;
    TSR_TRY(read_unchecked(s, TSR_SIGNATURE_BYTES, TSR_SECTION_HEADER, &body, &size, &length, error));
    if (size > 0) *version = body[0];
    if (size < TSR_ID_OFFSET + TSR_ID_BYTES || size > TSR_HEADER_LIMIT)
        return tsr_fail_at(error, TSR_ERROR_CORRUPT, TSR_SIGNATURE_BYTES, "the header cannot have %zu bytes", size);
    TSR_TRY(check_section(s, TSR_SIGNATURE_BYTES, TSR_SECTION_HEADER, length,
                          tsr_seal(tsr_read_u64(body + TSR_ID_OFFSET), 0), error));
    TSR_TRY(tsr_get_header(body, size, header, error));
    s->header_hash = tsr_header_hash(body, size);
    *first = tsr_header_end(size);
    return TSR_OK;
}

/* Whether a status is final: reading the other copy would not help. */
static bool is_final(enum tsr_status status)
{
    return status != TSR_OK && status != TSR_ERROR_CORRUPT && status != TSR_ERROR_READ;
}

static enum tsr_status fail_headers(int version, struct tsr_error *error)
{
    if (version >= 0 && version != TSR_FORMAT_VERSION)
        return tsr_fail(error, TSR_ERROR_VERSION, "format version %d is unknown to this program (it knows %d)", version,
                        TSR_FORMAT_VERSION);
    return tsr_fail_at(error, TSR_ERROR_CORRUPT, TSR_SIGNATURE_BYTES, "the header and its copy are damaged");
}

/* Takes header and index from their copy, because the header is damaged or another file's. */
static enum tsr_status find_by_copy(struct tsr_sections *s, const struct footer *footer, int version,
                                    struct tsr_header *header, struct tsr_error *error)
{
    struct copy copy;
    const enum tsr_status status = footer->whole ? read_copy(s, footer->copy_offset, &copy, error) : TSR_ERROR_CORRUPT;
    if (is_final(status) || status == TSR_ERROR_READ) return status; /* neither can be read: that is no damage */
    if (status != TSR_OK) return fail_headers(version, error);
    s->damage = "header";
    *header = copy.header;
    s->header_hash = tsr_header_hash(copy.body, copy.body_size);
    s->first = tsr_header_end(copy.body_size);
    return read_index(s, copy.index, copy.index_size, s->first, footer->index_offset, error);
}

/* Looks for the copy itself, from the end of a file on that has neither a header nor a footer, and takes the header
 * from it. The places are not looked for. The work is bounded as that of tsr_search_sections. */
static enum tsr_status search_copy(struct tsr_sections *s, struct tsr_header *header, struct tsr_error *error)
{
    enum { HEAD = 32, WINDOW = 1 << 12, MOST_PASSES = 16 };
    uint8_t window[WINDOW + HEAD];
    const uint64_t size = tsr_input_size(s->input);
    uint64_t work = MOST_PASSES * size;
    for (uint64_t end = size; end > 0;) {
        const uint64_t begin = end < WINDOW ? 0 : end - WINDOW;
        const size_t count = (size_t)(size - begin < sizeof window ? size - begin : sizeof window);
        TSR_TRY(tsr_input_read(s->input, begin, window, count, error));
        for (uint64_t at = end; at-- > begin;) {
            struct copy copy;
            struct tsr_error ignored;
            struct tsr_cursor c = {window + (at - begin), count - (size_t)(at - begin), 0, false};
            if (tsr_get_u8(&c) != TSR_SECTION_COPY) continue;
            const uint64_t length = tsr_get_varint(&c), of_header = tsr_get_varint(&c);
            if (tsr_get_u8(&c) != TSR_FORMAT_VERSION || c.bad || of_header > TSR_HEADER_LIMIT || length + HEAD > work)
                continue;
            work -= length + HEAD;
            const enum tsr_status status = read_copy(s, at, &copy, &ignored);
            if (status == TSR_ERROR_LIMIT || status == TSR_ERROR_READ)
                return tsr_fail(error, status, "%s", ignored.text);
            if (status != TSR_OK) continue;
            *header = copy.header;
            s->header_hash = tsr_header_hash(copy.body, copy.body_size);
            s->first = tsr_header_end(copy.body_size);
            s->is_walked = true;
            return TSR_OK;
        }
        end = begin;
    }
    return TSR_ERROR_CORRUPT;
}

/* Finds the sections of a file with an intact header: by the index, its copy, or a walk. */
static enum tsr_status find_places(struct tsr_sections *s, const struct footer *footer, uint64_t first,
                                   struct tsr_header *header, struct tsr_error *error)
{
    const uint8_t *index;
    size_t size, length = 0;
    struct copy copy;
    s->first = first;
    if (!footer->whole) {
        note_damage(s, "footer");
        return walk_sections(s, first, error);
    }
    const enum tsr_status indexed = read_index_section(s, footer->index_offset, header, &index, &size, &length, error);
    if (is_final(indexed)) return indexed;
    const uint64_t index_hash = indexed == TSR_OK ? tsr_hash64_of(index, size) : 0;
    if (indexed == TSR_OK) TSR_TRY(read_index(s, index, size, first, footer->index_offset, error));
    const enum tsr_status copied = read_copy(s, footer->copy_offset, &copy, error);
    if (is_final(copied) && copied != TSR_ERROR_VERSION) return copied;
    const bool is_ours = copied == TSR_OK && copy.header.id == header->id &&
                         tsr_header_hash(copy.body, copy.body_size) == s->header_hash;
    if (indexed == TSR_OK) { /* the copy is not needed, but the caller may ask whether the file is intact */
        if (!is_ours || tsr_hash64_of(copy.index, copy.index_size) != index_hash)
            note_damage(s, "copy of header and index");
        else if (footer->copy_offset != footer->index_offset + length ||
                 tsr_input_size(s->input) != footer->copy_offset + copy.length + TSR_FOOTER_BYTES)
            note_damage(s, "end of the file");
        return TSR_OK;
    }
    if (copied == TSR_OK && !is_ours) return find_by_copy(s, footer, -1, header, error);
    note_damage(s, copied == TSR_OK ? "index" : "index and its copy");
    return copied == TSR_OK ? read_index(s, copy.index, copy.index_size, first, footer->index_offset, error)
                            : walk_sections(s, first, error);
}

/* Reads a file to the buffer if it is a small one. Where a footer is whole, it is none: the type of the first section
 * is damaged. If the signature is damaged, the check must hold with the right one. */
static enum tsr_status find_small(struct tsr_sections *s, bool is_signed, bool *small, struct tsr_error *error)
{
    const uint64_t size = tsr_input_size(s->input);
    uint8_t type;
    TSR_TRY(tsr_input_read(s->input, TSR_SIGNATURE_BYTES, &type, 1, error));
    if (type != TSR_SECTION_SMALL) return TSR_OK;
    if (size > TSR_SMALL_LIMIT && is_signed)
        return tsr_fail_at(error, TSR_ERROR_CORRUPT, TSR_SIGNATURE_BYTES, "a small file cannot have %llu bytes",
                           (unsigned long long)size);
    if (size > TSR_SMALL_LIMIT) return TSR_OK;
    TSR_TRY(tsr_grow_buffer(&s->buffer, &s->buffer_capacity, (size_t)size, error));
    TSR_TRY(tsr_input_read(s->input, 0, s->buffer, (size_t)size, error));
    memcpy(s->buffer, TSR_SIGNATURE, TSR_SIGNATURE_BYTES);
    *small = is_signed || tsr_small_is_whole(s->buffer, (size_t)size);
    return TSR_OK;
}

/* Makes the file that the small file in the buffer stands for the input. */
static enum tsr_status expand(struct tsr_sections *s, struct tsr_error *error)
{
    const size_t size = (size_t)tsr_input_size(s->input);
    s->small_bytes = tsr_input_stored_size(s->input);
    TSR_TRY(tsr_small_expand(s->buffer, size, &s->expanded, &s->small_payload, error));
    struct tsr_input *const expanded = tsr_input_from_memory(
        tsr_output_bytes(s->expanded), (size_t)tsr_output_size(s->expanded), tsr_input_name(s->input));
    if (!expanded) {
        tsr_output_close(s->expanded);
        s->expanded = NULL;
        return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for a small file");
    }
    tsr_input_hash_late(expanded);
    s->input = expanded;
    return TSR_OK;
}

/* What stands at both ends is read by a dozen small reads; of a file on another machine each is a journey. Where an end
 * cannot be read, reading without this says so, or finds a copy. */
static enum tsr_status hold_ends(struct tsr_input *input, struct tsr_error *error)
{
    enum { START_BYTES = 256, END_BYTES = 1024 };
    const uint8_t *start;
    struct tsr_error found = {0};
    enum tsr_status status = tsr_input_hold_end(input, END_BYTES, &found);
    if (status != TSR_ERROR_LIMIT && tsr_input_size(input) > END_BYTES)
        status = tsr_input_hold(input, START_BYTES, &start, &found);
    if (status != TSR_ERROR_LIMIT) return TSR_OK;
    if (error) *error = found;
    return status;
}

/* An encrypted file that was opened without a key. */
static enum tsr_status fail_sealed(struct tsr_input *input, struct tsr_error *error)
{
    uint8_t head[TSR_SEALED_HEAD];
    const size_t size = tsr_input_size(input) < sizeof head ? (size_t)tsr_input_size(input) : sizeof head;
    TSR_TRY(tsr_input_read(input, 0, head, size, error));
    return tsr_fail_sealed(tsr_input_name(input), head, size, error);
}

enum tsr_status tsr_find_sections(struct tsr_sections *s, struct tsr_header *header, struct tsr_error *error)
{
    uint8_t signature[TSR_SIGNATURE_BYTES] = {0};
    const uint64_t size = tsr_input_size(s->input);
    struct footer footer;
    uint64_t first = 0;
    int version;
    TSR_TRY(hold_ends(s->input, error));
    TSR_TRY(read_footer(s, &footer, error));
    if (size >= TSR_SIGNATURE_BYTES) TSR_TRY(tsr_input_read(s->input, 0, signature, sizeof signature, error));
    if (tsr_is_sealed(signature, sizeof signature)) return fail_sealed(s->input, error);
    const bool is_signed = memcmp(signature, TSR_SIGNATURE, TSR_SIGNATURE_BYTES) == 0;
    bool small = false;
    if (!footer.whole && size > TSR_SIGNATURE_BYTES) TSR_TRY(find_small(s, is_signed, &small, error));
    if (!is_signed && !footer.whole && !small && !(s->salvages && search_copy(s, header, error) == TSR_OK))
        return tsr_fail(error, TSR_ERROR_NOT_TSR, "%s is not a .tsr file", tsr_input_name(s->input));
    if (tsr_input_must_be_sealed(s->input))
        return tsr_fail(error, TSR_ERROR_KEY,
                        "%s is not encrypted: who put it there may not have had the key (TESSERA_KEYFILE in place of "
                        "--key reads files of both kinds)",
                        tsr_input_name(s->input));
    if (!is_signed) note_damage(s, "signature");
    if (s->first > 0) return TSR_OK;
    if (size <= TSR_SIGNATURE_BYTES)
        return tsr_fail(error, TSR_ERROR_CORRUPT, "%s ends after its signature", tsr_input_name(s->input));
    if (small) TSR_TRY(expand(s, error));
    if (small) TSR_TRY(read_footer(s, &footer, error));
    enum tsr_status status = read_header(s, header, &first, &version, error);
    if (status == TSR_OK && s->header_alone) return TSR_OK;
    if (status == TSR_OK) {
        status = find_places(s, &footer, first, header, error);
        s->is_walked |= status == TSR_ERROR_CORRUPT;
        return s->salvages && status == TSR_ERROR_CORRUPT ? TSR_OK : status;
    }
    if (is_final(status)) return status;
    if (s->salvages && !footer.whole && search_copy(s, header, error) == TSR_OK) return TSR_OK;
    const enum tsr_status by_copy = find_by_copy(s, &footer, version, header, error);
    return by_copy == TSR_ERROR_CORRUPT && s->salvages && search_copy(s, header, error) == TSR_OK ? TSR_OK : by_copy;
}
