/* Slices of Huffman pairs for AVX2: four by turns, a pair at a turn. A pair of small digits is one entry of a table
 * that its energy chooses, and needs no branch on what it is; a block's coefficients, energies and magnitudes are
 * vectors. test_coefficients_cpu holds it equal. Part of coefficients_form.h.
 * Gain: 1.2 times all of the stage (tests/bench/decisions/032). */

enum {
    PAIR_SLICES = 4,
    PAIR_BITS = 9,        /* codewords of simple pairs have at most so many */
    PAIR_ENERGIES = 128,  /* pairs are simple below this energy */
    PAIR_LONG = 0x4000,   /* in place of a pair that is not simple */
    PAIR_NARROW = 1 << 15 /* magnitudes in a vector are below this */
};

/* What the magnitudes at places p and p - 1 say of places p - 2 and p - 3 together. */
static const uint8_t weight_of_first[TSR_BLOCK_SAMPLES] = {0, 0, 0, 1, 12, 0, 0, 15, 2, 0, 11, 11, 3, 14, 15, 20};
static const uint8_t weight_of_second[TSR_BLOCK_SAMPLES] = {0, 0, 0, 6, 11, 9, 0, 14, 8, 4, 2, 18, 8, 6, 20, 13};

/* Of HIGHEST and OTHERS: by the next PAIR_BITS bits, first digit << 8 | second digit << 4 | bits of the codeword.
 */
struct pair_tables {
    const struct tsr_pair_decoder *decoder;
    const struct tsr_pair_model *model;
    int shift;
    const uint16_t *of_energy[TSR_PAIR_OTHERS + 1][PAIR_ENERGIES];
    uint16_t none[1 << PAIR_BITS];
    uint16_t direct[2 * TSR_ENERGY_CLASSES][1 << PAIR_BITS];
};

static void list_pairs(const struct tsr_huffman_decoder *table, uint32_t less, uint16_t *direct)
{
    for (int i = 0; i < 1 << PAIR_BITS; i++) {
        const uint32_t entry = table->direct[i << (TSR_DIRECT_BITS - PAIR_BITS)], length = entry & 15u;
        const uint32_t symbol = entry >> 4, digit = symbol * 205u >> 11, second = symbol - digit * TSR_PAIR_DIGITS;
        const uint32_t first = digit + less, first_sign = first != 0, second_sign = second != 0;
        const bool simple = (length <= PAIR_BITS) & (symbol < TSR_PAIR_SYMBOLS) & (digit < TSR_PAIR_DIGITS - 1) &
                            (second < TSR_PAIR_DIGITS - 1);
        const uint32_t pair =
            second_sign << 13 | first_sign << 12 | first << 8 | second << 4 | (length + first_sign + second_sign);
        direct[i] = (uint16_t)(simple ? pair : (uint32_t)PAIR_LONG);
    }
}

static void list_pair_tables(struct pair_tables *tables, const struct tsr_pair_decoder *decoder,
                             const struct tsr_pair_model *model)
{
    tables->decoder = decoder;
    tables->model = model;
    tables->shift = model->magnitude_shift;
    const uint32_t least = tables->shift == 0 ? 128 : tables->shift == 1 ? 64 : 0; /* from here on low bits are raw */
    for (int i = 0; i < 1 << PAIR_BITS; i++) tables->none[i] = PAIR_LONG;
    for (int g = TSR_PAIR_HIGHEST; g <= TSR_PAIR_OTHERS; g++) {
        uint16_t(*direct)[1 << PAIR_BITS] = tables->direct + (g - TSR_PAIR_HIGHEST) * TSR_ENERGY_CLASSES;
        for (int t = 0; t < model->tables[g]; t++)
            list_pairs(&decoder->table[g * TSR_ENERGY_CLASSES + t], g == TSR_PAIR_HIGHEST, direct[t]);
        for (uint32_t e = 0; e < PAIR_ENERGIES; e++)
            tables->of_energy[g][e] = e < least && model->tables[g] > 0
                                          ? direct[model->table_of[tsr_pair_cell(g, tsr_energy_class(e))]]
                                          : tables->none;
    }
}

/* Two coefficients; wide: one of them is PAIR_NARROW or more, or the bits are invalid. */
struct long_pair {
    int32_t first, second;
    bool wide;
};

/* The next count (0 .. 63) bits, which the window has. */
static inline uint32_t take_bits(struct tsr_bit_reader *r, int count)
{
    const uint32_t bits = (uint32_t)(r->window >> 1 >> (63 - count));
    tsr_drop_bits(r, count);
    return bits;
}

/* A codeword from a window that has it: symbol << 4 | bits. */
static inline uint32_t take_codeword(struct tsr_bit_reader *r, const struct tsr_huffman_decoder *table)
{
    const uint32_t entry = tsr_huffman_decode(table, (uint32_t)(r->window >> (64 - TSR_CODE_LIMIT)));
    tsr_drop_bits(r, (int)(entry & 15u));
    return entry >> 4;
}

/* What follows the codeword of a digit, as tsr_pair_value reads it, and the sign: at most 36 bits. *wide: it may be
 * PAIR_NARROW or more. Whether the digit is 9 and what the sign is cannot be foreseen: no branches. */
static inline __attribute__((always_inline)) int32_t take_value(struct tsr_bit_reader *r, uint32_t digit, uint32_t less,
                                                                int low_bits, bool *wide)
{
    const int more = digit == TSR_PAIR_DIGITS - 1 ? 5 : 0, width = (int)take_bits(r, more);
    *wide |= width > 15;
    digit += take_bits(r, width & 15);
    const uint32_t magnitude = (digit << low_bits | take_bits(r, low_bits)) + less;
    *wide |= magnitude >= PAIR_NARROW;
    const int32_t negative = -(int32_t)take_bits(r, magnitude != 0);
    return ((int32_t)magnitude ^ negative) - negative;
}

/* A pair of any kind, as tsr_pair_get reads it. */
static inline __attribute__((always_inline)) struct long_pair take_long_pair(struct tsr_bit_reader *r,
                                                                             const struct tsr_huffman_decoder *table,
                                                                             uint32_t expected, uint32_t less,
                                                                             int shift)
{
    const int low_bits = tsr_pair_raw_bits(expected, shift);
    struct long_pair pair = {0, 0, false};
    tsr_fill_window(r);
    const uint32_t symbol = take_codeword(r, table), first = symbol * 205u >> 11;
    pair.wide = symbol >= TSR_PAIR_SYMBOLS;
    pair.first = take_value(r, first, less, low_bits, &pair.wide);
    tsr_fill_window(r);
    pair.second = take_value(r, symbol - first * TSR_PAIR_DIGITS, 0, low_bits, &pair.wide);
    return pair;
}

static __attribute__((noinline)) struct long_pair get_long_pair(struct tsr_bit_reader *r,
                                                                const struct tsr_huffman_decoder *table,
                                                                uint32_t expected, uint32_t less, int shift)
{
    return take_long_pair(r, table, expected, less, shift);
}

/* A block at work: energies, 16 bits a place. */
struct pair_block {
    __m256i energy;
    uint16_t *energies; /* the same, and two in front of them */
    int16_t *values;    /* coefficients */
    uint32_t expected;  /* energy of the next pair */
};

/* Puts a pair to its places; both: second | first << 16, with 16 bits each; said: what it says of those below. */
static inline __attribute__((always_inline)) void place_pair(struct pair_block *b, int p, uint32_t both,
                                                             uint32_t seen_first, uint32_t seen_second, __m256i said)
{
    memcpy(b->values + (p - 1), &both, sizeof both); /* read as a whole some turns later: no wait for these */
    b->energy = _mm256_add_epi16(b->energy, said);
    /* What comes next waits for nothing but these two. */
    uint32_t two;
    memcpy(&two, b->energies + (p - 3), sizeof two);
    b->expected =
        ((two & 0xffffu) + (two >> 16) + seen_first * weight_of_first[p] + seen_second * weight_of_second[p]) >> 1;
    _mm256_storeu_si256((__m256i *)b->energies, b->energy);
}

/* The pair of places p and p - 1. False where the block is to be read otherwise. */
static inline __attribute__((always_inline)) bool get_pair(struct tsr_bit_reader *r, const struct pair_tables *tables,
                                                           struct pair_block *b, int p, int group, uint32_t less,
                                                           int shift)
{
    uint32_t entry = PAIR_LONG;
    if (b->expected < PAIR_ENERGIES) entry = tables->of_energy[group][b->expected][r->window >> (64 - PAIR_BITS)];
    if (entry >= PAIR_LONG) {
        const struct tsr_huffman_decoder *table =
            tables->decoder->of_cell[tsr_pair_cell(group, tsr_energy_class(b->expected))];
        if (!table) return false;
        struct tsr_bit_reader own = *r;
        const struct long_pair pair = get_long_pair(&own, table, b->expected, less, shift);
        tsr_fill_window(&own);
        *r = own;
        if (pair.wide) return false;
        const uint32_t first = tsr_seen_magnitude((uint32_t)tsr_abs(pair.first), shift);
        const uint32_t second = tsr_seen_magnitude((uint32_t)tsr_abs(pair.second), shift);
        const __m256i *weights = (const __m256i *)(tsr_weight_inside_host + TSR_BLOCK_SAMPLES * (p - 1));
        place_pair(
            b, p, ((uint32_t)pair.second & 0xffffu) | (uint32_t)pair.first << 16, first, second,
            _mm256_add_epi16(_mm256_mullo_epi16(_mm256_loadu_si256(weights + 1), _mm256_set1_epi16((short)first)),
                             _mm256_mullo_epi16(_mm256_loadu_si256(weights), _mm256_set1_epi16((short)second))));
        return true;
    }
    const uint32_t magnitudes = (entry & 0xf00u) | (entry >> 4 & 15u); /* in bytes, the second one first */
    const uint32_t read = (uint32_t)(r->window >> (-(int)(entry & 15u) & 63)), second_sign = entry >> 13;
    const uint32_t negative = (read & second_sign) | (read >> second_sign & entry >> 12 & 1u) << 16;
    const uint32_t both = (magnitudes | magnitudes << 8) & 0xf000fu;
    const uint32_t first = magnitudes >> 8 >> shift, second = (magnitudes & 15u) >> shift;
    const uint32_t seen = shift == 0 ? magnitudes : second | first << 8;
    const __m256i weights = _mm256_loadu_si256((const __m256i *)(tsr_weights_of_pair + 2 * TSR_BLOCK_SAMPLES * p));
    tsr_drop_bits(r, (int)(entry & 15u));
    place_pair(b, p, (both ^ negative * 0xffffu) + negative, first, second,
               _mm256_maddubs_epi16(weights, _mm256_set1_epi16((short)seen)));
    return true;
}

/* Places 1 and 0 at the end. False as above. */
static inline __attribute__((always_inline)) bool
get_dc_pair(struct tsr_bit_reader *r, const struct pair_tables *tables, struct pair_block *b, int shift, __m256i *value)
{
    const struct tsr_huffman_decoder *table =
        tables->decoder->of_cell[tsr_pair_cell(TSR_PAIR_DC, tsr_energy_class(b->expected))];
    if (!table) return false;
    const struct long_pair pair = take_long_pair(r, table, b->expected, 0, shift);
    const uint32_t both = ((uint32_t)pair.second & 0xffffu) | (uint32_t)pair.first << 16;
    *value = _mm256_or_si256(*value, _mm256_zextsi128_si256(_mm_cvtsi32_si128((int32_t)both)));
    return !pair.wide;
}

/* Place 0 alone at the end. False as above. */
static inline __attribute__((always_inline)) bool get_lone(struct tsr_bit_reader *r, const struct pair_tables *tables,
                                                           struct pair_block *b, int places, __m256i *value)
{
    const int group = places == 1 ? TSR_PAIR_DC_ALONE : TSR_PAIR_LONE;
    const uint32_t energy = (uint32_t)_mm256_extract_epi16(b->energy, 0) & 0xffffu;
    const struct tsr_huffman_decoder *table = tables->decoder->of_cell[tsr_pair_cell(group, tsr_energy_class(energy))];
    if (!table) return false;
    tsr_fill_window(r);
    const int symbol = (int)take_codeword(r, table);
    if (symbol >= TSR_TOKENS_24_BITS) return false;
    const uint32_t raw = take_bits(r, tsr_token_raw_bits(symbol));
    const uint32_t dc = tsr_token_value(symbol, raw) + (places == 1);
    const int32_t negative = -(int32_t)take_bits(r, dc != 0), lone = ((int32_t)dc ^ negative) - negative;
    *value = _mm256_or_si256(*value, _mm256_zextsi128_si256(_mm_cvtsi32_si128(lone & 0xffff)));
    return dc < PAIR_NARROW;
}

/* Stores the coefficients and the magnitudes that the neighbours see. */
static inline void store_pairs(__m256i value, int32_t *block, struct tsr_magnitudes *seen, int shift)
{
    const __m256i shifted = _mm256_srl_epi16(_mm256_abs_epi16(value), _mm_cvtsi32_si128(shift));
    _mm256_storeu_si256((__m256i *)seen, _mm256_min_epu16(shifted, _mm256_set1_epi16(TSR_MAGNITUDE_CAP)));
    _mm256_storeu_si256((__m256i *)block, _mm256_cvtepi16_epi32(_mm256_castsi256_si128(value)));
    _mm256_storeu_si256((__m256i *)(block + 8), _mm256_cvtepi16_epi32(_mm256_extracti128_si256(value, 1)));
}

/* A slice at work. Those at work are a ring. */
struct pair_work {
    struct pair_work *following;
    struct tsr_bit_reader reader;
    uint64_t begin_window; /* of the reader where the block begins */
    int begin_bits;
    size_t begin_next;
    intptr_t p; /* the higher place of the next pair; 1 or 0: the end of the block */
    int places, group, energy_class;
    uint32_t expected;
    uint32_t run, left; /* zero blocks of the run at work, blocks that are left */
    bool in_run;        /* the block after them is not zero */
    _Alignas(32) int16_t value[TSR_BLOCK_SAMPLES];
    uint16_t energies[2 + TSR_BLOCK_SAMPLES];
    struct block_walk walk;
};

static inline struct pair_block block_of(struct pair_work *work)
{
    struct pair_block b;
    b.values = work->value;
    b.energies = work->energies + 2;
    b.energy = _mm256_loadu_si256((const __m256i *)b.energies);
    b.expected = work->expected;
    return b;
}

/* Member by member: what is copied as a whole waits for stores of its members. */
static inline void keep_reader(struct pair_work *work, const struct tsr_bit_reader *reader)
{
    work->reader.window = reader->window;
    work->reader.window_bits = reader->window_bits;
    work->reader.next = reader->next;
    work->reader.overrun = reader->overrun;
}

/* Reads numbers of places up to a block that is not zero, with the reader of the slice at work. */
static inline __attribute__((always_inline)) enum work_state
begin_pairs(struct pair_work *work, struct tsr_bit_reader own, const struct pair_tables *tables)
{
    do {
        int energy_class = 0;
        if (work->run == 0) {
            const uint32_t energy = energies_of_walk(&work->walk, work->energies + 2);
            energy_class = work->in_run ? 0 : tsr_energy_class(energy);
            if (energy_class == 0 && !work->in_run) {
                keep_reader(work, &own);
                work->run = tsr_zero_run_get(&work->reader, tables->decoder);
                own = work->reader;
                if (work->run > work->left) return WORK_BAD;
                work->in_run = true;
            }
        }
        work->left--;
        int places = 0;
        if (work->run > 0) {
            work->run--;
        } else {
            work->in_run = false;
            work->begin_window = own.window;
            work->begin_bits = own.window_bits;
            work->begin_next = own.next;
            const struct tsr_huffman_decoder *table =
                tables->decoder->of_cell[tsr_pair_cell(TSR_PAIR_PLACES, energy_class)];
            if (!table) return WORK_BAD;
            tsr_fill_window(&own);
            places = (int)take_codeword(&own, table);
            if (own.window_bits < 0) return WORK_BAD;
        }
        if (places == 0) {
            clear_block(work->walk.block);
            _mm256_storeu_si256((__m256i *)work->walk.here, _mm256_setzero_si256());
            continue;
        }
        if (places > TSR_BLOCK_SAMPLES) return WORK_BAD;
        const uint16_t *energies = work->energies + 2 + places;
        work->expected = ((uint32_t)energies[-1] + energies[-2]) >> 1; /* of one place: any */
        work->energy_class = energy_class;
        work->places = places;
        work->p = places - 1;
        work->group = TSR_PAIR_HIGHEST;
        _mm256_store_si256((__m256i *)work->value, _mm256_setzero_si256());
        keep_reader(work, &own);
        return WORK_GOES_ON;
    } while (step_to_next_block(&work->walk));
    return tsr_bits_ended(&own) ? WORK_ENDED : WORK_BAD;
}

/* Reads the block at work once more as tsr_pair_get does: magnitudes are large, or the bits are invalid. */
static __attribute__((noinline)) enum work_state read_wide_block(struct pair_work *work,
                                                                 const struct pair_tables *tables)
{
    work->reader.window = work->begin_window;
    work->reader.window_bits = work->begin_bits;
    work->reader.next = work->begin_next;
    work->reader.overrun = false;
    (void)energies_of_walk(&work->walk, work->energies + 2);
    if (!tsr_pair_get(&work->reader, work->walk.block, work->energies + 2, work->energy_class, tables->decoder,
                      tables->model))
        return WORK_BAD;
    tsr_see_magnitudes(work->walk.block, tables->shift, work->walk.here);
    if (step_to_next_block(&work->walk)) return begin_pairs(work, work->reader, tables);
    return tsr_bits_ended(&work->reader) ? WORK_ENDED : WORK_BAD;
}

/* What is left of a block; then the next one. */
static inline __attribute__((always_inline)) enum work_state end_pairs(struct pair_work *work,
                                                                       const struct pair_tables *tables, int shift)
{
    struct tsr_bit_reader own = work->reader;
    struct pair_block b = block_of(work);
    __m256i value = _mm256_load_si256((const __m256i *)work->value);
    if (!(work->p == 1 ? get_dc_pair(&own, tables, &b, shift, &value)
                       : get_lone(&own, tables, &b, work->places, &value)) ||
        tsr_dropped_too_much(&own))
        return read_wide_block(work, tables);
    store_pairs(value, work->walk.block, work->walk.here, shift);
    if (step_to_next_block(&work->walk)) return begin_pairs(work, own, tables);
    return tsr_bits_ended(&own) ? WORK_ENDED : WORK_BAD;
}

static inline __attribute__((always_inline)) enum work_state step_pairs(struct pair_work *work,
                                                                        const struct pair_tables *tables, int shift)
{
    if (work->p <= 1) return end_pairs(work, tables, shift);
    struct tsr_bit_reader own = work->reader;
    struct pair_block b = block_of(work);
    tsr_fill_window(&own);
    if (!get_pair(&own, tables, &b, (int)work->p, work->group, work->group == TSR_PAIR_HIGHEST, shift))
        return read_wide_block(work, tables);
    keep_reader(work, &own);
    work->expected = b.expected;
    work->group = TSR_PAIR_OTHERS;
    work->p -= 2;
    return WORK_GOES_ON;
}

static enum work_state begin_pair_work(struct pair_work *work, const uint8_t *bytes, size_t size,
                                       struct tsr_block_grid grid, struct tsr_slice slice,
                                       const struct pair_tables *tables, int32_t *coefficients)
{
    work->reader = tsr_bit_reader(bytes, size);
    work->run = 0;
    work->left = (uint32_t)(slice.rows * slice.columns);
    work->in_run = false;
    work->energies[0] = work->energies[1] = 0;
    begin_walk(&work->walk, grid, slice, coefficients);
    return begin_pairs(work, work->reader, tables);
}

/* As run_ring. */
static inline __attribute__((always_inline)) struct pair_work *
run_pair_ring(struct pair_work *work, const struct pair_tables *tables, int shift)
{
    for (;; work = work->following) {
        const enum work_state state = step_pairs(work, tables, shift);
        if (state != WORK_GOES_ON) return state == WORK_ENDED ? work : NULL;
    }
}

static __attribute__((noinline)) struct pair_work *run_shifted_pair_ring(struct pair_work *work,
                                                                         const struct pair_tables *tables, int shift)
{
    return run_pair_ring(work, tables, shift);
}

/* As take_slice. */
static enum work_state take_pair_slice(struct slice_strings *s, struct pair_work *work,
                                       const struct pair_tables *tables)
{
    enum work_state state = WORK_ENDED;
    while (state == WORK_ENDED && s->slice < s->slices) {
        const uint32_t length = s->lengths[s->slice];
        if (length > s->size) return WORK_BAD;
        state =
            begin_pair_work(work, s->bytes, length, s->grid, tsr_slice_at(s->grid, s->slice), tables, s->coefficients);
        s->bytes += length;
        s->size -= length;
        s->slice++;
    }
    return state;
}

/* Slices whose strings of these lengths are all of size bytes. */
static __attribute__((noinline)) bool decode_pair_slices(const uint8_t *bytes, size_t size, const uint32_t *lengths,
                                                         struct tsr_block_grid grid,
                                                         const struct tsr_coefficient_tables *tables,
                                                         int32_t *coefficients)
{
    struct slice_strings strings = {bytes, size, lengths, 0, grid.slice_columns * grid.slice_rows, grid, coefficients};
    struct pair_work all[PAIR_SLICES], *work = NULL; /* work: one of the ring */
    struct pair_tables listed;
    list_pair_tables(&listed, tables->pair_decoder, tables->pair);
    for (int i = 0; i < PAIR_SLICES; i++) {
        const enum work_state state = take_pair_slice(&strings, &all[i], &listed);
        if (state == WORK_BAD) return false;
        if (state == WORK_ENDED) break;
        all[i].following = work ? work->following : &all[i];
        if (work) work->following = &all[i];
        work = &all[i];
    }
    while (work) {
        work = listed.shift == 0 ? run_pair_ring(work, &listed, 0) : run_shifted_pair_ring(work, &listed, listed.shift);
        if (!work) return false;
        const enum work_state state = take_pair_slice(&strings, work, &listed);
        if (state == WORK_BAD) return false;
        if (state == WORK_GOES_ON) continue;
        struct pair_work *before = work;
        while (before->following != work) before = before->following;
        before->following = work->following;
        work = before != work ? before : NULL;
    }
    return strings.size == 0;
}
