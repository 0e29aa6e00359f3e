/* kernels/engine_cpu/bands_cpu.h: what bands of a frame give on several threads is what the whole frame gives. */
#include "tests/unit/images.h"

#include "kernels/engine_cpu/bands_cpu.h"
#include "kernels/planes/planes_cpu.h"
#include "kernels/planes/ranges_cpu.h"

enum { COLUMNS = 611, ROWS = 906, COUNT = COLUMNS * ROWS, GUARD = 64 };

/* A frame's planes. */
struct frame {
    struct tsr_frame_model model;
    uint16_t plane[TSR_PLANES_LIMIT][COUNT + GUARD], offset[TSR_PLANES_LIMIT][65536], *planes[TSR_PLANES_LIMIT];
};

static struct frame whole, bands;
static struct tsr_range_work range;
static uint8_t raster[COUNT * 16], back[COUNT * 16 + GUARD];
static int in_place, unexpected; /* frames that were split where they stood, and with bits outside of samples */

static void begin(struct frame *f)
{
    memset(f, 0xa5, sizeof *f);
    memset(&f->model, 0, sizeof f->model);
    for (int p = 0; p < TSR_PLANES_LIMIT; p++) {
        f->planes[p] = f->plane[p];
        f->model.plane[p].offset = f->offset[p];
    }
}

static void compare(const char *what)
{
    assert_int_equal(bands.model.planes, whole.model.planes);
    assert_int_equal(bands.model.extends_sign, whole.model.extends_sign);
    for (int p = 0; p < whole.model.planes; p++) {
        const struct tsr_plane_model *a = &bands.model.plane[p], *b = &whole.model.plane[p];
        expect(a->present == b->present, "%s: plane %d is present: %d, and %d of the whole", what, p, a->present,
               b->present);
        if (!b->present) continue;
        expect(a->minimum == b->minimum && a->span == b->span && a->range == b->range && a->packed == b->packed,
               "%s: plane %d: %u %u %u %d, and %u %u %u %d of the whole", what, p, a->minimum, a->span, a->range,
               a->packed, b->minimum, b->span, b->range, b->packed);
        expect(memcmp(bands.plane[p], whole.plane[p], COUNT * sizeof(uint16_t)) == 0, "%s: plane %d", what, p);
        for (int i = COUNT; i < COUNT + GUARD; i++) assert_int_equal(bands.plane[p][i], 0xa5a5);
    }
}

static void check(struct tsr_pool *pool, const struct tsr_image *image, enum tsr_colour colour)
{
    const int bits = tsr_first_plane_bits(image, 0);
    begin(&whole);
    begin(&bands);
    tsr_split_raster(image, raster, whole.planes, &whole.model);
    tsr_split_frame(pool, image, raster, bands.planes, &bands.model, NULL);
    compare("split");
    if (image->components == 1 && tsr_has_planes_in_raster(image)) {
        begin(&bands);
        memcpy(bands.plane[0], raster, raster_bytes(image));
        tsr_split_frame(pool, image, (const uint8_t *)bands.plane[0], bands.planes, &bands.model, back);
        compare("split in place");
        in_place++;
        unexpected += bands.model.planes > 1 && bands.model.plane[1].present;
    }
    whole.model.colour = bands.model.colour = image->components >= 3 && bits <= 15 ? colour : TSR_COLOUR_NONE;
    tsr_apply_colour(whole.planes, COUNT, whole.model.colour, bits);
    tsr_transform_colours(pool, image, bands.planes, &bands.model, bits);
    compare("colour");
    for (int p = 0; p < whole.model.planes; p++) {
        if (!whole.model.plane[p].present) continue;
        tsr_choose_range(whole.planes[p], COLUMNS, ROWS, TSR_PACK_IF_IT_PAYS, &whole.model.plane[p], &range);
        tsr_choose_plane_range(pool, image, bands.planes, p, TSR_PACK_IF_IT_PAYS, &bands.model.plane[p], &range);
    }
    compare("range");
    for (int p = 0; p < bands.model.planes; p++) /* such a plane has no payload */
        if (bands.model.plane[p].range == 1) memset(bands.plane[p], 0xa5, COUNT * sizeof(uint16_t));
    memset(back, 0xa5, sizeof back);
    const uint32_t cut = tsr_has_bands(image) ? ROWS / 3 : 0;
    if (cut > 0) tsr_finish_rows(image, &bands.model, bands.planes, back, 0, cut);
    tsr_finish_rows(image, &bands.model, bands.planes, back, cut, ROWS);
    const size_t bytes = raster_bytes(image);
    expect(memcmp(back, raster, bytes) == 0, "another raster comes back");
    for (size_t i = bytes; i < bytes + GUARD; i++) assert_int_equal(back[i], 0xa5);
}

TEST(random_layouts)
{
    struct rng r = {46};
    struct tsr_pool *const pool = must(tsr_pool_create(4));
    for (int n = 0; n < 60; n++) {
        struct tsr_image image = random_image(&r, 5);
        image.columns = COLUMNS;
        image.rows = ROWS;
        if (n % 4 == 0) image.swapped = true;
        if (n % 3 == 0) image.components = 1;
        if (tsr_check_image(&image, NULL) != TSR_OK) image.swapped = false;
        fill_raster(&r, &image, n % CONTENTS, raster);
        check(pool, &image, (enum tsr_colour)(n % TSR_COLOUR_COUNT));
    }
    expect(in_place > 3 && unexpected > 0, "%d frames in place, %d with other bits", in_place, unexpected);
    tsr_pool_destroy(pool);
}

/* A word has bits outside its sample in the last rows alone, or in the first. */
TEST(unexpected_bits)
{
    struct tsr_pool *const pool = must(tsr_pool_create(4));
    for (int is_signed = 0; is_signed < 2; is_signed++) {
        for (int place = 0; place < 2; place++) {
            const struct tsr_image image = {.columns = COLUMNS,
                                            .rows = ROWS,
                                            .frames = 1,
                                            .components = 1,
                                            .bits_allocated = 16,
                                            .bits_stored = 12,
                                            .high_bit = 11,
                                            .is_signed = is_signed};
            memset(raster, 0, raster_bytes(&image));
            for (size_t i = 0; i < COUNT; i++) raster[2 * i] = (uint8_t)(i * 7);
            raster[2 * (size_t)(place ? COUNT - 1 : 1) + 1] = 0x40;
            check(pool, &image, TSR_COLOUR_NONE);
            assert_true(bands.model.plane[1].present);
        }
    }
    tsr_pool_destroy(pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(random_layouts), cmocka_unit_test(unexpected_bits)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
