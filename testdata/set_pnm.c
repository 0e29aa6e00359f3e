/* PGM and PPM: depths, headers, contents, and sizes close to those of tiles and blocks. */
#include <stdio.h>

#include "testdata_bytes.h"
#include "testdata_scene.h"
#include "testdata_sets.h"

/* printf formats of headers, for columns, rows and maximum. */
static const char plain[] = "\n%d %d\n%d\n";
static const char one_line[] = " %d %d %d ";
static const char commented[] = "\n# made by tessera_testdata\n%d # columns\n  %d\t# rows\n#\n%d\n";

/* Red and green in steps of 8, and blue in all shades. */
static void paint_coarse_landscape(const struct scene *scene)
{
    paint_landscape(scene);
    for (int c = 0; c < 2; c++)
        for (int i = 0; i < scene->planes->columns * scene->planes->rows; i++)
            scene->planes[c].shades[i] -= scene->planes[c].shades[i] % 8;
}

static const struct pnm {
    const char *name;
    painter *paint;
    int columns, rows, components;
    int32_t maximum;
    const char *header;
} files[] = {
    {"ct_12bit", paint_ct_unsigned, 256, 256, 1, 4095, plain},
    {"mr_12bit", paint_mr, 192, 224, 1, 4095, commented},
    {"chest_10bit", paint_chest, 200, 240, 1, 1023, plain},
    {"landscape_8bit", paint_landscape, 384, 256, 3, 255, plain},
    {"landscape_grey_8bit", paint_landscape, 320, 240, 1, 255, commented},
    {"landscape_16bit", paint_landscape, 160, 120, 3, 65535, plain},
    {"landscape_10bit", paint_landscape, 160, 120, 3, 1023, one_line},
    {"texture_200", paint_texture, 100, 75, 1, 200, plain},
    {"texture_16bit", paint_texture, 128, 128, 1, 65535, plain},
    {"ramp_8bit", paint_ramp, 300, 200, 1, 255, one_line},
    {"ramp_16bit", paint_ramp, 130, 90, 1, 65535, plain},
    {"ramp_rgb", paint_ramp, 120, 80, 3, 255, plain},
    {"noise_8bit", paint_noise, 128, 96, 1, 255, plain},
    {"noise_12bit", paint_noise, 96, 128, 1, 4095, plain},
    {"noise_16bit", paint_noise, 100, 100, 1, 65535, plain},
    {"noise_rgb", paint_noise, 64, 64, 3, 255, plain},
    {"noise_rgb_16bit", paint_noise, 50, 40, 3, 65535, plain},
    {"checker_8bit", paint_checker, 96, 96, 1, 255, plain},
    {"checker_16bit", paint_checker, 96, 96, 1, 65535, plain},
    {"checker_rgb_16bit", paint_checker, 40, 40, 3, 65535, plain},
    {"extremes_8bit", paint_extremes, 96, 64, 1, 255, plain},
    {"extremes_16bit", paint_extremes, 96, 64, 1, 65535, plain},
    {"extremes_rgb", paint_extremes, 70, 70, 3, 255, plain},
    {"extremes_1bit", paint_extremes, 75, 50, 1, 1, plain},
    {"constant_8bit", paint_constant, 200, 150, 1, 255, plain},
    {"constant_16bit", paint_constant, 200, 150, 1, 65535, plain},
    {"constant_rgb", paint_constant, 90, 60, 3, 255, plain},
    {"black_8bit", paint_black, 128, 128, 1, 255, plain},
    {"outliers_16bit", paint_outliers, 160, 160, 1, 65535, plain},
    {"outliers_8bit", paint_outliers, 160, 160, 1, 255, plain},
    {"screen_1bit", paint_screen, 160, 120, 1, 1, plain},
    {"screen_8bit", paint_screen, 320, 200, 3, 255, plain},
    {"landscape_coarse", paint_coarse_landscape, 90, 70, 3, 255, plain},
};

static const struct {
    int columns, rows;
} odd_sizes[] = {
    {1, 1},    {1, 7},    {7, 1},    {1, 500},  {500, 1},  {2, 1},     {2, 2},     {2, 3},     {3, 5},
    {4, 4},    {5, 4},    {4, 5},    {8, 8},    {9, 7},    {15, 17},   {16, 16},   {17, 15},   {63, 65},
    {64, 64},  {65, 63},  {64, 65},  {127, 1},  {128, 3},  {31, 33},   {257, 256}, {255, 257}, {1023, 2},
    {1024, 3}, {1025, 3}, {3, 1025}, {2049, 5}, {5, 2049}, {1, 65535}, {65535, 1},
};

static void put_pnm(struct bytes *b, const struct pnm *pnm, uint64_t seed)
{
    char header[200];
    struct canvas *planes = planes_paint(pnm->paint, pnm->columns, pnm->rows, pnm->components, 1, pnm->maximum, seed);
    bytes_put_text(b, pnm->components == 3 ? "P6" : "P5");
    snprintf(header, sizeof header, pnm->header, pnm->columns, pnm->rows, (int)pnm->maximum);
    bytes_put_text(b, header);
    for (int i = 0; i < pnm->columns * pnm->rows; i++)
        for (int c = 0; c < pnm->components; c++) {
            const unsigned shade = (unsigned)planes[c].shades[i];
            if (pnm->maximum > 255)
                bytes_put_u16(b, true, shade & 0xffff);
            else
                bytes_put_u8(b, shade & 0xff);
        }
    planes_free(planes, pnm->components);
}

/* Files with content that is rare but valid, and damaged files. */
static void make_rare(void)
{
    static const struct pnm small = {"", paint_texture, 40, 30, 1, 255, plain},
                            deep = {"", paint_ramp, 40, 30, 1, 1000, plain};
    struct bytes b = {0};
    put_pnm(&b, &small, 1);
    bytes_put_text(&b, "what follows the samples");
    bytes_save(&b, CODED, "pnm/trailing.pgm");
    put_pnm(&b, &deep, 2);
    b.data[b.size - 500] = 0xff; /* above the maximum */
    bytes_save(&b, CODED, "pnm/above_maximum.pgm");
    put_pnm(&b, &small, 3);
    b.size -= 1;
    bytes_save(&b, VERBATIM, "pnm/truncated.pgm");
    put_pnm(&b, &small, 4);
    put_pnm(&b, &small, 5);
    bytes_save(&b, CODED, "pnm/two_images.pgm");
}

void make_pnm(void)
{
    struct bytes b = {0};
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        put_pnm(&b, &files[i], i);
        bytes_save(&b, CODED, "pnm/%s.%s", files[i].name, files[i].components == 3 ? "ppm" : "pgm");
    }
    make_rare();
    for (size_t i = 0; i < sizeof odd_sizes / sizeof odd_sizes[0]; i++)
        for (int deep = 0; deep < 2; deep++) {
            const int columns = odd_sizes[i].columns, rows = odd_sizes[i].rows;
            const struct pnm pnm = {"", paint_texture, columns, rows, 1, deep ? 65535 : 255, plain};
            put_pnm(&b, &pnm, 100 + i);
            bytes_save(&b, CODED, "odd/%dx%d_%dbit.pgm", columns, rows, deep ? 16 : 8);
        }
}
