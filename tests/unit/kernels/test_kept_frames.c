/* Frames with kept ranges (kernels/kept): kept samples come back, no other sample becomes one, and the bound of errors
 * holds, whatever the image, the ranges and the coding. FORMAT.md 6.7. */
#include "tests/unit/kernels/engines.h"

#include "kernels/kept/edge_coder.h"
#include "kernels/kept/kept_frames.h"
#include "kernels/kept/kept_masks.h"
#include "kernels/kept/mask_coder.h"
#include "transform/planes/samples.h"

/* An image that may be coded with loss. */
static struct tsr_image lossy_image(struct rng *r, int32_t most)
{
    for (;;) {
        const struct tsr_image image = random_image(r, most);
        if ((image.bits_allocated == 8 || image.bits_allocated == 16) && image.bits_stored > 1) return image;
    }
}

static struct tsr_kept_ranges random_ranges(struct rng *r, const struct tsr_image *image)
{
    const uint32_t values = 1u << image->bits_stored;
    for (;;) {
        struct tsr_kept_ranges kept = {.count = 1 + (int)rng_below(r, TSR_KEPT_RANGES_LIMIT)};
        uint32_t least = 0;
        for (int i = 0; i < kept.count; i++) {
            const uint32_t lowest = least + rng_below(r, rng_below(r, 2) ? values : 4),
                           highest = lowest + rng_below(r, rng_below(r, 3) ? 2 : values / 4 + 1);
            kept.range[i] = (struct tsr_kept_values){lowest, highest};
            least = highest + 2;
        }
        if (tsr_check_kept(&kept, image->bits_stored)) return kept;
    }
}

/* The value of a word in the first plane, read as FORMAT.md 6.1 says. */
static uint32_t value_of(const struct tsr_image *image, uint32_t word)
{
    const uint32_t f = word >> (image->high_bit + 1 - image->bits_stored) & ((1u << image->bits_stored) - 1u);
    return image->is_signed ? f ^ 1u << (image->bits_stored - 1) : f;
}

static bool is_inside(const struct tsr_kept_ranges *kept, uint32_t value)
{
    for (int i = 0; i < kept->count; i++)
        if (kept->range[i].lowest <= value && value <= kept->range[i].highest) return true;
    return false;
}

/* Gives some areas of a raster kept values, a few of them values beside a range. */
static void put_kept(struct rng *r, const struct tsr_image *image, const struct tsr_kept_ranges *kept, uint8_t *raster)
{
    const uint32_t top = (1u << image->bits_stored) - 1u;
    const int low = image->high_bit + 1 - image->bits_stored;
    for (int area = 0; area < 6; area++) {
        const struct tsr_kept_values range = kept->range[rng_below(r, (uint32_t)kept->count)];
        const uint32_t left = rng_below(r, image->columns), right = left + 1 + rng_below(r, image->columns - left),
                       upper = rng_below(r, image->rows), lower = upper + 1 + rng_below(r, image->rows - upper);
        for (uint32_t y = upper; y < lower; y++)
            for (uint32_t x = left; x < right; x++)
                for (int c = 0; c < image->components; c++) {
                    const size_t at = word_place(image, c, (size_t)y * image->columns + x);
                    uint32_t value = range.lowest + rng_below(r, range.highest - range.lowest + 1);
                    if (rng_below(r, 16) == 0) value = range.highest < top ? range.highest + 1 : range.lowest - 1;
                    if (image->is_signed) value ^= 1u << (image->bits_stored - 1);
                    const uint32_t word = get_word(image, raster, at);
                    put_word(image, raster, at, (word & ~(top << low)) | value << low);
                }
    }
}

static struct tsr_coding lossy_coding(struct rng *r, const struct tsr_image *image)
{
    static const enum tsr_coder coders[] = {TSR_CODER_HUFFMAN, TSR_CODER_CAVLC, TSR_CODER_RANS};
    struct tsr_coding coding = {.coder = coders[rng_below(r, 3)], .effort = 1 + (int)rng_below(r, 9), .lossy = true};
    coding.path = rng_below(r, 2) ? TSR_PATH_TRANSFORM : TSR_PATH_PREDICT;
    if (coding.path == TSR_PATH_TRANSFORM)
        coding.qp_eighths = rng_between(r, tsr_lowest_qp(image->bits_stored), TSR_HIGHEST_QP);
    else
        coding.max_error = 1 + rng_below(r, rng_below(r, 2) ? 4 : 1u << (image->bits_stored - 1));
    return coding;
}

/* Frames that are coded, each tile in one piece. */
struct coded {
    struct tsr_segment model, *tiles;
    uint32_t count;
    uint8_t *bytes;
};

static void take_coded(const struct tsr_coded_frame *frame, struct coded *coded)
{
    size_t size = frame->model.size;
    for (uint32_t t = 0; t < frame->tiles; t++)
        for (int i = 0; i < frame->tile[t].segments; i++) size += frame->tile[t].segment[i].size;
    uint8_t *at = coded->bytes = must(malloc(size + 1));
    coded->tiles = must(malloc(frame->tiles * sizeof *coded->tiles));
    coded->count = frame->tiles;
    memcpy(at, frame->model.bytes, frame->model.size);
    coded->model = (struct tsr_segment){at, frame->model.size};
    at += frame->model.size;
    for (uint32_t t = 0; t < frame->tiles; t++) {
        coded->tiles[t].bytes = at;
        for (int i = 0; i < frame->tile[t].segments; i++) {
            const struct tsr_segment segment = frame->tile[t].segment[i];
            if (segment.size) memcpy(at, segment.bytes, segment.size);
            at += segment.size;
        }
        coded->tiles[t].size = (size_t)(at - coded->tiles[t].bytes);
    }
}

static void free_coded(struct coded *coded)
{
    free(coded->bytes);
    free(coded->tiles);
}

enum { FRAMES = 3 };

static void encode(struct tsr_engine *engine, const struct tsr_image *image, const struct tsr_kept_ranges *kept,
                   const struct tsr_coding *coding, const uint8_t *rasters, struct coded coded[FRAMES])
{
    struct tsr_encode_job jobs[FRAMES] = {0};
    for (size_t i = 0; i < FRAMES; i++) jobs[i].raster = rasters + i * raster_bytes(image);
    const size_t space = tsr_kept_encode_workspace(engine, image, kept, coding, FRAMES);
    void *const workspace = must(malloc(space));
    assert_int_equal(tsr_kept_encode(engine, image, kept, coding, jobs, FRAMES, workspace), TSR_OK);
    for (size_t i = 0; i < FRAMES; i++) take_coded(&jobs[i].coded, &coded[i]);
    free(workspace);
}

static enum tsr_status decode(struct tsr_engine *engine, const struct tsr_image *image,
                              const struct tsr_kept_ranges *kept, const struct coded coded[FRAMES], uint8_t *rasters,
                              struct tsr_decode_job jobs[FRAMES])
{
    for (size_t i = 0; i < FRAMES; i++)
        jobs[i] = (struct tsr_decode_job){.model = coded[i].model,
                                          .tile = coded[i].tiles,
                                          .tiles = coded[i].count,
                                          .raster = rasters + i * raster_bytes(image)};
    const size_t space = tsr_kept_decode_workspace(engine, image, kept, jobs, FRAMES);
    assert_in_range(space, 1, tsr_kept_decode_bound(engine, image, kept, coded[0].count, FRAMES));
    void *const workspace = must(malloc(space));
    const enum tsr_status status = tsr_kept_decode(engine, image, kept, jobs, FRAMES, workspace);
    free(workspace);
    return status;
}

/* Samples of a raster against what was decoded. Returns how many are kept. */
static size_t check_samples(const struct tsr_image *image, const struct tsr_kept_ranges *kept,
                            const struct tsr_coding *coding, const uint8_t *raster, const uint8_t *back)
{
    const size_t samples = (size_t)image->columns * image->rows * image->components;
    size_t count = 0;
    for (size_t i = 0; i < samples; i++) {
        const uint32_t word = get_word(image, raster, i), other = get_word(image, back, i),
                       value = value_of(image, word), decoded = value_of(image, other),
                       error = value < decoded ? decoded - value : value - decoded;
        const bool inside = is_inside(kept, value);
        count += inside;
        expect(!inside || word == other, "sample %zu: %u becomes %u", i, word, other);
        expect(inside || !is_inside(kept, decoded), "sample %zu: %u becomes %u, which is kept", i, value, decoded);
        expect(coding->max_error == 0 || error <= coding->max_error, "sample %zu: %u becomes %u", i, value, decoded);
    }
    return count;
}

TEST(kept_samples_come_back)
{
    struct rng r = {91};
    size_t kept_samples = 0;
    for (int n = 0; n < 400; n++) {
        const struct tsr_image image = lossy_image(&r, n % 20 == 0 ? 300 : 50);
        const struct tsr_kept_ranges kept = random_ranges(&r, &image);
        const struct tsr_coding coding = lossy_coding(&r, &image);
        const size_t bytes = raster_bytes(&image);
        uint8_t *rasters = must(malloc(FRAMES * bytes)), *back = must(malloc(FRAMES * bytes));
        struct coded coded[FRAMES], again[FRAMES];
        struct tsr_decode_job jobs[FRAMES];
        for (size_t i = 0; i < FRAMES; i++) {
            fill_raster(&r, &image, (int)rng_below(&r, CONTENTS), rasters + i * bytes);
            if (i > 0) put_kept(&r, &image, &kept, rasters + i * bytes);
        }
        encode(engines[0], &image, &kept, &coding, rasters, coded);
        encode(engines[1 + n % 3], &image, &kept, &coding, rasters, again);
        assert_int_equal(decode(any_engine(&r), &image, &kept, coded, back, jobs), TSR_OK);
        for (size_t i = 0; i < FRAMES; i++) {
            kept_samples += check_samples(&image, &kept, &coding, rasters + i * bytes, back + i * bytes);
            for (uint32_t t = 0; t < coded[i].count; t++)
                assert_true(coded[i].tiles[t].size == again[i].tiles[t].size &&
                            memcmp(coded[i].tiles[t].bytes, again[i].tiles[t].bytes, coded[i].tiles[t].size) == 0);
            free_coded(&coded[i]);
            free_coded(&again[i]);
        }
        free(rasters);
        free(back);
    }
    assert_true(kept_samples > 10000);
}

/* Each tile alone, as an image of its own: what a region of a frame is read from. */
TEST(windows)
{
    struct rng r = {94};
    for (int n = 0; n < 12; n++) {
        struct tsr_image image = {.columns = 1100, .rows = 150, .frames = 1, .components = 1, .bits_allocated = 16};
        image.bits_stored = (uint8_t)(n % 2 ? 16 : 12);
        image.high_bit = (uint8_t)(image.bits_stored - 1);
        image.is_signed = n % 3 == 0;
        const struct tsr_kept_ranges kept = random_ranges(&r, &image);
        const struct tsr_coding coding = lossy_coding(&r, &image);
        const size_t bytes = raster_bytes(&image);
        uint8_t *rasters = must(calloc(FRAMES, bytes)), *back = must(malloc(FRAMES * bytes));
        struct coded coded[FRAMES];
        struct tsr_decode_job jobs[FRAMES];
        for (size_t i = 0; i < FRAMES; i++) put_kept(&r, &image, &kept, rasters + i * bytes);
        encode(engines[0], &image, &kept, &coding, rasters, coded);
        assert_int_equal(decode(engines[0], &image, &kept, coded, back, jobs), TSR_OK);
        struct tsr_tiling cut = {0};
        struct tsr_bit_reader bits = tsr_bit_reader(coded[1].model.bytes, coded[1].model.size);
        assert_true(tsr_get_tiling(&bits, &image, &cut) && coded[1].count > 1);
        for (uint32_t t = 0; t < coded[1].count; t++) {
            const struct tsr_tile tile = tsr_tile_numbered(cut, t);
            struct tsr_image part = image;
            part.columns = (uint32_t)tile.width;
            part.rows = (uint32_t)tile.height;
            const struct tsr_window window = {(uint32_t)(tile.first % image.columns),
                                              (uint32_t)(tile.first / image.columns), image.columns, image.rows};
            uint8_t *const alone = must(malloc(raster_bytes(&part)));
            struct tsr_decode_job job = {
                .model = coded[1].model, .tile = &coded[1].tiles[t], .tiles = 1, .window = &window, .raster = alone};
            void *const workspace = must(malloc(tsr_kept_decode_workspace(engines[0], &part, &kept, &job, 1)));
            assert_int_equal(tsr_kept_decode(engines[0], &part, &kept, &job, 1, workspace), TSR_OK);
            for (size_t y = 0; y < part.rows; y++)
                assert_memory_equal(alone + 2 * y * part.columns, back + bytes + 2 * (tile.first + y * image.columns),
                                    2 * part.columns);
            free(workspace);
            free(alone);
        }
        for (size_t i = 0; i < FRAMES; i++) free_coded(&coded[i]);
        free(rasters);
        free(back);
    }
}

/* Whatever bytes a tile has: it does not decode, or no sample of it is where none may be. */
TEST(damaged_masks)
{
    struct rng r = {92};
    int refused = 0, decoded = 0;
    for (int n = 0; n < 300; n++) {
        const struct tsr_image image = lossy_image(&r, 40);
        const struct tsr_kept_ranges kept = random_ranges(&r, &image);
        const struct tsr_coding coding = lossy_coding(&r, &image);
        const size_t bytes = raster_bytes(&image);
        uint8_t *rasters = must(calloc(FRAMES, bytes)), *back = must(malloc(FRAMES * bytes));
        struct coded coded[FRAMES];
        struct tsr_decode_job jobs[FRAMES];
        for (size_t i = 0; i < FRAMES; i++) put_kept(&r, &image, &kept, rasters + i * bytes);
        encode(engines[0], &image, &kept, &coding, rasters, coded);
        for (int change = 0; change < 10; change++) {
            struct tsr_segment *const tile = &coded[rng_below(&r, FRAMES)].tiles[0];
            uint8_t *const byte = (uint8_t *)(uintptr_t)tile->bytes + rng_below(&r, (uint32_t)tile->size);
            const uint8_t old = *byte;
            *byte = (uint8_t)(*byte ^ 1u << rng_below(&r, 8));
            const enum tsr_status status = decode(engines[0], &image, &kept, coded, back, jobs);
            refused += status != TSR_OK;
            decoded += status == TSR_OK;
            if (status != TSR_OK) assert_int_equal(status, TSR_ERROR_CORRUPT);
            for (size_t i = 0; i < FRAMES; i++)
                if (jobs[i].status != TSR_OK) assert_true(jobs[i].bad_tile < coded[i].count);
            *byte = old;
        }
        for (size_t i = 0; i < FRAMES; i++) free_coded(&coded[i]);
        free(rasters);
        free(back);
    }
    assert_true(refused > 100 && decoded > 100);
}

/* Groups of all patterns, in tiles of all widths. */
TEST(groups)
{
    enum { MOST = 200, ROWS = 20, BYTES = MOST * ROWS + 100 };
    static uint32_t bits[ROWS][MOST / TSR_MASK_GROUP + 1];
    static uint8_t bytes[BYTES];
    static struct tsr_mask mask;
    struct rng r = {93};
    for (int n = 0; n < 500; n++) {
        struct tsr_range_writer writer = tsr_range_writer(bytes, sizeof bytes);
        tsr_mask_begin(&mask, rng_between(&r, 1, MOST));
        tsr_mask_begin_plane(&mask);
        for (int y = 0; y < ROWS; y++, tsr_mask_end_row(&mask))
            for (int g = 0; g < mask.groups; g++) {
                const int samples = tsr_mask_samples(&mask, g);
                bits[y][g] = 0;
                for (int i = 0; i < samples; i++)
                    if (n % 3 == 0 ? rng_below(&r, 2) != 0 : (16 * g + i - y) / 8 % 3 == n % 2) bits[y][g] |= 1u << i;
                tsr_mask_put(&mask, &writer, g, bits[y][g]);
            }
        const size_t size = tsr_range_end(&writer);
        assert_false(writer.overflow);
        struct tsr_range_reader reader = tsr_range_reader(bytes, size);
        tsr_mask_begin(&mask, mask.columns);
        tsr_mask_begin_plane(&mask);
        for (int y = 0; y < ROWS; y++, tsr_mask_end_row(&mask))
            for (int g = 0; g < mask.groups; g++) assert_int_equal(tsr_mask_get(&mask, &reader, g), bits[y][g]);
        assert_false(reader.overrun);
    }
}

/* Numbers of all sizes. */
TEST(numbers)
{
    enum { COUNT = 2000 };
    static uint16_t numbers[COUNT], found[COUNT];
    static uint8_t bytes[4 * COUNT];
    static struct tsr_mask_numbers mask;
    struct rng r = {95};
    for (int n = 0; n < 100; n++) {
        const uint32_t most = 2 + rng_width(&r, 16) % 65534;
        const bool has_numbers = rng_below(&r, 2);
        for (int i = 0; i < COUNT; i++) {
            numbers[i] = (uint16_t)(rng_below(&r, 3) == 0 ? 0 : has_numbers ? 1 + rng_below(&r, most) : 1);
            found[i] = numbers[i] > 0;
        }
        struct tsr_range_writer writer = tsr_range_writer(bytes, sizeof bytes);
        tsr_numbers_begin(&mask, most, has_numbers);
        tsr_numbers_put(&mask, &writer, numbers, COUNT);
        const size_t size = tsr_range_end(&writer);
        assert_false(writer.overflow);
        struct tsr_range_reader reader = tsr_range_reader(bytes, size);
        tsr_numbers_begin(&mask, most, has_numbers);
        assert_true(tsr_numbers_get(&mask, &reader, found, COUNT));
        assert_memory_equal(found, numbers, sizeof found);
        assert_false(reader.overrun);
    }
}

enum { ROW_BYTES = 1 << 16 };

/* The edges of a row of a shape: circles, slanted bands, few and many edges, rows without any. */
static int shape_edges(struct rng *r, int shape, int y, int columns, int32_t *edges)
{
    int count = 0;
    bool was = false;
    for (int x = 0; x < columns; x++) {
        const int dx = 2 * x - columns, dy = 2 * y - 60;
        const bool is = shape == 0   ? (int64_t)dx * dx + (int64_t)dy * dy > 50 * 50
                        : shape == 1 ? (x + 3 * y) / 40 % 2 != 0
                        : shape == 2 ? y % 7 > 2 && (x - y) / 2 % 2 != 0
                                     : rng_below(r, shape == 3 ? 2 : 30) == 0;
        if (is != was && count < TSR_EDGES_LIMIT) edges[count++] = x, was = is;
    }
    return count;
}

/* Edges of all shapes, in tiles of all widths. */
TEST(edges)
{
    enum { ROWS = 60, MOST = 65535 };
    static int32_t rows[ROWS][TSR_EDGES_LIMIT];
    static uint8_t bytes[ROW_BYTES];
    static struct tsr_edges edges;
    struct rng r = {96};
    for (int n = 0; n < 300; n++) {
        const int columns = rng_between(&r, 1, n % 50 == 0 ? MOST : 200);
        int counts[ROWS];
        struct tsr_range_writer writer = tsr_range_writer(bytes, sizeof bytes);
        tsr_edges_begin(&edges, columns);
        tsr_edges_begin_plane(&edges);
        for (int y = 0; y < ROWS; y++) {
            counts[y] = shape_edges(&r, n % 5, y, columns, rows[y]);
            tsr_edges_put(&edges, &writer, rows[y], counts[y]);
        }
        const size_t size = tsr_range_end(&writer);
        assert_false(writer.overflow);
        struct tsr_range_reader reader = tsr_range_reader(bytes, size);
        tsr_edges_begin(&edges, columns);
        tsr_edges_begin_plane(&edges);
        for (int y = 0; y < ROWS; y++) {
            int32_t found[TSR_EDGES_LIMIT];
            int count;
            assert_true(tsr_edges_get(&edges, &reader, found, &count));
            assert_int_equal(count, counts[y]);
            for (int i = 0; i < count; i++) assert_int_equal(found[i], rows[y][i]);
        }
        assert_false(reader.overrun);
    }
}

/* Whatever bytes there are: the edges of a row rise, and lie in the row. */
TEST(damaged_edges)
{
    static uint8_t bytes[400];
    static struct tsr_edges edges;
    struct rng r = {98};
    int refused = 0, rows = 0;
    for (int n = 0; n < 2000; n++) {
        const int columns = rng_between(&r, 1, n % 4 == 0 ? 65535 : 300);
        for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (uint8_t)rng_below(&r, n % 3 ? 256 : 2);
        struct tsr_range_reader reader = tsr_range_reader(bytes, sizeof bytes);
        tsr_edges_begin(&edges, columns);
        tsr_edges_begin_plane(&edges);
        for (int y = 0; y < 40; y++) {
            int32_t found[TSR_EDGES_LIMIT], last = -1;
            int count;
            if (!tsr_edges_get(&edges, &reader, found, &count)) {
                refused++;
                break;
            }
            rows++;
            assert_in_range(count, 0, TSR_EDGES_LIMIT);
            for (int i = 0; i < count; last = found[i++]) assert_true(found[i] > last && found[i] < columns);
        }
    }
    expect(refused > 50 && rows > 5000, "%d refused, %d rows", refused, rows);
}

/* The mask of a circle of padding takes at most 0.02 bit a sample, also of a small image. */
TEST(masks_are_short)
{
    for (int side = 128; side <= 512; side *= 2) {
        const struct tsr_image image = {.columns = (uint32_t)side,
                                        .rows = (uint32_t)side,
                                        .frames = 1,
                                        .components = 1,
                                        .bits_allocated = 16,
                                        .bits_stored = 16,
                                        .high_bit = 15};
        const struct tsr_kept_ranges kept = {1, {{0, 0}}};
        uint16_t *const raster = must(malloc(raster_bytes(&image)));
        uint8_t *const bytes = must(malloc(raster_bytes(&image)));
        for (int y = 0; y < side; y++)
            for (int x = 0; x < side; x++) {
                const int dx = x - side / 2, dy = y - side / 2;
                raster[y * side + x] = 10000 * (dx * dx + dy * dy) <= 47 * 47 * side * side;
            }
        const struct tsr_masked masked = {.image = &image,
                                          .kept = &kept,
                                          .layout = tsr_word_layout(16, 16, 15, false, false),
                                          .raster = (const uint8_t *)raster};
        const size_t size = tsr_code_mask(&masked, (struct tsr_tile){.width = side, .height = side}, bytes);
        expect(size > 0 && 400 * size <= (size_t)(side * side), "%d columns: %zu bytes", side, size);
        free(raster);
        free(bytes);
    }
}

TEST(ranges)
{
    static const struct {
        struct tsr_kept_ranges kept;
        int bits;
        bool good;
    } table[] = {
        {{1, {{0, 0}}}, 8, true},         {{1, {{255, 255}}}, 8, true},      {{1, {{0, 253}}}, 8, true},
        {{1, {{0, 254}}}, 8, false},      {{1, {{1, 0}}}, 8, false},         {{1, {{256, 256}}}, 8, false},
        {{2, {{0, 3}, {5, 5}}}, 8, true}, {{2, {{0, 3}, {4, 5}}}, 8, false}, {{2, {{5, 5}, {0, 3}}}, 8, false},
        {{1, {{0, 0}}}, 1, false},        {{1, {{3, 65535}}}, 16, true},
    };
    for (size_t i = 0; i < COUNT_OF(table); i++)
        expect(tsr_check_kept(&table[i].kept, table[i].bits) == table[i].good, "row %zu", i);
    const struct tsr_kept_ranges kept = {2, {{0, 3}, {10, 12}}};
    static const uint32_t left[][3] = {{0, 4, 4}, {3, 4, 4}, {10, 9, 13}, {11, 13, 9}, {12, 13, 9}};
    for (size_t i = 0; i < COUNT_OF(left); i++) {
        assert_int_equal(tsr_leave_kept(&kept, left[i][0], 8, false), left[i][1]);
        assert_int_equal(tsr_leave_kept(&kept, left[i][0], 8, true), left[i][2]);
    }
    assert_int_equal(tsr_kept_total(&kept), 7);
    for (uint32_t number = 1; number <= 7; number++)
        assert_int_equal(tsr_kept_number(&kept, tsr_kept_value(&kept, number)), number);
    assert_int_equal(tsr_kept_number(&kept, 4), 0);
}

/* Ranges that are added one after the other keep the values of all of them. */
TEST(added_ranges)
{
    struct rng r = {97};
    int refused = 0, added = 0;
    struct tsr_kept_ranges beside = {1, {{3, 5}}};
    assert_true(tsr_keep_values(&beside, 6, 7, 5) && tsr_keep_values(&beside, 2, 2, 5) && beside.count == 1);
    for (int n = 0; n < 3000; n++) {
        struct tsr_kept_ranges kept = {0};
        bool is_kept[32] = {false};
        for (int i = 0; i < 8; i++) {
            const uint32_t lowest = rng_below(&r, 32), highest = lowest + rng_below(&r, 32 - lowest) / 4;
            const struct tsr_kept_ranges before = kept;
            if (!tsr_keep_values(&kept, lowest, highest, 5)) {
                assert_memory_equal(&kept, &before, sizeof kept);
                refused++;
                continue;
            }
            added++;
            for (uint32_t v = lowest; v <= highest; v++) is_kept[v] = true;
            assert_true(tsr_check_kept(&kept, 5));
            for (uint32_t v = 0; v < 32; v++) assert_int_equal(tsr_kept_range_of(&kept, v) >= 0, is_kept[v]);
        }
    }
    assert_true(refused > 100 && added > 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kept_samples_come_back),
        cmocka_unit_test(windows),
        cmocka_unit_test(damaged_masks),
        cmocka_unit_test(groups),
        cmocka_unit_test(numbers),
        cmocka_unit_test(edges),
        cmocka_unit_test(damaged_edges),
        cmocka_unit_test(masks_are_short),
        cmocka_unit_test(ranges),
        cmocka_unit_test(added_ranges),
    };
    return cmocka_run_group_tests(tests, create_engines, destroy_engines);
}
