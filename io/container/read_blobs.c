/* Reading blobs, which may be compressed with those of other members. FORMAT.md 3.3 and 3.7. */
#include <string.h>

#include "container_reader.h"
#include "io/bytes/tables.h"
#include "io/bytes/zstd_contexts.h"
#include "io/recipe/standard.h"

/* Reads what a section says of a blob. */
static void get_head(struct tsr_cursor *c, struct tsr_stored_blob *b)
{
    b->blob = tsr_get_u8(c);
    b->method = tsr_get_u8(c);
    const uint64_t size = tsr_get_varint(c);
    b->size = size <= TSR_BLOB_CHUNK ? (size_t)size : TSR_BLOB_CHUNK + 1;
    b->distance = b->method == TSR_BLOB_ZSTD_AFTER ? tsr_get_u8(c) : 0;
}

/* What the head of a section says of a blob, without the content. Where it is not valid the section is damaged, and its
 * twin may say anything. */
static struct tsr_stored_blob peek_blob(const struct tsr_container_reader *r, size_t number)
{
    enum { FIXED = 3 }; /* type, blob and method */
    const struct tsr_place *const place = &r->sections.place[number];
    uint8_t bytes[FIXED + 2 * TSR_VARINT_LIMIT + 1];
    const size_t size = place->length < sizeof bytes ? (size_t)place->length : sizeof bytes;
    struct tsr_stored_blob head = {0};
    const enum tsr_status status = tsr_input_read(r->sections.input, place->offset, bytes, size, NULL);
    struct tsr_cursor c = {bytes, size, 1, status != TSR_OK};
    tsr_get_varint(&c);
    get_head(&c, &head);
    if (c.bad || head.blob >= TSR_BLOB_COUNT || head.size > TSR_BLOB_CHUNK)
        head = (struct tsr_stored_blob){.blob = TSR_BLOB_COUNT, .size = TSR_BLOB_CHUNK};
    return head;
}

/* Bytes of what a blob is compressed with: see tsr_find_base. */
static uint64_t base_bytes(const struct tsr_container_reader *r, const struct tsr_stored_blob *after)
{
    if (!r->member_place || after->distance > r->member) return 0;
    const uint32_t member = r->member - after->distance;
    for (size_t i = tsr_first_of(r, member); i < r->member_place[member]; i++) {
        if (r->sections.place[i].type != TSR_SECTION_BLOB) continue;
        const struct tsr_stored_blob head = peek_blob(r, i);
        if (head.blob == after->blob) return head.size;
    }
    return TSR_BLOB_CHUNK;
}

struct tsr_blob_sizes tsr_container_blobs(const struct tsr_container_reader *r)
{
    struct tsr_blob_sizes sizes = {0};
    uint64_t base[TSR_BLOB_COUNT] = {0};
    for (size_t i = r->first; i < r->end; i++) {
        const struct tsr_place *const place = &r->sections.place[i];
        if (place->type != TSR_SECTION_BLOB) continue;
        const struct tsr_stored_blob head = peek_blob(r, i);
        if (place->length > sizes.longest_stored) sizes.longest_stored = place->length;
        if (head.size > sizes.longest) sizes.longest = head.size;
        for (int blob = 0; blob < TSR_BLOB_COUNT; blob++)
            if (head.blob == blob || head.blob == TSR_BLOB_COUNT) sizes.bytes[blob] += head.size;
        if (head.method == TSR_BLOB_ZSTD_AFTER) base[head.blob] = base_bytes(r, &head);
    }
    for (int blob = 0; blob < TSR_BLOB_COUNT; blob++) sizes.bases += base[blob];
    return sizes;
}

enum tsr_status tsr_read_blob(struct tsr_container_reader *r, size_t number, struct tsr_stored_blob *b,
                              struct tsr_error *error)
{
    const struct tsr_place *place = &r->sections.place[number];
    const uint8_t *body;
    size_t body_size;
    TSR_TRY(tsr_read_or_twin(r, number, TSR_SECTION_BLOB, &body, &body_size, error));
    struct tsr_cursor c = {body, body_size, 0, false};
    get_head(&c, b);
    b->bytes = body + c.at;
    b->stored = body_size - c.at;
    if (!c.bad && (b->blob >= TSR_BLOB_COUNT || b->method > TSR_BLOB_TABLES))
        return tsr_fail_at(error, TSR_ERROR_VERSION, place->offset,
                           "blob %u or its method %u is unknown to this program", b->blob, b->method);
    if (c.bad || b->size > TSR_BLOB_CHUNK || b->size == 0)
        return tsr_fail_at(error, TSR_ERROR_CORRUPT, place->offset, "blob %u has no bytes, or more than %zu", b->blob,
                           TSR_BLOB_CHUNK);
    const bool good = b->method == TSR_BLOB_RAW          ? b->stored == b->size
                      : b->method == TSR_BLOB_ZSTD_AFTER ? b->distance > 0
                      : b->method >= TSR_BLOB_ZSTD_KNOWN ? b->blob == TSR_BLOB_PREFIX
                                                         : b->method == TSR_BLOB_ZSTD;
    if (!good)
        return tsr_fail_at(error, TSR_ERROR_CORRUPT, place->offset, "a blob of method %u and %zu bytes is not valid",
                           b->method, b->stored);
    return TSR_OK;
}

/* Decompresses a blob to out, b->size bytes. base: the content that the blob is compressed with, or NULL. */
static enum tsr_status unpack_blob(const struct tsr_place *place, const struct tsr_stored_blob *b,
                                   const struct base *base, uint8_t *out, struct tsr_error *error)
{
    size_t known_size = 0;
    const uint8_t *const known = b->method >= TSR_BLOB_ZSTD_KNOWN ? tsr_standard_base(&known_size) : NULL;
    struct tsr_cursor stored = {b->bytes, b->stored, 0, false};
    struct tsr_tables tables = {.count = 0};
    if (b->method == TSR_BLOB_TABLES && !tsr_get_tables(&stored, b->size, &tables))
        return tsr_fail_at(error, TSR_ERROR_CORRUPT, place->offset,
                           "the blob at byte %llu has tables that do not fit it", (unsigned long long)place->offset);
    const enum tsr_status status = tsr_zstd_decompress(base ? base->bytes : known, base ? base->size : known_size,
                                                       b->bytes + stored.at, b->stored - stored.at, out, b->size);
    if (status == TSR_OK) tsr_tables_join(&tables, out);
    if (status == TSR_ERROR_LIMIT) return tsr_fail(error, status, "no memory to decompress %zu bytes", b->size);
    if (status == TSR_ERROR_VERSION)
        return tsr_fail_at(error, status, place->offset,
                           "the metadata is compressed with zstd, which this build does not have");
    return status == TSR_OK ? TSR_OK
                            : tsr_fail_at(error, status, place->offset, "the blob at byte %llu does not decompress",
                                          (unsigned long long)place->offset);
}

enum tsr_status tsr_find_base(struct tsr_container_reader *r, const struct tsr_place *place, uint8_t blob,
                              uint8_t distance, size_t *number, struct tsr_stored_blob *b, struct tsr_error *error)
{
    if (!r->member_place || distance > r->member)
        return tsr_fail_at(error, TSR_ERROR_CORRUPT, place->offset,
                           "a blob needs a blob that stands %u files before and does not exist", distance);
    const uint32_t member = r->member - distance;
    for (size_t i = tsr_first_of(r, member); i < r->member_place[member]; i++) {
        if (r->sections.place[i].type != TSR_SECTION_BLOB) continue;
        struct tsr_error why;
        const enum tsr_status status = tsr_read_blob(r, i, b, &why);
        if (status == TSR_ERROR_CORRUPT || (status == TSR_OK && b->blob != blob)) continue;
        if (status != TSR_OK && error) *error = why;
        TSR_TRY(status);
        if (b->method > TSR_BLOB_ZSTD) break; /* that blob must be compressed alone */
        *number = i;
        return TSR_OK;
    }
    return tsr_fail_at(error, TSR_ERROR_CORRUPT, place->offset, "the blob that the blob at byte %llu needs is damaged",
                       (unsigned long long)place->offset);
}

/* Reads the content that a blob is compressed with, and keeps it for the next blob. */
static enum tsr_status read_base(struct tsr_container_reader *r, const struct tsr_place *place, uint8_t blob,
                                 uint8_t distance, struct tsr_error *error)
{
    struct base *base = &r->base[blob];
    struct tsr_stored_blob b;
    size_t number;
    if (base->size > 0 && base->member == r->member - distance) return TSR_OK;
    base->size = 0;
    TSR_TRY(tsr_find_base(r, place, blob, distance, &number, &b, error));
    TSR_TRY(tsr_grow_buffer(&base->bytes, &base->capacity, b.size, error));
    if (b.method == TSR_BLOB_RAW)
        memcpy(base->bytes, b.bytes, b.size);
    else
        TSR_TRY(unpack_blob(&r->sections.place[number], &b, NULL, base->bytes, error));
    base->size = b.size;
    base->member = r->member - distance;
    return TSR_OK;
}

/* Reads the content of a blob section. *size is 0 if the section belongs to another blob. */
static enum tsr_status open_blob(struct tsr_container_reader *r, size_t number, enum tsr_blob blob,
                                 const uint8_t **bytes, size_t *size, struct tsr_error *error)
{
    const struct tsr_place *place = &r->sections.place[number];
    struct tsr_stored_blob b;
    TSR_TRY(tsr_read_blob(r, number, &b, error));
    *size = 0;
    if (b.blob != blob) return TSR_OK;
    *size = b.size;
    *bytes = b.bytes;
    if (b.method == TSR_BLOB_RAW) return TSR_OK;
    const struct base *base = NULL;
    if (b.method == TSR_BLOB_ZSTD_AFTER) {
        TSR_TRY(read_base(r, place, b.blob, b.distance, error));
        base = &r->base[b.blob];
        TSR_TRY(tsr_read_blob(r, number, &b, error)); /* read_base() has used the buffer */
    }
    TSR_TRY(tsr_grow_buffer(&r->blob, &r->blob_capacity, *size, error));
    *bytes = r->blob;
    return unpack_blob(place, &b, base, r->blob, error);
}

enum tsr_status tsr_container_get_blob(struct tsr_container_reader *r, enum tsr_blob blob, uint64_t *cursor,
                                       const uint8_t **bytes, size_t *size, struct tsr_error *error)
{
    *size = 0;
    for (; *cursor < r->end - r->first && *size == 0; (*cursor)++) {
        const size_t number = r->first + (size_t)*cursor;
        if (r->sections.place[number].type == TSR_SECTION_BLOB) TSR_TRY(open_blob(r, number, blob, bytes, size, error));
    }
    return TSR_OK;
}
