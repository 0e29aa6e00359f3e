/* Values of 32 and 64 bits: what form they get, that each bit of them comes back, and items of headers. VALUES.md. */
#include "../one_engine.h"

#include <float.h>
#include <math.h>

#include "io/nodes/values/find_slope.h"
#include "io/nodes/values/float_bits.h"
#include "io/nodes/values/values.h"
#include "transform/image.h"

enum { COLUMNS = 40, ROWS = 30, COUNT_OF_VALUES = COLUMNS * ROWS };

static const struct type {
    uint8_t bits;
    bool is_float, is_signed;
} types[] = {{32, true, false}, {64, true, false}, {64, false, true}, {64, false, false}};

/* ---- Drawn values ------------------------------------------------------------------------------------------- */

enum drawing { WHOLE, QUARTERS, STEPS, FAR, RARE, PAYLOADS, NOISE, TINY, ONE, DRAWINGS };

static uint64_t float_bits(const struct type *t, double value)
{
    const float single = (float)value;
    uint32_t half;
    uint64_t whole;
    memcpy(&half, &single, sizeof half);
    memcpy(&whole, &value, sizeof whole);
    return t->bits == 32 ? half : whole;
}

/* What is no whole number: no numbers, infinities, -0; of integers, the ends. */
static uint64_t rare(const struct type *t, uint32_t which)
{
    const uint64_t sign = (uint64_t)1 << (t->bits - 1), infinity = float_bits(t, INFINITY);
    if (!t->is_float) return which % 2 ? sign : sign - 1;
    const uint64_t all[] = {infinity, infinity | sign, sign, infinity | 1, infinity | 1u << 20, infinity | sign | 5};
    return all[which % COUNT_OF(all)];
}

static uint64_t draw(const struct type *t, enum drawing drawing, size_t i, struct rng *r)
{
    const int64_t number = (int64_t)rng_below(r, 3000) - (t->is_float || t->is_signed ? 1000 : 0);
    switch (drawing) {
    case WHOLE:
        return t->is_float ? float_bits(t, (double)number) : (uint64_t)number;
    case QUARTERS:
        return t->is_float ? float_bits(t, (double)number / 4) : (uint64_t)number * 4;
    case STEPS:
        return t->is_float ? float_bits(t, (double)number * 1000 + 7) : (uint64_t)number * 1000 + 7;
    case FAR:
        return t->is_float ? float_bits(t, (double)number + 8000000) : (uint64_t)number + ((uint64_t)1 << 60);
    case RARE:
        if (i % 5 == 0) return rare(t, rng_below(r, 6));
        return draw(t, WHOLE, i, r);
    case PAYLOADS: /* more than can be listed */
        return t->is_float ? float_bits(t, INFINITY) | (1 + rng_below(r, 100)) : rng_next(r) | (uint64_t)1 << 62;
    case TINY: /* denormal numbers */
        return t->is_float ? rng_below(r, 5000) : rng_below(r, 2);
    case ONE:
        return t->is_float ? float_bits(t, 0.1) : 12345;
    default:
        return t->bits == 32 ? (uint32_t)rng_next(r) : rng_next(r);
    }
}

static void put_bits(uint8_t *to, const struct type *t, bool big_endian, uint64_t bits)
{
    const unsigned bytes = t->bits / 8;
    for (unsigned k = 0; k < bytes; k++) to[big_endian ? bytes - 1 - k : k] = (uint8_t)(bits >> (8 * k));
}

static struct bytes draw_all(const struct type *t, enum drawing drawing, bool big_endian, struct rng *r)
{
    const size_t width = t->bits / 8;
    struct bytes b = {must(malloc(COUNT_OF_VALUES * width)), COUNT_OF_VALUES * width};
    for (size_t i = 0; i < COUNT_OF_VALUES; i++) put_bits(b.data + i * width, t, big_endian, draw(t, drawing, i, r));
    return b;
}

static struct tsr_image image_of(const struct type *t, bool big_endian)
{
    return (struct tsr_image){.columns = COLUMNS,
                              .rows = ROWS,
                              .frames = 1,
                              .components = 1,
                              .bits_allocated = t->bits,
                              .bits_stored = t->bits,
                              .high_bit = (uint8_t)(t->bits - 1),
                              .is_signed = t->is_signed,
                              .big_endian = big_endian,
                              .is_float = t->is_float};
}

/* ---- The form, and back ------------------------------------------------------------------------------------- */

/* What the encoder finds, a part of the values at once. */
static struct tsr_values find(struct bytes b, const struct tsr_image *image, struct tsr_image *coded)
{
    struct tsr_values_seen seen = {.values = {.bits = image->bits_allocated,
                                              .is_float = image->is_float,
                                              .is_signed = image->is_signed,
                                              .big_endian = image->big_endian}};
    const size_t width = image->bits_allocated / 8, part = 7 * width;
    for (size_t at = 0; at < b.size; at += part)
        tsr_see_values(&seen, b.data + at, (b.size - at < part ? b.size - at : part) / width);
    *coded = *image;
    return tsr_values_of(&seen, coded);
}

static bool same_values(const struct tsr_values *a, const struct tsr_values *b)
{
    return a->form == b->form && a->bits == b->bits && a->is_float == b->is_float && a->is_signed == b->is_signed &&
           a->big_endian == b->big_endian && a->step == b->step && a->base == b->base && a->exponent == b->exponent &&
           a->listed == b->listed && a->first == b->first && memcmp(a->list, b->list, sizeof a->list) == 0;
}

static void check_item(const struct tsr_values *v)
{
    uint8_t item[256];
    struct tsr_values read;
    const size_t size = tsr_put_values(item, v);
    struct tsr_cursor whole = {item, size, 0, false}, part = {item, size - 1, 0, false};
    expect(tsr_get_values(&whole, &read) && !whole.bad && whole.at == size, "%zu bytes are not valid", size);
    expect(v->form != TSR_VALUES_SCALED || same_values(v, &read), "an item of %zu bytes tells something else", size);
    expect(!tsr_get_values(&part, &read) || part.bad, "an item that is cut");
}

static void check(const struct type *t, enum drawing drawing, bool big_endian, struct rng *r)
{
    const struct bytes b = draw_all(t, drawing, big_endian, r);
    const struct tsr_image image = image_of(t, big_endian);
    struct tsr_image coded;
    const struct tsr_values v = find(b, &image, &coded);
    const struct tsr_image again = tsr_image_of_values(&v, &coded);
    uint8_t *const raster = must(malloc(tsr_raster_bytes(&coded))), *const back = must(malloc(b.size));
    expect(v.form != TSR_VALUES_NONE && tsr_values_fit(&v, &coded), "drawing %d of %u bits has no form", drawing,
           t->bits);
    expect(tsr_check_coded_image(&coded, NULL) == TSR_OK && memcmp(&again, &image, sizeof image) == 0,
           "drawing %d of %u bits: another image", drawing, t->bits);
    expect(tsr_values_split(&v, &coded, b.data, COUNT_OF_VALUES, raster), "drawing %d of %u bits", drawing, t->bits);
    tsr_values_join(&v, &coded, raster, COUNT_OF_VALUES, back);
    expect(memcmp(back, b.data, b.size) == 0, "drawing %d of %u bits does not come back", drawing, t->bits);
    const bool scaled = drawing != NOISE && drawing != PAYLOADS;
    expect((v.form == TSR_VALUES_SCALED) == scaled, "drawing %d of %u bits has form %d", drawing, t->bits, v.form);
    if (drawing == WHOLE) expect(coded.bits_allocated == 16 && v.base == 0 && v.step == 1, "whole numbers");
    if (drawing == STEPS) expect(coded.bits_allocated == 16, "multiples of a step");
    check_item(&v);
    free(back);
    free(raster);
    free(b.data);
}

TEST(each_type)
{
    struct rng r = {46};
    for (int round = 0; round < 20; round++)
        for (size_t t = 0; t < COUNT_OF(types); t++)
            for (int d = 0; d < DRAWINGS; d++) check(&types[t], (enum drawing)d, round % 2, &r);
}

/* A value that the form does not have is refused, not changed. */
TEST(others)
{
    struct rng r = {47};
    for (size_t t = 0; t < COUNT_OF(types); t++) {
        const struct bytes b = draw_all(&types[t], WHOLE, false, &r);
        const struct tsr_image image = image_of(&types[t], false);
        struct tsr_image coded;
        const struct tsr_values v = find(b, &image, &coded);
        uint8_t *const raster = must(malloc(tsr_raster_bytes(&coded)));
        put_bits(b.data, &types[t], false, types[t].is_float ? float_bits(&types[t], 0.1) : (uint64_t)1 << 50);
        expect(!tsr_values_split(&v, &coded, b.data, COUNT_OF_VALUES, raster), "%u bits", types[t].bits);
        free(raster);
        free(b.data);
    }
}

/* ---- Rounded multiples -------------------------------------------------------------------------------------- */

static void check_slope(float slope, float base, int32_t low, bool is_found, struct rng *r)
{
    static struct tsr_distinct distinct;
    struct tsr_values_seen seen = {.values = {.bits = 32, .is_float = true}};
    struct tsr_image coded = image_of(&types[0], false);
    uint8_t values[4 * COUNT_OF_VALUES], raster[4 * COUNT_OF_VALUES], back[4 * COUNT_OF_VALUES];
    for (size_t i = 0; i < COUNT_OF_VALUES; i++) {
        const float value = (float)((double)(low + (int32_t)rng_below(r, 600)) * slope + base);
        put_bits(values + 4 * i, &types[0], false, i == 7 ? 0x7fc00000 : float_bits(&types[0], value));
    }
    memset(&distinct, 0, sizeof distinct);
    tsr_add_distinct(&distinct, &seen, values, COUNT_OF_VALUES);
    const bool found = tsr_find_slope(&distinct, &seen);
    expect(found || !is_found, "%g n + %g is not found", (double)slope, (double)base);
    if (!found) return;
    const struct tsr_values v = tsr_values_of(&seen, &coded);
    expect(coded.bits_allocated == 16 && v.listed == 1, "%g n + %g: %u bits", (double)slope, (double)base,
           coded.bits_allocated);
    expect(tsr_values_split(&v, &coded, values, COUNT_OF_VALUES, raster), "%g n + %g", (double)slope, (double)base);
    tsr_values_join(&v, &coded, raster, COUNT_OF_VALUES, back);
    expect(memcmp(back, values, sizeof back) == 0, "%g n + %g does not come back", (double)slope, (double)base);
}

/* Numbers n a + b, each of which was rounded, are whole numbers n of 16 bits. */
TEST(slopes)
{
    struct rng r = {51};
    for (int i = 0; i < 300; i++) {
        const float slope = ldexpf((float)(1 + rng_below(&r, (1 << 24) - 1)), rng_between(&r, -60, 30));
        check_slope(slope, 0, rng_between(&r, -700, 700), true, &r);
        check_slope(slope, -1024 * slope, 0, true, &r);
        check_slope(slope, slope * 0.3f, -300, false, &r);
    }
}

/* ---- Rounding ----------------------------------------------------------------------------------------------- */

/* The compiler's numbers are the witness: long double holds 64 bits, and a conversion of it rounds once. */
TEST(rounding)
{
    struct rng r = {48};
    for (int i = 0; i < 400000 && LDBL_MANT_DIG >= 64; i++) {
        const bool is_single = i % 2;
        const uint64_t magnitude = rng_next(&r) >> rng_below(&r, 64);
        const int exponent = is_single ? rng_between(&r, -220, 140) : rng_between(&r, -1150, 1030);
        const long double value = ldexpl((long double)magnitude, exponent);
        const struct type *const t = &types[is_single ? 0 : 1];
        const float single = (float)value;
        const double wide = (double)value;
        uint32_t half;
        uint64_t bits;
        memcpy(&half, &single, sizeof half);
        memcpy(&bits, &wide, sizeof bits);
        if (is_single) bits = half;
        const uint64_t made = tsr_make_float(t->bits, i % 4 < 2, magnitude, exponent),
                       sign = i % 4 < 2 && magnitude > 0 ? (uint64_t)1 << (t->bits - 1) : 0;
        expect(made == (bits | sign), "%llu * 2^%d is %llx, not %llx", (unsigned long long)magnitude, exponent,
               (unsigned long long)made, (unsigned long long)bits);
    }
}

/* ---- Items -------------------------------------------------------------------------------------------------- */

/* Whatever an item says, joining reads and writes what the images say. */
TEST(damaged_items)
{
    struct rng r = {49};
    int taken = 0;
    for (int i = 0; i < 20000; i++) {
        const struct type *const t = &types[i % 4];
        struct tsr_values v = {.form = TSR_VALUES_SCALED,
                               .bits = t->bits,
                               .is_float = t->is_float,
                               .is_signed = t->is_signed,
                               .step = 3,
                               .listed = 2,
                               .first = -5};
        uint8_t item[256], raster[8] = {1, 2, 3, 200, 250, 255, 0, 9}, values[64];
        const size_t size = tsr_put_values(item, &v);
        item[rng_below(&r, (uint32_t)size)] = (uint8_t)rng_next(&r);
        struct tsr_cursor c = {item, size, 0, false};
        struct tsr_image image = {.columns = 2,
                                  .rows = 1,
                                  .frames = 1,
                                  .components = 1,
                                  .bits_allocated = 16,
                                  .bits_stored = 16,
                                  .high_bit = 15,
                                  .is_signed = i % 3 == 0};
        if (!tsr_get_values(&c, &v) || c.bad || c.at != size || !tsr_values_fit(&v, &image)) continue;
        tsr_values_join(&v, &image, raster, 2, values);
        taken++;
    }
    assert_true(taken > 1000 && taken < 19000);
}

/* ---- Rasters of the caller's -------------------------------------------------------------------------------- */

static void check_raster(const struct type *t, enum drawing drawing, struct rng *r)
{
    const struct bytes b = draw_all(t, drawing, false, r);
    const struct tsr_image image = image_of(t, false);
    const struct bytes tsr = compress_bytes_by(engine, b, &(struct tsr_source_options){.raster = &image},
                                               &(struct tsr_coding){.path = TSR_PATH_PREDICT});
    struct bytes restored;
    bool damaged;
    assert_int_equal(restore_bytes(engine, tsr.data, tsr.size, &restored, &damaged), TSR_OK);
    expect(equal(restored, b), "drawing %d of %u bits", drawing, t->bits);
    free(restored.data);
    free(tsr.data);
    free(b.data);
}

TEST(rasters)
{
    struct rng r = {50};
    for (size_t t = 0; t < COUNT_OF(types); t++)
        for (int d = 0; d < DRAWINGS; d++) check_raster(&types[t], (enum drawing)d, &r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_type),     cmocka_unit_test(others),  cmocka_unit_test(rounding),
        cmocka_unit_test(damaged_items), cmocka_unit_test(rasters), cmocka_unit_test(slopes),
    };
    return cmocka_run_group_tests(tests, create_engine, destroy_engine);
}
