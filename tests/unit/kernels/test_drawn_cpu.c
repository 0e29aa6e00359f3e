/* kernels/drawn/drawn_cpu.h: tiles of drawn planes and back, beside the reference decoder, which is a literal reading
 * of DRAWN.md. */
#include "tests/unit/support.h"

#include "entropy/frame_model.h"
#include "kernels/drawn/drawn_forms_cpu.h"
#include "ref.h"

enum { MOST = 90, STRIDE = MOST + 5, SAMPLES = STRIDE * (MOST + 1), BYTES = 4 * SAMPLES, GUARD = 0xa5 };

static uint16_t samples[SAMPLES], back[SAMPLES], whole[SAMPLES];
static uint8_t payload[BYTES + 5], again[BYTES];

static struct tsr_tile random_tile(struct rng *r)
{
    struct tsr_tile tile;
    tile.width = rng_below(r, 4) ? rng_between(r, 1, MOST) : rng_between(r, 1, 18);
    tile.height = rng_below(r, 4) ? rng_between(r, 1, MOST) : rng_between(r, 1, 4);
    tile.stride = (size_t)rng_between(r, tile.width, STRIDE);
    tile.first = rng_below(r, 4);
    return tile;
}

/* The kinds of samples: all equal; boxes; letters, which repeat; a smooth ground with a few other samples; noise. */
enum { CONTENTS = 5 };

static void fill(struct rng *r, struct tsr_tile tile, uint32_t range, int content)
{
    const uint32_t ground = rng_below(r, range), shades = rng_below(r, 6) + 1;
    for (int32_t y = 0; y < tile.height; y++)
        for (int32_t x = 0; x < tile.width; x++) {
            const uint32_t letter = (uint32_t)(x % 9 * (y % 11)) % (shades + 1), near = ground + (uint32_t)(x + y) / 16;
            const uint32_t v = content == 2   ? ground + letter
                               : content == 3 ? (rng_below(r, 20) ? near : rng_below(r, range))
                               : content == 4 ? rng_below(r, range)
                                              : ground;
            samples[tile.first + (size_t)y * tile.stride + (size_t)x] = (uint16_t)(v % range);
        }
    for (int box = 0; box < 20 && content == 1; box++) {
        const int32_t left = rng_between(r, 0, tile.width - 1), top = rng_between(r, 0, tile.height - 1),
                      right = rng_between(r, left, tile.width - 1), end = rng_between(r, top, tile.height - 1);
        const uint16_t shade = (uint16_t)((ground + rng_below(r, shades + 1) * 77) % range);
        for (int32_t y = top; y <= end; y++)
            for (int32_t x = left; x <= right; x++) samples[tile.first + (size_t)y * tile.stride + (size_t)x] = shade;
    }
}

static bool decodes(struct tsr_tile tile, uint32_t range, size_t size)
{
    uint8_t *const exact = must(malloc(size)); /* so that a sanitizer finds what is read behind it */
    void *const scratch = must(malloc(tsr_drawn_scratch_bytes(tile.width, tile.height)));
    memcpy(exact, payload, size);
    const bool good = tsr_decode_drawn_tile(exact, size, range, back, tile, scratch);
    free(exact);
    free(scratch);
    return good;
}

static bool reference_decodes(struct tsr_tile tile, uint32_t range, size_t size)
{
    const struct ref_plane_model plane = {.range = range};
    void *const mark = ref_mark();
    const bool good = ref_drawn_tile(&plane, (uint32_t)tile.width, (uint32_t)tile.height, payload, size, whole);
    ref_release(mark);
    return good;
}

static void check_same(struct tsr_tile tile, const uint16_t *expected, const uint16_t *found, size_t stride,
                       size_t first)
{
    for (int32_t y = 0; y < tile.height; y++)
        assert_memory_equal(expected + tile.first + (size_t)y * tile.stride, found + first + (size_t)y * stride,
                            (size_t)tile.width * sizeof *expected);
}

static uint32_t random_range(struct rng *r)
{
    static const uint32_t ranges[] = {2, 2, 3, 16, 17, 24, 255, 256, 257, 1000, 1024, 1025, 5000, 65535, 65536};
    return ranges[rng_below(r, COUNT_OF(ranges))];
}

/* What is coded comes back, from both decoders; a byte less is not enough. */
TEST(tiles)
{
    struct rng r = {46};
    for (int n = 0; n < 1500; n++) {
        const struct tsr_tile tile = random_tile(&r);
        const uint32_t range = random_range(&r);
        const enum tsr_drawn_kind kind = range == 2 ? TSR_DRAWN_OF_TWO : rng_below(&r, TSR_DRAWN_OF_TWO);
        uint32_t others, same_others;
        void *const scratch = must(malloc(tsr_drawn_scratch_bytes(tile.width, tile.height)));
        fill(&r, tile, range, n % CONTENTS);
        const size_t size = tsr_code_drawn_tile(samples, tile, range, kind, payload, BYTES, &others, scratch);
        for (int isa = 0; isa <= (int)tsr_best_isa(); isa++) { /* all forms write the same */
            const struct tsr_drawn_form *const form = tsr_drawn_form((enum tsr_isa)isa);
            const size_t same = form->code(samples, tile, range, kind, again, BYTES, &same_others, scratch);
            expect(same == size && same_others == others && memcmp(again, payload, size) == 0, "tile %d by form %d", n,
                   isa);
            expect(form->decode(payload, size, range, back, tile, scratch), "tile %d by form %d", n, isa);
            check_same(tile, samples, back, tile.stride, tile.first);
        }
        expect(size > 0, "tile %d", n);
        expect(decodes(tile, range, size), "tile %d", n);
        check_same(tile, samples, back, tile.stride, tile.first);
        expect(reference_decodes(tile, range, size), "tile %d", n);
        check_same(tile, samples, whole, (size_t)tile.width, 0);
        memset(payload + size, 0, 5); /* up to four zeros may be what the end was spared */
        expect(!decodes(tile, range, size + 5), "tile %d is followed by bytes", n);
        payload[size - 1] = GUARD;
        expect(size == 1 || tsr_code_drawn_tile(samples, tile, range, kind, payload, size - 1, &others, scratch) == 0,
               "tile %d", n);
        expect(size == 1 || payload[size - 1] == GUARD, "tile %d", n);
        free(scratch);
    }
}

/* Both ways at once give the shorter string, by all forms. */
TEST(both_ways)
{
    struct rng r = {50};
    for (int n = 0; n < 600; n++) {
        const struct tsr_tile tile = random_tile(&r);
        const uint32_t range = random_range(&r);
        void *const scratch = must(malloc(tsr_drawn_scratch_bytes(tile.width, tile.height)));
        fill(&r, tile, range, n % CONTENTS);
        uint32_t others, same_others;
        const size_t by_residual = tsr_code_drawn_tile(samples, tile, range, TSR_DRAWN_BY_RESIDUAL, payload, BYTES,
                                                       &others, scratch),
                     by_value =
                         tsr_code_drawn_tile(samples, tile, range, TSR_DRAWN_BY_VALUE, again, BYTES, &others, scratch),
                     shorter = by_residual <= by_value ? by_residual : by_value;
        if (by_value < by_residual) memcpy(payload, again, by_value);
        for (int isa = 0; isa <= (int)tsr_best_isa(); isa++) {
            const struct tsr_drawn_form *const form = tsr_drawn_form((enum tsr_isa)isa);
            expect(form->code_both(samples, tile, range, again, BYTES, &same_others, scratch) == shorter &&
                       same_others == others && memcmp(again, payload, shorter) == 0,
                   "tile %d by form %d", n, isa);
            expect(shorter == 1 || form->code_both(samples, tile, range, again, 2 * shorter - 1, &others, scratch) == 0,
                   "tile %d", n);
        }
        free(scratch);
    }
}

/* Damaged bytes give samples within the range, the same from both decoders, or are refused by both. */
TEST(damage)
{
    struct rng r = {47};
    int refused = 0;
    for (int n = 0; n < 1500; n++) {
        const struct tsr_tile tile = random_tile(&r);
        const uint32_t range = random_range(&r);
        const size_t size = 1 + rng_below(&r, 60);
        for (size_t i = 0; i < size; i++) payload[i] = (uint8_t)rng_next(&r);
        if (rng_below(&r, 4) == 0) memset(payload, 255, size);
        const bool good = decodes(tile, range, size);
        expect(good == reference_decodes(tile, range, size), "bytes %d", n);
        refused += !good;
        if (good) check_same(tile, back, whole, (size_t)tile.width, 0);
        for (int32_t y = 0; y < tile.height && good; y++)
            for (int32_t x = 0; x < tile.width; x++)
                assert_true(back[tile.first + (size_t)y * tile.stride + (size_t)x] < range);
    }
    assert_in_range(refused, 100, 1499);
}

/* Frames that repeat values are found, whatever the layout of their words. */
TEST(frames_that_may_be_drawn)
{
    enum { COLUMNS = 60, ROWS = 40 };
    static uint8_t raster[COLUMNS * ROWS * 4 * 4];
    struct rng r = {48};
    for (int n = 0; n < 200; n++) {
        static const uint8_t allocated[] = {8, 16, 32};
        struct tsr_image image = {.columns = COLUMNS, .rows = ROWS, .frames = 1};
        image.components = (uint8_t)rng_between(&r, 1, 4);
        image.planar = rng_below(&r, 2);
        image.bits_allocated = image.bits_stored = allocated[rng_below(&r, COUNT_OF(allocated))];
        const size_t word = image.bits_allocated / 8, pixel = word * (image.planar ? 1 : image.components);
        for (size_t i = 0; i < sizeof raster; i++) {
            const size_t x = i % (pixel * COLUMNS) / pixel, y = i / (pixel * COLUMNS);
            const uint64_t value = n % 2 ? rng_next(&r) : x / 9 * 31 + y / 7 * 17 + i % pixel;
            raster[i] = (uint8_t)value;
        }
        expect(tsr_may_be_drawn(&image, 5, raster) == (n % 2 == 0), "image %d", n);
    }
    for (size_t i = 0; i < sizeof raster; i++) raster[i] = (uint8_t)(3 * rng_below(&r, 64));
    struct tsr_image dithered = {.columns = COLUMNS, .rows = ROWS, .bits_allocated = 8, .components = 1};
    assert_true(tsr_may_be_drawn(&dithered, 5, raster));
    for (size_t i = 0; i < sizeof raster; i++) raster[i] = (uint8_t)(3 * rng_below(&r, 65));
    assert_false(tsr_may_be_drawn(&dithered, 5, raster));
    static uint16_t words[100 * 100];
    const struct tsr_image of_words = {.columns = 100, .rows = 100, .bits_allocated = 16, .components = 1};
    for (size_t i = 0; i < COUNT_OF(words); i++) words[i] = (uint16_t)(300 * rng_below(&r, 150));
    assert_true(tsr_may_be_drawn(&of_words, 5, (const uint8_t *)words));
    for (size_t i = 0; i < COUNT_OF(words); i++) words[i] = (uint16_t)(300 * rng_below(&r, 170));
    assert_false(tsr_may_be_drawn(&of_words, 9, (const uint8_t *)words));
    struct tsr_image alone = of_words; /* small ones that are alone in their file, at high efforts */
    alone.frames = 1;
    assert_true(tsr_may_be_drawn(&alone, 8, (const uint8_t *)words));
    assert_false(tsr_may_be_drawn(&alone, 7, (const uint8_t *)words));
    const struct tsr_image one_bit = {.columns = 9, .rows = 9, .bits_allocated = 1, .components = 1};
    assert_true(tsr_may_be_drawn(&one_bit, 5, raster));
}

/* Slices below each other are looked at in all heights. All begin with air: were they all looked at there, each stack
 * of CT slices would be tried. */
TEST(stacks_of_slices)
{
    enum { SIDE = 64, SLICES = 64, AIR = 16 };
    static uint16_t words[SIDE * SIDE * SLICES];
    struct rng r = {50};
    const struct tsr_image stack = {.columns = SIDE,
                                    .rows = SIDE * SLICES,
                                    .frames = 1,
                                    .bits_allocated = 16,
                                    .components = 1,
                                    .stacked_rows = SIDE};
    for (size_t i = 0; i < COUNT_OF(words); i++) words[i] = i / SIDE % SIDE < AIR ? 0 : (uint16_t)rng_next(&r);
    assert_false(tsr_may_be_drawn(&stack, 5, (const uint8_t *)words));
    for (size_t i = 0; i < COUNT_OF(words); i++) words[i] = i / SIDE % SIDE < SIDE - AIR ? 0 : (uint16_t)rng_next(&r);
    assert_true(tsr_may_be_drawn(&stack, 5, (const uint8_t *)words));
}

/* Tiles of drawn frames are not more than those of other frames, for which there is room. */
TEST(few_tiles)
{
    struct rng r = {49};
    for (int n = 0; n < 20000; n++) {
        const int32_t columns = rng_between(&r, 1, rng_below(&r, 2) ? 65535 : 3000),
                      rows = rng_between(&r, 1, rng_below(&r, 2) ? 65535 : 3000);
        const struct tsr_tiling drawn = tsr_cut_drawn(columns, rows);
        assert_true((int64_t)drawn.tile_width * drawn.tile_height <= TSR_TILE_SAMPLES_LIMIT);
        expect(tsr_tiling_count(drawn) <= tsr_tiling_count(tsr_cut(columns, rows, 1)), "%d x %d", columns, rows);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(tiles),
                                       cmocka_unit_test(both_ways),
                                       cmocka_unit_test(damage),
                                       cmocka_unit_test(frames_that_may_be_drawn),
                                       cmocka_unit_test(stacks_of_slices),
                                       cmocka_unit_test(few_tiles)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
