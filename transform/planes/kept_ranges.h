/* Kept ranges: sample values that coding with loss does not change, and that no other sample gets. FORMAT.md section
 * 6.7.
 *
 * Values are those of first planes, 0 .. 2^bits - 1. The kept ones are numbered from 1 on, in their order. */
#ifndef TSR_TRANSFORM_PLANES_KEPT_RANGES_H
#define TSR_TRANSFORM_PLANES_KEPT_RANGES_H

#include "transform/hd.h"

enum { TSR_KEPT_RANGES_LIMIT = 4 };

struct tsr_kept_ranges {
    int count; /* of the ranges; 0: nothing is kept */
    struct tsr_kept_values {
        uint32_t lowest, highest;
    } range[TSR_KEPT_RANGES_LIMIT]; /* they rise, and at least one value is between two of them */
};

/* The number of kept values. */
TSR_HD uint32_t tsr_kept_total(const struct tsr_kept_ranges *kept)
{
    uint32_t total = 0;
    for (int i = 0; i < kept->count; i++) total += kept->range[i].highest - kept->range[i].lowest + 1;
    return total;
}

/* Whether the ranges are such as the comment above says, of samples of so many bits, and leave two values. */
TSR_HD bool tsr_check_kept(const struct tsr_kept_ranges *kept, int bits)
{
    const uint32_t values = 1u << bits;
    uint32_t least = 0;
    if (kept->count < 0 || kept->count > TSR_KEPT_RANGES_LIMIT) return false;
    for (int i = 0; i < kept->count; i++) {
        const struct tsr_kept_values range = kept->range[i];
        if (range.lowest < least || range.highest < range.lowest || range.highest >= values) return false;
        least = range.highest + 2;
    }
    return tsr_kept_total(kept) <= values - 2;
}

/* Adds the values lowest .. highest. Ranges that meet become one. False: there are more than TSR_KEPT_RANGES_LIMIT
 * then, or fewer than two values are left; *kept stays as it was. */
TSR_HD bool tsr_keep_values(struct tsr_kept_ranges *kept, uint32_t lowest, uint32_t highest, int bits)
{
    struct tsr_kept_ranges sum = {0, {{0, 0}}};
    struct tsr_kept_values added = {lowest, highest};
    bool is_placed = false;
    for (int i = 0; i <= kept->count; i++) {
        const bool is_end = i == kept->count;
        const struct tsr_kept_values range = is_end ? added : kept->range[i];
        if (!is_end && range.highest + 1 >= added.lowest && range.lowest <= added.highest + 1) {
            if (range.lowest < added.lowest) added.lowest = range.lowest;
            if (range.highest > added.highest) added.highest = range.highest;
            continue;
        }
        if (!is_placed && (is_end || range.lowest > added.highest)) {
            if (sum.count == TSR_KEPT_RANGES_LIMIT) return false;
            sum.range[sum.count++] = added;
            is_placed = true;
        }
        if (is_end) break;
        if (sum.count == TSR_KEPT_RANGES_LIMIT) return false;
        sum.range[sum.count++] = range;
    }
    if (!tsr_check_kept(&sum, bits)) return false;
    *kept = sum;
    return true;
}

/* The range that holds a value; -1: it is not kept. */
TSR_HD int tsr_kept_range_of(const struct tsr_kept_ranges *kept, uint32_t value)
{
    for (int i = 0; i < kept->count; i++)
        if (value >= kept->range[i].lowest && value <= kept->range[i].highest) return i;
    return -1;
}

/* The number of a value; 0: it is not kept. */
TSR_HD uint32_t tsr_kept_number(const struct tsr_kept_ranges *kept, uint32_t value)
{
    uint32_t before = 1;
    for (int i = 0; i < kept->count; i++) {
        const uint32_t offset = value - kept->range[i].lowest, span = kept->range[i].highest - kept->range[i].lowest;
        if (offset <= span) return before + offset;
        before += span + 1;
    }
    return 0;
}

/* The value of a number, 1 .. the number of kept values. */
TSR_HD uint32_t tsr_kept_value(const struct tsr_kept_ranges *kept, uint32_t number)
{
    uint32_t offset = number - 1;
    int i = 0;
    while (offset > kept->range[i].highest - kept->range[i].lowest) {
        offset -= kept->range[i].highest - kept->range[i].lowest + 1;
        i++;
    }
    return kept->range[i].lowest + offset;
}

/* The nearer, or the farther, of the two values beside the range that holds a value, of samples of so many bits. Both
 * are as near: the upper one is the nearer, as padding is mostly below all pixels. Only one of them exists: that one.
 */
TSR_HD uint32_t tsr_leave_kept(const struct tsr_kept_ranges *kept, uint32_t value, int bits, bool farther)
{
    int i = 0;
    while (i + 1 < kept->count && value > kept->range[i].highest) i++;
    const struct tsr_kept_values range = kept->range[i];
    const bool is_lower_nearer = value - range.lowest < range.highest - value;
    if (range.lowest == 0) return range.highest + 1;
    if (range.highest == (1u << bits) - 1u) return range.lowest - 1;
    return is_lower_nearer != farther ? range.lowest - 1 : range.highest + 1;
}

#endif
