/* entropy/energies.h: weighted sums of magnitudes and their energy classes. FORMAT.md 8.6. */
#include "tests/unit/support.h"

#include "entropy/energies.h"

static void random_magnitudes(struct rng *r, struct tsr_magnitudes *m, uint32_t top)
{
    for (int p = 0; p < 16; p++) m->at[p] = (uint16_t)rng_below(r, top + 1);
}

TEST(sums)
{
    struct rng r = {91};
    for (int n = 0; n < 2000; n++) {
        struct tsr_magnitudes left, above, nw, ne, own;
        uint16_t energy[16], all[16], step[16];
        const uint32_t top = n % 3 == 0 ? TSR_MAGNITUDE_CAP : n % 3 == 1 ? 3 : 40;
        random_magnitudes(&r, &left, top);
        random_magnitudes(&r, &above, top);
        random_magnitudes(&r, &nw, top);
        random_magnitudes(&r, &ne, top);
        random_magnitudes(&r, &own, top);
        tsr_energies_around(&left, &above, &nw, &ne, energy);
        memcpy(all, energy, sizeof all);
        memcpy(step, energy, sizeof step);
        tsr_add_energies(&own, all);
        for (int k = 15; k > 0; k--) tsr_add_energy(step, k, own.at[k]);
        for (int p = 0; p < 16; p++) {
            uint32_t sum = (uint32_t)(left.at[p] * tsr_weight_left_host[p] + above.at[p] * tsr_weight_above_host[p]) +
                           (uint32_t)(nw.at[p] + ne.at[p]) * tsr_weight_corner_host[p];
            assert_int_equal(energy[p], sum);
            for (int k = p + 1; k < 16; k++) sum += (uint32_t)own.at[k] * tsr_weight_inside_host[16 * k + p];
            assert_int_equal(all[p], sum);
            assert_int_equal(step[p], sum);
        }
    }
}

/* The largest energy, FORMAT.md 8.6. A place has no weight for its own energy or that of a higher place. */
TEST(weights)
{
    uint32_t most = 0;
    for (int p = 0; p < 16; p++) {
        uint32_t sum = tsr_weight_left_host[p] + tsr_weight_above_host[p] + 2u * tsr_weight_corner_host[p];
        for (int k = 0; k < 16; k++) {
            if (k <= p) assert_int_equal(tsr_weight_inside_host[16 * k + p], 0);
            sum += tsr_weight_inside_host[16 * k + p];
        }
        if (sum > most) most = sum;
    }
    assert_int_equal(most * TSR_MAGNITUDE_CAP, 36281);
}

TEST(classes_of_energies)
{
    int before = -1;
    for (uint32_t e = 0; e < 65536; e++) {
        const int width = plain_width(e);
        const int energy_class = tsr_energy_class(e);
        assert_int_equal(energy_class, e < 2 ? (int)e : 2 * (width - 1) + (int)(e / (1u << (width - 2)) % 2));
        assert_true(energy_class >= before && energy_class < TSR_ENERGY_CLASSES);
        before = energy_class;
    }
}

TEST(seen)
{
    assert_int_equal(tsr_seen_magnitude(511, 0), 511);
    assert_int_equal(tsr_seen_magnitude(1u << 23, 0), 511);
    assert_int_equal(tsr_seen_magnitude(1u << 23, 15), 256);
    assert_int_equal(tsr_seen_magnitude(7, 3), 0);
    const int32_t coefficients[16] = {0, -5, 0, 600, 0};
    struct tsr_magnitudes m;
    tsr_see_magnitudes(coefficients, 1, &m);
    assert_int_equal(m.at[1], 2);
    assert_int_equal(m.at[3], 300);
    assert_int_equal(tsr_coded_places(coefficients), 4);
    const int32_t none[16] = {0};
    assert_int_equal(tsr_coded_places(none), 0);
}

/* Magnitudes one by one, and the set of coefficients that are not 0. It includes coefficients whose low 16 or 8 bits
 * are 0. */
TEST(places)
{
    struct rng r = {92};
    for (int n = 0; n < 20000; n++) {
        int32_t coefficients[16] = {0};
        struct tsr_magnitudes seen, plain = {{0}};
        tsr_seen_places all;
        uint32_t places = 0;
        int last = 0;
        tsr_see_none(&all);
        for (int p = 15; p >= 0; p--) {
            if (rng_below(&r, 3)) continue;
            coefficients[p] = (int32_t)(rng_below(&r, 2) ? 1u << rng_below(&r, 24) : rng_width(&r, 24));
            if (rng_below(&r, 2)) coefficients[p] = -coefficients[p];
            plain.at[p] = (uint16_t)tsr_seen_magnitude((uint32_t)tsr_abs(coefficients[p]), 0);
            tsr_see_place(&all, p, plain.at[p]);
            places |= (uint32_t)(coefficients[p] != 0) << p;
            if (coefficients[p] != 0 && last == 0) last = p + 1;
        }
        memcpy(&seen, &all, sizeof seen);
        assert_memory_equal(&seen, &plain, sizeof seen);
        assert_int_equal(tsr_places_not_zero(coefficients), places);
        assert_int_equal(tsr_coded_places(coefficients), last);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(sums), cmocka_unit_test(weights),
                                       cmocka_unit_test(classes_of_energies), cmocka_unit_test(seen),
                                       cmocka_unit_test(places)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
