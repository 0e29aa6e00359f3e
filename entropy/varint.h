/* Numbers in whole bytes: 7 bits a byte, the lowest first; the highest bit of a byte tells that another one follows.
 * GROUND.md 2. */
#ifndef TSR_ENTROPY_VARINT_H
#define TSR_ENTROPY_VARINT_H

#include "transform/hd.h"

enum { TSR_VARINT_LIMIT = 10 }; /* bytes */

/* Returns the number's bytes. */
TSR_HD size_t tsr_put_varint(uint8_t *out, uint64_t value)
{
    size_t used = 0;
    for (; value >= 128; value >>= 7) out[used++] = (uint8_t)(value | 128);
    out[used++] = (uint8_t)value;
    return used;
}

/* Reads the number at *at, which moves to its end. False if the bytes end before it does, or if it has more than most
 * bytes or more than 64 bits. */
TSR_HD bool tsr_read_varint(const uint8_t *bytes, size_t size, size_t *at, int most, uint64_t *value)
{
    *value = 0;
    for (int shift = 0; shift < 7 * most; shift += 7) {
        if (*at == size) return false;
        const uint8_t byte = bytes[(*at)++];
        if (shift == 63 && byte > 1) return false;
        *value |= (uint64_t)(byte & 127) << shift;
        if (byte < 128) return true;
    }
    return false;
}

#endif
