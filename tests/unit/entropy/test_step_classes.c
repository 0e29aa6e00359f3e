/* entropy/step_classes.h: classes of squares to a string and back, and strings that lie. FORMAT.md 8.8. */
#include "tests/unit/support.h"

#include "entropy/step_classes.h"

enum { SIDE = 40, SQUARES = SIDE * SIDE, ROOM = 4 * SQUARES + 16 };

static uint8_t classes[SQUARES], back[SQUARES], bytes[ROOM];

/* All alike, slowly changing, at their limits, or random. */
static void random_classes(struct rng *r, int n, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const int before = i > 0 ? classes[i - 1] : TSR_PLAIN_CLASS;
        classes[i] = (uint8_t)(n % 4 == 0   ? n / 4 % TSR_STEP_CLASSES
                               : n % 4 == 1 ? tsr_max(0, tsr_min(TSR_STEP_CLASSES - 1, before + rng_between(r, -1, 1)))
                               : n % 4 == 2 ? 6 * (int)rng_below(r, 2)
                                            : (int)rng_below(r, TSR_STEP_CLASSES));
    }
}

TEST(round_trip)
{
    struct rng r = {301};
    for (int n = 0; n < 400; n++) {
        const int32_t columns = rng_between(&r, 1, n % 3 ? SIDE : 4), rows = rng_between(&r, 1, n % 5 ? SIDE : 2);
        const size_t count = (size_t)columns * (size_t)rows, from = rng_below(&r, 3);
        random_classes(&r, n, count);
        const size_t end = tsr_put_class_string(classes, columns, rows, bytes, from, sizeof bytes);
        assert_true(end > from);
        size_t at = from;
        uint8_t *exact = must(malloc(end));
        memcpy(exact, bytes, end);
        assert_true(tsr_get_class_string(exact, end, &at, back, columns, rows));
        assert_int_equal(at, end);
        assert_memory_equal(back, classes, count);
        free(exact);
        /* Less room is told. */
        assert_int_equal(tsr_put_class_string(classes, columns, rows, bytes, from, end - 1), 0);
        assert_int_equal(tsr_put_class_string(classes, columns, rows, bytes, from, from + rng_below(&r, 2)), 0);
    }
}

/* A string that is cut, goes on, or has wrong bits is refused, or gives classes within their limits. */
TEST(damaged_strings)
{
    struct rng r = {302};
    int refused = 0;
    for (int n = 0; n < 2000; n++) {
        const int32_t columns = rng_between(&r, 1, 20), rows = rng_between(&r, 1, 20);
        random_classes(&r, n, (size_t)columns * (size_t)rows);
        size_t size = tsr_put_class_string(classes, columns, rows, bytes, 0, sizeof bytes), at = 0;
        if (n % 4 == 0) size = rng_below(&r, (uint32_t)size);
        uint8_t *exact = must(malloc(size + !size));
        memcpy(exact, bytes, size);
        if (n % 4 > 1 && size > 0) exact[rng_below(&r, (uint32_t)size)] ^= (uint8_t)(1u << rng_below(&r, 8));
        if (n % 4 == 3 && size > 0) exact[0] = (uint8_t)rng_below(&r, 256);
        memset(back, 0, sizeof back);
        if (!tsr_get_class_string(exact, size, &at, back, columns, rows)) refused++;
        assert_true(at <= size);
        for (int i = 0; i < columns * rows; i++) assert_in_range(back[i], 0, TSR_STEP_CLASSES - 1);
        free(exact);
    }
    assert_in_range(refused, 500, 1800);
}

/* All bytes of the string are read, and not more than four after them. */
TEST(ends)
{
    size_t at = 0;
    const uint8_t longer[] = {6, 0, 0, 0, 0, 0, 1}, more[] = {4, 0, 0, 0, 0}, none[] = {0}, beyond[] = {2, 0},
                  large[] = {0x80, 0x80, 0x80, 0};
    assert_true(tsr_get_class_string(more, sizeof more, &at, back, 1, 1));
    assert_int_equal(back[0], TSR_PLAIN_CLASS);
    at = 0;
    assert_false(tsr_get_class_string(longer, sizeof longer, &at, back, 1, 1));
    at = 0;
    assert_true(tsr_get_class_string(none, sizeof none, &at, back, 1, 1));
    at = 0;
    assert_false(tsr_get_class_string(none, sizeof none, &at, back, SIDE, SIDE));
    at = 0;
    assert_false(tsr_get_class_string(beyond, sizeof beyond, &at, back, 1, 1));
    at = 0;
    assert_false(tsr_get_class_string(large, sizeof large, &at, back, 1, 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(round_trip), cmocka_unit_test(damaged_strings),
                                       cmocka_unit_test(ends)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
