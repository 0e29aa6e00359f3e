/* Packed colours (FORMAT.md 6.6) with the CUDA engine: it chooses the CPU engine's packing and gives the same bytes. */
#include "both_engines.h"

#include "kernels/effort.h"
#include "kernels/planes/colours_cpu.h"
#include "kernels/planes/planes_cpu.h"
#include "kernels/planes/ranges_cpu.h"

/* ---- Pictures ------------------------------------------------------------------------------------------------- */

/* The kinds of colours of a frame. */
enum kind {
    RISING_R, /* a counted number of colours; in their order red, green or blue rises */
    RISING_G,
    RISING_B,
    STEPS,       /* two components with steps, a dense one */
    FEW_STEPS,   /* few colours, of few values each */
    PHOTOGRAPH,  /* nothing to pack */
    GREY,        /* few colours, all grey */
    NEARLY_GREY, /* all grey, except one sample in a row that is not looked at first */
    FEW_SEEN,    /* few colours in the rows that are looked at first */
    STEPS_SEEN,  /* steps only in those rows */
    KINDS
};

struct picture {
    enum kind kind;
    uint32_t colours; /* the number of colours, for kinds in which it is counted */
};

/* A number below count that changes slowly. All of them occur if there are enough samples. */
static uint32_t slow_number(uint32_t x, uint32_t y, uint32_t columns, uint32_t count)
{
    const size_t at = (size_t)y * columns + x;
    const uint32_t noise = (x * 2654435761u + y * 2246822519u) >> 29;
    return at < count ? (uint32_t)at : (x / 3 + y / 2 * 7 + noise) % count;
}

/* The value of a component, below 2^bits. */
static uint32_t component_at(struct picture p, uint32_t x, uint32_t y, const struct tsr_image *image, int c,
                             struct rng *r)
{
    const uint32_t values = 1u << image->bits_stored, k = p.colours ? slow_number(x, y, image->columns, p.colours) : 0;
    const uint32_t wave = (x / 3 + y / 2) % 61;
    const bool seen = y % tsr_choice_step(image->columns, image->rows, 4096) == 0;
    switch (p.kind) {
    case RISING_R:
    case RISING_G:
    case RISING_B:
        if (c == (int)p.kind) return (uint32_t)((uint64_t)k * values / p.colours);
        return (k * 2654435761u >> (c == 3 ? 3 : 7 * c)) % values;
    case STEPS:
        return c == 1 ? wave + rng_below(r, values / 2) : 8 * (wave + rng_below(r, 2)) % (values - values % 8);
    case FEW_STEPS:
        return (wave + (uint32_t)c) % 5 * (values / 6);
    case GREY:
    case NEARLY_GREY:
        return k % values + (c == 2 && p.kind == NEARLY_GREY && y == image->rows - 1 && x == 3);
    case FEW_SEEN:
        return seen ? wave % 3 * 20 : rng_below(r, values);
    case STEPS_SEEN:
        return seen ? rng_below(r, values) & ~7u : rng_below(r, values);
    default:
        return rng_below(r, values);
    }
}

static void draw(struct rng *r, const struct tsr_image *image, struct picture p, uint8_t *raster)
{
    const uint32_t half = image->is_signed ? 1u << (image->bits_stored - 1) : 0;
    for (uint32_t y = 0; y < image->rows; y++)
        for (uint32_t x = 0; x < image->columns; x++)
            for (int c = 0; c < image->components; c++)
                put_word(image, raster, word_place(image, c, (size_t)y * image->columns + x),
                         (component_at(p, x, y, image, c, r) ^ half) & ((1u << image->bits_stored) - 1u));
}

/* ---- The CPU engine's packing ---------------------------------------------------------------------------------- */

/* The packing that the CPU engine chooses, without its lists. */
static struct tsr_colour_model packing_of(const struct tsr_image *image, uint32_t max_error, const uint8_t *raster)
{
    const size_t count = (size_t)image->columns * image->rows;
    struct tsr_frame_model *model = must(calloc(1, sizeof *model));
    struct tsr_colour_work *work = must(malloc(sizeof *work));
    uint16_t *planes[TSR_PLANES_LIMIT];
    for (int p = 0; p < TSR_PLANES_LIMIT; p++) planes[p] = must(malloc(count * sizeof(uint16_t)));
    for (int c = 0; c < 3; c++) model->colours.list[c] = must(malloc(65536 * sizeof(uint16_t)));
    tsr_split_raster(image, raster, planes, model);
    for (int p = 0; p < image->components && max_error > 0; p++)
        tsr_quantise_samples(planes[p], count, tsr_frame_near_lossless(image, max_error));
    tsr_pack_colours(planes, image->columns, image->rows, tsr_first_plane_bits(image, max_error), &model->colours,
                     work);
    struct tsr_colour_model colours = model->colours;
    for (int c = 0; c < 3; c++) {
        free(colours.list[c]);
        colours.list[c] = NULL;
    }
    for (int p = 0; p < TSR_PLANES_LIMIT; p++) free(planes[p]);
    free(work);
    free(model);
    return colours;
}

/* Codes frames of these pictures in one batch: the GPU must do all that are no drawn ones, with the same bytes. found,
 * if not NULL, gets the CPU's packing of each. */
static void check_pictures(struct rng *r, const struct tsr_image *image, const struct tsr_coding *coding,
                           const struct picture *pictures, uint32_t frames, struct tsr_colour_model *found)
{
    const size_t bytes = raster_bytes(image);
    uint8_t *rasters = must(calloc(frames, bytes));
    for (uint32_t f = 0; f < frames; f++) {
        draw(r, image, pictures[f], rasters + f * bytes);
        if (found) found[f] = packing_of(image, coding->lossy ? coding->max_error : 0, rasters + f * bytes);
    }
    const uint32_t done = check_frames(image, coding, rasters, frames);
    expect(done == count_plain(image, coding, rasters, frames),
           "%u x %u, kind %d, effort %d: %u of %u frames on the GPU", image->columns, image->rows,
           (int)pictures[0].kind, coding->effort, done, frames);
    free(rasters);
}

static struct tsr_coding coding_of(int coder, int effort)
{
    static const enum tsr_coder coders[] = {TSR_CODER_HUFFMAN, TSR_CODER_RANS, TSR_CODER_CAVLC};
    return (struct tsr_coding){.path = TSR_PATH_PREDICT, .coder = coders[coder % 3], .effort = effort};
}

/* ---- Tests ---------------------------------------------------------------------------------------------------- */

/* Numbers of colours around 256 and the limit. Each component is once the one that rises. */
TEST(palettes)
{
    static const uint32_t numbers[] = {2, 3, 255, 256, 257, 1023, 1024, 1025};
    struct rng r = {501};
    for (size_t n = 0; n < COUNT_OF(numbers); n++)
        for (int leading = 0; leading < 3; leading++) {
            if (skip_case()) continue;
            struct tsr_image image = plain_image(70, 56, leading == 2 && n % 2 ? 4 : 3, n % 3 && n < 7 ? 8 : 16);
            image.planar = n % 2;
            const struct picture picture = {(enum kind)leading, numbers[n]};
            const struct tsr_coding coding = coding_of((int)n + leading, leading == 1 ? 5 : 1);
            struct tsr_colour_model found;
            check_pictures(&r, &image, &coding, &picture, 1, &found);
            if (picture.colours > TSR_PALETTE_LIMIT) {
                assert_int_not_equal(found.packing, TSR_COLOURS_PALETTE);
                continue;
            }
            expect(found.packing == TSR_COLOURS_PALETTE && found.count[0] == picture.colours, "%u colours: packing %d",
                   picture.colours, (int)found.packing);
            if (picture.colours >= 255)
                expect(found.leading == leading, "%u colours: %d leads", picture.colours, found.leading);
        }
}

/* Words of all kinds. */
TEST(words)
{
    for (int n = 0; n < 24; n++) {
        struct rng r = {(uint64_t)(510 + n)};
        if (skip_case()) continue;
        struct tsr_image image = plain_image(61, 40, 3 + n % 2, n % 3 ? 16 : 8);
        if (n % 3 == 2) image.bits_stored = (uint8_t)(2 + n % 12);
        image.high_bit = (uint8_t)(image.bits_stored - 1);
        image.planar = n / 2 % 2;
        image.big_endian = n % 4 == 1;
        image.swapped = image.bits_allocated == 8 && tsr_frame_bits(&image) % 16 == 0;
        image.is_signed = n / 3 % 2 && image.bits_stored == image.bits_allocated;
        const struct picture pictures[] = {{n % 4 < 2 ? STEPS : FEW_STEPS, 40}, {RISING_G, 40}};
        const struct tsr_coding coding = coding_of(n, 1 + n % 9);
        check_pictures(&r, &image, &coding, pictures, 2, NULL);
    }
}

/* Batches of frames of all kinds, each coded as if it were alone. Some are packed by palette, some by component. */
TEST(mixed_batches)
{
    enum { FRAMES = 2 * KINDS };
    static const int efforts[] = {1, 4, 9};
    for (int n = 0; n < (small_only() ? 3 : 9); n++) {
        struct rng r = {(uint64_t)(540 + n)};
        struct picture pictures[FRAMES];
        struct tsr_colour_model found[FRAMES];
        if (skip_case()) continue;
        for (int f = 0; f < FRAMES; f++)
            pictures[f] = (struct picture){(enum kind)((f * 7 + n) % KINDS), 2 + rng_below(&r, 300)};
        const bool long_rows = n % 3 == 0;
        const struct tsr_image image =
            plain_image(long_rows ? 1040 : 76, long_rows ? 12 : 60, 3 + n / 2 % 2, n % 2 ? 16 : 8);
        const struct tsr_coding coding = coding_of(n + n / 3, efforts[n % 3]);
        check_pictures(&r, &image, &coding, pictures, small_only() ? KINDS : FRAMES, found);
        uint32_t of[3] = {0, 0, 0};
        for (int f = 0; f < KINDS; f++) {
            of[found[f].packing]++;
            const enum kind kind = pictures[f].kind;
            if (kind == PHOTOGRAPH || kind == GREY) assert_int_equal(found[f].packing, TSR_COLOURS_PLAIN);
            if (kind == STEPS) assert_int_equal(found[f].packing, TSR_COLOURS_BY_COMPONENT);
        }
        expect(of[0] >= 2 && of[1] >= 1 && of[2] >= 2, "packings of frames: %u, %u, %u", of[0], of[1], of[2]);
    }
}

/* Sizes that are too small for the choice to compare samples, the smallest at which it can, and rows that fill no
 * group.
 */
TEST(small_frames)
{
    static const uint32_t shapes[][2] = {{1, 1}, {1, 40}, {40, 1}, {2, 2}, {3, 2}, {2, 3}, {9, 2}, {7, 7}, {17, 3}};
    for (size_t n = 0; n < COUNT_OF(shapes); n++)
        for (int kind = 0; kind < KINDS; kind++) {
            struct rng r = {(uint64_t)(560 + n)};
            if (skip_case()) continue;
            const struct tsr_image image = plain_image(shapes[n][0], shapes[n][1], 3, (n + (size_t)kind) % 2 ? 16 : 8);
            const struct picture picture = {(enum kind)kind, 5};
            const struct tsr_coding coding = coding_of(kind + (int)n, 1 + kind % 5);
            check_pictures(&r, &image, &coding, &picture, 1, NULL);
        }
}

/* Larger frames, of which the choice looks at some rows only, while others have more colours. And screens. */
TEST(rows_that_choices_see)
{
    struct rng r = {580};
    for (int n = 0; n < (small_only() ? 4 : 12); n++) {
        if (skip_case()) continue;
        struct tsr_image image = plain_image(260, 250, 3, n % 2 ? 16 : 8);
        const struct picture pictures[] = {{RISING_B, 300}, {FEW_SEEN, 0},      {STEPS_SEEN, 0},
                                           {STEPS, 0},      {NEARLY_GREY, 200}, {GREY, 200}};
        const uint32_t first = (uint32_t)n % 3;
        const struct tsr_coding coding = coding_of(n, 1 + n % 3);
        check_pictures(&r, &image, &coding, pictures + first, 4, NULL);
    }
    for (int n = 0; n < 12; n++) {
        if (skip_case()) continue;
        struct tsr_image image = plain_image(190, 70, 3 + n % 2, n % 3 ? 8 : 16);
        image.planar = n / 3 % 2;
        uint8_t *rasters = must(malloc(2 * raster_bytes(&image)));
        fill_screen(&r, &image, 40, 6, false, rasters);
        fill_screen(&r, &image, 400, 1, n % 4 == 3, rasters + raster_bytes(&image));
        const struct tsr_coding coding = coding_of(n, 1 + n % 4);
        assert_int_equal(check_frames(&image, &coding, rasters, 2), 2);
        free(rasters);
    }
}

/* Quantised samples: their indices are packed. */
TEST(bounded_errors)
{
    static const uint32_t errors[] = {1, 3, 20};
    uint32_t packed = 0;
    for (int n = 0; n < 18; n++) {
        struct rng r = {(uint64_t)(600 + n)};
        struct tsr_colour_model found[3];
        if (skip_case()) continue;
        struct tsr_image image = plain_image(80, 45, 3, n % 2 ? 16 : 8);
        image.is_signed = n / 2 % 2;
        const struct picture pictures[] = {{(enum kind)(n % 3), 30}, {STEPS, 0}, {n % 4 ? PHOTOGRAPH : FEW_STEPS, 0}};
        struct tsr_coding coding = coding_of(n / 3, 1 + n % 9);
        coding.lossy = true;
        coding.max_error = errors[n / 3 % 3];
        check_pictures(&r, &image, &coding, pictures, 3, found);
        for (int f = 0; f < 3; f++) packed += found[f].packing != TSR_COLOURS_PLAIN;
    }
    expect(packed >= 18 || getenv("TSR_TEST_SMALL"), "%u frames are packed", packed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(palettes),
                                       cmocka_unit_test(words),
                                       cmocka_unit_test(mixed_batches),
                                       cmocka_unit_test(small_frames),
                                       cmocka_unit_test(rows_that_choices_see),
                                       cmocka_unit_test(bounded_errors)};
    if (getenv("TSR_TEST")) cmocka_set_test_filter(getenv("TSR_TEST"));
    if (!has_device()) return SKIPPED;
    return cmocka_run_group_tests(tests, create_engines, destroy_engines);
}
