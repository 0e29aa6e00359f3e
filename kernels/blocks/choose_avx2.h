/* The choice of a row's coefficients for AVX2: eight blocks at once, a lane each, in the order of their highest places.
 * It takes 0.43 of the instructions of choose_block compiled for AVX2. tsr_choose_place and the steps around it stand
 * here as vectors; test_lapped_cpu holds both forms equal. Part of lapped_avx2.c. */
#ifndef TSR_KERNELS_BLOCKS_CHOOSE_AVX2_H
#define TSR_KERNELS_BLOCKS_CHOOSE_AVX2_H

#include "eight_avx2.h"
#include "entropy/rate_distortion.h"
#include "kernels/slices/energies_avx2.h"

enum { CHOICE_BLOCKS = 8, CHOICE_COLUMNS = 1024 /* of a row, sorted at once */ };

/* Eight blocks: units and rates of the number of places by place; which of the rates of magnitudes, by block. */
struct choice_lanes {
    __m256i units[TSR_BLOCK_SAMPLES], places[TSR_BLOCK_SAMPLES], top;
    uint16_t rate[CHOICE_BLOCKS][TSR_BLOCK_SAMPLES];
    int32_t none[CHOICE_BLOCKS];
};

static inline __m256i nearest_of(__m256i units)
{
    return _mm256_srli_epi32(_mm256_add_epi32(_mm256_abs_epi32(units), _mm256_set1_epi32(TSR_UNIT / 2)), TSR_UNIT_BITS);
}

/* What block k is chosen by. */
static inline void load_lane(struct choice_lanes *lanes, int k, const int32_t *block, const struct tsr_magnitudes *seen,
                             const struct tsr_magnitudes *above, const struct choice_rates *rates)
{
    uint16_t energy[TSR_BLOCK_SAMPLES];
    tsr_energies_around(seen - 1, above, above - 1, above + 1, energy);
    const int32_t *places = rates->places[tsr_block_energy_class(energy)];
    tsr_add_energies(seen, energy);
    lanes->none[k] = places[block[0] != 0];
    for (int i = 0; i < 2; i++) {
        const __m256i units = _mm256_loadu_si256((const __m256i *)(block + 8 * i));
        _mm256_store_si256(&lanes->units[8 * i + k], units);
        _mm256_store_si256(&lanes->places[8 * i + k], _mm256_loadu_si256((const __m256i *)(places + 1 + 8 * i)));
    }
    const __m256i nearest = _mm256_permute4x64_epi64(
        _mm256_packs_epi32(nearest_of(lanes->units[k]), nearest_of(lanes->units[8 + k])), 0xd8);
    const __m256i capped = _mm256_min_epi16(nearest, _mm256_set1_epi16(TSR_RATE_MAGNITUDES - 1));
    const __m256i classes = tsr_energy_classes(_mm256_loadu_si256((const __m256i *)energy));
    _mm256_storeu_si256((__m256i *)lanes->rate[k], _mm256_add_epi16(_mm256_slli_epi16(classes, 4), capped));
}

/* Rates of a place: of its magnitudes here, less, last and last_less. */
static inline void load_rates(const struct choice_lanes *lanes, int p, const struct tsr_magnitude_rates *of,
                              __m256i out[4])
{
    for (int k = 0; k < 4; k++)
        out[k] =
            _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128((const __m128i *)(of + lanes->rate[k][p]))),
                                    _mm_loadu_si128((const __m128i *)(of + lanes->rate[k + 4][p])), 1);
    const __m256i a = _mm256_unpacklo_epi32(out[0], out[1]), b = _mm256_unpackhi_epi32(out[0], out[1]);
    const __m256i c = _mm256_unpacklo_epi32(out[2], out[3]), d = _mm256_unpackhi_epi32(out[2], out[3]);
    out[0] = _mm256_unpacklo_epi64(a, c);
    out[1] = _mm256_unpackhi_epi64(a, c);
    out[2] = _mm256_unpacklo_epi64(b, d);
    out[3] = _mm256_unpackhi_epi64(b, d);
}

struct choice_vectors {
    __m256i below, least, last, less_at, last_less_at;
};

/* tsr_errors_of_place and tsr_choose_place. */
static inline void choose_places(struct choice_vectors *choice, const struct choice_lanes *lanes, int p, int32_t weight,
                                 const struct tsr_magnitude_rates *of)
{
    const __m256i zero = _mm256_setzero_si256(), place = _mm256_set1_epi32(p);
    const __m256i magnitude = _mm256_abs_epi32(lanes->units[p]);
    const __m256i fraction =
        _mm256_and_si256(_mm256_add_epi32(magnitude, _mm256_set1_epi32(TSR_UNIT / 2)), _mm256_set1_epi32(TSR_UNIT - 1));
    const __m256i distance = _mm256_abs_epi32(_mm256_sub_epi32(fraction, _mm256_set1_epi32(TSR_UNIT / 2)));
    const __m256i capped = _mm256_min_epi32(magnitude, _mm256_set1_epi32(4 * TSR_UNIT));
    const __m256i error =
        _mm256_mullo_epi32(_mm256_sub_epi32(_mm256_madd_epi16(distance, distance), _mm256_madd_epi16(capped, capped)),
                           _mm256_set1_epi32(weight));
    const __m256i worse = _mm256_mullo_epi32(fraction, _mm256_set1_epi32(2 * TSR_UNIT * weight));
    __m256i rates[4];
    load_rates(lanes, p, of, rates);
    const __m256i here = _mm256_add_epi32(_mm256_add_epi32(choice->below, error), rates[0]);
    const __m256i less = _mm256_min_epi32(_mm256_add_epi32(worse, rates[1]), zero);
    const __m256i last_less = _mm256_min_epi32(_mm256_add_epi32(worse, rates[3]), zero);
    const __m256i total =
        _mm256_add_epi32(_mm256_add_epi32(here, rates[2]), _mm256_add_epi32(last_less, lanes->places[p]));
    /* Not above the highest place that could be coded. */
    const __m256i better =
        _mm256_andnot_si256(_mm256_cmpgt_epi32(place, lanes->top), _mm256_cmpgt_epi32(choice->least, total));
    choice->last = _mm256_blendv_epi8(choice->last, place, better);
    choice->least = _mm256_blendv_epi8(choice->least, total, better);
    choice->below = _mm256_add_epi32(here, less);
    choice->less_at = _mm256_or_si256(choice->less_at, _mm256_slli_epi32(_mm256_srli_epi32(less, 31), p));
    choice->last_less_at =
        _mm256_or_si256(choice->last_less_at, _mm256_slli_epi32(_mm256_srli_epi32(last_less, 31), p));
}

/* tsr_places_of_less and tsr_chosen_coefficient; then blocks again. */
static inline void store_lanes(struct choice_lanes *lanes, const struct choice_vectors *choice, int32_t *row,
                               const uint16_t *column)
{
    const __m256i one = _mm256_set1_epi32(1), at = _mm256_sllv_epi32(one, choice->last);
    const __m256i less_at = _mm256_or_si256(_mm256_and_si256(choice->less_at, _mm256_sub_epi32(at, one)),
                                            _mm256_and_si256(choice->last_less_at, at));
    for (int p = 1; p < TSR_BLOCK_SAMPLES; p++) {
        const __m256i less = _mm256_and_si256(_mm256_srli_epi32(less_at, p), one);
        const __m256i coefficient =
            _mm256_sign_epi32(_mm256_sub_epi32(nearest_of(lanes->units[p]), less), lanes->units[p]);
        lanes->units[p] = _mm256_andnot_si256(_mm256_cmpgt_epi32(_mm256_set1_epi32(p), choice->last), coefficient);
    }
    for (int i = 0; i < 2; i++) {
        transpose_eight(lanes->units + 8 * i);
        for (int k = 0; k < CHOICE_BLOCKS; k++)
            _mm256_storeu_si256((__m256i *)(row + TSR_BLOCK_SAMPLES * column[k] + 8 * i), lanes->units[8 * i + k]);
    }
}

/* Blocks in these columns; top: their highest places, the last of them the highest. */
static void choose_lanes(int32_t *row, const uint16_t *column, const uint8_t *top, const struct tsr_magnitudes *here,
                         const struct tsr_magnitudes *above, const int32_t *weight, const struct choice_rates *rates)
{
    struct choice_lanes lanes;
    for (int k = 0; k < CHOICE_BLOCKS; k++)
        load_lane(&lanes, k, row + TSR_BLOCK_SAMPLES * column[k], here + column[k], above + column[k], rates);
    for (int i = 0; i < 2; i++) {
        transpose_eight(lanes.units + 8 * i);
        transpose_eight(lanes.places + 8 * i);
    }
    lanes.top = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)top));
    const __m256i zero = _mm256_setzero_si256();
    struct choice_vectors choice = {zero, _mm256_loadu_si256((const __m256i *)lanes.none), zero, zero, zero};
    for (int p = 1; p <= top[CHOICE_BLOCKS - 1]; p++) choose_places(&choice, &lanes, p, weight[p], &rates->of[0][0]);
    store_lanes(&lanes, &choice, row, column);
}

/* The highest place of a block that could be coded; 0: none but the DC. */
static inline int highest_place(const int32_t *block)
{
    const __m256i limit = _mm256_set1_epi32(TSR_UNIT / 2 - 1);
    const __m256i low = _mm256_cmpgt_epi32(_mm256_abs_epi32(_mm256_loadu_si256((const __m256i *)block)), limit);
    const __m256i high = _mm256_cmpgt_epi32(_mm256_abs_epi32(_mm256_loadu_si256((const __m256i *)(block + 8))), limit);
    const __m256i both = _mm256_permute4x64_epi64(_mm256_packs_epi32(low, high), 0xd8);
    const __m128i bytes = _mm_packs_epi16(_mm256_castsi256_si128(both), _mm256_extracti128_si256(both, 1));
    const uint32_t places = (uint32_t)_mm_movemask_epi8(bytes);
    return tsr_floor_log2(places | 1u);
}

/* At most CHOICE_COLUMNS blocks. */
static void choose_part(int32_t *row, size_t count, const struct tsr_magnitudes *here,
                        const struct tsr_magnitudes *above, const int32_t *weight, const struct choice_rates *rates)
{
    uint8_t top[CHOICE_COLUMNS], sorted_top[CHOICE_COLUMNS + CHOICE_BLOCKS];
    uint16_t sorted[CHOICE_COLUMNS + CHOICE_BLOCKS];
    uint32_t next[TSR_BLOCK_SAMPLES + 1] = {0}, used = 0;
    for (size_t c = 0; c < count; c++) {
        int32_t *block = row + TSR_BLOCK_SAMPLES * c;
        top[c] = (uint8_t)highest_place(block);
        next[top[c] + 1]++;
        if (top[c] == 0) memset(block + 1, 0, (TSR_BLOCK_SAMPLES - 1) * sizeof *block);
    }
    next[1] = 0; /* blocks without a place are done */
    for (int t = 1; t < TSR_BLOCK_SAMPLES; t++) next[t + 1] += next[t];
    for (size_t c = 0; c < count; c++) {
        if (top[c] == 0) continue;
        const uint32_t at = next[top[c]]++;
        sorted[at] = (uint16_t)c;
        sorted_top[at] = top[c];
        used++;
    }
    for (uint32_t i = used; i % CHOICE_BLOCKS != 0; i++) { /* the last one fills the lanes */
        sorted[i] = sorted[used - 1];
        sorted_top[i] = sorted_top[used - 1];
    }
    for (uint32_t i = 0; i < used; i += CHOICE_BLOCKS)
        choose_lanes(row, sorted + i, sorted_top + i, here, above, weight, rates);
}

static void choose_row(int32_t *row, size_t columns, const struct tsr_magnitudes *here,
                       const struct tsr_magnitudes *above, bool lapped, const struct choice_rates *rates)
{
    const int32_t *weight = tsr_error_weight_host + (lapped ? TSR_BLOCK_SAMPLES : 0);
    for (size_t c = 0; c < columns; c += CHOICE_COLUMNS) {
        const size_t count = columns - c < CHOICE_COLUMNS ? columns - c : CHOICE_COLUMNS;
        choose_part(row + TSR_BLOCK_SAMPLES * c, count, here + c, above + c, weight, rates);
    }
}

#endif
