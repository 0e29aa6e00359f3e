/* Encoder: the choice of coefficients of predicted blocks, and what they cost. FORMAT.md needs none of it; but equal
 * bytes from every engine need that all of them use exactly this.
 *
 * Rates and their worth are those of rate_distortion.h. Blocks follow one after the other, so that neighbours count
 * with the coefficients that they have. */
#ifndef TSR_KERNELS_BLOCKS_INTRA_CHOICE_H
#define TSR_KERNELS_BLOCKS_INTRA_CHOICE_H

#include "entropy/intra_modes.h"
#include "entropy/rate_distortion.h"
#include "transform/block/core8x8.h"

enum {
    TSR_INTRA_TRIES = 3,   /* modes that are coded, of those that seem to cost least */
    TSR_CHANCE_RATES = 64, /* rates of a bit are looked up by this many chances */
    TSR_INTRA_LAMBDA = 3,  /* quarters of lambda: the step of predicted blocks is coarser (tsr_intra_q) */
    TSR_INTRA_MARGIN = 16 * 8 * TSR_RATE_BIT, /* a tile is predicted if that saves more than this */
    TSR_INTRA_MARGIN_SHIFT = 7,               /* and this share: its cost shifted right */
    TSR_INTRA_WEIGHT = 64                     /* of an error, as in tsr_error_weight */
};

/* What a bit costs, in 1/16 bit, by its chance. */
struct tsr_chance_rates {
    uint8_t of[TSR_CHANCE_RATES];
};

TSR_HD void tsr_fill_chance_rates(struct tsr_chance_rates *rates)
{
    for (uint32_t i = 0; i < TSR_CHANCE_RATES; i++)
        rates->of[i] = (uint8_t)((7 * TSR_COST_BIT - tsr_log2_cost(2 * i + 1)) / (TSR_COST_BIT / TSR_RATE_BIT));
}

TSR_HD_INLINE uint32_t tsr_rate_of_bit(const struct tsr_chance_rates *rates, const struct tsr_chance *chance,
                                       uint32_t bit)
{
    const uint32_t chance_of_bit = bit ? 65535u - chance->zero : chance->zero;
    return rates->of[chance_of_bit >> 10];
}

TSR_HD_INLINE uint32_t tsr_rate_of_intra_mode(const struct tsr_chance_rates *rates,
                                              const struct tsr_intra_chances *chances, bool eight,
                                              struct tsr_intra_beside beside, int mode)
{
    const bool alike = beside.left == beside.above;
    uint32_t rate = tsr_rate_of_bit(rates, &chances->is_left[eight][alike], mode == beside.left);
    if (mode == beside.left) return rate;
    if (!alike) rate += tsr_rate_of_bit(rates, &chances->is_above[eight], mode == beside.above);
    if (mode == beside.above) return rate;
    for (int node = 1, i = TSR_INTRA_MODE_BITS - 1; i >= 0; i--) {
        const uint32_t bit = (uint32_t)mode >> i & 1u;
        rate += tsr_rate_of_bit(rates, &chances->mode[eight][node], bit);
        node = 2 * node + (int)bit;
    }
    return rate;
}

/* Neighbours of a group of 16 coefficients. */
struct tsr_group_neighbours {
    const struct tsr_magnitudes *left, *above, *corner_left, *corner_right;
};

/* A group's coefficients of its units. seen: what its neighbours see of it then. Returns squared errors, of 64 units
 * each, and lambda times the rate. */
TSR_HD_INLINE int64_t tsr_choose_group(const int32_t units[TSR_BLOCK_SAMPLES], struct tsr_group_neighbours n,
                                       int32_t lambda, int32_t coefficients[TSR_BLOCK_SAMPLES],
                                       struct tsr_magnitudes *seen)
{
    uint16_t around[TSR_BLOCK_SAMPLES], energy[TSR_BLOCK_SAMPLES];
    int32_t nearest[TSR_BLOCK_SAMPLES];
    int64_t errors = 0;
    for (int p = 0; p < TSR_BLOCK_SAMPLES; p++) nearest[p] = (tsr_abs(units[p]) + TSR_UNIT / 2) >> TSR_UNIT_BITS;
    const int top = tsr_coded_places(nearest) - 1;
    tsr_energies_around(n.left, n.above, n.corner_left, n.corner_right, around);
    const int of_block = tsr_block_energy_class(around);
    int last = -1;
    uint32_t less_at = 0;
    if (top >= 0) {
        struct tsr_block_choice choice = tsr_begin_choice(tsr_places_rate(of_block, 0, lambda));
        choice.last = -1;
        memcpy(energy, around, sizeof energy);
        tsr_see_magnitudes(nearest, 0, seen);
        tsr_add_energies(seen, energy);
        for (int p = 0; p <= top; p++)
            tsr_choose_place(&choice, p, tsr_errors_of_place(units[p], TSR_INTRA_WEIGHT),
                             tsr_rates_of_magnitude(tsr_energy_class(energy[p]),
                                                    tsr_min(nearest[p], TSR_RATE_MAGNITUDES - 1), lambda),
                             tsr_places_rate(of_block, p + 1, lambda));
        last = choice.last;
        if (last >= 0) less_at = tsr_places_of_less(&choice);
    }
    for (int p = 0; p < TSR_BLOCK_SAMPLES; p++) {
        coefficients[p] = tsr_chosen_coefficient(units[p], p, last, less_at);
        const int64_t error = units[p] - coefficients[p] * (int64_t)TSR_UNIT;
        errors += error * error;
    }
    tsr_see_magnitudes(coefficients, 0, seen);
    return TSR_INTRA_WEIGHT * errors +
           (int64_t)lambda * tsr_rate_of_block(seen, tsr_coded_places(coefficients), around);
}

#endif
