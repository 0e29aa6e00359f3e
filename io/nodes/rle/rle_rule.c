/* Rules that encoders of RLE follow. See rle_rule.h. */
#include "rle_rule.h"

#include <string.h>

struct tsr_rle_planner tsr_rle_planner(const struct tsr_rle_rule *rule, const uint8_t *plane, size_t size,
                                       size_t columns)
{
    return (struct tsr_rle_planner){.rule = *rule,
                                    .plane = plane,
                                    .size = size,
                                    .columns = columns,
                                    .row_end = !rule->crosses_rows && columns < size ? columns : size};
}

static inline uint64_t load_u64(const uint8_t *bytes)
{
    uint64_t value;
    memcpy(&value, bytes, 8);
    return value;
}

/* The end of the run at a place, or end if it goes on there. */
static size_t find_run_end(const uint8_t *plane, size_t at, size_t end)
{
    const uint8_t value = plane[at++];
    const uint64_t values = value * (uint64_t)0x0101010101010101u;
    while (end - at >= 8 && load_u64(plane + at) == values) at += 8;
    while (at < end && plane[at] == value) at++;
    return at;
}

/* The first place from at on whose byte is that of the next place. end: there is none. */
static size_t find_pair(const uint8_t *plane, size_t at, size_t end)
{
    for (; end - at > 8; at += 8) {
        const uint64_t changes = load_u64(plane + at) ^ load_u64(plane + at + 1);
        if ((changes - (uint64_t)0x0101010101010101u) & ~changes & (uint64_t)0x8080808080808080u) break;
    }
    for (; end - at > 1; at++)
        if (plane[at] == plane[at + 1]) return at;
    return end;
}

static inline size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Bytes of the literal at a place where the first run ends at first_end. */
static size_t plan_literal(const struct tsr_rle_planner *p, size_t at, size_t first_end)
{
    const struct tsr_rle_rule *rule = &p->rule;
    const size_t last = least(p->row_end, at + rule->longest_literal);
    const size_t row_end = rule->sees_literal_alone ? last : p->row_end;
    const size_t seen = least(row_end, last + 8); /* any run that is cut there ends a literal */
    for (size_t from = first_end; from < last;) {
        const size_t begin = find_pair(p->plane, from, seen);
        if (begin >= last) break;
        from = find_run_end(p->plane, begin, seen);
        if (from - begin >= rule->inner_run || (rule->counts_last_pairs && from == row_end))
            return least(begin + rule->takes_first, last) - at;
    }
    return last - at;
}

/* The same of encoders whose packets are of whole units. */
static uint8_t plan_units(const struct tsr_rle_planner *p, size_t at, size_t run)
{
    const size_t unit = p->rule.unit, left = p->row_end - at;
    if (run >= unit) return (uint8_t)(257 - least(run, p->rule.longest_run) / unit * unit);
    size_t length = unit;
    while (length + unit <= p->rule.longest_literal && length < left) {
        const size_t next = at + length;
        if (find_run_end(p->plane, next, least(p->row_end, next + unit)) == next + unit) break;
        length += unit;
    }
    return (uint8_t)(least(length, left) - 1);
}

uint8_t tsr_rle_plan(struct tsr_rle_planner *p, size_t at, uint8_t last)
{
    const struct tsr_rle_rule *rule = &p->rule;
    bool is_rest = last > TSR_RLE_NO_OPERATION && tsr_rle_length(last) == rule->longest_run && !rule->joins_rest;
    while (at >= p->row_end) {
        p->row_end = p->size - p->row_end > p->columns ? p->row_end + p->columns : p->size;
        is_rest = false;
    }
    if (is_rest) is_rest = p->plane[at] == p->plane[at - 1];
    const size_t end = find_run_end(p->plane, at, least(p->row_end, at + TSR_RLE_LONGEST)), length = end - at;
    if (rule->unit > 1) return plan_units(p, at, length);
    const bool is_run =
        length >= rule->first_run || (length == 2 && (is_rest || (rule->counts_last_pairs && end == p->row_end)));
    if (is_run) return (uint8_t)(257 - least(length, rule->longest_run));
    return is_rest ? 0 : (uint8_t)(plan_literal(p, at, end) - 1);
}
