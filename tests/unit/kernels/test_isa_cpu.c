/* kernels/machine/isa_cpu.h: names of instruction sets. */
#define _POSIX_C_SOURCE 200809L

#include "tests/unit/support.h"

#include "kernels/machine/isa_cpu.h"

TEST(names)
{
    for (int best = TSR_ISA_PLAIN; best <= TSR_ISA_AVX512; best++) {
        const enum tsr_isa most = (enum tsr_isa)best;
        assert_int_equal(tsr_isa_named("plain", most), TSR_ISA_PLAIN);
        assert_int_equal(tsr_isa_named("avx2", most), best < TSR_ISA_AVX2 ? best : TSR_ISA_AVX2);
        assert_int_equal(tsr_isa_named("avx512", most), best);
        assert_int_equal(tsr_isa_named(NULL, most), best);
        assert_int_equal(tsr_isa_named("", most), best);
        assert_int_equal(tsr_isa_named("AVX2", most), best);
    }
}

/* The environment is read once. */
TEST(environment)
{
    assert_int_equal(setenv("TESSERA_ISA", "plain", 1), 0);
    assert_int_equal(tsr_isa(), TSR_ISA_PLAIN);
    assert_int_equal(setenv("TESSERA_ISA", "avx512", 1), 0);
    assert_int_equal(tsr_isa(), TSR_ISA_PLAIN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(names), cmocka_unit_test(environment)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
