/* Canvases of signed grey shades, and soft-edged ellipsoids to paint on them. */
#ifndef TESTDATA_SHAPES_H
#define TESTDATA_SHAPES_H

#include <stdbool.h>
#include <stdint.h>

struct canvas {
    int columns, rows;
    int32_t *shades;
};

/* Places and radii, in thousandths: x of the canvas' width, y of its height, z of the depth of the volume. */
struct ellipsoid {
    int x, y, z, radius_x, radius_y, radius_z;
    int shade;
};

struct canvas canvas_new(int columns, int rows, int shade);
void canvas_free(struct canvas *canvas);

/* Paints the cut through an ellipsoid at depth z. Pixels at its edge mix both shades, as partial volumes do. */
void paint_ellipsoid(struct canvas *canvas, const struct ellipsoid *shape, int z);

/* Adds to the shades within a disc, most at its centre. Place and radius are in pixels. */
void add_soft_disc(struct canvas *canvas, int x, int y, int radius, int shade);

/* Applies a box filter twice, which is close to a Gaussian. */
void blur(struct canvas *canvas, int radius);

/* Applies a binomial filter of 3 x 3, about the point spread of a scanner. */
void soften(struct canvas *canvas);

/* Fills a rectangle of pixels. */
void fill_box(struct canvas *canvas, int x, int y, int width, int height, int shade);

/* Draws text of capital letters and digits. A character has 5 x 7 dots of size x size pixels. */
void draw_text(struct canvas *canvas, int x, int y, int size, int shade, const char *text);

#endif
