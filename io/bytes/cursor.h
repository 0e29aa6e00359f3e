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

/* Writes a number that may be negative as a varint: its sign is the lowest bit. Returns its bytes. */
size_t tsr_put_signed(uint8_t *out, int64_t value);

/* Reading: a cursor that turns bad instead of passing its end. A bad cursor gives 0 and NULL. */
struct tsr_cursor {
    const uint8_t *bytes;
    size_t size, at;
    bool bad;
};

uint8_t tsr_get_u8(struct tsr_cursor *cursor);
uint64_t tsr_get_varint(struct tsr_cursor *cursor);
int64_t tsr_get_signed(struct tsr_cursor *cursor);
const uint8_t *tsr_get_bytes(struct tsr_cursor *cursor, uint64_t size); /* NULL: fewer bytes are left */
/* As many bytes as the number before them says. *size 0 if the cursor turns bad. */
const uint8_t *tsr_get_list(struct tsr_cursor *cursor, size_t *size);
uint32_t tsr_read_u32(const uint8_t *bytes);
uint64_t tsr_read_u64(const uint8_t *bytes);

/* Numbers of other formats, most significant byte first. */
static inline unsigned tsr_read_u16_be(const uint8_t *bytes)
{
    return (unsigned)bytes[0] << 8 | bytes[1];
}
static inline uint32_t tsr_read_u32_be(const uint8_t *bytes)
{
    return (uint32_t)tsr_read_u16_be(bytes) << 16 | tsr_read_u16_be(bytes + 2);
}
static inline uint64_t tsr_read_u64_be(const uint8_t *bytes)
{
    return (uint64_t)tsr_read_u32_be(bytes) << 32 | tsr_read_u32_be(bytes + 4);
}
static inline void tsr_put_u32_be(uint8_t *out, uint32_t value)
{
    for (int i = 0; i < 4; i++) out[i] = (uint8_t)(value >> (24 - 8 * i));
}
static inline void tsr_put_u64_be(uint8_t *out, uint64_t value)
{
    tsr_put_u32_be(out, (uint32_t)(value >> 32));
    tsr_put_u32_be(out + 4, (uint32_t)value);
}

#endif
