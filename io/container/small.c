/* Small files; see small.h. */
#include "small.h"

#include <stdlib.h>
#include <string.h>

#include "io/recipe/standard.h"

void tsr_small_free(struct tsr_small *small)
{
    if (small) tsr_bytes_free(&small->content);
    free(small);
}

enum tsr_status tsr_small_add(struct tsr_small *small, uint8_t type, const struct tsr_piece *pieces, int count,
                              size_t limit, bool *fits, struct tsr_error *error)
{
    size_t size = 0;
    *fits = small->count < TSR_SMALL_PARTS;
    for (int i = 0; i < count && *fits; i++) {
        *fits = pieces[i].size <= limit - small->content.size - size;
        size += pieces[i].size;
    }
    if (!*fits) return TSR_OK;
    small->content.limit = limit;
    for (int i = 0; i < count; i++) TSR_TRY(tsr_bytes_put(&small->content, pieces[i].bytes, pieces[i].size, error));
    small->type[small->count] = type;
    small->part_size[small->count++] = size;
    return TSR_OK;
}

uint64_t tsr_small_payload(const struct tsr_small *small)
{
    uint64_t bytes = 0;
    for (int i = 0; i < small->count; i++)
        if (!tsr_small_is_blob(small->type[i])) bytes += small->part_size[i];
    return bytes;
}

uint64_t tsr_small_bytes(const struct tsr_small *small)
{
    uint8_t varint[TSR_VARINT_LIMIT];
    uint64_t bytes = small->content.size;
    int last = small->count - 1; /* its size does not stand in the file */
    for (int i = 0; i < small->count; i++)
        if (small->type[i] / 2 == TSR_BLOB_SUFFIX) last = i;
    for (int i = 0; i < small->count; i++)
        if (i != last) bytes += tsr_put_varint(varint, small->part_size[i]);
    return bytes;
}

/* ---- Writing -------------------------------------------------------------------------------------------------- */

/* All before the contents of the parts: at most this many bytes. */
enum { HEAD_LIMIT = 16 + TSR_HEADER_LIMIT + TSR_PROOF_LIMIT + (1 + TSR_VARINT_LIMIT) * (TSR_SMALL_PARTS + 1) };

static size_t put_head(const struct tsr_small *small, const struct tsr_header *header, const struct tsr_proof *proof,
                       uint8_t *out)
{
    uint8_t body[TSR_HEADER_LIMIT];
    const size_t size = tsr_put_header(body, header) - TSR_ID_BYTES;
    memcpy(out, TSR_SIGNATURE, TSR_SIGNATURE_BYTES);
    size_t used = TSR_SIGNATURE_BYTES;
    out[used++] = TSR_SECTION_SMALL;
    used += tsr_put_varint(out + used, size);
    memcpy(out + used, body, TSR_ID_OFFSET);
    memcpy(out + used + TSR_ID_OFFSET, body + TSR_ID_OFFSET + TSR_ID_BYTES, size - TSR_ID_OFFSET);
    used += size;
    used += tsr_put_proof(out + used, proof, header);
    used += tsr_put_varint(out + used, (uint64_t)small->count);
    for (int i = 0; i < small->count; i++) out[used++] = small->type[i];
    for (int i = 0; i + 1 < small->count; i++) used += tsr_put_varint(out + used, small->part_size[i]);
    return used;
}

/* The standard recipe that says all of a file of so many bytes, -1: none does. *head: bytes of its piece's head, which
 * a brief file leaves out. The length of its header, which it does not have either, is the number of the recipe. */
static int standard_of(const struct tsr_small *small, const struct tsr_header *header, uint64_t original, size_t *head)
{
    uint8_t wanted[TSR_HEADER_LIMIT], body[TSR_HEADER_LIMIT];
    if (small->count != 1 || small->type[0] != 0 || small->content.size == 0) return -1;
    const int number = tsr_standard_recipe(small->content.bytes, small->content.size, original, head);
    if (number < 0) return -1;
    struct tsr_header usual = tsr_standard_header(number);
    usual.id = header->id;
    const size_t size = tsr_put_header(wanted, &usual);
    return tsr_put_header(body, header) == size && memcmp(body, wanted, size) == 0 ? number : -1;
}

static size_t put_brief_head(int number, const struct tsr_proof *proof, const struct tsr_header *header, uint8_t *out)
{
    memcpy(out, TSR_SIGNATURE, TSR_SIGNATURE_BYTES);
    size_t used = TSR_SIGNATURE_BYTES;
    out[used++] = TSR_SECTION_SMALL;
    out[used++] = (uint8_t)number;
    return used + tsr_put_proof(out + used, proof, header);
}

enum tsr_status tsr_small_write(const struct tsr_small *small, const struct tsr_header *header,
                                const struct tsr_proof *proof, struct tsr_output *output, struct tsr_error *error)
{
    struct tsr_header brief = *header;
    struct tsr_proof short_proof = *proof;
    uint8_t head[HEAD_LIMIT], check[TSR_CHECK_BYTES];
    struct tsr_hasher hasher;
    if (header->exact) short_proof.has_samples = false; /* the original's hash says more */
    tsr_note_proven_damage(&brief, proof);
    short_proof.damage[0] = '\0';
    size_t left_out = 0;
    const int number = standard_of(small, header, proof->original_size, &left_out);
    const bool is_brief = number >= 0;
    const uint8_t *const content = is_brief ? small->content.bytes + left_out : small->content.bytes;
    const size_t content_size = small->content.size - (is_brief ? left_out : 0);
    size_t size =
        is_brief ? put_brief_head(number, &short_proof, header, head) : put_head(small, &brief, &short_proof, head);
    while (!is_brief && size + small->content.size + sizeof check > proof->original_size + TSR_SMALL_EXCESS &&
           !tsr_has_frames(header) && tsr_shorten_header(&brief))
        size = put_head(small, &brief, &short_proof, head);
    tsr_hasher_init(&hasher);
    tsr_hasher_add(&hasher, head, size);
    tsr_hasher_add(&hasher, content, content_size);
    tsr_put_u64(check, tsr_hasher_result64(&hasher));
    TSR_TRY(tsr_output_write(output, head, size, error));
    TSR_TRY(tsr_output_write(output, content, content_size, error));
    return tsr_output_write(output, check, sizeof check, error);
}

/* ---- Reading -------------------------------------------------------------------------------------------------- */

static enum tsr_status fail(struct tsr_error *error)
{
    return tsr_fail_at(error, TSR_ERROR_CORRUPT, TSR_SIGNATURE_BYTES, "the small file does not hold what it lists");
}

/* *standard: if it is not -1, the file has no header and no parts, but the content of a piece. */
static enum tsr_status get_header(struct tsr_cursor *c, struct tsr_header *header, int *standard,
                                  struct tsr_error *error)
{
    uint8_t body[TSR_HEADER_LIMIT] = {0};
    const uint64_t size = tsr_get_varint(c);
    *standard = !c->bad && size < TSR_STANDARD_RECIPES ? (int)size : -1;
    if (*standard >= 0) {
        *header = tsr_standard_header(*standard);
        return TSR_OK;
    }
    const uint8_t *const bytes =
        size >= TSR_ID_OFFSET && size <= sizeof body - TSR_ID_BYTES ? tsr_get_bytes(c, (size_t)size) : NULL;
    if (!bytes) return fail(error);
    memcpy(body, bytes, TSR_ID_OFFSET);
    memcpy(body + TSR_ID_OFFSET + TSR_ID_BYTES, bytes + TSR_ID_OFFSET, (size_t)size - TSR_ID_OFFSET);
    TSR_TRY(tsr_get_header(body, (size_t)size + TSR_ID_BYTES, header, error));
    return tsr_is_series(header) ? fail(error) : TSR_OK;
}

/* Lists the parts, whose contents stay where they are: those of the last part end where the check begins. */
static bool get_parts(struct tsr_cursor *c, struct tsr_small *small)
{
    const uint64_t count = tsr_get_varint(c);
    const uint8_t *const types = count <= TSR_SMALL_PARTS ? tsr_get_bytes(c, (size_t)count) : NULL;
    if (!types) return false;
    small->count = (int)count;
    uint64_t sum = 0;
    for (int i = 0; i < small->count; i++) {
        const bool is_last = i + 1 == small->count;
        const uint64_t left = c->size - c->at, size = is_last ? left - sum : tsr_get_varint(c);
        if (c->bad || sum > left || size > left - sum) return false;
        small->type[i] = types[i];
        small->part_size[i] = (size_t)size;
        sum += size;
    }
    return sum == c->size - c->at;
}

static enum tsr_status put_blob_part(struct tsr_container_writer *w, uint8_t type, struct tsr_cursor part,
                                     struct tsr_error *error)
{
    const bool is_known = type >= TSR_SMALL_KNOWN, is_raw = type % 2 == 0 && !is_known;
    const enum tsr_blob blob = is_known ? TSR_BLOB_PREFIX : (enum tsr_blob)(type / 2);
    const enum tsr_blob_method method = is_known ? (enum tsr_blob_method)(TSR_BLOB_ZSTD_KNOWN + type - TSR_SMALL_KNOWN)
                                        : is_raw ? TSR_BLOB_RAW
                                                 : TSR_BLOB_ZSTD;
    const uint64_t size = is_raw ? part.size : tsr_get_varint(&part);
    const struct tsr_piece stored = {part.bytes + part.at, part.size - part.at};
    if (part.bad) return fail(error);
    return tsr_container_put_stored(w, blob, method, size, stored, error);
}

static enum tsr_status put_part(struct tsr_container_writer *w, uint8_t type, struct tsr_cursor part, bool *in_frame,
                                struct tsr_error *error)
{
    const struct tsr_piece piece = {part.bytes, part.size};
    uint64_t distance;
    if (tsr_small_is_blob(type)) {
        *in_frame = false;
        return put_blob_part(w, type, part, error);
    }
    if (type == TSR_SECTION_TILE) return *in_frame ? tsr_container_put_tile(w, &piece, 1, error) : fail(error);
    *in_frame = type != TSR_SECTION_UNIT && type != TSR_SECTION_EQUAL;
    if (type == TSR_SECTION_EQUAL) return tsr_container_put_runs(w, part.bytes, part.size, error);
    if (type == TSR_SECTION_UNIT) return tsr_container_put_unit(w, part.bytes, part.size, error);
    if (type == TSR_SECTION_FRAME) return tsr_container_put_frame(w, part.bytes, part.size, error);
    distance = tsr_get_varint(&part);
    if (type != TSR_SECTION_LIKE || part.bad || part.at != part.size || distance > TSR_LIKE_LIMIT) return fail(error);
    return tsr_container_put_frame_like(w, (uint32_t)distance, error);
}

static enum tsr_status put_parts(struct tsr_container_writer *w, const struct tsr_small *small, const uint8_t *bytes,
                                 const struct tsr_proof *proof, struct tsr_error *error)
{
    bool in_frame = false;
    for (int i = 0; i < small->count; i++) {
        const struct tsr_cursor part = {bytes, small->part_size[i], 0, false};
        TSR_TRY(put_part(w, small->type[i], part, &in_frame, error));
        bytes += small->part_size[i];
    }
    return tsr_container_end(w, proof, error);
}

/* The one blob of a brief file: the piece's head and content. */
static enum tsr_status put_brief_part(struct tsr_container_writer *w, int standard, const struct tsr_cursor *c,
                                      const struct tsr_proof *proof, struct tsr_error *error)
{
    const size_t content = c->size - c->at;
    uint8_t *const bytes = malloc(TSR_PIECE_HEAD_LIMIT + content);
    if (!bytes) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for a small file");
    const size_t head = tsr_put_standard_head(standard, content, proof->original_size, bytes);
    memcpy(bytes + head, c->bytes + c->at, content);
    const struct tsr_cursor part = {bytes, head + content, 0, false};
    enum tsr_status status = put_blob_part(w, 0, part, error);
    if (status == TSR_OK) status = tsr_container_end(w, proof, error);
    free(bytes);
    return status;
}

bool tsr_small_is_whole(const uint8_t *bytes, size_t size)
{
    return size >= TSR_SIGNATURE_BYTES + 1 + TSR_CHECK_BYTES &&
           tsr_hash64_of(bytes, size - TSR_CHECK_BYTES) == tsr_read_u64(bytes + size - TSR_CHECK_BYTES);
}

enum tsr_status tsr_small_expand(const uint8_t *bytes, size_t size, struct tsr_output **expanded, uint64_t *payload,
                                 struct tsr_error *error)
{
    struct tsr_cursor c = {bytes, size - TSR_CHECK_BYTES, TSR_SIGNATURE_BYTES + 1, false};
    struct tsr_header header;
    struct tsr_proof proof;
    struct tsr_small small = {0};
    struct tsr_container_writer *w = NULL;
    int standard = -1;
    *expanded = NULL;
    if (!tsr_small_is_whole(bytes, size))
        return tsr_fail_at(error, TSR_ERROR_CORRUPT, TSR_SIGNATURE_BYTES, "the small file is damaged");
    TSR_TRY(get_header(&c, &header, &standard, error));
    if (!tsr_take_proof(&c, &header, !header.exact, &proof) || (standard < 0 && !get_parts(&c, &small)))
        return fail(error);
    *payload = tsr_small_payload(&small);
    struct tsr_output *const output = tsr_output_to_memory();
    if (!output) return tsr_fail(error, TSR_ERROR_LIMIT, "no memory for a small file");
    enum tsr_status status = tsr_container_begin(output, &header, &w, error);
    if (status == TSR_OK) tsr_container_stay_large(w);
    if (status == TSR_OK && standard >= 0)
        status = put_brief_part(w, standard, &c, &proof, error);
    else if (status == TSR_OK)
        status = put_parts(w, &small, bytes + c.at, &proof, error);
    tsr_container_writer_free(w);
    if (status == TSR_OK)
        *expanded = output;
    else
        tsr_output_close(output);
    return status;
}
