/* Slices by rANS for AVX2: six at once, a symbol of each by turns. A symbol waits for the one before it; those of other
 * slices fill the time. Slices at different places of their blocks go on beside each other, and whether a block has
 * ended is known a turn before, so that branches are few and cheap. test_coefficients_cpu holds it equal. Part of
 * coefficients_form.h. Gain: 1.4 times all of the stage (tests/bench/decisions/032). */

#include "slice_work_avx2.h"

enum { RANS_SLICES = 6 };
#define NO_TABLE UINT32_MAX /* the place of a symbol that no table has */

/* Tables by energy, one that tells no symbol for groups without tables. */
struct ring_tables {
    const struct tsr_coefficient_decoder *decoder;
    const struct tsr_rans_buckets *other[TSR_ENERGY_CLASSES], *dc[TSR_ENERGY_CLASSES];
    uint8_t class_of[LISTED_ENERGIES];
    const struct tsr_rans_buckets *const *of_next[TSR_BLOCK_SAMPLES]; /* of the place below each place: other or dc */
    struct tsr_rans_buckets none;
};

/* A slice at work. Those at work are a ring. */
struct rans_work {
    struct rans_work *following;
    const struct tsr_rans_buckets *table; /* of the next magnitude */
    const uint8_t *next, *end;            /* words */
    intptr_t place;                       /* of the next magnitude, -1: signs, and then the next block */
    uint32_t state;
    uint16_t energy[2 * TSR_BLOCK_SAMPLES]; /* those in front of a block's mean nothing */
    struct block_walk walk;
};

static void list_tables(struct ring_tables *tables, const struct tsr_coefficient_decoder *decoder)
{
    tables->decoder = decoder;
    for (int c = 0; c < TSR_ENERGY_CLASSES; c++) {
        const struct tsr_rans_buckets *other = decoder->of_cell[tsr_coefficient_cell(TSR_COEFFICIENT_OTHERS, c)];
        const struct tsr_rans_buckets *dc = decoder->of_cell[tsr_coefficient_cell(TSR_COEFFICIENT_DC, c)];
        tables->other[c] = other ? other : &tables->none;
        tables->dc[c] = dc ? dc : &tables->none;
    }
    for (int p = 0; p < TSR_BLOCK_SAMPLES; p++) tables->of_next[p] = p > 1 ? tables->other : tables->dc;
    list_classes(tables->class_of);
    const uint64_t none = 1u << 20 | TSR_RANS_LOOK;
    tables->none.place[0] = NO_TABLE;
    for (int i = 0; i < TSR_RANS_BUCKETS; i++) tables->none.bucket[i] = none << 32 | none;
}

/* tsr_rans_refill by arithmetic: of a condition gcc makes a branch, which cannot be foreseen. */
static inline void refill_work(struct rans_work *work, uint32_t state)
{
    uint16_t word;
    if (work->next != work->end) {
        memcpy(&word, work->next, sizeof word);
        const uint32_t bits = _lzcnt_u32(state | 1) & 16u; /* 16: below TSR_RANS_LOW */
        state = state << bits | _bzhi_u32(word, bits);
        work->next += bits >> 3;
    }
    work->state = state;
}

static inline uint16_t *energy_of(struct rans_work *work)
{
    return work->energy + TSR_BLOCK_SAMPLES;
}

static inline bool work_ended(const struct rans_work *work)
{
    return work->next == work->end && work->state == 1;
}

/* The half of its bucket that the state wants, as tsr_rans_half. */
static inline uint32_t half_of(const struct tsr_rans_buckets *table, uint32_t slot)
{
    const uint64_t *bucket = &table->bucket[slot >> TSR_RANS_BUCKET_BITS];
    uint32_t low, half;
    memcpy(&low, bucket, sizeof low);
    memcpy(&half, (const char *)bucket + 4, sizeof half);
    return slot >= half >> 20 ? half : low;
}

/* tsr_rans_after and the word that it may want. */
static inline void take_half(struct rans_work *work, uint32_t state, uint32_t half)
{
    const uint32_t quotient = state >> TSR_RANS_BITS, slot = state & (TSR_RANS_TOTAL - 1);
    refill_work(work, _bextr_u32(half, 8, 12) * quotient + quotient + slot - (half >> 20));
}

/* Reads numbers of places up to a block that is not zero. */
static inline enum work_state begin_block(struct rans_work *work, const struct ring_tables *tables)
{
    do {
        const int energy_class = (int)class_of(tables->class_of, energies_of_walk(&work->walk, energy_of(work)));
        const struct tsr_rans_buckets *table =
            tables->decoder->of_cell[tsr_coefficient_cell(TSR_COEFFICIENT_PLACES, energy_class)];
        clear_block(work->walk.block);
        if (!table) return WORK_BAD;
        const uint32_t slot = work->state & (TSR_RANS_TOTAL - 1);
        uint32_t half = half_of(table, slot);
        if ((half & TSR_RANS_LOOK) == TSR_RANS_LOOK && half >> 20 != 0) half = tsr_rans_look(table, slot);
        take_half(work, work->state, half);
        const int places = (int)(half & 255u);
        if (places == 0) {
            _mm256_storeu_si256((__m256i *)work->walk.here, _mm256_setzero_si256());
            continue;
        }
        if (places > TSR_BLOCK_SAMPLES) return WORK_BAD;
        const int group = places == 1 ? TSR_COEFFICIENT_DC_ALONE : TSR_COEFFICIENT_HIGHEST;
        work->place = places - 1;
        work->table =
            tables->decoder
                ->of_cell[tsr_coefficient_cell(group, (int)class_of(tables->class_of, energy_of(work)[places - 1]))];
        return work->table ? WORK_GOES_ON : WORK_BAD;
    } while (step_to_next_block(&work->walk));
    return work_ended(work) ? WORK_ENDED : WORK_BAD;
}

/* Gives the block's magnitudes their signs, whose first stands in the highest bit, and keeps magnitudes as the
 * neighbours see them; then the next block. */
static inline enum work_state end_block(struct rans_work *work, const struct ring_tables *tables, int shift)
{
    int32_t *const block = work->walk.block;
    const __m256i low = _mm256_loadu_si256((const __m256i *)block),
                  high = _mm256_loadu_si256((const __m256i *)(block + 8));
    see_block(&work->walk, low, high, shift);
    const __m256i words = _mm256_permute4x64_epi64(_mm256_packs_epi32(low, high), 0xd8);
    const __m128i bytes = _mm_packs_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
    __m128i above = _mm_min_epu8(bytes, _mm_set1_epi8(1)); /* those that are not 0 */
    const int bits = __builtin_popcount((uint32_t)_mm_movemask_epi8(_mm_slli_epi16(above, 7)));
    const uint32_t signs = tsr_rans_get_raw(&work->state, bits) << (32 - bits);
    refill_work(work, work->state);
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
    if (step_to_next_block(&work->walk)) return begin_block(work, tables);
    return work_ended(work) ? WORK_ENDED : WORK_BAD;
}

/* A symbol that has raw bits or that its bucket does not tell, from this half; TSR_COEFFICIENT_LIMIT where the bits are
 * invalid. */
static __attribute__((noinline)) uint32_t long_magnitude(struct rans_work *work, uint32_t half)
{
    const struct tsr_rans_buckets *table = work->table;
    const uint32_t slot = work->state & (TSR_RANS_TOTAL - 1);
    if ((half & TSR_RANS_LOOK) == TSR_RANS_LOOK && half >> 20 != 0) {
        if (table->place[0] == NO_TABLE) return TSR_COEFFICIENT_LIMIT;
        half = tsr_rans_look(table, slot);
    }
    refill_work(work, tsr_rans_after(work->state, half));
    const int more = (int)table->more, symbol = (int)(half & 255u) - more;
    if (symbol < 16) return (uint32_t)(symbol + more);
    const int raw_bits = tsr_token_raw_bits(symbol);
    uint32_t raw = 0;
    if (raw_bits > 16) {
        raw = tsr_rans_get_raw(&work->state, raw_bits - 16) << 16;
        refill_work(work, work->state);
    }
    raw |= tsr_rans_get_raw(&work->state, tsr_min(raw_bits, 16));
    refill_work(work, work->state);
    return tsr_token_value(symbol, raw) + (uint32_t)more;
}

static inline enum work_state step_work(struct rans_work *work, const struct ring_tables *tables, int shift)
{
    const intptr_t p = work->place;
    if (p < 0) return end_block(work, tables, shift);
    const uint32_t state = work->state, half = half_of(work->table, state & (TSR_RANS_TOTAL - 1));
    uint32_t magnitude = half & 255u, here = magnitude >> shift;
    if (magnitude < 16) {
        take_half(work, state, half);
    } else {
        magnitude = long_magnitude(work, half);
        if (magnitude >= TSR_COEFFICIENT_LIMIT) return WORK_BAD;
        here = tsr_seen_magnitude(magnitude, shift);
    }
    work->walk.block[p] = (int32_t)magnitude;
    work->place = p - 1;
    /* After place 0 likewise, for nothing: a branch costs more. */
    uint16_t *energy = energy_of(work);
    tsr_add_energy(energy, (int)p, here);
    work->table = tables->of_next[p][class_of(tables->class_of, energy[p - 1])];
    return WORK_GOES_ON;
}

static enum work_state begin_work(struct rans_work *work, const uint8_t *bytes, size_t size, struct tsr_block_grid grid,
                                  struct tsr_slice slice, const struct ring_tables *tables, int32_t *coefficients)
{
    const struct tsr_rans_reader reader = tsr_rans_reader(bytes, size);
    work->state = reader.state;
    work->next = bytes + reader.next;
    work->end = bytes + size;
    begin_walk(&work->walk, grid, slice, coefficients);
    return begin_block(work, tables);
}

/* Goes on until a slice of the ring ends: that one; NULL: the bits are no slices. */
static inline struct rans_work *run_ring(struct rans_work *work, const struct ring_tables *tables, int shift)
{
    for (;; work = work->following) {
        const enum work_state state = step_work(work, tables, shift);
        if (state != WORK_GOES_ON) return state == WORK_ENDED ? work : NULL;
    }
}

static __attribute__((noinline)) struct rans_work *run_shifted_ring(struct rans_work *work,
                                                                    const struct ring_tables *tables, int shift)
{
    return run_ring(work, tables, shift);
}

/* Strings of slices that are still to be decoded. */
struct slice_strings {
    const uint8_t *bytes;
    size_t size;
    const uint32_t *lengths;
    int32_t slice, slices;
    struct tsr_block_grid grid;
    int32_t *coefficients;
};

/* The next slice that is not all zeros; WORK_ENDED: there is none. */
static enum work_state take_slice(struct slice_strings *s, struct rans_work *work, const struct ring_tables *tables)
{
    enum work_state state = WORK_ENDED;
    while (state == WORK_ENDED && s->slice < s->slices) {
        const uint32_t length = s->lengths[s->slice];
        if (length > s->size) return WORK_BAD;
        state = begin_work(work, s->bytes, length, s->grid, tsr_slice_at(s->grid, s->slice), tables, s->coefficients);
        s->bytes += length;
        s->size -= length;
        s->slice++;
    }
    return state;
}

/* Slices whose strings of these lengths are all of size bytes. */
static bool decode_rans_slices(const uint8_t *bytes, size_t size, const uint32_t *lengths, struct tsr_block_grid grid,
                               const struct tsr_coefficient_tables *tables, int32_t *coefficients)
{
    struct slice_strings strings = {bytes, size, lengths, 0, grid.slice_columns * grid.slice_rows, grid, coefficients};
    struct rans_work all[RANS_SLICES], *work = NULL; /* work: one of the ring */
    struct ring_tables listed;
    const int shift = tables->coefficient->magnitude_shift;
    list_tables(&listed, tables->coefficient_decoder);
    for (int i = 0; i < RANS_SLICES; i++) {
        const enum work_state state = take_slice(&strings, &all[i], &listed);
        if (state == WORK_BAD) return false;
        if (state == WORK_ENDED) break;
        all[i].following = work ? work->following : &all[i];
        if (work) work->following = &all[i];
        work = &all[i];
    }
    while (work) {
        work = shift == 0 ? run_ring(work, &listed, 0) : run_shifted_ring(work, &listed, shift);
        if (!work) return false;
        const enum work_state state = take_slice(&strings, work, &listed);
        if (state == WORK_BAD) return false;
        if (state == WORK_GOES_ON) continue;
        struct rans_work *before = work;
        while (before->following != work) before = before->following;
        before->following = work->following;
        work = before != work ? before : NULL;
    }
    return strings.size == 0;
}
