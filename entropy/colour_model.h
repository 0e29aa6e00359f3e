/* How a frame's colours become indices before its colour transform, and how lists of values stand in the file.
 * FORMAT.md sections 6.4 (stretches) and 6.6.
 *
 * Packed by components, each of the first three planes holds indices into the values that its component uses: a
 * component with steps of 8 beside a dense one would else make differences that nothing predicts. With a palette plane
 * 0 holds indices into all colours, and planes 1 and 2 are constant. */
#ifndef TSR_ENTROPY_COLOUR_MODEL_H
#define TSR_ENTROPY_COLOUR_MODEL_H

#include "transform/predict/residual.h"
#include "bits.h"

enum tsr_colour_packing { TSR_COLOURS_PLAIN = 0, TSR_COLOURS_BY_COMPONENT = 1, TSR_COLOURS_PALETTE = 2 };

enum {
    TSR_PALETTE_LIMIT = 1024, /* colours */
    /* Most bytes of a description: stretches take at most 2 bits a value of their span, a colour three numbers of at
     * most 35 bits. */
    TSR_COLOUR_MODEL_LIMIT = 3 * (65536 / 4 + 16) + TSR_PALETTE_LIMIT * 14 + 8
};

struct tsr_colour_model {
    enum tsr_colour_packing packing;
    uint8_t leading;   /* of a palette: the component that colours are sorted by first */
    uint32_t count[3]; /* values of each list; of a palette: colours, three times */
    uint16_t *list[3]; /* values of the components; room for 65536 each, the caller's */
};

/* Bits of what the lists leave of planes 0, 1, 2, which had this many. */
TSR_HD int tsr_packed_colour_bits(const struct tsr_colour_model *m, int bits)
{
    if (m->packing == TSR_COLOURS_PLAIN) return bits;
    uint32_t most = 2;
    for (int c = 0; c < 3; c++) most = m->count[c] > most ? m->count[c] : most;
    return tsr_bit_width(most - 1);
}

/* The value that an index stands for; one beyond the list is its last. */
TSR_HD uint16_t tsr_listed_value(const struct tsr_colour_model *m, int component, uint32_t index)
{
    const uint32_t last = m->count[component] - 1;
    return m->list[component][index < last ? index : last];
}

/* Rising values as stretches in turn: in use, not in use, ...; lengths, each minus 1. */
TSR_HD void tsr_put_stretches(struct tsr_bit_writer *w, const uint16_t *value, uint32_t count)
{
    for (uint32_t i = 0; i < count;) {
        uint32_t used = 1;
        while (i + used < count && value[i + used] == value[i] + used) used++;
        tsr_put_ue(w, used - 1);
        i += used;
        if (i < count) tsr_put_ue(w, (uint32_t)(value[i] - value[i - 1] - 2));
    }
}

/* Values from first on until the stretches fill the span; returns their number, 0 where they don't. first + span is at
 * most 65536. */
TSR_HD_CALL uint32_t tsr_get_stretches(struct tsr_bit_reader *r, uint32_t first, uint32_t span, uint16_t *value)
{
    uint32_t offset = 0, count = 0;
    for (;;) {
        uint32_t used = tsr_get_ue(r) + 1u;
        if (r->overrun || used > span - offset) return 0;
        while (used-- > 0) value[count++] = (uint16_t)(first + offset++);
        if (offset == span) return count;
        const uint32_t unused = tsr_get_ue(r) + 1u;
        if (r->overrun || unused >= span - offset) return 0;
        offset += unused;
    }
}

/* A colour as one number; below, it is 48 bits. */
TSR_HD uint64_t tsr_colour_key(uint16_t r, uint16_t g, uint16_t b)
{
    return (uint64_t)r << 32 | (uint64_t)g << 16 | b;
}

TSR_HD uint16_t tsr_key_component(uint64_t key, int component)
{
    return (uint16_t)(key >> (32 - 16 * component));
}

/* The components of a palette's colours, the leading one first. */
TSR_HD int tsr_palette_component(int leading, int place)
{
    return place == 0 ? leading : place - (place <= leading);
}

/* A colour's key with the components in the palette's order, by which colours rise. */
TSR_HD uint64_t tsr_palette_key(uint64_t key, int leading)
{
    return tsr_colour_key(tsr_key_component(key, tsr_palette_component(leading, 0)),
                          tsr_key_component(key, tsr_palette_component(leading, 1)),
                          tsr_key_component(key, tsr_palette_component(leading, 2)));
}

/* The three numbers that stand for a colour of a palette after the one before, by their keys in its order. */
TSR_HD void tsr_palette_steps(uint64_t key, uint64_t before, bool is_first, uint32_t step[3])
{
    const int32_t a = tsr_key_component(key, 0), b = tsr_key_component(key, 1), c = tsr_key_component(key, 2);
    const int32_t a_before = is_first ? 0 : tsr_key_component(before, 0), b_before = tsr_key_component(before, 1);
    const bool same = !is_first && a == a_before, both = same && b == b_before;
    step[0] = (uint32_t)(a - a_before);
    step[1] = same ? (uint32_t)(b - b_before) : tsr_fold(b - a);
    step[2] = both ? (uint32_t)(c - tsr_key_component(before, 2) - 1) : tsr_fold(c - b);
}

TSR_HD void tsr_put_palette(struct tsr_bit_writer *w, const struct tsr_colour_model *m)
{
    uint64_t before = 0;
    tsr_put_bits(w, m->leading, 2);
    tsr_put_ue(w, m->count[0] - 1);
    for (uint32_t i = 0; i < m->count[0]; i++) {
        const uint64_t key = tsr_palette_key(tsr_colour_key(m->list[0][i], m->list[1][i], m->list[2][i]), m->leading);
        uint32_t step[3];
        tsr_palette_steps(key, before, i == 0, step);
        for (int k = 0; k < 3; k++) tsr_put_ue(w, step[k]);
        before = key;
    }
}

TSR_HD_CALL bool tsr_get_palette(struct tsr_bit_reader *r, struct tsr_colour_model *m, int bits)
{
    m->leading = (uint8_t)tsr_get_bits(r, 2);
    const uint32_t last = tsr_get_ue(r);
    if (r->overrun || m->leading > 2 || last >= TSR_PALETTE_LIMIT) return false;
    uint16_t *list[3];
    for (int k = 0; k < 3; k++) list[k] = m->list[tsr_palette_component(m->leading, k)];
    for (int k = 0; k < 3; k++) m->count[k] = last + 1;
    int64_t a = 0, b = 0, c = 0;
    for (uint32_t i = 0; i <= last; i++) {
        const uint32_t rise = tsr_get_ue(r), second = tsr_get_ue(r), third = tsr_get_ue(r);
        const bool same = i > 0 && rise == 0, both = same && second == 0;
        a += rise;
        b = same ? b + second : a + tsr_unfold(second);
        c = both ? c + third + 1 : b + tsr_unfold(third);
        if (r->overrun || tsr_asr64(a | b | c, bits) != 0) return false; /* negative ones have bits up there, too */
        list[0][i] = (uint16_t)a;
        list[1][i] = (uint16_t)b;
        list[2][i] = (uint16_t)c;
    }
    return true;
}

TSR_HD void tsr_put_colour_model(struct tsr_bit_writer *w, const struct tsr_colour_model *m)
{
    tsr_put_bits(w, m->packing, 2);
    if (m->packing == TSR_COLOURS_PALETTE) tsr_put_palette(w, m);
    if (m->packing != TSR_COLOURS_BY_COMPONENT) return;
    for (int c = 0; c < 3; c++) {
        tsr_put_ue(w, m->list[c][0]);
        tsr_put_ue(w, (uint32_t)(m->list[c][m->count[c] - 1] - m->list[c][0]));
        tsr_put_stretches(w, m->list[c], m->count[c]);
    }
}

/* False where the bits describe no lists of values of this many bits. m->list must have room. */
TSR_HD_CALL bool tsr_get_colour_model(struct tsr_bit_reader *r, struct tsr_colour_model *m, int bits)
{
    const uint32_t packing = tsr_get_bits(r, 2);
    m->packing = TSR_COLOURS_PLAIN;
    if (r->overrun || packing > TSR_COLOURS_PALETTE) return false;
    if (packing == TSR_COLOURS_PLAIN) return true;
    m->packing = packing == TSR_COLOURS_PALETTE ? TSR_COLOURS_PALETTE : TSR_COLOURS_BY_COMPONENT;
    if (m->packing == TSR_COLOURS_PALETTE) return tsr_get_palette(r, m, bits);
    for (int c = 0; c < 3; c++) {
        const uint32_t lowest = tsr_get_ue(r), more = tsr_get_ue(r), values = 1u << bits;
        if (r->overrun || lowest >= values || more >= values - lowest) return false;
        m->count[c] = tsr_get_stretches(r, lowest, more + 1, m->list[c]);
        if (m->count[c] == 0) return false;
    }
    return true;
}

#endif
