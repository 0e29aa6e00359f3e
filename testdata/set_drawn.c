/* Drawn images, whose samples repeat values instead of being near them: text, drawings, icons, masks, counts that are
 * mostly 0, ultrasound below text and colours. Names begin with the kind, as tests/bench/lossless.py groups them. */
#include <stdio.h>
#include <stdlib.h>

#include "testdata_bytes.h"
#include "testdata_integer.h"
#include "testdata_noise.h"
#include "testdata_scene.h"
#include "testdata_sets.h"

/* ---- Painters ----------------------------------------------------------------------------------------------- */

/* A page of lines of words in two values; paragraphs differ in size. gaps: letters stand as many pixels further apart,
 * at most, at random. */
static void paint_lines(const struct scene *scene, uint32_t gaps)
{
    static const char letters[] = "AABCDEEEFGHIILMNNOPRRSSTTTU0123";
    struct canvas *plane = scene->planes;
    struct random random = {scene->seed};
    const int margin = plane->columns / 16;
    fill_box(plane, 0, 0, plane->columns, plane->rows, scene->top);
    for (int y = margin; y < plane->rows - margin - 14;) {
        const int size = random_below(&random, 4) == 0 ? 2 : 1, lines = 2 + (int)random_below(&random, 5);
        for (int line = 0; line < lines && y < plane->rows - margin - 14; line++, y += 10 * size) {
            const int end = plane->columns - margin - (int)random_below(&random, (uint32_t)margin + 1);
            for (int x = margin; x < end; x += 6 * size) {
                char word[12];
                const int length = 1 + (int)random_below(&random, 9);
                for (int i = 0; i < length; i++) word[i] = letters[random_below(&random, sizeof letters - 1)];
                word[length] = 0;
                if (x + (6 * size + (int)gaps) * length > end) break;
                for (int i = 0; i < length; i++) {
                    const char letter[2] = {word[i]};
                    draw_text(plane, x, y, size, 0, letter);
                    x += 6 * size + (int)random_below(&random, gaps + 1);
                }
            }
        }
        y += 8;
    }
}

static void paint_text(const struct scene *scene)
{
    paint_lines(scene, 0);
}

static void paint_words(const struct scene *scene)
{
    paint_lines(scene, 2);
}

/* Squares of 24 greys that lie over each other. */
static void paint_squares(const struct scene *scene)
{
    enum { SQUARES = 160, GREYS = 24 };
    struct canvas *plane = scene->planes;
    struct random random = {scene->seed};
    for (int i = 0; i < SQUARES; i++) {
        const int side = 5 + (int)random_below(&random, (uint32_t)plane->columns / 6);
        const int x = (int)random_below(&random, (uint32_t)(plane->columns - side)),
                  y = (int)random_below(&random, (uint32_t)(plane->rows - side));
        fill_box(plane, x, y, side, side, scene->top * (int)random_below(&random, GREYS) / (GREYS - 1));
    }
}

/* Rows of symbols: discs with rims, crosses, bars, in few colours. */
static void paint_icons(const struct scene *scene)
{
    enum { SIDE = 24 };
    for (int c = 0; c < scene->components; c++) {
        struct canvas *plane = &scene->planes[c];
        struct random random = {scene->seed};
        fill_box(plane, 0, 0, plane->columns, plane->rows, scene->top - scene->top * c / 20);
        for (int y = 0; y + SIDE <= plane->rows; y += SIDE)
            for (int x = 0; x + SIDE <= plane->columns; x += SIDE) {
                const int kind = (int)random_below(&random, 3), radius = 6 + (int)random_below(&random, 4);
                const int shade = scene->top * (int)(random_below(&random, 6) + (uint32_t)c) / 7;
                for (int i = 0; i < SIDE * SIDE && kind == 0; i++) {
                    const int from = (int)(square(i % SIDE - 12) + square(i / SIDE - 12));
                    if (from > radius * radius) continue;
                    const bool rim = from > (radius - 1) * (radius - 1);
                    plane->shades[(y + i / SIDE) * plane->columns + x + i % SIDE] = rim ? 0 : shade;
                }
                if (kind == 1) fill_box(plane, x + 12 - radius, y + 10, 2 * radius, 4, shade);
                if (kind == 1) fill_box(plane, x + 10, y + 12 - radius, 4, 2 * radius, shade);
                for (int k = 0; k < 4 && kind == 2; k++) fill_box(plane, x + 4, y + 4 + 5 * k, 16, 2, shade);
            }
    }
}

/* Uptake in a body, reconstructed: noise is correlated, and most is 0. */
static void paint_uptake(const struct scene *scene)
{
    struct canvas *plane = scene->planes;
    const int columns = plane->columns, rows = plane->rows;
    int32_t *noise = noise_field(columns, rows, 1, 16 * 1000, scene->seed);
    add_soft_disc(plane, columns / 2, rows / 2, columns / 5, 900);
    add_soft_disc(plane, columns / 2, rows * 2 / 5, columns / 14, 6000);
    add_soft_disc(plane, columns * 2 / 5, rows * 3 / 5, columns / 20, 9000);
    blur(plane, 1);
    for (int i = 0; i < columns * rows; i++) {
        const int64_t shade = plane->shades[i];
        plane->shades[i] = (int32_t)clamp(shade + (int64_t)square_root(shade * 20) * noise[i] / 4000 - 60, 0, 32767);
    }
    free(noise);
}

/* ---- Files -------------------------------------------------------------------------------------------------- */

static const struct drawing {
    const char *name;
    painter *paint;
    int columns, rows, components;
    int32_t maximum;
} drawings[] = {
    {"text_page", paint_text, 620, 877, 1, 255},
    {"text_large", paint_text, 1240, 1754, 1, 255},
    {"text_words", paint_words, 800, 600, 1, 255},
    {"text_16bit", paint_text, 400, 300, 1, 4095},
    {"squares_24", paint_squares, 512, 512, 1, 255},
    {"squares_12bit", paint_squares, 400, 400, 1, 4095},
    {"icons_small", paint_icons, 48, 48, 3, 255},
    {"icons_medium", paint_icons, 144, 96, 3, 255},
    {"icons_large", paint_icons, 480, 480, 3, 255},
    {"icons_grey", paint_icons, 96, 96, 1, 255},
    {"masks_32", paint_mask, 32, 32, 1, 255},
    {"masks_64", paint_mask, 64, 64, 1, 255},
    {"masks_128", paint_mask, 128, 128, 1, 255},
    {"masks_512", paint_mask, 512, 512, 1, 255},
    {"masks_labels", paint_labels, 256, 256, 1, 4095},
    {"uptake_168", paint_uptake, 168, 168, 1, 32767},
    {"uptake_144", paint_uptake, 144, 144, 1, 32767},
    {"ultrasound_grey", paint_ultrasound, 640, 480, 1, 255},
    {"ultrasound_rgb", paint_ultrasound, 640, 480, 3, 255},
};

static void save_drawing(const struct drawing *d, uint64_t seed)
{
    struct bytes b = {0};
    char header[40];
    const int frames = d->components == 1 ? 4 : 1; /* of which the first is taken: bodies shrink until the last */
    struct canvas *planes = planes_paint(d->paint, d->columns, d->rows, d->components, frames, d->maximum, seed);
    snprintf(header, sizeof header, "P%d\n%d %d\n%d\n", d->components == 3 ? 6 : 5, d->columns, d->rows,
             (int)d->maximum);
    bytes_put_text(&b, header);
    for (int i = 0; i < d->columns * d->rows; i++)
        for (int c = 0; c < d->components; c++) {
            if (d->maximum > 255)
                bytes_put_u16(&b, true, (unsigned)planes[c].shades[i]);
            else
                bytes_put_u8(&b, (unsigned)planes[c].shades[i]);
        }
    planes_free(planes, d->components * frames);
    bytes_save(&b, CODED, "drawn/%s.%s", d->name, d->components == 3 ? "ppm" : "pgm");
}

void make_drawn(void)
{
    for (size_t i = 0; i < sizeof drawings / sizeof drawings[0]; i++) save_drawing(&drawings[i], i + 1);
}
