/* An adaptive range coder of symbols 0 .. 7, whose chances are the mean of those in four contexts;
 * and bits with a chance of their own.
 * JPEG.md 4. */
#ifndef TSR_IO_NODES_JPEG_JPEG_CODER_H
#define TSR_IO_NODES_JPEG_JPEG_CODER_H

#include <string.h>

#include "io/nodes/node.h"
#include "transform/hd.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

enum {
    TSR_JPEG_SYMBOLS = 8,
    TSR_JPEG_CONTEXTS = 4,       /* of a symbol */
    TSR_JPEG_SLOWEST = 63,       /* a context has learned as slowly as it may after so many symbols */
    TSR_JPEG_SLOWEST_BIT = 1200, /* of 65536: the slowest rate of a bit */
    TSR_JPEG_AHEAD = 16,         /* bytes that a decoder takes ahead at most */
    TSR_JPEG_BLOCK_BYTES = 2048  /* more than a block may take, of symbols or of raw bits */
};

/* What is known of a symbol in a context: over[i] / 65536 is the chance that it is above i; over[7] is the number of
 * symbols seen. */
struct tsr_jpeg_context {
    uint16_t over[TSR_JPEG_SYMBOLS];
};

/* The chance that a bit is 1, and how fast it learns, in 65536ths. */
struct tsr_jpeg_chance {
    uint16_t chance, rate;
};

/* By the number of symbols that a context has seen: its rate, for each place of over[]; what is added to it then. */
struct tsr_jpeg_rates {
    uint16_t step[TSR_JPEG_SLOWEST + 1][2][TSR_JPEG_SYMBOLS];
};

/* A string of bytes: symbols come from its beginning, raw bits from its end. Its address is given to no function that
 * is not inline, so that it can stay in registers. */
struct tsr_jpeg_coder {
    uint64_t window; /* encoder: the interval's beginning, of 16 + bits bits and a carry; decoder: the code less it, its
                        first bit in bit 63 */
    uint32_t range;  /* 2^15 .. 2^16 - 1 */
    int bits;        /* encoder: that wait before the range; decoder: in the window */
    uint64_t raw;    /* encoder: the latest bits; decoder: the next ones, from bit 0 on */
    int raw_bits;
    uint32_t past; /* bytes that the decoder took from beyond the ends, as zeros */
    uint8_t *out, *raw_out;
    const uint8_t *at, *raw_at, *begin, *end; /* the decoder's: where it goes on; all bytes */
    const struct tsr_jpeg_rates *rates;
};

void tsr_jpeg_make_rates(struct tsr_jpeg_rates *rates);
/* The encoder writes symbols to out, and raw bits to raw_out. The caller sees to it that there is room. */
void tsr_jpeg_start_encoder(struct tsr_jpeg_coder *coder);
void tsr_jpeg_start_decoder(struct tsr_jpeg_coder *coder, const uint8_t *bytes, size_t size);
/* Writes at most 8 bytes to each of both. */
void tsr_jpeg_finish_encoder(struct tsr_jpeg_coder *coder);
/* Adds 1 to the number whose last byte is at[-1]. */
void tsr_jpeg_carry(uint8_t *at);

/* Whether more bytes were taken than any encoder leaves out. */
TSR_HD bool tsr_jpeg_is_past(const struct tsr_jpeg_coder *coder)
{
    return coder->past > TSR_JPEG_AHEAD;
}

TSR_HD_INLINE int tsr_jpeg_lowest(uint32_t value)
{
#if defined(__GNUC__)
    return __builtin_ctz(value);
#else
    int n = 0;
    while (!(value >> n & 1)) n++;
    return n;
#endif
}

/* ---- Raw bits --------------------------------------------------------------------------------------------- */

/* After this, at least 32 bits are there. */
TSR_HD_INLINE void tsr_jpeg_take_raw(struct tsr_jpeg_coder *c)
{
    uint32_t word = 0;
    if (c->raw_bits >= 32) return;
    if (c->raw_at - c->begin >= 4) {
        const uint8_t *at = c->raw_at -= 4;
        word = (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | (uint32_t)at[3];
    } else {
        for (int i = 0; i < 4; i++) {
            if (c->raw_at > c->begin)
                word |= (uint32_t) * --c->raw_at << 8 * i;
            else
                c->past++;
        }
    }
    c->raw |= (uint64_t)word << c->raw_bits;
    c->raw_bits += 32;
}

/* Codes a number of at most 16 bits. */
TSR_HD_INLINE uint32_t tsr_jpeg_code_raw(struct tsr_jpeg_coder *c, bool decode, uint32_t value, int bits)
{
    if (decode) {
        tsr_jpeg_take_raw(c);
        value = (uint32_t)c->raw & ((1u << bits) - 1);
        c->raw >>= bits;
        c->raw_bits -= bits;
        return value;
    }
    c->raw |= (uint64_t)value << c->raw_bits;
    c->raw_bits += bits;
    if (c->raw_bits < 32) return value;
    for (int i = 0; i < 4; i++) c->raw_out[i] = (uint8_t)(c->raw >> 8 * i);
    c->raw_out += 4;
    c->raw >>= 32;
    c->raw_bits -= 32;
    return value;
}

/* ---- Symbols ---------------------------------------------------------------------------------------------- */

/* After this, at least 32 bits are there. */
TSR_HD_INLINE void tsr_jpeg_take(struct tsr_jpeg_coder *c)
{
    uint32_t word = 0;
    if (c->bits >= 32) return;
    if (c->end - c->at >= 4) {
        const uint8_t *at = c->at;
        word = (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | (uint32_t)at[3];
        c->at += 4;
    } else {
        for (int i = 3; i >= 0; i--) {
            if (c->at < c->end)
                word |= (uint32_t)*c->at++ << 8 * i;
            else
                c->past++;
        }
    }
    c->window |= (uint64_t)word << (32 - c->bits);
    c->bits += 32;
}

/* Writes 32 bits. */
TSR_HD_INLINE void tsr_jpeg_put_word(struct tsr_jpeg_coder *c)
{
    if (c->window >> (c->bits + 16)) tsr_jpeg_carry(c->out);
    const uint32_t word = (uint32_t)(c->window >> (c->bits - 16));
    for (int i = 0; i < 4; i++) c->out[i] = (uint8_t)(word >> (24 - 8 * i));
    c->out += 4;
    c->bits -= 32;
    c->window &= ((uint64_t)1 << (c->bits + 16)) - 1;
}

/* Narrows the interval to lower .. upper - 1 of its range. */
TSR_HD_INLINE void tsr_jpeg_narrow(struct tsr_jpeg_coder *c, bool decode, uint32_t lower, uint32_t upper)
{
    const int shift = 16 - tsr_bit_width(upper - lower);
    c->range = (upper - lower) << shift;
    if (decode) {
        c->window = (c->window - ((uint64_t)lower << 48)) << shift;
        c->bits -= shift;
        tsr_jpeg_take(c);
    } else {
        c->window = (c->window + lower) << shift;
        c->bits += shift;
        if (c->bits >= 32) tsr_jpeg_put_word(c);
    }
}

TSR_HD_INLINE int tsr_jpeg_code_bit(struct tsr_jpeg_coder *c, bool decode, int bit, struct tsr_jpeg_chance *chance)
{
    const uint32_t split = c->range * chance->chance >> 16, rate = chance->rate;
    if (decode) bit = c->window >> 48 < split;
    tsr_jpeg_narrow(c, decode, bit ? 0 : split, bit ? split : c->range);
    const uint32_t mask = bit ? 65535 : 0, away = chance->chance ^ mask, next = rate - (rate * rate >> 16);
    chance->chance = (uint16_t)((away - (away * rate >> 16)) ^ mask);
    chance->rate = (uint16_t)(next > TSR_JPEG_SLOWEST_BIT ? next : TSR_JPEG_SLOWEST_BIT);
    return bit;
}

#if defined(__SSE2__)

TSR_HD_INLINE __m128i tsr_jpeg_load(const struct tsr_jpeg_context *context)
{
    return _mm_loadu_si128((const __m128i *)(const void *)context);
}

/* rises: all ones where over[] is to rise, which is below the symbol. */
TSR_HD_INLINE void tsr_jpeg_learn(const struct tsr_jpeg_coder *c, struct tsr_jpeg_context *context, __m128i rises)
{
    const __m128i *step = (const __m128i *)(const void *)c->rates->step[context->over[7]];
    const __m128i away = _mm_xor_si128(tsr_jpeg_load(context), rises);
    const __m128i next = _mm_sub_epi16(away, _mm_mulhi_epu16(away, _mm_loadu_si128(step)));
    _mm_storeu_si128((__m128i *)(void *)context, _mm_add_epi16(_mm_xor_si128(next, rises), _mm_loadu_si128(step + 1)));
}

/* Codes a symbol by its chances in four contexts. */
TSR_HD_INLINE int tsr_jpeg_code_symbol(struct tsr_jpeg_coder *c, bool decode, int symbol,
                                       struct tsr_jpeg_context *const in[TSR_JPEG_CONTEXTS])
{
    static const uint16_t masks[16] = {65535, 65535, 65535, 65535, 65535, 65535, 65535, 65535};
    __m128i rises;
    uint16_t ends[TSR_JPEG_SYMBOLS + 1]; /* the upper end of each symbol's interval, its lower end one place further */
    const __m128i one = _mm_avg_epu16(tsr_jpeg_load(in[0]), tsr_jpeg_load(in[1]));
    const __m128i two = _mm_avg_epu16(tsr_jpeg_load(in[2]), tsr_jpeg_load(in[3]));
    const __m128i mean = _mm_and_si128(_mm_avg_epu16(one, two), _mm_setr_epi16(-1, -1, -1, -1, -1, -1, -1, 0));
    const __m128i lower = _mm_add_epi16(_mm_mulhi_epu16(mean, _mm_set1_epi16((short)(c->range - 8))),
                                        _mm_setr_epi16(7, 6, 5, 4, 3, 2, 1, 0));
    ends[0] = (uint16_t)c->range;
    _mm_storeu_si128((__m128i *)(void *)(ends + 1), lower);
    if (decode) {
        const __m128i at = _mm_set1_epi16((short)(c->window >> 48));
        const __m128i not_above = _mm_cmpeq_epi16(_mm_subs_epu16(lower, at), _mm_setzero_si128());
        symbol = tsr_jpeg_lowest((uint32_t)_mm_movemask_epi8(not_above)) >> 1;
        rises = _mm_andnot_si128(not_above, _mm_set1_epi16(-1));
    } else {
        rises = _mm_loadu_si128((const __m128i *)(const void *)(masks + 8 - symbol));
    }
    tsr_jpeg_narrow(c, decode, ends[symbol + 1], ends[symbol]);
    for (int i = 0; i < TSR_JPEG_CONTEXTS; i++) tsr_jpeg_learn(c, in[i], rises);
    return symbol;
}

#else

TSR_HD_INLINE void tsr_jpeg_learn(const struct tsr_jpeg_coder *c, struct tsr_jpeg_context *context, int symbol)
{
    const unsigned seen = context->over[7];
    for (int i = 0; i < TSR_JPEG_SYMBOLS - 1; i++) {
        const uint32_t away = i < symbol ? 65535u - context->over[i] : context->over[i];
        const uint32_t next = away - (away * c->rates->step[seen][0][i] >> 16);
        context->over[i] = (uint16_t)(i < symbol ? 65535u - next : next);
    }
    context->over[7] = (uint16_t)(seen + (seen < TSR_JPEG_SLOWEST));
}

/* Codes a symbol by its chances in four contexts. */
TSR_HD_INLINE int tsr_jpeg_code_symbol(struct tsr_jpeg_coder *c, bool decode, int symbol,
                                       struct tsr_jpeg_context *const in[TSR_JPEG_CONTEXTS])
{
    uint32_t ends[TSR_JPEG_SYMBOLS + 1] = {c->range};
    for (int i = 0; i < TSR_JPEG_SYMBOLS - 1; i++) {
        const uint32_t one = ((uint32_t)in[0]->over[i] + in[1]->over[i] + 1) >> 1;
        const uint32_t two = ((uint32_t)in[2]->over[i] + in[3]->over[i] + 1) >> 1;
        ends[i + 1] =
            (((one + two + 1) >> 1) * (c->range - TSR_JPEG_SYMBOLS) >> 16) + (uint32_t)(TSR_JPEG_SYMBOLS - 1 - i);
    }
    if (decode)
        for (symbol = 0; ends[symbol + 1] > c->window >> 48;) symbol++;
    tsr_jpeg_narrow(c, decode, ends[symbol + 1], ends[symbol]);
    for (int i = 0; i < TSR_JPEG_CONTEXTS; i++) tsr_jpeg_learn(c, in[i], symbol);
    return symbol;
}

#endif

#endif
