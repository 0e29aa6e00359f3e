/* Painters: what the images of the set show. Each fills the planes of one frame. */
#ifndef TESTDATA_SCENE_H
#define TESTDATA_SCENE_H

#include <stdint.h>

#include "testdata_shapes.h"

struct scene {
    struct canvas *planes; /* one a component, all of one size, all 0 */
    int components;
    int frame, frames; /* which slice or point of time this is */
    int32_t top;       /* the largest sample */
    uint64_t seed;
};

typedef void painter(const struct scene *scene);

/* Paints all frames. Frees are the caller's: planes_free. */
struct canvas *planes_paint(painter *paint, int columns, int rows, int components, int frames, int32_t top,
                            uint64_t seed);
void planes_free(struct canvas *planes, int count);

/* Medical ones: testdata_phantoms.c. */
painter paint_ct;          /* CT numbers: -1024 to 2047, and -2000 outside the circle of reconstruction */
painter paint_ct_unsigned; /* the same plus 1024, from 0 to top */
painter paint_ct_masked;   /* the same as words of 12 bits, whose higher bits do not continue the sign */
painter paint_ct_overlay;  /* paint_ct_unsigned, and graphics in bit 12 */
painter paint_ct_high;     /* paint_ct_unsigned in the upper 12 bits of 16, above noise */
painter paint_mr;
painter paint_chest; /* stretched after digitising: most shades never occur */
painter paint_breast;
painter paint_ultrasound;
painter paint_nuclear;
painter paint_dose;     /* up to 2^31 */
painter paint_segments; /* 0 and 1 */

/* Others: testdata_pictures.c. Where there are two or four components, the last is opacity. */
painter paint_landscape; /* like a photograph */
painter paint_texture;
painter paint_ramp;
painter paint_noise;    /* all shades alike */
painter paint_extremes; /* 0 and top at random */
painter paint_checker;  /* 0 and top in turn */
painter paint_constant;
painter paint_black;
painter paint_screen;   /* like a screenshot */
painter paint_outliers; /* smooth, with a few wild samples */
painter paint_signed;   /* smooth around 0 */

#endif
