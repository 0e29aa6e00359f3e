/* Pictures for the benchmark, drawn or from files. See bench.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "entropy/token.h"
#include "io/formats/source.h"
#include "io/nodes/planes/planes.h"
#include "transform/predict/median_edge.h"
#include "transform/predict/residual.h"
#include "app/library/flow.h"
#include "app/library/loss/measure.h"
#include "bench.h"

static void *allocate(size_t bytes)
{
    void *memory = malloc(bytes ? bytes : 1);
    if (!memory) bench_stop(TSR_ERROR_LIMIT, "no memory for %zu bytes of pictures", bytes);
    return memory;
}

/* ---- Drawn pictures -------------------------------------------------------------------------------------------- */

/* The world is larger than a picture. Pictures move over it, 2 samples to the right and 1 down each frame. */
enum { SHAPES = 48, MARGIN = 2 * BENCH_FRAMES_LIMIT, SEED = 4 };

/* An ellipse or a rectangle with a sharp edge. It adds its shade, and may have a texture of stripes or grain. */
struct shape {
    double x, y, width, height;
    int shade, stripes, grain; /* stripes: their period; grain: its amplitude */
    bool rectangle;
};

struct drawing {
    struct bench_pictures *pictures;
    struct shape shapes[SHAPES];
    uint8_t *world;
    size_t pitch;
};

static double unit_random(uint64_t place)
{
    return (double)(bench_random(SEED, place) >> 11) / 9007199254740992.0;
}

static void place_shapes(struct drawing *d)
{
    for (uint64_t i = 0; i < SHAPES; i++) {
        struct shape *s = &d->shapes[i];
        const double size = 0.02 + 0.2 * unit_random(8 * i) * unit_random(8 * i + 1);
        s->x = unit_random(8 * i + 2) * d->pictures->columns;
        s->y = unit_random(8 * i + 3) * d->pictures->rows;
        s->width = size * d->pictures->columns;
        s->height = size * d->pictures->rows * (0.5 + unit_random(8 * i + 4));
        s->shade = (int)(120 * unit_random(8 * i + 5)) - 60;
        s->stripes = i % 4 == 0 ? 3 + (int)(6 * unit_random(8 * i + 6)) : 0;
        s->grain = i % 2 == 1 ? 12 + (int)(50 * unit_random(8 * i + 7)) : 0;
        s->rectangle = i % 3 == 0;
    }
}

static bool is_within(const struct shape *s, double x, double y)
{
    const double u = (x - s->x) / s->width, v = (y - s->y) / s->height;
    return s->rectangle ? u > -1 && u < 1 && v > -1 && v < 1 : u * u + v * v < 1;
}

/* A random value from -0.5 to 0.5. */
static double grain_at(const struct drawing *d, unsigned row, unsigned column)
{
    return (double)(bench_random(SEED + 2, row * d->pitch + column) & 255u) / 255.0 - 0.5;
}

static void draw_row(void *context, unsigned row)
{
    const struct drawing *d = context;
    for (size_t column = 0; column < d->pitch; column++) {
        const double x = (double)column, y = (double)row;
        const double coarse = grain_at(d, row / 2, (unsigned)column / 2);
        double value = 4 * grain_at(d, row, (unsigned)column) + 70 + 60 * x / (double)d->pitch +
                       40 * y / (d->pictures->rows + (double)MARGIN);
        for (int i = 0; i < SHAPES; i++) {
            const struct shape *s = &d->shapes[i];
            if (!is_within(s, x, y)) continue;
            value += s->shade;
            if (s->stripes) value += (int)(column + 2u * row) % s->stripes * 24.0 / s->stripes;
            value += s->grain * coarse;
        }
        d->world[row * d->pitch + column] = (uint8_t)(value < 0 ? 0 : value > 255 ? 255 : value);
    }
}

/* Makes a row of a frame: the world's, with noise of its own. */
static void take_row(void *context, unsigned index)
{
    const struct drawing *d = context;
    const struct bench_pictures *p = d->pictures;
    const unsigned frame = index / p->rows, row = index % p->rows;
    const uint8_t *from = d->world + (row + frame) * d->pitch + 2 * frame;
    uint8_t *to = p->luma + (size_t)index * p->columns;
    uint64_t random = 0;
    for (uint32_t x = 0; x < p->columns; x++, random >>= 8) {
        if (x % 8 == 0) random = bench_random(SEED + 1, (uint64_t)index * p->columns + x);
        const int noise = (int)(random & 3) + (int)(random >> 2 & 3) - 3; /* -3 to 3; small values are more frequent */
        const int value = from[x] + noise;
        to[x] = (uint8_t)(value < 0 ? 0 : value > 255 ? 255 : value);
    }
}

struct bench_pictures bench_draw(struct bench *bench, const char *name, uint32_t columns, uint32_t rows,
                                 uint32_t frames)
{
    struct bench_pictures pictures = {.columns = columns, .rows = rows, .frames = frames, .moves = true};
    struct drawing d = {.pictures = &pictures, .pitch = columns + MARGIN};
    snprintf(pictures.name, sizeof pictures.name, "%s", name);
    pictures.luma = allocate((size_t)columns * rows * frames);
    d.world = allocate(d.pitch * (rows + MARGIN));
    place_shapes(&d);
    tsr_pool_run(bench->pool, draw_row, &d, rows + MARGIN);
    tsr_pool_run(bench->pool, take_row, &d, rows * frames);
    free(d.world);
    pictures.deep_bits = 12;
    pictures.deep = allocate((size_t)columns * rows * frames * sizeof *pictures.deep);
    for (size_t i = 0; i < (size_t)columns * rows * frames; i++) /* noise that grows with the shade */
        pictures.deep[i] =
            (uint16_t)(16u * pictures.luma[i] + (bench_random(SEED + 3, i) & 15u) * pictures.luma[i] / 256u);
    return pictures;
}

/* ---- Images ------------------------------------------------------------------------------------------------------ */

/* An image file, and one of its frames in memory. */
struct image_file {
    struct tsr_input *input;
    struct tsr_source *source;
    const struct tsr_image *image;
    uint8_t *raster;
    size_t samples; /* of the frame, all components */
};

static struct image_file open_image(const char *path)
{
    struct tsr_error error;
    struct image_file file = {0};
    const struct tsr_source_options options = {0};
    enum tsr_status status = tsr_input_open(path, &file.input, &error);
    if (status == TSR_OK) status = tsr_source_open(file.input, &options, &file.source, &error);
    if (status != TSR_OK) bench_stop(status, "%s", error.text);
    file.image = &file.source->header.image;
    if (!tsr_has_frames(&file.source->header) || file.image->bits_allocated > 16)
        bench_stop(TSR_ERROR_READ, "%s is not an image of at most 16 bits", path);
    file.raster = allocate(tsr_raster_bytes(file.image));
    status = tsr_source_read_frame(file.source, 0, file.raster, &error);
    if (status != TSR_OK) bench_stop(status, "%s", error.text);
    file.samples = (size_t)file.image->columns * file.image->rows * file.image->components;
    return file;
}

static void close_image(struct image_file *file)
{
    free(file->raster);
    tsr_source_close(file->source);
    tsr_input_close(file->input);
}

static uint16_t *samples_of(const struct image_file *file)
{
    uint16_t *samples = allocate(file->samples * sizeof *samples);
    tsr_unpack_samples(file->image, file->raster, samples, NULL);
    return samples;
}

static struct bench_pictures read_image(const char *path)
{
    struct image_file file = open_image(path);
    const int components = file.image->components, bits = file.image->bits_stored;
    struct bench_pictures p = {.columns = file.image->columns, .rows = file.image->rows, .frames = 1};
    uint16_t *samples = samples_of(&file);
    const size_t pixels = file.samples / (size_t)components;
    p.luma = allocate(pixels);
    for (size_t i = 0; i < pixels; i++) {
        const uint16_t *s = samples + i * (size_t)components;
        const uint32_t value = components >= 3 ? (77u * s[0] + 150u * s[1] + 29u * s[2]) >> 8 : s[0]; /* BT.601 */
        p.luma[i] = (uint8_t)(bits > 8 ? value >> (bits - 8) : bits < 8 ? value << (8 - bits) : value);
    }
    if (components == 1 && bits > 8) {
        p.deep = samples;
        p.deep_bits = bits;
    } else {
        free(samples);
    }
    close_image(&file);
    return p;
}

/* The luma of the frames of a video, which stands above the chroma: PLANES.md. */
static struct bench_pictures read_video(const char *path)
{
    struct image_file file = open_image(path);
    const struct tsr_image *const image = file.image;
    const unsigned form = file.source->header.parameters[0];
    if (!tsr_has_planes(&file.source->header) || image->bits_allocated != 8)
        bench_stop(TSR_ERROR_READ, "%s is not 8-bit Y4M", path);
    struct bench_pictures p = {.moves = true};
    tsr_planes_luma(image, form, &p.columns, &p.rows);
    p.frames = image->frames < BENCH_FRAMES_LIMIT ? image->frames : BENCH_FRAMES_LIMIT;
    p.luma = allocate((size_t)p.columns * p.rows * p.frames);
    uint8_t *luma = p.luma;
    for (uint32_t f = 0; f < p.frames; f++) {
        struct tsr_error error;
        const enum tsr_status status = tsr_source_read_frame(file.source, f, file.raster, &error);
        if (status != TSR_OK) bench_stop(status, "%s", error.text);
        for (uint32_t y = 0; y < p.rows; y++, luma += p.columns)
            memcpy(luma, file.raster + (size_t)y * image->columns, p.columns);
    }
    close_image(&file);
    return p;
}

static struct bench_pictures read_pictures(const char *path)
{
    char head[10] = {0};
    FILE *f = fopen(path, "rb");
    struct bench_pictures p;
    if (!f) bench_stop(TSR_ERROR_READ, "cannot open %s", path);
    const bool is_y4m = fread(head, 1, 9, f) == 9 && !memcmp(head, "YUV4MPEG2", 9);
    p = is_y4m ? read_video(path) : read_image(path);
    fclose(f);
    const char *slash = strrchr(path, '/');
    snprintf(p.name, sizeof p.name, "%s", slash ? slash + 1 : path);
    for (char *c = p.name; *c; c++) /* a name need not be UTF-8, but JSON must be */
        if ((unsigned char)*c < 0x20 || (unsigned char)*c > 0x7e) *c = '?';
    return p;
}

/* Appends the frames of more to those of all if both are stills of one size. Returns whether it has done so. */
static bool join(struct bench_pictures *all, const struct bench_pictures *more)
{
    const size_t bytes = (size_t)all->columns * all->rows * all->frames;
    const size_t added = (size_t)more->columns * more->rows * more->frames;
    if (all->moves || more->moves || all->columns != more->columns || all->rows != more->rows) return false;
    if (!all->deep != !more->deep) return false;
    uint8_t *luma = realloc(all->luma, bytes + added);
    if (!luma) bench_stop(TSR_ERROR_LIMIT, "no memory for pictures");
    memcpy(luma + bytes, more->luma, added);
    all->luma = luma;
    if (all->deep) {
        uint16_t *deep = realloc(all->deep, (bytes + added) * sizeof *deep);
        if (!deep) bench_stop(TSR_ERROR_LIMIT, "no memory for pictures");
        memcpy(deep + bytes, more->deep, added * sizeof *deep);
        all->deep = deep;
        all->deep_bits = all->deep_bits > more->deep_bits ? all->deep_bits : more->deep_bits;
    }
    all->frames += more->frames;
    snprintf(all->name, sizeof all->name, "%u stills of %u x %u", all->frames, all->columns, all->rows);
    return true;
}

struct bench_pictures *bench_read_files(const struct bench_options *options, int *count)
{
    struct bench_pictures *all = allocate((size_t)options->file_count * sizeof *all);
    *count = 0;
    for (int i = 0; i < options->file_count; i++) {
        struct bench_pictures more = read_pictures(options->files[i]);
        int at = 0;
        while (at < *count && !join(&all[at], &more)) at++;
        if (at == *count)
            all[(*count)++] = more;
        else
            bench_free_pictures(&more);
    }
    return all;
}

void bench_free_pictures(struct bench_pictures *pictures)
{
    free(pictures->luma);
    free(pictures->deep);
}

static uint8_t *read_raster(const char *path, size_t *bytes)
{
    struct image_file file = open_image(path);
    uint8_t *raster = file.raster;
    *bytes = tsr_raster_bytes(file.image);
    file.raster = NULL;
    close_image(&file);
    return raster;
}

/* The token of the sample at (x, y) of a component; samples are interleaved. */
static uint8_t token_at(const uint16_t *s, size_t step, size_t pitch, uint32_t x, uint32_t y, int32_t range)
{
    const int32_t w = x ? *(s - step) : y ? *(s - pitch) : 0;
    const int32_t n = y ? *(s - pitch) : w;
    const int32_t nw = x && y ? *(s - pitch - step) : y ? n : w;
    const int32_t prediction = y ? tsr_median_edge(w, n, nw) : w;
    return (uint8_t)tsr_token_symbol(tsr_fold(tsr_residual(*s, prediction, range)));
}

static uint8_t *read_tokens(const char *path, size_t *count)
{
    struct image_file file = open_image(path);
    uint16_t *samples = samples_of(&file);
    uint8_t *tokens = allocate(file.samples), *next = tokens;
    const size_t step = file.image->components, pitch = step * file.image->columns;
    for (size_t c = 0; c < step; c++)
        for (uint32_t y = 0; y < file.image->rows; y++)
            for (uint32_t x = 0; x < file.image->columns; x++)
                *next++ = token_at(samples + y * pitch + x * step + c, step, pitch, x, y, 1 << file.image->bits_stored);
    *count = file.samples;
    free(samples);
    close_image(&file);
    return tokens;
}

uint8_t *bench_read_samples(const struct bench_options *options, bool as_tokens, size_t *count)
{
    uint8_t *all = NULL;
    *count = 0;
    for (int i = 0; i < options->file_count; i++) {
        size_t more;
        uint8_t *bytes = (as_tokens ? read_tokens : read_raster)(options->files[i], &more);
        uint8_t *grown = bench_take(ON_HOST, *count + more + 16);
        if (all) memcpy(grown, all, *count);
        memcpy(grown + *count, bytes, more);
        free(bytes);
        bench_give(ON_HOST, all);
        all = grown;
        *count += more;
    }
    return all;
}

/* ---- Frames as they are stored ----------------------------------------------------------------------------------- */

enum { FRAMES_OF_FILE = 8, FRAMES_OF_SET = 64 };

static bool same_layout(const struct tsr_image *a, const struct tsr_image *b)
{
    return a->columns == b->columns && a->rows == b->rows && a->components == b->components &&
           a->bits_allocated == b->bits_allocated && a->bits_stored == b->bits_stored && a->high_bit == b->high_bit &&
           a->is_signed == b->is_signed && a->planar == b->planar && a->big_endian == b->big_endian &&
           a->swapped == b->swapped;
}

static struct bench_frames frames_of(const struct tsr_image *image)
{
    struct bench_frames f = {.image = *image};
    f.image.frames = 1;
    f.rasters = allocate(FRAMES_OF_SET * tsr_raster_bytes(image));
    f.decoded = allocate(FRAMES_OF_SET * tsr_raster_bytes(image));
    return f;
}

static struct bench_frames *read_sets(const struct bench_options *options, int *count)
{
    struct bench_frames *all = allocate((size_t)options->file_count * sizeof *all);
    *count = 0;
    for (int i = 0; i < options->file_count; i++) {
        struct image_file file = open_image(options->files[i]);
        const char *slash = strrchr(options->files[i], '/');
        int at = 0;
        while (at < *count && !same_layout(&all[at].image, file.image)) at++;
        if (at == *count) {
            all[(*count)++] = frames_of(file.image);
            snprintf(all[at].name, sizeof all[at].name, "%s", slash ? slash + 1 : options->files[i]);
            for (char *c = all[at].name; *c; c++)
                if ((unsigned char)*c < 0x20 || (unsigned char)*c > 0x7e) *c = '?';
        }
        struct bench_frames *set = &all[at];
        for (uint32_t f = 0; f < file.image->frames && f < FRAMES_OF_FILE && set->frames < FRAMES_OF_SET; f++) {
            struct tsr_error error;
            uint8_t *raster = set->rasters + set->frames++ * tsr_raster_bytes(file.image);
            if (f == 0)
                memcpy(raster, file.raster, tsr_raster_bytes(file.image)); /* open_image() has read it */
            else if (tsr_source_read_frame(file.source, f, raster, &error) != TSR_OK)
                bench_stop(error.status, "%s", error.text);
        }
        close_image(&file);
    }
    return all;
}

struct bench_frames *bench_find_frames(struct bench *bench, int *count)
{
    enum { DRAWN = 8 };
    const bool quick = bench->options->quick;
    const uint32_t side = quick ? 96 : 512, frames = quick ? 2 : DRAWN;
    if (bench->options->takes_files) return read_sets(bench->options, count);
    struct bench_frames *all = allocate(2 * sizeof *all);
    struct bench_pictures drawn = bench_draw(bench, "drawn", side, side, frames);
    *count = 2;
    for (int i = 0; i < 2; i++) {
        const uint8_t bits = i ? 8 : 12;
        const struct tsr_image image = {.columns = side,
                                        .rows = side,
                                        .frames = 1,
                                        .components = 1,
                                        .bits_allocated = i ? 8 : 16,
                                        .bits_stored = bits,
                                        .high_bit = (uint8_t)(bits - 1)};
        all[i] = frames_of(&image);
        all[i].frames = frames;
        snprintf(all[i].name, sizeof all[i].name, "drawn");
        for (size_t k = 0; k < (size_t)frames * side * side; k++) {
            const uint32_t value = (uint32_t)drawn.luma[k] << 4 | (uint32_t)(bench_random(SEED + 3, k) & 15u);
            if (i) all[i].rasters[k] = drawn.luma[k];
            if (!i) all[i].rasters[2 * k] = (uint8_t)value;
            if (!i) all[i].rasters[2 * k + 1] = (uint8_t)(value >> 8);
        }
    }
    bench_free_pictures(&drawn);
    return all;
}
