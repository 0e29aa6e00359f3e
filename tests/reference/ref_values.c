/* VALUES.md: values of 32 and 64 bits, for which samples stand. */
#include "ref.h"

#include <string.h>

static int64_t unfold(uint64_t v)
{
    return v % 2 == 0 ? (int64_t)(v / 2) : -(int64_t)(v / 2) - 1;
}

static bool read_scaled(struct ref_values *v, struct ref_bytes *b)
{
    v->step = ref_varint(b);
    v->base = (uint64_t)unfold(ref_varint(b));
    v->exponent = unfold(ref_varint(b));
    const uint64_t listed = ref_varint(b);
    if (b->bad || v->step == 0 || listed > 16) return false;
    if (v->exponent < -2047 || v->exponent > 2047 || (!v->is_float && v->exponent != 0)) return false;
    v->listed = (unsigned)listed;
    if (listed > 0) v->first = unfold(ref_varint(b));
    for (unsigned k = 0; k < v->listed; k++) v->list[k] = ref_number(b, v->width / 8);
    const int64_t most = (int64_t)1 << 33;
    return v->first >= -most && v->first <= most;
}

/* 1 */
bool ref_read_values(struct ref_header *h, struct ref_bytes *b)
{
    struct ref_values *v = &h->values;
    const unsigned type = (unsigned)ref_number(b, 1);
    v->form = (unsigned)ref_number(b, 1);
    v->width = type & 1 ? 64 : 32;
    v->is_float = type & 2;
    v->is_signed = type & 4;
    v->big_endian = type & 8;
    if (b->bad || type > 15 || v->form < 1 || v->form > 2) return false;
    if (v->is_float ? v->is_signed : v->width == 32) return false;
    if (!h->exact || (h->restore != REF_SPLICE && h->restore != REF_DEFLATED)) return false;
    if (h->allocated < 8 || h->stored != h->allocated || h->big_endian || h->swapped) return false;
    if (v->form == 2 && (h->is_signed || h->allocated != 32)) return false;
    if (v->form == 2 && v->width == 64 && (h->components != 2 || !h->planar)) return false;
    if (v->form == 1 && !read_scaled(v, b)) return false;
    return !b->bad && ref_left(b) == 0;
}

/* 2: whole * 2^exponent */
static uint64_t round_float(uint64_t whole, int exponent, unsigned width)
{
    const bool negative = whole >> 63;
    uint64_t m = negative ? 0 - whole : whole, bits;
    const int precision = width == 32 ? 24 : 53, lowest = width == 32 ? -149 : -1074, top = width == 32 ? 127 : 1023;
    if (m == 0) return 0;
    int length = 0;
    while (length < 64 && m >> length != 0) length++;
    /* the exponent of the last bit that is kept */
    int last = exponent + length - precision;
    if (last < lowest) last = lowest;
    uint64_t kept = 0;
    int drop = last - exponent;
    if (drop <= 0) {
        kept = m << -drop;
    } else if (drop <= 64) {
        kept = drop == 64 ? 0 : m >> drop;
        const bool half = m >> (drop - 1) & 1, more = (m & (((uint64_t)1 << (drop - 1)) - 1)) != 0;
        if (half && (more || kept % 2 == 1)) kept++;
    }
    if (kept == (uint64_t)1 << precision) {
        kept /= 2;
        last++;
    }
    const uint64_t hidden = (uint64_t)1 << (precision - 1);
    if (kept < hidden)
        bits = kept;
    else if (last + precision - 1 > top)
        bits = (uint64_t)(2 * top + 1) << (precision - 1);
    else
        bits = (uint64_t)(last + precision - 1 + top) << (precision - 1) | (kept - hidden);
    return bits | (uint64_t)negative << (width - 1);
}

static uint64_t scaled(const struct ref_values *v, int64_t n)
{
    if (n >= v->first && n < v->first + (int64_t)v->listed) return v->list[n - v->first];
    const uint64_t whole = v->step * (uint64_t)n + v->base;
    return v->is_float ? round_float(whole, (int)v->exponent, v->width) : whole;
}

/* 3 */
static uint64_t of_place(const struct ref_values *v, uint64_t place)
{
    const uint64_t top = (uint64_t)1 << (v->width - 1), all = top | (top - 1);
    if (v->is_float) return place & top ? place ^ top : place ^ all;
    return v->is_signed ? place ^ top : place;
}

static uint64_t word_at(const uint8_t *raster, size_t i, unsigned bytes)
{
    uint64_t word = 0;
    for (unsigned k = 0; k < bytes; k++) word |= (uint64_t)raster[i * bytes + k] << (8 * k);
    return word;
}

uint8_t *ref_values_of(const struct ref_header *h, const uint8_t *raster, size_t *size)
{
    const struct ref_values *v = &h->values;
    const unsigned bytes = h->allocated / 8, width = v->width / 8;
    const bool halves = v->form == 2 && v->width == 64;
    const size_t count = (size_t)h->columns * h->rows * (halves ? 1 : h->components);
    uint8_t *out = ref_alloc(count, width);
    for (size_t i = 0; i < count; i++) {
        uint64_t word = word_at(raster, i, bytes), value;
        if (halves) word = word << 32 | word_at(raster, count + i, 4);
        int64_t n = (int64_t)word;
        if (h->is_signed && word >> (h->allocated - 1)) n -= (int64_t)1 << h->allocated;
        value = v->form == 2 ? of_place(v, word) : scaled(v, n);
        for (unsigned k = 0; k < width; k++)
            out[i * width + (v->big_endian ? width - 1 - k : k)] = (uint8_t)(value >> (8 * k));
    }
    *size = count * width;
    return out;
}
