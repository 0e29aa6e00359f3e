/* entropy/token.h against FORMAT.md 7.4, for all values of 24 bits. */
#include "tests/unit/support.h"

#include "entropy/token.h"

TEST(every_value)
{
    uint32_t symbol_before = 0;
    for (uint32_t v = 0; v < 1u << 24; v++) {
        const struct tsr_token token = tsr_token(v);
        const uint32_t symbol = token.symbol, raw_bits = token.raw_bits;
        if (symbol >= TSR_TOKENS_24_BITS || (v < 65536 && symbol >= TSR_TOKENS_16_BITS) ||
            (int)raw_bits != tsr_token_raw_bits((int)symbol) || token.raw >> raw_bits != 0 ||
            tsr_token_value((int)symbol, token.raw) != v || symbol < symbol_before || symbol > symbol_before + 1)
            fail_case(__FILE__, __LINE__, "token", "value %u", v);
        symbol_before = symbol;
    }
    assert_int_equal(symbol_before, TSR_TOKENS_24_BITS - 1);
    assert_int_equal(tsr_token(65535).symbol, TSR_TOKENS_16_BITS - 1);
}

TEST(definition)
{
    struct rng r = {23};
    for (uint32_t i = 0; i < 200000; i++) {
        const uint32_t v = i < 70000 ? i : rng_width(&r, 24), k = (uint32_t)plain_width(v) - 1u;
        const struct tsr_token token = tsr_token(v);
        assert_int_equal(token.symbol, v < 16 ? v : 16 + 4 * (k - 4) + (v >> (k - 2)) % 4);
        assert_int_equal(token.raw_bits, v < 16 ? 0 : k - 2);
        assert_int_equal(token.raw, v < 16 ? 0 : v % (1u << (k - 2)));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_value), cmocka_unit_test(definition)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
