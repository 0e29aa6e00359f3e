/* Rate and distortion of a block's coefficients: the encoder's choice of each among its neighbours, and of the last
 * place. FORMAT.md needs none of it; but equal bytes from every engine need that all of them use exactly this.
 *
 * Rates are those of the energy contexts, from fixed tables: what magnitudes cost at each energy class, on average
 * over 16 images at 7 QPs. Neighbours count with the coefficients that plain rounding gives, so every block can be done
 * at once. */
#ifndef TSR_ENTROPY_RATE_DISTORTION_H
#define TSR_ENTROPY_RATE_DISTORTION_H

#include "cavlc.h"
#include "code_cost.h"
#include "energies.h"
#include "transform/block/quantiser.h"

enum {
    TSR_RATE_MAGNITUDES = 16,
    TSR_RATE_BIT = 16, /* rates are in 1/16 bit */
    TSR_UNIT = 1 << TSR_UNIT_BITS,
    /* A bit is worth 0.11 squared steps: 0.08 and 0.16 lose 0.2 to 0.3 %, 0.22 1 %. Errors are in squared units, their
     * weights in 1/64. */
    TSR_RATE_LAMBDA = 11 * TSR_UNIT * TSR_UNIT / 100 * 64 / TSR_RATE_BIT,
    /* With classes of steps for SSIM; see tests/bench/decisions/035. */
    TSR_RATE_LAMBDA_SSIM = TSR_RATE_LAMBDA / 4 * 3
};

/* clang-format off */
/* Of the number of places, 0 .. 16, by the block's energy class. */
TSR_TABLE(uint8_t, tsr_rate_of_places, TSR_ENERGY_CLASSES * 17,
          2, 62, 139, 131, 158, 148, 166, 169, 168, 163, 165, 170, 171, 166, 171, 170, 163, 10, 29, 104, 93, 129, 116,
          142, 153, 151, 143, 141, 158, 165, 153, 170, 165, 164, 17, 19, 88, 83, 121, 106, 126, 145, 139, 135, 135,
          147, 163, 147, 166, 162, 163, 20, 19, 78, 71, 103, 92, 114, 137, 128, 123, 121, 138, 151, 139, 160, 156,
          155, 24, 20, 69, 62, 95, 82, 101, 126, 115, 109, 110, 123, 142, 130, 155, 147, 148, 35, 22, 58, 51, 80, 67,
          83, 110, 97, 90, 90, 106, 124, 114, 140, 133, 136, 46, 27, 54, 47, 72, 59, 72, 97, 85, 78, 77, 94, 109, 98,
          126, 120, 124, 57, 35, 56, 47, 68, 54, 64, 83, 76, 69, 67, 81, 94, 85, 109, 100, 109, 70, 46, 61, 53, 69,
          54, 60, 75, 70, 62, 60, 70, 79, 71, 93, 82, 93, 83, 59, 72, 61, 74, 57, 61, 73, 66, 58, 55, 61, 68, 61, 81,
          69, 79, 92, 69, 84, 71, 81, 63, 64, 72, 67, 58, 54, 58, 62, 54, 71, 59, 66, 101, 80, 100, 85, 91, 73, 72,
          75, 71, 62, 57, 59, 60, 50, 61, 48, 50, 110, 90, 116, 100, 103, 84, 82, 80, 78, 68, 61, 61, 59, 48, 56, 42,
          42, 117, 97, 132, 113, 115, 94, 93, 83, 86, 75, 66, 64, 62, 48, 54, 38, 34, 118, 103, 143, 129, 129, 107,
          102, 93, 96, 85, 73, 71, 65, 50, 53, 35, 27, 122, 104, 149, 135, 136, 114, 111, 95, 103, 91, 80, 76, 68, 52,
          53, 33, 24, 129, 106, 153, 143, 151, 123, 119, 98, 114, 100, 87, 83, 75, 55, 54, 33, 20, 132, 108, 157, 149,
          160, 134, 130, 104, 121, 109, 97, 92, 83, 62, 58, 33, 16, 137, 110, 165, 160, 163, 144, 140, 111, 129, 114,
          106, 105, 95, 71, 63, 35, 12, 140, 111, 169, 168, 166, 151, 156, 116, 136, 119, 116, 115, 104, 79, 69, 38,
          9, 145, 108, 172, 168, 171, 156, 161, 119, 143, 127, 120, 124, 113, 85, 75, 41, 7, 145, 108, 170, 169, 170,
          165, 167, 150, 156, 139, 125, 126, 116, 89, 81, 44, 6, 155, 104, 168, 166, 168, 163, 168, 150, 165, 147,
          132, 146, 125, 94, 87, 48, 5, 139, 102, 156, 156, 154, 156, 156, 147, 156, 153, 133, 154, 137, 110, 94, 56,
          4, 134, 99, 136, 136, 135, 136, 136, 135, 136, 130, 133, 136, 134, 108, 101, 63, 3, 110, 106, 110, 110, 110,
          110, 110, 110, 110, 110, 110, 110, 110, 108, 92, 75, 5, 88, 88, 88, 88, 88, 88, 88, 88, 88, 88, 88, 88, 88,
          88, 87, 85, 10, 67, 67, 67, 67, 67, 67, 67, 67, 67, 67, 67, 67, 67, 67, 67, 67, 49, 65, 65, 65, 65, 65, 65,
          65, 65, 65, 65, 65, 65, 65, 65, 65, 65, 65, 65, 65, 65, 65, 65, 65, 65, 65, 65, 65, 65, 65, 65, 65, 65, 65,
          65, 65, 65, 65, 65, 65, 65, 65, 65, 65, 65, 65, 65, 65, 65, 65, 65, 65, 65, 65, 65, 65, 65, 65, 65, 65, 65,
          65, 65, 65, 65, 65, 65, 65, 65);

/* Of the magnitude, 1 .. 16 or more, at the last place. */
TSR_TABLE(uint8_t, tsr_rate_of_highest, TSR_ENERGY_CLASSES * TSR_RATE_MAGNITUDES,
          1, 75, 119, 147, 159, 163, 171, 171, 173, 172, 174, 171, 174, 175, 175, 164, 2, 67, 114, 145, 168, 170, 174,
          174, 175, 175, 175, 174, 175, 175, 175, 172, 2, 61, 107, 143, 164, 172, 172, 175, 175, 176, 176, 176, 176,
          176, 176, 176, 2, 61, 107, 140, 163, 171, 173, 174, 176, 176, 176, 176, 176, 176, 176, 175, 3, 57, 101, 133,
          157, 166, 170, 175, 175, 175, 175, 176, 176, 176, 176, 174, 3, 53, 94, 127, 149, 161, 168, 171, 173, 174,
          175, 175, 175, 175, 176, 175, 4, 47, 85, 114, 137, 150, 159, 167, 171, 172, 173, 174, 173, 174, 175, 167, 6,
          43, 77, 106, 130, 146, 160, 170, 169, 172, 173, 175, 175, 174, 175, 173, 8, 38, 67, 93, 115, 133, 148, 154,
          163, 168, 171, 171, 172, 173, 175, 166, 11, 33, 57, 80, 100, 116, 132, 143, 150, 156, 165, 162, 168, 169,
          172, 161, 15, 32, 50, 68, 85, 101, 115, 126, 135, 144, 152, 154, 160, 167, 170, 151, 20, 33, 46, 58, 71, 84,
          96, 107, 118, 126, 135, 141, 150, 156, 162, 130, 26, 35, 44, 51, 64, 72, 81, 91, 99, 109, 116, 124, 133,
          138, 143, 114, 31, 39, 46, 52, 59, 66, 72, 78, 87, 92, 99, 106, 113, 119, 123, 95, 37, 44, 49, 54, 59, 63,
          68, 65, 80, 84, 89, 94, 99, 101, 107, 75, 42, 48, 53, 55, 59, 63, 67, 70, 74, 79, 82, 86, 93, 93, 96, 54,
          50, 55, 57, 61, 65, 66, 68, 71, 73, 78, 78, 80, 85, 86, 88, 36, 49, 61, 61, 67, 66, 70, 70, 75, 73, 75, 78,
          78, 82, 86, 85, 30, 60, 64, 72, 74, 73, 79, 74, 79, 81, 83, 84, 79, 86, 87, 90, 19, 57, 71, 69, 74, 81, 81,
          79, 76, 87, 83, 89, 87, 86, 84, 93, 17, 69, 75, 86, 82, 88, 90, 92, 98, 109, 109, 106, 110, 93, 91, 110, 8,
          60, 64, 90, 114, 114, 72, 102, 88, 106, 89, 137, 93, 126, 103, 93, 9, 60, 76, 95, 76, 94, 79, 90, 86, 99,
          95, 109, 99, 99, 122, 99, 10, 74, 68, 126, 68, 123, 82, 84, 117, 129, 121, 136, 129, 71, 146, 129, 8, 54,
          106, 149, 106, 149, 118, 118, 149, 149, 55, 149, 149, 106, 149, 149, 7, 54, 91, 91, 91, 91, 91, 91, 91, 91,
          54, 91, 91, 91, 91, 91, 14, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64,
          64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64,
          64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64,
          64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64);

/* Of the magnitude, 0 .. 15 or more, at the places below it. */
TSR_TABLE(uint8_t, tsr_rate_of_others, TSR_ENERGY_CLASSES * TSR_RATE_MAGNITUDES,
          2, 60, 124, 160, 171, 175, 175, 175, 176, 176, 176, 176, 176, 176, 176, 176, 3, 49, 109, 148, 169, 173, 174,
          175, 176, 176, 175, 176, 176, 176, 176, 176, 4, 45, 103, 145, 164, 172, 175, 175, 175, 176, 175, 176, 176,
          176, 176, 176, 5, 40, 95, 136, 160, 170, 173, 174, 176, 175, 176, 176, 176, 176, 176, 175, 7, 36, 86, 127,
          153, 167, 172, 174, 175, 175, 176, 175, 176, 176, 175, 176, 8, 32, 79, 119, 145, 163, 170, 174, 174, 175,
          175, 175, 176, 175, 176, 176, 10, 29, 70, 106, 136, 157, 167, 171, 174, 174, 175, 175, 175, 176, 176, 175,
          13, 26, 60, 94, 123, 145, 159, 167, 171, 173, 174, 175, 175, 175, 175, 175, 16, 25, 52, 81, 107, 129, 146,
          159, 166, 170, 173, 174, 175, 175, 175, 175, 20, 24, 45, 69, 92, 112, 129, 145, 155, 163, 169, 171, 172,
          174, 174, 172, 26, 25, 40, 58, 76, 94, 110, 126, 138, 148, 156, 162, 166, 169, 171, 167, 31, 28, 38, 50, 64,
          78, 92, 105, 117, 128, 137, 145, 153, 157, 163, 151, 38, 33, 39, 47, 56, 66, 77, 87, 97, 107, 116, 124, 131,
          138, 146, 125, 45, 39, 43, 47, 53, 60, 67, 74, 81, 88, 96, 103, 110, 116, 123, 97, 53, 46, 48, 51, 54, 58,
          62, 66, 72, 77, 81, 87, 92, 97, 103, 70, 60, 53, 55, 56, 58, 60, 63, 65, 68, 71, 74, 78, 82, 85, 88, 49, 68,
          61, 61, 62, 64, 65, 66, 68, 69, 71, 73, 75, 77, 80, 81, 34, 76, 68, 69, 69, 70, 71, 71, 73, 73, 74, 76, 77,
          78, 79, 81, 23, 84, 76, 77, 77, 77, 77, 78, 78, 79, 80, 80, 81, 82, 82, 83, 15, 90, 84, 84, 84, 84, 85, 85,
          85, 86, 85, 86, 87, 87, 87, 88, 10, 100, 92, 93, 93, 93, 93, 93, 93, 94, 94, 93, 94, 94, 94, 94, 7, 106,
          103, 102, 101, 102, 101, 103, 101, 102, 100, 102, 102, 102, 101, 103, 5, 113, 113, 109, 110, 112, 109, 111,
          111, 112, 112, 112, 111, 109, 110, 112, 3, 118, 119, 122, 119, 117, 118, 118, 122, 123, 122, 120, 116, 117,
          121, 116, 2, 119, 125, 125, 126, 126, 124, 125, 123, 125, 124, 122, 116, 122, 130, 122, 2, 132, 120, 137,
          131, 129, 127, 124, 135, 129, 146, 147, 122, 129, 129, 141, 1, 132, 158, 143, 142, 141, 162, 140, 143, 164,
          119, 173, 140, 164, 130, 143, 1, 143, 168, 151, 151, 151, 168, 151, 151, 168, 130, 168, 151, 168, 141, 151,
          1, 112, 112, 112, 112, 112, 112, 112, 112, 112, 112, 112, 112, 112, 112, 112, 3, 64, 64, 64, 64, 64, 64, 64,
          64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64,
          64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64);

/* What a squared error at each place of the scan weighs in the samples, in 1/64: with and without lapping. */
TSR_TABLE(int32_t, tsr_error_weight, 2 * TSR_BLOCK_SAMPLES,
          64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64,
          35, 36, 36, 60, 37, 60, 59, 61, 61, 59, 60, 101, 60, 100, 100, 99);
/* clang-format on */

/* Of a magnitude from table[0] on, which has TSR_RATE_MAGNITUDES of them; with its sign. */
TSR_HD uint32_t tsr_rate_of_magnitude(const uint8_t *table, uint32_t magnitude, bool has_sign)
{
    const uint32_t most = TSR_RATE_MAGNITUDES - 1;
    const uint32_t more = magnitude > most ? 2 * TSR_RATE_BIT * (uint32_t)(tsr_bit_width(magnitude) - 4) : 0;
    return table[magnitude < most ? magnitude : most] + more + (has_sign ? TSR_RATE_BIT : 0);
}

/* Of a block of so many places. seen: its magnitudes; energy: from its neighbours, used up. */
TSR_HD uint32_t tsr_rate_of_block(const struct tsr_magnitudes *seen, int places, uint16_t energy[TSR_BLOCK_SAMPLES])
{
    uint32_t rate = TSR_AT(tsr_rate_of_places)[(TSR_BLOCK_SAMPLES + 1) * tsr_block_energy_class(energy) + places];
    if (places == 0) return rate;
    tsr_add_energies(seen, energy);
    for (int p = places - 1; p >= 0; p--) {
        const int row = TSR_RATE_MAGNITUDES * tsr_energy_class(energy[p]);
        const bool is_highest = p == places - 1;
        rate += is_highest ? tsr_rate_of_magnitude(TSR_AT(tsr_rate_of_highest) + row, seen->at[p] - 1u, true)
                           : tsr_rate_of_magnitude(TSR_AT(tsr_rate_of_others) + row, seen->at[p], seen->at[p] > 0);
    }
    return rate;
}

/* What a magnitude costs at a place, by its energy class: lambda times rates. As a place below the last one; what one
 * less saves of that (negated); as the last place, beside that; what one less saves there (negated). */
struct tsr_magnitude_rates {
    int32_t here, less, last, last_less;
};

enum { TSR_RATE_NEVER = 1023 }; /* more than all rates that a block can save */

/* magnitude: 0 .. 15, or more as 15. A zero is never the last place, and a last place of 1 never becomes a zero. */
TSR_HD_INLINE struct tsr_magnitude_rates tsr_rates_of_magnitude(int energy_class, int magnitude, int32_t lambda)
{
    const int row_at = TSR_RATE_MAGNITUDES * energy_class;
    const uint8_t *others = TSR_AT(tsr_rate_of_others) + row_at, *highest = TSR_AT(tsr_rate_of_highest) + row_at;
    const int sign = magnitude > 0 ? TSR_RATE_BIT : 0, sign_less = magnitude > 1 ? TSR_RATE_BIT : 0;
    const int here = others[magnitude] + sign;
    struct tsr_magnitude_rates rates = {here, 0, TSR_RATE_NEVER, 0};
    if (magnitude > 0) {
        rates.less = others[magnitude - 1] + sign_less - here;
        rates.last = highest[magnitude - 1] + sign - here;
    }
    if (magnitude > 1) rates.last_less = highest[magnitude - 2] - highest[magnitude - 1];
    rates.here *= lambda;
    rates.less *= lambda;
    rates.last *= lambda;
    rates.last_less *= lambda;
    return rates;
}

/* Lambda times the rate of the number of places, 0 .. 16. */
TSR_HD_INLINE int32_t tsr_places_rate(int block_class, int places, int32_t lambda)
{
    return lambda * TSR_AT(tsr_rate_of_places)[17 * block_class + places];
}

/* The weight of an error at a place. */
TSR_HD_INLINE int32_t tsr_place_weight(int place, bool lapped)
{
    return TSR_AT(tsr_error_weight)[lapped ? TSR_BLOCK_SAMPLES + place : place];
}

/* What a place can become: the nearest magnitude; its weighted squared error less that of a zero (whose error is capped
 * at 4 steps); what one less adds to the error. */
struct tsr_place_errors {
    int32_t nearest, error, worse;
};

TSR_HD_INLINE struct tsr_place_errors tsr_errors_of_place(int32_t units, int32_t weight)
{
    const int32_t magnitude = tsr_abs(units), up = magnitude + TSR_UNIT / 2;
    const int32_t fraction = up & (TSR_UNIT - 1), error = fraction - TSR_UNIT / 2;
    const int32_t capped = tsr_min(magnitude, 4 * TSR_UNIT);
    struct tsr_place_errors errors;
    errors.nearest = up >> TSR_UNIT_BITS;
    errors.error = (error * error - capped * capped) * weight;
    errors.worse = fraction * (2 * TSR_UNIT * weight); /* (error + UNIT)^2 - error^2 */
    return errors;
}

/* The choice of a block's coefficients, place by place from 1 on. Sums are those of a block's costs less the errors of
 * zeros at all places, so that the places above need not be known. */
struct tsr_block_choice {
    int32_t below, least;           /* the cost of the places so far; of the best last place so far */
    int32_t last;                   /* that place; 0: none but the DC */
    uint32_t less_at, last_less_at; /* bit p: one less pays at place p, below the last one; as the last one */
};

/* none: the rate of a block with no place but the DC. */
TSR_HD_INLINE struct tsr_block_choice tsr_begin_choice(int32_t none)
{
    struct tsr_block_choice choice = {0, none, 0, 0, 0};
    return choice;
}

/* places: the rate of place + 1 places. Contexts are those of plain rounding throughout, so what each place costs
 * depends on no other choice: a coefficient is the nearest or one less, and the last place the one with the least sum.
 * (With contexts by the coefficients chosen above, and only some last places tried, -0.1 % at half the speed.) All sums
 * stay below 2^31: an error is at most 384 units where it is chosen, so 15 of them weighted by at most 101, and of
 * rates of at most 271, stay below 360 million; errors of zeros are capped, so 15 of them stay below 1.6 * 10^9. */
TSR_HD_INLINE void tsr_choose_place(struct tsr_block_choice *choice, int place, struct tsr_place_errors errors,
                                    struct tsr_magnitude_rates rates, int32_t places)
{
    const int32_t here = choice->below + errors.error + rates.here;
    const int32_t less = tsr_min(errors.worse + rates.less, 0), last_less = tsr_min(errors.worse + rates.last_less, 0);
    const int32_t total = here + rates.last + last_less + places;
    choice->last = total < choice->least ? place : choice->last;
    choice->least = tsr_min(total, choice->least);
    choice->below = here + less;
    choice->less_at |= (uint32_t)(less < 0) << place;
    choice->last_less_at |= (uint32_t)(last_less < 0) << place;
}

/* Places at which the coefficient is one less than the nearest, after all places have been offered. */
TSR_HD_INLINE uint32_t tsr_places_of_less(const struct tsr_block_choice *choice)
{
    const uint32_t at = 1u << choice->last;
    return (choice->less_at & (at - 1u)) | (choice->last_less_at & at);
}

/* A coefficient: of its units, the last place chosen, and tsr_places_of_less. */
TSR_HD_INLINE int32_t tsr_chosen_coefficient(int32_t units, int place, int last, uint32_t less_at)
{
    const int32_t nearest = (tsr_abs(units) + TSR_UNIT / 2) >> TSR_UNIT_BITS;
    const int32_t coefficient = nearest - (int32_t)(less_at >> place & 1u);
    return place > last ? 0 : units < 0 ? -coefficient : coefficient;
}

/* The choice by the bits of CAVLC itself, in context nC: each coefficient from the highest place down is lowered by one
 * where that pays, then all but the DC where they are few. */
TSR_HD void tsr_optimise_cavlc(int32_t block[TSR_BLOCK_SAMPLES], int context, bool lapped, int32_t lambda)
{
    const int32_t *weight = TSR_AT(tsr_error_weight) + (lapped ? TSR_BLOCK_SAMPLES : 0);
    const int32_t bit = lambda * TSR_RATE_BIT * 2 / 3; /* a coefficient also changes its neighbours' nC */
    int32_t coefficient[TSR_BLOCK_SAMPLES];
    int32_t zero_all = 0; /* what zeros instead of all coefficients would add to the errors */
    int largest = 0, count = 0;
    coefficient[0] = block[0];
    for (int p = 1; p < TSR_BLOCK_SAMPLES; p++) {
        const int32_t nearest = (tsr_abs(block[p]) + TSR_UNIT / 2) >> TSR_UNIT_BITS;
        coefficient[p] = block[p] < 0 ? -nearest : nearest;
        largest = tsr_max(largest, nearest);
        count += nearest != 0;
    }
    if (count > 0) {
        int32_t bits = (int32_t)tsr_cavlc_measure(coefficient, TSR_BLOCK_SAMPLES, context);
        for (int p = TSR_BLOCK_SAMPLES - 1; p > 0; p--) {
            if (coefficient[p] == 0) continue;
            const int32_t step = coefficient[p] < 0 ? -1 : 1, error = block[p] - coefficient[p] * TSR_UNIT;
            const int32_t more = error + step * TSR_UNIT;
            const int32_t worse = (more * more - error * error) * weight[p];
            if (worse >= 9 * bit) continue;
            coefficient[p] -= step;
            const int32_t fewer = (int32_t)tsr_cavlc_measure(coefficient, TSR_BLOCK_SAMPLES, context);
            if (worse < (bits - fewer) * bit)
                bits = fewer;
            else
                coefficient[p] += step;
        }
        if (largest == 1) {
            int32_t none[TSR_BLOCK_SAMPLES];
            for (int p = 0; p < TSR_BLOCK_SAMPLES; p++) none[p] = 0;
            none[0] = block[0];
            for (int p = 1; p < TSR_BLOCK_SAMPLES; p++) {
                if (coefficient[p] == 0) continue;
                const int32_t error = tsr_abs(block[p]) - TSR_UNIT;
                zero_all += (block[p] * block[p] - error * error) * weight[p];
            }
            if (zero_all < (bits - (int32_t)tsr_cavlc_measure(none, TSR_BLOCK_SAMPLES, context)) * bit)
                for (int p = 1; p < TSR_BLOCK_SAMPLES; p++) coefficient[p] = 0;
        }
    }
    for (int p = 1; p < TSR_BLOCK_SAMPLES; p++) block[p] = coefficient[p];
}

/* About what a coefficient costs, rate and error together, in 1/16 bit: compares a tile lapped and not lapped. */
TSR_HD uint32_t tsr_rough_cost(uint32_t units)
{
    const uint32_t t = units >> 4; /* 1/16 of a step */
    return t < 11 ? t * t >> 1 : (tsr_log2_cost(t) >> 7) - 51;
}

#endif
