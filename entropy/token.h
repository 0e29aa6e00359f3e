/* Tokens: a value as a symbol of a small alphabet and raw bits. FORMAT.md section 7.4.
 *
 * Values below 16 are symbols of their own; above, the symbol says the exponent and the next two bits, and the
 * rest follows raw. */
#ifndef TSR_ENTROPY_TOKEN_H
#define TSR_ENTROPY_TOKEN_H

#include "transform/hd.h"

struct tsr_token {
    uint16_t symbol;
    uint8_t raw_bits;
    uint32_t raw;
};

enum {
    TSR_TOKENS_16_BITS = 16 + 12 * 4, /* symbols for values below 2^16 */
    TSR_TOKENS_24_BITS = 16 + 20 * 4  /* for values below 2^24 */
};

/* The symbol alone, both cases worked out: which one it is cannot be foreseen. */
TSR_HD int tsr_token_symbol(uint32_t value)
{
    int exponent = tsr_floor_log2(value | 16u);
    int coarse = 16 + (exponent - 4) * 4 + (int)(value >> (exponent - 2)) - 4;
    return value < 16 ? (int)value : coarse;
}

/* Raw bits that follow a symbol. */
TSR_HD int tsr_token_raw_bits(int symbol)
{
    return symbol < 16 ? 0 : ((symbol - 16) >> 2) + 2;
}

TSR_HD struct tsr_token tsr_token(uint32_t value)
{
    struct tsr_token token;
    token.symbol = (uint16_t)tsr_token_symbol(value);
    token.raw_bits = (uint8_t)tsr_token_raw_bits(token.symbol);
    token.raw = value & ((1u << token.raw_bits) - 1u);
    return token;
}

TSR_HD uint32_t tsr_token_value(int symbol, uint32_t raw)
{
    if (symbol < 16) return (uint32_t)symbol;
    int raw_bits = tsr_token_raw_bits(symbol);
    return (uint32_t)(4 + ((symbol - 16) & 3)) << raw_bits | raw;
}

#endif
