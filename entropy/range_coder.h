/* A binary range coder whose chances adapt to the bits that they code. GROUND.md 5.
 *
 * io/bytes/range_bytes.h has a coder with the same chances and the same end, which grows its bytes; this one has a
 * fixed room. */
#ifndef TSR_ENTROPY_RANGE_CODER_H
#define TSR_ENTROPY_RANGE_CODER_H

#include "transform/hd.h"

enum { TSR_NUMBER_CHANCES = 160 }; /* of a number of any size */

/* How likely a bit is 0, in 1/65536, and how many bits it has coded, 16 at most. */
struct tsr_chance {
    uint16_t zero;
    uint8_t seen;
};

TSR_HD void tsr_init_chances(struct tsr_chance *chances, size_t count)
{
    const struct tsr_chance even = {32768, 0};
    for (size_t i = 0; i < count; i++) chances[i] = even;
}

TSR_HD void tsr_adapt_chance(struct tsr_chance *chance, uint32_t bit)
{
    /* r of 1, 2, 3, 3, 4, 4, 4, 4, 5, 5, ..., 5, 6: a digit each, the first one lowest */
    const int seen = chance->seen, r = seen < 16 ? (int)(0x5555555544443321u >> 4 * seen & 15) : 6;
    if (seen < 16) chance->seen = (uint8_t)(seen + 1);
    if (bit == 0)
        chance->zero = (uint16_t)(chance->zero + ((65504u - chance->zero) >> r));
    else
        chance->zero = (uint16_t)(chance->zero - ((chance->zero - 32u) >> r));
}

/* ---- Writing ---- */

struct tsr_range_writer {
    uint8_t *bytes;
    size_t size, used;
    uint64_t low;
    uint32_t range;
    size_t held;    /* bytes of 255 that a carry may still change, */
    uint8_t cache;  /* and the byte before them, */
    bool has_cache; /* if there is one */
    bool overflow;  /* the bytes would not fit */
};

TSR_HD struct tsr_range_writer tsr_range_writer(uint8_t *bytes, size_t size)
{
    struct tsr_range_writer w = {bytes, size, 0, 0, UINT32_MAX, 0, 0, false, false};
    return w;
}

TSR_HD void tsr_range_put_byte(struct tsr_range_writer *w, uint32_t byte)
{
    if (w->used == w->size) w->overflow = true;
    if (!w->overflow) w->bytes[w->used++] = (uint8_t)byte;
}

TSR_HD void tsr_range_shift(struct tsr_range_writer *w)
{
    if (w->low < 0xff000000u || w->low > UINT32_MAX) {
        const uint32_t carry = (uint32_t)(w->low >> 32);
        if (w->has_cache) tsr_range_put_byte(w, w->cache + carry);
        for (; w->held > 0; w->held--) tsr_range_put_byte(w, 0xff + carry);
        w->has_cache = true;
        w->cache = (uint8_t)(w->low >> 24);
    } else {
        w->held++;
    }
    w->low = (w->low & 0x00ffffff) << 8;
}

/* A bit whose chance to be 0 is zero, in 1/65536. */
TSR_HD void tsr_range_put(struct tsr_range_writer *w, uint32_t zero, uint32_t bit)
{
    const uint32_t bound = (w->range >> 16) * zero;
    if (bit == 0) {
        w->range = bound;
    } else {
        w->low += bound;
        w->range -= bound;
    }
    for (; w->range < 1u << 24; w->range <<= 8) tsr_range_shift(w);
}

TSR_HD void tsr_range_put_bit(struct tsr_range_writer *w, struct tsr_chance *chance, uint32_t bit)
{
    tsr_range_put(w, chance->zero, bit);
    tsr_adapt_chance(chance, bit);
}

TSR_HD void tsr_range_put_even(struct tsr_range_writer *w, uint32_t value, int bits)
{
    while (bits-- > 0) {
        w->range >>= 1;
        if (value >> bits & 1) w->low += w->range;
        for (; w->range < 1u << 24; w->range <<= 8) tsr_range_shift(w);
    }
}

/* value + 1 has n more bits after its first: n ones and a zero, then these; the first two of them have chances. value:
 * below 2^31 - 1. */
TSR_HD void tsr_range_put_number(struct tsr_range_writer *w, struct tsr_chance *chances, uint32_t value)
{
    int n = 0;
    while ((value + 1) >> n > 1) tsr_range_put_bit(w, &chances[n++], 1);
    tsr_range_put_bit(w, &chances[n], 0);
    const int first = n < 2 ? n : 2;
    uint32_t node = 1;
    for (int i = n - 1; i >= n - first; i--) {
        const uint32_t bit = (value + 1) >> i & 1;
        tsr_range_put_bit(w, &chances[32 + 4 * n + (int)node], bit);
        node = node << 1 | bit;
    }
    tsr_range_put_even(w, (value + 1) & ((1u << (n - first)) - 1), n - first);
}

/* The number of low .. low + range - 1 that has most zeros at its end. */
TSR_HD uint64_t tsr_range_last(uint64_t low, uint32_t range)
{
    for (int bits = 32; bits > 0; bits--) {
        const uint64_t step = (uint64_t)1 << bits, value = (low + step - 1) / step * step;
        if (value - low < range) return value;
    }
    return low;
}

/* Ends the string with that number, without these zeros. Returns its bytes. */
TSR_HD size_t tsr_range_end(struct tsr_range_writer *w)
{
    w->low = tsr_range_last(w->low, w->range);
    for (int i = 0; i < 5; i++) tsr_range_shift(w);
    for (int i = 0; i < 4 && w->used > 0 && w->bytes[w->used - 1] == 0; i++) w->used--;
    return w->used;
}

/* ---- Reading ---- */

struct tsr_range_reader {
    const uint8_t *bytes;
    size_t size, at;
    uint32_t range, code;
    bool overrun; /* more than four bytes were read after the last one, as zeros */
};

TSR_HD uint32_t tsr_range_next_byte(struct tsr_range_reader *r)
{
    if (r->at < r->size) return r->bytes[r->at++];
    if (r->at++ - r->size >= 4) r->overrun = true;
    return 0;
}

TSR_HD struct tsr_range_reader tsr_range_reader(const uint8_t *bytes, size_t size)
{
    struct tsr_range_reader r = {bytes, size, 0, UINT32_MAX, 0, false};
    for (int i = 0; i < 4; i++) r.code = r.code << 8 | tsr_range_next_byte(&r);
    return r;
}

TSR_HD uint32_t tsr_range_get(struct tsr_range_reader *r, uint32_t zero)
{
    const uint32_t bound = (r->range >> 16) * zero, bit = r->code >= bound;
    if (bit == 0) {
        r->range = bound;
    } else {
        r->code -= bound;
        r->range -= bound;
    }
    for (; r->range < 1u << 24; r->range <<= 8) r->code = r->code << 8 | tsr_range_next_byte(r);
    return bit;
}

TSR_HD uint32_t tsr_range_get_bit(struct tsr_range_reader *r, struct tsr_chance *chance)
{
    const uint32_t bit = tsr_range_get(r, chance->zero);
    tsr_adapt_chance(chance, bit);
    return bit;
}

TSR_HD uint32_t tsr_range_get_even(struct tsr_range_reader *r, int bits)
{
    uint32_t value = 0;
    while (bits-- > 0) {
        r->range >>= 1;
        const uint32_t bit = r->code >= r->range;
        if (bit) r->code -= r->range;
        value = value << 1 | bit;
        for (; r->range < 1u << 24; r->range <<= 8) r->code = r->code << 8 | tsr_range_next_byte(r);
    }
    return value;
}

TSR_HD uint32_t tsr_range_get_number(struct tsr_range_reader *r, struct tsr_chance *chances)
{
    int n = 0;
    while (n < 31 && tsr_range_get_bit(r, &chances[n])) n++;
    const int first = n < 2 ? n : 2;
    uint32_t node = 1;
    for (int i = 0; i < first; i++) node = node << 1 | tsr_range_get_bit(r, &chances[32 + 4 * n + (int)node]);
    return (node << (n - first) | tsr_range_get_even(r, n - first)) - 1;
}

#endif
