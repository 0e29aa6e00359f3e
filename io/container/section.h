/* Sections and the numbers in them: what writer and reader share. GROUND.md and FORMAT.md 3. */
#ifndef TSR_IO_CONTAINER_SECTION_H
#define TSR_IO_CONTAINER_SECTION_H

#include <string.h>

#include "container.h"
#include "io/bytes/cursor.h"

enum {
    TSR_SIGNATURE_BYTES = 4,
    TSR_CHECK_BYTES = 8,
    TSR_FOOTER_BYTES = 24,
    TSR_HEADER_LIMIT = 1024, /* bytes of a header's body */
    TSR_RECIPE_OFFSET = 2,   /* in a header's body */
    TSR_ID_OFFSET = 4,
    TSR_ID_BYTES = 8,
    TSR_PROOF_LIMIT = 288,
    TSR_MEMBER_LIMIT = 2 * TSR_VARINT_LIMIT + TSR_NAME_LIMIT + TSR_HEADER_LIMIT + TSR_PROOF_LIMIT,
    TSR_SECTION_HEAD_LIMIT = 1 + TSR_VARINT_LIMIT,
    TSR_SECTION_LEAST = 1 + 1 + TSR_CHECK_BYTES
};

#define TSR_SIGNATURE "\x89TSR"
#define TSR_END_MARK "RST\x89"

enum tsr_section_type {
    TSR_SECTION_HEADER = 'H',
    TSR_SECTION_BASE = 'L',
    TSR_SECTION_BLOB = 'B',
    TSR_SECTION_FRAME = 'F',
    TSR_SECTION_LIKE = 'G',
    TSR_SECTION_EQUAL = 'E',
    TSR_SECTION_TILE = 'T',
    TSR_SECTION_UNIT = 'U',
    TSR_SECTION_PROOF = 'P',
    TSR_SECTION_MEMBER = 'M',
    TSR_SECTION_TWIN = 'D',
    TSR_SECTION_SMALL = 'S',
    TSR_SECTION_INDEX = 'I',
    TSR_SECTION_COPY = 'C'
};

/* The seal: a section's check is the hash of its bytes plus the seal. The seal says that the section belongs to the
 * file or the member of this id, as number n. FORMAT.md 3. */
#define TSR_SEAL_STEP 0x9e3779b97f4a7c15u
static inline uint64_t tsr_seal(uint64_t id, uint64_t n)
{
    return id + n * TSR_SEAL_STEP;
}

/* The number that a seal has: n of tsr_seal, by the inverse of the step modulo 2^64. */
static inline uint64_t tsr_number_of_seal(uint64_t id, uint64_t seal)
{
    const uint64_t inverse = 0xf1de83e19937733du;
    _Static_assert(TSR_SEAL_STEP * 0xf1de83e19937733du == 1, "the inverse of the step");
    return (seal - id) * inverse;
}

/* Whether restoring needs no section of this type: a reader that does not know the type skips the section. */
static inline bool tsr_is_spare_type(uint8_t type)
{
    return type >= 'a' && type <= 'z';
}

/* Whether the type is a capital letter without a meaning yet, such as 'Z'. A file with such a section needs a later
 * reader. */
static inline bool tsr_is_unknown_type(uint8_t type)
{
    static const char known[] = "HLBFGETUPMDICS";
    return type >= 'A' && type <= 'Z' && !memchr(known, type, sizeof known - 1);
}

/* A header's body. put returns its bytes, at most TSR_HEADER_LIMIT. get skips items that need not be known. Errors:
 * TSR_ERROR_VERSION (something that must be known is unknown), TSR_ERROR_CORRUPT, TSR_ERROR_LIMIT. */
size_t tsr_put_header(uint8_t *out, const struct tsr_header *header);
enum tsr_status tsr_get_header(const uint8_t *body, size_t size, struct tsr_header *header, struct tsr_error *error);

/* Bytes from a file's start to the first section after its header. A damaged header has the same length as an intact
 * one. */
uint64_t tsr_header_end(size_t body_size);

/* Grows a buffer to size bytes; its content is lost. */
enum tsr_status tsr_grow_buffer(uint8_t **buffer, size_t *capacity, size_t size, struct tsr_error *error);

/* Cuts a header's reason to what its number says (FORMAT.md 3.1), or to nothing if that alone is no reason, or all of
 * it; and takes the sentence out of its damage. False: there was nothing to cut. */
bool tsr_shorten_header(struct tsr_header *header);

/* The items at the end of a header: FORMAT.md 3.9. put returns their bytes. get reads them up to the cursor's end; the
 * cursor turns bad where they are not valid. Errors: TSR_ERROR_VERSION (an item that must be known is unknown). */
bool tsr_has_items(const struct tsr_header *header);
bool tsr_has_kept(const struct tsr_header *header); /* ranges of values that loss does not change */
size_t tsr_put_items(uint8_t *out, const struct tsr_header *header);
enum tsr_status tsr_get_items(struct tsr_cursor *cursor, struct tsr_header *header, struct tsr_error *error);

/* The damage of a header that does not say what is damaged. */
extern const char tsr_some_damage[];

/* What a proof says of damage, the header says from now on. */
static inline void tsr_note_proven_damage(struct tsr_header *header, const struct tsr_proof *proof)
{
    if (proof->damage[0]) memcpy(header->damage, proof->damage, sizeof header->damage);
}

/* A proof's body, at most TSR_PROOF_LIMIT bytes. get returns false if the body is not valid. */
size_t tsr_put_proof(uint8_t *out, const struct tsr_proof *proof, const struct tsr_header *header);
bool tsr_get_proof(const uint8_t *body, size_t size, const struct tsr_header *header, struct tsr_proof *proof);
/* The same from a cursor. has_samples: the proof of frames has the hash of the samples. */
bool tsr_take_proof(struct tsr_cursor *cursor, const struct tsr_header *header, bool has_samples,
                    struct tsr_proof *proof);

/* A member's body, at most TSR_MEMBER_LIMIT bytes: name, header, proof. Errors of get: those of tsr_get_header,
 * TSR_ERROR_CORRUPT. */
struct tsr_member {
    char name[TSR_NAME_LIMIT + 1];
    struct tsr_header header;
    struct tsr_proof proof;
    uint64_t header_hash, proof_hash; /* set by get: the id begins and ends with them */
};
size_t tsr_put_member(uint8_t *out, const char *name, const struct tsr_header *header, const struct tsr_proof *proof);
enum tsr_status tsr_get_member(const uint8_t *body, size_t size, struct tsr_member *member, struct tsr_error *error);

/* The next run of equal frames; false: it is not valid. FORMAT.md 5.4. */
static inline bool tsr_get_equal_run(struct tsr_cursor *c, uint32_t *count, uint64_t *distance)
{
    const uint64_t frames = tsr_get_varint(c);
    *distance = tsr_get_varint(c);
    *count = frames <= TSR_EQUAL_LIMIT ? (uint32_t)frames : 0;
    return !c->bad && *count > 0 && *distance > 0;
}

/* Frames of all runs; 0: the runs are not valid. */
static inline uint32_t tsr_equal_frames(const uint8_t *runs, size_t size)
{
    struct tsr_cursor c = {runs, size, 0, false};
    uint32_t frames = 0, count;
    uint64_t distance;
    while (c.at < size && frames <= TSR_EQUAL_LIMIT) {
        if (!tsr_get_equal_run(&c, &count, &distance)) return 0;
        frames += count;
    }
    return frames <= TSR_EQUAL_LIMIT ? frames : 0;
}

/* The id of a file or a member, computed in steps: the hash of the header, the hashes of the sections in their order,
 * and for a member the hash of its proof. FORMAT.md 3.1. */
uint64_t tsr_header_hash(const uint8_t *body, size_t size); /* the id in the header counts as 0 */
void tsr_id_begin(struct tsr_hasher *id, uint64_t header_hash);
void tsr_id_add(struct tsr_hasher *id, uint64_t hash);

#endif
