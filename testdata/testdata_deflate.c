#include "testdata_deflate.h"

#include <stdlib.h>
#include <string.h>

enum {
    STORED_LIMIT = 65535,
    MATCH_LEAST = 3,
    MATCH_MOST = 258,
    REACH = 32768 - 262, /* the farthest match of zlib */
    HASH_SIZE = 1 << 15,
    /* zlib's level 1 */
    CHAIN_LIMIT = 4,
    NICE_LENGTH = 8,
    INSERT_LIMIT = 4,
    END_OF_BLOCK = 256,
    LONG_INPUT = 1 << 20,
    LONG_BLOCK = 16383 /* tokens of a block of long inputs, as zlib has them */
};

/* Bits fill a byte from its least significant bit. */
struct bits {
    struct bytes *out;
    uint32_t pending;
    int count;
};

static void put_bits(struct bits *b, uint32_t value, int count)
{
    b->pending |= value << b->count;
    for (b->count += count; b->count >= 8; b->count -= 8) {
        bytes_put_u8(b->out, b->pending & 0xff);
        b->pending >>= 8;
    }
}

/* Huffman codes start with their most significant bit. */
static void put_code(struct bits *b, uint32_t code, int count)
{
    for (int i = count - 1; i >= 0; i--) put_bits(b, code >> i & 1, 1);
}

/* The fixed codes of literals, of the end and of lengths. */
static void put_symbol(struct bits *b, uint32_t symbol)
{
    if (symbol < 144)
        put_code(b, 0x30 + symbol, 8);
    else if (symbol < 256)
        put_code(b, 0x190 + symbol - 144, 9);
    else if (symbol < 280)
        put_code(b, symbol - 256, 7);
    else
        put_code(b, 0xc0 + symbol - 280, 8);
}

/* Lengths and distances are put into classes. Every 2^steps_log classes (4 or 2), the size of a class doubles. Turns a
 * value from 0 into class and rest. */
static void classify(uint32_t value, int steps_log, uint32_t *class, int *extra_bits, uint32_t *rest)
{
    int extra = 0;
    while (value >> extra >= (uint32_t)2 << steps_log) extra++;
    *class = ((uint32_t)extra << steps_log) + (value >> extra);
    *extra_bits = extra;
    *rest = value & ((1u << extra) - 1);
}

static void put_match(struct bits *b, uint32_t length, uint32_t distance)
{
    uint32_t class, rest;
    int extra;
    if (length == MATCH_MOST) {
        put_symbol(b, 285);
    } else {
        classify(length - MATCH_LEAST, 2, &class, &extra, &rest);
        put_symbol(b, 257 + class);
        put_bits(b, rest, extra);
    }
    classify(distance - 1, 1, &class, &extra, &rest);
    put_code(b, class, 5);
    put_bits(b, rest, extra);
}

/* The latest places of strings of three bytes. Place 0 also means that there is no place, as in zlib. */
struct matcher {
    const uint8_t *data;
    size_t size;
    size_t *earlier; /* for each place: the one before it with the same hash */
    size_t latest[HASH_SIZE];
};

/* Notes the string at a place, and returns the place before it with the same hash. */
static size_t insert(struct matcher *m, size_t at)
{
    const uint8_t *p = m->data + at;
    const uint32_t hash = ((uint32_t)p[0] << 10 ^ (uint32_t)p[1] << 5 ^ p[2]) % HASH_SIZE;
    m->earlier[at] = m->latest[hash];
    m->latest[hash] = at;
    return m->earlier[at];
}

static size_t longest_match(const struct matcher *m, size_t at, size_t candidate, size_t *distance)
{
    const size_t left = m->size - at, most = left < MATCH_MOST ? left : MATCH_MOST;
    const size_t nice = left < NICE_LENGTH ? left : NICE_LENGTH;
    size_t best = MATCH_LEAST - 1;
    for (int chain = 0; chain < CHAIN_LIMIT && candidate > 0 && at - candidate <= REACH; chain++) {
        size_t length = 0;
        while (length < most && m->data[candidate + length] == m->data[at + length]) length++;
        if (length > best) {
            best = length;
            *distance = at - candidate;
            if (length >= nice) break;
        }
        candidate = m->earlier[candidate];
    }
    return best;
}

/* A block of fixed codes. */
static void begin_block(struct bits *b, bool is_last)
{
    put_bits(b, is_last, 1);
    put_bits(b, 1, 2);
}

void deflate_fixed(struct bytes *out, const struct bytes *in)
{
    struct bits bits = {out, 0, 0};
    struct matcher *m = allocate(1, sizeof *m);
    m->data = in->data;
    m->size = in->size;
    m->earlier = allocate(in->size, sizeof *m->earlier);
    const bool is_long = in->size > LONG_INPUT;
    begin_block(&bits, !is_long);
    size_t tokens = 0;
    for (size_t at = 0; at < in->size;) {
        if (is_long && tokens++ == LONG_BLOCK) {
            put_symbol(&bits, END_OF_BLOCK);
            begin_block(&bits, false);
            tokens = 1;
        }
        size_t length = 0, distance = 0;
        if (in->size - at >= MATCH_LEAST) length = longest_match(m, at, insert(m, at), &distance);
        if (length < MATCH_LEAST) {
            put_symbol(&bits, in->data[at++]);
            continue;
        }
        put_match(&bits, (uint32_t)length, (uint32_t)distance);
        const size_t end = at + length;
        if (length <= INSERT_LIMIT && in->size - end >= MATCH_LEAST)
            for (size_t k = at + 1; k < end; k++) insert(m, k);
        at = end;
    }
    put_symbol(&bits, END_OF_BLOCK);
    if (is_long) {
        begin_block(&bits, true); /* an empty one */
        put_symbol(&bits, END_OF_BLOCK);
    }
    if (bits.count > 0) put_bits(&bits, 0, 8 - bits.count);
    free(m->earlier);
    free(m);
}

void deflate_stored(struct bytes *out, const struct bytes *in)
{
    size_t at = 0;
    do {
        const size_t left = in->size - at, size = left < STORED_LIMIT ? left : STORED_LIMIT;
        bytes_put_u8(out, size == left);
        bytes_put_u16(out, false, (unsigned)size);
        bytes_put_u16(out, false, ~(unsigned)size & 0xffff);
        bytes_put(out, in->data + at, size);
        at += size;
    } while (at < in->size);
}

void zlib_fixed(struct bytes *out, const struct bytes *in)
{
    uint32_t low = 1, high = 0; /* Adler-32 */
    for (size_t i = 0; i < in->size; i++) {
        low = (low + in->data[i]) % 65521;
        high = (high + low) % 65521;
    }
    bytes_put_u16(out, true, 0x7801);
    deflate_fixed(out, in);
    bytes_put_u32(out, true, high << 16 | low);
}
