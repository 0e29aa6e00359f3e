/* An adaptive binary range coder whose probabilities are mixed from those of several contexts. FORMAT.md 4.10.4. */
#ifndef TSR_IO_FORMATS_STREAMS_JPEG_CODER_H
#define TSR_IO_FORMATS_STREAMS_JPEG_CODER_H

#include "stream.h"
#include "transform/hd.h"

enum {
    TSR_JPEG_MIXED = 3,         /* contexts of a bit */
    TSR_JPEG_SLOWEST = 100,     /* a context has learned as slowly as it may after so many bits */
    TSR_JPEG_WEIGHT = 23000,    /* of a context at first; 65536 is 1 */
    TSR_JPEG_LEAST_CHANCE = 32, /* of 65536 */
    TSR_JPEG_CODE_BYTES = 6,    /* of the interval that a coder holds */
    TSR_JPEG_BLOCK_BYTES = 8192 /* more than a block may take */
};

/* What is known of a bit in a context: the chance of a 1 as a part of 2^22, and below it the number of bits seen. */
typedef uint32_t tsr_jpeg_chance;

struct tsr_jpeg_tables {
    int16_t stretch[4096];
    uint16_t squash[4096];
    uint16_t rate[TSR_JPEG_SLOWEST + 1];
};

struct tsr_jpeg_coder {
    uint64_t low, range; /* the decoder's low is the code's value less the interval's beginning */
    const uint8_t *at, *end;
    unsigned past; /* bytes that the decoder took after the end, as zeros */
    struct tsr_bytes *out;
    const struct tsr_jpeg_tables *tables;
};

void tsr_jpeg_make_tables(struct tsr_jpeg_tables *tables);
void tsr_jpeg_start_encoder(struct tsr_jpeg_coder *coder, struct tsr_bytes *out);
void tsr_jpeg_start_decoder(struct tsr_jpeg_coder *coder, const uint8_t *bytes, size_t size);
/* The coder's output has TSR_JPEG_BLOCK_BYTES to spare whenever it is called. */
void tsr_jpeg_carry(struct tsr_jpeg_coder *coder);
void tsr_jpeg_finish_encoder(struct tsr_jpeg_coder *coder);
/* Whether more bytes were taken than any encoder leaves out. */
TSR_HD bool tsr_jpeg_is_past(const struct tsr_jpeg_coder *coder)
{
    return coder->past > TSR_JPEG_CODE_BYTES;
}

TSR_HD_INLINE unsigned tsr_jpeg_next_byte(struct tsr_jpeg_coder *c)
{
    if (c->at < c->end) return *c->at++;
    c->past++;
    return 0;
}

/* Codes a bit whose chance to be 1 is chance / 65536. Returns the bit. */
TSR_HD_INLINE unsigned tsr_jpeg_code(struct tsr_jpeg_coder *c, bool decode, unsigned bit, uint32_t chance)
{
    const uint64_t bound = (c->range >> 16) * chance;
    if (decode) bit = c->low < bound;
    const uint64_t keep = (uint64_t)bit - 1; /* all ones for a 0 */
    if (decode)
        c->low -= bound & keep;
    else
        c->low += bound & keep;
    c->range = bit ? bound : c->range - bound;
    if (c->range >> 32) return bit;
    c->range <<= 16;
    if (decode) {
        c->low = c->low << 16 | (uint64_t)tsr_jpeg_next_byte(c) << 8;
        c->low |= tsr_jpeg_next_byte(c);
        return bit;
    }
    if (c->low >> 48) tsr_jpeg_carry(c);
    uint8_t *out = c->out->bytes + c->out->size;
    out[0] = (uint8_t)(c->low >> 40);
    out[1] = (uint8_t)(c->low >> 32);
    c->out->size += 2;
    c->low = (c->low & 0xffffffffu) << 16;
    return bit;
}

TSR_HD_INLINE void tsr_jpeg_learn(const struct tsr_jpeg_tables *tables, tsr_jpeg_chance *chance, unsigned bit)
{
    const uint32_t now = *chance, seen = now & 1023;
    const int32_t away = (int32_t)((0u - bit) & 0x3fffff) - (int32_t)(now >> 10);
    const int32_t step = (away >> 4) * tables->rate[seen] >> 9; /* arithmetic */
    *chance = now + (uint32_t)step * 1024u + (seen < TSR_JPEG_SLOWEST);
}

/* Codes a bit in one context. */
TSR_HD_INLINE unsigned tsr_jpeg_code_one(struct tsr_jpeg_coder *c, bool decode, unsigned bit, tsr_jpeg_chance *chance)
{
    uint32_t p = *chance >> 16;
    p = p < TSR_JPEG_LEAST_CHANCE           ? TSR_JPEG_LEAST_CHANCE
        : p > 65536 - TSR_JPEG_LEAST_CHANCE ? 65536 - TSR_JPEG_LEAST_CHANCE
                                            : p;
    bit = tsr_jpeg_code(c, decode, bit, p);
    tsr_jpeg_learn(c->tables, chance, bit);
    return bit;
}

/* Codes a bit in three contexts, whose chances are mixed by weights, which learn, too. */
TSR_HD_INLINE unsigned tsr_jpeg_code_mixed(struct tsr_jpeg_coder *c, bool decode, unsigned bit,
                                           tsr_jpeg_chance *const chance[TSR_JPEG_MIXED], int32_t *weight)
{
    const struct tsr_jpeg_tables *tables = c->tables;
    int32_t stretched[TSR_JPEG_MIXED], sum = 0;
    for (int i = 0; i < TSR_JPEG_MIXED; i++) {
        stretched[i] = tables->stretch[*chance[i] >> 20];
        sum += stretched[i] * (weight[i] >> 2) >> 14; /* arithmetic */
    }
    sum = sum < -2047 ? -2047 : sum > 2047 ? 2047 : sum;
    const int32_t p = tables->squash[sum + 2048];
    bit = tsr_jpeg_code(c, decode, bit, (uint32_t)p);
    const int32_t error = ((int32_t)bit * 65535 - p) >> 2;
    for (int i = 0; i < TSR_JPEG_MIXED; i++) {
        tsr_jpeg_learn(tables, chance[i], bit);
        const int32_t next = weight[i] + (stretched[i] * error >> 13);
        weight[i] = next < -(1 << 19) ? -(1 << 19) : next > 1 << 19 ? 1 << 19 : next;
    }
    return bit;
}

#endif
