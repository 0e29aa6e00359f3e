/* The neighbours of a sample of a drawn plane: those that keys are made of, and how the nearest ones are equal. */
#ifndef TSR_TRANSFORM_PREDICT_PLACES_H
#define TSR_TRANSFORM_PREDICT_PLACES_H

#include "transform/hd.h"

enum { TSR_PLACES = 62 };

/* Neighbours as (rows up, columns to the right); the first ones are those of the lower levels. The factors of
 * keys: DRAWN.md 4 and 8. Samples of the row itself come first within each level. */
struct tsr_place {
    int8_t up, right;
    uint32_t factor;
};
static const struct tsr_place tsr_places[TSR_PLACES] = {
    {0, -1, 0x9e3779b1u}, {0, -2, 0xffe733adu}, {1, 0, 0x783bf59bu},  {1, -1, 0x48a0083bu}, {1, 1, 0x093681a7u},
    {1, -2, 0x70a1f885u}, {1, 2, 0x4acfa2dbu},  {2, 0, 0x665e6e07u},  {2, -1, 0x5eccdc4fu}, {2, 1, 0x76be44e3u},
    {0, -3, 0x50aad317u}, {0, -4, 0x719bbb01u}, {1, -3, 0x550fe11fu}, {1, 3, 0x32d3b619u},  {2, -2, 0xc2d03debu},
    {2, 2, 0xd885d9c3u},  {3, 0, 0x7d26bb6fu},  {3, -1, 0xff016b0fu}, {3, 1, 0x3dce67c3u},  {4, 0, 0xefa43799u},
    {3, -2, 0x107968ebu}, {3, 2, 0xbccf5a57u},  {4, -1, 0x098a0863u}, {4, 1, 0x1f74232bu},  {5, 0, 0x1df111e9u},
    {5, 1, 0xadfd5291u},  {5, -1, 0xa51d6fa9u}, {6, 0, 0xc0391b59u},  {1, 4, 0xb3869e87u},  {1, -4, 0x83cbf733u},
    {2, -3, 0x1dd23ee7u}, {2, 3, 0x13b98bc5u},  {4, 2, 0x5575ec6fu},  {4, -2, 0x82eb73dbu}, {6, 1, 0x3e635f7du},
    {6, -1, 0x267aec49u}, {7, 0, 0x865bd3cdu},  {7, 1, 0xb56db6d5u},  {5, 2, 0x0a090257u},  {5, -2, 0x6506772bu},
    {3, 3, 0x6dd1e5a9u},  {3, -3, 0x2ac464a1u}, {0, -5, 0xc3b8b5d3u}, {0, -6, 0x4cc361b5u}, {1, 5, 0x20285b75u},
    {2, 4, 0x2b44de6du},  {2, -4, 0xe8f30549u}, {3, 4, 0x1e351413u},  {3, -4, 0x0344daabu}, {6, 2, 0xb47ae17du},
    {6, -2, 0x756416a5u}, {7, -1, 0x8e223723u}, {7, 2, 0x4605bc89u},  {7, -2, 0x914a809fu}, {4, 3, 0x6f77ca01u},
    {4, -3, 0xb4854ab9u}, {5, 3, 0x0c39029bu},  {5, -3, 0x9ef22dcdu}, {6, 3, 0xba23fbf9u},  {7, 3, 0xe740a0fbu},
    {1, -5, 0x517bd42du}, {2, -5, 0x9b5b48d9u},
};

/* The nearest ones, and what is expected of the sample. */
struct tsr_drawn_around {
    uint32_t w, n, nw, ne, ww, nn, median;
};

/* How the neighbours of a sample are equal. */
struct tsr_drawn_equal {
    uint32_t above, beside, pattern;
    uint32_t first; /* bit k: candidate k is not equal to one before it */
};

TSR_HD_INLINE struct tsr_drawn_equal tsr_drawn_equal(struct tsr_drawn_around a)
{
    const uint32_t w_n = a.w == a.n, w_nw = a.w == a.nw, w_ne = a.w == a.ne, w_ww = a.w == a.ww, w_nn = a.w == a.nn,
                   n_nw = a.n == a.nw, n_ne = a.n == a.ne, n_nn = a.n == a.nn, nw_ne = a.nw == a.ne,
                   ww_nw = a.ww == a.nw, ww_n = a.ww == a.n;
    const uint32_t again = w_n << 1 | (w_nw | n_nw) << 2 | (w_ne | n_ne | nw_ne) << 3 |
                           (w_ww | ww_n | ww_nw | (uint32_t)(a.ww == a.ne)) << 4 |
                           (w_nn | n_nn | (uint32_t)((a.nw == a.nn) | (a.ne == a.nn) | (a.ww == a.nn))) << 5;
    struct tsr_drawn_equal e = {n_nw | n_ne << 1 | nw_ne << 2, w_n | w_nw << 1 | w_ne << 2 | w_ww << 3, 0, 0};
    e.pattern = e.above | n_nn << 3 | e.beside << 4 | ww_nw << 8 | ww_n << 9 | w_nn << 10;
    const bool differ = (e.above | (e.beside & 7)) == 0;
    e.first = ~again & (differ ? 15 : 63);
    return e;
}

#endif
