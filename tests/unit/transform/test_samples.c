/* transform/planes/samples.h against FORMAT.md 6.1, for every layout of 1, 8 and 16 bits. */
#include "tests/unit/support.h"

#include "transform/planes/samples.h"

struct parts {
    uint32_t sample, outside;
};

/* FORMAT.md 6.1, by division. */
static struct parts split_plainly(uint32_t w, int allocated, int stored, int high, bool is_signed, bool extends)
{
    const uint32_t below = 1u << (high + 1 - stored), values = 1u << stored, f = w / below % values;
    const bool top = f >= values / 2;
    const uint32_t above = w / (below * values), expected = extends && top ? (1u << (allocated - 1 - high)) - 1u : 0;
    struct parts parts;
    /* two's complement, with its lowest number moved to 0 */
    parts.sample = !is_signed ? f : top ? f - values / 2 : f + values / 2;
    parts.outside = (above ^ expected) * below + w % below;
    return parts;
}

static void check_layouts(int allocated, uint32_t stride)
{
    for (int stored = 1; stored <= allocated; stored++) {
        for (int high = stored - 1; high < allocated; high++) {
            for (int flags = 0; flags < 4; flags++) {
                const bool is_signed = flags & 1, extends = flags & 2;
                const struct tsr_word_layout layout = tsr_word_layout(allocated, stored, high, is_signed, extends);
                assert_int_equal(layout.low_bit + layout.bits_above, allocated - stored);
                for (uint32_t w = 0; w < 1u << allocated; w++) {
                    const uint32_t sample = tsr_word_sample(w, layout), outside = tsr_word_outside(w, layout);
                    if (tsr_join_word(sample, outside, layout) != w || sample >> stored != 0 ||
                        outside >> (allocated - stored) != 0)
                        fail_case(__FILE__, __LINE__, "word comes back",
                                  "word %u, %d bits stored to %d of %d, flags %d", w, stored, high, allocated, flags);
                    if (w % stride != 0) continue;
                    const struct parts plain = split_plainly(w, allocated, stored, high, is_signed, extends);
                    assert_int_equal(sample, plain.sample);
                    assert_int_equal(outside, plain.outside);
                }
            }
        }
    }
}

TEST(words_of_1_bit)
{
    check_layouts(1, 1);
}

TEST(words_of_8_bits)
{
    check_layouts(8, 1);
}

TEST(words_of_16_bits)
{
    check_layouts(16, 13);
}

/* A signed sample, sign-extended into a wider word, leaves no bits outside the sample. */
TEST(sign_extension_leaves_nothing)
{
    const struct tsr_word_layout layout = tsr_word_layout(16, 12, 11, true, true);
    for (int32_t number = -2048; number < 2048; number++) {
        const uint32_t word = (uint32_t)number & 0xffffu;
        assert_int_equal(tsr_word_sample(word, layout), number + 2048);
        assert_int_equal(tsr_word_outside(word, layout), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(words_of_1_bit), cmocka_unit_test(words_of_8_bits),
                                       cmocka_unit_test(words_of_16_bits),
                                       cmocka_unit_test(sign_extension_leaves_nothing)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
