/* Bit strings, most significant bit first: the writer and the checked reader. GROUND.md 3. */
#ifndef TSR_ENTROPY_BITS_H
#define TSR_ENTROPY_BITS_H

#include "transform/hd.h"

/* Writes into bytes[0 .. capacity-1]. Up to 31 bits wait in the low held_bits bits of held; 4 bytes at a time
 * leave it. A writer that would pass its capacity drops what does not fit and says so in overflow. */
struct tsr_bit_writer {
    uint8_t *bytes;
    size_t capacity;
    size_t used; /* whole bytes written */
    uint64_t held;
    int held_bits; /* 0..31 between calls */
    bool overflow;
};

TSR_HD struct tsr_bit_writer tsr_bit_writer(uint8_t *bytes, size_t capacity)
{
    struct tsr_bit_writer w;
    w.bytes = bytes;
    w.capacity = capacity;
    w.used = 0;
    w.held = 0;
    w.held_bits = 0;
    w.overflow = false;
    return w;
}

/* Appends the low count (0..32) bits of value, the highest of them first. */
TSR_HD_INLINE void tsr_put_bits(struct tsr_bit_writer *w, uint32_t value, int count)
{
    w->held = w->held << count | (value & (((uint64_t)1 << count) - 1u));
    w->held_bits += count;
    if (w->held_bits < 32) return;
    w->held_bits -= 32;
    if (w->capacity - w->used < 4) {
        w->overflow = true;
        return;
    }
    const uint32_t word = (uint32_t)(w->held >> w->held_bits);
    uint8_t *out = w->bytes + w->used;
    out[0] = (uint8_t)(word >> 24);
    out[1] = (uint8_t)(word >> 16);
    out[2] = (uint8_t)(word >> 8);
    out[3] = (uint8_t)word;
    w->used += 4;
}

/* Eight bytes, the first of them the highest: written out, so that gcc makes one store of it. */
TSR_HD_INLINE void tsr_store_word(uint8_t *bytes, uint64_t word)
{
    bytes[0] = (uint8_t)(word >> 56);
    bytes[1] = (uint8_t)(word >> 48);
    bytes[2] = (uint8_t)(word >> 40);
    bytes[3] = (uint8_t)(word >> 32);
    bytes[4] = (uint8_t)(word >> 24);
    bytes[5] = (uint8_t)(word >> 16);
    bytes[6] = (uint8_t)(word >> 8);
    bytes[7] = (uint8_t)word;
}

/* For writers of many short codes, joined before they are written: appends the low count (0..49) bits of value, of
 * which no higher one is set. What is held must be less than a byte, and is again; the capacity must leave 8 bytes. */
TSR_HD_INLINE void tsr_put_joined_bits(struct tsr_bit_writer *w, uint64_t value, int count)
{
    const uint64_t held = w->held << count | value;
    const int bits = w->held_bits + count;
    tsr_store_word(w->bytes + w->used, held << 1 << (63 - bits));
    w->used += (size_t)(bits >> 3);
    w->held = held;
    w->held_bits = bits & 7;
}

/* Writes what is held and fills the last byte with zeros; returns the string's length in bytes. */
TSR_HD size_t tsr_flush_bits(struct tsr_bit_writer *w)
{
    while (w->held_bits > 0) {
        if (w->used == w->capacity) {
            w->overflow = true;
            break;
        }
        const uint64_t last = w->held_bits >= 8 ? w->held >> (w->held_bits - 8) : w->held << (8 - w->held_bits);
        w->bytes[w->used++] = (uint8_t)last;
        w->held_bits -= w->held_bits >= 8 ? 8 : w->held_bits;
    }
    return w->used;
}

/* Reads bytes[0 .. size-1]. Past the end it reads zeros, and overrun tells so: a decoder that loops a bounded
 * number of times may check it once, at the end. */
struct tsr_bit_reader {
    const uint8_t *bytes;
    size_t size;
    size_t next;     /* first byte not yet in window */
    uint64_t window; /* the next bits, left-aligned */
    int window_bits; /* how many of them are real */
    bool overrun;
};

TSR_HD struct tsr_bit_reader tsr_bit_reader(const uint8_t *bytes, size_t size)
{
    struct tsr_bit_reader r;
    r.bytes = bytes;
    r.size = size;
    r.next = 0;
    r.window = 0;
    r.window_bits = 0;
    r.overrun = false;
    return r;
}

/* Eight bytes, the first of them the highest: written out, so that gcc makes one load of it. */
TSR_HD_INLINE uint64_t tsr_load_word(const uint8_t *bytes)
{
    return (uint64_t)bytes[0] << 56 | (uint64_t)bytes[1] << 48 | (uint64_t)bytes[2] << 40 | (uint64_t)bytes[3] << 32 |
           (uint64_t)bytes[4] << 24 | (uint64_t)bytes[5] << 16 | (uint64_t)bytes[6] << 8 | (uint64_t)bytes[7];
}

/* Afterwards the window has 56 bits or more, or all that are left. Bits of a byte that is not counted yet may stand
 * after the real ones: they are that byte's, so to add it again changes nothing. */
TSR_HD_INLINE void tsr_fill_window(struct tsr_bit_reader *r)
{
#if !defined(__CUDA_ARCH__)
    if (r->size - r->next >= 8) { /* eight bytes at once, of which as many count as there is room for */
        r->window |= tsr_load_word(r->bytes + r->next) >> (r->window_bits & 63);
        r->next += (size_t)((63 - r->window_bits) >> 3);
        r->window_bits |= 56;
        return;
    }
#endif
    while (r->window_bits <= 56 && r->next < r->size) {
        r->window |= (uint64_t)r->bytes[r->next++] << (56 - r->window_bits);
        r->window_bits += 8;
    }
}

/* For readers of many short codes: between two calls of tsr_fill_window at most 56 bits may be dropped unchecked; then
 * window_bits below 0 tells that the string had ended before. */
TSR_HD_INLINE void tsr_drop_bits(struct tsr_bit_reader *r, int count)
{
    r->window <<= count;
    r->window_bits -= count;
}

TSR_HD_INLINE bool tsr_dropped_too_much(struct tsr_bit_reader *r)
{
    r->overrun |= r->window_bits < 0;
    return r->overrun;
}

/* The next count (1..32) bits, not consumed. */
TSR_HD_INLINE uint32_t tsr_peek_bits(struct tsr_bit_reader *r, int count)
{
    if (r->window_bits < count) tsr_fill_window(r);
    return (uint32_t)(r->window >> (64 - count));
}

TSR_HD_INLINE void tsr_skip_bits(struct tsr_bit_reader *r, int count)
{
    if (r->window_bits < count) tsr_fill_window(r);
    if (r->window_bits < count) {
        r->overrun = true;
        r->window = 0;
        r->window_bits = 0;
        return;
    }
    r->window <<= count;
    r->window_bits -= count;
}

/* The next count (0..32) bits. */
TSR_HD_INLINE uint32_t tsr_get_bits(struct tsr_bit_reader *r, int count)
{
    if (count == 0) return 0;
    uint32_t value = tsr_peek_bits(r, count);
    tsr_skip_bits(r, count);
    return value;
}

/* Bits consumed so far. */
TSR_HD size_t tsr_bits_read(const struct tsr_bit_reader *r)
{
    return 8 * r->next - (size_t)r->window_bits;
}

/* True if all that is left is the zero padding of the last byte, and nothing was read past the end. */
TSR_HD bool tsr_bits_ended(const struct tsr_bit_reader *r)
{
    return !r->overrun && r->next == r->size && r->window_bits < 8 && r->window == 0;
}

/* ue(v): Exp-Golomb code of order 0 (H.264 9.1), value 0 .. 2^32 - 2. */
TSR_HD void tsr_put_ue(struct tsr_bit_writer *w, uint32_t value)
{
    assert(value != UINT32_MAX);
    int length = tsr_floor_log2(value + 1);
    tsr_put_bits(w, 0, length);
    tsr_put_bits(w, 1, 1);
    tsr_put_bits(w, value + 1, length);
}

/* Bits that it takes. */
TSR_HD uint32_t tsr_ue_bits(uint32_t value)
{
    return (uint32_t)(2 * tsr_floor_log2(value + 1) + 1);
}

/* A code of 32 or more leading zeros is not a value: it counts as overrun. */
TSR_HD uint32_t tsr_get_ue(struct tsr_bit_reader *r)
{
    const uint32_t head = tsr_peek_bits(r, 32); /* zeros stand after the end */
    if (head == 0) {
        r->overrun = true;
        return 0;
    }
    const int length = 31 - tsr_floor_log2(head);
    tsr_skip_bits(r, length + 1);
    return (1u << length) - 1u + tsr_get_bits(r, length);
}

#endif
