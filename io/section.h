/* Sections and the numbers in them, as writer and reader share them. FORMAT.md sections 2 and 3. */
#ifndef TSR_IO_SECTION_H
#define TSR_IO_SECTION_H

#include "container.h"

enum {
    TSR_SIGNATURE_BYTES = 4,
    TSR_CHECK_BYTES = 8,
    TSR_VARINT_LIMIT = 10,
    TSR_FOOTER_BYTES = 24,
    TSR_HEADER_LIMIT = 1024, /* bytes of a header's body */
    TSR_PROOF_LIMIT = 128,
    TSR_MEMBER_LIMIT = 2 * TSR_VARINT_LIMIT + TSR_NAME_LIMIT + TSR_HEADER_LIMIT + TSR_PROOF_LIMIT,
    TSR_SECTION_HEAD_LIMIT = 1 + TSR_VARINT_LIMIT,
    TSR_SECTION_LEAST = 1 + 1 + TSR_CHECK_BYTES
};

#define TSR_SIGNATURE "\x89TSR"
#define TSR_END_MARK "RST\x89"

enum tsr_section_type {
    TSR_SECTION_HEADER = 'H',
    TSR_SECTION_BLOB = 'B',
    TSR_SECTION_FRAME = 'F',
    TSR_SECTION_LIKE = 'G',
    TSR_SECTION_TILE = 'T',
    TSR_SECTION_PROOF = 'P',
    TSR_SECTION_MEMBER = 'M',
    TSR_SECTION_INDEX = 'I',
    TSR_SECTION_COPY = 'C'
};

enum tsr_blob_method { TSR_BLOB_RAW = 0, TSR_BLOB_ZSTD = 1, TSR_BLOB_ZSTD_AFTER = 2 };

/* Appends to a body of fixed size; the callers' bodies are large enough by construction. */
size_t tsr_put_varint(uint8_t *out, uint64_t value);
void tsr_put_u32(uint8_t *out, uint32_t value);
void tsr_put_u64(uint8_t *out, uint64_t value);

/* Reading: a cursor that turns bad instead of passing its end. */
struct tsr_cursor {
    const uint8_t *bytes;
    size_t size, at;
    bool bad;
};

uint8_t tsr_get_u8(struct tsr_cursor *cursor);
uint64_t tsr_get_varint(struct tsr_cursor *cursor);
const uint8_t *tsr_get_bytes(struct tsr_cursor *cursor, size_t size); /* NULL if there are not so many */
uint32_t tsr_read_u32(const uint8_t *bytes);
uint64_t tsr_read_u64(const uint8_t *bytes);

/* A header's body. put returns its bytes, at most TSR_HEADER_LIMIT. */
size_t tsr_put_header(uint8_t *out, const struct tsr_header *header);
enum tsr_status tsr_get_header(const uint8_t *body, size_t size, struct tsr_header *header, struct tsr_error *error);

/* A proof's body, at most TSR_PROOF_LIMIT bytes. */
size_t tsr_put_proof(uint8_t *out, const struct tsr_proof *proof, const struct tsr_header *header);
bool tsr_get_proof(const uint8_t *body, size_t size, const struct tsr_header *header, struct tsr_proof *proof);

/* A member's body, at most TSR_MEMBER_LIMIT bytes: name, header, proof. get wants room for TSR_NAME_LIMIT + 1 bytes of
 * name and ends it with a zero. Errors: those of tsr_get_header, TSR_ERROR_CORRUPT. */
size_t tsr_put_member(uint8_t *out, const char *name, const struct tsr_header *header, const struct tsr_proof *proof);
enum tsr_status tsr_get_member(const uint8_t *body, size_t size, char *name, struct tsr_header *header,
                               struct tsr_proof *proof, struct tsr_error *error);

#endif
