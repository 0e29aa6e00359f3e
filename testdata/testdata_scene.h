/* Painters of the images in the set. A painter fills the planes of one frame. */
#ifndef TESTDATA_SCENE_H
#define TESTDATA_SCENE_H

#include <stdint.h>

#include "testdata_shapes.h"

struct scene {
    struct canvas *planes; /* one a component, all of the same size, filled with 0 */
    int components;
    int frame, frames; /* the slice, or the point in time */
    int32_t top;       /* the largest sample */
    uint64_t seed;
};

typedef void painter(const struct scene *scene);

/* Paints all frames. The caller frees the planes with planes_free. */
struct canvas *planes_paint(painter *paint, int columns, int rows, int components, int frames, int32_t top,
                            uint64_t seed);
void planes_free(struct canvas *planes, int count);

/* Medical images: testdata_phantoms.c. */
painter paint_ct;          /* CT numbers: -1024 to 2047, and -2000 outside the circle of reconstruction */
painter paint_ct_unsigned; /* the same plus 1024, from 0 to top */
painter paint_ct_masked;   /* the same as words of 12 bits; the higher bits do not repeat the sign */
painter paint_ct_overlay;  /* paint_ct_unsigned with graphics in bit 12 */
painter paint_ct_high;     /* paint_ct_unsigned in the upper 12 bits of 16, above noise */
painter paint_mr;
painter paint_chest; /* digitised coarsely and stretched: most shades never occur */
painter paint_breast;
painter paint_ultrasound;
painter paint_nuclear;
painter paint_dose;     /* up to 2^31 */
painter paint_segments; /* 0 and 1 */

/* Other images: testdata_pictures.c. With two or four components, the last one is opacity. */
painter paint_landscape; /* like a photograph */
painter paint_texture;
painter paint_ramp;
painter paint_noise;    /* all shades equally often */
painter paint_extremes; /* 0 and top at random */
painter paint_checker;  /* 0 and top alternate */
painter paint_constant;
painter paint_black;
painter paint_screen;   /* like a screenshot */
painter paint_outliers; /* smooth, with a few random samples */
painter paint_signed;   /* smooth around 0 */

/* Sparse images: set_sparse.c. */
painter paint_mask;
painter paint_labels;

#endif
