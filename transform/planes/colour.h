/* Reversible colour transforms of three components, chosen per frame. FORMAT.md section 6.3.
 *
 * The components have B bits (0 .. 2^B - 1). Differences are wrapped to C = min(B + 1, 16) bits, which loses
 * nothing for B < 16, and biased by 2^(C-1), so that planes stay unsigned 16-bit. All steps are
 * liftings modulo a power of two, hence exact for B = 16 as well. */
#ifndef TSR_TRANSFORM_PLANES_COLOUR_H
#define TSR_TRANSFORM_PLANES_COLOUR_H

#include "transform/hd.h"

enum tsr_colour {
    TSR_COLOUR_NONE = 0,
    TSR_COLOUR_GREEN = 1, /* G, R - G, B - G */
    TSR_COLOUR_RCT = 2,   /* JPEG 2000's reversible transform: G + (U + V)/4, U = B - G, V = R - G */
    TSR_COLOUR_YCOCG = 3, /* YCoCg-R: Malvar and Sullivan 2003 */
    TSR_COLOUR_COUNT = 4
};

/* Bits of a difference plane. */
TSR_HD int tsr_chroma_bits(int bits)
{
    return bits < 16 ? bits + 1 : 16;
}

/* value modulo 2^bits, in -2^(bits-1) .. 2^(bits-1) - 1. */
TSR_HD int32_t tsr_wrap(int32_t value, int bits)
{
    int32_t half = (int32_t)1 << (bits - 1);
    return ((value + half) & ((half << 1) - 1)) - half;
}

/* component[0..2] = R, G, B to the three planes, in place. */
TSR_HD void tsr_colour_forward(int32_t component[3], enum tsr_colour colour, int bits)
{
    const int chroma = tsr_chroma_bits(bits);
    const int32_t bias = (int32_t)1 << (chroma - 1), mask = ((int32_t)1 << bits) - 1;
    const int32_t r = component[0], g = component[1], b = component[2];
    int32_t y = g, u, v;
    switch (colour) {
    case TSR_COLOUR_GREEN:
        u = tsr_wrap(r - g, chroma);
        v = tsr_wrap(b - g, chroma);
        break;
    case TSR_COLOUR_RCT:
        u = tsr_wrap(b - g, chroma);
        v = tsr_wrap(r - g, chroma);
        y = (g + tsr_asr(u + v, 2)) & mask;
        break;
    case TSR_COLOUR_YCOCG: {
        u = tsr_wrap(r - b, chroma);
        int32_t t = b + tsr_asr(u, 1);
        v = tsr_wrap(g - t, chroma);
        y = (t + tsr_asr(v, 1)) & mask;
        break;
    }
    default:
        return;
    }
    component[0] = y;
    component[1] = u + bias;
    component[2] = v + bias;
}

/* The components again, each in 0 .. 2^bits - 1. Planes of a lossy frame are only near their true values: there
 * clamp is set, and a component that leaves the range is clamped instead of wrapped. */
TSR_HD void tsr_colour_inverse(int32_t component[3], enum tsr_colour colour, int bits, bool clamp)
{
    const int chroma = tsr_chroma_bits(bits);
    const int32_t bias = (int32_t)1 << (chroma - 1), top = ((int32_t)1 << bits) - 1;
    const int32_t y = component[0], u = component[1] - bias, v = component[2] - bias;
    int32_t r, g, b;
    switch (colour) {
    case TSR_COLOUR_GREEN:
        g = y;
        r = u + g;
        b = v + g;
        break;
    case TSR_COLOUR_RCT:
        g = y - tsr_asr(u + v, 2);
        r = v + g;
        b = u + g;
        break;
    case TSR_COLOUR_YCOCG: {
        int32_t t = y - tsr_asr(v, 1);
        g = v + t;
        b = t - tsr_asr(u, 1);
        r = b + u;
        break;
    }
    default:
        return;
    }
    component[0] = clamp ? tsr_max(0, tsr_min(top, r)) : r & top;
    component[1] = clamp ? tsr_max(0, tsr_min(top, g)) : g & top;
    component[2] = clamp ? tsr_max(0, tsr_min(top, b)) : b & top;
}

#endif
