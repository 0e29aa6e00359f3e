/* GROUND.md 5: the range coder. */
#ifndef REF_RANGE_H
#define REF_RANGE_H

#include "ref.h"

struct ref_chance {
    uint16_t z;
    uint8_t n;
};

struct ref_coder {
    struct ref_bytes b;
    uint32_t range, code;
    unsigned zeros; /* bytes that were read after the last one */
    bool bad;
};

static inline void ref_next_byte(struct ref_coder *c)
{
    if (ref_left(&c->b) == 0 && ++c->zeros > 4) c->bad = true;
    c->code = c->code << 8 | (ref_left(&c->b) > 0 ? (uint32_t)ref_number(&c->b, 1) : 0);
}

static inline void ref_narrow(struct ref_coder *c)
{
    for (; c->range < 1u << 24; c->range <<= 8) ref_next_byte(c);
}

static inline unsigned ref_bit(struct ref_coder *c, struct ref_chance *chance)
{
    static const uint8_t rates[17] = {1, 2, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 5, 5, 5, 5, 6};
    uint32_t bound = (c->range >> 16) * chance->z;
    unsigned value = c->code >= bound, r = rates[chance->n];
    if (chance->n < 16) chance->n++;
    if (value) {
        c->code -= bound;
        c->range -= bound;
        chance->z = (uint16_t)(chance->z - ((chance->z - 32) >> r));
    } else {
        c->range = bound;
        chance->z = (uint16_t)(chance->z + ((65504 - chance->z) >> r));
    }
    ref_narrow(c);
    return value;
}

static inline uint32_t ref_even(struct ref_coder *c, unsigned k)
{
    uint32_t value = 0;
    while (k-- > 0) {
        c->range >>= 1;
        unsigned one = c->code >= c->range;
        if (one) c->code -= c->range;
        value = value << 1 | one;
        ref_narrow(c);
    }
    return value;
}

static inline uint32_t ref_tree(struct ref_coder *c, struct ref_chance *t, unsigned k)
{
    uint32_t node = 1;
    for (unsigned i = 0; i < k; i++) node = 2 * node + ref_bit(c, &t[node]);
    return node - (1u << k);
}

/* number(). */
static inline int64_t ref_any_number(struct ref_coder *c, struct ref_chance *t)
{
    unsigned n = 0, f;
    while (n < 31 && ref_bit(c, &t[n])) n++;
    f = n < 2 ? n : 2;
    uint32_t top = ref_tree(c, t + 32 + 4 * n, f), low = ref_even(c, n - f);
    return ((int64_t)(1u << f) + top) * ((int64_t)1 << (n - f)) + low - 1;
}

#endif
