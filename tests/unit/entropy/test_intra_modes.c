/* entropy/intra_modes.h: sizes and modes to a string and back, and strings that lie. INTRA.md 2. */
#include "tests/unit/support.h"

#include "entropy/intra_modes.h"

enum { SIDE = 24, BLOCKS = SIDE * SIDE, ROOM = 48 * BLOCKS + 16 };

static uint8_t own[BLOCKS], back[BLOCKS], bytes[ROOM];

/* Sizes and modes that are random, or mostly alike. */
static struct tsr_intra_map random_map(struct rng *r, int n)
{
    const struct tsr_intra_map map = {own, rng_between(r, 1, n % 3 ? SIDE : 4), rng_between(r, 1, n % 5 ? SIDE : 3)};
    int mode = 0;
    for (int32_t row = 0; row < map.rows; row += 2)
        for (int32_t column = 0; column < map.columns; column += 2) {
            const bool eight = tsr_is_whole_square(&map, column, row) && rng_below(r, 4) < (uint32_t)(n % 4);
            for (int i = 0; i < (eight ? 1 : 4); i++) {
                const int32_t c = column + i % 2, l = row + i / 2;
                if (n % 2 || rng_below(r, 8) == 0) mode = (int)rng_below(r, TSR_INTRA_MODES);
                if (c < map.columns && l < map.rows) tsr_set_intra(&map, c, l, eight, mode);
            }
        }
    return map;
}

TEST(round_trip)
{
    struct rng r = {421};
    for (int n = 0; n < 400; n++) {
        const struct tsr_intra_map map = random_map(&r, n), other = {back, map.columns, map.rows};
        const size_t from = rng_below(&r, 3), end = tsr_put_intra_string(&map, bytes, from, sizeof bytes);
        size_t at = from;
        assert_true(end > from);
        uint8_t *exact = must(malloc(end));
        memcpy(exact, bytes, end);
        assert_true(tsr_get_intra_string(exact, end, &at, &other));
        assert_int_equal(at, end);
        assert_memory_equal(back, own, (size_t)map.columns * (size_t)map.rows);
        free(exact);
        assert_int_equal(tsr_put_intra_string(&map, bytes, from, from + rng_below(&r, 7)), 0);
    }
}

/* A byte after the last one that is read is one too many. */
TEST(longer_strings)
{
    struct rng r = {424};
    for (int n = 0; n < 200; n++) {
        const struct tsr_intra_map map = random_map(&r, n % 4 ? 0 : n), other = {back, map.columns, map.rows};
        const size_t end = tsr_put_intra_string(&map, bytes, 0, sizeof bytes);
        size_t at = 0;
        if (bytes[0] > 100) continue; /* of a size of one byte */
        bytes[0] = (uint8_t)(bytes[0] + 5);
        memset(bytes + end, 0, 5);
        assert_false(tsr_get_intra_string(bytes, end + 5, &at, &other));
    }
}

/* No more is written than there is room for. */
TEST(little_room)
{
    struct rng r = {423};
    for (int n = 0; n < 400; n++) {
        const struct tsr_intra_map map = random_map(&r, n);
        const size_t size = tsr_put_intra_string(&map, bytes, 0, sizeof bytes), room = rng_below(&r, (uint32_t)size);
        uint8_t *exact = must(malloc(room + 1));
        assert_int_equal(tsr_put_intra_string(&map, exact, 0, room), 0);
        free(exact);
    }
}

/* A string that is cut, goes on, or has wrong bits is refused, or gives blocks that squares can have. */
TEST(damaged_strings)
{
    struct rng r = {422};
    int refused = 0;
    for (int n = 0; n < 3000; n++) {
        const struct tsr_intra_map map = random_map(&r, n), other = {back, map.columns, map.rows};
        size_t size = tsr_put_intra_string(&map, bytes, 0, sizeof bytes), at = 0;
        if (n % 4 == 0) size = rng_below(&r, (uint32_t)size);
        uint8_t *exact = must(malloc(size + !size));
        memcpy(exact, bytes, size);
        if (n % 4 > 1 && size > 0) exact[rng_below(&r, (uint32_t)size)] ^= (uint8_t)(1u << rng_below(&r, 8));
        if (n % 4 == 3 && size > 0) exact[0] = (uint8_t)rng_below(&r, 256);
        const bool good = tsr_get_intra_string(exact, size, &at, &other);
        free(exact);
        refused += !good;
        for (int32_t row = 0; row < map.rows && good; row++)
            for (int32_t column = 0; column < map.columns; column++) {
                const uint8_t block = back[row * map.columns + column];
                assert_true(block % TSR_INTRA_EIGHT < TSR_INTRA_MODES && block < 2 * TSR_INTRA_EIGHT);
                if (block < TSR_INTRA_EIGHT) continue;
                assert_true(tsr_is_whole_square(&map, column & ~1, row & ~1));
                assert_int_equal(block, back[(row & ~1) * map.columns + (column & ~1)]);
            }
    }
    assert_in_range(refused, 1000, 2800);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(round_trip), cmocka_unit_test(longer_strings),
                                       cmocka_unit_test(little_room), cmocka_unit_test(damaged_strings)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
