/* transform/planes/colour.h against FORMAT.md 6.3; every transform is reversible at every depth. */
#include "tests/unit/support.h"

#include "transform/planes/colour.h"

static int64_t modulo(int64_t value, int64_t range)
{
    const int64_t rest = value % range;
    return rest < 0 ? rest + range : rest;
}

static int64_t wrap(int64_t value, int bits)
{
    const int64_t half = (int64_t)1 << (bits - 1);
    return modulo(value + half, 2 * half) - half;
}

static void forward_plainly(const int32_t rgb[3], int colour, int bits, int64_t out[3])
{
    const int chroma = bits + 1 < 16 ? bits + 1 : 16;
    const int64_t r = rgb[0], g = rgb[1], b = rgb[2], bias = (int64_t)1 << (chroma - 1), values = (int64_t)1 << bits;
    int64_t y = 0, u = 0, v = 0;
    if (colour == 1) {
        y = g;
        u = wrap(r - g, chroma);
        v = wrap(b - g, chroma);
    } else if (colour == 2) {
        u = wrap(b - g, chroma);
        v = wrap(r - g, chroma);
        y = modulo(g + floor_shift(u + v, 2), values);
    } else if (colour == 3) {
        u = wrap(r - b, chroma);
        const int64_t t = b + floor_shift(u, 1);
        v = wrap(g - t, chroma);
        y = modulo(t + floor_shift(v, 1), values);
    }
    out[0] = colour ? y : r;
    out[1] = colour ? u + bias : g;
    out[2] = colour ? v + bias : b;
}

static void check(int32_t r, int32_t g, int32_t b, enum tsr_colour colour, int bits)
{
    const int32_t rgb[3] = {r, g, b};
    int32_t planes[3] = {r, g, b}, back[3], clamped[3];
    int64_t plain[3];
    tsr_colour_forward(planes, colour, bits);
    forward_plainly(rgb, (int)colour, bits, plain);
    memcpy(back, planes, sizeof back);
    memcpy(clamped, planes, sizeof clamped);
    tsr_colour_inverse(back, colour, bits, false);
    tsr_colour_inverse(clamped, colour, bits, true);
    for (int c = 0; c < 3; c++) {
        const int plane_bits = c == 0 || colour == TSR_COLOUR_NONE ? bits : tsr_chroma_bits(bits);
        expect(planes[c] == plain[c] && planes[c] >> plane_bits == 0, "(%d %d %d) of %d bits, transform %d", r, g, b,
               bits, (int)colour);
        expect(back[c] == rgb[c], "(%d %d %d) of %d bits, transform %d", r, g, b, bits, (int)colour);
        /* below 16 bits nothing wraps, so clamping changes nothing */
        if (bits < 16) expect(clamped[c] == rgb[c], "(%d %d %d) of %d bits, transform %d", r, g, b, bits, (int)colour);
    }
}

static const enum tsr_colour colours[] = {TSR_COLOUR_NONE, TSR_COLOUR_GREEN, TSR_COLOUR_RCT, TSR_COLOUR_YCOCG};

TEST(shallow_samples_exhaustively)
{
    for (int bits = 1; bits <= 5; bits++) {
        const int32_t n = 1 << bits;
        for (size_t i = 0; i < COUNT_OF(colours); i++)
            for (int32_t r = 0; r < n; r++)
                for (int32_t g = 0; g < n; g++)
                    for (int32_t b = 0; b < n; b++) check(r, g, b, colours[i], bits);
    }
}

TEST(deep_samples)
{
    struct rng r = {5};
    for (int bits = 6; bits <= 16; bits++) {
        const int32_t top = (1 << bits) - 1, half = 1 << (bits - 1);
        const int32_t extremes[] = {0, 1, half - 1, half, half + 1, top - 1, top};
        for (size_t i = 0; i < COUNT_OF(colours); i++) {
            for (size_t e = 0; e < 7 * 7 * 7; e++)
                check(extremes[e % 7], extremes[e / 7 % 7], extremes[e / 49], colours[i], bits);
            for (int k = 0; k < 5000; k++)
                check(rng_between(&r, 0, top), rng_between(&r, 0, top), rng_between(&r, 0, top), colours[i], bits);
        }
    }
}

/* Lossy planes may give colours outside the range: these are clamped. */
TEST(lossy_planes_are_clamped)
{
    struct rng r = {6};
    for (int i = 0; i < 100000; i++) {
        const int32_t y = rng_between(&r, 0, 255), u = rng_between(&r, 0, 511), v = rng_between(&r, 0, 511);
        const int32_t du = u - 256, dv = v - 256;
        int32_t green[3] = {y, u, v}, rct[3] = {y, u, v}, ycocg[3] = {y, u, v};
        tsr_colour_inverse(green, TSR_COLOUR_GREEN, 8, true);
        tsr_colour_inverse(rct, TSR_COLOUR_RCT, 8, true);
        tsr_colour_inverse(ycocg, TSR_COLOUR_YCOCG, 8, true);
        const int64_t g = y - floor_shift(du + dv, 2), t = y - floor_shift(dv, 1), b = t - floor_shift(du, 1);
        const int64_t expected[3][3] = {{du + y, y, dv + y}, {dv + g, g, du + g}, {b + du, dv + t, b}};
        for (int c = 0; c < 3; c++) {
            assert_int_equal(green[c], clamp_to(expected[0][c], 0, 255));
            assert_int_equal(rct[c], clamp_to(expected[1][c], 0, 255));
            assert_int_equal(ycocg[c], clamp_to(expected[2][c], 0, 255));
        }
    }
}

TEST(wrapping)
{
    for (int bits = 1; bits <= 16; bits++)
        for (int32_t v = -140000; v <= 140000; v += bits < 8 ? 1 : 7)
            assert_int_equal(tsr_wrap(v, bits), wrap(v, bits));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(shallow_samples_exhaustively), cmocka_unit_test(deep_samples),
                                       cmocka_unit_test(lossy_planes_are_clamped), cmocka_unit_test(wrapping)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
