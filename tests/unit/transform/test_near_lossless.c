/* transform/planes/near_lossless.h: FORMAT.md 6.5. */
#include "tests/unit/support.h"

#include "transform/planes/near_lossless.h"

static void check(uint32_t sample, struct tsr_near_lossless near)
{
    const uint32_t index = tsr_near_lossless_index(sample, near);
    const int64_t error = (int64_t)tsr_near_lossless_sample(index, near) - sample;
    expect(llabs(error) <= near.max_error, "N %u, zero %u, top %u: %u becomes %u", near.max_error, near.zero, near.top,
           sample, tsr_near_lossless_sample(index, near));
    expect(index >> tsr_near_lossless_bits(near) == 0, "N %u: index %u has more than %d bits", near.max_error, index,
           tsr_near_lossless_bits(near));
}

TEST(every_sample)
{
    static const uint32_t errors[] = {1, 2, 3, 7, 8, 63, 64, 100, 127, 128, 255, 1000, 32766, 32767};
    for (int bits = 2; bits <= 16; bits++)
        for (int is_signed = 0; is_signed < 2; is_signed++)
            for (size_t e = 0; e < COUNT_OF(errors); e++) {
                const struct tsr_near_lossless near = tsr_near_lossless(errors[e], bits, is_signed);
                const uint32_t top = (1u << bits) - 1u;
                uint32_t before = 0;
                for (uint32_t s = 0; s <= top; s += bits > 12 ? 1 + s % 7 : 1) {
                    check(s, near);
                    const uint32_t index = tsr_near_lossless_index(s, near);
                    assert_true(index >= before && index - before <= (s == 0 ? 0 : 1 + 7 / errors[e]));
                    before = index;
                }
                check(top, near);
                /* The number 0 is kept, and reconstructed numbers are a step apart. */
                const uint32_t zero = is_signed ? 1u << (bits - 1) : 0, step = 2 * errors[e] + 1;
                assert_int_equal(tsr_near_lossless_sample(tsr_near_lossless_index(zero, near), near), zero);
                if (zero + step <= top)
                    assert_int_equal(tsr_near_lossless_index(zero + step, near),
                                     tsr_near_lossless_index(zero, near) + 1);
            }
}

/* Every index that a corrupt file may hold gives a valid sample. */
TEST(every_index)
{
    struct rng r = {91};
    for (int n = 0; n < 20000; n++) {
        const int bits = rng_between(&r, 2, 16);
        const struct tsr_near_lossless near = tsr_near_lossless(1 + rng_below(&r, 32767), bits, rng_below(&r, 2));
        const uint32_t index = rng_below(&r, 1u << tsr_near_lossless_bits(near));
        assert_true(tsr_near_lossless_sample(index, near) < 1u << bits);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_sample), cmocka_unit_test(every_index)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
