/* kernels/planes/planes_cpu.h: rasters to planes and back, against FORMAT.md 3.2 and 6.1 bit by bit. */
#include "tests/unit/images.h"

#include "kernels/planes/planes_cpu.h"

enum { MOST = 24, SAMPLES = MOST * MOST };

static void check(struct rng *r, struct tsr_image image, int content)
{
    static uint16_t plane[TSR_PLANES_LIMIT][SAMPLES];
    static struct tsr_frame_model model;
    static uint8_t raster[SAMPLES * 16];
    static _Alignas(uint16_t) uint8_t back[SAMPLES * 16 + 8];
    uint16_t *planes[TSR_PLANES_LIMIT];
    const size_t count = (size_t)image.columns * image.rows, bytes = raster_bytes(&image);
    for (int p = 0; p < TSR_PLANES_LIMIT; p++) planes[p] = plane[p];
    fill_raster(r, &image, content, raster);
    memset(&model, 0, sizeof model);
    tsr_split_raster(&image, raster, planes, &model);

    const bool halves = image.bits_allocated == 32, outside = !halves && image.bits_stored < image.bits_allocated;
    assert_int_equal(model.planes, image.components * (halves || outside ? 2 : 1));
    for (int c = 0; c < image.components; c++) {
        const int second = image.components + c;
        bool any_outside = false;
        assert_true(model.plane[c].present);
        for (size_t i = 0; i < count; i++) {
            const uint32_t word = get_word(&image, raster, word_place(&image, c, i));
            if (halves) {
                assert_int_equal(plane[c][i], (word >> 16) ^ (image.is_signed ? 0x8000u : 0u));
                assert_int_equal(plane[second][i], word & 0xffffu);
                continue;
            }
            const struct tsr_word_layout layout = tsr_word_layout(image.bits_allocated, image.bits_stored,
                                                                  image.high_bit, image.is_signed, model.extends_sign);
            assert_int_equal(plane[c][i], tsr_word_sample(word, layout));
            if (outside && model.plane[second].present)
                assert_int_equal(plane[second][i], tsr_word_outside(word, layout));
            any_outside |= tsr_word_outside(word, layout) != 0;
        }
        if (model.planes > image.components) assert_int_equal(model.plane[second].present, halves || any_outside);
        if (model.planes > image.components && !model.plane[second].present)
            memset(plane[second], 0xa5, sizeof plane[second]); /* it must not be read */
    }
    /* bits that are only the extended sign need no second plane */
    if (content == 5 && outside && image.high_bit == image.bits_stored - 1)
        for (int c = 0; c < image.components; c++) assert_false(model.plane[image.components + c].present);

    memset(back, 0xa5, sizeof back);
    tsr_join_raster(&image, &model, planes, back);
    assert_memory_equal(back, raster, bytes);
    for (size_t i = bytes; i < bytes + 8; i++) assert_int_equal(back[i], 0xa5);
    if (!tsr_has_planes_in_raster(&image)) return;

    memset(back, 0xa5, sizeof back);
    tsr_split_raster(&image, raster, planes, &model); /* they were used up */
    for (int c = 0; c < image.components; c++) {
        planes[c] = tsr_plane_in_raster(&image, c, back);
        memcpy(planes[c], plane[c], count * sizeof *planes[c]);
    }
    tsr_join_raster(&image, &model, planes, back);
    assert_memory_equal(back, raster, bytes);
    for (size_t i = bytes; i < bytes + 8; i++) assert_int_equal(back[i], 0xa5);
}

TEST(random_layouts)
{
    struct rng r = {44};
    for (int n = 0; n < 3000; n++) check(&r, random_image(&r, MOST), n % CONTENTS);
}

TEST(every_layout_of_words)
{
    struct rng r = {45};
    static const uint8_t allocated[] = {1, 8, 16, 32};
    for (size_t a = 0; a < COUNT_OF(allocated); a++)
        for (int stored = 1; stored <= allocated[a]; stored++)
            for (int high = stored - 1; high < allocated[a]; high++)
                for (int flags = 0; flags < 4; flags++) {
                    struct tsr_image image = random_image(&r, 5);
                    image.bits_allocated = allocated[a];
                    image.bits_stored = (uint8_t)stored;
                    image.high_bit = (uint8_t)high;
                    image.is_signed = flags & 1;
                    image.swapped = false;
                    check(&r, image, flags & 2 ? 5 : 0);
                }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(random_layouts), cmocka_unit_test(every_layout_of_words)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
