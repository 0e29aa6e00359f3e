/* kernels/planes/ranges_cpu.h: colour transforms of planes, ranges, packed histograms. FORMAT.md 6.2, 6.3. */
#include "tests/unit/support.h"

#include "kernels/planes/ranges_cpu.h"
#include "kernels/transform_plan.h"

enum { COLUMNS = 60, ROWS = 50, COUNT = COLUMNS * ROWS };

/* Values low, low + step, ..., most of which change slowly. values: how many different ones. */
static void fill(struct rng *r, uint16_t *plane, uint32_t low, uint32_t step, uint32_t values)
{
    for (uint32_t i = 0; i < COUNT; i++) {
        const uint32_t smooth = (i % COLUMNS + i / COLUMNS + rng_below(r, 3)) % values;
        plane[i] = (uint16_t)(low + step * (rng_below(r, 8) ? smooth : rng_below(r, values)));
    }
}

TEST(ranges)
{
    static struct tsr_range_work work;
    static uint16_t plane[COUNT], before[COUNT], offset[65536];
    static uint8_t used[65536];
    struct rng r = {46};
    int packed = 0;
    for (int n = 0; n < 300; n++) {
        struct tsr_plane_model model;
        const uint32_t step = n % 3 ? 1 + rng_below(&r, 32) : 1, values = 1 + rng_width(&r, 10);
        fill(&r, plane, rng_below(&r, 65536 - step * (values - 1)), step, values);
        memcpy(before, plane, sizeof before);
        memset(&model, 0, sizeof model);
        model.offset = offset;
        const bool may_pack = n % 5 != 0;
        tsr_choose_range(plane, COLUMNS, ROWS, may_pack ? TSR_PACK_IF_IT_PAYS : TSR_PACK_NOTHING, &model, &work);
        uint32_t low = 65535, high = 0, different = 0;
        memset(used, 0, sizeof used);
        for (size_t i = 0; i < COUNT; i++) {
            low = before[i] < low ? before[i] : low;
            high = before[i] > high ? before[i] : high;
            different += !used[before[i]];
            used[before[i]] = 1;
        }
        assert_int_equal(model.minimum, low);
        assert_int_equal(model.span, high - low + 1);
        assert_int_equal(model.range, model.packed ? different : model.span);
        if (!may_pack) assert_false(model.packed);
        packed += model.packed;
        for (uint32_t i = 0; model.packed && i < model.range; i++) {
            assert_true(used[low + offset[i]]);
            assert_true(i == 0 ? offset[0] == 0 : offset[i] > offset[i - 1]);
        }
        for (size_t i = 0; i < COUNT; i++) assert_true(plane[i] < model.range);
        tsr_undo_range(plane, COUNT, &model);
        assert_memory_equal(plane, before, sizeof plane);
    }
    assert_in_range(packed, 50, 299);
}

/* Packing saves five bits for each of values that are 32 apart. Dense values are not packed. */
TEST(packing_where_it_pays)
{
    static struct tsr_range_work work;
    static uint16_t plane[COUNT], offset[65536];
    struct rng r = {47};
    struct tsr_plane_model model = {0};
    model.offset = offset;
    fill(&r, plane, 100, 32, 100);
    tsr_choose_range(plane, COLUMNS, ROWS, TSR_PACK_IF_IT_PAYS, &model, &work);
    assert_true(model.packed);
    assert_int_equal(model.range, 100);
    fill(&r, plane, 100, 1, 100);
    tsr_choose_range(plane, COLUMNS, ROWS, TSR_PACK_IF_IT_PAYS, &model, &work);
    assert_false(model.packed);
    memset(plane, 7, sizeof plane);
    tsr_choose_range(plane, COLUMNS, ROWS, TSR_PACK_IF_IT_PAYS, &model, &work);
    assert_int_equal(model.span, 1);
    assert_int_equal(model.range, 1);
    assert_int_equal(model.minimum, 0x0707);
}

/* All rows are equal, so that packing saves nothing by the median edge predictor. */
static bool gaps_are_packed(uint32_t first, uint32_t step, enum tsr_packing packing)
{
    static struct tsr_range_work work;
    static uint16_t plane[COUNT], offset[65536];
    struct tsr_plane_model model = {.offset = offset};
    for (size_t i = 0; i < COUNT; i++) {
        const uint32_t column = (uint32_t)(i % COLUMNS);
        plane[i] = (uint16_t)(column < COLUMNS / 2 ? 0 : first + step * column);
    }
    tsr_choose_range(plane, COLUMNS, ROWS, packing, &model, &work);
    return model.packed;
}

/* A gap that is described in a few bits is packed if that is asked; many gaps, which take more, are not. */
TEST(packing_of_gaps)
{
    assert_false(gaps_are_packed(1024, 1, TSR_PACK_IF_IT_PAYS));
    assert_true(gaps_are_packed(1024, 1, TSR_PACK_GAPS));
    assert_false(gaps_are_packed(1, 1, TSR_PACK_GAPS));
    assert_false(gaps_are_packed(1024, 17, TSR_PACK_GAPS));
}

TEST(colours_of_planes)
{
    static uint16_t plane[3][COUNT], before[3][COUNT];
    uint16_t *planes[3] = {plane[0], plane[1], plane[2]};
    static const enum tsr_colour colours[] = {TSR_COLOUR_NONE, TSR_COLOUR_GREEN, TSR_COLOUR_RCT, TSR_COLOUR_YCOCG};
    struct rng r = {48};
    for (int bits = 1; bits <= 16; bits++)
        for (size_t i = 0; i < COUNT_OF(colours); i++) {
            for (size_t k = 0; k < COUNT; k++)
                for (int c = 0; c < 3; c++) plane[c][k] = before[c][k] = (uint16_t)rng_below(&r, 1u << bits);
            tsr_apply_colour(planes, COUNT, colours[i], bits);
            for (size_t k = 0; k < COUNT; k++) {
                int32_t v[3] = {before[0][k], before[1][k], before[2][k]};
                tsr_colour_forward(v, colours[i], bits);
                for (int c = 0; c < 3; c++) assert_int_equal(plane[c][k], v[c]);
            }
            tsr_undo_colour(planes, COUNT, colours[i], bits, false);
            assert_memory_equal(plane, before, sizeof plane);
        }
}

/* Components that go together are transformed, independent ones are not. With loss, components whose 16-bit differences
 * wrap are not transformed. */
TEST(choice_of_colour)
{
    static uint16_t plane[3][COUNT];
    uint16_t *planes[3] = {plane[0], plane[1], plane[2]};
    struct rng r = {49};
    const struct tsr_coding exact = {.path = TSR_PATH_TRANSFORM}, loses = {.path = TSR_PATH_TRANSFORM, .lossy = true};
    for (int lossy = 0; lossy < 2; lossy++) {
        const struct tsr_coding *const coding = lossy ? &loses : &exact;
        for (size_t k = 0; k < COUNT; k++) {
            const uint32_t grey = rng_below(&r, 200);
            for (uint32_t c = 0; c < 3; c++) plane[c][k] = (uint16_t)(grey + c + rng_below(&r, 3));
        }
        assert_true(tsr_choose_colour(planes, COLUMNS, ROWS, 8, coding) != TSR_COLOUR_NONE);
        assert_true(tsr_choose_colour(planes, COLUMNS, ROWS, 16, coding) != TSR_COLOUR_NONE);
        for (size_t k = 0; k < COUNT; k++)
            for (uint32_t c = 0; c < 3; c++) plane[c][k] = (uint16_t)rng_below(&r, 256);
        assert_int_equal(tsr_choose_colour(planes, COLUMNS, ROWS, 8, coding), TSR_COLOUR_NONE);
    }
    for (size_t k = 0; k < COUNT; k++) { /* red: R - G is about 65535, which wraps to about 0 */
        const uint32_t grey = rng_below(&r, 200);
        plane[0][k] = (uint16_t)(65535 - grey);
        plane[1][k] = plane[2][k] = (uint16_t)(200 - grey);
    }
    assert_true(tsr_choose_colour(planes, COLUMNS, ROWS, 16, &exact) != TSR_COLOUR_NONE);
    assert_int_equal(tsr_choose_colour(planes, COLUMNS, ROWS, 16, &loses), TSR_COLOUR_NONE);
}

/* Where SSIM decides, colours that go together become YCoCg, with coarser steps of Co and Cg; from -2 on. */
TEST(colours_as_they_are_seen)
{
    static uint16_t plane[3][COUNT];
    uint16_t *planes[3] = {plane[0], plane[1], plane[2]};
    const struct tsr_image image = {.components = 3, .bits_stored = 8, .bits_allocated = 8};
    struct rng r = {50};
    for (size_t k = 0; k < COUNT; k++) { /* R and B are G, with noise of their own: YCoCg is not what costs least */
        plane[1][k] = (uint16_t)(20 + rng_below(&r, 200));
        plane[0][k] = (uint16_t)(plane[1][k] + rng_below(&r, 17));
        plane[2][k] = (uint16_t)(plane[1][k] + rng_below(&r, 17));
    }
    /* Steps do not fall with the QP, and coarse ones are those of the other tuning. */
    struct tsr_coding tuned = {.path = TSR_PATH_TRANSFORM, .lossy = true, .effort = 5, .tune = TSR_TUNE_SSIM};
    for (int p = 1, last = -1; p < 3; p++, last = -1)
        for (tuned.qp_eighths = 0; tuned.qp_eighths <= 51 * TSR_QP_UNIT; tuned.qp_eighths++) {
            const int32_t qp = tsr_transform_plan(&image, &tuned, TSR_COLOUR_YCOCG, p).qp_index,
                          added = qp - tuned.qp_eighths - tsr_colour_qp(TSR_COLOUR_YCOCG, p);
            assert_true(qp >= last);
            if (tuned.qp_eighths <= 192) assert_int_equal(added, p == 1 ? 32 : 48);
            if (tuned.qp_eighths >= 320) assert_int_equal(added, 0);
            last = qp;
        }
    for (int effort = 1; effort <= 9; effort++) {
        struct tsr_coding coding = {.path = TSR_PATH_TRANSFORM,
                                    .lossy = true,
                                    .effort = (uint8_t)effort,
                                    .qp_eighths = 100,
                                    .tune = TSR_TUNE_PSNR};
        assert_int_equal(tsr_choose_colour(planes, COLUMNS, ROWS, 8, &coding), TSR_COLOUR_GREEN);
        int32_t before[3];
        for (int p = 0; p < 3; p++) before[p] = tsr_transform_plan(&image, &coding, TSR_COLOUR_YCOCG, p).qp_index;
        coding.tune = TSR_TUNE_SSIM;
        const bool seen = effort >= TSR_EFFORT_TOOLS;
        assert_int_equal(tsr_choose_colour(planes, COLUMNS, ROWS, 8, &coding),
                         seen ? TSR_COLOUR_YCOCG : TSR_COLOUR_GREEN);
        for (int p = 0; p < 3; p++) {
            const int32_t qp = tsr_transform_plan(&image, &coding, TSR_COLOUR_YCOCG, p).qp_index;
            assert_int_equal(qp, before[p] + (seen ? tsr_seen_qp(100, p) : 0));
            assert_int_equal(tsr_transform_plan(&image, &coding, TSR_COLOUR_NONE, p).qp_index, 100);
        }
        coding.path = TSR_PATH_PREDICT;
        assert_int_equal(tsr_choose_colour(planes, COLUMNS, ROWS, 8, &coding), TSR_COLOUR_GREEN);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(ranges),           cmocka_unit_test(packing_where_it_pays),
                                       cmocka_unit_test(packing_of_gaps),  cmocka_unit_test(colours_of_planes),
                                       cmocka_unit_test(choice_of_colour), cmocka_unit_test(colours_as_they_are_seen)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
