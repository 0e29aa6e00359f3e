/* The choice of coefficients for AVX2, a row of blocks at a time: eight blocks at once, a lane each, in the order of
 * their highest places. Eight blocks beside each
 * other that have nothing to choose are done together: on medical windows these are seven of ten. tsr_choose_place and
 * the steps around it stand here as vectors; test_lapped_cpu holds both forms equal. Part of lapped_avx2.c.
 * Gain: 1.6 times all of that file's stage (tests/bench/decisions/032). */
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
    __m256i energy = tsr_vector_energies(seen - 1, above);
    const int32_t *places = rates->places[tsr_vector_class(energy)];
    energy = tsr_add_vector_energies(energy, _mm256_loadu_si256((const __m256i *)seen));
    lanes->none[k] = places[block[0] != 0];
    for (int i = 0; i < 2; i++) {
        const __m256i units = _mm256_loadu_si256((const __m256i *)(block + 8 * i));
        _mm256_store_si256(&lanes->units[8 * i + k], units);
        _mm256_store_si256(&lanes->places[8 * i + k], _mm256_loadu_si256((const __m256i *)(places + 1 + 8 * i)));
    }
    const __m256i nearest = _mm256_permute4x64_epi64(
        _mm256_packs_epi32(nearest_of(lanes->units[k]), nearest_of(lanes->units[8 + k])), 0xd8);
    const __m256i capped = _mm256_min_epi16(nearest, _mm256_set1_epi16(TSR_RATE_MAGNITUDES - 1));
    const __m256i rate = _mm256_add_epi16(_mm256_slli_epi16(tsr_energy_classes(energy), 4), capped);
    _mm256_storeu_si256((__m256i *)lanes->rate[k], rate);
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

/* A row of blocks at work. */
struct choice_row {
    int32_t *blocks;
    size_t columns;
    struct tsr_magnitudes *here;
    const struct tsr_magnitudes *above;
    const int32_t *dc; /* differences from predictions */
    const int32_t *weight;
    const struct choice_rates *rates;
};

/* Blocks that have something to choose, at most CHOICE_COLUMNS: their columns and highest places. */
struct choice_list {
    uint32_t count, next[TSR_BLOCK_SAMPLES + 1]; /* how many have each place, one further on */
    uint16_t column[CHOICE_COLUMNS];
    uint8_t top[CHOICE_COLUMNS];
};

static void choose_listed(const struct choice_row *row, struct choice_list *list)
{
    uint8_t sorted_top[CHOICE_COLUMNS + CHOICE_BLOCKS];
    uint16_t sorted[CHOICE_COLUMNS + CHOICE_BLOCKS];
    for (int t = 1; t < TSR_BLOCK_SAMPLES; t++) list->next[t + 1] += list->next[t];
    for (uint32_t i = 0; i < list->count; i++) {
        const uint32_t at = list->next[list->top[i]]++;
        sorted[at] = list->column[i];
        sorted_top[at] = list->top[i];
    }
    for (uint32_t i = list->count; i % CHOICE_BLOCKS != 0; i++) { /* the last one fills the lanes */
        sorted[i] = sorted[list->count - 1];
        sorted_top[i] = sorted_top[list->count - 1];
    }
    for (uint32_t i = 0; i < list->count; i += CHOICE_BLOCKS)
        choose_lanes(row->blocks, sorted + i, sorted_top + i, row->here, row->above, row->weight, row->rates);
}

/* Whether none of eight blocks has a place but the DC that could be coded. */
static inline bool have_dcs_alone(const int32_t *blocks)
{
    __m256i low = _mm256_setzero_si256(), high = low;
    for (int k = 0; k < CHOICE_BLOCKS; k++) {
        const __m256i *block = (const __m256i *)(blocks + TSR_BLOCK_SAMPLES * k);
        low = _mm256_or_si256(low, _mm256_abs_epi32(_mm256_loadu_si256(block)));
        high = _mm256_or_si256(high, _mm256_abs_epi32(_mm256_loadu_si256(block + 1)));
    }
    const __m256i coded = _mm256_set1_epi32(~(TSR_UNIT / 2 - 1));
    return _mm256_testz_si256(_mm256_or_si256(_mm256_blend_epi32(low, _mm256_setzero_si256(), 1), high), coded);
}

static void take_dcs(const struct choice_row *row, size_t from)
{
    const __m256i difference = _mm256_loadu_si256((const __m256i *)(row->dc + from));
    int32_t seen[CHOICE_BLOCKS];
    _mm256_storeu_si256((__m256i *)seen,
                        _mm256_min_epi32(_mm256_abs_epi32(difference), _mm256_set1_epi32(TSR_MAGNITUDE_CAP)));
    for (size_t k = 0; k < CHOICE_BLOCKS; k++) {
        store_block(row->blocks + TSR_BLOCK_SAMPLES * (from + k), first_value(row->dc + from + k),
                    _mm256_setzero_si256());
        _mm256_storeu_si256((__m256i *)(row->here + from + k), first_value(seen + k));
    }
}

/* One block: its difference, what its neighbours see, and its highest place. */
static inline void take_block(const struct choice_row *row, size_t column, struct choice_list *list)
{
    int32_t *block = row->blocks + TSR_BLOCK_SAMPLES * column;
    const __m256i low = _mm256_loadu_si256((const __m256i *)block);
    const __m256i high = _mm256_loadu_si256((const __m256i *)(block + 8));
    const __m256i a = _mm256_abs_epi32(low), b = _mm256_abs_epi32(high);
    const __m256i limit = _mm256_set1_epi32(TSR_UNIT / 2 - 1), dead = _mm256_set1_epi32(TSR_ROUND_AC >> TSR_UNIT_BITS);
    /* 16 bits in the order of the places: packing takes four of a and four of b by turns. */
    const __m256i above =
        _mm256_permute4x64_epi64(_mm256_packs_epi32(_mm256_cmpgt_epi32(a, limit), _mm256_cmpgt_epi32(b, limit)), 0xd8);
    const uint32_t places =
        (uint32_t)_mm_movemask_epi8(_mm_packs_epi16(_mm256_castsi256_si128(above), _mm256_extracti128_si256(above, 1)));
    const int top = tsr_floor_log2(places | 1u);
    const __m256i dc = first_value(row->dc + column);
    const __m256i round_a = _mm256_srli_epi32(_mm256_add_epi32(a, dead), TSR_UNIT_BITS);
    const __m256i round_b = _mm256_srli_epi32(_mm256_add_epi32(b, dead), TSR_UNIT_BITS);
    const __m256i seen = _mm256_permute4x64_epi64(
        _mm256_packus_epi32(_mm256_blend_epi32(round_a, _mm256_abs_epi32(dc), 1), round_b), 0xd8);
    _mm256_storeu_si256((__m256i *)(row->here + column), _mm256_min_epu16(seen, _mm256_set1_epi16(TSR_MAGNITUDE_CAP)));
    if (top == 0) {
        store_block(block, dc, _mm256_setzero_si256());
        return;
    }
    _mm256_storeu_si256((__m256i *)block, _mm256_blend_epi32(low, dc, 1));
    list->column[list->count] = (uint16_t)column;
    list->top[list->count++] = (uint8_t)top;
    list->next[top + 1]++;
}

/* The choice reads what all blocks of the row look like before it: the blocks to the right of a part may not be seen
 * yet, since no energy needs them. */
static void choose_row(const struct choice_row *row)
{
    for (size_t first = 0; first < row->columns; first += CHOICE_COLUMNS) {
        const size_t end = row->columns - first < CHOICE_COLUMNS ? row->columns : first + CHOICE_COLUMNS;
        struct choice_row part = *row;
        struct choice_list list;
        list.count = 0;
        memset(list.next, 0, sizeof list.next);
        part.blocks += TSR_BLOCK_SAMPLES * first;
        part.here += first;
        part.above += first;
        part.dc += first;
        for (size_t c = 0; c < end - first;) {
            if (c + CHOICE_BLOCKS <= end - first && have_dcs_alone(part.blocks + TSR_BLOCK_SAMPLES * c)) {
                take_dcs(&part, c);
                c += CHOICE_BLOCKS;
                continue;
            }
            const size_t stop = end - first - c < CHOICE_BLOCKS ? end - first : c + CHOICE_BLOCKS;
            for (; c < stop; c++) take_block(&part, c, &list);
        }
        choose_listed(&part, &list);
    }
}

/* Rounds the DCs of a row of blocks: tsr_round_units with a sign, eight at once. now has room for eight more. */
static void round_dc_row(const int32_t *blocks, size_t columns, int32_t *now)
{
    const __m256i half = _mm256_set1_epi32(TSR_ROUND_DC >> TSR_UNIT_BITS);
    for (size_t c = 0; c < columns; c++) now[c] = blocks[c * TSR_BLOCK_SAMPLES];
    for (size_t c = 0; c < columns; c += 8) {
        const __m256i units = _mm256_loadu_si256((const __m256i *)(now + c));
        const __m256i magnitude = _mm256_srli_epi32(_mm256_add_epi32(_mm256_abs_epi32(units), half), TSR_UNIT_BITS);
        _mm256_storeu_si256((__m256i *)(now + c), _mm256_sign_epi32(magnitude, units));
    }
}

/* What DCs differ from their predictions by, eight at once. Zeros before both rows, and above the first one, give the
 * first block and the first row the predictions of tsr_predict_dc. */
static void difference_dc_row(const int32_t *now, const int32_t *above, size_t columns, int32_t *difference)
{
    for (size_t c = 0; c < columns; c += 8) {
        const __m256i w = _mm256_loadu_si256((const __m256i *)(now + c - 1));
        const __m256i n = _mm256_loadu_si256((const __m256i *)(above + c));
        const __m256i nw = _mm256_loadu_si256((const __m256i *)(above + c - 1));
        const __m256i sum = _mm256_sub_epi32(_mm256_add_epi32(w, n), nw);
        const __m256i median =
            _mm256_max_epi32(_mm256_min_epi32(w, n), _mm256_min_epi32(_mm256_max_epi32(w, n), sum)); /* of the edge */
        const __m256i dc = _mm256_loadu_si256((const __m256i *)(now + c));
        _mm256_storeu_si256((__m256i *)(difference + c), _mm256_sub_epi32(dc, median));
    }
}

/* scratch: zeros. */
static void choose_by_energies(int32_t *units, struct tsr_block_grid grid, bool lapped, int32_t lambda, void *scratch)
{
    struct choice_rates rates;
    const size_t columns = (size_t)grid.columns;
    struct tsr_magnitudes *above = (struct tsr_magnitudes *)scratch + 1, *here = above + columns + 2;
    int32_t *dc_above = (int32_t *)(here + columns + 1) + 1, *dc = dc_above + columns + DC_ROW_MORE;
    int32_t *const difference = dc + columns + DC_ROW_MORE;
    fill_rates(&rates, lambda);
    struct choice_row row = {units, columns, here, above, difference, tsr_error_weight_host, &rates};
    if (lapped) row.weight += TSR_BLOCK_SAMPLES;
    for (int32_t r = 0; r < grid.rows; r++, row.blocks += columns * TSR_BLOCK_SAMPLES) {
        round_dc_row(row.blocks, columns, dc);
        difference_dc_row(dc, dc_above, columns, difference);
        row.here = here;
        row.above = above;
        choose_row(&row);
        struct tsr_magnitudes *const swap = above;
        int32_t *const swap_dc = dc_above;
        above = here;
        here = swap;
        dc_above = dc;
        dc = swap_dc;
    }
}

#endif
