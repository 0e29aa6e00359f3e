/* transform/hd.h against plain definitions. */
#include "tests/unit/support.h"

#include "transform/hd.h"

TEST(shifts_round_down)
{
    static const int64_t edges[] = {0, 1, 2, 3, 127, 128, 65535, 65536, INT32_MAX - 1, INT32_MAX, INT64_MAX};
    struct rng r = {1};
    for (int i = 0; i < 100000; i++) {
        const size_t edge = (size_t)i / 2;
        int64_t v = edge < COUNT_OF(edges) ? edges[edge] : (int64_t)(rng_next(&r) >> rng_below(&r, 64));
        if (i % 2) v = -1 - v;
        for (int shift = 0; shift < 63; shift += 1 + i % 3) {
            assert_int_equal(tsr_asr64(v, shift), floor_shift(v, shift));
            const int32_t v32 = (int32_t)v;
            if (shift < 32) assert_int_equal(tsr_asr(v32, shift), floor_shift(v32, shift));
        }
    }
}

TEST(logarithms)
{
    struct rng r = {2};
    assert_int_equal(tsr_bit_width(0), 0);
    for (uint32_t i = 1; i < 300000; i++) {
        const uint32_t v = i < 70000 ? i : (uint32_t)rng_next(&r) >> (i % 32) | 1u;
        assert_int_equal(tsr_bit_width(v), plain_width(v));
        assert_int_equal(tsr_floor_log2(v), plain_width(v) - 1);
    }
    for (int k = 0; k < 32; k++) {
        assert_int_equal(tsr_floor_log2(1u << k), k);
        assert_int_equal(tsr_floor_log2((1u << k) + ((1u << k) - 1u)), k);
    }
}

TEST(orders)
{
    static const int32_t v[] = {INT32_MIN, INT32_MIN + 1, -65536, -1, 0, 1, 65536, INT32_MAX};
    for (size_t i = 0; i < COUNT_OF(v); i++) {
        for (size_t j = 0; j < COUNT_OF(v); j++) {
            assert_int_equal(tsr_min(v[i], v[j]), v[i < j ? i : j]);
            assert_int_equal(tsr_max(v[i], v[j]), v[i > j ? i : j]);
        }
        if (v[i] != INT32_MIN) assert_int_equal(tsr_abs(v[i]), v[i] < 0 ? -(int64_t)v[i] : v[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(shifts_round_down), cmocka_unit_test(logarithms),
                                       cmocka_unit_test(orders)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
