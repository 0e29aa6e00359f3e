/* Finds a and b of numbers a n + b that were rounded; see find_slope.h. A slope is searched as a whole number of 2^-K,
 * of 38 bits: each number bounds it from below and from above. All in integers, so that each machine finds the same. */
#include "find_slope.h"

#include <stdlib.h>

#include "float_bits.h"

enum { SLOPE_BITS = 38, PRECISION = 24, MOST_BITS = 61, NEAR = 256, WIDTH = 12 /* a first slope is known to 2^-12 */ };

/* ---- Different numbers -------------------------------------------------------------------------------------- */

static void add(struct tsr_distinct *d, uint32_t bits)
{
    uint32_t k = (bits * 2654435761u) >> 15;
    while (d->slot[k] != 0 && d->slot[k] != bits + 1) k = (k + 1) % TSR_DISTINCT_SLOTS;
    if (d->slot[k] != 0) return;
    if (d->count == TSR_DISTINCT_LIMIT) {
        d->are_more = true;
        return;
    }
    d->slot[k] = bits + 1;
    d->number[d->count++] = bits;
}

void tsr_add_distinct(struct tsr_distinct *d, struct tsr_values_seen *seen, const uint8_t *bytes, size_t count)
{
    struct tsr_number n;
    for (size_t i = 0; i < count && !d->are_more; i++) {
        const uint32_t bits = (uint32_t)tsr_value_bits(&seen->values, bytes + 4 * i);
        if (tsr_take_float(32, bits, &n))
            add(d, bits);
        else if (!tsr_list_value(&seen->values, bits))
            d->are_more = true;
    }
}

/* In the order of the numbers. */
static uint32_t order(uint32_t bits)
{
    return bits >> 31 ? ~bits : bits | 0x80000000u;
}

static int compare(const void *one, const void *other)
{
    const uint32_t a = order(*(const uint32_t *)one), b = order(*(const uint32_t *)other);
    return a < b ? -1 : a > b;
}

/* ---- A first slope ------------------------------------------------------------------------------------------ */

/* mantissa * 2^exponent, the mantissa having SLOPE_BITS bits. */
struct gap {
    uint64_t mantissa;
    int exponent;
};

static bool is_less(const struct gap *a, const struct gap *b)
{
    return a->exponent != b->exponent ? a->exponent < b->exponent : a->mantissa < b->mantissa;
}

/* The difference of two numbers. False: it is too far from both to be a step. */
static bool gap_of(uint32_t lower, uint32_t higher, struct gap *gap)
{
    struct tsr_number a, b;
    tsr_take_float(32, lower, &a);
    tsr_take_float(32, higher, &b);
    if (a.magnitude == 0) a.exponent = b.exponent;
    if (b.magnitude == 0) b.exponent = a.exponent;
    const int least = a.exponent < b.exponent ? a.exponent : b.exponent, first = a.exponent - least,
              second = b.exponent - least;
    if (first > SLOPE_BITS - 2 || second > SLOPE_BITS - 2) return false;
    const int64_t from = (int64_t)(a.magnitude << first), to = (int64_t)(b.magnitude << second),
                  apart = (b.is_negative ? -to : to) - (a.is_negative ? -from : from);
    if (apart <= 0) return false;
    gap->mantissa = (uint64_t)apart;
    gap->exponent = least;
    for (; gap->mantissa >> SLOPE_BITS; gap->exponent++) gap->mantissa /= 2;
    for (; gap->mantissa >> (SLOPE_BITS - 1) == 0; gap->exponent--) gap->mantissa *= 2;
    return true;
}

/* The least difference of numbers beside each other near the place, and of the one there from 0. */
static bool first_slope(const struct tsr_distinct *d, size_t place, bool from_zero, struct gap *least)
{
    bool is_found = false;
    struct gap gap = {0, 0};
    const size_t begin = place > NEAR ? place - NEAR : 0;
    for (size_t i = begin; i + 1 < d->count && i < place + NEAR; i++)
        if (gap_of(d->number[i], d->number[i + 1], &gap) && (!is_found || is_less(&gap, least))) {
            *least = gap;
            is_found = true;
        }
    const uint32_t here = d->number[place], magnitude = here & 0x7fffffff;
    if (from_zero && magnitude != 0 && gap_of(0, magnitude, &gap) && (!is_found || is_less(&gap, least))) {
        *least = gap;
        is_found = true;
    }
    return is_found;
}

/* ---- Bounds ------------------------------------------------------------------------------------------------- */

/* A number in units of 2^-K, and how much it may have been rounded by. */
static bool in_units(uint32_t bits, int units, int64_t *value, int64_t *half)
{
    struct tsr_number n;
    tsr_take_float(32, bits, &n);
    *value = *half = 0;
    if (n.magnitude == 0) return true;
    int length = 0;
    while (n.magnitude >> length) length++;
    const int shift = n.exponent + units,
              last = length - PRECISION + shift; /* place of the last bit that it can have */
    if (last < 1 || length + shift > MOST_BITS) return false;
    *value = (int64_t)(n.magnitude << shift);
    if (n.is_negative) *value = -*value;
    *half = (int64_t)1 << (last - 1);
    return true;
}

struct bounds {
    int64_t low, high, base;
    int units;
};

/* Bounds the slope by a number. False: there is none. */
static bool bound(struct bounds *b, uint32_t bits)
{
    int64_t value, half;
    if (!in_units(bits, b->units, &value, &half)) return false;
    const int64_t from_base = value - b->base, distance = from_base < 0 ? -from_base : from_base,
                  least = distance / b->high, most = distance / b->low;
    if (most >> PRECISION) return false;
    const int64_t middle = (b->low + b->high) / 2, times = (distance + middle / 2) / middle;
    if (most - least > 1) return false; /* it may be one of several multiples */
    if (times == 0) return distance <= half;
    const int64_t low = (distance - half + times - 1) / times, high = (distance + half) / times; /* with both ties */
    if (low > b->low) b->low = low;
    if (high < b->high) b->high = high;
    return b->low <= b->high;
}

/* The number between the bounds that ends in most zeros, without these. */
static void choose(const struct bounds *b, struct tsr_values *v)
{
    int zeros = SLOPE_BITS;
    while (zeros > 0 &&
           (((b->low + ((int64_t)1 << zeros) - 1) >> zeros << zeros) > b->high || b->base % ((int64_t)1 << zeros) != 0))
        zeros--;
    v->step = (uint64_t)((b->low + ((int64_t)1 << zeros) - 1) >> zeros);
    v->base = (uint64_t)(b->base / ((int64_t)1 << zeros));
    v->exponent = zeros - b->units;
}

/* From the number next to the base on, outwards. */
static bool find(const struct tsr_distinct *d, size_t place, bool from_zero, struct tsr_values_seen *seen)
{
    struct gap gap = {0, 0};
    if (!first_slope(d, place, from_zero, &gap)) return false;
    struct bounds b = {.low = (int64_t)(gap.mantissa - (gap.mantissa >> WIDTH)),
                       .high = (int64_t)(gap.mantissa + (gap.mantissa >> WIDTH)),
                       .units = -gap.exponent};
    int64_t ignored;
    if (b.units > 2 * TSR_VALUE_EXPONENT_LIMIT / 3 || b.units < -TSR_VALUE_EXPONENT_LIMIT / 3) return false;
    if (!from_zero && !in_units(d->number[place], b.units, &b.base, &ignored)) return false;
    size_t below = place, above = place;
    while (below > 0 || above < d->count) {
        const bool up =
            below == 0 || (above < d->count && (d->number[above] & 0x7fffffff) <= (d->number[below - 1] & 0x7fffffff));
        if (!bound(&b, d->number[up ? above++ : --below])) return false;
    }
    choose(&b, &seen->values);
    return true;
}

/* The range is that of the numbers that are written: where a float's last place is larger than the slope, several fit.
 */
static bool all_come_back(const struct tsr_distinct *d, struct tsr_values_seen *seen)
{
    struct tsr_values v = seen->values;
    v.form = TSR_VALUES_SCALED;
    v.listed = 0;
    seen->low = INT64_MAX;
    seen->high = INT64_MIN;
    for (size_t i = 0; i < d->count; i++) {
        int64_t n;
        if (!tsr_number_of_value(&v, d->number[i], &n)) return false;
        seen->low = n < seen->low ? n : seen->low;
        seen->high = n > seen->high ? n : seen->high;
    }
    return true;
}

bool tsr_find_slope(struct tsr_distinct *d, struct tsr_values_seen *seen)
{
    if (d->are_more || d->count < 2) return false;
    qsort(d->number, d->count, sizeof *d->number, compare);
    size_t place = 0;
    for (size_t i = 1; i < d->count; i++)
        if ((d->number[i] & 0x7fffffff) < (d->number[place] & 0x7fffffff)) place = i;
    for (int from_zero = 1; from_zero >= 0; from_zero--)
        if (find(d, place, from_zero, seen) && all_come_back(d, seen)) {
            seen->is_ordered = false;
            seen->is_rounded = seen->has_numbers = true;
            return true;
        }
    return false;
}
