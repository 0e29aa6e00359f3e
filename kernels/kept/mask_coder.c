/* Masks of tiles; see the header. FORMAT.md section 6.7. */
#include "mask_coder.h"

#include <string.h>

enum { ALL = 0xffff };

void tsr_mask_begin(struct tsr_mask *mask, int columns)
{
    mask->columns = columns;
    mask->groups = (columns + TSR_MASK_GROUP - 1) / TSR_MASK_GROUP;
    mask->row = mask->rows[0];
    mask->above = mask->rows[1];
    mask->far_above = mask->rows[2];
    tsr_init_chances(mask->flat, 2);
    tsr_init_chances(mask->pixel, sizeof mask->pixel / sizeof mask->pixel[0]);
}

void tsr_mask_begin_plane(struct tsr_mask *mask)
{
    for (int i = 0; i < 3; i++) memset(mask->rows[i], 0, ((size_t)mask->groups + 2) * sizeof mask->rows[i][0]);
}

void tsr_mask_end_row(struct tsr_mask *mask)
{
    uint16_t *const row = mask->row, *const next = mask->far_above;
    const int last = (mask->columns - 1) % TSR_MASK_GROUP, above_last = 2 << last;
    const uint16_t first = row[1] & 1 ? ALL : 0, end = row[mask->groups] >> last & 1 ? ALL : 0;
    row[0] = first;
    row[mask->groups] = (uint16_t)((row[mask->groups] & (above_last - 1)) | (end & ~(above_last - 1)));
    row[mask->groups + 1] = end;
    mask->far_above = mask->above;
    mask->above = row;
    mask->row = next;
    next[0] = first; /* beside the first sample of the next row stands the one above it */
}

/* What surrounds a group: bits of its rows above, from the second column before it on, and the two samples before. */
struct surroundings {
    uint32_t above, far_above, before;
};

static struct surroundings around(const struct tsr_mask *mask, int group)
{
    const uint16_t *const above = mask->above + group, *const far_above = mask->far_above + group;
    return (struct surroundings){
        .above = (uint32_t)above[0] >> 14 | (uint32_t)above[1] << 2 | (uint32_t)(above[2] & 3) << 18,
        .far_above = (uint32_t)far_above[0] >> 15 | (uint32_t)far_above[1] << 1 | (uint32_t)(far_above[2] & 1) << 17,
        .before = (uint32_t)mask->row[group] >> 14,
    };
}

/* 0, 1: all samples around a group are not kept, are kept; -1: some are, and some not. */
static int flatness(struct surroundings s)
{
    if (s.above == 0 && s.far_above == 0 && s.before == 0) return 0;
    return s.above == 0xfffff && s.far_above == 0x3ffff && s.before == 3 ? 1 : -1;
}

/* The chance of sample number i of a group. before: the two samples before it. */
static struct tsr_chance *chance_of(struct tsr_mask *mask, struct surroundings s, uint32_t before, int i)
{
    return &mask->pixel[before | (s.above >> i & 31) << 2 | (s.far_above >> i & 7) << 7];
}

void tsr_mask_put(struct tsr_mask *mask, struct tsr_range_writer *writer, int group, uint32_t bits)
{
    const int samples = tsr_mask_samples(mask, group);
    const struct surroundings s = around(mask, group);
    const int flat = flatness(s);
    const uint32_t as_around = flat == 1 ? (1u << samples) - 1u : 0;
    uint32_t before = s.before;
    mask->row[group + 1] = (uint16_t)bits;
    if (flat >= 0) tsr_range_put_bit(writer, &mask->flat[flat], bits != as_around);
    for (int i = 0; i < samples && (flat < 0 || bits != as_around); i++) {
        const uint32_t bit = bits >> i & 1;
        tsr_range_put_bit(writer, chance_of(mask, s, before, i), bit);
        before = before >> 1 | bit << 1;
    }
}

uint32_t tsr_mask_get(struct tsr_mask *mask, struct tsr_range_reader *reader, int group)
{
    const int samples = tsr_mask_samples(mask, group);
    const struct surroundings s = around(mask, group);
    const int flat = flatness(s);
    uint32_t bits = flat == 1 ? (1u << samples) - 1u : 0, before = s.before;
    if (flat < 0 || tsr_range_get_bit(reader, &mask->flat[flat])) {
        bits = 0;
        for (int i = 0; i < samples; i++) {
            const uint32_t bit = tsr_range_get_bit(reader, chance_of(mask, s, before, i));
            bits |= bit << i;
            before = before >> 1 | bit << 1;
        }
    }
    mask->row[group + 1] = (uint16_t)bits;
    return bits;
}

/* ---- Numbers ------------------------------------------------------------------------------------------------ */

void tsr_numbers_begin(struct tsr_mask_numbers *numbers, uint32_t most, bool has_numbers)
{
    numbers->most = most;
    numbers->last = 1;
    numbers->has_numbers = has_numbers;
    tsr_init_chances(&numbers->same, 1);
    tsr_init_chances(numbers->tree, sizeof numbers->tree / sizeof numbers->tree[0]);
}

/* How many bits a number takes, and how many of them have chances. */
static int number_bits(const struct tsr_mask_numbers *numbers, int *with_chances)
{
    const int bits = tsr_bit_width(numbers->most - 1);
    *with_chances = bits < TSR_MASK_TREE_BITS ? bits : TSR_MASK_TREE_BITS;
    return bits;
}

static void put_number(struct tsr_mask_numbers *numbers, struct tsr_range_writer *writer, uint32_t number)
{
    int top;
    const int bits = number_bits(numbers, &top);
    tsr_range_put_bit(writer, &numbers->same, number == numbers->last);
    if (number == numbers->last) return;
    numbers->last = number;
    uint32_t node = 1;
    for (int i = bits - 1; i >= bits - top; i--) {
        const uint32_t bit = (number - 1) >> i & 1;
        tsr_range_put_bit(writer, &numbers->tree[node], bit);
        node = node << 1 | bit;
    }
    tsr_range_put_even(writer, (number - 1) & ((1u << (bits - top)) - 1), bits - top);
}

static uint32_t get_number(struct tsr_mask_numbers *numbers, struct tsr_range_reader *reader)
{
    int top;
    const int bits = number_bits(numbers, &top);
    if (tsr_range_get_bit(reader, &numbers->same)) return numbers->last;
    uint32_t node = 1;
    for (int i = 0; i < top; i++) node = node << 1 | tsr_range_get_bit(reader, &numbers->tree[node]);
    const uint32_t low = tsr_range_get_even(reader, bits - top);
    return numbers->last = ((node - (1u << top)) << (bits - top) | low) + 1;
}

void tsr_numbers_put(struct tsr_mask_numbers *numbers, struct tsr_range_writer *writer, const uint16_t *values,
                     int count)
{
    for (int i = 0; i < count && numbers->has_numbers; i++)
        if (values[i] > 0) put_number(numbers, writer, values[i]);
}

bool tsr_numbers_get(struct tsr_mask_numbers *numbers, struct tsr_range_reader *reader, uint16_t *values, int count)
{
    for (int i = 0; i < count && numbers->has_numbers; i++) {
        if (values[i] == 0) continue;
        const uint32_t number = get_number(numbers, reader);
        if (number > numbers->most) return false;
        values[i] = (uint16_t)number;
    }
    return true;
}
