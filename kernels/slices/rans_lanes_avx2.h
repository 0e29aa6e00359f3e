/* Slices by rANS for AVX2: several at once, a symbol of each by turns, in 0.63 of the time on photographs. A
 * symbol waits for the one before it; those of other slices fill the time. Slices at different places of their blocks
 * go on beside each other, and whether a block has ended is known a turn before, so that branches are few and cheap.
 * test_coefficients_cpu holds it equal. Part of coefficients_form.h. */

#include "lanes_avx2.h"

enum { RANS_LANES = 4 };

/* Tables by energy, one that tells no symbol for groups without tables. */
struct lane_tables {
    const struct tsr_coefficient_decoder *decoder;
    const struct tsr_rans_buckets *other[TSR_ENERGY_CLASSES], *dc[TSR_ENERGY_CLASSES];
    uint8_t class_of[LISTED_ENERGIES];
    struct tsr_rans_buckets none;
};

/* A slice at work. */
struct rans_lane {
    const struct tsr_rans_buckets *table; /* of the next magnitude */
    const uint8_t *next, *end;            /* words */
    intptr_t place;                       /* of the next magnitude, -1: signs, and then the next block */
    uint32_t state;
    uint16_t energy[TSR_BLOCK_SAMPLES];
    struct block_walk walk;
};

static void list_tables(struct lane_tables *tables, const struct tsr_coefficient_decoder *decoder)
{
    tables->decoder = decoder;
    for (int c = 0; c < TSR_ENERGY_CLASSES; c++) {
        const struct tsr_rans_buckets *other = decoder->of_cell[tsr_coefficient_cell(TSR_COEFFICIENT_OTHERS, c)];
        const struct tsr_rans_buckets *dc = decoder->of_cell[tsr_coefficient_cell(TSR_COEFFICIENT_DC, c)];
        tables->other[c] = other ? other : &tables->none;
        tables->dc[c] = dc ? dc : &tables->none;
    }
    list_classes(tables->class_of);
    const uint64_t none = 1u << 20 | TSR_RANS_LOOK;
    for (int i = 0; i < TSR_RANS_BUCKETS; i++) tables->none.bucket[i] = none << 32 | none;
}

/* tsr_rans_refill by arithmetic: of a condition gcc makes a branch, which cannot be foreseen. */
static inline void refill_lane(struct rans_lane *lane, uint32_t state)
{
    uint16_t word;
    if (lane->next != lane->end) {
        memcpy(&word, lane->next, sizeof word);
        const uint32_t bits = (uint32_t)(state < TSR_RANS_LOW) << 4;
        state = state << bits | _bzhi_u32(word, bits);
        lane->next += bits >> 3;
    }
    lane->state = state;
}

static inline bool lane_ended(const struct rans_lane *lane)
{
    return lane->next == lane->end && lane->state == 1;
}

/* Reads numbers of places up to a block that is not zero. */
static inline enum lane_state begin_block(struct rans_lane *lane, const struct lane_tables *tables)
{
    do {
        const int energy_class = energies_of_walk(&lane->walk, lane->energy);
        const struct tsr_rans_buckets *table =
            tables->decoder->of_cell[tsr_coefficient_cell(TSR_COEFFICIENT_PLACES, energy_class)];
        clear_block(lane->walk.block);
        if (!table) return LANE_BAD;
        const int places = tsr_rans_get_bucket(&lane->state, table);
        refill_lane(lane, lane->state);
        if (places == 0) {
            _mm256_storeu_si256((__m256i *)lane->walk.here, _mm256_setzero_si256());
            continue;
        }
        if (places > TSR_BLOCK_SAMPLES) return LANE_BAD;
        const int group = places == 1 ? TSR_COEFFICIENT_DC_ALONE : TSR_COEFFICIENT_HIGHEST;
        lane->place = places - 1;
        lane->table =
            tables->decoder->of_cell[tsr_coefficient_cell(group, class_of(tables->class_of, lane->energy[places - 1]))];
        return lane->table ? LANE_GOES_ON : LANE_BAD;
    } while (step_to_next_block(&lane->walk));
    return lane_ended(lane) ? LANE_ENDED : LANE_BAD;
}

/* Gives the block's magnitudes their signs, whose first stands in the highest bit, and keeps magnitudes as the
 * neighbours see them; then the next block. */
static inline enum lane_state end_block(struct rans_lane *lane, const struct lane_tables *tables, int shift)
{
    int32_t *const block = lane->walk.block;
    const __m256i low = _mm256_loadu_si256((const __m256i *)block),
                  high = _mm256_loadu_si256((const __m256i *)(block + 8));
    see_block(&lane->walk, low, high, shift);
    const __m256i words = _mm256_permute4x64_epi64(_mm256_packs_epi32(low, high), 0xd8);
    const __m128i bytes = _mm_packs_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
    __m128i above = _mm_min_epu8(bytes, _mm_set1_epi8(1)); /* those that are not 0 */
    const int bits = __builtin_popcount((uint32_t)_mm_movemask_epi8(_mm_slli_epi16(above, 7)));
    const uint32_t signs = tsr_rans_get_raw(&lane->state, bits) << (32 - bits);
    refill_lane(lane, lane->state);
    above = _mm_srli_si128(above, 1); /* how many stand above a place */
    above = _mm_add_epi8(above, _mm_srli_si128(above, 1));
    above = _mm_add_epi8(above, _mm_srli_si128(above, 2));
    above = _mm_add_epi8(above, _mm_srli_si128(above, 4));
    above = _mm_add_epi8(above, _mm_srli_si128(above, 8));
    const __m256i all = _mm256_set1_epi32((int32_t)signs);
    const __m256i low_signs = _mm256_srai_epi32(_mm256_sllv_epi32(all, _mm256_cvtepu8_epi32(above)), 31);
    const __m256i high_signs =
        _mm256_srai_epi32(_mm256_sllv_epi32(all, _mm256_cvtepu8_epi32(_mm_srli_si128(above, 8))), 31);
    _mm256_storeu_si256((__m256i *)block, _mm256_sub_epi32(_mm256_xor_si256(low, low_signs), low_signs));
    _mm256_storeu_si256((__m256i *)(block + 8), _mm256_sub_epi32(_mm256_xor_si256(high, high_signs), high_signs));
    if (step_to_next_block(&lane->walk)) return begin_block(lane, tables);
    return lane_ended(lane) ? LANE_ENDED : LANE_BAD;
}

/* A symbol that has raw bits or that its bucket does not tell; TSR_COEFFICIENT_LIMIT where the bits are invalid. */
static __attribute__((noinline)) uint32_t long_magnitude(struct rans_lane *lane, const struct lane_tables *tables)
{
    if (lane->table == &tables->none) return TSR_COEFFICIENT_LIMIT;
    struct tsr_rans_reader reader = {lane->next, (size_t)(lane->end - lane->next), 0, lane->state};
    const uint32_t magnitude = tsr_magnitude_get(&reader, lane->table);
    lane->state = reader.state;
    lane->next += reader.next;
    return magnitude;
}

static inline enum lane_state step_lane(struct rans_lane *lane, const struct lane_tables *tables, int shift)
{
    const intptr_t p = lane->place;
    if (p < 0) return end_block(lane, tables, shift);
    const uint32_t half = tsr_rans_half(lane->table, lane->state & (TSR_RANS_TOTAL - 1));
    uint32_t magnitude = half & 255u;
    if (magnitude < 16) {
        refill_lane(lane, tsr_rans_after(lane->state, half));
    } else {
        magnitude = long_magnitude(lane, tables);
        if (magnitude >= TSR_COEFFICIENT_LIMIT) return LANE_BAD;
    }
    lane->walk.block[p] = (int32_t)magnitude;
    lane->place = p - 1;
    /* After place 0 likewise, for nothing: a branch costs more. */
    const uint32_t here = tsr_seen_magnitude(magnitude, shift);
    const struct tsr_rans_buckets *const *of = p > 1 ? tables->other : tables->dc;
    tsr_add_energy(lane->energy, (int)p, here);
    lane->table = of[class_of(tables->class_of, lane->energy[(p - 1) & 15])];
    return LANE_GOES_ON;
}

static enum lane_state begin_lane(struct rans_lane *lane, const uint8_t *bytes, size_t size, struct tsr_block_grid grid,
                                  struct tsr_slice slice, const struct lane_tables *tables, int32_t *coefficients)
{
    const struct tsr_rans_reader reader = tsr_rans_reader(bytes, size);
    lane->state = reader.state;
    lane->next = bytes + reader.next;
    lane->end = bytes + size;
    begin_walk(&lane->walk, grid, slice, coefficients);
    return begin_block(lane, tables);
}

/* Goes on until one of the active lanes ends: its number; -1: the bits are no slices. */
static inline int run_lanes(struct rans_lane *const *lane, int active, const struct lane_tables *tables, int shift)
{
    for (;;)
        for (int i = 0; i < active; i++) {
            const enum lane_state state = step_lane(lane[i], tables, shift);
            if (state != LANE_GOES_ON) return state == LANE_ENDED ? i : -1;
        }
}

static __attribute__((noinline)) int run_shifted_lanes(struct rans_lane *const *lane, int active,
                                                       const struct lane_tables *tables, int shift)
{
    return run_lanes(lane, active, tables, shift);
}

/* Slices whose strings of these lengths are all of size bytes. */
static bool decode_rans_slices(const uint8_t *bytes, size_t size, const uint32_t *lengths, struct tsr_block_grid grid,
                               const struct tsr_coefficient_tables *tables, int32_t *coefficients)
{
    struct rans_lane all[RANS_LANES], *lane[RANS_LANES];
    struct lane_tables listed;
    const int32_t slices = grid.slice_columns * grid.slice_rows;
    const int shift = tables->coefficient->magnitude_shift;
    size_t at = 0;
    int active = 0;
    list_tables(&listed, tables->coefficient_decoder);
    for (int i = 0; i < RANS_LANES; i++) lane[i] = &all[i];
    for (int32_t s = 0; s < slices || active > 0;) {
        while (active < RANS_LANES && s < slices) {
            if (lengths[s] > size - at) return false;
            const enum lane_state state =
                begin_lane(lane[active], bytes + at, lengths[s], grid, tsr_slice_at(grid, s), &listed, coefficients);
            if (state == LANE_BAD) return false;
            active += state == LANE_GOES_ON;
            at += lengths[s++];
        }
        if (active == 0) continue;
        const int ended =
            shift == 0 ? run_lanes(lane, active, &listed, 0) : run_shifted_lanes(lane, active, &listed, shift);
        if (ended < 0) return false;
        struct rans_lane *const free_lane = lane[ended];
        lane[ended] = lane[--active];
        lane[active] = free_lane;
    }
    return at == size;
}
