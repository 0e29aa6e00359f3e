/* Files with a region that comes back as it was (roi of struct tsr_compress_options): drawn regions, masks and bodies
 * of images of all depths and layouts. Samples are compared here, one by one. BASE.md 4. */
#include "tests/unit/images.h"

#include <math.h>

#include "tests/sections/sections.h"

enum { REGIONS = 12, MOST_BYTES = 1 << 20 };

static struct tsr_engine *engine;
static struct tsr_error error;
static uint8_t raster[MOST_BYTES], again[MOST_BYTES], part[MOST_BYTES];
static uint8_t mask[MOST_BYTES];

#define DO(call) expect((call) == TSR_OK, "%s: %s", #call, error.text)

static int start(void **state)
{
    (void)state;
    engine = make_engine(TSR_ENGINE_CPU, 2);
    return engine ? 0 : -1;
}

static int end(void **state)
{
    (void)state;
    tsr_engine_destroy(engine);
    return 0;
}

/* A bright disc with noise before a dark ground with less. */
static void fill_frames(const struct tsr_image *image, struct rng *r)
{
    const size_t pixels = (size_t)image->columns * image->rows;
    const uint32_t most = (1u << image->bits_stored) - 1, sign = image->is_signed ? (most + 1) / 2 : 0;
    memset(raster, 0, raster_bytes(image) * image->frames);
    for (uint32_t f = 0; f < image->frames; f++)
        for (size_t i = 0; i < pixels; i++)
            for (int c = 0; c < image->components; c++) {
                const int64_t x = (int64_t)(i % image->columns) - image->columns / 2,
                              y = (int64_t)(i / image->columns) - image->rows / 2,
                              side = image->columns < image->rows ? image->columns : image->rows;
                const uint32_t wave = (uint32_t)((x * x / 16 + 3 * y + 40 * f) & 63);
                const uint32_t value = 9 * (x * x + y * y) < side * side
                                           ? most / 2 + wave * most / 600 + rng_below(r, most / 20 + 1)
                                           : most / 10 + rng_below(r, most / 40 + 1);
                put_word(image, raster + f * raster_bytes(image), word_place(image, c, i),
                         (value ^ sign) << (image->high_bit + 1 - image->bits_stored));
            }
}

struct region {
    struct tsr_roi roi;
    struct tsr_region rectangle[3];
};

/* One to three rectangles, some of which reach out of the image; a disc as a mask; or the body. */
static void draw_region(struct rng *r, const struct tsr_image *image, struct region *region)
{
    *region = (struct region){.roi = TSR_ROI};
    region->roi.rectangles = region->rectangle;
    const uint32_t kind = rng_below(r, 6), radius = 2 + rng_below(r, 20);
    if (kind < 4) {
        region->roi.rectangle_count = kind < 2 ? 1 : kind;
        for (uint32_t i = 0; i < region->roi.rectangle_count; i++)
            region->rectangle[i] =
                (struct tsr_region){rng_below(r, image->columns), rng_below(r, image->rows),
                                    1 + rng_below(r, image->columns / 3 + 1), 1 + rng_below(r, image->rows / 3 + 1)};
        return;
    }
    region->roi.body = kind == 5;
    if (kind == 5) return;
    const int64_t column = rng_below(r, image->columns), row = rng_below(r, image->rows);
    region->roi.mask = mask;
    region->roi.mask_columns = image->columns;
    region->roi.mask_rows = image->rows;
    for (int64_t y = 0; y < image->rows; y++)
        for (int64_t x = 0; x < image->columns; x++)
            mask[y * image->columns + x] =
                (x - column) * (x - column) + (y - row) * (y - row) < (int64_t)radius * radius ? 7 : 0;
}

static bool is_wanted(const struct region *region, const struct tsr_image *image, uint32_t x, uint32_t y)
{
    for (uint32_t i = 0; i < region->roi.rectangle_count; i++) {
        const struct tsr_region *const r = &region->rectangle[i];
        if (x >= r->column && x - r->column < r->columns && y >= r->row && y - r->row < r->rows) return true;
    }
    return region->roi.mask && mask[(size_t)y * image->columns + x];
}

/* What is told to be exact, as a map. */
static uint8_t told[MOST_BYTES];
static void read_told(struct tsr_reader *reader, const struct tsr_image *image, const struct tsr_info *info)
{
    struct tsr_region list[4096];
    uint32_t count;
    uint64_t samples = 0;
    DO(tsr_read_exact(reader, 0, list, 4096, &count, &error));
    assert_int_equal(count, info->exact.rectangles);
    memset(told, 0, (size_t)image->columns * image->rows);
    for (uint32_t i = 0; i < count; i++) {
        const struct tsr_region *const box = &info->exact.box, *const r = &list[i];
        assert_true(r->column >= box->column && r->row >= box->row &&
                    r->column + r->columns <= box->column + box->columns && r->row + r->rows <= box->row + box->rows);
        for (uint32_t y = r->row; y < r->row + r->rows; y++)
            for (uint32_t x = r->column; x < r->column + r->columns; x++) {
                assert_false(told[y * image->columns + x]);
                told[y * image->columns + x] = 1;
                samples++;
            }
    }
    assert_int_equal(samples, info->exact.samples);
    assert_true(info->exact.box.column + info->exact.box.columns <= image->columns);
    assert_true(info->exact.box.row + info->exact.box.rows <= image->rows);
}

/* ---- Checks of one file -------------------------------------------------------------------------------------- */

/* What differs outside of what is told to be exact, where nothing may. */
struct outside {
    uint64_t samples;
    double square;
    int64_t most;
};

static void compare_frame(const struct tsr_image *image, const struct region *region, const uint8_t *original,
                          const uint8_t *decoded, struct outside *o)
{
    for (size_t i = 0; i < (size_t)image->columns * image->rows; i++)
        for (int c = 0; c < image->components; c++) {
            const size_t at = word_place(image, c, i);
            const int64_t difference = get_value(image, original, at) - get_value(image, decoded, at);
            const bool is_asked =
                is_wanted(region, image, (uint32_t)(i % image->columns), (uint32_t)(i / image->columns));
            expect(told[i] || !is_asked, "sample %zu was asked for, and is not told to be exact", i);
            expect(!told[i] || get_word(image, original, at) == get_word(image, decoded, at), "sample %zu differs", i);
            if (told[i]) continue;
            o->samples++;
            o->square += (double)(difference * difference);
            if (difference < 0 ? -difference > o->most : difference > o->most)
                o->most = difference < 0 ? -difference : difference;
        }
}

/* Regions of frames are cut out of the frames. */
static void compare_parts(struct tsr_reader *reader, const struct tsr_image *image, struct rng *r)
{
    const uint32_t f = rng_below(r, image->frames);
    DO(tsr_read_frame(reader, 0, f, again, raster_bytes(image), 0, &error));
    for (int i = 0; i < 6; i++) {
        struct tsr_region p = {rng_below(r, image->columns), rng_below(r, image->rows), 0, 0};
        struct tsr_image of_part = *image;
        p.columns = 1 + rng_below(r, image->columns - p.column);
        p.rows = 1 + rng_below(r, image->rows - p.row);
        of_part.columns = p.columns;
        of_part.rows = p.rows;
        of_part.swapped = false;
        DO(tsr_read_region(reader, 0, f, &p, part, sizeof part, 0, &error));
        for (size_t k = 0; k < (size_t)p.columns * p.rows; k++)
            for (int c = 0; c < image->components; c++) {
                const size_t there = (p.row + k / p.columns) * image->columns + p.column + k % p.columns;
                assert_int_equal(get_word(&of_part, part, word_place(&of_part, c, k)),
                                 get_word(image, again, word_place(image, c, there)));
            }
    }
}

/* What is told of the base is what it tells of itself. */
static void compare_bases(const struct tsr_buffer *file, const struct tsr_info *info)
{
    struct tsr_data_source source = tsr_from_memory(file->bytes, file->count);
    struct tsr_reader *reader;
    struct tsr_info of_base = TSR_INFO;
    source.base = true;
    DO(tsr_open(engine, &source, &reader, &error));
    DO(tsr_read_info(reader, 0, &of_base, &error));
    tsr_close(reader);
    assert_int_equal(of_base.file_bytes, info->base_bytes);
    assert_int_equal(of_base.max_error, info->base_max_error);
    assert_true(of_base.psnr_db == info->base_psnr_db);
    assert_int_equal(of_base.exact.samples, 0);
    assert_true(of_base.promise == TSR_PROMISE_LOSSY && memcmp(of_base.original_hash, info->original_hash, 16) == 0);
}

static void check_file(const struct tsr_image *image, const struct region *region, const struct tsr_buffer *file,
                       const struct tsr_compress_options *options, const struct tsr_report *report, struct rng *r)
{
    const struct tsr_data_source source = tsr_from_memory(file->bytes, file->count);
    const size_t bytes = raster_bytes(image);
    struct tsr_buffer restored = {NULL, 0};
    const struct tsr_data_sink sink = tsr_to_memory(&restored);
    struct tsr_info info = TSR_INFO;
    struct tsr_reader *reader;
    struct outside outside = {0, 0, 0};
    DO(tsr_restore(engine, &source, &sink, NULL, &error));
    DO(tsr_open(engine, &source, &reader, &error));
    DO(tsr_read_info(reader, 0, &info, &error));
    assert_true(report->verified && report->promise == TSR_PROMISE_LOSSY && info.promise == TSR_PROMISE_LOSSY);
    assert_memory_equal(&report->exact, &info.exact, sizeof info.exact);
    assert_true(info.exact.samples > 0);
    read_told(reader, image, &info);
    assert_int_equal(restored.count, bytes * image->frames);
    for (uint32_t f = 0; f < image->frames; f++) {
        DO(tsr_read_frame(reader, 0, f, again, bytes, 0, &error));
        assert_memory_equal(again, restored.bytes + f * bytes, bytes);
        compare_frame(image, region, raster + f * bytes, again, &outside);
    }
    assert_int_equal(outside.most, info.max_error);
    if (options->loss == TSR_LOSS_MAX_ERROR) assert_true(outside.most <= options->max_error);
    if (options->loss == TSR_LOSS_PSNR && outside.square > 0) {
        const double psnr = 10 * log10((double)info.range * info.range * (double)outside.samples / outside.square);
        expect(psnr > options->psnr_hundredths / 100.0 - 0.005, "%.3f dB outside", psnr);
    }
    compare_parts(reader, image, r);
    tsr_close(reader);
    compare_bases(file, &info);
    tsr_buffer_free(&restored);
}

/* ---- Regions of images --------------------------------------------------------------------------------------- */

static void try_images(const struct tsr_image *image, uint64_t seed)
{
    struct rng r = {seed};
    const struct tsr_data_source source = tsr_from_memory(raster, raster_bytes(image) * image->frames);
    int with_region = 0;
    for (int i = 0; i < REGIONS; i++) {
        struct tsr_compress_options options = TSR_COMPRESS_OPTIONS;
        struct tsr_report report = TSR_REPORT;
        struct tsr_buffer file = {NULL, 0};
        const struct tsr_data_sink sink = tsr_to_memory(&file);
        struct region region;
        fill_frames(image, &r);
        draw_region(&r, image, &region);
        options.effort = 1 + (int)rng_below(&r, 9);
        options.loss = (enum tsr_loss[]){TSR_LOSS_PSNR, TSR_LOSS_MAX_ERROR, TSR_LOSS_QUALITY, TSR_LOSS_QP}[i % 4];
        if (options.loss == TSR_LOSS_PSNR) options.psnr_hundredths = 3600;
        if (options.loss == TSR_LOSS_MAX_ERROR)
            options.max_error = 1u << (image->bits_stored > 5 ? image->bits_stored - 5 : 0);
        if (options.loss == TSR_LOSS_QUALITY) options.quality = TSR_QUALITY_WEB;
        if (options.loss == TSR_LOSS_QP) options.qp_eighths = 240;
        options.roi = &region.roi;
        DO(tsr_compress_raster(engine, image, &source, &sink, &options, &report, &error));
        if (report.promise == TSR_PROMISE_LOSSY) {
            check_file(image, &region, &file, &options, &report, &r);
            with_region++;
        }
        tsr_buffer_free(&file);
    }
    expect(with_region >= REGIONS / 3, "%d of %d files have a region", with_region, REGIONS);
}

TEST(grey)
{
    try_images(&(struct tsr_image){.columns = 231,
                                   .rows = 187,
                                   .frames = 1,
                                   .components = 1,
                                   .bits_allocated = 8,
                                   .bits_stored = 8,
                                   .high_bit = 7},
               1);
    try_images(&(struct tsr_image){.columns = 200,
                                   .rows = 150,
                                   .frames = 1,
                                   .components = 1,
                                   .bits_allocated = 8,
                                   .bits_stored = 7,
                                   .high_bit = 7,
                                   .swapped = true},
               2);
    try_images(&(struct tsr_image){.columns = 150,
                                   .rows = 263,
                                   .frames = 1,
                                   .components = 1,
                                   .bits_allocated = 16,
                                   .bits_stored = 12,
                                   .high_bit = 11},
               3);
    try_images(&(struct tsr_image){.columns = 250,
                                   .rows = 163,
                                   .frames = 1,
                                   .components = 1,
                                   .bits_allocated = 16,
                                   .bits_stored = 16,
                                   .high_bit = 15,
                                   .is_signed = true,
                                   .big_endian = true},
               4);
    try_images(&(struct tsr_image){.columns = 190,
                                   .rows = 160,
                                   .frames = 1,
                                   .components = 1,
                                   .bits_allocated = 16,
                                   .bits_stored = 10,
                                   .high_bit = 13,
                                   .is_signed = true},
               5);
}

TEST(colour)
{
    try_images(&(struct tsr_image){.columns = 160,
                                   .rows = 131,
                                   .frames = 1,
                                   .components = 3,
                                   .bits_allocated = 8,
                                   .bits_stored = 8,
                                   .high_bit = 7},
               6);
    try_images(&(struct tsr_image){.columns = 130,
                                   .rows = 120,
                                   .frames = 1,
                                   .components = 3,
                                   .bits_allocated = 8,
                                   .bits_stored = 8,
                                   .high_bit = 7,
                                   .planar = true},
               7);
    try_images(&(struct tsr_image){.columns = 110,
                                   .rows = 140,
                                   .frames = 1,
                                   .components = 4,
                                   .bits_allocated = 16,
                                   .bits_stored = 16,
                                   .high_bit = 15},
               8);
    try_images(&(struct tsr_image){.columns = 120,
                                   .rows = 117,
                                   .frames = 1,
                                   .components = 2,
                                   .bits_allocated = 8,
                                   .bits_stored = 8,
                                   .high_bit = 7},
               9);
}

TEST(frames)
{
    try_images(&(struct tsr_image){.columns = 110,
                                   .rows = 93,
                                   .frames = 5,
                                   .components = 1,
                                   .bits_allocated = 16,
                                   .bits_stored = 14,
                                   .high_bit = 13},
               10);
}

/* What cannot be is said: none of a rectangle in the image, a mask of another size or of zeros, options that
 * contradict each other. */
TEST(refusals)
{
    const struct tsr_image image = {.columns = 100,
                                    .rows = 80,
                                    .frames = 1,
                                    .components = 1,
                                    .bits_allocated = 16,
                                    .bits_stored = 12,
                                    .high_bit = 11};
    struct rng r = {11};
    struct tsr_compress_options options = TSR_COMPRESS_OPTIONS;
    struct tsr_buffer file = {NULL, 0};
    const struct tsr_data_sink sink = tsr_to_memory(&file);
    const struct tsr_data_source source = tsr_from_memory(raster, raster_bytes(&image));
    struct region region = {.roi = TSR_ROI};
    fill_frames(&image, &r);
    memset(mask, 0, sizeof mask);
    region.roi.rectangles = region.rectangle;
    options.loss = TSR_LOSS_QP;
    options.qp_eighths = 240;
    options.roi = &region.roi;
    assert_int_equal(tsr_check_options(&options, &error), TSR_ERROR_USAGE);
    region.roi.rectangle_count = 1;
    assert_int_equal(tsr_check_options(&options, &error), TSR_ERROR_USAGE);
    for (int i = 0; i < 4; i++) {
        region.rectangle[0] =
            (struct tsr_region[]){{100, 0, 5, 5}, {0, 80, 5, 5}, {UINT32_MAX, 0, 9, 9}, {0, 0, 5, 5}}[i];
        region.roi.mask = i == 3 ? mask : NULL;
        region.roi.mask_columns = 80;
        region.roi.mask_rows = 100;
        assert_int_equal(tsr_check_options(&options, &error), TSR_OK);
        assert_int_equal(tsr_compress_raster(engine, &image, &source, &sink, &options, NULL, &error), TSR_ERROR_USAGE);
        assert_null(file.bytes);
    }
    region.roi.rectangle_count = 0;
    region.roi.mask_columns = 100;
    region.roi.mask_rows = 80;
    assert_int_equal(tsr_compress_raster(engine, &image, &source, &sink, &options, NULL, &error), TSR_ERROR_USAGE);
    region.roi.body = true;
    options.lossless_rest = true;
    assert_int_equal(tsr_check_options(&options, &error), TSR_ERROR_USAGE);
    options.lossless_rest = false;
    options.loss = TSR_LOSS_BYTES;
    options.qp_eighths = 0;
    options.byte_limit = 1000;
    assert_int_equal(tsr_check_options(&options, &error), TSR_ERROR_USAGE);
    options.loss = TSR_LOSSLESS;
    options.byte_limit = 0;
    assert_int_equal(tsr_check_options(&options, &error), TSR_ERROR_USAGE);
}

/* ---- Hostile files -------------------------------------------------------------------------------------------- */

/* Left, top, width, height, across and down as varints below 128, and bits. */
struct value {
    uint8_t bytes[6 + 600];
    size_t size;
    enum tsr_status status;
};

/* The header of a file with another item 15, which is the last one, but for the id of the base at its begin. */
static struct bytes with_value(const struct tsr_buffer *file, size_t old, const struct value *value)
{
    struct sections s;
    assert_true(split_sections(file->bytes, file->count, &s));
    const struct bytes header = s.section[0].body;
    enum { ID = 8 };
    struct bytes other = copy_bytes(header.data, header.size - old - ID - 1);
    const size_t size = ID + value->size;
    uint8_t length[2] = {(uint8_t)(size | 0x80), (uint8_t)(size >> 7)};
    if (size < 128) length[0] = (uint8_t)size;
    append(&other, length, size < 128 ? 1 : 2);
    append(&other, header.data + header.size - old - ID, ID);
    append(&other, value->bytes, value->size);
    replace_body(&s, 0, other.data, other.size);
    const struct bytes made = join_sections(&s, NEW_IDS);
    free(other.data);
    free_sections(&s);
    return made;
}

TEST(hostile_patches)
{
    const struct tsr_image image = {
        .columns = 100, .rows = 80, .frames = 1, .components = 1, .bits_allocated = 8, .bits_stored = 8, .high_bit = 7};
    struct rng r = {12};
    struct tsr_compress_options options = TSR_COMPRESS_OPTIONS;
    struct tsr_buffer file = {NULL, 0};
    const struct tsr_data_sink sink = tsr_to_memory(&file);
    const struct tsr_data_source source = tsr_from_memory(raster, raster_bytes(&image));
    struct region region = {.roi = TSR_ROI, .rectangle = {{20, 30, 25, 15}}};
    /* The first one is the file's own. What the last ones of these say is possible, and the patches decode to others.
     */
    static const struct value values[] = {
        {{20, 30, 25, 15, 1, 1, 1}, 7, TSR_OK},
        {{20, 30, 25, 15, 1, 1, 0}, 7, TSR_ERROR_CORRUPT}, /* no patch */
        {{20, 30, 25, 15, 1, 1, 3}, 7, TSR_ERROR_CORRUPT}, /* a spare bit */
        {{20, 30, 25, 15, 1, 1}, 6, TSR_ERROR_CORRUPT},    /* no bits */
        {{20, 30, 25, 15, 1, 1, 1, 0}, 8, TSR_ERROR_CORRUPT},
        {{20, 30, 25, 15, 0, 1, 1}, 7, TSR_ERROR_CORRUPT},
        {{20, 30, 25, 15, 1, 0, 1}, 7, TSR_ERROR_CORRUPT},
        {{20, 30, 0, 15, 1, 1, 1}, 7, TSR_ERROR_CORRUPT},
        {{20, 30, 25, 0, 1, 1, 1}, 7, TSR_ERROR_CORRUPT},
        {{100, 30, 25, 15, 1, 1, 1}, 7, TSR_ERROR_CORRUPT}, /* outside of the image */
        {{20, 80, 25, 15, 1, 1, 1}, 7, TSR_ERROR_CORRUPT},
        {{20, 30, 101, 15, 1, 1, 1}, 7, TSR_ERROR_CORRUPT}, /* wider than the image */
        {{20, 30, 25, 81, 1, 1, 1}, 7, TSR_ERROR_CORRUPT},
        {{20, 30, 40, 15, 3, 1, 1}, 7, TSR_ERROR_CORRUPT},        /* the last place begins outside */
        {{20, 30, 25, 15, 127, 127}, 6 + 514, TSR_ERROR_CORRUPT}, /* too many places */
        {{20, 30, 25, 15, 3, 1, 7}, 7, TSR_ERROR_CORRUPT},        /* more patches than the file has */
        {{21, 30, 25, 15, 1, 1, 1}, 7, TSR_ERROR_CORRUPT},        /* elsewhere */
        {{90, 70, 25, 15, 1, 1, 1}, 7, TSR_ERROR_CORRUPT},        /* reaches out of the image */
        {{20, 30, 15, 25, 1, 1, 1}, 7, TSR_ERROR_CORRUPT},
    };
    fill_frames(&image, &r);
    region.roi.rectangles = region.rectangle;
    region.roi.rectangle_count = 1;
    options.loss = TSR_LOSS_QP;
    options.qp_eighths = 300;
    options.roi = &region.roi;
    DO(tsr_compress_raster(engine, &image, &source, &sink, &options, NULL, &error));
    for (size_t i = 0; i < COUNT_OF(values); i++) {
        struct bytes made = with_value(&file, values[0].size, &values[i]);
        const struct tsr_data_source hostile = tsr_from_memory(made.data, made.size);
        const enum tsr_status status = tsr_test(engine, &hostile, NULL, &error);
        expect(status == values[i].status, "value %zu: %s", i, status == TSR_OK ? "taken" : error.text);
        free(made.data);
    }
    tsr_buffer_free(&file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(grey),     cmocka_unit_test(colour),          cmocka_unit_test(frames),
        cmocka_unit_test(refusals), cmocka_unit_test(hostile_patches),
    };
    return cmocka_run_group_tests(tests, start, end);
}
