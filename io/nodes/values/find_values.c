/* Which form values have, and the item of a header that says it; see values.h. VALUES.md 1, 4. */
#include "values.h"

#include <string.h>

#include "float_bits.h"

#define MOST ((uint64_t)1 << 62) /* magnitudes below, so that no difference overflows */
#define FIRST_LIMIT ((int64_t)1 << 33)

/* ---- Seeing ------------------------------------------------------------------------------------------------- */

static uint64_t magnitude_of(int64_t value)
{
    return value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
}

static uint64_t common_divisor(uint64_t a, uint64_t b)
{
    while (b != 0) {
        const uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

static void see_number(struct tsr_values_seen *s, int64_t value)
{
    if (!s->has_numbers) s->first = s->low = s->high = value;
    s->has_numbers = true;
    s->low = value < s->low ? value : s->low;
    s->high = value > s->high ? value : s->high;
    const uint64_t apart = magnitude_of(value - s->first);
    if (s->step != 1 && apart != 0 && (s->step == 0 || apart % s->step != 0)) s->step = common_divisor(apart, s->step);
}

/* Counts in units that are smaller by 2^by. */
static void rescale(struct tsr_values_seen *s, int by)
{
    const uint64_t low = magnitude_of(s->low), high = magnitude_of(s->high), largest = low > high ? low : high;
    if (largest > 0 && (by >= 62 || largest >= MOST >> by)) {
        s->is_ordered = true;
        return;
    }
    s->exponent -= by;
    if (largest == 0) return;
    const int64_t times = (int64_t)1 << by;
    s->low *= times;
    s->high *= times;
    s->first *= times;
    s->step *= (uint64_t)times; /* it is not above the difference of two */
}

static void see_float(struct tsr_values_seen *s, const struct tsr_number *n)
{
    if (n->magnitude == 0) {
        see_number(s, 0);
        return;
    }
    if (!s->has_exponent) s->exponent = n->exponent;
    s->has_exponent = true;
    if (n->exponent < s->exponent) rescale(s, s->exponent - n->exponent);
    const int shift = n->exponent - s->exponent;
    if (s->is_ordered || shift >= 62 || n->magnitude >= MOST >> shift) {
        s->is_ordered = true;
        return;
    }
    const int64_t value = (int64_t)(n->magnitude << shift);
    see_number(s, n->is_negative ? -value : value);
}

bool tsr_list_value(struct tsr_values *v, uint64_t bits)
{
    for (uint32_t k = 0; k < v->listed; k++)
        if (v->list[k] == bits) return true;
    if (v->listed == TSR_LISTED_LIMIT) return false;
    v->list[v->listed++] = bits;
    return true;
}

/* A value that has a number of its own. */
static void see_other(struct tsr_values_seen *s, uint64_t bits)
{
    if (!tsr_list_value(&s->values, bits)) s->is_ordered = true;
}

/* What is far from 0 is often a mark of its own. */
static void see_integer(struct tsr_values_seen *s, uint64_t bits)
{
    const bool is_negative = s->values.is_signed && bits >> 63;
    if ((is_negative ? 0 - bits : bits) >= MOST)
        see_other(s, bits);
    else
        see_number(s, is_negative ? -(int64_t)(0 - bits) : (int64_t)bits);
}

void tsr_see_values(struct tsr_values_seen *s, const uint8_t *bytes, size_t count)
{
    const size_t width = s->values.bits / 8;
    struct tsr_number number;
    for (size_t i = 0; i < count && !s->is_ordered; i++) {
        const uint64_t bits = tsr_value_bits(&s->values, bytes + i * width);
        if (!s->values.is_float)
            see_integer(s, bits);
        else if (tsr_take_float(s->values.bits, bits, &number))
            see_float(s, &number);
        else
            see_other(s, bits);
    }
    const uint64_t step = s->step > 0 ? s->step : 1;
    if (s->has_numbers && ((uint64_t)s->high - (uint64_t)s->low) / step >= ((uint64_t)1 << 32) - 2 * TSR_LISTED_LIMIT)
        s->is_ordered = true;
}

/* ---- The form ----------------------------------------------------------------------------------------------- */

static void set_samples(struct tsr_image *image, unsigned bits, bool is_signed)
{
    image->bits_allocated = image->bits_stored = (uint8_t)bits;
    image->high_bit = (uint8_t)(bits - 1);
    image->is_signed = is_signed;
    image->is_float = image->big_endian = false;
}

static struct tsr_values ordered(const struct tsr_values *of, struct tsr_image *image)
{
    struct tsr_values v = {
        .bits = of->bits, .is_float = of->is_float, .is_signed = of->is_signed, .big_endian = of->big_endian};
    if (v.bits == 64 && image->components > 1) return v; /* of no form */
    v.form = TSR_VALUES_ORDERED;
    set_samples(image, 32, false);
    if (v.bits == 64) {
        image->components = 2;
        image->planar = true;
    }
    return v;
}

struct tsr_values tsr_values_in_order(struct tsr_image *image)
{
    const struct tsr_values type = {.bits = image->bits_allocated,
                                    .is_float = image->is_float,
                                    .is_signed = image->is_signed,
                                    .big_endian = image->big_endian};
    return ordered(&type, image);
}

struct range {
    int64_t low, high;
};

/* Numbers of values count from 0 of the values, where 32 bits hold that, else from the lowest value. */
static struct range count_from(const struct tsr_values_seen *s, struct tsr_values *v)
{
    const int64_t step = (int64_t)v->step, left = s->low % step, rest = left < 0 ? left + step : left,
                  low = (s->low - rest) / step, span = (s->high - s->low) / step, spare = 2 * TSR_LISTED_LIMIT;
    const bool fits =
        low < 0 ? low >= INT32_MIN + spare && low + span <= INT32_MAX - spare : low + span <= UINT32_MAX - spare;
    v->base = (uint64_t)(fits ? rest : s->low);
    return fits ? (struct range){low, low + span} : (struct range){0, span};
}

static bool holds(unsigned bits, bool is_signed, const struct range *range)
{
    const int64_t half = (int64_t)1 << (bits - 1);
    return is_signed ? range->low >= -half && range->high < half : range->high < 2 * half;
}

struct tsr_values tsr_values_of(const struct tsr_values_seen *s, struct tsr_image *image)
{
    static const int64_t many = (int64_t)1 << 24; /* of 32 bits, bits in their order are as few */
    struct tsr_values v = s->values;
    if (s->is_ordered) return ordered(&v, image);
    v.form = TSR_VALUES_SCALED;
    struct range range = {s->low, s->high};
    if (!s->is_rounded) {
        v.step = s->step > 0 ? s->step : 1;
        v.exponent = v.is_float ? s->exponent : 0;
        range = s->has_numbers ? count_from(s, &v) : (struct range){0, 0};
    }
    if (v.bits == 32 && range.high - range.low >= many) return ordered(&v, image);
    if (v.listed > 0) {
        const bool is_below = range.low < 0 || range.low >= v.listed;
        v.first = is_below ? range.low - v.listed : range.high + 1;
        range.low -= is_below ? v.listed : 0;
        range.high += is_below ? 0 : v.listed;
    }
    unsigned bits = 8;
    const bool is_signed = range.low < 0;
    while (bits < 32 && !holds(bits, is_signed, &range)) bits *= 2;
    set_samples(image, bits, is_signed);
    return v;
}

/* ---- The item ----------------------------------------------------------------------------------------------- */

enum { LONG = 1, FLOAT = 2, SIGNED = 4, BIG_ENDIAN = 8 };

size_t tsr_put_values(uint8_t *out, const struct tsr_values *v)
{
    size_t used = 0;
    out[used++] = (uint8_t)((v->bits == 64 ? LONG : 0) | (v->is_float ? FLOAT : 0) | (v->is_signed ? SIGNED : 0) |
                            (v->big_endian ? BIG_ENDIAN : 0));
    out[used++] = (uint8_t)v->form;
    if (v->form != TSR_VALUES_SCALED) return used;
    used += tsr_put_varint(out + used, v->step);
    used += tsr_put_signed(out + used, (int64_t)v->base);
    used += tsr_put_signed(out + used, v->exponent);
    used += tsr_put_varint(out + used, v->listed);
    if (v->listed > 0) used += tsr_put_signed(out + used, v->first);
    for (uint32_t k = 0; k < v->listed; k++)
        for (unsigned shift = 0; shift < v->bits; shift += 8) out[used++] = (uint8_t)(v->list[k] >> shift);
    return used;
}

static bool get_scale(struct tsr_cursor *c, struct tsr_values *v)
{
    v->step = tsr_get_varint(c);
    v->base = (uint64_t)tsr_get_signed(c);
    const int64_t exponent = tsr_get_signed(c);
    const uint64_t listed = tsr_get_varint(c);
    if (c->bad || v->step == 0 || exponent < -TSR_VALUE_EXPONENT_LIMIT || exponent > TSR_VALUE_EXPONENT_LIMIT ||
        (!v->is_float && exponent != 0) || listed > TSR_LISTED_LIMIT)
        return false;
    v->exponent = (int32_t)exponent;
    v->listed = (uint32_t)listed;
    if (listed > 0) v->first = tsr_get_signed(c);
    for (uint32_t k = 0; k < v->listed; k++)
        for (unsigned shift = 0; shift < v->bits; shift += 8) v->list[k] |= (uint64_t)tsr_get_u8(c) << shift;
    return v->first >= -FIRST_LIMIT && v->first <= FIRST_LIMIT;
}

bool tsr_get_values(struct tsr_cursor *c, struct tsr_values *v)
{
    const unsigned type = tsr_get_u8(c), form = tsr_get_u8(c);
    memset(v, 0, sizeof *v);
    v->bits = type & LONG ? 64 : 32;
    v->is_float = type & FLOAT;
    v->is_signed = type & SIGNED;
    v->big_endian = type & BIG_ENDIAN;
    v->form = (enum tsr_value_form)form;
    if (type > (LONG | FLOAT | SIGNED | BIG_ENDIAN) || form == TSR_VALUES_NONE || form >= TSR_VALUE_FORMS) return false;
    if (v->is_float ? v->is_signed : v->bits == 32) return false;
    return v->form != TSR_VALUES_SCALED || get_scale(c, v);
}
