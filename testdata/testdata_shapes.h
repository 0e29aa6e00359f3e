/* Canvases of signed grey shades, and soft-edged ellipsoids to paint on them. */
#ifndef TESTDATA_SHAPES_H
#define TESTDATA_SHAPES_H

#include <stdbool.h>
#include <stdint.h>

struct canvas {
    int columns, rows;
    int32_t *shades;
};

/* Places and radii in thousandths of the canvas' width, height and, for z, of the depth of the volume. */
struct ellipsoid {
    int x, y, z, radius_x, radius_y, radius_z;
    int shade;
};

struct canvas canvas_new(int columns, int rows, int shade);
void canvas_free(struct canvas *canvas);

/* Paints the cut through an ellipsoid at depth z; pixels at its edge mix both shades, as partial volumes do. */
void paint_ellipsoid(struct canvas *canvas, const struct ellipsoid *shape, int z);

/* Adds to the shades within a disc, most at its centre; place and radius in pixels. */
void add_soft_disc(struct canvas *canvas, int x, int y, int radius, int shade);

/* Box filters, twice, which is close to a Gaussian. */
void blur(struct canvas *canvas, int radius);

/* A binomial filter of 3 x 3: about the spread of a scanner's point. */
void soften(struct canvas *canvas);

/* Fills a rectangle of pixels. */
void fill_box(struct canvas *canvas, int x, int y, int width, int height, int shade);

/* Draws text of capital letters and digits, 5 x 7 dots each, "size" pixels a dot. */
void draw_text(struct canvas *canvas, int x, int y, int size, int shade, const char *text);

#endif
