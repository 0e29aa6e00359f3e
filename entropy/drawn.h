/* Drawn planes: samples that repeat values. Each sample is first asked whether it is what followed the same neighbours
 * before, then whether it is one of its neighbours, and is coded by its value or residual if it is neither. DRAWN.md.
 *
 * One definition codes and decodes: way is a constant where it is called. */
#ifndef TSR_ENTROPY_DRAWN_H
#define TSR_ENTROPY_DRAWN_H

#include "range_coder.h"
#include "transform/predict/blend.h"
#include "transform/predict/median_edge.h"
#include "transform/predict/mix.h"
#include "transform/predict/places.h"
#include "transform/predict/residual.h"

enum {
    TSR_DRAWN_GROUP = 16, /* samples that may be the same as all around them */
    TSR_DRAWN_LEVELS = 3, /* of memory: near, wide, wider; of two values TSR_MIX_CHANCES */
    TSR_DRAWN_ROWS = 8,   /* a row and those above it that neighbours are in */
    TSR_DRAWN_LEFT = 8,   /* virtual samples beside a row, and behind it */
    TSR_DRAWN_RIGHT = 24,
    TSR_DRAWN_SLOT_BITS = 16,
    TSR_DRAWN_COUNT = 60, /* of a slot, at most */
    TSR_DRAWN_PATTERNS = 1 << 11,
    TSR_DRAWN_CANDIDATES = 6,
    TSR_DRAWN_HEIGHTS = 16,    /* of what is expected: bits, at most 15 */
    TSR_DRAWN_ERROR = 4095,    /* at most */
    TSR_DRAWN_VALUE_BITS = 10, /* the first ones of a value, which have chances */
    TSR_DRAWN_BLANK = 15,      /* rows that are counted, at most */
    TSR_DRAWN_BIT_SEEN = 41,   /* bits that a chance of two values counts */
};

/* How samples are coded that are neither remembered nor a neighbour. By blend: one or the other is asked for only where
 * its chance is at least 3/8, or 7/8. Planes of two values have a way of their own. */
enum tsr_drawn_kind {
    TSR_DRAWN_BY_VALUE,
    TSR_DRAWN_BY_RESIDUAL,
    TSR_DRAWN_BY_BLEND,
    TSR_DRAWN_BY_BLEND_ALONE,
    TSR_DRAWN_OF_TWO
};

/* What is done with a bit. Both: a string by residuals and one by values are written at once, which differ only where
 * other samples are coded. */
enum tsr_drawn_way {
    TSR_DRAWN_READS,
    TSR_DRAWN_WRITES,
    TSR_DRAWN_WRITES_BOTH,
    TSR_DRAWN_READS_BLEND,
    TSR_DRAWN_WRITES_BLEND,
    TSR_DRAWN_READS_TWO,
    TSR_DRAWN_WRITES_TWO
};

/* What followed some neighbours. */
struct tsr_drawn_slot {
    uint16_t value;
    uint8_t check, count;
    struct tsr_chance right; /* that it is the value again */
};

/* The same for two values. */
struct tsr_drawn_bit_slot {
    uint16_t zero; /* as of a chance */
    uint8_t seen, check;
};

/* Of residuals by blend. */
struct tsr_blend_chances {
    struct tsr_chance by_activity[TSR_BLEND_ACTIVITIES][TSR_NUMBER_CHANCES];
    struct tsr_chance by_height[TSR_BLEND_ACTIVITIES / 2 * TSR_DRAWN_HEIGHTS][TSR_NUMBER_CHANCES];
};

struct tsr_drawn_chances {
    struct tsr_chance flat[(TSR_DRAWN_BLANK + 1) * 4], flat_coarse[4];
    struct tsr_chance right[16 * TSR_DRAWN_LEVELS * 8 * 2];
    struct tsr_chance pattern[TSR_DRAWN_PATTERNS * 8 * 2], coarse[16 * 8 * 2 * 8], different[16 * 8 * 8 * 2];
    struct tsr_chance residual[16][TSR_NUMBER_CHANCES];
    struct tsr_chance value[1 << TSR_DRAWN_VALUE_BITS];
    union {
        struct tsr_chance value_after[1 << 16];
        struct tsr_blend_chances blend;
        struct tsr_mix_sets mix;
    };
};

struct tsr_drawn {
    int32_t width;
    uint32_t range;
    int value_bits, slot_bits;
    enum tsr_drawn_kind kind;
    uint32_t least;                /* chance at which a question is asked */
    uint32_t others;               /* samples that were coded by value, residual or blend */
    uint16_t *row[TSR_DRAWN_ROWS]; /* this one, and those above; with room before and behind */
    uint16_t *error[2];
    uint32_t blank;                                 /* rows right above that are flat, at most TSR_DRAWN_BLANK */
    uint32_t key[TSR_MIX_CHANCES][TSR_DRAWN_GROUP]; /* of the group at work, without the samples of this row */
    union {
        struct tsr_drawn_slot *slot[TSR_DRAWN_LEVELS];
        struct tsr_drawn_bit_slot *bit_slot[TSR_MIX_CHANCES];
    };
    struct tsr_drawn_chances *chances;
    struct tsr_blend blend;
    struct tsr_mix mix;
    struct tsr_range_writer writer, by_value; /* by_value: beside writer, which is by residual */
    struct tsr_range_reader reader;
};

TSR_HD void tsr_adapt_quick(struct tsr_chance *chance, uint32_t bit)
{
    tsr_adapt_quickly(&chance->zero, &chance->seen, TSR_QUICK_STEPS - 1, bit);
}

TSR_HD_INLINE bool tsr_drawn_reads(const enum tsr_drawn_way way)
{
    return way == TSR_DRAWN_READS || way == TSR_DRAWN_READS_BLEND || way == TSR_DRAWN_READS_TWO;
}

TSR_HD_INLINE bool tsr_drawn_blends(const enum tsr_drawn_way way)
{
    return way == TSR_DRAWN_READS_BLEND || way == TSR_DRAWN_WRITES_BLEND;
}

TSR_HD_INLINE bool tsr_drawn_is_of_two(const enum tsr_drawn_way way)
{
    return way == TSR_DRAWN_READS_TWO || way == TSR_DRAWN_WRITES_TWO;
}

TSR_HD_INLINE uint32_t tsr_drawn_bit(struct tsr_drawn *d, uint32_t zero, uint32_t bit, const enum tsr_drawn_way way)
{
    if (tsr_drawn_reads(way)) return tsr_range_get(&d->reader, zero);
    tsr_range_put(&d->writer, zero, bit);
    if (way == TSR_DRAWN_WRITES_BOTH) tsr_range_put(&d->by_value, zero, bit);
    return bit;
}

/* A bit by a chance that begins as a coarser one. */
TSR_HD_INLINE uint32_t tsr_drawn_fine_bit(struct tsr_drawn *d, struct tsr_chance *chance, struct tsr_chance *coarse,
                                          uint32_t bit, const enum tsr_drawn_way way)
{
    if (chance->seen == 0) chance->zero = coarse->zero;
    bit = tsr_drawn_bit(d, chance->zero, bit, way);
    tsr_adapt_quick(chance, bit);
    tsr_adapt_quick(coarse, bit);
    return bit;
}

/* A question that was not asked, as its chance was below d->least; the chances still follow what it would have been. */
struct tsr_drawn_unasked {
    struct tsr_chance *chance, *coarse;
    uint32_t value;
};
struct tsr_drawn_unasked_list {
    int count;
    struct tsr_drawn_unasked item[1 + TSR_DRAWN_CANDIDATES];
};

TSR_HD_INLINE void tsr_drawn_skip(struct tsr_drawn_unasked_list *list, struct tsr_chance *chance,
                                  struct tsr_chance *coarse, uint32_t value)
{
    const struct tsr_drawn_unasked item = {chance, coarse, value};
    list->item[list->count++] = item;
}

TSR_HD int tsr_drawn_slot_bits(int32_t width, int32_t height)
{
    const int bits = tsr_bit_width((uint32_t)width * (uint32_t)height) - 2;
    return bits < 8 ? 8 : bits > TSR_DRAWN_SLOT_BITS ? TSR_DRAWN_SLOT_BITS : bits;
}

/* Begins the chances of the kind, which is known. */
TSR_HD void tsr_drawn_begin_chances(struct tsr_drawn *d)
{
    struct tsr_drawn_chances *c = d->chances;
    if (d->kind == TSR_DRAWN_OF_TWO) {
        tsr_init_chances(c->flat, (size_t)(c->right - c->flat));
        tsr_mix_begin(&c->mix);
        return;
    }
    tsr_init_chances(c->flat, (size_t)(c->value_after - c->flat));
    if (d->kind == TSR_DRAWN_BY_BLEND || d->kind == TSR_DRAWN_BY_BLEND_ALONE) {
        d->least = d->kind == TSR_DRAWN_BY_BLEND ? 24576 : 57344;
        tsr_init_chances(c->value_after, sizeof c->blend / sizeof(struct tsr_chance));
    } else if (d->value_bits <= 8) {
        tsr_init_chances(c->value_after, (size_t)1 << 2 * d->value_bits);
    }
}

/* Adds places first to end - 1 to the keys of a group of samples, and keeps them as those of a level. */
TSR_HD_INLINE void tsr_drawn_level_keys(struct tsr_drawn *d, int32_t column, int level, int first, int end,
                                        uint32_t sum[TSR_DRAWN_GROUP])
{
    for (int i = first; i < end; i++) {
        const struct tsr_place p = tsr_places[i];
        const uint16_t *const from = d->row[p.up] + column + p.right;
        for (int k = 0; k < TSR_DRAWN_GROUP; k++) sum[k] += p.factor * from[k];
    }
    for (int k = 0; k < TSR_DRAWN_GROUP; k++) d->key[level][k] = sum[k];
}

/* The keys of a group of samples, without those of their own row, which come first in each level. */
TSR_HD_INLINE void tsr_drawn_keys(struct tsr_drawn *d, int32_t column, const enum tsr_drawn_way way)
{
    uint32_t sum[TSR_DRAWN_GROUP] = {0};
    const int two = tsr_drawn_is_of_two(way);
    if (two) tsr_drawn_level_keys(d, column, 0, 2, 5, sum);
    tsr_drawn_level_keys(d, column, two, two ? 5 : 2, 10, sum);
    tsr_drawn_level_keys(d, column, two + 1, 12, 20, sum);
    if (two) tsr_drawn_level_keys(d, column, 3, 20, 31, sum);
    tsr_drawn_level_keys(d, column, two ? 4 : 2, two ? 31 : 20, 42, sum);
    if (two) tsr_drawn_level_keys(d, column, 4, 44, 48, sum);
    if (two) tsr_drawn_level_keys(d, column, 5, 48, TSR_PLACES, sum);
}

TSR_HD_INLINE struct tsr_drawn_around tsr_drawn_around(const struct tsr_drawn *d, int32_t c)
{
    const uint16_t *const row = d->row[0] + c, *const above = d->row[1] + c;
    struct tsr_drawn_around a = {row[-1], above[0], above[-1], above[1], row[-2], d->row[2][c], 0};
    a.median = (uint32_t)tsr_median_edge((int32_t)a.w, (int32_t)a.n, (int32_t)a.nw);
    return a;
}

/* Bits of a value below 2^31, without a branch. */
TSR_HD uint32_t tsr_drawn_bits(uint32_t value)
{
    return (uint32_t)tsr_floor_log2(2 * value | 1);
}

TSR_HD uint32_t tsr_drawn_activity(const struct tsr_drawn *d, int32_t c)
{
    const uint16_t *const e = d->error[0] + c, *const f = d->error[1] + c;
    const uint32_t bits = tsr_drawn_bits(2u * e[-1] + 2u * f[0] + f[-1] + f[1] + e[-2]);
    return bits < 15 ? bits : 15;
}

/* Asks whether a sample is what followed its neighbours before. Returns false if nothing is known; else *value is that,
 * and *bit 0 if it is the sample. */
TSR_HD_INLINE bool tsr_drawn_remembered(struct tsr_drawn *d, struct tsr_drawn_slot *const slot[TSR_DRAWN_LEVELS],
                                        const bool known[TSR_DRAWN_LEVELS], struct tsr_drawn_around a, uint32_t sample,
                                        uint32_t *value, uint32_t *bit, struct tsr_drawn_unasked_list *unasked,
                                        const enum tsr_drawn_way way)
{
    int level = known[2] ? 2 : known[1] ? 1 : known[0] ? 0 : -1;
    if (level < 0) return false;
    if ((level == 2) & (slot[2]->count == 1) & known[1] & (slot[1]->count > 2)) level = 1;
    struct tsr_drawn_slot *const s = slot[level];
    const uint32_t v = s->value, count = s->count < 15u ? s->count : 15u;
    const uint32_t same = (uint32_t)(v == a.w) | (uint32_t)(v == a.n) << 1 |
                          (uint32_t)((v == a.nw) | (v == a.ne) | (v == a.ww) | (v == a.nn)) << 2;
    const uint32_t simple = (a.w == a.n) & (a.n == a.nw) & (a.nw == a.ne);
    struct tsr_chance *const general =
        &d->chances->right[((count * TSR_DRAWN_LEVELS + (uint32_t)level) * 8 + same) * 2 + simple];
    if (s->right.seen == 0) s->right.zero = general->zero;
    const uint32_t zero = s->right.seen < 2 ? general->zero : (3u * s->right.zero + general->zero) / 4;
    if (tsr_drawn_blends(way) && zero < d->least) {
        tsr_drawn_skip(unasked, general, &s->right, v);
        return false;
    }
    *value = v;
    *bit = tsr_drawn_bit(d, zero, sample != v, way);
    tsr_adapt_quick(general, *bit);
    tsr_adapt_quick(&s->right, *bit);
    return true;
}

/* Keeps what followed the neighbours. */
TSR_HD_INLINE void tsr_drawn_learn(struct tsr_drawn_slot *s, bool known, uint32_t check, uint32_t sample)
{
    if (!known) {
        *s = (struct tsr_drawn_slot){(uint16_t)sample, (uint8_t)check, 1, {32768, 0}};
    } else if (s->value == sample) {
        s->count = (uint8_t)(s->count + (s->count < TSR_DRAWN_COUNT));
    } else if (s->count > 4) {
        s->count = (uint8_t)(s->count / 4);
    } else {
        s->value = (uint16_t)sample;
        s->count = 1;
    }
}

/* Asks whether a sample, in column c, is one of its neighbours, of which it is not the one that was remembered. Returns
 * true if it is; *found is that. */
TSR_HD_INLINE bool tsr_drawn_neighbour(struct tsr_drawn *d, int32_t c, struct tsr_drawn_around a, bool remembers,
                                       uint32_t remembered, uint32_t sample, uint32_t *found,
                                       struct tsr_drawn_unasked_list *unasked, const enum tsr_drawn_way way)
{
    const uint32_t candidate[TSR_DRAWN_CANDIDATES] = {a.w, a.n, a.nw, a.ne, a.ww, a.nn};
    const struct tsr_drawn_equal e = tsr_drawn_equal(a);
    const bool differ = (e.above | (e.beside & 7)) == 0;
    const uint32_t activity = !differ ? 0 : tsr_drawn_blends(way) ? d->blend.activity / 2 : tsr_drawn_activity(d, c);
    struct tsr_drawn_chances *const chances = d->chances;
    for (uint32_t k = 0; e.first >> k > 0; k++) {
        const uint32_t v = candidate[k];
        if (((e.first >> k & 1) == 0) | (remembers & (v == remembered))) continue;
        const uint32_t bits = tsr_drawn_bits((uint32_t)tsr_abs((int32_t)v - (int32_t)a.median)),
                       far = bits < 5 ? bits : 5;
        struct tsr_chance *const chance = differ ? &chances->different[((activity * 8 + far) * 8 + k) * 2 + remembers]
                                                 : &chances->pattern[(e.pattern * 8 + k) * 2 + remembers];
        struct tsr_chance *const coarse = &chances->coarse[((e.beside * 8 + k) * 2 + remembers) * 8 + e.above];
        if (tsr_drawn_blends(way)) {
            if (chance->seen == 0) chance->zero = coarse->zero;
            if (chance->zero < d->least) {
                tsr_drawn_skip(unasked, chance, coarse, v);
                continue;
            }
        }
        *found = v;
        if (tsr_drawn_fine_bit(d, chance, coarse, sample != v, way) == 0) return true;
    }
    return false;
}

/* A bit of a value: by a chance, which may begin as a coarser one; by none if chance is NULL. */
TSR_HD_INLINE uint32_t tsr_drawn_value_bit(struct tsr_drawn *d, struct tsr_chance *chance, struct tsr_chance *coarse,
                                           uint32_t bit, const enum tsr_drawn_way way)
{
    struct tsr_range_writer *const writer = way == TSR_DRAWN_WRITES_BOTH ? &d->by_value : &d->writer;
    if (chance && coarse && chance->seen == 0) chance->zero = coarse->zero;
    if (!chance && tsr_drawn_reads(way))
        bit = tsr_range_get_even(&d->reader, 1);
    else if (!chance)
        tsr_range_put_even(writer, bit, 1);
    else if (tsr_drawn_reads(way))
        bit = tsr_range_get(&d->reader, chance->zero);
    else
        tsr_range_put(writer, chance->zero, bit);
    if (chance) tsr_adapt_quick(chance, bit);
    if (coarse) tsr_adapt_quick(coarse, bit);
    return bit;
}

/* A sample by its bits. */
TSR_HD_INLINE uint32_t tsr_drawn_value(struct tsr_drawn *d, uint32_t w, uint32_t sample, const enum tsr_drawn_way way)
{
    const int bits = d->value_bits;
    uint32_t node = 1;
    for (int i = bits - 1; i >= 0; i--) {
        const bool has_chance = bits - 1 - i < TSR_DRAWN_VALUE_BITS, is_fine = bits <= 8;
        struct tsr_chance *const of_node = has_chance ? &d->chances->value[node] : NULL;
        struct tsr_chance *const chance = is_fine ? &d->chances->value_after[w << bits | node] : of_node;
        node = node << 1 | tsr_drawn_value_bit(d, chance, is_fine ? of_node : NULL, sample >> i & 1, way);
    }
    return node - (1u << bits);
}

/* A sample by its residual; d->range where it is invalid. */
TSR_HD_INLINE uint32_t tsr_drawn_residual(struct tsr_drawn *d, int32_t c, struct tsr_drawn_around a, uint32_t sample,
                                          const enum tsr_drawn_way way)
{
    struct tsr_chance *const chances = d->chances->residual[tsr_drawn_activity(d, c)];
    if (!tsr_drawn_reads(way)) {
        tsr_range_put_number(&d->writer, chances,
                             tsr_fold(tsr_residual((int32_t)sample, (int32_t)a.median, (int32_t)d->range)));
        return sample;
    }
    const uint32_t folded = tsr_range_get_number(&d->reader, chances);
    if (folded >= d->range) return d->range;
    return (uint32_t)tsr_residual_inverse(tsr_unfold(folded), (int32_t)a.median, (int32_t)d->range);
}

/* A bit by two chances at once. */
TSR_HD_INLINE uint32_t tsr_drawn_double_bit(struct tsr_drawn *d, struct tsr_chance *a, struct tsr_chance *b,
                                            uint32_t bit, const enum tsr_drawn_way way)
{
    bit = tsr_drawn_bit(d, ((uint32_t)a->zero + b->zero) / 2, bit, way);
    tsr_adapt_quick(a, bit);
    tsr_adapt_quick(b, bit);
    return bit;
}

/* A number as tsr_range_put_number codes it, by two sets of chances. */
TSR_HD_INLINE uint32_t tsr_drawn_double_number(struct tsr_drawn *d, struct tsr_chance *a, struct tsr_chance *b,
                                               uint32_t value, const enum tsr_drawn_way way)
{
    int n = 0;
    while (n < 31 && tsr_drawn_double_bit(d, &a[n], &b[n], (value + 1) >> n > 1, way)) n++;
    const int first = n < 2 ? n : 2, rest = n - first;
    uint32_t node = 1;
    for (int i = n - 1; i >= rest; i--) {
        const int at = 32 + 4 * n + (int)node;
        node = node << 1 | tsr_drawn_double_bit(d, &a[at], &b[at], (value + 1) >> i & 1, way);
    }
    uint32_t low = (value + 1) & ((1u << rest) - 1);
    if (tsr_drawn_reads(way))
        low = tsr_range_get_even(&d->reader, rest);
    else
        tsr_range_put_even(&d->writer, low, rest);
    return (node << rest | low) - 1;
}

/* A sample by its difference from what is expected, which is turned where that is below the sample that is nearest;
 * d->range where it is invalid. */
TSR_HD_INLINE uint32_t tsr_drawn_blended(struct tsr_drawn *d, uint32_t sample, const enum tsr_drawn_way way)
{
    const struct tsr_blend *const b = &d->blend;
    const int32_t near = tsr_blend_sample(b), range = (int32_t)d->range;
    const bool turns = b->expected < TSR_BLEND_ONE * near;
    const uint32_t bits = tsr_drawn_bits((uint32_t)b->expected / TSR_BLEND_ONE),
                   height = bits < TSR_DRAWN_HEIGHTS - 1 ? bits : TSR_DRAWN_HEIGHTS - 1;
    const int32_t residual = tsr_residual((int32_t)sample, near, range);
    const uint32_t folded =
        tsr_drawn_double_number(d, d->chances->blend.by_activity[b->activity],
                                d->chances->blend.by_height[b->activity / 2 * TSR_DRAWN_HEIGHTS + height],
                                tsr_fold(turns ? -residual : residual), way);
    if (!tsr_drawn_reads(way)) return sample;
    if (folded > d->range) return d->range;
    const int32_t read = tsr_unfold(folded);
    return (uint32_t)tsr_residual_inverse(turns ? -read : read, near, range);
}

/* A sample that is neither remembered nor a neighbour; d->range or more where it is invalid. */
TSR_HD_INLINE uint32_t tsr_drawn_escape(struct tsr_drawn *d, int32_t c, struct tsr_drawn_around a, uint32_t sample,
                                        const enum tsr_drawn_way way)
{
    d->others++;
    if (tsr_drawn_blends(way)) return tsr_drawn_blended(d, sample, way);
    if (way == TSR_DRAWN_WRITES_BOTH) tsr_drawn_value(d, a.w, sample, way);
    return way == TSR_DRAWN_WRITES_BOTH || d->kind == TSR_DRAWN_BY_RESIDUAL ? tsr_drawn_residual(d, c, a, sample, way)
                                                                            : tsr_drawn_value(d, a.w, sample, way);
}

/* Completes the keys of the sample in column c, k of its group, by those of its own row, and mixes them. */
TSR_HD_INLINE void tsr_drawn_hash(struct tsr_drawn *d, int32_t c, int k, const enum tsr_drawn_way way)
{
    const bool two = tsr_drawn_is_of_two(way);
    const uint16_t *const row = d->row[0] + c;
    const uint32_t near = row[-1] * tsr_places[0].factor + row[-2] * tsr_places[1].factor,
                   wide = near + row[-3] * tsr_places[10].factor + row[-4] * tsr_places[11].factor,
                   wider = wide + row[-5] * tsr_places[42].factor + row[-6] * tsr_places[43].factor;
    for (int level = 0; level < (two ? TSR_MIX_CHANCES : TSR_DRAWN_LEVELS); level++) {
        const uint32_t own = level <= two ? near : level < 4 ? wide : wider;
        uint32_t h = (d->key[level][k] + own) * 0x85ebca6bu;
        h ^= h >> 15;
        d->key[level][k] = h * 0x2c1b3c6du;
        if (two && !tsr_drawn_reads(way)) /* all slots are more than a near cache holds */
            __builtin_prefetch(&d->bit_slot[level][d->key[level][k] >> (32 - d->slot_bits)], 1);
    }
}

/* Takes the chances of a sample of two values for the mix. Returns which of its sets by memory is asked. */
TSR_HD_INLINE uint32_t tsr_drawn_look_up(struct tsr_drawn *d, int k, struct tsr_drawn_bit_slot *slot[TSR_MIX_CHANCES])
{
    int known = 0; /* levels up to the widest one that is known */
    for (int level = 0; level < TSR_MIX_CHANCES; level++) {
        const uint32_t h = d->key[level][k];
        struct tsr_drawn_bit_slot *const s = &d->bit_slot[level][h >> (32 - d->slot_bits)];
        if ((s->seen > 0) & (s->check == (h & 255)))
            known = level + 1;
        else
            *s = (struct tsr_drawn_bit_slot){32768, 0, (uint8_t)h};
        d->mix.input[level] = tsr_mix_odds(s->zero);
        slot[level] = s;
    }
    if (known == 0) return 0;
    const struct tsr_drawn_bit_slot *const widest = slot[known - 1], *const below = known > 1 ? slot[known - 2] : NULL;
    const uint32_t seen = widest->seen < 2    ? 1
                          : widest->seen < 4  ? 2
                          : widest->seen < 10 ? 3
                                              : 4,
                   agrees = !below || (widest->zero > 32768) != (below->zero > 32768) ? 0
                            : below->seen < 3                                         ? 1
                                                                                      : 2;
    return ((uint32_t)known * 5 + seen) * 3 + agrees;
}

/* The sample in column c, k of its group, of two values. */
TSR_HD_INLINE uint32_t tsr_drawn_of_two(struct tsr_drawn *d, int32_t c, int k, uint32_t sample,
                                        const enum tsr_drawn_way way)
{
    struct tsr_drawn_bit_slot *slot[TSR_MIX_CHANCES];
    if (tsr_drawn_reads(way)) tsr_drawn_hash(d, c, k, way);
    const uint32_t by_memory = tsr_drawn_look_up(d, k, slot);
    const uint16_t *const row = d->row[0] + c, *const above = d->row[1] + c, *const top = d->row[2] + c;
    const uint32_t by_place = row[-1] | (uint32_t)row[-2] << 1 | (uint32_t)above[0] << 2 | (uint32_t)above[-1] << 3 |
                              (uint32_t)above[1] << 4 | (uint32_t)above[-2] << 5 | (uint32_t)above[2] << 6 |
                              (uint32_t)top[0] << 7 | (uint32_t)top[-1] << 8 | (uint32_t)top[1] << 9;
    const uint32_t zero =
        tsr_mix_expect(&d->mix, &d->chances->mix.by_memory[by_memory], &d->chances->mix.by_place[by_place]);
    sample = tsr_drawn_bit(d, zero, sample, way);
    tsr_mix_learn(&d->mix, sample);
    for (int level = 0; level < TSR_MIX_CHANCES; level++)
        tsr_adapt_quickly(&slot[level]->zero, &slot[level]->seen, TSR_DRAWN_BIT_SEEN, sample);
    return sample;
}

/* The sample in column c, k of its group; d->range or more where it is invalid. */
TSR_HD_INLINE uint32_t tsr_drawn_sample(struct tsr_drawn *d, int32_t c, int k, uint32_t sample,
                                        const enum tsr_drawn_way way)
{
    if (tsr_drawn_is_of_two(way)) return tsr_drawn_of_two(d, c, k, sample, way);
    struct tsr_drawn_around a = tsr_drawn_around(d, c);
    struct tsr_drawn_unasked_list unasked;
    unasked.count = 0;
    if (tsr_drawn_blends(way)) {
        const uint16_t *const row[3] = {d->row[0] + c, d->row[1] + c, d->row[2] + c};
        tsr_blend_expect(&d->blend, row, c, d->range);
        a.median = (uint32_t)tsr_blend_sample(&d->blend);
    }
    struct tsr_drawn_slot *slot[TSR_DRAWN_LEVELS];
    uint32_t check[TSR_DRAWN_LEVELS];
    bool known[TSR_DRAWN_LEVELS];
    if (tsr_drawn_reads(way)) tsr_drawn_hash(d, c, k, way);
    for (int level = 0; level < TSR_DRAWN_LEVELS; level++) {
        const uint32_t h = d->key[level][k];
        slot[level] = &d->slot[level][h >> (32 - d->slot_bits)];
        check[level] = h & 255;
        known[level] = (slot[level]->count > 0) & (slot[level]->check == check[level]);
    }
    uint32_t value = 0, found = 0, bit = 1;
    const bool remembers = tsr_drawn_remembered(d, slot, known, a, sample, &value, &bit, &unasked, way);
    if (remembers && bit == 0)
        sample = value;
    else if (tsr_drawn_neighbour(d, c, a, remembers, value, sample, &found, &unasked, way))
        sample = found;
    else
        sample = tsr_drawn_escape(d, c, a, sample, way);
    for (int i = 0; i < unasked.count; i++) {
        const uint32_t other = sample != unasked.item[i].value;
        tsr_adapt_quick(unasked.item[i].chance, other);
        tsr_adapt_quick(unasked.item[i].coarse, other);
    }
    for (int level = 0; level < TSR_DRAWN_LEVELS; level++)
        tsr_drawn_learn(slot[level], known[level], check[level], sample);
    if (tsr_drawn_blends(way)) {
        if (sample < d->range) tsr_blend_learn(&d->blend, c, sample);
        return sample;
    }
    const uint32_t error = (uint32_t)tsr_abs((int32_t)sample - (int32_t)a.median);
    d->error[0][c] = (uint16_t)(error < TSR_DRAWN_ERROR ? error : TSR_DRAWN_ERROR);
    return sample;
}

/* Whether all around a group is the same. */
TSR_HD_INLINE bool tsr_drawn_is_flat(const struct tsr_drawn *d, int32_t c, int samples)
{
    const uint16_t *const row = d->row[0] + c, *const above = d->row[1] + c;
    if (row[-1] != row[-2]) return false;
    for (int k = -1; k <= samples; k++)
        if (above[k] != row[-1]) return false;
    return true;
}

/* The row at work: from is what is coded, to where what is decoded goes. Returns false if it is invalid. */
TSR_HD_INLINE bool tsr_drawn_row(struct tsr_drawn *d, const uint16_t *from, const enum tsr_drawn_way way)
{
    uint16_t *const row = d->row[0];
    const uint16_t above = d->row[1][0], error_above = d->error[1][0];
    struct tsr_chance *const flat = d->chances->flat + 4 * d->blank;
    uint32_t last = 0; /* the last two such bits */
    d->blank = d->blank < TSR_DRAWN_BLANK ? d->blank + 1 : TSR_DRAWN_BLANK;
    for (int i = 1; i <= TSR_DRAWN_LEFT; i++) row[-i] = above;
    for (int i = 1; i <= 2; i++) d->error[0][-i] = error_above;
    if (tsr_drawn_blends(way)) tsr_blend_begin_row(&d->blend);
    for (int32_t c = 0; c < d->width; c += TSR_DRAWN_GROUP) {
        const int samples = (int)tsr_min(TSR_DRAWN_GROUP, d->width - c);
        const uint16_t w = row[c - 1];
        if (tsr_drawn_is_flat(d, c, samples)) {
            uint32_t bit = 0;
            for (int k = 0; k < samples && !tsr_drawn_reads(way); k++) bit |= from[c + k] != w;
            bit = tsr_drawn_fine_bit(d, &flat[last], &d->chances->flat_coarse[last], bit, way);
            last = (last << 1 | bit) & 3;
            for (int k = 0; k < samples && bit == 0; k++) {
                row[c + k] = w;
                d->error[0][c + k] = 0;
                if (tsr_drawn_blends(way)) tsr_blend_pass(&d->blend, c + k);
            }
            if (bit == 0) continue;
        }
        d->blank = 0;
        tsr_drawn_keys(d, c, way);
        if (!tsr_drawn_reads(way)) {
            for (int k = 0; k < samples; k++) row[c + k] = from[c + k];
            for (int k = 0; k < TSR_DRAWN_GROUP; k++) tsr_drawn_hash(d, c + k, k, way);
        }
        for (int k = 0; k < samples; k++) {
            const uint32_t sample = tsr_drawn_sample(d, c + k, k, tsr_drawn_reads(way) ? 0 : from[c + k], way);
            if (sample >= d->range) return false;
            row[c + k] = (uint16_t)sample;
        }
    }
    return true;
}

/* What stands beside a row for those below it; then the rows move up. */
TSR_HD_INLINE void tsr_drawn_end_row(struct tsr_drawn *d, const enum tsr_drawn_way way)
{
    if (tsr_drawn_blends(way)) tsr_blend_end_row(&d->blend, d->width);
    uint16_t *const row = d->row[0], *const error = d->error[0], *const last = d->row[TSR_DRAWN_ROWS - 1];
    for (int i = 1; i <= TSR_DRAWN_LEFT; i++) row[-i] = row[0];
    for (int i = 0; i < TSR_DRAWN_RIGHT; i++) row[d->width + i] = row[d->width - 1];
    error[-1] = error[0];
    error[d->width] = error[d->width - 1];
    for (int i = TSR_DRAWN_ROWS - 1; i > 0; i--) d->row[i] = d->row[i - 1];
    d->row[0] = last;
    d->error[0] = d->error[1];
    d->error[1] = error;
}

#endif
