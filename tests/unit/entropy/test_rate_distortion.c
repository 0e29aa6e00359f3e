/* entropy/rate_distortion.h: the encoder's choice of coefficients. */
#include "tests/unit/support.h"

#include "entropy/rate_distortion.h"

static void random_units(struct rng *r, int32_t block[16], int width)
{
    block[0] = rng_between(r, -3, 3);
    for (int p = 1; p < 16; p++) {
        block[p] = (int32_t)rng_width(r, rng_below(r, 3) ? 8 : width);
        if (rng_below(r, 2)) block[p] = -block[p];
    }
}

/* The choice for a block, one place after the other. */
static void choose(int32_t block[16], const uint16_t energy[16], int block_class, bool lapped, int32_t lambda)
{
    struct tsr_block_choice choice = tsr_begin_choice(tsr_places_rate(block_class, block[0] != 0, lambda));
    for (int p = 1; p < 16; p++) {
        const struct tsr_place_errors errors = tsr_errors_of_place(block[p], tsr_place_weight(p, lapped));
        const int rate = tsr_min(errors.nearest, TSR_RATE_MAGNITUDES - 1);
        tsr_choose_place(&choice, p, errors, tsr_rates_of_magnitude(tsr_energy_class(energy[p]), rate, lambda),
                         tsr_places_rate(block_class, p + 1, lambda));
    }
    const uint32_t less_at = tsr_places_of_less(&choice);
    for (int p = 1; p < 16; p++) block[p] = tsr_chosen_coefficient(block[p], p, choice.last, less_at);
}

static void check(const int32_t units[16], const int32_t coefficients[16])
{
    assert_int_equal(coefficients[0], units[0]);
    for (int p = 1; p < 16; p++) {
        const int32_t nearest = (tsr_abs(units[p]) + 128) >> 8;
        if (coefficients[p] != 0) assert_int_equal(coefficients[p] < 0, units[p] < 0);
        expect(coefficients[p] == 0 || tsr_abs(coefficients[p]) == nearest || tsr_abs(coefficients[p]) == nearest - 1,
               "%d of %d", coefficients[p], units[p]);
    }
}

/* Each coefficient is the nearest, one less, or 0 above the last place. With lambda 0 it is the nearest. */
TEST(choices)
{
    struct rng r = {94};
    for (int n = 0; n < 20000; n++) {
        int32_t units[16], coefficients[16];
        uint16_t energy[16];
        random_units(&r, units, n % 4 == 0 ? 29 : 11);
        for (int p = 0; p < 16; p++) energy[p] = (uint16_t)rng_width(&r, 15);
        const int32_t lambda = n % 5 == 0 ? 0 : TSR_RATE_LAMBDA;
        memcpy(coefficients, units, sizeof coefficients);
        choose(coefficients, energy, tsr_block_energy_class(energy), n & 1, lambda);
        check(units, coefficients);
        for (int p = 1; p < 16 && lambda == 0; p++)
            expect(tsr_abs(coefficients[p]) == (tsr_abs(units[p]) + 128) >> 8 || (tsr_abs(units[p]) & 255) == 128,
                   "place %d: %d of %d", p, coefficients[p], units[p]);
        if (n % 4 == 0) continue;
        memcpy(coefficients, units, sizeof coefficients);
        tsr_optimise_cavlc(coefficients, (int)rng_below(&r, 17), n & 1, lambda);
        check(units, coefficients);
    }
}

/* A lone small coefficient in quiet surroundings is not worth its bits; a large one is. */
TEST(lone_coefficients)
{
    uint16_t energy[16] = {0};
    int32_t block[16] = {0};
    block[9] = 140;
    choose(block, energy, 0, false, TSR_RATE_LAMBDA);
    assert_int_equal(block[9], 0);
    block[9] = -1000;
    choose(block, energy, 0, false, TSR_RATE_LAMBDA);
    assert_int_equal(block[9], -4);
}

TEST(rough_costs_rise)
{
    uint32_t before = 0;
    for (uint32_t units = 0; units < 100000; units++) {
        const uint32_t cost = tsr_rough_cost(units);
        assert_true(cost >= before);
        before = cost;
    }
    assert_true(tsr_rough_cost(UINT32_MAX >> 1) > before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(choices), cmocka_unit_test(lone_coefficients),
                                       cmocka_unit_test(rough_costs_rise)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
