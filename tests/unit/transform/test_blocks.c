/* transform/block/blocks.h: the zigzag scan and the prediction of DC coefficients. FORMAT.md 8.4. */
#include "tests/unit/support.h"

#include "transform/block/blocks.h"

/* The scan goes along the diagonals, up and down in turn. Its first step goes down the first column. */
TEST(zigzag)
{
    static const int format[16] = {0, 1, 4, 8, 5, 2, 3, 6, 9, 12, 13, 10, 7, 11, 14, 15};
    int place = 0;
    for (int diagonal = 0; diagonal < 7; diagonal++)
        for (int k = 0; k <= diagonal; k++) {
            const int row = diagonal % 2 ? k : diagonal - k, column = diagonal - row;
            if (row > 3 || column > 3) continue;
            assert_int_equal(tsr_zigzag(place), 4 * row + column);
            assert_int_equal(tsr_zigzag(place), format[place]);
            assert_int_equal(tsr_zigzag_place(4 * row + column), place);
            place++;
        }
    assert_int_equal(place, TSR_BLOCK_SAMPLES);
}

static int32_t predict_plainly(const int32_t *dc, int columns, int column, int row)
{
    const int32_t *here = dc + row * columns + column;
    if (row == 0) return column == 0 ? 0 : here[-1];
    if (column == 0) return here[-columns];
    const int64_t w = here[-1], n = here[-columns], nw = here[-columns - 1], least = w < n ? w : n,
                  most = w > n ? w : n;
    return (int32_t)clamp_to(w + n - nw, least, most);
}

/* The encoder makes residuals from the last block to the first. Undoing them forwards gives the DCs again. */
TEST(dc_prediction)
{
    enum { SIDE = 9, STEP = 16 };
    static int32_t coefficients[SIDE * SIDE * STEP], dc[SIDE * SIDE];
    struct rng r = {14};
    for (int n = 0; n < 2000; n++) {
        const int columns = rng_between(&r, 1, SIDE), rows = rng_between(&r, 1, SIDE);
        const size_t pitch = (size_t)columns * STEP;
        const int32_t limit = n % 2 ? TSR_COEFFICIENT_LIMIT - 1 : 40;
        for (int i = 0; i < columns * rows; i++)
            dc[i] = coefficients[i * STEP] =
                n % 4 == 3 ? (rng_below(&r, 2) ? limit : -limit) : rng_between(&r, -limit, limit);
        for (int i = columns * rows - 1; i >= 0; i--) {
            const int32_t prediction =
                tsr_predict_dc(coefficients + i * STEP, STEP, pitch, i % columns == 0, i < columns);
            assert_int_equal(prediction, predict_plainly(dc, columns, i % columns, i / columns));
            coefficients[i * STEP] -= prediction;
        }
        for (int i = 0; i < columns * rows; i++) {
            coefficients[i * STEP] +=
                tsr_predict_dc(coefficients + i * STEP, STEP, pitch, i % columns == 0, i < columns);
            assert_int_equal(coefficients[i * STEP], dc[i]);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(zigzag), cmocka_unit_test(dc_prediction)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
