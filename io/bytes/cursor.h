/* Numbers in bytes, and a cursor that reads them. GROUND.md. */
#ifndef TSR_IO_BYTES_CURSOR_H
#define TSR_IO_BYTES_CURSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "entropy/varint.h"

/* Writes a number, least significant byte first. */
void tsr_put_u32(uint8_t *out, uint32_t value);
void tsr_put_u64(uint8_t *out, uint64_t value);

/* Reading: a cursor that turns bad instead of passing its end. A bad cursor gives 0 and NULL. */
struct tsr_cursor {
    const uint8_t *bytes;
    size_t size, at;
    bool bad;
};

uint8_t tsr_get_u8(struct tsr_cursor *cursor);
uint64_t tsr_get_varint(struct tsr_cursor *cursor);
const uint8_t *tsr_get_bytes(struct tsr_cursor *cursor, size_t size); /* NULL: fewer bytes are left */
uint32_t tsr_read_u32(const uint8_t *bytes);
uint64_t tsr_read_u64(const uint8_t *bytes);

#endif
