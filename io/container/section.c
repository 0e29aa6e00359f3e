/* Proofs, ids and members; see section.h. FORMAT.md 3.1, 3.4 and 3.7. */
#include "section.h"

#include <stdlib.h>
#include <string.h>

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

uint64_t tsr_header_end(size_t body_size)
{
    uint8_t length[TSR_VARINT_LIMIT];
    return TSR_SIGNATURE_BYTES + 1 + tsr_put_varint(length, body_size) + body_size + TSR_CHECK_BYTES;
}

/* Whether a proof may say what looked damaged: of a file that is read while it is written. */
static bool may_tell_damage(const struct tsr_header *header)
{
    return tsr_are_units(header) || tsr_has_inner(header);
}

size_t tsr_put_proof(uint8_t *out, const struct tsr_proof *proof, const struct tsr_header *header)
{
    size_t used = tsr_put_varint(out, proof->original_size);
    memcpy(out + used, proof->original.bytes, sizeof proof->original.bytes);
    used += sizeof proof->original.bytes;
    const size_t damage = may_tell_damage(header) ? strlen(proof->damage) : 0;
    memcpy(out + used, proof->damage, damage);
    if (!tsr_has_frames(header) || (header->exact && !proof->has_samples)) return used + damage;
    memcpy(out + used, proof->samples.bytes, sizeof proof->samples.bytes);
    used += sizeof proof->samples.bytes;
    if (header->coding.lossy) {
        used += tsr_put_varint(out + used, proof->max_error);
        used += tsr_put_varint(out + used, proof->squared_error);
        if (tsr_has_kept(header)) used += tsr_put_varint(out + used, proof->kept_samples);
        for (uint32_t w = 0; w < header->windows.count; w++) {
            used += tsr_put_varint(out + used, proof->window[w].samples);
            used += tsr_put_varint(out + used, proof->window[w].squared_error);
            used += tsr_put_varint(out + used, proof->window[w].max_error);
            used += tsr_put_varint(out + used, proof->window[w].ssim_loss);
        }
    }
    if (header->exact) return used;
    used += tsr_put_varint(out + used, proof->restored_size);
    memcpy(out + used, proof->restored.bytes, sizeof proof->restored.bytes);
    return used + sizeof proof->restored.bytes;
}

static void get_hash(struct tsr_cursor *c, struct tsr_hash128 *hash)
{
    const uint8_t *bytes = tsr_get_bytes(c, sizeof hash->bytes);
    if (bytes) memcpy(hash->bytes, bytes, sizeof hash->bytes);
}

/* Whether so many squares of at most this number, weighted or not, can have this sum. */
static bool is_sum_of_squares(uint64_t sum, uint64_t count, uint64_t largest)
{
    if (sum == 0) return count > 0 || largest == 0;
    return count > 0 && largest > 0 && (sum - 1) / (largest * largest) < count;
}

/* What a proof says of a loss. False: it cannot be. */
static bool take_loss(struct tsr_cursor *c, const struct tsr_header *header, struct tsr_proof *proof)
{
    const struct tsr_image *const image = &header->image;
    const uint64_t max_error = tsr_get_varint(c),
                   samples = (uint64_t)image->columns * image->rows * image->components * image->frames;
    if (max_error > UINT16_MAX) return false;
    proof->max_error = (uint32_t)max_error;
    proof->squared_error = tsr_get_varint(c);
    const uint32_t weight = header->least_weight ? header->least_weight : TSR_WHOLE_WEIGHT;
    const uint64_t least = tsr_weigh_squares(max_error * max_error, weight);
    if (proof->squared_error < least || (max_error == 0 && proof->squared_error > 0)) return false;
    if (tsr_has_kept(header)) proof->kept_samples = tsr_get_varint(c);
    if (proof->kept_samples > samples) return false;
    for (uint32_t w = 0; w < header->windows.count; w++) {
        const uint64_t inside = tsr_get_varint(c), squared_error = tsr_get_varint(c), largest = tsr_get_varint(c),
                       ssim_loss = tsr_get_varint(c);
        if (inside > samples || largest > max_error || !is_sum_of_squares(squared_error, inside, largest) ||
            ssim_loss > 2 * TSR_SSIM_ONE + 1 || (inside == 0 && ssim_loss > 0))
            return false;
        proof->window[w].samples = inside;
        proof->window[w].squared_error = squared_error;
        proof->window[w].max_error = (uint32_t)largest;
        proof->window[w].ssim_loss = (uint32_t)ssim_loss;
    }
    return true;
}

bool tsr_take_proof(struct tsr_cursor *c, const struct tsr_header *header, bool has_samples, struct tsr_proof *proof)
{
    memset(proof, 0, sizeof *proof);
    proof->original_size = tsr_get_varint(c);
    get_hash(c, &proof->original);
    if (!tsr_has_frames(header) || !has_samples) return !c->bad;
    proof->has_samples = true;
    get_hash(c, &proof->samples);
    if (header->coding.lossy && !take_loss(c, header, proof)) return false;
    if (!header->exact) {
        proof->restored_size = tsr_get_varint(c);
        get_hash(c, &proof->restored);
    }
    return !c->bad;
}

/* The rest of a proof. */
static void take_damage(struct tsr_cursor *c, struct tsr_proof *proof)
{
    const size_t size = c->size - c->at;
    if (size > TSR_DAMAGE_LIMIT) return;
    memcpy(proof->damage, tsr_get_bytes(c, size), size);
}

bool tsr_get_proof(const uint8_t *body, size_t size, const struct tsr_header *header, struct tsr_proof *proof)
{
    struct tsr_cursor c = {body, size, 0, false};
    const bool is_short = header->exact && tsr_take_proof(&c, header, false, proof);
    if (is_short && may_tell_damage(header)) take_damage(&c, proof);
    if (is_short && c.at == size) return true;
    if (may_tell_damage(header)) return false;
    c.at = 0;
    return tsr_take_proof(&c, header, true, proof) && c.at == size;
}

bool tsr_same_proof(const struct tsr_proof *a, const struct tsr_proof *b)
{
    return a->original_size == b->original_size && tsr_hash128_equal(&a->original, &b->original) &&
           (!a->has_samples || !b->has_samples || tsr_hash128_equal(&a->samples, &b->samples)) &&
           a->max_error == b->max_error && a->squared_error == b->squared_error && a->kept_samples == b->kept_samples &&
           memcmp(a->window, b->window, sizeof a->window) == 0 && a->restored_size == b->restored_size &&
           tsr_hash128_equal(&a->restored, &b->restored);
}

void tsr_parts_begin(struct tsr_parts_hash *parts)
{
    tsr_hasher_init(&parts->prefix);
    tsr_hasher_init(&parts->suffix);
    parts->size = 0;
}

void tsr_parts_add_blob(struct tsr_parts_hash *parts, enum tsr_blob blob, const void *bytes, size_t size)
{
    tsr_hasher_add(blob == TSR_BLOB_PREFIX ? &parts->prefix : &parts->suffix, bytes, size);
    parts->size += size;
}

void tsr_parts_end(struct tsr_parts_hash *parts, const struct tsr_header *header, const struct tsr_hash128 *samples,
                   uint64_t sample_bytes, struct tsr_proof *proof)
{
    const struct tsr_hash128 hashes[3] = {tsr_hasher_result128(&parts->prefix), *samples,
                                          tsr_hasher_result128(&parts->suffix)};
    enum { PLACES = 4 + 4 + 1 }; /* of columns, rows and bits allocated */
    uint8_t all[1 + sizeof hashes + PLACES + TSR_PARAMETERS_LIMIT] = {(uint8_t)header->recipe};
    size_t used = 1 + sizeof hashes;
    memcpy(all + 1, hashes, sizeof hashes);
    if (tsr_has_planes(header)) { /* they tell where samples stand in the file */
        tsr_put_u32(all + used, header->image.columns);
        tsr_put_u32(all + used + 4, header->image.rows);
        all[used + 8] = header->image.bits_allocated;
        memcpy(all + used + PLACES, header->parameters, header->parameter_count);
        used += PLACES + header->parameter_count;
    }
    proof->restored_size = parts->size + sample_bytes;
    proof->restored = tsr_hash128_of(all, used);
}

/* ---- Ids (FORMAT.md 3.1) --------------------------------------------------------------------------------- */

uint64_t tsr_header_hash(const uint8_t *body, size_t size)
{
    uint8_t nameless[TSR_HEADER_LIMIT];
    memcpy(nameless, body, size);
    memset(nameless + TSR_ID_OFFSET, 0, TSR_ID_BYTES);
    return tsr_hash64_of(nameless, size);
}

void tsr_id_begin(struct tsr_hasher *id, uint64_t header_hash)
{
    tsr_hasher_init(id);
    tsr_id_add(id, header_hash);
}

void tsr_id_add(struct tsr_hasher *id, uint64_t hash)
{
    uint8_t bytes[8];
    tsr_put_u64(bytes, hash);
    tsr_hasher_add(id, bytes, sizeof bytes);
}

/* ---- Members (FORMAT.md 3.7) ----------------------------------------------------------------------------- */

bool tsr_is_member_name(const char *name, size_t length)
{
    if (length < 1 || length > TSR_NAME_LIMIT) return false;
    for (size_t start = 0; start <= length;) {
        size_t end = start;
        while (end < length && name[end] != '/')
            if (name[end++] == '\0') return false;
        if (end == start) return false;
        if (end - start <= 2 && name[start] == '.' && name[end - 1] == '.') return false;
        start = end + 1;
    }
    return true;
}

size_t tsr_put_member(uint8_t *out, const char *name, const struct tsr_header *header, const struct tsr_proof *proof)
{
    const size_t length = strlen(name);
    uint8_t header_body[TSR_HEADER_LIMIT];
    const size_t header_size = tsr_put_header(header_body, header);
    size_t used = tsr_put_varint(out, length);
    memcpy(out + used, name, length);
    used += length;
    used += tsr_put_varint(out + used, header_size);
    memcpy(out + used, header_body, header_size);
    used += header_size;
    return used + tsr_put_proof(out + used, proof, header);
}

enum tsr_status tsr_get_member(const uint8_t *body, size_t size, struct tsr_member *member, struct tsr_error *error)
{
    struct tsr_cursor c = {body, size, 0, false};
    size_t length, header_size;
    const uint8_t *bytes = tsr_get_list(&c, &length);
    if (!bytes || !tsr_is_member_name((const char *)bytes, length))
        return tsr_fail(error, TSR_ERROR_CORRUPT, "its name is not valid in a series");
    memcpy(member->name, bytes, length);
    member->name[length] = '\0';
    const uint8_t *header = tsr_get_list(&c, &header_size);
    if (!header || header_size > TSR_HEADER_LIMIT) return tsr_fail(error, TSR_ERROR_CORRUPT, "its header is too long");
    TSR_TRY(tsr_get_header(header, header_size, &member->header, error));
    if (tsr_is_series(&member->header)) return tsr_fail(error, TSR_ERROR_CORRUPT, "it is a series itself");
    if (!tsr_get_proof(body + c.at, size - c.at, &member->header, &member->proof))
        return tsr_fail(error, TSR_ERROR_CORRUPT, "its proof of %zu bytes is not valid", size - c.at);
    tsr_note_proven_damage(&member->header, &member->proof);
    member->header_hash = tsr_header_hash(header, header_size);
    member->proof_hash = tsr_hash64_of(body + c.at, size - c.at);
    return TSR_OK;
}
