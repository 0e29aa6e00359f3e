/* Numbers in bytes; see cursor.h. */
#include "cursor.h"

void tsr_put_u32(uint8_t *out, uint32_t value)
{
    for (int i = 0; i < 4; i++) out[i] = (uint8_t)(value >> 8 * i);
}

void tsr_put_u64(uint8_t *out, uint64_t value)
{
    for (int i = 0; i < 8; i++) out[i] = (uint8_t)(value >> 8 * i);
}

size_t tsr_put_signed(uint8_t *out, int64_t value)
{
    return tsr_put_varint(out, (uint64_t)value << 1 ^ (value < 0 ? UINT64_MAX : 0));
}

const uint8_t *tsr_get_bytes(struct tsr_cursor *cursor, uint64_t size)
{
    if (cursor->bad || size > cursor->size - cursor->at) {
        cursor->bad = true;
        return NULL;
    }
    cursor->at += (size_t)size;
    return cursor->bytes + cursor->at - (size_t)size;
}

const uint8_t *tsr_get_list(struct tsr_cursor *cursor, size_t *size)
{
    const uint64_t count = tsr_get_varint(cursor);
    const uint8_t *const bytes = tsr_get_bytes(cursor, count);
    *size = bytes ? (size_t)count : 0;
    return bytes;
}

uint8_t tsr_get_u8(struct tsr_cursor *cursor)
{
    const uint8_t *byte = tsr_get_bytes(cursor, 1);
    return byte ? *byte : 0;
}

uint64_t tsr_get_varint(struct tsr_cursor *cursor)
{
    uint64_t value;
    if (!cursor->bad && tsr_read_varint(cursor->bytes, cursor->size, &cursor->at, TSR_VARINT_LIMIT, &value))
        return value;
    cursor->bad = true;
    return 0;
}

int64_t tsr_get_signed(struct tsr_cursor *cursor)
{
    const uint64_t value = tsr_get_varint(cursor);
    return (int64_t)(value >> 1 ^ (value & 1 ? UINT64_MAX : 0));
}

uint32_t tsr_read_u32(const uint8_t *bytes)
{
    return (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 24;
}

uint64_t tsr_read_u64(const uint8_t *bytes)
{
    return (uint64_t)tsr_read_u32(bytes) | (uint64_t)tsr_read_u32(bytes + 4) << 32;
}
