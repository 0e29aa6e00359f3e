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
    TSR_SECTION_HEAD_LIMIT = 1 + TSR_VARINT_LIMIT,
    TSR_SECTION_LEAST = 1 + 1 + TSR_CHECK_BYTES
};

#define TSR_SIGNATURE "\x89TSR"
#define TSR_END_MARK "RST\x89"

enum tsr_section_type {
    TSR_SECTION_HEADER = 'H',
    TSR_SECTION_BLOB = 'B',
    TSR_SECTION_FRAME = 'F',
    TSR_SECTION_TILE = 'T',
    TSR_SECTION_PROOF = 'P',
    TSR_SECTION_INDEX = 'I',
    TSR_SECTION_COPY = 'C'
};

enum tsr_blob_method { TSR_BLOB_RAW = 0, TSR_BLOB_ZSTD = 1 };

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

/* A proof's body, at most 128 bytes. */
size_t tsr_put_proof(uint8_t *out, const struct tsr_proof *proof, const struct tsr_header *header);
bool tsr_get_proof(const uint8_t *body, size_t size, const struct tsr_header *header, struct tsr_proof *proof);

#endif
