/* Entries of pairs for AVX2: all pairs of a block at once. Pairs with raw low bits or large digits go by tsr_pair_at.
 * test_coefficients_cpu holds it equal to tsr_pair_entries. Part of coefficients_form.h.
 * Gain: 1.25 times all of the stage (tests/bench/decisions/032). */
#include "entropy/coefficient_pairs.h"
#include "entry_block_avx2.h"

/* What the magnitude at a place says of the place below it. */
static const uint16_t weight_below[TSR_BLOCK_SAMPLES] = {0, 3, 0, 11, 2, 0, 14, 3, 3, 2, 9, 5, 4, 11, 7, 14};

/* Values of the place below each place. */
static inline __m256i one_place_up(__m256i v)
{
    return _mm256_alignr_epi8(v, _mm256_permute2x128_si256(v, v, 0x08), 14);
}

/* Signs of pairs, the place of each and the one below: their number, and they themselves two bits higher. */
static inline __m256i pair_signs(__m256i value)
{
    const __m256i zero = _mm256_setzero_si256(), one = _mm256_set1_epi16(1);
    const __m256i signs_of = _mm256_add_epi16(_mm256_cmpeq_epi16(value, zero), one); /* 1: not 0 */
    const __m256i second_signs = one_place_up(signs_of), negative = _mm256_srli_epi16(value, 15);
    const __m256i first = _mm256_add_epi16(negative, _mm256_and_si256(negative, _mm256_sub_epi16(zero, second_signs)));
    const __m256i signs = _mm256_or_si256(one_place_up(negative), first);
    return _mm256_or_si256(_mm256_add_epi16(signs_of, second_signs), _mm256_slli_epi16(signs, 2));
}

/* entry: those of all pairs of a block, from its highest place down. Returns a bit for each place whose entry is not
 * this one: two bits a place, both alike. energy: with what the block's magnitudes say. */
static inline uint32_t simple_pairs(const struct entry_block *b, __m256i energy, int places, int magnitude_shift,
                                    __m256i *entry)
{
    const __m256i below = _mm256_loadu_si256((const __m256i *)weight_below);
    const __m256i second_energy = _mm256_sub_epi16(one_place_up(energy), _mm256_mullo_epi16(b->seen, below));
    const __m256i expected = _mm256_add_epi16(_mm256_and_si256(energy, second_energy),
                                              _mm256_srli_epi16(_mm256_xor_si256(energy, second_energy), 1));
    /* The pair of places 1 and 0 is none of the highest. */
    const __m256i place = _mm256_setr_epi16(0, -1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    const __m256i highest = _mm256_cmpeq_epi16(place, _mm256_set1_epi16((short)(places - 1)));
    const __m256i magnitude = _mm256_abs_epi16(b->value); /* at most 32767: packs saturates and abs keeps -32768 */
    const __m256i first = _mm256_add_epi16(magnitude, highest), second = one_place_up(magnitude);
    const __m256i others = _mm256_insert_epi16(_mm256_set1_epi16(TSR_PAIR_OTHERS * TSR_ENERGY_CLASSES),
                                               TSR_PAIR_DC * TSR_ENERGY_CLASSES, 1);
    const __m256i group = _mm256_blendv_epi8(others, _mm256_set1_epi16(TSR_PAIR_HIGHEST * TSR_ENERGY_CLASSES), highest);
    const __m256i cell = _mm256_add_epi16(group, tsr_energy_classes(expected));
    const __m256i symbol = _mm256_add_epi16(_mm256_mullo_epi16(first, _mm256_set1_epi16(TSR_PAIR_DIGITS)), second);
    const __m256i low = _mm256_or_si256(_mm256_slli_epi16(cell, 8), symbol), raw = pair_signs(b->value);
    /* Of every two places one begins a pair: those of 32 bits, then the highest first. */
    const __m128i odd = _mm_cvtsi32_si128(places & 1 ? 0 : 16);
    const __m256i pairs =
        _mm256_blend_epi16(_mm256_srl_epi32(low, odd), _mm256_slli_epi32(_mm256_srl_epi32(raw, odd), 16), 0xaa);
    *entry = _mm256_permutevar8x32_epi32(
        pairs, _mm256_sub_epi32(_mm256_set1_epi32((places - 1) >> 1), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7)));
    /* No low bits: energies of 4 << 5 and more have them, with a shift those of 2 << 5 and more; unsigned. */
    const __m256i least = _mm256_set1_epi16(magnitude_shift == 0 ? 128 : magnitude_shift == 1 ? 64 : 0);
    const __m256i digits = _mm256_max_epu16(first, second);
    const __m256i other = _mm256_or_si256(_mm256_cmpeq_epi16(_mm256_max_epu16(expected, least), expected),
                                          _mm256_cmpgt_epi16(digits, _mm256_set1_epi16(TSR_PAIR_DIGITS - 2)));
    const __m256i large = _mm256_cmpgt_epi16(_mm256_setzero_si256(), digits); /* 32768 */
    return (uint32_t)_mm256_movemask_epi8(_mm256_or_si256(other, large));
}

/* Pairs of which some have an entry of their own: other's. */
static __attribute__((noinline)) int other_pairs(const int32_t *coefficients, const struct tsr_magnitudes *seen,
                                                 __m256i energy, __m256i entry, uint32_t other, int places,
                                                 int magnitude_shift, uint32_t *out)
{
    uint16_t of_places[TSR_BLOCK_SAMPLES];
    uint32_t simple[TSR_BLOCK_SAMPLES / 2];
    int count = 1;
    _mm256_storeu_si256((__m256i *)of_places, energy);
    _mm256_storeu_si256((__m256i *)simple, entry);
    for (int p = places - 1, i = 0; p > 0; p -= 2, i++) {
        if (other >> (2 * p) & 1u)
            count = tsr_pair_at(coefficients, seen, of_places, p, places, magnitude_shift, out, count);
        else
            out[count++] = simple[i];
    }
    return count;
}

/* tsr_pair_entries; entries beyond those in use are written, too. */
static inline int pair_entries(const int32_t coefficients[TSR_BLOCK_SAMPLES], const struct entry_block *b,
                               const struct tsr_magnitudes *seen, __m256i energy, int cell, int magnitude_shift,
                               uint32_t *out)
{
    const int places = tsr_bit_width(b->at);
    int count = 1;
    out[0] = (uint32_t)cell << 8 | (uint32_t)places;
    if (places == 0) return 1;
    if (places > 1) {
        __m256i entry;
        energy = tsr_add_vector_energies(energy, b->seen);
        const uint32_t other = simple_pairs(b, energy, places, magnitude_shift, &entry);
        /* Bits of the places at which pairs begin: every other one from the last one down. */
        const uint32_t pairs = (places & 1 ? 0x11111110u : 0x44444444u) & ((1u << 2 * (places - 1) << 1) - 1u);
        _mm256_storeu_si256((__m256i *)(out + 1), entry);
        count += places >> 1;
        if (other & pairs) count = other_pairs(coefficients, seen, energy, entry, other, places, magnitude_shift, out);
    }
    if ((places & 1) == 0) return count;
    const uint32_t of_dc = (uint32_t)_mm_cvtsi128_si32(_mm256_castsi256_si128(energy)) & 0xffffu;
    return tsr_lone_entries(coefficients[0], of_dc, places, out, count);
}

/* slice_entries for pairs. A run is written when it ends: no entry comes between. */
static size_t pair_slice_entries(const int32_t *coefficients, struct tsr_block_grid grid, struct tsr_slice slice,
                                 int shift, uint32_t *out)
{
    struct slice_rows rows;
    size_t count = 0;
    int32_t run = -1; /* none */
    begin_slice(&rows, slice.columns);
    for (int32_t r = 0; r < slice.rows; r++, rows.now = !rows.now) {
        const int32_t *block = block_at(coefficients, grid, slice.column, slice.row + r);
        struct tsr_magnitudes *here = &rows.held[rows.now][1];
        const struct tsr_magnitudes *above = &rows.held[!rows.now][1];
        for (int32_t c = 0; c < slice.columns; c++, block += TSR_BLOCK_SAMPLES, here++, above++) {
            if (run >= 0 && is_zero_block(block)) {
                _mm256_storeu_si256((__m256i *)here, _mm256_setzero_si256());
                run++;
                continue;
            }
            const __m256i energy = tsr_vector_energies(here - 1, above);
            const struct entry_block b = load_entry_block(block, shift, here);
            int energy_class = 0;
            if (run < 0) {
                energy_class = tsr_vector_class(energy);
                if (energy_class == 0 && b.at == 0) {
                    run = 1;
                    continue;
                }
            }
            if (energy_class == 0) count += (size_t)tsr_zero_run_entries((uint32_t)tsr_max(run, 0), out + count);
            run = -1;
            count += (size_t)pair_entries(block, &b, here, energy, tsr_pair_cell(TSR_PAIR_PLACES, energy_class), shift,
                                          out + count);
        }
    }
    if (run >= 0) count += (size_t)tsr_zero_run_entries((uint32_t)run, out + count);
    return count;
}
