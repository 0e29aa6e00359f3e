/* entropy/slices.h: a tile's blocks in slices, and the slices' lengths. FORMAT.md 8.5. */
#include "tests/unit/support.h"

#include "entropy/slices.h"

/* Each block belongs to one slice, and slices are numbered along rows. */
TEST(slices_cover_the_blocks)
{
    static uint8_t owner[80][80];
    struct rng r = {25};
    for (int n = 0; n < 3000; n++) {
        const int32_t width = rng_between(&r, 1, 300), height = rng_between(&r, 1, 300);
        const int32_t side = rng_between(&r, n % 2 ? TSR_SLICE_BLOCKS_LEAST : 1, TSR_SLICE_BLOCKS_LIMIT);
        const struct tsr_block_grid grid = tsr_block_grid(width, height, side);
        assert_int_equal(grid.columns, width / 4 + (width % 4 > 0));
        assert_int_equal(grid.rows, height / 4 + (height % 4 > 0));
        memset(owner, 0, sizeof owner);
        for (int32_t s = 0; s < grid.slice_columns * grid.slice_rows; s++) {
            const struct tsr_slice slice = tsr_slice_at(grid, s);
            assert_int_equal(slice.column, s % grid.slice_columns * side);
            assert_int_equal(slice.row, s / grid.slice_columns * side);
            assert_in_range(slice.columns, 1, side);
            assert_in_range(slice.rows, 1, side);
            for (int32_t y = 0; y < slice.rows; y++)
                for (int32_t x = 0; x < slice.columns; x++) owner[slice.row + y][slice.column + x]++;
        }
        for (int32_t y = 0; y < 80; y++)
            for (int32_t x = 0; x < 80; x++) assert_int_equal(owner[y][x], y < grid.rows && x < grid.columns);
    }
}

TEST(lengths_round_trip)
{
    static uint8_t bytes[1 << 17];
    uint32_t lengths[256], back[256];
    struct rng r = {26};
    for (int n = 0; n < 2000; n++) {
        const int32_t count = rng_between(&r, 1, 256);
        const int width = rng_between(&r, 0, n % 10 ? 12 : TSR_RICE_LIMIT);
        for (int32_t i = 0; i < count; i++)
            lengths[i] = n % 3 ? (uint32_t)rng_next(&r) & ((1u << width) - 1u) : rng_width(&r, width);
        if (n % 10 == 0) lengths[0] = (1u << TSR_RICE_LIMIT) - 1u;
        const int parameter = tsr_rice_parameter(lengths, count);
        uint64_t least = UINT64_MAX; /* over all parameters; of equal ones the first is best */
        int best = 0;
        for (int k = 0; k < TSR_RICE_LIMIT; k++) {
            uint64_t bits = 0;
            for (int32_t i = 0; i < count; i++) bits += (lengths[i] >> k) + 1u + (unsigned)k;
            assert_int_equal(tsr_rice_bits(lengths, count, k), bits);
            if (bits < least) {
                least = bits;
                best = k;
            }
        }
        assert_int_equal(parameter, best);
        struct tsr_bit_writer w = tsr_bit_writer(bytes, sizeof bytes);
        tsr_put_slice_lengths(&w, lengths, count);
        const size_t size = tsr_flush_bits(&w);
        assert_false(w.overflow);
        assert_int_equal(size, (5 + least + 7) / 8);
        struct tsr_bit_reader reader = tsr_bit_reader(bytes, size);
        assert_true(tsr_get_slice_lengths(&reader, back, count));
        assert_true(tsr_bits_ended(&reader));
        assert_memory_equal(back, lengths, (size_t)count * sizeof back[0]);
        reader = tsr_bit_reader(bytes, rng_below(&r, (uint32_t)size));
        assert_false(tsr_get_slice_lengths(&reader, back, count));
    }
}

/* u(5) k; then a length: as many zeros as its high part, a one, its low k bits. */
TEST(refusals)
{
    static const struct {
        int parameter, zeros;
        bool good;
    } cases[] = {{0, 0, true},    {0, 1000, true}, {23, 1, true},  {23, 2, false},    {20, 15, true},
                 {20, 16, false}, {24, 0, false},  {31, 0, false}, {10, 16383, true}, {10, 16384, false}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        static uint8_t bytes[4096];
        uint32_t length = 0;
        struct tsr_bit_writer w = tsr_bit_writer(bytes, sizeof bytes);
        tsr_put_bits(&w, (uint32_t)cases[i].parameter, 5);
        for (int z = 0; z < cases[i].zeros; z++) tsr_put_bits(&w, 0, 1);
        tsr_put_bits(&w, 1, 1);
        tsr_put_bits(&w, 0, cases[i].parameter);
        const size_t size = tsr_flush_bits(&w);
        struct tsr_bit_reader reader = tsr_bit_reader(bytes, size);
        expect(tsr_get_slice_lengths(&reader, &length, 1) == cases[i].good, "case %zu", i);
        if (cases[i].good) assert_int_equal(length, (uint32_t)cases[i].zeros << cases[i].parameter);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(slices_cover_the_blocks), cmocka_unit_test(lengths_round_trip),
                                       cmocka_unit_test(refusals)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
