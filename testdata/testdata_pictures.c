#include "testdata_scene.h"

#include <stdlib.h>

#include "testdata_bytes.h"
#include "testdata_integer.h"
#include "testdata_noise.h"

enum { WHITE = 65535 }; /* full scale of painters that do not work in 0 to top */

struct canvas *planes_paint(painter *paint, int columns, int rows, int components, int frames, int32_t top,
                            uint64_t seed)
{
    struct canvas *planes = allocate((size_t)(components * frames), sizeof *planes);
    for (int i = 0; i < components * frames; i++) planes[i] = canvas_new(columns, rows, 0);
    for (int frame = 0; frame < frames; frame++) {
        const struct scene scene = {planes + components * frame, components, frame, frames, top, seed};
        paint(&scene);
    }
    return planes;
}

void planes_free(struct canvas *planes, int count)
{
    for (int i = 0; i < count; i++) canvas_free(&planes[i]);
    free(planes);
}

/* Scales 0 to WHITE to 0 to top. */
static int32_t scaled(int64_t shade, int32_t top)
{
    return (int32_t)divide_rounded(clamp(shade, 0, WHITE) * top, WHITE);
}

static int component_seed(const struct scene *scene, int c)
{
    return (int)(100 * scene->seed) + 10 * scene->frame + c;
}

static bool is_opacity(const struct scene *scene, int c)
{
    return scene->components % 2 == 0 && c == scene->components - 1;
}

/* Opaque in the middle, with a soft edge. */
static void paint_opacity(struct canvas *plane, int32_t top)
{
    const struct ellipsoid shape = {500, 500, 0, 450, 450, 1, WHITE};
    paint_ellipsoid(plane, &shape, 0);
    blur(plane, 2);
    for (int i = 0; i < plane->columns * plane->rows; i++) plane->shades[i] = scaled(plane->shades[i], top);
}

/* The shade of a single sample, for painters that need nothing else. */
typedef int64_t shade_at(const struct scene *scene, int c, int x, int y, struct random *random);

static void paint_by_shade(const struct scene *scene, shade_at *shade)
{
    for (int c = 0; c < scene->components; c++) {
        struct random random = {(uint64_t)component_seed(scene, c)};
        struct canvas *plane = &scene->planes[c];
        for (int y = 0; y < plane->rows; y++)
            for (int x = 0; x < plane->columns; x++)
                plane->shades[y * plane->columns + x] = (int32_t)shade(scene, c, x, y, &random);
    }
}

static int64_t ramp_at(const struct scene *scene, int c, int x, int y, struct random *random)
{
    const int64_t far = scene->planes->columns + scene->planes->rows + 20;
    (void)random;
    return divide_rounded((int64_t)scene->top * (x + y + 10 * c), far);
}

static int64_t noise_at(const struct scene *scene, int c, int x, int y, struct random *random)
{
    (void)c, (void)x, (void)y;
    return (int64_t)((random_next(random) >> 32) * ((uint64_t)(uint32_t)scene->top + 1) >> 32);
}

static int64_t extreme_at(const struct scene *scene, int c, int x, int y, struct random *random)
{
    (void)c, (void)x, (void)y;
    return random_below(random, 2) ? scene->top : 0;
}

static int64_t checker_at(const struct scene *scene, int c, int x, int y, struct random *random)
{
    (void)random;
    return (x + y + c) % 2 ? scene->top : 0;
}

static int64_t constant_at(const struct scene *scene, int c, int x, int y, struct random *random)
{
    (void)x, (void)y, (void)random;
    return divide_rounded((int64_t)scene->top * (c + 2), 5);
}

static int64_t texture_shade(const struct scene *scene, int c, int x, int y, struct random *random)
{
    (void)random;
    const int64_t texture =
        texture_at(x, y, 6, 0, scene->seed) + texture_at(x, y, 5, 0, scene->seed + 50 + (unsigned)c) / 4;
    return scaled(WHITE / 2 + texture * 2 / 5, scene->top);
}

static int64_t outlier_at(const struct scene *scene, int c, int x, int y, struct random *random)
{
    const int64_t smooth = scene->top / 3 + texture_at(x, y, 6, 2, scene->seed) * (int64_t)scene->top / WHITE / 64;
    const bool wild = random_below(random, 500) == 0;
    const int64_t shade = noise_at(scene, c, x, y, random);
    return wild ? shade : clamp(smooth, 0, scene->top);
}

static int64_t signed_at(const struct scene *scene, int c, int x, int y, struct random *random)
{
    (void)random;
    const int64_t half = scene->top / 2;
    return clamp(texture_at(x, y, 5, 0, scene->seed + (unsigned)c) * half / WHITE, -half - 1, half);
}

void paint_ramp(const struct scene *scene)
{
    paint_by_shade(scene, ramp_at);
}

void paint_noise(const struct scene *scene)
{
    paint_by_shade(scene, noise_at);
}

void paint_extremes(const struct scene *scene)
{
    paint_by_shade(scene, extreme_at);
}

void paint_checker(const struct scene *scene)
{
    paint_by_shade(scene, checker_at);
}

void paint_constant(const struct scene *scene)
{
    paint_by_shade(scene, constant_at);
}

void paint_black(const struct scene *scene)
{
    (void)scene; /* planes are 0 */
}

void paint_texture(const struct scene *scene)
{
    paint_by_shade(scene, texture_shade);
}

void paint_outliers(const struct scene *scene)
{
    paint_by_shade(scene, outlier_at);
}

void paint_signed(const struct scene *scene)
{
    paint_by_shade(scene, signed_at);
}

/* ---- A landscape ------------------------------------------------------------------------------------------ */

enum { HILLS = 4 };

/* Colours from the farthest hill, which is hazy, to the nearest. */
static const int hill_colours[HILLS][3] = {
    {30000, 36000, 46000}, {22000, 30000, 33000}, {15000, 24000, 17000}, {20000, 26000, 9000}};

/* The colour of the sky: darker and bluer at the top, with clouds. */
static int64_t sky_at(const struct scene *scene, int c, int x, int y)
{
    static const int above[3] = {16000, 30000, 52000}, below[3] = {52000, 54000, 56000};
    const int rows = scene->planes->rows;
    const int64_t clear = above[c] + (int64_t)(below[c] - above[c]) * 2 * y / rows;
    const int64_t cloud = clamp(texture_at(x, 2 * y, 7, 1, scene->seed) - 8000, 0, 40000);
    return clear + (60000 - clear) * cloud / 50000;
}

/* The row of a hill's skyline in a column, from the top. */
static int skyline(const struct scene *scene, int hill, int x)
{
    const int rows = scene->planes->rows;
    const int64_t wave = texture_at(x, 0, 7 - hill / 2, 0, scene->seed + 10 + (unsigned)hill);
    return rows * (40 + 14 * hill) / 100 + (int)(wave * rows / WHITE * (6 + hill) / 60);
}

static int64_t land_at(const struct scene *scene, int c, int hill, int x, int y)
{
    /* Nearer ground has finer and stronger structure. */
    const int64_t grain = texture_at(x, 2 * y, 3 + hill, 0, scene->seed + 20 + (unsigned)hill);
    const int64_t colour = hill_colours[hill][c];
    return colour + colour * grain / WHITE * (hill + 1) / 6;
}

void paint_landscape(const struct scene *scene)
{
    const int columns = scene->planes->columns, rows = scene->planes->rows;
    const int colours = scene->components < 3 ? 1 : 3;
    int32_t *grain = noise_field(columns, rows, 0, 16 * 350, scene->seed + 77);
    int skylines[HILLS];
    for (int x = 0; x < columns; x++) {
        for (int hill = 0; hill < HILLS; hill++) skylines[hill] = skyline(scene, hill, x);
        for (int y = 0; y < rows; y++) {
            int hill = HILLS - 1;
            while (hill >= 0 && y < skylines[hill]) hill--;
            for (int k = 0; k < colours; k++) {
                const int c = colours == 1 ? 1 : k; /* a grey picture shows the green component */
                scene->planes[k].shades[y * columns + x] =
                    (int32_t)(hill < 0 ? sky_at(scene, c, x, y) : land_at(scene, c, hill, x, y));
            }
        }
    }
    for (int k = 0; k < colours; k++) {
        struct canvas *plane = &scene->planes[k];
        int32_t *own = noise_field(columns, rows, 0, 16 * 200, scene->seed + 78 + (unsigned)k);
        soften(plane);
        for (int i = 0; i < columns * rows; i++)
            plane->shades[i] = scaled(plane->shades[i] + grain[i] + own[i], scene->top);
        free(own);
    }
    free(grain);
    if (is_opacity(scene, scene->components - 1)) paint_opacity(&scene->planes[scene->components - 1], scene->top);
}

/* ---- A screen --------------------------------------------------------------------------------------------- */

void paint_screen(const struct scene *scene)
{
    static const char *const lines[] = {"TEST PATTERN", "PHANTOM 1", "HEART RATE 72", "STOP", "RESET", "PAN 3 OR MORE"};
    enum { LINES = sizeof lines / sizeof lines[0] };
    for (int c = 0; c < scene->components; c++) {
        struct canvas *plane = &scene->planes[c];
        const int columns = plane->columns, rows = plane->rows, top = scene->top;
        if (is_opacity(scene, c)) {
            fill_box(plane, 0, 0, columns, rows, top);
            continue;
        }
        fill_box(plane, 0, 0, columns, rows, top / (3 + c));
        for (int i = 0; i < 3; i++) {
            const int x = columns * (1 + 6 * i) / 20, y = rows * (2 + 4 * i) / 20;
            const int width = columns * 9 / 20, height = rows * 9 / 20;
            fill_box(plane, x, y, width, height, 0);
            fill_box(plane, x + 1, y + 1, width - 2, height - 2, top);
            fill_box(plane, x + 1, y + 1, width - 2, 12, top / (1 + (i + c) % 3));
            for (int k = 0; k < LINES; k++) draw_text(plane, x + 5, y + 18 + 10 * k, 1, 0, lines[(i + k) % LINES]);
        }
    }
}
