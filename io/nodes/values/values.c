/* Values and the samples that stand for them; see values.h. VALUES.md 1 to 3. */
#include "values.h"

#include <string.h>

#include "float_bits.h"
#include "io/nodes/node.h"

/* ---- Bytes -------------------------------------------------------------------------------------------------- */

static uint64_t get(const uint8_t *bytes, size_t width, bool big_endian)
{
    uint64_t value = 0;
    for (size_t i = 0; i < width; i++) value |= (uint64_t)bytes[big_endian ? width - 1 - i : i] << (8 * i);
    return value;
}

static void put(uint8_t *bytes, size_t width, bool big_endian, uint64_t value)
{
    for (size_t i = 0; i < width; i++) bytes[big_endian ? width - 1 - i : i] = (uint8_t)(value >> (8 * i));
}

uint64_t tsr_value_bits(const struct tsr_values *v, const uint8_t *bytes)
{
    return v->bits == 32 ? get(bytes, 4, v->big_endian) : get(bytes, 8, v->big_endian);
}

static void put_value(const struct tsr_values *v, uint8_t *bytes, uint64_t bits)
{
    if (v->bits == 32)
        put(bytes, 4, v->big_endian, bits);
    else
        put(bytes, 8, v->big_endian, bits);
}

/* ---- Floating-point numbers --------------------------------------------------------------------------------- */

struct tsr_float_layout tsr_float_layout_of(unsigned bits)
{
    return bits == 32 ? (struct tsr_float_layout){24, -149, 255} : (struct tsr_float_layout){53, -1074, 2047};
}

static unsigned length_of(uint64_t value)
{
    unsigned bits = 0;
    for (unsigned half = 32; half > 0; half /= 2)
        if (value >> half) {
            value >>= half;
            bits += half;
        }
    return bits + (value != 0);
}

bool tsr_take_float(unsigned bits, uint64_t value, struct tsr_number *number)
{
    const struct tsr_float_layout l = tsr_float_layout_of(bits);
    const uint64_t hidden = (uint64_t)1 << (l.precision - 1), fraction = value & (hidden - 1);
    const unsigned exponent = (unsigned)(value >> (l.precision - 1)) & l.special;
    number->is_negative = value >> (bits - 1) & 1;
    number->magnitude = exponent == 0 ? fraction : fraction | hidden;
    number->exponent = l.least + (exponent == 0 ? 0 : (int)exponent - 1);
    if (exponent == l.special || (number->magnitude == 0 && number->is_negative)) return false;
    if (number->magnitude == 0) number->exponent = 0;
    const uint64_t last = number->magnitude & (0 - number->magnitude);
    const int zeros = last == 0 ? 0 : (int)length_of(last) - 1;
    number->magnitude >>= zeros;
    number->exponent += zeros;
    return true;
}

/* magnitude / 2^shift, to the nearest integer, ties to the even one. */
static uint64_t round_off(uint64_t magnitude, unsigned shift)
{
    if (shift > 64) return 0;
    const uint64_t half = (uint64_t)1 << (shift - 1), kept = shift == 64 ? 0 : magnitude >> shift,
                   rest = shift == 64 ? magnitude : magnitude & (2 * half - 1);
    return kept + (rest > half || (rest == half && kept % 2 == 1));
}

uint64_t tsr_make_float(unsigned bits, bool is_negative, uint64_t magnitude, int exponent)
{
    const struct tsr_float_layout l = tsr_float_layout_of(bits);
    const uint64_t sign = (uint64_t)is_negative << (bits - 1), hidden = (uint64_t)1 << (l.precision - 1),
                   infinity = (uint64_t)l.special << (l.precision - 1);
    if (magnitude == 0) return 0;
    const int length = (int)length_of(magnitude), least = l.least - exponent, drop = length - l.precision,
              shift = drop > least ? drop : least;
    if (shift > 0)
        magnitude = round_off(magnitude, (unsigned)shift);
    else
        magnitude <<= -shift;
    const int place = exponent + shift - l.least; /* 0: that of the least numbers */
    if (place >= (int)l.special) return sign | infinity;
    const uint64_t made = magnitude < hidden ? magnitude : ((uint64_t)place << (l.precision - 1)) + magnitude;
    return sign | (made < infinity ? made : infinity);
}

/* ---- Bits in the order of the values ------------------------------------------------------------------------ */

static uint64_t order(const struct tsr_values *v, uint64_t bits)
{
    const uint64_t sign = (uint64_t)1 << (v->bits - 1);
    if (v->is_float && bits & sign) return ~bits & (sign | (sign - 1));
    return v->is_float || v->is_signed ? bits ^ sign : bits;
}

static uint64_t disorder(const struct tsr_values *v, uint64_t word)
{
    const uint64_t sign = (uint64_t)1 << (v->bits - 1);
    if (v->is_float && !(word & sign)) return ~word & (sign | (sign - 1));
    return v->is_float || v->is_signed ? word ^ sign : word;
}

static void split_ordered(const struct tsr_values *v, const uint8_t *bytes, size_t count, uint8_t *raster)
{
    uint8_t *const low = raster + 4 * count;
    for (size_t i = 0; i < count; i++) {
        const uint64_t word = order(v, tsr_value_bits(v, bytes + i * (v->bits / 8)));
        put(raster + 4 * i, 4, false, v->bits == 64 ? word >> 32 : word);
        if (v->bits == 64) put(low + 4 * i, 4, false, word);
    }
}

static void join_ordered(const struct tsr_values *v, const uint8_t *raster, size_t count, uint8_t *bytes)
{
    const uint8_t *const low = raster + 4 * count;
    for (size_t i = 0; i < count; i++) {
        uint64_t word = get(raster + 4 * i, 4, false);
        if (v->bits == 64) word = word << 32 | get(low + 4 * i, 4, false);
        put_value(v, bytes + i * (v->bits / 8), disorder(v, word));
    }
}

/* ---- Multiples of a step ------------------------------------------------------------------------------------ */

/* The number of a value that is a multiple, and is not listed. */
static bool number_of(const struct tsr_values *v, uint64_t bits, int64_t *number)
{
    uint64_t whole = bits;
    if (v->is_float) {
        struct tsr_number n;
        if (!tsr_take_float(v->bits, bits, &n)) return false;
        const int shift = n.magnitude == 0 ? 0 : n.exponent - v->exponent;
        if (shift < 0 || shift > 63) return false;
        whole = n.magnitude << shift;
        if (n.is_negative) whole = 0 - whole;
    } else if (v->bits == 32) {
        return false; /* coded as they are */
    }
    /* the differences are below 2^63 either way, and multiples of the step */
    const uint64_t above = whole - v->base;
    const bool is_below = above >> 63;
    const uint64_t distance = is_below ? 0 - above : above, times = v->step == 1 ? distance : distance / v->step;
    if (times >> 32 || times * v->step != distance) return false;
    *number = is_below ? -(int64_t)times : (int64_t)times;
    return true;
}

static uint64_t unlisted(const struct tsr_values *v, int64_t number)
{
    const uint64_t whole = v->step * (uint64_t)number + v->base;
    if (!v->is_float) return whole;
    const bool is_negative = whole >> 63;
    return tsr_make_float(v->bits, is_negative, is_negative ? 0 - whole : whole, v->exponent);
}

/* The number of a value that is not listed: of a rounded multiple it is one of the nearest. */
static bool number_near(const struct tsr_values *v, uint64_t bits, int64_t *number)
{
    struct tsr_number n;
    if (!v->is_float || !tsr_take_float(v->bits, bits, &n)) return false;
    const int shift = n.exponent - v->exponent;
    if (shift > 62 || shift < -62 || (shift > 0 && n.magnitude >= (uint64_t)1 << (62 - shift))) return false;
    const int64_t size = (int64_t)(shift < 0 ? n.magnitude >> -shift : n.magnitude << shift),
                  above = (n.is_negative ? -size : size) - (int64_t)v->base;
    if (v->step >> 62 || above / (int64_t)v->step > UINT32_MAX || above / (int64_t)v->step < -(int64_t)UINT32_MAX)
        return false;
    const int64_t near = above / (int64_t)v->step;
    for (*number = near - 1; *number <= near + 1; ++*number)
        if (unlisted(v, *number) == bits) return true;
    return false;
}

bool tsr_number_of_value(const struct tsr_values *v, uint64_t bits, int64_t *number)
{
    return number_of(v, bits, number) || number_near(v, bits, number);
}

static bool find_listed(const struct tsr_values *v, uint64_t bits, int64_t *number)
{
    for (uint32_t k = 0; k < v->listed; k++)
        if (v->list[k] == bits) {
            *number = v->first + k;
            return true;
        }
    return false;
}

static uint64_t value_of(const struct tsr_values *v, int64_t number)
{
    const int64_t listed = number - v->first;
    return listed >= 0 && listed < v->listed ? v->list[listed] : unlisted(v, number);
}

static int64_t sample_of(const struct tsr_image *image, const uint8_t *raster, size_t i)
{
    const unsigned bits = image->bits_allocated;
    const uint64_t word = get(raster + i * (bits / 8), bits / 8, false), sign = (uint64_t)1 << (bits - 1);
    return image->is_signed && word & sign ? (int64_t)word - (int64_t)(2 * sign) : (int64_t)word;
}

/* ---- Both --------------------------------------------------------------------------------------------------- */

bool tsr_values_split(const struct tsr_values *v, const struct tsr_image *coded, const uint8_t *bytes, size_t count,
                      uint8_t *raster)
{
    const size_t width = v->bits / 8, sample = coded->bits_allocated / 8;
    if (v->form == TSR_VALUES_ORDERED) {
        split_ordered(v, bytes, count, raster);
        return true;
    }
    for (size_t i = 0; i < count; i++) {
        const uint64_t bits = tsr_value_bits(v, bytes + i * width);
        int64_t number = 0;
        const bool is_listed = find_listed(v, bits, &number);
        if (!is_listed && !tsr_number_of_value(v, bits, &number)) return false;
        put(raster + i * sample, sample, false, (uint64_t)number);
        const bool has_room = sample_of(coded, raster, i) == number;
        if (!has_room || (!is_listed && number >= v->first && number - v->first < v->listed)) return false;
    }
    return true;
}

void tsr_values_join(const struct tsr_values *v, const struct tsr_image *coded, const uint8_t *raster, size_t count,
                     uint8_t *bytes)
{
    if (v->form == TSR_VALUES_ORDERED) {
        join_ordered(v, raster, count, bytes);
        return;
    }
    for (size_t i = 0; i < count; i++)
        put_value(v, bytes + i * (v->bits / 8), value_of(v, sample_of(coded, raster, i)));
}

struct tsr_image tsr_image_of_values(const struct tsr_values *v, const struct tsr_image *coded)
{
    struct tsr_image image = *coded;
    if (v->form == TSR_VALUES_NONE) return image;
    image.bits_allocated = image.bits_stored = v->bits;
    image.high_bit = (uint8_t)(v->bits - 1);
    image.is_float = v->is_float;
    image.is_signed = v->is_signed;
    image.big_endian = v->big_endian;
    if (v->form == TSR_VALUES_ORDERED && v->bits == 64) {
        image.components = 1;
        image.planar = false;
    }
    return image;
}

bool tsr_values_fit(const struct tsr_values *v, const struct tsr_image *coded)
{
    const unsigned bits = coded->bits_allocated;
    if (bits < 8 || coded->bits_stored != bits || coded->big_endian || coded->swapped || coded->stacked_rows)
        return false;
    if (v->form == TSR_VALUES_SCALED) return true;
    if (bits != 32 || coded->is_signed) return false;
    return v->bits == 32 || (coded->components == 2 && coded->planar);
}

/* ---- The node ----------------------------------------------------------------------------------------------- */

static enum tsr_status join(const struct tsr_node_work *work, const struct tsr_node_parts *parts,
                            struct tsr_bytes *bytes, struct tsr_error *error)
{
    const struct tsr_image image = tsr_image_of_values(work->values, work->image);
    const size_t size = tsr_raster_bytes(&image);
    TSR_TRY(tsr_bytes_reserve(bytes, size, error));
    tsr_values_join(work->values, work->image, parts->plain, size / (work->values->bits / 8),
                    bytes->bytes + bytes->size);
    bytes->size += size;
    return TSR_OK;
}

static uint64_t memory(const struct tsr_node_work *work, uint64_t bytes, bool joins)
{
    (void)work, (void)bytes, (void)joins;
    return 0;
}

const struct tsr_node tsr_node_values = {.name = "values", .join = join, .memory = memory};
