/* Encoder: what DCs cost about, one by one or as a plane of their own (FORMAT.md 8.9). FORMAT.md needs none of it; but
 * equal bytes from every engine need that all of them use exactly this.
 *
 * Both ways are costed from the means of blocks before lapping, with the step that DCs have one by one. Rates are those
 * of rate_distortion.h, and an error of a DC weighs 35/64. Of 24 images at 7 QPs, the ratio of both costs tells which
 * way takes less at equal PSNR in all but a few, where the other way takes up to 3 % less. */
#ifndef TSR_ENTROPY_DC_CHOICE_H
#define TSR_ENTROPY_DC_CHOICE_H

#include "rate_distortion.h"
#include "transform/block/core4x4.h"
#include "transform/block/dc_plane.h"

/* In 1/16 bit, over so many blocks: one by one, and as a plane. */
struct tsr_dc_costs {
    uint64_t apart, plane, blocks;
};

enum { TSR_DC_MODEL_COST = 100 * 8 * TSR_RATE_BIT /* of a DC plane's tables, about */ };

/* Of a plane of all_blocks. One by one DCs cost less than it seems, since the AC coefficients of a block tell of its
 * DC.
 */
TSR_HD bool tsr_is_dc_plane_cheaper(struct tsr_dc_costs costs, uint64_t all_blocks)
{
    const uint64_t of_model = all_blocks > 0 ? TSR_DC_MODEL_COST * costs.blocks / all_blocks : 0;
    return 20 * (costs.plane + of_model) < 19 * costs.apart;
}

/* The q that both are costed with: that of lapped blocks. Of the plane it counts as tsr_dc_q does. */
TSR_HD int32_t tsr_dc_choice_q(int32_t q, int fraction)
{
    return tsr_max(0, q - (fraction > TSR_LAP_BITS ? 0 : 2 * TSR_QP_OCTAVE));
}

/* Which rows of four blocks count, of a tile with so many of them and so many columns of blocks: all of small tiles, a
 * quarter or an eighth of others, by twos. In wide tiles, which have few rows, it is half of those of every other tile.
 * above: tiles above this one. */
TSR_HD bool tsr_dc_row_counts(int32_t row, int32_t rows, int32_t columns, uint32_t above)
{
    const bool is_wide = rows >= 4 && rows < 8 && columns >= 128;
    const int32_t period = is_wide ? 4 : rows < 8 ? 2 : rows < 16 ? 8 : 16, at = row % period;
    return (at == period / 2 - 1 || at == period / 2) && !(is_wide && above % 2 != 0);
}

/* In 1/16 bit: a bit is worth 0.11 squared steps. error: in units. */
TSR_HD uint32_t tsr_dc_error_cost(int32_t error)
{
    const uint32_t e = (uint32_t)tsr_min(tsr_abs(error), 4 * TSR_UNIT);
    return e * e * 5 >> 12;
}

/* Of one DC: its error, the magnitude of its difference, and those around it. Where DCs are coded, the AC coefficients
 * of the block add to the energy; so neighbours count 27/16 times. */
TSR_HD uint32_t tsr_dc_cost_apart(int32_t error, uint32_t magnitude, uint32_t w, uint32_t n, uint32_t corners)
{
    const uint32_t energy =
        (TSR_AT(tsr_weight_left)[0] * w + TSR_AT(tsr_weight_above)[0] * n + TSR_AT(tsr_weight_corner)[0] * corners) *
            27 >>
        4;
    const int of_energy = tsr_energy_class(energy < 65535 ? energy : 65535);
    const uint8_t *table = TSR_AT(tsr_rate_of_others) + TSR_RATE_MAGNITUDES * of_energy;
    return tsr_dc_error_cost(error) + tsr_rate_of_magnitude(table, magnitude, magnitude > 0);
}

/* Of the errors of a block of 16 means: units in the order of the scan; left: units[0] of the block before. seen: what
 * its neighbours see of it, and *places up to its last coefficient, which this fills in. */
TSR_HD uint32_t tsr_dc_see_plane(const int32_t units[TSR_BLOCK_SAMPLES], int32_t left, struct tsr_magnitudes *seen,
                                 int *places)
{
    uint32_t cost = 0;
    *places = 0;
    for (int p = 0; p < TSR_BLOCK_SAMPLES; p++) {
        const int32_t magnitude = tsr_abs(units[p]),
                      rounded = tsr_round_units(units[p], p ? TSR_ROUND_AC : TSR_ROUND_DC);
        const int32_t coded = p > 0 ? rounded : tsr_round_units(units[0] - left, TSR_ROUND_DC);
        cost += tsr_dc_error_cost(magnitude - rounded * TSR_UNIT);
        seen->at[p] = (uint16_t)tsr_seen_magnitude((uint32_t)coded, 0);
        if (coded > 0) *places = p + 1;
    }
    return cost;
}

/* Of the block's coefficients. above: what is seen in the row above; both rows have a block before and one after. */
TSR_HD uint32_t tsr_dc_rate_of_plane(const struct tsr_magnitudes *seen, const struct tsr_magnitudes *above, int places)
{
    uint16_t energy[TSR_BLOCK_SAMPLES];
    tsr_energies_around(seen - 1, above, above - 1, above + 1, energy);
    return tsr_rate_of_block(seen, places, energy);
}

#endif
