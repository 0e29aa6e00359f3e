/* Mixed predictions of bits. GROUND.md 6 and 7. */
#include "mix.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum {
    SEEN_LIMIT = 60,
    WEIGHT_LIMIT = 1 << 20,
    RATE = 24,
    MATCH = 4,     /* bytes of which the last place is known */
    LOOK_BACK = 32 /* bytes of a match that are looked at */
};

#define SPREAD 0x85ebca6bu
#define NODE_STEP (0x9e3779b1u * SPREAD)

/* 65536 / (1 + e^(-d / 256)) for d = -2048, -1920, ... 2048 */
static const uint16_t curve[33] = {22,    36,    60,    98,    162,   267,   439,   720,   1179,  1921,  3108,
                                   4971,  7812,  11955, 17625, 24743, 32768, 40793, 47911, 53581, 57724, 60565,
                                   62428, 63615, 64357, 64816, 65097, 65269, 65374, 65438, 65476, 65500, 65514};

static int32_t squash(int32_t d)
{
    if (d > 2047) d = 2047;
    if (d < -2047) d = -2047;
    const int32_t at = d + 2048, i = at >> 7, w = at & 127;
    return (curve[i] * (128 - w) + curve[i + 1] * w) >> 7;
}

static size_t slot_bytes(int contexts)
{
    return (size_t)contexts * TSR_MIX_SLOTS * sizeof(struct tsr_mix_slot);
}

struct tsr_mix *tsr_mix_create(int contexts, const int32_t weights[TSR_MIX_SETS])
{
    struct tsr_mix *const mix = calloc(1, sizeof *mix + slot_bytes(contexts));
    if (!mix) return NULL;
    mix->most_contexts = contexts;
    /* 2^32 / (2c + 3), rounded up: what is divided is below 2^17, so that the quotient is exact */
    for (uint32_t c = 0; c <= SEEN_LIMIT; c++) mix->reciprocal[c] = UINT32_MAX / (2 * c + 3) + 1;
    for (int c = 0; c <= SEEN_LIMIT; c++)
        mix->seen_class[c] = (uint8_t)(c < 4 ? c : c < 6 ? 4 : c < 12 ? 5 : c < 30 ? 6 : 7);
    int32_t d = -2047;
    for (int32_t p = 0; p < 4096; p++) {
        while (d < 2047 && squash(d) < 16 * p + 8) d++;
        mix->stretch[p] = (int16_t)d;
    }
    for (int set = 0; set < TSR_MIX_SETS; set++)
        for (int i = 0; i < TSR_MIX_INPUTS; i++)
            for (int seen = 0; seen < TSR_MIX_SEEN; seen++) mix->weight[set][i][seen] = weights[set];
    for (int i = 0; i < TSR_MIX_MATCHES; i++) mix->match[i].expected = -1;
    mix->matches = 1;
    return mix;
}

void tsr_mix_begin(struct tsr_mix *mix, const struct tsr_mix *origin)
{
    const bool is_near = mix->origin == origin && mix->bits <= TSR_MIX_NOTED;
    for (uint64_t b = 0; is_near && b < mix->bits; b++)
        for (int i = 0; i < mix->most_contexts; i++) {
            const size_t at = (size_t)i * TSR_MIX_SLOTS + mix->noted[b][i];
            mix->slot[at] = origin->slot[at];
        }
    if (!is_near) memcpy(mix->slot, origin->slot, slot_bytes(mix->most_contexts));
    memcpy(mix, origin, offsetof(struct tsr_mix, origin));
    mix->origin = origin;
    mix->bits = 0;
}

/* In both directions: what is left of the chance of the other bit becomes less. */
static inline struct tsr_mix_slot learned(const struct tsr_mix *mix, struct tsr_mix_slot slot, uint32_t bit)
{
    const uint32_t flip = bit ? 32767 : 32768, other = slot.chance ^ flip;
    const uint32_t step = (uint32_t)((uint64_t)(2 * other) * mix->reciprocal[slot.seen] >> 32);
    return (struct tsr_mix_slot){(uint16_t)((other - step) ^ flip), (uint16_t)(slot.seen + (slot.seen < SEEN_LIMIT))};
}

static inline int32_t moved(int32_t weight, int32_t input, int32_t miss)
{
    const int32_t next = weight + ((input * (miss >> 3) * RATE + (1 << 16)) >> 17);
    return next > WEIGHT_LIMIT ? WEIGHT_LIMIT : next < -WEIGHT_LIMIT ? -WEIGHT_LIMIT : next;
}

/* The opinion of a match. */
struct opinion {
    struct tsr_mix_slot *slot; /* NULL: it has none */
    uint32_t bit;
    int32_t input;
};

/* top: 2^bits of a symbol; left: bits of it that are not coded yet. */
static inline struct opinion opinion_of(struct tsr_mix *mix, int m, uint32_t node, uint32_t top, uint32_t left)
{
    const uint32_t expected = (uint32_t)mix->match[m].expected, length = mix->match[m].length;
    if (mix->match[m].expected < 0 || (expected + top) >> left != node) return (struct opinion){0};
    struct tsr_mix_slot *const slot = &mix->match_slot[m][mix->set][length < 16 ? length / 2 : length < 32 ? 8 : 9];
    const uint32_t bit = expected >> (left - 1) & 1;
    const int32_t input = mix->stretch[(slot->chance ^ 32768u) >> 4];
    return (struct opinion){slot, bit, bit ? input : -input};
}

/* Codes a bit. n and matches, the numbers of contexts and of matches, are known where this is compiled, for the usual
 * ones. context: whose slots lie anywhere, and are noted; or NULL: they lie in lines of the cache. */
static inline __attribute__((always_inline)) uint32_t code_bit(struct tsr_mix *mix, const uint32_t *context,
                                                               struct tsr_mix_slot *const *line, int n, int matches,
                                                               uint32_t node, uint32_t top, uint32_t left,
                                                               uint32_t value)
{
    struct tsr_mix_slot *slot[TSR_MIX_CONTEXTS], seen[TSR_MIX_CONTEXTS];
    int32_t input[TSR_MIX_CONTEXTS], *weight[TSR_MIX_CONTEXTS], was[TSR_MIX_CONTEXTS], sum = 0;
    struct opinion opinion[TSR_MIX_MATCHES];
    int32_t *weight_of_match[TSR_MIX_MATCHES];
    uint16_t *const noted = mix->noted[mix->bits++ % TSR_MIX_NOTED];
    for (int m = 0; m < matches; m++) {
        opinion[m] = opinion_of(mix, m, node, top, left);
        weight_of_match[m] = &mix->weight[mix->set][TSR_MIX_CONTEXTS + m][0];
        sum += (opinion[m].input * (*weight_of_match[m] >> 2)) >> 7;
    }
    for (int i = 0; i < n; i++) {
        if (context) noted[i] = (uint16_t)((context[i] + node * NODE_STEP) >> 16);
        slot[i] = context ? &mix->slot[i * TSR_MIX_SLOTS + noted[i]] : line[i] + node;
        seen[i] = *slot[i];
        input[i] = mix->stretch[(seen[i].chance ^ 32768u) >> 4];
        weight[i] = &mix->weight[mix->set][i][mix->seen_class[seen[i].seen]];
        was[i] = *weight[i];
        sum += (input[i] * (was[i] >> 2)) >> 7;
    }
    for (int i = 0; context && i < n; i++) { /* the slots of both bits that may come */
        const struct tsr_mix_slot *const slots = &mix->slot[i * TSR_MIX_SLOTS];
        __builtin_prefetch(slots + ((context[i] + 2 * node * NODE_STEP) >> 16), 1);
        __builtin_prefetch(slots + ((context[i] + (2 * node + 1) * NODE_STEP) >> 16), 1);
    }
    const int32_t chance = squash(sum >> 7);
    const uint32_t bit = mix->is_learning ? value : tsr_range_bit_of(&mix->range, 65536 - (uint32_t)chance, value);
    const int32_t miss = (bit ? 65536 : 0) - chance;
    for (int i = 0; i < n; i++) *weight[i] = moved(was[i], input[i], miss);
    for (int i = 0; i < n; i++) *slot[i] = learned(mix, seen[i], bit);
    for (int m = 0; m < matches; m++) {
        *weight_of_match[m] = moved(*weight_of_match[m], opinion[m].input, miss);
        if (opinion[m].slot) *opinion[m].slot = learned(mix, *opinion[m].slot, bit == opinion[m].bit);
    }
    return bit;
}

static inline __attribute__((always_inline)) uint32_t code_byte(struct tsr_mix *mix, int n, int matches, uint32_t value)
{
    uint32_t node = 1, context[TSR_MIX_CONTEXTS];
    for (int i = 0; i < n; i++) context[i] = mix->context[i] * SPREAD;
    for (uint32_t left = 8; left > 0; left--)
        node = node << 1 | code_bit(mix, context, NULL, n, matches, node, 1 << 8, left, value >> (left - 1) & 1);
    return node - (1 << 8);
}

uint32_t tsr_mix_symbol(struct tsr_mix *mix, uint32_t value, int32_t expected, uint32_t length)
{
    enum { BITS = 4, TOP = 1 << BITS };
    struct tsr_mix_slot *line[TSR_MIX_FEW];
    uint32_t node = 1;
    mix->bits |= 2 * TSR_MIX_NOTED; /* more than have noted slots: these are not */
    for (int i = 0; i < TSR_MIX_FEW; i++) {
        line[i] = &mix->slot[(size_t)i * TSR_MIX_SLOTS + (mix->context[i] * SPREAD >> 16) / TOP * TOP];
        __builtin_prefetch(line[i], 1);
    }
    mix->match[0] = (struct tsr_mix_match){1, length}; /* a one, of one bit */
    if (expected >= 0 && code_bit(mix, NULL, line, TSR_MIX_FEW, 1, 0, 0, 1, value == (uint32_t)expected))
        node = TOP | (uint32_t)expected;
    mix->match[0] = (struct tsr_mix_match){-1, 0};
    for (uint32_t left = BITS; node < TOP; left--)
        node = node << 1 | code_bit(mix, NULL, line, TSR_MIX_FEW, 0, node, TOP, left, value >> (left - 1) & 1);
    return node - TOP;
}

uint32_t tsr_mix_byte(struct tsr_mix *mix, uint32_t value)
{
    switch (mix->contexts) {
    case 6:
        return code_byte(mix, 6, 1, value); /* of rows: most bytes of a small PNG */
    case 8:
        return code_byte(mix, 8, 1, value);
    case 12:
        return code_byte(mix, 12, 2, value); /* of elements */
    default:
        return code_byte(mix, mix->contexts, mix->matches, value);
    }
}

/* ---- Contexts ---------------------------------------------------------------------------------------------- */

uint32_t tsr_mix_hash(uint32_t h, uint32_t v)
{
    h = (h ^ v) * 0x2c1b3c6du + 0x297a2d39u;
    return h ^ h >> 15;
}

uint32_t tsr_mix_hash_of(uint32_t h, const uint8_t *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++) h = tsr_mix_hash(h, bytes[i]);
    return h;
}

void tsr_mix_remember(struct tsr_mix *mix, struct tsr_mix_history *h, uint32_t byte)
{
    struct tsr_mix_match *const match = &mix->match[0];
    h->bytes[h->size++] = (uint8_t)byte;
    if (match->expected == (int32_t)byte)
        match->length++;
    else
        match->length = 0;
    if (match->length > 0) h->from++;
    if (h->size >= MATCH) {
        uint32_t *const place = &h->place[tsr_mix_hash_of(0, h->bytes + h->size - MATCH, MATCH) >> 18];
        if (match->length == 0 && *place > 0) {
            h->from = *place;
            while (match->length < LOOK_BACK && match->length < h->from &&
                   h->bytes[h->from - match->length - 1] == h->bytes[h->size - match->length - 1])
                match->length++;
            if (match->length < MATCH) match->length = 0;
        }
        *place = h->size;
    }
    match->expected = match->length > 0 ? h->bytes[h->from] : -1;
}

void tsr_mix_history_begin(struct tsr_mix_history *h, const struct tsr_mix_history *origin)
{
    memcpy(h->bytes, origin->bytes, origin->size);
    h->size = origin->size;
    h->from = origin->from;
    memcpy(h->place, origin->place, sizeof h->place);
}
