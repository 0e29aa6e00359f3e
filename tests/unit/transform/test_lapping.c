/* transform/block/lapping.h: the filter across block borders, its limits and its samples. FORMAT.md 8.7. */
#include "tests/unit/support.h"

#include "transform/block/lapping.h"

TEST(sums_stay)
{
    struct rng r = {92};
    for (int n = 0; n < 10000; n++) {
        int32_t v[4], w[4];
        for (int i = 0; i < 4; i++) w[i] = v[i] = rng_between(&r, -TSR_LAP_LIMIT, TSR_LAP_LIMIT);
        tsr_lap_inverse(&w[0], &w[1], &w[2], &w[3]);
        assert_int_equal(v[0] + v[3], w[0] + w[3]);
        assert_int_equal(v[1] + v[2], w[1] + w[2]);
        const int64_t i = (int64_t)v[2] - v[1], o = (int64_t)v[3] - v[0];
        assert_int_equal(w[2] - v[2], floor_shift(-9 * i - 13 * o + 32, 6));
        assert_int_equal(w[3] - v[3], floor_shift(4 * i - 10 * o + 32, 6));
    }
}

/* The encoder's filter is the inverse of the decoder's, except for rounding. */
TEST(inverse_of_each_other)
{
    struct rng r = {93};
    for (int n = 0; n < 100000; n++) {
        int32_t v[4], w[4];
        const int32_t top = (n % 2 ? 65535 : 255) << TSR_LAP_BITS;
        for (int i = 0; i < 4; i++) w[i] = v[i] = n % 5 ? rng_between(&r, 0, top) : rng_between(&r, 0, 1) * top;
        tsr_lap_forward(&w[0], &w[1], &w[2], &w[3]);
        for (int i = 0; i < 4; i++) assert_in_range(w[i] + 2 * top, 0, 5 * (int64_t)top);
        tsr_lap_inverse(&w[0], &w[1], &w[2], &w[3]);
        for (int i = 0; i < 4; i++) {
            const int32_t error = w[i] - v[i];
            expect(tsr_abs(error) <= 2 + top / 1000, "try %d: %d", n, error);
        }
    }
}

/* From values at the limits, filtering rows, then columns stays within 32 bits: the sanitizers check this. */
TEST(limits)
{
    for (int n = 0; n < 1 << 16; n++) {
        int32_t v[4][4];
        for (int i = 0; i < 16; i++) v[i / 4][i % 4] = n >> i & 1 ? TSR_LAP_LIMIT : -TSR_LAP_LIMIT;
        for (int i = 0; i < 4; i++) tsr_lap_inverse(&v[i][0], &v[i][1], &v[i][2], &v[i][3]);
        for (int j = 0; j < 4; j++) tsr_lap_inverse(&v[0][j], &v[1][j], &v[2][j], &v[3][j]);
        for (int i = 0; i < 16; i++) assert_in_range(tsr_lap_sample(v[i / 4][i % 4], 65535), 0, 65535);
    }
    assert_int_equal(tsr_lap_settle(INT32_MIN / 2), -TSR_LAP_LIMIT);
    assert_int_equal(tsr_lap_settle(INT32_MAX / 2), TSR_LAP_LIMIT);
    assert_int_equal(tsr_lap_settle(-5), -1);
    assert_int_equal(tsr_lap_settle(4), 1);
    assert_int_equal(tsr_lap_sample(8, 255), 1);
    assert_int_equal(tsr_lap_sample(7, 255), 0);
    assert_int_equal(tsr_lap_sample(-9, 255), 0);
    assert_int_equal(tsr_lap_sample(5000, 255), 255);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(sums_stay), cmocka_unit_test(inverse_of_each_other),
                                       cmocka_unit_test(limits)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
