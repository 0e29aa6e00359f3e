/* Variable-length coding of bytes with a given code, as all VLE kernels do it. The string is contiguous, most
 * significant bit first (GROUND.md 3). Zeros fill its last byte. */
#ifndef TSR_KERNELS_PAPERS_VLE_BYTE_CODE_H
#define TSR_KERNELS_PAPERS_VLE_BYTE_CODE_H

#include "entropy/bits.h"

enum { TSR_BYTE_VALUES = 256, TSR_BYTE_CODE_LIMIT = 32 /* longest codeword */ };

/* Codewords of a prefix-free code. A codeword is the lowest length bits of bits. length is 1..32, or 0 if the byte does
 * not occur. */
struct tsr_byte_code {
    uint32_t bits[TSR_BYTE_VALUES];
    uint32_t length[TSR_BYTE_VALUES];
};

TSR_HD int tsr_byte_code_longest(const struct tsr_byte_code *code)
{
    uint32_t longest = 0;
    for (int s = 0; s < TSR_BYTE_VALUES; s++)
        if (code->length[s] > longest) longest = code->length[s];
    return (int)longest;
}

TSR_HD uint64_t tsr_byte_code_measure(const struct tsr_byte_code *code, const uint8_t *bytes, size_t count)
{
    uint64_t bits = 0;
    for (size_t i = 0; i < count; i++) bits += code->length[bytes[i]];
    return bits;
}

TSR_HD void tsr_byte_code_put(struct tsr_bit_writer *w, const struct tsr_byte_code *code, uint8_t byte)
{
    tsr_put_bits(w, code->bits[byte], (int)code->length[byte]);
}

#endif
