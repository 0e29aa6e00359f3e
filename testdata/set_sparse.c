/* Sparse images: below 0.3 bit a sample without loss. Masks, label maps, counts that are mostly 0, drawings. */
#include <stdio.h>
#include <stdlib.h>

#include "testdata_bytes.h"
#include "testdata_dicom.h"
#include "testdata_noise.h"
#include "testdata_png.h"
#include "testdata_scene.h"
#include "testdata_sets.h"

/* ---- Painters ----------------------------------------------------------------------------------------------- */

/* Which of some uneven bodies a sample is in, 0: none. Bodies grow and shrink from frame to frame. */
static int body_at(const struct scene *scene, int bodies, int x, int y)
{
    const struct canvas *plane = scene->planes;
    for (int i = 1; i <= bodies; i++) {
        const uint64_t seed = 100 * scene->seed + (uint64_t)i;
        struct random random = {seed};
        const int across = (int)random_below(&random, 600) + 200 - 1000 * x / plane->columns,
                  down = (int)random_below(&random, 600) + 200 - 1000 * y / plane->rows,
                  last = scene->frames * (int)(random_below(&random, 400) + 600) / 1000,
                  size = (int)random_below(&random, 15000) + 3000;
        const int rough = texture_at(x, y, 5, 2, seed) / 20, grown = size * (last - scene->frame) / (last + 1);
        if (across * across + down * down < grown + rough && grown > 0) return i;
    }
    return 0;
}

static void paint_bodies(const struct scene *scene, int bodies, int values)
{
    struct canvas *plane = scene->planes;
    for (int y = 0; y < plane->rows; y++)
        for (int x = 0; x < plane->columns; x++) {
            const int body = body_at(scene, bodies, x, y);
            plane->shades[y * plane->columns + x] = body == 0 ? 0 : scene->top / values * (1 + body % values);
        }
}

void paint_mask(const struct scene *scene)
{
    paint_bodies(scene, 2, 1);
}

void paint_labels(const struct scene *scene)
{
    paint_bodies(scene, 9, 5);
}

/* A mask whose edge is soft, as probabilities have it. */
static void paint_soft(const struct scene *scene)
{
    paint_mask(scene);
    blur(scene->planes, 2);
}

/* A plane that begins again at 0: a linear prediction from two neighbours knows nearly all of it, and a median none. */
static void paint_plane(const struct scene *scene)
{
    const struct canvas *plane = scene->planes;
    for (int y = 0; y < plane->rows; y++)
        for (int x = 0; x < plane->columns; x++)
            plane->shades[y * plane->columns + x] = (97 * x + 53 * y) % (scene->top + 1);
}

/* Photons in a small part of the image. */
static void paint_counts(const struct scene *scene)
{
    struct canvas *plane = scene->planes;
    struct random random = {scene->seed + (uint64_t)scene->frame};
    paint_bodies(scene, 1, 1);
    for (int i = 0; i < plane->columns * plane->rows; i++)
        if (plane->shades[i] > 0) plane->shades[i] = (int32_t)random_below(&random, (uint32_t)scene->top / 64);
}

static void paint_hot(const struct scene *scene)
{
    struct canvas *plane = scene->planes;
    plane->shades[plane->rows / 3 * plane->columns + plane->columns / 2] = scene->top;
}

static void paint_specks(const struct scene *scene)
{
    struct canvas *plane = scene->planes;
    const uint32_t count = (uint32_t)(plane->columns * plane->rows);
    struct random random = {scene->seed};
    for (uint32_t i = 0; i <= count / 800; i++)
        plane->shades[random_below(&random, count)] = (int32_t)random_below(&random, (uint32_t)scene->top) + 1;
}

static void paint_grid(const struct scene *scene)
{
    for (int c = 0; c < scene->components; c++) {
        struct canvas *plane = &scene->planes[c];
        for (int x = 7; x < plane->columns; x += 32) fill_box(plane, x, 0, 1, plane->rows, scene->top / (1 + c));
        for (int y = 5; y < plane->rows; y += 24) fill_box(plane, 0, y, plane->columns, 2, scene->top / (2 + c));
    }
}

/* A page with a few lines of text, dark on light, or white and opaque on nothing. */
static void paint_page(const struct scene *scene)
{
    const bool has_opacity = scene->components % 2 == 0;
    for (int c = 0; c < scene->components; c++) {
        struct canvas *plane = &scene->planes[c];
        if (!has_opacity) fill_box(plane, 0, 0, plane->columns, plane->rows, scene->top - c);
        for (int k = 0; k < 4; k++)
            draw_text(plane, 8, 8 + 18 * k, 1, has_opacity ? scene->top : 0, "REPORT OF PHANTOM 1 PAGE 2");
    }
}

/* ---- Files -------------------------------------------------------------------------------------------------- */

static const struct drawing {
    const char *name;
    painter *paint;
    int columns, rows, components;
    int32_t maximum;
} drawings[] = {
    {"mask_8bit", paint_mask, 128, 128, 1, 255},       {"mask_16bit", paint_mask, 100, 120, 1, 65535},
    {"mask_large", paint_mask, 520, 400, 1, 255},      {"labels_8bit", paint_labels, 300, 200, 1, 255},
    {"labels_16bit", paint_labels, 256, 256, 1, 5000}, {"soft", paint_soft, 256, 200, 1, 255},
    {"hot_8bit", paint_hot, 64, 64, 1, 255},           {"hot_16bit", paint_hot, 300, 300, 1, 65535},
    {"specks_8bit", paint_specks, 200, 200, 1, 255},   {"specks_16bit", paint_specks, 400, 300, 1, 4095},
    {"grid_8bit", paint_grid, 320, 240, 1, 255},       {"grid_rgb", paint_grid, 200, 150, 3, 255},
    {"page_8bit", paint_page, 400, 300, 1, 255},       {"page_rgb", paint_page, 300, 200, 3, 255},
    {"screen_rgb", paint_screen, 640, 480, 3, 255},    {"plane_8bit", paint_plane, 128, 128, 1, 255},
    {"plane_odd", paint_plane, 181, 181, 1, 255},      {"plane_16bit", paint_plane, 181, 181, 1, 65535},
};

static const struct picture {
    const char *name;
    painter *paint;
    int columns, rows, colour_type, depth;
} pictures[] = {
    {"mask_grey1", paint_mask, 150, 150, PNG_GRAY, 1},
    {"mask_grey8", paint_mask, 128, 128, PNG_GRAY, 8},
    {"labels_palette4", paint_labels, 200, 160, PNG_PALETTE, 4},
    {"labels_grey16", paint_labels, 256, 256, PNG_GRAY, 16},
    {"page_grey1", paint_page, 320, 200, PNG_GRAY, 1},
    {"page_rgba", paint_page, 256, 256, PNG_RGBA, 8},
};

#define STORAGE "1.2.840.10008.5.1.4.1.1."
static const struct dicom_kind seg1 = {"SEG", STORAGE "66.4", "MONOCHROME2", 1, 1, 1, 0, false, false, false, NULL},
                               seg8 = {"SEG", STORAGE "66.4", "MONOCHROME2", 1, 8, 8, 7, false, false, false, NULL},
                               pt = {"PT", STORAGE "128", "MONOCHROME2", 1, 16, 16, 15, false, false, false, NULL},
                               dose = {"RTDOSE", STORAGE "481.2", "MONOCHROME2", 1,     32,  32,
                                       31,       false,           false,         false, NULL};

static const struct volume {
    const char *name;
    const struct dicom_kind *kind;
    painter *paint;
    int columns, rows, frames;
    int32_t top;
} volumes[] = {
    {"tiny_1bit", &seg1, paint_mask, 16, 16, 100, 1},        {"small_1bit", &seg1, paint_mask, 64, 64, 40, 1},
    {"mask_1bit", &seg1, paint_mask, 128, 128, 40, 1},       {"large_1bit", &seg1, paint_mask, 300, 280, 6, 1},
    {"labels_8bit", &seg8, paint_labels, 128, 96, 30, 5},    {"soft_8bit", &seg8, paint_soft, 160, 160, 5, 255},
    {"counts_16bit", &pt, paint_counts, 168, 168, 8, 32767}, {"mask_32bit", &dose, paint_mask, 96, 80, 10, 1 << 24},
};

static void save_drawing(const struct drawing *d, uint64_t seed)
{
    struct bytes b = {0};
    char header[40];
    struct canvas *planes = planes_paint(d->paint, d->columns, d->rows, d->components, 1, d->maximum, seed);
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
    planes_free(planes, d->components);
    bytes_save(&b, CODED, "sparse/%s.%s", d->name, d->components == 3 ? "ppm" : "pgm");
}

static void save_picture(const struct picture *p, uint64_t seed)
{
    struct bytes b = {0};
    const struct png png = {p->colour_type, p->depth, false, 0, NULL, 0};
    const int components = png_components(p->colour_type);
    struct canvas *planes = planes_paint(p->paint, p->columns, p->rows, components, 1, (1 << p->depth) - 1, seed);
    png_put(&b, &png, planes);
    planes_free(planes, components);
    bytes_save(&b, CODED, "sparse/%s.png", p->name);
}

static void save_volume(const struct volume *v, unsigned number)
{
    struct bytes b = {0};
    const struct dicom dicom = {v->kind, DICOM_EXPLICIT, 0, v->columns, v->rows, v->frames, 1000 + number, 1};
    struct canvas *planes = planes_paint(v->paint, v->columns, v->rows, 1, v->frames, v->top, number);
    dicom_put(&b, &dicom, planes);
    planes_free(planes, v->frames);
    bytes_save(&b, CODED, "sparse/%s.dcm", v->name);
}

/* The slices of a mask, a file each. */
static void save_slices(void)
{
    enum { SLICES = 12, SIDE = 96 };
    struct canvas *planes = planes_paint(paint_mask, SIDE, SIDE, 1, SLICES, 255, 4);
    for (int k = 0; k < SLICES; k++) {
        struct bytes b = {0};
        bytes_put_text(&b, "P5\n96 96\n255\n");
        for (int i = 0; i < SIDE * SIDE; i++) bytes_put_u8(&b, (unsigned)planes[k].shades[i]);
        bytes_save(&b, CODED, "sparse/slices/%02d.pgm", k + 1);
    }
    planes_free(planes, SLICES);
}

void make_sparse(void)
{
    for (size_t i = 0; i < sizeof drawings / sizeof drawings[0]; i++) save_drawing(&drawings[i], i + 1);
    for (size_t i = 0; i < sizeof pictures / sizeof pictures[0]; i++) save_picture(&pictures[i], i + 1);
    for (size_t i = 0; i < sizeof volumes / sizeof volumes[0]; i++) save_volume(&volumes[i], (unsigned)i + 1);
    save_slices();
}
