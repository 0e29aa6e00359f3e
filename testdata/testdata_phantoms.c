#include "testdata_scene.h"

#include <stdlib.h>
#include <string.h>

#include "testdata_bytes.h"
#include "testdata_integer.h"
#include "testdata_noise.h"

enum { ALL_SLICES = 100000 }; /* the radius of cylinders, which are long ellipsoids */

static void paint_ellipsoids(struct canvas *canvas, const struct ellipsoid *shapes, size_t count, int z)
{
    for (size_t i = 0; i < count; i++) paint_ellipsoid(canvas, &shapes[i], z);
}
#define PAINT_ALL(canvas, shapes, z) paint_ellipsoids(canvas, shapes, sizeof(shapes) / sizeof((shapes)[0]), z)

/* The depth of a frame in a volume that is 1000 deep. */
static int depth_of(const struct scene *scene)
{
    return (2000 * scene->frame + 1000) / (2 * scene->frames);
}

static uint64_t frame_seed(const struct scene *scene)
{
    return 1000 * scene->seed + (uint64_t)scene->frame;
}

/* The square of the distance from the centre; 1000 is the edge of the largest circle. */
static int64_t from_centre(const struct canvas *canvas, int x, int y)
{
    return 1000 * (square(2 * x + 1 - canvas->columns) + square(2 * y + 1 - canvas->rows)) / square(canvas->columns);
}

/* ---- CT ---------------------------------------------------------------------------------------------------- */

enum { AIR = -1000, LOWEST_CT = -1024, OUTSIDE_CT = -2000, HIGHEST_CT = 2047 };

/* clang-format off */
static const struct ellipsoid trunk[] = {
    /* the table */
    {500, 1060, 500, 420, 165, ALL_SLICES, -600}, {500, 1066, 500, 408, 157, ALL_SLICES, -930},
    /* fat, muscle, ribs, fat of the cavity */
    {500, 505, 500, 425, 325, ALL_SLICES,  -98}, {500, 505, 500, 398, 298, ALL_SLICES,   52},
    {500, 500, 500, 368, 268, ALL_SLICES,   -70},
    /* lungs */
    {325, 480,  60, 158, 205, 430, -860}, {675, 480,  60, 158, 205, 430, -850},
    /* heart, liver, stomach, gas, spleen, kidneys, bowel */
    {545, 420, 100, 128, 118, 290,   42}, {365, 455, 640, 205, 190, 330,   62}, {645, 420, 650, 100,  90, 260,   24},
    {652, 380, 650,  58,  36, 170, -960}, {745, 540, 640,  62,  90, 190,   50}, {360, 590, 860,  58,  72, 190,   38},
    {640, 590, 830,  58,  72, 190,   38}, {520, 350, 950, 120,  60, 110,   15}, {535, 340, 950,  70,  32,  80, -900},
    /* aorta, cava */
    {540, 595, 500,  30,  30, ALL_SLICES,  165}, {462, 580, 500,  26,  22, ALL_SLICES,  110},
    /* spine: cortex, marrow, canal, arch */
    {500, 672, 500,  68,  56, ALL_SLICES,  480}, {500, 672, 500,  61,  49, ALL_SLICES,  190},
    {500, 762, 500,  56,  40, ALL_SLICES,  420}, {500, 750, 500,  30,  26, ALL_SLICES,   22},
    {500, 795, 500,  14,  34, ALL_SLICES,  520},
    /* ribs and sternum */
    {140, 430, 300,  15,  40, 320,  430}, {860, 430, 300,  15,  40, 320,  430}, {180, 610, 400,  18,  36, 300,  460},
    {820, 610, 400,  18,  36, 300,  460}, {265, 315, 250,  38,  14, 260,  400}, {735, 315, 250,  38,  14, 260,  400},
    {500, 238, 100,  52,  15, 350,  300},
};
/* clang-format on */

/* Vessels of the lungs and of the liver: small bodies at random places. */
static void paint_vessels(struct canvas *canvas, int z)
{
    struct random random = {4711};
    for (int i = 0; i < 160; i++) {
        struct ellipsoid vessel = {0};
        const bool in_liver = i >= 120;
        vessel.x = (in_liver ? 250 : i % 2 ? 215 : 570) + (int)random_below(&random, 215);
        vessel.y = 345 + (int)random_below(&random, 270);
        vessel.z = in_liver ? 450 + (int)random_below(&random, 400) : (int)random_below(&random, 400);
        vessel.radius_x = 3 + (int)random_below(&random, 9);
        vessel.radius_y = 3 + (int)random_below(&random, 9);
        vessel.radius_z = 60 + (int)random_below(&random, 150);
        vessel.shade = in_liver ? 135 : 20;
        paint_ellipsoid(canvas, &vessel, z);
    }
}

/* Tissue is uneven, and noise is strongest where rays cross most of the body. */
static void add_ct_noise(const struct scene *scene)
{
    struct canvas *canvas = scene->planes;
    int32_t *noise = noise_field(canvas->columns, canvas->rows, 1, 16 * 16 * 13, frame_seed(scene));
    for (int y = 0; y < canvas->rows; y++)
        for (int x = 0; x < canvas->columns; x++) {
            int32_t *shade = &canvas->shades[y * canvas->columns + x];
            const int64_t out = from_centre(canvas, x, y), strength = *shade < -990 ? 130 : 300 - out / 5;
            if (*shade > -200) *shade += texture_at(x, y, 5, 1, 31 + (uint64_t)scene->frame) / 8192;
            *shade += (int32_t)divide_rounded(noise[y * canvas->columns + x] * strength, 256 * 16);
            *shade = (int32_t)(out > 1000 ? OUTSIDE_CT : clamp(*shade, LOWEST_CT, HIGHEST_CT));
        }
    free(noise);
}

void paint_ct(const struct scene *scene)
{
    struct canvas *canvas = scene->planes;
    fill_box(canvas, 0, 0, canvas->columns, canvas->rows, AIR);
    PAINT_ALL(canvas, trunk, depth_of(scene));
    paint_vessels(canvas, depth_of(scene));
    soften(canvas);
    add_ct_noise(scene);
}

void paint_ct_unsigned(const struct scene *scene)
{
    paint_ct(scene);
    for (int i = 0; i < scene->planes->columns * scene->planes->rows; i++)
        scene->planes->shades[i] = (int32_t)clamp(scene->planes->shades[i] - LOWEST_CT, 0, scene->top);
}

void paint_ct_masked(const struct scene *scene)
{
    paint_ct(scene);
    for (int i = 0; i < scene->planes->columns * scene->planes->rows; i++) scene->planes->shades[i] &= 0xfff;
}

void paint_ct_overlay(const struct scene *scene)
{
    struct canvas *canvas = scene->planes, graphics = canvas_new(canvas->columns, canvas->rows, 0);
    paint_ct_unsigned(scene);
    draw_text(&graphics, 4, 4, 1, 1, "PHANTOM 4");
    draw_text(&graphics, 4, canvas->rows - 20, 2, 1, "R");
    fill_box(&graphics, canvas->columns / 2, canvas->rows / 4, 1, canvas->rows / 2, 1);
    for (int i = 0; i < canvas->columns * canvas->rows; i++) canvas->shades[i] |= graphics.shades[i] << 12;
    canvas_free(&graphics);
}

void paint_ct_high(const struct scene *scene)
{
    struct random random = {frame_seed(scene)};
    paint_ct_unsigned(scene);
    for (int i = 0; i < scene->planes->columns * scene->planes->rows; i++)
        scene->planes->shades[i] = scene->planes->shades[i] << 4 | (int32_t)random_below(&random, 16);
}

/* ---- MR ---------------------------------------------------------------------------------------------------- */

enum { FLUID = 170, GREY = 430, MATTER = 610 };

/* clang-format off */
static const struct ellipsoid head[] = {
    {500, 510, 450, 380, 450, 560, 820}, {500, 510, 450, 355, 425, 540, 300}, {500, 510, 450, 348, 418, 535,  60},
    {500, 510, 450, 325, 395, 510, 560}, {500, 510, 450, 318, 388, 505,  60}, {500, 510, 450, 310, 380, 500, FLUID},
};
static const struct ellipsoid brain = {500, 510, 450, 303, 373, 490, GREY};
static const struct ellipsoid core = {500, 510, 450, 265, 330, 430, MATTER};
static const struct ellipsoid within[] = {
    {425, 540, 450,  55,  85, 200, 450}, {575, 540, 450,  55,  85, 200, 450}, /* nuclei */
    {455, 470, 480,  24, 100, 190, FLUID}, {545, 470, 480,  24, 100, 190, FLUID}, {500, 590, 420,  10, 40, 160, FLUID},
};
/* clang-format on */

/* Folds: winding bands of grey matter, with fluid in their middle near the surface. */
static void fold(struct canvas *canvas, const struct canvas *inside, int z)
{
    int coarsest = 1;
    while (32 << coarsest < canvas->columns) coarsest++;
    for (int y = 0; y < canvas->rows; y++)
        for (int x = 0; x < canvas->columns; x++) {
            const int i = y * canvas->columns + x;
            if (inside->shades[i] == 0) continue;
            const int64_t band = llabs(texture_at(x, y, coarsest + 1, coarsest, 5 + (uint64_t)z));
            const int64_t surface = 1000 - inside->shades[i]; /* 0 in the core, up to 1000 at the surface */
            const int64_t grey = clamp(7000 + 14 * surface - band, 0, 4000);
            const int64_t fluid = clamp(2 * surface - band, 0, 2000);
            canvas->shades[i] += (int32_t)((GREY - canvas->shades[i]) * grey / 4000);
            canvas->shades[i] += (int32_t)((FLUID - canvas->shades[i]) * fluid / 2000);
        }
}

void paint_mr(const struct scene *scene)
{
    struct canvas *canvas = scene->planes;
    const int columns = canvas->columns, rows = canvas->rows, z = depth_of(scene);
    struct canvas inside = canvas_new(columns, rows, 0);
    struct ellipsoid mask = brain;
    PAINT_ALL(canvas, head, z);
    paint_ellipsoid(canvas, &brain, z);
    paint_ellipsoid(canvas, &core, z);
    mask.shade = 1;
    paint_ellipsoid(&inside, &mask, z);
    mask = core;
    mask.shade = 1000;
    paint_ellipsoid(&inside, &mask, z);
    blur(&inside, columns / 40);
    fold(canvas, &inside, z);
    PAINT_ALL(canvas, within, z);
    soften(canvas);
    canvas_free(&inside);
    /* Both channels of the receiver are noisy, and the image is their magnitude. Coils receive more from near tissue.
     */
    int32_t *real = noise_field(columns, rows, 0, 16 * 11, frame_seed(scene));
    int32_t *imaginary = noise_field(columns, rows, 0, 16 * 11, frame_seed(scene) + 500);
    for (int y = 0; y < rows; y++)
        for (int x = 0; x < columns; x++) {
            const int i = y * columns + x;
            const int64_t bias = 1000 + from_centre(canvas, x, y) / 4 + texture_at(x, y, 7, 6, 3) / 800;
            const int64_t signal =
                canvas->shades[i] * bias / 1000 + texture_at(x, y, 3, 0, 9) * canvas->shades[i] / 4000000;
            const int64_t power = square(4 * (signal + real[i])) + square(4 * (int64_t)imaginary[i]);
            canvas->shades[i] = (int32_t)clamp((square_root(power) + 2) / 4, 0, scene->top);
        }
    free(real);
    free(imaginary);
}

/* ---- Projections ------------------------------------------------------------------------------------------- */

/* clang-format off */
static const struct ellipsoid chest[] = {
    {500, 700, 0, 470, 640, 1, 560}, {500, 700, 0, 430, 620, 1, 640}, /* skin and fat, chest wall */
    {500, 100, 0,  85, 200, 1, 720},                                  /* neck */
    {290, 480, 0, 165, 330, 1, 300}, {705, 480, 0, 165, 330, 1, 290}, /* lungs */
    {500, 450, 0,  75, 500, 1, 800}, {560, 640, 0, 170, 150, 1, 830}, /* mediastinum, heart */
    {290, 900, 0, 220, 150, 1, 880}, {700, 920, 0, 210, 140, 1, 850}, /* diaphragm */
    {495, 180, 0,  22, 160, 1, 640},                                  /* trachea */
};
/* clang-format on */

/* A bone in a projection: the line y = height + bend * (x - middle)^2, in thousandths, "width" to either side. */
struct bone {
    int middle, height, bend, width, shade;
};

static void add_bone(struct canvas *canvas, const struct bone *bone)
{
    for (int x = 0; x < canvas->columns; x++) {
        const int64_t across = 1000 * (int64_t)x / canvas->columns - bone->middle;
        if (llabs(across) > 230) continue;
        const int64_t line = bone->height + bone->bend * square(across) / 100000;
        for (int y = 0; y < canvas->rows; y++) {
            const int64_t off = llabs(1000 * (int64_t)y / canvas->rows - line);
            int32_t *shade = &canvas->shades[y * canvas->columns + x];
            /* Bones are tubes, so they are denser at the edge; they are drawn only within the body. */
            if (off<bone->width && * shade> 250)
                *shade += (int32_t)(bone->shade * (bone->width + 2 * off) / (2 * bone->width));
        }
    }
}

static void add_bones(struct canvas *canvas)
{
    for (int rib = 0; rib < 9; rib++) {
        const int height = 150 + 78 * rib;
        const struct bone bones[] = {{290, height, -40, 12, 45},
                                     {710, height, -40, 12, 45},
                                     {300, height + 60, 55, 9, 28},
                                     {700, height + 60, 55, 9, 28}};
        for (size_t i = 0; i < sizeof bones / sizeof bones[0]; i++) add_bone(canvas, &bones[i]);
    }
    for (int vertebra = 0; vertebra < 12; vertebra++) {
        const struct ellipsoid body = {500, 60 + 85 * vertebra, 0, 42, 32, 1, 880};
        paint_ellipsoid(canvas, &body, 0);
    }
}

/* Adds the noise of counted photons, in sixteenths: it grows with the root of the light. */
static void add_photon_noise(struct canvas *canvas, int radius, int sigma_16, uint64_t seed)
{
    int32_t *noise = noise_field(canvas->columns, canvas->rows, radius, 16 * sigma_16, seed);
    for (int i = 0; i < canvas->columns * canvas->rows; i++) {
        const int64_t root = square_root(256 * clamp(canvas->shades[i], 1, INT32_MAX)); /* 16 times the root */
        canvas->shades[i] += (int32_t)divide_rounded(noise[i] * root, 16 * 16);
    }
    free(noise);
}

void paint_chest(const struct scene *scene)
{
    struct canvas *canvas = scene->planes;
    const int columns = canvas->columns, rows = canvas->rows;
    fill_box(canvas, 0, 0, columns, rows, 60);
    PAINT_ALL(canvas, chest, 0);
    blur(canvas, columns / 50);
    add_bones(canvas);
    blur(canvas, 1);
    for (int y = 0; y < rows; y++)
        for (int x = 0; x < columns; x++) {
            int32_t *shade = &canvas->shades[y * columns + x];
            *shade += (int32_t)(texture_at(x, y, 5, 1, scene->seed) * (int64_t)(*shade - 60) / 900000);
        }
    add_photon_noise(canvas, 1, 4, scene->seed);
    draw_text(canvas, 12, 12, 3, 1000, "R");
    /* Digitised coarsely, then stretched to all bits. */
    for (int i = 0; i < columns * rows; i++)
        canvas->shades[i] = (int32_t)(clamp(canvas->shades[i] * 2 / 5, 0, 399) * scene->top / 399);
}

void paint_breast(const struct scene *scene)
{
    struct canvas *canvas = scene->planes;
    const int columns = canvas->columns, rows = canvas->rows;
    struct canvas outline = canvas_new(columns, rows, 0);
    const struct ellipsoid shape = {-60, 520, 0, 760, 420, 1, 4096}, thick = {-60, 520, 0, 700, 380, 1, 4096};
    paint_ellipsoid(&outline, &shape, 0);
    paint_ellipsoid(canvas, &thick, 0);
    blur(canvas, columns / 14); /* thinner towards the skin */
    for (int y = 0; y < rows; y++)
        for (int x = 0; x < columns; x++) {
            int32_t *shade = &canvas->shades[y * columns + x];
            const int64_t gland = clamp(texture_at(x, y, 8, 1, scene->seed) + 20000, 0, 65535);
            const int64_t strands = 65535 - clamp(4 * llabs(texture_at(x, y, 5, 1, scene->seed + 9)), 0, 65535);
            const int64_t tissue = 700 + gland * *shade / 65536 * 1700 / 4096 + strands * *shade / 65536 * 260 / 4096;
            *shade = outline.shades[y * columns + x] > 0 ? (int32_t)tissue : 0;
        }
    struct canvas clean = canvas_new(columns, rows, 0);
    memcpy(clean.shades, canvas->shades, (size_t)columns * (size_t)rows * sizeof *clean.shades);
    add_photon_noise(canvas, 0, 6, scene->seed);
    /* The background of the detector is cut off: it is exactly 0. */
    for (int i = 0; i < columns * rows; i++)
        canvas->shades[i] = clean.shades[i] > 0 ? (int32_t)clamp(canvas->shades[i], 1, scene->top) : 0;
    draw_text(canvas, columns - 110, 20, 5, scene->top, "RCC");
    canvas_free(&clean);
    canvas_free(&outline);
}

/* ---- Ultrasound -------------------------------------------------------------------------------------------- */

/* clang-format off */
static const struct ellipsoid echoes[] = {
    {500, 500, 0, 900, 900, 1,  88}, {500, 180, 0, 900,  40, 1, 130}, {420, 560, 0, 250, 230, 1, 105},
    {400, 520, 0, 140, 120, 1,  10}, {610, 640, 0,  90,  60, 1, 150}, {560, 330, 0, 160,  30, 1, 165},
    {330, 760, 0, 120,  40, 1, 175}, {600, 450, 0,  50,  50, 1,   6},
};
/* clang-format on */

static bool in_sector(const struct canvas *canvas, int x, int y)
{
    const int64_t across = llabs(x - canvas->columns / 2), down = y - canvas->rows * 4 / 100;
    const int64_t reach = square(across) + square(down);
    return down > 0 && 5 * across <= 4 * down && reach > square(canvas->rows * 8 / 100) &&
           reach < square(canvas->rows * 90 / 100);
}

/* Flow towards the probe and away from it, in red and blue, within a box. All other pixels are grey. */
static bool put_flow(const struct scene *scene, int x, int y)
{
    const struct canvas *canvas = scene->planes;
    const int columns = canvas->columns, rows = canvas->rows, i = y * columns + x;
    const bool in_box = x > columns * 32 / 100 && x < columns * 50 / 100 && y > rows * 38 / 100 && y < rows * 66 / 100;
    const int64_t flow = texture_at(x, y, 5, 2, scene->seed + 40) * 3 / 2;
    if (scene->components != 3 || !in_box || llabs(flow) < 26000) return false;
    const int32_t speed = (int32_t)clamp((llabs(flow) - 26000) / 220 + 80, 0, 255);
    scene->planes[flow > 0 ? 0 : 2].shades[i] = speed;
    scene->planes[1].shades[i] = speed / 4;
    scene->planes[flow > 0 ? 2 : 0].shades[i] = 0;
    return true;
}

static void put_legend(struct canvas *plane, int c)
{
    const int columns = plane->columns, rows = plane->rows, size = columns >= 400 ? 2 : 1;
    static const int yellow[3] = {255, 230, 90};
    draw_text(plane, 8, 8, size, 255, "PHANTOM");
    draw_text(plane, 8, 8 + 10 * size, size, yellow[c], "HEART 2 3 MHE");
    draw_text(plane, columns - 72 * size, 8, size, 255, "T15 C 0R 44");
    for (int y = 0; y < rows / 3; y++) fill_box(plane, columns - 14, rows / 4 + y, 8, 1, 255 - 255 * 3 * y / rows);
    for (int y = rows / 10; y < rows * 9 / 10; y += rows / 12) fill_box(plane, columns - 24, y, 5, 1, yellow[c]);
}

void paint_ultrasound(const struct scene *scene)
{
    struct canvas *canvas = scene->planes, tissue = canvas_new(canvas->columns, canvas->rows, 0);
    const int columns = canvas->columns, rows = canvas->rows;
    int32_t *real = noise_field(columns, rows, 1, 16 * 1000, frame_seed(scene));
    int32_t *imaginary = noise_field(columns, rows, 1, 16 * 1000, frame_seed(scene) + 500);
    PAINT_ALL(&tissue, echoes, 0);
    blur(&tissue, columns / 128);
    for (int y = 0; y < rows; y++)
        for (int x = 0; x < columns; x++) {
            const int i = y * columns + x;
            if (!in_sector(canvas, x, y) || put_flow(scene, x, y)) continue;
            /* Speckle is the interference of many echoes, and the receiver compresses it. */
            const int64_t speckle = square_root(square(real[i]) + square(imaginary[i]));
            const int64_t echo = tissue.shades[i] * (1200 - 500 * (int64_t)y / rows) / 1000;
            const int64_t shade = square_root(square(16 * echo) * speckle / 1253) / 16;
            for (int c = 0; c < scene->components; c++) scene->planes[c].shades[i] = (int32_t)clamp(shade, 0, 255);
        }
    for (int c = 0; c < scene->components; c++) put_legend(&scene->planes[c], c);
    canvas_free(&tissue);
    free(real);
    free(imaginary);
}

/* ---- Nuclear medicine, dose, segmentation ------------------------------------------------------------------- */

void paint_nuclear(const struct scene *scene)
{
    struct canvas *canvas = scene->planes;
    const int columns = canvas->columns, rows = canvas->rows;
    /* Organs move around as the camera does. */
    const int swing = triangle(scene->frame, scene->frames, columns / 4) - columns / 8;
    add_soft_disc(canvas, columns / 2, rows / 2, columns * 7 / 16, 18);
    add_soft_disc(canvas, columns / 2 + swing, rows * 2 / 5, columns / 9, 160);
    add_soft_disc(canvas, columns / 2 - swing, rows * 3 / 5, columns / 7, 90);
    add_soft_disc(canvas, columns / 2 + swing / 2, rows * 3 / 4, columns / 14, 220);
    blur(canvas, 1);
    for (int i = 0; i < columns * rows; i++) canvas->shades[i] += 1;
    add_photon_noise(canvas, 0, 16, frame_seed(scene));
    for (int i = 0; i < columns * rows; i++) canvas->shades[i] = (int32_t)clamp(canvas->shades[i], 0, scene->top);
}

void paint_dose(const struct scene *scene)
{
    struct canvas *canvas = scene->planes;
    const int columns = canvas->columns, rows = canvas->rows, z = depth_of(scene);
    static const struct ellipsoid beams[] = {
        {500, 500, 500, 420, 380, 620, 120000000},  {500, 500, 500, 480, 110, 420, 480000000},
        {500, 500, 500, 110, 440, 420, 620000000},  {500, 500, 500, 180, 180, 380, 1500000000},
        {500, 500, 500, 120, 120, 300, 1900000000},
    };
    PAINT_ALL(canvas, beams, z);
    blur(canvas, 2);
    int32_t *noise = noise_field(columns, rows, 1, 16 * 1000, frame_seed(scene));
    for (int i = 0; i < columns * rows; i++) /* half a percent */
        canvas->shades[i] =
            (int32_t)clamp(canvas->shades[i] + canvas->shades[i] / 200000 * (int64_t)noise[i], 0, INT32_MAX);
    free(noise);
}

void paint_segments(const struct scene *scene)
{
    struct canvas *canvas = scene->planes;
    PAINT_ALL(canvas, within, 300 + depth_of(scene) / 4);
    const struct ellipsoid lesion = {300 + 40 * scene->frame, 300, 0, 90, 120, 1, 1};
    paint_ellipsoid(canvas, &lesion, 0);
    for (int i = 0; i < canvas->columns * canvas->rows; i++) canvas->shades[i] = canvas->shades[i] > 0;
}
